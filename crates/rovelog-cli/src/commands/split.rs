//! `rovelog split`: a log in parts, by time or by topic, each a log of its own.

use std::fs;
use std::path::{Path, PathBuf};

use rovelog::{LogReader, Select, Sliced};
use serde::Serialize;

use crate::args::{Context, Format};
use crate::commands::cat::span;
use crate::input::Input;
use crate::outfile::{OutArgs, OutFile, topic_files};
use crate::output::Out;
use crate::report::{Failure, Outcome, count, note};
use crate::when::duration;

const MORE: &str = "\
Every part holds all definitions and information, and the parameters in force when it begins. Parts
without anything in them are not written. The paths of the parts go to stdout.

Examples:
  rovelog split flight.ulg -o parts --every 60s
  rovelog split flight.ulg -o topics --by-topic";

/// The most parts of one log.
const MOST: i64 = 10_000;

/// Write a log in parts, by time or by topic
#[derive(clap::Args)]
#[command(after_help = MORE)]
#[command(group(clap::ArgGroup::new("how").required(true).args(["every", "by_topic"])))]
pub(crate) struct Args {
    /// A log; - is stdin
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The folder for the parts; it is made where it is missing
    #[arg(short, long, value_name = "DIR", required = true)]
    output: PathBuf,
    /// A part for each span of this length, from the start of the log: 60s, 5m, 500ms
    #[arg(long, value_name = "SPAN", value_parser = every)]
    every: Option<i64>,
    /// A part for each topic that has records
    #[arg(long)]
    by_topic: bool,
    #[command(flatten)]
    out: OutArgs,
}

fn every(text: &str) -> Result<i64, String> {
    match duration(text)? {
        0 => Err("a part cannot be without length".to_owned()),
        nanos => Ok(nanos),
    }
}

/// A part that was written.
#[derive(Serialize)]
struct PartDoc {
    file: String,
    records: String,
    bytes: String,
    /// Only with `--by-topic`.
    topic: Option<String>,
}

/// The document `rovelog.split/1`.
#[derive(Serialize)]
struct Document {
    schema: &'static str,
    file: String,
    parts: Vec<PartDoc>,
}

/// A part to be written.
struct Part {
    path: PathBuf,
    select: Select,
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    let format = context.format(&[Format::Text, Format::Json])?;
    let input = Input::new(args.file.as_deref())?;
    let log = input.open(context)?;
    let here = |failure: Failure| failure.at(&input.path);
    let stem = if input.is_stdin() { None } else { input.path.file_stem() };
    let stem = stem.map_or_else(|| "part".into(), |stem| stem.to_string_lossy().into_owned());
    let parts = match args.every {
        Some(every) => by_time(&*log, every, &args.output, &stem).map_err(here)?,
        None => by_topic(&*log, &args.output, &stem),
    };
    // Before the first part is written: whoever has to name another folder finds this one as it was.
    if let Some(part) = parts.iter().find(|part| !args.out.force && part.path.exists()) {
        return Err(Failure::usage("a part exists already")
            .next("name another folder, or replace the parts in this one: --force")
            .at(&part.path));
    }
    if args.output.exists() && !args.output.is_dir() {
        return Err(Failure::usage("the output is a file, not a folder")
            .next("name a folder, which need not exist")
            .at(&args.output));
    }
    fs::create_dir_all(&args.output)
        .map_err(|error| Failure::failed(format!("cannot make the folder: {error}")).at(&args.output))?;
    let mut docs = Vec::new();
    let mut out = context.out();
    let mut records = 0;
    for part in &parts {
        let Some(report) = write(&*log, part, &input, args.out)? else { continue };
        records += report.records;
        if format == Format::Text {
            path_line(&mut out, &part.path)?;
        }
        docs.push(PartDoc {
            file: part.path.to_string_lossy().into_owned(),
            records: report.records.to_string(),
            bytes: report.bytes.to_string(),
            topic: part.select.topics.as_ref().and_then(|topics| topics.first().cloned()),
        });
    }
    std::io::Write::flush(&mut out)?;
    if !context.global.quiet {
        let (parts, of) = (count(docs.len() as u64, "part"), count(log.info().records, "record"));
        note(&format!("kept {records} of {of}; wrote {parts} to {}", args.output.display()));
    }
    if format == Format::Json {
        out.document(&Document { schema: "rovelog.split/1", file: input.name(), parts: docs })?;
    }
    Ok(context.report.loss(&log.info().lost, &input.path))
}

fn path_line(out: &mut Out, path: &Path) -> std::io::Result<()> {
    use std::io::Write as _;
    writeln!(out, "{}", crate::output::escape(&path.to_string_lossy()))
}

/// Writes a part; `None` where there is nothing in it.
fn write(log: &dyn LogReader, part: &Part, input: &Input, args: OutArgs) -> Result<Option<Sliced>, Failure> {
    let mut file = OutFile::create(&part.path, &[&input.path], args)?;
    let report = log.slice(&part.select, &mut file).map_err(|error| Failure::from(error).at(&input.path))?;
    if report.is_empty() {
        return Ok(None);
    }
    file.finish()?;
    Ok(Some(report))
}

/// The file name extension of the log's format.
fn extension(log: &dyn LogReader) -> &'static str {
    log.format().extensions[0]
}

/// Parts by time. The first and the last are open, for what has a time outside the log's.
fn by_time(log: &dyn LogReader, every: i64, folder: &Path, stem: &str) -> Result<Vec<Part>, Failure> {
    let start = log.info().start.map_or(0, |time| time.nanos);
    let end = span(log).map_or(start, |(_, last)| last.max(start));
    let parts = (end - start) / every + 1;
    if parts > MOST {
        return Err(Failure::usage(format!("that would be {parts} parts, and {MOST} are the most"))
            .next("choose a longer span: --every 60s"));
    }
    let width = parts.to_string().len();
    let extension = extension(log);
    let part = |number: i64| {
        let at = |number: i64| number.checked_mul(every).and_then(|after| start.checked_add(after));
        let from = if number == 0 { None } else { at(number) };
        let to = if number + 1 == parts { None } else { at(number + 1) };
        let path = folder.join(format!("{stem}_{:0width$}.{extension}", number + 1));
        Part { path, select: Select::all().between(from, to) }
    };
    Ok((0..parts).map(part).collect())
}

fn by_topic(log: &dyn LogReader, folder: &Path, stem: &str) -> Vec<Part> {
    let topics: Vec<_> = log.topics().iter().filter(|topic| topic.count > 0).collect();
    let names = topic_files(stem, &topics, extension(log));
    let part = |(topic, name): (&&rovelog::Topic, String)| Part {
        path: folder.join(name),
        select: Select::topics([topic.name.clone()]),
    };
    topics.iter().zip(names).map(part).collect()
}
