//! Polygons to cells by an exact scanline fill. No GDAL: the result of a crop is the crop of the result, bit for bit.
//!
//! Everything is computed in lattice coordinates: cell centres are whole numbers counted from the CRS origin, columns
//! eastward and rows southward. An edge's crossing with a row of centres depends on the edge and the row alone, never on
//! the extent, and is computed the same way for both polygons that share the edge. A cell belongs to the polygon whose
//! left crossing is at or before its centre and whose right crossing is after it: neighbours neither overlap nor leave a
//! gap.
//!
//! The law holds for every grid whose origin is a whole number of cells from the CRS origin ([`Grid::snapped`]). On
//! others the offset is taken to 2^-24 of a cell, so that the rounding in [`Grid::crop`] does not show.
//!
//! Method: scan conversion with an even-odd rule, as in Foley, van Dam et al., "Computer Graphics: Principles and
//! Practice", 2nd ed., section 3.6.

use crate::error::{Error, Result};
use crate::grid::Grid;
use crate::raster::Raster;
use geo::{LineString, MultiPolygon};
use rayon::prelude::*;

/// Cells of `grid` with the value of the last polygon whose area holds their centre; 0 where none does. Holes are left
/// out; the parts of one multipolygon are united. Polygons are in the CRS of the grid.
///
/// Takes 2 bytes per cell, and some nanoseconds per row that an edge crosses.
///
/// # Errors
/// [`Error::Argument`] when a vertex is not finite.
///
/// ```
/// # use histmap::{gdal_io::rasterize, grid::*};
/// # use geo::polygon;
/// # let crs = Crs { name: "plane".into(), wkt: String::new(), is_geographic: false };
/// # let grid = Grid::snapped(crs, Extent { min_x: 0.0, min_y: 0.0, max_x: 3.0, max_y: 1.0 }, 1.0)?;
/// let west = polygon![(x: 0.0, y: 0.0), (x: 1.5, y: 0.0), (x: 1.5, y: 1.0), (x: 0.0, y: 1.0)];
/// assert_eq!(rasterize(&[(west.into(), 7)], &grid)?.values, [7, 0, 0]);
/// # Ok::<(), histmap::Error>(())
/// ```
pub fn rasterize(polygons: &[(MultiPolygon<f64>, u16)], grid: &Grid) -> Result<Raster<u16>> {
    let lattice = Lattice::of(grid);
    let mut edges = Vec::new();
    for (part, (area, value)) in polygons.iter().flat_map(|(m, v)| m.iter().map(move |p| (p, *v))).enumerate() {
        for ring in std::iter::once(area.exterior()).chain(area.interiors()) {
            lattice.add_ring(ring, part, value, &mut edges)?;
        }
    }
    let mut raster = Raster::filled(grid.cols, grid.rows, 0u16);
    fill(&lattice, &edges, &mut raster, false);
    Ok(raster)
}

/// Cells of `grid`: 1 where `area` holds their centre, else 0. With `all_touched`, also those that its boundary meets.
///
/// # Errors
/// [`Error::Argument`] when a vertex is not finite.
pub fn rasterize_mask(area: &MultiPolygon<f64>, grid: &Grid, all_touched: bool) -> Result<Raster<u8>> {
    let lattice = Lattice::of(grid);
    let mut edges = Vec::new();
    for (part, area) in area.iter().enumerate() {
        for ring in std::iter::once(area.exterior()).chain(area.interiors()) {
            lattice.add_ring(ring, part, 1u8, &mut edges)?;
        }
    }
    let mut raster = Raster::filled(grid.cols, grid.rows, 0u8);
    fill(&lattice, &edges, &mut raster, all_touched);
    Ok(raster)
}

/// Draws `areas` in order onto two rasters at once: `paint` gets the number of the area, and what stands in a run of cells
/// of one row whose centres it holds. Areas are in the CRS of the grid; the parts of one may come in several runs, and
/// where they overlap a cell comes twice.
///
/// Takes the memory of the two rasters, and some nanoseconds per row that an edge crosses, beside what `paint` does.
///
/// # Errors
/// [`Error::Argument`] when a vertex is not finite.
pub(crate) fn paint_areas<T: Copy + Default + Send + Sync>(
    areas: &[&MultiPolygon<f64>],
    grid: &Grid,
    paint: impl Fn(usize, &mut [T], &mut [T]) + Sync,
) -> Result<(Raster<T>, Raster<T>)> {
    let lattice = Lattice::of(grid);
    let mut edges = Vec::new();
    let polygons = areas.iter().enumerate().flat_map(|(n, m)| m.iter().map(move |p| (n, p)));
    for (part, (number, polygon)) in polygons.enumerate() {
        for ring in std::iter::once(polygon.exterior()).chain(polygon.interiors()) {
            lattice.add_ring(ring, part, number, &mut edges)?;
        }
    }
    let mut first = Raster::filled(grid.cols, grid.rows, T::default());
    let mut second = Raster::filled(grid.cols, grid.rows, T::default());
    let (cols, rows) = (grid.cols, grid.rows);
    if cols == 0 || rows == 0 {
        return Ok((first, second));
    }
    let bands = edges_by_band(&lattice, &edges, rows, 0.0);
    let planes = first.values.par_chunks_mut(BAND_ROWS * cols).zip(second.values.par_chunks_mut(BAND_ROWS * cols));
    planes.zip(&bands).enumerate().for_each(|(band, ((first, second), numbers))| {
        let mut runs = Runs::default();
        for (k, (first, second)) in first.chunks_mut(cols).zip(second.chunks_mut(cols)).enumerate() {
            let row = (lattice.row + (band * BAND_ROWS + k) as i64) as f64;
            runs.of_row(&edges, numbers, row, |number, west, east| {
                if let Some(cells) = cells_between(west, east, lattice.col, cols) {
                    paint(number, &mut first[cells.clone()], &mut second[cells]);
                }
            });
        }
    });
    Ok((first, second))
}

/// Runs of cells of one row after another, with room that is used again.
#[derive(Default)]
struct Runs {
    crossings: Vec<f64>,
}

impl Runs {
    /// Calls `each` with value, western and eastern crossing for every run of the row, part after part; `numbers` are edges
    /// in order of part.
    fn of_row<T: Copy>(&mut self, edges: &[Edge<T>], numbers: &[u32], row: f64, mut each: impl FnMut(T, f64, f64)) {
        let mut k = 0;
        while k < numbers.len() {
            let Edge { part, value, .. } = edges[numbers[k] as usize];
            self.crossings.clear();
            while k < numbers.len() {
                let edge = &edges[numbers[k] as usize];
                if edge.part != part {
                    break;
                }
                if edge.v0 <= row && row < edge.v1 {
                    self.crossings.push(edge.u_at(row));
                }
                k += 1;
            }
            self.crossings.sort_unstable_by(f64::total_cmp);
            for pair in self.crossings.chunks_exact(2) {
                each(value, pair[0], pair[1]);
            }
        }
    }
}

/// The cells of a row, of `cols` from lattice column `first` on, whose centres lie from one crossing up to the other.
fn cells_between(west: f64, east: f64, first: i64, cols: usize) -> Option<std::ops::Range<usize>> {
    let clamp = |v: f64| (v.ceil() - first as f64).clamp(0.0, cols as f64) as usize;
    let cells = clamp(west)..clamp(east);
    (!cells.is_empty()).then_some(cells)
}

/// Numbers of the edges that each band of rows meets, in their order; `reach` is how far an edge is felt, in rows.
fn edges_by_band<T>(lattice: &Lattice, edges: &[Edge<T>], rows: usize, reach: f64) -> Vec<Vec<u32>> {
    let mut bands: Vec<Vec<u32>> = vec![Vec::new(); rows.div_ceil(BAND_ROWS)];
    for (number, edge) in edges.iter().enumerate() {
        let first = (edge.v0 - reach).ceil().max(lattice.row as f64) - lattice.row as f64;
        let last = (edge.v1 + reach).floor() - lattice.row as f64;
        if last < 0.0 || first > (rows - 1) as f64 || last < first {
            continue;
        }
        let (first, last) = (first as usize / BAND_ROWS, (last as usize).min(rows - 1) / BAND_ROWS);
        for band in &mut bands[first..=last] {
            band.push(number as u32);
        }
    }
    bands
}

/// From the plane of the CRS to cells counted from its origin.
struct Lattice {
    cell_width: f64,
    cell_height: f64,
    /// Where centres lie between whole numbers of cells.
    offset_u: f64,
    offset_v: f64,
    /// Lattice numbers of cell (0, 0).
    col: i64,
    row: i64,
}

impl Lattice {
    fn of(grid: &Grid) -> Lattice {
        let (t, first) = (&grid.transform, grid.lattice_origin());
        let rounded = |v: f64| (v * f64::from(1 << 24)).round() / f64::from(1 << 24);
        Lattice {
            cell_width: t.cell_width,
            cell_height: t.cell_height,
            offset_u: rounded(t.origin_x / t.cell_width - first.col as f64) + 0.5,
            offset_v: rounded(-t.origin_y / t.cell_height - first.row as f64) + 0.5,
            col: first.col,
            row: first.row,
        }
    }

    fn add_ring<T: Copy>(&self, ring: &LineString<f64>, part: usize, value: T, edges: &mut Vec<Edge<T>>) -> Result<()> {
        let place =
            |c: &geo::Coord<f64>| (c.x / self.cell_width - self.offset_u, -c.y / self.cell_height - self.offset_v);
        for pair in ring.0.windows(2) {
            let (a, b) = (place(&pair[0]), place(&pair[1]));
            if ![a.0, a.1, b.0, b.1].iter().all(|v| v.is_finite()) {
                return Err(Error::argument(
                    "polygon",
                    format!("a vertex at {}, {}", pair[0].x, pair[0].y),
                    "all vertices must be finite",
                ));
            }
            // Downward, and eastward along a row: the same edge of two neighbours is the same four numbers.
            let (upper, lower) = if (a.1, a.0) <= (b.1, b.0) { (a, b) } else { (b, a) };
            edges.push(Edge { u0: upper.0, v0: upper.1, u1: lower.0, v1: lower.1, part, value });
        }
        Ok(())
    }
}

/// A polygon's edge in lattice coordinates, v0 <= v1.
#[derive(Clone, Copy)]
struct Edge<T> {
    u0: f64,
    v0: f64,
    u1: f64,
    v1: f64,
    /// Which polygon it bounds: crossings are paired within one.
    part: usize,
    value: T,
}

impl<T> Edge<T> {
    /// Whether it enters the cells of a row.
    fn touches(&self, row: f64) -> bool {
        self.v0 < row + 0.5 && row - 0.5 <= self.v1
    }

    /// Where it meets the line at `v`, which lies between its ends.
    fn u_at(&self, v: f64) -> f64 {
        if self.v1 == self.v0 { self.u0 } else { self.u0 + (v - self.v0) * ((self.u1 - self.u0) / (self.v1 - self.v0)) }
    }
}

/// Rows that one task fills: few enough to share the work, enough to pick the edges once.
const BAND_ROWS: usize = 32;

fn fill<T: Copy + Send + Sync>(lattice: &Lattice, edges: &[Edge<T>], raster: &mut Raster<T>, all_touched: bool) {
    let (cols, rows) = (raster.cols, raster.rows);
    if cols == 0 || rows == 0 {
        return;
    }
    // Edges by band, in their order, so that a task looks at its own only.
    let bands = edges_by_band(lattice, edges, rows, if all_touched { 0.5 } else { 0.0 });
    raster.values.par_chunks_mut(BAND_ROWS * cols).zip(&bands).enumerate().for_each(|(band, (values, numbers))| {
        let mut runs = Runs::default();
        for (k, line) in values.chunks_mut(cols).enumerate() {
            let row = (lattice.row + (band * BAND_ROWS + k) as i64) as f64;
            runs.of_row(edges, numbers, row, |value, west, east| {
                set_span(line, west.ceil(), east.ceil(), lattice.col, value);
            });
            // Of one value only: who comes last does not matter.
            let touching = numbers.iter().map(|&n| &edges[n as usize]).filter(|e| all_touched && e.touches(row));
            for edge in touching {
                let (a, b) = (
                    edge.u_at(edge.v0.max(row - 0.5)),
                    if edge.v1 == edge.v0 { edge.u1 } else { edge.u_at(edge.v1.min(row + 0.5)) },
                );
                set_span(line, (a.min(b) + 0.5).floor(), (a.max(b) + 0.5).floor() + 1.0, lattice.col, edge.value);
            }
        }
    });
}

/// Sets the lattice columns from `first` up to `end`, which is left out, as far as they are in the line.
fn set_span<T: Copy>(line: &mut [T], first: f64, end: f64, line_first: i64, value: T) {
    let clamp = |v: f64| (v - line_first as f64).clamp(0.0, line.len() as f64) as usize;
    let (first, end) = (clamp(first), clamp(end));
    if first < end {
        line[first..end].fill(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::{Crs, Extent, GeoTransform, Window};
    use geo::{Polygon, polygon};
    use proptest::prelude::*;

    fn plane(cols: usize, rows: usize, cell: f64, origin: (f64, f64)) -> Grid {
        Grid {
            crs: Crs { name: "plane".into(), wkt: String::new(), is_geographic: false },
            transform: GeoTransform { origin_x: origin.0, origin_y: origin.1, cell_width: cell, cell_height: cell },
            cols,
            rows,
        }
    }

    #[test]
    fn a_ring_leaves_its_hole() {
        let ring = polygon!(
            exterior: [(x: 0.0, y: 0.0), (x: 5.0, y: 0.0), (x: 5.0, y: 5.0), (x: 0.0, y: 5.0)],
            interiors: [[(x: 1.0, y: 1.0), (x: 4.0, y: 1.0), (x: 4.0, y: 4.0), (x: 1.0, y: 4.0)]],
        );
        let r = rasterize(&[(ring.into(), 3)], &plane(5, 5, 1.0, (0.0, 5.0))).unwrap();
        #[rustfmt::skip]
        assert_eq!(r.values, [
            3, 3, 3, 3, 3,
            3, 0, 0, 0, 3,
            3, 0, 0, 0, 3,
            3, 0, 0, 0, 3,
            3, 3, 3, 3, 3,
        ]);
    }

    #[test]
    fn a_centre_on_a_shared_edge_belongs_to_one_side() {
        // The edge x = 1.5 runs through the centres of column 1: they are the eastern neighbour's; y = 0.5 through those
        // of row 1: the southern neighbour's.
        let g = plane(3, 2, 1.0, (0.0, 2.0));
        let cut = |x0: f64, x1: f64, y0: f64, y1: f64| -> MultiPolygon<f64> {
            polygon![(x: x0, y: y0), (x: x1, y: y0), (x: x1, y: y1), (x: x0, y: y1)].into()
        };
        let r = rasterize(&[(cut(0.0, 1.5, 0.0, 2.0), 1), (cut(1.5, 3.0, 0.0, 2.0), 2)], &g).unwrap();
        assert_eq!(r.values, [1, 2, 2, 1, 2, 2]);
        let r = rasterize(&[(cut(0.0, 3.0, 0.5, 2.0), 1), (cut(0.0, 3.0, 0.0, 0.5), 2)], &g).unwrap();
        assert_eq!(r.values, [1, 1, 1, 2, 2, 2]);
    }

    #[test]
    fn the_later_polygon_wins() {
        let all: MultiPolygon<f64> =
            polygon![(x: 0.0, y: 0.0), (x: 2.0, y: 0.0), (x: 2.0, y: 1.0), (x: 0.0, y: 1.0)].into();
        let east: MultiPolygon<f64> =
            polygon![(x: 1.0, y: 0.0), (x: 2.0, y: 0.0), (x: 2.0, y: 1.0), (x: 1.0, y: 1.0)].into();
        let g = plane(2, 1, 1.0, (0.0, 1.0));
        assert_eq!(rasterize(&[(all.clone(), 1), (east.clone(), 2)], &g).unwrap().values, [1, 2]);
        assert_eq!(rasterize(&[(east, 2), (all, 1)], &g).unwrap().values, [1, 1]);
    }

    #[test]
    fn touched_cells_follow_the_boundary() {
        // A thin sliver that holds no centre.
        let sliver: MultiPolygon<f64> = polygon![(x: 0.2, y: 0.1), (x: 3.8, y: 2.9), (x: 0.2, y: 0.2)].into();
        let g = plane(4, 3, 1.0, (0.0, 3.0));
        assert_eq!(rasterize_mask(&sliver, &g, false).unwrap().values.iter().filter(|v| **v == 1).count(), 0);
        #[rustfmt::skip]
        assert_eq!(rasterize_mask(&sliver, &g, true).unwrap().values, [
            0, 0, 1, 1,
            0, 1, 1, 0,
            1, 1, 0, 0,
        ]);
    }

    #[test]
    fn an_infinite_vertex_is_refused() {
        let bad: MultiPolygon<f64> = Polygon::new(vec![(0.0, 0.0), (f64::NAN, 1.0), (1.0, 1.0)].into(), vec![]).into();
        assert!(rasterize(&[(bad, 1)], &plane(1, 1, 1.0, (0.0, 1.0))).is_err());
    }

    /// A star around (cx, cy): simple, whatever the radii.
    fn star(cx: f64, cy: f64, radii: &[f64]) -> MultiPolygon<f64> {
        let step = std::f64::consts::TAU / radii.len() as f64;
        let at = |k: usize| (cx + radii[k] * (k as f64 * step).cos(), cy + radii[k] * (k as f64 * step).sin());
        Polygon::new((0..radii.len()).map(at).collect::<Vec<_>>().into(), vec![]).into()
    }

    proptest! {
        #[test]
        fn a_crop_of_the_grid_gives_the_crop_of_the_result(
            radii in prop::collection::vec(1.0f64..9000.0, 3..40), cell in 20.0f64..400.0, touched: bool,
            cols in 1usize..20, rows in 1usize..20, col in 0usize..20, row in 0usize..20, snapped: bool,
        ) {
            let grid = if snapped {
                let e = Extent { min_x: 400_000.0, min_y: 4_600_000.0, max_x: 400_000.0 + 40.0 * cell, max_y: 4_600_000.0 + 40.0 * cell };
                Grid::snapped(plane(1, 1, 1.0, (0.0, 0.0)).crs, e, cell).unwrap()
            } else {
                plane(40, 40, cell, (400_000.3, 4_612_345.6))
            };
            let centre = (grid.transform.origin_x + 20.0 * cell, grid.transform.origin_y - 20.0 * cell);
            let area = star(centre.0, centre.1, &radii);
            let window = Window { col: col as i64, row: row as i64, cols, rows };
            prop_assert_eq!(
                rasterize_mask(&area, &grid.crop(window), touched).unwrap(),
                rasterize_mask(&area, &grid, touched).unwrap().crop(window)
            );
        }

        #[test]
        fn neighbours_share_every_cell_once(
            ys in prop::collection::vec(-5.0f64..45.0, 2..30), cell in 0.5f64..3.0,
        ) {
            // A zigzag from west to east cuts a square in two.
            let n = ys.len() - 1;
            let cut: Vec<(f64, f64)> = ys.iter().enumerate().map(|(k, y)| (40.0 * k as f64 / n as f64, *y)).collect();
            let side = |edge: f64| {
                let mut ring = cut.clone();
                ring.extend([(40.0, edge), (0.0, edge)]);
                if edge > 0.0 { ring.reverse(); }
                MultiPolygon::from(Polygon::new(ring.into(), vec![]))
            };
            let grid = plane((40.0 / cell) as usize, (40.0 / cell) as usize, cell, (0.0, 40.0));
            let south = rasterize_mask(&side(-50.0), &grid, false).unwrap();
            let north = rasterize_mask(&side(90.0), &grid, false).unwrap();
            for (a, b) in south.values.iter().zip(&north.values) {
                prop_assert_eq!(a + b, 1);
            }
        }
    }
}
