//! Claims from features: which field holds what, and every problem on the way.
//!
//! One table says how published files name their fields. Years are historian's years with the last one included, as in
//! packs; of dates (`1184-05-01`) the year counts. Adapters for files with other conventions belong here, each with its
//! conventions in one place.

use super::crossing::self_crossing;
use super::problem::{Problem, shown, suggestion};
use super::{Certainty, Claim, ClaimKind, area_km2};
use crate::error::Error;
use crate::grid::LonLatBox;
use crate::vector::Feature;
use crate::year::{Span, Year};
use geo::algorithm::bool_ops::FillRule;
use geo::{Area, BooleanOps, BoundingRect, Geometry, Intersects, LineString, MultiPolygon, Polygon};
use serde_json::Value;
use std::collections::HashMap;

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
    /// In a file without years, every claim holds in every year.
    pub every_year: bool,
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

/// The keys of a pack's claims: those that must be there, and all.
const PACK_REQUIRED: [&str; 7] = ["id", "name", "from_year", "to_year", "kind", "certainty", "source"];
const PACK_KEYS: [&str; 13] = [
    "id",
    "name",
    "name_ru",
    "name_local",
    "local_lang",
    "from_year",
    "to_year",
    "kind",
    "parent",
    "certainty",
    "source",
    "colour",
    "note",
];

/// The claims in `features` (longitude and latitude, WGS 84) of the border file `file`, and all problems.
///
/// A pack's own field names are understood, and the usual ones of published files; `mapping` overrides. Claims without an
/// id get one from their name, those without a source the file's name. Features without a name or geometry are left out
/// with a warning; crossing boundaries are repaired with a warning that tells the area before and after; features of one
/// polity and the same years become one claim. When a problem is an error, the claims are not complete.
pub fn claims_from_features(features: &[Feature], file: &str, mapping: &FieldMapping) -> (Vec<Claim>, Vec<Problem>) {
    let mut problems = Vec::new();
    if features.is_empty() {
        problems.push(Problem::error(file, "it has no features", "a layer of polygons"));
        return (Vec::new(), problems);
    }
    let fields = match Fields::find(features, file, mapping) {
        Ok(fields) => fields,
        Err(found) => return (Vec::new(), found),
    };
    let mut claims: Vec<Claim> = Vec::new();
    for (number, feature) in (1..).zip(features) {
        let mut reader = Reader { feature, file, number, id: String::new(), is_pack: false, problems: &mut problems };
        if let Some(claim) = reader.foreign_claim(&fields) {
            claims.push(claim);
        }
    }
    let claims = joined(claims, file, &mut problems);
    if claims.is_empty() && !problems.iter().any(Problem::is_error) {
        problems.push(Problem::error(file, "none of its features makes a claim", "named polygons"));
    }
    (claims, problems)
}

/// The claims of a pack's layer, each with its feature number from 1, and all problems.
pub(crate) fn pack_claims(features: &[Feature], file: &str) -> (Vec<(usize, Claim)>, Vec<Problem>) {
    let mut problems = Vec::new();
    let mut claims = Vec::new();
    for (number, feature) in (1..).zip(features) {
        let mut reader = Reader { feature, file, number, id: String::new(), is_pack: true, problems: &mut problems };
        if let Some(claim) = reader.pack_claim() {
            claims.push((number, claim));
        }
    }
    (claims, problems)
}

/// A map in a projected plane shows more than its window of longitudes and latitudes, and outlines are drawn beyond: so
/// much of the window's greater side lies still around it.
const MARGIN: f64 = 0.15;

/// Warnings for features of `file` that lie wholly outside `extent` and the 15 % around it; one error instead when it is
/// plain that longitude and latitude are exchanged. Each feature has its number from 1, id and bounding box.
pub fn outside_extent(features: &[(usize, String, geo::Rect<f64>)], extent: &LonLatBox, file: &str) -> Vec<Problem> {
    let margin = MARGIN * (extent.east - extent.west).max(extent.north - extent.south);
    let is_within = |w: f64, s: f64, e: f64, n: f64, margin: f64| {
        w <= extent.east + margin
            && extent.west - margin <= e
            && s <= extent.north + margin
            && extent.south - margin <= n
    };
    let within = |r: &geo::Rect<f64>, margin: f64| is_within(r.min().x, r.min().y, r.max().x, r.max().y, margin);
    let swapped_within = |r: &geo::Rect<f64>| is_within(r.min().y, r.min().x, r.max().y, r.max().x, 0.0);
    let (all, outside) = (features.len(), features.iter().filter(|(_, _, r)| !within(r, 0.0)).count());
    let is_far = features.iter().any(|(_, _, r)| !within(r, margin));
    // Where longitudes and latitudes are much the same numbers, only some features give an exchange away.
    let is_telling = (outside == all && is_far) || (all >= 20 && outside * 5 >= all);
    let is_exchanged = is_telling && features.iter().all(|(_, _, r)| swapped_within(r));
    let extent_text = format!("{}..{} E, {}..{} N", extent.west, extent.east, extent.south, extent.north);
    if is_exchanged {
        return vec![Problem::error(
            file,
            format!(
                "{outside} of its {all} features lie outside the region, and none when longitude and latitude are exchanged"
            ),
            format!("longitude first, then latitude ({extent_text}); exchange them"),
        )];
    }
    features
        .iter()
        .filter(|(_, _, r)| !within(r, margin))
        .map(|(number, id, r)| {
            Problem::error(
                file,
                format!(
                    "it lies outside the region, at {:.2}..{:.2} E, {:.2}..{:.2} N",
                    r.min().x,
                    r.max().x,
                    r.min().y,
                    r.max().y
                ),
                format!("{extent_text}; it will not be seen"),
            )
            .at_feature(*number, id)
            .as_warning()
        })
        .collect()
}

/// The bounding boxes of claims, for [`outside_extent`].
pub fn claim_boxes(claims: &[Claim]) -> Vec<(usize, String, geo::Rect<f64>)> {
    (1..).zip(claims).filter_map(|(n, c)| Some((n, c.id.clone(), c.area.bounding_rect()?))).collect()
}

/// The fields of a file that is not a pack's.
struct Fields {
    name: String,
    years: Option<(String, String)>,
    id: Option<String>,
    kind: Option<String>,
    certainty: Option<String>,
    /// Whether the years are named as in packs: then its other keys are taken too.
    is_pack_like: bool,
}

impl Fields {
    fn find(features: &[Feature], file: &str, mapping: &FieldMapping) -> Result<Fields, Vec<Problem>> {
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

        let name = name.or_else(|| NAME_FIELDS.iter().find_map(|f| usual(f)));
        if name.is_none() {
            let what = "no field is known to hold the name";
            problems.push(Problem::error(file, what, format!("state which one does; {listed}")));
        }
        let pair = YEAR_FIELDS.iter().find_map(|(f, t)| usual(f).zip(usual(t)));
        let half = YEAR_FIELDS.iter().find_map(|(f, t)| usual(f).or_else(|| usual(t)));
        let years = match (from, to) {
            (Some(f), Some(t)) => Some((f, t)),
            // One of the two is given: its usual partner may be there.
            (Some(f), None) => YEAR_FIELDS.iter().find_map(|(_, t)| usual(t)).map(|t| (f, t)),
            (None, Some(t)) => YEAR_FIELDS.iter().find_map(|(f, _)| usual(f)).map(|f| (f, t)),
            (None, None) => pair,
        };
        if years.is_none() {
            if let Some(half) = half.as_ref().or(mapping.from_year.as_ref()).or(mapping.to_year.as_ref()) {
                let what = format!("only one field of years is known, '{half}'");
                let expected = format!("state which fields hold the first and the last year; {listed}");
                problems.push(Problem::error(file, what, expected));
            } else if !mapping.every_year {
                let expected = format!(
                    "state which fields hold the first and the last year, or that the claims hold in every year; {listed}"
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

/// One feature being read.
struct Reader<'a> {
    feature: &'a Feature,
    file: &'a str,
    number: usize,
    id: String,
    is_pack: bool,
    problems: &'a mut Vec<Problem>,
}

impl Reader<'_> {
    fn error(&mut self, key: &str, found: impl ToString, expected: impl ToString) {
        self.problems.push(Problem::error(self.file, found, expected).at_feature(self.number, &self.id).about(key));
    }

    fn warning(&mut self, key: &str, found: impl ToString, expected: impl ToString) {
        self.error(key, found, expected);
        if let Some(last) = self.problems.pop() {
            self.problems.push(last.as_warning());
        }
    }

    fn value(&self, key: &str) -> Option<&Value> {
        self.feature.properties.get(key).filter(|v| !v.is_null())
    }

    fn pack_claim(&mut self) -> Option<Claim> {
        self.id = self.feature.text("id").or_else(|| self.feature.text("name")).unwrap_or_default();
        let errors_before = self.errors();
        let unknown: Vec<&String> =
            self.feature.properties.keys().filter(|k| !PACK_KEYS.contains(&k.as_str())).collect();
        for key in PACK_REQUIRED {
            if self.value(key).is_none() {
                let near = unknown.iter().find(|u| !suggestion(u, [key]).is_empty());
                let hint = near.map_or(String::new(), |u| format!("; is '{u}' meant?"));
                self.error(key, "the key is missing", format!("every claim has it{hint}"));
            }
        }
        for key in unknown {
            let near = suggestion(key, PACK_KEYS);
            if !near.is_empty() {
                self.warning(key, "the key is not known", near);
            }
        }
        let area = self.area();
        let span = self.pack_span();
        let claim = Claim {
            id: self.required_text("id"),
            name: self.required_text("name"),
            name_ru: self.text("name_ru"),
            name_local: self.text("name_local"),
            local_lang: self.text("local_lang"),
            span: span.unwrap_or(Span::ALWAYS),
            kind: self.kind("kind"),
            parent: Some(self.text("parent")).filter(|p| !p.is_empty()),
            certainty: self.certainty("certainty"),
            sources: self.sources(),
            colour: self.colour(),
            note: self.text("note"),
            area: area.unwrap_or_else(|| MultiPolygon::new(vec![])),
        };
        if !claim.name_local.is_empty() && claim.local_lang.is_empty() {
            self.warning("local_lang", "name_local has no language", "a BCP 47 tag such as ka, hy, az, ru, la");
        }
        (self.errors() == errors_before).then_some(claim)
    }

    fn foreign_claim(&mut self, fields: &Fields) -> Option<Claim> {
        let Some(name) = self.feature.text(&fields.name) else {
            self.warning(&fields.name, "it has no name", "it is left out");
            return None;
        };
        self.id = name.clone();
        let errors_before = self.errors();
        let span = match &fields.years {
            None => Some(Span::ALWAYS),
            Some((from, to)) => self.span(from, to),
        };
        let area = self.area()?;
        let (kind, certainty) = (
            fields.kind.as_ref().map_or(ClaimKind::Polity, |f| self.kind(f)),
            fields.certainty.as_ref().map_or(Certainty::Approximate, |f| self.certainty(f)),
        );
        let pack_text = |reader: &mut Self, key: &str| {
            if fields.is_pack_like { reader.text(key) } else { String::new() }
        };
        let id = fields.id.as_ref().and_then(|f| self.feature.text(f)).unwrap_or_else(|| key_from(&name));
        let sources = if fields.is_pack_like && self.value("source").is_some() { self.sources() } else { Vec::new() };
        let claim = Claim {
            id,
            name,
            name_ru: pack_text(self, "name_ru"),
            name_local: pack_text(self, "name_local"),
            local_lang: pack_text(self, "local_lang"),
            span: span.unwrap_or(Span::ALWAYS),
            kind,
            parent: Some(pack_text(self, "parent")).filter(|p| !p.is_empty()),
            certainty,
            sources: if sources.is_empty() { vec![self.file.to_string()] } else { sources },
            colour: if fields.is_pack_like { self.colour() } else { None },
            note: pack_text(self, "note"),
            area,
        };
        (self.errors() == errors_before).then_some(claim)
    }

    fn errors(&self) -> usize {
        self.problems.iter().filter(|p| p.is_error()).count()
    }

    /// A text that may be missing; empty then.
    fn text(&mut self, key: &str) -> String {
        match self.value(key) {
            None => String::new(),
            Some(Value::String(s)) => s.trim().to_string(),
            Some(other) => {
                let found = shown(&other.to_string());
                self.error(key, found, "a text");
                String::new()
            }
        }
    }

    /// A text that must not be empty; that it is missing has been said.
    fn required_text(&mut self, key: &str) -> String {
        let text = self.text(key);
        if matches!(self.value(key), Some(Value::String(_))) && text.is_empty() {
            self.error(key, "it is empty", "a text");
        }
        text
    }

    fn kind(&mut self, key: &str) -> ClaimKind {
        let words = ClaimKind::ALL.map(ClaimKind::as_str);
        self.word(key, &words).and_then(|w| ClaimKind::named(&w)).unwrap_or(ClaimKind::Polity)
    }

    fn certainty(&mut self, key: &str) -> Certainty {
        let words = Certainty::ALL.map(Certainty::as_str);
        self.word(key, &words).and_then(|w| Certainty::named(&w)).unwrap_or(Certainty::Approximate)
    }

    /// One of `words`.
    fn word(&mut self, key: &str, words: &[&str]) -> Option<String> {
        let value = self.value(key)?.clone();
        let Value::String(word) = &value else {
            self.error(key, shown(&value.to_string()), format!("one of {}", words.join(", ")));
            return None;
        };
        if !words.contains(&word.as_str()) {
            let near = suggestion(word, words.iter().copied());
            let expected =
                format!("one of {}{}", words.join(", "), if near.is_empty() { near } else { format!(": {near}") });
            self.error(key, shown(word), expected);
            return None;
        }
        Some(word.clone())
    }

    fn pack_span(&mut self) -> Option<Span> {
        // Each year is judged on its own, so that two bad years are two problems.
        let (from, to) = (self.year("from_year"), self.year("to_year"));
        self.ordered("from_year", from?, "to_year", to?)
    }

    fn span(&mut self, from_key: &str, to_key: &str) -> Option<Span> {
        for key in [from_key, to_key] {
            if self.value(key).is_none_or(|v| v.as_str().is_some_and(|s| s.trim().is_empty())) {
                self.error(key, "it has no year", "a first and a last year for every feature");
            }
        }
        let (from, to) = (self.year(from_key), self.year(to_key));
        self.ordered(from_key, from?, to_key, to?)
    }

    fn ordered(&mut self, from_key: &str, from: Year, to_key: &str, to: Year) -> Option<Span> {
        match Span::inclusive(from, to) {
            Ok(span) => Some(span),
            Err(_) => {
                self.error(
                    from_key,
                    format!("{from} comes after {to_key} {to}"),
                    "the first year, then the last year, both included",
                );
                None
            }
        }
    }

    /// The year under `key`; `None` when it is missing (which is said elsewhere) or cannot be read (said here).
    fn year(&mut self, key: &str) -> Option<Year> {
        let value = self.value(key)?;
        if value.as_str().is_some_and(|s| s.trim().is_empty()) {
            if self.is_pack {
                self.error(key, "it is empty", "a year");
            }
            return None;
        }
        match year_of(value) {
            Ok(year) => Some(year),
            Err((found, expected)) => {
                self.error(key, found, expected);
                None
            }
        }
    }

    /// Source ids: an array of texts, or one text with commas.
    fn sources(&mut self) -> Vec<String> {
        let key = "source";
        let Some(value) = self.value(key).cloned() else { return Vec::new() };
        let split = |s: &str| s.split(',').map(|s| s.trim().to_string()).filter(|s| !s.is_empty()).collect();
        let list: Option<Vec<String>> = match &value {
            Value::String(s) => match serde_json::from_str::<Vec<String>>(s) {
                Ok(list) => Some(list),
                Err(_) => Some(split(s)),
            },
            Value::Array(items) => items.iter().map(|i| i.as_str().map(str::to_string)).collect(),
            _ => None,
        };
        let list = list.unwrap_or_default();
        if list.is_empty() {
            self.error(key, shown(&value.to_string()), "an array of source ids, at least one");
        }
        list
    }

    fn colour(&mut self) -> Option<[u8; 3]> {
        let value = self.value("colour")?.clone();
        let colour = value.as_str().and_then(|s| {
            let hex = s.strip_prefix('#').filter(|h| h.len() == 6 && h.bytes().all(|b| b.is_ascii_hexdigit()))?;
            let n = u32::from_str_radix(hex, 16).ok()?;
            Some([(n >> 16) as u8, (n >> 8) as u8, n as u8])
        });
        if colour.is_none() && value.as_str() != Some("") {
            self.error("colour", shown(&value.to_string()), "a colour as \"#rrggbb\", for example \"#a81a1a\"");
        }
        colour
    }

    /// The feature's area, checked; broken ones are refused in packs and repaired elsewhere.
    fn area(&mut self) -> Option<MultiPolygon<f64>> {
        let Some(geometry) = &self.feature.geometry else {
            // A pack's reader has said why.
            if !self.is_pack {
                self.warning("geometry", "it has none", "it is left out");
            }
            return None;
        };
        let mut polygons = Vec::new();
        if let Err(found) = collect_polygons(geometry, &mut polygons) {
            self.error("geometry", format!("it is a {found}"), "a polygon or multipolygon");
            return None;
        }
        let errors_before = self.errors();
        if let Some((found, expected)) = bad_coordinate(polygons.iter().flat_map(rings)) {
            self.error("geometry", found, expected);
            return None;
        }
        let mut sound = Vec::new();
        for polygon in polygons {
            match fault(&polygon) {
                None => sound.push(polygon),
                Some((found, expected)) if self.is_pack => self.error("geometry", found, expected),
                Some((found, _)) => {
                    let repaired = repaired(&polygon);
                    let before = area_km2(&MultiPolygon::new(vec![polygon.clone()]));
                    let after = area_km2(&repaired);
                    self.warning("geometry", found, format!("repaired: {before:.0} km² before, {after:.0} km² after"));
                    sound.extend(repaired);
                }
            }
        }
        if sound.is_empty() && self.errors() == errors_before {
            let (found, expected) = ("it has no area", "a polygon with at least three corners");
            if self.is_pack {
                self.error("geometry", found, expected);
            } else {
                self.warning("geometry", found, "it is left out");
            }
        }
        (!sound.is_empty() && self.errors() == errors_before).then(|| MultiPolygon::new(sound))
    }
}

/// The exterior and the holes.
fn rings(p: &Polygon<f64>) -> impl Iterator<Item = &LineString<f64>> {
    std::iter::once(p.exterior()).chain(p.interiors())
}

/// Appends all polygons in `geometry`; says which kind stands in the way.
fn collect_polygons(geometry: &Geometry<f64>, into: &mut Vec<Polygon<f64>>) -> Result<(), &'static str> {
    match geometry {
        Geometry::Polygon(p) => into.push(p.clone()),
        Geometry::MultiPolygon(m) => into.extend(m.iter().cloned()),
        Geometry::Rect(r) => into.push(r.to_polygon()),
        Geometry::Triangle(t) => into.push(t.to_polygon()),
        Geometry::GeometryCollection(all) => {
            for g in all {
                collect_polygons(g, into)?;
            }
        }
        Geometry::Point(_) | Geometry::MultiPoint(_) => return Err("point"),
        Geometry::Line(_) | Geometry::LineString(_) | Geometry::MultiLineString(_) => return Err("line"),
    }
    into.retain(|p| !p.exterior().0.is_empty());
    Ok(())
}

/// A coordinate that is no longitude and latitude: what was found and expected.
pub(crate) fn bad_coordinate<'a>(lines: impl Iterator<Item = &'a LineString<f64>>) -> Option<(String, &'static str)> {
    let expected =
        "longitude (-180..180) first, then latitude (-90..90), in degrees; are they exchanged, or in metres?";
    lines
        .flat_map(|l| &l.0)
        .find(|c| !(c.x.abs() <= 180.0 && c.y.abs() <= 90.0))
        .map(|c| (format!("a corner at {}, {}", c.x, c.y), expected))
}

/// What is wrong with a polygon: found and expected.
fn fault(polygon: &Polygon<f64>) -> Option<(String, &'static str)> {
    for ring in rings(polygon) {
        let mut corners: Vec<_> = ring.0.iter().map(|c| (c.x, c.y)).collect();
        corners.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        corners.dedup();
        if corners.len() < 3 {
            return Some((
                format!("a ring with {} different corner(s)", corners.len()),
                "at least three, the first repeated at the end",
            ));
        }
    }
    if let Some(at) = self_crossing(polygon) {
        let found = format!("the outline crosses or touches itself near {:.4} E, {:.4} N", at.x, at.y);
        return Some((found, "an outline that meets itself only at its end; move the corners there apart"));
    }
    if polygon.unsigned_area() == 0.0 {
        return Some(("it has no area".to_string(), "an outline that encloses something"));
    }
    let outer = Polygon::new(polygon.exterior().clone(), vec![]);
    let stray = polygon.interiors().iter().find(|h| !h.points().all(|p| outer.intersects(&p)));
    stray.map(|h| {
        let at = h.0[0];
        (format!("a hole outside its polygon, at {:.4} E, {:.4} N", at.x, at.y), "holes inside their polygon")
    })
}

/// A polygon's area as valid polygons: everything that its outline goes round, less everything that its holes go round.
fn repaired(polygon: &Polygon<f64>) -> MultiPolygon<f64> {
    let nothing = MultiPolygon::new(vec![]);
    let enclosed =
        |ring: &LineString<f64>| Polygon::new(ring.clone(), vec![]).union_with_fill_rule(&nothing, FillRule::NonZero);
    polygon.interiors().iter().fold(enclosed(polygon.exterior()), |area, hole| area.difference(&enclosed(hole)))
}

/// The year in an attribute: a whole number, a text that [`Year`] reads, or a date; else what was found and expected.
pub(crate) fn year_of(value: &Value) -> Result<Year, (String, String)> {
    let number = match value {
        Value::Number(n) => n
            .as_i64()
            .or_else(|| n.as_f64().filter(|f| f.fract() == 0.0 && f.abs() < 1e15).map(|f| f as i64))
            .ok_or_else(|| (n.to_string(), "a whole year".to_string()))?,
        Value::String(text) => {
            return year_of_date(text).unwrap_or_else(|| text.parse()).map_err(|e| parts_of(e, text));
        }
        other => return Err((shown(&other.to_string()), "a year, such as 1184 or \"300 BCE\"".to_string())),
    };
    let text = number.to_string();
    text.parse().map_err(|e| parts_of(e, &text))
}

/// The year of a date such as 1184-05-01 or 1184-05; `None` when the text is not one.
fn year_of_date(text: &str) -> Option<crate::Result<Year>> {
    let fields: Vec<&str> = text.trim().split('-').collect();
    let digits = |s: &str, n: usize| s.len() == n && s.bytes().all(|b| b.is_ascii_digit());
    match fields[..] {
        [year, month] if digits(year, 4) && digits(month, 2) => Some(year.parse()),
        [year, month, day] if digits(year, 4) && digits(month, 2) && digits(day, 2) => Some(year.parse()),
        _ => None,
    }
}

/// What was found and expected, of an error about a year.
fn parts_of(error: Error, text: &str) -> (String, String) {
    match error {
        Error::Argument { found, remedy, .. } => (found, remedy),
        other => (shown(text), other.to_string()),
    }
}

/// A key from a name: lower case, other characters than letters and digits become hyphens.
fn key_from(name: &str) -> String {
    let lower = name.to_lowercase();
    lower.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).collect::<Vec<_>>().join("-")
}

/// Claims of one polity and the same years made one; years of one polity that overlap otherwise are reported.
fn joined(claims: Vec<Claim>, file: &str, problems: &mut Vec<Problem>) -> Vec<Claim> {
    let mut result: Vec<Claim> = Vec::new();
    let mut parts: Vec<usize> = Vec::new();
    let mut known: HashMap<(String, Span), usize> = HashMap::new();
    for claim in claims {
        match known.get(&(claim.id.clone(), claim.span)) {
            Some(&i) => {
                result[i].area.0.extend(claim.area.0);
                parts[i] += 1;
            }
            None => {
                known.insert((claim.id.clone(), claim.span), result.len());
                parts.push(1);
                result.push(claim);
            }
        }
    }
    for (claim, &n) in result.iter_mut().zip(&parts).filter(|(_, n)| **n > 1) {
        // Together they may overlap, which is no valid area; the union is.
        claim.area = geo::unary_union(claim.area.iter());
        let what = format!("{n} features of '{}' for {}", claim.name, claim.span);
        problems.push(Problem::error(file, what, "they are joined into one claim").as_warning());
    }
    problems.extend(overlapping_years(result.iter()).into_iter().map(|(a, b)| {
        let what = format!("'{}' has claims for {} and for {}", a.id, a.span, b.span);
        Problem::error(file, what, "in the years of both, the later one is drawn").as_warning()
    }));
    result
}

/// Pairs of claims of one polity whose years overlap, in order of id and time.
pub(crate) fn overlapping_years<'a>(claims: impl Iterator<Item = &'a Claim>) -> Vec<(&'a Claim, &'a Claim)> {
    let mut sorted: Vec<&Claim> = claims.collect();
    sorted.sort_by(|a, b| (&a.id, a.span).cmp(&(&b.id, b.span)));
    sorted.windows(2).filter(|w| w[0].id == w[1].id && w[0].span.overlaps(&w[1].span)).map(|w| (w[0], w[1])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use geo::polygon;
    use serde_json::json;

    fn feature(properties: Value) -> Feature {
        let square = polygon![(x: 44.0, y: 41.0), (x: 45.0, y: 41.0), (x: 45.0, y: 42.0), (x: 44.0, y: 42.0)];
        let Value::Object(properties) = properties else { panic!("an object") };
        Feature { geometry: Some(square.into()), properties }
    }

    fn read(properties: Value) -> (Vec<Claim>, Vec<String>) {
        read_with(properties, &FieldMapping::default())
    }

    fn read_with(properties: Value, mapping: &FieldMapping) -> (Vec<Claim>, Vec<String>) {
        let (claims, problems) = claims_from_features(&[feature(properties)], "b.geojson", mapping);
        (claims, problems.iter().map(Problem::to_string).collect())
    }

    fn span(text: &str) -> Span {
        text.parse().unwrap()
    }

    #[test]
    fn the_usual_fields_are_found() {
        for properties in [
            json!({"name": "Kingdom of Georgia", "from_year": 1184, "to_year": 1203}),
            json!({"Name": "Kingdom of Georgia", "FromYear": "1184", "ToYear": 1203.0}),
            json!({"NAME": "Kingdom of Georgia", "START": "AD 1184", "END": "1203 CE"}),
            json!({"name": "Kingdom of Georgia", "start_date": "1184-05-01", "end_date": "1203-12"}),
        ] {
            let (claims, problems) = read(properties);
            assert_eq!(problems, Vec::<String>::new());
            assert_eq!((claims[0].id.as_str(), claims[0].span), ("kingdom-of-georgia", span("1184/1203")));
            assert_eq!(claims[0].sources, ["b.geojson"]);
        }
    }

    #[test]
    fn fields_that_are_not_found_are_asked_for_with_those_that_are() {
        let (_, problems) = read(json!({"realm": "X", "since": 1184}));
        assert_eq!(problems.len(), 2);
        assert!(problems.iter().all(|p| p.contains("fields found: realm, since")), "{problems:?}");
        let mapping = FieldMapping { name: Some("relm".into()), ..Default::default() };
        let (_, problems) = read_with(json!({"realm": "X", "from": 1, "to": 2}), &mapping);
        assert!(problems[0].contains("did you mean 'realm'?"), "{problems:?}");
        let (_, problems) = read(json!({"name": "X", "from_year": 1184}));
        assert!(problems[0].contains("only one field of years"), "{problems:?}");
    }

    #[test]
    fn without_years_claims_hold_always_only_when_told() {
        let (claims, problems) = read(json!({"NAME": "X"}));
        assert!(claims.is_empty() && problems[0].contains("every year"), "{problems:?}");
        let mapping = FieldMapping { every_year: true, ..Default::default() };
        let (claims, problems) = read_with(json!({"NAME": "X"}), &mapping);
        assert_eq!((claims[0].span, problems.len()), (Span::ALWAYS, 0));
    }

    #[test]
    fn given_fields_come_before_the_usual_ones() {
        let mapping = FieldMapping {
            name: Some("ruler".into()),
            from_year: Some("a".into()),
            to_year: Some("b".into()),
            ..Default::default()
        };
        let (claims, _) =
            read_with(json!({"name": "X", "ruler": "Tamar", "from": 1, "to": 2, "a": -3, "b": -2}), &mapping);
        assert_eq!((claims[0].name.as_str(), claims[0].span), ("Tamar", span("-3/-2")));
    }

    #[test]
    fn bad_years_are_errors_and_missing_names_warnings() {
        let (claims, problems) = read(json!({"name": "X", "from": 0, "to": 1.5}));
        assert!(claims.is_empty());
        assert!(problems[0].contains("b.geojson, feature 1 (X), from: '0'") && problems[0].contains("no year 0"));
        assert!(problems[1].contains("a whole year"), "{problems:?}");
        let (_, problems) = read(json!({"name": "X", "from": 1203, "to": 1184}));
        assert!(problems[0].contains("1203 CE comes after to 1184 CE"), "{problems:?}");
        let (_, problems) = read(json!({"name": null, "from": 1, "to": 2}));
        assert!(problems[0].starts_with("warning: ") && problems[0].contains("no name"), "{problems:?}");
    }

    #[test]
    fn a_crossing_outline_is_repaired_and_the_area_told() {
        let bow = polygon![(x: 44.0, y: 41.0), (x: 45.0, y: 42.0), (x: 45.0, y: 41.0), (x: 44.0, y: 42.0)];
        let f = Feature { geometry: Some(bow.into()), ..feature(json!({"name": "X", "from": 1, "to": 2})) };
        let (claims, problems) = claims_from_features(&[f], "b", &FieldMapping::default());
        assert!((claims[0].area.unsigned_area() - 0.5).abs() < 1e-6);
        let told = problems[0].to_string();
        assert!(
            !problems[0].is_error() && told.contains("44.5000 E, 41.5000 N") && told.contains("km² after"),
            "{told}"
        );
    }

    #[test]
    fn features_of_one_polity_and_time_are_joined() {
        let f = feature(json!({"name": "X", "from": 1, "to": 2}));
        let (claims, problems) = claims_from_features(&[f.clone(), f], "b", &FieldMapping::default());
        assert_eq!(claims.len(), 1);
        assert!((claims[0].area.unsigned_area() - 1.0).abs() < 1e-6);
        assert!(problems[0].to_string().contains("joined"));
    }

    #[test]
    fn a_packs_claim_needs_all_its_keys() {
        let f = feature(
            json!({"id": "georgia", "form_year": 1184, "to_year": 0, "kind": "polty", "colour": "red", "name": " "}),
        );
        let (claims, problems) = pack_claims(&[f], "polities.geojson");
        let all: Vec<String> = problems.iter().map(Problem::to_string).collect();
        let text = all.join("\n");
        assert!(claims.is_empty());
        for said in [
            "from_year: the key is missing; every claim has it; is 'form_year' meant?",
            "certainty: the key is missing",
            "source: the key is missing",
            "name: it is empty",
            "to_year: '0' is no year of history",
            "kind: 'polty'; one of polity, part, composite, claim, people: did you mean 'polity'?",
            "colour: '\"red\"'; a colour as \"#rrggbb\"",
        ] {
            assert!(text.contains(said), "{said}\n---\n{text}");
        }
        assert!(all.iter().all(|p| p.contains("polities.geojson, feature 1 (georgia), ")), "{text}");
    }

    #[test]
    fn exchanged_axes_are_told_from_being_elsewhere() {
        let extent = LonLatBox { west: 36.0, south: 38.0, east: 52.0, north: 47.0 };
        let at = |x: f64, y: f64| (1, "a".to_string(), geo::Rect::new((x, y), (x + 0.5, y + 0.5)));
        let far = outside_extent(&[at(10.0, 50.0), at(45.0, 42.0)], &extent, "b");
        assert!(far.len() == 1 && !far[0].is_error());
        // 41 N 53 E exchanged lies north of the region; the other way round it would lie inside.
        let exchanged = outside_extent(&[at(41.0, 51.0), at(40.0, 49.0)], &extent, "b");
        assert!(exchanged.len() == 1 && exchanged[0].is_error(), "{exchanged:?}");
        assert!(outside_extent(&[at(44.0, 41.0)], &extent, "b").is_empty());
        // A whole layer: many of its places stay inside when exchanged.
        let places = |swap: bool| -> Vec<_> {
            let lonlat = (0..48).map(|k| (37.0 + f64::from(k % 8) * 2.0, 38.5 + f64::from(k / 8) * 1.5));
            lonlat.map(|(x, y)| if swap { at(y, x) } else { at(x, y) }).collect()
        };
        assert!(outside_extent(&places(false), &extent, "b").is_empty());
        assert!(outside_extent(&places(true), &extent, "b")[0].is_error());
    }
}
