//! `region.toml`: every key with its type, and all that is wrong with it at once, by line.

use super::table::{Table, described, line_at};
use super::{BaseLayer, PackSource, Source, SourceUse};
use crate::borders::problem::{Problem, shown, suggestion};
use crate::grid::LonLatBox;
use std::collections::BTreeMap;
use toml::de::{DeTable, DeValue};

const FILE: &str = "region.toml";
const ROOT_KEYS: [&str; 9] =
    ["name", "title", "title_ru", "statement", "crs", "resolution_m", "extent", "layers", "sources"];
const EXTENT_KEYS: [&str; 4] = ["west", "south", "east", "north"];
const LAYER_KEYS: [&str; 10] =
    ["polities", "lands", "claims", "places", "peaks", "physical", "elevation", "ocean", "lakes", "rivers"];
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
    pub lands: Option<String>,
    pub claims: Vec<String>,
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
    let mut root = Table { file: FILE, text: &text, path: "", table: root.get_ref(), line: None, problems };
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
        read.claims = layers.files_at("claims", source);
        read.lands = layers.one_file_at("lands", source);
        for (key, other, is_alone) in [
            ("lands", "claims", read.lands.is_some() && read.claims.is_empty()),
            ("claims", "lands", read.lands.is_none() && !read.claims.is_empty()),
        ] {
            if is_alone && !layers.has(other) {
                layers.say(key, format!("it stands without '{other}'"), "both: the lands, and who holds them when");
            }
        }
        read.places = layers.files_at("places", source);
        read.peaks = layers.files_at("peaks", source);
        read.physical = layers.files_at("physical", source);
        for layer in BaseLayer::ALL {
            if let Some(file) = layers.one_file_at(layer.key(), source) {
                read.base_layers.insert(layer.key(), file);
            }
        }
        if !layers.has("polities") && !layers.has("claims") {
            let expected = "polities = [\"polities.geojson\"], or lands and claims";
            layers.say("polities", "there is no layer of polities", expected);
            layers.soften();
        }
    });

    root.sources(&mut read.sources);
    read
}

impl Table<'_> {
    /// The one file name at `key`.
    fn one_file_at(&mut self, key: &str, source: &PackSource) -> Option<String> {
        let mut files = self.files_at(key, source);
        if files.len() > 1 {
            self.say(key, format!("{} files", files.len()), "one file");
        }
        files.pop()
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

    /// How a source was used; the weakest where nothing is said.
    fn use_at(&mut self, key: &str) -> SourceUse {
        let word = self.word_at(key, &SourceUse::ALL.map(SourceUse::as_str)).unwrap_or_default();
        SourceUse::ALL.into_iter().find(|u| u.as_str() == word).unwrap_or_default()
    }

    /// The array of tables `[[sources]]`.
    fn sources(&mut self, into: &mut Vec<Source>) {
        let key = "sources";
        if !self.has(key) {
            self.missing(key, "at least one [[sources]] with id, citation, licence");
        }
        self.each_table(key, |one| {
            one.only(&SOURCE_KEYS);
            let source = Source {
                id: one.text_at("id", true),
                citation: one.text_at("citation", true),
                licence: one.text_at("licence", true),
                usage: one.use_at("use"),
                note: one.text_at("note", false),
            };
            if source.id.is_empty() {
                return;
            }
            if into.iter().any(|s| s.id == source.id) {
                one.say("id", format!("{} stands twice", shown(&source.id)), "each source once");
            } else {
                into.push(source);
            }
        });
    }
}
