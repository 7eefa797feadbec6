//! The command `rovelog ulog`, which has subcommands for ULog files only.

mod dropouts;
mod gps_dump;
mod infos;

use clap::Subcommand;

use crate::context::Context;
use crate::failure::Outcome;

/// ULog only: show dropouts and info messages, extract raw GPS data
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Dropouts(dropouts::Args),
    Infos(infos::Args),
    GpsDump(gps_dump::Args),
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    match &args.command {
        Command::Dropouts(args) => dropouts::run(args, context),
        Command::Infos(args) => infos::run(args, context),
        Command::GpsDump(args) => gps_dump::run(args, context),
    }
}
