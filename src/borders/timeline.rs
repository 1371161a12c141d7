//! Polities by year, for `histmap eras`.

use super::{Certainty, Claim, Doubt};
use crate::year::{Span, Year};
use std::fmt;

/// All claims by polity, in order of time.
#[derive(Debug, Clone, PartialEq)]
pub struct Timeline {
    /// Polities in order of their first year, then id.
    pub rows: Vec<TimelineRow>,
    /// Years in which the map changes: a claim begins, or one has ended the year before. Rising.
    pub change_years: Vec<Year>,
}

/// One polity's claims.
#[derive(Debug, Clone, PartialEq)]
pub struct TimelineRow {
    /// The polity.
    pub id: String,
    /// Its claims in order of time.
    pub entries: Vec<TimelineEntry>,
}

/// One claim in a timeline.
#[derive(Debug, Clone, PartialEq)]
pub struct TimelineEntry {
    /// When it holds.
    pub span: Span,
    /// The polity's name then.
    pub name: String,
    /// How well its outline is known.
    pub certainty: Certainty,
    /// The works named for it, in order of name.
    pub sources: Vec<String>,
    /// How far its first and last year are in doubt.
    pub doubt: Option<Doubt>,
    /// Its own colour.
    pub colour: Option<[u8; 3]>,
}

impl TimelineEntry {
    /// The years in which it may have held.
    pub fn possible_years(&self) -> Span {
        self.doubt.map_or(self.span, |d| d.widened(self.span))
    }

    /// The years in which it held beyond doubt; maybe none.
    pub fn certain_years(&self) -> Span {
        self.doubt.map_or(self.span, |d| d.narrowed(self.span))
    }
}

impl TimelineRow {
    /// The years for which claims of different sources stand side by side, merged.
    pub fn differences(&self) -> Vec<Span> {
        let pairs =
            self.entries.iter().enumerate().flat_map(|(k, a)| self.entries[k + 1..].iter().map(move |b| (a, b)));
        Span::merged(
            pairs
                .filter(|(a, b)| a.sources != b.sources)
                .map(|(a, b)| Span { start: a.span.start.max(b.span.start), end: a.span.end.min(b.span.end) }),
        )
    }
}

/// The timeline of `claims`, whatever their order.
pub fn timeline(claims: &[Claim]) -> Timeline {
    let mut sorted: Vec<&Claim> = claims.iter().filter(|c| !c.span.is_empty()).collect();
    sorted.sort_by(|a, b| (&a.id, a.span, &a.name).cmp(&(&b.id, b.span, &b.name)));
    let mut rows: Vec<TimelineRow> = Vec::new();
    for claim in &sorted {
        let mut sources = claim.sources.clone();
        sources.sort();
        let entry = TimelineEntry {
            span: claim.span,
            name: claim.name.clone(),
            certainty: claim.certainty,
            sources,
            doubt: claim.doubt,
            colour: claim.colour,
        };
        match rows.last_mut() {
            Some(row) if row.id == claim.id => row.entries.push(entry),
            _ => rows.push(TimelineRow { id: claim.id.clone(), entries: vec![entry] }),
        }
    }
    rows.sort_by(|a, b| (a.entries[0].span.start, &a.id).cmp(&(b.entries[0].span.start, &b.id)));
    let ends = |c: &&Claim| [c.span.start, c.span.end];
    let open = [Span::ALWAYS.start, Span::ALWAYS.end];
    let mut change_years: Vec<Year> = sorted.iter().flat_map(ends).filter(|y| !open.contains(y)).collect();
    change_years.sort();
    change_years.dedup();
    Timeline { rows, change_years }
}

/// What of a timeline differs between sources, a line for each polity; empty where nothing does.
fn told_differences(rows: &[TimelineRow]) -> String {
    let mut out = String::new();
    for row in rows.iter().filter(|r| !r.differences().is_empty()) {
        if out.is_empty() {
            out += "\nSources differ:\n";
        }
        let name = row.entries.last().map_or("", |e| e.name.as_str());
        let years: Vec<String> = row.differences().iter().map(Span::to_string).collect();
        out += &format!("  {name}: {}\n", years.join(", "));
    }
    out
}

impl Timeline {
    /// A table with one line for each polity: all its years, its names in order of time, its certainty from the least to the
    /// greatest; then what differs between sources, and how often the map changes.
    pub fn by_polity(&self) -> String {
        let mut lines = vec![["years", "polity", "certainty"].map(String::from)];
        for row in &self.rows {
            let years: Vec<String> =
                Span::merged(row.entries.iter().map(|e| e.span)).iter().map(Span::to_string).collect();
            let mut names: Vec<&str> = Vec::new();
            for e in &row.entries {
                if !names.contains(&e.name.as_str()) {
                    names.push(&e.name);
                }
            }
            let known = || row.entries.iter().map(|e| e.certainty);
            let (least, most) = (known().min(), known().max());
            let certainty = match (least, most) {
                (Some(a), Some(b)) if a == b => a.as_str().to_string(),
                (Some(a), Some(b)) => format!("{} to {}", a.as_str(), b.as_str()),
                _ => String::new(),
            };
            let doubt = if row.entries.iter().any(|e| e.doubt.is_some()) { ", years in doubt" } else { "" };
            lines.push([years.join(", "), names.join("; "), format!("{certainty}{doubt}")]);
        }
        let width = |k: usize| lines.iter().map(|l| l[k].chars().count()).max().unwrap_or(0).min(60);
        let (w0, w1) = (width(0), width(1));
        let mut out = String::new();
        for [years, polity, certainty] in &lines {
            out += format!("{years:<w0$}  {polity:<w1$}  {certainty}").trim_end();
            out += "\n";
        }
        out += &told_differences(&self.rows);
        if let (Some(first), Some(last)) = (self.change_years.first(), self.change_years.last()) {
            out += &format!(
                "\nThe map changes {} from {first} to {last}.\n",
                crate::words::counted(self.change_years.len(), "time", "times")
            );
        }
        out
    }
}

/// A table for the terminal, a line for each claim: years, polity, certainty, works named for it; then the years of change.
impl fmt::Display for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<[String; 4]> = std::iter::once(["years", "polity", "certainty", "works"].map(String::from))
            .chain(self.rows.iter().flat_map(|row| {
                row.entries.iter().map(|e| {
                    let doubt = e.doubt.map(|d| format!(" ({d})")).unwrap_or_default();
                    let certainty = format!("{}{doubt}", e.certainty.as_str());
                    [e.span.to_string(), e.name.clone(), certainty, e.sources.join(", ")]
                })
            }))
            .collect();
        let width = |k: usize| lines.iter().map(|l| l[k].chars().count()).max().unwrap_or(0);
        let (w0, w1, w2) = (width(0), width(1), width(2));
        for [years, polity, certainty, sources] in &lines {
            let line = format!("{years:<w0$}  {polity:<w1$}  {certainty:<w2$}  {sources}");
            writeln!(f, "{}", line.trim_end())?;
        }
        f.write_str(&told_differences(&self.rows))?;
        if !self.change_years.is_empty() {
            let years: Vec<String> = self.change_years.iter().map(Year::to_string).collect();
            writeln!(f, "\nThe map changes in {}.", years.join(", "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::borders::tests::claim;

    #[test]
    fn the_table_lists_polities_in_order_of_time() {
        let named = |id: &str, name: &str, span: &str, sources: &[&str]| Claim {
            name: name.into(),
            sources: sources.iter().map(|s| s.to_string()).collect(),
            ..claim(id, span)
        };
        let mut claims = vec![
            named("saltukids", "Saltukids", "1072/1202", &["cahen"]),
            named("georgia", "Kingdom of Georgia", "1204/1225", &["rayfield", "atlas"]),
            named("georgia", "Kingdom of Georgia", "1184/1203", &["atlas"]),
        ];
        let t = timeline(&claims);
        assert_eq!(
            t.to_string(),
            "years         polity              certainty    works\n\
             1072–1202 CE  Saltukids           approximate  cahen\n\
             1184–1203 CE  Kingdom of Georgia  approximate  atlas\n\
             1204–1225 CE  Kingdom of Georgia  approximate  atlas, rayfield\n\
             \n\
             The map changes in 1072 CE, 1184 CE, 1203 CE, 1204 CE, 1226 CE.\n"
        );
        assert_eq!(
            t.by_polity(),
            "years         polity              certainty\n\
             1072–1202 CE  Saltukids           approximate\n\
             1184–1225 CE  Kingdom of Georgia  approximate\n\
             \n\
             The map changes 5 times from 1072 CE to 1226 CE.\n"
        );
        claims.reverse();
        assert_eq!(timeline(&claims), t);
        assert!(t.rows.iter().all(|r| r.differences().is_empty()));
        // Another source for the same polity.
        claims.push(named("georgia", "Georgia", "1200/1210", &["file"]));
        let said = timeline(&claims).to_string();
        assert!(said.contains("\nSources differ:\n  Kingdom of Georgia: 1200–1210 CE\n\nThe map"), "{said}");
    }
}
