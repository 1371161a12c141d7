//! What is wrong in a pack or border file: where, what was found, what was expected and what to do.

use std::fmt;

/// Whether a problem stops the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing; the work goes on.
    Warning,
    /// The file is not used until it is mended.
    Error,
}

/// One problem in one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Whether it stops the work.
    pub severity: Severity,
    /// The file, as the user knows it.
    pub file: String,
    /// The line, from 1, where it is known.
    pub line: Option<usize>,
    /// The feature's place in the file, from 1.
    pub feature: Option<usize>,
    /// The feature's id or name; empty when unknown.
    pub id: String,
    /// The key or field; empty when the problem is not about one.
    pub key: String,
    /// What was found.
    pub found: String,
    /// What was expected, and what to do.
    pub expected: String,
}

impl Problem {
    /// An error in `file`.
    pub fn error(file: &str, found: impl ToString, expected: impl ToString) -> Problem {
        Problem {
            severity: Severity::Error,
            file: file.to_string(),
            line: None,
            feature: None,
            id: String::new(),
            key: String::new(),
            found: found.to_string(),
            expected: expected.to_string(),
        }
    }

    /// The same as a warning.
    pub fn as_warning(self) -> Problem {
        Problem { severity: Severity::Warning, ..self }
    }

    /// The same at a line, from 1.
    pub fn at_line(self, line: Option<usize>) -> Problem {
        Problem { line, ..self }
    }

    /// The same at a feature: its place from 1, and its id.
    pub fn at_feature(self, feature: usize, id: &str) -> Problem {
        Problem { feature: Some(feature), id: id.to_string(), ..self }
    }

    /// The same about `key`.
    pub fn about(self, key: &str) -> Problem {
        Problem { key: key.to_string(), ..self }
    }

    /// Whether it stops the work.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// One line: `polities.geojson, feature 3 (georgia), from_year: 0; there is no year 0 ...`.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.severity == Severity::Warning {
            f.write_str("warning: ")?;
        }
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        if let Some(feature) = self.feature {
            write!(f, ", feature {feature}")?;
            if !self.id.is_empty() {
                write!(f, " ({})", self.id)?;
            }
        }
        if !self.key.is_empty() {
            write!(f, ", {}", self.key)?;
        }
        write!(f, ": {}; {}", self.found, self.expected)
    }
}

/// `text` cut to a length that fits a message.
pub(crate) fn shown(text: &str) -> String {
    let one_line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match one_line.char_indices().nth(60) {
        Some((end, _)) => format!("'{}…'", &one_line[..end]),
        None => format!("'{one_line}'"),
    }
}

/// "did you mean 'x'?", or empty, for the nearest of `known` to `word`.
pub(crate) fn suggestion<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let word: String = word.chars().take(60).collect();
    known
        .into_iter()
        .map(|k| (strsim::damerau_levenshtein(&word.to_lowercase(), &k.to_lowercase()), k))
        .filter(|(distance, k)| *distance <= 1 + k.chars().count() / 4)
        .min()
        .map_or(String::new(), |(_, k)| format!("did you mean '{k}'?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_names_its_place() {
        let p =
            Problem::error("polities.geojson", "0", "there is no year 0").at_feature(3, "georgia").about("from_year");
        assert_eq!(p.to_string(), "polities.geojson, feature 3 (georgia), from_year: 0; there is no year 0");
        let p = Problem::error("region.toml", "a", "b").at_line(Some(7)).as_warning();
        assert_eq!(p.to_string(), "warning: region.toml, line 7: a; b");
    }

    #[test]
    fn near_words_are_suggested_and_far_ones_not() {
        assert_eq!(suggestion("polites", ["polities", "places"]), "did you mean 'polities'?");
        assert_eq!(suggestion("colour", ["polities", "places"]), "");
    }
}
