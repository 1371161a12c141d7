//! Figures beside the map sheet: areas, lines and texts in place, written as SVG or painted as PNG. Knows nothing of maps.

use super::canvas::{Canvas, Ink, Mark};
use super::furniture::{Align, Pen};
use super::lettering::{Fonts, Style};
use super::tint::PAPER;
use crate::error::{Error, Result};
use geo::{Area as _, BooleanOps, BoundingRect, MultiPolygon, Polygon};
use std::fmt::Write as _;
use tiny_skia::PathBuilder;

/// Which point of a text its position is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// Its beginning.
    Start,
    /// Its middle.
    Middle,
    /// Its end.
    End,
}

/// One thing in a figure; lengths are in its unit, y runs down.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// A filled area.
    Area {
        /// Where.
        area: MultiPolygon<f64>,
        /// sRGB.
        fill: [u8; 3],
        /// 0 to 1.
        opacity: f64,
    },
    /// A line.
    Line {
        /// Its course.
        points: Vec<[f64; 2]>,
        /// sRGB.
        colour: [u8; 3],
        /// Width.
        width: f64,
        /// Lengths of strokes and gaps; empty for a solid line.
        dash: Vec<f64>,
    },
    /// A line of text.
    Text {
        /// What it says.
        text: String,
        /// Where its baseline begins, has its middle or ends.
        at: [f64; 2],
        /// Height of the letters.
        size: f64,
        /// Which.
        anchor: Anchor,
        /// Whether it is heavier.
        is_bold: bool,
        /// sRGB.
        colour: [u8; 3],
        /// Whether it has a light halo.
        has_halo: bool,
    },
}

/// A figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Width.
    pub width: f64,
    /// Height.
    pub height: f64,
    /// What it is, for those who cannot see it.
    pub title: String,
    /// Its things, the lowest first.
    pub shapes: Vec<Shape>,
}

/// A rectangle from corner to corner.
pub fn rectangle(x0: f64, y0: f64, x1: f64, y1: f64) -> MultiPolygon<f64> {
    Polygon::new(vec![(x0, y0), (x1, y0), (x1, y1), (x0, y1)].into(), vec![]).into()
}

/// Diagonal stripes of `area`, `width` wide, `period` from one to the next.
pub fn striped(area: &MultiPolygon<f64>, period: f64, width: f64) -> MultiPolygon<f64> {
    let Some(r) = area.bounding_rect() else { return MultiPolygon::new(vec![]) };
    let (low, high) = (r.min().x - r.max().y, r.max().x - r.min().y);
    // Stripes hang together over the figure: they are counted from its corner.
    let first = (low / period).floor() as i64;
    let last = (high / period).ceil() as i64;
    let (top, bottom) = (r.min().y, r.max().y);
    let stripes: Vec<Polygon<f64>> = (first..=last.min(first + 20_000))
        .map(|k| k as f64 * period)
        .map(|c| {
            let corners =
                vec![(c + top, top), (c + width + top, top), (c + width + bottom, bottom), (c + bottom, bottom)];
            Polygon::new(corners.into(), vec![])
        })
        .collect();
    area.intersection(&MultiPolygon::new(stripes))
}

impl Figure {
    /// An empty figure.
    pub fn new(width: f64, height: f64, title: String) -> Figure {
        Figure { width, height, title, shapes: Vec::new() }
    }

    /// Adds a filled area.
    pub fn area(&mut self, area: MultiPolygon<f64>, fill: [u8; 3], opacity: f64) {
        if area.unsigned_area() > 0.0 {
            self.shapes.push(Shape::Area { area, fill, opacity });
        }
    }

    /// Adds a line.
    pub fn line(&mut self, points: Vec<[f64; 2]>, colour: [u8; 3], width: f64, dash: &[f64]) {
        if points.len() > 1 {
            self.shapes.push(Shape::Line { points, colour, width, dash: dash.to_vec() });
        }
    }

    /// Adds a text.
    pub fn text(&mut self, text: &str, at: [f64; 2], size: f64, anchor: Anchor, colour: [u8; 3]) {
        let text = text.to_string();
        self.shapes.push(Shape::Text { text, at, size, anchor, is_bold: false, colour, has_halo: false });
    }

    /// Adds a heavier text.
    pub fn bold(&mut self, text: &str, at: [f64; 2], size: f64, anchor: Anchor, colour: [u8; 3]) {
        let text = text.to_string();
        self.shapes.push(Shape::Text { text, at, size, anchor, is_bold: true, colour, has_halo: false });
    }

    /// The figure as an SVG document, texts as texts.
    pub fn to_svg(&self) -> String {
        let hex = |[r, g, b]: [u8; 3]| format!("#{r:02x}{g:02x}{b:02x}");
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" \
             font-family=\"'Noto Serif', 'Source Serif 4', Georgia, 'DejaVu Serif', 'Times New Roman', serif\">\n\
             <title>{2}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"{3}\"/>\n",
            number(self.width),
            number(self.height),
            escaped(&self.title),
            hex(PAPER)
        );
        for shape in &self.shapes {
            let _ = match shape {
                Shape::Area { area, fill, opacity } => {
                    let mut d = String::new();
                    for ring in area.iter().flat_map(|p| std::iter::once(p.exterior()).chain(p.interiors())) {
                        for (k, c) in ring.0.iter().take(ring.0.len().saturating_sub(1)).enumerate() {
                            let _ = write!(d, "{}{} {}", if k == 0 { 'M' } else { 'L' }, number(c.x), number(c.y));
                        }
                        d.push('Z');
                    }
                    let opacity =
                        if *opacity < 1.0 { format!(" fill-opacity=\"{opacity:.2}\"") } else { String::new() };
                    writeln!(out, "<path d=\"{d}\" fill=\"{}\"{opacity} fill-rule=\"evenodd\"/>", hex(*fill))
                }
                Shape::Line { points, colour, width, dash } => {
                    let points: Vec<String> =
                        points.iter().map(|p| format!("{},{}", number(p[0]), number(p[1]))).collect();
                    let dash: Vec<String> = dash.iter().map(|d| number(*d)).collect();
                    let dash = if dash.is_empty() {
                        String::new()
                    } else {
                        format!(" stroke-dasharray=\"{}\"", dash.join(" "))
                    };
                    writeln!(
                        out,
                        "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"{dash} \
                         stroke-linejoin=\"round\"/>",
                        points.join(" "),
                        hex(*colour),
                        number(*width)
                    )
                }
                Shape::Text { text, at, size, anchor, is_bold, colour, has_halo } => {
                    let anchor = match anchor {
                        Anchor::Start => "start",
                        Anchor::Middle => "middle",
                        Anchor::End => "end",
                    };
                    let weight = if *is_bold { " font-weight=\"600\"" } else { "" };
                    let halo = if *has_halo {
                        format!(
                            " stroke=\"{}\" stroke-width=\"{}\" paint-order=\"stroke\"",
                            hex(PAPER),
                            number(0.25 * size)
                        )
                    } else {
                        String::new()
                    };
                    writeln!(
                        out,
                        "<text x=\"{}\" y=\"{}\" font-size=\"{}\" text-anchor=\"{anchor}\"{weight} fill=\"{}\"{halo}>{}</text>",
                        number(at[0]),
                        number(at[1]),
                        number(*size),
                        hex(*colour),
                        escaped(text)
                    )
                }
            };
        }
        out.push_str("</svg>\n");
        out
    }

    /// The figure as a PNG file, `scale` pixels per unit.
    ///
    /// # Errors
    /// [`Error::Argument`] where the size is beyond the painter.
    pub fn to_png(&self, scale: f64) -> Result<Vec<u8>> {
        let (width, height) = ((self.width * scale).ceil(), (self.height * scale).ceil());
        let too_large = || Error::argument("figure", format!("{width} x {height} pixels"), "choose a smaller one");
        let mut canvas = Canvas::new(width as usize, height as usize, PAPER).ok_or_else(too_large)?;
        let fonts = Fonts::embedded();
        let pen = Pen { fonts: &fonts, pt: scale as f32 };
        let px = |v: f64| (v * scale) as f32;
        for shape in &self.shapes {
            match shape {
                Shape::Area { area, fill, opacity } => {
                    let mut path = PathBuilder::new();
                    for polygon in area {
                        // Non-zero winding: holes must run against their outline.
                        push_ring(&mut path, polygon.exterior(), false, px);
                        polygon.interiors().iter().for_each(|r| push_ring(&mut path, r, true, px));
                    }
                    if let Some(path) = path.finish() {
                        canvas.draw(&Mark::Fill(path, Ink { rgb: *fill, opacity: *opacity as f32 }));
                    }
                }
                Shape::Line { points, colour, width, dash } => {
                    let mut path = PathBuilder::new();
                    for (k, p) in points.iter().enumerate() {
                        if k == 0 { path.move_to(px(p[0]), px(p[1])) } else { path.line_to(px(p[0]), px(p[1])) }
                    }
                    if let Some(path) = path.finish() {
                        let dash = dash.iter().map(|d| px(*d)).collect();
                        canvas.draw(&Mark::Stroke {
                            path,
                            ink: Ink { rgb: *colour, opacity: 1.0 },
                            width: px(*width),
                            dash,
                        });
                    }
                }
                Shape::Text { text, at, size, anchor, is_bold, colour, has_halo } => {
                    let align = match anchor {
                        Anchor::Start => Align::Left,
                        Anchor::Middle => Align::Centre,
                        Anchor::End => Align::Right,
                    };
                    let style = if *is_bold { Style::Semibold } else { Style::Regular };
                    let ink = Ink { rgb: *colour, opacity: 1.0 };
                    let mark = pen.text(text, style, *size as f32, 0.0, px(at[0]), px(at[1]), align, ink);
                    if let (Some(Mark::Fill(path, _)), true) = (&mark, *has_halo) {
                        let ink = Ink { rgb: PAPER, opacity: 0.8 };
                        canvas.draw(&Mark::line(path.clone(), ink, px(0.25 * size)));
                    }
                    if let Some(mark) = mark {
                        canvas.draw(&mark);
                    }
                }
            }
        }
        canvas.to_png("figure")
    }
}

/// How wide `text` is in letters of `size`, in the fonts of the map sheet.
pub fn text_width(text: &str, size: f64) -> f64 {
    thread_local! {
        static FONTS: Fonts = Fonts::embedded();
    }
    FONTS.with(|fonts| f64::from(fonts.shape(text, Style::Regular, false).width(size as f32, 0.0)))
}

fn push_ring(path: &mut PathBuilder, ring: &geo::LineString<f64>, is_hole: bool, px: impl Fn(f64) -> f32) {
    let twice: f64 = ring.lines().map(|l| l.start.x * l.end.y - l.end.x * l.start.y).sum();
    let mut points: Vec<_> = ring.0.iter().collect();
    if (twice > 0.0) == is_hole {
        points.reverse();
    }
    for (k, c) in points.iter().enumerate() {
        if k == 0 { path.move_to(px(c.x), px(c.y)) } else { path.line_to(px(c.x), px(c.y)) }
    }
    path.close();
}

/// A length with at most two digits behind the point.
fn number(v: f64) -> String {
    let text = format!("{v:.2}");
    let short = text.trim_end_matches('0').trim_end_matches('.');
    if short.is_empty() || short == "-0" { "0".to_string() } else { short.to_string() }
}

fn escaped(text: &str) -> String {
    let kept: String = text.chars().filter(|c| !c.is_control() && *c != '\u{fffe}' && *c != '\u{ffff}').collect();
    kept.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn svg_and_png_have_the_same_things() {
        let mut f = Figure::new(40.0, 20.0, "A <b> & c".into());
        let ring = Polygon::new(
            vec![(0.0, 0.0), (20.0, 0.0), (20.0, 20.0), (0.0, 20.0)].into(),
            vec![vec![(5.0, 5.0), (15.0, 5.0), (15.0, 15.0), (5.0, 15.0)].into()],
        );
        f.area(ring.into(), [255, 0, 0], 1.0);
        f.area(rectangle(20.0, 0.0, 40.0, 20.0), [0, 0, 255], 0.5);
        f.line(vec![[0.0, 10.0], [40.0, 10.0]], [0, 0, 0], 2.0, &[]);
        f.text("x & y", [1.0, 1.0], 4.0, Anchor::Start, [0, 0, 0]);
        let svg = f.to_svg();
        assert!(svg.contains("<title>A &lt;b&gt; &amp; c</title>") && svg.contains(">x &amp; y</text>"), "{svg}");
        assert!(svg.contains("M0 0L20 0L20 20L0 20ZM5 5"), "{svg}");
        let png = image::load_from_memory(&f.to_png(2.0).unwrap()).unwrap().to_rgb8();
        assert_eq!((png.width(), png.height()), (80, 40));
        let at = |x, y| png.get_pixel(x, y).0;
        // Area, its hole, the half see-through one, the line.
        assert_eq!(at(4, 30), [255, 0, 0]);
        assert_eq!(at(20, 28), PAPER);
        assert_eq!(at(60, 30)[2], (f64::from(PAPER[2]) / 2.0 + 127.5).round() as u8);
        assert_eq!(at(60, 20), [0, 0, 0]);
    }

    #[test]
    fn stripes_cover_their_share() {
        let area = rectangle(0.0, 0.0, 100.0, 50.0);
        let share = striped(&area, 10.0, 3.0).unsigned_area() / area.unsigned_area();
        assert!((share - 0.3).abs() < 0.01, "{share}");
    }
}
