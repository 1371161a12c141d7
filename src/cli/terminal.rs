//! What a run looks like: a bar with the time left on a terminal, plain lines elsewhere, nothing when quiet.

use crate::error::{Error, Result};
use crate::progress::{Progress, Stage};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{IsTerminal, Write};

/// Prints to standard output; a closed pipe ends the output, not the run.
///
/// # Errors
/// [`Error::Write`] when standard output fails for another reason.
pub(super) fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => Err(Error::write("standard output", e)),
        _ => Ok(()),
    }
}

/// Progress on standard error.
pub(super) struct Terminal {
    bar: Option<ProgressBar>,
    is_quiet: bool,
    done: u64,
}

impl Terminal {
    /// A bar where standard error is a terminal, lines elsewhere, nothing when `quiet`.
    pub(super) fn new(quiet: bool) -> Self {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::new(Stage::ALL.iter().map(|s| s.share()).sum());
            let style =
                ProgressStyle::with_template("{prefix}{msg:10} [{bar:40}] {percent:>3} %  {elapsed}, about {eta} left");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
            bar.enable_steady_tick(std::time::Duration::from_millis(200));
            bar
        });
        Terminal { bar, is_quiet: quiet, done: 0 }
    }

    fn line(&self, text: &str) {
        if self.is_quiet {
            return;
        }
        match &self.bar {
            Some(bar) => bar.println(text),
            // Progress is a courtesy: a closed standard error must not end the run.
            None => {
                let _ = writeln!(std::io::stderr(), "{text}");
            }
        }
    }
}

impl Progress for Terminal {
    fn expect(&mut self, share: u64) {
        if let Some(bar) = &self.bar {
            bar.set_length(share);
        }
    }

    fn part(&mut self, name: &str) {
        match &self.bar {
            Some(bar) => bar.set_prefix(format!("{name} ")),
            None => self.line(&format!("{name}:")),
        }
    }

    fn begin(&mut self, stage: Stage) {
        if let Some(bar) = &self.bar {
            bar.set_message(stage.name());
        }
    }

    fn end(&mut self, stage: Stage, seconds: f64) {
        self.done += stage.share();
        match &self.bar {
            Some(bar) => {
                bar.set_position(self.done);
                if stage == Stage::Manifest {
                    bar.finish_and_clear();
                }
            }
            None => self.line(&format!("{:10} {seconds:6.1} s", stage.name())),
        }
    }

    fn note(&mut self, sentence: &str) {
        self.line(&format!("note: {sentence}"));
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
