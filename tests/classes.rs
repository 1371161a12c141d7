//! `histmap build --elevation-classes`: the real binary on tints and contour lines made here, judged by GDAL's own programs.

mod workshop;

use gdal::DriverManager;
use gdal::raster::Buffer;
use gdal::spatial_ref::SpatialRef;
use std::path::Path;
use std::process::Output;
use workshop::Shop;

const WEST: f64 = 42.6;
const NORTH: f64 = 42.8;
const COLS: usize = 300;
const ROWS: usize = 200;
const STEP_DEG: f64 = 0.01;
const LEVELS: [&str; 5] = ["200", "500", "1000", "1500", "2000"];

/// Three hills, a hollow and a plain that tilts: metres at a place in degrees.
fn height(lon: f64, lat: f64) -> f64 {
    let hill =
        |x: f64, y: f64, high: f64, wide: f64| high * (-((lon - x).powi(2) + (1.3 * (lat - y)).powi(2)) / wide).exp();
    let plain = 320.0 + 120.0 * (lon - 44.0) + 200.0 * (lat - 41.8) + 60.0 * (9.0 * lon).sin() * (8.0 * lat).cos();
    plain + hill(43.4, 42.1, 2300.0, 0.09) + hill(44.7, 41.6, 1100.0, 0.12) + hill(44.3, 42.25, 900.0, 0.03)
        - hill(44.1, 41.5, 500.0, 0.04)
}

/// The field as a raster, with `area.gpkg` and `lines.gpkg` of it; `false` where GDAL's programs are missing.
fn tints(shop: &Shop) -> bool {
    let driver = DriverManager::get_driver_by_name("GTiff").unwrap();
    let mut d = driver.create_with_band_type::<f64, _>(shop.path("field.tif"), COLS, ROWS, 1).unwrap();
    d.set_geo_transform(&[WEST, STEP_DEG, 0.0, NORTH, 0.0, -STEP_DEG]).unwrap();
    d.set_spatial_ref(&SpatialRef::from_epsg(4326).unwrap()).unwrap();
    let at = |k: usize| {
        let (c, r) = ((k % COLS) as f64 + 0.5, (k / COLS) as f64 + 0.5);
        height(WEST + c * STEP_DEG, NORTH - r * STEP_DEG)
    };
    let mut buffer = Buffer::new((COLS, ROWS), (0..COLS * ROWS).map(at).collect());
    d.rasterband(1).unwrap().write((0, 0), (COLS, ROWS), &mut buffer).unwrap();
    d.close().unwrap();
    let polygons = ["-q", "-p", "-amin", "low_m", "-amax", "high_m", "-fl"];
    let lines = ["-q", "-a", "ELEVATION", "-fl"];
    shop.gdal("gdal_contour", &[&polygons[..], &LEVELS, &["field.tif", "area.gpkg"]].concat())
        && shop.gdal("gdal_contour", &[&lines[..], &LEVELS, &["field.tif", "lines.gpkg"]].concat())
}

fn samples() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/samples").display().to_string()
}

fn build(shop: &Shop, out: &str, more: &[&str]) -> Output {
    let maps = samples();
    let first =
        ["build", "kartli", "--era", "100bc", "--maps", &maps, "--resolution", "500", "--map-px", "300", "--out", out];
    shop.run(&[&first, more].concat())
}

#[track_caller]
fn assert_succeeds(o: &Output) {
    assert!(o.status.success(), "exit {:?}: {}", o.status.code(), String::from_utf8_lossy(&o.stderr));
}

struct Cells {
    cols: usize,
    rows: usize,
    transform: [f64; 6],
    values: Vec<f64>,
}

fn read(path: &Path) -> Cells {
    let d = gdal::Dataset::open(path).unwrap();
    let (cols, rows) = d.raster_size();
    let values = d.rasterband(1).unwrap().read_as::<f64>((0, 0), (cols, rows), (cols, rows), None).unwrap();
    Cells { cols, rows, transform: d.geo_transform().unwrap(), values: values.data().to_vec() }
}

/// `field` of `file` on the cells of `like`, by GDAL's own rasterizer: NaN where no polygon is.
fn rasterized(shop: &Shop, file: &str, field: &str, like: &Cells) -> Vec<f64> {
    let t = like.transform;
    let number = |v: f64| format!("{v:.6}");
    let extent = [t[0], t[3] + t[5] * like.rows as f64, t[0] + t[1] * like.cols as f64, t[3]].map(number);
    let out = format!("{field}.tif");
    assert!(shop.gdal("ogr2ogr", &["-overwrite", "-t_srs", "EPSG:32638", "projected.gpkg", file]));
    let frame =
        ["-te", &extent[0], &extent[1], &extent[2], &extent[3], "-ts", &like.cols.to_string(), &like.rows.to_string()];
    let first = ["-q", "-a", field, "-ot", "Float64", "-init", "nan"];
    assert!(shop.gdal("gdal_rasterize", &[&first[..], &frame, &["projected.gpkg", &out]].concat()));
    read(&shop.path(&out)).values
}

/// Every land cell against the bounds as GDAL rasterizes them. Returns land cells, and those that lie on a bound.
#[track_caller]
fn assert_inside(shop: &Shop, out: &str, file: &str) -> (usize, usize) {
    let z = read(&shop.path(&format!("{out}/elevation.tif")));
    let water = read(&shop.path(&format!("{out}/water.tif"))).values;
    let (low, high) = (rasterized(shop, file, "low_m", &z), rasterized(shop, file, "high_m", &z));
    let (mut land, mut on_bound) = (0, 0);
    for i in 0..z.values.len() {
        // Rivers are land; lakes and seas have their level.
        if low[i].is_nan() || !(water[i] == 0.0 || water[i] == RIVER) {
            continue;
        }
        land += 1;
        assert!(
            low[i] <= z.values[i] && z.values[i] <= high[i],
            "{} m in {}..{} at cell {i}",
            z.values[i],
            low[i],
            high[i]
        );
        on_bound += usize::from(z.values[i] == low[i] || z.values[i] == high[i]);
    }
    assert!(land > 50_000, "{land}");
    (land, on_bound)
}

/// Code of rivers in water.tif.
const RIVER: f64 = 3.0;

/// Share of land cells that are as high as all eight around.
fn flat_share(z: &Cells, water: &[f64]) -> f64 {
    let at = |c: usize, r: usize| z.values[r * z.cols + c];
    let inner = (1..z.rows - 1).flat_map(|r| (1..z.cols - 1).map(move |c| (c, r)));
    let is_flat = |(c, r): (usize, usize)| (r - 1..=r + 1).all(|y| (c - 1..=c + 1).all(|x| at(x, y) == at(c, r)));
    let land: Vec<_> = inner.filter(|(c, r)| [0.0, RIVER].contains(&water[r * z.cols + c])).collect();
    land.iter().filter(|p| is_flat(**p)).count() as f64 / land.len() as f64
}

#[test]
fn tints_alone_make_a_relief_that_keeps_every_one_of_them() {
    let shop = Shop::new();
    if !tints(&shop) {
        return;
    }
    let o = build(&shop, "out", &["--dem", "none", "--elevation-classes", "area.gpkg"]);
    assert_succeeds(&o);
    let (land, on_bound) = assert_inside(&shop, "out", "area.gpkg");
    let z = read(&shop.path("out/elevation.tif"));
    let water = read(&shop.path("out/water.tif")).values;
    assert!((on_bound as f64) < 0.01 * land as f64, "{on_bound} of {land} cells on a bound");
    assert!(flat_share(&z, &water) < 0.01, "{}", flat_share(&z, &water));
    // And it is the ground that the tints were made of: better than the middle of each class.
    let (low, high) = (rasterized(&shop, "area.gpkg", "low_m", &z), rasterized(&shop, "area.gpkg", "high_m", &z));
    let truth = truth_on(&shop, &z);
    let squares = |of: &dyn Fn(usize) -> f64| {
        let known: Vec<usize> = (0..truth.len()).filter(|&i| truth[i].is_finite() && low[i].is_finite()).collect();
        (known.iter().map(|&i| (of(i) - truth[i]).powi(2)).sum::<f64>() / known.len() as f64).sqrt()
    };
    let (made, middle) = (squares(&|i| z.values[i]), squares(&|i| 0.5 * (low[i] + high[i])));
    assert!(made < 0.55 * middle, "RMS {made:.1} m against {middle:.1} m of the middles");
    let manifest = std::fs::read_to_string(shop.path("out/manifest.json")).unwrap();
    assert!(manifest.contains("area.gpkg") && !manifest.contains("shipped:data/land.tif"));
}

/// The field at the centres of the cells of `like`.
fn truth_on(shop: &Shop, like: &Cells) -> Vec<f64> {
    let t = like.transform;
    let number = |v: f64| format!("{v:.6}");
    let extent = [t[0], t[3] + t[5] * like.rows as f64, t[0] + t[1] * like.cols as f64, t[3]].map(number);
    let size = [like.cols.to_string(), like.rows.to_string()];
    let frame = ["-te", &extent[0], &extent[1], &extent[2], &extent[3], "-ts", &size[0], &size[1]];
    let first = ["-q", "-t_srs", "EPSG:32638", "-r", "bilinear", "-dstnodata", "nan"];
    assert!(shop.gdal("gdalwarp", &[&first[..], &frame, &["field.tif", "truth.tif"]].concat()));
    read(&shop.path("truth.tif")).values
}

#[test]
fn a_model_is_drawn_into_the_classes_and_what_contradicts_is_told() {
    let shop = Shop::new();
    if !tints(&shop) {
        return;
    }
    assert_succeeds(&build(&shop, "out", &["--elevation-classes", "area.gpkg"]));
    assert_inside(&shop, "out", "area.gpkg");
    // The shipped ground has no such hills: each class says where it differs and on how much.
    let manifest = std::fs::read_to_string(shop.path("out/manifest.json")).unwrap();
    assert!(manifest.contains("class 1000 to 1500 m: the elevation lies more than 125 m outside it on"), "{manifest}");
    // A part is the crop of the whole.
    assert_succeeds(&build(&shop, "part", &["--elevation-classes", "area.gpkg", "--bbox", "43.9,41.4,44.6,41.9"]));
    let (whole, part) = (read(&shop.path("out/elevation.tif")), read(&shop.path("part/elevation.tif")));
    let shift = |k: usize| ((part.transform[k] - whole.transform[k]) / whole.transform[1]).abs().round() as usize;
    let (c0, r0) = (shift(0), shift(3));
    for r in 0..part.rows {
        for c in 0..part.cols {
            let (a, b) = (part.values[r * part.cols + c], whole.values[(r + r0) * whole.cols + c + c0]);
            assert_eq!(a, b, "column {c}, row {r}");
        }
    }
}

#[test]
fn contour_lines_do_the_same() {
    let shop = Shop::new();
    if !tints(&shop) {
        return;
    }
    assert_succeeds(&build(&shop, "out", &["--dem", "none", "--elevation-classes", "lines.gpkg"]));
    let z = read(&shop.path("out/elevation.tif"));
    let water = read(&shop.path("out/water.tif")).values;
    // Where nothing but the sea's level is known, low coast lies at the least height of land: 1.7 % of it.
    assert!(flat_share(&z, &water) < 0.025, "{}", flat_share(&z, &water));
    // Far from lines (a quarter of the way into a class) no cell may be on the wrong side of one.
    let truth = truth_on(&shop, &z);
    let levels = LEVELS.map(|l| l.parse::<f64>().unwrap());
    let class = |v: f64| levels.iter().filter(|l| **l <= v).count();
    let (mut wrong, mut all) = (0, 0);
    for (v, t) in z.values.iter().zip(&truth).filter(|(_, t)| t.is_finite()) {
        if levels.iter().all(|l| (t - l).abs() > 60.0) && *t > 200.0 {
            all += 1;
            wrong += usize::from(class(*v) != class(*t));
        }
    }
    assert!(all > 10_000 && (wrong as f64) < 0.01 * all as f64, "{wrong} of {all}");
    // Another name of the field has to be told.
    assert!(
        shop.gdal("ogr2ogr", &["-sql", "SELECT ELEVATION AS hoehe, geom FROM contour", "named.gpkg", "lines.gpkg"])
    );
    let o = build(&shop, "named", &["--dem", "none", "--elevation-classes", "named.gpkg"]);
    assert_eq!(o.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&o.stderr).contains("--elevation-field"));
    assert!(!shop.path("named").exists());
    let more = ["--dem", "none", "--elevation-classes", "named.gpkg", "--elevation-field", "hoehe"];
    assert_succeeds(&build(&shop, "named", &more));
    assert_eq!(z.values, read(&shop.path("named/elevation.tif")).values);
}

/// A picture of the field in tints, in longitude and latitude, as a printed map would show it; registered; its classes as
/// polygons; and built.
#[test]
fn from_a_tinted_picture_to_relief() {
    const TINTS: [[u8; 3]; 6] =
        [[120, 170, 110], [180, 205, 140], [235, 225, 160], [215, 180, 110], [180, 130, 80], [140, 95, 60]];
    let shop = Shop::new();
    let (width, height_px) = (600u32, 400u32);
    let levels = LEVELS.map(|l| l.parse::<f64>().unwrap());
    let picture = image::RgbImage::from_fn(width, height_px, |x, y| {
        let lon = WEST + (f64::from(x) + 0.5) * 0.005;
        let lat = NORTH - (f64::from(y) + 0.5) * 0.005;
        image::Rgb(TINTS[levels.iter().filter(|l| **l <= height(lon, lat)).count()])
    });
    picture.save(shop.path("tints.png")).unwrap();
    let points: String = [(0, 0), (600, 0), (0, 400), (600, 400), (300, 200), (100, 300)]
        .map(|(c, l)| format!("{c} {l} {} {}\n", WEST + f64::from(c) * 0.005, NORTH - f64::from(l) * 0.005))
        .concat();
    shop.write("tints.txt", points);
    let o = shop.run(&["georef", "tints.png", "--gcps", "tints.txt", "--transform", "affine", "-o", "tints.tif"]);
    assert_succeeds(&o);
    // Runs of one tint along each row, in the registered picture's own frame.
    let d = gdal::Dataset::open(shop.path("tints.tif")).unwrap();
    let (cols, rows) = d.raster_size();
    let t = d.geo_transform().unwrap();
    let bands: Vec<Vec<u8>> = (1..=3)
        .map(|b| {
            d.rasterband(b).unwrap().read_as::<u8>((0, 0), (cols, rows), (cols, rows), None).unwrap().data().to_vec()
        })
        .collect();
    let tint = |i: usize| TINTS.iter().position(|t| (0..3).all(|b| bands[b][i] == t[b]));
    let mut parts: [Vec<String>; 6] = Default::default();
    for r in 0..rows {
        let mut c = 0;
        while c < cols {
            let Some(k) = tint(r * cols + c) else {
                c += 1;
                continue;
            };
            let first = c;
            while c < cols && tint(r * cols + c) == Some(k) {
                c += 1;
            }
            let (w, e) = (t[0] + first as f64 * t[1], t[0] + c as f64 * t[1]);
            let (n, s) = (t[3] + r as f64 * t[5], t[3] + (r + 1) as f64 * t[5]);
            parts[k].push(format!("[[[{w},{s}],[{e},{s}],[{e},{n}],[{w},{n}],[{w},{s}]]]"));
        }
    }
    let bounds = |k: usize| {
        let low = if k == 0 { String::new() } else { format!(r#""low_m":{}"#, LEVELS[k - 1]) };
        let high = if k == 5 { String::new() } else { format!(r#""high_m":{}"#, LEVELS[k]) };
        [low, high].into_iter().filter(|t| !t.is_empty()).collect::<Vec<_>>().join(",")
    };
    let features: Vec<String> = (0..6)
        .map(|k| {
            let polygons = parts[k].join(",");
            format!(
                r#"{{"type":"Feature","properties":{{"kind":"elevation",{}}},
                    "geometry":{{"type":"MultiPolygon","coordinates":[{polygons}]}}}}"#,
                bounds(k)
            )
        })
        .collect();
    shop.write("tints.geojson", format!(r#"{{"type":"FeatureCollection","features":[{}]}}"#, features.join(",")));
    assert_succeeds(&build(&shop, "out", &["--dem", "none", "--elevation-classes", "tints.geojson"]));
    let z = read(&shop.path("out/elevation.tif"));
    let water = read(&shop.path("out/water.tif")).values;
    // The tint under every cell, straight from the field.
    let to_lonlat = gdal::spatial_ref::CoordTransform::new(&SpatialRef::from_epsg(32638).unwrap(), &xy(4326)).unwrap();
    let (mut all, mut wrong, mut squares) = (0, 0, 0.0);
    for i in (0..z.values.len()).filter(|&i| water[i] == 0.0 || water[i] == RIVER) {
        let (c, r) = ((i % z.cols) as f64 + 0.5, (i / z.cols) as f64 + 0.5);
        let (mut x, mut y) = ([z.transform[0] + c * z.transform[1]], [z.transform[3] + r * z.transform[5]]);
        to_lonlat.transform_coords(&mut x, &mut y, &mut []).unwrap();
        let truth = height(x[0], y[0]);
        let class = |v: f64| levels.iter().filter(|l| **l <= v).count();
        all += 1;
        squares += (z.values[i] - truth).powi(2);
        // Half a cell of the picture and half a cell of the map at a border.
        wrong += usize::from(class(z.values[i]) != class(truth) && levels.iter().all(|l| (truth - l).abs() > 30.0));
    }
    // The ground crosses some borders of the picture by a cell where it is steep.
    assert!(all > 50_000 && wrong * 5000 < all, "{wrong} of {all}");
    let rms = (squares / all as f64).sqrt();
    assert!(rms < 100.0, "RMS {rms:.1} m");
    // Again the low coast.
    assert!(flat_share(&z, &water) < 0.025, "{}", flat_share(&z, &water));
}

fn xy(epsg: u32) -> SpatialRef {
    let mut srs = SpatialRef::from_epsg(epsg).unwrap();
    srs.set_axis_mapping_strategy(gdal::spatial_ref::AxisMappingStrategy::TraditionalGisOrder);
    srs
}

fn square(west: f64, south: f64, side: f64, properties: &str) -> String {
    let (east, north) = (west + side, south + side);
    format!(
        r#"{{"type":"Feature","properties":{{{properties}}},"geometry":{{"type":"Polygon","coordinates":
            [[[{west},{south}],[{east},{south}],[{east},{north}],[{west},{north}],[{west},{south}]]]}}}}"#
    )
}

#[test]
fn contradictions_have_their_place_and_size() {
    let shop = Shop::new();
    for file in ["region.toml", "polities.geojson"] {
        shop.write(
            &format!("packs/own/{file}"),
            std::fs::read(Path::new(&samples()).join("kartli").join(file)).unwrap(),
        );
    }
    let text = std::fs::read_to_string(shop.path("packs/own/region.toml")).unwrap();
    let text = text
        .replace("name = \"kartli\" ", "name = \"own\" ")
        .replace("[layers]\n", "[layers]\npeaks = [\"peaks.geojson\"]\n");
    shop.write("packs/own/region.toml", text);
    let peak = |name: &str, lon: f64, lat: f64, z: f64| {
        format!(
            r#"{{"type":"Feature","properties":{{"name":"{name}","height_m":{z},"prominence_rank":1}},
                "geometry":{{"type":"Point","coordinates":[{lon},{lat}]}}}}"#
        )
    };
    let peaks = [peak("High One", 43.7, 41.7, 900.0), peak("Odd One", 43.8, 41.8, 1450.0)].join(",");
    shop.write("packs/own/peaks.geojson", format!(r#"{{"type":"FeatureCollection","features":[{peaks}]}}"#));
    let squares = [
        square(43.4, 41.4, 0.7, r#""low_m":500,"high_m":1000"#),
        square(44.0, 41.4, 0.3, r#""low_m":1200,"high_m":1600"#),
        square(44.5, 41.5, 0.3, r#""note":"nothing""#),
    ];
    shop.write("c.geojson", format!(r#"{{"type":"FeatureCollection","features":[{}]}}"#, squares.join(",")));
    let run = |out: &str, file: &str| {
        let rest = ["--resolution", "500", "--map-px", "300", "--out", out, "--elevation-classes", file, "--json"];
        shop.run(&[&["build", "own", "--era", "100bc", "--maps", "packs"], &rest[..]].concat())
    };
    let o = run("out", "c.geojson");
    assert_succeeds(&o);
    let said = String::from_utf8_lossy(&o.stdout).into_owned();
    for words in [
        "peak Odd One, 1450 m, near 43.799 E",
        "450 m outside its class 500 to 1000 m; the point stands",
        "the classes 500 to 1000 m and 1200 to 1600 m overlap on",
        "the higher stands there",
        "1 of 3 features have no bounds or height and are left out",
    ] {
        assert!(said.contains(words), "no '{words}' in {said}");
    }
    assert!(!said.contains("peak High One, 900 m"), "{said}");
    // 0.1 degrees by 0.3 degrees: 8.3 km by 33.3 km.
    let km2: f64 = said.split("overlap on ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!((km2 - 278.0).abs() < 10.0, "{km2}");

    for (text, words) in [
        (square(43.4, 41.4, 0.7, r#""low_m":1000,"high_m":500"#), "low_m below high_m"),
        (square(43.4, 41.4, 0.7, r#""name":"x""#), "--elevation-field"),
        (square(13.4, 41.4, 0.7, r#""low_m":0,"high_m":500"#), "lies on the map"),
    ] {
        shop.write("bad.geojson", format!(r#"{{"type":"FeatureCollection","features":[{text}]}}"#));
        let o = run("bad", "bad.geojson");
        let said = String::from_utf8_lossy(&o.stderr).into_owned();
        assert_eq!(o.status.code(), Some(1), "{said}");
        assert!(said.contains(words) && said.contains("bad.geojson"), "{said}");
        assert!(!shop.path("bad").exists());
    }
    let maps = samples();
    let o = shop.run(&["build", "kartli", "--era", "100bc", "--maps", &maps, "--dem", "none", "--out", "bad"]);
    assert_eq!(o.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&o.stderr).contains("--elevation-classes"));
}
