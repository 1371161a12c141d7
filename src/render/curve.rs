//! Polylines measured by arc length: where letters stand and rivers run. Sheet pixels, y down.

use crate::spline::{self, Ends, Knots};

/// A point of the sheet, pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    /// From the left.
    pub x: f32,
    /// From the top.
    pub y: f32,
}

/// The point (`x`, `y`).
pub(super) const fn point(x: f32, y: f32) -> Point {
    Point { x, y }
}

impl Point {
    /// Distance to `other`.
    pub fn to(self, other: Point) -> f32 {
        (self.x - other.x).hypot(self.y - other.y)
    }
}

/// A polyline with the arc length at each vertex. At least two distinct vertices.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Curve {
    points: Vec<Point>,
    lengths: Vec<f32>,
}

impl Curve {
    /// The curve through `points`; `None` unless it has a length.
    pub fn through(points: impl IntoIterator<Item = Point>) -> Option<Curve> {
        let mut kept: Vec<Point> = Vec::new();
        let mut lengths = Vec::new();
        let mut length = 0.0;
        for p in points.into_iter().filter(|p| p.x.is_finite() && p.y.is_finite()) {
            if let Some(&last) = kept.last() {
                let d = last.to(p);
                if d < 1e-3 {
                    continue;
                }
                length += d;
            }
            kept.push(p);
            lengths.push(length);
        }
        (kept.len() >= 2).then_some(Curve { points: kept, lengths })
    }

    /// Its vertices.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Arc length of the whole.
    pub fn length(&self) -> f32 {
        *self.lengths.last().unwrap_or(&0.0)
    }

    /// The point at arc length `s` (clamped to the ends).
    pub fn point_at(&self, s: f32) -> Point {
        let s = s.clamp(0.0, self.length());
        let k = self.lengths.partition_point(|&l| l <= s).clamp(1, self.points.len() - 1);
        let (a, b) = (self.points[k - 1], self.points[k]);
        let t = (s - self.lengths[k - 1]) / (self.lengths[k] - self.lengths[k - 1]);
        point(a.x + (b.x - a.x) * t, a.y + (b.y - a.y) * t)
    }

    /// Point and direction at `s`; the direction is that of the chord over `reach` to either side, radians clockwise
    /// on the sheet.
    pub fn at(&self, s: f32, reach: f32) -> (Point, f32) {
        let (a, b) = (self.point_at(s - reach), self.point_at(s + reach));
        (self.point_at(s), (b.y - a.y).atan2(b.x - a.x))
    }

    /// The same curve from its other end.
    pub fn reversed(&self) -> Curve {
        let total = self.length();
        Curve {
            points: self.points.iter().rev().copied().collect(),
            lengths: self.lengths.iter().rev().map(|l| total - l).collect(),
        }
    }

    /// Reversed where it would be read upside down (its chord runs leftward).
    pub fn readable(self) -> Curve {
        let (a, b) = (self.points[0], self.points[self.points.len() - 1]);
        if b.x < a.x { self.reversed() } else { self }
    }

    /// The part between two arc lengths.
    pub fn part(&self, from: f32, to: f32) -> Option<Curve> {
        let (from, to) = (from.max(0.0), to.min(self.length()));
        let inner = self.points.iter().zip(&self.lengths).filter(|(_, l)| **l > from && **l < to).map(|(p, _)| *p);
        Curve::through([self.point_at(from)].into_iter().chain(inner).chain([self.point_at(to)]))
    }

    /// Resampled every `step` and smoothed over `reach` to either side; the ends stay.
    pub fn smoothed(&self, step: f32, reach: f32) -> Curve {
        let n = ((self.length() / step).ceil() as usize).clamp(1, 20_000);
        let at = |k: i64| self.point_at(self.length() * k as f32 / n as f32);
        let points: Vec<Point> = (0..=n as i64).map(at).collect();
        let half = (reach / step).round() as usize;
        let mean = (0..=n).map(|k| {
            let half = half.min(k).min(n - k);
            let window = &points[k - half..=k + half];
            let m = window.len() as f32;
            point(window.iter().map(|p| p.x).sum::<f32>() / m, window.iter().map(|p| p.y).sum::<f32>() / m)
        });
        Curve::through(mean).unwrap_or_else(|| self.clone())
    }

    /// A smooth curve through few key points (uniform Catmull-Rom, 12 steps a piece).
    pub fn spline(&self) -> Curve {
        let p = &self.points;
        if p.len() < 3 {
            return self.clone();
        }
        let coord = |q: &Point| geo::Coord { x: f64::from(q.x), y: f64::from(q.y) };
        let keys: Vec<geo::Coord<f64>> = p.iter().map(coord).collect();
        let mut out = Vec::new();
        for (k, [m0, m1]) in spline::tangents(&keys, false, Knots::Uniform, Ends::Chord).into_iter().enumerate() {
            out.extend((0..12).map(|i| {
                let at = spline::hermite(keys[k], keys[k + 1], m0, m1, f64::from(i) / 12.0);
                point(at.x as f32, at.y as f32)
            }));
        }
        out.push(p[p.len() - 1]);
        Curve::through(out).unwrap_or_else(|| self.clone())
    }

    /// The curve moved by `by` to its right (downward where it runs rightward).
    pub fn beside(&self, by: f32) -> Option<Curve> {
        Curve::through(self.lengths.iter().map(|&s| {
            let (p, angle) = self.at(s, by.abs().max(2.0));
            point(p.x - angle.sin() * by, p.y + angle.cos() * by)
        }))
    }

    /// Sum of turns between `from` and `to`, radians, seen every `step`.
    pub fn turning(&self, from: f32, to: f32, step: f32) -> f32 {
        let n = ((to - from) / step).ceil().max(1.0) as usize;
        let angles: Vec<f32> = (0..=n).map(|k| self.at(from + (to - from) * k as f32 / n as f32, step).1).collect();
        let turn = |a: f32, b: f32| {
            let d = (b - a).rem_euclid(std::f32::consts::TAU);
            d.min(std::f32::consts::TAU - d)
        };
        angles.windows(2).map(|w| turn(w[0], w[1])).sum()
    }

    /// The pieces inside the rectangle from the origin to (`width`, `height`), by vertices and crossing points.
    pub fn clipped(&self, width: f32, height: f32) -> Vec<Curve> {
        let mut pieces = Vec::new();
        let mut run: Vec<Point> = Vec::new();
        for w in self.points.windows(2) {
            match clip_segment(w[0], w[1], width, height) {
                Some((a, b)) => {
                    if run.last().is_none_or(|l| l.to(a) > 1e-3) {
                        pieces.extend(Curve::through(std::mem::take(&mut run)));
                        run.push(a);
                    }
                    run.push(b);
                }
                None => pieces.extend(Curve::through(std::mem::take(&mut run))),
            }
        }
        pieces.extend(Curve::through(run));
        pieces
    }
}

/// The part of a segment inside the rectangle (Liang & Barsky 1984).
fn clip_segment(a: Point, b: Point, width: f32, height: f32) -> Option<(Point, Point)> {
    let (dx, dy) = (b.x - a.x, b.y - a.y);
    let (mut t0, mut t1) = (0.0f32, 1.0f32);
    for (p, q) in [(-dx, a.x), (dx, width - a.x), (-dy, a.y), (dy, height - a.y)] {
        if p == 0.0 {
            if q < 0.0 {
                return None;
            }
        } else if p < 0.0 {
            t0 = t0.max(q / p);
        } else {
            t1 = t1.min(q / p);
        }
    }
    let at = |t: f32| {
        if t == 0.0 {
            a
        } else if t == 1.0 {
            b
        } else {
            point(a.x + t * dx, a.y + t * dy)
        }
    };
    (t0 <= t1).then(|| (at(t0), at(t1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn angle() -> Curve {
        Curve::through([point(0.0, 0.0), point(10.0, 0.0), point(10.0, 10.0)]).unwrap()
    }

    #[test]
    fn arc_length_finds_points() {
        let c = angle();
        assert_eq!(c.length(), 20.0);
        assert_eq!(c.point_at(15.0), point(10.0, 5.0));
        assert_eq!(c.point_at(99.0), point(10.0, 10.0));
        assert!((c.at(5.0, 1.0).1).abs() < 1e-6);
        assert!((c.turning(0.0, 20.0, 1.0) - std::f32::consts::FRAC_PI_2).abs() < 0.05);
    }

    #[test]
    fn leftward_curves_are_turned_round() {
        let c = Curve::through([point(9.0, 1.0), point(0.0, 0.0)]).unwrap().readable();
        assert_eq!(c.points()[0], point(0.0, 0.0));
        assert!((c.point_at(3.0).to(point(0.0, 0.0)) - 3.0).abs() < 1e-4);
    }

    #[test]
    fn points_without_length_are_no_curve() {
        assert!(Curve::through([point(1.0, 1.0), point(1.0, 1.0)]).is_none());
        assert!(Curve::through([point(1.0, f32::NAN), point(1.0, 1.0)]).is_none());
    }

    #[test]
    fn clipping_keeps_the_inside() {
        let c = Curve::through([point(-5.0, 5.0), point(15.0, 5.0), point(15.0, 8.0), point(-5.0, 8.0)]).unwrap();
        let parts = c.clipped(10.0, 10.0);
        assert_eq!(parts.len(), 2);
        assert_eq!(parts[0].points(), [point(0.0, 5.0), point(10.0, 5.0)]);
    }

    #[test]
    fn beside_lies_to_the_right() {
        let c = Curve::through([point(0.0, 0.0), point(10.0, 0.0)]).unwrap().beside(2.0).unwrap();
        assert_eq!(c.points(), [point(0.0, 2.0), point(10.0, 2.0)]);
    }
}
