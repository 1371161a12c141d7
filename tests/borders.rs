//! Border files as people publish them, by the library and by the real binary.

use histmap::borders::{Fate, SourceKind, area_km2};
use histmap::political::{BorderInput, BorderReading, read_borders};
use std::path::{Path, PathBuf};
use std::process::Output;

mod workshop;
use workshop::{BOX, Shop, assert_fails, assert_succeeds, stdout};

/// Two neighbours in 1200, in the words of historical-basemaps.
const WORLD_1200: &str = r#"{"type": "FeatureCollection", "features": [
{"type": "Feature", "properties": {"NAME": "Западное царство", "SUBJECTO": null, "BORDERPRECISION": 2, "PARTOF": null},
 "geometry": {"type": "Polygon", "coordinates": [[[43, 41], [43, 43], [44.8, 43], [44.8, 41], [43, 41]]]}},
{"type": "Feature", "properties": {"NAME": "East", "SUBJECTO": null, "BORDERPRECISION": 3, "PARTOF": null},
 "geometry": {"type": "Polygon", "coordinates": [[[44.8, 41], [46, 41], [46, 43], [44.8, 43], [44.8, 41]]]}},
{"type": "Feature", "properties": {"NAME": null, "SUBJECTO": null, "BORDERPRECISION": 1, "PARTOF": null},
 "geometry": {"type": "Polygon", "coordinates": [[[-60, 0], [-50, 0], [-50, 10], [-60, 0]]]}},
{"type": "Feature", "properties": {"NAME": "Nowhere", "SUBJECTO": null, "BORDERPRECISION": 1, "PARTOF": null},
 "geometry": null}
]}"#;

fn read(paths: &[PathBuf]) -> BorderReading {
    read_borders(&BorderInput { paths: paths.to_vec(), ..BorderInput::default() }).unwrap()
}

/// The border files that tests share; `None`, with a line that says so, where they are not there.
fn shared_borders() -> Option<PathBuf> {
    let root = std::env::var_os("HISTMAP_TEST_DATA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data"), PathBuf::from);
    let borders = root.join("borders");
    if !borders.is_dir() {
        println!("skipped: no test data in {} (set HISTMAP_TEST_DATA)", borders.display());
        return None;
    }
    Some(borders)
}

/// What the rings of GeoJSON coordinates go round, square degrees by the shoelace formula.
fn around(coordinates: &serde_json::Value) -> f64 {
    let Some(list) = coordinates.as_array() else { return 0.0 };
    let points: Vec<(f64, f64)> =
        list.iter().filter_map(|p| Some((p.get(0)?.as_f64()?, p.get(1)?.as_f64()?))).collect();
    if points.is_empty() {
        return list.iter().map(around).sum();
    }
    points.windows(2).map(|w| w[0].0 * w[1].1 - w[1].0 * w[0].1).sum::<f64>().abs() / 2.0
}

#[test]
fn published_worlds_load_with_every_feature_accounted_for() {
    let Some(folder) = shared_borders() else { return };
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    for file in &files {
        let json: serde_json::Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        let given = json["features"].as_array().unwrap();
        let reading = read(std::slice::from_ref(file));
        let b = &reading.borders;
        assert_eq!(b.kinds, [SourceKind::HistoricalBasemaps]);
        let place = file.file_stem().unwrap().to_string_lossy();
        println!("{place}: {} claims; {}", b.claims.len(), b.account.summary());
        assert_eq!(b.account.features.len(), given.len(), "{place}");
        for (k, (line, feature)) in b.account.features.iter().zip(given).enumerate() {
            assert_eq!(line.feature, k + 1);
            // Nothing that has an area is left out.
            let is_left_out = matches!(line.fate, Fate::Skipped(_));
            assert!(!is_left_out || around(&feature["geometry"]["coordinates"]) < 1e-7, "{place}: {line:?}");
            if let Some((before, after)) = line.repair.as_ref().and_then(|r| r.area_km2) {
                assert!(after >= before * 0.999, "{place}: {line:?}");
            }
        }
        // Every area is sound, and what is told as kept is there.
        let [kept, joined, skipped, _] = b.account.counts();
        assert_eq!(kept + joined + skipped, given.len(), "{place}");
        assert_eq!(kept, b.claims.len(), "{place}");
        assert!(skipped < given.len() / 2, "{place}");
        assert!(b.claims.iter().all(|c| area_km2(&c.area) > 0.0), "{place}");
    }
}

#[test]
fn a_folder_of_worlds_is_one_timeline() {
    let Some(folder) = shared_borders() else { return };
    let files =
        ["1200", "1300", "1500", "1815", "1914"].map(|y| folder.join(format!("historical-basemaps-world_{y}.geojson")));
    let reading = read(&files);
    let england: Vec<String> =
        reading.borders.claims.iter().filter(|c| c.name == "Portugal").map(|c| c.span.to_string()).collect();
    assert_eq!(england, ["1200–1299 CE", "1300–1499 CE", "1500–1814 CE", "1815–1913 CE", "1914 CE"]);
}

#[test]
fn every_format_gives_the_same_claims() {
    let shop = Shop::new();
    let given = shop.write("world_1200.geojson", WORLD_1200);
    let expected = read(&[given]).borders;
    assert_eq!(expected.account.counts(), [3, 0, 1, 0]);
    let shapefile = ["-f", "ESRI Shapefile", "-lco", "ENCODING=UTF-8", "shp/world_1200.shp", "world_1200.geojson"];
    std::fs::create_dir(shop.path("shp")).unwrap();
    if !shop.gdal("ogr2ogr", &shapefile) {
        return;
    }
    shop.gdal("ogr2ogr", &["world_1200.gpkg", "world_1200.geojson", "-f", "GPKG"]);
    shop.gdal("ogr2ogr", &["world_1200.fgb", "world_1200.geojson", "-f", "FlatGeobuf"]);
    shop.gdal("ogr2ogr", &["/vsizip/worlds.zip/a/world_1200.geojson", "world_1200.geojson", "-f", "GeoJSON"]);
    for name in ["shp/world_1200.shp", "shp", "world_1200.gpkg", "world_1200.fgb", "worlds.zip"] {
        let found = read(&[shop.path(name)]).borders;
        let of = |b: &histmap::borders::BorderClaims| -> Vec<(String, i64)> {
            let mut all: Vec<_> = b.claims.iter().map(|c| (c.name.clone(), area_km2(&c.area).round() as i64)).collect();
            all.sort();
            all
        };
        assert_eq!(of(&found), of(&expected), "{name}");
        // FlatGeobuf does not list what has no geometry.
        let n = if name.ends_with("fgb") { 3 } else { 4 };
        assert_eq!(found.account.features.len(), n, "{name}");
    }
}

#[test]
fn topojson_is_in_degrees() {
    let shop = Shop::new();
    let topo = shop.write(
        "world_1200.topojson",
        r#"{"type": "Topology", "arcs": [[[43, 41], [45, 41], [45, 43], [43, 43], [43, 41]]], "objects": {"world":
           {"type": "GeometryCollection", "geometries": [{"type": "Polygon", "arcs": [[0]], "properties":
           {"NAME": "X", "SUBJECTO": "X", "BORDERPRECISION": 1}}]}}}"#,
    );
    if !histmap::gdal_io::has_driver("TopoJSON") {
        println!("skipped: this GDAL does not read TopoJSON");
        return;
    }
    let claims = read(&[topo]).borders.claims;
    assert_eq!((claims.len(), claims[0].name.as_str()), (1, "X"));
}

#[test]
fn texts_of_a_shapefile_are_read_as_it_says_or_as_they_look() {
    let shop = Shop::new();
    shop.write("world_1200.geojson", WORLD_1200);
    let convert = |out: &str, encoding: &str| {
        std::fs::create_dir_all(shop.path(out).parent().unwrap()).unwrap();
        shop.gdal("ogr2ogr", &["-f", "ESRI Shapefile", "-lco", encoding, out, "world_1200.geojson"])
    };
    if !convert("cp/world_1200.shp", "ENCODING=CP1251") {
        return;
    }
    let name = |path: &str, encoding: Option<&str>| {
        let input = BorderInput {
            paths: vec![shop.path(path)],
            encoding: encoding.map(str::to_string),
            ..BorderInput::default()
        };
        let reading = read_borders(&input).unwrap();
        (reading.borders.claims[0].name.clone(), reading.notes)
    };
    let russian = "Западное царство".to_string();
    assert_eq!(name("cp/world_1200.shp", None), (russian.clone(), vec![]));
    // Neither .cpg nor language byte: a guess, and it is told.
    let mute = |folder: &str| {
        let _ = std::fs::remove_file(shop.path(&format!("{folder}/world_1200.cpg")));
        let dbf = shop.path(&format!("{folder}/world_1200.dbf"));
        let mut bytes = std::fs::read(&dbf).unwrap();
        bytes[29] = 0;
        std::fs::write(dbf, bytes).unwrap();
    };
    mute("cp");
    let (found, notes) = name("cp/world_1200.shp", None);
    assert_eq!(found, russian);
    assert!(notes[0].contains("CP1251 is taken") && notes[0].contains("--encoding"), "{notes:?}");
    assert_eq!(name("cp/world_1200.shp", Some("CP1251")), (russian.clone(), vec![]));
    convert("utf/world_1200.shp", "ENCODING=UTF-8");
    mute("utf");
    assert_eq!(name("utf/world_1200.shp", None), (russian, vec![]));
}

/// A build of the small box.
fn build(shop: &Shop, out: &str, more: &[&str]) -> Output {
    let fixed = ["build", "--region", "caucasus", "--bbox", BOX, "--resolution", "1000", "--out", out];
    shop.run(&[&fixed[..], more].concat())
}

#[test]
fn builds_take_folders_archives_and_mapped_fields() {
    let shop = Shop::new();
    shop.write("worlds/world_1200.geojson", WORLD_1200);
    shop.write("worlds/world_1300.geojson", WORLD_1200.replace("East", "Orient"));
    let o = build(&shop, "a", &["--era", "1250", "--borders", "worlds", "--json"]);
    assert_succeeds(&o);
    let summary: serde_json::Value = serde_json::from_str(&stdout(&o)).unwrap();
    let notes = summary["notes"].to_string();
    for word in [
        "8 features: 6 kept, 0 joined with others, 2 skipped",
        "4 claims added, 2 claims outside",
        "it has no geometry",
    ] {
        assert!(notes.contains(word), "no '{word}' in {notes}");
    }
    let manifest = std::fs::read_to_string(shop.path("a/manifest.json")).unwrap();
    assert!(manifest.contains("worlds/world_1200.geojson") && manifest.contains("worlds/world_1300.geojson"));

    let strange = r#"{"type": "FeatureCollection", "features": [{"type": "Feature", "properties":
        {"realm": "X", "since": -50, "till": 1500}, "geometry": {"type": "Polygon",
        "coordinates": [[[43, 41], [46, 41], [46, 43], [43, 43], [43, 41]]]}}]}"#;
    shop.write("strange.geojson", strange);
    let refused = build(&shop, "b", &["--era", "1400", "--borders", "strange.geojson"]);
    assert_fails(&refused, 1, &["fields found: realm, since, till", "--map-field"]);
    let mapped = ["--era", "1400", "--borders", "strange.geojson", "--map-field", "name=realm,from=since,to=till"];
    assert_succeeds(&build(&shop, "b", &mapped));
    let every = ["--era", "1400", "--borders", "strange.geojson", "--map-field", "name=realm", "--every-year"];
    assert_succeeds(&build(&shop, "c", &every));
    let bad = build(&shop, "d", &["--era", "1400", "--borders", "strange.geojson", "--map-field", "nam=realm"]);
    assert_fails(&bad, 2, &["--map-field", "name=FIELD"]);
    let kind = build(&shop, "d", &["--era", "1400", "--borders", "strange.geojson", "--source-kind", "clio"]);
    assert_fails(&kind, 2, &["cliopatria", "natural-earth"]);
    let forced = build(&shop, "d", &["--era", "1400", "--borders", "strange.geojson", "--source-kind", "cliopatria"]);
    assert_fails(&forced, 1, &["none of its features makes a claim"]);
    assert!(!shop.path("d").exists());
}

/// Everything in a folder, hidden files included.
fn listing(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// An import of two worlds into `packs/NAME`, with licence and citation.
fn import(shop: &Shop, name: &str, more: &[&str]) -> Output {
    shop.write("worlds/world_1200.geojson", WORLD_1200);
    shop.write("worlds/world_1300.geojson", WORLD_1200.replace("44.8", "44.5").replace("East", "Orient"));
    let out = format!("packs/{name}");
    let fixed = ["import", "worlds", "-o", &out, "--licence", "CC0-1.0", "--citation", "Made \"up\" \\ for a test"];
    shop.run(&[&fixed[..], more].concat())
}

#[test]
fn an_imported_pack_is_checked_and_built() {
    let shop = Shop::new();
    let bbox = ["--bbox", BOX, "--title", "Картли"];
    let o = import(&shop, "kartli", &bbox);
    assert_succeeds(&o);
    for word in ["4 claims, 1200–1300 CE, EPSG:32638; read as historical-basemaps", "6 kept", "2 claims outside"] {
        assert!(stdout(&o).contains(word), "no '{word}' in {}", stdout(&o));
    }
    assert_eq!(listing(&shop.path("packs")), ["kartli"]);
    assert_eq!(listing(&shop.path("packs/kartli")), ["import.txt", "polities.geojson", "region.toml"]);
    let checked = shop.run(&["check", "packs/kartli"]);
    assert_succeeds(&checked);
    assert!(stdout(&checked).contains("no problems"), "{}", stdout(&checked));
    let account = std::fs::read_to_string(shop.path("packs/kartli/import.txt")).unwrap();
    assert_eq!(account.lines().count(), 9, "{account}");
    assert!(account.contains("feature 4 (Nowhere): skipped, it has no geometry"));
    let toml = std::fs::read_to_string(shop.path("packs/kartli/region.toml")).unwrap();
    let toml: toml::Table = toml.parse().unwrap();
    assert_eq!(toml["sources"][0]["citation"].as_str(), Some("Made \"up\" \\ for a test"));
    assert_eq!((toml["sources"][0]["licence"].as_str(), toml["title"].as_str()), (Some("CC0-1.0"), Some("Картли")));

    let build = [
        "build",
        "--region",
        "kartli",
        "--maps",
        "packs",
        "--era",
        "1250",
        "--resolution",
        "1000",
        "--out",
        "map",
        "--json",
    ];
    let o = shop.run(&build);
    assert_succeeds(&o);
    let summary: serde_json::Value = serde_json::from_str(&stdout(&o)).unwrap();
    assert_eq!(summary["polities"], 2);
    assert!(std::fs::read_to_string(shop.path("map/manifest.json")).unwrap().contains("Made \\\"up\\\""));
}

#[test]
fn an_import_asks_for_what_it_needs_and_leaves_nothing_half_written() {
    let shop = Shop::new();
    shop.write("world_1200.geojson", WORLD_1200);
    let bare = ["import", "world_1200.geojson", "-o", "packs/a", "--bbox", BOX];
    assert_fails(&shop.run(&bare), 2, &["--licence", "GPL-3.0"]);
    assert_fails(&shop.run(&[&bare[..], &["--licence", "x"]].concat()), 2, &["--citation"]);
    assert_fails(&import(&shop, "a", &["--bbox", "0,0,1,1"]), 2, &["--bbox", "no border lies in it"]);
    assert_fails(&import(&shop, "a", &["--bbox", BOX, "--crs", "EPSG:4326"]), 2, &["geographic"]);
    assert_fails(&import(&shop, "a", &["--bbox", BOX, "--name", "b"]), 2, &["-o packs/b"]);
    assert_fails(&import(&shop, "a b", &["--bbox", BOX]), 2, &["--name", "letters"]);
    assert_fails(&import(&shop, "a", &["--bbox", "-179,-60,179,80"]), 2, &["no UTM zone fits", "--crs"]);
    assert!(!shop.path("packs").exists() || listing(&shop.path("packs")).is_empty());
    shop.write("packs/a/mine.txt", "x");
    assert_fails(&import(&shop, "a", &["--bbox", BOX]), 2, &["packs/a exists already"]);
    assert_eq!(listing(&shop.path("packs/a")), ["mine.txt"]);
}

#[test]
fn a_place_tells_who_held_it() {
    let shop = Shop::new();
    assert_succeeds(&import(&shop, "kartli", &["--bbox", BOX]));
    let at = |place: &str, more: &[&str]| {
        shop.run(&[&["at", "--region", "kartli", "--maps", "packs", "--place", place], more].concat())
    };
    // Between 44.5 and 44.8 E the holder changes in 1300.
    let o = at("44.6,41.7", &[]);
    assert_succeeds(&o);
    let text = stdout(&o);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[3].starts_with("1200–1299 CE  Западное царство  polity  approximate"), "{text}");
    assert!(lines[4].starts_with("1300 CE       Orient            polity  treaty"), "{text}");
    assert!(!stdout(&at("44.6,41.7", &["--era", "1250"])).contains("Orient"));
    assert!(stdout(&at("44.6,41.7", &["--era", "1500"])).contains("nobody is known"));
    assert_fails(&at("10,50", &[]), 2, &["outside the region", "43.9..45.3 E"]);
    assert_fails(&at("41.7,44.6", &[]), 2, &["longitude comes first"]);
    assert_fails(&at("Tiflis", &[]), 2, &["no place", "44.8,41.7"]);

    let named = shop.run(&["at", "--region", "caucasus", "--place", "Тифлис", "--era", "1200"]);
    assert_succeeds(&named);
    assert!(stdout(&named).starts_with("Тифлис (Tiflis), 44.8") && stdout(&named).contains("Kingdom of Georgia"));
    let wrong = shop.run(&["at", "--region", "caucasus", "--place", "tiflys"]);
    assert_fails(&wrong, 2, &["did you mean 'Tiflis'?"]);
}

#[test]
fn a_diff_tells_what_was_gained_and_lost() {
    let shop = Shop::new();
    assert_succeeds(&import(&shop, "kartli", &["--bbox", BOX]));
    let diff = |more: &[&str]| {
        shop.run(&[&["diff", "--region", "kartli", "--maps", "packs", "--from", "1200", "--to", "1300"], more].concat())
    };
    let o = diff(&["--json"]);
    assert_succeeds(&o);
    let json: serde_json::Value = serde_json::from_str(&stdout(&o)).unwrap();
    let of = |id: &str, key: &str| {
        json["changes"].as_array().unwrap().iter().find(|c| c["id"] == id).unwrap_or_else(|| panic!("{id} {json}"))[key]
            .as_f64()
            .unwrap()
    };
    // 0.3 degrees of longitude between 41.2 and 42.2 N: 0.3 * 9274 km2.
    let west = "западное-царство";
    assert!((of(west, "lost_km2") - 2776.0).abs() < 10.0, "{json}");
    assert_eq!(of(west, "gained_km2"), 0.0);
    assert!((of("orient", "gained_km2") - of("east", "lost_km2") - of(west, "lost_km2")).abs() < 0.01, "{json}");
    let csv = stdout(&diff(&["--csv"]));
    assert!(
        csv.starts_with("id,name,kind,before_km2,after_km2,gained_km2,lost_km2\norient,Orient,polity,0.0,"),
        "{csv}"
    );
    assert!(stdout(&diff(&[])).contains("1200 CE") && !stdout(&diff(&[])).contains("unchanged"));
    let same = shop.run(&["diff", "--region", "kartli", "--maps", "packs", "--from", "1200", "--to", "1250"]);
    assert!(stdout(&same).lines().nth(1).unwrap().contains("unchanged:"), "{}", stdout(&same));
    let none = shop.run(&["diff", "--region", "kartli", "--maps", "packs", "--from", "1200", "--to", "1500"]);
    assert_fails(&none, 1, &["no claims for 1500 CE", "1200–1300 CE"]);
    assert_fails(&diff(&["--csv", "--json"]), 2, &["cannot be used with"]);
}
