//! Fault formation: random lines, the ground on one side of each raised by a step that shrinks from line to line (the
//! tutorials' form of Mandelbrot's Poisson faults, 1975).

use crate::error::{Error, Result};
use crate::raster::Raster;
use crate::terrain::noise::NoiseKey;
use rayon::prelude::*;

/// How the ground meets the line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Profile {
    /// A cliff.
    Sharp,
    /// A smooth ramp (3t² - 2t³) over this many values across the line.
    Smooth(f32),
}

/// What to make.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Values along x and y.
    pub size: (usize, usize),
    /// Number of faults.
    pub iterations: u32,
    /// First and last step, units of height; it falls evenly between them.
    pub step: (f32, f32),
    /// The ramp.
    pub profile: Profile,
    /// Every number follows from it.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options { size: (512, 512), iterations: 64, step: (1.0, 0.02), profile: Profile::Sharp, seed: 1 }
    }
}

/// A directed line; the ground on its left is raised by `step`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Fault {
    /// Unit normal and offset: the signed distance of (x, y) is a x + b y + c.
    a: f64,
    b: f64,
    c: f64,
    step: f64,
}

impl Options {
    /// The step of fault `k`.
    fn step_of(&self, k: u32) -> f64 {
        let (first, last) = (f64::from(self.step.0), f64::from(self.step.1));
        let t = if self.iterations > 1 { f64::from(k) / f64::from(self.iterations - 1) } else { 0.0 };
        first + (last - first) * t
    }

    /// Fault `k`: through two different random points of the map, one side raised.
    fn fault(&self, k: u32) -> Fault {
        let key = NoiseKey::new(self.seed, 1.0, 0xFA17);
        let unit = |n: i64| (f64::from(key.bits(i64::from(k), n)) + 0.5) / 4_294_967_296.0;
        let (w, h) = (self.size.0 as f64, self.size.1 as f64);
        let (x0, y0) = (unit(0) * w, unit(1) * h);
        // The second point: drawn again while it falls on the first, which cannot happen twice in practice.
        let (dx, dy) = (0..8)
            .map(|n| (unit(2 + 2 * n) * w - x0, unit(3 + 2 * n) * h - y0))
            .find(|(dx, dy)| dx.hypot(*dy) > 1e-9)
            .unwrap_or((1.0, 0.0));
        let length = dx.hypot(dy);
        let (a, b) = (dy / length, -dx / length);
        Fault { a, b, c: -(a * x0 + b * y0), step: self.step_of(k) }
    }
}

/// A heightmap by fault formation, starting from zero. Values lie between 0 and the sum of the steps.
///
/// Cost: a sharp fault costs one step a row, a smooth one some ten nanoseconds a value.
///
/// # Errors
/// [`Error::Argument`] for a size of nothing or too large, steps that are not finite, or a ramp that is not a number above 0.
pub fn fault(options: &Options) -> Result<Raster<f32>> {
    let (cols, rows) = options.size;
    super::check_size(cols, rows, 4)?;
    if !options.step.0.is_finite() || !options.step.1.is_finite() {
        return Err(Error::argument(
            "--step",
            format!("{},{}", options.step.0, options.step.1),
            "give two finite numbers",
        ));
    }
    if let Profile::Smooth(width) = options.profile
        && !(width > 0.0 && width.is_finite())
    {
        return Err(Error::argument("--smooth", width, "give a width above 0, in values"));
    }
    let faults: Vec<Fault> = (0..options.iterations).map(|k| options.fault(k)).collect();
    Ok(form(options.size, &faults, options.profile))
}

fn form((cols, rows): (usize, usize), faults: &[Fault], profile: Profile) -> Raster<f32> {
    let mut z = Raster::filled(cols, rows, 0f32);
    z.values.par_chunks_mut(cols).enumerate().for_each_init(
        || vec![0f64; cols + 1],
        |rise, (r, row)| {
            rise.fill(0.0);
            let y = r as f64 + 0.5;
            for f in faults {
                match profile {
                    // Along a row the raised side begins or ends at one place: only that change is noted.
                    Profile::Sharp => {
                        let raised = |c: usize| f.a * (c as f64 + 0.5) + f.b * y + f.c > 0.0;
                        let (first, last) = (raised(0), raised(cols - 1));
                        if first {
                            rise[0] += f.step;
                        }
                        if first != last {
                            // The one place where the side changes.
                            let at = partition(cols, |c| raised(c) == first);
                            rise[at] += if first { -f.step } else { f.step };
                        }
                    }
                    Profile::Smooth(width) => {
                        let scale = 1.0 / f64::from(width);
                        let at = (f.b * y + f.c) * scale + 0.5;
                        for (c, v) in rise[..cols].iter_mut().enumerate() {
                            let t = (f.a * (c as f64 + 0.5) * scale + at).clamp(0.0, 1.0);
                            *v += f.step * t * t * (3.0 - 2.0 * t);
                        }
                    }
                }
            }
            if profile == Profile::Sharp {
                let mut sum = 0.0;
                for (v, d) in row.iter_mut().zip(rise.iter()) {
                    sum += d;
                    *v = sum as f32;
                }
            } else {
                row.iter_mut().zip(rise.iter()).for_each(|(v, d)| *v = *d as f32);
            }
        },
    );
    z
}

/// The first of 0..n for which `before` does not hold.
fn partition(n: usize, before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, n);
    while low < high {
        let middle = (low + high) / 2;
        if before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The line x = 2 with the east raised by 3, then y = 3 with the north raised by 1, on 5 x 5 values at x, y = 0.5, 1.5, ...
    #[test]
    fn five_by_five_by_hand() {
        let east = Fault { a: 1.0, b: 0.0, c: -2.0, step: 3.0 };
        let north = Fault { a: 0.0, b: -1.0, c: 3.0, step: 1.0 };
        let z = form((5, 5), &[east, north], Profile::Sharp);
        let upper = [1.0, 1.0, 4.0, 4.0, 4.0];
        let lower = [0.0, 0.0, 3.0, 3.0, 3.0];
        assert_eq!(z.values, [upper, upper, upper, lower, lower].concat());
    }

    /// The same line with a ramp 4 wide: 0.5 and 1.5 east of its foot are t = 1/8 + ... worked out: t = (x - 2)/4 + 1/2 at x = 0.5, 1.5,
    /// 2.5, 3.5, 4.5 is 1/8, 3/8, 5/8, 7/8, 1 (clamped), and 3t² - 2t³ is 11/256, 81/256, 175/256, 245/256, 1.
    #[test]
    fn a_ramp_by_hand() {
        let east = Fault { a: 1.0, b: 0.0, c: -2.0, step: 256.0 };
        let z = form((5, 1), &[east], Profile::Smooth(4.0));
        assert_eq!(z.values, [11.0, 81.0, 175.0, 245.0, 256.0]);
    }

    #[test]
    fn steps_fall_evenly_from_first_to_last() {
        let options = Options { iterations: 5, step: (9.0, 1.0), ..Default::default() };
        assert_eq!((0..5).map(|k| options.step_of(k)).collect::<Vec<_>>(), [9.0, 7.0, 5.0, 3.0, 1.0]);
    }

    /// Lines run all over the map: each of its quarters is parted from the opposite one by a good share of them, and the middle is
    /// raised by about half.
    #[test]
    fn lines_cross_the_whole_map() {
        let options = Options { size: (64, 64), iterations: 400, ..Default::default() };
        let faults: Vec<Fault> = (0..400).map(|k| options.fault(k)).collect();
        let raises = |f: &Fault, x: f64, y: f64| f.a * x + f.b * y + f.c > 0.0;
        for [ax, ay, bx, by] in [[16.0, 16.0, 48.0, 48.0], [48.0, 16.0, 16.0, 48.0]] {
            let parting = faults.iter().filter(|f| raises(f, ax, ay) != raises(f, bx, by)).count();
            assert!((120..=320).contains(&parting), "{parting} of 400");
        }
        let raised = faults.iter().filter(|f| raises(f, 32.0, 32.0)).count();
        assert!((150..=250).contains(&raised), "{raised} of 400");
    }

    #[test]
    fn odd_requests_are_refused() {
        let refused = |o: Options| fault(&o).unwrap_err().to_string();
        assert!(refused(Options { size: (3, 0), ..Default::default() }).contains("3 x 0"));
        assert!(refused(Options { step: (f32::NAN, 1.0), ..Default::default() }).contains("NaN"));
        assert!(refused(Options { profile: Profile::Smooth(0.0), ..Default::default() }).contains("--smooth"));
        assert_eq!(fault(&Options { iterations: 0, size: (2, 2), ..Default::default() }).unwrap().values, [0.0; 4]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        /// Each value is the sum of the steps of the faults that raise it, whatever the size.
        #[test]
        fn values_are_sums_of_steps(cols in 1usize..40, rows in 1usize..40, n in 0u32..60, seed: u64) {
            let options = Options { size: (cols, rows), iterations: n, seed, ..Default::default() };
            let z = fault(&options).unwrap();
            for r in 0..rows {
                for c in 0..cols {
                    let sum: f64 = (0..n)
                        .map(|k| options.fault(k))
                        .filter(|f| f.a * (c as f64 + 0.5) + f.b * (r as f64 + 0.5) + f.c > 0.0)
                        .map(|f| f.step)
                        .sum();
                    prop_assert!((f64::from(z.at(c, r)) - sum).abs() < 1e-4);
                }
            }
        }
    }
}
