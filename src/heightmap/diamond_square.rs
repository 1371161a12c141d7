//! Diamond-square: midpoint displacement on a square lattice (Fournier, Fussell and Carpenter 1982; the two steps in the form
//! of Miller 1986).
//!
//! A level of spacing s gives one of spacing s/2: the diamond step sets the middle of each square to the mean of its four
//! corners, the square step sets the middle of each edge to the mean of the ends and of the two middles beside it (one at
//! an open border); both add a displacement. A node's displacement is a pure function of (seed, level, column, row), so
//! nothing depends on the order of the work. Each level is written once, row by row from the one above: no pass strides
//! through memory.

use crate::error::{Error, Result};
use crate::raster::Raster;
use crate::terrain::noise::{self, NoiseKey};
use rayon::prelude::*;

/// How the amplitude of the displacement falls from one half level to the next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Decay {
    /// The variance of fractional Brownian motion of this Hurst exponent about the mean of the four neighbours: the power
    /// spectrum falls as frequency^-(2H + 2).
    Hurst(f64),
    /// The tutorials' rule: one amplitude for both steps of a level, times this factor at the next (0.5 halves it).
    Factor(f64),
}

/// The distribution of the displacement; mean 0, variance 1 before scaling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Displacement {
    /// Bell-shaped (sum of four uniforms), within ±3.4.
    #[default]
    Gaussian,
    /// Uniform, within ±1.73.
    Uniform,
    /// Triangular, within ±2.45.
    Triangular,
}

/// What the lattice does at its borders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Edges {
    /// Border nodes average the neighbours that there are.
    #[default]
    Open,
    /// Opposite edges of a map of 2^n + 1 are equal; one of 2^n is such a map without its last row and column. Both tile the plane.
    Wrapped,
}

/// A heightmap to make.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Values along x and y, 1 or more each. [`Edges::Wrapped`] needs equal sides of 2^n or 2^n + 1.
    pub size: (usize, usize),
    /// Every number follows from it.
    pub seed: u64,
    /// Heights of the lattice's corners: west and east in the north, west and east in the south. `None` draws them with the
    /// amplitude.
    pub corners: Option<[f32; 4]>,
    /// Standard deviation of the displacement at the top level, in units of height; 0 or more.
    pub amplitude: f32,
    /// How it falls.
    pub decay: Decay,
    /// Its distribution.
    pub displacement: Displacement,
    /// The borders.
    pub edges: Edges,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            size: (513, 513),
            seed: 1,
            corners: None,
            amplitude: 1.0,
            decay: Decay::Hurst(0.8),
            displacement: Displacement::Gaussian,
            edges: Edges::Open,
        }
    }
}

/// A diamond-square heightmap, row 0 in the north.
///
/// A size that is not 2^n + 1 is the upper left part of the next lattice that is; only what it needs is computed. Cost: 16
/// bytes and a few nanoseconds a value.
///
/// # Errors
/// [`Error::Argument`] for a size of nothing or too large, a Hurst exponent outside 0 to 1, a factor outside 0 to 1, an
/// amplitude that is not a number from 0 up, corners that are not finite, or wrapped edges on another size than 2^n or
/// 2^n + 1.
pub fn diamond_square(options: &Options) -> Result<Raster<f32>> {
    let (cols, rows) = options.size;
    super::check_size(cols, rows, 16)?;
    check(options)?;
    let is_tile = options.edges == Edges::Wrapped && cols.is_power_of_two();
    let span = if is_tile { cols } else { (cols.max(rows) - 1).max(1).next_power_of_two() };
    let levels = span.trailing_zeros();

    // Nodes needed along a side of `n` at spacing 2^level: the last one's neighbours included, the lattice's end at most.
    let needed = |n: usize, level: u32| {
        let mut need = n;
        for _ in 0..level {
            need = (need - 1).div_ceil(2) + 2;
        }
        need.min((span >> level) + 1)
    };
    let mut z = Raster::from_values(2, 2, corners(options).to_vec());
    for level in (0..levels).rev() {
        let (cols, rows) = (needed(cols, level), needed(rows, level));
        z = subdivide(&z, cols, rows, &Level::new(options, levels, level, span >> level));
    }
    if z.cols == cols && z.rows == rows {
        return Ok(z);
    }
    let values = (0..rows).flat_map(|r| z.row(r)[..cols].iter().copied()).collect();
    Ok(Raster::from_values(cols, rows, values))
}

fn check(options: &Options) -> Result<()> {
    let refuse = |what: &str, found: String, remedy: &str| Err(Error::argument(what, found, remedy));
    match options.decay {
        Decay::Hurst(h) if !(0.0..=1.0).contains(&h) => return refuse("--hurst", format!("{h}"), "give 0 to 1"),
        Decay::Factor(f) if !(0.0..=1.0).contains(&f) => return refuse("--decay", format!("{f}"), "give 0 to 1"),
        _ => {}
    }
    if !options.amplitude.is_finite() || options.amplitude < 0.0 {
        return refuse("--amplitude", format!("{}", options.amplitude), "give a number from 0 up");
    }
    if options.corners.is_some_and(|c| c.iter().any(|v| !v.is_finite())) {
        return refuse("--corners", "a value that is not a finite number".into(), "give four numbers");
    }
    let (cols, rows) = options.size;
    if options.edges == Edges::Wrapped
        && (cols != rows || cols < 2 || !(cols.is_power_of_two() || (cols - 1).is_power_of_two()))
    {
        let found = format!("{cols} x {rows} cannot wrap");
        return refuse("--size", found, "give equal sides of a power of two, or of one more");
    }
    Ok(())
}

/// Corner heights; equal for wrapped edges, which have one corner.
fn corners(options: &Options) -> [f32; 4] {
    let drawn = options.corners.unwrap_or_else(|| {
        let key = NoiseKey::new(options.seed, f64::from(u32::MAX), PURPOSE);
        [(0, 0), (1, 0), (0, 1), (1, 1)].map(|(c, r)| options.amplitude * one(key.bits(c, r), options.displacement))
    });
    if options.edges == Edges::Wrapped { [drawn[0]; 4] } else { drawn }
}

/// Keeps these numbers apart from the terrain's.
const PURPOSE: u64 = 0xD1A3;

/// What a level needs to know to be made from the one above.
struct Level {
    key: NoiseKey,
    displacement: Displacement,
    /// Standard deviation of the displacement in the middle of a square, and of an edge.
    diamond: f32,
    square: f32,
    /// Nodes along a side after which the lattice repeats; `None` for open edges.
    period: Option<usize>,
    /// Index of the last column and row of the full lattice.
    last: usize,
}

impl Level {
    fn new(options: &Options, levels: u32, level: u32, last: usize) -> Level {
        let steps = f64::from(levels - 1 - level); // levels above this one
        let (diamond, square) = match options.decay {
            Decay::Factor(f) => (f.powf(steps), f.powf(steps)),
            Decay::Hurst(h) => {
                // Variance of a point of fractional Brownian motion about the mean of the corners of the square of side 1 around
                // it: D(√½) - D(1)/4 - D(√2)/8 with D(d) = d^2H.
                let about = 2f64.powf(-h) - 0.25 - 2f64.powf(h) / 8.0;
                let unit = about.max(0.0).sqrt() / (1.0f64 - 0.25 - 0.125).sqrt();
                let side = 0.5f64.powf(h * steps);
                (unit * side, unit * side * 0.5f64.powf(0.5 * h))
            }
        };
        Level {
            key: NoiseKey::new(options.seed, f64::from(level), PURPOSE),
            displacement: options.displacement,
            diamond: options.amplitude * diamond as f32,
            square: options.amplitude * square as f32,
            period: (options.edges == Edges::Wrapped).then_some(last),
            last,
        }
    }

    /// Displacements of unit variance for every other column of a row, from column `odd` (0 or 1) on.
    fn draw(&self, row: usize, odd: usize, out: &mut [f32]) {
        let row = self.period.map_or(row, |p| row % p);
        // The nodes of a row that are drawn together are counted by themselves.
        let key_row = (2 * row + odd) as i64;
        fill_noise(self.key, key_row, self.displacement, out);
        if let Some(p) = self.period
            && odd == 0
            && out.len() > p / 2
        {
            out[p / 2] = out[0];
        }
    }
}

/// The numbers of a row; the same on every machine, several at a time where it can.
#[multiversion::multiversion(targets("x86_64+avx+avx2"))]
fn fill_noise(key: NoiseKey, row: i64, displacement: Displacement, out: &mut [f32]) {
    match displacement {
        Displacement::Gaussian => key.fill_row(0, row, out),
        Displacement::Uniform => key.map_row(0, row, out, uniform),
        Displacement::Triangular => key.map_row(0, row, out, triangular),
    }
}

/// Middles of the squares between two rows.
#[multiversion::multiversion(targets("x86_64+avx+avx2"))]
fn square_middles(north: &[f32], south: &[f32], noise: &[f32], amplitude: f32, out: &mut [f32]) {
    let n = out.len();
    let (north, south, noise) = (&north[..n + 1], &south[..n + 1], &noise[..n]);
    for k in 0..n {
        out[k] = 0.25 * ((north[k] + north[k + 1]) + (south[k] + south[k + 1])) + amplitude * noise[k];
    }
}

/// Pairs of a coarse value and the middle of the edge east of it, from the middles above and below.
#[multiversion::multiversion(targets("x86_64+avx+avx2"))]
fn even_pairs(line: &[f32], [up, down]: [&[f32]; 2], noise: &[f32], amplitude: f32, out: &mut [f32]) {
    let n = out.len() / 2;
    let (line, up, down, noise) = (&line[..n + 1], &up[..n], &down[..n], &noise[..n]);
    for (k, pair) in out.chunks_exact_mut(2).enumerate() {
        pair[0] = line[k];
        pair[1] = 0.25 * ((line[k] + line[k + 1]) + (up[k] + down[k])) + amplitude * noise[k];
    }
}

/// Pairs of the middle of a vertical edge and that of the square east of it; the first edge is that of column 1.
#[multiversion::multiversion(targets("x86_64+avx+avx2"))]
fn odd_pairs([north, south]: [&[f32]; 2], middles: &[f32], noise: &[f32], amplitude: f32, out: &mut [f32]) {
    let n = out.len() / 2;
    let (north, south, noise) = (&north[1..n + 1], &south[1..n + 1], &noise[1..n + 1]);
    let middles = &middles[..n + 1];
    for (k, pair) in out.chunks_exact_mut(2).enumerate() {
        pair[0] = 0.25 * ((north[k] + south[k]) + (middles[k] + middles[k + 1])) + amplitude * noise[k];
        pair[1] = middles[k + 1];
    }
}

/// A number of mean 0 and variance 1 from 32 well-mixed bits.
fn one(bits: u32, displacement: Displacement) -> f32 {
    match displacement {
        Displacement::Gaussian => noise::bell(bits),
        Displacement::Uniform => uniform(bits),
        Displacement::Triangular => triangular(bits),
    }
}

#[inline]
fn uniform(x: u32) -> f32 {
    ((x >> 8) as i32 - 0x7F_FFFF) as f32 * (1.732_050_8 / 8_388_608.0)
}

#[inline]
fn triangular(x: u32) -> f32 {
    // Two uniforms on 0..=65535: variance 2 (65536² - 1)/12.
    (((x & 0xFFFF) + (x >> 16)) as i32 - 65_535) as f32 * (2.449_489_7 / 65_536.0)
}

/// The next finer level of `coarse`, `cols` x `rows` of its nodes from the upper left.
fn subdivide(coarse: &Raster<f32>, cols: usize, rows: usize, level: &Level) -> Raster<f32> {
    let mut fine = Raster::filled(cols, rows, 0f32);
    let threads = rayon::current_num_threads();
    // Whole pairs of rows, in bands: a band repeats one row of middles of the band above.
    let band = rows.div_ceil(2).div_ceil(4 * threads).max(16) * 2;
    fine.values.par_chunks_mut(band * cols).enumerate().for_each(|(b, out)| {
        let mut work = Band::new(coarse, cols, level);
        let first = b * band / 2;
        work.middles(first as i64 - 1);
        for (k, pair) in out.chunks_mut(2 * cols).enumerate() {
            let i = first + k;
            std::mem::swap(&mut work.above, &mut work.below);
            work.middles(i as i64);
            let (even, odd) = pair.split_at_mut(cols);
            work.even_row(i, even);
            if !odd.is_empty() {
                work.odd_row(i, odd);
            }
        }
    });
    fine
}

/// Buffers for the rows of one band.
struct Band<'a> {
    coarse: &'a Raster<f32>,
    level: &'a Level,
    cols: usize,
    /// Middles of the squares above and below the present coarse row; `None` outside an open lattice.
    above: Middles,
    below: Middles,
    noise: Vec<f32>,
}

/// A row of middles of squares.
struct Middles {
    exist: bool,
    values: Vec<f32>,
}

impl<'a> Band<'a> {
    fn new(coarse: &'a Raster<f32>, cols: usize, level: &'a Level) -> Self {
        let middles = || Middles { exist: false, values: vec![0.0; coarse.cols] };
        Band { coarse, level, cols, above: middles(), below: middles(), noise: vec![0.0; coarse.cols] }
    }

    /// Diamond step: fills `below` with the middles of the squares between coarse rows i and i + 1.
    fn middles(&mut self, i: i64) {
        let Some(i) = (if i >= 0 { Some(i as usize) } else { self.level.period.map(|p| p / 2 - 1) }) else {
            self.below.exist = false;
            return;
        };
        // The last row of a wrapped lattice is its first.
        let i = if self.level.period.is_some_and(|p| i >= p / 2) { 0 } else { i };
        if i + 1 >= self.coarse.rows {
            self.below.exist = false;
            return;
        }
        let (north, south) = (self.coarse.row(i), self.coarse.row(i + 1));
        let n = self.coarse.cols - 1;
        self.level.draw(2 * i + 1, 1, &mut self.noise[..n]);
        square_middles(north, south, &self.noise[..n], self.level.diamond, &mut self.below.values[..n]);
        self.below.exist = true;
    }

    /// Fine row 2i: coarse values, and between them the middles of horizontal edges.
    fn even_row(&mut self, i: usize, out: &mut [f32]) {
        let line = self.coarse.row(i);
        let n = self.cols / 2;
        self.level.draw(2 * i, 1, &mut self.noise[..n]);
        let (amplitude, noise) = (self.level.square, &self.noise);
        let (up, down) = (&self.above.values, &self.below.values);
        match (self.above.exist, self.below.exist) {
            (true, true) => {
                even_pairs(line, [up, down], noise, amplitude, out);
            }
            (above, _) => {
                let beside = if above { up } else { down };
                for (k, pair) in out.chunks_exact_mut(2).enumerate() {
                    pair[0] = line[k];
                    pair[1] = ((line[k] + line[k + 1]) + beside[k]) * (1.0 / 3.0) + amplitude * noise[k];
                }
            }
        }
        if out.len() % 2 == 1 {
            out[out.len() - 1] = line[n];
        }
    }

    /// Fine row 2i + 1: middles of vertical edges, and between them the middles of squares.
    fn odd_row(&mut self, i: usize, out: &mut [f32]) {
        let (north, south) = (self.coarse.row(i), self.coarse.row(i + 1));
        let n = self.cols.div_ceil(2);
        self.level.draw(2 * i + 1, 0, &mut self.noise[..n]);
        let (amplitude, noise, middles) = (self.level.square, &self.noise, &self.below.values);
        let edge =
            |k: usize, west: f32, east: f32| 0.25 * ((north[k] + south[k]) + (west + east)) + amplitude * noise[k];
        let at_border = |k: usize, beside: f32| match self.level.period {
            Some(_) => edge(k, middles[self.level.last / 2 - 1], middles[0]),
            None => ((north[k] + south[k]) + beside) * (1.0 / 3.0) + amplitude * noise[k],
        };
        out[0] = at_border(0, middles[0]);
        if out.len() > 1 {
            out[1] = middles[0];
        }
        if self.cols > 3 {
            odd_pairs([north, south], middles, noise, amplitude, &mut out[2..]);
        }
        if self.cols > 2 && self.cols % 2 == 1 {
            let k = n - 1;
            let ends = 2 * k == self.level.last;
            out[2 * k] = if ends { at_border(k, middles[k - 1]) } else { edge(k, middles[k - 1], middles[k]) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn flat(size: (usize, usize), corners: [f32; 4]) -> Vec<f32> {
        let options = Options { size, corners: Some(corners), amplitude: 0.0, ..Default::default() };
        diamond_square(&options).unwrap().values
    }

    /// Corners 0, 8, 16, 24 and no displacement, by hand.
    ///
    /// Level 1: middle (0+8+16+24)/4 = 12. Edges have three neighbours: north (0+8+12)/3 = 20/3, west (0+16+12)/3 = 28/3, east
    /// (8+24+12)/3 = 44/3, south (16+24+12)/3 = 52/3.
    ///
    /// Level 2: middles of squares: NW (0 + 20/3 + 28/3 + 12)/4 = 7, NE (20/3 + 8 + 12 + 44/3)/4 = 31/3, SW (28/3 + 12 + 16 + 52/3)/4 =
    /// 41/3, SE (12 + 44/3 + 52/3 + 24)/4 = 17. Edge (1, 0) between 0 and 20/3 over the middle 7: (0 + 20/3 + 7)/3 = 41/9. Inner
    /// edge (2, 1) between 20/3 and 12 with middles 7 and 31/3: (20/3 + 12 + 7 + 31/3)/4 = 9.
    #[test]
    fn five_by_five_by_hand() {
        let z = flat((5, 5), [0.0, 8.0, 16.0, 24.0]);
        let at = |c: usize, r: usize| z[r * 5 + c];
        let near = |a: f32, b: f32| assert!((a - b).abs() < 1e-5, "{a} {b}");
        near(at(2, 2), 12.0);
        near(at(2, 0), 20.0 / 3.0);
        near(at(0, 2), 28.0 / 3.0);
        near(at(4, 2), 44.0 / 3.0);
        near(at(2, 4), 52.0 / 3.0);
        near(at(1, 1), 7.0);
        near(at(3, 1), 31.0 / 3.0);
        near(at(1, 3), 41.0 / 3.0);
        near(at(3, 3), 17.0);
        near(at(1, 0), 41.0 / 9.0);
        near(at(2, 1), 9.0);
        assert_eq!((at(0, 0), at(4, 0), at(0, 4), at(4, 4)), (0.0, 8.0, 16.0, 24.0));
    }

    #[test]
    fn displacements_have_mean_0_and_variance_1() {
        let key = NoiseKey::new(7, 1.0, PURPOSE);
        for kind in [Displacement::Gaussian, Displacement::Uniform, Displacement::Triangular] {
            let all: Vec<f64> = (0..200_000).map(|k| f64::from(one(key.bits(k, k % 317), kind))).collect();
            let n = all.len() as f64;
            let mean = all.iter().sum::<f64>() / n;
            let variance = all.iter().map(|v| v * v).sum::<f64>() / n;
            assert!(mean.abs() < 0.01 && (variance - 1.0).abs() < 0.02, "{kind:?}: {mean} {variance}");
        }
    }

    /// The spectrum of a wrapped map falls as frequency^-(2H + 2).
    #[test]
    fn the_spectrum_falls_with_the_hurst_exponent() {
        for h in [0.3, 0.5, 0.8] {
            let slope = |seed| {
                let options = Options {
                    size: (512, 512),
                    seed,
                    decay: Decay::Hurst(h),
                    edges: Edges::Wrapped,
                    ..Default::default()
                };
                crate::heightmap::spectral::slope(&diamond_square(&options).unwrap()).unwrap()
            };
            let mean = (1..=4).map(slope).sum::<f64>() / 4.0;
            assert!((mean + 2.0 * h + 2.0).abs() < 0.2, "H {h}: slope {mean}");
        }
    }

    #[test]
    fn odd_requests_are_refused_with_reason() {
        let refused = |o: Options| diamond_square(&o).unwrap_err().to_string();
        assert!(refused(Options { size: (0, 5), ..Default::default() }).contains("0 x 5"));
        assert!(refused(Options { size: (100_000, 100_000), ..Default::default() }).contains("GiB"));
        assert!(refused(Options { decay: Decay::Hurst(1.2), ..Default::default() }).contains("1.2"));
        assert!(refused(Options { decay: Decay::Hurst(f64::NAN), ..Default::default() }).contains("NaN"));
        assert!(refused(Options { amplitude: f32::INFINITY, ..Default::default() }).contains("inf"));
        assert!(refused(Options { size: (100, 100), edges: Edges::Wrapped, ..Default::default() }).contains("wrap"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn any_size_is_the_upper_left_of_the_next_lattice(cols in 1usize..70, rows in 1usize..70, seed: u64) {
            let side = (cols.max(rows) - 1).max(1).next_power_of_two() + 1;
            let whole = diamond_square(&Options { size: (side, side), seed, ..Default::default() }).unwrap();
            let part = diamond_square(&Options { size: (cols, rows), seed, ..Default::default() }).unwrap();
            for r in 0..rows {
                prop_assert_eq!(part.row(r), &whole.row(r)[..cols]);
            }
        }

        #[test]
        fn wrapped_edges_are_equal_and_the_map_has_no_seam(n in 1u32..7, seed: u64) {
            let side = (1usize << n) + 1;
            let z = diamond_square(&Options { size: (side, side), seed, edges: Edges::Wrapped, ..Default::default() }).unwrap();
            for k in 0..side {
                prop_assert_eq!(z.at(k, 0), z.at(k, side - 1));
                prop_assert_eq!(z.at(0, k), z.at(side - 1, k));
            }
            let tile = Options { size: (side - 1, side - 1), seed, edges: Edges::Wrapped, ..Default::default() };
            let tile = diamond_square(&tile).unwrap();
            for r in 0..side - 1 {
                prop_assert_eq!(tile.row(r), &z.row(r)[..side - 1]);
            }
        }

        #[test]
        fn threads_do_not_matter(seed: u64) {
            let run = |n| crate::resources::with_threads(Some(n), || {
                diamond_square(&Options { size: (301, 257), seed, ..Default::default() })
            }).unwrap();
            let one = run(1);
            prop_assert_eq!(&one, &run(2));
            prop_assert_eq!(&one, &run(8));
        }
    }
}
