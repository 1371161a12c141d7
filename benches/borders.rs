//! Speed of border files: reading, repair and rasterizing of a world, by stage.
//!
//! `cargo bench --bench borders [-- FILE [SIZE]]`: reads FILE (any file that `--borders` takes; without one a made-up world
//! of about 2 MB) and draws it, contested land included, on SIZE x SIZE cells (8192). Prints medians of five runs, and the
//! time of a parallel memory fill of the same two rasters as a yardstick.

use histmap::borders::{RegionOptions, SmoothOptions, political_regions, project_claims, stack};
use histmap::gdal_io;
use histmap::grid::{Extent, GeoTransform, Grid, LonLat, Xy};
use histmap::political::{BorderInput, read_borders};
use rayon::prelude::*;
use std::path::{Path, PathBuf};
use std::time::Instant;

const RUNS: usize = 5;

fn main() {
    // Cargo adds `--bench`.
    let args: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let size: usize = args.iter().find_map(|a| a.parse().ok()).unwrap_or(8192);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = match args.iter().find(|a| a.parse::<usize>().is_err()) {
        Some(file) => PathBuf::from(file),
        None => made_up_world(folder.path()),
    };
    let bytes = std::fs::metadata(&file).map_or(0, |m| m.len());
    println!(
        "{}, {:.2} MB, {size} x {size} cells, {} threads, median of {RUNS}",
        file.display(),
        bytes as f64 / 1e6,
        rayon::current_num_threads()
    );
    let fill = median(|| {
        for _ in 0..2 {
            let mut array = vec![0u16; size * size];
            array.par_chunks_mut(size).for_each(|row| row.fill(1));
            std::hint::black_box(&array);
        }
    });
    let input = BorderInput { paths: vec![file], ..BorderInput::default() };
    let read = || read_borders(&input).expect("a border file");
    let claims = read().borders.claims;
    let reading = median(|| {
        std::hint::black_box(read());
    });
    // The plane of longitude and latitude, in metres as it were: no projection, so that all of the world fits.
    let scale = 1e5;
    let plane = |p: LonLat| Some(Xy { x: p.lon * scale, y: p.lat * scale });
    // One claim per polity: the file's own year.
    let era = claims.iter().map(|c| c.span).min().expect("a claim");
    let held: Vec<_> = claims.iter().filter(|c| c.span.overlaps(&era)).collect();
    let cell = 360.0 * scale / size as f64;
    let smooth = SmoothOptions { spacing: SmoothOptions::spacing_for(cell), ..SmoothOptions::default() };
    let options = RegionOptions { smooth, ..RegionOptions::default() };
    let regions = || {
        let projected = project_claims(&held, &plane).expect("a plane for all");
        political_regions(&projected, &options).expect("regions")
    };
    let polities = regions().polities;
    let shaping = median(|| {
        std::hint::black_box(regions());
    });
    let extent = Extent { min_x: -180.0 * scale, min_y: -90.0 * scale, max_x: 180.0 * scale, max_y: 90.0 * scale };
    let grid = Grid {
        crs: gdal_io::crs("EPSG:3857", "--crs").expect("a CRS"),
        transform: GeoTransform {
            origin_x: extent.min_x,
            origin_y: extent.max_y,
            cell_width: cell,
            cell_height: cell / 2.0,
        },
        cols: size,
        rows: size,
    };
    let drawing = median(|| {
        std::hint::black_box(stack(&grid, &polities, |_| true).expect("rasters"));
    });
    let (claims, corners) = (polities.len(), corners(&polities));
    println!("{claims} polities, {corners} corners as drawn");
    for (what, seconds) in
        [("fill", fill), ("read and repair", reading), ("shared and smooth borders", shaping), ("rasterize", drawing)]
    {
        println!("{what:26} {:8.1} ms", seconds * 1e3);
    }
    println!("{:26} {:8.1} ms", "read, repair, rasterize", (reading + drawing) * 1e3);
    println!("{:26} {:8.1} ms", "all", (reading + shaping + drawing) * 1e3);
}

fn corners(polities: &[histmap::borders::PolityRegion]) -> usize {
    let rings = |p: &geo::Polygon<f64>| p.exterior().0.len() + p.interiors().iter().map(|r| r.0.len()).sum::<usize>();
    polities.iter().flat_map(|p| &p.outline).map(rings).sum()
}

fn median(mut work: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..RUNS)
        .map(|_| {
            let begun = Instant::now();
            work();
            begun.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[RUNS / 2]
}

/// 12 x 12 neighbours with ragged common borders, in the words of historical-basemaps.
fn made_up_world(folder: &Path) -> PathBuf {
    const N: usize = 12;
    const STEPS: usize = 90;
    let node = |c: usize, r: usize| (-170.0 + 340.0 * c as f64 / N as f64, -70.0 + 140.0 * r as f64 / N as f64);
    // The same points for both neighbours: from the lesser node to the greater.
    let side = |a: (usize, usize), b: (usize, usize)| -> Vec<(f64, f64)> {
        let (from, to) = if a <= b { (node(a.0, a.1), node(b.0, b.1)) } else { (node(b.0, b.1), node(a.0, a.1)) };
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let mut points: Vec<(f64, f64)> = (0..=STEPS)
            .map(|k| {
                let t = k as f64 / STEPS as f64;
                let seed = (from.0 * 12.9898 + from.1 * 78.233 + t * 37.719).sin() * 43758.5453;
                let off = if k == 0 || k == STEPS { 0.0 } else { 0.05 * (seed - seed.floor() - 0.5) };
                (from.0 + dx * t - dy * off, from.1 + dy * t + dx * off)
            })
            .collect();
        if a > b {
            points.reverse();
        }
        points
    };
    let mut features = Vec::new();
    for r in 0..N {
        for c in 0..N {
            let corners = [(c, r), (c + 1, r), (c + 1, r + 1), (c, r + 1), (c, r)];
            let mut ring: Vec<(f64, f64)> = Vec::new();
            for w in corners.windows(2) {
                ring.pop();
                ring.extend(side(w[0], w[1]));
            }
            let text: Vec<String> = ring.iter().map(|p| format!("[{:.12}, {:.12}]", p.0, p.1)).collect();
            features.push(format!(
                "{{\"type\": \"Feature\", \"properties\": {{\"NAME\": \"P{c}-{r}\", \"SUBJECTO\": null, \
                 \"BORDERPRECISION\": 2}}, \"geometry\": {{\"type\": \"Polygon\", \"coordinates\": [[{}]]}}}}",
                text.join(", ")
            ));
        }
    }
    let path = folder.join("world_1200.geojson");
    let text = format!("{{\"type\": \"FeatureCollection\", \"features\": [\n{}\n]}}\n", features.join(",\n"));
    std::fs::write(&path, text).expect("a file in the temporary folder");
    path
}
