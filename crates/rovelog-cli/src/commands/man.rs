//! `rovelog man`: the man pages of all commands, for archives and packages. Hidden: users have them.

use std::fs;
use std::path::PathBuf;

use clap::CommandFactory as _;

use crate::args::Cli;
use crate::context::Context;
use crate::failure::{Outcome, Status, cannot_write};

/// Write a man page for each command
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Folder of the pages; it is made if it does not exist
    folder: PathBuf,
}

pub(super) fn run(args: &Args, _: &Context) -> Outcome {
    fs::create_dir_all(&args.folder)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), &args.folder))
        .map_err(|error| cannot_write(&args.folder, &error))?;
    Ok(Status::Done)
}
