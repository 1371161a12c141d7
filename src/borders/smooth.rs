//! Smooth borders: a cubic Hermite curve through the key points of each shared arc.
//!
//! Tangents are those of the centripetal Catmull–Rom curve (E. Catmull and R. Rom, "A class of local interpolating
//! splines", 1974; C. Yuksel, S. Schaefer, J. Keyser, "Parameterization and applications of Catmull–Rom curves",
//! Computer-Aided Design 43, 2011), which forms no cusp or loop within a segment. Ends at junctions are those of a natural
//! spline.
//!
//! Invariants: every key point lies on its curve; junctions stay; a curve never crosses itself or another arc unless the
//! arcs crossed before, and no key point changes sides. Where a curve would, that segment's tangents are shortened, in
//! the end to the straight line that was given, so that areas that share their borders without gap or overlap still do.

use super::crossing::{Piece, for_each_meeting, pieces_of};
use super::topology::{Arc, Topology};
use crate::spline::{self, Ends, Knots};
use geo::Coord;
use std::collections::HashSet;

/// How to smooth borders.
#[derive(Debug, Clone, PartialEq)]
pub struct SmoothOptions {
    /// Length of the tangents, 0 (straight lines, as given) to 1 (Catmull–Rom).
    pub strength: f64,
    /// Distance between the points of the curve, in the unit of the plane.
    pub spacing: f64,
}

impl Default for SmoothOptions {
    fn default() -> Self {
        SmoothOptions { strength: 1.0, spacing: 500.0 }
    }
}

impl SmoothOptions {
    /// The distance between points that a raster of cells of `cell_m` can show: two cells, 500 m at the least.
    pub fn spacing_for(cell_m: f64) -> f64 {
        (2.0 * cell_m).max(500.0)
    }
}

/// The tangents of a segment that gets in the way are shortened in these steps.
const SHORTER: [f64; 4] = [1.0, 0.5, 0.25, 0.0];

/// One smooth line per arc of `topology`, with the arc's own ends; with strength 0 the arcs as they are.
///
/// Cost: a few passes over all points of the curves, each n log n and more where many overlap in x.
pub fn smooth_arcs(topology: &Topology, options: &SmoothOptions) -> Vec<Vec<Coord<f64>>> {
    let arcs = &topology.arcs;
    if options.strength <= 0.0 || !options.spacing.is_finite() || options.spacing <= 0.0 {
        return arcs.iter().map(|a| a.points.clone()).collect();
    }
    let strength = options.strength.min(1.0);
    let crossing_before = crossing_arcs(arcs);
    let may_cross = |i: usize, j: usize| crossing_before.contains(&(i.min(j), i.max(j)));
    let tangents: Vec<_> = arcs.iter().map(tangents_of).collect();
    let mut steps: Vec<Vec<usize>> = arcs.iter().map(|a| vec![0; a.points.len() - 1]).collect();
    let key_points = KeyPoints::of(arcs);

    loop {
        // Curves by arc and segment, each with both ends.
        let curves: Vec<Vec<Vec<Coord<f64>>>> = (0..arcs.len())
            .map(|i| {
                (0..steps[i].len())
                    .map(|s| {
                        let factor = strength * SHORTER[steps[i][s]];
                        let ends = [arcs[i].points[s], arcs[i].points[s + 1]];
                        spline::by_spacing(ends, tangents[i][s], factor, options.spacing)
                    })
                    .collect()
            })
            .collect();

        let mut to_shorten: HashSet<(usize, usize)> = HashSet::new();
        // Pieces are numbered by segment; `owners` leads back to arc and segment.
        let owners: Vec<(usize, usize)> =
            curves.iter().enumerate().flat_map(|(i, c)| (0..c.len()).map(move |s| (i, s))).collect();
        let pieces: Vec<Piece> = curves.iter().flatten().enumerate().flat_map(|(n, c)| pieces_of(c, n)).collect();
        for_each_meeting(
            &pieces,
            |p, q| !may_cross(owners[p.line].0, owners[q.line].0),
            |p, q| {
                to_shorten.insert(owners[p.line]);
                to_shorten.insert(owners[q.line]);
            },
        );
        for &(i, s) in &owners {
            let lens = &curves[i][s];
            if lens.len() > 2 && key_points.any_within(lens, |arc| !may_cross(i, arc)) {
                to_shorten.insert((i, s));
            }
        }

        let mut is_changed = false;
        for (i, s) in to_shorten {
            if steps[i][s] + 1 < SHORTER.len() {
                steps[i][s] += 1;
                is_changed = true;
            }
        }
        if !is_changed {
            return curves.into_iter().map(join).collect();
        }
    }
}

/// Pairs of arcs (lower number first, an arc with itself included) that cross as they are given: areas that overlap.
fn crossing_arcs(arcs: &[Arc]) -> HashSet<(usize, usize)> {
    let pieces: Vec<Piece> = arcs.iter().enumerate().flat_map(|(i, a)| pieces_of(&a.points, i)).collect();
    let mut pairs = HashSet::new();
    for_each_meeting(
        &pieces,
        |_, _| true,
        |p, q| {
            pairs.insert((p.line.min(q.line), p.line.max(q.line)));
        },
    );
    pairs
}

/// For each segment the curve's derivative at its two ends, for a parameter that runs from 0 to 1.
pub(crate) fn tangents_of(arc: &Arc) -> Vec<[Coord<f64>; 2]> {
    spline::tangents(&arc.points, arc.is_closed, Knots::Centripetal, Ends::Natural)
}

/// The curves of an arc's segments as one line.
fn join(curves: Vec<Vec<Coord<f64>>>) -> Vec<Coord<f64>> {
    let mut line: Vec<Coord<f64>> = Vec::new();
    for curve in curves {
        line.pop();
        line.extend(curve);
    }
    line
}

/// The key points of all arcs in order of x, each with its arc.
struct KeyPoints(Vec<(Coord<f64>, usize)>);

impl KeyPoints {
    fn of(arcs: &[Arc]) -> KeyPoints {
        let mut points: Vec<_> =
            arcs.iter().enumerate().flat_map(|(i, a)| a.points.iter().map(move |&p| (p, i))).collect();
        points.sort_by(|a, b| a.0.x.total_cmp(&b.0.x));
        KeyPoints(points)
    }

    /// Whether a key point of a `wanted` arc lies between the curve and its chord.
    fn any_within(&self, curve: &[Coord<f64>], wanted: impl Fn(usize) -> bool) -> bool {
        let (first, last) = (curve[0], curve[curve.len() - 1]);
        let bound = |f: fn(f64, f64) -> f64, v: fn(&Coord<f64>) -> f64| curve.iter().map(v).reduce(f).unwrap_or(0.0);
        let (west, east) = (bound(f64::min, |c| c.x), bound(f64::max, |c| c.x));
        let (south, north) = (bound(f64::min, |c| c.y), bound(f64::max, |c| c.y));
        let from = self.0.partition_point(|(p, _)| p.x < west);
        self.0[from..]
            .iter()
            .take_while(|(p, _)| p.x <= east)
            .filter(|(p, arc)| p.y >= south && p.y <= north && *p != first && *p != last && wanted(*arc))
            .any(|(p, _)| is_within(*p, curve))
    }
}

/// Whether `p` lies in the figure that the line makes with its chord, by the parity of crossings on a ray.
fn is_within(p: Coord<f64>, line: &[Coord<f64>]) -> bool {
    let n = line.len();
    (0..n)
        .filter(|&i| {
            let (a, b) = (line[i], line[(i + 1) % n]);
            (a.y > p.y) != (b.y > p.y) && p.x < (b.x - a.x) * (p.y - a.y) / (b.y - a.y) + a.x
        })
        .count()
        % 2
        == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use geo::{Area, LineString, MultiPolygon, Polygon, polygon};
    use proptest::prelude::*;

    const FINE: SmoothOptions = SmoothOptions { strength: 1.0, spacing: 0.05 };

    fn square() -> MultiPolygon<f64> {
        polygon![(x: -1.0, y: -1.0), (x: 1.0, y: -1.0), (x: 1.0, y: 1.0), (x: -1.0, y: 1.0)].into()
    }

    #[test]
    fn a_closed_arc_is_smooth_everywhere_and_symmetric() {
        let t = Topology::build(&[square()], 0.0);
        let smooth = t.assemble(&smooth_arcs(&t, &FINE));
        // Between the square (4) and its circumscribed circle (2 pi).
        let area = smooth[0].unsigned_area();
        assert!(area > 5.0 && area < 6.0, "{area}");
        let ring = &smooth[0].0[0].exterior().0;
        for p in ring {
            assert!(ring.iter().any(|q| (q.x + p.x).abs() < 1e-12 && (q.y + p.y).abs() < 1e-12), "{p:?}");
        }
        // No corner sharper than the sampling explains.
        for w in ring.windows(3) {
            let (u, v) = (w[1] - w[0], w[2] - w[1]);
            assert!((u.x * v.x + u.y * v.y) / (u.x.hypot(u.y) * v.x.hypot(v.y)) > 0.9);
        }
    }

    #[test]
    fn strength_0_returns_the_input() {
        let t = Topology::build(&[square()], 0.0);
        let lines = smooth_arcs(&t, &SmoothOptions { strength: 0.0, ..FINE });
        assert_eq!(lines, t.arcs.iter().map(|a| a.points.clone()).collect::<Vec<_>>());
    }

    #[test]
    fn a_straight_line_stays_straight() {
        let points: Vec<Coord<f64>> = [(0.0, 0.0), (1.0, 0.0), (5.0, 0.0)].map(Coord::from).to_vec();
        let arc = Arc { points: points.clone(), is_closed: false, users: vec![] };
        let [m0, m1] = tangents_of(&arc)[0];
        assert_eq!((m0.y, m1.y), (0.0, 0.0));
        assert_eq!(spline::by_spacing([points[0], points[1]], [m0, m1], 1.0, 0.1), points[..2]);
    }

    #[test]
    fn an_enclave_close_to_a_border_stays_on_its_side() {
        // The apex's neighbourhood bulges outward over the little triangle unless it is held back.
        let big: MultiPolygon<f64> = polygon![
            (x: 0.0, y: 0.0), (x: 10.0, y: 0.0), (x: 10.0, y: 10.0), (x: 5.0, y: 16.0), (x: 0.0, y: 10.0),
        ]
        .into();
        let small: MultiPolygon<f64> = polygon![(x: 10.2, y: 5.0), (x: 10.4, y: 4.9), (x: 10.4, y: 5.1)].into();
        let t = Topology::build(&[big, small], 0.0);
        let smooth = t.assemble(&smooth_arcs(&t, &SmoothOptions { strength: 1.0, spacing: 0.1 }));
        use geo::Intersects;
        assert!(!smooth[0].intersects(&smooth[1]));
        // Elsewhere it is smoothed all the same.
        assert!(smooth[0].0[0].exterior().0.len() > 100);
    }

    /// A grid of quadrilaterals with displaced inner nodes: a partition of the square from 0 to `n`.
    fn partition(n: usize, shifts: &[(f64, f64)]) -> Vec<MultiPolygon<f64>> {
        let node = |c: usize, r: usize| {
            let (dx, dy) = shifts[(r * (n + 1) + c) % shifts.len()];
            let is_inner = |k: usize| k > 0 && k < n;
            Coord {
                x: c as f64 + if is_inner(c) && is_inner(r) { dx } else { 0.0 },
                y: r as f64 + if is_inner(r) && is_inner(c) { dy } else { 0.0 },
            }
        };
        // Cells joined in pairs along a row make borders with more than one segment.
        let mut areas = Vec::new();
        for r in 0..n {
            for c in (0..n).step_by(2) {
                let e = (c + 2).min(n);
                let mut ring: Vec<Coord<f64>> = (c..=e).map(|k| node(k, r)).collect();
                ring.extend((c..=e).rev().map(|k| node(k, r + 1)));
                ring.push(ring[0]);
                areas.push(Polygon::new(LineString::new(ring), vec![]).into());
            }
        }
        areas
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn a_partition_stays_a_partition(
            shifts in proptest::collection::vec((-0.45f64..0.45, -0.45f64..0.45), 49),
            n in 2usize..7,
            strength in 0.0f64..=1.0,
        ) {
            let areas = partition(n, &shifts);
            let t = Topology::build(&areas, 0.0);
            let lines = smooth_arcs(&t, &SmoothOptions { strength, spacing: 0.1 });
            // Every key point lies on its line, and the ends are the arc's.
            for (arc, line) in t.arcs.iter().zip(&lines) {
                prop_assert!(arc.points.iter().all(|p| line.contains(p)));
                prop_assert_eq!((arc.points[0], arc.points[arc.points.len() - 1]), (line[0], line[line.len() - 1]));
            }
            // No line meets another or itself but in junctions.
            let pieces: Vec<Piece> = lines.iter().enumerate().flat_map(|(i, l)| pieces_of(l, i)).collect();
            let mut meetings = 0;
            for_each_meeting(&pieces, |_, _| true, |_, _| meetings += 1);
            prop_assert_eq!(meetings, 0);
            // The parts make up the whole: the outer arcs alone enclose the sum of all areas.
            let smooth = t.assemble(&lines);
            let sum: f64 = smooth.iter().map(Area::signed_area).sum();
            let outer: f64 = t.arcs.iter().zip(&lines).filter(|(a, _)| a.users.len() == 1).map(|(a, l)| {
                let twice: f64 = l.windows(2).map(|w| w[0].x * w[1].y - w[1].x * w[0].y).sum();
                if a.users[0].is_left { twice / 2.0 } else { -twice / 2.0 }
            }).sum();
            prop_assert!((sum - outer).abs() < 1e-9, "{} {}", sum, outer);
            prop_assert!(smooth.iter().all(|a| a.signed_area() > 0.0));
        }

        #[test]
        fn order_of_areas_does_not_matter(
            shifts in proptest::collection::vec((-0.45f64..0.45, -0.45f64..0.45), 25),
            seed in any::<u64>(),
        ) {
            let areas = partition(4, &shifts);
            let mut order: Vec<usize> = (0..areas.len()).collect();
            let mut state = seed;
            for i in (1..order.len()).rev() {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                order.swap(i, (state >> 33) as usize % (i + 1));
            }
            let shuffled: Vec<_> = order.iter().map(|&i| areas[i].clone()).collect();
            let drawn = |areas: &[MultiPolygon<f64>]| {
                let t = Topology::build(areas, 0.0);
                t.assemble(&smooth_arcs(&t, &SmoothOptions { strength: 1.0, spacing: 0.1 }))
            };
            let (a, b) = (drawn(&areas), drawn(&shuffled));
            for (k, &i) in order.iter().enumerate() {
                prop_assert_eq!(&a[i], &b[k]);
            }
        }
    }
}
