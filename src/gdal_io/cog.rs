//! Rasters out: Cloud Optimized GeoTIFF, with what GeoTIFF cannot carry in an `.aux.xml` beside it.
//!
//! Colour table, category names and attribute table go into the sidecar, where GDAL and QGIS look for them. Inside the
//! file a 16-bit colour table would have 65536 entries in every overview, and GDAL would make the second band alpha.

use super::crs::to_srs;
use super::has_compression;
use super::log::{self, ThreadOptions};
use super::source::MemoryFile;
use super::styles::escape;
use super::write::write_beside;
use crate::error::{Error, Result};
use crate::grid::Grid;
use crate::raster::Raster;
use gdal::raster::{Buffer, GdalType, RasterCreationOptions};
use gdal::{Dataset, DriverManager, Metadata};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Cell types that [`write_cog`] writes.
pub trait CogValue: GdalType + Copy + Send + Sync + sealed::Sealed {
    /// TIFF predictor that suits the type: 3 for floats, 2 for integers.
    const PREDICTOR: u8;
    /// The value to write: NaN becomes `nodata`.
    fn filed(self, nodata: Option<f64>) -> Self;
    /// Whether `nodata` is a value of the type.
    fn holds(nodata: f64) -> bool;
}

mod sealed {
    /// Keeps the trait ours.
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for u8 {}
    impl Sealed for u16 {}
}

impl CogValue for f32 {
    const PREDICTOR: u8 = 3;
    fn filed(self, nodata: Option<f64>) -> f32 {
        match nodata {
            Some(nodata) if self.is_nan() => nodata as f32,
            _ => self,
        }
    }
    fn holds(nodata: f64) -> bool {
        nodata.is_nan() || f64::from(nodata as f32) == nodata
    }
}

macro_rules! integer_values {
    ($($t:ty),*) => {$(
        impl CogValue for $t {
            const PREDICTOR: u8 = 2;
            fn filed(self, _: Option<f64>) -> $t {
                self
            }
            fn holds(nodata: f64) -> bool {
                nodata.fract() == 0.0 && nodata >= 0.0 && nodata <= f64::from(<$t>::MAX)
            }
        }
    )*};
}
integer_values!(u8, u16);

/// How tiles are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Read by everything that reads TIFF. Level 1 (fast) to 9 (small).
    Deflate {
        /// 1 to 9.
        level: u8,
    },
    /// Faster to read, where both sides have it; where this GDAL has not, [`Compression::Deflate`] at level 6.
    Zstd {
        /// 1 to 22.
        level: u8,
    },
}

/// How a cell of an overview comes from those below it; nodata is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overviews {
    /// Their mean: measured values.
    Average,
    /// The most frequent: codes.
    Mode,
    /// The upper left: codes where speed matters.
    Nearest,
}

/// How a COG is written.
#[derive(Debug, Clone)]
pub struct CogOptions {
    /// Value of cells without one, the same in all bands. NaN in a float raster is written as this.
    pub nodata: Option<f64>,
    /// Compression of tiles.
    pub compression: Compression,
    /// Whether to store differences (TIFF predictor); off is smaller for codes in large patches.
    pub predictor: bool,
    /// How overviews are made.
    pub overviews: Overviews,
    /// Tile edge in cells: a multiple of 16, 128 or more.
    pub block_size: usize,
    /// Description of each band; missing ones stay empty.
    pub band_names: Vec<String>,
    /// Unit of the values; empty when they have none.
    pub unit: String,
    /// Dataset metadata in the default domain. `AREA_OR_POINT=Area` is always there.
    pub metadata: Vec<(String, String)>,
    /// Colours of the values 0, 1, 2, ... of band 1: red, green, blue, alpha. Goes to the sidecar.
    pub colours: Vec<[u8; 4]>,
    /// Names of the values 0, 1, 2, ... of band 1. Goes to the sidecar.
    pub categories: Vec<String>,
    /// What else is known of each value of band 1. Goes to the sidecar.
    pub attributes: Option<AttributeTable>,
    /// The bands are red, green, blue and opacity.
    pub is_picture: bool,
    /// Threads that compress; the bytes do not depend on it.
    pub threads: usize,
}

impl Default for CogOptions {
    fn default() -> Self {
        CogOptions {
            nodata: None,
            compression: Compression::Deflate { level: 6 },
            predictor: true,
            overviews: Overviews::Average,
            block_size: 512,
            band_names: Vec::new(),
            unit: String::new(),
            metadata: Vec::new(),
            colours: Vec::new(),
            categories: Vec::new(),
            attributes: None,
            is_picture: false,
            threads: rayon::current_num_threads(),
        }
    }
}

/// A raster attribute table, column by column; all columns have one entry per row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AttributeTable {
    /// The columns, in order.
    pub columns: Vec<AttributeColumn>,
}

/// One column of an attribute table.
#[derive(Debug, Clone, PartialEq)]
pub struct AttributeColumn {
    /// Its name.
    pub name: String,
    /// What readers may take it for.
    pub usage: ColumnUse,
    /// Its entries.
    pub values: ColumnValues,
}

/// What a column means to GDAL and QGIS (`GDALRATFieldUsage`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ColumnUse {
    /// Anything else.
    Generic = 0,
    /// Number of cells with the value.
    CellCount = 1,
    /// Name of the class.
    Name = 2,
    /// The cell value.
    Value = 5,
    /// Red, 0 to 255.
    Red = 6,
    /// Green, 0 to 255.
    Green = 7,
    /// Blue, 0 to 255.
    Blue = 8,
    /// Opacity, 0 to 255.
    Alpha = 9,
}

/// Entries of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnValues {
    /// 32-bit integers, as GDAL 3.6 has no longer ones here.
    Integer(Vec<i32>),
    /// Reals.
    Real(Vec<f64>),
    /// Text.
    Text(Vec<String>),
}

impl ColumnValues {
    fn len(&self) -> usize {
        match self {
            ColumnValues::Integer(v) => v.len(),
            ColumnValues::Real(v) => v.len(),
            ColumnValues::Text(v) => v.len(),
        }
    }
}

/// Writes `bands` as a Cloud Optimized GeoTIFF with tiles and overviews, and `path.aux.xml` where `options` have
/// colours, categories or attributes; a sidecar of an earlier file of that name is removed otherwise. Returns the files
/// written.
///
/// The bytes depend on the values and options alone. Takes memory for one copy of the bands and for the finished file.
///
/// # Errors
/// [`Error::GridMismatch`] when a band is not of the grid's size; [`Error::Argument`] for impossible options;
/// [`Error::Write`] when GDAL fails or the disk refuses, nothing then being left at `path`.
pub fn write_cog<T: CogValue>(
    path: &Path,
    grid: &Grid,
    bands: &[&Raster<T>],
    options: &CogOptions,
) -> Result<Vec<PathBuf>> {
    check(grid, bands, options)?;
    let srs = to_srs(&grid.crs)?;
    log::start();
    let fail = |e: gdal::errors::GdalError| Error::write(path, log::cause(&e));
    let threads = options.threads.max(1).to_string();
    // The environment must not reach into the file.
    let _options = ThreadOptions::set(&[
        ("GDAL_NUM_THREADS", &threads),
        ("GDAL_PAM_ENABLED", "NO"),
        ("COMPRESS_OVERVIEW", "DEFLATE"),
        ("GDAL_TIFF_DEFLATE_SUBCODEC", "DEFAULT"),
        ("GDAL_TIFF_INTERNAL_MASK", "YES"),
    ]);

    let memory = DriverManager::get_driver_by_name("MEM").map_err(fail)?;
    let mut dataset = memory.create_with_band_type::<T, _>("", grid.cols, grid.rows, bands.len()).map_err(fail)?;
    dataset.set_geo_transform(&grid.transform.to_gdal()).map_err(fail)?;
    dataset.set_spatial_ref(&srs).map_err(fail)?;
    for (key, value) in &options.metadata {
        dataset.set_metadata_item(key, value, "").map_err(fail)?;
    }
    dataset.set_metadata_item("AREA_OR_POINT", "Area", "").map_err(fail)?;
    for (number, values) in (1..).zip(bands) {
        fill_band(&dataset, number, values, options).map_err(fail)?;
    }

    let name = path.file_name().map_or("out.tif".into(), |n| n.to_string_lossy());
    let file = MemoryFile::named(&name);
    let cog = DriverManager::get_driver_by_name("COG").map_err(fail)?;
    let copy = dataset.create_copy(&cog, &file.path, &creation_options::<T>(options)?).map_err(fail)?;
    copy.close().map_err(fail)?;
    drop(dataset);
    // GDAL before 3.7 reports failures of closing through the handler alone.
    if let Some(said) = log::failure() {
        return Err(Error::write(path, said));
    }
    gdal::vsi::call_on_mem_file_bytes(&file.path, |bytes| write_beside(path, bytes)).map_err(fail)??;
    let mut written = vec![path.to_path_buf()];

    let sidecar = PathBuf::from(format!("{}.aux.xml", path.display()));
    match sidecar_xml(options) {
        Some(xml) => {
            write_beside(&sidecar, xml.as_bytes())?;
            written.push(sidecar);
        }
        None => match std::fs::remove_file(&sidecar) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(Error::write(&sidecar, e)),
            _ => {}
        },
    }
    Ok(written)
}

fn check<T: CogValue>(grid: &Grid, bands: &[&Raster<T>], options: &CogOptions) -> Result<()> {
    if bands.is_empty() || grid.is_empty() {
        return Err(Error::argument(
            "raster",
            format!("{} bands of {} x {} cells", bands.len(), grid.cols, grid.rows),
            "at least one band with cells",
        ));
    }
    for band in bands {
        if (band.cols, band.rows) != (grid.cols, grid.rows) {
            return Err(Error::GridMismatch {
                left: format!("grid of {} x {} cells", grid.cols, grid.rows),
                right: format!("band of {} x {} cells", band.cols, band.rows),
            });
        }
    }
    if options.block_size < 128 || !options.block_size.is_multiple_of(16) {
        return Err(Error::argument("block size", options.block_size, "give a multiple of 16, 128 or more"));
    }
    if let Some(nodata) = options.nodata.filter(|v| !T::holds(*v)) {
        return Err(Error::argument("nodata", nodata, "give a value of the raster's own type"));
    }
    if let Some(table) = &options.attributes
        && table.columns.iter().any(|c| c.values.len() != table.columns[0].values.len())
    {
        return Err(Error::argument("attribute table", "columns of unequal length", "one entry per row"));
    }
    Ok(())
}

fn fill_band<T: CogValue>(
    dataset: &Dataset,
    number: usize,
    values: &Raster<T>,
    options: &CogOptions,
) -> gdal::errors::Result<()> {
    let mut band = dataset.rasterband(number)?;
    // Some rows at a time: converting all at once would take another copy.
    let rows_at_once = ((1 << 20) / values.cols).max(1);
    for (k, rows) in values.values.chunks(rows_at_once * values.cols).enumerate() {
        let size = (values.cols, rows.len() / values.cols);
        let mut buffer = Buffer::new(size, rows.iter().map(|v| v.filed(options.nodata)).collect());
        band.write((0, (k * rows_at_once) as isize), size, &mut buffer)?;
    }
    if options.nodata.is_some() {
        band.set_no_data_value(options.nodata)?;
    }
    if options.is_picture {
        use gdal::raster::ColorInterpretation::{AlphaBand, BlueBand, GreenBand, RedBand};
        if let Some(meaning) = [RedBand, GreenBand, BlueBand, AlphaBand].into_iter().nth(number - 1) {
            band.set_color_interpretation(meaning)?;
        }
    }
    if let Some(name) = options.band_names.get(number - 1) {
        band.set_description(name)?;
    }
    if !options.unit.is_empty() {
        let unit = std::ffi::CString::new(options.unit.as_str())?;
        // SAFETY: the band's handle lives as long as `band`, which borrows the dataset; GDAL copies the text.
        let status = unsafe { gdal_sys::GDALSetRasterUnitType(band.c_rasterband(), unit.as_ptr()) };
        if status != gdal_sys::CPLErr::CE_None {
            return Err(gdal::errors::GdalError::BadArgument(format!("unit '{}'", options.unit)));
        }
    }
    Ok(())
}

fn creation_options<T: CogValue>(options: &CogOptions) -> Result<RasterCreationOptions> {
    let (name, level) = match options.compression {
        Compression::Zstd { level } if has_compression("ZSTD") => ("ZSTD", level),
        Compression::Zstd { .. } => ("DEFLATE", 6),
        Compression::Deflate { level } => ("DEFLATE", level),
    };
    let most = if name == "ZSTD" { 22 } else { 9 };
    if !(1..=most).contains(&level) {
        return Err(Error::argument("compression level", level, format!("give 1 to {most}")));
    }
    let resampling = match options.overviews {
        Overviews::Average => "AVERAGE",
        Overviews::Mode => "MODE",
        Overviews::Nearest => "NEAREST",
    };
    let predictor = match options.predictor {
        true => T::PREDICTOR.to_string(),
        false => "NO".to_string(),
    };
    Ok(RasterCreationOptions::from_iter([
        format!("COMPRESS={name}"),
        format!("LEVEL={level}"),
        format!("PREDICTOR={predictor}"),
        format!("OVERVIEW_COMPRESS={name}"),
        format!("OVERVIEW_PREDICTOR={predictor}"),
        format!("OVERVIEW_RESAMPLING={resampling}"),
        format!("BLOCKSIZE={}", options.block_size),
        format!("NUM_THREADS={}", options.threads.max(1)),
        "OVERVIEWS=IGNORE_EXISTING".to_string(),
        "BIGTIFF=IF_SAFER".to_string(),
        "GEOTIFF_VERSION=1.1".to_string(),
    ]))
}

/// GDAL's auxiliary XML (`PAMDataset`); `None` when there is nothing to say.
fn sidecar_xml(options: &CogOptions) -> Option<String> {
    if options.colours.is_empty() && options.categories.is_empty() && options.attributes.is_none() {
        return None;
    }
    let mut xml = String::from("<PAMDataset>\n  <PAMRasterBand band=\"1\">\n");
    if !options.colours.is_empty() {
        xml.push_str("    <ColorInterp>Palette</ColorInterp>\n    <ColorTable>\n");
        for [r, g, b, a] in &options.colours {
            let _ = writeln!(xml, "      <Entry c1=\"{r}\" c2=\"{g}\" c3=\"{b}\" c4=\"{a}\" />");
        }
        xml.push_str("    </ColorTable>\n");
    }
    if !options.categories.is_empty() {
        xml.push_str("    <CategoryNames>\n");
        for name in &options.categories {
            let _ = writeln!(xml, "      <Category>{}</Category>", escape(name));
        }
        xml.push_str("    </CategoryNames>\n");
    }
    if let Some(table) = &options.attributes {
        xml.push_str("    <GDALRasterAttributeTable tableType=\"thematic\">\n");
        for (index, column) in table.columns.iter().enumerate() {
            let kind = match column.values {
                ColumnValues::Integer(_) => 0,
                ColumnValues::Real(_) => 1,
                ColumnValues::Text(_) => 2,
            };
            let (name, usage) = (escape(&column.name), column.usage as u8);
            let _ = writeln!(
                xml,
                "      <FieldDefn index=\"{index}\"><Name>{name}</Name><Type>{kind}</Type><Usage>{usage}</Usage></FieldDefn>"
            );
        }
        for row in 0..table.columns.first().map_or(0, |c| c.values.len()) {
            let _ = write!(xml, "      <Row index=\"{row}\">");
            for column in &table.columns {
                let _ = match &column.values {
                    ColumnValues::Integer(v) => write!(xml, "<F>{}</F>", v[row]),
                    ColumnValues::Real(v) => write!(xml, "<F>{}</F>", v[row]),
                    ColumnValues::Text(v) => write!(xml, "<F>{}</F>", escape(&v[row])),
                };
            }
            xml.push_str("</Row>\n");
        }
        xml.push_str("    </GDALRasterAttributeTable>\n");
    }
    xml.push_str("  </PAMRasterBand>\n</PAMDataset>\n");
    Some(xml)
}
