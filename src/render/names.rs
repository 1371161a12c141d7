//! Names that fill an area: where in a region its name can run, on which gentle curve, how large and how widely spaced.
//!
//! The curve is the parabola that best follows the middle of the region in a turned frame (cells weighted by their
//! distance from the edge, so that it keeps to the medial axis); the letters take the longest run of it that keeps clear
//! of the edge.

use super::curve::{Curve, Point, point};
use super::lettering::{CAP_EM, Fonts, Lettered, Line};
use super::placing::Placing;
use super::resample::distance;
use crate::raster::Raster;

/// The largest connected piece of a region, on coarse cells.
pub(super) struct Area {
    /// Pixels per cell.
    cell: f32,
    /// Pixel position of the upper-left corner of the crop.
    origin: Point,
    /// Pixels to the edge of the region; 0 outside it.
    clearance: Raster<f32>,
    /// The cells of the piece, column and row in the crop.
    cells: Vec<(usize, usize)>,
}

impl Area {
    /// The largest piece of what is `inside` a window of `width` x `height` pixels; the window's edge bounds it. `None`
    /// where nothing is inside.
    pub fn largest(width: usize, height: usize, inside: impl Fn(usize, usize) -> bool) -> Option<Area> {
        [4, 1].into_iter().find_map(|cell| Area::on_cells(width, height, cell, &inside))
    }

    fn on_cells(width: usize, height: usize, cell: usize, inside: &impl Fn(usize, usize) -> bool) -> Option<Area> {
        let (cols, rows) = (width / cell, height / cell);
        if cols == 0 || rows == 0 {
            return None;
        }
        let mut label = Raster::filled(cols, rows, 0u32);
        for row in 0..rows {
            for col in 0..cols {
                if inside(col * cell + cell / 2, row * cell + cell / 2) {
                    label.set(col, row, u32::MAX);
                }
            }
        }
        let mut best: Vec<(usize, usize)> = Vec::new();
        let mut stack = Vec::new();
        for row in 0..rows {
            for col in 0..cols {
                if label.at(col, row) != u32::MAX {
                    continue;
                }
                let mut piece = Vec::new();
                label.set(col, row, 1);
                stack.push((col, row));
                while let Some((c, r)) = stack.pop() {
                    piece.push((c, r));
                    let around = [(c.wrapping_sub(1), r), (c + 1, r), (c, r.wrapping_sub(1)), (c, r + 1)];
                    for (c, r) in around {
                        if c < cols && r < rows && label.at(c, r) == u32::MAX {
                            label.set(c, r, 1);
                            stack.push((c, r));
                        }
                    }
                }
                if piece.len() > best.len() {
                    best = piece;
                }
            }
        }
        let c0 = best.iter().map(|c| c.0).min()?;
        let c1 = best.iter().map(|c| c.0).max()?;
        let r0 = best.iter().map(|c| c.1).min()?;
        let r1 = best.iter().map(|c| c.1).max()?;
        // One cell of outside all round.
        let (w, h) = (c1 - c0 + 3, r1 - r0 + 3);
        let mut mask = Raster::filled(w, h, false);
        let cells: Vec<_> = best.into_iter().map(|(c, r)| (c - c0 + 1, r - r0 + 1)).collect();
        cells.iter().for_each(|&(c, r)| mask.set(c, r, true));
        let mut clearance = distance(w, h, |x, y| !mask.at(x, y));
        clearance.values.iter_mut().for_each(|d| *d = (*d - 0.5).max(0.0) * cell as f32);
        let cell = cell as f32;
        let origin = point((c0 as f32 - 1.0) * cell, (r0 as f32 - 1.0) * cell);
        Some(Area { cell, origin, clearance, cells })
    }

    /// Square pixels.
    pub fn area_px(&self) -> f32 {
        self.cells.len() as f32 * self.cell * self.cell
    }

    fn centre_of(&self, (col, row): (usize, usize)) -> Point {
        point(self.origin.x + (col as f32 + 0.5) * self.cell, self.origin.y + (row as f32 + 0.5) * self.cell)
    }

    /// Pixels from `p` to the edge of the region; 0 outside it.
    pub fn clearance_at(&self, p: Point) -> f32 {
        let (c, r) = ((p.x - self.origin.x) / self.cell, (p.y - self.origin.y) / self.cell);
        if c < 0.0 || r < 0.0 || c >= self.clearance.cols as f32 || r >= self.clearance.rows as f32 {
            return 0.0;
        }
        self.clearance.at(c as usize, r as usize)
    }

    /// The cell farthest from the edge.
    pub fn heart(&self) -> Point {
        let of = |c: &(usize, usize)| self.clearance.at(c.0, c.1);
        let best = self.cells.iter().copied().reduce(|a, b| if of(&b) > of(&a) { b } else { a });
        best.map_or(self.origin, |c| self.centre_of(c))
    }

    fn greatest_clearance(&self) -> f32 {
        self.cells.iter().map(|&(c, r)| self.clearance.at(c, r)).fold(0.0, f32::max)
    }
}

/// How a name may run.
pub(super) struct NameFit {
    /// Sizes to try, greatest first.
    pub sizes: Vec<f32>,
    /// Clear room between the letters and the region's edge, pixels.
    pub edge: f32,
    /// Least and greatest letter-spacing, ems.
    pub spacing_em: (f32, f32),
}

/// A run of a curve with letters on it, and how good that looks.
struct Candidate {
    score: f32,
    curve: Curve,
    lines: usize,
    size: f32,
    spacing_em: f32,
}

/// The best place for a name that is broken into lines in one of several ways (`breaks`): free of what is placed, within
/// the area, as large and as level as can be. `None` where none fits.
pub(super) fn fit_name(
    fonts: &Fonts,
    area: &Area,
    breaks: &[Vec<Line>],
    fit: &NameFit,
    placing: &Placing,
) -> Option<Lettered> {
    let mut found: Vec<Candidate> = Vec::new();
    for curve in middle_curves(area) {
        let clear: Vec<f32> = curve.points().iter().map(|&p| area.clearance_at(p)).collect();
        for (k, lines) in breaks.iter().enumerate() {
            found.extend(best_on(area, &curve, &clear, k, lines, fit));
        }
    }
    found.sort_by(|a, b| b.score.total_cmp(&a.score));
    let mut best: Option<(f32, Lettered)> = None;
    for c in found.iter().take(160) {
        if best.as_ref().is_some_and(|b| b.0 >= c.score) {
            break;
        }
        let Some(set) = set_lines(fonts, &breaks[c.lines], c.size, c.spacing_em, &c.curve) else { continue };
        if placing.is_free(&set.ground()) {
            let score = c.score / (1.0 + 0.08 * placing.cost_of(&set));
            if best.as_ref().is_none_or(|b| score > b.0) {
                best = Some((score, set));
            }
        }
    }
    best.map(|b| b.1)
}

/// The runs of `curve` that take `lines`, one for each of the larger sizes.
fn best_on(area: &Area, curve: &Curve, clear: &[f32], which: usize, lines: &[Line], fit: &NameFit) -> Vec<Candidate> {
    let widest = |size: f32, spacing: f32| lines.iter().map(|l| l.width(size, spacing)).fold(0.0, f32::max);
    let mut found = Vec::new();
    let greatest = area.greatest_clearance().max(1.0);
    for &size in &fit.sizes {
        let half = (lines.len() as f32 - 1.0) * LINE_EM * size / 2.0 + CAP_EM * size / 2.0;
        let need = half + fit.edge;
        let Some((first, last)) = longest_run(clear, need) else { continue };
        let Some(run) = Curve::through(curve.points()[first..=last].iter().copied()) else { continue };
        let room = run.length();
        let least = widest(size, fit.spacing_em.0);
        if least > room * 0.97 {
            continue;
        }
        let width = (room * 0.74).clamp(least, widest(size, fit.spacing_em.1));
        let longest = lines.iter().max_by(|a, b| a.width_em.total_cmp(&b.width_em));
        let spacing = longest.map_or(0.0, |l| l.spacing_for(size, width));
        let (a, b) = (run.points()[0], run.points()[run.points().len() - 1]);
        let tilt = ((b.y - a.y).atan2(b.x - a.x).abs() / 1.05).min(1.0);
        let middle = run.point_at(room / 2.0);
        let central = (area.clearance_at(middle) / greatest).min(1.0);
        let bow = run.turning(room / 2.0 - width / 2.0, room / 2.0 + width / 2.0, 12.0).min(1.6);
        let score = size
            * (0.5 + 0.5 * (width / (room * 0.74)).min(1.0))
            * (1.0 - 0.4 * tilt.powf(1.4))
            * (1.0 - 0.18 * bow)
            * (0.6 + 0.4 * central)
            * [1.0, 0.96, 0.86, 0.8][(lines.len() - 1).min(3)];
        found.push(Candidate { score, curve: run, lines: which, size, spacing_em: spacing });
        if found.len() == 4 {
            break;
        }
    }
    found
}

/// Distance between baselines in ems.
const LINE_EM: f32 = 1.12;

/// Lines one under the other around the middle of `curve`.
fn set_lines(fonts: &Fonts, lines: &[Line], size: f32, spacing_em: f32, curve: &Curve) -> Option<Lettered> {
    let mut all: Option<Lettered> = None;
    for (k, line) in lines.iter().enumerate() {
        let offset = (k as f32 - (lines.len() as f32 - 1.0) / 2.0) * LINE_EM * size;
        // Straight continuations, so that an outer line longer than its base still fits.
        let base = extended(&if offset == 0.0 { curve.clone() } else { curve.beside(offset)? }, size)?;
        let set = fonts.along(line, size, spacing_em, &base, base.length() / 2.0, CAP_EM * size / 2.0)?;
        match &mut all {
            None => all = Some(set),
            Some(sum) => {
                let mut b = tiny_skia::PathBuilder::new();
                b.push_path(&sum.path);
                b.push_path(&set.path);
                sum.path = b.finish()?;
                sum.quads.extend(set.quads);
                sum.gaps.extend(set.gaps);
            }
        }
    }
    all
}

fn extended(curve: &Curve, by: f32) -> Option<Curve> {
    let end = curve.length();
    let (a, b) = (curve.at(0.0, by), curve.at(end, by));
    let before = point(a.0.x - a.1.cos() * by, a.0.y - a.1.sin() * by);
    let after = point(b.0.x + b.1.cos() * by, b.0.y + b.1.sin() * by);
    Curve::through([before].into_iter().chain(curve.points().iter().copied()).chain([after]))
}

/// First and last index of the longest run of values of at least `need`.
fn longest_run(clear: &[f32], need: f32) -> Option<(usize, usize)> {
    let mut best: Option<(usize, usize)> = None;
    let mut first = None;
    for k in 0..=clear.len() {
        if k < clear.len() && clear[k] >= need {
            first.get_or_insert(k);
        } else if let Some(f) = first.take()
            && best.is_none_or(|(a, b)| k - 1 - f > b - a)
        {
            best = Some((f, k - 1));
        }
    }
    best.filter(|(a, b)| b > a)
}

/// Curves through the middle of the area, in frames turned by up to 67 degrees; they read left to right.
fn middle_curves(area: &Area) -> Vec<Curve> {
    let stride = (area.cells.len() / 6000).max(1);
    let sample: Vec<(Point, f32)> =
        area.cells.iter().step_by(stride).map(|&c| (area.centre_of(c), area.clearance.at(c.0, c.1))).collect();
    let heart = area.heart();
    let mut curves = Vec::new();
    for k in -9i32..=9 {
        let angle = (k as f32 * 7.5).to_radians();
        let (s, c) = angle.sin_cos();
        let turned: Vec<(f64, f64, f64)> = sample
            .iter()
            .map(|&(p, w)| {
                let (x, y) = (p.x - heart.x, p.y - heart.y);
                (f64::from(c * x + s * y), f64::from(c * y - s * x), f64::from(w))
            })
            .collect();
        let (lo, hi) = turned.iter().fold((0.0f64, 0.0f64), |(lo, hi), t| (lo.min(t.0), hi.max(t.0)));
        let span = (hi - lo).max(1.0);
        let mut shapes = vec![[0.0, 0.0, 0.0]];
        for power in [1.0, 2.5] {
            shapes.extend(parabola(&turned, power, span));
        }
        for q in shapes {
            let step = f64::from(area.cell);
            let n = (span / step).ceil() as usize + 1;
            curves.extend(Curve::through((0..=n).map(|i| {
                let u = lo + i as f64 * span / n as f64;
                let v = q[0] + q[1] * u + q[2] * u * u;
                point(heart.x + c * u as f32 - s * v as f32, heart.y + s * u as f32 + c * v as f32)
            })));
        }
    }
    curves
}

/// Weighted least squares v = a + b u + c u2, its bow held to what letters can follow.
fn parabola(points: &[(f64, f64, f64)], power: f64, span: f64) -> Option<[f64; 3]> {
    let mut m = [[0.0f64; 4]; 3];
    for &(u, v, w) in points {
        let (w, u, v) = (w.powf(power), u / span, v / span);
        let basis = [1.0, u, u * u];
        for (row, bi) in m.iter_mut().zip(basis) {
            for (cell, bj) in row.iter_mut().zip([1.0, u, u * u, v]) {
                *cell += w * bi * bj;
            }
        }
    }
    let total = m[0][0];
    // A little stiffness against bows that the region does not really ask for.
    m[2][2] += total * 2e-4;
    for i in 0..3 {
        let pivot = m[i][i];
        if pivot.abs() < 1e-12 * total.max(1e-300) {
            return None;
        }
        for k in 0..3 {
            if k != i {
                let f = m[k][i] / pivot;
                let from = m[i];
                m[k].iter_mut().zip(from).for_each(|(a, b)| *a -= f * b);
            }
        }
    }
    let at = |i: usize| m[i][3] / m[i][i];
    Some([at(0) * span, at(1).clamp(-0.7, 0.7), at(2).clamp(-0.55, 0.55) / span])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::lettering::Style;
    use crate::render::placing::bounds;

    fn sizes() -> NameFit {
        NameFit { sizes: vec![60.0, 50.0, 40.0, 30.0, 20.0], edge: 8.0, spacing_em: (0.1, 1.0) }
    }

    #[test]
    fn a_name_stays_in_its_region_and_runs_along_it() {
        // A band that rises to the right.
        let inside = |x: usize, y: usize| {
            let d = y as f32 - (500.0 - 0.4 * x as f32);
            (100..900).contains(&x) && d.abs() < 90.0
        };
        let area = Area::largest(1000, 700, inside).unwrap();
        let fonts = Fonts::embedded();
        let name = vec![fonts.shape("SHIRVAN", Style::Semibold, true)];
        let placed = fit_name(&fonts, &area, &[name], &sizes(), &Placing::new(1000, 700, 2.0)).unwrap();
        for q in &placed.quads {
            assert!(q.iter().all(|p| inside(p.x as usize, p.y as usize)), "{q:?}");
        }
        let (a, b) = (bounds(&placed.quads[0]), bounds(placed.quads.last().unwrap()));
        assert!(b.0.x - a.0.x > 300.0 && a.0.y > b.0.y + 100.0, "{a:?} {b:?}");
    }

    #[test]
    fn the_largest_piece_counts_and_nothing_is_none() {
        let a = Area::largest(200, 100, |x, _| !(20..=100).contains(&x)).unwrap();
        assert!(a.heart().x > 100.0);
        assert!(Area::largest(50, 50, |_, _| false).is_none());
        assert!(Area::largest(50, 50, |x, y| (x, y) == (3, 3)).is_some());
    }

    #[test]
    fn too_small_a_region_takes_no_name() {
        let area = Area::largest(200, 100, |x, y| x < 30 && y < 20).unwrap();
        let fonts = Fonts::embedded();
        let name = vec![fonts.shape("SHIRVANSHAHS", Style::Semibold, true)];
        assert!(fit_name(&fonts, &area, &[name], &sizes(), &Placing::new(200, 100, 1.0)).is_none());
    }

    #[test]
    fn runs_are_found() {
        assert_eq!(longest_run(&[0.0, 2.0, 2.0, 0.0, 3.0, 3.0, 3.0], 1.0), Some((4, 6)));
        assert_eq!(longest_run(&[0.0, 2.0, 0.0], 1.0), None);
    }
}
