//! Registration of a scan: control points and a picture in, a georeferenced raster and a report of its accuracy out.

use crate::error::{Error, Result};
use crate::gdal_io::{self, Transformer};
use crate::gdal_io::{Source, VectorReadOptions};
use crate::georef::fit::{self, Fit, Model, Shape};
use crate::georef::{ControlPoint, Pixel, diagnosis, points};
use crate::grid::{Crs, GeoTransform, Grid, Xy};
use crate::raster::Raster;
use crate::render::overview::{Overview, OverviewPoint};
use crate::shipped;
use geo::{BoundingRect, ConvexHull, Distance, Geodesic};
use image::ImageDecoder;
use rayon::prelude::*;
use std::path::{Path, PathBuf};

/// Which model takes the scan to the ground.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Choice {
    /// The one that predicts left-out points best; among near equals the simplest.
    #[default]
    Auto,
    /// This one, in the plane of the output.
    Fixed(Shape),
    /// An affine model in the projection that the map was drawn in.
    Projection,
}

/// How colours between the scan's pixels are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Resampling {
    /// The pixel at the place: flat colours stay what they are.
    #[default]
    Nearest,
    /// Weighted mean of four pixels.
    Bilinear,
}

/// What to register and how.
#[derive(Debug, Clone)]
pub struct Request {
    /// The picture.
    pub scan: PathBuf,
    /// Control points; `None` takes those inside the picture's file.
    pub points: Option<PathBuf>,
    /// CRS of the points where the file does not say; WGS 84 otherwise.
    pub points_crs: Option<String>,
    /// Degrees east of Greenwich of the meridian that the points' longitudes count from.
    pub meridian_deg: f64,
    /// CRS of the output; that of the points by default.
    pub crs: Option<String>,
    /// The projection that the map was drawn in; searched where absent.
    pub source_crs: Option<String>,
    /// The model.
    pub choice: Choice,
    /// Refuse a fit worse than this, pixels.
    pub max_rmse_px: Option<f64>,
    /// Cell size of the output, units of its CRS; that of the scan by default.
    pub resolution: Option<f64>,
    /// How colours are found.
    pub resampling: Resampling,
    /// How far beyond the hull of its points a thin-plate spline is drawn, as a share of the hull's longest extent.
    pub hull_margin: f64,
    /// GeoTIFF to write; `None` only judges the fit.
    pub out: Option<PathBuf>,
    /// PNG to write, with the points, their residuals and the coast on the scan.
    pub overview: Option<PathBuf>,
    /// Lines or areas that the overview shows as the coast; the shipped seas and lakes otherwise.
    pub coast: Option<PathBuf>,
    /// Whether files that are there already may be replaced.
    pub overwrite: bool,
}

/// A model that was tried.
#[derive(Debug, Clone, PartialEq)]
pub struct Tried {
    /// In words: "affine", "affine in Robinson, central meridian 11.2".
    pub name: String,
    /// Root mean square of the residuals, pixels.
    pub rmse_px: f64,
    /// The same with each point left out, pixels.
    pub left_out_rmse_px: f64,
}

/// One control point in the fit.
#[derive(Debug, Clone, PartialEq)]
pub struct PointReport {
    /// The point.
    pub point: ControlPoint,
    /// Distance from its pixel to the model's, pixels.
    pub residual_px: f64,
    /// The same on the ground, metres.
    pub residual_m: f64,
    /// What the model of the other points misses it by, pixels.
    pub left_out_px: f64,
}

/// A registration.
#[derive(Debug, Clone)]
pub struct Registered {
    /// The form of the point file.
    pub form: &'static str,
    /// The enabled points.
    pub points: Vec<PointReport>,
    /// Points that were disabled in the file.
    pub disabled: usize,
    /// The model used, first, then the others that were tried.
    pub tried: Vec<Tried>,
    /// Likely slips, in words.
    pub suspects: Vec<String>,
    /// Other things worth telling.
    pub notes: Vec<String>,
    /// Frame of the output, where one was written.
    pub grid: Option<Grid>,
}

/// A model in its plane.
struct Registration {
    name: String,
    plane: Crs,
    fit: Fit,
    /// Parameters beyond those of an affine model.
    freedom: usize,
}

/// Registers a scan.
///
/// # Errors
/// Unreadable picture or points; too few, collinear or off-picture points; a fit worse than asked for; an output that cannot be
/// written.
pub fn register(request: &Request) -> Result<Registered> {
    for (path, flag) in [(&request.out, "--out"), (&request.overview, "--overview")] {
        if let Some(path) = path.as_ref().filter(|p| p.exists() && !request.overwrite) {
            let found = format!("{} is there already", path.display());
            return Err(Error::argument(flag, found, "choose another name, or replace it with --overwrite"));
        }
    }
    if !(request.hull_margin >= 0.0 && request.hull_margin.is_finite()) {
        return Err(Error::argument(
            "--hull-margin",
            request.hull_margin,
            "give a share of the hull's extent, 0 or more",
        ));
    }
    let image = read_image(&request.scan)?;
    let (file, name) = match &request.points {
        Some(path) => {
            let bytes = std::fs::read(path).map_err(|e| Error::read(path, e))?;
            let text = String::from_utf8_lossy(&bytes);
            let size = (f64::from(image.width()), f64::from(image.height()));
            match points::world_file(&text, size.0, size.1) {
                Some(file) => (file, path.clone()),
                None => (points::parse(&text, &path.display().to_string())?, path.clone()),
            }
        }
        None => (gdal_io::gcps(&request.scan)?, request.scan.clone()),
    };
    let definition = request.points_crs.clone().or(file.crs.clone()).unwrap_or(gdal_io::WGS84.into());
    let points_crs = gdal_io::crs(&definition, "--points-crs")?;
    let out_crs = request.crs.as_deref().map_or(Ok(points_crs.clone()), |c| gdal_io::crs(c, "--crs"))?;
    let mut used: Vec<ControlPoint> = file.points.iter().filter(|p| p.is_enabled).cloned().collect();
    if request.meridian_deg != 0.0 {
        if !points_crs.is_geographic {
            let found = format!("the points are in {}", points_crs.name);
            return Err(Error::argument("--prime-meridian", found, "it applies to longitudes only"));
        }
        used.iter_mut().for_each(|p| p.ground.x += request.meridian_deg);
    }
    let (width, height) = (image.width() as f64, image.height() as f64);
    let off = |p: &ControlPoint| {
        let (c, l) = (p.pixel.column, p.pixel.line);
        !(-0.5 * width..=1.5 * width).contains(&c) || !(-0.5 * height..=1.5 * height).contains(&l)
    };
    let mut notes = Vec::new();
    if let Some(k) = used.iter().position(off) {
        let p = &used[k].pixel;
        notes.push(format!(
            "point {} lies at column {:.1}, line {:.1}, far off the picture of {width} x {height}",
            k + 1,
            p.column,
            p.line
        ));
    }

    let mut all = candidates(request, &used, &points_crs, &out_crs)?;
    let best = all.iter().map(|r| r.fit.left_out_rmse_px()).fold(f64::INFINITY, f64::min);
    // The simplest of those that predict about as well as the best.
    all.sort_by_key(|r| r.freedom);
    let chosen = all.iter().position(|r| r.fit.left_out_rmse_px() <= 1.05 * best + 1e-9).unwrap_or(0);
    let registration = all.remove(chosen);
    let mut tried: Vec<Tried> = std::iter::once(&registration).chain(&all).map(Tried::of).collect();
    tried[1..].sort_by(|a, b| a.left_out_rmse_px.total_cmp(&b.left_out_rmse_px));

    if registration.fit.model.is_mirrored() {
        notes.push(
            "the scan comes out mirrored: x and y, or the sign of the lines, are likely mixed up in all points".into(),
        );
    }
    let to_plane = Transformer::new(&points_crs, &registration.plane)?;
    let suspects = diagnosis::suspects(&used, registration.fit.model.shape, &|p| to_plane.point(p))
        .into_iter()
        .map(|s| {
            let cause = s.cause.unwrap_or("no simple slip explains it".into());
            let off =
                format!("point {} lies {:.1} pixels from where the others put it: {cause}", s.index + 1, s.off_px);
            (s.index, off)
        })
        .collect::<Vec<(usize, String)>>();
    let (suspect_points, suspects): (Vec<usize>, Vec<String>) = suspects.into_iter().unzip();
    if let Some(limit) = request.max_rmse_px
        && registration.fit.rmse_px() > limit
    {
        let why = if suspects.is_empty() { String::new() } else { format!(" ({})", suspects.join("; ")) };
        return Err(Error::content(
            name.display().to_string(),
            format!("the {} leaves {:.2} pixels RMSE{why}", registration.name, registration.fit.rmse_px()),
            format!("{limit} or less (--max-rmse): mend the points or choose another --transform"),
        ));
    }
    let points = reports(&used, &registration, &points_crs)?;
    if let Some(path) = &request.overview {
        let coast = coast_on_scan(request, &registration, &image)?;
        if coast.is_empty() && request.coast.is_none() {
            notes.push("the overview shows no coast: none is known here; give one with --coast".into());
        }
        let overview = Overview {
            cols: image.width() as usize,
            rgb: image.pixels().map(|p| [p.0[0], p.0[1], p.0[2]]).collect(),
            coast,
            points: (0..used.len())
                .map(|k| OverviewPoint {
                    number: k + 1,
                    picked: used[k].pixel,
                    modelled: to_plane.point(used[k].ground).map_or(used[k].pixel, |p| registration.fit.model.pixel(p)),
                    is_suspect: suspect_points.contains(&k),
                })
                .collect(),
            rmse_px: registration.fit.rmse_px(),
            title: format!(
                "{}: {}, RMSE {:.2} px",
                file_name(&request.scan),
                registration.name,
                registration.fit.rmse_px()
            ),
        };
        let png = overview.to_png()?;
        gdal_io::write_beside(path, &png)?;
    }
    let grid = match &request.out {
        Some(out) => Some(warp(request, image, &registration, &used, &out_crs, out)?),
        None => None,
    };
    let disabled = file.points.len() - used.len();
    Ok(Registered { form: file.form, points, disabled, tried, suspects, notes, grid })
}

impl Tried {
    fn of(r: &Registration) -> Tried {
        let (rmse_px, left_out_rmse_px) = (r.fit.rmse_px(), r.fit.left_out_rmse_px());
        Tried { name: r.name.clone(), rmse_px, left_out_rmse_px }
    }
}

/// The name of a file without its folder.
fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into_owned())
}

/// The known coast in the pixels of the scan, as far as it lies near it: lines are broken where they leave it.
fn coast_on_scan(request: &Request, registration: &Registration, image: &image::RgbaImage) -> Result<Vec<Vec<Pixel>>> {
    let wgs84 = gdal_io::crs(gdal_io::WGS84, "--coast")?;
    let options = VectorReadOptions { crs: Some(&wgs84), crs_flag: "--coast", encoding: None };
    let layers = match &request.coast {
        Some(path) => gdal_io::read_features_wgs84(path, &options)?,
        None => {
            let mut layers = Vec::new();
            for file in [&shipped::OCEAN, &shipped::LAKES] {
                layers.extend(gdal_io::read_features_wgs84(
                    Source::Bytes { name: file.name, bytes: file.bytes },
                    &options,
                )?);
            }
            layers
        }
    };
    let to_plane = Transformer::new(&wgs84, &registration.plane)?;
    let (width, height) = (f64::from(image.width()), f64::from(image.height()));
    let on_scan = |c: &geo::Coord<f64>| {
        let pixel = registration.fit.model.pixel(to_plane.point(Xy { x: c.x, y: c.y })?);
        let is_near = pixel.column.abs() < 2.0 * width && pixel.line.abs() < 2.0 * height;
        is_near.then_some(pixel)
    };
    let mut lines = Vec::new();
    // Reservoirs are younger than most maps.
    let is_old = |f: &&crate::vector::Feature| request.coast.is_some() || f.number("since_year").is_none();
    for feature in layers.iter().flat_map(|l| &l.features).filter(is_old) {
        let rings: Vec<geo::LineString<f64>> = match feature.area() {
            Some(area) => area
                .into_iter()
                .flat_map(|p| {
                    let (e, i) = p.into_inner();
                    std::iter::once(e).chain(i)
                })
                .collect(),
            None => feature.lines(),
        };
        for ring in rings {
            let mut part: Vec<Pixel> = Vec::new();
            let mut before = None;
            for c in ring.coords() {
                // Where the shipped seas are cut off there is no coast.
                if request.coast.is_none() && before.is_some_and(|b| is_cut(b, *c)) {
                    lines.push(std::mem::take(&mut part));
                }
                before = Some(*c);
                match on_scan(c) {
                    Some(pixel) => part.push(pixel),
                    None => lines.push(std::mem::take(&mut part)),
                }
            }
            lines.push(part);
        }
    }
    let is_inside = |p: &Pixel| p.column >= 0.0 && p.line >= 0.0 && p.column <= width && p.line <= height;
    lines.retain(|l| l.len() > 1 && l.iter().any(is_inside));
    Ok(lines)
}

/// Whether a line from `a` to `b` lies along the frame of the shipped data: 35-53 E, 36-49 N.
fn is_cut(a: geo::Coord<f64>, b: geo::Coord<f64>) -> bool {
    let along = |u: f64, v: f64, edges: [f64; 2]| edges.iter().any(|e| (u - e).abs() < 1e-3 && (v - e).abs() < 1e-3);
    along(a.x, b.x, [35.0, 53.0]) || along(a.y, b.y, [36.0, 49.0])
}

/// The hull of the points, beyond which a thin-plate spline says nothing.
struct Hull {
    ring: geo::Polygon<f64>,
    margin_px: f64,
}

impl Hull {
    fn of(used: &[ControlPoint], margin: f64) -> Hull {
        let points: geo::MultiPoint<f64> = used.iter().map(|p| geo::Point::new(p.pixel.column, p.pixel.line)).collect();
        let ring = points.convex_hull();
        let extent = ring.bounding_rect().map_or(0.0, |r| r.width().max(r.height()));
        Hull { ring, margin_px: margin * extent }
    }

    fn contains(&self, column: f64, line: f64) -> bool {
        geo::Euclidean.distance(&geo::Point::new(column, line), &self.ring) <= self.margin_px
    }
}

/// The picture as 8-bit RGBA, turned as its EXIF tag says; TIFFs that the decoder of pictures does not know, by GDAL.
fn read_image(path: &Path) -> Result<image::RgbaImage> {
    let fail = |e: image::ImageError| Error::read(path, e);
    let reader = image::ImageReader::open(path)
        .and_then(image::ImageReader::with_guessed_format)
        .map_err(|e| Error::read(path, e))?;
    let is_tiff = reader.format() == Some(image::ImageFormat::Tiff);
    let decoded = reader.into_decoder().and_then(|mut decoder| {
        let orientation = decoder.orientation()?;
        Ok((orientation, image::DynamicImage::from_decoder(decoder)?))
    });
    let (orientation, mut picture) = match decoded {
        Err(image::ImageError::Unsupported(_)) if is_tiff => return by_gdal(path),
        decoded => decoded.map_err(fail)?,
    };
    picture.apply_orientation(orientation);
    Ok(picture.into_rgba8())
}

/// The picture as GDAL reads it: palettes of few bits, say.
fn by_gdal(path: &Path) -> Result<image::RgbaImage> {
    let read = gdal_io::read_picture(path)?;
    Ok(image::RgbaImage::from_fn(read.cols as u32, read.rows as u32, |c, r| {
        let k = r as usize * read.cols + c as usize;
        let [red, green, blue] = read.rgb[k];
        image::Rgba([red, green, blue, if read.blank.get(k).is_some_and(|b| *b != 0) { 0 } else { 255 }])
    }))
}

/// Every model that the request and the number of points allow.
fn candidates(request: &Request, used: &[ControlPoint], points_crs: &Crs, out: &Crs) -> Result<Vec<Registration>> {
    let pixels: Vec<Pixel> = used.iter().map(|p| p.pixel).collect();
    let in_plane = |plane: &Crs| -> Result<Vec<Xy>> {
        let t = Transformer::new(points_crs, plane)?;
        (1..)
            .zip(used)
            .map(|(k, p)| {
                t.point(p.ground).ok_or_else(|| {
                    Error::argument(
                        "control points",
                        format!("point {k} at {}, {} is not in {}", p.ground.x, p.ground.y, plane.name),
                        "mend it, or say which CRS the points are in with --points-crs",
                    )
                })
            })
            .collect()
    };
    let of = |shape: Shape, plane: &Crs, name: String, freedom: usize| -> Result<Registration> {
        Ok(Registration { name, plane: plane.clone(), fit: fit::fit(shape, &in_plane(plane)?, &pixels)?, freedom })
    };
    let drawn_in = || -> Result<Vec<Registration>> {
        match &request.source_crs {
            Some(definition) => {
                let plane = gdal_io::crs(definition, "--source-crs")?;
                let name = format!("affine in {}", plane.name);
                Ok(vec![of(Shape::Affine, &plane, name, 1)?])
            }
            None => Ok(search_projection(used, points_crs, &pixels)?.into_iter().collect()),
        }
    };
    match request.choice {
        Choice::Fixed(shape) => Ok(vec![of(shape, out, shape.name().into(), 0)?]),
        Choice::Projection => {
            let found = drawn_in()?;
            if found.is_empty() {
                let found = format!("{} enabled control points fit no projection", used.len());
                return Err(Error::argument("--transform", found, "give 6 or more points spread over the map"));
            }
            Ok(found)
        }
        Choice::Auto => {
            let mut all = vec![of(Shape::Similarity, out, Shape::Similarity.name().into(), 0)?];
            for (shape, freedom) in
                [(Shape::Affine, 1), (Shape::Polynomial2, 6), (Shape::Polynomial3, 14), (Shape::ThinPlate, used.len())]
            {
                if used.len() >= shape.least_points() {
                    all.push(of(shape, out, shape.name().into(), freedom)?);
                }
            }
            all.extend(drawn_in()?);
            Ok(all)
        }
    }
}

/// Projections of old atlases and of web maps: name, PROJ string with {lon}, {south} and {north} to be found.
const PROJECTIONS: [(&str, &str); 11] = [
    ("equirectangular", "+proj=eqc +lat_ts={south} +lon_0={lon}"),
    ("Mercator", "+proj=merc +lon_0={lon}"),
    ("Robinson", "+proj=robin +lon_0={lon}"),
    ("Winkel tripel", "+proj=wintri +lon_0={lon}"),
    ("Mollweide", "+proj=moll +lon_0={lon}"),
    ("sinusoidal", "+proj=sinu +lon_0={lon}"),
    ("Bonne", "+proj=bonne +lat_1={south} +lon_0={lon}"),
    ("simple conic", "+proj=eqdc +lat_1={south} +lat_2={north} +lat_0={south} +lon_0={lon}"),
    ("Lambert conformal conic", "+proj=lcc +lat_1={south} +lat_2={north} +lat_0={south} +lon_0={lon}"),
    ("Albers equal-area", "+proj=aea +lat_1={south} +lat_2={north} +lat_0={south} +lon_0={lon}"),
    ("stereographic", "+proj=stere +lat_0={south} +lon_0={lon}"),
];

/// The projection in which an affine model fits the points best; central meridian and parallels are found by a pattern search.
fn search_projection(used: &[ControlPoint], points_crs: &Crs, pixels: &[Pixel]) -> Result<Option<Registration>> {
    const LEAST: usize = 6;
    if used.len() < LEAST {
        return Ok(None);
    }
    let to_wgs84 = Transformer::new(points_crs, &gdal_io::crs(gdal_io::WGS84, "--points-crs")?)?;
    let Some(lonlat) = used.iter().map(|p| to_wgs84.point(p.ground)).collect::<Option<Vec<Xy>>>() else {
        return Ok(None);
    };
    let range = |of: &dyn Fn(&Xy) -> f64| {
        lonlat.iter().map(of).fold((f64::INFINITY, f64::NEG_INFINITY), |r, v| (r.0.min(v), r.1.max(v)))
    };
    let ((west, east), (south, north)) = (range(&|p| p.x), range(&|p| p.y));
    let mut best: Option<(f64, Registration)> = None;
    for (name, template) in PROJECTIONS {
        let definition = |v: [f64; 3]| {
            let body = template
                .replace("{lon}", &format!("{:.4}", v[0]))
                .replace("{south}", &format!("{:.4}", v[1]))
                .replace("{north}", &format!("{:.4}", v[2]));
            format!("{body} +datum=WGS84 +units=m +no_defs")
        };
        let judge = |v: [f64; 3]| -> Option<(f64, Crs, Vec<Xy>)> {
            if !(-85.0..=85.0).contains(&v[1]) || !(-85.0..=85.0).contains(&v[2]) || v[0].abs() > 180.0 {
                return None;
            }
            let plane = gdal_io::crs(&definition(v), "--source-crs").ok()?;
            let t = Transformer::new(points_crs, &plane).ok()?;
            let places = used.iter().map(|p| t.point(p.ground)).collect::<Option<Vec<Xy>>>()?;
            let model = Model::of(Shape::Affine, &places, pixels)?;
            let squares: f64 = places.iter().zip(pixels).map(|(p, q)| fit::distance(model.pixel(*p), *q).powi(2)).sum();
            Some(((squares / pixels.len() as f64).sqrt(), plane, places))
        };
        let third = (north - south) / 6.0;
        let mut at = [0.5 * (west + east), south + third, north - third];
        let free: Vec<usize> = (0..3).filter(|k| template.contains(["{lon}", "{south}", "{north}"][*k])).collect();
        // A world map's meridian may be anywhere: a coarse look first.
        let mut here = judge(at).map_or(f64::INFINITY, |j| j.0);
        for lon in [0.0, 10.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0, -90.0] {
            let there = [lon, at[1], at[2]];
            if let Some(found) = judge(there).filter(|j| j.0 < here) {
                (here, at) = (found.0, there);
            }
        }
        let mut step = [8.0, 2.0 * third.max(0.5), 2.0 * third.max(0.5)];
        while step[0] > 0.05 {
            let mut moved = false;
            for &k in &free {
                for sign in [1.0, -1.0] {
                    let mut there = at;
                    there[k] += sign * step[k];
                    if let Some(found) = judge(there).filter(|j| j.0 < here) {
                        (here, at, moved) = (found.0, there, true);
                    }
                }
            }
            if !moved {
                step.iter_mut().for_each(|s| *s *= 0.5);
            }
        }
        let Some((_, plane, places)) = judge(at) else { continue };
        let Ok(fit) = fit::fit(Shape::Affine, &places, pixels) else { continue };
        let parameters = [("central meridian", 0), ("parallels", 1), ("and", 2)]
            .iter()
            .filter(|(_, k)| free.contains(k))
            .map(|(word, k)| format!("{word} {:.1}", at[*k]))
            .collect::<Vec<_>>()
            .join(" ");
        let left_out = fit.left_out_rmse_px();
        if best.as_ref().is_none_or(|b| left_out < b.0) {
            let name = format!("affine in {name} ({parameters})");
            best = Some((left_out, Registration { name, plane, fit, freedom: 1 + free.len() }));
        }
    }
    Ok(best.map(|b| b.1))
}

fn reports(used: &[ControlPoint], registration: &Registration, points_crs: &Crs) -> Result<Vec<PointReport>> {
    let wgs84 = gdal_io::crs(gdal_io::WGS84, "--points-crs")?;
    let to_lonlat = Transformer::new(&registration.plane, &wgs84)?;
    let ground = Transformer::new(points_crs, &wgs84)?;
    Ok(used
        .iter()
        .enumerate()
        .map(|(k, point)| {
            let found = registration.fit.model.place(point.pixel).and_then(|p| to_lonlat.point(p));
            let residual_m = match (found, ground.point(point.ground)) {
                (Some(a), Some(b)) => Geodesic.distance(geo::Point::new(a.x, a.y), geo::Point::new(b.x, b.y)),
                _ => f64::NAN,
            };
            PointReport {
                point: point.clone(),
                residual_px: registration.fit.residual_px[k],
                residual_m,
                left_out_px: registration.fit.left_out_px[k],
            }
        })
        .collect())
}

/// How a scan is laid out on the output's grid: node spacing of the grid on which places are computed exactly, output cells.
const NODE: usize = 16;

/// Draws the scan on a north-up grid of the output's CRS and writes it as red, green, blue and opacity.
fn warp(
    request: &Request,
    image: image::RgbaImage,
    registration: &Registration,
    used: &[ControlPoint],
    out_crs: &Crs,
    out: &Path,
) -> Result<Grid> {
    let (width, height) = (f64::from(image.width()), f64::from(image.height()));
    let model = &registration.fit.model;
    // The outline of what is drawn, on the output's plane.
    let to_out = Transformer::new(&registration.plane, out_crs)?;
    let on_ground = |(column, line): (f64, f64)| model.place(Pixel { column, line }).and_then(|p| to_out.point(p));
    let edge = (0..=64)
        .map(|k| f64::from(k) / 64.0)
        .flat_map(|t| [(t * width, 0.0), (t * width, height), (0.0, t * height), (width, t * height)]);
    let found: Vec<Option<Xy>> = edge.map(on_ground).collect();
    let is_whole = found.iter().all(Option::is_some);
    let mut rim: Vec<Xy> = found.into_iter().flatten().collect();
    if !is_whole {
        // Corners of a map of the world lie off the globe: what is drawn is found by looking everywhere.
        const LOOKS: u32 = 384;
        let middle = |k: u32, size: f64| (f64::from(k) + 0.5) / f64::from(LOOKS) * size;
        let all = (0..LOOKS * LOOKS).map(|k| (middle(k % LOOKS, width), middle(k / LOOKS, height)));
        rim.extend(all.filter_map(on_ground));
    }
    let middle = model.place(Pixel { column: 0.5 * width, line: 0.5 * height }).and_then(|p| to_out.point(p));
    let beside =
        model.place(Pixel { column: 0.5 * width + 1.0, line: 0.5 * height + 1.0 }).and_then(|p| to_out.point(p));
    let (Some(m), Some(b), false) = (middle, beside, rim.is_empty()) else {
        return Err(Error::argument("--transform", "the model cannot be turned back into the map", "choose another"));
    };
    let natural = (b.x - m.x).hypot(b.y - m.y) / std::f64::consts::SQRT_2;
    let cell = request.resolution.unwrap_or(natural);
    if !(cell > 0.0 && cell.is_finite()) {
        return Err(Error::argument("--resolution", cell, "give a cell size above 0"));
    }
    let range = |of: &dyn Fn(&Xy) -> f64| {
        rim.iter().map(of).fold((f64::INFINITY, f64::NEG_INFINITY), |r, v| (r.0.min(v), r.1.max(v)))
    };
    let ((min_x, max_x), (min_y, max_y)) = (range(&|p| p.x), range(&|p| p.y));
    // A whole number of cells stays one in spite of rounding.
    let cells = |extent: f64| (extent / cell - 1e-6).ceil().max(1.0);
    let (cols, rows) = (cells(max_x - min_x), cells(max_y - min_y));
    if cols * rows > 4e9 || cols < 1.0 || rows < 1.0 {
        return Err(Error::argument("--resolution", cell, format!("the picture would be {cols} x {rows} cells")));
    }
    let transform = GeoTransform { origin_x: min_x, origin_y: max_y, cell_width: cell, cell_height: cell };
    let grid = Grid { crs: out_crs.clone(), transform, cols: cols as usize, rows: rows as usize };
    let need = grid.cols as u64 * grid.rows as u64 * 12;
    crate::resources::require(
        grid.cols as u64,
        grid.rows as u64,
        need,
        "memory",
        crate::resources::memory_available(),
    )?;

    let hull = (model.shape == Shape::ThinPlate).then(|| Hull::of(used, request.hull_margin));

    // Pixels at nodes, exactly; between them by bilinear interpolation.
    let to_plane = Transformer::new(out_crs, &registration.plane)?;
    let (nodes_x, nodes_y) = (grid.cols.div_ceil(NODE) + 1, grid.rows.div_ceil(NODE) + 1);
    let mut xs: Vec<f64> = (0..nodes_x * nodes_y).map(|k| min_x + (k % nodes_x * NODE) as f64 * cell).collect();
    let mut ys: Vec<f64> = (0..nodes_x * nodes_y).map(|k| max_y - (k / nodes_x * NODE) as f64 * cell).collect();
    to_plane.forward(&mut xs, &mut ys);
    let nodes: Vec<Pixel> = xs.par_iter().zip(&ys).map(|(&x, &y)| model.pixel(Xy { x, y })).collect();
    // Between nodes that all lie in the hull, which is convex, everything does.
    let in_hull: Vec<bool> = match &hull {
        Some(h) => nodes.par_iter().map(|p| h.contains(p.column, p.line)).collect(),
        None => Vec::new(),
    };
    let mut bands: Vec<Raster<u8>> = (0..4).map(|_| Raster::filled(grid.cols, grid.rows, 0u8)).collect();
    let [red, green, blue, opacity] = &mut bands[..] else { unreachable!("four bands") };
    red.values
        .par_chunks_mut(grid.cols)
        .zip(green.values.par_chunks_mut(grid.cols))
        .zip(blue.values.par_chunks_mut(grid.cols))
        .zip(opacity.values.par_chunks_mut(grid.cols))
        .enumerate()
        .for_each(|(r, (((red, green), blue), opacity))| {
            let fy = (r % NODE) as f64 + 0.5;
            for c in 0..grid.cols {
                let at = r / NODE * nodes_x + c / NODE;
                let (fx, fy) = (((c % NODE) as f64 + 0.5) / NODE as f64, fy / NODE as f64);
                let mix = |of: &dyn Fn(&Pixel) -> f64| {
                    let top = of(&nodes[at]) * (1.0 - fx) + of(&nodes[at + 1]) * fx;
                    let bottom = of(&nodes[at + nodes_x]) * (1.0 - fx) + of(&nodes[at + nodes_x + 1]) * fx;
                    top * (1.0 - fy) + bottom * fy
                };
                let (column, line) = (mix(&|p| p.column), mix(&|p| p.line));
                if let Some(hull) = &hull
                    && !(in_hull[at] && in_hull[at + 1] && in_hull[at + nodes_x] && in_hull[at + nodes_x + 1])
                    && !hull.contains(column, line)
                {
                    continue;
                }
                let Some(colour) = colour_at(&image, column, line, request.resampling) else { continue };
                (red[c], green[c], blue[c], opacity[c]) = (colour[0], colour[1], colour[2], colour[3]);
            }
        });
    // The file is made in memory: the scan is not needed any more.
    drop(image);
    let options = gdal_io::CogOptions {
        is_picture: true,
        metadata: vec![("HISTMAP_REGISTRATION".into(), registration.name.clone())],
        ..Default::default()
    };
    gdal_io::write_cog(out, &grid, &bands.iter().collect::<Vec<_>>(), &options)?;
    Ok(grid)
}

/// The colour of the scan at a position; `None` outside it.
fn colour_at(image: &image::RgbaImage, column: f64, line: f64, resampling: Resampling) -> Option<[u8; 4]> {
    let (width, height) = (image.width(), image.height());
    if !(column >= 0.0 && line >= 0.0 && column < f64::from(width) && line < f64::from(height)) {
        return None;
    }
    match resampling {
        Resampling::Nearest => Some(image.get_pixel(column as u32, line as u32).0),
        Resampling::Bilinear => {
            let (x, y) = ((column - 0.5).max(0.0), (line - 0.5).max(0.0));
            let (c, r) = (x as u32, y as u32);
            let (fx, fy) = (x - f64::from(c), y - f64::from(r));
            let (c1, r1) = ((c + 1).min(width - 1), (r + 1).min(height - 1));
            let corner = |c, r| image.get_pixel(c, r).0.map(f64::from);
            let (a, b, d, e) = (corner(c, r), corner(c1, r), corner(c, r1), corner(c1, r1));
            Some(std::array::from_fn(|k| {
                let top = a[k] + (b[k] - a[k]) * fx;
                let bottom = d[k] + (e[k] - d[k]) * fx;
                (top + (bottom - top) * fy).round() as u8
            }))
        }
    }
}
