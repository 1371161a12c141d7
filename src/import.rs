//! Border files to a region pack: a folder with `region.toml` and `polities.geojson` that `histmap check` accepts.
//!
//! The folder appears when everything in it is written and checked, or not at all. The borders stay those of their source,
//! whose licence and citation the pack names.

use crate::borders::{Account, Claim, SourceKind, cut_to_window};
use crate::error::{Error, Result};
use crate::gdal_io::{self, Transformer};
use crate::grid::{LonLatBox, Xy};
use crate::pack::{self, PackSource};
use crate::political::{BorderInput, BorderReading, read_borders};
use crate::year::{Span, YEAR_LIMIT};
use geo::{BoundingRect, MultiPolygon, Polygon};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// What to import.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ImportRequest {
    /// Border files, and how to read them.
    pub borders: BorderInput,
    /// Folder of the pack; it must not exist.
    pub out: PathBuf,
    /// Name of the region; `None` takes the folder's.
    pub name: Option<String>,
    /// Title of the map; `None` takes the name.
    pub title: Option<String>,
    /// The region; `None` takes the extent of all borders.
    pub bbox: Option<LonLatBox>,
    /// Working CRS; `None` takes the UTM zone of the region's middle.
    pub crs: Option<String>,
    /// Licence of the borders.
    pub licence: Option<String>,
    /// Where they come from.
    pub citation: Option<String>,
}

/// What was imported.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportSummary {
    /// Folder of the pack.
    pub out: PathBuf,
    /// Schemas of the files, each once.
    pub kinds: Vec<SourceKind>,
    /// How many claims the pack has.
    pub claims: usize,
    /// How many lie outside the region.
    pub outside: usize,
    /// The years in which any claim holds, merged.
    pub covered: Vec<Span>,
    /// Working CRS.
    pub crs: String,
    /// What became of every feature.
    pub account: Account,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// File in the pack with a line for every feature of the border files.
pub const ACCOUNT_FILE: &str = "import.txt";
const POLITIES_FILE: &str = "polities.geojson";
/// UTM is sound for regions of some zones' width, degrees.
const UTM_WIDTH_DEG: f64 = 30.0;

/// Reads border files and writes a region pack.
///
/// # Errors
/// [`Error::Argument`] where licence or citation are missing, the folder exists, or the CRS cannot show the region; those
/// of [`read_borders`]; [`Error::Write`]. On any of them there is no folder.
pub fn import(request: &ImportRequest) -> Result<ImportSummary> {
    let out = &request.out;
    if out.exists() {
        return Err(Error::argument("--out", format!("{} exists already", out.display()), "choose another folder"));
    }
    let folder_name = out.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let name = request.name.clone().unwrap_or(folder_name.clone());
    let is_plain = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || !name.chars().all(is_plain) {
        return Err(Error::argument("--name", format!("'{name}'"), "letters, digits, - and _, at least one"));
    }
    if folder_name != name {
        let remedy = format!("a pack's folder has its name: write -o {}", out.with_file_name(&name).display());
        return Err(Error::argument("--name", format!("'{name}' for the folder '{folder_name}'"), remedy));
    }
    let BorderReading { label, borders: read, files, mut notes } = read_borders(&request.borders)?;
    notes.extend(read.problems.iter().map(ToString::to_string));
    let mut kinds = read.kinds.clone();
    kinds.sort();
    kinds.dedup();
    let (licence, citation) = rights(request, &label, &kinds)?;

    let extent = match request.bbox {
        Some(bbox) => bbox,
        None => extent_of(&read.claims, &label)?,
    };
    let crs = working_crs(request.crs.as_deref(), &extent)?;
    let all = read.claims.len();
    let mut claims = cut_to_window(read.claims, &extent);
    let outside = all - claims.len();
    if claims.is_empty() {
        return Err(Error::argument("--bbox", "no border lies in it", format!("{label} holds {all} claims elsewhere")));
    }
    claims.sort_by(|a, b| (&a.id, a.span).cmp(&(&b.id, b.span)));
    let covered = crate::borders::covered_spans(&claims);

    let source_id = if let [kind] = kinds[..] { kind.as_str() } else { "borders" };
    let parent = out.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(parent).map_err(|e| Error::write(parent, e))?;
    let work = tempfile::Builder::new().prefix(".histmap-").tempdir_in(parent).map_err(|e| Error::write(parent, e))?;
    // A folder of the pack's name in a private one: what is checked is what will stand there.
    let pack_dir = work.path().join(&name);
    std::fs::create_dir(&pack_dir).map_err(|e| Error::write(out, e))?;
    let names: Vec<String> = files.iter().filter_map(|f| Some(f.file_name()?.to_string_lossy().into_owned())).collect();
    let region = RegionFile {
        name: &name,
        title: request.title.as_deref().unwrap_or(&name),
        crs: &crs,
        extent: &extent,
        source_id,
        citation: &citation,
        licence: &licence,
        note: &format!("Imported from {}.", names.join(", ")),
    };
    let write = |file: &str, text: &str| gdal_io::write_beside(&pack_dir.join(file), text.as_bytes());
    write("region.toml", &region.text())?;
    write(POLITIES_FILE, &polities(&claims, source_id)?)?;
    write(ACCOUNT_FILE, &read.account.to_string())?;

    let problems = pack::check_pack(&PackSource::folder(&pack_dir)?);
    let errors: Vec<String> = problems.iter().filter(|p| p.is_error()).map(|p| format!("  {p}")).collect();
    if !errors.is_empty() {
        return Err(Error::Pack { pack: name, count: errors.len(), list: errors.join("\n") });
    }
    notes.extend(problems.iter().map(ToString::to_string));
    std::fs::rename(&pack_dir, out).map_err(|e| Error::write(out, e))?;
    Ok(ImportSummary {
        out: out.clone(),
        kinds,
        claims: claims.len(),
        outside,
        covered,
        crs,
        account: read.account,
        notes,
    })
}

/// What the pack says of its source; both must be stated, because borders are somebody's work.
fn rights(request: &ImportRequest, label: &str, kinds: &[SourceKind]) -> Result<(String, String)> {
    let published = |kind: &SourceKind| match kind {
        SourceKind::Cliopatria => Some("Cliopatria is published under CC BY 4.0"),
        SourceKind::HistoricalBasemaps => Some("historical-basemaps is published under GPL-3.0"),
        SourceKind::OpenHistoricalMap => {
            Some("OpenHistoricalMap is published under CC0-1.0, save where a feature says else")
        }
        SourceKind::CShapes => Some("CShapes is published under CC BY-NC-SA 4.0"),
        SourceKind::NaturalEarth => Some("Natural Earth is in the public domain"),
        SourceKind::Plain => None,
    };
    let hint: String = kinds.iter().filter_map(published).map(|p| format!("; {p}")).collect();
    let stated = |value: &Option<String>, flag: &str, what: &str| {
        value.clone().filter(|v| !v.trim().is_empty()).ok_or_else(|| {
            let remedy = format!("state it: a pack names the source and the licence of its borders{hint}");
            Error::argument(flag, format!("{what} of {label} is not known"), remedy)
        })
    };
    Ok((stated(&request.licence, "--licence", "the licence")?, stated(&request.citation, "--citation", "the source")?))
}

/// The box around all claims, outward to tenths of a degree.
fn extent_of(claims: &[Claim], label: &str) -> Result<LonLatBox> {
    let boxes = claims.iter().filter_map(|c| c.area.bounding_rect());
    let around = boxes.fold(None, |all: Option<[f64; 4]>, r| {
        let [w, s, e, n] = all.unwrap_or([f64::MAX, f64::MAX, f64::MIN, f64::MIN]);
        Some([w.min(r.min().x), s.min(r.min().y), e.max(r.max().x), n.max(r.max().y)])
    });
    let [w, s, e, n] = around.ok_or_else(|| Error::content(label, "no areas", "polygons"))?;
    let (down, up) = (|v: f64| (v * 10.0).floor() / 10.0, |v: f64| (v * 10.0).ceil() / 10.0);
    LonLatBox::new(down(w).max(-180.0), down(s).max(-90.0), up(e).min(180.0), up(n).min(90.0))
}

/// The name of the working CRS: the one given, if it is in metres and shows the region, or the UTM zone of its middle.
fn working_crs(given: Option<&str>, extent: &LonLatBox) -> Result<String> {
    let width = extent.east - extent.west;
    let (lon, lat) = ((extent.west + extent.east) / 2.0, (extent.south + extent.north) / 2.0);
    let name = match given {
        Some(name) => name.to_string(),
        None if width > UTM_WIDTH_DEG || extent.south < -80.0 || extent.north > 84.0 => {
            return Err(Error::argument(
                "--bbox",
                format!(
                    "the region is {width:.0} degrees wide, at {:.0}..{:.0} N: no UTM zone fits",
                    extent.south, extent.north
                ),
                "choose a smaller region with --bbox W,S,E,N, or a projected CRS with --crs",
            ));
        }
        None => {
            let zone = (((lon + 180.0) / 6.0).floor() as i32).clamp(0, 59) + 1;
            format!("EPSG:{}", if lat >= 0.0 { 32600 + zone } else { 32700 + zone })
        }
    };
    let crs = gdal_io::crs(&name, "--crs")?;
    if crs.is_geographic {
        return Err(Error::GeographicCrs { crs: crs.name });
    }
    let metres = gdal_io::metres_per_unit(&crs)?.is_none_or(|m| (m - 1.0).abs() < 1e-9);
    let there = Transformer::new(&gdal_io::crs(gdal_io::WGS84, "--crs")?, &crs)?;
    let is_shown = extent.outline(16).iter().all(|p| there.point(Xy { x: p.lon, y: p.lat }).is_some());
    if !metres || !is_shown {
        let found = if metres { "cannot show the region" } else { "is not in metres" };
        return Err(Error::argument(
            "--crs",
            format!("{} {found}", crs.name),
            "choose a projected CRS in metres, made for it",
        ));
    }
    Ok(name)
}

/// What stands in `region.toml`.
struct RegionFile<'a> {
    name: &'a str,
    title: &'a str,
    crs: &'a str,
    extent: &'a LonLatBox,
    source_id: &'a str,
    citation: &'a str,
    licence: &'a str,
    note: &'a str,
}

impl RegionFile<'_> {
    fn text(&self) -> String {
        let quoted = |s: &str| toml::Value::String(s.to_string()).to_string();
        let e = self.extent;
        format!(
            "# Region pack made by histmap import; {ACCOUNT_FILE} says what became of every feature.\n\n\
             name = {}\ntitle = {}\ncrs = {}\nresolution_m = {}\n\n\
             [extent]\nwest = {:?}\nsouth = {:?}\neast = {:?}\nnorth = {:?}\n\n\
             [layers]\npolities = [{}]\n\n\
             [[sources]]\nid = {}\ncitation = {}\nlicence = {}\nuse = \"taken\"\nnote = {}\n",
            quoted(self.name),
            quoted(self.title),
            quoted(self.crs),
            resolution_m(e),
            e.west,
            e.south,
            e.east,
            e.north,
            quoted(POLITIES_FILE),
            quoted(self.source_id),
            quoted(self.citation),
            quoted(self.licence),
            quoted(self.note),
        )
    }
}

/// Cells of which some thousands make the region's greater side, 250 m at the least.
fn resolution_m(extent: &LonLatBox) -> u32 {
    let middle = ((extent.south + extent.north) / 2.0).to_radians();
    let side_m = 111_320.0 * ((extent.east - extent.west) * middle.cos()).max(extent.north - extent.south);
    [250, 500, 1000, 2500, 5000].into_iter().find(|m| side_m / f64::from(*m) <= 6000.0).unwrap_or(10_000)
}

/// The pack's layer of polities, a line per claim.
fn polities(claims: &[Claim], source_id: &str) -> Result<String> {
    let known: Vec<&str> = claims.iter().map(|c| c.id.as_str()).collect();
    let lines: Vec<String> = claims
        .iter()
        .map(|c| {
            let parent = c.parent.as_deref().filter(|p| known.contains(p));
            json!({"type": "Feature", "properties": properties(c, parent, source_id), "geometry": geometry(&c.area)})
                .to_string()
        })
        .collect();
    Ok(format!(
        "{{\"type\": \"FeatureCollection\", \"name\": \"polities\", \"features\": [\n{}\n]}}\n",
        lines.join(",\n")
    ))
}

fn properties(c: &Claim, parent: Option<&str>, source_id: &str) -> Map<String, Value> {
    let doubt = c.doubt.map(|d| d.to_string());
    let notes: Vec<&str> =
        [c.note.as_str(), doubt.as_deref().unwrap_or("")].into_iter().filter(|n| !n.is_empty()).collect();
    // Packs have no open ends: the first and the last year that can be written stand for them.
    let from = if c.span.start == Span::ALWAYS.start { -YEAR_LIMIT } else { c.span.first().to_historian() };
    let to = if c.span.end == Span::ALWAYS.end { YEAR_LIMIT } else { c.span.last().to_historian() };
    let mut out = Map::new();
    let mut set = |key: &str, value: Value| out.insert(key.to_string(), value);
    set("id", c.id.clone().into());
    set("name", c.name.clone().into());
    for (key, text) in [("name_ru", &c.name_ru), ("name_local", &c.name_local), ("local_lang", &c.local_lang)] {
        if !text.is_empty() {
            set(key, text.clone().into());
        }
    }
    set("from_year", from.into());
    set("to_year", to.into());
    set("kind", c.kind.as_str().into());
    set("parent", parent.map_or(Value::Null, Value::from));
    set("certainty", c.certainty.as_str().into());
    set("source", json!([source_id]));
    if let Some([r, g, b]) = c.colour {
        set("colour", format!("#{r:02x}{g:02x}{b:02x}").into());
    }
    if !notes.is_empty() {
        set("note", notes.join("; ").into());
    }
    out
}

fn geometry(area: &MultiPolygon<f64>) -> Value {
    let ring = |r: &geo::LineString<f64>| r.0.iter().map(|c| json!([c.x, c.y])).collect::<Vec<Value>>();
    let polygon = |p: &Polygon<f64>| std::iter::once(p.exterior()).chain(p.interiors()).map(ring).collect::<Vec<_>>();
    json!({"type": "MultiPolygon", "coordinates": area.iter().map(polygon).collect::<Vec<_>>()})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crs_is_the_utm_zone_of_the_middle() {
        let crs = |w: f64, s: f64, e: f64, n: f64| working_crs(None, &LonLatBox::new(w, s, e, n).unwrap());
        assert_eq!(crs(43.0, 41.0, 46.0, 43.0).unwrap(), "EPSG:32638");
        assert_eq!(crs(-70.0, -35.0, -68.0, -33.0).unwrap(), "EPSG:32719");
        assert!(crs(-180.0, -60.0, 180.0, 80.0).unwrap_err().to_string().contains("--bbox"));
        let caucasus = LonLatBox::new(43.0, 41.0, 46.0, 43.0).unwrap();
        assert!(matches!(working_crs(Some("EPSG:4326"), &caucasus), Err(Error::GeographicCrs { .. })));
    }

    #[test]
    fn greater_regions_get_greater_cells() {
        let of = |w: f64, e: f64| resolution_m(&LonLatBox::new(w, 40.0, e, 41.0).unwrap());
        assert_eq!((of(43.0, 46.0), of(20.0, 45.0)), (250, 500));
    }

    #[test]
    fn licence_and_citation_are_asked_for() {
        let request = ImportRequest { licence: Some("CC0".into()), ..ImportRequest::default() };
        let said = rights(&request, "a", &[SourceKind::Cliopatria]).unwrap_err().to_string();
        assert!(said.contains("--citation") && said.contains("CC BY 4.0"), "{said}");
    }
}
