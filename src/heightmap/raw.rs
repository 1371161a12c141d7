//! Heightmaps as plain bytes: RAW with a sidecar that says what the bytes are, PGM, ESRI ASCII grid, SRTM's `.hgt`, and OBJ.
//!
//! Whole-number formats never wrap: a value outside the range of the type is clamped and counted, or the map is rescaled to
//! it, as [`Fit`] says.

use super::filter::range;
use crate::error::{Error, Result};
use crate::raster::Raster;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// Type of a stored value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SampleType {
    /// 0 to 255.
    U8,
    /// 0 to 65,535.
    U16,
    /// -32,768 to 32,767.
    I16,
    /// Single precision.
    F32,
}

impl SampleType {
    /// Bytes of a value.
    pub fn bytes(self) -> usize {
        match self {
            SampleType::U8 => 1,
            SampleType::U16 | SampleType::I16 => 2,
            SampleType::F32 => 4,
        }
    }

    /// Lowest and highest whole number; `None` for real ones.
    pub fn limits(self) -> Option<(f64, f64)> {
        match self {
            SampleType::U8 => Some((0.0, 255.0)),
            SampleType::U16 => Some((0.0, 65_535.0)),
            SampleType::I16 => Some((-32_768.0, 32_767.0)),
            SampleType::F32 => None,
        }
    }
}

/// Which byte of a value comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ByteOrder {
    /// Least significant first, as on a PC.
    #[default]
    Little,
    /// Most significant first, as in PGM and `.hgt`.
    Big,
}

/// Which row comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum RowOrder {
    /// The northern one: pictures, GIS.
    #[default]
    #[serde(rename = "top-down")]
    TopDown,
    /// The southern one: BMP, OpenGL textures.
    #[serde(rename = "bottom-up")]
    BottomUp,
}

/// What is done with values that the type cannot hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fit {
    /// Rounded and held at the ends of the type's range.
    Clamp,
    /// The map's own range is stretched over the type's; the sidecar tells the scale.
    #[default]
    Rescale,
}

/// What the bytes of a RAW file are; stored beside it as `NAME.raw.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sidecar {
    /// Values along x.
    pub cols: usize,
    /// Values along y.
    pub rows: usize,
    /// Type of a value.
    #[serde(rename = "type")]
    pub sample: SampleType,
    /// Byte order.
    #[serde(default)]
    pub byte_order: ByteOrder,
    /// Row order.
    #[serde(default)]
    pub row_order: RowOrder,
    /// Lowest stored value, in units of height; 0 where there is none.
    #[serde(default)]
    pub min: f64,
    /// Highest stored value, in units of height.
    #[serde(default)]
    pub max: f64,
    /// Height = stored number · `scale` + `offset`.
    #[serde(default = "one")]
    pub scale: f64,
    /// See `scale`.
    #[serde(default)]
    pub offset: f64,
}

fn one() -> f64 {
    1.0
}

/// A heightmap as numbers of one type.
#[derive(Debug, Clone, PartialEq)]
pub struct Encoded {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// What they are.
    pub sidecar: Sidecar,
    /// Values that were held at an end of the type's range.
    pub clamped: u64,
}

/// The bytes of `z` as `sample`s.
///
/// # Errors
/// [`Error::Argument`] where a whole-number type meets values that are not numbers.
pub fn encode(
    z: &Raster<f32>,
    sample: SampleType,
    byte_order: ByteOrder,
    row_order: RowOrder,
    fit: Fit,
) -> Result<Encoded> {
    let (min, max) = range(z).map_or((0.0, 0.0), |(a, b)| (f64::from(a), f64::from(b)));
    let (mut scale, mut offset) = (1.0, 0.0);
    if let Some((low, high)) = sample.limits() {
        if let Some(i) = z.values.iter().position(|v| !v.is_finite()) {
            return Err(Error::argument(
                "type",
                format!("value {} at column {}, row {}", z.values[i], i % z.cols, i / z.cols),
                "whole numbers hold no such value; write f32, or fill it first",
            ));
        }
        if fit == Fit::Rescale {
            scale = if max > min { (max - min) / (high - low) } else { 1.0 };
            offset = min - low * scale;
        }
    }
    let mut bytes = Vec::with_capacity(z.values.len() * sample.bytes());
    let mut clamped = 0;
    for r in 0..z.rows {
        let row = if row_order == RowOrder::TopDown { r } else { z.rows - 1 - r };
        for &v in z.row(row) {
            let Some((low, high)) = sample.limits() else {
                push(&mut bytes, v.to_le_bytes(), byte_order);
                continue;
            };
            let whole = ((f64::from(v) - offset) / scale).round();
            clamped += u64::from(whole < low || whole > high);
            let whole = whole.clamp(low, high);
            match sample {
                SampleType::U8 => bytes.push(whole as u8),
                SampleType::I16 => push(&mut bytes, (whole as i16).to_le_bytes(), byte_order),
                _ => push(&mut bytes, (whole as u16).to_le_bytes(), byte_order),
            }
        }
    }
    let sidecar = Sidecar { cols: z.cols, rows: z.rows, sample, byte_order, row_order, min, max, scale, offset };
    Ok(Encoded { bytes, sidecar, clamped })
}

fn push<const N: usize>(bytes: &mut Vec<u8>, mut value: [u8; N], order: ByteOrder) {
    if order == ByteOrder::Big {
        value.reverse();
    }
    bytes.extend(value);
}

/// The heightmap in the bytes of `name`.
///
/// # Errors
/// [`Error::Content`] where the length does not fit the size, with the sizes that it would fit.
pub fn decode(bytes: &[u8], sidecar: &Sidecar, name: &str) -> Result<Raster<f32>> {
    let Sidecar { cols, rows, sample, .. } = *sidecar;
    super::check_size(cols, rows, 4)?;
    let expected = cols * rows * sample.bytes();
    if bytes.len() != expected {
        let side = ((bytes.len() / sample.bytes()) as f64).sqrt() as usize;
        let square = if side * side * sample.bytes() == bytes.len() {
            format!("; {side} x {side} values of {} bytes would fit", sample.bytes())
        } else {
            String::new()
        };
        return Err(Error::content(
            name,
            format!("{} bytes", bytes.len()),
            format!(
                "{expected} for {cols} x {rows} values of {} bytes{square}: mend the size or the type",
                sample.bytes()
            ),
        ));
    }
    let big = sidecar.byte_order == ByteOrder::Big;
    let number = |chunk: &[u8]| -> f64 {
        let mut b = [0u8; 4];
        b[..chunk.len()].copy_from_slice(chunk);
        if big {
            b[..chunk.len()].reverse();
        }
        match sample {
            SampleType::U8 => f64::from(b[0]),
            SampleType::U16 => f64::from(u16::from_le_bytes([b[0], b[1]])),
            SampleType::I16 => f64::from(i16::from_le_bytes([b[0], b[1]])),
            SampleType::F32 => f64::from(f32::from_le_bytes(b)),
        }
    };
    let mut z = Raster::filled(cols, rows, 0f32);
    let width = cols * sample.bytes();
    for (r, line) in bytes.chunks_exact(width).enumerate() {
        let row = if sidecar.row_order == RowOrder::TopDown { r } else { rows - 1 - r };
        let out = &mut z.values[row * cols..(row + 1) * cols];
        for (o, chunk) in out.iter_mut().zip(line.chunks_exact(sample.bytes())) {
            *o = (number(chunk) * sidecar.scale + sidecar.offset) as f32;
        }
    }
    Ok(z)
}

/// A portable graymap of 16 bits.
///
/// # Errors
/// As [`encode`].
pub fn pgm(z: &Raster<f32>, fit: Fit) -> Result<Encoded> {
    let mut encoded = encode(z, SampleType::U16, ByteOrder::Big, RowOrder::TopDown, fit)?;
    let mut bytes = format!("P5\n{} {}\n65535\n", z.cols, z.rows).into_bytes();
    bytes.append(&mut encoded.bytes);
    Ok(Encoded { bytes, ..encoded })
}

/// SRTM's form: square, whole metres, most significant byte first.
///
/// # Errors
/// [`Error::Argument`] for a size that is not square, as the format has no header; those of [`encode`].
pub fn hgt(z: &Raster<f32>, fit: Fit) -> Result<Encoded> {
    if z.cols != z.rows {
        return Err(Error::argument(".hgt", format!("{} x {}", z.cols, z.rows), "the format holds squares only"));
    }
    encode(z, SampleType::I16, ByteOrder::Big, RowOrder::TopDown, fit)
}

/// An ESRI ASCII grid with cells of `cell` units; values that are not numbers become -9999.
pub fn ascii_grid(z: &Raster<f32>, cell: f64) -> Vec<u8> {
    let mut text =
        format!("ncols {}\nnrows {}\nxllcorner 0\nyllcorner 0\ncellsize {cell}\nNODATA_value -9999\n", z.cols, z.rows);
    for r in 0..z.rows {
        for (c, v) in z.row(r).iter().enumerate() {
            let gap = if c > 0 { " " } else { "" };
            let _ = if v.is_finite() { write!(text, "{gap}{v}") } else { write!(text, "{gap}-9999") };
        }
        text.push('\n');
    }
    text.into_bytes()
}

/// A regular mesh in Wavefront's form: x east, y north, z up, one vertex a value `cell` units apart, two triangles a square,
/// counter-clockwise from above. Squares with a value that is not a number are left out.
pub fn obj(z: &Raster<f32>, cell: f64) -> Vec<u8> {
    let mut text = String::from("# regular heightmap mesh: x east, y north, z up\n");
    let mut number = vec![0usize; z.values.len()];
    let mut n = 0;
    for r in 0..z.rows {
        for c in 0..z.cols {
            let v = z.at(c, r);
            if v.is_finite() {
                n += 1;
                number[r * z.cols + c] = n;
                let _ = writeln!(text, "v {} {} {v}", c as f64 * cell, (z.rows - 1 - r) as f64 * cell);
            }
        }
    }
    for r in 1..z.rows {
        for c in 1..z.cols {
            let at = |c: usize, r: usize| number[r * z.cols + c];
            let (nw, ne, sw, se) = (at(c - 1, r - 1), at(c, r - 1), at(c - 1, r), at(c, r));
            if nw * ne * sw * se != 0 {
                let _ = writeln!(text, "f {sw} {se} {ne}\nf {sw} {ne} {nw}");
            }
        }
    }
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn map(cols: usize, values: &[f32]) -> Raster<f32> {
        Raster::from_values(cols, values.len() / cols, values.to_vec())
    }

    /// 2 x 2, rows (1, 258) and (-3, 70000): whole numbers are held at 0 and 65535.
    #[test]
    fn bytes_by_hand() {
        let z = map(2, &[1.0, 258.0, -3.0, 70_000.0]);
        let down = encode(&z, SampleType::U16, ByteOrder::Little, RowOrder::TopDown, Fit::Clamp).unwrap();
        assert_eq!(down.bytes, [1, 0, 2, 1, 0, 0, 255, 255]);
        assert_eq!(down.clamped, 2);
        let up = encode(&z, SampleType::U16, ByteOrder::Big, RowOrder::BottomUp, Fit::Clamp).unwrap();
        assert_eq!(up.bytes, [0, 0, 255, 255, 0, 1, 1, 2]);
        let wide = encode(&z, SampleType::U8, ByteOrder::Little, RowOrder::TopDown, Fit::Rescale).unwrap();
        assert_eq!((wide.bytes[2], wide.bytes[3], wide.clamped), (0, 255, 0));
    }

    #[test]
    fn a_wrong_length_says_what_would_fit() {
        let sidecar = encode(&map(2, &[0.0; 4]), SampleType::U16, ByteOrder::Little, RowOrder::TopDown, Fit::Clamp)
            .unwrap()
            .sidecar;
        let error = decode(&[0; 18], &sidecar, "a.raw").unwrap_err().to_string();
        assert!(error.contains("a.raw") && error.contains("18 bytes") && error.contains("3 x 3"), "{error}");
    }

    #[test]
    fn holes_are_refused_by_whole_numbers_only() {
        let z = map(2, &[0.0, f32::NAN, 1.0, 2.0]);
        let fits = |t| encode(&z, t, ByteOrder::Little, RowOrder::TopDown, Fit::Clamp);
        assert!(fits(SampleType::I16).unwrap_err().to_string().contains("column 1, row 0"));
        assert!(fits(SampleType::F32).is_ok());
        assert!(String::from_utf8(ascii_grid(&z, 30.0)).unwrap().ends_with("\n0 -9999\n1 2\n"));
    }

    /// The four corners of one square: south-west first, north up.
    #[test]
    fn a_mesh_by_hand() {
        let text = String::from_utf8(obj(&map(2, &[1.0, 2.0, 3.0, 4.0]), 10.0)).unwrap();
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(lines, ["v 0 10 1", "v 10 10 2", "v 0 0 3", "v 10 0 4", "f 3 4 2", "f 3 2 1"]);
    }

    proptest! {
        #[test]
        fn real_numbers_come_back_bit_for_bit(cols in 1usize..9, rows in 1usize..9, seed: u32, up: bool, big: bool) {
            let values = (0..cols * rows)
                .map(|i| f32::from_bits((i as u32).wrapping_mul(2_654_435_761) ^ seed))
                .map(|v| if v.is_finite() { v } else { 0.5 })
                .collect();
            let z = Raster::from_values(cols, rows, values);
            let order = if big { ByteOrder::Big } else { ByteOrder::Little };
            let lines = if up { RowOrder::BottomUp } else { RowOrder::TopDown };
            let e = encode(&z, SampleType::F32, order, lines, Fit::Clamp).unwrap();
            prop_assert_eq!(decode(&e.bytes, &e.sidecar, "x").unwrap(), z);
        }

        #[test]
        fn whole_numbers_come_back_bit_for_bit(bytes in proptest::collection::vec(any::<u8>(), 24), kind in 0usize..3, up: bool) {
            let sample = [SampleType::U8, SampleType::U16, SampleType::I16][kind];
            let row_order = if up { RowOrder::BottomUp } else { RowOrder::TopDown };
            let sidecar = Sidecar {
                cols: 4, rows: 6 / sample.bytes(), sample, byte_order: ByteOrder::Big, row_order,
                min: 0.0, max: 0.0, scale: 1.0, offset: 0.0,
            };
            let z = decode(&bytes, &sidecar, "x").unwrap();
            prop_assert_eq!(encode(&z, sample, ByteOrder::Big, row_order, Fit::Clamp).unwrap().bytes, bytes);
        }
    }
}
