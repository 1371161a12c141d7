//! Marks - filled or stroked outlines - and the picture they are drawn on. A mark knows its ink; a canvas knows nothing of
//! maps.

use super::curve::Curve;
use crate::error::{Error, Result};
use image::ImageEncoder;
use tiny_skia::{Color, FillRule, LineCap, LineJoin, Paint, Path, PathBuilder, Pixmap, Stroke, StrokeDash, Transform};

/// sRGB and opacity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ink {
    /// sRGB.
    pub rgb: [u8; 3],
    /// 0 to 1.
    pub opacity: f32,
}

/// Opaque ink.
pub(super) const fn ink(rgb: [u8; 3]) -> Ink {
    Ink { rgb, opacity: 1.0 }
}

impl Ink {
    /// The same ink, thinned.
    pub const fn at(self, opacity: f32) -> Ink {
        Ink { opacity, ..self }
    }
}

/// An outline with what to do to it.
#[derive(Debug, Clone)]
pub(super) enum Mark {
    /// Filled (non-zero winding).
    Fill(Path, Ink),
    /// Stroked with round joins.
    Stroke {
        /// Centre line.
        path: Path,
        /// Colour.
        ink: Ink,
        /// Pixels.
        width: f32,
        /// Lengths of strokes and gaps, pixels; empty for a solid line.
        dash: Vec<f32>,
    },
}

impl Mark {
    /// A solid stroke.
    pub fn line(path: Path, ink: Ink, width: f32) -> Mark {
        Mark::Stroke { path, ink, width, dash: Vec::new() }
    }

    /// The mark moved.
    pub fn moved(self, dx: f32, dy: f32) -> Option<Mark> {
        let shift = Transform::from_translate(dx, dy);
        Some(match self {
            Mark::Fill(path, ink) => Mark::Fill(path.transform(shift)?, ink),
            Mark::Stroke { path, ink, width, dash } => Mark::Stroke { path: path.transform(shift)?, ink, width, dash },
        })
    }
}

/// An opaque picture being drawn.
pub(super) struct Canvas {
    pixels: Pixmap,
}

impl Canvas {
    /// A canvas of one colour; `None` where memory or the size limits of the painter do not allow it.
    pub fn new(width: usize, height: usize, colour: [u8; 3]) -> Option<Canvas> {
        let mut pixels = Pixmap::new(u32::try_from(width).ok()?, u32::try_from(height).ok()?)?;
        pixels.fill(colour_of(ink(colour)));
        Some(Canvas { pixels })
    }

    /// Covers the rectangle whose upper-left corner is (`x`, `y`) with rows of `width` opaque pixels.
    pub fn set_rows(&mut self, x: usize, y: usize, width: usize, rgb: &[[u8; 3]]) {
        let stride = self.pixels.width() as usize * 4;
        let data = self.pixels.data_mut();
        for (k, row) in rgb.chunks_exact(width.max(1)).enumerate() {
            let from = (y + k) * stride + x * 4;
            for (to, c) in data[from..from + width * 4].chunks_exact_mut(4).zip(row) {
                to.copy_from_slice(&[c[0], c[1], c[2], 255]);
            }
        }
    }

    /// Draws one mark.
    pub fn draw(&mut self, mark: &Mark) {
        match mark {
            Mark::Fill(path, ink) => {
                self.pixels.fill_path(path, &paint(*ink), FillRule::Winding, Transform::identity(), None);
            }
            Mark::Stroke { path, ink, width, dash } => {
                let stroke = Stroke {
                    width: *width,
                    line_cap: if dash.is_empty() || dash[0] < 0.01 { LineCap::Round } else { LineCap::Butt },
                    line_join: LineJoin::Round,
                    dash: if dash.is_empty() { None } else { StrokeDash::new(dash.clone(), 0.0) },
                    ..Stroke::default()
                };
                self.pixels.stroke_path(path, &paint(*ink), &stroke, Transform::identity(), None);
            }
        }
    }

    /// Width in pixels.
    pub fn width(&self) -> usize {
        self.pixels.width() as usize
    }

    /// Height in pixels.
    pub fn height(&self) -> usize {
        self.pixels.height() as usize
    }

    /// The picture as a PNG file; `what` is what messages call it.
    ///
    /// # Errors
    /// [`Error::Argument`] when the encoder refuses the size.
    pub fn to_png(&self, what: &str) -> Result<Vec<u8>> {
        let mut png = Vec::new();
        let rgb = self.rgb();
        image::codecs::png::PngEncoder::new(&mut png)
            .write_image(rgb.as_flattened(), self.width() as u32, self.height() as u32, image::ExtendedColorType::Rgb8)
            .map_err(|e| Error::argument(what, e, "choose a smaller one"))?;
        Ok(png)
    }

    /// The pixels, row after row.
    pub fn rgb(&self) -> Vec<[u8; 3]> {
        self.pixels.data().chunks_exact(4).map(|p| [p[0], p[1], p[2]]).collect()
    }
}

fn colour_of(ink: Ink) -> Color {
    let alpha = (ink.opacity.clamp(0.0, 1.0) * 255.0).round() as u8;
    Color::from_rgba8(ink.rgb[0], ink.rgb[1], ink.rgb[2], alpha)
}

fn paint(ink: Ink) -> Paint<'static> {
    let mut paint = Paint { anti_alias: true, ..Paint::default() };
    paint.set_color(colour_of(ink));
    paint
}

/// The path of a curve.
pub(super) fn path_of(curve: &Curve) -> Option<Path> {
    let mut b = PathBuilder::new();
    for (k, p) in curve.points().iter().enumerate() {
        if k == 0 { b.move_to(p.x, p.y) } else { b.line_to(p.x, p.y) }
    }
    b.finish()
}

/// A polygon or polyline through corners.
pub(super) fn path_through(corners: &[(f32, f32)], closed: bool) -> Option<Path> {
    let mut b = PathBuilder::new();
    for (k, &(x, y)) in corners.iter().enumerate() {
        if k == 0 { b.move_to(x, y) } else { b.line_to(x, y) }
    }
    if closed {
        b.close();
    }
    b.finish()
}

/// A rectangle from corner to corner.
pub(super) fn rectangle(x0: f32, y0: f32, x1: f32, y1: f32) -> Option<Path> {
    path_through(&[(x0, y0), (x1, y0), (x1, y1), (x0, y1)], true)
}

/// A circle.
pub(super) fn circle(x: f32, y: f32, radius: f32) -> Option<Path> {
    PathBuilder::from_circle(x, y, radius)
}
