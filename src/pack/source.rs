//! Where a pack's files come from: the binary, or a folder.

use crate::borders::Problem;
use crate::error::{Error, Result};
use include_dir::{Dir, include_dir};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Larger files are refused.
const MAX_BYTES: u64 = 256 << 20;

static SHIPPED: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/maps");

/// The files of one pack.
#[derive(Debug, Clone)]
pub struct PackSource {
    name: String,
    place: Place,
}

#[derive(Debug, Clone)]
enum Place {
    /// A folder inside the binary.
    Shipped(&'static str),
    /// A folder on disk.
    Folder(PathBuf),
    /// Files by name.
    #[cfg(test)]
    Memory(std::collections::BTreeMap<String, Vec<u8>>),
}

impl PackSource {
    /// The packs inside the binary, in order of name.
    pub fn shipped() -> Vec<PackSource> {
        let mut packs: Vec<PackSource> = SHIPPED
            .dirs()
            .filter_map(|d| d.path().to_str())
            .filter(|d| SHIPPED.get_file(format!("{d}/region.toml")).is_some())
            .map(|d| PackSource { name: d.to_string(), place: Place::Shipped(d) }.named())
            .collect();
        packs.sort_by(|a, b| a.name.cmp(&b.name));
        packs
    }

    /// The pack in the folder `path`.
    ///
    /// # Errors
    /// [`Error::Read`] when it is no folder.
    pub fn folder(path: &Path) -> Result<PackSource> {
        if !path.is_dir() {
            return Err(Error::read(path, "there is no such folder; a region pack is a folder with a region.toml"));
        }
        let absolute = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        let name = absolute.file_name().map_or(String::new(), |n| n.to_string_lossy().into_owned());
        Ok(PackSource { name, place: Place::Folder(path.to_path_buf()) }.named())
    }

    /// The packs in the folder `dir`: its folders that hold a `region.toml`, in order of name.
    ///
    /// # Errors
    /// [`Error::Read`] when the folder cannot be listed.
    pub fn folders_in(dir: &Path) -> Result<Vec<PackSource>> {
        let entries = std::fs::read_dir(dir).map_err(|e| Error::read(dir, e))?;
        let mut paths: Vec<PathBuf> =
            entries.filter_map(|e| Some(e.ok()?.path())).filter(|p| p.join("region.toml").is_file()).collect();
        paths.sort();
        paths.iter().map(|p| PackSource::folder(p)).collect()
    }

    /// Files in memory.
    #[cfg(test)]
    pub(crate) fn memory(files: impl IntoIterator<Item = (&'static str, Vec<u8>)>) -> PackSource {
        let files = files.into_iter().map(|(name, bytes)| (name.to_string(), bytes)).collect();
        PackSource { name: "test".into(), place: Place::Memory(files) }.named()
    }

    /// The same under the name that its `region.toml` gives, when it gives one.
    fn named(self) -> PackSource {
        match super::region_toml::name_of(&self) {
            Some(name) => PackSource { name, ..self },
            None => self,
        }
    }

    /// What `--region` takes: the name in `region.toml`, or the folder's where that cannot be read.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The folder's own name; `None` where there is none.
    pub(crate) fn folder_name(&self) -> Option<String> {
        match &self.place {
            Place::Shipped(dir) => Some((*dir).to_string()),
            Place::Folder(path) => Some(path.canonicalize().ok()?.file_name()?.to_string_lossy().into_owned()),
            #[cfg(test)]
            Place::Memory(_) => None,
        }
    }

    /// `built in`, or the folder.
    pub fn origin(&self) -> String {
        match &self.place {
            Place::Shipped(_) => "built in".to_string(),
            Place::Folder(path) => path.display().to_string(),
            #[cfg(test)]
            Place::Memory(_) => "memory".to_string(),
        }
    }

    /// The pack's name and where it comes from, for messages.
    pub(crate) fn origin_of_pack(&self) -> String {
        format!("region pack '{}' ({})", self.name, self.origin())
    }

    /// The names of its files, in order; files in folders of its own are left out.
    pub fn file_names(&self) -> Vec<String> {
        let name_of = |p: &Path| Some(p.file_name()?.to_str()?.to_string());
        let mut names: Vec<String> = match &self.place {
            Place::Shipped(dir) => {
                SHIPPED.get_dir(dir).into_iter().flat_map(|d| d.files()).filter_map(|f| name_of(f.path())).collect()
            }
            Place::Folder(path) => std::fs::read_dir(path)
                .into_iter()
                .flatten()
                .filter_map(|e| Some(e.ok()?.path()))
                .filter(|p| p.is_file())
                .filter_map(|p| name_of(&p))
                .collect(),
            #[cfg(test)]
            Place::Memory(files) => files.keys().cloned().collect(),
        };
        names.sort();
        names
    }

    /// Whether it has the file `name`.
    pub fn has(&self, name: &str) -> bool {
        match &self.place {
            Place::Shipped(dir) => SHIPPED.get_file(format!("{dir}/{name}")).is_some(),
            Place::Folder(path) => path.join(name).is_file(),
            #[cfg(test)]
            Place::Memory(files) => files.contains_key(name),
        }
    }

    /// The path of the file `name` on disk; `None` for a pack inside the binary.
    pub fn path_of(&self, name: &str) -> Option<PathBuf> {
        match &self.place {
            Place::Folder(path) => Some(path.join(name)),
            _ => None,
        }
    }

    /// The bytes of the file `name`, at most 256 MiB.
    ///
    /// # Errors
    /// [`Error::Read`] when it is missing, no regular file, unreadable or larger.
    pub fn read(&self, name: &str) -> Result<Vec<u8>> {
        let missing = || Error::read(name, "there is no such file in the pack");
        match &self.place {
            Place::Shipped(dir) => {
                SHIPPED.get_file(format!("{dir}/{name}")).map(|f| f.contents().to_vec()).ok_or_else(missing)
            }
            Place::Folder(path) => read_bounded(&path.join(name)),
            #[cfg(test)]
            Place::Memory(files) => files.get(name).cloned().ok_or_else(missing),
        }
    }

    /// The text of the file `name`; a problem instead when it cannot be read or is not UTF-8. A byte order mark is left
    /// out.
    pub(crate) fn text(&self, name: &str) -> std::result::Result<String, Box<Problem>> {
        let bytes = self.read(name).map_err(|e| match e {
            Error::Read { cause, .. } => Box::new(Problem::error(name, cause, "a readable file of at most 256 MiB")),
            other => Box::new(Problem::error(name, other, "a readable file")),
        })?;
        let text = String::from_utf8(bytes).map_err(|e| {
            let good = &e.as_bytes()[..e.utf8_error().valid_up_to()];
            let line = 1 + good.iter().filter(|b| **b == b'\n').count();
            let expected = "save the file in that encoding";
            Box::new(Problem::error(name, "a character that is not UTF-8", expected).at_line(Some(line)))
        })?;
        Ok(text.strip_prefix('\u{feff}').map(str::to_string).unwrap_or(text))
    }
}

/// The bytes of a regular file of at most [`MAX_BYTES`].
fn read_bounded(path: &Path) -> Result<Vec<u8>> {
    let fail = |cause: String| Error::read(path, cause);
    let meta = std::fs::metadata(path).map_err(|e| fail(e.to_string()))?;
    if !meta.is_file() {
        return Err(fail("it is not a regular file".to_string()));
    }
    let too_large = || fail(format!("it is larger than {} MiB", MAX_BYTES >> 20));
    if meta.len() > MAX_BYTES {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    // The file may grow while it is read.
    let file = std::fs::File::open(path).map_err(|e| fail(e.to_string()))?;
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|e| fail(e.to_string()))?;
    if bytes.len() as u64 > MAX_BYTES { Err(too_large()) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_beyond_the_bound_is_refused_unread() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("huge.geojson");
        // Sparse: takes no room.
        std::fs::File::create(&path).unwrap().set_len(MAX_BYTES + 1).unwrap();
        assert!(read_bounded(&path).unwrap_err().to_string().contains("larger than 256 MiB"));
        assert!(read_bounded(dir.path()).unwrap_err().to_string().contains("not a regular file"));
    }
}
