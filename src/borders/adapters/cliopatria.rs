//! Cliopatria (Seshat Global History Databank, CC BY 4.0): one file of some 15,000 rows, 3400 BCE to 2024 CE.
//!
//! Conventions: `FromYear` and `ToYear` are whole historian's years, -N is N BCE, the last one included. A name in
//! parentheses is a composite of other rows, which name it in `MemberOf` and are listed in its `Components` (separated by
//! semicolons). `Type` is POLITY, or something that is no state (LEADER, EVENT). (Name, FromYear, ToYear) is not unique:
//! such rows are parts of one outline.

use super::{Draft, FieldNames, Place, text, value, whole};
use crate::borders::ClaimKind;
use crate::borders::reader::key_from;
use crate::vector::Feature;
use crate::year::{Span, Year};
use serde_json::Value;

pub(super) fn is_like(names: &FieldNames) -> bool {
    let own = ["Type", "MemberOf", "Components", "SeshatID", "Wikipedia"];
    names.has("Name") && names.has("FromYear") && names.has("ToYear") && names.has_any(&own)
}

pub(super) fn draft(feature: &Feature, at: &mut Place) -> Result<Draft, String> {
    let name = text(feature, "Name").ok_or("it has no name")?;
    if let Some(kind) = text(feature, "Type").filter(|t| !t.eq_ignore_ascii_case("POLITY")) {
        return Err(format!("it is of type {kind}, not a polity"));
    }
    let (from, to) = (year(feature, "FromYear")?, year(feature, "ToYear")?);
    let span = Span::inclusive(from, to).map_err(|_| format!("its years run backwards, {from} to {to}"))?;
    let (bare, is_composite) = without_parentheses(&name);
    let mut draft = Draft::new(id_of(&name), bare.to_string(), span, at);
    if is_composite {
        draft.claim.kind = ClaimKind::Composite;
    }
    draft.above = list(feature, "MemberOf").iter().map(|n| id_of(n)).collect();
    draft.members = list(feature, "Components").iter().map(|n| id_of(n)).collect();
    Ok(draft)
}

fn year(feature: &Feature, field: &str) -> Result<Year, String> {
    let number = whole(feature, field).ok_or_else(|| format!("its {field} is no whole year"))?;
    let number = i32::try_from(number).map_err(|_| format!("its {field} {number} is out of range"))?;
    Year::from_historian(number).map_err(|_| format!("its {field} {number} is no year of history"))
}

/// A composite shares its name with a member at times: its id says what it is.
fn id_of(name: &str) -> String {
    match without_parentheses(name) {
        (bare, true) => format!("composite-{}", key_from(bare)),
        (bare, false) => key_from(bare),
    }
}

fn without_parentheses(name: &str) -> (&str, bool) {
    match name.trim().strip_prefix('(').and_then(|n| n.strip_suffix(')')) {
        Some(bare) => (bare.trim(), true),
        None => (name.trim(), false),
    }
}

/// Names in a list, or in a text with semicolons.
fn list(feature: &Feature, field: &str) -> Vec<String> {
    let split = |s: &str| s.split(';').map(|n| n.trim().to_string()).filter(|n| !n.is_empty()).collect();
    match value(feature, field) {
        Some(Value::String(s)) => split(s),
        Some(Value::Array(all)) => {
            all.iter().filter_map(|v| v.as_str()).flat_map(split as fn(&str) -> Vec<String>).collect()
        }
        _ => vec![],
    }
}
