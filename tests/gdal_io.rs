//! What is written is read back by other programs: gdalinfo, ogrinfo, gdal_rasterize, rio-cogeo, sqlite through ogrinfo.
//! A test whose program is missing says so and passes.

use geo::{Geometry, LineString, MultiPolygon, Point, Polygon, line_string, point, polygon};
use histmap::Error;
use histmap::gdal_io::*;
use histmap::grid::{Crs, Extent, GeoTransform, Grid, Window, Xy};
use histmap::raster::Raster;
use histmap::vector::Feature;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

fn utm38() -> Crs {
    crs("EPSG:32638", "--crs").unwrap()
}

fn grid(cols: usize, rows: usize) -> Grid {
    Grid {
        crs: utm38(),
        transform: GeoTransform { origin_x: 400_000.0, origin_y: 4_700_000.0, cell_width: 250.0, cell_height: 250.0 },
        cols,
        rows,
    }
}

/// Hills, with a corner of NaN.
fn hills(cols: usize, rows: usize) -> Raster<f32> {
    let mut values: Vec<f32> = (0..cols * rows)
        .map(|k| ((k % cols) as f32 * 0.02).sin() * 900.0 + ((k / cols) as f32 * 0.013).cos() * 700.0 + (k % 7) as f32)
        .collect();
    for row in 0..rows / 8 {
        values[row * cols..row * cols + cols / 8].fill(f32::NAN);
    }
    Raster::from_values(cols, rows, values)
}

/// Standard output of `program`; `None`, with a line, where it is not installed.
fn oracle(program: &str, arguments: &[&str]) -> Option<String> {
    match Command::new(program).args(arguments).output() {
        Err(_) => {
            println!("{program} is not installed: skipped");
            None
        }
        Ok(out) => {
            assert!(out.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
            Some(String::from_utf8_lossy(&out.stdout).into_owned())
        }
    }
}

fn names_in(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn elevation_options() -> CogOptions {
    CogOptions {
        nodata: Some(-9999.0),
        band_names: vec!["elevation".into()],
        unit: "m".into(),
        metadata: vec![("VERTICAL_DATUM".into(), "EGM96 geoid, <about> & \"roughly\"".into())],
        ..Default::default()
    }
}

#[test]
fn elevation_is_a_cog_that_others_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("elevation.tif");
    let (g, r) = (grid(1500, 1100), hills(1500, 1100));
    assert_eq!(write_cog(&path, &g, &[&r], &elevation_options()).unwrap(), std::slice::from_ref(&path));
    assert_eq!(names_in(folder.path()), ["elevation.tif"]);

    let name = path.to_str().unwrap();
    if let Some(info) = oracle("gdalinfo", &[name]) {
        for part in [
            "LAYOUT=COG",
            "COMPRESSION=DEFLATE",
            "PREDICTOR=3",
            "ID[\"EPSG\",32638]",
            "Origin = (400000.000000000000000,4700000.000000000000000)",
            "Pixel Size = (250.000000000000000,-250.000000000000000)",
            "NoData Value=-9999",
            "Block=512x512 Type=Float32",
            "Overviews: 750x550, 375x275",
            "AREA_OR_POINT=Area",
            "VERTICAL_DATUM=EGM96 geoid, <about> & \"roughly\"",
            "Description = elevation",
            "Unit Type: m",
        ] {
            // PREDICTOR is printed from GDAL 3.7 on.
            assert!(info.contains(part) || part == "PREDICTOR=3", "no '{part}' in\n{info}");
        }
    }
    if let Some(said) = oracle("rio", &["cogeo", "validate", name]) {
        assert!(said.contains("is a valid cloud optimized GeoTIFF"), "{said}");
    }

    let back = read_raster(&path, &RasterReadOptions::default()).unwrap();
    assert_eq!((&back.grid, back.registration, back.unit.as_str()), (&g, Registration::Area, "m"));
    assert_eq!(back.raster.values.len(), r.values.len());
    assert!(back.raster.values.iter().zip(&r.values).all(|(a, b)| a == b || (a.is_nan() && b.is_nan())));
}

#[test]
fn average_overviews_leave_nodata_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tif");
    let (g, mut r) = (grid(600, 600), Raster::filled(600, 600, 100f32));
    // Every second column is nodata: with it averaged in, overviews would be near -4950.
    r.values.iter_mut().step_by(2).for_each(|v| *v = f32::NAN);
    write_cog(&path, &g, &[&r], &elevation_options()).unwrap();
    // gdal_translate -ovr is from GDAL 3.6 on: -outsize reads the overview.
    let half = folder.path().join("half.tif");
    let arguments = ["-q", "-outsize", "300", "300", path.to_str().unwrap(), half.to_str().unwrap()];
    if oracle("gdal_translate", &arguments).is_some() {
        let half = read_raster(&half, &RasterReadOptions::default()).unwrap();
        assert!(half.raster.values.iter().all(|v| *v == 100.0));
    }
}

fn regions() -> (Grid, Raster<u16>, Raster<u16>, CogOptions) {
    let g = grid(1200, 900);
    let first = Raster::from_values(1200, 900, (0..1200 * 900).map(|k| ((k % 1200) / 400) as u16).collect());
    let second = Raster::from_values(1200, 900, (0..1200 * 900).map(|k| u16::from(k % 1200 > 1100)).collect());
    let text = |values: &[&str]| ColumnValues::Text(values.iter().map(|v| v.to_string()).collect());
    let column = |name: &str, usage, values| AttributeColumn { name: name.into(), usage, values };
    let options = CogOptions {
        overviews: Overviews::Mode,
        nodata: None,
        band_names: vec!["polity".into(), "contested".into()],
        colours: vec![[0, 0, 0, 0], [200, 30, 30, 255], [30, 90, 200, 255]],
        categories: vec!["unclaimed".into(), "Kingdom of Georgia".into(), "Shirvan & <others>".into()],
        attributes: Some(AttributeTable {
            columns: vec![
                column("value", ColumnUse::Value, ColumnValues::Integer(vec![0, 1, 2])),
                column("name", ColumnUse::Name, text(&["unclaimed", "Kingdom of Georgia", "Shirvan & <others>"])),
                column("name_ru", ColumnUse::Generic, text(&["", "Грузинское царство", "Ширван"])),
                column("red", ColumnUse::Red, ColumnValues::Integer(vec![0, 200, 30])),
                column("green", ColumnUse::Green, ColumnValues::Integer(vec![0, 30, 90])),
                column("blue", ColumnUse::Blue, ColumnValues::Integer(vec![0, 30, 200])),
                column("area_km2", ColumnUse::Generic, ColumnValues::Real(vec![0.5, 1.25, 3.0])),
            ],
        }),
        ..Default::default()
    };
    (g, first, second, options)
}

#[test]
fn regions_carry_colours_names_and_attributes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("regions.tif");
    let (g, first, second, options) = regions();
    write_cog(&path, &g, &[&first, &second], &options).unwrap();
    assert_eq!(names_in(folder.path()), ["regions.tif", "regions.tif.aux.xml"]);
    if let Some(info) = oracle("gdalinfo", &[path.to_str().unwrap()]) {
        for part in [
            "LAYOUT=COG",
            "Band 1 Block=512x512 Type=UInt16, ColorInterp=Palette",
            "Overviews: 600x450",
            "Color Table (RGB with 3 entries)",
            "1: 200,30,30,255",
            "1: Kingdom of Georgia",
            "2: Shirvan & <others>",
            "<GDALRasterAttributeTable tableType=\"thematic\">",
            "<F>Грузинское царство</F>",
            "Description = contested",
        ] {
            assert!(info.contains(part), "no '{part}' in\n{info}");
        }
        assert!(!info.contains("Alpha"), "the second band is no opacity:\n{info}");
    }
    if let Some(said) = oracle("rio", &["cogeo", "validate", path.to_str().unwrap()]) {
        assert!(said.contains("is a valid cloud optimized GeoTIFF"), "{said}");
    }
    let second_back = read_raster(&path, &RasterReadOptions { band: 2, ..Default::default() }).unwrap();
    assert!(second_back.raster.values.iter().zip(&second.values).all(|(a, b)| *a == f32::from(*b)));

    // Without anything for it, an older sidecar goes.
    write_cog(&path, &g, &[&first], &CogOptions::default()).unwrap();
    assert_eq!(names_in(folder.path()), ["regions.tif"]);
}

#[test]
fn cog_bytes_do_not_depend_on_threads_or_runs() {
    let folder = tempfile::tempdir().unwrap();
    let (g, r) = (grid(1500, 1100), hills(1500, 1100));
    let bytes = |name: &str, threads| {
        let path = folder.path().join(name);
        write_cog(&path, &g, &[&r], &CogOptions { threads, ..elevation_options() }).unwrap();
        std::fs::read(path).unwrap()
    };
    let first = bytes("a.tif", 1);
    for (name, threads) in [("b.tif", 1), ("c.tif", 2), ("d.tif", 8)] {
        assert!(bytes(name, threads) == first, "{threads} threads differ");
    }
    let (g, one, two, options) = regions();
    let bytes = |name: &str, threads| {
        let path = folder.path().join(name);
        write_cog(&path, &g, &[&one, &two], &CogOptions { threads, ..options.clone() }).unwrap();
        std::fs::read(path).unwrap()
    };
    assert!(bytes("e.tif", 1) == bytes("f.tif", 8));
}

#[test]
fn zstd_is_used_where_there_is_any() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("z.tif");
    let options = CogOptions { compression: Compression::Zstd { level: 9 }, ..elevation_options() };
    write_cog(&path, &grid(600, 600), &[&hills(600, 600)], &options).unwrap();
    if let Some(info) = oracle("gdalinfo", &[path.to_str().unwrap()]) {
        let expected = if has_compression("ZSTD") { "COMPRESSION=ZSTD" } else { "COMPRESSION=DEFLATE" };
        assert!(info.contains(expected), "{info}");
    }
}

#[test]
fn impossible_cogs_are_refused_and_leave_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tif");
    let (g, r) = (grid(4, 3), hills(4, 3));
    let refused = |grid: &Grid, options: &CogOptions| write_cog(&path, grid, &[&r], options).unwrap_err();
    assert!(matches!(refused(&grid(4, 4), &CogOptions::default()), Error::GridMismatch { .. }));
    assert!(matches!(refused(&g, &CogOptions { block_size: 100, ..Default::default() }), Error::Argument { .. }));
    assert!(matches!(refused(&g, &CogOptions { nodata: Some(0.1), ..Default::default() }), Error::Argument { .. }));
    let deflate = CogOptions { compression: Compression::Deflate { level: 0 }, ..Default::default() };
    assert!(matches!(refused(&g, &deflate), Error::Argument { .. }));
    let nowhere = folder.path().join("no/such/folder/a.tif");
    let e = write_cog(&nowhere, &g, &[&r], &CogOptions::default()).unwrap_err();
    assert!(matches!(e, Error::Write { .. }) && e.to_string().contains("there is no folder"), "{e}");
    assert!(names_in(folder.path()).is_empty());
}

// --- rasters in ---

/// An ASCII grid: small, readable, and read by GDAL.
fn ascii_grid(folder: &Path, name: &str, values: &str) -> std::path::PathBuf {
    let path = folder.join(name);
    let header = "ncols 3\nnrows 2\nxllcorner 400000\nyllcorner 4600000\ncellsize 100\nNODATA_value -9999\n";
    std::fs::write(&path, format!("{header}{values}\n")).unwrap();
    path
}

/// A VRT over an ASCII grid: any geotransform, scale and offset.
fn vrt(folder: &Path, name: &str, transform: &str, extra: &str) -> std::path::PathBuf {
    ascii_grid(folder, "base.asc", "1 2 3\n4 5 -9999");
    let path = folder.join(name);
    let xml = format!(
        "<VRTDataset rasterXSize=\"3\" rasterYSize=\"2\"><SRS>EPSG:32638</SRS>{transform}\
         <VRTRasterBand dataType=\"Float32\" band=\"1\"><NoDataValue>-9999</NoDataValue>{extra}<SimpleSource>\
         <SourceFilename relativeToVRT=\"1\">base.asc</SourceFilename><SourceBand>1</SourceBand></SimpleSource>\
         </VRTRasterBand></VRTDataset>"
    );
    std::fs::write(&path, xml).unwrap();
    path
}

/// Values with NaN written as -1, for comparing.
fn plain(raster: &Raster<f32>) -> Vec<f32> {
    raster.values.iter().map(|v| if v.is_nan() { -1.0 } else { *v }).collect()
}

#[test]
fn nodata_nan_and_infinity_become_nan() {
    let folder = tempfile::tempdir().unwrap();
    let path = ascii_grid(folder.path(), "a.asc", "1 nan 3.5\n-9999 5 -3.4028234e38");
    let utm = utm38();
    let file = read_raster(&path, &RasterReadOptions { crs: Some(&utm), ..Default::default() }).unwrap();
    assert_eq!(plain(&file.raster), [1.0, -1.0, 3.5, -1.0, 5.0, -1.0]);
    let t = file.grid.transform;
    assert_eq!((t.origin_x, t.origin_y, t.cell_width, t.cell_height), (400_000.0, 4_600_200.0, 100.0, 100.0));
}

#[test]
fn scale_and_offset_are_applied_and_south_up_is_turned() {
    let folder = tempfile::tempdir().unwrap();
    let up = "<GeoTransform>400000, 100, 0, 4600000, 0, 100</GeoTransform>";
    let path = vrt(folder.path(), "a.vrt", up, "<Offset>10</Offset><Scale>0.5</Scale>");
    let file = read_raster(&path, &RasterReadOptions::default()).unwrap();
    assert_eq!(plain(&file.raster), [12.0, 12.5, -1.0, 10.5, 11.0, 11.5]);
    assert_eq!(file.grid.transform.origin_y, 4_600_200.0);
    let window = Window { col: 1, row: 0, cols: 2, rows: 1 };
    let part = read_raster_window(&path, window, &RasterReadOptions::default()).unwrap();
    assert_eq!((plain(&part.raster), part.grid), (vec![12.5, -1.0], file.grid.crop(window)));
}

#[test]
fn a_window_is_the_crop_of_the_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tif");
    let (g, r) = (grid(70, 50), hills(70, 50));
    write_cog(&path, &g, &[&r], &elevation_options()).unwrap();
    let window = Window { col: 20, row: 11, cols: 30, rows: 39 };
    let part = read_raster_window(&path, window, &RasterReadOptions::default()).unwrap();
    assert_eq!((part.raster, part.grid), (r.crop(window), g.crop(window)));
    for bad in [
        Window { col: -1, row: 0, cols: 2, rows: 2 },
        Window { col: 41, row: 12, cols: 30, rows: 39 },
        Window { col: 0, row: 0, cols: 0, rows: 1 },
        Window { col: i64::MAX, row: 0, cols: usize::MAX, rows: 1 },
    ] {
        let e = read_raster_window(&path, bad, &RasterReadOptions::default()).unwrap_err();
        assert!(matches!(e, Error::Argument { .. }), "{e}");
    }
}

#[test]
fn bytes_read_as_the_file_does() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tif");
    write_cog(&path, &grid(70, 50), &[&hills(70, 50)], &elevation_options()).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let source = Source::Bytes { name: "a.tif", bytes: &bytes };
    let (a, b) =
        (read_raster(source, &RasterReadOptions::default()), read_raster(&path, &RasterReadOptions::default()));
    let (a, b) = (a.unwrap(), b.unwrap());
    assert_eq!((a.grid, plain(&a.raster)), (b.grid, plain(&b.raster)));
}

#[test]
fn point_registration_keeps_the_cell_around_the_point() {
    let folder = tempfile::tempdir().unwrap();
    let from = ascii_grid(folder.path(), "a.asc", "1 2 3\n4 5 6");
    let path = folder.path().join("point.tif");
    let arguments =
        ["-q", "-a_srs", "EPSG:32638", "-mo", "AREA_OR_POINT=Point", from.to_str().unwrap(), path.to_str().unwrap()];
    if oracle("gdal_translate", &arguments).is_some() {
        let info = raster_info(&path, &RasterReadOptions::default()).unwrap();
        assert_eq!((info.registration, info.grid.transform.origin_x), (Registration::Point, 400_000.0));
    }
}

#[test]
fn a_geographic_raster_keeps_its_degrees() {
    let folder = tempfile::tempdir().unwrap();
    let path = ascii_grid(folder.path(), "a.asc", "1 2 3\n4 5 6");
    let wgs84 = crs(WGS84, "--dem-crs").unwrap();
    let options = RasterReadOptions { crs: Some(&wgs84), ..Default::default() };
    assert!(read_raster(&path, &options).unwrap().grid.crs.is_geographic);
}

#[test]
fn bad_rasters_are_refused_in_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let say = |path: &Path| read_raster(path, &RasterReadOptions::default()).unwrap_err().to_string();

    let no_crs = ascii_grid(f, "no_crs.asc", "1 2 3\n4 5 6");
    assert!(say(&no_crs).contains("no coordinate reference system; state it with --dem-crs"), "{}", say(&no_crs));
    let rotated = vrt(f, "r.vrt", "<GeoTransform>0, 100, 7, 0, 7, -100</GeoTransform>", "");
    assert!(say(&rotated).contains("rotated geotransform"), "{}", say(&rotated));
    let mirrored = vrt(f, "m.vrt", "<GeoTransform>0, -100, 0, 0, 0, -100</GeoTransform>", "");
    assert!(say(&mirrored).contains("east to west"), "{}", say(&mirrored));
    let unplaced = vrt(f, "u.vrt", "", "");
    assert!(say(&unplaced).contains("no geotransform"), "{}", say(&unplaced));
    let gcps = "<GCPList Projection=\"EPSG:4326\"><GCP Id=\"1\" Pixel=\"0\" Line=\"0\" X=\"1\" Y=\"2\"/>\
                <GCP Id=\"2\" Pixel=\"1\" Line=\"0\" X=\"2\" Y=\"2\"/></GCPList>";
    let by_points = vrt(f, "g.vrt", gcps, "");
    assert!(say(&by_points).contains("control points"), "{}", say(&by_points));

    let whole = f.join("whole.tif");
    write_cog(&whole, &grid(900, 900), &[&hills(900, 900)], &elevation_options()).unwrap();
    let bytes = std::fs::read(&whole).unwrap();
    let cut = f.join("cut.tif");
    // In the values, in the directory, in the header, after two bytes.
    for keep in [bytes.len() / 2, 600, 100, 7, 2] {
        std::fs::write(&cut, &bytes[..keep]).unwrap();
        let e = read_raster(&cut, &RasterReadOptions::default()).unwrap_err();
        assert!(matches!(e, Error::Content { .. }) && e.to_string().contains("cut.tif"), "{keep} bytes: {e}");
        assert!(e.to_string().contains("complete raster"), "{keep} bytes: {e}");
    }
    let json = f.join("a.geojson");
    std::fs::write(&json, r#"{"type":"FeatureCollection","features":[]}"#).unwrap();
    assert!(say(&json).contains("expected a complete raster"), "{}", say(&json));
    assert!(matches!(read_raster(f, &RasterReadOptions::default()), Err(Error::Content { .. })));
    let empty = Source::Bytes { name: "data/none.tif", bytes: &[] };
    let e = read_raster(empty, &RasterReadOptions::default()).unwrap_err().to_string();
    assert!(e.starts_with("data/none.tif: the file is empty"), "{e}");
}

#[test]
fn a_raster_beyond_memory_is_refused_before_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = vrt(folder.path(), "a.vrt", "<GeoTransform>0, 1, 0, 0, 0, -1</GeoTransform>", "");
    let huge = std::fs::read_to_string(&path)
        .unwrap()
        .replace("rasterXSize=\"3\"", "rasterXSize=\"2000000000\"")
        .replace("rasterYSize=\"2\"", "rasterYSize=\"2000000000\"");
    std::fs::write(&path, huge).unwrap();
    let e = read_raster(&path, &RasterReadOptions::default()).unwrap_err();
    assert!(matches!(e, Error::TooLarge { .. }), "{e}");
    assert!(
        e.to_string().contains("2000000000 x 2000000000 cells need about 16000.0 PB") || e.to_string().contains("PB"),
        "{e}"
    );
    let small = RasterReadOptions { max_bytes: Some(100), ..Default::default() };
    let window = Window { col: 0, row: 0, cols: 3, rows: 2 };
    assert!(read_raster_window(&path, window, &small).is_ok());
    assert!(matches!(read_raster_window(&path, Window { cols: 30, ..window }, &small), Err(Error::TooLarge { .. })));
}

// --- vectors in ---

fn features_of(name: &str, text: &str) -> Result<Vec<VectorLayer>, Error> {
    read_layers(Source::Bytes { name, bytes: text.as_bytes() }, None)
}

#[test]
fn attributes_come_as_json_and_geometries_as_geo() {
    let text = r#"{"type":"FeatureCollection","name":"claims","features":[
        {"type":"Feature","properties":{"name":"Картли","n":3,"x":1.5,"yes":true,"list":["a","b"],"years":[1200,1210],
            "empty":[],"deep":{"k":[1]},"nothing":null,"date":"1200-03-01"},
         "geometry":{"type":"Polygon","coordinates":[[[0,0,9],[2,0,9],[2,2,9],[0,0,9]],[[1,0.5],[1.5,0.5],[1.5,1],[1,0.5]]]}},
        {"type":"Feature","properties":{"name":""},"geometry":null},
        {"type":"Feature","properties":{},"geometry":{"type":"GeometryCollection","geometries":[
            {"type":"Point","coordinates":[1,2]},{"type":"LineString","coordinates":[[0,0],[1,1]]}]}},
        {"type":"Feature","properties":{},"geometry":{"type":"MultiPolygon","coordinates":[]}}]}"#;
    let layers = features_of("a.geojson", text).unwrap();
    assert_eq!((layers.len(), layers[0].name.as_str()), (1, "claims"));
    assert_eq!(layers[0].crs.as_ref().unwrap().name, "EPSG:4326");
    let [first, second, third, fourth] = &layers[0].features[..] else { panic!() };
    assert_eq!(
        Value::Object(first.properties.clone()),
        json!({"name": "Картли", "n": 3, "x": 1.5, "yes": true, "list": ["a", "b"], "years": [1200, 1210], "empty": [],
               "deep": {"k": [1]}, "nothing": null, "date": "1200-03-01"})
    );
    let Some(Geometry::Polygon(p)) = &first.geometry else { panic!() };
    assert_eq!((p.exterior().0.len(), p.interiors().len()), (4, 1));
    assert_eq!((&second.geometry, second.properties.len()), (&None, 1));
    let Some(Geometry::GeometryCollection(c)) = &third.geometry else { panic!() };
    assert_eq!(c.0, [point!(x: 1.0, y: 2.0).into(), Geometry::from(line_string![(x: 0.0, y: 0.0), (x: 1.0, y: 1.0)])]);
    assert_eq!(fourth.geometry, None);
}

#[test]
fn curves_become_lines() {
    // CSV with WKT: the plainest way to a curve.
    let text = "WKT,name\n\"CIRCULARSTRING(0 0,1 1,2 0)\",arc\n\"CURVEPOLYGON(CIRCULARSTRING(0 0,4 0,0 0))\",disc\n";
    let layers = features_of("a.csv", text).unwrap();
    let Some(Geometry::LineString(arc)) = &layers[0].features[0].geometry else { panic!("{layers:?}") };
    assert!(arc.0.len() > 10 && arc.0.iter().all(|c| ((c.x - 1.0).hypot(c.y) - 1.0).abs() < 1e-9));
    assert!(matches!(&layers[0].features[1].geometry, Some(Geometry::Polygon(_))));
    assert_eq!(layers[0].crs, None);
}

#[test]
fn layers_are_brought_to_degrees() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.gpkg");
    let to_utm = Transformer::new(&crs(WGS84, "").unwrap(), &utm38()).unwrap();
    let at = to_utm.point(Xy { x: 44.8, y: 41.7 }).unwrap();
    let feature = Feature { geometry: Some(point!(x: at.x, y: at.y).into()), properties: Default::default() };
    let utm = utm38();
    write_gpkg(&path, &[layer("towns", &utm, GeometryKind::Point, &[feature])], &GpkgOptions::default()).unwrap();
    let layers = read_features_wgs84(&path, &VectorReadOptions::default()).unwrap();
    let Some(Geometry::Point(p)) = layers[0].features[0].geometry else { panic!() };
    assert!((p.x() - 44.8).abs() < 1e-9 && (p.y() - 41.7).abs() < 1e-9, "{p:?}");

    // The same metres taken for degrees have no place on the earth.
    let degrees = crs(WGS84, "").unwrap();
    let options = VectorReadOptions { crs: Some(&degrees), ..Default::default() };
    let e = read_features_wgs84(&path, &options).unwrap_err().to_string();
    assert!(e.contains("layer 'towns', feature 1") && e.contains("--borders-crs"), "{e}");

    let csv = Source::Bytes { name: "a.csv", bytes: b"WKT,name\n\"POINT(44 41)\",a\n" };
    let e = read_features_wgs84(csv, &VectorReadOptions::default()).unwrap_err();
    assert!(matches!(e, Error::MissingCrs { flag: "--borders-crs", .. }), "{e}");
    let options = VectorReadOptions { crs: Some(&degrees), ..Default::default() };
    assert_eq!(read_features_wgs84(csv, &options).unwrap()[0].features.len(), 1);
}

#[test]
fn a_shapefile_without_prj_has_no_crs() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("a.geojson");
    let text = r#"{"type":"FeatureCollection","features":[{"type":"Feature","properties":{"a":1},
        "geometry":{"type":"Point","coordinates":[44,41]}}]}"#;
    std::fs::write(&json, text).unwrap();
    let shp = folder.path().join("a.shp");
    if oracle("ogr2ogr", &[shp.to_str().unwrap(), json.to_str().unwrap()]).is_some() {
        std::fs::remove_file(folder.path().join("a.prj")).unwrap();
        let layers = read_layers(&shp, None).unwrap();
        assert_eq!((&layers[0].crs, layers[0].features.len()), (&None, 1));
        // Cut in the values: an error, not fewer features.
        let bytes = std::fs::read(&shp).unwrap();
        std::fs::write(&shp, &bytes[..bytes.len() - 10]).unwrap();
        assert!(matches!(read_layers(&shp, None), Err(Error::Content { .. })));
    }
}

#[test]
fn bad_vector_files_are_refused_in_a_sentence() {
    let good = r#"{"type":"FeatureCollection","features":[{"type":"Feature","properties":{"a":1},"geometry":null}]}"#;
    for keep in [good.len() - 1, good.len() / 2, 10, 1] {
        let e = features_of("borders.geojson", &good[..keep]).unwrap_err();
        assert!(matches!(e, Error::Content { .. }), "{keep}: {e}");
        assert!(e.to_string().starts_with("borders.geojson"), "{keep}: {e}");
    }
    assert!(features_of("a.geojson", "").unwrap_err().to_string().contains("the file is empty"));
    assert!(features_of("a.txt", "hello").unwrap_err().to_string().contains("expected a complete vector file"));
    let e = read_layers(Path::new("no/such/file.geojson"), None).unwrap_err();
    assert!(matches!(e, Error::Read { .. }), "{e}");
}

// --- GeoPackage out ---

fn layer<'a>(name: &'a str, crs: &'a Crs, geometry: GeometryKind, features: &'a [Feature]) -> GpkgLayer<'a> {
    GpkgLayer { name, identifier: "", description: "", crs, geometry, fields: &[], features }
}

fn feature(geometry: impl Into<Geometry<f64>>, properties: Value) -> Feature {
    let Value::Object(properties) = properties else { panic!() };
    Feature { geometry: Some(geometry.into()), properties }
}

fn square(x: f64, y: f64) -> Polygon<f64> {
    polygon![(x: x, y: y), (x: x + 1000.0, y: y), (x: x + 1000.0, y: y + 1000.0), (x: x, y: y + 1000.0)]
}

fn write_sample(path: &Path) {
    let utm = utm38();
    let polities = [
        feature(square(4e5, 4.6e6), json!({"code": 1, "name": "It's <Georgia>", "area_km2": 1, "sources": ["a", "b"]})),
        feature(square(5e5, 4.6e6), json!({"code": 2, "name": "Ширван", "area_km2": 1.5, "note": null})),
    ];
    let places = [feature(Point::new(4.5e5, 4.6e6), json!({"name": "Tbilisi", "kind": "capital", "walled": true}))];
    let lines = [feature(line_string![(x: 4e5, y: 4.6e6), (x: 5e5, y: 4.7e6)], json!({"rank": 1, "fid": 7}))];
    let classes = [(1, "It's <Georgia>".to_string(), [200, 30, 30]), (2, "Ширван".to_string(), [30, 90, 200])];
    let style = |layer, style: styles::Style| LayerStyle { layer, name: "", qml: style.qml(), sld: style.sld(layer) };
    let layers = [
        GpkgLayer {
            identifier: "Polities of 1200",
            description: "Claims that hold in 1200 CE",
            fields: &["code", "name", "name_ru"],
            ..layer("polities", &utm, GeometryKind::MultiPolygon, &polities)
        },
        layer("places", &utm, GeometryKind::Point, &places),
        layer("rivers", &utm, GeometryKind::MultiLineString, &lines),
    ];
    let styles = [
        style("polities", styles::polygons(&classes)),
        style("places", styles::places()),
        style("rivers", styles::rivers()),
    ];
    write_gpkg(path, &layers, &GpkgOptions { styles: &styles, ..Default::default() }).unwrap();
}

#[test]
fn a_geopackage_is_read_by_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("regions.gpkg");
    write_sample(&path);
    assert_eq!(names_in(folder.path()), ["regions.gpkg"]);
    let name = path.to_str().unwrap();
    if let Some(info) = oracle("ogrinfo", &["-ro", "-al", name]) {
        for part in [
            "IDENTIFIER=Polities of 1200",
            "DESCRIPTION=Claims that hold in 1200 CE",
            "Geometry: Multi Polygon",
            "ID[\"EPSG\",32638]",
            "code: Integer64",
            "name: String",
            "name_ru: String",
            "area_km2: Real",
            "area_km2 (Real) = 1.5",
            "name (String) = It's <Georgia>",
            "name (String) = Ширван",
            "sources (String) = [\"a\",\"b\"]",
            "walled (Integer64) = 1",
            "Geometry: Multi Line String",
            "FID Column = fid_",
            "Layer name: layer_styles",
            "useAsDefault (Integer(Boolean)) = 1",
        ] {
            assert!(info.contains(part), "no '{part}' in\n{info}");
        }
    }
    // What QGIS asks for when a layer is opened.
    let query = "SELECT styleQML FROM layer_styles WHERE f_table_schema='' AND f_table_name='places' \
                 AND f_geometry_column='geom' ORDER BY useAsDefault DESC LIMIT 1";
    if let Some(info) = oracle("ogrinfo", &["-ro", name, "-sql", query]) {
        assert!(info.contains("categorizedSymbol") && info.contains("Feature Count: 1"), "{info}");
    }
    let index = "SELECT count(*) AS n FROM sqlite_master WHERE name LIKE 'rtree_%_geom'";
    if let Some(info) = oracle("ogrinfo", &["-ro", name, "-sql", index]) {
        assert!(info.contains("n (Integer) = 3"), "{info}");
    }
}

#[test]
fn a_geopackage_is_read_back_without_its_styles() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("regions.gpkg");
    write_sample(&path);
    let layers = read_features_wgs84(&path, &VectorReadOptions::default()).unwrap();
    let names: Vec<&str> = layers.iter().map(|l| l.name.as_str()).collect();
    assert_eq!(names, ["polities", "places", "rivers"]);
    assert_eq!(layers[0].features[0].properties["name"], "It's <Georgia>");
    assert_eq!(layers[0].features[1].properties["area_km2"], 1.5);
}

#[test]
fn geopackage_bytes_do_not_depend_on_the_clock() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (folder.path().join("a.gpkg"), folder.path().join("b.gpkg"));
    write_sample(&a);
    std::thread::sleep(std::time::Duration::from_millis(1100));
    std::thread::scope(|s| s.spawn(|| write_sample(&b)).join().unwrap());
    let (a, b) = (std::fs::read(a).unwrap(), std::fs::read(b).unwrap());
    let differing: Vec<usize> = (0..a.len().min(b.len())).filter(|k| a[*k] != b[*k]).collect();
    assert!(
        a.len() == b.len() && differing.is_empty(),
        "{} bytes differ, first at {:?}",
        differing.len(),
        differing.first()
    );
}

#[test]
fn impossible_geopackages_are_refused_and_leave_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.gpkg");
    let utm = utm38();
    let wrong = [feature(Point::new(0.0, 0.0), json!({}))];
    let refused = |layers: &[GpkgLayer], options: &GpkgOptions| write_gpkg(&path, layers, options).unwrap_err();
    let e = refused(&[layer("rivers", &utm, GeometryKind::LineString, &wrong)], &GpkgOptions::default());
    assert!(e.to_string().contains("layer 'rivers', feature 1"), "{e}");
    for bad in ["", "a b", "x; drop", "gpkg_contents"] {
        refused(&[layer(bad, &utm, GeometryKind::Point, &[])], &GpkgOptions::default());
    }
    let style = [LayerStyle { layer: "none", name: "", qml: String::new(), sld: String::new() }];
    refused(&[layer("a", &utm, GeometryKind::Point, &[])], &GpkgOptions { styles: &style, ..Default::default() });
    assert!(names_in(folder.path()).is_empty());
}

// --- polygons to cells ---

/// A star: simple, with edges in all directions.
fn star(cx: f64, cy: f64, points: usize, seed: u64) -> Polygon<f64> {
    let mut state = seed;
    let mut radius = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        2000.0 + 9000.0 * ((state >> 33) as f64 / (1u64 << 31) as f64)
    };
    let step = std::f64::consts::TAU / points as f64;
    let ring: LineString<f64> =
        (0..points).map(|k| (k as f64 * step, radius())).map(|(a, r)| (cx + r * a.cos(), cy + r * a.sin())).collect();
    Polygon::new(ring, vec![])
}

#[test]
fn cells_are_those_of_gdal_rasterize() {
    let folder = tempfile::tempdir().unwrap();
    let g = grid(100, 90);
    let centre = (412_500.0, 4_688_000.0);
    let stars: Vec<(MultiPolygon<f64>, u16)> =
        (1..=4u16).map(|k| (star(centre.0 + 1700.3 * f64::from(k), centre.1, 60, u64::from(k)).into(), k)).collect();
    let vectors = folder.path().join("stars.gpkg");
    let features: Vec<Feature> = stars.iter().map(|(m, k)| feature(m.clone(), json!({"code": k}))).collect();
    let utm = utm38();
    write_gpkg(&vectors, &[layer("stars", &utm, GeometryKind::MultiPolygon, &features)], &GpkgOptions::default())
        .unwrap();
    let e = g.extent();
    let extent = [e.min_x, e.min_y, e.max_x, e.max_y].map(|v| v.to_string());
    let ours = rasterize(&stars, &g).unwrap();
    for (name, touched) in [("centre.tif", false), ("touched.tif", true)] {
        let path = folder.path().join(name);
        let mut arguments = vec!["-q", "-ot", "UInt16", "-tr", "250", "250", "-a", "code", "-te"];
        arguments.extend(extent.iter().map(String::as_str));
        if touched {
            arguments.push("-at");
        }
        arguments.extend([vectors.to_str().unwrap(), path.to_str().unwrap()]);
        if oracle("gdal_rasterize", &arguments).is_none() {
            return;
        }
        let theirs = read_raster(&path, &RasterReadOptions::default()).unwrap().raster;
        if touched {
            let mut all = Raster::filled(g.cols, g.rows, 0u16);
            for (area, code) in &stars {
                let mask = rasterize_mask(area, &g, true).unwrap();
                all.values.iter_mut().zip(&mask.values).filter(|(_, m)| **m == 1).for_each(|(v, _)| *v = *code);
            }
            assert_eq!(theirs.values, all.values.iter().map(|v| f32::from(*v)).collect::<Vec<_>>());
        } else {
            assert_eq!(theirs.values, ours.values.iter().map(|v| f32::from(*v)).collect::<Vec<_>>());
        }
    }
}

#[test]
fn rasterizing_does_not_depend_on_threads() {
    let e = Extent { min_x: 4e5, min_y: 4.6e6, max_x: 4.3e5, max_y: 4.64e6 };
    let g = Grid::snapped(utm38(), e, 33.3).unwrap();
    let area: MultiPolygon<f64> = star(4.15e5, 4.62e6, 500, 9).into();
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| rasterize(&[(area.clone(), 5)], &g).unwrap())
    };
    assert_eq!(with(1), with(8));
}

/// Runs one test of this file as a process of its own.
fn child(test: &str, environment: &[(&str, &str)]) -> std::process::Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--include-ignored", "--nocapture"]).envs(environment.iter().copied());
    command.output().unwrap()
}

#[test]
fn gdal_says_nothing_by_itself() {
    for test in ["bad_rasters_are_refused_in_a_sentence", "bad_vector_files_are_refused_in_a_sentence"] {
        let out = child(test, &[]);
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success() && !said.contains("ERROR") && !said.contains("Warning"), "{said}");
    }
}

#[test]
#[ignore = "run by the_environment_does_not_reach_into_files"]
fn write_where_the_environment_says() {
    let Some(folder) = std::env::var_os("HISTMAP_TEST_FOLDER") else { return };
    let folder = Path::new(&folder);
    write_cog(&folder.join("e.tif"), &grid(1500, 1100), &[&hills(1500, 1100)], &elevation_options()).unwrap();
    write_sample(&folder.join("r.gpkg"));
}

#[test]
fn the_environment_does_not_reach_into_files() {
    let files = |environment: &[(&str, &str)]| {
        let folder = tempfile::tempdir().unwrap();
        let mut all = vec![("HISTMAP_TEST_FOLDER", folder.path().to_str().unwrap())];
        all.extend(environment);
        assert!(child("write_where_the_environment_says", &all).status.success());
        ["e.tif", "r.gpkg"].map(|name| std::fs::read(folder.path().join(name)).unwrap())
    };
    let plain = files(&[]);
    for environment in [
        &[("GDAL_NUM_THREADS", "8"), ("RAYON_NUM_THREADS", "8")][..],
        &[("GDAL_NUM_THREADS", "1"), ("RAYON_NUM_THREADS", "1"), ("GDAL_CACHEMAX", "1")],
        &[("TZ", "Asia/Tokyo"), ("LC_ALL", "ru_RU.UTF-8"), ("COMPRESS_OVERVIEW", "LZW"), ("OGR_CURRENT_DATE", "2024")],
    ] {
        assert!(files(environment) == plain, "{environment:?}");
    }
}

#[test]
#[ignore = "speed on the full region; run with --ignored --nocapture"]
fn speed_at_full_size() {
    let folder = tempfile::tempdir().unwrap();
    let g = grid(4420, 3816);
    let mut r = hills(4420, 3816);
    let mut state = 1u32;
    for v in &mut r.values {
        state = state.wrapping_mul(1664525).wrapping_add(1013904223);
        *v = *v + 2.0 * (*v * 0.01).sin() * ((state >> 8) as f32 / 16777216.0) + 1500.0;
    }
    let mega = g.len() as f64 / 1e6;
    let timed = |what: &str, work: &mut dyn FnMut()| {
        let start = std::time::Instant::now();
        work();
        let s = start.elapsed().as_secs_f64();
        println!("{what}: {s:.2} s, {:.1} million cells per second", mega / s);
    };
    let path = folder.path().join("e.tif");
    for level in [1, 6, 9] {
        let options = CogOptions { compression: Compression::Deflate { level }, ..elevation_options() };
        timed(&format!("write_cog f32 deflate {level}"), &mut || drop(write_cog(&path, &g, &[&r], &options).unwrap()));
        println!("  {} bytes", std::fs::metadata(&path).unwrap().len());
    }
    timed("read_raster f32", &mut || drop(read_raster(&path, &RasterReadOptions::default()).unwrap()));
    let area: MultiPolygon<f64> = star(950_000.0, 4_220_000.0, 20_000, 3).into();
    let shares: Vec<_> = (0..15).map(|k| (area.clone(), k)).collect();
    timed("rasterize 15 polygons", &mut || drop(rasterize(&shares, &g).unwrap()));
    let codes = rasterize(&shares, &g).unwrap();
    let options = CogOptions { overviews: Overviews::Mode, ..Default::default() };
    timed("write_cog 2 x u16", &mut || drop(write_cog(&path, &g, &[&codes, &codes], &options).unwrap()));
    println!("  {} bytes", std::fs::metadata(&path).unwrap().len());
    let mut lines = Vec::new();
    timed("contours", &mut || lines = histmap::contour::contours(&r, &g, 200.0, &Default::default()));
    let vertices: usize = lines.iter().map(|l| l.line.0.len()).sum();
    println!("  {} lines, {vertices} vertices", lines.len());
    let utm = utm38();
    let features: Vec<Feature> = lines.iter().map(|l| feature(l.line.clone(), json!({"level_m": l.level_m}))).collect();
    let path = folder.path().join("c.gpkg");
    timed("write_gpkg of the contours", &mut || {
        write_gpkg(&path, &[layer("contours", &utm, GeometryKind::LineString, &features)], &Default::default()).unwrap()
    });
    println!("  {} bytes", std::fs::metadata(&path).unwrap().len());
}
