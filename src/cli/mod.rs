//! The command line: arguments to resolved requests, requests to work, results to the terminal. One file per subcommand.

mod at;
mod borders;
mod build;
mod check;
mod contour;
mod curve;
mod diff;
mod eras;
mod georef;
mod heightmap;
mod import;
mod mesh;
mod refine;
mod regions;
mod terminal;
mod trace;
mod verify;
mod view;

use crate::error::Error;
use clap::{CommandFactory, Parser, Subcommand};
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Build a map of a region as it was in a year: true relief, who held what, files for QGIS and a sheet to print.
#[derive(Debug, Parser)]
#[command(name = "histmap", version, propagate_version = true, arg_required_else_help = true, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Build the map of a region in a year: relief, regions, GeoPackage, map sheet
    Build(Box<build::Args>),
    /// Refine any elevation model, with peaks, rivers, water and intervals if you have them
    Refine(Box<refine::Args>),
    /// List the regions that can be built
    Regions(regions::Args),
    /// Show who is on the map of a region, and in which years
    Eras(Box<eras::Args>),
    /// Show who held a place, by year
    At(Box<at::Args>),
    /// Show what each polity gained and lost between two years
    Diff(Box<diff::Args>),
    /// Make a region pack from border files
    Import(Box<import::Args>),
    /// Register a scanned map by its control points, with its accuracy stated
    Georef(Box<georef::Args>),
    /// Trace the regions of a registered map by the colours of its legend
    Trace(Box<trace::Args>),
    /// Make a heightmap: diamond-square, faults, midpoint, spectral; filter one; turn one format into another
    Heightmap(Box<heightmap::Args>),
    /// Turn a raster into a mesh: terrain within an error, solids to print, areas of classes
    Mesh(Box<mesh::Args>),
    /// Draw the contour lines of a raster
    Contour(Box<contour::Args>),
    /// Draw smooth curves through the key points of a line layer
    Curve(Box<curve::Args>),
    /// Look at a build, a terrain or a mesh in the browser, or write the page as a folder
    View(Box<view::Args>),
    /// Check a region pack and report every problem at once
    Check(check::Args),
    /// Compare the files of a build with its manifest
    Verify(verify::Args),
    /// Print a completion script for a shell
    Completions {
        /// bash, elvish, fish, powershell or zsh
        shell: clap_complete::Shell,
    },
}

const EXAMPLES: &str = "\
Example, for a map of the Caucasus in 1200 in the folder out/caucasus-1200:
  histmap build --region caucasus --era 1200

`histmap COMMAND --help` lists the options of a command.";

/// A length on the command line, metres.
fn metres(text: &str) -> Result<f64, String> {
    text.trim().parse().map_err(|_| "give metres as a number without a unit, such as 250".to_string())
}

/// A whole number on the command line, not negative.
fn whole64(text: &str) -> Result<u64, String> {
    text.trim().parse().map_err(|_| format!("give a whole number from 0 to {}", u64::MAX))
}

/// The same for counts.
fn whole(text: &str) -> Result<usize, String> {
    text.trim().parse().map_err(|_| "give a whole number, 0 or more".to_string())
}

/// Where region packs are found; the same for every subcommand.
#[derive(Debug, Clone, clap::Args)]
struct PackArgs {
    /// Folder of region packs of your own (each a folder with a region.toml); may be repeated
    #[arg(long = "maps", value_name = "DIR")]
    maps: Vec<PathBuf>,
}

/// Which region; the same for every subcommand that asks for one.
#[derive(Debug, Clone, clap::Args)]
struct RegionArgs {
    /// Region pack; `histmap regions` lists them
    #[arg(value_name = "REGION", required_unless_present = "region", conflicts_with = "region")]
    name: Option<String>,
    /// The same as a flag
    #[arg(long, value_name = "NAME")]
    region: Option<String>,
}

impl RegionArgs {
    /// The region's name, however it was given.
    fn name(&self) -> &str {
        self.region.as_deref().or(self.name.as_deref()).unwrap_or_default()
    }
}

/// Writes a figure that the user asked for, by the ending of its name: `.svg`, or `.png` where that is admitted.
fn write_figure(figure: &crate::render::figure::Figure, path: &std::path::Path, flag: &str) -> crate::Result<()> {
    let ending = path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    let bytes = match ending.as_str() {
        "svg" => figure.to_svg().into_bytes(),
        "png" => figure.to_png(2.0)?,
        _ => {
            return Err(Error::argument(flag, path.display(), "give a file that ends in .svg or .png"));
        }
    };
    crate::gdal_io::write_beside(path, &bytes)
}

/// Refuses another ending before anything is worked out.
fn check_figure(path: Option<&std::path::Path>, flag: &str) -> crate::Result<()> {
    let is_known =
        |p: &std::path::Path| p.extension().is_some_and(|e| ["svg", "png"].iter().any(|k| e.eq_ignore_ascii_case(k)));
    match path.filter(|p| !is_known(p)) {
        Some(p) => Err(Error::argument(flag, p.display(), "give a file that ends in .svg or .png")),
        None => Ok(()),
    }
}

/// Why a run ended without success.
#[derive(Debug)]
pub enum Failure {
    /// The arguments cannot be parsed, or help was asked for: clap has the words.
    Usage(Box<clap::Error>),
    /// The work failed.
    Work(Box<Error>),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Work(Box::new(error))
    }
}

impl Failure {
    /// Prints the cause once and gives the exit code: 0 for help, 1 when the work failed, 2 for wrong usage.
    pub fn report(self) -> ExitCode {
        match self {
            Failure::Usage(error) => {
                // A closed pipe is no reason to fail loudly.
                let _ = error.print();
                ExitCode::from(error.exit_code() as u8)
            }
            Failure::Work(error) => {
                let _ = writeln!(std::io::stderr(), "histmap: {error}");
                ExitCode::from(error.exit_code())
            }
        }
    }
}

/// Runs the command line `args` (the program's name first).
///
/// # Errors
/// [`Failure`] with what to print and the exit code.
pub fn run(args: impl IntoIterator<Item = OsString>) -> Result<(), Failure> {
    let args: Vec<OsString> = args.into_iter().collect();
    let line = args.iter().map(|a| shown(&a.to_string_lossy())).collect::<Vec<_>>().join(" ");
    // A second handler in one process (a library user's) is no reason to fail.
    let _ = ctrlc::set_handler(|| {
        crate::pipeline::remove_unfinished();
        std::process::exit(130);
    });
    let cli = Cli::try_parse_from(&args).map_err(|e| Failure::Usage(Box::new(e)))?;
    match cli.command {
        Command::Build(a) => build::run(*a, &line)?,
        Command::Refine(a) => refine::run(*a)?,
        Command::Regions(a) => regions::run(&a)?,
        Command::Eras(a) => eras::run(*a)?,
        Command::At(a) => at::run(*a)?,
        Command::Diff(a) => diff::run(*a)?,
        Command::Import(a) => import::run(*a)?,
        Command::Georef(a) => georef::run(*a)?,
        Command::Trace(a) => trace::run(*a)?,
        Command::Heightmap(a) => heightmap::run(&a)?,
        Command::Mesh(a) => mesh::run(&a)?,
        Command::Contour(a) => contour::run(&a)?,
        Command::Curve(a) => curve::run(&a)?,
        Command::View(a) => view::run(&a)?,
        Command::Check(a) => check::run(&a)?,
        Command::Verify(a) => verify::run(&a)?,
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "histmap", &mut script);
            terminal::print(&String::from_utf8_lossy(&script))?;
        }
    }
    Ok(())
}

/// An argument as it would be typed: quoted where it holds spaces.
fn shown(arg: &str) -> String {
    if arg.is_empty() || arg.contains(|c: char| c.is_whitespace() || "\"'$`\\".contains(c)) {
        format!("'{}'", arg.replace('\'', "'\\''"))
    } else {
        arg.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_argument_definitions_hold_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn numbers_are_refused_in_words() {
        assert_eq!(metres(" 250"), Ok(250.0));
        assert!(metres("250m").unwrap_err().contains("without a unit"));
        assert_eq!(whole64("7"), Ok(7));
        assert!(whole64("-1").is_err() && whole("1.5").is_err());
    }

    #[test]
    fn arguments_are_shown_as_typed() {
        assert_eq!(shown("--era"), "--era");
        assert_eq!(shown("a b"), "'a b'");
    }
}
