//! Numbers with their nouns, as every message and the map sheet say them.

/// `1 claim`, `2 claims`, `0 claims`.
///
/// ```
/// assert_eq!(histmap::words::counted(1, "polity", "polities"), "1 polity");
/// assert_eq!(histmap::words::counted(0, "polity", "polities"), "0 polities");
/// ```
pub fn counted(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}
