//! Terrain from constraints: coarse elevations, water, rivers and surveyed points in, fine relief out.
//!
//! Pure: no files, no GDAL, no clock. Everything is keyed to the lattice of the CRS, and every pass has a bounded reach, so
//! [`refine_window`] of a window equals the crop of the whole, bit for bit, at any size and thread count.
//!
//! Flow: coarse surface (means kept) → + lattice displacements → block means → valleys and summits → block means again, with
//! the constrained cells held → water and pins to the bit.

mod detail;
mod means;
mod noise;
mod pins;
mod placement;
mod rivers;
mod shore;
mod surface;

pub use detail::{HurstCurve, Stencil};
pub use means::MeanAgreement;
pub use pins::Pin;
pub use placement::{Placement, Uv};
pub use rivers::{CoursePoint, RiverCourse, falling_profile};
pub use surface::{CoarseMode, CoarseSurface, RoughnessModel};

use crate::grid::{Cell, Window};
use crate::raster::Raster;
use crate::water::WaterKind;
use detail::DetailOptions;
use means::Blocks;
use rayon::prelude::*;
use rivers::Valleys;
use shore::ShoreDistance;

/// Whether the detail drains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Detail {
    /// Displaced midpoints as they fall: many small pits.
    Plain,
    /// Water runs off: no pits but those of the coarse ground.
    #[default]
    Drained,
}

/// Options of the refinement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RefineOptions {
    /// Seed of all noise.
    pub seed: u64,
    /// How midpoints are interpolated.
    pub stencil: Stencil,
    /// Hurst exponent by scale.
    pub hurst: HurstCurve,
    /// Whether the detail drains.
    pub detail: Detail,
}

impl Default for RefineOptions {
    fn default() -> Self {
        RefineOptions { seed: 1, stencil: Stencil::FourPoint, hurst: HurstCurve::Measured, detail: Detail::Drained }
    }
}

/// How large coarse cells are against fine ones.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CoarsePlace {
    /// Mean of a coarse cell's width and height, metres.
    pub coarse_cell_m: f64,
    /// The larger of the two in fine cells, rounded up with 2 % to spare for the projection's scale.
    pub span_cells: usize,
}

impl CoarsePlace {
    /// From a coarse cell's width and height and the fine cell size, all in metres.
    pub fn of(coarse_m: &(f64, f64), cell_m: f64) -> CoarsePlace {
        let span = (1.02 * coarse_m.0.max(coarse_m.1) / cell_m).ceil().max(1.0);
        CoarsePlace { coarse_cell_m: 0.5 * (coarse_m.0 + coarse_m.1), span_cells: span as usize }
    }
}

/// A coarse raster with its place under the fine lattice.
#[derive(Debug, Clone)]
pub struct PlacedSurface {
    /// The surface.
    pub surface: CoarseSurface,
    /// Where fine cells lie in it; must cover the window grown by [`Terrain::halo`].
    pub placement: Placement,
}

/// A water body's hold on its cells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BodyLevel {
    /// [`WaterKind::Sea`] or [`WaterKind::Lake`].
    pub kind: WaterKind,
    /// Surface, metres.
    pub level_m: f32,
}

/// Bounds that the ground keeps, whatever else says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Lowest, metres; minus infinity where open.
    pub low_m: f32,
    /// Highest, metres; infinity where open.
    pub high_m: f32,
}

/// Intervals by cell.
#[derive(Debug, Clone)]
pub struct Intervals {
    /// Over the window grown by the halo: 0 is free, k is `classes[k - 1]`.
    pub class: Raster<u16>,
    /// Their bounds.
    pub classes: Vec<Interval>,
}

/// Everything that binds the relief of one window.
#[derive(Debug, Clone)]
pub struct Terrain {
    /// Fine cell size, metres.
    pub cell_m: f64,
    /// Largest extent of a coarse land cell along either axis, in fine cells (rounded up).
    pub coarse_span_cells: usize,
    /// Ground of the land, means over land alone.
    pub land: PlacedSurface,
    /// Floor of the seas; `None` lets the sea floor slope gently from the shore.
    pub sea_floor: Option<PlacedSurface>,
    /// Water body by cell over the window grown by the halo: 0 is land, k is `bodies[k - 1]`.
    pub body: Raster<u16>,
    /// Levels of the bodies.
    pub bodies: Vec<BodyLevel>,
    /// Rivers that touch the window or its halo.
    pub rivers: Vec<RiverCourse>,
    /// Surveyed points.
    pub pins: Vec<Pin>,
    /// Bounds on the ground; `None` without any.
    pub intervals: Option<Intervals>,
}

/// Refined relief with what it was measured to keep.
#[derive(Debug, Clone)]
pub struct Relief {
    /// Metres; sea floor under seas, the surface of lakes.
    pub elevation: Raster<f32>,
    /// Cells that a river's line crosses.
    pub river: Raster<u8>,
    /// Block means of the result against the coarse values, over blocks that lie wholly on land and free of rivers,
    /// shores and pins.
    pub free_means: MeanAgreement,
    /// The same over all blocks that hold any land.
    pub all_means: MeanAgreement,
}

/// Rounds of block-mean correction.
const MEAN_ROUNDS: usize = 4;
/// Distance from the shore over which the sea floor leaves the shore line, metres.
const SHORE_TAPER_M: f64 = 4000.0;
/// A land cell at the shore stands at least this far above the water, metres.
const FREEBOARD_M: f32 = 0.1;
/// A sea cell lies at least this far below it, metres.
const DRAUGHT_M: f32 = 0.5;

/// How far shores act, in cells.
fn shore_reach_cells(cell_m: f64) -> u32 {
    (SHORE_TAPER_M / cell_m).ceil().clamp(4.0, 64.0) as u32
}

/// The halo, in fine cells, that makes windows equal: what the body raster and the placements must cover around a window.
pub fn halo_cells(cell_m: f64, coarse_span_cells: usize) -> usize {
    let detail = detail::reach(lattice_levels(coarse_span_cells));
    MEAN_ROUNDS * means::REACH_COARSE * coarse_span_cells
        + detail
        + 2 * shore_reach_cells(cell_m) as usize
        + valley_reach(coarse_span_cells).ceil() as usize
}

/// Levels of the lattice: the top spacing is the smallest power of two of cells that spans a coarse cell.
fn lattice_levels(coarse_span_cells: usize) -> u32 {
    coarse_span_cells.max(1).next_power_of_two().trailing_zeros()
}

/// Half-width of the valleys that given rivers carve, in cells.
fn valley_reach(coarse_span_cells: usize) -> f32 {
    (1.1 * coarse_span_cells as f32).max(2.0)
}

/// Reach of a pin, in cells.
fn pin_reach(coarse_span_cells: usize) -> f32 {
    (1.3 * coarse_span_cells as f32).max(2.5)
}

/// The relief of `window` (absolute lattice cells).
///
/// # Panics
/// When `terrain.body` does not cover the window grown by [`halo_cells`]: a programming error.
pub fn refine_window(terrain: &Terrain, window: Window, options: &RefineOptions) -> Relief {
    let halo = halo_cells(terrain.cell_m, terrain.coarse_span_cells);
    let region = window.grown(halo);
    assert_eq!((terrain.body.cols, terrain.body.rows), (region.cols, region.rows), "water mask covers the halo");
    let placement = &terrain.land.placement;
    let surface = &terrain.land.surface;
    let body = &terrain.body.values;
    let is_land = |i: usize| body[i] == 0;

    let mut z = smooth_plus_detail(terrain, region, options);
    let everywhere = |_: usize| 1.0f32;
    Blocks::gather(&z, region, placement, &is_land, &everywhere).correct(
        surface,
        &mut z,
        region,
        placement,
        &everywhere,
    );

    let valleys = Valleys::new(&terrain.rivers, region, valley_reach(terrain.coarse_span_cells));
    lay_valleys(&mut z, &valleys, &is_land);
    let reach = pin_reach(terrain.coarse_span_cells);
    pins::raise(&mut z, region, &terrain.pins, reach, &is_land);

    let shore = ShoreDistance::new(&terrain.body, shore_reach_cells(terrain.cell_m));
    let mut weight = Raster::filled(region.cols, region.rows, 1f32);
    weight.values.par_iter_mut().enumerate().for_each(|(i, w)| {
        *w = if body[i] == 0 { valleys.freedom(i) } else { 0.0 };
    });
    pins::loosen(&mut weight, region, &terrain.pins, reach);
    let weight_at = |i: usize| weight.values[i];
    for _ in 1..MEAN_ROUNDS {
        hold_intervals(&mut z, terrain);
        hold_shores(&mut z, terrain, region, &shore);
        pins::cap(&mut z, region, &terrain.pins, reach);
        Blocks::gather(&z, region, placement, &is_land, &weight_at)
            .correct(surface, &mut z, region, placement, &weight_at);
    }
    hold_intervals(&mut z, terrain);
    hold_shores(&mut z, terrain, region, &shore);
    pins::cap(&mut z, region, &terrain.pins, reach);
    pins::set(&mut z, region, &terrain.pins);

    let inner = Window { col: halo as i64, row: halo as i64, cols: window.cols, rows: window.rows };
    let blocks = Blocks::gather(&z, region, placement, &is_land, &|i| {
        let shore_free = shore.at(i).is_none_or(|(d, _)| d > 2.0);
        if weight.values[i] >= 1.0 && shore_free { 1.0 } else { 0.0 }
    });
    let cells_in_block = (terrain.coarse_span_cells as u32).pow(2) / 2;
    let mut river = Raster::filled(window.cols, window.rows, 0u8);
    for r in 0..window.rows {
        for c in 0..window.cols {
            let i = (r + halo) * region.cols + c + halo;
            river.set(c, r, u8::from(valleys.distance2.values[i] == 0.0 && body[i] == 0));
        }
    }
    Relief {
        elevation: z.crop(inner),
        river,
        free_means: blocks.agreement(surface, cells_in_block, true),
        all_means: blocks.agreement(surface, 1, false),
    }
}

/// The smooth surface with lattice displacements on top.
fn smooth_plus_detail(terrain: &Terrain, region: Window, options: &RefineOptions) -> Raster<f32> {
    let PlacedSurface { surface, placement } = &terrain.land;
    let sigma = |c: i64, r: i64| surface.sigma(placement.at(c, r, 0.0, 0.0));
    let detail = DetailOptions { seed: options.seed, hurst: options.hurst, stencil: options.stencil };
    let free_top = surface.mode == CoarseMode::Mean;
    let levels = lattice_levels(terrain.coarse_span_cells);
    let mut z = detail::displacement(region, levels, free_top, terrain.cell_m, &sigma, &detail);
    let cols = region.cols;
    z.values.par_chunks_mut(cols).enumerate().for_each(|(r, row)| {
        for (c, v) in row.iter_mut().enumerate() {
            let p = placement.at(region.col + c as i64, region.row + r as i64, 0.5, 0.5);
            *v += surface.elevation(p) as f32;
        }
    });
    z
}

/// Keeps land inside its intervals.
fn hold_intervals(z: &mut Raster<f32>, terrain: &Terrain) {
    let Some(intervals) = &terrain.intervals else { return };
    z.values.par_iter_mut().enumerate().for_each(|(i, v)| {
        let class = intervals.class.values[i];
        if class != 0 && terrain.body.values[i] == 0 {
            let Interval { low_m, high_m } = intervals.classes[class as usize - 1];
            *v = v.max(low_m).min(high_m);
        }
    });
}

/// Bends the ground down (or up) to the rivers' beds.
fn lay_valleys(z: &mut Raster<f32>, valleys: &Valleys, is_land: &(dyn Fn(usize) -> bool + Sync)) {
    z.values.par_iter_mut().enumerate().for_each(|(i, v)| {
        let bed = valleys.bed_m.values[i];
        if bed.is_finite() && is_land(i) {
            *v = bed + (*v - bed) * valleys.freedom(i);
        }
    });
}

/// Water to its level or below, land above the water that it adjoins.
fn hold_shores(z: &mut Raster<f32>, terrain: &Terrain, region: Window, shore: &ShoreDistance) {
    let cols = region.cols;
    let surface = &terrain.land.surface;
    z.values.par_iter_mut().enumerate().for_each(|(i, v)| {
        let place = |p: &Placement| p.at(region.col + (i % cols) as i64, region.row + (i / cols) as i64, 0.5, 0.5);
        let body = terrain.body.values[i];
        if body == 0 {
            let floor = match shore.at(i) {
                Some((_, b)) => {
                    let level = terrain.bodies[b as usize - 1].level_m;
                    let coarse = surface.value_under(place(&terrain.land.placement));
                    // Real land below the water beside it (behind a dam, in a pit) stays where the coarse values put it.
                    if coarse < level { f32::NEG_INFINITY } else { level + FREEBOARD_M }
                }
                None => {
                    let p = place(&terrain.land.placement);
                    // Far from water: above zero where the coarse ground is, and in lowlands below zero no pit below it.
                    if surface.value_under(p) > 0.0 { FREEBOARD_M } else { surface.lowest_around(p) }
                }
            };
            *v = v.max(floor);
            return;
        }
        let BodyLevel { kind, level_m } = terrain.bodies[body as usize - 1];
        if kind != WaterKind::Sea {
            *v = level_m;
            return;
        }
        let distance = shore.at(i).map_or(shore.reach_cells() as f32, |(d, _)| d);
        let t = (distance / shore.reach_cells() as f32).min(1.0);
        let depth = match &terrain.sea_floor {
            Some(floor) => level_m - floor.surface.elevation(place(&floor.placement)) as f32,
            None => 0.002 * distance * terrain.cell_m as f32,
        };
        *v = level_m - DRAUGHT_M - (depth - DRAUGHT_M).max(0.0) * t * (2.0 - t);
    });
}

/// The absolute lattice cell under a point given in lattice cells from the CRS origin.
pub fn lattice_cell(x_cells: f64, y_cells: f64) -> Cell {
    Cell { col: x_cells.floor() as i64, row: y_cells.floor() as i64 }
}
