//! Speed of heightmaps and meshes: as a ratio to a parallel memory fill of the same array, and beside a diamond-square in numpy,
//! all timed in the same run.
//!
//! `cargo bench --bench heightmap [-- WORD]`: medians of five runs; with WORD only what has it in its name. The numpy program needs
//! `python3` with numpy, the real tile `../shared/data/dem/`; what is absent is left out. Figures stand in docs/benchmarks.md.

use histmap::heightmap::diamond_square::{Displacement, Options, diamond_square};
use histmap::heightmap::filter::{blur, normalise};
use histmap::mesh::tin::{TinOptions, tin};
use histmap::raster::Raster;
use rayon::prelude::*;
use std::path::Path;
use std::time::Instant;

const RUNS: usize = 5;
const SIDE: usize = 4097;

fn main() {
    let word = std::env::args().skip(1).find(|a| a != "--bench").unwrap_or_default();
    let wanted = |name: &str| name.contains(&word);
    println!("{} threads, medians of {RUNS}", rayon::current_num_threads());
    if wanted("diamond-square") {
        let fill = fill(SIDE);
        println!("fill {SIDE}²: {:.1} ms", fill * 1e3);
        let cells = (SIDE * SIDE) as f64;
        let mut uniform = 0.0;
        for displacement in [Displacement::Gaussian, Displacement::Triangular, Displacement::Uniform] {
            let options = Options { size: (SIDE, SIDE), displacement, ..Options::default() };
            let (t, best) = times(|| _ = std::hint::black_box(diamond_square(&options).unwrap()));
            println!(
                "diamond-square {displacement:?}: {:.1} ms, {:.0} million cells/s, {:.1} x fill",
                t * 1e3,
                cells / t / 1e6,
                t / fill
            );
            uniform = best;
        }
        match numpy() {
            // The best of either: what each does when nothing else has the processor.
            Some(t) => println!(
                "diamond-square in numpy, uniform, best of {RUNS}: {:.0} ms, {:.0} million cells/s: our best is {:.1} times as fast",
                t * 1e3,
                cells / t / 1e6,
                t / uniform
            ),
            None => println!("no python3 with numpy here: its diamond-square is left out"),
        }
    }
    if wanted("blur") {
        let side = 8192;
        let fill = fill(side);
        let z = diamond_square(&Options { size: (side, side), ..Options::default() }).unwrap();
        let t = median(|| _ = std::hint::black_box(blur(&z, 8.0).unwrap()));
        println!("fill {side}²: {:.1} ms; blur sigma 8: {:.0} ms, {:.1} x fill", fill * 1e3, t * 1e3, t / fill);
    }
    if wanted("mesh") {
        let hills = diamond_square(&Options { size: (SIDE, SIDE), ..Options::default() }).unwrap();
        let mut grounds = vec![("diamond-square, H 0.8, 2000 m", normalise(&hills, 0.0, 2000.0).unwrap())];
        grounds
            .push(("a plane", Raster::from_values(SIDE, SIDE, (0..SIDE * SIDE).map(|k| (k % SIDE) as f32).collect())));
        match andes() {
            Some(z) => grounds.push(("Aconcagua, 3 seconds enlarged", z)),
            None => println!("no ../shared/data/dem here: the real tile is left out"),
        }
        for (name, z) in &grounds {
            let mut triangles = 0;
            let t = median(|| triangles = tin(z, &TinOptions { max_error: 5.0, classes: None }).unwrap().len());
            println!("mesh {SIDE}² at 5 m, {name}: {:.0} ms, {triangles} triangles", t * 1e3);
        }
    }
}

fn fill(side: usize) -> f64 {
    median(|| {
        let mut array = vec![0f32; side * side];
        array.par_chunks_mut(side).for_each(|row| row.fill(1.5));
        std::hint::black_box(&array);
    })
}

/// Median of the seconds by the clock.
fn median(work: impl FnMut()) -> f64 {
    times(work).0
}

/// Median and best.
fn times(mut work: impl FnMut()) -> (f64, f64) {
    work();
    let mut all: Vec<f64> = (0..RUNS)
        .map(|_| {
            let begun = Instant::now();
            work();
            begun.elapsed().as_secs_f64()
        })
        .collect();
    all.sort_by(f64::total_cmp);
    (all[RUNS / 2], all[0])
}

/// Best seconds of the same lattice in numpy: whole-array slices, uniform displacement in 32 bits.
fn numpy() -> Option<f64> {
    const PROGRAM: &str = "
import time
import numpy as np

def lattice(n, seed):
    side = 2 ** n + 1
    rng = np.random.default_rng(seed)
    z = np.zeros((side, side), np.float32)
    step, amplitude = side - 1, np.float32(1)
    while step > 1:
        h = step // 2
        draw = lambda a: (rng.random(a.shape, np.float32) - np.float32(0.5)) * amplitude
        c = z[::step, ::step]
        m = (c[:-1, :-1] + c[1:, :-1] + c[:-1, 1:] + c[1:, 1:]) * np.float32(0.25)
        z[h::step, h::step] = m + draw(m)
        m = z[h::step, h::step]
        e = c[:, :-1] + c[:, 1:]
        e[1:-1] = (e[1:-1] + m[:-1] + m[1:]) * np.float32(0.25)
        e[0] = (e[0] + m[0]) / np.float32(3)
        e[-1] = (e[-1] + m[-1]) / np.float32(3)
        z[::step, h::step] = e + draw(e)
        e = c[:-1] + c[1:]
        e[:, 1:-1] = (e[:, 1:-1] + m[:, :-1] + m[:, 1:]) * np.float32(0.25)
        e[:, 0] = (e[:, 0] + m[:, 0]) / np.float32(3)
        e[:, -1] = (e[:, -1] + m[:, -1]) / np.float32(3)
        z[h::step, ::step] = e + draw(e)
        step, amplitude = h, amplitude * np.float32(0.57)
    return z

lattice(8, 1)
times = []
for run in range(5):
    begun = time.perf_counter()
    lattice(12, run)
    times.append(time.perf_counter() - begun)
print(min(times))
";
    let out = std::process::Command::new("python3").args(["-c", PROGRAM]).output().ok()?;
    String::from_utf8_lossy(&out.stdout).trim().parse().ok()
}

/// A real tile enlarged to the size of the others, between its cells as the plane of four.
fn andes() -> Option<Raster<f32>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/dem/S33W071.srtm3.tif");
    if !path.exists() {
        return None;
    }
    let z = histmap::gdal_io::read_raster(&path, &Default::default()).ok()?.raster;
    let at = |k: usize, n: usize| {
        let x = k as f32 * (n - 1) as f32 / (SIDE - 1) as f32;
        let i = (x as usize).min(n - 2);
        (i, x - i as f32)
    };
    let values = (0..SIDE * SIDE)
        .map(|k| {
            let ((c, u), (r, v)) = (at(k % SIDE, z.cols), at(k / SIDE, z.rows));
            let top = z.at(c, r) * (1.0 - u) + z.at(c + 1, r) * u;
            let low = z.at(c, r + 1) * (1.0 - u) + z.at(c + 1, r + 1) * u;
            top * (1.0 - v) + low * v
        })
        .collect();
    Some(Raster::from_values(SIDE, SIDE, values))
}
