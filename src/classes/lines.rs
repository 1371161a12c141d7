//! Contour lines on cells: which cells they cross, and between which heights the ground beside them lies.

use super::{Bounds, OPEN};
use crate::grid::{Cell, Grid, Xy};
use crate::raster::Raster;
use geo::LineString;
use std::collections::{BTreeSet, VecDeque};

/// Cells that lines cross, with the lowest and the highest of their heights.
pub(super) struct Drawn {
    range: Vec<Option<(f32, f32)>>,
}

impl Drawn {
    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.range.iter().all(Option::is_none)
    }

    /// Whether a line crosses a cell.
    pub(super) fn is_crossed(&self, i: usize) -> bool {
        self.range[i].is_some()
    }

    /// The height of a cell that lines cross; their middle where several do.
    pub(super) fn height(&self, i: usize) -> Option<f32> {
        self.range[i].map(|(low, high)| 0.5 * (low + high))
    }
}

/// Draws `lines` onto `grid`, each an unbroken chain of cells.
pub(super) fn draw(lines: &[(f64, LineString<f64>)], grid: &Grid) -> Drawn {
    let mut range: Vec<Option<(f32, f32)>> = vec![None; grid.len()];
    let cell = grid.transform.cell_width;
    for (z, line) in lines {
        for part in line.lines() {
            let (dx, dy) = (part.end.x - part.start.x, part.end.y - part.start.y);
            // A long way outside the map nothing is drawn.
            let steps = (dx.hypot(dy) / (0.3 * cell)).ceil().clamp(1.0, 1e6) as usize;
            for k in 0..=steps {
                let t = k as f64 / steps as f64;
                let at = grid.transform.cell_at(Xy { x: part.start.x + t * dx, y: part.start.y + t * dy });
                if grid.window().contains(at) {
                    let i = at.row as usize * grid.cols + at.col as usize;
                    let z = *z as f32;
                    let known = range[i].unwrap_or((z, z));
                    range[i] = Some((known.0.min(z), known.1.max(z)));
                }
            }
        }
    }
    Drawn { range }
}

/// A connected area without lines or water.
#[derive(Default)]
struct Pocket {
    /// Heights of the lines around it, in millimetres, which order exactly.
    heights: BTreeSet<i64>,
    /// Other pockets across a line that is the only one around.
    across: BTreeSet<usize>,
    is_at_edge: bool,
    is_at_water: bool,
    bounds: Option<Bounds>,
}

/// Between which heights the cells lie that no line crosses: 0 is unknown, k is the k-th of the bounds. Between two lines
/// these are their heights. Beyond the last one, the ground goes on in the direction in which it went on its other side, by
/// less than a step; a lone closed line is a hill.
pub(super) fn bounds(drawn: &Drawn, water: &Raster<u16>, grid: &Grid) -> (Raster<u16>, Vec<Bounds>) {
    let (cols, rows) = (grid.cols, grid.rows);
    let mut class = Raster::filled(cols, rows, 0u16);
    if drawn.is_empty() {
        return (class, Vec::new());
    }
    const NONE: usize = usize::MAX;
    let mut pocket_of = vec![NONE; grid.len()];
    let mut pockets: Vec<Pocket> = Vec::new();
    let millimetres = |z: f32| (f64::from(z) * 1000.0).round() as i64;
    let neighbours = |i: usize| neighbours(i, cols, rows);
    for start in 0..grid.len() {
        if pocket_of[start] != NONE || drawn.range[start].is_some() || water.values[start] != 0 {
            continue;
        }
        let number = pockets.len();
        let mut pocket = Pocket::default();
        let mut queue = VecDeque::from([start]);
        pocket_of[start] = number;
        while let Some(i) = queue.pop_front() {
            let (c, r) = (i % cols, i / cols);
            pocket.is_at_edge |= c == 0 || r == 0 || c + 1 == cols || r + 1 == rows;
            for n in neighbours(i) {
                if let Some((low, high)) = drawn.range[n] {
                    pocket.heights.extend([millimetres(low), millimetres(high)]);
                } else if water.values[n] != 0 {
                    pocket.is_at_water = true;
                } else if pocket_of[n] == NONE {
                    pocket_of[n] = number;
                    queue.push_back(n);
                }
            }
        }
        pockets.push(pocket);
    }
    for i in (0..grid.len()).filter(|&i| drawn.range[i].is_some()) {
        let beside: BTreeSet<usize> = neighbours(i).map(|n| pocket_of[n]).filter(|p| *p != NONE).collect();
        for &a in &beside {
            pockets[a].across.extend(beside.iter().copied().filter(|b| *b != a));
        }
    }
    let all: Vec<i64> =
        pockets.iter().flat_map(|p| p.heights.iter().copied()).collect::<BTreeSet<_>>().into_iter().collect();
    let mut gaps: Vec<i64> = all.windows(2).map(|w| w[1] - w[0]).collect();
    gaps.sort_unstable();
    let step_m = gaps.get(gaps.len() / 2).copied().unwrap_or(100_000) as f64 / 1000.0;
    let metres = |mm: i64| mm as f64 / 1000.0;
    for p in &mut pockets {
        if let (Some(low), Some(high), true) = (p.heights.first(), p.heights.last(), p.heights.len() > 1) {
            p.bounds = Some(Bounds { low_m: metres(*low), high_m: metres(*high) });
        }
    }
    let above = |e: f64| Bounds { low_m: e, high_m: e + step_m };
    let below = |e: f64, at_water: bool| Bounds { low_m: if at_water { OPEN.low_m } else { e - step_m }, high_m: e };
    // From pocket to pocket across lines, until nothing more follows; then by the rule of hills.
    loop {
        let mut found: Vec<(usize, Bounds)> = Vec::new();
        for (k, p) in pockets.iter().enumerate().filter(|(_, p)| p.bounds.is_none() && p.heights.len() == 1) {
            let e = metres(*p.heights.first().unwrap_or(&0));
            if p.is_at_water {
                found.push((k, below(e, true)));
                continue;
            }
            let beyond: Vec<Bounds> = p.across.iter().filter_map(|&a| pockets[a].bounds).collect();
            let (is_lower, is_higher) = (beyond.iter().any(|b| b.low_m < e), beyond.iter().any(|b| b.high_m > e));
            match (is_lower, is_higher) {
                (true, false) => found.push((k, above(e))),
                (false, true) => found.push((k, below(e, false))),
                _ => {}
            }
        }
        if found.is_empty() {
            // One that nothing decides; the others may follow from it.
            let undecided = pockets.iter().position(|p| p.bounds.is_none() && p.heights.len() == 1 && !p.is_at_edge);
            let Some(k) = undecided else { break };
            let e = metres(*pockets[k].heights.first().unwrap_or(&0));
            found.push((k, above(e)));
        }
        found.into_iter().for_each(|(k, b)| pockets[k].bounds = Some(b));
    }
    let mut known: Vec<Bounds> = Vec::new();
    let number: Vec<u16> = pockets
        .iter()
        .map(|p| {
            let Some(b) = p.bounds else { return 0 };
            let at = known.iter().position(|k| *k == b).unwrap_or_else(|| {
                known.push(b);
                known.len() - 1
            });
            (at + 1).min(usize::from(u16::MAX)) as u16
        })
        .collect();
    for (i, v) in class.values.iter_mut().enumerate().filter(|(i, _)| pocket_of[*i] != NONE) {
        *v = number[pocket_of[i]];
    }
    (class, known)
}

/// Takes the bounds off the cells that touch one which a line crosses.
pub(super) fn clear_beside(class: &mut Raster<u16>, drawn: &Drawn) {
    let (cols, rows) = (class.cols as i64, class.rows as i64);
    for i in (0..drawn.range.len()).filter(|&i| drawn.range[i].is_some()) {
        let (c, r) = (i as i64 % cols, i as i64 / cols);
        for (dc, dr) in (-1..=1).flat_map(|dr| (-1..=1).map(move |dc| (dc, dr))) {
            let cell = Cell { col: c + dc, row: r + dr };
            if cell.col >= 0 && cell.row >= 0 && cell.col < cols && cell.row < rows {
                class.set(cell.col as usize, cell.row as usize, 0);
            }
        }
    }
}

/// Carries the classes of `class` into cells of none, one cell further in each of `rounds` and never through a cell that a
/// line crosses; where two meet, the smaller number. What becomes of a cell depends on what lies within as many cells.
pub(super) fn carry(class: &mut Raster<u16>, drawn: &Drawn, rounds: usize) {
    let (cols, rows) = (class.cols, class.rows);
    let mut open: Vec<usize> =
        (0..class.values.len()).filter(|&i| class.values[i] == 0 && !drawn.is_crossed(i)).collect();
    for _ in 0..rounds {
        let found: Vec<(usize, u16)> = open
            .iter()
            .filter_map(|&i| {
                let beside = neighbours(i, cols, rows).map(|n| class.values[n]).filter(|c| *c != 0);
                Some((i, beside.min()?))
            })
            .collect();
        if found.is_empty() {
            break;
        }
        found.iter().for_each(|&(i, c)| class.values[i] = c);
        open.retain(|&i| class.values[i] == 0);
    }
}

/// The up to four cells beside one.
fn neighbours(i: usize, cols: usize, rows: usize) -> impl Iterator<Item = usize> {
    let (c, r) = ((i % cols) as i64, (i / cols) as i64);
    [(-1i64, 0i64), (1, 0), (0, -1), (0, 1)].into_iter().filter_map(move |(dc, dr)| {
        let (c, r) = (c + dc, r + dr);
        (c >= 0 && r >= 0 && c < cols as i64 && r < rows as i64).then_some(r as usize * cols + c as usize)
    })
}
