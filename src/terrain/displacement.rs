//! Displacements of one lattice step: white noise, or noise drawn out along the fall of the ground.
//!
//! Real slopes are furrowed: gullies and spurs run downhill, and finer ones run down the sides of coarser ones. So each
//! step's white noise is averaged along the gradient of the ground built so far (line integral convolution, Cabral and
//! Leedom 1993, with straight lines of seven nodes) and stays white across it. Such relief hardly dams the flow. A convex
//! map then makes crests sharper than floors. Every node is displaced, the shared ones too (successive random additions,
//! Saupe 1988): a furrow may not stop at a node of the level above. In plain mode only midpoints move, each by its own draw.

use super::lattice::Sites;
use super::noise::NoiseKey;
use super::placement::{Placement, Uv};
use super::roughness::{MOST_FALL, StepShape};
use super::surface::CoarseSurface;
use crate::raster::Raster;
use rayon::prelude::*;

/// Directions that kernels are kept for, over half a turn.
const BINS: usize = 64;
/// Nodes each side of the centre.
const ARM: usize = 3;
const SIDE: usize = 2 * ARM + 1;
/// Width of a kernel's row in memory: a whole number of vector registers.
const PAD: usize = 8;
/// Standard deviations of the kernels along and across the fall, nodes.
const ALONG: f32 = 3.0;
const ACROSS: f32 = 0.45;
/// How far around a node the ground decides about its displacement, nodes.
pub(super) const REACH: usize = 2;
/// Rows that share their noise.
const BAND: usize = 16;
/// Mean and inverse standard deviation of the magnitude of a normal number.
const MEAN_MAGNITUDE: f32 = 0.797_884_6;
const INVERSE_SPREAD: f32 = 1.658_896;

/// Kernels by direction, each of unit power.
pub(super) struct Kernels(Vec<[[f32; PAD]; SIDE]>);

impl Kernels {
    pub(super) fn new() -> Kernels {
        let kernel = |bin: usize| {
            let (x, y) = direction((bin as f32 + 0.5) * 2.0 / BINS as f32);
            let mut k = [[0f32; PAD]; SIDE];
            for (j, row) in k.iter_mut().enumerate() {
                for (i, w) in row.iter_mut().enumerate().take(SIDE) {
                    let (dx, dy) = (i as f32 - ARM as f32, j as f32 - ARM as f32);
                    let (a, c) = ((dx * x + dy * y) / ALONG, (dx * y - dy * x) / ACROSS);
                    *w = (-0.5 * (a * a + c * c)).exp();
                }
            }
            let power: f32 = k.iter().flatten().map(|w| w * w).sum();
            k.iter_mut().flatten().for_each(|w| *w /= power.sqrt());
            k
        };
        Kernels((0..BINS).map(kernel).collect())
    }

    /// The kernel for the direction (x, y) or its opposite.
    #[inline]
    fn along(&self, x: f32, y: f32) -> &[[f32; PAD]; SIDE] {
        &self.0[((half_turn(x, y) * (BINS as f32 * 0.5)) as usize).min(BINS - 1)]
    }
}

/// A number from 0 to 2 that grows with the angle of (x, y) or (-x, -y) over half a turn.
#[inline]
fn half_turn(x: f32, y: f32) -> f32 {
    let (x, y) = if y < 0.0 { (-x, -y) } else { (x, y) };
    let sum = x.abs() + y;
    let q = if sum > 0.0 { y / sum } else { 0.0 };
    if x >= 0.0 { q } else { 2.0 - q }
}

/// The unit vector whose [`half_turn`] is `t`.
fn direction(t: f32) -> (f32, f32) {
    let (x, y) = if t < 1.0 { (1.0 - t, t) } else { (1.0 - t, 2.0 - t) };
    let n = x.hypot(y);
    (x / n, y / n)
}

/// The place of one step's displacements and what shapes them.
pub(super) struct StepNoise<'a> {
    pub(super) key: NoiseKey,
    pub(super) sites: Sites,
    pub(super) shape: StepShape,
    pub(super) surface: &'a CoarseSurface,
    pub(super) placement: &'a Placement,
}

impl StepNoise<'_> {
    /// Local amplitudes of row `l`, metres.
    #[inline]
    fn sigmas(&self, l: usize, places: &mut [Uv], out: &mut [f32]) {
        self.sites.place_row(self.placement, l, places);
        out.iter_mut().zip(places.iter()).for_each(|(s, &p)| *s = self.shape.gain * self.surface.sigma(p));
    }

    /// `base` plus displacements drawn out along the fall of `ground`. Values within [`REACH`] of the rim are not to be
    /// used. Cost: one draw and 56 products a node.
    pub(super) fn along_the_fall(&self, base: &Raster<f32>, ground: &Raster<f32>, kernels: &Kernels) -> Raster<f32> {
        let (w, h) = (ground.cols, ground.rows);
        let shape = self.shape;
        let ridge_scale = 1.0 / (1.0 + shape.ridge * shape.ridge).sqrt();
        let stride = w + 2 * ARM + PAD;
        let mut out = base.clone();
        out.values.par_chunks_mut(w * BAND).enumerate().for_each_init(
            || (vec![0f32; stride * (BAND + 2 * ARM)], vec![Uv { u: 0.0, v: 0.0 }; w], vec![0f32; w]),
            |(noise, places, sigmas), (b, band)| {
                for (l, line) in noise.chunks_mut(stride).enumerate() {
                    let row = self.sites.row0 + (b * BAND + l) as i64 - ARM as i64;
                    for (k, v) in line.iter_mut().enumerate().take(w + 2 * ARM) {
                        *v = self.key.normal(self.sites.col0 + k as i64 - ARM as i64, row);
                    }
                }
                for (l, line) in band.chunks_mut(w).enumerate() {
                    let r = b * BAND + l;
                    if r < REACH || r + REACH >= h {
                        continue;
                    }
                    let (north, south) = (ground.row(r - 1), ground.row(r + 1));
                    let (far_north, here, far_south) = (ground.row(r - 2), ground.row(r), ground.row(r + 2));
                    self.sigmas(r, places, sigmas);
                    for k in REACH..w.saturating_sub(REACH) {
                        let sigma = sigmas[k];
                        if sigma <= 0.0 {
                            continue;
                        }
                        let kernel = kernels.along(here[k + 2] - here[k - 2], far_south[k] - far_north[k]);
                        let mut sums = [0f32; PAD];
                        for (j, weights) in kernel.iter().enumerate() {
                            let at = (l + j) * stride + k;
                            let values = &noise[at..at + PAD];
                            for i in 0..PAD {
                                sums[i] += weights[i] * values[i];
                            }
                        }
                        let n: f32 = sums.iter().sum();
                        let n = (n + shape.ridge * (n.abs() - MEAN_MAGNITUDE) * INVERSE_SPREAD) * ridge_scale;
                        let amplitude = if shape.slope_exponent > 0.0 {
                            let (gx, gy) = (0.5 * (here[k + 1] - here[k - 1]), 0.5 * (south[k] - north[k]));
                            let fall = shape.fall_share * (gx * gx + gy * gy).sqrt();
                            sigma * power((fall / sigma).min(MOST_FALL), shape.slope_exponent)
                        } else {
                            sigma
                        };
                        line[k] += amplitude * n;
                    }
                }
            },
        );
        out
    }

    /// Adds to the midpoints of `z` (all values at the centres of cells) a draw each.
    pub(super) fn at_midpoints(&self, z: &mut Raster<f32>, all: bool) {
        let sites = self.sites;
        let cols = z.cols;
        z.values.par_chunks_mut(cols).enumerate().for_each_init(
            || (vec![Uv { u: 0.0, v: 0.0 }; cols], vec![0f32; cols]),
            |(places, sigmas), (l, row)| {
                self.sigmas(l, places, sigmas);
                let r = sites.row0 + l as i64;
                for (k, v) in row.iter_mut().enumerate() {
                    let c = sites.col0 + k as i64;
                    let share = match (c & 1, r & 1) {
                        _ if all => 1.0,
                        (0, 0) => continue,
                        (1, 1) => 1.0,
                        _ => EDGE_SHARE,
                    };
                    let sigma = sigmas[k];
                    if sigma > 0.0 {
                        *v += share * sigma * self.key.normal(c, r);
                    }
                }
            },
        );
    }
}

/// `x` to the power `p`, to 0.2 %, for 0 ≤ x: by the bits of a float and two short polynomials, the same on every machine.
#[inline]
fn power(x: f32, p: f32) -> f32 {
    if x < 1e-20 {
        return 0.0;
    }
    let bits = x.to_bits();
    let exponent = (bits >> 23) as i32 - 127;
    let m = f32::from_bits(bits & 0x007F_FFFF | 0x3F80_0000) - 1.0;
    // log2(1 + m) and 2^f, least squares with exact ends.
    let log = exponent as f32 + m * (1.438_073 + m * (-0.674_767 + m * (0.317_001 - m * 0.080_307)));
    let y = p * log + 127.0;
    let whole = y as i32;
    let f = y - whole as f32;
    f32::from_bits((whole as u32) << 23) * (1.0 + f * (0.695_928 + f * (0.224_946 + f * 0.079_125)))
}

/// Share of a centre's displacement that edges get.
const EDGE_SHARE: f32 = 0.9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directions_are_told_apart_over_half_a_turn() {
        for k in 0..BINS {
            let t = (k as f32 + 0.5) * 2.0 / BINS as f32;
            let (x, y) = direction(t);
            assert!((half_turn(x, y) - t).abs() < 1e-5);
            assert!((half_turn(-x, -y) - t).abs() < 1e-5);
        }
        assert_eq!(half_turn(0.0, 0.0), 0.0);
    }

    #[test]
    fn powers_are_right_to_two_per_mille() {
        for x in [1e-6f32, 0.01, 0.3, 0.99, 1.0, 1.7, 8.0] {
            for p in [0.25f32, 0.5, 0.9, 1.1] {
                assert!((power(x, p) / x.powf(p) - 1.0).abs() < 2e-3, "{x} {p}: {}", power(x, p) / x.powf(p));
            }
        }
        assert_eq!(power(0.0, 0.5), 0.0);
    }

    #[test]
    fn kernels_have_unit_power_and_lie_along_their_direction() {
        let kernels = Kernels::new();
        for k in &kernels.0 {
            let power: f32 = k.iter().flatten().map(|w| w * w).sum();
            assert!((power - 1.0).abs() < 1e-5);
        }
        let east = kernels.along(1.0, 0.05);
        assert!(east[ARM][ARM + 2] > 5.0 * east[ARM + 2][ARM]);
        let south = kernels.along(0.0, -2.0);
        assert!(south[ARM + 2][ARM] > 5.0 * south[ARM][ARM + 2]);
    }
}
