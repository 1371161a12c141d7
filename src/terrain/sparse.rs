//! A raster that is one value over most of its squares: squares that differ within are kept, the rest costs nothing.

use rayon::prelude::*;

/// Cells along a square's side.
pub(super) const SIDE: usize = 64;

/// One square of a [`Sparse`] raster.
#[derive(Debug, Clone)]
pub(super) enum Square<T> {
    /// One value all over.
    Flat(T),
    /// [`SIDE`] x [`SIDE`] values, row after row.
    Own(Box<[T]>),
}

/// Values by cell, square by square.
#[derive(Debug, Clone)]
pub(super) struct Sparse<T> {
    across: usize,
    squares: Vec<Square<T>>,
}

impl<T: Copy + PartialEq + Send + Sync> Sparse<T> {
    /// `cols` x `rows` cells of `value`.
    pub(super) fn new(cols: usize, rows: usize, value: T) -> Self {
        let (across, down) = (cols.div_ceil(SIDE), rows.div_ceil(SIDE));
        Sparse { across, squares: vec![Square::Flat(value); across * down] }
    }

    /// Each square from the column and row of its upper-left cell.
    pub(super) fn build(cols: usize, rows: usize, square: impl Fn(usize, usize) -> Square<T> + Sync) -> Self {
        let (across, down) = (cols.div_ceil(SIDE), rows.div_ceil(SIDE));
        let squares = (0..across * down).into_par_iter().map(|k| square((k % across) * SIDE, (k / across) * SIDE));
        Sparse { across, squares: squares.collect() }
    }

    /// The value of the cells `from`..`to` (at least one, at most [`SIDE`]) of row `r`, if they lie in squares of one value, the
    /// same in both.
    #[inline(always)]
    pub(super) fn flat(&self, from: usize, to: usize, r: usize) -> Option<T> {
        match (self.square(from, r), self.square(to - 1, r)) {
            (Square::Flat(v), Square::Flat(w)) if v == w => Some(*v),
            _ => None,
        }
    }

    /// The value at (c, r).
    #[inline(always)]
    pub(super) fn at(&self, c: usize, r: usize) -> T {
        match &self.squares[(r / SIDE) * self.across + c / SIDE] {
            Square::Flat(value) => *value,
            Square::Own(square) => square[(r % SIDE) * SIDE + c % SIDE],
        }
    }

    /// The value at (c, r), to be changed.
    #[inline]
    pub(super) fn at_mut(&mut self, c: usize, r: usize) -> &mut T {
        let square = &mut self.squares[(r / SIDE) * self.across + c / SIDE];
        if let Square::Flat(value) = *square {
            *square = Square::Own(vec![value; SIDE * SIDE].into_boxed_slice());
        }
        match square {
            Square::Own(values) => &mut values[(r % SIDE) * SIDE + c % SIDE],
            // Made its own just above.
            Square::Flat(value) => value,
        }
    }

    /// The square that holds (c, r).
    #[inline(always)]
    pub(super) fn square(&self, c: usize, r: usize) -> &Square<T> {
        &self.squares[(r / SIDE) * self.across + c / SIDE]
    }

    /// Whether `is` holds for the value of any square of one value, or there is a square of several.
    pub(super) fn any(&self, is: impl Fn(T) -> bool) -> bool {
        self.squares.iter().any(|s| match s {
            Square::Flat(value) => is(*value),
            Square::Own(_) => true,
        })
    }

    /// Upper-left cells of the squares that have values of their own, row after row.
    pub(super) fn own_squares(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let own = self.squares.iter().enumerate().filter(|(_, s)| matches!(s, Square::Own(_)));
        own.map(|(k, _)| ((k % self.across) * SIDE, (k / self.across) * SIDE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_touched_squares_are_kept() {
        let mut s = Sparse::new(200, 130, 1f32);
        assert_eq!(s.own_squares().count(), 0);
        *s.at_mut(70, 129) = 0.5;
        assert_eq!((s.at(70, 129), s.at(71, 129), s.at(0, 0)), (0.5, 1.0, 1.0));
        assert_eq!((s.flat(1, 65, 128), s.flat(0, 64, 128), s.flat(140, 200, 127)), (None, Some(1.0), Some(1.0)));
        assert_eq!(s.own_squares().collect::<Vec<_>>(), vec![(64, 128)]);
    }

    #[test]
    fn squares_of_different_values_are_not_flat_together() {
        let s = Sparse::build(200, 64, |c, _| Square::Flat(if c < 64 { 2 } else { 3 }));
        assert_eq!((s.flat(0, 64, 9), s.flat(63, 65, 9), s.flat(150, 200, 9)), (Some(2), None, Some(3)));
    }
}
