//! The command `rovelog topics`, which lists the topics of a log.

use std::io::Write as _;

use clap::ValueEnum;
use rovelog::Topic;

use crate::context::{Context, Format};
use crate::failure::{Outcome, Status};
use crate::input::{Input, LogArgs};
use crate::machine::TopicDoc;
use crate::select::TopicArgs;
use crate::survey::Survey;
use crate::table::Table;
use crate::text::size;

const EXAMPLES: &str = "\
Examples:
  rovelog topics flight.ulg
  rovelog ls flight.ulg --sort bytes           what fills the log?
  rovelog topics flight.ulg -y 'vehicle_.*' -f csv
  rovelog topics flights/ --topics battery_status -f csv";

/// List topics: type, records, rate, size
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    logs: LogArgs,
    #[command(flatten)]
    topics: TopicArgs,
    /// Sort topics by name (default), count, rate or bytes; numbers in descending order
    #[arg(long, value_enum, value_name = "BY", default_value = "name")]
    #[arg(hide_default_value = true, hide_possible_values = true)]
    sort: Sort,
}

#[derive(Clone, Copy, ValueEnum)]
enum Sort {
    Name,
    Count,
    Rate,
    Bytes,
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    let format = context.format(&[Format::Text, Format::Json, Format::Ndjson, Format::Csv])?;
    args.logs.each(context, |input| one(args, input, format, context))
}

/// Lists the topics of one log.
fn one(args: &Args, input: &Input, format: Format, context: &Context) -> Outcome {
    let survey = Survey::for_topics(input, context)?;
    if survey.info.at_least {
        context.note(
            "the counts include only the parts of the log that were read; --allow-remote-scan counts all \
             records",
        );
    }
    let mut topics = args.topics.pick(&survey.topics).map_err(|failure| failure.at(&input.path))?;
    // The sort is stable. Topics are already ordered by name, and topics with equal sort keys stay
    // in this order.
    match args.sort {
        Sort::Name => {}
        Sort::Count => topics.sort_by_key(|topic| std::cmp::Reverse(topic.count)),
        Sort::Bytes => topics.sort_by_key(|topic| std::cmp::Reverse(topic.bytes)),
        Sort::Rate => {
            let hz = |topic: &Topic| topic.rate_hz().unwrap_or_default();
            topics.sort_by(|a, b| hz(b).total_cmp(&hz(a)));
        }
    }
    let mut out = context.out();
    let docs = topics.iter().map(|topic| TopicDoc::new(topic));
    match format {
        Format::Text | Format::Qgc | Format::Octave => table(&topics).write(&mut out)?,
        Format::Json | Format::Ndjson => {
            out.list(format, ("rovelog.topics/2", "topics"), &input.name(), docs)?;
        }
        Format::Csv => {
            let head = ["name", "type", "count", "bytes", "first_ns", "last_ns", "rate_hz"];
            out.csv(head, docs)?;
        }
    }
    out.flush()?;
    Ok(Status::Done)
}

/// Returns the table of topics, which `rovelog topics` and `rovelog info` print.
pub(super) fn table(topics: &[&Topic]) -> Table<'static> {
    let mut table = Table::default().left(["TOPIC", "TYPE"]).right(["COUNT", "RATE Hz", "BYTES"]);
    for topic in topics {
        table.row([
            topic.name.clone(),
            topic.type_name.clone(),
            topic.count.to_string(),
            topic.rate_hz().map_or_else(|| "-".to_owned(), rate),
            if topic.bytes_known { size(topic.bytes) } else { "-".to_owned() },
        ]);
    }
    table
}

/// Formats a rate in Hz with one decimal place, such as `199.9`. A rate below 1 Hz has three
/// decimal places, such as `0.017`.
pub(super) fn rate(hz: f64) -> String {
    if hz < 0.95 { format!("{hz:.3}") } else { format!("{hz:.1}") }
}
