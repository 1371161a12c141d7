//! The only door to GDAL: read, project, rasterize, write GeoTIFF and GeoPackage.
