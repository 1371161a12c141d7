//! A heightmap as a recipe: one generator and filters in order, from the command line or a `heightmap.toml`.

use super::{diamond_square, erode, fault, filter, midpoint, spectral};
use crate::error::{Error, Result};
use crate::raster::Raster;
use serde::{Deserialize, Serialize};

/// A filter with its numbers, as it is written: `blur=2`, `clamp=0,100`, `normalise=0,1`, `terrace=8,0.2`, `invert`, `island=0.6`,
/// `thermal=20,0.5`, `streams=10,0.02`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Filter {
    /// Standard deviation, values.
    Blur(f64),
    /// Lowest and highest.
    Clamp(f32, f32),
    /// Lowest and highest.
    Normalise(f32, f32),
    /// Steps and softness.
    Terrace(u32, f32),
    /// Upside down.
    Invert,
    /// Falloff.
    Island(f32),
    /// Rounds and talus.
    Thermal(u32, f32),
    /// Steps and strength.
    Streams(u32, f32),
}

impl std::str::FromStr for Filter {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let (name, rest) = text.split_once('=').unwrap_or((text, ""));
        let numbers: Vec<f64> = if rest.trim().is_empty() {
            Vec::new()
        } else {
            rest.split(',')
                .map(|n| n.trim().parse().map_err(|_| format!("'{}' in '{text}' is not a number", n.trim())))
                .collect::<std::result::Result<_, _>>()?
        };
        let count = |v: f64| {
            if v >= 0.0 && v.fract() == 0.0 && v <= 1e6 {
                Ok(v as u32)
            } else {
                Err(format!("'{v}' in '{text}' is not a count"))
            }
        };
        Ok(match (name.trim(), &numbers[..]) {
            ("blur", [sigma]) => Filter::Blur(*sigma),
            ("clamp", [low, high]) => Filter::Clamp(*low as f32, *high as f32),
            ("normalise" | "normalize", []) => Filter::Normalise(0.0, 1.0),
            ("normalise" | "normalize", [low, high]) => Filter::Normalise(*low as f32, *high as f32),
            ("terrace", [steps]) => Filter::Terrace(count(*steps)?, 0.0),
            ("terrace", [steps, softness]) => Filter::Terrace(count(*steps)?, *softness as f32),
            ("invert", []) => Filter::Invert,
            ("island", []) => Filter::Island(0.6),
            ("island", [falloff]) => Filter::Island(*falloff as f32),
            ("thermal", [rounds, talus]) => Filter::Thermal(count(*rounds)?, *talus as f32),
            ("streams", [steps, strength]) => Filter::Streams(count(*steps)?, *strength as f32),
            _ => {
                return Err(format!(
                    "'{text}' is no filter; there are blur=SIGMA, clamp=LOW,HIGH, normalise=LOW,HIGH, terrace=STEPS,SOFTNESS, \
                     invert, island=FALLOFF, thermal=ROUNDS,TALUS, streams=STEPS,STRENGTH"
                ));
            }
        })
    }
}

impl TryFrom<String> for Filter {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Self, String> {
        text.parse()
    }
}

impl From<Filter> for String {
    fn from(filter: Filter) -> String {
        match filter {
            Filter::Blur(s) => format!("blur={s}"),
            Filter::Clamp(a, b) => format!("clamp={a},{b}"),
            Filter::Normalise(a, b) => format!("normalise={a},{b}"),
            Filter::Terrace(n, s) => format!("terrace={n},{s}"),
            Filter::Invert => "invert".into(),
            Filter::Island(f) => format!("island={f}"),
            Filter::Thermal(n, t) => format!("thermal={n},{t}"),
            Filter::Streams(n, s) => format!("streams={n},{s}"),
        }
    }
}

/// Names of the generators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// Midpoint displacement with the diamond and the square step.
    DiamondSquare,
    /// Midpoint displacement without the diamond step: creases stay.
    Midpoint,
    /// A skyline: midpoint displacement along a line, one row high.
    Profile,
    /// Fault formation.
    Fault,
    /// Spectral synthesis of fractional Brownian motion.
    Fbm,
}

/// How a diamond-square lattice ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum EdgeKind {
    /// Border points average the neighbours that there are.
    Open,
    /// Opposite edges are equal.
    Wrapped,
}

/// The distribution of displacements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum DisplacementKind {
    /// Bell-shaped.
    Gaussian,
    /// Even.
    Uniform,
    /// In between.
    Triangular,
}

/// A recipe; what a generator does not use is left out of account.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Recipe {
    /// The generator.
    pub algorithm: Algorithm,
    /// Values along x and y.
    pub size: [usize; 2],
    /// Every number follows from it.
    pub seed: u64,
    /// Hurst exponent, 0 to 1.
    pub hurst: f64,
    /// In place of the exponent: factor on the amplitude from level to level (diamond-square).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decay: Option<f64>,
    /// Deviation of the first displacement, units of height.
    pub amplitude: f32,
    /// Corner heights: NW, NE, SW, SE; drawn where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corners: Option<[f32; 4]>,
    /// Borders (diamond-square).
    pub edges: EdgeKind,
    /// Displacements (diamond-square).
    pub displacement: DisplacementKind,
    /// Number of faults.
    pub iterations: u32,
    /// First and last step of the faults.
    pub step: [f32; 2],
    /// Width of the faults' ramp, values; 0 for cliffs.
    pub smooth: f32,
    /// In order.
    pub filters: Vec<Filter>,
}

impl Default for Recipe {
    fn default() -> Self {
        Recipe {
            algorithm: Algorithm::DiamondSquare,
            size: [513, 513],
            seed: 1,
            hurst: 0.8,
            decay: None,
            amplitude: 1.0,
            corners: None,
            edges: EdgeKind::Open,
            displacement: DisplacementKind::Gaussian,
            iterations: 64,
            step: [1.0, 0.02],
            smooth: 0.0,
            filters: Vec::new(),
        }
    }
}

impl Recipe {
    /// Reads a recipe; `name` is for messages.
    ///
    /// # Errors
    /// [`Error::Content`] with the line and what is wrong.
    pub fn parse(text: &str, name: &str) -> Result<Recipe> {
        toml::from_str(text).map_err(|e| Error::content(name, e.message(), "the keys of a heightmap recipe"))
    }

    /// The recipe as TOML.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).unwrap_or_default()
    }

    /// Makes the heightmap, filters applied; notes tell what was clamped.
    ///
    /// # Errors
    /// Those of the generator and the filters.
    pub fn make(&self) -> Result<(Raster<f32>, Vec<String>)> {
        apply(self.generate()?, &self.filters)
    }

    fn generate(&self) -> Result<Raster<f32>> {
        let size = (self.size[0], self.size[1]);
        let corners = self.corners.unwrap_or([0.0; 4]);
        match self.algorithm {
            Algorithm::DiamondSquare => diamond_square::diamond_square(&diamond_square::Options {
                size,
                seed: self.seed,
                corners: self.corners,
                amplitude: self.amplitude,
                decay: self.decay.map_or(diamond_square::Decay::Hurst(self.hurst), diamond_square::Decay::Factor),
                displacement: match self.displacement {
                    DisplacementKind::Gaussian => diamond_square::Displacement::Gaussian,
                    DisplacementKind::Uniform => diamond_square::Displacement::Uniform,
                    DisplacementKind::Triangular => diamond_square::Displacement::Triangular,
                },
                edges: match self.edges {
                    EdgeKind::Open => diamond_square::Edges::Open,
                    EdgeKind::Wrapped => diamond_square::Edges::Wrapped,
                },
            }),
            Algorithm::Midpoint => midpoint::square(size, corners, self.amplitude, self.hurst, self.seed),
            Algorithm::Profile => {
                let line = midpoint::profile(size.0, (corners[0], corners[1]), self.amplitude, self.hurst, self.seed)?;
                Ok(Raster::from_values(size.0, 1, line))
            }
            Algorithm::Fault => fault::fault(&fault::Options {
                size,
                iterations: self.iterations,
                step: (self.step[0], self.step[1]),
                profile: if self.smooth == 0.0 { fault::Profile::Sharp } else { fault::Profile::Smooth(self.smooth) },
                seed: self.seed,
            }),
            Algorithm::Fbm => {
                let mut z = spectral::fbm(size, self.hurst, self.seed)?;
                z.values.iter_mut().for_each(|v| *v *= self.amplitude);
                Ok(z)
            }
        }
    }
}

/// Applies `filters` in order; notes tell what was clamped.
///
/// # Errors
/// Those of the filters.
pub fn apply(mut z: Raster<f32>, filters: &[Filter]) -> Result<(Raster<f32>, Vec<String>)> {
    let mut notes = Vec::new();
    for filter in filters {
        z = match *filter {
            Filter::Blur(sigma) => filter::blur(&z, sigma)?,
            Filter::Clamp(low, high) => {
                let (clamped, outside) = filter::clamp(&z, low, high)?;
                if outside > 0 {
                    notes.push(format!("clamp: {outside} values held at {low} or {high}"));
                }
                clamped
            }
            Filter::Normalise(low, high) => filter::normalise(&z, low, high)?,
            Filter::Terrace(steps, softness) => filter::terrace(&z, steps, softness)?,
            Filter::Invert => filter::invert(&z),
            Filter::Island(falloff) => filter::island(&z, falloff)?,
            Filter::Thermal(rounds, talus) => erode::thermal(&z, rounds, talus)?,
            Filter::Streams(steps, strength) => erode::stream_power(&z, &erode::StreamPower { steps, strength })?,
        };
    }
    Ok((z, notes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recipe_replays() {
        let recipe = Recipe {
            size: [33, 20],
            filters: ["blur=1.5", "terrace=4,0.25", "normalise=0,100"].map(|f| f.parse().unwrap()).to_vec(),
            ..Default::default()
        };
        let again = Recipe::parse(&recipe.to_toml(), "heightmap.toml").unwrap();
        assert_eq!(again, recipe);
        assert_eq!(again.make().unwrap(), recipe.make().unwrap());
    }

    #[test]
    fn order_matters_and_is_kept() {
        let z = Raster::from_values(3, 1, vec![0.0, 1.0, 4.0]);
        let run = |filters: [&str; 2]| apply(z.clone(), &filters.map(|f| f.parse().unwrap())).unwrap();
        assert_eq!(run(["clamp=0,2", "normalise=0,1"]).0.values, [0.0, 0.5, 1.0]);
        assert_eq!(run(["normalise=0,1", "clamp=0,2"]).0.values, [0.0, 0.25, 1.0]);
        assert_eq!(run(["clamp=0,2", "invert"]).1, ["clamp: 1 values held at 0 or 2"]);
    }

    #[test]
    fn what_is_no_filter_is_told() {
        for (text, word) in
            [("blurr=2", "blur=SIGMA"), ("blur=x", "'x'"), ("terrace=1.5", "count"), ("clamp=1", "clamp=LOW")]
        {
            let error = text.parse::<Filter>().unwrap_err();
            assert!(error.contains(word), "{error}");
        }
        assert!(Recipe::parse("algorithm = \"lava\"", "a.toml").unwrap_err().to_string().contains("a.toml"));
        assert!(Recipe::parse("filters = [\"blurr=2\"]", "a.toml").unwrap_err().to_string().contains("blurr"));
    }
}
