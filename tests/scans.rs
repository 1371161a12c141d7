//! From a picture to regions, the whole way: maps that are printed here and read back, and the published pictures, which are not
//! part of the repository (without them that part is skipped, and says so).

mod workshop;

use gdal::Dataset;
use gdal::vector::LayerAccess;
use geo::{Area, BoundingRect, Contains, MultiPolygon, Point, Rect};
use histmap::gdal_io::{Transformer, WGS84, crs};
use histmap::grid::Xy;
use histmap::trace::{self, Legend, Picture, TraceOptions};
use nalgebra::{DMatrix, DVector};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use workshop::{Shop, assert_succeeds, stdout};

type Colour = [u8; 3];

// ---------------------------------------------------------------------------------------------------------------------
// A map that is printed here.
// ---------------------------------------------------------------------------------------------------------------------

const COLS: usize = 900;
const ROWS: usize = 700;
/// Ground in metres (EPSG:32638) of the paper's upper left corner, and of a pixel.
const WEST_M: f64 = 300_000.0;
const NORTH_M: f64 = 4_900_000.0;
const PIXEL_M: f64 = 500.0;

const NAMES: [&str; 5] = ["Sea", "Alder", "Birch", "Cedar", "Dogwood"];
const COLOURS: [Colour; 5] = [[170, 205, 222], [214, 132, 120], [150, 186, 110], [236, 214, 130], [168, 140, 190]];

/// Which area a place of the ground is in: a sea with a wavy coast, an island, four countries with curved borders.
fn area_at(x: f64, y: f64) -> usize {
    let (u, v) = ((x - WEST_M) / PIXEL_M, (NORTH_M - y) / PIXEL_M);
    let coast = 150.0 + 40.0 * (v / 70.0).sin() + 14.0 * (v / 23.0).cos();
    let is_island = (u - 70.0).powi(2) + (1.4 * (v - 560.0)).powi(2) < 38.0f64.powi(2);
    if u < coast && !is_island {
        return 0;
    }
    let middle = 340.0 + 60.0 * (u / 130.0).sin() + 18.0 * (u / 41.0).cos();
    let upright = 520.0 + 70.0 * (v / 110.0).cos();
    match (v < middle, u < upright) {
        (true, true) => 1,
        (true, false) => 2,
        (false, true) => 3,
        (false, false) => 4,
    }
}

/// The ground under a pixel of the scan: the paper lay askew, was stretched and shrank towards a corner.
fn ground_of(col: f64, line: f64) -> (f64, f64) {
    let (u, v) = (col / COLS as f64 - 0.5, line / ROWS as f64 - 0.5);
    let bent_u = col + 9.0 * u * v - 11.0 * u * u + 5.0 * v * v + 12.0 * v;
    let bent_v = line - 8.0 * u * v + 7.0 * u * u - 10.0 * v * v - 9.0 * u;
    (WEST_M + bent_u * PIXEL_M, NORTH_M - bent_v * PIXEL_M)
}

/// Rows of a letter, five pixels wide.
const GLYPHS: [[u8; 7]; 4] = [
    [0b01110, 0b10001, 0b10001, 0b11111, 0b10001, 0b10001, 0b10001],
    [0b11110, 0b10001, 0b10001, 0b11110, 0b10001, 0b10001, 0b11110],
    [0b11111, 0b10000, 0b10000, 0b11110, 0b10000, 0b10000, 0b11111],
    [0b11111, 0b00100, 0b00100, 0b00100, 0b00100, 0b00100, 0b00100],
];

/// Whether a pixel is inked: borders and coast, two rivers, a grid of meridians, names across the areas.
fn is_inked(col: usize, line: usize) -> bool {
    let area = |c: f64, l: f64| {
        let (x, y) = ground_of(c, l);
        area_at(x, y)
    };
    let (c, l) = (col as f64, line as f64);
    let own = area(c, l);
    let is_border = [(1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0)].iter().any(|(a, b)| area(c + a, l + b) != own);
    let river = 300.0 + 0.4 * l + 20.0 * (l / 31.0).sin();
    let is_river = own != 0 && ((c - river).abs() < 1.3 || (c - river - 330.0).abs() < 1.3);
    let is_meridian = col.is_multiple_of(180) || line.is_multiple_of(180);
    // Letters of twice to four times the glyph, spaced.
    let letters = |left: usize, top: usize, size: usize, count: usize| {
        let wide = 8 * size;
        if col < left || line < top || line >= top + 7 * size || col >= left + wide * count {
            return false;
        }
        let (k, x, y) = ((col - left) / wide, (col - left) % wide / size, (line - top) / size);
        x < 5 && GLYPHS[k % 4][y] >> (4 - x) & 1 == 1
    };
    let is_letter =
        letters(230, 130, 3, 8) || letters(560, 520, 3, 9) || letters(300, 480, 2, 20) || letters(30, 300, 2, 5);
    is_border || is_river || is_meridian || is_letter
}

/// Noise between -1 and 1, the same in every run.
fn noise(k: usize) -> f64 {
    let mut x = (k as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    x ^= x >> 29;
    x = x.wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x ^= x >> 32;
    (x >> 40) as f64 / (1u64 << 23) as f64 - 1.0
}

/// How the map was printed and kept.
#[derive(Clone, Copy)]
struct Print {
    /// Radius of the blur, pixels.
    blur: usize,
    /// Quality of the JPEG.
    quality: u8,
    /// Share of the light that the paper lost at its darkest.
    yellow: f64,
    /// Noise of each pixel, of 255.
    grain: f64,
    /// Whether the sea is printed in dots.
    dots: bool,
}

const CLEAN: Print = Print { blur: 0, quality: 95, yellow: 0.0, grain: 0.0, dots: false };
const BAD: Print = Print { blur: 1, quality: 60, yellow: 0.45, grain: 7.0, dots: false };
const DOTTED: Print = Print { blur: 0, quality: 90, yellow: 0.0, grain: 2.0, dots: true };

/// The scan as a JPEG.
fn print(path: &Path, how: Print) {
    let ink = [36.0, 32.0, 30.0];
    let mut pixels: Vec<[f64; 3]> = (0..COLS * ROWS)
        .map(|k| {
            let (col, line) = (k % COLS, k / COLS);
            if is_inked(col, line) {
                return ink;
            }
            let (x, y) = ground_of(col as f64, line as f64);
            let area = area_at(x, y);
            if how.dots && area == 0 {
                // Dots of a dark blue, 4 pixels of 16, on white.
                return if col % 4 < 2 && line % 4 < 2 { [70.0, 130.0, 165.0] } else { [235.0, 240.0, 245.0] };
            }
            COLOURS[area].map(f64::from)
        })
        .collect();
    if how.blur > 0 {
        let r = how.blur as i64;
        let at = |c: i64, l: i64| {
            pixels[(l.clamp(0, ROWS as i64 - 1) as usize) * COLS + c.clamp(0, COLS as i64 - 1) as usize]
        };
        let mean = |k: usize| {
            let (c, l) = ((k % COLS) as i64, (k / COLS) as i64);
            let mut sum = [0.0; 3];
            for (dc, dl) in (-r..=r).flat_map(|dl| (-r..=r).map(move |dc| (dc, dl))) {
                (0..3).for_each(|b| sum[b] += at(c + dc, l + dl)[b]);
            }
            sum.map(|s| s / ((2 * r + 1) * (2 * r + 1)) as f64)
        };
        pixels = (0..COLS * ROWS).map(mean).collect();
    }
    let picture = image::RgbImage::from_fn(COLS as u32, ROWS as u32, |c, l| {
        let k = l as usize * COLS + c as usize;
        let (u, v) = (f64::from(c) / COLS as f64, f64::from(l) / ROWS as f64);
        // Yellowed towards the lower right, with a stain.
        let stain = (-((u - 0.3).powi(2) + (v - 0.6).powi(2)) / 0.02).exp();
        let lost = how.yellow * (0.5 * (u + v) * 0.8 + 0.2 * stain);
        let share = [0.35, 0.5, 1.0].map(|s| 1.0 - s * lost);
        let grain = how.grain * noise(k);
        image::Rgb(std::array::from_fn(|b| (pixels[k][b] * share[b] + grain).round().clamp(0.0, 255.0) as u8))
    });
    let file = std::fs::File::create(path).unwrap();
    let mut encoder = image::codecs::jpeg::JpegEncoder::new_with_quality(std::io::BufWriter::new(file), how.quality);
    encoder.encode_image(&picture).unwrap();
}

fn legend() -> String {
    let kind = |k: usize| if k == 0 { "water" } else { "polity" };
    let areas: Vec<String> = (0..5)
        .map(|k| {
            let colour = trace::to_hex(COLOURS[k]);
            format!("[[class]]\nname = \"{}\"\nkind = \"{}\"\ncolour = \"{colour}\"\n", NAMES[k], kind(k))
        })
        .collect();
    format!("{}[[class]]\nname = \"Ink\"\nkind = \"line\"\ncolour = \"#24201e\"\ntolerance = 20\n", areas.join("\n"))
}

/// Sixteen points on the graticule of the scan.
fn points() -> String {
    let grid = (0..16).map(|k| (40.0 + (k % 4) as f64 * 270.0, 30.0 + (k / 4) as f64 * 210.0));
    grid.map(|(c, l)| {
        let (x, y) = ground_of(c - 0.5, l - 0.5);
        format!("{c} {l} {x:.3} {y:.3}\n")
    })
    .collect()
}

/// The areas of a GeoPackage by name, in its CRS.
fn regions(path: &Path) -> BTreeMap<String, MultiPolygon<f64>> {
    let d = Dataset::open(path).unwrap();
    let mut layer = d.layer_by_name("regions").unwrap();
    let mut out: BTreeMap<String, MultiPolygon<f64>> = BTreeMap::new();
    for f in layer.features() {
        let name = f.field_as_string(f.field_index("name").unwrap()).unwrap().unwrap();
        assert!(f.geometry().unwrap().is_valid(), "{name}");
        let parts = match f.geometry().unwrap().to_geo().unwrap() {
            geo::Geometry::MultiPolygon(m) => m.0,
            geo::Geometry::Polygon(p) => vec![p],
            other => panic!("{other:?}"),
        };
        out.entry(name).or_insert_with(|| MultiPolygon(vec![])).0.extend(parts);
    }
    out
}

/// Which of `areas` holds a place.
struct Finder<'a>(Vec<(&'a str, &'a geo::Polygon<f64>, Rect<f64>)>);

impl<'a> Finder<'a> {
    fn new(areas: &'a BTreeMap<String, MultiPolygon<f64>>) -> Finder<'a> {
        let parts = areas.iter().flat_map(|(name, area)| area.iter().map(move |p| (name.as_str(), p)));
        Finder(parts.filter_map(|(name, p)| Some((name, p, p.bounding_rect()?))).collect())
    }

    fn at(&self, x: f64, y: f64) -> Option<&'a str> {
        let p = Point::new(x, y);
        self.0.iter().find(|(_, area, frame)| frame.contains(&p) && area.contains(&p)).map(|(name, ..)| *name)
    }
}

/// Registers, traces and compares: intersection over union of each area, on ground that lies in the scan.
fn round_trip(how: Print, more: &[&str]) -> BTreeMap<&'static str, f64> {
    let shop = Shop::new();
    print(&shop.path("scan.jpg"), how);
    shop.write("scan.txt", points());
    // The tint of a dotted sea is taken from a place of it.
    let colour = format!("colour = \"{}\"", trace::to_hex(COLOURS[0]));
    let text = if how.dots { legend().replace(&colour, "points = [[40, 250]]") } else { legend() };
    shop.write("legend.toml", text);
    let o = shop.run(&[
        "georef",
        "scan.jpg",
        "--gcps",
        "scan.txt",
        "--points-crs",
        "EPSG:32638",
        "--crs",
        "EPSG:32638",
        "-o",
        "scan.tif",
    ]);
    assert_succeeds(&o);
    let first = ["trace", "scan.tif", "--legend", "legend.toml", "-o", "r.gpkg"];
    assert_succeeds(&shop.run(&[&first[..], more].concat()));
    let found = regions(&shop.path("r.gpkg"));
    let finder = Finder::new(&found);
    let mut counts = [[0usize; 3]; 5];
    // Every third pixel of the scan away from its edge.
    for line in (8..ROWS - 8).step_by(3) {
        for col in (8..COLS - 8).step_by(3) {
            let (x, y) = ground_of(col as f64, line as f64);
            let there = area_at(x, y);
            let here = finder.at(x, y).and_then(|n| NAMES.iter().position(|k| *k == n));
            counts[there][0] += 1;
            if let Some(here) = here {
                counts[here][1] += 1;
                counts[there][2] += usize::from(here == there);
            }
        }
    }
    NAMES.into_iter().zip(counts.map(|[a, b, both]| both as f64 / (a + b - both) as f64)).collect()
}

#[track_caller]
fn assert_alike(found: &BTreeMap<&str, f64>, least: f64) {
    println!("{found:.4?}");
    assert!(found.values().all(|v| *v >= least), "{found:.4?}");
}

#[test]
fn a_clean_print_comes_back() {
    assert_alike(&round_trip(CLEAN, &["--line-width", "5"]), 0.97);
}

#[test]
fn a_map_on_bad_paper_comes_back() {
    assert_alike(&round_trip(BAD, &["--line-width", "5", "--uneven-paper", "--min-area", "200px"]), 0.92);
}

#[test]
fn a_sea_of_dots_comes_back() {
    assert_alike(&round_trip(DOTTED, &["--line-width", "5", "--screen", "4", "--min-area", "100px"]), 0.95);
}

// ---------------------------------------------------------------------------------------------------------------------
// Published pictures.
// ---------------------------------------------------------------------------------------------------------------------

/// The folder of the pictures; `None`, with a line that says so, where it is not there.
fn pictures() -> Option<PathBuf> {
    let root = std::env::var_os("HISTMAP_TEST_DATA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data"), PathBuf::from);
    let scans = root.join("scans");
    if !scans.join("cliopatria-caucasus.points").is_file() {
        println!("skipped: no test data in {} (set HISTMAP_TEST_DATA)", scans.display());
        return None;
    }
    Some(scans)
}

const CROPS: [&str; 8] =
    ["C165-1000", "C180-1111", "C189-1202", "C196-1241", "C213-1402", "C249-1600", "C304-1800", "C355-1914"];
const LINES: [Colour; 3] = [[0, 0, 255], [5, 7, 8], [255, 0, 0]];
const SEA: Colour = [0xb6, 0xdc, 0xf4];

/// Every flat colour of a crop that has an area of some size, the sea and the lines first.
fn crop_legend(picture: &image::RgbImage) -> (String, Vec<Colour>) {
    let mut counts: BTreeMap<Colour, usize> = BTreeMap::new();
    picture.pixels().for_each(|p| *counts.entry(p.0).or_default() += 1);
    let mut areas: Vec<(usize, Colour)> =
        counts.into_iter().filter(|(c, n)| !LINES.contains(c) && *n >= 16).map(|(c, n)| (n, c)).collect();
    areas.sort_by(|a, b| b.cmp(a));
    let areas: Vec<Colour> = areas.into_iter().map(|(_, c)| c).collect();
    let mut text = String::new();
    for c in &areas {
        let hex = trace::to_hex(*c);
        let kind = if *c == SEA { "water" } else { "polity" };
        text += &format!("[[class]]\nname = \"{hex}\"\nkind = \"{kind}\"\ncolour = \"{hex}\"\ntolerance = 1.5\n\n");
    }
    let lines: Vec<String> = LINES.iter().map(|c| format!("\"{}\"", trace::to_hex(*c))).collect();
    text += &format!("[[class]]\nname = \"lines\"\nkind = \"line\"\ncolour = [{}]\n", lines.join(", "));
    (text, areas)
}

fn open(folder: &Path, crop: &str) -> image::RgbImage {
    image::open(folder.join(format!("cliopatria-caucasus-{crop}.png"))).unwrap().to_rgb8()
}

/// Pixels of each area with lines filled, told apart from the product's way: by looking at all pixels around, each pixel of a line
/// belongs to the areas that are the nearest to it, in equal shares.
fn filled(picture: &image::RgbImage, areas: &[Colour]) -> Vec<f64> {
    let (w, h) = (picture.width() as i64, picture.height() as i64);
    // What is no line and none of the areas counts as one more.
    let other = areas.len();
    let area = |c: Colour| areas.iter().position(|a| *a == c).unwrap_or(other);
    let own: Vec<Option<usize>> = picture.pixels().map(|p| (!LINES.contains(&p.0)).then(|| area(p.0))).collect();
    let mut counts = vec![0.0; other + 1];
    for k in 0..own.len() {
        if let Some(a) = own[k] {
            counts[a] += 1.0;
            continue;
        }
        let (x, y) = (k as i64 % w, k as i64 / w);
        let reach = 16;
        let square = (-reach..=reach).flat_map(|dy| (-reach..=reach).map(move |dx| (dx, dy)));
        let inside = square.filter(|(dx, dy)| (0..w).contains(&(x + dx)) && (0..h).contains(&(y + dy)));
        let mut near: Vec<(i64, usize)> =
            inside.filter_map(|(dx, dy)| Some((dx * dx + dy * dy, own[((y + dy) * w + x + dx) as usize]?))).collect();
        near.sort_unstable();
        near.retain({
            let least = near[0].0;
            move |n| n.0 == least
        });
        near.iter().for_each(|(_, a)| counts[*a] += 1.0 / near.len() as f64);
    }
    counts
}

#[test]
fn areas_of_the_published_crops_are_those_of_their_colours() {
    let Some(folder) = pictures() else { return };
    for crop in CROPS {
        let picture = open(&folder, crop);
        let (legend, areas) = crop_legend(&picture);
        let (w, h) = (picture.width() as usize, picture.height() as usize);
        let seen = Picture::new(w, h, picture.pixels().map(|p| p.0).collect());
        let legend = Legend::parse(&legend, "legend").unwrap();
        let traced = trace::trace(seen, &legend, &TraceOptions::default()).unwrap();
        let expected = filled(&picture, &areas);
        for region in &traced.regions {
            // No line has become a region.
            assert!(region.class < areas.len(), "{crop}: {}", legend.classes[region.class].name);
            let count = expected[region.class];
            let area = region.area.unsigned_area();
            // Rounding of a border, and ties in the middle of a line, are a few pixels either way: small areas have room for that.
            let off = ((area - count).abs() - 12.0).max(0.0) / count;
            let name = &legend.classes[region.class].name;
            // The shallows of the Sivash, beside whoever holds the Crimea, lie under the lines of their shores.
            let most = if ["#58a7ee", "#f2f589"].contains(&name.as_str()) { 0.045 } else { 0.02 };
            assert!(off < most, "{crop}: {name} has {area:.0} pixels, by colour {count:.0}");
        }
        // Neither gaps nor overlaps: with the few pixels of colours that are not in the legend it is the picture.
        let whole = traced.regions.iter().map(|r| r.area.unsigned_area()).sum::<f64>() + traced.unknown_pixels as f64;
        assert!((whole - (w * h) as f64).abs() < 0.002 * whole, "{crop}: {whole} of {} pixels", w * h);
    }
}

/// From longitude and latitude to the pixels of the crops: Robinson, fitted to the control points; least squares of our own.
fn to_pixels(points: &Path) -> impl Fn(f64, f64) -> (f64, f64) + use<> {
    let robinson = crs("+proj=robin +R=6371000", "--crs").unwrap();
    let there = Transformer::new(&crs(WGS84, "--crs").unwrap(), &robinson).unwrap();
    let text = std::fs::read_to_string(points).unwrap();
    let rows: Vec<Vec<f64>> = text
        .lines()
        .filter(|l| l.starts_with(|c: char| c.is_ascii_digit()))
        .map(|l| l.split(',').take(4).map(|n| n.parse().unwrap()).collect())
        .collect();
    let plane: Vec<Xy> = rows.iter().map(|r| there.point(Xy { x: r[0], y: r[1] }).unwrap()).collect();
    let a = DMatrix::from_fn(rows.len(), 3, |i, j| [plane[i].x / 1e6, plane[i].y / 1e6, 1.0][j]);
    let fit = |k: usize, sign: f64| {
        let b = DVector::from_fn(rows.len(), |i, _| sign * rows[i][k]);
        a.clone().svd(true, true).solve(&b, 1e-12).unwrap()
    };
    let (column, line) = (fit(2, 1.0), fit(3, -1.0));
    move |lon, lat| {
        let p = there.point(Xy { x: lon, y: lat }).unwrap();
        let of = |f: &DVector<f64>| f[0] * p.x / 1e6 + f[1] * p.y / 1e6 + f[2];
        (of(&column), of(&line))
    }
}

#[test]
fn tracing_the_warped_picture_and_warping_the_trace_agree() {
    let Some(folder) = pictures() else { return };
    let shop = Shop::new();
    let points = folder.join("cliopatria-caucasus.points");
    let to_pixel = to_pixels(&points);
    for crop in ["C189-1202", "C249-1600"] {
        let picture = open(&folder, crop);
        let (text, areas) = crop_legend(&picture);
        shop.write("legend.toml", &text);
        let scan = folder.join(format!("cliopatria-caucasus-{crop}.png"));
        let tif = format!("{crop}.tif");
        assert_succeeds(&shop.run(&["georef", scan.to_str().unwrap(), "--gcps", points.to_str().unwrap(), "-o", &tif]));
        let gpkg = format!("{crop}.gpkg");
        assert_succeeds(&shop.run(&["trace", &tif, "--legend", "legend.toml", "-o", &gpkg]));
        let warped = regions(&shop.path(&gpkg));
        let (w, h) = (picture.width() as usize, picture.height() as usize);
        let seen = Picture::new(w, h, picture.pixels().map(|p| p.0).collect());
        let traced = trace::trace(seen, &Legend::parse(&text, "l").unwrap(), &TraceOptions::default()).unwrap();
        let plain: BTreeMap<String, MultiPolygon<f64>> =
            traced.regions.into_iter().map(|r| (trace::to_hex(areas[r.class]), r.area)).collect();
        let (one, other) = (Finder::new(&warped), Finder::new(&plain));
        let (mut all, mut same) = (0, 0);
        for (i, j) in (0..160).flat_map(|j| (0..160).map(move |i| (i, j))) {
            let (lon, lat) = (36.5 + 0.1 * f64::from(i), 37.4 + 0.07 * f64::from(j));
            let (col, line) = to_pixel(lon, lat);
            // A few pixels at the edge know only one side.
            if col < 4.0 || line < 4.0 || col > w as f64 - 4.0 || line > h as f64 - 4.0 {
                continue;
            }
            all += 1;
            same += usize::from(one.at(lon, lat) == other.at(col, line));
        }
        println!("{crop}: {same} of {all}");
        assert!(all > 15_000 && same * 100 > all * 97, "{crop}: {same} of {all}");
    }
}

#[test]
fn the_traced_coast_is_the_known_one() {
    let Some(folder) = pictures() else { return };
    let to_pixel = to_pixels(&folder.join("cliopatria-caucasus.points"));
    // Rings of seas and lakes that the program ships, in the pixels of the crops, every half pixel.
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
    let mut coast: Vec<(f64, f64)> = Vec::new();
    for file in ["ocean.geojson", "lakes.geojson"] {
        let json: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(data.join(file)).unwrap()).unwrap();
        let mut rings: Vec<&serde_json::Value> = Vec::new();
        let mut stack: Vec<&serde_json::Value> =
            json["features"].as_array().unwrap().iter().map(|f| &f["geometry"]["coordinates"]).collect();
        while let Some(v) = stack.pop() {
            let list = v.as_array().unwrap();
            if list[0][0].is_number() { rings.push(v) } else { stack.extend(list) }
        }
        for ring in rings {
            let at: Vec<(f64, f64)> = ring
                .as_array()
                .unwrap()
                .iter()
                .map(|p| to_pixel(p[0].as_f64().unwrap(), p[1].as_f64().unwrap()))
                .collect();
            for pair in at.windows(2) {
                let (a, b) = (pair[0], pair[1]);
                let n = ((b.0 - a.0).hypot(b.1 - a.1) / 0.2).ceil().max(1.0) as usize;
                coast.extend(
                    (0..n).map(|k| k as f64 / n as f64).map(|t| (a.0 + t * (b.0 - a.0), a.1 + t * (b.1 - a.1))),
                );
            }
        }
    }
    // In bins of four pixels.
    let mut bins: BTreeMap<(i64, i64), Vec<(f64, f64)>> = BTreeMap::new();
    let bin = |p: (f64, f64)| ((p.0 / 4.0).floor() as i64, (p.1 / 4.0).floor() as i64);
    coast.iter().for_each(|p| bins.entry(bin(*p)).or_default().push(*p));
    let distance = |p: (f64, f64)| {
        let (c, r) = bin(p);
        let around = (-2..=2).flat_map(|j| (-2..=2).map(move |i| (i, j)));
        let near = around.filter_map(|(i, j)| bins.get(&(c + i, r + j))).flatten();
        near.map(|q| (q.0 - p.0).hypot(q.1 - p.1)).fold(8.0, f64::min)
    };
    // Between 36.2 and 51 E, 37.2 and 48 N; in this projection parallels are level.
    let is_known = |(col, line): (f64, f64)| {
        let (mut south, mut north) = (30.0, 55.0);
        for _ in 0..40 {
            let middle = 0.5 * (south + north);
            if to_pixel(44.0, middle).1 > line { south = middle } else { north = middle }
        }
        let lat = south;
        (37.2..48.0).contains(&lat) && (to_pixel(36.2, lat).0..to_pixel(51.0, lat).0).contains(&col)
    };
    for crop in CROPS {
        let picture = open(&folder, crop);
        let (w, h) = (picture.width() as usize, picture.height() as usize);
        let (legend, areas) = crop_legend(&picture);
        let seen = Picture::new(w, h, picture.pixels().map(|p| p.0).collect());
        let traced = trace::trace(seen, &Legend::parse(&legend, "l").unwrap(), &TraceOptions::default()).unwrap();
        let sea = traced.regions.iter().find(|r| areas[r.class] == SEA).unwrap();
        let mut off: Vec<f64> = Vec::new();
        for ring in sea.area.iter().flat_map(|p| std::iter::once(p.exterior()).chain(p.interiors())) {
            for line in ring.lines() {
                let n = ((line.end.x - line.start.x).hypot(line.end.y - line.start.y) / 0.5).ceil().max(1.0);
                for k in 0..n as usize {
                    let t = k as f64 / n;
                    let p = (
                        line.start.x + t * (line.end.x - line.start.x),
                        line.start.y + t * (line.end.y - line.start.y),
                    );
                    // Not the edge of the picture, and only where the coast is known.
                    if p.0 > 2.0 && p.1 > 2.0 && p.0 < w as f64 - 2.0 && p.1 < h as f64 - 2.0 && is_known(p) {
                        off.push(distance(p));
                    }
                }
            }
        }
        off.sort_by(f64::total_cmp);
        let at = |share: f64| off[((off.len() - 1) as f64 * share) as usize];
        let within = off.iter().filter(|d| **d <= 1.5).count() as f64 / off.len() as f64;
        println!(
            "{crop}: {} places, median {:.2} px, 95 % {:.2}, 99 % {:.2}, {:.1} % within 1.5",
            off.len(),
            at(0.5),
            at(0.95),
            at(0.99),
            100.0 * within
        );
        assert!(
            off.len() > 800 && at(0.5) <= 0.8 && at(0.95) <= 1.5,
            "{crop}: median {:.2}, 95 % {:.2}",
            at(0.5),
            at(0.95)
        );
    }
}

#[test]
fn the_fit_of_the_published_crops_is_stated() {
    let Some(folder) = pictures() else { return };
    let shop = Shop::new();
    for (scan, points, more, word, most) in [
        ("cliopatria-caucasus-C189-1202.png", "cliopatria-caucasus.points", &[][..], "leave-one-out ", 1.0),
        ("indo_china_1886.jpg", "indo_china_1886.jpg.points", &["--transform", "poly2"], "RMSE ", 1.5),
    ] {
        let [scan, points] = [scan, points].map(|f| folder.join(f).display().to_string());
        let o = shop.run(&[&["georef", &scan, "--gcps", &points][..], more].concat());
        assert_succeeds(&o);
        let text = stdout(&o);
        let used = text.lines().find(|l| l.starts_with("used: ")).unwrap();
        let value: f64 = used.split(word).nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
        assert!(value <= most, "{used}");
    }
}

/// Outlines by hand, a little inside the borders of the map of 1886: longitude and latitude.
const OUTLINES: [(&str, &[(f64, f64)]); 8] = [
    (
        "Burma",
        &[
            (94.62, 24.75),
            (95.12, 24.85),
            (95.65, 24.93),
            (95.7, 25.37),
            (96.0, 25.53),
            (96.44, 25.47),
            (96.75, 25.22),
            (96.9, 24.87),
            (96.6, 24.18),
            (96.6, 19.85),
            (96.25, 19.62),
            (94.53, 19.66),
            (94.47, 23.49),
        ],
    ),
    (
        "Shan States",
        &[
            (96.88, 23.36),
            (97.75, 23.52),
            (98.56, 23.97),
            (98.97, 23.89),
            (99.06, 23.11),
            (99.62, 22.54),
            (100.5, 22.45),
            (101.12, 22.64),
            (101.75, 22.74),
            (101.69, 21.98),
            (101.44, 21.35),
            (101.1, 20.83),
            (99.94, 20.98),
            (99.75, 20.1),
            (99.0, 20.0),
            (97.62, 19.85),
            (97.44, 19.34),
            (97.0, 18.97),
            (96.69, 19.16),
            (96.65, 19.53),
            (96.88, 19.78),
        ],
    ),
    (
        "Yunnan",
        &[
            (97.5, 24.87),
            (98.25, 25.31),
            (99.0, 25.56),
            (98.81, 26.63),
            (99.5, 27.2),
            (100.06, 27.45),
            (101.0, 27.86),
            (101.25, 27.45),
            (101.69, 26.94),
            (101.9, 26.25),
            (102.31, 26.03),
            (102.94, 26.19),
            (103.1, 26.94),
            (103.38, 27.76),
            (104.25, 27.64),
            (104.88, 27.45),
            (104.12, 27.13),
            (103.94, 26.44),
            (104.35, 26.13),
            (104.28, 25.63),
            (104.35, 24.87),
            (104.44, 24.24),
            (104.88, 23.62),
            (104.0, 22.84),
            (103.0, 22.99),
            (101.94, 23.09),
            (101.06, 22.99),
            (100.5, 22.8),
            (99.75, 22.89),
            (99.35, 23.3),
            (99.25, 24.12),
            (98.5, 24.31),
            (97.69, 23.99),
            (97.5, 24.37),
        ],
    ),
    (
        "Siam",
        &[
            (98.0, 19.2),
            (99.9, 19.85),
            (100.3, 20.5),
            (101.2, 20.7),
            (101.8, 21.6),
            (102.0, 22.5),
            (103.0, 22.6),
            (103.2, 20.6),
            (104.0, 19.3),
            (104.9, 18.4),
            (105.6, 17.0),
            (106.4, 16.6),
            (107.9, 15.2),
            (107.9, 14.15),
            (105.0, 14.05),
            (103.6, 13.6),
            (102.2, 13.4),
            (101.0, 13.2),
            (101.0, 13.7),
            (100.3, 13.8),
            (99.9, 13.3),
            (99.6, 14.0),
            (99.0, 15.0),
            (98.8, 16.2),
            (98.8, 17.2),
            (98.1, 17.9),
        ],
    ),
    (
        "Cambodia",
        &[
            (104.9, 13.7),
            (108.0, 13.8),
            (108.0, 12.3),
            (107.3, 11.9),
            (106.2, 11.9),
            (105.2, 11.8),
            (104.4, 11.0),
            (103.4, 10.9),
            (103.1, 11.9),
            (104.0, 12.3),
            (104.9, 12.9),
        ],
    ),
    (
        "Cochin China",
        &[
            (108.45, 14.8),
            (108.9, 14.6),
            (109.05, 13.3),
            (108.9, 11.7),
            (107.6, 10.9),
            (107.2, 11.35),
            (108.2, 11.95),
            (108.45, 12.6),
        ],
    ),
    (
        "Anam",
        &[
            (105.1, 18.85),
            (105.6, 18.75),
            (106.1, 18.1),
            (106.9, 17.1),
            (107.9, 16.2),
            (108.6, 15.5),
            (108.2, 15.35),
            (107.3, 15.8),
            (106.2, 16.9),
            (105.6, 17.4),
        ],
    ),
    (
        "British Burma",
        &[
            (94.5, 19.3),
            (96.1, 19.3),
            (96.5, 18.9),
            (96.9, 18.3),
            (97.2, 17.4),
            (96.5, 17.3),
            (96.2, 16.9),
            (95.6, 16.2),
            (94.7, 16.3),
            (94.7, 17.5),
        ],
    ),
];

#[test]
fn a_map_on_old_paper_gives_its_countries() {
    let Some(folder) = pictures() else { return };
    let shop = Shop::new();
    let legend = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/samples/indo-china-1886.toml");
    let [scan, points] =
        ["indo_china_1886.jpg", "indo_china_1886.jpg.points"].map(|f| folder.join(f).display().to_string());
    assert_succeeds(&shop.run(&["georef", &scan, "--gcps", &points, "--transform", "poly2", "-o", "scan.tif"]));
    let first = ["trace", "scan.tif", "--line-width", "5", "--min-area", "1500px", "-o", "r.gpkg", "--legend"];
    assert_succeeds(&shop.run(&[&first[..], &[legend.to_str().unwrap()]].concat()));
    let found = regions(&shop.path("r.gpkg"));
    let finder = Finder::new(&found);
    let (mut all, mut wrong) = (0, 0);
    for (name, corners) in OUTLINES {
        let ring: Vec<geo::Coord<f64>> = corners.iter().map(|&(x, y)| geo::Coord { x, y }).collect();
        let outline = geo::Polygon::new(geo::LineString::new(ring), vec![]);
        let frame = outline.bounding_rect().unwrap();
        let (mut here, mut off) = (0, 0);
        let steps = |from: f64, to: f64| (0..).map(move |k| from + 0.03 * f64::from(k)).take_while(move |v| *v < to);
        for y in steps(frame.min().y, frame.max().y) {
            for x in steps(frame.min().x, frame.max().x).filter(|x| outline.contains(&Point::new(*x, y))) {
                here += 1;
                off += usize::from(finder.at(x, y) != Some(name));
            }
        }
        // One region, with islands at the most.
        let parts: Vec<f64> = found[name].iter().map(|p| p.unsigned_area()).collect();
        let largest = parts.iter().copied().fold(0.0, f64::max) / parts.iter().sum::<f64>();
        println!(
            "{name}: {:.2} % of {here} places are another's; {} parts, the largest {largest:.3}",
            100.0 * off as f64 / here as f64,
            parts.len()
        );
        // At 12 N the coast of Siam is narrower than the line of its border: the peninsula is a part by itself.
        let least = if name == "Siam" { 0.85 } else { 0.95 };
        assert!(largest > least, "{name}: {} parts, the largest {largest:.3}", parts.len());
        (all, wrong) = (all + here, wrong + off);
    }
    println!("doubtful: {:.2} %", 100.0 * wrong as f64 / all as f64);
    assert!(all > 30_000 && wrong * 100 < all * 3, "{wrong} of {all}");
}
