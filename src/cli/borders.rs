//! How border files are read: the flags that all subcommands with such files share.

use crate::borders::{FieldMapping, ReadOptions, SourceKind};
use crate::error::{Error, Result};
use crate::political::BorderInput;
use std::path::PathBuf;

/// How to read border files.
#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct BorderArgs {
    /// Which field of the border files holds what: name=...,from=...,to=... and also id=, kind=, certainty=
    #[arg(long, value_name = "KEY=FIELD,...", value_delimiter = ',')]
    map_field: Vec<String>,
    /// Schema of the border files [default: recognised by their fields]
    #[arg(long, value_name = "KIND", value_parser = SourceKind::ALL.map(SourceKind::as_str))]
    source_kind: Option<String>,
    /// The claims of the border files hold in every year, whatever the files say
    #[arg(long)]
    every_year: bool,
    /// Encoding of Shapefiles' texts, for example CP1251 [default: what they say, else a guess]
    #[arg(long, value_name = "NAME")]
    encoding: Option<String>,
    /// What the border files are in, only where they do not say (GeoJSON is always EPSG:4326)
    #[arg(long, value_name = "CRS")]
    src_crs: Option<String>,
}

impl BorderArgs {
    /// The files at `paths`, to be read so.
    pub(super) fn input(self, paths: Vec<PathBuf>) -> Result<BorderInput> {
        let read = ReadOptions {
            kind: self.source_kind.as_deref().and_then(SourceKind::named),
            mapping: mapping(&self.map_field)?,
            every_year: self.every_year,
        };
        Ok(BorderInput { paths, crs: self.src_crs, encoding: self.encoding, read })
    }
}

/// Reads `name=N`, `from=A`, ...
fn mapping(pairs: &[String]) -> Result<FieldMapping> {
    let mut mapping = FieldMapping::default();
    for pair in pairs {
        let bad = || {
            Error::argument("--map-field", pair, "write name=FIELD,from=FIELD,to=FIELD; also id=, kind=, certainty=")
        };
        let (key, field) = pair.split_once('=').filter(|(_, f)| !f.trim().is_empty()).ok_or_else(bad)?;
        let place = match key.trim() {
            "name" => &mut mapping.name,
            "from" => &mut mapping.from_year,
            "to" => &mut mapping.to_year,
            "id" => &mut mapping.id,
            "kind" => &mut mapping.kind,
            "certainty" => &mut mapping.certainty,
            _ => return Err(bad()),
        };
        if place.replace(field.trim().to_string()).is_some() {
            return Err(Error::argument("--map-field", format!("{key}= is given twice"), "give each once"));
        }
    }
    Ok(mapping)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_pairs() {
        let read = |text: &str| mapping(&text.split(',').map(str::to_string).collect::<Vec<_>>());
        let m = read("name=N, from = A B,to=C").unwrap();
        assert_eq!(
            (m.name.as_deref(), m.from_year.as_deref(), m.to_year.as_deref()),
            (Some("N"), Some("A B"), Some("C"))
        );
        for bad in ["name", "name=", "nmae=x", "name=a,name=b", "=x"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
