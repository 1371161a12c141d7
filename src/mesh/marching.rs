//! Areas of a raster as triangles, by marching squares over cell centres: where a field reaches a level, or the classes of a
//! raster of classes.
//!
//! Source: the two-dimensional form of Lorensen and Cline, "Marching Cubes", SIGGRAPH 1987: 16 cases by which corners of
//! a square lie inside. Two of them, with opposite corners inside, are ambiguous, and resolved by rules that hold
//! everywhere in this crate: of a level by [`crate::contour::is_joined`], so that areas end in the contour lines of the same level; of
//! classes, where a square has several candidates, by a junction in its middle, as traced outlines have.

use super::tin::plain_triangles;
use super::{Node, Surface, grouped};
use crate::contour::is_joined;
use crate::error::{Error, Result};
use crate::raster::Raster;
use rayon::prelude::*;

/// Where a border crosses the line between two centres.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Crossing {
    /// Where a straight line between the two values meets the level, kept 1/64 cell away from the centres.
    #[default]
    Interpolated,
    /// Halfway.
    Midpoint,
}

/// Crossings keep this far from centres, so that every triangle has an area.
const CLEAR: f64 = 1.0 / 64.0;

/// Vertices of a square, numbered from its north-western cell: times 4, plus one of these.
const CORNER: u64 = 0;
const EAST_OF: u64 = 1;
const SOUTH_OF: u64 = 2;
const MIDDLE: u64 = 3;

/// The area where `field` is `level` or more, at height 0. What is not a number is below; the area ends at the outermost centres.
///
/// # Errors
/// As [`super::grid_mesh::grid_mesh`]; [`Error::Argument`] for a level that is not finite.
///
/// ```
/// use histmap::mesh::marching::{Crossing, area_at};
/// use histmap::raster::Raster;
/// // One corner of four: a triangle between it and the middles beside it.
/// let mask = Raster::from_values(2, 2, vec![1.0, 0.0, 0.0, 0.0]);
/// let area = area_at(&mask, 0.5, Crossing::Midpoint)?;
/// assert_eq!(area.vertices.iter().map(|n| (n.col, n.row)).collect::<Vec<_>>(), [(0.0, 0.0), (0.5, 0.0), (0.0, 0.5)]);
/// # Ok::<(), histmap::Error>(())
/// ```
pub fn area_at(field: &Raster<f32>, level: f64, crossing: Crossing) -> Result<Surface> {
    super::grid_mesh::check(field, None)?;
    if !level.is_finite() {
        return Err(Error::argument("--above", level, "give a finite number"));
    }
    let squares = |r: usize, out: &mut Vec<[u64; 3]>| {
        for c in 0..field.cols - 1 {
            let at = Square { cols: field.cols as u64, cell: (r * field.cols + c) as u64 };
            let values = [(c, r), (c, r + 1), (c + 1, r + 1), (c + 1, r)].map(|(c, r)| f64::from(field.at(c, r)));
            let inside = values.map(|v| v >= level);
            match inside.iter().filter(|i| **i).count() {
                0 | 4 => {} // drawn in larger triangles
                2 if inside[0] == inside[2] && !is_joined(values, level) => {
                    for k in (0..4).filter(|k| inside[*k]) {
                        out.push([at.corner(k), at.edge(k), at.edge(k + 3)]);
                    }
                }
                _ => {
                    let first = inside.iter().position(|i| *i).unwrap_or(0);
                    let mut polygon = Vec::with_capacity(6);
                    for k in first..first + 4 {
                        if inside[k % 4] {
                            polygon.push(at.corner(k));
                        }
                        if inside[k % 4] != inside[(k + 1) % 4] {
                            polygon.push(at.edge(k));
                        }
                    }
                    out.extend((1..polygon.len() - 1).map(|k| [polygon[0], polygon[k], polygon[k + 1]]));
                }
            }
        }
    };
    let rows: Vec<Vec<[u64; 3]>> = (0..field.rows - 1)
        .into_par_iter()
        .map(|r| {
            let mut out = Vec::new();
            squares(r, &mut out);
            out
        })
        .collect();
    let is_inside = |c: usize, r: usize| f64::from(field.at(c, r)) >= level;
    let whole = whole_squares(field.cols, field.rows, is_inside)
        .into_iter()
        .filter(|(_, (c, r))| is_inside(*c, *r))
        .map(|(t, _)| t);
    let triangles: Vec<[u64; 3]> = whole.chain(rows.concat()).collect();
    let part = |a: f32, b: f32| {
        let t = (level - f64::from(a)) / (f64::from(b) - f64::from(a));
        if crossing == Crossing::Midpoint || !t.is_finite() { 0.5 } else { t.clamp(CLEAR, 1.0 - CLEAR) }
    };
    let node = |key: u64| {
        let (c, r) = ((key / 4) as usize % field.cols, (key / 4) as usize / field.cols);
        let here = field.at(c, r);
        let (dc, dr) = match key % 4 {
            EAST_OF => (part(here, field.at(c + 1, r)), 0.0),
            SOUTH_OF => (0.0, part(here, field.at(c, r + 1))),
            _ => (0.0, 0.0),
        };
        Node { col: (c as f64 + dc) as f32, row: (r as f64 + dr) as f32, z: 0.0 }
    };
    Ok(numbered(&triangles, None, node))
}

/// The areas of the classes of a raster, at height 0, one group each: those `wanted`, or all but 0 where none is named. Together
/// they leave no gap and do not overlap: two classes in a square meet in the line between the middles of its sides, three or
/// four, and two that lie crosswise, in its middle.
///
/// # Errors
/// [`Error::Argument`] for a raster of fewer than 2 columns or rows, or too many cells.
pub fn areas_of(classes: &Raster<u16>, wanted: &[u16]) -> Result<Surface> {
    super::grid_mesh::check_size(classes.cols, classes.rows)?;
    let is_wanted = |class: u16| if wanted.is_empty() { class != 0 } else { wanted.contains(&class) };
    let rows: Vec<Vec<([u64; 3], u16)>> = (0..classes.rows - 1)
        .into_par_iter()
        .map(|r| {
            let mut out = Vec::new();
            for c in 0..classes.cols - 1 {
                let at = Square { cols: classes.cols as u64, cell: (r * classes.cols + c) as u64 };
                let own = [(c, r), (c, r + 1), (c + 1, r + 1), (c + 1, r)].map(|(c, r)| classes.at(c, r));
                let changes = (0..4).filter(|k| own[*k] != own[(*k + 1) % 4]).count();
                let fan = |apex: u64, line: &[u64], class: u16, out: &mut Vec<([u64; 3], u16)>| {
                    if is_wanted(class) {
                        out.extend(line.windows(2).map(|w| ([apex, w[0], w[1]], class)));
                    }
                };
                // Runs of one class, counter-clockwise from a change.
                let Some(change) = (0..4).find(|k| own[*k] != own[(*k + 3) % 4]) else {
                    continue; // drawn in larger triangles
                };
                let mut k = change;
                while k < change + 4 {
                    let n = (1..4).take_while(|n| k + n < change + 4 && own[(k + n) % 4] == own[k % 4]).count() + 1;
                    let mut line = vec![at.edge(k + 3)];
                    line.extend((k..k + n).map(|m| at.corner(m)));
                    line.push(at.edge(k + n - 1));
                    if changes == 2 {
                        // The line between the two middles closes the polygon; its fan begins in a corner.
                        line.rotate_left(1);
                        fan(line[0], &line[1..], own[k % 4], &mut out);
                    } else {
                        fan(at.middle(), &line, own[k % 4], &mut out);
                    }
                    k += n;
                }
            }
            out
        })
        .collect();
    let whole = whole_squares(classes.cols, classes.rows, |c, r| classes.at(c, r))
        .into_iter()
        .map(|(t, (c, r))| (t, classes.at(c, r)))
        .filter(|(_, class)| is_wanted(*class));
    let (triangles, class_of): (Vec<_>, Vec<_>) = whole.chain(rows.concat()).unzip();
    let node = |key: u64| {
        let (c, r) = (key / 4 % classes.cols as u64, key / 4 / classes.cols as u64);
        let (dc, dr) = match key % 4 {
            EAST_OF => (0.5, 0.0),
            SOUTH_OF => (0.0, 0.5),
            MIDDLE => (0.5, 0.5),
            _ => (0.0, 0.0),
        };
        Node { col: c as f32 + dc, row: r as f32 + dr, z: 0.0 }
    };
    Ok(numbered(&triangles, Some(class_of), node))
}

/// Triangles over all squares whose four corners are alike, as large as may be, each with one of its cells.
fn whole_squares<T: PartialEq>(
    cols: usize,
    rows: usize,
    at: impl Fn(usize, usize) -> T + Sync,
) -> Vec<([u64; 3], (usize, usize))> {
    let is_mixed = |c: usize, r: usize| {
        let own = at(c, r);
        own != at(c + 1, r) || own != at(c, r + 1) || own != at(c + 1, r + 1)
    };
    let key = |v: [u32; 2]| 4 * (u64::from(v[1]) * cols as u64 + u64::from(v[0])) + CORNER;
    plain_triangles(cols, rows, is_mixed)
        .into_iter()
        .map(|t| (t.map(key), (t[0][0] as usize, t[0][1] as usize)))
        .collect()
}

/// The square south-east of a cell's centre; corners from the north-west counter-clockwise, edge k from corner k to the next.
struct Square {
    cols: u64,
    cell: u64,
}

impl Square {
    fn corner(&self, k: usize) -> u64 {
        4 * (self.cell + [0, self.cols, self.cols + 1, 1][k % 4]) + CORNER
    }

    fn edge(&self, k: usize) -> u64 {
        match k % 4 {
            0 => 4 * self.cell + SOUTH_OF,
            1 => 4 * (self.cell + self.cols) + EAST_OF,
            2 => 4 * (self.cell + 1) + SOUTH_OF,
            _ => 4 * self.cell + EAST_OF,
        }
    }

    fn middle(&self) -> u64 {
        4 * self.cell + MIDDLE
    }
}

/// Gives the vertices numbers in the order of their keys.
fn numbered(triangles: &[[u64; 3]], classes: Option<Vec<u16>>, node: impl Fn(u64) -> Node + Sync) -> Surface {
    let mut keys: Vec<u64> = triangles.iter().flatten().copied().collect();
    keys.par_sort_unstable();
    keys.dedup();
    let number = |k: u64| keys.binary_search(&k).map_or(0, |n| n as u32);
    let triangles = triangles.par_iter().map(|t| t.map(number)).collect();
    Surface { vertices: keys.par_iter().map(|k| node(*k)).collect(), groups: grouped(triangles, classes) }
}

#[cfg(test)]
mod tests {
    use super::super::laws::{area, assert_sound};
    use super::*;
    use crate::contour::{ContourOptions, contours};
    use crate::grid::{Crs, GeoTransform, Grid};
    use proptest::prelude::*;

    /// The 16 cases, corners NW, NE, SW, SE as bits 8, 4, 2, 1, and the share of the square that is inside, in eighths, with crossings
    /// halfway: none 0; one corner 1; two beside each other 4; three 7; all 8; two opposite ones joined 6, as the mean (1/2) reaches
    /// the level 1/2.
    #[test]
    fn sixteen_cases_by_hand() {
        let eighths = [0, 1, 1, 4, 1, 4, 6, 7, 1, 6, 4, 7, 4, 7, 7, 8];
        for (case, want) in eighths.into_iter().enumerate() {
            let bit = |n: usize| if case & n != 0 { 1.0 } else { 0.0 };
            let z = Raster::from_values(2, 2, vec![bit(8), bit(4), bit(2), bit(1)]);
            let s = area_at(&z, 0.5, Crossing::Midpoint).unwrap();
            assert_sound(&s);
            assert_eq!(area(&s) * 8.0, f64::from(want), "case {case}");
        }
        // A mean below the level parts them: 2 corners.
        let z = Raster::from_values(2, 2, vec![1.0, 0.0, 0.0, 1.0]);
        assert_eq!(area(&area_at(&z, 0.75, Crossing::Midpoint).unwrap()) * 8.0, 2.0);
    }

    /// Between 0 and 10 the level 2.5 lies a quarter of the way.
    #[test]
    fn crossings_are_interpolated() {
        let z = Raster::from_values(2, 2, vec![0.0, 10.0, 0.0, 10.0]);
        let s = area_at(&z, 2.5, Crossing::Interpolated).unwrap();
        assert_eq!(area(&s), 0.75);
        assert!(s.vertices.iter().any(|n| (n.col, n.row) == (0.25, 1.0)));
    }

    /// Four classes around a square meet in its middle; each has a quarter. Two crosswise as well.
    #[test]
    fn classes_meet_in_the_middle() {
        for (values, groups) in [(vec![1, 2, 3, 4], 4), (vec![1, 2, 2, 1], 2)] {
            let s = areas_of(&Raster::from_values(2, 2, values), &[]).unwrap();
            assert_sound(&s);
            assert_eq!((area(&s), s.groups.len(), s.vertices.len()), (1.0, groups, 9));
        }
    }

    #[test]
    fn only_the_wanted_classes_are_drawn() {
        let classes = Raster::from_values(3, 2, vec![1, 2, 0, 1, 2, 0]);
        let s = areas_of(&classes, &[2]).unwrap();
        assert_eq!((s.groups.len(), area(&s)), (1, 1.0));
        assert_eq!(area(&areas_of(&classes, &[]).unwrap()), 1.5);
        assert!(areas_of(&classes, &[9]).unwrap().is_empty());
    }

    proptest! {
        /// The border of the area above a level is the contour line of that level, saddles included.
        #[test]
        fn areas_end_in_contour_lines(cols in 2usize..9, values in prop::collection::vec(0u8..20, 16..72)) {
            let rows = values.len() / cols;
            // Never on the level itself.
            let z = Raster::from_values(cols, rows, values[..cols * rows].iter().map(|v| f32::from(*v) + 0.5).collect());
            let s = area_at(&z, 10.0, Crossing::Interpolated).unwrap();
            assert_sound(&s);
            let mut edges: Vec<(u32, u32)> = s.triangles().flat_map(|t| [(t[0], t[1]), (t[1], t[2]), (t[2], t[0])]).collect();
            edges.sort_unstable();
            let at = |v: u32| { let n = s.vertices[v as usize]; (f64::from(n.col), f64::from(n.row)) };
            let is_crossing = |p: (f64, f64)| p.0.fract() != 0.0 || p.1.fract() != 0.0;
            let border: Vec<_> = edges.iter()
                .filter(|(a, b)| edges.binary_search(&(*b, *a)).is_err())
                .map(|(a, b)| (at(*a), at(*b)))
                // Along the raster's edge the area ends without a contour.
                .filter(|(a, b)| is_crossing(*a) && is_crossing(*b))
                .collect();
            let grid = Grid {
                crs: Crs { name: "plane".into(), wkt: String::new(), is_geographic: false },
                transform: GeoTransform { origin_x: -0.5, origin_y: 0.5, cell_width: 1.0, cell_height: 1.0 },
                cols, rows,
            };
            let all = ContourOptions { simplify_cells: 0.0, shortest_cells: 0.0 };
            let pieces: Vec<_> = contours(&z, &grid, 10.0, &all).iter().filter(|l| l.level_m == 10.0)
                .flat_map(|l| l.line.lines().map(|l| ((l.start.x, -l.start.y), (l.end.x, -l.end.y))).collect::<Vec<_>>())
                .collect();
            type Segment = ((f64, f64), (f64, f64));
            let rounded = |v: &[Segment]| {
                let r = |x: f64| (x * 1e4).round() as i64;
                let mut out: Vec<_> = v.iter().map(|(a, b)| (r(a.0), r(a.1), r(b.0), r(b.1))).collect();
                out.sort_unstable();
                out
            };
            prop_assert_eq!(rounded(&border), rounded(&pieces));
        }

        #[test]
        fn classes_leave_no_gap(cols in 2usize..9, values in prop::collection::vec(1u16..5, 16..72)) {
            let rows = values.len() / cols;
            let s = areas_of(&Raster::from_values(cols, rows, values[..cols * rows].to_vec()), &[]).unwrap();
            assert_sound(&s);
            prop_assert_eq!(area(&s), ((cols - 1) * (rows - 1)) as f64);
        }
    }
}
