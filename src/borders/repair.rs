//! Sound areas from the geometries that files hold, with an account of everything that was done to them.
//!
//! Nothing is dropped without a word: what has no area at all is refused with the reason, all else is kept, and where an
//! outline had to be changed the area before and after is told. No files, no GDAL.

use super::area_km2;
use super::crossing::self_crossing;
use geo::algorithm::bool_ops::FillRule;
use geo::{
    Area, BooleanOps, BoundingRect, Coord, Geometry, Intersects, LineString, MapCoords, MultiPolygon, Polygon, Rect,
};
use std::fmt;

/// Coordinates beyond the ends of the earth by no more than this are rounding, degrees.
const OVERSHOOT_DEG: f64 = 1e-6;

/// Smaller parts are splinters, square degrees (some 100 m² at most): what earlier overlays left along common borders.
const SPLINTER_DEG2: f64 = 1e-8;

/// What was done to a geometry.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Repair {
    /// What was done, in order: `2 duplicate vertices removed`.
    pub steps: Vec<String>,
    /// Area before and after, km² on the ellipsoid; `None` where no step can change it.
    pub area_km2: Option<(f64, f64)>,
}

/// `2 duplicate vertices removed, the outline crossed itself near 44.5000 E, 41.5000 N; 9331 km² before, 9402 km² after`.
impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.steps.join(", "))?;
        match self.area_km2 {
            Some((before, after)) => write!(f, "; {before:.0} km² before, {after:.0} km² after"),
            None => Ok(()),
        }
    }
}

/// The area of `geometry` (longitude and latitude) as valid polygons, anticlockwise, without overlaps; and what was done,
/// `None` when nothing.
///
/// Collections are opened, points and lines in them passed over (and told). Repeated vertices and spikes go; an outline
/// that crosses itself encloses all that it goes round; overlapping parts become one; what runs over the antimeridian is
/// split there; splinters of less than 100 m² are left out. Cost: a sweep over the vertices.
///
/// # Errors
/// Why there is no area: `it has no geometry`, `it is a line`, ...
pub fn repair(geometry: Option<&Geometry<f64>>) -> Result<(MultiPolygon<f64>, Option<Repair>), String> {
    let geometry = geometry.ok_or("it has no geometry")?;
    let mut found = Found::default();
    found.collect(geometry, 0);
    if found.polygons.is_empty() {
        return Err(match (found.lines, found.points) {
            (0, 0) => "its geometry is empty".to_string(),
            (0, _) => "it is a point, which has no area".to_string(),
            _ => "it is a line, which has no area".to_string(),
        });
    }
    let mut account = Account::default();
    if found.depth > 1 {
        account.say("nested collections opened");
    }
    if found.lines + found.points > 0 {
        account.say(format!("{} points or lines beside its polygons passed over", found.lines + found.points));
    }
    if let Some(c) = corners(&found.polygons).find(|c| !(c.x.abs() <= 540.0 && c.y.abs() <= 90.0 + OVERSHOOT_DEG)) {
        return Err(format!("a corner at {}, {} is no longitude and latitude in degrees", c.x, c.y));
    }
    let before = MultiPolygon::new(found.polygons.clone());
    let mut sound: Vec<Polygon<f64>> = Vec::new();
    for polygon in found.polygons {
        let Some(polygon) = account.tidied(&polygon) else { continue };
        for polygon in account.split_at_antimeridian(polygon) {
            match fault(&polygon).map(|(what, _)| what).or_else(|| crossing_at_corner(&polygon)) {
                None => sound.push(polygon),
                Some(what) => {
                    account.change(what);
                    sound.extend(without_faults(enclosed(&polygon)));
                }
            }
        }
    }
    if do_overlap(&sound) {
        account.change("overlapping parts joined");
        sound = without_faults(geo::unary_union(&MultiPolygon::new(sound))).0;
    }
    let all = sound.len();
    sound.retain(|p| p.unsigned_area() >= SPLINTER_DEG2);
    account.splinters = all - sound.len();
    if sound.is_empty() {
        return Err(
            if all > 0 { "it is a splinter of less than 100 m²" } else { "its outline encloses nothing" }.to_string()
        );
    }
    let area = MultiPolygon::new(sound);
    let steps = account.steps();
    let repair = (!steps.is_empty()).then(|| Repair {
        steps,
        area_km2: account.is_changed.then(|| (area_km2(&clamped(&before)), area_km2(&area))),
    });
    Ok((area, repair))
}

/// The polygons of a geometry, and what else it holds.
#[derive(Default)]
struct Found {
    polygons: Vec<Polygon<f64>>,
    lines: usize,
    points: usize,
    depth: usize,
}

impl Found {
    fn collect(&mut self, geometry: &Geometry<f64>, depth: usize) {
        self.depth = self.depth.max(depth);
        match geometry {
            Geometry::Polygon(p) => self.polygons.push(p.clone()),
            Geometry::MultiPolygon(m) => self.polygons.extend(m.iter().cloned()),
            Geometry::Rect(r) => self.polygons.push(r.to_polygon()),
            Geometry::Triangle(t) => self.polygons.push(t.to_polygon()),
            Geometry::GeometryCollection(all) => all.iter().for_each(|g| self.collect(g, depth + 1)),
            Geometry::Point(_) | Geometry::MultiPoint(_) => self.points += 1,
            Geometry::Line(_) | Geometry::LineString(_) | Geometry::MultiLineString(_) => self.lines += 1,
        }
        self.polygons.retain(|p| !p.exterior().0.is_empty());
    }
}

/// What is done to one geometry, counted.
#[derive(Default)]
struct Account {
    duplicates: usize,
    spikes: usize,
    turned: usize,
    flat: usize,
    split: usize,
    splinters: usize,
    said: Vec<String>,
    is_changed: bool,
}

impl Account {
    fn say(&mut self, what: impl Into<String>) {
        let what = what.into();
        if !self.said.contains(&what) {
            self.said.push(what);
        }
    }

    /// A step that may change the area.
    fn change(&mut self, what: impl Into<String>) {
        self.say(what);
        self.is_changed = true;
    }

    fn steps(&self) -> Vec<String> {
        let counted = |n: usize, one: &str, many: &str| match n {
            0 => None,
            1 => Some(format!("1 {one}")),
            n => Some(format!("{n} {many}")),
        };
        [
            counted(self.duplicates, "duplicate vertex removed", "duplicate vertices removed"),
            counted(self.spikes, "spike removed", "spikes removed"),
            counted(self.flat, "ring without area left out", "rings without area left out"),
            counted(self.turned, "ring turned round", "rings turned round"),
            counted(self.splinters, "splinter of less than 100 m² left out", "splinters of less than 100 m² left out"),
            counted(self.split, "polygon split at the antimeridian", "polygons split at the antimeridian"),
        ]
        .into_iter()
        .flatten()
        .chain(self.said.iter().cloned())
        .collect()
    }

    /// The polygon without repeated vertices, spikes and flat rings, its exterior anticlockwise and holes clockwise; `None`
    /// when its exterior is flat.
    fn tidied(&mut self, polygon: &Polygon<f64>) -> Option<Polygon<f64>> {
        let exterior = self.tidied_ring(polygon.exterior(), true)?;
        let holes = polygon.interiors().iter().filter_map(|hole| self.tidied_ring(hole, false)).collect();
        Some(Polygon::new(exterior, holes))
    }

    fn tidied_ring(&mut self, ring: &LineString<f64>, is_exterior: bool) -> Option<LineString<f64>> {
        let mut path: Vec<Coord<f64>> = Vec::with_capacity(ring.0.len());
        // The last vertex repeats the first: it is no duplicate.
        for &c in &ring.0[..ring.0.len().saturating_sub(1)] {
            let c = Coord { x: c.x + 0.0, y: c.y.clamp(-90.0, 90.0) + 0.0 };
            path.push(c);
            loop {
                let n = path.len();
                if n >= 2 && path[n - 1] == path[n - 2] {
                    path.pop();
                    self.duplicates += 1;
                } else if n >= 3 && path[n - 1] == path[n - 3] {
                    path.truncate(n - 2);
                    self.spikes += 1;
                } else {
                    break;
                }
            }
        }
        // The same across the seam.
        loop {
            let n = path.len();
            if n >= 2 && path[0] == path[n - 1] {
                path.pop();
                self.duplicates += 1;
            } else if n >= 3 && path[0] == path[n - 2] {
                path.truncate(n - 2);
                self.spikes += 1;
            } else if n >= 3 && path[1] == path[n - 1] {
                path.remove(0);
                path.pop();
                self.spikes += 1;
            } else {
                break;
            }
        }
        let o = *path.first()?;
        let twice: f64 = (0..path.len())
            .map(|i| (path[i] - o, path[(i + 1) % path.len()] - o))
            .map(|(a, b)| a.x * b.y - a.y * b.x)
            .sum();
        if path.len() < 3 {
            self.flat += 1;
            return None;
        }
        // A figure of eight may sum up to nothing and yet enclose something: only its direction is unknown.
        if twice != 0.0 && (twice > 0.0) != is_exterior {
            path.reverse();
            self.turned += 1;
        }
        path.push(path[0]);
        Some(LineString::new(path))
    }

    /// The polygon in longitudes -180..180: one that runs over the antimeridian, by a jump or by greater longitudes, in parts.
    fn split_at_antimeridian(&mut self, polygon: Polygon<f64>) -> Vec<Polygon<f64>> {
        let Some(unrolled) = unrolled(&polygon) else {
            self.say("its outline goes round a pole and is kept as it is");
            return vec![polygon];
        };
        let polygon = unrolled.map_coords(|c| {
            let edge = if c.x < 0.0 { -180.0 } else { 180.0 };
            if (c.x - edge).abs() <= OVERSHOOT_DEG { Coord { x: edge, y: c.y } } else { c }
        });
        let Some(bounds) = polygon.bounding_rect() else { return vec![] };
        if bounds.min().x >= -180.0 && bounds.max().x <= 180.0 {
            return vec![polygon];
        }
        self.split += 1;
        self.is_changed = true;
        [-360.0, 0.0, 360.0]
            .into_iter()
            .flat_map(|shift: f64| {
                let band = Rect::new((shift - 180.0, -90.0), (shift + 180.0, 90.0)).to_polygon();
                let part = enclosed(&polygon).intersection(&MultiPolygon::from(band));
                let back = move |c: Coord<f64>| Coord { x: (c.x - shift).clamp(-180.0, 180.0), y: c.y };
                part.map_coords(back).0
            })
            .collect()
    }
}

/// The polygon with the jumps of its rings over the antimeridian undone, so that longitudes run on beyond ±180; `None` when
/// a ring then does not close, because it goes round a pole.
fn unrolled(polygon: &Polygon<f64>) -> Option<Polygon<f64>> {
    let unroll = |ring: &LineString<f64>| -> Option<LineString<f64>> {
        let mut shift = 0.0;
        let mut points: Vec<Coord<f64>> = Vec::with_capacity(ring.0.len());
        for (i, &c) in ring.0.iter().enumerate() {
            if let Some(previous) = i.checked_sub(1).map(|k| ring.0[k]) {
                let dx = c.x - previous.x;
                // An edge along the whole frame of the map, such as Antarctica's, is no jump.
                if dx.abs() > 180.0 && dx.abs() < 359.999 {
                    shift -= 360.0 * dx.signum();
                }
            }
            points.push(Coord { x: c.x + shift, y: c.y });
        }
        (shift == 0.0).then(|| LineString::new(points))
    };
    let exterior = unroll(polygon.exterior())?;
    let bounds = exterior.bounding_rect()?;
    let holes: Option<Vec<LineString<f64>>> = polygon
        .interiors()
        .iter()
        .map(|hole| {
            let hole = unroll(hole)?;
            let west = hole.bounding_rect()?.min().x;
            let shift =
                [0.0, 360.0, -360.0].into_iter().find(|s| (bounds.min().x..=bounds.max().x).contains(&(west + s)));
            Some(hole.map_coords(|c| Coord { x: c.x + shift.unwrap_or(0.0), y: c.y }))
        })
        .collect();
    Some(Polygon::new(exterior, holes?))
}

/// Longitudes and latitudes that a number of hairs' breadths put beyond the earth, brought back; for measuring.
fn clamped(area: &MultiPolygon<f64>) -> MultiPolygon<f64> {
    area.map_coords(|c| Coord { x: c.x, y: c.y.clamp(-90.0, 90.0) })
}

fn corners(polygons: &[Polygon<f64>]) -> impl Iterator<Item = &Coord<f64>> {
    polygons.iter().flat_map(rings).flat_map(|r| &r.0)
}

/// Whether parts of one area cover each other.
fn do_overlap(parts: &[Polygon<f64>]) -> bool {
    let mut boxes: Vec<(Rect<f64>, &Polygon<f64>)> =
        parts.iter().filter_map(|p| Some((p.bounding_rect()?, p))).collect();
    boxes.sort_by(|a, b| a.0.min().x.total_cmp(&b.0.min().x));
    for (i, (a, p)) in boxes.iter().enumerate() {
        for (b, q) in boxes[i + 1..].iter().take_while(|(b, _)| b.min().x < a.max().x) {
            let is_near = b.min().y < a.max().y && a.min().y < b.max().y;
            if is_near && p.intersects(*q) && p.intersection(*q).unsigned_area() > 0.0 {
                return true;
            }
        }
    }
    false
}

/// The exterior and the holes.
pub(super) fn rings(p: &Polygon<f64>) -> impl Iterator<Item = &LineString<f64>> {
    std::iter::once(p.exterior()).chain(p.interiors())
}

/// What is wrong with a polygon: found and expected.
pub(crate) fn fault(polygon: &Polygon<f64>) -> Option<(String, &'static str)> {
    for ring in rings(polygon) {
        let mut corners: Vec<_> = ring.0.iter().map(|c| (c.x, c.y)).collect();
        corners.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        corners.dedup();
        if corners.len() < 3 {
            return Some((
                format!("a ring with {} different corner(s)", corners.len()),
                "at least three, the first repeated at the end",
            ));
        }
    }
    if let Some(at) = self_crossing(polygon) {
        let found = format!("the outline crosses or touches itself near {:.4} E, {:.4} N", at.x, at.y);
        return Some((found, "an outline that meets itself only at its end; move the corners there apart"));
    }
    let outer = Polygon::new(polygon.exterior().clone(), vec![]);
    let stray = polygon.interiors().iter().find(|h| !h.points().all(|p| outer.intersects(&p)));
    if let Some(h) = stray {
        let at = h.0[0];
        let found = format!("a hole outside its polygon, at {:.4} E, {:.4} N", at.x, at.y);
        return Some((found, "holes inside their polygon"));
    }
    (polygon.unsigned_area() == 0.0).then(|| ("it has no area".to_string(), "an outline that encloses something"))
}

/// What is wrong where a ring goes through one corner twice, so that one loop runs against the other and would count
/// against it. Loops that only touch there are sound.
fn crossing_at_corner(polygon: &Polygon<f64>) -> Option<String> {
    let is_twice = |ring: &&LineString<f64>| {
        let mut corners: Vec<(f64, f64)> = ring.0.iter().skip(1).map(|c| (c.x, c.y)).collect();
        corners.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        corners.windows(2).any(|w| w[0] == w[1])
    };
    let differs = |ring: &LineString<f64>| {
        let alone = Polygon::new(ring.clone(), vec![]);
        let area = alone.unsigned_area();
        enclosed(&alone).unsigned_area() > area + 1e-6 * area.max(SPLINTER_DEG2)
    };
    rings(polygon).filter(is_twice).any(differs).then(|| "the outline crosses itself at a corner".to_string())
}

/// The area with faulty polygons made good, as unions and cuts of sound areas may leave them: an outline that touches
/// itself to the last digit. Where another overlay does not help, a decimetre is cut out around the place. What is still
/// faulty then is kept as it is.
pub(super) fn without_faults(area: MultiPolygon<f64>) -> MultiPolygon<f64> {
    let mut sound: Vec<Polygon<f64>> = Vec::new();
    let mut open: Vec<(Polygon<f64>, usize)> = area.into_iter().map(|p| (p, 0)).collect();
    while let Some((polygon, tries)) = open.pop() {
        if fault(&polygon).is_none() || tries > MOST_TRIES {
            sound.push(polygon);
            continue;
        }
        let better = match self_crossing(&polygon).filter(|_| tries > 0) {
            None => enclosed(&polygon),
            Some(at) => {
                let half = CUT_DEG * (1 << (tries / 4).min(6)) as f64;
                let place = Rect::new((at.x - half, at.y - half), (at.x + half, at.y + half)).to_polygon();
                polygon.difference(&place)
            }
        };
        open.extend(better.into_iter().filter(|p| p.unsigned_area() >= SPLINTER_DEG2).map(|p| (p, tries + 1)));
    }
    sound.reverse();
    MultiPolygon::new(sound)
}

/// Half the side of what is cut out where an outline touches itself, degrees: some centimetres.
const CUT_DEG: f64 = 5e-7;
/// How often a polygon is mended.
const MOST_TRIES: usize = 24;

/// A polygon's area as valid polygons: everything that its outline goes round, less everything that its holes go round.
pub(super) fn enclosed(polygon: &Polygon<f64>) -> MultiPolygon<f64> {
    let nothing = MultiPolygon::new(vec![]);
    let inside =
        |ring: &LineString<f64>| Polygon::new(ring.clone(), vec![]).union_with_fill_rule(&nothing, FillRule::NonZero);
    polygon.interiors().iter().fold(inside(polygon.exterior()), |area, hole| area.difference(&inside(hole)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use geo::{GeometryCollection, Point, line_string, polygon};
    use proptest::prelude::*;

    fn square(x: f64, y: f64) -> Polygon<f64> {
        polygon![(x: x, y: y), (x: x + 1.0, y: y), (x: x + 1.0, y: y + 1.0), (x: x, y: y + 1.0)]
    }

    fn done(geometry: impl Into<Geometry<f64>>) -> (f64, String) {
        let (area, repair) = repair(Some(&geometry.into())).unwrap();
        assert!(area.iter().all(|p| fault(p).is_none()));
        (area.unsigned_area(), repair.map_or(String::new(), |r| r.to_string()))
    }

    #[test]
    fn a_sound_area_is_left_as_it_is() {
        assert_eq!(repair(Some(&square(44.0, 41.0).into())).unwrap(), (square(44.0, 41.0).into(), None));
    }

    #[test]
    fn duplicates_spikes_and_direction_cost_no_area() {
        let messy = polygon![
            (x: 44.0, y: 42.0), (x: 45.0, y: 42.0), (x: 45.0, y: 42.0), (x: 45.0, y: 41.0), (x: 47.0, y: 41.0),
            (x: 45.0, y: 41.0), (x: 44.0, y: 41.0),
        ];
        let (area, said) = done(messy);
        assert_eq!((area, said.as_str()), (1.0, "1 duplicate vertex removed, 1 spike removed, 1 ring turned round"));
        let seam = polygon![(x: 50.0, y: 41.0), (x: 44.0, y: 41.0), (x: 45.0, y: 41.0), (x: 45.0, y: 42.0), (x: 44.0, y: 42.0), (x: 44.0, y: 41.0)];
        assert_eq!(done(seam).0, 1.0);
    }

    #[test]
    fn crossings_keep_all_that_the_outline_goes_round() {
        let bow = polygon![(x: 44.0, y: 41.0), (x: 45.0, y: 42.0), (x: 45.0, y: 41.0), (x: 44.0, y: 42.0)];
        let (area, said) = done(bow);
        assert!((area - 0.5).abs() < 1e-6);
        assert!(
            said.contains("44.5000 E, 41.5000 N; ") && said.contains("km² before, ") && said.ends_with("km² after")
        );
        let stray = Polygon::new(square(44.0, 41.0).exterior().clone(), vec![square(48.0, 41.0).exterior().clone()]);
        let (area, said) = done(stray);
        assert!((area - 1.0).abs() < 1e-6 && said.contains("a hole outside"), "{said}");
    }

    #[test]
    fn overlapping_parts_become_one() {
        let two = MultiPolygon::new(vec![square(44.0, 41.0), square(44.5, 41.0)]);
        let (area, said) = done(two);
        assert!((area - 1.5).abs() < 1e-6 && said.contains("overlapping parts joined"), "{said}");
        // Neighbours are no overlap.
        assert_eq!(done(MultiPolygon::new(vec![square(44.0, 41.0), square(45.0, 41.0)])).1, "");
    }

    #[test]
    fn collections_are_opened_and_what_has_no_area_is_told() {
        let inner = GeometryCollection::from(vec![Geometry::from(square(44.0, 41.0)), Point::new(1.0, 1.0).into()]);
        let inner = Geometry::GeometryCollection(inner);
        let (area, said) = done(Geometry::GeometryCollection(GeometryCollection::from(vec![inner])));
        assert_eq!(
            (area, said.as_str()),
            (1.0, "nested collections opened, 1 points or lines beside its polygons passed over")
        );
        let why = |g: Geometry<f64>| repair(Some(&g)).unwrap_err();
        assert_eq!(repair(None).unwrap_err(), "it has no geometry");
        assert!(why(Point::new(1.0, 1.0).into()).contains("point"));
        assert!(why(line_string![(x: 0.0, y: 0.0), (x: 1.0, y: 1.0)].into()).contains("line"));
        assert!(why(Geometry::GeometryCollection(GeometryCollection::default())).contains("empty"));
        assert!(
            why(polygon![(x: 0.0, y: 0.0), (x: 1.0, y: 0.0), (x: 2.0, y: 0.0)].into()).contains("encloses nothing")
        );
        assert!(
            why(polygon![(x: 0.0, y: 0.0), (x: 1.0, y: 0.0), (x: 0.0, y: 0.0)].into()).contains("encloses nothing")
        );
        let sliver = polygon![(x: 0.0, y: 0.0), (x: 1.0, y: 0.0), (x: 0.5, y: 1e-9)];
        assert!(why(sliver.clone().into()).contains("splinter"));
        let with_sliver = MultiPolygon::new(vec![square(44.0, 41.0), sliver]);
        assert_eq!(done(with_sliver), (1.0, "1 splinter of less than 100 m² left out".to_string()));
        assert!(why(square(700.0, 0.0).into()).contains("no longitude"));
        assert!(why(square(f64::NAN, 0.0).into()).contains("no longitude"));
    }

    #[test]
    fn what_runs_over_the_antimeridian_is_split_there() {
        // Chukotka by a jump, Fiji by longitudes beyond 180.
        let jump = polygon![(x: 179.0, y: 60.0), (x: -179.0, y: 60.0), (x: -179.0, y: 61.0), (x: 179.0, y: 61.0)];
        let beyond = polygon![(x: 179.0, y: 60.0), (x: 181.0, y: 60.0), (x: 181.0, y: 61.0), (x: 179.0, y: 61.0)];
        for p in [jump, beyond] {
            let (area, repair) = repair(Some(&p.into())).unwrap();
            assert_eq!(area.0.len(), 2);
            assert!((area.unsigned_area() - 2.0).abs() < 1e-6);
            let bounds = area.bounding_rect().unwrap();
            assert_eq!((bounds.min().x, bounds.max().x), (-180.0, 180.0));
            assert!(repair.unwrap().to_string().contains("split at the antimeridian"));
        }
        // All of it beyond: brought back.
        let (area, _) = repair(Some(&square(190.0, 0.0).into())).unwrap();
        assert!((area.bounding_rect().unwrap().min().x + 170.0).abs() < 1e-6);
        // Antarctica's frame is no jump.
        let frame = polygon![(x: -180.0, y: -90.0), (x: 180.0, y: -90.0), (x: 180.0, y: -80.0), (x: -180.0, y: -80.0)];
        assert_eq!(done(frame), (3600.0, String::new()));
    }

    proptest! {
        /// Outlines on a coarse lattice touch, cross and fold in every way: what comes out is sound, and no smaller than
        /// what even the strictest reading of the outline encloses.
        #[test]
        fn what_is_repaired_is_sound(
            outer in prop::collection::vec((0i32..6, 0i32..6), 3..12),
            hole in prop::collection::vec((0i32..6, 0i32..6), 0..8),
            other in prop::collection::vec((0i32..6, 0i32..6), 0..8),
        ) {
            let ring = |points: &[(i32, i32)]| LineString::from(points.iter().map(|p| (f64::from(p.0) / 3.0, f64::from(p.1) / 7.0)).collect::<Vec<_>>());
            let holes = if hole.len() > 2 { vec![ring(&hole)] } else { vec![] };
            let mut parts = vec![Polygon::new(ring(&outer), holes)];
            if other.len() > 2 {
                parts.push(Polygon::new(ring(&other), vec![]));
            }
            if let Ok((area, _)) = repair(Some(&MultiPolygon::new(parts.clone()).into())) {
                for p in &area {
                    prop_assert!(fault(p).is_none(), "{:?} of {:?}", fault(p), parts);
                }
                // By the even-odd rule; the sum over the edges would count twice what the outline goes round twice.
                let nothing = MultiPolygon::new(vec![]);
                let whole = Polygon::new(ring(&outer), vec![]).union_with_fill_rule(&nothing, FillRule::EvenOdd);
                let bare = parts.len() == 1 && parts[0].interiors().is_empty();
                prop_assert!(!bare || area.unsigned_area() >= whole.unsigned_area() - 1e-6, "{} < {}\n{:?}\n{:?}", area.unsigned_area(), whole.unsigned_area(), area, whole);
                // Done once, nothing is left to do.
                let again = repair(Some(&area.clone().into())).unwrap();
                prop_assert!((again.0.unsigned_area() - area.unsigned_area()).abs() < 1e-6);
            }
        }
    }
}
