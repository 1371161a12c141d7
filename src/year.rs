//! Years, spans and eras. Inside, years are astronomical (1 BCE is 0, 2 BCE is -1) and spans half-open; people read and
//! write historian's years (BCE/CE, no year 0, last year included). No datetime type is involved.
//!
//! Invariant: what [`std::fmt::Display`] prints, [`std::str::FromStr`] reads back, and no year 0 is ever printed.

use crate::error::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// The greatest historian's year accepted, on either side of the turn: years -100000..=100000.
pub const YEAR_LIMIT: i32 = 100_000;

/// A year in astronomical numbering: 1 BCE is 0, 300 BCE is -299.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Year(pub i32);

impl Year {
    /// The year that historians write as `year`: 1200 is 1200 CE, -300 is 300 BCE.
    ///
    /// ```
    /// use histmap::year::Year;
    /// assert_eq!(Year::from_historian(-300).unwrap(), Year(-299));
    /// ```
    ///
    /// # Errors
    /// [`Error::Argument`] for 0, which does not exist, and outside ±[`YEAR_LIMIT`].
    pub fn from_historian(year: i32) -> Result<Year> {
        year_of(i64::from(year), &year.to_string())
    }

    /// The historian's year: positive CE, negative BCE, never 0.
    pub fn to_historian(self) -> i32 {
        if self.0 > 0 { self.0 } else { self.0.saturating_sub(1) }
    }

    /// The year after.
    pub fn next(self) -> Year {
        Year(self.0.saturating_add(1))
    }

    /// The number and the era word apart: `(300, "BCE")`.
    fn parts(self) -> (u32, &'static str) {
        let year = self.to_historian();
        (year.unsigned_abs(), if year > 0 { "CE" } else { "BCE" })
    }
}

impl fmt::Display for Year {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, era) = self.parts();
        write!(f, "{number} {era}")
    }
}

/// Reads one year: `1200`, `-300`, `300bc`, `300 BC`, `300 BCE`, `AD 800`, `800 CE`; a bare number is CE, a minus sign
/// means BCE.
///
/// # Errors
/// [`Error::Argument`] for year 0, anything outside ±[`YEAR_LIMIT`], and text that is no year.
impl FromStr for Year {
    type Err = Error;

    fn from_str(text: &str) -> Result<Year> {
        written_year(text)?.year(text)
    }
}

/// A half-open span of years: `start` belongs to it, `end` does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// First year.
    pub start: Year,
    /// First year after.
    pub end: Year,
}

/// The year or span of years that the user asked for, never empty.
pub type Era = Span;

impl Span {
    /// Every year. Its ends are beyond any year that can be written, and mean "open".
    pub const ALWAYS: Span = Span { start: Year(i32::MIN), end: Year(i32::MAX) };

    /// The one year `year`.
    pub fn of(year: Year) -> Span {
        Span { start: year, end: year.next() }
    }

    /// The span from `first` to `last`, both included.
    ///
    /// # Errors
    /// [`Error::Argument`] when `last` comes before `first`.
    pub fn inclusive(first: Year, last: Year) -> Result<Span> {
        if last < first {
            return Err(Error::argument(
                "span of years",
                format!("{first} to {last} runs backwards"),
                format!("give the earlier year first: {}/{}", last.to_historian(), first.to_historian()),
            ));
        }
        Ok(Span { start: first, end: last.next() })
    }

    /// The first year.
    pub fn first(&self) -> Year {
        self.start
    }

    /// The last year that belongs to it.
    pub fn last(&self) -> Year {
        Year(self.end.0.saturating_sub(1))
    }

    /// Whether it has no year.
    pub fn is_empty(&self) -> bool {
        self.end <= self.start
    }

    /// Whether `year` belongs to it.
    pub fn contains(&self, year: Year) -> bool {
        self.start <= year && year < self.end
    }

    /// Whether the two have a year in common.
    pub fn overlaps(&self, other: &Span) -> bool {
        self.start.max(other.start) < self.end.min(other.end)
    }

    /// The years of this span that are not in `other`: none, one or two spans.
    pub fn minus(&self, other: &Span) -> Vec<Span> {
        let before = Span { start: self.start, end: self.end.min(other.start) };
        let after = Span { start: self.start.max(other.end), end: self.end };
        if other.is_empty() {
            return if self.is_empty() { vec![] } else { vec![*self] };
        }
        [before, after].into_iter().filter(|s| !s.is_empty()).collect()
    }

    /// How the years were read: `1200 CE (astronomical 1200)`, `300 BCE (astronomical -299)`,
    /// `50 BCE – 50 CE (astronomical -49 to 50)`.
    pub fn described(&self) -> String {
        let (first, last) = (self.first(), self.last());
        if *self == Span::ALWAYS {
            self.to_string()
        } else if first == last {
            format!("{self} (astronomical {})", first.0)
        } else {
            format!("{self} (astronomical {} to {})", first.0, last.0)
        }
    }

    /// The union of `spans` as disjoint spans in order of time; spans that follow without a gap become one.
    pub fn merged(spans: impl IntoIterator<Item = Span>) -> Vec<Span> {
        let mut all: Vec<Span> = spans.into_iter().filter(|s| !s.is_empty()).collect();
        all.sort();
        let mut merged: Vec<Span> = Vec::new();
        for span in all {
            match merged.last_mut() {
                Some(last) if span.start <= last.end => last.end = last.end.max(span.end),
                _ => merged.push(span),
            }
        }
        merged
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("no year");
        }
        let ((first, first_era), (last, last_era)) = (self.first().parts(), self.last().parts());
        match (self.start == Span::ALWAYS.start, self.end == Span::ALWAYS.end) {
            (true, true) => f.write_str("all years"),
            (true, false) => write!(f, "until {last} {last_era}"),
            (false, true) => write!(f, "from {first} {first_era}"),
            _ if self.first() == self.last() => write!(f, "{first} {first_era}"),
            _ if first_era == last_era => write!(f, "{first}–{last} {last_era}"),
            _ => write!(f, "{first} {first_era} – {last} {last_era}"),
        }
    }
}

/// Reads a year, or two years with the last one included: `1200`, `1200/1210`, `-50/50`, `300bce/200bce`, and what
/// [`Span`] prints (`1200–1210 CE`, `50 BCE – 50 CE`).
///
/// # Errors
/// [`Error::Argument`] for anything that is no year, for year 0, and for spans that run backwards.
impl FromStr for Span {
    type Err = Error;

    fn from_str(text: &str) -> Result<Span> {
        let parts: Vec<&str> = text.split(['/', '–']).collect();
        match parts[..] {
            [one] => {
                // 1200-1210: a hyphen between digits is a slip for a span.
                if let Some((a, b)) = one.trim().split_once('-')
                    && is_number(a)
                    && is_number(b)
                {
                    return Err(Error::argument(
                        "year",
                        format!("'{}' is not a year", one.trim()),
                        format!("for a span of years write {}/{}", a.trim(), b.trim()),
                    ));
                }
                Ok(Span::of(one.parse()?))
            }
            [first, last] => {
                let last_written = written_year(last)?;
                let mut first_written = written_year(first)?;
                // Printed spans name the era once, after the second year.
                if text.contains('–') && first_written.era.is_none() && !first_written.minus {
                    first_written.era = last_written.era;
                }
                Span::inclusive(first_written.year(first)?, last_written.year(last)?)
            }
            _ => Err(Error::argument(
                "span of years",
                format!("'{}' has more than two years", text.trim()),
                "write the first and the last year, for example 1200/1210",
            )),
        }
    }
}

/// Whether `text` is digits only.
fn is_number(text: &str) -> bool {
    let text = text.trim();
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// Before or after the turn of the eras, where the text says so.
#[derive(Clone, Copy, PartialEq)]
enum EraWord {
    Bce,
    Ce,
}

/// A year as written, before it is judged.
struct WrittenYear {
    minus: bool,
    number: i64,
    era: Option<EraWord>,
}

impl WrittenYear {
    fn year(&self, text: &str) -> Result<Year> {
        let is_bce = self.minus || self.era == Some(EraWord::Bce);
        year_of(if is_bce { -self.number } else { self.number }, text.trim())
    }
}

/// The year for a historian's number; `text` is what was written, for the message.
fn year_of(historian: i64, text: &str) -> Result<Year> {
    if historian == 0 {
        return Err(Error::argument(
            "year",
            format!("'{text}' is no year of history"),
            "there is no year 0: 1 BCE (write -1) is followed by 1 CE (write 1); give one of these two",
        ));
    }
    if historian.abs() > i64::from(YEAR_LIMIT) {
        return Err(Error::argument(
            "year",
            format!("'{text}' is out of range"),
            format!("give a year from {YEAR_LIMIT} BCE to {YEAR_LIMIT} CE"),
        ));
    }
    Ok(Year(if historian > 0 { historian } else { historian + 1 } as i32))
}

/// Splits the text of one year into sign, number and era word.
fn written_year(text: &str) -> Result<WrittenYear> {
    let fail = |why: &str| {
        let shown: String = text.trim().chars().take(40).collect();
        Err(Error::argument(
            "year",
            if shown.is_empty() { "no year is given".to_string() } else { format!("'{shown}' {why}") },
            "write 1200, -300, 300 BCE, AD 800, or a span like 1200/1210",
        ))
    };
    // Dots of abbreviations (B.C.) go; a dot between digits stays, and fails below.
    let mut clean = String::new();
    for c in text.trim().chars() {
        let is_abbreviation = c == '.' && clean.chars().next_back().is_some_and(char::is_alphabetic);
        if !is_abbreviation {
            clean.extend(if c == '−' { '-' } else { c }.to_lowercase());
        }
    }
    let after_prefix = clean.trim_start_matches(char::is_alphabetic);
    let prefix = &clean[..clean.len() - after_prefix.len()];
    let rest = after_prefix.trim_start();
    let unsigned = rest.strip_prefix(['-', '+']).unwrap_or(rest);
    let minus = rest.starts_with('-');
    let after_digits = unsigned.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = &unsigned[..unsigned.len() - after_digits.len()];
    let suffix = after_digits.trim();
    if digits.is_empty() {
        return fail("is not a year");
    }
    let era = match (prefix, suffix) {
        ("", "") => None,
        ("" | "ad" | "ce", "ad" | "ce") | ("ad" | "ce", "") => Some(EraWord::Ce),
        ("" | "bc" | "bce", "bc" | "bce") | ("bc" | "bce", "") => Some(EraWord::Bce),
        _ => return fail("is not a year"),
    };
    if minus && era.is_some() {
        return fail("has both a minus sign and an era");
    }
    // Too long for a number is out of range in any case.
    Ok(WrittenYear { minus, number: digits.parse().unwrap_or(i64::MAX / 2), era })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn span(text: &str) -> Span {
        text.parse().unwrap()
    }

    fn says(text: &str) -> String {
        text.parse::<Span>().unwrap_err().to_string()
    }

    #[test]
    fn years_are_read_in_every_usual_form() {
        for (text, year) in [
            ("1200", 1200),
            (" 1200 ", 1200),
            ("+1200", 1200),
            ("AD 800", 800),
            ("A.D. 800", 800),
            ("ad800", 800),
            ("800 CE", 800),
            ("1", 1),
            ("-1", 0),
            ("-300", -299),
            ("−300", -299),
            ("300bc", -299),
            ("300 BC", -299),
            ("300 B.C.", -299),
            ("300 BCE", -299),
            ("300bce", -299),
            ("100000", 100_000),
        ] {
            assert_eq!(text.parse::<Year>().unwrap(), Year(year), "{text}");
            assert_eq!(span(text), Span::of(Year(year)), "{text}");
        }
    }

    #[test]
    fn spans_include_their_last_year() {
        assert_eq!(span("1200/1210"), Span { start: Year(1200), end: Year(1211) });
        assert_eq!(span("-50/50"), Span { start: Year(-49), end: Year(51) });
        assert_eq!(span("300bce/200bce"), Span { start: Year(-299), end: Year(-198) });
        assert_eq!(span("300–200 BCE"), span("300bce/200bce"));
        assert!(span("1200/1210").contains(Year(1210)) && !span("1200/1210").contains(Year(1211)));
    }

    #[test]
    fn year_zero_is_refused_with_the_two_years_meant() {
        for text in ["0", "-0", "0 BCE", "AD 0", "0/10", "000"] {
            let said = says(text);
            assert!(said.contains("1 BCE (write -1)") && said.contains("1 CE (write 1)"), "{said}");
        }
        assert!(Year::from_historian(0).is_err());
    }

    #[test]
    fn bad_years_say_what_to_write() {
        assert!(says("1210/1200").contains("backwards"));
        assert!(says("1210/1200").contains("1200/1210"));
        assert!(says("300/200bce").contains("backwards"));
        assert!(says("1200-1210").contains("write 1200/1210"));
        assert!(says("100001").contains("out of range"));
        assert!(says("99999999999999999999999999").contains("out of range"));
        assert!(says("-300 BC").contains("both a minus sign and an era"));
        assert!(says("").contains("no year is given"));
        assert!(says("1/2/3").contains("more than two"));
        for text in ["twelve", "1200.5", "12 00", "AD 800 BC", "1200x", "/", "1200/", "bc", "-", "1e3", "٣٠٠"] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
    }

    #[test]
    fn years_are_printed_as_historians_write_them() {
        for (text, printed) in [
            ("1200", "1200 CE"),
            ("-300", "300 BCE"),
            ("-1", "1 BCE"),
            ("1200/1210", "1200–1210 CE"),
            ("-300/-200", "300–200 BCE"),
            ("-50/50", "50 BCE – 50 CE"),
        ] {
            assert_eq!(span(text).to_string(), printed);
        }
        assert_eq!(Span::ALWAYS.to_string(), "all years");
        assert_eq!(Span { start: Year(1200), end: Span::ALWAYS.end }.to_string(), "from 1200 CE");
    }

    #[test]
    fn the_reading_of_an_era_is_described() {
        assert_eq!(span("1200").described(), "1200 CE (astronomical 1200)");
        assert_eq!(span("300bc").described(), "300 BCE (astronomical -299)");
        assert_eq!(span("-50/50").described(), "50 BCE – 50 CE (astronomical -49 to 50)");
    }

    #[test]
    fn merging_joins_spans_that_touch() {
        let merged = Span::merged([span("1210/1220"), span("1196/1209"), span("1300"), span("1205/1206")]);
        assert_eq!(merged, [span("1196/1220"), span("1300")]);
    }

    #[test]
    fn minus_leaves_what_is_not_covered() {
        assert_eq!(span("1184/1225").minus(&span("1200/1210")), [span("1184/1199"), span("1211/1225")]);
        assert_eq!(span("1184/1225").minus(&span("1100/1300")), []);
        assert_eq!(span("1184/1225").minus(&span("1300")), [span("1184/1225")]);
    }

    fn any_year() -> impl Strategy<Value = Year> {
        (-YEAR_LIMIT + 1..=YEAR_LIMIT).prop_map(Year)
    }

    proptest! {
        #[test]
        fn reading_what_is_printed_is_identity(a in any_year(), b in any_year()) {
            let s = Span::inclusive(a.min(b), a.max(b)).unwrap();
            prop_assert_eq!(s.to_string().parse::<Span>().unwrap(), s);
            prop_assert_eq!(a.to_string().parse::<Year>().unwrap(), a);
            prop_assert_eq!(Year::from_historian(a.to_historian()).unwrap(), a);
            prop_assert_eq!(a.to_historian().to_string().parse::<Year>().unwrap(), a);
        }

        #[test]
        fn adjacent_spans_never_hold_in_one_year(a in any_year(), n in 0i32..50, m in 0i32..50, y in any_year()) {
            let first = Span::inclusive(a, Year(a.0 + n)).unwrap();
            let second = Span::inclusive(Year(a.0 + n + 1), Year(a.0 + n + 1 + m)).unwrap();
            prop_assert!(!first.overlaps(&second));
            for year in (a.0 - 2..a.0 + n + m + 4).chain([y.0]).map(Year) {
                prop_assert!(!(first.contains(year) && second.contains(year)));
            }
        }

        #[test]
        fn no_year_zero_is_printed(year in any::<i32>()) {
            prop_assert_ne!(Year(year).to_historian(), 0);
            let printed = Year(year).to_string();
            prop_assert!(!printed.starts_with("0 "));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[-–/ 0-9a-zA-Z.+−]{0,12}") {
            let _ = text.parse::<Span>();
            let _ = text.parse::<Year>();
        }

        #[test]
        fn minus_and_overlap_agree(a in 0..40i32, b in 0..40i32, c in 0..40i32, d in 0..40i32) {
            let s = Span { start: Year(a.min(b)), end: Year(a.max(b)) };
            let t = Span { start: Year(c.min(d)), end: Year(c.max(d)) };
            let rest = s.minus(&t);
            for y in (-1..42).map(Year) {
                let held = rest.iter().filter(|r| r.contains(y)).count();
                prop_assert_eq!(held, usize::from(s.contains(y) && !t.contains(y)));
            }
            prop_assert_eq!(s.overlaps(&t), (-1..42).any(|y| s.contains(Year(y)) && t.contains(Year(y))));
        }
    }
}
