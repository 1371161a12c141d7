//! Which boxes are taken: labels and symbols that are placed may not meet each other or the frame, and prefer places with
//! few lines under them. Sheet pixels of the map window.

use super::curve::{Point, point};
use super::lettering::{Lettered, Quad};
use crate::raster::Raster;
use std::collections::HashMap;

/// Side of a bucket, pixels.
const BUCKET: f32 = 64.0;
/// Pixels per cell of the map of lines.
const LINE_CELL: usize = 2;

/// The map window with all that is placed on it so far.
pub(super) struct Placing {
    width: f32,
    height: f32,
    /// Clear margin to the frame and between boxes.
    margin: f32,
    quads: Vec<Quad>,
    buckets: HashMap<(i32, i32), Vec<usize>>,
    lines: Raster<u8>,
    /// Boxes that are still to be filled, with what covering one costs.
    wanted: Vec<(Quad, f32)>,
}

impl Placing {
    /// An empty window.
    pub fn new(width: usize, height: usize, margin: f32) -> Placing {
        let lines = Raster::filled(width.div_ceil(LINE_CELL), height.div_ceil(LINE_CELL), 0);
        Placing {
            width: width as f32,
            height: height as f32,
            margin,
            quads: Vec::new(),
            buckets: HashMap::new(),
            lines,
            wanted: Vec::new(),
        }
    }

    /// Pixels across and down.
    pub fn size(&self) -> (usize, usize) {
        (self.width as usize, self.height as usize)
    }

    /// Marks a line that letters had better not cover, with its weight.
    pub fn mark_line(&mut self, points: &[Point], weight: u8) {
        let step = LINE_CELL as f32;
        for w in points.windows(2) {
            let n = (w[0].to(w[1]) / step).ceil().min(1e5) as usize;
            for k in 0..=n {
                let t = k as f32 / n.max(1) as f32;
                let (x, y) = (w[0].x + (w[1].x - w[0].x) * t, w[0].y + (w[1].y - w[0].y) * t);
                if x >= 0.0 && y >= 0.0 && x < self.width && y < self.height {
                    let (c, r) = (x as usize / LINE_CELL, y as usize / LINE_CELL);
                    self.lines.set(c, r, self.lines.at(c, r).max(weight));
                }
            }
        }
    }

    /// Asks for `quad` to be left free, for what is placed later; covering it costs `weight`.
    pub fn want(&mut self, quad: Quad, weight: f32) {
        self.wanted.push((quad, weight));
    }

    /// What it costs to set letters: marked lines under their boxes, and boxes wanted later that they or the gaps between
    /// them cover.
    pub fn cost_of(&self, set: &Lettered) -> f32 {
        let ground = set.ground();
        let (lo, hi) = ground
            .iter()
            .map(bounds)
            .fold((point(f32::MAX, f32::MAX), point(f32::MIN, f32::MIN)), |(a, b), (lo, hi)| {
                (point(a.x.min(lo.x), a.y.min(lo.y)), point(b.x.max(hi.x), b.y.max(hi.y)))
            });
        let frame = upright(lo.x, lo.y, hi.x, hi.y);
        let near = self.wanted.iter().filter(|(q, _)| overlap(&frame, q));
        let covered = near.filter(|(q, _)| ground.iter().any(|g| overlap(g, q))).map(|(_, weight)| weight);
        self.cost(&set.quads) + covered.sum::<f32>()
    }

    /// How much of marked lines lies under `quads`: weight times pixels of line, per hundred.
    fn cost(&self, quads: &[Quad]) -> f32 {
        let step = LINE_CELL as f32;
        let mut sum = 0u32;
        for q in quads {
            let (lo, hi) = bounds(q);
            let (c0, c1) = ((lo.x / step).max(0.0) as usize, (hi.x / step).max(0.0) as usize);
            let (r0, r1) = ((lo.y / step).max(0.0) as usize, (hi.y / step).max(0.0) as usize);
            for r in r0..=r1.min(self.lines.rows.saturating_sub(1)) {
                for c in c0..=c1.min(self.lines.cols.saturating_sub(1)) {
                    let v = self.lines.at(c, r);
                    if v > 0 && inside(q, point((c as f32 + 0.5) * step, (r as f32 + 0.5) * step)) {
                        sum += u32::from(v);
                    }
                }
            }
        }
        sum as f32 * step / 100.0
    }

    /// Whether `quads` lie inside the frame and meet nothing placed, with the margin kept.
    pub fn is_free(&self, quads: &[Quad]) -> bool {
        quads.iter().all(|q| {
            let (lo, hi) = bounds(q);
            let m = self.margin;
            lo.x >= m
                && lo.y >= m
                && hi.x <= self.width - m
                && hi.y <= self.height - m
                && !self.near(lo, hi).any(|k| self.meets(q, &self.quads[k]))
        })
    }

    fn meets(&self, a: &Quad, b: &Quad) -> bool {
        overlap(&grown(a, self.margin), b)
    }

    fn near(&self, lo: Point, hi: Point) -> impl Iterator<Item = usize> + '_ {
        let m = self.margin;
        let cell = |v: f32| (v / BUCKET).floor() as i32;
        let (x0, x1, y0, y1) = (cell(lo.x - m), cell(hi.x + m), cell(lo.y - m), cell(hi.y + m));
        (y0..=y1)
            .flat_map(move |y| (x0..=x1).map(move |x| (x, y)))
            .filter_map(|key| self.buckets.get(&key))
            .flatten()
            .copied()
    }

    /// Takes the place.
    pub fn take(&mut self, quads: &[Quad]) {
        for q in quads {
            let (lo, hi) = bounds(q);
            let cell = |v: f32| (v / BUCKET).floor() as i32;
            for y in cell(lo.y)..=cell(hi.y) {
                for x in cell(lo.x)..=cell(hi.x) {
                    self.buckets.entry((x, y)).or_default().push(self.quads.len());
                }
            }
            self.quads.push(*q);
        }
    }
}

/// Smallest and greatest x and y.
pub(super) fn bounds(q: &Quad) -> (Point, Point) {
    q.iter().fold((point(f32::MAX, f32::MAX), point(f32::MIN, f32::MIN)), |(lo, hi), p| {
        (point(lo.x.min(p.x), lo.y.min(p.y)), point(hi.x.max(p.x), hi.y.max(p.y)))
    })
}

/// An upright box.
pub(super) fn upright(x0: f32, y0: f32, x1: f32, y1: f32) -> Quad {
    [point(x0, y0), point(x1, y0), point(x1, y1), point(x0, y1)]
}

/// A box with each side moved out by `by`.
fn grown(q: &Quad, by: f32) -> Quad {
    let axis = |a: Point, b: Point| {
        let d = a.to(b).max(1e-6);
        point((b.x - a.x) / d * by, (b.y - a.y) / d * by)
    };
    let (u, v) = (axis(q[0], q[1]), axis(q[0], q[3]));
    let shift = |p: Point, su: f32, sv: f32| point(p.x + su * u.x + sv * v.x, p.y + su * u.y + sv * v.y);
    [shift(q[0], -1.0, -1.0), shift(q[1], 1.0, -1.0), shift(q[2], 1.0, 1.0), shift(q[3], -1.0, 1.0)]
}

fn inside(q: &Quad, p: Point) -> bool {
    let side = |k: usize| {
        let (a, b) = (q[k], q[(k + 1) % 4]);
        (b.x - a.x) * (p.y - a.y) - (b.y - a.y) * (p.x - a.x)
    };
    (0..4).all(|k| side(k) >= 0.0) || (0..4).all(|k| side(k) <= 0.0)
}

/// Whether two convex boxes share area (separating axes).
pub(super) fn overlap(a: &Quad, b: &Quad) -> bool {
    let apart = |from: &Quad, other: &Quad| {
        (0..4).any(|k| {
            let (p, q) = (from[k], from[(k + 1) % 4]);
            let normal = point(q.y - p.y, p.x - q.x);
            let reach = |quad: &Quad| {
                quad.iter()
                    .map(|v| v.x * normal.x + v.y * normal.y)
                    .fold((f32::MAX, f32::MIN), |(lo, hi), d| (lo.min(d), hi.max(d)))
            };
            let ((a0, a1), (b0, b1)) = (reach(from), reach(other));
            a1 <= b0 || b1 <= a0
        })
    };
    !apart(a, b) && !apart(b, a)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_meet_or_not() {
        let a = upright(0.0, 0.0, 10.0, 10.0);
        assert!(overlap(&a, &upright(9.0, 9.0, 20.0, 20.0)));
        assert!(!overlap(&a, &upright(10.0, 0.0, 20.0, 10.0)));
        // A tilted box whose upright bounds meet, but which does not.
        let tilted = [point(14.0, 4.0), point(24.0, 14.0), point(18.0, 20.0), point(8.0, 10.5)];
        assert!(!overlap(&upright(0.0, 12.0, 8.0, 20.0), &tilted));
        assert!(overlap(&a, &upright(2.0, 2.0, 3.0, 3.0)));
    }

    #[test]
    fn the_frame_and_taken_places_are_refused() {
        let mut p = Placing::new(100, 100, 2.0);
        assert!(p.is_free(&[upright(10.0, 10.0, 30.0, 20.0)]));
        assert!(!p.is_free(&[upright(1.0, 10.0, 30.0, 20.0)]));
        p.take(&[upright(10.0, 10.0, 30.0, 20.0)]);
        assert!(!p.is_free(&[upright(31.0, 10.0, 40.0, 20.0)]));
        assert!(p.is_free(&[upright(33.0, 10.0, 40.0, 20.0)]));
    }

    #[test]
    fn what_is_wanted_later_costs_to_cover() {
        let mut p = Placing::new(100, 100, 0.0);
        p.want(upright(40.0, 40.0, 44.0, 44.0), 0.7);
        let mut path = tiny_skia::PathBuilder::new();
        path.push_rect(tiny_skia::Rect::from_ltrb(0.0, 0.0, 1.0, 1.0).unwrap());
        let letters = vec![upright(10.0, 38.0, 30.0, 46.0), upright(60.0, 38.0, 80.0, 46.0)];
        let apart = Lettered { path: path.finish().unwrap(), quads: letters, gaps: Vec::new() };
        assert_eq!(p.cost_of(&apart), 0.0);
        // The gap between two letters covers it as well.
        let joined = Lettered { gaps: vec![upright(30.0, 38.0, 60.0, 46.0)], ..apart };
        assert_eq!(p.cost_of(&joined), 0.7);
    }

    #[test]
    fn lines_under_a_box_cost() {
        let mut p = Placing::new(100, 100, 0.0);
        p.mark_line(&[point(0.0, 50.0), point(99.0, 50.0)], 3);
        assert_eq!(p.cost(&[upright(10.0, 10.0, 30.0, 20.0)]), 0.0);
        assert!(p.cost(&[upright(10.0, 40.0, 30.0, 60.0)]) > 0.2);
    }
}
