//! `histmap curve`.

use super::terminal;
use crate::error::{Error, Result};
use crate::gdal_io::{self, GeometryKind, GpkgLayer, GpkgOptions, VectorLayer};
use crate::spline::{CurveOptions, Ends, Fineness, Knots, through};
use crate::vector::Feature;
use crate::words::counted;
use clap::ValueEnum;
use geo::{Coord, Geometry, LineString};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Arguments of `histmap curve`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  histmap curve key-points.geojson smooth.gpkg --tolerance 50")]
pub(super) struct Args {
    /// Layer of lines, whose vertices are the key points
    input: PathBuf,
    /// GeoPackage to write
    out: PathBuf,
    /// The layer, where the file has several
    #[arg(long, value_name = "NAME")]
    layer: Option<String>,
    /// How tangents are estimated
    #[arg(long, value_enum, default_value_t = KnotsArg::Centripetal)]
    knots: KnotsArg,
    /// Tangents at the ends of a line
    #[arg(long, value_enum, default_value_t = EndsArg::Natural)]
    ends: EndsArg,
    /// Layer of points with tangent_x and tangent_y, given for the key points at the same place
    #[arg(long, value_name = "FILE")]
    tangents: Option<PathBuf>,
    /// Factor on the tangents: 0 straight lines, 1 the full curve
    #[arg(long, value_name = "F", default_value_t = 1.0, allow_negative_numbers = true)]
    strength: f64,
    /// Distance between points, in units of the layer's CRS
    #[arg(
        long,
        value_name = "UNITS",
        required_unless_present = "tolerance",
        conflicts_with = "tolerance",
        allow_negative_numbers = true
    )]
    spacing: Option<f64>,
    /// Farthest that the line may lie from the curve, in units of the layer's CRS
    #[arg(long, value_name = "UNITS", allow_negative_numbers = true)]
    tolerance: Option<f64>,
    /// CRS of the layer where it has none
    #[arg(long, value_name = "CRS")]
    crs: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum KnotsArg {
    Centripetal,
    Uniform,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum EndsArg {
    Natural,
    Chord,
}

pub(super) fn run(args: &Args) -> Result<()> {
    let ending = args.out.extension().map(|e| e.to_string_lossy().to_ascii_lowercase());
    if ending.as_deref() != Some("gpkg") {
        return Err(Error::content(args.out.display().to_string(), "another ending", ".gpkg"));
    }
    let (flag, size) = args.spacing.map_or(("--tolerance", args.tolerance), |s| ("--spacing", Some(s)));
    let size = size.unwrap_or_default();
    if !(size > 0.0 && size.is_finite()) {
        return Err(Error::argument(flag, size, "give a distance above 0"));
    }
    if !(0.0..=1.0).contains(&args.strength) {
        return Err(Error::argument("--strength", args.strength, "give 0 to 1"));
    }
    let options = CurveOptions {
        knots: if args.knots == KnotsArg::Uniform { Knots::Uniform } else { Knots::Centripetal },
        ends: if args.ends == EndsArg::Chord { Ends::Chord } else { Ends::Natural },
        strength: args.strength,
        fineness: if args.spacing.is_some() { Fineness::Spacing(size) } else { Fineness::Tolerance(size) },
    };
    let crs = args.crs.as_deref().map(|c| gdal_io::crs(c, "--crs")).transpose()?;
    let mut layer = one_layer(&args.input, args.layer.as_deref(), crs.as_ref())?;
    let Some(crs) = layer.crs.take() else {
        return Err(Error::MissingCrs { path: args.input.display().to_string(), flag: "--crs" });
    };
    let given = match &args.tangents {
        Some(path) => tangents(path, &crs)?,
        None => HashMap::new(),
    };
    let mut used = 0;
    let mut curve = |line: &LineString<f64>| {
        let own: Vec<Option<Coord<f64>>> = line.0.iter().map(|c| given.get(&key(*c)).copied()).collect();
        used += own.iter().flatten().count();
        LineString(through(&line.0, &own, &options))
    };
    let (mut points, mut drawn) = (0, 0);
    for (n, f) in layer.features.iter_mut().enumerate() {
        match &mut f.geometry {
            Some(Geometry::LineString(l)) => *l = curve(l),
            Some(Geometry::MultiLineString(m)) => m.0.iter_mut().for_each(|l| *l = curve(l)),
            None => continue,
            Some(_) => {
                return Err(Error::content(
                    format!("{}, feature {}", args.input.display(), n + 1),
                    "a geometry that is no line",
                    "lines; take the borders of areas first, for example with ogr2ogr -nlt LINESTRING",
                ));
            }
        }
        drawn += 1;
        points += f.lines().iter().map(|l| l.0.len()).sum::<usize>();
    }
    if !given.is_empty() && used == 0 {
        return Err(Error::argument(
            "--tangents",
            "no point lies on a key point",
            "give points with the coordinates of vertices",
        ));
    }
    let table = GpkgLayer {
        name: "curves",
        identifier: "Curves",
        description: "Smooth curves through key points",
        crs: &crs,
        geometry: GeometryKind::MultiLineString,
        fields: &[],
        features: &layer.features,
    };
    gdal_io::write_gpkg(&args.out, &[table], &GpkgOptions::default())?;
    terminal::print(&format!(
        "{}: {}, {}\n",
        args.out.display(),
        counted(drawn, "curve", "curves"),
        counted(points, "point", "points")
    ))
}

fn one_layer(path: &Path, name: Option<&str>, crs: Option<&crate::grid::Crs>) -> Result<VectorLayer> {
    let layers = gdal_io::read_layers(path, crs)?;
    let names: Vec<String> = layers.iter().map(|l| l.name.clone()).collect();
    let has_lines = |l: &VectorLayer| l.features.iter().any(|f: &Feature| f.geometry.is_some());
    let mut found: Vec<VectorLayer> = match name {
        Some(name) => layers.into_iter().filter(|l| l.name == name).collect(),
        None => layers.into_iter().filter(has_lines).collect(),
    };
    match (found.len(), name) {
        (1, _) => Ok(found.remove(0)),
        (0, Some(name)) => {
            Err(Error::argument("--layer", format!("'{name}'"), format!("the file has {}", names.join(", "))))
        }
        (0, None) => Err(Error::content(path.display().to_string(), "no geometry", "a layer of lines")),
        _ => Err(Error::argument(
            "--layer",
            format!("{} layers", found.len()),
            format!("name one of {}", names.join(", ")),
        )),
    }
}

fn key(c: Coord<f64>) -> (u64, u64) {
    // Zero has two signs.
    ((c.x + 0.0).to_bits(), (c.y + 0.0).to_bits())
}

/// Tangents by the place of their key point.
fn tangents(path: &Path, crs: &crate::grid::Crs) -> Result<HashMap<(u64, u64), Coord<f64>>> {
    let mut found = HashMap::new();
    for layer in gdal_io::read_layers(path, None)? {
        if layer.crs.as_ref().is_some_and(|c| c.wkt != crs.wkt) {
            return Err(Error::argument("--tangents", "another CRS than the lines have", "give both in one"));
        }
        for f in &layer.features {
            if let (Some(Geometry::Point(p)), Some(x), Some(y)) =
                (&f.geometry, f.number("tangent_x"), f.number("tangent_y"))
            {
                found.insert(key(p.0), Coord { x, y });
            }
        }
    }
    if found.is_empty() {
        return Err(Error::content(path.display().to_string(), "no point with tangent_x and tangent_y", "such points"));
    }
    Ok(found)
}
