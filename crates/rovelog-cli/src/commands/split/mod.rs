//! The command `rovelog split`, which divides a log into several new logs. A log is split by time,
//! size, topic or recording.

mod plan;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;

use rovelog::{Detail, FormatInfo};
use serde::Serialize;

use crate::compression::ChunkArgs;
use crate::context::{Context, Format};
use crate::failure::{Failure, Outcome, Status};
use crate::input::{Input, LogArg};
use crate::machine::Count;
use crate::outfile::{OutArgs, OutFolder};
use crate::text::{count, escape, parse_size, short};
use crate::time_point::nonzero_duration;
use plan::{Content, Part};

const MORE: &str = "\
Every part contains all definitions and info messages, and the parameters that are active at its \
start. Empty parts are not written. The paths of the parts are printed to stdout. The parts of a \
power log (RLD) are named as the logger names them: power.rld, power_p1.rld. If you open the first \
part, all parts are read as one log.

Examples:
  rovelog split flight.ulg -o parts --every 60s
  rovelog split flight.ulg -o parts --size 100MB
  rovelog split flight.ulg -o topics --by-topic
  rovelog split joined.ulg -o logs --at-restart";

/// Split a log into parts by time, size, topic or recording
#[derive(clap::Args)]
#[command(after_help = MORE)]
#[command(group(clap::ArgGroup::new("how").required(true).args(["every", "size", "by_topic", "at_restart"])))]
pub(crate) struct Args {
    #[command(flatten)]
    log: LogArg,
    /// Output folder; created if it does not exist
    #[arg(short, long, value_name = "DIR", required = true)]
    output: PathBuf,
    /// Write one part for each time window of this length, such as 60s, 5m or 500ms; the first
    /// window starts at the start of the log
    #[arg(long, value_name = "SPAN", value_parser = nonzero_duration)]
    every: Option<i64>,
    /// Write parts of at most this size, such as 1GB, 500MB or 64KiB, in time order
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    size: Option<u64>,
    /// Write one part for each topic that has records
    #[arg(long)]
    by_topic: bool,
    /// ULog: write one part for each recording in a file that contains several recordings, each
    /// with its own clock
    #[arg(long)]
    at_restart: bool,
    #[command(flatten)]
    chunks: ChunkArgs,
    #[command(flatten)]
    out: OutArgs,
}

/// A log that `rovelog split` has written. It contains a part of the original log.
#[derive(Serialize)]
struct PartDoc {
    file: String,
    records: Count,
    bytes: Count,
    /// Topic of the part. It is present only with `--by-topic`.
    topic: Option<String>,
}

/// JSON document with the schema `rovelog.split/2`, which `rovelog split -f json` prints.
#[derive(Serialize)]
struct Document {
    schema: &'static str,
    file: String,
    parts: Vec<PartDoc>,
}

/// Paths of the parts.
struct Names<'a> {
    args: &'a Args,
    format: &'static FormatInfo,
    /// Name of the log without its extension.
    stem: String,
}

impl<'a> Names<'a> {
    fn new(args: &'a Args, input: &Input, format: &'static FormatInfo) -> Self {
        Self { args, format, stem: input.stem().unwrap_or_else(|| "part".to_owned()) }
    }

    /// Returns the path at which readers look for the file with this number. Returns `None` if the
    /// format has no recordings of several files, or if the log is split by topic.
    fn joined(&self, number: usize) -> Option<PathBuf> {
        let files = self.format.files.filter(|_| !self.args.by_topic)?;
        let name = format!("{}.{}", self.stem, self.format.extensions[0]);
        Some(self.args.output.join((files.part)(&name, number)))
    }

    /// Returns an error if a file has the name of the part after `count` parts. Readers would treat
    /// it as a part of this log.
    fn check_next(&self, count: usize) -> Result<(), Failure> {
        let Some(path) = self.joined(count).filter(|path| path.exists()) else { return Ok(()) };
        Err(Failure::usage(
            "the output folder contains a part of another log, which could later be read as a part of this \
             log",
        )
        .next("remove this file, or name another folder")
        .at(&path))
    }

    fn path(&self, number: usize, part: &str) -> PathBuf {
        let own = || format!("{}_{part}.{}", short(&self.stem), self.format.extensions[0]);
        self.joined(number).unwrap_or_else(|| self.args.output.join(own()))
    }
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    let format = context.format(&[Format::Text, Format::Json])?;
    let input = args.log.input()?;
    let mut log = input.open(context)?;
    args.chunks.apply(&mut log, &input)?;
    let here = |failure: Failure| failure.at(&input.path);
    let parts = match (args.every, args.size) {
        (Some(every), _) => plan::by_time(&log, every).map_err(here)?,
        (_, Some(size)) => plan::by_size(&log, size).map_err(here)?,
        _ if args.at_restart => plan::at_restart(input.ulog(&log)?),
        _ => plan::by_topic(&*log),
    };
    let names = Names::new(args, &input, log.format());
    // All paths are checked before the first file is written. If one of the files exists, the
    // folder remains unchanged.
    let mut paths = parts.iter().enumerate().map(|(number, part)| names.path(number, &part.name));
    if let Some(path) = paths.find(|path| !args.out.force && path.exists()) {
        return Err(Failure::usage("the output file for a part already exists")
            .next("name another folder, or use --force to replace existing parts")
            .at(&path));
    }
    let folder = OutFolder::create(&args.output, args.out)?;
    let inputs = input.files(context);
    let mut docs = Vec::new();
    // Many parts may have notes of the same kind, so only the first one is shown.
    let (mut records, mut notes) = (0, BTreeMap::new());
    context.progress.start(Some(log.info().size));
    for Part { name, content } in &parts {
        // If a part of the log has no records, no file is written for it. The number in the next
        // name is therefore the number of files written so far, and not the index of the part.
        let path = names.path(docs.len(), name);
        let mut file = folder.file(&path, &inputs)?;
        if docs.is_empty() {
            names.check_next(parts.len())?;
        }
        let mut counting = context.progress.counting(&mut file);
        let report = match content {
            Content::Selection(select) => log.slice(select, &mut counting),
            Content::Session(session) => input.ulog(&log)?.write_session(session, &mut counting),
        };
        let report = report.map_err(|error| here(error.into()))?;
        if report.is_empty() {
            continue;
        }
        file.finish()?;
        records += report.records;
        // Another part contains the records that these notes are about.
        let is_note = |detail: &Detail| !["sessions_left_out", "latched"].contains(&detail.key);
        for detail in report.details.into_iter().filter(is_note) {
            notes.entry(detail.key).or_insert(detail.text);
        }
        docs.push(PartDoc {
            file: path.to_string_lossy().into_owned(),
            records: Count(report.records),
            bytes: Count(report.bytes),
            topic: content.topic(),
        });
    }
    names.check_next(docs.len())?;
    folder.finish()?;
    let mut out = context.out();
    if format == Format::Text {
        for doc in &docs {
            writeln!(out, "{}", escape(&doc.file))?;
        }
        out.flush()?;
    }
    let (parts, of) = (count(docs.len() as u64, "part"), count(log.info().records, "record"));
    context.note(&format!("kept {records} of {of}; wrote {parts} to {}", args.output.display()));
    notes.into_values().flatten().for_each(|note| context.note(&note));
    if format == Format::Json {
        out.document(&Document { schema: "rovelog.split/2", file: input.name(), parts: docs })?;
    }
    let status = context.notices.end_of_log(log.as_log(), &input.path);
    let missing = log.info().records.saturating_sub(records);
    if missing == 0 {
        return Ok(status);
    }
    context.notices.warn("records in no part", &format!("no part contains {}", count(missing, "record")));
    Ok(status.max(Status::Lost))
}
