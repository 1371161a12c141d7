//! Natural Earth, admin 0 (public domain): today's countries, sovereign states and map units.
//!
//! Conventions: no years, so it is read only where it is said that the borders hold in every year. `ADMIN` is the English
//! name where `NAME_EN` is missing, `NAME_RU` the Russian one; codes are -99 where there is none; `SOVEREIGNT` is the state
//! above a dependency.

use super::{Draft, FieldNames, Place, code, text};
use crate::borders::Certainty;
use crate::borders::reader::key_from;
use crate::vector::Feature;
use crate::year::Span;

pub(super) fn is_like(names: &FieldNames) -> bool {
    names.has("ADMIN") && names.has_any(&["NAME_EN", "ADM0_A3", "SOVEREIGNT", "ISO_A3"])
}

pub(super) fn draft(feature: &Feature, at: &mut Place) -> Result<Draft, String> {
    let name = text(feature, "NAME_EN").or_else(|| text(feature, "ADMIN")).ok_or("it has no name")?;
    let codes = ["ADM0_A3", "ISO_A3", "ISO_A3_EH"];
    let id = codes.iter().find_map(|c| code(feature, c)).unwrap_or_else(|| name.clone());
    let mut draft = Draft::new(key_from(&id), name, Span::ALWAYS, at);
    draft.claim.name_ru = text(feature, "NAME_RU").unwrap_or_default();
    draft.claim.certainty = Certainty::Surveyed;
    draft.above = ["SOV_A3", "SOVEREIGNT"].iter().filter_map(|f| code(feature, f)).map(|n| key_from(&n)).collect();
    Ok(draft)
}
