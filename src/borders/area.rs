//! Areas on the ellipsoid.

use geo::{Coord, GeodesicArea, LineString, MultiPolygon, Polygon};

/// Edges are followed in longitude and latitude in steps of at most this many degrees.
const STEP_DEG: f64 = 0.1;

/// The area of `area_lonlat` on the WGS 84 ellipsoid, square kilometres, at least 0; overlapping polygons count twice.
///
/// Edges are straight in longitude and latitude, as in GeoJSON: a border along a parallel follows the parallel. Geodesic
/// polygon area after C. F. F. Karney, "Algorithms for geodesics", Journal of Geodesy 87, 2013, section 6, on edges of at
/// most 0.1° (error below 1e-6 of the area for regions of some degrees). About a microsecond per step.
pub fn area_km2(area_lonlat: &MultiPolygon<f64>) -> f64 {
    let of = |p: &Polygon<f64>| {
        let holes: f64 = p.interiors().iter().map(ring_m2).sum();
        (ring_m2(p.exterior()) - holes).max(0.0) / 1e6
    };
    // From 0, because the sum of nothing is -0.
    area_lonlat.iter().map(of).fold(0.0, |a, b| a + b)
}

/// What a ring encloses, square metres.
fn ring_m2(ring: &LineString<f64>) -> f64 {
    let mut points: Vec<Coord<f64>> = Vec::with_capacity(ring.0.len());
    for edge in ring.lines() {
        let n = (edge.dx().abs().max(edge.dy().abs()) / STEP_DEG).ceil().clamp(1.0, 3600.0) as usize;
        points.extend((0..n).map(|k| edge.start + (edge.end - edge.start) * (k as f64 / n as f64)));
    }
    if points.len() < 3 || points.iter().any(|p| !p.x.is_finite() || p.y.abs().is_nan() || p.y.abs() > 90.0) {
        return 0.0;
    }
    Polygon::new(LineString::new(points), vec![]).geodesic_area_signed().abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use geo::polygon;

    fn box_area(west: f64, south: f64, east: f64, north: f64) -> f64 {
        area_km2(&polygon![(x: west, y: south), (x: east, y: south), (x: east, y: north), (x: west, y: north)].into())
    }

    /// The ellipsoid's zone between two parallels in closed form (Snyder, "Map Projections: A Working Manual", 1987,
    /// equation 3-12), square kilometres for a strip of `width` degrees.
    fn zone_km2(south: f64, north: f64, width: f64) -> f64 {
        let (a, f) = (6378.137f64, 1.0 / 298.257223563);
        let e2: f64 = f * (2.0 - f);
        let e = e2.sqrt();
        let q = |lat: f64| {
            let s = lat.to_radians().sin();
            (1.0 - e2) * (s / (1.0 - e2 * s * s) - ((1.0 - e * s) / (1.0 + e * s)).ln() / (2.0 * e))
        };
        a * a / 2.0 * width.to_radians() * (q(north) - q(south))
    }

    #[test]
    fn boxes_agree_with_the_closed_form() {
        for (w, s, e, n) in
            [(0.0, 0.0, 1.0, 1.0), (40.0, 41.0, 46.0, 43.0), (36.0, 36.0, 52.0, 48.0), (-70.0, -40.0, -60.0, -38.0)]
        {
            let (found, expected) = (box_area(w, s, e, n), zone_km2(s, n, e - w));
            assert!((found / expected - 1.0).abs() < 1e-6, "{found} {expected}");
        }
        // All land and sea: 510,065,621.724 km² (Karney 2013).
        assert!((2.0 * zone_km2(0.0, 90.0, 360.0) - 510_065_621.724).abs() < 0.01);
    }

    #[test]
    fn winding_does_not_matter_and_holes_are_taken_off() {
        let ring =
            |s: f64, n: f64| -> LineString<f64> { vec![(40.0, s), (44.0, s), (44.0, n), (40.0, n), (40.0, s)].into() };
        let mut reversed = ring(41.0, 42.0);
        reversed.0.reverse();
        let outer = Polygon::new(ring(40.0, 43.0), vec![]);
        let with_hole = Polygon::new(ring(40.0, 43.0), vec![reversed.clone()]);
        let hole = area_km2(&Polygon::new(reversed, vec![]).into());
        let difference = area_km2(&outer.into()) - area_km2(&with_hole.into());
        assert!(hole > 30_000.0 && (difference - hole).abs() < 1e-6, "{hole} {difference}");
    }
}
