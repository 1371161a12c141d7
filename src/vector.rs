//! Vector features in memory: geometry with attributes, as read from any file. No GDAL, no files.

use geo::{Geometry, LineString, MultiPolygon};
use serde_json::{Map, Value};

/// One feature: a geometry and its attributes.
#[derive(Debug, Clone, PartialEq)]
pub struct Feature {
    /// Geometry in the CRS of its layer; `None` where the file holds a null geometry.
    pub geometry: Option<Geometry<f64>>,
    /// Attributes by field name, in file order.
    pub properties: Map<String, Value>,
}

impl Feature {
    /// Its area; `None` where it is not one.
    pub fn area(&self) -> Option<MultiPolygon<f64>> {
        match self.geometry.as_ref()? {
            Geometry::Polygon(p) => Some(p.clone().into()),
            Geometry::MultiPolygon(m) => Some(m.clone()),
            _ => None,
        }
    }

    /// Its lines; none where it is something else.
    pub fn lines(&self) -> Vec<LineString<f64>> {
        match &self.geometry {
            Some(Geometry::LineString(l)) => vec![l.clone()],
            Some(Geometry::MultiLineString(m)) => m.0.clone(),
            _ => Vec::new(),
        }
    }

    /// The text attribute `key`; `None` when it is missing, null or blank. Numbers are written as text.
    pub fn text(&self, key: &str) -> Option<String> {
        match self.properties.get(key)? {
            Value::String(s) if !s.trim().is_empty() => Some(s.trim().to_string()),
            Value::Number(n) => Some(n.to_string()),
            Value::Bool(b) => Some(b.to_string()),
            _ => None,
        }
    }

    /// The numeric attribute `key`, also where it is written as text.
    pub fn number(&self, key: &str) -> Option<f64> {
        match self.properties.get(key)? {
            Value::Number(n) => n.as_f64(),
            Value::String(s) => s.trim().parse().ok(),
            _ => None,
        }
    }
}

/// The features of one layer.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// Layer name.
    pub name: String,
    /// Features in file order.
    pub features: Vec<Feature>,
    /// What had to be guessed when it was read.
    pub notes: Vec<String>,
}
