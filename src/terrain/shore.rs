//! Water bodies on the fine grid: how far a cell is from a shore, and what that allows it to be.

use super::part::Part;
use super::sparse::{SIDE, Sparse, Square};

/// Distance between neighbours in the chamfer metric, in fifths of a cell.
const STRAIGHT: u32 = 5;
const DIAGONAL: u32 = 7;

/// Which squares of a raster of body indices hold land, water or a shore.
pub(super) struct WaterSquares(Sparse<Kind>);

/// What a square holds, with the cells around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Land alone.
    Land,
    /// Water alone.
    Water,
    /// Both.
    Shore,
}

impl WaterSquares {
    /// One look at each cell of `bodies` (0 = land).
    pub(super) fn new(bodies: Part) -> WaterSquares {
        let (w, h) = (bodies.cols, bodies.rows);
        WaterSquares(Sparse::build(w, h, |c0, r0| {
            let (c1, r1) = ((c0 + SIDE + 1).min(w), (r0 + SIDE + 1).min(h));
            let (mut land, mut water) = (false, false);
            for r in r0.saturating_sub(1)..r1 {
                for &body in &bodies.row(r)[c0.saturating_sub(1)..c1] {
                    land |= body == 0;
                    water |= body != 0;
                }
            }
            Square::Flat(match (land, water) {
                (true, true) => Kind::Shore,
                (false, true) => Kind::Water,
                _ => Kind::Land,
            })
        }))
    }

    /// Whether there is any water.
    pub(super) fn any(&self) -> bool {
        self.0.any(|kind| kind != Kind::Land)
    }

    /// What the square that holds (c, r) has.
    #[inline]
    pub(super) fn kind(&self, c: usize, r: usize) -> Kind {
        self.0.at(c, r)
    }
}

/// For every cell the nearest cell of the other kind (water for land, land for water), out to a fixed distance.
pub(super) struct ShoreDistance {
    /// Chamfer distance (fifths of a cell) in the high half, water body index in the low half; `FAR` beyond the reach.
    packed: Sparse<u32>,
    size: (usize, usize),
    reach_cells: u32,
}

const FAR: u32 = u32::MAX;

impl ShoreDistance {
    /// Distances out to `reach_cells` (at most 5000) over a raster of body indices (0 = land). Cost: five looks at each cell
    /// within the reach of a shore.
    pub(super) fn new(bodies: Part, squares: &WaterSquares, reach_cells: u32) -> Self {
        let (w, h) = (bodies.cols, bodies.rows);
        let limit = reach_cells * STRAIGHT;
        // Seeds: cells with a neighbour of the other kind. A land cell learns the lowest body index beside it; a water cell
        // keeps its own.
        let seed = |c: usize, r: usize| {
            let own = bodies.at(c, r);
            let mut best = FAR;
            for (dc, dr, cost) in NEIGHBOURS {
                let (x, y) = (c as i64 + dc, r as i64 + dr);
                if x < 0 || y < 0 || x >= w as i64 || y >= h as i64 {
                    continue;
                }
                let other = bodies.at(x as usize, y as usize);
                if (own == 0) != (other == 0) {
                    best = best.min(cost << 16 | u32::from(own.max(other)));
                }
            }
            best
        };
        let mut packed = Sparse::build(w, h, |c0, r0| {
            if squares.kind(c0, r0) != Kind::Shore {
                return Square::Flat(FAR);
            }
            let mut square = vec![FAR; SIDE * SIDE].into_boxed_slice();
            for r in r0..(r0 + SIDE).min(h) {
                for c in c0..(c0 + SIDE).min(w) {
                    square[(r - r0) * SIDE + c - c0] = seed(c, r);
                }
            }
            Square::Own(square)
        });
        // Columns of the squares that distances can reach, by row of squares.
        let around = (reach_cells as usize).div_ceil(SIDE);
        let (across, down) = (w.div_ceil(SIDE), h.div_ceil(SIDE));
        let mut near = vec![vec![false; across]; down];
        for (c, r) in packed.own_squares() {
            let (c, r) = (c / SIDE, r / SIDE);
            for row in &mut near[r.saturating_sub(around)..(r + around + 1).min(down)] {
                row[c.saturating_sub(around)..(c + around + 1).min(across)].fill(true);
            }
        }
        let columns: Vec<Vec<usize>> = near
            .iter()
            .map(|row| {
                let squares = (0..across).filter(|&s| row[s]);
                squares.flat_map(|s| s * SIDE..((s + 1) * SIDE).min(w)).collect()
            })
            .collect();
        let relax = |packed: &mut Sparse<u32>, c: usize, r: usize, steps: &[(i64, i64, u32)]| {
            let own = bodies.at(c, r);
            let before = packed.at(c, r);
            let mut best = before;
            for &(dc, dr, cost) in steps {
                let (x, y) = (c as i64 + dc, r as i64 + dr);
                if x < 0 || y < 0 || x >= w as i64 || y >= h as i64 {
                    continue;
                }
                let p = packed.at(x as usize, y as usize);
                if p == FAR || (bodies.at(x as usize, y as usize) == 0) != (own == 0) {
                    continue;
                }
                let d = (p >> 16) + cost;
                if d <= limit {
                    best = best.min(d << 16 | p & 0xFFFF);
                }
            }
            if best != before {
                *packed.at_mut(c, r) = best;
            }
        };
        for r in 0..h {
            let columns = &columns[r / SIDE];
            columns.iter().for_each(|&c| relax(&mut packed, c, r, &NEIGHBOURS[..4]));
            columns.iter().rev().for_each(|&c| relax(&mut packed, c, r, &NEIGHBOURS[4..5]));
        }
        for r in (0..h).rev() {
            let columns = &columns[r / SIDE];
            columns.iter().rev().for_each(|&c| relax(&mut packed, c, r, &NEIGHBOURS[4..]));
            columns.iter().for_each(|&c| relax(&mut packed, c, r, &NEIGHBOURS[3..4]));
        }
        ShoreDistance { packed, size: (w, h), reach_cells }
    }

    /// Distance in cells to the nearest cell of the other kind and the body index concerned; `None` beyond the reach.
    #[inline]
    pub(super) fn at(&self, c: usize, r: usize) -> Option<(f32, u16)> {
        let p = self.packed.at(c, r);
        (p != FAR).then(|| ((p >> 16) as f32 / STRAIGHT as f32, (p & 0xFFFF) as u16))
    }

    /// Whether any cell of the square that holds (c, r) may be within the reach.
    pub(super) fn acts_in(&self, c: usize, r: usize) -> bool {
        matches!(self.packed.square(c, r), Square::Own(_))
    }

    /// Calls `each` with column and row of every cell within `cells` of a shore.
    pub(super) fn each_within(&self, cells: f32, mut each: impl FnMut(usize, usize)) {
        for (c0, r0) in self.packed.own_squares() {
            for r in r0..(r0 + SIDE).min(self.size.1) {
                for c in c0..(c0 + SIDE).min(self.size.0) {
                    if self.at(c, r).is_some_and(|(d, _)| d <= cells) {
                        each(c, r);
                    }
                }
            }
        }
    }

    /// The reach, cells.
    pub(super) fn reach_cells(&self) -> u32 {
        self.reach_cells
    }
}

/// Forward half (north row, then west), then backward half (east, then south row).
const NEIGHBOURS: [(i64, i64, u32); 8] = [
    (-1, -1, DIAGONAL),
    (0, -1, STRAIGHT),
    (1, -1, DIAGONAL),
    (-1, 0, STRAIGHT),
    (1, 0, STRAIGHT),
    (-1, 1, DIAGONAL),
    (0, 1, STRAIGHT),
    (1, 1, DIAGONAL),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::Window;
    use crate::raster::Raster;

    fn all(bodies: &Raster<u16>) -> Part<'_> {
        let window = Window { col: 0, row: 0, cols: bodies.cols, rows: bodies.rows };
        Part::of(bodies, window, window)
    }

    #[test]
    fn distance_counts_cells_from_the_shore_on_both_sides() {
        let mut bodies = Raster::filled(9, 3, 0u16);
        for r in 0..3 {
            for c in 5..9 {
                bodies.set(c, r, 2);
            }
        }
        let d = ShoreDistance::new(all(&bodies), &WaterSquares::new(all(&bodies)), 3);
        let row: Vec<_> = (0..9).map(|c| d.at(c, 1)).collect();
        assert_eq!(row[4], Some((1.0, 2)));
        assert_eq!(row[2], Some((3.0, 2)));
        assert_eq!(row[1], None);
        assert_eq!(row[5], Some((1.0, 2)));
        assert_eq!(row[7], Some((3.0, 2)));
        assert_eq!(row[8], None);
    }

    #[test]
    fn nearest_of_two_bodies_wins_and_a_tie_goes_to_the_lower_index() {
        let bodies = Raster::from_values(7, 1, vec![3, 0, 0, 0, 0, 0, 1]);
        let d = ShoreDistance::new(all(&bodies), &WaterSquares::new(all(&bodies)), 10);
        assert_eq!(d.at(2, 0), Some((2.0, 3)));
        assert_eq!(d.at(3, 0), Some((3.0, 1)));
        assert_eq!(d.at(4, 0), Some((2.0, 1)));
    }
}
