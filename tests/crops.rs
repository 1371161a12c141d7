//! The atlas beside the yearly maps of Cliopatria: how far both agree, polity by polity, and the table of it in
//! `docs/atlas.md`.
//!
//! `cargo test --release --test crops -- --nocapture` prints the table. The pictures are not part of the repository:
//! without them the comparison is skipped, and says so.

use geo::{BoundingRect, Contains, Coord, Point, Rect};
use histmap::borders::{Claim, ClaimKind};
use histmap::gdal_io::{Transformer, WGS84, crs};
use histmap::grid::Xy;
use histmap::pack::{RegionPack, find_pack};
use histmap::year::{Era, Year};
use nalgebra::{DMatrix, DVector};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

type Colour = [u8; 3];

/// A polity in a picture and here.
struct Pair {
    year: i32,
    /// As in the table.
    name: &'static str,
    colour: Colour,
    /// Who it is here, those under it included.
    ids: &'static [&'static str],
    /// The same by the picture's own way of grouping, where that is another.
    alike: Alike,
}

/// What else counts when both are grouped the same way.
#[derive(Clone, Copy, Default)]
struct Alike {
    /// Further colours of the picture.
    colours: &'static [Colour],
    /// Further polities here.
    ids: &'static [&'static str],
    /// Only ground that the picture gives to anybody.
    is_given_only: bool,
}

const NONE: Alike = Alike { colours: &[], ids: &[], is_given_only: false };
const GIVEN: Alike = Alike { is_given_only: true, ..NONE };

const fn with(ids: &'static [&'static str]) -> Alike {
    Alike { ids, ..NONE }
}

const fn and(colours: &'static [Colour], ids: &'static [&'static str]) -> Alike {
    Alike { colours, ids, ..NONE }
}

const fn pair(year: i32, name: &'static str, rgb: u32, ids: &'static [&'static str], alike: Alike) -> Pair {
    Pair { year, name, colour: [(rgb >> 16) as u8, (rgb >> 8) as u8, rgb as u8], ids, alike }
}

const ELDIGUZID: Colour = [0x7b, 0xc4, 0x95];

#[rustfmt::skip]
const PAIRS: [Pair; 27] = [
    pair(1000, "Byzantine Empire", 0x8f00a4, &["byzantium"], with(&["marwanids", "tao-klarjeti"])),
    pair(1000, "Rawwadids", 0x7bc495, &["rawwadids"], NONE),
    pair(1000, "Abkhazia", 0xef875a, &["abkhazia"], NONE),
    pair(1000, "Armenia with Kars, Tashir, Syunik", 0x4d4d4d, &["bagratid-armenia", "kars-kingdom", "tashir", "syunik-kingdom"], with(&["khachen"])),
    pair(1000, "Shirvanshahs", 0xe1777a, &["shirvan"], with(&["shaddadids"])),
    pair(1111, "Great Seljuks with the emirates under them", 0xbafb8e, &["seljuks", "shah-armens", "saltukids", "shirvan", "artuqids-mardin", "artuqids-kayfa", "shaddadids-ani", "tbilisi-emirate", "inalids", "tashir", "syunik-kingdom"], and(&[[0xc6, 0xff, 0x00]], &["khachen"])),
    pair(1111, "Georgia", 0xa81a1a, &["georgia"], NONE),
    pair(1111, "Cumans", 0xf0d7a2, &["cumans"], GIVEN),
    pair(1202, "Eldiguzids", 0x7bc495, &["eldiguzids", "ahmadilis"], with(&["shah-armens", "rum-erzurum", "artuqids-kayfa", "ayyubids-mayyafariqin", "hakkari"])),
    pair(1202, "Georgia", 0xa81a1a, &["georgia"], NONE),
    pair(1202, "Shirvanshahs", 0xe1777a, &["shirvan"], NONE),
    pair(1202, "Cumans", 0xf0d7a2, &["cumans"], Alike { ids: &["saqsin"], ..GIVEN }),
    pair(1202, "Rum", 0x99ff00, &["rum", "rum-erzurum"], with(&["mengujekids", "artuqids-kharpert"])),
    pair(1241, "Mongol Empire with its vassals", 0xa85400, &["mongols", "golden-horde", "georgia", "shirvan", "orbelians"], with(&["circassia", "karachay", "vainakh"])),
    pair(1241, "Rum", 0x99ff00, &["rum"], and(&[ELDIGUZID], &["mengujekids"])),
    pair(1402, "Timurids with their vassals", 0x0a0a0a, &["timurids", "shirvan", "erzincan-emirate", "artuqids-mardin"], and(&[[0xa8, 0x1a, 0x1a]], &["georgia"])),
    pair(1402, "Golden Horde", 0x6a6a35, &["golden-horde"], GIVEN),
    pair(1402, "Georgia", 0xa81a1a, &["georgia"], and(&[[0x0a, 0x0a, 0x0a]], &["timurids", "shirvan", "erzincan-emirate", "artuqids-mardin"])),
    pair(1600, "Ottoman Empire with its vassals", 0x00ff00, &["ottomans", "kartli", "kakheti", "imereti", "samtskhe", "mingrelia", "guria", "abkhazia-princes"], NONE),
    pair(1600, "Crimea with the Lesser Nogai", 0x348d32, &["crimea", "lesser-nogai"], Alike { ids: &["circassia"], ..GIVEN }),
    pair(1800, "Ottoman Empire", 0x00ff00, &["ottomans"], NONE),
    pair(1800, "Russia", 0x6c00ff, &["russia"], NONE),
    pair(1800, "Persia with the khanates", 0x7acc00, &["iran", "erivan", "nakhchivan-khanate", "ganja-khanate", "karabakh", "shaki-khanate", "shirvan-khanate", "quba", "baku", "derbent-khanate", "talysh", "maku-khanate"], NONE),
    pair(1800, "Kartli-Kakheti", 0xa81a1a, &["kartli-kakheti"], NONE),
    pair(1914, "Russia", 0x6c00ff, &["russia"], NONE),
    pair(1914, "Ottoman Empire", 0x00ff00, &["ottomans"], NONE),
    pair(1914, "Persia", 0x7acc00, &["iran"], NONE),
];

const PICTURES: [(i32, &str); 8] = [
    (1000, "C165"),
    (1111, "C180"),
    (1202, "C189"),
    (1241, "C196"),
    (1402, "C213"),
    (1600, "C249"),
    (1800, "C304"),
    (1914, "C355"),
];

/// Lines that are drawn over the pictures, their sea, and what they give to nobody.
const LINES: [Colour; 3] = [[0, 0, 255], [5, 7, 8], [255, 0, 0]];
const SEA: Colour = [0xb6, 0xdc, 0xf4];
const NOBODY: Colour = [0xd8, 0xd9, 0xda];

fn is_like(a: Colour, b: Colour) -> bool {
    a.iter().zip(b).map(|(&a, b)| u32::from(a.abs_diff(b))).sum::<u32>() <= 6
}

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

/// Cells of a twentieth of a degree in the window of the pack, with their weight by area.
struct Cells {
    at: Vec<Coord<f64>>,
    weight: Vec<f64>,
}

const PER_DEGREE: i32 = 20;

fn cells(pack: &RegionPack) -> Cells {
    let e = &pack.extent;
    let step = 1.0 / f64::from(PER_DEGREE);
    let centres = |from: f64, to: f64| {
        (0..).map(move |k| from + (f64::from(k) + 0.5) * step).take_while(move |&v| v < to).collect::<Vec<f64>>()
    };
    let (lons, lats) = (centres(e.west, e.east), centres(e.south, e.north));
    let at: Vec<Coord<f64>> = lats.iter().flat_map(|&y| lons.iter().map(move |&x| Coord { x, y })).collect();
    let weight = at.iter().map(|c| c.y.to_radians().cos()).collect();
    Cells { at, weight }
}

/// Where each of the cells lies in the pictures: a Robinson map of the world, fitted to the control points.
fn pixels(points: &Path, cells: &Cells) -> Vec<(usize, usize)> {
    let robinson = crs("+proj=robin +R=6371000", "--crs").unwrap();
    let there = Transformer::new(&crs(WGS84, "--crs").unwrap(), &robinson).unwrap();
    let plane = |x: f64, y: f64| there.point(Xy { x, y }).unwrap();
    let text = std::fs::read_to_string(points).unwrap();
    let rows: Vec<Vec<f64>> = text
        .lines()
        .filter(|l| l.starts_with(|c: char| c.is_ascii_digit()))
        .map(|l| l.split(',').take(4).map(|n| n.parse().unwrap()).collect())
        .collect();
    assert_eq!(rows.len(), 25);
    let images: Vec<Xy> = rows.iter().map(|r| plane(r[0], r[1])).collect();
    let a = DMatrix::from_fn(rows.len(), 3, |i, j| [images[i].x / 1e6, images[i].y / 1e6, 1.0][j]);
    let fit = |k: usize, sign: f64| {
        let b = DVector::from_fn(rows.len(), |i, _| sign * rows[i][k]);
        let found = a.clone().svd(true, true).solve(&b, 1e-12).unwrap();
        let worst = (&a * &found - &b).amax();
        assert!(worst < 0.5, "a control point is {worst} pixels off");
        found
    };
    let (column, row) = (fit(2, 1.0), fit(3, -1.0));
    let place = |f: &DVector<f64>, p: Xy| (f[0] * p.x / 1e6 + f[1] * p.y / 1e6 + f[2]).round().max(0.0) as usize;
    cells
        .at
        .iter()
        .map(|c| {
            let p = plane(c.x, c.y);
            (place(&column, p), place(&row, p))
        })
        .collect()
}

/// The colour of the picture at each pixel asked for; lines take the colour of the nearest pixel that is none.
fn colours(picture: &Path, pixels: &[(usize, usize)]) -> Vec<Colour> {
    let image = image::open(picture).unwrap().to_rgb8();
    let (w, h) = (image.width() as i64, image.height() as i64);
    let at = |x: i64, y: i64| image.get_pixel(x as u32, y as u32).0;
    let is_line = |c: Colour| LINES.iter().any(|&l| is_like(c, l));
    let nearest = |x: i64, y: i64| -> Colour {
        let (x, y) = (x.clamp(0, w - 1), y.clamp(0, h - 1));
        for reach in 0..20i64 {
            let square = (-reach..=reach).flat_map(|dy| (-reach..=reach).map(move |dx| (dx, dy)));
            let near = square
                .map(|(dx, dy)| (dx * dx + dy * dy, x + dx, y + dy))
                .filter(|&(d, x, y)| d <= reach * reach && (0..w).contains(&x) && (0..h).contains(&y))
                .filter(|&(_, x, y)| !is_line(at(x, y)))
                .min();
            if let Some((_, x, y)) = near {
                return at(x, y);
            }
        }
        panic!("nothing but lines at {x}, {y}");
    };
    pixels.iter().map(|&(x, y)| nearest(x as i64, y as i64)).collect()
}

/// Who holds each of the cells here.
fn holders(pack: &RegionPack, year: i32, cells: &Cells) -> Vec<String> {
    let selection = pack.select(Era::of(Year::from_historian(year).unwrap())).unwrap();
    let claims: Vec<(&Claim, Rect<f64>)> = selection
        .claims
        .into_iter()
        .filter(|c| !matches!(c.kind, ClaimKind::Claim | ClaimKind::Part))
        .filter_map(|c| Some((c, c.area.bounding_rect()?)))
        .collect();
    cells
        .at
        .par_iter()
        .map(|&at| {
            let of = |(c, frame): &&(&Claim, Rect<f64>)| frame.contains(&at) && c.area.contains(&Point::from(at));
            claims.iter().find(of).map_or(String::new(), |(c, _)| c.id.clone())
        })
        .collect()
}

/// Shares of the land there and here, and the area that both have over that which either has.
struct Agreement {
    there: f64,
    here: f64,
    both: f64,
    /// Where they differ, greatest first: who has it in the other, per cent of the land.
    differing: Vec<(f64, String)>,
}

impl Agreement {
    fn ratio(&self) -> f64 {
        self.both / (self.there + self.here - self.both)
    }
}

fn agreement(weights: &[f64], colours: &[Colour], holders: &[String], p: &Pair, alike: Alike) -> Agreement {
    let (mut total, mut there, mut here, mut both) = (0.0, 0.0, 0.0, 0.0);
    let mut differing: BTreeMap<String, f64> = BTreeMap::new();
    for ((&w, &c), h) in weights.iter().zip(colours).zip(holders) {
        if is_like(c, SEA) || h.is_empty() {
            continue;
        }
        total += w;
        if alike.is_given_only && is_like(c, NOBODY) {
            continue;
        }
        let is_there = is_like(c, p.colour) || alike.colours.iter().any(|&k| is_like(c, k));
        let is_here = p.ids.iter().chain(alike.ids).any(|id| id == h);
        there += if is_there { w } else { 0.0 };
        here += if is_here { w } else { 0.0 };
        both += if is_there && is_here { w } else { 0.0 };
        if is_there != is_here {
            let who = if is_there {
                format!("there only: {h}")
            } else {
                format!("here only: #{:02x}{:02x}{:02x}", c[0], c[1], c[2])
            };
            *differing.entry(who).or_default() += w;
        }
    }
    let mut differing: Vec<(f64, String)> = differing.into_iter().map(|(who, w)| (100.0 * w / total, who)).collect();
    differing.sort_by(|a, b| b.0.total_cmp(&a.0));
    Agreement { there: 100.0 * there / total, here: 100.0 * here / total, both: 100.0 * both / total, differing }
}

#[test]
fn the_atlas_beside_cliopatria() {
    let Some(folder) = pictures() else { return };
    let pack = find_pack("caucasus", &[]).unwrap();
    let cells = cells(&pack);
    let pixels = pixels(&folder.join("cliopatria-caucasus.points"), &cells);
    let mut table = String::new();
    let mut means = Vec::new();
    for (year, number) in PICTURES {
        let colours = colours(&folder.join(format!("cliopatria-caucasus-{number}-{year}.png")), &pixels);
        let holders = holders(&pack, year, &cells);
        let (mut plain, mut same) = (Vec::new(), Vec::new());
        for p in PAIRS.iter().filter(|p| p.year == year) {
            let measured = |alike| agreement(&cells.weight, &colours, &holders, p, alike);
            let (a, b) = (measured(NONE), measured(p.alike));
            // All that have more than 5 % of the land there are compared.
            assert!(a.there > 5.0, "{} in {year}: {:.1} %", p.name, a.there);
            let row = format!(
                "| {year} | {} | {:.1} | {:.1} | {:.2} | {:.2} |",
                p.name,
                a.there,
                a.here,
                a.ratio(),
                b.ratio()
            );
            println!("{row}");
            for (what, d) in [("as named", &a), ("grouped alike", &b)] {
                let most: Vec<String> = d.differing.iter().take(6).map(|(w, who)| format!("{who} {w:.1}")).collect();
                println!("    {what}: {}", most.join("; "));
            }
            table += &row;
            table += "\n";
            plain.push(a.ratio());
            same.push(b.ratio());
        }
        let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
        means.push(format!("| {year} | mean | | | {:.2} | {:.2} |", mean(&plain), mean(&same)));
        println!("{}", means[means.len() - 1]);
    }
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/atlas.md")).unwrap();
    let missing: Vec<&str> =
        table.lines().chain(means.iter().map(String::as_str)).filter(|row| !page.lines().any(|l| l == *row)).collect();
    assert!(missing.is_empty(), "docs/atlas.md lacks:\n{}", missing.join("\n"));
}
