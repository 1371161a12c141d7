//! `histmap view`.

use super::{heightmap, terminal};
use crate::error::{Error, Result};
use crate::gdal_io;
use crate::view::{self, PageFile, serve::Server};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Arguments of `histmap view`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  histmap view out/caucasus-1200
  histmap view elevation.tif --export page")]
pub(super) struct Args {
    /// Output folder of a build, raster of heights, heightmap or mesh file (.glb, .obj, .stl, .ply)
    input: PathBuf,
    /// Write the page as a folder that any browser opens, in place of showing it
    #[arg(long, value_name = "DIR")]
    export: Option<PathBuf>,
    /// Replace that folder
    #[arg(long, requires = "export")]
    overwrite: bool,
    /// Do not open a browser
    #[arg(long)]
    no_open: bool,
    /// Port on this computer [default: a free one]
    #[arg(long, value_name = "N", default_value_t = 0)]
    port: u16,
    /// CRS of the raster where it has none
    #[arg(long, value_name = "CRS")]
    crs: Option<String>,
}

pub(super) fn run(args: &Args) -> Result<()> {
    if let Some(dir) = args.export.as_ref().filter(|d| d.exists() && !args.overwrite) {
        return Err(Error::OutputExists { path: dir.clone() });
    }
    if let Some(dir) = args.export.as_ref().filter(|d| d.exists() && !is_page(d)) {
        return Err(Error::argument(
            "--overwrite",
            format!("{} is no page of histmap view", dir.display()),
            "choose another folder",
        ));
    }
    let files = page(args)?;
    if let Some(dir) = &args.export {
        write(dir, &files)?;
        let bytes: usize = files.iter().map(|f| f.bytes.len()).sum();
        let page = dir.join("index.html");
        return terminal::print(&format!("{}: {:.1} MB, open it in a browser\n", page.display(), bytes as f64 / 1e6));
    }
    let server = Server::bind(args.port, files)?;
    let url = server.url();
    terminal::print(&format!("{url}\nCtrl-C ends it.\n"))?;
    if !args.no_open && !open(&url) {
        terminal::print("no browser could be opened: open the address yourself\n")?;
    }
    server.run();
    Ok(())
}

fn page(args: &Args) -> Result<Vec<PageFile>> {
    let input = &args.input;
    if input.is_dir() {
        if !view::is_build(input) {
            return Err(Error::NoBuild { path: input.clone(), found: "there is no manifest.json" });
        }
        return view::build_page(input);
    }
    let crs = args.crs.as_deref().map(|c| gdal_io::crs(c, "--crs")).transpose()?;
    // A heightmap as OBJ is a mesh too.
    if view::is_mesh(input) {
        return view::mesh_page(input);
    }
    let (raster, grid) = heightmap::read_any(input, crs.as_ref())?;
    view::raster_page(input, raster, grid.as_ref())
}

/// Whether a folder holds such a page, or nothing.
fn is_page(dir: &Path) -> bool {
    let is_empty = std::fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_none());
    is_empty || ["index.html", "data.js", "three.min.js"].iter().all(|name| dir.join(name).is_file())
}

/// Writes the folder beside its final name, then renames it.
fn write(dir: &Path, files: &[PageFile]) -> Result<()> {
    let fail = |e: std::io::Error| Error::write(dir, e);
    let parent = dir.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !parent.is_dir() {
        return Err(Error::write(dir, format!("there is no folder {}", parent.display())));
    }
    let part = tempfile::Builder::new()
        .prefix(".histmap-")
        .suffix(".part")
        .tempdir_in(parent)
        .map_err(|e| Error::write(dir, e.kind()))?;
    let inner = part.path().join("page");
    std::fs::create_dir(&inner).map_err(fail)?;
    for f in files {
        gdal_io::write_beside(&inner.join(f.name), &f.bytes)?;
    }
    let old = part.path().join("old");
    if dir.exists() {
        std::fs::rename(dir, &old).map_err(fail)?;
    }
    if let Err(e) = std::fs::rename(&inner, dir) {
        // Back as it was.
        let _ = std::fs::rename(&old, dir);
        return Err(fail(e));
    }
    Ok(())
}

/// Asks the system to open the page; whether it took the request.
fn open(url: &str) -> bool {
    let (program, first): (&str, &[&str]) = if cfg!(target_os = "macos") {
        ("open", &[])
    } else if cfg!(windows) {
        ("cmd", &["/C", "start", ""])
    } else {
        ("xdg-open", &[])
    };
    Command::new(program)
        .args(first)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .is_ok()
}
