//! Noise keyed by place: a node's number is a pure function of (seed, spacing, column, row), never of draw order.

/// The key of one lattice level: nodes of one spacing share it whatever raster asks for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoiseKey(u64);

impl NoiseKey {
    /// The key for `seed` and a node spacing in metres (or any unit that names the level).
    ///
    /// `purpose` keeps independent uses of one level apart.
    pub fn new(seed: u64, spacing_m: f64, purpose: u64) -> Self {
        // Rounded to a tenth of a millimetre: 62.5 reached as 250/4 and as 125/2 is one level.
        let level = (spacing_m * 1e4).round() as i64 as u64;
        NoiseKey(
            mix(mix(seed ^ 0x6A09_E667_F3BC_C908).wrapping_add(level))
                ^ mix(purpose.wrapping_add(0xBB67_AE85_84CA_A73B)),
        )
    }

    /// 32 well-mixed bits for the node (col, row).
    #[inline(always)]
    pub fn bits(self, col: i64, row: i64) -> u32 {
        hash(self.row(row), col as u32)
    }

    /// What the nodes of one row share.
    #[inline(always)]
    fn row(self, row: i64) -> (u32, u32) {
        let k = mix(self.0 ^ (row as u64).wrapping_mul(0xC2B2_AE3D_27D4_EB4F));
        (k as u32, (k >> 32) as u32)
    }

    /// A number of mean 0 and variance 1, bell-shaped within ±3.45 (sum of four bytes).
    #[inline(always)]
    pub fn normal(self, col: i64, row: i64) -> f32 {
        bell(self.bits(col, row))
    }

    /// [`NoiseKey::normal`] of the nodes from `col` eastward.
    #[inline(always)]
    pub fn fill_row(self, col: i64, row: i64, out: &mut [f32]) {
        self.map_row(col, row, out, bell);
    }

    /// `to` of [`NoiseKey::bits`] of the nodes from `col` eastward.
    #[inline(always)]
    pub fn map_row(self, col: i64, row: i64, out: &mut [f32], to: impl Fn(u32) -> f32) {
        let key = self.row(row);
        let col = col as u32;
        for (k, v) in out.iter_mut().enumerate() {
            *v = to(hash(key, col.wrapping_add(k as u32)));
        }
    }
}

/// One hash a node: a counter stirred twice with the row's key, in 32 bits so that four nodes fill a vector register.
#[inline(always)]
fn hash((a, b): (u32, u32), col: u32) -> u32 {
    let mut h = col.wrapping_mul(0x9E37_79B1) ^ a;
    h = (h ^ (h >> 16)).wrapping_mul(0x85EB_CA6B);
    h = (h ^ (h >> 13) ^ b).wrapping_mul(0xC2B2_AE35);
    h ^ (h >> 16)
}

/// Four bytes summed: mean 510, variance (256² - 1)/3.
#[inline(always)]
pub(crate) fn bell(h: u32) -> f32 {
    let pairs = (h & 0x00FF_00FF) + ((h >> 8) & 0x00FF_00FF);
    let sum = (pairs & 0xFFFF) + (pairs >> 16);
    (sum as i32 - 510) as f32 * (1.732_050_8 / 255.998_05)
}

/// Finalizer of SplitMix64 (Steele, Lea and Flood 2014).
#[inline(always)]
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_has_mean_0_and_variance_1_and_no_neighbour_correlation() {
        let k = NoiseKey::new(1, 250.0, 0);
        let n = 400i64;
        let (mut s, mut s2, mut sx, mut sy) = (0.0, 0.0, 0.0, 0.0);
        for r in -n / 2..n / 2 {
            for c in -n / 2..n / 2 {
                let v = f64::from(k.normal(c, r));
                s += v;
                s2 += v * v;
                sx += v * f64::from(k.normal(c + 1, r));
                sy += v * f64::from(k.normal(c, r + 1));
            }
        }
        let m = (n * n) as f64;
        assert!((s / m).abs() < 0.01, "mean {}", s / m);
        assert!((s2 / m - 1.0).abs() < 0.02, "variance {}", s2 / m);
        assert!((sx / m).abs() < 0.01 && (sy / m).abs() < 0.01, "correlation {} {}", sx / m, sy / m);
    }

    #[test]
    fn a_row_is_filled_with_its_nodes_numbers() {
        let k = NoiseKey::new(7, 30.0, 1);
        let mut row = [0f32; 21];
        k.fill_row(-9, 5, &mut row);
        assert!(row.iter().zip(-9..).all(|(v, c)| *v == k.normal(c, 5)));
    }

    #[test]
    fn seed_level_and_purpose_change_the_number() {
        let a = NoiseKey::new(1, 250.0, 0).bits(3, 4);
        for other in [NoiseKey::new(2, 250.0, 0), NoiseKey::new(1, 125.0, 0), NoiseKey::new(1, 250.0, 1)] {
            assert_ne!(a, other.bits(3, 4));
        }
        assert_ne!(a, NoiseKey::new(1, 250.0, 0).bits(4, 3));
    }
}
