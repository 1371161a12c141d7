//! Speed and memory of the terrain engine: time as a ratio to a parallel memory fill of the same array, timed in the same run.
//!
//! `cargo bench --bench terrain [-- FACTOR SIZE WORD]`: refines a made-up coarse model to SIZE x SIZE cells, bare and with a
//! lake, a river and summits (with WORD, only what has it in its name). Prints medians of five runs, in time by the clock and, on Linux, in time on the processors: what the
//! engine costs when other work shares the machine. Figures stand in docs/benchmarks.md.

use histmap::grid::{Cell, Window};
use histmap::raster::Raster;
use histmap::terrain::{
    BodyLevel, CoarseMode, CoarseSurface, CoursePoint, Detail, Pin, PlacedSurface, Placement, RefineOptions,
    RiverCourse, RoughnessModel, Terrain, Uv, halo_cells, refine_window, working_window,
};
use histmap::water::WaterKind;
use rayon::prelude::*;
use std::time::Instant;

const RUNS: usize = 5;

fn main() {
    // Cargo adds `--bench`.
    let numbers: Vec<usize> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let word = std::env::args().skip(1).find(|a| a != "--bench" && a.parse::<usize>().is_err());
    let factor = numbers.first().copied().unwrap_or(16);
    let size = numbers.get(1).copied().unwrap_or(2048) / factor * factor;
    let threads = rayon::current_num_threads();
    let cells = (size * size) as f64;
    println!("factor {factor}, {size} x {size} cells, {threads} threads, median of {RUNS}");
    let fill = median(|| {
        let mut array = vec![0f32; size * size];
        array.par_chunks_mut(size).for_each(|row| row.fill(1.5));
        std::hint::black_box(&array);
    });
    let tell = |name: &str, (wall, cpu): (f64, f64)| {
        let ns = |seconds: f64| seconds / cells * 1e9;
        println!(
            "{name:28} {:7.2} ns of the clock x cores, {:7.2} ns of the processors, a cell; {:6.1} and {:6.1} x fill",
            ns(wall) * threads as f64,
            ns(cpu),
            wall / fill.0,
            cpu / fill.1
        );
    };
    tell("fill", fill);
    let window = Window { col: 0, row: 0, cols: size, rows: size };
    for (what, bound) in [("", false), (", lake, river, summits", true)] {
        let terrain = made_up(factor, size, bound);
        for (name, detail) in [("plain", Detail::Plain), ("drained", Detail::Drained)] {
            let options = RefineOptions { detail, ..RefineOptions::default() };
            let name = format!("{name}{what}");
            if word.as_ref().is_none_or(|word| name.contains(word)) {
                let times = median(|| _ = std::hint::black_box(refine_window(&terrain, window, &options)));
                tell(&name, times);
            }
        }
        if let Some(peak) = peak_bytes() {
            println!("memory at the peak so far: {:.1} bytes a cell, all of the process", peak / cells);
        }
    }
}

/// Medians of the time by the clock and of the time on all processors, seconds.
fn median(mut work: impl FnMut()) -> (f64, f64) {
    work();
    let (mut walls, mut cpus) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let (begun, used) = (Instant::now(), processor_seconds());
        work();
        walls.push(begun.elapsed().as_secs_f64());
        cpus.push(processor_seconds() - used);
    }
    let middle = |v: &mut Vec<f64>| {
        v.sort_by(f64::total_cmp);
        v[RUNS / 2]
    };
    (middle(&mut walls), middle(&mut cpus))
}

/// Time that all threads have had on a processor, seconds; 0 where the system does not tell.
fn processor_seconds() -> f64 {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return 0.0 };
    let of_task = |t: std::fs::DirEntry| {
        let text = std::fs::read_to_string(t.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<f64>().ok()
    };
    tasks.flatten().filter_map(of_task).sum::<f64>() * 1e-9
}

/// Most memory that the process has held, bytes.
fn peak_bytes() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM"))?;
    line.split_whitespace().nth(1)?.parse::<f64>().ok().map(|kb| kb * 1024.0)
}

/// Hills of several scales on 1440 m cells; `bound` adds a lake of a tenth of the width, a river across and four summits.
fn made_up(factor: usize, size: usize, bound: bool) -> Terrain {
    let n = size / factor;
    let value = |k: usize| {
        let (x, y) = ((k % n) as f32, (k / n) as f32);
        let ripple = |s: f32| (x / s).sin() * (y / s + 0.3 * (x / s)).cos();
        1500.0 + 700.0 * ripple(17.0) + 300.0 * ripple(5.0) + 120.0 * ripple(1.3)
    };
    let coarse = Raster::from_values(n, n, (0..n * n).map(value).collect());
    let surface = CoarseSurface::new(coarse, 1440.0, CoarseMode::Mean, &RoughnessModel::default());
    let cell_m = 1440.0 / factor as f64;
    let whole = Window { col: 0, row: 0, cols: size, rows: size };
    let placement = Placement::new(whole.grown(halo_cells(cell_m, factor)), |nodes| {
        Ok::<_, std::convert::Infallible>(
            nodes.iter().map(|&(c, r)| Uv { u: c as f64 / factor as f64, v: r as f64 / factor as f64 }).collect(),
        )
    });
    let Ok(placement) = placement;
    let land = PlacedSurface { surface, placement };
    let body_window = working_window(&land, cell_m, factor, whole);
    let mut terrain = Terrain {
        cell_m,
        coarse_span_cells: factor,
        straddle: histmap::terrain::Straddle::None,
        land,
        sea_floor: None,
        body: Raster::filled(0, 0, 0),
        body_window,
        bodies: Vec::new(),
        rivers: Vec::new(),
        pins: Vec::new(),
        intervals: None,
    };
    if bound {
        let side = size as f64;
        terrain.body = Raster::filled(body_window.cols, body_window.rows, 0);
        for r in 0..body_window.rows {
            for c in 0..body_window.cols {
                let (x, y) = ((body_window.col + c as i64) as f64, (body_window.row + r as i64) as f64);
                if (x - 0.7 * side).hypot(y - 0.3 * side) < 0.05 * side {
                    terrain.body.set(c, r, 1);
                }
            }
        }
        terrain.bodies = vec![BodyLevel { kind: WaterKind::Lake, level_m: 1200.0 }];
        let point = |k: i32| {
            let t = f64::from(k) / 200.0;
            let y_cells = (0.6 + 0.05 * (12.0 * t).sin()) * side;
            CoursePoint { x_cells: (0.05 + 0.9 * t) * side, y_cells, z_m: 1400.0 - 500.0 * t }
        };
        terrain.rivers = vec![RiverCourse { points: (0..=200).map(point).collect(), rank: 1 }];
        let pin = |k: i64| Pin {
            cell: Cell { col: (k * size as i64) / 5, row: size as i64 / 6 },
            z_m: 2900.0 + k as f32,
            summit: true,
        };
        terrain.pins = (1..=4).map(pin).collect();
    }
    terrain
}
