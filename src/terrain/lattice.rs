//! The diamond-square lattice: nodes at cell corners, levels that halve the spacing, and the step from the finest corners to
//! the cells' centres.
//!
//! A level of spacing s gets its midpoints from the level of spacing 2s: centres first (diamond step), then edges (square
//! step). The last half level is a diamond step from the corners of spacing 1 to the centres of the cells. Midpoint
//! displacement after Fournier, Fussell and Carpenter (1982); the four-point interpolation is Deslauriers and Dubuc's (1989),
//! which leaves no lattice marks; the classic mean of four is kept as an option.

use super::placement::{Placement, RowOf, Uv};
use crate::grid::Window;
use crate::raster::Raster;

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
    #[inline(always)]
    pub(super) fn place(&self, placement: &Placement, k: i64, l: i64) -> Uv {
        placement.at((self.col0 + k) * self.spacing, (self.row0 + l) * self.spacing, self.offset, self.offset)
    }
}

impl Sites {
    /// The values of row `l`, from the first column.
    #[inline(always)]
    pub(super) fn row(&self, l: usize) -> RowOf {
        let s = self.spacing;
        RowOf { col: self.col0 * s, row: (self.row0 + l as i64) * s, spacing: s, offset: self.offset }
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

#[inline(always)]
fn four(a: f32, b: f32, c: f32, d: f32, soft: f32) -> f32 {
    // (-1, 9, 9, -1)/16 for soft 0, written in differences: equal values give that value to the bit.
    b + 0.5 * (c - b) + ((b - a) + (c - d)) * (1.0 / 16.0 - 0.5 * soft)
}

/// A shared node: itself for soft 0, drawn towards its neighbours else.
#[inline(always)]
fn shared(a: f32, b: f32, c: f32, soft: f32) -> f32 {
    b + soft * ((a - b) + (c - b))
}

/// A quarter of the way from b to c: the cubic through four nodes, (-7, 105, 35, -5)/128, in differences.
#[inline(always)]
fn quarter(a: f32, b: f32, c: f32, d: f32) -> f32 {
    b + (35.0 * (c - b) + 7.0 * (b - a) + 5.0 * (b - d)) * (1.0 / 128.0)
}

/// What the nodes of a step are interpolated from.
#[derive(Clone, Copy)]
pub(super) enum Parents<'a> {
    /// Nothing: the top level starts at zero.
    None,
    /// Nodes of twice the spacing (which cover at least [`parents`]): shared nodes are copied, midpoints interpolated.
    Twice(&'a Raster<f32>, Cover),
    /// The corners of spacing 2 for the centres of cells, each a quarter and three quarters of the way between nodes.
    Pairs(&'a Raster<f32>, Cover),
    /// The corners of spacing 1 for the centres of cells (which cover at least [`corners`]): the last diamond step.
    Corners(&'a Raster<f32>, Cover),
}

impl Parents<'_> {
    /// The values of row `r` (absolute), columns from `col` on, into `out`. `line` is scratch. `soft` leads from the
    /// interpolating scheme of the [`Stencil`] (0) to the cubic B-spline's (1/8), which rounds the shared nodes off. Cost: two
    /// interpolations of four nodes a value.
    #[inline(always)]
    pub(super) fn interpolate(
        &self,
        col: i64,
        r: i64,
        (stencil, soft): (Stencil, f32),
        line: &mut Vec<f32>,
        out: &mut [f32],
    ) {
        let classic = stencil == Stencil::Classic;
        let across =
            |z: &Raster<f32>, cover: &Cover, west: i64, need: usize, at: i64, line: &mut Vec<f32>, step: Along| {
                // The parents' columns at this height, from one west of the first parent.
                let first = (west - 1 - cover.col) as usize;
                let at = (at - cover.row) as usize;
                let from = |k: usize| &z.row(k)[first..first + need];
                line.resize(need, 0.0);
                match step {
                    Along::On if classic || soft == 0.0 => line.copy_from_slice(from(at)),
                    Along::On => {
                        let (a, b, c) = (from(at - 1), from(at), from(at + 1));
                        line.iter_mut().enumerate().for_each(|(k, t)| *t = shared(a[k], b[k], c[k], soft));
                    }
                    Along::Half if classic => {
                        let (b, c) = (from(at), from(at + 1));
                        line.iter_mut().zip(b).zip(c).for_each(|((t, b), c)| *t = 0.5 * (b + c));
                    }
                    Along::Half => {
                        let rows = [from(at - 1), from(at), from(at + 1), from(at + 2)];
                        blend(line, rows, |a, b, c, d| four(a, b, c, d, soft));
                    }
                    Along::Quarter => blend(line, [from(at - 1), from(at), from(at + 1), from(at + 2)], quarter),
                    Along::ThreeQuarters => blend(line, [from(at + 2), from(at + 1), from(at), from(at - 1)], quarter),
                }
            };
        let odd = |k: i64| k.rem_euclid(2) == 1;
        let half = |p: &[f32]| if classic { 0.5 * (p[1] + p[2]) } else { four(p[0], p[1], p[2], p[3], soft) };
        match self {
            Parents::None => out.fill(0.0),
            Parents::Twice(z, cover) => {
                let need = (usize::from(odd(col)) + out.len()).div_ceil(2) + 3;
                let step = if odd(r) { Along::Half } else { Along::On };
                across(z, cover, col.div_euclid(2), need, r.div_euclid(2), line, step);
                let soft = if classic { 0.0 } else { soft };
                in_pairs(line, odd(col), out, |p| shared(p[0], p[1], p[2], soft), half);
            }
            Parents::Pairs(z, cover) => {
                let need = (usize::from(odd(col)) + out.len()).div_ceil(2) + 3;
                let step = if odd(r) { Along::ThreeQuarters } else { Along::Quarter };
                across(z, cover, col.div_euclid(2), need, r.div_euclid(2), line, step);
                let near = |p: &[f32]| quarter(p[0], p[1], p[2], p[3]);
                in_pairs(line, odd(col), out, near, |p| quarter(p[3], p[2], p[1], p[0]));
            }
            Parents::Corners(z, cover) => {
                across(z, cover, col, out.len() + 3, r, line, Along::Half);
                out.iter_mut().zip(line.windows(4)).for_each(|(v, p)| *v = half(p));
            }
        }
    }
}

/// Where a row lies between the rows of its parents.
#[derive(Clone, Copy)]
enum Along {
    On,
    Half,
    Quarter,
    ThreeQuarters,
}

#[inline(always)]
fn blend(line: &mut [f32], [a, b, c, d]: [&[f32]; 4], f: impl Fn(f32, f32, f32, f32) -> f32) {
    let n = line.len();
    let (a, b, c, d) = (&a[..n], &b[..n], &c[..n], &d[..n]);
    for (k, t) in line.iter_mut().enumerate() {
        *t = f(a[k], b[k], c[k], d[k]);
    }
}

/// Two values per parent: `even` and `odd` of the four parents around. `starts_odd` leaves out the first.
#[inline(always)]
fn in_pairs(
    line: &[f32],
    starts_odd: bool,
    out: &mut [f32],
    even: impl Fn(&[f32]) -> f32,
    odd: impl Fn(&[f32]) -> f32,
) {
    let (mut out, mut line) = (out, line);
    if starts_odd && !out.is_empty() {
        out[0] = odd(&line[..4]);
        (out, line) = (&mut out[1..], &line[1..]);
    }
    let mut pairs = out.chunks_exact_mut(2);
    for (pair, p) in (&mut pairs).zip(line.windows(4)) {
        pair[0] = even(p);
        pair[1] = odd(p);
    }
    let done = line.len().saturating_sub(3);
    if let [last] = pairs.into_remainder() {
        *last = even(&line[done - 1..done + 3]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_rows(parents: Parents, window: Window, stencil: Stencil) -> Raster<f32> {
        let mut out = Raster::filled(window.cols, window.rows, 0f32);
        let mut line = Vec::new();
        for l in 0..window.rows {
            let row = &mut out.values[l * window.cols..(l + 1) * window.cols];
            parents.interpolate(window.col, window.row + l as i64, (stencil, 0.0), &mut line, row);
        }
        out
    }

    #[test]
    fn four_point_stencil_reproduces_a_cubic_and_keeps_a_constant_to_the_bit() {
        let f = |x: f32| x * x * x - 2.0 * x * x + 0.5 * x;
        assert!((four(f(-1.5), f(-0.5), f(0.5), f(1.5), 0.0) - f(0.0)).abs() < 1e-5);
        for v in [0.1f32, 12.3, 1234.567, -27.9] {
            assert_eq!(four(v, v, v, v, 0.06), v);
            assert_eq!(shared(v, v, v, 0.06), v);
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
                let out = all_rows(Parents::Twice(&z, coarse), fine, stencil);
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
        let out = all_rows(Parents::Corners(&z, cover), window, Stencil::FourPoint);
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
            let out = all_rows(Parents::Pairs(&z, cover), window, Stencil::FourPoint);
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
