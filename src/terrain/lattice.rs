//! The diamond-square lattice: nodes at cell corners, levels that halve the spacing, and the step from the finest corners to
//! the cells' centres.
//!
//! A level of spacing s gets its midpoints from the level of spacing 2s: centres first (diamond step), then edges (square
//! step). The last half level is a diamond step from the corners of spacing 1 to the centres of the cells. Midpoint
//! displacement after Fournier, Fussell and Carpenter (1982); the four-point interpolation is Deslauriers and Dubuc's (1989),
//! which leaves no lattice marks; the classic mean of four is kept as an option.

use super::placement::{Placement, Uv};
use crate::grid::Window;
use crate::raster::Raster;
use rayon::prelude::*;

/// How a midpoint is interpolated before it is displaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stencil {
    /// (-1, 9, 9, -1)/16 along each axis.
    #[default]
    FourPoint,
    /// The mean of the nearest nodes, as in the textbooks; shows creases along the lattice.
    Classic,
}

/// Where the values of a raster lie on the lattice: value (k, l) at the point ((col0 + k) · spacing + offset,
/// (row0 + l) · spacing + offset), in cells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sites {
    pub(super) col0: i64,
    pub(super) row0: i64,
    pub(super) spacing: i64,
    /// 0 for corners, 0.5 for the centres of cells.
    pub(super) offset: f64,
}

impl Sites {
    /// The centres of the cells of `window`.
    pub(super) fn centres(window: Window) -> Sites {
        Sites { col0: window.col, row0: window.row, spacing: 1, offset: 0.5 }
    }

    /// Position of value (k, l) in the coarse raster.
    #[inline]
    pub(super) fn place(&self, placement: &Placement, k: i64, l: i64) -> Uv {
        placement.at((self.col0 + k) * self.spacing, (self.row0 + l) * self.spacing, self.offset, self.offset)
    }
}

impl Sites {
    /// Positions of the values of row `l`, from the first column.
    #[inline]
    pub(super) fn place_row(&self, placement: &Placement, l: usize, out: &mut [Uv]) {
        let s = self.spacing;
        placement.along_row(self.col0 * s, (self.row0 + l as i64) * s, s, self.offset, out);
    }
}

/// A rectangle of one level's nodes, in units of its spacing.
pub(super) type Cover = Window;

/// The nodes of spacing 2s that the nodes `fine` of spacing s are interpolated from.
pub(super) fn parents(fine: Cover) -> Cover {
    let (c0, r0) = (fine.col.div_euclid(2) - 1, fine.row.div_euclid(2) - 1);
    let c1 = (fine.col + fine.cols as i64 - 1).div_euclid(2) + 2;
    let r1 = (fine.row + fine.rows as i64 - 1).div_euclid(2) + 2;
    Window { col: c0, row: r0, cols: (c1 - c0 + 1) as usize, rows: (r1 - r0 + 1) as usize }
}

/// The corners of spacing 1 that the centres of the cells of `window` are interpolated from.
pub(super) fn corners(window: Window) -> Cover {
    Window { col: window.col - 1, row: window.row - 1, cols: window.cols + 3, rows: window.rows + 3 }
}

#[inline]
fn four(a: f32, b: f32, c: f32, d: f32) -> f32 {
    // (-1, 9, 9, -1)/16, written in differences: equal values give that value to the bit.
    b + 0.5 * (c - b) + ((b - a) + (c - d)) * (1.0 / 16.0)
}

/// The nodes `fine` (half the spacing of `z`, which covers `coarse`): shared nodes copied, midpoints interpolated.
pub(super) fn subdivide(z: &Raster<f32>, coarse: Cover, fine: Cover, stencil: Stencil) -> Raster<f32> {
    let mut out = Raster::filled(fine.cols, fine.rows, 0f32);
    let classic = stencil == Stencil::Classic;
    let first = (fine.col.div_euclid(2) - coarse.col) as usize;
    let odd_start = fine.col.rem_euclid(2) as usize;
    let need = (odd_start + fine.cols).div_ceil(2) + 3;
    out.values.par_chunks_mut(fine.cols).enumerate().for_each_init(
        || vec![0f32; need],
        |line, (l, row)| {
            let r = fine.row + l as i64;
            let at = (r.div_euclid(2) - coarse.row) as usize;
            // One row of the coarse columns at this height, from the column west of the first parent.
            let from = |k: usize| &z.row(k)[first - 1..first - 1 + need];
            if r.rem_euclid(2) == 0 {
                line.copy_from_slice(from(at));
            } else if classic {
                let (b, c) = (from(at), from(at + 1));
                line.iter_mut().zip(b.iter().zip(c)).for_each(|(t, (b, c))| *t = 0.5 * (b + c));
            } else {
                let (a, b, c, d) = (from(at - 1), from(at), from(at + 1), from(at + 2));
                for (k, t) in line.iter_mut().enumerate() {
                    *t = four(a[k], b[k], c[k], d[k]);
                }
            }
            let mid = |k: usize| {
                if classic {
                    0.5 * (line[k] + line[k + 1])
                } else {
                    four(line[k - 1], line[k], line[k + 1], line[k + 2])
                }
            };
            for (k, v) in row.iter_mut().enumerate() {
                let p = k + odd_start;
                *v = if p.is_multiple_of(2) { line[p / 2 + 1] } else { mid(p / 2 + 1) };
            }
        },
    );
    out
}

/// The last diamond step: from the corners `z` of spacing 1 to the centres of the cells of `window`.
pub(super) fn to_centres(z: &Raster<f32>, cover: Cover, window: Window, stencil: Stencil) -> Raster<f32> {
    let mut out = Raster::filled(window.cols, window.rows, 0f32);
    let classic = stencil == Stencil::Classic;
    let first = (window.col - cover.col) as usize;
    let need = window.cols + 3;
    out.values.par_chunks_mut(window.cols).enumerate().for_each_init(
        || vec![0f32; need],
        |line, (l, row)| {
            let at = (window.row + l as i64 - cover.row) as usize;
            let from = |k: usize| &z.row(k)[first - 1..first - 1 + need];
            let (a, b, c, d) = (from(at - 1), from(at), from(at + 1), from(at + 2));
            for (k, t) in line.iter_mut().enumerate() {
                *t = if classic { 0.5 * (b[k] + c[k]) } else { four(a[k], b[k], c[k], d[k]) };
            }
            for (k, v) in row.iter_mut().enumerate() {
                *v = if classic {
                    0.5 * (line[k + 1] + line[k + 2])
                } else {
                    four(line[k], line[k + 1], line[k + 2], line[k + 3])
                };
            }
        },
    );
    out
}

/// A quarter of the way from b to c: the cubic through four nodes, (-7, 105, 35, -5)/128, in differences.
#[inline]
fn quarter(a: f32, b: f32, c: f32, d: f32) -> f32 {
    b + (35.0 * (c - b) + 7.0 * (b - a) + 5.0 * (b - d)) * (1.0 / 128.0)
}

/// The centres of the cells of `window` straight from the corners `z` of spacing 2 (which cover `cover`, at least
/// [`parents`] of the window): each lies a quarter and three quarters of the way between nodes.
pub(super) fn to_centres_from_pairs(z: &Raster<f32>, cover: Cover, window: Window) -> Raster<f32> {
    let mut out = Raster::filled(window.cols, window.rows, 0f32);
    let first = (window.col.div_euclid(2) - cover.col) as usize;
    let odd_start = window.col.rem_euclid(2) as usize;
    let need = (odd_start + window.cols).div_ceil(2) + 3;
    out.values.par_chunks_mut(window.cols).enumerate().for_each_init(
        || vec![0f32; need],
        |line, (l, row)| {
            let r = window.row + l as i64;
            let at = (r.div_euclid(2) - cover.row) as usize;
            let from = |k: usize| &z.row(k)[first - 1..first - 1 + need];
            let (a, b, c, d) = match r.rem_euclid(2) {
                0 => (from(at - 1), from(at), from(at + 1), from(at + 2)),
                _ => (from(at + 2), from(at + 1), from(at), from(at - 1)),
            };
            for (k, t) in line.iter_mut().enumerate() {
                *t = quarter(a[k], b[k], c[k], d[k]);
            }
            for (k, v) in row.iter_mut().enumerate() {
                let p = (k + odd_start) / 2;
                *v = if (k + odd_start).is_multiple_of(2) {
                    quarter(line[p], line[p + 1], line[p + 2], line[p + 3])
                } else {
                    quarter(line[p + 3], line[p + 2], line[p + 1], line[p])
                };
            }
        },
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_point_stencil_reproduces_a_cubic_and_keeps_a_constant_to_the_bit() {
        let f = |x: f32| x * x * x - 2.0 * x * x + 0.5 * x;
        assert!((four(f(-1.5), f(-0.5), f(0.5), f(1.5)) - f(0.0)).abs() < 1e-5);
        for v in [0.1f32, 12.3, 1234.567, -27.9] {
            assert_eq!(four(v, v, v, v), v);
        }
    }

    #[test]
    fn a_plane_is_kept_by_both_stencils_whatever_the_parity_of_the_window() {
        let plane = |c: f32, r: f32| 3.0 * c - 2.0 * r + 7.0;
        for stencil in [Stencil::FourPoint, Stencil::Classic] {
            for (col, row) in [(-5, 4), (-4, 3), (0, 0), (7, -9)] {
                let fine = Window { col, row, cols: 6, rows: 5 };
                let coarse = parents(fine);
                let mut z = Raster::filled(coarse.cols, coarse.rows, 0f32);
                for l in 0..coarse.rows {
                    for k in 0..coarse.cols {
                        z.set(k, l, plane(2.0 * (coarse.col + k as i64) as f32, 2.0 * (coarse.row + l as i64) as f32));
                    }
                }
                let out = subdivide(&z, coarse, fine, stencil);
                for l in 0..5 {
                    for k in 0..6 {
                        let want = plane((col + k as i64) as f32, (row + l as i64) as f32);
                        assert!((out.at(k, l) - want).abs() < 1e-4, "{stencil:?} {col} {row} {k} {l}");
                    }
                }
            }
        }
    }

    #[test]
    fn centres_lie_half_a_cell_inside_their_corners() {
        let window = Window { col: -2, row: 5, cols: 4, rows: 3 };
        let cover = corners(window);
        let mut z = Raster::filled(cover.cols, cover.rows, 0f32);
        for l in 0..cover.rows {
            for k in 0..cover.cols {
                z.set(k, l, (cover.col + k as i64) as f32 + 10.0 * (cover.row + l as i64) as f32);
            }
        }
        let out = to_centres(&z, cover, window, Stencil::FourPoint);
        assert!((out.at(0, 0) - (-1.5 + 55.0)).abs() < 1e-5);
        assert!((out.at(3, 2) - (1.5 + 75.0)).abs() < 1e-5);
    }

    #[test]
    fn pairs_give_the_centres_of_a_cubic_surface() {
        let f = |x: f64, y: f64| 0.01 * x * x * x - 0.1 * x * y + 0.02 * y * y + 3.0;
        for (col, row) in [(-3, 4), (2, -5), (-4, -2), (7, 7)] {
            let window = Window { col, row, cols: 5, rows: 4 };
            let cover = parents(window);
            let mut z = Raster::filled(cover.cols, cover.rows, 0f32);
            for l in 0..cover.rows {
                for k in 0..cover.cols {
                    let (x, y) = (2 * (cover.col + k as i64), 2 * (cover.row + l as i64));
                    z.set(k, l, f(x as f64, y as f64) as f32);
                }
            }
            let out = to_centres_from_pairs(&z, cover, window);
            for l in 0..4 {
                for k in 0..5 {
                    let want = f((col + k as i64) as f64 + 0.5, (row + l as i64) as f64 + 0.5);
                    assert!((f64::from(out.at(k, l)) - want).abs() < 1e-3, "{col} {row} {k} {l}");
                }
            }
        }
        assert_eq!(quarter(0.1, 0.1, 0.1, 0.1), 0.1);
    }
}
