//! Contour lines of an elevation raster by marching squares. No GDAL, no files.
//!
//! The corners of a square are four neighbouring cell centres; a line crosses an edge of the square where linear
//! interpolation along it meets the level. Lines have the higher ground on their left. Each crossing is computed from
//! the edge alone, so that the squares on both sides of it agree bit for bit; the result does not depend on the number
//! of threads.
//!
//! Source: the two-dimensional form of Lorensen and Cline, "Marching Cubes", SIGGRAPH 1987. A saddle (two opposite
//! corners above the level, two below) is resolved by the mean of the four corners, the same for both its lines.

use crate::grid::Grid;
use crate::raster::Raster;
use geo::{Coord, LineString, Simplify};
use rayon::prelude::*;

/// A contour line.
#[derive(Debug, Clone, PartialEq)]
pub struct ContourLine {
    /// Elevation, metres.
    pub level_m: f64,
    /// Its course in the CRS of the grid, higher ground on the left; closed, or ending at the raster's edge or at NaN.
    pub line: LineString<f64>,
}

/// How contours are drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct ContourOptions {
    /// Farthest that simplification (Douglas-Peucker) may move a line, in cells; 0 keeps every vertex.
    pub simplify_cells: f64,
    /// Closed lines shorter than this are left out, in cells.
    pub shortest_cells: f64,
}

impl Default for ContourOptions {
    fn default() -> Self {
        ContourOptions { simplify_cells: 0.2, shortest_cells: 8.0 }
    }
}

/// The contour interval in metres for heights from `lowest_m` to `highest_m`: that of 1, 2, 5, 10, 20, 50, ... which
/// comes nearest (as a ratio) to 20 levels; they are 12 to 32, fewer where the heights span less than 12 m. 1 where they
/// are equal or not finite.
///
/// ```
/// assert_eq!(histmap::contour::sensible_interval(-28.0, 5642.0), 200.0);
/// assert_eq!(histmap::contour::sensible_interval(0.0, 180.0), 10.0);
/// ```
pub fn sensible_interval(lowest_m: f64, highest_m: f64) -> f64 {
    let wished = (highest_m - lowest_m) / 20.0;
    if !wished.is_finite() {
        return 1.0;
    }
    let (mut finer, mut coarser, mut power) = (1.0, 1.0, 1.0);
    for step in [2.0, 5.0, 10.0].into_iter().cycle() {
        if coarser >= wished {
            break;
        }
        (finer, coarser) = (coarser, step * power);
        if step == 10.0 {
            power = coarser;
        }
    }
    if wished / finer < coarser / wished { finer } else { coarser }
}

/// Contours of `elevation` at the whole multiples of `interval_m`, level by level upward; within a level, open lines
/// first, each kind by its first crossing in row order. Squares with a NaN corner have none.
///
/// Some nanoseconds per cell and some hundred per crossing; 24 bytes per crossing.
///
/// # Panics
/// When `interval_m` is not positive or the raster is not of the grid's size: programming errors.
pub fn contours(elevation: &Raster<f32>, grid: &Grid, interval_m: f64, options: &ContourOptions) -> Vec<ContourLine> {
    assert!(interval_m > 0.0 && interval_m.is_finite(), "contour interval {interval_m}");
    assert_eq!((elevation.cols, elevation.rows), (grid.cols, grid.rows), "raster and grid");
    if elevation.cols < 2 || elevation.rows < 2 {
        return Vec::new();
    }
    let mut steps: Vec<Step> =
        (0..elevation.rows - 1).into_par_iter().flat_map_iter(|row| row_steps(elevation, row, interval_m)).collect();
    // (level, from) is unique: a line enters an edge once.
    steps.par_sort_unstable_by_key(|s| (s.level, s.from));
    steps
        .chunk_by(|a, b| a.level == b.level)
        .collect::<Vec<_>>()
        .into_par_iter()
        .flat_map_iter(|level| level_lines(level, elevation, grid, interval_m, options))
        .collect()
}

/// Whether the two corners of a square that reach `level` are joined through its middle when they lie opposite each other:
/// when the mean of all four, in any order, reaches it. Lines and areas of one level are resolved alike by it.
pub fn is_joined([a, b, c, d]: [f64; 4], level: f64) -> bool {
    (a + b + c + d) / 4.0 >= level
}

/// A piece of a line across one square, from edge to edge.
#[derive(Debug, Clone, Copy)]
struct Step {
    /// Multiple of the interval.
    level: i32,
    from: EdgeKey,
    to: EdgeKey,
}

/// An edge between neighbouring centres: twice the number of its western or northern cell, plus 1 when it runs south.
type EdgeKey = u64;

/// Pieces in the squares whose northern corners lie in `row`.
fn row_steps(elevation: &Raster<f32>, row: usize, interval_m: f64) -> Vec<Step> {
    let (upper, lower) = (elevation.row(row), elevation.row(row + 1));
    let cols = elevation.cols as u64;
    let mut steps = Vec::new();
    for col in 0..elevation.cols - 1 {
        let [nw, ne, sw, se] = [upper[col], upper[col + 1], lower[col], lower[col + 1]].map(f64::from);
        let (lowest, highest) = (nw.min(ne).min(sw.min(se)), nw.max(ne).max(sw.max(se)));
        // A corner on the level counts as above it: levels in (lowest, highest].
        let first = (lowest / interval_m).floor() + 1.0;
        let last = (highest / interval_m).floor();
        if first > last || [nw, ne, sw, se].iter().any(|v| !v.is_finite()) {
            continue;
        }
        let cell = row as u64 * cols + col as u64;
        let [north, west, south, east] = [2 * cell, 2 * cell + 1, 2 * (cell + cols), 2 * (cell + 1) + 1];
        // Beyond an int's multiples of the interval there is no ground.
        for level in first.max(f64::from(i32::MIN)) as i32..=last.min(f64::from(i32::MAX)) as i32 {
            let z = f64::from(level) * interval_m;
            let above = |v: f64| v >= z;
            let centre = is_joined([nw, ne, sw, se], z);
            let mut add = |from, to| steps.push(Step { level, from, to });
            // North-west, north-east, south-east, south-west: which are above. Walking from the first edge to the
            // second leaves them on the left.
            match (above(nw), above(ne), above(se), above(sw)) {
                (false, false, false, false) | (true, true, true, true) => {}
                (true, false, false, false) => add(west, north),
                (false, true, false, false) => add(north, east),
                (false, false, true, false) => add(east, south),
                (false, false, false, true) => add(south, west),
                (true, true, false, false) => add(west, east),
                (false, true, true, false) => add(north, south),
                (false, false, true, true) => add(east, west),
                (true, false, false, true) => add(south, north),
                (false, true, true, true) => add(north, west),
                (true, false, true, true) => add(east, north),
                (true, true, false, true) => add(south, east),
                (true, true, true, false) => add(west, south),
                (true, false, true, false) if centre => {
                    add(east, north);
                    add(west, south);
                }
                (true, false, true, false) => {
                    add(west, north);
                    add(east, south);
                }
                (false, true, false, true) if centre => {
                    add(north, west);
                    add(south, east);
                }
                (false, true, false, true) => {
                    add(north, east);
                    add(south, west);
                }
            }
        }
    }
    steps
}

/// Joins the pieces of one level, sorted by `from`, to lines.
fn level_lines(
    steps: &[Step],
    elevation: &Raster<f32>,
    grid: &Grid,
    interval_m: f64,
    options: &ContourOptions,
) -> Vec<ContourLine> {
    let level_m = f64::from(steps[0].level) * interval_m;
    let next: Vec<Option<u32>> =
        steps.iter().map(|s| steps.binary_search_by_key(&s.to, |other| other.from).ok().map(|k| k as u32)).collect();
    let mut has_former = vec![false; steps.len()];
    for k in next.iter().flatten() {
        has_former[*k as usize] = true;
    }
    let mut done = vec![false; steps.len()];
    let mut lines = Vec::new();
    // Open lines from their beginning; what is left then are rings.
    for ring in [false, true] {
        for first in 0..steps.len() {
            if done[first] || (!ring && has_former[first]) {
                continue;
            }
            let mut points = vec![crossing(steps[first].from, level_m, elevation, grid)];
            let mut at = Some(first as u32);
            while let Some(k) = at.filter(|k| !done[*k as usize]) {
                done[k as usize] = true;
                let point = crossing(steps[k as usize].to, level_m, elevation, grid);
                if points.last() != Some(&point) {
                    points.push(point);
                }
                at = next[k as usize];
            }
            if let Some(line) = finished(points, ring, grid, options) {
                lines.push(ContourLine { level_m, line });
            }
        }
    }
    lines
}

/// Where the level meets the edge.
fn crossing(edge: EdgeKey, level_m: f64, elevation: &Raster<f32>, grid: &Grid) -> Coord<f64> {
    let cell = (edge / 2) as usize;
    let (col, row) = (cell % elevation.cols, cell / elevation.cols);
    let southward = edge % 2 == 1;
    let (a, b) = (
        f64::from(elevation.at(col, row)),
        f64::from(if southward { elevation.at(col, row + 1) } else { elevation.at(col + 1, row) }),
    );
    let part = ((level_m - a) / (b - a)).clamp(0.0, 1.0);
    let (x, y) = if southward { (col as f64, row as f64 + part) } else { (col as f64 + part, row as f64) };
    let t = &grid.transform;
    Coord { x: t.origin_x + (x + 0.5) * t.cell_width, y: t.origin_y - (y + 0.5) * t.cell_height }
}

/// The line simplified; `None` when nothing worth drawing is left.
fn finished(points: Vec<Coord<f64>>, ring: bool, grid: &Grid, options: &ContourOptions) -> Option<LineString<f64>> {
    if points.len() < 2 || (ring && points.len() < 4) {
        return None; // a single point at a corner that lies on the level
    }
    let cell = grid.transform.cell_width.min(grid.transform.cell_height);
    let line = LineString(points);
    if ring {
        let length: f64 = line.lines().map(|l| (l.dx()).hypot(l.dy())).sum();
        if length < options.shortest_cells * cell {
            return None;
        }
    }
    if options.simplify_cells <= 0.0 {
        return Some(line);
    }
    let simple = line.simplify(options.simplify_cells * cell);
    // A small ring would fall flat.
    Some(if ring && simple.0.len() < 4 { line } else { simple })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::{Crs, GeoTransform};
    use proptest::prelude::*;

    fn grid(cols: usize, rows: usize) -> Grid {
        Grid {
            crs: Crs { name: "plane".into(), wkt: String::new(), is_geographic: false },
            // Centre of cell (c, r) at (c, -r).
            transform: GeoTransform { origin_x: -0.5, origin_y: 0.5, cell_width: 1.0, cell_height: 1.0 },
            cols,
            rows,
        }
    }

    const ALL: ContourOptions = ContourOptions { simplify_cells: 0.0, shortest_cells: 0.0 };

    fn lines_of(cols: usize, values: &[f32], interval_m: f64) -> Vec<ContourLine> {
        let raster = Raster::from_values(cols, values.len() / cols, values.to_vec());
        contours(&raster, &grid(cols, raster.rows), interval_m, &ALL)
    }

    fn coords(line: &ContourLine) -> Vec<(f64, f64)> {
        line.line.0.iter().map(|c| (c.x, c.y)).collect()
    }

    #[test]
    fn a_slope_to_the_north_has_lines_to_the_east() {
        // Higher in the north: walking east has it on the left.
        let lines = lines_of(3, &[15.0, 15.0, 15.0, 5.0, 5.0, 5.0], 10.0);
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0].level_m, 10.0);
        assert_eq!(coords(&lines[0]), [(0.0, -0.5), (1.0, -0.5), (2.0, -0.5)]);
    }

    #[test]
    fn a_summit_has_a_ring_with_the_summit_on_the_left() {
        #[rustfmt::skip]
        let lines = lines_of(3, &[
            0.0,  0.0, 0.0,
            0.0, 20.0, 0.0,
            0.0,  0.0, 0.0,
        ], 15.0);
        assert_eq!(lines.len(), 1);
        let ring = &lines[0].line;
        assert!(ring.is_closed());
        assert_eq!(ring.0.len(), 5);
        // Counter-clockwise.
        let area: f64 = ring.lines().map(|l| l.determinant()).sum::<f64>() / 2.0;
        assert!((area - 2.0 * 0.25 * 0.25).abs() < 1e-12, "{area}");
    }

    #[test]
    fn nan_cells_interrupt_a_line() {
        let lines = lines_of(4, &[15.0, 15.0, 15.0, f32::NAN, 5.0, 5.0, 5.0, 5.0], 10.0);
        assert_eq!(coords(&lines[0]), [(0.0, -0.5), (1.0, -0.5), (2.0, -0.5)]);
    }

    #[test]
    fn a_saddle_follows_its_mean() {
        // Mean 12: the two high corners are one ridge, the lines cut off the low corners.
        let high = lines_of(2, &[20.0, 4.0, 4.0, 20.0], 10.0);
        assert_eq!(high.len(), 2);
        assert!(high.iter().all(|l| l.line.0.len() == 2));
        let corner =
            |l: &ContourLine, x: f64, y: f64| l.line.0.iter().any(|c| c.x == x) && l.line.0.iter().any(|c| c.y == y);
        assert!(high.iter().any(|l| corner(l, 1.0, 0.0)), "one cuts off the north-east: {high:?}");
        // Mean 8: the low corners are joined, the lines cut off the high ones.
        let low = lines_of(2, &[16.0, 0.0, 0.0, 16.0], 10.0);
        assert!(low.iter().any(|l| corner(l, 0.0, 0.0)), "one cuts off the north-west: {low:?}");
    }

    #[test]
    fn a_flat_raster_and_a_level_plateau_have_no_stray_points() {
        assert!(lines_of(3, &[10.0; 9], 10.0).is_empty());
        // A plateau on the level itself, in lower ground: a ring around it.
        let mut values = vec![5.0; 25];
        for row in 1..4 {
            values[row * 5 + 1..row * 5 + 4].fill(10.0);
        }
        let lines = lines_of(5, &values, 10.0);
        assert_eq!(lines.len(), 1);
        assert!(lines[0].line.is_closed());
    }

    #[test]
    fn simplifying_keeps_few_vertices_of_a_straight_line() {
        let raster = Raster::from_values(50, 2, [[15f32; 50], [5f32; 50]].concat());
        let lines = contours(&raster, &grid(50, 2), 10.0, &ContourOptions::default());
        assert_eq!(lines[0].line.0.len(), 2);
    }

    #[test]
    fn intervals_are_round_and_levels_few() {
        for (low, high, interval) in
            [(0.0, 1.0, 1.0), (0.0, 26.0, 1.0), (0.0, 30.0, 2.0), (-5000.0, 8848.0, 500.0), (3.0, 3.0, 1.0)]
        {
            assert_eq!(sensible_interval(low, high), interval);
        }
        assert_eq!(sensible_interval(f64::NAN, 1.0), 1.0);
    }

    proptest! {
        #[test]
        fn vertices_lie_at_their_level_and_lines_end_at_edges_or_nan(
            cols in 2usize..12, values in prop::collection::vec(prop_oneof![8 => -50f32..50.0, 1 => Just(f32::NAN), 2 => Just(10.0f32)], 24..144),
        ) {
            let rows = values.len() / cols;
            let raster = Raster::from_values(cols, rows, values[..cols * rows].to_vec());
            let lines = contours(&raster, &grid(cols, rows), 10.0, &ALL);
            for ContourLine { level_m, line } in &lines {
                for c in &line.0 {
                    // On an edge between centres: one coordinate is whole.
                    let (x, y) = (c.x, -c.y);
                    let (fx, fy) = (x - x.floor(), y - y.floor());
                    prop_assert!(fx < 1e-9 || fy < 1e-9 || fx > 1.0 - 1e-9 || fy > 1.0 - 1e-9);
                    let at = |x: f64, y: f64| f64::from(raster.at((x as usize).min(cols - 1), (y as usize).min(rows - 1)));
                    let mix = |a: f64, b: f64, t: f64| if t < 1e-9 { a } else if t > 1.0 - 1e-9 { b } else { a + (b - a) * t };
                    let (x0, y0) = (x.floor(), y.floor());
                    let z = mix(mix(at(x0, y0), at(x0 + 1.0, y0), fx), mix(at(x0, y0 + 1.0), at(x0 + 1.0, y0 + 1.0), fx), fy);
                    prop_assert!((z - level_m).abs() < 1e-6, "{z} against {level_m} at {c:?}");
                }
                if !line.is_closed() {
                    for c in [line.0[0], line.0[line.0.len() - 1]] {
                        let (x, y) = (c.x, -c.y);
                        let border = x == 0.0 || y == 0.0 || x == (cols - 1) as f64 || y == (rows - 1) as f64;
                        let near_nan = (-1..=2).any(|dy| (-1..=2).any(|dx| {
                            raster.get(crate::grid::Cell { col: x.floor() as i64 + dx, row: y.floor() as i64 + dy })
                                .is_some_and(f32::is_nan)
                        }));
                        prop_assert!(border || near_nan, "{c:?}");
                    }
                }
            }
        }

        #[test]
        fn threads_do_not_change_the_result(values in prop::collection::vec(-50f32..50.0, 400)) {
            let raster = Raster::from_values(20, 20, values);
            let with = |threads| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| contours(&raster, &grid(20, 20), 10.0, &ContourOptions::default()))
            };
            prop_assert_eq!(with(1), with(4));
        }
    }
}
