//! What is likely wrong with a control point that does not fit the others.

use super::fit::{Model, Shape, distance};
use super::{ControlPoint, Pixel};
use crate::grid::Xy;

/// A point that is likely wrong.
#[derive(Debug, Clone, PartialEq)]
pub struct Suspect {
    /// Index among the points given.
    pub index: usize,
    /// How far the others put it from its pixel.
    pub off_px: f64,
    /// What would explain it, in words; `None` where nothing simple does.
    pub cause: Option<String>,
}

/// Points whose place the others contradict by far, each with the simplest slip that explains it: swapped coordinates, a
/// lost or added sign, one bad digit. `plane` takes a ground position to the plane of the model. The worst is set aside
/// first, so that it cannot spoil the others; at most a quarter of the points.
pub fn suspects(points: &[ControlPoint], shape: Shape, plane: &dyn Fn(Xy) -> Option<Xy>) -> Vec<Suspect> {
    let places: Vec<Option<Xy>> = points.iter().map(|p| plane(p.ground)).collect();
    let mut left: Vec<usize> = (0..points.len()).filter(|&k| places[k].is_some()).collect();
    let mut found = Vec::new();
    while found.len() < points.len() / 4 && left.len() > shape.least_points() {
        let model = |without: Option<usize>| -> Option<Model> {
            let use_: Vec<usize> = left.iter().copied().filter(|k| Some(*k) != without).collect();
            let p: Vec<Xy> = use_.iter().filter_map(|&k| places[k]).collect();
            let q: Vec<Pixel> = use_.iter().map(|&k| points[k].pixel).collect();
            Model::of(shape, &p, &q)
        };
        let off = |k: usize| -> f64 {
            match (model(Some(k)), places[k]) {
                (Some(m), Some(p)) => distance(m.pixel(p), points[k].pixel),
                _ => 0.0,
            }
        };
        // The one whose absence helps the others most is the wrong one: its error leaks into all predictions.
        let spread = |without: usize| -> f64 {
            let Some(m) = model(Some(without)) else { return f64::INFINITY };
            let rest = left.iter().filter(|k| **k != without);
            let squares: f64 =
                rest.filter_map(|&k| places[k].map(|p| distance(m.pixel(p), points[k].pixel).powi(2))).sum();
            (squares / (left.len() - 1) as f64).sqrt()
        };
        let Some(&worst) = left.iter().min_by(|a, b| spread(**a).total_cmp(&spread(**b))) else { break };
        let (usual, off_px) = (spread(worst), off(worst));
        if off_px < 3.0 || off_px < 6.0 * usual {
            break;
        }
        let cause = model(Some(worst)).and_then(|m| explain(&points[worst], &m, plane, (3.0 * usual).max(2.0)));
        found.push(Suspect { index: worst, off_px, cause });
        left.retain(|k| *k != worst);
    }
    found
}

/// The simplest slip after whose correction the point fits within `tolerance` pixels.
fn explain(point: &ControlPoint, model: &Model, plane: &dyn Fn(Xy) -> Option<Xy>, tolerance: f64) -> Option<String> {
    let fits = |ground: Xy, pixel: Pixel| plane(ground).is_some_and(|p| distance(model.pixel(p), pixel) <= tolerance);
    let (g, q) = (point.ground, point.pixel);
    if fits(Xy { x: g.y, y: g.x }, q) {
        return Some("its ground coordinates are swapped".into());
    }
    if fits(g, Pixel { column: q.line, line: q.column }) {
        return Some("its column and line are swapped".into());
    }
    for (what, ground, pixel) in [
        ("x", Xy { x: -g.x, ..g }, q),
        ("y", Xy { y: -g.y, ..g }, q),
        ("the column", g, Pixel { column: -q.column, ..q }),
        ("the line", g, Pixel { line: -q.line, ..q }),
    ] {
        if fits(ground, pixel) {
            return Some(format!("the sign of {what} is wrong"));
        }
    }
    // The same point with its k-th number changed.
    let with = |k: usize, v: f64| match k {
        0 => (Xy { x: v, ..g }, q),
        1 => (Xy { y: v, ..g }, q),
        2 => (g, Pixel { column: v, ..q }),
        _ => (g, Pixel { line: v, ..q }),
    };
    let numbers = [("x", g.x), ("y", g.y), ("the column", q.column), ("the line", q.line)];
    // More than one number may explain it; only the map can tell which.
    let mut digits = Vec::new();
    for (which, (what, value)) in numbers.into_iter().enumerate() {
        let text = format!("{value}");
        let changed = text.char_indices().filter(|(_, c)| c.is_ascii_digit()).find_map(|(k, old)| {
            ('0'..='9').filter(|d| *d != old).map(|d| format!("{}{d}{}", &text[..k], &text[k + 1..])).find(|changed| {
                changed.parse().is_ok_and(|v| {
                    let (ground, pixel) = with(which, v);
                    fits(ground, pixel)
                })
            })
        });
        digits.extend(changed.map(|changed| format!("{what} ({text} should be near {changed})")));
    }
    (!digits.is_empty()).then(|| format!("one digit is likely wrong, of {}", digits.join(" or of ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points() -> Vec<ControlPoint> {
        (0..16)
            .map(|k| {
                let ground = Xy { x: 38.0 + f64::from(k % 4) * 3.0, y: 37.0 + f64::from(k / 4) * 2.0 };
                let pixel = Pixel { column: 40.0 * (ground.x - 36.0), line: 52.0 * (48.0 - ground.y) };
                ControlPoint { pixel, ground, is_enabled: true }
            })
            .collect()
    }

    fn only(points: &[ControlPoint]) -> Suspect {
        let found = suspects(points, Shape::Affine, &|p| Some(p));
        assert_eq!(found.len(), 1, "{found:?}");
        found.into_iter().next().unwrap()
    }

    #[test]
    fn good_points_are_not_suspected() {
        let mut all = points();
        all.iter_mut().enumerate().for_each(|(k, p)| p.pixel.column += [0.4, -0.3, 0.2][k % 3]);
        assert!(suspects(&all, Shape::Affine, &|p| Some(p)).is_empty());
    }

    #[test]
    fn slips_are_named() {
        let slip = |change: &dyn Fn(&mut ControlPoint)| {
            let mut all = points();
            change(&mut all[6]);
            let found = only(&all);
            assert_eq!(found.index, 6);
            found.cause.unwrap()
        };
        assert!(slip(&|p| std::mem::swap(&mut p.ground.x, &mut p.ground.y)).contains("ground coordinates are swapped"));
        assert!(slip(&|p| std::mem::swap(&mut p.pixel.column, &mut p.pixel.line)).contains("column and line"));
        assert!(slip(&|p| p.ground.x = -p.ground.x).contains("sign of x"));
        assert!(slip(&|p| p.pixel.line = -p.pixel.line).contains("sign of the line"));
        // 320 columns written as 820.
        let digit = slip(&|p| p.pixel.column += 500.0);
        assert!(digit.contains("one digit") && digit.contains("the column") && digit.contains("near 320"), "{digit}");
    }

    #[test]
    fn two_bad_points_are_both_found() {
        let mut all = points();
        all[2].ground.y += 7.3;
        all[9].pixel.column += 77.0;
        let found = suspects(&all, Shape::Affine, &|p| Some(p));
        let mut which: Vec<usize> = found.iter().map(|s| s.index).collect();
        which.sort_unstable();
        assert_eq!(which, [2, 9]);
    }
}
