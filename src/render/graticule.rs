//! Meridians and parallels on the sheet, where they meet the frame, and the scale at the map's centre. Works from the
//! forward projection alone: the inverse is found by Newton's method.

use super::curve::{Curve, Point, point};
use crate::grid::LonLat;

/// From lon/lat to pixels of the map window, where there is an image.
pub(super) type ToPixel<'a> = &'a dyn Fn(LonLat) -> Option<(f64, f64)>;

/// An edge of the map window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Edge {
    Top,
    Bottom,
    Left,
    Right,
}

/// Where a meridian or parallel meets the frame.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tick {
    /// Which edge.
    pub edge: Edge,
    /// Pixels along the edge, from the left or the top.
    pub along: f32,
    /// How many fine steps from degree 0; its parity colours the frame.
    pub count: i64,
    /// What stands beside it; `None` at fine steps.
    pub label: Option<String>,
}

/// Lines and ticks of the map window, and its scale.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Graticule {
    /// Labelled meridians and parallels.
    pub lines: Vec<Curve>,
    /// All crossings with the frame, sorted along each edge.
    pub ticks: Vec<Tick>,
    /// Pixels per metre on the ground, eastward, at the map's centre.
    pub px_per_m: Option<f64>,
    /// Direction of true north at the centre, radians clockwise from up.
    pub north: f32,
    /// Where the centre is.
    pub centre: Option<LonLat>,
}

const EQUATOR_M: f64 = 6_378_137.0;
const FLATTENING: f64 = 1.0 / 298.257_223_563;

/// Metres per degree of longitude and latitude on the WGS 84 ellipsoid.
fn metres_per_degree(lat: f64) -> (f64, f64) {
    let e2 = FLATTENING * (2.0 - FLATTENING);
    let s = lat.to_radians().sin();
    let n = EQUATOR_M / (1.0 - e2 * s * s).sqrt();
    let m = n * (1.0 - e2) / (1.0 - e2 * s * s);
    (n * lat.to_radians().cos() * 1f64.to_radians(), m * 1f64.to_radians())
}

/// Pixels per degree eastward and northward: the Jacobian by central differences.
fn jacobian(to: ToPixel, at: LonLat) -> Option<[[f64; 2]; 2]> {
    const H: f64 = 1e-4;
    let d = |dlon: f64, dlat: f64| {
        let a = to(LonLat { lon: at.lon - dlon, lat: at.lat - dlat })?;
        let b = to(LonLat { lon: at.lon + dlon, lat: at.lat + dlat })?;
        Some([(b.0 - a.0) / (2.0 * H), (b.1 - a.1) / (2.0 * H)])
    };
    Some([d(H, 0.0)?, d(0.0, H)?])
}

/// The lon/lat whose image is `target`, starting from `start`.
fn locate(to: ToPixel, target: (f64, f64), start: LonLat) -> Option<LonLat> {
    let mut at = start;
    for _ in 0..40 {
        let p = to(at)?;
        let (ex, ey) = (target.0 - p.0, target.1 - p.1);
        if ex.hypot(ey) < 1e-3 {
            return Some(at);
        }
        let [[a, b], [c, d]] = jacobian(to, at)?;
        let det = a * d - b * c;
        if det.abs() < 1e-12 {
            return None;
        }
        let step = ((ex * d - ey * c) / det, (ey * a - ex * b) / det);
        let hold = (4.0 / step.0.hypot(step.1)).min(1.0);
        at = LonLat { lon: at.lon + hold * step.0, lat: (at.lat + hold * step.1).clamp(-89.99, 89.99) };
    }
    None
}

/// The lon/lat at the centre of the window, found from the whole earth; only where the projection is near true to scale
/// (`px_per_crs_m` pixels per metre), so that far-off folds of a projection do not pass.
fn find_centre(to: ToPixel, width: f64, height: f64, px_per_crs_m: f64) -> Option<LonLat> {
    let centre = (width / 2.0, height / 2.0);
    let mut starts: Vec<(f64, LonLat)> = Vec::new();
    for lat in (-88..=88).step_by(4) {
        for lon in (-180..180).step_by(4) {
            let at = LonLat { lon: f64::from(lon), lat: f64::from(lat) };
            if let Some(p) = to(at) {
                let d = (p.0 - centre.0).hypot(p.1 - centre.1);
                if d.is_finite() {
                    starts.push((d, at));
                }
            }
        }
    }
    starts.sort_by(|a, b| a.0.total_cmp(&b.0));
    starts.iter().take(12).find_map(|&(_, start)| {
        let at = locate(to, centre, start)?;
        let j = jacobian(to, at)?;
        let (east, north) = metres_per_degree(at.lat);
        let sane = |v: [f64; 2], m: f64| (0.4..2.5).contains(&(v[0].hypot(v[1]) / (m * px_per_crs_m)));
        (sane(j[0], east) && sane(j[1], north) && (-181.0..181.0).contains(&at.lon)).then_some(at)
    })
}

/// Steps between labelled lines, degrees, with the fine step of the frame.
const STEPS: [(f64, f64); 12] = [
    (30.0, 10.0),
    (20.0, 10.0),
    (10.0, 5.0),
    (5.0, 1.0),
    (2.0, 1.0),
    (1.0, 0.5),
    (0.5, 0.25),
    (0.25, 1.0 / 12.0),
    (1.0 / 6.0, 1.0 / 12.0),
    (1.0 / 12.0, 1.0 / 60.0),
    (1.0 / 30.0, 1.0 / 60.0),
    (1.0 / 60.0, 1.0 / 120.0),
];

/// The graticule of a window; empty where the projection cannot be followed. Labelled lines keep at least `apart_px`
/// from each other where the window is large enough for two of them.
pub(super) fn graticule(to: ToPixel, width: usize, height: usize, px_per_crs_m: f64, apart_px: f64) -> Graticule {
    let (w, h) = (width as f64, height as f64);
    let Some(centre) = find_centre(to, w, h, px_per_crs_m) else { return Graticule::default() };
    let Some(j) = jacobian(to, centre) else { return Graticule::default() };
    let (east_m, north_m) = metres_per_degree(centre.lat);
    let per_degree = (j[0][0].hypot(j[0][1]), j[1][0].hypot(j[1][1]));
    // Along the frame, each point started from its neighbour.
    let mut range = (centre.lon, centre.lon, centre.lat, centre.lat);
    let mut last = centre;
    const N: usize = 40;
    for k in 0..4 * N {
        let t = (k % N) as f64 / N as f64;
        let target = match k / N {
            0 => (t * w, 0.0),
            1 => (w, t * h),
            2 => ((1.0 - t) * w, h),
            _ => (0.0, (1.0 - t) * h),
        };
        if let Some(at) = locate(to, target, last).or_else(|| locate(to, target, centre)) {
            last = at;
            range = (range.0.min(at.lon), range.1.max(at.lon), range.2.min(at.lat), range.3.max(at.lat));
        }
    }
    let wanted = apart_px.min(w.min(h) / 2.2);
    let fits = |s: &&(f64, f64)| s.0 * per_degree.0.min(per_degree.1) >= wanted;
    let (step, fine) = STEPS.iter().rev().find(fits).copied().unwrap_or(STEPS[0]);
    let mut g = Graticule {
        px_per_m: Some(((per_degree.0 / east_m) + (per_degree.1 / north_m)) / 2.0),
        north: (j[1][0] as f32).atan2(-j[1][1] as f32),
        centre: Some(centre),
        ..Graticule::default()
    };
    let ratio = (step / fine).round() as i64;
    for meridian in [true, false] {
        let (lo, hi, from, to_end) =
            if meridian { (range.0, range.1, range.2, range.3) } else { (range.2, range.3, range.0, range.1) };
        let (from, to_end) = (from - step, to_end + step);
        for count in (lo / fine).floor() as i64..=(hi / fine).ceil() as i64 {
            let at = count as f64 * fine;
            let n = 240;
            let course: Vec<Point> = (0..=n)
                .filter_map(|k| {
                    let other = from + (to_end - from) * f64::from(k) / f64::from(n);
                    let (lon, lat) = if meridian { (at, other) } else { (other, at) };
                    let p = if lat.abs() <= 90.0 { to(LonLat { lon, lat }) } else { None };
                    p.map(|p| point(p.0 as f32, p.1 as f32))
                })
                .collect();
            let labelled = count % ratio == 0;
            for pair in course.windows(2) {
                for (edge, along) in crossings(pair[0], pair[1], w as f32, h as f32) {
                    if meridian == matches!(edge, Edge::Top | Edge::Bottom) {
                        g.ticks.push(Tick { edge, along, count, label: labelled.then(|| degrees(at, meridian)) });
                    }
                }
            }
            if labelled && let Some(c) = Curve::through(course) {
                g.lines.extend(c.clipped(w as f32, h as f32));
            }
        }
    }
    g.ticks.sort_by(|a, b| (a.edge as u8).cmp(&(b.edge as u8)).then(a.along.total_cmp(&b.along)));
    g
}

/// Where a short segment crosses the edges of the window.
fn crossings(a: Point, b: Point, w: f32, h: f32) -> Vec<(Edge, f32)> {
    let mut found = Vec::new();
    for (edge, line, p, q, across) in [
        (Edge::Top, 0.0, a.y, b.y, (a.x, b.x, w)),
        (Edge::Bottom, h, a.y, b.y, (a.x, b.x, w)),
        (Edge::Left, 0.0, a.x, b.x, (a.y, b.y, h)),
        (Edge::Right, w, a.x, b.x, (a.y, b.y, h)),
    ] {
        if (p < line) != (q < line) {
            let along = across.0 + (across.1 - across.0) * (line - p) / (q - p);
            if along > 0.0 && along < across.2 {
                found.push((edge, along));
            }
        }
    }
    found
}

/// Degrees and minutes with the hemisphere: `42°30′ N`.
pub(super) fn degrees(value: f64, is_longitude: bool) -> String {
    let minutes = (value.abs() * 60.0).round() as i64;
    let (d, m) = (minutes / 60, minutes % 60);
    let side = match (is_longitude, minutes == 0, value > 0.0) {
        (_, true, _) => "",
        (true, _, true) => " E",
        (true, _, false) => " W",
        (false, _, true) => " N",
        (false, _, false) => " S",
    };
    if m == 0 { format!("{d}°{side}") } else { format!("{d}°{m:02}′{side}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A plate carrée of 100 px per degree with its corner at 40 E, 45 N.
    fn plate(at: LonLat) -> Option<(f64, f64)> {
        Some(((at.lon - 40.0) * 100.0, (45.0 - at.lat) * 100.0))
    }

    #[test]
    fn ticks_stand_at_whole_degrees() {
        let g = graticule(&plate, 500, 400, 100.0 / 111_000.0, 90.0);
        let top: Vec<_> = g.ticks.iter().filter(|t| t.edge == Edge::Top && t.label.is_some()).collect();
        let labels: Vec<_> = top.iter().map(|t| t.label.clone().unwrap()).collect();
        assert_eq!(labels, ["41° E", "42° E", "43° E", "44° E"]);
        assert!((top[0].along - 100.0).abs() < 0.01);
        assert!(g.north.abs() < 1e-4);
        let c = g.centre.unwrap();
        assert!((c.lon - 42.5).abs() < 1e-6 && (c.lat - 43.0).abs() < 1e-6);
    }

    #[test]
    fn small_windows_get_minutes_and_hopeless_ones_nothing() {
        let near = |at: LonLat| Some(((at.lon - 40.0) * 4000.0, (45.0 - at.lat) * 4000.0));
        let g = graticule(&near, 500, 400, 4000.0 / 111_000.0, 90.0);
        assert!(g.ticks.iter().any(|t| t.label.as_deref() == Some("44°58′ N")), "{:?}", g.ticks);
        assert_eq!(graticule(&|_| None, 500, 400, 1.0, 90.0), Graticule::default());
    }

    #[test]
    fn degrees_are_written_with_hemisphere() {
        assert_eq!(degrees(42.5, false), "42°30′ N");
        assert_eq!(degrees(-7.0, true), "7° W");
        assert_eq!(degrees(0.0, true), "0°");
    }

    #[test]
    fn a_degree_of_latitude_is_111_km() {
        // GeographicLib's ellipsoid constants: 110574.39 m at the equator.
        let (east, north) = metres_per_degree(0.0);
        assert!((east - 111_319.49).abs() < 0.01 && (north - 110_574.28).abs() < 0.2, "{east} {north}");
    }
}
