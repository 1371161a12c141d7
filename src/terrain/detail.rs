//! Relief below the scale of the coarse values: a diamond-square lattice of displacements.
//!
//! Nodes stand at cell corners. A level of spacing s gets its midpoints from the level of spacing 2s: centres first
//! (diamond step), then edges (square step), each interpolated and then displaced by noise keyed by (seed, spacing, column,
//! row). The last half level is a diamond step from the corners of spacing 1 to the cells' centres. Midpoint displacement
//! after Fournier, Fussell and Carpenter (1982); the four-point interpolation is Deslauriers and Dubuc's (1989), which leaves
//! no lattice marks; the classic mean of four is kept as an option.

use super::noise::NoiseKey;
use crate::grid::Window;
use crate::raster::Raster;
use rayon::prelude::*;

/// How a midpoint is interpolated before it is displaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stencil {
    /// (-1, 9, 9, -1)/16 along each axis.
    #[default]
    FourPoint,
    /// The mean of the four nearest nodes, as in the textbooks; shows creases along the lattice.
    Classic,
}

/// Shape of the displacements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DetailOptions {
    /// Seed of the noise.
    pub seed: u64,
    /// Hurst exponent by node spacing in metres, ascending; interpolated in log spacing.
    pub hurst: HurstCurve,
    /// Interpolation of midpoints.
    pub stencil: Stencil,
}

/// Hurst exponent (0 to 1 for a fractal, above 1 for ground smoothed by creep) as a function of scale.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum HurstCurve {
    /// As measured on true relief: 1.2 at 90 and 180 m, 1.1 at 360, 0.88 at 900, 0.57 at 1800, 0.4 at 3600 m.
    Measured,
    /// One exponent at every scale.
    Constant(f64),
}

impl HurstCurve {
    /// The exponent between node spacings 2s and s, s in metres.
    pub fn at(self, spacing_m: f64) -> f64 {
        const KNOTS: [(f64, f64); 6] =
            [(90.0, 1.2), (180.0, 1.22), (360.0, 1.1), (900.0, 0.88), (1800.0, 0.57), (3600.0, 0.4)];
        let knots = match self {
            HurstCurve::Constant(h) => return h,
            HurstCurve::Measured => KNOTS,
        };
        let x = spacing_m.max(1e-6).ln();
        if spacing_m <= knots[0].0 {
            return knots[0].1;
        }
        for pair in knots.windows(2) {
            let ((s0, h0), (s1, h1)) = (pair[0], pair[1]);
            if spacing_m <= s1 {
                return h0 + (h1 - h0) * (x - s0.ln()) / (s1.ln() - s0.ln());
            }
        }
        knots[5].1
    }
}

/// How far, in cells, a displacement depends on nodes outside its window: the halo that makes windows equal.
pub fn reach(levels: u32) -> usize {
    // Each level reaches 3 half-spacings; they sum to 3 top spacings, and the half level adds two cells.
    3 * (1usize << levels) + 2
}

/// Displacements at the cell centres of `window` (absolute lattice cells), in units of the local sigma times `sigma`.
///
/// `levels`: the top spacing is 2^levels cells of `cell_m` metres; its nodes are displaced too when `free_top`, or stay at
/// zero (pinned). `sigma` gives the amplitude at absolute lattice points (cell corners), metres. The overall rms is about
/// one sigma. Cost: about 2.3 nodes and one noise draw each per cell.
pub fn displacement(
    window: Window,
    levels: u32,
    free_top: bool,
    cell_m: f64,
    sigma: &(dyn Fn(i64, i64) -> f32 + Sync),
    options: &DetailOptions,
) -> Raster<f32> {
    let gains = level_gains(levels, cell_m, options.hurst);
    // Corner lattice of spacing s that covers the window grown by the reach of the levels below it.
    let cover = |level: u32| {
        let s = 1i64 << level;
        let margin = 2 + 3 * (s - 1);
        let c0 = (window.col - margin).div_euclid(s);
        let r0 = (window.row - margin).div_euclid(s);
        let c1 = (window.col + window.cols as i64 + margin).div_euclid(s) + 1;
        let r1 = (window.row + window.rows as i64 + margin).div_euclid(s) + 1;
        Nodes { col0: c0, row0: r0, z: Raster::filled((c1 - c0 + 1) as usize, (r1 - r0 + 1) as usize, 0f32) }
    };
    let mut nodes = cover(levels);
    if free_top {
        let s = 1i64 << levels;
        let key = NoiseKey::new(options.seed, cell_m * s as f64, 0);
        let (col0, row0, cols) = (nodes.col0, nodes.row0, nodes.z.cols);
        let gain = gains[levels as usize + 1] as f32;
        nodes.z.values.par_chunks_mut(cols).enumerate().for_each(|(k, row)| {
            let r = row0 + k as i64;
            for (l, v) in row.iter_mut().enumerate() {
                let c = col0 + l as i64;
                *v = gain * sigma(c * s, r * s) * key.normal(c, r);
            }
        });
    }
    for level in (0..levels).rev() {
        let s = 1i64 << level;
        let mut finer = cover(level);
        let spacing = cell_m * s as f64;
        let key = NoiseKey::new(options.seed, spacing, 0);
        let gain = gains[level as usize + 1] as f32;
        subdivide(&nodes, &mut finer, options.stencil, &|c, r, share| {
            gain * share * sigma(c * s, r * s) * key.normal(c, r)
        });
        nodes = finer;
    }
    centres(&nodes, window, options, cell_m, gains[0] as f32, sigma)
}

/// Amplitude of the noise per level in units of sigma: index 0 is the half level (cell centres), index k+1 the level of
/// spacing 2^k cells; so scaled that the variances below the top level sum to one (block means take back what the top adds).
fn level_gains(levels: u32, cell_m: f64, hurst: HurstCurve) -> Vec<f64> {
    let mut gains = vec![1.0; levels as usize + 2];
    for level in (0..=levels).rev() {
        let s = cell_m * f64::from(1u32 << level);
        let h = hurst.at(s);
        // A full level halves the spacing; the half level goes from the corners to the centres, a step of 1/sqrt 2.
        let ratio = if level == 0 { 2f64.powf(-0.5 * h) } else { 2f64.powf(-h) };
        gains[level as usize] = gains[level as usize + 1] * ratio;
    }
    let sum: f64 = gains[..=levels.max(1) as usize].iter().map(|g| g * g).sum();
    gains.iter_mut().for_each(|g| *g /= sum.sqrt());
    gains
}

/// A lattice level: nodes at (col0 + k, row0 + l) times its spacing.
struct Nodes {
    col0: i64,
    row0: i64,
    z: Raster<f32>,
}

impl Nodes {
    #[inline]
    fn at(&self, col: i64, row: i64) -> f32 {
        self.z.at((col - self.col0) as usize, (row - self.row0) as usize)
    }
}

/// Share of a full displacement that centres and edges get.
const CENTRE_SHARE: f32 = 1.0;
const EDGE_SHARE: f32 = 0.9;

#[inline]
fn four(a: f32, b: f32, c: f32, d: f32) -> f32 {
    (9.0 * (b + c) - (a + d)) * (1.0 / 16.0)
}

/// Fills `fine` (half the spacing of `coarse`): shared nodes copied, midpoints interpolated and displaced.
fn subdivide(coarse: &Nodes, fine: &mut Nodes, stencil: Stencil, noise: &(dyn Fn(i64, i64, f32) -> f32 + Sync)) {
    let (col0, row0, cols) = (fine.col0, fine.row0, fine.z.cols);
    let four_rows =
        |c: i64, r: i64| four(coarse.at(c, r - 1), coarse.at(c, r), coarse.at(c, r + 1), coarse.at(c, r + 2));
    let four_cols =
        |c: i64, r: i64| four(coarse.at(c - 1, r), coarse.at(c, r), coarse.at(c + 1, r), coarse.at(c + 2, r));
    let centre = |c: i64, r: i64| match stencil {
        Stencil::FourPoint => four(four_rows(c - 1, r), four_rows(c, r), four_rows(c + 1, r), four_rows(c + 2, r)),
        Stencil::Classic => {
            0.25 * (coarse.at(c, r) + coarse.at(c + 1, r) + coarse.at(c, r + 1) + coarse.at(c + 1, r + 1))
        }
    };
    let displaced_centre = |c: i64, r: i64| centre(c, r) + noise(2 * c + 1, 2 * r + 1, CENTRE_SHARE);
    fine.z.values.par_chunks_mut(cols).enumerate().for_each(|(k, row)| {
        let fr = row0 + k as i64;
        let r = fr.div_euclid(2);
        let odd_row = fr.rem_euclid(2) == 1;
        for (l, v) in row.iter_mut().enumerate() {
            let fc = col0 + l as i64;
            let c = fc.div_euclid(2);
            let odd_col = fc.rem_euclid(2) == 1;
            *v = match (odd_col, odd_row) {
                (false, false) => coarse.at(c, r),
                (true, true) => displaced_centre(c, r),
                (true, false) => {
                    let z = match stencil {
                        Stencil::FourPoint => four_cols(c, r),
                        Stencil::Classic => {
                            0.25 * (coarse.at(c, r)
                                + coarse.at(c + 1, r)
                                + displaced_centre(c, r - 1)
                                + displaced_centre(c, r))
                        }
                    };
                    z + noise(fc, fr, EDGE_SHARE)
                }
                (false, true) => {
                    let z = match stencil {
                        Stencil::FourPoint => four_rows(c, r),
                        Stencil::Classic => {
                            0.25 * (coarse.at(c, r)
                                + coarse.at(c, r + 1)
                                + displaced_centre(c - 1, r)
                                + displaced_centre(c, r))
                        }
                    };
                    z + noise(fc, fr, EDGE_SHARE)
                }
            };
        }
    });
}

/// The last diamond step: from the corners of spacing one to the centres of the window's cells.
fn centres(
    corners: &Nodes,
    window: Window,
    options: &DetailOptions,
    cell_m: f64,
    gain: f32,
    sigma: &(dyn Fn(i64, i64) -> f32 + Sync),
) -> Raster<f32> {
    let key = NoiseKey::new(options.seed, cell_m, 1);
    let mut out = Raster::filled(window.cols, window.rows, 0f32);
    out.values.par_chunks_mut(window.cols).enumerate().for_each(|(k, row)| {
        let r = window.row + k as i64;
        let classic = options.stencil == Stencil::Classic;
        // Interpolate along columns first, four at a time sliding east.
        let vertical = |c: i64| {
            if classic {
                0.5 * (corners.at(c, r) + corners.at(c, r + 1))
            } else {
                four(corners.at(c, r - 1), corners.at(c, r), corners.at(c, r + 1), corners.at(c, r + 2))
            }
        };
        let mut q =
            [vertical(window.col - 1), vertical(window.col), vertical(window.col + 1), vertical(window.col + 2)];
        for (l, v) in row.iter_mut().enumerate() {
            let c = window.col + l as i64;
            let z = if classic { 0.5 * (q[1] + q[2]) } else { four(q[0], q[1], q[2], q[3]) };
            *v = z + gain * sigma(c, r) * key.normal(c, r);
            if l + 1 < window.cols {
                q = [q[1], q[2], q[3], vertical(c + 3)];
            }
        }
    });
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: Window = Window { col: -40, row: 30, cols: 130, rows: 110 };

    fn options(stencil: Stencil) -> DetailOptions {
        DetailOptions { seed: 7, hurst: HurstCurve::Measured, stencil }
    }

    fn hilly(c: i64, r: i64) -> f32 {
        10.0 + (c as f32 * 0.05).sin() + (r as f32 * 0.03).cos()
    }

    #[test]
    fn a_window_equals_the_crop_of_the_whole_for_both_stencils() {
        for stencil in [Stencil::FourPoint, Stencil::Classic] {
            let whole = displacement(WHOLE, 4, true, 90.0, &hilly, &options(stencil));
            let part = Window { col: -3, row: 77, cols: 31, rows: 17 };
            let got = displacement(part, 4, true, 90.0, &hilly, &options(stencil));
            let crop = whole.crop(Window { col: part.col - WHOLE.col, row: part.row - WHOLE.row, cols: 31, rows: 17 });
            assert_eq!(got.values, crop.values);
        }
    }

    #[test]
    fn rms_is_about_one_sigma() {
        let z = displacement(WHOLE, 4, true, 90.0, &|_, _| 10.0, &options(Stencil::FourPoint));
        let rms = (z.values.iter().map(|v| f64::from(v * v)).sum::<f64>() / z.values.len() as f64).sqrt();
        assert!((8.0..20.0).contains(&rms), "{rms}");
    }

    #[test]
    fn no_sigma_no_displacement() {
        let z = displacement(WHOLE, 3, true, 90.0, &|_, _| 0.0, &options(Stencil::FourPoint));
        assert!(z.values.iter().all(|&v| v == 0.0));
    }

    #[test]
    fn four_point_stencil_reproduces_a_cubic() {
        let f = |x: f32| x * x * x - 2.0 * x * x + 0.5 * x;
        assert!((four(f(-1.5), f(-0.5), f(0.5), f(1.5)) - f(0.0)).abs() < 1e-5);
    }

    #[test]
    fn levels_of_one_ladder_share_their_noise() {
        // Spacing 125 m is level 1 at 62.5 m cells and level 0 at 125 m cells.
        assert_eq!(NoiseKey::new(3, 62.5 * 2.0, 0), NoiseKey::new(3, 125.0, 0));
        assert_eq!(HurstCurve::Measured.at(90.0), 1.2);
        assert!((HurstCurve::Measured.at(1800.0) - 0.57).abs() < 1e-12);
    }
}
