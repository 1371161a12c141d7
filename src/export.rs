//! What a build writes: GeoTIFFs, the GeoPackage, the map sheet and the manifest.

use crate::borders::{Certainty, ClaimKind, PolityRegion, Sureness};
use crate::contour::{self, ContourOptions};
use crate::error::Result;
use crate::gdal_io::styles;
use crate::gdal_io::{
    self, AttributeColumn, AttributeTable, CogOptions, ColumnUse, ColumnValues, GeometryKind, GpkgLayer, GpkgOptions,
    LayerStyle, Overviews, Transformer,
};
use crate::grid::{Extent, Grid, LonLat, LonLatBox, Window, Xy};
use crate::manifest::{BlockMeansRecord, EraRecord, FileRecord, PolityRecord};
use crate::pack::{Place, RegionPack, SourceUse};
use crate::political::RegionsOnGrid;
use crate::raster::Raster;
use crate::render::hillshade::{HillshadeOptions, Light, hillshade};
use crate::render::{Sheet, SheetInput, SheetOptions, draw_sheet};
use crate::shipped;
use crate::terrain::Relief;
use crate::vector::Feature;
use crate::water::{River, WaterBody, WaterKind};
use crate::words::counted;
use crate::year::Era;
use geo::{BooleanOps, BoundingRect, Coord, Geometry, LineString, MultiPolygon, Point, Rect};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// The ground of one or more eras, worked out, ready to be written.
pub struct GroundProduct<'a> {
    /// The grid.
    pub grid: &'a Grid,
    /// Elevation with one cell more on each side.
    pub ring_elevation: &'a Raster<f32>,
    /// Elevation on the grid, metres.
    pub elevation: Raster<f32>,
    /// Codes of [`WaterKind`].
    pub water: Raster<u8>,
    /// Rivers in the grid's CRS.
    pub rivers: &'a [River],
    /// Seas and lakes in the grid's CRS.
    pub bodies: &'a [WaterBody],
    /// The pack.
    pub pack: &'a RegionPack,
    /// The eras that it holds for, in words.
    pub eras: String,
    /// The same as they were read.
    pub eras_read: String,
    /// What the elevation is from, in one line.
    pub elevation_source: &'a str,
    /// Its vertical datum.
    pub vertical_datum: &'a str,
    /// The seed.
    pub seed: u64,
    /// Names of the border files that were added.
    pub added: &'a [String],
    /// The part of the region that is built; `None` is all of it.
    pub part: Option<LonLatBox>,
}

/// Everything that a build has worked out for an era, ready to be written.
pub struct Product<'a> {
    /// The ground.
    pub ground: &'a GroundProduct<'a>,
    /// The political map.
    pub regions: &'a RegionsOnGrid,
    /// The era.
    pub era: Era,
    /// Longer side of the map on the sheet, pixels; `None` fits it to the map.
    pub map_px: Option<usize>,
}

/// Value of cells without elevation in `elevation.tif`.
pub const ELEVATION_NODATA: f64 = -9999.0;

/// Colours of the water mask by code.
const WATER_COLOURS: [[u8; 4]; 4] =
    [[236, 231, 217, 255], [120, 163, 200, 255], [150, 190, 220, 255], [70, 120, 180, 255]];

impl GroundProduct<'_> {
    fn metadata(&self, title: &str) -> Vec<(String, String)> {
        metadata(self, &self.eras, &self.eras_read, title)
    }
}

fn metadata(g: &GroundProduct, era: &str, era_read: &str, title: &str) -> Vec<(String, String)> {
    vec![
        ("TIFFTAG_IMAGEDESCRIPTION".into(), format!("{}, {era}: {title}", g.pack.title)),
        ("TIFFTAG_SOFTWARE".into(), format!("histmap {}", env!("CARGO_PKG_VERSION"))),
        ("ERA".into(), era_read.into()),
        ("SEED".into(), g.seed.to_string()),
    ]
}

/// Writes `elevation.tif` and `hillshade.tif` into `dir`, `suffix` before the ending; returns their names, sidecars included.
///
/// # Errors
/// [`crate::Error::Write`].
pub fn write_relief(g: &GroundProduct, dir: &Path, suffix: &str) -> Result<Vec<PathBuf>> {
    let mut written = Vec::new();
    let mut metadata = g.metadata("elevation");
    metadata.push(("VERTICAL_DATUM".into(), g.vertical_datum.into()));
    let options = CogOptions {
        nodata: Some(ELEVATION_NODATA),
        band_names: vec!["elevation".into()],
        unit: "m".into(),
        metadata,
        ..CogOptions::default()
    };
    let path = dir.join(format!("elevation{suffix}.tif"));
    written.extend(gdal_io::write_cog(&path, g.grid, &[&g.elevation], &options)?);

    let shade = hillshade(
        g.ring_elevation,
        g.grid.transform.cell_width,
        &HillshadeOptions { light: Light::Multidirectional, z_factor: 1.5, ..HillshadeOptions::default() },
    );
    let shade = shade.crop(Window { col: 1, row: 1, cols: g.grid.cols, rows: g.grid.rows });
    let options = CogOptions {
        nodata: Some(0.0),
        band_names: vec!["hillshade".into()],
        metadata: g.metadata("hillshade"),
        ..CogOptions::default()
    };
    written.extend(gdal_io::write_cog(&dir.join(format!("hillshade{suffix}.tif")), g.grid, &[&shade], &options)?);
    Ok(written)
}

/// Writes `regions.tif` into `dir`; returns its name and its sidecar's.
///
/// # Errors
/// [`crate::Error::Write`].
pub fn write_regions(p: &Product, dir: &Path) -> Result<Vec<PathBuf>> {
    let (colours, categories, attributes) = legend(p);
    let options = CogOptions {
        nodata: Some(0.0),
        predictor: false,
        overviews: Overviews::Mode,
        band_names: vec!["region".into(), "contested by".into()],
        metadata: metadata(p.ground, &p.era.to_string(), &p.era.described(), "regions"),
        colours,
        categories,
        attributes: Some(attributes),
        ..CogOptions::default()
    };
    let bands = [&p.regions.regions, &p.regions.contested];
    gdal_io::write_cog(&dir.join("regions.tif"), p.ground.grid, &bands, &options)
}

/// Writes `water.tif` into `dir`, `suffix` before the ending; returns its name and its sidecar's.
///
/// # Errors
/// [`crate::Error::Write`].
pub fn write_water(g: &GroundProduct, dir: &Path, suffix: &str) -> Result<Vec<PathBuf>> {
    let options = CogOptions {
        nodata: Some(255.0),
        predictor: false,
        overviews: Overviews::Mode,
        band_names: vec!["water".into()],
        metadata: g.metadata("water"),
        colours: WATER_COLOURS.to_vec(),
        categories: WaterKind::ALL.iter().map(|k| k.name().to_string()).collect(),
        ..CogOptions::default()
    };
    gdal_io::write_cog(&dir.join(format!("water{suffix}.tif")), g.grid, &[&g.water], &options)
}

/// Colours, names and attributes of the codes in `regions.tif`, from 0.
fn legend(p: &Product) -> (Vec<[u8; 4]>, Vec<String>, AttributeTable) {
    let polities = &p.regions.polities;
    let codes = polities.iter().map(|q| usize::from(q.code)).max().unwrap_or(0) + 1;
    let mut colours = vec![[0, 0, 0, 0]; codes];
    let mut categories = vec![String::new(); codes];
    categories[0] = "unclaimed".into();
    for q in polities {
        let [r, g, b] = q.colour;
        colours[usize::from(q.code)] = [r, g, b, 255];
        categories[usize::from(q.code)] = q.claim.name.clone();
    }
    let mut counts = vec![0i32; codes];
    for &v in &p.regions.regions.values {
        if let Some(n) = counts.get_mut(usize::from(v)) {
            *n = n.saturating_add(1);
        }
    }
    let integers = |of: &dyn Fn(usize) -> i32| ColumnValues::Integer((0..codes).map(of).collect());
    let texts = |of: &dyn Fn(&crate::borders::PolityRegion) -> String| {
        ColumnValues::Text(
            (0..codes)
                .map(|c| polities.iter().find(|q| usize::from(q.code) == c).map(of).unwrap_or_default())
                .collect(),
        )
    };
    let column = |name: &str, usage, values| AttributeColumn { name: name.into(), usage, values };
    let channel = |k: usize| integers(&|c| i32::from(colours[c][k]));
    let columns = vec![
        column("value", ColumnUse::Value, integers(&|c| c as i32)),
        column("count", ColumnUse::CellCount, integers(&|c| counts[c])),
        column("name", ColumnUse::Name, ColumnValues::Text(categories.clone())),
        column("name_ru", ColumnUse::Generic, texts(&|q| q.claim.name_ru.clone())),
        column("name_local", ColumnUse::Generic, texts(&|q| q.claim.name_local.clone())),
        column("red", ColumnUse::Red, channel(0)),
        column("green", ColumnUse::Green, channel(1)),
        column("blue", ColumnUse::Blue, channel(2)),
        column("years", ColumnUse::Generic, texts(&|q| q.claim.span.to_string())),
        column("kind", ColumnUse::Generic, texts(&|q| kind_word(q.claim.kind).into())),
        column("certainty", ColumnUse::Generic, texts(&|q| styles::certainty_word(q.claim.certainty).into())),
        column("source", ColumnUse::Generic, texts(&|q| q.claim.sources.join(", "))),
    ];
    (colours, categories, AttributeTable { columns })
}

fn kind_word(kind: ClaimKind) -> &'static str {
    match kind {
        ClaimKind::Polity => "polity",
        ClaimKind::Part => "part",
        ClaimKind::Composite => "composite",
        ClaimKind::Claim => "claim",
        ClaimKind::People => "people",
    }
}

/// A feature from its geometry and a JSON object.
fn feature(geometry: impl Into<Geometry<f64>>, properties: Value) -> Feature {
    let properties = match properties {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    Feature { geometry: Some(geometry.into()), properties }
}

/// The name of a place in a year: the English one, with the most telling local name of the time.
fn local_name(place: &Place, year: i32) -> Option<&str> {
    place
        .names
        .iter()
        .find(|n| n.from_year.is_none_or(|y| y <= year) && n.to_year.is_none_or(|y| year <= y) && n.name != place.name)
        .map(|n| n.name.as_str())
}

/// Which layers go into a GeoPackage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VectorContent {
    /// All of one era: `regions.gpkg` of a build of one.
    All,
    /// What changes from era to era: polities, borders, places.
    Era,
}

/// A layer's name, title, description, geometry, first fields, style and features.
type LayerPlan<'a> = (&'a str, &'a str, &'a str, GeometryKind, &'a [&'a str], styles::Style, Vec<Feature>);

/// Writes `regions.gpkg` into `dir`: polities, borders, places, and with [`VectorContent::All`] rivers, water, peaks and
/// contours; with styles.
///
/// # Errors
/// [`crate::Error::Write`].
pub fn write_vectors(p: &Product, content: VectorContent, dir: &Path) -> Result<Vec<PathBuf>> {
    let mut layers = if content == VectorContent::All { ground_layers(p.ground)? } else { Vec::new() };
    let own = [polity_layer(p), border_layer(p), place_layer(p)?];
    let [polities, borders, places] = own;
    if content == VectorContent::All {
        // From the bottom up, as they are drawn: contours, water, polities, rivers, borders, summits, places.
        layers.insert(2, polities);
        layers.insert(4, borders);
        layers.push(places);
    } else {
        layers.extend([polities, borders, places]);
    }
    let path = dir.join("regions.gpkg");
    write_layers(&path, &p.ground.grid.crs, &layers)?;
    Ok(vec![path])
}

/// Writes `terrain.gpkg` into `dir`, `suffix` before the ending: contours, water, rivers and peaks, with styles.
///
/// # Errors
/// [`crate::Error::Write`].
pub fn write_ground_vectors(g: &GroundProduct, dir: &Path, suffix: &str) -> Result<Vec<PathBuf>> {
    let path = dir.join(format!("terrain{suffix}.gpkg"));
    write_layers(&path, &g.grid.crs, &ground_layers(g)?)?;
    Ok(vec![path])
}

fn write_layers(path: &Path, crs: &crate::grid::Crs, layers: &[LayerPlan]) -> Result<()> {
    let tables: Vec<GpkgLayer> = layers
        .iter()
        .map(|(name, identifier, description, geometry, fields, _, features)| GpkgLayer {
            name,
            identifier,
            description,
            crs,
            geometry: *geometry,
            fields,
            features,
        })
        .collect();
    let styles: Vec<LayerStyle> =
        layers.iter().map(|l| LayerStyle { layer: l.0, name: "", qml: l.5.qml(), sld: l.5.sld(l.0) }).collect();
    gdal_io::write_gpkg(path, &tables, &GpkgOptions { styles: &styles, ..GpkgOptions::default() })
}

/// What a polity's feature says of it.
pub(crate) fn polity_properties(q: &PolityRegion) -> Value {
    let c = &q.claim;
    json!({
        "code": q.code, "id": c.id, "name": c.name, "name_ru": c.name_ru, "name_local": c.name_local,
        "local_lang": c.local_lang, "kind": kind_word(c.kind), "parent": c.parent,
        "from_year": c.span.first().to_historian(), "to_year": c.span.last().to_historian(),
        "years": c.span.to_string(), "doubt": c.doubt.map_or(String::new(), |d| d.to_string()),
        "in_year": q.standing.sureness.as_str(), "certainty": styles::certainty_word(c.certainty),
        "source": c.sources.join(", "), "note": c.note, "area_km2": (q.area_km2 * 10.0).round() / 10.0,
        "colour": format!("#{:02x}{:02x}{:02x}", q.colour[0], q.colour[1], q.colour[2]),
    })
}

fn polity_layer<'a>(p: &Product) -> LayerPlan<'a> {
    let features = p.regions.polities.iter().map(|q| feature(q.outline.clone(), polity_properties(q))).collect();
    let classes: Vec<(u16, String, [u8; 3])> =
        p.regions.polities.iter().map(|q| (q.code, q.claim.name.clone(), q.colour)).collect();
    (
        "polities",
        "Polities",
        "Who held the land",
        GeometryKind::MultiPolygon,
        &["code", "id", "name"],
        styles::polygons(&classes),
        features,
    )
}

fn border_layer<'a>(p: &Product) -> LayerPlan<'a> {
    let name_of =
        |code: u16| p.regions.polities.iter().find(|q| q.code == code).map_or(Value::Null, |q| json!(q.claim.name));
    let features = p
        .regions
        .borders
        .iter()
        .map(|b| {
            feature(
                b.line.clone(),
                json!({
                    "left": b.left, "right": b.right, "left_name": name_of(b.left), "right_name": name_of(b.right),
                    "certainty": styles::certainty_word(b.certainty),
                }),
            )
        })
        .collect();
    (
        "borders",
        "Borders",
        "Lines between polities",
        GeometryKind::LineString,
        &["left", "right"],
        styles::borders(),
        features,
    )
}

/// From longitude and latitude to a point of the grid's CRS inside the map.
fn inside(grid: &Grid) -> Result<impl Fn(LonLat) -> Option<Point<f64>>> {
    let wgs84 = gdal_io::crs(gdal_io::WGS84, "--crs")?;
    let forward = Transformer::new(&wgs84, &grid.crs)?;
    let e = grid.extent();
    Ok(move |at: LonLat| {
        let xy = forward.point(Xy { x: at.lon, y: at.lat })?;
        (xy.x >= e.min_x && xy.x < e.max_x && xy.y >= e.min_y && xy.y < e.max_y).then_some(Point::new(xy.x, xy.y))
    })
}

fn place_layer<'a>(p: &Product) -> Result<LayerPlan<'a>> {
    let year = p.era.first().to_historian();
    let inside = inside(p.ground.grid)?;
    let features = p
        .ground
        .pack
        .places
        .iter()
        .filter(|q| q.stands_in(year))
        .filter_map(|q| {
            let names: Vec<String> = q.names.iter().map(|n| format!("{} ({})", n.name, n.lang)).collect();
            Some(feature(
                inside(q.at)?,
                json!({
                    "name": q.name, "name_local": local_name(q, year), "kind": q.kind, "rank": q.rank,
                    "names": names.join("; "),
                }),
            ))
        })
        .collect();
    Ok((
        "places",
        "Places",
        "Towns, fortresses, passes",
        GeometryKind::Point,
        &["name", "kind"],
        styles::places(),
        features,
    ))
}

/// Contours, water, rivers and summits, from the bottom up.
fn ground_layers<'a>(g: &GroundProduct) -> Result<Vec<LayerPlan<'a>>> {
    let inside = inside(g.grid)?;
    let frame = g.grid.extent();
    let peaks = g
        .pack
        .peaks
        .iter()
        .filter_map(|q| {
            Some(feature(
                inside(q.at)?,
                json!({
                    "name": q.name, "name_ru": q.name_ru, "height_m": q.height_m, "rank": q.rank,
                    "label": format!("{} {:.0}", q.name, q.height_m),
                }),
            ))
        })
        .collect();
    let rivers = g
        .rivers
        .iter()
        .flat_map(|r| line_inside(&r.line, &frame).into_iter().map(move |line| (r, line)))
        .map(|(r, line)| feature(line, json!({"name": r.name, "name_ru": r.name_ru, "rank": r.rank, "mouth": r.mouth})))
        .collect();
    let water = g
        .bodies
        .iter()
        .filter_map(|b| {
            Some(feature(
                area_inside(&b.area, &frame)?,
                json!({"name": b.name, "name_ru": b.name_ru, "kind": b.kind.name(), "level_m": b.level_m}),
            ))
        })
        .collect();
    Ok(vec![
        (
            "contours",
            "Contours",
            "Height lines of the land",
            GeometryKind::LineString,
            &["level_m", "is_index"],
            styles::contours(),
            contour_features(g),
        ),
        (
            "water",
            "Seas and lakes",
            "Water bodies of the year",
            GeometryKind::MultiPolygon,
            &["name", "kind"],
            water_style(),
            water,
        ),
        (
            "rivers",
            "Rivers",
            "From source to mouth",
            GeometryKind::LineString,
            &["name", "rank"],
            styles::rivers(),
            rivers,
        ),
        ("peaks", "Summits", "Surveyed heights", GeometryKind::Point, &["name", "height_m"], styles::peaks(), peaks),
    ])
}

/// The parts of `line` inside `frame`, from its first point to its last (Liang & Barsky 1984).
fn line_inside(line: &LineString<f64>, frame: &Extent) -> Vec<LineString<f64>> {
    let mut parts: Vec<Vec<Coord<f64>>> = Vec::new();
    for l in line.lines() {
        let (dx, dy) = (l.dx(), l.dy());
        let (mut t0, mut t1) = (0.0f64, 1.0f64);
        let sides = [
            (-dx, l.start.x - frame.min_x),
            (dx, frame.max_x - l.start.x),
            (-dy, l.start.y - frame.min_y),
            (dy, frame.max_y - l.start.y),
        ];
        for (toward, room) in sides {
            match toward {
                0.0 if room < 0.0 => t1 = -1.0,
                0.0 => {}
                d if d < 0.0 => t0 = t0.max(room / d),
                d => t1 = t1.min(room / d),
            }
        }
        if t0 >= t1 {
            continue;
        }
        let at = |t: f64| Coord { x: l.start.x + t * dx, y: l.start.y + t * dy };
        let (a, b) = (if t0 == 0.0 { l.start } else { at(t0) }, if t1 == 1.0 { l.end } else { at(t1) });
        match parts.last_mut().filter(|p| p.last() == Some(&a)) {
            Some(part) => part.push(b),
            None => parts.push(vec![a, b]),
        }
    }
    parts.into_iter().map(LineString::new).collect()
}

/// The part of `area` inside `frame`; `None` where there is none.
fn area_inside(area: &MultiPolygon<f64>, frame: &Extent) -> Option<MultiPolygon<f64>> {
    let frame = Rect::new((frame.min_x, frame.min_y), (frame.max_x, frame.max_y));
    let bounds = area.bounding_rect()?;
    let is_whole = (frame.min().x..=frame.max().x).contains(&bounds.min().x)
        && (frame.min().x..=frame.max().x).contains(&bounds.max().x)
        && (frame.min().y..=frame.max().y).contains(&bounds.min().y)
        && (frame.min().y..=frame.max().y).contains(&bounds.max().y);
    let cut = if is_whole { area.clone() } else { area.intersection(&MultiPolygon::from(frame.to_polygon())) };
    (!cut.0.is_empty()).then_some(cut)
}

/// Seas and lakes by kind.
fn water_style() -> styles::Style {
    let class = |value: &str, colour| styles::Class {
        value: value.into(),
        label: if value.is_empty() { "other" } else { value }.into(),
        symbol: styles::Symbol::Fill { colour, outline: [70, 110, 150, 255], width_mm: 0.2 },
    };
    styles::Style {
        field: "kind".into(),
        classes: vec![class("sea", WATER_COLOURS[1]), class("lake", WATER_COLOURS[2]), class("", WATER_COLOURS[2])],
        labels: None,
    }
}

/// Contours of the land, from elevation averaged over blocks so that lines are legible at the map's scale.
fn contour_features(p: &GroundProduct) -> Vec<Feature> {
    let n = (p.grid.cols.max(p.grid.rows) / 2200).max(1);
    let (cols, rows) = (p.grid.cols / n, p.grid.rows / n);
    if cols < 2 || rows < 2 {
        return Vec::new();
    }
    let mut land = Raster::filled(cols, rows, f32::NAN);
    let (mut lowest, mut highest) = (f64::MAX, f64::MIN);
    for row in 0..rows {
        for col in 0..cols {
            let (mut sum, mut dry) = (0.0, 0);
            for r in row * n..(row + 1) * n {
                for c in col * n..(col + 1) * n {
                    if p.water.at(c, r) != WaterKind::Sea as u8 {
                        sum += p.elevation.at(c, r);
                        dry += 1;
                    }
                }
            }
            if dry * 2 >= n * n {
                let mean = sum / dry as f32;
                lowest = lowest.min(f64::from(mean));
                highest = highest.max(f64::from(mean));
                land.set(col, row, mean);
            }
        }
    }
    if lowest > highest {
        return Vec::new();
    }
    let t = &p.grid.transform;
    let cell_width = t.cell_width * n as f64;
    let grid = Grid {
        crs: p.grid.crs.clone(),
        transform: crate::grid::GeoTransform { cell_width, cell_height: cell_width, ..*t },
        cols,
        rows,
    };
    let interval = contour::sensible_interval(lowest, highest);
    contour::contours(&land, &grid, interval, &ContourOptions::default())
        .into_iter()
        .map(|c| {
            let is_index = i32::from((c.level_m / interval).round() as i64 % 5 == 0);
            feature(c.line, json!({"level_m": c.level_m, "is_index": is_index, "label": format!("{:.0}", c.level_m)}))
        })
        .collect()
}

/// Draws `map.png` into `dir`.
///
/// # Errors
/// [`crate::Error::Write`], or those of drawing.
pub fn write_sheet(p: &Product, dir: &Path) -> Result<Vec<PathBuf>> {
    let g = p.ground.grid;
    let fitting = SheetOptions::fitting(g.cols, g.rows, g.transform.cell_width);
    let options = SheetOptions { map_px: p.map_px.unwrap_or(fitting.map_px), ..fitting };
    let png = sheet(p, &options)?.to_png()?;
    let path = dir.join("map.png");
    gdal_io::write_beside(&path, &png)?;
    Ok(vec![path])
}

/// A box as a reader writes it: `43.9–45.3° E, 41.2–42.2° N`.
fn in_degrees(b: &LonLatBox) -> String {
    let range = |from: f64, to: f64, plus: char, minus: char| match (from < 0.0, to < 0.0) {
        (false, _) => format!("{from}–{to}° {plus}"),
        (true, true) => format!("{}–{}° {minus}", -from, -to),
        (true, false) => format!("{}° {minus} – {to}° {plus}", -from),
    };
    format!("{}, {}", range(b.west, b.east, 'E', 'W'), range(b.south, b.north, 'N', 'S'))
}

/// The map sheet of an era.
///
/// # Errors
/// Those of drawing.
pub fn sheet(p: &Product, options: &SheetOptions) -> Result<Sheet> {
    let g = p.ground;
    let wgs84 = gdal_io::crs(gdal_io::WGS84, "--crs")?;
    let forward = Transformer::new(&wgs84, &g.grid.crs)?;
    let project = |at: LonLat| forward.point(Xy { x: at.lon, y: at.lat });
    let era = p.era.to_string();
    let imprint = imprint(p);
    let part = g.part.as_ref().map(in_degrees).unwrap_or_default();
    let input = SheetInput {
        grid: g.grid,
        elevation: &g.elevation,
        water: &g.water,
        regions: &p.regions.regions,
        contested: &p.regions.contested,
        polities: &p.regions.polities,
        borders: &p.regions.borders,
        rivers: g.rivers,
        water_bodies: g.bodies,
        places: &g.pack.places,
        peaks: &g.pack.peaks,
        physical: &g.pack.physical,
        project: &project,
        title: &g.pack.title,
        part: &part,
        era: &era,
        year: p.era.first().to_historian(),
        imprint: &imprint,
    };
    draw_sheet(&input, options)
}

/// The small print.
fn imprint(p: &Product) -> Vec<String> {
    let g = p.ground;
    let used = |id: &str| p.regions.polities.iter().any(|q| q.claim.sources.iter().any(|s| s == id));
    let polities = &p.regions.polities;
    let conjectural = polities.iter().filter(|q| q.claim.certainty == Certainty::Conjectural).count();
    let some = match conjectural {
        0 => String::new(),
        n if n == polities.len() => ", conjectural in outline".to_string(),
        n => format!(", {n} of them conjectural in outline"),
    };
    let count = counted(polities.len(), "polity", "polities");
    let mut lines = vec![format!("Political regions of {}: {count}{some}.", p.era)];
    let doubtful: Vec<&str> =
        polities.iter().filter(|q| q.standing.sureness != Sureness::Certain).map(|q| q.claim.name.as_str()).collect();
    if !doubtful.is_empty() {
        lines.push(format!("Drawn paler, their years being in doubt: {}.", doubtful.join(", ")));
    }
    let is_taken = g.pack.sources.iter().any(|s| s.usage == SourceUse::Taken && used(&s.id));
    match g.pack.statement.as_str() {
        "" if is_taken => {}
        "" => lines.push(format!("Outlines: own reconstruction of the pack {}; see its list of works.", g.pack.name)),
        statement => lines.push(statement.to_string()),
    }
    // Only works that were really opened for the outlines in view.
    let leads =
        [(SourceUse::Taken, "Outlines from"), (SourceUse::Compared, "Compared with"), (SourceUse::Read, "Read:")];
    for (usage, lead) in leads {
        let works = g.pack.sources.iter().filter(|s| s.usage == usage && used(&s.id));
        // What is taken over comes with its licence.
        let cited: Vec<String> =
            works
                .map(|s| {
                    if usage == SourceUse::Taken {
                        format!("{} ({})", s.citation, s.licence)
                    } else {
                        s.citation.clone()
                    }
                })
                .collect();
        if !cited.is_empty() {
            lines.push(format!("{lead} {}", cited.join("; ")));
        }
    }
    if !g.added.is_empty() {
        lines.push(format!("Added borders: {}.", g.added.join(", ")));
    }
    lines.push(format!(
        "Relief: {}; {}. Coast, lakes and rivers: {}. {}, {} m cells, seed {}. Made with histmap {}.",
        g.elevation_source,
        shipped::SEA_FLOOR.source,
        shipped::OCEAN.source,
        g.grid.crs.name,
        g.grid.transform.cell_width,
        g.seed,
        env!("CARGO_PKG_VERSION")
    ));
    lines
}

/// The records of the polities drawn, for the manifest.
pub fn polity_records(regions: &RegionsOnGrid) -> Vec<PolityRecord> {
    regions
        .polities
        .iter()
        .map(|q| PolityRecord {
            code: q.code,
            id: q.claim.id.clone(),
            name: q.claim.name.clone(),
            years: q.claim.span.to_string(),
            in_year: q.standing.sureness.as_str().into(),
            area_km2: (q.area_km2 * 10.0).round() / 10.0,
            certainty: styles::certainty_word(q.claim.certainty).into(),
            sources: q.claim.sources.clone(),
        })
        .collect()
}

/// How an era was read, for the manifest.
pub fn era_record(given: &str, era: Era) -> EraRecord {
    EraRecord {
        given: given.to_string(),
        read_as: era.described(),
        first_astronomical: era.first().0,
        last_astronomical: era.last().0,
    }
}

/// Agreement of the relief with the coarse elevation, for the manifest.
pub fn block_means(relief: &Relief) -> BlockMeansRecord {
    let thousandth = |v: f64| (v * 1000.0).round() / 1000.0;
    BlockMeansRecord {
        free_rms_m: thousandth(relief.free_means.rms_m),
        free_worst_m: thousandth(relief.free_means.worst_m),
        free_blocks: relief.free_means.blocks,
        all_rms_m: thousandth(relief.all_means.rms_m),
    }
}

/// Records of the files written into `dir`, with `/` between folders.
///
/// # Errors
/// [`crate::Error::Read`] when an output cannot be hashed.
pub fn output_records(outputs: &[PathBuf], dir: &Path) -> Result<Vec<FileRecord>> {
    let name = |path: &Path| {
        let parts = path.strip_prefix(dir).unwrap_or(path).components();
        parts.map(|c| c.as_os_str().to_string_lossy().into_owned()).collect::<Vec<_>>().join("/")
    };
    outputs.iter().map(|path| FileRecord::of_file(path, &name(path))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: Extent = Extent { min_x: 0.0, min_y: 0.0, max_x: 10.0, max_y: 10.0 };

    #[test]
    fn lines_are_cut_at_the_frame_and_keep_their_direction() {
        let line = LineString::from(vec![(-5.0, 5.0), (5.0, 5.0), (5.0, 15.0), (8.0, 15.0), (8.0, 2.0)]);
        let parts = line_inside(&line, &FRAME);
        assert_eq!(
            parts,
            [
                LineString::from(vec![(0.0, 5.0), (5.0, 5.0), (5.0, 10.0)]),
                LineString::from(vec![(8.0, 10.0), (8.0, 2.0)]),
            ]
        );
        assert!(line_inside(&LineString::from(vec![(-5.0, 20.0), (20.0, 12.0)]), &FRAME).is_empty());
        let within = LineString::from(vec![(1.0, 1.0), (2.0, 2.0), (1.0, 3.0)]);
        assert_eq!(line_inside(&within, &FRAME), [within]);
    }

    #[test]
    fn areas_are_cut_at_the_frame() {
        let square = |a: f64, b: f64| MultiPolygon::from(Rect::new((a, a), (b, b)).to_polygon());
        let cut = area_inside(&square(5.0, 20.0), &FRAME).unwrap();
        assert_eq!(cut.bounding_rect().unwrap(), Rect::new((5.0, 5.0), (10.0, 10.0)));
        assert_eq!(area_inside(&square(2.0, 3.0), &FRAME).unwrap(), square(2.0, 3.0));
        assert!(area_inside(&square(12.0, 13.0), &FRAME).is_none());
    }

    #[test]
    fn boxes_are_written_as_readers_write_them() {
        let text = |w, s, e, n| in_degrees(&LonLatBox::new(w, s, e, n).unwrap());
        assert_eq!(text(43.9, 41.2, 45.3, 42.2), "43.9–45.3° E, 41.2–42.2° N");
        assert_eq!(text(-10.0, -5.0, -4.0, 5.0), "10–4° W, 5° S – 5° N");
    }
}
