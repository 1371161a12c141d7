//! Who held a place, and when.

use super::{Certainty, Claim, ClaimKind};
use crate::grid::LonLat;
use crate::year::Span;
use geo::{Intersects, Point};
use std::fmt;

/// One polity's hold on a place.
#[derive(Debug, Clone, PartialEq)]
pub struct Tenure {
    /// When.
    pub span: Span,
    /// The polity.
    pub id: String,
    /// Its name then.
    pub name: String,
    /// What it is.
    pub kind: ClaimKind,
    /// How well the outline is known.
    pub certainty: Certainty,
    /// The works named for it, in order of name.
    pub sources: Vec<String>,
    /// How far the years are in doubt, and remarks of the source on it; empty when nothing.
    pub doubt: String,
}

/// All that held a place.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tenures {
    /// In order of time, then of id; claims of one polity that follow each other without a change are one.
    pub rows: Vec<Tenure>,
    /// The years between the first and the last in which nobody is known to have held it.
    pub gaps: Vec<Span>,
}

/// Who of `claims` held the point `place` in the years of `within`; on a border, both sides did.
pub fn tenures(claims: &[Claim], place: LonLat, within: Span) -> Tenures {
    let point = Point::new(place.lon, place.lat);
    let mut held: Vec<&Claim> =
        claims.iter().filter(|c| c.span.overlaps(&within) && c.area.intersects(&point)).collect();
    held.sort_by(|a, b| (&a.id, a.span).cmp(&(&b.id, b.span)));
    let mut rows: Vec<Tenure> = Vec::new();
    for claim in held {
        let mut sources = claim.sources.clone();
        sources.sort();
        let row = Tenure {
            span: claim.span,
            id: claim.id.clone(),
            name: claim.name.clone(),
            kind: claim.kind,
            certainty: claim.certainty,
            sources,
            doubt: claim.doubt.map_or(String::new(), |d| d.to_string()),
        };
        let follows = |last: &&mut Tenure| {
            last.span.end == row.span.start && Tenure { span: row.span, ..(**last).clone() } == row
        };
        match rows.last_mut().filter(follows) {
            Some(last) => last.span.end = row.span.end,
            None => rows.push(row),
        }
    }
    rows.sort_by(|a, b| (a.span.start, &a.id).cmp(&(b.span.start, &b.id)));
    let covered = Span::merged(rows.iter().map(|r| r.span));
    let gaps = covered.windows(2).map(|w| Span { start: w[0].end, end: w[1].start }).collect();
    Tenures { rows, gaps }
}

/// A table for the terminal, years without a holder in their place.
impl fmt::Display for Tenures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines: Vec<(Span, [String; 5])> = self
            .rows
            .iter()
            .map(|r| {
                let certainty = if r.doubt.is_empty() {
                    r.certainty.as_str().to_string()
                } else {
                    format!("{} ({})", r.certainty.as_str(), r.doubt)
                };
                let row =
                    [r.span.to_string(), r.name.clone(), r.kind.as_str().to_string(), certainty, r.sources.join(", ")];
                (r.span, row)
            })
            .collect();
        lines.extend(
            self.gaps.iter().map(|g| {
                (*g, [g.to_string(), "nobody known".to_string(), String::new(), String::new(), String::new()])
            }),
        );
        lines.sort_by_key(|(span, _)| span.start);
        let head = ["years", "polity", "kind", "certainty", "works"].map(String::from);
        let rows: Vec<[String; 5]> = std::iter::once(head).chain(lines.into_iter().map(|(_, l)| l)).collect();
        let width = |k: usize| rows.iter().map(|l| l[k].chars().count()).max().unwrap_or(0);
        let [w0, w1, w2, w3] = [0, 1, 2, 3].map(width);
        for [years, polity, kind, certainty, sources] in &rows {
            let line = format!("{years:<w0$}  {polity:<w1$}  {kind:<w2$}  {certainty:<w3$}  {sources}");
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::borders::tests::claim;
    use geo::polygon;

    #[test]
    fn a_place_is_held_by_one_after_another() {
        let square = |x: f64, c: Claim| Claim {
            area: polygon![(x: x, y: 41.0), (x: x + 1.0, y: 41.0), (x: x + 1.0, y: 42.0), (x: x, y: 42.0)].into(),
            ..c
        };
        let claims = [
            square(44.0, claim("b", "1184/1203")),
            square(44.0, claim("a", "1100/1150")),
            square(44.0, claim("b", "1204/1220")),
            square(45.0, claim("c", "1200/1210")),
        ];
        let at = |lon: f64| tenures(&claims, LonLat { lon, lat: 41.5 }, Span::ALWAYS);
        assert_eq!(
            at(44.5).to_string(),
            "years         polity        kind    certainty    works\n\
             1100–1150 CE  A             polity  approximate\n\
             1151–1183 CE  nobody known\n\
             1184–1220 CE  B             polity  approximate\n"
        );
        assert_eq!(at(45.0).rows.len(), 3, "on the border both sides hold it");
        assert!(at(50.0).rows.is_empty());
        let one = tenures(&claims, LonLat { lon: 44.5, lat: 41.5 }, "1200".parse().unwrap());
        assert_eq!(one.rows.len(), 1);
    }
}
