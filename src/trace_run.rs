//! Tracing of a scan's file: registered picture and legend in, GeoPackage out.

use crate::borders::area::area_km2;
use crate::borders::{Certainty, ClaimKind};
use crate::error::{Error, Result};
use crate::gdal_io::{self, GeometryKind, GpkgLayer, GpkgOptions, LayerStyle, PictureFile, Transformer, WGS84, styles};
use crate::grid::Grid;
use crate::render::figure::{Anchor, Figure, rectangle};
use crate::trace::{self, ClassKind, Coordinates, Legend, Picture, Proposed, TraceOptions, Traced, to_hex};
use crate::vector::Feature;
use crate::year::Era;
use geo::{Geometry, LineString, MapCoords, MultiPolygon, Polygon};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The least area that is kept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LeastArea {
    /// So many pixels.
    Pixels(u64),
    /// So many square metres at the middle of the map.
    SquareMetres(f64),
}

/// What to trace and how.
#[derive(Debug, Clone)]
pub struct TraceRequest {
    /// The registered scan.
    pub scan: PathBuf,
    /// The legend.
    pub legend: PathBuf,
    /// GeoPackage to write.
    pub out: PathBuf,
    /// How to trace; `least_area_px` follows from `least_area`.
    pub options: TraceOptions,
    /// The least area that is kept.
    pub least_area: LeastArea,
    /// The years in which the polities of the map are claims.
    pub era: Option<Era>,
    /// Boxes to leave out beside those of the legend: two opposite corners, column and line.
    pub leave_out: Vec<[f64; 4]>,
    /// Vector file whose areas alone are traced.
    pub mask: Option<PathBuf>,
}

/// One class of areas as it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct RegionReport {
    /// The class's name.
    pub name: String,
    /// What it is.
    pub kind: ClassKind,
    /// Its separate areas.
    pub parts: usize,
    /// On the ellipsoid; `None` where it reaches beyond what its CRS covers.
    pub area_km2: Option<f64>,
    /// Share of its pixels that might as well be another's, 0 to 1.
    pub doubtful_share: f64,
    /// Whether it was written.
    pub is_written: bool,
}

/// What became of a scan.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceReport {
    /// The regions, in the legend's order.
    pub regions: Vec<RegionReport>,
    /// Lines of classes with a height.
    pub contours: usize,
    /// Share of the map that fits no class, 0 to 1.
    pub unknown_share: f64,
    /// Specks that went to their neighbours.
    pub specks: usize,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// Traces a scan and writes the regions: layer `regions`, and layer `contours` where the legend has lines with a height. With an
/// era only polities are written, as claims.
///
/// # Errors
/// Unreadable or unregistered scan; every problem of the legend; no colour of the legend in the scan; an output that cannot
/// be written.
pub fn trace_file(request: &TraceRequest) -> Result<TraceReport> {
    let text = read_text(&request.legend)?;
    let mut legend = Legend::parse(&text, &request.legend.display().to_string())?;
    if request.era.is_some() && !legend.classes.iter().any(|c| c.kind == ClassKind::Polity) {
        let expected = "a class of kind polity, which --era makes claims of";
        return Err(Error::content(request.legend.display(), "it has no polities", expected));
    }
    let file = gdal_io::read_picture(&request.scan)?;
    let Some(grid) = file.grid.clone() else {
        return Err(Error::content(
            request.scan.display(),
            "the picture is not registered",
            "a GeoTIFF with its CRS: make one with histmap georef",
        ));
    };
    to_pixels(&mut legend, &grid);
    legend
        .leave_out
        .extend(request.leave_out.iter().map(|[x0, y0, x1, y1]| vec![[*x0, *y0], [*x1, *y0], [*x1, *y1], [*x0, *y1]]));
    let mut picture = picture(file);
    if let Some(path) = &request.mask {
        picture.leave_out_rings(&mask_rings(path, &grid)?, true)?;
    }
    trace::sample_colours(&picture, &mut legend, request.options.screen_px)?;
    let mut options = request.options.clone();
    options.least_area_px = least_pixels(request.least_area, &grid)?;
    let traced = trace::trace(picture, &legend, &options).map_err(|e| name_picture(e, &request.scan))?;
    write(request, &legend, &grid, traced)
}

/// Writes a legend of the colours found in `scan`, to be edited, and beside it, with `.png` for its ending, a picture of them.
/// Returns the colours and the picture's path.
///
/// # Errors
/// Unreadable scan, a legend that is there already, files that cannot be written.
pub fn propose_file(scan: &Path, legend: &Path, leave_out: &[[f64; 4]]) -> Result<(Vec<Proposed>, PathBuf)> {
    if legend.exists() {
        return Err(Error::content(
            legend.display(),
            "it is there already",
            "a name of a file to be made: it may have been edited",
        ));
    }
    let mut picture = picture(gdal_io::read_picture(scan)?);
    for [x0, y0, x1, y1] in leave_out {
        picture.leave_out_rings(&[vec![[*x0, *y0], [*x1, *y0], [*x1, *y1], [*x0, *y1]]], false)?;
    }
    let found = trace::propose(&picture);
    let swatches = legend.with_extension("png");
    gdal_io::write_beside(&swatches, &swatch_picture(&found).to_png(2.0)?)?;
    gdal_io::write_beside(legend, proposed_legend(&found, scan).as_bytes())?;
    Ok((found, swatches))
}

/// What an entry of a proposed legend is called.
fn proposed_name(k: usize, p: &Proposed) -> String {
    format!(
        "{} {}",
        if p.is_line() {
            "line"
        } else if p.is_blue() {
            "water"
        } else {
            "area"
        },
        k + 1
    )
}

/// A legend in TOML that may be traced with as it is.
fn proposed_legend(found: &[Proposed], scan: &Path) -> String {
    let name = scan.file_name().map_or_else(String::new, |n| n.to_string_lossy().replace(char::is_control, " "));
    let mut text = format!(
        "# Colours of {name}, the most frequent first. Name them, drop or join what is one, and set kind:\n# polity, water, land, line, elevation (with low_m and high_m) or ignore.\n"
    );
    for (k, p) in found.iter().enumerate() {
        let kind = if p.is_line() {
            "line"
        } else if p.is_blue() {
            "water"
        } else {
            "polity"
        };
        let _ = write!(
            text,
            "\n# {:.1} % of the picture, {:.0} % of it in areas\n[[class]]\nname = \"{}\"\nkind = \"{kind}\"\ncolour = \"{}\"\n",
            100.0 * p.share,
            100.0 * p.solid,
            proposed_name(k, p),
            to_hex(p.colour)
        );
    }
    text
}

/// The colours with their names and shares, in the legend's order.
fn swatch_picture(found: &[Proposed]) -> Figure {
    const ROW: f64 = 26.0;
    let mut figure = Figure::new(330.0, 14.0 + ROW * found.len().max(1) as f64, "Colours of the scan".into());
    figure.area(rectangle(0.0, 0.0, figure.width, figure.height), [255; 3], 1.0);
    for (k, p) in found.iter().enumerate() {
        let y = 10.0 + ROW * k as f64;
        figure.area(rectangle(10.0, y, 70.0, y + 20.0), [120; 3], 1.0);
        figure.area(rectangle(11.0, y + 1.0, 69.0, y + 19.0), p.colour, 1.0);
        let text = format!("{}   {}   {:.1} %", proposed_name(k, p), to_hex(p.colour), 100.0 * p.share);
        figure.text(&text, [82.0, y + 14.5], 13.0, Anchor::Start, [30; 3]);
    }
    figure
}

/// The file's text.
fn read_text(path: &Path) -> Result<String> {
    let bytes = std::fs::read(path).map_err(|e| Error::read(path, e))?;
    String::from_utf8(bytes).map_err(|_| Error::content(path.display(), "it is not UTF-8 text", "a legend in TOML"))
}

/// The picture of a file: what is blank there is no part of the map.
pub fn picture(file: PictureFile) -> Picture {
    let mut picture = Picture::new(file.cols, file.rows, file.rgb);
    picture.leave_out_marked(file.blank);
    picture
}

/// The engine knows no files: its messages get the scan's name.
fn name_picture(error: Error, scan: &Path) -> Error {
    match error {
        Error::Content { path, found, expected } if path == "picture" => {
            Error::content(scan.display(), found, expected)
        }
        other => other,
    }
}

/// Coordinates of the legend as columns and lines.
fn to_pixels(legend: &mut Legend, grid: &Grid) {
    if legend.coordinates == Coordinates::Pixel {
        return;
    }
    let t = &grid.transform;
    let of = |[x, y]: &mut [f64; 2]| {
        (*x, *y) = ((*x - t.origin_x) / t.cell_width, (t.origin_y - *y) / t.cell_height);
    };
    for class in &mut legend.classes {
        class.points.iter_mut().for_each(of);
        class.within.iter_mut().flatten().for_each(of);
    }
    legend.leave_out.iter_mut().flatten().for_each(of);
    legend.coordinates = Coordinates::Pixel;
}

/// The areas of a vector file as rings of columns and lines.
fn mask_rings(path: &Path, grid: &Grid) -> Result<Vec<Vec<[f64; 2]>>> {
    let t = &grid.transform;
    let mut rings = Vec::new();
    for layer in gdal_io::read_layers(path, None)? {
        let crs = layer.crs.ok_or(Error::MissingCrs { path: path.display().to_string(), flag: "--mask" })?;
        let there = Transformer::new(&crs, &grid.crs)?;
        for area in layer.features.iter().filter_map(Feature::area) {
            let Some(Geometry::MultiPolygon(area)) = there.geometry(&area.into()) else {
                return Err(Error::content(
                    path.display(),
                    "an area that is not in the scan's CRS",
                    grid.crs.name.clone(),
                ));
            };
            rings.extend(area.iter().map(|p| {
                p.exterior()
                    .coords()
                    .map(|c| [(c.x - t.origin_x) / t.cell_width, (t.origin_y - c.y) / t.cell_height])
                    .collect()
            }));
        }
    }
    match rings.is_empty() {
        true => Err(Error::content(path.display(), "no area in it", "polygons of what is to be traced")),
        false => Ok(rings),
    }
}

fn least_pixels(least: LeastArea, grid: &Grid) -> Result<u64> {
    let m2 = match least {
        LeastArea::Pixels(n) => return Ok(n),
        LeastArea::SquareMetres(m2) => m2,
    };
    let (c, r) = ((grid.cols / 2) as f64, (grid.rows / 2) as f64);
    let cell: LineString<f64> = vec![(c, r), (c + 1.0, r), (c + 1.0, r + 1.0), (c, r + 1.0)].into();
    let to_wgs84 = Transformer::new(&grid.crs, &gdal_io::crs(WGS84, "")?)?;
    match area_on_ellipsoid(&Polygon::new(cell, vec![]).into(), grid, &to_wgs84) {
        Some(km2) if km2 > 0.0 => Ok((m2 / (km2 * 1e6)).ceil() as u64),
        _ => Err(Error::argument(
            "--min-area",
            format!("{m2} m²"),
            "the map's middle has no place on the ellipsoid: give pixels, 16px",
        )),
    }
}

/// The map's coordinates of an area in columns and lines.
fn to_map(area: &MultiPolygon<f64>, grid: &Grid) -> MultiPolygon<f64> {
    let t = &grid.transform;
    area.map_coords(|c| geo::Coord { x: t.origin_x + c.x * t.cell_width, y: t.origin_y - c.y * t.cell_height })
}

fn area_on_ellipsoid(area_px: &MultiPolygon<f64>, grid: &Grid, to_wgs84: &Transformer) -> Option<f64> {
    match to_wgs84.geometry(&to_map(area_px, grid).into())? {
        Geometry::MultiPolygon(area) => Some(area_km2(&area)),
        _ => None,
    }
}

fn write(request: &TraceRequest, legend: &Legend, grid: &Grid, traced: Traced) -> Result<TraceReport> {
    let to_wgs84 = Transformer::new(&grid.crs, &gdal_io::crs(WGS84, "")?)?;
    let mut features = Vec::new();
    let mut report = TraceReport {
        regions: Vec::new(),
        contours: 0,
        unknown_share: 0.0,
        specks: traced.specks,
        notes: traced.notes,
    };
    let inside = (grid.cols as u64 * grid.rows as u64).saturating_sub(traced.outside_pixels);
    report.unknown_share = traced.unknown_pixels as f64 / (inside.max(1)) as f64;
    let mut style: Vec<(u16, String, [u8; 3])> = Vec::new();
    let has_heights = legend.classes.iter().any(|c| c.low_m.is_some() || c.high_m.is_some());
    for region in &traced.regions {
        let class = &legend.classes[region.class];
        let parent = class.part_of.map_or(class, |p| &legend.classes[p]);
        let area_km2 = area_on_ellipsoid(&region.area, grid, &to_wgs84);
        let doubtful_share = region.doubtful_pixels as f64 / region.pixels.max(1) as f64;
        let is_written = request.era.is_none() || class.kind == ClassKind::Polity;
        report.regions.push(RegionReport {
            name: class.name.clone(),
            kind: class.kind,
            parts: region.area.0.len(),
            area_km2,
            doubtful_share,
            is_written,
        });
        if !is_written {
            continue;
        }
        let colour = parent.colours.first().copied().unwrap_or([128; 3]);
        style.push((region.class as u16 + 1, class.name.clone(), colour));
        let mut properties = Map::new();
        let mut put = |key: &str, value: Value| properties.insert(key.to_string(), value);
        put("id", json!(class.id));
        put("name", json!(class.name));
        match request.era {
            Some(era) => {
                put("from_year", json!(era.first().to_historian()));
                put("to_year", json!(era.last().to_historian()));
                put("kind", json!(ClaimKind::Polity.as_str()));
                put("certainty", json!(Certainty::Approximate.as_str()));
            }
            None => {
                put("kind", json!(class.kind.as_str()));
                if has_heights {
                    put("low_m", class.low_m.map_or(Value::Null, Value::from));
                    put("high_m", class.high_m.map_or(Value::Null, Value::from));
                }
            }
        }
        put("colour", json!(to_hex(colour)));
        put("area_km2", area_km2.map_or(Value::Null, |a| json!((a * 1000.0).round() / 1000.0)));
        put("doubtful_share", json!((doubtful_share * 1e4).round() / 1e4));
        put("class", json!(region.class + 1));
        put("note", json!(class.note));
        features.push(Feature { geometry: Some(to_map(&region.area, grid).into()), properties });
    }
    let style = styles::polygons(&style);
    let layers = [GpkgLayer {
        name: "regions",
        identifier: "Regions",
        description: "Areas of the map by colour, with shared borders",
        crs: &grid.crs,
        geometry: GeometryKind::MultiPolygon,
        fields: &["id", "name"],
        features: &features,
    }];
    let qml = LayerStyle { layer: "regions", name: "by class", qml: style.qml(), sld: String::new() };
    gdal_io::write_gpkg(&request.out, &layers, &GpkgOptions { styles: &[qml], ..Default::default() })?;
    Ok(report)
}
