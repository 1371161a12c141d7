//! What the tests of the command share: a temporary folder to work in, the real binary, and what it may be held to.

// Every test file uses its own part of this.
#![allow(dead_code)]

use std::path::PathBuf;
use std::process::{Command, Output};

/// The `histmap` that is tested.
pub const BINARY: &str = env!("CARGO_BIN_EXE_histmap");
/// A box around Tiflis, small enough to build in a second or two.
pub const BOX: &str = "43.9,41.2,45.3,42.2";

/// A temporary folder; commands run in it.
pub struct Shop {
    pub dir: tempfile::TempDir,
}

impl Shop {
    pub fn new() -> Shop {
        Shop { dir: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a file, with the folders above it.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        std::fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        std::fs::write(self.path(name), bytes).unwrap();
        self.path(name)
    }

    pub fn run(&self, args: &[&str]) -> Output {
        Command::new(BINARY).args(args).current_dir(self.dir.path()).output().unwrap()
    }

    /// Runs one of GDAL's programs; `false`, with a line that says so, where it is not installed.
    pub fn gdal(&self, program: &str, args: &[&str]) -> bool {
        match Command::new(program).args(args).current_dir(self.dir.path()).output() {
            Ok(o) if o.status.success() => true,
            Ok(o) => panic!("{program} {args:?}: {}", String::from_utf8_lossy(&o.stderr)),
            Err(_) => {
                println!("skipped: {program} is not installed");
                false
            }
        }
    }

    /// Everything in the folder, hidden files included.
    pub fn listing(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.dir.path())
            .unwrap()
            .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

pub fn stdout(o: &Output) -> String {
    String::from_utf8_lossy(&o.stdout).into_owned()
}

pub fn stderr(o: &Output) -> String {
    String::from_utf8_lossy(&o.stderr).into_owned()
}

#[track_caller]
pub fn assert_succeeds(o: &Output) {
    assert!(o.status.success(), "exit {:?}\n{}\n{}", o.status.code(), stdout(o), stderr(o));
}

/// Fails with `code`, one message that holds every one of `words`, no panic.
#[track_caller]
pub fn assert_fails(o: &Output, code: i32, words: &[&str]) {
    let text = stderr(o);
    assert_eq!(o.status.code(), Some(code), "{text}");
    assert!(!text.contains("panicked"), "{text}");
    for w in words {
        assert!(text.contains(w), "no '{w}' in: {text}");
    }
}
