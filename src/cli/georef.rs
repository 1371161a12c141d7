//! `histmap georef`.

use super::terminal;
use crate::error::{Error, Result};
use crate::georef::Shape;
use crate::register::{self, Choice, Registered, Request, Resampling};
use clap::ValueEnum;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Arguments of `histmap georef`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  histmap georef atlas-page.jpg --gcps atlas-page.points --crs EPSG:32638 -o page.tif")]
pub(super) struct Args {
    /// Scan or photograph: PNG, JPEG, TIFF, WebP
    scan: PathBuf,
    /// Control points: QGIS, GDAL, ArcGIS, GeoJSON, an IIIF annotation or a world file; without it those inside the scan
    #[arg(long, value_name = "FILE")]
    gcps: Option<PathBuf>,
    /// GeoTIFF to write; without it the fit is only judged
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// CRS of the points where their file does not say [default: EPSG:4326]
    #[arg(long, value_name = "CRS")]
    points_crs: Option<String>,
    /// CRS of the output [default: that of the points]
    #[arg(long, value_name = "CRS")]
    crs: Option<String>,
    /// The projection that the map was drawn in [default: searched]
    #[arg(long, value_name = "CRS")]
    source_crs: Option<String>,
    /// What takes the scan to the ground
    #[arg(long, value_enum, default_value_t = Transform::Auto)]
    transform: Transform,
    /// Meridian that the points' longitudes count from: a name, or degrees east of Greenwich
    #[arg(long, value_name = "NAME", value_parser = meridian, default_value = "greenwich", allow_negative_numbers = true)]
    prime_meridian: f64,
    /// Fail where the fit is worse than this
    #[arg(long, value_name = "PIXELS")]
    max_rmse: Option<f64>,
    /// Cell size of the output, units of its CRS [default: that of the scan]
    #[arg(long, value_name = "UNITS", allow_negative_numbers = true)]
    resolution: Option<f64>,
    /// Nearest keeps flat colours as they are; bilinear suits photographs
    #[arg(long, value_enum, default_value_t = ResamplingArg::Nearest)]
    resampling: ResamplingArg,
    /// How far beyond the hull of its points a thin-plate spline is drawn, as a share of the hull's extent
    #[arg(long, value_name = "SHARE", default_value_t = 0.1, allow_negative_numbers = true)]
    hull_margin: f64,
    /// Picture to write: the scan with its points, their residuals as arrows and the known coast
    #[arg(long, value_name = "PNG")]
    overview: Option<PathBuf>,
    /// Coast for the overview: a vector file of lines or areas [default: the shipped seas and lakes]
    #[arg(long, value_name = "FILE", requires = "overview")]
    coast: Option<PathBuf>,
    /// Replace files that are there already
    #[arg(long)]
    overwrite: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Transform {
    /// Whatever predicts left-out points best
    Auto,
    Similarity,
    Affine,
    Poly2,
    Poly3,
    /// Thin-plate spline: passes through every point
    Tps,
    /// Affine in the map's own projection
    Projection,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ResamplingArg {
    Nearest,
    Bilinear,
}

/// Prime meridians of old maps, degrees east of Greenwich (PROJ's list).
const MERIDIANS: [(&str, f64); 13] = [
    ("greenwich", 0.0),
    ("ferro", -(17.0 + 40.0 / 60.0)),
    ("paris", 2.337_229_166_666_667),
    ("pulkovo", 30.327_5),
    ("rome", 12.452_333_333_333_333),
    ("madrid", -3.687_938_888_888_889),
    ("lisbon", -9.131_906_111),
    ("bern", 7.439_583_333_333_333),
    ("brussels", 4.367_975),
    ("stockholm", 18.058_277_777_777_78),
    ("athens", 23.716_337_5),
    ("oslo", 10.722_916_666_666_667),
    ("jakarta", 106.807_719_444_444_45),
];

fn meridian(text: &str) -> std::result::Result<f64, String> {
    let known = || MERIDIANS.map(|m| m.0).join(", ");
    MERIDIANS
        .iter()
        .find(|m| m.0 == text.to_lowercase())
        .map(|m| m.1)
        .or_else(|| text.parse().ok().filter(|d: &f64| d.abs() <= 180.0))
        .ok_or_else(|| format!("'{text}' is no known meridian: give degrees east of Greenwich, or {}", known()))
}

pub(super) fn run(args: Args) -> Result<()> {
    if let Some(out) = &args.out {
        let ending = out.extension().map(|e| e.to_string_lossy().to_ascii_lowercase());
        if !matches!(ending.as_deref(), Some("tif" | "tiff")) {
            return Err(Error::argument("--out", out.display(), "a GeoTIFF is written: end the name in .tif"));
        }
    }
    let request = Request {
        scan: args.scan,
        points: args.gcps,
        points_crs: args.points_crs,
        meridian_deg: args.prime_meridian,
        crs: args.crs,
        source_crs: args.source_crs,
        choice: match args.transform {
            Transform::Auto => Choice::Auto,
            Transform::Similarity => Choice::Fixed(Shape::Similarity),
            Transform::Affine => Choice::Fixed(Shape::Affine),
            Transform::Poly2 => Choice::Fixed(Shape::Polynomial2),
            Transform::Poly3 => Choice::Fixed(Shape::Polynomial3),
            Transform::Tps => Choice::Fixed(Shape::ThinPlate),
            Transform::Projection => Choice::Projection,
        },
        max_rmse_px: args.max_rmse,
        resolution: args.resolution,
        resampling: match args.resampling {
            ResamplingArg::Nearest => Resampling::Nearest,
            ResamplingArg::Bilinear => Resampling::Bilinear,
        },
        hull_margin: args.hull_margin,
        out: args.out,
        overview: args.overview,
        coast: args.coast,
        overwrite: args.overwrite,
    };
    let registered = register::register(&request)?;
    terminal::print(&told(&registered, &request))
}

fn told(r: &Registered, request: &Request) -> String {
    let mut text = String::new();
    let disabled = if r.disabled > 0 { format!(", {} disabled", r.disabled) } else { String::new() };
    let _ = writeln!(text, "{} control points ({}{disabled})", r.points.len(), r.form);
    let _ =
        writeln!(text, "\npoint     column       line            x            y  residual px   metres  left out px");
    for (k, p) in (1..).zip(&r.points) {
        let (pixel, ground) = (p.point.pixel, p.point.ground);
        let _ = writeln!(
            text,
            "{k:5} {:10.2} {:10.2} {:12.4} {:12.4} {:12.2} {:8.0} {:12.2}",
            pixel.column, pixel.line, ground.x, ground.y, p.residual_px, p.residual_m, p.left_out_px
        );
    }
    for (k, t) in r.tried.iter().enumerate() {
        let how = if k == 0 { "\nused: " } else { "tried: " };
        let _ = writeln!(text, "{how}{}: RMSE {:.2} px, leave-one-out {:.2} px", t.name, t.rmse_px, t.left_out_rmse_px);
    }
    if r.tried.len() > 1 {
        text.push_str("the simplest of those within 5 % of the least leave-one-out error is used\n");
    }
    r.suspects.iter().for_each(|s| {
        let _ = writeln!(text, "check: {s}");
    });
    r.notes.iter().for_each(|s| {
        let _ = writeln!(text, "note: {s}");
    });
    if let Some(overview) = &request.overview {
        let _ = writeln!(text, "{}", overview.display());
    }
    if let (Some(grid), Some(out)) = (&r.grid, &request.out) {
        let _ = writeln!(
            text,
            "{}: {} x {} cells of {:.6} in {}",
            out.display(),
            grid.cols,
            grid.rows,
            grid.transform.cell_width,
            grid.crs.name
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meridians_by_name_and_by_degrees() {
        assert!((meridian("Ferro").unwrap() + 17.666_667).abs() < 1e-5);
        assert_eq!(meridian("-3.5").unwrap(), -3.5);
        assert!(meridian("atlantis").unwrap_err().contains("pulkovo"));
    }
}
