//! Rasters in: one band as metres, north up, with NaN wherever nothing is known.

use super::crs::from_srs;
use super::log;
use super::source::{Kind, Opened, Source, open};
use crate::error::{Error, Result};
use crate::grid::{Crs, GeoTransform, Grid, Window};
use crate::raster::Raster;
use crate::resources;
use gdal::Metadata;
use gdal::raster::RasterBand;

/// How to read a raster.
#[derive(Debug, Clone)]
pub struct RasterReadOptions<'a> {
    /// The CRS, where the user states it; it overrides the file's own.
    pub crs: Option<&'a Crs>,
    /// The flag that states it, for the message when it is missing.
    pub crs_flag: &'static str,
    /// Band, from 1.
    pub band: usize,
    /// The most bytes to spend on values; by default half the memory that the system has available.
    pub max_bytes: Option<u64>,
}

impl Default for RasterReadOptions<'_> {
    fn default() -> Self {
        RasterReadOptions { crs: None, crs_flag: "--dem-crs", band: 1, max_bytes: None }
    }
}

/// What a value of the file stands for. The grid is right for both: GDAL puts the half cell between them into the
/// geotransform, so that a point value belongs to the centre of its cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registration {
    /// The mean, or some value, of its cell (`AREA_OR_POINT=Area`, also where nothing is said).
    Area,
    /// The value at the cell's centre (`AREA_OR_POINT=Point`).
    Point,
}

/// A raster's frame, without its values.
#[derive(Debug, Clone, PartialEq)]
pub struct RasterInfo {
    /// Frame of the whole file, north up.
    pub grid: Grid,
    /// What a value stands for.
    pub registration: Registration,
    /// Unit of the values as the file says; empty when it does not.
    pub unit: String,
    /// Value in the file of cells without one.
    pub nodata: Option<f64>,
    /// Bands in the file.
    pub bands: usize,
}

/// One band of a raster file.
#[derive(Debug, Clone, PartialEq)]
pub struct RasterFile {
    /// Frame of `raster`: the whole file's, or the window's.
    pub grid: Grid,
    /// Values with scale and offset applied; NaN where the file has none.
    pub raster: Raster<f32>,
    /// What a value stands for.
    pub registration: Registration,
    /// Unit of the values as the file says; empty when it does not.
    pub unit: String,
}

/// The frame of the raster `source`, read from its header.
///
/// # Errors
/// As [`read_raster`], save for damaged values.
pub fn raster_info<'a>(source: impl Into<Source<'a>>, options: &RasterReadOptions) -> Result<RasterInfo> {
    let source = source.into();
    let opened = open(source, Kind::Raster)?;
    Ok(Header::read(&opened, &source.label(), options)?.info)
}

/// The band of `source` that `options` name. Nodata, masked cells, NaN, infinities and magnitudes above 1e38 (the
/// lowest float as an undeclared void) become NaN; scale and offset are applied; south-up files are turned.
///
/// Takes 4 bytes per cell.
///
/// # Errors
/// [`Error::Read`] when the system refuses the file; [`Error::Content`] when it is empty, truncated, no raster, rotated,
/// mirrored or without georeference; [`Error::MissingCrs`]; [`Error::TooLarge`] before anything is allocated.
pub fn read_raster<'a>(source: impl Into<Source<'a>>, options: &RasterReadOptions) -> Result<RasterFile> {
    read(source.into(), None, options)
}

/// The part of [`read_raster`] in `window`, counted on the file's north-up grid ([`raster_info`]).
///
/// # Errors
/// As [`read_raster`]; [`Error::Argument`] when the window is empty or reaches outside the file.
pub fn read_raster_window<'a>(
    source: impl Into<Source<'a>>,
    window: Window,
    options: &RasterReadOptions,
) -> Result<RasterFile> {
    read(source.into(), Some(window), options)
}

/// The frame as ours, and what is needed to read values in the file's own order.
struct Header {
    info: RasterInfo,
    south_up: bool,
}

impl Header {
    fn read(opened: &Opened, label: &str, options: &RasterReadOptions) -> Result<Header> {
        let dataset = &opened.dataset;
        let (cols, rows) = dataset.raster_size();
        let bands = dataset.raster_count();
        let content = |found: String, expected: &str| Error::content(label, found, expected);
        if bands == 0 || cols == 0 || rows == 0 {
            return Err(content(format!("{bands} bands of {cols} x {rows} cells"), "one band with cells at least"));
        }
        if options.band == 0 || options.band > bands {
            return Err(content(format!("{bands} band(s)"), &format!("a band {}", options.band)));
        }
        let band = dataset.rasterband(options.band).map_err(|e| content(log::cause(&e), Kind::Raster.expected()))?;
        if band.band_type().name().starts_with('C') {
            return Err(content(format!("values of type {}", band.band_type().name()), "real numbers"));
        }
        let transform = dataset.geo_transform().map_err(|_| {
            let found = match has_gcps(dataset) {
                true => "control points in place of a geotransform",
                false => "no geotransform",
            };
            content(found.into(), "a complete raster with a geotransform; fetch it again if it was cut short, else warp it with gdalwarp or add a world file")
        })?;
        let [x, width, row_x, y, col_y, height] = transform;
        if !transform.iter().all(|v| v.is_finite()) || width == 0.0 || height == 0.0 {
            return Err(content(format!("geotransform {transform:?}"), "six finite numbers with a cell size"));
        }
        if row_x.abs() > 1e-9 * width.abs() || col_y.abs() > 1e-9 * height.abs() {
            return Err(content("a rotated geotransform".into(), "rows that run west to east; warp it with gdalwarp"));
        }
        if width < 0.0 {
            return Err(content(
                "columns that run east to west".into(),
                "columns that run west to east; warp it with gdalwarp",
            ));
        }
        let crs = match options.crs {
            Some(crs) => crs.clone(),
            None => match dataset.spatial_ref() {
                Ok(srs) => from_srs(&srs, None).map_err(|found| content(found, "a coordinate reference system"))?,
                Err(_) => return Err(Error::MissingCrs { path: label.into(), flag: options.crs_flag }),
            },
        };
        let point = dataset.metadata_item("AREA_OR_POINT", "").is_some_and(|v| v.eq_ignore_ascii_case("point"));
        let south_up = height > 0.0;
        Ok(Header {
            info: RasterInfo {
                grid: Grid {
                    crs,
                    transform: GeoTransform {
                        origin_x: x,
                        origin_y: if south_up { y + rows as f64 * height } else { y },
                        cell_width: width,
                        cell_height: height.abs(),
                    },
                    cols,
                    rows,
                },
                registration: if point { Registration::Point } else { Registration::Area },
                unit: band.unit(),
                nodata: band.no_data_value(),
                bands,
            },
            south_up,
        })
    }
}

/// Whether the dataset is placed by control points, which the crate shows only through a copy of them.
fn has_gcps(dataset: &gdal::Dataset) -> bool {
    // SAFETY: the handle lives as long as `dataset`; the call only counts.
    unsafe { gdal_sys::GDALGetGCPCount(dataset.c_dataset()) > 0 }
}

fn read(source: Source<'_>, window: Option<Window>, options: &RasterReadOptions) -> Result<RasterFile> {
    let label = source.label();
    let opened = open(source, Kind::Raster)?;
    let Header { info, south_up } = Header::read(&opened, &label, options)?;
    let whole = &info.grid;
    let window = window.unwrap_or(whole.window());
    let inside = |first: i64, count: usize, all: usize| {
        count > 0 && usize::try_from(first).is_ok_and(|f| f.checked_add(count).is_some_and(|end| end <= all))
    };
    if !inside(window.col, window.cols, whole.cols) || !inside(window.row, window.rows, whole.rows) {
        return Err(Error::argument(
            "window",
            format!(
                "columns {} to {}, rows {} to {}",
                window.col,
                window.col.saturating_add_unsigned(window.cols as u64),
                window.row,
                window.row.saturating_add_unsigned(window.rows as u64)
            ),
            format!("it must lie within {label}, {} x {} cells", whole.cols, whole.rows),
        ));
    }
    refuse_too_large(window, options)?;

    let band = opened.dataset.rasterband(options.band).map_err(|e| Error::read(&label, log::cause(&e)))?;
    let first_row = if south_up { whole.rows - window.row as usize - window.rows } else { window.row as usize };
    let place = ((window.col as isize, first_row as isize), (window.cols, window.rows));
    let mut values = vec![0f32; window.cols * window.rows];
    let broken = |found: String| Error::content(&label, found, Kind::Raster.expected());
    log::start();
    band.read_into_slice(place.0, place.1, place.1, &mut values, None)
        .map_err(|e| broken(format!("its values cannot be read, GDAL says \"{}\"", log::cause(&e))))?;
    if let Some(said) = log::failure() {
        return Err(broken(format!("its values cannot be read, GDAL says \"{said}\"")));
    }
    blank_masked(&band, place, &mut values).map_err(broken)?;
    let nodata = info.nodata.map(|v| v as f32);
    let scaling = (band.scale().unwrap_or(1.0), band.offset().unwrap_or(0.0));
    for v in &mut values {
        if Some(*v) == nodata || v.is_nan() || v.abs() > 1e38 {
            *v = f32::NAN;
        } else if scaling != (1.0, 0.0) {
            *v = (f64::from(*v) * scaling.0 + scaling.1) as f32;
        }
    }
    if south_up {
        let cols = window.cols;
        for row in 0..window.rows / 2 {
            let (upper, lower) = values.split_at_mut((window.rows - 1 - row) * cols);
            upper[row * cols..(row + 1) * cols].swap_with_slice(&mut lower[..cols]);
        }
    }
    Ok(RasterFile {
        grid: whole.crop(window),
        raster: Raster::from_values(window.cols, window.rows, values),
        registration: info.registration,
        unit: info.unit,
    })
}

/// Half of what is available may be spent: the values are not the only thing that the caller needs.
fn refuse_too_large(window: Window, options: &RasterReadOptions) -> Result<()> {
    let need = (window.cols as u64).saturating_mul(window.rows as u64).saturating_mul(4);
    let have = options.max_bytes.or_else(|| resources::memory_available().map(|b| b / 2));
    match have {
        Some(have) if need > have => Err(Error::TooLarge {
            cols: window.cols as u64,
            rows: window.rows as u64,
            need: resources::human_bytes(need),
            of_what: "memory",
            have: resources::human_bytes(have),
        }),
        _ => Ok(()),
    }
}

/// NaN where the file's own mask (a mask band or alpha, not nodata) says that there is no value.
fn blank_masked(
    band: &RasterBand<'_>,
    place: ((isize, isize), (usize, usize)),
    values: &mut [f32],
) -> std::result::Result<(), String> {
    let flags = band.mask_flags().map_err(|e| log::cause(&e))?;
    if flags.is_all_valid() || flags.is_nodata() {
        return Ok(());
    }
    let mask = band.open_mask_band().map_err(|e| log::cause(&e))?;
    let cols = place.1.0;
    let mut line = vec![0u8; cols];
    for (row, values) in values.chunks_mut(cols).enumerate() {
        mask.read_into_slice((place.0.0, place.0.1 + row as isize), (cols, 1), (cols, 1), &mut line, None)
            .map_err(|e| log::cause(&e))?;
        for (v, m) in values.iter_mut().zip(&line) {
            if *m == 0 {
                *v = f32::NAN;
            }
        }
    }
    Ok(())
}
