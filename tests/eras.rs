//! Many eras: series of maps over one ground, spans of years, doubtful years, timelines and maps of change, by the real
//! binary in a temporary folder.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const BINARY: &str = env!("CARGO_BIN_EXE_histmap");

struct Shop {
    dir: tempfile::TempDir,
}

impl Shop {
    fn new() -> Shop {
        Shop { dir: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn run(&self, args: &[&str]) -> Output {
        Command::new(BINARY).args(args).current_dir(self.dir.path()).output().unwrap()
    }

    /// A pack `kartli` under `packs/` with claims: id, first and last year, west and east of their rectangle, more keys.
    fn pack(&self, claims: &[(&str, i32, i32, f64, f64, Value)]) {
        let features: Vec<Value> = claims
            .iter()
            .map(|(id, from, to, west, east, more)| {
                let mut properties = json!({
                    "id": id, "name": id.to_uppercase(), "from_year": from, "to_year": to, "kind": "polity",
                    "parent": null, "certainty": "approximate", "source": ["made-up"],
                });
                for (key, value) in more.as_object().unwrap() {
                    properties[key] = value.clone();
                }
                let ring = [[*west, 41.0], [*east, 41.0], [*east, 42.4], [*west, 42.4], [*west, 41.0]];
                json!({"type": "Feature", "properties": properties, "geometry": {"type": "Polygon", "coordinates": [ring]}})
            })
            .collect();
        let dir = self.path("packs/kartli");
        std::fs::create_dir_all(&dir).unwrap();
        let layer = json!({"type": "FeatureCollection", "features": features});
        std::fs::write(dir.join("polities.geojson"), layer.to_string()).unwrap();
        let toml = "name = \"kartli\"\ntitle = \"Kartli\"\ncrs = \"EPSG:32638\"\nresolution_m = 1000\n\
                    [extent]\nwest = 43.9\nsouth = 41.2\neast = 45.3\nnorth = 42.2\n\
                    [layers]\npolities = [\"polities.geojson\"]\n\
                    [[sources]]\nid = \"made-up\"\ncitation = \"Made up for a test.\"\nlicence = \"CC0-1.0\"\n";
        std::fs::write(dir.join("region.toml"), toml).unwrap();
    }

    /// A build of that pack.
    fn build(&self, era: &str, out: &str, more: &[&str]) -> Output {
        let fixed =
            ["build", "kartli", "--maps", "packs", "--era", era, "--out", out, "--map-px", "300", "--frame-px", "200"];
        self.run(&[&fixed[..], more].concat())
    }

    fn manifest(&self, out: &str) -> Value {
        serde_json::from_slice(&std::fs::read(self.path(out).join("manifest.json")).unwrap()).unwrap()
    }
}

fn stdout(o: &Output) -> String {
    String::from_utf8_lossy(&o.stdout).into_owned()
}

#[track_caller]
fn assert_succeeds(o: &Output) {
    assert!(o.status.success(), "exit {:?}\n{}\n{}", o.status.code(), stdout(o), String::from_utf8_lossy(&o.stderr));
}

#[track_caller]
fn assert_fails(o: &Output, code: i32, words: &[&str]) {
    let text = String::from_utf8_lossy(&o.stderr).into_owned();
    assert_eq!(o.status.code(), Some(code), "{text}");
    assert!(!text.contains("panicked"), "{text}");
    for w in words {
        assert!(text.contains(w), "no '{w}' in: {text}");
    }
}

/// Names of everything in a folder, hidden files included.
fn listing(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Values of one band, read by the GDAL library itself.
fn band(path: &Path, index: usize) -> Vec<f64> {
    let dataset = gdal::Dataset::open(path).unwrap();
    let size = dataset.raster_size();
    dataset.rasterband(index).unwrap().read_as::<f64>((0, 0), size, size, None).unwrap().data().to_vec()
}

/// Rows of an SQL query, each a list of texts, read by the GDAL library itself.
fn query(path: &Path, sql: &str) -> Vec<Vec<String>> {
    use gdal::vector::LayerAccess;
    let dataset = gdal::Dataset::open(path).unwrap();
    let mut layer = dataset.execute_sql(sql, None, gdal::vector::sql::Dialect::DEFAULT).unwrap().unwrap();
    let text = |f: &gdal::vector::Feature, k: usize| f.field_as_string(k).unwrap().unwrap_or_default();
    layer.features().map(|f| (0..f.field_count()).map(|k| text(&f, k)).collect()).collect()
}

fn two_kingdoms() -> Shop {
    let shop = Shop::new();
    shop.pack(&[
        ("east", 1100, 1400, 44.8, 46.0, json!({})),
        ("west", 1100, 1249, 43.0, 44.8, json!({})),
        ("west", 1250, 1400, 43.0, 44.5, json!({})),
    ]);
    shop
}

#[test]
fn eras_lie_in_folders_over_one_ground() {
    let shop = two_kingdoms();
    let o = shop.build("1200..1300/50", "out/a", &["--animate", "gif,apng", "--json"]);
    assert_succeeds(&o);
    let files = ["animation.gif", "animation.png", "elevation.tif", "hillshade.tif", "manifest.json"];
    let folders = ["1200", "1250", "1300"];
    let rest = ["regions-timeline.gpkg", "terrain.gpkg", "water.tif", "water.tif.aux.xml"];
    assert_eq!(listing(&shop.path("out/a")), [&folders[..], &files, &rest].concat());
    for folder in folders {
        let names = ["map.png", "regions.gpkg", "regions.tif", "regions.tif.aux.xml"];
        assert_eq!(listing(&shop.path("out/a").join(folder)), names);
    }
    let summary: Value = serde_json::from_str(&stdout(&o)).unwrap();
    assert_eq!((&summary["polities"], &summary["eras"][2]["folder"]), (&json!(2), &json!("1300")));
    let manifest = shop.manifest("out/a");
    assert_eq!(manifest["era"]["given"], "1200..1300/50");
    assert_eq!(manifest["eras"].as_array().unwrap().len(), 3);
    assert_eq!(manifest["eras"][1]["polities"][1]["years"], "1250–1400 CE");
    assert_eq!(manifest["eras"][1]["elevation"], "elevation.tif");

    // A map of the series is that of its year alone, and so is the ground.
    assert_succeeds(&shop.build("1250", "out/b", &[]));
    for name in ["elevation.tif", "water.tif"] {
        assert_eq!(band(&shop.path("out/a").join(name), 1), band(&shop.path("out/b").join(name), 1), "{name}");
    }
    let single = band(&shop.path("out/b/regions.tif"), 1);
    assert_eq!(band(&shop.path("out/a/1250/regions.tif"), 1), single);
    assert_ne!(band(&shop.path("out/a/1200/regions.tif"), 1), single);

    // Verified, folders included.
    assert!(
        stdout(&shop.run(&["verify", "out/a"])).contains("20 files agree"),
        "{}",
        stdout(&shop.run(&["verify", "out/a"]))
    );
    std::fs::write(shop.path("out/a/1250/more.txt"), "x").unwrap();
    let map = shop.path("out/a/1300/map.png");
    let mut bytes = std::fs::read(&map).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&map, bytes).unwrap();
    assert_fails(
        &shop.run(&["verify", "out/a"]),
        1,
        &["1250/more.txt: not in the manifest", "1300/map.png: contents differ"],
    );
}

#[test]
fn series_have_the_same_bytes_on_any_number_of_threads() {
    let shop = two_kingdoms();
    for threads in ["1", "3"] {
        let out = format!("out/{threads}");
        assert_succeeds(&shop.build("1200,1300", &out, &["--animate", "gif,apng", "--threads", threads]));
    }
    let outputs = |n: &str| shop.manifest(&format!("out/{n}"))["outputs"].clone();
    assert_eq!(outputs("1"), outputs("3"));
}

#[test]
fn a_timeline_plays_years_before_christ_too() {
    let shop = Shop::new();
    shop.pack(&[
        ("old", -120, 20, 43.0, 44.6, json!({})),
        ("new", 21, 90, 43.0, 44.6, json!({})),
        ("east", -120, 90, 44.6, 46.0, json!({})),
    ]);
    assert_succeeds(&shop.build("-80,80 CE,-1,30", "out/a", &[]));
    assert!(["80bce", "1bce", "30", "80"].iter().all(|f| shop.path("out/a").join(f).is_dir()));
    let gpkg = shop.path("out/a/regions-timeline.gpkg");
    let sql = "SELECT id, shown_from, shown_to, play_start, play_end, start_date, end_date FROM polities ORDER BY id, shown_from";
    let rows = query(&gpkg, sql);
    // 80 BCE is -79: the clock runs 4000 years ahead.
    let expected = [
        ["east", "-80", "80", "3921/01/01", "4080/12/31", "", "0080/12/31"],
        ["new", "30", "80", "4030/01/01", "4080/12/31", "0030/01/01", "0080/12/31"],
        ["old", "-80", "29", "3921/01/01", "4029/12/31", "", "0029/12/31"],
    ];
    assert_eq!(rows, expected);
    let qml = &query(&gpkg, "SELECT styleQML FROM layer_styles WHERE f_table_name = 'polities'")[0][0];
    assert!(
        qml.contains("startField=\"play_start\" endField=\"play_end\"") && qml.contains("enabled=\"1\" mode=\"2\""),
        "{qml}"
    );

    // From 1 CE on the dates are the true ones.
    assert_succeeds(&shop.build("10..90/40", "out/b", &[]));
    let gpkg = shop.path("out/b/regions-timeline.gpkg");
    assert_eq!(
        query(&gpkg, "SELECT id, start_date, end_date FROM polities WHERE id <> 'east'"),
        [["old", "0010/01/01", "0049/12/31"], ["new", "0050/01/01", "0090/12/31"]]
    );
    let qml = &query(&gpkg, "SELECT styleQML FROM layer_styles WHERE f_table_name = 'borders'")[0][0];
    assert!(qml.contains("startField=\"start_date\""), "{qml}");
}

#[test]
fn moving_pictures_have_a_frame_per_era() {
    let shop = two_kingdoms();
    assert_succeeds(&shop.build("1200..1300/50", "out/a", &["--animate", "gif,apng", "--frame-time", "0.5"]));
    let gif = std::fs::read(shop.path("out/a/animation.gif")).unwrap();
    let mut decoder = gif::DecodeOptions::new().read_info(&gif[..]).unwrap();
    let mut delays = Vec::new();
    while let Some(frame) = decoder.read_next_frame().unwrap() {
        delays.push(frame.delay);
    }
    assert_eq!(delays, [50, 50, 50]);
    let file = std::io::BufReader::new(std::fs::File::open(shop.path("out/a/animation.png")).unwrap());
    let reader = png::Decoder::new(file).read_info().unwrap();
    assert_eq!(reader.info().animation_control.unwrap().num_frames, 3);
    // As large as the sheet at that size: the map, frame and legend.
    assert!(reader.info().width > 200 && reader.info().width < 1200, "{}", reader.info().width);
}

#[test]
fn series_that_cannot_be_leave_nothing() {
    let shop = two_kingdoms();
    for (era, more, code, words) in [
        ("1200", &["--animate", "gif"][..], 2, &["--animate", "several eras"][..]),
        ("1000..1200/50", &[], 1, &["no claims for 1000 CE, 1050 CE in region 'kartli'", "1100–1400 CE"]),
        ("1200..1300", &[], 2, &["has no step", "1000..1400/50"]),
        ("1200,1300", &["--animate", "bmp"], 2, &["gif", "apng", "webp"]),
        ("1200,1300", &["--animate", "gif", "--frame-time", "0"], 2, &["--frame-time", "0.02 to 60"]),
        ("1200,1300", &["--frame-px", "20"], 2, &["--frame-px", "100 to 4000"]),
        ("1200", &["--close-gaps", "-5"], 2, &["--close-gaps", "metres"]),
    ] {
        // The last of two flags counts, where one is given twice.
        let args = [&["build", "kartli", "--maps", "packs", "--era", era, "--out", "out/x"][..], more].concat();
        assert_fails(&shop.run(&args), code, words);
        assert!(!shop.path("out").exists() || listing(&shop.path("out")).is_empty(), "{era}");
    }
    assert_fails(&shop.run(&["build", "--era", "1200"]), 2, &["REGION"]);
    assert_fails(&shop.run(&["eras", "kartli", "--region", "kartli", "--maps", "packs"]), 2, &["cannot be used with"]);
    assert!(stdout(&shop.run(&["eras", "kartli", "--maps", "packs", "--all"])).contains("1250–1400 CE  WEST"));
}

#[test]
fn every_change_is_a_map_of_its_own() {
    let shop = two_kingdoms();
    assert_succeeds(&shop.build("1240..1260/changes", "out/a", &[]));
    let names = listing(&shop.path("out/a"));
    assert_eq!(names.iter().filter(|n| n.parse::<i32>().is_ok()).collect::<Vec<_>>(), ["1240", "1250"]);
}

#[test]
fn reservoirs_that_come_in_time_have_a_ground_of_their_own() {
    let shop = Shop::new();
    // The Mingachevir reservoir is there from 1953.
    let args = [
        "build",
        "--region",
        "caucasus",
        "--borders",
        "b.geojson",
        "--bbox",
        "46.4,40.6,47.2,41.1",
        "--resolution",
        "1000",
        "--map-px",
        "200",
        "--era",
        "1940,1950,1960",
        "--out",
        "out",
    ];
    let square = r#"{"type": "FeatureCollection", "features": [{"type": "Feature", "properties":
        {"name": "X", "from": 1900, "to": 1990}, "geometry": {"type": "Polygon",
        "coordinates": [[[45, 40], [48, 40], [48, 42], [45, 42], [45, 40]]]}}]}"#;
    std::fs::write(shop.path("b.geojson"), square).unwrap();
    assert_succeeds(&shop.run(&args));
    let elevations: Vec<Value> =
        shop.manifest("out")["eras"].as_array().unwrap().iter().map(|e| e["elevation"].clone()).collect();
    assert_eq!(elevations, ["elevation.tif", "elevation.tif", "elevation-1960.tif"]);
    let lakes = |name: &str| band(&shop.path("out").join(name), 1).iter().filter(|v| **v == 2.0).count();
    assert!(lakes("water-1960.tif") > lakes("water.tif") + 100, "{} {}", lakes("water-1960.tif"), lakes("water.tif"));
    assert!(shop.path("out/terrain-1960.gpkg").is_file());
    assert_succeeds(&shop.run(&["verify", "out"]));
}

#[test]
fn one_after_the_other_in_a_span_is_no_dispute() {
    let shop = Shop::new();
    shop.pack(&[
        ("first", 1150, 1202, 43.0, 44.8, json!({})),
        ("second", 1203, 1250, 43.0, 44.8, json!({})),
        ("beside", 1150, 1250, 44.8, 46.0, json!({})),
        ("rival", 1201, 1250, 44.8, 45.0, json!({})),
    ]);
    assert_succeeds(&shop.build("1200/1210", "out/a", &[]));
    // Codes by id: beside 1, first 2, rival 3, second 4.
    let (holder, contested) = (band(&shop.path("out/a/regions.tif"), 1), band(&shop.path("out/a/regions.tif"), 2));
    let count = |values: &[f64], code: f64| values.iter().filter(|v| **v == code).count();
    assert!(count(&holder, 2.0) > 1000 && count(&holder, 4.0) == 0);
    // Only those who held in the same year contest.
    assert!(count(&contested, 3.0) > 100, "{}", count(&contested, 3.0));
    assert_eq!((count(&contested, 4.0), count(&contested, 2.0)), (0, 0));
    let notes = shop.manifest("out/a")["notes"].to_string();
    assert!(notes.contains("km² went from FIRST (until 1202 CE) to SECOND (from 1203 CE) within the era"), "{notes}");
    // The one after is told, not drawn.
    let drawn = query(&shop.path("out/a/regions.gpkg"), "SELECT id FROM polities ORDER BY id");
    assert_eq!(drawn, [["beside"], ["first"], ["rival"]]);
    // In a year of its own there is nothing to tell.
    assert_succeeds(&shop.build("1203", "out/b", &[]));
    assert!(!shop.manifest("out/b")["notes"].to_string().contains("went from"));
}

#[test]
fn doubtful_years_are_drawn_paler_and_contest_nobody() {
    let shop = Shop::new();
    shop.pack(&[
        ("ended", 1150, 1199, 43.0, 44.4, json!({"to_edtf": "1195/1205", "colour": "#6400c8"})),
        ("doubted", 1200, 1250, 44.2, 44.8, json!({"from_edtf": "1198/1210"})),
        ("sure", 1150, 1250, 44.6, 46.0, json!({})),
    ]);
    assert_succeeds(&shop.run(&["check", "packs/kartli"]));
    assert_succeeds(&shop.build("1201", "out/a", &[]));
    let manifest = shop.manifest("out/a");
    let of = |id: &str| manifest["polities"].as_array().unwrap().iter().find(|p| p["id"] == id).unwrap().clone();
    assert_eq!(of("ended")["in_year"], "possible");
    assert_eq!(of("doubted")["in_year"], "doubtful");
    assert_eq!(of("sure")["in_year"], "certain");
    let notes = manifest["notes"].to_string();
    assert!(notes.contains("whether DOUBTED held in 1201 CE is in doubt (begins 1198–1210 CE)"), "{notes}");
    assert!(notes.contains("ENDED is dated 1150–1199 CE and may have held in 1201 CE (ends 1195–1205 CE)"), "{notes}");
    // Codes by id: doubted 1, ended 2, sure 3. Each has its own land, and nothing is contested.
    let holder = band(&shop.path("out/a/regions.tif"), 1);
    for code in [1.0, 2.0, 3.0] {
        assert!(holder.iter().filter(|v| **v == code).count() > 300, "{code}");
    }
    assert!(band(&shop.path("out/a/regions.tif"), 2).iter().all(|v| *v == 0.0));
    let gpkg = shop.path("out/a/regions.gpkg");
    assert_eq!(query(&gpkg, "SELECT in_year, colour FROM polities WHERE id = 'ended'"), [["possible", "#ba8de7"]]);
    let dashed =
        query(&gpkg, "SELECT DISTINCT certainty FROM borders WHERE left_name = 'ENDED' OR right_name = 'ENDED'");
    assert_eq!(dashed, [["conjectural"]]);
    // Beyond the doubt it is gone; and doubt alone makes no map.
    assert_succeeds(&shop.build("1206", "out/b", &[]));
    assert!(!shop.manifest("out/b")["polities"].to_string().contains("ENDED"));
    let bad = Shop::new();
    bad.pack(&[("a", 1150, 1199, 43.0, 44.4, json!({"to_edtf": "1205"}))]);
    assert_fails(&bad.run(&["check", "packs/kartli"]), 1, &["to_edtf", "1199 CE"]);
}

#[test]
fn narrow_gaps_are_closed_and_told() {
    let shop = Shop::new();
    shop.pack(&[("other", 1100, 1300, 30.0, 31.0, json!({}))]);
    let world = |gap: f64| {
        let ring = |w: f64, e: f64| json!([[[w, 41.0], [e, 41.0], [e, 42.4], [w, 42.4], [w, 41.0]]]);
        let feature = |name: &str, w: f64, e: f64| {
            json!({"type": "Feature", "properties": {"NAME": name, "SUBJECTO": null, "BORDERPRECISION": 1},
                   "geometry": {"type": "Polygon", "coordinates": ring(w, e)}})
        };
        json!({"type": "FeatureCollection", "features": [feature("West", 43.0, 44.6), feature("East", 44.6 + gap, 46.0)]})
    };
    // A degree of longitude is 83 km here: 250 m and 830 m.
    std::fs::write(shop.path("world_1200.geojson"), world(0.003).to_string()).unwrap();
    let build = |out: &str, more: &[&str]| {
        let fixed = ["--borders", "world_1200.geojson", "--resolution", "200"];
        assert_succeeds(&shop.build("1200", out, &[&fixed[..], more].concat()));
        let holder = band(&shop.path(out).join("regions.tif"), 1);
        (holder.iter().filter(|v| **v == 0.0).count(), shop.manifest(out)["notes"].to_string())
    };
    let (unclaimed, notes) = build("out/closed", &[]);
    assert_eq!(unclaimed, 0);
    assert!(notes.contains("narrower than 500 m) between East and West is closed, to East"), "{notes}");
    let (unclaimed, notes) = build("out/open", &["--close-gaps", "0"]);
    assert!(unclaimed > 400 && !notes.contains("is closed"), "{unclaimed} {notes}");
    let (unclaimed, _) = build("out/narrow", &["--close-gaps", "100"]);
    assert!(unclaimed > 400);
}

#[test]
fn a_timeline_is_drawn() {
    let shop = two_kingdoms();
    let eras = |more: &[&str]| shop.run(&[&["eras", "kartli", "--maps", "packs"][..], more].concat());
    assert_succeeds(&eras(&["--svg", "t.svg"]));
    let svg = std::fs::read_to_string(shop.path("t.svg")).unwrap();
    assert!(svg.starts_with("<svg ") && svg.contains(">WEST</text>") && svg.contains("1100–1400 CE"), "{svg}");
    assert_succeeds(&eras(&["--svg", "t.png"]));
    assert!(image::open(shop.path("t.png")).unwrap().width() > 2000);
    assert_fails(&eras(&["--svg", "t.pdf"]), 2, &["--svg", ".svg or .png"]);
    assert_fails(&eras(&["--svg", "no/such/t.svg"]), 1, &["no folder"]);

    // A file beside the pack: where they differ is told and drawn.
    let file = r#"{"type": "FeatureCollection", "features": [{"type": "Feature", "properties":
        {"name": "East", "from": 1300, "to": 1450}, "geometry": {"type": "Polygon",
        "coordinates": [[[44.8, 41], [46, 41], [46, 43], [44.8, 43], [44.8, 41]]]}}]}"#;
    std::fs::write(shop.path("other.geojson"), file).unwrap();
    let o = eras(&["--borders", "other.geojson", "--svg", "u.svg"]);
    assert_succeeds(&o);
    assert!(stdout(&o).contains("Sources differ:\n  East: 1300–1400 CE"), "{}", stdout(&o));
    assert!(std::fs::read_to_string(shop.path("u.svg")).unwrap().contains("sources differ"));
    // By polity, by claim, by year.
    assert!(!stdout(&o).contains("The map changes in") && stdout(&o).contains("--all"), "{}", stdout(&o));
    let all = stdout(&eras(&["--all"]));
    assert!(all.contains("works\n") && all.contains("The map changes in"), "{all}");
    assert!(all.contains("not checked page by page: made-up."), "{all}");
    let one = stdout(&eras(&["--era", "1120"]));
    assert!(one.contains("EAST") && one.contains("1100–1249 CE  WEST") && !one.contains("1250–1400 CE"), "{one}");
    assert!(stdout(&eras(&["--era", "50"])).contains("nobody is known"));
    let only = eras(&["--borders", "other.geojson", "--borders-only"]);
    assert!(!stdout(&only).contains("WEST") && stdout(&only).contains("1300–1450 CE  East"), "{}", stdout(&only));
}

#[test]
fn what_changed_hands_is_drawn_and_listed() {
    let shop = two_kingdoms();
    let diff = |more: &[&str]| {
        shop.run(&[&["diff", "kartli", "--maps", "packs", "--from", "1200", "--to", "1300"][..], more].concat())
    };
    let o = diff(&["--map", "d.svg", "--json"]);
    assert_succeeds(&o);
    let all: Value = serde_json::from_str(&stdout(&o)).unwrap();
    // 0.3 degrees of longitude between 41.2 and 42.2 N go to nobody.
    let moved = &all["transfers"];
    assert_eq!(moved.as_array().unwrap().len(), 1);
    assert_eq!((&moved[0]["from"]["id"], &moved[0]["to"]), (&json!("west"), &Value::Null));
    assert!((moved[0]["area_km2"].as_f64().unwrap() - 2776.0).abs() < 10.0, "{moved}");
    let svg = std::fs::read_to_string(shop.path("d.svg")).unwrap();
    assert!(svg.contains(">WEST to nobody known</text>") && svg.contains("2\u{a0}77"), "{svg}");
    assert_succeeds(&diff(&["--map", "d.png"]));
    assert!(image::open(shop.path("d.png")).unwrap().width() > 2000);
    assert_fails(&diff(&["--map", "d.jpg"]), 2, &["--map"]);
    assert!(!shop.path("d.jpg").exists());
}

#[test]
fn questions_are_put_to_border_files_too() {
    let shop = two_kingdoms();
    for (year, edge) in [(1200, 44.5), (1300, 44.2)] {
        let feature = |name: &str, w: f64, e: f64| {
            json!({"type": "Feature", "properties": {"NAME": name, "SUBJECTO": null, "BORDERPRECISION": 2},
                   "geometry": {"type": "Polygon", "coordinates": [[[w, 41.0], [e, 41.0], [e, 42.4], [w, 42.4], [w, 41.0]]]}})
        };
        let all = json!({"type": "FeatureCollection", "features": [feature("Here", 43.0, edge), feature("There", edge, 46.0)]});
        std::fs::create_dir_all(shop.path("worlds")).unwrap();
        std::fs::write(shop.path(&format!("worlds/world_{year}.geojson")), all.to_string()).unwrap();
    }
    let at = shop.run(&["at", "kartli", "--maps", "packs", "--place", "44.3,41.7", "--borders", "worlds"]);
    assert_succeeds(&at);
    assert!(
        stdout(&at).contains("1200–1299 CE  Here") && stdout(&at).contains("1300 CE       There"),
        "{}",
        stdout(&at)
    );
    assert!(!stdout(&at).contains("WEST"));
    let fixed = ["diff", "kartli", "--maps", "packs", "--from", "1200", "--to", "1300", "--borders", "worlds"];
    let diff = shop.run(&[&fixed[..], &["--csv"]].concat());
    assert_succeeds(&diff);
    assert!(stdout(&diff).contains("here,Here,polity,") && !stdout(&diff).contains("WEST"), "{}", stdout(&diff));
    let none =
        shop.run(&["diff", "kartli", "--maps", "packs", "--from", "1100", "--to", "1300", "--borders", "worlds"]);
    assert_fails(&none, 1, &["no claims for 1100 CE", "1200–1300 CE"]);
}
