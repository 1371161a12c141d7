//! What a build writes: GeoTIFFs, the GeoPackage, the map sheet and the manifest.

use crate::borders::{Certainty, ClaimKind};
use crate::contour::{self, ContourOptions};
use crate::error::Result;
use crate::gdal_io::styles;
use crate::gdal_io::{
    self, AttributeColumn, AttributeTable, CogOptions, ColumnUse, ColumnValues, GeometryKind, GpkgLayer, GpkgOptions,
    LayerStyle, Overviews, Transformer,
};
use crate::grid::{Grid, LonLat, Window, Xy};
use crate::manifest::{BlockMeansRecord, EraRecord, FileRecord, Manifest, PolityRecord, RunRecord};
use crate::pack::{Place, RegionPack};
use crate::pipeline::BuildRequest;
use crate::political::RegionsOnGrid;
use crate::raster::Raster;
use crate::render::hillshade::{HillshadeOptions, Light, hillshade};
use crate::render::{SheetInput, SheetOptions, draw_sheet};
use crate::shipped;
use crate::terrain::Relief;
use crate::vector::Feature;
use crate::water::{River, WaterBody, WaterKind};
use crate::year::Era;
use geo::{Geometry, Point};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// Everything that a build has worked out, ready to be written.
pub struct Product<'a> {
    /// The grid.
    pub grid: &'a Grid,
    /// Elevation with one cell more on each side.
    pub ring_elevation: &'a Raster<f32>,
    /// Elevation on the grid, metres.
    pub elevation: Raster<f32>,
    /// Codes of [`WaterKind`].
    pub water: Raster<u8>,
    /// The political map.
    pub regions: &'a RegionsOnGrid,
    /// Rivers in the grid's CRS.
    pub rivers: &'a [River],
    /// Seas and lakes in the grid's CRS.
    pub bodies: &'a [WaterBody],
    /// The pack.
    pub pack: &'a RegionPack,
    /// The era.
    pub era: Era,
    /// What the elevation is from, in one line.
    pub elevation_source: &'a str,
    /// Its vertical datum.
    pub vertical_datum: &'a str,
    /// The seed.
    pub seed: u64,
    /// Longer side of the map on the sheet, pixels.
    pub map_px: usize,
}

/// Value of cells without elevation in `elevation.tif`.
pub const ELEVATION_NODATA: f64 = -9999.0;

/// Colours of the water mask by code.
const WATER_COLOURS: [[u8; 4]; 4] =
    [[236, 231, 217, 255], [120, 163, 200, 255], [150, 190, 220, 255], [70, 120, 180, 255]];

impl Product<'_> {
    fn metadata(&self, title: &str) -> Vec<(String, String)> {
        vec![
            ("TIFFTAG_IMAGEDESCRIPTION".into(), format!("{}, {}: {title}", self.pack.title, self.era)),
            ("TIFFTAG_SOFTWARE".into(), format!("histmap {}", env!("CARGO_PKG_VERSION"))),
            ("ERA".into(), self.era.described()),
            ("SEED".into(), self.seed.to_string()),
        ]
    }
}

/// Writes `elevation.tif`, `hillshade.tif`, `regions.tif` and `water.tif` into `dir`; returns their names, sidecars included.
///
/// # Errors
/// [`crate::Error::Write`].
pub fn write_rasters(p: &Product, dir: &Path) -> Result<Vec<PathBuf>> {
    let mut written = Vec::new();
    let mut metadata = p.metadata("elevation");
    metadata.push(("VERTICAL_DATUM".into(), p.vertical_datum.into()));
    let options = CogOptions {
        nodata: Some(ELEVATION_NODATA),
        band_names: vec!["elevation".into()],
        unit: "m".into(),
        metadata,
        ..CogOptions::default()
    };
    written.extend(gdal_io::write_cog(&dir.join("elevation.tif"), p.grid, &[&p.elevation], &options)?);

    let shade = hillshade(
        p.ring_elevation,
        p.grid.transform.cell_width,
        &HillshadeOptions { light: Light::Multidirectional, z_factor: 1.5, ..HillshadeOptions::default() },
    );
    let shade = shade.crop(Window { col: 1, row: 1, cols: p.grid.cols, rows: p.grid.rows });
    let options = CogOptions {
        nodata: Some(0.0),
        band_names: vec!["hillshade".into()],
        metadata: p.metadata("hillshade"),
        ..CogOptions::default()
    };
    written.extend(gdal_io::write_cog(&dir.join("hillshade.tif"), p.grid, &[&shade], &options)?);

    let (colours, categories, attributes) = legend(p);
    let options = CogOptions {
        nodata: Some(0.0),
        predictor: false,
        overviews: Overviews::Mode,
        band_names: vec!["region".into(), "contested by".into()],
        metadata: p.metadata("regions"),
        colours,
        categories,
        attributes: Some(attributes),
        ..CogOptions::default()
    };
    let bands = [&p.regions.regions, &p.regions.contested];
    written.extend(gdal_io::write_cog(&dir.join("regions.tif"), p.grid, &bands, &options)?);

    let options = CogOptions {
        nodata: Some(255.0),
        predictor: false,
        overviews: Overviews::Mode,
        band_names: vec!["water".into()],
        metadata: p.metadata("water"),
        colours: WATER_COLOURS.to_vec(),
        categories: WaterKind::ALL.iter().map(|k| k.name().to_string()).collect(),
        ..CogOptions::default()
    };
    written.extend(gdal_io::write_cog(&dir.join("water.tif"), p.grid, &[&p.water], &options)?);
    Ok(written)
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

/// Writes `regions.gpkg` into `dir`: polities, borders, places, rivers, water, peaks and contours, with styles.
///
/// # Errors
/// [`crate::Error::Write`].
pub fn write_vectors(p: &Product, dir: &Path) -> Result<Vec<PathBuf>> {
    let year = p.era.first().to_historian();
    let wgs84 = gdal_io::crs(gdal_io::WGS84, "--crs")?;
    let forward = Transformer::new(&wgs84, &p.grid.crs)?;
    let inside = |at: LonLat| {
        let xy = forward.point(Xy { x: at.lon, y: at.lat })?;
        let e = p.grid.extent();
        (xy.x >= e.min_x && xy.x < e.max_x && xy.y >= e.min_y && xy.y < e.max_y).then_some(Point::new(xy.x, xy.y))
    };
    let name_of =
        |code: u16| p.regions.polities.iter().find(|q| q.code == code).map_or(Value::Null, |q| json!(q.claim.name));

    let polities: Vec<Feature> = p
        .regions
        .polities
        .iter()
        .map(|q| {
            let c = &q.claim;
            feature(
                q.outline.clone(),
                json!({
                    "code": q.code, "id": c.id, "name": c.name, "name_ru": c.name_ru, "name_local": c.name_local,
                    "local_lang": c.local_lang, "kind": kind_word(c.kind), "parent": c.parent,
                    "from_year": c.span.first().to_historian(), "to_year": c.span.last().to_historian(),
                    "years": c.span.to_string(), "certainty": styles::certainty_word(c.certainty),
                    "source": c.sources.join(", "), "note": c.note, "area_km2": (q.area_km2 * 10.0).round() / 10.0,
                    "colour": format!("#{:02x}{:02x}{:02x}", q.colour[0], q.colour[1], q.colour[2]),
                }),
            )
        })
        .collect();
    let borders: Vec<Feature> = p
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
    let places: Vec<Feature> = p
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
    let peaks: Vec<Feature> = p
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
    let rivers: Vec<Feature> = p
        .rivers
        .iter()
        .map(|r| {
            feature(r.line.clone(), json!({"name": r.name, "name_ru": r.name_ru, "rank": r.rank, "mouth": r.mouth}))
        })
        .collect();
    let water: Vec<Feature> = p
        .bodies
        .iter()
        .map(|b| {
            feature(
                b.area.clone(),
                json!({"name": b.name, "name_ru": b.name_ru, "kind": b.kind.name(), "level_m": b.level_m}),
            )
        })
        .collect();
    let contours = contour_features(p);

    let layer = |name, identifier, description, geometry, fields, features| GpkgLayer {
        name,
        identifier,
        description,
        crs: &p.grid.crs,
        geometry,
        fields,
        features,
    };
    let layers = [
        layer(
            "contours",
            "Contours",
            "Height lines of the land",
            GeometryKind::LineString,
            &["level_m", "is_index"],
            &contours,
        ),
        layer(
            "water",
            "Seas and lakes",
            "Water bodies of the year",
            GeometryKind::MultiPolygon,
            &["name", "kind"],
            &water,
        ),
        layer(
            "polities",
            "Polities",
            "Who held the land",
            GeometryKind::MultiPolygon,
            &["code", "id", "name"],
            &polities,
        ),
        layer("rivers", "Rivers", "From source to mouth", GeometryKind::LineString, &["name", "rank"], &rivers),
        layer("borders", "Borders", "Lines between polities", GeometryKind::LineString, &["left", "right"], &borders),
        layer("peaks", "Summits", "Surveyed heights", GeometryKind::Point, &["name", "height_m"], &peaks),
        layer("places", "Places", "Towns, fortresses, passes", GeometryKind::Point, &["name", "kind"], &places),
    ];
    let classes: Vec<(u16, String, [u8; 3])> =
        p.regions.polities.iter().map(|q| (q.code, q.claim.name.clone(), q.colour)).collect();
    let styles = [
        ("polities", styles::polygons(&classes)),
        ("borders", styles::borders()),
        ("places", styles::places()),
        ("peaks", styles::peaks()),
        ("rivers", styles::rivers()),
        ("water", water_style()),
        ("contours", styles::contours()),
    ];
    let styles: Vec<LayerStyle> = styles
        .iter()
        .map(|(layer, style)| LayerStyle { layer, name: "", qml: style.qml(), sld: style.sld(layer) })
        .collect();
    let path = dir.join("regions.gpkg");
    gdal_io::write_gpkg(&path, &layers, &GpkgOptions { styles: &styles, ..GpkgOptions::default() })?;
    Ok(vec![path])
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
fn contour_features(p: &Product) -> Vec<Feature> {
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
    let wgs84 = gdal_io::crs(gdal_io::WGS84, "--crs")?;
    let forward = Transformer::new(&wgs84, &p.grid.crs)?;
    let project = |at: LonLat| forward.point(Xy { x: at.lon, y: at.lat });
    let era = p.era.to_string();
    let imprint = imprint(p);
    let input = SheetInput {
        grid: p.grid,
        elevation: &p.elevation,
        water: &p.water,
        regions: &p.regions.regions,
        contested: &p.regions.contested,
        polities: &p.regions.polities,
        borders: &p.regions.borders,
        rivers: p.rivers,
        water_bodies: p.bodies,
        places: &p.pack.places,
        peaks: &p.pack.peaks,
        physical: &p.pack.physical,
        project: &project,
        title: &p.pack.title,
        era: &era,
        year: p.era.first().to_historian(),
        imprint: &imprint,
    };
    let png = draw_sheet(&input, &SheetOptions { map_px: p.map_px, ..SheetOptions::default() })?.to_png()?;
    let path = dir.join("map.png");
    gdal_io::write_beside(&path, &png)?;
    Ok(vec![path])
}

/// The small print.
fn imprint(p: &Product) -> Vec<String> {
    let mut used: Vec<&str> =
        p.regions.polities.iter().flat_map(|q| q.claim.sources.iter().map(String::as_str)).collect();
    used.sort_unstable();
    used.dedup();
    let cited: Vec<&str> =
        p.pack.sources.iter().filter(|s| used.contains(&s.id.as_str())).map(|s| s.citation.as_str()).collect();
    let conjectural = p.regions.polities.iter().filter(|q| q.claim.certainty == Certainty::Conjectural).count();
    vec![
        format!(
            "Political regions of {}: {} polities, {conjectural} of them conjectural in outline.",
            p.era,
            p.regions.polities.len()
        ),
        format!("After {}", cited.join(" ")),
        format!(
            "Relief: {}; {}. Coast, lakes and rivers: {}. {}, {} m cells, seed {}. Made with histmap {}.",
            p.elevation_source,
            shipped::SEA_FLOOR.source,
            shipped::OCEAN.source,
            p.grid.crs.name,
            p.grid.transform.cell_width,
            p.seed,
            env!("CARGO_PKG_VERSION")
        ),
    ]
}

/// The manifest of what was written, its inputs, sources, notes and run still to be filled in.
///
/// # Errors
/// [`crate::Error::Read`] when an output cannot be hashed.
pub fn manifest(
    p: &Product,
    relief: &Relief,
    request: &BuildRequest,
    outputs: &[PathBuf],
    dir: &Path,
) -> Result<Manifest> {
    let mut records = Vec::new();
    for path in outputs {
        let name = path.strip_prefix(dir).unwrap_or(path).display().to_string();
        records.push(FileRecord::of_file(path, &name)?);
    }
    let thousandth = |v: f64| (v * 1000.0).round() / 1000.0;
    Ok(Manifest {
        program: "histmap".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        region: p.pack.name.clone(),
        era: EraRecord {
            given: request.era_given.clone(),
            read_as: p.era.described(),
            first_astronomical: p.era.first().0,
            last_astronomical: p.era.last().0,
        },
        seed: p.seed,
        crs: p.grid.crs.name.clone(),
        geotransform: p.grid.transform.to_gdal(),
        size: [p.grid.cols, p.grid.rows],
        pixel_is: "area".into(),
        vertical_datum: p.vertical_datum.into(),
        block_means: BlockMeansRecord {
            free_rms_m: thousandth(relief.free_means.rms_m),
            free_worst_m: thousandth(relief.free_means.worst_m),
            free_blocks: relief.free_means.blocks,
            all_rms_m: thousandth(relief.all_means.rms_m),
        },
        polities: p
            .regions
            .polities
            .iter()
            .map(|q| PolityRecord {
                code: q.code,
                id: q.claim.id.clone(),
                name: q.claim.name.clone(),
                years: q.claim.span.to_string(),
                area_km2: (q.area_km2 * 10.0).round() / 10.0,
                certainty: styles::certainty_word(q.claim.certainty).into(),
                sources: q.claim.sources.clone(),
            })
            .collect(),
        notes: Vec::new(),
        inputs: Vec::new(),
        outputs: records,
        sources: Vec::new(),
        run: RunRecord::default(),
    })
}
