//! Claims cut to the surroundings of a map window.

use super::Claim;
use super::reader::MARGIN;
use super::repair::without_faults;
use crate::grid::LonLatBox;
use geo::{BooleanOps, BoundingRect, Intersects, MultiPolygon, Rect};
use rayon::prelude::*;

/// `claims` cut to `window` and 15 % of its greater side around it: a world file has much that a map's plane cannot show.
/// Claims that lie outside are left out; those inside are as they were.
pub fn cut_to_window(claims: Vec<Claim>, window: &LonLatBox) -> Vec<Claim> {
    let margin = MARGIN * (window.east - window.west).max(window.north - window.south);
    let frame = Rect::new(
        ((window.west - margin).max(-180.0), (window.south - margin).max(-90.0)),
        ((window.east + margin).min(180.0), (window.north + margin).min(90.0)),
    );
    let is_inside = |r: &Rect<f64>| {
        frame.min().x <= r.min().x
            && r.max().x <= frame.max().x
            && frame.min().y <= r.min().y
            && r.max().y <= frame.max().y
    };
    let cut = |mut claim: Claim| -> Option<Claim> {
        let mut area = MultiPolygon::new(vec![]);
        for polygon in std::mem::replace(&mut claim.area, MultiPolygon::new(vec![])) {
            match polygon.bounding_rect() {
                Some(r) if is_inside(&r) => area.0.push(polygon),
                Some(r) if r.intersects(&frame) => area.0.extend(polygon.intersection(&frame.to_polygon())),
                _ => {}
            }
        }
        claim.area = without_faults(area);
        (!claim.area.0.is_empty()).then_some(claim)
    };
    claims.into_par_iter().filter_map(cut).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::borders::tests::claim;
    use geo::{Area, polygon};

    #[test]
    fn what_lies_far_outside_is_cut_off() {
        let window = LonLatBox::new(40.0, 40.0, 50.0, 45.0).unwrap();
        let square = |x: f64, y: f64, size: f64| Claim {
            area: polygon![(x: x, y: y), (x: x + size, y: y), (x: x + size, y: y + size), (x: x, y: y + size)].into(),
            ..claim("a", "1200")
        };
        let all = vec![square(42.0, 41.0, 1.0), square(0.0, 0.0, 80.0), square(0.0, 0.0, 10.0)];
        let cut = cut_to_window(all.clone(), &window);
        assert_eq!(cut.len(), 2);
        assert_eq!(cut[0], all[0]);
        // 13 x 8 degrees: the window and 1.5 around it.
        assert!((cut[1].area.unsigned_area() - 104.0).abs() < 1e-4, "{}", cut[1].area.unsigned_area());
    }
}
