//! Vector files in: every layer, with geometries of `geo` and attributes as JSON values.

use super::crs::{self, Transformer, WGS84, from_srs};
use super::log;
use super::source::{Kind, Source, open, open_as};
use crate::error::{Error, Result};
use crate::grid::Crs;
use crate::vector::{Feature, Layer};
use gdal::Metadata;
use gdal::vector::{FieldValue, LayerAccess};
use gdal_sys::{OGRFieldSubType, OGRFieldType, OGRwkbGeometryType as Wkb};
use geo::{Coord, CoordsIter, Geometry, GeometryCollection, LineString, MultiLineString, MultiPoint, MultiPolygon};
use geo::{Point, Polygon};
use serde_json::{Map, Value};
use std::ffi::c_int;

/// How to read vector files.
#[derive(Debug, Clone)]
pub struct VectorReadOptions<'a> {
    /// The CRS, where the user states it; it overrides the file's own.
    pub crs: Option<&'a Crs>,
    /// The flag that states it, for the message when it is missing.
    pub crs_flag: &'static str,
    /// The encoding of a Shapefile's texts, for example `CP1251`; it overrides what the file says.
    pub encoding: Option<&'a str>,
}

impl Default for VectorReadOptions<'_> {
    fn default() -> Self {
        VectorReadOptions { crs: None, crs_flag: "--borders-crs", encoding: None }
    }
}

/// A layer as it is in the file.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorLayer {
    /// Layer name.
    pub name: String,
    /// Its CRS; `None` where the file states none.
    pub crs: Option<Crs>,
    /// Features in file order. Z and M are dropped, curves are made of straight edges, null and empty geometries are
    /// `None`; attributes missing from a feature are absent.
    pub features: Vec<Feature>,
    /// What had to be guessed.
    pub notes: Vec<String>,
}

/// All layers of `source`. `crs`, where given, overrides theirs.
///
/// # Errors
/// [`Error::Read`] when the system refuses the file; [`Error::Content`] when it is empty, truncated, no vector format,
/// without layers, or holds a geometry that is no point, line or polygon.
pub fn read_layers<'a>(source: impl Into<Source<'a>>, crs: Option<&Crs>) -> Result<Vec<VectorLayer>> {
    read_as(source.into(), crs, None)
}

/// What a Shapefile's texts are taken for where neither it nor the user says, and they are not UTF-8.
const GUESSED_ENCODING: &str = "CP1251";

/// [`read_layers`], with texts in the encoding that the user states, the file states, or as they look.
fn read_with_encoding(source: Source<'_>, crs: Option<&Crs>, stated: Option<&str>) -> Result<Vec<VectorLayer>> {
    if stated.is_some() || !is_shapefile_of_unknown_encoding(source)? {
        return read_as(source, crs, stated);
    }
    let layers = read_as(source, crs, Some("UTF-8"))?;
    // What is not UTF-8 has become replacement characters.
    let is_broken = |text: &str| text.contains('\u{fffd}');
    let is_text_broken =
        |f: &Feature| f.properties.iter().any(|(k, v)| is_broken(k) || v.as_str().is_some_and(is_broken));
    if !layers.iter().any(|l| l.features.iter().any(is_text_broken)) {
        return Ok(layers);
    }
    let mut layers = read_as(source, crs, Some(GUESSED_ENCODING))?;
    for layer in &mut layers {
        layer.notes.push(format!(
            "{}: it does not say in which encoding its texts are; {GUESSED_ENCODING} is taken; state it with --encoding",
            source.label()
        ));
    }
    Ok(layers)
}

/// Whether `source` is a Shapefile that says nothing of its encoding, by a .cpg file or in the .dbf.
fn is_shapefile_of_unknown_encoding(source: Source<'_>) -> Result<bool> {
    let opened = open(source, Kind::Vector)?;
    if opened.dataset.driver().short_name() != "ESRI Shapefile" {
        return Ok(false);
    }
    let said = |layer: &gdal::vector::Layer<'_>| {
        ["ENCODING_FROM_LDID", "ENCODING_FROM_CPG"]
            .iter()
            .any(|key| layer.metadata_item(key, "SHAPEFILE").is_some_and(|v| !v.is_empty()))
    };
    Ok(opened.dataset.layers().any(|layer| !said(&layer)))
}

fn read_as(source: Source<'_>, crs: Option<&Crs>, encoding: Option<&str>) -> Result<Vec<VectorLayer>> {
    let label = source.label();
    let opened = open_as(source, Kind::Vector, encoding)?;
    // TopoJSON has no place for a CRS: like the GeoJSON that it stands for, it is in longitude and latitude.
    let by_format = match opened.dataset.driver().short_name().as_str() {
        "TopoJSON" => Some(crs::crs(WGS84, "")?),
        _ => None,
    };
    let broken = |found: String| Error::content(&label, found, Kind::Vector.expected());
    let count = opened.dataset.layer_count();
    if count == 0 {
        return Err(broken("no layers".into()));
    }
    let mut layers = Vec::with_capacity(count);
    for index in 0..count {
        let mut layer = opened.dataset.layer(index).map_err(|e| broken(log::cause(&e)))?;
        let name = layer.name();
        let place = format!("{label}, layer '{name}'");
        let crs = match (crs, layer.spatial_ref()) {
            (Some(crs), _) => Some(crs.clone()),
            (None, Some(srs)) => {
                Some(from_srs(&srs, None).map_err(|e| Error::content(&place, e, "a coordinate reference system"))?)
            }
            (None, None) => by_format.clone(),
        };
        let fields = fields(&layer);
        let mut features = Vec::new();
        log::start();
        for (number, feature) in layer.features().enumerate() {
            let at = || format!("{place}, feature {}", number + 1);
            let geometry = match feature.geometry() {
                Some(g) => to_geo(g)
                    .map_err(|found| Error::content(at(), found, "points, lines, polygons or collections of them"))?,
                None => None,
            };
            features.push(Feature { geometry, properties: properties(&feature, &fields) });
        }
        // The iterator just ends where a file breaks off.
        if let Some(said) = log::failure() {
            return Err(Error::content(place, format!("GDAL says \"{said}\""), Kind::Vector.expected()));
        }
        layers.push(VectorLayer { name, crs, features, notes: Vec::new() });
    }
    Ok(layers)
}

/// All layers of `source` that have geometries or at least a CRS, in longitude and latitude (WGS 84). Plain tables, such
/// as the styles that QGIS keeps in a GeoPackage, are left out.
///
/// # Errors
/// As [`read_layers`]; [`Error::Content`] when no layer is left; [`Error::MissingCrs`] for a layer without CRS; [`Error::Content`] for coordinates that have no
/// place on the earth, which a wrong CRS or swapped axes produce.
pub fn read_features_wgs84<'a>(source: impl Into<Source<'a>>, options: &VectorReadOptions) -> Result<Vec<Layer>> {
    let source = source.into();
    let label = source.label();
    let wgs84 = crs::crs(WGS84, options.crs_flag)?;
    let mut out = Vec::new();
    for layer in read_with_encoding(source, options.crs, options.encoding)? {
        if layer.crs.is_none() && layer.features.iter().all(|f| f.geometry.is_none()) {
            continue;
        }
        let VectorLayer { name, crs: Some(crs), mut features, notes } = layer else {
            return Err(Error::MissingCrs { path: format!("{label}, layer '{}'", layer.name), flag: options.crs_flag });
        };
        let there = Transformer::new(&crs, &wgs84)?;
        for (number, feature) in features.iter_mut().enumerate() {
            let Some(geometry) = &feature.geometry else { continue };
            let image = there.geometry(geometry);
            let on_earth = |g: &Geometry<f64>| g.coords_iter().all(|c| c.x.abs() <= 360.0 && c.y.abs() <= 90.0);
            match image.filter(on_earth) {
                Some(image) => feature.geometry = Some(image),
                None => {
                    return Err(Error::content(
                        format!("{label}, layer '{name}', feature {}", number + 1),
                        format!("coordinates that have no place on the earth in {}", crs.name),
                        format!(
                            "coordinates in the stated CRS, x before y; are they swapped? State another with {}",
                            options.crs_flag
                        ),
                    ));
                }
            }
        }
        out.push(Layer { name, features, notes });
    }
    if out.is_empty() {
        return Err(Error::content(label, "tables without geometry", "a layer of points, lines or polygons"));
    }
    Ok(out)
}

struct Field {
    name: String,
    kind: OGRFieldType::Type,
    subtype: OGRFieldSubType::Type,
}

fn fields(layer: &gdal::vector::Layer<'_>) -> Vec<Field> {
    layer
        .defn()
        .fields()
        .enumerate()
        .map(|(index, field)| {
            // SAFETY: the definition lives as long as the layer; `index` runs over its fields; the calls only read.
            let subtype = unsafe {
                gdal_sys::OGR_Fld_GetSubType(gdal_sys::OGR_FD_GetFieldDefn(layer.defn().c_defn(), index as c_int))
            };
            Field { name: field.name(), kind: field.field_type(), subtype }
        })
        .collect()
}

fn properties(feature: &gdal::vector::Feature<'_>, fields: &[Field]) -> Map<String, Value> {
    let mut out = Map::new();
    for (index, field) in fields.iter().enumerate() {
        // SAFETY: the handle lives as long as `feature`, and `index` is one of its fields.
        if unsafe { gdal_sys::OGR_F_IsFieldSet(feature.c_feature(), index as c_int) } == 0 {
            continue;
        }
        out.insert(field.name.clone(), value(feature, index, field));
    }
    out
}

/// One attribute as JSON; what has no JSON form (NaN, unreadable dates) is null.
fn value(feature: &gdal::vector::Feature<'_>, index: usize, field: &Field) -> Value {
    // SAFETY: the handle lives as long as `feature`, and `index` is one of its fields.
    let (handle, at) = (unsafe { feature.c_feature() }, index as c_int);
    // SAFETY: as above.
    if unsafe { gdal_sys::OGR_F_IsFieldNull(handle, at) } != 0 {
        return Value::Null;
    }
    let mut count: c_int = 0;
    // Number lists: the crate makes a slice of GDAL's pointer even where an empty list has none.
    match field.kind {
        OGRFieldType::OFTIntegerList => {
            // SAFETY: the field is an integer list; GDAL returns its values, valid until the feature changes.
            return unsafe { list(gdal_sys::OGR_F_GetFieldAsIntegerList(handle, at, &mut count), &count) };
        }
        OGRFieldType::OFTInteger64List => {
            // SAFETY: the field is a 64-bit integer list, otherwise as above.
            return unsafe { list(gdal_sys::OGR_F_GetFieldAsInteger64List(handle, at, &mut count), &count) };
        }
        OGRFieldType::OFTRealList => {
            // SAFETY: the field is a real list, otherwise as above.
            return unsafe { list(gdal_sys::OGR_F_GetFieldAsDoubleList(handle, at, &mut count), &count) };
        }
        _ => {}
    }
    match feature.field(index) {
        Ok(Some(FieldValue::IntegerValue(v))) if field.subtype == OGRFieldSubType::OFSTBoolean => Value::Bool(v != 0),
        Ok(Some(FieldValue::IntegerValue(v))) => v.into(),
        Ok(Some(FieldValue::Integer64Value(v))) => v.into(),
        Ok(Some(FieldValue::RealValue(v))) => v.into(),
        Ok(Some(FieldValue::StringValue(v))) if field.subtype == OGRFieldSubType::OFSTJSON => {
            serde_json::from_str(&v).unwrap_or(Value::String(v))
        }
        Ok(Some(FieldValue::StringValue(v))) => v.into(),
        Ok(Some(FieldValue::StringListValue(v))) => v.into(),
        Ok(Some(FieldValue::DateValue(v))) => v.to_string().into(),
        Ok(Some(FieldValue::DateTimeValue(v))) => format!("{v:?}").into(), // ISO 8601
        Ok(None) => Value::Null,
        // Times of day and binary: as GDAL prints them.
        _ => feature.field_as_string(index).ok().flatten().map_or(Value::Null, Value::String),
    }
}

/// GDAL's list as a JSON array.
///
/// # Safety
/// `first` is null or points to `*count` readable values. `count` comes by reference because it is set by the call that
/// yields `first`.
unsafe fn list<T: Copy + Into<Value>>(first: *const T, count: &c_int) -> Value {
    match usize::try_from(*count) {
        // SAFETY: by the contract of this function.
        Ok(count) if count > 0 && !first.is_null() => {
            unsafe { std::slice::from_raw_parts(first, count) }.iter().map(|v| (*v).into()).collect()
        }
        _ => Value::Array(Vec::new()),
    }
}

/// `geo`'s from GDAL's, in two dimensions, curves as lines; `None` for an empty one.
fn to_geo(geometry: &gdal::vector::Geometry) -> std::result::Result<Option<Geometry<f64>>, String> {
    // SAFETY: the handle is used while `geometry` lives.
    let handle = unsafe { geometry.c_geometry() };
    if handle.is_null() {
        return Ok(None); // a feature without geometry
    }
    // SAFETY: not null, and valid while `geometry` lives; the calls leave it as it is; the result is a new geometry or
    // null.
    let straight = unsafe {
        match gdal_sys::OGR_G_HasCurveGeometry(handle, 0) {
            0 => std::ptr::null_mut(),
            _ => gdal_sys::OGR_G_GetLinearGeometry(handle, 0.0, std::ptr::null_mut()),
        }
    };
    if straight.is_null() {
        return convert(geometry);
    }
    // SAFETY: only allocates an empty value of the crate; the next call gives it the geometry that we own, once.
    let owned = unsafe {
        let owned = gdal::vector::Geometry::lazy_feature_geometry();
        owned.set_c_geometry(straight);
        owned
    };
    let out = convert(&owned);
    // SAFETY: a geometry set this way is not owned by the crate: it is ours to destroy, once, after its last use.
    unsafe { gdal_sys::OGR_G_DestroyGeometry(straight) };
    out
}

fn convert(geometry: &gdal::vector::Geometry) -> std::result::Result<Option<Geometry<f64>>, String> {
    if geometry.is_empty() {
        return Ok(None);
    }
    let parts = || (0..geometry.geometry_count()).map(|k| geometry.get_geometry(k));
    Ok(Some(match gdal::vector::geometry_type_flatten(geometry.geometry_type()) {
        Wkb::wkbPoint => point(geometry).into(),
        Wkb::wkbLineString => line(geometry).into(),
        Wkb::wkbPolygon | Wkb::wkbTriangle => polygon(geometry).into(),
        Wkb::wkbMultiPoint => MultiPoint(parts().filter(|p| !p.is_empty()).map(|p| point(&p)).collect()).into(),
        Wkb::wkbMultiLineString => {
            MultiLineString(parts().filter(|p| !p.is_empty()).map(|p| line(&p)).collect()).into()
        }
        Wkb::wkbMultiPolygon | Wkb::wkbTIN | Wkb::wkbPolyhedralSurface => {
            MultiPolygon(parts().filter(|p| !p.is_empty()).map(|p| polygon(&p)).collect()).into()
        }
        Wkb::wkbGeometryCollection => {
            let mut all = Vec::new();
            for part in parts() {
                all.extend(convert(&part)?);
            }
            Geometry::GeometryCollection(GeometryCollection(all))
        }
        other => return Err(format!("a geometry of type {}", gdal::vector::geometry_type_to_name(other))),
    }))
}

fn point(geometry: &gdal::vector::Geometry) -> Point<f64> {
    let (x, y, _) = geometry.get_point(0);
    Point::new(x, y)
}

fn line(geometry: &gdal::vector::Geometry) -> LineString<f64> {
    let mut points = Vec::new();
    geometry.get_points(&mut points);
    points.into_iter().map(|(x, y, _)| Coord { x, y }).collect()
}

fn polygon(geometry: &gdal::vector::Geometry) -> Polygon<f64> {
    let mut rings =
        (0..geometry.geometry_count()).map(|k| line(&geometry.get_geometry(k))).filter(|ring| !ring.0.is_empty());
    match rings.next() {
        Some(outer) => Polygon::new(outer, rings.collect()),
        None => Polygon::new(LineString(Vec::new()), Vec::new()),
    }
}
