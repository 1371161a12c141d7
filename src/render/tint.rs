//! The painted ground of the sheet: hypsometric tints under Swiss-style shading, depth tints with a coast vignette,
//! polity washes with their ribbons, contested hatching. Colours only; lines and letters come on top.

use super::SheetInput;
use super::curve::{Curve, Point, point};
use super::hillshade::{HillshadeOptions, Light, Shader, gradient};
use super::resample::{blur, distance, resample, scan_polygon, vote};
use crate::borders::ClaimKind;
use crate::contour::{self, ContourOptions};
use crate::grid::{Crs, GeoTransform, Grid};
use crate::raster::Raster;
use crate::water::WaterKind;
use geo::{MapCoords, MultiPolygon};
use rayon::prelude::*;

/// sRGB, 0 to 255.
pub(super) type Rgb = [f32; 3];

/// Paper of margins, panel and halos.
pub(super) const PAPER: [u8; 3] = [251, 247, 236];
/// Ink of frame and names.
pub(super) const INK: [u8; 3] = [38, 34, 32];
/// Rivers, shores and the names of waters.
pub(super) const WATER_INK: [u8; 3] = [38, 98, 148];
/// Lakes.
const LAKE: Rgb = [188.0, 218.0, 235.0];

/// Land tints: metres and colour.
pub(super) const LAND_TINTS: [(f32, Rgb); 10] = [
    (-100.0, [184.0, 204.0, 176.0]),
    (0.0, [202.0, 218.0, 184.0]),
    (200.0, [218.0, 226.0, 190.0]),
    (500.0, [238.0, 232.0, 198.0]),
    (1000.0, [240.0, 221.0, 180.0]),
    (1500.0, [229.0, 203.0, 161.0]),
    (2000.0, [214.0, 185.0, 147.0]),
    (3000.0, [203.0, 178.0, 152.0]),
    (4000.0, [226.0, 217.0, 208.0]),
    (5000.0, [250.0, 249.0, 249.0]),
];

/// Depth tints: each holds from its depth in metres down to the next.
pub(super) const DEPTH_TINTS: [(f32, Rgb); 6] = [
    (0.0, [218.0, 235.0, 242.0]),
    (50.0, [204.0, 226.0, 238.0]),
    (200.0, [188.0, 216.0, 233.0]),
    (500.0, [174.0, 206.0, 227.0]),
    (1000.0, [160.0, 196.0, 221.0]),
    (2000.0, [147.0, 186.0, 214.0]),
];

/// The land tint at a height.
pub(super) fn land_tint(height_m: f32) -> Rgb {
    let k = LAND_TINTS.partition_point(|t| t.0 <= height_m).clamp(1, LAND_TINTS.len() - 1);
    let ((z0, a), (z1, b)) = (LAND_TINTS[k - 1], LAND_TINTS[k]);
    mix(a, b, ((height_m - z0) / (z1 - z0)).clamp(0.0, 1.0))
}

/// The sea tint at a depth: steps with soft edges.
fn depth_tint(depth_m: f32) -> Rgb {
    let mut colour = DEPTH_TINTS[0].1;
    for &(from, tint) in &DEPTH_TINTS[1..] {
        let soft = from * 0.10;
        colour = mix(colour, tint, smooth((depth_m - from + soft) / (2.0 * soft)));
    }
    colour
}

/// `a` towards `b` by `t`.
pub(super) fn mix(a: Rgb, b: Rgb, t: f32) -> Rgb {
    [a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t, a[2] + (b[2] - a[2]) * t]
}

/// Smooth step from 0 to 1.
pub(super) fn smooth(t: f32) -> f32 {
    let t = t.clamp(0.0, 1.0);
    t * t * (3.0 - 2.0 * t)
}

/// `ground` seen through a transparent wash of `colour`.
pub(super) fn washed(ground: Rgb, colour: [u8; 3], strength: f32) -> Rgb {
    let mut out = ground;
    for (o, c) in out.iter_mut().zip(colour) {
        *o *= 1.0 - strength * (1.0 - f32::from(c) / 255.0);
    }
    out
}

/// Strength of a wash away from borders.
pub(super) const WASH: f32 = 0.42;
/// Strength of the ribbon inside a border.
pub(super) const RIBBON: f32 = 0.88;

/// Strength of the stripes on contested land.
pub(super) const STRIPE: f32 = 0.8;
/// From a stripe of one claimant to his next, points; the other's stripe lies between.
pub(super) const HATCH_PT: f32 = 7.0;
/// Width of a stripe, points.
pub(super) const HATCH_WIDE_PT: f32 = 2.5;

/// How far the corners of shore lines are rounded on the ground: less than their source (1 : 10 000 000) can tell.
const SHORE_ROUND_M: f32 = 110.0;
/// How far depths are smoothed on the ground: about half the distance between soundings.
const SOUNDINGS_M: f32 = 4500.0;

/// What is known of each pixel of the map window.
pub(super) struct Ground {
    /// Pixels across.
    pub width: usize,
    /// Pixels down.
    pub height: usize,
    /// Part of the pixel that is sea, 0 to 1.
    pub sea: Raster<f32>,
    /// Part of the pixel that is lake, 0 to 1.
    pub lake: Raster<f32>,
    /// Code of the polity; carried on a little into the sea.
    pub regions: Raster<u16>,
    /// Code of the second claimant.
    pub contested: Raster<u16>,
    /// Code of the polity that a code is drawn as (a part as its whole, a people as none).
    pub drawn_as: Vec<u16>,
    /// Metres; on water the level of the water.
    surface: Raster<f32>,
    /// Metres below the water's level, on sea.
    depth: Raster<f32>,
    /// Colour by code.
    colours: Vec<[u8; 3]>,
}

impl Ground {
    /// Resamples the rasters of `input` to `width` x `height` pixels. `to_px` takes CRS coordinates to pixels.
    pub fn new(input: &SheetInput, width: usize, height: usize, to_px: impl Fn(f64, f64) -> (f64, f64)) -> Ground {
        let (from, to) = ((input.grid.cols, input.grid.rows), (width, height));
        let kind = |c: usize, r: usize| input.water.at(c, r);
        let extent = input.grid.extent();
        let pixel_m = ((extent.max_x - extent.min_x) / width.max(1) as f64) as f32;
        // The corners of a shore line drawn for smaller scales are rounded, and its edge is crisp again afterwards.
        let round_px = (SHORE_ROUND_M / pixel_m).clamp(0.8, 8.0);
        let cover = |code: WaterKind| {
            let part = resample(from, to, |c, r| if kind(c, r) == code as u8 { 1.0 } else { 0.0 });
            let mut part = blur(&part, round_px);
            let steeper = round_px / 0.8;
            part.values.iter_mut().for_each(|v| *v = ((*v - 0.5) * steeper + 0.5).clamp(0.0, 1.0));
            part
        };
        let (sea, lake) = (cover(WaterKind::Sea), cover(WaterKind::Lake));
        let wet = |c: usize, r: usize| kind(c, r) == WaterKind::Sea as u8 || kind(c, r) == WaterKind::Lake as u8;
        let land = resample(from, to, |c, r| if wet(c, r) { f32::NAN } else { input.elevation.at(c, r) });
        let floor = resample(from, to, |c, r| if wet(c, r) { input.elevation.at(c, r) } else { f32::NAN });
        let mut level = Raster::filled(width, height, f32::NAN);
        for body in input.water_bodies {
            for polygon in &to_pixels(&body.area, &to_px) {
                scan_polygon(polygon, width, height, |row, a, b| {
                    level.values[row * width + a..row * width + b].fill(body.level_m as f32);
                });
            }
        }
        let is_sea = |k: usize| sea.values[k] >= 0.5;
        let mut surface = land;
        let mut depth = Raster::filled(width, height, 0.0f32);
        for k in 0..surface.values.len() {
            let at = level.values[k];
            if is_sea(k) {
                let at = if at.is_nan() { 0.0 } else { at };
                let d = at - floor.values[k];
                depth.values[k] = if d.is_nan() { 0.0 } else { d.max(0.0) };
                surface.values[k] = at;
            } else if !at.is_nan() && lake.values[k] >= 0.5 {
                surface.values[k] = at;
            } else if surface.values[k].is_nan() {
                surface.values[k] = floor.values[k];
            }
        }
        // Soundings are coarse: their tint should flow.
        let soft = blur_where(&depth, is_sea, (SOUNDINGS_M / pixel_m).clamp(1.0, 40.0));
        let vote_of = |codes: &Raster<u16>| {
            vote(from, to, |c, r| {
                let code = codes.at(c, r);
                (code != 0 || !wet(c, r)).then_some(code)
            })
        };
        let top = input.polities.iter().map(|p| p.code).max().unwrap_or(0) as usize;
        let codes = top.max(input.regions.values.iter().copied().max().unwrap_or(0) as usize) + 1;
        let mut colours = vec![[160, 150, 140]; codes];
        let mut drawn_as: Vec<u16> = (0..codes as u16).collect();
        for p in input.polities {
            colours[p.code as usize] = p.colour;
            let mut whole = p;
            // Guarded against circles of parents.
            for _ in 0..8 {
                let parent = whole.claim.parent.as_ref().filter(|_| whole.claim.kind == ClaimKind::Part);
                match parent.and_then(|id| input.polities.iter().find(|q| &q.claim.id == id)) {
                    Some(q) => whole = q,
                    None => break,
                }
            }
            drawn_as[p.code as usize] = if whole.claim.kind == ClaimKind::People { 0 } else { whole.code };
        }
        let mut regions = vote_of(input.regions);
        absorb_slivers(&mut regions, is_sea, (width * height / 60_000).clamp(4, 160));
        Ground {
            width,
            height,
            regions,
            contested: vote_of(input.contested),
            drawn_as,
            surface,
            depth: soft,
            sea,
            lake,
            colours,
        }
    }

    /// Least and greatest height of land, and greatest depth of the sea, metres; `None` where there is none in view.
    pub fn ranges(&self) -> (Option<(f32, f32)>, Option<f32>) {
        let (mut land, mut sea) = (None, None);
        for (k, &z) in self.surface.values.iter().enumerate() {
            if self.sea.values[k] >= 0.5 {
                sea = Some(self.depth.values[k].max(sea.unwrap_or(0.0)));
            } else if !z.is_nan() {
                let (lo, hi) = land.unwrap_or((z, z));
                land = Some((z.min(lo), z.max(hi)));
            }
        }
        (land, sea)
    }

    /// Which pairs of a holder (as it is drawn; 0 is nobody) and a rival contest land in view, with the number of pixels,
    /// most first.
    pub fn contests(&self) -> Vec<((u16, u16), usize)> {
        let mut count: std::collections::BTreeMap<(u16, u16), usize> = Default::default();
        for k in (0..self.contested.values.len()).filter(|&k| self.is_contested(k)) {
            let holder = self.drawn_as.get(self.regions.values[k] as usize).copied().unwrap_or(0);
            *count.entry((holder, self.contested.values[k])).or_default() += 1;
        }
        let mut pairs: Vec<_> = count.into_iter().collect();
        pairs.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        pairs
    }

    fn is_contested(&self, k: usize) -> bool {
        self.contested.values[k] != 0 && self.sea.values[k] < 0.5
    }

    /// The outlines of contested land, in pixels, where no sea bounds it.
    pub fn contested_outlines(&self) -> Vec<Curve> {
        if !(0..self.contested.values.len()).any(|k| self.is_contested(k)) {
            return Vec::new();
        }
        let inside = (0..self.contested.values.len()).map(|k| if self.is_contested(k) { 1.0 } else { 0.0 }).collect();
        let mut inside = blur(&Raster::from_values(self.width, self.height, inside), 1.5);
        // Between -0.9 and 0.9, so that 0 is the only whole number.
        inside.values.iter_mut().for_each(|v| *v = 1.8 * *v - 0.9);
        let grid = Grid {
            crs: Crs { name: "pixels".into(), wkt: String::new(), is_geographic: false },
            transform: GeoTransform { origin_x: 0.0, origin_y: 0.0, cell_width: 1.0, cell_height: 1.0 },
            cols: self.width,
            rows: self.height,
        };
        contour::contours(&inside, &grid, 1.0, &ContourOptions::default())
            .into_iter()
            .flat_map(|c| {
                let points: Vec<Point> = c.line.coords().map(|p| point(p.x as f32, -p.y as f32)).collect();
                let at_sea = |p: &Point| {
                    let (x, y) = ((p.x as usize).min(self.width - 1), (p.y as usize).min(self.height - 1));
                    self.sea.at(x, y) > 0.2
                };
                points.split(at_sea).filter_map(|run| Curve::through(run.iter().copied())).collect::<Vec<_>>()
            })
            .collect()
    }

    /// The colour of every pixel, row after row, RGB. `unit_px` is a printer's point in pixels, `pixel_m` the width of
    /// a pixel on the ground.
    pub fn paint(&self, unit_px: f32, pixel_m: f64) -> Vec<[u8; 3]> {
        let (width, height) = (self.width, self.height);
        let shade = self.shade(pixel_m);
        let is_sea = |x: usize, y: usize| self.sea.at(x, y) >= 0.5;
        let off_shore = blur(&distance(width, height, |x, y| !is_sea(x, y)), 1.0);
        let whole = |x: usize, y: usize| self.drawn_as.get(self.regions.at(x, y) as usize).copied().unwrap_or(0);
        // A seed wherever two different owners of land touch.
        let to_border = distance(width, height, |x, y| {
            let here = whole(x, y);
            !is_sea(x, y)
                && ((x + 1 < width && !is_sea(x + 1, y) && whole(x + 1, y) != here)
                    || (y + 1 < height && !is_sea(x, y + 1) && whole(x, y + 1) != here)
                    || (x > 0 && !is_sea(x - 1, y) && whole(x - 1, y) != here)
                    || (y > 0 && !is_sea(x, y - 1) && whole(x, y - 1) != here))
        });
        let to_border = blur(&to_border, 0.7);
        let ribbon_px = 5.2 * unit_px;
        let mut out = vec![[0u8; 3]; width * height];
        out.par_chunks_mut(width.max(1)).enumerate().for_each(|(y, out)| {
            for (x, out) in out.iter_mut().enumerate() {
                let sea = coverage(self.sea.at(x, y));
                if sea >= 1.0 {
                    *out = to_bytes(self.sea_colour(x, y, off_shore.at(x, y), unit_px));
                    continue;
                }
                let height_m = self.surface.at(x, y);
                let mut land = if height_m.is_nan() { [236.0, 232.0, 222.0] } else { land_tint(height_m) };
                land = shaded(land, shade.at(x, y), height_m);
                let code = whole(x, y);
                let bare = land;
                if code != 0 {
                    let d = to_border.at(x, y) / ribbon_px;
                    let band = 1.0 - smooth((d - 0.72) / 0.38);
                    land = washed(land, self.colours[code as usize], WASH + (RIBBON - WASH) * band);
                }
                let other = self.contested.at(x, y);
                if other != 0 && (other as usize) < self.colours.len() {
                    let period = HATCH_PT * unit_px;
                    let across = ((x + y) as f32 * std::f32::consts::FRAC_1_SQRT_2).rem_euclid(period);
                    let stripe = |from_middle: f32| (0.5 * HATCH_WIDE_PT * unit_px - from_middle + 0.5).clamp(0.0, 1.0);
                    if code != 0 {
                        let holders = stripe(across.min(period - across));
                        land = mix(land, washed(bare, self.colours[code as usize], STRIPE), holders);
                    }
                    let rivals = stripe((across - period / 2.0).abs());
                    land = mix(land, washed(bare, self.colours[other as usize], STRIPE), rivals);
                }
                let lake = coverage(self.lake.at(x, y));
                let mut colour = mix(land, LAKE, lake);
                if sea > 0.0 {
                    colour = mix(colour, self.sea_colour(x, y, off_shore.at(x, y), unit_px), sea);
                }
                let line =
                    shore_line(&self.sea, x, y, 0.36 * unit_px).max(0.8 * shore_line(&self.lake, x, y, 0.3 * unit_px));
                colour = mix(colour, WATER_INK.map(f32::from), 0.85 * line);
                *out = to_bytes(colour);
            }
        });
        out
    }

    /// Depth tint with the vignette: a pale glow at the shore, then three fine lines that fade outward.
    fn sea_colour(&self, x: usize, y: usize, off_shore_px: f32, unit_px: f32) -> Rgb {
        let mut c = depth_tint(self.depth.at(x, y));
        let glow = 1.0 - smooth(off_shore_px / (9.0 * unit_px));
        c = mix(c, [236.0, 245.0, 248.0], 0.55 * glow);
        for (k, at) in [1.9f32, 4.2, 7.0].into_iter().enumerate() {
            let line = (0.17 * unit_px + 0.5 - (off_shore_px - at * unit_px).abs()).clamp(0.0, 1.0);
            c = mix(c, [96.0, 150.0, 190.0], line * [0.5, 0.34, 0.2][k]);
        }
        c
    }

    /// Brightness relative to flat land: 1 is flat. Fine and generalised forms mixed, gentle slopes raised and steep
    /// ones held back, as a draughtsman would.
    fn shade(&self, pixel_m: f64) -> Raster<f32> {
        let known = |k: usize| !self.surface.values[k].is_nan();
        let filled = {
            let mut f = self.surface.clone();
            f.values.iter_mut().for_each(|v| {
                if v.is_nan() {
                    *v = 0.0;
                }
            });
            f
        };
        let broad = blur_where(&filled, known, 3.2);
        let broadest = blur_where(&filled, known, 10.0);
        let many = Shader::new(&HillshadeOptions { light: Light::Multidirectional, ..Default::default() });
        let one = Shader::new(&HillshadeOptions { altitude_deg: 50.0, ..Default::default() });
        let flat = (45f64.to_radians().sin(), 50f64.to_radians().sin());
        // Coarser pixels see gentler slopes.
        let raise = 3.4 * (pixel_m / 350.0).powf(0.35).clamp(0.5, 3.0);
        let mut out = Raster::filled(self.width, self.height, 1.0f32);
        out.values.par_chunks_mut(self.width.max(1)).enumerate().for_each(|(y, out)| {
            for (x, v) in out.iter_mut().enumerate() {
                let tone = |from: &Raster<f32>, raise: f64| {
                    gradient(from, pixel_m, x, y).map_or((1.0, 1.0), |g| {
                        let g = g.compressed(raise, 1.5);
                        (many.brightness(g) / flat.0, one.brightness(g) / flat.1)
                    })
                };
                let (fine, mid, wide) = (tone(&filled, raise), tone(&broad, 1.2 * raise), tone(&broadest, 1.6 * raise));
                *v = (0.24 * fine.0 + 0.28 * fine.1 + 0.12 * mid.0 + 0.22 * mid.1 + 0.14 * wide.1) as f32;
            }
        });
        out
    }
}

fn to_bytes(colour: Rgb) -> [u8; 3] {
    colour.map(|c| (c + 0.5).clamp(0.0, 255.0) as u8)
}

/// `tint` under light and shadow: cool shadows, warm lights, stronger on high ground.
fn shaded(tint: Rgb, tone: f32, height_m: f32) -> Rgb {
    let depth = 0.72 + 0.28 * smooth(if height_m.is_nan() { 0.0 } else { height_m / 2600.0 });
    if tone < 1.0 {
        let dark = ((1.0 - tone) * 1.02 * depth).min(0.72);
        return [
            tint[0] * (1.0 - dark) + 54.0 * dark * 0.5,
            tint[1] * (1.0 - dark) + 52.0 * dark * 0.6,
            tint[2] * (1.0 - dark * 0.92) + 84.0 * dark * 0.5,
        ];
    }
    mix(tint, [255.0, 252.0, 240.0], ((tone - 1.0) * 1.5 * depth).min(0.75))
}

/// A blurred cover fraction with its edge made crisp again.
fn coverage(part: f32) -> f32 {
    smooth((part - 0.5) * 1.8 + 0.5)
}

/// Strength, 0 to 1, of a line `width_px` wide along the half-cover contour of `part`.
fn shore_line(part: &Raster<f32>, x: usize, y: usize, width_px: f32) -> f32 {
    let here = part.at(x, y);
    if here <= 0.001 || here >= 0.999 {
        return 0.0;
    }
    let (x0, x1) = (x.saturating_sub(1), (x + 1).min(part.cols - 1));
    let (y0, y1) = (y.saturating_sub(1), (y + 1).min(part.rows - 1));
    let dx = (part.at(x1, y) - part.at(x0, y)) / (x1 - x0).max(1) as f32;
    let dy = (part.at(x, y1) - part.at(x, y0)) / (y1 - y0).max(1) as f32;
    let steep = dx.hypot(dy);
    if steep < 0.01 {
        return 0.0;
    }
    (width_px / 2.0 + 0.5 - (here - 0.5).abs() / steep).clamp(0.0, 1.0)
}

/// A Gaussian mean of the pixels where `known`, elsewhere the value itself.
fn blur_where(r: &Raster<f32>, known: impl Fn(usize) -> bool, sigma_px: f32) -> Raster<f32> {
    let mut weight = Raster::filled(r.cols, r.rows, 0.0f32);
    let mut value = weight.clone();
    for k in 0..r.values.len() {
        if known(k) {
            weight.values[k] = 1.0;
            value.values[k] = r.values[k];
        }
    }
    let (weight, mut value) = (blur(&weight, sigma_px), blur(&value, sigma_px));
    for (k, v) in value.values.iter_mut().enumerate() {
        *v = if weight.values[k] > 1e-3 { *v / weight.values[k] } else { r.values[k] };
    }
    value
}

/// Gives pieces of unclaimed land of fewer than `least` pixels to the neighbour that bounds them most: where outline and
/// shore differ by a cell, no ribbon should run along the gap.
fn absorb_slivers(regions: &mut Raster<u16>, is_sea: impl Fn(usize) -> bool, least: usize) {
    let (width, height) = (regions.cols, regions.rows);
    let mut seen = vec![false; width * height];
    let mut stack = Vec::new();
    for start in 0..seen.len() {
        if seen[start] || regions.values[start] != 0 || is_sea(start) {
            continue;
        }
        let mut piece = Vec::new();
        let mut beside: std::collections::BTreeMap<u16, usize> = Default::default();
        seen[start] = true;
        stack.push(start);
        while let Some(k) = stack.pop() {
            piece.push(k);
            let (x, y) = (k % width, k / width);
            let around = [
                (x > 0).then(|| k - 1),
                (x + 1 < width).then(|| k + 1),
                (y > 0).then(|| k - width),
                (y + 1 < height).then(|| k + width),
            ];
            for n in around.into_iter().flatten().filter(|&n| !is_sea(n)) {
                match regions.values[n] {
                    0 if !seen[n] => {
                        seen[n] = true;
                        stack.push(n);
                    }
                    0 => {}
                    code => *beside.entry(code).or_default() += 1,
                }
            }
        }
        let most = beside.into_iter().max_by_key(|&(code, n)| (n, std::cmp::Reverse(code)));
        if let Some((code, _)) = most.filter(|_| piece.len() < least) {
            piece.into_iter().for_each(|k| regions.values[k] = code);
        }
    }
}

/// An area in pixel coordinates.
pub(super) fn to_pixels(area: &MultiPolygon<f64>, to_px: &impl Fn(f64, f64) -> (f64, f64)) -> MultiPolygon<f64> {
    area.map_coords(|c| to_px(c.x, c.y).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn land_below_the_sea_is_green() {
        let c = land_tint(-28.0);
        assert!(c[1] > c[0] && c[1] > c[2], "{c:?}");
    }

    #[test]
    fn tints_meet_their_stops() {
        for (z, c) in LAND_TINTS {
            assert_eq!(land_tint(z), c);
        }
        assert_eq!(land_tint(9000.0), LAND_TINTS[9].1);
        assert_eq!(depth_tint(0.0), DEPTH_TINTS[0].1);
        assert_eq!(depth_tint(5000.0), DEPTH_TINTS[5].1);
    }

    #[test]
    fn small_gaps_close_and_large_ones_stay() {
        let mut r = Raster::from_values(5, 2, vec![0, 7, 7, 0, 0, 7, 7, 7, 0, 0]);
        absorb_slivers(&mut r, |_| false, 3);
        assert_eq!(r.values, [7, 7, 7, 0, 0, 7, 7, 7, 0, 0]);
    }

    #[test]
    fn shadow_darkens_and_light_lightens() {
        let t = land_tint(1500.0);
        let sum = |c: Rgb| c.iter().sum::<f32>();
        assert!(sum(shaded(t, 0.6, 1500.0)) < sum(t) && sum(shaded(t, 1.2, 1500.0)) > sum(t));
        assert!(shaded(t, 0.0, 4000.0).iter().all(|&c| c > 40.0), "no black");
    }
}
