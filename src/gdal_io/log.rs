//! What GDAL says, kept instead of printed. Failures are kept by thread, in order, until the next operation starts.

use gdal::errors::{CplErrType, GdalError};
use std::cell::RefCell;
use std::sync::Once;

thread_local! {
    static FAILURES: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// How many failures of one operation are kept: a damaged file can produce one per block.
const KEPT: usize = 20;

/// Begins an operation: GDAL is quiet from here on, and failures of earlier operations on this thread are forgotten.
pub(super) fn start() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        gdal::config::set_error_handler(|class, _, message| {
            if matches!(class, CplErrType::Failure | CplErrType::Fatal) {
                // A thread that is ending has no list any more; there is no reader then either.
                let _ = FAILURES.try_with(|list| {
                    if let Ok(mut list) = list.try_borrow_mut()
                        && list.len() < KEPT
                    {
                        list.push(tidy(message));
                    }
                });
            }
        });
    });
    FAILURES.with(|list| list.borrow_mut().clear());
}

/// The first failure since [`start`] on this thread: the cause; what follows it are consequences.
pub(super) fn failure() -> Option<String> {
    FAILURES.with(|list| list.borrow().first().cloned())
}

/// What went wrong in `error`, in GDAL's words where it gave any.
pub(super) fn cause(error: &GdalError) -> String {
    let own = match error {
        GdalError::CplError { msg, .. } | GdalError::NullPointer { msg, .. } => tidy(msg),
        _ => String::new(),
    };
    failure().or(Some(own).filter(|m| !m.is_empty())).unwrap_or_else(|| error.to_string())
}

/// One line, without the names of our in-memory files and without GDAL's naming of its own functions.
fn tidy(message: &str) -> String {
    let mut words = Vec::new();
    for word in message.split_whitespace() {
        match word.find("/vsimem/histmap/") {
            Some(at) => {
                let name = word[at..].rsplit('/').next().unwrap_or_default();
                words.push(format!("{}{name}", &word[..at]));
            }
            None => words.push(word.to_string()),
        }
    }
    words.join(" ").trim_end_matches('.').to_string()
}

/// GDAL options of this thread, put back when the value is dropped.
pub(super) struct ThreadOptions(Vec<&'static str>);

impl ThreadOptions {
    /// Sets each (key, value).
    pub(super) fn set(options: &[(&'static str, &str)]) -> Self {
        for (key, value) in options {
            // Fails only on a NUL inside the text; the option is then not set.
            let _ = gdal::config::set_thread_local_config_option(key, value);
        }
        ThreadOptions(options.iter().map(|o| o.0).collect())
    }
}

impl Drop for ThreadOptions {
    fn drop(&mut self) {
        for key in &self.0 {
            let _ = gdal::config::clear_thread_local_config_option(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_lose_in_memory_paths_and_line_breaks() {
        assert_eq!(tidy("`/vsimem/histmap/3/a.tif' is\n  odd."), "`a.tif' is odd");
    }
}
