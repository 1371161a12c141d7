//! Region packs: `region.toml` with GeoJSON layers, read from the binary or from a folder of the user's own.
//! Everything in a pack is in longitude and latitude (WGS 84). Reading reports every problem at once.
//!
//! Packs come from two places: those inside the binary, and folders that hold one folder per pack (`--maps DIR`). A
//! user's pack hides a shipped one of the same name. Invariant: a [`RegionPack`] exists only where no error was found.

mod geojson;
mod layers;
mod region_toml;
mod source;

pub use crate::borders::{Problem, Severity};
pub use source::PackSource;

use crate::borders::adapter::{claim_boxes, outside_extent, overlapping_years, pack_claims};
use crate::borders::problem::{shown, suggestion};
use crate::borders::{Claim, Selection, covered_spans, describe_spans, select};
use crate::error::{Error, Result};
use crate::grid::{LonLat, LonLatBox};
use crate::vector::Feature;
use crate::year::{Era, Span};
use geo::LineString;
use region_toml::RegionToml;
use std::collections::{BTreeMap, HashMap};
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
    /// What the claims and places rest on.
    pub sources: Vec<Source>,
}

/// A work that claims rest on.
#[derive(Debug, Clone, PartialEq, serde::Deserialize, serde::Serialize)]
pub struct Source {
    /// Short key that features cite.
    pub id: String,
    /// Full citation.
    pub citation: String,
    /// Licence of what was taken.
    pub licence: String,
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
    /// Names by period and language.
    pub names: Vec<DatedName>,
    /// Where.
    pub at: LonLat,
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
    // A title or another case is as good as the name; further off, only a suggestion.
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

    let mut found: Vec<(String, usize, Claim)> = Vec::new();
    for file in &seen.toml.polities {
        let features = geojson::read(source, file, &mut problems);
        check_placement(&features, file, &seen.toml, &mut problems);
        let (claims, more) = pack_claims(&features, file);
        problems.extend(more);
        found.extend(claims.into_iter().map(|(number, claim)| (file.clone(), number, claim)));
    }
    check_claims(&found, &seen.toml, &mut problems);
    seen.claims = found.into_iter().map(|(_, _, claim)| claim).collect();

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

/// What only the whole pack shows: sources and parents that exist, one claim per polity and year.
fn check_claims(found: &[(String, usize, Claim)], toml: &RegionToml, problems: &mut Vec<Problem>) {
    let ids: Vec<&str> = found.iter().map(|(_, _, c)| c.id.as_str()).collect();
    let sources: Vec<&str> = toml.sources.iter().map(|s| s.id.as_str()).collect();
    for (file, number, claim) in found {
        let mut say = |key: &str, what: String, expected: String| {
            problems.push(Problem::error(file, what, expected).at_feature(*number, &claim.id).about(key));
        };
        for source in claim.sources.iter().filter(|s| !sources.contains(&s.as_str())) {
            say("source", format!("unknown source {}", shown(source)), known_or_near(source, &sources, "[[sources]]"));
        }
        if let Some(parent) = claim.parent.as_deref().filter(|p| !ids.contains(p)) {
            say("parent", format!("no claim has the id {}", shown(parent)), known_or_near(parent, &ids, "the layer"));
        } else if claim.parent.as_deref() == Some(claim.id.as_str()) {
            say("parent", "it is its own parent".to_string(), "the polity above it, or null".to_string());
        }
    }
    let place: HashMap<*const Claim, (&String, usize)> =
        found.iter().map(|(file, number, claim)| (std::ptr::from_ref(claim), (file, *number))).collect();
    for (a, b) in overlapping_years(found.iter().map(|(_, _, c)| c)) {
        let ((a_file, a_number), (b_file, b_number)) = (place[&std::ptr::from_ref(a)], place[&std::ptr::from_ref(b)]);
        let what = format!("{} overlaps {} of {a_file}, feature {a_number}", b.span, a.span);
        let expected = "at most one claim per id in each year; let the earlier end before, or join the two shapes";
        problems.push(Problem::error(b_file, what, expected).at_feature(b_number, &b.id).about("from_year"));
    }
}

/// "did you mean ...", or where such ids stand.
fn known_or_near(id: &str, known: &[&str], holder: &str) -> String {
    let near = suggestion(id, known.iter().copied());
    if near.is_empty() { format!("an id of {holder}") } else { near }
}

/// Features outside the region, or with exchanged axes; and sources of places and the like that do not exist.
fn check_placement(features: &[Feature], file: &str, toml: &RegionToml, problems: &mut Vec<Problem>) {
    use geo::BoundingRect;
    let id = |f: &Feature| f.text("id").or_else(|| f.text("name")).unwrap_or_default();
    if let Some(extent) = &toml.extent {
        let boxes: Vec<_> =
            (1..).zip(features).filter_map(|(n, f)| Some((n, id(f), f.geometry.as_ref()?.bounding_rect()?))).collect();
        problems.extend(outside_extent(&boxes, extent, file));
    }
    if toml.polities.iter().any(|p| p == file) {
        return;
    }
    let known: Vec<&str> = toml.sources.iter().map(|s| s.id.as_str()).collect();
    for (number, feature) in (1..).zip(features) {
        let cited = feature.properties.get("source").and_then(|s| s.as_array());
        for source in cited.into_iter().flatten().filter_map(|s| s.as_str()).filter(|s| !known.contains(s)) {
            let expected = known_or_near(source, &known, "[[sources]]");
            let what = format!("unknown source {}", shown(source));
            problems.push(Problem::error(file, what, expected).at_feature(number, &id(feature)).about("source"));
        }
    }
}

/// Problems of claims added with `--borders`, as far as a pack's extent shows them: see [`outside_extent`].
pub fn check_added_claims(claims: &[Claim], pack: &RegionPack, file: &str) -> Vec<Problem> {
    outside_extent(&claim_boxes(claims), &pack.extent, file)
}
