//! `histmap eras`.

use super::{PackArgs, terminal};
use crate::borders::timeline;
use crate::error::Result;
use crate::pack;

/// Arguments of `histmap eras`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Region pack; `histmap regions` lists them
    #[arg(long, value_name = "NAME")]
    region: String,
    #[command(flatten)]
    packs: PackArgs,
}

pub(super) fn run(args: &Args) -> Result<()> {
    let pack = pack::find_pack(&args.region, &args.packs.maps)?;
    terminal::print(&format!("{}\n\n{}", pack.title, timeline(&pack.claims)))
}
