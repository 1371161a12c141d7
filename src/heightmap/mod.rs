//! Free-standing heightmaps: the generators, filters and files of the classic tutorials, without their traps.
//!
//! Everything here works on a plain [`Raster<f32>`](crate::raster::Raster), row 0 on top, and is a pure function of its options:
//! one seed gives the same values on any machine and any number of threads. Values are real numbers throughout; they meet
//! whole numbers only in [`raw`], where out-of-range ones are clamped or rescaled as asked, never wrapped.

pub mod chain;
pub mod diamond_square;
pub mod erode;
pub mod fault;
pub mod filter;
pub mod midpoint;
pub mod raw;
pub mod spectral;

/// The longest side of a heightmap that is made; larger ones are refused with an estimate of their memory.
pub const LONGEST_SIDE: usize = 65_537;

use crate::error::{Error, Result};
use crate::resources::human_bytes;

/// Checks a size in values along x and y.
///
/// # Errors
/// [`Error::Argument`] for a side of 0, one beyond [`LONGEST_SIDE`], or more memory than the machine has left.
pub fn check_size(cols: usize, rows: usize, bytes_per_value: u64) -> Result<()> {
    if cols == 0 || rows == 0 {
        return Err(Error::argument("--size", format!("{cols} x {rows} holds no value"), "give sides of 1 or more"));
    }
    if cols.max(rows) > LONGEST_SIDE {
        let gib = cols as f64 * rows as f64 * bytes_per_value as f64 / (1u64 << 30) as f64;
        return Err(Error::argument(
            "--size",
            format!("{cols} x {rows} would need {gib:.0} GiB"),
            format!("give sides up to {LONGEST_SIDE}"),
        ));
    }
    let need = cols as u64 * rows as u64 * bytes_per_value;
    match crate::resources::memory_available() {
        Some(have) if need > have => Err(Error::argument(
            "--size",
            format!("{cols} x {rows} needs {} of memory, {} are left", human_bytes(need), human_bytes(have)),
            "give smaller sides",
        )),
        _ => Ok(()),
    }
}
