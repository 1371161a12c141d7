//! Erosion of a heightmap as a filter: slopes slump to an angle of rest, running water cuts valleys.

use crate::error::{Error, Result};
use crate::raster::Raster;
use rayon::prelude::*;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Thermal weathering (Musgrave, Kolb and Mace 1989): in each round material above the talus slope moves to lower neighbours.
///
/// `talus`: the steepest lasting difference between neighbours, units of height (times √2 across corners). Half of the
/// largest excess moves, shared among the lower neighbours by their excess. All values move at once, so order does not
/// matter; the total is kept to within rounding. Values that are not numbers are walls.
///
/// # Errors
/// [`Error::Argument`] for a talus that is not a number from 0 up.
pub fn thermal(z: &Raster<f32>, rounds: u32, talus: f32) -> Result<Raster<f32>> {
    if !talus.is_finite() || talus < 0.0 {
        return Err(Error::argument("thermal", talus, "give a talus of 0 or more"));
    }
    let mut z = z.clone();
    for _ in 0..rounds {
        let outflow = |c: usize, r: usize| -> Slump {
            let here = z.at(c, r);
            let mut slump = Slump::default();
            if !here.is_finite() {
                return slump;
            }
            for (k, excess) in slump.excess.iter_mut().enumerate() {
                if let Some((x, y)) = neighbour(&z, c, r, k) {
                    let reach = reach_of(k);
                    let over = here - z.at(x, y) - talus * reach;
                    // Towards an infinity nothing moves.
                    *excess = if over > 0.0 && over.is_finite() { over } else { 0.0 };
                }
            }
            let largest = slump.excess.iter().copied().fold(0.0, f32::max);
            let sum: f32 = slump.excess.iter().sum();
            slump.moved = 0.5 * largest;
            slump.share = if sum > 0.0 { slump.moved / sum } else { 0.0 };
            slump
        };
        let slumps: Vec<Slump> = (0..z.values.len()).into_par_iter().map(|i| outflow(i % z.cols, i / z.cols)).collect();
        let values = (0..z.values.len())
            .into_par_iter()
            .map(|i| {
                let (c, r) = (i % z.cols, i / z.cols);
                let mut change = -slumps[i].moved;
                for k in 0..8 {
                    if let Some((x, y)) = neighbour(&z, c, r, k) {
                        let from = &slumps[y * z.cols + x];
                        change += from.share * from.excess[7 - k];
                    }
                }
                z.values[i] + change
            })
            .collect();
        z.values = values;
    }
    Ok(z)
}

/// What one value loses in a round.
#[derive(Clone, Copy, Default)]
struct Slump {
    excess: [f32; 8],
    moved: f32,
    share: f32,
}

/// Neighbours in reading order, the middle left out: 0 NW, 1 N, 2 NE, 3 W, 4 E, 5 SW, 6 S, 7 SE; `7 - k` is opposite `k`.
const AROUND: [(i64, i64); 8] = [(-1, -1), (0, -1), (1, -1), (-1, 0), (1, 0), (-1, 1), (0, 1), (1, 1)];

/// Distance to neighbour `k`, in values.
fn reach_of(k: usize) -> f32 {
    if AROUND[k].0 != 0 && AROUND[k].1 != 0 { std::f32::consts::SQRT_2 } else { 1.0 }
}

fn neighbour<T>(z: &Raster<T>, c: usize, r: usize, k: usize) -> Option<(usize, usize)> {
    let x = c.checked_add_signed(AROUND[k].0 as isize)?;
    let y = r.checked_add_signed(AROUND[k].1 as isize)?;
    (x < z.cols && y < z.rows).then_some((x, y))
}

/// How running water cuts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StreamPower {
    /// Steps of time.
    pub steps: u32,
    /// Erodibility times the length of a step: cutting per step is `strength` · area^0.5 · fall to the next value, area in
    /// values.
    pub strength: f32,
}

impl Default for StreamPower {
    fn default() -> Self {
        StreamPower { steps: 10, strength: 0.02 }
    }
}

/// Stream-power erosion, m = 1/2, n = 1, solved implicitly from the outlets upstream (Braun and Willett 2013); water leaves at
/// the borders and beside holes, and pits are filled first (Barnes, Lehman and Mulla 2014). No value is raised except to fill
/// a pit, none falls below the one that it drains to.
///
/// Cost: a sort of all values a step, 40 bytes a value.
///
/// # Errors
/// [`Error::Argument`] for a strength that is not a number from 0 up.
pub fn stream_power(z: &Raster<f32>, options: &StreamPower) -> Result<Raster<f32>> {
    if !options.strength.is_finite() || options.strength < 0.0 {
        return Err(Error::argument("streams", options.strength, "give a strength of 0 or more"));
    }
    let mut z = z.clone();
    for _ in 0..options.steps {
        let drained = Drainage::of(&mut z);
        let mut area = vec![1f32; z.values.len()];
        for &i in drained.from_outlets.iter().rev() {
            let to = drained.receiver[i];
            if to != i {
                area[to] += area[i];
            }
        }
        for &i in &drained.from_outlets {
            let to = drained.receiver[i];
            if to == i {
                continue;
            }
            let (dc, dr) = ((i % z.cols).abs_diff(to % z.cols), (i / z.cols).abs_diff(to / z.cols));
            let length = if dc + dr == 2 { std::f32::consts::SQRT_2 } else { 1.0 };
            let k = options.strength * area[i].sqrt() / length;
            z.values[i] = ((z.values[i] + k * z.values[to]) / (1.0 + k)).max(z.values[to]);
        }
    }
    Ok(z)
}

/// Where each value drains to.
struct Drainage {
    /// Index of the neighbour it drains to; itself at an outlet or a hole.
    receiver: Vec<usize>,
    /// All values with a height, each after the one that it drains to.
    from_outlets: Vec<usize>,
}

#[derive(PartialEq)]
struct Waiting {
    height: f32,
    index: usize,
}

impl Eq for Waiting {}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> Ordering {
        other.height.total_cmp(&self.height).then(other.index.cmp(&self.index))
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Drainage {
    /// Priority-Flood from the outlets; pits of `z` are filled to their spill.
    fn of(z: &mut Raster<f32>) -> Drainage {
        let n = z.values.len();
        let mut receiver: Vec<usize> = (0..n).collect();
        let mut seen: Vec<bool> = z.values.iter().map(|v| !v.is_finite()).collect();
        let mut queue = BinaryHeap::new();
        for (i, is_seen) in seen.iter_mut().enumerate() {
            let (c, r) = (i % z.cols, i / z.cols);
            let beside_hole = || (0..8).any(|k| neighbour(z, c, r, k).is_none_or(|(x, y)| !z.at(x, y).is_finite()));
            if !*is_seen && beside_hole() {
                queue.push(Waiting { height: z.values[i], index: i });
                *is_seen = true;
            }
        }
        let mut from_outlets = Vec::with_capacity(n);
        while let Some(Waiting { index: i, .. }) = queue.pop() {
            from_outlets.push(i);
            let (c, r) = (i % z.cols, i / z.cols);
            for k in 0..8 {
                let Some((x, y)) = neighbour(z, c, r, k) else { continue };
                let to = y * z.cols + x;
                if !seen[to] {
                    seen[to] = true;
                    receiver[to] = i;
                    z.values[to] = z.values[to].max(z.values[i]);
                    queue.push(Waiting { height: z.values[to], index: to });
                }
            }
        }
        // Steepest descent where there is one: the flood's own choice is only the first.
        for &i in &from_outlets {
            if receiver[i] == i {
                continue;
            }
            let (c, r) = (i % z.cols, i / z.cols);
            let mut best = (0.0, receiver[i]);
            for k in 0..8 {
                let Some((x, y)) = neighbour(z, c, r, k) else { continue };
                let reach = reach_of(k);
                let fall = (z.values[i] - z.at(x, y)) / reach;
                if fall > best.0 {
                    best = (fall, y * z.cols + x);
                }
            }
            receiver[i] = best.1;
        }
        Drainage { receiver, from_outlets }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn map(cols: usize, values: &[f32]) -> Raster<f32> {
        Raster::from_values(cols, values.len() / cols, values.to_vec())
    }

    /// A spike of 8 in the middle of a row of zeros, talus 2: the excess to each side is 6, half of it (3) moves, 1.5 to each side.
    #[test]
    fn a_slump_by_hand() {
        let z = thermal(&map(5, &[0.0, 0.0, 8.0, 0.0, 0.0]), 1, 2.0).unwrap();
        assert_eq!(z.values, [0.0, 1.5, 5.0, 1.5, 0.0]);
    }

    /// A row of 0, 4, 8, 12 above and below holes drains both ways from its ends; 3 x 4 with open borders: every value is on the
    /// border, so all are outlets and nothing is cut.
    #[test]
    fn outlets_stay() {
        let z = map(2, &[0.0, 4.0, 8.0, 12.0]);
        assert_eq!(stream_power(&z, &StreamPower::default()).unwrap(), z);
    }

    /// The middle of 3 x 3 at 10, all around 0 but the south at 1: it drains to the first steepest neighbour at distance 1 (north,
    /// fall 10), has area 1, and is cut to (10 + k · 0)/(1 + k) with k = 0.25: 8.
    #[test]
    fn three_by_three_by_hand() {
        let z = map(3, &[0.0, 0.0, 0.0, 0.0, 10.0, 0.0, 0.0, 1.0, 0.0]);
        let options = StreamPower { steps: 1, strength: 0.25 };
        assert_eq!(stream_power(&z, &options).unwrap().values[4], 8.0);
    }

    /// A spike of 9 in the middle of 5 x 5 zeros, talus 1. Excess to the four sides 9 - 1 = 8, across the four corners 9 - √2 =
    /// 7.5858; half of the largest (4) moves, by shares: the sum is 4 · 8 + 4 · 7.5858 = 62.343, so each side gets 4 · 8 / 62.343 =
    /// 0.51329 and each corner 4 · 7.5858 / 62.343 = 0.48671. The rim, at 0, stays.
    #[test]
    fn a_slump_of_five_by_five_by_hand() {
        let mut z = Raster::filled(5, 5, 0f32);
        z.set(2, 2, 9.0);
        let out = thermal(&z, 1, 1.0).unwrap();
        for (c, r, want) in
            [(2, 2, 5.0), (1, 2, 0.513_29), (2, 3, 0.513_29), (1, 1, 0.486_71), (3, 3, 0.486_71), (0, 2, 0.0)]
        {
            assert!((out.at(c, r) - want).abs() < 1e-4, "{c}, {r}: {}", out.at(c, r));
        }
    }

    #[test]
    fn odd_requests_are_refused() {
        let z = map(2, &[0.0; 4]);
        assert!(thermal(&z, 1, f32::NAN).is_err());
        assert!(stream_power(&z, &StreamPower { strength: -1.0, ..Default::default() }).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn slumps_keep_the_total(seed: u64, talus in 0.0..2.0f32) {
            let key = crate::terrain::noise::NoiseKey::new(seed, 1.0, 0);
            let z = map(12, &(0..144).map(|i| 3.0 * key.normal(i, 0)).collect::<Vec<_>>());
            let sum = |z: &Raster<f32>| z.values.iter().map(|&v| f64::from(v)).sum::<f64>();
            let out = thermal(&z, 5, talus).unwrap();
            prop_assert!((sum(&z) - sum(&out)).abs() < 1e-2);
        }

        /// After a step every value that is not an outlet has a neighbour that is not higher: water runs out.
        #[test]
        fn water_runs_out(seed: u64, strength in 0.0..1.0f32) {
            let key = crate::terrain::noise::NoiseKey::new(seed, 1.0, 0);
            let z = map(15, &(0..225).map(|i| 3.0 * key.normal(i, 0)).collect::<Vec<_>>());
            let out = stream_power(&z, &StreamPower { steps: 3, strength }).unwrap();
            for r in 1..14 {
                for c in 1..14 {
                    let not_higher = |(x, y): (usize, usize)| out.at(x, y) <= out.at(c, r);
                    let runs_out = (0..8).filter_map(|k| neighbour(&out, c, r, k)).any(not_higher);
                    prop_assert!(runs_out, "at {}, {}", c, r);
                }
            }
        }
    }
}
