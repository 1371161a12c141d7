//! The `histmap` command: parse, run, print the cause once, exit.

use std::process::ExitCode;

fn main() -> ExitCode {
    match histmap::cli::run(std::env::args_os()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
