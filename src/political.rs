//! From claims to the regions of an era on the grid: which claims count, what they look like on the map, and who has each
//! cell.

use crate::borders::{
    self, BorderFile, BorderLine, Claim, PlaneClaim, PolityRegion, ReadOptions, RegionOptions, cut_at_coast,
    political_regions, project_claims,
};
use crate::error::{Error, Result};
use crate::gdal_io::{self, Transformer, VectorReadOptions};
use crate::grid::{Grid, LonLat, Xy};
use crate::pack::{self, RegionPack};
use crate::raster::Raster;
use crate::region;
use crate::water::{WaterBody, WaterKind};
use crate::year::{Era, Year};
use geo::MultiPolygon;
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

/// The claims of `pack` with those of `border_files` on top, and what there is to say about them. At least one holds in
/// `era`.
///
/// # Errors
/// [`Error::NoClaims`]; those of reading; [`Error::Content`] for border files whose claims cannot be told.
pub fn claims_with_borders(
    pack: &RegionPack,
    border_files: &[PathBuf],
    crs: Option<&str>,
    era: Era,
) -> Result<(Vec<Claim>, Vec<String>)> {
    let stated = crs.map(|c| gdal_io::crs(c, "--src-crs")).transpose()?;
    let mut claims = pack.claims.clone();
    let mut notes = Vec::new();
    let mut files = Vec::new();
    for path in border_files {
        let options = VectorReadOptions { crs: stated.as_ref(), crs_flag: "--src-crs" };
        let layers = gdal_io::read_features_wgs84(path, &options)?;
        let stem = path.file_stem().map_or(String::new(), |s| s.to_string_lossy().into_owned());
        let features = layers.into_iter().flat_map(|l| l.features).collect();
        files.push(BorderFile { label: region::file_label(path), stem, features });
    }
    if !files.is_empty() {
        let read = borders::read_border_files(&files, &ReadOptions::default());
        let name = files.iter().map(|f| f.label.as_str()).collect::<Vec<_>>().join(", ");
        let problems: Vec<_> =
            read.problems.into_iter().chain(pack::check_added_claims(&read.claims, pack, &name)).collect();
        let errors: Vec<String> = problems.iter().filter(|p| p.is_error()).map(ToString::to_string).collect();
        if !errors.is_empty() {
            return Err(Error::Pack { pack: name, count: errors.len(), list: errors.join("\n") });
        }
        notes.push(format!("{name}: {} claims added; {}", read.claims.len(), read.account.summary()));
        notes.extend(problems.iter().map(ToString::to_string));
        notes.extend(read.account.remarkable());
        claims = borders::merge_claims(claims, read.claims);
    }
    if borders::select(&claims, era).is_empty() {
        return Err(Error::NoClaims {
            era: era.to_string(),
            region: pack.name.clone(),
            covered: borders::describe_spans(&borders::covered_spans(&claims)),
        });
    }
    Ok((claims, notes))
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
        "the claims of {era} cover {:.0} % of the land ({} claims); {best} is the best covered year ({} claims)",
        100.0 * held as f64 / land as f64,
        count(era.first()),
        count(best)
    ))
}

/// The regions of `era` on `grid`.
///
/// Codes, colours, smoothing and precedence are worked out from all claims on the pack's grid `whole`, so that a part of the
/// map has the same ones. `water` (codes of [`WaterKind`] on `grid`) keeps regions off the sea.
///
/// # Errors
/// Those of projection; [`Error::GridMismatch`] never, the masks being made here.
pub fn regions_on_grid(
    claims: &[Claim],
    era: Era,
    whole: &Grid,
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
    let seas: Vec<_> = bodies
        .iter()
        .filter(|b| b.kind == WaterKind::Sea)
        .flat_map(|b| region::projected(&b.area, &forward).0)
        .collect();
    let _ = whole;
    let mut cut = cut_at_coast(&uncut, &MultiPolygon::new(seas), &grid.extent());
    cut.measure_areas(&|p: Xy| back.point(p).map(|q| LonLat { lon: q.x, lat: q.y }));
    Ok(RegionsOnGrid { regions, contested, polities: cut.polities, borders: cut.borders, notes })
}
