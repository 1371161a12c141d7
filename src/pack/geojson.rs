//! GeoJSON (RFC 7946) to features, with every problem that the text shows: syntax by line, structure by feature.

use super::PackSource;
use crate::borders::problem::{Problem, shown};
use crate::vector::Feature;
use geo::{Coord, Geometry, GeometryCollection, LineString, MultiLineString, MultiPoint, MultiPolygon, Point, Polygon};
use serde_json::{Map, Value};

/// The features of the pack's file `name`; features whose geometry is unsound have none, and problems say so.
pub(super) fn read(source: &PackSource, name: &str, problems: &mut Vec<Problem>) -> Vec<Feature> {
    match source.text(name) {
        Ok(text) => parse(&text, name, problems),
        Err(problem) => {
            problems.push(*problem);
            Vec::new()
        }
    }
}

/// The JSON value in `text`; what is wrong with it is said with its line.
pub(super) fn json(text: &str, name: &str, expected: &str, problems: &mut Vec<Problem>) -> Option<Value> {
    match serde_json::from_str(text) {
        Ok(root) => Some(root),
        Err(e) => {
            let said = e.to_string();
            // "... at line 3 column 14": the line stands elsewhere in the message.
            let what = said.split(" at line ").next().unwrap_or(&said);
            let found = format!("it is no JSON: {what}, in column {}", e.column());
            let line = Some(e.line()).filter(|l| *l > 0);
            problems.push(Problem::error(name, found, expected).at_line(line));
            None
        }
    }
}

/// The features in `text`, see [`read`].
pub(super) fn parse(text: &str, name: &str, problems: &mut Vec<Problem>) -> Vec<Feature> {
    let Some(root) = json(text, name, "valid GeoJSON; mend it there", problems) else { return Vec::new() };
    let kind = root.get("type").and_then(Value::as_str).map(str::to_string);
    let mut root = match (root, kind.as_deref()) {
        (Value::Object(root), Some("FeatureCollection")) => root,
        (_, kind) => {
            let found = kind.map_or("it has no GeoJSON type".to_string(), |k| format!("it is a {}", shown(k)));
            problems.push(Problem::error(name, found, "a FeatureCollection").about("type"));
            return Vec::new();
        }
    };
    if let Some(crs) = root.get("crs").filter(|c| !c.is_null()) {
        let crs = crs.to_string();
        if !["CRS84", "EPSG::4326", "EPSG:4326"].iter().any(|known| crs.contains(known)) {
            let expected = "longitude and latitude (WGS 84); save the layer in EPSG:4326";
            problems.push(Problem::error(name, format!("the CRS is {}", shown(&crs)), expected).about("crs"));
        }
    }
    let Some(Value::Array(features)) = root.remove("features") else {
        problems.push(Problem::error(name, "it has no array of features", "\"features\": [...]").about("features"));
        return Vec::new();
    };
    (1..).zip(features).map(|(number, f)| feature(f, number, name, problems)).collect()
}

fn feature(value: Value, number: usize, name: &str, problems: &mut Vec<Problem>) -> Feature {
    let Value::Object(mut members) = value else {
        let found = shown(&value.to_string());
        problems.push(Problem::error(name, found, "a Feature").at_feature(number, ""));
        return Feature { geometry: None, properties: Map::new() };
    };
    let properties = match members.remove("properties") {
        Some(Value::Object(p)) => p,
        _ => Map::new(),
    };
    let mut feature = Feature { geometry: None, properties };
    let id = feature.text("id").or_else(|| feature.text("name")).unwrap_or_default();
    let mut say = |found: String, expected: &str| {
        problems.push(Problem::error(name, found, expected).at_feature(number, &id).about("geometry"));
    };
    match members.get("geometry") {
        None | Some(Value::Null) => say("it has none".to_string(), "a geometry"),
        Some(g) => match geometry(g, 0) {
            Ok(g) => feature.geometry = Some(g),
            Err((found, expected)) => say(found, expected),
        },
    }
    feature
}

/// What was found and expected.
type Fault = (String, &'static str);

fn geometry(value: &Value, depth: usize) -> Result<Geometry<f64>, Fault> {
    let kind = value.get("type").and_then(Value::as_str).unwrap_or("");
    let coordinates = value.get("coordinates").unwrap_or(&Value::Null);
    Ok(match kind {
        "Point" => Point::from(position(coordinates)?).into(),
        "MultiPoint" => MultiPoint::new(positions(coordinates)?.into_iter().map(Point::from).collect()).into(),
        "LineString" => line(coordinates)?.into(),
        "MultiLineString" => {
            MultiLineString::new(list(coordinates)?.iter().map(line).collect::<Result<_, _>>()?).into()
        }
        "Polygon" => polygon(coordinates)?.into(),
        "MultiPolygon" => MultiPolygon::new(list(coordinates)?.iter().map(polygon).collect::<Result<_, _>>()?).into(),
        "GeometryCollection" if depth < 8 => {
            let members = list(value.get("geometries").unwrap_or(&Value::Null))?;
            let all: Result<Vec<_>, _> = members.iter().map(|g| geometry(g, depth + 1)).collect();
            Geometry::GeometryCollection(GeometryCollection::from(all?))
        }
        other => {
            return Err((format!("the type is {}", shown(other)), "Point, LineString, Polygon or a Multi- of these"));
        }
    })
}

fn list(value: &Value) -> Result<&Vec<Value>, Fault> {
    let fault =
        || (format!("coordinates {}", shown(&value.to_string())), "an array; the nesting does not fit the type");
    value.as_array().ok_or_else(fault)
}

/// Longitude and latitude; a height is left out.
fn position(value: &Value) -> Result<Coord<f64>, Fault> {
    let numbers = value.as_array().filter(|a| a.len() >= 2).and_then(|a| Some((a[0].as_f64()?, a[1].as_f64()?)));
    let (x, y) = numbers
        .ok_or_else(|| (format!("the position {}", shown(&value.to_string())), "[longitude, latitude] in degrees"))?;
    if !(x.abs() <= 180.0 && y.abs() <= 90.0) {
        return Err((
            format!("a position at {x}, {y}"),
            "longitude (-180..180) first, then latitude (-90..90), in degrees; are they exchanged, or in metres?",
        ));
    }
    Ok(Coord { x, y })
}

fn positions(value: &Value) -> Result<Vec<Coord<f64>>, Fault> {
    list(value)?.iter().map(position).collect()
}

fn line(value: &Value) -> Result<LineString<f64>, Fault> {
    let points = positions(value)?;
    if points.len() < 2 {
        return Err((format!("a line of {} position(s)", points.len()), "at least two"));
    }
    Ok(LineString::new(points))
}

fn polygon(value: &Value) -> Result<Polygon<f64>, Fault> {
    let mut rings = list(value)?.iter().map(ring).collect::<Result<Vec<_>, _>>()?.into_iter();
    let exterior = rings.next().ok_or_else(|| ("a polygon without a ring".to_string(), "an outline"))?;
    Ok(Polygon::new(exterior, rings.collect()))
}

fn ring(value: &Value) -> Result<LineString<f64>, Fault> {
    let points = positions(value)?;
    if points.len() < 4 {
        return Err((format!("a ring of {} position(s)", points.len()), "at least four, the last equal to the first"));
    }
    let (first, last) = (points[0], points[points.len() - 1]);
    if first != last {
        let found = format!("a ring that begins at {}, {} and ends at {}, {}", first.x, first.y, last.x, last.y);
        return Err((found, "the first position again as the last"));
    }
    Ok(LineString::new(points))
}
