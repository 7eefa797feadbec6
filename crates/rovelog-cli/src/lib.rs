#![doc = include_str!("../README.md")]
//!
//! The command line is a library because two programs use it: the binary `rovelog`, and the script
//! `rovelog` of the Python package. The package also calls the function that compares two logs.
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod args;
mod commands;
mod compression;
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
#[cfg(not(all(feature = "agents", feature = "lake", feature = "view")))]
mod not_built_in;
mod notices;
mod outfile;
mod output;
mod outputs;
mod parts;
mod progress;
mod read_scope;
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
mod time_point;
mod times;
mod unfinished;
mod velodyne;
mod window;

use std::ffi::OsString;

use clap::CommandFactory as _;

pub use commands::diff::{DiffOptions, NoDiff, diff};
pub use interpreter::set_interpreter;

/// Runs the command line. The first element of `args` is the name of the program. Returns the exit
/// code.
///
/// If the user requests help, the version or a shell completion, or if an argument is invalid, this
/// function prints the text and ends the process.
pub fn run(args: Vec<OsString>) -> u8 {
    rovelog::install_abort_handler();
    report_size_limits();
    // If the shell has set the environment variable that requests completions, this call prints the
    // completions and exits.
    commands::completion::answer(args::Cli::command);
    #[cfg(feature = "man")]
    if let Some(code) = man::answer(&args, args::Cli::command) {
        return code;
    }
    let cli = args::parse(args);
    // If a memory-mapped log is truncated, reading its missing bytes raises SIGBUS. The handler
    // prints a message and ends the process. It is not installed for `rovelog view`, because the
    // server must keep running.
    if !cli.command.outlives_its_logs() {
        rovelog::install_sigbus_handler();
    }
    let (progress, watcher) = progress::Progress::watch(cli.global.quiet);
    let mut context = context::Context::new(cli.global, progress);
    let outcome = context.declare().and_then(|()| commands::run(cli.command, &context));
    drop(watcher);
    context.notices.finish(outcome)
}

/// Lets a write beyond the file size limit (`ulimit -f`) return an error. Without a handler, the
/// system kills the process with SIGXFSZ, which leaves an incomplete file without any message.
fn report_size_limits() {
    #[cfg(unix)]
    // If the handler cannot be installed, SIGXFSZ still kills the process.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, std::sync::Arc::default());
}
