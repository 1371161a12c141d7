//! Filters of heightmaps: each takes a map and returns one of the same size. Values that are not numbers stay where they are
//! and count for nothing.

use crate::error::{Error, Result};
use crate::raster::Raster;
use rayon::prelude::*;

/// Gaussian blur of standard deviation `sigma` values, along x, then along y; the kernel reaches 4 sigma and is renormalised
/// at the borders and beside holes, so that a constant map stays constant.
///
/// Cost: 16 sigma + 2 products a value.
///
/// # Errors
/// [`Error::Argument`] for a sigma that is not a number from 0 to 10,000.
pub fn blur(z: &Raster<f32>, sigma: f64) -> Result<Raster<f32>> {
    if !(0.0..=10_000.0).contains(&sigma) {
        return Err(Error::argument("blur", sigma, "give a standard deviation of 0 to 10000 values"));
    }
    let reach = (4.0 * sigma).ceil() as usize;
    if reach == 0 {
        return Ok(z.clone());
    }
    let kernel: Vec<f32> = (0..=reach).map(|k| (-0.5 * (k as f64 / sigma).powi(2)).exp() as f32).collect();
    let whole = kernel[0] + 2.0 * kernel[1..].iter().sum::<f32>();
    let has_holes = z.values.par_iter().any(|v| !v.is_finite());
    let smooth = if has_holes { with_holes(z, &kernel) } else { without_holes(z, &kernel, whole) };
    Ok(smooth)
}

/// The share of the kernel inside 0..n at `at`.
fn inside(kernel: &[f32], at: usize, n: usize) -> f32 {
    let (west, east) = (at.min(kernel.len() - 1), (n - 1 - at).min(kernel.len() - 1));
    kernel[0] + kernel[1..=west].iter().sum::<f32>() + kernel[1..=east].iter().sum::<f32>()
}

fn without_holes(z: &Raster<f32>, kernel: &[f32], whole: f32) -> Raster<f32> {
    let (cols, rows) = (z.cols, z.rows);
    let reach = kernel.len() - 1;
    // Along x: each row with a margin of zeros, tap by tap over the whole row.
    let mut along = Raster::filled(cols, rows, 0f32);
    let share = |at: usize, n: usize| {
        if at >= reach && at + reach < n { 1.0 / whole } else { 1.0 / inside(kernel, at, n) }
    };
    let scale_x: Vec<f32> = (0..cols).map(|c| share(c, cols)).collect();
    along.values.par_chunks_mut(cols).zip(z.values.par_chunks(cols)).for_each_init(
        || vec![0f32; cols + 2 * reach],
        |padded, (out, row)| {
            padded[reach..reach + cols].copy_from_slice(row);
            out.iter_mut().zip(row).for_each(|(o, v)| *o = kernel[0] * v);
            let pair = |k: usize| (&padded[reach - k..][..cols], &padded[reach + k..][..cols]);
            add_pairs(out, kernel, pair);
            out.iter_mut().zip(&scale_x).for_each(|(o, s)| *o *= s);
        },
    );
    // Along y: rows of the result are sums of rows, a strip of columns at a time, so that the rows stay in the cache.
    let mut out = Raster::filled(cols, rows, 0f32);
    out.values.par_chunks_mut(BAND * cols).enumerate().for_each(|(band, part)| {
        for from in (0..cols).step_by(STRIP) {
            let to = (from + STRIP).min(cols);
            for (n, line) in part.chunks_mut(cols).enumerate() {
                let r = band * BAND + n;
                let out = &mut line[from..to];
                out.iter_mut().zip(&along.row(r)[from..to]).for_each(|(o, v)| *o = kernel[0] * v);
                if r >= reach && r + reach < rows {
                    add_pairs(out, kernel, |k| (&along.row(r - k)[from..to], &along.row(r + k)[from..to]));
                } else {
                    for (k, w) in kernel.iter().enumerate().skip(1) {
                        let mut add = |row: &[f32]| out.iter_mut().zip(&row[from..to]).for_each(|(o, v)| *o += w * v);
                        if r >= k {
                            add(along.row(r - k));
                        }
                        if r + k < rows {
                            add(along.row(r + k));
                        }
                    }
                }
                let scale = share(r, rows);
                out.iter_mut().for_each(|o| *o *= scale);
            }
        }
    });
    out
}

/// Rows and columns of the blocks of the second pass.
const BAND: usize = 64;
const STRIP: usize = 1024;

/// Adds to `out` the taps of the kernel beside the middle, each times the sum of the two values that far away on either side.
fn add_pairs<'a>(out: &mut [f32], kernel: &[f32], pair: impl Fn(usize) -> (&'a [f32], &'a [f32])) {
    let mut k = 1;
    while k + 3 < kernel.len() {
        let pairs = [pair(k), pair(k + 1), pair(k + 2), pair(k + 3)];
        add_four(out, [kernel[k], kernel[k + 1], kernel[k + 2], kernel[k + 3]], pairs);
        k += 4;
    }
    for (k, w) in kernel.iter().enumerate().skip(k) {
        let (a, b) = pair(k);
        for ((o, a), b) in out.iter_mut().zip(a).zip(b) {
            *o += w * (a + b);
        }
    }
}

/// Four taps at once; the same on every machine.
#[multiversion::multiversion(targets("x86_64+avx+avx2"))]
fn add_four(out: &mut [f32], w: [f32; 4], pairs: [(&[f32], &[f32]); 4]) {
    let n = out.len();
    let [(a0, b0), (a1, b1), (a2, b2), (a3, b3)] = pairs.map(|(a, b)| (&a[..n], &b[..n]));
    for k in 0..n {
        let near = w[0] * (a0[k] + b0[k]) + w[1] * (a1[k] + b1[k]);
        let far = w[2] * (a2[k] + b2[k]) + w[3] * (a3[k] + b3[k]);
        out[k] += near + far;
    }
}

/// The same where some values are missing: weights go with the values.
fn with_holes(z: &Raster<f32>, kernel: &[f32]) -> Raster<f32> {
    let known = z.values.par_iter().map(|v| if v.is_finite() { 1.0 } else { 0.0 }).collect();
    let filled = z.values.par_iter().map(|v| if v.is_finite() { *v } else { 0.0 }).collect();
    // Without renormalising, both passes are linear: the quotient is the weighted mean.
    let sums = |values: Vec<f32>| without_holes(&Raster::from_values(z.cols, z.rows, values), kernel, 1.0);
    let (weight, sum) = (sums(known), sums(filled));
    let values = z
        .values
        .par_iter()
        .zip(&sum.values)
        .zip(&weight.values)
        .map(|((v, s), w)| if v.is_finite() && *w > 0.0 { s / w } else { *v })
        .collect();
    Raster::from_values(z.cols, z.rows, values)
}

fn each(z: &Raster<f32>, change: impl Fn(f32) -> f32 + Sync) -> Raster<f32> {
    let values = z.values.par_iter().map(|&v| if v.is_finite() { change(v) } else { v }).collect();
    Raster::from_values(z.cols, z.rows, values)
}

/// Lowest and highest finite value; `None` without one.
pub fn range(z: &Raster<f32>) -> Option<(f32, f32)> {
    let (low, high) = z
        .values
        .par_iter()
        .filter(|v| v.is_finite())
        .map(|&v| (v, v))
        .reduce(|| (f32::INFINITY, f32::NEG_INFINITY), |a, b| (a.0.min(b.0), a.1.max(b.1)));
    (low <= high).then_some((low, high))
}

fn ordered(name: &str, low: f32, high: f32) -> Result<()> {
    if low.is_finite() && high.is_finite() && low <= high {
        return Ok(());
    }
    Err(Error::argument(name, format!("{low},{high}"), "give two finite numbers, the lower one first"))
}

/// Values below `low` become `low`, those above `high` become `high`; the second result counts them.
///
/// # Errors
/// [`Error::Argument`] for bounds that are not finite or out of order.
pub fn clamp(z: &Raster<f32>, low: f32, high: f32) -> Result<(Raster<f32>, u64)> {
    ordered("clamp", low, high)?;
    let outside = z.values.par_iter().filter(|v| **v < low || **v > high).count() as u64;
    Ok((each(z, |v| v.clamp(low, high)), outside))
}

/// Stretches the values to fill `low` to `high`; a constant map becomes `low`.
///
/// # Errors
/// [`Error::Argument`] for bounds that are not finite or out of order.
pub fn normalise(z: &Raster<f32>, low: f32, high: f32) -> Result<Raster<f32>> {
    ordered("normalise", low, high)?;
    let Some((min, max)) = range(z) else { return Ok(z.clone()) };
    let (min, span) = (f64::from(min), f64::from(max) - f64::from(min));
    let scale = if span > 0.0 { (f64::from(high) - f64::from(low)) / span } else { 0.0 };
    Ok(each(z, |v| ((f64::from(v) - min) * scale + f64::from(low)).clamp(f64::from(low), f64::from(high)) as f32))
}

/// `steps` even terraces between the lowest and the highest value; `softness` 0 gives cliffs, 1 leaves the map as it is.
///
/// # Errors
/// [`Error::Argument`] for no steps, or a softness outside 0 to 1.
pub fn terrace(z: &Raster<f32>, steps: u32, softness: f32) -> Result<Raster<f32>> {
    if steps == 0 {
        return Err(Error::argument("terrace", 0, "give 1 step or more"));
    }
    if !(0.0..=1.0).contains(&softness) {
        return Err(Error::argument("terrace", softness, "give a softness of 0 to 1"));
    }
    let Some((min, max)) = range(z) else { return Ok(z.clone()) };
    let span = max - min;
    if span <= 0.0 {
        return Ok(z.clone());
    }
    let n = steps as f32;
    Ok(each(z, |v| {
        let t = (v - min) / span * n;
        let flat = t.floor().min(n - 1.0);
        let level = if steps > 1 { flat / (n - 1.0) * n } else { 0.0 };
        min + span * (softness * t + (1.0 - softness) * level) / n
    }))
}

/// Turns the map upside down within its own range.
pub fn invert(z: &Raster<f32>) -> Raster<f32> {
    let Some((min, max)) = range(z) else { return z.clone() };
    each(z, |v| min + (max - v))
}

/// Lets the map sink to its lowest value towards the borders: whole within `1 - falloff` of the way from the middle, smoothly
/// less beyond, lowest on the ellipse that touches the borders and outside it.
///
/// # Errors
/// [`Error::Argument`] for a falloff that is not above 0 and at most 1.
pub fn island(z: &Raster<f32>, falloff: f32) -> Result<Raster<f32>> {
    if !(falloff > 0.0 && falloff <= 1.0) {
        return Err(Error::argument("island", falloff, "give a falloff above 0 and up to 1"));
    }
    let Some((min, _)) = range(z) else { return Ok(z.clone()) };
    let along = |k: usize, n: usize| ((k as f32 + 0.5) / n as f32 - 0.5) * 2.0;
    let mut out = z.clone();
    out.values.par_chunks_mut(z.cols).enumerate().for_each(|(r, row)| {
        let y = along(r, z.rows);
        for (c, v) in row.iter_mut().enumerate().filter(|(_, v)| v.is_finite()) {
            let away = along(c, z.cols).hypot(y);
            let t = ((1.0 - away) / falloff).clamp(0.0, 1.0);
            *v = min + (*v - min) * (t * t * (3.0 - 2.0 * t));
        }
    });
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn map(cols: usize, values: &[f32]) -> Raster<f32> {
        Raster::from_values(cols, values.len() / cols, values.to_vec())
    }

    /// Sigma 0.5, reach 2: kernel 1, e^-2, e^-8 (0.13534, 0.00033546). A single 1 in the middle of 5 x 1: whole sum 1.27134, so the
    /// middle gets 1/1.27134 = 0.78657; its neighbours lack one tap: 0.13534/(1.27134 - 0.00033546) = 0.10648; the ends:
    /// 0.00033546/(1 + 0.13534 + 0.00033546) = 0.00029538.
    #[test]
    fn a_blur_by_hand() {
        let z = blur(&map(5, &[0.0, 0.0, 1.0, 0.0, 0.0]), 0.5).unwrap();
        for (got, want) in z.values.iter().zip([0.000_295_38, 0.106_48, 0.786_57, 0.106_48, 0.000_295_38]) {
            assert!((got - want).abs() < 1e-5, "{:?}", z.values);
        }
    }

    /// The same kernel over 5 x 5: along x, then along y, so each value is the product of two of those above: 0.78657² = 0.61869 in
    /// the middle, 0.78657 · 0.10648 = 0.083755 beside it, 0.10648² = 0.011338 across the corner, and 0.00029538² in the corners of
    /// the map.
    #[test]
    fn a_blur_of_five_by_five_by_hand() {
        let mut z = Raster::filled(5, 5, 0f32);
        z.set(2, 2, 1.0);
        let b = blur(&z, 0.5).unwrap();
        for (at, want) in
            [((2, 2), 0.618_69), ((1, 2), 0.083_755), ((2, 3), 0.083_755), ((3, 1), 0.011_338), ((0, 4), 8.7e-8)]
        {
            assert!((b.at(at.0, at.1) - want).abs() < 1e-5, "{at:?}: {}", b.at(at.0, at.1));
        }
    }

    #[test]
    fn holes_stay_and_do_not_spread() {
        let z = blur(&map(5, &[2.0, 2.0, f32::NAN, 2.0, 2.0]), 1.0).unwrap();
        assert!(z.values[2].is_nan());
        assert!([0, 1, 3, 4].iter().all(|&k| (z.values[k] - 2.0).abs() < 1e-6));
    }

    #[test]
    fn literal_filters() {
        let z = map(3, &[0.0, 1.0, 2.0, 3.0, 4.0, f32::NAN]);
        let (clamped, outside) = clamp(&z, 1.0, 3.0).unwrap();
        assert_eq!(clamped.values[..5], [1.0, 1.0, 2.0, 3.0, 3.0]);
        assert_eq!(outside, 2);
        assert_eq!(normalise(&z, 10.0, 30.0).unwrap().values[..5], [10.0, 15.0, 20.0, 25.0, 30.0]);
        assert_eq!(invert(&z).values[..5], [4.0, 3.0, 2.0, 1.0, 0.0]);
        // Two terraces: the lower half becomes the lowest value, the upper half the highest.
        assert_eq!(terrace(&z, 2, 0.0).unwrap().values[..5], [0.0, 0.0, 4.0, 4.0, 4.0]);
        assert_eq!(terrace(&z, 2, 1.0).unwrap().values[..5], z.values[..5]);
        assert!(clamp(&z, 3.0, 1.0).is_err() && normalise(&z, f32::NAN, 1.0).is_err());
        assert!(terrace(&z, 0, 0.0).is_err() && island(&z, 0.0).is_err() && blur(&z, -1.0).is_err());
    }

    /// Five values across, falloff 1: x = -0.8, -0.4, 0, 0.4, 0.8, y = 0: t = 0.2, 0.6, 1: 3t² - 2t³ = 0.104, 0.648, 1, above the lowest
    /// value, which is 5 here.
    #[test]
    fn an_island_by_hand() {
        let z = island(&map(5, &[15.0, 15.0, 15.0, 15.0, 5.0]), 1.0).unwrap();
        for (got, want) in z.values.iter().zip([6.04, 11.48, 15.0, 11.48, 5.0]) {
            assert!((got - want).abs() < 1e-5, "{:?}", z.values);
        }
    }

    #[test]
    fn a_constant_or_empty_map_stays() {
        let flat = map(2, &[7.0; 4]);
        assert_eq!(normalise(&flat, 1.0, 2.0).unwrap().values, [1.0; 4]);
        assert_eq!(terrace(&flat, 4, 0.0).unwrap(), flat);
        let void = map(2, &[f32::NAN; 4]);
        for z in [normalise(&void, 0.0, 1.0), terrace(&void, 3, 0.5), island(&void, 0.5), blur(&void, 2.0)] {
            assert!(z.unwrap().values.iter().all(|v| v.is_nan()));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn blur_keeps_constants_and_range(cols in 1usize..40, rows in 1usize..40, sigma in 0.0..9.0f64, seed: u64) {
            let flat = blur(&Raster::filled(cols, rows, 3.5f32), sigma).unwrap();
            prop_assert!(flat.values.iter().all(|v| (v - 3.5).abs() < 1e-4));
            let key = crate::terrain::noise::NoiseKey::new(seed, 1.0, 0);
            let values = (0..cols * rows).map(|i| key.normal(i as i64, 0)).collect();
            let z = Raster::from_values(cols, rows, values);
            let (low, high) = range(&z).unwrap();
            let (l, h) = range(&blur(&z, sigma).unwrap()).unwrap();
            prop_assert!(l >= low - 1e-4 && h <= high + 1e-4);
        }
    }
}
