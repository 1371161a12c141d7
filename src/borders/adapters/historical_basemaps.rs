//! historical-basemaps (A. Ourednik, GPL-3.0): a world per file, and the year only in the file's name.
//!
//! Conventions: the name ends in `_1200` or `_bc100` (historian's years). A file stands for its year; of several, each
//! holds until the year before the next, and the last for its own year only, because nothing says how long it holds.
//! Features without a `NAME` are areas too: they are kept, unnamed. `SUBJECTO` is the power above. `BORDERPRECISION` is 1
//! (approximate), 2 (fair) or 3 (by law). Overlaps mean dispute, which the map shows as contested.

use super::{BorderFile, Draft, FieldNames, Place, text, whole};
use crate::borders::Certainty;
use crate::borders::problem::Problem;
use crate::borders::reader::key_from;
use crate::vector::Feature;
use crate::year::{Span, Year};
use std::collections::HashMap;

pub(super) fn is_like(names: &FieldNames) -> bool {
    names.has("NAME") && names.has_any(&["BORDERPRECISION", "SUBJECTO", "PARTOF"])
}

/// The years in which each file holds, by its stem; files without a year are problems.
pub(super) fn timeline<'a>(
    files: impl Iterator<Item = &'a BorderFile>,
    problems: &mut Vec<Problem>,
) -> HashMap<String, Span> {
    let mut found: Vec<(Year, &BorderFile)> = Vec::new();
    for file in files {
        match year_in(&file.stem) {
            Some(year) => found.push((year, file)),
            None => problems.push(Problem::error(
                &file.label,
                "its name gives no year",
                "a name that ends in the year, such as world_1200 or world_bc100; or --every-year",
            )),
        }
    }
    found.sort_by_key(|(year, _)| *year);
    let spans = found.iter().map(|&(year, file)| {
        let next = found.iter().map(|(y, _)| *y).find(|y| *y > year);
        (file.stem.clone(), Span { start: year, end: next.unwrap_or(year.next()) })
    });
    let spans: HashMap<String, Span> = spans.collect();
    if let Some((year, file)) = found.last() {
        let what = format!("nothing says how long {year} holds");
        let expected = "it holds in that year only; --every-year makes it hold in all";
        problems.push(Problem::error(&file.label, what, expected).as_warning());
    }
    spans
}

/// The year in a file's name: `world_1200`, `world_bc100`.
pub(super) fn year_in(stem: &str) -> Option<Year> {
    let last = stem.rsplit(['_', ' ', '-']).next()?.to_ascii_lowercase();
    let (digits, is_bce) = match last.strip_prefix("bce").or_else(|| last.strip_prefix("bc")) {
        Some(digits) => (digits, true),
        None => (last.strip_prefix("ad").unwrap_or(&last), false),
    };
    let number: i32 = digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok()).flatten()?;
    Year::from_historian(if is_bce { -number } else { number }).ok()
}

pub(super) fn draft(feature: &Feature, at: &mut Place, span: Span) -> Result<Draft, String> {
    let mut draft = match text(feature, "NAME") {
        Some(name) => Draft::new(key_from(&name), name, span, at),
        None => {
            at.remarks.push("it has no name and is kept as an unnamed area".to_string());
            let id = format!("unnamed-{}-{}", key_from(at.stem), at.number);
            Draft::new(id, UNNAMED.to_string(), span, at)
        }
    };
    draft.claim.certainty = match whole(feature, "BORDERPRECISION") {
        Some(3) => Certainty::Treaty,
        Some(2) => Certainty::Approximate,
        _ => Certainty::Conjectural,
    };
    draft.above = text(feature, "SUBJECTO").iter().map(|n| key_from(n)).collect();
    Ok(draft)
}

/// What an area without a name is called.
pub(super) const UNNAMED: &str = "Unnamed area";
