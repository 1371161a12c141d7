//! How rough ground is at each level of the lattice.
//!
//! All numbers were measured on true relief at two scales, 90 m and 900 m cells, and are interpolated in log spacing between
//! them: few and smooth, so that they hold for places that they were not measured on (docs/terrain.md has the tables).

use super::{Detail, RefineOptions};

/// Hurst exponent (0 to 1 for a fractal, above 1 for ground smoothed by creep) as a function of scale.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum HurstCurve {
    /// As measured on true relief: 1.2 at 90 and 180 m, 1.1 at 360, 0.88 at 900, 0.5 at 1800, 0.2 at 3600 m.
    Measured,
    /// One exponent at every scale.
    Constant(f64),
}

impl HurstCurve {
    /// The exponent between node spacings s and s/2, s in metres.
    pub fn at(self, spacing_m: f64) -> f64 {
        const KNOTS: [(f64, f64); 6] =
            [(90.0, 1.2), (180.0, 1.22), (360.0, 1.1), (900.0, 0.88), (1800.0, 0.5), (3600.0, 0.2)];
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
    /// Exponent p of the local fall: the amplitude is sigma^(1-p) times (fall over one spacing)^p.
    pub(super) slope_exponent: f32,
    /// Share of that fall that counts.
    pub(super) fall_share: f32,
    /// Ground whose rise over one spacing times this is below 1 is gentle, and the smoother for it,
    pub(super) steepness: f32,
    /// by this exponent.
    pub(super) gentleness: f32,
    /// How much sharper crests are than floors: 0 alike, 1 ridges on flat floors.
    pub(super) ridge: f32,
    /// How far from the interpolating scheme (0) to the B-spline's (1/8): every node gets a displacement of its own, and nodes
    /// kept sharp show as a lattice (at 90 m crease 1.16 with 0, 1.11 with 0.06).
    pub(super) soften: f32,
}

/// Slopes below this (rise over run) are gentle: soil lies on them and creeps. The truth at 90 m has 3 dB less in its finest
/// octave where slopes are 0.1 than where they are 0.4, at one and the same relief of the coarse cells.
const GENTLE_SLOPE: f64 = 0.25;

/// Linear in log spacing between the values at 90 m and at 900 m.
fn by_scale(spacing_m: f64, at_90_m: f64, at_900_m: f64) -> f64 {
    let t = (spacing_m / 90.0).log10().clamp(0.0, 1.0);
    at_90_m + (at_900_m - at_90_m) * t
}

impl StepShape {
    /// The shape of `step` on a lattice of `levels` levels above cells of `cell_m` metres.
    pub(super) fn of(step: Step, levels: u32, cell_m: f64, options: &RefineOptions) -> StepShape {
        let gain = gain_of(step, levels, cell_m, options);
        if options.detail == Detail::Plain {
            return StepShape {
                gain: gain as f32,
                slope_exponent: 0.0,
                fall_share: 0.0,
                steepness: 0.0,
                gentleness: 0.0,
                ridge: 0.0,
                soften: 0.0,
            };
        }
        let (below_top, spacing_m) = match step {
            Step::Corners(k) => (levels - k, cell_m * f64::from(1u32 << k)),
            Step::Cells => (levels, cell_m),
            Step::HalfLevel => (levels + 1, cell_m),
        };
        // The coarse cell alone sets the amplitude of the first two levels; from there on the ground just built says more.
        let known = (1.0 - 0.5f64.powi(below_top as i32 - 1)).max(0.0);
        StepShape {
            gain: gain as f32,
            slope_exponent: (by_scale(spacing_m, 0.35, 0.85) * known) as f32,
            fall_share: by_scale(spacing_m, 0.32f64.ln(), 1.5f64.ln()).exp() as f32,
            steepness: (1.0 / (spacing_m * GENTLE_SLOPE)) as f32,
            gentleness: (by_scale(spacing_m, 0.15, 0.24) * known) as f32,
            ridge: by_scale(spacing_m, 0.7, 0.05) as f32,
            soften: by_scale(cell_m, 0.06, 0.09) as f32,
        }
    }
}

/// What levels lose on the way down is put in before, from the top level on: the block means take back most of the top's
/// displacements and some of the next, and every later interpolation rounds off a part.
fn loss(depth: usize, cell_m: f64) -> f64 {
    match depth {
        0 => by_scale(cell_m, 0.5, 0.34),
        1 => by_scale(cell_m, 1.68, 1.74),
        2 => by_scale(cell_m, 1.55, 1.72),
        3 => by_scale(cell_m, 1.15, 1.33),
        _ => by_scale(cell_m, 0.93, 1.0),
    }
}

/// Amplitude of a step's displacements in units of sigma: so scaled that the variances of all levels below the top, down to
/// any fineness, sum to one. A level's amplitude thus depends on its spacing and the top's alone: finer results of one
/// ladder share their coarser levels.
fn gain_of(step: Step, levels: u32, cell_m: f64, options: &RefineOptions) -> f64 {
    let top_m = cell_m * f64::from(1u32 << levels);
    // The level `depth` below the top, the top's being 1.
    let relative = |depth: usize| {
        let steps = (0..depth).map(|d| options.hurst.at(top_m / 2f64.powi(d as i32)));
        2f64.powf(-steps.sum::<f64>())
    };
    const ENOUGH: usize = 16;
    let sum: f64 = (1..=ENOUGH).map(|d| relative(d).powi(2)).sum();
    let (depth, share) = match step {
        Step::Corners(k) => ((levels - k) as usize, 1.0),
        Step::Cells => (levels as usize, 1.0),
        // From the corners to the centres: a step of 1/sqrt 2.
        Step::HalfLevel => (levels as usize, 2f64.powf(-0.5 * options.hurst.at(cell_m))),
    };
    let gain = share * relative(depth) / sum.sqrt();
    if options.detail == Detail::Drained { gain * loss(depth, cell_m) } else { gain }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_measured_curve_is_kept_and_interpolated() {
        assert_eq!(HurstCurve::Measured.at(90.0), 1.2);
        assert!((HurstCurve::Measured.at(1800.0) - 0.5).abs() < 1e-12);
        assert!((0.5..0.88).contains(&HurstCurve::Measured.at(1200.0)));
        assert_eq!(HurstCurve::Constant(0.7).at(5.0), 0.7);
    }

    #[test]
    fn variances_below_the_top_sum_to_one_in_plain_mode_and_levels_do_not_depend_on_the_fineness() {
        let options = RefineOptions { detail: Detail::Plain, ..RefineOptions::default() };
        let gain = |k: u32, levels: u32, cell_m: f64| gain_of(Step::Corners(k), levels, cell_m, &options);
        let sum: f64 = (0..10).map(|k| gain(k, 10, 2.0).powi(2)).sum();
        assert!((sum - 1.0).abs() < 1e-3, "{sum}");
        assert!((0..4).all(|k| gain(k, 4, 90.0) < gain(k + 1, 4, 90.0)));
        for k in 0..=2 {
            assert_eq!(gain(k, 2, 250.0), gain(k + 2, 4, 62.5));
        }
    }

    #[test]
    fn the_coarse_cell_sets_the_first_levels_and_the_ground_the_finer_ones() {
        let p = |step| StepShape::of(step, 4, 900.0, &RefineOptions::default()).slope_exponent;
        assert_eq!(p(Step::Corners(4)), 0.0);
        assert_eq!(p(Step::Corners(3)), 0.0);
        assert!(p(Step::Corners(2)) > 0.0 && p(Step::Cells) > p(Step::Corners(2)));
    }
}
