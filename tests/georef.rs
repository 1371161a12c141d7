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

/// Registers `name` by the corners of a picture of `cols` x `rows` and returns red, green, blue, opacity at a place of the output.
fn registered(folder: &Path, name: &str, [cols, rows]: [usize; 2]) -> impl Fn(f64, f64) -> [u8; 4] {
    let mut points = String::new();
    for (c, l) in [(0, 0), (cols, 0), (0, rows), (cols, rows), (cols / 2, rows / 2), (cols / 4, rows)] {
        points += &format!("{c} {l} {} {}\n", 40.0 + c as f64 * 0.1, 45.0 - l as f64 * 0.1);
    }
    std::fs::write(folder.join("p.txt"), points).unwrap();
    let out = format!("{name}.out.tif");
    let o = histmap(folder, &["georef", name, "--gcps", "p.txt", "--transform", "affine", "-o", &out]);
    assert!(o.status.success(), "{name}: {}", String::from_utf8_lossy(&o.stderr));
    let d = gdal::Dataset::open(folder.join(&out)).unwrap();
    // Not a row or column more than the picture has.
    assert_eq!(d.raster_size(), (cols, rows), "{name}");
    move |u, v| {
        let at = ((u * cols as f64) as isize, (v * rows as f64) as isize);
        std::array::from_fn(|k| d.rasterband(k + 1).unwrap().read_as::<u8>(at, (1, 1), (1, 1), None).unwrap().data()[0])
    }
}

fn is_near(found: [u8; 4], wanted: [u8; 4], by: u8) -> bool {
    found.iter().zip(wanted).all(|(a, b)| a.abs_diff(b) <= by)
}

/// Red on the left, blue on the right, a white band on top.
fn paint(c: u32, r: u32, cols: u32) -> [u8; 3] {
    if r < 8 {
        [255; 3]
    } else if c < cols / 2 {
        [200, 30, 20]
    } else {
        [20, 60, 200]
    }
}

#[track_caller]
fn assert_painted(name: &str, at: impl Fn(f64, f64) -> [u8; 4], by: u8) {
    for (u, v, wanted) in
        [(0.2, 0.7, [200, 30, 20, 255]), (0.8, 0.7, [20, 60, 200, 255]), (0.2, 0.05, [255, 255, 255, 255])]
    {
        assert!(is_near(at(u, v), wanted, by), "{name} at {u}, {v}: {:?}", at(u, v));
    }
}

#[test]
fn pictures_of_every_kind_are_read_as_what_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let (cols, rows) = (60u32, 40u32);
    let size = [cols as usize, rows as usize];
    let rgb = image::RgbImage::from_fn(cols, rows, |c, r| image::Rgb(paint(c, r, cols)));

    rgb.save(dir.join("plain.png")).unwrap();
    assert_painted("plain", registered(dir, "plain.png", size), 0);

    type Wide = image::ImageBuffer<image::Rgb<u16>, Vec<u16>>;
    let wide = Wide::from_fn(cols, rows, |c, r| image::Rgb(paint(c, r, cols).map(|v| u16::from(v) * 257)));
    wide.save(dir.join("wide.png")).unwrap();
    assert_painted("16 bits", registered(dir, "wide.png", size), 1);

    let veiled = image::RgbaImage::from_fn(cols, rows, |c, r| {
        let [red, green, blue] = paint(c, r, cols);
        image::Rgba([red, green, blue, if r > 30 { 0 } else { 255 }])
    });
    veiled.save(dir.join("veiled.png")).unwrap();
    let at = registered(dir, "veiled.png", size);
    assert_eq!((at(0.2, 0.5)[3], at(0.2, 0.9)[3]), (255, 0));

    let grey = image::GrayImage::from_fn(cols, rows, |c, _| image::Luma([if c < 30 { 40 } else { 220 }]));
    grey.save(dir.join("grey.png")).unwrap();
    let at = registered(dir, "grey.png", size);
    assert_eq!((at(0.2, 0.5), at(0.8, 0.5)), ([40, 40, 40, 255], [220, 220, 220, 255]));

    // By GDAL: inks, and palettes of eight and of four bits.
    let tiff = gdal::DriverManager::get_driver_by_name("GTiff").unwrap();
    let create = |name: &str, bands: usize, options: &[&str]| {
        let options = gdal::raster::RasterCreationOptions::from_iter(options.iter().copied());
        tiff.create_with_band_type_with_options::<u8, _>(dir.join(name), size[0], size[1], bands, &options).unwrap()
    };
    let fill = |d: &gdal::Dataset, band: usize, of: &dyn Fn(u32, u32) -> u8| {
        let values = (0..rows * cols).map(|k| of(k % cols, k / cols)).collect();
        let mut buffer = gdal::raster::Buffer::new((size[0], size[1]), values);
        d.rasterband(band).unwrap().write((0, 0), (size[0], size[1]), &mut buffer).unwrap();
    };
    let inks = create("inks.tif", 4, &["PHOTOMETRIC=CMYK"]);
    (0..3).for_each(|k| fill(&inks, k + 1, &|c, r| 255 - paint(c, r, cols)[k]));
    fill(&inks, 4, &|_, _| 0);
    inks.close().unwrap();
    assert_painted("CMYK", registered(dir, "inks.tif", size), 3);
    for (name, bits) in [("palette8.tif", "NBITS=8"), ("palette4.tif", "NBITS=4")] {
        let d = create(name, 1, &[bits, "PHOTOMETRIC=PALETTE"]);
        let mut table = gdal::raster::ColorTable::new(gdal::raster::PaletteInterpretation::Rgba);
        for (k, [r, g, b]) in (0..).zip([[255u8, 255, 255], [200, 30, 20], [20, 60, 200]]) {
            let entry = gdal::raster::RgbaEntry { r: i16::from(r), g: i16::from(g), b: i16::from(b), a: 255 };
            table.set_color_entry(k, &gdal::raster::ColorEntry::Rgba(entry));
        }
        d.rasterband(1).unwrap().set_color_table(&table);
        fill(&d, 1, &|c, r| if r < 8 { 0 } else { 1 + u8::from(c >= cols / 2) });
        d.close().unwrap();
        assert_painted(name, registered(dir, name, size), 0);
    }

    // A photograph that says it lies on its side: turned a quarter to the right before anything else.
    let mut jpeg = Vec::new();
    let lying = image::imageops::rotate270(&rgb);
    image::codecs::jpeg::JpegEncoder::new_with_quality(&mut jpeg, 95).encode_image(&lying).unwrap();
    // APP1: TIFF header, one entry: tag 0x0112 (orientation), short, 6.
    let exif = b"\xff\xe1\x00\x22Exif\0\0MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
    jpeg.splice(2..2, exif.iter().copied());
    std::fs::write(dir.join("lying.jpg"), jpeg).unwrap();
    assert_painted("EXIF", registered(dir, "lying.jpg", size), 12);

    // The smallest, and one of a single colour.
    image::RgbImage::from_pixel(1, 1, image::Rgb([1, 2, 3])).save(dir.join("one.png")).unwrap();
    std::fs::write(dir.join("p.txt"), "0 0 40 45\n1 0 40.1 45\n0 1 40 44.9\n1 1 40.1 44.9\n").unwrap();
    let o = histmap(dir, &["georef", "one.png", "--gcps", "p.txt", "--transform", "affine", "-o", "one.tif"]);
    assert!(o.status.success(), "{}", String::from_utf8_lossy(&o.stderr));
    assert_eq!(gdal::Dataset::open(dir.join("one.tif")).unwrap().raster_size(), (1, 1));
    let o = histmap(dir, &["trace", "one.tif", "--propose", "one.toml"]);
    assert!(o.status.success(), "{}", String::from_utf8_lossy(&o.stderr));
    let o = histmap(dir, &["trace", "one.tif", "--legend", "one.toml", "-o", "one.gpkg"]);
    assert_ne!(o.status.code(), Some(101), "{}", String::from_utf8_lossy(&o.stderr));
    image::RgbImage::from_pixel(60, 40, image::Rgb([9, 90, 9])).save(dir.join("flat.png")).unwrap();
    drop(registered(dir, "flat.png", size));
    let o = histmap(dir, &["trace", "flat.png.out.tif", "--propose", "flat.toml"]);
    assert!(o.status.success() && String::from_utf8_lossy(&o.stdout).contains("1 colour"));
    let o = histmap(dir, &["trace", "flat.png.out.tif", "--legend", "flat.toml", "-o", "flat.gpkg"]);
    assert!(o.status.success(), "{}", String::from_utf8_lossy(&o.stderr));

    // What is no picture, and half of one.
    std::fs::write(dir.join("text.png"), "no picture").unwrap();
    let half = std::fs::read(dir.join("plain.png")).unwrap();
    std::fs::write(dir.join("half.png"), &half[..half.len() / 2]).unwrap();
    for name in ["text.png", "half.png", "missing.png"] {
        let o = histmap(dir, &["georef", name, "--gcps", "p.txt", "-o", "never.tif"]);
        let said = String::from_utf8_lossy(&o.stderr).into_owned();
        assert!(o.status.code() == Some(1) && said.contains(name) && said.lines().count() == 1, "{said}");
        assert!(!dir.join("never.tif").exists());
    }
}

#[test]
fn a_spline_is_not_drawn_far_beyond_its_points() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let picture = image::RgbImage::from_pixel(400, 300, image::Rgb([90, 160, 90]));
    picture.save(dir.join("scan.png")).unwrap();
    // Points in the middle half, slightly bent.
    let mut text = String::new();
    for (c, l) in (0..5).flat_map(|l| (0..5).map(move |c| (100.0 + 50.0 * f64::from(c), 75.0 + 37.5 * f64::from(l)))) {
        let bend = 0.02 * ((c - 200.0) / 100.0f64).powi(2);
        text += &format!("{c} {l} {} {}\n", 40.0 + c * 0.01 + bend, 45.0 - l * 0.01);
    }
    std::fs::write(dir.join("p.txt"), text).unwrap();
    let covered = |more: &[&str], out: &str| {
        let first = ["georef", "scan.png", "--gcps", "p.txt", "--transform", "tps", "-o", out];
        let o = histmap(dir, &[&first[..], more].concat());
        assert!(o.status.success(), "{}", String::from_utf8_lossy(&o.stderr));
        let d = gdal::Dataset::open(dir.join(out)).unwrap();
        let (w, h) = d.raster_size();
        let alpha = d.rasterband(4).unwrap().read_as::<u8>((0, 0), (w, h), (w, h), None).unwrap();
        alpha.data().iter().filter(|a| **a == 255).count() as f64
    };
    // The hull is 200 x 150 pixels; a tenth of 200 around it, with round corners.
    let (usual, none) = (covered(&[], "usual.tif"), covered(&["--hull-margin", "0"], "none.tif"));
    assert!((none / (200.0 * 150.0) - 1.0).abs() < 0.03, "{none}");
    let grown = 240.0 * 190.0 - (4.0 - std::f64::consts::PI) * 20.0 * 20.0;
    assert!((usual / grown - 1.0).abs() < 0.03, "{usual} against {grown}");
    // What is there already stays.
    let o = histmap(dir, &["georef", "scan.png", "--gcps", "p.txt", "-o", "usual.tif"]);
    assert_eq!(o.status.code(), Some(2), "{}", String::from_utf8_lossy(&o.stderr));
    assert!(String::from_utf8_lossy(&o.stderr).contains("--overwrite"));
    assert!(covered(&["--overwrite"], "usual.tif") > 0.0);
}

#[test]
fn the_overview_shows_the_fit() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    // Black Sea and Caucasus, 36-48 E, 38-46 N, at a twentieth of a degree, one point wrong by ten pixels.
    image::RgbImage::from_pixel(240, 160, image::Rgb([200, 210, 180])).save(dir.join("scan.png")).unwrap();
    let mut text = String::new();
    for k in 0..16 {
        let (c, l) = (30.0 + f64::from(k % 4) * 60.0, 20.0 + f64::from(k / 4) * 40.0);
        let slip = if k == 5 { 10.0 } else { 0.0 };
        text += &format!("{} {l} {} {}\n", c + slip, 36.0 + c * 0.05, 46.0 - l * 0.05);
    }
    std::fs::write(dir.join("p.txt"), text).unwrap();
    let o = histmap(dir, &["georef", "scan.png", "--gcps", "p.txt", "--transform", "affine", "--overview", "fit.png"]);
    assert!(o.status.success(), "{}", String::from_utf8_lossy(&o.stderr));
    assert!(String::from_utf8_lossy(&o.stdout).contains("fit.png"));
    let picture = image::open(dir.join("fit.png")).unwrap().to_rgb8();
    let scale = 1100.0 / 240.0;
    let near = |c: &image::Rgb<u8>, wanted: [u8; 3]| c.0.iter().zip(wanted).all(|(a, b)| a.abs_diff(b) < 50);
    let count = |wanted: [u8; 3], x: f64, y: f64| {
        let (x, y, r) = ((x * scale) as u32, (y * scale) as u32, 22);
        let around = (y - r..=y + r).flat_map(|y| (x - r..=x + r).map(move |x| (x, y)));
        around.filter(|&(x, y)| near(picture.get_pixel(x, y), wanted)).count()
    };
    // The coast at Batumi (41.64 E, 41.65 N), the wrong point in orange, a right one not.
    assert!(count([216, 27, 96], (41.6 - 36.0) / 0.05, (46.0 - 41.65) / 0.05) > 20);
    assert!(count([213, 62, 0], 100.0, 60.0) > 20);
    assert_eq!(count([213, 62, 0], 150.0, 100.0), 0);
}

/// One set of points in every form: the same fit, told to be of that form.
#[test]
fn points_come_in_every_form() {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/scans/gcp-formats");
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    image::RgbImage::from_pixel(7300, 7000, image::Rgb([9, 9, 9])).save(dir.join("large.png")).unwrap();
    let fit = |points: &str, more: &[&str]| {
        let o =
            histmap(dir, &[&["georef", "large.png", "--transform", "similarity", "--gcps", points][..], more].concat());
        let said = String::from_utf8_lossy(&o.stdout).into_owned();
        assert!(o.status.success(), "{points}: {}", String::from_utf8_lossy(&o.stderr));
        said
    };
    if shared.is_dir() {
        let mut fits = std::collections::BTreeSet::new();
        for (name, form) in [
            ("gcps-qgis.points", "QGIS"),
            ("gcps-gdal.txt", "GDAL"),
            ("gcps-arcgis-csv.csv", "ArcGIS"),
            ("gcps-arcgis-tsv.txt", "ArcGIS"),
            ("gcps-qgis-projection.points", "QGIS"),
        ] {
            let said = fit(shared.join(name).to_str().unwrap(), &["--crs", "EPSG:3035"]);
            assert!(said.contains(form), "{name}: {said}");
            let used = said.lines().find(|l| l.starts_with("used: ")).unwrap().to_string();
            fits.insert(used);
        }
        assert_eq!(fits.len(), 1, "{fits:?}");
    } else {
        eprintln!("skipped: no {}", shared.display());
    }
    // A world file: the first pixel's centre is at 40.005, 44.995.
    std::fs::write(dir.join("large.pgw"), "0.01\n0\n0\n-0.01\n40.005\n44.995\n").unwrap();
    let said = fit("large.pgw", &[]);
    assert!(said.contains("world file") && said.contains("RMSE 0.00 px"), "{said}");
    assert!(
        said.lines().any(|l| l.split_whitespace().take(5).eq(["1", "0.00", "0.00", "40.0000", "45.0000"])),
        "{said}"
    );
    // Longitudes from Ferro are 17° 40' more than from Greenwich.
    std::fs::write(dir.join("ferro.txt"), "0 0 60 45\n7300 0 61 45\n0 7000 60 44\n7300 7000 61 44\n").unwrap();
    let said = fit("ferro.txt", &["--prime-meridian", "ferro"]);
    assert!(said.contains("42.3333"), "{said}");
}
