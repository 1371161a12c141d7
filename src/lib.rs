//! Historical maps with true relief: terrain from constraints, polities through time.
//!
//! Data flows one way: a region pack and border files become constraints and claims; constraints become elevation; claims
//! become regions of an era; both become rasters, vectors and map sheets. `docs/design.md` has the picture.

pub mod borders;
pub mod contour;
pub mod error;
pub mod gdal_io;
pub mod grid;
pub mod pack;
pub mod raster;
pub mod rasterize;
pub mod render;
pub mod resources;
pub mod terrain;
pub mod vector;
pub mod water;
pub mod year;

pub use error::{Error, Result};
