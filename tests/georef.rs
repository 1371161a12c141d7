//! `histmap georef`, the real binary: fits, files, refusals.

use std::path::Path;
use std::process::{Command, Output};

fn histmap(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_histmap")).current_dir(folder).args(args).output().unwrap()
}

/// A scan of 120 x 90 with a red right half, and points that put its corners on 40-52 E, 36-45 N; `turn` may spoil a line.
fn scan(folder: &Path, turn: impl Fn(usize, String) -> String) {
    let picture = image::RgbImage::from_fn(120, 90, |x, _| image::Rgb(if x < 60 { [0, 0, 255] } else { [255, 0, 0] }));
    picture.save(folder.join("scan.png")).unwrap();
    let mut text = String::from("#CRS: EPSG:4326\nmapX,mapY,sourceX,sourceY,enable\n");
    for k in 0..16 {
        let (c, l) = ((k % 4) * 40, (k / 4) * 30);
        let (x, y) = (40.0 + c as f64 * 0.1, 45.0 - l as f64 * 0.1);
        text += &turn(k, format!("{x},{y},{c},-{l},1\n"));
    }
    std::fs::write(folder.join("scan.points"), text).unwrap();
}

#[test]
fn a_scan_is_laid_where_its_points_say() {
    let folder = tempfile::tempdir().unwrap();
    scan(folder.path(), |_, line| line);
    let out = histmap(
        folder.path(),
        &["georef", "scan.png", "--gcps", "scan.points", "-o", "out.tif", "--transform", "affine"],
    );
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    // gdallocationinfo -valonly -wgs84 out.tif LON LAT: red, green, blue, opacity.
    let at = |lon: &str, lat: &str| {
        let out = Command::new("gdallocationinfo")
            .current_dir(folder.path())
            .args(["-valonly", "-wgs84", "out.tif", lon, lat])
            .output()
            .unwrap();
        String::from_utf8_lossy(&out.stdout).split_whitespace().map(str::to_string).collect::<Vec<_>>()
    };
    assert_eq!(at("45.94", "40.2"), ["0", "0", "255", "255"]);
    assert_eq!(at("46.06", "40.2"), ["255", "0", "0", "255"]);
    assert_eq!(at("40.05", "44.95"), ["0", "0", "255", "255"]);
    assert_eq!(at("51.95", "36.05"), ["255", "0", "0", "255"]);
}

#[test]
fn a_bad_digit_is_found_and_a_limit_refuses_the_fit() {
    let folder = tempfile::tempdir().unwrap();
    scan(folder.path(), |k, line| if k == 6 { line.replace(",80,", ",30,") } else { line });
    let out = histmap(folder.path(), &["georef", "scan.png", "--gcps", "scan.points", "--transform", "affine"]);
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(said.contains("point 7") && said.contains("of the column (30 should be near 80)"), "{said}");
    let out = histmap(
        folder.path(),
        &["georef", "scan.png", "--gcps", "scan.points", "--transform", "affine", "--max-rmse", "2", "-o", "out.tif"],
    );
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(1));
    assert!(said.contains("scan.points") && said.contains("--max-rmse") && said.contains("point 7"), "{said}");
    assert!(!folder.path().join("out.tif").exists());
}

/// The published crops are drawn in Robinson: an affine fit in the map's own projection beats the plain one by far.
#[test]
fn the_projection_of_a_world_map_is_found() {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/scans");
    if !shared.is_dir() {
        eprintln!("skipped: no {}", shared.display());
        return;
    }
    let scan = shared.join("cliopatria-caucasus-C189-1202.png");
    let points = shared.join("cliopatria-caucasus.points");
    let folder = tempfile::tempdir().unwrap();
    let args = ["georef", scan.to_str().unwrap(), "--gcps", points.to_str().unwrap()];
    let out = histmap(folder.path(), &args);
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    let used = said.lines().find(|l| l.starts_with("used: ")).unwrap();
    assert!(used.contains("Robinson"), "{said}");
    let left_out: f64 = used.split("leave-one-out ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!(left_out <= 1.0, "{used}");
}

#[test]
fn odd_scans_and_points_are_refused_in_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    scan(dir, |_, line| line);
    std::fs::write(dir.join("line.points"), "0 0 40 45\n10 10 41 44\n20 20 42 43\n30 30 43 42\n40 40 44 41\n").unwrap();
    std::fs::write(dir.join("few.points"), "0 0 40 45\n10 10 41 44\n").unwrap();
    std::fs::write(dir.join("empty.png"), "").unwrap();
    for (args, code, words) in [
        (&["georef", "none.png", "--gcps", "scan.points"][..], 1, "none.png"),
        (&["georef", "empty.png", "--gcps", "scan.points"], 1, "empty.png"),
        (&["georef", "scan.png", "--gcps", "none.points"], 1, "none.points"),
        (&["georef", "scan.png"], 1, "give --gcps"),
        (&["georef", "scan.png", "--gcps", "line.points"], 2, "one line"),
        (&["georef", "scan.png", "--gcps", "few.points"], 2, "3 or more"),
        (&["georef", "scan.png", "--gcps", "scan.points", "-o", "out.png"], 2, ".tif"),
        (&["georef", "scan.png", "--gcps", "scan.points", "--prime-meridian", "atlantis"], 2, "pulkovo"),
        (&["georef", "scan.png", "--gcps", "scan.points", "--resolution", "0", "-o", "out.tif"], 2, "above 0"),
    ] {
        let out = histmap(dir, args);
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(words), "{args:?}: {said}");
    }
    assert!(!dir.join("out.tif").exists() && !dir.join("out.png").exists());
}
