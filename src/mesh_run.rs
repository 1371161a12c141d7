//! Meshes of files: rasters in, mesh files out.

use crate::error::{Error, Result};
use crate::gdal_io::{self, ClassLook, PictureFile, RasterReadOptions, Transformer};
use crate::grid::{Crs, Grid};
use crate::mesh::files::{self, Picture};
use crate::mesh::marching::{Crossing, area_at, areas_of};
use crate::mesh::place::Placement;
use crate::mesh::tin::{TinOptions, tin};
use crate::mesh::{Mesh, Node, Part, PartKind, Surface, grid_mesh, solid};
use crate::raster::Raster;
use crate::render::land_tint;
use crate::resources;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What the mesh is of.
#[derive(Debug, Clone, PartialEq)]
pub enum Subject {
    /// The ground, within so many metres; `None` is a four-hundredth of its range of heights.
    Ground {
        /// Farthest that a cell's height may lie above or below the mesh.
        max_error: Option<f64>,
    },
    /// The ground, a vertex in every cell.
    Regular,
    /// Where the raster reaches a level.
    Above {
        /// The level.
        level: f64,
        /// Where its border runs.
        crossing: Crossing,
    },
    /// The areas of classes; all but 0 where none is named.
    Classes(Vec<u16>),
}

/// What hangs from the borders.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Below {
    /// Nothing.
    Open,
    /// Walls of so many metres.
    Skirt(f64),
    /// A closed solid, its floor so far under the lowest point, in units of the file; `None` chooses.
    Base(Option<f64>),
}

/// The size of what is written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Size {
    /// Metres.
    Metres,
    /// Millimetres at a scale of 1 to so many.
    Scale(f64),
    /// Millimetres, the longer side being so long.
    LongerSide(f64),
}

/// Colours.
#[derive(Debug, Clone, PartialEq)]
pub enum Look {
    /// None.
    Plain,
    /// A picture with a place on the ground, laid over.
    Texture(PathBuf),
    /// The same, as colours of the vertices.
    Vertices(PathBuf),
    /// Tints by height, as colours of the vertices.
    Tints,
}

/// A mesh to make.
#[derive(Debug, Clone, PartialEq)]
pub struct MeshRequest {
    /// Raster.
    pub input: PathBuf,
    /// File to write: .glb, .obj, .stl or .ply.
    pub out: PathBuf,
    /// CRS of the input where it has none.
    pub crs: Option<Crs>,
    /// What it is of.
    pub subject: Subject,
    /// Raster of classes on the same grid, each of which becomes a part.
    pub regions: Option<PathBuf>,
    /// Height of the walls that make solids of flat areas, metres.
    pub walls: Option<f64>,
    /// What hangs from the borders.
    pub below: Below,
    /// Factor on heights.
    pub exaggeration: f64,
    /// Size of the result.
    pub size: Size,
    /// Colours.
    pub look: Look,
    /// Longer side of the picture in the file, pixels.
    pub texture_px: usize,
}

/// What was written.
#[derive(Debug, Clone, PartialEq)]
pub struct MeshSummary {
    /// Files.
    pub files: Vec<PathBuf>,
    /// Vertices.
    pub vertices: usize,
    /// Triangles.
    pub triangles: usize,
    /// Names of parts with their triangles.
    pub parts: Vec<(String, usize)>,
    /// Farthest that heights lie from the mesh, where it was bound.
    pub max_error: Option<f64>,
    /// Lengths along east, north and up, in metres, or millimetres where `is_mm`.
    pub extent: [f64; 3],
    /// Whether lengths are millimetres.
    pub is_mm: bool,
    /// What deserves attention.
    pub notes: Vec<String>,
}

/// A raster with its place, if it has one, as [`mesh`] wants it.
pub struct Ground {
    /// Heights, NaN where there is none.
    pub raster: Raster<f32>,
    /// Its frame.
    pub grid: Option<Grid>,
}

/// Makes a mesh of `ground`, read from the input, and writes it.
///
/// # Errors
/// [`Error`] of reading and writing; [`Error::Argument`] for options that do not go together, an input without any square of
/// heights, a size that does not fit into memory.
pub fn mesh(request: &MeshRequest, ground: Ground) -> Result<MeshSummary> {
    let form = form_of(request)?;
    let mut notes = Vec::new();
    let placement = placement(&ground, &mut notes)?;
    let has_walls = request.walls.is_some() || matches!(request.below, Below::Base(_));
    let mut regions = None;
    if let Some(path) = &request.regions {
        regions = Some(read_regions(path, &ground)?);
    }
    let (surface, max_error) = surface(request, &ground.raster, regions.as_ref().map(|r| &r.0))?;
    if surface.is_empty() {
        return Err(Error::content(
            request.input.display().to_string(),
            "no square of four neighbouring cells to make a mesh of",
            "cells with heights, or of the classes or above the level asked for",
        ));
    }
    let looks = match (&regions, &request.subject) {
        (Some((_, looks)), _) => looks.clone(),
        (None, Subject::Classes(_)) => read_looks(request)?,
        _ => BTreeMap::new(),
    };
    // Flat areas become solids one by one: each has vertices of its own.
    let surfaces = match request.walls {
        Some(_) => surface
            .groups
            .iter()
            .map(|g| compact(&Surface { vertices: surface.vertices.clone(), groups: vec![g.clone()] }))
            .map(solid::separated)
            .collect(),
        None if has_walls => vec![solid::separated(surface)],
        None => vec![surface],
    };
    let mut mesh = Mesh::default();
    let is_flat = matches!(request.subject, Subject::Above { .. } | Subject::Classes(_));
    let lift = request.walls.unwrap_or(0.0) * request.exaggeration;
    for s in &surfaces {
        append(
            &mut mesh,
            s,
            &placement,
            &looks,
            |n| {
                if is_flat { lift } else { f64::from(n.z) * request.exaggeration }
            },
        );
    }
    let nodes: Vec<Node> = surfaces.iter().flat_map(|s| s.vertices.iter().copied()).collect();
    let picture = match &request.look {
        Look::Plain => None,
        Look::Tints => {
            mesh.colours = nodes.iter().map(|n| land_tint(n.z).map(|v| v.round() as u8)).collect();
            None
        }
        Look::Texture(path) | Look::Vertices(path) => {
            let picture = gdal_io::read_picture(path)?;
            let uvs = places(&nodes, &ground, &picture, path)?;
            if matches!(request.look, Look::Vertices(_)) {
                mesh.colours = uvs.par_iter().map(|uv| colour_at(&picture, *uv)).collect();
                None
            } else {
                let (uvs, picture) = cut(&picture, uvs, request.texture_px, path)?;
                mesh.uvs = uvs;
                Some(picture)
            }
        }
    };

    let is_mm = request.size != Size::Metres;
    let factor = match request.size {
        Size::Metres => 1.0,
        Size::Scale(n) => 1000.0 / n,
        Size::LongerSide(mm) => {
            let (low, high) = mesh.bounds().unwrap_or_default();
            mm / (high[0] - low[0]).max(high[1] - low[1])
        }
    };
    mesh.positions.iter_mut().for_each(|p| *p = p.map(|c| c * factor));
    if request.walls.is_some() {
        mesh.extrude(0.0);
    }
    match request.below {
        Below::Open => {}
        Below::Skirt(depth) => mesh.add_skirt(depth * request.exaggeration * factor),
        Below::Base(thickness) => {
            let (low, high) = mesh.bounds().unwrap_or_default();
            let chosen = if is_mm { 3.0 } else { 0.02 * (high[0] - low[0]).max(high[1] - low[1]) };
            mesh.add_base(low[2] - thickness.unwrap_or(chosen));
        }
    }
    if is_mm {
        // Stands on the plate of a printer.
        let floor = mesh.bounds().map_or(0.0, |b| b.0[2]);
        mesh.positions.iter_mut().for_each(|p| p[2] -= floor);
    }
    let files = write(&mesh, picture.as_ref(), &request.out, form)?;
    let (low, high) = mesh.bounds().unwrap_or_default();
    Ok(MeshSummary {
        files,
        vertices: mesh.positions.len(),
        triangles: mesh.len(),
        parts: mesh.parts.iter().map(|p| (p.name.clone(), p.triangles.len())).collect(),
        max_error,
        extent: [0, 1, 2].map(|k| high[k] - low[k]),
        is_mm,
        notes,
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Glb,
    Obj,
    Stl,
    Ply,
}

/// Refuses what cannot be, before anything is read.
///
/// # Errors
/// [`Error::Argument`] for options out of range or that do not go together; [`Error::Content`] for another ending.
pub fn check(request: &MeshRequest) -> Result<()> {
    form_of(request).map(|_| ())
}

/// The same; the form of the file.
fn form_of(request: &MeshRequest) -> Result<Form> {
    let form = match files::ending(&request.out.to_string_lossy()).as_deref() {
        Some("glb") => Form::Glb,
        Some("obj") => Form::Obj,
        Some("stl") => Form::Stl,
        Some("ply") => Form::Ply,
        _ => {
            return Err(Error::content(
                request.out.display().to_string(),
                "an ending that names no mesh format",
                ".glb, .obj, .stl or .ply",
            ));
        }
    };
    let positive = |what: &str, v: f64| {
        if v > 0.0 && v.is_finite() { Ok(()) } else { Err(Error::argument(what, v, "give a number above 0")) }
    };
    positive("--exaggeration", request.exaggeration)?;
    match request.size {
        Size::Metres => {}
        Size::Scale(n) => positive("--scale", n)?,
        Size::LongerSide(mm) => positive("--size", mm)?,
    }
    match request.below {
        Below::Open | Below::Base(None) => {}
        Below::Skirt(depth) => positive("--skirt", depth)?,
        Below::Base(Some(thickness)) => positive("--base", thickness)?,
    }
    let is_flat = matches!(request.subject, Subject::Above { .. } | Subject::Classes(_));
    if let Some(height) = request.walls {
        positive("--walls", height)?;
        if !is_flat {
            return Err(Error::argument(
                "--walls",
                height,
                "walls are for --classes and --above: the ground takes --skirt or --base",
            ));
        }
    }
    if is_flat && request.below != Below::Open {
        return Err(Error::argument("--skirt, --base", "flat areas", "give --walls HEIGHT in their place"));
    }
    if is_flat && request.regions.is_some() {
        return Err(Error::argument(
            "--regions",
            "flat areas",
            "give the raster of classes as the input, with --classes",
        ));
    }
    let refuse =
        |what: &str, name: &str, remedy: &str| Err(Error::argument(what, format!("{name} holds none"), remedy));
    match (&request.look, form) {
        (Look::Texture(_), Form::Stl | Form::Ply) => refuse(
            "--texture",
            if form == Form::Stl { "STL" } else { "PLY" },
            "write .glb or .obj, or take the picture's colours with --vertex-colours into .ply",
        ),
        (Look::Vertices(_) | Look::Tints, Form::Stl) => {
            refuse("--vertex-colours, --tints", "STL", "write .glb, .obj or .ply")
        }
        _ if request.texture_px == 0 => Err(Error::argument("--texture-px", 0, "give 1 or more")),
        _ => Ok(form),
    }
}

/// Where the raster lies; one metre a cell where it lies nowhere.
fn placement(ground: &Ground, notes: &mut Vec<String>) -> Result<Placement> {
    let Some(grid) = &ground.grid else {
        let (cols, rows) = (ground.raster.cols, ground.raster.rows);
        let transform =
            crate::grid::GeoTransform { origin_x: 0.0, origin_y: rows as f64, cell_width: 1.0, cell_height: 1.0 };
        let crs = Crs { name: String::new(), wkt: String::new(), is_geographic: false };
        notes.push("the file says nothing of its place: a cell is one metre".into());
        return Ok(Placement::of(&Grid { crs, transform, cols, rows }, Some(1.0)));
    };
    let placement = Placement::of(grid, gdal_io::metres_per_unit(&grid.crs)?);
    if placement.is_cylinder() {
        notes.push(
            "it reaches around too much of the Earth for one plane: east-west distances are true at its middle only"
                .into(),
        );
    }
    Ok(placement)
}

type Regions = (Raster<u16>, BTreeMap<u16, ClassLook>);

fn read_regions(path: &Path, ground: &Ground) -> Result<Regions> {
    let crs = ground.grid.as_ref().map(|g| g.crs.clone());
    let stated = RasterReadOptions { crs_flag: "--crs", ..Default::default() };
    let file = match gdal_io::read_classes(path, &stated) {
        // On the grid of the elevation, whose CRS it then has.
        Err(Error::MissingCrs { .. }) => {
            gdal_io::read_classes(path, &RasterReadOptions { crs: crs.as_ref(), ..stated })?
        }
        other => other?,
    };
    let is_same = ground.grid.as_ref().is_none_or(|g| {
        let (a, b) = (g.transform, file.grid.transform);
        let close = |x: f64, y: f64| (x - y).abs() < 1e-3 * a.cell_width;
        close(a.origin_x, b.origin_x)
            && close(a.origin_y, b.origin_y)
            && close(a.cell_width, b.cell_width)
            && close(a.cell_height, b.cell_height)
    });
    let (cols, rows) = (ground.raster.cols, ground.raster.rows);
    if !is_same || (file.raster.cols, file.raster.rows) != (cols, rows) {
        let frame = |g: &Grid| {
            let t = g.transform;
            format!("{} x {} cells of {} from {}, {}", g.cols, g.rows, t.cell_width, t.origin_x, t.origin_y)
        };
        return Err(Error::GridMismatch {
            left: ground.grid.as_ref().map_or(format!("{cols} x {rows} cells"), frame),
            right: format!("{}: {}", path.display(), frame(&file.grid)),
        });
    }
    Ok((file.raster, file.looks))
}

fn read_looks(request: &MeshRequest) -> Result<BTreeMap<u16, ClassLook>> {
    let options = RasterReadOptions { crs: request.crs.as_ref(), crs_flag: "--crs", ..Default::default() };
    Ok(gdal_io::read_classes(&request.input, &options).map(|f| f.looks).unwrap_or_default())
}

fn surface(request: &MeshRequest, z: &Raster<f32>, classes: Option<&Raster<u16>>) -> Result<(Surface, Option<f64>)> {
    // Bytes a cell, with the mesh at its largest and the file in memory.
    let need = |bytes: u64| {
        let (cols, rows) = (z.cols as u64, z.rows as u64);
        resources::require(cols, rows, cols * rows * bytes, "memory", resources::memory_available())
    };
    match &request.subject {
        Subject::Ground { max_error } => {
            need(12)?;
            let range = crate::heightmap::filter::range(z).map_or(0.0, |(low, high)| f64::from(high) - f64::from(low));
            let max_error = max_error.unwrap_or(range / 400.0);
            Ok((tin(z, &TinOptions { max_error, classes })?, Some(max_error)))
        }
        Subject::Regular => {
            need(160)?;
            Ok((grid_mesh::grid_mesh(z, classes)?, None))
        }
        Subject::Above { level, crossing } => {
            need(160)?;
            Ok((area_at(z, *level, *crossing)?, None))
        }
        Subject::Classes(wanted) => {
            need(160)?;
            let whole = |v: &f32| {
                if v.is_nan() {
                    Some(0)
                } else {
                    (v.fract() == 0.0 && (0.0..=65_535.0).contains(v)).then_some(*v as u16)
                }
            };
            let values: Option<Vec<u16>> = z.values.iter().map(whole).collect();
            let values = values.ok_or_else(|| {
                Error::content(
                    request.input.display().to_string(),
                    "values that are no classes",
                    "whole numbers of 0 to 65535, or --above LEVEL",
                )
            })?;
            Ok((areas_of(&Raster::from_values(z.cols, z.rows, values), wanted)?, None))
        }
    }
}

/// Without the vertices that no triangle uses.
fn compact(s: &Surface) -> Surface {
    let mut number = vec![u32::MAX; s.vertices.len()];
    s.triangles().flatten().for_each(|v| number[v as usize] = 0);
    let mut vertices = Vec::new();
    for (n, v) in number.iter_mut().zip(&s.vertices).filter(|(n, _)| **n == 0) {
        *n = vertices.len() as u32;
        vertices.push(*v);
    }
    let mut groups = s.groups.clone();
    groups.iter_mut().flat_map(|g| &mut g.triangles).for_each(|t| *t = t.map(|v| number[v as usize]));
    Surface { vertices, groups }
}

fn append(
    mesh: &mut Mesh,
    s: &Surface,
    placement: &Placement,
    looks: &BTreeMap<u16, ClassLook>,
    up: impl Fn(&Node) -> f64 + Sync,
) {
    let first = mesh.positions.len() as u32;
    let place = |n: &Node| {
        let [x, y] = placement.at(f64::from(n.col), f64::from(n.row));
        [x, y, up(n)]
    };
    mesh.positions.par_extend(s.vertices.par_iter().map(place));
    for g in &s.groups {
        let look = looks.get(&g.class);
        let name = match look.map(|l| l.name.as_str()).filter(|n| !n.is_empty()) {
            Some(name) => name.to_string(),
            None if g.class == 0 && looks.is_empty() => "ground".into(),
            None if g.class == 0 => "unclaimed".into(),
            None => format!("class {}", g.class),
        };
        mesh.parts.push(Part {
            name,
            kind: PartKind::Surface,
            colour: look.and_then(|l| l.colour),
            triangles: g.triangles.iter().map(|t| t.map(|v| v + first)).collect(),
        });
    }
}

/// Where vertices lie in a picture, from its upper left corner, in shares of its sides.
fn places(nodes: &[Node], ground: &Ground, picture: &PictureFile, path: &Path) -> Result<Vec<[f64; 2]>> {
    let no_place = |found: &str| {
        Error::content(
            path.display().to_string(),
            found,
            "a picture with a place on the ground, such as hillshade.tif of a build",
        )
    };
    let frame = picture.grid.as_ref().ok_or_else(|| no_place("neither CRS nor geotransform"))?;
    let grid = ground.grid.as_ref().ok_or_else(|| {
        Error::argument(
            "--texture",
            "a heightmap without a place on the ground",
            "give a georeferenced elevation raster",
        )
    })?;
    let t = &grid.transform;
    let mut xs: Vec<f64> = nodes.iter().map(|n| t.origin_x + (f64::from(n.col) + 0.5) * t.cell_width).collect();
    let mut ys: Vec<f64> = nodes.iter().map(|n| t.origin_y - (f64::from(n.row) + 0.5) * t.cell_height).collect();
    if grid.crs.wkt != frame.crs.wkt {
        Transformer::new(&grid.crs, &frame.crs)?.forward(&mut xs, &mut ys);
    }
    let f = &frame.transform;
    let uvs: Vec<[f64; 2]> = xs
        .iter()
        .zip(&ys)
        .map(|(x, y)| {
            [
                (x - f.origin_x) / (f.cell_width * picture.cols as f64),
                (f.origin_y - y) / (f.cell_height * picture.rows as f64),
            ]
        })
        .collect();
    let is_inside = |uv: &[f64; 2]| uv.iter().all(|c| (0.0..=1.0).contains(c));
    if !uvs.iter().any(is_inside) {
        return Err(no_place("it lies elsewhere than the elevation"));
    }
    Ok(uvs.into_iter().map(|uv| uv.map(|c| if c.is_finite() { c.clamp(0.0, 1.0) } else { 0.0 })).collect())
}

fn colour_at(picture: &PictureFile, [u, v]: [f64; 2]) -> [u8; 3] {
    let at = |share: f64, n: usize| ((share * n as f64) as usize).min(n - 1);
    picture.rgb[at(v, picture.rows) * picture.cols + at(u, picture.cols)]
}

/// The part of the picture that is used, at most `longest` pixels a side, as a JPEG.
fn cut(picture: &PictureFile, uvs: Vec<[f64; 2]>, longest: usize, path: &Path) -> Result<(Vec<[f32; 2]>, Picture)> {
    let (w, h) = (picture.cols as f64, picture.rows as f64);
    let range = |k: usize, n: f64| {
        let (low, high) = uvs.iter().fold((1f64, 0f64), |(a, b), uv| (a.min(uv[k]), b.max(uv[k])));
        let first = (low * n - 2.0).floor().max(0.0);
        (first as usize, ((high * n + 2.0).ceil().min(n) - first).max(1.0) as usize)
    };
    let ((x, cols), (y, rows)) = (range(0, w), range(1, h));
    let bytes: Vec<u8> = (y..y + rows)
        .flat_map(|r| picture.rgb[r * picture.cols + x..r * picture.cols + x + cols].iter().flatten().copied())
        .collect();
    let fail = |e: &dyn std::fmt::Display| {
        Error::content(path.display().to_string(), e, "a picture that can be written as JPEG")
    };
    let image = image::RgbImage::from_raw(cols as u32, rows as u32, bytes).ok_or_else(|| fail(&"its size"))?;
    let shrink = longest as f64 / cols.max(rows) as f64;
    let image = if shrink < 1.0 {
        let side = |n: usize| ((n as f64 * shrink).round() as u32).max(1);
        image::imageops::resize(&image, side(cols), side(rows), image::imageops::FilterType::Triangle)
    } else {
        image
    };
    let mut bytes = Vec::new();
    image::codecs::jpeg::JpegEncoder::new_with_quality(&mut bytes, 92).encode_image(&image).map_err(|e| fail(&e))?;
    let uvs = uvs
        .iter()
        .map(|[u, v]| [((u * w - x as f64) / cols as f64) as f32, ((v * h - y as f64) / rows as f64) as f32])
        .collect();
    Ok((uvs, Picture { bytes, mime: "image/jpeg" }))
}

fn write(mesh: &Mesh, picture: Option<&Picture>, out: &Path, form: Form) -> Result<Vec<PathBuf>> {
    match form {
        Form::Glb => gdal_io::write_beside(out, &files::glb(mesh, picture)?)?,
        Form::Stl => gdal_io::write_beside(out, &files::stl(mesh)?)?,
        Form::Ply => gdal_io::write_beside(out, &files::ply(mesh)?)?,
        Form::Obj => {
            let (materials, image) = (out.with_extension("mtl"), out.with_extension("jpg"));
            let name = |p: &Path| p.file_name().map(|n| n.to_string_lossy().replace(' ', "_")).unwrap_or_default();
            let (obj, mtl) = files::obj(mesh, &name(&materials), picture.map(|_| name(&image)).as_deref())?;
            let mut written = vec![out.to_path_buf()];
            if let Some(p) = picture {
                let image = image.with_file_name(name(&image));
                gdal_io::write_beside(&image, &p.bytes)?;
                written.push(image);
            }
            let materials = materials.with_file_name(name(&materials));
            gdal_io::write_beside(&materials, &mtl)?;
            written.push(materials);
            gdal_io::write_beside(out, &obj)?;
            return Ok(written);
        }
    }
    Ok(vec![out.to_path_buf()])
}
