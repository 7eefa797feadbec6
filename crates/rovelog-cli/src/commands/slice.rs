//! `rovelog slice`: a part of a log, by time and by topic, as a log of its own.

use std::path::{Path, PathBuf};

use rovelog::Select;
use serde::Serialize;

use crate::args::{Context, Format};
use crate::commands::cat::span;
use crate::input::Input;
use crate::machine::DetailsDoc;
use crate::outfile::{LogOut, OutArgs};
use crate::report::{Failure, Outcome, count, note};
use crate::select::{LatchedArgs, TopicArgs};
use crate::when::WindowArgs;

const MORE: &str = "\
What is kept is kept byte for byte, in the order of the file. All definitions and information stay,
and of the window the texts, dropouts and changes of parameters; the parameters in force when it
opens are the initial ones of the new log.

Examples:
  rovelog slice flight.ulg -o landing.ulg -S -30s
  rovelog slice flight.ulg -o minute.ulg -S +1m -E +2m
  rovelog filter flight.ulg -o small.ulg -y 'vehicle_.*' -y battery_status
  rovelog slice flight.ulg -o end.ulg -S -1m -l '.*_status'   with the state that held before
  rovelog slice - --topics sensor_gps -o gps.ulg < flight.ulg";

/// Cut a log by time and by topic; what is kept stays as it is
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    /// A log; - is stdin
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The log to write; - is stdout, where that is a pipe or a file
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    #[command(flatten)]
    topics: TopicArgs,
    #[command(flatten)]
    window: WindowArgs,
    #[command(flatten)]
    latched: LatchedArgs,
    #[command(flatten)]
    out: OutArgs,
}

/// The document `rovelog.slice/1`.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    file: String,
    output: String,
    records: String,
    of_records: String,
    topics: usize,
    of_topics: usize,
    bytes: String,
    start_ns: Option<String>,
    end_ns: Option<String>,
    /// What only this format has.
    #[serde(flatten)]
    details: DetailsDoc<'a>,
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    let format = context.format(&[Format::Text, Format::Json])?;
    let input = Input::new(args.file.as_deref())?;
    let example = input.name_for("part");
    let mut out = LogOut::create(args.output.as_deref(), &example, &[&input.path], args.out, context)?;
    let log = input.open(context)?;
    let here = |failure: Failure| failure.at(&input.path);
    let topics = args.topics.pick(log.topics()).map_err(here)?;
    let times = context.times(log.info()).map_err(here)?;
    let window = args.window.resolve(&times, span(&*log)).map_err(here)?;
    let mut select = Select::all().between(window.start, window.end);
    if topics.len() < log.topics().len() {
        select.topics = Some(topics.iter().map(|topic| topic.name.clone()).collect());
    }
    let select = args.latched.add_to(select, &topics);
    let report = log.slice(&select, &mut out).map_err(|error| here(error.into()))?;
    let written = matches!(out, LogOut::File(_));
    out.finish()?;
    let (of_records, of_topics) = (log.info().records, log.topics().len());
    if format == Format::Json {
        context.out().document(&Document {
            schema: "rovelog.slice/1",
            file: input.name(),
            output: args.output.as_deref().unwrap_or(Path::new("-")).to_string_lossy().into_owned(),
            records: report.records.to_string(),
            of_records: of_records.to_string(),
            topics: report.topics,
            of_topics,
            bytes: report.bytes.to_string(),
            start_ns: window.start.map(|nanos| nanos.to_string()),
            end_ns: window.end.map(|nanos| nanos.to_string()),
            details: DetailsDoc(&report.details),
        })?;
    }
    if !context.global.quiet {
        let mut text = format!(
            "kept {} of {} on {} of {} ({})",
            report.records,
            count(of_records, "record"),
            report.topics,
            count(of_topics as u64, "topic"),
            count(report.bytes, "byte"),
        );
        if let Some(path) = args.output.as_deref().filter(|_| written) {
            text = format!("{text}; wrote {}", path.display());
        }
        note(&text);
    }
    Ok(context.report.loss(&log.info().lost, &input.path))
}
