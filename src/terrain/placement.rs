//! Where a fine cell lies in a coarse raster: continuous column u and row v, by bilinear interpolation between nodes that
//! were projected exactly.

use crate::grid::Window;
use crate::raster::Raster;

/// Position in a coarse raster, in its cells: the cell in column c and row r covers c ≤ u < c+1, r ≤ v < r+1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Uv {
    /// Columns from the west edge.
    pub u: f64,
    /// Rows from the north edge.
    pub v: f64,
}

/// The map from fine lattice positions to coarse ones over a window of the fine grid.
///
/// Nodes stand at lattice corners whose absolute column and row are multiples of `step`, so any two placements of one
/// grid agree bit for bit where they overlap.
#[derive(Debug, Clone, PartialEq)]
pub struct Placement {
    node_col0: i64,
    node_row0: i64,
    u: Raster<f64>,
    v: Raster<f64>,
}

impl Placement {
    /// Node spacing in fine cells for [`Placement::new`]: over 16 cells of 250 m the bilinear error is under 0.4 m.
    pub const STEP: usize = 16;

    /// A placement over `window` (absolute lattice cells), its nodes filled by `locate`: (absolute node columns, node rows)
    /// in lattice cells from the CRS origin → u and v. Called once with all nodes, row after row.
    ///
    /// # Errors
    /// Whatever `locate` returns.
    pub fn new<E>(window: Window, locate: impl FnOnce(&[(i64, i64)]) -> Result<Vec<Uv>, E>) -> Result<Self, E> {
        let step = Self::STEP as i64;
        let (c0, r0) = (window.col.div_euclid(step), window.row.div_euclid(step));
        let c1 = (window.col + window.cols as i64).div_euclid(step) + 1;
        let r1 = (window.row + window.rows as i64).div_euclid(step) + 1;
        let (cols, rows) = ((c1 - c0 + 1) as usize, (r1 - r0 + 1) as usize);
        let nodes: Vec<_> = (r0..=r1).flat_map(|r| (c0..=c1).map(move |c| (c * step, r * step))).collect();
        let uv = locate(&nodes)?;
        assert_eq!(uv.len(), nodes.len(), "one position per node");
        Ok(Placement {
            node_col0: c0,
            node_row0: r0,
            u: Raster::from_values(cols, rows, uv.iter().map(|p| p.u).collect()),
            v: Raster::from_values(cols, rows, uv.iter().map(|p| p.v).collect()),
        })
    }

    /// The position of the lattice point (`col` + `dx`, `row` + `dy`), absolute lattice cells, dx and dy in 0..1; a cell's
    /// centre is at (0.5, 0.5).
    #[inline]
    pub fn at(&self, col: i64, row: i64, dx: f64, dy: f64) -> Uv {
        let step = Self::STEP as i64;
        let inv = 1.0 / Self::STEP as f64;
        let (nc, nr) = (col.div_euclid(step), row.div_euclid(step));
        let fx = (col.rem_euclid(step) as f64 + dx) * inv;
        let fy = (row.rem_euclid(step) as f64 + dy) * inv;
        let c = (nc - self.node_col0).clamp(0, self.u.cols as i64 - 2) as usize;
        let r = (nr - self.node_row0).clamp(0, self.u.rows as i64 - 2) as usize;
        let corners = |a: &Raster<f64>| (a.at(c, r), a.at(c + 1, r), a.at(c, r + 1), a.at(c + 1, r + 1));
        Uv { u: bilinear(corners(&self.u), fx, fy), v: bilinear(corners(&self.v), fx, fy) }
    }

    /// Appends the positions of the first `n` points of a row.
    pub(super) fn places(&self, row: RowOf, n: usize, out: &mut Vec<Uv>) {
        let at = |k: i64| self.at(row.col + k * row.spacing, row.row, row.offset, row.offset);
        out.extend((0..n as i64).map(at));
    }

    /// The lattice points (`col` + k · `spacing` + `offset`, `row` + `offset`), k from 0 to `n`, in `runs` that lie in one coarse
    /// cell each, after `shift` was taken from u and v. A point belongs to the same cell and has the same place in it to the bit
    /// whatever row it is asked for with. `runs` remembers the row before: where rows differ in v alone, this costs next to
    /// nothing; it must not be carried from one placement to another.
    #[inline(always)]
    pub(super) fn runs<'a>(&self, row_of: RowOf, n: usize, shift: f64, runs: &'a mut Runs) -> &'a [Run] {
        let RowOf { col, row, spacing, offset } = row_of;
        // Steps and spacings are powers of two: no divisions.
        const SHIFT: u32 = Placement::STEP.trailing_zeros();
        let step = Self::STEP as i64;
        let inv = 1.0 / Self::STEP as f64;
        let spacing_shift = spacing.trailing_zeros();
        let fy = ((row & (step - 1)) as f64 + offset) * inv;
        let r = ((row >> SHIFT) - self.node_row0).clamp(0, self.u.rows as i64 - 2) as usize;
        let alike = RunsKey { col, spacing, offset: offset.to_bits(), shift: shift.to_bits(), n };
        if runs.alike == Some(alike) && (runs.node_row == r || self.is_upright(row_of, n, [runs.node_row, r])) {
            runs.node_row = r;
            let c = ((col >> SHIFT) - self.node_col0).clamp(0, self.v.cols as i64 - 2) as usize;
            let v = self.v.at(c, r) + (self.v.at(c, r + 1) - self.v.at(c, r)) * fy - shift;
            let j = whole_below(v);
            let y = (v - j as f64) as f32;
            runs.list.iter_mut().for_each(|run| (run.j, run.y) = (j, y));
            return &runs.list;
        }
        runs.list.clear();
        let mut k = 0;
        while k < n {
            let at = col + k as i64 * spacing;
            let nc = at >> SHIFT;
            let c = (nc - self.node_col0).clamp(0, self.u.cols as i64 - 2) as usize;
            // All points up to the next node share four nodes: u and v are linear along them.
            let left = ((nc + 1) * step - at + spacing - 1) >> spacing_shift;
            let end = n.min(k + left.max(1) as usize);
            let line = |a: &Raster<f64>| {
                let west = a.at(c, r) + (a.at(c, r + 1) - a.at(c, r)) * fy;
                let east = a.at(c + 1, r) + (a.at(c + 1, r + 1) - a.at(c + 1, r)) * fy;
                (west - shift, (east - west) * inv)
            };
            let ((u, du), (v, dv)) = (line(&self.u), line(&self.v));
            let first = at - nc * step;
            let k0 = k;
            let t = |m: usize| (first + (m - k0) as i64 * spacing) as f64 + offset;
            let level = whole_below(v);
            let height = |m: usize| if dv == 0.0 { level } else { whole_below(v + t(m) * dv) };
            let cell = |m: usize| (whole_below(u + t(m) * du), height(m));
            let last = cell(end - 1);
            while k < end {
                let here = cell(k);
                let stop = if here == last {
                    end
                } else {
                    // The first point in another cell, by halving: both coordinates are monotone.
                    let (mut lo, mut hi) = (k, end - 1);
                    while hi - lo > 1 {
                        let mid = (lo + hi) / 2;
                        if cell(mid) == here { lo = mid } else { hi = mid }
                    }
                    hi
                };
                runs.list.push(Run {
                    start: k,
                    end: stop,
                    i: here.0,
                    j: here.1,
                    x: (u - here.0 as f64) as f32,
                    dx: du as f32,
                    y: (v - here.1 as f64) as f32,
                    dy: dv as f32,
                    t: t(k) as f32,
                    dt: spacing as f32,
                });
                k = stop;
            }
        }
        runs.alike = self.is_upright(row_of, n, [r, r]).then_some(alike);
        runs.node_row = r;
        &runs.list
    }

    /// Whether u is the same in all rows between the nodes of these rows and those below them, and v along each.
    fn is_upright(&self, RowOf { col, spacing, .. }: RowOf, n: usize, [a, b]: [usize; 2]) -> bool {
        let step = Self::STEP as i64;
        let node = |at: i64| (at.div_euclid(step) - self.node_col0).clamp(0, self.u.cols as i64 - 2) as usize;
        let nodes = node(col)..node(col + (n as i64 - 1) * spacing) + 2;
        let us = [a, a + 1, b, b + 1].map(|r| &self.u.row(r)[nodes.clone()]);
        let vs = [b, b + 1].map(|r| &self.v.row(r)[nodes.clone()]);
        us[1..].iter().all(|u| *u == us[0]) && vs.iter().all(|v| v.iter().all(|x| *x == v[0]))
    }
}

/// The runs of a row, kept for the next.
#[derive(Debug, Default)]
pub(super) struct Runs {
    list: Vec<Run>,
    /// What another row must share to have the same runs but for their v; `None` where v changes along the row, or u across.
    alike: Option<RunsKey>,
    /// The row of nodes above the row that they were made for.
    node_row: usize,
}

/// What rows share whose runs differ in v alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RunsKey {
    col: i64,
    spacing: i64,
    offset: u64,
    shift: u64,
    n: usize,
}

/// A row of lattice points.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowOf {
    pub(super) col: i64,
    pub(super) row: i64,
    pub(super) spacing: i64,
    pub(super) offset: f64,
}

/// Points k of a row, `start` ≤ k < `end`, in the coarse cell (i, j): point k lies at (x + s·dx, y + s·dy) of the cell,
/// s = t + (k - start)·dt.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) i: i64,
    pub(super) j: i64,
    pub(super) x: f32,
    pub(super) dx: f32,
    pub(super) y: f32,
    pub(super) dy: f32,
    pub(super) t: f32,
    pub(super) dt: f32,
}

impl Run {
    /// The places of its points in the cell, about 0 to 1, one after the other.
    #[inline(always)]
    pub(super) fn places(&self) -> impl Iterator<Item = (f32, f32)> + '_ {
        // No run is longer than the way from node to node.
        RAMP[..self.end - self.start].iter().map(|m| {
            let s = self.t + m * self.dt;
            (self.x + s * self.dx, self.y + s * self.dy)
        })
    }
}

/// 0, 1, 2, ...: whole numbers turned into floats cost more than all else along a run.
const RAMP: [f32; Placement::STEP] = {
    let mut ramp = [0.0; Placement::STEP];
    let mut m = 0;
    while m < ramp.len() {
        ramp[m] = m as f32;
        m += 1;
    }
    ramp
};

#[inline]
fn bilinear((p, q, s, t): (f64, f64, f64, f64), fx: f64, fy: f64) -> f64 {
    let top = p + (q - p) * fx;
    let bottom = s + (t - s) * fx;
    top + (bottom - top) * fy
}

/// The largest whole number not above `x`, as an integer (without the call that `f64::floor` costs on older targets).
#[inline(always)]
pub(super) fn whole_below(x: f64) -> i64 {
    let i = x as i64;
    i - i64::from((i as f64) > x)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn affine(nodes: &[(i64, i64)]) -> Result<Vec<Uv>, ()> {
        Ok(nodes.iter().map(|&(c, r)| Uv { u: c as f64 / 4.0 + 10.0, v: r as f64 / 4.0 + 20.0 }).collect())
    }

    #[test]
    fn an_affine_map_is_reproduced_at_cell_centres() {
        let w = Window { col: -37, row: 5, cols: 50, rows: 20 };
        let p = Placement::new(w, affine).unwrap();
        let q = p.at(-37, 24, 0.5, 0.5);
        assert_eq!((q.u, q.v), (-36.5 / 4.0 + 10.0, 24.5 / 4.0 + 20.0));
    }

    #[test]
    fn overlapping_placements_agree_bit_for_bit() {
        let curved = |nodes: &[(i64, i64)]| -> Result<Vec<Uv>, ()> {
            Ok(nodes
                .iter()
                .map(|&(c, r)| Uv { u: (c as f64).sin() * 7.0 + c as f64, v: (r as f64 * 0.1).cos() + r as f64 })
                .collect())
        };
        let a = Placement::new(Window { col: 0, row: 0, cols: 100, rows: 100 }, curved).unwrap();
        let b = Placement::new(Window { col: 33, row: 41, cols: 9, rows: 13 }, curved).unwrap();
        for (c, r) in [(33, 41), (41, 53), (35, 48)] {
            assert_eq!(a.at(c, r, 0.5, 0.5), b.at(c, r, 0.5, 0.5));
        }
    }

    #[test]
    fn runs_put_every_point_where_it_is_and_agree_whatever_row_they_are_asked_for_with() {
        let curved = |nodes: &[(i64, i64)]| -> Result<Vec<Uv>, ()> {
            Ok(nodes
                .iter()
                .map(|&(c, r)| Uv { u: c as f64 / 7.3 + (r as f64 * 0.1).sin(), v: r as f64 / 5.1 - c as f64 * 0.02 })
                .collect())
        };
        let p = Placement::new(Window { col: -50, row: -7, cols: 300, rows: 40 }, curved).unwrap();
        for (spacing, offset) in [(1, 0.5), (2, 0.0), (2, 1.0), (4, 0.0), (32, 0.0)] {
            let n = 150 / spacing as usize;
            let places = |col: i64, n: usize| {
                let mut out = vec![None; n];
                let mut runs = Runs::default();
                for run in p.runs(RowOf { col, row: -6, spacing, offset }, n, 0.0, &mut runs) {
                    for (place, (x, y)) in out[run.start..run.end].iter_mut().zip(run.places()) {
                        assert!(place.is_none(), "each point once");
                        *place = Some((run.i, run.j, x, y));
                    }
                }
                out.into_iter().map(|p| p.expect("every point")).collect::<Vec<_>>()
            };
            let all = places(-32, n);
            for (k, &(i, j, x, y)) in all.iter().enumerate() {
                let want = p.at(-32 + k as i64 * spacing, -6, offset, offset);
                assert!(
                    (i as f64 + f64::from(x) - want.u).abs() < 1e-5 && (j as f64 + f64::from(y) - want.v).abs() < 1e-5
                );
                assert!((-1e-5..1.0 + 1e-5).contains(&x) && (-1e-5..1.0 + 1e-5).contains(&y), "{x} {y}");
            }
            assert_eq!(places(-32 + 3 * spacing, n - 3), all[3..]);
        }
    }

    #[test]
    fn runs_carried_from_row_to_row_are_those_of_the_row() {
        // Upright, but for the last rows of nodes.
        let bent = |nodes: &[(i64, i64)]| -> Result<Vec<Uv>, ()> {
            let at = |&(c, r): &(i64, i64)| Uv { u: (c + (r - 40).max(0)) as f64 / 7.0, v: r as f64 / 7.0 };
            Ok(nodes.iter().map(at).collect())
        };
        let p = Placement::new(Window { col: -20, row: -9, cols: 120, rows: 90 }, bent).unwrap();
        let mut carried = Runs::default();
        for row in -9..80 {
            let of = RowOf { col: -17, row, spacing: 1, offset: 0.5 };
            let fresh = format!("{:?}", p.runs(of, 100, 0.5, &mut Runs::default()));
            assert_eq!(format!("{:?}", p.runs(of, 100, 0.5, &mut carried)), fresh, "row {row}");
        }
    }

    #[test]
    fn whole_numbers_below() {
        for x in [-2.0, -1.5, -0.1, 0.0, 0.9, 3.0] {
            assert_eq!(whole_below(x), f64::floor(x) as i64);
        }
    }
}
