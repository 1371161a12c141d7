//! Arcs along cell edges to smooth lines: simplified to key points, and a cubic Hermite curve through them.
//!
//! The line that is simplified runs through the middles of the cell edges (marching squares of each class against the
//! rest). Key points are those of D. Douglas and T. Peucker, "Algorithms for the reduction of the number of points required
//! to represent a digitized line", 1973; the curve is that of [`crate::borders::smooth`].
//!
//! Invariants: junctions stay; no line meets another or itself elsewhere than in a junction, and none passes over another.
//! Where one would, its bend is taken back, then key points are put back, in the end the line through the middles, which
//! is free of meetings.

use super::outline::{Arc, Corner, Outlines};
use crate::borders::crossing::{Piece, do_meet};
use crate::borders::smooth::tangents_of;
use crate::borders::topology;
use crate::spline::by_spacing;
use geo::Coord;
use rayon::prelude::*;
use std::collections::{HashMap, HashSet};

/// Tangents are shortened in these steps.
const SHORTER: [f64; 4] = [1.0, 0.5, 0.25, 0.0];
/// A curve may leave its chord by this many times the tolerance of the simplification.
const BULGE: f64 = 1.5;
/// Distance between the points of a curve, cells.
const SPACING: f64 = 1.5;
/// Coordinates are whole multiples of 1 / this: what does not meet here, does not meet after projection either.
const SNAP: f64 = 1024.0;
/// Edge of the squares by which close lines are found, cells.
const BUCKET: f64 = 8.0;

/// An arc on its way to its final form.
struct Line {
    /// All points: the ends, and the middles of cell edges where the line bends.
    points: Vec<Coord<f64>>,
    is_closed: bool,
    /// Numbers of the points that are kept, the first and last among them.
    keys: Vec<usize>,
    /// For each segment between keys the number of its [`SHORTER`].
    steps: Vec<usize>,
    /// For each segment its curve.
    curves: Vec<Vec<Coord<f64>>>,
}

/// The arcs as they are.
pub(super) fn exact(outlines: &Outlines) -> Vec<Vec<Coord<f64>>> {
    outlines.arcs.iter().map(|a| a.corners.iter().map(|c| c.coord()).collect()).collect()
}

/// One line per arc, with the same ends save for rings. `strength` is the length of the tangents, 0 to 1; `tolerance_px` how far
/// key points may be from the line.
///
/// About a microsecond per bend of the outlines.
pub(super) fn smooth(outlines: &Outlines, tolerance_px: f64, strength: f64) -> Vec<Vec<Coord<f64>>> {
    let mut lines: Vec<Line> = outlines.arcs.par_iter().map(|a| Line::of(a, tolerance_px)).collect();
    lines.par_iter_mut().for_each(|l| {
        l.bend(strength);
        l.steady(tolerance_px, strength);
    });
    let markers = Markers::of(&lines);
    let mut changed: Option<HashSet<usize>> = None;
    loop {
        let mut faults = meetings(&lines, changed.as_ref());
        faults.extend(passings(&lines, &markers, changed.as_ref()));
        faults.par_sort_unstable();
        faults.dedup();
        let mut again = HashSet::new();
        // From the last segment, so that numbers hold while some are parted.
        for &(line, segment) in faults.iter().rev() {
            if lines[line].give_way(segment) {
                again.insert(line);
            }
        }
        if again.is_empty() {
            break;
        }
        lines.par_iter_mut().enumerate().filter(|(k, _)| again.contains(k)).for_each(|(_, l)| l.bend(strength));
        changed = Some(again);
    }
    lines.into_par_iter().map(|l| l.joined()).collect()
}

impl Line {
    fn of(arc: &Arc, tolerance: f64) -> Line {
        let points = if arc.is_frame { arc.corners.iter().map(|c| c.coord()).collect() } else { middles(arc) };
        // Also an arc that ends at the junction where it began encloses something.
        let keys = keys(&points, arc.corners[0] == arc.corners[arc.corners.len() - 1], tolerance);
        let steps = vec![0; keys.len() - 1];
        Line { points, is_closed: arc.is_closed, keys, steps, curves: Vec::new() }
    }

    /// Draws the curves anew.
    fn bend(&mut self, strength: f64) {
        let arc = topology::Arc {
            points: self.keys.iter().map(|k| self.points[*k]).collect(),
            is_closed: self.is_closed,
            users: Vec::new(),
        };
        let tangents = tangents_of(&arc);
        let snap = |c: Coord<f64>| Coord { x: (c.x * SNAP).round() / SNAP, y: (c.y * SNAP).round() / SNAP };
        self.curves = self
            .steps
            .iter()
            .enumerate()
            .map(|(s, step)| {
                let ends = [arc.points[s], arc.points[s + 1]];
                let line = by_spacing(ends, tangents[s], strength * SHORTER[*step], SPACING);
                let mut line: Vec<Coord<f64>> = line.into_iter().map(snap).collect();
                line.dedup();
                if bulge(&line) < 0.05 && line.len() > 2 {
                    line = vec![line[0], line[line.len() - 1]];
                }
                line
            })
            .collect();
    }

    /// Shortens tangents until no curve leaves its chord by too much.
    fn steady(&mut self, tolerance: f64, strength: f64) {
        for _ in 1..SHORTER.len() {
            let mut is_changed = false;
            for (step, line) in self.steps.iter_mut().zip(&self.curves) {
                if *step + 1 < SHORTER.len() && bulge(line) > BULGE * tolerance {
                    *step += 1;
                    is_changed = true;
                }
            }
            if !is_changed {
                return;
            }
            self.bend(strength);
        }
    }

    /// Takes a segment's bend back by a step, or puts a key point back; `false` when it is the given line already.
    fn give_way(&mut self, segment: usize) -> bool {
        if self.steps[segment] + 1 < SHORTER.len() {
            self.steps[segment] += 1;
            return true;
        }
        let (first, last) = (self.keys[segment], self.keys[segment + 1]);
        if last - first < 2 {
            return false;
        }
        let (middle, _) = farthest(&self.points[first..=last]);
        self.keys.insert(segment + 1, first + middle);
        self.steps.insert(segment + 1, SHORTER.len() - 1);
        true
    }

    fn joined(self) -> Vec<Coord<f64>> {
        let mut line: Vec<Coord<f64>> = Vec::new();
        for part in self.curves {
            line.pop();
            line.extend(part);
        }
        line
    }
}

/// The line through the middles of an arc's cell edges; open arcs begin and end at their junctions.
fn middles(arc: &Arc) -> Vec<Coord<f64>> {
    let mut points: Vec<Coord<f64>> = Vec::with_capacity(2 * arc.corners.len());
    if !arc.is_closed {
        points.push(arc.corners[0].coord());
    }
    let unit = |a: Corner, b: Corner| {
        let (a, b) = (a.coord(), b.coord());
        let length = (b.x - a.x).abs() + (b.y - a.y).abs();
        (b - a) / length
    };
    for pair in arc.corners.windows(2) {
        let half = unit(pair[0], pair[1]) / 2.0;
        let (from, to) = (pair[0].coord() + half, pair[1].coord() - half);
        points.push(from);
        if to != from {
            points.push(to);
        }
    }
    if arc.is_closed {
        points.push(points[0]);
    } else {
        points.push(arc.corners[arc.corners.len() - 1].coord());
    }
    // What lies in line between its neighbours says nothing.
    let mut kept: Vec<Coord<f64>> = Vec::with_capacity(points.len());
    for p in points {
        if let [.., a, b] = kept[..]
            && (b.x - a.x) * (p.y - b.y) == (b.y - a.y) * (p.x - b.x)
        {
            kept.pop();
        }
        kept.push(p);
    }
    kept
}

/// Number of the point farthest from the chord, and its distance.
fn farthest(points: &[Coord<f64>]) -> (usize, f64) {
    let (a, b) = (points[0], points[points.len() - 1]);
    let chord = b - a;
    let length2 = chord.x * chord.x + chord.y * chord.y;
    let mut best = (points.len() / 2, -1.0);
    for (k, p) in points.iter().enumerate().take(points.len() - 1).skip(1) {
        let v = *p - a;
        let along = if length2 > 0.0 { ((v.x * chord.x + v.y * chord.y) / length2).clamp(0.0, 1.0) } else { 0.0 };
        let off = v - chord * along;
        let distance2 = off.x * off.x + off.y * off.y;
        if distance2 > best.1 {
            best = (k, distance2);
        }
    }
    (best.0, best.1.max(0.0).sqrt())
}

/// How far the line leaves its chord.
fn bulge(line: &[Coord<f64>]) -> f64 {
    if line.len() < 3 { 0.0 } else { farthest(line).1 }
}

/// Numbers of the key points, in order, both ends included; rings keep four at least.
fn keys(points: &[Coord<f64>], is_loop: bool, tolerance: f64) -> Vec<usize> {
    let last = points.len() - 1;
    let mut keys = vec![0, last];
    let mut open = vec![(0, last)];
    if is_loop {
        let from_start = |k: &usize| (points[*k].x - points[0].x).powi(2) + (points[*k].y - points[0].y).powi(2);
        let far = (1..last).max_by(|a, b| from_start(a).total_cmp(&from_start(b)).then(b.cmp(a))).unwrap_or(last);
        keys.push(far);
        open = vec![(0, far), (far, last)];
    }
    while let Some((first, end)) = open.pop() {
        if end - first < 2 {
            continue;
        }
        let (middle, distance) = farthest(&points[first..=end]);
        if distance > tolerance {
            keys.push(first + middle);
            open.extend([(first, first + middle), (first + middle, end)]);
        }
    }
    keys.sort_unstable();
    keys.dedup();
    if is_loop && keys.len() < 5 { (0..=last).collect() } else { keys }
}

fn bucket(c: Coord<f64>) -> (i32, i32) {
    ((c.x / BUCKET).floor() as i32, (c.y / BUCKET).floor() as i32)
}

/// Every bucket that the box of two points meets.
fn buckets(a: Coord<f64>, b: Coord<f64>) -> impl Iterator<Item = u64> {
    let low = bucket(Coord { x: a.x.min(b.x), y: a.y.min(b.y) });
    let high = bucket(Coord { x: a.x.max(b.x), y: a.y.max(b.y) });
    (low.1..=high.1).flat_map(move |y| (low.0..=high.0).map(move |x| number((x, y))))
}

fn number((x, y): (i32, i32)) -> u64 {
    // One more, for what lies just beyond the raster.
    ((y + 1) as u64) << 32 | (x + 1) as u64
}

/// Segments, (line, segment), that meet others elsewhere than in a common end; only those of pairs in which a `changed` line is.
fn meetings(lines: &[Line], changed: Option<&HashSet<usize>>) -> Vec<(usize, usize)> {
    let is_changed = |line: usize| changed.is_none_or(|c| c.contains(&line));
    let pieces_of = |line: usize| {
        lines[line]
            .curves
            .iter()
            .enumerate()
            .flat_map(move |(index, curve)| curve.windows(2).map(move |w| Piece { a: w[0], b: w[1], line, index }))
    };
    let near: Option<HashSet<u64>> = changed.map(|c| {
        c.iter().flat_map(|line| pieces_of(*line).flat_map(|p| buckets(p.a, p.b)).collect::<Vec<_>>()).collect()
    });
    let mut entries: Vec<(u64, Piece)> = (0..lines.len())
        .into_par_iter()
        .flat_map_iter(|line| {
            let near = &near;
            pieces_of(line).flat_map(move |p| {
                buckets(p.a, p.b).filter(move |b| near.as_ref().is_none_or(|n| n.contains(b))).map(move |b| (b, p))
            })
        })
        .collect();
    entries.par_sort_by_key(|e| e.0);
    entries
        .par_chunk_by(|a, b| a.0 == b.0)
        .flat_map_iter(|group| {
            let mut found = Vec::new();
            for (k, (_, p)) in group.iter().enumerate() {
                for (_, q) in &group[k + 1..] {
                    let apart = p.a.x.max(p.b.x) < q.a.x.min(q.b.x)
                        || q.a.x.max(q.b.x) < p.a.x.min(p.b.x)
                        || p.a.y.max(p.b.y) < q.a.y.min(q.b.y)
                        || q.a.y.max(q.b.y) < p.a.y.min(p.b.y);
                    if !apart && (is_changed(p.line) || is_changed(q.line)) && do_meet(p, q) {
                        found.extend([(p.line, p.index), (q.line, q.index)]);
                    }
                }
            }
            found
        })
        .collect()
}

/// A point of each line, by bucket: a line that meets none but has passed over another has its point on the wrong side.
struct Markers(HashMap<u64, Vec<(usize, Coord<f64>)>>);

impl Markers {
    fn of(lines: &[Line]) -> Markers {
        let mut by_bucket: HashMap<u64, Vec<(usize, Coord<f64>)>> = HashMap::new();
        for (k, line) in lines.iter().enumerate() {
            by_bucket.entry(number(bucket(line.points[0]))).or_default().push((k, line.points[0]));
        }
        Markers(by_bucket)
    }
}

/// Segments between whose curve and given line the point of another line lies.
fn passings(lines: &[Line], markers: &Markers, changed: Option<&HashSet<usize>>) -> Vec<(usize, usize)> {
    (0..lines.len())
        .into_par_iter()
        .filter(|line| changed.is_none_or(|c| c.contains(line)))
        .flat_map_iter(|k| {
            let line = &lines[k];
            line.curves
                .iter()
                .enumerate()
                .filter(move |(s, curve)| {
                    let given = &line.points[line.keys[*s]..=line.keys[*s + 1]];
                    if given.len() < 3 && curve.len() < 3 {
                        return false;
                    }
                    let figure: Vec<Coord<f64>> =
                        curve.iter().chain(given[1..given.len() - 1].iter().rev()).copied().collect();
                    let low = figure.iter().copied().reduce(|a, b| Coord { x: a.x.min(b.x), y: a.y.min(b.y) });
                    let high = figure.iter().copied().reduce(|a, b| Coord { x: a.x.max(b.x), y: a.y.max(b.y) });
                    let (Some(low), Some(high)) = (low, high) else { return false };
                    let (first, last) = (given[0], given[given.len() - 1]);
                    buckets(low, high)
                        .filter_map(|b| markers.0.get(&b))
                        .flatten()
                        .any(|(other, p)| *other != k && *p != first && *p != last && is_within(*p, &figure))
                })
                .map(move |(s, _)| (k, s))
        })
        .collect()
}

/// Whether `p` lies in the figure, by the parity of crossings on a ray.
fn is_within(p: Coord<f64>, figure: &[Coord<f64>]) -> bool {
    let n = figure.len();
    (0..n)
        .filter(|&i| {
            let (a, b) = (figure[i], figure[(i + 1) % n]);
            (a.y > p.y) != (b.y > p.y) && p.x < (b.x - a.x) * (p.y - a.y) / (b.y - a.y) + a.x
        })
        .count()
        % 2
        == 1
}

#[cfg(test)]
mod tests {
    use super::super::outline::{NOTHING, outlines};
    use super::super::runs::Components;
    use super::*;
    use proptest::prelude::*;

    fn traced(labels: &[u8], cols: usize) -> Outlines {
        let components = Components::of(labels, cols);
        outlines(&components.cells(|k| k), cols, components.len())
    }

    fn twice_area(outlines: &Outlines, lines: &[Vec<Coord<f64>>], region: usize) -> f64 {
        outlines.rings[region]
            .iter()
            .flatten()
            .map(|u| {
                let sum: f64 = lines[u.arc].windows(2).map(|w| w[1].x * w[0].y - w[0].x * w[1].y).sum();
                if u.is_forward { sum } else { -sum }
            })
            .sum()
    }

    #[test]
    fn a_disc_of_cells_becomes_round() {
        let (n, r) = (81usize, 30.0);
        let labels: Vec<u8> =
            (0..n * n).map(|k| u8::from(((k % n) as f64 - 40.0).hypot((k / n) as f64 - 40.0) <= r)).collect();
        let found = traced(&labels, n);
        let lines = smooth(&found, 0.6, 1.0);
        let ring = found.arcs.iter().position(|a| a.is_closed).unwrap();
        for p in &lines[ring] {
            let off = (p.x - 40.5).hypot(p.y - 40.5) - r;
            assert!(off.abs() < 1.0, "{off}");
        }
        let cells = labels.iter().filter(|l| **l == 1).count() as f64;
        assert!((twice_area(&found, &lines, 1) / 2.0 / cells - 1.0).abs() < 0.01);
        assert!(lines[ring].len() < 140, "{}", lines[ring].len());
    }

    #[test]
    fn a_single_cell_keeps_a_ring() {
        let found = traced(&[0, 0, 0, 0, 1, 0, 0, 0, 0], 3);
        let lines = smooth(&found, 2.0, 1.0);
        assert!(twice_area(&found, &lines, 1) > 0.5);
    }

    #[test]
    fn the_frame_stays_straight() {
        let found = traced(&[0, 0, 1, 1, 0, 0, 1, 1], 4);
        for (arc, line) in found.arcs.iter().zip(smooth(&found, 0.6, 1.0)) {
            if arc.left == NOTHING || arc.right == NOTHING {
                assert_eq!(line, [arc.corners[0].coord(), arc.corners[arc.corners.len() - 1].coord()]);
            }
        }
    }

    proptest! {
        #[test]
        fn smooth_lines_part_the_raster_as_cells_do(
            cols in 2usize..14, cells in prop::collection::vec(0u8..3, 30..190), tolerance in 0.1f64..3.0, strength in 0.05f64..=1.0,
        ) {
            let rows = cells.len() / cols;
            let found = traced(&cells[..rows * cols], cols);
            let lines = smooth(&found, tolerance, strength);
            for (arc, line) in found.arcs.iter().zip(&lines) {
                prop_assert!(line.len() >= 2);
                if !arc.is_closed {
                    prop_assert_eq!(line[0], arc.corners[0].coord());
                    prop_assert_eq!(line[line.len() - 1], arc.corners[arc.corners.len() - 1].coord());
                }
            }
            let pieces: Vec<Piece> = lines.iter().enumerate()
                .flat_map(|(line, l)| l.windows(2).enumerate().map(move |(index, w)| Piece { a: w[0], b: w[1], line, index })).collect();
            for (k, p) in pieces.iter().enumerate() {
                for q in &pieces[k + 1..] {
                    prop_assert!(!do_meet(p, q), "{:?} {:?}", p, q);
                }
            }
            // Every region keeps an area, and all together fill the raster.
            let areas: Vec<f64> = (0..found.rings.len()).map(|k| twice_area(&found, &lines, k) / 2.0).collect();
            prop_assert!(areas.iter().all(|a| *a > 0.0), "{:?}", areas);
            prop_assert!((areas.iter().sum::<f64>() - (cols * rows) as f64).abs() < 1e-6);
        }
    }
}
