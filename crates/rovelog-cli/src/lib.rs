#![doc = include_str!("../README.md")]
//!
//! A library only because two programs use this command line: the binary `rovelog`, and the Python
//! package of the same name, which also uses the comparison of two logs.
#![forbid(unsafe_code)]

mod args;
mod chunks;
mod commands;
mod context;
mod destination;
mod failure;
mod format;
mod health;
mod input;
mod interpreter;
mod machine;
#[cfg(feature = "man")]
mod man;
mod moment;
mod need;
#[cfg(not(all(feature = "lake", feature = "view")))]
mod not_built_in;
mod notices;
mod outfile;
mod output;
mod outputs;
mod parts;
mod progress;
mod records;
#[cfg(feature = "remote")]
#[path = "remote.rs"]
mod remote;
#[cfg(not(feature = "remote"))]
#[path = "local.rs"]
mod remote;
mod select;
mod survey;
mod table;
mod text;
mod times;
mod unfinished;
mod velodyne;
mod when;

use std::ffi::OsString;

use clap::CommandFactory as _;

pub use commands::diff::{DiffOptions, NoDiff, diff};
pub use interpreter::runs_in;

/// Runs the command line with `args`, the program's name first. Returns the exit code.
///
/// Help, version, bad arguments and shell completion end the process here.
pub fn run(args: Vec<OsString>) -> u8 {
    rovelog::install_abort_handler();
    report_size_limits();
    commands::completion::answer(args::Cli::command);
    #[cfg(feature = "man")]
    if let Some(code) = man::answer(&args, args::Cli::command) {
        return code;
    }
    let cli = args::parse(args);
    if !cli.command.outlives_its_logs() {
        rovelog::install_sigbus_handler();
    }
    let (progress, watcher) = progress::Progress::watch(cli.global.quiet);
    let mut context = context::Context::new(cli.global, progress);
    let outcome = context.declare().and_then(|()| commands::run(cli.command, &context));
    drop(watcher);
    context.notices.finish(outcome)
}

/// Has a write at the limit of file sizes (`ulimit -f`) return an error. By default the system ends
/// the program instead, without a message and with an incomplete file left.
fn report_size_limits() {
    #[cfg(unix)]
    // Without the handler, the system does what it does by default.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, std::sync::Arc::default());
}
