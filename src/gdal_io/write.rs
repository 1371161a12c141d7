//! Whole files onto the disk, or not at all.

use crate::error::{Error, Result};
use std::io::Write;
use std::path::Path;

/// Writes `bytes` to a temporary name in the folder of `path`, waits until they are on the disk, and renames: `path` is
/// afterwards the new file or what it was before. The file gets the permissions of any new file.
///
/// # Errors
/// [`Error::Write`] with the system's words: no such folder, no permission, disk full.
pub fn write_beside(path: &Path, bytes: &[u8]) -> Result<()> {
    let fail = |e: std::io::Error| Error::write(path, e);
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".histmap-").suffix(".part");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666)); // less the umask
    }
    if !folder.is_dir() {
        return Err(Error::write(path, format!("there is no folder {}", folder.display())));
    }
    // The system's error comes wrapped with the temporary name, which no user knows: its kind says enough.
    let mut file = builder.tempfile_in(folder).map_err(|e| Error::write(path, e.kind()))?;
    file.as_file_mut().write_all(bytes).map_err(fail)?; // not through `file`, which adds its name to errors
    file.as_file().sync_all().map_err(fail)?;
    file.persist(path).map_err(|e| fail(e.error))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_old_file_is_replaced_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.bin");
        write_beside(&path, b"old").unwrap();
        write_beside(&path, b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_missing_folder_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let e = write_beside(&folder.path().join("none/a.bin"), b"x").unwrap_err();
        assert!(matches!(e, Error::Write { .. }));
        assert!(!e.to_string().contains(".part"), "{e}");
    }
}
