//! CShapes 1 and 2 (ETH Zurich, CC BY-NC-SA 4.0): states and dependencies since 1886, by Gleditsch and Ward's codes.
//!
//! Conventions: `gwsdate` and `gwedate`, or `gwsyear`/`gwsmonth`/`gwsday` and `gweyear`/..., are the first and the last
//! day, both included. The last day of the data, 2019-12-31, means that it still stands; version 1 ended on 2016-06-30. A
//! polity is known by `gwcode`, whatever it is called; `owner` is the code of the power above. `b_def` 0: ill-defined.

use super::{Draft, FieldNames, Place, code, text, whole};
use crate::borders::Certainty;
use crate::borders::reader::key_from;
use crate::edtf::{Day, years_held};
use crate::vector::Feature;
use crate::year::Span;

/// The last days of the data, by version: what ends there still stands.
const LAST_DAYS: [Day; 2] = [Day { year: 2019, month: 12, day: 31 }, Day { year: 2016, month: 6, day: 30 }];

pub(super) fn is_like(names: &FieldNames) -> bool {
    names.has("gwcode") && names.has_any(&["gwsdate", "gwsyear"]) && names.has_any(&["gwedate", "gweyear"])
}

pub(super) fn draft(feature: &Feature, at: &mut Place) -> Result<Draft, String> {
    let name = text(feature, "cntry_name").or_else(|| text(feature, "country_name")).ok_or("it has no name")?;
    let first = day(feature, 's', Day::first_of).ok_or("it has no first day (gwsdate, gwsyear)")?;
    let last = day(feature, 'e', Day::last_of).ok_or("it has no last day (gwedate, gweyear)")?;
    if last < first {
        return Err(format!("its days run backwards, {} to {}", first.year, last.year));
    }
    let is_open = LAST_DAYS.contains(&last);
    let held = years_held(first, if is_open { Day::last_of(last.year) } else { last });
    let mut span = held.ok_or_else(|| format!("it stood within {} only, and not at its end", first.year))?;
    if is_open {
        span.end = Span::ALWAYS.end;
    }
    let id = code(feature, "gwcode").map_or_else(|| key_from(&name), |c| format!("gw-{c}"));
    let mut draft = Draft::new(id, name, span, at);
    draft.claim.certainty = if whole(feature, "b_def") == Some(0) { Certainty::Approximate } else { Certainty::Treaty };
    draft.claim.note = text(feature, "status").filter(|s| !s.eq_ignore_ascii_case("independent")).unwrap_or_default();
    draft.above = code(feature, "owner").iter().map(|c| format!("gw-{c}")).collect();
    Ok(draft)
}

/// The first (`s`) or last (`e`) day; where only the year is known, that of the year that `default` gives.
fn day(feature: &Feature, which: char, default: fn(i32) -> Day) -> Option<Day> {
    let part = |what: &str| whole(feature, &format!("gw{which}{what}")).filter(|n| *n > 0);
    if let Some(date) = text(feature, &format!("gw{which}date")).and_then(|t| written_day(&t)) {
        return Some(date);
    }
    let year = i32::try_from(part("year")?).ok()?;
    let exact = || Day::new(year, u8::try_from(part("month")?).ok()?, u8::try_from(part("day")?).ok()?);
    Some(exact().unwrap_or(default(year)))
}

/// `1886-01-31`, `1886/01/31` or `31.01.1886`, with a time behind it or not.
fn written_day(text: &str) -> Option<Day> {
    let date = text.split(['T', ' ']).next()?;
    let numbers: Vec<i32> = date.split(['-', '/', '.']).map(|n| n.parse().ok()).collect::<Option<_>>()?;
    let [year, month, day] = match numbers[..] {
        [y, m, d] if y > 31 => [y, m, d],
        [d, m, y] if y > 31 && date.contains('.') => [y, m, d],
        _ => return None,
    };
    Day::new(year, u8::try_from(month).ok()?, u8::try_from(day).ok()?)
}
