//! How rough ground is at each level of the lattice.
//!
//! All numbers were measured on true relief at two scales, 90 m and 900 m cells, and are interpolated in log spacing between
//! them: few and smooth, so that they hold for places that they were not measured on (docs/terrain.md has the tables).

use super::{Detail, RefineOptions};

/// Hurst exponent (0 to 1 for a fractal, above 1 for ground smoothed by creep) as a function of scale.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum HurstCurve {
    /// As measured on true relief: 1.2 at 90 and 180 m, 1.1 at 360, 0.88 at 900, 0.57 at 1800, 0.4 at 3600 m.
    Measured,
    /// One exponent at every scale.
    Constant(f64),
}

impl HurstCurve {
    /// The exponent between node spacings 2s and s, s in metres.
    pub fn at(self, spacing_m: f64) -> f64 {
        const KNOTS: [(f64, f64); 6] =
            [(90.0, 1.2), (180.0, 1.22), (360.0, 1.1), (900.0, 0.88), (1800.0, 0.57), (3600.0, 0.4)];
        let knots = match self {
            HurstCurve::Constant(h) => return h,
            HurstCurve::Measured => KNOTS,
        };
        let x = spacing_m.max(1e-6).ln();
        if spacing_m <= knots[0].0 {
            return knots[0].1;
        }
        for pair in knots.windows(2) {
            let ((s0, h0), (s1, h1)) = (pair[0], pair[1]);
            if spacing_m <= s1 {
                return h0 + (h1 - h0) * (x - s0.ln()) / (s1.ln() - s0.ln());
            }
        }
        knots[5].1
    }
}

/// A step of the lattice: a level of corners, or the last half level to the centres of the cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Corners of spacing 2^k cells.
    Corners(u32),
    /// Centres of the cells, from corners one cell apart: half a level below them.
    HalfLevel,
    /// Centres of the cells, from corners two cells apart: a level of spacing one.
    Cells,
}

/// What shapes the displacements of one step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct StepShape {
    /// Amplitude in units of the local sigma.
    pub(super) gain: f32,
    /// Exponent p of the local slope: the amplitude is sigma^(1-p) times (fall over one spacing)^p.
    pub(super) slope_exponent: f32,
    /// Share of that fall that counts.
    pub(super) fall_share: f32,
    /// How much sharper crests are than floors: 0 alike, 1 ridges on flat floors.
    pub(super) ridge: f32,
}

/// The fall counts up to this many sigma.
pub(super) const MOST_FALL: f32 = 8.0;

/// Linear in log spacing between the values at 90 m and at 900 m.
fn by_scale(spacing_m: f64, at_90_m: f64, at_900_m: f64) -> f64 {
    let t = (spacing_m / 90.0).log10().clamp(0.0, 1.0);
    at_90_m + (at_900_m - at_90_m) * t
}

impl StepShape {
    /// The shape of `step` on a lattice of `levels` levels above cells of `cell_m` metres.
    pub(super) fn of(step: Step, levels: u32, cell_m: f64, options: &RefineOptions) -> StepShape {
        let gain = level_gains(levels, cell_m, options)[match step {
            Step::Corners(k) => k as usize + 1,
            Step::Cells => 1,
            Step::HalfLevel => 0,
        }];
        if options.detail == Detail::Plain {
            return StepShape { gain: gain as f32, slope_exponent: 0.0, fall_share: 0.0, ridge: 0.0 };
        }
        let (below_top, spacing_m) = match step {
            Step::Corners(k) => (levels - k, cell_m * f64::from(1u32 << k)),
            Step::Cells => (levels, cell_m),
            Step::HalfLevel => (levels + 1, cell_m),
        };
        // The coarse cell alone sets the amplitude of the first two levels; from there on the ground just built says more.
        let known = 1.0 - 0.5f64.powi(below_top as i32 - 1);
        StepShape {
            gain: gain as f32,
            slope_exponent: (by_scale(spacing_m, 0.5, 1.16) * known.max(0.0)) as f32,
            fall_share: by_scale(spacing_m, 0.29, 0.97) as f32,
            ridge: by_scale(spacing_m, 0.8, 0.15) as f32,
        }
    }
}

/// Amplitude of the displacements per step in units of sigma: index 0 is the half level (cell centres), index k+1 the level
/// of spacing 2^k cells; so scaled that the variances below the top level sum to one (block means take back what the top
/// adds).
fn level_gains(levels: u32, cell_m: f64, options: &RefineOptions) -> Vec<f64> {
    let mut gains = vec![1.0; levels as usize + 2];
    for level in (0..=levels).rev() {
        let s = cell_m * f64::from(1u32 << level);
        let h = options.hurst.at(s);
        // A full level halves the spacing; the half level goes from the corners to the centres, a step of 1/sqrt 2.
        let ratio = if level == 0 { 2f64.powf(-0.5 * h) } else { 2f64.powf(-h) };
        gains[level as usize] = gains[level as usize + 1] * ratio;
    }
    let sum: f64 = gains[..=levels.max(1) as usize].iter().map(|g| g * g).sum();
    gains.iter_mut().for_each(|g| *g /= sum.sqrt());
    if options.detail == Detail::Drained {
        // What the block means take from the top level goes to the next ones.
        let top = levels as usize + 1;
        gains[top] *= 0.35;
        if top >= 4 {
            gains[top - 1] *= 1.2;
            gains[top - 2] *= 1.15;
        }
    }
    gains
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_measured_curve_is_kept_and_interpolated() {
        assert_eq!(HurstCurve::Measured.at(90.0), 1.2);
        assert!((HurstCurve::Measured.at(1800.0) - 0.57).abs() < 1e-12);
        assert!((0.57..0.88).contains(&HurstCurve::Measured.at(1200.0)));
        assert_eq!(HurstCurve::Constant(0.7).at(5.0), 0.7);
    }

    #[test]
    fn variances_below_the_top_sum_to_one_in_plain_mode() {
        let options = RefineOptions { detail: Detail::Plain, ..RefineOptions::default() };
        let gains = level_gains(4, 90.0, &options);
        let sum: f64 = gains[..=4].iter().map(|g| g * g).sum();
        assert!((sum - 1.0).abs() < 1e-12);
        assert!(gains.windows(2).all(|g| g[0] < g[1]));
    }

    #[test]
    fn the_coarse_cell_sets_the_first_levels_and_the_ground_the_finer_ones() {
        let p = |step| StepShape::of(step, 4, 900.0, &RefineOptions::default()).slope_exponent;
        assert_eq!(p(Step::Corners(4)), 0.0);
        assert_eq!(p(Step::Corners(3)), 0.0);
        assert!(p(Step::Corners(2)) > 0.0 && p(Step::Cells) > p(Step::Corners(2)));
    }
}
