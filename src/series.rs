//! Several eras in one GeoPackage, with time fields that QGIS's temporal controller plays.
//!
//! Each era's map is shown until the next one begins, the last for its own years. What stays the same from era to era is
//! one feature.

use crate::borders::{BorderLine, Claim, PolityRegion, Sureness};
use crate::error::Result;
use crate::gdal_io::styles::{self, Class, Labels, Placement, Style, Symbol};
use crate::gdal_io::{self, GeometryKind, GpkgLayer, GpkgOptions, LayerStyle};
use crate::grid::Crs;
use crate::political::RegionsOnGrid;
use crate::vector::Feature;
use crate::year::{Era, Span, Year};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// Name of the file.
pub const FILE_NAME: &str = "regions-timeline.gpkg";

/// The maps of several eras, as features with the years in which they are shown.
#[derive(Debug, Default)]
pub struct Series {
    polities: Vec<(Span, PolityRegion)>,
    borders: Vec<(Span, Border)>,
    /// By id: its last feature.
    open: HashMap<String, usize>,
    /// The borders of the last era.
    open_borders: Vec<usize>,
}

/// A border line with the polities on its sides by id and name; empty where unclaimed.
#[derive(Debug, Clone, PartialEq)]
struct Border {
    sides: [(String, String); 2],
    certainty: crate::borders::Certainty,
    line: geo::LineString<f64>,
}

impl Series {
    /// Adds the map of `era`, which is shown until the year before `next`; without one for the era's own years.
    pub fn add(&mut self, era: Era, next: Option<Year>, regions: &RegionsOnGrid) {
        let end = next.filter(|n| *n > era.start).unwrap_or(era.end);
        let shown = Span { start: era.start, end };
        for p in &regions.polities {
            // The colour is the region's: a claim without one of its own gets that of an earlier era.
            let p = PolityRegion { claim: Claim { colour: None, ..p.claim.clone() }, ..p.clone() };
            let is_same = |(span, q): &(Span, PolityRegion)| {
                span.end == shown.start
                    && q.claim == p.claim
                    && q.outline == p.outline
                    && (q.colour, q.standing.sureness) == (p.colour, p.standing.sureness)
            };
            match self.open.get(&p.claim.id).copied().filter(|&k| is_same(&self.polities[k])) {
                Some(k) => self.polities[k].0.end = end,
                None => {
                    self.open.insert(p.claim.id.clone(), self.polities.len());
                    self.polities.push((shown, p));
                }
            }
        }
        let side = |code: u16| {
            let found = regions.polities.iter().find(|p| p.code == code);
            found.map_or((String::new(), String::new()), |p| (p.claim.id.clone(), p.claim.name.clone()))
        };
        let mut by_start: HashMap<[u64; 2], Vec<usize>> = HashMap::new();
        for &k in self.open_borders.iter().filter(|&&k| self.borders[k].0.end == shown.start) {
            by_start.entry(start_key(&self.borders[k].1.line)).or_default().push(k);
        }
        let mut now = Vec::new();
        for BorderLine { left, right, certainty, line } in &regions.borders {
            let b = Border { sides: [side(*left), side(*right)], certainty: *certainty, line: line.clone() };
            let known = by_start.get(&start_key(line)).into_iter().flatten().copied();
            let k = match known.into_iter().find(|&k| self.borders[k].1 == b) {
                Some(k) => k,
                None => {
                    self.borders.push((shown, b));
                    self.borders.len() - 1
                }
            };
            self.borders[k].0.end = end;
            now.push(k);
        }
        self.open_borders = now;
    }

    /// Writes the GeoPackage into `dir`: layers `polities` and `borders`, with styles that play.
    ///
    /// # Errors
    /// [`crate::Error::Write`].
    pub fn write(&self, dir: &Path, crs: &Crs) -> Result<Vec<PathBuf>> {
        let spans = || self.polities.iter().map(|p| p.0).chain(self.borders.iter().map(|b| b.0));
        let clock = Clock::for_years(spans().map(|s| s.first()).min(), spans().map(|s| s.last()).max());
        let polities: Vec<Feature> = self
            .polities
            .iter()
            .map(|(span, p)| {
                let mut properties = crate::export::polity_properties(p);
                // Codes are those of one era's raster.
                properties.as_object_mut().map(|o| o.shift_remove("code"));
                feature(p.outline.clone(), properties, span, &clock)
            })
            .collect();
        let borders: Vec<Feature> = self
            .borders
            .iter()
            .map(|(span, b)| {
                let of = |side: &str| if side.is_empty() { Value::Null } else { json!(side) };
                let [(left, left_name), (right, right_name)] = &b.sides;
                let properties = json!({
                    "left_id": of(left), "right_id": of(right), "left_name": of(left_name), "right_name": of(right_name),
                    "certainty": styles::certainty_word(b.certainty),
                });
                feature(b.line.clone(), properties, span, &clock)
            })
            .collect();
        let layer = |name, identifier, description, geometry, fields, features| GpkgLayer {
            name,
            identifier,
            description,
            crs,
            geometry,
            fields,
            features,
        };
        let layers = [
            layer(
                "polities",
                "Polities by year",
                "Who held the land, from shown_from to shown_to",
                GeometryKind::MultiPolygon,
                &["id", "name", "shown_from", "shown_to"],
                &polities[..],
            ),
            layer(
                "borders",
                "Borders by year",
                "Lines between polities, from shown_from to shown_to",
                GeometryKind::LineString,
                &["left_name", "right_name", "shown_from", "shown_to"],
                &borders[..],
            ),
        ];
        let style = |layer, style: Style| LayerStyle {
            layer,
            name: "",
            qml: match clock.fields() {
                Some([start, end]) => style.qml_in_time(start, end),
                None => style.qml(),
            },
            sld: style.sld(layer),
        };
        let styles = [style("polities", self.polity_style()), style("borders", styles::borders())];
        let path = dir.join(FILE_NAME);
        gdal_io::write_gpkg(&path, &layers, &GpkgOptions { styles: &styles, ..GpkgOptions::default() })?;
        Ok(vec![path])
    }

    /// Areas by polity, in its colour.
    fn polity_style(&self) -> Style {
        let mut classes: BTreeMap<&str, Class> = BTreeMap::new();
        for (_, p) in &self.polities {
            // The colour of the years without doubt, where there are such.
            let is_sure = p.standing.sureness == Sureness::Certain;
            let [r, g, b] = p.colour;
            let class = Class {
                value: p.claim.id.clone(),
                label: p.claim.name.clone(),
                symbol: Symbol::Fill { colour: [r, g, b, 96], outline: [r / 2, g / 2, b / 2, 200], width_mm: 0.3 },
            };
            if is_sure || !classes.contains_key(p.claim.id.as_str()) {
                classes.insert(&p.claim.id, class);
            }
        }
        Style {
            field: "id".into(),
            classes: classes.into_values().collect(),
            labels: Some(Labels {
                field: "name".into(),
                size_pt: 11.0,
                colour: [50, 40, 40, 255],
                italic: false,
                placement: Placement::InsideArea,
            }),
        }
    }
}

fn start_key(line: &geo::LineString<f64>) -> [u64; 2] {
    line.0.first().map_or([0; 2], |c| [c.x.to_bits(), c.y.to_bits()])
}

fn feature(geometry: impl Into<geo::Geometry<f64>>, properties: Value, shown: &Span, clock: &Clock) -> Feature {
    let mut all = match properties {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    all.insert("shown_from".into(), shown.first().to_historian().into());
    all.insert("shown_to".into(), shown.last().to_historian().into());
    all.insert("shown_from_astronomical".into(), shown.first().0.into());
    all.insert("shown_to_astronomical".into(), shown.last().0.into());
    for (name, date) in clock.dates(shown) {
        all.insert(name.into(), date.map_or(Value::Null, Value::from));
    }
    Feature { geometry: Some(geometry.into()), properties: all }
}

/// How years become dates that GIS programs know: from 0001 to 9999.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Clock {
    /// Years by which the clock runs ahead; `None` where no dates fit.
    ahead: Option<i32>,
}

/// By so much the clock runs ahead where years before Christ are shown: enough for 4000 BCE, and the same in most files, so
/// that they can be played together.
const AHEAD: i32 = 4000;

impl Clock {
    fn for_years(first: Option<Year>, last: Option<Year>) -> Clock {
        let (Some(Year(first)), Some(Year(last))) = (first, last) else { return Clock { ahead: Some(0) } };
        let ahead = if first >= 1 { 0 } else { AHEAD.max((1 - first).div_euclid(1000) * 1000 + 1000) };
        Clock { ahead: (i64::from(last) + i64::from(ahead) <= 9999).then_some(ahead) }
    }

    /// The fields that say when a feature is shown.
    fn fields(&self) -> Option<[&'static str; 2]> {
        match self.ahead {
            None => None,
            Some(0) => Some(["start_date", "end_date"]),
            Some(_) => Some(["play_start", "play_end"]),
        }
    }

    /// Names and values of the date fields: the true dates where there are such, and those of a clock that runs ahead.
    fn dates(&self, shown: &Span) -> Vec<(&'static str, Option<String>)> {
        let text = |year: i32, day: &str| (1..=9999).contains(&year).then(|| format!("{year:04}-{day}"));
        let (first, last) = (shown.first().0, shown.last().0);
        let mut dates = vec![("start_date", text(first, "01-01")), ("end_date", text(last, "12-31"))];
        if let Some(ahead) = self.ahead.filter(|a| *a != 0) {
            dates.push(("play_start", text(first + ahead, "01-01")));
            dates.push(("play_end", text(last + ahead, "12-31")));
        }
        dates
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::borders::Certainty;
    use crate::borders::tests::{claim, region};
    use crate::raster::Raster;
    use geo::polygon;

    fn map(polities: Vec<PolityRegion>) -> RegionsOnGrid {
        let line = geo::LineString::from(vec![(0.0, 0.0), (1.0, 1.0)]);
        let borders = vec![BorderLine { left: 1, right: 0, certainty: Certainty::Treaty, line }];
        let none = Raster::filled(1, 1, 0);
        RegionsOnGrid { regions: none.clone(), contested: none, polities, borders, notes: vec![] }
    }

    fn held(code: u16, id: &str, size: f64) -> PolityRegion {
        let outline = polygon![(x: 0.0, y: 0.0), (x: size, y: 0.0), (x: 0.0, y: size)].into();
        PolityRegion { outline, ..region(code, claim(id, "-100/1300")) }
    }

    #[test]
    fn what_stays_the_same_is_one_feature() {
        let mut s = Series::default();
        let era = |t: &str| t.parse::<Era>().unwrap();
        s.add(era("-50"), Some(Year(1)), &map(vec![held(1, "a", 1.0), held(2, "b", 1.0)]));
        let mut a = held(1, "a", 1.0);
        a.claim.colour = Some(a.colour);
        s.add(era("1"), Some(Year(100)), &map(vec![a, held(2, "b", 2.0)]));
        s.add(era("100/110"), None, &map(vec![held(1, "b", 2.0)]));
        let shown: Vec<String> = s.polities.iter().map(|(span, p)| format!("{} {span}", p.claim.id)).collect();
        assert_eq!(shown, ["a 50 BCE – 99 CE", "b 50–1 BCE", "b 1–110 CE"]);
        // The border is a's first and b's in the end.
        let borders: Vec<String> = s.borders.iter().map(|(span, b)| format!("{} {span}", b.sides[0].0)).collect();
        assert_eq!(borders, ["a 50 BCE – 99 CE", "b 100–110 CE"]);
    }

    #[test]
    fn the_clock_runs_ahead_only_where_it_must() {
        let clock = |a: i32, b: i32| Clock::for_years(Some(Year(a)), Some(Year(b)));
        let shown = Span { start: Year(-79), end: Year(1) };
        assert_eq!(clock(1, 1991).fields(), Some(["start_date", "end_date"]));
        let bce = clock(-79, 1991);
        assert_eq!(bce.fields(), Some(["play_start", "play_end"]));
        assert_eq!(
            bce.dates(&shown),
            [
                ("start_date", None),
                ("end_date", None),
                ("play_start", Some("3921-01-01".into())),
                ("play_end", Some("4000-12-31".into()))
            ]
        );
        assert_eq!(clock(-4500, 10).ahead, Some(5000));
        assert_eq!(clock(-9000, 2000).fields(), None);
        let year = |y: &str| y.parse::<Era>().unwrap();
        assert_eq!(clock(50, 60).dates(&year("50"))[0].1.as_deref(), Some("0050-01-01"));
    }
}
