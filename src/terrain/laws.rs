//! Laws of the engine, as properties over generated terrains.

use super::*;
use proptest::prelude::*;

/// A terrain without water on a coarse raster of `cols` x `rows` cells, refined by `factor`, ready for `window`.
fn terrain(values: Raster<f32>, factor: usize, cell_m: f64, window: Window) -> Terrain {
    let (cols, rows) = (values.cols, values.rows);
    let surface = CoarseSurface::new(values, cell_m * factor as f64, CoarseMode::Mean, &RoughnessModel::default());
    let region = window.grown(halo_cells(cell_m, factor));
    let f = factor as f64;
    let locate =
        |n: &[(i64, i64)]| Ok::<_, ()>(n.iter().map(|&(c, r)| Uv { u: c as f64 / f, v: r as f64 / f }).collect());
    let placement = Placement::new(region, locate).unwrap();
    // A round lake in the middle, at absolute cells so that every window sees the same.
    let (x, y) = ((cols * factor) as i64 * 2 / 3, (rows * factor) as i64 / 3);
    let mut body = Raster::filled(region.cols, region.rows, 0u16);
    for r in 0..region.rows {
        for c in 0..region.cols {
            let (dx, dy) = (region.col + c as i64 - x, region.row + r as i64 - y);
            if dx * dx + dy * dy < (factor * factor) as i64 {
                body.set(c, r, 1);
            }
        }
    }
    let course = |t: f64| CoursePoint {
        x_cells: (0.1 + 0.8 * t) * (cols * factor) as f64,
        y_cells: (0.8 + 0.1 * (7.0 * t).sin()) * (rows * factor) as f64,
        z_m: 400.0 - 300.0 * t,
    };
    let river = RiverCourse { points: (0..=20).map(|k| course(f64::from(k) / 20.0)).collect(), rank: 1 };
    let pin = Pin {
        cell: Cell { col: (cols * factor / 4) as i64, row: (rows * factor / 4) as i64 },
        z_m: 1234.5,
        summit: true,
    };
    Terrain {
        cell_m,
        coarse_span_cells: factor,
        block_parts: 1,
        intervals: None,
        land: PlacedSurface { surface, placement },
        sea_floor: None,
        body,
        body_window: region,
        bodies: vec![BodyLevel { kind: WaterKind::Lake, level_m: 150.0 }],
        rivers: vec![river],
        pins: vec![pin],
    }
}

/// The same without lake, river and pin.
fn bare(values: Raster<f32>, factor: usize, cell_m: f64, window: Window) -> Terrain {
    let mut t = terrain(values, factor, cell_m, window);
    t.body.values.fill(0);
    t.rivers.clear();
    t.pins.clear();
    t
}

fn hills(cols: usize, rows: usize, seed: u64) -> Raster<f32> {
    let key = noise::NoiseKey::new(seed, 1.0, 5);
    let z = |k: usize| {
        let (c, r) = ((k % cols) as i64, (k / cols) as i64);
        900.0 + 90.0 * key.normal(c, r) + 200.0 * (c as f32 * 0.7).sin() + 100.0 * (r as f32 * 0.9).cos()
    };
    Raster::from_values(cols, rows, (0..cols * rows).map(z).collect())
}

fn whole(cols: usize, rows: usize, factor: usize) -> Window {
    Window { col: 0, row: 0, cols: cols * factor, rows: rows * factor }
}

fn threads(n: usize, run: impl FnOnce() -> Relief + Send) -> Relief {
    rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap().install(run)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, ..ProptestConfig::default() })]

    #[test]
    fn a_window_equals_the_crop_of_the_whole(
        seed in 0u64..1000, factor in prop::sample::select(vec![1usize, 2, 3, 4, 7, 16]),
        cx in 0.0f64..0.8, cy in 0.0f64..0.8, w in 1usize..24, h in 1usize..24, plain in any::<bool>(),
    ) {
        let (cols, rows) = (40, 30);
        let all = whole(cols, rows, factor);
        let options = RefineOptions { seed, detail: if plain { Detail::Plain } else { Detail::Drained }, ..RefineOptions::default() };
        let full = refine_window(&terrain(hills(cols, rows, seed), factor, 300.0, all), all, &options);
        let col = (cx * all.cols as f64) as i64;
        let row = (cy * all.rows as f64) as i64;
        let window = Window { col, row, cols: w.min(all.cols - col as usize), rows: h.min(all.rows - row as usize) };
        let part = refine_window(&terrain(hills(cols, rows, seed), factor, 300.0, window), window, &options);
        prop_assert_eq!(part.elevation, full.elevation.crop(window));
        prop_assert_eq!(part.river, full.river.crop(window));
    }

    #[test]
    fn thread_counts_agree(seed in 0u64..1000, factor in 2usize..6) {
        let (cols, rows) = (12, 9);
        let all = whole(cols, rows, factor);
        let t = terrain(hills(cols, rows, seed), factor, 250.0, all);
        let options = RefineOptions { seed, ..RefineOptions::default() };
        let one = threads(1, || refine_window(&t, all, &options));
        for n in [2, 8] {
            let many = threads(n, || refine_window(&t, all, &options));
            prop_assert_eq!(&many.elevation, &one.elevation);
        }
    }

    #[test]
    fn pins_water_and_rivers_bind(seed in 0u64..1000, factor in 2usize..7) {
        let (cols, rows) = (14, 12);
        let all = whole(cols, rows, factor);
        let t = terrain(hills(cols, rows, 3), factor, 250.0, all);
        let relief = refine_window(&t, all, &RefineOptions { seed, ..RefineOptions::default() });
        let pin = t.pins[0];
        prop_assert_eq!(relief.elevation.get(pin.cell), Some(1234.5));
        let halo = halo_cells(250.0, factor);
        for r in 0..all.rows {
            for c in 0..all.cols {
                if t.body.at(c + halo, r + halo) == 1 {
                    prop_assert_eq!(relief.elevation.at(c, r), 150.0);
                }
            }
        }
        let mut last = f32::INFINITY;
        for pair in t.rivers[0].points.windows(2) {
            for (col, row, _) in rivers::cells_crossed(pair[0], pair[1], all) {
                let z = relief.elevation.at(col as usize, row as usize);
                prop_assert!(z <= last, "{} rises to {}", last, z);
                last = z;
            }
        }
    }

    #[test]
    fn flat_ground_stays_flat_to_the_bit(level in -400f32..4000.0, factor in 1usize..9) {
        let all = whole(9, 7, factor);
        let t = bare(Raster::filled(9, 7, level), factor, 250.0, all);
        let relief = refine_window(&t, all, &RefineOptions::default());
        let first = relief.elevation.values[0];
        prop_assert!((first - level).abs() <= level.abs() * 1e-6);
        prop_assert!(relief.elevation.values.iter().all(|&v| v == first));
    }

    #[test]
    fn block_means_are_kept(seed in 0u64..1000, factor in prop::sample::select(vec![2usize, 3, 4, 8, 16])) {
        let all = whole(16, 14, factor);
        let t = bare(hills(16, 14, seed), factor, 90.0, all);
        let relief = refine_window(&t, all, &RefineOptions { seed, ..RefineOptions::default() });
        prop_assert!(relief.free_means.rms_m <= 0.1, "{:?}", relief.free_means);
    }
}

#[test]
fn odd_rasters_behave() {
    for (cols, rows) in [(1, 1), (2, 3), (1, 9), (12, 1)] {
        for factor in [1, 2, 3, 7, 64] {
            let all = whole(cols, rows, factor);
            for values in [hills(cols, rows, 1), Raster::filled(cols, rows, f32::NAN)] {
                let relief = refine_window(&bare(values, factor, 90.0, all), all, &RefineOptions::default());
                assert!(relief.elevation.values.iter().all(|v| v.is_finite()), "{cols} x {rows}, factor {factor}");
            }
        }
    }
    let cliff = Raster::from_values(8, 8, (0..64).map(|k| if k % 8 < 4 { -20_000.0 } else { 20_000.0 }).collect());
    let all = whole(8, 8, 8);
    let relief = refine_window(&bare(cliff, 8, 90.0, all), all, &RefineOptions::default());
    assert!(relief.elevation.values.iter().all(|v| v.is_finite() && v.abs() < 80_000.0));
}

#[test]
fn drained_ground_has_few_pits_and_plain_ground_many() {
    let all = whole(24, 24, 8);
    let pits = |detail: Detail| {
        let t = bare(hills(24, 24, 5), 8, 90.0, all);
        let z = refine_window(&t, all, &RefineOptions { detail, ..RefineOptions::default() }).elevation;
        let mut n = 0;
        for r in 1..z.rows - 1 {
            for c in 1..z.cols - 1 {
                let lower = |d: (i64, i64)| z.at((c as i64 + d.0) as usize, (r as i64 + d.1) as usize) > z.at(c, r);
                n += usize::from((-1..=1).all(|y| (-1..=1).all(|x| (x, y) == (0, 0) || lower((x, y)))));
            }
        }
        n
    };
    let (drained, plain) = (pits(Detail::Drained), pits(Detail::Plain));
    assert!(drained * 3 < plain, "{drained} against {plain}");
}
