//! The commands of `rovelog`. Each command has its own module.

mod bag;
mod cat;
mod check;
pub(crate) mod completion;
pub(crate) mod diff;
mod du;
mod dump;
mod events;
pub(crate) mod export;
mod extract;
mod findings;
mod info;
#[cfg(feature = "lake")]
mod ingest;
#[cfg(feature = "lake")]
mod lake;
#[cfg(feature = "agents")]
mod mcp;
mod merge;
mod messages;
mod params;
mod plot;
mod recover;
mod report;
mod rld;
mod schema;
mod scrub;
mod slice;
mod split;
mod stats;
mod topics;
mod track;
mod ulog;
mod vel;
#[cfg(feature = "view")]
mod view;

use clap::Subcommand;

use crate::context::Context;
use crate::failure::Outcome;
#[cfg(not(all(feature = "agents", feature = "lake", feature = "view")))]
use crate::{failure::Failure, not_built_in};

/// A subcommand.
#[derive(Subcommand)]
pub(crate) enum Command {
    Info(info::Args),
    #[command(visible_aliases = ["ls", "list"])]
    Topics(topics::Args),
    Schema(schema::Args),
    Cat(cat::Args),
    Messages(messages::Args),
    Params(params::Args),
    Events(events::Args),
    Findings(findings::Args),
    Stats(stats::Args),
    Du(du::Args),
    Dump(dump::Args),
    Diff(diff::Args),
    #[command(visible_alias = "doctor")]
    Check(check::Args),
    Recover(recover::Args),
    #[command(visible_alias = "filter")]
    Slice(slice::Args),
    Scrub(scrub::Args),
    Split(split::Args),
    Merge(merge::Args),
    #[command(visible_alias = "convert")]
    Export(export::Args),
    Extract(extract::Args),
    #[cfg(feature = "lake")]
    Ingest(ingest::Args),
    #[cfg(feature = "lake")]
    Lake(lake::Args),
    /// Add logs to a lake (not in this build)
    #[cfg(not(feature = "lake"))]
    Ingest(not_built_in::Args),
    /// Check or clean up a lake (not in this build)
    #[cfg(not(feature = "lake"))]
    Lake(not_built_in::Args),
    Track(track::Args),
    Plot(plot::Args),
    Report(report::Args),
    #[cfg(feature = "view")]
    View(view::Args),
    /// Explore logs in the browser (not in this build)
    #[cfg(not(feature = "view"))]
    View(not_built_in::Args),
    #[cfg(feature = "agents")]
    Mcp(mcp::Args),
    /// Let agents read logs (not in this build)
    #[cfg(not(feature = "agents"))]
    Mcp(not_built_in::Args),
    Bag(bag::Args),
    Rld(rld::Args),
    Ulog(ulog::Args),
    Vel(vel::Args),
    Completion(completion::Args),
}

impl Command {
    /// Returns true if the process must keep running when a log file is truncated while it is being
    /// read. This is the case for the server that `rovelog view` starts. It reports the change and
    /// continues to serve the remaining logs. A worker of `rovelog ingest` may end, because it is a
    /// separate process.
    pub(crate) fn outlives_its_logs(&self) -> bool {
        matches!(self, Self::View(_))
    }
}

/// Returns the name of the command that writes files in the output format `format`.
pub(crate) fn writer_of(format: &str) -> Option<&'static str> {
    if plot::writes(format) {
        return Some("plot");
    }
    rovelog_export::Kind::by_name(format).map(|_| "export")
}

/// Runs `command`.
pub(crate) fn run(command: Command, context: &Context) -> Outcome {
    match command {
        Command::Info(args) => info::run(&args, context),
        Command::Topics(args) => topics::run(&args, context),
        Command::Schema(args) => schema::run(&args, context),
        Command::Cat(args) => cat::run(&args, context),
        Command::Messages(args) => messages::run(&args, context),
        Command::Params(args) => params::run(&args, context),
        Command::Events(args) => events::run(&args, context),
        Command::Findings(args) => findings::run(&args, context),
        Command::Stats(args) => stats::run(&args, context),
        Command::Du(args) => du::run(&args, context),
        Command::Dump(args) => dump::run(&args, context),
        Command::Diff(args) => diff::run(&args, context),
        Command::Check(args) => check::run(&args, context),
        Command::Recover(args) => recover::run(&args, context),
        Command::Slice(args) => slice::run(&args, context),
        Command::Scrub(args) => scrub::run(&args, context),
        Command::Split(args) => split::run(&args, context),
        Command::Merge(args) => merge::run(&args, context),
        Command::Export(args) => export::run(&args, context),
        Command::Extract(args) => extract::run(&args, context),
        #[cfg(feature = "lake")]
        Command::Ingest(args) => ingest::run(&args, context),
        #[cfg(feature = "lake")]
        Command::Lake(args) => lake::run(&args, context),
        #[cfg(not(feature = "lake"))]
        Command::Ingest(_) | Command::Lake(_) => Err(Failure::not_built_in("cannot create lakes", "lake")),
        Command::Track(args) => track::run(&args, context),
        Command::Plot(args) => plot::run(&args, context),
        Command::Report(args) => report::run(&args, context),
        #[cfg(feature = "view")]
        Command::View(args) => view::run(&args, context),
        #[cfg(not(feature = "view"))]
        Command::View(_) => Err(Failure::not_built_in("cannot show logs in the browser", "view")),
        #[cfg(feature = "agents")]
        Command::Mcp(args) => mcp::run(&args, context),
        #[cfg(not(feature = "agents"))]
        Command::Mcp(_) => Err(Failure::not_built_in("cannot answer agents", "agents")),
        Command::Bag(args) => bag::run(&args, context),
        Command::Rld(args) => rld::run(&args, context),
        Command::Ulog(args) => ulog::run(&args, context),
        Command::Vel(args) => vel::run(&args, context),
        Command::Completion(args) => completion::run(&args, context),
    }
}
