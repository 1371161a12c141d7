//! Needles blunted: a summit or pit of one cell that stands out far more than the ground around it is drawn back.

use super::ring::{STRIP, extremes};
use super::sparse::SIDE;
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

/// One pass over `z`: strict extremes for which `free` holds, all judged on the ground as it was. Cost: ten comparisons a
/// cell, and 80 differences for the few that stand out.
pub(super) fn blunt(z: &mut Raster<f32>, free: &(impl Fn(usize) -> bool + Sync)) {
    let (w, h) = (z.cols, z.rows);
    if w <= 2 * REACH || h <= 2 * REACH {
        return;
    }
    let ground = &*z;
    let bands = (REACH..h - REACH).into_par_iter().step_by(BAND);
    let edits: Vec<_> = bands
        .map(|r0| {
            let mut edits = Vec::new();
            for r in r0..(r0 + BAND).min(h - REACH) {
                let rows = [ground.row(r - 1), ground.row(r), ground.row(r + 1)];
                for first in (REACH..w - REACH).step_by(STRIP) {
                    let end = (first + STRIP).min(w - REACH);
                    let mut extreme = [false; STRIP];
                    if extremes(rows.map(|row| &row[first - 1..end + 1]), &mut extreme[..end - first]) {
                        for c in (first..end).filter(|c| extreme[c - first]) {
                            edits.extend(edit(ground, c, r, free));
                        }
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

/// The same in some squares alone, given by their upper-left cells.
pub(super) fn blunt_in(
    z: &mut Raster<f32>,
    squares: impl Iterator<Item = (usize, usize)>,
    free: &(impl Fn(usize) -> bool + Sync),
) {
    let (w, h) = (z.cols, z.rows);
    if w <= 2 * REACH || h <= 2 * REACH {
        return;
    }
    let ground = &*z;
    let squares: Vec<_> = squares.collect();
    let of_square = |&(c0, r0): &(usize, usize)| -> Vec<(usize, f32)> {
        let rows = r0.max(REACH)..(r0 + SIDE).min(h - REACH);
        let columns = c0.max(REACH)..(c0 + SIDE).min(w - REACH);
        rows.flat_map(|r| columns.clone().filter_map(move |c| Some((c, r))))
            .filter(|&(c, r)| {
                let mut extreme = [false];
                extremes([r - 1, r, r + 1].map(|y| &ground.row(y)[c - 1..c + 2]), &mut extreme)
            })
            .filter_map(|(c, r)| edit(ground, c, r, free))
            .collect()
    };
    let edits: Vec<_> = squares.par_iter().map(of_square).collect();
    for (index, level) in edits.into_iter().flatten() {
        z.values[index] = level;
    }
}

/// Rows that one task looks at.
const BAND: usize = 16;

/// What the extreme at (c, r) becomes, if it is a needle and free.
fn edit(z: &Raster<f32>, c: usize, r: usize, free: &impl Fn(usize) -> bool) -> Option<(usize, f32)> {
    let index = r * z.cols + c;
    if free(index) { blunted(z, c, r).map(|v| (index, v)) } else { None }
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
