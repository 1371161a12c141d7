//! From columns and rows to metres east and north of a raster's middle.
//!
//! Where the CRS has metres (or feet), cells are scaled. Where it has degrees, the vertices go through a transverse Mercator
//! projection of their own, centred on the raster: one metre is the same east and north, and north is up along the middle.
//!
//! Source: L. Krüger, "Konforme Abbildung des Erdellipsoids in der Ebene", 1912, with the series in the third flattening to its
//! fourth power.

use crate::grid::Grid;
use std::f64::consts::PI;

/// Semi-major axis and flattening of WGS 84.
const AXIS_M: f64 = 6_378_137.0;
const FLATTENING: f64 = 1.0 / 298.257_223_563;
/// Farthest from the middle that the series is used, degrees of longitude.
const WIDEST_DEG: f64 = 40.0;

/// How a raster lies in the plane of its mesh.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Placement {
    /// Column and row of the middle.
    middle: [f64; 2],
    way: Way,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    /// Metres in a cell.
    Plane { width_m: f64, height_m: f64 },
    /// Degrees in a cell, from longitude and latitude of the middle.
    Mercator { width_deg: f64, height_deg: f64, lat_deg: f64, north_m: f64 },
    /// Metres in a cell at the middle latitude, for what reaches around the Earth.
    Cylinder { width_m: f64, height_m: f64 },
}

impl Placement {
    /// The placement of cells of `grid`, of which an axis unit is `metres_per_unit` (`None`: degrees).
    pub fn of(grid: &Grid, metres_per_unit: Option<f64>) -> Placement {
        let t = &grid.transform;
        let middle = [(grid.cols as f64 - 1.0) / 2.0, (grid.rows as f64 - 1.0) / 2.0];
        let way = match metres_per_unit {
            Some(unit) => Way::Plane { width_m: t.cell_width * unit, height_m: t.cell_height * unit },
            None => {
                let lat_deg = t.origin_y - grid.rows as f64 / 2.0 * t.cell_height;
                let half = grid.cols as f64 / 2.0 * t.cell_width;
                let reach = lat_deg.abs() + grid.rows as f64 / 2.0 * t.cell_height;
                if half <= WIDEST_DEG && reach <= 90.0 {
                    let north_m = mercator(lat_deg, 0.0)[1];
                    Way::Mercator { width_deg: t.cell_width, height_deg: t.cell_height, lat_deg, north_m }
                } else {
                    let [east, north] = metres_per_degree(lat_deg);
                    Way::Cylinder { width_m: t.cell_width * east, height_m: t.cell_height * north }
                }
            }
        };
        Placement { middle, way }
    }

    /// Whether distances are true at the middle latitude only.
    pub fn is_cylinder(&self) -> bool {
        matches!(self.way, Way::Cylinder { .. })
    }

    /// Metres east and north of the raster's middle.
    pub fn at(&self, col: f64, row: f64) -> [f64; 2] {
        let (dc, dr) = (col - self.middle[0], self.middle[1] - row);
        match self.way {
            Way::Plane { width_m, height_m } | Way::Cylinder { width_m, height_m } => [dc * width_m, dr * height_m],
            Way::Mercator { width_deg, height_deg, lat_deg, north_m } => {
                let [east, north] = mercator(lat_deg + dr * height_deg, dc * width_deg);
                [east, north - north_m]
            }
        }
    }
}

/// Length of a degree of longitude and of latitude at a latitude, metres.
pub fn metres_per_degree(lat_deg: f64) -> [f64; 2] {
    let e2 = FLATTENING * (2.0 - FLATTENING);
    let (sin, cos) = lat_deg.clamp(-90.0, 90.0).to_radians().sin_cos();
    let w = 1.0 - e2 * sin * sin;
    [AXIS_M * cos / w.sqrt() * PI / 180.0, AXIS_M * (1.0 - e2) / w.powf(1.5) * PI / 180.0]
}

/// Easting and northing of transverse Mercator at scale 1, longitude counted from its meridian.
fn mercator(lat_deg: f64, lon_deg: f64) -> [f64; 2] {
    let n = FLATTENING / (2.0 - FLATTENING);
    let e = (FLATTENING * (2.0 - FLATTENING)).sqrt();
    let a = AXIS_M / (1.0 + n) * (1.0 + n.powi(2) / 4.0 + n.powi(4) / 64.0);
    let alpha = [
        n / 2.0 - 2.0 / 3.0 * n.powi(2) + 5.0 / 16.0 * n.powi(3) + 41.0 / 180.0 * n.powi(4),
        13.0 / 48.0 * n.powi(2) - 3.0 / 5.0 * n.powi(3) + 557.0 / 1440.0 * n.powi(4),
        61.0 / 240.0 * n.powi(3) - 103.0 / 140.0 * n.powi(4),
        49_561.0 / 161_280.0 * n.powi(4),
    ];
    let sin = lat_deg.to_radians().sin();
    let t = (sin.atanh() - e * (e * sin).atanh()).sinh();
    let (s, c) = lon_deg.to_radians().sin_cos();
    let (x, y) = if t.is_finite() { (t.atan2(c), (s / t.hypot(c)).asinh()) } else { (t.signum() * PI / 2.0, 0.0) };
    let (mut north, mut east) = (x, y);
    for (k, alpha) in alpha.into_iter().enumerate() {
        let m = 2.0 * (k + 1) as f64;
        north += alpha * (m * x).sin() * (m * y).cosh();
        east += alpha * (m * x).cos() * (m * y).sinh();
    }
    [a * east, a * north]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::{Crs, GeoTransform};

    fn grid(is_geographic: bool, origin: (f64, f64), cell: (f64, f64), size: (usize, usize)) -> Grid {
        Grid {
            crs: Crs { name: String::new(), wkt: String::new(), is_geographic },
            transform: GeoTransform { origin_x: origin.0, origin_y: origin.1, cell_width: cell.0, cell_height: cell.1 },
            cols: size.0,
            rows: size.1,
        }
    }

    /// echo 4.2 47.8 | gdaltransform -s_srs "+proj=longlat +ellps=WGS84 +no_defs" -t_srs "+proj=tmerc +lat_0=0 +lon_0=0
    /// +ellps=WGS84 +no_defs"; 30 -60, 0 45 and 0 90 likewise.
    #[test]
    fn the_series_agrees_with_proj() {
        for (lat, lon, east, north) in [
            (47.8, 4.2, 314_608.633, 5_304_739.464),
            (-60.0, 30.0, 1_633_178.736, -7_037_439.987),
            (45.0, 0.0, 0.0, 4_984_944.378),
        ] {
            let [x, y] = mercator(lat, lon);
            assert!((x - east).abs() < 1e-3 && (y - north).abs() < 1e-3, "{lat} {lon}: {x:.4} {y:.4}");
        }
        assert!((mercator(90.0, 12.0)[1] - 10_001_965.729).abs() < 1e-3);
    }

    /// A degree at 60 N: 55,800.0 m east, 111,412.3 m north (WGS 84).
    #[test]
    fn degrees_become_metres_on_both_axes() {
        let [east, north] = metres_per_degree(60.0);
        assert!((east - 55_799.97).abs() < 0.5 && (north - 111_412.24).abs() < 0.5, "{east} {north}");
        // 3 x 3 cells of a degree around 10 E 60 N: east is x, north is y and up.
        let p = Placement::of(&grid(true, (8.5, 61.5), (1.0, 1.0), (3, 3)), None);
        let ([x, _], [_, y]) = (p.at(2.0, 1.0), p.at(1.0, 0.0));
        assert!((x - east).abs() < 20.0 && (y - north).abs() < 60.0, "{x} {y}");
        assert_eq!(p.at(1.0, 1.0), [0.0, 0.0]);
    }

    #[test]
    fn feet_and_oblong_cells_are_scaled_by_axis() {
        let p = Placement::of(&grid(false, (0.0, 0.0), (10.0, 20.0), (5, 5)), Some(0.3048));
        assert_eq!(p.at(4.0, 0.0), [2.0 * 10.0 * 0.3048, 2.0 * 20.0 * 0.3048]);
    }

    #[test]
    fn the_whole_earth_becomes_a_cylinder() {
        let p = Placement::of(&grid(true, (-180.0, 90.0), (1.0, 1.0), (360, 180)), None);
        assert!(p.is_cylinder());
        assert!((p.at(179.5 + 90.0, 89.5)[0] - 90.0 * 111_319.49).abs() < 1.0);
        assert!(!Placement::of(&grid(true, (0.0, 90.0), (1.0, 1.0), (20, 20)), None).is_cylinder());
    }
}
