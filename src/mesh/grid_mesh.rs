//! The regular mesh of a raster: a vertex in every cell centre, two triangles between four of them.

use super::{Node, Surface, grouped, majority};
use crate::error::{Error, Result};
use crate::raster::Raster;
use rayon::prelude::*;

/// Checks that a raster has squares of four centres and that its vertices can be numbered.
pub(super) fn check_size(cols: usize, rows: usize) -> Result<()> {
    let found = || format!("{cols} x {rows} cells");
    if cols < 2 || rows < 2 {
        return Err(Error::argument("raster", found(), "a mesh needs 2 columns and 2 rows at least"));
    }
    if cols.max(rows) > LONGEST || (cols * rows) as u64 >= u64::from(u32::MAX) / 2 {
        return Err(Error::argument(
            "raster",
            found(),
            format!("a mesh has at most {LONGEST} columns or rows and 2147 million cells: give a smaller raster"),
        ));
    }
    Ok(())
}

/// The longest side: columns and rows with fractions fit 32-bit numbers.
const LONGEST: usize = 65_537;

/// Checks the size of a raster, and that classes fit.
pub(super) fn check(z: &Raster<f32>, classes: Option<&Raster<u16>>) -> Result<()> {
    check_size(z.cols, z.rows)?;
    match classes {
        Some(c) if (c.cols, c.rows) != (z.cols, z.rows) => Err(Error::GridMismatch {
            left: format!("elevation {} x {} cells", z.cols, z.rows),
            right: format!("classes {} x {} cells", c.cols, c.rows),
        }),
        _ => Ok(()),
    }
}

/// The mesh of all cells of `z`. Cells that are not finite are holes: a square without one of its four centres keeps the
/// triangle of the other three. The diagonal runs the way on which the two heights differ less.
///
/// Cost: 12 bytes a vertex and 24 a cell.
///
/// # Errors
/// [`Error::Argument`] for a raster of fewer than 2 columns or rows or too many cells; [`Error::GridMismatch`] for classes of
/// another size.
pub fn grid_mesh(z: &Raster<f32>, classes: Option<&Raster<u16>>) -> Result<Surface> {
    check(z, classes)?;
    let cols = z.cols;
    let is_ground = |k: usize| z.values[k].is_finite();
    let triangles: Vec<[u32; 3]> = (0..z.rows - 1)
        .into_par_iter()
        .flat_map_iter(|r| {
            (0..cols - 1).flat_map(move |c| {
                let nw = r * cols + c;
                let [ne, sw, se] = [nw + 1, nw + cols, nw + cols + 1];
                let corners = [nw, sw, se, ne].map(|k| k as u32); // counter-clockwise
                let whole = [nw, sw, se, ne].map(is_ground);
                let skip = |k: usize| [1, 2, 3].map(|n| corners[(k + n) % 4]);
                let (one, other) = match whole {
                    [true, true, true, true] => {
                        let [a, b, c, d] = [nw, sw, se, ne].map(|k| z.values[k]);
                        if (a - c).abs() <= (b - d).abs() {
                            (Some(skip(1)), Some(skip(3)))
                        } else {
                            (Some(skip(0)), Some(skip(2)))
                        }
                    }
                    _ if whole.iter().filter(|w| **w).count() == 3 => (whole.iter().position(|w| !w).map(skip), None),
                    _ => (None, None),
                };
                one.into_iter().chain(other)
            })
        })
        .collect();
    // Only cells of a triangle are vertices.
    let mut number = vec![u32::MAX; z.values.len()];
    triangles.iter().flatten().for_each(|v| number[*v as usize] = 0);
    let mut vertices = Vec::new();
    for (at, n) in number.iter_mut().enumerate().filter(|(_, n)| **n == 0) {
        *n = vertices.len() as u32;
        vertices.push(Node { col: (at % cols) as f32, row: (at / cols) as f32, z: z.values[at] });
    }
    let class_of =
        classes.map(|c| triangles.par_iter().map(|t| majority(t.map(|v| c.values[v as usize]))).collect::<Vec<u16>>());
    let mut triangles = triangles;
    triangles.par_iter_mut().for_each(|t| *t = t.map(|v| number[v as usize]));
    Ok(Surface { vertices, groups: grouped(triangles, class_of) })
}

#[cfg(test)]
mod tests {
    use super::super::laws::{area, assert_sound};
    use super::*;

    /// Of the square 0 1 / 1 9 the diagonal joins the two ones.
    #[test]
    fn a_square_by_hand() {
        let s = grid_mesh(&Raster::from_values(2, 2, vec![0.0, 1.0, 1.0, 9.0]), None).unwrap();
        assert_sound(&s);
        assert_eq!(s.len(), 2);
        assert!(s.triangles().all(|t| t.contains(&1) && t.contains(&2)));
    }

    #[test]
    fn holes_and_lone_cells_are_left_out() {
        let n = f32::NAN;
        let s = grid_mesh(&Raster::from_values(3, 3, vec![1.0, 1.0, n, 1.0, n, n, n, n, 2.0]), None).unwrap();
        assert_sound(&s);
        assert_eq!((s.len(), s.vertices.len(), area(&s)), (1, 3, 0.5));
    }

    #[test]
    fn classes_part_the_triangles() {
        let classes = Raster::from_values(3, 2, vec![1, 1, 2, 1, 1, 2]);
        let s = grid_mesh(&Raster::filled(3, 2, 0f32), Some(&classes)).unwrap();
        assert_sound(&s);
        assert_eq!(s.groups.iter().map(|g| (g.class, g.triangles.len())).collect::<Vec<_>>(), [(1, 3), (2, 1)]);
    }
}
