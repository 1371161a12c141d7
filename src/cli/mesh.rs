//! `histmap mesh`.

use super::{heightmap, terminal};
use crate::error::{Error, Result};
use crate::gdal_io;
use crate::mesh::marching::Crossing;
use crate::mesh_run::{self, Below, Ground, Look, MeshRequest, Size, Subject};
use crate::words::counted;
use clap::ValueEnum;
use std::fmt::Write;
use std::path::PathBuf;

/// Arguments of `histmap mesh`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  histmap mesh elevation.tif ground.glb --max-error 10 --texture hillshade.tif
  histmap mesh elevation.tif print.stl --base --size 150 --exaggeration 2
  histmap mesh regions.tif states.glb --classes all --walls 5000")]
pub(super) struct Args {
    /// Raster: elevation in metres, a mask or classes; a heightmap file too
    input: PathBuf,
    /// File to write: .glb, .obj (with .mtl), .stl or .ply
    out: PathBuf,
    /// Adaptive mesh: no cell farther from it than this [default: a four-hundredth of the range of heights]
    #[arg(long, value_name = "METRES", allow_negative_numbers = true)]
    max_error: Option<f64>,
    /// A vertex in every cell
    #[arg(long, conflicts_with = "max_error")]
    regular: bool,
    /// Raster of classes on the same grid, such as regions.tif: each becomes a part with its name and colour
    #[arg(long, value_name = "FILE")]
    regions: Option<PathBuf>,
    /// Walls down from all borders, to hide gaps
    #[arg(long, value_name = "METRES", allow_negative_numbers = true, conflicts_with = "base")]
    skirt: Option<f64>,
    /// A closed solid, its floor so far under the lowest point, in the file's unit [default: 3 mm, or a fiftieth of the longer
    /// side in metres]
    #[arg(long, value_name = "THICKNESS", num_args = 0..=1, require_equals = true, allow_negative_numbers = true)]
    base: Option<Option<f64>>,
    /// Millimetres, the longer side being so long
    #[arg(long, value_name = "MM", allow_negative_numbers = true)]
    size: Option<f64>,
    /// Millimetres at the scale 1:N
    #[arg(long, value_name = "N", conflicts_with = "size", allow_negative_numbers = true)]
    scale: Option<f64>,
    /// Factor on heights
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, allow_negative_numbers = true)]
    exaggeration: f64,
    /// Picture with a place on the ground to lay over, such as hillshade.tif (.glb, .obj)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["vertex_colours", "tints"])]
    texture: Option<PathBuf>,
    /// Longer side of that picture in the file, pixels
    #[arg(long, value_name = "PIXELS", default_value_t = 4096, value_parser = super::whole)]
    texture_px: usize,
    /// The same picture as colours of the vertices (.glb, .obj, .ply)
    #[arg(long, value_name = "FILE", conflicts_with = "tints")]
    vertex_colours: Option<PathBuf>,
    /// Tints by height as colours of the vertices (.glb, .obj, .ply)
    #[arg(long)]
    tints: bool,
    /// Flat areas of a raster of classes: all, or a list of codes
    #[arg(long, value_name = "all|CODES", conflicts_with_all = ["max_error", "regular", "above"])]
    classes: Option<String>,
    /// Flat area where the raster is so much or more, by marching squares
    #[arg(long, value_name = "LEVEL", conflicts_with_all = ["max_error", "regular"], allow_negative_numbers = true)]
    above: Option<f64>,
    /// Where the border of --above runs between two cells
    #[arg(long, value_enum, default_value_t = CrossingArg::Interpolated, requires = "above")]
    crossing: CrossingArg,
    /// Solids of so many metres from the flat areas
    #[arg(long, value_name = "METRES", allow_negative_numbers = true)]
    walls: Option<f64>,
    /// CRS of the raster where it has none
    #[arg(long, value_name = "CRS")]
    crs: Option<String>,
    /// Worker threads [default: one per core]; the result does not depend on it
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CrossingArg {
    Interpolated,
    Midpoint,
}

impl Args {
    fn request(&self) -> Result<MeshRequest> {
        let subject = match (&self.classes, self.above) {
            (Some(list), _) => Subject::Classes(codes(list)?),
            (None, Some(level)) => {
                let crossing = match self.crossing {
                    CrossingArg::Interpolated => Crossing::Interpolated,
                    CrossingArg::Midpoint => Crossing::Midpoint,
                };
                Subject::Above { level, crossing }
            }
            _ if self.regular => Subject::Regular,
            _ => Subject::Ground { max_error: self.max_error },
        };
        Ok(MeshRequest {
            input: self.input.clone(),
            out: self.out.clone(),
            crs: self.crs.as_deref().map(|c| gdal_io::crs(c, "--crs")).transpose()?,
            subject,
            regions: self.regions.clone(),
            walls: self.walls,
            below: match (self.skirt, self.base) {
                (Some(depth), _) => Below::Skirt(depth),
                (None, Some(thickness)) => Below::Base(thickness),
                _ => Below::Open,
            },
            exaggeration: self.exaggeration,
            size: match (self.size, self.scale) {
                (Some(mm), _) => Size::LongerSide(mm),
                (None, Some(n)) => Size::Scale(n),
                _ => Size::Metres,
            },
            look: match (&self.texture, &self.vertex_colours) {
                (Some(path), _) => Look::Texture(path.clone()),
                (None, Some(path)) => Look::Vertices(path.clone()),
                _ if self.tints => Look::Tints,
                _ => Look::Plain,
            },
            texture_px: self.texture_px,
        })
    }
}

/// `all`, or codes with commas.
fn codes(list: &str) -> Result<Vec<u16>> {
    if list.trim() == "all" {
        return Ok(Vec::new());
    }
    list.split(',')
        .map(|c| {
            c.trim()
                .parse()
                .map_err(|_| Error::argument("--classes", format!("'{list}'"), "give all, or codes such as 3,4"))
        })
        .collect()
}

pub(super) fn run(args: &Args) -> Result<()> {
    crate::resources::with_threads(args.threads, || work(args))
}

fn work(args: &Args) -> Result<()> {
    let request = args.request()?;
    mesh_run::check(&request)?;
    let (raster, grid) = heightmap::read_any(&request.input, request.crs.as_ref())?;
    let done = mesh_run::mesh(&request, Ground { raster, grid })?;
    let mut text = format!("{}: {} vertices, {} triangles", request.out.display(), done.vertices, done.triangles);
    if let Some(e) = done.max_error {
        let _ = write!(text, ", within {e:.3} m of every cell");
    }
    let unit = if done.is_mm { "mm" } else { "m" };
    let [x, y, z] = done.extent;
    let _ = writeln!(
        text,
        "\n{x:.1} x {y:.1} x {z:.1} {unit} (east, north, up), {}",
        counted(done.parts.len(), "part", "parts")
    );
    if done.parts.len() > 1 {
        for (name, triangles) in &done.parts {
            let _ = writeln!(text, "  {name}: {}", counted(*triangles, "triangle", "triangles"));
        }
    }
    done.notes.iter().for_each(|n| _ = writeln!(text, "note: {n}"));
    terminal::print(&text)
}
