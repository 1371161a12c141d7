//! Node values: where a fine cell's centre is the centre of a coarse cell, it has the coarse value to the bit.

use super::lattice::Sites;
use super::means::Weights;
use super::placement::{Placement, Uv};
use super::surface::CoarseSurface;
use crate::raster::Raster;
use rayon::prelude::*;
use std::collections::HashMap;

/// A fine cell this close to a coarse centre, in coarse cells, is its node.
const ON_NODE: f64 = 1e-6;

/// The coarse cell whose centre `p` is.
fn node_at(p: Uv) -> Option<(i64, i64)> {
    let (x, y) = (p.u - 0.5, p.v - 0.5);
    let (c, r) = (x.round(), y.round());
    ((x - c).abs() < ON_NODE && (y - r).abs() < ON_NODE).then_some((c as i64, r as i64))
}

/// Bends `z` so that it passes through the coarse values at their nodes: the gaps there, interpolated linearly between.
/// Cells with `weight` 0 stay.
pub(super) fn bind(
    z: &mut Raster<f32>,
    surface: &CoarseSurface,
    sites: Sites,
    placement: &Placement,
    weight: &Weights,
) {
    let cols = z.cols;
    let place = |i: usize| sites.place(placement, (i % cols) as i64, (i / cols) as i64);
    let gaps: HashMap<(i64, i64), f32> = z
        .values
        .par_iter()
        .enumerate()
        .filter_map(|(i, &v)| {
            let p = place(i);
            let node = node_at(p)?;
            let value = surface.value_under(p);
            value.is_finite().then_some((node, value - v))
        })
        .collect();
    if gaps.is_empty() {
        return;
    }
    let gap = |c: i64, r: i64| gaps.get(&(c, r)).copied().unwrap_or(0.0);
    z.values.par_iter_mut().enumerate().for_each(|(i, v)| {
        let w = weight.at(i % cols, i / cols);
        if w <= 0.0 {
            return;
        }
        let p = place(i);
        if node_at(p).is_some() {
            // To the bit, not to the rounding of a sum.
            let value = surface.value_under(p);
            if value.is_finite() && w >= 1.0 {
                *v = value;
            }
            return;
        }
        let (x, y) = (p.u - 0.5, p.v - 0.5);
        let (c, r) = (x.floor(), y.floor());
        let (fx, fy) = ((x - c) as f32, (y - r) as f32);
        let (c, r) = (c as i64, r as i64);
        let top = gap(c, r) + (gap(c + 1, r) - gap(c, r)) * fx;
        let bottom = gap(c, r + 1) + (gap(c + 1, r + 1) - gap(c, r + 1)) * fx;
        *v += w * (top + (bottom - top) * fy);
    });
}
