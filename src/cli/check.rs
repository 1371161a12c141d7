//! `histmap check`.

use super::{PackArgs, terminal};
use crate::error::{Error, Result};
use crate::pack::{self, PackSource};
use std::path::{Path, PathBuf};

/// Arguments of `histmap check`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Folder of a region pack, or the name of one that `histmap regions` lists
    pack: PathBuf,
    #[command(flatten)]
    packs: PackArgs,
}

pub(super) fn run(args: &Args) -> Result<()> {
    let source = open(&args.pack, &args.packs.maps)?;
    let problems = pack::check_pack(&source);
    let errors: Vec<String> = problems.iter().filter(|p| p.is_error()).map(ToString::to_string).collect();
    let warnings: Vec<String> = problems.iter().filter(|p| !p.is_error()).map(ToString::to_string).collect();
    if errors.is_empty() {
        let found = if warnings.is_empty() { "no problems".to_string() } else { warnings.join("\n") };
        return terminal::print(&format!("{}: {found}\n", args.pack.display()));
    }
    let list = errors.iter().chain(&warnings).map(|l| format!("  {l}")).collect::<Vec<_>>().join("\n");
    Err(Error::Pack { pack: args.pack.display().to_string(), count: errors.len(), list })
}

/// A folder where there is one, else a pack by name.
fn open(pack: &Path, maps: &[PathBuf]) -> Result<PackSource> {
    match pack.to_str() {
        Some(name) if !pack.is_dir() && pack.components().count() == 1 => {
            if pack.exists() {
                return Err(Error::NoPack { path: pack.to_path_buf(), found: "it is a file, no region pack" });
            }
            pack::open_pack(name, maps).map_err(|e| match e {
                // A folder may have been meant.
                Error::UnknownRegion { name, known, suggestion } => Error::UnknownRegion {
                    known: format!("{known}; nor is there a folder of that name here"),
                    name,
                    suggestion,
                },
                other => other,
            })
        }
        _ if pack.is_dir() && !pack.join("region.toml").exists() => {
            Err(Error::NoPack { path: pack.to_path_buf(), found: "the folder has no region.toml" })
        }
        _ => PackSource::folder(pack),
    }
}
