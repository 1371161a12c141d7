//! `histmap refine`.

use super::terminal;
use crate::error::{Error, Result};
use crate::refine::{self, Fineness, RefineRequest, RefineSummary};
use crate::terrain::{CoarseMode, Detail, Stencil};
use clap::ValueEnum;
use std::path::PathBuf;

/// Arguments of `histmap refine`.
#[derive(Debug, clap::Args)]
#[command(override_usage = "histmap refine [OPTIONS] <--factor <N>|--resolution <METRES>> <COARSE> <OUT>")]
pub(super) struct Args {
    /// Elevation model: any raster that GDAL reads, geographic or projected
    coarse: PathBuf,
    /// GeoTIFF to write (.tif or .tiff)
    out: PathBuf,
    /// Fine cells along each edge of a coarse one
    #[arg(long, value_name = "N", required_unless_present = "resolution", conflicts_with = "resolution")]
    factor: Option<usize>,
    /// Fine cell size in metres
    #[arg(long, value_name = "METRES", allow_negative_numbers = true)]
    resolution: Option<f64>,
    /// What a coarse value binds
    #[arg(long, value_enum, default_value_t = Mode::Mean)]
    mode: Mode,
    /// Leave voids void; without it they are filled smoothly
    #[arg(long)]
    keep_voids: bool,
    /// Points with height_m (or elevation, ele, z): their cells get exactly that
    #[arg(long, value_name = "FILE")]
    peaks: Option<PathBuf>,
    /// Lines of rivers: they run in valleys and fall to their mouth
    #[arg(long, value_name = "FILE")]
    rivers: Option<PathBuf>,
    /// Polygons of water, with level_m where known
    #[arg(long, value_name = "FILE")]
    water: Option<PathBuf>,
    /// Polygons with low_m and high_m that the ground must keep
    #[arg(long, value_name = "FILE")]
    intervals: Option<PathBuf>,
    /// CRS of those files where they have none
    #[arg(long, value_name = "CRS")]
    vector_crs: Option<String>,
    /// CRS of the model where it has none
    #[arg(long, value_name = "CRS")]
    crs: Option<String>,
    /// Plain relief, or relief that water runs off
    #[arg(long, value_enum, default_value_t = DetailArg::Drained)]
    detail: DetailArg,
    /// Factor on the detail's amplitude
    #[arg(long, value_name = "F", default_value_t = 1.0, allow_negative_numbers = true)]
    roughness: f64,
    /// Learn the amplitude by scale from a finer model of like country
    #[arg(long, value_name = "FILE")]
    roughness_from: Option<PathBuf>,
    /// Hurst exponent at every scale [default: the measured curve]
    #[arg(long, value_name = "H", allow_negative_numbers = true)]
    hurst: Option<f64>,
    /// Interpolation of midpoints: the smooth four-point one, or the textbook's mean of four
    #[arg(long, value_enum, default_value_t = StencilArg::FourPoint)]
    stencil: StencilArg,
    /// Seed of the detail
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Replace the output file if it exists
    #[arg(long)]
    overwrite: bool,
    /// Worker threads [default: one per core]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Say nothing but errors
    #[arg(long, short)]
    quiet: bool,
    /// Print a machine-readable summary
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Mode {
    /// The mean of its block
    Mean,
    /// The elevation at its node
    Point,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum DetailArg {
    /// Displaced midpoints as they fall
    Plain,
    /// Without pits of its own
    Drained,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum StencilArg {
    /// (-1, 9, 9, -1)/16 along each axis
    FourPoint,
    /// Mean of the four nearest nodes
    Classic,
}

pub(super) fn run(args: Args) -> Result<()> {
    let request = RefineRequest {
        fineness: match (args.factor, args.resolution) {
            (Some(n), _) => Fineness::Factor(n),
            (None, m) => Fineness::Resolution(m.unwrap_or(f64::NAN)),
        },
        coarse: args.coarse,
        coarse_crs: args.crs,
        out: args.out,
        overwrite: args.overwrite,
        mode: match args.mode {
            Mode::Mean => CoarseMode::Mean,
            Mode::Point => CoarseMode::Point,
        },
        keep_voids: args.keep_voids,
        peaks: args.peaks,
        rivers: args.rivers,
        water: args.water,
        intervals: args.intervals,
        vector_crs: args.vector_crs,
        roughness_from: args.roughness_from,
        roughness: args.roughness,
        hurst: args.hurst,
        seed: args.seed,
        detail: match args.detail {
            DetailArg::Plain => Detail::Plain,
            DetailArg::Drained => Detail::Drained,
        },
        stencil: match args.stencil {
            StencilArg::FourPoint => Stencil::FourPoint,
            StencilArg::Classic => Stencil::Classic,
        },
        threads: args.threads,
    };
    let summary = refine::refine(&request)?;
    if args.json {
        let text = serde_json::to_string_pretty(&summary).map_err(|e| Error::write("standard output", e))?;
        return terminal::print(&format!("{text}\n"));
    }
    if args.quiet { Ok(()) } else { terminal::print(&report(&summary)) }
}

fn report(s: &RefineSummary) -> String {
    let mut out = format!(
        "{}: {} x {} cells of {:.1} m; block means rms {:.3} m, worst {:.2} m; {:.1} s ({:.1} s refining)\n",
        s.out, s.cols, s.rows, s.cell_m, s.block_mean_rms_m, s.block_mean_worst_m, s.total_seconds, s.refine_seconds
    );
    for c in &s.contradictions {
        out += &format!("contradiction: {c}\n");
    }
    for o in &s.outside {
        out += &format!("outside: {o}\n");
    }
    for n in &s.notes {
        out += &format!("note: {n}\n");
    }
    out
}
