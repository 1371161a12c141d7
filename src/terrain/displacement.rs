//! Displacements of one lattice step: white noise, or noise drawn out along the fall of the ground.
//!
//! Real slopes are furrowed: gullies and spurs run downhill, and finer ones run down the sides of coarser ones. So each
//! step's white noise is averaged along the gradient of the ground built so far (line integral convolution, Cabral and
//! Leedom 1993, with straight lines) and stays white across it. Such relief hardly dams the flow. A convex map then makes
//! crests sharper than floors. Every node is displaced, the shared ones too (successive random additions, Saupe 1988): a
//! furrow may not stop at a node of the level above. In plain mode only midpoints move, each by its own draw.
//!
//! Interpolation and displacement are one pass over tiles that stay in the cache; the four nodes of a quad (even column and
//! row and their neighbours) share direction and amplitude.

use super::lattice::{Cover, Parents, Sites, Stencil};
use super::noise::NoiseKey;
use super::placement::{Placement, RowOf, Runs};
use super::roughness::StepShape;
use super::surface::CoarseSurface;
use crate::raster::Raster;
use rayon::prelude::*;

/// Directions that kernels are kept for, over half a turn.
const BINS: usize = 128;
/// Nodes each side of the centre.
const ARM: i64 = 4;
/// Two nodes at each step along the line.
const TAPS: usize = 2 * (2 * ARM as usize + 1);
/// Standard deviations of the kernels along and across the fall, nodes.
const ALONG: f32 = 3.0;
const ACROSS: f32 = 0.45;
/// No displacement is larger, sigma.
const MOST_NOISE: f32 = 3.0;
/// The fall counts up to this many sigma, as a power of two.
const MOST_FALL_LOG2: f32 = 3.0;
/// How far around a node the ground decides about its displacement, nodes.
pub(super) const REACH: usize = 2;
/// Side of a tile, nodes; even.
const TILE: usize = 128;
/// Nodes of noise and of ground around a tile.
const NOISE_RIM: usize = ARM as usize + 1;
const RIM: usize = 2;
/// Width of a tile's noise and ground in memory.
const NOISE_STRIDE: usize = TILE + 2 * NOISE_RIM;
const STRIDE: usize = TILE + 2 * RIM;
/// Noise that a quad's kernel can reach, from the corner of its surroundings: a power of two, and the nodes beside.
const NEAR_MASK: usize = (NOISE_STRIDE * (2 * NOISE_RIM + 1)).next_power_of_two() - 1;
const NEAR: usize = NEAR_MASK + NOISE_STRIDE + 2;
/// Mean and inverse standard deviation of the magnitude of a normal number.
const MEAN_MAGNITUDE: f32 = 0.797_884_6;
const INVERSE_SPREAD: f32 = 1.658_896;

/// A line's nodes as offsets in a tile's noise, from its first corner, with their weights.
type Kernel = [(u32, f32); TAPS];

/// Kernels by direction, each of unit power.
pub(super) struct Kernels(Vec<Kernel>);

impl Kernels {
    pub(super) fn new() -> Kernels {
        let kernel = |bin: usize| {
            let (x, y) = direction((bin as f32 + 0.5) * 2.0 / BINS as f32);
            let steep = x.abs() < y.abs();
            let mut taps: Kernel = [(0, 0.0); TAPS];
            for (k, pair) in taps.chunks_mut(2).enumerate() {
                // A step along the longer axis, and the two nodes beside the line there.
                let major = k as i64 - ARM;
                let minor = (major as f32 * if steep { x / y } else { y / x }).floor() as i64;
                for (n, tap) in pair.iter_mut().enumerate() {
                    let minor = minor + n as i64;
                    let (dx, dy) = if steep { (minor, major) } else { (major, minor) };
                    let (fx, fy) = (dx as f32, dy as f32);
                    let (a, c) = ((fx * x + fy * y) / ALONG, (fx * y - fy * x) / ACROSS);
                    let rim = NOISE_RIM as i64;
                    *tap = (((dy + rim) * NOISE_STRIDE as i64 + dx + rim) as u32, (-0.5 * (a * a + c * c)).exp());
                }
            }
            let power: f32 = taps.iter().map(|t| t.1 * t.1).sum();
            taps.iter_mut().for_each(|t| t.1 /= power.sqrt());
            taps
        };
        Kernels((0..BINS).map(kernel).collect())
    }

    /// The kernel of a bin.
    #[inline(always)]
    fn of(&self, bin: u32) -> &Kernel {
        &self.0[bin as usize % BINS]
    }
}

/// The bin of the direction (x, y) or its opposite. Without branches: four at a time.
#[inline(always)]
fn bin_of(x: f32, y: f32) -> u32 {
    // Added to a number from 0 to 2^22, the sum's low bits are that number, rounded.
    const SHIFT: f32 = 8_388_608.0;
    let t = half_turn(x, y) * (BINS as f32 * 0.5) - 0.5;
    ((t + SHIFT).to_bits() & 0xFFFF).min(BINS as u32 - 1)
}

/// A number from 0 to 2 that grows with the angle of (x, y) or (-x, -y) over half a turn.
#[inline(always)]
fn half_turn(x: f32, y: f32) -> f32 {
    let across = x.abs();
    let along = y.abs();
    let q = along / (across + along).max(1e-30);
    // One of x and y below zero: the angle is obtuse.
    let obtuse = (x.to_bits() ^ y.to_bits()) >> 31 == 1;
    if obtuse { 2.0 - q } else { q }
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
    pub(super) stencil: Stencil,
    pub(super) surface: &'a CoarseSurface,
    pub(super) placement: &'a Placement,
}

/// Rise over one spacing and direction of the ground at a quad.
#[derive(Clone, Copy)]
struct Fall {
    rise: f32,
    bin: u32,
}

/// Memory of one thread.
struct Tile {
    noise: Vec<f32>,
    base: Vec<f32>,
    ground: Vec<f32>,
    line: Vec<f32>,
    sigmas: Vec<f32>,
    runs: Runs,
    falls: [Fall; TILE / 2],
}

impl StepNoise<'_> {
    /// The nodes of `cover`, interpolated and displaced along the fall of themselves plus `smooth`. Values within [`REACH`]
    /// of the rim are not to be used. Cost: one draw, two interpolations and 18 products a node.
    pub(super) fn along_the_fall(
        &self,
        parents: Parents,
        smooth: Option<&Raster<f32>>,
        cover: Cover,
        kernels: &Kernels,
    ) -> Raster<f32> {
        let mut out = Raster::filled(cover.cols, cover.rows, 0f32);
        // Tiles start at even nodes.
        let (odd_col, odd_row) = (cover.col.rem_euclid(2) as usize, cover.row.rem_euclid(2) as usize);
        let tile = || Tile {
            noise: vec![0.0; NOISE_STRIDE * NOISE_STRIDE + NEAR],
            base: vec![0.0; STRIDE * STRIDE],
            ground: vec![0.0; STRIDE * STRIDE],
            line: Vec::new(),
            sigmas: vec![0.0; TILE / 2],
            runs: Runs::default(),
            falls: [Fall { rise: 0.0, bin: 0 }; TILE / 2],
        };
        let mut bands: Vec<(usize, &mut [f32])> = Vec::new();
        let mut rest = out.values.as_mut_slice();
        let mut r0 = 0;
        while r0 < cover.rows {
            let rows = (if r0 == 0 { TILE - odd_row } else { TILE }).min(cover.rows - r0);
            let (band, more) = rest.split_at_mut(rows * cover.cols);
            bands.push((r0, band));
            rest = more;
            r0 += rows;
        }
        bands.into_par_iter().for_each_init(tile, |tile, (r0, band)| {
            let mut c0 = 0;
            while c0 < cover.cols {
                let cols = (if c0 == 0 { TILE - odd_col } else { TILE }).min(cover.cols - c0);
                displace_tile(self, tile, parents, smooth, cover, kernels, (c0, r0, cols), band);
                c0 += cols;
            }
        });
        out
    }

    /// The nodes of `cover`, interpolated; midpoints (all, at the centres of cells or the top) displaced by a draw each.
    pub(super) fn at_midpoints(&self, parents: Parents, cover: Cover, all: bool) -> Raster<f32> {
        let mut out = Raster::filled(cover.cols, cover.rows, 0f32);
        let cols = cover.cols;
        out.values.par_chunks_mut(cols).enumerate().for_each_init(
            || Scratch { line: Vec::new(), sigmas: vec![0.0; cols], noise: vec![0.0; cols], runs: Runs::default() },
            |scratch, (l, row)| {
                midpoint_row(self, parents, cover, l, all, scratch, row);
            },
        );
        out
    }
}

/// One tile: `cols` columns from (c0, r0) of the cover, all rows of `band`.
#[multiversion::multiversion(targets("x86_64+avx+avx2"))]
#[allow(clippy::too_many_arguments)]
fn displace_tile(
    of: &StepNoise,
    tile: &mut Tile,
    parents: Parents,
    smooth: Option<&Raster<f32>>,
    cover: Cover,
    kernels: &Kernels,
    (c0, r0, cols): (usize, usize, usize),
    band: &mut [f32],
) {
    let (w, h) = (cover.cols, cover.rows);
    let rows = band.len() / w;
    // The even node at or before the tile's first, counted from the cover's corner; may be one outside.
    let first_col = c0 as i64 - (cover.col + c0 as i64).rem_euclid(2);
    let first_row = r0 as i64 - (cover.row + r0 as i64).rem_euclid(2);
    let (end_col, end_row) = ((c0 + cols) as i64, (r0 + rows) as i64);
    let rim = RIM as i64;
    // Ground: the tile and its rim, as far as the cover goes.
    let (g0, g1) = ((first_col - rim).max(0), (end_col + rim).min(w as i64));
    let (h0, h1) = ((first_row - rim).max(0), (end_row + rim).min(h as i64));
    let local = |c: i64, r: i64| (r - first_row + rim) as usize * STRIDE + (c - first_col + rim) as usize;
    let n = (g1 - g0) as usize;
    for r in h0..h1 {
        let at = local(g0, r);
        let base = &mut tile.base[at..at + n];
        parents.interpolate(cover.col + g0, cover.row + r, (of.stencil, of.shape.soften), &mut tile.line, base);
        if let Some(smooth) = smooth {
            let s = &smooth.row(r as usize)[g0 as usize..g1 as usize];
            let ground = &mut tile.ground[at..at + n];
            ground.iter_mut().zip(base.iter().zip(s)).for_each(|(g, (b, s))| *g = b + s);
        }
    }
    for l in 0..rows + 2 * NOISE_RIM + (r0 as i64 - first_row) as usize {
        let row = cover.row + first_row + l as i64 - NOISE_RIM as i64;
        let line = &mut tile.noise[l * NOISE_STRIDE..(l + 1) * NOISE_STRIDE];
        of.key.fill_row(cover.col + first_col - NOISE_RIM as i64, row, line);
    }
    let quads = ((end_col - first_col + 1) / 2) as usize;
    let shape = of.shape;
    let ridge_scale = 1.0 / (1.0 + shape.ridge * shape.ridge).sqrt();
    let ridge = shape.ridge * INVERSE_SPREAD * ridge_scale;
    let (fall_share, steepness) = (log2(shape.fall_share), log2(shape.steepness));
    // Quads whose surroundings the cover holds.
    let first_quad = if first_col < 1 { ((2 - first_col) / 2) as usize } else { 0 };
    let end_quad = quads.min(((w as i64 - 1 - first_col) / 2).max(0) as usize);
    let spacing = of.sites.spacing;
    let (noise, base) = (&tile.noise, &mut tile.base);
    for qr in 0..((end_row - first_row + 1) / 2) as usize {
        let row = first_row + 2 * qr as i64;
        let centre = RowOf {
            col: (cover.col + first_col) * spacing,
            row: (cover.row + row) * spacing,
            spacing: 2 * spacing,
            offset: of.sites.offset + 0.5 * spacing as f64,
        };
        let sigmas = &mut tile.sigmas[..quads];
        of.surface.sigma_row(of.placement, centre, shape.gain, &mut tile.runs, sigmas);
        if row < 1 || row + 2 >= h as i64 {
            continue;
        }
        let ground: &[f32] = if smooth.is_some() { &tile.ground } else { base };
        let (mut upper_moves, mut lower_moves) = ([[0f32; 2]; TILE / 2], [[0f32; 2]; TILE / 2]);
        let g = &ground[(2 * qr + RIM - 1) * STRIDE..(2 * qr + RIM + 3) * STRIDE];
        let (g0, g) = g.split_at(STRIDE);
        let (g1, g) = g.split_at(STRIDE);
        let (g2, g3) = g.split_at(STRIDE);
        let falls = &mut tile.falls;
        for (q, fall) in falls.iter_mut().enumerate().take(quads) {
            let k = 2 * q + RIM;
            let x = (g1[k + 2] - g1[k - 1]) + (g2[k + 2] - g2[k - 1]);
            let y = (g3[k] - g0[k]) + (g3[k + 1] - g0[k + 1]);
            let rise = (x * x + y * y).sqrt() * (1.0 / 6.0);
            *fall = Fall { rise, bin: bin_of(x, y) };
        }
        if shape.slope_exponent > 0.0 {
            for (sigma, fall) in sigmas.iter_mut().zip(falls.iter()) {
                let (of_sigma, of_rise) = (log2(*sigma), log2(fall.rise));
                let by_fall = least(of_rise - of_sigma + fall_share, MOST_FALL_LOG2) * shape.slope_exponent;
                let by_slope = least(of_rise + steepness, 0.0) * shape.gentleness;
                *sigma *= exp2(by_fall + by_slope);
            }
        }
        for q in first_quad..end_quad {
            let (amplitude, bin) = (sigmas[q], falls[q].bin);
            if amplitude <= 0.0 {
                continue;
            }
            let start = 2 * qr * NOISE_STRIDE + 2 * q;
            let Some(near) = noise[start..].first_chunk::<NEAR>() else { continue };
            let mut sum = [0f32; 4];
            for &(offset, weight) in kernels.of(bin) {
                // All offsets are below the mask; it only tells the compiler so.
                let at = offset as usize & NEAR_MASK;
                let four = [near[at], near[at + 1], near[at + NOISE_STRIDE], near[at + NOISE_STRIDE + 1]];
                for i in 0..4 {
                    sum[i] += weight * four[i];
                }
            }
            let moved = sum.map(|n| {
                // Beyond three sigma lie needles.
                let n = n.clamp(-MOST_NOISE, MOST_NOISE);
                amplitude * (ridge_scale * n + ridge * (n.abs() - MEAN_MAGNITUDE))
            });
            upper_moves[q] = [moved[0], moved[1]];
            lower_moves[q] = [moved[2], moved[3]];
        }
        // The quads above have been read: this row may change only after the next quad row is done with it. So moves go
        // straight to the result.
        for (half, moves) in [upper_moves, lower_moves].iter().enumerate() {
            let r = row + half as i64;
            if r < r0 as i64 || r >= end_row {
                continue;
            }
            let from = local(c0 as i64, r);
            let to = (r as usize - r0) * w + c0;
            let skip = (c0 as i64 - first_col) as usize;
            let (out, base) = (&mut band[to..to + cols], &base[from..from + cols]);
            let moves = &moves.as_flattened()[skip..];
            out.iter_mut().zip(base.iter().zip(moves)).for_each(|(v, (b, m))| *v = b + m);
        }
    }
    // Rows at the cover's rim that no quad could move.
    for r in r0..r0 + rows {
        let row = r as i64 - (cover.row + r as i64).rem_euclid(2);
        if row < 1 || row + 2 >= h as i64 {
            let (from, to) = (local(c0 as i64, r as i64), (r - r0) * w + c0);
            band[to..to + cols].copy_from_slice(&tile.base[from..from + cols]);
        }
    }
}

/// Memory of one thread for whole rows.
struct Scratch {
    line: Vec<f32>,
    sigmas: Vec<f32>,
    noise: Vec<f32>,
    runs: Runs,
}

/// One row of [`StepNoise::at_midpoints`].
#[multiversion::multiversion(targets("x86_64+avx+avx2"))]
fn midpoint_row(
    of: &StepNoise,
    parents: Parents,
    cover: Cover,
    l: usize,
    all: bool,
    Scratch { line, sigmas, noise, runs }: &mut Scratch,
    row: &mut [f32],
) {
    let r = cover.row + l as i64;
    parents.interpolate(cover.col, r, (of.stencil, 0.0), line, row);
    of.surface.sigma_row(of.placement, of.sites.row(l), of.shape.gain, runs, sigmas);
    of.key.fill_row(cover.col, r, noise);
    if !all {
        // By parity of the column: nodes of the level above stay, edges move less than centres.
        let share = if r.rem_euclid(2) == 1 { [EDGE_SHARE, 1.0] } else { [0.0, EDGE_SHARE] };
        let share = if cover.col.rem_euclid(2) == 1 { [share[1], share[0]] } else { share };
        sigmas.iter_mut().enumerate().for_each(|(k, s)| *s *= if k % 2 == 0 { share[0] } else { share[1] });
    }
    row.iter_mut().zip(sigmas.iter().zip(noise.iter())).for_each(|(v, (s, n))| *v += s * n);
}

/// The logarithm of x > 0 to base 2, to 0.001, by the bits of a float and a short polynomial: the same on every machine, and
/// four at a time. At most -120 for 0.
#[inline(always)]
fn log2(x: f32) -> f32 {
    let bits = x.to_bits() as i32;
    let exponent = ((bits >> 23) - 127) as f32;
    let m = f32::from_bits((bits & 0x007F_FFFF | 0x3F80_0000) as u32) - 1.0;
    // Least squares with exact ends.
    exponent + m * (1.438_073 + m * (-0.674_767 + m * (0.317_001 - m * 0.080_307)))
}

/// 2 to the power y, to 0.02 %; 0 or nearly so below -100.
#[inline(always)]
fn exp2(y: f32) -> f32 {
    // Added to a number within ±2^22, the sum is that number rounded to a whole one.
    const SHIFT: f32 = 12_582_912.0;
    let y = if y > -100.0 { y } else { -100.0 };
    let shifted = y + SHIFT;
    let f = y - (shifted - SHIFT);
    let whole = shifted.to_bits() as i32 - SHIFT.to_bits() as i32;
    let scale = f32::from_bits(((whole + 127) << 23) as u32);
    scale * (1.0 + f * (std::f32::consts::LN_2 + f * (0.240_226 + f * (0.055_504 + f * 0.009_618))))
}

#[inline(always)]
fn least(a: f32, b: f32) -> f32 {
    if a < b { a } else { b }
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
            assert_eq!(bin_of(x, y) as usize, k);
        }
        assert_eq!(half_turn(0.0, 0.0), 0.0);
    }

    #[test]
    fn logarithms_and_powers_of_two_are_right() {
        for x in [1e-6f32, 0.01, 0.3, 0.99, 1.0, 1.7, 8.0, 5000.0] {
            assert!((log2(x) - x.log2()).abs() < 1e-3, "{x}: {}", log2(x));
        }
        for y in [-60.0f32, -3.3, -0.5, 0.0, 0.4, 0.5, 1.0, 7.9] {
            assert!((exp2(y) / y.exp2() - 1.0).abs() < 3e-4, "{y}: {}", exp2(y));
        }
        assert!(log2(0.0) < -120.0 && exp2(-1e9) < 1e-29);
    }

    #[test]
    fn kernels_have_unit_power_and_lie_along_their_direction() {
        let kernels = Kernels::new();
        for k in &kernels.0 {
            let power: f32 = k.iter().map(|t| t.1 * t.1).sum();
            assert!((power - 1.0).abs() < 1e-5);
        }
        let weight = |x: f32, y: f32, dx: i64, dy: i64| {
            let rim = NOISE_RIM as i64;
            let at = ((dy + rim) * NOISE_STRIDE as i64 + dx + rim) as u32;
            kernels.of(bin_of(x, y)).iter().filter(|t| t.0 == at).map(|t| t.1).sum::<f32>()
        };
        assert!(weight(1.0, 0.01, 2, 0) > 5.0 * weight(1.0, 0.01, 0, 2));
        assert!(weight(0.0, -2.0, 0, 2) > 5.0 * weight(0.0, -2.0, 2, 0));
        assert!(weight(-1.0, 1.0, 2, -2) > 5.0 * weight(-1.0, 1.0, 2, 2));
    }
}
