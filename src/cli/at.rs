//! `histmap at`.

use super::borders::BorderArgs;
use super::{PackArgs, RegionArgs, terminal};
use crate::borders::tenure::tenures;
use crate::error::{Error, Result};
use crate::grid::LonLat;
use crate::pack::{self, RegionPack};
use crate::political;
use crate::year::Span;
use std::path::PathBuf;

/// Arguments of `histmap at`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    region: RegionArgs,
    /// Longitude and latitude in degrees, or any name of a place of the region
    #[arg(long, value_name = "LON,LAT|NAME", allow_hyphen_values = true)]
    place: String,
    /// Year or span of years [default: all]
    #[arg(long, value_name = "YEAR", allow_hyphen_values = true)]
    era: Option<String>,
    /// Border files in place of the region's own claims (also folders of them, or zip archives); may be repeated
    #[arg(long, value_name = "FILE", num_args = 1..)]
    borders: Vec<PathBuf>,
    #[command(flatten)]
    reading: BorderArgs,
    #[command(flatten)]
    packs: PackArgs,
}

pub(super) fn run(args: Args) -> Result<()> {
    let era: Option<Span> = args.era.as_deref().map(str::parse).transpose()?;
    let pack = pack::find_pack(args.region.name(), &args.packs.maps)?;
    let (name, at) = place(&args.place, &pack)?;
    let claims = political::claims_in_question(&pack, &args.reading.input(args.borders)?)?;
    let found = tenures(&claims, at, era.unwrap_or(Span::ALWAYS));
    let ns = if at.lat < 0.0 { 'S' } else { 'N' };
    let ew = if at.lon < 0.0 { 'W' } else { 'E' };
    let mut out = format!("{name}{:.4} {ew}, {:.4} {ns}\n\n", at.lon.abs(), at.lat.abs());
    if found.rows.is_empty() {
        let years = era.map_or("any year".to_string(), |e| e.to_string());
        out += &format!("nobody is known to have held it in {years}\n");
    } else {
        out += &found.to_string();
    }
    terminal::print(&out)
}

/// The point that is meant, and the words before it.
fn place(text: &str, pack: &RegionPack) -> Result<(String, LonLat)> {
    let numbers: Vec<Option<f64>> = text.split(',').map(|n| n.trim().parse().ok()).collect();
    if let [Some(lon), Some(lat)] = numbers[..] {
        let e = &pack.extent;
        if !((e.west..=e.east).contains(&lon) && (e.south..=e.north).contains(&lat)) {
            let is_swapped = (e.west..=e.east).contains(&lat) && (e.south..=e.north).contains(&lon);
            let hint = if is_swapped { "; longitude comes first" } else { "" };
            return Err(Error::argument(
                "--place",
                format!("{text} lies outside the region '{}'", pack.name),
                format!("give a point in {}..{} E, {}..{} N{hint}", e.west, e.east, e.south, e.north),
            ));
        }
        return Ok((String::new(), LonLat { lon, lat }));
    }
    let wanted = text.trim().to_lowercase();
    let names = || {
        pack.places.iter().flat_map(|p| std::iter::once((&p.name, p)).chain(p.names.iter().map(move |n| (&n.name, p))))
    };
    if let Some((name, p)) = names().find(|(n, _)| n.to_lowercase() == wanted) {
        let known = if *name == p.name { p.name.clone() } else { format!("{name} ({})", p.name) };
        return Ok((format!("{known}, "), p.at));
    }
    let near = names()
        .map(|(n, _)| (strsim::jaro_winkler(&n.to_lowercase(), &wanted), n))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|(likeness, _)| *likeness > 0.75);
    let hint = near.map_or(String::new(), |(_, n)| format!("did you mean '{n}'? Or "));
    Err(Error::argument(
        "--place",
        format!("no place of the region '{}' is called '{}'", pack.name, text.trim()),
        format!("{hint}give its longitude and latitude, such as 44.8,41.7"),
    ))
}
