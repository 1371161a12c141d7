//! `histmap heightmap`.

use super::terminal;
use crate::error::{Error, Result};
use crate::gdal_io::{self, RasterReadOptions};
use crate::grid::{GeoTransform, Grid};
use crate::heightmap::chain::{self, Algorithm, DisplacementKind, EdgeKind, Filter, Recipe};
use crate::heightmap::raw::{self, ByteOrder, Encoded, Fit, RowOrder, SampleType, Sidecar};
use crate::raster::Raster;
use clap::ValueEnum;
use std::path::{Path, PathBuf};

/// Arguments of `histmap heightmap`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  histmap heightmap diamond-square --size 1025 --seed 7 --filter normalise=0,2000 hills.tif
  histmap heightmap fault --size 512 --iterations 200 --filter blur=3 faults.png
  histmap heightmap file hills.raw --filter terrace=8,0.3 terraces.obj")]
pub(super) struct Args {
    /// diamond-square, midpoint, profile, fault, fbm; `file` to read one; `recipe` to replay a heightmap.toml
    #[arg(value_name = "ALGORITHM")]
    source: Source,
    /// With `file` or `recipe` the file to read, then the file to write: .raw (8, 16 bits or float), .png and .pgm (16 bits),
    /// .tif, .asc, .hgt, .obj
    #[arg(value_name = "FILE", required = true, num_args = 1..=2)]
    files: Vec<PathBuf>,
    /// Values along x and y: one number, or COLSxROWS
    #[arg(long, value_name = "N|CxR", value_parser = size)]
    size: Option<[usize; 2]>,
    /// Every number follows from it
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Hurst exponent: 0 rugged, 1 smooth
    #[arg(long, value_name = "H", allow_negative_numbers = true)]
    hurst: Option<f64>,
    /// In place of --hurst: factor on the amplitude from level to level (0.5 halves it)
    #[arg(long, value_name = "F", conflicts_with = "hurst", allow_negative_numbers = true)]
    decay: Option<f64>,
    /// Deviation of the first displacement
    #[arg(long, value_name = "HEIGHT", allow_negative_numbers = true)]
    amplitude: Option<f32>,
    /// Heights of the corners NW,NE,SW,SE (profile: first,last,0,0)
    #[arg(long, value_name = "A,B,C,D", value_delimiter = ',', num_args = 4, allow_negative_numbers = true)]
    corners: Option<Vec<f32>>,
    /// Open borders, or opposite ones equal
    #[arg(long)]
    edges: Option<EdgeKind>,
    /// Distribution of the displacement
    #[arg(long)]
    displacement: Option<DisplacementKind>,
    /// Number of faults
    #[arg(long, value_name = "N")]
    iterations: Option<u32>,
    /// First and last step of the faults
    #[arg(long, value_name = "FIRST,LAST", value_delimiter = ',', num_args = 2, allow_negative_numbers = true)]
    step: Option<Vec<f32>>,
    /// Ramp of a fault over so many values, in place of a cliff
    #[arg(long, value_name = "VALUES", allow_negative_numbers = true)]
    smooth: Option<f32>,
    /// A filter; may be repeated, applied in the order given: blur=SIGMA, clamp=LOW,HIGH, normalise=LOW,HIGH,
    /// terrace=STEPS,SOFTNESS, invert, island=FALLOFF, thermal=ROUNDS,TALUS, streams=STEPS,STRENGTH
    #[arg(long = "filter", value_name = "FILTER")]
    filters: Vec<Filter>,
    /// Write the recipe, to replay it with `histmap heightmap recipe FILE OUT`
    #[arg(long, value_name = "FILE")]
    save_recipe: Option<PathBuf>,
    /// Type of RAW values, in and out (in: only where there is no sidecar)
    #[arg(long = "type", value_enum, value_name = "TYPE")]
    sample: Option<TypeArg>,
    /// Whole numbers: hold values at the ends of the type, or rescale the map to it
    #[arg(long, value_enum, default_value_t = FitArg::Rescale)]
    fit: FitArg,
    /// Most significant byte first
    #[arg(long)]
    big_endian: bool,
    /// Southern row first
    #[arg(long)]
    bottom_up: bool,
    /// Distance between values in .tif, .asc and .obj, in units of height
    #[arg(long, value_name = "UNITS", default_value_t = 1.0)]
    cell: f64,
    /// Worker threads [default: one per core]; the result does not depend on it
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Source {
    DiamondSquare,
    Midpoint,
    Profile,
    Fault,
    Fbm,
    File,
    Recipe,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TypeArg {
    U8,
    U16,
    I16,
    F32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FitArg {
    Clamp,
    Rescale,
}

fn size(text: &str) -> std::result::Result<[usize; 2], String> {
    let side = |t: &str| t.trim().parse::<usize>().map_err(|_| format!("'{text}' is no size: give N or COLSxROWS"));
    match text.split_once('x') {
        Some((c, r)) => Ok([side(c)?, side(r)?]),
        None => side(text).map(|n| [n, n]),
    }
}

impl TypeArg {
    fn sample(self) -> SampleType {
        match self {
            TypeArg::U8 => SampleType::U8,
            TypeArg::U16 => SampleType::U16,
            TypeArg::I16 => SampleType::I16,
            TypeArg::F32 => SampleType::F32,
        }
    }
}

fn orders(big_endian: bool, bottom_up: bool) -> (ByteOrder, RowOrder) {
    (
        if big_endian { ByteOrder::Big } else { ByteOrder::Little },
        if bottom_up { RowOrder::BottomUp } else { RowOrder::TopDown },
    )
}

impl Args {
    fn fit(&self) -> Fit {
        match self.fit {
            FitArg::Clamp => Fit::Clamp,
            FitArg::Rescale => Fit::Rescale,
        }
    }

    fn orders(&self) -> (ByteOrder, RowOrder) {
        orders(self.big_endian, self.bottom_up)
    }

    fn told(&self) -> Told {
        Told { size: self.size, sample: self.sample, big_endian: self.big_endian, bottom_up: self.bottom_up }
    }

    /// The recipe that the arguments, over those of a recipe file, ask for.
    fn recipe(&self, base: Recipe) -> Recipe {
        let algorithm = match self.source {
            Source::DiamondSquare => Algorithm::DiamondSquare,
            Source::Midpoint => Algorithm::Midpoint,
            Source::Profile => Algorithm::Profile,
            Source::Fault => Algorithm::Fault,
            Source::Fbm => Algorithm::Fbm,
            Source::File | Source::Recipe => base.algorithm,
        };
        let four = |v: &Vec<f32>| [v[0], v[1], v[2], v[3]];
        Recipe {
            algorithm,
            size: self.size.unwrap_or(base.size),
            seed: self.seed.unwrap_or(base.seed),
            hurst: self.hurst.unwrap_or(base.hurst),
            decay: self.decay.or(if self.hurst.is_some() { None } else { base.decay }),
            amplitude: self.amplitude.unwrap_or(base.amplitude),
            corners: self.corners.as_ref().map(four).or(base.corners),
            edges: self.edges.unwrap_or(base.edges),
            displacement: self.displacement.unwrap_or(base.displacement),
            iterations: self.iterations.unwrap_or(base.iterations),
            step: self.step.as_ref().map_or(base.step, |s| [s[0], s[1]]),
            smooth: self.smooth.unwrap_or(base.smooth),
            filters: [base.filters, self.filters.clone()].concat(),
        }
    }
}

pub(super) fn run(args: &Args) -> Result<()> {
    crate::resources::with_threads(args.threads, || work(args))
}

fn work(args: &Args) -> Result<()> {
    let reads = matches!(args.source, Source::File | Source::Recipe);
    let (input, out) = match (&args.files[..], reads) {
        ([input, out], true) => (Some(input), out),
        ([out], false) => (None, out),
        ([_], true) => {
            return Err(Error::argument("FILE", "one file", "give the file to read, then the file to write"));
        }
        _ => return Err(Error::argument("FILE", "two files", "a generator reads none: give the file to write")),
    };
    if !(args.cell > 0.0 && args.cell.is_finite()) {
        return Err(Error::argument("--cell", args.cell, "give a distance above 0"));
    }
    let form = Form::of(out)?; // before the work
    let (z, grid, notes) = match (args.source, input) {
        (Source::File, Some(path)) => {
            let (z, grid) = read(path, &args.told(), None)?;
            let (z, notes) = chain::apply(z, &args.filters)?;
            (z, grid, notes)
        }
        (Source::Recipe, Some(path)) => {
            let text = std::fs::read_to_string(path).map_err(|e| Error::read(path, e))?;
            let (z, notes) = args.recipe(Recipe::parse(&text, &path.display().to_string())?).make()?;
            (z, None, notes)
        }
        _ => {
            let recipe = args.recipe(Recipe::default());
            let made = recipe.make()?;
            if let Some(path) = &args.save_recipe {
                gdal_io::write_beside(path, recipe.to_toml().as_bytes())?;
            }
            (made.0, None, made.1)
        }
    };
    let said = write(&z, grid, out, form, args)?;
    let range = crate::heightmap::filter::range(&z)
        .map_or("no values".into(), |(low, high)| format!("heights {low:.3} to {high:.3}"));
    let mut text = format!("{}: {} x {}, {range}\n", out.display(), z.cols, z.rows);
    notes.iter().chain(&said).for_each(|n| text.push_str(&format!("note: {n}\n")));
    terminal::print(&text)
}

/// What is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Raw,
    Png,
    Pgm,
    Tiff,
    Ascii,
    Hgt,
    Obj,
}

impl Form {
    fn of(path: &Path) -> Result<Form> {
        let ending = path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase());
        Ok(match ending.as_deref() {
            Some("raw" | "r16" | "r32" | "r8") => Form::Raw,
            Some("png") => Form::Png,
            Some("pgm") => Form::Pgm,
            Some("tif" | "tiff") => Form::Tiff,
            Some("asc") => Form::Ascii,
            Some("hgt") => Form::Hgt,
            Some("obj") => Form::Obj,
            _ => {
                return Err(Error::content(
                    path.display().to_string(),
                    "an ending that names no heightmap format",
                    ".raw, .png, .pgm, .tif, .asc, .hgt or .obj",
                ));
            }
        })
    }
}

fn sidecar_path(path: &Path) -> PathBuf {
    PathBuf::from(format!("{}.json", path.display()))
}

/// What is told of a RAW file without a sidecar.
#[derive(Debug, Clone, Copy, Default)]
struct Told {
    size: Option<[usize; 2]>,
    sample: Option<TypeArg>,
    big_endian: bool,
    bottom_up: bool,
}

/// The raster in a file that says all by itself, with its grid where it has one.
pub(super) fn read_any(path: &Path, crs: Option<&crate::grid::Crs>) -> Result<(Raster<f32>, Option<Grid>)> {
    read(path, &Told::default(), crs)
}

/// The heightmap in a file, with its grid where it has one.
fn read(path: &Path, args: &Told, crs: Option<&crate::grid::Crs>) -> Result<(Raster<f32>, Option<Grid>)> {
    let name = path.display().to_string();
    if Form::of(path).ok() == Some(Form::Raw) {
        let bytes = std::fs::read(path).map_err(|e| Error::read(path, e))?;
        let beside = sidecar_path(path);
        let sidecar = match std::fs::read_to_string(&beside) {
            Ok(text) => serde_json::from_str::<Sidecar>(&text)
                .map_err(|e| Error::content(beside.display().to_string(), e, "the sidecar of a RAW heightmap"))?,
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(Error::read(&beside, e)),
            Err(_) => {
                let (Some([cols, rows]), Some(sample)) = (args.size, args.sample) else {
                    return Err(Error::content(
                        name,
                        format!("no sidecar {}", beside.display()),
                        "its size and type: give --size and --type",
                    ));
                };
                let (byte_order, row_order) = orders(args.big_endian, args.bottom_up);
                let (min, max, scale, offset) = (0.0, 0.0, 1.0, 0.0);
                Sidecar { cols, rows, sample: sample.sample(), byte_order, row_order, min, max, scale, offset }
            }
        };
        return Ok((raw::decode(&bytes, &sidecar, &name)?, None));
    }
    if matches!(Form::of(path), Ok(Form::Png | Form::Pgm)) {
        let image = image::open(path).map_err(|e| Error::read(path, e))?.into_luma16();
        let (cols, rows) = (image.width() as usize, image.height() as usize);
        let values = image.into_raw().into_iter().map(f32::from).collect();
        return Ok((Raster::from_values(cols, rows, values), None));
    }
    let file = match gdal_io::read_raster(path, &RasterReadOptions { crs, crs_flag: "--crs", ..Default::default() }) {
        // A heightmap need not lie anywhere.
        Err(Error::MissingCrs { .. }) => {
            gdal_io::read_raster(path, &RasterReadOptions { crs: Some(&local_crs()?), ..Default::default() })?
        }
        other => other?,
    };
    Ok((file.raster, Some(file.grid)))
}

/// A plane with no place on Earth, metres.
fn local_crs() -> Result<crate::grid::Crs> {
    gdal_io::crs("LOCAL_CS[\"heightmap\",UNIT[\"metre\",1]]", "--crs")
}

fn write(z: &Raster<f32>, grid: Option<Grid>, out: &Path, form: Form, args: &Args) -> Result<Vec<String>> {
    let mut notes = Vec::new();
    let (byte_order, row_order) = args.orders();
    let mut told = |e: Encoded, what: &str| -> Vec<u8> {
        if e.clamped > 0 {
            notes.push(format!("{} values do not fit {what} and were held at its ends", e.clamped));
        } else if e.sidecar.scale != 1.0 || e.sidecar.offset != 0.0 {
            notes.push(format!("height = number * {} + {}", e.sidecar.scale, e.sidecar.offset));
        }
        e.bytes
    };
    match form {
        Form::Raw => {
            let sample = args.sample.map_or(SampleType::F32, TypeArg::sample);
            let encoded = raw::encode(z, sample, byte_order, row_order, args.fit())?;
            let json = serde_json::to_string_pretty(&encoded.sidecar).unwrap_or_default() + "\n";
            gdal_io::write_beside(out, &told(encoded, "the type"))?;
            gdal_io::write_beside(&sidecar_path(out), json.as_bytes())?;
        }
        Form::Png => {
            let encoded = raw::encode(z, SampleType::U16, ByteOrder::Big, RowOrder::TopDown, args.fit())?;
            let bytes = told(encoded, "16 bits");
            let values = bytes.chunks_exact(2).map(|b| u16::from_be_bytes([b[0], b[1]])).collect();
            let picture =
                image::ImageBuffer::<image::Luma<u16>, Vec<u16>>::from_raw(z.cols as u32, z.rows as u32, values);
            let mut file = std::io::Cursor::new(Vec::new());
            picture
                .ok_or_else(|| Error::write(out, "the picture is larger than PNG holds"))?
                .write_to(&mut file, image::ImageFormat::Png)
                .map_err(|e| Error::write(out, e))?;
            gdal_io::write_beside(out, &file.into_inner())?;
        }
        Form::Pgm => gdal_io::write_beside(out, &told(raw::pgm(z, args.fit())?, "16 bits"))?,
        Form::Hgt => gdal_io::write_beside(out, &told(raw::hgt(z, args.fit())?, "16 bits"))?,
        Form::Ascii => gdal_io::write_beside(out, &raw::ascii_grid(z, args.cell))?,
        Form::Obj => gdal_io::write_beside(out, &raw::obj(z, args.cell))?,
        Form::Tiff => {
            let grid = match grid {
                Some(grid) => grid,
                None => Grid {
                    crs: local_crs()?,
                    transform: GeoTransform {
                        origin_x: 0.0,
                        origin_y: z.rows as f64 * args.cell,
                        cell_width: args.cell,
                        cell_height: args.cell,
                    },
                    cols: z.cols,
                    rows: z.rows,
                },
            };
            let options = gdal_io::CogOptions { nodata: Some(-32_768.0), ..Default::default() };
            let mut filled = z.clone();
            filled.values.iter_mut().filter(|v| !v.is_finite()).for_each(|v| *v = -32_768.0);
            gdal_io::write_cog(out, &grid, &[&filled], &options)?;
        }
    }
    Ok(notes)
}
