//! A part of a raster of classes: what the window at work sees of it, without a copy.

use crate::grid::Window;
use crate::raster::Raster;

/// Cells of a raster that cover a window.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    whole: &'a Raster<u16>,
    col: usize,
    row: usize,
    pub(super) cols: usize,
    pub(super) rows: usize,
}

impl<'a> Part<'a> {
    /// The cells of `window` of `whole`, which lies over `from`; the window must lie in it.
    pub(super) fn of(whole: &'a Raster<u16>, from: Window, window: Window) -> Part<'a> {
        let (col, row) = ((window.col - from.col) as usize, (window.row - from.row) as usize);
        Part { whole, col, row, cols: window.cols, rows: window.rows }
    }

    /// The cell (c, r) of the window.
    #[inline(always)]
    pub(super) fn at(&self, c: usize, r: usize) -> u16 {
        self.whole.at(self.col + c, self.row + r)
    }

    /// Row `r` of the window.
    #[inline(always)]
    pub(super) fn row(&self, r: usize) -> &'a [u16] {
        &self.whole.row(self.row + r)[self.col..self.col + self.cols]
    }
}
