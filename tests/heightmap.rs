//! `histmap heightmap`, the real binary: files as GDAL sees them, exit codes, words of refusals.

use std::path::Path;
use std::process::{Command, Output};

fn histmap(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_histmap")).current_dir(folder).args(args).output().unwrap()
}

fn made(folder: &Path, args: &[&str]) {
    let out = histmap(folder, args);
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
}

/// Exit code and words of a run that must fail and leave nothing behind.
fn refused(args: &[&str]) -> (i32, String) {
    let folder = tempfile::tempdir().unwrap();
    let out = histmap(folder.path(), args);
    assert!(!out.status.success(), "{args:?}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{args:?} left files");
    (out.status.code().unwrap(), String::from_utf8_lossy(&out.stderr).into_owned())
}

/// Value at column and row of `file`: gdallocationinfo -valonly FILE COL ROW.
fn gdal_value(folder: &Path, file: &str, col: usize, row: usize) -> f64 {
    let (col, row) = (col.to_string(), row.to_string());
    let out =
        Command::new("gdallocationinfo").current_dir(folder).args(["-valonly", file, &col, &row]).output().unwrap();
    String::from_utf8_lossy(&out.stdout).trim().parse().unwrap()
}

/// GDAL's raw driver, told only the sidecar's numbers, sees the same heights the same side up as the GeoTIFF.
#[test]
fn raw_opens_right_side_up_through_the_numbers_of_its_sidecar() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let recipe = ["heightmap", "diamond-square", "--size", "33x21", "--seed", "5", "--filter", "normalise=100,900"];
    made(dir, &[&recipe[..], &["a.tif"]].concat());
    for flags in [&["--type", "u16", "--big-endian"][..], &["--type", "f32", "--bottom-up"][..], &["--type", "i16"][..]]
    {
        made(dir, &[&recipe[..], flags, &["a.raw"]].concat());
        let json: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(dir.join("a.raw.json")).unwrap()).unwrap();
        let (kind, bytes) = match json["type"].as_str().unwrap() {
            "u16" => ("UInt16", 2),
            "i16" => ("Int16", 2),
            _ => ("Float32", 4),
        };
        let (cols, rows) = (json["cols"].as_i64().unwrap(), json["rows"].as_i64().unwrap());
        let line = cols * bytes;
        let (start, step) = if json["row_order"] == "bottom-up" { ((rows - 1) * line, -line) } else { (0, line) };
        let order = if json["byte_order"] == "big" { "MSB" } else { "LSB" };
        let (scale, offset) = (json["scale"].as_f64().unwrap(), json["offset"].as_f64().unwrap());
        let vrt = format!(
            "<VRTDataset rasterXSize=\"{cols}\" rasterYSize=\"{rows}\"><VRTRasterBand dataType=\"{kind}\" band=\"1\" \
             subClass=\"VRTRawRasterBand\"><SourceFilename relativeToVRT=\"1\">a.raw</SourceFilename>\
             <ImageOffset>{start}</ImageOffset><PixelOffset>{bytes}</PixelOffset><LineOffset>{step}</LineOffset>\
             <ByteOrder>{order}</ByteOrder></VRTRasterBand></VRTDataset>"
        );
        std::fs::write(dir.join("a.vrt"), vrt).unwrap();
        for (col, row) in [(0, 0), (32, 0), (0, 20), (32, 20), (7, 11)] {
            let height = gdal_value(dir, "a.vrt", col, row) * scale + offset;
            let want = gdal_value(dir, "a.tif", col, row);
            assert!((height - want).abs() < 0.02, "{flags:?} at {col}, {row}: {height}, GeoTIFF {want}");
        }
    }
}

#[test]
fn raw_round_trips_and_a_recipe_replays_to_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let recipe = ["heightmap", "fault", "--size", "40", "--seed", "9", "--filter", "blur=1.5", "--filter", "island"];
    made(dir, &[&recipe[..], &["--save-recipe", "heightmap.toml", "a.raw"]].concat());
    made(dir, &["heightmap", "file", "a.raw", "b.raw"]);
    made(dir, &["heightmap", "recipe", "heightmap.toml", "c.raw", "--threads", "1"]);
    // Without a sidecar the size and the type are told.
    std::fs::rename(dir.join("c.raw.json"), dir.join("aside.json")).unwrap();
    made(dir, &["heightmap", "file", "c.raw", "d.raw", "--size", "40", "--type", "f32"]);
    let bytes = |name: &str| std::fs::read(dir.join(name)).unwrap();
    assert_eq!(bytes("a.raw"), bytes("b.raw"));
    assert_eq!(bytes("a.raw"), bytes("c.raw"));
    assert_eq!(bytes("a.raw"), bytes("d.raw"));
    // Sixteen bits survive PNG, PGM and .hgt unchanged.
    made(dir, &["heightmap", "file", "a.raw", "a.png"]);
    made(dir, &["heightmap", "file", "a.png", "a.pgm", "--fit", "clamp"]);
    made(dir, &["heightmap", "file", "a.pgm", "again.png", "--fit", "clamp"]);
    assert_eq!(bytes("a.png"), bytes("again.png"));
}

#[test]
fn odd_requests_are_refused_in_a_sentence() {
    for (args, code, words) in [
        (&["heightmap", "fault", "--size", "0", "a.raw"][..], 2, "0 x 0"),
        (&["heightmap", "diamond-square", "--size", "100000", "a.raw"], 2, "GiB"),
        (&["heightmap", "diamond-square", "--size", "20x", "a.raw"], 2, "COLSxROWS"),
        (&["heightmap", "diamond-square", "--hurst", "1.5", "a.raw"], 2, "0 to 1"),
        (&["heightmap", "diamond-square", "--hurst", "nan", "a.raw"], 2, "0 to 1"),
        (&["heightmap", "diamond-square", "--size", "100", "--edges", "wrapped", "a.raw"], 2, "power of two"),
        (&["heightmap", "fault", "a.bmp"], 1, ".raw, .png"),
        (&["heightmap", "fault", "--filter", "blurr=1", "a.raw"], 2, "blur=SIGMA"),
        (&["heightmap", "fault", "--size", "20x10", "a.hgt"], 2, "squares"),
        (&["heightmap", "file", "none.raw", "a.raw"], 1, "none.raw"),
        (&["heightmap", "file", "a.raw"], 2, "file to write"),
    ] {
        let (found, said) = refused(args);
        assert!(said.contains(words), "{args:?}: {said}");
        assert_eq!(found, code, "{args:?}: {said}");
        assert_eq!(
            said.trim().lines().filter(|l| l.starts_with("histmap:")).count() + usize::from(said.starts_with("error")),
            1
        );
    }
}

#[test]
fn a_raw_file_of_the_wrong_length_says_what_would_fit() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.raw"), [0u8; 50]).unwrap();
    let out = histmap(folder.path(), &["heightmap", "file", "a.raw", "b.raw", "--size", "4", "--type", "u16"]);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(1));
    assert!(said.contains("50 bytes") && said.contains("5 x 5"), "{said}");
    assert!(!folder.path().join("b.raw").exists());
}

#[test]
fn sizes_of_one_to_three_work_for_every_algorithm() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    for algorithm in ["diamond-square", "midpoint", "profile", "fault", "fbm"] {
        for size in ["1", "2", "3", "3x1", "1x2"] {
            let filters =
                ["--filter", "blur=2", "--filter", "terrace=3,0.5", "--filter", "island", "--filter", "thermal=2,0.1"];
            let more = ["--filter", "streams=2,0.1", "--filter", "normalise=0,9"];
            made(dir, &[&["heightmap", algorithm, "--size", size][..], &filters, &more, &["a.raw"]].concat());
            let (cols, rows) = size.split_once('x').unwrap_or((size, size));
            let rows = if algorithm == "profile" { "1" } else { rows };
            let count: usize = cols.parse::<usize>().unwrap() * rows.parse::<usize>().unwrap();
            let bytes = std::fs::read(dir.join("a.raw")).unwrap();
            assert_eq!(bytes.len(), 4 * count, "{algorithm} {size}");
            let values = bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap()));
            assert!(values.into_iter().all(|v| (0.0..=9.0).contains(&v)), "{algorithm} {size}");
        }
    }
}

/// More than the machine has is refused with the estimate, before anything is allocated; where it has more, the test says nothing.
#[test]
fn forty_thousand_squared_is_refused_where_it_does_not_fit() {
    let need = 40_000u64 * 40_000 * 16;
    if histmap::resources::memory_available().is_none_or(|have| have >= need) {
        println!("left out: this machine holds 40000 x 40000");
        return;
    }
    let (code, said) = refused(&["heightmap", "diamond-square", "--size", "40000", "a.raw"]);
    assert_eq!(code, 2);
    assert!(said.contains("40000 x 40000 needs 25.6 GB") || said.contains("40000 x 40000 needs 23.8 GiB"), "{said}");
}

/// Voids and infinities pass through every filter as voids; whole numbers cannot hold them and say where they are.
#[test]
fn maps_of_voids_and_infinities() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let values = [1.0f32, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 5.0, 3.0];
    let void = [f32::NAN; 6];
    for (name, values) in [("some.raw", values), ("void.raw", void)] {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        std::fs::write(dir.join(name), bytes).unwrap();
        let told = ["--size", "3x2", "--type", "f32"];
        for filter in [
            "blur=1",
            "clamp=0,4",
            "normalise=0,1",
            "terrace=2,0",
            "invert",
            "island",
            "thermal=1,0.5",
            "streams=1,0.5",
        ] {
            made(dir, &[&["heightmap", "file", name, "--filter", filter][..], &told, &["b.raw"]].concat());
            let bytes = std::fs::read(dir.join("b.raw")).unwrap();
            let after: Vec<f32> = bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
            for (a, b) in values.iter().zip(&after) {
                assert_eq!(a.is_finite(), b.is_finite(), "{name} {filter}: {after:?}");
            }
        }
        let out = histmap(dir, &["heightmap", "file", name, "--size", "3x2", "--type", "f32", "c.png"]);
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(!out.status.success() && said.contains("column"), "{name}: {said}");
        made(dir, &["heightmap", "file", name, "--size", "3x2", "--type", "f32", "c.tif"]);
    }
}
