//! Any file: fields by their usual names, or as the user maps them.
//!
//! Conventions: historian's years (-N is N BCE), the last one included; of two dates the years at whose end the thing stood.
//! A file with a pack's field names may have all that packs have.

use super::{Draft, Place};
use crate::borders::problem::{Problem, suggestion};
use crate::borders::reader::{Reader, key_from};
use crate::borders::{Certainty, ClaimKind};
use crate::vector::Feature;
use crate::year::Span;

/// Which field of a border file holds what. What is `None` is looked for under the usual names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FieldMapping {
    /// The polity's name.
    pub name: Option<String>,
    /// The first year.
    pub from_year: Option<String>,
    /// The last year, included.
    pub to_year: Option<String>,
    /// The polity's key; made from the name when the file has none.
    pub id: Option<String>,
    /// Kind of claim; [`ClaimKind::Polity`] when the file has none.
    pub kind: Option<String>,
    /// Certainty; [`Certainty::Approximate`] when the file has none.
    pub certainty: Option<String>,
}

/// Names of fields that hold a polity's name, the likeliest first. Case does not matter.
const NAME_FIELDS: [&str; 6] = ["name", "name_en", "admin", "cntry_name", "polity", "title"];

/// Pairs of fields for the first and the last year, the likeliest first. Case does not matter.
const YEAR_FIELDS: [(&str, &str); 7] = [
    ("from_year", "to_year"),
    ("FromYear", "ToYear"),
    ("from", "to"),
    ("start_date", "end_date"),
    ("start", "end"),
    ("start_year", "end_year"),
    ("gwsyear", "gweyear"),
];

/// The fields of a file that is not a pack's.
pub(super) struct Fields {
    name: String,
    years: Option<(String, String)>,
    id: Option<String>,
    kind: Option<String>,
    certainty: Option<String>,
    /// Whether the years are named as in packs: then its other keys are taken too.
    is_pack_like: bool,
}

impl Fields {
    pub(super) fn find(
        features: &[Feature],
        file: &str,
        mapping: &FieldMapping,
        every_year: bool,
    ) -> Result<Fields, Vec<Problem>> {
        let mut present: Vec<&str> = Vec::new();
        for key in features.iter().flat_map(|f| f.properties.keys()) {
            if !present.contains(&key.as_str()) {
                present.push(key);
            }
        }
        let listed = if present.is_empty() {
            "it has no fields".to_string()
        } else {
            format!("fields found: {}", present.join(", "))
        };
        let usual = |wanted: &str| {
            let exact = present.iter().find(|p| **p == wanted);
            exact.or_else(|| present.iter().find(|p| p.eq_ignore_ascii_case(wanted))).map(|p| p.to_string())
        };
        let mut problems = Vec::new();
        let mut given = |field: &Option<String>| {
            if let Some(f) = field
                && !present.contains(&f.as_str())
            {
                let near = suggestion(f, present.iter().copied());
                let expected = if near.is_empty() { listed.clone() } else { format!("{near} ({listed})") };
                problems.push(Problem::error(file, format!("no field '{f}'"), expected));
            }
            field.clone()
        };
        let (name, from, to) = (given(&mapping.name), given(&mapping.from_year), given(&mapping.to_year));
        let (id, kind, certainty) = (given(&mapping.id), given(&mapping.kind), given(&mapping.certainty));

        let names: Vec<String> = NAME_FIELDS.iter().filter_map(|f| usual(f)).collect();
        let name = name.or_else(|| names.first().cloned());
        if name.is_none() {
            let what = "no field is known to hold the name";
            problems.push(Problem::error(file, what, format!("state which one does, --map-field name=...; {listed}")));
        } else if mapping.name.is_none() && names.len() > 1 && !names[0].eq_ignore_ascii_case("name") {
            let what = format!("{} may all hold the name", names.join(", "));
            problems.push(Problem::error(file, what, format!("state which one does, --map-field name=...; {listed}")));
        }
        let mut pairs: Vec<(String, String)> = YEAR_FIELDS.iter().filter_map(|(f, t)| usual(f).zip(usual(t))).collect();
        pairs.dedup();
        let pair = pairs.first().cloned();
        let is_given = mapping.from_year.is_some() || mapping.to_year.is_some() || every_year;
        if !is_given && pairs.len() > 1 && pairs[0].0 != "from_year" {
            let what = format!(
                "the years may be in {}",
                pairs.iter().map(|(f, t)| format!("{f} and {t}")).collect::<Vec<_>>().join(", or in ")
            );
            let expected = format!("state which, --map-field from=...,to=...; {listed}");
            problems.push(Problem::error(file, what, expected));
        }
        let half = YEAR_FIELDS.iter().find_map(|(f, t)| usual(f).or_else(|| usual(t)));
        let years = match (from, to) {
            (Some(f), Some(t)) => Some((f, t)),
            // One of the two is given: its usual partner may be there.
            (Some(f), None) => YEAR_FIELDS.iter().find_map(|(_, t)| usual(t)).map(|t| (f, t)),
            (None, Some(t)) => YEAR_FIELDS.iter().find_map(|(f, _)| usual(f)).map(|f| (f, t)),
            (None, None) => pair,
        };
        let years = if every_year { None } else { years };
        if years.is_none() && !every_year {
            if let Some(half) = half.as_ref().or(mapping.from_year.as_ref()).or(mapping.to_year.as_ref()) {
                let what = format!("only one field of years is known, '{half}'");
                let expected = format!(
                    "state which fields hold the first and the last year, --map-field from=...,to=...; {listed}"
                );
                problems.push(Problem::error(file, what, expected));
            } else {
                let expected = format!(
                    "state which fields hold the first and the last year, --map-field from=...,to=..., or that the claims hold in every year, --every-year; {listed}"
                );
                problems.push(Problem::error(file, "no fields are known to hold years", expected));
            }
        }
        let is_pack_like = years.as_ref().is_some_and(|(f, _)| f == "from_year");
        let pack_key = |given: Option<String>, key: &str| given.or_else(|| usual(key).filter(|_| is_pack_like));
        let (id, kind, certainty) = (pack_key(id, "id"), pack_key(kind, "kind"), pack_key(certainty, "certainty"));
        match name {
            Some(name) if problems.is_empty() => Ok(Fields { name, years, id, kind, certainty, is_pack_like }),
            _ => Err(problems),
        }
    }
}

/// Why a feature whose attributes are wrong makes no claim: the problems say more.
const UNREADABLE: &str = "its attributes cannot be read";

pub(super) fn draft(feature: &Feature, at: &mut Place, fields: &Fields) -> Result<Draft, String> {
    let name = feature.text(&fields.name).ok_or("it has no name")?;
    let mut problems = Vec::new();
    let mut reader =
        Reader { feature, file: at.file, number: at.number, id: name.clone(), is_pack: false, problems: &mut problems };
    let span = match &fields.years {
        None => Some(Span::ALWAYS),
        Some((from, to)) => reader.span(from, to),
    };
    let kind = fields.kind.as_ref().map_or(ClaimKind::Polity, |f| reader.kind(f));
    let certainty = fields.certainty.as_ref().map_or(Certainty::Approximate, |f| reader.certainty(f));
    let id = fields.id.as_ref().and_then(|f| feature.text(f)).unwrap_or_else(|| key_from(&name));
    let mut draft = Draft::new(id, name, span.unwrap_or(Span::ALWAYS), at);
    draft.claim.kind = kind;
    draft.claim.certainty = certainty;
    if fields.is_pack_like {
        let [name_ru, name_local, local_lang, note, parent] =
            ["name_ru", "name_local", "local_lang", "note", "parent"].map(|key| reader.text(key));
        draft.claim.colour = reader.colour();
        draft.claim.doubt = span.and_then(|s| reader.doubt(s));
        if reader.value("source").is_some() {
            draft.claim.sources = reader.sources();
        }
        draft.claim = crate::borders::Claim { name_ru, name_local, local_lang, note, ..draft.claim };
        draft.above = if parent.is_empty() { vec![] } else { vec![parent] };
    }
    let is_sound = reader.errors() == 0;
    at.problems.extend(problems);
    if is_sound { Ok(draft) } else { Err(UNREADABLE.to_string()) }
}
