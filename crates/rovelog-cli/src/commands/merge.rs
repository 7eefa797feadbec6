//! The command `rovelog merge`, which combines several logs into one log in time order.

use std::path::PathBuf;

use rovelog::Align;
use serde::Serialize;

use crate::compression::ChunkArgs;
use crate::context::{Context, Format};
use crate::destination::OutputArgs;
use crate::failure::{Failure, Outcome, Status};
use crate::input::Input;
use crate::machine::{Count, DetailsDoc};
use crate::text::{count, wrote};
use crate::times::TimeBase;

const MORE: &str = "\
The logs must have the same format and a common clock. If the logs do not show that they share a \
clock, choose how to align them: --time-base boot keeps all times unchanged, and --time-base utc \
aligns the logs by UTC. Data that the merged log cannot contain is reported, and the exit code is \
then 3. RocketLogger: recordings of one logger with equal channels become one log with gaps.

Examples:
  rovelog merge parts/flight_*.ulg -o flight.ulg
  rovelog merge parts/flight_*.ulg -o flight.ulg --time-base boot   without UTC
  rovelog merge leader.ulg follower.ulg -o both.ulg --time-base utc";

/// Merge several logs into one, in time order
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    /// Log files to merge, or - for stdin
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    chunks: ChunkArgs,
}

/// JSON document with the schema `rovelog.merge/2`, which `rovelog merge -f json` prints.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    files: Vec<String>,
    output: String,
    records: Count,
    topics: usize,
    bytes: Count,
    left_out: &'a [String],
    /// Additional properties of the result, which depend on the log format.
    #[serde(flatten)]
    details: DetailsDoc<'a>,
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    let format = context.format(&[Format::Text, Format::Json])?;
    let align = match context.global.time.time_base {
        None => Align::Shared,
        Some(TimeBase::Boot) => Align::AsIs,
        Some(TimeBase::Utc) => Align::Utc,
        Some(TimeBase::Relative) => {
            return Err(Failure::usage(
                "logs cannot be merged by relative times, because these times start at 0 in each log",
            )
            .next("use --time-base utc or --time-base boot"));
        }
    };
    let inputs = Input::all(&args.files)?;
    let files: Vec<_> = inputs.iter().flat_map(|input| input.files(context)).collect();
    let example = inputs.first().map_or_else(String::new, |input| input.name_for("merged"));
    let mut out = args.output.create(&example, &files, context)?;
    let mut logs = inputs.iter().map(|input| input.open(context)).collect::<Result<Vec<_>, _>>()?;
    for (log, input) in logs.iter_mut().zip(&inputs) {
        args.chunks.apply(log, input)?;
    }
    context.progress.start(Some(logs.iter().map(|log| log.info().size).sum()));
    let report = rovelog::merge(&logs, align, &mut context.progress.counting(&mut out))?;
    let written = out.finish()?;
    if format == Format::Json {
        context.out().document(&Document {
            schema: "rovelog.merge/2",
            files: inputs.iter().map(Input::name).collect(),
            output: args.output.name(),
            records: Count(report.records),
            topics: report.topics,
            bytes: Count(report.bytes),
            left_out: &report.left_out,
            details: DetailsDoc(&report.details),
        })?;
    }
    context.notices.left_out(&report.left_out);
    context.note(&format!(
        "merged {} with {} on {} ({}){}",
        count(logs.len() as u64, "log"),
        count(report.records, "record"),
        count(report.topics as u64, "topic"),
        count(report.bytes, "byte"),
        wrote(written.as_deref()),
    ));
    let losses =
        inputs.iter().zip(&logs).map(|(input, log)| context.notices.end_of_log(log.as_log(), &input.path));
    let kept = if report.left_out.is_empty() { Status::Done } else { Status::Lost };
    Ok(losses.fold(kept, Status::max))
}
