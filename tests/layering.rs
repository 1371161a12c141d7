//! The rules of `docs/design.md` that a compiler does not check: who may see what, who may print, and that the
//! documentation knows every subcommand.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A source file of the crate with its lines of code.
struct SourceFile {
    /// Path below `src/`, with `/` between folders.
    name: String,
    /// Line number from 1, and text with comments and the contents of texts taken out.
    code: Vec<(usize, String)>,
}

impl SourceFile {
    /// Whether it belongs to `module`: `module.rs`, or a file of the folder `module/`.
    fn is_in(&self, module: &str) -> bool {
        self.name.strip_prefix(module).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(rust_files(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn sources() -> Vec<SourceFile> {
    let src = root().join("src");
    rust_files(&src)
        .into_iter()
        .map(|path| {
            let text = std::fs::read_to_string(&path).unwrap();
            let below = path.strip_prefix(&src).unwrap();
            let name = below.iter().map(|p| p.to_str().unwrap()).collect::<Vec<_>>().join("/");
            SourceFile { name, code: (1..).zip(text.lines().map(code_of)).collect() }
        })
        .collect()
}

/// A line without its comment and without what stands in double quotes. Block comments are not used in this crate.
fn code_of(line: &str) -> String {
    let mut code = String::new();
    let mut is_text = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if is_text => {
                chars.next();
            }
            // '"' is a character, not the beginning of a text.
            '"' if !is_text && code.ends_with('\'') && chars.peek() == Some(&'\'') => code.push('"'),
            '"' => is_text = !is_text,
            '/' if !is_text && chars.peek() == Some(&'/') => break,
            c if !is_text => code.push(c),
            _ => {}
        }
    }
    code
}

/// Whether `word` stands in `code` as whole path segments: `gdal::` is found in `use gdal::Dataset`, not in `my_gdal::x`.
fn mentions(code: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let after = code[at + word.len()..].chars().next();
        !before.is_some_and(is_part) && (!word.ends_with(is_part) || !after.is_some_and(is_part))
    })
}

/// Fails with every line of the files that `is_meant` in which one of `words` stands.
fn assert_none_mentions(is_meant: impl Fn(&SourceFile) -> bool, words: &[&str], rule: &str) {
    let mut found = String::new();
    for file in sources().iter().filter(|f| is_meant(f)) {
        for (number, code) in &file.code {
            for word in words.iter().filter(|w| mentions(code, w)) {
                writeln!(found, "  src/{}:{number}: {word}", file.name).unwrap();
            }
        }
    }
    assert!(found.is_empty(), "{rule}\n{found}");
}

#[test]
fn only_the_door_sees_gdal() {
    let uses = ["use gdal", "gdal::", "extern crate gdal", "gdal_sys"];
    assert_none_mentions(|f| !f.is_in("gdal_io"), &uses, "only src/gdal_io/ may use the crates gdal and gdal-sys");
    // The rule would hold of nothing if the door were elsewhere.
    assert!(sources().iter().any(|f| f.is_in("gdal_io") && f.code.iter().any(|(_, c)| mentions(c, "gdal::"))));
}

#[test]
fn the_engine_is_pure() {
    let pure = ["terrain", "mesh", "grid", "raster"];
    let impure = ["gdal_io", "std::fs", "std::time", "crate::cli"];
    let rule = "terrain, mesh, grid and raster see no GDAL, no files, no clock and no command line";
    assert_none_mentions(|f| pure.iter().any(|m| f.is_in(m)), &impure, rule);
    // `use std::{fs, time}` would hide the same.
    assert_none_mentions(|f| pure.iter().any(|m| f.is_in(m)), &["use std::{"], "write out what is used of std");
}

#[test]
fn only_the_command_line_prints() {
    let printing = ["println!", "eprintln!", "print!", "eprint!", "dbg!", "io::stdout", "io::stderr"];
    assert_none_mentions(|f| !f.is_in("cli"), &printing, "only src/cli/ prints");
}

#[test]
fn only_main_knows_the_command_line() {
    let is_library = |f: &SourceFile| f.name != "main.rs" && !f.is_in("cli");
    assert_none_mentions(is_library, &["crate::cli", "histmap::cli", "super::cli"], "only src/main.rs imports cli");
}

/// The subcommands that `histmap --help` lists.
fn subcommands() -> Vec<String> {
    let help = Command::new(env!("CARGO_BIN_EXE_histmap")).arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let listed = help.split("Commands:\n").nth(1).expect("a list of commands").split("\n\n").next().unwrap();
    // A name stands two spaces in; longer indents continue a description.
    let names = listed.lines().filter(|l| l.starts_with("  ") && !l.starts_with("   "));
    names.filter_map(|l| l.split_whitespace().next()).filter(|n| *n != "help").map(str::to_string).collect()
}

#[test]
fn the_readme_shows_every_subcommand() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let known = subcommands();
    assert!(known.len() >= 6, "{known:?}");
    let missing: Vec<&String> = known.iter().filter(|c| !mentions(&readme, &format!("histmap {c}"))).collect();
    assert!(missing.is_empty(), "README.md does not mention: {missing:?}");
}

#[test]
fn the_documentation_shows_no_unknown_subcommand_or_option() {
    let known = subcommands();
    let mut options: Vec<String> = Vec::new();
    for command in &known {
        let help = Command::new(env!("CARGO_BIN_EXE_histmap")).args([command, "--help"]).output().unwrap();
        let help = String::from_utf8(help.stdout).unwrap();
        let flags = help.split(|c: char| !(c.is_ascii_lowercase() || c == '-')).filter(|w| w.starts_with("--"));
        options.extend(flags.map(|f| format!("{command} {f}")));
    }
    let mut wrong = String::new();
    for name in ["README.md", "docs/tutorial.md", "docs/formats.md"] {
        let text = std::fs::read_to_string(root().join(name)).unwrap();
        // Commands stand alone on an indented line.
        for line in text.lines().filter_map(|l| l.strip_prefix("    histmap ")) {
            let mut words = line.split_whitespace();
            let command = words.next().unwrap_or_default();
            if command.starts_with('-') {
                continue;
            }
            if !known.iter().any(|k| k == command) {
                writeln!(wrong, "  {name}: histmap {command}").unwrap();
            }
            for flag in words.filter(|w| w.starts_with("--")) {
                if !options.contains(&format!("{command} {flag}")) {
                    writeln!(wrong, "  {name}: histmap {command} {flag}").unwrap();
                }
            }
        }
    }
    assert!(wrong.is_empty(), "the documentation shows what histmap does not know:\n{wrong}");
}

#[test]
fn documents_link_to_files_that_exist() {
    let mut wrong = String::new();
    for name in ["README.md", "CONTRIBUTING.md", "docs/tutorial.md", "docs/formats.md", "docs/design.md"] {
        let path = root().join(name);
        let text = std::fs::read_to_string(&path).unwrap();
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = target.split('#').next().unwrap();
            if !file.is_empty() && !file.contains("://") && !path.with_file_name("").join(file).exists() {
                writeln!(wrong, "  {name}: {target}").unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "links that lead nowhere:\n{wrong}");
}

#[test]
fn the_readme_shows_the_example_border_file() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let example = std::fs::read_to_string(root().join("docs/samples/borders.geojson")).unwrap();
    assert!(readme.contains(example.trim()), "README.md and docs/samples/borders.geojson differ");
}

#[test]
fn lines_of_code_are_told_from_comments_and_texts() {
    assert_eq!(code_of(r#"let a = "x // y"; // println!"#), "let a = ; ");
    assert_eq!(code_of(r#"f('"', "std::fs")"#), r#"f('"', )"#);
    assert!(mentions("use gdal::Dataset;", "gdal::") && mentions("    println!()", "println!"));
    assert!(!mentions("crate::my_gdal::x", "gdal::") && !mentions("use gdal_io::x", "use gdal"));
    assert!(!mentions("eprintln!()", "println!"));
}
