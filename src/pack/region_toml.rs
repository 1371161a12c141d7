//! `region.toml`: every key with its type, and all that is wrong with it at once, by line.

use super::{BaseLayer, PackSource, Source, SourceUse};
use crate::borders::problem::{Problem, shown, suggestion};
use crate::grid::LonLatBox;
use std::collections::BTreeMap;
use toml::de::{DeTable, DeValue};

const FILE: &str = "region.toml";
const ROOT_KEYS: [&str; 9] =
    ["name", "title", "title_ru", "statement", "crs", "resolution_m", "extent", "layers", "sources"];
const EXTENT_KEYS: [&str; 4] = ["west", "south", "east", "north"];
const LAYER_KEYS: [&str; 8] = ["polities", "places", "peaks", "physical", "elevation", "ocean", "lakes", "rivers"];
const SOURCE_KEYS: [&str; 5] = ["id", "citation", "licence", "use", "note"];

/// What `region.toml` says; what could not be read is empty.
#[derive(Debug, Default)]
pub(super) struct RegionToml {
    pub title: String,
    pub title_ru: String,
    pub statement: String,
    pub crs: String,
    pub resolution_m: f64,
    pub extent: Option<LonLatBox>,
    pub polities: Vec<String>,
    pub places: Vec<String>,
    pub peaks: Vec<String>,
    pub physical: Vec<String>,
    /// Files by key of [`BaseLayer`].
    pub base_layers: BTreeMap<&'static str, String>,
    pub sources: Vec<Source>,
}

/// The name that the file gives, if it can be read.
pub(super) fn name_of(source: &PackSource) -> Option<String> {
    let text = source.text(FILE).ok()?;
    let (root, _) = DeTable::parse_recoverable(&text);
    let name = root.get_ref().get("name")?.get_ref().as_str()?.trim().to_string();
    (!name.is_empty()).then_some(name)
}

/// Reads and checks the file; problems are appended.
pub(super) fn read(source: &PackSource, problems: &mut Vec<Problem>) -> RegionToml {
    let mut read = RegionToml::default();
    let text = match source.text(FILE) {
        Ok(text) => text,
        Err(problem) => {
            problems.push(*problem);
            return read;
        }
    };
    let (root, errors) = DeTable::parse_recoverable(&text);
    for error in &errors {
        let line = error.span().map(|s| line_at(&text, s.start));
        let message = error.message().lines().next().unwrap_or("it cannot be read").to_string();
        problems.push(Problem::error(FILE, message, "TOML: key = value, texts in double quotes").at_line(line));
    }
    // After a slip of the pen the rest may be read askew: what follows from it would only confuse.
    if !errors.is_empty() {
        return read;
    }
    let mut root = Table { text: &text, path: "", table: root.get_ref(), line: None, problems };
    root.only(&ROOT_KEYS);
    let name = root.text_at("name", true);
    read.title = root.text_at("title", true);
    read.title_ru = root.text_at("title_ru", false);
    read.statement = root.text_at("statement", false);
    read.crs = root.text_at("crs", true);
    if let Some(resolution) = root.number_at("resolution_m") {
        read.resolution_m = resolution;
        if !(1.0..=100_000.0).contains(&resolution) {
            root.say("resolution_m", resolution, "metres per cell, 1 to 100000, for example 250");
        }
    }
    if let Some(folder) = source.folder_name().filter(|f| !name.is_empty() && *f != name) {
        root.say(
            "name",
            format!("{} differs from the folder's name '{folder}'", shown(&name)),
            "the same name for both",
        );
        root.soften();
    }

    root.table_at("extent", |extent| {
        extent.only(&EXTENT_KEYS);
        let [west, south, east, north] = EXTENT_KEYS.map(|k| extent.number_at(k));
        if let (Some(w), Some(s), Some(e), Some(n)) = (west, south, east, north) {
            match LonLatBox::new(w, s, e, n) {
                Ok(found) => read.extent = Some(found),
                Err(crate::Error::Argument { found, remedy, .. }) => extent.say("", found, &remedy),
                Err(other) => extent.say("", other.to_string(), "west, south, east, north in degrees"),
            }
        }
    });

    root.table_at("layers", |layers| {
        layers.only(&LAYER_KEYS);
        read.polities = layers.files_at("polities", source);
        read.places = layers.files_at("places", source);
        read.peaks = layers.files_at("peaks", source);
        read.physical = layers.files_at("physical", source);
        for layer in BaseLayer::ALL {
            let mut files = layers.files_at(layer.key(), source);
            if files.len() > 1 {
                layers.say(layer.key(), format!("{} files", files.len()), "one file");
            }
            if let Some(file) = files.pop() {
                read.base_layers.insert(layer.key(), file);
            }
        }
        if !layers.has("polities") {
            layers.say("polities", "there is no layer of polities", "polities = [\"polities.geojson\"]");
            layers.soften();
        }
    });

    root.sources(&mut read.sources);
    read
}

/// One table of the file, with where it stands.
struct Table<'a> {
    text: &'a str,
    /// Its name, empty for the root.
    path: &'a str,
    table: &'a DeTable<'a>,
    /// Where it begins.
    line: Option<usize>,
    problems: &'a mut Vec<Problem>,
}

impl Table<'_> {
    fn has(&self, key: &str) -> bool {
        self.table.get(key).is_some()
    }

    /// A problem about `key`, at its line.
    fn say(&mut self, key: &str, found: impl ToString, expected: &str) {
        let line = self.table.get(key).map(|v| line_at(self.text, v.span().start)).or(self.line);
        let name = match (self.path, key) {
            ("", k) => k.to_string(),
            (p, "") => p.to_string(),
            (p, k) => format!("{p}.{k}"),
        };
        self.problems.push(Problem::error(FILE, found, expected).at_line(line).about(&name));
    }

    /// Makes the last problem a warning.
    fn soften(&mut self) {
        if let Some(last) = self.problems.pop() {
            self.problems.push(last.as_warning());
        }
    }

    /// Reports keys that are not `known`.
    fn only(&mut self, known: &[&str]) {
        let unknown: Vec<(String, usize)> = self
            .table
            .iter()
            .filter(|(k, _)| !known.contains(&k.get_ref().as_ref()))
            .map(|(k, _)| (k.get_ref().to_string(), line_at(self.text, k.span().start)))
            .collect();
        for (key, line) in unknown {
            let near = suggestion(&key, known.iter().copied());
            let expected = if near.is_empty() { format!("one of {}", known.join(", ")) } else { near };
            let path = if self.path.is_empty() { key.clone() } else { format!("{}.{key}", self.path) };
            self.problems.push(
                Problem::error(FILE, "the key is not known", expected).at_line(Some(line)).about(&shown_key(&path)),
            );
        }
    }

    fn missing(&mut self, key: &str, expected: &str) {
        self.say(key, "the key is missing", expected);
    }

    /// The text at `key`; empty, and said, when it is missing or of another type.
    fn text_at(&mut self, key: &str, is_required: bool) -> String {
        match self.table.get(key).map(|v| v.get_ref()) {
            None if is_required => self.missing(key, "a text in double quotes"),
            None => {}
            Some(DeValue::String(s)) if is_required && s.trim().is_empty() => self.say(key, "it is empty", "a text"),
            Some(DeValue::String(s)) => return s.trim().to_string(),
            Some(other) => self.say(key, described(other), "a text in double quotes"),
        }
        String::new()
    }

    /// How a source was used; the weakest where nothing is said.
    fn use_at(&mut self, key: &str) -> SourceUse {
        let text = self.text_at(key, false);
        SourceUse::ALL.into_iter().find(|u| u.as_str() == text).unwrap_or_else(|| {
            if !text.is_empty() {
                self.say(key, shown(&text), &SourceUse::ALL.map(SourceUse::as_str).join(", "));
            }
            SourceUse::default()
        })
    }

    /// The number at `key`; `None`, and said, when it is missing or of another type.
    fn number_at(&mut self, key: &str) -> Option<f64> {
        match self.table.get(key).map(|v| v.get_ref()) {
            None => self.missing(key, "a number"),
            Some(value) => match number(value).filter(|n| n.is_finite()) {
                Some(n) => return Some(n),
                None => self.say(key, described(value), "a number, without quotes"),
            },
        }
        None
    }

    /// Reads the table at `key`; said when it is missing.
    fn table_at(&mut self, key: &str, read: impl FnOnce(&mut Table)) {
        match self.table.get(key).map(|v| (v.get_ref(), line_at(self.text, v.span().start))) {
            None => self.missing(key, &format!("a table [{key}]")),
            Some((DeValue::Table(table), line)) => {
                read(&mut Table { text: self.text, path: key, table, line: Some(line), problems: self.problems });
            }
            Some((other, _)) => self.say(key, described(other), &format!("a table [{key}]")),
        }
    }

    /// The file names at `key`, one or an array; those that are not there are said and left out.
    fn files_at(&mut self, key: &str, source: &PackSource) -> Vec<String> {
        let names: Option<Vec<String>> = match self.table.get(key).map(|v| v.get_ref()) {
            None => return Vec::new(),
            Some(DeValue::String(s)) => Some(vec![s.to_string()]),
            Some(DeValue::Array(a)) => a.iter().map(|v| v.get_ref().as_str().map(str::to_string)).collect(),
            Some(_) => None,
        };
        let Some(names) = names else {
            let found = self.table.get(key).map_or(String::new(), |v| described(v.get_ref()));
            self.say(key, found, "file names in double quotes: [\"a.geojson\", \"b.geojson\"]");
            return Vec::new();
        };
        let mut files: Vec<String> = Vec::new();
        for name in names {
            let is_inside = std::path::Path::new(&name)
                .components()
                .all(|c| matches!(c, std::path::Component::Normal(_) | std::path::Component::CurDir));
            if name.is_empty() || !is_inside || name.contains(['\\', '\0']) {
                self.say(key, format!("{} is not a file of the pack", shown(&name)), "a name inside the pack's folder");
            } else if files.contains(&name) {
                self.say(key, format!("{} is listed twice", shown(&name)), "each file once");
            } else if !source.has(&name) {
                let present = source.file_names();
                let near = suggestion(&name, present.iter().map(String::as_str).filter(|f| *f != FILE));
                let expected = if near.is_empty() { "a file beside region.toml".to_string() } else { near };
                self.say(key, format!("there is no file {}", shown(&name)), &expected);
            } else {
                files.push(name);
            }
        }
        files
    }

    /// The array of tables `[[sources]]`.
    fn sources(&mut self, into: &mut Vec<Source>) {
        let key = "sources";
        let items = match self.table.get(key).map(|v| v.get_ref()) {
            None => return self.missing(key, "at least one [[sources]] with id, citation, licence"),
            Some(DeValue::Array(items)) => items,
            Some(other) => {
                let found = described(other);
                return self.say(key, found, "tables [[sources]]");
            }
        };
        for item in items.iter() {
            let line = Some(line_at(self.text, item.span().start));
            let DeValue::Table(table) = item.get_ref() else {
                let found = described(item.get_ref());
                self.say(key, found, "tables [[sources]]");
                continue;
            };
            let mut one = Table { text: self.text, path: key, table, line, problems: self.problems };
            one.only(&SOURCE_KEYS);
            let source = Source {
                id: one.text_at("id", true),
                citation: one.text_at("citation", true),
                licence: one.text_at("licence", true),
                usage: one.use_at("use"),
                note: one.text_at("note", false),
            };
            if source.id.is_empty() {
                continue;
            }
            if into.iter().any(|s| s.id == source.id) {
                one.say("id", format!("{} stands twice", shown(&source.id)), "each source once");
            } else {
                into.push(source);
            }
        }
    }
}

/// A key for print, bounded.
fn shown_key(key: &str) -> String {
    shown(key).trim_matches('\'').to_string()
}

/// The value as a number.
fn number(value: &DeValue) -> Option<f64> {
    match value {
        DeValue::Integer(i) => i64::from_str_radix(&i.as_str().replace('_', ""), i.radix()).ok().map(|n| n as f64),
        DeValue::Float(f) => f.as_str().replace('_', "").parse().ok(),
        _ => None,
    }
}

/// The kind of a value, and a short one itself.
fn described(value: &DeValue) -> String {
    match value {
        DeValue::String(s) => format!("the text {}", shown(s)),
        DeValue::Integer(i) => format!("the number {}", i.as_str()),
        DeValue::Float(f) => format!("the number {}", f.as_str()),
        DeValue::Boolean(b) => format!("{b}"),
        DeValue::Datetime(_) => "a date".to_string(),
        DeValue::Array(_) => "an array".to_string(),
        DeValue::Table(_) => "a table".to_string(),
    }
}

/// The line, from 1, of the byte at `offset`.
fn line_at(text: &str, offset: usize) -> usize {
    1 + text.as_bytes().iter().take(offset).filter(|b| **b == b'\n').count()
}
