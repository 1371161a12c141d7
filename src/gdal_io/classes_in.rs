//! Rasters of classes in: whole numbers, with the names and colours that the file gives them.

use super::raster_in::{RasterReadOptions, read_raster};
use super::source::{Kind, Source, open};
use crate::error::{Error, Result};
use crate::grid::Grid;
use crate::raster::Raster;
use gdal::raster::RasterBand;
use std::collections::BTreeMap;

/// A class of a raster.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ClassLook {
    /// Its name; empty where the file gives none.
    pub name: String,
    /// Its colour, where the file gives one.
    pub colour: Option<[u8; 3]>,
}

/// A raster of classes.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassesFile {
    /// Its frame.
    pub grid: Grid,
    /// Codes; 0 where the file has no value.
    pub raster: Raster<u16>,
    /// What the file says of each code that it has names or colours for.
    pub looks: BTreeMap<u16, ClassLook>,
}

/// The first band of `source` as classes.
///
/// # Errors
/// As [`read_raster`]; [`Error::Content`] for values that are not whole numbers from 0 to 65535.
pub fn read_classes<'a>(source: impl Into<Source<'a>>, options: &RasterReadOptions) -> Result<ClassesFile> {
    let source = source.into();
    let file = read_raster(source, options)?;
    let mut values = Vec::with_capacity(file.raster.values.len());
    for v in &file.raster.values {
        if v.is_nan() {
            values.push(0);
        } else if v.fract() == 0.0 && (0.0..=65_535.0).contains(v) {
            values.push(*v as u16);
        } else {
            return Err(Error::content(
                source.label(),
                format!("the value {v}"),
                "classes: whole numbers of 0 to 65535",
            ));
        }
    }
    let opened = open(source, Kind::Raster)?;
    // Only then does the GeoTIFF driver look at the sidecar, where the names are.
    let _ = opened.dataset.geo_transform();
    let looks = match opened.dataset.rasterband(options.band) {
        Ok(band) => looks(&band),
        Err(_) => BTreeMap::new(),
    };
    let raster = Raster::from_values(file.raster.cols, file.raster.rows, values);
    Ok(ClassesFile { grid: file.grid, raster, looks })
}

fn looks(band: &RasterBand<'_>) -> BTreeMap<u16, ClassLook> {
    let mut looks: BTreeMap<u16, ClassLook> = BTreeMap::new();
    for (code, name) in (0..=u16::MAX).zip(names(band)).filter(|(_, name)| !name.is_empty()) {
        looks.entry(code).or_default().name = name;
    }
    if let Some(table) = band.color_table() {
        for code in 0..table.entry_count().min(usize::from(u16::MAX) + 1) {
            // Entries that only fill the table up are black or clear.
            let code16 = code as u16;
            if let Some(e) = table.entry_as_rgb(code).filter(|e| e.a > 0 && (e.r, e.g, e.b) != (0, 0, 0)) {
                looks.entry(code16).or_default().colour = Some([e.r, e.g, e.b].map(|v| v.clamp(0, 255) as u8));
            }
        }
    }
    looks
}

/// The names of the band's categories, by code, which the crate does not wrap.
fn names(band: &RasterBand<'_>) -> Vec<String> {
    let mut out = Vec::new();
    // SAFETY: the handle lives as long as `band`; the list belongs to GDAL, is null or ends with a null, and holds NUL-ended
    // strings that live as long as the band and are copied here.
    unsafe {
        let list = gdal_sys::GDALGetRasterCategoryNames(band.c_rasterband());
        let mut at = 0;
        while !list.is_null() && !(*list.add(at)).is_null() && at <= usize::from(u16::MAX) {
            out.push(std::ffi::CStr::from_ptr(*list.add(at)).to_string_lossy().into_owned());
            at += 1;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gdal_io::{CogOptions, crs, write_cog};
    use crate::grid::GeoTransform;

    #[test]
    fn names_and_colours_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tif");
        let grid = Grid {
            crs: crs("EPSG:32638", "").unwrap(),
            transform: GeoTransform { origin_x: 0.0, origin_y: 2.0, cell_width: 1.0, cell_height: 1.0 },
            cols: 2,
            rows: 2,
        };
        let raster = Raster::from_values(2, 2, vec![0u16, 1, 2, 2]);
        let options = CogOptions {
            nodata: Some(0.0),
            predictor: false,
            colours: vec![[0, 0, 0, 0], [200, 10, 10, 255], [10, 10, 200, 255]],
            categories: vec!["none".into(), "A".into(), "B".into()],
            ..CogOptions::default()
        };
        write_cog(&path, &grid, &[&raster], &options).unwrap();
        let file = read_classes(&path, &RasterReadOptions::default()).unwrap();
        assert_eq!(file.raster, raster);
        assert_eq!(file.looks[&2], ClassLook { name: "B".into(), colour: Some([10, 10, 200]) });
        assert_eq!(file.looks[&0].colour, None);
        let halves = Raster::from_values(2, 2, vec![0.5f32; 4]);
        write_cog(&path, &grid, &[&halves], &CogOptions::default()).unwrap();
        assert!(read_classes(&path, &RasterReadOptions::default()).unwrap_err().to_string().contains("0.5"));
    }
}
