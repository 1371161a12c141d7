//! Elevation from tints and contour lines: polygons with the bounds of their heights, or lines with a height, become a
//! coarse elevation, and bounds that every cell of the relief keeps.
//!
//! The surface is solved once for the whole map, whatever part is built, and a cell is drawn into its interval by what lies
//! within a fixed reach of it: a part equals the crop of the whole. Ground is not cut off at the bounds but drawn together
//! towards the surface, the more the nearer it comes to them: order is kept, and no ground comes to lie flat on a bound.
//!
//! It reads vector files through `gdal_io`, and knows neither packs nor outputs.

mod lines;
mod surface;

use crate::error::{Error, Result};
use crate::gdal_io::{self, Transformer, VectorReadOptions};
use crate::grid::{Cell, Crs, Grid, Window, Xy};
use crate::raster::Raster;
use crate::rasterize::{rasterize, rasterize_mask};
use crate::region::CoarseRaster;
use crate::vector::Feature;
use crate::water::{WaterBody, WaterKind};
use geo::{LineString, MultiPolygon};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::path::PathBuf;
use surface::Known;

/// A vector file of elevation classes, contour lines, or both.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassFile {
    /// The file.
    pub path: PathBuf,
    /// Its CRS where it states none.
    pub crs: Option<String>,
    /// The field with the height of a line; the usual names by default.
    pub field: Option<String>,
}

/// Fields that hold the height of a contour line, in the order in which they are looked for.
const HEIGHT_FIELDS: [&str; 9] =
    ["elevation_m", "elev", "elevation", "ele", "height_m", "height", "contour", "level_m", "z"];
const LOW_FIELDS: [&str; 3] = ["low_m", "low", "min"];
const HIGH_FIELDS: [&str; 3] = ["high_m", "high", "max"];

/// Cells of the map along the edge of one in which the surface is solved.
const FINE_PER_CELL: f64 = 4.0;
/// The most cells in which it is solved: beyond, they are larger.
const MOST_CELLS: f64 = 3e6;

/// Bounds of heights, metres; infinite where open.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Bounds {
    low_m: f64,
    high_m: f64,
}

const OPEN: Bounds = Bounds { low_m: f64::NEG_INFINITY, high_m: f64::INFINITY };

impl Bounds {
    /// The heights that both allow; `None` where there are none, or a single one.
    fn and(self, other: Bounds) -> Option<Bounds> {
        let both = Bounds { low_m: self.low_m.max(other.low_m), high_m: self.high_m.min(other.high_m) };
        (both.low_m < both.high_m).then_some(both)
    }

    fn contains(self, z: f64) -> bool {
        self.low_m <= z && z <= self.high_m
    }

    fn words(self) -> String {
        match (self.low_m.is_finite(), self.high_m.is_finite()) {
            (true, true) => format!("{} to {} m", self.low_m, self.high_m),
            (true, false) => format!("above {} m", self.low_m),
            (false, true) => format!("below {} m", self.high_m),
            (false, false) => "open".into(),
        }
    }
}

/// Elevation classes of a map, with the surface that goes through their boundaries.
#[derive(Debug, Clone)]
pub struct ElevationClasses {
    /// How messages call the file.
    label: String,
    /// Areas by their bounds, lower ones first; in the CRS of the map.
    areas: Vec<(Bounds, MultiPolygon<f64>)>,
    /// Frame of the surface.
    grid: Grid,
    surface: Raster<f32>,
    /// Contour lines with their heights, in the CRS of the map.
    lines: Vec<(f64, LineString<f64>)>,
    /// What lines bound, on the frame of the surface: 0 is nothing (also beside a line), k is `line_bounds[k - 1]`.
    line_class: Raster<u16>,
    line_bounds: Vec<Bounds>,
    /// Usual slope between boundaries.
    slope: f64,
    /// Usual width of a class, cells of the surface.
    width_cells: f64,
    /// Where the surface is the level of a sea.
    is_sea: Vec<bool>,
    /// What could not be taken as it is, in sentences.
    pub notes: Vec<String>,
}

/// Reads `file` and solves the surface for `map`, the grid of the whole map, with the water `bodies` in its CRS.
///
/// # Errors
/// Those of reading; [`Error::Content`] for bounds upside down, and where nothing can be used or nothing lies on the map.
pub fn read_classes(file: &ClassFile, map: &Grid, bodies: &[WaterBody]) -> Result<ElevationClasses> {
    let label = file.path.display().to_string();
    let features = features(file, &map.crs)?;
    let mut notes = Vec::new();
    let mut areas: Vec<(Bounds, MultiPolygon<f64>)> = Vec::new();
    let mut lines: Vec<(f64, LineString<f64>)> = Vec::new();
    let mut unused = 0;
    for (k, feature) in (1..).zip(&features) {
        if let Some(area) = feature.area() {
            let (low, high) = (number(feature, &LOW_FIELDS), number(feature, &HIGH_FIELDS));
            if low.is_none() && high.is_none() {
                unused += 1;
                continue;
            }
            let bounds = Bounds { low_m: low.unwrap_or(OPEN.low_m), high_m: high.unwrap_or(OPEN.high_m) };
            if bounds.low_m >= bounds.high_m {
                return Err(Error::content(
                    format!("{label}, feature {k}"),
                    format!("low_m {} is not below high_m {}", bounds.low_m, bounds.high_m),
                    "low_m below high_m, in metres",
                ));
            }
            match areas.iter_mut().find(|(b, _)| *b == bounds) {
                Some((_, known)) => known.0.extend(area.0),
                None => areas.push((bounds, area)),
            }
            continue;
        }
        let height = match &file.field {
            Some(field) => number(feature, &[field]),
            None => number(feature, &HEIGHT_FIELDS),
        };
        match (feature.lines(), height) {
            (parts, Some(z)) if !parts.is_empty() => lines.extend(parts.into_iter().map(|l| (z, l))),
            _ => unused += 1,
        }
    }
    if areas.is_empty() && lines.is_empty() {
        let found = if features.is_empty() { "no features" } else { "no feature with bounds or a height" };
        let expected = match &file.field {
            Some(field) => format!("lines with a number in {field}, or polygons with low_m and high_m"),
            None => "polygons with low_m and high_m, or lines with elevation_m (or name its field: --elevation-field)"
                .into(),
        };
        return Err(Error::content(label, found, expected));
    }
    if unused > 0 {
        notes.push(format!(
            "{label}: {unused} of {} features have no bounds or height and are left out",
            features.len()
        ));
    }
    areas.sort_by(|(a, _), (b, _)| a.low_m.total_cmp(&b.low_m).then(a.high_m.total_cmp(&b.high_m)));
    let extent = map.extent();
    let cell = map.transform.cell_width;
    let least = ((extent.max_x - extent.min_x) * (extent.max_y - extent.min_y) / MOST_CELLS).sqrt();
    let grid = Grid::snapped(map.crs.clone(), extent, cell * FINE_PER_CELL.max((least / cell).ceil()))?;
    let mut classes = ElevationClasses {
        label,
        areas,
        surface: Raster::filled(0, 0, 0.0),
        lines,
        line_class: Raster::filled(grid.cols, grid.rows, 0),
        line_bounds: Vec::new(),
        slope: 0.0,
        width_cells: 0.0,
        is_sea: Vec::new(),
        grid,
        notes,
    };
    classes.solve(bodies)?;
    Ok(classes)
}

/// The features of `file` in `crs`.
fn features(file: &ClassFile, crs: &Crs) -> Result<Vec<Feature>> {
    const FLAG: &str = "--classes-crs";
    let stated = file.crs.as_deref().map(|c| gdal_io::crs(c, FLAG)).transpose()?;
    let options = VectorReadOptions { crs: stated.as_ref(), crs_flag: FLAG, encoding: None };
    let to_map = Transformer::new(&gdal_io::crs(gdal_io::WGS84, FLAG)?, crs)?;
    let layers = gdal_io::read_features_wgs84(&file.path, &options)?;
    Ok(layers
        .into_iter()
        .flat_map(|l| l.features)
        .filter_map(|f| Some(Feature { geometry: Some(to_map.geometry(f.geometry.as_ref()?)?), ..f }))
        .collect())
}

/// The first of `keys` that a feature has as a number, in whatever case.
fn number(feature: &Feature, keys: &[&str]) -> Option<f64> {
    let named = |key: &str| feature.properties.keys().find(|k| k.eq_ignore_ascii_case(key));
    keys.iter().find_map(|key| feature.number(named(key)?)).filter(|v| v.is_finite())
}

/// Classes on a grid, and where areas contradict each other.
struct OnGrid {
    /// 0 is free, k is `bounds[k - 1]`.
    class: Raster<u16>,
    bounds: Vec<Bounds>,
    /// Two bounds that exclude each other, the higher of which stands: cells, and one of them.
    clashes: BTreeMap<(usize, usize), (usize, Cell)>,
}

impl ElevationClasses {
    /// The areas on `grid`. Where several overlap, what all allow counts; where that is nothing, the higher.
    fn areas_on(&self, grid: &Grid) -> Result<OnGrid> {
        let mut on =
            OnGrid { class: Raster::filled(grid.cols, grid.rows, 0), bounds: Vec::new(), clashes: BTreeMap::new() };
        // What made a class: several areas may have had a part in it.
        let mut origin: Vec<usize> = Vec::new();
        for (number, (bounds, area)) in self.areas.iter().enumerate() {
            let mask = rasterize_mask(area, grid, false)?;
            let mut becomes: BTreeMap<u16, (u16, bool)> = BTreeMap::new();
            for i in 0..mask.values.len() {
                if mask.values[i] == 0 {
                    continue;
                }
                let before = on.class.values[i];
                let (after, clash) = *becomes.entry(before).or_insert_with(|| {
                    let known = if before == 0 { OPEN } else { on.bounds[before as usize - 1] };
                    let both = known.and(*bounds);
                    let meant = both.unwrap_or(*bounds);
                    let at = on.bounds.iter().position(|b| *b == meant).unwrap_or_else(|| {
                        on.bounds.push(meant);
                        origin.push(number);
                        on.bounds.len() - 1
                    });
                    (at as u16 + 1, both.is_none())
                });
                if clash {
                    let cell = Cell { col: (i % grid.cols) as i64, row: (i / grid.cols) as i64 };
                    let key = (origin[before as usize - 1], number);
                    on.clashes.entry(key).or_insert((0, cell)).0 += 1;
                }
                on.class.values[i] = after;
            }
            if on.bounds.len() >= usize::from(u16::MAX) - 1 {
                return Err(Error::content(&self.label, "more than 65533 elevation classes", "fewer"));
            }
        }
        Ok(on)
    }

    fn solve(&mut self, bodies: &[WaterBody]) -> Result<()> {
        let on = self.areas_on(&self.grid)?;
        let water: Vec<(MultiPolygon<f64>, u16)> = bodies.iter().zip(1..).map(|(b, k)| (b.area.clone(), k)).collect();
        let water = rasterize(&water, &self.grid)?;
        let drawn = lines::draw(&self.lines, &self.grid);
        if on.bounds.is_empty() && drawn.is_empty() {
            let e = self.grid.extent();
            return Err(Error::content(
                &self.label,
                "nothing in it lies on the map",
                format!(
                    "features within {:.0}..{:.0}, {:.0}..{:.0} of {}",
                    e.min_x, e.max_x, e.min_y, e.max_y, self.grid.crs.name
                ),
            ));
        }
        (self.line_class, self.line_bounds) = lines::bounds(&drawn, &water, &self.grid);
        let levels: Vec<f32> = bodies.iter().map(|b| b.level_m as f32).collect();
        let known: Vec<Known> = (0..self.grid.len())
            .map(|i| {
                let body = water.values[i];
                if body != 0 {
                    return Known::At(levels[body as usize - 1]);
                }
                if let Some(z) = drawn.height(i) {
                    return Known::At(z);
                }
                let of = |class: u16, bounds: &[Bounds]| if class == 0 { OPEN } else { bounds[class as usize - 1] };
                let (area, line) =
                    (of(on.class.values[i], &on.bounds), of(self.line_class.values[i], &self.line_bounds));
                match area.and(line).unwrap_or(area) {
                    b if b == OPEN => Known::Free,
                    b => Known::Between { low_m: b.low_m as f32, high_m: b.high_m as f32 },
                }
            })
            .collect();
        // Beside a line the bounds of its two sides meet in cells that it crosses: there the map's cells may be on either side.
        lines::clear_beside(&mut self.line_class, &drawn);
        self.is_sea = water.values.iter().map(|b| *b != 0 && bodies[*b as usize - 1].kind == WaterKind::Sea).collect();
        let solved = surface::surface(&Raster::from_values(self.grid.cols, self.grid.rows, known));
        self.slope = f64::from(solved.usual_rise_m) / self.grid.transform.cell_width;
        self.width_cells = f64::from(solved.usual_width);
        self.surface = solved.values;
        Ok(())
    }

    /// The surface as coarse elevations, in cells of about a third of the usual width of a class: void on the seas.
    pub fn ground(&self) -> CoarseRaster {
        let values =
            self.surface.values.iter().zip(&self.is_sea).map(|(z, sea)| if *sea { f32::NAN } else { *z }).collect();
        let values = Raster::from_values(self.grid.cols, self.grid.rows, values);
        // A ring more than the map needs, so that whole coarse cells cover it.
        let n = (self.width_cells / 3.0).round().clamp(1.0, 8.0) as usize;
        let window =
            Window { col: 0, row: 0, cols: self.grid.cols.div_ceil(n) * n, rows: self.grid.rows.div_ceil(n) * n };
        let mut grown = Raster::filled(window.cols, window.rows, 0f32);
        for row in 0..window.rows {
            for col in 0..window.cols {
                grown.set(col, row, values.at(col.min(values.cols - 1), row.min(values.rows - 1)));
            }
        }
        CoarseRaster { grid: self.grid.crop(window), values: grown, quantum_m: 0.0 }.averaged(n)
    }

    /// The surface at a point of the map, by the uniform cubic B-spline of its cells.
    fn surface_at(&self, p: Xy) -> f64 {
        let t = &self.grid.transform;
        let (u, v) = ((p.x - t.origin_x) / t.cell_width - 0.5, (t.origin_y - p.y) / t.cell_height - 0.5);
        let weights = |f: f64| {
            let g = 1.0 - f;
            [g * g * g, 3.0 * f * f * f - 6.0 * f * f + 4.0, 3.0 * g * g * g - 6.0 * g * g + 4.0, f * f * f]
                .map(|w| w / 6.0)
        };
        let (wu, wv) = (weights(u - u.floor()), weights(v - v.floor()));
        let (c0, r0) = (u.floor() as i64 - 1, v.floor() as i64 - 1);
        let clamped = |k: i64, n: usize| k.clamp(0, n as i64 - 1) as usize;
        let mut sum = 0.0;
        for (j, wv) in (0i64..).zip(wv) {
            let row = self.surface.row(clamped(r0 + j, self.grid.rows));
            let along: f64 = (0i64..).zip(wu).map(|(i, wu)| wu * f64::from(row[clamped(c0 + i, self.grid.cols)])).sum();
            sum += wv * along;
        }
        sum
    }

    /// Bounds of every cell of `grid` (0 is free), lines included.
    fn on(&self, grid: &Grid) -> Result<OnGrid> {
        let mut on = self.areas_on(grid)?;
        if self.line_bounds.is_empty() {
            return Ok(on);
        }
        let lines = self.lines_on(grid);
        let mut known: BTreeMap<(u16, u16, u16), u16> = BTreeMap::new();
        let bounds = &mut on.bounds;
        for (class, &(low, high)) in on.class.values.iter_mut().zip(&lines).filter(|(_, (low, _))| *low != 0) {
            let area = *class;
            *class = *known.entry((area, low, high)).or_insert_with(|| {
                let of = if area == 0 { OPEN } else { bounds[area as usize - 1] };
                let [a, b] = [low, high].map(|k| self.line_bounds[k as usize - 1]);
                let either = Bounds { low_m: a.low_m.min(b.low_m), high_m: a.high_m.max(b.high_m) };
                let meant = of.and(either).unwrap_or(of);
                let at = bounds.iter().position(|b| *b == meant).unwrap_or_else(|| {
                    bounds.push(meant);
                    bounds.len() - 1
                });
                at as u16 + 1
            });
        }
        Ok(on)
    }

    /// Between which of the bounds of lines each cell of `grid` lies, as a pair of numbers into `line_bounds` from 1: twice the
    /// same beside lines, the lowest and the highest around where a line crosses the cell, 0 where nothing is known.
    fn lines_on(&self, grid: &Grid) -> Vec<(u16, u16)> {
        let per_cell = (self.grid.transform.cell_width / grid.transform.cell_width).ceil() as usize;
        // The cells of the surface beside a line are of no class: classes come into them from either side, cell by cell.
        let rounds = 3 * per_cell;
        let margin = rounds + 1;
        let wide = grid.crop(grid.window().grown(margin));
        let drawn = lines::draw(&self.lines, &wide);
        let mut class = Raster::filled(wide.cols, wide.rows, 0u16);
        for i in 0..class.values.len() {
            let centre = wide.transform.centre(Cell { col: (i % wide.cols) as i64, row: (i / wide.cols) as i64 });
            class.values[i] = self.line_class.get(self.grid.transform.cell_at(centre)).unwrap_or(0);
        }
        lines::carry(&mut class, &drawn, rounds);
        let around = |col: usize, row: usize| {
            let cells = (row - 1..=row + 1).flat_map(|r| (col - 1..=col + 1).map(move |c| r * wide.cols + c));
            let classes: Vec<u16> = cells.filter(|&i| !drawn.is_crossed(i)).map(|i| class.values[i]).collect();
            if classes.contains(&0) {
                return (0, 0);
            }
            let bounds = |k: &u16| self.line_bounds[*k as usize - 1];
            let low = classes.iter().copied().min_by(|a, b| bounds(a).low_m.total_cmp(&bounds(b).low_m));
            let high = classes.iter().copied().max_by(|a, b| bounds(a).high_m.total_cmp(&bounds(b).high_m));
            low.zip(high).unwrap_or((0, 0))
        };
        let cells = (0..grid.rows).flat_map(|r| (0..grid.cols).map(move |c| (c + margin, r + margin)));
        cells
            .map(|(c, r)| match r * wide.cols + c {
                i if drawn.is_crossed(i) => around(c, r),
                i => (class.values[i], class.values[i]),
            })
            .collect()
    }

    /// Draws `elevation` on `grid` into its intervals, in steps of `step_m`, wherever `is_land` says so, and tells what
    /// contradicts them. Cells of `given` have a height of their own: they keep it, and are told where they are outside.
    ///
    /// # Errors
    /// [`Error::GridMismatch`] when raster and grid differ in size; those of rasterizing.
    pub fn hold(
        &self,
        elevation: &mut Raster<f32>,
        grid: &Grid,
        is_land: &(dyn Fn(usize) -> bool + Sync),
        given: &[GivenHeight],
        step_m: f64,
    ) -> Result<Vec<String>> {
        if (elevation.cols, elevation.rows) != (grid.cols, grid.rows) {
            return Err(Error::GridMismatch {
                left: format!("grid of {} x {} cells", grid.cols, grid.rows),
                right: format!("elevation of {} x {} cells", elevation.cols, elevation.rows),
            });
        }
        let cell_m = grid.transform.cell_width;
        // What lies within the reach of a cell is known for all cells of the grid.
        let reach = (2.0 * self.grid.transform.cell_width / cell_m).ceil() as usize;
        let wide = Window { col: 0, row: 0, cols: grid.cols, rows: grid.rows }.grown(reach);
        let on = self.on(&grid.crop(wide))?;
        let distance = distance_to_other(&on.class, reach);
        let inner = Window { col: reach as i64, row: reach as i64, cols: grid.cols, rows: grid.rows };
        let (class, distance) = (on.class.crop(inner), distance.crop(inner));
        let exempt: std::collections::BTreeSet<usize> = given.iter().filter_map(|g| g.index(grid)).collect();
        let outside: Vec<f32> = elevation
            .values
            .par_iter_mut()
            .enumerate()
            .map(|(i, v)| {
                let k = class.values[i];
                if k == 0 || !is_land(i) || exempt.contains(&i) || !v.is_finite() {
                    return 0.0;
                }
                let bounds = on.bounds[k as usize - 1];
                let z = f64::from(*v);
                let off = (bounds.low_m - z).max(z - bounds.high_m).max(0.0);
                let at = grid.transform.centre(Cell { col: (i % grid.cols) as i64, row: (i / grid.cols) as i64 });
                // Away from the boundary as much as is usual, so that the ground falls across it.
                let apart = 0.4 * self.slope * cell_m * f64::from(distance.values[i]);
                *v = drawn_into(z, self.surface_at(at), bounds, apart, step_m);
                off as f32
            })
            .collect();
        Ok(self.contradictions(grid, &class, &on, &outside, given))
    }

    fn contradictions(
        &self,
        grid: &Grid,
        class: &Raster<u16>,
        on: &OnGrid,
        outside: &[f32],
        given: &[GivenHeight],
    ) -> Vec<String> {
        let to_wgs84 = gdal_io::crs(gdal_io::WGS84, "--crs").and_then(|w| Transformer::new(&grid.crs, &w));
        let place = |cell: Cell| {
            let p = grid.transform.centre(cell);
            match to_wgs84.as_ref().ok().and_then(|t| t.point(p)) {
                Some(p) => format!("near {:.3} E, {:.3} N", p.x, p.y),
                None => format!("near {:.0}, {:.0}", p.x, p.y),
            }
        };
        let cell_km2 = grid.transform.cell_width * grid.transform.cell_height / 1e6;
        let mut told = Vec::new();
        for (&(a, b), &(cells, cell)) in &on.clashes {
            // Clashes were counted on the grid with its surroundings.
            let reach = (on.class.cols - grid.cols) as i64 / 2;
            let cell = Cell { col: cell.col - reach, row: cell.row - reach };
            told.push(format!(
                "{}: the classes {} and {} overlap on {:.1} km², {}; the higher stands there",
                self.label,
                self.areas[a].0.words(),
                self.areas[b].0.words(),
                cells as f64 * cell_km2,
                place(cell)
            ));
        }
        for g in given {
            let Some(i) = g.index(grid) else { continue };
            let k = class.values[i];
            if k != 0 && !on.bounds[k as usize - 1].contains(g.z_m) {
                let b = on.bounds[k as usize - 1];
                told.push(format!(
                    "{}, {} m, {}: {:.0} m outside its class {}; the point stands",
                    g.name,
                    g.z_m,
                    place(g.cell),
                    (b.low_m - g.z_m).max(g.z_m - b.high_m),
                    b.words()
                ));
            }
        }
        // Ground that had to be moved a good way, by class.
        for (k, b) in (1u16..).zip(&on.bounds) {
            let tolerance = if (b.high_m - b.low_m).is_finite() { 0.25 * (b.high_m - b.low_m) } else { 50.0 };
            let (mut cells, mut worst) = (0usize, (0f32, 0usize));
            for (i, off) in outside.iter().enumerate().filter(|(i, _)| class.values[*i] == k) {
                if f64::from(*off) > tolerance {
                    cells += 1;
                    worst = if *off > worst.0 { (*off, i) } else { worst };
                }
            }
            if cells > 0 {
                let cell = Cell { col: (worst.1 % grid.cols) as i64, row: (worst.1 / grid.cols) as i64 };
                told.push(format!(
                    "class {}: the elevation lies more than {tolerance:.0} m outside it on {:.1} km², by {:.0} m {}; it was \
                     drawn into it",
                    b.words(),
                    cells as f64 * cell_km2,
                    worst.0,
                    place(cell)
                ));
            }
        }
        told
    }
}

/// A cell with a height of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct GivenHeight {
    /// What messages call it.
    pub name: String,
    /// Its cell on the grid.
    pub cell: Cell,
    /// Metres.
    pub z_m: f64,
}

impl GivenHeight {
    fn index(&self, grid: &Grid) -> Option<usize> {
        grid.window().contains(self.cell).then(|| self.cell.row as usize * grid.cols + self.cell.col as usize)
    }
}

/// `z` drawn into `bounds` towards the surface `s`, which is first brought `apart_m` inside them, or a quarter of them where
/// they are narrow; on whole steps where these leave room.
fn drawn_into(z: f64, s: f64, bounds: Bounds, apart_m: f64, step_m: f64) -> f32 {
    let apart = apart_m.min(0.25 * (bounds.high_m - bounds.low_m));
    let s = s.max(bounds.low_m + apart).min(bounds.high_m - apart);
    let room = if z > s { bounds.high_m - s } else { s - bounds.low_m };
    let share = ((z - s) / room).abs();
    let z = if room.is_finite() && share > 0.5 {
        // The outer half of the room takes all that lies beyond the inner half.
        let beyond = 2.0 * share - 1.0;
        s + (z - s).signum() * room * 0.5 * (1.0 + beyond / (1.0 + beyond))
    } else {
        z
    };
    let step = |k: f64| {
        let v = (k * step_m) as f32;
        bounds.contains(f64::from(v)).then_some(v)
    };
    let k = (z / step_m).round();
    if let Some(v) = [k, k + 1.0, k - 1.0].into_iter().find_map(step) {
        return v;
    }
    // No step fits: the nearest number that does.
    let v = z as f32;
    [v, v.next_up(), v.next_down()].into_iter().find(|v| bounds.contains(f64::from(*v))).unwrap_or(v)
}

/// Distance of each cell to the nearest of another class, in cells, out to `reach`: a chamfer metric (Borgefors 1986), exact
/// to 8 %, whose values depend on what lies within the reach alone. The half cell up to the border is taken off.
fn distance_to_other(class: &Raster<u16>, reach: usize) -> Raster<f32> {
    const STRAIGHT: u16 = 5;
    const DIAGONAL: u16 = 7;
    let (cols, rows) = (class.cols, class.rows);
    let far = reach.min(8000) as u16 * STRAIGHT;
    let around = [(-1i64, 0i64, STRAIGHT), (0, -1, STRAIGHT), (-1, -1, DIAGONAL), (1, -1, DIAGONAL)];
    let beside = |i: usize, (dc, dr): (i64, i64)| {
        let cell = Cell { col: (i % cols) as i64 + dc, row: (i / cols) as i64 + dr };
        Some((class.get(cell)? == class.values[i], cell.row as usize * cols + cell.col as usize))
    };
    let nearest_other = |i: usize| {
        let both = around.iter().flat_map(|&(dc, dr, cost)| [((dc, dr), cost), ((-dc, -dr), cost)]);
        both.filter(|(step, _)| beside(i, *step).is_some_and(|(is_same, _)| !is_same)).map(|(_, cost)| cost).min()
    };
    let mut d: Raster<u16> = Raster::from_values(
        cols,
        rows,
        (0..cols * rows).into_par_iter().map(|i| nearest_other(i).unwrap_or(far)).collect(),
    );
    for sign in [1, -1] {
        for k in 0..cols * rows {
            let i = if sign == 1 { k } else { cols * rows - 1 - k };
            for (dc, dr, cost) in around {
                if let Some((true, at)) = beside(i, (sign * dc, sign * dr)) {
                    d.values[i] = d.values[i].min(d.values[at] + cost);
                }
            }
        }
    }
    let values = d.values.iter().map(|v| f32::from(*v.min(&far)) / f32::from(STRAIGHT) - 0.5).collect();
    Raster::from_values(cols, rows, values)
}

#[cfg(test)]
mod tests;
