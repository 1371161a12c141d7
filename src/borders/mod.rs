//! Who held what, when: claims, their years, and the regions and border lines of an era.

mod crossing;
pub mod smooth;
pub mod topology;

use crate::year::Span;
use geo::{LineString, MultiPolygon};

/// What a claim is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClaimKind {
    /// A state or ruling house.
    Polity,
    /// A part of another polity, drawn inside it.
    Part,
    /// A union of others, not drawn where its members are.
    Composite,
    /// Land claimed without being held; overlaps are contested.
    Claim,
    /// A people where no state is known.
    People,
}

/// How well a border is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Certainty {
    /// Guessed from general statements.
    Conjectural,
    /// Known to some tens of kilometres.
    Approximate,
    /// Described in a treaty.
    Treaty,
    /// Surveyed on the ground.
    Surveyed,
}

/// A polity's hold on an area over a span of years, longitude and latitude (WGS 84).
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// Stable key.
    pub id: String,
    /// English name.
    pub name: String,
    /// Russian name; empty when unknown.
    pub name_ru: String,
    /// Name in the polity's own language; empty when unknown.
    pub name_local: String,
    /// BCP 47 tag of `name_local`; empty when unknown.
    pub local_lang: String,
    /// When it holds.
    pub span: Span,
    /// What it is.
    pub kind: ClaimKind,
    /// The polity above it, by id.
    pub parent: Option<String>,
    /// How well its outline is known.
    pub certainty: Certainty,
    /// Keys of the sources it rests on.
    pub sources: Vec<String>,
    /// Preferred colour, sRGB.
    pub colour: Option<[u8; 3]>,
    /// Remarks; empty when none.
    pub note: String,
    /// Its area, degrees.
    pub area: MultiPolygon<f64>,
}

/// A polity as it stands in one era on the working grid.
#[derive(Debug, Clone, PartialEq)]
pub struct PolityRegion {
    /// Its value in `regions.tif`, from 1.
    pub code: u16,
    /// The claim it comes from.
    pub claim: Claim,
    /// Smoothed outline in the working CRS, cut at the coast.
    pub outline: MultiPolygon<f64>,
    /// Area of the outline on the WGS 84 ellipsoid, square kilometres, contested land included.
    pub area_km2: f64,
    /// Colour on the map, sRGB.
    pub colour: [u8; 3],
}

/// A border line between two regions (or between a region and unclaimed land), smoothed, in the working CRS.
#[derive(Debug, Clone, PartialEq)]
pub struct BorderLine {
    /// Code of the polity on the left; 0 when unclaimed.
    pub left: u16,
    /// Code of the polity on the right; 0 when unclaimed.
    pub right: u16,
    /// The lesser certainty of the two sides.
    pub certainty: Certainty,
    /// Its course.
    pub line: LineString<f64>,
}
