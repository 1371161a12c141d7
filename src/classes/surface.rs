//! A smooth surface through class boundaries and contour lines that stays inside its interval everywhere.
//!
//! Between a lower and a higher boundary the height goes with the distances to both; where a class has only a lower one it
//! becomes a dome, where it has only a higher one a bowl. Distances are those within the class, by the fast sweeping method
//! (Zhao, "A fast sweeping method for eikonal equations", Mathematics of Computation 74, 2005). The creases that this leaves
//! at boundaries and ridges are then smoothed under bounds: smoothing by a kernel that keeps quadratic surfaces, as thin
//! plates do, and projection onto the bounds, in turn (the obstacle problem of Utreras, "Constrained surface construction",
//! Topics in Multivariate Approximation, 1987). The bounds leave each cell at least a share of its distance from either end
//! of its interval: no cell comes to lie on it, so that there are neither flat tops nor steps.
//!
//! Pure arithmetic on arrays: no files, no GDAL.

use crate::raster::Raster;
use rayon::prelude::*;
use std::collections::VecDeque;

/// What is known of a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Known {
    /// Nothing.
    Free,
    /// The height lies above `low_m` (minus infinity where open) and below `high_m` (infinity where open).
    Between {
        /// Metres.
        low_m: f32,
        /// Metres.
        high_m: f32,
    },
    /// The height: water, a contour line.
    At(f32),
}

impl Known {
    fn bounds(self) -> (f32, f32) {
        match self {
            Known::Free => (f32::NEG_INFINITY, f32::INFINITY),
            Known::Between { low_m, high_m } => (low_m, high_m),
            Known::At(z) => (z, z),
        }
    }

    fn is_same(self, other: Known) -> bool {
        match (self, other) {
            (Known::At(_), _) | (_, Known::At(_)) => false,
            _ => self == other,
        }
    }
}

/// The surface, and what was found on the way.
#[derive(Debug, Clone)]
pub(super) struct Surface {
    /// Metres.
    pub(super) values: Raster<f32>,
    /// Rise per cell that is usual between two boundaries.
    pub(super) usual_rise_m: f32,
    /// Usual width of a class that has both, cells.
    pub(super) usual_width: f32,
}

/// Share of its distance to either end of the interval that smoothing leaves a cell at least.
const KEPT: f32 = 0.3;
/// Rounds of smoothing and projection.
const ROUNDS: usize = 12;

/// The surface of `known`. Takes about 60 bytes and a microsecond per cell.
pub(super) fn surface(known: &Raster<Known>) -> Surface {
    let (cols, rows) = (known.cols, known.rows);
    let (part, count) = parts(known);
    let Boundaries { low, high } = boundaries(known, &part);
    let to_low = distances(&low, &part, cols, rows);
    let to_high = distances(&high, &part, cols, rows);

    // What is usual: rise by cell, width of a class, height of one.
    let (mut rises, mut widths, mut steps) = (Vec::new(), Vec::new(), Vec::new());
    for (i, k) in known.values.iter().enumerate() {
        if let Known::Between { low_m, high_m } = *k
            && low_m.is_finite()
            && high_m.is_finite()
        {
            steps.push(high_m - low_m);
            let width = to_low[i] + to_high[i];
            if width.is_finite() {
                widths.push(width);
                rises.push((high_m - low_m) / width);
            }
        }
    }
    let middle = |values: &mut Vec<f32>, otherwise: f32| {
        values.sort_by(f32::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(otherwise)
    };
    let step = middle(&mut steps, 100.0);
    let width = middle(&mut widths, 8.0);
    let usual_rise_m = middle(&mut rises, step / width.max(1.0));

    // By part: deepest points, and the ends of open intervals.
    let mut deep = vec![(0f32, 0f32); count];
    let mut held: Vec<(f32, f32)> = vec![(f32::INFINITY, f32::NEG_INFINITY); count];
    for (i, &p) in part.iter().enumerate().filter(|(_, p)| **p != NO_PART) {
        let d = &mut deep[p as usize];
        let reach = |d: f32| if d.is_finite() { d } else { 0.0 };
        *d = (d.0.max(reach(to_low[i])), d.1.max(reach(to_high[i])));
        each_neighbour(i, cols, rows, |n| {
            if let Known::At(z) = known.values[n] {
                let h = &mut held[p as usize];
                *h = (h.0.min(z), h.1.max(z));
            }
        });
    }
    let mut values = vec![f32::NAN; known.values.len()];
    let mut kept = vec![(f32::NEG_INFINITY, f32::INFINITY); known.values.len()];
    for i in 0..values.len() {
        let (low_m, high_m) = match known.values[i] {
            Known::At(z) => {
                (values[i], kept[i]) = (z, (z, z));
                continue;
            }
            Known::Free => continue,
            Known::Between { low_m, high_m } => (low_m, high_m),
        };
        let p = part[i] as usize;
        // An open end is where water or a line that adjoins is; else a step away, and land ends at 0.
        let low = match low_m.is_finite() {
            true => low_m,
            false if held[p].0 < high_m => held[p].0,
            false if high_m > 0.0 => 0.0f32.min(high_m - step),
            false => high_m - step,
        };
        let high = if high_m.is_finite() { high_m } else { low + 1.5 * step };
        let span = high - low;
        // A dome or bowl rises as classes do, and the less the nearer it comes to the end of its interval.
        let rise = |depth: f32| 0.9 * span * (1.0 - (-usual_rise_m * depth / span).exp());
        let arch = |d: f32, depth: f32| (d / depth.max(0.5)) * (2.0 - d / depth.max(0.5));
        let z = match (to_low[i].is_finite(), to_high[i].is_finite()) {
            (true, true) => low + span * to_low[i] / (to_low[i] + to_high[i]),
            (true, false) => low + rise(deep[p].0) * arch(to_low[i], deep[p].0),
            (false, true) => high - rise(deep[p].1) * arch(to_high[i], deep[p].1),
            (false, false) => low + 0.5 * span,
        };
        values[i] = z;
        // An end that is only reckoned binds nothing.
        kept[i] = (low + KEPT * (z - low), if high_m.is_finite() { high - KEPT * (high - z) } else { f32::INFINITY });
    }
    spread(&mut values, cols, rows);
    let sigma = (0.25 * width).clamp(1.0, 12.0);
    for _ in 0..ROUNDS {
        let once = blurred(&values, cols, rows, sigma);
        let twice = blurred(&once, cols, rows, sigma);
        values.par_iter_mut().enumerate().for_each(|(i, v)| {
            *v = (2.0 * once[i] - twice[i]).max(kept[i].0).min(kept[i].1);
        });
    }
    Surface { values: Raster::from_values(cols, rows, values), usual_rise_m, usual_width: width }
}

const NO_PART: u32 = u32::MAX;

fn each_neighbour(i: usize, cols: usize, rows: usize, mut each: impl FnMut(usize)) {
    let (c, r) = (i % cols, i / cols);
    if c > 0 {
        each(i - 1);
    }
    if c + 1 < cols {
        each(i + 1);
    }
    if r > 0 {
        each(i - cols);
    }
    if r + 1 < rows {
        each(i + cols);
    }
}

/// Connected cells of one interval, numbered; cells of known height belong to none.
fn parts(known: &Raster<Known>) -> (Vec<u32>, usize) {
    let (cols, rows) = (known.cols, known.rows);
    let mut part = vec![NO_PART; known.values.len()];
    let mut count = 0;
    let mut queue = VecDeque::new();
    for start in 0..part.len() {
        if part[start] != NO_PART || matches!(known.values[start], Known::At(_)) {
            continue;
        }
        part[start] = count;
        queue.push_back(start);
        while let Some(i) = queue.pop_front() {
            each_neighbour(i, cols, rows, |n| {
                if part[n] == NO_PART && known.values[n].is_same(known.values[i]) {
                    part[n] = count;
                    queue.push_back(n);
                }
            });
        }
        count += 1;
    }
    (part, count as usize)
}

/// Cells beside a lower and beside a higher class.
struct Boundaries {
    low: Vec<bool>,
    high: Vec<bool>,
}

fn boundaries(known: &Raster<Known>, part: &[u32]) -> Boundaries {
    let (cols, rows) = (known.cols, known.rows);
    let (mut low, mut high) = (vec![false; part.len()], vec![false; part.len()]);
    for i in 0..part.len() {
        let Known::Between { low_m, high_m } = known.values[i] else { continue };
        each_neighbour(i, cols, rows, |n| {
            let (other_low, other_high) = known.values[n].bounds();
            // Water may stand inside an open interval: it is the lower side of it.
            let is_water_below = matches!(known.values[n], Known::At(z) if low_m == f32::NEG_INFINITY && z < high_m);
            low[i] |= other_high <= low_m || is_water_below;
            high[i] |= other_low >= high_m;
        });
    }
    Boundaries { low, high }
}

/// Distance of each cell to the seeds of its own part, within the part, cells; infinite where it has none.
fn distances(seeds: &[bool], part: &[u32], cols: usize, rows: usize) -> Vec<f32> {
    let mut d: Vec<f32> = seeds.iter().map(|s| if *s { 0.5 } else { f32::INFINITY }).collect();
    // Winding parts take more sweeps; none in practice takes as many as this.
    for round in 0..64 {
        let mut moved = 0f32;
        for sweep in 0..4 {
            for r in 0..rows {
                let r = if sweep & 1 == 0 { r } else { rows - 1 - r };
                for c in 0..cols {
                    let c = if sweep & 2 == 0 { c } else { cols - 1 - c };
                    let i = r * cols + c;
                    let p = part[i];
                    if p == NO_PART || seeds[i] {
                        continue;
                    }
                    let of = |is_there: bool, n: usize| if is_there && part[n] == p { d[n] } else { f32::INFINITY };
                    let across = of(c > 0, i.wrapping_sub(1)).min(of(c + 1 < cols, i + 1));
                    let along = of(r > 0, i.wrapping_sub(cols)).min(of(r + 1 < rows, i + cols));
                    let (a, b) = (across.min(along), across.max(along));
                    if !a.is_finite() {
                        continue;
                    }
                    let new = if b - a >= 1.0 { a + 1.0 } else { 0.5 * (a + b + (2.0 - (a - b) * (a - b)).sqrt()) };
                    if new < d[i] - 1e-4 {
                        moved = moved.max(if d[i].is_finite() { d[i] - new } else { 1.0 });
                        d[i] = new;
                    }
                }
            }
        }
        if moved < 1e-2 && round > 0 {
            break;
        }
    }
    d
}

/// Gives cells without a value that of the nearest one, by steps; 0 where there is none at all.
fn spread(values: &mut [f32], cols: usize, rows: usize) {
    let mut queue: VecDeque<usize> = (0..values.len()).filter(|&i| values[i].is_finite()).collect();
    if queue.is_empty() {
        values.fill(0.0);
    }
    while let Some(i) = queue.pop_front() {
        let z = values[i];
        each_neighbour(i, cols, rows, |n| {
            if values[n].is_nan() {
                values[n] = z;
                queue.push_back(n);
            }
        });
    }
}

/// `values` under three running means, which together are close to a Gaussian of `sigma` cells; the edge repeats.
fn blurred(values: &[f32], cols: usize, rows: usize, sigma: f32) -> Vec<f32> {
    // Three means of width w have the variance (w² - 1) / 4.
    let half = ((((4.0 * sigma * sigma + 1.0).sqrt() - 1.0) * 0.5).round() as usize).max(1);
    let mut across = values.to_vec();
    across.par_chunks_mut(cols).for_each(|row| (0..3).for_each(|_| mean_along(row, half)));
    let mut turned = transposed(&across, cols, rows);
    turned.par_chunks_mut(rows).for_each(|column| (0..3).for_each(|_| mean_along(column, half)));
    transposed(&turned, rows, cols)
}

fn transposed(values: &[f32], cols: usize, rows: usize) -> Vec<f32> {
    let mut out = vec![0f32; values.len()];
    out.par_chunks_mut(rows).enumerate().for_each(|(c, column)| {
        column.iter_mut().enumerate().for_each(|(r, v)| *v = values[r * cols + c]);
    });
    out
}

/// Running mean of `2 * half + 1` values.
fn mean_along(line: &mut [f32], half: usize) {
    let n = line.len();
    let source = line.to_vec();
    let at = |k: i64| f64::from(source[k.clamp(0, n as i64 - 1) as usize]);
    let reach = half as i64;
    let mut sum: f64 = (-reach..=reach).map(at).sum();
    let share = 1.0 / (2.0 * half as f64 + 1.0);
    for (k, v) in line.iter_mut().enumerate() {
        *v = (sum * share) as f32;
        sum += at(k as i64 + reach + 1) - at(k as i64 - reach);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes(cols: usize, rows: usize, of: impl Fn(f32, f32) -> Known) -> Raster<Known> {
        let at = |i: usize| of((i % cols) as f32 + 0.5, (i / cols) as f32 + 0.5);
        Raster::from_values(cols, rows, (0..cols * rows).map(at).collect())
    }

    fn between(low_m: f32, high_m: f32) -> Known {
        Known::Between { low_m, high_m }
    }

    #[test]
    fn a_cone_comes_back_from_its_tints() {
        // A cone of 10 m a cell, 799 m high, tinted every 200 m, and the plain around open downward.
        let (n, middle) = (201, 100.5);
        let cone = |x: f32, y: f32| 799.0 - 10.0 * (x - middle).hypot(y - middle);
        let known = classes(n, n, |x, y| {
            let z = cone(x, y);
            if z < 0.0 {
                between(f32::NEG_INFINITY, 0.0)
            } else {
                between((z / 200.0).floor() * 200.0, (z / 200.0).floor() * 200.0 + 200.0)
            }
        });
        let s = surface(&known);
        assert!((s.usual_rise_m - 10.0).abs() < 0.5, "{}", s.usual_rise_m);
        let mut worst = 0f32;
        for r in 0..n {
            for c in 0..n {
                let (z, truth) = (s.values.at(c, r), cone(c as f32 + 0.5, r as f32 + 0.5));
                let (low, high) = known.at(c, r).bounds();
                assert!(z > low && z < high, "{z} at {c}, {r} in {low} to {high}");
                // Between two boundaries; the top has only one.
                if (40.0..580.0).contains(&truth) {
                    worst = worst.max((z - truth).abs());
                }
            }
        }
        assert!(worst < 15.0, "{worst}");
        // The top is a dome that rises from 600 m to its middle, nowhere flat.
        let along: Vec<f32> = (82..=100).map(|c| s.values.at(c, 100)).collect();
        assert!(along.windows(2).all(|w| w[1] > w[0]), "{along:?}");
        assert!((640.0..800.0).contains(along.last().unwrap()), "{along:?}");
    }

    #[test]
    fn a_class_at_the_sea_rises_from_it_and_a_line_is_met() {
        let known = classes(120, 20, |x, _| match x {
            x if x < 20.0 => Known::At(-28.0),
            x if x < 60.0 => between(f32::NEG_INFINITY, 100.0),
            x if x < 61.0 => Known::At(100.0),
            _ => between(100.0, 300.0),
        });
        let s = surface(&known);
        let along: Vec<f32> = (20..120).map(|c| s.values.at(c, 10)).collect();
        assert!(along.windows(2).all(|w| w[1] > w[0]), "{along:?}");
        assert!((-28.0..-15.0).contains(&along[0]), "{}", along[0]);
        assert_eq!(s.values.at(60, 10), 100.0);
    }

    #[test]
    fn no_boundary_at_all_is_the_middle_and_nothing_known_is_zero() {
        assert!(
            surface(&classes(9, 9, |_, _| between(100.0, 300.0)))
                .values
                .values
                .iter()
                .all(|v| (*v - 200.0).abs() < 1e-3)
        );
        assert!(surface(&classes(9, 9, |_, _| Known::Free)).values.values.iter().all(|v| *v == 0.0));
    }
}
