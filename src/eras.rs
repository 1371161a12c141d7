//! Which eras a build is to show: one, a list, or a series of years.

use crate::borders::{Claim, timeline};
use crate::error::{Error, Result};
use crate::year::{Era, Span, Year};
use std::str::FromStr;

/// More maps than this in one run are a slip of the pen.
const MOST: usize = 2000;

/// The eras asked for, before the years in which the map changes are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Eras {
    /// As typed.
    pub given: String,
    items: Vec<Item>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Item {
    One(Era),
    Series { from: Year, to: Year, step: Step },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Years(i32),
    Changes,
}

impl Eras {
    /// The one era, where just one is asked for: its map stands alone, without a folder of eras.
    pub fn single(&self) -> Option<Era> {
        match self.items[..] {
            [Item::One(era)] => Some(era),
            _ => None,
        }
    }

    /// All eras in order of time, each once; `claims` tell the years of change.
    ///
    /// Steps are counted in historian's years; where one falls on 0, which is no year, 1 CE stands for it.
    ///
    /// # Errors
    /// [`Error::Argument`] for more than 2000.
    pub fn resolve(&self, claims: &[Claim]) -> Result<Vec<Era>> {
        let mut eras: Vec<Era> = Vec::new();
        for item in &self.items {
            match *item {
                Item::One(era) => eras.push(era),
                Item::Series { from, to, step: Step::Changes } => {
                    // A year in which the last claim has ended is no map.
                    let is_held = |y: &Year| claims.iter().any(|c| c.span.contains(*y));
                    let changes = timeline(claims).change_years.into_iter().filter(is_held);
                    let years = std::iter::once(from).chain(changes);
                    eras.extend(years.filter(|y| (from..=to).contains(y)).map(Span::of));
                }
                Item::Series { from, to, step: Step::Years(step) } => {
                    let (first, last) = (from.to_historian(), to.to_historian());
                    let count = 1 + (i64::from(last) - i64::from(first)) / i64::from(step);
                    if count > MOST as i64 {
                        return Err(self.too_many(count as usize));
                    }
                    for n in (first..=last).step_by(step as usize) {
                        eras.push(Span::of(Year::from_historian(if n == 0 { 1 } else { n })?));
                    }
                }
            }
        }
        eras.sort();
        eras.dedup();
        if eras.len() > MOST {
            return Err(self.too_many(eras.len()));
        }
        Ok(eras)
    }

    /// The year before which the last map's years end, where a series of changes asks for more than its own year: that map
    /// holds until the next change or the end of the series, whichever comes first.
    pub fn end_of_last(&self, claims: &[Claim]) -> Option<Year> {
        let last = self.resolve(claims).ok()?.last()?.start;
        let ends = self.items.iter().filter_map(|item| match *item {
            Item::Series { from, to, step: Step::Changes } if from <= last => Some(Year(to.0.saturating_add(1))),
            _ => None,
        });
        let next = timeline(claims).change_years.into_iter().find(|y| *y > last);
        ends.max().map(|end| next.map_or(end, |n| n.min(end)))
    }

    fn too_many(&self, count: usize) -> Error {
        Error::argument("--era", format!("'{}' makes {count} maps", self.given), format!("choose at most {MOST}"))
    }
}

/// An era as part of a file name: `1200`, `300bce`, `1200-1210`.
pub fn slug(era: Era) -> String {
    let year = |y: Year| match y.to_historian() {
        n if n < 0 => format!("{}bce", -n),
        n => n.to_string(),
    };
    if era.first() == era.last() { year(era.first()) } else { format!("{}-{}", year(era.first()), year(era.last())) }
}

/// Eras in words: `1200 CE`, or `9 eras from 1000 CE to 1400 CE`.
pub fn in_words(eras: &[Era]) -> String {
    match eras {
        [one] => one.to_string(),
        [first, .., last] => format!("{} eras from {} to {}", eras.len(), first.first(), last.last()),
        [] => "no era".to_string(),
    }
}

/// Reads eras with commas between them: each a year or span ([`Span`]), or a series `1000..1400/50`, or
/// `1000..1400/changes` for the first year and every one in which the map changes.
///
/// # Errors
/// [`Error::Argument`] for what is none of these, with what to write.
impl FromStr for Eras {
    type Err = Error;

    fn from_str(text: &str) -> Result<Eras> {
        let items: Result<Vec<Item>> = text.split(',').map(item).collect();
        Ok(Eras { given: text.trim().to_string(), items: items? })
    }
}

fn item(text: &str) -> Result<Item> {
    let Some((first, rest)) = text.split_once("..") else { return Ok(Item::One(text.parse()?)) };
    let fail = |found: &str| {
        Error::argument(
            "--era",
            format!("'{}' {found}", text.trim()),
            "write a series with its step in years, such as 1000..1400/50, or with /changes for every year in which the map changes",
        )
    };
    let Some((last, step)) = rest.rsplit_once('/') else { return Err(fail("has no step")) };
    let (from, to): (Year, Year) = (first.parse()?, last.parse()?);
    if to < from {
        return Err(fail("runs backwards"));
    }
    let step = match step.trim() {
        "changes" | "change" => Step::Changes,
        n => {
            Step::Years(n.parse().ok().filter(|n| *n > 0).ok_or_else(|| fail("has a step that is no number of years"))?)
        }
    };
    Ok(Item::Series { from, to, step })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::borders::tests::claim;
    use proptest::prelude::*;

    fn read(text: &str) -> Vec<String> {
        let eras: Eras = text.parse().unwrap_or_else(|e| panic!("{e}"));
        eras.resolve(&[claim("a", "1184/1202"), claim("b", "1203/1225")]).unwrap().iter().map(Span::to_string).collect()
    }

    #[test]
    fn lists_and_series_are_read() {
        assert_eq!(read("1300, 1100,1200,1100"), ["1100 CE", "1200 CE", "1300 CE"]);
        assert_eq!(read("1000..1200/100,1150/1160"), ["1000 CE", "1100 CE", "1150–1160 CE", "1200 CE"]);
        assert_eq!(read("-80..-20/30"), ["80 BCE", "50 BCE", "20 BCE"]);
        assert_eq!(read("80 BCE..20 BCE/30"), ["80 BCE", "50 BCE", "20 BCE"]);
        // There is no year 0.
        assert_eq!(read("-100..100/50"), ["100 BCE", "50 BCE", "1 CE", "50 CE", "100 CE"]);
        assert_eq!(read("1190..1230/changes"), ["1190 CE", "1203 CE"]);
        assert_eq!(read("1000..1000/5"), ["1000 CE"]);
    }

    #[test]
    fn one_era_stands_alone() {
        let single = |t: &str| t.parse::<Eras>().unwrap().single().map(|e| e.to_string());
        assert_eq!(single("1200/1210").as_deref(), Some("1200–1210 CE"));
        assert_eq!((single("1200,1300"), single("1200..1200/1")), (None, None));
    }

    #[test]
    fn bad_series_say_what_to_write() {
        for (text, word) in [
            ("1000..1400", "has no step"),
            ("1400..1000/50", "backwards"),
            ("1000..1400/0", "no number of years"),
            ("1000..1400/x", "1000..1400/50"),
            ("0..100/10", "1 BCE (write -1)"),
            ("1000,,1200", "no year is given"),
            ("..1400/50", "no year is given"),
        ] {
            let said = text.parse::<Eras>().unwrap_err().to_string();
            assert!(said.contains(word), "{text}: {said}");
        }
        let many: Eras = "-100000..100000/1".parse().unwrap();
        assert!(many.resolve(&[]).unwrap_err().to_string().contains("at most 2000"));
    }

    #[test]
    fn eras_are_named() {
        let slugs: Vec<String> = ["1200", "-300", "1200/1210", "-50/50"].map(|e| slug(e.parse().unwrap())).to_vec();
        assert_eq!(slugs, ["1200", "300bce", "1200-1210", "50bce-50"]);
        assert_eq!(
            in_words(&"1000..1400/50".parse::<Eras>().unwrap().resolve(&[]).unwrap()),
            "9 eras from 1000 CE to 1400 CE"
        );
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[-–/ 0-9a-z.,]{0,16}") {
            if let Ok(all) = text.parse::<Eras>().and_then(|eras| eras.resolve(&[])) {
                prop_assert!(all.windows(2).all(|w| w[0] < w[1]));
            }
        }
    }

    #[test]
    fn the_last_map_of_a_series_of_changes_holds_to_its_end() {
        let claims = [claim("a", "1184/1202"), claim("b", "1203/1225")];
        let end = |text: &str| text.parse::<Eras>().unwrap().end_of_last(&claims).map(|y| y.to_historian());
        assert_eq!(end("1190..1210/changes"), Some(1211));
        // Nobody holds after 1225.
        assert_eq!(end("1190..1300/changes"), Some(1226));
        assert_eq!(end("1190..1210/5"), None);
        assert_eq!(end("1200"), None);
    }
}
