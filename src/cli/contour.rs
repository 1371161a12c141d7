//! `histmap contour`.

use super::{heightmap, terminal};
use crate::contour::{ContourOptions, contours, sensible_interval};
use crate::error::{Error, Result};
use crate::gdal_io::{self, GeometryKind, GpkgLayer, GpkgOptions};
use crate::heightmap::filter;
use crate::vector::Feature;
use crate::words::counted;
use serde_json::{Map, json};
use std::path::PathBuf;

/// Arguments of `histmap contour`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  histmap contour elevation.tif contours.gpkg --interval 100")]
pub(super) struct Args {
    /// Raster of heights with a place on the ground
    input: PathBuf,
    /// GeoPackage to write
    out: PathBuf,
    /// Height between two lines [default: one of 1, 2, 5, 10, ... that gives about 20]
    #[arg(long, value_name = "METRES", allow_negative_numbers = true)]
    interval: Option<f64>,
    /// Farthest that simplification may move a line, in cells; 0 keeps every vertex
    #[arg(long, value_name = "CELLS", default_value_t = 0.2, allow_negative_numbers = true)]
    simplify: f64,
    /// Closed lines shorter than this are left out, in cells
    #[arg(long, value_name = "CELLS", default_value_t = 8.0, allow_negative_numbers = true)]
    shortest: f64,
    /// CRS of the raster where it has none
    #[arg(long, value_name = "CRS")]
    crs: Option<String>,
}

pub(super) fn run(args: &Args) -> Result<()> {
    let ending = args.out.extension().map(|e| e.to_string_lossy().to_ascii_lowercase());
    if ending.as_deref() != Some("gpkg") {
        return Err(Error::content(args.out.display().to_string(), "another ending", ".gpkg"));
    }
    for (flag, v) in [("--simplify", args.simplify), ("--shortest", args.shortest)] {
        if !(v >= 0.0 && v.is_finite()) {
            return Err(Error::argument(flag, v, "give 0 or more cells"));
        }
    }
    if let Some(v) = args.interval.filter(|v| !(*v > 0.0 && v.is_finite())) {
        return Err(Error::argument("--interval", v, "give metres above 0"));
    }
    let crs = args.crs.as_deref().map(|c| gdal_io::crs(c, "--crs")).transpose()?;
    let name = args.input.display().to_string();
    let (z, grid) = heightmap::read_any(&args.input, crs.as_ref())?;
    let Some(grid) = grid else {
        return Err(Error::content(name, "a heightmap without a place", "a raster with a CRS and a geotransform"));
    };
    let Some((low, high)) = filter::range(&z) else {
        return Err(Error::content(name, "no cell with a height", "some heights"));
    };
    let (low, high) = (f64::from(low), f64::from(high));
    let interval = args.interval.unwrap_or_else(|| sensible_interval(low, high));
    if (high - low) / interval > 20_000.0 {
        let found = format!("{interval} for heights from {low} to {high}");
        return Err(Error::argument("--interval", found, "give one for at most 20000 levels"));
    }
    let options = ContourOptions { simplify_cells: args.simplify, shortest_cells: args.shortest };
    let lines = contours(&z, &grid, interval, &options);
    let features: Vec<Feature> = lines
        .into_iter()
        .map(|c| {
            let index = (c.level_m / interval).round().rem_euclid(5.0) == 0.0;
            let mut properties = Map::new();
            properties.insert("level_m".into(), json!(c.level_m));
            properties.insert("is_index".into(), json!(index));
            Feature { geometry: Some(c.line.into()), properties }
        })
        .collect();
    let layer = GpkgLayer {
        name: "contours",
        identifier: "Contours",
        description: "Contour lines, higher ground on the left",
        crs: &grid.crs,
        geometry: GeometryKind::LineString,
        fields: &["level_m", "is_index"],
        features: &features,
    };
    gdal_io::write_gpkg(&args.out, &[layer], &GpkgOptions::default())?;
    terminal::print(&format!(
        "{}: {} every {interval} m from {low:.1} to {high:.1} m\n",
        args.out.display(),
        counted(features.len(), "line", "lines")
    ))
}
