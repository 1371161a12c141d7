//! Signs of towns, fortresses, passes and summits, the same on the map and in the legend.

use super::canvas::{Mark, circle, ink, path_through, rectangle};
use super::curve::Point;
use super::lettering::Quad;
use super::placing::upright;
use super::tint::{INK, PAPER, WATER_INK};
use tiny_skia::{Path, PathBuilder};

/// Brown of mountains.
pub(super) const MOUNTAIN_INK: [u8; 3] = [92, 54, 28];

/// A sign in place.
pub(super) struct Symbol {
    /// What to draw.
    pub marks: Vec<Mark>,
    /// The room it takes.
    pub quad: Quad,
    /// Half its width, for labels beside it.
    pub radius: f32,
}

/// What a kind of place is called in the legend, in the order of the legend.
pub(super) const KINDS: [(&str, &str); 6] = [
    ("capital", "Seat of a ruler"),
    ("town", "Town"),
    ("port", "Port"),
    ("fortress", "Fortress"),
    ("monastery", "Monastery"),
    ("pass", "Pass"),
];

/// The sign of a place of `kind` (an unknown kind is a town) and `rank`, or `peak`; `pt` is a point in pixels.
pub(super) fn symbol(kind: &str, rank: u8, at: Point, pt: f32) -> Symbol {
    let scale = pt
        * match rank {
            0 | 1 => 1.12,
            2 => 1.0,
            3 => 0.88,
            _ => 0.76,
        };
    let (x, y) = (at.x, at.y);
    let mut marks = Vec::new();
    let mut fill = |path: Option<Path>, rgb| marks.extend(path.map(|p| Mark::Fill(p, ink(rgb))));
    let r = match kind {
        "capital" => {
            let r = 2.3 * scale;
            fill(circle(x, y, r + 0.5 * scale), PAPER);
            fill(circle(x, y, r), INK);
            fill(circle(x, y, r * 0.76), PAPER);
            fill(circle(x, y, r * 0.45), INK);
            r
        }
        "fortress" => {
            // A tower with three merlons.
            let r = 1.9 * scale;
            let m = r * 0.4;
            let tower = |g: f32| {
                let (a, b) = (r + g, r + g);
                path_through(
                    &[
                        (x - a, y + b),
                        (x - a, y - b),
                        (x - a + m, y - b),
                        (x - a + m, y - b + m),
                        (x - m / 2.0, y - b + m),
                        (x - m / 2.0, y - b),
                        (x + m / 2.0, y - b),
                        (x + m / 2.0, y - b + m),
                        (x + a - m, y - b + m),
                        (x + a - m, y - b),
                        (x + a, y - b),
                        (x + a, y + b),
                    ],
                    true,
                )
            };
            fill(
                rectangle(x - r - 0.45 * scale, y - r - 0.45 * scale, x + r + 0.45 * scale, y + r + 0.45 * scale),
                PAPER,
            );
            fill(tower(0.0), INK);
            r
        }
        "monastery" => {
            let r = 2.3 * scale;
            let cross = |g: f32| {
                let (arm, w) = (r + g, 0.42 * scale + g);
                let bar = y - 0.3 * r;
                path_through(
                    &[
                        (x - w, y - arm),
                        (x + w, y - arm),
                        (x + w, bar - w),
                        (x + 0.72 * r + g, bar - w),
                        (x + 0.72 * r + g, bar + w),
                        (x + w, bar + w),
                        (x + w, y + arm),
                        (x - w, y + arm),
                        (x - w, bar + w),
                        (x - 0.72 * r - g, bar + w),
                        (x - 0.72 * r - g, bar - w),
                        (x - w, bar - w),
                    ],
                    true,
                )
            };
            fill(cross(0.55 * scale), PAPER);
            fill(cross(0.0), INK);
            r
        }
        "pass" => {
            let r = 2.2 * scale;
            let mut arcs = PathBuilder::new();
            for side in [-1.0f32, 1.0] {
                arcs.move_to(x + side * r, y - r);
                arcs.quad_to(x + side * 0.1 * r, y, x + side * r, y + r);
            }
            if let Some(p) = arcs.finish() {
                marks.push(Mark::line(p.clone(), ink(PAPER).at(0.8), 1.9 * scale));
                marks.push(Mark::line(p, ink(MOUNTAIN_INK), 0.85 * scale));
            }
            r
        }
        "port" => {
            let r = 1.8 * scale;
            fill(circle(x, y, r + 0.5 * scale), PAPER);
            fill(circle(x, y, r), INK);
            fill(circle(x, y, r * 0.7), PAPER);
            fill(circle(x, y, r * 0.48), WATER_INK);
            r
        }
        "peak" => {
            let r = 1.9 * scale;
            let triangle = |g: f32| {
                path_through(
                    &[(x, y - r - 1.5 * g), (x + r + g, y + 0.75 * r + g), (x - r - g, y + 0.75 * r + g)],
                    true,
                )
            };
            fill(triangle(0.5 * scale), PAPER);
            fill(triangle(0.0), MOUNTAIN_INK);
            r
        }
        _ => {
            let r = 1.65 * scale;
            fill(circle(x, y, r + 0.5 * scale), PAPER);
            fill(circle(x, y, r), INK);
            fill(circle(x, y, r * 0.62), PAPER);
            r
        }
    };
    let reach = r + 0.3 * scale;
    Symbol { marks, quad: upright(x - reach, y - reach, x + reach, y + reach), radius: reach }
}
