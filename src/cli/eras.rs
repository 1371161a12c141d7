//! `histmap eras`.

use super::borders::BorderArgs;
use super::{PackArgs, RegionArgs, terminal};
use crate::borders::timeline;
use crate::error::Result;
use crate::pack;
use crate::political;
use crate::render::timeline::timeline_figure;
use std::path::PathBuf;

/// Arguments of `histmap eras`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    region: RegionArgs,
    /// Also draw the timeline: FILE.svg or FILE.png
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Border files to set beside the region's own claims (also folders of them, or zip archives); may be repeated
    #[arg(long, value_name = "FILE", num_args = 1..)]
    borders: Vec<PathBuf>,
    /// The border files in place of the region's own claims
    #[arg(long, requires = "borders")]
    borders_only: bool,
    #[command(flatten)]
    reading: BorderArgs,
    #[command(flatten)]
    packs: PackArgs,
}

pub(super) fn run(args: Args) -> Result<()> {
    super::check_figure(args.svg.as_deref(), "--svg")?;
    let pack = pack::find_pack(args.region.name(), &args.packs.maps)?;
    let input = args.reading.input(args.borders)?;
    let mut claims = if args.borders_only { Vec::new() } else { pack.claims.clone() };
    if !input.paths.is_empty() {
        claims.extend(political::claims_in_question(&pack, &input)?);
    }
    let found = timeline(&claims);
    if let Some(path) = &args.svg {
        let citations: Vec<(String, String)> =
            pack.sources.iter().map(|s| (s.id.clone(), s.citation.clone())).collect();
        super::write_figure(&timeline_figure(&pack.title, &found, &citations), path, "--svg")?;
    }
    terminal::print(&format!("{}\n\n{found}", pack.title))
}
