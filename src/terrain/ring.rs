//! Cells that are lower, or higher, than the eight around them, many at a time.

/// Cells of a row that are looked at together.
pub(super) const STRIP: usize = 256;

/// Of three rows (`marks` and one more value on either side), marks the values of the middle one that are lower than all
/// eight around them; tells whether there are any.
#[multiversion::multiversion(targets("x86_64+avx+avx2"))]
pub(super) fn pits([n, m, s]: [&[f32]; 3], marks: &mut [bool]) -> bool {
    let len = marks.len();
    let (n, m, s) = (&n[..len + 2], &m[..len + 2], &s[..len + 2]);
    let mut columns = [0f32; STRIP + 2];
    let lows = &mut columns[..len + 2];
    for k in 0..len + 2 {
        lows[k] = lower(n[k], s[k]);
    }
    let mut any = false;
    for (k, mark) in marks.iter_mut().enumerate() {
        let low = lower(lower(lows[k], lows[k + 1]), lower(lows[k + 2], lower(m[k], m[k + 2])));
        *mark = m[k + 1] < low;
        any |= *mark;
    }
    any
}

/// The same for values that are lower, or higher, than all eight.
#[multiversion::multiversion(targets("x86_64+avx+avx2"))]
pub(super) fn extremes([n, m, s]: [&[f32]; 3], marks: &mut [bool]) -> bool {
    let len = marks.len();
    let (n, m, s) = (&n[..len + 2], &m[..len + 2], &s[..len + 2]);
    let (mut lows, mut highs) = ([0f32; STRIP + 2], [0f32; STRIP + 2]);
    let (lows, highs) = (&mut lows[..len + 2], &mut highs[..len + 2]);
    for k in 0..len + 2 {
        lows[k] = lower(n[k], s[k]);
        highs[k] = higher(n[k], s[k]);
    }
    let mut any = false;
    for (k, mark) in marks.iter_mut().enumerate() {
        let low = lower(lower(lows[k], lows[k + 1]), lower(lows[k + 2], lower(m[k], m[k + 2])));
        let high = higher(higher(highs[k], highs[k + 1]), higher(highs[k + 2], higher(m[k], m[k + 2])));
        *mark = (m[k + 1] < low) | (m[k + 1] > high);
        any |= *mark;
    }
    any
}

#[inline(always)]
fn lower(a: f32, b: f32) -> f32 {
    if a < b { a } else { b }
}

#[inline(always)]
fn higher(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strict_extremes_alone_are_marked() {
        let rows: [&[f32]; 3] =
            [&[5., 5., 5., 5., 9., 9., 9.], &[5., 1., 5., 5., 9., 9., 9.], &[5., 5., 5., 2., 9., 12., 9.]];
        let mut marks = [false; 5];
        assert!(pits(rows, &mut marks));
        assert_eq!(marks, [true, false, false, false, false]);
        let rows = [rows[1], rows[2], rows[1]];
        assert!(extremes(rows, &mut marks));
        assert_eq!(marks, [false, false, true, false, true]);
        assert!(!pits([&[1.; 3]; 3], &mut marks[..1]));
    }
}
