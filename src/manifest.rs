//! The manifest of a build: what it was made from, how, and the hash of every file, so that anyone can check it again.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Name of the manifest in the output folder.
pub const FILE_NAME: &str = "manifest.json";

/// `manifest.json`. All but [`Manifest::run`] is the same in every run of the same build.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Always "histmap".
    pub program: String,
    /// Version of the program.
    pub version: String,
    /// Region pack.
    pub region: String,
    /// The era asked for.
    pub era: EraRecord,
    /// Seed of the noise.
    pub seed: u64,
    /// Working CRS.
    pub crs: String,
    /// GDAL geotransform: west edge, cell width, 0, north edge, 0, minus cell height; cells are areas.
    pub geotransform: [f64; 6],
    /// Columns and rows.
    pub size: [usize; 2],
    /// Cells are areas, not points.
    pub pixel_is: String,
    /// Vertical datum of the elevations.
    pub vertical_datum: String,
    /// Root mean square and worst difference of block means to the coarse elevation, metres.
    pub block_means: BlockMeansRecord,
    /// The polities drawn.
    pub polities: Vec<PolityRecord>,
    /// What deserves a reader's attention: rivers against the elevation, claims left out, and the like.
    pub notes: Vec<String>,
    /// Every input with its hash.
    pub inputs: Vec<FileRecord>,
    /// Every output with its hash, except this file.
    pub outputs: Vec<FileRecord>,
    /// Data that the result rests on, and the works that the pack names, each with what was done with it.
    pub sources: Vec<SourceRecord>,
    /// What differs from run to run.
    pub run: RunRecord,
}

/// How the era was read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EraRecord {
    /// As given.
    pub given: String,
    /// As read, in words.
    pub read_as: String,
    /// First year, astronomical numbering.
    pub first_astronomical: i32,
    /// Last year, astronomical numbering, included.
    pub last_astronomical: i32,
}

/// Agreement of the relief with the coarse elevation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BlockMeansRecord {
    /// Over blocks free of rivers, shores and summits, metres.
    pub free_rms_m: f64,
    /// Worst of those, metres.
    pub free_worst_m: f64,
    /// How many of those.
    pub free_blocks: u64,
    /// Over all blocks with land, metres.
    pub all_rms_m: f64,
}

/// A polity drawn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PolityRecord {
    /// Value in regions.tif.
    pub code: u16,
    /// Stable key.
    pub id: String,
    /// English name.
    pub name: String,
    /// Years of the claim, in words.
    pub years: String,
    /// Area inside the map, on the ellipsoid, square kilometres.
    pub area_km2: f64,
    /// How well the outline is known.
    pub certainty: String,
    /// Keys of its sources.
    pub sources: Vec<String>,
}

/// A file with its hash.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileRecord {
    /// Path: relative to the output folder for outputs, as given for inputs.
    pub path: String,
    /// Bytes.
    pub bytes: u64,
    /// SHA-256, hexadecimal.
    pub sha256: String,
}

/// A source with its licence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SourceRecord {
    /// Short key.
    pub id: String,
    /// Citation.
    pub citation: String,
    /// Licence.
    pub licence: String,
    /// What was done with it: `data`, `taken`, `compared`, `read` or `further-reading`.
    #[serde(rename = "use", default)]
    pub usage: String,
}

/// What differs from run to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct RunRecord {
    /// The command line.
    pub command: String,
    /// Worker threads.
    pub threads: usize,
    /// GDAL's version.
    pub gdal: String,
    /// Seconds by stage, in order.
    pub seconds: Vec<StageSeconds>,
}

/// Time that a stage took.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StageSeconds {
    /// Stage.
    pub stage: String,
    /// Seconds.
    pub seconds: f64,
}

impl FileRecord {
    /// The record of the file at `path`, listed as `name`.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn of_file(path: &Path, name: &str) -> Result<FileRecord> {
        let mut file = File::open(path).map_err(|e| Error::read(path, e))?;
        let mut hash = Sha256::new();
        let mut buffer = vec![0u8; 1 << 20];
        let mut bytes = 0;
        loop {
            let n = file.read(&mut buffer).map_err(|e| Error::read(path, e))?;
            if n == 0 {
                break;
            }
            bytes += n as u64;
            hash.update(&buffer[..n]);
        }
        Ok(FileRecord { path: name.to_string(), bytes, sha256: hex(&hash.finalize()) })
    }

    /// The record of bytes held in memory.
    pub fn of_bytes(bytes: &[u8], name: &str) -> FileRecord {
        FileRecord { path: name.to_string(), bytes: bytes.len() as u64, sha256: hex(&Sha256::digest(bytes)) }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

impl Manifest {
    /// The manifest in `folder`.
    ///
    /// # Errors
    /// [`Error::Read`], or [`Error::Content`] when it is not a manifest.
    pub fn read(folder: &Path) -> Result<Manifest> {
        let path = folder.join(FILE_NAME);
        let text = std::fs::read_to_string(&path).map_err(|e| Error::read(&path, e))?;
        serde_json::from_str(&text)
            .map_err(|e| Error::content(path.display(), e, "a manifest written by histmap build; build it again"))
    }

    /// Writes it into `folder`.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn write(&self, folder: &Path) -> Result<()> {
        let path = folder.join(FILE_NAME);
        let mut text = serde_json::to_string_pretty(self).map_err(|e| Error::write(&path, e))?;
        text.push('\n');
        std::fs::write(&path, text).map_err(|e| Error::write(&path, e))
    }
}

/// Files that GIS programs leave beside what they read: statistics, and a database's journals.
fn is_readers_own(name: &str) -> bool {
    [".aux.xml", "-wal", "-shm", "-journal", ".qmd"].iter().any(|end| name.ends_with(end))
}

/// Compares every output file in `folder` with its manifest; returns how many agree.
///
/// # Errors
/// [`Error::Verify`] lists files that are missing, changed or not in the manifest; [`Error::NoBuild`] when there is no
/// manifest; [`Error::Read`] and [`Error::Content`] when it cannot be read.
pub fn verify(folder: &Path) -> Result<usize> {
    let refuse = |found| Err(Error::NoBuild { path: folder.to_path_buf(), found });
    if !folder.exists() {
        return refuse("there is no such folder");
    }
    if !folder.is_dir() {
        return refuse("it is a file");
    }
    if !folder.join(FILE_NAME).exists() {
        return refuse("it holds no manifest.json");
    }
    let manifest = Manifest::read(folder)?;
    let mut problems = Vec::new();
    for record in &manifest.outputs {
        // A manifest is input too: it may not send us outside its folder.
        if Path::new(&record.path).components().any(|c| !matches!(c, std::path::Component::Normal(_))) {
            problems.push(format!("{}: not a file name inside the folder", record.path));
            continue;
        }
        match FileRecord::of_file(&folder.join(&record.path), &record.path) {
            Err(_) => problems.push(format!("{}: missing or unreadable", record.path)),
            Ok(found) if found.bytes != record.bytes => {
                problems.push(format!("{}: {} bytes, the manifest says {}", record.path, found.bytes, record.bytes));
            }
            Ok(found) if found.sha256 != record.sha256 => problems.push(format!("{}: contents differ", record.path)),
            Ok(_) => {}
        }
    }
    let entries = std::fs::read_dir(folder).map_err(|e| Error::read(folder, e))?;
    let mut extra: Vec<String> = entries
        .filter_map(|e| e.ok())
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .filter(|n| !is_readers_own(n))
        .filter(|n| n != FILE_NAME && !manifest.outputs.iter().any(|o| &o.path == n))
        .collect();
    extra.sort();
    problems.extend(extra.into_iter().map(|n| format!("{n}: not in the manifest")));
    if problems.is_empty() {
        return Ok(manifest.outputs.len());
    }
    Err(Error::Verify { path: folder.to_path_buf(), count: problems.len(), list: problems.join("\n") })
}
