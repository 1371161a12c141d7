//! What binds single cells, whatever the ground would be: water at its level, land above the water beside it, intervals,
//! ceilings below summits, surveyed points.
//!
//! Water is set once and stays. All else is a lowest and a highest height by cell, known before the ground is, kept for the
//! squares where anything binds, and taken again after every move of the ground.

use super::part::Part;
use super::pins;
use super::shore::{Kind, ShoreDistance, WaterSquares};
use super::sparse::{SIDE, Sparse, Square};
use super::{BodyLevel, DRAUGHT_M, FREEBOARD_M, Interval, Placement, Terrain};
use crate::grid::Window;
use crate::raster::Raster;
use crate::water::WaterKind;
use rayon::prelude::*;

/// No bounds.
const OPEN: (f32, f32) = (f32::NEG_INFINITY, f32::INFINITY);

/// Water bodies over the working window.
pub(super) struct Water<'a> {
    pub(super) body: Part<'a>,
    pub(super) squares: WaterSquares,
    pub(super) shore: ShoreDistance,
}

/// Everything that binds the cells of one window.
pub(super) struct Holds<'a> {
    terrain: &'a Terrain,
    region: Window,
    water: Option<&'a Water<'a>>,
    bounds: Sparse<(f32, f32)>,
    intervals: Option<(Part<'a>, &'a [Interval])>,
    sea_levels: Vec<f32>,
    highest_floor: f32,
    /// Whether any bound or level is there at all.
    binds: bool,
}

impl<'a> Holds<'a> {
    /// What `terrain` holds in `region`; summits rule as far as `pin_reach` cells say.
    pub(super) fn new(
        terrain: &'a Terrain,
        region: Window,
        water: Option<&'a Water<'a>>,
        intervals: Option<(Part<'a>, &'a [Interval])>,
        pin_reach: f32,
    ) -> Holds<'a> {
        let seas = terrain.bodies.iter().filter(|b| b.kind == WaterKind::Sea);
        let sea_levels: Vec<f32> = seas.map(|b| b.level_m).collect();
        let highest_floor = sea_levels.iter().copied().fold(f32::NEG_INFINITY, f32::max) + FREEBOARD_M;
        let mut holds = Holds {
            terrain,
            region,
            water,
            bounds: Sparse::new(0, 0, OPEN),
            binds: !terrain.bodies.is_empty() || intervals.is_some() || !terrain.pins.is_empty(),
            intervals,
            sea_levels,
            highest_floor,
        };
        let ceilings = pins::ceilings(region, &terrain.pins, pin_reach);
        let open = |c, r| matches!(ceilings.square(c, r), Square::Flat(_));
        holds.bounds = Sparse::build(region.cols, region.rows, |c0, r0| {
            if open(c0, r0) && !water.is_some_and(|w| w.shore.acts_in(c0, r0)) {
                return Square::Flat(OPEN);
            }
            let mut square = vec![OPEN; SIDE * SIDE].into_boxed_slice();
            for r in r0..(r0 + SIDE).min(region.rows) {
                for c in c0..(c0 + SIDE).min(region.cols) {
                    if holds.body_at(c, r) == 0 {
                        let ceiling = ceilings.at(c, r);
                        let low = holds.lowest_land(c, r).min(ceiling);
                        square[(r - r0) * SIDE + c - c0] = (low, ceiling);
                    }
                }
            }
            Square::Own(square)
        });
        for pin in &terrain.pins {
            let (c, r) = (pin.cell.col - region.col, pin.cell.row - region.row);
            if c >= 0 && r >= 0 && c < region.cols as i64 && r < region.rows as i64 {
                *holds.bounds.at_mut(c as usize, r as usize) = (pin.z_m, pin.z_m);
            }
        }
        holds
    }

    /// Calls `each` with column and row of every cell of `z` that stands at one of its bounds.
    pub(super) fn each_at_bound(&self, z: &Raster<f32>, mut each: impl FnMut(usize, usize)) {
        for (c0, r0) in self.bounds.own_squares() {
            for r in r0..(r0 + SIDE).min(self.region.rows) {
                for c in c0..(c0 + SIDE).min(self.region.cols) {
                    let ((low, high), v) = (self.bounds.at(c, r), z.at(c, r));
                    if v <= low || v >= high {
                        each(c, r);
                    }
                }
            }
        }
        if let Some((class, classes)) = &self.intervals {
            for r in 0..self.region.rows {
                let cells = class.row(r).iter().zip(z.row(r)).enumerate().filter(|(_, (k, _))| **k != 0);
                for (c, (&class, &v)) in cells {
                    let Interval { low_m, high_m } = classes[class as usize - 1];
                    if v <= low_m || v >= high_m {
                        each(c, r);
                    }
                }
            }
        }
    }

    fn body_at(&self, c: usize, r: usize) -> u16 {
        self.water.map_or(0, |w| w.body.at(c, r))
    }

    fn coarse_at(&self, c: usize, r: usize) -> f32 {
        let land = &self.terrain.land;
        land.surface.value_under(place(&land.placement, self.region, c, r))
    }

    /// The height that the land cell (c, r) stands at or above because of water.
    fn lowest_land(&self, c: usize, r: usize) -> f32 {
        match self.water.and_then(|w| w.shore.at(c, r)) {
            Some((_, body)) => {
                let level = self.terrain.bodies[body as usize - 1].level_m;
                // Real land below the water beside it (behind a dam, in a pit) stays where the coarse values put it.
                if self.coarse_at(c, r) < level { f32::NEG_INFINITY } else { level + FREEBOARD_M }
            }
            // Far from water: above the highest sea that the coarse ground is above.
            None if self.sea_levels.is_empty() => f32::NEG_INFINITY,
            None => {
                let coarse = self.coarse_at(c, r);
                let below = self.sea_levels.iter().copied().filter(|level| *level < coarse);
                below.fold(f32::NEG_INFINITY, f32::max) + FREEBOARD_M
            }
        }
    }

    /// Sets water to its level, the floor of seas below it, and surveyed points to their height.
    pub(super) fn set_fixed(&self, z: &mut Raster<f32>) {
        let cols = self.region.cols;
        if let Some(water) = self.water {
            z.values.par_chunks_mut(cols).enumerate().for_each(|(r, row)| {
                for c0 in (0..cols).step_by(SIDE) {
                    if water.squares.kind(c0, r) == Kind::Land {
                        continue;
                    }
                    for (c, v) in row.iter_mut().enumerate().take(c0 + SIDE).skip(c0) {
                        let body = water.body.at(c, r);
                        if body != 0 {
                            *v = self.water_bed(water, body, c, r);
                        }
                    }
                }
            });
        }
        pins::set(z, self.region, &self.terrain.pins);
    }

    /// The surface of a lake, or the floor of a sea.
    fn water_bed(&self, water: &Water, body: u16, c: usize, r: usize) -> f32 {
        let BodyLevel { kind, level_m } = self.terrain.bodies[body as usize - 1];
        if kind != WaterKind::Sea {
            return level_m;
        }
        let reach = water.shore.reach_cells() as f32;
        let distance = water.shore.at(c, r).map_or(reach, |(d, _)| d);
        let t = (distance / reach).min(1.0);
        let depth = match &self.terrain.sea_floor {
            Some(floor) => level_m - floor.surface.elevation(place(&floor.placement, self.region, c, r)) as f32,
            None => 0.002 * distance * self.terrain.cell_m as f32,
        };
        level_m - DRAUGHT_M - (depth - DRAUGHT_M).max(0.0) * t * (2.0 - t)
    }

    /// Puts the values of row `r` from column `c0` on within their bounds.
    #[inline(always)]
    pub(super) fn keep(&self, c0: usize, r: usize, values: &mut [f32]) {
        if self.binds {
            self.keep_bound(c0, r, values);
        }
    }

    fn keep_bound(&self, c0: usize, r: usize, values: &mut [f32]) {
        if let Some((class, classes)) = &self.intervals {
            let row = &class.row(r)[c0..c0 + values.len()];
            for (k, (v, &class)) in values.iter_mut().zip(row).enumerate() {
                if class != 0 && self.body_at(c0 + k, r) == 0 {
                    let Interval { low_m, high_m } = classes[class as usize - 1];
                    *v = v.max(low_m).min(high_m);
                }
            }
        }
        let (mut c, mut rest) = (c0, values);
        while !rest.is_empty() {
            let (part, more) = rest.split_at_mut((SIDE - c % SIDE).min(rest.len()));
            match self.bounds.square(c, r) {
                Square::Own(square) => {
                    let bounds = &square[(r % SIDE) * SIDE + c % SIDE..][..part.len()];
                    part.iter_mut().zip(bounds).for_each(|(v, (low, high))| *v = v.max(*low).min(*high));
                }
                Square::Flat(_) => self.keep_above_seas(c, r, part),
            }
            c += part.len();
            rest = more;
        }
    }

    /// Land far from water above the seas that its coarse ground is above; nearly always it is.
    #[inline]
    fn keep_above_seas(&self, c: usize, r: usize, values: &mut [f32]) {
        if self.sea_levels.is_empty() || self.water.is_some_and(|w| w.squares.kind(c, r) == Kind::Water) {
            return;
        }
        let mut low = false;
        values.iter().for_each(|v| low |= *v < self.highest_floor);
        if low {
            for (k, v) in values.iter_mut().enumerate().filter(|(_, v)| **v < self.highest_floor) {
                *v = v.max(self.lowest_land(c + k, r));
            }
        }
    }
}

/// Position of the centre of the cell (c, r) of `region`.
#[inline]
fn place(placement: &Placement, region: Window, c: usize, r: usize) -> super::Uv {
    placement.at(region.col + c as i64, region.row + r as i64, 0.5, 0.5)
}
