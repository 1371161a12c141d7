//! From the claims of an era to regions and border lines in the plane of the working CRS.

use super::colour::choose_colours;
use super::crossing::{Cut, Piece, crossing_along, cut_line, for_each_meeting, middle_of, pieces_of, rings_of};
use super::smooth::{SmoothOptions, smooth_arcs};
use super::stack::Precedence;
use super::topology::{Arc, Topology, key, share_vertices};
use super::{BorderLine, Certainty, Claim, PolityRegion, Standing, Sureness, area_km2};
use crate::error::{Error, Result};
use crate::grid::{Extent, LonLat, Xy};
use crate::year::Era;
use geo::{Area, BooleanOps, BoundingRect, Contains, Coord, LineString, MultiPolygon, Point, Polygon, Rect};
use rayon::prelude::*;
use std::collections::{HashMap, HashSet};

/// Vertices of neighbours closer than this are one, degrees (some 20 m).
const SNAP_DEG: f64 = 2e-4;
/// Longer edges get points in between, degrees, so that they stay straight in longitude and latitude.
const LONG_EDGE_DEG: f64 = 1.0;
/// Splinters smaller than this are dropped where outlines are cut at the coast, square metres.
const SPLINTER_M2: f64 = 1e4;

/// A claim with its area in the plane of the working CRS.
#[derive(Debug, Clone, PartialEq)]
pub struct PlaneClaim<'a> {
    /// The claim.
    pub claim: &'a Claim,
    /// Its area, CRS units; corners that it has in common with others are equal bit for bit.
    pub area: MultiPolygon<f64>,
    /// The claim's [`known_lines`](Claim::known_lines), with corners as in the area.
    pub known_lines: Vec<(LineString<f64>, Certainty)>,
}

/// How regions are drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct RegionOptions {
    /// How borders are smoothed; the spacing in CRS units.
    pub smooth: SmoothOptions,
    /// Vertices of neighbours closer than this are one, CRS units; 0 joins only equal ones.
    pub snap: f64,
    /// The era that is drawn: who is sure, doubtful, earlier and later in it.
    pub era: Era,
}

impl Default for RegionOptions {
    fn default() -> Self {
        RegionOptions { smooth: SmoothOptions::default(), snap: 1.0, era: Era::ALWAYS }
    }
}

/// The regions and border lines of an era, in the plane of the working CRS.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PoliticalRegions {
    /// Regions in order of code. Parts, claims and peoples are among them.
    pub polities: Vec<PolityRegion>,
    /// The lines where the holder (or the part of a holder) changes, in order of codes. Each runs so that the lower code
    /// is on its left, and unclaimed land on its right.
    pub borders: Vec<BorderLine>,
}

/// The areas of `claims` in the plane, in the same order.
///
/// Corners of neighbours closer than some 20 m become one, a corner on a neighbour's edge is entered there, and edges
/// longer than a degree get points in between; then each distinct vertex is projected once.
///
/// # Errors
/// [`Error::Content`] when `project` has no image for a vertex.
pub fn project_claims<'a>(claims: &[&'a Claim], project: &dyn Fn(LonLat) -> Option<Xy>) -> Result<Vec<PlaneClaim<'a>>> {
    let areas: Vec<MultiPolygon<f64>> = claims.iter().map(|c| sound(&c.area)).collect();
    let mut images: HashMap<(u64, u64), Coord<f64>> = HashMap::new();
    let mut image = |c: Coord<f64>, claim: &Claim| -> Result<Coord<f64>> {
        if let Some(&known) = images.get(&key(c)) {
            return Ok(known);
        }
        let found = project(LonLat { lon: c.x, lat: c.y }).filter(|p| p.x.is_finite() && p.y.is_finite());
        let xy = found.ok_or_else(|| {
            Error::content(
                format!("claim '{}'", claim.id),
                format!("its corner at longitude {}, latitude {} has no image in the working CRS", c.x, c.y),
                "areas inside the CRS's area of use; choose another --crs or cut the area",
            )
        })?;
        images.insert(key(c), Coord { x: xy.x, y: xy.y });
        Ok(Coord { x: xy.x, y: xy.y })
    };
    let mut ring = |r: &LineString<f64>, claim: &Claim| -> Result<LineString<f64>> {
        let mut points = Vec::with_capacity(r.0.len());
        for edge in r.lines() {
            for c in divided(edge.start, edge.end) {
                points.push(image(c, claim)?);
            }
        }
        // The end of a ring, which is its start, is left to the polygon to close.
        if let Some(&last) = r.0.last().filter(|_| !r.is_closed()) {
            points.push(image(last, claim)?);
        }
        Ok(LineString::new(points))
    };
    share_vertices(&areas, SNAP_DEG)
        .iter()
        .zip(claims)
        .map(|(area, claim)| {
            let polygons: Result<Vec<Polygon<f64>>> = area
                .iter()
                .map(|p| {
                    let holes: Result<Vec<_>> = p.interiors().iter().map(|r| ring(r, claim)).collect();
                    Ok(Polygon::new(ring(p.exterior(), claim)?, holes?))
                })
                .collect();
            let known_lines: Result<Vec<_>> =
                claim.known_lines.iter().map(|k| Ok((ring(&k.line, claim)?, k.certainty))).collect();
            Ok(PlaneClaim { claim, area: MultiPolygon::new(polygons?), known_lines: known_lines? })
        })
        .collect()
}

/// The points of an edge, its end left out; the same points in reverse for the reverse edge.
fn divided(start: Coord<f64>, end: Coord<f64>) -> Vec<Coord<f64>> {
    let n = ((end.x - start.x).abs().max((end.y - start.y).abs()) / LONG_EDGE_DEG).ceil().clamp(1.0, 360.0) as usize;
    let is_forward = (start.x, start.y) <= (end.x, end.y);
    let (a, b) = if is_forward { (start, end) } else { (end, start) };
    (0..n)
        .map(|k| match (k, is_forward) {
            (0, _) => start,
            (_, true) => a + (b - a) * (k as f64 / n as f64),
            (_, false) => a + (b - a) * ((n - k) as f64 / n as f64),
        })
        .collect()
}

/// The regions and border lines of `claims` (see [`super::select()`]), smoothed, not cut at the coast.
///
/// Codes run from 1 in order of id, whatever the order of `claims`. Colours are the claims' own, or chosen so that
/// neighbours differ. Areas are those of the claims as drawn, sea included, until
/// [`PoliticalRegions::measure_areas`]. Border lines follow who holds the land by [`Precedence`]: no line where both
/// sides have the same holder, save around a part inside its parent.
///
/// # Errors
/// [`Error::Argument`] for more than 65,535 claims, or two of one id.
pub fn political_regions(claims: &[PlaneClaim], options: &RegionOptions) -> Result<PoliticalRegions> {
    let mut sorted: Vec<&PlaneClaim> = claims.iter().collect();
    sorted.sort_by(|a, b| a.claim.id.cmp(&b.claim.id));
    if let Some(twice) = sorted.windows(2).find(|w| w[0].claim.id == w[1].claim.id) {
        return Err(Error::argument("claims", format!("two of polity '{}'", twice[0].claim.id), "select one of them"));
    }
    if sorted.len() > usize::from(u16::MAX) {
        return Err(Error::argument("claims", sorted.len(), "at most 65535 fit a 16-bit raster; choose a smaller era"));
    }
    let areas: Vec<MultiPolygon<f64>> = sorted.iter().map(|c| sound(&c.area)).collect();
    let topology = Topology::build(&areas, options.snap.max(0.0));
    let lines = smooth_arcs(&topology, &options.smooth);
    let mut polities: Vec<PolityRegion> = topology
        .assemble(&lines)
        .into_iter()
        .zip(&sorted)
        .zip(1..)
        .map(|((outline, c), code)| PolityRegion {
            code,
            claim: c.claim.clone(),
            standing: c
                .claim
                .standing(&options.era)
                .unwrap_or(Standing { years: options.era, sureness: Sureness::Possible }),
            outline,
            area_km2: area_km2(&c.claim.area),
            colour: [0; 3],
        })
        .collect();
    let (borders, neighbours) = border_lines(&topology, &lines, &polities);
    let borders = with_known_lines(borders, &sorted);

    let ids: Vec<&str> = sorted.iter().map(|c| c.claim.id.as_str()).collect();
    let wanted: Vec<_> = sorted.iter().map(|c| c.claim.colour).collect();
    for (polity, colour) in polities.iter_mut().zip(choose_colours(&ids, &wanted, &neighbours)) {
        let is_sure = polity.standing.sureness == Sureness::Certain;
        polity.colour = if is_sure { colour } else { colour.map(paler) };
    }
    Ok(PoliticalRegions { polities, borders })
}

/// A channel of a colour that says "in doubt": nearer to white.
fn paler(channel: u8) -> u8 {
    255 - ((255 - u16::from(channel)) * 9 / 20) as u8
}

/// The lines where the holder changes, and which regions (indices) lie beside or over each other.
fn border_lines(
    topology: &Topology,
    lines: &[Vec<Coord<f64>>],
    polities: &[PolityRegion],
) -> (Vec<BorderLine>, Vec<(usize, usize)>) {
    let precedence = Precedence::among(polities);
    let boxes: Vec<Option<Rect<f64>>> = polities.iter().map(|p| p.outline.bounding_rect()).collect();
    let pieces: Vec<Piece> = lines.iter().enumerate().flat_map(|(i, l)| pieces_of(l, i)).collect();
    let mut cuts: Vec<Vec<Cut>> = vec![Vec::new(); lines.len()];
    for_each_meeting(
        &pieces,
        |p, q| p.line != q.line,
        |p, q| {
            for (a, b) in [(p, q), (q, p)] {
                if let Some(along) = crossing_along(a, b) {
                    cuts[a.line].push(Cut { index: a.index, along });
                }
            }
        },
    );

    let of_arc = |((arc, line), cuts): ((&Arc, &Vec<Coord<f64>>), Vec<Cut>)| {
        let mut borders: Vec<BorderLine> = Vec::new();
        let mut neighbours: Vec<(usize, usize)> = Vec::new();
        let mut last: Option<BorderLine> = None;
        for part in cut_line(line, cuts) {
            let middle = middle_of(&part);
            let around: Vec<usize> = (0..polities.len())
                .filter(|&i| arc.users.iter().all(|u| u.area != i))
                .filter(|&i| boxes[i].is_some_and(|b| b.contains(&middle)))
                .filter(|&i| polities[i].outline.contains(&Point::from(middle)))
                .collect();
            let on_side = |is_left: bool| {
                let users = arc.users.iter().filter(|u| u.is_left == is_left).map(|u| u.area);
                users.chain(around.iter().copied()).collect::<Vec<usize>>()
            };
            let sides = [on_side(true), on_side(false)];
            for (k, &i) in sides.iter().flatten().enumerate() {
                neighbours.extend(sides.iter().flatten().take(k).filter(|&&j| j != i).map(|&j| (i.min(j), i.max(j))));
            }
            let holders = sides.map(|s| precedence.holder_or_part(&s));
            let code = |h: Option<usize>| h.map_or(0, |i| polities[i].code);
            let (left, right) = (code(holders[0]), code(holders[1]));
            let is_sure = |i: &usize| polities[*i].standing.sureness == Sureness::Certain;
            let drawn_certainty =
                |i: usize| if is_sure(&i) { polities[i].claim.certainty } else { Certainty::Conjectural };
            let mut certainty = holders.into_iter().flatten().map(drawn_certainty).min();
            let (mut left, mut right) = (left, right);
            // The outline of one that only may have held, on another's land: it is seen, as a line in doubt.
            let possible = arc.users.iter().find(|u| polities[u.area].standing.sureness == Sureness::Possible);
            if let Some(u) = possible.filter(|_| left == right && left != 0) {
                let own = polities[u.area].code;
                (left, right) = if u.is_left { (own, right) } else { (left, own) };
                certainty = Some(Certainty::Conjectural);
            }
            let border = certainty.filter(|_| left != right).map(|certainty| BorderLine {
                left,
                right,
                certainty,
                line: LineString::new(part),
            });
            match (&mut last, border) {
                (Some(l), Some(b)) if (l.left, l.right) == (b.left, b.right) => l.line.0.extend(&b.line.0[1..]),
                (_, b) => borders.extend(std::mem::replace(&mut last, b)),
            }
        }
        borders.extend(last);
        (borders, neighbours)
    };
    let (borders, neighbours): (Vec<_>, Vec<_>) = topology.arcs.par_iter().zip(lines).zip(cuts).map(of_arc).unzip();
    let (mut borders, mut neighbours) = (borders.concat(), neighbours.concat());
    for border in &mut borders {
        if border.left == 0 || (border.right != 0 && border.right < border.left) {
            std::mem::swap(&mut border.left, &mut border.right);
            border.line.0.reverse();
        }
    }
    sort_borders(&mut borders);
    neighbours.sort_unstable();
    neighbours.dedup();
    (borders, neighbours)
}

/// `borders` with the certainty of known lines where they follow one, cut where it begins and ends. Of two claims that know
/// a line the better counts. Borders go through the key points of their arcs, so that they are found by these.
fn with_known_lines(borders: Vec<BorderLine>, claims: &[&PlaneClaim]) -> Vec<BorderLine> {
    let edge = |a: Coord<f64>, b: Coord<f64>| {
        let (a, b) = (key(a), key(b));
        [a.min(b), a.max(b)]
    };
    let mut known: HashMap<[(u64, u64); 2], Certainty> = HashMap::new();
    for (line, certainty) in claims.iter().flat_map(|c| &c.known_lines) {
        for w in line.0.windows(2) {
            let of_edge = known.entry(edge(w[0], w[1])).or_insert(*certainty);
            *of_edge = (*of_edge).max(*certainty);
        }
    }
    if known.is_empty() {
        return borders;
    }
    let key_points: HashSet<(u64, u64)> = claims
        .iter()
        .flat_map(|c| rings_of(&c.area).flat_map(|r| &r.0))
        .map(|&c| key(c))
        .chain(known.keys().flatten().copied())
        .collect();
    let mut cut = Vec::with_capacity(borders.len());
    for border in borders {
        let points = &border.line.0;
        let last = points.len() - 1;
        let stops = (1..=last).filter(|&i| i == last || key_points.contains(&key(points[i])));
        // Stretches of one certainty: first and last point.
        let mut stretches: Vec<(usize, usize, Certainty)> = Vec::new();
        let mut from = 0;
        for to in stops {
            let certainty = known.get(&edge(points[from], points[to])).copied().unwrap_or(border.certainty);
            match stretches.last_mut() {
                Some(before) if before.2 == certainty => before.1 = to,
                _ => stretches.push((from, to, certainty)),
            }
            from = to;
        }
        cut.extend(stretches.into_iter().map(|(from, to, certainty)| BorderLine {
            certainty,
            line: LineString::new(points[from..=to].to_vec()),
            ..border
        }));
    }
    sort_borders(&mut cut);
    cut
}

/// Puts lines in an order that depends on nothing but them.
fn sort_borders(borders: &mut [BorderLine]) {
    borders.sort_by(|a, b| {
        let start = |l: &BorderLine| l.line.0[0];
        (a.left, a.right)
            .cmp(&(b.left, b.right))
            .then(start(a).x.total_cmp(&start(b).x))
            .then(start(a).y.total_cmp(&start(b).y))
            .then(a.line.0.len().cmp(&b.line.0.len()))
    });
}

/// The regions without `sea`, and without what lies outside `frame`; everything in one plane, metres.
///
/// Regions of which nothing is left are dropped; the others keep their codes, so that a smaller frame has the same codes.
/// Coordinates are rounded to about a thousand-millionth of the frame, and splinters below one hectare vanish. For a
/// raster, draw the uncut outlines and mask the sea there: neighbours then still meet exactly.
///
/// Cost: some n log n for all vertices of sea and outlines; a sea of 20,000 vertices takes a fraction of a second.
/// Rings with coordinates that are not finite are left out.
pub fn cut_at_coast(regions: &PoliticalRegions, sea: &MultiPolygon<f64>, frame: &Extent) -> PoliticalRegions {
    let corners = [Coord { x: frame.min_x, y: frame.min_y }, Coord { x: frame.max_x, y: frame.max_y }];
    let frame: MultiPolygon<f64> = sound(&Rect::new(corners[0], corners[1]).to_polygon().into());
    let sea = sound(sea);
    // The box first: the sea may reach far beyond the frame.
    let land = frame.difference(&sea);
    let polities: Vec<PolityRegion> = regions
        .polities
        .par_iter()
        .map(|p| {
            let mut outline = sound(&p.outline).intersection(&land);
            outline.0.retain(|part| part.unsigned_area() >= SPLINTER_M2);
            PolityRegion { outline, ..p.clone() }
        })
        .filter(|p| !p.outline.0.is_empty())
        .collect();
    PoliticalRegions { polities, borders: lines_on_land(&regions.borders, &land) }
}

/// The parts of `borders` inside `land`, directions kept.
fn lines_on_land(borders: &[BorderLine], land: &MultiPolygon<f64>) -> Vec<BorderLine> {
    let is_sound = |b: &&BorderLine| b.line.0.len() >= 2 && b.line.0.iter().all(is_usable);
    let borders: Vec<&BorderLine> = borders.iter().filter(is_sound).collect();
    let mut pieces: Vec<Piece> = borders.iter().enumerate().flat_map(|(i, b)| pieces_of(&b.line.0, i)).collect();
    pieces.extend(rings_of(land).flat_map(|r| pieces_of(&r.0, usize::MAX)));
    let mut cuts: Vec<Vec<Cut>> = vec![Vec::new(); borders.len()];
    for_each_meeting(
        &pieces,
        |p, q| (p.line == usize::MAX) != (q.line == usize::MAX),
        |p, q| {
            let (border, coast) = if q.line == usize::MAX { (p, q) } else { (q, p) };
            if let Some(along) = crossing_along(border, coast) {
                cuts[border.line].push(Cut { index: border.index, along });
            }
        },
    );
    let boxes: Vec<Option<Rect<f64>>> = land.iter().map(|p| p.bounding_rect()).collect();
    let is_on_land = |c: Coord<f64>| {
        land.iter().zip(&boxes).any(|(p, b)| b.is_some_and(|b| b.contains(&c)) && p.contains(&Point::from(c)))
    };
    let mut on_land: Vec<BorderLine> = borders
        .par_iter()
        .zip(cuts)
        .flat_map_iter(|(b, cuts)| {
            let parts = cut_line(&b.line.0, cuts);
            parts
                .into_iter()
                .filter(|part| is_on_land(middle_of(part)))
                .map(|part| BorderLine { line: LineString::new(part), ..(*b).clone() })
                .collect::<Vec<_>>()
        })
        .collect();
    sort_borders(&mut on_land);
    on_land
}

impl PoliticalRegions {
    /// Sets `area_km2` to the ellipsoidal area of each outline as it stands; `unproject` leads back to longitude and
    /// latitude. Rings with a vertex without an image count nothing.
    pub fn measure_areas(&mut self, unproject: &dyn Fn(Xy) -> Option<LonLat>) {
        let ring = |r: &LineString<f64>| -> LineString<f64> {
            let points: Option<Vec<Coord<f64>>> =
                r.0.iter().map(|c| unproject(Xy { x: c.x, y: c.y }).map(|p| Coord { x: p.lon, y: p.lat })).collect();
            LineString::new(points.unwrap_or_default())
        };
        for polity in &mut self.polities {
            let lonlat: MultiPolygon<f64> = polity
                .outline
                .iter()
                .map(|p| Polygon::new(ring(p.exterior()), p.interiors().iter().map(ring).collect()))
                .collect();
            polity.area_km2 = area_km2(&lonlat);
        }
    }
}

/// Whether geometry code can work with a coordinate.
fn is_usable(c: &Coord<f64>) -> bool {
    c.x.abs() < 1e12 && c.y.abs() < 1e12
}

/// The area without rings that no code could work with: coordinates not finite, or fewer than three corners.
fn sound(area: &MultiPolygon<f64>) -> MultiPolygon<f64> {
    let is_sound = |r: &LineString<f64>| r.0.len() >= 4 && r.0.iter().all(is_usable);
    area.iter()
        .filter(|p| is_sound(p.exterior()))
        .map(|p| Polygon::new(p.exterior().clone(), p.interiors().iter().filter(|r| is_sound(r)).cloned().collect()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::borders::ClaimKind;
    use crate::borders::tests::claim;
    use crate::borders::tests::doubted;
    use geo::polygon;

    fn square(x0: f64, y0: f64, x1: f64, y1: f64) -> MultiPolygon<f64> {
        polygon![(x: x0, y: y0), (x: x1, y: y0), (x: x1, y: y1), (x: x0, y: y1)].into()
    }

    fn held(id: &str, area: MultiPolygon<f64>) -> Claim {
        Claim { area, ..claim(id, "1200") }
    }

    /// Degrees times 100 km.
    fn plane(p: LonLat) -> Option<Xy> {
        Some(Xy { x: p.lon * 1e5, y: p.lat * 1e5 })
    }

    fn straight() -> RegionOptions {
        RegionOptions { smooth: SmoothOptions { strength: 0.0, spacing: 1000.0 }, ..RegionOptions::default() }
    }

    fn regions_of(claims: &[Claim], options: &RegionOptions) -> PoliticalRegions {
        let refs: Vec<&Claim> = claims.iter().collect();
        political_regions(&project_claims(&refs, &plane).unwrap(), options).unwrap()
    }

    fn sides(r: &PoliticalRegions) -> Vec<(u16, u16)> {
        r.borders.iter().map(|b| (b.left, b.right)).collect()
    }

    #[test]
    fn codes_follow_ids_and_borders_name_both_sides() {
        let mut east = held("a-east", square(1.0, 0.0, 2.0, 1.0));
        east.certainty = Certainty::Treaty;
        let west = held("b-west", square(0.0, 0.0, 1.0, 1.0));
        let r = regions_of(&[west.clone(), east.clone()], &straight());
        assert_eq!(
            r.polities.iter().map(|p| (p.code, p.claim.id.as_str())).collect::<Vec<_>>(),
            [(1, "a-east"), (2, "b-west")]
        );
        assert_eq!(sides(&r), [(1, 0), (1, 2), (2, 0)]);
        // The common border runs south with the east on its left, and is as uncertain as the west.
        assert_eq!(r.borders[1].line.0, [(1e5, 1e5), (1e5, 0.0)].map(Coord::from));
        assert_eq!(r.borders[1].certainty, Certainty::Approximate);
        assert_eq!(r.borders[0].certainty, Certainty::Treaty);
        assert_ne!(r.polities[0].colour, r.polities[1].colour);
        assert_eq!(regions_of(&[east, west], &straight()), r);
    }

    #[test]
    fn a_part_has_a_border_inside_its_parent_and_a_claim_has_none() {
        let whole = held("whole", square(0.0, 0.0, 4.0, 4.0));
        let part =
            Claim { kind: ClaimKind::Part, parent: Some("whole".into()), ..held("part", square(1.0, 1.0, 2.0, 2.0)) };
        let wish = Claim { kind: ClaimKind::Claim, ..held("wish", square(3.0, 1.0, 5.0, 2.0)) };
        // Codes: part 1, whole 2, wish 3.
        let r = regions_of(&[whole, part, wish], &straight());
        let mut pairs = sides(&r);
        pairs.dedup();
        assert_eq!(pairs, [(1, 2), (2, 0), (2, 3), (3, 0)]);
        // The claim's outline is cut where it enters the holder's land, and not drawn inside.
        let drawn: f64 = r.borders.iter().filter(|b| b.left == 3 || b.right == 3).map(|b| length(&b.line)).sum();
        assert!((drawn - 4e5).abs() < 1.0, "{drawn}");
    }

    #[test]
    fn what_may_have_held_is_pale_and_its_border_conjectural() {
        let mut sure = held("sure", square(0.0, 0.0, 2.0, 1.0));
        sure.certainty = Certainty::Treaty;
        sure.colour = Some([100, 0, 200]);
        // Over half of the sure one's land and as much beyond.
        let maybe = Claim { colour: Some([100, 0, 200]), ..held("maybe", square(1.0, 0.0, 3.0, 1.0)) };
        let maybe = doubted(Claim { span: "1202/1210".parse().unwrap(), ..maybe }, [1199, 1203], [1210, 1210]);
        let options = RegionOptions { era: "1200".parse().unwrap(), ..straight() };
        let r = regions_of(&[sure, maybe], &options);
        assert_eq!(
            r.polities.iter().map(|p| p.standing.sureness).collect::<Vec<_>>(),
            [Sureness::Possible, Sureness::Certain]
        );
        assert_eq!((r.polities[1].colour, r.polities[0].colour), ([100, 0, 200], [186, 141, 231]));
        let of = |l: u16, right: u16| -> f64 {
            let is_it = |b: &&BorderLine| (b.left, b.right) == (l, right) && b.certainty == Certainty::Conjectural;
            r.borders.iter().filter(is_it).map(|b| length(&b.line)).sum()
        };
        // Around its own land, against the sure one, and dashed across the sure one's land.
        assert!((of(1, 0) - 3e5).abs() < 1.0, "{:?}", r.borders);
        assert!((of(1, 2) - 2e5).abs() < 1.0, "{:?}", r.borders);
    }

    #[test]
    fn a_known_line_has_its_own_certainty_and_only_it() {
        use crate::borders::KnownLine;
        // Two squares with a border of three pieces, of which the middle one is known.
        let west: MultiPolygon<f64> = polygon![
            (x: 0.0, y: 0.0), (x: 1.0, y: 0.0), (x: 1.0, y: 0.3), (x: 1.1, y: 0.6), (x: 1.0, y: 1.0), (x: 0.0, y: 1.0),
        ]
        .into();
        let east: MultiPolygon<f64> = polygon![
            (x: 1.0, y: 0.0), (x: 2.0, y: 0.0), (x: 2.0, y: 1.0), (x: 1.0, y: 1.0), (x: 1.1, y: 0.6), (x: 1.0, y: 0.3),
        ]
        .into();
        let line = LineString::from(vec![(1.0, 0.3), (1.1, 0.6)]);
        let treaty = KnownLine { line: line.clone(), certainty: Certainty::Treaty };
        let surveyed = KnownLine { line, certainty: Certainty::Surveyed };
        for smooth in [straight(), RegionOptions::default()] {
            let claims = [
                Claim { known_lines: vec![treaty.clone()], ..held("a", west.clone()) },
                Claim { known_lines: vec![surveyed.clone()], ..held("b", east.clone()) },
            ];
            let r = regions_of(&claims, &smooth);
            let between: Vec<&BorderLine> = r.borders.iter().filter(|l| (l.left, l.right) == (1, 2)).collect();
            let known: Vec<_> = between.iter().filter(|l| l.certainty == Certainty::Surveyed).collect();
            assert_eq!((between.len(), known.len()), (3, 1));
            let ends = [known[0].line.0[0].y, known[0].line.0[known[0].line.0.len() - 1].y];
            assert!((ends[0] - ends[1]).abs() > 2e4 && between.iter().all(|l| l.certainty >= Certainty::Approximate));
            // The whole border is there, and nothing twice.
            let plain = regions_of(&[held("a", west.clone()), held("b", east.clone())], &smooth);
            let all = |r: &PoliticalRegions| -> f64 { r.borders.iter().map(|l| length(&l.line)).sum() };
            assert!((all(&r) - all(&plain)).abs() < 1e-6);
        }
    }

    fn length(line: &LineString<f64>) -> f64 {
        line.lines().map(|l| l.dx().hypot(l.dy())).sum()
    }

    #[test]
    fn a_corner_on_a_long_edge_is_shared_before_projection() {
        // The plane bends: without the corner entered in the long edge there would be a gap.
        let bent = |p: LonLat| Some(Xy { x: p.lon * 1e5, y: p.lat * 1e5 + 4e3 * (p.lon - 40.0).powi(2) });
        let claims = [
            held("a", square(40.0, 40.0, 40.8, 41.0)),
            held("b", square(40.0, 41.0, 40.3, 42.0)),
            held("c", square(40.3, 41.0, 40.8, 42.0)),
        ];
        let refs: Vec<&Claim> = claims.iter().collect();
        let projected = project_claims(&refs, &bent).unwrap();
        let r = political_regions(&projected, &RegionOptions::default()).unwrap();
        let sum: f64 = r.polities.iter().map(|p| p.outline.unsigned_area()).sum();
        let union = geo::unary_union(r.polities.iter().map(|p| &p.outline));
        assert_eq!(union.0.len(), 1);
        assert_eq!(union.0[0].interiors().len(), 0);
        assert!((sum / union.unsigned_area() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_point_without_an_image_is_an_error() {
        let c = held("far", square(0.0, 0.0, 1.0, 1.0));
        let e = project_claims(&[&c], &|p| (p.lon < 0.5).then_some(Xy { x: 0.0, y: 0.0 })).unwrap_err();
        assert!(e.to_string().contains("claim 'far'") && e.to_string().contains("--crs"), "{e}");
    }

    #[test]
    fn regions_and_borders_end_at_the_coast_and_the_frame() {
        let claims = [
            held("a", square(0.0, 0.0, 1.0, 1.0)),
            held("b", square(1.0, 0.0, 2.0, 1.0)),
            held("far", square(8.0, 0.0, 9.0, 1.0)),
        ];
        let r = regions_of(&claims, &straight());
        let sea = square(-1e5, 6e4, 9e5, 9e5);
        let frame = Extent { min_x: 2e4, min_y: -1e5, max_x: 5e5, max_y: 5e5 };
        let cut = cut_at_coast(&r, &sea, &frame);
        let areas: Vec<(u16, f64)> =
            cut.polities.iter().map(|p| (p.code, (p.outline.unsigned_area() / 1e6).round())).collect();
        assert_eq!(areas, [(1, 4800.0), (2, 6000.0)]);
        let common = cut.borders.iter().find(|b| (b.left, b.right) == (1, 2)).unwrap();
        assert!((length(&common.line) - 6e4).abs() < 0.01);
        assert!(common.line.0[0].y < common.line.0[common.line.0.len() - 1].y, "direction is kept");
        assert!(cut.borders.iter().flat_map(|b| &b.line.0).all(|c| c.y <= 6e4 + 0.01 && c.x >= 2e4 - 0.01));
    }

    #[test]
    fn broken_numbers_do_not_stop_the_cut() {
        let mut r = regions_of(&[held("a", square(0.0, 0.0, 1.0, 1.0))], &straight());
        r.polities[0].outline.0.push(square(f64::NAN, 0.0, f64::INFINITY, 1.0).0.remove(0));
        r.borders[0].line.0.push(Coord { x: f64::NAN, y: 0.0 });
        let frame = Extent { min_x: -1e6, min_y: -1e6, max_x: 1e6, max_y: 1e6 };
        let cut = cut_at_coast(&r, &square(0.0, f64::NAN, 1.0, 1.0), &frame);
        assert_eq!(cut.polities[0].outline.unsigned_area().round(), 1e10);
        let no_frame = Extent { min_x: f64::NAN, ..frame };
        assert!(cut_at_coast(&r, &square(0.0, 0.0, 1.0, 1.0), &no_frame).polities.is_empty());
    }

    #[test]
    fn areas_are_measured_on_the_ellipsoid() {
        let mut r = regions_of(&[held("a", square(44.0, 41.0, 45.0, 42.0))], &straight());
        let drawn = r.polities[0].area_km2;
        r.measure_areas(&|p| Some(LonLat { lon: p.x / 1e5, lat: p.y / 1e5 }));
        assert!((drawn / r.polities[0].area_km2 - 1.0).abs() < 1e-9);
        assert!((drawn - 9253.0).abs() < 30.0, "{drawn}");
    }

    #[test]
    fn a_sea_of_twenty_thousand_corners_is_cut_in_time() {
        let claims: Vec<Claim> = (0..25)
            .map(|i| {
                let (x, y) = (f64::from(i % 5) * 2.0, f64::from(i / 5) * 2.0);
                held(&format!("p{i:02}"), square(x, y, x + 2.0, y + 2.0))
            })
            .collect();
        let options =
            RegionOptions { smooth: SmoothOptions { strength: 1.0, spacing: 500.0 }, ..RegionOptions::default() };
        let r = regions_of(&claims, &options);
        let coast: LineString<f64> = (0..=20_000)
            .map(|k| {
                let t = f64::from(k % 20_000) / 20_000.0 * std::f64::consts::TAU;
                let radius = 4e5 * (1.0 + 0.05 * (40.0 * t).sin() + 0.01 * (977.0 * t).sin());
                Coord { x: 5e5 + radius * t.cos(), y: 5e5 + radius * t.sin() }
            })
            .collect();
        let sea = MultiPolygon::from(Polygon::new(coast, vec![]));
        let frame = Extent { min_x: 0.0, min_y: 0.0, max_x: 1e6, max_y: 1e6 };
        let begin = std::time::Instant::now();
        let cut = cut_at_coast(&r, &sea, &frame);
        let seconds = begin.elapsed().as_secs_f64();
        assert!(seconds < 3.0, "{seconds}");
        let whole = Rect::new((0.0, 0.0), (1e6, 1e6)).to_polygon().difference(&sea).unsigned_area();
        let sum: f64 = cut.polities.iter().map(|p| p.outline.unsigned_area()).sum();
        // Smoothing rounds the four outer corners of the block.
        assert!((sum / whole - 1.0).abs() < 0.02, "{sum} {whole}");
    }
}
