//! Areas gained and lost between two years.

use super::stack::Precedence;
use super::{Claim, ClaimKind, PolityRegion, Standing, Sureness, area_km2};
use crate::year::Era;
use geo::{BooleanOps, BoundingRect, Intersects, MultiPolygon};
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

/// Land that went from one to another between two years.
#[derive(Debug, Clone, PartialEq)]
pub struct Transfer {
    /// Who held it in the first year, id and name; `None` for nobody.
    pub from: Option<(String, String)>,
    /// Who held it in the second.
    pub to: Option<(String, String)>,
    /// Where, longitude and latitude.
    pub area: MultiPolygon<f64>,
    /// Square kilometres on the ellipsoid.
    pub area_km2: f64,
}

/// Less than this that went from one to another is the noise of drawing, km².
const TRANSFER_KM2: f64 = 1.0;

/// Who held which land in `era`: each claim without what comes before it by [`Precedence`], in order of id; parts are left to
/// their whole.
pub fn holdings<'a>(
    claims: &[&'a Claim],
    era: Era,
    land: &(dyn Fn(&MultiPolygon<f64>) -> MultiPolygon<f64> + Sync),
) -> Vec<(&'a Claim, MultiPolygon<f64>)> {
    let nothing = || MultiPolygon::new(vec![]);
    let regions: Vec<PolityRegion> = (1..)
        .zip(claims)
        .map(|(code, c)| PolityRegion {
            code,
            standing: c.standing(&era).unwrap_or(Standing { years: era, sureness: Sureness::Possible }),
            claim: (*c).clone(),
            outline: nothing(),
            area_km2: 0.0,
            colour: [0; 3],
        })
        .collect();
    let areas: Vec<MultiPolygon<f64>> = claims.par_iter().map(|c| land(&c.area)).collect();
    let mut taken = nothing();
    let mut held: Vec<(&Claim, MultiPolygon<f64>)> = Vec::new();
    for i in Precedence::among(&regions).order {
        let is_part = claims[i].kind == ClaimKind::Part
            && claims[i].parent.as_ref().is_some_and(|p| claims.iter().any(|c| &c.id == p));
        let own = areas[i].difference(&taken);
        if !is_part && !own.0.is_empty() {
            taken = taken.union(&own);
            held.push((claims[i], own));
        }
    }
    held.sort_by(|a, b| a.0.id.cmp(&b.0.id));
    held
}

/// The land that went from one to another, the greatest first, by [`holdings`] of two years. What is less than a square
/// kilometre between two is left out.
pub fn transfers(before: &[(&Claim, MultiPolygon<f64>)], after: &[(&Claim, MultiPolygon<f64>)]) -> Vec<Transfer> {
    let union = |held: &[(&Claim, MultiPolygon<f64>)]| geo::unary_union(held.iter().map(|h| &h.1));
    let (all_before, all_after) = (union(before), union(after));
    let name = |c: &Claim| (c.id.clone(), c.name.clone());
    let pairs = before.par_iter().flat_map(|a| after.par_iter().map(move |b| (Some(a), Some(b))));
    let ends = before.par_iter().map(|a| (Some(a), None)).chain(after.par_iter().map(|b| (None, Some(b))));
    let mut found: Vec<Transfer> = pairs
        .chain(ends)
        .filter_map(|(a, b)| {
            let area = match (a, b) {
                (Some(a), Some(b)) if a.0.id == b.0.id => return None,
                (Some(a), Some(b)) => {
                    let boxes = a.1.bounding_rect().zip(b.1.bounding_rect());
                    boxes.filter(|(r, s)| r.intersects(s)).map(|_| a.1.intersection(&b.1))?
                }
                (Some(a), None) => a.1.difference(&all_after),
                (None, Some(b)) => b.1.difference(&all_before),
                (None, None) => return None,
            };
            let area_km2 = area_km2(&area);
            (area_km2 >= TRANSFER_KM2).then(|| Transfer {
                from: a.map(|h| name(h.0)),
                to: b.map(|h| name(h.0)),
                area,
                area_km2,
            })
        })
        .collect();
    found.sort_by(|a, b| b.area_km2.total_cmp(&a.area_km2).then_with(|| (&a.from, &a.to).cmp(&(&b.from, &b.to))));
    found
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

    #[test]
    fn land_goes_from_one_to_another_and_to_nobody() {
        let era: Era = "1200".parse().unwrap();
        let before = [held("a", 43.0, 45.0), held("b", 45.0, 46.0)];
        let after = [held("a", 43.0, 44.0), held("b", 44.0, 45.5), held("c", 50.0, 51.0)];
        let hold = |claims: &'static [Claim]| holdings(&claims.iter().collect::<Vec<_>>(), era, &MultiPolygon::clone);
        let all = transfers(&hold(Box::leak(Box::new(before))), &hold(Box::leak(Box::new(after))));
        let said: Vec<String> = all
            .iter()
            .map(|t| {
                let id = |x: &Option<(String, String)>| x.as_ref().map_or("-".into(), |n| n.0.clone());
                format!("{} {} {:.0}", id(&t.from), id(&t.to), t.area_km2 / 100.0)
            })
            .collect();
        assert_eq!(said, ["- c 93", "a b 93", "b - 46"]);
    }

    #[test]
    fn overlapping_claims_hold_once() {
        let era: Era = "1200".parse().unwrap();
        let (a, b) = (held("a", 43.0, 45.0), held("b", 44.0, 44.5));
        let part = Claim { kind: ClaimKind::Part, parent: Some("a".into()), ..held("p", 43.0, 43.5) };
        let found = holdings(&[&a, &b, &part], era, &MultiPolygon::clone);
        assert_eq!(found.iter().map(|h| h.0.id.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        let sum: f64 = found.iter().map(|h| area_km2(&h.1)).sum();
        assert!((sum - area_km2(&a.area)).abs() < 1e-3, "{sum}");
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
