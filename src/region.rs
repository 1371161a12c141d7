//! The ground of a region as its pack and the user give it: coarse elevation, sea floor, water and rivers, read and brought
//! to one form. Nothing here depends on the window that is built.

use crate::error::{Error, Result};
use crate::gdal_io::{self, RasterFile, RasterReadOptions, Source, Transformer, VectorReadOptions};
use crate::grid::{Crs, Grid, Xy};
use crate::pack::{self, BaseLayer, PackSource};
use crate::raster::Raster;
use crate::shipped::{self, ShippedFile};
use crate::terrain::Uv;
use crate::vector::Feature;
use crate::water::{River, WaterBody, WaterKind};
use geo::{Coord, LineString, MultiPolygon, Polygon};
use std::path::{Path, PathBuf};

/// An elevation model of the user's own.
#[derive(Debug, Clone)]
pub struct DemFile {
    /// The file.
    pub path: PathBuf,
    /// Its CRS where the file states none.
    pub crs: Option<String>,
}

/// A coarse raster with its frame.
#[derive(Debug, Clone)]
pub struct CoarseRaster {
    /// Frame.
    pub grid: Grid,
    /// Metres; NaN = void.
    pub values: Raster<f32>,
    /// Rounding step of the values, metres; 0 when none is apparent.
    pub quantum_m: f64,
}

impl CoarseRaster {
    /// Position of a point of its CRS in its cells.
    pub fn uv(&self, p: Xy) -> Uv {
        let t = &self.grid.transform;
        Uv { u: (p.x - t.origin_x) / t.cell_width, v: (t.origin_y - p.y) / t.cell_height }
    }

    /// The point of its CRS at a position in its cells.
    pub fn xy(&self, p: Uv) -> Xy {
        let t = &self.grid.transform;
        Xy { x: t.origin_x + p.u * t.cell_width, y: t.origin_y - p.v * t.cell_height }
    }

    /// The means of `n` x `n` cells, voids left out; a block without any value stays void. Cells beyond the last whole
    /// block are dropped.
    pub fn averaged(&self, n: usize) -> CoarseRaster {
        let (cols, rows) = ((self.values.cols / n).max(1), (self.values.rows / n).max(1));
        let mut values = Raster::filled(cols, rows, f32::NAN);
        for row in 0..rows {
            for col in 0..cols {
                let (mut sum, mut count) = (0f64, 0u32);
                for r in row * n..((row + 1) * n).min(self.values.rows) {
                    for v in &self.values.row(r)[col * n..((col + 1) * n).min(self.values.cols)] {
                        if v.is_finite() {
                            sum += f64::from(*v);
                            count += 1;
                        }
                    }
                }
                if count > 0 {
                    values.set(col, row, (sum / f64::from(count)) as f32);
                }
            }
        }
        let t = &self.grid.transform;
        let (cell_width, cell_height) = (t.cell_width * n as f64, t.cell_height * n as f64);
        let transform = crate::grid::GeoTransform { cell_width, cell_height, ..*t };
        CoarseRaster {
            grid: Grid { crs: self.grid.crs.clone(), transform, cols, rows },
            values,
            quantum_m: self.quantum_m / n as f64,
        }
    }
}

/// The ground of a region.
#[derive(Debug, Clone)]
pub struct Ground {
    /// Elevation of the land; NaN on the open sea.
    pub land: CoarseRaster,
    /// Elevation of the sea floor; `None` where nothing is shipped or given.
    pub sea_floor: Option<CoarseRaster>,
    /// Seas and lakes that exist in the era, longitude and latitude.
    pub bodies: Vec<WaterBody>,
    /// Rivers, longitude and latitude.
    pub rivers: Vec<River>,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// The files that a pack's ground comes from, for the manifest: shipped ones by name, others by path.
#[derive(Debug, Clone)]
pub enum GroundFile {
    /// Inside the binary.
    Shipped(ShippedFile),
    /// On disk.
    Path(PathBuf),
}

/// Reads the ground of the pack in `source` for a map of `year` (historian's numbering): lakes that did not exist then are
/// left out. The pack's own base layers replace the shipped ones; `dem` replaces either elevation.
///
/// # Errors
/// Those of reading; [`Error::Content`] when a water file lacks levels.
pub fn read_ground(source: &PackSource, dem: Option<&DemFile>, year: i32) -> Result<(Ground, Vec<GroundFile>)> {
    let mut notes = Vec::new();
    let mut files = Vec::new();
    let wgs84 = gdal_io::crs(gdal_io::WGS84, "--crs")?;
    let mut layer = |layer, shipped: ShippedFile| -> Result<BaseFile> {
        let file = BaseFile::of(source, layer, &shipped)?;
        // The manifest lists the pack's own files already.
        if !file.is_own {
            files.push(GroundFile::Shipped(shipped));
        }
        Ok(file)
    };
    let mut bodies = water_bodies(&layer(BaseLayer::Ocean, shipped::OCEAN)?, WaterKind::Sea, year)?;
    bodies.extend(water_bodies(&layer(BaseLayer::Lakes, shipped::LAKES)?, WaterKind::Lake, year)?);
    let rivers = rivers(&layer(BaseLayer::Rivers, shipped::RIVERS)?)?;
    let land = match dem {
        Some(dem) => {
            let stated = dem.crs.as_deref().map(|c| gdal_io::crs(c, "--dem-crs")).transpose()?;
            let label = dem.path.display().to_string();
            let land = read_dem(Source::Path(&dem.path), &label, stated.as_ref(), &bodies, &wgs84, &mut notes)?;
            files.push(GroundFile::Path(dem.path.clone()));
            land
        }
        None => {
            let file = layer(BaseLayer::Elevation, shipped::LAND)?;
            let source = Source::Bytes { name: &file.name, bytes: &file.bytes };
            if file.is_own {
                read_dem(source, &file.name, None, &bodies, &wgs84, &mut notes)?
            } else {
                let read = gdal_io::read_raster(source, &RasterReadOptions::default())?;
                CoarseRaster { grid: read.grid, values: read.raster, quantum_m: SHIPPED_QUANTUM_M }
            }
        }
    };
    files.push(GroundFile::Shipped(shipped::SEA_FLOOR));
    let floor = Source::Bytes { name: shipped::SEA_FLOOR.name, bytes: shipped::SEA_FLOOR.bytes };
    let read = gdal_io::read_raster(floor, &RasterReadOptions::default())?;
    let sea_floor = Some(CoarseRaster { grid: read.grid, values: read.raster, quantum_m: 0.0 });
    Ok((Ground { land, sea_floor, bodies, rivers, notes }, files))
}

/// The seas of the pack in `source`, its own or the shipped ones, longitude and latitude.
///
/// # Errors
/// Those of reading; [`Error::Content`] when they lack levels.
pub fn read_seas(source: &PackSource) -> Result<Vec<WaterBody>> {
    let file = BaseFile::of(source, BaseLayer::Ocean, &shipped::OCEAN)?;
    water_bodies(&file, WaterKind::Sea, i32::MAX)
}

/// The shipped elevation is rounded to 1 m in the mountains and to 0.25 m in the plains.
const SHIPPED_QUANTUM_M: f64 = 0.5;

/// A vector or raster file that the ground is read from.
struct BaseFile {
    name: String,
    bytes: std::borrow::Cow<'static, [u8]>,
    /// Whether it is the pack's own, in place of the shipped one.
    is_own: bool,
}

impl BaseFile {
    /// The file for `layer` of the pack in `source`: its own, else the shipped one.
    fn of(source: &PackSource, layer: BaseLayer, shipped: &ShippedFile) -> Result<BaseFile> {
        Ok(match pack::base_layer_file(source, layer) {
            Some(name) => BaseFile { bytes: source.read(&name)?.into(), name, is_own: true },
            None => BaseFile { name: shipped.name.to_string(), bytes: shipped.bytes.into(), is_own: false },
        })
    }
}

/// Reads the user's elevation model: voids stay void, cells whose centre lies in a sea become void unless they stand clearly
/// above it, so that sea and land are never averaged together.
fn read_dem(
    source: Source,
    label: &str,
    stated: Option<&Crs>,
    bodies: &[WaterBody],
    wgs84: &Crs,
    notes: &mut Vec<String>,
) -> Result<CoarseRaster> {
    let options = RasterReadOptions { crs: stated, ..RasterReadOptions::default() };
    let read = read_elevation(source, label, &options, 9_000)?;
    let (grid, mut values) = (read.grid, read.raster);
    let to_dem = Transformer::new(wgs84, &grid.crs)?;
    let seas: Vec<(MultiPolygon<f64>, u16)> = bodies
        .iter()
        .enumerate()
        .filter(|(_, b)| b.kind == WaterKind::Sea)
        .map(|(k, b)| (projected(&b.area, &to_dem), k as u16 + 1))
        .collect();
    let sea = gdal_io::rasterize(&seas, &grid)?;
    let mut drowned = 0u64;
    for (v, &b) in values.values.iter_mut().zip(&sea.values) {
        if b != 0 && f64::from(*v) <= bodies[b as usize - 1].level_m + 1.0 {
            *v = f32::NAN;
            drowned += 1;
        }
    }
    if drowned > 0 {
        notes.push(format!("{label}: {drowned} cells on the open sea are taken as water, not land"));
    }
    let quantum_m = apparent_quantum_m(&values);
    Ok(CoarseRaster { grid, values, quantum_m })
}

/// An elevation model, if it has values and they can be metres: between -12000 and `highest_m`.
///
/// # Errors
/// Those of [`gdal_io::read_raster`]; [`Error::Content`] for an empty one or other values.
pub fn read_elevation(source: Source, label: &str, options: &RasterReadOptions, highest_m: i32) -> Result<RasterFile> {
    let file = gdal_io::read_raster(source, options)?;
    let known = file.raster.values.iter().copied().filter(|v| v.is_finite());
    let Some((low, high)) =
        known.fold(None, |range, v| range.map_or(Some((v, v)), |(l, h)| Some((v.min(l), v.max(h)))))
    else {
        return Err(Error::content(label, "no cell has a value", "an elevation model in metres"));
    };
    if low < -12_000.0 || high > highest_m as f32 {
        return Err(Error::content(
            label,
            format!("values from {low} to {high}"),
            format!("elevations in metres between -12000 and {highest_m}; set the file's nodata value or its scale"),
        ));
    }
    Ok(file)
}

/// Rounding step of the values: 1 where all are whole, else 0.
pub fn apparent_quantum_m(values: &Raster<f32>) -> f64 {
    if values.values.iter().filter(|v| v.is_finite()).all(|v| v.fract() == 0.0) { 1.0 } else { 0.0 }
}

/// `area` through `transformer`, vertex by vertex; vertices without an image are dropped.
fn projected(area: &MultiPolygon<f64>, transformer: &Transformer) -> MultiPolygon<f64> {
    let ring = |ring: &LineString<f64>| {
        let (mut xs, mut ys): (Vec<f64>, Vec<f64>) = ring.0.iter().map(|c| (c.x, c.y)).unzip();
        transformer.forward(&mut xs, &mut ys);
        let images = xs.into_iter().zip(ys).map(|(x, y)| Coord { x, y });
        LineString::new(images.filter(|c| c.x.is_finite() && c.y.is_finite()).collect())
    };
    area.iter()
        .map(|p| Polygon::new(ring(p.exterior()), p.interiors().iter().map(ring).collect()))
        .filter(|p| p.exterior().0.len() > 3)
        .collect()
}

/// `bodies` (longitude and latitude) in `crs`.
///
/// # Errors
/// [`Error::Argument`] where PROJ cannot transform to it.
pub fn projected_bodies(bodies: &[WaterBody], crs: &Crs) -> Result<Vec<WaterBody>> {
    let to_crs = Transformer::new(&gdal_io::crs(gdal_io::WGS84, "--crs")?, crs)?;
    Ok(bodies.iter().map(|b| WaterBody { area: projected(&b.area, &to_crs), ..b.clone() }).collect())
}

fn features_of(file: &BaseFile) -> Result<Vec<Feature>> {
    let source = Source::Bytes { name: &file.name, bytes: &file.bytes };
    let layers = gdal_io::read_features_wgs84(source, &VectorReadOptions::default())?;
    Ok(layers.into_iter().flat_map(|l| l.features).collect())
}

fn water_bodies(file: &BaseFile, kind: WaterKind, year: i32) -> Result<Vec<WaterBody>> {
    let mut out = Vec::new();
    for (k, feature) in features_of(file)?.into_iter().enumerate() {
        let Some(area) = feature.area() else { continue };
        let level_m = feature.number("level_m").ok_or_else(|| {
            Error::content(
                format!("{} feature {}", file.name, k + 1),
                "no level_m",
                "the height of the water in metres",
            )
        })?;
        let since_year = feature.number("since_year").map(|y| y as i32);
        if since_year.is_some_and(|y| y > year) {
            continue;
        }
        out.push(WaterBody {
            name: feature.text("name").unwrap_or_default(),
            name_ru: feature.text("name_ru").unwrap_or_default(),
            kind,
            level_m,
            since_year,
            area,
        });
    }
    Ok(out)
}

fn rivers(file: &BaseFile) -> Result<Vec<River>> {
    let mut out = Vec::new();
    for feature in features_of(file)? {
        for line in feature.lines() {
            out.push(River {
                name: feature.text("name").unwrap_or_default(),
                name_ru: feature.text("name_ru").unwrap_or_default(),
                rank: feature.number("rank").map_or(5, |r| r.clamp(1.0, 5.0) as u8),
                mouth: feature.text("mouth").unwrap_or_default(),
                line,
            });
        }
    }
    Ok(out)
}

/// The name under which a file is listed in the manifest.
pub fn file_label(path: &Path) -> String {
    path.display().to_string()
}
