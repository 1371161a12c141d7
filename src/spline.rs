//! Smooth curves through key points: cubic Hermite pieces with given or estimated tangents. No GDAL, no files.
//!
//! The one implementation for borders, traced outlines, lettering and `histmap curve`. Estimated tangents are those of
//! Catmull-Rom curves, uniform (E. Catmull and R. Rom, "A class of local interpolating splines", 1974) or with other knots
//! (P. J. Barry and R. N. Goldman, "A recursive evaluation algorithm for a class of Catmull-Rom splines", 1988); with centripetal
//! knots a piece has no cusp or loop (C. Yuksel, S. Schaefer, J. Keyser, "Parameterization and applications of Catmull-Rom
//! curves", 2011).
//!
//! Invariant: every key point lies on the curve, bit for bit.

use geo::Coord;

/// How the parameter runs between two key points, from which tangents are estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Knots {
    /// By the root of the distance: no cusp, no loop.
    #[default]
    Centripetal,
    /// Evenly: the textbook's form, which overshoots where distances differ.
    Uniform,
}

/// Tangents at the two ends of an open line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ends {
    /// No bend at the end, as of a natural spline.
    #[default]
    Natural,
    /// Along the first and last chord, of its length: as if the line went on straight.
    Chord,
}

/// For each segment between two `points` the curve's derivative at its two ends, for a parameter that runs from 0 to 1. A
/// closed line ends in the point where it begins.
///
/// # Panics
/// With fewer than two points: a programming error.
pub fn tangents(points: &[Coord<f64>], is_closed: bool, knots: Knots, ends: Ends) -> Vec<[Coord<f64>; 2]> {
    assert!(points.len() >= 2, "a line of {} points", points.len());
    let segments = points.len() - 1;
    let knot = |s: usize| match knots {
        Knots::Uniform => 1.0,
        Knots::Centripetal => {
            let d = points[s + 1] - points[s];
            d.x.hypot(d.y).sqrt().max(f64::MIN_POSITIVE)
        }
    };
    // Velocity at the point between two consecutive segments.
    let velocity = |before: usize, after: usize| {
        let (d0, d1) = (knot(before), knot(after));
        let (p0, p1, p2) = (points[before], points[after], points[after + 1]);
        (p1 - p0) / d0 - (p2 - p0) / (d0 + d1) + (p2 - p1) / d1
    };
    (0..segments)
        .map(|s| {
            let chord = points[s + 1] - points[s];
            let before = if s > 0 { Some(s - 1) } else { is_closed.then_some(segments - 1) };
            let after = if s + 1 < segments { Some(s + 1) } else { is_closed.then_some(0) };
            let start = before.map(|b| velocity(b, s) * knot(s));
            let end = after.map(|a| velocity(s, a) * knot(s));
            let free = |other: Coord<f64>| match ends {
                Ends::Natural => (chord * 3.0 - other) / 2.0,
                Ends::Chord => chord,
            };
            match (start, end) {
                (Some(m0), Some(m1)) => [m0, m1],
                (Some(m0), None) => [m0, free(m0)],
                (None, Some(m1)) => [free(m1), m1],
                (None, None) => [chord, chord],
            }
        })
        .collect()
}

/// The point at `t`, 0 to 1, of the cubic from `p0` to `p1` with derivatives `m0` and `m1`.
pub fn hermite(p0: Coord<f64>, p1: Coord<f64>, m0: Coord<f64>, m1: Coord<f64>, t: f64) -> Coord<f64> {
    let (t2, t3) = (t * t, t * t * t);
    let h01 = 3.0 * t2 - 2.0 * t3;
    p0 + (p1 - p0) * h01 + m0 * (t3 - 2.0 * t2 + t) + m1 * (t3 - t2)
}

/// Whether the cubic between two points is the straight line between them, whatever its pace.
fn is_straight(p0: Coord<f64>, p1: Coord<f64>, [m0, m1]: [Coord<f64>; 2]) -> bool {
    let chord = p1 - p0;
    let along = |m: Coord<f64>| m.x * chord.y - m.y * chord.x == 0.0;
    along(m0) && along(m1)
}

/// The cubic between two key points in points of about `spacing`, both ends included bit for bit; just the two where it is
/// straight. `factor` shortens the tangents.
pub fn by_spacing(ends: [Coord<f64>; 2], [m0, m1]: [Coord<f64>; 2], factor: f64, spacing: f64) -> Vec<Coord<f64>> {
    let [p0, p1] = ends;
    if factor == 0.0 || is_straight(p0, p1, [m0, m1]) {
        return vec![p0, p1];
    }
    let chord = p1 - p0;
    let (m0, m1) = (m0 * factor, m1 * factor);
    let n = (chord.x.hypot(chord.y) / spacing).ceil().clamp(1.0, 10_000.0) as usize;
    let mut points = Vec::with_capacity(n + 1);
    points.push(p0);
    points.extend((1..n).map(|k| hermite(p0, p1, m0, m1, k as f64 / n as f64)));
    points.push(p1);
    points
}

/// Halvings at the most.
const DEEPEST: u32 = 16;

/// The same in as few halvings as keep the curve within `tolerance` of the line drawn: the control points of each half lie
/// that close to its chord, and the curve lies between them.
pub fn by_tolerance(ends: [Coord<f64>; 2], [m0, m1]: [Coord<f64>; 2], factor: f64, tolerance: f64) -> Vec<Coord<f64>> {
    let [p0, p1] = ends;
    let mut points = vec![p0];
    if factor != 0.0 && !is_straight(p0, p1, [m0, m1]) {
        let third = factor / 3.0;
        halve([p0, p0 + m0 * third, p1 - m1 * third, p1], tolerance, DEEPEST, &mut points);
    }
    points.push(p1);
    points
}

/// Adds the points inside a Bézier curve (de Casteljau's division), its ends left out.
fn halve([a, b, c, d]: [Coord<f64>; 4], tolerance: f64, left: u32, points: &mut Vec<Coord<f64>>) {
    if left == 0 || (to_segment(b, a, d) <= tolerance && to_segment(c, a, d) <= tolerance) {
        return;
    }
    let mid = |p: Coord<f64>, q: Coord<f64>| (p + q) / 2.0;
    let (ab, bc, cd) = (mid(a, b), mid(b, c), mid(c, d));
    let (abc, bcd) = (mid(ab, bc), mid(bc, cd));
    let middle = mid(abc, bcd);
    halve([a, ab, abc, middle], tolerance, left - 1, points);
    points.push(middle);
    halve([middle, bcd, cd, d], tolerance, left - 1, points);
}

/// Distance of `p` to the segment from `a` to `b`.
fn to_segment(p: Coord<f64>, a: Coord<f64>, b: Coord<f64>) -> f64 {
    let (d, v) = (b - a, p - a);
    let length = d.x * d.x + d.y * d.y;
    let t = if length > 0.0 { ((v.x * d.x + v.y * d.y) / length).clamp(0.0, 1.0) } else { 0.0 };
    (v.x - t * d.x).hypot(v.y - t * d.y)
}

/// How finely a curve is drawn, in the unit of the plane.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fineness {
    /// Points so far apart.
    Spacing(f64),
    /// The line so close to the curve.
    Tolerance(f64),
}

/// How to draw a curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CurveOptions {
    /// How tangents are estimated.
    pub knots: Knots,
    /// Those of the ends.
    pub ends: Ends,
    /// Factor on the tangents, 0 (straight) to 1.
    pub strength: f64,
    /// Points.
    pub fineness: Fineness,
}

/// The curve through `points`; `given` holds for each the derivative that is given there, `None` where it is estimated (an empty
/// list: everywhere). Repeated points count once. A line of fewer than two different points returns as it is.
///
/// ```
/// use geo::Coord;
/// use histmap::spline::{CurveOptions, Ends, Fineness, Knots, through};
/// // Uniform Catmull-Rom through a corner: halfway along the first segment, natural end.
/// let corner = [(0.0, 0.0), (8.0, 0.0), (8.0, 8.0)].map(Coord::from);
/// let options = CurveOptions { knots: Knots::Uniform, ends: Ends::Natural, strength: 1.0, fineness: Fineness::Spacing(4.0) };
/// assert_eq!(through(&corner, &[], &options)[1], Coord { x: 4.75, y: -0.75 });
/// ```
pub fn through(points: &[Coord<f64>], given: &[Option<Coord<f64>>], options: &CurveOptions) -> Vec<Coord<f64>> {
    let mut keys: Vec<(Coord<f64>, Option<Coord<f64>>)> =
        points.iter().enumerate().map(|(k, p)| (*p, given.get(k).copied().flatten())).collect();
    keys.dedup_by(|b, a| a.0 == b.0);
    let (points, given): (Vec<_>, Vec<_>) = keys.into_iter().unzip();
    if points.len() < 2 {
        return points;
    }
    let is_closed = points.len() > 3 && points[0] == points[points.len() - 1];
    let mut line = vec![points[0]];
    for (s, estimated) in tangents(&points, is_closed, options.knots, options.ends).into_iter().enumerate() {
        let pair = [given[s].unwrap_or(estimated[0]), given[s + 1].unwrap_or(estimated[1])];
        let ends = [points[s], points[s + 1]];
        let piece = match options.fineness {
            Fineness::Spacing(d) => by_spacing(ends, pair, options.strength, d),
            Fineness::Tolerance(d) => by_tolerance(ends, pair, options.strength, d),
        };
        line.extend_from_slice(&piece[1..]);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn c(x: f64, y: f64) -> Coord<f64> {
        Coord { x, y }
    }

    /// From (0, 0) to (1, 0) with tangents (0, 4) and (0, -4): at t = 1/2 the weights are 1/2, 1/2, 1/8, -1/8: (1/2, 1); at 1/4 they are
    /// 27/32, 5/32, 9/64, -3/64: (5/32, 3/4).
    #[test]
    fn a_cubic_by_hand() {
        let at = |t| hermite(c(0.0, 0.0), c(1.0, 0.0), c(0.0, 4.0), c(0.0, -4.0), t);
        assert_eq!((at(0.5), at(0.25)), (c(0.5, 1.0), c(5.0 / 32.0, 0.75)));
    }

    /// Through (0,0), (1,0), (5,0), (5,4): uniform at (1,0) is half of (5,0) - (0,0); centripetal, with knots 1, 2, 2: velocity (1)/1 -
    /// (5)/3 + 4/2 = 4/3 a knot, times the knot: 4/3 before, 8/3 after.
    #[test]
    fn tangents_by_hand() {
        let points = [c(0.0, 0.0), c(1.0, 0.0), c(5.0, 0.0), c(5.0, 4.0)];
        let uniform = tangents(&points, false, Knots::Uniform, Ends::Chord);
        assert_eq!((uniform[0], uniform[1][0]), ([c(1.0, 0.0), c(2.5, 0.0)], c(2.5, 0.0)));
        let m = tangents(&points, false, Knots::Centripetal, Ends::Natural);
        assert!((m[0][1].x - 4.0 / 3.0).abs() < 1e-15 && (m[1][0].x - 8.0 / 3.0).abs() < 1e-15);
        // Natural: (3 chord - m)/2.
        assert!((m[0][0].x - (3.0 - 4.0 / 3.0) / 2.0).abs() < 1e-15);
    }

    #[test]
    fn given_tangents_are_kept() {
        let options = CurveOptions {
            knots: Knots::Centripetal,
            ends: Ends::Natural,
            strength: 1.0,
            fineness: Fineness::Spacing(0.5),
        };
        let line = through(&[c(0.0, 0.0), c(1.0, 0.0)], &[Some(c(0.0, 4.0)), Some(c(0.0, -4.0))], &options);
        assert_eq!(line, [c(0.0, 0.0), c(0.5, 1.0), c(1.0, 0.0)]);
        assert_eq!(through(&[c(0.0, 0.0), c(0.0, 0.0)], &[], &options), [c(0.0, 0.0)]);
        assert!(through(&[], &[], &options).is_empty());
    }

    proptest! {
        #[test]
        fn the_line_keeps_to_the_curve_and_its_key_points(
            points in prop::collection::vec((-100i32..100, -100i32..100), 2..9), tolerance in 0.01f64..5.0, uniform: bool,
        ) {
            let points: Vec<_> = points.into_iter().map(|(x, y)| c(f64::from(x), f64::from(y))).collect();
            let knots = if uniform { Knots::Uniform } else { Knots::Centripetal };
            let options = CurveOptions { knots, ends: Ends::Natural, strength: 1.0, fineness: Fineness::Tolerance(tolerance) };
            let line = through(&points, &[], &options);
            prop_assert!(points.iter().all(|p| line.contains(p)));
            // The true curve, finely, is close to some segment.
            let fine = through(&points, &[], &CurveOptions { fineness: Fineness::Spacing(1.0), ..options });
            if line.len() > 1 {
                for p in fine {
                    let near = line.windows(2).map(|w| to_segment(p, w[0], w[1])).fold(f64::INFINITY, f64::min);
                    prop_assert!(near <= tolerance + 1e-9, "{} from the line", near);
                }
            }
        }

        #[test]
        fn direction_does_not_matter(points in prop::collection::vec((-100f64..100.0, -100f64..100.0), 2..9)) {
            let points: Vec<_> = points.into_iter().map(|(x, y)| c(x, y)).collect();
            let options = CurveOptions { knots: Knots::Centripetal, ends: Ends::Natural, strength: 1.0, fineness: Fineness::Spacing(7.0) };
            let there = through(&points, &[], &options);
            let back: Vec<_> = through(&points.iter().rev().copied().collect::<Vec<_>>(), &[], &options).into_iter().rev().collect();
            prop_assert_eq!(there.len(), back.len());
            for (a, b) in there.iter().zip(&back) {
                prop_assert!((a.x - b.x).hypot(a.y - b.y) < 1e-9);
            }
        }
    }
}
