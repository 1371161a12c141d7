//! Control points inside raster files.

use super::{log, source};
use crate::error::{Error, Result};
use crate::georef::points::PointFile;
use crate::georef::{ControlPoint, Pixel};
use crate::grid::Xy;
use std::path::Path;

/// The ground control points in the header of the raster `path`.
///
/// # Errors
/// [`Error::Read`] when it cannot be opened, [`Error::Content`] when it holds none.
pub fn gcps(path: &Path) -> Result<PointFile> {
    log::start();
    let dataset = source::open(path.into(), source::Kind::Raster)?.dataset;
    let points: Vec<ControlPoint> = dataset
        .gcps()
        .iter()
        .map(|g| ControlPoint {
            pixel: Pixel { column: g.pixel(), line: g.line() },
            ground: Xy { x: g.x(), y: g.y() },
            is_enabled: true,
        })
        .collect();
    if points.is_empty() {
        return Err(Error::content(
            path.display().to_string(),
            "no control points in the file",
            "a file of them: give --gcps",
        ));
    }
    Ok(PointFile { points, crs: dataset.gcp_projection().filter(|p| !p.is_empty()), form: "points in the file" })
}
