//! Numbers for the page: differences, compressed, as text. `data/view/view.js` reads them back.

use std::io::Write;

/// What stands for a cell without a height.
pub const NONE: i32 = i32::MIN;

/// Whole numbers as differences from the former one (wrapping), the sign in the lowest bit, seven bits a byte, lowest first.
pub fn differences(values: impl IntoIterator<Item = i32>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut before = 0i32;
    for v in values {
        let d = v.wrapping_sub(before);
        before = v;
        let mut coded = ((d << 1) ^ (d >> 31)) as u32;
        while coded > 127 {
            out.push((coded & 127) as u8 | 128);
            coded >>= 7;
        }
        out.push(coded as u8);
    }
    out
}

/// A zlib stream.
pub fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::new(6));
    // Writing to memory does not fail.
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}

/// Base64 (RFC 4648).
pub fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let b = |k: usize| u32::from(group.get(k).copied().unwrap_or(0));
        let bits = b(0) << 16 | b(1) << 8 | b(2);
        for k in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * k)) as usize & 63] as char;
            out.push(if k <= group.len() { digit } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test vectors of RFC 4648.
    #[test]
    fn base64_by_the_book() {
        for (plain, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(plain.as_bytes()), text);
        }
    }

    /// 0, 1, -1, 63: differences 0, 1, -2, 64, coded 0, 2, 3, 128 = 0 + 1 · 128.
    #[test]
    fn differences_by_hand() {
        assert_eq!(differences([0, 1, -1, 63]), [0, 2, 3, 128, 1]);
        // The largest step fits.
        assert_eq!(differences([NONE]).len(), 5);
    }

    #[test]
    fn a_stream_is_zlib() {
        assert_eq!(compressed(b"x")[0] & 15, 8);
    }
}
