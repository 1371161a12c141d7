//! Where straight pieces of lines meet, and lines cut there. Predicates are exact (adaptive precision), so that a yes or
//! no never depends on rounding.

use geo::algorithm::kernels::{Kernel, Orientation, RobustKernel};
use geo::{Coord, MultiPolygon};

/// A straight piece of line number `line`; piece `index` runs from its vertex `index` to the next.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece {
    pub(crate) a: Coord<f64>,
    pub(crate) b: Coord<f64>,
    pub(crate) line: usize,
    pub(crate) index: usize,
}

/// The pieces of `points` as line number `line`.
pub(crate) fn pieces_of(points: &[Coord<f64>], line: usize) -> impl Iterator<Item = Piece> + '_ {
    points.windows(2).enumerate().filter(|(_, w)| w[0] != w[1]).map(move |(index, w)| Piece {
        a: w[0],
        b: w[1],
        line,
        index,
    })
}

/// Calls `each` for every two pieces that `is_wanted` and that meet elsewhere than in a common end.
///
/// A sweep along x: time grows with the pieces times those that one vertical line crosses.
pub(crate) fn for_each_meeting(
    pieces: &[Piece],
    is_wanted: impl Fn(&Piece, &Piece) -> bool,
    mut each: impl FnMut(&Piece, &Piece),
) {
    let mut order: Vec<(f64, usize)> = pieces.iter().enumerate().map(|(i, p)| (p.a.x.min(p.b.x), i)).collect();
    order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    // Active pieces with their eastern end and their span in y.
    let mut active: Vec<(f64, f64, f64, usize)> = Vec::new();
    for (x, i) in order {
        let p = &pieces[i];
        let (low, high) = (p.a.y.min(p.b.y), p.a.y.max(p.b.y));
        let mut k = 0;
        while k < active.len() {
            let (east, other_low, other_high, j) = active[k];
            if east < x {
                active.swap_remove(k);
                continue;
            }
            if other_low <= high && low <= other_high {
                let q = &pieces[j];
                if is_wanted(p, q) && do_meet(p, q) {
                    each(p, q);
                }
            }
            k += 1;
        }
        active.push((p.a.x.max(p.b.x), low, high, i));
    }
}

/// On which side of the line through `p` and `q` the point `r` lies.
fn side(p: Coord<f64>, q: Coord<f64>, r: Coord<f64>) -> Orientation {
    RobustKernel::orient2d(p, q, r)
}

/// Whether `r`, which is in line with `p` and `q`, lies between them.
fn is_between(p: Coord<f64>, q: Coord<f64>, r: Coord<f64>) -> bool {
    r.x >= p.x.min(q.x) && r.x <= p.x.max(q.x) && r.y >= p.y.min(q.y) && r.y <= p.y.max(q.y)
}

/// Whether the two share a point that is not an end of both.
pub(crate) fn do_meet(p: &Piece, q: &Piece) -> bool {
    if (p.a == q.a && p.b == q.b) || (p.a == q.b && p.b == q.a) {
        return true;
    }
    // One common end: they meet again only when one folds back over the other.
    let shared = [(p.a, p.b, q.a, q.b), (p.a, p.b, q.b, q.a), (p.b, p.a, q.a, q.b), (p.b, p.a, q.b, q.a)]
        .into_iter()
        .find(|(a, _, c, _)| a == c);
    if let Some((common, p_end, _, q_end)) = shared {
        let ahead = (p_end.x - common.x) * (q_end.x - common.x) + (p_end.y - common.y) * (q_end.y - common.y) > 0.0;
        return ahead && side(common, p_end, q_end) == Orientation::Collinear;
    }
    let (qa, qb) = (side(p.a, p.b, q.a), side(p.a, p.b, q.b));
    let (pa, pb) = (side(q.a, q.b, p.a), side(q.a, q.b, p.b));
    use Orientation::Collinear;
    if qa != qb && pa != pb && [qa, qb, pa, pb].iter().all(|&o| o != Collinear) {
        return true;
    }
    (qa == Collinear && is_between(p.a, p.b, q.a))
        || (qb == Collinear && is_between(p.a, p.b, q.b))
        || (pa == Collinear && is_between(q.a, q.b, p.a))
        || (pb == Collinear && is_between(q.a, q.b, p.b))
}

/// Where `p` crosses `q`, as the share of the way along `p`; `None` where they are parallel.
pub(crate) fn crossing_along(p: &Piece, q: &Piece) -> Option<f64> {
    let (d, e) = (p.b - p.a, q.b - q.a);
    let det = d.x * e.y - d.y * e.x;
    if det == 0.0 || !det.is_finite() {
        return None;
    }
    let w = q.a - p.a;
    Some(((w.x * e.y - w.y * e.x) / det).clamp(0.0, 1.0))
}

/// A place to cut a line: its piece and the share of the way along that piece.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cut {
    pub(crate) index: usize,
    pub(crate) along: f64,
}

/// `points` cut at `cuts`, in order; every part has at least two distinct points.
pub(crate) fn cut_line(points: &[Coord<f64>], mut cuts: Vec<Cut>) -> Vec<Vec<Coord<f64>>> {
    cuts.sort_by(|a, b| a.index.cmp(&b.index).then(a.along.total_cmp(&b.along)));
    let mut parts = Vec::new();
    let mut part = vec![points[0]];
    let mut next = cuts.into_iter().peekable();
    for (index, w) in points.windows(2).enumerate() {
        while let Some(cut) = next.next_if(|c| c.index == index) {
            let at = w[0] + (w[1] - w[0]) * cut.along;
            part.push(at);
            parts.push(std::mem::replace(&mut part, vec![at]));
        }
        part.push(w[1]);
    }
    parts.push(part);
    for part in &mut parts {
        part.dedup();
    }
    parts.retain(|p| p.len() >= 2);
    parts
}

/// A point in the middle of a line: the middle of its middle piece.
pub(crate) fn middle_of(points: &[Coord<f64>]) -> Coord<f64> {
    let i = (points.len() - 1) / 2;
    let j = (i + 1).min(points.len() - 1);
    (points[i] + points[j]) / 2.0
}

/// All rings of `area`, exteriors and holes.
pub(crate) fn rings_of(area: &MultiPolygon<f64>) -> impl Iterator<Item = &geo::LineString<f64>> {
    area.iter().flat_map(|p| std::iter::once(p.exterior()).chain(p.interiors()))
}

/// A place where a boundary of `polygon` touches or crosses itself, rings of one polygon that cross each other included;
/// `None` when it is sound. Rings may share single vertices.
pub(crate) fn self_crossing(polygon: &geo::Polygon<f64>) -> Option<Coord<f64>> {
    let rings: Vec<_> = std::iter::once(polygon.exterior()).chain(polygon.interiors()).collect();
    let pieces: Vec<Piece> = rings.iter().enumerate().flat_map(|(i, r)| pieces_of(&r.0, i)).collect();
    let mut found: Option<Coord<f64>> = None;
    for_each_meeting(
        &pieces,
        |_, _| true,
        |p, q| {
            let at = p.a + (p.b - p.a) * crossing_along(p, q).unwrap_or(0.5);
            // The southernmost, so that the answer does not depend on the sweep's order.
            if found.is_none_or(|f| (at.y, at.x) < (f.y, f.x)) {
                found = Some(at);
            }
        },
    );
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use geo::{coord, polygon};

    fn piece(x0: f64, y0: f64, x1: f64, y1: f64) -> Piece {
        Piece { a: coord! { x: x0, y: y0 }, b: coord! { x: x1, y: y1 }, line: 0, index: 0 }
    }

    #[test]
    fn pieces_meet_when_they_cross_touch_or_fold() {
        let p = piece(0.0, 0.0, 2.0, 0.0);
        assert!(do_meet(&p, &piece(1.0, -1.0, 1.0, 1.0)), "cross");
        assert!(do_meet(&p, &piece(1.0, 0.0, 1.0, 1.0)), "touch inside");
        assert!(do_meet(&p, &piece(0.0, 0.0, 1.0, 0.0)), "fold back");
        assert!(do_meet(&p, &piece(1.0, 0.0, 3.0, 0.0)), "overlap in line");
        assert!(!do_meet(&p, &piece(2.0, 0.0, 3.0, 1.0)), "common end");
        assert!(!do_meet(&p, &piece(2.0, 0.0, 3.0, 0.0)), "straight on");
        assert!(!do_meet(&p, &piece(0.0, 1.0, 2.0, 1.0)), "parallel");
        assert!(!do_meet(&p, &piece(3.0, 0.0, 4.0, 0.0)), "in line, apart");
    }

    #[test]
    fn a_cut_line_keeps_its_direction() {
        let points: Vec<Coord<f64>> = [(0.0, 0.0), (2.0, 0.0), (2.0, 2.0)].map(Coord::from).to_vec();
        let parts = cut_line(&points, vec![Cut { index: 1, along: 0.5 }, Cut { index: 0, along: 0.5 }]);
        let expected: Vec<Vec<Coord<f64>>> = vec![
            [(0.0, 0.0), (1.0, 0.0)].map(Coord::from).to_vec(),
            [(1.0, 0.0), (2.0, 0.0), (2.0, 1.0)].map(Coord::from).to_vec(),
            [(2.0, 1.0), (2.0, 2.0)].map(Coord::from).to_vec(),
        ];
        assert_eq!(parts, expected);
        // A cut in an end makes no empty part.
        assert_eq!(cut_line(&points, vec![Cut { index: 0, along: 0.0 }]).len(), 1);
    }

    #[test]
    fn a_bow_tie_crosses_itself_and_a_square_does_not() {
        let bow = polygon![(x: 0.0, y: 0.0), (x: 2.0, y: 2.0), (x: 2.0, y: 0.0), (x: 0.0, y: 2.0)];
        assert_eq!(self_crossing(&bow), Some(coord! { x: 1.0, y: 1.0 }));
        let square = polygon![(x: 0.0, y: 0.0), (x: 2.0, y: 0.0), (x: 2.0, y: 2.0), (x: 0.0, y: 2.0)];
        assert_eq!(self_crossing(&square), None);
    }
}
