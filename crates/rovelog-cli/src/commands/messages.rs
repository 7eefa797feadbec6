//! The command `rovelog messages`, which shows the console messages that the device logged.

use std::io::Write as _;

use std::collections::HashMap;

use regex::Regex;
use rovelog::{Text, Timestamp};
use serde::Serialize;

use crate::context::{Context, Format};
use crate::failure::{Failure, Outcome};
use crate::input::{Input, LogArgs};
use crate::machine::Count;
use crate::output::Out;
use crate::select::partial_name;
use crate::text::escape;
use crate::times::Times;
use crate::window::WindowArgs;

const EXAMPLES: &str = "\
Examples:
  rovelog messages flight.ulg
  rovelog messages flight.ulg --level warning  warnings and worse
  rovelog messages flight.ulg -g 'baro|gps' -f csv
  rovelog messages flight.ulg --fold           each message only once
  rovelog messages flights/ --level error      of all logs in a folder";

/// Show the console messages that the device logged
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    logs: LogArgs,
    /// Show only messages of this or a higher severity: emergency (highest), alert, critical,
    /// error, warning, notice, info or debug; default: all
    #[arg(long, value_name = "LEVEL", value_parser = level)]
    level: Option<u8>,
    /// Show only messages that contain a match of this regular expression
    #[arg(short, long, value_name = "REGEX", value_parser = partial_name)]
    grep: Option<Regex>,
    /// Show a message that occurs several times only once, with the number of times and the time of
    /// the last
    #[arg(long)]
    fold: bool,
    #[command(flatten)]
    window: WindowArgs,
}

/// Abbreviated names of the severity levels, for text output.
const SHORT: [&str; 8] = ["EMERG", "ALERT", "CRIT", "ERROR", "WARN", "NOTICE", "INFO", "DEBUG"];

/// Parses a severity level. It is given by its name, by the start of its name (such as `warn` or
/// `err`), or by its number.
fn level(text: &str) -> Result<u8, String> {
    let lower = text.to_lowercase();
    // A single letter is not accepted, because it may be ambiguous. For example, `e` could mean
    // `emergency` or `error`.
    let by_name =
        rovelog::core::record::LEVELS.iter().position(|name| lower.len() > 1 && name.starts_with(&lower));
    let number = lower.parse::<usize>().ok().filter(|number| *number < SHORT.len());
    by_name
        .or(number)
        .and_then(|level| u8::try_from(level).ok())
        .ok_or_else(|| format!("expected one of {}", rovelog::core::record::LEVELS.join(", ")))
}

/// A console message in machine-readable output.
#[derive(Serialize)]
struct Line<'a> {
    time: Option<String>,
    t_ns: Option<String>,
    level: &'static str,
    severity: u8,
    source: Option<&'a str>,
    text: &'a str,
    offset: u64,
    /// Number of times that the message occurs. Present only with `--fold`, like the next key.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<Count>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_t_ns: Option<String>,
}

/// A console message and its repetitions.
struct Folded {
    first: Text,
    count: u64,
    last: Option<Timestamp>,
}

/// Joins messages with the same level, source and text. Each is at the place of its first
/// occurrence.
fn fold(texts: impl Iterator<Item = Text>) -> Vec<Folded> {
    let mut folded: Vec<Folded> = Vec::new();
    let mut positions = HashMap::new();
    for text in texts {
        let key = (text.level, text.source.clone(), text.text.clone());
        let position = *positions.entry(key).or_insert(folded.len());
        match folded.get_mut(position) {
            Some(known) => {
                known.count += 1;
                known.last = text.time;
            }
            None => folded.push(Folded { last: text.time, first: text, count: 1 }),
        }
    }
    folded
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    let format = context.format(&[Format::Text, Format::Json, Format::Ndjson, Format::Csv])?;
    args.logs.each(context, |input| one(args, input, format, context))
}

/// Shows the console messages of one log.
fn one(args: &Args, input: &Input, format: Format, context: &Context) -> Outcome {
    let log = input.open(context)?;
    let here = |failure: Failure| failure.at(&input.path);
    let Some(texts) = log.texts() else {
        return Err(here(
            Failure::usage(format!("{} logs cannot contain console messages", log.format().name))
                .next("list what the log contains: rovelog topics FILE"),
        ));
    };
    let times = context.times(log.info()).map_err(here)?;
    // A console message may be older than the first record. If the time window lies before the
    // first record, this is therefore not reported as an error.
    let window = args.window.resolve(&times, None).map_err(here)?;
    let keep = |text: &Text| {
        args.level.is_none_or(|level| text.level <= level)
            && args.grep.as_ref().is_none_or(|grep| grep.is_match(&text.text))
            && text.time.is_none_or(|time| window.contains(time.nanos))
    };
    let texts = texts.filter(keep);
    let mut texts: Box<dyn Iterator<Item = Folded>> = if args.fold {
        Box::new(fold(texts).into_iter())
    } else {
        Box::new(texts.map(|text| Folded { last: None, first: text, count: 1 }))
    };
    let mut out = context.out();
    match format {
        Format::Text | Format::Ndjson | Format::Qgc | Format::Octave => texts.try_for_each(|text| {
            match format {
                Format::Text => write_text(&mut out, &text, &times, context)?,
                _ => out.line(&machine(&text, &times, args.fold))?,
            }
            out.end_record()
        })?,
        Format::Json => {
            let texts: Vec<_> = texts.collect();
            let messages = texts.iter().map(|text| machine(text, &times, args.fold));
            out.list(format, ("rovelog.messages/1", "messages"), &input.name(), messages)?;
        }
        Format::Csv => {
            let cells = |folded: &Folded| {
                let Line { t_ns, level, source, text, .. } = machine(folded, &times, args.fold);
                let time = times.csv(folded.first.time);
                let source = source.unwrap_or_default().to_owned();
                [time, t_ns.unwrap_or_default(), level.to_owned(), source, text.to_owned()]
            };
            if args.fold {
                let head = ["time", "t_ns", "level", "source", "text", "count", "last_t_ns"];
                let last = |folded: &Folded| machine(folded, &times, true).last_t_ns;
                out.csv(head, texts.map(|folded| (cells(&folded), folded.count, last(&folded))))?;
            } else {
                out.csv(["time", "t_ns", "level", "source", "text"], texts.map(|folded| cells(&folded)))?;
            }
        }
    }
    out.flush()?;
    Ok(context.notices.end_of_log(log.as_log(), &input.path))
}

fn machine<'a>(folded: &'a Folded, times: &Times, is_folded: bool) -> Line<'a> {
    let text = &folded.first;
    let last = || times.t_ns_text(folded.last);
    Line {
        time: times.machine(text.time),
        t_ns: times.t_ns_text(text.time),
        level: text.level_name(),
        severity: text.level,
        source: text.source.as_deref(),
        text: &text.text,
        offset: text.offset,
        count: is_folded.then_some(Count(folded.count)),
        last_t_ns: is_folded.then(last).flatten(),
    }
}

/// Prints one console message as text, for example:
///
/// `2026-05-20T12:01:05.346000Z  +00:02:33.2  ERROR   [sensors] no barometer found`
fn write_text(out: &mut Out, folded: &Folded, times: &Times, context: &Context) -> std::io::Result<()> {
    let text = &folded.first;
    let mut time = times.aligned(text.time);
    let epoch = |time: Timestamp| times.epoch(time).filter(|_| context.global.verbose);
    if let Some(epoch) = text.time.and_then(epoch) {
        time = format!("{time}  {epoch}");
    }
    let since = times.since_start(text.time);
    let level = format!("{:6}", SHORT[usize::from(text.level.min(7))]);
    let level = match text.level {
        0..=3 => out.paint.red(&level),
        4 => out.paint.yellow(&level),
        _ => level,
    };
    let source = text.source.as_ref().map(|source| format!("{}: ", escape(source))).unwrap_or_default();
    // All lines of a message after the first are indented, so that they are not mistaken for
    // separate messages.
    let lines: Vec<_> = text.text.trim_end().lines().map(escape).collect();
    write!(out, "{time}  {since}  {level}  {source}{}", lines.join("\n    "))?;
    if folded.count > 1 {
        let last = times.since_start(folded.last);
        write!(out, "  ({} times, last at {last})", folded.count)?;
    }
    writeln!(out)
}
