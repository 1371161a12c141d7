//! Which claims hold in an era, and which years are covered at all.

use super::{Claim, ClaimKind};
use crate::year::{Era, Span};

/// The claims of an era.
#[derive(Debug, Clone, PartialEq)]
pub struct Selection<'a> {
    /// One claim per polity, in order of id: what is drawn.
    pub claims: Vec<&'a Claim>,
    /// One claim per polity that is not among `claims`, in order of id: those that may have held in the era, by the doubt
    /// about their years, though they are taken not to have. Drawn where nobody else holds the land.
    pub possible: Vec<&'a Claim>,
    /// Further claims of the same polities that hold only later in the era: not drawn, to be mentioned.
    pub later: Vec<&'a Claim>,
    /// Composites left out because members of theirs are drawn.
    pub composites: Vec<&'a Claim>,
}

impl Selection<'_> {
    /// Whether nothing holds in the era.
    pub fn is_empty(&self) -> bool {
        self.claims.is_empty()
    }
}

/// The claims that hold in any year of `era`, one per polity (id).
///
/// Where a polity has several in the era, the one that holds in the era's first year is drawn (or else the one that
/// begins first), the others are `later`. A composite is left out where a member (a claim whose parent it is) is drawn.
/// Claims that only may have held are `possible`. The order of `claims` does not matter.
pub fn select<'a>(claims: &'a [Claim], era: Era) -> Selection<'a> {
    let (mut held, mut possible): (Vec<&Claim>, Vec<&Claim>) =
        claims.iter().filter(|c| c.standing(&era).is_some()).partition(|c| c.span.overlaps(&era));
    // Of two that hold at the era's start, which sound data do not have, the one that began last is the more exact.
    held.sort_by(|a, b| {
        let starts = |c: &Claim| (c.span.start.max(era.start), std::cmp::Reverse(c.span.start), c.span.end);
        a.id.cmp(&b.id).then_with(|| starts(a).cmp(&starts(b))).then_with(|| stable_order(a, b))
    });
    let mut selection =
        Selection { claims: Vec::new(), possible: Vec::new(), later: Vec::new(), composites: Vec::new() };
    for claim in held {
        match selection.claims.last() {
            Some(drawn) if drawn.id == claim.id => selection.later.push(claim),
            _ => selection.claims.push(claim),
        }
    }
    let parents: Vec<&str> = selection.claims.iter().filter_map(|c| c.parent.as_deref()).collect();
    let is_replaced = |c: &Claim| c.kind == ClaimKind::Composite && parents.contains(&c.id.as_str());
    (selection.composites, selection.claims) = selection.claims.into_iter().partition(|c| is_replaced(c));
    // Of two that may have held, the one nearer in time to the era.
    let away = |c: &Claim| (c.span.start.0 - era.end.0).max(era.start.0 - c.span.end.0);
    possible.retain(|c| c.kind != ClaimKind::Composite && !selection.claims.iter().any(|d| d.id == c.id));
    possible.sort_by(|a, b| {
        a.id.cmp(&b.id)
            .then_with(|| away(a).cmp(&away(b)))
            .then_with(|| a.span.cmp(&b.span))
            .then_with(|| stable_order(a, b))
    });
    possible.dedup_by(|later, kept| later.id == kept.id);
    selection.possible = possible;
    selection
}

/// An order for claims with the same id and years, from what they hold.
fn stable_order(a: &Claim, b: &Claim) -> std::cmp::Ordering {
    let text = |c: &Claim| format!("{c:?}");
    text(a).cmp(&text(b))
}

/// The years in which any claim holds, merged, in order of time.
pub fn covered_spans(claims: &[Claim]) -> Vec<Span> {
    Span::merged(claims.iter().map(|c| c.span))
}

/// Spans for print: `1196–1230 CE, 1300 CE`; `no years` when empty.
pub fn describe_spans(spans: &[Span]) -> String {
    if spans.is_empty() {
        return "no years".to_string();
    }
    spans.iter().map(Span::to_string).collect::<Vec<_>>().join(", ")
}

/// `base` with `added` on top: for the years of an added claim, base claims of the same polity (id) do not hold.
pub fn merge_claims(base: Vec<Claim>, added: Vec<Claim>) -> Vec<Claim> {
    let mut merged = Vec::with_capacity(base.len() + added.len());
    for claim in base {
        let mut spans = vec![claim.span];
        for newer in added.iter().filter(|n| n.id == claim.id) {
            spans = spans.iter().flat_map(|s| s.minus(&newer.span)).collect();
        }
        merged.extend(spans.into_iter().map(|span| Claim { span, ..claim.clone() }));
    }
    merged.extend(added);
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::borders::tests::{claim, doubted};
    use proptest::prelude::*;

    fn era(text: &str) -> Era {
        text.parse().unwrap()
    }

    fn ids<'a>(claims: &[&'a Claim]) -> Vec<&'a str> {
        claims.iter().map(|c| c.id.as_str()).collect()
    }

    #[test]
    fn the_claim_at_the_start_of_the_era_wins() {
        let claims = [claim("b", "1205/1210"), claim("a", "1206/1220"), claim("a", "1196/1205"), claim("c", "1300")];
        let s = select(&claims, era("1200/1208"));
        assert_eq!(ids(&s.claims), ["a", "b"]);
        assert_eq!(s.claims[0].span, era("1196/1205"));
        assert_eq!(ids(&s.later), ["a"]);
        assert!(select(&claims, era("1250")).is_empty());
    }

    #[test]
    fn a_composite_gives_way_to_its_members() {
        let union = Claim { kind: ClaimKind::Composite, ..claim("union", "1000/1300") };
        let member = Claim { parent: Some("union".into()), ..claim("member", "1100/1200") };
        let claims = [union, member];
        let s = select(&claims, era("1150"));
        assert_eq!((ids(&s.claims), ids(&s.composites)), (vec!["member"], vec!["union"]));
        assert_eq!(ids(&select(&claims, era("1250")).claims), ["union"]);
    }

    #[test]
    fn what_may_have_held_is_apart_and_never_twice() {
        let ended = doubted(claim("old", "1150/1199"), [1150, 1150], [1195, 1203]);
        let begun = doubted(claim("new", "1203/1250"), [1200, 1205], [1250, 1250]);
        let again = doubted(claim("new", "1251/1260"), [1190, 1252], [1260, 1260]);
        let sure = claim("sure", "1100/1300");
        let claims = [ended, begun, again, sure];
        let s = select(&claims, era("1201"));
        assert_eq!((ids(&s.claims), ids(&s.possible)), (vec!["sure"], vec!["new", "old"]));
        assert_eq!(s.possible[0].span, era("1203/1250"));
        // A polity that is drawn is not drawn once more where it may have stood.
        assert_eq!(ids(&select(&claims, era("1203")).possible), ["old"]);
        assert!(select(&claims, era("1189")).possible.is_empty());
        // The map of a year has somebody only where somebody is taken to have held.
        assert!(select(&claims[..1], era("1201")).is_empty());
    }

    #[test]
    fn covered_years_are_named() {
        let claims = [claim("a", "1196/1210"), claim("b", "1211/1230"), claim("c", "-50")];
        assert_eq!(describe_spans(&covered_spans(&claims)), "50 BCE, 1196–1230 CE");
        assert_eq!(describe_spans(&[]), "no years");
    }

    #[test]
    fn added_claims_replace_the_years_that_they_cover() {
        let merged = merge_claims(vec![claim("a", "1184/1225"), claim("b", "1200")], vec![claim("a", "1200/1210")]);
        let spans: Vec<String> = merged.iter().map(|c| format!("{} {}", c.id, c.span)).collect();
        assert_eq!(spans, ["a 1184–1199 CE", "a 1211–1225 CE", "b 1200 CE", "a 1200–1210 CE"]);
    }

    proptest! {
        #[test]
        fn order_of_claims_does_not_matter(
            list in proptest::collection::vec((0usize..4, 1000i32..1040, 0i32..20), 1..12).prop_shuffle(),
            from in 1000i32..1040,
            years in 0i32..10,
        ) {
            let make = |&(id, start, n): &(usize, i32, i32)| claim(["a", "b", "c", "d"][id], &format!("{start}/{}", start + n));
            let claims: Vec<Claim> = list.iter().map(make).collect();
            let reversed: Vec<Claim> = list.iter().rev().map(make).collect();
            let e = era(&format!("{from}/{}", from + years));
            prop_assert_eq!(select(&claims, e), select(&reversed, e));
            // Everything that holds is accounted for, and each polity is drawn once.
            let s = select(&claims, e);
            prop_assert_eq!(s.claims.len() + s.later.len(), claims.iter().filter(|c| c.span.overlaps(&e)).count());
            prop_assert!(s.claims.windows(2).all(|w| w[0].id < w[1].id));
        }
    }
}
