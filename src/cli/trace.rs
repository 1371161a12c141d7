//! `histmap trace`.

use super::{terminal, whole};
use crate::error::{Error, Result};
use crate::resources::with_threads;
use crate::trace::TraceOptions;
use crate::trace_run::{self, LeastArea, TraceReport, TraceRequest};
use crate::words::counted;
use crate::year::Era;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Arguments of `histmap trace`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  histmap trace page.tif --propose legend.toml
  histmap trace page.tif --legend legend.toml -o regions.gpkg")]
pub(super) struct Args {
    /// Registered map: a GeoTIFF of histmap georef, or any picture with a CRS
    scan: PathBuf,
    /// Which colours mean what: TOML, see docs/tracing.md
    #[arg(long, value_name = "FILE", required_unless_present = "propose")]
    legend: Option<PathBuf>,
    /// GeoPackage to write
    #[arg(short, long, value_name = "FILE", required_unless_present = "propose")]
    out: Option<PathBuf>,
    /// Write a legend of the colours found, to be edited, with a swatch picture beside it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["legend", "out"])]
    propose: Option<PathBuf>,
    /// What is narrower is a line or lettering and is removed; 0 removes nothing
    #[arg(long, value_name = "PIXELS", value_parser = whole, default_value_t = TraceOptions::default().line_width_px)]
    line_width: usize,
    /// Even out the light of the paper: yellowed, stained, unevenly lit
    #[arg(long)]
    uneven_paper: bool,
    /// Distance between printed dots or hatches: colours are judged over as much
    #[arg(long, value_name = "PIXELS", default_value_t = TraceOptions::default().screen_px, allow_negative_numbers = true)]
    screen: f64,
    /// Smaller areas go to their neighbours: 20px, 5000000m2 or 5km2
    #[arg(long, value_name = "AREA", value_parser = least_area, default_value = "16px")]
    min_area: LeastArea,
    /// How round borders become: 0 gives the exact outlines of the pixels, 1 the smoothest
    #[arg(long, value_name = "0..1", default_value_t = TraceOptions::default().smooth, allow_negative_numbers = true)]
    smooth: f64,
    /// How far a border may be from the pixels' edges where it is simplified
    #[arg(long, value_name = "PIXELS", default_value_t = TraceOptions::default().simplify_px, allow_negative_numbers = true)]
    simplify: f64,
    /// Write the polities as claims of these years, for histmap build --borders
    #[arg(long, value_name = "FROM/TO", allow_hyphen_values = true)]
    era: Option<String>,
    /// Box to leave out, such as a printed legend; may be repeated
    #[arg(long, value_name = "COL,ROW,COL,ROW", value_parser = corners)]
    leave_out: Vec<[f64; 4]>,
    /// Vector file: trace only inside its areas
    #[arg(long, value_name = "FILE")]
    mask: Option<PathBuf>,
    /// Worker threads [default: one per core]
    #[arg(long, value_name = "N", value_parser = whole)]
    threads: Option<usize>,
}

fn least_area(text: &str) -> std::result::Result<LeastArea, String> {
    let text = text.trim();
    let fail =
        || format!("'{text}' is no area: give pixels, square metres or square kilometres: 20px, 5000000m2, 5km2");
    let (number, factor) = [("km2", 1e6), ("km²", 1e6), ("m2", 1.0), ("m²", 1.0), ("px", 0.0)]
        .into_iter()
        .find_map(|(unit, factor)| text.strip_suffix(unit).map(|n| (n.trim(), factor)))
        .unwrap_or((text, 0.0));
    if factor == 0.0 {
        return number.parse().map(LeastArea::Pixels).map_err(|_| fail());
    }
    let number = number.parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0).ok_or_else(fail)?;
    Ok(LeastArea::SquareMetres(number * factor))
}

fn corners(text: &str) -> std::result::Result<[f64; 4], String> {
    let numbers: Option<Vec<f64>> =
        text.split(',').map(|n| n.trim().parse::<f64>().ok().filter(|v| v.is_finite())).collect();
    numbers
        .and_then(|n| <[f64; 4]>::try_from(n).ok())
        .ok_or_else(|| format!("'{text}': give two opposite corners in pixels: column,row,column,row"))
}

pub(super) fn run(args: Args) -> Result<()> {
    if let Some(legend) = &args.propose {
        let propose = || trace_run::propose_file(&args.scan, legend, &args.leave_out);
        let (found, swatches) = with_threads(args.threads, propose)?;
        let colours = counted(found.len(), "colour", "colours");
        return terminal::print(&format!("{}: {colours} to be named\n{}\n", legend.display(), swatches.display()));
    }
    let (Some(legend), Some(out)) = (args.legend, args.out) else {
        return Err(Error::argument("--legend", "missing", "give --legend and --out, or --propose"));
    };
    if !out.extension().is_some_and(|e| e.eq_ignore_ascii_case("gpkg")) {
        return Err(Error::argument("--out", out.display(), "a GeoPackage is written: end the name in .gpkg"));
    }
    let request = TraceRequest {
        scan: args.scan,
        legend,
        out,
        options: TraceOptions {
            is_paper_uneven: args.uneven_paper,
            screen_px: args.screen,
            line_width_px: args.line_width,
            smooth: args.smooth,
            simplify_px: args.simplify,
            ..TraceOptions::default()
        },
        least_area: args.min_area,
        era: args.era.map(|e| e.parse::<Era>()).transpose()?,
        leave_out: args.leave_out,
        mask: args.mask,
    };
    let report = with_threads(args.threads, || trace_run::trace_file(&request))?;
    terminal::print(&told(&report, &request))
}

fn told(report: &TraceReport, request: &TraceRequest) -> String {
    let mut text = String::new();
    let widest = report.regions.iter().map(|r| r.name.chars().count()).max().unwrap_or(0).max(5);
    let _ = writeln!(text, "{:widest$}  {:9}  parts       km2  doubtful", "class", "kind");
    for r in &report.regions {
        let area = r.area_km2.map_or("-".to_string(), |a| format!("{a:.0}"));
        let left = if r.is_written { "" } else { "  (not written)" };
        let _ = writeln!(
            text,
            "{:widest$}  {:9}  {:5}  {area:>8}  {:6.1} %{left}",
            r.name,
            r.kind.as_str(),
            r.parts,
            100.0 * r.doubtful_share
        );
    }
    if report.contours > 0 {
        let _ = writeln!(text, "{}", counted(report.contours, "contour line", "contour lines"));
    }
    if report.unknown_share > 0.0 {
        let _ =
            writeln!(text, "note: {:.2} % of the map fits no class and is in no region", 100.0 * report.unknown_share);
    }
    if report.specks > 0 {
        let _ = writeln!(text, "note: {} went to the neighbours", counted(report.specks, "speck", "specks"));
    }
    for note in &report.notes {
        let _ = writeln!(text, "note: {note}");
    }
    let _ = writeln!(text, "{}", request.out.display());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_have_units() {
        assert_eq!(least_area("20px"), Ok(LeastArea::Pixels(20)));
        assert_eq!(least_area("20"), Ok(LeastArea::Pixels(20)));
        assert_eq!(least_area("5 km2"), Ok(LeastArea::SquareMetres(5e6)));
        assert_eq!(least_area("5000m2"), Ok(LeastArea::SquareMetres(5000.0)));
        for bad in ["", "px", "-1px", "5ha", "nan m2", "1.5px"] {
            assert!(least_area(bad).unwrap_err().contains("20px"), "{bad}");
        }
        assert_eq!(corners("0,1, 2.5,3"), Ok([0.0, 1.0, 2.5, 3.0]));
        assert!(corners("0,1,2").is_err() && corners("a,1,2,3").is_err());
    }
}
