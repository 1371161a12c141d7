//! Needles blunted: a summit or pit of one cell that stands out far more than the ground around it is drawn back.

use crate::raster::Raster;
use rayon::prelude::*;

/// A cell may be off the mean of its ring by so many sigma: the rms of that difference over the cells around.
const MOST_SIGMA: f32 = 5.5;
/// Cells each way that sigma is taken over.
const AROUND: usize = 4;
/// How far a blunted cell looks.
pub(super) const REACH: usize = AROUND + 1;
/// Eight of the 80 cells around give at least sqrt(8/80) of their rms: a cell within this many of it needs no full look.
const SURELY_BLUNT: f32 = 1.7;

/// One pass over `z`: strict extremes for which `free` holds, all judged on the ground as it was. Cost: nine comparisons a
/// cell, and 80 differences for the few that stand out.
pub(super) fn blunt(z: &mut Raster<f32>, free: &(impl Fn(usize) -> bool + Sync)) {
    let (w, h) = (z.cols, z.rows);
    if w <= 2 * REACH || h <= 2 * REACH {
        return;
    }
    let ground = &*z;
    let edits: Vec<Vec<(usize, f32)>> = (REACH..h - REACH)
        .into_par_iter()
        .map(|r| {
            let mut edits = Vec::new();
            let (n, m, s) = (ground.row(r - 1), ground.row(r), ground.row(r + 1));
            for first in (REACH..w - REACH).step_by(STRIP) {
                let end = (first + STRIP).min(w - REACH);
                let strip = first - 1..end + 1;
                if !has_extreme(&n[strip.clone()], &m[strip.clone()], &s[strip]) {
                    continue;
                }
                for c in first..end {
                    let (low, high) = ring_of(n, m, s, c);
                    if (m[c] < low || m[c] > high) && free(r * w + c) {
                        edits.extend(blunted(ground, c, r).map(|v| (r * w + c, v)));
                    }
                }
            }
            edits
        })
        .collect();
    for (index, level) in edits.into_iter().flatten() {
        z.values[index] = level;
    }
}

/// Cells of a row that are looked at together.
const STRIP: usize = 32;

/// Lowest and highest of the eight cells around column `c`.
#[inline]
fn ring_of(n: &[f32], m: &[f32], s: &[f32], c: usize) -> (f32, f32) {
    let ring = [n[c - 1], n[c], n[c + 1], m[c - 1], m[c + 1], s[c - 1], s[c], s[c + 1]];
    ring.iter()
        .fold((f32::INFINITY, f32::NEG_INFINITY), |(a, b), &v| (if v < a { v } else { a }, if v > b { v } else { b }))
}

/// Whether any value of the middle row but its first and last is a strict extreme.
#[inline]
fn has_extreme(n: &[f32], m: &[f32], s: &[f32]) -> bool {
    let len = m.len();
    let (n, s) = (&n[..len], &s[..len]);
    let mut any = false;
    for c in 1..len - 1 {
        let (low, high) = ring_of(n, m, s, c);
        any |= (m[c] < low) | (m[c] > high);
    }
    any
}

/// How far (c, r) is off the mean of its ring.
#[inline]
fn off(z: &Raster<f32>, c: usize, r: usize) -> f32 {
    let (n, m, s) = (z.row(r - 1), z.row(r), z.row(r + 1));
    let ring = (n[c - 1] + n[c] + n[c + 1]) + (m[c - 1] + m[c + 1]) + (s[c - 1] + s[c] + s[c + 1]);
    m[c] - 0.125 * ring
}

/// The height that (c, r) may keep, if it is a needle.
fn blunted(z: &Raster<f32>, c: usize, r: usize) -> Option<f32> {
    let here = off(z, c, r);
    let square = |(x, y): (usize, usize)| off(z, x, y).powi(2);
    let (far, near) = (AROUND - 1, 2);
    let few = [
        (c - far, r),
        (c + far, r),
        (c, r - far),
        (c, r + far),
        (c - near, r - near),
        (c + near, r - near),
        (c - near, r + near),
        (c + near, r + near),
    ];
    let sigma2 = few.into_iter().map(square).sum::<f32>() / 8.0;
    if here * here <= SURELY_BLUNT * SURELY_BLUNT * sigma2 {
        return None;
    }
    let side = 2 * AROUND + 1;
    let others = (0..side * side).filter(|k| *k != side * side / 2);
    let sum: f32 = others.map(|k| square((c + k % side - AROUND, r + k / side - AROUND))).sum();
    let most = MOST_SIGMA * (sum / (side * side - 1) as f32).sqrt();
    (here.abs() > most).then(|| z.at(c, r) - here + most.copysign(here))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_needle_is_drawn_back_and_a_broad_summit_stays() {
        let ripple = |k: usize| ((k % 20) as f32 * 1.3).sin() + ((k / 20) as f32 * 1.1).cos();
        let mut z = Raster::from_values(20, 20, (0..400).map(ripple).collect());
        let before = z.clone();
        blunt(&mut z, &|_| true);
        assert_eq!(z, before);
        z.set(9, 9, 80.0);
        z.set(12, 14, -60.0);
        blunt(&mut z, &|i| i != 14 * 20 + 12);
        assert!(z.at(9, 9) < 40.0, "{}", z.at(9, 9));
        assert_eq!(z.at(12, 14), -60.0);
        assert!(before.values.iter().zip(&z.values).filter(|(a, b)| a != b).count() == 2);
    }
}
