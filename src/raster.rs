//! Cells in memory: a dense row-major array with its grid's size. No georeference inside: the [`crate::grid::Grid`] beside it says
//! where the cells lie.

use crate::grid::{Cell, Window};

/// A row-major array of `cols` x `rows` values, row 0 in the north.
#[derive(Debug, Clone, PartialEq)]
pub struct Raster<T> {
    /// Columns.
    pub cols: usize,
    /// Rows.
    pub rows: usize,
    /// `cols * rows` values, row after row.
    pub values: Vec<T>,
}

impl<T: Copy> Raster<T> {
    /// A raster of one value.
    pub fn filled(cols: usize, rows: usize, value: T) -> Self {
        Raster { cols, rows, values: vec![value; cols * rows] }
    }

    /// A raster from its values.
    ///
    /// # Panics
    /// When `values` is not `cols * rows` long: a programming error, not reachable from input.
    pub fn from_values(cols: usize, rows: usize, values: Vec<T>) -> Self {
        assert_eq!(values.len(), cols * rows, "raster size");
        Raster { cols, rows, values }
    }

    /// The value at (col, row).
    #[inline]
    pub fn at(&self, col: usize, row: usize) -> T {
        self.values[row * self.cols + col]
    }

    /// Sets the value at (col, row).
    #[inline]
    pub fn set(&mut self, col: usize, row: usize, value: T) {
        self.values[row * self.cols + col] = value;
    }

    /// The value of `cell`, or `None` outside.
    #[inline]
    pub fn get(&self, cell: Cell) -> Option<T> {
        let (col, row) = (usize::try_from(cell.col).ok()?, usize::try_from(cell.row).ok()?);
        (col < self.cols && row < self.rows).then(|| self.at(col, row))
    }

    /// One row.
    #[inline]
    pub fn row(&self, row: usize) -> &[T] {
        &self.values[row * self.cols..(row + 1) * self.cols]
    }

    /// A copy of `window`, which must lie inside.
    ///
    /// # Panics
    /// When the window reaches outside: a programming error, not reachable from input.
    pub fn crop(&self, window: Window) -> Raster<T> {
        let (c0, r0) = (window.col as usize, window.row as usize);
        let mut values = Vec::with_capacity(window.cols * window.rows);
        for row in r0..r0 + window.rows {
            values.extend_from_slice(&self.row(row)[c0..c0 + window.cols]);
        }
        Raster { cols: window.cols, rows: window.rows, values }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crop_takes_the_named_cells() {
        let r = Raster::from_values(3, 3, (0..9).collect());
        let c = r.crop(Window { col: 1, row: 1, cols: 2, rows: 2 });
        assert_eq!(c.values, [4, 5, 7, 8]);
    }

    #[test]
    fn get_is_none_outside() {
        let r = Raster::from_values(2, 1, vec![1, 2]);
        assert_eq!(r.get(Cell { col: 1, row: 0 }), Some(2));
        assert_eq!(r.get(Cell { col: -1, row: 0 }), None);
        assert_eq!(r.get(Cell { col: 0, row: 1 }), None);
    }
}
