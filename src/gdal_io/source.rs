//! Where a dataset comes from, and opening it with errors that say what is wrong with the file.

use super::log;
use crate::error::{Error, Result};
use gdal::{Dataset, DatasetOptions, GdalOpenFlags};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A dataset to read: a file, or the bytes of one.
#[derive(Debug, Clone, Copy)]
pub enum Source<'a> {
    /// A file or folder, or a GDAL virtual path (`/vsizip/...`).
    Path(&'a Path),
    /// A file's content in memory.
    Bytes {
        /// Name for messages, with the extension by which GDAL tells formats.
        name: &'a str,
        /// The content.
        bytes: &'a [u8],
    },
}

impl<'a> From<&'a Path> for Source<'a> {
    fn from(path: &'a Path) -> Self {
        Source::Path(path)
    }
}

impl<'a> From<&'a PathBuf> for Source<'a> {
    fn from(path: &'a PathBuf) -> Self {
        Source::Path(path)
    }
}

impl Source<'_> {
    /// How messages call it.
    pub fn label(&self) -> String {
        match self {
            Source::Path(path) => path.display().to_string(),
            Source::Bytes { name, .. } => name.to_string(),
        }
    }
}

/// What a dataset is opened as.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind {
    Raster,
    Vector,
}

impl Kind {
    pub(super) fn expected(self) -> &'static str {
        match self {
            Kind::Raster => "a complete raster that GDAL reads, such as GeoTIFF; fetch or copy it again, or convert it",
            Kind::Vector => {
                "a complete vector file that GDAL reads, such as GeoJSON, GeoPackage or Shapefile; fetch or copy it \
                 again, or convert it"
            }
        }
    }
}

/// An open dataset. The in-memory file behind it goes after the dataset is closed: fields drop in this order.
pub(super) struct Opened {
    pub(super) dataset: Dataset,
    _memory: Option<MemoryFile>,
}

/// Opens `source` for reading.
pub(super) fn open(source: Source<'_>, kind: Kind) -> Result<Opened> {
    open_as(source, kind, None)
}

/// Opens `source` for reading; a Shapefile's texts are in `encoding`, where it is given.
pub(super) fn open_as(source: Source<'_>, kind: Kind, encoding: Option<&str>) -> Result<Opened> {
    log::start();
    let label = source.label();
    let (path, memory) = match source {
        Source::Path(path) => {
            if !path.to_string_lossy().starts_with("/vsi") {
                let about = std::fs::metadata(path).map_err(|e| Error::read(path, e))?;
                if about.is_file() {
                    // Says "permission denied" where GDAL would only say that it knows no such format.
                    std::fs::File::open(path).map_err(|e| Error::read(path, e))?;
                    if about.len() == 0 {
                        return Err(empty(&label, kind));
                    }
                }
            }
            (path.to_path_buf(), None)
        }
        Source::Bytes { name, bytes } => {
            if bytes.is_empty() {
                return Err(empty(&label, kind));
            }
            let memory = MemoryFile::with_content(name, bytes)?;
            (memory.path.clone(), Some(memory))
        }
    };
    let flags = match kind {
        Kind::Raster => GdalOpenFlags::GDAL_OF_RASTER,
        Kind::Vector => GdalOpenFlags::GDAL_OF_VECTOR,
    };
    // Open options that other drivers do not know are passed over by GDAL.
    let encoding = encoding.map(|e| format!("ENCODING={e}"));
    let vector_options: Vec<&str> =
        ["DATE_AS_STRING=YES", "ARRAY_AS_STRING=YES"].into_iter().chain(encoding.as_deref()).collect();
    let options = DatasetOptions {
        open_flags: flags | GdalOpenFlags::GDAL_OF_READONLY | GdalOpenFlags::GDAL_OF_VERBOSE_ERROR,
        open_options: (kind == Kind::Vector).then_some(&vector_options[..]),
        ..Default::default()
    };
    match Dataset::open_ex(&path, options) {
        Ok(dataset) => Ok(Opened { dataset, _memory: memory }),
        Err(e) => {
            let said = log::cause(&e);
            let found = if said.is_empty() || said.contains("not recognized as") {
                "not a format that GDAL knows, or cut short".to_string()
            } else {
                format!("GDAL says \"{said}\"")
            };
            Err(Error::content(label, found, kind.expected()))
        }
    }
}

fn empty(label: &str, kind: Kind) -> Error {
    Error::content(label, "the file is empty", kind.expected())
}

/// A file in GDAL's memory file system with a folder of its own; whatever is in the folder goes when it is dropped.
pub(super) struct MemoryFile {
    pub(super) path: PathBuf,
    folder: PathBuf,
}

impl MemoryFile {
    /// A name not yet in use that ends in the file name of `name`; nothing is there yet.
    pub(super) fn named(name: &str) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let file = Path::new(name).file_name().map_or("data".into(), |n| n.to_string_lossy().replace('\0', ""));
        let folder = PathBuf::from(format!("/vsimem/histmap/{}", COUNT.fetch_add(1, Ordering::Relaxed)));
        MemoryFile { path: folder.join(file), folder }
    }

    /// A file holding a copy of `bytes`.
    fn with_content(name: &str, bytes: &[u8]) -> Result<Self> {
        let file = MemoryFile::named(name);
        gdal::vsi::create_mem_file(&file.path, bytes.to_vec()).map_err(|e| Error::read(name, log::cause(&e)))?;
        Ok(file)
    }
}

impl Drop for MemoryFile {
    fn drop(&mut self) {
        for name in gdal::vsi::read_dir(&self.folder, true).unwrap_or_default() {
            let _ = gdal::vsi::unlink_mem_file(self.folder.join(name));
        }
        let _ = gdal::vsi::unlink_mem_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_leave_nothing_behind_in_memory() {
        let json = br#"{"type":"FeatureCollection","features":[]}"#;
        let opened = open(Source::Bytes { name: "a.geojson", bytes: json }, Kind::Vector).unwrap();
        let path = opened._memory.as_ref().unwrap().path.clone();
        assert!(gdal::vsi::call_on_mem_file_bytes(&path, |b| b.len()).is_ok());
        drop(opened);
        assert!(gdal::vsi::call_on_mem_file_bytes(&path, |b| b.len()).is_err());
    }

    #[test]
    fn missing_empty_and_foreign_files_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let say = |path: &Path| match open(Source::Path(path), Kind::Raster) {
            Err(e) => e.to_string(),
            Ok(_) => panic!("opened"),
        };
        let path = folder.path().join("dem.tif");
        assert!(say(&path).contains("No such file"), "{}", say(&path));
        std::fs::write(&path, b"").unwrap();
        assert!(say(&path).contains("the file is empty"));
        std::fs::write(&path, b"hello").unwrap();
        assert!(say(&path).contains("dem.tif: not a format that GDAL knows"), "{}", say(&path));
    }
}
