//! The stages of a build in order, with their timing: request → plan → ground → constraints → relief and regions → files.
//!
//! Everything is checked before the first cell is computed, and everything is written into a folder beside the output that
//! takes its name only when it is complete.

use crate::animate::{AnimationKind, Frames};
use crate::borders::{Claim, Sureness};
use crate::classes::{self, ClassFile, ElevationClasses, GivenHeight};
use crate::constraint::{self, LaidRiver, RiverOnCoarse, RiverOptions};
use crate::eras::{self, Eras};
use crate::error::{Error, Result};
use crate::export::{self, GroundProduct, Product, VectorContent};
use crate::gdal_io::{self, Transformer};
use crate::grid::{Cell, Crs, Extent, Grid, LonLat, LonLatBox, Window, Xy};
use crate::manifest::{
    BlockMeansRecord, EraMapRecord, EraRecord, FileRecord, Manifest, PolityRecord, RunRecord, SourceRecord,
    StageSeconds,
};
use crate::pack::{self, PackSource, RegionPack};
use crate::political::{self, BorderInput, ClaimsForBuild};
use crate::progress::{Progress, Stage};
use crate::raster::Raster;
use crate::region::{self, CoarseRaster, DemFile, Ground, GroundFile};
use crate::render::{self, SheetOptions};
use crate::resources;
use crate::series::Series;
use crate::terrain::{
    self, BodyLevel, CoarseMode, CoarsePlace, CoarseSurface, CoursePoint, Pin, PlacedSurface, Placement, RefineOptions,
    Relief, RiverCourse, RoughnessModel, Terrain, Uv,
};
use crate::water::{River, WaterBody, WaterKind};
use crate::year::{Era, Span, Year};
use geo::LineString;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// How many notes are told at the end of a run; the manifest has all.
const NOTES_TOLD: usize = 6;

/// What to build.
#[derive(Debug, Clone)]
pub struct BuildRequest {
    /// Region pack.
    pub region: String,
    /// The era, or several over one ground.
    pub eras: Eras,
    /// Cell size, metres; `None` takes the pack's.
    pub resolution_m: Option<f64>,
    /// Working CRS; `None` takes the pack's.
    pub crs: Option<String>,
    /// Part of the region; `None` builds all of it.
    pub bbox: Option<LonLatBox>,
    /// Seed of the detail.
    pub seed: u64,
    /// Longer side of the map on the sheet, pixels; `None` fits it to the map.
    pub map_px: Option<usize>,
    /// Output folder; `None` is `out/REGION-YEAR`.
    pub out: Option<PathBuf>,
    /// Whether an existing output folder may be replaced.
    pub overwrite: bool,
    /// Worker threads; `None` is one per core.
    pub threads: Option<usize>,
    /// Elevation model instead of the shipped one.
    pub dem: Option<PathBuf>,
    /// Its CRS where it has none.
    pub dem_crs: Option<String>,
    /// Elevation classes or contour lines that the ground keeps to.
    pub classes: Option<ClassFile>,
    /// Whether they are all that is known of the elevation: no model, neither given nor shipped.
    pub classes_only: bool,
    /// Border files, and how to read them.
    pub borders: BorderInput,
    /// Gaps between claims narrower than this are closed, metres; `None` is [`CLOSE_GAPS_M`] with border files, else 0.
    pub close_gaps_m: Option<f64>,
    /// Moving pictures of the eras.
    pub animate: Vec<AnimationKind>,
    /// How they are drawn.
    pub animation: AnimationOptions,
    /// Folders of the user's own packs.
    pub maps: Vec<PathBuf>,
    /// The command line, for the manifest.
    pub command_line: String,
}

/// How moving pictures are drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct AnimationOptions {
    /// How long each era is shown, seconds.
    pub frame_s: f64,
    /// Longer side of the map in a frame, pixels.
    pub map_px: usize,
}

impl Default for AnimationOptions {
    fn default() -> Self {
        AnimationOptions { frame_s: 1.5, map_px: 1200 }
    }
}

/// Dots per inch of frames: letters are as large on a screen as those of a sheet at arm's length.
const FRAME_DPI: f64 = 96.0;

/// Width of gaps in border files that are closed unless another is asked for, metres.
pub const CLOSE_GAPS_M: f64 = 500.0;

/// The map of one of several eras.
#[derive(Debug, Clone, serde::Serialize)]
pub struct EraSummary {
    /// Its folder in the output folder.
    pub folder: String,
    /// The era in words.
    pub era: String,
    /// Polities on the map.
    pub polities: usize,
}

/// What was built.
#[derive(Debug, Clone, serde::Serialize)]
pub struct BuildSummary {
    /// Output folder.
    pub out: String,
    /// Region pack.
    pub region: String,
    /// Its title.
    pub region_title: String,
    /// The era in words.
    pub era: String,
    /// How the era was read.
    pub era_read_as: String,
    /// Working CRS.
    pub crs: String,
    /// Cell size, metres.
    pub resolution_m: f64,
    /// Columns.
    pub cols: usize,
    /// Rows.
    pub rows: usize,
    /// Polities on the map; of several eras, on any of their maps.
    pub polities: usize,
    /// The eras, where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub eras: Vec<EraSummary>,
    /// Sentences worth reading.
    pub notes: Vec<String>,
    /// Files with size and hash.
    pub files: Vec<FileRecord>,
    /// Seconds by stage.
    pub seconds: Vec<StageSeconds>,
    /// Seconds in all.
    pub total_seconds: f64,
}

/// A checked request: nothing in it can be wrong any more, save the data and the disk.
struct Plan {
    source: PackSource,
    pack: RegionPack,
    claims: Vec<Claim>,
    /// In order of time; at least one, and claims hold in each.
    eras: Vec<Era>,
    /// Whether there is just one, whose files stand in the output folder itself.
    is_single: bool,
    /// The grid of the whole pack: coarse cells are sized by it, whatever part is built.
    whole: Grid,
    /// The grid to build.
    grid: Grid,
    /// Whether the user gave the elevation model.
    has_dem: bool,
    /// Whether the user gave the projection.
    has_crs: bool,
    out: PathBuf,
    border_files: Vec<PathBuf>,
    notes: Vec<String>,
    /// Elevation classes that the ground keeps to.
    classes: Option<ElevationClasses>,
}

/// Builds the map and returns what was written.
///
/// # Errors
/// Every [`Error`] of the stages; on any of them the output folder is as it was before.
pub fn build(request: &BuildRequest, progress: &mut (dyn Progress + Send)) -> Result<BuildSummary> {
    resources::with_threads(request.threads, || build_in_pool(request, progress))
}

fn build_in_pool(request: &BuildRequest, progress: &mut (dyn Progress + Send)) -> Result<BuildSummary> {
    let mut clock = Clock { progress, seconds: Vec::new() };
    let started = Instant::now();

    let (plan, ground, ground_files, folder) = clock.time(Stage::Read, || {
        let plan = plan(request)?;
        let folder = OutputFolder::prepare(&plan.out, request.overwrite)?;
        let dem = request.dem.clone().map(|path| DemFile { path, crs: request.dem_crs.clone() });
        let last = plan.eras.iter().map(|e| e.first()).max().unwrap_or(Year(i32::MAX));
        let (ground, files) = region::read_ground(&plan.source, dem.as_ref(), last.to_historian())?;
        Ok((plan, ground, files, folder))
    })?;
    let (plan, ground, ground_files) = clock.time(Stage::Read, || with_classes(request, plan, ground, ground_files))?;
    let grounds = eras_by_ground(&plan.eras, &ground);
    let rounds = Rounds { grounds: grounds.len(), eras: plan.eras.len(), is_animated: !request.animate.is_empty() };
    clock.progress.expect(rounds.share());
    let mut made = Made::new(request, folder.path())?;
    for (number, eras) in grounds.into_iter().enumerate() {
        build_ground(request, &plan, &ground, eras, number, &mut made, folder.path(), &mut clock)?;
    }
    let dir = folder.path();
    if !plan.is_single {
        made.outputs.extend(clock.time(Stage::Vectors, || made.series.write(dir, &plan.grid.crs))?);
        let frame_ms = (request.animation.frame_s * 1000.0).round() as u32;
        if let Some(frames) = &mut made.frames {
            let written = clock.time(Stage::Animation, || {
                let mut kinds = request.animate.clone();
                kinds.sort();
                kinds.dedup();
                kinds
                    .into_iter()
                    .map(|kind| {
                        let path = dir.join(kind.file_name());
                        gdal_io::write_beside(&path, &frames.encode(kind, frame_ms)?)?;
                        Ok(path)
                    })
                    .collect::<Result<Vec<PathBuf>>>()
            })?;
            made.outputs.extend(written);
        }
    }

    let begun = Instant::now();
    clock.progress.begin(Stage::Manifest);
    let notes: Vec<String> =
        plan.notes.iter().chain(&made.notes).chain(&ground.notes).chain(&made.river_notes).cloned().collect();
    let mut manifest = manifest(request, &plan, &made, &ground_files, dir)?;
    manifest.notes = notes.clone();
    clock.finish(Stage::Manifest, begun);
    manifest.run = RunRecord {
        command: request.command_line.clone(),
        threads: rayon::current_num_threads(),
        gdal: gdal_io::version(),
        seconds: clock.seconds.clone(),
    };
    manifest.write(dir)?;
    for n in notes.iter().take(NOTES_TOLD) {
        clock.progress.note(n);
    }
    if notes.len() > NOTES_TOLD {
        clock.progress.note(&format!("{} more notes in {}", notes.len() - NOTES_TOLD, crate::manifest::FILE_NAME));
    }
    // Frames lie on the disk beside what is kept.
    drop(made.frames.take());
    let out = folder.keep()?;
    let mut ids: Vec<&str> = made.maps.iter().flat_map(|m| &m.polities).map(|p| p.id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    let grid = &plan.grid;
    Ok(BuildSummary {
        out: out.display().to_string(),
        region: plan.pack.name.clone(),
        region_title: plan.pack.title.clone(),
        era: eras::in_words(&plan.eras),
        era_read_as: eras_read(&plan.eras),
        crs: grid.crs.name.clone(),
        resolution_m: grid.transform.cell_width,
        cols: grid.cols,
        rows: grid.rows,
        polities: ids.len(),
        eras: if plan.is_single {
            Vec::new()
        } else {
            made.maps
                .iter()
                .map(|m| EraSummary { folder: m.folder.clone(), era: m.era.to_string(), polities: m.polities.len() })
                .collect()
        },
        notes,
        files: manifest.outputs,
        seconds: clock.seconds,
        total_seconds: started.elapsed().as_secs_f64(),
    })
}

/// How often the stages of a build are gone through.
struct Rounds {
    grounds: usize,
    eras: usize,
    is_animated: bool,
}

impl Rounds {
    /// The sum of the stages' shares.
    fn share(&self) -> u64 {
        Stage::ALL
            .iter()
            .map(|stage| {
                let times = match stage {
                    Stage::Read | Stage::Manifest => 1,
                    Stage::Constrain | Stage::Terrain | Stage::Relief => self.grounds,
                    Stage::Regions | Stage::Rasters | Stage::Vectors | Stage::Sheet => self.eras,
                    Stage::Frames => {
                        if self.is_animated {
                            self.eras
                        } else {
                            0
                        }
                    }
                    Stage::Animation => usize::from(self.is_animated),
                };
                stage.share() * times as u64
            })
            .sum()
    }
}

/// What has been made so far.
struct Made {
    outputs: Vec<PathBuf>,
    notes: Vec<String>,
    river_notes: Vec<String>,
    maps: Vec<EraMap>,
    /// Of the first ground.
    block_means: Option<BlockMeansRecord>,
    vertical_datum: String,
    series: Series,
    frames: Option<Frames>,
    /// By id: colours that polities have had in earlier eras, and keep.
    colours: HashMap<String, [u8; 3]>,
}

/// The map of an era, for manifest and summary.
struct EraMap {
    folder: String,
    era: Era,
    elevation: String,
    polities: Vec<PolityRecord>,
    notes: Vec<String>,
}

impl Made {
    fn new(request: &BuildRequest, dir: &Path) -> Result<Made> {
        let frames = if request.animate.is_empty() { None } else { Some(Frames::new(dir, render::PAPER)?) };
        Ok(Made {
            outputs: Vec::new(),
            notes: Vec::new(),
            river_notes: Vec::new(),
            maps: Vec::new(),
            block_means: None,
            vertical_datum: String::new(),
            series: Series::default(),
            frames,
            colours: HashMap::new(),
        })
    }
}

/// Eras that have the same waters, one after the other: reservoirs come in the course of time.
fn eras_by_ground(eras: &[Era], ground: &Ground) -> Vec<Vec<Era>> {
    let waters = |era: &Era| ground.bodies.iter().filter(|b| exists(b, *era)).count();
    let mut groups: Vec<Vec<Era>> = Vec::new();
    for era in eras {
        match groups.last_mut() {
            Some(group) if waters(&group[0]) == waters(era) => group.push(*era),
            _ => groups.push(vec![*era]),
        }
    }
    groups
}

/// Whether a body of water exists in the first year of an era.
fn exists(body: &WaterBody, era: Era) -> bool {
    body.since_year.is_none_or(|y| y <= era.first().to_historian())
}

/// One ground and the maps of `eras` on it; `number` counts the grounds.
#[allow(clippy::too_many_arguments)]
fn build_ground(
    request: &BuildRequest,
    plan: &Plan,
    ground: &Ground,
    eras: Vec<Era>,
    number: usize,
    made: &mut Made,
    dir: &Path,
    clock: &mut Clock,
) -> Result<()> {
    let grid = &plan.grid;
    let bodies: Vec<WaterBody> = ground.bodies.iter().filter(|b| exists(b, eras[0])).cloned().collect();
    let ground = Ground { bodies, ..ground.clone() };
    // One cell more on each side, so that slopes at the edge are those of the whole.
    let ring = Window { cols: grid.cols, rows: grid.rows, col: 0, row: 0 }.grown(1);

    let (terrain, bodies, rivers, river_notes) = clock.time(Stage::Constrain, || {
        let bodies = region::projected_bodies(&ground.bodies, &grid.crs)?;
        let (terrain, rivers, notes) = constrain(plan, &ground, &bodies, ring)?;
        Ok((terrain, bodies, rivers, notes))
    })?;
    made.river_notes.extend(river_notes.into_iter().filter(|_| number == 0));

    let relief = clock.time(Stage::Terrain, || {
        let origin = grid.lattice_origin();
        let window = Window { col: origin.col - 1, row: origin.row - 1, ..ring };
        let mut relief =
            terrain::refine_window(&terrain, window, &RefineOptions { seed: request.seed, ..RefineOptions::default() });
        round_to_step(&mut relief.elevation);
        let notes = hold_classes(plan, &terrain, &mut relief, ring)?;
        if number == 0 {
            made.notes.extend(notes);
        }
        Ok(relief)
    })?;
    let water = water_mask(&terrain, &relief, plan, ring);
    drop(terrain);

    let (elevation_source, vertical_datum) = match &request.dem {
        Some(path) => {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            (format!("{name}, given by the user"), format!("as in {name}"))
        }
        None => (crate::shipped::LAND.source.to_string(), crate::shipped::VERTICAL_DATUM.to_string()),
    };
    let (elevation_source, vertical_datum) = match &request.classes {
        Some(file) => {
            let name = file.path.file_name().unwrap_or_default().to_string_lossy();
            match request.classes_only {
                true => (format!("elevation classes of {name}, given by the user"), format!("as in {name}")),
                false => (format!("{elevation_source}, within the elevation classes of {name}"), vertical_datum),
            }
        }
        None => (elevation_source, vertical_datum),
    };
    let mut added: Vec<String> =
        plan.border_files.iter().filter_map(|p| Some(p.file_name()?.to_string_lossy().into_owned())).collect();
    added.dedup();
    let product = GroundProduct {
        added: &added,
        part: request.bbox,
        grid,
        ring_elevation: &relief.elevation,
        elevation: relief.elevation.crop(Window { col: 1, row: 1, cols: grid.cols, rows: grid.rows }),
        water,
        rivers: &rivers,
        bodies: &bodies,
        pack: &plan.pack,
        eras: eras::in_words(&eras),
        eras_read: eras_read(&eras),
        elevation_source: &elevation_source,
        vertical_datum: &vertical_datum,
        seed: request.seed,
    };
    if number == 0 {
        made.block_means = Some(export::block_means(&relief));
        made.vertical_datum = vertical_datum.clone();
    }
    // A later ground has the name of its first era.
    let suffix = if number == 0 { String::new() } else { format!("-{}", eras::slug(eras[0])) };
    let written = clock.time(Stage::Relief, || {
        let mut written = export::write_relief(&product, dir, &suffix)?;
        if !plan.is_single {
            written.extend(export::write_water(&product, dir, &suffix)?);
            written.extend(export::write_ground_vectors(&product, dir, &suffix)?);
        }
        Ok(written)
    })?;
    made.outputs.extend(written);
    for era in eras {
        build_era(request, plan, &product, era, &suffix, made, dir, clock)?;
    }
    Ok(())
}

/// The map of one era.
#[allow(clippy::too_many_arguments)]
fn build_era(
    request: &BuildRequest,
    plan: &Plan,
    ground: &GroundProduct,
    era: Era,
    suffix: &str,
    made: &mut Made,
    dir: &Path,
    clock: &mut Clock,
) -> Result<()> {
    let folder = if plan.is_single { String::new() } else { eras::slug(era) };
    let dir = if plan.is_single { dir.to_path_buf() } else { dir.join(&folder) };
    if !plan.is_single {
        clock.progress.part(&era.to_string());
        std::fs::create_dir(&dir).map_err(|e| Error::write(&dir, e))?;
        open_to_all(&dir)?;
    }
    let close_gaps_m = request.close_gaps_m.unwrap_or(if plan.border_files.is_empty() { 0.0 } else { CLOSE_GAPS_M });
    let mut regions = clock.time(Stage::Regions, || {
        // A polity keeps the colour that it had in an earlier era.
        let claims: Vec<Claim> = plan
            .claims
            .iter()
            .map(|c| Claim { colour: c.colour.or(made.colours.get(&c.id).copied()), ..c.clone() })
            .collect();
        political::regions_on_grid(&claims, era, ground.grid, ground.bodies, &ground.water, close_gaps_m)
    })?;
    for p in regions.polities.iter().filter(|p| p.standing.sureness == Sureness::Certain) {
        made.colours.entry(p.claim.id.clone()).or_insert(p.colour);
    }
    let notes = std::mem::take(&mut regions.notes);
    let product = Product { ground, regions: &regions, era, map_px: request.map_px };
    let mut written = clock.time(Stage::Rasters, || {
        let mut written = export::write_regions(&product, &dir)?;
        if plan.is_single {
            written.extend(export::write_water(ground, &dir, "")?);
        }
        Ok(written)
    })?;
    let content = if plan.is_single { VectorContent::All } else { VectorContent::Era };
    written.extend(clock.time(Stage::Vectors, || export::write_vectors(&product, content, &dir))?);
    written.extend(clock.time(Stage::Sheet, || export::write_sheet(&product, &dir))?);
    if let Some(frames) = &mut made.frames {
        clock.time(Stage::Frames, || {
            let options = SheetOptions { map_px: request.animation.map_px, dpi: FRAME_DPI };
            let sheet = export::sheet(&product, &options)?;
            frames.push(&sheet.rgb, sheet.width)
        })?;
    }
    if !plan.is_single {
        let next = plan.eras.iter().find(|e| **e > era).map(|e| e.first());
        let next = next.or_else(|| request.eras.end_of_last(&plan.claims));
        made.series.add(era, next, &regions);
        made.notes.extend(notes.iter().map(|n| format!("{era}: {n}")));
    } else {
        made.notes.extend(notes.iter().cloned());
    }
    made.outputs.extend(written);
    made.maps.push(EraMap {
        folder,
        era,
        elevation: format!("elevation{suffix}.tif"),
        polities: export::polity_records(&regions),
        notes,
    });
    Ok(())
}

/// How the eras were read.
fn eras_read(eras: &[Era]) -> String {
    match eras {
        [one] => one.described(),
        [first, .., last] => {
            format!(
                "{} eras from {} to {}",
                eras.len(),
                Span::of(first.first()).described(),
                Span::of(last.last()).described()
            )
        }
        [] => String::new(),
    }
}

/// The manifest of what was made; notes and run are still to be filled in.
fn manifest(
    request: &BuildRequest,
    plan: &Plan,
    made: &Made,
    ground_files: &[GroundFile],
    dir: &Path,
) -> Result<Manifest> {
    let era_record = |map: &EraMap| {
        let given = if plan.is_single { request.eras.given.clone() } else { map.era.to_string() };
        export::era_record(&given, map.era)
    };
    let last = plan.eras.iter().map(|e| e.last()).max().unwrap_or(Year(0));
    Ok(Manifest {
        program: "histmap".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        region: plan.pack.name.clone(),
        era: EraRecord {
            given: request.eras.given.clone(),
            read_as: eras_read(&plan.eras),
            first_astronomical: plan.eras.first().map_or(0, |e| e.first().0),
            last_astronomical: last.0,
        },
        seed: request.seed,
        crs: plan.grid.crs.name.clone(),
        geotransform: plan.grid.transform.to_gdal(),
        size: [plan.grid.cols, plan.grid.rows],
        pixel_is: "area".into(),
        vertical_datum: made.vertical_datum.clone(),
        block_means: made.block_means.clone().unwrap_or(BlockMeansRecord {
            free_rms_m: 0.0,
            free_worst_m: 0.0,
            free_blocks: 0,
            all_rms_m: 0.0,
        }),
        polities: if plan.is_single { made.maps.iter().flat_map(|m| m.polities.clone()).collect() } else { Vec::new() },
        eras: if plan.is_single {
            Vec::new()
        } else {
            made.maps
                .iter()
                .map(|m| EraMapRecord {
                    folder: m.folder.clone(),
                    era: era_record(m),
                    elevation: m.elevation.clone(),
                    polities: m.polities.clone(),
                    notes: m.notes.clone(),
                })
                .collect()
        },
        notes: Vec::new(),
        inputs: input_records(ground_files, plan)?,
        outputs: export::output_records(&made.outputs, dir)?,
        sources: source_records(&plan.pack, ground_files),
        run: RunRecord::default(),
    })
}

/// Times the stages and tells of them.
struct Clock<'a> {
    progress: &'a mut (dyn Progress + Send),
    seconds: Vec<StageSeconds>,
}

impl Clock<'_> {
    fn time<T>(&mut self, stage: Stage, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let begun = Instant::now();
        self.progress.begin(stage);
        let result = work()?;
        self.finish(stage, begun);
        Ok(result)
    }

    fn finish(&mut self, stage: Stage, begun: Instant) {
        let seconds = (begun.elapsed().as_secs_f64() * 1000.0).round() / 1000.0;
        self.progress.end(stage, seconds);
        // A stage that comes again, for another era, is added up.
        match self.seconds.iter_mut().find(|s| s.stage == stage.name()) {
            Some(known) => known.seconds = ((known.seconds + seconds) * 1000.0).round() / 1000.0,
            None => self.seconds.push(StageSeconds { stage: stage.name().to_string(), seconds }),
        }
    }
}

/// Checks the request as far as that goes without reading elevation.
fn plan(request: &BuildRequest) -> Result<Plan> {
    if let Some(px) = request.map_px.filter(|px| !(100..=16_000).contains(px)) {
        return Err(Error::argument("--map-px", px, "give 100 to 16000 pixels"));
    }
    check_animation(request)?;
    if request.classes_only && request.classes.is_none() {
        return Err(Error::argument(
            "--dem",
            "none, and no elevation classes",
            "give --elevation-classes FILE, or leave --dem out for the shipped model",
        ));
    }
    if request.close_gaps_m.is_some_and(|m| !(0.0..=100_000.0).contains(&m)) {
        let given = request.close_gaps_m.unwrap_or_default();
        return Err(Error::argument("--close-gaps", given, "give a width of 0 (none) to 100000 metres"));
    }
    let source = pack::open_pack(&request.region, &request.maps)?;
    let pack = pack::read_pack(&source)?;
    let ClaimsForBuild { claims, files: border_files, notes } =
        political::claims_with_borders(&pack, &request.borders)?;
    let eras = request.eras.resolve(&claims)?;
    political::require_claims(&claims, &eras, &pack.name)?;
    let is_single = request.eras.single().is_some();
    let crs = gdal_io::crs(request.crs.as_deref().unwrap_or(&pack.crs), "--crs")?;
    if crs.is_geographic {
        return Err(Error::GeographicCrs { crs: crs.name });
    }
    if gdal_io::metres_per_unit(&crs)?.is_some_and(|m| (m - 1.0).abs() > 1e-9) {
        return Err(Error::argument(
            "--crs",
            format!("{} is not in metres", crs.name),
            "choose a projected CRS in metres",
        ));
    }
    check_crs_suits(&crs, request.crs.is_some(), &pack)?;
    let resolution_m = request.resolution_m.unwrap_or(pack.resolution_m);
    let whole = grid_of(&crs, &pack.extent, resolution_m)?;
    let cells = whole.cols.max(whole.rows);
    if cells < FEWEST_CELLS {
        let across_m = cells as f64 * resolution_m;
        return Err(Error::argument(
            "--resolution",
            format!("{resolution_m} m makes {cells} cells of the whole region"),
            format!("give at most {:.0} m, for example {}", across_m / FEWEST_CELLS as f64, pack.resolution_m),
        ));
    }
    let grid = match &request.bbox {
        None => whole.clone(),
        Some(b) => {
            let p = &pack.extent;
            if b.west < p.west || b.south < p.south || b.east > p.east || b.north > p.north {
                return Err(Error::argument(
                    "--bbox",
                    format!("{},{},{},{} reaches outside the region '{}'", b.west, b.south, b.east, b.north, pack.name),
                    format!("stay within west,south,east,north = {},{},{},{}", p.west, p.south, p.east, p.north),
                ));
            }
            grid_of(&crs, b, resolution_m)?
        }
    };
    let slug = match eras[..] {
        [first, .., last] => format!("{}..{}", eras::slug(first), eras::slug(last)),
        [one] => eras::slug(one),
        [] => String::new(),
    };
    let out = request.out.clone().unwrap_or_else(|| Path::new("out").join(format!("{}-{slug}", pack.name)));
    check_resources(&grid, &out, eras.len())?;
    let (has_dem, has_crs) = (request.dem.is_some() || request.classes_only, request.crs.is_some());
    Ok(Plan {
        source,
        pack,
        claims,
        eras,
        is_single,
        whole,
        grid,
        has_dem,
        has_crs,
        out,
        border_files,
        notes,
        classes: None,
    })
}

/// Plan and ground with the request's elevation classes, which may be all that is known of the elevation.
fn with_classes(
    request: &BuildRequest,
    mut plan: Plan,
    mut ground: Ground,
    mut files: Vec<GroundFile>,
) -> Result<(Plan, Ground, Vec<GroundFile>)> {
    let Some(file) = &request.classes else { return Ok((plan, ground, files)) };
    let bodies = region::projected_bodies(&ground.bodies, &plan.grid.crs)?;
    let mut classes = classes::read_classes(file, &plan.whole, &bodies)?;
    plan.notes.append(&mut classes.notes);
    files.push(GroundFile::Path(file.path.clone()));
    if request.classes_only {
        ground.land = classes.ground();
        files.retain(|f| !matches!(f, GroundFile::Shipped(s) if s.name == crate::shipped::LAND.name));
    }
    plan.classes = Some(classes);
    Ok((plan, ground, files))
}

/// Draws the relief of `ring` (cells of the plan's grid) into the elevation classes; what contradicts them is returned.
fn hold_classes(plan: &Plan, terrain: &Terrain, relief: &mut Relief, ring: Window) -> Result<Vec<String>> {
    let Some(classes) = &plan.classes else { return Ok(Vec::new()) };
    let grid = plan.grid.crop(ring);
    let origin = grid.lattice_origin();
    let to_work = Transformer::new(&gdal_io::crs(gdal_io::WGS84, "--crs")?, &grid.crs)?;
    let cell_m = grid.transform.cell_width;
    let pinned = |cell: Cell| terrain.pins.iter().any(|p| p.cell == cell);
    let given: Vec<GivenHeight> = plan
        .pack
        .peaks
        .iter()
        .filter_map(|peak| {
            let p = to_work.point(Xy { x: peak.at.lon, y: peak.at.lat })?;
            let cell = terrain::lattice_cell(p.x / cell_m, -p.y / cell_m);
            pinned(cell).then(|| GivenHeight {
                name: format!("peak {}", peak.name),
                cell: Cell { col: cell.col - origin.col, row: cell.row - origin.row },
                z_m: peak.height_m,
            })
        })
        .collect();
    let halo = (terrain.body.cols - ring.cols) / 2;
    let is_land = |i: usize| terrain.body.at(i % ring.cols + halo, i / ring.cols + halo) == 0;
    classes.hold(&mut relief.elevation, &grid, &is_land, &given, STEP_M)
}

/// Cells along the longer side of a whole region, at the fewest.
const FEWEST_CELLS: usize = 20;

/// Refuses a projection made for another part of the world: one that does not lead back to where it came from, in which
/// a metre is not about a metre, or north not about upward.
fn check_crs_suits(crs: &Crs, is_asked_for: bool, pack: &RegionPack) -> Result<()> {
    let wgs84 = gdal_io::crs(gdal_io::WGS84, "--crs")?;
    let (forth, back) = (Transformer::new(&wgs84, crs)?, Transformer::new(crs, &wgs84)?);
    const STEP_DEG: f64 = 0.02;
    const METRES_PER_DEGREE: f64 = 111_200.0;
    let suits = |at: LonLat| {
        let image = |lon: f64, lat: f64| forth.point(Xy { x: lon, y: lat });
        let here = image(at.lon, at.lat)?;
        let returned = back.point(here)?;
        let scale = |to: Xy, degrees: f64| (to.x - here.x).hypot(to.y - here.y) / (degrees * METRES_PER_DEGREE);
        let east = scale(image(at.lon + STEP_DEG, at.lat)?, STEP_DEG * at.lat.to_radians().cos());
        let above = image(at.lon, at.lat + STEP_DEG)?;
        let north = scale(above, STEP_DEG);
        let turn_deg = (above.x - here.x).atan2(above.y - here.y).to_degrees().abs();
        let off = (returned.x - at.lon).abs().max((returned.y - at.lat).abs());
        Some(off < 1e-3 && turn_deg < 45.0 && [east, north].iter().all(|s| (0.5..2.0).contains(s)))
    };
    if pack.extent.outline(4).into_iter().all(|at| suits(at) == Some(true)) {
        return Ok(());
    }
    let e = &pack.extent;
    let (what, remedy) = match is_asked_for {
        true => ("--crs", format!("leave it out for the region's own, {}, or give a projected CRS", pack.crs)),
        false => ("region.toml, crs", "give a projected CRS".to_string()),
    };
    Err(Error::argument(
        what,
        format!("{} does not suit the region '{}': it is made for another part of the world", crs.name, pack.name),
        format!("{remedy} made for {}..{} E, {}..{} N", e.west, e.east, e.south, e.north),
    ))
}

/// Moving pictures need several eras and sensible frames.
fn check_animation(request: &BuildRequest) -> Result<()> {
    let AnimationOptions { frame_s, map_px } = request.animation;
    if !(0.02..=60.0).contains(&frame_s) {
        return Err(Error::argument("--frame-time", frame_s, "give 0.02 to 60 seconds"));
    }
    if !(100..=4000).contains(&map_px) {
        return Err(Error::argument("--frame-px", map_px, "give 100 to 4000 pixels"));
    }
    if !request.animate.is_empty() && request.eras.single().is_some() {
        return Err(Error::argument(
            "--animate",
            format!("'{}' is one map, which does not move", request.eras.given),
            "give several eras, such as --era 1100,1200,1300 or --era 1000..1400/50",
        ));
    }
    Ok(())
}

/// The grid of a box in longitude and latitude: the rectangle around its outline in the CRS, on whole cells.
fn grid_of(crs: &Crs, bounds: &LonLatBox, resolution_m: f64) -> Result<Grid> {
    let to_crs = Transformer::new(&gdal_io::crs(gdal_io::WGS84, "--crs")?, crs)?;
    let outline: Vec<Option<Xy>> =
        bounds.outline(64).into_iter().map(|p| to_crs.point(Xy { x: p.lon, y: p.lat })).collect();
    let extent = Extent::around(outline.iter().flatten().copied()).filter(|_| outline.iter().all(Option::is_some));
    let Some(extent) = extent else {
        return Err(Error::argument("--crs", format!("{} cannot show the region", crs.name), "choose one made for it"));
    };
    Grid::snapped(crs.clone(), extent, resolution_m)
}

/// Bytes of memory that a build takes per cell at its peak, as measured at 250 m, and of disk, at the most.
const MEMORY_PER_CELL: u64 = 72;
const DISK_PER_CELL: u64 = 14;
/// Bytes of disk per cell that each further era takes, at the most.
const DISK_PER_CELL_AND_ERA: u64 = 4;

fn check_resources(grid: &Grid, out: &Path, eras: usize) -> Result<()> {
    let (cols, rows) = (grid.cols as u64, grid.rows as u64);
    let cells = cols * rows;
    let memory = cells.saturating_mul(MEMORY_PER_CELL).saturating_add(400 << 20);
    resources::require(cols, rows, memory, "memory", resources::memory_available())?;
    let more = (eras as u64).saturating_sub(1).saturating_mul((40 << 20) + cells.saturating_mul(DISK_PER_CELL_AND_ERA));
    let disk = cells.saturating_mul(DISK_PER_CELL).saturating_add(40 << 20).saturating_add(more);
    resources::require(cols, rows, disk, "disk", gdal_io::disk_free(out))
}

/// Working folders of builds that are under way, and the folders above them that were made for them, deepest first.
fn unfinished() -> std::sync::MutexGuard<'static, (Vec<PathBuf>, Vec<PathBuf>)> {
    static FOLDERS: std::sync::Mutex<(Vec<PathBuf>, Vec<PathBuf>)> = std::sync::Mutex::new((Vec::new(), Vec::new()));
    FOLDERS.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Removes the working folders of builds that are under way, for a program that is about to be interrupted.
pub fn remove_unfinished() {
    let (work, parents) = std::mem::take(&mut *unfinished());
    // Nothing more can be done about one that will not go.
    work.iter().for_each(|folder| drop(std::fs::remove_dir_all(folder)));
    parents.iter().for_each(|folder| drop(std::fs::remove_dir(folder)));
}

/// The output folder under its working name; removed again unless kept.
struct OutputFolder {
    work: tempfile::TempDir,
    out: PathBuf,
    /// Goes after `work`.
    _parents: Parents,
}

/// Folders above the output that the run itself made; those that are empty at its end are removed again.
struct Parents(Vec<PathBuf>);

impl Parents {
    /// Makes `folder` and what is missing above it.
    fn make(folder: &Path) -> Result<Parents> {
        let missing = folder.ancestors().take_while(|p| !p.as_os_str().is_empty() && !p.exists());
        let parents = Parents(missing.map(Path::to_path_buf).collect());
        std::fs::create_dir_all(folder).map_err(|e| Error::write(folder, e))?;
        unfinished().1.extend(parents.0.iter().cloned());
        Ok(parents)
    }
}

impl Drop for Parents {
    fn drop(&mut self) {
        // The deepest first; one that holds something stays.
        self.0.iter().for_each(|p| drop(std::fs::remove_dir(p)));
        unfinished().1.retain(|p| !self.0.contains(p));
    }
}

impl OutputFolder {
    fn prepare(out: &Path, overwrite: bool) -> Result<OutputFolder> {
        if out.exists() {
            if !overwrite {
                return Err(Error::OutputExists { path: out.to_path_buf() });
            }
            let ours = out.join(crate::manifest::FILE_NAME).is_file();
            let empty = out.is_dir() && std::fs::read_dir(out).is_ok_and(|mut d| d.next().is_none());
            if !ours && !empty {
                return Err(Error::argument(
                    "--overwrite",
                    format!("{} was not made by histmap: it holds other files and no manifest.json", out.display()),
                    "choose another --out, or empty it yourself",
                ));
            }
        }
        let parent = match out.parent() {
            Some(p) if !p.as_os_str().is_empty() => p.to_path_buf(),
            _ => PathBuf::from("."),
        };
        let parents = Parents::make(&parent)?;
        let work =
            tempfile::Builder::new().prefix(".histmap-").tempdir_in(&parent).map_err(|e| Error::write(&parent, e))?;
        unfinished().0.push(work.path().to_path_buf());
        Ok(OutputFolder { work, out: out.to_path_buf(), _parents: parents })
    }

    fn path(&self) -> &Path {
        self.work.path()
    }

    /// Gives the folder its name, in place of an older one.
    fn keep(self) -> Result<PathBuf> {
        open_to_all(self.work.path())?;
        let fail = |e| Error::write(&self.out, e);
        let old = self.out.with_file_name(format!(
            ".histmap-old-{}-{}",
            std::process::id(),
            self.out.file_name().unwrap_or_default().to_string_lossy()
        ));
        let replaces = self.out.exists();
        if replaces {
            std::fs::rename(&self.out, &old).map_err(fail)?;
        }
        unfinished().0.retain(|f| f != self.work.path());
        let work = self.work.keep();
        if let Err(e) = std::fs::rename(&work, &self.out) {
            if replaces {
                // Put the older one back; the first error is the one to tell.
                let _ = std::fs::rename(&old, &self.out);
            }
            let _ = std::fs::remove_dir_all(&work);
            return Err(Error::write(&self.out, e));
        }
        if replaces {
            std::fs::remove_dir_all(&old).map_err(|e| Error::write(&old, e))?;
        }
        Ok(self.out)
    }
}

/// Temporary folders are private; a finished product has the usual permissions.
#[cfg(unix)]
fn open_to_all(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).map_err(|e| Error::write(path, e))
}

#[cfg(not(unix))]
fn open_to_all(_: &Path) -> Result<()> {
    Ok(())
}

/// Everything that binds the relief of `window` (cells of the plan's grid), and the rivers as they were laid, in the working
/// CRS. `bodies` are the ground's, in the working CRS.
fn constrain(
    plan: &Plan,
    ground: &Ground,
    bodies: &[WaterBody],
    window: Window,
) -> Result<(Terrain, Vec<River>, Vec<String>)> {
    let grid = &plan.grid;
    let cell_m = grid.transform.cell_width;
    let mut notes = Vec::new();
    let land = with_cells_of_at_least(&ground.land, cell_m, &plan.whole)?;
    let wgs84 = gdal_io::crs(gdal_io::WGS84, "--crs")?;
    let to_work = Transformer::new(&wgs84, &grid.crs)?;
    let place = CoarsePlace::of(&land_cell_m(&land, &plan.whole)?, cell_m);
    let roughness = RoughnessModel { gain: 1.0, quantum_m: land.quantum_m };
    let surface = CoarseSurface::new(land.values.clone(), place.coarse_cell_m, CoarseMode::Mean, &roughness);

    let halo = terrain::halo_cells(cell_m, place.span_cells);
    let region = window.grown(halo);
    let region_grid = grid.crop(region);
    let origin = grid.lattice_origin();
    let absolute = Window { col: origin.col + region.col, row: origin.row + region.row, ..region };
    let placement = placement(&grid.crs, &land, cell_m, absolute)?;
    check_cover(plan, &land, &placement)?;
    let sea_floor = match &ground.sea_floor {
        None => None,
        Some(floor) => {
            let smooth = RoughnessModel { gain: 0.0, quantum_m: 0.0 };
            let surface = CoarseSurface::new(floor.values.clone(), place.coarse_cell_m, CoarseMode::Mean, &smooth);
            Some(PlacedSurface { surface, placement: self::placement(&grid.crs, floor, cell_m, absolute)? })
        }
    };

    let areas: Vec<_> = bodies.iter().zip(1..).map(|(b, code)| (b.area.clone(), code)).collect();
    let body = gdal_io::rasterize(&areas, &region_grid)?;
    let bodies = bodies.iter().map(|b| BodyLevel { kind: b.kind, level_m: b.level_m as f32 }).collect();

    let (courses, rivers) = rivers_on_lattice(ground, &land, &surface, grid, &mut notes)?;
    let pins = pins(plan, &to_work, &mut notes);
    let terrain = Terrain {
        cell_m,
        coarse_span_cells: place.span_cells,
        straddle: terrain::Straddle::ByArea,
        land: PlacedSurface { surface, placement },
        sea_floor,
        body,
        body_window: absolute,
        bodies,
        rivers: courses,
        pins,
        intervals: None,
    };
    peaks_against_the_model(plan, &to_work, &terrain, &mut notes);
    Ok((terrain, rivers, notes))
}

/// Tells the summits that stand below the coarse elevation of their own cell, or of all cells around.
fn peaks_against_the_model(plan: &Plan, to_work: &Transformer, terrain: &Terrain, notes: &mut Vec<String>) {
    let (land, cell_m) = (&terrain.land, terrain.cell_m);
    for peak in &plan.pack.peaks {
        let Some(p) = to_work.point(Xy { x: peak.at.lon, y: peak.at.lat }) else { continue };
        let cell = terrain::lattice_cell(p.x / cell_m, -p.y / cell_m);
        let at = land.placement.at(cell.col, cell.row, 0.5, 0.5);
        let under = f64::from(land.surface.value_under(at));
        if under.is_finite() && peak.height_m < under {
            let around = (-1..=1).flat_map(|r| (-1..=1).map(move |c| (f64::from(c), f64::from(r))));
            let lowest = around
                .filter(|d| *d != (0.0, 0.0))
                .map(|(c, r)| f64::from(land.surface.value_under(Uv { u: at.u + c, v: at.v + r })))
                .fold(f64::INFINITY, f64::min);
            let more = if peak.height_m < lowest { " and below all cells around" } else { "" };
            notes.push(format!(
                "peak {} ({:.4} E, {:.4} N): its {} m lie {:.0} m below the coarse elevation there{more}",
                peak.name,
                peak.at.lon,
                peak.at.lat,
                peak.height_m,
                under - peak.height_m
            ));
        }
    }
}

/// `coarse`, averaged over as many of its cells as make one at least as large as a fine cell: finer detail than the map can
/// show is averaged, never sampled.
fn with_cells_of_at_least(coarse: &CoarseRaster, cell_m: f64, whole: &Grid) -> Result<CoarseRaster> {
    let size = land_cell_m(coarse, whole)?;
    let n = (cell_m / size.0.max(size.1) * 1.001).ceil().max(1.0) as usize;
    Ok(if n == 1 { coarse.clone() } else { coarse.averaged(n) })
}

/// Width and height of a coarse cell in the middle of the region, metres.
fn land_cell_m(coarse: &CoarseRaster, whole: &Grid) -> Result<(f64, f64)> {
    let back = Transformer::new(&whole.crs, &coarse.grid.crs)?;
    let forth = Transformer::new(&coarse.grid.crs, &whole.crs)?;
    let e = whole.extent();
    let middle = Xy { x: 0.5 * (e.min_x + e.max_x), y: 0.5 * (e.min_y + e.max_y) };
    let outside = || {
        Error::argument(
            "--dem",
            format!("its CRS {} does not reach the region", coarse.grid.crs.name),
            "give an elevation model of the region",
        )
    };
    let at = back.point(middle).ok_or_else(outside)?;
    let t = &coarse.grid.transform;
    let step = |dx: f64, dy: f64| {
        let p = forth.point(Xy { x: at.x + dx, y: at.y + dy })?;
        Some((p.x - middle.x).hypot(p.y - middle.y))
    };
    match (step(t.cell_width, 0.0), step(0.0, t.cell_height)) {
        (Some(w), Some(h)) if w > 0.0 && h > 0.0 => Ok((w, h)),
        _ => Err(outside()),
    }
}

/// Where the lattice lies in `coarse`.
fn placement(crs: &Crs, coarse: &CoarseRaster, cell_m: f64, absolute: Window) -> Result<Placement> {
    let transformer = Transformer::new(crs, &coarse.grid.crs)?;
    Placement::new(absolute, |nodes| {
        let mut xs: Vec<f64> = nodes.iter().map(|n| n.0 as f64 * cell_m).collect();
        let mut ys: Vec<f64> = nodes.iter().map(|n| -(n.1 as f64) * cell_m).collect();
        transformer.forward(&mut xs, &mut ys);
        if xs.iter().any(|x| !x.is_finite()) {
            return Err(Error::argument(
                "--crs",
                format!("{} cannot show the region", crs.name),
                "choose one made for it",
            ));
        }
        Ok(xs.iter().zip(&ys).map(|(&x, &y)| coarse.uv(Xy { x, y })).collect())
    })
}

/// The elevation model must lie under the whole map, not only under a part of it.
fn check_cover(plan: &Plan, land: &CoarseRaster, placement: &Placement) -> Result<()> {
    let origin = plan.grid.lattice_origin();
    let (mut outside, mut n) = (0u64, 0u64);
    for row in (0..plan.grid.rows as i64).step_by(16) {
        for col in (0..plan.grid.cols as i64).step_by(16) {
            let p = placement.at(origin.col + col, origin.row + row, 0.5, 0.5);
            n += 1;
            if p.u < 0.0 || p.v < 0.0 || p.u > land.values.cols as f64 || p.v > land.values.rows as f64 {
                outside += 1;
            }
        }
    }
    if outside == 0 {
        return Ok(());
    }
    if !plan.has_dem {
        let bounds = &plan.pack.extent;
        let (what, remedy) = match plan.has_crs {
            true => ("--crs", format!("leave it out for the region's own, {}, or choose one", plan.pack.crs)),
            false => ("region.toml, crs", "choose one".to_string()),
        };
        return Err(Error::argument(
            what,
            format!(
                "in {} the rectangle around the region reaches beyond the elevation data ({:.0} % of it lies outside)",
                plan.grid.crs.name,
                100.0 * outside as f64 / n as f64
            ),
            format!("{remedy} whose central meridian is near {:.0} E", 0.5 * (bounds.west + bounds.east)),
        ));
    }
    let e = land.grid.extent();
    Err(Error::argument(
        "--dem",
        format!(
            "it covers {:.4} .. {:.4} east, {:.4} .. {:.4} north ({}); {:.0} % of the map lies outside",
            e.min_x,
            e.max_x,
            e.min_y,
            e.max_y,
            land.grid.crs.name,
            100.0 * outside as f64 / n as f64
        ),
        "give a --bbox inside it, or an elevation model of the whole region",
    ))
}

/// Rivers laid into their valleys: as courses on the lattice, and as lines in the working CRS.
fn rivers_on_lattice(
    ground: &Ground,
    land: &CoarseRaster,
    surface: &CoarseSurface,
    grid: &Grid,
    notes: &mut Vec<String>,
) -> Result<(Vec<RiverCourse>, Vec<River>)> {
    let wgs84 = gdal_io::crs(gdal_io::WGS84, "--crs")?;
    let to_land = Transformer::new(&wgs84, &land.grid.crs)?;
    let to_work = Transformer::new(&land.grid.crs, &grid.crs)?;
    let to_wgs84 = Transformer::new(&grid.crs, &wgs84)?;
    let cell_m = grid.transform.cell_width;
    let drawn: Vec<RiverOnCoarse> = ground
        .rivers
        .iter()
        .map(|r| RiverOnCoarse {
            name: r.name.clone(),
            mouth: r.mouth.clone(),
            rank: r.rank,
            line: r.line.0.iter().filter_map(|c| to_land.point(Xy { x: c.x, y: c.y })).map(|p| land.uv(p)).collect(),
            mouth_level_m: mouth_level(r, &ground.bodies),
        })
        .collect();
    let laid = constraint::lay_rivers(&drawn, surface, &RiverOptions::default());
    let (mut courses, mut rivers) = (Vec::new(), Vec::new());
    let reaches =
        ground.rivers.iter().zip(laid).flat_map(|(river, laid)| laid.into_iter().map(move |reach| (river, reach)));
    for (river, LaidRiver { line, bed_m, worst_cut_m, worst_cut_at }) in reaches {
        let mut xs: Vec<f64> = line.iter().map(|&p| land.xy(p).x).collect();
        let mut ys: Vec<f64> = line.iter().map(|&p| land.xy(p).y).collect();
        to_work.forward(&mut xs, &mut ys);
        if line.len() < 2 || xs.iter().any(|x| !x.is_finite()) {
            continue;
        }
        if worst_cut_m > RIVER_CUT_WORTH_A_NOTE_M {
            let at =
                to_work.point(land.xy(worst_cut_at)).filter(|p| grid.window().contains(grid.transform.cell_at(*p)));
            if let Some(place) = at.and_then(|p| to_wgs84.point(p)) {
                notes.push(format!(
                    "river {}: its bed differs by {worst_cut_m:.0} m from the coarse elevation near {:.2} E, {:.2} N; line and \
                     elevation disagree there",
                    river.name, place.x, place.y
                ));
            }
        }
        let points = xs
            .iter()
            .zip(&ys)
            .zip(&bed_m)
            .map(|((x, y), &z_m)| CoursePoint { x_cells: x / cell_m, y_cells: -y / cell_m, z_m })
            .collect();
        courses.push(RiverCourse { points, rank: river.rank });
        let line = LineString::new(xs.into_iter().zip(ys).map(|(x, y)| geo::Coord { x, y }).collect());
        rivers.push(River { line, ..river.clone() });
    }
    Ok((courses, rivers))
}

/// A bed that departs this much from the coarse ground is worth telling.
const RIVER_CUT_WORTH_A_NOTE_M: f64 = 150.0;

/// The level of the sea or lake that a river ends in, by its name.
fn mouth_level(river: &River, bodies: &[WaterBody]) -> Option<f64> {
    bodies.iter().find(|b| !river.mouth.is_empty() && b.name == river.mouth).map(|b| b.level_m)
}

/// Surveyed summits on the lattice. Two in one cell: the higher one stands.
fn pins(plan: &Plan, to_work: &Transformer, notes: &mut Vec<String>) -> Vec<Pin> {
    let cell_m = plan.grid.transform.cell_width;
    let mut pins: Vec<(Pin, &str)> = Vec::new();
    let mut peaks: Vec<_> = plan.pack.peaks.iter().collect();
    peaks.sort_by(|a, b| b.height_m.total_cmp(&a.height_m).then(a.name.cmp(&b.name)));
    for peak in peaks {
        let Some(p) = to_work.point(Xy { x: peak.at.lon, y: peak.at.lat }) else { continue };
        let cell = terrain::lattice_cell(p.x / cell_m, -p.y / cell_m);
        match pins.iter().find(|(other, _)| other.cell == cell) {
            Some((_, other)) => {
                notes.push(format!("{} lies in the same cell as {other}, which is higher and keeps it", peak.name))
            }
            None => pins.push((Pin { cell, z_m: peak.height_m as f32, summit: true }, &peak.name)),
        }
    }
    pins.into_iter().map(|(p, _)| p).collect()
}

/// Elevations are kept to this, metres: finer than any source, and files of half the size.
const STEP_M: f64 = 1.0 / 32.0;

fn round_to_step(elevation: &mut Raster<f32>) {
    use rayon::prelude::*;
    const STEP_M: f32 = self::STEP_M as f32;
    elevation.values.par_iter_mut().for_each(|v| *v = (*v / STEP_M).round() * STEP_M);
}

/// Codes of [`WaterKind`] on the plan's grid.
fn water_mask(terrain: &Terrain, relief: &Relief, plan: &Plan, ring: Window) -> Raster<u8> {
    let halo = (terrain.body.cols - ring.cols) / 2;
    let mut mask = Raster::filled(plan.grid.cols, plan.grid.rows, WaterKind::Land as u8);
    for row in 0..plan.grid.rows {
        for col in 0..plan.grid.cols {
            let code = match terrain.body.at(col + 1 + halo, row + 1 + halo) {
                0 if relief.river.at(col + 1, row + 1) != 0 => WaterKind::River,
                0 => WaterKind::Land,
                k => terrain.bodies[k as usize - 1].kind,
            };
            mask.set(col, row, code as u8);
        }
    }
    mask
}

fn input_records(ground: &[GroundFile], plan: &Plan) -> Result<Vec<FileRecord>> {
    let mut out = Vec::new();
    for file in ground {
        out.push(match file {
            GroundFile::Shipped(f) => FileRecord::of_bytes(f.bytes, &format!("shipped:data/{}", f.name)),
            GroundFile::Path(p) => FileRecord::of_file(p, &region::file_label(p))?,
        });
    }
    for name in plan.source.file_names() {
        out.push(FileRecord::of_bytes(&plan.source.read(&name)?, &format!("pack:{}/{name}", plan.pack.name)));
    }
    for p in &plan.border_files {
        out.push(FileRecord::of_file(p, &region::file_label(p))?);
    }
    Ok(out)
}

fn source_records(pack: &RegionPack, ground: &[GroundFile]) -> Vec<SourceRecord> {
    let data = ground.iter().filter_map(|f| match f {
        GroundFile::Shipped(f) => Some(SourceRecord {
            id: format!("data/{}", f.name),
            citation: f.source.into(),
            licence: f.licence.into(),
            usage: "data".into(),
        }),
        GroundFile::Path(_) => None,
    });
    let works = pack.sources.iter().map(|s| SourceRecord {
        id: s.id.clone(),
        citation: s.citation.clone(),
        licence: s.licence.clone(),
        usage: s.usage.as_str().into(),
    });
    data.chain(works).collect()
}
