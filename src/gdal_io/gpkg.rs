//! Vectors out: a GeoPackage with styles that QGIS picks up.

use super::crs::to_srs;
use super::log::{self, ThreadOptions};
use super::source::MemoryFile;
use super::write::write_beside;
use crate::error::{Error, Result};
use crate::grid::Crs;
use crate::vector::Feature;
use gdal::errors::GdalError;
use gdal::vector::{FieldDefn, LayerAccess, LayerOptions, ToGdal, sql::Dialect};
use gdal::{Dataset, DriverManager};
use gdal_sys::{OGRFieldType, OGRwkbGeometryType as Wkb};
use geo::{Geometry, MultiLineString, MultiPoint, MultiPolygon};
use serde_json::Value;
use std::path::Path;

/// What a layer holds. Single geometries are promoted in the multi layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GeometryKind {
    /// Points.
    Point,
    /// Points, one or several per feature.
    MultiPoint,
    /// Lines.
    LineString,
    /// Lines, one or several per feature.
    MultiLineString,
    /// Polygons.
    Polygon,
    /// Polygons, one or several per feature.
    MultiPolygon,
    /// Attributes only.
    None,
}

impl GeometryKind {
    fn ogr(self) -> Wkb::Type {
        match self {
            GeometryKind::Point => Wkb::wkbPoint,
            GeometryKind::MultiPoint => Wkb::wkbMultiPoint,
            GeometryKind::LineString => Wkb::wkbLineString,
            GeometryKind::MultiLineString => Wkb::wkbMultiLineString,
            GeometryKind::Polygon => Wkb::wkbPolygon,
            GeometryKind::MultiPolygon => Wkb::wkbMultiPolygon,
            GeometryKind::None => Wkb::wkbNone,
        }
    }

    /// `geometry` as this kind; `None` when it is of another.
    fn admit(self, geometry: &Geometry<f64>) -> Option<Geometry<f64>> {
        use Geometry as G;
        match (self, geometry) {
            (GeometryKind::MultiPoint, G::Point(p)) => Some(MultiPoint(vec![*p]).into()),
            (GeometryKind::MultiLineString, G::LineString(l)) => Some(MultiLineString(vec![l.clone()]).into()),
            (GeometryKind::MultiPolygon, G::Polygon(p)) => Some(MultiPolygon(vec![p.clone()]).into()),
            (GeometryKind::Point, G::Point(_))
            | (GeometryKind::MultiPoint, G::MultiPoint(_))
            | (GeometryKind::LineString, G::LineString(_))
            | (GeometryKind::MultiLineString, G::MultiLineString(_))
            | (GeometryKind::Polygon, G::Polygon(_))
            | (GeometryKind::MultiPolygon, G::MultiPolygon(_)) => Some(geometry.clone()),
            _ => None,
        }
    }
}

/// A layer to write.
#[derive(Debug, Clone)]
pub struct GpkgLayer<'a> {
    /// Table name: letters, digits and `_`.
    pub name: &'a str,
    /// Title for people; the name where empty.
    pub identifier: &'a str,
    /// What the layer is; may be empty.
    pub description: &'a str,
    /// CRS of the geometries.
    pub crs: &'a Crs,
    /// What it holds.
    pub geometry: GeometryKind,
    /// Fields to come first, in this order. Others found in the features follow in the order of their first appearance.
    /// A field named here exists even when no feature has it.
    pub fields: &'a [&'a str],
    /// The features. A field's type follows from its values: integers, or numbers where one has a fraction; dates where all
    /// are written `2000-01-31`; else text, with arrays and objects as JSON text. Booleans are 0 and 1.
    pub features: &'a [Feature],
}

/// A style for a layer, saved in the `layer_styles` table as QGIS saves it, and loaded by QGIS as the layer's default.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerStyle<'a> {
    /// The layer.
    pub layer: &'a str,
    /// Name of the style, up to 30 characters; the layer's name where empty.
    pub name: &'a str,
    /// QML document, see [`super::styles`].
    pub qml: String,
    /// SLD document; may be empty.
    pub sld: String,
}

/// How a GeoPackage is written.
#[derive(Debug, Clone)]
pub struct GpkgOptions<'a> {
    /// Styles.
    pub styles: &'a [LayerStyle<'a>],
    /// The time that the file gives for its last change: fixed, so that equal content is equal bytes.
    pub date: &'a str,
}

impl Default for GpkgOptions<'_> {
    fn default() -> Self {
        GpkgOptions { styles: &[], date: "2000-01-01T00:00:00.000Z" }
    }
}

/// Name of the geometry column in every layer.
const GEOMETRY_COLUMN: &str = "geom";

/// Writes `layers` with a spatial index each, and the styles. The bytes depend on the content alone.
///
/// # Errors
/// [`Error::Argument`] for a bad layer name, a geometry of another kind than the layer's or a style without layer;
/// [`Error::Write`] when GDAL fails or the disk refuses, nothing then being left at `path`.
pub fn write_gpkg(path: &Path, layers: &[GpkgLayer<'_>], options: &GpkgOptions<'_>) -> Result<()> {
    check(layers, options)?;
    log::start();
    let _options = ThreadOptions::set(&[
        ("OGR_CURRENT_DATE", options.date),
        ("OGR_SQLITE_JOURNAL", "MEMORY"),
        ("OGR_GPKG_ALLOW_THREADED_RTREE", "NO"),
    ]);
    let fail = |e: GdalError| Error::write(path, log::cause(&e));
    let name = path.file_name().map_or("out.gpkg".into(), |n| n.to_string_lossy());
    let file = MemoryFile::named(&name);
    let driver = DriverManager::get_driver_by_name("GPKG").map_err(fail)?;
    let mut dataset = driver.create_vector_only(&file.path).map_err(fail)?;
    for layer in layers {
        write_layer(&mut dataset, layer, path)?;
    }
    write_styles(&dataset, options).map_err(fail)?;
    dataset.close().map_err(fail)?;
    if let Some(said) = log::failure() {
        return Err(Error::write(path, said));
    }
    gdal::vsi::call_on_mem_file_bytes(&file.path, |bytes| write_beside(path, bytes)).map_err(fail)?
}

fn check(layers: &[GpkgLayer<'_>], options: &GpkgOptions<'_>) -> Result<()> {
    for (k, layer) in layers.iter().enumerate() {
        let plain = layer.name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if layer.name.is_empty()
            || !plain
            || ["gpkg_", "rtree_", "layer_styles"].iter().any(|p| layer.name.starts_with(p))
        {
            return Err(Error::argument(
                "layer name",
                format!("'{}'", layer.name),
                "use letters, digits and _, and no name that GeoPackage keeps for itself",
            ));
        }
        if layers[..k].iter().any(|other| other.name.eq_ignore_ascii_case(layer.name)) {
            return Err(Error::argument("layer name", format!("'{}' twice", layer.name), "give each layer its own"));
        }
    }
    match options.styles.iter().find(|s| !layers.iter().any(|l| l.name == s.layer)) {
        Some(style) => {
            Err(Error::argument("style", format!("for layer '{}'", style.layer), "name a layer of the file"))
        }
        None => Ok(()),
    }
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Column {
    Integer,
    Real,
    Date,
    Text,
}

impl Column {
    /// The column for a value; `None` for null, which fits any.
    fn of(value: &Value) -> Option<Column> {
        match value {
            Value::Null => None,
            Value::Bool(_) => Some(Column::Integer),
            Value::Number(n) if n.is_i64() => Some(Column::Integer),
            Value::Number(_) => Some(Column::Real),
            Value::String(s) if is_date(s) => Some(Column::Date),
            _ => Some(Column::Text),
        }
    }

    /// The column for both.
    fn join(self, other: Column) -> Column {
        match (self, other) {
            (a, b) if a == b => a,
            (Column::Integer, Column::Real) | (Column::Real, Column::Integer) => Column::Real,
            _ => Column::Text,
        }
    }
}

/// Whether a text is a day of the calendar, `2000-01-31`.
fn is_date(text: &str) -> bool {
    let is_shaped = text.len() == 10
        && text.bytes().enumerate().all(|(k, b)| if k == 4 || k == 7 { b == b'-' } else { b.is_ascii_digit() });
    let number = |from: usize, to: usize| text[from..to].parse().unwrap_or(0);
    is_shaped
        && number(0, 4) > 0
        && crate::edtf::Day::new(number(0, 4), number(5, 7) as u8, number(8, 10) as u8).is_some()
}

/// Fields in order, with what they hold.
fn columns<'a>(layer: &GpkgLayer<'a>) -> Vec<(&'a str, Column)> {
    let mut found: Vec<(&str, Option<Column>)> = layer.fields.iter().map(|f| (*f, None)).collect();
    for (name, value) in layer.features.iter().flat_map(|f| &f.properties) {
        let at = found.iter().position(|(n, _)| n == name).unwrap_or_else(|| {
            found.push((name, None));
            found.len() - 1
        });
        found[at].1 = match (found[at].1, Column::of(value)) {
            (Some(a), Some(b)) => Some(a.join(b)),
            (a, b) => a.or(b),
        };
    }
    found.into_iter().map(|(name, column)| (name, column.unwrap_or(Column::Text))).collect()
}

fn write_layer(dataset: &mut Dataset, layer: &GpkgLayer<'_>, path: &Path) -> Result<()> {
    let srs = to_srs(layer.crs)?;
    let fail = |e: GdalError| Error::write(path, format!("layer '{}': {}", layer.name, log::cause(&e)));
    let identifier = if layer.identifier.is_empty() { layer.name } else { layer.identifier };
    let columns = columns(layer);
    // A field of the feature id's name would be taken for the id.
    let mut fid = "fid".to_string();
    while columns.iter().any(|(name, _)| name.eq_ignore_ascii_case(&fid)) {
        fid.push('_');
    }
    let (identifier, description) = (format!("IDENTIFIER={identifier}"), format!("DESCRIPTION={}", layer.description));
    let (fid, geometry) = (format!("FID={fid}"), format!("GEOMETRY_NAME={GEOMETRY_COLUMN}"));
    let mut transaction = dataset.start_transaction().map_err(fail)?;
    let mut table = transaction
        .create_layer(LayerOptions {
            name: layer.name,
            srs: (layer.geometry != GeometryKind::None).then_some(&srs),
            ty: layer.geometry.ogr(),
            options: Some(&[&identifier, &description, &fid, &geometry, "SPATIAL_INDEX=YES"]),
        })
        .map_err(fail)?;
    for (name, column) in &columns {
        let kind = match column {
            Column::Integer => OGRFieldType::OFTInteger64,
            Column::Real => OGRFieldType::OFTReal,
            Column::Date => OGRFieldType::OFTDate,
            Column::Text => OGRFieldType::OFTString,
        };
        let field = FieldDefn::new(name, kind).map_err(fail)?;
        field.add_to_layer(&table).map_err(fail)?;
    }
    for (number, feature) in layer.features.iter().enumerate() {
        write_feature(&mut table, layer, &columns, feature).map_err(|problem| match problem {
            Problem::Gdal(e) => fail(e),
            Problem::Kind => Error::argument(
                format!("layer '{}', feature {}", layer.name, number + 1),
                "a geometry of another kind than the layer's",
                format!("it must be {:?}", layer.geometry),
            ),
        })?;
    }
    transaction.commit().map_err(fail)
}

enum Problem {
    Gdal(GdalError),
    Kind,
}

impl From<GdalError> for Problem {
    fn from(e: GdalError) -> Self {
        Problem::Gdal(e)
    }
}

fn write_feature(
    table: &mut gdal::vector::Layer<'_>,
    layer: &GpkgLayer<'_>,
    columns: &[(&str, Column)],
    feature: &Feature,
) -> std::result::Result<(), Problem> {
    let mut out = gdal::vector::Feature::new(table.defn())?;
    if let Some(geometry) = &feature.geometry {
        out.set_geometry(layer.geometry.admit(geometry).ok_or(Problem::Kind)?.to_gdal()?)?;
    }
    for (index, (name, column)) in columns.iter().enumerate() {
        let Some(value) = feature.properties.get(*name).filter(|v| !v.is_null()) else { continue };
        match (column, value) {
            (Column::Integer, Value::Bool(v)) => out.set_field_integer64(index, i64::from(*v))?,
            (Column::Real, Value::Bool(v)) => out.set_field_double(index, f64::from(u8::from(*v)))?,
            (Column::Integer, Value::Number(n)) => out.set_field_integer64(index, n.as_i64().unwrap_or_default())?,
            (Column::Real, Value::Number(n)) => out.set_field_double(index, n.as_f64().unwrap_or_default())?,
            // GDAL's strings end at a NUL.
            (_, Value::String(s)) => out.set_field_string(index, &s.replace('\0', ""))?,
            (_, other) => out.set_field_string(index, &other.to_string())?,
        }
    }
    out.create(table)?;
    Ok(())
}

/// The `layer_styles` table as QGIS's `QgsOgrProviderMetadata::saveStyle` makes it: it is looked up by table and geometry
/// column with an empty schema.
fn write_styles(dataset: &Dataset, options: &GpkgOptions<'_>) -> gdal::errors::Result<()> {
    if options.styles.is_empty() {
        return Ok(());
    }
    let run = |sql: &str| dataset.execute_sql(sql, None, Dialect::DEFAULT).map(|_| ());
    run("CREATE TABLE layer_styles (\
         id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, \
         f_table_catalog TEXT(256), f_table_schema TEXT(256), f_table_name TEXT(256), f_geometry_column TEXT(256), \
         styleName TEXT(30), styleQML TEXT, styleSLD TEXT, useAsDefault BOOLEAN, description TEXT, owner TEXT(30), \
         ui TEXT(30), update_time DATETIME DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')))")?;
    let date = quoted(options.date);
    run(&format!(
        "INSERT INTO gpkg_contents (table_name, data_type, identifier, description, last_change) \
         VALUES ('layer_styles', 'attributes', 'layer_styles', 'Styles of the layers for QGIS', {date})"
    ))?;
    for style in options.styles {
        let (layer, qml, sld) = (quoted(style.layer), quoted(&style.qml), quoted(&style.sld));
        let name = if style.name.is_empty() { style.layer } else { style.name };
        let name = quoted(&name.chars().take(30).collect::<String>());
        run(&format!(
            "INSERT INTO layer_styles (f_table_catalog, f_table_schema, f_table_name, f_geometry_column, styleName, \
             styleQML, styleSLD, useAsDefault, description, owner, ui, update_time) \
             VALUES ('', '', {layer}, '{GEOMETRY_COLUMN}', {name}, {qml}, {sld}, 1, '', '', NULL, {date})"
        ))?;
    }
    Ok(())
}

/// An SQL string.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\0', "").replace('\'', "''"))
}
