//! The command `rovelog cat`, which prints the records of a log in time order.

use std::cell::OnceCell;

use rovelog::{AnyLog, LogInfo, Select, Topic};
use rovelog_export::signal::Signal;

use crate::context::{Context, Format};
use crate::failure::{Failure, Outcome};
use crate::input::{Input, LogArgs};
use crate::records::{Derived, Records};
use crate::select::{FieldArgs, LastBeforeArgs, TopicArgs, note_further_series};
use crate::window::{WindowArgs, note_outside, span};

const MORE: &str = "\
CSV output needs exactly one topic. Records of stdin are printed in file order. The exit code is 3 \
if a part of the log is damaged or if a value cannot be printed. If cat fails while it prints a \
JSON document, the document ends with the key error, which contains the cause.

Examples:
  rovelog cat flight.ulg -S -10s             the last ten seconds
  rovelog cat flight.ulg --topics vehicle_attitude --fields q -f csv > q.csv
  rovelog cat flight.ulg --topics vehicle_attitude --fields 'q.roll,norm(q)'
  rovelog cat flight.ulg -y 'battery.*' -f ndjson | jq .data.voltage_v
  rovelog cat flights/ --topics battery_status --fields voltage_v -f csv
  gzip -dc flight.ulg.gz | rovelog cat -     from a pipe, in file order";

/// Print records in time order, as text, ndjson, json or csv
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    #[command(flatten)]
    logs: LogArgs,
    #[command(flatten)]
    window: WindowArgs,
    #[command(flatten)]
    topics: TopicArgs,
    #[command(flatten)]
    fields: FieldArgs,
    #[command(flatten)]
    last_before: LastBeforeArgs,
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    let format = context.format(&[Format::Text, Format::Json, Format::Ndjson, Format::Csv])?;
    args.logs.each(context, |input| one(args, input, format, context))
}

/// Prints the records of one log.
fn one(args: &Args, input: &Input, format: Format, context: &Context) -> Outcome {
    if input.is_stdin() {
        return stream(args, input, format, context).map_err(|failure| failure.at(&input.path));
    }
    let log = input.open_records(context, &|log| Ok(selection(args, log, context)?.1))?;
    let written = file(args, &log, input, format, context).map_err(|failure| failure.at(&input.path))?;
    Ok(written.max(context.notices.end_of_log(log.as_log(), &input.path)))
}

/// Prints the records of a file in time order.
fn file(args: &Args, log: &AnyLog, input: &Input, format: Format, context: &Context) -> Outcome {
    let (topics, select, derived) = selection(args, log, context)?;
    note_outside(log.as_log(), &select, context);
    note_further_series(log.as_log(), &args.topics.pick(log.topics())?, context);
    let times = context.times(log.info())?;
    let derived = Derived::new(&**log, &topics, &derived, &select)?;
    let out = Records::new(context, format, &args.fields, &times, &input.path)?;
    let mut out = out.with_derived(derived);
    if format == Format::Csv {
        let [topic] = topics.as_slice() else { return Err(one_topic(&topics)) };
        out.head(topic)?;
    }
    for topic in &topics {
        out.expect(topic);
    }
    context.progress.start(Some(log.info().size));
    let written = out.write_all(log.intact_records(&select));
    out.finish(written)
}

/// Returns the topics and records that the options select, and the derived fields and expressions
/// that are added to the records.
fn selection<'a>(
    args: &Args,
    log: &'a AnyLog,
    context: &Context,
) -> Result<(Vec<&'a Topic>, Select, Vec<Signal>), Failure> {
    let mut topics = args.topics.pick(log.topics())?;
    let derived = args.fields.derived(&**log, &topics, false)?;
    topics.retain(|topic| {
        args.fields.selected_leaves(topic).is_some()
            || derived.iter().any(|signal| signal.topics() == [&*topic.name])
    });
    let window = args.window.resolve(&context.times(log.info())?, span(&**log))?;
    let select =
        Select::topics(topics.iter().map(|topic| topic.name.clone())).between(window.start, window.end);
    let select = args.last_before.add_to(select, &topics)?;
    Ok((topics, select, derived))
}

fn one_topic(topics: &[&Topic]) -> Failure {
    let next = match topics.first() {
        Some(topic) => format!("name one topic: rovelog cat FILE -f csv --topics {}", topic.name),
        None => "list the topics: rovelog topics FILE".to_owned(),
    };
    Failure::usage(format!("CSV output needs exactly one topic, but {} are selected", topics.len()))
        .next(next)
}

/// Prints the records of stdin in file order, as they arrive.
fn stream(args: &Args, input: &Input, format: Format, context: &Context) -> Outcome {
    if !args.last_before.is_empty() {
        return Err(Failure::usage("--latched needs a file, because a pipe cannot be read twice"));
    }
    if let Some(text) = args.fields.expression() {
        return Err(Failure::usage(format!(
            "{text} needs a file, because it is computed from a whole topic"
        )));
    }
    let mut stream = input.stream(context)?;
    // The format of times is determined from the header and the first record. At this time, the
    // end of the log and, in many logs, the offset to UTC are still unknown.
    let mut info = stream.info();
    info.end = None;
    let times = OnceCell::new();
    let resolve = |info: &LogInfo| {
        let known = context.times(info)?;
        let times = times.get_or_init(|| known);
        let window = args.window.resolve(times, None)?;
        Ok::<_, Failure>((window, Records::new(context, format, &args.fields, times, &input.path)?))
    };
    let mut resolved = None;
    // CSV output contains only this topic.
    let mut only: Option<Topic> = None;
    let mut read = || -> Result<(), Failure> {
        while let Some(record) = stream.next_record()? {
            context.progress.at(record.offset);
            if resolved.is_none() {
                // If the header contains no start, the log starts with the first record.
                info.start = info.start.or(record.time);
            }
            let (window, out) = match &mut resolved {
                Some(resolved) => resolved,
                none => none.insert(resolve(&info)?),
            };
            let inside = record.time.is_none_or(|time| window.contains(time.nanos));
            if !inside || !args.topics.selects(record.topic) {
                continue;
            }
            match &only {
                _ if format != Format::Csv => {}
                None => {
                    out.head(record.topic)?;
                    only = Some(record.topic.clone());
                }
                Some(topic) if topic.id != record.topic.id => {
                    return Err(one_topic(&[topic, record.topic]));
                }
                Some(_) => {}
            }
            out.expect(record.topic);
            out.write(&record)?;
            if context.global.strict {
                input.refuse_damage(stream.diagnostics(), context)?;
            }
        }
        Ok(())
    };
    // If reading fails, the output is completed anyway. A JSON document then remains valid and
    // contains the error message.
    let read = read();
    let (_, out) = resolved.map_or_else(|| resolve(&info), Ok)?;
    let written = out.finish(read)?;
    input.refuse_damage(stream.diagnostics(), context)?;
    // The topics of a log on stdin are known only at its end, so names that match no topic or field
    // are reported last.
    args.topics.require_matches(stream.topics())?;
    args.fields.require_matches(
        &stream.topics().iter().filter(|topic| args.topics.selects(topic)).collect::<Vec<_>>(),
    )?;
    context.notices.escaped(&stream.take_escaped_texts(), &input.path);
    let lost = stream.diagnostics().ledger().clone();
    Ok(written.max(context.notices.loss(&lost, &input.path)))
}
