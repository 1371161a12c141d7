//! A legend proposed: the colours that a picture is made of, the most frequent first.

use super::Picture;
use super::colour::{Lab, Rgb};
use rayon::prelude::*;

/// Bits of a channel that are counted apart.
const BITS: u32 = 5;
/// Colours nearer than this are one, hundredths of OKLab: half of the usual tolerance.
const ONE_COLOUR: f32 = 3.0;
/// Colours rarer than this are left out.
const LEAST_SHARE: f64 = 0.002;
/// The most colours that are proposed.
const MOST: usize = 40;
/// A colour of which fewer pixels than this lie among their like is that of lines and lettering.
const SOLID_SHARE: f64 = 0.35;

/// One colour of a picture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Proposed {
    /// The colour.
    pub colour: Rgb,
    /// Share of the picture that is of it, 0 to 1.
    pub share: f64,
    /// Share of its pixels whose eight neighbours are of it too: near 0 for lines and lettering.
    pub solid: f64,
}

impl Proposed {
    /// Whether it is drawn in lines rather than laid as areas.
    pub fn is_line(&self) -> bool {
        self.solid < SOLID_SHARE
    }

    /// Whether it is a blue, as waters mostly are.
    pub fn is_blue(&self) -> bool {
        let lab = Lab::of(self.colour);
        lab.b < -2.0 && lab.b < -lab.a.abs()
    }
}

/// The colours of `picture`, the most frequent first: colours are counted by 32 steps a channel; from the most frequent on,
/// each that is far enough from all before stands for those around it. Cost: two passes.
pub fn propose(picture: &Picture) -> Vec<Proposed> {
    const CELLS: usize = 1 << (3 * BITS);
    let (cols, rows) = (picture.cols, picture.rows);
    let bin = |[r, g, b]: Rgb| {
        let part = |v: u8| usize::from(v >> (8 - BITS));
        (part(r) << (2 * BITS)) | (part(g) << BITS) | part(b)
    };
    let counts = (0..rows)
        .into_par_iter()
        .filter(|_| cols > 0)
        .fold(
            || vec![[0u64; 4]; CELLS],
            |mut counts, r| {
                for c in (0..cols).filter(|&c| picture.is_inside(c, r)) {
                    let rgb = picture.at(c, r);
                    let sum = &mut counts[bin(rgb)];
                    sum[0] += 1;
                    (0..3).for_each(|i| sum[i + 1] += u64::from(rgb[i]));
                }
                counts
            },
        )
        .reduce(
            || vec![[0u64; 4]; CELLS],
            |mut a, b| {
                a.iter_mut().zip(b).for_each(|(x, y)| (0..4).for_each(|i| x[i] += y[i]));
                a
            },
        );
    let total: u64 = counts.iter().map(|c| c[0]).sum();
    let mut order: Vec<usize> = (0..CELLS).filter(|&k| counts[k][0] > 0).collect();
    order.sort_by_key(|&k| (std::cmp::Reverse(counts[k][0]), k));
    // Mean colour, and the pixels that it stands for.
    let mut found: Vec<(Lab, Rgb, u64)> = Vec::new();
    let mut of_bin = vec![u8::MAX; CELLS];
    for k in order {
        let [n, r, g, b] = counts[k];
        let rgb = [r, g, b].map(|sum| (sum / n) as u8);
        let lab = Lab::of(rgb);
        let near = found.iter().map(|f| f.0.distance(lab, 1.0)).enumerate().min_by(|a, b| a.1.total_cmp(&b.1));
        match near {
            Some((i, d)) if d <= ONE_COLOUR => {
                found[i].2 += n;
                of_bin[k] = i as u8;
            }
            // The rarest colours of a photograph are without number.
            _ if found.len() < 250 => {
                of_bin[k] = found.len() as u8;
                found.push((lab, rgb, n));
            }
            _ => {}
        }
    }
    let class = |c: usize, r: usize| of_bin[bin(picture.at(c, r))];
    let solid = (1..rows.saturating_sub(1))
        .into_par_iter()
        .fold(
            || vec![[0u64; 2]; 256],
            |mut solid, r| {
                for c in 1..cols.saturating_sub(1) {
                    let own = class(c, r);
                    let among = (r - 1..=r + 1).all(|y| (c - 1..=c + 1).all(|x| class(x, y) == own));
                    solid[own as usize][0] += 1;
                    solid[own as usize][1] += u64::from(among);
                }
                solid
            },
        )
        .reduce(
            || vec![[0u64; 2]; 256],
            |mut a, b| {
                a.iter_mut().zip(b).for_each(|(x, y)| (0..2).for_each(|i| x[i] += y[i]));
                a
            },
        );
    let mut proposed: Vec<Proposed> = found
        .into_iter()
        .enumerate()
        .map(|(i, (_, colour, n))| Proposed {
            colour,
            share: n as f64 / total.max(1) as f64,
            solid: solid[i][1] as f64 / solid[i][0].max(1) as f64,
        })
        .filter(|p| p.share >= LEAST_SHARE)
        .collect();
    proposed.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.colour.cmp(&b.colour)));
    proposed.truncate(MOST);
    proposed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_and_lines_are_told_apart_and_ordered_by_share() {
        let (green, blue, black) = ([160, 200, 120], [150, 200, 240], [20, 20, 20]);
        let colour = |k: usize| match (k % 60, k / 60) {
            (20, _) => black,
            (c, _) if c > 20 => green,
            _ => blue,
        };
        let found = propose(&Picture::new(60, 40, (0..2400).map(colour).collect()));
        assert_eq!(found.iter().map(|p| p.colour).collect::<Vec<_>>(), [green, blue, black]);
        assert_eq!(found.iter().map(Proposed::is_line).collect::<Vec<_>>(), [false, false, true]);
        assert_eq!(found.iter().map(Proposed::is_blue).collect::<Vec<_>>(), [false, true, false]);
        assert!((found[0].share - 39.0 / 60.0).abs() < 1e-12);
    }

    #[test]
    fn pictures_of_one_pixel_or_none_have_their_colours() {
        assert_eq!(propose(&Picture::new(1, 1, vec![[9, 9, 9]])).len(), 1);
        assert!(propose(&Picture::new(0, 0, vec![])).is_empty());
    }
}
