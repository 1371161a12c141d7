//! Which points of a lattice lie on the coarse raster, told fast for most of them.

use super::lattice::Sites;
use super::placement::Placement;
use super::surface::CoarseSurface;
use std::ops::Range;

/// Points of a rectangle of the lattice, and the coarse raster below them.
pub(super) struct Inside<'a> {
    surface: &'a CoarseSurface,
    placement: &'a Placement,
    sites: Sites,
    /// First columns and rows inside, and those after the last: everything between them lies on the raster.
    surely: [usize; 4],
}

impl<'a> Inside<'a> {
    /// For `cols` x `rows` points. The rectangle of those that surely lie on the raster is found by moving its sides inward:
    /// a side between two ends that are inside, of a map without folds, is inside but for its bulge, so all points of it count.
    pub(super) fn new(
        surface: &'a CoarseSurface,
        placement: &'a Placement,
        sites: Sites,
        (cols, rows): (usize, usize),
    ) -> Inside<'a> {
        let inside = |c: usize, r: usize| surface.contains(sites.place(placement, c as i64, r as i64));
        let [mut c0, mut r0, mut c1, mut r1] = [0, 0, cols, rows];
        loop {
            let sides = [
                c1 > c0 && !(r0..r1).all(|r| inside(c0, r)),
                c1 > c0 && !(r0..r1).all(|r| inside(c1 - 1, r)),
                r1 > r0 && !(c0..c1).all(|c| inside(c, r0)),
                r1 > r0 && !(c0..c1).all(|c| inside(c, r1 - 1)),
            ];
            if c0 >= c1 || r0 >= r1 || sides == [false; 4] {
                return Inside { surface, placement, sites, surely: [c0, r0, c1, r1] };
            }
            c0 += usize::from(sides[0]);
            c1 -= usize::from(sides[1] && c1 > c0);
            r0 += usize::from(sides[2]);
            r1 -= usize::from(sides[3] && r1 > r0);
        }
    }

    /// Whether the point (c, r) lies on the raster.
    #[inline(always)]
    pub(super) fn holds(&self, c: usize, r: usize) -> bool {
        let [c0, r0, c1, r1] = self.surely;
        (c >= c0 && c < c1 && r >= r0 && r < r1)
            || self.surface.contains(self.sites.place(self.placement, c as i64, r as i64))
    }

    /// The columns of row `r`, of `cols`, that may not lie on the raster: before and after those that surely do.
    pub(super) fn doubtful(&self, r: usize, cols: usize) -> [Range<usize>; 2] {
        let [c0, r0, c1, r1] = self.surely;
        if r >= r0 && r < r1 { [0..c0, c1..cols] } else { [0..cols, 0..0] }
    }
}
