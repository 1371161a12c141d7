//! What a long run tells while it runs. A trait, so that the library never touches a terminal.

/// The stages of a build, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Reading the pack and the coarse data.
    Read,
    /// Constraints on the grid.
    Constrain,
    /// Refinement.
    Terrain,
    /// GeoTIFFs of the relief.
    Relief,
    /// Regions of the era.
    Regions,
    /// GeoTIFFs of the era.
    Rasters,
    /// GeoPackage.
    Vectors,
    /// Map sheet.
    Sheet,
    /// The era's frame in a moving picture.
    Frames,
    /// Moving pictures.
    Animation,
    /// Hashes and manifest.
    Manifest,
}

impl Stage {
    /// All stages, in order.
    pub const ALL: [Stage; 11] = [
        Stage::Read,
        Stage::Constrain,
        Stage::Terrain,
        Stage::Relief,
        Stage::Regions,
        Stage::Rasters,
        Stage::Vectors,
        Stage::Sheet,
        Stage::Frames,
        Stage::Animation,
        Stage::Manifest,
    ];

    /// Short name, as in the manifest.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Read => "read",
            Stage::Constrain => "constrain",
            Stage::Terrain => "terrain",
            Stage::Relief => "relief",
            Stage::Regions => "regions",
            Stage::Rasters => "rasters",
            Stage::Vectors => "vectors",
            Stage::Sheet => "sheet",
            Stage::Frames => "frames",
            Stage::Animation => "animation",
            Stage::Manifest => "manifest",
        }
    }

    /// Share of a whole build's time, in percent, as measured at 250 m: what the time left is reckoned from.
    pub fn share(self) -> u64 {
        match self {
            Stage::Read => 1,
            Stage::Constrain => 3,
            Stage::Terrain => 50,
            Stage::Relief => 13,
            Stage::Regions => 2,
            Stage::Rasters => 4,
            Stage::Vectors => 2,
            Stage::Sheet => 24,
            Stage::Frames => 5,
            Stage::Animation => 10,
            Stage::Manifest => 1,
        }
    }
}

/// Hears of stages as they begin and end.
pub trait Progress {
    /// All stages that will come make up this sum of shares; some come several times.
    fn expect(&mut self, _share: u64) {}
    /// A part begins, such as an era of several.
    fn part(&mut self, _name: &str) {}
    /// `stage` begins.
    fn begin(&mut self, stage: Stage);
    /// `stage` ended after `seconds`.
    fn end(&mut self, stage: Stage, seconds: f64);
    /// Something that the user should know, in one sentence.
    fn note(&mut self, sentence: &str);
}

/// Says nothing.
pub struct Silent;

impl Progress for Silent {
    fn begin(&mut self, _: Stage) {}
    fn end(&mut self, _: Stage, _: f64) {}
    fn note(&mut self, _: &str) {}
}
