//! The command `rovelog slice`, which writes a part of a log as a new log.

use std::path::Path;

use rovelog::{AnyLog, Select};
use rovelog_export::duration_text;
use serde::Serialize;

use crate::compression::ChunkArgs;
use crate::context::{Context, Format};
use crate::destination::OutputArgs;
use crate::failure::{Failure, Outcome};
use crate::input::LogArg;
use crate::machine::{Count, DetailsDoc};
use crate::select::{LastBeforeArgs, TopicArgs, note_further_series};
use crate::text::{count, wrote};
use crate::window::{Window, WindowArgs, note_outside, span};

const MORE: &str = "\
Records are copied byte for byte and in file order. The new log contains all definitions and info \
messages. Of the console messages, dropouts and parameter changes, it contains those in the time \
range. The parameter values at the start of the range become the initial parameters of the new \
log. If a publisher in a ROS bag latches, its last message before the start is kept, too.

Examples:
  rovelog slice flight.ulg -o landing.ulg -S -30s
  rovelog slice flight.ulg -o minute.ulg -S +1m -E +2m
  rovelog filter flight.ulg -o small.ulg -y 'vehicle_.*' -y battery_status
  rovelog slice flight.ulg -o end.ulg -S -1m -l '.*_status'
  rovelog slice - --topics sensor_gps -o gps.ulg < flight.ulg";

/// Extract a part of a log by time and topic
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    #[command(flatten)]
    log: LogArg,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    chunks: ChunkArgs,
    #[command(flatten)]
    topics: TopicArgs,
    #[command(flatten)]
    window: WindowArgs,
    #[command(flatten)]
    last_before: LastBeforeArgs,
}

/// JSON document with the schema `rovelog.slice/2`, which `rovelog slice -f json` prints.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    file: String,
    output: String,
    records: Count,
    of_records: Count,
    topics: usize,
    of_topics: usize,
    bytes: Count,
    start_ns: Option<String>,
    end_ns: Option<String>,
    /// Additional properties of the result, which depend on the log format.
    #[serde(flatten)]
    details: DetailsDoc<'a>,
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    let format = context.format(&[Format::Text, Format::Json])?;
    let input = args.log.input()?;
    let example = input.name_for("part");
    // The output is created before the log is read. If it cannot be created, the user sees the
    // error immediately.
    let mut out = args.output.create(&example, &input.files(context), context)?;
    let mut log = input.open_records(context, &|log| Ok(selection(args, log, context)?.1))?;
    args.chunks.apply(&mut log, &input)?;
    let here = |failure: Failure| failure.at(&input.path);
    let (window, select) = selection(args, &log, context).map_err(here)?;
    let report =
        log.slice(&select, &mut context.progress.counting(&mut out)).map_err(|error| here(error.into()))?;
    let written = out.finish()?;
    let (of_records, of_topics) = (log.info().records, log.topics().len());
    if format == Format::Json {
        context.out().document(&Document {
            schema: "rovelog.slice/2",
            file: input.name(),
            output: args.output.name(),
            records: Count(report.records),
            of_records: Count(of_records),
            topics: report.topics,
            of_topics,
            bytes: Count(report.bytes),
            start_ns: window.start.map(|nanos| nanos.to_string()),
            end_ns: window.end.map(|nanos| nanos.to_string()),
            details: DetailsDoc(&report.details),
        })?;
    }
    context.note(&format!(
        "kept {} of {} on {} of {} ({}){}",
        report.records,
        count(of_records, "record"),
        report.topics,
        count(of_topics as u64, "topic"),
        count(report.bytes, "byte"),
        wrote(written.as_deref()),
    ));
    note_outside(log.as_log(), &select, context);
    let selected: Vec<_> = log.topics().iter().filter(|topic| select.keeps_topic(topic)).collect();
    note_further_series(log.as_log(), &selected, context);
    if let Some(path) = written {
        note_utc(&log, &path, context);
    }
    report.details.iter().filter_map(|detail| detail.text.as_ref()).for_each(|text| context.note(text));
    Ok(context.notices.end_of_log(log.as_log(), &input.path))
}

/// Prints a note if the new log at `path` lacks GPS fixes of the original, so that it has no UTC or
/// another UTC.
fn note_utc(log: &AnyLog, path: &Path, context: &Context) {
    let Some(utc) = log.info().utc.as_ref().filter(|utc| utc.rule == "gps") else { return };
    let Ok(part) = rovelog::open(path) else { return };
    match part.info().utc.as_ref().map(|part| part.nanos.saturating_sub(utc.nanos)) {
        None => context.note(&format!(
            "the new log has no UTC, because it lacks the topic from which UTC was computed: {}",
            utc.evidence
        )),
        Some(0) => {}
        Some(change) => context.note(&format!(
            "UTC of the new log differs by {} from that of the original, because it is computed from other GPS fixes",
            duration_text(change)
        )),
    }
}

/// Returns the time window and the selected records.
fn selection(args: &Args, log: &AnyLog, context: &Context) -> Result<(Window, Select), Failure> {
    let topics = args.topics.pick(log.topics())?;
    let window = args.window.resolve(&context.times(log.info())?, span(&**log))?;
    let mut select = Select::all().between(window.start, window.end);
    if topics.len() < log.topics().len() {
        select.topics = Some(topics.iter().map(|topic| topic.name.clone()).collect());
    }
    Ok((window, args.last_before.add_to(select, &topics)?.with_latched()))
}
