//! `histmap import`.

use super::borders::BorderArgs;
use super::build::parse_bbox;
use super::terminal;
use crate::borders::describe_spans;
use crate::error::Result;
use crate::import::{self, ImportRequest, ImportSummary};
use crate::words::counted;
use std::path::PathBuf;

/// Arguments of `histmap import`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Border files, folders of them, or zip archives
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Folder of the new pack; it must not exist
    #[arg(long, short, value_name = "DIR")]
    out: PathBuf,
    /// Name of the region [default: the folder's, which must be the same]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Title printed on the map [default: the name]
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// The region: west,south,east,north in degrees [default: all of the borders]
    #[arg(long, value_name = "W,S,E,N", allow_hyphen_values = true)]
    bbox: Option<String>,
    /// Projected working CRS [default: the UTM zone of the region's middle]
    #[arg(long, value_name = "CRS")]
    crs: Option<String>,
    /// Licence of the borders, for example "CC BY 4.0" (needed)
    #[arg(long, value_name = "TEXT")]
    licence: Option<String>,
    /// Where they come from: author, work, version, year (needed)
    #[arg(long, value_name = "TEXT")]
    citation: Option<String>,
    #[command(flatten)]
    reading: BorderArgs,
}

pub(super) fn run(args: Args) -> Result<()> {
    let summary = import::import(&ImportRequest {
        borders: args.reading.input(args.files)?,
        out: args.out,
        name: args.name,
        title: args.title,
        bbox: args.bbox.as_deref().map(parse_bbox).transpose()?,
        crs: args.crs,
        licence: args.licence,
        citation: args.citation,
    })?;
    terminal::print(&told(&summary))
}

/// How many features that were skipped or repaired are told; the pack lists all.
const LINES_TOLD: usize = 10;

fn told(s: &ImportSummary) -> String {
    let kinds: Vec<&str> = s.kinds.iter().map(|k| k.as_str()).collect();
    let mut out = format!(
        "{}: {}, {}, {}; read as {}\n{}; {} outside the region\n",
        s.out.display(),
        counted(s.claims, "claim", "claims"),
        describe_spans(&s.covered),
        s.crs,
        kinds.join(", "),
        s.account.summary(),
        counted(s.outside, "claim", "claims")
    );
    for line in &s.notes {
        out += &format!("  {line}\n");
    }
    let remarkable: Vec<String> = s.account.remarkable().collect();
    for line in remarkable.iter().take(LINES_TOLD) {
        out += &format!("  {line}\n");
    }
    if remarkable.len() > LINES_TOLD {
        out += &format!("  and {} more that were skipped or repaired\n", remarkable.len() - LINES_TOLD);
    }
    out += &format!("{} has a line for every feature\n", s.out.join(import::ACCOUNT_FILE).display());
    out
}
