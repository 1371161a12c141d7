//! The page that shows a terrain, its polities through the years, or a mesh: a few files that need no network.
//!
//! The page itself is `data/view/`, compiled in; this module makes its `data.js` from a build, a raster or a mesh file.

pub mod packed;
pub mod serve;

use crate::contour::sensible_interval;
use crate::error::{Error, Result};
use crate::gdal_io::{self, ClassesFile, RasterReadOptions};
use crate::grid::Grid;
use crate::heightmap::filter;
use crate::manifest::{self, EraRecord, Manifest, PolityRecord};
use crate::mesh::place::metres_per_degree;
use crate::mesh::tin::{TinOptions, tin};
use crate::mesh::{Surface, files};
use crate::raster::Raster;
use crate::render::land_tint;
use crate::words::counted;
use packed::{base64, compressed, differences};
use rayon::prelude::*;
use serde_json::{Value, json};
use std::path::Path;

/// A file of the page.
#[derive(Debug, Clone, PartialEq)]
pub struct PageFile {
    /// Its name in the folder.
    pub name: &'static str,
    /// Its content.
    pub bytes: Vec<u8>,
}

impl PageFile {
    fn kind(&self) -> &'static str {
        match self.name.rsplit('.').next() {
            Some("html") => "text/html; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            _ => "text/javascript; charset=utf-8",
        }
    }
}

/// The page without its data.
const PAGE: [(&str, &[u8]); 4] = [
    ("index.html", include_bytes!("../../data/view/index.html")),
    ("view.css", include_bytes!("../../data/view/view.css")),
    ("view.js", include_bytes!("../../data/view/view.js")),
    ("three.min.js", include_bytes!("../../data/view/three.min.js")),
];

/// Most cells whose heights the page holds one by one.
const MOST_CELLS: usize = 40_000_000;
/// Most triangles of the terrain.
const MOST_TRIANGLES: usize = 500_000;

fn page(data: &Value) -> Vec<PageFile> {
    let mut files: Vec<PageFile> = PAGE.iter().map(|(name, bytes)| PageFile { name, bytes: bytes.to_vec() }).collect();
    // JSON is JavaScript save for two line separators, which serde writes as they are.
    let text = data.to_string().replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029");
    files.push(PageFile { name: "data.js", bytes: format!("window.HISTMAP = {text};\n").into_bytes() });
    files
}

/// Whether `path` is a mesh file by its ending.
pub fn is_mesh(path: &Path) -> bool {
    files::ending(&path.to_string_lossy()).is_some()
}

fn title(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into_owned())
}

/// The page of a mesh file: .glb, .obj, .stl or .ply.
///
/// # Errors
/// [`Error::Read`]; [`Error::Content`] when it is empty or no such file.
pub fn mesh_page(path: &Path) -> Result<Vec<PageFile>> {
    let bytes = std::fs::read(path).map_err(|e| Error::read(path, e))?;
    let form = files::ending(&path.to_string_lossy()).unwrap_or_default();
    let is_like = match &*form {
        "glb" => bytes.starts_with(b"glTF"),
        "ply" => bytes.starts_with(b"ply"),
        "stl" => bytes.len() >= 84 || bytes.starts_with(b"solid"),
        _ => bytes.iter().take(4096).all(|b| *b != 0) && !bytes.is_empty(),
    };
    if !is_like {
        return Err(Error::content(
            path.display().to_string(),
            "no content of that kind",
            "a whole .glb, .obj, .stl or .ply file",
        ));
    }
    Ok(page(&json!({
        "title": title(path),
        "subtitle": format!("Mesh, {} bytes", bytes.len()),
        "note": "",
        "mesh": { "form": form, "file": base64(&bytes) },
    })))
}

/// The page of a raster of heights; `grid` is where it lies, if anywhere.
///
/// # Errors
/// [`Error::Content`] when it has no height; [`Error::Argument`] when it has fewer than 2 columns or rows.
pub fn raster_page(path: &Path, raster: Raster<f32>, grid: Option<&Grid>) -> Result<Vec<PageFile>> {
    let ground = Ground::new(path, raster, grid)?;
    let subtitle = format!("{} x {} cells", ground.full.0, ground.full.1);
    let note = ground.note.clone();
    let terrain = ground.json(None, Vec::new())?;
    Ok(page(&json!({ "title": title(path), "subtitle": subtitle, "note": note, "terrain": terrain })))
}

/// The page of the output folder of a build: its terrain and the polities of its eras.
///
/// # Errors
/// [`Error::NoBuild`] when there is no manifest; those of reading the rasters that it names.
pub fn build_page(dir: &Path) -> Result<Vec<PageFile>> {
    let manifest = Manifest::read(dir)?;
    let maps: Vec<(String, &EraRecord, String, &[PolityRecord])> = if manifest.eras.is_empty() {
        vec![(String::new(), &manifest.era, "elevation.tif".into(), &manifest.polities)]
    } else {
        manifest.eras.iter().map(|e| (e.folder.clone(), &e.era, e.elevation.clone(), &e.polities[..])).collect()
    };
    let elevation = dir.join(&maps[0].2);
    let file = gdal_io::read_raster(&elevation, &RasterReadOptions::default())?;
    let mut ground = Ground::new(dir, file.raster, Some(&file.grid))?;
    let other = maps.iter().filter(|m| m.2 != maps[0].2).count();
    if other > 0 {
        let maps = counted(other, "map lies", "maps lie");
        ground.note += &format!("The ground is that of the first era; {maps} on another, with other lakes. ");
    }
    let water = elevation.with_file_name(maps[0].2.replacen("elevation", "water", 1));
    let water = if water.is_file() { Some(read_like(&water, &file.grid)?) } else { None };
    let mut eras = Vec::new();
    for (folder, era, _, polities) in maps {
        let regions = read_like(&dir.join(folder).join("regions.tif"), &file.grid)?;
        eras.push(ground.era(era, &regions, polities));
    }
    let water = water.map(|w| ground.codes(&w.raster.values).iter().map(|v| *v as u8).collect::<Vec<u8>>());
    let title = elevation_title(&manifest, dir);
    let subtitle =
        format!("{}, {} x {} cells, {}", manifest.era.given, manifest.size[0], manifest.size[1], manifest.crs);
    let note = ground.note.clone();
    let terrain = ground.json(water.as_deref(), eras)?;
    Ok(page(&json!({ "title": title, "subtitle": subtitle, "note": note, "terrain": terrain })))
}

/// Whether `dir` is the output folder of a build.
pub fn is_build(dir: &Path) -> bool {
    dir.join(manifest::FILE_NAME).is_file()
}

fn elevation_title(manifest: &Manifest, dir: &Path) -> String {
    let region = manifest.region.replace(['-', '_'], " ");
    let mut letters = region.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => title(dir),
    }
}

/// Classes on the grid of the elevation.
fn read_like(path: &Path, grid: &Grid) -> Result<ClassesFile> {
    let file = gdal_io::read_classes(path, &RasterReadOptions::default())?;
    if (file.grid.cols, file.grid.rows, file.grid.transform) != (grid.cols, grid.rows, grid.transform) {
        let frame =
            |g: &Grid| format!("{} x {} cells from {}, {}", g.cols, g.rows, g.transform.origin_x, g.transform.origin_y);
        return Err(Error::GridMismatch {
            left: format!("elevation {}", frame(grid)),
            right: format!("{} {}", path.display(), frame(&file.grid)),
        });
    }
    Ok(file)
}

/// Heights as the page has them.
struct Ground {
    z: Raster<f32>,
    /// Columns and rows of the file.
    full: (usize, usize),
    /// Cells of the file along one of the page.
    shrink: usize,
    /// Metres in a cell of the page.
    cell_m: [f64; 2],
    /// West, north, cell width and height of the page's cells; `None` without a place.
    transform: Option<[f64; 4]>,
    is_geographic: bool,
    low: f32,
    high: f32,
    note: String,
}

impl Ground {
    fn new(path: &Path, raster: Raster<f32>, grid: Option<&Grid>) -> Result<Ground> {
        let full = (raster.cols, raster.rows);
        let Some((low, high)) = filter::range(&raster) else {
            return Err(Error::content(path.display().to_string(), "no cell with a height", "some heights"));
        };
        let shrink = (1..).find(|n| full.0.div_ceil(*n) * full.1.div_ceil(*n) <= MOST_CELLS).unwrap_or(1);
        let z = if shrink > 1 { means(&raster, shrink) } else { raster };
        let mut note = String::new();
        if shrink > 1 {
            note += &format!("Heights are means of {shrink} x {shrink} cells. ");
        }
        let size = full.0.max(full.1) as f64;
        let relief = f64::from(high) - f64::from(low);
        let n = shrink as f64;
        let (cell_m, transform, is_geographic) = match grid {
            Some(g) => {
                let t = g.transform;
                let [x, y] = match gdal_io::metres_per_unit(&g.crs)? {
                    Some(unit) => [unit, unit],
                    None => metres_per_degree(t.origin_y - g.rows as f64 / 2.0 * t.cell_height),
                };
                let place = [t.origin_x, t.origin_y, t.cell_width * n, t.cell_height * n];
                ([t.cell_width * n * x, t.cell_height * n * y], Some(place), g.crs.is_geographic)
            }
            None => {
                let cell = if relief > 0.0 { relief / (0.15 * size) } else { 1.0 };
                note += "The file says nothing of its place: the width is chosen to suit the heights. ";
                ([cell * n; 2], None, false)
            }
        };
        Ok(Ground { z, full, shrink, cell_m, transform, is_geographic, low, high, note })
    }

    /// Codes of the page's cells: those of the middle of each.
    fn codes(&self, values: &[u16]) -> Vec<u16> {
        let n = self.shrink;
        if n == 1 {
            return values.to_vec();
        }
        let at = |k: usize, all: usize| (k * n + n / 2).min(all - 1);
        (0..self.z.rows)
            .flat_map(|r| (0..self.z.cols).map(move |c| (c, r)))
            .map(|(c, r)| values[at(r, self.full.1) * self.full.0 + at(c, self.full.0)])
            .collect()
    }

    fn era(&self, era: &EraRecord, regions: &ClassesFile, polities: &[PolityRecord]) -> Value {
        let codes = self.codes(&regions.raster.values);
        let mut present = vec![false; usize::from(u16::MAX) + 1];
        codes.iter().for_each(|c| present[usize::from(*c)] = true);
        let is_wide = codes.iter().any(|c| *c > 255);
        let bytes: Vec<u8> = if is_wide {
            codes.iter().flat_map(|c| c.to_le_bytes()).collect()
        } else {
            codes.iter().map(|c| *c as u8).collect()
        };
        let mut listed: Vec<Value> = (1..=u16::MAX)
            .filter(|c| present[usize::from(*c)])
            .map(|code| {
                let look = regions.looks.get(&code).cloned().unwrap_or_default();
                let record = polities.iter().find(|p| p.code == code);
                let name = record.map(|p| p.name.clone()).unwrap_or(look.name);
                let colour = look.colour.unwrap_or([200, 190, 170]);
                json!({ "code": code, "name": name, "colour": colour, "years": record.map(|p| p.years.clone()) })
            })
            .collect();
        listed.sort_by_key(|p| p["name"].as_str().map(str::to_lowercase));
        json!({
            "label": era.given,
            "first": era.first_astronomical,
            "last": era.last_astronomical,
            "wide": is_wide,
            "codes": base64(&compressed(&bytes)),
            "polities": listed,
        })
    }

    fn json(&self, water: Option<&[u8]>, eras: Vec<Value>) -> Result<Value> {
        let relief = f64::from(self.high) - f64::from(self.low);
        // A step that five digits of the relief need.
        let quantum = if relief > 0.0 { 10f64.powf((relief / 20_000.0).log10().floor()) } else { 0.1 };
        let whole = |v: &f32| if v.is_finite() { (f64::from(*v) / quantum).round() as i32 } else { packed::NONE };
        let heights = base64(&compressed(&differences(self.z.values.iter().map(whole))));
        let surface = self.surface(relief)?;
        let nodes = &surface.vertices;
        let places = nodes.iter().map(|n| n.col as i32).chain(nodes.iter().map(|n| n.row as i32));
        let width_m = self.cell_m[0] * self.z.cols as f64;
        let exaggeration = if relief > 0.0 { (0.03 * width_m / relief).clamp(1.0, 10.0) } else { 1.0 };
        // Tints of true heights; those of a heightmap without a place, or nearly flat, are stretched.
        let is_true = self.transform.is_some() && relief > 200.0;
        let tints: Vec<u8> = (0..256)
            .flat_map(|k| {
                let t = k as f32 / 255.0;
                let height = if is_true { self.low + (self.high - self.low) * t } else { 3500.0 * t };
                let [r, g, b] = land_tint(height).map(|v| v.round() as u8);
                [r, g, b, 255]
            })
            .collect();
        Ok(json!({
            "cols": self.z.cols,
            "rows": self.z.rows,
            "shrink": self.shrink,
            "cell_m": self.cell_m,
            "transform": self.transform,
            "is_geographic": self.is_geographic,
            "low": self.low,
            "high": self.high,
            "quantum": quantum,
            "interval": if relief >= 12.0 { sensible_interval(self.low.into(), self.high.into()) } else { relief.max(1e-6) / 20.0 },
            "exaggeration": exaggeration,
            "heights": heights,
            "water": water.map(|w| base64(&compressed(w))),
            "tints": base64(&tints),
            "vertex_count": nodes.len(),
            "triangle_count": surface.len(),
            "vertices": base64(&compressed(&differences(places))),
            "triangles": base64(&compressed(&differences(surface.triangles().flatten().map(|v| v as i32)))),
            "eras": eras,
        }))
    }

    /// A mesh of as many triangles as the page draws with ease.
    fn surface(&self, relief: f64) -> Result<Surface> {
        let mut max_error = relief / 400.0;
        // Closer to the number at each try; noise of the whole range would never do with fewer.
        for _ in 0..6 {
            let surface = tin(&self.z, &TinOptions { max_error, classes: None })?;
            if surface.len() <= MOST_TRIANGLES || max_error > relief {
                return Ok(surface);
            }
            max_error *= (surface.len() as f64 / MOST_TRIANGLES as f64).powf(0.8).clamp(1.25, 8.0);
        }
        tin(&self.z, &TinOptions { max_error: relief, classes: None })
    }
}

/// Means of `n` x `n` cells; NaN where none has a height.
fn means(z: &Raster<f32>, n: usize) -> Raster<f32> {
    let (cols, rows) = (z.cols.div_ceil(n), z.rows.div_ceil(n));
    let values = (0..rows * cols)
        .into_par_iter()
        .map(|k| {
            let (c, r) = (k % cols * n, k / cols * n);
            let (mut sum, mut count) = (0f64, 0);
            for row in r..(r + n).min(z.rows) {
                for v in z.row(row)[c..(c + n).min(z.cols)].iter().filter(|v| v.is_finite()) {
                    sum += f64::from(*v);
                    count += 1;
                }
            }
            if count > 0 { (sum / f64::from(count)) as f32 } else { f32::NAN }
        })
        .collect();
    Raster::from_values(cols, rows, values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_of_squares_leave_holes_out() {
        let z = Raster::from_values(3, 2, vec![1.0, 3.0, 5.0, f32::NAN, 5.0, f32::NAN]);
        assert_eq!(means(&z, 2).values, [3.0, 5.0]);
        assert!(means(&Raster::filled(2, 2, f32::NAN), 2).values[0].is_nan());
    }

    #[test]
    fn a_page_has_all_its_files_and_its_script_is_one_line() {
        let z = Raster::from_values(3, 3, (0..9).map(|v| v as f32).collect());
        let files = raster_page(Path::new("a\u{2028}.tif"), z, None).unwrap();
        let names: Vec<&str> = files.iter().map(|f| f.name).collect();
        assert_eq!(names, ["index.html", "view.css", "view.js", "three.min.js", "data.js"]);
        let data = String::from_utf8(files[4].bytes.clone()).unwrap();
        assert!(data.starts_with("window.HISTMAP = {") && data.lines().count() == 1 && !data.contains('\u{2028}'));
        // What index.html asks for is there.
        let html = String::from_utf8(files[0].bytes.clone()).unwrap();
        for wanted in html.split("src=\"").skip(1).filter_map(|s| s.split('"').next()) {
            assert!(names.contains(&wanted), "{wanted}");
        }
        assert!(!html.contains("http"), "the page asks the network");
        assert!(raster_page(Path::new("a.tif"), Raster::filled(3, 3, f32::NAN), None).is_err());
    }
}
