//! Least-squares models from a plane to a scan: similarity, affine, polynomials of order 2 and 3, thin-plate spline (Duchon
//! 1977; Bookstein 1989).

use super::Pixel;
use crate::error::{Error, Result};
use crate::grid::Xy;

/// Families of models, simplest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Shift, turn and one scale.
    Similarity,
    /// Shift, turn, two scales and shear.
    Affine,
    /// Polynomial of second order.
    Polynomial2,
    /// Polynomial of third order.
    Polynomial3,
    /// Passes through every point and bends as little as it can between them.
    ThinPlate,
}

impl Shape {
    /// Fewest points that determine it and leave one to check by.
    pub fn least_points(self) -> usize {
        match self {
            Shape::Similarity => 3,
            Shape::Affine => 4,
            Shape::Polynomial2 => 7,
            Shape::Polynomial3 => 11,
            Shape::ThinPlate => 5,
        }
    }

    /// As users write it.
    pub fn name(self) -> &'static str {
        match self {
            Shape::Similarity => "similarity",
            Shape::Affine => "affine",
            Shape::Polynomial2 => "polynomial of order 2",
            Shape::Polynomial3 => "polynomial of order 3",
            Shape::ThinPlate => "thin-plate spline",
        }
    }

    fn order(self) -> u32 {
        match self {
            Shape::Polynomial2 => 2,
            Shape::Polynomial3 => 3,
            _ => 1,
        }
    }
}

/// A fitted model: place in the plane to pixel.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// Its family.
    pub shape: Shape,
    /// Middle and size of the points, by which places are scaled before anything else.
    middle: Xy,
    size: f64,
    /// Coefficients of the monomials for column and line.
    column: Vec<f64>,
    line: Vec<f64>,
    /// Knots of a thin-plate spline, scaled; as many weights follow the monomials.
    knots: Vec<(f64, f64)>,
}

/// A model with what it makes of its points.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// The model of all points.
    pub model: Model,
    /// Distance from each point's pixel to the model's, pixels.
    pub residual_px: Vec<f64>,
    /// The same where the model was fitted without the point: what it predicts.
    pub left_out_px: Vec<f64>,
}

impl Fit {
    /// Root mean square of the residuals, pixels.
    pub fn rmse_px(&self) -> f64 {
        rms(&self.residual_px)
    }

    /// Root mean square of the leave-one-out residuals, pixels.
    pub fn left_out_rmse_px(&self) -> f64 {
        rms(&self.left_out_px)
    }
}

fn rms(values: &[f64]) -> f64 {
    (values.iter().map(|v| v * v).sum::<f64>() / values.len().max(1) as f64).sqrt()
}

/// Distance between two pixels.
pub fn distance(a: Pixel, b: Pixel) -> f64 {
    (a.column - b.column).hypot(a.line - b.line)
}

/// Fits `shape` to places and their pixels and judges it by leaving each point out in turn.
///
/// # Errors
/// [`Error::Argument`] for too few points, or points that do not determine the model (on one line, all in one place).
pub fn fit(shape: Shape, places: &[Xy], pixels: &[Pixel]) -> Result<Fit> {
    if places.len() < shape.least_points() {
        return Err(Error::argument(
            "--transform",
            format!("{} enabled control points", places.len()),
            format!("a {} needs {} or more, one of them to check by", shape.name(), shape.least_points()),
        ));
    }
    let undetermined = || {
        Error::argument(
            "control points",
            "they lie on one line or in one place",
            format!("a {} needs points spread over the map", shape.name()),
        )
    };
    let model = Model::of(shape, places, pixels).ok_or_else(undetermined)?;
    let residual_px = places.iter().zip(pixels).map(|(p, q)| distance(model.pixel(*p), *q)).collect();
    let left_out_px = (0..places.len())
        .map(|k| {
            let without = |n: usize| n != k;
            let p: Vec<Xy> = (0..places.len()).filter(|&n| without(n)).map(|n| places[n]).collect();
            let q: Vec<Pixel> = (0..pixels.len()).filter(|&n| without(n)).map(|n| pixels[n]).collect();
            // A point without which nothing is determined predicts nothing: no error could be larger.
            Model::of(shape, &p, &q).map_or(f64::INFINITY, |m| distance(m.pixel(places[k]), pixels[k]))
        })
        .collect();
    Ok(Fit { model, residual_px, left_out_px })
}

impl Model {
    /// The model of the points; `None` where they do not determine it.
    pub fn of(shape: Shape, places: &[Xy], pixels: &[Pixel]) -> Option<Model> {
        let n = places.len() as f64;
        let sum = places.iter().fold((0.0, 0.0), |s, p| (s.0 + p.x, s.1 + p.y));
        let middle = Xy { x: sum.0 / n, y: sum.1 / n };
        let size = places.iter().map(|p| (p.x - middle.x).abs().max((p.y - middle.y).abs())).fold(0.0, f64::max);
        if size.is_nan() || size <= 0.0 {
            return None;
        }
        let scaled: Vec<(f64, f64)> =
            places.iter().map(|p| ((p.x - middle.x) / size, (p.y - middle.y) / size)).collect();
        let mut model = Model { shape, middle, size, column: Vec::new(), line: Vec::new(), knots: Vec::new() };
        match shape {
            Shape::Similarity => {
                // column = a x + b y + c, line = b x - a y + d: lines run down.
                let mut rows = Vec::new();
                let mut right = Vec::new();
                for (p, q) in scaled.iter().zip(pixels) {
                    rows.push(vec![p.0, p.1, 1.0, 0.0]);
                    right.push(q.column);
                    rows.push(vec![-p.1, p.0, 0.0, 1.0]);
                    right.push(q.line);
                }
                let s = least_squares(&rows, &right)?;
                model.column = vec![s[2], s[0], s[1]];
                model.line = vec![s[3], s[1], -s[0]];
            }
            Shape::ThinPlate => {
                let k = scaled.len();
                let mut rows = vec![vec![0.0; k + 3]; k + 3];
                for i in 0..k {
                    for j in 0..k {
                        rows[i][3 + j] = plate(scaled[i], scaled[j]);
                    }
                    for (m, v) in [1.0, scaled[i].0, scaled[i].1].into_iter().enumerate() {
                        rows[i][m] = v;
                        rows[k + m][3 + i] = v;
                    }
                }
                let right =
                    |of: &dyn Fn(&Pixel) -> f64| -> Vec<f64> { pixels.iter().map(of).chain([0.0; 3]).collect() };
                model.column = least_squares(&rows, &right(&|q| q.column))?;
                model.line = least_squares(&rows, &right(&|q| q.line))?;
                model.knots = scaled;
            }
            _ => {
                let rows: Vec<Vec<f64>> = scaled.iter().map(|p| monomials(*p, shape.order())).collect();
                model.column = least_squares(&rows, &pixels.iter().map(|q| q.column).collect::<Vec<_>>())?;
                model.line = least_squares(&rows, &pixels.iter().map(|q| q.line).collect::<Vec<_>>())?;
            }
        }
        Some(model)
    }

    /// The pixel of a place.
    pub fn pixel(&self, place: Xy) -> Pixel {
        let p = ((place.x - self.middle.x) / self.size, (place.y - self.middle.y) / self.size);
        let terms: Vec<f64> = match self.shape {
            Shape::ThinPlate => [1.0, p.0, p.1].into_iter().chain(self.knots.iter().map(|k| plate(p, *k))).collect(),
            shape => monomials(p, shape.order()),
        };
        let of = |c: &[f64]| c.iter().zip(&terms).map(|(c, t)| c * t).sum();
        Pixel { column: of(&self.column), line: of(&self.line) }
    }

    /// The place of a pixel, by Newton's method from the middle of the points; `None` where it does not settle.
    pub fn place(&self, pixel: Pixel) -> Option<Xy> {
        let mut p = self.middle;
        let step = self.size * 1e-4;
        for _ in 0..50 {
            let at = self.pixel(p);
            let (c, l) = (pixel.column - at.column, pixel.line - at.line);
            let east = self.pixel(Xy { x: p.x + step, y: p.y });
            let north = self.pixel(Xy { x: p.x, y: p.y + step });
            let (a, b) = ((east.column - at.column) / step, (north.column - at.column) / step);
            let (d, e) = ((east.line - at.line) / step, (north.line - at.line) / step);
            let det = a * e - b * d;
            if det == 0.0 || !det.is_finite() {
                return None;
            }
            let (dx, dy) = ((c * e - b * l) / det, (a * l - d * c) / det);
            // Far from the points a polynomial can fold: no step is longer than they reach.
            let length = dx.hypot(dy);
            let held = if length > self.size { self.size / length } else { 1.0 };
            p = Xy { x: p.x + dx * held, y: p.y + dy * held };
            if length < self.size * 1e-12 {
                return Some(p);
            }
        }
        (distance(self.pixel(p), pixel) < 1e-3).then_some(p)
    }

    /// Whether the scan shows the plane as in a mirror: axes or signs of the points are likely mixed up.
    pub fn is_mirrored(&self) -> bool {
        let at =
            |dx: f64, dy: f64| self.pixel(Xy { x: self.middle.x + dx * self.size, y: self.middle.y + dy * self.size });
        let (o, e, n) = (at(0.0, 0.0), at(1e-3, 0.0), at(0.0, 1e-3));
        (e.column - o.column) * (n.line - o.line) - (e.line - o.line) * (n.column - o.column) > 0.0
    }
}

/// 1, x, y, x², xy, y², x³, ... up to `order`.
fn monomials((x, y): (f64, f64), order: u32) -> Vec<f64> {
    let mut all = vec![1.0, x, y];
    for n in 2..=order as i32 {
        all.extend((0..=n).map(|k| x.powi(n - k) * y.powi(k)));
    }
    all
}

/// The thin plate's kernel r² ln r.
fn plate(a: (f64, f64), b: (f64, f64)) -> f64 {
    let r2 = (a.0 - b.0).powi(2) + (a.1 - b.1).powi(2);
    if r2 > 0.0 { 0.5 * r2 * r2.ln() } else { 0.0 }
}

/// The least-squares solution of `rows` · s = `right`; `None` where it is not determined.
fn least_squares(rows: &[Vec<f64>], right: &[f64]) -> Option<Vec<f64>> {
    let (m, n) = (rows.len(), rows.first()?.len());
    if m < n {
        return None;
    }
    let a = nalgebra::DMatrix::from_fn(m, n, |i, j| rows[i][j]);
    let b = nalgebra::DVector::from_column_slice(right);
    let svd = a.svd(true, true);
    let largest = svd.singular_values.max();
    if svd.singular_values.min() <= largest * 1e-9 {
        return None;
    }
    Some(svd.solve(&b, 0.0).ok()?.iter().copied().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn grid(n: usize) -> Vec<Xy> {
        (0..n * n).map(|k| Xy { x: 40.0 + (k % n) as f64 * 2.0, y: 38.0 + (k / n) as f64 * 1.5 }).collect()
    }

    #[test]
    fn each_model_returns_the_map_that_made_its_points() {
        let places = grid(4);
        let bend = |p: &Xy, by: f64| Pixel {
            column: 30.0 * p.x - 3.0 * p.y + by * (p.x - 43.0).powi(2) + 5.0,
            line: -2.0 * p.x - 40.0 * p.y + by * (p.x - 43.0) * (p.y - 40.0) + 2000.0,
        };
        for (shape, by) in [(Shape::Affine, 0.0), (Shape::Polynomial2, 1.5), (Shape::Polynomial3, 1.5)] {
            let pixels: Vec<Pixel> = places.iter().map(|p| bend(p, by)).collect();
            let found = fit(shape, &places, &pixels).unwrap();
            assert!(
                found.rmse_px() < 1e-8 && found.left_out_rmse_px() < 1e-6,
                "{shape:?}: {}",
                found.left_out_rmse_px()
            );
            let q = found.model.place(Pixel { column: pixels[5].column, line: pixels[5].line }).unwrap();
            assert!((q.x - places[5].x).abs() < 1e-9 && (q.y - places[5].y).abs() < 1e-9);
        }
        // A similarity returns a turned one, an affine model's shear it cannot.
        let turned = |p: &Xy| Pixel { column: 3.0 * p.x + 4.0 * p.y, line: 4.0 * p.x - 3.0 * p.y };
        let pixels: Vec<Pixel> = places.iter().map(turned).collect();
        assert!(fit(Shape::Similarity, &places, &pixels).unwrap().rmse_px() < 1e-9);
        let pixels: Vec<Pixel> = places.iter().map(|p| bend(p, 0.0)).collect();
        assert!(fit(Shape::Similarity, &places, &pixels).unwrap().rmse_px() > 1.0);
    }

    #[test]
    fn a_thin_plate_passes_through_its_points_and_is_judged_without_them() {
        let places = grid(3);
        let pixels: Vec<Pixel> = places
            .iter()
            .enumerate()
            .map(|(k, p)| Pixel { column: 10.0 * p.x + if k == 4 { 3.0 } else { 0.0 }, line: -10.0 * p.y })
            .collect();
        let found = fit(Shape::ThinPlate, &places, &pixels).unwrap();
        assert!(found.rmse_px() < 1e-8);
        assert!((found.left_out_px[4] - 3.0).abs() < 1e-6, "{:?}", found.left_out_px);
    }

    #[test]
    fn points_on_a_line_and_too_few_are_refused() {
        let line: Vec<Xy> = (0..6).map(|k| Xy { x: f64::from(k), y: 2.0 * f64::from(k) }).collect();
        let pixels: Vec<Pixel> = line.iter().map(|p| Pixel { column: p.x, line: -p.y }).collect();
        assert!(fit(Shape::Affine, &line, &pixels).unwrap_err().to_string().contains("one line"));
        assert!(fit(Shape::Affine, &line[..2], &pixels[..2]).unwrap_err().to_string().contains("4 or more"));
        let same = [Xy { x: 1.0, y: 1.0 }; 5];
        assert!(fit(Shape::Similarity, &same, &pixels[..5]).is_err());
    }

    #[test]
    fn a_mirror_is_seen() {
        let places = grid(3);
        let upright: Vec<Pixel> = places.iter().map(|p| Pixel { column: p.x, line: -p.y }).collect();
        let swapped: Vec<Pixel> = places.iter().map(|p| Pixel { column: -p.y, line: p.x }).collect();
        assert!(!fit(Shape::Affine, &places, &upright).unwrap().model.is_mirrored());
        let mirrored: Vec<Pixel> = swapped.iter().map(|q| Pixel { column: q.line, line: -q.column }).collect();
        assert!(fit(Shape::Affine, &places, &mirrored).unwrap().model.is_mirrored());
    }

    proptest! {
        #[test]
        fn place_is_the_inverse_of_pixel(x in 40.0..46.0f64, y in 38.0..42.0f64, bend in -0.5..0.5f64) {
            let places = grid(4);
            let pixels: Vec<Pixel> = places
                .iter()
                .map(|p| Pixel { column: 20.0 * p.x + bend * (p.y - 40.0).powi(2), line: -25.0 * p.y + bend * p.x })
                .collect();
            for shape in [Shape::Affine, Shape::Polynomial2, Shape::ThinPlate] {
                let model = Model::of(shape, &places, &pixels).unwrap();
                let q = model.place(model.pixel(Xy { x, y })).unwrap();
                prop_assert!((q.x - x).abs() < 1e-6 && (q.y - y).abs() < 1e-6);
            }
        }
    }
}
