//! Narrow gaps between neighbours, closed: what careless digitising leaves along common borders. In the plane, metres.

use super::PlaneClaim;
use super::repair::without_faults;
use geo::algorithm::buffer::{BufferStyle, LineJoin};
use geo::{Area, BooleanOps, BoundingRect, Buffer, Intersects, MultiPolygon, Polygon, Rect};
use std::fmt;

/// Smaller gaps are filled without a word, square metres: a line for each would hide the others.
const TOLD_M2: f64 = 1e4;

/// A gap that was closed.
#[derive(Debug, Clone, PartialEq)]
pub struct ClosedGap {
    /// Name of the polity that got it.
    pub to: String,
    /// Names of those on its other sides.
    pub beside: Vec<String>,
    /// Square kilometres in the plane.
    pub area_km2: f64,
    /// Its greatest width allowed, metres.
    pub width_m: f64,
}

/// `a gap of 12.3 km² (narrower than 500 m) between A and B is closed, to A`.
impl fmt::Display for ClosedGap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a gap of {:.1} km² (narrower than {:.0} m) between {} and {} is closed, to {}",
            self.area_km2,
            self.width_m,
            self.to,
            self.beside.join(", "),
            self.to
        )
    }
}

/// Gives gaps between `claims` that are narrower than `width_m` to a neighbour; returns what was given to whom.
///
/// A gap is what lies within half the width of claims on both sides and in none of them (a morphological closing). Every
/// piece of it that touches at least two claims goes to the least certain of them, because its outline says least; among
/// equals to the smaller id. Bays of a single claim stay as they are, overlaps too. The areas grow by the gaps and
/// are otherwise bit for bit what they were, save that corners of the gap are entered. Cost: two buffers of all claims.
pub fn close_gaps(claims: &mut [PlaneClaim], width_m: f64) -> Vec<ClosedGap> {
    let half = width_m / 2.0;
    if !(half > 0.0 && half.is_finite()) || claims.len() < 2 {
        return Vec::new();
    }
    let style = |d: f64| BufferStyle::new(d).line_join(LineJoin::Miter(1.0));
    let union = geo::unary_union(claims.iter().map(|c| &c.area));
    // A hair more outward than inward, so that the closed area covers the union in spite of rounding.
    let closed = union.buffer_with_style(style(half)).buffer_with_style(style(-half));
    let mut told = Vec::new();
    let mut order: Vec<usize> = (0..claims.len()).collect();
    order.sort_by(|&i, &j| {
        let key = |k: usize| (claims[k].claim.certainty, &claims[k].claim.id);
        key(i).cmp(&key(j))
    });
    for gap in closed.difference(&union) {
        for (k, part) in shared_out(gap, &order, claims, half) {
            let touching: Vec<usize> =
                order.iter().copied().filter(|&i| touches(&claims[i].area, &part, half)).collect();
            let beside: Vec<String> =
                touching.iter().filter(|&&i| i != k).map(|&i| claims[i].claim.name.clone()).collect();
            if beside.is_empty() {
                continue;
            }
            let area_m2 = part.unsigned_area();
            if area_m2 >= TOLD_M2 {
                let to = claims[k].claim.name.clone();
                told.push(ClosedGap { to, beside, area_km2: area_m2 / 1e6, width_m });
            }
            claims[k].area = without_faults(claims[k].area.union(&part));
        }
    }
    told.sort_by(|a, b| b.area_km2.total_cmp(&a.area_km2).then_with(|| a.to.cmp(&b.to)));
    told
}

/// A gap in parts, each with the claim that it goes to: one after the other takes what lies near it.
fn shared_out(gap: Polygon<f64>, order: &[usize], claims: &[PlaneClaim], half: f64) -> Vec<(usize, MultiPolygon<f64>)> {
    let near: Vec<usize> =
        order.iter().copied().filter(|&i| touches(&claims[i].area, &MultiPolygon::from(gap.clone()), half)).collect();
    let mut rest = MultiPolygon::from(gap);
    let mut parts = Vec::new();
    for (n, &i) in near.iter().enumerate() {
        // The last takes what is left.
        let is_last = n + 1 == near.len();
        let taken = if is_last { rest.clone() } else { rest.intersection(&grown(&claims[i].area, &rest, half)) };
        if taken.unsigned_area() > 0.0 {
            rest = rest.difference(&taken);
            parts.push((i, taken));
        }
    }
    parts
}

/// What of `area` is near `part`, grown by the full width.
fn grown(area: &MultiPolygon<f64>, part: &MultiPolygon<f64>, half: f64) -> MultiPolygon<f64> {
    let Some(frame) = frame(part, 6.0 * half) else { return MultiPolygon::new(vec![]) };
    area.intersection(&MultiPolygon::from(frame.to_polygon()))
        .buffer_with_style(BufferStyle::new(2.01 * half).line_join(LineJoin::Miter(1.0)))
}

/// Whether `area` comes to `part` within a tenth of the width, and so is one of its sides.
fn touches(area: &MultiPolygon<f64>, part: &MultiPolygon<f64>, half: f64) -> bool {
    let Some(frame) = frame(part, half) else { return false };
    let is_near = area.bounding_rect().is_some_and(|r| r.intersects(&frame));
    is_near
        && area
            .intersection(&MultiPolygon::from(frame.to_polygon()))
            .buffer_with_style(BufferStyle::new(0.05 * half).line_join(LineJoin::Bevel))
            .intersects(part)
}

/// The box around `part` with a margin.
fn frame(part: &MultiPolygon<f64>, margin: f64) -> Option<Rect<f64>> {
    let r = part.bounding_rect()?;
    Some(Rect::new((r.min().x - margin, r.min().y - margin), (r.max().x + margin, r.max().y + margin)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::borders::tests::claim;
    use crate::borders::{Certainty, Claim};
    use geo::polygon;

    fn square(x0: f64, y0: f64, x1: f64, y1: f64) -> MultiPolygon<f64> {
        polygon![(x: x0, y: y0), (x: x1, y: y0), (x: x1, y: y1), (x: x0, y: y1)].into()
    }

    fn areas(held: &[(&str, Certainty, MultiPolygon<f64>)], width_m: f64) -> (Vec<f64>, Vec<String>) {
        let claims: Vec<Claim> =
            held.iter().map(|(id, certainty, _)| Claim { certainty: *certainty, ..claim(id, "1200") }).collect();
        let mut plane: Vec<PlaneClaim> = claims
            .iter()
            .zip(held)
            .map(|(claim, h)| PlaneClaim { claim, area: h.2.clone(), known_lines: Vec::new() })
            .collect();
        let told = close_gaps(&mut plane, width_m).iter().map(ToString::to_string).collect();
        (plane.iter().map(|c| (c.area.unsigned_area() / 1e6 * 100.0).round() / 100.0).collect(), told)
    }

    #[test]
    fn a_narrow_gap_goes_to_the_less_certain_neighbour() {
        use Certainty::{Conjectural, Treaty};
        // 300 m by 20 km, closed at both ends by a third.
        let west = square(0.0, 0.0, 10_000.0, 20_000.0);
        let east = square(10_300.0, 0.0, 20_000.0, 20_000.0);
        let both = [("east", Conjectural, east.clone()), ("west", Treaty, west.clone())];
        let (km2, told) = areas(&both, 500.0);
        assert_eq!(km2, [200.0, 200.0]);
        assert_eq!(told, ["a gap of 6.0 km² (narrower than 500 m) between EAST and WEST is closed, to EAST"]);
        // Wider than asked for: nothing is done.
        assert_eq!(areas(&both, 200.0), (vec![194.0, 200.0], vec![]));
        assert_eq!(areas(&both, 0.0).0, [194.0, 200.0]);
    }

    #[test]
    fn bays_and_overlaps_stay() {
        use Certainty::Approximate;
        // A bay of 200 m in one claim, and two that overlap.
        let bay: MultiPolygon<f64> = polygon![
            (x: 0.0, y: 0.0), (x: 10_000.0, y: 0.0), (x: 10_000.0, y: 4_900.0), (x: 5_000.0, y: 4_900.0),
            (x: 5_000.0, y: 5_100.0), (x: 10_000.0, y: 5_100.0), (x: 10_000.0, y: 10_000.0), (x: 0.0, y: 10_000.0),
        ]
        .into();
        let other = square(-5_000.0, 0.0, 1_000.0, 10_000.0);
        let before = [bay.unsigned_area() / 1e6, other.unsigned_area() / 1e6];
        let (km2, told) = areas(&[("a", Approximate, bay), ("b", Approximate, other)], 500.0);
        assert_eq!((km2, told), (before.to_vec(), vec![]));
    }

    #[test]
    fn a_gap_along_several_is_shared_out() {
        use Certainty::Approximate;
        // One in the north, two in the south, 100 m between.
        let claims = [
            ("north", Approximate, square(0.0, 5_100.0, 20_000.0, 10_000.0)),
            ("south-a", Approximate, square(0.0, 0.0, 9_950.0, 5_000.0)),
            ("south-b", Approximate, square(10_050.0, 0.0, 20_000.0, 5_000.0)),
        ];
        let (km2, told) = areas(&claims, 400.0);
        let sum: f64 = km2.iter().sum();
        assert!((sum - 200.0).abs() < 0.05, "{km2:?} {told:?}");
        assert!(told.len() >= 2 && told[0].contains("NORTH"), "{told:?}");
    }
}
