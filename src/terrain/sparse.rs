//! A raster that is the same value almost everywhere: squares that differ are kept, the rest costs nothing.

/// Cells along a square's side.
pub(super) const SIDE: usize = 64;

/// Values by cell; squares without their own hold `default`.
#[derive(Debug, Clone)]
pub(super) struct Sparse<T> {
    across: usize,
    pub(super) default: T,
    squares: Vec<Option<Box<[T]>>>,
}

impl<T: Copy> Sparse<T> {
    /// `cols` x `rows` cells of `default`.
    pub(super) fn new(cols: usize, rows: usize, default: T) -> Self {
        let (across, down) = (cols.div_ceil(SIDE), rows.div_ceil(SIDE));
        Sparse { across, default, squares: vec![None; across * down] }
    }

    /// Whether the cells `from`..`to` (not empty) of row `r` all lie in squares without values of their own.
    #[inline]
    pub(super) fn is_default(&self, from: usize, to: usize, r: usize) -> bool {
        let row = (r / SIDE) * self.across;
        (from / SIDE..=(to - 1) / SIDE).all(|s| self.squares[row + s].is_none())
    }

    /// The value at (c, r).
    #[inline]
    pub(super) fn at(&self, c: usize, r: usize) -> T {
        match &self.squares[(r / SIDE) * self.across + c / SIDE] {
            None => self.default,
            Some(square) => square[(r % SIDE) * SIDE + c % SIDE],
        }
    }

    /// The value at (c, r), to be changed.
    #[inline]
    pub(super) fn at_mut(&mut self, c: usize, r: usize) -> &mut T {
        let default = self.default;
        let square = &mut self.squares[(r / SIDE) * self.across + c / SIDE];
        let square = square.get_or_insert_with(|| vec![default; SIDE * SIDE].into_boxed_slice());
        &mut square[(r % SIDE) * SIDE + c % SIDE]
    }

    /// Upper-left cells of the squares that have values of their own, row after row.
    pub(super) fn own_squares(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let own = self.squares.iter().enumerate().filter(|(_, s)| s.is_some());
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
        assert!(!s.is_default(0, 65, 128) && s.is_default(0, 64, 128) && s.is_default(0, 200, 127));
        assert_eq!(s.own_squares().collect::<Vec<_>>(), vec![(64, 128)]);
    }
}
