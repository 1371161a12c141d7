//! Terrain from constraints: coarse elevations, water, rivers and surveyed points in, fine relief out.
//!
//! Pure: no files, no GDAL, no clock. Everything is keyed to the lattice of the CRS, and every pass has a bounded reach, so
//! [`refine_window`] of a window equals the crop of the whole, bit for bit, at any size and thread count.
//!
//! Flow: coarse surface (means kept) → carried down the diamond-square lattice, rougher step by step and opened where it
//! would dam its water → valleys and summits → block means again, with the constrained cells held → water and pins to the bit.

mod breach;
mod displacement;
mod ground;
mod holds;
mod inside;
mod lattice;
mod means;
mod needles;
mod nodes;
pub mod noise;
mod overlap;
mod part;
mod pins;
mod placement;
mod ring;
mod rivers;
mod roughness;
mod shore;
mod sparse;
mod surface;

pub use lattice::Stencil;
pub use means::{MeanAgreement, Straddle};
pub use pins::Pin;
pub use placement::{Placement, Uv};
pub use rivers::{CoursePoint, RiverCourse, falling_profile};
pub use roughness::HurstCurve;
pub use surface::{CoarseMode, CoarseSurface, RoughnessModel};

use crate::grid::{Cell, Window};
use crate::raster::Raster;
use crate::water::WaterKind;
use breach::{BreachOptions, Hold, breach};
use holds::{Holds, Water};
use inside::Inside;
use lattice::Sites;
use means::{Blocks, Correction, Under, Weights};
use part::Part;
use placement::whole_below;
use rayon::prelude::*;
use rivers::Valleys;
use shore::{Kind, ShoreDistance, WaterSquares};
use sparse::{SIDE, Square};
use std::collections::HashSet;

/// What the relief below the scale of the coarse values is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Detail {
    /// Furrowed along its own fall, amplitude by local slope, hollows opened: it drains.
    #[default]
    Drained,
    /// Midpoints displaced by white noise: the fractal of the textbooks, full of hollows, and cheaper.
    Plain,
}

/// Options of the refinement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RefineOptions {
    /// Seed of all noise.
    pub seed: u64,
    /// Relief that drains, or the plain fractal.
    pub detail: Detail,
    /// How midpoints are interpolated.
    pub stencil: Stencil,
    /// Hurst exponent by scale.
    pub hurst: HurstCurve,
}

impl Default for RefineOptions {
    fn default() -> Self {
        RefineOptions { seed: 1, detail: Detail::Drained, stencil: Stencil::FourPoint, hurst: HurstCurve::Measured }
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
    /// Where fine cells lie in it; must cover the window grown by [`halo_cells`].
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
    /// Over [`Terrain::body_window`]: 0 is free, k is `classes[k - 1]`.
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
    /// Whether fine cells lie across the edges of coarse ones.
    pub straddle: Straddle,
    /// Ground of the land, means over land alone.
    pub land: PlacedSurface,
    /// Floor of the seas; `None` lets the sea floor slope gently from the shore.
    pub sea_floor: Option<PlacedSurface>,
    /// Water body by cell over `body_window`: 0 is land, k is `bodies[k - 1]`. No cells at all will do where there is no water.
    pub body: Raster<u16>,
    /// The cells of `body`, absolute: at least [`working_window`] where there is water or an interval.
    pub body_window: Window,
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

/// Rounds of block-mean correction over fine cells.
const MEAN_ROUNDS: usize = 3;
/// Further rounds where a coarse cell is few fine ones, whose spline is a poor one.
fn extra_rounds(coarse_span_cells: usize) -> usize {
    if coarse_span_cells < 8 { 3 } else { 0 }
}
/// Rounds of opening hollows before each of them.
const OPENINGS: [usize; MEAN_ROUNDS] = [1, 2, 0];
/// Rounds of drained ground that begin with blunting needles.
const BLUNTED_ROUNDS: usize = 2;
/// How hollows of the fine ground are opened.
const OPENING: BreachOptions = BreachOptions { reach: 16, most_cells: 800, fill: 0.3 };
/// Distance from the shore over which the sea floor leaves the shore line, metres.
const SHORE_TAPER_M: f64 = 4000.0;
/// A land cell at the shore stands at least this far above the water, metres.
pub const FREEBOARD_M: f32 = 0.1;
/// A sea cell lies at least this far below it, metres.
const DRAUGHT_M: f32 = 0.5;

/// How far shores act, in cells.
fn shore_reach_cells(cell_m: f64) -> u32 {
    (SHORE_TAPER_M / cell_m).ceil().clamp(4.0, 64.0) as u32
}

/// The halo, in fine cells, that makes windows equal: what the body raster and the placements must cover around a window.
pub fn halo_cells(cell_m: f64, coarse_span_cells: usize) -> usize {
    inner_halo(cell_m, coarse_span_cells) + ground::reach(coarse_span_cells)
}

/// The part of the halo that the passes over fine cells need: all but the ground's own.
fn inner_halo(cell_m: f64, coarse_span_cells: usize) -> usize {
    let drainage: usize = OPENINGS.iter().sum::<usize>() * OPENING.halo();
    let rounds = MEAN_ROUNDS + extra_rounds(coarse_span_cells);
    let needles = (BLUNTED_ROUNDS + 1) * needles::REACH;
    rounds * means::REACH_COARSE * coarse_span_cells + drainage + needles + near_halo(cell_m, coarse_span_cells)
}

/// How far what lies outside the coarse raster may act on what lies inside, in cells.
fn near_halo(cell_m: f64, coarse_span_cells: usize) -> usize {
    2 * shore_reach_cells(cell_m) as usize
        + (pins::CAP_REACHES * pin_reach(coarse_span_cells)).ceil() as usize
        + valley_reach(coarse_span_cells).ceil() as usize
}

/// The cells of `region` that are worth computing: those around the coarse raster, and those near `window`.
fn worthwhile(land: &PlacedSurface, region: Window, window: Window, near: usize) -> Window {
    let keep = window.grown(near);
    let (mut c0, mut r0) = (keep.col, keep.row);
    let (mut c1, mut r1) = (keep.col + keep.cols as i64, keep.row + keep.rows as i64);
    let step = Placement::STEP as i64;
    let (end_col, end_row) = (region.col + region.cols as i64, region.row + region.rows as i64);
    let spare = near as i64 + step + 4;
    let mut row = region.row;
    while row < end_row {
        let mut col = region.col;
        while col < end_col {
            if land.surface.contains(land.placement.at(col, row, 0.5, 0.5)) {
                (c0, r0) = (c0.min(col - spare), r0.min(row - spare));
                (c1, r1) = (c1.max(col + spare), r1.max(row + spare));
            }
            col += step;
        }
        row += step;
    }
    let (c0, r0) = (c0.max(region.col), r0.max(region.row));
    let (c1, r1) = (c1.min(end_col), r1.min(end_row));
    Window { col: c0, row: r0, cols: (c1 - c0) as usize, rows: (r1 - r0) as usize }
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

/// The cells that the passes over fine cells work on for `window`: what `body` and the intervals are to cover.
pub fn working_window(land: &PlacedSurface, cell_m: f64, coarse_span_cells: usize, window: Window) -> Window {
    let covered = window.grown(halo_cells(cell_m, coarse_span_cells));
    let clip = worthwhile(land, covered, window, near_halo(cell_m, coarse_span_cells));
    overlap(window.grown(inner_halo(cell_m, coarse_span_cells)), clip)
}

/// Whether anything that binds within `covered` lies outside the coarse raster, from where it may act on what lies inside.
fn binds_outside(terrain: &Terrain, covered: Window) -> bool {
    let PlacedSurface { surface, placement } = &terrain.land;
    let outside = |cell: Cell| {
        let (c, r) = (cell.col - covered.col, cell.row - covered.row);
        let near = c >= 0 && r >= 0 && c < covered.cols as i64 && r < covered.rows as i64;
        near && !surface.contains(placement.at(cell.col, cell.row, 0.5, 0.5))
    };
    let points = terrain.rivers.iter().flat_map(|river| &river.points);
    if terrain.pins.iter().any(|pin| outside(pin.cell))
        || points.into_iter().any(|p| outside(lattice_cell(p.x_cells, p.y_cells)))
    {
        return true;
    }
    if terrain.bodies.is_empty() {
        return false;
    }
    let window = overlap(terrain.body_window, covered);
    let body = Part::of(&terrain.body, terrain.body_window, window);
    let inside = Inside::new(surface, placement, Sites::centres(window), (window.cols, window.rows));
    let is_outside = |c: usize, r: usize| body.at(c, r) != 0 && !inside.holds(c, r);
    (0..window.rows)
        .into_par_iter()
        .any(|r| inside.doubtful(r, window.cols).into_iter().flatten().any(|c| is_outside(c, r)))
}

/// The relief of `window` (absolute lattice cells).
///
/// # Panics
/// When there is water and `terrain.body` does not cover [`working_window`]: a programming error.
pub fn refine_window(terrain: &Terrain, window: Window, options: &RefineOptions) -> Relief {
    let (cell_m, span) = (terrain.cell_m, terrain.coarse_span_cells);
    let covered = window.grown(halo_cells(cell_m, span));
    let near = if binds_outside(terrain, covered) { near_halo(cell_m, span) } else { 0 };
    let clip = worthwhile(&terrain.land, covered, window, near);
    let region = overlap(window.grown(inner_halo(cell_m, span)), clip);
    if !terrain.bodies.is_empty() || terrain.intervals.is_some() {
        assert_eq!(overlap(terrain.body_window, region), region, "water mask covers the working window");
    }
    let PlacedSurface { surface, placement } = &terrain.land;
    let sites = Sites::centres(region);
    let under = Under { surface, placement, sites, straddle: terrain.straddle };
    let water = water_in(terrain, region);
    let is_land = |c: usize, r: usize| water.as_ref().is_none_or(|w| w.body.at(c, r) == 0);

    let mut z = ground::build(terrain, region, clip, options);

    let valleys = Valleys::new(&terrain.rivers, region, valley_reach(span));
    let reach = pin_reach(span);
    let mut weight = free_weights(region, water.as_ref());
    lay_valleys(&mut z, &mut weight, &valleys, &is_land);
    pins::raise(&mut z, region, &terrain.pins, reach, &|i| is_land(i % region.cols, i / region.cols));
    pins::loosen(&mut weight, region, &terrain.pins, reach);
    let intervals = terrain.intervals.as_ref();
    let intervals = intervals.map(|i| (Part::of(&i.class, terrain.body_window, region), i.classes.as_slice()));
    let holds = Holds::new(terrain, region, water.as_ref(), intervals, reach);
    holds.set_fixed(&mut z);

    let inside = Inside::new(surface, placement, sites, (region.cols, region.rows));
    let hold = |c: usize, r: usize| {
        if weight.at(c, r) <= 0.0 {
            Hold::Fixed
        } else if inside.holds(c, r) {
            Hold::Free
        } else {
            Hold::Beyond
        }
    };
    let keep = |c: usize, r: usize, values: &mut [f32]| holds.keep(c, r, values);
    let drained = options.detail == Detail::Drained;
    // Blocks as they are, with the correction that they call for.
    let mut known: Option<(Correction, Blocks)> = None;
    let openings = OPENINGS.into_iter().chain(std::iter::repeat_n(0, extra_rounds(span)));
    for (round, openings) in openings.enumerate() {
        if drained && round < BLUNTED_ROUNDS {
            if let Some((correction, _)) = known.take() {
                means::add(&mut z, under, &weight, &correction);
            }
            (0..openings).for_each(|_| breach(&mut z, &hold, &OPENING));
            // The last rounds move ground smoothly: they make no needles.
            needles::blunt(&mut z, &|c, r| hold(c, r) == Hold::Free);
        } else if round == 0 {
            // Plain ground has needles only where it was bent.
            needles::blunt_in(&mut z, weight.own_squares(), &|c, r| weight.at(c, r) < 1.0 && hold(c, r) == Hold::Free);
        }
        let blocks = means::settle(&mut z, under, &weight, &keep, known.take());
        match surface.mode {
            CoarseMode::Mean => known = Some((blocks.correction(under, |target| target, span), blocks)),
            CoarseMode::Point => nodes::bind(&mut z, surface, sites, placement, &weight),
        }
    }
    if span == 1 && terrain.straddle == Straddle::None {
        if let Some((correction, _)) = known.take() {
            means::add(&mut z, under, &weight, &correction);
        }
        bind_single_cells(&mut z, surface, sites, placement, &weight);
    }
    if drained {
        // What the corrections have raised again goes, by so little that the means hardly feel it.
        if let Some((correction, _)) = known.take() {
            means::add(&mut z, under, &weight, &correction);
        }
        needles::blunt(&mut z, &|c, r| hold(c, r) == Hold::Free);
    }
    let blocks = means::settle(&mut z, under, &weight, &keep, known.take());

    // Blocks at a shore or a bound are not free.
    let mut held = HashSet::new();
    let mut hold_blocks = |c: usize, r: usize| {
        for (dx, dy) in [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0)] {
            let p = placement.at(region.col + c as i64, region.row + r as i64, dx, dy);
            held.insert((whole_below(p.u), whole_below(p.v)));
        }
    };
    if let Some(water) = &water {
        water.shore.each_within(2.0, &mut hold_blocks);
    }
    holds.each_at_bound(&z, &mut hold_blocks);
    let cells_in_block = (span as u64).pow(2) * terrain.straddle.units_in_cell() / 2;
    let inner = counted_from(region, window);
    let mut river = Raster::filled(window.cols, window.rows, 0u8);
    valleys.each_river_cell(|c, r| {
        let cell = Cell { col: c as i64 - inner.col, row: r as i64 - inner.row };
        if river.get(cell).is_some() && is_land(c, r) {
            river.set(cell.col as usize, cell.row as usize, 1);
        }
    });
    ground::crop_in_place(&mut z, inner);
    Relief {
        elevation: z,
        river,
        free_means: blocks.agreement(surface, cells_in_block, Some(&held)),
        all_means: blocks.agreement(surface, 1, None),
    }
}

/// The water bodies over `region`, if there are any in it.
fn water_in(terrain: &Terrain, region: Window) -> Option<Water<'_>> {
    if terrain.bodies.is_empty() {
        return None;
    }
    let body = Part::of(&terrain.body, terrain.body_window, region);
    let squares = WaterSquares::new(body);
    squares.any().then(|| {
        let shore = ShoreDistance::new(body, &squares, shore_reach_cells(terrain.cell_m));
        Water { body, squares, shore }
    })
}

/// Land moves freely, water does not count.
fn free_weights(region: Window, water: Option<&Water>) -> Weights {
    let Some(water) = water else { return Weights::new(region.cols, region.rows, 1.0) };
    Weights::build(region.cols, region.rows, |c0, r0| match water.squares.kind(c0, r0) {
        Kind::Land => Square::Flat(1.0),
        Kind::Water => Square::Flat(-1.0),
        Kind::Shore => {
            let mut square = vec![1f32; SIDE * SIDE].into_boxed_slice();
            for r in r0..(r0 + SIDE).min(region.rows) {
                for c in c0..(c0 + SIDE).min(region.cols) {
                    if water.body.at(c, r) != 0 {
                        square[(r - r0) * SIDE + c - c0] = -1.0;
                    }
                }
            }
            Square::Own(square)
        }
    })
}

/// The cells that two windows share; they must meet.
fn overlap(a: Window, b: Window) -> Window {
    let (col, row) = (a.col.max(b.col), a.row.max(b.row));
    let end_col = (a.col + a.cols as i64).min(b.col + b.cols as i64);
    let end_row = (a.row + a.rows as i64).min(b.row + b.rows as i64);
    Window { col, row, cols: (end_col - col) as usize, rows: (end_row - row) as usize }
}

/// The cells of `window`, counted from the corner of `frame`.
fn counted_from(frame: Window, window: Window) -> Window {
    Window { col: window.col - frame.col, row: window.row - frame.row, ..window }
}

/// Where a coarse cell is one fine cell, its mean is that cell's value.
fn bind_single_cells(
    z: &mut Raster<f32>,
    surface: &CoarseSurface,
    sites: Sites,
    placement: &Placement,
    weight: &Weights,
) {
    let cols = z.cols;
    z.values.par_iter_mut().enumerate().for_each(|(i, v)| {
        let value = surface.value_under(sites.place(placement, (i % cols) as i64, (i / cols) as i64));
        if value.is_finite() && weight.at(i % cols, i / cols) >= 1.0 {
            *v = value;
        }
    });
}

/// Bends the ground down (or up) to the rivers' beds.
fn lay_valleys(z: &mut Raster<f32>, weight: &mut Weights, valleys: &Valleys, is_land: &dyn Fn(usize, usize) -> bool) {
    let cols = z.cols;
    valleys.each_cell(|c, r, bed_m, [above, below]| {
        let i = r * cols + c;
        if is_land(c, r) {
            let over = z.values[i] - bed_m;
            z.values[i] = bed_m + over * if over >= 0.0 { above } else { below };
            *weight.at_mut(c, r) = above;
        }
    });
}

/// The absolute lattice cell under a point given in lattice cells from the CRS origin.
pub fn lattice_cell(x_cells: f64, y_cells: f64) -> Cell {
    Cell { col: x_cells.floor() as i64, row: y_cells.floor() as i64 }
}

#[cfg(test)]
mod laws;
