//! The `histmap` command.

fn main() {}
