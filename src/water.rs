//! Seas, lakes, reservoirs and rivers: what they are called, how high they stand, where they lie. Water is a mask, never
//! "elevation below zero": the Caspian shore is land at -28 m.

use geo::{LineString, MultiPolygon};

/// Code of a cell in the water mask (`water.tif`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum WaterKind {
    /// Dry land.
    Land = 0,
    /// Sea, the Caspian included.
    Sea = 1,
    /// Lake or reservoir.
    Lake = 2,
    /// A cell crossed by a river's line.
    River = 3,
}

impl WaterKind {
    /// All codes, in order of their value.
    pub const ALL: [WaterKind; 4] = [WaterKind::Land, WaterKind::Sea, WaterKind::Lake, WaterKind::River];

    /// Category name in `water.tif`.
    pub fn name(self) -> &'static str {
        match self {
            WaterKind::Land => "land",
            WaterKind::Sea => "sea",
            WaterKind::Lake => "lake",
            WaterKind::River => "river",
        }
    }
}

/// A sea, lake or reservoir.
#[derive(Debug, Clone, PartialEq)]
pub struct WaterBody {
    /// English name; empty when it has none.
    pub name: String,
    /// Russian name; empty when unknown.
    pub name_ru: String,
    /// [`WaterKind::Sea`] or [`WaterKind::Lake`].
    pub kind: WaterKind,
    /// Height of its surface, metres above the vertical datum.
    pub level_m: f64,
    /// The year from which it exists (reservoirs), historian's year; `None` when it always did.
    pub since_year: Option<i32>,
    /// Its area, in the CRS of the holder.
    pub area: MultiPolygon<f64>,
}

/// A river, directed from source to mouth.
#[derive(Debug, Clone, PartialEq)]
pub struct River {
    /// English name; empty when it has none.
    pub name: String,
    /// Russian name; empty when unknown.
    pub name_ru: String,
    /// 1 (greatest) to 5.
    pub rank: u8,
    /// Name of the sea, lake or river that takes it; empty when unknown.
    pub mouth: String,
    /// Its line, source first, in the CRS of the holder.
    pub line: LineString<f64>,
}
