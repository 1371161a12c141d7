//! Dates as archives write them: the Extended Date/Time Format, levels 0 and 1 (ISO 8601-2:2019, annex A; specification of
//! the Library of Congress, 4 February 2019). Years are astronomical, as in ISO 8601: `0000` is 1 BCE.
//!
//! Read are `1984`, `1984-05`, `1984-05-17`, a time of day behind it (not used), `Y-12000`, seasons (the whole year),
//! unspecified digits (`19XX`, `1984-XX`), the qualifiers `?`, `~` and `%`, and intervals `a/b` with open (`..`) or
//! unknown (empty) ends. Of level 2, ranges of one date `[1908..1909]` are read, because OpenHistoricalMap has them.
//! Invariant: a date's earliest day never comes after its latest.

use crate::error::{Error, Result};
use crate::year::{Span, Year};
use std::str::FromStr;

/// A day of the proleptic Gregorian calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day {
    /// Astronomical year.
    pub year: i32,
    /// Month, 1 to 12.
    pub month: u8,
    /// Day of the month, 1 to 31.
    pub day: u8,
}

impl Day {
    /// The first day of `year`.
    pub fn first_of(year: i32) -> Day {
        Day { year, month: 1, day: 1 }
    }

    /// The last day of `year`.
    pub fn last_of(year: i32) -> Day {
        Day { year, month: 12, day: 31 }
    }

    /// The day, if the calendar has it.
    pub fn new(year: i32, month: u8, day: u8) -> Option<Day> {
        (day >= 1 && day <= days_in(year, month)?).then_some(Day { year, month, day })
    }
}

/// Days in a month; `None` where there is no such month.
fn days_in(year: i32, month: u8) -> Option<u8> {
    let is_leap = year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0);
    Some(match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        _ => return None,
    })
}

/// The years in whose last night something stood that lasted from `first` to `last`, both included: it holds in a year
/// when it holds on 31 December. Of two that follow each other by days, never both hold in one year. `None` when it stood on
/// no 31 December.
///
/// ```
/// use histmap::edtf::{Day, years_held};
/// let span = years_held(Day::new(1918, 5, 28).unwrap(), Day::new(1920, 4, 27).unwrap()).unwrap();
/// assert_eq!(span.to_string(), "1918–1919 CE");
/// ```
pub fn years_held(first: Day, last: Day) -> Option<Span> {
    let last_year = if last >= Day::last_of(last.year) { last.year } else { last.year.saturating_sub(1) };
    Span::inclusive(Year(first.year), Year(last_year)).ok()
}

/// A date: the days that it may mean, and what its author says of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Date {
    /// The first day that it may mean; `None` when open.
    pub earliest: Option<Day>,
    /// The last day that it may mean; `None` when open.
    pub latest: Option<Day>,
    /// `?`: the source is doubtful.
    pub is_uncertain: bool,
    /// `~`: an estimate.
    pub is_approximate: bool,
}

/// One end of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// A date.
    Date(Date),
    /// `..`: without end.
    Open,
    /// Empty: there is one, not known.
    Unknown,
}

/// What an EDTF text says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edtf {
    /// One date.
    Date(Date),
    /// From one to another.
    Interval(Bound, Bound),
}

impl Edtf {
    /// When something began (or ended) that is dated so: for an interval, some time in it.
    pub fn as_date(self) -> Date {
        match self {
            Edtf::Date(date) => date,
            Edtf::Interval(start, end) => {
                let of = |b: Bound| if let Bound::Date(d) = b { Some(d) } else { None };
                let (a, b) = (of(start), of(end));
                let any = |f: fn(&Date) -> bool| [a, b].iter().flatten().any(f);
                Date {
                    earliest: a.and_then(|d| d.earliest),
                    latest: b.and_then(|d| d.latest),
                    is_uncertain: any(|d| d.is_uncertain),
                    is_approximate: any(|d| d.is_approximate),
                }
            }
        }
    }
}

/// Years from one to another in EDTF, astronomical; `None` is open, either way.
///
/// ```
/// use histmap::edtf::years_text;
/// assert_eq!(years_text(Some(-79), Some(1204)), "-0079/1204");
/// assert_eq!(years_text(Some(-12000), Some(-12000)), "Y-12000");
/// assert_eq!(years_text(None, Some(3)), "../0003");
/// ```
pub fn years_text(earliest: Option<i32>, latest: Option<i32>) -> String {
    let year = |y: i32| match y {
        -9999..=-1 => format!("-{:04}", -y),
        0..=9999 => format!("{y:04}"),
        _ => format!("Y{y}"),
    };
    match (earliest, latest) {
        (Some(a), Some(b)) if a == b => year(a),
        (a, b) => format!("{}/{}", a.map_or("..".to_string(), year), b.map_or("..".to_string(), year)),
    }
}

/// Greatest year, either side, that is read: beyond it are only notes that something is without end.
const MOST: i64 = 100_000_000;

/// Reads EDTF of level 1.
///
/// # Errors
/// [`Error::Argument`] with the forms that are understood.
impl FromStr for Edtf {
    type Err = Error;

    fn from_str(text: &str) -> Result<Edtf> {
        let fail = || {
            let shown: String = text.trim().chars().take(40).collect();
            Error::argument(
                "date",
                format!("'{shown}' is no date"),
                "write 1184, -0300 (301 BCE), 1184-05-17, 13XX, 1184~, 1184?, Y-12000, 1184/1213, or 1184/..",
            )
        };
        read(text.trim()).ok_or_else(fail)
    }
}

fn read(text: &str) -> Option<Edtf> {
    if let Some(range) = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
        return match range.split_once("..") {
            Some((a, b)) if a.is_empty() != b.is_empty() || !a.is_empty() => {
                let (a, b) = (bound_of_range(a)?, bound_of_range(b)?);
                is_in_order(a, b).then_some(Edtf::Date(Edtf::Interval(a, b).as_date()))
            }
            Some(_) => None,
            None => date(range).map(Edtf::Date),
        };
    }
    match text.split_once('/') {
        None => date(text).map(Edtf::Date),
        Some((a, b)) => {
            let (a, b) = (bound(a)?, bound(b)?);
            is_in_order(a, b).then_some(Edtf::Interval(a, b))
        }
    }
}

fn bound(text: &str) -> Option<Bound> {
    match text {
        "" => Some(Bound::Unknown),
        ".." => Some(Bound::Open),
        _ => date(text).map(Bound::Date),
    }
}

fn bound_of_range(text: &str) -> Option<Bound> {
    if text.is_empty() { Some(Bound::Open) } else { date(text).map(Bound::Date) }
}

fn is_in_order(a: Bound, b: Bound) -> bool {
    match (a, b) {
        (Bound::Date(a), Bound::Date(b)) => a.earliest <= b.latest,
        _ => true,
    }
}

fn date(text: &str) -> Option<Date> {
    let (text, is_uncertain, is_approximate) = match text.as_bytes().last()? {
        b'?' => (&text[..text.len() - 1], true, false),
        b'~' => (&text[..text.len() - 1], false, true),
        b'%' => (&text[..text.len() - 1], true, true),
        _ => (text, false, false),
    };
    let (earliest, latest) = days(text)?;
    Some(Date { earliest: Some(earliest), latest: Some(latest), is_uncertain, is_approximate })
}

/// The first and the last day that a date without qualifier may mean.
fn days(text: &str) -> Option<(Day, Day)> {
    if let Some(long) = text.strip_prefix('Y') {
        let digits = long.strip_prefix('-').unwrap_or(long);
        if digits.len() < 5 || !digits.bytes().all(|b| b.is_ascii_digit()) || digits.starts_with('0') {
            return None;
        }
        let year: i64 = long.parse().ok()?;
        let year = i32::try_from(year).ok().filter(|y| i64::from(*y).abs() <= MOST)?;
        return Some((Day::first_of(year), Day::last_of(year)));
    }
    let (calendar, time) = text.split_once('T').map_or((text, None), |(c, t)| (c, Some(t)));
    let (unsigned, is_negative) = calendar.strip_prefix('-').map_or((calendar, false), |u| (u, true));
    let parts: Vec<&str> = unsigned.split('-').collect();
    if time.is_some_and(|t| parts.len() != 3 || !is_time(t)) {
        return None;
    }
    let (low, high) = year_digits(parts[0], is_negative)?;
    let whole = (Day::first_of(low), Day::last_of(high));
    let two = |s: &str| (s.len() == 2 && s.bytes().all(|b| b.is_ascii_digit())).then(|| s.parse::<u8>().ok()).flatten();
    match parts[1..] {
        [] => Some(whole),
        // Finer parts need a known year; XX says only that there is one.
        ["XX"] | ["XX", "XX"] => Some(whole),
        [month] if low == high => match two(month)? {
            21..=24 => Some(whole),
            month => Some((Day::new(low, month, 1)?, Day::new(low, month, days_in(low, month)?)?)),
        },
        [month, "XX"] if low == high => {
            let month = two(month)?;
            Some((Day::new(low, month, 1)?, Day::new(low, month, days_in(low, month)?)?))
        }
        [month, day] if low == high => {
            let day = Day::new(low, two(month)?, two(day)?)?;
            Some((day, day))
        }
        _ => None,
    }
}

/// Four digits, of which those at the right may be X: the least and the greatest year.
fn year_digits(text: &str, is_negative: bool) -> Option<(i32, i32)> {
    let known = text.trim_end_matches('X');
    let is_sound = text.len() == 4 && !known.is_empty() && known.bytes().all(|b| b.is_ascii_digit());
    if !is_sound || (is_negative && text == "0000") {
        return None;
    }
    let filled = |digit: &str| text.replace('X', digit).parse::<i32>().ok();
    let (low, high) = (filled("0")?, filled("9")?);
    Some(if is_negative { (-high, -low) } else { (low, high) })
}

/// A time of day as ISO 8601 writes it: digits, colons and a zone.
fn is_time(text: &str) -> bool {
    text.len() >= 2 && text.bytes().all(|b| b.is_ascii_digit() || b":.Z+-".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn day(text: &str) -> Day {
        let (year, rest) = text.rsplit_once('-').and_then(|(a, d)| Some((a.rsplit_once('-')?, d))).unwrap();
        Day::new(year.0.parse().unwrap(), year.1.parse().unwrap(), rest.parse().unwrap()).unwrap()
    }

    fn as_date(text: &str) -> Date {
        text.parse::<Edtf>().unwrap_or_else(|e| panic!("{e}")).as_date()
    }

    #[test]
    fn dates_are_the_days_that_they_may_mean() {
        for (text, earliest, latest) in [
            ("1984", "1984-1-1", "1984-12-31"),
            ("0000", "0-1-1", "0-12-31"),
            ("-0300", "-300-1-1", "-300-12-31"),
            ("1984-02", "1984-2-1", "1984-2-29"),
            ("1900-02", "1900-2-1", "1900-2-28"),
            ("1984-05-17", "1984-5-17", "1984-5-17"),
            ("2011-10-04T05:00", "2011-10-4", "2011-10-4"),
            ("198X", "1980-1-1", "1989-12-31"),
            ("13XX", "1300-1-1", "1399-12-31"),
            ("1XXX", "1000-1-1", "1999-12-31"),
            ("-01XX", "-199-1-1", "-100-12-31"),
            ("1984-XX", "1984-1-1", "1984-12-31"),
            ("1984-04-XX", "1984-4-1", "1984-4-30"),
            ("1984-XX-XX", "1984-1-1", "1984-12-31"),
            ("1940-24", "1940-1-1", "1940-12-31"),
            ("Y-12000", "-12000-1-1", "-12000-12-31"),
            ("Y170000", "170000-1-1", "170000-12-31"),
            ("[1908..1909]", "1908-1-1", "1909-12-31"),
            ("1908/1909-03", "1908-1-1", "1909-3-31"),
        ] {
            let d = as_date(text);
            assert_eq!((d.earliest, d.latest), (Some(day(earliest)), Some(day(latest))), "{text}");
            assert!(!d.is_uncertain && !d.is_approximate);
        }
    }

    #[test]
    fn qualifiers_say_what_is_doubted() {
        for (text, flags) in [
            ("1984?", (true, false)),
            ("1984-06~", (false, true)),
            ("-0043-03-15%", (true, true)),
            ("13XX~", (false, true)),
        ] {
            let d = as_date(text);
            assert_eq!((d.is_uncertain, d.is_approximate), flags, "{text}");
        }
        assert!(as_date("1984~/2004?").is_uncertain && as_date("1984~/2004?").is_approximate);
    }

    #[test]
    fn open_and_unknown_ends_are_told_apart() {
        let interval = |t: &str| match t.parse().unwrap() {
            Edtf::Interval(a, b) => (a, b),
            other => panic!("{other:?}"),
        };
        assert_eq!(interval("1985/..").1, Bound::Open);
        assert_eq!(interval("1985/").1, Bound::Unknown);
        assert_eq!(interval("/1985").0, Bound::Unknown);
        assert_eq!(interval("../1985").0, Bound::Open);
        assert_eq!(as_date("[..1935]").earliest, None);
        assert_eq!(as_date("[1935..]").latest, None);
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for text in [
            "",
            "84",
            "19845",
            "-0000",
            "1984-13",
            "1984-02-30",
            "1900-02-29",
            "1984-5",
            "X984",
            "XXXX",
            "19X4",
            "Y1984",
            "Y012000",
            "1984??",
            "1984/1983",
            "1984-25",
            "[..]",
            "c. 1984",
            "1984/1985/1986",
            "198X-05",
            "1984-05-17Tx",
            "?",
            "Y99999999999",
            "1984 ",
            "١٩٨٤",
        ] {
            let read = if text == "1984 " { read(text).map(|_| ()) } else { text.parse::<Edtf>().ok().map(|_| ()) };
            assert!(read.is_none(), "{text}");
        }
    }

    #[test]
    fn a_year_belongs_to_whoever_stands_at_its_end() {
        let held = |a: &str, b: &str| years_held(day(a), day(b)).map(|s| s.to_string());
        assert_eq!(held("1918-5-28", "1920-4-27").unwrap(), "1918–1919 CE");
        assert_eq!(held("1920-4-28", "1991-12-31").unwrap(), "1920–1991 CE");
        assert_eq!(held("1918-5-22", "1918-5-26"), None);
        assert_eq!(held("0-1-1", "0-12-31").unwrap(), "1 BCE");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[-0-9XY/.?~%T\\[\\]:]{0,16}") {
            if let Ok(edtf) = text.parse::<Edtf>() {
                let d = edtf.as_date();
                if let (Some(a), Some(b)) = (d.earliest, d.latest) {
                    prop_assert!(a <= b, "{text}");
                }
            }
        }

        #[test]
        fn ranges_of_years_round_trip(a in proptest::option::of(-20000i32..20000), b in proptest::option::of(-20000i32..20000)) {
            let (a, b) = if a.zip(b).is_some_and(|(a, b)| a > b) { (b, a) } else { (a, b) };
            let d = as_date(&years_text(a, b));
            prop_assert_eq!((d.earliest, d.latest), (a.map(Day::first_of), b.map(Day::last_of)));
        }

        #[test]
        fn years_round_trip(year in -9999i32..=9999) {
            let text = if year < 0 { format!("-{:04}", -year) } else { format!("{year:04}") };
            let d = as_date(&text);
            prop_assert_eq!((d.earliest, d.latest), (Some(Day::first_of(year)), Some(Day::last_of(year))));
        }

        #[test]
        fn what_follows_by_a_day_never_holds_in_the_same_year(
            y in -50i32..50, m in 1u8..=12, d in 1u8..=28, before in 1i32..5, after in 1i32..5,
        ) {
            let end = Day::new(y, m, d).unwrap();
            let next = if d < days_in(y, m).unwrap() {
                Day { day: d + 1, ..end }
            } else if m < 12 { Day { month: m + 1, day: 1, ..end } } else { Day::first_of(y + 1) };
            let first = years_held(Day::first_of(y - before), end);
            let second = years_held(next, Day::last_of(y + after));
            for year in (y - 6..y + 6).map(Year) {
                let held = [first, second].iter().flatten().filter(|s| s.contains(year)).count();
                let is_within = year.0 >= y - before && year.0 <= y + after;
                prop_assert_eq!(held, usize::from(is_within), "{}", year);
            }
        }
    }
}
