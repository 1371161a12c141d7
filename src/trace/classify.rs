//! Pixels to classes: the nearest colour of the legend, within its tolerance.

use super::colour::{Lab, Rgb};
use super::legend::{ClassKind, Legend};
use super::{OUTSIDE, Picture, UNKNOWN};
use rayon::prelude::*;
use std::sync::atomic::{AtomicU16, Ordering};

/// A pixel is doubtful where the colour of another area is less than this many times as far as that of its own.
const DOUBT_RATIO: f32 = 1.3;

/// The colours of a legend, ready to be compared.
pub(super) struct Palette {
    /// Colour and class.
    colours: Vec<(Lab, u8)>,
    /// The same as pixels.
    pixels: Vec<Rgb>,
    /// Square of the tolerance of each class.
    tolerance2: Vec<f32>,
    is_line: Vec<bool>,
    has_lines: bool,
    lightness: f32,
}

/// What a colour is taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Number of the class, or [`UNKNOWN`].
    pub(super) class: u8,
    /// Whether another area is nearly as near.
    pub(super) is_doubtful: bool,
}

impl Palette {
    pub(super) fn of(legend: &Legend) -> Palette {
        let colours = (0u8..)
            .zip(&legend.classes)
            .flat_map(|(k, class)| class.colours.iter().map(move |rgb| (Lab::of(*rgb), k)))
            .collect();
        Palette {
            colours,
            pixels: legend.classes.iter().flat_map(|c| c.colours.iter().copied()).collect(),
            tolerance2: legend.classes.iter().map(|c| c.tolerance * c.tolerance).collect(),
            has_lines: legend.classes.iter().any(|c| c.kind == ClassKind::Line),
            is_line: legend.classes.iter().map(|c| c.kind == ClassKind::Line).collect(),
            lightness: legend.lightness,
        }
    }

    pub(super) fn is_line(&self, class: u8) -> bool {
        self.is_line.get(usize::from(class)).copied().unwrap_or(false)
    }

    /// The colour of the nearest area, where it is within `wide` times its tolerance and no line is nearer.
    pub(super) fn area_near(&self, lab: Lab, wide: f32) -> Option<Rgb> {
        let distance = |colour: Lab| lab.distance2(colour, self.lightness);
        let nearest = (0..self.colours.len())
            .min_by(|&a, &b| distance(self.colours[a].0).total_cmp(&distance(self.colours[b].0)))?;
        let (colour, class) = self.colours[nearest];
        let is_near = distance(colour) <= wide * wide * self.tolerance2[usize::from(class)];
        (is_near && !self.is_line(class)).then(|| self.pixels[nearest])
    }

    /// Whether a colour is that of lines: the nearest class that admits it is one of them.
    pub(super) fn is_ink(&self, lab: Lab) -> bool {
        self.has_lines && self.is_line(self.verdict(lab).class)
    }

    /// The nearest class that admits `lab`; the earlier one in the legend where two are equally near.
    pub(super) fn verdict(&self, lab: Lab) -> Verdict {
        let (mut nearest, mut class) = (f32::INFINITY, UNKNOWN);
        for &(colour, k) in &self.colours {
            let d = lab.distance2(colour, self.lightness);
            if d < nearest && d <= self.tolerance2[usize::from(k)] {
                (nearest, class) = (d, k);
            }
        }
        let is_near = nearest * DOUBT_RATIO * DOUBT_RATIO;
        let is_doubtful = class != UNKNOWN
            && !self.is_line(class)
            && self
                .colours
                .iter()
                .any(|&(colour, k)| k != class && !self.is_line(k) && lab.distance2(colour, self.lightness) < is_near);
        Verdict { class, is_doubtful }
    }
}

/// Classes of pixels, row after row.
pub(super) struct Classified {
    /// Number of the class, [`UNKNOWN`] or [`OUTSIDE`].
    pub(super) labels: Vec<u8>,
    /// 1 where the colour leaves doubt.
    pub(super) doubt: Vec<u8>,
}

impl Classified {
    /// Asks `verdict` for each pixel that is part of the map.
    pub(super) fn by(picture: &Picture, verdict: impl Fn(usize, usize, Rgb) -> Verdict + Sync) -> Classified {
        let cols = picture.cols;
        let mut labels = vec![OUTSIDE; picture.rgb.len()];
        let mut doubt = vec![0u8; picture.rgb.len()];
        labels.par_chunks_mut(cols).zip(doubt.par_chunks_mut(cols)).enumerate().for_each(|(row, (labels, doubt))| {
            for col in 0..cols {
                if picture.is_inside(col, row) {
                    let v = verdict(col, row, picture.rgb[row * cols + col]);
                    (labels[col], doubt[col]) = (v.class, u8::from(v.is_doubtful));
                }
            }
        });
        Classified { labels, doubt }
    }
}

/// Classes by the colours as they are. Each colour of the picture is looked at once.
pub(super) fn classify(picture: &Picture, palette: &Palette) -> Classified {
    const IS_KNOWN: u16 = 1 << 9;
    const IS_DOUBTFUL: u16 = 1 << 8;
    // What a colour is does not depend on who asks first: threads may fill the table in any order.
    let table: Vec<AtomicU16> = (0..1 << 24).into_par_iter().map(|_| AtomicU16::new(0)).collect();
    Classified::by(picture, |_, _, rgb| {
        let at = &table[usize::from(rgb[0]) << 16 | usize::from(rgb[1]) << 8 | usize::from(rgb[2])];
        let found = at.load(Ordering::Relaxed);
        if found & IS_KNOWN != 0 {
            return Verdict { class: found as u8, is_doubtful: found & IS_DOUBTFUL != 0 };
        }
        let v = palette.verdict(Lab::of(rgb));
        at.store(u16::from(v.class) | IS_KNOWN | if v.is_doubtful { IS_DOUBTFUL } else { 0 }, Ordering::Relaxed);
        v
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn legend(text: &str) -> Legend {
        Legend::parse(text, "l").unwrap()
    }

    const THREE: &str = "[[class]]\nname='red'\nkind='polity'\ncolour='#ff0000'\n\
                         [[class]]\nname='blue'\nkind='water'\ncolour='#0000ff'\ntolerance=40\n\
                         [[class]]\nname='ink'\nkind='line'\ncolour=['#000000','#202020']\n";

    #[test]
    fn the_nearest_colour_within_its_tolerance_wins() {
        let palette = Palette::of(&legend(THREE));
        let class = |rgb| palette.verdict(Lab::of(rgb)).class;
        assert_eq!(class([250, 5, 5]), 0);
        assert_eq!(class([60, 60, 255]), 1);
        assert_eq!(class([30, 30, 30]), 2);
        assert_eq!(class([0, 255, 0]), UNKNOWN);
    }

    #[test]
    fn between_two_areas_is_doubt_but_not_between_an_area_and_ink() {
        let palette = Palette::of(&legend(
            "[[class]]\nname='a'\nkind='land'\ncolour='#808080'\ntolerance=20\n[[class]]\nname='b'\nkind='land'\n\
             colour='#a0a0a0'\ntolerance=20\n[[class]]\nname='ink'\nkind='line'\ncolour='#606060'\ntolerance=20",
        ));
        assert_eq!(palette.verdict(Lab::of([0x8e; 3])), Verdict { class: 0, is_doubtful: true });
        assert_eq!(palette.verdict(Lab::of([0x82; 3])), Verdict { class: 0, is_doubtful: false });
        assert_eq!(palette.verdict(Lab::of([0x72; 3])), Verdict { class: 0, is_doubtful: false });
    }

    #[test]
    fn what_is_left_out_stays_outside() {
        let mut picture = Picture::new(2, 1, vec![[255, 0, 0]; 2]);
        picture.leave_out(1, 0);
        let found = classify(&picture, &Palette::of(&legend(THREE)));
        assert_eq!(found.labels, [0, OUTSIDE]);
    }
}
