//! From grid cells to sheet pixels and back: area means where pixels are coarser than cells, cubic B-splines where they
//! are finer, votes for classes; and the scan conversion of polygons. Every pass is parallel by rows and independent of
//! the thread count.

use crate::raster::Raster;
use geo::{LineString, Polygon};
use rayon::prelude::*;

/// Source cells that one pixel row or column reads, with weights that add up to 1.
struct Taps {
    first: usize,
    weights: Vec<f32>,
}

/// Taps for each of `size` pixels over `cells` cells.
fn taps(cells: usize, size: usize) -> Vec<Taps> {
    let ratio = cells as f64 / size as f64;
    (0..size)
        .map(|k| {
            let (lo, hi) = (k as f64 * ratio, (k + 1) as f64 * ratio);
            let (first, weights): (usize, Vec<f64>) = if ratio >= 1.0 {
                let (first, last) = (lo.floor() as usize, (hi.ceil() as usize).min(cells));
                (first, (first..last).map(|c| (hi.min((c + 1) as f64) - lo.max(c as f64)).max(0.0)).collect())
            } else {
                // Cubic B-spline around the pixel's centre, folded back at the edges.
                let centre = (lo + hi) / 2.0 - 0.5;
                let from = centre.floor() as i64 - 1;
                let first = from.clamp(0, cells as i64 - 1) as usize;
                let last = (from + 3).clamp(0, cells as i64 - 1) as usize;
                let mut w = vec![0.0; last - first + 1];
                for c in from..from + 4 {
                    let d = (c as f64 - centre).abs();
                    let v =
                        if d < 1.0 { 2.0 / 3.0 - d * d + d * d * d / 2.0 } else { (2.0 - d).max(0.0).powi(3) / 6.0 };
                    w[c.clamp(first as i64, last as i64) as usize - first] += v;
                }
                (first, w)
            };
            let sum: f64 = weights.iter().sum();
            Taps { first, weights: weights.iter().map(|w| (w / sum) as f32).collect() }
        })
        .collect()
}

/// A raster of `width` x `height` pixels from `cols` x `rows` cells whose `value(col, row)` may be NaN (left out of the
/// mean; a pixel that sees no value is NaN).
pub(super) fn resample(
    (cols, rows): (usize, usize),
    (width, height): (usize, usize),
    value: impl Fn(usize, usize) -> f32 + Sync,
) -> Raster<f32> {
    let (across, down) = (taps(cols, width), taps(rows, height));
    let mut out = vec![f32::NAN; width * height];
    out.par_chunks_mut(width).enumerate().for_each_init(
        || vec![(0.0f32, 0.0f32); cols],
        |column, (y, out)| {
            column.fill((0.0, 0.0));
            for (k, &weight) in down[y].weights.iter().enumerate() {
                for (col, (sum, known)) in column.iter_mut().enumerate() {
                    let v = value(col, down[y].first + k);
                    if !v.is_nan() {
                        *sum += weight * v;
                        *known += weight;
                    }
                }
            }
            for (t, v) in across.iter().zip(out) {
                let (mut sum, mut known) = (0.0, 0.0);
                for (&weight, &(s, w)) in t.weights.iter().zip(&column[t.first..]) {
                    sum += weight * s;
                    known += weight * w;
                }
                if known > 1e-6 {
                    *v = sum / known;
                }
            }
        },
    );
    Raster::from_values(width, height, out)
}

/// The class with most weight in each pixel; cells where `class` is `None` do not vote, and a pixel without votes is 0.
/// Ties go to the lower class.
pub(super) fn vote(
    (cols, rows): (usize, usize),
    (width, height): (usize, usize),
    class: impl Fn(usize, usize) -> Option<u16> + Sync,
) -> Raster<u16> {
    let (across, down) = (taps(cols, width), taps(rows, height));
    let mut out = vec![0u16; width * height];
    out.par_chunks_mut(width).enumerate().for_each(|(y, out)| {
        let mut votes: Vec<(u16, f32)> = Vec::new();
        for (x, v) in out.iter_mut().enumerate() {
            votes.clear();
            for (j, &wy) in down[y].weights.iter().enumerate() {
                for (i, &wx) in across[x].weights.iter().enumerate() {
                    let Some(c) = class(across[x].first + i, down[y].first + j) else { continue };
                    match votes.iter_mut().find(|(k, _)| *k == c) {
                        Some((_, w)) => *w += wx * wy,
                        None => votes.push((c, wx * wy)),
                    }
                }
            }
            let best = votes.iter().copied().reduce(|a, b| if b.1 > a.1 || (b.1 == a.1 && b.0 < a.0) { b } else { a });
            *v = best.map_or(0, |b| b.0);
        }
    });
    Raster::from_values(width, height, out)
}

/// Calls `span(row, first, last)` for the runs of pixel centres inside `polygon` (pixel coordinates, even-odd), clipped
/// to the raster; `last` is excluded.
pub(super) fn scan_polygon(
    polygon: &Polygon<f64>,
    width: usize,
    height: usize,
    mut span: impl FnMut(usize, usize, usize),
) {
    let mut crossings: Vec<Vec<f64>> = vec![Vec::new(); height];
    let mut ring = |ring: &LineString<f64>| {
        for l in ring.lines() {
            let (a, b) = if l.start.y <= l.end.y { (l.start, l.end) } else { (l.end, l.start) };
            if a.y == b.y {
                continue;
            }
            let first = (a.y - 0.5).ceil().max(0.0) as usize;
            for (row, c) in crossings.iter_mut().enumerate().skip(first) {
                let y = row as f64 + 0.5;
                if y >= b.y {
                    break;
                }
                c.push(a.x + (b.x - a.x) * (y - a.y) / (b.y - a.y));
            }
        }
    };
    ring(polygon.exterior());
    polygon.interiors().iter().for_each(&mut ring);
    for (row, c) in crossings.iter_mut().enumerate() {
        c.sort_by(f64::total_cmp);
        for pair in c.chunks_exact(2) {
            let clip = |x: f64| (x - 0.5).ceil().clamp(0.0, width as f64) as usize;
            let (first, last) = (clip(pair[0]), clip(pair[1]));
            if last > first {
                span(row, first, last);
            }
        }
    }
}

/// `raster` smoothed by a Gaussian of `sigma_px` (three box passes); borders repeat. Without NaN.
pub(super) fn blur(raster: &Raster<f32>, sigma_px: f32) -> Raster<f32> {
    let radius = ((sigma_px * sigma_px * 4.0 + 1.0).sqrt() / 2.0 - 0.5).round() as usize;
    if radius == 0 {
        return raster.clone();
    }
    let across = box_rows(raster.clone(), radius);
    transpose(&box_rows(transpose(&across), radius))
}

/// Three box means of `2 radius + 1` along each row.
fn box_rows(mut r: Raster<f32>, radius: usize) -> Raster<f32> {
    let cols = r.cols;
    if cols == 0 {
        return r;
    }
    r.values.par_chunks_mut(cols).for_each_init(
        || vec![0.0f32; cols],
        |copy, row| {
            let n = (2 * radius + 1) as f64;
            for _ in 0..3 {
                copy.copy_from_slice(row);
                let at = |k: i64| f64::from(copy[k.clamp(0, cols as i64 - 1) as usize]);
                let mut sum: f64 = (-(radius as i64)..=radius as i64).map(at).sum();
                for (k, v) in row.iter_mut().enumerate() {
                    *v = (sum / n) as f32;
                    sum += at(k as i64 + radius as i64 + 1) - at(k as i64 - radius as i64);
                }
            }
        },
    );
    r
}

/// Rows for columns.
pub(super) fn transpose<T: Copy + Send + Sync + Default>(r: &Raster<T>) -> Raster<T> {
    let (cols, rows) = (r.cols, r.rows);
    let mut values = vec![T::default(); cols * rows];
    if rows > 0 {
        // Bands of source columns, so that both sides stay in cache.
        values.par_chunks_mut(rows * 16).enumerate().for_each(|(band, out)| {
            for row in 0..rows {
                for (k, column) in out.chunks_mut(rows).enumerate() {
                    column[row] = r.values[row * cols + band * 16 + k];
                }
            }
        });
    }
    Raster::from_values(rows, cols, values)
}

/// Distance in pixels from each pixel's centre to the nearest seed's centre (Felzenszwalb & Huttenlocher 2012, exact);
/// a large number where there is no seed.
pub(super) fn distance(width: usize, height: usize, seed: impl Fn(usize, usize) -> bool + Sync) -> Raster<f32> {
    const FAR: f32 = 1e6;
    let mut along = Raster::filled(width, height, FAR);
    if width == 0 || height == 0 {
        return along;
    }
    along.values.par_chunks_mut(width).enumerate().for_each(|(y, row)| {
        let mut d = FAR;
        for (x, v) in row.iter_mut().enumerate() {
            d = if seed(x, y) { 0.0 } else { d + 1.0 };
            *v = d.min(FAR);
        }
        d = FAR;
        for v in row.iter_mut().rev() {
            d = if *v == 0.0 { 0.0 } else { d + 1.0 };
            *v = v.min(d);
        }
    });
    let mut turned = transpose(&along);
    turned.values.par_chunks_mut(height).for_each_init(
        || (vec![0.0f32; height], vec![0usize; height], vec![0.0f32; height + 1]),
        |(f, hull, bound), column| {
            for (f, v) in f.iter_mut().zip(column.iter()) {
                *f = v * v;
            }
            let mut k = 0;
            hull[0] = 0;
            bound[0] = f32::NEG_INFINITY;
            bound[1] = f32::INFINITY;
            for q in 1..f.len() {
                loop {
                    let p = hull[k];
                    let s = ((f[q] - f[p]) / (q - p) as f32 + (q + p) as f32) / 2.0;
                    if s <= bound[k] && k > 0 {
                        k -= 1;
                        continue;
                    }
                    k += 1;
                    hull[k] = q;
                    bound[k] = s;
                    bound[k + 1] = f32::INFINITY;
                    break;
                }
            }
            let mut k = 0;
            for (q, v) in column.iter_mut().enumerate() {
                while bound[k + 1] < q as f32 {
                    k += 1;
                }
                let d = q as f32 - hull[k] as f32;
                *v = (d * d + f[hull[k]]).sqrt().min(FAR);
            }
        },
    );
    transpose(&turned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use geo::polygon;

    #[test]
    fn means_leave_unknown_cells_out() {
        let z = [1.0, 3.0, f32::NAN, 5.0];
        let r = resample((2, 2), (1, 1), |c, r| z[r * 2 + c]);
        assert_eq!(r.values, [3.0]);
        assert!(resample((1, 1), (2, 2), |_, _| f32::NAN).values.iter().all(|v| v.is_nan()));
    }

    #[test]
    fn finer_pixels_keep_constants_and_order() {
        assert!(resample((3, 3), (20, 20), |_, _| 7.0).values.iter().all(|v| (v - 7.0).abs() < 1e-5));
        let r = resample((4, 1), (16, 1), |c, _| c as f32);
        assert!(r.values.windows(2).all(|w| w[0] <= w[1]), "{:?}", r.values);
    }

    #[test]
    fn votes_ignore_abstention() {
        let c = [Some(1), None, None, None, Some(2), Some(2), None, None, None];
        assert_eq!(vote((3, 3), (1, 1), |x, y| c[y * 3 + x]).values, [2]);
        assert_eq!(vote((2, 1), (1, 1), |x, _| Some([9, 4][x])).values, [4]);
    }

    #[test]
    fn distance_is_euclidean() {
        let d = distance(5, 4, |x, y| (x, y) == (1, 1) || (x, y) == (4, 3));
        for y in 0..4i32 {
            for x in 0..5i32 {
                let to = |a: i32, b: i32| (((x - a).pow(2) + (y - b).pow(2)) as f32).sqrt();
                assert!((d.at(x as usize, y as usize) - to(1, 1).min(to(4, 3))).abs() < 1e-5);
            }
        }
        assert!(distance(3, 3, |_, _| false).values.iter().all(|&v| v > 1e5));
    }

    #[test]
    fn spans_cover_pixel_centres_and_skip_holes() {
        let p = polygon!(exterior: [(x: 0.0, y: 0.0), (x: 4.0, y: 0.0), (x: 4.0, y: 3.0), (x: 0.0, y: 3.0)],
            interiors: [[(x: 1.0, y: 1.0), (x: 2.0, y: 1.0), (x: 2.0, y: 2.0), (x: 1.0, y: 2.0)]]);
        let mut seen = Vec::new();
        scan_polygon(&p, 10, 10, |r, a, b| seen.push((r, a, b)));
        assert_eq!(seen, [(0, 0, 4), (1, 0, 1), (1, 2, 4), (2, 0, 4)]);
    }

    #[test]
    fn blur_keeps_the_mean_of_a_plain() {
        assert!(blur(&Raster::filled(9, 7, 4.0), 2.0).values.iter().all(|v| (v - 4.0).abs() < 1e-5));
    }
}
