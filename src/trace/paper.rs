//! Paper and print: the picture as it would be on even paper, and at the scale of the printer's screen.
//!
//! Invariant: what comes out depends on picture and legend alone, not on threads: sums run along fixed rows.

use super::Picture;
use super::classify::Palette;
use super::colour::{Lab, Rgb, encoded_byte, linear_table};
use rayon::prelude::*;

/// Blocks along the longer side of the picture, in which its paper is judged.
const BLOCKS: usize = 48;
/// The fewest pixels along a block's side.
const LEAST_BLOCK_PX: usize = 12;
/// Pixels along a block's side that are looked at, about.
const SAMPLES: usize = 40;
/// Rounds of judging: each sees the picture on the paper of the one before.
const ROUNDS: usize = 10;
/// A pixel speaks for the paper where its colour is within this many tolerances of the legend's.
const WIDE: f32 = 2.5;
/// Radius over which the paper of one block is that of its neighbours, blocks.
const SMOOTH_BLOCKS: f64 = 2.0;
/// Weight of the whole picture's paper in each block, samples.
const PRIOR: f64 = 0.5;

/// Log of the light of the paper by block, against that which the legend's colours were taken on.
struct Paper {
    cols: usize,
    rows: usize,
    block_px: usize,
    log: Vec<[f32; 3]>,
}

impl Paper {
    fn even(cols: usize, rows: usize) -> Paper {
        let block_px = (cols.max(rows) / BLOCKS).max(LEAST_BLOCK_PX);
        let (cols, rows) = (cols.div_ceil(block_px).max(1), rows.div_ceil(block_px).max(1));
        Paper { cols, rows, block_px, log: vec![[0.0; 3]; cols * rows] }
    }

    /// What to multiply a pixel's light by: bilinear between the middles of blocks.
    fn gain(&self, col: usize, row: usize) -> [f32; 3] {
        let place = |p: usize, n: usize| {
            let at = ((p as f32 + 0.5) / self.block_px as f32 - 0.5).clamp(0.0, (n - 1) as f32);
            let low = at.floor().min((n - 1) as f32);
            (low as usize, (low as usize + 1).min(n - 1), at - low)
        };
        let ((c0, c1, u), (r0, r1, v)) = (place(col, self.cols), place(row, self.rows));
        let at = |c: usize, r: usize| self.log[r * self.cols + c];
        let (a, b, c, d) = (at(c0, r0), at(c1, r0), at(c0, r1), at(c1, r1));
        std::array::from_fn(|k| {
            let above = a[k] + u * (b[k] - a[k]);
            let below = c[k] + u * (d[k] - c[k]);
            (-(above + v * (below - above))).exp()
        })
    }
}

/// The picture on even paper: a smooth field of light, by channel, in which the colours of its areas are as near to the legend's
/// as can be, is divided out. The field and the classes are found in turn.
pub(super) fn evened(picture: &mut Picture, palette: &Palette) {
    let (cols, rows) = (picture.cols, picture.rows);
    let mut paper = Paper::even(cols, rows);
    let light = linear_table();
    let step = (paper.block_px / SAMPLES).max(1);
    for _ in 0..ROUNDS {
        let sums: Vec<[f64; 4]> = (0..paper.cols * paper.rows)
            .into_par_iter()
            .map(|block| {
                let (c0, r0) = (block % paper.cols * paper.block_px, block / paper.cols * paper.block_px);
                let mut sum = [0f64; 4];
                for row in (r0..(r0 + paper.block_px).min(rows)).step_by(step) {
                    for col in (c0..(c0 + paper.block_px).min(cols)).step_by(step) {
                        if !picture.is_inside(col, row) {
                            continue;
                        }
                        let seen = picture.at(col, row).map(|v| light[usize::from(v)]);
                        let gain = paper.gain(col, row);
                        let lab = Lab::of_linear(std::array::from_fn(|k| (seen[k] * gain[k]).min(1.0)));
                        let Some(meant) = palette.area_near(lab, WIDE) else { continue };
                        let meant = meant.map(|v| light[usize::from(v)]);
                        sum[3] += 1.0;
                        for k in 0..3 {
                            sum[k] += f64::from(((seen[k] + 0.003) / (meant[k] + 0.003)).ln());
                        }
                    }
                }
                sum
            })
            .collect();
        let all = sums.iter().fold([0f64; 4], |a, s| std::array::from_fn(|k| a[k] + s[k]));
        if all[3] == 0.0 {
            return;
        }
        let sums = smoothed(&sums, paper.cols, paper.rows);
        for (log, s) in paper.log.iter_mut().zip(&sums) {
            *log = std::array::from_fn(|k| ((s[k] + PRIOR * all[k] / all[3]) / (s[3] + PRIOR)) as f32);
        }
    }
    let paper = &paper;
    picture.rgb.par_chunks_mut(cols.max(1)).enumerate().for_each(|(row, pixels)| {
        for (col, pixel) in pixels.iter_mut().enumerate() {
            let gain = paper.gain(col, row);
            *pixel = std::array::from_fn(|k| encoded_byte(light[usize::from(pixel[k])] * gain[k]));
        }
    });
}

/// Gaussian means of sums over blocks.
fn smoothed(sums: &[[f64; 4]], cols: usize, rows: usize) -> Vec<[f64; 4]> {
    let weights = kernel(SMOOTH_BLOCKS);
    let along = |from: &[[f64; 4]], n: usize, at: &dyn Fn(usize, usize) -> usize, lines: usize| {
        let mut to = vec![[0f64; 4]; from.len()];
        for line in 0..lines {
            for k in 0..n {
                let mut sum = [0f64; 4];
                for (w, step) in weights.iter().zip(-(weights.len() as i64 / 2)..) {
                    let Ok(other) = usize::try_from(k as i64 + step) else { continue };
                    if other < n {
                        let s = from[at(other, line)];
                        (0..4).for_each(|b| sum[b] += f64::from(*w) * s[b]);
                    }
                }
                to[at(k, line)] = sum;
            }
        }
        to
    };
    let once = along(sums, cols, &|k, line| line * cols + k, rows);
    along(&once, rows, &|k, line| k * cols + line, cols)
}

/// A Gaussian of `sigma`, out to three of it, of sum 1.
fn kernel(sigma: f64) -> Vec<f32> {
    let reach = (3.0 * sigma).ceil() as i64;
    let raw: Vec<f64> = (-reach..=reach).map(|k| (-0.5 * (k as f64 / sigma).powi(2)).exp()).collect();
    let sum: f64 = raw.iter().sum();
    raw.iter().map(|w| (w / sum) as f32).collect()
}

/// The mean light around a pixel, as [`averaged`] weighs it, as a colour.
pub(super) fn mean_around(picture: &Picture, col: usize, row: usize, screen_px: f64) -> Rgb {
    let weights = kernel(0.45 * screen_px);
    let reach = (weights.len() / 2) as i64;
    let light = linear_table();
    let mut sum = [0f32; 4];
    for (wy, y) in weights.iter().zip(row as i64 - reach..) {
        for (wx, x) in weights.iter().zip(col as i64 - reach..) {
            if x >= 0 && y >= 0 && x < picture.cols as i64 && y < picture.rows as i64 {
                let seen = picture.at(x as usize, y as usize).map(|v| light[usize::from(v)]);
                (0..3).for_each(|k| sum[k] += wx * wy * seen[k]);
                sum[3] += wx * wy;
            }
        }
    }
    [0, 1, 2].map(|k| encoded_byte(sum[k] / sum[3]))
}

/// Rows that are averaged at a time.
const BAND: usize = 128;

/// The picture at the scale of a printer's screen: the mean light of what lies around each pixel, weighed by a Gaussian that is
/// blind to a period of `screen_px`; lines of the legend are left out of it, and stay as they are.
pub(super) fn averaged(picture: &mut Picture, palette: &Palette, screen_px: f64) {
    let weights = kernel(0.45 * screen_px);
    let reach = weights.len() / 2;
    let (cols, rows) = (picture.cols, picture.rows);
    if cols == 0 {
        return;
    }
    let light = linear_table();
    let seen = &*picture;
    let mut out = vec![[0u8; 3]; seen.rgb.len()];
    out.par_chunks_mut(cols * BAND).enumerate().for_each(|(band, out)| {
        let r0 = band * BAND;
        let first = r0.saturating_sub(reach);
        let last = (r0 + BAND + reach).min(rows);
        // Along the rows: light and the weight of what it is the light of.
        let mut rows_along: Vec<[f32; 4]> = Vec::with_capacity((last - first) * cols);
        let mut line = vec![[0f32; 4]; cols + 2 * reach];
        for row in first..last {
            for col in 0..cols {
                let rgb = seen.at(col, row);
                let counts = seen.is_inside(col, row) && !palette.is_ink(Lab::of(rgb));
                let [r, g, b] = rgb.map(|v| light[usize::from(v)]);
                line[col + reach] = if counts { [r, g, b, 1.0] } else { [0.0; 4] };
            }
            for col in 0..cols {
                let mut sum = [0f32; 4];
                for (w, v) in weights.iter().zip(&line[col..]) {
                    (0..4).for_each(|k| sum[k] += w * v[k]);
                }
                rows_along.push(sum);
            }
        }
        for (row, out) in (r0..).zip(out.chunks_mut(cols)) {
            for (col, pixel) in out.iter_mut().enumerate() {
                let rgb = seen.at(col, row);
                if palette.is_ink(Lab::of(rgb)) {
                    *pixel = rgb;
                    continue;
                }
                let mut sum = [0f32; 4];
                for (w, other) in weights.iter().zip(row as i64 - reach as i64..) {
                    if other >= 0 && (other as usize) < rows {
                        let v = rows_along[(other as usize - first) * cols + col];
                        (0..4).for_each(|k| sum[k] += w * v[k]);
                    }
                }
                *pixel = if sum[3] > 0.0 { [0, 1, 2].map(|k| encoded_byte(sum[k] / sum[3])) } else { rgb };
            }
        }
    });
    picture.rgb = out;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Legend, classify};

    const TWO: &str = "[[class]]\nname='sea'\nkind='water'\ncolour='#a8c8d8'\n\
                       [[class]]\nname='land'\nkind='land'\ncolour='#e8c8a0'\n\
                       [[class]]\nname='ink'\nkind='line'\ncolour='#181818'\n";

    fn palette() -> Palette {
        Palette::of(&Legend::parse(TWO, "l").unwrap())
    }

    fn colour(c: usize) -> Rgb {
        if c < 150 { [0xa8, 0xc8, 0xd8] } else { [0xe8, 0xc8, 0xa0] }
    }

    /// How many pixels are taken for the class that they are of.
    fn right(picture: &Picture, palette: &Palette) -> f64 {
        let found = classify::classify(picture, palette).labels;
        let is_right = |k: &usize| found[*k] == u8::from(k % picture.cols >= 150);
        (0..found.len()).filter(is_right).count() as f64 / found.len() as f64
    }

    #[test]
    fn yellowed_paper_is_divided_out() {
        // Darker and yellower from the upper left to the lower right: 0 to 70 % of the blue light goes, half that of the rest.
        let (cols, rows) = (300, 200);
        let light = linear_table();
        let dim = |c: usize, r: usize| 0.7 * (c as f32 / 600.0 + r as f32 / 400.0);
        let rgb = |k: usize| {
            let (c, r) = (k % cols, k / cols);
            let share = [0.5, 0.5, 1.0].map(|s| 1.0 - s * dim(c, r));
            let lit = colour(c).map(|v| light[usize::from(v)]);
            [0, 1, 2].map(|b| encoded_byte(lit[b] * share[b]))
        };
        let mut picture = Picture::new(cols, rows, (0..cols * rows).map(rgb).collect());
        let palette = palette();
        assert!(right(&picture, &palette) < 0.85, "{}", right(&picture, &palette));
        evened(&mut picture, &palette);
        assert!(right(&picture, &palette) > 0.995, "{}", right(&picture, &palette));
    }

    #[test]
    fn even_paper_stays() {
        let rgb: Vec<Rgb> = (0..300 * 100).map(|k| colour(k % 300)).collect();
        let mut picture = Picture::new(300, 100, rgb.clone());
        evened(&mut picture, &palette());
        assert_eq!(picture.rgb, rgb);
    }

    #[test]
    fn dots_become_the_tint_that_they_are_seen_as() {
        // Dots of dark blue on white, 4 of 5 pixels each way: the light of the sea's colour.
        let (cols, rows) = (300, 60);
        let light = linear_table();
        let share = 16.0 / 25.0;
        let sea = [0xa8u8, 0xc8, 0xd8].map(|v| light[usize::from(v)]);
        let paper = [1.0f32; 3];
        let dot = [0, 1, 2].map(|b| encoded_byte((sea[b] - (1.0 - share) * paper[b]).max(0.0) / share));
        let rgb = |k: usize| {
            let (c, r) = (k % cols, k / cols);
            match (c < 150, c % 5 < 4 && r % 5 < 4, r == 30) {
                (_, _, true) => [0x18; 3],
                (true, true, _) => dot,
                (true, false, _) => [255; 3],
                _ => colour(c),
            }
        };
        let mut picture = Picture::new(cols, rows, (0..cols * rows).map(rgb).collect());
        let palette = palette();
        averaged(&mut picture, &palette, 5.0);
        for (c, r) in [(20, 10), (61, 45), (100, 28)] {
            let d = Lab::of(picture.at(c, r)).distance(Lab::of([0xa8, 0xc8, 0xd8]), 1.0);
            assert!(d < 6.0, "{:?} at {c}, {r}: {d}", picture.at(c, r));
        }
        assert_eq!(picture.at(20, 30), [0x18; 3]);
        assert_eq!(picture.at(250, 29), colour(250));
    }
}
