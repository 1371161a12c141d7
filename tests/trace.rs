//! `histmap trace`: the real binary on a map painted here, judged by areas that are known.

mod workshop;

use gdal::raster::Buffer;
use gdal::spatial_ref::SpatialRef;
use gdal::vector::LayerAccess;
use gdal::{Dataset, DriverManager};
use std::collections::BTreeMap;
use workshop::{Shop, assert_fails, assert_succeeds, stdout};

const COLS: usize = 240;
const ROWS: usize = 160;
/// Side of a cell, metres.
const CELL_M: f64 = 500.0;

const SEA: [u8; 3] = [150, 200, 240];
const WEST: [u8; 3] = [160, 205, 120];
const EAST: [u8; 3] = [240, 200, 130];
const INK: [u8; 3] = [25, 25, 25];

const LEGEND: &str = r##"
[[class]]
name = "Sea"
kind = "water"
colour = "#96c8f0"

[[class]]
name = "West"
kind = "polity"
colour = "#a0cd78"

[[class]]
name = "East"
kind = "polity"
colour = "#f0c882"
"##;
const INK_CLASS: &str = r##"
[[class]]
name = "Ink"
kind = "line"
colour = "#191919"
"##;

/// The border between west and east in a row.
fn border(r: usize) -> f64 {
    100.0 + 20.0 * (r as f64 / 25.0).sin()
}

/// The colour of the areas alone.
fn area(c: usize, r: usize) -> [u8; 3] {
    if r >= 130 {
        SEA
    } else if (c as f64) < border(r) {
        WEST
    } else {
        EAST
    }
}

/// The same with an inked border, a road, a name of strokes and a speck.
fn inked(c: usize, r: usize) -> [u8; 3] {
    let is_border = r < 130 && (c as f64 - border(r)).abs() < 1.2;
    let is_road = r < 130 && (r + c / 2) % 60 == 40;
    let is_stroke = (60..70).contains(&r) && (150..200).contains(&c) && (c.is_multiple_of(5) || r == 60);
    let is_speck = (30..32).contains(&r) && (40..42).contains(&c);
    if is_border || is_road || is_stroke {
        INK
    } else if is_speck {
        EAST
    } else {
        area(c, r)
    }
}

fn paint(shop: &Shop, name: &str, colour: impl Fn(usize, usize) -> [u8; 3]) {
    let driver = DriverManager::get_driver_by_name("GTiff").unwrap();
    let mut d = driver.create_with_band_type::<u8, _>(shop.path(name), COLS, ROWS, 3).unwrap();
    d.set_geo_transform(&[340_000.0, CELL_M, 0.0, 4_680_000.0, 0.0, -CELL_M]).unwrap();
    d.set_spatial_ref(&SpatialRef::from_epsg(32638).unwrap()).unwrap();
    for band in 0..3 {
        let values = (0..COLS * ROWS).map(|k| colour(k % COLS, k / COLS)[band]).collect();
        let mut buffer = Buffer::new((COLS, ROWS), values);
        d.rasterband(band + 1).unwrap().write((0, 0), (COLS, ROWS), &mut buffer).unwrap();
    }
    d.close().unwrap();
}

/// Pixels of a colour in the painted areas.
fn pixels(colour: [u8; 3]) -> f64 {
    (0..COLS * ROWS).filter(|k| area(k % COLS, k / COLS) == colour).count() as f64
}

/// Areas by name in cells, and whether all are valid by OGC rules.
fn areas(shop: &Shop, name: &str, layer: &str) -> (BTreeMap<String, f64>, bool) {
    let d = Dataset::open(shop.path(name)).unwrap();
    let mut layer = d.layer_by_name(layer).unwrap();
    let mut is_valid = true;
    let mut out = BTreeMap::new();
    for f in layer.features() {
        let index = f.field_index("name").unwrap();
        let g = f.geometry().unwrap();
        is_valid &= g.is_valid();
        *out.entry(f.field_as_string(index).unwrap().unwrap()).or_insert(0.0) += g.area() / (CELL_M * CELL_M);
    }
    (out, is_valid)
}

#[test]
fn exact_outlines_have_exactly_the_cells() {
    let shop = Shop::new();
    paint(&shop, "clean.tif", area);
    shop.write("legend.toml", LEGEND);
    let o = shop.run(&[
        "trace",
        "clean.tif",
        "--legend",
        "legend.toml",
        "--smooth",
        "0",
        "--simplify",
        "0",
        "-o",
        "r.gpkg",
    ]);
    assert_succeeds(&o);
    let (found, is_valid) = areas(&shop, "r.gpkg", "regions");
    assert!(is_valid);
    assert_eq!(found.keys().collect::<Vec<_>>(), ["East", "Sea", "West"]);
    for (name, colour) in [("East", EAST), ("Sea", SEA), ("West", WEST)] {
        // A cell that juts out by itself counts as ink: one of them stands where the border meets the sea.
        assert!((found[name] - pixels(colour)).abs() < 1.5, "{name}: {} for {}", found[name], pixels(colour));
    }
}

#[test]
fn lines_lettering_and_specks_go_to_the_regions_beside_them() {
    let shop = Shop::new();
    paint(&shop, "inked.tif", inked);
    shop.write("legend.toml", format!("{LEGEND}{INK_CLASS}"));
    assert_succeeds(&shop.run(&["trace", "inked.tif", "--legend", "legend.toml", "-o", "r.gpkg"]));
    let (found, is_valid) = areas(&shop, "r.gpkg", "regions");
    assert!(is_valid);
    assert_eq!(found.keys().collect::<Vec<_>>(), ["East", "Sea", "West"]);
    for (name, colour) in [("East", EAST), ("Sea", SEA), ("West", WEST)] {
        let share = found[name] / pixels(colour);
        assert!((share - 1.0).abs() < 0.02, "{name}: {share}");
    }
    // Neither gaps nor overlaps: together they are the picture.
    assert!((found.values().sum::<f64>() - (COLS * ROWS) as f64).abs() < 1e-6 * (COLS * ROWS) as f64);
}

#[test]
fn a_proposed_legend_traces_as_it_is() {
    let shop = Shop::new();
    paint(&shop, "inked.tif", inked);
    let o = shop.run(&["trace", "inked.tif", "--propose", "l.toml"]);
    assert_succeeds(&o);
    assert!(stdout(&o).contains("4 colours"), "{}", stdout(&o));
    assert!(image::open(shop.path("l.png")).unwrap().width() > 300);
    let text = std::fs::read_to_string(shop.path("l.toml")).unwrap();
    for words in ["kind = \"water\"", "kind = \"line\"", "#191919", "#a0cd78", "#f0c882"] {
        assert!(text.contains(words), "no {words} in {text}");
    }
    assert_succeeds(&shop.run(&["trace", "inked.tif", "--legend", "l.toml", "-o", "r.gpkg"]));
    assert_eq!(areas(&shop, "r.gpkg", "regions").0.len(), 3);
    // It may have been edited since.
    assert_fails(&shop.run(&["trace", "inked.tif", "--propose", "l.toml"]), 1, &["l.toml", "there already"]);
}

#[test]
fn an_era_makes_claims_that_eras_and_builds_take() {
    let shop = Shop::new();
    paint(&shop, "inked.tif", inked);
    shop.write("legend.toml", format!("{LEGEND}{INK_CLASS}"));
    let args = ["trace", "inked.tif", "--legend", "legend.toml", "--era", "1100/1200", "-o", "claims.gpkg"];
    assert_succeeds(&shop.run(&args));
    let maps = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/samples").display().to_string();
    let rest = ["--maps", &maps, "--borders", "claims.gpkg", "--borders-only"];
    let o = shop.run(&[&["eras", "kartli", "--all"][..], &rest].concat());
    assert_succeeds(&o);
    let said = stdout(&o);
    assert!(said.contains("1100–1200 CE") && said.contains("West") && said.contains("East"), "{said}");
    assert!(!said.contains("Sea"), "{said}");
}

#[test]
fn what_cannot_be_traced_is_told_and_leaves_nothing() {
    let shop = Shop::new();
    paint(&shop, "clean.tif", area);
    shop.write("legend.toml", LEGEND);
    shop.write("typo.toml", LEGEND.replace("colour =", "color ="));
    shop.write("noise.tif", b"no picture");
    image::RgbImage::from_pixel(9, 9, image::Rgb(WEST)).save(shop.path("plain.png")).unwrap();
    let trace = |scan: &str, legend: &str| shop.run(&["trace", scan, "--legend", legend, "-o", "r.gpkg"]);
    assert_fails(&trace("clean.tif", "typo.toml"), 1, &["typo.toml", "did you mean 'colour'"]);
    assert_fails(&trace("noise.tif", "legend.toml"), 1, &["noise.tif"]);
    assert_fails(&trace("plain.png", "legend.toml"), 1, &["plain.png", "not registered", "histmap georef"]);
    assert_fails(&trace("clean.tif", "none.toml"), 1, &["none.toml"]);
    assert_fails(&shop.run(&["trace", "clean.tif"]), 2, &["--legend"]);
    assert_fails(&shop.run(&["trace", "clean.tif", "--legend", "legend.toml", "-o", "r.shp"]), 2, &[".gpkg"]);
    assert!(!shop.path("r.gpkg").exists());
}
