//! `histmap verify`.

use super::terminal;
use crate::error::Result;
use crate::manifest;
use std::path::PathBuf;

/// Arguments of `histmap verify`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Output folder of a build
    out: PathBuf,
}

pub(super) fn run(args: &Args) -> Result<()> {
    let n = manifest::verify(&args.out)?;
    terminal::print(&format!("{}: {n} files agree with the manifest\n", args.out.display()))
}
