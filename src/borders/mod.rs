//! Who held what, when: claims, their years, and the regions and border lines of an era.
//!
//! Claims come in ([`adapters`], and [`reader`] for packs), those of an era are chosen ([`select()`]), their borders cut into shared arcs
//! ([`topology`]), smoothed ([`smooth`]) and put together as regions ([`regions`]) and rasters ([`stack()`]). No files, no
//! GDAL: the caller reads, projects and rasterizes.

mod colour;
pub(crate) mod crossing;

pub mod account;
pub mod adapters;
pub mod area;
pub mod change;
pub mod gaps;
pub mod problem;
pub mod reader;
pub mod regions;
pub mod repair;
pub mod select;
pub mod smooth;
pub mod stack;
pub mod tenure;
pub mod timeline;
pub mod topology;
pub mod window;

pub use account::{Account, Fate, FeatureAccount};
pub use adapters::{BorderClaims, BorderFile, FieldMapping, ReadOptions, SourceKind, read_border_files};
pub use area::area_km2;
pub use change::{AreaChange, Transfer, area_changes, holdings, transfers};
pub use colour::palette_colours;
pub use gaps::{ClosedGap, close_gaps};
pub use problem::{Problem, Severity};
pub(crate) use reader::key_from;
pub use regions::{PlaneClaim, PoliticalRegions, RegionOptions, cut_at_coast, political_regions, project_claims};
pub use select::{Selection, covered_spans, describe_spans, merge_claims, select};
pub use smooth::SmoothOptions;
pub use stack::{Stack, Succession, stack};
pub use timeline::{Timeline, TimelineEntry, TimelineRow, timeline};
pub use window::cut_to_window;

use crate::year::{Span, Year};
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

impl ClaimKind {
    /// All kinds.
    pub const ALL: [ClaimKind; 5] =
        [ClaimKind::Polity, ClaimKind::Part, ClaimKind::Composite, ClaimKind::Claim, ClaimKind::People];

    /// The word for it in packs.
    pub fn as_str(self) -> &'static str {
        match self {
            ClaimKind::Polity => "polity",
            ClaimKind::Part => "part",
            ClaimKind::Composite => "composite",
            ClaimKind::Claim => "claim",
            ClaimKind::People => "people",
        }
    }

    /// The kind that packs write as `word`.
    pub fn named(word: &str) -> Option<ClaimKind> {
        ClaimKind::ALL.into_iter().find(|k| k.as_str() == word)
    }
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

impl Certainty {
    /// All degrees, the least certain first.
    pub const ALL: [Certainty; 4] =
        [Certainty::Conjectural, Certainty::Approximate, Certainty::Treaty, Certainty::Surveyed];

    /// The word for it in packs.
    pub fn as_str(self) -> &'static str {
        match self {
            Certainty::Conjectural => "conjectural",
            Certainty::Approximate => "approximate",
            Certainty::Treaty => "treaty",
            Certainty::Surveyed => "surveyed",
        }
    }

    /// The degree that packs write as `word`.
    pub fn named(word: &str) -> Option<Certainty> {
        Certainty::ALL.into_iter().find(|c| c.as_str() == word)
    }
}

/// Years among which one lies; the ends of [`Span::ALWAYS`] are open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct YearRange {
    /// The first that it may be.
    pub earliest: Year,
    /// The last that it may be.
    pub latest: Year,
}

/// How far the years of a claim are in doubt, as its source says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Doubt {
    /// When it began.
    pub first: YearRange,
    /// Its last year.
    pub last: YearRange,
    /// The source calls a date approximate.
    pub is_approximate: bool,
    /// The source calls a date uncertain.
    pub is_uncertain: bool,
}

impl Doubt {
    /// The years that `span` may have.
    pub fn widened(&self, span: Span) -> Span {
        Span { start: span.start.min(self.first.earliest), end: span.end.max(after(self.last.latest)) }
    }

    /// The years that `span` has beyond doubt; maybe none.
    pub fn narrowed(&self, span: Span) -> Span {
        Span { start: span.start.max(self.first.latest), end: span.end.min(after(self.last.earliest)) }
    }

    /// Whether anything is doubted.
    pub fn is_any(&self) -> bool {
        let is_open = |r: &YearRange| r.earliest != r.latest;
        is_open(&self.first) || is_open(&self.last) || self.is_approximate || self.is_uncertain
    }
}

/// How a claim stands in an era.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// The years of the era in which it holds; of a claim that only may hold, those in which it may.
    pub years: Span,
    /// How sure it is that it holds at all.
    pub sureness: Sureness,
}

/// How sure it is that a claim holds in an era.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sureness {
    /// In some year of the era it held beyond doubt.
    Certain,
    /// It is taken to have held, but the doubt about its first or last year reaches over the era.
    Doubtful,
    /// It is taken not to have held, but it may have.
    Possible,
}

impl Sureness {
    /// The word for it in attributes.
    pub fn as_str(self) -> &'static str {
        match self {
            Sureness::Certain => "certain",
            Sureness::Doubtful => "doubtful",
            Sureness::Possible => "possible",
        }
    }
}

/// `begins 1300–1399 CE, ends 1450–1459 CE, dates approximate`.
impl std::fmt::Display for Doubt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let range = |r: &YearRange, word: &str| {
            let span =
                Span { start: r.earliest, end: if r.latest == Span::ALWAYS.end { r.latest } else { r.latest.next() } };
            (r.earliest != r.latest).then(|| format!("{word} {span}"))
        };
        let said = |is: bool, word: &str| is.then(|| word.to_string());
        let parts = [
            range(&self.first, "begins"),
            range(&self.last, "ends"),
            said(self.is_approximate, "dates approximate"),
            said(self.is_uncertain, "dates uncertain"),
        ];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
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
    /// How far its first and last year are in doubt; `None` when nothing says so.
    pub doubt: Option<Doubt>,
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
    /// Stretches of its outline that are known better or worse than the rest.
    pub known_lines: Vec<KnownLine>,
    /// Its area, degrees.
    pub area: MultiPolygon<f64>,
}

impl Claim {
    /// The years in which it may have held.
    pub fn possible_years(&self) -> Span {
        self.doubt.map_or(self.span, |d| d.widened(self.span))
    }

    /// The years in which it held beyond doubt; maybe none.
    pub fn certain_years(&self) -> Span {
        self.doubt.map_or(self.span, |d| d.narrowed(self.span))
    }

    /// How it stands in `era`; `None` when it did not hold.
    pub fn standing(&self, era: &Span) -> Option<Standing> {
        let common = |s: Span| Span { start: s.start.max(era.start), end: s.end.min(era.end) };
        let (years, possible) = (common(self.span), common(self.possible_years()));
        if years.is_empty() {
            return (!possible.is_empty()).then_some(Standing { years: possible, sureness: Sureness::Possible });
        }
        let is_certain = self.certain_years().overlaps(era);
        Some(Standing { years, sureness: if is_certain { Sureness::Certain } else { Sureness::Doubtful } })
    }
}

/// The year after `last`, where that is not the mark of an open end.
fn after(last: Year) -> Year {
    if last == Span::ALWAYS.end { last } else { last.next() }
}

/// A stretch of an outline with a certainty of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownLine {
    /// Its course, corner by corner as in the outline, degrees.
    pub line: LineString<f64>,
    /// How well it is known.
    pub certainty: Certainty,
}

/// A polity as it stands in one era on the working grid.
#[derive(Debug, Clone, PartialEq)]
pub struct PolityRegion {
    /// Its value in `regions.tif`, from 1.
    pub code: u16,
    /// The claim it comes from.
    pub claim: Claim,
    /// How it stands in the era.
    pub standing: Standing,
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
    /// The lesser certainty of the two sides, or that of the line itself where it is known.
    pub certainty: Certainty,
    /// Its course.
    pub line: LineString<f64>,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A claim without an area.
    pub(crate) fn claim(id: &str, span: &str) -> Claim {
        Claim {
            id: id.into(),
            name: id.to_uppercase(),
            name_ru: String::new(),
            name_local: String::new(),
            local_lang: String::new(),
            span: span.parse().unwrap(),
            doubt: None,
            kind: ClaimKind::Polity,
            parent: None,
            certainty: Certainty::Approximate,
            sources: vec![],
            colour: None,
            note: String::new(),
            known_lines: vec![],
            area: MultiPolygon::new(vec![]),
        }
    }

    /// A region without an outline.
    pub(crate) fn region(code: u16, claim: Claim) -> PolityRegion {
        let standing = claim.standing(&Span::ALWAYS).unwrap();
        PolityRegion { code, claim, standing, outline: MultiPolygon::new(vec![]), area_km2: 0.0, colour: [0; 3] }
    }

    /// The claim with doubt about its years: first and last of its beginning, first and last of its end.
    pub(crate) fn doubted(claim: Claim, begins: [i32; 2], ends: [i32; 2]) -> Claim {
        let range = |[a, b]: [i32; 2]| YearRange { earliest: Year(a), latest: Year(b) };
        let doubt = Doubt { first: range(begins), last: range(ends), is_approximate: false, is_uncertain: false };
        Claim { doubt: Some(doubt), ..claim }
    }

    #[test]
    fn a_claim_is_certain_doubtful_possible_or_not_there() {
        let c = doubted(claim("a", "1200/1250"), [1195, 1204], [1240, 1252]);
        let stands = |era: &str| c.standing(&era.parse().unwrap()).map(|s| s.sureness);
        for (era, sureness) in [
            ("1194", None),
            ("1195", Some(Sureness::Possible)),
            ("1199", Some(Sureness::Possible)),
            ("1200", Some(Sureness::Doubtful)),
            ("1203", Some(Sureness::Doubtful)),
            ("1204", Some(Sureness::Certain)),
            ("1240", Some(Sureness::Certain)),
            ("1241", Some(Sureness::Doubtful)),
            ("1251", Some(Sureness::Possible)),
            ("1253", None),
            ("1190/1204", Some(Sureness::Certain)),
            ("1190/1203", Some(Sureness::Doubtful)),
        ] {
            assert_eq!(stands(era), sureness, "{era}");
        }
        assert_eq!(c.standing(&"1190/1210".parse().unwrap()).unwrap().years, "1200/1210".parse().unwrap());
        assert_eq!(c.standing(&"1190/1198".parse().unwrap()).unwrap().years, "1195/1198".parse().unwrap());
        let open = Claim { span: Span { start: Year(1200), end: Span::ALWAYS.end }, ..claim("a", "1200") };
        assert_eq!(open.standing(&"1999".parse().unwrap()).unwrap().sureness, Sureness::Certain);
    }

    #[test]
    fn words_name_kinds_and_certainties() {
        assert!(ClaimKind::ALL.iter().all(|k| ClaimKind::named(k.as_str()) == Some(*k)));
        assert!(Certainty::ALL.iter().all(|c| Certainty::named(c.as_str()) == Some(*c)));
        assert!(Certainty::ALL.is_sorted());
    }
}
