//! Terrain from constraints. No files, no GDAL, no clock.
