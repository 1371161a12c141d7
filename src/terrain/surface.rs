//! A coarse elevation raster as a continuous surface: voids filled, means kept, roughness estimated.
//!
//! The surface is a cubic B-spline whose mean over every coarse cell equals that cell's value (mode mean), or which passes
//! through the value at the cell's centre (mode point). Means are never treated as nodes: that flattens peaks.
//! B-spline prefiltering after Unser, Aldroubi and Eden (1993); the mean over a unit cell of a cubic B-spline is the
//! quartic B-spline sampled at the integers, (1, 76, 230, 76, 1)/384.

use super::lattice::Sites;
use super::noise::NoiseKey;
use super::placement::{Placement, RowOf, Run, Runs, Uv, whole_below};
use crate::raster::Raster;
use rayon::prelude::*;

/// What a coarse value stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CoarseMode {
    /// The mean over its cell.
    #[default]
    Mean,
    /// The elevation at its cell's centre.
    Point,
}

/// A coarse raster prepared for refinement. Immutable; made once from the whole raster, so that every window sees the same.
#[derive(Debug, Clone)]
pub struct CoarseSurface {
    /// Given values, metres; NaN where void.
    pub values: Raster<f32>,
    /// Size of a coarse cell on the ground, metres (the mean of its width and height).
    pub cell_m: f64,
    /// What a value stands for.
    pub mode: CoarseMode,
    coefficients: Raster<f32>,
    /// Fourth roots of the amplitude.
    sigma: Raster<f32>,
}

/// How the amplitude of the detail follows from the coarse values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RoughnessModel {
    /// Factor on all amplitudes; 1 is neutral, 0 gives the bare spline.
    pub gain: f64,
    /// Rounding step of the coarse values, metres (1 for integers): curvature below it is not relief.
    pub quantum_m: f64,
}

impl Default for RoughnessModel {
    fn default() -> Self {
        RoughnessModel { gain: 1.0, quantum_m: 0.0 }
    }
}

impl CoarseSurface {
    /// The surface through `values` (NaN = void), cells of `cell_m` metres.
    ///
    /// Voids are filled smoothly from their rim; an all-void raster is a plane at 0.
    pub fn new(values: Raster<f32>, cell_m: f64, mode: CoarseMode, roughness: &RoughnessModel) -> Self {
        let filled = fill_voids(&values);
        let coefficients = match mode {
            CoarseMode::Mean => prefilter(&filled, &MEAN_POLES),
            CoarseMode::Point => prefilter(&filled, &POINT_POLES),
        };
        let sigma = detail_amplitude(&filled, cell_m, roughness);
        CoarseSurface { values, cell_m, mode, coefficients, sigma }
    }

    /// Elevation of the smooth surface at `p`, metres. Beyond the raster it is mirrored.
    #[inline]
    pub fn elevation(&self, p: Uv) -> f64 {
        cubic_at(&self.coefficients, p)
    }

    /// Standard deviation of the true ground about the smooth surface at `p`, metres, as estimated from the coarse values.
    #[inline]
    pub fn sigma(&self, p: Uv) -> f32 {
        let root = linear_at(&self.sigma, p);
        let square = root * root;
        square * square
    }

    /// Elevations of the smooth surface at the sites of a raster.
    pub(super) fn elevations(&self, sites: Sites, placement: &Placement, cols: usize, rows: usize) -> Raster<f32> {
        let mut out = Raster::filled(cols, rows, 0f32);
        out.values.par_chunks_mut(cols).enumerate().for_each_init(Runs::default, |runs, (l, row)| {
            let runs = placement.runs(sites.row(l), cols, 0.5, runs);
            elevations_along(&self.coefficients, runs, row);
        });
        out
    }

    /// [`CoarseSurface::sigma`] along a row of lattice points, times `gain`. `runs` is scratch.
    #[inline(always)]
    pub(super) fn sigma_row(&self, placement: &Placement, row: RowOf, gain: f32, runs: &mut Runs, out: &mut [f32]) {
        let (w, h) = (self.sigma.cols as i64, self.sigma.rows as i64);
        let s = &self.sigma;
        for run in placement.runs(row, out.len(), 0.5, runs) {
            let (c0, c1) = (run.i.clamp(0, w - 1) as usize, (run.i + 1).clamp(0, w - 1) as usize);
            let (r0, r1) = (run.j.clamp(0, h - 1) as usize, (run.j + 1).clamp(0, h - 1) as usize);
            let (a, b, c, d) = (s.at(c0, r0), s.at(c1, r0), s.at(c0, r1), s.at(c1, r1));
            let (b, c, d) = (b - a, c - a, (d - c) - (b - a));
            for (v, (x, y)) in out[run.start..run.end].iter_mut().zip(run.places()) {
                let root = a + x * b + y * (c + x * d);
                let root = if root > 0.0 { root } else { 0.0 };
                let square = root * root;
                *v = gain * square * square;
            }
        }
    }

    /// Whether `p` lies on the raster.
    #[inline]
    pub fn contains(&self, p: Uv) -> bool {
        p.u >= 0.0 && p.v >= 0.0 && p.u < self.values.cols as f64 && p.v < self.values.rows as f64
    }

    /// The given value of the cell under `p`; NaN where void or outside.
    #[inline]
    pub fn value_under(&self, p: Uv) -> f32 {
        if self.contains(p) { self.values.at(p.u as usize, p.v as usize) } else { f32::NAN }
    }
}

/// Poles of the recursive filter that inverts (1, 76, 230, 76, 1)/384: block means.
const MEAN_POLES: [f64; 2] = [-0.361_341_225_900_220_4, -0.013_725_429_297_339_12];
/// Pole of the filter that inverts (1, 4, 1)/6: point values.
const POINT_POLES: [f64; 1] = [-0.267_949_192_431_122_7];

/// Direct B-spline transform along both axes, mirror-symmetric about the edge cells' centres.
fn prefilter(values: &Raster<f32>, poles: &[f64]) -> Raster<f32> {
    let (w, h) = (values.cols, values.rows);
    let mut rows: Vec<f64> = values.values.iter().map(|&v| f64::from(v)).collect();
    rows.par_chunks_mut(w).for_each(|row| poles.iter().for_each(|&z| recursive_filter(row, z)));
    // Columns: transpose by column, filter, and gather.
    let columns: Vec<Vec<f64>> = (0..w)
        .into_par_iter()
        .map(|c| {
            let mut column: Vec<f64> = (0..h).map(|r| rows[r * w + c]).collect();
            poles.iter().for_each(|&z| recursive_filter(&mut column, z));
            column
        })
        .collect();
    let mut out = vec![0f32; w * h];
    out.par_chunks_mut(w).enumerate().for_each(|(r, row)| {
        for (c, v) in row.iter_mut().enumerate() {
            *v = columns[c][r] as f32;
        }
    });
    Raster::from_values(w, h, out)
}

/// Causal and anticausal first-order filter of pole `z`, unit gain at zero frequency.
fn recursive_filter(s: &mut [f64], z: f64) {
    let n = s.len();
    if n < 2 {
        return;
    }
    let gain = (1.0 - z) * (1.0 - 1.0 / z);
    // Causal start: the mirrored signal summed exactly where it is short, else to double precision.
    let horizon = (1e-17f64.ln() / z.abs().ln()).ceil() as usize + 1;
    let mut first;
    if horizon < n {
        first = 0.0;
        let mut zk = 1.0;
        for &v in &s[..horizon] {
            first += zk * v;
            zk *= z;
        }
    } else {
        let period = 2 * n as i32 - 2;
        first = s[0] + z.powi(n as i32 - 1) * s[n - 1];
        for (k, &v) in s.iter().enumerate().take(n - 1).skip(1) {
            first += (z.powi(k as i32) + z.powi(period - k as i32)) * v;
        }
        first /= 1.0 - z.powi(period);
    }
    s[0] = first * gain;
    for k in 1..n {
        s[k] = s[k] * gain + z * s[k - 1];
    }
    s[n - 1] = z / (z * z - 1.0) * (s[n - 1] + z * s[n - 2]);
    for k in (0..n - 1).rev() {
        s[k] = z * (s[k + 1] - s[k]);
    }
}

/// Weights of the four cubic B-splines that cover a point at fraction `t` between two knots.
#[inline(always)]
fn cubic_weights(t: f64) -> [f64; 4] {
    let s = 1.0 - t;
    let t2 = t * t;
    let s2 = s * s;
    [s2 * s / 6.0, (4.0 - 6.0 * t2 + 3.0 * t2 * t) / 6.0, (4.0 - 6.0 * s2 + 3.0 * s2 * s) / 6.0, t2 * t / 6.0]
}

/// The cubic spline along a row of points given in runs.
#[multiversion::multiversion(targets("x86_64+avx+avx2"))]
fn elevations_along(coefficients: &Raster<f32>, runs: &[Run], row: &mut [f32]) {
    let (w, h) = (coefficients.cols as i64, coefficients.rows as i64);
    // The four rows of coefficients around one height are one, of which four columns are kept: place and sums.
    let mut known: Option<((i64, i64, f32), [f64; 4])> = None;
    for run in runs {
        let values = &mut row[run.start..run.end];
        if run.dy != 0.0 {
            for (v, (x, y)) in values.iter_mut().zip(run.places()) {
                *v = cubic_in(coefficients, (run.i, run.j), (f64::from(x), f64::from(y))) as f32;
            }
            continue;
        }
        let wy = cubic_weights(f64::from(run.y));
        let column = |i: i64| {
            let c = mirrored(i, w);
            (0..4).map(|k| wy[k] * f64::from(coefficients.at(c, mirrored(run.j + k as i64 - 1, h)))).sum::<f64>()
        };
        let q = match known {
            Some((at, q)) if at == (run.i, run.j, run.y) => q,
            Some((at, [_, a, b, c])) if at == (run.i - 1, run.j, run.y) => [a, b, c, column(run.i + 2)],
            _ => [-1, 0, 1, 2].map(|l| column(run.i + l)),
        };
        known = Some(((run.i, run.j, run.y), q));
        for (v, (x, _)) in values.iter_mut().zip(run.places()) {
            let wx = cubic_weights(f64::from(x));
            *v = (wx[0] * q[0] + wx[1] * q[1] + wx[2] * q[2] + wx[3] * q[3]) as f32;
        }
    }
}

#[inline]
fn cubic_at(coefficients: &Raster<f32>, p: Uv) -> f64 {
    // Knots are the cells' centres.
    let (x, y) = (p.u - 0.5, p.v - 0.5);
    let (i, j) = (whole_below(x), whole_below(y));
    cubic_in(coefficients, (i, j), (x - i as f64, y - j as f64))
}

/// The cubic spline between the knots (i, j) and (i + 1, j + 1), at (x, y) of the way.
#[inline]
fn cubic_in(coefficients: &Raster<f32>, (i, j): (i64, i64), (x, y): (f64, f64)) -> f64 {
    let (wx, wy) = (cubic_weights(x), cubic_weights(y));
    let (w, h) = (coefficients.cols as i64, coefficients.rows as i64);
    let (i, j) = (i - 1, j - 1);
    let mut sum = 0.0;
    if i >= 0 && j >= 0 && i + 4 <= w && j + 4 <= h {
        for (k, wy) in wy.iter().enumerate() {
            let at = (j as usize + k) * coefficients.cols + i as usize;
            let q = &coefficients.values[at..at + 4];
            sum += wy
                * (wx[0] * f64::from(q[0])
                    + wx[1] * f64::from(q[1])
                    + wx[2] * f64::from(q[2])
                    + wx[3] * f64::from(q[3]));
        }
    } else {
        for (k, wy) in wy.iter().enumerate() {
            let r = mirrored(j + k as i64, h);
            for (l, wx) in wx.iter().enumerate() {
                let c = mirrored(i + l as i64, w);
                sum += wy * wx * f64::from(coefficients.at(c, r));
            }
        }
    }
    sum
}

/// Index `k` reflected about the centres of the first and last of `n` cells, as the prefilter assumes.
fn mirrored(k: i64, n: i64) -> usize {
    if k >= 0 && k < n {
        return k as usize;
    }
    let period = (2 * (n - 1)).max(1);
    let m = k.rem_euclid(period);
    m.min(period - m).min(n - 1) as usize
}

#[inline]
fn linear_at(values: &Raster<f32>, p: Uv) -> f32 {
    let x = (p.u - 0.5).clamp(0.0, (values.cols - 1) as f64);
    let y = (p.v - 0.5).clamp(0.0, (values.rows - 1) as f64);
    let (i, j) = (x as usize, y as usize);
    let (i1, j1) = ((i + 1).min(values.cols - 1), (j + 1).min(values.rows - 1));
    let (fx, fy) = ((x - i as f64) as f32, (y - j as f64) as f32);
    let top = values.at(i, j) + (values.at(i1, j) - values.at(i, j)) * fx;
    let bottom = values.at(i, j1) + (values.at(i1, j1) - values.at(i, j1)) * fx;
    top + (bottom - top) * fy
}

/// Fills voids by push and pull: means of known cells climb a pyramid, voids take the smoothed mean above them, and a few
/// relaxations remove the steps.
fn fill_voids(values: &Raster<f32>) -> Raster<f32> {
    if values.values.iter().all(|v| v.is_finite()) {
        return values.clone();
    }
    let (w, h) = (values.cols, values.rows);
    if w == 1 && h == 1 {
        return Raster::filled(1, 1, if values.values[0].is_finite() { values.values[0] } else { 0.0 });
    }
    let (hw, hh) = (w.div_ceil(2), h.div_ceil(2));
    let mut half = Raster::filled(hw, hh, f32::NAN);
    for r in 0..hh {
        for c in 0..hw {
            let (mut sum, mut n) = (0.0, 0);
            for y in 2 * r..(2 * r + 2).min(h) {
                for x in 2 * c..(2 * c + 2).min(w) {
                    let v = values.at(x, y);
                    if v.is_finite() {
                        sum += v;
                        n += 1;
                    }
                }
            }
            if n > 0 {
                half.set(c, r, sum / n as f32);
            }
        }
    }
    let half = fill_voids(&half);
    let mut out = values.clone();
    for r in 0..h {
        for c in 0..w {
            if !out.at(c, r).is_finite() {
                out.set(c, r, linear_at(&half, Uv { u: (c as f64 + 0.5) / 2.0, v: (r as f64 + 0.5) / 2.0 }));
            }
        }
    }
    for _ in 0..4 {
        let old = out.clone();
        for r in 0..h {
            for c in 0..w {
                if !values.at(c, r).is_finite() {
                    let n = old.at(c, r.saturating_sub(1)) + old.at(c, (r + 1).min(h - 1));
                    let m = old.at(c.saturating_sub(1), r) + old.at((c + 1).min(w - 1), r);
                    out.set(c, r, 0.25 * (n + m));
                }
            }
        }
    }
    out
}

/// Relief (curvature and slope of coarse values, metres) at which the amplitude's share holds as measured.
const TYPICAL_RELIEF_M: f64 = 300.0;

/// Expected rms of (ground - spline) per coarse cell, metres, as its fourth root, which is interpolated between cells: plains
/// keep clear of the mountains beside them.
///
/// It is a share of lap^(1-b) · (h + lap/10)^b, where lap is the rms Laplacian of the coarse values over 3 x 3 cells and h the
/// height of the cell above the lowest of them: valley floors and plains are filled with what the heights shed. Share, b and
/// the power by which small relief falls short were measured on eleven windows at cells of 1.4, 2.7, 5.4 and 13 km
/// (docs/terrain.md), and are interpolated in log size.
fn detail_amplitude(z: &Raster<f32>, cell_m: f64, model: &RoughnessModel) -> Raster<f32> {
    let (w, h) = (z.cols, z.rows);
    let at = |c: i64, r: i64| f64::from(z.at(c.clamp(0, w as i64 - 1) as usize, r.clamp(0, h as i64 - 1) as usize));
    // Rounding to a step q adds variance q²/12 a cell: 20 of them in the Laplacian.
    let quantum2 = model.quantum_m * model.quantum_m / 12.0;
    let squares: Vec<f64> = (0..w * h)
        .into_par_iter()
        .map(|k| {
            let (c, r) = ((k % w) as i64, (k / w) as i64);
            let lap = at(c + 1, r) + at(c - 1, r) + at(c, r - 1) + at(c, r + 1) - 4.0 * at(c, r);
            lap * lap
        })
        .collect();
    let t = (cell_m / 1440.0).log10().clamp(-0.3, 1.0);
    let large = t.max(0.0);
    let share = 0.212 + (0.355 - 0.212) * (t / 0.55).min(1.0);
    let by_height = 0.33 + 0.12 * large;
    let by_relief = 0.82 + 0.28 * large;
    // What coarse values do not tell: smooth and rough country lie side by side.
    let patches = NoiseKey::new(0, cell_m, 2);
    let spread = 0.18;
    let values = (0..w * h)
        .into_par_iter()
        .map(|k| {
            let (c, r) = ((k % w) as i64, (k / w) as i64);
            let (mut lap2, mut low, mut n) = (0.0, f64::INFINITY, 0.0);
            for y in (r - 1).max(0)..=(r + 1).min(h as i64 - 1) {
                for x in (c - 1).max(0)..=(c + 1).min(w as i64 - 1) {
                    lap2 += squares[y as usize * w + x as usize];
                    low = at(x, y).min(low);
                    n += 1.0;
                }
            }
            let lap = (lap2 / n - 20.0 * quantum2).max(0.0).sqrt();
            let height = at(c, r);
            let relief = lap.powf(1.0 - by_height) * (height - low + 0.1 * lap).powf(by_height);
            let relief = TYPICAL_RELIEF_M * (relief / TYPICAL_RELIEF_M).powf(by_relief);
            let n: f32 = (-1..=1).flat_map(|y| (-1..=1).map(move |x| patches.normal(c + x, r + y))).sum();
            let n = f64::from(n) / 3.0;
            let sigma = share * relief * (spread * n - spread * spread).exp();
            // Detail on land just above sea level must not dip below it.
            let sigma = if height > 0.0 { sigma.min(0.5 * height) } else { sigma };
            (model.gain * sigma).powf(0.25) as f32
        })
        .collect();
    Raster::from_values(w, h, values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bumpy(w: usize, h: usize) -> Raster<f32> {
        let f =
            |k: usize| ((k % w) as f32 * 1.7).sin() * 100.0 + ((k / w) as f32 * 0.9).cos() * 80.0 + (k * k % 97) as f32;
        Raster::from_values(w, h, (0..w * h).map(f).collect())
    }

    #[test]
    fn spline_keeps_the_mean_of_every_interior_cell() {
        let z = bumpy(20, 16);
        let s = CoarseSurface::new(z.clone(), 1000.0, CoarseMode::Mean, &RoughnessModel::default());
        let n = 24;
        for r in 3..13 {
            for c in 3..17 {
                let mut sum = 0.0;
                for y in 0..n {
                    for x in 0..n {
                        let p =
                            Uv { u: c as f64 + (x as f64 + 0.5) / n as f64, v: r as f64 + (y as f64 + 0.5) / n as f64 };
                        sum += s.elevation(p);
                    }
                }
                let mean = sum / (n * n) as f64;
                assert!((mean - f64::from(z.at(c, r))).abs() < 0.2, "{c},{r}: {mean} for {}", z.at(c, r));
            }
        }
    }

    #[test]
    fn point_mode_passes_through_the_values() {
        let z = bumpy(12, 9);
        let s = CoarseSurface::new(z.clone(), 1000.0, CoarseMode::Point, &RoughnessModel::default());
        for r in 0..9 {
            for c in 0..12 {
                let v = s.elevation(Uv { u: c as f64 + 0.5, v: r as f64 + 0.5 });
                assert!((v - f64::from(z.at(c, r))).abs() < 0.01, "{c},{r}: {v} for {}", z.at(c, r));
            }
        }
    }

    #[test]
    fn flat_ground_has_no_amplitude_and_rounding_is_not_relief() {
        let flat = CoarseSurface::new(Raster::filled(8, 8, 12.0), 900.0, CoarseMode::Mean, &RoughnessModel::default());
        assert_eq!(flat.sigma(Uv { u: 4.0, v: 4.0 }), 0.0);
        assert!((flat.elevation(Uv { u: 1.3, v: 6.2 }) - 12.0).abs() < 1e-4);
        let steps = Raster::from_values(16, 16, (0..256).map(|k| ((k % 16) as f32 * 0.3).round()).collect());
        let model = RoughnessModel { gain: 1.0, quantum_m: 1.0 };
        let plain = CoarseSurface::new(steps, 900.0, CoarseMode::Mean, &model);
        assert!(plain.sigma(Uv { u: 8.0, v: 8.0 }) < 0.05);
    }

    #[test]
    fn voids_are_filled_from_their_rim_and_all_void_is_a_plane() {
        let mut z = Raster::filled(9, 9, 50.0);
        for k in 20..40 {
            z.values[k] = f32::NAN;
        }
        assert!(fill_voids(&z).values.iter().all(|&v| (v - 50.0).abs() < 1e-3));
        assert!(fill_voids(&Raster::filled(5, 3, f32::NAN)).values.iter().all(|&v| v == 0.0));
    }
}
