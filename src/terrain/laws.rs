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
        straddle: Straddle::None,
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
    fn every_river_descends_strictly_to_its_mouth(seed in 0u64..1000, factor in 2usize..9, bend in 0.0f64..0.3) {
        let all = whole(14, 12, factor);
        let mut t = bare(hills(14, 12, seed), factor, 250.0, all);
        // Two rivers of their own slopes, the second ending on the first.
        let (w, h) = (all.cols as f64, all.rows as f64);
        let trunk = |k: f64| CoursePoint {
            x_cells: (0.05 + 0.9 * k) * w,
            y_cells: (0.5 + bend * (9.0 * k).sin()) * h,
            z_m: 900.0 - 80.0 * k,
        };
        let end = trunk(0.6);
        let side = |k: f64| CoursePoint {
            x_cells: (0.2 + (end.x_cells / w - 0.2) * k) * w,
            y_cells: (0.95 + (end.y_cells / h - 0.95) * k) * h,
            z_m: 1200.0 + (end.z_m - 1200.0) * k,
        };
        let river = |f: &dyn Fn(f64) -> CoursePoint, rank| RiverCourse { points: (0..=30).map(|k| f(f64::from(k) / 30.0)).collect(), rank };
        t.rivers = vec![river(&trunk, 1), river(&side, 2)];
        let z = refine_window(&t, all, &RefineOptions { seed, ..RefineOptions::default() }).elevation;
        let mut trunk_cells = std::collections::HashSet::new();
        for river in &t.rivers {
            // Cells in order, loops cut off: a bend that leaves a cell and comes back does not leave it.
            let mut cells: Vec<(i64, i64)> = Vec::new();
            for pair in river.points.windows(2) {
                for (col, row, _) in rivers::cells_crossed(pair[0], pair[1], all) {
                    match cells.iter().position(|c| *c == (col, row)) {
                        Some(k) => cells.truncate(k + 1),
                        None => cells.push((col, row)),
                    }
                }
            }
            // The side river's mouth is the trunk.
            let mouth = cells.iter().position(|c| trunk_cells.contains(c)).unwrap_or(cells.len() - 1);
            cells.truncate(mouth + 1);
            trunk_cells.extend(cells.iter().copied());
            prop_assert!(cells.len() > 4);
            for pair in cells.windows(2) {
                let (a, b) = (z.at(pair[0].0 as usize, pair[0].1 as usize), z.at(pair[1].0 as usize, pair[1].1 as usize));
                prop_assert!(b < a, "{a} then {b} at {:?}", pair[1]);
            }
        }
    }

    #[test]
    fn another_seed_leaves_pins_means_and_water_alone(seed in 0u64..1000, factor in 3usize..9) {
        let all = whole(14, 12, factor);
        let t = terrain(hills(14, 12, 3), factor, 250.0, all);
        let run = |seed| refine_window(&t, all, &RefineOptions { seed, ..RefineOptions::default() });
        let (a, b) = (run(seed), run(seed + 1));
        let differ = a.elevation.values.iter().zip(&b.elevation.values).filter(|(x, y)| x != y).count();
        prop_assert!(differ * 2 > a.elevation.values.len(), "only {differ} cells differ");
        let pin = t.pins[0].cell;
        prop_assert_eq!(a.elevation.get(pin), b.elevation.get(pin));
        prop_assert_eq!(&a.river, &b.river);
        let halo = halo_cells(250.0, factor);
        for (i, (x, y)) in a.elevation.values.iter().zip(&b.elevation.values).enumerate() {
            if t.body.at(i % all.cols + halo, i / all.cols + halo) != 0 {
                prop_assert_eq!(x, y);
            }
        }
        for relief in [&a, &b] {
            prop_assert!(relief.free_means.blocks > 20 && relief.free_means.rms_m <= 0.1, "{:?}", relief.free_means);
            prop_assert!(relief.free_means.worst_m <= 1.0, "{:?}", relief.free_means);
        }
    }

    #[test]
    fn no_cell_stands_out_like_a_needle(seed in 0u64..1000, factor in prop::sample::select(vec![4usize, 8, 16])) {
        let all = whole(14, 12, factor);
        let t = terrain(hills(14, 12, seed), factor, 90.0, all);
        let relief = refine_window(&t, all, &RefineOptions { seed, ..RefineOptions::default() });
        // Given heights are no needles: a summit may be one, and a river's end.
        let given = |c: usize, r: usize| relief.river.at(c, r) != 0 || t.pins[0].cell == Cell { col: c as i64, row: r as i64 };
        let worst = worst_needle(&relief.elevation, given);
        prop_assert!(worst <= 6.0, "{worst} sigma");
    }

    #[test]
    fn voids_and_infinities_are_filled_and_the_rest_is_kept(seed in 0u64..1000, holes in prop::collection::vec(0usize..168, 1..60)) {
        let mut values = hills(14, 12, seed);
        for (k, &hole) in holes.iter().enumerate() {
            values.values[hole] = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY][k % 3];
        }
        let all = whole(14, 12, 4);
        let relief = refine_window(&bare(values, 4, 90.0, all), all, &RefineOptions { seed, ..RefineOptions::default() });
        prop_assert!(relief.elevation.values.iter().all(|z| z.is_finite() && z.abs() < 4000.0));
        prop_assert!(relief.free_means.rms_m <= 0.1, "{:?}", relief.free_means);
        prop_assert_eq!(relief.free_means.blocks as usize, 168 - holes.iter().collect::<std::collections::HashSet<_>>().len());
    }

    #[test]
    fn finer_results_of_one_ladder_share_their_nodes(seed in 0u64..1000) {
        // Coarse cells of 1 km, refined to 250, 125 and 62.5 m: before the means are put right over fine cells, the nodes
        // of 500 m are the same in all three.
        let values = hills(9, 8, seed);
        let options = RefineOptions { seed, detail: Detail::Plain, ..RefineOptions::default() };
        let nodes = |factor: usize, level: u32| {
            let all = whole(9, 8, factor);
            let t = bare(values.clone(), factor, 1000.0 / factor as f64, all);
            ground::nodes(&t, all, level, &options)
        };
        let (a, b, c) = (nodes(4, 1), nodes(8, 2), nodes(16, 3));
        prop_assert_eq!(&a, &b);
        prop_assert_eq!(&b, &c);
        let other = ground::nodes(&bare(values.clone(), 4, 250.0, whole(9, 8, 4)), whole(9, 8, 4), 1, &RefineOptions { seed: seed + 1, ..options });
        prop_assert_ne!(&a, &other);
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

/// The farthest that a cell higher or lower than all around it lies off the mean of its ring, in units of the rms of that difference over the 81 cells around it.
fn worst_needle(z: &Raster<f32>, given: impl Fn(usize, usize) -> bool) -> f64 {
    let off = |c: usize, r: usize| {
        let ring: f32 = (0..9).filter(|k| *k != 4).map(|k| z.at(c + k % 3 - 1, r + k / 3 - 1)).sum();
        f64::from(z.at(c, r) - ring / 8.0)
    };
    let mut worst = 0f64;
    for r in 5..z.rows - 5 {
        for c in 5..z.cols - 5 {
            let ring = || (0..9).filter(|k| *k != 4).map(|k| z.at(c + k % 3 - 1, r + k / 3 - 1));
            let here = z.at(c, r);
            if given(c, r) || !(ring().all(|v| v < here) || ring().all(|v| v > here)) {
                continue;
            }
            let others = (0..81).filter(|k| *k != 40).map(|k| off(c + k % 9 - 4, r + k / 9 - 4).powi(2));
            let sigma = (others.sum::<f64>() / 80.0).sqrt();
            // Ground smooth to the millimetre has no needles.
            worst = worst.max(off(c, r).abs() / sigma.max(0.01));
        }
    }
    worst
}

#[test]
fn the_needle_law_sees_a_needle() {
    let all = whole(14, 12, 8);
    let mut z = refine_window(&bare(hills(14, 12, 1), 8, 90.0, all), all, &RefineOptions::default()).elevation;
    let v = z.at(50, 50);
    z.set(50, 50, v + 150.0);
    assert!(worst_needle(&z, |_, _| false) > 6.0);
}

/// Share of the land cells, per cent, that water cannot leave: from the map's edge, from water and from marked cells, ground
/// is flooded upward (Priority-Flood); a cell below the water that stands on it is a sink.
fn sink_share(z: &Raster<f32>, is_out: impl Fn(usize, usize) -> bool) -> f64 {
    use std::cmp::Reverse;
    let key = |z: f32| (z * 1000.0) as i64;
    let (w, h) = (z.cols, z.rows);
    let mut done = vec![false; w * h];
    let mut heap = std::collections::BinaryHeap::new();
    for (i, is_done) in done.iter_mut().enumerate() {
        let (c, r) = (i % w, i / w);
        if c == 0 || r == 0 || c == w - 1 || r == h - 1 || is_out(c, r) {
            *is_done = true;
            heap.push(Reverse((key(z.values[i]), i)));
        }
    }
    let mut sinks = 0;
    while let Some(Reverse((level, i))) = heap.pop() {
        let (c, r) = (i % w, i / w);
        for y in r.saturating_sub(1)..(r + 2).min(h) {
            for x in c.saturating_sub(1)..(c + 2).min(w) {
                let n = y * w + x;
                if !done[n] {
                    done[n] = true;
                    sinks += usize::from(key(z.values[n]) < level);
                    heap.push(Reverse((key(z.values[n]).max(level), n)));
                }
            }
        }
    }
    assert!(done.iter().all(|d| *d));
    100.0 * sinks as f64 / (w * h) as f64
}

/// Sinks that drained ground may have, per cent of its cells.
const STATED_SINKS: f64 = 6.0;

#[test]
fn land_drains_to_water_the_edge_or_a_marked_basin_but_for_the_stated_sinks() {
    let all = whole(40, 36, 8);
    let mut plain = f64::INFINITY;
    for seed in 1..=4 {
        // A closed basin around the lake: the marked sink of all of it.
        let mut values = hills(40, 36, seed);
        let (x, y) = (26.6, 12.0);
        values.values.iter_mut().enumerate().for_each(|(k, v)| {
            let d = ((k % 40) as f32 - x).hypot((k / 40) as f32 - y);
            *v = 0.15 * *v + 60.0 * d;
        });
        let mut t = terrain(values, 8, 90.0, all);
        t.pins.clear();
        let halo = halo_cells(90.0, 8);
        let is_water = |c: usize, r: usize| t.body.at(c + halo, r + halo) != 0;
        let share = |detail| {
            let z = refine_window(&t, all, &RefineOptions { seed, detail, ..RefineOptions::default() }).elevation;
            (sink_share(&z, is_water), sink_share(&z, |_, _| false))
        };
        let (marked, unmarked) = share(Detail::Drained);
        assert!(marked <= STATED_SINKS, "seed {seed}: {marked} %");
        assert!(unmarked > STATED_SINKS, "the basin counts when it is not marked: {unmarked} %");
        plain = plain.min(share(Detail::Plain).0);
    }
    assert!(plain > STATED_SINKS, "plain ground must fail: {plain} %");
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
