//! Prints the times at which conditions are true, for example `rovelog events FILE
//! 'battery_status.voltage_v < 3.4 for 2s'`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;

use rovelog::{AnyLog, Select};
use rovelog_export::Loss;
use rovelog_export::signal::{Condition, Event, Signals};
use rovelog_export::statistics::short;
use serde::Serialize;

use super::args::Args;
use crate::context::{Context, Format};
use crate::failure::{Failure, Outcome, Status};
use crate::input::Input;
use crate::machine::Count;
use crate::output::Out;
use crate::select::signal_failure;
use crate::text::{cell, count, escape};
use crate::times::Times;
use crate::window::span;
use rovelog_export::duration_text;

/// A period during which a condition was true, in machine-readable output.
#[derive(Serialize)]
struct EventDoc {
    /// Name of the log, if the command reads several logs.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    condition: Option<String>,
    time: Option<String>,
    t_ns: String,
    end_ns: String,
    duration_ns: String,
    /// True if the condition is still true at the last row, so that the end of the period is
    /// unknown.
    open: bool,
    rows: Count,
    min: Option<f64>,
    max: Option<f64>,
    from: Option<f64>,
    to: Option<f64>,
}

/// All periods during which one condition was true.
#[derive(Serialize)]
struct ConditionDoc {
    condition: String,
    unit: Option<String>,
    events: Vec<EventDoc>,
}

/// JSON document with the schema `rovelog.conditions/2`, which `rovelog events` prints for
/// conditions.
#[derive(Serialize)]
struct Document {
    schema: &'static str,
    file: String,
    conditions: Vec<ConditionDoc>,
}

/// Destination of the found periods, with a variant for each output format.
enum Sink {
    Text(Out),
    Ndjson(Out),
    Csv(Box<csv::Writer<Out>>),
    Json(Out, Vec<Document>),
}

impl Sink {
    fn new(format: Format, out: Out) -> Result<Self, Failure> {
        Ok(match format {
            Format::Json => Self::Json(out, Vec::new()),
            Format::Ndjson => Self::Ndjson(out),
            Format::Csv => {
                let mut csv = Box::new(csv::Writer::from_writer(out));
                csv.write_record(CSV)?;
                Self::Csv(csv)
            }
            _ => Self::Text(out),
        })
    }

    /// Writes the JSON documents of `logs` logs, and flushes the output.
    fn finish(self, logs: usize) -> std::io::Result<()> {
        match self {
            Self::Text(mut out) | Self::Ndjson(mut out) => out.flush(),
            Self::Csv(mut csv) => csv.flush(),
            Self::Json(mut out, documents) => {
                out.documents(&documents, logs)?;
                out.flush()
            }
        }
    }
}

pub(super) fn run(args: &Args, conditions: &[&str], context: &Context) -> Outcome {
    let format = context.format(&[Format::Text, Format::Json, Format::Ndjson, Format::Csv])?;
    let inputs = Input::all(&args.files())?;
    let mut sink = Sink::new(format, context.out())?;
    let mut total = 0;
    let several = inputs.len() > 1;
    // Numbers of logs that lack a signal of a condition, by reason.
    let mut lacking: BTreeMap<String, usize> = BTreeMap::new();
    let mut each = |input: &Input| -> Outcome {
        // A condition over several topics may need values from before the time window, so the whole
        // log is opened.
        let log = input.open(context)?;
        let signals = Signals::new(&*log);
        let parsed = conditions.iter().map(|text| Condition::new(&signals, text));
        let parsed = match parsed.collect::<Result<Vec<_>, _>>() {
            Ok(parsed) => parsed,
            // Another log may have the signal, so the remaining logs are still read.
            Err(lack) if several => {
                *lacking.entry(lack.cause).or_default() += 1;
                return Ok(Status::Done);
            }
            Err(lack) => return Err(signal_failure(lack).at(&input.path)),
        };
        let file = several.then(|| input.name());
        let found = one(args, &log, input, &parsed, file.as_deref(), context, &mut sink);
        let (events, losses) = found.map_err(|failure| failure.at(&input.path))?;
        total += events;
        let lost = context.notices.losses(&losses);
        Ok(lost.max(context.notices.end_of_log(log.as_log(), &input.path)))
    };
    let status = match &inputs[..] {
        // If there is only one log, an invalid condition counts as an invalid argument, with exit
        // code 2.
        [input] => each(input)?,
        inputs => Input::for_all(inputs, context, each)?,
    };
    sink.finish(inputs.len())?;
    for (cause, logs) in &lacking {
        context.notices.warn("reasons", &format!("{} skipped: {cause}", count(*logs as u64, "log")));
    }
    if lacking.values().sum::<usize>() == inputs.len() {
        return Err(Failure::failed("no log has the signals of the conditions")
            .next("list the topics of a log: rovelog topics FILE"));
    }
    if total == 0 {
        context.note("no condition holds at any time");
    }
    Ok(if args.exit_code && total == 0 { Status::Failed } else { status })
}

const CSV: [&str; 11] =
    ["file", "condition", "time", "t_ns", "end_ns", "duration_ns", "rows", "min", "max", "from", "to"];

/// Writes the events found in one log. Returns the number of events, and the records that were
/// skipped because they cannot be decoded.
fn one(
    args: &Args,
    log: &AnyLog,
    input: &Input,
    conditions: &[Condition],
    file: Option<&str>,
    context: &Context,
    sink: &mut Sink,
) -> Result<(u64, Vec<Loss>), Failure> {
    let times = context.times(log.info())?;
    let window = args.window.resolve(&times, span(&**log))?;
    let select = Select::all().between(window.start, window.end);
    let (mut total, mut documents, mut topics) = (0, Vec::new(), BTreeSet::new());
    for condition in conditions {
        let mut line = Line { log, times: &times, condition, file: file.map(str::to_owned) };
        let (mut events, mut failure) = (Vec::new(), None);
        // The callback cannot return an error. Its first failure is stored, and returned after all
        // events have been found.
        let read = condition.each(&**log, &select, &mut |event| {
            total += 1;
            if failure.is_none() {
                failure = line.write(&event, sink, &mut events).err();
            }
        });
        if let Some(failure) = failure {
            return Err(failure);
        }
        read.map_err(Failure::from)?;
        topics.extend(condition.topics().into_iter().map(str::to_owned));
        let unit = condition.unit().map(str::to_owned);
        documents.push(ConditionDoc { condition: condition.as_str().to_owned(), unit, events });
    }
    if let Sink::Json(_, all) = sink {
        all.push(Document { schema: "rovelog.conditions/2", file: input.name(), conditions: documents });
    }
    let read = Select::topics(topics).between(window.start, window.end);
    Ok((total, Loss::of_columns(&**log, &read)))
}

/// The log, the condition and the formatter of times with which the events of one condition are
/// written.
struct Line<'a> {
    log: &'a AnyLog,
    times: &'a Times,
    condition: &'a Condition,
    file: Option<String>,
}

impl Line<'_> {
    fn write(&mut self, event: &Event, sink: &mut Sink, events: &mut Vec<EventDoc>) -> Result<(), Failure> {
        match sink {
            Sink::Text(out) => self.text(event, out),
            Sink::Ndjson(out) => {
                let condition = Some(self.condition.as_str().to_owned());
                Ok(out.line(&EventDoc { file: self.file.clone(), condition, ..self.doc(event) })?)
            }
            Sink::Csv(csv) => {
                let doc = self.doc(event);
                csv.write_record([
                    self.file.clone().unwrap_or_default(),
                    self.condition.as_str().to_owned(),
                    self.times.csv(Some(self.times.at(event.start))),
                    doc.t_ns,
                    doc.end_ns,
                    doc.duration_ns,
                    doc.rows.to_string(),
                    cell(doc.min),
                    cell(doc.max),
                    cell(doc.from),
                    cell(doc.to),
                ])?;
                Ok(())
            }
            Sink::Json(..) => {
                events.push(self.doc(event));
                Ok(())
            }
        }
    }

    fn doc(&self, event: &Event) -> EventDoc {
        let nanos = |time: i64| self.times.t_ns(Some(self.times.at(time))).unwrap_or(time).to_string();
        EventDoc {
            file: None,
            condition: None,
            time: self.times.machine(Some(self.times.at(event.start))),
            t_ns: nanos(event.start),
            end_ns: nanos(event.end),
            duration_ns: event.end.abs_diff(event.start).to_string(),
            open: event.is_open,
            rows: Count(event.rows),
            min: event.min,
            max: event.max,
            from: event.from,
            to: event.to,
        }
    }

    /// Prints one event, for example `2024-03-18T14:49:25.282Z  +00:00:14.9  2.35s  3.21 to 3.39 V
    /// voltage_v < 3.4`.
    fn text(&self, event: &Event, out: &mut Out) -> Result<(), Failure> {
        let start = Some(self.times.at(event.start));
        let (time, since) = (self.times.aligned(start), self.times.since_start(start));
        let mut duration = duration_text(event.end.saturating_sub(event.start));
        if event.is_open {
            duration.push('+');
        }
        // Integers are printed with all digits. Other numbers are rounded, because this text is for
        // people, and machine-readable output has all digits.
        let number = |value: f64| {
            let is_whole = value.fract() == 0.0 && value.abs() < 1e15;
            if is_whole { value.to_string() } else { short(Some(value)) }
        };
        let state = |value: f64| {
            let name = self.condition.state(&**self.log, value);
            name.map_or_else(|| number(value), str::to_owned)
        };
        let unit = self.condition.unit().map(|unit| format!(" {unit}")).unwrap_or_default();
        let what = match (event.from.zip(event.to), event.min.zip(event.max)) {
            (Some((from, to)), _) => format!("{} -> {}{unit}", state(from), state(to)),
            (_, Some((min, max))) if min.to_bits() == max.to_bits() => format!("{}{unit}", state(min)),
            (_, Some((min, max))) => format!("{} to {}{unit}", number(min), number(max)),
            _ => "-".to_owned(),
        };
        let file = self.file.as_ref().map(|file| format!("{}: ", escape(file))).unwrap_or_default();
        let condition = escape(self.condition.as_str());
        writeln!(out, "{file}{time}  {since}  {duration:>12}  {what:24}  {condition}")?;
        Ok(out.end_record()?)
    }
}
