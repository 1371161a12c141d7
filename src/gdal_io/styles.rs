//! Styles of vector layers: what a class of features looks like, as QML for QGIS and as SLD for others. Pure text.
//!
//! One model, [`Style`], has two writings; the functions below build the model for our own layers. QML follows the
//! documents that QGIS 3.22 saves, SLD is Symbology Encoding 1.1.

use crate::borders::Certainty;
use std::fmt::Write as _;

/// A colour: red, green, blue, opacity.
pub type Rgba = [u8; 4];

/// How a layer is drawn: by the value of one field, with labels.
#[derive(Debug, Clone, PartialEq)]
pub struct Style {
    /// The field whose value decides.
    pub field: String,
    /// Its classes, in the order of the legend.
    pub classes: Vec<Class>,
    /// Labels; `None` for none.
    pub labels: Option<Labels>,
}

/// The features with one value.
#[derive(Debug, Clone, PartialEq)]
pub struct Class {
    /// The value, as text; empty stands for all values that no other class names.
    pub value: String,
    /// Text in the legend.
    pub label: String,
    /// How they are drawn.
    pub symbol: Symbol,
}

/// How one feature is drawn. Sizes are millimetres on paper.
#[derive(Debug, Clone, PartialEq)]
pub enum Symbol {
    /// An area.
    Fill {
        /// Inside.
        colour: Rgba,
        /// Its edge.
        outline: Rgba,
        /// Width of the edge.
        width_mm: f64,
    },
    /// A line.
    Line {
        /// Colour.
        colour: Rgba,
        /// Width.
        width_mm: f64,
        /// Dash and gap, in turn; empty for a solid line.
        dash_mm: Vec<f64>,
    },
    /// A point.
    Marker {
        /// Its shape.
        shape: Shape,
        /// Diameter.
        size_mm: f64,
        /// Inside.
        colour: Rgba,
    },
}

/// Shape of a marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Circle.
    Circle,
    /// Square.
    Square,
    /// Diamond.
    Diamond,
    /// Triangle.
    Triangle,
    /// Five-pointed star.
    Star,
    /// Cross.
    Cross,
}

impl Shape {
    fn qml(self) -> &'static str {
        match self {
            Shape::Circle => "circle",
            Shape::Square => "square",
            Shape::Diamond => "diamond",
            Shape::Triangle => "triangle",
            Shape::Star => "star",
            Shape::Cross => "cross_fill",
        }
    }

    /// The nearest of the names that SLD knows.
    fn sld(self) -> &'static str {
        match self {
            Shape::Circle => "circle",
            Shape::Square | Shape::Diamond => "square",
            Shape::Triangle => "triangle",
            Shape::Star => "star",
            Shape::Cross => "cross",
        }
    }
}

/// Labels with a light halo.
#[derive(Debug, Clone, PartialEq)]
pub struct Labels {
    /// Field with the text.
    pub field: String,
    /// Size in points.
    pub size_pt: f64,
    /// Colour.
    pub colour: Rgba,
    /// Whether in italics.
    pub italic: bool,
    /// Where it stands.
    pub placement: Placement,
}

/// Where a label stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// Beside a point.
    BesidePoint,
    /// Bent along a line, above it.
    AboveLine,
    /// Bent along a line, on it.
    OnLine,
    /// Level, inside an area.
    InsideArea,
}

/// Polygons by the number in field `code`, half see-through, labelled by field `name`.
pub fn polygons(classes: &[(u16, String, [u8; 3])]) -> Style {
    let class = |(code, label, [r, g, b]): &(u16, String, [u8; 3])| Class {
        value: code.to_string(),
        label: label.clone(),
        symbol: Symbol::Fill { colour: [*r, *g, *b, 96], outline: [r / 2, g / 2, b / 2, 200], width_mm: 0.3 },
    };
    Style {
        field: "code".into(),
        classes: classes.iter().map(class).collect(),
        labels: Some(Labels {
            field: "name".into(),
            size_pt: 11.0,
            colour: [50, 40, 40, 255],
            italic: false,
            placement: Placement::InsideArea,
        }),
    }
}

/// The word for a certainty in attributes, as [`borders`] expects it in field `certainty`.
pub fn certainty_word(certainty: Certainty) -> &'static str {
    match certainty {
        Certainty::Conjectural => "conjectural",
        Certainty::Approximate => "approximate",
        Certainty::Treaty => "treaty",
        Certainty::Surveyed => "surveyed",
    }
}

/// Border lines by field `certainty` ([`certainty_word`]): the less is known, the more broken.
pub fn borders() -> Style {
    let class = |certainty, label: &str, width_mm, dash_mm: &[f64]| Class {
        value: certainty_word(certainty).into(),
        label: label.into(),
        symbol: line([110, 30, 40, 255], width_mm, dash_mm),
    };
    Style {
        field: "certainty".into(),
        classes: vec![
            class(Certainty::Surveyed, "surveyed", 0.5, &[]),
            class(Certainty::Treaty, "by treaty", 0.5, &[4.0, 1.0]),
            class(Certainty::Approximate, "approximate", 0.4, &[2.0, 1.2]),
            class(Certainty::Conjectural, "conjectural", 0.35, &[0.6, 1.2]),
        ],
        labels: None,
    }
}

/// Places by field `kind`, labelled by field `name`.
pub fn places() -> Style {
    let class = |value: &str, shape, size_mm, colour| Class {
        value: value.into(),
        label: if value.is_empty() { "other" } else { value }.into(),
        symbol: Symbol::Marker { shape, size_mm, colour },
    };
    Style {
        field: "kind".into(),
        classes: vec![
            class("capital", Shape::Star, 3.6, [150, 20, 20, 255]),
            class("town", Shape::Circle, 2.2, [40, 40, 40, 255]),
            class("fortress", Shape::Square, 2.2, [40, 40, 40, 255]),
            class("port", Shape::Diamond, 2.4, [20, 60, 120, 255]),
            class("monastery", Shape::Cross, 2.4, [90, 50, 110, 255]),
            class("pass", Shape::Triangle, 2.0, [110, 90, 60, 255]),
            class("", Shape::Circle, 1.6, [90, 90, 90, 255]),
        ],
        labels: Some(Labels {
            field: "name".into(),
            size_pt: 8.5,
            colour: [30, 30, 30, 255],
            italic: false,
            placement: Placement::BesidePoint,
        }),
    }
}

/// Summits, one symbol, labelled by field `label`.
pub fn peaks() -> Style {
    let symbol = Symbol::Marker { shape: Shape::Triangle, size_mm: 2.0, colour: [90, 60, 40, 255] };
    Style {
        field: "rank".into(),
        classes: vec![Class { value: String::new(), label: "summit".into(), symbol }],
        labels: Some(Labels {
            field: "label".into(),
            size_pt: 7.5,
            colour: [90, 60, 40, 255],
            italic: true,
            placement: Placement::BesidePoint,
        }),
    }
}

/// Rivers by field `rank`, 1 the greatest, labelled by field `name`.
pub fn rivers() -> Style {
    let class = |rank: &str, width_mm| Class {
        value: rank.into(),
        label: if rank.is_empty() { "other".into() } else { format!("rank {rank}") },
        symbol: line([60, 110, 170, 255], width_mm, &[]),
    };
    Style {
        field: "rank".into(),
        classes: vec![
            class("1", 0.8),
            class("2", 0.6),
            class("3", 0.45),
            class("4", 0.35),
            class("5", 0.25),
            class("", 0.25),
        ],
        labels: Some(Labels {
            field: "name".into(),
            size_pt: 7.5,
            colour: [40, 90, 150, 255],
            italic: true,
            placement: Placement::AboveLine,
        }),
    }
}

/// Contours by field `is_index` (1 or 0): index contours bold and labelled by field `label`, which is empty on others.
pub fn contours() -> Style {
    let class = |value: &str, label: &str, width_mm, alpha| Class {
        value: value.into(),
        label: label.into(),
        symbol: line([130, 90, 50, alpha], width_mm, &[]),
    };
    Style {
        field: "is_index".into(),
        classes: vec![class("1", "index contour", 0.3, 200), class("0", "contour", 0.15, 140)],
        labels: Some(Labels {
            field: "label".into(),
            size_pt: 6.5,
            colour: [110, 75, 40, 255],
            italic: false,
            placement: Placement::OnLine,
        }),
    }
}

fn line(colour: Rgba, width_mm: f64, dash_mm: &[f64]) -> Symbol {
    Symbol::Line { colour, width_mm, dash_mm: dash_mm.to_vec() }
}

impl Style {
    /// The style as a QML document, which QGIS loads.
    pub fn qml(&self) -> String {
        let mut out = String::from("<!DOCTYPE qgis PUBLIC 'http://mrcc.com/qgis.dtd' 'SYSTEM'>\n");
        let labelled = u8::from(self.labels.is_some());
        let _ = writeln!(
            out,
            "<qgis version=\"3.22.0\" styleCategories=\"Symbology|Labeling\" labelsEnabled=\"{labelled}\">\n \
             <renderer-v2 type=\"categorizedSymbol\" attr=\"{}\" symbollevels=\"0\" enableorderby=\"0\" \
             forceraster=\"0\">\n  <categories>",
            escape(&self.field)
        );
        for (k, class) in self.classes.iter().enumerate() {
            let (value, label) = (escape(&class.value), escape(&class.label));
            let kind = match class.value.parse::<i64>() {
                Ok(_) => "long",
                Err(_) => "string",
            };
            let _ = writeln!(
                out,
                "   <category render=\"true\" symbol=\"{k}\" value=\"{value}\" type=\"{kind}\" label=\"{label}\"/>"
            );
        }
        out.push_str("  </categories>\n  <symbols>\n");
        for (k, class) in self.classes.iter().enumerate() {
            class.symbol.qml(k, &mut out);
        }
        out.push_str("  </symbols>\n </renderer-v2>\n");
        if let Some(labels) = &self.labels {
            labels.qml(&mut out);
        }
        out.push_str(" <blendMode>0</blendMode>\n <featureBlendMode>0</featureBlendMode>\n</qgis>\n");
        out
    }

    /// The style as a QML document for a layer that QGIS's temporal controller plays: features are shown from the date in
    /// field `start` to that in `end`, both included.
    pub fn qml_in_time(&self, start: &str, end: &str) -> String {
        // Mode 2 is "separate fields for start and end date/time", limit mode 1 includes the end.
        let temporal = format!(
            "<temporal enabled=\"1\" mode=\"2\" limitMode=\"1\" startField=\"{}\" endField=\"{}\" startExpression=\"\" \
             endExpression=\"\" durationField=\"\" durationUnit=\"min\" fixedDuration=\"0\" accumulate=\"0\">\n  \
             <fixedRange>\n   <start></start>\n   <end></end>\n  </fixedRange>\n </temporal>\n <renderer-v2 ",
            escape(start),
            escape(end)
        );
        self.qml()
            .replacen("styleCategories=\"Symbology|Labeling\"", "styleCategories=\"Symbology|Labeling|Temporal\"", 1)
            .replacen("<renderer-v2 ", &temporal, 1)
    }

    /// The style as an SLD document for the layer `name`, without labels.
    pub fn sld(&self, name: &str) -> String {
        let name = escape(name);
        let mut out = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <StyledLayerDescriptor xmlns=\"http://www.opengis.net/sld\" xmlns:ogc=\"http://www.opengis.net/ogc\" \
             xmlns:se=\"http://www.opengis.net/se\" version=\"1.1.0\">\n <NamedLayer>\n  <se:Name>{name}</se:Name>\n  \
             <UserStyle>\n   <se:Name>{name}</se:Name>\n   <se:FeatureTypeStyle>\n"
        );
        for class in &self.classes {
            let label = escape(&class.label);
            let _ = writeln!(
                out,
                "    <se:Rule>\n     <se:Name>{label}</se:Name>\n     <se:Description><se:Title>{label}</se:Title>\
                 </se:Description>"
            );
            if class.value.is_empty() {
                out.push_str("     <se:ElseFilter/>\n");
            } else {
                let _ = writeln!(
                    out,
                    "     <ogc:Filter><ogc:PropertyIsEqualTo><ogc:PropertyName>{}</ogc:PropertyName>\
                     <ogc:Literal>{}</ogc:Literal></ogc:PropertyIsEqualTo></ogc:Filter>",
                    escape(&self.field),
                    escape(&class.value)
                );
            }
            class.symbol.sld(&mut out);
            out.push_str("    </se:Rule>\n");
        }
        out.push_str("   </se:FeatureTypeStyle>\n  </UserStyle>\n </NamedLayer>\n</StyledLayerDescriptor>\n");
        out
    }
}

/// A colour as QML writes it.
fn qml_colour([r, g, b, a]: Rgba) -> String {
    format!("{r},{g},{b},{a}")
}

impl Symbol {
    fn qml(&self, name: usize, out: &mut String) {
        let (kind, class, options) = match self {
            Symbol::Fill { colour, outline, width_mm } => (
                "fill",
                "SimpleFill",
                vec![
                    ("color", qml_colour(*colour)),
                    ("style", "solid".into()),
                    ("outline_color", qml_colour(*outline)),
                    ("outline_style", "solid".into()),
                    ("outline_width", width_mm.to_string()),
                    ("outline_width_unit", "MM".into()),
                    ("joinstyle", "round".into()),
                ],
            ),
            Symbol::Line { colour, width_mm, dash_mm } => (
                "line",
                "SimpleLine",
                vec![
                    ("line_color", qml_colour(*colour)),
                    ("line_style", "solid".into()),
                    ("line_width", width_mm.to_string()),
                    ("line_width_unit", "MM".into()),
                    ("joinstyle", "round".into()),
                    ("capstyle", if dash_mm.is_empty() { "round" } else { "flat" }.into()),
                    ("use_custom_dash", if dash_mm.is_empty() { "0" } else { "1" }.into()),
                    ("customdash", if dash_mm.is_empty() { "5;2".into() } else { join(dash_mm, ";") }),
                    ("customdash_unit", "MM".into()),
                ],
            ),
            Symbol::Marker { shape, size_mm, colour } => (
                "marker",
                "SimpleMarker",
                vec![
                    ("name", shape.qml().into()),
                    ("color", qml_colour(*colour)),
                    ("outline_color", "255,255,255,255".into()),
                    ("outline_style", "solid".into()),
                    ("outline_width", "0.2".into()),
                    ("outline_width_unit", "MM".into()),
                    ("size", size_mm.to_string()),
                    ("size_unit", "MM".into()),
                ],
            ),
        };
        let _ = writeln!(
            out,
            "   <symbol type=\"{kind}\" name=\"{name}\" alpha=\"1\" clip_to_extent=\"1\" force_rhr=\"0\">\n    \
             <layer class=\"{class}\" enabled=\"1\" pass=\"0\" locked=\"0\">\n     <Option type=\"Map\">"
        );
        for (key, value) in &options {
            let _ = writeln!(out, "      <Option type=\"QString\" name=\"{key}\" value=\"{value}\"/>");
        }
        out.push_str("     </Option>\n    </layer>\n   </symbol>\n");
    }

    fn sld(&self, out: &mut String) {
        let hex = |[r, g, b, _]: Rgba| format!("#{r:02x}{g:02x}{b:02x}");
        let opacity = |c: Rgba| format!("{:.2}", f64::from(c[3]) / 255.0);
        // SLD sizes are pixels of 0.28 mm.
        let pixels = |mm: f64| format!("{:.2}", mm / 0.28);
        let stroke = |colour: Rgba, width_mm: f64, dash_mm: &[f64]| {
            let dash = match dash_mm.is_empty() {
                true => String::new(),
                false => {
                    let lengths: Vec<String> = dash_mm.iter().map(|d| pixels(*d)).collect();
                    format!("<se:SvgParameter name=\"stroke-dasharray\">{}</se:SvgParameter>", lengths.join(" "))
                }
            };
            format!(
                "<se:Stroke><se:SvgParameter name=\"stroke\">{}</se:SvgParameter><se:SvgParameter \
                 name=\"stroke-opacity\">{}</se:SvgParameter><se:SvgParameter name=\"stroke-width\">{}\
                 </se:SvgParameter>{dash}</se:Stroke>",
                hex(colour),
                opacity(colour),
                pixels(width_mm)
            )
        };
        let fill = |colour: Rgba| {
            format!(
                "<se:Fill><se:SvgParameter name=\"fill\">{}</se:SvgParameter><se:SvgParameter \
                 name=\"fill-opacity\">{}</se:SvgParameter></se:Fill>",
                hex(colour),
                opacity(colour)
            )
        };
        let _ = match self {
            Symbol::Fill { colour, outline, width_mm } => writeln!(
                out,
                "     <se:PolygonSymbolizer>{}{}</se:PolygonSymbolizer>",
                fill(*colour),
                stroke(*outline, *width_mm, &[])
            ),
            Symbol::Line { colour, width_mm, dash_mm } => {
                writeln!(out, "     <se:LineSymbolizer>{}</se:LineSymbolizer>", stroke(*colour, *width_mm, dash_mm))
            }
            Symbol::Marker { shape, size_mm, colour } => writeln!(
                out,
                "     <se:PointSymbolizer><se:Graphic><se:Mark><se:WellKnownName>{}</se:WellKnownName>{}</se:Mark>\
                 <se:Size>{}</se:Size></se:Graphic></se:PointSymbolizer>",
                shape.sld(),
                fill(*colour),
                pixels(*size_mm)
            ),
        };
    }
}

fn join(numbers: &[f64], separator: &str) -> String {
    numbers.iter().map(f64::to_string).collect::<Vec<_>>().join(separator)
}

impl Labels {
    fn qml(&self, out: &mut String) {
        // QGIS: placement 0 around a point, 3 curved, 4 horizontal; flags 1 on the line, 2 above it.
        let (placement, flags) = match self.placement {
            Placement::BesidePoint => (6, 10),
            Placement::AboveLine => (3, 2),
            Placement::OnLine => (3, 1),
            Placement::InsideArea => (4, 10),
        };
        let _ = writeln!(
            out,
            " <labeling type=\"simple\">\n  <settings calloutType=\"simple\">\n   \
             <text-style fieldName=\"{}\" isExpression=\"0\" fontSize=\"{}\" fontSizeUnit=\"Point\" textColor=\"{}\" \
             textOpacity=\"1\" fontItalic=\"{}\" fontWeight=\"50\" fontKerning=\"1\" multilineHeight=\"1\" \
             allowHtml=\"0\">\n    \
             <text-buffer bufferDraw=\"1\" bufferSize=\"0.7\" bufferSizeUnits=\"MM\" bufferColor=\"255,255,255,255\" \
             bufferOpacity=\"0.75\" bufferJoinStyle=\"128\" bufferNoFill=\"1\"/>\n   </text-style>\n   \
             <placement placement=\"{placement}\" placementFlags=\"{flags}\" priority=\"5\" dist=\"0.6\" \
             distUnits=\"MM\" offsetType=\"1\" maxCurvedCharAngleIn=\"25\" maxCurvedCharAngleOut=\"-25\" \
             predefinedPositionOrder=\"TR,TL,BR,BL,R,L,TSR,BSR\" repeatDistance=\"0\" polygonPlacementFlags=\"2\"/>\n   \
             <rendering drawLabels=\"1\" displayAll=\"0\" obstacle=\"1\" fontLimitPixelSize=\"0\" scaleVisibility=\"0\" \
             upsidedownLabels=\"0\" mergeLines=\"1\" limitNumLabels=\"0\"/>\n  </settings>\n </labeling>",
            escape(&self.field),
            self.size_pt,
            qml_colour(self.colour),
            u8::from(self.italic),
        );
    }
}

/// A QML document for a raster of codes: QGIS loads it for `name.tif` when it lies beside it as `name.qml`. Each class is
/// (code, name, colour); an opacity of 0 hides it.
pub fn raster_classes_qml(classes: &[(u16, String, Rgba)], opacity: f64) -> String {
    let mut out = format!(
        "<!DOCTYPE qgis PUBLIC 'http://mrcc.com/qgis.dtd' 'SYSTEM'>\n\
         <qgis version=\"3.22.0\" styleCategories=\"Symbology\">\n <pipe>\n  \
         <rasterrenderer type=\"paletted\" band=\"1\" opacity=\"{opacity}\" alphaBand=\"-1\" \
         nodataColor=\"\">\n   <colorPalette>\n"
    );
    for (code, name, [r, g, b, a]) in classes {
        let _ = writeln!(
            out,
            "    <paletteEntry value=\"{code}\" label=\"{}\" color=\"#{r:02x}{g:02x}{b:02x}\" alpha=\"{a}\"/>",
            escape(name)
        );
    }
    out.push_str("   </colorPalette>\n  </rasterrenderer>\n </pipe>\n <blendMode>0</blendMode>\n</qgis>\n");
    out
}

/// Text for XML, in elements and in quoted attributes. Characters that XML 1.0 forbids are left out.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' | '\r' => out.push(' '),
            '\u{fffe}' | '\u{ffff}' => {}
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every element is closed in order and every quote is: enough of XML for a document without CDATA and comments.
    fn assert_well_formed(xml: &str) {
        let mut open: Vec<&str> = Vec::new();
        let mut rest = xml;
        while let Some(at) = rest.find('<') {
            assert!(!rest[..at].contains('>'), "stray > in {}", &rest[..at]);
            let end = at + rest[at..].find('>').expect("unclosed tag");
            let tag = &rest[at + 1..end];
            rest = &rest[end + 1..];
            if tag.starts_with(['!', '?']) {
                continue;
            }
            assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
            assert!(!tag.contains('<'), "{tag}");
            match tag.strip_prefix('/') {
                Some(name) => assert_eq!(open.pop(), Some(name)),
                None if tag.ends_with('/') => {}
                None => open.push(tag.split_whitespace().next().unwrap()),
            }
        }
        assert!(open.is_empty(), "{open:?}");
    }

    fn all() -> Vec<(&'static str, Style)> {
        let classes = [(1, "Kingdom of <Georgia> & \"Alania\"".to_string(), [200, 30, 30])];
        vec![
            ("polities", polygons(&classes)),
            ("borders", borders()),
            ("places", places()),
            ("peaks", peaks()),
            ("rivers", rivers()),
            ("contours", contours()),
        ]
    }

    #[test]
    fn documents_are_well_formed() {
        for (name, style) in all() {
            assert_well_formed(&style.qml());
            assert_well_formed(&style.sld(name));
        }
        assert_well_formed(&raster_classes_qml(&[(1, "a & b".into(), [1, 2, 3, 255])], 0.5));
    }

    #[test]
    fn a_style_in_time_names_the_fields() {
        let qml = borders().qml_in_time("start_date", "end_date");
        assert_well_formed(&qml);
        assert!(qml.contains("styleCategories=\"Symbology|Labeling|Temporal\""));
        assert!(qml.contains(
            "<temporal enabled=\"1\" mode=\"2\" limitMode=\"1\" startField=\"start_date\" endField=\"end_date\""
        ));
        assert_eq!(qml.matches("<renderer-v2 ").count(), 1);
    }

    #[test]
    fn every_class_has_its_symbol() {
        let qml = polygons(&[(3, "Shirvan".into(), [1, 2, 3]), (9, "Alania".into(), [4, 5, 6])]).qml();
        assert!(qml.contains("symbol=\"1\" value=\"9\" type=\"long\" label=\"Alania\""), "{qml}");
        assert_eq!(qml.matches("<symbol ").count(), 2);
        assert!(qml.contains("name=\"color\" value=\"4,5,6,96\""));
    }

    #[test]
    fn text_is_escaped() {
        assert_eq!(escape("a<b>&\"c\"\u{1}\nd"), "a&lt;b&gt;&amp;&quot;c&quot; d");
    }
}
