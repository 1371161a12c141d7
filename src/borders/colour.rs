//! Colours of polities: their own where they have one, otherwise from one palette so that neighbours differ.

/// Muted colours that go together under relief shading, sRGB.
pub const PALETTE: [[u8; 3]; 16] = [
    [196, 93, 82],
    [106, 153, 190],
    [214, 167, 84],
    [126, 160, 101],
    [150, 116, 170],
    [92, 166, 155],
    [217, 136, 104],
    [185, 184, 102],
    [191, 124, 152],
    [104, 122, 176],
    [168, 134, 99],
    [142, 186, 138],
    [226, 186, 137],
    [152, 172, 197],
    [205, 154, 172],
    [123, 142, 128],
];

/// Below this distance (OKLab) two colours are hard to tell apart on a map.
const TOO_CLOSE: f64 = 0.08;

/// A colour for each of `wanted`: the wanted one, or one of the palette that differs from all `neighbours` (pairs of
/// indices) and is used least; among equals the id decides, so that a polity tends to keep its colour from year to year.
pub(crate) fn choose_colours(ids: &[&str], wanted: &[Option<[u8; 3]>], neighbours: &[(usize, usize)]) -> Vec<[u8; 3]> {
    let n = ids.len();
    let mut beside: Vec<Vec<usize>> = vec![Vec::new(); n];
    for &(i, j) in neighbours {
        beside[i].push(j);
        beside[j].push(i);
    }
    let mut colours = wanted.to_vec();
    let palette = PALETTE.map(oklab);
    let is_close = |a: [f64; 3], b: [f64; 3]| apart(a, b) < TOO_CLOSE;
    // In OKLab, and how often each colour of the palette is used by now: reckoned once.
    let mut labs: Vec<Option<[f64; 3]>> = colours.iter().map(|c| c.map(oklab)).collect();
    let mut used = palette.map(|c| labs.iter().flatten().filter(|u| is_close(**u, c)).count());
    // The most hemmed in first.
    let mut order: Vec<usize> = (0..n).filter(|&i| wanted[i].is_none()).collect();
    order.sort_by(|&i, &j| beside[j].len().cmp(&beside[i].len()).then_with(|| ids[i].cmp(ids[j])));
    for i in order {
        let nearest =
            |c: [f64; 3]| beside[i].iter().filter_map(|&j| labs[j]).map(|d| apart(c, d)).fold(f64::INFINITY, f64::min);
        let first = hash(ids[i]) as usize % PALETTE.len();
        let rank = |p: usize| {
            let gap = nearest(palette[p]);
            // Where all are too close, the farthest.
            if gap < TOO_CLOSE { (1, (1e6 * (TOO_CLOSE - gap)) as usize) } else { (0, used[p]) }
        };
        let turned = |k: usize| (first + k) % PALETTE.len();
        let best = (0..PALETTE.len()).min_by_key(|&k| (rank(turned(k)), k)).map_or(first, turned);
        colours[i] = Some(PALETTE[best]);
        labs[i] = Some(palette[best]);
        for (n, c) in used.iter_mut().zip(palette) {
            *n += usize::from(is_close(palette[best], c));
        }
    }
    colours.into_iter().map(|c| c.unwrap_or(PALETTE[0])).collect()
}

/// Colours of polities that stand beside each other in a list: their own, or such that those in sequence differ.
pub fn palette_colours(polities: &[(&str, Option<[u8; 3]>)]) -> Vec<[u8; 3]> {
    let ids: Vec<&str> = polities.iter().map(|p| p.0).collect();
    let wanted: Vec<_> = polities.iter().map(|p| p.1).collect();
    let beside: Vec<(usize, usize)> = (1..ids.len()).map(|k| (k - 1, k)).collect();
    choose_colours(&ids, &wanted, &beside)
}

/// FNV-1a.
fn hash(text: &str) -> u32 {
    text.bytes().fold(2_166_136_261, |h, b| (h ^ u32::from(b)).wrapping_mul(16_777_619))
}

/// Distance of two colours in OKLab; black to white is 1.
fn apart(p: [f64; 3], q: [f64; 3]) -> f64 {
    (0..3).map(|k| (p[k] - q[k]).powi(2)).sum::<f64>().sqrt()
}

/// A colour in OKLab (B. Ottosson, "A perceptual color space for image processing", 2020).
fn oklab(c: [u8; 3]) -> [f64; 3] {
    let [r, g, b] = c.map(|v| {
        let v = f64::from(v) / 255.0;
        if v <= 0.04045 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
    });
    let l = (0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b).cbrt();
    let m = (0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b).cbrt();
    let s = (0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b).cbrt();
    [
        0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s,
        1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s,
        0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distance(a: [u8; 3], b: [u8; 3]) -> f64 {
        apart(oklab(a), oklab(b))
    }
    use proptest::prelude::*;

    #[test]
    fn black_and_white_are_one_apart() {
        assert!((distance([0; 3], [255; 3]) - 1.0).abs() < 1e-6);
    }

    #[test]
    fn wanted_colours_are_kept_and_neighbours_avoid_them() {
        let wanted = [Some(PALETTE[0]), None, Some([1, 2, 3])];
        let colours = choose_colours(&["a", "b", "c"], &wanted, &[(0, 1)]);
        assert_eq!((colours[0], colours[2]), (PALETTE[0], [1, 2, 3]));
        assert!(distance(colours[1], colours[0]) >= TOO_CLOSE);
    }

    proptest! {
        #[test]
        fn neighbours_can_be_told_apart(pairs in proptest::collection::vec((0usize..12, 0usize..12), 0..30)) {
            let ids: Vec<String> = (0..12).map(|i| format!("polity-{i}")).collect();
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            let pairs: Vec<_> = pairs.into_iter().filter(|(i, j)| i != j).collect();
            let degree = |i: usize| pairs.iter().filter(|(a, b)| *a == i || *b == i).count();
            prop_assume!((0..12).all(|i| degree(i) <= 6));
            let colours = choose_colours(&ids, &[None; 12], &pairs);
            for &(i, j) in &pairs {
                prop_assert!(distance(colours[i], colours[j]) >= 0.04);
            }
        }
    }
}
