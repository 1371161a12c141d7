//! Shared arcs: areas that have borders in common are cut into arcs, each stored once with the areas on its two sides,
//! so that whatever moves a border moves it for both neighbours.
//!
//! Invariants: every piece of boundary lies in exactly one arc; putting the arcs back together returns each area with the
//! vertices it had, plus those that neighbours have on its edges. Works in any plane; the tolerance is in its unit.

use geo::{Coord, LineString, MultiPolygon, Polygon};
use std::collections::HashMap;

/// One piece of border between two junctions, or a whole ring without junctions.
#[derive(Debug, Clone, PartialEq)]
pub struct Arc {
    /// Its key points, junctions included. The first and last are equal where the arc is a ring.
    pub points: Vec<Coord<f64>>,
    /// Whether it is a ring without junctions, which has no beginning.
    pub is_closed: bool,
    /// The areas that it bounds.
    pub users: Vec<ArcUse>,
}

/// One area's use of an arc.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArcUse {
    /// Number of the area, in order of input.
    pub area: usize,
    /// Whether the area lies on the left of the arc, or on its right.
    pub is_left: bool,
}

/// An arc in a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ArcRef {
    arc: usize,
    is_forward: bool,
}

type Ring = Vec<ArcRef>;

/// Areas as rings of shared arcs.
#[derive(Debug, Clone, PartialEq)]
pub struct Topology {
    /// The arcs, each once.
    pub arcs: Vec<Arc>,
    /// For each area its polygons, each with its rings, the exterior first.
    areas: Vec<Vec<Vec<Ring>>>,
}

impl Topology {
    /// The arcs of `areas`, which must have finite coordinates.
    ///
    /// Vertices closer than `tolerance` become one; a vertex that lies on a neighbour's edge within `tolerance` is
    /// entered there. An arc ends where more or fewer than two edges meet. Polygons that vanish are left out.
    pub fn build(areas: &[MultiPolygon<f64>], tolerance: f64) -> Topology {
        let (vertices, rings) = share(areas, tolerance);

        let mut neighbours: Vec<Vec<usize>> = vec![Vec::new(); vertices.len()];
        for ring in rings.iter().flatten().flatten() {
            for (a, b) in edges_of(ring) {
                for (from, to) in [(a, b), (b, a)] {
                    if !neighbours[from].contains(&to) {
                        neighbours[from].push(to);
                    }
                }
            }
        }
        let is_junction = |v: usize| neighbours[v].len() != 2;

        let mut arcs: Vec<Arc> = Vec::new();
        let mut known: HashMap<Vec<usize>, usize> = HashMap::new();
        let mut reference = |path: Vec<usize>, is_closed: bool, area: usize| -> ArcRef {
            let (path, is_forward) = canonical(path, is_closed);
            let arc = *known.entry(path).or_insert_with_key(|path| {
                arcs.push(Arc { points: path.iter().map(|&v| vertices[v]).collect(), is_closed, users: Vec::new() });
                arcs.len() - 1
            });
            let arc_use = ArcUse { area, is_left: is_forward };
            if !arcs[arc].users.contains(&arc_use) {
                arcs[arc].users.push(arc_use);
            }
            ArcRef { arc, is_forward }
        };
        let areas = rings
            .iter()
            .enumerate()
            .map(|(area, polygons)| {
                polygons
                    .iter()
                    .map(|polygon| {
                        polygon
                            .iter()
                            .map(|ring| {
                                cut_ring(ring, is_junction)
                                    .into_iter()
                                    .map(|(path, is_closed)| reference(path, is_closed, area))
                                    .collect()
                            })
                            .collect()
                    })
                    .collect()
            })
            .collect();
        Topology { arcs, areas }
    }

    /// The areas with each arc drawn as in `lines`, which has one line per arc with the same ends.
    ///
    /// # Panics
    /// When `lines` has another length than the arcs: a programming error, not reachable from input.
    pub fn assemble(&self, lines: &[Vec<Coord<f64>>]) -> Vec<MultiPolygon<f64>> {
        assert_eq!(lines.len(), self.arcs.len(), "one line per arc");
        let ring = |arcs: &Ring| {
            let mut points: Vec<Coord<f64>> = Vec::new();
            for r in arcs {
                points.pop();
                let line = lines[r.arc].iter().copied();
                if r.is_forward { points.extend(line) } else { points.extend(line.rev()) }
            }
            LineString::new(points)
        };
        self.areas
            .iter()
            .map(|polygons| {
                polygons
                    .iter()
                    .map(|rings| Polygon::new(ring(&rings[0]), rings[1..].iter().map(ring).collect()))
                    .collect()
            })
            .collect()
    }
}

/// `areas` with common vertices: close ones made one, and those on a neighbour's edge entered there.
pub fn share_vertices(areas: &[MultiPolygon<f64>], tolerance: f64) -> Vec<MultiPolygon<f64>> {
    let (vertices, rings) = share(areas, tolerance);
    let line = |ring: &Vec<usize>| {
        let mut points: Vec<Coord<f64>> = ring.iter().map(|&v| vertices[v]).collect();
        points.push(points[0]);
        LineString::new(points)
    };
    rings
        .iter()
        .map(|polygons| polygons.iter().map(|p| Polygon::new(line(&p[0]), p[1..].iter().map(line).collect())).collect())
        .collect()
}

/// Rings as vertex numbers, not closed: area, polygon, ring (exterior first, anticlockwise; holes clockwise).
type NumberedRings = Vec<Vec<Vec<Vec<usize>>>>;

/// Distinct vertices in order of x and y, and the rings through them.
fn share(areas: &[MultiPolygon<f64>], tolerance: f64) -> (Vec<Coord<f64>>, NumberedRings) {
    let mut all: Vec<Coord<f64>> =
        areas.iter().flat_map(super::crossing::rings_of).flat_map(|r| r.0.iter().map(|&c| tidy(c))).collect();
    all.sort_by(|a, b| a.x.total_cmp(&b.x).then(a.y.total_cmp(&b.y)));
    all.dedup();
    let (vertices, number) = cluster(&all, tolerance);

    let numbered = |ring: &LineString<f64>, is_hole: bool| -> Vec<usize> {
        let mut path: Vec<usize> = ring.0.iter().map(|&c| number[&key(c)]).collect();
        path.pop();
        without_spikes(&mut path);
        let area: f64 = edges_of(&path)
            .map(|(a, b)| {
                // Relative to the first vertex: no loss of digits far from the origin.
                let (o, p, q) = (vertices[path[0]], vertices[a], vertices[b]);
                (p.x - o.x) * (q.y - o.y) - (q.x - o.x) * (p.y - o.y)
            })
            .sum();
        if (area < 0.0) != is_hole {
            path.reverse();
        }
        path
    };
    let mut rings: NumberedRings = areas
        .iter()
        .map(|area| {
            area.iter()
                .map(|p| {
                    std::iter::once(numbered(p.exterior(), false))
                        .chain(p.interiors().iter().map(|r| numbered(r, true)))
                        .collect()
                })
                .collect()
        })
        .collect();

    let mut between: HashMap<(usize, usize), Vec<usize>> = HashMap::new();
    for ring in rings.iter_mut().flatten().flatten() {
        let mut path = Vec::with_capacity(ring.len());
        for (a, b) in edges_of(ring) {
            path.push(a);
            let edge = (a.min(b), a.max(b));
            let on_edge = between.entry(edge).or_insert_with(|| vertices_on(&vertices, edge, tolerance));
            if a < b { path.extend(on_edge.iter()) } else { path.extend(on_edge.iter().rev()) }
        }
        without_spikes(&mut path);
        *ring = path;
    }
    for area in &mut rings {
        area.retain(|polygon| polygon[0].len() >= 3);
        for polygon in area.iter_mut() {
            polygon.retain(|ring| ring.len() >= 3);
        }
    }
    (vertices, rings)
}

/// The coordinate without negative zeros, which compare equal but have other bits.
fn tidy(c: Coord<f64>) -> Coord<f64> {
    Coord { x: c.x + 0.0, y: c.y + 0.0 }
}

/// The bits of a coordinate, to look it up.
pub(crate) fn key(c: Coord<f64>) -> (u64, u64) {
    let c = tidy(c);
    (c.x.to_bits(), c.y.to_bits())
}

/// Numbers of vertices by the bits of their coordinates.
type VertexNumbers = HashMap<(u64, u64), usize>;

/// `sorted` without vertices that are closer than `tolerance` to one before them, and the number of each one's stand-in.
fn cluster(sorted: &[Coord<f64>], tolerance: f64) -> (Vec<Coord<f64>>, VertexNumbers) {
    let mut kept: Vec<Coord<f64>> = Vec::new();
    let mut number = HashMap::with_capacity(sorted.len());
    let mut first_near = 0;
    for &c in sorted {
        while first_near < kept.len() && kept[first_near].x < c.x - tolerance {
            first_near += 1;
        }
        let near = (first_near..kept.len())
            .filter(|&i| distance2(kept[i], c) <= tolerance * tolerance)
            .min_by(|&i, &j| distance2(kept[i], c).total_cmp(&distance2(kept[j], c)));
        let n = near.unwrap_or_else(|| {
            kept.push(c);
            kept.len() - 1
        });
        number.insert(key(c), n);
    }
    (kept, number)
}

fn distance2(a: Coord<f64>, b: Coord<f64>) -> f64 {
    (a.x - b.x) * (a.x - b.x) + (a.y - b.y) * (a.y - b.y)
}

/// The vertices within `tolerance` of the inside of an edge, in order along it. `vertices` are in order of x.
fn vertices_on(vertices: &[Coord<f64>], (a, b): (usize, usize), tolerance: f64) -> Vec<usize> {
    let (p, q) = (vertices[a], vertices[b]);
    let length2 = distance2(p, q);
    let (west, east) = (p.x.min(q.x) - tolerance, p.x.max(q.x) + tolerance);
    let (south, north) = (p.y.min(q.y) - tolerance, p.y.max(q.y) + tolerance);
    let first = vertices.partition_point(|v| v.x < west);
    let mut found: Vec<(f64, usize)> = vertices[first..]
        .iter()
        .enumerate()
        .take_while(|(_, v)| v.x <= east)
        .filter(|(_, v)| v.y >= south && v.y <= north)
        .map(|(i, v)| (i + first, v))
        .filter(|&(i, _)| i != a && i != b)
        .filter_map(|(i, &v)| {
            let along = ((v.x - p.x) * (q.x - p.x) + (v.y - p.y) * (q.y - p.y)) / length2;
            let foot = p + (q - p) * along;
            (along > 0.0 && along < 1.0 && distance2(foot, v) <= tolerance * tolerance).then_some((along, i))
        })
        .collect();
    found.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    found.into_iter().map(|(_, i)| i).collect()
}

/// The edges of a ring that is not closed by a repeated vertex.
fn edges_of(ring: &[usize]) -> impl Iterator<Item = (usize, usize)> + '_ {
    (0..ring.len()).map(|i| (ring[i], ring[(i + 1) % ring.len()]))
}

/// Removes repeated vertices and spikes (there and back again) from a ring that is not closed by a repeated vertex.
fn without_spikes(ring: &mut Vec<usize>) {
    let mut path: Vec<usize> = Vec::with_capacity(ring.len());
    for &v in ring.iter() {
        path.push(v);
        loop {
            let n = path.len();
            if n >= 2 && path[n - 1] == path[n - 2] {
                path.pop();
            } else if n >= 3 && path[n - 1] == path[n - 3] {
                path.truncate(n - 2);
            } else {
                break;
            }
        }
    }
    // The same across the seam.
    let (mut first, mut end) = (0, path.len());
    loop {
        if end - first >= 2 && path[first] == path[end - 1] {
            end -= 1;
        } else if end - first >= 3 && path[first] == path[end - 2] {
            end -= 2;
        } else if end - first >= 3 && path[first + 1] == path[end - 1] {
            first += 1;
            end -= 1;
        } else {
            break;
        }
    }
    *ring = path[first..end].to_vec();
}

/// A ring cut at its junctions: paths with both ends, and whether one is the whole ring without a junction.
fn cut_ring(ring: &[usize], is_junction: impl Fn(usize) -> bool) -> Vec<(Vec<usize>, bool)> {
    let Some(first) = ring.iter().position(|&v| is_junction(v)) else {
        let mut path = ring.to_vec();
        path.push(ring[0]);
        return vec![(path, true)];
    };
    let mut paths = Vec::new();
    let mut path = vec![ring[first]];
    for step in 1..=ring.len() {
        let v = ring[(first + step) % ring.len()];
        path.push(v);
        if is_junction(v) {
            paths.push((std::mem::replace(&mut path, vec![v]), false));
        }
    }
    paths
}

/// The path in the one direction (and, for a ring, from the one vertex) in which the arc is stored, and whether that is
/// the direction given.
fn canonical(mut path: Vec<usize>, is_closed: bool) -> (Vec<usize>, bool) {
    if is_closed {
        path.pop();
        let lowest = (0..path.len()).min_by_key(|&i| path[i]).unwrap_or(0);
        path.rotate_left(lowest);
        let is_forward = path[1] < path[path.len() - 1];
        if !is_forward {
            path[1..].reverse();
        }
        path.push(path[0]);
        return (path, is_forward);
    }
    let is_forward = path.iter().le(path.iter().rev());
    if !is_forward {
        path.reverse();
    }
    (path, is_forward)
}

#[cfg(test)]
mod tests {
    use super::*;
    use geo::{Area, polygon};

    fn rectangle(x0: f64, y0: f64, x1: f64, y1: f64) -> MultiPolygon<f64> {
        polygon![(x: x0, y: y0), (x: x1, y: y0), (x: x1, y: y1), (x: x0, y: y1)].into()
    }

    fn lines(topology: &Topology) -> Vec<Vec<Coord<f64>>> {
        topology.arcs.iter().map(|a| a.points.clone()).collect()
    }

    #[test]
    fn two_squares_share_one_arc_with_a_side_each() {
        let t = Topology::build(&[rectangle(0.0, 0.0, 1.0, 1.0), rectangle(1.0, 0.0, 2.0, 1.0)], 0.0);
        assert_eq!(t.arcs.len(), 3);
        let shared: Vec<&Arc> = t.arcs.iter().filter(|a| a.users.len() == 2).collect();
        assert_eq!(shared.len(), 1);
        assert_eq!(shared[0].points, [(1.0, 0.0), (1.0, 1.0)].map(Coord::from));
        // The arc runs north: the western square lies on its left.
        assert_eq!(shared[0].users, [ArcUse { area: 0, is_left: true }, ArcUse { area: 1, is_left: false }]);
    }

    #[test]
    fn a_vertex_on_a_neighbours_edge_becomes_a_junction() {
        // One long rectangle below, two squares above that meet in the middle of its edge, half a unit off.
        let below = rectangle(0.0, 0.0, 200.0, 100.0);
        let (left, right) = (
            polygon![(x: 0.0, y: 100.0), (x: 100.0, y: 100.5), (x: 100.0, y: 200.0), (x: 0.0, y: 200.0)],
            polygon![(x: 100.0, y: 100.5), (x: 200.0, y: 100.0), (x: 200.0, y: 200.0), (x: 100.0, y: 200.0)],
        );
        let t = Topology::build(&[below, left.into(), right.into()], 1.0);
        let middle = Coord { x: 100.0, y: 100.5 };
        assert_eq!(t.arcs.iter().filter(|a| a.points.contains(&middle)).count(), 3);
        assert!(t.arcs.iter().all(|a| !a.points[1..a.points.len() - 1].contains(&middle)));
        let total: f64 = t.assemble(&lines(&t)).iter().map(Area::unsigned_area).sum();
        assert_eq!(total, 40_000.0);
    }

    #[test]
    fn an_enclave_is_one_closed_arc_of_both() {
        let hole = rectangle(1.0, 1.0, 2.0, 2.0);
        let outer = MultiPolygon::from(Polygon::new(
            rectangle(0.0, 0.0, 3.0, 3.0).0[0].exterior().clone(),
            vec![hole.0[0].exterior().clone()],
        ));
        let t = Topology::build(&[outer, hole], 0.0);
        assert_eq!(t.arcs.len(), 2);
        assert!(t.arcs.iter().all(|a| a.is_closed));
        let inner = t.arcs.iter().find(|a| a.users.len() == 2).unwrap();
        assert_ne!(inner.users[0].is_left, inner.users[1].is_left);
        let areas: Vec<f64> = t.assemble(&lines(&t)).iter().map(Area::signed_area).collect();
        assert_eq!(areas, [8.0, 1.0]);
    }

    #[test]
    fn winding_repeats_and_spikes_do_not_matter() {
        let clean = rectangle(0.0, 0.0, 2.0, 2.0);
        let messy: MultiPolygon<f64> = polygon![
            (x: 0.0, y: 2.0), (x: 2.0, y: 2.0), (x: 2.0, y: 2.0), (x: 2.0, y: 0.0), (x: 5.0, y: 0.0), (x: 2.0, y: 0.0),
            (x: -0.0, y: 0.0),
        ]
        .into();
        let a = Topology::build(&[clean], 0.0);
        let b = Topology::build(&[messy], 0.0);
        assert_eq!(a.assemble(&lines(&a)), b.assemble(&lines(&b)));
    }

    #[test]
    fn what_vanishes_is_left_out() {
        let flat: MultiPolygon<f64> = polygon![(x: 0.0, y: 0.0), (x: 1.0, y: 0.0), (x: 2.0, y: 0.0)].into();
        let t = Topology::build(&[flat, rectangle(5.0, 5.0, 6.0, 6.0)], 0.001);
        let areas = t.assemble(&lines(&t));
        assert_eq!((areas[0].0.len(), areas[1].0.len()), (0, 1));
    }
}
