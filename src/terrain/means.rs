//! Block means: the fine cells under one coarse cell average to its value.
//!
//! Sums are taken in fixed point, so their order cannot matter; the correction is a quadratic B-spline of the residuals
//! with compact support, so a window sees the same as the whole.

use super::lattice::Sites;
use super::overlap;
use super::placement::{Placement, Run, Uv, whole_below};
use super::sparse::Sparse;
use super::surface::CoarseSurface;
use crate::grid::Window;
use crate::raster::Raster;
use rayon::prelude::*;

/// Fixed-point steps in a metre.
const STEPS_PER_M: f64 = 65_536.0;
/// Taps each side of the centre of the inverse filter; the first one left out weighs at most 2e-4: the next round takes it.
const TAPS: i64 = 4;
/// Blocks whose cells are on the average freer than the second share keep their mean; those less free than the first do not.
const HELD_SHARE: f64 = 0.1;
const FREE_SHARE: f64 = 0.4;
/// A correction smaller than this is left out, metres.
const LEAST_MOVE_M: f32 = 0.01;
/// How many coarse cells away one correction depends on the ground.
pub(super) const REACH_COARSE: usize = TAPS as usize + 3;

/// How freely each value may be moved, 0 to 1; below 0 where it does not count: water.
pub(super) type Weights = Sparse<f32>;

/// Sum, weight and count (cells, or units of area) of the fine cells of each coarse cell over a rectangle of the coarse raster.
pub(super) struct Blocks {
    col0: i64,
    row0: i64,
    cols: usize,
    rows: usize,
    sum: Vec<i64>,
    weight: Vec<i64>,
    count: Vec<u64>,
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

impl Blocks {
    /// Index of the coarse cell in column i and row j.
    fn index(&self, i: i64, j: i64) -> Option<usize> {
        let (c, r) = (i - self.col0, j - self.row0);
        (c >= 0 && r >= 0 && c < self.cols as i64 && r < self.rows as i64).then(|| r as usize * self.cols + c as usize)
    }

    /// Gathers `z` by the coarse cells that the values' cells lie in, those that lie across several as `straddle` says. Cost: one
    /// pass.
    pub(super) fn gather(
        z: &Raster<f32>,
        sites: Sites,
        straddle: Straddle,
        placement: &Placement,
        weight: &Weights,
    ) -> Blocks {
        let frame = coarse_frame(sites, (z.cols, z.rows), placement);
        let empty = || Blocks {
            col0: frame.col,
            row0: frame.row,
            cols: frame.cols,
            rows: frame.rows,
            sum: vec![0; frame.cols * frame.rows],
            weight: vec![0; frame.cols * frame.rows],
            count: vec![0; frame.cols * frame.rows],
        };
        let threads = rayon::current_num_threads();
        let band = z.rows.div_ceil(threads).max(1);
        z.values
            .par_chunks(band * z.cols)
            .enumerate()
            .map(|(b, values)| {
                let mut blocks = empty();
                if straddle == Straddle::ByArea {
                    blocks.add_by_area(values, b * band, z.cols, sites, placement, weight);
                    return blocks;
                }
                for (k, row) in values.chunks(z.cols).enumerate() {
                    let r = b * band + k;
                    placement.runs(sites.row(r), row.len(), 0.0, |run| blocks.add_run(row, r, &run, weight));
                }
                blocks
            })
            .reduce(empty, |mut a, b| {
                for i in 0..a.sum.len() {
                    a.sum[i] += b.sum[i];
                    a.weight[i] += b.weight[i];
                    a.count[i] += b.count[i];
                }
                a
            })
    }

    /// Adds the values of row `r` that lie in one block.
    #[inline]
    fn add_run(&mut self, row: &[f32], r: usize, run: &Run, weight: &Weights) {
        let Some(block) = self.index(run.i, run.j) else { return };
        let values = &row[run.start..run.end];
        if all_free(weight, run, r) {
            // Differences from the first value: equal values give their mean to the bit.
            let first = values[0];
            let mut lanes = [0f32; 4];
            let mut fours = values.chunks_exact(4);
            for four in &mut fours {
                (0..4).for_each(|i| lanes[i] += four[i] - first);
            }
            let rest: f32 = fours.remainder().iter().map(|v| v - first).sum();
            let sum = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]) + rest;
            let sum = f64::from(first) * values.len() as f64 + f64::from(sum);
            self.sum[block] += whole_below(sum * STEPS_PER_M + 0.5);
            self.weight[block] += 256 * values.len() as i64;
            self.count[block] += values.len() as u64;
            return;
        }
        for (k, &v) in values.iter().enumerate() {
            let share = weight.at(run.start + k, r);
            if share >= 0.0 {
                self.sum[block] += whole_below(f64::from(v) * STEPS_PER_M + 0.5);
                self.weight[block] += i64::from((share * 256.0) as i32);
                self.count[block] += 1;
            }
        }
    }

    /// Adds the rows from `row0` on of a raster `cols` wide, each value's cell divided by area.
    fn add_by_area(
        &mut self,
        values: &[f32],
        row0: usize,
        cols: usize,
        sites: Sites,
        placement: &Placement,
        weight: &Weights,
    ) {
        let corners = Sites { offset: sites.offset - 0.5, ..sites };
        let corner_row =
            |l: usize| -> Vec<Uv> { (0..=cols).map(|k| corners.place(placement, k as i64, l as i64)).collect() };
        let mut below = corner_row(row0);
        for (k, row) in values.chunks(cols).enumerate() {
            let above = std::mem::replace(&mut below, corner_row(row0 + k + 1));
            for (c, &v) in row.iter().enumerate() {
                let share = weight.at(c, row0 + k);
                if share < 0.0 {
                    continue;
                }
                let steps = whole_below(f64::from(v) * STEPS_PER_M + 0.5);
                let share = i64::from((share * 256.0) as i32);
                overlap::divide([above[c], above[c + 1], below[c + 1], below[c]], |i, j, area| {
                    if let Some(block) = self.index(i, j) {
                        self.sum[block] += steps * area;
                        self.weight[block] += share * area;
                        self.count[block] += area as u64;
                    }
                });
            }
        }
    }

    /// Mean of block `i`, metres.
    fn mean(&self, i: usize) -> f64 {
        self.sum[i] as f64 / STEPS_PER_M / self.count[i] as f64
    }

    fn target(&self, i: usize, surface: &CoarseSurface) -> f32 {
        let (c, r) = (self.col0 + (i % self.cols) as i64, self.row0 + (i / self.cols) as i64);
        surface.value_under(Uv { u: c as f64 + 0.5, v: r as f64 + 0.5 })
    }

    /// Coarse value minus block mean, scaled up where only part of the block may move; zero where either is unknown.
    fn residuals(&self, surface: &CoarseSurface, aim: impl Fn(f32) -> f32) -> Vec<f32> {
        (0..self.sum.len())
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
                let share = self.weight[i] as f64 / 256.0 / self.count[i] as f64;
                // A block that a river or a summit shapes almost alone gives way: pressed back to its mean, its free part
                // would stand up as a rim.
                let freedom = ((share - HELD_SHARE) / (FREE_SHARE - HELD_SHARE)).clamp(0.0, 1.0);
                (freedom * gap / share.max(HELD_SHARE)) as f32
            })
            .collect()
    }

    /// Adds to `z` the spline that brings the block means to the coarse values, times each cell's weight. `across`: about how
    /// many values of `z` there are along a block's side.
    pub(super) fn correct(
        &self,
        surface: &CoarseSurface,
        z: &mut Raster<f32>,
        sites: Sites,
        placement: &Placement,
        across: usize,
        weight: &Weights,
    ) {
        self.add(&self.residuals(surface, |target| target), z, sites, placement, across, weight);
    }

    /// The same, for means of zero wherever there is a coarse value.
    pub(super) fn correct_to_zero(
        &self,
        surface: &CoarseSurface,
        z: &mut Raster<f32>,
        sites: Sites,
        placement: &Placement,
        across: usize,
        weight: &Weights,
    ) {
        self.add(&self.residuals(surface, |_| 0.0), z, sites, placement, across, weight);
    }

    fn add(
        &self,
        residuals: &[f32],
        z: &mut Raster<f32>,
        sites: Sites,
        placement: &Placement,
        across: usize,
        weight: &Weights,
    ) {
        let coefficients = self.sharpen(residuals, across);
        let cols = z.cols;
        z.values.par_chunks_mut(cols).enumerate().for_each(|(r, row)| {
            placement.runs(sites.row(r), cols, 0.0, |run| {
                let Some(q) = self.around(&coefficients, run.i, run.j) else { return };
                // Too little to matter: as most blocks are after the first round.
                if q.iter().flatten().all(|v| v.abs() < LEAST_MOVE_M) {
                    return;
                }
                let values = &mut row[run.start..run.end];
                if !all_free(weight, &run, r) {
                    for (m, v) in values.iter_mut().enumerate() {
                        let (x, y) = run.at(m);
                        *v += weight.at(run.start + m, r).max(0.0) * quadratic(&q, x, y);
                    }
                } else if run.dy == 0.0 {
                    // One height: a parabola along the row.
                    let w = spline_weights(run.y);
                    let [a, b, c] = [0, 1, 2].map(|i| w[0] * q[0][i] + w[1] * q[1][i] + w[2] * q[2][i]);
                    let (k0, k1, k2) = (0.5 * (a + b), b - a, 0.5 * ((a - b) + (c - b)));
                    for (m, v) in values.iter_mut().enumerate() {
                        let x = run.x + (run.t + m as f32 * run.dt) * run.dx;
                        *v += k0 + x * (k1 + x * k2);
                    }
                } else {
                    for (m, v) in values.iter_mut().enumerate() {
                        let (x, y) = run.at(m);
                        *v += quadratic(&q, x, y);
                    }
                }
            });
        });
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
        let filter =
            |from: &[f32], stride: usize, along: usize, position: &(dyn Fn(usize) -> usize + Sync)| -> Vec<f32> {
                (0..from.len())
                    .into_par_iter()
                    .map(|i| {
                        let at = position(i) as i64;
                        let mut sum = 0.0;
                        for (k, t) in taps.iter().enumerate() {
                            let o = k as i64 - TAPS;
                            if at + o >= 0 && at + o < along as i64 {
                                sum += t * f64::from(from[(i as i64 + o * stride as i64) as usize]);
                            }
                        }
                        sum as f32
                    })
                    .collect()
            };
        let rows = filter(residuals, 1, self.cols, &|i| i % self.cols);
        filter(&rows, self.cols, self.rows, &|i| i / self.cols)
    }

    /// The nine coefficients that act inside block (i, j); `None` at the rim of the frame.
    #[inline]
    fn around(&self, coefficients: &[f32], i: i64, j: i64) -> Option<[[f32; 3]; 3]> {
        let (c, r) = (i - self.col0 - 1, j - self.row0 - 1);
        if c < 0 || r < 0 || c + 3 > self.cols as i64 || r + 3 > self.rows as i64 {
            return None;
        }
        let at = r as usize * self.cols + c as usize;
        let row = |k: usize| {
            let q = &coefficients[at + k * self.cols..at + k * self.cols + 3];
            [q[0], q[1], q[2]]
        };
        Some([row(0), row(1), row(2)])
    }

    /// Agreement over the blocks for which `accept(block index among fine cells)` holds: those at least `min_count` cells
    /// large and, when `free_only`, wholly of weight 1.
    pub(super) fn agreement(&self, surface: &CoarseSurface, min_count: u64, free_only: bool) -> MeanAgreement {
        let (mut sum2, mut worst, mut n) = (0.0, 0f64, 0u64);
        for i in 0..self.sum.len() {
            let target = f64::from(self.target(i, surface));
            let free = self.weight[i] == 256 * self.count[i] as i64;
            if self.count[i] < min_count.max(1) || !target.is_finite() || (free_only && !free) {
                continue;
            }
            let d = (self.mean(i) - target).abs();
            sum2 += d * d;
            worst = worst.max(d);
            n += 1;
        }
        MeanAgreement { rms_m: if n > 0 { (sum2 / n as f64).sqrt() } else { 0.0 }, worst_m: worst, blocks: n }
    }
}

/// Whether all cells of a run move freely: so told that it does not matter which squares of the weights are kept.
#[inline]
fn all_free(weight: &Weights, run: &Run, r: usize) -> bool {
    weight.is_default(run.start, run.end, r) || (run.start..run.end).all(|c| weight.at(c, r) == 1.0)
}

/// Weights of the quadratic B-splines of three neighbouring blocks at `t` inside the middle one.
#[inline]
fn spline_weights(t: f32) -> [f32; 3] {
    let s = 1.0 - t;
    [0.5 * s * s, 0.5 + t * s, 0.5 * t * t]
}

/// The quadratic B-spline of nine coefficients at (x, y) inside the middle block, both 0 to 1.
#[inline]
fn quadratic(q: &[[f32; 3]; 3], x: f32, y: f32) -> f32 {
    let (wx, wy) = (spline_weights(x), spline_weights(y));
    let row = |q: &[f32; 3]| wx[0] * q[0] + wx[1] * q[1] + wx[2] * q[2];
    wy[0] * row(&q[0]) + wy[1] * row(&q[1]) + wy[2] * row(&q[2])
}

/// The rectangle of coarse cells under `window`, two cells wider on each side.
fn coarse_frame(sites: Sites, (cols, rows): (usize, usize), placement: &Placement) -> Window {
    let (mut u0, mut v0, mut u1, mut v1) = (f64::MAX, f64::MAX, f64::MIN, f64::MIN);
    let mut see = |c: i64, r: i64| {
        let p = sites.place(placement, c, r);
        u0 = u0.min(p.u);
        u1 = u1.max(p.u);
        v0 = v0.min(p.v);
        v1 = v1.max(p.v);
    };
    // A smooth one-to-one map takes its extremes on the rim.
    for c in 0..cols as i64 {
        see(c, 0);
        see(c, rows as i64 - 1);
    }
    for r in 0..rows as i64 {
        see(0, r);
        see(cols as i64 - 1, r);
    }
    let (c0, r0) = (u0.floor() as i64 - 2, v0.floor() as i64 - 2);
    Window {
        col: c0,
        row: r0,
        cols: (u1.floor() as i64 + 3 - c0) as usize,
        rows: (v1.floor() as i64 + 3 - r0) as usize,
    }
}
