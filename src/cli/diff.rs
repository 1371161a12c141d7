//! `histmap diff`.

use super::borders::BorderArgs;
use super::{PackArgs, RegionArgs, terminal};
use crate::borders::AreaChange;
use crate::error::{Error, Result};
use crate::political::{self, Changes};
use crate::year::Year;
use std::path::PathBuf;

/// Arguments of `histmap diff`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    region: RegionArgs,
    /// The first year
    #[arg(long, value_name = "YEAR", allow_hyphen_values = true)]
    from: String,
    /// The second year
    #[arg(long, value_name = "YEAR", allow_hyphen_values = true)]
    to: String,
    /// Also draw a map of what changed hands: FILE.svg or FILE.png
    #[arg(long, value_name = "FILE")]
    map: Option<PathBuf>,
    /// Border files in place of the region's own claims (also folders of them, or zip archives); may be repeated
    #[arg(long, value_name = "FILE", num_args = 1..)]
    borders: Vec<PathBuf>,
    #[command(flatten)]
    reading: BorderArgs,
    #[command(flatten)]
    packs: PackArgs,
    /// Print JSON
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print comma-separated values
    #[arg(long)]
    csv: bool,
}

pub(super) fn run(args: Args) -> Result<()> {
    let (from, to): (Year, Year) = (args.from.parse()?, args.to.parse()?);
    super::check_figure(args.map.as_deref(), "--map")?;
    let region = args.region.name().to_string();
    let input = args.reading.input(args.borders)?;
    let Changes { areas: changes, transfers, map } =
        political::changes(&region, &args.packs.maps, &input, [from, to], args.map.is_some())?;
    if let (Some(map), Some(path)) = (map, &args.map) {
        super::write_figure(&map, path, "--map")?;
    }
    if args.json {
        let side = |who: &Option<(String, String)>| match who {
            Some((id, name)) => serde_json::json!({"id": id, "name": name}),
            None => serde_json::Value::Null,
        };
        let moved: Vec<serde_json::Value> = transfers
            .iter()
            .map(|t| serde_json::json!({"from": side(&t.from), "to": side(&t.to), "area_km2": t.area_km2}))
            .collect();
        let all = serde_json::json!({
            "region": region, "from": from.to_historian(), "to": to.to_historian(), "changes": changes,
            "transfers": moved,
        });
        let text = serde_json::to_string_pretty(&all).map_err(|e| Error::write("standard output", e))?;
        return terminal::print(&format!("{text}\n"));
    }
    terminal::print(&if args.csv { csv(&changes) } else { table(&changes, from, to) })
}

fn csv(changes: &[AreaChange]) -> String {
    let quoted =
        |s: &str| if s.contains([',', '"', '\n']) { format!("\"{}\"", s.replace('"', "\"\"")) } else { s.to_string() };
    let mut out = "id,name,kind,before_km2,after_km2,gained_km2,lost_km2\n".to_string();
    for c in changes {
        out += &format!(
            "{},{},{},{:.1},{:.1},{:.1},{:.1}\n",
            quoted(&c.id),
            quoted(&c.name),
            c.kind,
            c.before_km2,
            c.after_km2,
            c.gained_km2,
            c.lost_km2
        );
    }
    out
}

fn table(changes: &[AreaChange], from: Year, to: Year) -> String {
    let km2 = |v: f64, sign: &str| if v < 0.5 { String::new() } else { format!("{sign}{v:.0}") };
    let head = ["km²".to_string(), from.to_string(), to.to_string(), "gained".to_string(), "lost".to_string()];
    let rows: Vec<[String; 5]> = std::iter::once(head)
        .chain(changes.iter().map(|c| {
            [c.name.clone(), km2(c.before_km2, ""), km2(c.after_km2, ""), km2(c.gained_km2, "+"), km2(c.lost_km2, "-")]
        }))
        .collect();
    let width = |k: usize| rows.iter().map(|r| r[k].chars().count()).max().unwrap_or(0);
    let [w0, w1, w2, w3, w4] = [0, 1, 2, 3, 4].map(width);
    let changed = changes.iter().filter(|c| !c.is_unchanged()).count();
    let mut out = String::new();
    for (k, [name, a, b, gained, lost]) in rows.iter().enumerate() {
        if k == changed + 1 {
            out += "unchanged:\n";
        }
        out += format!("{name:<w0$}  {a:>w1$}  {b:>w2$}  {gained:>w3$}  {lost:>w4$}").trim_end();
        out += "\n";
    }
    out
}
