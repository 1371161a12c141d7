//! Laws of the map sheet on small invented lands.

use super::placing::overlap;
use super::*;
use crate::borders::{Certainty, Claim, ClaimKind};
use crate::grid::{Crs, GeoTransform};
use crate::water::WaterKind;
use crate::year::{Span, Year};
use geo::{LineString, MultiPolygon, Polygon};

/// An invented land with all that a sheet can show; owns what [`SheetInput`] borrows.
struct Land {
    grid: Grid,
    elevation: Raster<f32>,
    water: Raster<u8>,
    regions: Raster<u16>,
    contested: Raster<u16>,
    polities: Vec<PolityRegion>,
    borders: Vec<BorderLine>,
    rivers: Vec<River>,
    water_bodies: Vec<WaterBody>,
    places: Vec<Place>,
    peaks: Vec<Peak>,
    physical: Vec<PhysicalName>,
    title: String,
    era: String,
    year: i32,
    imprint: Vec<String>,
}

const WEST_LON: f64 = 40.0;
const NORTH_LAT: f64 = 44.0;

/// A plane chart: 80 km a degree eastward, 111 km northward from 40 E, 44 N.
fn project(at: LonLat) -> Option<Xy> {
    let inside = (-170.0..170.0).contains(&at.lon) && at.lat.abs() < 89.0;
    inside.then_some(Xy { x: (at.lon - WEST_LON) * 80_000.0, y: (at.lat - NORTH_LAT) * 111_000.0 })
}

fn lon_lat(x: f64, y: f64) -> LonLat {
    LonLat { lon: WEST_LON + x / 80_000.0, lat: NORTH_LAT + y / 111_000.0 }
}

fn square(x0: f64, y0: f64, x1: f64, y1: f64) -> MultiPolygon<f64> {
    MultiPolygon(vec![Polygon::new(LineString::from(vec![(x0, y0), (x1, y0), (x1, y1), (x0, y1)]), vec![])])
}

fn polity(code: u16, name: &str, kind: ClaimKind, outline: MultiPolygon<f64>, colour: [u8; 3]) -> PolityRegion {
    let claim = Claim {
        id: name.to_lowercase(),
        name: name.into(),
        name_ru: String::new(),
        name_local: "საქართველო".into(),
        local_lang: "ka".into(),
        span: Span { start: Year(1100), end: Year(1300) },
        doubt: None,
        kind,
        parent: None,
        certainty: Certainty::Approximate,
        sources: Vec::new(),
        colour: None,
        note: String::new(),
        known_lines: Vec::new(),
        area: MultiPolygon(Vec::new()),
    };
    let standing = claim.standing(&claim.span).unwrap();
    PolityRegion { code, claim, standing, outline, area_km2: f64::from(code) * 1000.0, colour }
}

impl Land {
    /// `cols` x `rows` cells of `cell_m`: sea in the west, a lake, hills, four polities of which one is tiny, a people, a
    /// part, and `towns` towns in a crowd.
    fn new(cols: usize, rows: usize, cell_m: f64, towns: usize) -> Land {
        let crs = Crs { name: "plane chart".into(), wkt: String::new(), is_geographic: false };
        let transform = GeoTransform { origin_x: 0.0, origin_y: 0.0, cell_width: cell_m, cell_height: cell_m };
        let grid = Grid { crs, transform, cols, rows };
        let (w, h) = (cols as f64 * cell_m, rows as f64 * cell_m);
        let cells = |f: &dyn Fn(f64, f64) -> u16| {
            let at = |k: usize| (((k % cols) as f64 + 0.5) / cols as f64, ((k / cols) as f64 + 0.5) / rows as f64);
            Raster::from_values(cols, rows, (0..cols * rows).map(|k| f(at(k).0, at(k).1)).collect())
        };
        let shore = |v: f64| 0.16 + 0.05 * (v * 9.0).sin();
        let is_lake = |u: f64, v: f64| ((u - 0.7) / 0.05).powi(2) + ((v - 0.4) / 0.08).powi(2) < 1.0;
        let water = cells(&|u, v| if u < shore(v) { 1 } else { u16::from(is_lake(u, v)) * 2 });
        let elevation = cells(&|u, v| {
            let ridge = (-((v - 0.3 - 0.3 * u) / 0.12).powi(2)).exp();
            (1000.0 + 3000.0 * ridge * (0.6 + 0.4 * (u * 60.0).sin() * (v * 50.0).cos())) as u16
        });
        let elevation = Raster::from_values(
            cols,
            rows,
            elevation
                .values
                .iter()
                .zip(&water.values)
                .map(|(z, w)| if *w == 1 { -800.0 } else { f32::from(*z) - 1020.0 })
                .collect(),
        );
        let code = |u: f64, v: f64| match (u, v) {
            _ if u < shore(v) => 0,
            (u, v) if (0.8..0.83).contains(&u) && (0.8..0.83).contains(&v) => 3,
            (_, v) if v < 0.3 => 0,
            (u, _) if u < 0.55 => 1,
            _ => 2,
        };
        let regions = cells(&code);
        let contested = cells(&|u, v| if code(u, v) == 2 && u < 0.65 && v > 0.6 { 1 } else { 0 });
        let at = |u: f64, v: f64| (u * w, -v * h);
        let line = |points: &[(f64, f64)]| LineString::from(points.iter().map(|p| at(p.0, p.1)).collect::<Vec<_>>());
        let lonlat_line = |points: &[(f64, f64)]| {
            let one = |p: &(f64, f64)| {
                let (x, y) = at(p.0, p.1);
                let l = lon_lat(x, y);
                (l.lon, l.lat)
            };
            LineString::from(points.iter().map(one).collect::<Vec<_>>())
        };
        let of = |u0: f64, v0: f64, u1: f64, v1: f64| square(u0 * w, -v1 * h, u1 * w, -v0 * h);
        let mut part = polity(4, "County of the Marches", ClaimKind::Part, of(0.2, 0.8, 0.4, 0.95), [10, 90, 60]);
        part.claim.parent = Some("kingdom of westland".into());
        let polities = vec![
            polity(1, "Kingdom of Westland", ClaimKind::Polity, of(0.2, 0.3, 0.55, 1.0), [190, 80, 70]),
            polity(2, "Eastmark", ClaimKind::Polity, of(0.55, 0.3, 1.0, 1.0), [90, 140, 90]),
            polity(
                3,
                "Free City of the Very Small Valley",
                ClaimKind::Polity,
                of(0.8, 0.8, 0.83, 0.83),
                [120, 90, 160],
            ),
            part,
            polity(5, "Hill People", ClaimKind::People, of(0.3, 0.02, 0.9, 0.28), [128; 3]),
        ];
        let border =
            |left, right, certainty, points: &[(f64, f64)]| BorderLine { left, right, certainty, line: line(points) };
        let mut places = Vec::new();
        for k in 0..towns {
            // A crowd around one spot, by the golden angle.
            let (r, a) = (0.02 * (k as f64).sqrt(), k as f64 * 2.399_963);
            let (x, y) = at(0.5 + r * a.cos(), 0.55 + r * a.sin());
            let kind = ["capital", "town", "fortress", "monastery", "port", "pass"][k % 6];
            let rank = [1, 2, 3, 4][(k / 3).min(3)];
            places.push(Place {
                name: format!("Old Town {k}"),
                kind: kind.into(),
                rank,
                from_year: None,
                to_year: None,
                names: Vec::new(),
                at: lon_lat(x, y),
            });
        }
        let (px, py) = at(0.45, 0.44);
        let physical = |name: &str, kind: &str, points: &[(f64, f64)]| PhysicalName {
            name: name.into(),
            name_ru: String::new(),
            kind: kind.into(),
            rank: 1,
            line: lonlat_line(points),
        };
        Land {
            grid,
            elevation,
            regions,
            contested,
            water: Raster::from_values(cols, rows, water.values.iter().map(|v| *v as u8).collect()),
            polities,
            borders: vec![
                border(1, 2, Certainty::Treaty, &[(0.55, 0.3), (0.55, 0.6), (0.55, 1.0)]),
                border(0, 1, Certainty::Approximate, &[(0.2, 0.3), (0.55, 0.3)]),
                border(0, 2, Certainty::Conjectural, &[(0.55, 0.3), (1.0, 0.3)]),
            ],
            rivers: vec![River {
                name: "Long River".into(),
                name_ru: String::new(),
                rank: 1,
                mouth: String::new(),
                line: line(&[(0.9, 0.9), (0.7, 0.75), (0.5, 0.8), (0.3, 0.7), (0.1, 0.72)]),
            }],
            water_bodies: vec![
                WaterBody {
                    name: String::new(),
                    name_ru: String::new(),
                    kind: WaterKind::Sea,
                    level_m: 0.0,
                    since_year: None,
                    area: of(0.0, 0.0, 0.15, 1.0),
                },
                WaterBody {
                    name: "Mirror Lake".into(),
                    name_ru: String::new(),
                    kind: WaterKind::Lake,
                    level_m: 900.0,
                    since_year: None,
                    area: of(0.65, 0.32, 0.75, 0.48),
                },
            ],
            places,
            peaks: vec![Peak {
                name: "High Horn".into(),
                name_ru: String::new(),
                height_m: 4120.4,
                rank: 1,
                at: lon_lat(px, py),
            }],
            physical: vec![
                physical("Western Sea", "sea", &[(0.02, 0.5), (0.14, 0.5)]),
                physical("Great Ridge", "range", &[(0.3, 0.39), (0.6, 0.48), (0.9, 0.57)]),
            ],
            title: "Invented Land".into(),
            era: "1200 CE".into(),
            year: 1200,
            imprint: vec!["Drawn for a test; no rights reserved.".into()],
        }
    }

    fn draw(&self, options: &SheetOptions) -> crate::Result<Sheet> {
        draw_sheet(
            &SheetInput {
                grid: &self.grid,
                elevation: &self.elevation,
                water: &self.water,
                regions: &self.regions,
                contested: &self.contested,
                polities: &self.polities,
                borders: &self.borders,
                rivers: &self.rivers,
                water_bodies: &self.water_bodies,
                places: &self.places,
                peaks: &self.peaks,
                physical: &self.physical,
                project: &project,
                title: &self.title,
                part: "40–43° E, 42–44° N",
                era: &self.era,
                year: self.year,
                imprint: &self.imprint,
            },
            options,
        )
    }
}

fn options(map_px: usize) -> SheetOptions {
    SheetOptions { map_px, dpi: 100.0 }
}

/// No two boxes of different labels meet, and all lie inside the map window.
fn assert_legible(sheet: &Sheet) {
    let quad = |b: &[[f32; 2]; 4]| b.map(|p| super::curve::point(p[0], p[1]));
    let size = sheet.map_size.map(|s| s as f32);
    for (k, a) in sheet.labels.iter().enumerate() {
        for q in &a.boxes {
            assert!(q.iter().all(|p| p[0] >= 0.0 && p[1] >= 0.0 && p[0] <= size[0] && p[1] <= size[1]), "{a:?} is cut");
        }
        for b in &sheet.labels[..k] {
            let meets = a.boxes.iter().any(|p| b.boxes.iter().any(|q| overlap(&quad(p), &quad(q))));
            assert!(!meets, "{a:?} meets {b:?}");
        }
    }
}

fn assert_all_named(land: &Land, sheet: &Sheet) {
    for p in &land.polities {
        let on_map = sheet.labels.iter().any(|l| l.text == p.claim.name);
        assert!(on_map || sheet.keys.iter().any(|k| k.0 == p.code), "{} has no name", p.claim.name);
    }
}

#[test]
fn a_crowded_map_is_legible_and_names_every_polity() {
    let land = Land::new(300, 220, 1000.0, 60);
    let sheet = land.draw(&options(1200)).unwrap();
    assert_legible(&sheet);
    assert_all_named(&land, &sheet);
    for kind in
        [LabelKind::Polity, LabelKind::People, LabelKind::Part, LabelKind::Place, LabelKind::River, LabelKind::Peak]
    {
        assert!(sheet.labels.iter().any(|l| l.kind == kind), "{kind:?} missing");
    }
    assert!(sheet.labels.iter().any(|l| l.text == "High Horn 4120"));
    let towns = sheet.labels.iter().filter(|l| l.kind == LabelKind::Place).count();
    assert!((8..60).contains(&towns), "{towns} towns: some must be left out, not all");
}

#[test]
fn thread_count_does_not_change_a_byte() {
    let land = Land::new(120, 90, 2000.0, 12);
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| land.draw(&options(600)).unwrap().to_png().unwrap())
    };
    let one = with(1);
    assert_eq!(one, with(4));
    assert_eq!(one, with(1));
}

#[test]
fn the_png_states_its_print_resolution() {
    let sheet = Land::new(40, 30, 2000.0, 0).draw(&options(300)).unwrap();
    let png = sheet.to_png().unwrap();
    assert_eq!(&png[37..41], b"pHYs");
    assert_eq!(png[41..45], 3937u32.to_be_bytes());
    let back = image::load_from_memory(&png).unwrap().into_rgb8();
    assert_eq!((back.width() as usize, back.height() as usize), (sheet.width, sheet.height));
    assert_eq!(back.as_raw(), sheet.rgb.as_flattened());
}

#[test]
fn odd_grids_are_drawn_without_panic() {
    for (cols, rows, cell_m, px) in [
        (100, 80, 8000.0, 500),
        (800, 600, 30.0, 500),
        (400, 20, 500.0, 900),
        (20, 400, 500.0, 900),
        (1, 1, 100.0, 120),
        (3, 2, 50_000.0, 200),
    ] {
        let land = Land::new(cols, rows, cell_m, 8);
        let sheet = land.draw(&options(px)).unwrap();
        assert_legible(&sheet);
        assert!(sheet.width > sheet.map_size[0] && sheet.height > sheet.map_size[1]);
    }
}

#[test]
fn an_empty_view_is_still_a_sheet() {
    let mut land = Land::new(60, 50, 4000.0, 0);
    land.polities.clear();
    land.borders.clear();
    land.rivers.clear();
    land.water_bodies.clear();
    land.peaks.clear();
    land.physical.clear();
    land.imprint.clear();
    land.regions = Raster::filled(60, 50, 0);
    land.contested = Raster::filled(60, 50, 0);
    land.elevation = Raster::filled(60, 50, f32::NAN);
    land.era = "300 BCE".into();
    land.year = -300;
    let sheet = land.draw(&options(400)).unwrap();
    assert!(sheet.labels.is_empty() && sheet.keys.is_empty());
    // All sea, unknown land, codes that no polity has: still no panic.
    land.water = Raster::filled(60, 50, 1);
    land.draw(&options(400)).unwrap();
    land.water = Raster::filled(60, 50, 0);
    land.regions = Raster::filled(60, 50, 999);
    land.contested = Raster::filled(60, 50, 65_535);
    land.draw(&options(400)).unwrap();
}

#[test]
fn polities_too_small_for_a_name_get_a_pointer_or_a_number() {
    let mut land = Land::new(200, 160, 1000.0, 0);
    // Thirty tiny polities in a row of cells.
    for k in 0..30u16 {
        let code = 10 + k;
        let (u, v) = (0.3 + 0.02 * f64::from(k), 0.6);
        let (w, h) = (200_000.0, 160_000.0);
        let outline = square(u * w, -(v + 0.02) * h, (u + 0.02) * w, -v * h);
        land.polities.push(polity(code, &format!("Tiny Lordship {k}"), ClaimKind::Polity, outline, [200, 180, 90]));
        for row in 96..99 {
            for col in 0..4 {
                land.regions.set(60 + 4 * k as usize + col, row, code);
            }
        }
    }
    let sheet = land.draw(&options(600)).unwrap();
    assert_legible(&sheet);
    assert_all_named(&land, &sheet);
    assert!(!sheet.keys.is_empty(), "some must have ended as numbers");
}

#[test]
fn relief_stands_right_side_up() {
    // One ridge from west to east: its northern side looks to the light.
    let mut land = Land::new(80, 80, 500.0, 0);
    land.polities.clear();
    land.borders.clear();
    land.rivers.clear();
    land.water_bodies.clear();
    land.peaks.clear();
    land.physical.clear();
    land.water = Raster::filled(80, 80, 0);
    land.regions = Raster::filled(80, 80, 0);
    land.contested = Raster::filled(80, 80, 0);
    let height = |row: usize| 1500.0 - 40.0 * (row as f32 - 39.5).abs();
    land.elevation = Raster::from_values(80, 80, (0..6400).map(|k| height(k / 80)).collect());
    let sheet = land.draw(&options(400)).unwrap();
    let grey = |y: usize| {
        let x = (sheet.width - sheet.map_size[0]).min(40) + 150;
        sheet.rgb[y * sheet.width + x].iter().map(|&c| u32::from(c)).sum::<u32>()
    };
    let top = ((super::sheet::MARGIN_PT + super::furniture::FRAME_PT) * 100.0 / 72.0) as usize;
    assert!(grey(top + 100) > grey(top + 300) + 60, "{} {}", grey(top + 100), grey(top + 300));
}

#[test]
fn rasters_off_the_grid_and_options_out_of_range_are_refused() {
    let mut land = Land::new(20, 20, 1000.0, 0);
    assert!(matches!(land.draw(&options(99)), Err(crate::Error::Argument { .. })));
    assert!(matches!(land.draw(&SheetOptions { dpi: f64::NAN, ..options(200) }), Err(crate::Error::Argument { .. })));
    land.water = Raster::filled(19, 20, 0);
    let e = land.draw(&options(200)).unwrap_err();
    assert!(e.to_string().contains("water, 19 x 20"), "{e}");
}

#[test]
fn a_lake_is_named_where_its_line_has_no_room() {
    let mut land = Land::new(300, 220, 1000.0, 0);
    // The line runs outside the view; only the outline says where the lake is.
    let outside = [lon_lat(-90_000.0, 50_000.0), lon_lat(-60_000.0, 50_000.0)];
    land.physical.push(PhysicalName {
        name: "Mirror Lake".into(),
        name_ru: String::new(),
        kind: "lake".into(),
        rank: 2,
        line: outside.iter().map(|p| (p.lon, p.lat)).collect(),
    });
    let sheet = land.draw(&options(900)).unwrap();
    assert_legible(&sheet);
    let names: Vec<_> = sheet.labels.iter().filter(|l| l.text == "Mirror Lake").collect();
    assert_eq!(names.len(), 1, "{names:?}");
    // In the lake, which lies around (0.7, 0.4) of the window.
    let [w, h] = sheet.map_size.map(|s| s as f32);
    for p in names[0].boxes.iter().flatten() {
        assert!((p[0] / w - 0.7).abs() < 0.1 && (p[1] / h - 0.4).abs() < 0.1, "{p:?}");
    }
}

#[test]
fn nothing_breaks_a_spaced_name() {
    let sheet = Land::new(300, 220, 1000.0, 60).draw(&options(1200)).unwrap();
    let ridge = sheet.labels.iter().find(|l| l.text == "Great Ridge").unwrap();
    // Letters and the gaps between them: the boxes are more than the ten letters, and none of another label meets them.
    assert_eq!(ridge.boxes.len(), 10 + 9);
    assert_legible(&sheet);
}

#[test]
fn contested_land_is_outlined_and_its_sides_are_counted() {
    let land = Land::new(200, 160, 1000.0, 0);
    let input = SheetInput {
        grid: &land.grid,
        elevation: &land.elevation,
        water: &land.water,
        regions: &land.regions,
        contested: &land.contested,
        polities: &land.polities,
        borders: &land.borders,
        rivers: &land.rivers,
        water_bodies: &land.water_bodies,
        places: &land.places,
        peaks: &land.peaks,
        physical: &land.physical,
        project: &project,
        title: "",
        part: "",
        era: "",
        year: 1200,
        imprint: &[],
    };
    let ground = super::tint::Ground::new(&input, 200, 160, |x, y| (x / 1000.0, -y / 1000.0));
    // Eastmark (2) holds it, Westland (1) contests it, from 0.55 to 0.65 across and below 0.6.
    let contests = ground.contests();
    assert_eq!(contests.len(), 1);
    assert_eq!(contests[0].0, (2, 1));
    assert!((contests[0].1 as f32 - 20.0 * 64.0).abs() < 100.0, "{contests:?}");
    let outlines = ground.contested_outlines();
    assert_eq!(outlines.len(), 1);
    for p in outlines[0].points() {
        assert!(p.x > 107.0 && p.x < 133.0 && p.y > 94.0, "{p:?}");
        let inner = p.x > 113.0 && p.x < 127.0 && p.y > 100.0;
        assert!(!inner || p.y > 157.0, "{p:?} lies within");
    }
}
