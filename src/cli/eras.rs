//! `histmap eras`.

use super::borders::BorderArgs;
use super::{PackArgs, RegionArgs, terminal};
use crate::borders::{Timeline, timeline};
use crate::error::Result;
use crate::pack::{self, RegionPack, Source, SourceUse};
use crate::political;
use crate::render::timeline::timeline_figure;
use crate::year::Span;
use std::path::PathBuf;

/// Arguments of `histmap eras`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    region: RegionArgs,
    /// A line for each claim with the works named for it, and every year of change, instead of a line for each polity
    #[arg(long)]
    all: bool,
    /// Only those who held in this year or span of years, a line for each claim
    #[arg(long, value_name = "YEAR", allow_hyphen_values = true)]
    era: Option<String>,
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
    let era: Option<Span> = args.era.as_deref().map(str::parse).transpose()?;
    super::check_figure(args.svg.as_deref(), "--svg")?;
    let pack = pack::find_pack(args.region.name(), &args.packs.maps)?;
    let input = args.reading.input(args.borders)?;
    let mut claims = if args.borders_only { Vec::new() } else { pack.claims.clone() };
    if !input.paths.is_empty() {
        claims.extend(political::claims_in_question(&pack, &input)?);
    }
    if let Some(era) = era {
        claims.retain(|c| c.span.overlaps(&era));
    }
    let found = timeline(&claims);
    if let Some(path) = &args.svg {
        let citations: Vec<(String, String)> =
            pack.sources.iter().map(|s| (s.id.clone(), s.citation.clone())).collect();
        super::write_figure(&timeline_figure(&pack.title, &found, &citations), path, "--svg")?;
    }
    let mut out = format!("{}\n\n", pack.title);
    match era {
        Some(era) if found.rows.is_empty() => out += &format!("nobody is known to have held land in {era}\n"),
        None if !args.all => {
            out += &found.by_polity();
            out += "--all lists every claim, the works named for it, and the years of change; --era YEAR those of a year.\n";
        }
        _ => {
            out += &found.to_string();
            out += &told_works(&pack, &found);
        }
    }
    terminal::print(&out)
}

/// What was done with the works that a timeline names, where the region says it.
fn told_works(pack: &RegionPack, found: &Timeline) -> String {
    let named = |s: &&Source| found.rows.iter().flat_map(|r| &r.entries).any(|e| e.sources.contains(&s.id));
    let mut out = String::new();
    for usage in SourceUse::ALL {
        let of: Vec<&str> =
            pack.sources.iter().filter(|s| s.usage == usage).filter(named).map(|s| s.id.as_str()).collect();
        let said = match usage {
            SourceUse::Taken => "Lines were read off",
            SourceUse::Compared => "Compared with",
            SourceUse::Read => "Read:",
            SourceUse::FurtherReading => "For further reading, not checked page by page:",
        };
        if !of.is_empty() {
            out += &format!("{said} {}.\n", of.join(", "));
        }
    }
    if out.is_empty() { out } else { format!("\nWorks. {out}") }
}
