//! The real binary in a temporary folder: files, output, exit codes, and nothing half-written.

use std::path::Path;
use std::process::{Command, Output};

mod workshop;
use workshop::{BOX, Shop, assert_fails, assert_succeeds, stderr, stdout};

/// A build of the small box into `out`, with further arguments.
fn build(shop: &Shop, out: &str, more: &[&str]) -> Output {
    let mut args =
        vec!["build", "--region", "caucasus", "--era", "1200", "--bbox", BOX, "--resolution", "500", "--map-px", "600"];
    args.extend(["--out", out]);
    args.extend(more);
    shop.run(&args)
}

/// Writes a file and gives its name back.
fn put<'a>(shop: &Shop, name: &'a str, bytes: impl AsRef<[u8]>) -> &'a str {
    shop.write(name, bytes);
    name
}

fn oracle(program: &str, args: &[&str]) -> Option<String> {
    match Command::new(program).args(args).output() {
        Ok(o) if o.status.success() => Some(String::from_utf8_lossy(&o.stdout).into_owned()),
        Ok(o) => panic!("{program} {args:?}: {}", String::from_utf8_lossy(&o.stderr)),
        Err(_) => {
            println!("skipped: {program} is not installed");
            None
        }
    }
}

fn files_of(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.file_name().unwrap() != "manifest.json")
        .map(|p| (p.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&p).unwrap()))
        .collect();
    files.sort();
    files
}

fn manifest_of(dir: &Path) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(dir.join("manifest.json")).unwrap()).unwrap()
}

/// Size and values of one band, read by the GDAL library itself.
fn band(path: &Path, index: usize) -> (usize, usize, Vec<f64>) {
    let dataset = gdal::Dataset::open(path).unwrap();
    let (w, h) = dataset.raster_size();
    let b = dataset.rasterband(index).unwrap();
    (w, h, b.read_as::<f64>((0, 0), (w, h), (w, h), None).unwrap().data().to_vec())
}

#[test]
fn a_build_writes_every_file_and_verify_agrees() {
    let shop = Shop::new();
    assert_succeeds(&build(&shop, "map", &[]));
    for name in
        ["elevation.tif", "hillshade.tif", "regions.tif", "water.tif", "regions.gpkg", "map.png", "manifest.json"]
    {
        assert!(shop.path("map").join(name).is_file(), "{name}");
    }
    assert_eq!(shop.listing(), ["map"]);
    let verified = shop.run(&["verify", "map"]);
    assert_succeeds(&verified);
    assert!(stdout(&verified).contains("agree"));

    let m = manifest_of(&shop.path("map"));
    assert_eq!(m["era"]["read_as"], "1200 CE (astronomical 1200)");
    assert_eq!(m["crs"], "EPSG:32638");
    assert!(m["block_means"]["free_rms_m"].as_f64().unwrap() < 1.0);
    assert!(!m["sources"].as_array().unwrap().is_empty());

    // A changed byte, a missing file and a stranger are all told.
    let tif = shop.path("map/water.tif");
    let mut bytes = std::fs::read(&tif).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&tif, bytes).unwrap();
    std::fs::remove_file(shop.path("map/map.png")).unwrap();
    shop.write("map/extra.txt", "x");
    assert_fails(
        &shop.run(&["verify", "map"]),
        1,
        &["3 files differ from the manifest", "water.tif: contents differ", "map.png: missing", "extra.txt: not in"],
    );
}

#[test]
fn rasters_are_cogs_with_crs_nodata_and_overviews() {
    let shop = Shop::new();
    // 150 m, so that overviews are needed.
    let args = [
        "build",
        "--region",
        "caucasus",
        "--era",
        "1200",
        "--map-px",
        "600",
        "--bbox",
        BOX,
        "--resolution",
        "150",
        "--out",
        "map",
    ];
    assert_succeeds(&shop.run(&args));
    for name in ["elevation.tif", "hillshade.tif", "regions.tif", "water.tif"] {
        let path = shop.path("map").join(name);
        let Some(text) = oracle("gdalinfo", &[path.to_str().unwrap()]) else { return };
        for word in ["LAYOUT=COG", "WGS 84 / UTM zone 38N", "NoData Value=", "Overviews: ", "AREA_OR_POINT=Area"] {
            assert!(text.contains(word), "{name}: no {word} in\n{text}");
        }
    }
}

#[test]
fn regions_carry_names_colours_and_attributes() {
    let shop = Shop::new();
    assert_succeeds(&build(&shop, "map", &[]));
    let path = shop.path("map/regions.tif");
    let Some(text) = oracle("gdalinfo", &[path.to_str().unwrap()]) else { return };
    for word in ["Kingdom of Georgia", "Color Table", "GDALRasterAttributeTable", "name_ru", "contested by"] {
        assert!(text.contains(word), "no {word} in\n{text}");
    }
    let gpkg = shop.path("map/regions.gpkg");
    let Some(text) = oracle("ogrinfo", &["-so", gpkg.to_str().unwrap(), "polities"]) else { return };
    assert!(text.contains("Geometry: Multi Polygon") && text.contains("area_km2"), "{text}");
    for layer in ["borders", "places", "rivers", "peaks", "contours", "water", "layer_styles"] {
        let text = oracle("ogrinfo", &["-so", gpkg.to_str().unwrap(), layer]).unwrap();
        assert!(text.contains("Feature Count"), "{layer}: {text}");
    }
}

#[test]
fn runs_threads_and_seeds() {
    let shop = Shop::new();
    assert_succeeds(&build(&shop, "a", &["--threads", "1"]));
    let a = files_of(&shop.path("a"));
    for (out, threads) in [("b", "1"), ("c", "2"), ("d", "8")] {
        assert_succeeds(&build(&shop, out, &["--threads", threads]));
        for ((name, x), (_, y)) in a.iter().zip(files_of(&shop.path(out))) {
            assert!(*x == y, "{name} differs with {threads} threads");
        }
    }
    // Another seed changes relief in detail, and nothing else.
    assert_succeeds(&build(&shop, "s", &["--seed", "2"]));
    let (_, _, e1) = band(&shop.path("a/elevation.tif"), 1);
    let (_, _, e2) = band(&shop.path("s/elevation.tif"), 1);
    assert!(e1.iter().zip(&e2).any(|(a, b)| a != b));
    let rms = (e1.iter().zip(&e2).map(|(a, b)| (a - b) * (a - b)).sum::<f64>() / e1.len() as f64).sqrt();
    assert!(rms < 120.0, "{rms}");
    for name in ["water.tif", "regions.tif"] {
        assert_eq!(band(&shop.path("a").join(name), 1), band(&shop.path("s").join(name), 1), "{name}");
    }
}

#[test]
fn a_box_equals_the_crop_of_a_larger_one_cell_for_cell() {
    let shop = Shop::new();
    let run = |out: &str, bounds: &str| {
        assert_succeeds(&shop.run(&[
            "build",
            "--region",
            "caucasus",
            "--era",
            "1200",
            "--map-px",
            "600",
            "--resolution",
            "500",
            "--bbox",
            bounds,
            "--out",
            out,
        ]));
    };
    // A coast, a lake, a summit (Aragats) and contested land are in the larger one; the smaller cuts through all.
    run("large", "43.4,40.0,45.6,42.3");
    run("small", "44.1,40.4,45.1,41.6");
    for name in ["elevation.tif", "hillshade.tif", "regions.tif", "water.tif"] {
        let (large, small) = (shop.path("large").join(name), shop.path("small").join(name));
        let at = |p: &Path| gdal::Dataset::open(p).unwrap().geo_transform().unwrap();
        let (g, h) = (at(&large), at(&small));
        let (dc, dr) = (((h[0] - g[0]) / 500.0) as usize, ((g[3] - h[3]) / 500.0) as usize);
        for b in 1..=gdal::Dataset::open(&large).unwrap().raster_count() {
            let (w, _, x) = band(&large, b);
            let (w2, h2, y) = band(&small, b);
            for r in 0..h2 {
                for c in 0..w2 {
                    assert_eq!(x[(r + dr) * w + c + dc], y[r * w2 + c], "{name} band {b} at {c},{r}");
                }
            }
        }
    }
}

#[test]
fn summits_stand_at_their_surveyed_height_in_their_own_cell() {
    let shop = Shop::new();
    for (lon, lat, height, bounds) in [
        (42.4392, 43.3550, 5642.0, "42.2,43.2,42.7,43.5"),
        (44.5189, 42.6986, 5054.0, "44.3,42.6,44.7,42.8"),
        (44.2983, 39.7019, 5137.0, "44.1,39.6,44.5,39.8"),
    ] {
        assert_succeeds(&shop.run(&[
            "build",
            "--region",
            "caucasus",
            "--era",
            "1200",
            "--map-px",
            "600",
            "--bbox",
            bounds,
            "--out",
            "peak",
            "--overwrite",
        ]));
        // gdallocationinfo -valonly -wgs84 elevation.tif LON LAT
        let path = shop.path("peak/elevation.tif");
        let args = ["-valonly", "-wgs84", path.to_str().unwrap(), &lon.to_string(), &lat.to_string()];
        let Some(text) = oracle("gdallocationinfo", &args) else { return };
        let found: f64 = text.trim().parse().unwrap();
        assert_eq!(found, height);
        let (_, _, z) = band(&path, 1);
        assert_eq!(z.iter().copied().fold(f64::MIN, f64::max), height);
    }
}

#[test]
fn water_lies_at_or_below_its_level_and_land_above_it() {
    let shop = Shop::new();
    // The Absheron coast: the Caspian at -28 m beside land below zero.
    let args = [
        "build",
        "--region",
        "caucasus",
        "--era",
        "1200",
        "--map-px",
        "600",
        "--bbox",
        "48.6,39.6,50.4,41.0",
        "--resolution",
        "500",
        "--out",
        "map",
    ];
    assert_succeeds(&shop.run(&args));
    let (_, _, z) = band(&shop.path("map/elevation.tif"), 1);
    let (_, _, w) = band(&shop.path("map/water.tif"), 1);
    let (mut sea, mut low_land) = (0, 0);
    for (z, w) in z.iter().zip(&w) {
        match *w as u8 {
            1 => {
                sea += 1;
                assert!(*z < -28.0, "sea at {z}");
            }
            0 | 3 => {
                assert!(*z > -28.0, "land at {z}");
                low_land += usize::from(*z < 0.0);
            }
            _ => {}
        }
    }
    assert!(sea > 1000 && low_land > 1000, "{sea} {low_land}");
}

#[test]
fn years_are_read_as_stated() {
    let shop = Shop::new();
    assert_fails(&shop.run(&["build", "--region", "caucasus", "--era", "0"]), 2, &["1 BCE", "1 CE"]);
    for (given, words) in [("-300", "300 BCE"), ("300bc", "300 BCE"), ("300 BCE", "300 BCE"), ("1992", "1992 CE")] {
        let o = shop.run(&["build", "--region", "caucasus", "--era", given]);
        assert_fails(&o, 1, &["no claims for", words, "100 BCE"]);
    }
    assert_fails(&shop.run(&["build", "--region", "caucasus", "--era", "twelve"]), 2, &["twelve"]);
    assert_fails(&shop.run(&["build", "--region", "caucasus", "--era", "1210/1200"]), 2, &["1210"]);
    assert!(shop.listing().is_empty());
}

#[test]
fn wrong_arguments_are_told_in_one_sentence() {
    let shop = Shop::new();
    let build = |more: &[&str]| {
        let mut args = vec!["build", "--region", "caucasus", "--era", "1200"];
        args.extend(more);
        shop.run(&args)
    };
    assert_fails(
        &shop.run(&["build", "--region", "caucasas", "--era", "1200"]),
        1,
        &["caucasas", "did you mean", "caucasus"],
    );
    assert_fails(&build(&["--resolution", "0"]), 2, &["--resolution", "0"]);
    assert_fails(&build(&["--resolution", "-250"]), 2, &["--resolution", "-250"]);
    assert_fails(&build(&["--resolution", "nan"]), 2, &["--resolution"]);
    assert_fails(&build(&["--resolution", "250m"]), 2, &["250m", "--resolution", "metres", "without a unit"]);
    assert_fails(&build(&["--resolution", "500000"]), 2, &["--resolution: 500000 m makes", "give at most", "250"]);
    assert_fails(&build(&["--seed", "-1"]), 2, &["-1", "--seed", "whole number from 0"]);
    assert_fails(&build(&["--map-px", "-1"]), 2, &["-1", "--map-px", "whole number"]);
    assert_fails(&build(&["--resolution", "1"]), 1, &["memory", "--resolution"]);
    assert_fails(&build(&["--bbox", "44,42,45,41"]), 2, &["upside down"]);
    assert_fails(&build(&["--bbox", "45,41,44,42"]), 2, &["reversed"]);
    let words = ["10,41,12,42 reaches outside the region", "west,south,east,north = 38,37.9,50.6,46.4"];
    assert_fails(&build(&["--bbox", "10,41,12,42"]), 2, &words);
    assert_fails(&build(&["--bbox", "44,41,45"]), 2, &["four numbers"]);
    assert_fails(&build(&["--crs", "EPSG:4326"]), 2, &["geographic", "metres"]);
    assert_fails(&build(&["--crs", "EPSG:99999999"]), 2, &["--crs"]);
    assert_fails(&build(&["--crs", "32638"]), 2, &["--crs: '32638'", "did you mean EPSG:32638?"]);
    // UTM zones of the other side of the world.
    for far in ["EPSG:32601", "EPSG:32618"] {
        let o = build(&["--crs", far]);
        assert_fails(&o, 2, &["--crs: ", far, "does not suit the region 'caucasus'", "EPSG:32638"]);
        assert!(!stderr(&o).contains("--dem"), "{}", stderr(&o));
    }
    // One that turns the region so far that its rectangle leaves the elevation data.
    let o = build(&["--crs", "EPSG:3035", "--resolution", "20000"]);
    assert_fails(&o, 2, &["--crs: in EPSG:3035", "beyond the elevation data", "central meridian is near 44 E"]);
    assert_fails(&build(&["--threads", "0"]), 2, &["--threads"]);
    assert_fails(&build(&["--map-px", "7"]), 2, &["--map-px"]);
    assert_fails(&build(&["--nonsense"]), 2, &["--nonsense"]);
    assert!(shop.listing().is_empty(), "{:?}", shop.listing());
}

#[test]
fn bad_elevation_files_are_refused() {
    let shop = Shop::new();
    let empty = put(&shop, "empty.tif", "");
    let garbage = put(&shop, "garbage.tif", "not a raster at all");
    assert_fails(&build(&shop, "o", &["--dem", "missing.tif"]), 1, &["missing.tif"]);
    assert_fails(&build(&shop, "o", &["--dem", empty]), 1, &["empty.tif"]);
    assert_fails(&build(&shop, "o", &["--dem", garbage]), 1, &["garbage.tif"]);
    assert_succeeds(&build(&shop, "good", &[]));
    let whole = std::fs::read(shop.path("good/elevation.tif")).unwrap();
    let cut = put(&shop, "cut.tif", &whole[..whole.len() / 2]);
    assert_fails(&build(&shop, "o", &["--dem", cut]), 1, &["cut.tif"]);
    // A raster without a CRS asks for one.
    let gray: Vec<u8> = std::iter::repeat_n(100u8, 20 * 20).collect();
    let header = b"ncols 20\nnrows 20\nxllcorner 43\nyllcorner 41\ncellsize 0.1\n";
    let mut grid = header.to_vec();
    for row in gray.chunks(20) {
        grid.extend(row.iter().map(u8::to_string).collect::<Vec<_>>().join(" ").bytes());
        grid.push(b'\n');
    }
    let plain = put(&shop, "plain.asc", &grid);
    assert_fails(
        &build(&shop, "o", &["--dem", plain]),
        1,
        &["plain.asc", "no coordinate reference system", "--dem-crs"],
    );
    // With one it is used: flat ground stays flat.
    let o = shop.run(&[
        "build",
        "--region",
        "caucasus",
        "--era",
        "1200",
        "--map-px",
        "600",
        "--bbox",
        "44.2,41.6,44.5,41.8",
        "--resolution",
        "500",
        "--out",
        "flat",
        "--dem",
        plain,
        "--dem-crs",
        "EPSG:4326",
    ]);
    assert_succeeds(&o);
    // One that ends inside the map is refused.
    let o = build(&shop, "o", &["--dem", plain, "--dem-crs", "EPSG:4326", "--bbox", "43.9,40.2,45.3,42.2"]);
    assert_fails(&o, 2, &["--bbox"]);
    assert!(!shop.path("o").exists());
    assert!(shop.listing().iter().all(|n| !n.starts_with(".histmap")), "{:?}", shop.listing());
}

#[test]
fn bad_border_files_are_refused_and_good_ones_used() {
    let shop = Shop::new();
    let empty = put(&shop, "empty.geojson", "");
    let cut = put(&shop, "cut.geojson", r#"{"type":"FeatureCollection","features":[{"type":"Feature","prop"#);
    let nameless = put(
        &shop,
        "nameless.geojson",
        r#"{"type":"FeatureCollection","features":[{"type":"Feature","properties":{"zzz":1},
        "geometry":{"type":"Polygon","coordinates":[[[44,41],[45,41],[45,42],[44,42],[44,41]]]}}]}"#,
    );
    assert_fails(&build(&shop, "o", &["--borders", "missing.geojson"]), 1, &["missing.geojson"]);
    assert_fails(&build(&shop, "o", &["--borders", empty]), 1, &["empty.geojson"]);
    assert_fails(&build(&shop, "o", &["--borders", cut]), 1, &["cut.geojson"]);
    assert_fails(&build(&shop, "o", &["--borders", nameless]), 1, &["nameless.geojson", "zzz"]);
    let good = put(
        &shop,
        "good.geojson",
        r#"{"type":"FeatureCollection","features":[{"type":"Feature","properties":{"id":"x","name":"Testland",
        "from_year":1100,"to_year":1300,"kind":"polity","certainty":"conjectural","source":["own notes"]},
        "geometry":{"type":"Polygon","coordinates":[[[44.2,41.4],[44.9,41.4],[44.9,41.9],[44.2,41.9],[44.2,41.4]]]}}]}"#,
    );
    assert_succeeds(&build(&shop, "map", &["--borders", good]));
    let m = manifest_of(&shop.path("map"));
    assert!(m["polities"].as_array().unwrap().iter().any(|p| p["name"] == "Testland"));
    assert!(m["inputs"].as_array().unwrap().iter().any(|f| f["path"] == "good.geojson"));
    assert!(!shop.path("o").exists());
}

#[test]
fn an_output_folder_is_replaced_only_when_told_and_only_if_ours() {
    let shop = Shop::new();
    assert_succeeds(&build(&shop, "map", &[]));
    let before = files_of(&shop.path("map"));
    assert_fails(&build(&shop, "map", &[]), 1, &["map exists already", "--overwrite"]);
    assert_succeeds(&build(&shop, "map", &["--overwrite", "--seed", "3"]));
    assert!(files_of(&shop.path("map")) != before);
    shop.write("mine/thesis.txt", "years of work");
    assert_fails(&build(&shop, "mine", &["--overwrite"]), 2, &["mine", "not made by histmap"]);
    assert_eq!(std::fs::read_to_string(shop.path("mine/thesis.txt")).unwrap(), "years of work");
    assert_eq!(shop.listing(), ["map", "mine"]);
}

#[test]
fn a_place_that_cannot_be_written_is_told() {
    let shop = Shop::new();
    // A file where a folder is needed fails for root too.
    shop.write("file", "x");
    assert_fails(&build(&shop, "file/map", &[]), 1, &["cannot write", "file"]);
    assert_eq!(shop.listing(), ["file"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told_and_leaves_nothing() {
    let shop = Shop::new();
    std::fs::create_dir(shop.path("disk")).unwrap();
    let disk = shop.path("disk");
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=300k", "tmpfs", disk.to_str().unwrap()])
        .output()
        .is_ok_and(|o| o.status.success());
    if !mounted {
        println!("skipped: mounting a small disk needs root");
        return;
    }
    let o = build(&shop, "disk/map", &[]);
    let left = std::fs::read_dir(&disk).unwrap().count();
    let _ = Command::new("umount").arg(&disk).status();
    assert_fails(&o, 1, &["disk"]);
    assert_eq!(left, 0);
}

#[test]
fn a_failed_build_leaves_no_folder_that_it_made() {
    let shop = Shop::new();
    // The folders above the output are made before the elevation is read.
    assert_fails(&build(&shop, "a/b/map", &["--dem", "missing.tif"]), 1, &["missing.tif"]);
    let plain = ["build", "--region", "caucasus", "--era", "1200", "--dem", "missing.tif"];
    assert_fails(&shop.run(&plain), 1, &["missing.tif"]);
    assert!(shop.listing().is_empty(), "{:?}", shop.listing());
    // Folders that were there stay, also empty ones.
    std::fs::create_dir(shop.path("mine")).unwrap();
    assert_fails(&build(&shop, "mine/b/map", &["--dem", "missing.tif"]), 1, &["missing.tif"]);
    assert_eq!(shop.listing(), ["mine"]);
    assert_eq!(std::fs::read_dir(shop.path("mine")).unwrap().count(), 0);
}

#[test]
fn folders_of_another_kind_are_told_apart() {
    let shop = Shop::new();
    std::fs::create_dir(shop.path("empty")).unwrap();
    shop.write("file", "x");
    assert_fails(&shop.run(&["verify", "empty"]), 1, &["empty: it holds no manifest.json", "histmap build"]);
    assert_fails(&shop.run(&["verify", "nothere"]), 1, &["nothere: there is no such folder"]);
    assert_fails(&shop.run(&["verify", "file"]), 1, &["file: it is a file"]);
    for folder in [".", "empty"] {
        assert_fails(&shop.run(&["check", folder]), 1, &["has no region.toml", "histmap regions"]);
    }
    assert_fails(
        &shop.run(&["check", "nothere"]),
        1,
        &["unknown region 'nothere'", "caucasus", "nor is there a folder"],
    );
    assert_fails(&shop.run(&["check", "file"]), 1, &["file: it is a file"]);
}

#[test]
fn help_says_what_the_program_is_for() {
    let shop = Shop::new();
    let o = shop.run(&["--help"]);
    assert_succeeds(&o);
    let first = stdout(&o).lines().next().unwrap_or_default().to_string();
    assert!(first.starts_with("Build a map of a region as it was in a year"), "{first}");
    assert!(stdout(&o).contains("histmap build --region caucasus --era 1200"), "{}", stdout(&o));
}

#[test]
fn two_claims_of_one_name_are_told() {
    let shop = Shop::new();
    let twin = |id: &str| {
        format!(
            r#"{{"type":"FeatureCollection","features":[{{"type":"Feature","properties":{{"id":"{id}",
            "name":"Kingdom of Georgia","from_year":1190,"to_year":1210}},"geometry":{{"type":"Polygon",
            "coordinates":[[[44,41.3],[45,41.3],[45,42],[44,42],[44,41.3]]]}}}}]}}"#
        )
    };
    let notes = |out: &str, id: &str| {
        let file = format!("{out}.geojson");
        shop.write(&file, twin(id));
        assert_succeeds(&build(&shop, out, &["--borders", &file]));
        let notes = manifest_of(&shop.path(out))["notes"].clone();
        notes.as_array().unwrap().iter().map(|n| n.as_str().unwrap().to_string()).collect::<Vec<_>>()
    };
    let told = notes("a", "mine");
    assert!(
        told.iter().any(|n| n.contains("two claims are called 'Kingdom of Georgia'") && n.contains("id 'georgia'"))
    );
    assert!(told.iter().any(|n| n.contains("1 claim added, 0 claims outside")), "{told:?}");
    assert!(notes("b", "georgia").iter().all(|n| !n.contains("two claims")));
}

#[test]
fn vectors_end_at_the_edge_of_the_map() {
    let shop = Shop::new();
    // The Kura runs through the box, and Lake Sevan is cut by its southern edge.
    let bounds = "44.4,40.4,45.6,41.4";
    let args = ["build", "--region", "caucasus", "--era", "1200", "--bbox", bounds, "--resolution", "500"];
    assert_succeeds(&shop.run(&[&args[..], &["--map-px", "600", "--out", "map"]].concat()));
    let grid = gdal::Dataset::open(shop.path("map/elevation.tif")).unwrap();
    let (t, (cols, rows)) = (grid.geo_transform().unwrap(), grid.raster_size());
    let (west, north) = (t[0], t[3]);
    let (east, south) = (west + 500.0 * cols as f64, north - 500.0 * rows as f64);
    let vectors = gdal::Dataset::open(shop.path("map/regions.gpkg")).unwrap();
    for name in ["rivers", "water"] {
        use gdal::vector::LayerAccess;
        let mut layer = vectors.layer_by_name(name).unwrap();
        let mut touches = 0;
        for feature in layer.features() {
            let e = feature.geometry().unwrap().envelope();
            let near = |a: f64, b: f64| (a - b).abs() < 1e-3;
            assert!(e.MinX > west - 1e-3 && e.MaxX < east + 1e-3, "{name} reaches beyond: {e:?}");
            assert!(e.MinY > south - 1e-3 && e.MaxY < north + 1e-3, "{name} reaches beyond: {e:?}");
            touches +=
                usize::from(near(e.MinX, west) || near(e.MaxX, east) || near(e.MinY, south) || near(e.MaxY, north));
        }
        assert!(touches > 0, "no feature of {name} is cut");
    }
}

#[test]
fn works_are_listed_with_what_was_done_with_them() {
    let shop = Shop::new();
    assert_succeeds(&build(&shop, "map", &[]));
    let m = manifest_of(&shop.path("map"));
    let of = |usage: &str| m["sources"].as_array().unwrap().iter().filter(|s| s["use"] == usage).count();
    assert!(of("data") >= 4 && of("further-reading") > 0, "{}", m["sources"]);
    // A pack that says otherwise is read so, and a word that is none is refused.
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/samples/kartli");
    for (usage, is_good) in [("taken", true), ("compared", true), ("read", true), ("glanced at", false)] {
        for entry in std::fs::read_dir(sample).unwrap() {
            let path = entry.unwrap().path();
            let mut bytes = std::fs::read(&path).unwrap();
            if path.ends_with("region.toml") {
                let text = String::from_utf8(bytes).unwrap();
                bytes = text.replacen("licence =", &format!("use = \"{usage}\"\nlicence ="), 1).into_bytes();
            }
            shop.write(&format!("kartli/{}", path.file_name().unwrap().to_string_lossy()), bytes);
        }
        let o = shop.run(&["check", "kartli"]);
        if is_good {
            assert_succeeds(&o);
        } else {
            assert_fails(&o, 1, &["sources.use", "glanced at", "taken, compared, read, further-reading"]);
        }
    }
}

#[test]
fn lists_timelines_and_completions() {
    let shop = Shop::new();
    let o = shop.run(&["regions"]);
    assert_succeeds(&o);
    assert!(stdout(&o).contains("caucasus") && stdout(&o).contains("1991"), "{}", stdout(&o));
    let o = shop.run(&["eras", "--region", "caucasus"]);
    assert_succeeds(&o);
    assert!(stdout(&o).contains("Georgia") && stdout(&o).contains("1202"), "{}", stdout(&o));
    let o = shop.run(&["completions", "bash"]);
    assert_succeeds(&o);
    assert!(stdout(&o).contains("_histmap"));
    let o = build(&shop, "map", &["--json"]);
    assert_succeeds(&o);
    let summary: serde_json::Value = serde_json::from_str(&stdout(&o)).unwrap();
    assert_eq!(summary["era"], "1200 CE");
    assert!(stderr(&o).is_empty(), "{}", stderr(&o));
    let o = build(&shop, "map", &["--quiet", "--overwrite"]);
    assert_succeeds(&o);
    assert!(stdout(&o).is_empty() && stderr(&o).is_empty());
}

#[test]
fn check_reports_every_problem_of_a_pack_at_once() {
    let shop = Shop::new();
    shop.write(
        "bad/region.toml",
        "name = \"bad\"\ntitle = \"Bad\"\ncrs = \"EPSG:32638\"\nresolution_m = 250\nresolutoin = 3\n\
         [extent]\nwest = 44\nsouth = 41\neast = 45\nnorth = 42\n[layers]\npolities = [\"p.geojson\"]\nplaces = \"gone.geojson\"\n\
         [[sources]]\nid = \"a\"\ncitation = \"A book\"\nlicence = \"facts\"\n",
    );
    shop.write(
        "bad/p.geojson",
        r#"{"type":"FeatureCollection","features":[{"type":"Feature","properties":{"id":"a","name":"A","from_year":0,"to_year":5,
        "kind":"empire","certainty":"sure","source":["nobody"]},
        "geometry":{"type":"Polygon","coordinates":[[[44,41],[45,42],[45,41],[44,42],[44,41]]]}}]}"#,
    );
    let o = shop.run(&["check", "bad"]);
    assert_fails(&o, 1, &["resolutoin", "gone.geojson", "from_year", "empire", "sure", "nobody"]);
    // The shipped pack has no problem.
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/maps/caucasus");
    assert_succeeds(&shop.run(&["check", shipped]));
}
