//! `histmap refine`: any elevation model to fine relief, with whatever constraints are at hand. The same engine as a build,
//! without a region pack.

use crate::constraint::{self, RiverOnCoarse, RiverOptions};
use crate::error::{Error, Result};
use crate::gdal_io::{self, CogOptions, RasterFile, RasterReadOptions, Transformer, VectorReadOptions};
use crate::grid::{Cell, Crs, GeoTransform, Grid, Window, Xy};
use crate::raster::Raster;
use crate::region::{self, CoarseRaster};
use crate::resources;
use crate::terrain::{
    self, BodyLevel, CoarseMode, CoarseSurface, CoursePoint, Detail, HurstCurve, Interval, Intervals, Pin,
    PlacedSurface, Placement, RefineOptions, RiverCourse, RoughnessModel, Stencil, Terrain, Uv,
};
use crate::vector::Feature;
use crate::water::WaterKind;
use geo::{Geometry, MultiPolygon};
use std::path::{Path, PathBuf};

/// How fine the result is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fineness {
    /// So many fine cells along each edge of a coarse one.
    Factor(usize),
    /// Fine cells of this size, metres.
    Resolution(f64),
}

/// What to refine, and with what.
#[derive(Debug, Clone)]
pub struct RefineRequest {
    /// The elevation model.
    pub coarse: PathBuf,
    /// Its CRS where it has none.
    pub coarse_crs: Option<String>,
    /// The GeoTIFF to write.
    pub out: PathBuf,
    /// Whether an existing file may be replaced.
    pub overwrite: bool,
    /// How fine.
    pub fineness: Fineness,
    /// What a coarse value binds.
    pub mode: CoarseMode,
    /// Whether voids stay void.
    pub keep_voids: bool,
    /// Points with a height.
    pub peaks: Option<PathBuf>,
    /// Lines from source to mouth, or the other way: the lower end is the mouth.
    pub rivers: Option<PathBuf>,
    /// Polygons of water, with `level_m` where known.
    pub water: Option<PathBuf>,
    /// Polygons with `low_m` and `high_m`.
    pub intervals: Option<PathBuf>,
    /// CRS of those files where they have none.
    pub vector_crs: Option<String>,
    /// A finer model of like country whose amplitude by scale is taken.
    pub roughness_from: Option<PathBuf>,
    /// Factor on the detail.
    pub roughness: f64,
    /// Hurst exponent; `None` follows the measured curve.
    pub hurst: Option<f64>,
    /// Seed.
    pub seed: u64,
    /// Whether the detail drains.
    pub detail: Detail,
    /// Interpolation of midpoints.
    pub stencil: Stencil,
    /// Worker threads; `None` is one per core.
    pub threads: Option<usize>,
}

/// What was written, and how well it keeps what it was given.
#[derive(Debug, Clone, serde::Serialize)]
pub struct RefineSummary {
    /// The file.
    pub out: String,
    /// Columns.
    pub cols: usize,
    /// Rows.
    pub rows: usize,
    /// Cell size in metres, as reckoned in the middle of the model.
    pub cell_m: f64,
    /// Block means against the coarse values where nothing else binds: root mean square, metres.
    pub block_mean_rms_m: f64,
    /// The worst of them, metres.
    pub block_mean_worst_m: f64,
    /// Constraints that contradict each other or the model, with place and size.
    pub contradictions: Vec<String>,
    /// Constraints that lie outside the model and bind nothing.
    pub outside: Vec<String>,
    /// What else was done with features that could not be taken as they are.
    pub notes: Vec<String>,
    /// Seconds of refinement alone.
    pub refine_seconds: f64,
    /// Seconds in all.
    pub total_seconds: f64,
}

/// Refines as asked and writes a Cloud Optimized GeoTIFF, Float32.
///
/// # Errors
/// Those of reading and writing; [`Error::Argument`] for impossible options; [`Error::TooLarge`].
pub fn refine(request: &RefineRequest) -> Result<RefineSummary> {
    resources::with_threads(request.threads, || refine_in_pool(request))
}

/// The fine frame over the coarse one.
struct Frame {
    grid: Grid,
    /// Coarse cells (or their parts) per fine cell, along columns and rows.
    step: (f64, f64),
    /// Position of the fine grid's upper-left corner in the coarse raster.
    start: Uv,
    /// Ground size of a fine cell, metres.
    cell_m: f64,
    /// Ground size of a coarse cell, metres.
    coarse_m: f64,
    span_cells: usize,
    /// Parts of a fine cell where means are taken: 1 for whole factors.
    straddle: terrain::Straddle,
}

fn refine_in_pool(request: &RefineRequest) -> Result<RefineSummary> {
    let started = std::time::Instant::now();
    let extension = request.out.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
    if extension != "tif" && extension != "tiff" {
        return Err(Error::argument(
            "OUT",
            request.out.display(),
            "the result is a GeoTIFF: give a name that ends in .tif or .tiff",
        ));
    }
    if request.out.exists() && !request.overwrite {
        return Err(Error::OutputExists { path: request.out.clone() });
    }
    if !(request.roughness.is_finite() && (0.0..=100.0).contains(&request.roughness)) {
        return Err(Error::argument(
            "--roughness",
            request.roughness,
            "give a factor from 0 (bare surface) to 100; 1 is neutral",
        ));
    }
    if let Some(h) = request.hurst.filter(|h| !(h.is_finite() && (0.0..=2.0).contains(h))) {
        return Err(Error::argument("--hurst", h, "give an exponent from 0 (rough) to 2 (smooth)"));
    }
    let coarse = read_coarse(&request.coarse, request.coarse_crs.as_deref())?;
    let frame = frame_of(&coarse, request)?;
    check_memory(&frame, request)?;

    let mut report = Report::default();
    let quantum_m = region::apparent_quantum_m(&coarse.raster);
    let mut roughness = RoughnessModel { gain: request.roughness, quantum_m };
    let mut hurst = request.hurst.map_or(HurstCurve::Measured, HurstCurve::Constant);
    if let Some(path) = &request.roughness_from {
        let learnt = learn_roughness(path, &frame, &roughness)?;
        roughness.gain *= learnt.gain;
        if request.hurst.is_none() {
            hurst = HurstCurve::Constant(learnt.hurst);
        }
    }
    let surface = CoarseSurface::new(coarse.raster.clone(), frame.coarse_m, request.mode, &roughness);
    let origin = frame.grid.lattice_origin();
    let window = Window { col: origin.col, row: origin.row, cols: frame.grid.cols, rows: frame.grid.rows };
    let halo = terrain::halo_cells(frame.cell_m, frame.span_cells);
    let uv = |col: f64, row: f64| Uv {
        u: frame.start.u + (col - origin.col as f64) * frame.step.0,
        v: frame.start.v + (row - origin.row as f64) * frame.step.1,
    };
    let placement = Placement::new(window.grown(halo), |nodes| {
        Ok::<_, Error>(nodes.iter().map(|&(c, r)| uv(c as f64, r as f64)).collect())
    })?;

    let land = PlacedSurface { surface, placement };
    let body_window = terrain::working_window(&land, frame.cell_m, frame.span_cells, window);
    let local = Window { col: body_window.col - origin.col, row: body_window.row - origin.row, ..body_window };
    let region_grid = frame.grid.crop(local);
    let surface = &land.surface;

    let vectors = Vectors { crs: request.vector_crs.as_deref(), to: &frame.grid.crs };
    let (body, bodies) = water(&vectors, request.water.as_deref(), &region_grid, &coarse, &mut report)?;
    let taken_by = |p: Uv| {
        let cell = |p: Uv| Cell {
            col: ((p.u - frame.start.u) / frame.step.0).floor() as i64 - local.col,
            row: ((p.v - frame.start.v) / frame.step.1).floor() as i64 - local.row,
        };
        body.get(cell(p)).filter(|b| *b != 0).map(|b| f64::from(bodies[b as usize - 1].level_m))
    };
    let rivers =
        rivers(&vectors, request.rivers.as_deref(), (&frame, origin), &coarse, surface, &taken_by, &mut report)?;
    let pins = pins(&vectors, request.peaks.as_deref(), &frame, &coarse, origin, &mut report)?;
    let intervals = intervals(&vectors, request.intervals.as_deref(), &region_grid, &coarse, &mut report)?;

    let terrain = Terrain {
        cell_m: frame.cell_m,
        coarse_span_cells: frame.span_cells,
        straddle: frame.straddle,
        land,
        sea_floor: None,
        body,
        body_window,
        bodies,
        rivers,
        pins,
        intervals,
    };
    let options = RefineOptions { seed: request.seed, stencil: request.stencil, hurst, detail: request.detail };
    let begun = std::time::Instant::now();
    let relief = terrain::refine_window(&terrain, window, &options);
    let refine_seconds = begun.elapsed().as_secs_f64();
    let mut elevation = relief.elevation;
    if request.keep_voids {
        keep_voids(&mut elevation, &terrain, window);
    }
    let options = CogOptions {
        nodata: Some(crate::export::ELEVATION_NODATA),
        band_names: vec!["elevation".into()],
        unit: "m".into(),
        metadata: vec![
            ("TIFFTAG_SOFTWARE".into(), format!("histmap {}", env!("CARGO_PKG_VERSION"))),
            ("SEED".into(), request.seed.to_string()),
        ],
        ..CogOptions::default()
    };
    gdal_io::write_cog(&request.out, &frame.grid, &[&elevation], &options)?;
    Ok(RefineSummary {
        out: request.out.display().to_string(),
        cols: frame.grid.cols,
        rows: frame.grid.rows,
        cell_m: frame.cell_m,
        block_mean_rms_m: relief.free_means.rms_m,
        block_mean_worst_m: relief.free_means.worst_m,
        contradictions: report.contradictions,
        outside: report.outside,
        notes: report.notes,
        refine_seconds,
        total_seconds: started.elapsed().as_secs_f64(),
    })
}

fn read_coarse(path: &Path, crs: Option<&str>) -> Result<RasterFile> {
    let stated = crs.map(|c| gdal_io::crs(c, "--crs")).transpose()?;
    let options = RasterReadOptions { crs: stated.as_ref(), crs_flag: "--crs", ..RasterReadOptions::default() };
    region::read_elevation(path.into(), &region::file_label(path), &options, 40_000)
}

/// Ground size of one cell of `grid` in its middle, metres east and north.
fn ground_size(grid: &Grid) -> Result<(f64, f64)> {
    let t = &grid.transform;
    if !grid.crs.is_geographic {
        let unit = gdal_io::metres_per_unit(&grid.crs)?.unwrap_or(1.0);
        return Ok((t.cell_width * unit, t.cell_height * unit));
    }
    let e = grid.extent();
    let lat = (0.5 * (e.min_y + e.max_y)).clamp(-89.9, 89.9).to_radians();
    // WGS 84 ellipsoid: radii of curvature in the prime vertical and in the meridian.
    let (a, e2) = (6_378_137.0, 0.006_694_379_990_14);
    let w2 = 1.0 - e2 * lat.sin().powi(2);
    let (n, m) = (a / w2.sqrt(), a * (1.0 - e2) / w2.powf(1.5));
    Ok((t.cell_width.to_radians() * n * lat.cos(), t.cell_height.to_radians() * m))
}

fn frame_of(coarse: &RasterFile, request: &RefineRequest) -> Result<Frame> {
    let t = coarse.grid.transform;
    let (coarse_x, coarse_y) = ground_size(&coarse.grid)?;
    let coarse_m = (coarse_x * coarse_y).sqrt();
    // Fine cells per coarse cell, along either axis.
    let per_cell = match request.fineness {
        Fineness::Factor(0) => return Err(Error::argument("--factor", 0, "give 1 or more")),
        Fineness::Factor(n) if n > 4096 => return Err(Error::argument("--factor", n, "at most 4096")),
        Fineness::Factor(n) => n as f64,
        Fineness::Resolution(m) if m.is_finite() && m > 0.0 => coarse_m / m,
        Fineness::Resolution(m) => return Err(Error::argument("--resolution", m, "give metres above 0")),
    };
    if per_cell < 1.0 - 1e-9 {
        return Err(Error::argument(
            "--resolution",
            format!("coarser than the model's cells of {coarse_m:.1} m"),
            "give a finer one, or average the model first",
        ));
    }
    let (nx, ny) = (coarse.raster.cols as f64, coarse.raster.rows as f64);
    let (cols, rows, start) = match request.mode {
        CoarseMode::Mean => ((nx * per_cell - 1e-6).ceil(), (ny * per_cell - 1e-6).ceil(), Uv { u: 0.0, v: 0.0 }),
        // From the first node to the last: a node is the centre of a fine cell.
        CoarseMode::Point => {
            let first = 0.5 - 0.5 / per_cell;
            let count = |n: f64| ((n - 1.0) * per_cell + 1e-6).floor() + 1.0;
            (count(nx), count(ny), Uv { u: first, v: first })
        }
    };
    if !(cols >= 1.0 && rows >= 1.0 && cols * rows < 1e12) {
        return Err(Error::argument("--factor", format!("{cols} x {rows} cells"), "choose a coarser result"));
    }
    let transform = GeoTransform {
        origin_x: t.origin_x + start.u * t.cell_width,
        origin_y: t.origin_y - start.v * t.cell_height,
        cell_width: t.cell_width / per_cell,
        cell_height: t.cell_height / per_cell,
    };
    let cell_m = coarse_m / per_cell;
    Ok(Frame {
        grid: Grid { crs: coarse.grid.crs.clone(), transform, cols: cols as usize, rows: rows as usize },
        step: (1.0 / per_cell, 1.0 / per_cell),
        start,
        cell_m,
        coarse_m,
        span_cells: (per_cell - 1e-6).ceil().max(1.0) as usize,
        straddle: if (per_cell - per_cell.round()).abs() < 1e-9 {
            terrain::Straddle::None
        } else {
            terrain::Straddle::ByArea
        },
    })
}

/// Bytes of memory per fine cell at the peak, writing included: as measured, with a quarter to spare. Water, intervals and
/// rivers take more where they are.
const MEMORY_PER_CELL: u64 = 20;
const MEMORY_PER_CONSTRAINED_CELL: u64 = 32;
/// And what a run takes whatever its size.
const MEMORY_AT_LEAST: u64 = 160 << 20;

fn check_memory(frame: &Frame, request: &RefineRequest) -> Result<()> {
    let (cols, rows) = (frame.grid.cols as u64, frame.grid.rows as u64);
    let constrained = request.water.is_some() || request.intervals.is_some() || request.rivers.is_some();
    let per_cell = if constrained { MEMORY_PER_CONSTRAINED_CELL } else { MEMORY_PER_CELL };
    let need = cols.saturating_mul(rows).saturating_mul(per_cell).saturating_add(MEMORY_AT_LEAST);
    resources::require(cols, rows, need, "memory", resources::memory_available())
}

/// Vector files, brought into the model's CRS.
struct Vectors<'a> {
    crs: Option<&'a str>,
    to: &'a Crs,
}

impl Vectors<'_> {
    fn read(&self, path: &Path) -> Result<Vec<Feature>> {
        let stated = self.crs.map(|c| gdal_io::crs(c, "--vector-crs")).transpose()?;
        let options = VectorReadOptions { crs: stated.as_ref(), crs_flag: "--vector-crs", encoding: None };
        let wgs84 = gdal_io::crs(gdal_io::WGS84, "--crs")?;
        let transformer = Transformer::new(&wgs84, self.to)?;
        let layers = gdal_io::read_features_wgs84(path, &options)?;
        Ok(layers
            .into_iter()
            .flat_map(|l| l.features)
            .filter_map(|f| Some(Feature { geometry: Some(transformer.geometry(f.geometry.as_ref()?)?), ..f }))
            .collect())
    }
}

/// The first of `keys` that a feature has as a number.
fn number_of(feature: &Feature, keys: &[&str]) -> Option<f64> {
    keys.iter().find_map(|k| feature.number(k)).filter(|v| v.is_finite())
}

fn name_of(feature: &Feature, k: usize) -> String {
    feature.text("name").unwrap_or_else(|| format!("feature {}", k + 1))
}

fn nothing_in(path: &Path, expected: &str) -> Error {
    Error::content(path.display(), "no feature that can be used", expected)
}

/// Water bodies on the grid. Without a level, the tenth percentile of the model under the polygon is taken.
fn water(
    vectors: &Vectors,
    path: Option<&Path>,
    grid: &Grid,
    coarse: &RasterFile,
    report: &mut Report,
) -> Result<(Raster<u16>, Vec<BodyLevel>)> {
    let Some(path) = path else { return Ok((Raster::filled(0, 0, 0), Vec::new())) };
    let (mut areas, mut bodies) = (Vec::new(), Vec::new());
    let mut not_areas = 0;
    for (k, feature) in vectors.read(path)?.into_iter().enumerate() {
        let Some(area) = feature.area() else {
            not_areas += 1;
            continue;
        };
        let level = number_of(&feature, &["level_m", "level", "elevation", "ele", "z"]);
        let Some(level_m) = level.map(|v| v as f32).or_else(|| low_value_under(&area, coarse)) else {
            report
                .outside
                .push(format!("water {}: has no level_m and no cell of the model under it", name_of(&feature, k)));
            continue;
        };
        let is_sea = feature.text("kind").is_some_and(|k| k == "sea" || k == "ocean");
        bodies.push(BodyLevel { kind: if is_sea { WaterKind::Sea } else { WaterKind::Lake }, level_m });
        areas.push((area, bodies.len() as u16));
        if bodies.len() >= usize::from(u16::MAX) {
            return Err(Error::content(
                path.display(),
                "more than 65534 water bodies",
                "fewer; join or drop the smallest",
            ));
        }
    }
    if bodies.is_empty() && report.outside.is_empty() {
        return Err(nothing_in(path, "polygons of water, with level_m where known"));
    }
    report.left_out(path, not_areas, "not polygons");
    Ok((gdal_io::rasterize(&areas, grid)?, bodies))
}

/// The tenth percentile of the model's values whose cell centre lies in `area`.
fn low_value_under(area: &MultiPolygon<f64>, coarse: &RasterFile) -> Option<f32> {
    let mask = gdal_io::rasterize_mask(area, &coarse.grid, true).ok()?;
    let mut values: Vec<f32> = mask
        .values
        .iter()
        .zip(&coarse.raster.values)
        .filter(|(m, v)| **m != 0 && v.is_finite())
        .map(|(_, v)| *v)
        .collect();
    values.sort_by(f32::total_cmp);
    values.get(values.len() / 10).copied()
}

/// What is told about the constraints: nothing is silently dropped.
#[derive(Default)]
struct Report {
    contradictions: Vec<String>,
    outside: Vec<String>,
    notes: Vec<String>,
}

impl Report {
    /// Features of `path` that are left out, and why.
    fn left_out(&mut self, path: &Path, count: usize, why: &str) {
        if count > 0 {
            let what = if count == 1 { "1 feature is".to_string() } else { format!("{count} features are") };
            self.notes.push(format!("{}: {what} left out: {why}", path.display()));
        }
    }
}

fn rivers(
    vectors: &Vectors,
    path: Option<&Path>,
    (frame, origin): (&Frame, Cell),
    coarse: &RasterFile,
    surface: &CoarseSurface,
    taken_by: &dyn Fn(Uv) -> Option<f64>,
    report: &mut Report,
) -> Result<Vec<RiverCourse>> {
    let Some(path) = path else { return Ok(Vec::new()) };
    let model = CoarseRaster { grid: coarse.grid.clone(), values: coarse.raster.clone(), quantum_m: 0.0 };
    let mut drawn = Vec::new();
    let (mut not_lines, mut outside) = (0, 0);
    for (k, feature) in vectors.read(path)?.into_iter().enumerate() {
        let lines = feature.lines();
        not_lines += usize::from(lines.is_empty());
        for line in lines {
            let mut line: Vec<Uv> = line.0.iter().map(|c| model.uv(Xy { x: c.x, y: c.y })).collect();
            if !line.iter().any(|p| surface.contains(*p)) {
                report.outside.push(format!("river {}: no point of its line lies on the model", name_of(&feature, k)));
                outside += 1;
                continue;
            }
            if let (Some(&a), Some(&b)) = (line.first(), line.last())
                && surface.elevation(a) < surface.elevation(b)
            {
                line.reverse();
            }
            // A river that ends in water falls to its level: a step above it, as all land beside it.
            let mouth_level_m =
                line.last().and_then(|p| taken_by(*p)).map(|level| level + f64::from(terrain::FREEBOARD_M));
            drawn.push(RiverOnCoarse {
                name: name_of(&feature, k),
                mouth: feature.text("mouth").unwrap_or_default(),
                rank: number_of(&feature, &["rank"]).map_or(3, |r| r.clamp(1.0, 5.0) as u8),
                line,
                mouth_level_m,
            });
        }
    }
    if drawn.is_empty() && outside == 0 {
        return Err(nothing_in(path, "lines of rivers"));
    }
    report.left_out(path, not_lines, "not lines");
    let laid = constraint::lay_rivers(&drawn, surface, &RiverOptions::default());
    let mut courses = Vec::new();
    for (river, reaches) in drawn.iter().zip(&laid) {
        if reaches.is_empty() {
            report.notes.push(format!(
                "river {}: no two points of it lie where the model has elevations; left out",
                river.name
            ));
        }
    }
    let reaches = drawn.iter().zip(laid).flat_map(|(river, laid)| laid.into_iter().map(move |reach| (river, reach)));
    for (river, laid) in reaches {
        let tolerance = 3.0 * f64::from(surface.sigma(laid.worst_cut_at)).max(1.0);
        if laid.worst_cut_m > tolerance {
            let at = model.xy(laid.worst_cut_at);
            report.contradictions.push(format!(
                "river {}: bed and model differ by {:.1} m near {:.5}, {:.5}",
                river.name, laid.worst_cut_m, at.x, at.y
            ));
        }
        let points = laid
            .line
            .iter()
            .zip(&laid.bed_m)
            .map(|(p, &z_m)| CoursePoint {
                x_cells: origin.col as f64 + (p.u - frame.start.u) / frame.step.0,
                y_cells: origin.row as f64 + (p.v - frame.start.v) / frame.step.1,
                z_m,
            })
            .collect();
        courses.push(RiverCourse { points, rank: river.rank });
    }
    Ok(courses)
}

/// The lowest value of the model around the cell under a point, the cell itself left out.
fn lowest_around(coarse: &RasterFile, cell: Cell) -> Option<f32> {
    let around = (-1..=1).flat_map(|r| (-1..=1).map(move |c| (c, r))).filter(|d| *d != (0, 0));
    around
        .filter_map(|(c, r)| coarse.raster.get(Cell { col: cell.col + c, row: cell.row + r }))
        .filter(|v| v.is_finite())
        .min_by(f32::total_cmp)
}

fn pins(
    vectors: &Vectors,
    path: Option<&Path>,
    frame: &Frame,
    coarse: &RasterFile,
    origin: Cell,
    report: &mut Report,
) -> Result<Vec<Pin>> {
    let Some(path) = path else { return Ok(Vec::new()) };
    let mut pins: Vec<(Pin, String)> = Vec::new();
    let mut left_out = 0;
    let (notes, outside) = (&mut report.contradictions, &mut report.outside);
    let mut any = false;
    for (k, feature) in vectors.read(path)?.into_iter().enumerate() {
        let (Some(Geometry::Point(p)), Some(z)) =
            (&feature.geometry, number_of(&feature, &["height_m", "elevation", "ele", "height", "z"]))
        else {
            left_out += 1;
            continue;
        };
        any = true;
        let name = name_of(&feature, k);
        let at = Xy { x: p.x(), y: p.y() };
        let local = frame.grid.transform.cell_at(at);
        let coarse_cell = coarse.grid.transform.cell_at(at);
        let under = coarse.raster.get(coarse_cell).unwrap_or(f32::NAN);
        let cell = Cell { col: local.col + origin.col, row: local.row + origin.row };
        if !frame.grid.window().contains(local) {
            outside.push(format!("{name}: lies outside the model at {:.5}, {:.5} and binds nothing", at.x, at.y));
            continue;
        }
        if let Some((other, other_name)) = pins.iter().find(|(o, _)| o.cell == cell) {
            if f64::from(other.z_m) != z {
                notes.push(format!(
                    "{name} ({z} m) shares its cell with {other_name} ({} m), which binds it ({:.5}, {:.5})",
                    other.z_m, at.x, at.y
                ));
            }
            continue;
        }
        // A point above the mean of its cell is a summit; one far below it contradicts the model.
        let is_summit = !under.is_finite() || z >= f64::from(under);
        if !is_summit {
            let lowest = lowest_around(coarse, coarse_cell).map(f64::from).filter(|low| z < *low);
            let and_around =
                lowest.map_or(String::new(), |low| format!(", and {:.1} m below all cells around", low - z));
            notes.push(format!(
                "{name}: {z} m lies {:.1} m below the model there{and_around} ({:.5}, {:.5})",
                f64::from(under) - z,
                at.x,
                at.y
            ));
        }
        pins.push((Pin { cell, z_m: z as f32, summit: is_summit }, name));
    }
    if !any {
        return Err(nothing_in(path, "points with height_m (or elevation, ele, z)"));
    }
    report.left_out(path, left_out, "not points with a height");
    Ok(pins.into_iter().map(|(p, _)| p).collect())
}

fn intervals(
    vectors: &Vectors,
    path: Option<&Path>,
    grid: &Grid,
    coarse: &RasterFile,
    report: &mut Report,
) -> Result<Option<Intervals>> {
    let Some(path) = path else { return Ok(None) };
    let (mut areas, mut classes, mut left_out) = (Vec::new(), Vec::new(), 0);
    for (k, feature) in vectors.read(path)?.into_iter().enumerate() {
        let low = number_of(&feature, &["low_m", "low", "min"]);
        let high = number_of(&feature, &["high_m", "high", "max"]);
        let Some(area) = feature.area().filter(|_| low.is_some() || high.is_some()) else {
            left_out += 1;
            continue;
        };
        let (low, high) = (low.unwrap_or(f64::NEG_INFINITY), high.unwrap_or(f64::INFINITY));
        let name = name_of(&feature, k);
        if low > high {
            return Err(Error::content(
                format!("{} {name}", path.display()),
                format!("low_m {low} above high_m {high}"),
                "low_m at or below high_m",
            ));
        }
        let inside = gdal_io::rasterize_mask(&area, &coarse.grid, false)?;
        let excluded: Vec<(f64, usize)> = inside
            .values
            .iter()
            .zip(&coarse.raster.values)
            .enumerate()
            .filter(|(_, (m, v))| **m != 0 && v.is_finite())
            .map(|(at, (_, v))| ((low - f64::from(*v)).max(f64::from(*v) - high), at))
            .filter(|(d, _)| *d > 0.0)
            .collect();
        if let Some((worst, at)) = excluded.iter().copied().max_by(|a, b| a.0.total_cmp(&b.0)) {
            let (col, row) = (at % coarse.grid.cols, at / coarse.grid.cols);
            let t = &coarse.grid.transform;
            report.contradictions.push(format!(
                "interval {name}: excludes the mean of {} cells, by up to {worst:.1} m near {:.5}, {:.5}; it stands",
                excluded.len(),
                t.origin_x + (col as f64 + 0.5) * t.cell_width,
                t.origin_y - (row as f64 + 0.5) * t.cell_height
            ));
        }
        classes.push(Interval { low_m: low as f32, high_m: high as f32 });
        areas.push((area, classes.len() as u16));
        if classes.len() >= usize::from(u16::MAX) {
            return Err(Error::content(path.display(), "more than 65534 intervals", "fewer"));
        }
    }
    if classes.is_empty() {
        return Err(nothing_in(path, "polygons with low_m and high_m"));
    }
    report.left_out(path, left_out, "not polygons with low_m or high_m");
    Ok(Some(Intervals { class: gdal_io::rasterize(&areas, grid)?, classes }))
}

/// Amplitude and exponent learnt from a sample.
struct Learnt {
    gain: f64,
    hurst: f64,
}

/// What finer ground of like country says: it is averaged to the model's cell size, its detail about the smooth surface is
/// measured against what the default model expects, and the exponent comes from the ratio of structure functions at one and
/// two of its cells.
fn learn_roughness(path: &Path, frame: &Frame, model: &RoughnessModel) -> Result<Learnt> {
    let sample = gdal_io::read_raster(path, &RasterReadOptions { crs_flag: "--crs", ..RasterReadOptions::default() })?;
    let (sx, sy) = ground_size(&sample.grid)?;
    let size = (sx * sy).sqrt();
    let n = (frame.coarse_m / size).round() as usize;
    let label = region::file_label(path);
    if n < 2 {
        return Err(Error::content(
            label,
            format!("cells of {size:.0} m, not finer than the model's {:.0} m", frame.coarse_m),
            "a sample at least twice as fine as the model",
        ));
    }
    let fine = CoarseRaster { grid: sample.grid.clone(), values: sample.raster, quantum_m: 0.0 };
    let coarse = fine.averaged(n);
    if coarse.values.cols < 8 || coarse.values.rows < 8 {
        return Err(Error::content(
            label,
            format!("{} x {} of the model's cells", coarse.values.cols, coarse.values.rows),
            "a sample of at least 8 x 8 of them",
        ));
    }
    let neutral = RoughnessModel { gain: 1.0, ..*model };
    let surface = CoarseSurface::new(coarse.values.clone(), frame.coarse_m, CoarseMode::Mean, &neutral);
    let (mut truth2, mut model2, mut d1, mut d2) = (0.0, 0.0, 0.0, 0.0);
    let (cols, rows) = (coarse.values.cols * n, coarse.values.rows * n);
    for row in (n..rows - n).step_by(1 + n / 4) {
        for col in n..cols - n {
            let z = |c: usize, r: usize| f64::from(fine.values.at(c, r));
            let p = Uv { u: (col as f64 + 0.5) / n as f64, v: (row as f64 + 0.5) / n as f64 };
            let d = z(col, row) - surface.elevation(p);
            let (a, b) = (z(col + 1, row) - z(col, row), z(col + 2, row) - z(col, row));
            if d.is_finite() && a.is_finite() && b.is_finite() {
                truth2 += d * d;
                model2 += f64::from(surface.sigma(p)).powi(2);
                d1 += a * a;
                d2 += b * b;
            }
        }
    }
    if !(truth2 > 0.0 && model2 > 0.0 && d1 > 0.0 && d2 > 0.0) {
        return Err(Error::content(label, "flat or void ground", "a sample with relief"));
    }
    Ok(Learnt { gain: (truth2 / model2).sqrt(), hurst: (0.5 * (d2 / d1).log2() + 0.25).clamp(0.1, 1.4) })
}

/// Cells over voids of the model become void again.
fn keep_voids(elevation: &mut Raster<f32>, terrain: &Terrain, window: Window) {
    let PlacedSurface { surface, placement } = &terrain.land;
    for row in 0..elevation.rows {
        for col in 0..elevation.cols {
            let p = placement.at(window.col + col as i64, window.row + row as i64, 0.5, 0.5);
            if !surface.value_under(p).is_finite() {
                elevation.set(col, row, f32::NAN);
            }
        }
    }
}
