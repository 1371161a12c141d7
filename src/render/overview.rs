//! The overview of a registration: the scan with its control points, the arrows of their residuals and the known coast, so that one
//! sees the fit.

use super::canvas::{Canvas, Ink, Mark, circle, ink, path_through, rectangle};
use super::furniture::{Align, Pen};
use super::lettering::{Fonts, Style};
use super::tint::PAPER;
use crate::error::{Error, Result};
use crate::georef::Pixel;

/// What the overview shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Overview {
    /// Columns of the scan.
    pub cols: usize,
    /// Its pixels, row after row.
    pub rgb: Vec<[u8; 3]>,
    /// The known coast in pixels of the scan, each line unbroken.
    pub coast: Vec<Vec<Pixel>>,
    /// The control points.
    pub points: Vec<OverviewPoint>,
    /// Root mean square of the residuals, pixels.
    pub rmse_px: f64,
    /// First line of the caption.
    pub title: String,
}

/// A control point on the overview.
#[derive(Debug, Clone, PartialEq)]
pub struct OverviewPoint {
    /// Its number in the report.
    pub number: usize,
    /// Where it was picked.
    pub picked: Pixel,
    /// Where the model puts its ground.
    pub modelled: Pixel,
    /// Whether it is likely wrong.
    pub is_suspect: bool,
}

const COAST: Ink = ink([216, 27, 96]);
const POINT: Ink = ink([20, 20, 20]);
const SUSPECT: Ink = ink([213, 62, 0]);
const HALO: Ink = ink([255, 255, 255]);
/// Longer side of the scan on the overview, pixels.
const SIDE: (f64, f64) = (1100.0, 1800.0);
/// Length of an arrow as long as the root mean square, pixels.
const ARROW_PX: f64 = 36.0;
/// Height of the caption.
const CAPTION_PX: usize = 64;

impl Overview {
    /// The picture as a PNG: the scan at 1100 to 1800 pixels, a caption below it.
    ///
    /// # Errors
    /// [`Error::Argument`] when the painter refuses the size.
    pub fn to_png(&self) -> Result<Vec<u8>> {
        let rows = self.rgb.len() / self.cols.max(1);
        let longer = self.cols.max(rows).max(1) as f64;
        let scale = (SIDE.1 / longer).min((SIDE.0 / longer).max(1.0));
        let (width, height) = ((self.cols as f64 * scale).ceil() as usize, (rows as f64 * scale).ceil() as usize);
        let (width, height) = (width.max(1), height.max(1));
        let frame = width.max(640);
        let mut canvas = Canvas::new(frame, height + CAPTION_PX, PAPER)
            .ok_or_else(|| Error::argument("--overview", format!("{frame} x {height} pixels"), "use a smaller scan"))?;
        for y in 0..height {
            canvas.set_rows(0, y, width, &self.row(y, width, scale, rows));
        }
        let at = |p: Pixel| ((p.column * scale) as f32, (p.line * scale) as f32);
        for line in &self.coast {
            // Ends of lines that lead off the picture are cut, so that the caption stays clear.
            let near = |p: &Pixel| {
                p.column > -50.0 && p.line > -50.0 && p.column < self.cols as f64 + 50.0 && p.line < rows as f64
            };
            for part in line.split(|p| !near(p)).filter(|part| part.len() > 1) {
                let corners: Vec<(f32, f32)> = part.iter().map(|p| at(*p)).collect();
                if let Some(path) = path_through(&corners, false) {
                    canvas.draw(&Mark::line(path.clone(), HALO.at(0.55), 3.2));
                    canvas.draw(&Mark::line(path, COAST, 1.4));
                }
            }
        }
        let fonts = Fonts::embedded();
        let pen = Pen { fonts: &fonts, pt: 1.0 };
        let times = round_number(ARROW_PX / (self.rmse_px * scale).max(1e-9));
        let has_arrows = self.rmse_px * scale > 0.02;
        for p in &self.points {
            let colour = if p.is_suspect { SUSPECT } else { POINT };
            let (x, y) = at(p.picked);
            let (dx, dy) = at(Pixel {
                column: (p.modelled.column - p.picked.column) * times,
                line: (p.modelled.line - p.picked.line) * times,
            });
            let cut = |v: f32| v.clamp(-400.0, 400.0);
            if has_arrows {
                for (mark, width) in [(HALO.at(0.8), 4.5f32), (colour, 1.8)] {
                    arrow(x, y, cut(dx), cut(dy))
                        .into_iter()
                        .for_each(|path| canvas.draw(&Mark::line(path, mark, width)));
                }
            }
            for (radius, ink) in [(6.0, HALO), (4.5, colour), (2.2, HALO)] {
                if let Some(path) = circle(x, y, radius) {
                    canvas.draw(&Mark::Fill(path, ink));
                }
            }
            let label = p.number.to_string();
            if let Some(mark) = pen.text(&label, Style::Semibold, 15.0, 0.0, x + 9.0, y - 8.0, Align::Left, colour) {
                if let Mark::Fill(path, _) = &mark {
                    canvas.draw(&Mark::line(path.clone(), HALO, 4.0));
                }
                canvas.draw(&mark);
            }
        }
        if let Some(strip) = rectangle(0.0, height as f32, frame as f32, (height + CAPTION_PX) as f32) {
            canvas.draw(&Mark::Fill(strip, ink(PAPER)));
        }
        let coast = if self.coast.is_empty() { "no known coast here" } else { "magenta: the known coast" };
        let arrows = match has_arrows {
            true => format!("arrows: from the picked place to the model's, {times} times as long; {coast}"),
            false => format!("residuals too small for arrows; {coast}"),
        };
        for (k, (text, style, size)) in
            [(&self.title, Style::Semibold, 18.0), (&arrows, Style::Regular, 15.0)].into_iter().enumerate()
        {
            let y = height as f32 + 26.0 + 24.0 * k as f32;
            if let Some(mark) = pen.text(text, style, size, 0.0, 10.0, y, Align::Left, POINT) {
                canvas.draw(&mark);
            }
        }
        canvas.to_png("--overview")
    }

    /// A row of the scaled scan: the mean of the pixels under each, or the nearest where it is enlarged.
    fn row(&self, y: usize, width: usize, scale: f64, rows: usize) -> Vec<[u8; 3]> {
        let under = |k: usize, n: usize| {
            let from = ((k as f64 / scale) as usize).min(n - 1);
            let to = (((k + 1) as f64 / scale) as usize).clamp(from + 1, n.max(from + 1));
            from..to
        };
        let lines = under(y, rows);
        (0..width)
            .map(|x| {
                let columns = under(x, self.cols);
                let mut sum = [0u32; 3];
                let mut count = 0;
                for r in lines.clone() {
                    for pixel in &self.rgb[r * self.cols + columns.start..r * self.cols + columns.end] {
                        (0..3).for_each(|k| sum[k] += u32::from(pixel[k]));
                        count += 1;
                    }
                }
                sum.map(|s| (s / count.max(1)) as u8)
            })
            .collect()
    }
}

/// The strokes of an arrow.
fn arrow(x: f32, y: f32, dx: f32, dy: f32) -> Vec<tiny_skia::Path> {
    let length = dx.hypot(dy);
    if length < 1.0 {
        return Vec::new();
    }
    let (ux, uy) = (dx / length, dy / length);
    let head = (0.35 * length).min(9.0);
    let (tip_x, tip_y) = (x + dx, y + dy);
    let barb = |side: f32| (tip_x - head * ux + side * 0.5 * head * uy, tip_y - head * uy - side * 0.5 * head * ux);
    [vec![(x, y), (tip_x, tip_y)], vec![barb(1.0), (tip_x, tip_y), barb(-1.0)]]
        .iter()
        .filter_map(|corners| path_through(corners, false))
        .collect()
}

/// The nearest below of 1, 2 and 5 times a power of ten.
fn round_number(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let lead = value / power;
    power
        * if lead >= 5.0 {
            5.0
        } else if lead >= 2.0 {
            2.0
        } else {
            1.0
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exaggerations_are_round() {
        for (value, expected) in [(1.0, 1.0), (4.9, 2.0), (7.0, 5.0), (38.0, 20.0), (0.3, 0.2)] {
            assert!((round_number(value) - expected).abs() < 1e-12, "{value}");
        }
    }

    #[test]
    fn the_coast_the_points_and_the_scan_are_there() {
        let p = |column, line| Pixel { column, line };
        let overview = Overview {
            cols: 200,
            rgb: vec![[10, 120, 60]; 200 * 100],
            coast: vec![vec![p(0.0, 50.0), p(200.0, 50.0)]],
            points: vec![OverviewPoint {
                number: 1,
                picked: p(100.0, 20.0),
                modelled: p(104.0, 20.0),
                is_suspect: true,
            }],
            rmse_px: 4.0,
            title: "affine".into(),
        };
        let png = overview.to_png().unwrap();
        let picture = image::load_from_memory(&png).unwrap().to_rgb8();
        assert_eq!(picture.dimensions(), (1100, 550 + CAPTION_PX as u32));
        assert_eq!(picture.get_pixel(300, 400).0, [10, 120, 60]);
        let near = |c: [u8; 3], wanted: Ink| c.iter().zip(wanted.rgb).all(|(a, b)| a.abs_diff(b) < 60);
        assert!(near(picture.get_pixel(300, 275).0, COAST), "{:?}", picture.get_pixel(300, 275));
        // The arrow points east from the picked place.
        assert!(near(picture.get_pixel(565, 110).0, SUSPECT), "{:?}", picture.get_pixel(565, 110));
    }
}
