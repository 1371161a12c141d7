//! Surveyed points: the cell that contains one has its height to the bit, and the ground around leads up to it.

use super::means::Weights;
use super::sparse::Sparse;
use crate::grid::{Cell, Window};
use crate::raster::Raster;

/// A surveyed height.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pin {
    /// The cell that contains it, absolute lattice cells.
    pub cell: Cell,
    /// Metres.
    pub z_m: f32,
    /// Whether it is a summit: no cell within its reach may stand higher.
    pub summit: bool,
}

/// Wendland's C2 function of the distance as a share of the reach (1 at the pin, 0 from the reach outward).
#[inline]
fn wendland(t: f32) -> f32 {
    if t >= 1.0 {
        return 0.0;
    }
    let s = (1.0 - t) * (1.0 - t);
    s * s * (4.0 * t + 1.0)
}

/// Lifts (or lowers) the ground around each pin so that it meets the pin smoothly over `reach_cells`.
pub(super) fn raise(
    z: &mut Raster<f32>,
    window: Window,
    pins: &[Pin],
    reach_cells: f32,
    movable: &dyn Fn(usize) -> bool,
) {
    // The gap is measured before any pin moves anything: the order of pins cannot matter.
    let gaps: Vec<_> = pins
        .iter()
        .map(|p| {
            let local = Cell { col: p.cell.col - window.col, row: p.cell.row - window.row };
            z.get(local).map(|v| p.z_m - v)
        })
        .collect();
    let mut lifted: Vec<(usize, f32)> = Vec::new();
    for (pin, gap) in pins.iter().zip(gaps) {
        let Some(gap) = gap else { continue };
        for (index, distance) in disc((z.cols, z.rows), window, pin.cell, reach_cells) {
            if movable(index) {
                lifted.push((index, gap * wendland(distance / reach_cells)));
            }
        }
    }
    // Overlapping pins: the larger move wins, so that neither is counted twice.
    lifted.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.abs().total_cmp(&a.1.abs())).then(a.1.total_cmp(&b.1)));
    lifted.dedup_by_key(|l| l.0);
    for (index, move_m) in lifted {
        z.values[index] += move_m;
    }
}

/// Sets each pin's cell.
pub(super) fn set(z: &mut Raster<f32>, window: Window, pins: &[Pin]) {
    for pin in pins {
        let (c, r) = (pin.cell.col - window.col, pin.cell.row - window.row);
        if c >= 0 && r >= 0 && c < window.cols as i64 && r < window.rows as i64 {
            z.set(c as usize, r as usize, pin.z_m);
        }
    }
}

/// How high every cell near a summit may stand: within `reach_cells` below a cone from the summit, and to three times that
/// below the cone's rim, as the massif has no higher top. Infinite elsewhere.
pub(super) fn ceilings(window: Window, pins: &[Pin], reach_cells: f32) -> Sparse<f32> {
    let mut ceilings = Sparse::new(window.cols, window.rows, f32::INFINITY);
    let massif_cells = CAP_REACHES * reach_cells;
    let summits: Vec<&Pin> = pins.iter().filter(|p| p.summit).collect();
    for pin in &summits {
        // Where two summits stand close, each rules the cells nearer to it.
        let rivals: Vec<Cell> = summits
            .iter()
            .filter(|o| o.cell != pin.cell && squared(o.cell, pin.cell) <= 4.0 * massif_cells * massif_cells)
            .map(|o| o.cell)
            .collect();
        for (index, distance) in disc((window.cols, window.rows), window, pin.cell, massif_cells) {
            let (c, r) = (index % window.cols, index / window.cols);
            let here = Cell { col: window.col + c as i64, row: window.row + r as i64 };
            if rivals.iter().any(|&o| squared(o, here) < squared(pin.cell, here)) {
                continue;
            }
            let ceiling = ceilings.at_mut(c, r);
            *ceiling = ceiling.min(pin.z_m - 0.5 - 2.0 * distance.min(reach_cells));
        }
    }
    ceilings
}

/// How far, in reaches, a summit stands above all ground around it.
pub(super) const CAP_REACHES: f32 = 3.0;

fn squared(a: Cell, b: Cell) -> f32 {
    ((a.col - b.col) * (a.col - b.col) + (a.row - b.row) * (a.row - b.row)) as f32
}

/// How freely block means may move each cell: 0 at a pin, 1 from its reach outward.
pub(super) fn loosen(weight: &mut Weights, window: Window, pins: &[Pin], reach_cells: f32) {
    for pin in pins {
        for (index, distance) in disc((window.cols, window.rows), window, pin.cell, reach_cells) {
            let free = 1.0 - wendland(distance / reach_cells);
            let w = weight.at_mut(index % window.cols, index / window.cols);
            *w = w.min(free);
        }
    }
}

/// Cells of a raster of `cols` x `rows` within `reach` of `centre` (absolute) as (index, distance in cells).
fn disc((cols, rows): (usize, usize), window: Window, centre: Cell, reach: f32) -> Vec<(usize, f32)> {
    let (c, r) = (centre.col - window.col, centre.row - window.row);
    let n = reach.ceil() as i64;
    let mut out = Vec::new();
    for y in (r - n).max(0)..=(r + n).min(rows as i64 - 1) {
        for x in (c - n).max(0)..=(c + n).min(cols as i64 - 1) {
            let d = (((x - c) * (x - c) + (y - r) * (y - r)) as f32).sqrt();
            if d < reach {
                out.push((y as usize * cols + x as usize, d));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_is_exact_and_no_neighbour_stands_higher() {
        let window = Window { col: 10, row: -5, cols: 9, rows: 9 };
        let mut z = Raster::filled(9, 9, 100.0);
        z.set(6, 4, 180.0);
        let pins = [Pin { cell: Cell { col: 14, row: -1 }, z_m: 150.25, summit: true }];
        raise(&mut z, window, &pins, 3.0, &|_| true);
        let ceilings = ceilings(window, &pins, 3.0);
        z.values.iter_mut().enumerate().for_each(|(k, v)| *v = v.min(ceilings.at(k % 9, k / 9)));
        set(&mut z, window, &pins);
        assert_eq!(z.at(4, 4), 150.25);
        assert!(z.values.iter().enumerate().all(|(k, &v)| k == 4 * 9 + 4 || v < 150.25));
        assert_eq!(z.at(0, 0), 100.0);
        assert!(z.at(4, 3) > 100.0 && z.at(4, 3) < 150.25);
    }
}
