//! Pits opened: each hollow of the ground is cut through its lowest rim to the nearest lower ground.
//!
//! Order-free and of bounded reach: every pit is worked out on the ground as it stood before the round; cuts combine by
//! their minimum. After Lindsay's (2016) hybrid of breaching and filling, with the search of Priority-Flood (Barnes, Lehman
//! and Mulla 2014) run outward from the pit instead of inward from the edge.

use super::ring::{STRIP, pits};
use crate::raster::Raster;
use rayon::prelude::*;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// How pits are opened.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct BreachOptions {
    /// How far from the pit an outlet is looked for, cells along either axis.
    pub(super) reach: usize,
    /// How many cells may be visited.
    pub(super) most_cells: usize,
    /// Share of its depth that the pit itself is raised.
    pub(super) fill: f32,
}

impl BreachOptions {
    /// How far from a cell the ground decides about it in one round, cells: the pit is within the reach of the bank, and what
    /// opens it within the reach of the pit.
    pub(super) const fn halo(&self) -> usize {
        2 * self.reach + 1
    }
}

/// What the search may do with a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hold {
    /// Raised, cut and crossed.
    Free,
    /// Never changed and never crossed, but a way out for ground above it: water, rivers, surveyed points.
    Fixed,
    /// Outside the map: always a way out.
    Beyond,
}

/// Cells of a search lie in a square of this side, the pit in its middle: a power of two, so that a place in it needs no division.
const SIDE: usize = 64;
/// The farthest reach that leaves a rim of the square free.
const MOST_REACH: usize = SIDE / 2 - 2;
/// The pit's place in the square.
const START: usize = SIDE / 2 * SIDE + SIDE / 2;
/// Marks a cell of the search that has not been reached; else it holds the number of the step that led there.
const UNSEEN: u8 = u8::MAX;
/// Marks a cell that may not be reached, and the pit itself.
const CLOSED: u8 = 8;
/// The eight steps, columns and rows.
const STEPS: [(isize, isize); 8] = [(0, -1), (-1, 0), (1, 0), (0, 1), (-1, -1), (1, -1), (-1, 1), (1, 1)];

/// Workspace of the searches of one thread.
struct Search {
    /// How each cell of the square was reached; its rim beyond the reach is closed.
    from: Box<[u8; SIDE * SIDE]>,
    touched: Vec<u16>,
    heap: BinaryHeap<Reverse<u64>>,
    path: Vec<usize>,
}

impl Search {
    fn new(reach: usize) -> Search {
        let mut from = Box::new([CLOSED; SIDE * SIDE]);
        let open = SIDE / 2 - reach..SIDE / 2 + reach + 1;
        open.clone().for_each(|y| from[y * SIDE..][open.clone()].fill(UNSEEN));
        Search { from, touched: Vec::new(), heap: BinaryHeap::new(), path: Vec::new() }
    }
}

/// A number that orders like `z`.
#[inline]
fn ordered(z: f32) -> u32 {
    let b = z.to_bits();
    b ^ (((b as i32) >> 31) as u32 | 0x8000_0000)
}

/// One round over `z`. A cell depends on the ground within [`BreachOptions::halo`]. Only strict pits are opened: flat ground is left
/// as it is. Cost: nine comparisons a cell, and a search of at most `most_cells` a pit.
pub(super) fn breach(z: &mut Raster<f32>, hold: &(impl Fn(usize, usize) -> Hold + Sync), options: &BreachOptions) {
    let (w, h) = (z.cols, z.rows);
    if w < 3 || h < 3 {
        return;
    }
    assert!(options.reach <= MOST_REACH, "reach fits the square of a search");
    let ground = &*z;
    let edits: Vec<Vec<(usize, f32)>> = (1..h - 1)
        .into_par_iter()
        .map_init(
            || Search::new(options.reach),
            |search, r| {
                let mut edits = Vec::new();
                let rows = [ground.row(r - 1), ground.row(r), ground.row(r + 1)];
                for first in (1..w - 1).step_by(STRIP) {
                    let end = (first + STRIP).min(w - 1);
                    let mut is_pit = [false; STRIP];
                    let is_pit = &mut is_pit[..end - first];
                    if pits(rows.map(|row| &row[first - 1..end + 1]), is_pit) {
                        for c in (first..end).filter(|c| is_pit[c - first]) {
                            if hold(c, r) == Hold::Free {
                                open(ground, c, r, hold, options, search, &mut edits);
                            }
                        }
                    }
                }
                edits
            },
        )
        .collect();
    // Raised pits first, then the cuts: each combines by its own rule, so that the order cannot matter.
    for row in &edits {
        for &(index, level) in row {
            if index & RAISED != 0 {
                z.values[index & !RAISED] = level;
            }
        }
    }
    for row in &edits {
        for &(index, level) in row {
            if index & RAISED == 0 {
                let v = &mut z.values[index];
                *v = v.min(level);
            }
        }
    }
}

/// The four cells beside a cut follow it down by this share of its depth, at most half-way to it: a trench one cell wide between
/// walls is not what water leaves.
const BANKS: f32 = 0.4;

/// Marks an edit as the pit's own new level.
const RAISED: usize = 1 << (usize::BITS - 1);

/// Looks for the way out of the pit at (col, row) and notes what is to be raised and cut.
fn open(
    z: &Raster<f32>,
    col: usize,
    row: usize,
    hold: &(impl Fn(usize, usize) -> Hold + Sync),
    options: &BreachOptions,
    search: &mut Search,
    edits: &mut Vec<(usize, f32)>,
) {
    let Search { from, touched, heap, path } = search;
    let (w, h) = (z.cols, z.rows);
    let middle = row * w + col;
    let pit = z.values[middle];
    // The cell of the raster at a place of the square.
    let cell = |local: usize| (col + local % SIDE - SIDE / 2, row + local / SIDE - SIDE / 2);
    let reach = options.reach;
    if col < reach || row < reach || col + reach >= w || row + reach >= h {
        // Part of the square lies off the raster.
        for y in SIDE / 2 - reach..SIDE / 2 + reach + 1 {
            for x in SIDE / 2 - reach..SIDE / 2 + reach + 1 {
                let inside =
                    (SIDE / 2..SIDE / 2 + w).contains(&(col + x)) && (SIDE / 2..SIDE / 2 + h).contains(&(row + y));
                if !inside {
                    from[y * SIDE + x] = CLOSED;
                    touched.push((y * SIDE + x) as u16);
                }
            }
        }
    }
    let around = STEPS.map(|(x, y)| (y * SIDE as isize + x, y * w as isize + x));
    from[START] = CLOSED;
    touched.push(START as u16);
    heap.push(Reverse(u64::from(ordered(pit)) << 32 | START as u64));
    let (mut found, mut rim, mut visited) = (None, pit, 0);
    while let Some(Reverse(key)) = heap.pop() {
        let local = (key & 0xFFFF_FFFF) as usize;
        let (c, r) = cell(local);
        let at = r * w + c;
        let here = z.values[at];
        if local != START {
            let held = hold(c, r);
            if here < pit || held == Hold::Beyond {
                found = Some(local);
                break;
            }
            if held == Hold::Fixed {
                continue;
            }
        }
        rim = rim.max(here);
        visited += 1;
        if visited > options.most_cells {
            break;
        }
        // A neighbour below the pit would be the next to come: no need to queue the others.
        let mut outlet = u64::MAX;
        for (k, (there, beside)) in around.into_iter().enumerate() {
            let next = local.wrapping_add_signed(there) % (SIDE * SIDE);
            if from[next] != UNSEEN {
                continue;
            }
            let there = z.values[at.wrapping_add_signed(beside)];
            let key = u64::from(ordered(there)) << 32 | next as u64;
            from[next] = k as u8;
            touched.push(next as u16);
            if there < pit {
                outlet = outlet.min(key);
            } else if outlet == u64::MAX {
                heap.push(Reverse(key));
            }
        }
        if outlet != u64::MAX {
            found = Some((outlet & 0xFFFF_FFFF) as usize);
            break;
        }
    }
    if let Some(end) = found {
        let index = |local: usize| {
            let (c, r) = cell(local);
            r * w + c
        };
        // From the way out back to the pit.
        path.clear();
        path.push(end);
        let mut local = end;
        while local != START {
            local = local.wrapping_add_signed(-around[from[local] as usize % CLOSED as usize].0) % (SIDE * SIDE);
            path.push(local);
        }
        let low = z.values[index(end)].min(pit);
        let top = pit + options.fill * (rim - pit);
        let steps = (path.len() - 1) as f32;
        edits.push((middle | RAISED, top));
        for (k, &local) in path.iter().enumerate().take(path.len() - 1).skip(1) {
            let ((c, r), level) = (cell(local), low + (top - low) * k as f32 / steps);
            let at = r * w + c;
            edits.push((at, level));
            let share = BANKS * (z.values[at] - level);
            if share > 0.0 {
                let beside = STEPS[..4].iter().map(|(x, y)| (c.wrapping_add_signed(*x), r.wrapping_add_signed(*y)));
                for (c, r) in beside.filter(|&(c, r)| c < w && r < h) {
                    let bank = z.at(c, r);
                    if bank > level && hold(c, r) == Hold::Free {
                        edits.push((r * w + c, (bank - share).max(level + 0.5 * (bank - level))));
                    }
                }
            }
        }
    }
    touched.drain(..).for_each(|t| from[t as usize] = UNSEEN);
    heap.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: BreachOptions = BreachOptions { reach: 4, most_cells: 60, fill: 0.5 };

    fn free(_: usize, _: usize) -> Hold {
        Hold::Free
    }

    #[test]
    fn a_pit_is_cut_through_its_lowest_rim() {
        #[rustfmt::skip]
        let mut z = Raster::from_values(6, 5, vec![
            9., 9., 9., 9., 9., 9.,
            9., 8., 8., 8., 9., 9.,
            9., 8., 4., 6., 7., 3.,
            9., 8., 8., 8., 9., 9.,
            9., 9., 9., 9., 9., 9.,
        ]);
        breach(&mut z, &free, &OPTIONS);
        // Raised by half of its depth (7 - 4), then a falling line to the outlet at 3.
        assert_eq!(z.at(2, 2), 5.5);
        assert!(z.at(3, 2) < z.at(2, 2) && z.at(4, 2) < z.at(3, 2) && z.at(4, 2) > 3.0);
        assert_eq!(z.at(5, 2), 3.0);
        assert_eq!(z.at(2, 1), 8.0);
    }

    #[test]
    fn flat_ground_and_pits_without_a_way_out_stay() {
        let mut flat = Raster::filled(9, 9, 5f32);
        breach(&mut flat, &free, &OPTIONS);
        assert!(flat.values.iter().all(|&v| v == 5.0));
        let mut bowl = Raster::from_values(
            13,
            13,
            (0..169).map(|k| ((k % 13) as f32 - 6.0).hypot((k / 13) as f32 - 6.0)).collect::<Vec<_>>(),
        );
        let before = bowl.clone();
        breach(&mut bowl, &free, &OPTIONS);
        assert_eq!(bowl, before);
    }

    #[test]
    fn held_cells_are_ways_out_from_above_and_never_change() {
        let mut z = Raster::from_values(5, 3, vec![9., 9., 9., 9., 9., 9., 4., 8., 3., 9., 9., 9., 9., 9., 9.]);
        let hold = |c: usize, r: usize| if (c, r) == (3, 1) { Hold::Fixed } else { Hold::Free };
        breach(&mut z, &hold, &OPTIONS);
        assert_eq!(z.at(3, 1), 3.0);
        assert!(z.at(2, 1) < z.at(1, 1));
        // A held cell above the pit is no way out, and is not crossed.
        let mut dam = Raster::from_values(5, 3, vec![9., 9., 9., 9., 9., 9., 4., 8., 3., 9., 9., 9., 9., 9., 9.]);
        let hold = |c: usize, _: usize| if c == 2 { Hold::Fixed } else { Hold::Free };
        breach(&mut dam, &hold, &OPTIONS);
        assert_eq!(dam.at(1, 1), 4.0);
    }

    #[test]
    fn order_of_floats_is_order_of_keys() {
        let values = [-1e9f32, -3.5, -0.1, 0.0, 0.1, 2.0, 9000.0];
        assert!(values.windows(2).all(|p| ordered(p[0]) < ordered(p[1])));
    }
}
