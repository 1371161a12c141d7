//! The lands of a pack: its ground divided once, as TopoJSON. A border between two lands is one arc that both use, so that
//! lands never gap or overlap where they touch, and what several lands make up together is found by leaving out the arcs
//! between them.
//!
//! Read are files with and without a `transform` (quantized). Invariant: no two lands of a [`Lands`] overlap.

use super::PackSource;
use super::geojson::json;
use crate::borders::crossing::{Piece, crossing_along, for_each_meeting, pieces_of};
use crate::borders::problem::{Problem, shown, suggestion};
use crate::borders::reader::bad_coordinate;
use crate::borders::topology::key;
use geo::{BoundingRect, Contains, Coord, LineString, MultiPolygon, Point, Polygon, Rect};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

/// What the file should be.
const EXPECTED: &str = "TopoJSON, as QGIS, GDAL and mapshaper read it";

/// All lands of a pack.
#[derive(Debug, Default)]
pub(super) struct Lands {
    /// In the order of the file.
    pub(super) lands: Vec<Land>,
    /// Lines that lands have in common, or that bound the drawing.
    arcs: Vec<Vec<Coord<f64>>>,
}

/// One land.
#[derive(Debug)]
pub(super) struct Land {
    /// Its key.
    pub(super) id: String,
    /// The arcs around it and whether each is followed forward; the land lies on the left.
    edges: Edges,
}

/// The lands in the pack's file `name`; what is wrong is said, and then there are none.
pub(super) fn read(source: &PackSource, name: &str, problems: &mut Vec<Problem>) -> Lands {
    let before = problems.len();
    let lands = match source.text(name) {
        Ok(text) => json(&text, name, EXPECTED, problems).map(|root| of_json(&root, name, problems)),
        Err(problem) => {
            problems.push(*problem);
            None
        }
    };
    lands.filter(|_| problems.len() == before).unwrap_or_default()
}

fn of_json(root: &Value, name: &str, problems: &mut Vec<Problem>) -> Lands {
    let mut say = |found: String, expected: &str| problems.push(Problem::error(name, found, expected));
    let kind = root.get("type").and_then(Value::as_str);
    if kind != Some("Topology") {
        say(kind.map_or("it has no type".to_string(), |k| format!("it is a {}", shown(k))), "\"type\": \"Topology\"");
        return Lands::default();
    }
    let Some(arcs) = arcs_of(root, &mut say) else { return Lands::default() };
    let Some(objects) = root.get("objects").and_then(Value::as_object).filter(|o| !o.is_empty()) else {
        say("it has no objects".to_string(), "\"objects\": {\"lands\": {\"type\": \"GeometryCollection\", ...}}");
        return Lands::default();
    };
    let object = if objects.len() == 1 { objects.values().next() } else { objects.get("lands") };
    let geometries = object.and_then(|o| o.get("geometries")).and_then(Value::as_array);
    let Some(geometries) = geometries.filter(|g| !g.is_empty()) else {
        say("it has no object 'lands' with geometries".to_string(), "one GeometryCollection of polygons");
        return Lands::default();
    };

    let mut lands: Vec<Land> = Vec::new();
    let mut outlines: Vec<MultiPolygon<f64>> = Vec::new();
    for (number, geometry) in (1..).zip(geometries) {
        let id = id_of(geometry);
        let mut say = |found: String, expected: &str| {
            problems.push(Problem::error(name, found, expected).at_feature(number, &id));
        };
        if id.is_empty() {
            say("it has no id".to_string(), "an \"id\", or a property \"id\", for every land");
        } else if lands.iter().any(|l| l.id == id) {
            say("the id stands twice".to_string(), "each land once; of several pieces make one MultiPolygon");
        }
        match polygons_of(geometry, &arcs) {
            Ok((edges, area)) => {
                for (found, expected) in area.iter().filter_map(crate::borders::repair::fault) {
                    say(found, expected);
                }
                lands.push(Land { id, edges });
                outlines.push(area);
            }
            Err((found, expected)) => say(found, expected),
        }
    }
    let lands = Lands { lands, arcs };
    if problems.is_empty() || !problems.iter().any(|p| p.file == name && p.is_error()) {
        lands.check(&outlines, name, problems);
    }
    lands
}

fn id_of(geometry: &Value) -> String {
    let text = |v: &Value| match v {
        Value::String(s) => Some(s.trim().to_string()),
        Value::Number(n) => Some(n.to_string()),
        _ => None,
    };
    let own = geometry.get("id").and_then(text);
    own.or_else(|| geometry.get("properties")?.get("id").and_then(text)).unwrap_or_default()
}

/// The arcs in longitude and latitude; `None`, and said, when one is unsound.
fn arcs_of(root: &Value, say: &mut impl FnMut(String, &str)) -> Option<Vec<Vec<Coord<f64>>>> {
    let pair = |v: Option<&Value>| -> Option<(f64, f64)> {
        let a = v?.as_array()?;
        Some((a.first()?.as_f64()?, a.get(1)?.as_f64()?))
    };
    let transform = match root.get("transform") {
        None => None,
        Some(t) => match (pair(t.get("scale")), pair(t.get("translate"))) {
            (Some(scale), Some(translate)) => Some((scale, translate)),
            _ => {
                say(
                    "the transform is unsound".to_string(),
                    "\"transform\": {\"scale\": [x, y], \"translate\": [x, y]}",
                );
                return None;
            }
        },
    };
    let Some(list) = root.get("arcs").and_then(Value::as_array) else {
        say("it has no arcs".to_string(), "\"arcs\": [[[longitude, latitude], ...], ...]");
        return None;
    };
    let mut arcs = Vec::with_capacity(list.len());
    for (number, arc) in list.iter().enumerate() {
        let points: Option<Vec<(f64, f64)>> =
            arc.as_array().and_then(|positions| positions.iter().map(|p| pair(Some(p))).collect());
        let Some(points) = points.filter(|p| p.len() >= 2) else {
            say(format!("arc {number} has no two positions"), "[[longitude, latitude], ...]");
            return None;
        };
        let mut sum = (0.0, 0.0);
        let arc: Vec<Coord<f64>> = points
            .into_iter()
            .map(|(x, y)| match transform {
                None => Coord { x, y },
                Some((scale, translate)) => {
                    sum = (sum.0 + x, sum.1 + y);
                    Coord { x: sum.0 * scale.0 + translate.0, y: sum.1 * scale.1 + translate.1 }
                }
            })
            .collect();
        if let Some((found, expected)) = bad_coordinate(std::iter::once(&LineString::new(arc.clone()))) {
            say(format!("arc {number} has {found}"), expected);
            return None;
        }
        arcs.push(arc);
    }
    Some(arcs)
}

/// What was found and expected.
type Fault = (String, &'static str);

/// Arcs by number, each followed forward or backward.
type Edges = Vec<(usize, bool)>;

/// The arcs around a geometry, so that it lies on their left, and its area.
fn polygons_of(geometry: &Value, arcs: &[Vec<Coord<f64>>]) -> Result<(Edges, MultiPolygon<f64>), Fault> {
    let list = |v: &Value| -> Result<Vec<Value>, Fault> {
        v.as_array().cloned().ok_or_else(|| ("its arcs are nested otherwise than its type says".to_string(), EXPECTED))
    };
    let refs = geometry.get("arcs").unwrap_or(&Value::Null);
    let polygons = match geometry.get("type").and_then(Value::as_str) {
        Some("Polygon") => vec![refs.clone()],
        Some("MultiPolygon") => list(refs)?,
        other => return Err((format!("its type is {}", shown(other.unwrap_or(""))), "Polygon or MultiPolygon")),
    };
    let (mut edges, mut area) = (Vec::new(), Vec::new());
    for polygon in &polygons {
        let mut rings = Vec::new();
        for (k, ring) in list(polygon)?.iter().enumerate() {
            let mut path = Vec::new();
            for r in list(ring)? {
                let n = r
                    .as_i64()
                    .ok_or_else(|| (format!("{} is no number of an arc", shown(&r.to_string())), EXPECTED))?;
                // ~3 is arc 3 backwards.
                let (index, is_forward) = if n < 0 { (!n, false) } else { (n, true) };
                let index = usize::try_from(index).ok().filter(|i| *i < arcs.len());
                let found = || (format!("there is no arc {n}"), "0 to the number of arcs less one, or ~ of it");
                path.push((index.ok_or_else(found)?, is_forward));
            }
            let mut line = line_of(&path, arcs)?;
            // Exteriors run anticlockwise here, holes clockwise, however the file has them.
            if (signed_area(&line) < 0.0) != (k > 0) {
                path.reverse();
                path.iter_mut().for_each(|(_, is_forward)| *is_forward = !*is_forward);
                line.reverse();
            }
            edges.extend(path);
            rings.push(LineString::new(line));
        }
        if rings.is_empty() {
            return Err(("a polygon without a ring".to_string(), "an outline"));
        }
        let holes = rings.split_off(1);
        area.extend(rings.pop().map(|exterior| Polygon::new(exterior, holes)));
    }
    Ok((edges, MultiPolygon::new(area)))
}

/// The closed line along `path`.
fn line_of(path: &[(usize, bool)], arcs: &[Vec<Coord<f64>>]) -> Result<Vec<Coord<f64>>, Fault> {
    let mut line: Vec<Coord<f64>> = Vec::new();
    for &(arc, is_forward) in path {
        let points = arcs[arc].iter().copied();
        let points: Vec<Coord<f64>> = if is_forward { points.collect() } else { points.rev().collect() };
        if let Some(last) = line.pop().filter(|last| *last != points[0]) {
            let found = format!("arc {arc} does not begin where the one before ends, at {}, {}", last.x, last.y);
            return Err((found, "arcs that follow each other"));
        }
        line.extend(points);
    }
    if line.len() < 4 || line.first() != line.last() {
        return Err(("a ring that is not closed, or has less than three corners".to_string(), "a closed ring of arcs"));
    }
    Ok(line)
}

/// Twice the area of a closed line, positive where it runs anticlockwise.
fn signed_area(line: &[Coord<f64>]) -> f64 {
    let o = line[0];
    line.windows(2).map(|w| (w[0].x - o.x) * (w[1].y - o.y) - (w[1].x - o.x) * (w[0].y - o.y)).sum()
}

impl Lands {
    /// The number of the land `id`.
    #[cfg(test)]
    fn position(&self, id: &str) -> Option<usize> {
        self.lands.iter().position(|l| l.id == id)
    }

    /// "did you mean ...", or empty.
    pub(super) fn near(&self, id: &str) -> String {
        suggestion(id, self.lands.iter().map(|l| l.id.as_str()))
    }

    /// What makes lands overlap.
    fn check(&self, outlines: &[MultiPolygon<f64>], name: &str, problems: &mut Vec<Problem>) {
        let pieces: Vec<Piece> = self.arcs.iter().enumerate().flat_map(|(i, a)| pieces_of(a, i)).collect();
        let mut crossings: BTreeMap<(usize, usize), Coord<f64>> = BTreeMap::new();
        for_each_meeting(
            &pieces,
            |_, _| true,
            |p, q| {
                let at = p.a + (p.b - p.a) * crossing_along(p, q).unwrap_or(0.5);
                crossings.entry((p.line.min(q.line), p.line.max(q.line))).or_insert(at);
            },
        );
        for ((a, b), at) in crossings {
            let found = format!("arcs {a} and {b} meet near {:.4} E, {:.4} N", at.x, at.y);
            problems.push(Problem::error(
                name,
                found,
                "arcs that meet only in their ends; move the points there apart",
            ));
        }
        // By arc: the lands on its left and on its right.
        let mut sides: Vec<[Vec<usize>; 2]> = vec![Default::default(); self.arcs.len()];
        for (land, l) in self.lands.iter().enumerate() {
            for &(arc, is_forward) in &l.edges {
                sides[arc][usize::from(!is_forward)].push(land);
            }
        }
        let boxes: Vec<Option<Rect<f64>>> = outlines.iter().map(BoundingRect::bounding_rect).collect();
        for (arc, [left, right]) in sides.iter().enumerate() {
            let mut overlap = |a: usize, b: usize| {
                let found = format!("the lands '{}' and '{}' overlap at arc {arc}", self.lands[a].id, self.lands[b].id);
                problems.push(Problem::error(name, found, "lands that touch and never overlap"));
            };
            for side in [left, right] {
                if let [a, b, ..] = side[..] {
                    overlap(a, b);
                }
            }
            // Nobody on one side: that side must not lie within another land.
            if let ([a], []) | ([], [a]) = (&left[..], &right[..]) {
                let middle = (self.arcs[arc][0] + self.arcs[arc][1]) / 2.0;
                let around = (0..outlines.len()).filter(|b| b != a).find(|&b| {
                    boxes[b].is_some_and(|r| r.contains(&middle)) && outlines[b].contains(&Point::from(middle))
                });
                around.into_iter().for_each(|b| overlap(*a, b));
            }
        }
    }

    /// What the lands with these numbers make up together.
    pub(super) fn union(&self, lands: &[usize]) -> MultiPolygon<f64> {
        let mut uses: BTreeMap<usize, [bool; 2]> = BTreeMap::new();
        for &(arc, is_forward) in lands.iter().flat_map(|&l| &self.lands[l].edges) {
            uses.entry(arc).or_default()[usize::from(!is_forward)] = true;
        }
        let outer = uses.into_iter().filter_map(|(arc, [forward, backward])| {
            let points = self.arcs[arc].iter().copied();
            match (forward, backward) {
                (true, false) => Some(points.collect::<Vec<_>>()),
                (false, true) => Some(points.rev().collect()),
                _ => None,
            }
        });
        polygons(rings(outer.collect()))
    }

    /// The arcs between a land of `of` and one of `and`; with no `and`, those around all of `of`.
    pub(super) fn lines_between(&self, of: &[usize], and: Option<&[usize]>) -> Vec<usize> {
        let side = |lands: &[usize]| -> BTreeMap<usize, [bool; 2]> {
            let mut uses: BTreeMap<usize, [bool; 2]> = BTreeMap::new();
            for &(arc, is_forward) in lands.iter().flat_map(|&l| &self.lands[l].edges) {
                uses.entry(arc).or_default()[usize::from(!is_forward)] = true;
            }
            uses
        };
        let of = side(of);
        match and {
            None => of.into_iter().filter(|(_, [a, b])| a != b).map(|(arc, _)| arc).collect(),
            Some(and) => {
                let and = side(and);
                let is_between =
                    |arc: &usize, s: &[bool; 2]| and.get(arc).is_some_and(|t| (s[0] && t[1]) || (s[1] && t[0]));
                of.into_iter().filter(|(arc, s)| is_between(arc, s)).map(|(arc, _)| arc).collect()
            }
        }
    }

    /// The arc with this number.
    pub(super) fn arc(&self, number: usize) -> &[Coord<f64>] {
        &self.arcs[number]
    }
}

/// Closed lines without repeated corners, of lines that run with the area on their left.
fn rings(lines: Vec<Vec<Coord<f64>>>) -> Vec<Vec<Coord<f64>>> {
    let mut from: HashMap<(u64, u64), Vec<usize>> = HashMap::new();
    for (i, line) in lines.iter().enumerate() {
        from.entry(key(line[0])).or_default().push(i);
    }
    let mut is_used = vec![false; lines.len()];
    let mut found = Vec::new();
    for first in 0..lines.len() {
        if is_used[first] {
            continue;
        }
        let mut ring: Vec<Coord<f64>> = Vec::new();
        let mut next = Some(first);
        while let Some(i) = next {
            is_used[i] = true;
            ring.pop();
            ring.extend(&lines[i]);
            let end = ring[ring.len() - 1];
            if end == ring[0] {
                break;
            }
            let before = ring[ring.len() - 2];
            let turn = |j: usize| {
                let (d, e) = (end - before, lines[j][1] - end);
                (d.x * e.y - d.y * e.x).atan2(d.x * e.x + d.y * e.y)
            };
            // Keeping to the left follows one side of the area where it touches itself in a corner.
            let ways = from.get(&key(end)).into_iter().flatten().copied().filter(|&j| !is_used[j]);
            next = ways.max_by(|&a, &b| turn(a).total_cmp(&turn(b)));
        }
        split(ring, &mut found);
    }
    found
}

/// A closed line as closed lines that go through no corner twice.
fn split(ring: Vec<Coord<f64>>, into: &mut Vec<Vec<Coord<f64>>>) {
    let mut path: Vec<Coord<f64>> = Vec::new();
    let mut at: HashMap<(u64, u64), usize> = HashMap::new();
    for c in ring {
        if let Some(&start) = at.get(&key(c)) {
            let mut closed: Vec<Coord<f64>> = path.split_off(start);
            for p in &closed {
                at.remove(&key(*p));
            }
            closed.push(c);
            if closed.len() >= 4 {
                into.push(closed);
            }
        }
        at.insert(key(c), path.len());
        path.push(c);
    }
}

/// Polygons of rings: anticlockwise ones are exteriors, the others holes in the smallest exterior around them.
fn polygons(rings: Vec<Vec<Coord<f64>>>) -> MultiPolygon<f64> {
    let (mut outer, holes): (Vec<_>, Vec<_>) = rings.into_iter().partition(|r| signed_area(r) > 0.0);
    outer.sort_by(|a, b| signed_area(a).total_cmp(&signed_area(b)));
    let mut parts: Vec<Polygon<f64>> =
        outer.into_iter().map(|r| Polygon::new(LineString::new(r), Vec::new())).collect();
    for hole in holes {
        let middle = Point::from((hole[0] + hole[1]) / 2.0);
        if let Some(part) = parts.iter_mut().find(|p| Polygon::new(p.exterior().clone(), vec![]).contains(&middle)) {
            part.interiors_push(LineString::new(hole));
        }
    }
    MultiPolygon::new(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use geo::Area;
    use serde_json::json;

    /// A 3 x 3 chequer of unit squares, each side of a square an arc of its own, and the lands `a` to `i` from the south
    /// west, row by row.
    fn chequer() -> Value {
        let mut arcs: Vec<Value> = Vec::new();
        let (mut rows, mut columns) = (HashMap::new(), HashMap::new());
        for y in 0..4 {
            for x in 0..3 {
                rows.insert((x, y), arcs.len() as i64);
                arcs.push(json!([[x, y], [x + 1, y]]));
                columns.insert((y, x), arcs.len() as i64);
                arcs.push(json!([[y, x], [y, x + 1]]));
            }
        }
        let land = |k: i64| {
            let (x, y) = (k % 3, k / 3);
            let ring = [rows[&(x, y)], columns[&(x + 1, y)], !rows[&(x, y + 1)], !columns[&(x, y)]];
            json!({"type": "Polygon", "id": ((b'a' + k as u8) as char).to_string(), "arcs": [ring]})
        };
        json!({"type": "Topology", "arcs": arcs,
            "objects": {"x": {"type": "GeometryCollection", "geometries": (0..9).map(land).collect::<Vec<_>>()}}})
    }

    fn lands(value: &Value) -> (Lands, Vec<String>) {
        let mut problems = Vec::new();
        let lands = of_json(value, "lands.topojson", &mut problems);
        (lands, problems.iter().map(Problem::to_string).collect())
    }

    /// Area, parts and holes of what the lands named by the letters make up.
    fn of(lands: &Lands, letters: &str) -> (f64, usize, usize) {
        let numbers: Vec<usize> = letters.chars().map(|c| lands.position(&c.to_string()).unwrap()).collect();
        let area = lands.union(&numbers);
        for p in &area {
            assert_eq!(crate::borders::repair::fault(p), None, "{letters}");
        }
        (area.unsigned_area(), area.0.len(), area.iter().map(|p| p.interiors().len()).sum())
    }

    #[test]
    fn lands_are_joined_without_the_arcs_between_them() {
        let (l, said) = lands(&chequer());
        assert_eq!(said, Vec::<String>::new());
        assert_eq!(of(&l, "a"), (1.0, 1, 0));
        assert_eq!(of(&l, "ab"), (2.0, 1, 0));
        assert_eq!(of(&l, "abcdefghi"), (9.0, 1, 0));
        // A ring around e; corners that touch; a hole that touches the outer line.
        assert_eq!(of(&l, "abcdfghi"), (8.0, 1, 1));
        assert_eq!(of(&l, "ae"), (2.0, 2, 0));
        assert_eq!(of(&l, "bdfh"), (4.0, 4, 0));
        assert_eq!(of(&l, "bcdfghi"), (7.0, 1, 1));
        assert_eq!(of(&l, "acegi"), (5.0, 5, 0));
    }

    #[test]
    fn arcs_between_lands_are_found() {
        let (l, _) = lands(&chequer());
        let count = |a: &[usize], b: Option<&[usize]>| l.lines_between(a, b).len();
        assert_eq!(count(&[0], Some(&[1])), 1);
        assert_eq!(count(&[0, 3, 6], Some(&[1, 4, 7])), 3);
        assert_eq!(count(&[0], Some(&[8])), 0);
        assert_eq!(count(&[0, 1], None), 6);
    }

    #[test]
    fn quantized_files_and_clockwise_rings_are_read() {
        let quantized = json!({"type": "Topology", "transform": {"scale": [0.5, 0.25], "translate": [40.0, 41.0]},
            "arcs": [[[0, 0], [0, 4], [2, 0], [0, -4], [-2, 0]]],
            "objects": {"lands": {"type": "GeometryCollection", "geometries": [
                {"type": "MultiPolygon", "properties": {"id": "a"}, "arcs": [[[0]]]}]}}});
        let (l, said) = lands(&quantized);
        assert_eq!(said, Vec::<String>::new());
        let area = l.union(&[0]);
        assert_eq!(area.bounding_rect(), Some(Rect::new((40.0, 41.0), (41.0, 42.0))));
        assert!(signed_area(&area.0[0].exterior().0) > 0.0);
    }

    #[test]
    fn what_is_unsound_is_told() {
        let told = |change: &dyn Fn(&mut Value), part: &str| {
            let mut value = chequer();
            change(&mut value);
            let (_, said) = lands(&value);
            assert!(said.iter().any(|s| s.contains(part)), "{part}\n{said:?}");
        };
        told(&|v| v["type"] = json!("FeatureCollection"), "it is a 'FeatureCollection'");
        told(&|v| v["arcs"] = json!(3), "it has no arcs");
        told(&|v| v["arcs"][0] = json!([[0, 0]]), "arc 0 has no two positions");
        told(&|v| v["arcs"][0][0] = json!([44, 400]), "arc 0 has a corner at 44, 400");
        told(&|v| v["objects"] = json!({}), "it has no objects");
        told(&|v| v["objects"]["x"]["geometries"][4]["id"] = json!("a"), "feature 5 (a): the id stands twice");
        told(&|v| v["objects"]["x"]["geometries"][4]["id"] = json!(null), "feature 5: it has no id");
        told(&|v| v["objects"]["x"]["geometries"][0]["arcs"][0][0] = json!(99), "feature 1 (a): there is no arc 99");
        told(&|v| v["objects"]["x"]["geometries"][0]["arcs"][0][0] = json!(7), "does not begin where the one before");
        told(&|v| v["objects"]["x"]["geometries"][0]["type"] = json!("Point"), "its type is 'Point'");
        told(&|v| v["objects"]["x"]["geometries"][1] = v["objects"]["x"]["geometries"][0].clone(), "stands twice");
        told(
            &|v| {
                let mut twin = v["objects"]["x"]["geometries"][0].clone();
                twin["id"] = json!("twin");
                v["objects"]["x"]["geometries"][1] = twin;
            },
            "the lands 'a' and 'twin' overlap at arc 0",
        );
        // A wedge from outside into the land in the south west.
        told(
            &|v| {
                v["arcs"].as_array_mut().unwrap().push(json!([[-1, 0.2], [0.5, 0.3], [-1, 0.6], [-1, 0.2]]));
                let wedge = json!({"type": "Polygon", "id": "wedge", "arcs": [[24]]});
                v["objects"]["x"]["geometries"].as_array_mut().unwrap().push(wedge);
            },
            "arcs 1 and 24 meet near 0.0000 E",
        );
        // A land inside another that has no hole there.
        told(
            &|v| {
                v["arcs"].as_array_mut().unwrap().push(json!([[0.2, 0.2], [0.8, 0.2], [0.8, 0.8], [0.2, 0.2]]));
                let inner = json!({"type": "Polygon", "id": "inner", "arcs": [[24]]});
                v["objects"]["x"]["geometries"].as_array_mut().unwrap().push(inner);
            },
            "the lands 'inner' and 'a' overlap",
        );
    }
}
