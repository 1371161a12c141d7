//! Historical maps with true relief: terrain from constraints, polities through time.
//!
//! Data flows one way: a region pack and border files become constraints and claims; constraints become elevation; claims
//! become regions of an era; both become rasters, vectors and map sheets. `docs/design.md` has the picture.

pub mod animate;
pub mod borders;
pub mod classes;
pub mod cli;
pub mod constraint;
pub mod contour;
pub mod edtf;
pub mod eras;
pub mod error;
pub mod export;
pub mod gdal_io;
pub mod georef;
pub mod grid;
pub mod heightmap;
pub mod import;
pub mod manifest;
pub mod mesh;
pub mod mesh_run;
pub mod pack;
pub mod pipeline;
pub mod political;
pub mod progress;
pub mod raster;
pub mod rasterize;
pub mod refine;
pub mod region;
pub mod register;
pub mod render;
pub mod resources;
pub mod series;
pub mod shipped;
pub mod spline;
pub mod terrain;
pub mod trace;
pub mod trace_run;
pub mod vector;
pub mod view;
pub mod water;
pub mod words;
pub mod year;

pub use error::{Error, Result};
