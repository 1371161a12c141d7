//! How the area of a fine cell divides over the coarse cells under it, for grids that do not nest.

use super::placement::{Uv, whole_below};

/// Units of area in a whole fine cell.
pub(super) const WHOLE: i64 = 1024;

/// Calls `share` with the column and row of each coarse cell under the quadrilateral `corners` (in order around it, coarse
/// coordinates) and its part of the area, in units of which there are [`WHOLE`] in all.
///
/// The parts are exact for straight sides, to within a unit: the quadrilateral is clipped at the lines of the coarse grid
/// (Sutherland and Hodgman, 1974). Cost: one comparison a corner where it lies in one coarse cell.
pub(super) fn divide(corners: [Uv; 4], mut share: impl FnMut(i64, i64, i64)) {
    let column = corners.map(|p| whole_below(p.u));
    let row = corners.map(|p| whole_below(p.v));
    if column.iter().all(|&c| c == column[0]) && row.iter().all(|&r| r == row[0]) {
        return share(column[0], row[0], WHOLE);
    }
    let ends = |of: [i64; 4]| (of.into_iter().fold(i64::MAX, i64::min), of.into_iter().fold(i64::MIN, i64::max));
    let ((west, east), (north, south)) = (ends(column), ends(row));
    let whole = Polygon::new(corners);
    let total = whole.area();
    if total <= 0.0 {
        return share(column[0], row[0], WHOLE);
    }
    // Running totals are rounded, not the parts: they add up to the whole.
    let (mut seen, mut given) = (0.0, 0);
    for j in north..=south {
        let band = whole.clip(|p| p.v - j as f64).clip(|p| (j + 1) as f64 - p.v);
        for i in west..=east {
            let part = band.clip(|p| p.u - i as f64).clip(|p| (i + 1) as f64 - p.u);
            seen += part.area();
            let upto =
                if (i, j) == (east, south) { WHOLE } else { whole_below(seen / total * WHOLE as f64 + 0.5).min(WHOLE) };
            if upto > given {
                share(i, j, upto - given);
                given = upto;
            }
        }
    }
}

/// A convex polygon of few corners.
#[derive(Clone, Copy)]
struct Polygon {
    corners: [Uv; Polygon::MOST],
    count: usize,
}

impl Polygon {
    /// A quadrilateral cut by four lines has at most eight corners.
    const MOST: usize = 8;

    fn new(quad: [Uv; 4]) -> Polygon {
        let mut corners = [Uv { u: 0.0, v: 0.0 }; Self::MOST];
        corners[..4].copy_from_slice(&quad);
        Polygon { corners, count: 4 }
    }

    /// The part where `side`, linear in the position, is not negative.
    fn clip(&self, side: impl Fn(Uv) -> f64) -> Polygon {
        let mut out = Polygon { corners: [Uv { u: 0.0, v: 0.0 }; Self::MOST], count: 0 };
        for k in 0..self.count {
            let (p, q) = (self.corners[k], self.corners[(k + 1) % self.count]);
            let (a, b) = (side(p), side(q));
            if a >= 0.0 {
                out.push(p);
            }
            if (a >= 0.0) != (b >= 0.0) {
                let t = a / (a - b);
                out.push(Uv { u: p.u + (q.u - p.u) * t, v: p.v + (q.v - p.v) * t });
            }
        }
        out
    }

    fn push(&mut self, p: Uv) {
        // More corners come only from a quadrilateral that is not convex: an unusable projection.
        if self.count < Self::MOST {
            self.corners[self.count] = p;
            self.count += 1;
        }
    }

    fn area(&self) -> f64 {
        let twice: f64 = (0..self.count)
            .map(|k| {
                let (p, q) = (self.corners[k], self.corners[(k + 1) % self.count]);
                p.u * q.v - q.u * p.v
            })
            .sum();
        0.5 * twice.abs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(corners: [(f64, f64); 4]) -> Vec<(i64, i64, i64)> {
        let mut all = Vec::new();
        divide(corners.map(|(u, v)| Uv { u, v }), |i, j, n| all.push((i, j, n)));
        all
    }

    #[test]
    fn a_cell_inside_one_coarse_cell_is_its_own() {
        assert_eq!(parts([(3.1, 7.2), (3.4, 7.2), (3.4, 7.5), (3.1, 7.5)]), [(3, 7, 1024)]);
    }

    #[test]
    fn a_cell_over_four_is_divided_by_area() {
        let cell = [(0.75, 1.5), (1.75, 1.5), (1.75, 2.5), (0.75, 2.5)];
        assert_eq!(parts(cell), [(0, 1, 128), (1, 1, 384), (0, 2, 128), (1, 2, 384)]);
    }

    #[test]
    fn a_turned_cell_is_divided_by_area() {
        // A diamond around the corner (1, 1) of four coarse cells, and one around a point beside it.
        assert_eq!(
            parts([(1.0, 0.5), (1.5, 1.0), (1.0, 1.5), (0.5, 1.0)]),
            [(0, 0, 256), (1, 0, 256), (0, 1, 256), (1, 1, 256)]
        );
        // West of u = 1: a triangle of a quarter of the half: (0.25 / 0.5)^2 / 2.
        assert_eq!(parts([(1.25, 0.0), (1.75, 0.5), (1.25, 0.99), (0.75, 0.5)])[0].2, 128);
    }

    #[test]
    fn a_cell_larger_than_the_coarse_ones_covers_several() {
        let all = parts([(-0.5, 0.25), (2.5, 0.25), (2.5, 0.75), (-0.5, 0.75)]);
        assert_eq!(all.iter().map(|p| p.0).collect::<Vec<_>>(), [-1, 0, 1, 2]);
        assert_eq!(all.iter().map(|p| p.2).sum::<i64>(), WHOLE);
        assert_eq!(all[1].2, 341);
    }

    proptest::proptest! {
        #[test]
        fn nothing_is_lost(u in -5.0..5.0f64, v in -5.0..5.0f64, w in 0.01..3.0f64, h in 0.01..3.0f64, turn in -0.7..0.7f64) {
            let corner = |x: f64, y: f64| (u + x * turn.cos() - y * turn.sin(), v + x * turn.sin() + y * turn.cos());
            let all = parts([corner(0.0, 0.0), corner(w, 0.0), corner(w, h), corner(0.0, h)]);
            proptest::prop_assert_eq!(all.iter().map(|p| p.2).sum::<i64>(), WHOLE);
            proptest::prop_assert!(all.iter().all(|p| p.2 > 0));
        }
    }
}
