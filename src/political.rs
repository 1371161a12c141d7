//! From claims to the regions of an era on the grid: which claims count, what they look like on the map, and who has each
//! cell.

use crate::borders::{
    self, AreaChange, BorderClaims, BorderFile, BorderLine, Claim, PlaneClaim, PolityRegion, Problem, ReadOptions,
    RegionOptions, area_changes, cut_at_coast, political_regions, project_claims,
};
use crate::error::{Error, Result};
use crate::gdal_io::{self, Transformer, VectorReadOptions};
use crate::grid::{Grid, LonLat, Xy};
use crate::pack::{self, RegionPack};
use crate::raster::Raster;
use crate::region;
use crate::water::{WaterBody, WaterKind};
use crate::words::counted;
use crate::year::{Era, Year};
use geo::{BooleanOps, MultiPolygon, Rect};
use std::path::PathBuf;

/// The political map of an era on a grid.
#[derive(Debug, Clone)]
pub struct RegionsOnGrid {
    /// Code of the holder by cell; 0 is unclaimed or sea.
    pub regions: Raster<u16>,
    /// Code of the next claimant by cell; 0 where not contested.
    pub contested: Raster<u16>,
    /// Polities on the map, cut at the coast and the map's edge, by code.
    pub polities: Vec<PolityRegion>,
    /// Border lines on land.
    pub borders: Vec<BorderLine>,
    /// What the reader should know.
    pub notes: Vec<String>,
}

/// Border files, and how to read them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BorderInput {
    /// Files, folders of them, or zip archives.
    pub paths: Vec<PathBuf>,
    /// CRS of those that state none.
    pub crs: Option<String>,
    /// Encoding of Shapefiles' texts, where what they say is wrong or missing.
    pub encoding: Option<String>,
    /// Schema, fields and years.
    pub read: ReadOptions,
}

/// Border files, read.
#[derive(Debug, Clone)]
pub struct BorderReading {
    /// Their names, for messages.
    pub label: String,
    /// Claims, problems, and what became of every feature.
    pub borders: BorderClaims,
    /// The files on disk, for the manifest.
    pub files: Vec<PathBuf>,
    /// What had to be guessed.
    pub notes: Vec<String>,
}

/// Reads all border files of `input` as one set, see [`borders::read_border_files`].
///
/// # Errors
/// Those of reading; [`Error::Pack`] that lists all problems where the claims cannot be told.
pub fn read_borders(input: &BorderInput) -> Result<BorderReading> {
    let stated = input.crs.as_deref().map(|c| gdal_io::crs(c, "--src-crs")).transpose()?;
    let options =
        VectorReadOptions { crs: stated.as_ref(), crs_flag: "--src-crs", encoding: input.encoding.as_deref() };
    let (mut found, mut files, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    for path in &input.paths {
        for file in gdal_io::vector_files(path)? {
            let layers = gdal_io::read_features_wgs84(&file.path, &options)?;
            notes.extend(layers.iter().flat_map(|l| l.notes.clone()));
            let features = layers.into_iter().flat_map(|l| l.features).collect();
            found.push(BorderFile { label: file.label, stem: file.stem, features });
            files.extend(file.on_disk);
        }
    }
    files.dedup();
    let borders = borders::read_border_files(&found, &input.read);
    let label = input.paths.iter().map(|p| region::file_label(p)).collect::<Vec<_>>().join(", ");
    refuse_errors(&label, &borders.problems)?;
    Ok(BorderReading { label, borders, files, notes })
}

fn refuse_errors(label: &str, problems: &[Problem]) -> Result<()> {
    let errors: Vec<String> = problems.iter().filter(|p| p.is_error()).map(ToString::to_string).collect();
    if errors.is_empty() {
        return Ok(());
    }
    Err(Error::Pack { pack: label.to_string(), count: errors.len(), list: errors.join("\n") })
}

/// Claims for one build, with what there is to say about them.
#[derive(Debug, Clone)]
pub struct ClaimsForBuild {
    /// The pack's claims, and those of border files in their place.
    pub claims: Vec<Claim>,
    /// The border files on disk.
    pub files: Vec<PathBuf>,
    /// What the reader should know.
    pub notes: Vec<String>,
}

/// The claims of `pack` with those of border files on top, cut to the surroundings of the pack's window. At least one holds
/// in `era`.
///
/// # Errors
/// [`Error::NoClaims`]; those of [`read_borders`]; [`Error::Pack`] where longitude and latitude are exchanged.
pub fn claims_with_borders(pack: &RegionPack, input: &BorderInput, era: Era) -> Result<ClaimsForBuild> {
    let mut out = ClaimsForBuild { claims: pack.claims.clone(), files: Vec::new(), notes: Vec::new() };
    if !input.paths.is_empty() {
        let BorderReading { label, borders: read, files, notes } = read_borders(input)?;
        refuse_errors(&label, &pack::check_added_claims(&read.claims, pack, &label))?;
        let count = read.claims.len();
        let added = borders::cut_to_window(read.claims, &pack.extent);
        out.notes.push(format!("{label}: {}", read.account.summary()));
        out.notes.push(format!(
            "{label}: {} added, {} outside the region",
            counted(added.len(), "claim", "claims"),
            counted(count - added.len(), "claim", "claims")
        ));
        out.notes.extend(namesakes(&pack.claims, &added, era));
        out.notes.extend(notes);
        out.notes.extend(read.problems.iter().map(ToString::to_string));
        out.notes.extend(read.account.remarkable());
        out.claims = borders::merge_claims(out.claims, added);
        out.files = files;
    }
    if borders::select(&out.claims, era).is_empty() {
        return Err(Error::NoClaims {
            era: era.to_string(),
            region: pack.name.clone(),
            covered: borders::describe_spans(&borders::covered_spans(&out.claims)),
        });
    }
    Ok(out)
}

/// Sentences on added claims that have the name of a claim of the pack, but another id: both are drawn.
fn namesakes(pack: &[Claim], added: &[Claim], era: Era) -> Vec<String> {
    let holds = |c: &&Claim| c.span.overlaps(&era);
    let twin = |a: &Claim| {
        pack.iter().filter(holds).find(|p| p.id != a.id && p.name.trim().to_lowercase() == a.name.trim().to_lowercase())
    };
    let sentences = added.iter().filter(holds).filter_map(|a| {
        let id = &twin(a)?.id;
        Some(format!(
            "two claims are called '{}', the added one (id '{}') and the region's own (id '{id}'), and both are drawn; \
             give the added one the id '{id}' to replace the other",
            a.name, a.id
        ))
    });
    sentences.collect()
}

/// What each polity of the region `name` gained and lost between two years, within the region's window and without the
/// sea; see [`area_changes`]. Packs are found as by [`pack::find_pack`].
///
/// # Errors
/// Those of reading the pack; [`Error::NoClaims`] for a year without any claim.
pub fn changes(name: &str, maps: &[PathBuf], from: Year, to: Year) -> Result<Vec<AreaChange>> {
    let source = pack::open_pack(name, maps)?;
    let pack = pack::read_pack(&source)?;
    let (before, after) = (pack.select(Era::of(from))?, pack.select(Era::of(to))?);
    let e = &pack.extent;
    let window = MultiPolygon::from(Rect::new((e.west, e.south), (e.east, e.north)).to_polygon());
    let seas: Vec<_> = region::read_seas(&source)?.into_iter().flat_map(|b| b.area.0).collect();
    let land = window.difference(&MultiPolygon::new(seas));
    Ok(area_changes(&before.claims, &after.claims, &|area| area.intersection(&land)))
}

/// A sentence where the claims of the era cover less than half of the land: the map is then mostly empty, and the reader
/// should know which years are better known.
fn thin_cover(regions: &Raster<u16>, water: &Raster<u8>, claims: &[Claim], era: Era) -> Option<String> {
    let is_land = |w: u8| w == WaterKind::Land as u8 || w == WaterKind::River as u8;
    let (mut land, mut held) = (0u64, 0u64);
    for (&r, _) in regions.values.iter().zip(&water.values).filter(|(_, w)| is_land(**w)) {
        land += 1;
        held += u64::from(r != 0);
    }
    if held * 2 >= land {
        return None;
    }
    let count = |y: Year| claims.iter().filter(|c| c.span.contains(y)).count();
    let starts = claims.iter().map(|c| c.span.first());
    let best = starts.max_by_key(|&y| (count(y), std::cmp::Reverse(y)))?;
    Some(format!(
        "the claims of {era} cover {:.0} % of the land ({}); {best} is the best covered year ({})",
        100.0 * held as f64 / land as f64,
        counted(count(era.first()), "claim", "claims"),
        counted(count(best), "claim", "claims")
    ))
}

/// The regions of `era` on `grid`.
///
/// Codes, colours, smoothing and precedence are worked out from all claims of the era, so that a part of the map has the
/// same ones. `bodies` (in the grid's CRS) and `water` (codes of [`WaterKind`] on `grid`) keep regions off the sea.
///
/// # Errors
/// Those of projection; [`Error::GridMismatch`] never, the masks being made here.
pub fn regions_on_grid(
    claims: &[Claim],
    era: Era,
    grid: &Grid,
    bodies: &[WaterBody],
    water: &Raster<u8>,
) -> Result<RegionsOnGrid> {
    let wgs84 = gdal_io::crs(gdal_io::WGS84, "--crs")?;
    let forward = Transformer::new(&wgs84, &grid.crs)?;
    let back = Transformer::new(&grid.crs, &wgs84)?;
    let selection = borders::select(claims, era);
    let mut notes: Vec<String> = selection
        .later
        .iter()
        .map(|c| format!("{} also has another outline later in the era ({}), which is not drawn", c.name, c.span))
        .collect();
    notes.extend(selection.composites.iter().map(|c| format!("{} is drawn as its members", c.name)));

    let project = |p: LonLat| forward.point(Xy { x: p.lon, y: p.lat });
    let plane: Vec<PlaneClaim> = project_claims(&selection.claims, &project)?;
    let uncut = political_regions(&plane, &RegionOptions::default())?;
    let (mut regions, mut contested) =
        borders::stack(grid.cols, grid.rows, &uncut.polities, |p| gdal_io::rasterize_mask(&p.outline, grid, false))?;
    for (i, &w) in water.values.iter().enumerate() {
        if w == WaterKind::Sea as u8 {
            regions.values[i] = 0;
            contested.values[i] = 0;
        }
    }
    notes.extend(thin_cover(&regions, water, claims, era));
    let seas: Vec<_> =
        bodies.iter().filter(|b| b.kind == WaterKind::Sea).flat_map(|b| b.area.0.iter().cloned()).collect();
    let mut cut = cut_at_coast(&uncut, &MultiPolygon::new(seas), &grid.extent());
    cut.measure_areas(&|p: Xy| back.point(p).map(|q| LonLat { lon: q.x, lat: q.y }));
    Ok(RegionsOnGrid { regions, contested, polities: cut.polities, borders: cut.borders, notes })
}
