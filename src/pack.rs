//! Region packs: `region.toml` with GeoJSON layers, read from the binary or from a folder of the user's own.
//! Everything in a pack is in longitude and latitude (WGS 84). Reading reports every problem at once.

use crate::borders::Claim;
use crate::grid::{LonLat, LonLatBox};
use geo::LineString;

/// A region pack, read and checked.
#[derive(Debug, Clone)]
pub struct RegionPack {
    /// What `--region` takes.
    pub name: String,
    /// English title.
    pub title: String,
    /// Russian title; empty when none.
    pub title_ru: String,
    /// The region, degrees.
    pub extent: LonLatBox,
    /// Name of its working CRS, for example `EPSG:32638`.
    pub crs: String,
    /// Default resolution, metres.
    pub resolution_m: f64,
    /// Political claims of all years.
    pub claims: Vec<Claim>,
    /// Towns, fortresses, passes.
    pub places: Vec<Place>,
    /// Surveyed summits.
    pub peaks: Vec<Peak>,
    /// Names of seas, ranges and plains.
    pub physical: Vec<PhysicalName>,
    /// What the claims and places rest on.
    pub sources: Vec<Source>,
}

/// A work that claims rest on.
#[derive(Debug, Clone, PartialEq, serde::Deserialize, serde::Serialize)]
pub struct Source {
    /// Short key that features cite.
    pub id: String,
    /// Full citation.
    pub citation: String,
    /// Licence of what was taken.
    pub licence: String,
    /// Remarks; empty when none.
    #[serde(default)]
    pub note: String,
}

/// A name in one language for a span of years.
#[derive(Debug, Clone, PartialEq)]
pub struct DatedName {
    /// The name.
    pub name: String,
    /// BCP 47 language tag.
    pub lang: String,
    /// First year of use (historian's year); `None` when open.
    pub from_year: Option<i32>,
    /// Last year of use, inclusive; `None` when open.
    pub to_year: Option<i32>,
}

/// A town, fortress, pass, monastery or port.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    /// Usual English historical name.
    pub name: String,
    /// `capital`, `town`, `fortress`, `pass`, `monastery`, `port`.
    pub kind: String,
    /// 1 (greatest) to 4.
    pub rank: u8,
    /// Names by period and language.
    pub names: Vec<DatedName>,
    /// Where.
    pub at: LonLat,
}

/// A summit with its surveyed height.
#[derive(Debug, Clone, PartialEq)]
pub struct Peak {
    /// English name.
    pub name: String,
    /// Russian name; empty when unknown.
    pub name_ru: String,
    /// Surveyed height, metres.
    pub height_m: f64,
    /// 1 (label first) to 4.
    pub rank: u8,
    /// Where.
    pub at: LonLat,
}

/// The name of a sea, range, plain or the like, for lettering.
#[derive(Debug, Clone, PartialEq)]
pub struct PhysicalName {
    /// English name.
    pub name: String,
    /// Russian name; empty when unknown.
    pub name_ru: String,
    /// `sea`, `range`, `plain`, `lake`, `valley`, `plateau`, `peninsula`, `desert`.
    pub kind: String,
    /// 1 (greatest) to 4.
    pub rank: u8,
    /// The text runs along it, west to east; a single point centres it.
    pub line: LineString<f64>,
}
