//! Who held which lands when: a ledger in TOML that people keep by hand, and the claims that follow from it.
//!
//! A holding gives lands to a polity from a year on, until a later holding gives them to another. So every land has one
//! holder in every year, and neighbours move together, whatever is edited. Where nobody holds a land it is given to
//! `unclaimed`. Disputed land is told apart from it, as claims with a first and a last year.

use super::PackSource;
use super::lands::Lands;
use super::table::{Table, described, line_at};
use crate::borders::problem::{Problem, shown, suggestion};
use crate::borders::{Certainty, Claim, ClaimKind, Doubt, KnownLine, YearRange};
use crate::edtf::{Date, Edtf};
use crate::year::{Span, Year};
use geo::LineString;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use toml::de::{DeTable, DeValue};

/// Holds what nobody holds.
const UNCLAIMED: &str = "unclaimed";
const ROOT_KEYS: [&str; 7] = ["first_year", "last_year", "groups", "polities", "holdings", "claims", "borders"];
const ENTRY_KEYS: [&str; 10] =
    ["name", "name_ru", "name_local", "local_lang", "kind", "parent", "certainty", "source", "note", "colour"];
const HOLDING_KEYS: [&str; 6] = ["from", "to", "polity", "lands", "source", "note"];
const CLAIM_KEYS: [&str; 7] = ["from", "to", "polity", "lands", "certainty", "source", "note"];
const BORDER_KEYS: [&str; 7] = ["from", "to", "between", "around", "certainty", "source", "note"];

/// Where a thing stands.
#[derive(Debug, Clone)]
struct At {
    file: String,
    line: Option<usize>,
}

/// What is said of a polity.
#[derive(Debug, Clone)]
struct Entry {
    name: String,
    name_ru: String,
    name_local: String,
    local_lang: String,
    kind: ClaimKind,
    parent: Option<String>,
    certainty: Certainty,
    sources: Vec<String>,
    note: String,
    colour: Option<[u8; 3]>,
}

#[derive(Debug)]
struct Polity {
    id: String,
    at: At,
    entry: Entry,
    /// What is otherwise for some years.
    during: Vec<(Span, Entry)>,
}

#[derive(Debug)]
struct Holding {
    at: At,
    from: Year,
    /// Where the year is in doubt.
    date: Option<Date>,
    to: Option<Year>,
    /// `None` is unclaimed.
    polity: Option<usize>,
    lands: Vec<usize>,
    sources: Vec<String>,
    note: String,
}

#[derive(Debug)]
struct Dispute {
    at: At,
    span: Span,
    polity: usize,
    lands: Vec<usize>,
    certainty: Option<Certainty>,
    sources: Vec<String>,
    note: String,
}

#[derive(Debug)]
struct Border {
    span: Span,
    arcs: BTreeSet<usize>,
    certainty: Certainty,
}

/// A claim with the file and line that it comes from.
pub(super) struct LedgerClaim {
    pub(super) file: String,
    pub(super) line: Option<usize>,
    pub(super) claim: Claim,
}

/// The claims of the ledger in the pack's `files` over `lands`. `known_sources` are the ids that may be cited.
pub(super) fn read(
    source: &PackSource,
    files: &[String],
    lands: &Lands,
    known_sources: &[&str],
    problems: &mut Vec<Problem>,
) -> Vec<LedgerClaim> {
    let before = problems.len();
    let texts: Vec<(&String, String)> = files
        .iter()
        .filter_map(|file| match source.text(file) {
            Ok(text) => Some((file, text)),
            Err(problem) => {
                problems.push(*problem);
                None
            }
        })
        .collect();
    let mut roots: Vec<(&String, &String, DeTable)> = Vec::new();
    for (file, text) in &texts {
        let (root, errors) = DeTable::parse_recoverable(text);
        for error in &errors {
            let line = error.span().map(|s| line_at(text, s.start));
            let message = error.message().lines().next().unwrap_or("it cannot be read").to_string();
            let expected = "TOML: key = value, texts in double quotes";
            problems.push(Problem::error(file, message, expected).at_line(line));
        }
        if errors.is_empty() {
            roots.push((file, text, root.into_inner()));
        }
    }
    // Without the lands, or with half of the text, every line would seem wrong.
    if problems.len() > before || lands.lands.is_empty() {
        return Vec::new();
    }

    let mut ledger = Ledger { lands, known_sources, ..Ledger::empty(lands) };
    let each = |problems: &mut Vec<Problem>, read: &mut dyn FnMut(&mut Table)| {
        for (file, text, root) in &roots {
            read(&mut Table { file, text, path: "", table: root, line: None, problems });
        }
    };
    each(problems, &mut |root| root.only(&ROOT_KEYS));
    each(problems, &mut |root| ledger.read_years(root));
    each(problems, &mut |root| ledger.read_groups(root));
    each(problems, &mut |root| root.each_table("polities", |t| ledger.read_polity(t)));
    each(problems, &mut |root| root.each_table("holdings", |t| ledger.read_holding(t)));
    each(problems, &mut |root| root.each_table("claims", |t| ledger.read_dispute(t)));
    each(problems, &mut |root| root.each_table("borders", |t| ledger.read_border(t)));
    let Some(span) = ledger.span(files, problems) else { return Vec::new() };
    ledger.check(span, problems);
    if problems[before..].iter().any(Problem::is_error) {
        return Vec::new();
    }
    ledger.claims(span)
}

struct Ledger<'a> {
    lands: &'a Lands,
    known_sources: &'a [&'a str],
    first: Option<Year>,
    last: Option<Year>,
    numbers: HashMap<&'a str, usize>,
    groups: BTreeMap<String, Vec<usize>>,
    polities: Vec<Polity>,
    by_id: HashMap<String, usize>,
    holdings: Vec<Holding>,
    disputes: Vec<Dispute>,
    borders: Vec<Border>,
}

impl<'a> Ledger<'a> {
    fn empty(lands: &'a Lands) -> Ledger<'a> {
        Ledger {
            lands,
            known_sources: &[],
            first: None,
            last: None,
            numbers: lands.lands.iter().enumerate().map(|(k, l)| (l.id.as_str(), k)).collect(),
            groups: BTreeMap::new(),
            polities: Vec::new(),
            by_id: HashMap::new(),
            holdings: Vec::new(),
            disputes: Vec::new(),
            borders: Vec::new(),
        }
    }

    fn read_years(&mut self, root: &mut Table) {
        for (key, into) in [("first_year", &mut self.first), ("last_year", &mut self.last)] {
            if root.has(key) {
                if into.is_some() {
                    root.say(key, "another file has it too", "it once");
                }
                *into = year_at(root, key).map(|(year, _)| year);
            }
        }
    }

    fn span(&self, files: &[String], problems: &mut Vec<Problem>) -> Option<Span> {
        let file = files.first().map_or("", String::as_str);
        for (key, year) in [("first_year", self.first), ("last_year", self.last)] {
            if year.is_none() && !problems.iter().any(|p| p.key == key) {
                let expected = "the first and the last year for which the ledger says who holds each land";
                problems.push(Problem::error(file, "the key is missing", expected).about(key));
            }
        }
        let (first, last) = (self.first?, self.last?);
        let span = Span::inclusive(first, last).ok();
        if span.is_none() {
            let found = format!("{first} comes after last_year {last}");
            problems.push(Problem::error(file, found, "the earlier year first").about("first_year"));
        }
        span
    }

    fn read_groups(&mut self, root: &mut Table) {
        if !root.has("groups") {
            return;
        }
        root.table_at("groups", |groups| {
            let names: Vec<String> = groups.table.keys().map(|k| k.get_ref().to_string()).collect();
            // A group may hold groups that stand before it; TOML tables come in order of name, so try until none is new.
            let mut left: Vec<String> = Vec::new();
            for name in names {
                if self.numbers.contains_key(name.as_str()) {
                    groups.say(&name, "a land has this id", "another name for the group");
                } else if self.groups.contains_key(&name) {
                    groups.say(&name, "another file has this group", "each group once");
                } else {
                    left.push(name);
                }
            }
            loop {
                let count = left.len();
                left.retain(|name| {
                    let members = match groups.table.get(name.as_str()).map(|v| v.get_ref()) {
                        Some(DeValue::Array(a)) => a.iter().map(|v| v.get_ref().as_str()).collect::<Option<Vec<_>>>(),
                        _ => None,
                    };
                    let Some(members) = members else { return true };
                    let found: Option<Vec<Vec<usize>>> = members.iter().map(|m| self.named(m)).collect();
                    let Some(found) = found else { return true };
                    let mut all: Vec<usize> = found.concat();
                    all.sort_unstable();
                    all.dedup();
                    self.groups.insert(name.clone(), all);
                    false
                });
                if left.is_empty() || left.len() == count {
                    break;
                }
            }
            for name in left {
                // Says what cannot be resolved.
                let found = self.lands_at(groups, &name);
                self.groups.insert(name, found);
            }
        });
    }

    /// The lands of a land's or group's name.
    fn named(&self, name: &str) -> Option<Vec<usize>> {
        self.numbers.get(name).map(|&n| vec![n]).or_else(|| self.groups.get(name).cloned())
    }

    /// The lands and groups named at `key`, in order and once each; unknown ones are said.
    fn lands_at(&self, table: &mut Table, key: &str) -> Vec<usize> {
        let names = table.texts_at(key, true, "ids of lands or groups in double quotes: [\"a\", \"b\"]");
        self.resolve(table, key, &names)
    }

    fn resolve(&self, table: &mut Table, key: &str, names: &[String]) -> Vec<usize> {
        let mut all = Vec::new();
        for name in names {
            match self.named(name) {
                Some(found) => all.extend(found),
                None => {
                    let near = self.lands.near(name);
                    let near =
                        if near.is_empty() { suggestion(name, self.groups.keys().map(String::as_str)) } else { near };
                    let expected = if near.is_empty() { "the id of a land or a group".to_string() } else { near };
                    table.say(key, format!("there is no land {}", shown(name)), &expected);
                }
            }
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    fn sources_at(&self, table: &mut Table, is_required: bool) -> Vec<String> {
        let key = "source";
        let sources = table.texts_at(key, is_required, "an array of source ids, at least one");
        for source in sources.iter().filter(|s| !self.known_sources.contains(&s.as_str())) {
            let near = suggestion(source, self.known_sources.iter().copied());
            let expected = if near.is_empty() { "an id of [[sources]] in region.toml".to_string() } else { near };
            table.say(key, format!("unknown source {}", shown(source)), &expected);
        }
        sources
    }

    fn certainty_at(table: &mut Table) -> Option<Certainty> {
        table.word_at("certainty", &Certainty::ALL.map(Certainty::as_str)).and_then(|w| Certainty::named(&w))
    }

    /// What `table` says of a polity; what it does not say is as in `base`.
    fn entry_at(&self, table: &mut Table, base: Option<&Entry>) -> Entry {
        let mut text = |key: &str, old: Option<&String>| match old {
            Some(old) if !table.has(key) => old.clone(),
            _ => table.text_at(key, base.is_none() && key == "name"),
        };
        let name = text("name", base.map(|b| &b.name));
        let name_ru = text("name_ru", base.map(|b| &b.name_ru));
        let name_local = text("name_local", base.map(|b| &b.name_local));
        let local_lang = text("local_lang", base.map(|b| &b.local_lang));
        let note = text("note", base.map(|b| &b.note));
        let old_parent = base.and_then(|b| b.parent.clone()).unwrap_or_default();
        let parent = Some(text("parent", Some(&old_parent))).filter(|p| !p.is_empty());
        let kind = table
            .word_at("kind", &ClaimKind::ALL.map(ClaimKind::as_str))
            .and_then(|w| ClaimKind::named(&w))
            .or(base.map(|b| b.kind));
        let certainty = Self::certainty_at(table).or(base.map(|b| b.certainty));
        let sources = match base {
            Some(base) if !table.has("source") => base.sources.clone(),
            _ => self.sources_at(table, true),
        };
        let colour = match table.has("colour") {
            false => base.and_then(|b| b.colour),
            true => {
                let word = table.text_at("colour", true);
                let hex = word.strip_prefix('#').filter(|h| h.len() == 6 && h.bytes().all(|b| b.is_ascii_hexdigit()));
                let number = hex.and_then(|h| u32::from_str_radix(h, 16).ok());
                if number.is_none() && !word.is_empty() {
                    table.say("colour", shown(&word), "a colour as \"#rrggbb\", for example \"#a81a1a\"");
                }
                number.map(|n| [(n >> 16) as u8, (n >> 8) as u8, n as u8])
            }
        };
        for (key, is_missing) in [("kind", kind.is_none()), ("certainty", certainty.is_none())] {
            if is_missing && !table.has(key) {
                table.missing(key, "every polity has it");
            }
        }
        if !name_local.is_empty() && local_lang.is_empty() {
            table.say("local_lang", "name_local has no language", "a BCP 47 tag such as ka, hy, az, ru, la");
        }
        Entry {
            name,
            name_ru,
            name_local,
            local_lang,
            kind: kind.unwrap_or(ClaimKind::Polity),
            parent,
            certainty: certainty.unwrap_or(Certainty::Conjectural),
            sources,
            note,
            colour,
        }
    }

    fn read_polity(&mut self, table: &mut Table) {
        table.only(&[&["id", "during"][..], &ENTRY_KEYS].concat());
        let id = table.text_at("id", true);
        let at = at(table);
        let entry = self.entry_at(table, None);
        let mut during = Vec::new();
        table.each_table("during", |t| {
            t.only(&[&["from", "to"][..], &ENTRY_KEYS].concat());
            let changed = self.entry_at(t, Some(&entry));
            if let Some((span, _)) = span_at(t) {
                if during.iter().any(|(other, _): &(Span, Entry)| other.overlaps(&span)) {
                    t.say("from", format!("{span} overlaps other years of '{id}'"), "years that follow each other");
                }
                during.push((span, changed));
            }
        });
        if id == UNCLAIMED {
            table.say("id", "'unclaimed' stands for no polity", "another id");
        } else if self.by_id.contains_key(&id) {
            table.say("id", format!("{} stands twice", shown(&id)), "each polity once");
        } else if !id.is_empty() {
            self.by_id.insert(id.clone(), self.polities.len());
            self.polities.push(Polity { id, at, entry, during });
        }
    }

    /// The polity named at `polity`; said when there is none.
    fn polity_at(&self, table: &mut Table) -> Option<usize> {
        let id = table.text_at("polity", true);
        let found = self.by_id.get(&id).copied();
        if found.is_none() && !id.is_empty() {
            let known = self.by_id.keys().map(String::as_str).chain([UNCLAIMED]);
            let near = suggestion(&id, known);
            let expected = if near.is_empty() { "an id of [[polities]], or \"unclaimed\"".to_string() } else { near };
            table.say("polity", format!("there is no polity {}", shown(&id)), &expected);
        }
        found
    }

    fn read_holding(&mut self, table: &mut Table) {
        table.only(&HOLDING_KEYS);
        let from = if table.has("from") { year_at(table, "from") } else { table_missing_year(table, "from") };
        let to = if table.has("to") { year_at(table, "to") } else { None };
        let is_unclaimed = table.table.get("polity").and_then(|v| v.get_ref().as_str()) == Some(UNCLAIMED);
        let polity = if is_unclaimed { None } else { self.polity_at(table) };
        let lands = self.lands_at(table, "lands");
        let (sources, note) = (self.sources_at(table, false), table.text_at("note", false));
        let Some((from, date)) = from else { return };
        if let Some((to, _)) = to.filter(|(to, _)| *to < from) {
            table.say("to", format!("{to} comes before from {from}"), "the last year, included");
            return;
        }
        if polity.is_some() || is_unclaimed {
            let to = to.map(|(to, _)| to);
            self.holdings.push(Holding { at: at(table), from, date, to, polity, lands, sources, note });
        }
    }

    fn read_dispute(&mut self, table: &mut Table) {
        table.only(&CLAIM_KEYS);
        let span = span_at(table);
        let polity = self.polity_at(table);
        let lands = self.lands_at(table, "lands");
        let certainty = Self::certainty_at(table);
        let (sources, note) = (self.sources_at(table, false), table.text_at("note", false));
        let kind = polity.map(|p| self.polities[p].entry.kind);
        if let Some(kind) = kind.filter(|k| *k != ClaimKind::Claim) {
            let found = format!("the polity is of the kind {}", kind.as_str());
            table.say("polity", found, "one of the kind claim; what is held is written as [[holdings]]");
        }
        if let (Some((span, _)), Some(polity)) = (span, polity) {
            self.disputes.push(Dispute { at: at(table), span, polity, lands, certainty, sources, note });
        }
    }

    fn read_border(&mut self, table: &mut Table) {
        table.only(&BORDER_KEYS);
        let span = span_at(table);
        let certainty = Self::certainty_at(table);
        if !table.has("certainty") {
            table.missing("certainty", "how well the border is known");
        }
        self.sources_at(table, false);
        table.text_at("note", false);
        let arcs = match (table.has("between"), table.has("around")) {
            (false, true) => {
                let lands = self.lands_at(table, "around");
                Some(self.lands.lines_between(&lands, None))
            }
            (true, false) => self.two_sides(table).map(|[a, b]| self.lands.lines_between(&a, Some(&b))),
            _ => {
                table.say("", "it has not one of 'between' and 'around'", "one of them");
                None
            }
        };
        if let (Some((span, _)), Some(arcs), Some(certainty)) = (span, arcs, certainty) {
            if arcs.is_empty() {
                table.say("between", "the two sides do not touch", "lands with a border in common");
            }
            self.borders.push(Border { span, arcs: arcs.into_iter().collect(), certainty });
        }
    }

    /// The two lists of lands at `between`.
    fn two_sides(&self, table: &mut Table) -> Option<[Vec<usize>; 2]> {
        let (key, expected) = ("between", "two arrays of ids: [[\"a\", \"b\"], [\"c\"]]");
        let lists: Option<Vec<Vec<String>>> = table.table.get(key).and_then(|v| v.get_ref().as_array()).and_then(|a| {
            let texts = |v: &DeValue| -> Option<Vec<String>> {
                v.as_array()?.iter().map(|t| t.get_ref().as_str().map(str::to_string)).collect()
            };
            a.iter().map(|v| texts(v.get_ref())).collect()
        });
        let Some([a, b]) = lists.and_then(|l| <[Vec<String>; 2]>::try_from(l).ok()) else {
            let found = table.table.get(key).map_or(String::new(), |v| described(v.get_ref()));
            table.say(key, found, expected);
            return None;
        };
        Some([self.resolve(table, key, &a), self.resolve(table, key, &b)])
    }

    /// What only the whole ledger shows: parents that exist, one holder for every land in every year of `span`.
    fn check(&self, span: Span, problems: &mut Vec<Problem>) {
        for polity in &self.polities {
            for parent in std::iter::once(&polity.entry).chain(polity.during.iter().map(|(_, e)| e)) {
                let parent = parent.parent.as_deref();
                if let Some(parent) = parent.filter(|p| !self.by_id.contains_key(*p) || *p == polity.id) {
                    let near = suggestion(parent, self.by_id.keys().map(String::as_str));
                    let expected = if near.is_empty() { "the id of another polity".to_string() } else { near };
                    let what = format!("'{}' has no such parent: {}", polity.id, shown(parent));
                    let problem = Problem::error(&polity.at.file, what, expected);
                    problems.push(problem.at_line(polity.at.line).about("polities.parent"));
                }
            }
        }
        for h in &self.holdings {
            if !span.contains(h.from) {
                let problem = Problem::error(&h.at.file, h.from, format!("a year of the ledger, {span}"));
                problems.push(problem.at_line(h.at.line).about("holdings.from"));
            }
        }
        for (number, land) in self.lands.lands.iter().enumerate() {
            let mut of: Vec<&Holding> = self.holdings.iter().filter(|h| h.lands.contains(&number)).collect();
            of.sort_by_key(|h| h.from);
            let mut gap = |years: Span, at: &At| {
                let found = format!("the land '{}' has no holder in {years}", land.id);
                let expected = "a polity or people for every year, or polity = \"unclaimed\"";
                problems.push(Problem::error(&at.file, found, expected).at_line(at.line).about("holdings"));
            };
            let nowhere = At { file: self.holdings.first().map_or(String::new(), |h| h.at.file.clone()), line: None };
            match of.first() {
                None => gap(span, &nowhere),
                Some(first) if first.from > span.start => {
                    gap(Span { start: span.start, end: first.from }, &first.at);
                }
                Some(_) => {}
            }
            for (k, h) in of.iter().enumerate() {
                let next = of.get(k + 1).map_or(span.end, |n| n.from);
                if let Some(to) = h.to.filter(|to| to.next() < next) {
                    gap(Span { start: to.next(), end: next }, &h.at);
                }
            }
            for pair in of.windows(2) {
                let is_late = pair[0].to.is_some_and(|to| to >= pair[1].from);
                if pair[0].from == pair[1].from || is_late {
                    let found = format!("the land '{}' has two holders in {}", land.id, pair[1].from);
                    let other = pair[0].at.line.map_or(String::new(), |l| format!(", line {l}"));
                    let expected = format!("one; the other stands in {}{other}", pair[0].at.file);
                    let problem = Problem::error(&pair[1].at.file, found, expected);
                    problems.push(problem.at_line(pair[1].at.line).about("holdings.lands"));
                }
            }
        }
    }

    /// The claims, in order of polity and time.
    fn claims(&self, span: Span) -> Vec<LedgerClaim> {
        let mut edges: BTreeSet<Year> = [span.start, span.end].into();
        edges.extend(self.holdings.iter().map(|h| h.from));
        let spans = self.polities.iter().flat_map(|p| p.during.iter().map(|(s, _)| *s));
        edges.extend(spans.chain(self.borders.iter().map(|b| b.span)).flat_map(|s| [s.start, s.end]));
        let edges: Vec<Year> = edges.into_iter().filter(|y| *y >= span.start && *y <= span.end).collect();

        let mut order: Vec<usize> = (0..self.holdings.len()).collect();
        order.sort_by_key(|&h| self.holdings[h].from);
        let mut next = order.into_iter().peekable();
        // By land: the holding in force.
        let mut held: Vec<Option<usize>> = vec![None; self.lands.lands.len()];
        let mut doubts: HashMap<(usize, Year), Date> = HashMap::new();
        let mut runs: Vec<Vec<Run>> = self.polities.iter().map(|_| Vec::new()).collect();
        for years in edges.windows(2) {
            while let Some(h) = next.next_if(|&h| self.holdings[h].from <= years[0]) {
                let holding = &self.holdings[h];
                for &land in &holding.lands {
                    let before = held[land].and_then(|b| self.holdings[b].polity);
                    // Given again to its holder, a land stays as it was given first.
                    if held[land].is_none() || before != holding.polity {
                        held[land] = Some(h);
                        if let Some(date) = holding.date {
                            for polity in [before, holding.polity].into_iter().flatten() {
                                doubts.insert((polity, holding.from), date);
                            }
                        }
                    }
                }
            }
            for (polity, state) in self.states(&held, years[0]) {
                let runs = &mut runs[polity];
                match runs.last_mut() {
                    Some(run) if run.span.end == years[0] && run.state == state => run.span.end = years[1],
                    _ => runs.push(Run { span: Span { start: years[0], end: years[1] }, state }),
                }
            }
        }
        let mut claims: Vec<LedgerClaim> = Vec::new();
        for (polity, runs) in runs.iter().enumerate() {
            let date = |year: Year| doubts.get(&(polity, year));
            claims.extend(runs.iter().map(|run| {
                let at = &self.polities[polity].at;
                let doubt = doubt_of(run.span, date(run.span.start), date(run.span.end));
                LedgerClaim { file: at.file.clone(), line: at.line, claim: self.claim(polity, run, doubt) }
            }));
        }
        claims.extend(self.disputes.iter().map(|d| {
            let mut entry = self.entry(d.polity, d.span.start).clone();
            entry.certainty = d.certainty.unwrap_or(entry.certainty);
            add(&mut entry.sources, &d.sources);
            let state = State { lands: d.lands.clone(), during: None, holdings: Vec::new(), borders: Vec::new() };
            let mut claim = self.claim(d.polity, &Run { span: d.span, state }, None);
            claim.certainty = entry.certainty;
            claim.sources = entry.sources;
            claim.note = joined([claim.note.as_str(), d.note.as_str()]);
            LedgerClaim { file: d.at.file.clone(), line: d.at.line, claim }
        }));
        claims
    }

    fn entry(&self, polity: usize, year: Year) -> &Entry {
        let p = &self.polities[polity];
        p.during.iter().find(|(s, _)| s.contains(year)).map_or(&p.entry, |(_, e)| e)
    }

    /// What each polity has from `year` on, where `held` gives the holding of each land.
    fn states(&self, held: &[Option<usize>], year: Year) -> Vec<(usize, State)> {
        let mut lands: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); self.polities.len()];
        for (land, holding) in held.iter().enumerate() {
            let polity = holding.and_then(|h| self.holdings[h].polity);
            // A part lies inside its parent; a composite is what its members are.
            let mut above = polity;
            let mut passed = Vec::new();
            while let Some(p) = above.filter(|p| !passed.contains(p)) {
                lands[p].insert(land);
                passed.push(p);
                let entry = self.entry(p, year);
                let parent = entry.parent.as_ref().and_then(|id| self.by_id.get(id).copied());
                above = parent
                    .filter(|&q| entry.kind == ClaimKind::Part || self.entry(q, year).kind == ClaimKind::Composite);
            }
        }
        let span_borders: Vec<usize> =
            (0..self.borders.len()).filter(|&b| self.borders[b].span.contains(year)).collect();
        (0..self.polities.len())
            .filter(|&p| !lands[p].is_empty())
            .map(|p| {
                let own: Vec<usize> = lands[p].iter().copied().collect();
                let mut holdings: Vec<usize> =
                    own.iter().filter_map(|&l| held[l]).filter(|&h| self.holdings[h].polity == Some(p)).collect();
                holdings.sort_unstable();
                holdings.dedup();
                // Of holdings only what they add counts: without it two of them are the same.
                holdings.retain(|&h| !self.holdings[h].sources.is_empty() || !self.holdings[h].note.is_empty());
                let borders = if span_borders.is_empty() {
                    Vec::new()
                } else {
                    let around = self.lands.lines_between(&own, None);
                    let is_around = |b: &&usize| around.iter().any(|a| self.borders[**b].arcs.contains(a));
                    span_borders.iter().filter(is_around).copied().collect()
                };
                let during = self.polities[p].during.iter().position(|(s, _)| s.contains(year));
                (p, State { lands: own, during, holdings, borders })
            })
            .collect()
    }

    fn claim(&self, polity: usize, run: &Run, doubt: Option<Doubt>) -> Claim {
        let entry = self.entry(polity, run.span.start);
        let mut sources = entry.sources.clone();
        let mut order = run.state.holdings.clone();
        order.sort_by_key(|&h| self.holdings[h].from);
        order.iter().for_each(|&h| add(&mut sources, &self.holdings[h].sources));
        let notes = order.iter().map(|&h| self.holdings[h].note.as_str());
        let around: BTreeSet<usize> = if run.state.borders.is_empty() {
            BTreeSet::new()
        } else {
            self.lands.lines_between(&run.state.lands, None).into_iter().collect()
        };
        let known_lines = run.state.borders.iter().flat_map(|&b| {
            let border = &self.borders[b];
            let arcs = border.arcs.intersection(&around);
            arcs.map(|&a| KnownLine { line: LineString::new(self.lands.arc(a).to_vec()), certainty: border.certainty })
        });
        Claim {
            id: self.polities[polity].id.clone(),
            name: entry.name.clone(),
            name_ru: entry.name_ru.clone(),
            name_local: entry.name_local.clone(),
            local_lang: entry.local_lang.clone(),
            span: run.span,
            doubt,
            kind: entry.kind,
            parent: entry.parent.clone(),
            certainty: entry.certainty,
            sources,
            colour: entry.colour,
            note: joined(std::iter::once(entry.note.as_str()).chain(notes)),
            known_lines: known_lines.collect(),
            area: self.lands.union(&run.state.lands),
        }
    }
}

/// What a polity has, as far as it makes a claim of its own.
#[derive(Debug, Clone, PartialEq)]
struct State {
    lands: Vec<usize>,
    /// The number of the years for which something else is said of it.
    during: Option<usize>,
    /// Holdings that say something.
    holdings: Vec<usize>,
    /// Borders that concern its outline.
    borders: Vec<usize>,
}

/// Years without a change.
struct Run {
    span: Span,
    state: State,
}

/// Texts that say something, one after the other.
fn joined<'t>(texts: impl IntoIterator<Item = &'t str>) -> String {
    texts.into_iter().filter(|t| !t.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Appends what is new.
fn add(to: &mut Vec<String>, more: &[String]) {
    for m in more {
        if !to.contains(m) {
            to.push(m.clone());
        }
    }
}

/// The doubt about a span whose first year, or the year after its last, is dated so.
fn doubt_of(span: Span, start: Option<&Date>, end: Option<&Date>) -> Option<Doubt> {
    let range = |date: Option<&Date>, year: Year, less: i32| match date {
        None => YearRange { earliest: year, latest: year },
        Some(d) => YearRange {
            earliest: d.earliest.map_or(year, |day| Year(day.year - less)),
            latest: d.latest.map_or(year, |day| Year(day.year - less)),
        },
    };
    let any = |f: fn(&Date) -> bool| [start, end].into_iter().flatten().any(f);
    let doubt = Doubt {
        first: range(start, span.start, 0),
        last: range(end, span.last(), 1),
        is_approximate: any(|d| d.is_approximate),
        is_uncertain: any(|d| d.is_uncertain),
    };
    doubt.is_any().then_some(doubt)
}

fn at(table: &Table) -> At {
    At { file: table.file.to_string(), line: table.line }
}

fn table_missing_year(table: &mut Table, key: &str) -> Option<(Year, Option<Date>)> {
    table.missing(key, "a year, such as 1184, -80 (80 BCE) or \"1184~\"");
    None
}

/// The span from `from` to `to`, both included, with the dates where they are in doubt.
fn span_at(table: &mut Table) -> Option<(Span, [Option<Date>; 2])> {
    let mut year = |key: &str| if table.has(key) { year_at(table, key) } else { table_missing_year(table, key) };
    let (from, to) = (year("from"), year("to"));
    let ((from, d0), (to, d1)) = (from?, to?);
    let span = Span::inclusive(from, to).ok();
    if span.is_none() {
        table.say("to", format!("{to} comes before from {from}"), "the last year, included");
    }
    Some((span?, [d0, d1]))
}

/// The year at `key`, and the date where it is in doubt. A number is a year as historians count them, -80 is 80 BCE. A text
/// is a date of EDTF, of which the first year that it may mean counts; years before Christ are not written so, because there
/// EDTF counts otherwise.
fn year_at(table: &mut Table, key: &str) -> Option<(Year, Option<Date>)> {
    let (number, text) = match table.table.get(key)?.get_ref() {
        DeValue::Integer(i) => (i64::from_str_radix(&i.as_str().replace('_', ""), i.radix()).ok(), None),
        DeValue::String(s) => (None, Some(s.trim().to_string())),
        other => {
            let found = described(other);
            table.say(key, found, "a year, such as 1184, -80 (80 BCE) or \"1184~\"");
            return None;
        }
    };
    if let Some(text) = text {
        let date = text.parse::<Edtf>().map(Edtf::as_date);
        return match date.as_ref().map(|d| (d.earliest, d.latest)) {
            Ok((Some(first), Some(last))) if first.year >= 1 => {
                let is_plain =
                    first.year == last.year && date.as_ref().is_ok_and(|d| !d.is_approximate && !d.is_uncertain);
                Some((Year(first.year), date.ok().filter(|_| !is_plain)))
            }
            Ok((Some(_), Some(_))) => {
                table.say(key, shown(&text), "a number for a year before Christ, such as -80 for 80 BCE");
                None
            }
            _ => {
                table.say(key, shown(&text), "a date such as \"1184~\", \"1184?\", \"13XX\" or \"1184/1190\"");
                None
            }
        };
    }
    let number = number.and_then(|n| i32::try_from(n).ok()).unwrap_or(i32::MAX);
    match Year::from_historian(number) {
        Ok(year) => Some((year, None)),
        Err(crate::Error::Argument { found, remedy, .. }) => {
            table.say(key, found, &remedy);
            None
        }
        Err(other) => {
            table.say(key, other.to_string(), "a year");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use geo::Area;
    use proptest::prelude::*;

    /// Three unit squares in a row from 40 E 40 N: west, middle, east.
    const LANDS: &str = r#"{"type": "Topology", "objects": {"lands": {"type": "GeometryCollection", "geometries": [
{"type": "Polygon", "id": "west", "arcs": [[0, 1]]},
{"type": "Polygon", "id": "middle", "arcs": [[2, 3, 4, -2]]},
{"type": "Polygon", "id": "east", "arcs": [[5, -4]]}]}},
"arcs": [
[[41, 41], [40, 41], [40, 40], [41, 40]],
[[41, 40], [41, 41]],
[[41, 40], [42, 40]],
[[42, 40], [42, 41]],
[[42, 41], [41, 41]],
[[42, 40], [43, 40], [43, 41], [42, 41]]]}"#;

    const HEAD: &str = r##"first_year = -10
last_year = 300

[groups]
all = ["west", "inner"]
inner = ["middle", "east"]

[[polities]]
id = "a"
name = "A"
kind = "polity"
certainty = "approximate"
source = ["atlas"]
colour = "#cc7f78"

[[polities]]
id = "b"
name = "B"
kind = "people"
certainty = "conjectural"
source = ["atlas"]

[[polities]]
id = "wish"
name = "Wish"
kind = "claim"
parent = "a"
certainty = "conjectural"
source = ["atlas"]
"##;

    const HOLDINGS: &str = r#"
[[holdings]]
from = -10
polity = "a"
lands = ["all"]

[[holdings]]
from = 100
polity = "b"
lands = ["middle"]
note = "War."

[[holdings]]
from = 200
polity = "unclaimed"
lands = ["east"]
"#;

    fn read_text(text: &str) -> (Vec<Claim>, Vec<String>) {
        let source = PackSource::memory([
            ("lands.topojson", LANDS.as_bytes().to_vec()),
            ("ledger.toml", text.as_bytes().to_vec()),
        ]);
        let mut problems = Vec::new();
        let lands = super::super::lands::read(&source, "lands.topojson", &mut problems);
        assert!(problems.is_empty(), "{problems:?}");
        let claims = read(&source, &["ledger.toml".to_string()], &lands, &["atlas", "other"], &mut problems);
        (claims.into_iter().map(|c| c.claim).collect(), problems.iter().map(Problem::to_string).collect())
    }

    fn claims(more: &str) -> Vec<Claim> {
        let (claims, said) = read_text(&format!("{HEAD}{HOLDINGS}{more}"));
        assert_eq!(said, Vec::<String>::new());
        claims
    }

    fn shown(claims: &[Claim]) -> Vec<String> {
        claims.iter().map(|c| format!("{} {} {:.0}", c.id, c.span, c.area.unsigned_area())).collect()
    }

    #[test]
    fn a_holding_lasts_until_another_names_the_land() {
        let all = claims("");
        assert_eq!(shown(&all), ["a 10 BCE – 99 CE 3", "a 100–199 CE 2", "a 200–300 CE 1", "b 100–300 CE 1"]);
        assert_eq!((all[0].colour, all[3].note.as_str()), (Some([0xcc, 0x7f, 0x78]), "War."));
        assert_eq!(all[1].area.0.len(), 2);
    }

    #[test]
    fn what_is_given_again_makes_no_new_claim() {
        let again = "[[holdings]]\nfrom = 150\npolity = \"b\"\nlands = [\"middle\"]\nnote = \"Peace.\"\n";
        let all = claims(again);
        assert_eq!(shown(&all)[3], "b 100–300 CE 1");
        assert_eq!(all[3].note, "War.");
    }

    #[test]
    fn years_change_what_is_said_of_a_polity() {
        let during = "[[polities.during]]\nfrom = 120\nto = 130\nname = \"Great Wish\"\nparent = \"b\"\n";
        let (all, said) = read_text(&format!(
            "{HEAD}{during}{HOLDINGS}[[claims]]\nfrom = 125\nto = 140\npolity = \"wish\"\nlands = [\"middle\"]\nnote = \"Told.\"\n"
        ));
        assert_eq!(said, Vec::<String>::new());
        let wish = all.iter().find(|c| c.id == "wish").unwrap();
        assert_eq!(
            (wish.name.as_str(), wish.parent.as_deref(), wish.note.as_str()),
            ("Great Wish", Some("b"), "Told.")
        );
        assert_eq!(wish.span.to_string(), "125–140 CE");
    }

    #[test]
    fn a_part_lies_in_its_parent_and_a_composite_is_its_members() {
        let head = HEAD
            .replace(
                "id = \"b\"\nname = \"B\"\nkind = \"people\"",
                "id = \"b\"\nname = \"B\"\nparent = \"a\"\nkind = \"part\"",
            )
            .replace("id = \"a\"\n", "id = \"a\"\nparent = \"union\"\n");
        let union = "[[polities]]\nid = \"union\"\nname = \"U\"\nkind = \"composite\"\ncertainty = \"treaty\"\nsource = [\"atlas\"]\n";
        let (all, said) = read_text(&format!("{head}{union}{HOLDINGS}"));
        assert_eq!(said, Vec::<String>::new());
        assert_eq!(
            shown(&all),
            [
                "a 10 BCE – 199 CE 3",
                "a 200–300 CE 2",
                "b 100–300 CE 1",
                "union 10 BCE – 199 CE 3",
                "union 200–300 CE 2"
            ]
        );
    }

    #[test]
    fn doubtful_years_are_kept() {
        let (all, said) = read_text(&format!(
            "{HEAD}{}",
            HOLDINGS.replace("from = 100", "from = \"0100/0104\"").replace("from = 200", "from = \"0200~\"")
        ));
        assert_eq!(said, Vec::<String>::new());
        assert_eq!(shown(&all)[..2], ["a 10 BCE – 99 CE 3", "a 100–199 CE 2"]);
        assert_eq!(all[0].doubt.unwrap().to_string(), "ends 99–103 CE");
        assert_eq!(all[1].doubt.unwrap().to_string(), "begins 100–104 CE, dates approximate");
        assert_eq!(all[3].doubt.unwrap().to_string(), "begins 100–104 CE");
    }

    #[test]
    fn a_known_border_is_that_between_two_lands_in_its_years() {
        let border = "[[borders]]\nfrom = 150\nto = 160\nbetween = [[\"west\"], [\"inner\"]]\ncertainty = \"treaty\"\n";
        let all = claims(border);
        let known: Vec<String> = all
            .iter()
            .filter(|c| !c.known_lines.is_empty())
            .map(|c| format!("{} {} {}", c.id, c.span, c.known_lines[0].line.0.len()))
            .collect();
        assert_eq!(known, ["a 150–160 CE 2", "b 150–160 CE 2"]);
        // Before 100 the border lies inside A.
        let early = border.replace("150", "50").replace("160", "60");
        assert!(claims(&early).iter().all(|c| c.known_lines.is_empty()));
    }

    #[test]
    fn every_problem_is_told_with_its_line() {
        let (none, said) = read_text(&format!(
            "{HEAD}{}{}",
            HOLDINGS
                .replace("lands = [\"middle\"]", "lands = [\"midle\"]")
                .replace("polity = \"unclaimed\"", "polity = \"c\"")
                .replace("from = 200", "form = 200"),
            "[[claims]]\nfrom = 5\nto = 4\npolity = \"a\"\nlands = [\"west\"]\nsource = [\"othr\"]\n\
             [[borders]]\nfrom = 1\nto = 2\nbetween = [[\"west\"], [\"east\"]]\ncertainty = \"sure\"\n"
        ));
        assert!(none.is_empty());
        let expected = [
            "ledger.toml, line 39, holdings.lands: there is no land 'midle'; did you mean 'middle'?",
            "ledger.toml, line 43, holdings.form: the key is not known; did you mean 'from'?",
            "ledger.toml, line 42, holdings.from: the key is missing",
            "ledger.toml, line 44, holdings.polity: there is no polity 'c'",
            "ledger.toml, line 48, claims.to: 4 CE comes before from 5 CE",
            "ledger.toml, line 51, claims.source: unknown source 'othr'; did you mean 'other'?",
            "ledger.toml, line 49, claims.polity: the polity is of the kind polity; one of the kind claim",
            "ledger.toml, line 56, borders.certainty: 'sure'; one of conjectural, approximate, treaty, surveyed",
        ];
        assert_eq!(said.len(), expected.len(), "{said:#?}");
        for (line, part) in said.iter().zip(expected) {
            assert!(line.contains(part), "{part}\nis not in\n{line}");
        }
    }

    #[test]
    fn gaps_and_two_holders_are_told() {
        let said = |text: String| read_text(&text).1.join("\n");
        let gap = said(format!("{HEAD}{}", HOLDINGS.replace("from = -10", "from = 10")));
        assert!(
            gap.contains("line 31, holdings: the land 'west' has no holder in 10 BCE – 9 CE; a polity or people"),
            "{gap}"
        );
        let none = said(HEAD.to_string());
        assert!(none.contains("the land 'east' has no holder in 10 BCE – 300 CE"), "{none}");
        let ended = said(format!("{HEAD}{}", HOLDINGS.replace("from = 100", "from = 100\nto = 110")));
        assert!(ended.contains("line 36, holdings: the land 'middle' has no holder in 111–300 CE"), "{ended}");
        let twice =
            said(format!("{HEAD}{}", HOLDINGS.replace("from = 200", "from = 100").replace("\"east\"", "\"inner\"")));
        assert!(
            twice
                .contains("the land 'middle' has two holders in 100 CE; one; the other stands in ledger.toml, line 36"),
            "{twice}"
        );
        let parent = said(format!("{}{HOLDINGS}", HEAD.replace("parent = \"a\"", "parent = \"x\"")));
        assert!(parent.contains("'wish' has no such parent: 'x'"), "{parent}");
        let outside = said(format!("{HEAD}{}", HOLDINGS.replace("from = 200", "from = 400")));
        assert!(outside.contains("holdings.from: 400 CE; a year of the ledger, 10 BCE – 300 CE"), "{outside}");
        let bce = said(format!("{HEAD}{}", HOLDINGS.replace("from = -10", "from = \"-0009\"")));
        assert!(bce.contains("'-0009'; a number for a year before Christ"), "{bce}");
        let zero = said(format!("{HEAD}{}", HOLDINGS.replace("from = -10", "from = 0")));
        assert!(zero.contains("'0' is no year of history"), "{zero}");
        let circle = said(format!("{}{HOLDINGS}", HEAD.replace("[\"middle\", \"east\"]", "[\"middle\", \"all\"]")));
        assert!(circle.contains("there is no land 'all'") || circle.contains("there is no land 'inner'"), "{circle}");
        assert!(said("first_year = [".to_string()).contains("ledger.toml, line 1"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn no_bytes_make_it_panic(
            edits in proptest::collection::vec((any::<usize>(), 0u8..3, any::<u8>()), 1..6),
            is_ledger in any::<bool>(),
        ) {
            let texts = [LANDS.to_string(), format!("{HEAD}{HOLDINGS}")];
            let mut bytes = texts[usize::from(is_ledger)].clone().into_bytes();
            for (at, what, byte) in edits {
                let at = at % bytes.len();
                let symbol = b"0\"[]{},:-eEn.#\n=19~"[usize::from(byte) % 19];
                match what {
                    0 => bytes[at] = symbol,
                    1 => bytes.insert(at, symbol),
                    _ => drop(bytes.drain(at..(at + usize::from(byte) % 9).min(bytes.len()))),
                }
            }
            let (lands, ledger) = if is_ledger { (texts[0].clone().into_bytes(), bytes) } else { (bytes, texts[1].clone().into_bytes()) };
            let source = PackSource::memory([("lands.topojson", lands), ("ledger.toml", ledger)]);
            let mut problems = Vec::new();
            let lands = super::super::lands::read(&source, "lands.topojson", &mut problems);
            let claims = read(&source, &["ledger.toml".to_string()], &lands, &["atlas", "other"], &mut problems);
            // Either there are claims that can be drawn, or it is said why not.
            prop_assert!(!claims.is_empty() || !problems.is_empty());
            prop_assert!(claims.iter().all(|c| c.claim.area.iter().all(|p| crate::borders::repair::fault(p).is_none())));
        }
    }
}
