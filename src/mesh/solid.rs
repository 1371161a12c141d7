//! Skirts, bases and extrusions: what hangs from the borders of a surface.
//!
//! A solid is watertight: every edge belongs to exactly two triangles, which run along it in opposite directions. Where two
//! parts of a surface touch in one vertex alone, each gets its own, a hundredth of a cell apart, so that walls never
//! share an upright edge.

use super::{Mesh, Node, Part, PartKind, Surface};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// How far vertices of parts that touched move apart, as a share of the way to the middle of their own triangles.
const APART: f32 = 0.01;

/// Edges that belong to one triangle, along it, in order.
pub fn border(triangles: &[[u32; 3]]) -> Vec<[u32; 2]> {
    let mut edges: Vec<[u32; 2]> =
        triangles.par_iter().flat_map_iter(|[a, b, c]| [[*a, *b], [*b, *c], [*c, *a]]).collect();
    edges.par_sort_unstable();
    edges.par_iter().filter(|[a, b]| edges.binary_search(&[*b, *a]).is_err()).copied().collect()
}

/// The surface with every vertex in which several of its parts touch made into one for each.
pub fn separated(mut surface: Surface) -> Surface {
    // A vertex from which two border edges leave joins two fans of triangles.
    let triangles: Vec<[u32; 3]> = surface.triangles().collect();
    let border = border(&triangles);
    let shared: Vec<u32> = border.windows(2).filter(|w| w[0][0] == w[1][0]).map(|w| w[0][0]).collect();
    if shared.is_empty() {
        return surface;
    }
    let mut around: BTreeMap<u32, Vec<usize>> = shared.iter().map(|v| (*v, Vec::new())).collect();
    for (n, t) in triangles.iter().enumerate() {
        for v in t {
            if let Some(list) = around.get_mut(v) {
                list.push(n);
            }
        }
    }
    let mut changed: Vec<[u32; 3]> = triangles.clone();
    let mut first_of: Vec<(u32, Node)> = Vec::new();
    for (v, list) in around {
        for (n, fan) in fans(v, &list, &triangles).into_iter().enumerate() {
            let (mut col, mut row, count) = (0f32, 0f32, 3.0 * fan.len() as f32);
            for corner in fan.iter().flat_map(|t| triangles[*t]) {
                let node = surface.vertices[corner as usize];
                (col, row) = (col + node.col / count, row + node.row / count);
            }
            let old = surface.vertices[v as usize];
            let moved =
                Node { col: old.col + (col - old.col) * APART, row: old.row + (row - old.row) * APART, z: old.z };
            let number = if n == 0 { v } else { surface.vertices.len() as u32 };
            if n == 0 {
                first_of.push((v, moved)); // others still look at where it was
            } else {
                surface.vertices.push(moved);
            }
            for t in fan {
                changed[t].iter_mut().filter(|c| **c == v).for_each(|c| *c = number);
            }
        }
    }
    first_of.into_iter().for_each(|(v, moved)| surface.vertices[v as usize] = moved);
    let mut next = changed.into_iter();
    for g in &mut surface.groups {
        g.triangles.iter_mut().for_each(|t| *t = next.next().unwrap_or(*t));
    }
    surface
}

/// The triangles `list` around `v`, those that share edges at it together.
fn fans(v: u32, list: &[usize], triangles: &[[u32; 3]]) -> Vec<Vec<usize>> {
    let others = |t: usize| triangles[t].into_iter().filter(|c| *c != v).collect::<Vec<_>>();
    let mut left: Vec<usize> = list.to_vec();
    let mut fans = Vec::new();
    while let Some(first) = left.pop() {
        let mut fan = vec![first];
        let mut rim = others(first);
        while let Some(at) = left.iter().position(|t| others(*t).iter().any(|c| rim.contains(c))) {
            let t = left.swap_remove(at);
            rim.extend(others(t));
            fan.push(t);
        }
        fan.sort_unstable();
        fans.push(fan);
    }
    fans.sort();
    fans
}

impl Mesh {
    /// The triangles of all its surfaces.
    fn surface(&self) -> Vec<[u32; 3]> {
        self.parts.iter().filter(|p| p.kind == PartKind::Surface).flat_map(|p| p.triangles.iter().copied()).collect()
    }

    /// Copies of vertices at other heights; they take colour and picture along.
    fn lowered(&mut self, vertices: &[u32], up: impl Fn(f64) -> f64) -> BTreeMap<u32, u32> {
        let mut copies = BTreeMap::new();
        for &v in vertices {
            let [x, y, z] = self.positions[v as usize];
            copies.insert(v, self.positions.len() as u32);
            self.positions.push([x, y, up(z)]);
            if !self.uvs.is_empty() {
                self.uvs.push(self.uvs[v as usize]);
            }
            if !self.colours.is_empty() {
                self.colours.push(self.colours[v as usize]);
            }
        }
        copies
    }

    /// Hangs walls of height `depth` from all borders, to hide gaps beside neighbouring meshes.
    pub fn add_skirt(&mut self, depth: f64) {
        let border = border(&self.surface());
        let copies = self.lowered(&vertices_of(&border), |z| z - depth);
        self.parts.push(walls("skirt", &border, &copies));
    }

    /// Makes a solid: walls from all borders down to the height `floor`, and an underside.
    pub fn add_base(&mut self, floor: f64) {
        let surface = self.surface();
        let border = border(&surface);
        if border.is_empty() {
            return;
        }
        if let Some(ring) = self.convex_ring(&border) {
            // One rim around a rectangle: the underside is a fan around its middle.
            let copies = self.lowered(&ring, |_| floor);
            self.parts.push(walls("walls", &border, &copies));
            let n = ring.len() as f64;
            let sum = ring.iter().fold([0.0, 0.0], |s, v| {
                let p = self.positions[*v as usize];
                [s[0] + p[0] / n, s[1] + p[1] / n]
            });
            let middle = self.positions.len() as u32;
            self.positions.push([sum[0], sum[1], floor]);
            if !self.uvs.is_empty() {
                self.uvs.push([0.5, 0.5]);
            }
            if !self.colours.is_empty() {
                self.colours.push([128; 3]);
            }
            let triangles = border.iter().map(|[a, b]| [copies[b], copies[a], middle]).collect();
            self.parts.push(Part { name: "base".into(), kind: PartKind::Base, colour: None, triangles });
            return;
        }
        let mut all: Vec<u32> = surface.iter().flatten().copied().collect();
        all.sort_unstable();
        all.dedup();
        let copies = self.lowered(&all, |_| floor);
        self.parts.push(walls("walls", &border, &copies));
        let triangles = surface.iter().map(|[a, b, c]| [copies[c], copies[b], copies[a]]).collect();
        self.parts.push(Part { name: "base".into(), kind: PartKind::Base, colour: None, triangles });
    }

    /// Makes a solid of each of its surfaces: walls down to the height `floor`, and an underside.
    pub fn extrude(&mut self, floor: f64) {
        let surfaces: Vec<Part> = self.parts.drain(..).filter(|p| p.kind == PartKind::Surface).collect();
        for part in surfaces {
            let border = border(&part.triangles);
            let mut own: Vec<u32> = part.triangles.iter().flatten().copied().collect();
            own.sort_unstable();
            own.dedup();
            let copies = self.lowered(&own, |_| floor);
            let mut wall = walls("", &border, &copies);
            wall.name = format!("{} walls", part.name);
            wall.colour = part.colour;
            let triangles = part.triangles.iter().map(|[a, b, c]| [copies[c], copies[b], copies[a]]).collect();
            let base =
                Part { name: format!("{} base", part.name), kind: PartKind::Base, colour: part.colour, triangles };
            self.parts.extend([part, wall, base]);
        }
    }

    /// The border as one ring, when it is one that turns left only, and so sees its middle from everywhere.
    fn convex_ring(&self, border: &[[u32; 2]]) -> Option<Vec<u32>> {
        let next: BTreeMap<u32, u32> = border.iter().map(|[a, b]| (*a, *b)).collect();
        if next.len() != border.len() {
            return None;
        }
        let mut ring = vec![border[0][0]];
        loop {
            let to = *next.get(ring.last()?)?;
            if to == ring[0] {
                break;
            }
            if ring.len() > border.len() {
                return None;
            }
            ring.push(to);
        }
        let n = ring.len();
        let p = |k: usize| self.positions[ring[k % n] as usize];
        let size =
            ring.iter().map(|v| self.positions[*v as usize]).fold(0f64, |m, p| m.max(p[0].abs()).max(p[1].abs()));
        let middle = (0..n).fold([0.0, 0.0], |s, k| [s[0] + p(k)[0] / n as f64, s[1] + p(k)[1] / n as f64]);
        let sees = |k: usize| {
            let (a, b) = (p(k), p(k + 1));
            (a[0] - middle[0]) * (b[1] - middle[1]) - (a[1] - middle[1]) * (b[0] - middle[0]) > 1e-9 * size
        };
        (n == border.len() && (0..n).all(sees)).then_some(ring)
    }
}

fn vertices_of(border: &[[u32; 2]]) -> Vec<u32> {
    let mut all: Vec<u32> = border.iter().flatten().copied().collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Two triangles below each border edge, seen from outside.
fn walls(name: &str, border: &[[u32; 2]], copies: &BTreeMap<u32, u32>) -> Part {
    let triangles = border.iter().flat_map(|[a, b]| [[*b, *a, copies[a]], [*b, copies[a], copies[b]]]).collect();
    Part { name: name.into(), kind: PartKind::Wall, colour: None, triangles }
}

#[cfg(test)]
mod tests {
    use super::super::marching::areas_of;
    use super::super::tin::{TinOptions, tin};
    use super::*;
    use crate::raster::Raster;
    use proptest::prelude::*;

    /// One unit a cell, y north.
    fn mesh(s: &Surface) -> Mesh {
        let positions = s.vertices.iter().map(|n| [f64::from(n.col), -f64::from(n.row), f64::from(n.z)]).collect();
        let parts = s
            .groups
            .iter()
            .map(|g| Part {
                name: g.class.to_string(),
                kind: PartKind::Surface,
                colour: None,
                triangles: g.triangles.clone(),
            })
            .collect();
        Mesh { positions, parts, ..Mesh::default() }
    }

    /// Every edge, by the places of its ends, belongs to two triangles that run along it in opposite directions.
    fn assert_watertight(triangles: &[[u32; 3]], m: &Mesh) {
        let key = |v: u32| m.positions[v as usize].map(f64::to_bits);
        let mut edges: Vec<_> = triangles
            .iter()
            .flat_map(|t| {
                let [a, b, c] = t.map(key);
                [(a, b), (b, c), (c, a)]
            })
            .collect();
        edges.sort_unstable();
        for w in edges.windows(2) {
            assert_ne!(w[0], w[1], "an edge twice in one direction");
        }
        for (a, b) in &edges {
            assert!(edges.binary_search(&(*b, *a)).is_ok(), "an open edge");
        }
    }

    /// Volume enclosed, by the tetrahedra to the origin (Gauss).
    fn volume(m: &Mesh) -> f64 {
        m.parts
            .iter()
            .flat_map(|p| &p.triangles)
            .map(|t| {
                let n = m.cross(t);
                let a = m.positions[t[0] as usize];
                (a[0] * n[0] + a[1] * n[1] + a[2] * n[2]) / 6.0
            })
            .sum()
    }

    fn all(m: &Mesh) -> Vec<[u32; 3]> {
        m.parts.iter().flat_map(|p| p.triangles.iter().copied()).collect()
    }

    /// A plate of 2 x 2 cells at height 3 on a base at 1: 12 triangles' worth of surfaces around a volume of 8.
    #[test]
    fn a_plate_is_a_box() {
        let s = tin(&Raster::filled(3, 3, 3f32), &TinOptions::default()).unwrap();
        let mut m = mesh(&s);
        m.add_base(1.0);
        assert_watertight(&all(&m), &m);
        assert!((volume(&m) - 8.0).abs() < 1e-12);
        // Four corners: 2 above, 8 around, 4 below.
        assert_eq!(m.len(), 14);
    }

    #[test]
    fn a_skirt_hangs_outward() {
        let s = tin(&Raster::filled(2, 2, 3f32), &TinOptions::default()).unwrap();
        let mut m = mesh(&s);
        m.add_skirt(1.0);
        let skirt = m.parts.last().unwrap();
        assert_eq!((skirt.kind, skirt.triangles.len()), (PartKind::Wall, 8));
        for t in &skirt.triangles {
            let (n, p) = (m.cross(t), m.positions[t[0] as usize]);
            let out = n[0] * (p[0] - 0.5) + n[1] * (p[1] + 0.5);
            assert!(out > 0.0 && n[2] == 0.0, "{n:?}");
        }
    }

    #[test]
    fn holes_that_touch_in_a_corner_get_walls_of_their_own() {
        let mut z = Raster::filled(7, 7, 2f32);
        z.set(2, 2, f32::NAN);
        z.set(4, 4, f32::NAN);
        let s = separated(tin(&z, &TinOptions::default()).unwrap());
        let mut m = mesh(&s);
        m.add_base(0.0);
        assert_watertight(&all(&m), &m);
        assert!((volume(&m) - 2.0 * (36.0 - 4.0)).abs() < 0.2, "{}", volume(&m));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn solids_are_watertight(
            cols in 2usize..20, rows in 2usize..20, heights in prop::collection::vec(prop_oneof![6 => 1f32..9.0, 1 => Just(f32::NAN)], 400), max_error in 0.0f64..6.0,
        ) {
            let z = Raster::from_values(cols, rows, heights[..cols * rows].to_vec());
            let s = separated(tin(&z, &TinOptions { max_error, classes: None }).unwrap());
            let mut m = mesh(&s);
            m.add_base(0.0);
            assert_watertight(&all(&m), &m);
            prop_assert!(m.is_empty() || volume(&m) > 0.0);
        }

        #[test]
        fn extruded_classes_are_watertight_each(cols in 2usize..10, classes in prop::collection::vec(0u16..4, 100)) {
            let rows = 100 / cols;
            let s = areas_of(&Raster::from_values(cols, rows, classes[..cols * rows].to_vec()), &[]).unwrap();
            for g in s.groups.clone() {
                let own = separated(Surface { vertices: s.vertices.clone(), groups: vec![g] });
                let mut m = mesh(&own);
                m.positions.iter_mut().for_each(|p| p[2] = 1.0);
                m.extrude(0.0);
                assert_watertight(&all(&m), &m);
                prop_assert!(volume(&m) > 0.0);
            }
        }
    }
}
