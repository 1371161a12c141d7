//! Border files as people publish them, to claims: one file per schema, each with its conventions in one place.
//!
//! A schema is recognised by its fields, or named. Its adapter says for one feature what claim it makes, or why none; what
//! all have in common is here: repair, who stands above whom, and one claim per polity and year. Every feature of the
//! input has its line in the [`Account`]. No files, no GDAL.

mod cliopatria;
mod cshapes;
mod historical_basemaps;
mod natural_earth;
mod open_historical_map;
mod plain;

pub use plain::FieldMapping;

use super::account::{Account, Fate, FeatureAccount};
use super::problem::Problem;
use super::reader::overlapping_years;
use super::repair::{repair, without_faults};
use super::{Certainty, Claim, ClaimKind};
use crate::vector::Feature;
use crate::year::Span;
use geo::MultiPolygon;
use rayon::prelude::*;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

/// The schema of a border file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SourceKind {
    /// Seshat's Cliopatria.
    Cliopatria,
    /// A. Ourednik's historical-basemaps, one file per year.
    HistoricalBasemaps,
    /// OpenHistoricalMap.
    OpenHistoricalMap,
    /// CShapes 1 and 2.
    CShapes,
    /// Natural Earth, countries and the like (admin 0).
    NaturalEarth,
    /// Any fields, by their usual names or as mapped.
    Plain,
}

impl SourceKind {
    /// All of them, in the order in which they are looked for.
    pub const ALL: [SourceKind; 6] = [
        SourceKind::Cliopatria,
        SourceKind::HistoricalBasemaps,
        SourceKind::CShapes,
        SourceKind::OpenHistoricalMap,
        SourceKind::NaturalEarth,
        SourceKind::Plain,
    ];

    /// Its name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            SourceKind::Cliopatria => "cliopatria",
            SourceKind::HistoricalBasemaps => "historical-basemaps",
            SourceKind::OpenHistoricalMap => "openhistoricalmap",
            SourceKind::CShapes => "cshapes",
            SourceKind::NaturalEarth => "natural-earth",
            SourceKind::Plain => "plain",
        }
    }

    /// The schema of that name.
    pub fn named(word: &str) -> Option<SourceKind> {
        SourceKind::ALL.into_iter().find(|k| k.as_str() == word)
    }

    /// The schema that these features are in, by their fields.
    pub fn recognised(features: &[Feature]) -> SourceKind {
        let names = FieldNames::of(features);
        let is_like = |kind: &SourceKind| match kind {
            SourceKind::Cliopatria => cliopatria::is_like(&names),
            SourceKind::HistoricalBasemaps => historical_basemaps::is_like(&names),
            SourceKind::OpenHistoricalMap => open_historical_map::is_like(&names),
            SourceKind::CShapes => cshapes::is_like(&names),
            SourceKind::NaturalEarth => natural_earth::is_like(&names),
            SourceKind::Plain => true,
        };
        // A pack's own field names come before all else.
        let is_pack = names.has("from_year") && names.has("to_year") && names.has("id");
        if is_pack { SourceKind::Plain } else { SourceKind::ALL.into_iter().find(is_like).unwrap_or(SourceKind::Plain) }
    }
}

/// A border file, read.
#[derive(Debug, Clone, PartialEq)]
pub struct BorderFile {
    /// How messages and sources call it.
    pub label: String,
    /// Its name without folder and ending: some schemas keep the year there.
    pub stem: String,
    /// Its features, longitude and latitude (WGS 84).
    pub features: Vec<Feature>,
}

/// How border files are read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReadOptions {
    /// The schema; recognised by the fields where `None`, save that a mapping means [`SourceKind::Plain`].
    pub kind: Option<SourceKind>,
    /// Which field holds what, for [`SourceKind::Plain`].
    pub mapping: FieldMapping,
    /// Every claim holds in every year, whatever the file says.
    pub every_year: bool,
}

/// What border files say.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BorderClaims {
    /// Their claims; not complete when a problem is an error. At most one per polity and year.
    pub claims: Vec<Claim>,
    /// What the user should know or mend.
    pub problems: Vec<Problem>,
    /// What became of every feature.
    pub account: Account,
    /// The schema of each file.
    pub kinds: Vec<SourceKind>,
}

/// The claims of `files`, which are read as one set: where files stand for years, each holds until the next.
///
/// Areas are repaired ([`repair()`]); features of one polity and the same years are joined, and where the years of several
/// overlap, their areas are joined in the years that they share, so that no year has two claims of one polity. Polities
/// stand below the first of those above them that the files have. The order of files does not matter.
pub fn read_border_files(files: &[BorderFile], options: &ReadOptions) -> BorderClaims {
    let mut out = BorderClaims::default();
    let mut drafts: Vec<(usize, Draft)> = Vec::new();
    out.kinds = files.iter().map(|f| kind_of(f, options)).collect();
    let is_snapshot = |k: &SourceKind| *k == SourceKind::HistoricalBasemaps && !options.every_year;
    let snapshots = files.iter().zip(&out.kinds).filter(|(_, k)| is_snapshot(k)).map(|(f, _)| f);
    let timeline = historical_basemaps::timeline(snapshots, &mut out.problems);
    for (file, kind) in files.iter().zip(out.kinds.clone()) {
        if file.features.is_empty() {
            out.problems.push(Problem::error(&file.label, "it has no features", "a layer of polygons"));
            continue;
        }
        let adapter: Box<Adapter> = match kind {
            SourceKind::Cliopatria => Box::new(cliopatria::draft),
            SourceKind::OpenHistoricalMap => Box::new(open_historical_map::draft),
            SourceKind::CShapes => Box::new(cshapes::draft),
            SourceKind::HistoricalBasemaps => {
                let span = if options.every_year { Some(Span::ALWAYS) } else { timeline.get(&file.stem).copied() };
                // A file without a year: that has been said.
                let Some(span) = span else {
                    out.account.features.extend(all_skipped(file, "no year is known for its file"));
                    continue;
                };
                Box::new(move |f, at| historical_basemaps::draft(f, at, span))
            }
            SourceKind::NaturalEarth => {
                if !options.every_year {
                    let expected =
                        "say with --every-year that today's borders hold in every year, or give another file";
                    out.problems.push(Problem::error(&file.label, "Natural Earth has no years", expected));
                    out.account.features.extend(all_skipped(file, "it has no years"));
                    continue;
                }
                Box::new(natural_earth::draft)
            }
            SourceKind::Plain => {
                match plain::Fields::find(&file.features, &file.label, &options.mapping, options.every_year) {
                    Ok(fields) => Box::new(move |f, at| plain::draft(f, at, &fields)),
                    Err(problems) => {
                        out.problems.extend(problems);
                        out.account.features.extend(all_skipped(file, "its fields are not known"));
                        continue;
                    }
                }
            }
        };
        let repaired: Vec<_> = file.features.par_iter().map(|f| repair(f.geometry.as_ref())).collect();
        for ((number, feature), area) in (1..).zip(&file.features).zip(repaired) {
            let mut at =
                Place { file: &file.label, stem: &file.stem, number, problems: Vec::new(), remarks: Vec::new() };
            let drafted = adapter(feature, &mut at);
            let name = drafted.as_ref().map_or_else(|_| any_name(feature), |d| d.claim.name.clone());
            let (remarks, problems) = (at.remarks, at.problems);
            out.problems.extend(problems);
            let mut line = FeatureAccount {
                file: file.label.clone(),
                feature: number,
                name,
                fate: Fate::Kept,
                repair: None,
                remarks,
            };
            match (drafted, area) {
                (Err(reason), _) | (Ok(_), Err(reason)) => {
                    line.fate = Fate::Skipped(reason);
                    line.remarks.clear();
                }
                (Ok(mut draft), Ok((area, repair))) => {
                    line.repair = repair;
                    draft.claim.area = area;
                    if options.every_year {
                        draft.claim.span = Span::ALWAYS;
                    }
                    draft.spans = vec![draft.claim.span];
                    drafts.push((out.account.features.len(), draft));
                }
            }
            out.account.features.push(line);
        }
    }
    set_parents(&mut drafts, &mut out.account);
    out.claims = joined(drafts, &mut out.account, &mut out.problems);
    if out.claims.is_empty() && !out.problems.iter().any(Problem::is_error) {
        let file = files.first().map_or("border files", |f| f.label.as_str());
        let why = out.account.remarkable().next().unwrap_or_default();
        let found = format!("none of its features makes a claim ({why})");
        out.problems.push(Problem::error(file, found, "named polygons"));
    }
    out
}

/// What an adapter makes of a feature: its claim, still without area, or the reason why there is none.
type Adapter = dyn Fn(&Feature, &mut Place) -> Result<Draft, String>;

/// Where a feature stands, and what there is to say about it.
struct Place<'a> {
    file: &'a str,
    stem: &'a str,
    /// From 1.
    number: usize,
    problems: Vec<Problem>,
    remarks: Vec<String>,
}

/// A claim in the making.
struct Draft {
    claim: Claim,
    /// Ids of those above it, the nearest first, whether the files have them or not.
    above: Vec<String>,
    /// Ids of the members of a composite, where the file lists them there.
    members: Vec<String>,
    /// The years that are left to it.
    spans: Vec<Span>,
}

impl Draft {
    /// A polity that holds in `span`, with all else unknown; the file is its source.
    fn new(id: String, name: String, span: Span, at: &Place) -> Draft {
        let claim = Claim {
            id,
            name,
            name_ru: String::new(),
            name_local: String::new(),
            local_lang: String::new(),
            span,
            doubt: None,
            kind: ClaimKind::Polity,
            parent: None,
            certainty: Certainty::Approximate,
            sources: vec![at.file.to_string()],
            colour: None,
            note: String::new(),
            known_lines: vec![],
            area: MultiPolygon::new(vec![]),
        };
        Draft { claim, above: vec![], members: vec![], spans: vec![] }
    }
}

fn kind_of(file: &BorderFile, options: &ReadOptions) -> SourceKind {
    let is_mapped = options.mapping != FieldMapping::default();
    match options.kind {
        Some(kind) => kind,
        None if is_mapped => SourceKind::Plain,
        None => SourceKind::recognised(&file.features),
    }
}

fn all_skipped<'a>(file: &'a BorderFile, why: &'a str) -> impl Iterator<Item = FeatureAccount> + 'a {
    (1..).zip(&file.features).map(move |(feature, f)| FeatureAccount {
        file: file.label.clone(),
        feature,
        name: any_name(f),
        fate: Fate::Skipped(why.to_string()),
        repair: None,
        remarks: vec![],
    })
}

/// A name by which a reader knows a feature again.
fn any_name(feature: &Feature) -> String {
    let field = |name: &&str| text(feature, name);
    ["name", "name_en", "admin", "cntry_name", "country_name"].iter().find_map(field).unwrap_or_default()
}

/// The names of a file's fields.
struct FieldNames<'a>(Vec<&'a str>);

impl<'a> FieldNames<'a> {
    fn of(features: &'a [Feature]) -> FieldNames<'a> {
        let mut names: Vec<&str> = Vec::new();
        for key in features.iter().flat_map(|f| f.properties.keys()) {
            if !names.contains(&key.as_str()) {
                names.push(key);
            }
        }
        FieldNames(names)
    }

    fn has(&self, wanted: &str) -> bool {
        self.0.iter().any(|n| is_field(n, wanted))
    }

    fn has_any(&self, wanted: &[&str]) -> bool {
        wanted.iter().any(|w| self.has(w))
    }
}

/// Whether a field is the one that its schema calls `wanted`: case does not matter, and Shapefile keeps ten characters
/// (of `start_date:edtf` it would keep those of `start_date`).
fn is_field(name: &str, wanted: &str) -> bool {
    let is_cut = name.len() == 10 && wanted.len() > 10 && !wanted.contains(':');
    name.eq_ignore_ascii_case(wanted) || (is_cut && wanted[..10].eq_ignore_ascii_case(name))
}

/// The attribute that the schema calls `name`; `None` when it is missing, null or blank.
fn value<'a>(feature: &'a Feature, name: &str) -> Option<&'a Value> {
    let exact = feature.properties.get(name);
    let found = exact.or_else(|| feature.properties.iter().find(|(k, _)| is_field(k, name)).map(|(_, v)| v))?;
    match found {
        Value::Null => None,
        Value::String(s) if s.trim().is_empty() => None,
        other => Some(other),
    }
}

/// The same as text.
fn text(feature: &Feature, name: &str) -> Option<String> {
    match value(feature, name)? {
        Value::String(s) => Some(s.trim().to_string()),
        Value::Number(n) => Some(n.to_string()),
        _ => None,
    }
}

/// The same as a whole number.
fn whole(feature: &Feature, name: &str) -> Option<i64> {
    match value(feature, name)? {
        Value::Number(n) => {
            n.as_i64().or_else(|| n.as_f64().filter(|f| f.fract() == 0.0 && f.abs() < 1e15).map(|f| f as i64))
        }
        Value::String(s) => s.trim().parse().ok(),
        _ => None,
    }
}

/// A code, which files write as -99 where there is none.
fn code(feature: &Feature, name: &str) -> Option<String> {
    text(feature, name).filter(|c| c != "-99" && c != "-99.0" && c != "-1" && c != "-")
}

/// Gives every draft its parent: the first of those above it that the files have in its years. A composite does not hold
/// in the years of members that stand below another composite already: otherwise both would be drawn.
fn set_parents(drafts: &mut [(usize, Draft)], account: &mut Account) {
    let mut by_id: HashMap<String, Vec<usize>> = HashMap::new();
    for (i, (_, d)) in drafts.iter().enumerate() {
        by_id.entry(d.claim.id.clone()).or_default().push(i);
    }
    for i in 0..drafts.len() {
        let (composite, members) = (drafts[i].1.claim.id.clone(), std::mem::take(&mut drafts[i].1.members));
        for m in members.iter().filter_map(|m| by_id.get(m)).flatten() {
            let above = &mut drafts[*m].1.above;
            if !above.contains(&composite) {
                above.push(composite.clone());
            }
        }
    }
    for i in 0..drafts.len() {
        let span = drafts[i].1.claim.span;
        let is_there = |id: &String| {
            by_id.get(id).is_some_and(|all| all.iter().any(|&j| j != i && drafts[j].1.claim.span.overlaps(&span)))
        };
        let id = drafts[i].1.claim.id.clone();
        let found: Vec<String> = drafts[i].1.above.iter().filter(|a| **a != id && is_there(a)).cloned().collect();
        drafts[i].1.claim.parent = found.first().cloned();
        for j in found.iter().skip(1).flat_map(|a| by_id[a].clone()) {
            let other = &mut drafts[j].1;
            if other.claim.kind == ClaimKind::Composite {
                other.spans = other.spans.iter().flat_map(|s| s.minus(&span)).collect();
            }
        }
    }
    for (line, d) in drafts.iter() {
        if d.spans.is_empty() {
            account.features[*line].fate = Fate::Skipped("a composite whose members are there in all its years".into());
        } else if d.spans != [d.claim.span] {
            account.features[*line].remarks.push("a composite, kept only in the years without its members".into());
        }
    }
}

/// One claim per polity and year: drafts of the same years joined, and where years overlap, in the years of both.
fn joined(drafts: Vec<(usize, Draft)>, account: &mut Account, problems: &mut Vec<Problem>) -> Vec<Claim> {
    let mut by_id: BTreeMap<String, Vec<(usize, Claim)>> = BTreeMap::new();
    let mut order: Vec<String> = Vec::new();
    for (line, draft) in drafts {
        for span in draft.spans {
            let claim = Claim { span, ..draft.claim.clone() };
            let all = by_id.entry(claim.id.clone()).or_insert_with(|| {
                order.push(claim.id.clone());
                Vec::new()
            });
            match all.iter_mut().find(|(_, c)| c.span == span) {
                Some((first, known)) => {
                    if account.features[line].fate == Fate::Kept && *first != line {
                        account.features[line].fate = Fate::Joined(*first);
                    }
                    known.area.0.extend(claim.area.0);
                    known.certainty = known.certainty.min(claim.certainty);
                    merge_sources(known, &claim.sources);
                    // Marks the area as one of several features.
                    known.note.push('\u{0}');
                }
                None => all.push((line, claim)),
            }
        }
    }
    let mut out = Vec::new();
    for id in order {
        let mut claims: Vec<Claim> = by_id.remove(&id).unwrap_or_default().into_iter().map(|(_, c)| c).collect();
        for claim in claims.iter_mut().filter(|c| c.note.contains('\u{0}')) {
            claim.note = claim.note.replace('\u{0}', "");
            claim.area = without_faults(geo::unary_union(&claim.area));
        }
        let overlaps = overlapping_years(claims.iter());
        if let Some((a, b)) = overlaps.first() {
            let more = if overlaps.len() > 1 {
                format!(", and {} more such pairs", overlaps.len() - 1)
            } else {
                String::new()
            };
            let what = format!("'{}' has claims for {} and for {}{more}", a.name, a.span, b.span);
            let file = a.sources.first().cloned().unwrap_or_default();
            let expected = "in the years of both, their areas are joined";
            problems.push(Problem::error(&file, what, expected).as_warning());
            claims = cut_in_time(claims);
        }
        out.extend(claims);
    }
    out
}

fn merge_sources(claim: &mut Claim, more: &[String]) {
    for s in more {
        if !claim.sources.contains(s) {
            claim.sources.push(s.clone());
        }
    }
}

/// Claims of one polity cut where any begins or ends, and those of the same years joined.
fn cut_in_time(mut claims: Vec<Claim>) -> Vec<Claim> {
    claims.sort_by_key(|c| c.span);
    let mut turns: Vec<_> = claims.iter().flat_map(|c| [c.span.start, c.span.end]).collect();
    turns.sort();
    turns.dedup();
    turns
        .windows(2)
        .filter_map(|w| {
            let span = Span { start: w[0], end: w[1] };
            let held: Vec<&Claim> = claims.iter().filter(|c| c.span.overlaps(&span)).collect();
            // The one that began last is the more exact.
            let mut claim = Claim { span, ..(**held.last()?).clone() };
            if held.len() > 1 {
                let parts: MultiPolygon<f64> = held.iter().flat_map(|c| c.area.0.clone()).collect();
                claim.area = without_faults(geo::unary_union(&parts));
                held.iter().for_each(|c| merge_sources(&mut claim, &c.sources));
            }
            Some(claim)
        })
        .collect()
}

#[cfg(test)]
mod tests;
