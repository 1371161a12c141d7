//! Outlines of the regions of a raster as shared arcs: every stretch of border between two regions is traced once.
//!
//! An arc runs along cell edges from one junction to the next, where three or four regions meet, or is a ring. Regions are
//! components of cells that share edges, so that in a square of four cells of which two opposite ones are of one class, the
//! corner is always a junction of four arcs and the rings of one region never run through themselves.

use geo::Coord;
use std::collections::BTreeMap;

/// The region of cells that belong to none, and of what lies beyond the raster.
pub(super) const NOTHING: u32 = u32::MAX;

/// A corner of cells: column and row of the cell to its south-east.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Corner {
    pub(super) x: u32,
    pub(super) y: u32,
}

impl Corner {
    pub(super) fn coord(self) -> Coord<f64> {
        Coord { x: f64::from(self.x), y: f64::from(self.y) }
    }
}

/// A stretch of border.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Arc {
    /// Where it begins, turns and ends; rings end where they begin.
    pub(super) corners: Vec<Corner>,
    pub(super) is_closed: bool,
    /// Whether it lies on the edge of the raster.
    pub(super) is_frame: bool,
    /// The region on its left as one walks, with rows running down the page.
    pub(super) left: u32,
    pub(super) right: u32,
}

/// An arc in a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ArcUse {
    pub(super) arc: usize,
    pub(super) is_forward: bool,
}

/// The arcs of a raster, and what each region is bounded by.
#[derive(Debug, Clone, Default)]
pub(super) struct Outlines {
    pub(super) arcs: Vec<Arc>,
    /// For each region its rings: the exterior, then the holes. The region lies on the left of each.
    pub(super) rings: Vec<Vec<Vec<ArcUse>>>,
}

const EAST: u8 = 0;
const SOUTH: u8 = 1;
const WEST: u8 = 2;
const NORTH: u8 = 3;

struct Cells<'a> {
    regions: &'a [u32],
    cols: usize,
    rows: usize,
}

impl Cells<'_> {
    /// The region of the cell, [`NOTHING`] beyond the raster; coordinates are one more than the cell's.
    fn at(&self, x: u32, y: u32) -> u32 {
        let (x, y) = (x as usize, y as usize);
        if x == 0 || y == 0 || x > self.cols || y > self.rows {
            NOTHING
        } else {
            self.regions[(y - 1) * self.cols + x - 1]
        }
    }

    /// The regions to the left and right of the edge that leaves `c` in a direction.
    fn sides(&self, c: Corner, direction: u8) -> (u32, u32) {
        let Corner { x, y } = c;
        let [nw, ne, sw, se] = [(x, y), (x + 1, y), (x, y + 1), (x + 1, y + 1)];
        let (left, right) = match direction {
            EAST => (ne, se),
            SOUTH => (se, sw),
            WEST => (sw, nw),
            _ => (nw, ne),
        };
        (self.at(left.0, left.1), self.at(right.0, right.1))
    }

    /// Whether a border leaves `c` in a direction.
    fn is_border(&self, c: Corner, direction: u8) -> bool {
        let (left, right) = self.sides(c, direction);
        left != right
    }

    fn is_frame(&self, c: Corner) -> bool {
        c.x == 0 || c.y == 0 || c.x as usize == self.cols || c.y as usize == self.rows
    }

    /// Whether the edge from `c` lies on the edge of the raster.
    fn is_frame_edge(&self, c: Corner, direction: u8) -> bool {
        match direction {
            EAST | WEST => c.y == 0 || c.y as usize == self.rows,
            _ => c.x == 0 || c.x as usize == self.cols,
        }
    }

    /// Whether arcs end at `c`: three or more borders meet, or one meets or turns at the edge of the raster.
    fn is_node(&self, c: Corner) -> bool {
        let borders = [EAST, SOUTH, WEST, NORTH].into_iter().filter(|d| self.is_border(c, *d));
        let (mut all, mut along) = (0, 0);
        for direction in borders {
            all += 1;
            along += u8::from(direction == EAST || direction == WEST);
        }
        all > 2 || (all == 2 && along == 1 && self.is_frame(c))
    }
}

fn step(c: Corner, direction: u8) -> Corner {
    match direction {
        EAST => Corner { x: c.x + 1, y: c.y },
        SOUTH => Corner { x: c.x, y: c.y + 1 },
        WEST => Corner { x: c.x - 1, y: c.y },
        _ => Corner { x: c.x, y: c.y - 1 },
    }
}

/// The outlines of `count` regions, numbered from 0, in a raster of `cols` columns; other cells hold [`NOTHING`]. Every region
/// must be one component of cells that share edges.
///
/// Some nanoseconds per cell, some tens per cell edge of border; a byte per cell.
pub(super) fn outlines(regions: &[u32], cols: usize, count: usize) -> Outlines {
    let rows = regions.len().checked_div(cols).unwrap_or(0);
    let cells = Cells { regions, cols, rows };
    let width = cols + 1;
    // Edges walked: 1 to the east of the corner, 2 to its south.
    let mut walked = vec![0u8; width * (rows + 1)];
    let mut arcs: Vec<Arc> = Vec::new();
    // Nodes first, then what has none.
    for is_ring in [false, true] {
        for y in 0..=rows as u32 {
            for x in 0..=cols as u32 {
                let c = Corner { x, y };
                // Nearly all corners lie inside a region.
                if [EAST, SOUTH].iter().all(|d| !cells.is_border(c, *d)) && !cells.is_border(c, WEST) {
                    continue;
                }
                if !is_ring && !cells.is_node(c) {
                    continue;
                }
                for direction in [EAST, SOUTH, WEST, NORTH] {
                    if cells.is_border(c, direction) && !is_walked(&walked, width, c, direction) {
                        arcs.push(walk(&cells, &mut walked, width, c, direction, is_ring));
                    }
                }
            }
        }
    }
    let rings = rings(&arcs, count);
    Outlines { arcs, rings }
}

/// The mark of an edge: its corner's number and bit.
fn mark(width: usize, c: Corner, direction: u8) -> (usize, u8) {
    let from = match direction {
        WEST | NORTH => step(c, direction),
        _ => c,
    };
    (from.y as usize * width + from.x as usize, if direction == EAST || direction == WEST { 1 } else { 2 })
}

fn is_walked(walked: &[u8], width: usize, c: Corner, direction: u8) -> bool {
    let (k, bit) = mark(width, c, direction);
    walked[k] & bit != 0
}

fn walk(cells: &Cells, walked: &mut [u8], width: usize, start: Corner, first: u8, is_closed: bool) -> Arc {
    let (left, right) = cells.sides(start, first);
    let is_frame = cells.is_frame_edge(start, first);
    let mut corners = vec![start];
    let (mut at, mut direction) = (start, first);
    loop {
        let (k, bit) = mark(width, at, direction);
        walked[k] |= bit;
        at = step(at, direction);
        if at == start || cells.is_node(at) {
            corners.push(at);
            return Arc { corners, is_closed, is_frame, left, right };
        }
        // Two borders meet here: the other one goes on.
        let back = (direction + 2) % 4;
        let on = [EAST, SOUTH, WEST, NORTH].into_iter().find(|d| *d != back && cells.is_border(at, *d)).unwrap_or(back);
        if on != direction {
            corners.push(at);
            direction = on;
        }
    }
}

/// The direction in which one leaves `a` for `b`.
fn direction(a: Corner, b: Corner) -> u8 {
    match (b.x.cmp(&a.x), b.y.cmp(&a.y)) {
        (std::cmp::Ordering::Greater, _) => EAST,
        (std::cmp::Ordering::Less, _) => WEST,
        (_, std::cmp::Ordering::Greater) => SOUTH,
        _ => NORTH,
    }
}

/// Twice the area that the arc sweeps, positive where its left is inside (rows run down the page).
fn swept(corners: &[Corner]) -> i64 {
    corners.windows(2).map(|w| i64::from(w[1].x) * i64::from(w[0].y) - i64::from(w[0].x) * i64::from(w[1].y)).sum()
}

/// Joins the arcs of each region to rings.
fn rings(arcs: &[Arc], count: usize) -> Vec<Vec<Vec<ArcUse>>> {
    let mut uses: Vec<Vec<ArcUse>> = vec![Vec::new(); count];
    for (arc, a) in arcs.iter().enumerate() {
        for (region, is_forward) in [(a.left, true), (a.right, false)] {
            if region != NOTHING {
                uses[region as usize].push(ArcUse { arc, is_forward });
            }
        }
    }
    let ends = |u: &ArcUse| {
        let c = &arcs[u.arc].corners;
        let n = c.len();
        // First corner and the way out, last corner and the way in.
        if u.is_forward {
            (c[0], direction(c[0], c[1]), c[n - 1], direction(c[n - 2], c[n - 1]))
        } else {
            (c[n - 1], direction(c[n - 1], c[n - 2]), c[0], direction(c[1], c[0]))
        }
    };
    uses.into_iter()
        .map(|uses| {
            // By corner and way out.
            let mut open: BTreeMap<(Corner, u8), ArcUse> = BTreeMap::new();
            let mut rings: Vec<Vec<ArcUse>> = Vec::new();
            for u in uses {
                if arcs[u.arc].is_closed {
                    rings.push(vec![u]);
                } else {
                    let (corner, out, ..) = ends(&u);
                    open.insert((corner, out), u);
                }
            }
            while let Some((&(start, _), _)) = open.first_key_value() {
                let Some((_, first)) = open.pop_first() else { break };
                let mut ring = vec![first];
                loop {
                    let (_, _, at, way) = ends(&ring[ring.len() - 1]);
                    // At a corner where the region's cells lie opposite each other, the right turn parts its rings.
                    let next = [(way + 1) % 4, way, (way + 3) % 4].into_iter().find_map(|d| open.remove(&(at, d)));
                    match next {
                        Some(u) if !(at == start && closes_before(&u, &ring, &ends)) => ring.push(u),
                        Some(u) => {
                            let (corner, out, ..) = ends(&u);
                            open.insert((corner, out), u);
                            break;
                        }
                        None => break,
                    }
                }
                rings.push(ring);
            }
            let area = |ring: &Vec<ArcUse>| -> i64 {
                ring.iter()
                    .map(|u| if u.is_forward { swept(&arcs[u.arc].corners) } else { -swept(&arcs[u.arc].corners) })
                    .sum()
            };
            // One ring, the exterior, has its inside on the left.
            rings.sort_by_key(|r| std::cmp::Reverse(area(r)));
            rings
        })
        .collect()
}

/// Whether the ring is complete at its first corner: going on with `next` would be a wider turn than closing it.
fn closes_before(next: &ArcUse, ring: &[ArcUse], ends: &impl Fn(&ArcUse) -> (Corner, u8, Corner, u8)) -> bool {
    let way = ends(&ring[ring.len() - 1]).3;
    let turn = |out: u8| [(way + 1) % 4, way, (way + 3) % 4].iter().position(|d| *d == out);
    turn(ends(&ring[0]).1) < turn(ends(next).1)
}

#[cfg(test)]
mod tests {
    use super::super::runs::Components;
    use super::*;
    use proptest::prelude::*;

    fn traced(labels: &[u8], cols: usize) -> (Outlines, Components) {
        let components = Components::of(labels, cols);
        let regions = components.cells(|k| k);
        let count = components.len();
        (outlines(&regions, cols, count), components)
    }

    #[test]
    fn two_cells_share_one_arc() {
        let (found, _) = traced(&[0, 1], 2);
        let shared: Vec<&Arc> = found.arcs.iter().filter(|a| a.left != NOTHING && a.right != NOTHING).collect();
        assert_eq!(shared.len(), 1);
        assert_eq!(shared[0].corners, [Corner { x: 1, y: 0 }, Corner { x: 1, y: 1 }]);
        assert_eq!(found.rings.iter().map(Vec::len).collect::<Vec<_>>(), [1, 1]);
    }

    #[test]
    fn an_island_is_a_ring_and_a_hole() {
        let (found, _) = traced(&[0, 0, 0, 0, 1, 0, 0, 0, 0], 3);
        let ring = found.arcs.iter().find(|a| a.is_closed).unwrap();
        assert_eq!(ring.corners.len(), 5);
        assert_eq!(found.rings.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1]);
    }

    #[test]
    fn opposite_cells_are_two_holes_that_touch() {
        #[rustfmt::skip]
        let (found, _) = traced(&[
            0, 0, 0, 0,
            0, 1, 0, 0,
            0, 0, 1, 0,
            0, 0, 0, 0,
        ], 4);
        assert_eq!(found.rings.iter().map(Vec::len).collect::<Vec<_>>(), [3, 1, 1]);
        assert!(found.arcs.iter().filter(|a| !a.is_frame).all(|a| a.corners[0] == Corner { x: 2, y: 2 }));
    }

    proptest! {
        #[test]
        fn rings_are_simple_and_enclose_the_cells(cols in 1usize..9, cells in prop::collection::vec(0u8..3, 9..81)) {
            let rows = cells.len() / cols;
            let (found, components) = traced(&cells[..rows * cols], cols);
            for (k, rings) in found.rings.iter().enumerate() {
                let mut twice = 0;
                for (number, ring) in rings.iter().enumerate() {
                    let mut corners: Vec<Corner> = Vec::new();
                    for u in ring {
                        let mut line = found.arcs[u.arc].corners.clone();
                        if !u.is_forward { line.reverse(); }
                        if let Some(last) = corners.pop() { prop_assert_eq!(last, line[0]); }
                        corners.extend(line);
                    }
                    prop_assert_eq!(corners[0], corners[corners.len() - 1]);
                    let area = swept(&corners);
                    prop_assert_eq!(area > 0, number == 0);
                    twice += area;
                    // No corner twice: the ring does not touch itself.
                    corners.pop();
                    let n = corners.len();
                    corners.sort_unstable();
                    corners.dedup();
                    prop_assert_eq!(corners.len(), n);
                }
                prop_assert_eq!(twice as u64, 2 * components.area(k as u32));
            }
            // Every cell edge between regions lies in one arc.
            let length: u64 = found.arcs.iter().flat_map(|a| a.corners.windows(2))
                .map(|w| u64::from(w[0].x.abs_diff(w[1].x) + w[0].y.abs_diff(w[1].y))).sum();
            let mut expected = 2 * (cols + rows) as u64;
            components.each_contact(|_, _, n| expected += u64::from(n));
            prop_assert_eq!(length, expected);
        }
    }
}
