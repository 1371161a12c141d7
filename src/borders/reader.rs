//! Attributes and geometries of a feature to the parts of a claim, with every problem on the way: for packs, and for files
//! whose fields mean what packs mean by them.
//!
//! Years are historian's years with the last one included; of two dates (`1184-05-01`) the years at whose end the thing
//! stood. The conventions of published schemas are not here but in [`super::adapters`].

use super::problem::{Problem, shown, suggestion};
use super::repair::{fault, rings};
use super::{Certainty, Claim, ClaimKind, Doubt, YearRange};
use crate::edtf::{Date, Day, Edtf};
use crate::error::Error;
use crate::grid::LonLatBox;
use crate::vector::Feature;
use crate::year::{Span, Year};
use geo::{BoundingRect, Geometry, LineString, MultiPolygon, Polygon};
use serde_json::Value;

/// The keys of a pack's claims: those that must be there, and all.
const PACK_REQUIRED: [&str; 7] = ["id", "name", "from_year", "to_year", "kind", "certainty", "source"];
const PACK_KEYS: [&str; 15] = [
    "id",
    "name",
    "name_ru",
    "name_local",
    "local_lang",
    "from_year",
    "to_year",
    "from_edtf",
    "to_edtf",
    "kind",
    "parent",
    "certainty",
    "source",
    "colour",
    "note",
];

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
pub(super) const MARGIN: f64 = 0.15;

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

/// One feature being read.
pub(super) struct Reader<'a> {
    pub(super) feature: &'a Feature,
    pub(super) file: &'a str,
    /// Its place in the file, from 1.
    pub(super) number: usize,
    /// Its id or name, for messages.
    pub(super) id: String,
    pub(super) is_pack: bool,
    pub(super) problems: &'a mut Vec<Problem>,
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

    pub(super) fn value(&self, key: &str) -> Option<&Value> {
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
            doubt: span.and_then(|s| self.doubt(s)),
            kind: self.kind("kind"),
            parent: Some(self.text("parent")).filter(|p| !p.is_empty()),
            certainty: self.certainty("certainty"),
            sources: self.sources(),
            colour: self.colour(),
            note: self.text("note"),
            known_lines: Vec::new(),
            area: area.unwrap_or_else(|| MultiPolygon::new(vec![])),
        };
        if !claim.name_local.is_empty() && claim.local_lang.is_empty() {
            self.warning("local_lang", "name_local has no language", "a BCP 47 tag such as ka, hy, az, ru, la");
        }
        (self.errors() == errors_before).then_some(claim)
    }

    pub(super) fn errors(&self) -> usize {
        self.problems.iter().filter(|p| p.is_error()).count()
    }

    /// A text that may be missing; empty then.
    pub(super) fn text(&mut self, key: &str) -> String {
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

    pub(super) fn kind(&mut self, key: &str) -> ClaimKind {
        let words = ClaimKind::ALL.map(ClaimKind::as_str);
        self.word(key, &words).and_then(|w| ClaimKind::named(&w)).unwrap_or(ClaimKind::Polity)
    }

    pub(super) fn certainty(&mut self, key: &str) -> Certainty {
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

    /// What `from_edtf` and `to_edtf` say of the first and the last year of `span`, which must lie in them.
    pub(super) fn doubt(&mut self, span: Span) -> Option<Doubt> {
        let first = self.edtf("from_edtf");
        let last = self.edtf("to_edtf");
        let of_first = |d: Date| YearRange {
            earliest: d.earliest.map_or(Span::ALWAYS.start, |d| Year(d.year)),
            latest: d.latest.map_or(Span::ALWAYS.end, |d| Year(d.year)),
        };
        // A year belongs to whoever stood at its end: what ended on a day in it held until the year before.
        let of_last = |d: Date| YearRange {
            earliest: d.earliest.map_or(Span::ALWAYS.start, |d| Year(d.year - i32::from(d > Day::first_of(d.year)))),
            latest: d.latest.map_or(Span::ALWAYS.end, |d| Year(d.year - i32::from(d < Day::last_of(d.year)))),
        };
        let exactly = |y: Year| YearRange { earliest: y, latest: y };
        let doubt = Doubt {
            first: first.map_or(exactly(span.first()), of_first),
            last: last.map_or(exactly(span.last()), of_last),
            is_approximate: first.iter().chain(&last).any(|d| d.is_approximate),
            is_uncertain: first.iter().chain(&last).any(|d| d.is_uncertain),
        };
        let ends =
            [("from_edtf", "from_year", span.first(), doubt.first), ("to_edtf", "to_year", span.last(), doubt.last)];
        for (key, year_key, year, range) in ends {
            if !(range.earliest <= year && year <= range.latest) {
                let found = self.text(key);
                self.error(
                    key,
                    shown(&found),
                    format!("a date that {year_key}, {year}, may be; years are astronomical here: 300 BCE is -0299"),
                );
            }
        }
        doubt.is_any().then_some(doubt)
    }

    /// The date under `key`, in EDTF; `None` when there is none, or it cannot be read (said here).
    fn edtf(&mut self, key: &str) -> Option<Date> {
        // A year may be written as a number.
        let text = match self.value(key)? {
            Value::Number(n) => n.to_string(),
            _ => self.text(key),
        };
        if text.is_empty() {
            return None;
        }
        match text.parse::<Edtf>() {
            Ok(edtf) => Some(edtf.as_date()),
            Err(error) => {
                let (found, expected) = parts_of(error, &text);
                self.error(key, found, expected);
                None
            }
        }
    }

    pub(super) fn span(&mut self, from_key: &str, to_key: &str) -> Option<Span> {
        for key in [from_key, to_key] {
            if self.value(key).is_none_or(|v| v.as_str().is_some_and(|s| s.trim().is_empty())) {
                self.error(key, "it has no year", "a first and a last year for every feature");
            }
        }
        let (from, to) = (self.year(from_key), self.year(to_key));
        let (from, mut to) = (from?, to?);
        // A date before the year's end: in that year someone else stands at its end.
        let day = |key: &str| self.value(key)?.as_str()?.parse::<Edtf>().ok()?.as_date().latest;
        if from < to && day(to_key).is_some_and(|d| d < Day::last_of(d.year)) {
            to = Year(to.0 - 1);
        }
        self.ordered(from_key, from, to_key, to)
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
    pub(super) fn sources(&mut self) -> Vec<String> {
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

    pub(super) fn colour(&mut self) -> Option<[u8; 3]> {
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

    /// The feature's area, checked; broken ones are refused.
    fn area(&mut self) -> Option<MultiPolygon<f64>> {
        // That there is no geometry has been said.
        let geometry = self.feature.geometry.as_ref()?;
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
        for (found, expected) in polygons.iter().filter_map(fault) {
            self.error("geometry", found, expected);
        }
        if polygons.is_empty() && self.errors() == errors_before {
            self.error("geometry", "it has no area", "a polygon with at least three corners");
        }
        (self.errors() == errors_before).then(|| MultiPolygon::new(polygons))
    }
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
pub(crate) fn key_from(name: &str) -> String {
    let lower = name.to_lowercase();
    lower.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).collect::<Vec<_>>().join("-")
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
    fn doubt_about_years_is_read_and_must_fit_them() {
        let claim = |from: Value, to: Value| {
            let f = feature(json!({
                "id": "a", "name": "A", "from_year": -80, "to_year": 1213, "from_edtf": from, "to_edtf": to,
                "kind": "polity", "certainty": "approximate", "source": ["x"],
            }));
            let (claims, problems) = pack_claims(&[f], "p");
            let said: Vec<String> = problems.iter().map(Problem::to_string).collect();
            (claims.first().and_then(|c| c.1.doubt).map(|d| d.to_string()), said.join("\n"))
        };
        // 80 BCE is -0079.
        let (doubt, said) = claim(json!("-0084/-0074"), json!("1210/1215~"));
        assert_eq!(doubt.as_deref(), Some("begins 85–75 BCE, ends 1210–1215 CE, dates approximate"), "{said}");
        assert_eq!(claim(json!("-0079"), json!(1213)), (None, String::new()));
        assert_eq!(claim(json!("-0079?"), json!(null)).0.as_deref(), Some("dates uncertain"));
        // Ended in the spring of 1214: the last year at whose end it stood is 1213.
        assert_eq!(claim(json!(null), json!("1214-05-XX")), (None, String::new()));
        assert!(
            claim(json!("-0080"), json!(null)).1.contains("from_edtf: '-0080'; a date that from_year, 80 BCE, may be")
        );
        assert!(claim(json!(null), json!("c. 1213")).1.contains("to_edtf: 'c. 1213' is no date; write 1184"));
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
