//! Needles blunted: a summit or pit of one cell that stands out far more than the ground around it is drawn back.

use super::ring::{STRIP, extremes};
use super::sparse::SIDE;
use crate::raster::Raster;
use rayon::prelude::*;

/// A cell may be off the mean of its ring by so many sigma: the rms of that difference over the cells around.
const MOST_SIGMA: f32 = 5.2;
/// Cells each way that sigma is taken over.
const AROUND: usize = 4;
/// How far a blunted cell looks.
pub(super) const REACH: usize = AROUND + 1;
/// Eight of the 80 cells around give at least sqrt(8/80) of their rms: a cell within this many of it needs no full look.
const SURELY_BLUNT: f32 = 1.7;

/// One pass over `z`: strict extremes for which `free` holds, all judged on the ground as it was. Cost: twenty operations a
/// cell, and 80 for the few that stand out.
pub(super) fn blunt(z: &mut Raster<f32>, free: &(impl Fn(usize, usize) -> bool + Sync)) {
    let (w, h) = (z.cols, z.rows);
    if w <= 2 * REACH || h <= 2 * REACH {
        return;
    }
    let ground = &*z;
    let bands = (REACH..h - REACH).into_par_iter().step_by(BAND);
    let edits: Vec<_> = bands
        .map_init(
            || vec![0f32; (BAND + 2 * AROUND) * STRIDE],
            |offs, r0| {
                let mut edits = Vec::new();
                let r1 = (r0 + BAND).min(h - REACH);
                for c0 in (REACH..w - REACH).step_by(STRIP) {
                    let c1 = (c0 + STRIP).min(w - REACH);
                    blunt_tile(ground, (c0, c1), (r0, r1), offs, free, &mut edits);
                }
                edits
            },
        )
        .collect();
    for (index, level) in edits.into_iter().flatten() {
        z.values[index] = level;
    }
}

/// One tile of [`blunt`]. `offs` is scratch: by cell of the tile and [`AROUND`] it, how far it is off the mean of its ring.
#[multiversion::multiversion(targets("x86_64+avx+avx2"))]
fn blunt_tile<F: Fn(usize, usize) -> bool + Sync>(
    z: &Raster<f32>,
    (c0, c1): (usize, usize),
    (r0, r1): (usize, usize),
    offs: &mut [f32],
    free: &F,
    edits: &mut Vec<(usize, f32)>,
) {
    let width = c1 - c0 + 2 * AROUND;
    for (r, offs) in (r0 - AROUND..r1 + AROUND).zip(offs.chunks_mut(STRIDE)) {
        let [n, m, s] = [r - 1, r, r + 1].map(|y| &z.row(y)[c0 - REACH..][..width + 2]);
        for (k, off) in offs[..width].iter_mut().enumerate() {
            *off = m[k + 1] - ring_mean([n[k], n[k + 1], n[k + 2]], [m[k], m[k + 2]], [s[k], s[k + 1], s[k + 2]]);
        }
    }
    let offs = &*offs;
    for r in r0..r1 {
        let [n, m, s] = [r - 1, r, r + 1].map(|y| &z.row(y)[c0 - 1..c1 + 1]);
        let mut extreme = [false; STRIP];
        if extremes([n, m, s], &mut extreme[..c1 - c0]) {
            for c in (c0..c1).filter(|c| extreme[c - c0]) {
                let at = (r - r0 + AROUND) * STRIDE + c - c0 + AROUND;
                if let Some(off) = too_far_off(|x, y| offs[at.wrapping_add_signed(y * STRIDE as isize + x)])
                    && free(c, r)
                {
                    edits.push((r * z.cols + c, z.at(c, r) - off));
                }
            }
        }
    }
}

/// The same in some squares alone, given by their upper-left cells.
pub(super) fn blunt_in(
    z: &mut Raster<f32>,
    squares: impl Iterator<Item = (usize, usize)>,
    free: &(impl Fn(usize, usize) -> bool + Sync),
) {
    let (w, h) = (z.cols, z.rows);
    if w <= 2 * REACH || h <= 2 * REACH {
        return;
    }
    let ground = &*z;
    let squares: Vec<_> = squares.collect();
    let of_square = |&(c0, r0): &(usize, usize)| -> Vec<(usize, f32)> {
        let (c0, c1) = (c0.max(REACH), (c0 + SIDE).min(w - REACH));
        let (r0, r1) = (r0.max(REACH), (r0 + SIDE).min(h - REACH));
        let mut edits = Vec::new();
        if c0 < c1 && r0 < r1 {
            blunt_tile(ground, (c0, c1), (r0, r1), &mut vec![0f32; (SIDE + 2 * AROUND) * STRIDE], free, &mut edits);
        }
        edits
    };
    let edits: Vec<_> = squares.par_iter().map(of_square).collect();
    for (index, level) in edits.into_iter().flatten() {
        z.values[index] = level;
    }
}

/// Rows that one task looks at.
const BAND: usize = 64;
/// Width of a tile with its surroundings in memory.
const STRIDE: usize = STRIP + 2 * AROUND;

#[inline(always)]
fn ring_mean(n: [f32; 3], m: [f32; 2], s: [f32; 3]) -> f32 {
    0.125 * ((n[0] + n[1] + n[2]) + (m[0] + m[1]) + (s[0] + s[1] + s[2]))
}

/// How much farther a cell is off its ring than it may be, if it is a needle; `off` tells of the cells around it by their
/// column and row, counted from it.
#[inline(always)]
fn too_far_off(off: impl Fn(isize, isize) -> f32) -> Option<f32> {
    let here = off(0, 0);
    let square = |(x, y): (isize, isize)| {
        let off = off(x, y);
        off * off
    };
    const FAR: isize = AROUND as isize - 1;
    const NEAR: isize = 2;
    let few = [(-FAR, 0), (FAR, 0), (0, -FAR), (0, FAR), (-NEAR, -NEAR), (NEAR, -NEAR), (-NEAR, NEAR), (NEAR, NEAR)];
    let sigma2 = few.into_iter().map(square).sum::<f32>() / 8.0;
    if here * here <= SURELY_BLUNT * SURELY_BLUNT * sigma2 {
        return None;
    }
    const A: isize = AROUND as isize;
    let rows = (-A..=A).map(|y| (-A..=A).filter(|x| (*x, y) != (0, 0)).map(|x| square((x, y))).sum::<f32>());
    let side = 2 * AROUND + 1;
    let most = MOST_SIGMA * (rows.sum::<f32>() / (side * side - 1) as f32).sqrt();
    (here.abs() > most).then(|| here - most.copysign(here))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_needle_is_drawn_back_and_a_broad_summit_stays() {
        let ripple = |k: usize| ((k % 20) as f32 * 1.3).sin() + ((k / 20) as f32 * 1.1).cos();
        let mut z = Raster::from_values(20, 20, (0..400).map(ripple).collect());
        let before = z.clone();
        blunt(&mut z, &|_, _| true);
        assert_eq!(z, before);
        z.set(9, 9, 80.0);
        z.set(12, 14, -60.0);
        blunt(&mut z, &|c, r| (c, r) != (12, 14));
        assert!(z.at(9, 9) < 40.0, "{}", z.at(9, 9));
        assert_eq!(z.at(12, 14), -60.0);
        assert!(before.values.iter().zip(&z.values).filter(|(a, b)| a != b).count() == 2);
    }
}
