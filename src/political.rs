//! From claims to the regions of an era on the grid: which claims count, what they look like on the map, and who has each
//! cell.

use crate::borders::{
    self, AreaChange, BorderClaims, BorderFile, BorderLine, Claim, PlaneClaim, PoliticalRegions, PolityRegion, Problem,
    ReadOptions, RegionOptions, SmoothOptions, Stack, Succession, Sureness, Transfer, area_changes, close_gaps,
    cut_at_coast, political_regions, project_claims,
};
use crate::error::{Error, Result};
use crate::gdal_io::{self, Transformer, VectorReadOptions};
use crate::grid::{Extent, Grid, LonLat, Xy};
use crate::pack::{self, RegionPack};
use crate::raster::Raster;
use crate::region;
use crate::render::change_map::{ChangeMapInput, change_map};
use crate::render::figure::Figure;
use crate::water::{WaterBody, WaterKind};
use crate::words::counted;
use crate::year::{Era, Year};
use geo::{BooleanOps, Coord, Densify, Euclidean, MapCoords, MultiPolygon, Rect};
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

/// Refuses eras in which none of `claims` holds.
///
/// # Errors
/// [`Error::NoClaims`] that names them.
pub fn require_claims(claims: &[Claim], eras: &[Era], region: &str) -> Result<()> {
    let empty: Vec<String> =
        eras.iter().filter(|e| borders::select(claims, **e).is_empty()).map(ToString::to_string).collect();
    if empty.is_empty() && !eras.is_empty() {
        return Ok(());
    }
    let named = match empty.len() {
        n @ 9.. => format!("{}, and {} more", empty[..8].join(", "), n - 8),
        _ => empty.join(", "),
    };
    Err(Error::NoClaims {
        era: named,
        region: region.to_string(),
        covered: borders::describe_spans(&borders::covered_spans(claims)),
    })
}

/// The claims of `pack` with those of border files on top, cut to the surroundings of the pack's window.
///
/// # Errors
/// Those of [`read_borders`]; [`Error::Pack`] where longitude and latitude are exchanged.
pub fn claims_with_borders(pack: &RegionPack, input: &BorderInput) -> Result<ClaimsForBuild> {
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
        out.notes.extend(namesakes(&pack.claims, &added));
        out.notes.extend(notes);
        out.notes.extend(read.problems.iter().map(ToString::to_string));
        out.notes.extend(read.account.remarkable());
        out.claims = borders::merge_claims(out.claims, added);
        out.files = files;
    }
    Ok(out)
}

/// Sentences on added claims that have the name of a claim of the pack, but another id: both are drawn.
fn namesakes(pack: &[Claim], added: &[Claim]) -> Vec<String> {
    let twin = |a: &Claim| {
        let is_namesake = |p: &&Claim| p.id != a.id && p.name.trim().to_lowercase() == a.name.trim().to_lowercase();
        pack.iter().filter(|p| p.span.overlaps(&a.span)).find(is_namesake)
    };
    let sentences = added.iter().filter_map(|a| {
        let id = &twin(a)?.id;
        Some(format!(
            "two claims are called '{}', the added one (id '{}') and the region's own (id '{id}'), and both are drawn; \
             give the added one the id '{id}' to replace the other",
            a.name, a.id
        ))
    });
    let mut all: Vec<String> = sentences.collect();
    all.sort();
    all.dedup();
    all
}

/// The claims that a question is about: those of `pack`, or those of border files in their place, cut to the surroundings
/// of the pack's window.
///
/// # Errors
/// Those of [`read_borders`]; [`Error::Pack`] where longitude and latitude are exchanged.
pub fn claims_in_question(pack: &RegionPack, input: &BorderInput) -> Result<Vec<Claim>> {
    if input.paths.is_empty() {
        return Ok(pack.claims.clone());
    }
    let BorderReading { label, borders: read, .. } = read_borders(input)?;
    refuse_errors(&label, &pack::check_added_claims(&read.claims, pack, &label))?;
    Ok(borders::cut_to_window(read.claims, &pack.extent))
}

/// What changed between two years.
#[derive(Debug, Clone)]
pub struct Changes {
    /// What each polity gained and lost, see [`area_changes`].
    pub areas: Vec<AreaChange>,
    /// What went from whom to whom, see [`borders::transfers`].
    pub transfers: Vec<Transfer>,
    /// The map of it, where it was asked for.
    pub map: Option<Figure>,
}

/// What each polity of the region `name` gained and lost between two years, within the region's window and without the
/// sea. Packs are found as by [`pack::find_pack`]; border files stand in place of the region's own claims.
///
/// # Errors
/// Those of reading; [`Error::NoClaims`] for a year without any claim.
pub fn changes(
    name: &str,
    maps: &[PathBuf],
    input: &BorderInput,
    [from, to]: [Year; 2],
    with_map: bool,
) -> Result<Changes> {
    let source = pack::open_pack(name, maps)?;
    let pack = pack::read_pack(&source)?;
    let claims = claims_in_question(&pack, input)?;
    require_claims(&claims, &[Era::of(from), Era::of(to)], &pack.name)?;
    let (before, after) = (borders::select(&claims, Era::of(from)), borders::select(&claims, Era::of(to)));
    let e = &pack.extent;
    let window = MultiPolygon::from(Rect::new((e.west, e.south), (e.east, e.north)).to_polygon());
    let seas: Vec<_> = region::read_seas(&source)?.into_iter().flat_map(|b| b.area.0).collect();
    let land = window.difference(&MultiPolygon::new(seas));
    let on_land = |area: &MultiPolygon<f64>| area.intersection(&land);
    let areas = area_changes(&before.claims, &after.claims, &on_land);
    let held_before = borders::holdings(&before.claims, Era::of(from), &on_land);
    let held_after = borders::holdings(&after.claims, Era::of(to), &on_land);
    let transfers = borders::transfers(&held_before, &held_after);
    let map = if with_map {
        Some(map_of_changes(&pack, &land, [from, to], &held_before, &held_after, &transfers)?)
    } else {
        None
    };
    Ok(Changes { areas, transfers, map })
}

/// The map of what went from one to another, in the region's CRS.
fn map_of_changes(
    pack: &RegionPack,
    land: &MultiPolygon<f64>,
    [from, to]: [Year; 2],
    before: &[(&Claim, MultiPolygon<f64>)],
    after: &[(&Claim, MultiPolygon<f64>)],
    transfers: &[Transfer],
) -> Result<Figure> {
    let crs = gdal_io::crs(&pack.crs, "crs")?;
    let there = Transformer::new(&gdal_io::crs(gdal_io::WGS84, "--crs")?, &crs)?;
    // Long edges, such as those of the window, are straight in longitude and latitude.
    let plane = |area: &MultiPolygon<f64>| -> MultiPolygon<f64> {
        Euclidean.densify(area, 0.25).map_coords(|c| {
            there.point(Xy { x: c.x, y: c.y }).map_or(Coord { x: f64::NAN, y: f64::NAN }, |p| Coord { x: p.x, y: p.y })
        })
    };
    let land = plane(land);
    let e = &pack.extent;
    let window = plane(&MultiPolygon::from(Rect::new((e.west, e.south), (e.east, e.north)).to_polygon()));
    let frame =
        Extent::around(pack.extent.outline(32).iter().filter_map(|p| there.point(Xy { x: p.lon, y: p.lat })))
            .ok_or_else(|| Error::argument("crs", format!("{} cannot show the region", crs.name), "choose another"))?;
    let mut named: Vec<(&str, Option<[u8; 3]>)> =
        after.iter().chain(before).map(|(c, _)| (c.id.as_str(), c.colour)).collect();
    named.sort_by_key(|n| n.0);
    named.dedup_by_key(|n| n.0);
    let colours = borders::palette_colours(&named);
    let colour_of = |id: &str| named.iter().position(|n| n.0 == id).map_or([160, 150, 140], |k| colours[k]);
    let holdings: Vec<(String, [u8; 3], MultiPolygon<f64>)> =
        after.iter().map(|(c, area)| (c.name.clone(), colour_of(&c.id), plane(area))).collect();
    let moved: Vec<(&Transfer, MultiPolygon<f64>)> = transfers.iter().map(|t| (t, plane(&t.area))).collect();
    Ok(change_map(&ChangeMapInput {
        title: &pack.title,
        years: [from.to_string(), to.to_string()],
        frame,
        window: &window,
        land: &land,
        holdings: &holdings,
        transfers: &moved,
        colour_of: &colour_of,
    }))
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

/// Less land than this that goes from one to another is an edge that was drawn twice, km².
const SUCCESSION_KM2: f64 = 25.0;

/// A sentence on land that changed hands within the era.
fn told_succession(s: &Succession, polities: &[PolityRegion], cell_km2: f64) -> Option<String> {
    let of = |code: u16| polities.iter().find(|p| p.code == code);
    let (a, b) = (of(s.earlier)?, of(s.later)?);
    let area_km2 = s.cells as f64 * cell_km2;
    (area_km2 >= SUCCESSION_KM2).then(|| {
        format!(
            "{area_km2:.0} km² went from {} (until {}) to {} (from {}) within the era; the map shows the first holder",
            a.claim.name,
            a.standing.years.last(),
            b.claim.name,
            b.standing.years.first()
        )
    })
}

/// A sentence on a polity whose years are in doubt in the era.
fn told_doubt(p: &PolityRegion, era: Era) -> Option<String> {
    let c = &p.claim;
    let doubt = c.doubt.map(|d| d.to_string()).unwrap_or_default();
    match p.standing.sureness {
        Sureness::Certain => None,
        Sureness::Doubtful => {
            Some(format!("whether {} held in {era} is in doubt ({doubt}); it is drawn paler", c.name))
        }
        Sureness::Possible => Some(format!(
            "{} is dated {} and may have held in {era} ({doubt}); it is drawn paler, where nobody else held",
            c.name, c.span
        )),
    }
}

/// The regions of `era` on `grid`; gaps between claims of less than `close_gaps_m` are closed first, 0 closes none.
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
    close_gaps_m: f64,
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
    let drawn: Vec<&Claim> = selection.claims.iter().chain(&selection.possible).copied().collect();
    let mut plane: Vec<PlaneClaim> = project_claims(&drawn, &project)?;
    if close_gaps_m > 0.0 {
        notes.extend(close_gaps(&mut plane, close_gaps_m).iter().map(ToString::to_string));
    }
    let spacing = SmoothOptions::spacing_for(grid.transform.cell_width);
    let smooth = SmoothOptions { spacing, ..SmoothOptions::default() };
    let uncut = political_regions(&plane, &RegionOptions { era, smooth, ..RegionOptions::default() })?;
    let is_sea = |k: usize| water.values[k] == WaterKind::Sea as u8;
    let Stack { holder: mut regions, mut contested, successions } =
        borders::stack(grid, &uncut.polities, |k| !is_sea(k))?;
    for k in (0..water.values.len()).filter(|&k| is_sea(k)) {
        regions.values[k] = 0;
        contested.values[k] = 0;
    }
    let cell_km2 = grid.transform.cell_width * grid.transform.cell_height / 1e6;
    notes.extend(successions.iter().filter_map(|s| told_succession(s, &uncut.polities, cell_km2)));
    notes.extend(uncut.polities.iter().filter_map(|p| told_doubt(p, era)));
    notes.extend(thin_cover(&regions, water, claims, era));
    let seas: Vec<_> =
        bodies.iter().filter(|b| b.kind == WaterKind::Sea).flat_map(|b| b.area.0.iter().cloned()).collect();
    // Who came later and has no cell is told, not drawn: the map is that of the era's first year.
    let mut has_cells = vec![false; usize::from(u16::MAX) + 1];
    regions.values.iter().chain(&contested.values).for_each(|&code| has_cells[usize::from(code)] = true);
    let is_drawn = |p: &PolityRegion| has_cells[usize::from(p.code)] || !successions.iter().any(|s| s.later == p.code);
    let uncut = PoliticalRegions { polities: uncut.polities.into_iter().filter(is_drawn).collect(), ..uncut };
    let mut cut = cut_at_coast(&uncut, &MultiPolygon::new(seas), &grid.extent());
    cut.measure_areas(&|p: Xy| back.point(p).map(|q| LonLat { lon: q.x, lat: q.y }));
    Ok(RegionsOnGrid { regions, contested, polities: cut.polities, borders: cut.borders, notes })
}
