//! The command line of Rovelog: look into, check and convert sensor logs.
#![forbid(unsafe_code)]

mod args;
mod commands;
mod input;
mod machine;
mod outfile;
mod output;
mod progress;
mod records;
mod report;
mod select;
mod when;

use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = args::parse();
    let context = args::Context::new(cli.global);
    let outcome = commands::run(cli.command, &context);
    context.report.finish(outcome)
}
