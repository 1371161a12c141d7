//! Speed of the terrain engine as a ratio to a parallel memory fill of the same array, timed in the same run.
//!
//! `cargo bench --bench terrain [-- FACTOR SIZE]`: refines a made-up coarse model to SIZE x SIZE cells. Prints medians of
//! five runs. Figures of one run stand in docs/benchmarks.md.

use histmap::grid::Window;
use histmap::raster::Raster;
use histmap::terrain::{
    CoarseMode, CoarseSurface, Detail, PlacedSurface, Placement, RefineOptions, RoughnessModel, Terrain, Uv,
    halo_cells, refine_window,
};
use rayon::prelude::*;
use std::time::Instant;

const RUNS: usize = 5;

fn main() {
    // Cargo adds `--bench`.
    let numbers: Vec<usize> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let factor = numbers.first().copied().unwrap_or(16);
    let size = numbers.get(1).copied().unwrap_or(2048) / factor * factor;
    let threads = rayon::current_num_threads() as f64;
    let cells = (size * size) as f64;
    println!("factor {factor}, {size} x {size} cells, {threads} threads, median of {RUNS}");
    let fill = median(|| {
        let mut array = vec![0f32; size * size];
        array.par_chunks_mut(size).for_each(|row| row.fill(1.5));
        std::hint::black_box(&array);
    });
    println!("{:8} {:9.2} ms {:8.3} ns per cell and core", "fill", fill * 1e3, fill * threads / cells * 1e9);
    let terrain = made_up(factor, size);
    let window = Window { col: 0, row: 0, cols: size, rows: size };
    for (name, detail) in [("plain", Detail::Plain), ("drained", Detail::Drained)] {
        let seconds = median(|| {
            std::hint::black_box(refine_window(
                &terrain,
                window,
                &RefineOptions { detail, ..RefineOptions::default() },
            ));
        });
        println!(
            "{name:8} {:9.2} ms {:8.1} ns per cell and core, {:6.1} x fill, {:6.2} million cells per second",
            seconds * 1e3,
            seconds * threads / cells * 1e9,
            seconds / fill,
            cells / seconds / 1e6
        );
    }
}

fn median(mut work: impl FnMut()) -> f64 {
    work();
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

/// Hills of several scales on 1440 m cells.
fn made_up(factor: usize, size: usize) -> Terrain {
    let n = size / factor;
    let value = |k: usize| {
        let (x, y) = ((k % n) as f32, (k / n) as f32);
        let ripple = |s: f32| (x / s).sin() * (y / s + 0.3 * (x / s)).cos();
        1500.0 + 700.0 * ripple(17.0) + 300.0 * ripple(5.0) + 120.0 * ripple(1.3)
    };
    let coarse = Raster::from_values(n, n, (0..n * n).map(value).collect());
    let surface = CoarseSurface::new(coarse, 1440.0, CoarseMode::Mean, &RoughnessModel::default());
    let cell_m = 1440.0 / factor as f64;
    let window = Window { col: 0, row: 0, cols: size, rows: size }.grown(halo_cells(cell_m, factor));
    let placement = Placement::new(window, |nodes| {
        Ok::<_, std::convert::Infallible>(
            nodes.iter().map(|&(c, r)| Uv { u: c as f64 / factor as f64, v: r as f64 / factor as f64 }).collect(),
        )
    });
    let Ok(placement) = placement;
    Terrain {
        cell_m,
        coarse_span_cells: factor,
        block_parts: 1,
        land: PlacedSurface { surface, placement },
        sea_floor: None,
        body: Raster::filled(0, 0, 0),
        body_window: window,
        bodies: Vec::new(),
        rivers: Vec::new(),
        pins: Vec::new(),
        intervals: None,
    }
}
