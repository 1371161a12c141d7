//! What became of every feature of a border file, a line each.

use super::repair::Repair;
use crate::words::counted;
use std::fmt;

/// What became of one feature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// It is a claim of its own.
    Kept,
    /// Its area is joined with another feature's: that one's place in the account, from 0.
    Joined(usize),
    /// It makes no claim, for the reason given.
    Skipped(String),
}

/// One feature's line.
#[derive(Debug, Clone, PartialEq)]
pub struct FeatureAccount {
    /// The file, as the user knows it.
    pub file: String,
    /// The feature's place in the file, from 1.
    pub feature: usize,
    /// Its name; empty when it has none.
    pub name: String,
    /// What became of it.
    pub fate: Fate,
    /// What was done to its geometry.
    pub repair: Option<Repair>,
    /// What else is worth knowing.
    pub remarks: Vec<String>,
}

/// The lines of all features, in the order of files and features.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Account {
    /// A line for every feature.
    pub features: Vec<FeatureAccount>,
}

impl Account {
    /// How many features were kept, joined, skipped; and how many of all were repaired in a way that may change their area.
    pub fn counts(&self) -> [usize; 4] {
        let n = |f: &dyn Fn(&FeatureAccount) -> bool| self.features.iter().filter(|l| f(l)).count();
        [
            n(&|l| l.fate == Fate::Kept),
            n(&|l| matches!(l.fate, Fate::Joined(_))),
            n(&|l| matches!(l.fate, Fate::Skipped(_))),
            n(&|l| l.repair.as_ref().is_some_and(|r| r.area_km2.is_some())),
        ]
    }

    /// One sentence: `286 features: 130 kept, 150 joined, 6 skipped; 12 repaired`.
    pub fn summary(&self) -> String {
        let [kept, joined, skipped, repaired] = self.counts();
        let all = self.features.len();
        format!(
            "{}: {kept} kept, {joined} joined with others, {skipped} skipped; {repaired} repaired",
            counted(all, "feature", "features")
        )
    }

    /// The lines that a reader should see: what was skipped, and what was repaired in a way that may change the area.
    pub fn remarkable(&self) -> impl Iterator<Item = String> + '_ {
        let is_told = |l: &&FeatureAccount| {
            matches!(l.fate, Fate::Skipped(_)) || l.repair.as_ref().is_some_and(|r| r.area_km2.is_some())
        };
        self.features.iter().filter(is_told).map(|l| self.line(l))
    }

    /// `world_1200.geojson, feature 3 (Cyprus): kept; 1 ring turned round`.
    fn line(&self, l: &FeatureAccount) -> String {
        let mut line = format!("{}, feature {}", l.file, l.feature);
        if !l.name.is_empty() {
            line += &format!(" ({})", l.name);
        }
        line += &match &l.fate {
            Fate::Kept => ": kept".to_string(),
            Fate::Skipped(reason) => format!(": skipped, {reason}"),
            Fate::Joined(k) => match self.features.get(*k) {
                Some(other) if other.file == l.file => format!(": joined with feature {}", other.feature),
                Some(other) => format!(": joined with feature {} of {}", other.feature, other.file),
                None => ": joined".to_string(),
            },
        };
        for more in l.repair.iter().map(|r| format!("repaired: {r}")).chain(l.remarks.iter().cloned()) {
            line += &format!("; {more}");
        }
        line
    }
}

/// All lines, then the sum.
impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for l in &self.features {
            writeln!(f, "{}", self.line(l))?;
        }
        writeln!(f, "{}", self.summary())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_feature_has_its_line() {
        let line = |feature: usize, name: &str, fate: Fate| FeatureAccount {
            file: "a".into(),
            feature,
            name: name.into(),
            fate,
            repair: None,
            remarks: vec![],
        };
        let repair = Repair { steps: vec!["1 spike removed".into()], area_km2: Some((10.0, 12.4)) };
        let account = Account {
            features: vec![
                FeatureAccount { repair: Some(repair), ..line(1, "X", Fate::Kept) },
                line(2, "X", Fate::Joined(0)),
                FeatureAccount { file: "b".into(), ..line(1, "X", Fate::Joined(0)) },
                line(3, "", Fate::Skipped("it has no geometry".into())),
            ],
        };
        assert_eq!(
            account.to_string(),
            "a, feature 1 (X): kept; repaired: 1 spike removed; 10 km² before, 12 km² after\n\
             a, feature 2 (X): joined with feature 1\n\
             b, feature 1 (X): joined with feature 1 of a\n\
             a, feature 3: skipped, it has no geometry\n\
             4 features: 1 kept, 2 joined with others, 1 skipped; 1 repaired\n"
        );
        assert_eq!(account.remarkable().count(), 2);
    }
}
