//! Every error that a user can meet: one variant per thing that can be fixed, each saying where it is, what was
//! found, what was expected and what to do.

use crate::words::counted;
use std::path::{Path, PathBuf};

/// What the library returns.
pub type Result<T> = std::result::Result<T, Error>;

/// An error with all that a user needs to mend its cause.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder could not be read.
    #[error("cannot read {path}: {cause}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system or GDAL said.
        cause: String,
    },
    /// A file or folder could not be written.
    #[error("cannot write {path}: {cause}")]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system or GDAL said.
        cause: String,
    },
    /// A file was read, but what it holds is not what was expected.
    #[error("{path}: {found}; expected {expected}")]
    Content {
        /// The file, with the layer, key or line where that is known.
        path: String,
        /// What was found.
        found: String,
        /// What was expected, and what to do.
        expected: String,
    },
    /// A value on the command line, or a library argument, is out of range.
    #[error("{what}: {found}; {remedy}")]
    Argument {
        /// The option or argument.
        what: String,
        /// What was given.
        found: String,
        /// What is accepted, and what to do.
        remedy: String,
    },
    /// A folder is not the output of a build.
    #[error("{path}: {found}; give the output folder of histmap build")]
    NoBuild {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        found: &'static str,
    },
    /// A folder is no region pack.
    #[error("{path}: {found}; give the folder that has it, or the name of a pack that histmap regions lists")]
    NoPack {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        found: &'static str,
    },
    /// No region pack of that name.
    #[error("unknown region '{name}'; known: {known}{suggestion}")]
    UnknownRegion {
        /// What was asked for.
        name: String,
        /// Names of the packs that exist, comma-separated.
        known: String,
        /// "; did you mean ...?", or empty.
        suggestion: String,
    },
    /// No claim holds in the year asked for.
    #[error(
        "no claims for {era} in region '{region}'; it covers {covered}; give a year in that span, or add claims with --borders"
    )]
    NoClaims {
        /// The era as it was read.
        era: String,
        /// The region.
        region: String,
        /// The covered spans.
        covered: String,
    },
    /// A dataset has no coordinate reference system.
    #[error("{path} has no coordinate reference system; state it with {flag} (for example {flag} EPSG:4326)")]
    MissingCrs {
        /// The dataset.
        path: String,
        /// The flag that states it.
        flag: &'static str,
    },
    /// The working grid must be projected.
    #[error(
        "{crs} is geographic (degrees); slopes and distances need metres; give a projected one, for example --crs EPSG:32638"
    )]
    GeographicCrs {
        /// The CRS given.
        crs: String,
    },
    /// The raster asked for does not fit.
    #[error(
        "{cols} x {rows} cells need about {need} of {of_what}, {have} are available; choose a coarser --resolution or a smaller --bbox"
    )]
    TooLarge {
        /// Columns.
        cols: u64,
        /// Rows.
        rows: u64,
        /// Estimate, human-readable.
        need: String,
        /// "memory" or "disk".
        of_what: &'static str,
        /// What there is, human-readable.
        have: String,
    },
    /// The output is already there.
    #[error("{path} exists already; choose another output, or replace this one with --overwrite")]
    OutputExists {
        /// The file or folder.
        path: PathBuf,
    },
    /// Several problems found in one pass over a region pack.
    #[error("{pack}: {}\n{list}", counted(*.count, "problem", "problems"))]
    Pack {
        /// The pack.
        pack: String,
        /// How many.
        count: usize,
        /// One per line.
        list: String,
    },
    /// Files do not agree with their manifest.
    #[error("{path}: {} from the manifest\n{list}", counted(*.count, "file differs", "files differ"))]
    Verify {
        /// The folder.
        path: PathBuf,
        /// How many.
        count: usize,
        /// One per line.
        list: String,
    },
    /// Two rasters of one computation lie on different grids.
    #[error("grids differ: {left} against {right}")]
    GridMismatch {
        /// First grid.
        left: String,
        /// Second grid.
        right: String,
    },
}

impl Error {
    /// Exit code of the command: 2 where the command line asks for something impossible, 1 where the work failed.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Argument { .. } | Error::GeographicCrs { .. } => 2,
            _ => 1,
        }
    }

    /// A [`Error::Read`] for `path`.
    pub fn read(path: impl AsRef<Path>, cause: impl ToString) -> Self {
        Error::Read { path: path.as_ref().to_path_buf(), cause: cause.to_string() }
    }

    /// A [`Error::Write`] for `path`.
    pub fn write(path: impl AsRef<Path>, cause: impl ToString) -> Self {
        Error::Write { path: path.as_ref().to_path_buf(), cause: cause.to_string() }
    }

    /// A [`Error::Content`] at `path`.
    pub fn content(path: impl ToString, found: impl ToString, expected: impl ToString) -> Self {
        Error::Content { path: path.to_string(), found: found.to_string(), expected: expected.to_string() }
    }

    /// A [`Error::Argument`] for `what`.
    pub fn argument(what: impl ToString, found: impl ToString, remedy: impl ToString) -> Self {
        Error::Argument { what: what.to_string(), found: found.to_string(), remedy: remedy.to_string() }
    }
}
