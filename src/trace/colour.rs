//! Colours as the eye orders them: sRGB to OKLab and the distance there.
//!
//! Distances are in hundredths: black and white are 100 apart, and what the eye just tells apart about 2.
//! Source: B. Ottosson, "A perceptual color space for image processing", 2020 (matrices of the revised version); the transfer
//! curve is that of IEC 61966-2-1.

use std::sync::OnceLock;

/// A colour of a picture: red, green, blue, 0 to 255 (sRGB).
pub type Rgb = [u8; 3];

/// A colour in OKLab, in hundredths.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Lab {
    /// Lightness, 0 black to 100 white.
    pub lightness: f32,
    /// Green (negative) to red.
    pub a: f32,
    /// Blue (negative) to yellow.
    pub b: f32,
}

impl Lab {
    /// The colour of an sRGB pixel.
    ///
    /// ```
    /// use histmap::trace::Lab;
    /// let white = Lab::of([255, 255, 255]);
    /// assert!((white.lightness - 100.0).abs() < 0.01 && white.a.abs() < 0.01 && white.b.abs() < 0.01);
    /// ```
    pub fn of(rgb: Rgb) -> Lab {
        let table = linear_table();
        Lab::of_linear(rgb.map(|v| table[usize::from(v)]))
    }

    /// The colour of linear light, each component 0 to 1.
    pub fn of_linear([r, g, b]: [f32; 3]) -> Lab {
        let l = (0.412_221_46 * r + 0.536_332_55 * g + 0.051_445_995 * b).cbrt();
        let m = (0.211_903_5 * r + 0.680_699_5 * g + 0.107_396_96 * b).cbrt();
        let s = (0.088_302_46 * r + 0.281_718_85 * g + 0.629_978_7 * b).cbrt();
        Lab {
            lightness: 100.0 * (0.210_454_26 * l + 0.793_617_8 * m - 0.004_072_047 * s),
            a: 100.0 * (1.977_998_5 * l - 2.428_592_2 * m + 0.450_593_7 * s),
            b: 100.0 * (0.025_904_037 * l + 0.782_771_77 * m - 0.808_675_77 * s),
        }
    }

    /// The nearest sRGB pixel; what sRGB cannot show is clipped.
    pub fn to_rgb(self) -> Rgb {
        let (light, a, b) = (self.lightness / 100.0, self.a / 100.0, self.b / 100.0);
        let l = (light + 0.396_337_78 * a + 0.215_803_76 * b).powi(3);
        let m = (light - 0.105_561_346 * a - 0.063_854_17 * b).powi(3);
        let s = (light - 0.089_484_18 * a - 1.291_485_5 * b).powi(3);
        [
            4.076_741_7 * l - 3.307_711_6 * m + 0.230_969_94 * s,
            -1.268_438 * l + 2.609_757_4 * m - 0.341_319_38 * s,
            -0.004_196_086_3 * l - 0.703_418_6 * m + 1.707_614_7 * s,
        ]
        .map(|v| (encoded(v.clamp(0.0, 1.0)) * 255.0).round() as u8)
    }

    /// The distance to `other`, with differences of lightness weighed by `lightness_weight`; hundredths.
    #[inline]
    pub fn distance(self, other: Lab, lightness_weight: f32) -> f32 {
        self.distance2(other, lightness_weight).sqrt()
    }

    /// The square of [`Lab::distance`].
    #[inline]
    pub(super) fn distance2(self, other: Lab, lightness_weight: f32) -> f32 {
        let l = (self.lightness - other.lightness) * lightness_weight;
        let (a, b) = (self.a - other.a, self.b - other.b);
        l * l + a * a + b * b
    }
}

/// Linear light of each 8-bit value.
pub(super) fn linear_table() -> &'static [f32; 256] {
    static TABLE: OnceLock<[f32; 256]> = OnceLock::new();
    TABLE.get_or_init(|| {
        std::array::from_fn(|k| {
            let v = k as f64 / 255.0;
            (if v <= 0.04045 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }) as f32
        })
    })
}

fn encoded(linear: f32) -> f32 {
    if linear <= 0.003_130_8 { 12.92 * linear } else { 1.055 * linear.powf(1.0 / 2.4) - 0.055 }
}

/// Linear light as 8 bits of sRGB; what is out of range is clipped.
pub(super) fn encoded_byte(linear: f32) -> u8 {
    (encoded(linear.clamp(0.0, 1.0)) * 255.0).round() as u8
}

/// The colour written `#rrggbb` or `#rgb`; `None` where it is neither.
pub fn from_hex(text: &str) -> Option<Rgb> {
    let digits = text.trim().strip_prefix('#')?;
    if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let value = u32::from_str_radix(digits, 16).ok()?;
    match digits.len() {
        6 => Some([(value >> 16) as u8, (value >> 8) as u8, value as u8]),
        3 => Some([8, 4, 0].map(|shift| ((value >> shift & 15) * 17) as u8)),
        _ => None,
    }
}

/// The colour as `#rrggbb`.
pub fn to_hex([r, g, b]: Rgb) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_colours_are_where_the_paper_puts_them() {
        // Ottosson's table: linear-light sRGB red is L 0.6279, a 0.2249, b 0.1258.
        let red = Lab::of([255, 0, 0]);
        assert!((red.lightness - 62.79).abs() < 0.02 && (red.a - 22.49).abs() < 0.02 && (red.b - 12.58).abs() < 0.02);
        assert!((Lab::of([255; 3]).distance(Lab::of([0; 3]), 1.0) - 100.0).abs() < 0.01);
    }

    #[test]
    fn every_corner_and_grey_comes_back() {
        for r in [0u8, 1, 17, 128, 254, 255] {
            for g in [0u8, 2, 99, 255] {
                for b in [0u8, 3, 180, 255] {
                    let back = Lab::of([r, g, b]).to_rgb();
                    assert!(back.iter().zip([r, g, b]).all(|(x, y)| x.abs_diff(y) <= 1), "{back:?} {r} {g} {b}");
                }
            }
        }
    }

    #[test]
    fn hex_in_both_lengths_and_nothing_else() {
        assert_eq!(from_hex("#a81a1b"), Some([0xa8, 0x1a, 0x1b]));
        assert_eq!(from_hex(" #fa0"), Some([255, 170, 0]));
        for bad in ["a81a1b", "#a81a1", "#+81a1b", "#gg0000", "", "#é00"] {
            assert_eq!(from_hex(bad), None, "{bad}");
        }
        assert_eq!(to_hex([0, 10, 255]), "#000aff");
    }
}
