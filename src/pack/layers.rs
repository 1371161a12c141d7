//! Places, peaks and physical names from the features of a pack's layers.

use super::{DatedName, Peak, PhysicalName, Place};
use crate::borders::problem::{Problem, shown, suggestion};
use crate::grid::LonLat;
use crate::vector::Feature;
use crate::year::Year;
use geo::{Geometry, LineString};
use serde_json::{Map, Value};

/// Kinds of places.
const PLACE_KINDS: [&str; 6] = ["capital", "town", "fortress", "pass", "monastery", "port"];
/// Kinds of physical names.
const PHYSICAL_KINDS: [&str; 8] = ["sea", "range", "plain", "lake", "valley", "plateau", "peninsula", "desert"];
/// Heights on Earth's land, metres, with some room.
const HEIGHTS_M: std::ops::RangeInclusive<f64> = -450.0..=8900.0;

/// The places in `features` that are sound.
pub(super) fn places(features: &[Feature], file: &str, problems: &mut Vec<Problem>) -> Vec<Place> {
    read_each(features, file, problems, |r| {
        let place = (r.name(), r.word("kind", &PLACE_KINDS), r.rank("rank"), r.point());
        let (from_year, to_year) = r.years();
        let names = r.dated_names();
        let (name, kind, rank, at) = (place.0?, place.1?, place.2?, place.3?);
        Some(Place { name, kind, rank, from_year, to_year, names, at })
    })
}

/// The peaks in `features` that are sound.
pub(super) fn peaks(features: &[Feature], file: &str, problems: &mut Vec<Problem>) -> Vec<Peak> {
    read_each(features, file, problems, |r| {
        let (name, name_ru, rank, at) = (r.name(), r.text("name_ru"), r.rank("prominence_rank"), r.point());
        let height = r.height();
        Some(Peak { name: name?, name_ru, height_m: height?, rank: rank?, at: at? })
    })
}

/// The physical names in `features` that are sound.
pub(super) fn physical_names(features: &[Feature], file: &str, problems: &mut Vec<Problem>) -> Vec<PhysicalName> {
    read_each(features, file, problems, |r| {
        let (name, name_ru, kind) = (r.name(), r.text("name_ru"), r.word("kind", &PHYSICAL_KINDS));
        let (rank, line) = (r.rank("rank"), r.line());
        Some(PhysicalName { name: name?, name_ru, kind: kind?, rank: rank?, line: line? })
    })
}

fn read_each<T>(
    features: &[Feature],
    file: &str,
    problems: &mut Vec<Problem>,
    mut read: impl FnMut(&mut Reader) -> Option<T>,
) -> Vec<T> {
    (1..)
        .zip(features)
        .filter_map(|(number, feature)| {
            let id = feature.text("name").unwrap_or_default();
            let before = problems.len();
            let item = read(&mut Reader { feature, file, number, id, problems });
            item.filter(|_| problems[before..].iter().all(|p| !p.is_error()))
        })
        .collect()
}

/// One feature being read.
struct Reader<'a> {
    feature: &'a Feature,
    file: &'a str,
    number: usize,
    id: String,
    problems: &'a mut Vec<Problem>,
}

impl Reader<'_> {
    fn say(&mut self, key: &str, found: impl ToString, expected: impl ToString) {
        self.problems.push(Problem::error(self.file, found, expected).at_feature(self.number, &self.id).about(key));
    }

    fn value(&self, key: &str) -> Option<&Value> {
        self.feature.properties.get(key).filter(|v| !v.is_null())
    }

    /// Says that `key` is missing, with the key that may be meant.
    fn missing(&mut self, key: &str, expected: &str) {
        let near = self.feature.properties.keys().find(|k| k.as_str() != key && !suggestion(k, [key]).is_empty());
        let hint = near.map_or(String::new(), |k| format!("; is '{k}' meant?"));
        self.say(key, "the key is missing", format!("{expected}{hint}"));
    }

    fn text(&mut self, key: &str) -> String {
        match self.value(key).cloned() {
            None => String::new(),
            Some(Value::String(s)) => s.trim().to_string(),
            Some(other) => {
                self.say(key, shown(&other.to_string()), "a text");
                String::new()
            }
        }
    }

    fn name(&mut self) -> Option<String> {
        if self.value("name").is_none() {
            self.missing("name", "a text");
            return None;
        }
        let is_text = self.value("name").is_some_and(Value::is_string);
        let name = self.text("name");
        if is_text && name.is_empty() {
            self.say("name", "it is empty", "a text");
        }
        (!name.is_empty()).then_some(name)
    }

    fn word(&mut self, key: &str, words: &[&str]) -> Option<String> {
        let Some(value) = self.value(key).cloned() else {
            self.missing(key, &format!("one of {}", words.join(", ")));
            return None;
        };
        if let Some(word) = value.as_str().filter(|w| words.contains(w)) {
            return Some(word.to_string());
        }
        let near = value.as_str().map_or(String::new(), |w| suggestion(w, words.iter().copied()));
        let near = if near.is_empty() { near } else { format!(": {near}") };
        self.say(key, shown(&value.to_string()), format!("one of {}{near}", words.join(", ")));
        None
    }

    fn rank(&mut self, key: &str) -> Option<u8> {
        let Some(value) = self.value(key).cloned() else {
            self.missing(key, "1 (greatest) to 4");
            return None;
        };
        let rank = value.as_f64().filter(|r| r.fract() == 0.0 && (1.0..=4.0).contains(r));
        if rank.is_none() {
            self.say(key, shown(&value.to_string()), "1 (greatest), 2, 3 or 4");
        }
        rank.map(|r| r as u8)
    }

    fn height(&mut self) -> Option<f64> {
        let key = "height_m";
        let Some(value) = self.value(key).cloned() else {
            self.missing(key, "the surveyed height in metres");
            return None;
        };
        let height = value.as_f64().filter(|h| HEIGHTS_M.contains(h));
        if height.is_none() {
            let expected = "a height in metres, a number from -450 to 8900; is it in feet?";
            self.say(key, shown(&value.to_string()), expected);
        }
        height
    }

    fn point(&mut self) -> Option<LonLat> {
        match &self.feature.geometry {
            // Why there is none has been said.
            None => None,
            Some(Geometry::Point(p)) => Some(LonLat { lon: p.x(), lat: p.y() }),
            Some(_) => {
                self.say("geometry", "it is not a point", "a Point");
                None
            }
        }
    }

    /// A line; a point makes a line of one position.
    fn line(&mut self) -> Option<LineString<f64>> {
        match &self.feature.geometry {
            None => None,
            Some(Geometry::LineString(l)) => Some(l.clone()),
            Some(Geometry::Point(p)) => Some(LineString::new(vec![p.0])),
            Some(_) => {
                self.say("geometry", "it is neither a line nor a point", "a LineString or a Point");
                None
            }
        }
    }

    /// The first and the last year of the feature itself; `None` when open.
    fn years(&mut self) -> (Option<i32>, Option<i32>) {
        let mut year = |key: &str| {
            let value = self.value(key)?.clone();
            match crate::borders::reader::year_of(&value) {
                Ok(year) => Some(year),
                Err((found, expected)) => {
                    self.say(key, found, expected);
                    None
                }
            }
        };
        let (from, to) = (year("from_year"), year("to_year"));
        if let (Some(f), Some(t)) = (from, to)
            && t < f
        {
            self.say(
                "from_year",
                format!("{f} comes after to_year {t}"),
                "the first year, then the last, both included",
            );
        }
        (from.map(Year::to_historian), to.map(Year::to_historian))
    }

    /// Names by period; editors may have made a text of the array.
    fn dated_names(&mut self) -> Vec<DatedName> {
        let key = "names";
        let expected = "an array of {\"name\", \"lang\", \"from_year\", \"to_year\"}";
        let Some(value) = self.value(key).cloned() else { return Vec::new() };
        let list = match &value {
            Value::String(s) if s.trim().is_empty() => return Vec::new(),
            Value::String(s) => serde_json::from_str(s).ok(),
            other => Some(other.clone()),
        };
        let Some(Value::Array(items)) = list else {
            self.say(key, shown(&value.to_string()), expected);
            return Vec::new();
        };
        (1..).zip(&items).filter_map(|(k, item)| self.dated_name(item.as_object(), k, expected)).collect()
    }

    fn dated_name(&mut self, item: Option<&Map<String, Value>>, k: usize, expected: &str) -> Option<DatedName> {
        let Some(item) = item else {
            self.say(&format!("names[{k}]"), "it is no object", expected);
            return None;
        };
        let mut text = |key: &str| {
            let found = item.get(key).and_then(Value::as_str).map(str::trim).filter(|t| !t.is_empty());
            if found.is_none() {
                self.say(&format!("names[{k}].{key}"), "it is missing or no text", expected);
            }
            found.map(str::to_string)
        };
        let (name, lang) = (text("name"), text("lang"));
        let from = self.open_year(item, "from_year", k);
        let to = self.open_year(item, "to_year", k);
        if let (Some(f), Some(t)) = (from, to)
            && t < f
        {
            let found = format!("{f} comes after to_year {t}");
            self.say(&format!("names[{k}].from_year"), found, "the first year, then the last, both included");
        }
        let historian = |y: Option<Year>| y.map(Year::to_historian);
        Some(DatedName { name: name?, lang: lang?, from_year: historian(from), to_year: historian(to) })
    }

    /// A year, `None` when it is open.
    fn open_year(&mut self, item: &Map<String, Value>, key: &str, k: usize) -> Option<Year> {
        let value = item.get(key).filter(|v| !v.is_null())?;
        match crate::borders::reader::year_of(value) {
            Ok(year) => Some(year),
            Err((found, expected)) => {
                self.say(&format!("names[{k}].{key}"), found, expected);
                None
            }
        }
    }
}
