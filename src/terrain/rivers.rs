//! River courses on the fine grid: which cells they cross, how high the water stands there, and the valley beside it.

use super::sparse::{SIDE, Sparse, Square};
use crate::grid::{Cell, Window};
use std::collections::HashMap;

/// A point of a river's course.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CoursePoint {
    /// Absolute lattice columns east of the CRS origin.
    pub x_cells: f64,
    /// Absolute lattice rows south of the CRS origin.
    pub y_cells: f64,
    /// Height of the bed, metres; never rises downstream.
    pub z_m: f64,
}

/// A river from source to mouth, its height falling all the way.
#[derive(Debug, Clone, PartialEq)]
pub struct RiverCourse {
    /// Points, source first.
    pub points: Vec<CoursePoint>,
    /// 1 (greatest) to 5: greater rivers win where courses share a cell.
    pub rank: u8,
}

/// Nearest river by cell, out to the half-width of the valleys.
pub(super) struct Valleys {
    /// Squared distance in cells to the nearest river cell (infinite beyond the reach) and the height of its bed, metres.
    nearest: Sparse<(f32, f32)>,
    /// Half-width of the valleys, cells.
    reach_cells: f32,
    window: Window,
}

impl Valleys {
    /// Rasterizes `courses` over `window` (absolute lattice cells).
    pub(super) fn new(courses: &[RiverCourse], window: Window, reach_cells: f32) -> Self {
        let reach = reach_cells.ceil() as i64;
        let near = window.grown(reach as usize);
        let side = SIDE as i64;
        // River cells by the squares that their valleys reach.
        let mut by_square: HashMap<(i64, i64), Vec<RiverCell>> = HashMap::new();
        for ((col, row), z) in beds(courses) {
            if near.contains(Cell { col, row }) {
                let (c, r) = (col - window.col, row - window.row);
                for y in (r - reach).div_euclid(side)..=(r + reach).div_euclid(side) {
                    for x in (c - reach).div_euclid(side)..=(c + reach).div_euclid(side) {
                        by_square.entry((x, y)).or_default().push((c, r, z));
                    }
                }
            }
        }
        let far = (f32::INFINITY, f32::NAN);
        let nearest = Sparse::build(window.cols, window.rows, |c0, r0| {
            let (c0, r0) = (c0 as i64, r0 as i64);
            match by_square.get(&(c0 / side, r0 / side)) {
                None => Square::Flat(far),
                Some(cells) => {
                    let mut square = vec![far; SIDE * SIDE].into_boxed_slice();
                    cells.iter().for_each(|&(c, r, z)| splat(&mut square, (c - c0, r - r0, z), reach));
                    Square::Own(square)
                }
            }
        });
        Valleys { nearest, reach_cells, window }
    }

    /// Calls `each` with column, row, bed height and freedom of every cell in a valley: how much of its own height it keeps,
    /// 0 on a river and 1 at the valley's rim. Ground above the bed rises at once beside it, ground below the bed stays
    /// level with it at first: no bed stands on a dam.
    pub(super) fn each_cell(&self, mut each: impl FnMut(usize, usize, f32, [f32; 2])) {
        for (c0, r0) in self.nearest.own_squares() {
            for r in r0..(r0 + SIDE).min(self.window.rows) {
                for c in c0..(c0 + SIDE).min(self.window.cols) {
                    let (d2, bed_m) = self.nearest.at(c, r);
                    if d2 < self.reach_cells * self.reach_cells {
                        let t = d2.sqrt() / self.reach_cells;
                        each(c, r, bed_m, [t * (2.0 - t), t * t * t]);
                    }
                }
            }
        }
    }

    /// Calls `each` with column and row of every cell that a river's line crosses.
    pub(super) fn each_river_cell(&self, mut each: impl FnMut(usize, usize)) {
        self.each_cell(|c, r, _, _| {
            if self.nearest.at(c, r).0 == 0.0 {
                each(c, r);
            }
        });
    }
}

/// A bed falls at least so much from cell to cell, metres: more than the rounding of any height on Earth.
const LEAST_FALL_M: f32 = 1.0 / 1024.0;

/// The cells that `courses` cross with the heights of their beds: where courses or bends share a cell the lowest, and
/// downstream of it lower still, so that every course falls from cell to cell until it meets a greater one (or, of equals,
/// one given earlier). Cost: a few looks at each cell of the rivers.
fn beds(courses: &[RiverCourse]) -> HashMap<(i64, i64), f32> {
    let everywhere = Window { col: i64::MIN / 4, row: i64::MIN / 4, cols: usize::MAX / 4, rows: usize::MAX / 4 };
    let mut order: Vec<usize> = (0..courses.len()).collect();
    order.sort_by_key(|&k| (courses[k].rank, k));
    // Height of the bed and the course that a cell belongs to: the greatest.
    let mut beds: HashMap<(i64, i64), (f32, usize)> = HashMap::new();
    let mut ways = Vec::new();
    for course in order {
        let mut way: Vec<(i64, i64)> = Vec::new();
        let mut place: HashMap<(i64, i64), usize> = HashMap::new();
        for pair in courses[course].points.windows(2) {
            for (col, row, z) in cells_crossed(pair[0], pair[1], everywhere) {
                let bed = beds.entry((col, row)).or_insert((z, course));
                bed.0 = bed.0.min(z);
                // A bend that comes back to a cell has not left it.
                if let Some(&k) = place.get(&(col, row)) {
                    way.drain(k + 1..).for_each(|c| _ = place.remove(&c));
                } else {
                    place.insert((col, row), way.len());
                    way.push((col, row));
                }
            }
        }
        ways.push((course, way));
    }
    for _ in 0..ROUNDS {
        let mut moved = false;
        for (course, way) in &ways {
            let mut above = f32::INFINITY;
            for cell in way {
                let Some((bed, owner)) = beds.get_mut(cell) else { continue };
                if *bed > above - LEAST_FALL_M {
                    *bed = above - LEAST_FALL_M;
                    moved = true;
                }
                // Where it meets a greater one it has come to its mouth: what follows is that one's fall.
                above = if owner == course { *bed } else { f32::INFINITY };
            }
        }
        if !moved {
            break;
        }
    }
    beds.into_iter().map(|(cell, (bed, _))| (cell, bed)).collect()
}

/// Rounds in which falls are passed on from river to river.
const ROUNDS: usize = 16;

/// Column and row of a river's cell, and the height of its bed.
type RiverCell = (i64, i64, f32);

/// Tells the cells of a square within `reach` of a river's cell (column and row counted from the square's corner, height of
/// the bed) how near it is.
#[multiversion::multiversion(targets("x86_64+avx+avx2"))]
fn splat(square: &mut [(f32, f32)], (c, r, z): RiverCell, reach: i64) {
    let last = SIDE as i64 - 1;
    let (c0, c1) = ((c - reach).max(0), (c + reach).min(last));
    if c1 < c0 {
        return;
    }
    for y in (r - reach).max(0)..=(r + reach).min(last) {
        let row = &mut square[y as usize * SIDE..][c0 as usize..=c1 as usize];
        let (west, dy2) = ((c0 - c) as i32, ((y - r) * (y - r)) as i32);
        for (k, old) in row.iter_mut().enumerate() {
            let dx = west + k as i32;
            let d2 = (dx * dx + dy2) as f32;
            // The lower bed wins a tie, so that the order of rivers cannot matter.
            let nearer = (d2 < old.0) | ((d2 == old.0) & (z < old.1));
            *old = if nearer { (d2, z) } else { *old };
        }
    }
}

/// The cells that the segment from `a` to `b` crosses inside `window`, with the height at the middle of each crossing
/// (grid traversal after Amanatides and Woo 1987).
pub(super) fn cells_crossed(a: CoursePoint, b: CoursePoint, window: Window) -> Vec<(i64, i64, f32)> {
    let (dx, dy) = (b.x_cells - a.x_cells, b.y_cells - a.y_cells);
    let mut cuts = vec![0.0, 1.0];
    let mut add = |from: f64, d: f64| {
        if d == 0.0 {
            return;
        }
        let (lo, hi) = (from.min(from + d), from.max(from + d));
        let mut k = lo.floor() + 1.0;
        while k < hi {
            cuts.push((k - from) / d);
            k += 1.0;
        }
    };
    add(a.x_cells, dx);
    add(a.y_cells, dy);
    cuts.sort_by(f64::total_cmp);
    cuts.windows(2)
        .filter(|p| p[1] > p[0])
        .filter_map(|p| {
            let t = 0.5 * (p[0] + p[1]);
            let (col, row) = ((a.x_cells + t * dx).floor() as i64, (a.y_cells + t * dy).floor() as i64);
            let z = (a.z_m + t * (b.z_m - a.z_m)) as f32;
            window.contains(crate::grid::Cell { col, row }).then_some((col, row, z))
        })
        .collect()
}

/// The highest profile that never rises downstream and lies nearest to `heights` in the least-squares sense (pool adjacent
/// violators; Ayer et al. 1955), not below `mouth_m`, then tilted to fall by at least `fall_m` a step.
pub fn falling_profile(heights: &[f64], mouth_m: f64, fall_m: f64) -> Vec<f64> {
    let mut pools: Vec<(f64, usize)> = Vec::new();
    for &h in heights {
        pools.push((h, 1));
        while pools.len() > 1 && pools[pools.len() - 2].0 < pools[pools.len() - 1].0 {
            let (b, n) = pools.pop().unwrap_or((0.0, 0));
            if let Some(last) = pools.last_mut() {
                last.0 = (last.0 * last.1 as f64 + b * n as f64) / (last.1 + n) as f64;
                last.1 += n;
            }
        }
    }
    let n = heights.len();
    let mut out: Vec<f64> = pools.iter().flat_map(|&(h, k)| std::iter::repeat_n(h, k)).collect();
    for (k, z) in out.iter_mut().enumerate() {
        *z = z.max(mouth_m) + fall_m * (n - 1 - k) as f64;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(x: f64, y: f64, z: f64) -> CoursePoint {
        CoursePoint { x_cells: x, y_cells: y, z_m: z }
    }

    #[test]
    fn a_segment_crosses_each_cell_once_and_falls() {
        let w = Window { col: 0, row: 0, cols: 10, rows: 10 };
        let cells = cells_crossed(point(0.5, 0.5, 10.0), point(3.5, 1.6, 0.0), w);
        assert_eq!(cells.first().map(|c| (c.0, c.1)), Some((0, 0)));
        assert_eq!(cells.last().map(|c| (c.0, c.1)), Some((3, 1)));
        for p in cells.windows(2) {
            assert_eq!((p[1].0 - p[0].0).abs() + (p[1].1 - p[0].1).abs(), 1);
            assert!(p[1].2 < p[0].2);
        }
    }

    #[test]
    fn profiles_never_rise_and_end_at_the_mouth_or_above() {
        let p = falling_profile(&[10.0, 12.0, 8.0, 9.0, -5.0], 0.0, 0.01);
        assert!(p.windows(2).all(|q| q[1] < q[0]), "{p:?}");
        assert_eq!(p[4], 0.0);
        assert!((p[0] - 11.04).abs() < 1e-9);
    }
}
