//! The binary `rovelog`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(rovelog_cli::run(std::env::args_os().collect()))
}
