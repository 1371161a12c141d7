//! The adaptive mesh of an elevation raster: a right-triangulated irregular network, refined where the ground needs it.
//!
//! Source: W. Evans, D. Kirkpatrick and G. Townsend, "Right-Triangulated Irregular Networks", Algorithmica 30, 2001. A right
//! triangle is split from its right angle to the middle of its longest side; the triangle on the other side of that side is
//! split with it, so that no vertex ever lies inside an edge. The raster is covered by squares of up to 1024 cells, each
//! of two such triangles.
//!
//! A triangle is split when a cell centre in it, the border included, is farther above or below its plane than the error
//! admitted. Every centre is compared with the plane itself, at all sizes: the bound is exact, not an estimate from
//! the middles of sides. Triangles that hold both heights and holes, or two classes, are split to single cells.
//!
//! Where the raster ends inside a triangle, the triangle is cut there.

use super::{Group, Node, Surface, grouped, majority};
use crate::error::{Error, Result};
use crate::raster::Raster;
use rayon::prelude::*;

/// Side of the largest triangles, cells.
const LARGEST: usize = 1024;
/// Above the error admitted by this much is not above it: the rounding of planes, in units of height.
const SLACK: f64 = 1e-6;

/// Rows up to so long are not worth the way to wide registers.
const SHORT: usize = 12;

/// How to make the mesh.
#[derive(Debug, Clone, Copy, Default)]
pub struct TinOptions<'a> {
    /// Farthest that a cell's height may lie above or below the mesh, in units of height; 0 or more.
    pub max_error: f64,
    /// A class for each cell, of the same size as the raster: no triangle then holds two classes, save those of one cell.
    pub classes: Option<&'a Raster<u16>>,
}

/// The mesh of `z` within the error admitted, from the westernmost and northernmost cell centres to the opposite ones. Cells
/// that are not finite are holes: a square of four centres without one of them keeps the triangle of the other three.
///
/// The border of the raster keeps the heights of the mesh, which are within the error of the cells'.
///
/// Cost: 4097 x 4097 cells at 5 m some tenths of a second; 7 bytes a cell beside the mesh.
///
/// # Errors
/// [`Error::Argument`] for an error that is not a number from 0 up, a raster of fewer than 2 columns or rows, one that is too
/// long, or classes of another size.
///
/// ```
/// use histmap::mesh::tin::{TinOptions, tin};
/// use histmap::raster::Raster;
/// // A plane needs the two triangles of its square.
/// let slope = Raster::from_values(3, 3, vec![0.0, 1.0, 2.0, 2.0, 3.0, 4.0, 4.0, 5.0, 6.0]);
/// assert_eq!(tin(&slope, &TinOptions { max_error: 0.1, classes: None })?.len(), 2);
/// # Ok::<(), histmap::Error>(())
/// ```
pub fn tin(z: &Raster<f32>, options: &TinOptions) -> Result<Surface> {
    if !(options.max_error >= 0.0 && options.max_error.is_finite()) {
        return Err(Error::argument("--max-error", options.max_error, "give a height of 0 or more"));
    }
    super::grid_mesh::check(z, options.classes)?;
    let field = Field::new(z, options);
    let split = Split::of(&field);
    Ok(collect(&field, &split))
}

/// A place on the lattice of cell centres, which reaches beyond the raster to the next whole square.
pub(super) type At = [u32; 2];

/// The raster as the mesh sees it.
struct Field<'a> {
    z: &'a Raster<f32>,
    classes: Option<&'a Raster<u16>>,
    tolerance: f64,
    /// What rounding may add in 32 bits, in units of height.
    rounding: f32,
    has_holes: bool,
    /// Log 2 of the side of the largest squares, and how many there are along x and y.
    top: u32,
    nx: usize,
    ny: usize,
}

/// The plane of a triangle: height at an origin and its rise by column and row.
#[derive(Clone, Copy)]
struct Plane {
    z: f64,
    dx: f64,
    dy: f64,
}

/// What the cells of a triangle have been so far.
#[derive(Default)]
struct Seen {
    finite: bool,
    hole: bool,
    class: Option<u16>,
}

impl<'a> Field<'a> {
    fn new(z: &'a Raster<f32>, options: &TinOptions<'a>) -> Self {
        let longest = z.cols.max(z.rows) - 1;
        let top = longest.next_power_of_two().min(LARGEST).trailing_zeros();
        let highest = z.values.par_iter().filter(|v| v.is_finite()).map(|v| v.abs()).reduce(|| 0.0, f32::max);
        Field {
            z,
            classes: options.classes,
            tolerance: options.max_error + SLACK,
            rounding: 8.0 * f32::EPSILON * highest,
            has_holes: z.values.par_iter().any(|v| !v.is_finite()),
            top,
            nx: (z.cols - 1).div_ceil(1 << top),
            ny: (z.rows - 1).div_ceil(1 << top),
        }
    }

    /// The height at a place; beyond the raster that of the nearest cell, 0 where it has none.
    fn height(&self, x: usize, y: usize) -> f64 {
        let v = f64::from(self.z.at(x.min(self.z.cols - 1), y.min(self.z.rows - 1)));
        let is_outside = x >= self.z.cols || y >= self.z.rows;
        if is_outside && !v.is_finite() { 0.0 } else { v }
    }

    /// Whether cells `from..=to` of row `y`, as far as they are in the raster, forbid the triangle of this plane; the plane's
    /// origin is (`x0`, `y0`).
    #[inline]
    fn forbids(&self, y: usize, from: usize, to: usize, (x0, y0): (usize, usize), p: Plane, seen: &mut Seen) -> bool {
        if y >= self.z.rows || from >= self.z.cols || from > to {
            return false;
        }
        let row = &self.z.row(y)[from..=to.min(self.z.cols - 1)];
        let start = p.z + p.dx * (from as f64 - x0 as f64) + p.dy * (y as f64 - y0 as f64);
        if self.has_holes {
            for v in row {
                if v.is_finite() {
                    seen.finite = true;
                } else {
                    seen.hole = true;
                }
            }
            if seen.finite && seen.hole {
                return true;
            }
            if seen.hole {
                return false;
            }
        }
        if let Some(classes) = self.classes {
            for &class in &classes.row(y)[from..=to.min(self.z.cols - 1)] {
                if *seen.class.get_or_insert(class) != class {
                    return true;
                }
            }
        }
        // In 32 bits most rows are clear at once; what is close is looked at again.
        let sure = self.tolerance as f32 - self.rounding;
        if sure > 0.0 {
            let (start, rise) = (start as f32, p.dx as f32);
            let is_clear = if row.len() <= SHORT {
                row.iter().enumerate().all(|(k, v)| (v - (start + rise * k as f32)).abs() <= sure)
            } else {
                is_within(row, start, rise, sure)
            };
            if is_clear {
                return false;
            }
        }
        is_beyond(row, start, p.dx, self.tolerance)
    }

    /// Whether all that matters is how far single cells lie from planes: no holes, no classes, and the square of side `s` at
    /// (x, y) inside the raster.
    #[inline]
    fn is_plain(&self, x: usize, y: usize, s: usize) -> bool {
        !self.has_holes && self.classes.is_none() && x + s < self.z.cols && y + s < self.z.rows
    }

    /// Whether a cell lies too far from the middle of two others; all inside.
    #[inline]
    fn is_off(&self, at: (usize, usize), a: (usize, usize), b: (usize, usize)) -> bool {
        let z = |(x, y): (usize, usize)| f64::from(self.z.at(x, y));
        (z(at) - (z(a) + z(b)) / 2.0).abs() > self.tolerance
    }

    /// Whether the two triangles of a square of side `s`, split by its diagonal, must be split further.
    fn square(&self, i: usize, k: usize, s: usize) -> bool {
        let (x, y) = (i * s, k * s);
        if x >= self.z.cols || y >= self.z.rows {
            return false;
        }
        if s == 2 && self.is_plain(x, y, 2) {
            let ends = if is_falling(i, k) { ((x, y), (x + 2, y + 2)) } else { ((x, y + 2), (x + 2, y)) };
            return self.is_off((x + 1, y + 1), ends.0, ends.1)
                || self.is_off((x + 1, y), (x, y), (x + 2, y))
                || self.is_off((x + 1, y + 2), (x, y + 2), (x + 2, y + 2))
                || self.is_off((x, y + 1), (x, y), (x, y + 2))
                || self.is_off((x + 2, y + 1), (x + 2, y), (x + 2, y + 2));
        }
        let (nw, ne) = (self.height(x, y), self.height(x + s, y));
        let (sw, se) = (self.height(x, y + s), self.height(x + s, y + s));
        let n = s as f64;
        let (mut one, mut other) = (Seen::default(), Seen::default());
        if is_falling(i, k) {
            let below = Plane { z: nw, dx: (se - sw) / n, dy: (sw - nw) / n };
            let above = Plane { z: nw, dx: (ne - nw) / n, dy: (se - ne) / n };
            (0..=s).any(|d| {
                self.forbids(y + d, x, x + d, (x, y), below, &mut one)
                    || self.forbids(y + d, x + d, x + s, (x, y), above, &mut other)
            })
        } else {
            let above = Plane { z: nw, dx: (ne - nw) / n, dy: (sw - nw) / n };
            let below = Plane { z: se - (se - sw) - (se - ne), dx: (se - sw) / n, dy: (se - ne) / n };
            (0..=s).any(|d| {
                self.forbids(y + d, x, x + s - d, (x, y), above, &mut one)
                    || self.forbids(y + d, x + s - d, x + s, (x, y), below, &mut other)
            })
        }
    }

    /// Whether the triangles on a horizontal edge of length `s`, each with its right angle in the middle of a square, must be
    /// split further.
    fn horizontal(&self, i: usize, k: usize, s: usize) -> bool {
        let (x, y, h) = (i * s, k * s, s / 2);
        if x >= self.z.cols || y.saturating_sub(h) >= self.z.rows {
            return false;
        }
        if s == 2 && self.is_plain(x, y, 2) {
            return self.is_off((x + 1, y), (x, y), (x + 2, y));
        }
        let (a, b) = (self.height(x, y), self.height(x + s, y));
        let dx = (b - a) / s as f64;
        let side = |apex_y: usize, north: bool| {
            let apex = self.height(x + h, apex_y);
            let rise = (apex - (a + b) / 2.0) / h as f64;
            let plane = Plane { z: a, dx, dy: if north { -rise } else { rise } };
            let mut seen = Seen::default();
            (0..=h).any(|d| {
                let row = if north { y - d } else { y + d };
                self.forbids(row, x + d, x + s - d, (x, y), plane, &mut seen)
            })
        };
        (k > 0 && side(y - h, true)) || (k < self.ny << self.top >> s.trailing_zeros() && side(y + h, false))
    }

    /// The same for a vertical edge.
    fn vertical(&self, i: usize, k: usize, s: usize) -> bool {
        let (x, y, h) = (i * s, k * s, s / 2);
        if y >= self.z.rows || x.saturating_sub(h) >= self.z.cols {
            return false;
        }
        if s == 2 && self.is_plain(x, y, 2) {
            return self.is_off((x, y + 1), (x, y), (x, y + 2));
        }
        let (a, b) = (self.height(x, y), self.height(x, y + s));
        let dy = (b - a) / s as f64;
        let side = |apex_x: usize, west: bool| {
            let apex = self.height(apex_x, y + h);
            let rise = (apex - (a + b) / 2.0) / h as f64;
            let plane = Plane { z: a, dx: if west { -rise } else { rise }, dy };
            let mut seen = Seen::default();
            (0..=s).any(|d| {
                let w = d.min(s - d);
                let (from, to) = if west { (x - w, x) } else { (x, x + w) };
                self.forbids(y + d, from, to, (x, y), plane, &mut seen)
            })
        };
        (i > 0 && side(x - h, true)) || (i < self.nx << self.top >> s.trailing_zeros() && side(x + h, false))
    }
}

/// Whether every value is surely within `limit` of the line that starts at `start` and rises by `rise` a cell.
#[multiversion::multiversion(targets("x86_64+avx+avx2"))]
fn is_within(row: &[f32], start: f32, rise: f32, limit: f32) -> bool {
    let mut first = 0;
    for block in row.chunks(128) {
        let mut within = true;
        let begin = start + rise * first as f32;
        for (k, v) in block.iter().enumerate() {
            within &= (v - (begin + rise * k as f32)).abs() <= limit;
        }
        if !within {
            return false;
        }
        first += block.len();
    }
    true
}

/// Whether a value is farther than `tolerance` from the line that starts at `start` and rises by `rise` a cell.
#[inline]
fn is_beyond(row: &[f32], start: f64, rise: f64, tolerance: f64) -> bool {
    let mut at = 0;
    // Blocks without a way out inside, so that they run several values at a time.
    for block in row.chunks(64) {
        let first = start + rise * at as f64;
        let worst = block
            .iter()
            .enumerate()
            .fold(false, |worst, (k, v)| worst | ((f64::from(*v) - (first + rise * k as f64)).abs() > tolerance));
        if worst {
            return true;
        }
        at += block.len();
    }
    false
}

/// Whether the diagonal of square (i, k) of its size falls from north-west to south-east: it runs from the middle of the
/// square of twice the size to that square's corner.
fn is_falling(i: usize, k: usize) -> bool {
    (i + k).is_multiple_of(2)
}

/// Which triangles are split, by the middle of their longest side. Lists by the log 2 of the square's side, from 1.
struct Split {
    /// Middles of squares: split along the other diagonal.
    squares: Vec<Flags>,
    /// Middles of horizontal and vertical sides of squares.
    horizontal: Vec<Flags>,
    vertical: Vec<Flags>,
}

/// Flags in rows.
struct Flags {
    cols: usize,
    values: Vec<bool>,
}

impl Flags {
    fn make(cols: usize, rows: usize, is_set: impl Fn(usize, usize) -> bool + Sync) -> Flags {
        let mut values = vec![false; cols * rows];
        if cols > 0 {
            values.par_chunks_mut(cols).enumerate().for_each(|(k, row)| {
                row.iter_mut().enumerate().for_each(|(i, v)| *v = is_set(i, k));
            });
        }
        Flags { cols, values }
    }

    fn empty() -> Flags {
        Flags { cols: 0, values: Vec::new() }
    }

    /// Whether it is set; places beyond the rows are not.
    #[inline]
    fn at(&self, i: usize, k: usize) -> bool {
        i < self.cols && self.values.get(k * self.cols + i).copied().unwrap_or(false)
    }
}

impl Split {
    /// From the smallest triangles up: what has a split part is split.
    fn of(field: &Field) -> Split {
        let mut split =
            Split { squares: vec![Flags::empty()], horizontal: vec![Flags::empty()], vertical: vec![Flags::empty()] };
        for j in 1..=field.top {
            let s = 1usize << j;
            let (cols, rows) = (field.nx << field.top >> j, field.ny << field.top >> j);
            let smaller = &split.squares[j as usize - 1];
            let part = |i: usize, k: usize| smaller.at(i, k);
            let horizontal = Flags::make(cols, rows + 1, |i, k| {
                part(2 * i, 2 * k)
                    || part(2 * i + 1, 2 * k)
                    || (k > 0 && (part(2 * i, 2 * k - 1) || part(2 * i + 1, 2 * k - 1)))
                    || field.horizontal(i, k, s)
            });
            let vertical = Flags::make(cols + 1, rows, |i, k| {
                part(2 * i, 2 * k)
                    || part(2 * i, 2 * k + 1)
                    || (i > 0 && (part(2 * i - 1, 2 * k) || part(2 * i - 1, 2 * k + 1)))
                    || field.vertical(i, k, s)
            });
            let squares = Flags::make(cols, rows, |i, k| {
                horizontal.at(i, k)
                    || horizontal.at(i, k + 1)
                    || vertical.at(i, k)
                    || vertical.at(i + 1, k)
                    || field.square(i, k, s)
            });
            split.squares.push(squares);
            split.horizontal.push(horizontal);
            split.vertical.push(vertical);
        }
        split
    }

    /// Down to single squares wherever one of `unit` is set, and no further than that needs.
    fn around(unit: &Flags, top: u32, nx: usize, ny: usize) -> Split {
        let mut split =
            Split { squares: vec![Flags::empty()], horizontal: vec![Flags::empty()], vertical: vec![Flags::empty()] };
        let mut any: Vec<Flags> = Vec::new();
        for j in 1..=top {
            let (cols, rows) = (nx << top >> j, ny << top >> j);
            let finer = any.last().unwrap_or(unit);
            let part = |i: usize, k: usize| finer.at(i, k) || split.squares[j as usize - 1].at(i, k);
            let horizontal = Flags::make(cols, rows + 1, |i, k| {
                part(2 * i, 2 * k)
                    || part(2 * i + 1, 2 * k)
                    || (k > 0 && (part(2 * i, 2 * k - 1) || part(2 * i + 1, 2 * k - 1)))
            });
            let vertical = Flags::make(cols + 1, rows, |i, k| {
                part(2 * i, 2 * k)
                    || part(2 * i, 2 * k + 1)
                    || (i > 0 && (part(2 * i - 1, 2 * k) || part(2 * i - 1, 2 * k + 1)))
            });
            let squares = Flags::make(cols, rows, |i, k| {
                horizontal.at(i, k) || horizontal.at(i, k + 1) || vertical.at(i, k) || vertical.at(i + 1, k)
            });
            let coarser = Flags::make(cols, rows, |i, k| {
                finer.at(2 * i, 2 * k)
                    || finer.at(2 * i + 1, 2 * k)
                    || finer.at(2 * i, 2 * k + 1)
                    || finer.at(2 * i + 1, 2 * k + 1)
            });
            any.push(coarser);
            split.squares.push(squares);
            split.horizontal.push(horizontal);
            split.vertical.push(vertical);
        }
        split
    }

    /// Whether the triangle with this longest side is split.
    #[inline]
    fn is_split(&self, a: At, b: At) -> bool {
        let (dx, dy) = (a[0].abs_diff(b[0]), a[1].abs_diff(b[1]));
        let s = dx.max(dy);
        let j = s.trailing_zeros() as usize;
        let (i, k) = ((a[0].min(b[0]) / s) as usize, (a[1].min(b[1]) / s) as usize);
        if j == 0 {
            false // one cell: only diagonals are that short
        } else if dx == 0 {
            self.vertical[j].at(i, k)
        } else if dy == 0 {
            self.horizontal[j].at(i, k)
        } else {
            self.squares[j].at(i, k)
        }
    }
}

/// The triangles of one largest square.
#[derive(Default)]
struct Found {
    triangles: Vec<[At; 3]>,
    classes: Vec<u16>,
    /// Heights where triangles are cut at the raster's edge.
    cuts: Vec<(At, f32)>,
}

/// Calls `leaf` with every triangle of the largest square (i, k) that is not split, its right angle last.
fn descend(split: &Split, top: u32, (i, k): (usize, usize), mut leaf: impl FnMut([At; 3])) {
    let s = 1u32 << top;
    let (x, y) = (i as u32 * s, k as u32 * s);
    let (nw, ne, sw, se) = ([x, y], [x + s, y], [x, y + s], [x + s, y + s]);
    let halves = if is_falling(i, k) { [[nw, se, ne], [se, nw, sw]] } else { [[sw, ne, nw], [ne, sw, se]] };
    for half in halves {
        let mut open = vec![half];
        while let Some([a, b, c]) = open.pop() {
            if split.is_split(a, b) {
                let m = [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2];
                open.push([b, c, m]);
                open.push([c, a, m]);
            } else {
                leaf([a, b, c]);
            }
        }
    }
}

/// Right triangles, as large as may be, over the squares between four cells that are not `mixed`; columns and rows of their
/// corners. Mixed squares are left out; every edge of theirs is one of a triangle or of another mixed one.
pub(super) fn plain_triangles(
    cols: usize,
    rows: usize,
    is_mixed: impl Fn(usize, usize) -> bool + Sync,
) -> Vec<[At; 3]> {
    let top = (cols.max(rows) - 1).next_power_of_two().min(LARGEST).trailing_zeros();
    let (nx, ny) = ((cols - 1).div_ceil(1 << top), (rows - 1).div_ceil(1 << top));
    // Beyond the raster nothing is drawn.
    let unit = Flags::make(nx << top, ny << top, |i, k| i < cols - 1 && k < rows - 1 && is_mixed(i, k));
    let split = Split::around(&unit, top, nx, ny);
    let last = [cols as u32 - 1, rows as u32 - 1];
    let add = |t: [At; 3], out: &mut Vec<[At; 3]>| {
        let west_north = [0, 1].map(|c| t[0][c].min(t[1][c]).min(t[2][c]) as usize);
        let is_unit = t[0][0].abs_diff(t[1][0]) == 1 && t[0][1].abs_diff(t[1][1]) == 1;
        if is_unit && unit.at(west_north[0], west_north[1]) {
            return;
        }
        if t.iter().all(|v| v[0] <= last[0] && v[1] <= last[1]) {
            out.push(t);
            return;
        }
        let corners = t.map(|v| [f64::from(v[0]), f64::from(v[1]), 0.0]).to_vec();
        let part = clipped(clipped(corners, 0, f64::from(last[0])), 1, f64::from(last[1]));
        let places: Vec<At> = part.iter().map(|p| [p[0].round() as u32, p[1].round() as u32]).collect();
        for k in 1..places.len().saturating_sub(1) {
            let t = [places[0], places[k], places[k + 1]];
            let [a, b, c] = t.map(|v| (f64::from(v[0]), f64::from(v[1])));
            if super::turn(a, b, c) > 0.0 {
                out.push(t);
            }
        }
    };
    let found: Vec<Vec<[At; 3]>> = (0..nx * ny)
        .into_par_iter()
        .map(|n| {
            let mut out = Vec::new();
            descend(&split, top, (n % nx, n / nx), |t| add(t, &mut out));
            out
        })
        .collect();
    found.concat()
}

fn collect(field: &Field, split: &Split) -> Surface {
    let (cols, rows) = (field.z.cols, field.z.rows);
    let found: Vec<Found> = (0..field.nx * field.ny)
        .into_par_iter()
        .map(|n| {
            let mut found = Found::default();
            descend(split, field.top, (n % field.nx, n / field.nx), |t| found.add(field, t));
            found
        })
        .collect();

    // Number the vertices by row and column.
    const NONE: u32 = u32::MAX;
    let place = |[x, y]: At| y as usize * cols + x as usize;
    let mut number = vec![NONE; cols * rows];
    for f in &found {
        for v in f.triangles.iter().flatten() {
            number[place(*v)] = 0;
        }
    }
    let mut vertices = Vec::new();
    for (at, n) in number.iter_mut().enumerate().filter(|(_, n)| **n != NONE) {
        *n = vertices.len() as u32;
        vertices.push(Node { col: (at % cols) as f32, row: (at / cols) as f32, z: field.z.values[at] });
    }
    // A cut edge has the same height from both its sides, to rounding: the first found stands.
    for (at, height) in found.iter().rev().flat_map(|f| f.cuts.iter().rev()) {
        if number[place(*at)] != NONE {
            vertices[number[place(*at)] as usize].z = *height;
        }
    }
    let triangles: Vec<[u32; 3]> =
        found.par_iter().flat_map_iter(|f| f.triangles.iter().map(|t| t.map(|v| number[place(v)]))).collect();
    let classes = field.classes.map(|_| found.iter().flat_map(|f| f.classes.iter().copied()).collect());
    let groups: Vec<Group> = grouped(triangles, classes);
    Surface { vertices, groups }
}

impl Found {
    /// A triangle that is not split: right angle at its last corner.
    fn add(&mut self, field: &Field, t: [At; 3]) {
        let (cols, rows) = (field.z.cols as u32, field.z.rows as u32);
        if t.iter().any(|v| v[0] >= cols || v[1] >= rows) {
            self.add_cut(field, t);
            return;
        }
        let is_hole = |v: At| !field.z.at(v[0] as usize, v[1] as usize).is_finite();
        match t.map(is_hole) {
            [false, false, false] => self.push(field, t),
            // One cell, a hole at an end of its diagonal: the triangle across the other diagonal, once.
            [true, false, false] | [false, true, false] => {
                let [a, b, c] = t;
                let d = [a[0] + b[0] - c[0], a[1] + b[1] - c[1]];
                let kept = if is_hole(a) { b } else { a };
                if c[1] < d[1] && !is_hole(d) {
                    let at = |v: At| (f64::from(v[0]), f64::from(v[1]));
                    let t = if super::turn(at(d), at(c), at(kept)) > 0.0 { [d, c, kept] } else { [c, d, kept] };
                    self.push(field, t);
                }
            }
            _ => {}
        }
    }

    fn push(&mut self, field: &Field, t: [At; 3]) {
        self.triangles.push(t);
        if let Some(classes) = field.classes {
            self.classes.push(majority(t.map(|v| classes.at(v[0] as usize, v[1] as usize))));
        }
    }

    /// The part of a triangle inside the raster.
    fn add_cut(&mut self, field: &Field, t: [At; 3]) {
        let corners = t.map(|v| [f64::from(v[0]), f64::from(v[1]), field.height(v[0] as usize, v[1] as usize)]);
        let last = [(field.z.cols - 1) as f64, (field.z.rows - 1) as f64];
        let part = clipped(clipped(corners.to_vec(), 0, last[0]), 1, last[1]);
        // All sides run along rows, columns or diagonals through centres, so they meet the edge in centres.
        let centres: Vec<At> = part.iter().map(|p| [p[0].round() as u32, p[1].round() as u32]).collect();
        let is_hole = |v: &At| !field.z.at(v[0] as usize, v[1] as usize).is_finite();
        // In a triangle that is not split all cells are holes, or none.
        if centres.len() < 3 || centres.iter().any(is_hole) {
            return;
        }
        let mut any = false;
        let at = |v: At| (f64::from(v[0]), f64::from(v[1]));
        for k in 1..centres.len() - 1 {
            let t = [centres[0], centres[k], centres[k + 1]];
            if super::turn(at(t[0]), at(t[1]), at(t[2])) > 0.0 {
                self.push(field, t);
                any = true;
            }
        }
        if any {
            let outside = |v: &At| t.contains(v);
            self.cuts.extend(centres.iter().zip(&part).filter(|(v, _)| !outside(v)).map(|(v, p)| (*v, p[2] as f32)));
        }
    }
}

/// The part of a convex polygon where `axis` is at most `last`, heights interpolated along its sides (Sutherland and Hodgman
/// 1974).
fn clipped(polygon: Vec<[f64; 3]>, axis: usize, last: f64) -> Vec<[f64; 3]> {
    let mut out = Vec::with_capacity(polygon.len() + 1);
    for (k, a) in polygon.iter().enumerate() {
        let b = &polygon[(k + 1) % polygon.len()];
        if a[axis] <= last {
            out.push(*a);
        }
        if (a[axis] < last && b[axis] > last) || (a[axis] > last && b[axis] < last) {
            let t = (last - a[axis]) / (b[axis] - a[axis]);
            let mut p = [0, 1, 2].map(|c| a[c] + (b[c] - a[c]) * t);
            p[axis] = last;
            out.push(p);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::laws::{area, assert_sound};
    use super::*;
    use crate::terrain::noise::NoiseKey;
    use proptest::prelude::*;

    fn noisy(cols: usize, rows: usize, seed: u64, relief: f32) -> Raster<f32> {
        let key = NoiseKey::new(seed, 1.0, 7);
        let hill = |c: usize, r: usize| {
            (c as f32 * 0.11).sin() * (r as f32 * 0.07).cos() * relief + 0.05 * relief * key.normal(c as i64, r as i64)
        };
        Raster::from_values(cols, rows, (0..cols * rows).map(|k| hill(k % cols, k / cols)).collect())
    }

    /// The largest distance of a cell's height from the mesh, and whether every cell that has one lies under it: each triangle
    /// is scanned on its own, in another way than the one that made it.
    fn worst_error(s: &Surface, z: &Raster<f32>) -> (f64, usize) {
        let mut covered = vec![false; z.values.len()];
        let mut worst = 0f64;
        for t in s.triangles() {
            let [a, b, c] = t.map(|v| s.vertices[v as usize]);
            let at = |n: Node| (f64::from(n.col), f64::from(n.row));
            let whole = super::super::turn(at(a), at(b), at(c));
            let low = |f: fn(Node) -> f32| f(a).min(f(b)).min(f(c)).ceil() as usize;
            let high = |f: fn(Node) -> f32| f(a).max(f(b)).max(f(c)).floor() as usize;
            for row in low(|n| n.row)..=high(|n| n.row) {
                for col in low(|n| n.col)..=high(|n| n.col) {
                    let p = (col as f64, row as f64);
                    let u = super::super::turn(at(b), at(c), p) / whole;
                    let v = super::super::turn(at(c), at(a), p) / whole;
                    let w = 1.0 - u - v;
                    if u < -1e-9 || v < -1e-9 || w < -1e-9 {
                        continue;
                    }
                    covered[row * z.cols + col] = true;
                    let plane = u * f64::from(a.z) + v * f64::from(b.z) + w * f64::from(c.z);
                    let e = (plane - f64::from(z.at(col, row))).abs();
                    assert!(e.is_finite(), "a hole at {col}, {row} is covered");
                    worst = worst.max(e);
                }
            }
        }
        (worst, covered.iter().filter(|c| **c).count())
    }

    /// A summit of 8 in the middle of 5 x 5 cells of 0: admitted 8, nothing is split; admitted 7, only the summit's own
    /// neighbourhood. The square of 5 x 5 is one of side 4, its diagonal runs through the summit, so it is split to four
    /// triangles with the summit at their right angles; each has the middle of its outer side at 0 as the plane says, but the cell
    /// halfway to it at 0 where the plane says 4: admitted 3, these are split further.
    #[test]
    fn five_by_five_by_hand() {
        let mut z = Raster::filled(5, 5, 0f32);
        z.set(2, 2, 8.0);
        let count = |max_error: f64| tin(&z, &TinOptions { max_error, classes: None }).unwrap().len();
        assert_eq!(count(8.0), 2);
        assert_eq!(count(7.0), 4);
        assert_eq!(count(4.0), 4);
        let fine = tin(&z, &TinOptions { max_error: 3.0, classes: None }).unwrap();
        assert_sound(&fine);
        assert!(worst_error(&fine, &z).0 <= 3.0 + SLACK);
        // All cells around the summit are vertices now.
        for at in [(1.0, 2.0), (3.0, 2.0), (2.0, 1.0), (2.0, 3.0), (1.0, 1.0), (3.0, 3.0)] {
            assert!(fine.vertices.iter().any(|n| (n.col, n.row) == at && n.z == 0.0), "{at:?}");
        }
    }

    #[test]
    fn a_raster_that_is_no_whole_square_is_cut_at_its_edge() {
        // A plane over 6 x 4 cells: cut triangles lie in it exactly, and cover it exactly.
        let z = Raster::from_values(6, 4, (0..24).map(|k| (k % 6 + 10 * (k / 6)) as f32).collect());
        // Beyond the raster the heights are not the plane's, so what reaches there bends: admitted 1 keeps close to it.
        let s = tin(&z, &TinOptions { max_error: 1.0, classes: None }).unwrap();
        assert_sound(&s);
        assert_eq!(area(&s), 15.0);
        let (worst, covered) = worst_error(&s, &z);
        assert!(worst <= 1.0 + 1e-5, "{worst}");
        assert_eq!(covered, 24);
    }

    #[test]
    fn a_hole_takes_only_its_own_corner() {
        // One hole inside 4 x 4 centres: each of the four squares around it loses half: 9 - 4 / 2.
        let mut z = Raster::filled(4, 4, 1f32);
        z.set(1, 1, f32::NAN);
        let s = tin(&z, &TinOptions::default()).unwrap();
        assert_sound(&s);
        assert_eq!(area(&s), 7.0);
        z.set(1, 1, 1.0);
        z.set(2, 1, f32::INFINITY);
        let s = tin(&z, &TinOptions::default()).unwrap();
        assert_sound(&s);
        assert_eq!(area(&s), 7.0);
        assert!(tin(&Raster::filled(9, 7, f32::NAN), &TinOptions::default()).unwrap().is_empty());
    }

    #[test]
    fn odd_requests_are_refused() {
        let z = Raster::filled(3, 3, 0f32);
        let said = |max_error| tin(&z, &TinOptions { max_error, classes: None }).unwrap_err().to_string();
        assert!(said(-1.0).contains("--max-error") && said(f64::NAN).contains("NaN"));
        assert!(tin(&Raster::filled(1, 9, 0f32), &TinOptions::default()).unwrap_err().to_string().contains("1 x 9"));
        let classes = Raster::filled(2, 3, 0u16);
        assert!(tin(&z, &TinOptions { max_error: 0.0, classes: Some(&classes) }).is_err());
        assert_eq!(tin(&Raster::filled(2, 2, 5f32), &TinOptions::default()).unwrap().len(), 2);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn the_error_is_bounded_and_all_is_covered(
            cols in 2usize..70, rows in 2usize..70, seed: u64, max_error in 0.0f64..40.0,
        ) {
            let z = noisy(cols, rows, seed, 100.0);
            let s = tin(&z, &TinOptions { max_error, classes: None }).unwrap();
            assert_sound(&s);
            prop_assert_eq!(area(&s), ((cols - 1) * (rows - 1)) as f64);
            let (worst, covered) = worst_error(&s, &z);
            prop_assert!(worst <= max_error + 1e-4, "{} of {}", worst, max_error);
            prop_assert_eq!(covered, cols * rows);
        }

        #[test]
        fn holes_stay_holes_and_bounds_hold(
            cols in 2usize..50, rows in 2usize..50, seed: u64, max_error in 0.0f64..40.0, holes in prop::collection::vec((0usize..50, 0usize..50, 1usize..9), 0..6),
        ) {
            let mut z = noisy(cols, rows, seed, 100.0);
            for (c, r, n) in holes {
                for row in r..(r + n).min(rows) {
                    for col in c..(c + n).min(cols) {
                        z.set(col, row, f32::NAN);
                    }
                }
            }
            let s = tin(&z, &TinOptions { max_error, classes: None }).unwrap();
            assert_sound(&s);
            let (worst, _) = worst_error(&s, &z);
            prop_assert!(worst <= max_error + 1e-4);
            // The same ground as the mesh of all cells.
            let full = tin(&z, &TinOptions::default()).unwrap();
            prop_assert!((area(&s) - area(&full)).abs() < 1e-9);
        }

        #[test]
        fn classes_keep_to_their_cells(cols in 2usize..40, rows in 2usize..40, seed: u64, at in 0usize..40) {
            let z = noisy(cols, rows, seed, 100.0);
            let classes = Raster::from_values(cols, rows, (0..cols * rows).map(|k| 1 + u16::from(k % cols > at)).collect());
            let s = tin(&z, &TinOptions { max_error: 30.0, classes: Some(&classes) }).unwrap();
            assert_sound(&s);
            prop_assert_eq!(area(&s), ((cols - 1) * (rows - 1)) as f64);
            for g in &s.groups {
                for t in &g.triangles {
                    let own = t.iter().filter(|v| {
                        let n = s.vertices[**v as usize];
                        classes.at(n.col as usize, n.row as usize) == g.class
                    }).count();
                    prop_assert!(own >= 2, "{} of class {}", own, g.class);
                }
            }
        }
    }
}
