//! `histmap mesh`, `curve` and `contour`, the real binary and real tiles: bounds, watertight solids, files as others read them,
//! words of refusals.

use histmap::gdal_io::{self, RasterReadOptions, Transformer};
use histmap::grid::Xy;
use histmap::mesh::tin::{TinOptions, tin};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn histmap(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_histmap")).current_dir(folder).args(args).output().unwrap()
}

fn made(folder: &Path, args: &[&str]) -> String {
    let out = histmap(folder, args);
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).into_owned()
}

fn refused(folder: &Path, args: &[&str]) -> (i32, String) {
    let out = histmap(folder, args);
    assert!(!out.status.success(), "{args:?}");
    (out.status.code().unwrap(), String::from_utf8_lossy(&out.stderr).into_owned())
}

/// A real tile, where it is.
fn tile(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/dem").join(name);
    if !path.exists() {
        println!("left out: {} is not here", path.display());
        return None;
    }
    Some(path)
}

/// Every cell of real tiles, holes included, lies within the error of the mesh: heights of the mesh are worked out triangle by
/// triangle, apart from the code that made it.
#[test]
fn real_tiles_keep_their_error() {
    for (name, max_error) in [
        ("N46E008.srtm3.tif", 25.0),
        ("S33W071.srtm3.tif", 8.0),
        ("N44W072.hgt", 5.0),
        ("globe-30s-caucasus.tif", 40.0),
    ] {
        let Some(path) = tile(name) else { continue };
        let z = gdal_io::read_raster(&path, &RasterReadOptions::default()).unwrap().raster;
        let s = tin(&z, &TinOptions { max_error, classes: None }).unwrap();
        let mut on_mesh = vec![f64::NAN; z.values.len()];
        let mut edges = HashMap::new();
        for t in s.triangles() {
            let [a, b, c] = t.map(|v| s.vertices[v as usize]).map(|n| [n.col, n.row, n.z].map(f64::from));
            let whole = (b[1] - a[1]) * (c[0] - a[0]) - (b[0] - a[0]) * (c[1] - a[1]);
            assert!(whole > 0.0, "{name}: a triangle runs clockwise");
            for (p, q) in [(t[0], t[1]), (t[1], t[2]), (t[2], t[0])] {
                assert!(edges.insert((p, q), ()).is_none(), "{name}: an edge is used twice");
            }
            let span = |k: usize| {
                let v = [a[k], b[k], c[k]];
                v.iter().fold(f64::MAX, |m, x| m.min(*x)).ceil() as usize
                    ..=v.iter().fold(0f64, |m, x| m.max(*x)).floor() as usize
            };
            for row in span(1) {
                for col in span(0) {
                    let (x, y) = (col as f64 - a[0], row as f64 - a[1]);
                    let u = (y * (c[0] - a[0]) - x * (c[1] - a[1])) / whole;
                    let v = ((b[1] - a[1]) * x - (b[0] - a[0]) * y) / whole;
                    if u >= -1e-9 && v >= -1e-9 && u + v <= 1.0 + 1e-9 {
                        on_mesh[row * z.cols + col] = a[2] + u * (b[2] - a[2]) + v * (c[2] - a[2]);
                    }
                }
            }
        }
        let mut worst = 0f64;
        let mut bare = 0;
        for (m, v) in on_mesh.iter().zip(&z.values) {
            assert!(v.is_finite() || m.is_nan(), "{name}: a void is covered");
            if v.is_finite() {
                if m.is_nan() {
                    bare += 1; // a cell among voids, of no square
                } else {
                    worst = worst.max((m - f64::from(*v)).abs());
                }
            }
        }
        println!("{name}: {} triangles, worst {worst:.4} of {max_error} m, {bare} lone cells", s.len());
        assert!(worst <= max_error + 1e-3, "{name}: {worst}");
        assert!((bare as f64) < 0.002 * z.values.len() as f64, "{name}: {bare} bare");
        assert!(worst > 0.5 * max_error, "{name}: the mesh is finer than asked");
    }
}

/// One degree at 44 N: the mesh is as wide and as high as PROJ says, and north is up.
#[test]
fn degrees_become_metres() {
    let Some(path) = tile("N44W072.hgt") else { return };
    let folder = tempfile::tempdir().unwrap();
    made(folder.path(), &["mesh", path.to_str().unwrap(), "a.ply", "--max-error", "50"]);
    let (vertices, _) = ply(&folder.path().join("a.ply"));
    let grid = gdal_io::raster_info(&path, &RasterReadOptions::default()).unwrap().grid;
    // The tile's own transverse Mercator, by PROJ.
    let local = gdal_io::crs("+proj=tmerc +lat_0=44.5 +lon_0=-71.5 +ellps=WGS84 +units=m", "").unwrap();
    let there = Transformer::new(&grid.crs, &local).unwrap();
    for (lon, lat) in [(-72.0, 45.0), (-71.0, 45.0), (-72.0, 44.0), (-71.0, 44.0)] {
        let p = there.point(Xy { x: lon, y: lat }).unwrap();
        let near = |v: &&[f32; 3]| (f64::from(v[0]) - p.x).hypot(f64::from(v[1]) - p.y) < 0.2;
        assert!(vertices.iter().any(|v| near(&v)), "no corner at {p:?}");
    }
}

/// Vertices and faces of one of our PLY files.
fn ply(path: &Path) -> (Vec<[f32; 3]>, Vec<[u32; 3]>) {
    let bytes = std::fs::read(path).unwrap();
    let end = bytes.windows(11).position(|w| w == b"end_header\n").unwrap() + 11;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let count = |what: &str| -> usize {
        head.lines().find_map(|l| l.strip_prefix(&format!("element {what} "))).unwrap().parse().unwrap()
    };
    let extra = if head.contains("uchar red") { 3 } else { 0 };
    let has_face_colours = head.find("uchar red").is_some_and(|at| at > head.find("element face").unwrap());
    let (of_vertex, of_face) = if has_face_colours { (12, 13 + extra) } else { (12 + extra, 13) };
    let word = |at: usize| [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
    let n = count("vertex");
    let vertices = (0..n).map(|k| [0, 4, 8].map(|o| f32::from_le_bytes(word(end + k * of_vertex + o)))).collect();
    let faces = end + n * of_vertex;
    let faces =
        (0..count("face")).map(|k| [1, 5, 9].map(|o| u32::from_le_bytes(word(faces + k * of_face + o)))).collect();
    (vertices, faces)
}

/// Triangles of a binary STL file by their corners.
fn stl(path: &Path) -> Vec<[[u32; 3]; 3]> {
    let bytes = std::fs::read(path).unwrap();
    let n = u32::from_le_bytes(bytes[80..84].try_into().unwrap()) as usize;
    assert_eq!(bytes.len(), 84 + 50 * n);
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    (0..n).map(|k| [0, 1, 2].map(|c| [0, 1, 2].map(|o| word(84 + 50 * k + 12 + 12 * c + 4 * o)))).collect()
}

/// By the places of corners as the file has them, in 32 bits: every edge in two triangles, once each way.
fn assert_watertight(path: &Path) {
    let mut edges: HashMap<([u32; 3], [u32; 3]), u32> = HashMap::new();
    for [a, b, c] in stl(path) {
        assert!(a != b && b != c && c != a, "a triangle without area");
        for e in [(a, b), (b, c), (c, a)] {
            *edges.entry(e).or_default() += 1;
        }
    }
    for ((a, b), n) in &edges {
        assert_eq!(*n, 1, "an edge {n} times in one direction");
        assert_eq!(edges.get(&(*b, *a)), Some(&1), "an open edge");
    }
}

#[test]
fn a_tile_with_voids_prints_watertight_in_the_size_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    if let Some(path) = tile("N46E008.srtm3.tif") {
        let said =
            made(dir, &["mesh", path.to_str().unwrap(), "a.stl", "--max-error", "60", "--base=4", "--size", "120"]);
        assert!(said.contains("120.0") && said.contains("mm"), "{said}");
        assert_watertight(&dir.join("a.stl"));
    }
    // Made here: two voids that touch in a corner, and one at the edge.
    let rows = ["1 2 3 4 5 6", "2 -9 4 5 6 7", "3 4 -9 6 7 8", "4 5 6 7 8 9", "5 6 7 8 9 -9"];
    let text =
        format!("ncols 6\nnrows 5\nxllcorner 0\nyllcorner 0\ncellsize 10\nNODATA_value -9\n{}\n", rows.join("\n"));
    std::fs::write(dir.join("b.asc"), text).unwrap();
    for max_error in ["0", "1", "9"] {
        made(dir, &["mesh", "b.asc", "b.stl", "--max-error", max_error, "--base", "--scale", "1000"]);
        assert_watertight(&dir.join("b.stl"));
    }
    made(dir, &["mesh", "b.asc", "c.stl", "--above", "4.5", "--walls", "3"]);
    assert_watertight(&dir.join("c.stl"));
}

/// A plane of two polities, in EPSG:32638, cells of 100 m: west is 1, east is 2.
fn two_polities(dir: &Path) {
    use histmap::gdal_io::{CogOptions, write_cog};
    use histmap::grid::{GeoTransform, Grid};
    use histmap::raster::Raster;
    let grid = Grid {
        crs: gdal_io::crs("EPSG:32638", "").unwrap(),
        transform: GeoTransform { origin_x: 400_000.0, origin_y: 4_700_000.0, cell_width: 100.0, cell_height: 100.0 },
        cols: 40,
        rows: 30,
    };
    let z = Raster::from_values(40, 30, (0..1200).map(|k| ((k % 40) * 10 + (k / 40) * (k / 40)) as f32).collect());
    write_cog(&dir.join("z.tif"), &grid, &[&z], &CogOptions::default()).unwrap();
    let codes = Raster::from_values(40, 30, (0..1200).map(|k| 1 + u16::from(k % 40 >= 17)).collect());
    let options = CogOptions {
        predictor: false,
        nodata: Some(0.0),
        colours: vec![[0; 4], [200, 30, 30, 255], [30, 30, 200, 255]],
        categories: ["unclaimed", "Western Duchy", "Eastern March"].map(String::from).to_vec(),
        ..CogOptions::default()
    };
    write_cog(&dir.join("r.tif"), &grid, &[&codes], &options).unwrap();
    let shade = Raster::from_values(40, 30, (0..1200).map(|k| (k % 40 * 6) as u8).collect());
    write_cog(&dir.join("h.tif"), &grid, &[&shade], &CogOptions { predictor: false, ..CogOptions::default() }).unwrap();
}

#[test]
fn polities_become_parts_with_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    two_polities(dir);
    let said = made(dir, &["mesh", "z.tif", "a.glb", "--max-error", "1", "--regions", "r.tif", "--texture", "h.tif"]);
    assert!(said.contains("Western Duchy") && said.contains("Eastern March"), "{said}");
    let bytes = std::fs::read(dir.join("a.glb")).unwrap();
    let n = u32::from_le_bytes(bytes[12..16].try_into().unwrap()) as usize;
    let root: serde_json::Value = serde_json::from_slice(&bytes[20..20 + n]).unwrap();
    assert_eq!(root["nodes"].as_array().unwrap().len(), 2);
    assert_eq!(root["images"][0]["mimeType"], "image/jpeg");
    let said = made(dir, &["mesh", "z.tif", "a.obj", "--regions", "r.tif", "--texture", "h.tif", "--skirt", "50"]);
    assert!(said.contains("skirt"), "{said}");
    let obj = std::fs::read_to_string(dir.join("a.obj")).unwrap();
    assert!(obj.contains("mtllib a.mtl") && obj.contains("g Western_Duchy"));
    assert!(dir.join("a.jpg").exists() && std::fs::read_to_string(dir.join("a.mtl")).unwrap().contains("map_Kd a.jpg"));
    made(dir, &["mesh", "r.tif", "w.stl", "--classes", "2", "--walls", "500"]);
    assert_watertight(&dir.join("w.stl"));
    // Two solids side by side, each closed.
    let said = made(dir, &["mesh", "r.tif", "w.ply", "--classes", "all", "--walls", "500"]);
    assert!(said.contains("Western Duchy walls"), "{said}");
}

/// The Khronos validator finds no error and no warning in any file; left out where node does not find its package.
#[test]
fn the_gltf_validator_finds_nothing() {
    const PROGRAM: &str = "
        const validator = require('gltf-validator');
        const bytes = new Uint8Array(require('fs').readFileSync(process.argv[1]));
        validator.validateBytes(bytes).then((r) => {
            const { numErrors, numWarnings } = r.issues;
            console.log(numErrors, numWarnings, JSON.stringify(r.issues.messages.slice(0, 3)));
        });";
    let known = Command::new("node").args(["-e", "require.resolve('gltf-validator')"]).output();
    if !known.is_ok_and(|o| o.status.success()) {
        println!("left out: node does not find gltf-validator (npm install gltf-validator, then set NODE_PATH)");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    two_polities(dir);
    for args in [
        &["mesh", "z.tif", "a.glb", "--max-error", "1"][..],
        &["mesh", "z.tif", "a.glb", "--regular", "--tints"],
        &["mesh", "z.tif", "a.glb", "--regions", "r.tif", "--texture", "h.tif", "--skirt", "100"],
        &["mesh", "z.tif", "a.glb", "--base", "--size", "100", "--vertex-colours", "h.tif"],
        &["mesh", "r.tif", "a.glb", "--classes", "all", "--walls", "300"],
        &["mesh", "z.tif", "a.glb", "--above", "200"],
    ] {
        made(dir, args);
        let out = Command::new("node").current_dir(dir).args(["-e", PROGRAM, "a.glb"]).output().unwrap();
        let said = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(said.starts_with("0 0 "), "{args:?}: {said}{}", String::from_utf8_lossy(&out.stderr));
    }
}

#[test]
fn the_same_bytes_on_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    two_polities(dir);
    for (name, threads) in [("a.glb", "1"), ("b.glb", "4")] {
        made(dir, &["mesh", "z.tif", name, "--max-error", "2", "--regions", "r.tif", "--threads", threads]);
    }
    assert_eq!(std::fs::read(dir.join("a.glb")).unwrap(), std::fs::read(dir.join("b.glb")).unwrap());
}

#[test]
fn odd_requests_are_refused_in_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    two_polities(dir);
    std::fs::write(
        dir.join("void.asc"),
        "ncols 3\nnrows 3\nxllcorner 0\nyllcorner 0\ncellsize 1\nNODATA_value -9\n-9 -9 -9\n-9 -9 -9\n-9 -9 -9\n",
    )
    .unwrap();
    std::fs::write(dir.join("line.asc"), "ncols 3\nnrows 1\nxllcorner 0\nyllcorner 0\ncellsize 1\n1 2 3\n").unwrap();
    // A picture without a place, as the map sheet is.
    made(dir, &["heightmap", "fault", "--size", "20", "plain.png"]);
    let before = std::fs::read_dir(dir).unwrap().count();
    for (args, code, words) in [
        (&["mesh", "z.tif", "a.glb", "--texture", "plain.png"][..], 1, "hillshade.tif"),
        (&["mesh", "z.tif", "a.fbx"], 1, ".glb, .obj, .stl or .ply"),
        (&["mesh", "none.tif", "a.glb"], 1, "none.tif"),
        (&["mesh", "z.tif", "a.glb", "--max-error", "-1"], 2, "0 or more"),
        (&["mesh", "z.tif", "a.glb", "--max-error", "nan"], 2, "NaN"),
        (&["mesh", "z.tif", "a.stl", "--texture", "h.tif"], 2, "STL holds none"),
        (&["mesh", "z.tif", "a.ply", "--texture", "h.tif"], 2, "--vertex-colours"),
        (&["mesh", "z.tif", "a.glb", "--walls", "3"], 2, "--skirt or --base"),
        (&["mesh", "z.tif", "a.glb", "--base=0"], 2, "above 0"),
        (&["mesh", "z.tif", "a.glb", "--size", "0"], 2, "--size"),
        (&["mesh", "z.tif", "a.glb", "--exaggeration", "inf"], 2, "--exaggeration"),
        (&["mesh", "z.tif", "a.glb", "--regions", "void.asc"], 1, "grids differ"),
        (&["mesh", "z.tif", "a.glb", "--texture", "void.asc"], 1, "8 or 16 bits"),
        (&["mesh", "z.tif", "a.glb", "--classes", "x"], 2, "3,4"),
        (&["mesh", "r.tif", "a.glb", "--classes", "9"], 1, "no square"),
        (&["mesh", "void.asc", "a.glb"], 1, "no square"),
        (&["mesh", "line.asc", "a.glb"], 2, "3 x 1"),
        (&["contour", "void.asc", "a.gpkg"], 1, "no cell with a height"),
        (&["contour", "z.tif", "a.shp"], 1, ".gpkg"),
        (&["contour", "z.tif", "a.gpkg", "--interval", "0"], 2, "--interval"),
        (&["contour", "z.tif", "a.gpkg", "--interval", "0.001"], 2, "20000"),
        (&["curve", "z.tif", "a.gpkg", "--spacing", "0"], 2, "--spacing"),
        (&["curve", "z.tif", "a.gpkg", "--spacing", "5", "--strength", "2"], 2, "0 to 1"),
        (&["curve", "z.tif", "a.gpkg"], 2, "--spacing"),
    ] {
        let (found, said) = refused(dir, args);
        assert!(said.contains(words), "{args:?}: {said}");
        assert_eq!(found, code, "{args:?}: {said}");
        assert_eq!(std::fs::read_dir(dir).unwrap().count(), before, "{args:?} left files");
    }
}

/// Levels and counts as ogrinfo reads them.
#[test]
fn contours_are_lines_at_their_levels() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    two_polities(dir);
    let said = made(dir, &["contour", "z.tif", "c.gpkg", "--interval", "50", "--simplify", "0"]);
    assert!(said.contains("every 50 m"), "{said}");
    // ogrinfo -q -sql "SELECT MIN(level_m), MAX(level_m), COUNT(*) FROM contours" c.gpkg
    let sql = "SELECT MIN(level_m) AS low, MAX(level_m) AS high FROM contours";
    let out = Command::new("ogrinfo").current_dir(dir).args(["-q", "-sql", sql, "c.gpkg"]).output().unwrap();
    let out = String::from_utf8_lossy(&out.stdout).into_owned();
    // Heights run from 0 to 39 · 10 + 29² = 1231.
    assert!(out.contains("low (") && out.contains("= 50") && out.contains("= 1200"), "{out}");
}

#[test]
fn curves_pass_through_key_points_and_given_tangents() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let line = |points: &str| {
        format!(
            r#"{{"type":"FeatureCollection","crs":{{"type":"name","properties":{{"name":"urn:ogc:def:crs:EPSG::32638"}}}},
            "features":[{{"type":"Feature","properties":{{"name":"border"}},"geometry":{points}}}]}}"#
        )
    };
    std::fs::write(dir.join("l.geojson"), line(r#"{"type":"LineString","coordinates":[[0,0],[1000,0]]}"#)).unwrap();
    std::fs::write(
        dir.join("t.geojson"),
        r#"{"type":"FeatureCollection","crs":{"type":"name","properties":{"name":"urn:ogc:def:crs:EPSG::32638"}},"features":[
        {"type":"Feature","properties":{"tangent_x":0,"tangent_y":4000},"geometry":{"type":"Point","coordinates":[0,0]}},
        {"type":"Feature","properties":{"tangent_x":0,"tangent_y":-4000},"geometry":{"type":"Point","coordinates":[1000,0]}}]}"#,
    )
    .unwrap();
    made(dir, &["curve", "l.geojson", "c.gpkg", "--tangents", "t.geojson", "--spacing", "500"]);
    // ogrinfo -al -q c.gpkg
    let out = Command::new("ogrinfo").current_dir(dir).args(["-al", "-q", "c.gpkg"]).output().unwrap();
    let out = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.contains("((0 0,500 1000,1000 0))") && out.contains("border"), "{out}");
    std::fs::write(dir.join("a.geojson"), line(r#"{"type":"Polygon","coordinates":[[[0,0],[9,0],[9,9],[0,0]]]}"#))
        .unwrap();
    assert!(refused(dir, &["curve", "a.geojson", "d.gpkg", "--spacing", "5"]).1.contains("no line"));
    let (_, said) = refused(dir, &["curve", "l.geojson", "d.gpkg", "--spacing", "5", "--tangents", "l.geojson"]);
    assert!(said.contains("tangent_x"), "{said}");
}
