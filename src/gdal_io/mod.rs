//! The only door to GDAL: read and project, write GeoTIFF and GeoPackage. Owns every call into the library, so that
//! nothing else in the crate sees a GDAL type.
//!
//! Invariants:
//! - Coordinates are x, y or lon, lat in that order, whatever axis order the CRS itself prescribes.
//! - GDAL prints nothing. What it says goes into our errors, with the file's name added.
//! - Files are made in memory, written beside their final name, then renamed: never half-written.
//! - Bytes written depend on the data and options alone: not on the clock, the number of threads or the environment.
//!
//! It never decides where data comes from, never resamples silently and never guesses a CRS.

mod classes_in;
mod cog;
mod crs;
mod gcps;
mod gpkg;
mod log;
mod picture_in;
mod raster_in;
mod source;
pub mod styles;
mod vector_files;
mod vector_in;
mod write;

pub use crate::rasterize::{rasterize, rasterize_mask};
pub use classes_in::{ClassLook, ClassesFile, read_classes};
pub use cog::{
    AttributeColumn, AttributeTable, CogOptions, CogValue, ColumnUse, ColumnValues, Compression, Overviews, write_cog,
};
pub use crs::{Transformer, WGS84, crs, metres_per_unit};
pub use gcps::gcps;
pub use gpkg::{GeometryKind, GpkgLayer, GpkgOptions, LayerStyle, write_gpkg};
pub use picture_in::{PictureFile, read_picture};
pub use raster_in::{
    RasterFile, RasterInfo, RasterReadOptions, Registration, raster_info, read_raster, read_raster_window,
};
pub use source::Source;
pub use vector_files::{VectorFile, vector_files};
pub use vector_in::{VectorLayer, VectorReadOptions, read_features_wgs84, read_layers};
pub use write::write_beside;

use gdal::{DriverManager, Metadata};
use std::path::Path;

/// GDAL's version, for example `3.6.2`.
pub fn version() -> String {
    gdal::version::version_info("RELEASE_NAME")
}

/// Whether this GDAL has the driver of that short name, for example `COG` or `GPKG`.
pub fn has_driver(name: &str) -> bool {
    log::start();
    DriverManager::get_driver_by_name(name).is_ok()
}

/// Whether the GeoTIFF driver can compress with `name`, for example `DEFLATE` or `ZSTD`.
pub fn has_compression(name: &str) -> bool {
    log::start();
    DriverManager::get_driver_by_name("GTiff")
        .ok()
        .and_then(|driver| driver.metadata_item("DMD_CREATIONOPTIONLIST", ""))
        .is_some_and(|options| options.contains(&format!("<Value>{name}</Value>")))
}

/// Bytes that an ordinary user may still write to the file system of `path`, which need not exist yet: its nearest
/// existing parent counts. `None` where the system does not say.
pub fn disk_free(path: &Path) -> Option<u64> {
    let absolute = std::path::absolute(path).ok()?;
    let folder = absolute.ancestors().find(|p| p.is_dir())?;
    let name = std::ffi::CString::new(folder.to_str()?).ok()?;
    // SAFETY: `name` is a NUL-terminated string that outlives the call, which only reads it.
    let free = unsafe { gdal_sys::VSIGetDiskFreeSpace(name.as_ptr()) };
    u64::try_from(free).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_says_what_it_can_do() {
        assert!(version().starts_with('3'), "{}", version());
        assert!(has_driver("COG") && has_driver("GPKG") && !has_driver("NoSuchDriver"));
        assert!(has_compression("DEFLATE") && !has_compression("NOSUCH"));
    }

    #[test]
    fn free_space_is_that_of_the_nearest_folder() {
        let folder = tempfile::tempdir().unwrap();
        let free = disk_free(&folder.path().join("not/yet/there.tif")).unwrap();
        assert!(free > 0);
    }
}
