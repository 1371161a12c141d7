//! Pictures in: any raster as 8-bit red, green, blue, with its place on the ground where it has one.

use super::crs::from_srs;
use super::log;
use super::source::{Kind, Opened, Source, open};
use crate::error::{Error, Result};
use crate::grid::{GeoTransform, Grid};
use crate::resources;
use gdal::Dataset;
use gdal::raster::{ColorInterpretation, GdalDataType, RasterBand};

/// A picture and where it lies.
#[derive(Debug, Clone, PartialEq)]
pub struct PictureFile {
    /// Columns.
    pub cols: usize,
    /// Rows.
    pub rows: usize,
    /// Pixels, row after row, the first row in the north.
    pub rgb: Vec<[u8; 3]>,
    /// 1 where a pixel is transparent or has no value; empty where none is.
    pub blank: Vec<u8>,
    /// Its frame on the ground; `None` where the file has none.
    pub grid: Option<Grid>,
}

/// How colours are kept.
enum Colours {
    Grey(usize),
    Rgb([usize; 3]),
    Cmyk([usize; 4]),
    Palette(usize, Vec<[u8; 4]>),
}

/// Rows that are read at once.
const STRIP: usize = 256;

/// The picture `source`: grey, RGB, CMYK or with a palette, of 8 or 16 bits; what is less than half opaque is blank.
///
/// Takes 3 bytes per pixel, 4 where some are blank.
///
/// # Errors
/// [`Error::Read`] when the system refuses the file; [`Error::Content`] when it is no picture, has values that are no colours,
/// or lies askew; [`Error::TooLarge`] before anything is allocated.
pub fn read_picture<'a>(source: impl Into<Source<'a>>) -> Result<PictureFile> {
    let source = source.into();
    let label = source.label();
    let opened = open(source, Kind::Raster)?;
    let (cols, rows) = opened.dataset.raster_size();
    let content = |found: String, expected: &str| Error::content(&label, found, expected);
    if cols == 0 || rows == 0 || opened.dataset.raster_count() == 0 {
        return Err(content(format!("{} bands of {cols} x {rows} pixels", opened.dataset.raster_count()), "a picture"));
    }
    let need = cols as u64 * rows as u64 * 14;
    resources::require(cols as u64, rows as u64, need, "memory", resources::memory_available())?;
    let broken = |e: gdal::errors::GdalError| {
        content(format!("its pixels cannot be read, GDAL says \"{}\"", log::cause(&e)), Kind::Raster.expected())
    };
    let (grid, is_south_up) = frame(&opened, &label)?;
    let bands: Vec<RasterBand<'_>> = (1..=opened.dataset.raster_count())
        .map(|k| opened.dataset.rasterband(k))
        .collect::<Result2<_>>()
        .map_err(broken)?;
    let colours =
        colours(&bands).map_err(|found| content(found, "8 or 16 bits of grey, red-green-blue, CMYK or a palette"))?;
    let is_wide = match colours {
        Colours::Palette(..) => false,
        _ => bands[0].band_type() == GdalDataType::UInt16,
    };

    let mut rgb = Vec::with_capacity(cols * rows);
    let mut blank: Vec<u8> = Vec::new();
    log::start();
    for start in (0..rows).step_by(STRIP) {
        let height = STRIP.min(rows - start);
        let values = |band: usize| -> Result2<Vec<u8>> { strip(&bands[band], start, cols, height, is_wide) };
        match &colours {
            Colours::Grey(k) => rgb.extend(values(*k).map_err(broken)?.into_iter().map(|v| [v; 3])),
            Colours::Rgb([r, g, b]) => {
                let (r, g, b) = (values(*r).map_err(broken)?, values(*g).map_err(broken)?, values(*b).map_err(broken)?);
                rgb.extend(r.into_iter().zip(g).zip(b).map(|((r, g), b)| [r, g, b]));
            }
            Colours::Cmyk(inks) => {
                let inks = inks.map(&values);
                let [c, m, y, k] = inks.map(|i| i.map_err(broken));
                let (c, m, y, k) = (c?, m?, y?, k?);
                // Ink takes away light; black takes from all three.
                let light = |ink: u8, black: u8| (u32::from(255 - ink) * u32::from(255 - black)).div_ceil(255) as u8;
                rgb.extend((0..k.len()).map(|i| [light(c[i], k[i]), light(m[i], k[i]), light(y[i], k[i])]));
            }
            Colours::Palette(band, table) => {
                let indices = values(*band).map_err(broken)?;
                for (at, index) in indices.iter().enumerate() {
                    let [r, g, b, alpha] = table.get(usize::from(*index)).copied().unwrap_or([0, 0, 0, 255]);
                    rgb.push([r, g, b]);
                    if alpha < 128 {
                        mark(&mut blank, cols * rows, start * cols + at);
                    }
                }
            }
        }
        mask(&bands, start, cols, height, rows, &mut blank).map_err(broken)?;
    }
    if let Some(said) = log::failure() {
        return Err(content(format!("its pixels cannot be read, GDAL says \"{said}\""), Kind::Raster.expected()));
    }
    if is_south_up {
        turn(&mut rgb, cols);
        turn(&mut blank, cols);
    }
    Ok(PictureFile { cols, rows, rgb, blank, grid })
}

type Result2<T> = gdal::errors::Result<T>;

/// The frame, and whether rows run north; `None` where the file says nothing.
fn frame(opened: &Opened, label: &str) -> Result<(Option<Grid>, bool)> {
    let dataset: &Dataset = &opened.dataset;
    let (cols, rows) = dataset.raster_size();
    let Ok(transform) = dataset.geo_transform() else { return Ok((None, false)) };
    let [x, width, row_x, y, col_y, height] = transform;
    // Without a geotransform some drivers give the identity.
    let Ok(srs) = dataset.spatial_ref() else { return Ok((None, false)) };
    let content = |found: String| Error::content(label, found, "rows that run west to east; warp it with gdalwarp");
    if !transform.iter().all(|v| v.is_finite()) || width <= 0.0 || height == 0.0 {
        return Err(content(format!("geotransform {transform:?}")));
    }
    if row_x.abs() > 1e-9 * width.abs() || col_y.abs() > 1e-9 * height.abs() {
        return Err(content("a rotated geotransform".into()));
    }
    let crs = from_srs(&srs, None).map_err(|found| Error::content(label, found, "a coordinate reference system"))?;
    let is_south_up = height > 0.0;
    let transform = GeoTransform {
        origin_x: x,
        origin_y: if is_south_up { y + rows as f64 * height } else { y },
        cell_width: width,
        cell_height: height.abs(),
    };
    Ok((Some(Grid { crs, transform, cols, rows }), is_south_up))
}

/// Which bands hold what.
fn colours(bands: &[RasterBand<'_>]) -> std::result::Result<Colours, String> {
    if let Some(odd) =
        bands.iter().map(RasterBand::band_type).find(|t| *t != GdalDataType::UInt8 && *t != GdalDataType::UInt16)
    {
        return Err(format!("values of type {}", odd.name()));
    }
    let meaning: Vec<ColorInterpretation> = bands.iter().map(RasterBand::color_interpretation).collect();
    let find = |wanted: ColorInterpretation| meaning.iter().position(|m| *m == wanted);
    use ColorInterpretation as C;
    if let Some(table) = bands[0].color_table() {
        let entry = |k: usize| {
            table.entry_as_rgb(k).map_or([0, 0, 0, 255], |e| [e.r, e.g, e.b, e.a].map(|v| v.clamp(0, 255) as u8))
        };
        return Ok(Colours::Palette(0, (0..table.entry_count().min(256)).map(entry).collect()));
    }
    if let (Some(c), Some(m), Some(y), Some(k)) =
        (find(C::CyanBand), find(C::MagentaBand), find(C::YellowBand), find(C::BlackBand))
    {
        return Ok(Colours::Cmyk([c, m, y, k]));
    }
    if let (Some(r), Some(g), Some(b)) = (find(C::RedBand), find(C::GreenBand), find(C::BlueBand)) {
        return Ok(Colours::Rgb([r, g, b]));
    }
    match bands.len() {
        1 | 2 => Ok(Colours::Grey(0)),
        3 | 4 => Ok(Colours::Rgb([0, 1, 2])),
        n => Err(format!("{n} bands that do not say which are red, green and blue")),
    }
}

/// Some rows of a band in 8 bits.
fn strip(band: &RasterBand<'_>, start: usize, cols: usize, height: usize, is_wide: bool) -> Result2<Vec<u8>> {
    let place = ((0, start as isize), (cols, height), (cols, height));
    if is_wide {
        let mut values = vec![0u16; cols * height];
        band.read_into_slice(place.0, place.1, place.2, &mut values, None)?;
        return Ok(values.into_iter().map(|v| ((u32::from(v) + 128) / 257) as u8).collect());
    }
    let mut values = vec![0u8; cols * height];
    band.read_into_slice(place.0, place.1, place.2, &mut values, None)?;
    Ok(values)
}

/// Marks what the bands' masks (opacity, nodata) leave out.
fn mask(
    bands: &[RasterBand<'_>],
    start: usize,
    cols: usize,
    height: usize,
    rows: usize,
    blank: &mut Vec<u8>,
) -> Result2<()> {
    let flags = bands[0].mask_flags()?;
    if flags.is_all_valid() {
        return Ok(());
    }
    let place = ((0, start as isize), (cols, height), (cols, height));
    let mut covered = vec![0u8; cols * height];
    // With nodata a pixel is blank where every band has it.
    let masks = if flags.is_nodata() { bands } else { &bands[..1] };
    let least = if flags.is_alpha() { 128 } else { 1 };
    let mut line = vec![0u8; cols * height];
    for band in masks {
        band.open_mask_band()?.read_into_slice(place.0, place.1, place.2, &mut line, None)?;
        covered.iter_mut().zip(&line).for_each(|(c, m)| *c = (*c).max(*m));
    }
    for (at, _) in covered.iter().enumerate().filter(|(_, c)| **c < least) {
        mark(blank, cols * rows, start * cols + at);
    }
    Ok(())
}

fn mark(blank: &mut Vec<u8>, all: usize, at: usize) {
    if blank.is_empty() {
        *blank = vec![0; all];
    }
    blank[at] = 1;
}

/// Rows in the other order.
fn turn<T: Copy>(values: &mut [T], cols: usize) {
    let rows = values.len() / cols;
    for row in 0..rows / 2 {
        let (upper, lower) = values.split_at_mut((rows - 1 - row) * cols);
        upper[row * cols..(row + 1) * cols].swap_with_slice(&mut lower[..cols]);
    }
}
