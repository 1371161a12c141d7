//! Block means: the fine cells under one coarse cell average to its value.
//!
//! Sums are of whole steps of a fixed size, so their order cannot matter; the correction is a quadratic B-spline of the residuals
//! with compact support, so a window sees the same as the whole.

use super::lattice::Sites;
use super::overlap;
use super::placement::{Placement, Run, Runs, Uv};
use super::sparse::Sparse;
use super::surface::CoarseSurface;
use crate::grid::Window;
use crate::raster::Raster;
use rayon::prelude::*;
use std::collections::HashSet;
use std::sync::Mutex;

/// Steps in a metre that sums are rounded to.
const STEPS_PER_M: f64 = 16_384.0;
/// Added to a number and taken off again, this rounds it to whole steps.
const ROUNDING: f64 = 1.5 * (1u64 << 52) as f64 / STEPS_PER_M;

/// `x` metres in whole steps: sums of such numbers are exact, in any order, up to 2^53 steps, 5e11 m.
#[inline(always)]
fn stepped(x: f64) -> f64 {
    (x + ROUNDING) - ROUNDING
}
/// Taps each side of the centre of the inverse filter; the first one left out weighs 5e-5: of no matter below 200 m.
const TAPS: i64 = 7;
/// Blocks whose cells are on the average freer than the second share keep their mean; those less free than the first do not.
const HELD_SHARE: f64 = 0.1;
const FREE_SHARE: f64 = 0.4;
/// A correction smaller than this is left out, metres.
const LEAST_MOVE_M: f32 = 0.01;
/// How many coarse cells away one correction depends on the ground.
pub(super) const REACH_COARSE: usize = TAPS as usize + 3;

/// How freely each value may be moved, 0 to 1; below 0 where it does not count: water.
pub(super) type Weights = Sparse<f32>;

/// Where fine values lie over the coarse cells whose means they are to keep.
#[derive(Clone, Copy)]
pub(super) struct Under<'a> {
    pub(super) surface: &'a CoarseSurface,
    pub(super) placement: &'a Placement,
    pub(super) sites: Sites,
    pub(super) straddle: Straddle,
}

/// Sum, weight and count (cells, or units of area) of the fine cells of each coarse cell over a rectangle of the coarse raster.
pub(super) struct Blocks {
    frame: Window,
    /// What a whole cell counts.
    units: f64,
    sum: Vec<f64>,
    weight: Vec<i64>,
    count: Vec<u64>,
}

/// A spline that brings block means to the coarse values.
pub(super) struct Correction {
    frame: Window,
    coefficients: Vec<f32>,
    /// Whether it moves anything in a block.
    moves: Vec<bool>,
    /// Whether a block's mean may change by it: it moves something there, or in a cell that lies across the block's edge.
    dirty: Vec<bool>,
}

/// How the cells of a fine grid meet the coarse cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Straddle {
    /// The grids nest: each fine cell lies in one coarse cell.
    #[default]
    None,
    /// Fine cells lie across the edges of coarse ones, and are divided by area where means are taken.
    ByArea,
}

impl Straddle {
    /// What a whole fine cell counts.
    pub(super) fn units_in_cell(self) -> u64 {
        match self {
            Straddle::None => 1,
            Straddle::ByArea => overlap::WHOLE as u64,
        }
    }
}

/// How well a result returns the coarse values it was built from.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct MeanAgreement {
    /// Root mean square of (block mean - coarse value), metres.
    pub rms_m: f64,
    /// Its largest magnitude, metres.
    pub worst_m: f64,
    /// Blocks compared.
    pub blocks: u64,
}

/// Index in a rectangle of coarse cells of the one in column i and row j.
#[inline(always)]
fn index_in(frame: &Window, i: i64, j: i64) -> Option<usize> {
    let (c, r) = (i - frame.col, j - frame.row);
    (c >= 0 && r >= 0 && c < frame.cols as i64 && r < frame.rows as i64).then(|| r as usize * frame.cols + c as usize)
}

/// Rows that are worked on together: a good part of the nearest large cache.
fn rows_in_band(cols: usize) -> usize {
    const CELLS: usize = 1 << 17;
    (CELLS / cols.max(1)).clamp(1, 64)
}

/// Gathers `z` by coarse cells, as they are after `hold` (column of the first value, row, values) has put right what it must.
///
/// With `after`, its correction is added first, and only where it moves anything are cells held and means taken anew: the
/// others stay as the given blocks have them. Cost: one pass.
pub(super) fn settle(
    z: &mut Raster<f32>,
    under: Under,
    weight: &Weights,
    hold: &(impl Fn(usize, usize, &mut [f32]) + Sync),
    after: Option<(Correction, Blocks)>,
) -> Blocks {
    let cols = z.cols;
    let frame = coarse_frame(under.sites, 0, (cols, z.rows), under.placement);
    let (correction, total) = match after {
        Some((correction, before)) => {
            let kept = before.without(&correction.dirty);
            (Some(correction), kept)
        }
        None => (None, Blocks::empty(frame, under.straddle)),
    };
    let correction = correction.as_ref();
    let total = Mutex::new(total);
    let band_rows = rows_in_band(cols);
    z.values.par_chunks_mut(band_rows * cols).enumerate().for_each_init(Runs::default, |runs, (b, band)| {
        let row0 = b * band_rows;
        let frame = coarse_frame(under.sites, row0, (cols, band.len() / cols), under.placement);
        if correction.is_some_and(|c| !c.is_dirty_in(&frame)) {
            return;
        }
        let mut part = Blocks::empty(frame, under.straddle);
        settle_band(band, row0, cols, under, weight, hold, correction, &mut part, runs);
        if let Ok(mut total) = total.lock() {
            total.take_in(&part);
        }
    });
    total.into_inner().unwrap_or_else(|_| Blocks::empty(frame, under.straddle))
}

/// The rows from `row0` on of [`settle`].
#[multiversion::multiversion(targets("x86_64+avx+avx2"))]
#[allow(clippy::too_many_arguments)]
fn settle_band<H: Fn(usize, usize, &mut [f32]) + Sync>(
    band: &mut [f32],
    row0: usize,
    cols: usize,
    under: Under,
    weight: &Weights,
    hold: &H,
    correction: Option<&Correction>,
    part: &mut Blocks,
    runs: &mut Runs,
) {
    let Under { placement, sites, straddle, .. } = under;
    let mut corners = Vec::new();
    for (k, row) in band.chunks_mut(cols).enumerate() {
        let r = row0 + k;
        for run in placement.runs(sites.row(r), cols, 0.0, runs) {
            let mut fresh = true;
            if let Some(correction) = correction {
                let Some(block) = index_in(&correction.frame, run.i, run.j) else { continue };
                fresh = correction.dirty[block];
                if correction.moves[block] {
                    correction.add_run(&mut row[run.start..run.end], r, run, weight);
                }
            }
            if fresh {
                hold(run.start, r, &mut row[run.start..run.end]);
                if straddle == Straddle::None {
                    part.add_run(&row[run.start..run.end], r, run, weight);
                }
            }
        }
        if straddle == Straddle::ByArea {
            let is_fresh =
                |i, j| correction.is_none_or(|c| index_in(&c.frame, i, j).is_some_and(|block| c.dirty[block]));
            part.add_by_area(row, r, sites, placement, weight, &is_fresh, &mut corners);
        }
    }
}

/// Adds a correction to `z`, each cell's share by its weight. Cost: one pass over what it moves.
pub(super) fn add(z: &mut Raster<f32>, under: Under, weight: &Weights, correction: &Correction) {
    let cols = z.cols;
    let band_rows = rows_in_band(cols);
    z.values.par_chunks_mut(band_rows * cols).enumerate().for_each_init(Runs::default, |runs, (b, band)| {
        let row0 = b * band_rows;
        let frame = coarse_frame(under.sites, row0, (cols, band.len() / cols), under.placement);
        if correction.is_dirty_in(&frame) {
            add_to_band(band, row0, cols, under, weight, correction, runs);
        }
    });
}

/// The rows from `row0` on of [`add`].
#[multiversion::multiversion(targets("x86_64+avx+avx2"))]
fn add_to_band(
    band: &mut [f32],
    row0: usize,
    cols: usize,
    under: Under,
    weight: &Weights,
    correction: &Correction,
    runs: &mut Runs,
) {
    for (k, row) in band.chunks_mut(cols).enumerate() {
        let r = row0 + k;
        for run in under.placement.runs(under.sites.row(r), cols, 0.0, runs) {
            if index_in(&correction.frame, run.i, run.j).is_some_and(|block| correction.moves[block]) {
                correction.add_run(&mut row[run.start..run.end], r, run, weight);
            }
        }
    }
}

impl Blocks {
    fn empty(frame: Window, straddle: Straddle) -> Blocks {
        let n = frame.cols * frame.rows;
        Blocks {
            frame,
            units: straddle.units_in_cell() as f64,
            sum: vec![0.0; n],
            weight: vec![0; n],
            count: vec![0; n],
        }
    }

    /// The same without what was gathered for the blocks marked.
    fn without(mut self, marked: &[bool]) -> Blocks {
        for i in marked.iter().enumerate().filter(|(_, m)| **m).map(|(i, _)| i) {
            (self.sum[i], self.weight[i], self.count[i]) = (0.0, 0, 0);
        }
        self
    }

    /// Adds what `part` has gathered; whole steps, so that the order of parts does not matter.
    fn take_in(&mut self, part: &Blocks) {
        for j in 0..part.frame.rows {
            for i in 0..part.frame.cols {
                let from = j * part.frame.cols + i;
                if part.count[from] == 0 {
                    continue;
                }
                let (c, r) = (part.frame.col + i as i64, part.frame.row + j as i64);
                if let Some(to) = index_in(&self.frame, c, r) {
                    self.sum[to] += part.sum[from];
                    self.weight[to] += part.weight[from];
                    self.count[to] += part.count[from];
                }
            }
        }
    }

    /// Adds the values of a run, which lie in one block.
    #[inline(always)]
    fn add_run(&mut self, values: &[f32], r: usize, run: &Run, weight: &Weights) {
        let Some(block) = index_in(&self.frame, run.i, run.j) else { return };
        if all_free(weight, run, r) {
            // Differences from the first value: equal values give their mean to the bit.
            let first = values[0];
            let mut lanes = [0f32; 8];
            let (eights, rest) = values.as_chunks::<8>();
            for eight in eights {
                (0..8).for_each(|i| lanes[i] += eight[i] - first);
            }
            rest.iter().enumerate().for_each(|(i, v)| lanes[i] += v - first);
            let fours = [lanes[0] + lanes[4], lanes[1] + lanes[5], lanes[2] + lanes[6], lanes[3] + lanes[7]];
            let sum = (fours[0] + fours[2]) + (fours[1] + fours[3]);
            let sum = f64::from(first) * values.len() as f64 + f64::from(sum);
            self.sum[block] += stepped(sum);
            self.weight[block] += 256 * values.len() as i64;
            self.count[block] += values.len() as u64;
            return;
        }
        for (k, &v) in values.iter().enumerate() {
            let share = weight.at(run.start + k, r);
            if share >= 0.0 {
                self.sum[block] += stepped(f64::from(v));
                self.weight[block] += i64::from((share * 256.0) as i32);
                self.count[block] += 1;
            }
        }
    }

    /// Adds the values of row `r`, each value's cell divided by area over the blocks that are `fresh`. `corners` is scratch.
    #[allow(clippy::too_many_arguments)]
    fn add_by_area(
        &mut self,
        row: &[f32],
        r: usize,
        sites: Sites,
        placement: &Placement,
        weight: &Weights,
        is_fresh: &impl Fn(i64, i64) -> bool,
        corners: &mut Vec<Uv>,
    ) {
        let at = Sites { offset: sites.offset - 0.5, ..sites };
        let n = row.len() + 1;
        // The corners above, then those below.
        corners.clear();
        placement.places(at.row(r), n, corners);
        placement.places(at.row(r + 1), n, corners);
        let (above, below) = corners.split_at(n);
        for (c, &v) in row.iter().enumerate() {
            let share = weight.at(c, r);
            if share < 0.0 {
                continue;
            }
            let value = f64::from(v) / self.units;
            let share = i64::from((share * 256.0) as i32);
            overlap::divide([above[c], above[c + 1], below[c + 1], below[c]], |i, j, area| {
                if let Some(block) = index_in(&self.frame, i, j)
                    && is_fresh(i, j)
                {
                    self.sum[block] += stepped(value * area as f64);
                    self.weight[block] += share * area;
                    self.count[block] += area as u64;
                }
            });
        }
    }

    /// Mean of block `i`, metres.
    fn mean(&self, i: usize) -> f64 {
        self.sum[i] * self.units / self.count[i] as f64
    }

    fn target(&self, i: usize, surface: &CoarseSurface) -> f32 {
        let (c, r) = (self.frame.col + (i % self.frame.cols) as i64, self.frame.row + (i / self.frame.cols) as i64);
        surface.value_under(Uv { u: c as f64 + 0.5, v: r as f64 + 0.5 })
    }

    /// Coarse value minus block mean, scaled up where only part of the block may move; zero where either is unknown.
    fn residuals(&self, surface: &CoarseSurface, aim: impl Fn(f32) -> f32 + Sync) -> Vec<f32> {
        (0..self.sum.len())
            .into_par_iter()
            .map(|i| {
                let target = self.target(i, surface);
                if self.count[i] == 0 || !target.is_finite() {
                    return 0.0;
                }
                let gap = f64::from(aim(target)) - self.mean(i);
                // Below the rounding of the sums: means of equal values need no correction.
                if gap.abs() <= 1.0 / STEPS_PER_M {
                    return 0.0;
                }
                if self.weight[i] == 256 * self.count[i] as i64 {
                    return gap as f32;
                }
                let share = self.weight[i] as f64 / 256.0 / self.count[i] as f64;
                // A block that a river or a summit shapes almost alone gives way: pressed back to its mean, its free part
                // would stand up as a rim.
                let freedom = ((share - HELD_SHARE) / (FREE_SHARE - HELD_SHARE)).clamp(0.0, 1.0);
                (freedom * gap / share.max(HELD_SHARE)) as f32
            })
            .collect()
    }

    /// The spline that brings the block means to `aim` of the coarse values. `across`: about how many values there are along a
    /// block's side.
    pub(super) fn correction(&self, under: Under, aim: impl Fn(f32) -> f32 + Sync, across: usize) -> Correction {
        let coefficients = self.sharpen(&self.residuals(under.surface, aim), across);
        let (cols, rows) = (self.frame.cols, self.frame.rows);
        let near = |i: usize, at: &dyn Fn(usize) -> bool| {
            let (c, r) = (i % cols, i / cols);
            let rows = r.saturating_sub(1)..(r + 2).min(rows);
            rows.into_iter().any(|y| (c.saturating_sub(1)..(c + 2).min(cols)).any(|x| at(y * cols + x)))
        };
        // Too little to matter, as in most blocks after the first round; none at the rim of the frame, where it is not known.
        let inside = |i: usize| (1..cols - 1).contains(&(i % cols)) && (1..rows - 1).contains(&(i / cols));
        let moves: Vec<bool> = (0..cols * rows)
            .into_par_iter()
            .map(|i| inside(i) && near(i, &|k| coefficients[k].abs() >= LEAST_MOVE_M))
            .collect();
        let dirty = match under.straddle {
            Straddle::None => moves.clone(),
            Straddle::ByArea => (0..cols * rows).into_par_iter().map(|i| near(i, &|k| moves[k])).collect(),
        };
        Correction { frame: self.frame, coefficients, moves, dirty }
    }

    /// Spline coefficients whose block means are the residuals: along each axis a truncated inverse of (a, 1 - 2a, a), the
    /// mean of the quadratic B-spline over the centres of `across` cells (1/6 for many).
    fn sharpen(&self, residuals: &[f32], across: usize) -> Vec<f32> {
        let n = across as f64;
        let a = 0.5 * (1.0 / 3.0 - 1.0 / (12.0 * n * n));
        let pole = ((1.0 - 4.0 * a).sqrt() - (1.0 - 2.0 * a)) / (2.0 * a);
        let mut taps: Vec<f64> = (-TAPS..=TAPS).map(|k| pole.powi(k.abs() as i32)).collect();
        let sum: f64 = taps.iter().sum();
        taps.iter_mut().for_each(|t| *t /= sum);
        let taps: Vec<f32> = taps.into_iter().map(|t| t as f32).collect();
        let (cols, rows) = (self.frame.cols, self.frame.rows);
        // Along each row, nothing beyond its ends; then along the columns.
        let mut along = vec![0f32; cols * rows];
        along.par_chunks_mut(cols).zip(residuals.par_chunks(cols)).for_each(|(out, from)| {
            for (k, t) in taps.iter().enumerate() {
                let (shift, back) = (k.saturating_sub(TAPS as usize), (TAPS as usize).saturating_sub(k));
                if shift < cols && back < cols {
                    out[back..].iter_mut().zip(&from[shift..]).for_each(|(v, r)| *v += t * r);
                }
            }
        });
        let mut down = vec![0f32; cols * rows];
        down.par_chunks_mut(cols).enumerate().for_each(|(r, out)| {
            for (k, t) in taps.iter().enumerate() {
                if let Some(from) = (r + k).checked_sub(TAPS as usize).filter(|from| *from < rows) {
                    out.iter_mut().zip(&along[from * cols..]).for_each(|(v, a)| *v += t * a);
                }
            }
        });
        down
    }

    /// Agreement over the blocks at least `min_count` cells large and, with `held`, of those whose cells are all of weight 1
    /// and which are not in it.
    pub(super) fn agreement(
        &self,
        surface: &CoarseSurface,
        min_count: u64,
        held: Option<&HashSet<(i64, i64)>>,
    ) -> MeanAgreement {
        let (mut sum2, mut worst, mut n) = (0.0, 0f64, 0u64);
        for i in 0..self.sum.len() {
            let target = f64::from(self.target(i, surface));
            if self.count[i] < min_count.max(1) || !target.is_finite() {
                continue;
            }
            if let Some(held) = held {
                let cell =
                    (self.frame.col + (i % self.frame.cols) as i64, self.frame.row + (i / self.frame.cols) as i64);
                if self.weight[i] != 256 * self.count[i] as i64 || held.contains(&cell) {
                    continue;
                }
            }
            let d = (self.mean(i) - target).abs();
            sum2 += d * d;
            worst = worst.max(d);
            n += 1;
        }
        MeanAgreement { rms_m: if n > 0 { (sum2 / n as f64).sqrt() } else { 0.0 }, worst_m: worst, blocks: n }
    }
}

impl Correction {
    /// Whether any block of `frame` may change.
    fn is_dirty_in(&self, frame: &Window) -> bool {
        let rows = (frame.row.max(self.frame.row)
            ..(frame.row + frame.rows as i64).min(self.frame.row + self.frame.rows as i64))
            .map(|r| (r - self.frame.row) as usize);
        rows.into_iter().any(|r| self.dirty[r * self.frame.cols..(r + 1) * self.frame.cols].contains(&true))
    }

    /// Adds the spline to the values of a run of row `r`.
    #[inline(always)]
    fn add_run(&self, values: &mut [f32], r: usize, run: &Run, weight: &Weights) {
        let cols = self.frame.cols;
        let first = (run.j - self.frame.row - 1) as usize * cols + (run.i - self.frame.col - 1) as usize;
        let row = |k: usize| {
            let q = &self.coefficients[first + k * cols..][..3];
            [q[0], q[1], q[2]]
        };
        let q = [row(0), row(1), row(2)];
        if !all_free(weight, run, r) {
            for ((v, (x, y)), c) in values.iter_mut().zip(run.places()).zip(run.start..) {
                *v += weight.at(c, r).max(0.0) * quadratic(&q, x, y);
            }
        } else if run.dy == 0.0 {
            // One height: a parabola along the row.
            let w = spline_weights(run.y);
            let [a, b, c] = [0, 1, 2].map(|i| w[0] * q[0][i] + w[1] * q[1][i] + w[2] * q[2][i]);
            let (k0, k1, k2) = (0.5 * (a + b), b - a, 0.5 * ((a - b) + (c - b)));
            for (v, (x, _)) in values.iter_mut().zip(run.places()) {
                *v += k0 + x * (k1 + x * k2);
            }
        } else {
            for (v, (x, y)) in values.iter_mut().zip(run.places()) {
                *v += quadratic(&q, x, y);
            }
        }
    }
}

/// Whether all cells of a run move freely: so told that it does not matter how the weights are kept.
#[inline(always)]
fn all_free(weight: &Weights, run: &Run, r: usize) -> bool {
    weight.flat(run.start, run.end, r) == Some(1.0) || (run.start..run.end).all(|c| weight.at(c, r) == 1.0)
}

/// Weights of the quadratic B-splines of three neighbouring blocks at `t` inside the middle one.
#[inline(always)]
fn spline_weights(t: f32) -> [f32; 3] {
    let s = 1.0 - t;
    [0.5 * s * s, 0.5 + t * s, 0.5 * t * t]
}

/// The quadratic B-spline of nine coefficients at (x, y) inside the middle block, both 0 to 1.
#[inline(always)]
fn quadratic(q: &[[f32; 3]; 3], x: f32, y: f32) -> f32 {
    let (wx, wy) = (spline_weights(x), spline_weights(y));
    let row = |q: &[f32; 3]| wx[0] * q[0] + wx[1] * q[1] + wx[2] * q[2];
    wy[0] * row(&q[0]) + wy[1] * row(&q[1]) + wy[2] * row(&q[2])
}

/// The rectangle of coarse cells under the values of `rows` rows from `row0` on, two cells wider on each side.
fn coarse_frame(sites: Sites, row0: usize, (cols, rows): (usize, usize), placement: &Placement) -> Window {
    let (mut u0, mut v0, mut u1, mut v1) = (f64::MAX, f64::MAX, f64::MIN, f64::MIN);
    let mut see = |c: usize, r: usize| {
        let p = sites.place(placement, c as i64, (row0 + r) as i64);
        u0 = u0.min(p.u);
        u1 = u1.max(p.u);
        v0 = v0.min(p.v);
        v1 = v1.max(p.v);
    };
    // A smooth one-to-one map takes its extremes on the rim. Values between two that are looked at lie on a line between
    // nodes, so that none is farther out than the spare cells.
    let step = (Placement::STEP / sites.spacing as usize).max(1);
    for c in (0..cols).step_by(step).chain([cols - 1]) {
        see(c, 0);
        see(c, rows - 1);
    }
    for r in (0..rows).step_by(step).chain([rows - 1]) {
        see(0, r);
        see(cols - 1, r);
    }
    let (c0, r0) = (u0.floor() as i64 - 2, v0.floor() as i64 - 2);
    Window {
        col: c0,
        row: r0,
        cols: (u1.floor() as i64 + 3 - c0) as usize,
        rows: (v1.floor() as i64 + 3 - r0) as usize,
    }
}
