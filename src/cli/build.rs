//! `histmap build`.

use super::borders::BorderArgs;
use super::{PackArgs, RegionArgs, terminal};
use crate::animate::AnimationKind;
use crate::classes::ClassFile;
use crate::error::{Error, Result};
use crate::grid::LonLatBox;
use crate::pipeline::{self, AnimationOptions, BuildRequest, BuildSummary};
use crate::resources::human_bytes;
use crate::words::counted;
use std::path::PathBuf;

/// Arguments of `histmap build`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    region: RegionArgs,
    /// Year or span of years: 1200, 300bc, -300, "300 BCE", 1200/1210 (there is no year 0); several over one ground with
    /// commas, 1100,1200,1300, as a series with its step in years, 1000..1400/50, or 1000..1400/changes for every year in
    /// which the map changes
    #[arg(long, value_name = "YEAR", allow_hyphen_values = true)]
    era: String,
    /// Cell size in metres [default: the pack's, 250 for the Caucasus]
    #[arg(long, value_name = "METRES", allow_negative_numbers = true, value_parser = super::metres)]
    resolution: Option<f64>,
    /// Projection of the map, in metres, such as EPSG:32638 [default: the pack's]
    #[arg(long, value_name = "CRS")]
    crs: Option<String>,
    /// Part of the region: west,south,east,north in degrees, such as 43,41,45.5,42.5
    #[arg(long, value_name = "W,S,E,N", allow_hyphen_values = true)]
    bbox: Option<String>,
    /// Seed of the relief's detail
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true, value_parser = super::whole64)]
    seed: u64,
    /// Longer side of the map on the sheet map.png, pixels [default: 3200, less for a small part]
    #[arg(long, value_name = "PX", allow_negative_numbers = true, value_parser = super::whole)]
    map_px: Option<usize>,
    /// Output folder [default: out/REGION-YEAR, or out/REGION-FIRST..LAST with a folder for each of several eras]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace the output folder if it exists
    #[arg(long)]
    overwrite: bool,
    /// Worker threads [default: one per core]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = super::whole)]
    threads: Option<usize>,
    /// Elevation model to use instead of the shipped one (any raster that GDAL reads); none: what --elevation-classes say
    /// is all
    #[arg(long, value_name = "FILE")]
    dem: Option<PathBuf>,
    /// What the file of --dem is in, only where it does not say (the map's own projection is --crs)
    #[arg(long, value_name = "CRS")]
    dem_crs: Option<String>,
    /// Elevation classes that the ground keeps to: polygons with low_m and high_m, contour lines with elevation_m, or both
    #[arg(long, value_name = "FILE")]
    elevation_classes: Option<PathBuf>,
    /// What that file is in, only where it does not say
    #[arg(long, value_name = "CRS", requires = "elevation_classes")]
    classes_crs: Option<String>,
    /// Field with the height of a contour line [default: elevation_m, elev, elevation, ele, height, contour, z]
    #[arg(long, value_name = "FIELD", requires = "elevation_classes")]
    elevation_field: Option<String>,
    /// Border files whose claims are added (also folders of them, or zip archives); a claim replaces the pack's claims of
    /// the same polity; may be repeated
    #[arg(long, value_name = "FILE", num_args = 1..)]
    borders: Vec<PathBuf>,
    /// Close gaps between claims that are narrower than this; 0 closes none [default: 500 with --borders, else 0]
    #[arg(long, value_name = "METRES", allow_negative_numbers = true)]
    close_gaps: Option<f64>,
    /// Moving picture of the eras: gif, apng, webp; several with commas
    #[arg(long, value_name = "FORMAT", value_delimiter = ',', value_parser = AnimationKind::ALL.map(AnimationKind::as_str))]
    animate: Vec<String>,
    /// Seconds for which a moving picture shows each era
    #[arg(long, value_name = "SECONDS", default_value_t = 1.5, allow_negative_numbers = true)]
    frame_time: f64,
    /// Longer side of the map in a moving picture, pixels
    #[arg(long, value_name = "PX", default_value_t = 1200)]
    frame_px: usize,
    #[command(flatten)]
    reading: BorderArgs,
    #[command(flatten)]
    packs: PackArgs,
    /// Say nothing but errors
    #[arg(long, short)]
    quiet: bool,
    /// Print a machine-readable summary on standard output
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: Args, command_line: &str) -> Result<()> {
    let classes_only = args.dem.as_deref().is_some_and(|p| p.as_os_str() == "none");
    let request = BuildRequest {
        region: args.region.name().to_string(),
        eras: args.era.parse()?,
        resolution_m: args.resolution,
        crs: args.crs,
        bbox: args.bbox.as_deref().map(parse_bbox).transpose()?,
        seed: args.seed,
        map_px: args.map_px,
        out: args.out,
        overwrite: args.overwrite,
        threads: args.threads,
        dem: args.dem.filter(|_| !classes_only),
        dem_crs: args.dem_crs,
        classes: args.elevation_classes.map(|path| ClassFile {
            path,
            crs: args.classes_crs,
            field: args.elevation_field,
        }),
        classes_only,
        borders: args.reading.input(args.borders)?,
        close_gaps_m: args.close_gaps,
        animate: args.animate.iter().filter_map(|k| AnimationKind::named(k)).collect(),
        animation: AnimationOptions { frame_s: args.frame_time, map_px: args.frame_px },
        maps: args.packs.maps,
        command_line: command_line.to_string(),
    };
    let mut progress = terminal::Terminal::new(args.quiet || args.json);
    let summary = pipeline::build(&request, &mut progress)?;
    drop(progress);
    if args.json {
        let text = serde_json::to_string_pretty(&summary).map_err(|e| Error::write("standard output", e))?;
        return terminal::print(&format!("{text}\n"));
    }
    if args.quiet {
        return Ok(());
    }
    terminal::print(&table(&summary))
}

/// Reads "W,S,E,N".
pub(super) fn parse_bbox(text: &str) -> Result<LonLatBox> {
    let numbers: Vec<f64> = text.split(',').filter_map(|p| p.trim().parse().ok()).collect();
    match (numbers.as_slice(), text.split(',').count()) {
        (&[west, south, east, north], 4) => LonLatBox::new(west, south, east, north),
        _ => Err(Error::argument("--bbox", text, "give four numbers in degrees: west,south,east,north")),
    }
}

fn table(summary: &BuildSummary) -> String {
    let mut out = format!(
        "{}: {} in {}, {}, {} x {} cells of {} m, {}\n",
        summary.out,
        summary.region_title,
        summary.era,
        counted(summary.polities, "polity", "polities"),
        summary.cols,
        summary.rows,
        summary.resolution_m,
        summary.crs
    );
    let width = summary.files.iter().map(|f| f.path.len()).max().unwrap_or(0);
    for f in &summary.files {
        out += &format!("  {:width$}  {:>10}\n", f.path, human_bytes(f.bytes));
    }
    let stages: Vec<String> = summary.seconds.iter().map(|s| format!("{} {:.1}", s.stage, s.seconds)).collect();
    out += &format!("{:.1} s ({})\n", summary.total_seconds, stages.join(", "));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_four_numbers() {
        assert!(parse_bbox("43,41,45,42.5").is_ok());
        for bad in ["", "43,41,45", "43,41,45,x", "43,41,45,42,1", "43;41;45;42"] {
            assert!(parse_bbox(bad).is_err(), "{bad}");
        }
    }
}
