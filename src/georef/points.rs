//! Control points in the forms that people have them: QGIS, GDAL, ArcGIS, GeoJSON and IIIF georeference annotations.

use super::Pixel;
use crate::error::{Error, Result};
use crate::grid::Xy;

/// A place of the scan whose place on the ground is known.
#[derive(Debug, Clone, PartialEq)]
pub struct ControlPoint {
    /// Where it is in the scan.
    pub pixel: Pixel,
    /// Where it is on the ground, in the CRS of the points: x or longitude first.
    pub ground: Xy,
    /// Whether it takes part in the fit.
    pub is_enabled: bool,
}

/// Control points as read.
#[derive(Debug, Clone, PartialEq)]
pub struct PointFile {
    /// In file order.
    pub points: Vec<ControlPoint>,
    /// What the file says of their CRS; `None` where it says nothing.
    pub crs: Option<String>,
    /// The form that was recognised: "QGIS", "GDAL", "ArcGIS", "GeoJSON", "IIIF annotation", "world file".
    pub form: &'static str,
}

/// Reads control points from `text`; `name` is for messages.
///
/// Recognised by content: QGIS `.points` (old `pixelX,pixelY` and new `sourceX,sourceY` headers, `#CRS:` line, lines negative
/// downward, disabled points kept as such), GDAL (`pixel line x y` in plain columns, or `-gcp` options), ArcGIS links (CSV or
/// TSV, with or without a number in front, lines negative downward), GeoJSON points with `resourceCoords` or `gcp` and IIIF
/// georeference annotations.
///
/// # Errors
/// [`Error::Content`] with the line and what was found; fewer than one point.
pub fn parse(text: &str, name: &str) -> Result<PointFile> {
    let text = text.trim_start_matches('\u{feff}');
    let file = if text.trim_start().starts_with('{') { json(text, name)? } else { table(text, name)? };
    if file.points.is_empty() {
        return Err(Error::content(name, "no control points", "one a line: x, y and where they are in the scan"));
    }
    Ok(file)
}

/// The points that a world file (six numbers, one a line: the affine way from the centre of a pixel to the ground) stands for, at
/// corners, edges and middle of a scan of `width` x `height` pixels; `None` where `text` is no such file.
///
/// ```
/// use histmap::georef::points::world_file;
/// let file = world_file("0.1\n0\n0\n-0.1\n40.05\n44.95\n", 60.0, 40.0).expect("six numbers");
/// assert_eq!((file.points[0].ground.x, file.points[0].ground.y), (40.0, 45.0));
/// assert!(world_file("1 2 3 4", 60.0, 40.0).is_none());
/// ```
pub fn world_file(text: &str, width: f64, height: f64) -> Option<PointFile> {
    let lines: Vec<&str> =
        text.trim_start_matches('\u{feff}').lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    let numbers: Vec<f64> = lines.iter().map_while(|l| l.parse().ok().filter(|v: &f64| v.is_finite())).collect();
    let [a, d, b, e, c, f] = <[f64; 6]>::try_from(numbers).ok().filter(|_| lines.len() == 6)?;
    let points = (0..9)
        .map(|k| {
            let pixel = Pixel { column: f64::from(k % 3) * 0.5 * width, line: f64::from(k / 3) * 0.5 * height };
            let (column, line) = (pixel.column - 0.5, pixel.line - 0.5);
            let ground = Xy { x: a * column + b * line + c, y: d * column + e * line + f };
            ControlPoint { pixel, ground, is_enabled: true }
        })
        .collect();
    Some(PointFile { points, crs: None, form: "world file" })
}

fn numbers<'a>(fields: impl Iterator<Item = &'a str>, at: &str) -> Result<Vec<f64>> {
    fields
        .map(|f| {
            let value: f64 = f
                .trim()
                .trim_matches('"')
                .parse()
                .map_err(|_| Error::content(at, format!("'{}'", f.trim()), "a number"))?;
            if value.is_finite() { Ok(value) } else { Err(Error::content(at, value, "a finite number")) }
        })
        .collect()
}

fn table(text: &str, name: &str) -> Result<PointFile> {
    let mut crs = None;
    let mut header: Option<Vec<String>> = None;
    let mut rows: Vec<(usize, Vec<String>)> = Vec::new();
    for (n, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if let Some(rest) = line.strip_prefix("#CRS:") {
            crs = Some(rest.trim().to_string()).filter(|c| !c.is_empty());
            continue;
        }
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let separator = [',', '\t', ';'].into_iter().find(|s| line.contains(*s));
        let mut fields: Vec<String> = match separator {
            Some(s) => line.split(s).map(|f| f.trim().to_string()).collect(),
            None => line.split_whitespace().filter(|f| *f != "-gcp").map(str::to_string).collect(),
        };
        if separator.is_some() && fields.last().is_some_and(String::is_empty) {
            fields.pop();
        }
        if header.is_none() && rows.is_empty() && fields.iter().all(|f| f.trim_matches('"').parse::<f64>().is_err()) {
            header = Some(fields.iter().map(|f| f.trim_matches('"').to_ascii_lowercase()).collect());
            continue;
        }
        // GDAL's columns are parted by spaces, ArcGIS's by tabs or commas.
        fields.insert(0, if separator.is_some() { "separated".into() } else { "spaced".into() });
        rows.push((n, fields));
    }
    match header {
        Some(header) => qgis(&header, &rows, crs, name),
        None => plain(&rows, crs, name),
    }
}

fn qgis(header: &[String], rows: &[(usize, Vec<String>)], crs: Option<String>, name: &str) -> Result<PointFile> {
    let column = |names: &[&str]| header.iter().position(|h| names.contains(&h.as_str()));
    let (Some(x), Some(y), Some(column_at), Some(line_at)) = (
        column(&["mapx", "x", "lon", "longitude"]),
        column(&["mapy", "y", "lat", "latitude"]),
        column(&["sourcex", "pixelx", "pixel", "col", "column"]),
        column(&["sourcey", "pixely", "line", "row"]),
    ) else {
        let expected = "mapX, mapY, sourceX, sourceY (or pixelX, pixelY) among them";
        return Err(Error::content(name, format!("columns {}", header.join(", ")), expected));
    };
    let enable = column(&["enable", "enabled"]);
    let mut points = Vec::new();
    for (n, fields) in rows {
        let at = format!("{name}, line {n}");
        let fields = &fields[1..];
        let need = [x, y, column_at, line_at].into_iter().max().unwrap_or(0);
        if fields.len() <= need {
            return Err(Error::content(at, format!("{} values", fields.len()), format!("at least {}", need + 1)));
        }
        let v = numbers([x, y, column_at, line_at].into_iter().map(|k| fields[k].as_str()), &at)?;
        let is_enabled = enable.and_then(|k| fields.get(k)).is_none_or(|e| e != "0");
        points.push(ControlPoint {
            ground: Xy { x: v[0], y: v[1] },
            pixel: Pixel { column: v[2], line: v[3] },
            is_enabled,
        });
    }
    turn_lines(&mut points);
    Ok(PointFile { points, crs, form: "QGIS" })
}

/// Lines counted upward from the top edge are negative: all of them, or none.
fn turn_lines(points: &mut [ControlPoint]) {
    if !points.is_empty() && points.iter().all(|p| p.pixel.line <= 0.0) {
        points.iter_mut().for_each(|p| p.pixel.line = -p.pixel.line);
    }
}

fn plain(rows: &[(usize, Vec<String>)], crs: Option<String>, name: &str) -> Result<PointFile> {
    let mut points = Vec::new();
    let mut form = "GDAL";
    for (n, fields) in rows {
        let at = format!("{name}, line {n}");
        let (kind, fields) = (fields[0].as_str(), &fields[1..]);
        let v = numbers(fields.iter().map(String::as_str), &at)?;
        let v: &[f64] = match (kind, v.len()) {
            (_, 4) => &v,
            // A number in front (ArcGIS), or an elevation behind (GDAL).
            ("separated", 5) => &v[1..],
            (_, 5) => &v[..4],
            _ => return Err(Error::content(at, format!("{} numbers", v.len()), "column, line, x, y")),
        };
        if kind == "separated" {
            form = "ArcGIS";
        }
        points.push(ControlPoint {
            pixel: Pixel { column: v[0], line: v[1] },
            ground: Xy { x: v[2], y: v[3] },
            is_enabled: true,
        });
    }
    turn_lines(&mut points);
    Ok(PointFile { points, crs, form })
}

fn json(text: &str, name: &str) -> Result<PointFile> {
    let root: serde_json::Value =
        serde_json::from_str(text).map_err(|e| Error::content(name, e, "GeoJSON or a georeference annotation"))?;
    let is_annotation = root.get("body").is_some() || root.get("items").is_some();
    // An annotation page holds annotations; the first with points counts.
    let bodies = [root.pointer("/body"), root.pointer("/items/0/body"), Some(&root)];
    let features = bodies.into_iter().flatten().find_map(|b| b.get("features")?.as_array());
    let Some(features) = features else {
        return Err(Error::content(name, "no features", "a FeatureCollection of points"));
    };
    let pair = |v: Option<&serde_json::Value>| -> Option<(f64, f64)> {
        let v = v?.as_array()?;
        Some((v.first()?.as_f64()?, v.get(1)?.as_f64()?))
    };
    let mut points = Vec::new();
    for (n, feature) in (1..).zip(features) {
        let at = format!("{name}, feature {n}");
        let ground = pair(feature.pointer("/geometry/coordinates"))
            .ok_or_else(|| Error::content(&at, "no point geometry", "longitude and latitude"))?;
        let source = ["resourceCoords", "gcp", "pixelCoords", "pixel"];
        let pixel = source
            .iter()
            .find_map(|k| pair(feature.get("properties")?.get(k)))
            .ok_or_else(|| Error::content(&at, "no place in the scan", "properties.resourceCoords: [column, line]"))?;
        points.push(ControlPoint {
            pixel: Pixel { column: pixel.0, line: pixel.1 },
            ground: Xy { x: ground.0, y: ground.1 },
            is_enabled: true,
        });
    }
    turn_lines(&mut points);
    let form = if is_annotation { "IIIF annotation" } else { "GeoJSON" };
    Ok(PointFile { points, crs: Some("EPSG:4326".into()), form })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(text: &str) -> (PointFile, (f64, f64, f64, f64)) {
        let file = parse(text, "a.points").unwrap();
        let p = file.points[0].clone();
        (file, (p.pixel.column, p.pixel.line, p.ground.x, p.ground.y))
    }

    #[test]
    fn every_form_gives_the_same_point() {
        let want = (3899.0, 6412.0, 9.93, 53.58);
        for (text, form) in [
            ("mapX,mapY,sourceX,sourceY,enable,dX,dY,residual\n9.93,53.58,3899,-6412,1,0,0,0\n", "QGIS"),
            ("#CRS: EPSG:4326\nmapX,mapY,pixelX,pixelY,enable\n9.93,53.58,3899,-6412,1\n", "QGIS"),
            ("3899 6412 9.93 53.58\n", "GDAL"),
            ("-gcp 3899 6412 9.93 53.58\n", "GDAL"),
            ("3899 6412 9.93 53.58 0\n", "GDAL"),
            ("1,3899,-6412,9.93,53.58\n", "ArcGIS"),
            ("3899\t-6412\t9.93\t53.58\n", "ArcGIS"),
            (
                r#"{"type":"FeatureCollection","features":[{"type":"Feature","properties":{"gcp":[3899,6412]},
                   "geometry":{"type":"Point","coordinates":[9.93,53.58]}}]}"#,
                "GeoJSON",
            ),
            (
                r#"{"type":"Annotation","body":{"type":"FeatureCollection","features":[{"properties":
                   {"resourceCoords":[3899,6412]},"geometry":{"type":"Point","coordinates":[9.93,53.58]}}]}}"#,
                "IIIF annotation",
            ),
        ] {
            let (file, point) = first(text);
            assert_eq!(point, want, "{text}");
            assert_eq!(file.form, form, "{text}");
        }
    }

    #[test]
    fn a_disabled_point_is_kept_as_such_and_the_crs_is_told() {
        let file = parse("#CRS: EPSG:3035\nmapX,mapY,sourceX,sourceY,enable\n1,2,3,-4,0\n1,2,3,-4,1\n", "x").unwrap();
        assert_eq!(file.points.iter().map(|p| p.is_enabled).collect::<Vec<_>>(), [false, true]);
        assert_eq!(file.crs.as_deref(), Some("EPSG:3035"));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (text, words) in [
            ("", "no control points"),
            ("1,2,3\n", "line 1: 3 numbers"),
            ("3899 6412 9.93 53.58\n3899 x 9 5\n", "line 2: 'x'"),
            ("mapX,mapY,a,b\n1,2,3,4\n", "sourceX"),
            ("mapX,mapY,sourceX,sourceY\n1,2,3\n", "3 values"),
            ("1 2 inf 4\n", "finite"),
            ("{\"features\":[{\"geometry\":null}]}", "feature 1"),
            ("{", "GeoJSON"),
        ] {
            let error = parse(text, "a.points").unwrap_err().to_string();
            assert!(error.contains(words) && error.contains("a.points"), "{text:?}: {error}");
        }
    }
}
