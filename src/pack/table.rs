//! One table of a TOML file being read: values by key, and problems by line.

use crate::borders::problem::{Problem, shown, suggestion};
use toml::de::{DeTable, DeValue};

/// One table of the file, with where it stands.
pub(crate) struct Table<'a> {
    /// The file's name.
    pub(crate) file: &'a str,
    /// All of the file.
    pub(crate) text: &'a str,
    /// Its name, empty for the root.
    pub(crate) path: &'a str,
    pub(crate) table: &'a DeTable<'a>,
    /// Where it begins.
    pub(crate) line: Option<usize>,
    pub(crate) problems: &'a mut Vec<Problem>,
}

impl Table<'_> {
    /// Whether `key` is there.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.table.get(key).is_some()
    }

    /// A problem about `key`, at its line.
    pub(crate) fn say(&mut self, key: &str, found: impl ToString, expected: &str) {
        let line = self.table.get(key).map(|v| line_at(self.text, v.span().start)).or(self.line);
        let name = match (self.path, key) {
            ("", k) => k.to_string(),
            (p, "") => p.to_string(),
            (p, k) => format!("{p}.{k}"),
        };
        self.problems.push(Problem::error(self.file, found, expected).at_line(line).about(&name));
    }

    /// Makes the last problem a warning.
    pub(crate) fn soften(&mut self) {
        if let Some(last) = self.problems.pop() {
            self.problems.push(last.as_warning());
        }
    }

    /// Reports keys that are not `known`.
    pub(crate) fn only(&mut self, known: &[&str]) {
        let unknown: Vec<(String, usize)> = self
            .table
            .iter()
            .filter(|(k, _)| !known.contains(&k.get_ref().as_ref()))
            .map(|(k, _)| (k.get_ref().to_string(), line_at(self.text, k.span().start)))
            .collect();
        for (key, line) in unknown {
            let near = suggestion(&key, known.iter().copied());
            let expected = if near.is_empty() { format!("one of {}", known.join(", ")) } else { near };
            let path = if self.path.is_empty() { key.clone() } else { format!("{}.{key}", self.path) };
            self.problems.push(
                Problem::error(self.file, "the key is not known", expected)
                    .at_line(Some(line))
                    .about(&shown_key(&path)),
            );
        }
    }

    /// Says that `key` is missing.
    pub(crate) fn missing(&mut self, key: &str, expected: &str) {
        self.say(key, "the key is missing", expected);
    }

    /// The text at `key`; empty, and said, when it is missing or of another type.
    pub(crate) fn text_at(&mut self, key: &str, is_required: bool) -> String {
        match self.table.get(key).map(|v| v.get_ref()) {
            None if is_required => self.missing(key, "a text in double quotes"),
            None => {}
            Some(DeValue::String(s)) if is_required && s.trim().is_empty() => self.say(key, "it is empty", "a text"),
            Some(DeValue::String(s)) => return s.trim().to_string(),
            Some(other) => self.say(key, described(other), "a text in double quotes"),
        }
        String::new()
    }

    /// The number at `key`; `None`, and said, when it is missing or of another type.
    pub(crate) fn number_at(&mut self, key: &str) -> Option<f64> {
        match self.table.get(key).map(|v| v.get_ref()) {
            None => self.missing(key, "a number"),
            Some(value) => match number(value).filter(|n| n.is_finite()) {
                Some(n) => return Some(n),
                None => self.say(key, described(value), "a number, without quotes"),
            },
        }
        None
    }

    /// Reads the table at `key`; said when it is missing.
    pub(crate) fn table_at(&mut self, key: &str, read: impl FnOnce(&mut Table)) {
        match self.table.get(key).map(|v| (v.get_ref(), line_at(self.text, v.span().start))) {
            None => self.missing(key, &format!("a table [{key}]")),
            Some((DeValue::Table(table), line)) => {
                read(&mut Table {
                    file: self.file,
                    text: self.text,
                    path: key,
                    table,
                    line: Some(line),
                    problems: self.problems,
                });
            }
            Some((other, _)) => self.say(key, described(other), &format!("a table [{key}]")),
        }
    }

    /// Reads the tables `[[key]]`, one after the other; said when `key` is something else.
    pub(crate) fn each_table(&mut self, key: &str, mut read: impl FnMut(&mut Table)) {
        let expected = format!("tables [[{key}]]");
        let items = match self.table.get(key).map(|v| v.get_ref()) {
            None => return,
            Some(DeValue::Array(items)) => items,
            Some(other) => return self.say(key, described(other), &expected),
        };
        for item in items.iter() {
            let DeValue::Table(table) = item.get_ref() else {
                self.say(key, described(item.get_ref()), &expected);
                continue;
            };
            let line = Some(line_at(self.text, item.span().start));
            read(&mut Table { file: self.file, text: self.text, path: key, table, line, problems: self.problems });
        }
    }

    /// The texts of the array at `key`; none, and said, when it is missing, empty or of another type.
    pub(crate) fn texts_at(&mut self, key: &str, is_required: bool, expected: &str) -> Vec<String> {
        match self.table.get(key).map(|v| v.get_ref()) {
            None if is_required => self.missing(key, expected),
            None => {}
            Some(DeValue::Array(items)) => {
                let texts: Option<Vec<String>> =
                    items.iter().map(|v| v.get_ref().as_str().map(|s| s.trim().to_string())).collect();
                match texts {
                    Some(texts) if !texts.is_empty() => return texts,
                    Some(_) => self.say(key, "the array is empty", expected),
                    None => self.say(key, "not all of it are texts", expected),
                }
            }
            Some(other) => self.say(key, described(other), expected),
        }
        Vec::new()
    }

    /// One of `words` at `key`; `None` when it is missing or, which is said, something else.
    pub(crate) fn word_at(&mut self, key: &str, words: &[&str]) -> Option<String> {
        self.table.get(key)?;
        let word = self.text_at(key, true);
        if word.is_empty() || words.contains(&word.as_str()) {
            return Some(word).filter(|w| !w.is_empty());
        }
        let near = suggestion(&word, words.iter().copied());
        let near = if near.is_empty() { near } else { format!(": {near}") };
        self.say(key, shown(&word), &format!("one of {}{near}", words.join(", ")));
        None
    }
}

/// A key for print, bounded.
pub(crate) fn shown_key(key: &str) -> String {
    shown(key).trim_matches('\'').to_string()
}

/// The value as a number.
pub(crate) fn number(value: &DeValue) -> Option<f64> {
    match value {
        DeValue::Integer(i) => i64::from_str_radix(&i.as_str().replace('_', ""), i.radix()).ok().map(|n| n as f64),
        DeValue::Float(f) => f.as_str().replace('_', "").parse().ok(),
        _ => None,
    }
}

/// The kind of a value, and a short one itself.
pub(crate) fn described(value: &DeValue) -> String {
    match value {
        DeValue::String(s) => format!("the text {}", shown(s)),
        DeValue::Integer(i) => format!("the number {}", i.as_str()),
        DeValue::Float(f) => format!("the number {}", f.as_str()),
        DeValue::Boolean(b) => format!("{b}"),
        DeValue::Datetime(_) => "a date".to_string(),
        DeValue::Array(_) => "an array".to_string(),
        DeValue::Table(_) => "a table".to_string(),
    }
}

/// The line, from 1, of the byte at `offset`.
pub(crate) fn line_at(text: &str, offset: usize) -> usize {
    1 + text.as_bytes().iter().take(offset).filter(|b| **b == b'\n').count()
}
