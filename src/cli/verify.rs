//! `histmap verify`.

use super::terminal;
use crate::error::Result;
use crate::manifest;
use crate::words::counted;
use std::path::PathBuf;

/// Arguments of `histmap verify`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Output folder of a build
    out: PathBuf,
}

pub(super) fn run(args: &Args) -> Result<()> {
    let n = manifest::verify(&args.out)?;
    let agree = counted(n, "file agrees", "files agree");
    terminal::print(&format!("{}: {agree} with the manifest\n", args.out.display()))
}
