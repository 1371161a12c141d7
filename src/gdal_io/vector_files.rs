//! Which vector files a path stands for: itself, or those in a folder or a zip archive.

use super::log;
use crate::error::{Error, Result};
use std::path::{Path, PathBuf};

/// A vector file that GDAL can open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VectorFile {
    /// What to open: a path on disk, or one inside an archive (`/vsizip/...`).
    pub path: PathBuf,
    /// How messages call it.
    pub label: String,
    /// Its name without folder and ending.
    pub stem: String,
    /// The files on disk that it consists of: the archive, or itself with what lies beside it (a Shapefile's parts).
    pub on_disk: Vec<PathBuf>,
}

/// Endings by which files are picked from a folder or archive.
const ENDINGS: [&str; 7] = ["geojson", "topojson", "shp", "gpkg", "fgb", "kml", "gml"];
/// Parts of a Shapefile, beside the one that is opened.
const SHAPEFILE_PARTS: [&str; 4] = ["dbf", "shx", "prj", "cpg"];

/// The vector files that `path` stands for, in order of name: a folder's and an archive's own, or the file itself. Folders
/// are not searched deeper; archives are. Files ending in `.json` count where there is nothing else.
///
/// # Errors
/// [`Error::Read`] when there is no such path or it cannot be listed; [`Error::Content`] when it holds no vector file.
pub fn vector_files(path: &Path) -> Result<Vec<VectorFile>> {
    let found = if path.starts_with("/vsizip") {
        vec![single(path, path.display().to_string(), vec![])]
    } else if std::fs::metadata(path).map_err(|e| Error::read(path, e))?.is_dir() {
        in_folder(path)?
    } else if has_ending(path, &["zip"]) {
        in_archive(path)?
    } else {
        vec![single(path, path.display().to_string(), with_parts(path))]
    };
    if found.is_empty() {
        let expected = "GeoJSON, TopoJSON, Shapefile, GeoPackage, FlatGeobuf, KML or GML";
        return Err(Error::content(path.display(), "no vector file in it", expected));
    }
    Ok(found)
}

fn single(path: &Path, label: String, on_disk: Vec<PathBuf>) -> VectorFile {
    let stem = path.file_stem().map_or(String::new(), |s| s.to_string_lossy().into_owned());
    VectorFile { path: path.to_path_buf(), label, stem, on_disk }
}

fn has_ending(path: &Path, endings: &[&str]) -> bool {
    path.extension().and_then(|e| e.to_str()).is_some_and(|e| endings.iter().any(|x| x.eq_ignore_ascii_case(e)))
}

/// The file, and the other parts of a Shapefile.
fn with_parts(path: &Path) -> Vec<PathBuf> {
    let parts = SHAPEFILE_PARTS.iter().flat_map(|e| [path.with_extension(e), path.with_extension(e.to_uppercase())]);
    let is_shapefile = has_ending(path, &["shp"]);
    std::iter::once(path.to_path_buf()).chain(parts.filter(|p| is_shapefile && p.is_file())).collect()
}

/// Those of `names` that are vector files, in order.
fn picked(mut names: Vec<PathBuf>) -> Vec<PathBuf> {
    let is_hidden = |p: &PathBuf| {
        p.components().any(|c| c.as_os_str().to_string_lossy().starts_with("__MACOSX"))
            || p.file_name().is_none_or(|n| n.to_string_lossy().starts_with('.'))
    };
    names.retain(|p| !is_hidden(p));
    names.sort();
    let endings: &[&str] = if names.iter().any(|p| has_ending(p, &ENDINGS)) { &ENDINGS } else { &["json"] };
    names.retain(|p| has_ending(p, endings));
    names
}

fn in_folder(folder: &Path) -> Result<Vec<VectorFile>> {
    let entries = std::fs::read_dir(folder).map_err(|e| Error::read(folder, e))?;
    let files: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).filter(|p| p.is_file()).collect();
    let mut found = Vec::new();
    for archive in files.iter().filter(|p| has_ending(p, &["zip"])) {
        found.extend(in_archive(archive)?);
    }
    found.extend(picked(files).iter().map(|p| single(p, p.display().to_string(), with_parts(p))));
    found.sort_by(|a, b| a.label.cmp(&b.label));
    Ok(found)
}

fn in_archive(archive: &Path) -> Result<Vec<VectorFile>> {
    log::start();
    // GDAL reads an archive by name wherever the work is done: a relative path is as good, but says less.
    let absolute = std::path::absolute(archive).map_err(|e| Error::read(archive, e))?;
    let root = PathBuf::from(format!("/vsizip/{{{}}}", absolute.display()));
    let names = gdal::vsi::read_dir(&root, true)
        .map_err(|_| Error::content(archive.display(), "it cannot be read as a zip archive", "a complete archive"))?;
    let label = |name: &Path| format!("{}/{}", archive.display(), name.display());
    Ok(picked(names).iter().map(|n| single(&root.join(n), label(n), vec![archive.to_path_buf()])).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_stands_for_its_vector_files() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["b.geojson", "a.shp", "a.dbf", "a.PRJ", "index.json", ".hidden.geojson", "notes.txt"] {
            std::fs::write(dir.path().join(name), "x").unwrap();
        }
        let found = vector_files(dir.path()).unwrap();
        assert_eq!(found.iter().map(|f| f.stem.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        let parts: Vec<_> = found[0].on_disk.iter().map(|p| p.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(parts, ["a.shp", "a.dbf", "a.PRJ"]);
        for name in ["b.geojson", "a.shp"] {
            std::fs::remove_file(dir.path().join(name)).unwrap();
        }
        assert_eq!(vector_files(dir.path()).unwrap()[0].stem, "index");
        let empty = tempfile::tempdir().unwrap();
        assert!(vector_files(empty.path()).unwrap_err().to_string().contains("no vector file"));
        assert!(vector_files(&empty.path().join("none")).is_err());
        let broken = empty.path().join("a.zip");
        std::fs::write(&broken, "no zip").unwrap();
        assert!(vector_files(&broken).is_err());
    }
}
