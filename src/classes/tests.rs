//! Drawing ground into intervals, distances, contour lines.

use super::*;
use crate::grid::{Extent, Grid};
use proptest::prelude::*;

fn grid(cols: f64, rows: f64) -> Grid {
    let crs = Crs { name: "plane".into(), wkt: String::new(), is_geographic: false };
    Grid::snapped(crs, Extent { min_x: 0.0, min_y: 0.0, max_x: cols, max_y: rows }, 1.0).unwrap()
}

proptest! {
    #[test]
    fn drawn_ground_is_inside_and_in_order(
        low in -100.0..3000.0f64, width in 0.001..500.0f64, s in -200.0..4000.0f64,
        a in -500.0..6000.0f64, b in -500.0..6000.0f64, apart in 0.0..50.0f64, open in 0..3,
    ) {
        let bounds = Bounds {
            low_m: if open == 1 { OPEN.low_m } else { low },
            high_m: if open == 2 { OPEN.high_m } else { low + width },
        };
        let (x, y) = (drawn_into(a.min(b), s, bounds, apart, 1.0 / 32.0), drawn_into(a.max(b), s, bounds, apart, 1.0 / 32.0));
        prop_assert!(bounds.contains(f64::from(x)) && bounds.contains(f64::from(y)), "{x} {y} in {bounds:?}");
        prop_assert!(x <= y);
    }
}

#[test]
fn ground_well_inside_stays_where_it_is() {
    let bounds = Bounds { low_m: 200.0, high_m: 500.0 };
    for z in [300.0, 350.0, 420.0] {
        assert_eq!(drawn_into(z, 350.0, bounds, 5.0, 1.0 / 32.0), z as f32);
    }
    // And what lies far outside keeps some relief.
    assert!(drawn_into(900.0, 350.0, bounds, 5.0, 1.0 / 32.0) > drawn_into(700.0, 350.0, bounds, 5.0, 1.0 / 32.0));
}

#[test]
fn distances_are_counted_from_the_border_and_end_at_the_reach() {
    let class = Raster::from_values(8, 1, vec![1, 1, 1, 1, 1, 2, 2, 1]);
    assert_eq!(distance_to_other(&class, 3).values, [2.5, 2.5, 2.5, 1.5, 0.5, 0.5, 0.5, 0.5]);
}

proptest! {
    #[test]
    fn distances_of_a_part_are_those_of_the_whole(cells in prop::collection::vec(0u16..8, 20 * 16), reach in 1usize..4) {
        let class = Raster::from_values(20, 16, cells.iter().map(|c| c / 6).collect());
        let whole = distance_to_other(&class, reach);
        let part = Window { col: 3, row: 2, cols: 14, rows: 12 };
        let of_part = distance_to_other(&class.crop(part), reach);
        let inner = Window { col: reach as i64, row: reach as i64, cols: 14 - 2 * reach, rows: 12 - 2 * reach };
        let same = Window { col: part.col + inner.col, row: part.row + inner.row, ..inner };
        prop_assert_eq!(of_part.crop(inner), whole.crop(same));
    }
}

#[test]
fn between_contours_lie_their_heights_and_beyond_the_last_it_goes_on() {
    let ring = |r: f64| {
        LineString::from_iter((0..=64).map(|k| {
            let a = f64::from(k) / 64.0 * std::f64::consts::TAU;
            (30.0 + r * a.cos(), 30.0 + r * a.sin())
        }))
    };
    let frame = grid(60.0, 60.0);
    let drawn = lines::draw(&[(100.0, ring(25.0)), (200.0, ring(16.0)), (300.0, ring(7.0))], &frame);
    let (class, bounds) = lines::bounds(&drawn, &Raster::filled(60, 60, 0), &frame);
    let at = |c: usize| match class.at(c, 30) {
        0 => None,
        k => Some((bounds[k as usize - 1].low_m, bounds[k as usize - 1].high_m)),
    };
    assert_eq!(at(30), Some((300.0, 400.0)));
    assert_eq!(at(18), Some((200.0, 300.0)));
    assert_eq!(at(9), Some((100.0, 200.0)));
    assert_eq!(at(1), Some((0.0, 100.0)));
    // A lone ring: a hill, and nothing is known around it.
    let drawn = lines::draw(&[(100.0, ring(16.0))], &frame);
    let (class, bounds) = lines::bounds(&drawn, &Raster::filled(60, 60, 0), &frame);
    assert_eq!(bounds[class.at(30, 30) as usize - 1], Bounds { low_m: 100.0, high_m: 200.0 });
}
