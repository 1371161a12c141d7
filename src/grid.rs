//! Where cells lie: geotransform, CRS, grid, cell and window. Pure arithmetic, no GDAL, no files.
//!
//! Invariant: grids are north-up (row 0 is the northernmost), cells are areas (PixelIsArea): the cell in column c
//! and row r covers the half-open square from its upper-left corner, and its value belongs to its centre or its mean.

use crate::error::{Error, Result};

/// A point in the plane of a CRS (metres east, metres north), or degrees where the CRS is geographic.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Xy {
    /// Easting, or longitude in degrees.
    pub x: f64,
    /// Northing, or latitude in degrees.
    pub y: f64,
}

/// A point on the ellipsoid, WGS 84, degrees.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LonLat {
    /// Longitude, degrees east.
    pub lon: f64,
    /// Latitude, degrees north.
    pub lat: f64,
}

/// A box in longitude and latitude, degrees, WGS 84; never crosses the antimeridian.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LonLatBox {
    /// Western edge.
    pub west: f64,
    /// Southern edge.
    pub south: f64,
    /// Eastern edge.
    pub east: f64,
    /// Northern edge.
    pub north: f64,
}

impl LonLatBox {
    /// The box, if its edges are finite, in range and in order.
    ///
    /// # Errors
    /// [`Error::Argument`] that says which edges are swapped or out of range.
    pub fn new(west: f64, south: f64, east: f64, north: f64) -> Result<Self> {
        let found = format!("{west},{south},{east},{north}");
        let fail = |remedy: &str| Err(Error::argument("box west,south,east,north", &found, remedy));
        if [west, south, east, north].iter().any(|v| !v.is_finite()) {
            return fail("all four must be finite numbers, in degrees");
        }
        if south.abs() > 90.0 || north.abs() > 90.0 {
            return fail("latitudes (2nd and 4th) must lie in -90..90; are longitude and latitude swapped?");
        }
        if west.abs() > 180.0 || east.abs() > 180.0 {
            return fail("longitudes (1st and 3rd) must lie in -180..180");
        }
        if north <= south {
            return fail("it is upside down: north (4th) must exceed south (2nd)");
        }
        if east <= west {
            return fail("it is reversed: east (3rd) must exceed west (1st)");
        }
        Ok(LonLatBox { west, south, east, north })
    }

    /// Whether the two boxes share any area.
    pub fn overlaps(&self, other: &LonLatBox) -> bool {
        self.west < other.east && other.west < self.east && self.south < other.north && other.south < self.north
    }

    /// `n` points evenly along each edge, for projecting the outline.
    pub fn outline(&self, n: usize) -> Vec<LonLat> {
        let at = |a: f64, b: f64, k: usize| a + (b - a) * k as f64 / n as f64;
        (0..n)
            .flat_map(|k| {
                [
                    LonLat { lon: at(self.west, self.east, k), lat: self.south },
                    LonLat { lon: self.east, lat: at(self.south, self.north, k) },
                    LonLat { lon: at(self.east, self.west, k), lat: self.north },
                    LonLat { lon: self.west, lat: at(self.north, self.south, k) },
                ]
            })
            .collect()
    }
}

/// A rectangle in the plane of a CRS.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Extent {
    /// Western edge.
    pub min_x: f64,
    /// Southern edge.
    pub min_y: f64,
    /// Eastern edge.
    pub max_x: f64,
    /// Northern edge.
    pub max_y: f64,
}

impl Extent {
    /// The bounding rectangle of `points`; `None` without points.
    pub fn around(points: impl IntoIterator<Item = Xy>) -> Option<Extent> {
        points.into_iter().fold(None, |e: Option<Extent>, p| {
            Some(e.map_or(Extent { min_x: p.x, min_y: p.y, max_x: p.x, max_y: p.y }, |e| Extent {
                min_x: e.min_x.min(p.x),
                min_y: e.min_y.min(p.y),
                max_x: e.max_x.max(p.x),
                max_y: e.max_y.max(p.y),
            }))
        })
    }
}

/// A coordinate reference system by the name the user gave, with its definition.
#[derive(Debug, Clone, PartialEq)]
pub struct Crs {
    /// As given, for example `EPSG:32638`.
    pub name: String,
    /// WKT2 definition.
    pub wkt: String,
    /// Whether its axes are degrees.
    pub is_geographic: bool,
}

/// From cell to CRS plane: north-up, square or oblong cells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GeoTransform {
    /// Easting of the upper-left corner of cell (0, 0).
    pub origin_x: f64,
    /// Northing of the upper-left corner of cell (0, 0).
    pub origin_y: f64,
    /// Cell width, CRS units, positive.
    pub cell_width: f64,
    /// Cell height, CRS units, positive (rows run south).
    pub cell_height: f64,
}

impl GeoTransform {
    /// The six numbers in GDAL's order.
    pub fn to_gdal(self) -> [f64; 6] {
        [self.origin_x, self.cell_width, 0.0, self.origin_y, 0.0, -self.cell_height]
    }

    /// Plane position of the centre of `cell`.
    pub fn centre(&self, cell: Cell) -> Xy {
        Xy {
            x: self.origin_x + (cell.col as f64 + 0.5) * self.cell_width,
            y: self.origin_y - (cell.row as f64 + 0.5) * self.cell_height,
        }
    }

    /// The cell that contains `point` (half-open: the western and northern edges belong to it).
    pub fn cell_at(&self, point: Xy) -> Cell {
        Cell {
            col: ((point.x - self.origin_x) / self.cell_width).floor() as i64,
            row: ((self.origin_y - point.y) / self.cell_height).floor() as i64,
        }
    }
}

/// One cell of a grid; may lie outside the raster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cell {
    /// Column, from the west.
    pub col: i64,
    /// Row, from the north.
    pub row: i64,
}

/// A half-open sub-rectangle of a grid, in cells of that grid; may reach beyond it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// First column.
    pub col: i64,
    /// First row.
    pub row: i64,
    /// Columns.
    pub cols: usize,
    /// Rows.
    pub rows: usize,
}

impl Window {
    /// The window grown by `halo` cells on each side.
    pub fn grown(&self, halo: usize) -> Window {
        Window {
            col: self.col - halo as i64,
            row: self.row - halo as i64,
            cols: self.cols + 2 * halo,
            rows: self.rows + 2 * halo,
        }
    }

    /// Whether `cell` lies inside.
    pub fn contains(&self, cell: Cell) -> bool {
        cell.col >= self.col
            && cell.row >= self.row
            && cell.col < self.col + self.cols as i64
            && cell.row < self.row + self.rows as i64
    }
}

/// A raster's frame: CRS, geotransform and size.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    /// Coordinate reference system.
    pub crs: Crs,
    /// Cell (0, 0) and cell size.
    pub transform: GeoTransform,
    /// Columns.
    pub cols: usize,
    /// Rows.
    pub rows: usize,
}

impl Grid {
    /// The smallest grid of square cells of `resolution_m` that covers `extent`, its edges snapped outward to whole
    /// multiples of the resolution from the CRS origin, so that overlapping grids of one resolution share cells.
    ///
    /// # Errors
    /// [`Error::Argument`] when the resolution is not positive and finite or the extent is empty;
    /// [`Error::GeographicCrs`] when the CRS has degrees.
    pub fn snapped(crs: Crs, extent: Extent, resolution_m: f64) -> Result<Grid> {
        if crs.is_geographic {
            return Err(Error::GeographicCrs { crs: crs.name });
        }
        if !(resolution_m.is_finite() && resolution_m > 0.0) {
            return Err(Error::argument("--resolution", resolution_m, "give metres above 0, for example 250"));
        }
        // A micrometre of slack: an edge computed as 999.9999999 cells is 1000.
        let slack = 1e-6 / resolution_m;
        let (c0, c1) = ((extent.min_x / resolution_m + slack).floor(), (extent.max_x / resolution_m - slack).ceil());
        let (r0, r1) = ((extent.min_y / resolution_m + slack).floor(), (extent.max_y / resolution_m - slack).ceil());
        if !(c1 > c0 && r1 > r0 && c1 - c0 < 1e9 && r1 - r0 < 1e9) {
            return Err(Error::argument(
                "extent",
                format!("{} .. {} east, {} .. {} north", extent.min_x, extent.max_x, extent.min_y, extent.max_y),
                "it must cover at least one cell and at most a thousand million in each direction",
            ));
        }
        Ok(Grid {
            crs,
            transform: GeoTransform {
                origin_x: c0 * resolution_m,
                origin_y: r1 * resolution_m,
                cell_width: resolution_m,
                cell_height: resolution_m,
            },
            cols: (c1 - c0) as usize,
            rows: (r1 - r0) as usize,
        })
    }

    /// How many cells.
    pub fn len(&self) -> usize {
        self.cols * self.rows
    }

    /// Whether the grid has no cells.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The whole grid as a window.
    pub fn window(&self) -> Window {
        Window { col: 0, row: 0, cols: self.cols, rows: self.rows }
    }

    /// The rectangle that the grid covers.
    pub fn extent(&self) -> Extent {
        let t = &self.transform;
        Extent {
            min_x: t.origin_x,
            max_x: t.origin_x + self.cols as f64 * t.cell_width,
            max_y: t.origin_y,
            min_y: t.origin_y - self.rows as f64 * t.cell_height,
        }
    }

    /// The grid of `window`, which may reach beyond this one.
    pub fn crop(&self, window: Window) -> Grid {
        let t = &self.transform;
        Grid {
            crs: self.crs.clone(),
            transform: GeoTransform {
                origin_x: t.origin_x + window.col as f64 * t.cell_width,
                origin_y: t.origin_y - window.row as f64 * t.cell_height,
                ..*t
            },
            cols: window.cols,
            rows: window.rows,
        }
    }

    /// Column and row of cell (0, 0) counted from the CRS origin, in cells: what keys the noise of a cell, whatever
    /// the extent. Rows count southward.
    pub fn lattice_origin(&self) -> Cell {
        let t = &self.transform;
        Cell { col: (t.origin_x / t.cell_width).round() as i64, row: (-t.origin_y / t.cell_height).round() as i64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utm38() -> Crs {
        Crs { name: "EPSG:32638".into(), wkt: String::new(), is_geographic: false }
    }

    #[test]
    fn snapped_grid_covers_the_extent_on_whole_cells() {
        let e = Extent { min_x: -110.0, min_y: 1010.0, max_x: 260.0, max_y: 1990.0 };
        let g = Grid::snapped(utm38(), e, 250.0).unwrap();
        assert_eq!((g.transform.origin_x, g.transform.origin_y, g.cols, g.rows), (-250.0, 2000.0, 3, 4));
        assert_eq!(g.lattice_origin(), Cell { col: -1, row: -8 });
    }

    #[test]
    fn an_edge_on_a_cell_border_adds_no_cell() {
        let e = Extent { min_x: 0.0, min_y: 0.0, max_x: 1000.0, max_y: 500.0 };
        let g = Grid::snapped(utm38(), e, 250.0).unwrap();
        assert_eq!((g.cols, g.rows), (4, 2));
    }

    #[test]
    fn cell_at_is_half_open_and_centre_is_its_inverse() {
        let t = GeoTransform { origin_x: 100.0, origin_y: 50.0, cell_width: 10.0, cell_height: 10.0 };
        assert_eq!(t.cell_at(Xy { x: 100.0, y: 50.0 }), Cell { col: 0, row: 0 });
        assert_eq!(t.cell_at(Xy { x: 110.0, y: 40.0 }), Cell { col: 1, row: 1 });
        assert_eq!(t.cell_at(Xy { x: 99.9, y: 50.1 }), Cell { col: -1, row: -1 });
        assert_eq!(t.cell_at(t.centre(Cell { col: 7, row: 3 })), Cell { col: 7, row: 3 });
    }

    #[test]
    fn boxes_upside_down_or_swapped_are_refused() {
        assert!(LonLatBox::new(40.0, 42.0, 45.0, 41.0).unwrap_err().to_string().contains("upside down"));
        assert!(LonLatBox::new(45.0, 41.0, 40.0, 42.0).unwrap_err().to_string().contains("reversed"));
        assert!(LonLatBox::new(41.0, 140.0, 42.0, 145.0).unwrap_err().to_string().contains("swapped"));
        assert!(LonLatBox::new(f64::NAN, 41.0, 42.0, 45.0).is_err());
    }

    #[test]
    fn geographic_crs_is_refused_for_the_working_grid() {
        let c = Crs { name: "EPSG:4326".into(), wkt: String::new(), is_geographic: true };
        let e = Extent { min_x: 0.0, min_y: 0.0, max_x: 1.0, max_y: 1.0 };
        assert!(matches!(Grid::snapped(c, e, 0.1), Err(Error::GeographicCrs { .. })));
    }
}
