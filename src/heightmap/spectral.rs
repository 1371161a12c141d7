//! Spectral synthesis of fractional Brownian motion, and the slope of a spectrum (Saupe 1988, in *The Science of Fractal Images*).

use crate::error::{Error, Result};
use crate::raster::Raster;
use crate::terrain::noise::NoiseKey;
use rustfft::num_complex::Complex;
use rustfft::{Fft, FftPlanner};
use std::sync::Arc;

/// Fractional Brownian motion by its spectrum: power falls as frequency^-(2H + 2), phases are random. Opposite edges meet: the
/// map tiles the plane with a period of its size.
///
/// `size`: values along x and y; `hurst` 0 to 1; the result has mean 0 and standard deviation 1. Cost: 16 bytes a value and
/// two Fourier transforms.
///
/// # Errors
/// [`Error::Argument`] for a size of nothing or too large, or an exponent outside 0 to 1.
pub fn fbm(size: (usize, usize), hurst: f64, seed: u64) -> Result<Raster<f32>> {
    let (cols, rows) = size;
    super::check_size(cols, rows, 20)?;
    if !(0.0..=1.0).contains(&hurst) {
        return Err(Error::argument("--hurst", hurst, "give 0 to 1"));
    }
    // White noise, filtered: its spectrum has the symmetry of a real map by itself.
    let key = NoiseKey::new(seed, 1.0, 0xF8A3);
    let mut field: Vec<Complex<f64>> = (0..rows * cols)
        .map(|i| Complex::new(f64::from(key.normal((i % cols) as i64, (i / cols) as i64)), 0.0))
        .collect();
    transform(&mut field, cols, rows, true);
    for (i, value) in field.iter_mut().enumerate() {
        let f = frequency(i, cols, rows);
        *value *= if f > 0.0 { f.powf(-(hurst + 1.0)) } else { 0.0 };
    }
    transform(&mut field, cols, rows, false);
    let n = field.len() as f64;
    let deviation = (field.iter().map(|c| c.re * c.re).sum::<f64>() / n).sqrt();
    let scale = if deviation > 0.0 { 1.0 / deviation } else { 0.0 };
    Ok(Raster::from_values(cols, rows, field.iter().map(|c| (c.re * scale) as f32).collect()))
}

/// Slope of the power spectrum of `z` over frequency, both logarithmic: the least-squares line through the mean power of half
/// octaves from 4 cycles a map to a quarter of the sampling rate. `None` for maps under 32 values across or without variation.
pub fn slope(z: &Raster<f32>) -> Option<f64> {
    let (cols, rows) = (z.cols, z.rows);
    let side = cols.min(rows);
    if side < 32 {
        return None;
    }
    let mean = z.values.iter().map(|&v| f64::from(v)).sum::<f64>() / z.values.len() as f64;
    let mut field: Vec<Complex<f64>> = z.values.iter().map(|&v| Complex::new(f64::from(v) - mean, 0.0)).collect();
    transform(&mut field, cols, rows, true);
    let (low, high) = (4.0 / side as f64, 0.25);
    let bins = ((high / low).log2() * 2.0).floor().max(1.0) as usize;
    let mut sums = vec![(0.0, 0.0, 0u32); bins];
    for (i, value) in field.iter().enumerate() {
        let f = frequency(i, cols, rows);
        if f >= low && f < high {
            let bin = ((f / low).log2() * 2.0) as usize;
            if let Some(s) = sums.get_mut(bin) {
                *s = (s.0 + f.ln(), s.1 + value.norm_sqr(), s.2 + 1);
            }
        }
    }
    let points: Vec<(f64, f64)> = sums
        .iter()
        .filter(|s| s.2 > 0 && s.1 > 0.0)
        .map(|s| (s.0 / f64::from(s.2), (s.1 / f64::from(s.2)).ln()))
        .collect();
    if points.len() < 3 {
        return None;
    }
    let n = points.len() as f64;
    let (mx, my) = (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
    let (xy, xx) =
        points.iter().fold((0.0, 0.0), |(xy, xx), p| (xy + (p.0 - mx) * (p.1 - my), xx + (p.0 - mx).powi(2)));
    Some(xy / xx)
}

/// Frequency of coefficient `i`, cycles a value.
fn frequency(i: usize, cols: usize, rows: usize) -> f64 {
    let along = |k: usize, n: usize| k.min(n - k) as f64 / n as f64;
    along(i % cols, cols).hypot(along(i / cols, rows))
}

/// Two-dimensional Fourier transform in place, forward or back, without scaling.
fn transform(field: &mut [Complex<f64>], cols: usize, rows: usize, forward: bool) {
    let mut planner = FftPlanner::new();
    let mut plan = |n: usize| -> Arc<dyn Fft<f64>> {
        if forward { planner.plan_fft_forward(n) } else { planner.plan_fft_inverse(n) }
    };
    let (along, down) = (plan(cols), plan(rows));
    field.chunks_exact_mut(cols).for_each(|row| along.process(row));
    let mut column = vec![Complex::default(); rows];
    for c in 0..cols {
        (0..rows).for_each(|r| column[r] = field[r * cols + c]);
        down.process(&mut column);
        (0..rows).for_each(|r| field[r * cols + c] = column[r]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spectrum_is_as_asked() {
        for h in [0.2, 0.5, 0.9] {
            let s = slope(&fbm((256, 192), h, 3).unwrap()).unwrap();
            assert!((s + 2.0 * h + 2.0).abs() < 0.2, "H {h}: {s}");
        }
    }

    /// Of two values a, b only the coefficient a - b is left, at half a cycle a value: the values are +1 and -1, the higher first.
    #[test]
    fn two_values_by_hand() {
        let key = NoiseKey::new(5, 1.0, 0xF8A3);
        let first = if key.normal(0, 0) > key.normal(1, 0) { 1.0 } else { -1.0 };
        let z = fbm((2, 1), 0.4, 5).unwrap();
        assert!((z.values[0] - first).abs() < 1e-6 && (z.values[1] + first).abs() < 1e-6, "{:?}", z.values);
    }

    /// 5 x 5 and 9 x 9 by the definition: the white noise's Fourier sums written out, each times frequency^-(H + 1), summed back,
    /// scaled to deviation 1.
    #[test]
    fn small_maps_by_the_definition() {
        for (n, hurst) in [(5usize, 0.3), (9, 0.8)] {
            let key = NoiseKey::new(7, 1.0, 0xF8A3);
            let turn = |k: usize| {
                let angle = std::f64::consts::TAU * (k % n) as f64 / n as f64;
                (angle.cos(), angle.sin())
            };
            let mut want = vec![0f64; n * n];
            for u in 0..n {
                for v in 0..n {
                    let (mut re, mut im) = (0.0, 0.0);
                    for i in 0..n * n {
                        let (c, s) = turn(u * (i % n) + v * (i / n));
                        let z = f64::from(key.normal((i % n) as i64, (i / n) as i64));
                        (re, im) = (re + z * c, im - z * s);
                    }
                    let f = (u.min(n - u) as f64).hypot(v.min(n - v) as f64) / n as f64;
                    let weight = if f > 0.0 { f.powf(-(hurst + 1.0)) } else { 0.0 };
                    for (i, w) in want.iter_mut().enumerate() {
                        let (c, s) = turn(u * (i % n) + v * (i / n));
                        *w += weight * (re * c - im * s);
                    }
                }
            }
            let deviation = (want.iter().map(|w| w * w).sum::<f64>() / (n * n) as f64).sqrt();
            for (a, b) in fbm((n, n), hurst, 7).unwrap().values.iter().zip(&want) {
                assert!((f64::from(*a) - b / deviation).abs() < 1e-5, "{a} {}", b / deviation);
            }
        }
    }

    #[test]
    fn mean_0_and_deviation_1_at_any_size() {
        for size in [(5, 5), (17, 30), (64, 1)] {
            let z = fbm(size, 0.7, 1).unwrap();
            let n = z.values.len() as f64;
            let mean = z.values.iter().map(|&v| f64::from(v)).sum::<f64>() / n;
            let power = z.values.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>() / n;
            assert!(mean.abs() < 1e-5 && (power - 1.0).abs() < 1e-4, "{size:?}: {mean} {power}");
        }
        assert_eq!(fbm((1, 1), 0.7, 1).unwrap().values, [0.0]);
    }

    /// One cosine along x, 4 periods in 8 values: all power at the highest frequency; its neighbours differ in sign.
    #[test]
    fn frequencies_are_cycles_a_value() {
        assert_eq!(frequency(0, 8, 8), 0.0);
        assert_eq!(frequency(4, 8, 8), 0.5);
        assert_eq!(frequency(7, 8, 8), 0.125);
        let mut field: Vec<Complex<f64>> =
            (0..64).map(|i| Complex::new(if i % 2 == 0 { 1.0 } else { -1.0 }, 0.0)).collect();
        transform(&mut field, 8, 8, true);
        let loud: Vec<usize> = (0..64).filter(|&i| field[i].norm() > 1e-9).collect();
        assert_eq!(loud, [4]);
        assert!((field[4].re - 64.0).abs() < 1e-9);
    }
}
