//! What ships inside the binary for every region: coarse elevation, sea floor, water and rivers. Their origin is in
//! `data/SOURCES.md`.

/// A file inside the binary.
#[derive(Debug, Clone, Copy)]
pub struct ShippedFile {
    /// Name in the repository's `data/` folder.
    pub name: &'static str,
    /// Its bytes.
    pub bytes: &'static [u8],
    /// Where it comes from, in one line.
    pub source: &'static str,
    /// Licence.
    pub licence: &'static str,
}

macro_rules! shipped {
    ($name:literal, $source:literal, $licence:literal) => {
        ShippedFile {
            name: $name,
            bytes: include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/data/", $name)),
            source: $source,
            licence: $licence,
        }
    };
}

/// Land elevation, 30 arc-seconds, metres, cell means; nodata on the open sea.
pub const LAND: ShippedFile =
    shipped!("land.tif", "NOAA GLOBE 1.0 (1999), tile G, levelled and completed by ETOPO1", "public domain");
/// Sea floor under the Black Sea, Azov and Caspian, 0.1 degrees, metres.
pub const SEA_FLOOR: ShippedFile = shipped!("seafloor.tif", "NOAA ETOPO1 (2009), at 0.1 degrees", "public domain");
/// Seas with their names and levels.
pub const OCEAN: ShippedFile = shipped!("ocean.geojson", "Natural Earth 1:10m", "public domain");
/// Lakes and reservoirs with their levels and years.
pub const LAKES: ShippedFile = shipped!("lakes.geojson", "Natural Earth 1:10m", "public domain");
/// Rivers from source to mouth.
pub const RIVERS: ShippedFile = shipped!("rivers.geojson", "Natural Earth 1:10m, with additions", "public domain");

/// The vertical datum of the shipped elevation, as written into metadata.
pub const VERTICAL_DATUM: &str = "mean sea level (EGM96 to within the source's error)";
