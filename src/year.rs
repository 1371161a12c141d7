//! Years, spans and eras. Inside, years are astronomical (1 BCE is 0, 2 BCE is -1) and spans half-open; people read and
//! write historian's years (BCE/CE, no year 0, last year included). No datetime type is involved.

/// A year in astronomical numbering: 1 BCE is 0, 300 BCE is -299.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Year(pub i32);

/// A half-open span of years: `start` belongs to it, `end` does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Span {
    /// First year.
    pub start: Year,
    /// First year after.
    pub end: Year,
}

/// The year or span of years that the user asked for, never empty.
pub type Era = Span;
