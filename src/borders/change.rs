//! Areas gained and lost between two years.

use super::{Claim, ClaimKind, area_km2};
use geo::{BooleanOps, MultiPolygon};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// One polity's area in two years.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct AreaChange {
    /// The polity.
    pub id: String,
    /// Its name, the later one where it has two.
    pub name: String,
    /// What it is: `polity`, `part`, ...
    pub kind: &'static str,
    /// Area in the first year, km² on the ellipsoid; 0 when it was not there.
    pub before_km2: f64,
    /// Area in the second year.
    pub after_km2: f64,
    /// Held in the second year and not in the first.
    pub gained_km2: f64,
    /// Held in the first year and not in the second.
    pub lost_km2: f64,
}

impl AreaChange {
    /// Whether less than 1 km² changed hands: no more than the noise of drawing.
    pub fn is_unchanged(&self) -> bool {
        self.gained_km2 < 1.0 && self.lost_km2 < 1.0
    }
}

/// What each polity gained and lost from `before` to `after` (one claim per polity each, see [`super::select()`]), the
/// greatest changes first, the unchanged last.
///
/// `land` cuts an area to what counts. Areas are compared in longitude and latitude, where edges are straight as in the
/// files, so that gained less lost is the difference of the areas to rounding. Cost: one overlay per polity.
pub fn area_changes(
    before: &[&Claim],
    after: &[&Claim],
    land: &(dyn Fn(&MultiPolygon<f64>) -> MultiPolygon<f64> + Sync),
) -> Vec<AreaChange> {
    let mut by_id: BTreeMap<&str, [Option<&Claim>; 2]> = BTreeMap::new();
    for (k, claims) in [before, after].into_iter().enumerate() {
        for claim in claims {
            by_id.entry(&claim.id).or_default()[k] = Some(claim);
        }
    }
    let pairs: Vec<[Option<&Claim>; 2]> = by_id.into_values().collect();
    let mut changes: Vec<AreaChange> = pairs.par_iter().filter_map(|pair| change(*pair, land)).collect();
    changes.sort_by(|a, b| {
        let moved = |c: &AreaChange| if c.is_unchanged() { -1.0 } else { c.gained_km2 + c.lost_km2 };
        moved(b).total_cmp(&moved(a)).then_with(|| b.after_km2.total_cmp(&a.after_km2)).then_with(|| a.id.cmp(&b.id))
    });
    changes
}

fn change(
    [before, after]: [Option<&Claim>; 2],
    land: &(dyn Fn(&MultiPolygon<f64>) -> MultiPolygon<f64> + Sync),
) -> Option<AreaChange> {
    let last = after.or(before)?;
    let nothing = MultiPolygon::new(vec![]);
    let (a, b) = (before.map_or(nothing.clone(), |c| land(&c.area)), after.map_or(nothing, |c| land(&c.area)));
    let (before_km2, after_km2) = (area_km2(&a), area_km2(&b));
    let (gained_km2, lost_km2) = match (a.0.is_empty(), b.0.is_empty()) {
        (true, true) => return None,
        (true, _) => (after_km2, 0.0),
        (_, true) => (0.0, before_km2),
        _ if a == b => (0.0, 0.0),
        _ => (area_km2(&b.difference(&a)), area_km2(&a.difference(&b))),
    };
    let kind: ClaimKind = last.kind;
    Some(AreaChange {
        id: last.id.clone(),
        name: last.name.clone(),
        kind: kind.as_str(),
        before_km2,
        after_km2,
        gained_km2,
        lost_km2,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::borders::tests::claim;
    use geo::polygon;
    use proptest::prelude::*;

    fn held(id: &str, x0: f64, x1: f64) -> Claim {
        let area = polygon![(x: x0, y: 41.0), (x: x1, y: 41.0), (x: x1, y: 42.0), (x: x0, y: 42.0)].into();
        Claim { area, ..claim(id, "1200") }
    }

    fn changes(before: &[Claim], after: &[Claim]) -> Vec<AreaChange> {
        let refs = |c: &[Claim]| -> Vec<Claim> { c.to_vec() };
        let (a, b) = (refs(before), refs(after));
        area_changes(&a.iter().collect::<Vec<_>>(), &b.iter().collect::<Vec<_>>(), &MultiPolygon::clone)
    }

    #[test]
    fn land_that_moves_is_gained_and_lost() {
        let before = [held("a", 43.0, 45.0), held("b", 45.0, 46.0), held("c", 47.0, 48.0), held("d", 50.0, 51.0)];
        let after = [held("a", 43.0, 44.0), held("b", 44.0, 46.0), held("c", 47.0, 48.0), held("e", 52.0, 55.0)];
        let all = changes(&before, &after);
        assert_eq!(all.iter().map(|c| c.id.as_str()).collect::<Vec<_>>(), ["e", "b", "a", "d", "c"]);
        let (a, b) = (&all[2], &all[1]);
        // A degree at 41.5 N, 9,273 km².
        assert!((a.lost_km2 - 9273.0).abs() < 10.0 && a.gained_km2 < 1e-3, "{a:?}");
        assert!((b.gained_km2 - a.lost_km2).abs() < 1e-3);
        assert_eq!((all[0].before_km2, all[3].after_km2), (0.0, 0.0));
        assert!(all[4].is_unchanged() && !all[3].is_unchanged());
    }

    proptest! {
        #[test]
        fn gained_less_lost_is_the_difference(a in 0.0f64..10.0, b in 0.1f64..10.0, c in 0.0f64..10.0, d in 0.1f64..10.0) {
            let all = changes(&[held("a", a, a + b)], &[held("a", c, c + d)]);
            let change = &all[0];
            let scale = change.before_km2 + change.after_km2;
            prop_assert!(((change.gained_km2 - change.lost_km2) - (change.after_km2 - change.before_km2)).abs() < 1e-6 * scale);
        }
    }
}
