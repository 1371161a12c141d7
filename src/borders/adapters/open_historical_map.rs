//! OpenHistoricalMap (CC0): boundaries with dates, as its downloads and Overpass give them.
//!
//! Conventions: `start_date` and `end_date` are ISO 8601, years astronomical (`0000` is 1 BCE), each the best single date;
//! an end without month or day lasts to the end of its period. `start_date:edtf` and `end_date:edtf` say how far they are
//! in doubt. No end: it still stands. No start: it always stood. Years of a million or more, either side, mean "open".
//! `name` is the local name, `name:xx` those in other languages; `admin_level` 2 is a state, greater ones are parts.

use super::{Draft, FieldNames, Place, text, whole};
use crate::borders::reader::key_from;
use crate::borders::{ClaimKind, Doubt, YearRange};
use crate::edtf::{Date, Day, Edtf, years_held};
use crate::vector::Feature;
use crate::year::{Span, YEAR_LIMIT, Year};

pub(super) fn is_like(names: &FieldNames) -> bool {
    let dates = ["start_date", "end_date", "start_date:edtf", "end_date:edtf"];
    let own =
        ["admin_level", "boundary", "osm_id", "@id", "osm_type", "start_date:edtf", "end_date:edtf", "start_decdate"];
    names.has_any(&dates) && names.has_any(&own)
}

pub(super) fn draft(feature: &Feature, at: &mut Place) -> Result<Draft, String> {
    let local = text(feature, "name");
    let english = text(feature, "name:en").or_else(|| text(feature, "name_en"));
    let name = english.clone().or_else(|| local.clone()).ok_or("it has no name")?;
    let (start, end) = (dates(feature, "start_date")?, dates(feature, "end_date")?);
    let span = span_of(start.best.and_then(|d| d.earliest), end.best.and_then(|d| d.latest))?;
    if start.best.is_none() {
        at.remarks.push("it has no start date and always stood".to_string());
    }
    let mut draft = Draft::new(text(feature, "wikidata").unwrap_or_else(|| name.clone()), name, span, at);
    draft.claim.id = key_from(&draft.claim.id);
    draft.claim.name_ru = text(feature, "name:ru").unwrap_or_default();
    if english.is_some_and(|e| local.as_ref() != Some(&e)) {
        draft.claim.note = local.map_or(String::new(), |l| format!("local name: {l}"));
    }
    if whole(feature, "admin_level").is_some_and(|l| l > 2) {
        draft.claim.kind = ClaimKind::Part;
    }
    draft.claim.doubt = doubt(&start, &end, span);
    Ok(draft)
}

/// The dates of one end of a feature's time.
struct Ends {
    /// The best single date; `None` when open.
    best: Option<Date>,
    /// All that it may be, where that is said.
    range: Option<Date>,
}

fn dates(feature: &Feature, field: &str) -> Result<Ends, String> {
    let read = |name: &str| -> Result<Option<Date>, String> {
        let Some(text) = text(feature, name) else { return Ok(None) };
        if is_open(&text) {
            return Ok(None);
        }
        match padded(&text).parse::<Edtf>() {
            Ok(edtf) => Ok(Some(edtf.as_date())),
            Err(_) => Err(format!("its {name} '{text}' is no date")),
        }
    };
    let range = read(&format!("{field}:edtf"));
    match (read(field), range) {
        (Ok(Some(best)), range) => Ok(Ends { best: Some(best), range: range.ok().flatten() }),
        (_, Ok(Some(range))) => Ok(Ends { best: Some(range), range: Some(range) }),
        (Err(e), _) | (_, Err(e)) => Err(e),
        (Ok(None), Ok(None)) => Ok(Ends { best: None, range: None }),
    }
}

/// Whether a date is the mark of an open end: a million years or more, either side.
fn is_open(text: &str) -> bool {
    let unsigned = text.trim_start_matches(['-', '+', 'Y']);
    let digits = unsigned.bytes().take_while(u8::is_ascii_digit).count();
    digits >= 7 || text == ".." || text == "9999-12-31"
}

/// Years of less than four digits, which ISO 8601 does not know, with zeros before them.
fn padded(text: &str) -> String {
    let (sign, unsigned) = text.strip_prefix('-').map_or(("", text), |u| ("-", u));
    let digits = unsigned.find(|c: char| !c.is_ascii_digit()).unwrap_or(unsigned.len());
    match digits {
        n @ 1..=3 if n == unsigned.len() || unsigned[n..].starts_with('-') => {
            format!("{sign}{}{unsigned}", &"000"[..4 - n])
        }
        5..=6 if unsigned.bytes().all(|b| b.is_ascii_digit()) => format!("Y{text}"),
        _ => text.to_string(),
    }
}

/// The years from a first to a last day, either of which may be open.
fn span_of(first: Option<Day>, last: Option<Day>) -> Result<Span, String> {
    for day in [first, last].into_iter().flatten() {
        if day.year.abs() > YEAR_LIMIT {
            return Err(format!("the year {} is out of range", day.year));
        }
    }
    if let (Some(a), Some(b)) = (first, last)
        && b < a
    {
        return Err(format!("its dates run backwards, {} to {}", Year(a.year), Year(b.year)));
    }
    let from = first.unwrap_or(Day::first_of(-YEAR_LIMIT));
    let to = last.unwrap_or(Day::last_of(YEAR_LIMIT));
    let held =
        years_held(from, to).ok_or_else(|| format!("it stood within {} only, and not at its end", Year(from.year)))?;
    Ok(Span {
        start: if first.is_none() { Span::ALWAYS.start } else { held.start },
        end: if last.is_none() { Span::ALWAYS.end } else { held.end },
    })
}

fn doubt(start: &Ends, end: &Ends, span: Span) -> Option<Doubt> {
    let range = |ends: &Ends, year: Year| match ends.range {
        Some(d) => YearRange {
            earliest: d.earliest.map_or(Span::ALWAYS.start, |d| Year(d.year)),
            latest: d.latest.map_or(Span::ALWAYS.end, |d| Year(d.year)),
        },
        None => YearRange { earliest: year, latest: year },
    };
    let any = |f: fn(&Date) -> bool| [start, end].iter().flat_map(|e| [e.best, e.range]).flatten().any(|d| f(&d));
    let doubt = Doubt {
        first: range(start, span.first()),
        last: range(end, span.last()),
        is_approximate: any(|d| d.is_approximate),
        is_uncertain: any(|d| d.is_uncertain),
    };
    doubt.is_any().then_some(doubt)
}
