//! Midpoint displacement in its two simplest forms: along a line, and on a square without the diamond step.

use crate::error::{Error, Result};
use crate::raster::Raster;
use crate::terrain::noise::NoiseKey;

const PURPOSE: u64 = 0x31D0;

fn check(hurst: f64, amplitude: f32) -> Result<()> {
    if !(0.0..=1.0).contains(&hurst) {
        return Err(Error::argument("--hurst", hurst, "give 0 to 1"));
    }
    if !amplitude.is_finite() || amplitude < 0.0 {
        return Err(Error::argument("--amplitude", amplitude, "give a number from 0 up"));
    }
    Ok(())
}

/// A mountain skyline of `count` heights from `ends.0` to `ends.1`: each midpoint is the mean of its two neighbours plus a
/// displacement whose deviation is `amplitude` at first and falls by 2^-hurst at each halving.
///
/// A count other than 2^n + 1 is the first part of the next such line, so the far end is met only by those.
///
/// # Errors
/// [`Error::Argument`] for a count of nothing or too large, an exponent outside 0 to 1, or an unusable amplitude.
pub fn profile(count: usize, ends: (f32, f32), amplitude: f32, hurst: f64, seed: u64) -> Result<Vec<f32>> {
    super::check_size(count, 1, 8)?;
    check(hurst, amplitude)?;
    let span = (count - 1).max(1).next_power_of_two();
    let mut z = vec![0f32; span + 1];
    (z[0], z[span]) = ends;
    let mut spacing = span;
    while spacing > 1 {
        let half = spacing / 2;
        let deviation = amplitude * (spacing as f64 / span as f64).powf(hurst) as f32;
        let key = NoiseKey::new(seed, spacing as f64, PURPOSE);
        for at in (half..span).step_by(spacing) {
            z[at] = 0.5 * (z[at - half] + z[at + half]) + deviation * key.normal(at as i64, 0);
        }
        spacing = half;
    }
    z.truncate(count);
    Ok(z)
}

/// Midpoint displacement on a square without the diamond step: edges get the mean of their two ends, middles the mean of the
/// four corners, both displaced.
///
/// As edges never see the ground beside them, creases stay along every line of the lattice: that is what the diamond step is
/// for. Sizes and errors as in [`super::diamond_square`].
///
/// # Errors
/// [`Error::Argument`] for a size of nothing or too large, an exponent outside 0 to 1, or an unusable amplitude.
pub fn square(size: (usize, usize), corners: [f32; 4], amplitude: f32, hurst: f64, seed: u64) -> Result<Raster<f32>> {
    let (cols, rows) = size;
    let span = (cols.max(rows).max(2) - 1).next_power_of_two();
    super::check_size(cols, rows, 4)?;
    super::check_size(span + 1, span + 1, 8)?;
    check(hurst, amplitude)?;
    let mut z = Raster::filled(span + 1, span + 1, 0f32);
    for (k, (c, r)) in [(0, 0), (span, 0), (0, span), (span, span)].into_iter().enumerate() {
        z.set(c, r, corners[k]);
    }
    let mut spacing = span;
    while spacing > 1 {
        let half = spacing / 2;
        let deviation = amplitude * (spacing as f64 / span as f64).powf(hurst) as f32;
        let key = NoiseKey::new(seed, spacing as f64, PURPOSE + 1);
        let shifted = |mean: f32, c: usize, r: usize| mean + deviation * key.normal(c as i64, r as i64);
        for r in (0..=span).step_by(half) {
            let on_row = r % spacing == 0;
            for c in (0..=span).step_by(half) {
                let on_col = c % spacing == 0;
                let mean = match (on_col, on_row) {
                    (true, true) => continue,
                    (false, true) => 0.5 * (z.at(c - half, r) + z.at(c + half, r)),
                    (true, false) => 0.5 * (z.at(c, r - half) + z.at(c, r + half)),
                    (false, false) => {
                        let north = z.at(c - half, r - half) + z.at(c + half, r - half);
                        0.25 * (north + (z.at(c - half, r + half) + z.at(c + half, r + half)))
                    }
                };
                z.set(c, r, shifted(mean, c, r));
            }
        }
        spacing = half;
    }
    let values = (0..rows).flat_map(|r| z.row(r)[..cols].iter().copied()).collect();
    Ok(Raster::from_values(cols, rows, values))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ends 0 and 8, no displacement: a straight line.
    #[test]
    fn nine_heights_by_hand() {
        let z = profile(9, (0.0, 8.0), 0.0, 0.5, 1).unwrap();
        assert_eq!(z, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
    }

    #[test]
    fn a_shorter_profile_is_the_first_part() {
        let whole = profile(17, (1.0, 2.0), 3.0, 0.7, 9).unwrap();
        assert_eq!(profile(11, (1.0, 2.0), 3.0, 0.7, 9).unwrap(), whole[..11]);
        assert_eq!((whole[0], whole[16]), (1.0, 2.0));
    }

    /// Increments over a lag of d have a deviation of about d^H.
    #[test]
    fn increments_grow_with_the_hurst_exponent() {
        for h in [0.3, 0.8] {
            let mut sums = [0.0f64; 2];
            for seed in 0..40 {
                let z = profile(1025, (0.0, 0.0), 1.0, h, seed).unwrap();
                for (sum, lag) in sums.iter_mut().zip([2, 16]) {
                    *sum += z.windows(lag + 1).step_by(lag).map(|w| f64::from(w[lag] - w[0]).powi(2)).sum::<f64>()
                        * lag as f64;
                }
            }
            let found = (sums[1] / sums[0]).log2() / 2.0 / 3.0;
            assert!((found - h).abs() < 0.1, "H {h}: {found}");
        }
    }

    /// Corners 0, 8, 16, 24, no displacement: bilinear.
    #[test]
    fn five_by_five_by_hand() {
        let z = square((5, 5), [0.0, 8.0, 16.0, 24.0], 0.0, 0.5, 1).unwrap();
        for r in 0..5 {
            for c in 0..5 {
                assert_eq!(z.at(c, r), 2.0 * c as f32 + 4.0 * r as f32);
            }
        }
    }

    #[test]
    fn sizes_of_1_to_3_work_and_odd_requests_are_refused() {
        for size in [(1, 1), (2, 1), (2, 2), (3, 3), (1, 7)] {
            let z = square(size, [1.0; 4], 0.0, 0.5, 1).unwrap();
            assert!(z.values.iter().all(|&v| v == 1.0));
        }
        assert_eq!(profile(1, (4.0, 5.0), 1.0, 0.5, 1).unwrap(), [4.0]);
        assert!(profile(0, (0.0, 0.0), 1.0, 0.5, 1).is_err());
        assert!(profile(9, (0.0, 0.0), f32::NAN, 0.5, 1).is_err());
        assert!(square((9, 9), [0.0; 4], 1.0, 1.5, 1).is_err());
    }
}
