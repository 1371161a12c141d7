//! `histmap refine` on small elevation models made here: half cells, voids, constraints, refusals.

use gdal::DriverManager;
use gdal::raster::Buffer;
use gdal::spatial_ref::SpatialRef;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

struct Shop {
    dir: tempfile::TempDir,
}

/// A coarse model: size, geotransform, EPSG code (0 for none), values.
struct Model {
    cols: usize,
    rows: usize,
    transform: [f64; 6],
    epsg: u32,
    values: Vec<f64>,
    is_point: bool,
}

impl Model {
    /// Hills on 900 m cells of UTM 38N.
    fn hills(cols: usize, rows: usize) -> Model {
        let value = |k: usize| {
            let (x, y) = ((k % cols) as f64, (k / cols) as f64);
            600.0 + 300.0 * (x * 0.7).sin() * (y * 0.5).cos() + 120.0 * (x * 1.9 + y).sin()
        };
        Model {
            cols,
            rows,
            transform: [500_000.0, 900.0, 0.0, 4_600_000.0, 0.0, -900.0],
            epsg: 32638,
            values: (0..cols * rows).map(value).collect(),
            is_point: false,
        }
    }

    fn flat(value: f64) -> Model {
        Model { values: vec![value; 64], ..Model::hills(8, 8) }
    }
}

impl Shop {
    fn new() -> Shop {
        Shop { dir: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn model(&self, name: &str, m: &Model) {
        let driver = DriverManager::get_driver_by_name("GTiff").unwrap();
        let mut d = driver.create_with_band_type::<f64, _>(self.path(name), m.cols, m.rows, 1).unwrap();
        d.set_geo_transform(&m.transform).unwrap();
        if m.epsg != 0 {
            d.set_spatial_ref(&SpatialRef::from_epsg(m.epsg).unwrap()).unwrap();
        }
        if m.is_point {
            use gdal::Metadata;
            d.set_metadata_item("AREA_OR_POINT", "Point", "").unwrap();
        }
        let mut band = d.rasterband(1).unwrap();
        band.set_no_data_value(Some(-9999.0)).unwrap();
        let mut buffer = Buffer::new((m.cols, m.rows), m.values.clone());
        band.write((0, 0), (m.cols, m.rows), &mut buffer).unwrap();
    }

    fn refine(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_histmap"))
            .arg("refine")
            .args(args)
            .current_dir(self.dir.path())
            .output()
            .unwrap()
    }

    fn layer(&self, name: &str, features: &str) {
        let crs = r#""crs":{"type":"name","properties":{"name":"urn:ogc:def:crs:EPSG::32638"}}"#;
        let text = format!(r#"{{"type":"FeatureCollection",{crs},"features":[{features}]}}"#);
        std::fs::write(self.path(name), text).unwrap();
    }
}

#[track_caller]
fn assert_succeeds(o: &Output) -> String {
    assert!(o.status.success(), "exit {:?}: {}", o.status.code(), String::from_utf8_lossy(&o.stderr));
    String::from_utf8_lossy(&o.stdout).into_owned()
}

#[track_caller]
fn assert_fails(o: &Output, code: i32, words: &[&str]) {
    let text = String::from_utf8_lossy(&o.stderr);
    assert_eq!(o.status.code(), Some(code), "{text}");
    assert!(!text.contains("panicked"), "{text}");
    for w in words {
        assert!(text.contains(w), "no '{w}' in: {text}");
    }
}

struct Fine {
    cols: usize,
    transform: [f64; 6],
    z: Vec<f64>,
}

fn read(path: &Path) -> Fine {
    let d = gdal::Dataset::open(path).unwrap();
    let (cols, rows) = d.raster_size();
    let b = d.rasterband(1).unwrap();
    let z = b.read_as::<f64>((0, 0), (cols, rows), (cols, rows), None).unwrap().data().to_vec();
    Fine { cols, transform: d.geo_transform().unwrap(), z }
}

impl Fine {
    fn block_mean(&self, f: usize, col: usize, row: usize) -> f64 {
        let cells = (0..f * f).map(|k| self.z[(row * f + k / f) * self.cols + col * f + k % f]);
        cells.sum::<f64>() / (f * f) as f64
    }
}

#[test]
fn block_means_return_the_model_at_any_factor() {
    let shop = Shop::new();
    let m = Model::hills(14, 11);
    shop.model("c.tif", &m);
    for f in [1usize, 2, 3, 7, 16] {
        let out = format!("f{f}.tif");
        assert_succeeds(&shop.refine(&["c.tif", &out, "--factor", &f.to_string()]));
        let fine = read(&shop.path(&out));
        assert_eq!(fine.z.len(), m.cols * f * m.rows * f);
        for row in 0..m.rows {
            for col in 0..m.cols {
                let d = fine.block_mean(f, col, row) - m.values[row * m.cols + col];
                assert!(d.abs() < 0.5, "factor {f}, block {col},{row}: {d}");
            }
        }
    }
}

#[test]
fn cells_are_areas_also_when_the_model_says_point() {
    let shop = Shop::new();
    let mut m = Model::hills(10, 10);
    shop.model("area.tif", &m);
    m.is_point = true;
    shop.model("point.tif", &m);
    assert_succeeds(&shop.refine(&["area.tif", "a.tif", "--factor", "4"]));
    assert_succeeds(&shop.refine(&["point.tif", "p.tif", "--factor", "4"]));
    // GDAL writes the half cell into the file and takes it out again: the model lies where it was put.
    let (a, p) = (read(&shop.path("a.tif")), read(&shop.path("p.tif")));
    assert_eq!(a.transform, [500_000.0, 225.0, 0.0, 4_600_000.0, 0.0, -225.0]);
    assert_eq!(p.transform, a.transform);
    assert_eq!(a.z, p.z);
}

#[test]
fn point_mode_keeps_every_node_to_the_bit() {
    let shop = Shop::new();
    let mut m = Model::hills(9, 7);
    m.values.iter_mut().for_each(|v| *v = v.round());
    shop.model("c.tif", &m);
    for f in [2usize, 5] {
        assert_succeeds(&shop.refine(&[
            "c.tif",
            "n.tif",
            "--factor",
            &f.to_string(),
            "--mode",
            "point",
            "--overwrite",
        ]));
        let fine = read(&shop.path("n.tif"));
        assert_eq!(fine.cols, (m.cols - 1) * f + 1);
        // The first node is the centre of the first coarse cell, and of the first fine one.
        let fine_m = 900.0 / f as f64;
        assert!((fine.transform[0] + fine_m / 2.0 - 500_450.0).abs() < 1e-6);
        for row in 0..m.rows {
            for col in 0..m.cols {
                assert_eq!(fine.z[row * f * fine.cols + col * f], m.values[row * m.cols + col], "{col},{row}");
            }
        }
    }
}

#[test]
fn flat_ground_stays_flat_and_small_models_work() {
    let shop = Shop::new();
    shop.model("flat.tif", &Model::flat(-12.5));
    assert_succeeds(&shop.refine(&["flat.tif", "o.tif", "--factor", "8"]));
    assert!(read(&shop.path("o.tif")).z.iter().all(|z| (z + 12.5).abs() < 1e-3));
    for (cols, rows) in [(1, 1), (2, 3), (9, 1), (1, 9)] {
        shop.model("s.tif", &Model::hills(cols, rows));
        for f in ["1", "3", "64"] {
            assert_succeeds(&shop.refine(&["s.tif", "o.tif", "--factor", f, "--overwrite"]));
            assert!(read(&shop.path("o.tif")).z.iter().all(|z| z.is_finite() && z.abs() < 3000.0));
        }
    }
    // Steps of 40,000 m do not upset it.
    let mut m = Model::hills(8, 8);
    m.values.iter_mut().enumerate().for_each(|(k, v)| *v = if k % 2 == 0 { 0.0 } else { 40_000.0 });
    shop.model("wild.tif", &m);
    assert_succeeds(&shop.refine(&["wild.tif", "o.tif", "--factor", "4", "--overwrite"]));
    assert!(read(&shop.path("o.tif")).z.iter().all(|z| z.is_finite()));
}

#[test]
fn voids_are_filled_or_kept() {
    let shop = Shop::new();
    let mut m = Model::hills(12, 12);
    for k in [50, 51, 62, 63, 64] {
        m.values[k] = -9999.0;
    }
    m.values[0] = f64::NAN;
    m.values[7] = f64::INFINITY;
    shop.model("v.tif", &m);
    assert_succeeds(&shop.refine(&["v.tif", "filled.tif", "--factor", "4"]));
    assert!(read(&shop.path("filled.tif")).z.iter().all(|&z| z > -2000.0 && z < 4000.0));
    assert_succeeds(&shop.refine(&["v.tif", "kept.tif", "--factor", "4", "--keep-voids"]));
    let kept = read(&shop.path("kept.tif"));
    assert_eq!(kept.z.iter().filter(|z| **z == -9999.0).count(), 7 * 16);
    m.values.fill(-9999.0);
    shop.model("none.tif", &m);
    assert_fails(&shop.refine(&["none.tif", "o.tif", "--factor", "4"]), 1, &["none.tif", "no cell has a value"]);
    assert!(!shop.path("o.tif").exists());
}

#[test]
fn peaks_water_and_intervals_bind_exactly() {
    let shop = Shop::new();
    shop.model("c.tif", &Model::hills(14, 14));
    shop.layer(
        "peaks.geojson",
        r#"{"type":"Feature","properties":{"name":"Top","ele":1234.5},"geometry":{"type":"Point","coordinates":[504500,4595500]}},
           {"type":"Feature","properties":{"name":"Hole","ele":-50},"geometry":{"type":"Point","coordinates":[509000,4591000]}}"#,
    );
    shop.layer(
        "water.geojson",
        r#"{"type":"Feature","properties":{"level_m":500},"geometry":{"type":"Polygon",
           "coordinates":[[[507000,4598000],[509000,4598000],[509000,4596000],[507000,4596000],[507000,4598000]]]}}"#,
    );
    shop.layer(
        "intervals.geojson",
        r#"{"type":"Feature","properties":{"name":"band","low_m":700,"high_m":720},"geometry":{"type":"Polygon",
           "coordinates":[[[501000,4590000],[504000,4590000],[504000,4588500],[501000,4588500],[501000,4590000]]]}}"#,
    );
    let o = shop.refine(&[
        "c.tif",
        "o.tif",
        "--factor",
        "6",
        "--peaks",
        "peaks.geojson",
        "--water",
        "water.geojson",
        "--intervals",
        "intervals.geojson",
    ]);
    let text = assert_succeeds(&o);
    // What contradicts the model is told.
    assert!(text.contains("contradiction: Hole: -50 m") && text.contains("interval band"), "{text}");
    let fine = read(&shop.path("o.tif"));
    let at = |x: f64, y: f64| {
        let (c, r) = (((x - 500_000.0) / 150.0) as usize, ((4_600_000.0 - y) / 150.0) as usize);
        fine.z[r * fine.cols + c]
    };
    assert_eq!(at(504_500.0, 4_595_500.0), 1234.5);
    assert_eq!(at(509_000.0, 4_591_000.0), -50.0);
    for k in 0..12 {
        for l in 0..12 {
            assert_eq!(at(507_100.0 + f64::from(k) * 150.0, 4_597_900.0 - f64::from(l) * 150.0), 500.0);
        }
    }
    for k in 0..18 {
        for l in 0..8 {
            let z = at(501_160.0 + f64::from(k) * 150.0, 4_589_850.0 - f64::from(l) * 150.0);
            assert!((700.0..=720.0).contains(&z), "{z}");
        }
    }
}

#[test]
fn a_river_falls_all_the_way() {
    let shop = Shop::new();
    // A valley that falls east along row 4, with bumps.
    let mut m = Model::hills(20, 9);
    m.values.iter_mut().enumerate().for_each(|(k, v)| {
        *v = *v * 0.1 + 1000.0 - 30.0 * (k % 20) as f64 + 250.0 * ((k / 20) as f64 - 4.0).abs();
    });
    shop.model("c.tif", &m);
    shop.layer(
        "rivers.geojson",
        // Drawn from mouth to source: the lower end is found.
        r#"{"type":"Feature","properties":{"name":"R"},"geometry":{"type":"LineString",
           "coordinates":[[517500,4595950],[509000,4595950],[501500,4595950]]}}"#,
    );
    assert_succeeds(&shop.refine(&["c.tif", "o.tif", "--factor", "6", "--rivers", "rivers.geojson"]));
    let fine = read(&shop.path("o.tif"));
    // The bed is the lowest cell of each column of the valley, and falls eastward from column to column.
    let low = |c: usize| (18..36).map(|r| fine.z[r * fine.cols + c]).fold(f64::MAX, f64::min);
    for c in 12..114 {
        assert!(low(c + 1) <= low(c), "column {c}: {} then {}", low(c), low(c + 1));
    }
}

#[test]
fn what_cannot_bind_is_told_with_place_and_size() {
    let shop = Shop::new();
    shop.model("c.tif", &Model::hills(14, 14));
    shop.layer(
        "peaks.geojson",
        r#"{"type":"Feature","properties":{"name":"Far","ele":900},"geometry":{"type":"Point","coordinates":[700000,4595500]}},
           {"type":"Feature","properties":{"name":"Low","ele":-400},"geometry":{"type":"Point","coordinates":[504500,4595500]}},
           {"type":"Feature","properties":{"name":"Nameless"},"geometry":{"type":"Point","coordinates":[505500,4595500]}}"#,
    );
    shop.layer(
        "rivers.geojson",
        r#"{"type":"Feature","properties":{"name":"Away"},"geometry":{"type":"LineString","coordinates":[[700000,4595000],[710000,4595000]]}},
           {"type":"Feature","properties":{"name":"Climber"},"geometry":{"type":"LineString","coordinates":[[500500,4594000],[512000,4594000]]}}"#,
    );
    let o = shop.refine(&[
        "c.tif",
        "o.tif",
        "--factor",
        "4",
        "--peaks",
        "peaks.geojson",
        "--rivers",
        "rivers.geojson",
        "--json",
    ]);
    let summary: serde_json::Value = serde_json::from_str(&assert_succeeds(&o)).unwrap();
    let list = |key: &str| -> Vec<String> {
        summary[key].as_array().unwrap().iter().map(|v| v.as_str().unwrap().to_string()).collect()
    };
    let (contradictions, outside, notes) = (list("contradictions"), list("outside"), list("notes"));
    // Outside is no contradiction.
    assert_eq!(outside.len(), 2, "{outside:?}");
    assert!(outside.iter().any(|t| t.contains("Far") && t.contains("700000")), "{outside:?}");
    assert!(outside.iter().any(|t| t.contains("Away")), "{outside:?}");
    assert!(!contradictions.iter().any(|t| t.contains("Far") || t.contains("Away")), "{contradictions:?}");
    let low = contradictions.iter().find(|t| t.contains("Low")).expect("a peak below its neighbours");
    assert!(
        low.contains("below the model") && low.contains("below all cells around") && low.contains("504500"),
        "{low}"
    );
    // A line across 600 m of hills and back cannot be a river.
    assert!(contradictions.iter().any(|t| t.contains("Climber") && t.contains(" m near ")), "{contradictions:?}");
    assert!(notes.iter().any(|t| t.contains("1 feature is left out")), "{notes:?}");
}

#[test]
fn a_river_that_ends_in_a_lake_falls_to_its_level() {
    let shop = Shop::new();
    // Ground that falls east to a lake whose level is higher than the model's last cells.
    let mut m = Model::hills(20, 9);
    m.values.iter_mut().enumerate().for_each(|(k, v)| {
        *v = 800.0 - 20.0 * (k % 20) as f64 + 200.0 * ((k / 20) as f64 - 4.0).abs() + *v * 0.02;
    });
    shop.model("c.tif", &m);
    shop.layer(
        "rivers.geojson",
        r#"{"type":"Feature","properties":{"name":"R"},"geometry":{"type":"LineString","coordinates":[[501500,4595950],[509000,4595950],[514500,4595950]]}}"#,
    );
    shop.layer(
        "water.geojson",
        r#"{"type":"Feature","properties":{"level_m":500},"geometry":{"type":"Polygon",
           "coordinates":[[[514000,4597500],[517500,4597500],[517500,4594500],[514000,4594500],[514000,4597500]]]}}"#,
    );
    let args = ["c.tif", "o.tif", "--factor", "6", "--rivers", "rivers.geojson", "--water", "water.geojson"];
    assert_succeeds(&shop.refine(&args));
    let fine = read(&shop.path("o.tif"));
    let low = |c: usize| (18..36).map(|r| fine.z[r * fine.cols + c]).fold(f64::MAX, f64::min);
    // Strictly down towards the shore; beside it all land, the bed too, stands a little above the water.
    for c in 12..78 {
        assert!(low(c + 1) < low(c), "column {c}: {} then {}", low(c), low(c + 1));
    }
    for c in 78..93 {
        assert!((500.05..530.0).contains(&low(c)), "column {c}: {}", low(c));
    }
    assert_eq!(low(100), 500.0);
}

#[test]
fn the_usage_names_both_ways_to_say_how_fine() {
    let shop = Shop::new();
    let o = shop.refine(&["--help"]);
    let text = assert_succeeds(&o);
    assert!(text.contains("--factor <N>|--resolution <METRES>"), "{text}");
}

#[test]
fn seeds_change_detail_and_nothing_bound() {
    let shop = Shop::new();
    let m = Model::hills(12, 12);
    shop.model("c.tif", &m);
    assert_succeeds(&shop.refine(&["c.tif", "a.tif", "--factor", "8", "--seed", "1"]));
    assert_succeeds(&shop.refine(&["c.tif", "b.tif", "--factor", "8", "--seed", "2", "--threads", "1"]));
    assert_succeeds(&shop.refine(&["c.tif", "c2.tif", "--factor", "8", "--seed", "1", "--threads", "3"]));
    let bytes = |n: &str| std::fs::read(shop.path(n)).unwrap();
    assert!(bytes("a.tif") == bytes("c2.tif"));
    let (a, b) = (read(&shop.path("a.tif")), read(&shop.path("b.tif")));
    assert!(a.z.iter().zip(&b.z).filter(|(x, y)| x != y).count() > a.z.len() / 2);
    for row in 0..12 {
        for col in 0..12 {
            assert!((a.block_mean(8, col, row) - b.block_mean(8, col, row)).abs() < 1.0);
        }
    }
}

#[test]
fn geographic_models_are_refined_in_degrees_with_slopes_in_metres() {
    let shop = Shop::new();
    let m = Model { transform: [44.0, 0.01, 0.0, 42.0, 0.0, -0.01], epsg: 4326, ..Model::hills(10, 10) };
    shop.model("g.tif", &m);
    let text = assert_succeeds(&shop.refine(&["g.tif", "o.tif", "--factor", "5"]));
    // 0.002 degrees at 41.95 N: sqrt(165.9 x 222.1) m.
    assert!(text.contains("cells of 191.9 m") || text.contains("cells of 192.0 m"), "{text}");
    let fine = read(&shop.path("o.tif"));
    assert!((fine.transform[1] - 0.002).abs() < 1e-12 && fine.transform[0] == 44.0);
    assert_succeeds(&shop.refine(&["g.tif", "r.tif", "--resolution", "100"]));
}

#[test]
fn impossible_requests_are_told() {
    let shop = Shop::new();
    shop.model("c.tif", &Model::hills(10, 10));
    shop.model("bare.tif", &Model { epsg: 0, ..Model::hills(10, 10) });
    shop.model("high.tif", &Model::flat(1e6));
    shop.layer("empty.geojson", "");
    shop.layer(
        "none.geojson",
        r#"{"type":"Feature","properties":{},"geometry":{"type":"Point","coordinates":[504500,4595500]}}"#,
    );
    std::fs::write(shop.path("text.tif"), "hello").unwrap();
    let f = ["--factor", "4"];
    let with = |more: &[&str]| {
        let mut args = vec!["c.tif", "o.tif"];
        args.extend(f);
        args.extend(more);
        shop.refine(&args)
    };
    assert_fails(&shop.refine(&["gone.tif", "o.tif", "--factor", "4"]), 1, &["gone.tif"]);
    assert_fails(&shop.refine(&["text.tif", "o.tif", "--factor", "4"]), 1, &["text.tif"]);
    assert_fails(&shop.refine(&["bare.tif", "o.tif", "--factor", "4"]), 1, &["bare.tif", "--crs"]);
    assert_fails(&shop.refine(&["high.tif", "o.tif", "--factor", "4"]), 1, &["high.tif", "1000000"]);
    assert_fails(&shop.refine(&["c.tif", "o.tif"]), 2, &["--factor"]);
    assert_fails(&shop.refine(&["c.tif", "o.tif", "--factor", "0"]), 2, &["--factor"]);
    assert_fails(&shop.refine(&["c.tif", "o.tif", "--resolution", "-5"]), 2, &["--resolution"]);
    assert_fails(&shop.refine(&["c.tif", "o.tif", "--resolution", "5000"]), 2, &["--resolution", "900"]);
    assert_fails(&shop.refine(&["c.tif", "o.tif", "--resolution", "0.01"]), 1, &["memory"]);
    assert_fails(&with(&["--roughness", "-1"]), 2, &["--roughness"]);
    assert_fails(&with(&["--hurst", "9"]), 2, &["--hurst"]);
    assert_fails(&with(&["--peaks", "none.geojson"]), 1, &["none.geojson", "height_m"]);
    assert_fails(&with(&["--water", "empty.geojson"]), 1, &["empty.geojson"]);
    assert_fails(&with(&["--rivers", "none.geojson"]), 1, &["none.geojson", "lines"]);
    assert_fails(&with(&["--intervals", "none.geojson"]), 1, &["none.geojson", "low_m"]);
    assert_fails(&with(&["--roughness-from", "c.tif"]), 1, &["c.tif", "finer"]);
    assert_fails(&shop.refine(&["c.tif", "fine.png", "--factor", "4"]), 2, &["fine.png", ".tif"]);
    assert_fails(&shop.refine(&["c.tif", "fine", "--factor", "4"]), 2, &["fine", ".tif"]);
    assert!(!shop.path("fine.png").exists() && !shop.path("fine").exists());
    assert!(!shop.path("o.tif").exists());
    assert_succeeds(&with(&[]));
    let again = with(&[]);
    assert_fails(&again, 1, &["o.tif exists already", "--overwrite"]);
    assert!(!String::from_utf8_lossy(&again.stderr).contains("--out"));
    assert_succeeds(&with(&["--overwrite"]));
}

#[test]
fn roughness_is_learnt_from_a_sample() {
    let shop = Shop::new();
    shop.model("c.tif", &Model::hills(12, 12));
    // Two samples, 100 m cells: one smooth, one with 20 m of cell-to-cell noise.
    let sample = |noise: f64| {
        let (n, m) = (120usize, 120usize);
        let value = |k: usize| {
            let (x, y) = ((k % n) as f64 / 9.0, (k / n) as f64 / 9.0);
            let hash = ((k as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as f64 / f64::from(1u32 << 24) - 0.5;
            600.0 + 300.0 * (x * 0.7).sin() * (y * 0.5).cos() + noise * hash
        };
        Model {
            cols: n,
            rows: m,
            transform: [500_000.0, 100.0, 0.0, 4_600_000.0, 0.0, -100.0],
            values: (0..n * m).map(value).collect(),
            ..Model::hills(1, 1)
        }
    };
    shop.model("smooth.tif", &sample(0.0));
    shop.model("rough.tif", &sample(200.0));
    let slope = |from: &str| {
        assert_succeeds(&shop.refine(&["c.tif", "o.tif", "--factor", "8", "--roughness-from", from, "--overwrite"]));
        let fine = read(&shop.path("o.tif"));
        let steps: Vec<f64> = fine.z.windows(2).map(|w| (w[1] - w[0]).abs()).collect();
        steps.iter().sum::<f64>() / steps.len() as f64
    };
    let (smooth, rough) = (slope("smooth.tif"), slope("rough.tif"));
    assert!(rough > 1.5 * smooth, "{smooth} {rough}");
}
