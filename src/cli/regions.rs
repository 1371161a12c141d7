//! `histmap regions`.

use super::{PackArgs, terminal};
use crate::borders::describe_spans;
use crate::error::Result;
use crate::pack;
use crate::words::counted;

/// Arguments of `histmap regions`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    packs: PackArgs,
}

pub(super) fn run(args: &Args) -> Result<()> {
    let packs = pack::list_packs(&args.packs.maps)?;
    let width = packs.iter().map(|p| p.name.chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for p in &packs {
        let state = match (p.errors, &p.extent) {
            (0, Some(e)) => format!(
                "{}: {}; {}..{} E, {}..{} N ({})",
                p.title,
                describe_spans(&p.covered),
                e.west,
                e.east,
                e.south,
                e.north,
                p.origin
            ),
            (n, _) => {
                format!("cannot be used: {}, see histmap check {}", counted(n, "problem", "problems"), p.origin)
            }
        };
        out += &format!("{:width$}  {state}\n", p.name);
    }
    if packs.is_empty() {
        out += "no region packs\n";
    }
    terminal::print(&out)
}
