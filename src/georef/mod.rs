//! Registration of scanned maps: control points in, a transform with its stated accuracy out.
//!
//! The model always runs from the map to the scan: a place in a plane goes to a pixel. So residuals are in the pixels in which
//! the points were picked, and the warp asks for exactly what it needs. Nothing here reads files or knows GDAL; planes are
//! reached through functions that the caller gives.

pub mod diagnosis;
pub mod fit;
pub mod points;

pub use fit::{Fit, Model, Shape};
pub use points::ControlPoint;

/// A position in a scan: column and line in pixels, (0, 0) the upper left corner of the first pixel, (0.5, 0.5) its centre.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pixel {
    /// From the left edge.
    pub column: f64,
    /// From the top edge.
    pub line: f64,
}
