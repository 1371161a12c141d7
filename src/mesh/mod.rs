//! Meshes of triangles from rasters: regular grids, adaptive surfaces within an error, areas by marching squares, solids, and
//! the bytes of mesh files. No GDAL, no files.
//!
//! Two stages. A [`Surface`] lies over a raster: its vertices are columns, rows and heights, a vertex of a whole column and row
//! being the centre of that cell. A [`Mesh`] lies in space: [`place`] turns columns and rows into metres east and north of
//! the raster's middle, [`solid`] adds skirts and bases.
//!
//! Invariants: triangles of a surface run counter-clockwise as seen from above (east to the right, north up) and share
//! their vertices; an edge belongs to one triangle (border) or two. Order of vertices and triangles depends on the input
//! alone, not on threads.

pub mod files;
pub mod grid_mesh;
pub mod marching;
pub mod place;
pub mod solid;
pub mod tin;

use rayon::prelude::*;

/// A vertex over a raster: column and row of cell centres (fractions between them) and a height.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Node {
    /// Column, from the west.
    pub col: f32,
    /// Row, from the north.
    pub row: f32,
    /// Height, the raster's unit.
    pub z: f32,
}

/// Triangles of one class.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// Class of the raster of classes; 0 where there is none.
    pub class: u16,
    /// Corners by number of vertex, counter-clockwise from above.
    pub triangles: Vec<[u32; 3]>,
}

/// A mesh over a raster.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Surface {
    /// Vertices, by row, then column.
    pub vertices: Vec<Node>,
    /// Triangles by class, ascending; none is empty.
    pub groups: Vec<Group>,
}

impl Surface {
    /// How many triangles.
    pub fn len(&self) -> usize {
        self.groups.iter().map(|g| g.triangles.len()).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All triangles, class after class.
    pub fn triangles(&self) -> impl Iterator<Item = [u32; 3]> + '_ {
        self.groups.iter().flat_map(|g| g.triangles.iter().copied())
    }
}

/// What a part of a mesh is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartKind {
    /// Ground, seen from above.
    Surface,
    /// Walls down from its borders.
    Wall,
    /// The underside.
    Base,
}

/// Triangles that belong together.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// What it is called in the file.
    pub name: String,
    /// What it is.
    pub kind: PartKind,
    /// Its colour; `None` is plain.
    pub colour: Option<[u8; 3]>,
    /// Corners by number of vertex, counter-clockwise from outside.
    pub triangles: Vec<[u32; 3]>,
}

/// A mesh in space.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Mesh {
    /// East, north and up.
    pub positions: Vec<[f64; 3]>,
    /// Place in the picture of each vertex, from its upper left, 0 to 1; empty without a picture.
    pub uvs: Vec<[f32; 2]>,
    /// Colour of each vertex; empty without colours.
    pub colours: Vec<[u8; 3]>,
    /// What it consists of.
    pub parts: Vec<Part>,
}

impl Mesh {
    /// Lowest and highest coordinate on each axis; `None` without vertices.
    pub fn bounds(&self) -> Option<([f64; 3], [f64; 3])> {
        let first = *self.positions.first()?;
        Some(self.positions.iter().fold((first, first), |(low, high), p| {
            ([0, 1, 2].map(|k| low[k].min(p[k])), [0, 1, 2].map(|k| high[k].max(p[k])))
        }))
    }

    /// How many triangles.
    pub fn len(&self) -> usize {
        self.parts.iter().map(|p| p.triangles.len()).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Mean of the normals of the triangles of surfaces at each vertex, weighted by area, of length 1; straight up elsewhere.
    pub fn normals(&self) -> Vec<[f64; 3]> {
        let mut sums = vec![[0f64; 3]; self.positions.len()];
        for part in self.parts.iter().filter(|p| p.kind == PartKind::Surface) {
            for t in &part.triangles {
                let n = self.cross(t);
                for &v in t {
                    let s = &mut sums[v as usize];
                    (s[0], s[1], s[2]) = (s[0] + n[0], s[1] + n[1], s[2] + n[2]);
                }
            }
        }
        sums.par_iter_mut().for_each(|s| *s = unit(*s));
        sums
    }

    /// Twice the area of a triangle along its normal.
    pub(crate) fn cross(&self, t: &[u32; 3]) -> [f64; 3] {
        let [a, b, c] = t.map(|v| self.positions[v as usize]);
        let (u, v) = ([b[0] - a[0], b[1] - a[1], b[2] - a[2]], [c[0] - a[0], c[1] - a[1], c[2] - a[2]]);
        [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]]
    }
}

/// The vector at length 1; straight up where it has none.
pub(crate) fn unit(v: [f64; 3]) -> [f64; 3] {
    let length = (v[0] * v[0] + v[1] * v[1] + v[2] * v[2]).sqrt();
    if length > 0.0 && length.is_finite() { v.map(|c| c / length) } else { [0.0, 0.0, 1.0] }
}

/// Twice the signed area of a triangle as seen from above, rows running south: positive where it runs counter-clockwise.
pub(crate) fn turn(a: (f64, f64), b: (f64, f64), c: (f64, f64)) -> f64 {
    (b.1 - a.1) * (c.0 - a.0) - (b.0 - a.0) * (c.1 - a.1)
}

/// Sorts triangles with their classes into groups; stable within a class.
pub(crate) fn grouped(triangles: Vec<[u32; 3]>, classes: Option<Vec<u16>>) -> Vec<Group> {
    let Some(classes) = classes else {
        return if triangles.is_empty() { Vec::new() } else { vec![Group { class: 0, triangles }] };
    };
    let mut groups: std::collections::BTreeMap<u16, Vec<[u32; 3]>> = std::collections::BTreeMap::new();
    for (t, class) in triangles.into_iter().zip(classes) {
        groups.entry(class).or_default().push(t);
    }
    groups.into_iter().map(|(class, triangles)| Group { class, triangles }).collect()
}

/// The class of a triangle by those of its corners: the one that two of them share, else the last's.
pub(crate) fn majority([a, b, c]: [u16; 3]) -> u16 {
    if a == b { a } else { c }
}

#[cfg(test)]
pub(crate) mod laws {
    use super::*;

    /// Every triangle runs counter-clockwise from above, and every directed edge is used once.
    pub(crate) fn assert_sound(s: &Surface) {
        let at = |v: u32| {
            let n = s.vertices[v as usize];
            (f64::from(n.col), f64::from(n.row))
        };
        let mut edges = Vec::new();
        for t in s.triangles() {
            assert!(turn(at(t[0]), at(t[1]), at(t[2])) > 0.0, "clockwise or flat: {:?}", t.map(at));
            edges.extend([(t[0], t[1]), (t[1], t[2]), (t[2], t[0])]);
        }
        let n = edges.len();
        edges.sort_unstable();
        edges.dedup();
        assert_eq!(edges.len(), n, "an edge is used twice in one direction");
        let mut used: Vec<u32> = s.triangles().flatten().collect();
        used.sort_unstable();
        used.dedup();
        assert_eq!(used.len(), s.vertices.len(), "vertices without triangles");
        assert!(s.vertices.iter().all(|n| n.z.is_finite()));
    }

    /// No vertex lies inside another triangle's edge: the area of the triangles is that of the outline, and border edges
    /// form closed walks.
    pub(crate) fn area(s: &Surface) -> f64 {
        let at = |v: u32| {
            let n = s.vertices[v as usize];
            (f64::from(n.col), f64::from(n.row))
        };
        s.triangles().map(|t| turn(at(t[0]), at(t[1]), at(t[2])) / 2.0).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turning_from_east_to_north_is_counter_clockwise() {
        // East is to the right, north is up: rows count southward.
        assert_eq!(turn((0.0, 0.0), (1.0, 0.0), (0.0, -1.0)), 1.0);
        assert_eq!(turn((0.0, 0.0), (0.0, -1.0), (1.0, 0.0)), -1.0);
    }

    #[test]
    fn two_of_three_decide() {
        assert_eq!([majority([1, 1, 2]), majority([2, 1, 1]), majority([1, 2, 1]), majority([1, 2, 3])], [1, 1, 1, 3]);
    }
}
