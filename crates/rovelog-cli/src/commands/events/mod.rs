//! The command `rovelog events`, which lists the times at which conditions are true. If no
//! condition is given, it lists the events that a PX4 autopilot logged.

mod args;
mod conditions;

use std::borrow::Cow;
use std::io::Write as _;

use rovelog::AnyLog;
use rovelog::core::internal::text::hex;
use rovelog::ulog_format::px4::{self, Change, Entry, Event};
use serde::Serialize;

pub(crate) use self::args::Args;
use crate::context::{Context, Format};
use crate::failure::{Failure, Outcome, Status};
use crate::input::Input;
use crate::output::Out;
use crate::text::{count, escape};
use crate::times::Times;

/// An event in machine-readable output.
#[derive(Serialize)]
struct EventDoc<'a> {
    time: Option<String>,
    t_ns: Option<String>,
    kind: &'static str,
    level: Option<&'static str>,
    text: Cow<'static, str>,
    id: Option<u32>,
    name: Option<&'a str>,
    group: Option<&'a str>,
    sequence: Option<u16>,
    arguments: Option<String>,
    offset: u64,
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    let conditions: Vec<&str> =
        args.arguments.iter().filter_map(|argument| Args::condition(argument)).collect();
    if !conditions.is_empty() {
        return conditions::run(args, &conditions, context);
    }
    let format = context.format(&[Format::Text, Format::Json, Format::Ndjson, Format::Csv])?;
    let inputs = Input::all(&args.files())?;
    let mut without = 0;
    let status = Input::each(&inputs, context, |input| {
        let log = input.open(context)?;
        if inputs.len() > 1 && !matches!(log, AnyLog::Ulog(_)) {
            without += 1;
            return Ok(Status::Done);
        }
        one(args, input, &log, format, context)
    })?;
    if without > 0 {
        let logs = count(without, "log");
        context.note(&format!("{logs} skipped, because only ULog files can contain autopilot events"));
    }
    Ok(status)
}

/// Shows the events of one PX4 log.
fn one(args: &Args, input: &Input, log: &AnyLog, format: Format, context: &Context) -> Outcome {
    let here = |failure: Failure| failure.at(&input.path);
    let times = context.times(log.info()).map_err(here)?;
    // A logged event may be older than the first record. If the time window lies before the first
    // record, this is therefore not reported as an error.
    let window = args.window.resolve(&times, None).map_err(here)?;
    let AnyLog::Ulog(reader) = log else {
        return Err(here(
            Failure::usage(format!(
                "{} logs contain no autopilot events; only ULog files can contain them",
                log.format().name
            ))
            .next("search for a condition instead: rovelog events FILE 'SIGNAL > VALUE'"),
        ));
    };
    let found = px4::events(reader);
    if let Some(problem) = &found.problem {
        context.notices.warn(
            "definitions of events",
            &format!("{problem}; events are shown with their ids instead of texts"),
        );
    }
    let events = found.list.into_iter().filter(|event| args.all || event.is_message());
    let mut lines = px4::timeline(reader, events);
    lines.retain(|line| window.contains(line.time.nanos));
    let mut out = context.out();
    match format {
        Format::Text | Format::Qgc | Format::Octave => {
            for line in &lines {
                write_text(&mut out, line, &times)?;
                out.end_record()?;
            }
        }
        Format::Json | Format::Ndjson => {
            let events = lines.iter().map(|line| doc(line, &times));
            out.list(format, ("rovelog.events/1", "events"), &input.name(), events)?;
        }
        Format::Csv => {
            let rows = lines.iter().map(|line| {
                let EventDoc { t_ns, kind, level, name, text, .. } = doc(line, &times);
                (times.csv(Some(line.time)), t_ns, kind, level, name, text)
            });
            out.csv(["time", "t_ns", "kind", "level", "name", "text"], rows)?;
        }
    }
    out.flush()?;
    Ok(context.notices.end_of_log(log.as_log(), &input.path))
}

fn doc<'a>(line: &'a Change<Entry>, times: &Times) -> EventDoc<'a> {
    let event = line.value.event();
    let words = event.and_then(|event| event.text.as_ref());
    EventDoc {
        time: times.machine(Some(line.time)),
        t_ns: times.t_ns_text(Some(line.time)),
        kind: line.value.kind_name(),
        level: event.map(Event::level_name),
        text: line.value.text(),
        id: event.map(|event| event.id),
        name: words.map(|words| words.name.as_str()),
        group: words.map(|words| words.group.as_str()),
        sequence: event.map(|event| event.sequence),
        arguments: event.map(|event| hex(&event.arguments, "")),
        offset: line.offset,
    }
}

/// Prints one event of the autopilot as text, for example:
///
/// `2024-03-18T14:49:25.282000Z  +00:00:14.9  info      Armed by internal command`
fn write_text(out: &mut Out, line: &Change<Entry>, times: &Times) -> std::io::Result<()> {
    let (time, since) = (times.aligned(Some(line.time)), times.since_start(Some(line.time)));
    let event = line.value.event();
    let word = event.map_or(line.value.kind_name(), Event::level_name);
    let padded = format!("{word:9}");
    let word = match event.map(|event| event.level) {
        Some(0..=3) => out.paint.red(&padded),
        Some(4) => out.paint.yellow(&padded),
        None => out.paint.bold(&padded),
        Some(_) => padded,
    };
    writeln!(out, "{time}  {since}  {word}  {}", escape(&line.value.text()))
}
