//! Region packs: `region.toml` with its layers (GeoJSON; lands in TopoJSON with a ledger of who held them), read from the binary or from a folder of the user's own.
//! Everything in a pack is in longitude and latitude (WGS 84). Reading reports every problem at once.
//!
//! Packs come from two places: those inside the binary, and folders that hold one folder per pack (`--maps DIR`). A
//! user's pack hides a shipped one of the same name. Invariant: a [`RegionPack`] exists only where no error was found.

mod geojson;
mod lands;
mod layers;
mod ledger;
mod region_toml;
mod source;
pub(crate) mod table;

pub use crate::borders::{Problem, Severity};
pub use source::PackSource;

use crate::borders::problem::{shown, suggestion};
use crate::borders::reader::{claim_boxes, outside_extent, overlapping_years, pack_claims};
use crate::borders::{Claim, Selection, covered_spans, describe_spans, select};
use crate::error::{Error, Result};
use crate::grid::{LonLat, LonLatBox};
use crate::vector::Feature;
use crate::year::{Era, Span};
use geo::LineString;
use region_toml::RegionToml;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

/// A region pack, read and checked.
#[derive(Debug, Clone)]
pub struct RegionPack {
    /// What `--region` takes.
    pub name: String,
    /// English title.
    pub title: String,
    /// Russian title; empty when none.
    pub title_ru: String,
    /// What the outlines are, in a sentence for the map sheet; empty when none.
    pub statement: String,
    /// The region, degrees.
    pub extent: LonLatBox,
    /// Name of its working CRS, for example `EPSG:32638`.
    pub crs: String,
    /// Default resolution, metres.
    pub resolution_m: f64,
    /// Political claims of all years.
    pub claims: Vec<Claim>,
    /// Towns, fortresses, passes.
    pub places: Vec<Place>,
    /// Surveyed summits.
    pub peaks: Vec<Peak>,
    /// Names of seas, ranges and plains.
    pub physical: Vec<PhysicalName>,
    /// Works on the region, each with what was done with it.
    pub sources: Vec<Source>,
}

/// What was done with a work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SourceUse {
    /// The outlines are taken from it.
    Taken,
    /// The outlines were laid beside its maps or figures.
    Compared,
    /// It was read for the outlines.
    Read,
    /// It is named for those who want to know more; nothing was checked against it.
    #[default]
    FurtherReading,
}

impl SourceUse {
    /// All of them.
    pub const ALL: [SourceUse; 4] = [SourceUse::Taken, SourceUse::Compared, SourceUse::Read, SourceUse::FurtherReading];

    /// As `region.toml` and the manifest say it.
    pub fn as_str(self) -> &'static str {
        match self {
            SourceUse::Taken => "taken",
            SourceUse::Compared => "compared",
            SourceUse::Read => "read",
            SourceUse::FurtherReading => "further-reading",
        }
    }
}

/// A work that a pack names.
#[derive(Debug, Clone, PartialEq, serde::Deserialize, serde::Serialize)]
pub struct Source {
    /// Short key that features cite.
    pub id: String,
    /// Full citation.
    pub citation: String,
    /// Licence of what was taken.
    pub licence: String,
    /// What was done with it.
    #[serde(default, rename = "use")]
    pub usage: SourceUse,
    /// Remarks; empty when none.
    #[serde(default)]
    pub note: String,
}

/// A name in one language for a span of years.
#[derive(Debug, Clone, PartialEq)]
pub struct DatedName {
    /// The name.
    pub name: String,
    /// BCP 47 language tag.
    pub lang: String,
    /// First year of use (historian's year); `None` when open.
    pub from_year: Option<i32>,
    /// Last year of use, inclusive; `None` when open.
    pub to_year: Option<i32>,
}

/// A town, fortress, pass, monastery or port.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    /// Usual English historical name.
    pub name: String,
    /// `capital`, `town`, `fortress`, `pass`, `monastery`, `port`.
    pub kind: String,
    /// 1 (greatest) to 4.
    pub rank: u8,
    /// First year in which it stood (historian's year); `None` when open.
    pub from_year: Option<i32>,
    /// Last year in which it stood or mattered, inclusive; `None` when open.
    pub to_year: Option<i32>,
    /// Names by period and language.
    pub names: Vec<DatedName>,
    /// Where.
    pub at: LonLat,
}

impl Place {
    /// Whether it stood in `year` (historian's year).
    pub fn stands_in(&self, year: i32) -> bool {
        self.from_year.is_none_or(|y| y <= year) && self.to_year.is_none_or(|y| year <= y)
    }
}

/// A summit with its surveyed height.
#[derive(Debug, Clone, PartialEq)]
pub struct Peak {
    /// English name.
    pub name: String,
    /// Russian name; empty when unknown.
    pub name_ru: String,
    /// Surveyed height, metres.
    pub height_m: f64,
    /// 1 (label first) to 4.
    pub rank: u8,
    /// Where.
    pub at: LonLat,
}

/// The name of a sea, range, plain or the like, for lettering.
#[derive(Debug, Clone, PartialEq)]
pub struct PhysicalName {
    /// English name.
    pub name: String,
    /// Russian name; empty when unknown.
    pub name_ru: String,
    /// `sea`, `range`, `plain`, `lake`, `valley`, `plateau`, `peninsula`, `desert`.
    pub kind: String,
    /// 1 (greatest) to 4.
    pub rank: u8,
    /// The text runs along it, west to east; a single point centres it.
    pub line: LineString<f64>,
}

/// What a list of packs says about one.
#[derive(Debug, Clone, PartialEq)]
pub struct PackSummary {
    /// What `--region` takes.
    pub name: String,
    /// English title; empty when it cannot be read.
    pub title: String,
    /// The region; `None` when it cannot be read.
    pub extent: Option<LonLatBox>,
    /// The years in which any claim holds, merged.
    pub covered: Vec<Span>,
    /// Where it comes from: `built in`, or its folder.
    pub origin: String,
    /// How many errors keep it from being used; `histmap check` lists them.
    pub errors: usize,
}

/// A file of the pack that replaces what ships for every region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BaseLayer {
    /// Coarse elevation, a raster.
    Elevation,
    /// Seas, polygons.
    Ocean,
    /// Lakes, polygons.
    Lakes,
    /// Rivers, lines.
    Rivers,
}

impl BaseLayer {
    /// All of them.
    pub const ALL: [BaseLayer; 4] = [BaseLayer::Elevation, BaseLayer::Ocean, BaseLayer::Lakes, BaseLayer::Rivers];

    /// Its key under `[layers]`.
    pub fn key(self) -> &'static str {
        match self {
            BaseLayer::Elevation => "elevation",
            BaseLayer::Ocean => "ocean",
            BaseLayer::Lakes => "lakes",
            BaseLayer::Rivers => "rivers",
        }
    }
}

/// All packs that can be used: those in the folders `extra` (each holds one folder per pack), then the shipped ones that
/// no pack there hides; in order of name. Packs with errors are listed with their number.
///
/// # Errors
/// [`Error::Read`] when a folder of `extra` cannot be listed.
pub fn list_packs(extra: &[PathBuf]) -> Result<Vec<PackSummary>> {
    let sources = all_sources(extra)?;
    Ok(sources
        .values()
        .map(|source| {
            let examined = examine(source);
            PackSummary {
                name: source.name().to_string(),
                title: examined.toml.title,
                extent: examined.toml.extent,
                covered: covered_spans(&examined.claims),
                origin: source.origin(),
                errors: examined.problems.iter().filter(|p| p.is_error()).count(),
            }
        })
        .collect())
}

/// The files of the pack `name`, from the folders `extra` or the shipped ones.
///
/// # Errors
/// [`Error::UnknownRegion`] with those that exist and the nearest; [`Error::Read`] when a folder cannot be listed.
pub fn open_pack(name: &str, extra: &[PathBuf]) -> Result<PackSource> {
    let mut sources = all_sources(extra)?;
    if let Some(source) = sources.remove(name) {
        return Ok(source);
    }
    let known: Vec<&str> = sources.keys().map(String::as_str).collect();
    let near = suggestion(name, known.iter().copied());
    Err(Error::UnknownRegion {
        name: name.to_string(),
        known: if known.is_empty() { "none".to_string() } else { known.join(", ") },
        suggestion: if near.is_empty() { near } else { format!("; {near}") },
    })
}

/// The pack `name`, read and checked.
///
/// # Errors
/// Those of [`open_pack`] and [`read_pack`].
pub fn find_pack(name: &str, extra: &[PathBuf]) -> Result<RegionPack> {
    read_pack(&open_pack(name, extra)?)
}

/// The pack in the folder `path`, read and checked.
///
/// # Errors
/// [`Error::Read`] when there is no such folder, and those of [`read_pack`].
pub fn read_pack_dir(path: &Path) -> Result<RegionPack> {
    read_pack(&PackSource::folder(path)?)
}

/// The pack in `source`, read and checked.
///
/// # Errors
/// [`Error::Pack`] that lists all errors.
pub fn read_pack(source: &PackSource) -> Result<RegionPack> {
    let examined = examine(source);
    let errors: Vec<String> = examined.problems.iter().filter(|p| p.is_error()).map(|p| format!("  {p}")).collect();
    match examined.toml.extent {
        Some(extent) if errors.is_empty() => Ok(RegionPack {
            name: source.name().to_string(),
            title: examined.toml.title,
            title_ru: examined.toml.title_ru,
            statement: examined.toml.statement,
            extent,
            crs: examined.toml.crs,
            resolution_m: examined.toml.resolution_m,
            claims: examined.claims,
            places: examined.places,
            peaks: examined.peaks,
            physical: examined.physical,
            sources: examined.toml.sources,
        }),
        _ => Err(Error::Pack { pack: source.origin_of_pack(), count: errors.len(), list: errors.join("\n") }),
    }
}

/// Everything that is wrong with the pack in `source`, errors and warnings, by file.
pub fn check_pack(source: &PackSource) -> Vec<Problem> {
    examine(source).problems
}

/// The name of the pack's file that replaces `layer`, for [`PackSource::read`]; `None` where the shipped one is used.
pub fn base_layer_file(source: &PackSource, layer: BaseLayer) -> Option<String> {
    let mut problems = Vec::new();
    region_toml::read(source, &mut problems).base_layers.remove(layer.key())
}

impl RegionPack {
    /// The claims of `era`, one per polity; see [`select()`].
    ///
    /// # Errors
    /// [`Error::NoClaims`] with the covered years when none holds.
    pub fn select(&self, era: Era) -> Result<Selection<'_>> {
        let selection = select(&self.claims, era);
        if selection.is_empty() {
            return Err(Error::NoClaims {
                era: era.to_string(),
                region: self.name.clone(),
                covered: describe_spans(&covered_spans(&self.claims)),
            });
        }
        Ok(selection)
    }
}

/// Packs by name; those of `extra` hide shipped ones, earlier folders later ones.
fn all_sources(extra: &[PathBuf]) -> Result<BTreeMap<String, PackSource>> {
    let mut all = BTreeMap::new();
    for dir in extra {
        for source in PackSource::folders_in(dir)? {
            all.entry(source.name().to_string()).or_insert(source);
        }
    }
    for source in PackSource::shipped() {
        all.entry(source.name().to_string()).or_insert(source);
    }
    Ok(all)
}

/// What could be read of a pack, and all problems.
struct Examined {
    toml: RegionToml,
    claims: Vec<Claim>,
    places: Vec<Place>,
    peaks: Vec<Peak>,
    physical: Vec<PhysicalName>,
    problems: Vec<Problem>,
}

fn examine(source: &PackSource) -> Examined {
    let mut problems = Vec::new();
    let toml = region_toml::read(source, &mut problems);
    let mut seen = Examined { toml, claims: vec![], places: vec![], peaks: vec![], physical: vec![], problems: vec![] };

    let mut found: Vec<Found> = Vec::new();
    for file in &seen.toml.polities {
        let features = geojson::read(source, file, &mut problems);
        check_placement(&features, file, &seen.toml, &mut problems);
        let (claims, more) = pack_claims(&features, file);
        problems.extend(more);
        let at = |number| Standing::Feature(number);
        found.extend(claims.into_iter().map(|(number, claim)| Found { file: file.clone(), at: at(number), claim }));
    }
    if let Some(file) = &seen.toml.lands {
        let lands = lands::read(source, file, &mut problems);
        let known: Vec<&str> = seen.toml.sources.iter().map(|s| s.id.as_str()).collect();
        let claims = ledger::read(source, &seen.toml.claims, &lands, &known, &mut problems);
        if let Some(extent) = &seen.toml.extent {
            let all: Vec<Claim> = claims.iter().map(|c| c.claim.clone()).collect();
            problems.extend(outside_extent(&claim_boxes(&all), extent, file));
        }
        let at = |line: Option<usize>| Standing::Line(line);
        found.extend(claims.into_iter().map(|c| Found { file: c.file, at: at(c.line), claim: c.claim }));
    }
    check_claims(&found, &mut problems);
    seen.claims = found.into_iter().map(|f| f.claim).collect();

    for file in &seen.toml.places {
        let features = geojson::read(source, file, &mut problems);
        check_placement(&features, file, &seen.toml, &mut problems);
        seen.places.extend(layers::places(&features, file, &mut problems));
    }
    for file in &seen.toml.peaks {
        let features = geojson::read(source, file, &mut problems);
        check_placement(&features, file, &seen.toml, &mut problems);
        seen.peaks.extend(layers::peaks(&features, file, &mut problems));
    }
    for file in &seen.toml.physical {
        let features = geojson::read(source, file, &mut problems);
        check_placement(&features, file, &seen.toml, &mut problems);
        seen.physical.extend(layers::physical_names(&features, file, &mut problems));
    }
    seen.problems = problems;
    seen
}

/// A claim and where it stands.
struct Found {
    file: String,
    at: Standing,
    claim: Claim,
}

/// Where in its file a claim stands.
#[derive(Clone, Copy)]
enum Standing {
    /// The number of its feature.
    Feature(usize),
    /// The line where its polity, or the claim, is written.
    Line(Option<usize>),
}

impl Found {
    fn problem(&self, key: &str, what: String, expected: impl ToString) -> Problem {
        let problem = Problem::error(&self.file, what, expected).about(key);
        match self.at {
            Standing::Feature(number) => problem.at_feature(number, &self.claim.id),
            Standing::Line(line) => problem.at_line(line),
        }
    }

    /// `polities.geojson, feature 3`.
    fn place(&self) -> String {
        match self.at {
            Standing::Feature(number) => format!("{}, feature {number}", self.file),
            Standing::Line(Some(line)) => format!("{}, line {line}", self.file),
            Standing::Line(None) => self.file.clone(),
        }
    }
}

/// What only the whole pack shows: parents that exist, one claim per polity and year.
fn check_claims(found: &[Found], problems: &mut Vec<Problem>) {
    let ids: BTreeSet<&str> = found.iter().map(|f| f.claim.id.as_str()).collect();
    let mut said: BTreeSet<(&str, &str)> = BTreeSet::new();
    for f in found {
        let (claim, parent) = (&f.claim, f.claim.parent.as_deref());
        if let Some(parent) = parent.filter(|p| !ids.contains(p)) {
            // A polity of a ledger has many claims: once is enough.
            if matches!(f.at, Standing::Feature(_)) || said.insert((&claim.id, parent)) {
                let what = format!("no claim has the id {}", shown(parent));
                problems.push(f.problem("parent", what, known_or_near(parent, ids.iter().copied(), "the layer")));
            }
        } else if parent == Some(claim.id.as_str()) {
            let what = "it is its own parent".to_string();
            problems.push(f.problem("parent", what, "the polity above it, or null"));
        }
    }
    let place: HashMap<*const Claim, &Found> = found.iter().map(|f| (std::ptr::from_ref(&f.claim), f)).collect();
    for (a, b) in overlapping_years(found.iter().map(|f| &f.claim)) {
        let (a_found, b_found) = (place[&std::ptr::from_ref(a)], place[&std::ptr::from_ref(b)]);
        let what = format!("{} overlaps {} of {}", b.span, a.span, a_found.place());
        let expected = "at most one claim per id in each year; let the earlier end before, or join the two shapes";
        problems.push(b_found.problem("from_year", what, expected));
    }
}

/// "did you mean ...", or where such ids stand.
fn known_or_near<'a>(id: &str, known: impl IntoIterator<Item = &'a str>, holder: &str) -> String {
    let near = suggestion(id, known);
    if near.is_empty() { format!("an id of {holder}") } else { near }
}

/// Features outside the region, or with exchanged axes; and sources that do not exist.
fn check_placement(features: &[Feature], file: &str, toml: &RegionToml, problems: &mut Vec<Problem>) {
    use geo::BoundingRect;
    let id = |f: &Feature| f.text("id").or_else(|| f.text("name")).unwrap_or_default();
    if let Some(extent) = &toml.extent {
        let boxes: Vec<_> =
            (1..).zip(features).filter_map(|(n, f)| Some((n, id(f), f.geometry.as_ref()?.bounding_rect()?))).collect();
        problems.extend(outside_extent(&boxes, extent, file));
    }
    let known: Vec<&str> = toml.sources.iter().map(|s| s.id.as_str()).collect();
    for (number, feature) in (1..).zip(features) {
        let cited = feature.properties.get("source").and_then(|s| s.as_array());
        for source in cited.into_iter().flatten().filter_map(|s| s.as_str()).filter(|s| !known.contains(s)) {
            let expected = known_or_near(source, known.iter().copied(), "[[sources]]");
            let what = format!("unknown source {}", shown(source));
            problems.push(Problem::error(file, what, expected).at_feature(number, &id(feature)).about("source"));
        }
    }
}

/// Problems of claims added with `--borders`, as far as a pack's extent shows them: see [`outside_extent`].
pub fn check_added_claims(claims: &[Claim], pack: &RegionPack, file: &str) -> Vec<Problem> {
    outside_extent(&claim_boxes(claims), &pack.extent, file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TOML: &str = r#"
name = "test"
title = "Test"
crs = "EPSG:32638"
resolution_m = 250

[extent]
west = 40
south = 38.0
east = 50.0
north = 46.0

[layers]
polities = ["polities.geojson"]
places = "places.geojson"
peaks = ["peaks.geojson"]
physical = ["physical.geojson"]

[[sources]]
id = "atlas"
citation = "An Atlas"
licence = "CC0-1.0"
"#;

    const POLITIES: &str = r##"{"type": "FeatureCollection", "features": [
{"type": "Feature", "properties": {"id": "a", "name": "A", "name_ru": "А", "from_year": 1196, "to_year": "1203 CE",
  "kind": "polity", "parent": null, "certainty": "approximate", "source": ["atlas"], "colour": "#cc7f78"},
 "geometry": {"type": "Polygon", "coordinates": [[[44, 41], [45, 41], [45, 42], [44, 42], [44, 41]]]}},
{"type": "Feature", "properties": {"id": "a", "name": "A", "from_year": 1204.0, "to_year": "1230",
  "kind": "people", "certainty": "conjectural", "source": "atlas"},
 "geometry": {"type": "MultiPolygon", "coordinates": [[[[44, 41, 5], [45, 41, 5], [45, 42, 5], [44, 41, 5]]]]}}
]}"##;

    const PLACES: &str = r#"{"type": "FeatureCollection", "features": [
{"type": "Feature", "properties": {"name": "Tiflis", "kind": "capital", "rank": 1,
  "names": [{"name": "Tbilisi", "lang": "en", "from_year": 1936, "to_year": null}], "source": ["atlas"]},
 "geometry": {"type": "Point", "coordinates": [44.8, 41.7]}}]}"#;

    const PEAKS: &str = r#"{"type": "FeatureCollection", "features": [
{"type": "Feature", "properties": {"name": "Elbrus", "name_ru": "Эльбрус", "height_m": 5642, "prominence_rank": 1},
 "geometry": {"type": "Point", "coordinates": [42.44, 43.355]}}]}"#;

    const PHYSICAL: &str = r#"{"type": "FeatureCollection", "features": [
{"type": "Feature", "properties": {"name": "Caspian Sea", "kind": "sea", "rank": 1},
 "geometry": {"type": "LineString", "coordinates": [[48.2, 43.2], [49.6, 41.9]]}}]}"#;

    fn pack_of(toml: &str, polities: &str, places: &str, peaks: &str, physical: &str) -> PackSource {
        PackSource::memory([
            ("region.toml", toml.as_bytes().to_vec()),
            ("polities.geojson", polities.as_bytes().to_vec()),
            ("places.geojson", places.as_bytes().to_vec()),
            ("peaks.geojson", peaks.as_bytes().to_vec()),
            ("physical.geojson", physical.as_bytes().to_vec()),
        ])
    }

    fn with_toml(change: impl Fn(&str) -> String) -> PackSource {
        pack_of(&change(TOML), POLITIES, PLACES, PEAKS, PHYSICAL)
    }

    fn with_polities(change: impl Fn(&str) -> String) -> PackSource {
        pack_of(TOML, &change(POLITIES), PLACES, PEAKS, PHYSICAL)
    }

    fn said(source: &PackSource) -> String {
        check_pack(source).iter().map(|p| format!("{p}\n")).collect()
    }

    /// Asserts that the pack has just these problems, in this order, each given by a part of its line.
    #[track_caller]
    fn assert_said(source: &PackSource, expected: &[&str]) {
        let said = said(source);
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines.len(), expected.len(), "{said}");
        for (line, part) in lines.iter().zip(expected) {
            assert!(line.contains(part), "{part}\nis not in\n{line}");
        }
    }

    #[test]
    fn a_sound_pack_is_read() {
        let pack = read_pack(&with_toml(str::to_string)).unwrap();
        assert_eq!((pack.name.as_str(), pack.resolution_m, pack.extent.west), ("test", 250.0, 40.0));
        assert_eq!(pack.claims.len(), 2);
        assert_eq!(pack.claims[0].span, "1196/1203".parse().unwrap());
        assert_eq!(pack.claims[0].colour, Some([0xcc, 0x7f, 0x78]));
        assert_eq!(describe_spans(&covered_spans(&pack.claims)), "1196–1230 CE");
        assert_eq!(pack.places[0].names[0].from_year, Some(1936));
        assert_eq!((pack.peaks[0].height_m, pack.physical[0].line.0.len()), (5642.0, 2));
        assert_eq!(pack.select("1200".parse().unwrap()).unwrap().claims.len(), 1);
        let e = pack.select("1500".parse().unwrap()).unwrap_err().to_string();
        assert!(e.contains("1500 CE") && e.contains("it covers 1196–1230 CE"), "{e}");
    }

    #[test]
    fn every_problem_of_the_toml_is_told_at_once_with_its_line() {
        let source = with_toml(|t| {
            t.replace("title = \"Test\"", "titel = 5")
                .replace("= 250", "= \"fine\"")
                .replace("south = 38.0", "south = 48.0")
                .replace("\"peaks.geojson\"", "\"peak.geojson\", \"../x\"")
                .replace("licence = \"CC0-1.0\"", "license = \"CC0-1.0\"")
        });
        assert_said(
            &source,
            &[
                "region.toml, line 3, titel: the key is not known; did you mean 'title'?",
                "region.toml, title: the key is missing",
                "region.toml, line 5, resolution_m: the text 'fine'; a number",
                "region.toml, line 7, extent: 40,48,50,46; it is upside down",
                "region.toml, line 16, layers.peaks: there is no file 'peak.geojson'; did you mean 'peaks.geojson'?",
                "region.toml, line 16, layers.peaks: '../x' is not a file of the pack",
                "region.toml, line 22, sources.license: the key is not known; did you mean 'licence'?",
                "region.toml, line 19, sources.licence: the key is missing",
            ],
        );
        let e = read_pack(&source).unwrap_err().to_string();
        assert!(e.contains("region pack 'test' (memory): 8 problems"), "{e}");
    }

    #[test]
    fn syntax_errors_have_a_line() {
        assert!(said(&with_toml(|t| t.replace("[extent]", "[extent"))).contains("region.toml, line 7: "));
        let cut = with_polities(|p| p[..p.len() / 2].to_string());
        assert!(said(&cut).contains("polities.geojson, line 4: it is no JSON: EOF"), "{}", said(&cut));
        let latin = PackSource::memory([("region.toml", b"name = \"a\"\ntitle = \"\xe9\"".to_vec())]);
        assert_said(&latin, &["region.toml, line 2: a character that is not UTF-8"]);
        assert_said(&PackSource::memory([]), &["region.toml: there is no such file"]);
    }

    #[test]
    fn claims_are_checked_against_the_pack_and_each_other() {
        let source = with_polities(|p| {
            p.replacen("[\"atlas\"]", "[\"atlas\", \"atlsa\"]", 1)
                .replacen("\"parent\": null", "\"parent\": \"b\"", 1)
                .replacen("1204.0", "1203", 1)
        });
        assert_said(
            &source,
            &[
                "polities.geojson, feature 1 (a), source: unknown source 'atlsa'; did you mean 'atlas'?",
                "polities.geojson, feature 1 (a), parent: no claim has the id 'b'",
                "feature 2 (a), from_year: 1203–1230 CE overlaps 1196–1203 CE of polities.geojson, feature 1",
            ],
        );
        assert_said(&with_polities(|p| p.replacen("1196", "0", 1)), &["feature 1 (a), from_year: '0'"]);
        assert_said(&with_polities(|p| p.replacen("1196", "1300", 1)), &["1300 CE comes after to_year 1203 CE"]);
    }

    #[test]
    fn broken_polygons_are_told_apart() {
        let ring = "[[44, 41], [45, 41], [45, 42], [44, 42], [44, 41]]";
        for (other, told) in [
            ("[[44, 41], [45, 42], [45, 41], [44, 42], [44, 41]]", "near 44.5000 E, 41.5000 N"),
            ("[[44, 41], [45, 41], [45, 42], [44, 42]]", "begins at 44, 41 and ends at 44, 42"),
            ("[[44, 41], [45, 41], [44, 41]]", "a ring of 3 position(s)"),
            ("[[44, 41], [45, 41], [45, 41], [44, 41]]", "2 different corner(s)"),
            ("[[44, 41], [45, 41], [45, \"x\"], [44, 42], [44, 41]]", "the position '[45,\"x\"]'"),
            ("[[44, 41], [45, 41], [45, 142], [44, 42], [44, 41]]", "a position at 45, 142"),
            ("7", "coordinates '7'"),
            ("[[44, 41], [45, 41], [46, 41], [44, 41]]", "crosses or touches itself"),
            (
                "[[44, 41], [45, 41], [45, 42], [44, 42], [44, 41]], [[48, 41], [49, 41], [49, 42], [48, 41]]",
                "a hole outside",
            ),
        ] {
            let said = said(&with_polities(|p| p.replacen(ring, other, 1)));
            assert!(said.contains("feature 1 (a), geometry: ") && said.contains(told), "{told}\n{said}");
            assert_eq!(said.lines().count(), 1, "{said}");
        }
    }

    #[test]
    fn layers_are_checked_too() {
        let source = pack_of(
            TOML,
            POLITIES,
            &PLACES.replace("capital", "captal").replace("\"rank\": 1", "\"rank\": 5").replace("1936", "0"),
            &PEAKS.replace("5642", "18510").replace("prominence_rank", "rank"),
            &PHYSICAL.replace("Caspian Sea", " "),
        );
        assert_said(
            &source,
            &[
                "places.geojson, feature 1 (Tiflis), kind: '\"captal\"'; one of capital, town",
                "places.geojson, feature 1 (Tiflis), rank: '5'; 1 (greatest)",
                "places.geojson, feature 1 (Tiflis), names[1].from_year: '0'",
                "peaks.geojson, feature 1 (Elbrus), prominence_rank: the key is missing",
                "peaks.geojson, feature 1 (Elbrus), height_m: '18510'; a height in metres",
                "physical.geojson, feature 1, name: it is empty",
            ],
        );
    }

    #[test]
    fn what_lies_outside_is_a_warning_and_exchanged_axes_an_error() {
        let far = pack_of(TOML, POLITIES, &PLACES.replace("44.8, 41.7", "10.5, 50.0"), PEAKS, PHYSICAL);
        assert_said(&far, &["warning: places.geojson, feature 1 (Tiflis): it lies outside the region"]);
        assert!(read_pack(&far).is_ok());
        let narrow = TOML.replace("west = 40", "west = 43");
        let swapped = pack_of(
            &narrow,
            POLITIES,
            &PLACES.replace("44.8, 41.7", "41.7, 44.8"),
            &PEAKS.replace("42.44", "43.44"),
            PHYSICAL,
        );
        assert_said(&swapped, &["places.geojson: 1 of its 1 features lie outside the region, and none when"]);
    }

    #[test]
    fn a_users_pack_hides_a_shipped_one_and_unknown_names_get_a_suggestion() {
        let maps = tempfile::tempdir().unwrap();
        let extra = [maps.path().to_path_buf()];
        for name in ["alpes", "jura"] {
            let dir = maps.path().join(name);
            std::fs::create_dir(&dir).unwrap();
            let toml = TOML.replace("name = \"test\"", &format!("name = \"{name}\""));
            std::fs::write(dir.join("region.toml"), toml).unwrap();
            for (file, text) in [("polities", POLITIES), ("places", PLACES), ("peaks", PEAKS), ("physical", PHYSICAL)] {
                std::fs::write(dir.join(format!("{file}.geojson")), text).unwrap();
            }
        }
        std::fs::create_dir(maps.path().join("no-pack")).unwrap();
        assert_eq!(find_pack("jura", &extra).unwrap().name, "jura");
        assert_eq!(read_pack_dir(&maps.path().join("alpes")).unwrap().name, "alpes");
        let e = open_pack("alps", &extra).unwrap_err();
        let Error::UnknownRegion { known, suggestion, .. } = e else { panic!("{e}") };
        assert!(known.contains("alpes") && known.contains("jura") && suggestion == "; did you mean 'alpes'?");
        let listed = list_packs(&extra).unwrap();
        let alpes = listed.iter().find(|p| p.name == "alpes").unwrap();
        assert_eq!((alpes.title.as_str(), alpes.errors), ("Test", 0));
        assert_eq!(describe_spans(&alpes.covered), "1196–1230 CE");
        assert!(list_packs(&[maps.path().join("none")]).is_err());
        assert!(read_pack_dir(&maps.path().join("none")).is_err());

        // The same name as a shipped pack: the user's comes first.
        for shipped in PackSource::shipped() {
            let toml = TOML.replace("name = \"test\"", &format!("name = \"{}\"", shipped.name()));
            std::fs::write(maps.path().join("jura/region.toml"), toml).unwrap();
            assert_eq!(find_pack(shipped.name(), &extra).unwrap().title, "Test");
        }
    }

    #[test]
    fn a_pack_may_replace_base_layers() {
        let source = with_toml(|t| t.replace("[layers]", "[layers]\nocean = \"peaks.geojson\""));
        assert_eq!(base_layer_file(&source, BaseLayer::Ocean).as_deref(), Some("peaks.geojson"));
        assert_eq!(base_layer_file(&source, BaseLayer::Rivers), None);
    }

    #[test]
    fn shipped_packs_have_no_problems() {
        for source in PackSource::shipped() {
            assert_eq!(said(&source), "", "{}", source.name());
        }
    }

    /// Deep nesting must not exhaust the stack.
    #[test]
    fn deep_nesting_is_refused() {
        let deep = "[".repeat(200_000);
        assert!(said(&with_polities(|_| deep.clone())).contains("it is no JSON"));
        assert!(!said(&with_toml(|t| format!("{t}\nx = {deep}"))).is_empty());
        let collection =
            format!("{}{}", "{\"type\":\"GeometryCollection\",\"geometries\":[".repeat(50), "]}".repeat(50));
        let source = with_polities(|p| {
            p.replacen("{\"type\": \"Polygon\"", &format!("{collection},\"x\":{{\"type\": \"Polygon\""), 1)
        });
        assert!(!said(&source).is_empty());
    }

    /// A text with some bytes replaced, removed or doubled.
    fn mutated(text: &str, edits: &[(usize, u8, u8)]) -> Vec<u8> {
        let mut bytes = text.as_bytes().to_vec();
        for &(at, what, byte) in edits {
            let at = at % bytes.len().max(1);
            match what % 4 {
                0 => bytes[at] = byte,
                1 => drop(bytes.drain(at..(at + usize::from(byte) % 9).min(bytes.len()))),
                2 => bytes.insert(at, b"0\"[]{},:-eEn.#\n="[usize::from(byte) % 16]),
                _ => {
                    let end = (at + usize::from(byte)).min(bytes.len());
                    let copy = bytes[at..end].to_vec();
                    bytes.splice(at..at, copy);
                }
            }
        }
        bytes
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn no_bytes_make_it_panic(
            edits in proptest::collection::vec((any::<usize>(), any::<u8>(), any::<u8>()), 1..6),
            which in 0usize..5,
        ) {
            let texts = [TOML, POLITIES, PLACES, PEAKS, PHYSICAL];
            let names = ["region.toml", "polities.geojson", "places.geojson", "peaks.geojson", "physical.geojson"];
            let files = (0..5).map(|k| {
                (names[k], if k == which { mutated(texts[k], &edits) } else { texts[k].as_bytes().to_vec() })
            });
            let source = PackSource::memory(files);
            let problems = check_pack(&source);
            // Either it is read, or it says why not.
            prop_assert_eq!(read_pack(&source).is_ok(), problems.iter().all(|p| !p.is_error()));
            if let Ok(pack) = read_pack(&source) {
                // What is accepted can be drawn.
                let claims: Vec<&Claim> = pack.select("1200".parse().unwrap()).map(|s| s.claims).unwrap_or_default();
                let plane = |p: LonLat| Some(crate::grid::Xy { x: p.lon * 1e5, y: p.lat * 1e5 });
                let projected = crate::borders::project_claims(&claims, &plane).unwrap();
                crate::borders::political_regions(&projected, &Default::default()).unwrap();
            }
        }

        #[test]
        fn any_text_is_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let source = PackSource::memory([("region.toml", bytes.clone()), ("polities.geojson", bytes)]);
            prop_assert!(read_pack(&source).is_err());
        }
    }
}
