//! The ground without constraints: the coarse surface carried down the lattice, step by step rougher, and made to drain on
//! the way.
//!
//! Down to a quarter of the coarse cell the lattice holds displacements from the smooth surface; there the block means are
//! restored, and from there on it holds elevations: four nodes a coarse cell hold the spline closely enough. Hollows are
//! opened at the quarter spacing, where even long ways out are cheap, and again after each finer level.

use super::breach::{BreachOptions, Hold, breach};
use super::displacement::{self, Kernels, StepNoise};
use super::inside::Inside;
use super::lattice::{self, Cover, Parents, Sites};
use super::means::{self, Straddle, Under, Weights};
use super::noise::NoiseKey;
use super::roughness::{Step, StepShape};
use super::{CoarseMode, Detail, PlacedSurface, RefineOptions, Stencil, Terrain, lattice_levels};
use crate::grid::Window;
use crate::raster::Raster;
use rayon::prelude::*;

/// Opening of hollows at the quarter spacing.
const LONG: BreachOptions = BreachOptions { reach: 28, most_cells: 2000, fill: 0.2 };
const LONG_ROUNDS: usize = 3;
/// And at each finer level of corners.
const SHORT: BreachOptions = BreachOptions { reach: 16, most_cells: 500, fill: 0.2 };
const SHORT_ROUNDS: usize = 2;

/// Nodes around those that are wanted which one level's passes look at.
fn margin(level: u32, levels: u32) -> usize {
    let mut nodes = displacement::REACH;
    if let Some(quarter) = levels.checked_sub(2)
        && level <= quarter
    {
        let per_coarse_cell = 1usize << (levels - level);
        if level == quarter {
            nodes += means::REACH_COARSE * per_coarse_cell;
        }
        nodes += if level == quarter { LONG.halo() * LONG_ROUNDS } else { SHORT.halo() * SHORT_ROUNDS };
    }
    nodes
}

/// The finest level of corners. The centres of the cells come from corners two cells apart: corners one cell apart would double
/// the work for the same octave. The textbook's way, half a level at a time, stays with its stencil.
fn last_level(levels: u32, options: &RefineOptions) -> u32 {
    u32::from(levels > 0 && options.stencil == Stencil::FourPoint)
}

/// The rectangles of nodes to build, finest level first, for ground at the centres of the cells of `window`.
fn covers(window: Window, last: u32, levels: u32) -> Vec<Cover> {
    let centres = window.grown(displacement::REACH);
    let mut wanted = if last == 0 { lattice::corners(centres) } else { lattice::parents(centres) };
    let mut covers = Vec::new();
    for level in last..=levels {
        let cover = wanted.grown(margin(level, levels));
        covers.push(cover);
        wanted = lattice::parents(cover);
    }
    covers
}

/// How far outside its window, in cells, the ground looks.
pub(super) fn reach(coarse_span_cells: usize) -> usize {
    let levels = lattice_levels(coarse_span_cells);
    let top = covers(Window { col: 0, row: 0, cols: 1, rows: 1 }, 0, levels)[levels as usize];
    let west = (-top.col) as usize;
    let east = (top.col + top.cols as i64 - 1) as usize;
    west.max(east) << levels
}

/// The step noise of `terrain` at `sites`.
fn step_noise<'a>(terrain: &'a Terrain, step: Step, sites: Sites, options: &RefineOptions) -> StepNoise<'a> {
    let spacing_m = terrain.cell_m * sites.spacing as f64;
    StepNoise {
        key: NoiseKey::new(options.seed, spacing_m, u64::from(!matches!(step, Step::Corners(_)))),
        sites,
        shape: StepShape::of(step, lattice_levels(terrain.coarse_span_cells), terrain.cell_m, options),
        stencil: options.stencil,
        surface: &terrain.land.surface,
        placement: &terrain.land.placement,
    }
}

/// The nodes of level `last` and whether they hold elevations (or displacements still), from the top level down. `covers`
/// are the rectangles of the levels from `last` up.
fn descend(terrain: &Terrain, covers: &[Cover], last: u32, options: &RefineOptions) -> (Raster<f32>, bool) {
    let PlacedSurface { surface, placement } = &terrain.land;
    let levels = lattice_levels(terrain.coarse_span_cells);
    let quarter = levels.checked_sub(2);
    let drained = options.detail == Detail::Drained;
    let kernels = Kernels::new();
    let cover_of = |level: u32| covers[(level - last) as usize];
    // Displacements down to the quarter spacing, elevations below it.
    let mut z = Raster::filled(0, 0, 0f32);
    let mut whole = false;
    for level in (last..=levels).rev() {
        let cover = cover_of(level);
        let sites = Sites { col0: cover.col, row0: cover.row, spacing: 1 << level, offset: 0.0 };
        let parents = if level < levels { Parents::Twice(&z, cover_of(level + 1)) } else { Parents::None };
        let noise = step_noise(terrain, Step::Corners(level), sites, options);
        let smooth = (!whole).then(|| surface.elevations(sites, placement, cover.cols, cover.rows));
        z = if level == levels && surface.mode == CoarseMode::Point {
            Raster::filled(cover.cols, cover.rows, 0f32)
        } else if drained {
            noise.along_the_fall(parents, smooth.as_ref(), cover, &kernels)
        } else {
            noise.at_midpoints(parents, cover, level == levels)
        };
        let inside = drained.then(|| Inside::new(surface, placement, sites, (cover.cols, cover.rows)));
        let hold = |c: usize, r: usize| match &inside {
            Some(inside) if !inside.holds(c, r) => Hold::Beyond,
            _ => Hold::Free,
        };
        if Some(level) == quarter
            && let Some(smooth) = smooth
        {
            let everywhere = Weights::new(cover.cols, cover.rows, 1.0);
            let under = Under { surface, placement, sites, straddle: Straddle::None };
            let blocks = means::settle(&mut z, under, &everywhere, &|_, _, _: &mut [f32]| (), None);
            means::add(&mut z, under, &everywhere, &blocks.correction(under, |_| 0.0, 4));
            z.values.par_iter_mut().zip(&smooth.values).for_each(|(a, b)| *a += b);
            whole = true;
            if drained {
                (0..LONG_ROUNDS).for_each(|_| breach(&mut z, &hold, &LONG));
            }
        } else if whole && drained {
            (0..SHORT_ROUNDS).for_each(|_| breach(&mut z, &hold, &SHORT));
        }
    }
    (z, whole)
}

/// Elevations at the centres of the cells of `window`, metres.
///
/// `clip` bounds what is computed; it must hold the window and, as far as the ground reaches, all of the coarse raster
/// with a few cells to spare.
pub(super) fn build(terrain: &Terrain, window: Window, clip: Window, options: &RefineOptions) -> Raster<f32> {
    let PlacedSurface { surface, placement } = &terrain.land;
    let levels = lattice_levels(terrain.coarse_span_cells);
    let last = last_level(levels, options);
    let covers: Vec<Cover> = covers(window, last, levels)
        .into_iter()
        .zip(last..)
        .map(|(cover, level)| clipped(cover, clip, level))
        .collect();
    let (z, whole) = descend(terrain, &covers, last, options);
    let wide = clipped(window.grown(displacement::REACH), clip.grown(displacement::REACH), 0);
    let sites = Sites::centres(wide);
    let parents = if last == 0 { Parents::Corners(&z, covers[0]) } else { Parents::Pairs(&z, covers[0]) };
    let smooth = (!whole).then(|| surface.elevations(sites, placement, wide.cols, wide.rows));
    let step = if last == 0 { Step::HalfLevel } else { Step::Cells };
    let noise = step_noise(terrain, step, sites, options);
    let mut fine = if options.detail == Detail::Drained {
        noise.along_the_fall(parents, smooth.as_ref(), wide, &Kernels::new())
    } else {
        noise.at_midpoints(parents, wide, true)
    };
    if let Some(smooth) = smooth {
        fine.values.par_iter_mut().zip(&smooth.values).for_each(|(a, b)| *a += b);
    }
    let (col, row) = (window.col - wide.col, window.row - wide.row);
    crop_in_place(&mut fine, Window { col, row, cols: window.cols, rows: window.rows });
    fine
}

/// Keeps the cells of `window` alone, without a second raster.
pub(super) fn crop_in_place(z: &mut Raster<f32>, window: Window) {
    let (col, row) = (window.col as usize, window.row as usize);
    for r in 0..window.rows {
        let from = (row + r) * z.cols + col;
        z.values.copy_within(from..from + window.cols, r * window.cols);
    }
    z.values.truncate(window.cols * window.rows);
    (z.cols, z.rows) = (window.cols, window.rows);
}

/// Nodes of spacing 2^`level` cells inside `window`, as they are when that level is done.
#[cfg(test)]
pub(super) fn nodes(terrain: &Terrain, window: Window, level: u32, options: &RefineOptions) -> Raster<f32> {
    let levels = lattice_levels(terrain.coarse_span_cells);
    let covers: Vec<Cover> = covers(window, level, levels).into_iter().collect();
    let (mut z, whole) = descend(terrain, &covers, level, options);
    let (cover, s) = (covers[0], 1i64 << level);
    if !whole {
        let sites = Sites { col0: cover.col, row0: cover.row, spacing: s, offset: 0.0 };
        let smooth = terrain.land.surface.elevations(sites, &terrain.land.placement, cover.cols, cover.rows);
        z.values.iter_mut().zip(&smooth.values).for_each(|(a, b)| *a += b);
    }
    let (col, row) = (window.col.div_euclid(s), window.row.div_euclid(s));
    let size = ((window.cols as i64 >> level) as usize, (window.rows as i64 >> level) as usize);
    z.crop(Window { col: col - cover.col, row: row - cover.row, cols: size.0, rows: size.1 })
}

/// `cover` (nodes of spacing 2^level) without what lies more than a few nodes outside `clip` (cells).
fn clipped(cover: Cover, clip: Window, level: u32) -> Cover {
    const SPARE: i64 = 8;
    let s = 1i64 << level;
    let cut = |lo: i64, n: usize, clip_lo: i64, clip_n: usize| {
        let a = lo.max(clip_lo.div_euclid(s) - SPARE);
        let b = (lo + n as i64).min((clip_lo + clip_n as i64).div_euclid(s) + 1 + SPARE);
        (a, (b - a).max(1) as usize)
    };
    let (col, cols) = cut(cover.col, cover.cols, clip.col, clip.cols);
    let (row, rows) = cut(cover.row, cover.rows, clip.row, clip.rows);
    Window { col, row, cols, rows }
}
