//! The command `rovelog bag`, which has a subcommand for ROS bags only.

use clap::Subcommand;
use rovelog::{AnyLog, Error, LogReader as _};

use crate::compression::ChunkArgs;
use crate::context::{Context, Format};
use crate::destination::OutputArgs;
use crate::failure::{Failure, Outcome};
use crate::input::LogArg;
use crate::text::{count, wrote};

/// ROS bags only: write a new index
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Reindex(ReindexArgs),
}

const MORE: &str = "\
Writes a bag with a complete index, which other readers need. Messages are copied byte for byte, \
and the definition of each topic comes before its first message. A V2.0 bag stays V2.0; V1.1 and \
V1.0 bags become V1.2. The exit code is 3 if bytes of the input could not be read; `rovelog check` \
lists them.

Examples:
  rovelog bag reindex crashed.bag -o whole.bag
  gzip -dc old.bag.gz | rovelog bag reindex - -o whole.bag";

/// Write a bag with a new index
#[derive(clap::Args)]
#[command(after_help = MORE)]
struct ReindexArgs {
    #[command(flatten)]
    log: LogArg,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    chunks: ChunkArgs,
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    let Command::Reindex(args) = &args.command;
    context.format(&[Format::Text])?;
    let input = args.log.input()?;
    let example = input.name_for("indexed");
    let mut out = args.output.create(&example, &input.files(context), context)?;
    let mut log = input.open(context)?;
    args.chunks.apply(&mut log, &input)?;
    let AnyLog::Rosbag(bag) = &log else {
        return Err(input.wrong_format(&log, "a ROS bag"));
    };
    context.progress.start(Some(bag.info().size));
    let bytes = bag
        .reindex(&mut context.progress.counting(&mut out))
        .map_err(|error| Failure::from(Error::from(error)).at(&input.path))?;
    let written = out.finish()?;
    let messages = count(bag.info().records, "message");
    let wrote = wrote(written.as_deref());
    context.note(&format!("indexed {messages} in {}{wrote}", count(bytes, "byte")));
    Ok(context.notices.end_of_log(bag, &input.path))
}
