//! What people look at: hillshade and the map sheet.

mod canvas;
pub mod change_map;
mod curve;
pub mod figure;
mod furniture;
mod graticule;
pub mod hillshade;
mod labels;
mod lettering;
mod names;
pub mod overview;
mod placing;
mod resample;
mod sheet;
mod symbols;
#[cfg(test)]
mod tests;
pub mod timeline;
mod tint;

/// Colour of the paper around a map.
pub const PAPER: [u8; 3] = tint::PAPER;

/// The colour of land at a height in metres, red, green and blue from 0 to 255: what the map sheet uses.
pub fn land_tint(height_m: f32) -> [f32; 3] {
    tint::land_tint(height_m)
}

pub use sheet::{LabelKind, PlacedLabel, Sheet, SheetOptions, draw_sheet};

use crate::borders::{BorderLine, PolityRegion};
use crate::grid::{Grid, LonLat, Xy};
use crate::pack::{Peak, PhysicalName, Place};
use crate::raster::Raster;
use crate::water::{River, WaterBody};

/// Everything that the map sheet shows; all vector coordinates are in the grid's CRS unless they say lon/lat.
pub struct SheetInput<'a> {
    /// The frame of all rasters here.
    pub grid: &'a Grid,
    /// Metres; sea floor and lake floor under water; NaN where nothing is known.
    pub elevation: &'a Raster<f32>,
    /// Codes of [`crate::water::WaterKind`].
    pub water: &'a Raster<u8>,
    /// Code of the polity by cell, 0 = unclaimed or sea.
    pub regions: &'a Raster<u16>,
    /// Code of the second claimant by cell, 0 = not contested.
    pub contested: &'a Raster<u16>,
    /// The polities on the map.
    pub polities: &'a [PolityRegion],
    /// Borders to draw.
    pub borders: &'a [BorderLine],
    /// Rivers to draw.
    pub rivers: &'a [River],
    /// Seas and lakes (outlines give the coast line).
    pub water_bodies: &'a [WaterBody],
    /// Towns and the like, lon/lat.
    pub places: &'a [Place],
    /// Summits, lon/lat.
    pub peaks: &'a [Peak],
    /// Lettering of seas, ranges, plains, lon/lat.
    pub physical: &'a [PhysicalName],
    /// From lon/lat to the grid's CRS; `None` where it has no image.
    pub project: &'a dyn Fn(LonLat) -> Option<Xy>,
    /// Title, for example "The Caucasus".
    pub title: &'a str,
    /// The part of the region that is shown, for example "43–45° E, 41–42° N"; empty when it is all of it.
    pub part: &'a str,
    /// The era as printed, for example "1200 CE".
    pub era: &'a str,
    /// The era's first year (historian's numbering), for dated names.
    pub year: i32,
    /// Lines of small print: sources, licences, CRS, seed.
    pub imprint: &'a [String],
}
