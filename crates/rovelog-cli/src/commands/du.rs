//! The command `rovelog du`, which shows the size of a log by kind of record and topic.

use std::io::Write as _;

use rovelog::Usage;
use serde::Serialize;

use crate::context::{Context, Format};
use crate::failure::{Outcome, Status};
use crate::input::{Input, LogArgs};
use crate::machine::Count;
use crate::table::Table;
use crate::text::size;

const MORE: &str = "\
Every byte is counted exactly once, so the sizes add up to the size of the log. The size of a \
topic includes the headers of its records.

Examples:
  rovelog du flight.ulg                        what fills the log?
  rovelog du flight.ulg -f csv
  rovelog du damaged.bag -f json               how much is unreadable?";

/// Show the size of a log by record kind and topic
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    #[command(flatten)]
    logs: LogArgs,
}

/// Total size of the records that have the same kind and topic.
#[derive(Serialize)]
struct UsageDoc<'a> {
    kind: &'a str,
    topic: Option<&'a str>,
    count: Count,
    bytes: Count,
}

/// JSON document with the schema `rovelog.du/2`, which `rovelog du -f json` prints.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    file: String,
    size: Count,
    usage: Vec<UsageDoc<'a>>,
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    let format = context.format(&[Format::Text, Format::Json, Format::Ndjson, Format::Csv])?;
    args.logs.each(context, |input| one(input, format, context))
}

/// Shows the size of one log.
fn one(input: &Input, format: Format, context: &Context) -> Outcome {
    let log = input.open(context)?;
    let mut usage = log.usage();
    // The sort is stable, so items with equal sizes keep their order in the log.
    usage.sort_by_key(|usage| std::cmp::Reverse(usage.bytes));
    let topic = |usage: &Usage| Some(log.topics()[usage.topic?.index()].name.as_str());
    let docs = usage.iter().map(|usage| UsageDoc {
        kind: usage.kind,
        topic: topic(usage),
        count: Count(usage.count),
        bytes: Count(usage.bytes),
    });
    let mut out = context.out();
    match format {
        Format::Json => {
            let (file, size) = (input.name(), Count(log.info().size));
            out.document(&Document { schema: "rovelog.du/2", file, size, usage: docs.collect() })?;
        }
        Format::Ndjson => docs.into_iter().try_for_each(|doc| out.line(&doc))?,
        Format::Csv => out.csv(["kind", "topic", "count", "bytes"], docs)?,
        _ => {
            let total = log.info().size.max(1);
            let mut table = Table::default().left(["KIND", "TOPIC"]).right(["COUNT", "BYTES", "SHARE"]);
            for found in &usage {
                table.row([
                    found.kind.to_owned(),
                    topic(found).unwrap_or("-").to_owned(),
                    found.count.to_string(),
                    if context.global.verbose { found.bytes.to_string() } else { size(found.bytes) },
                    format!("{:.1} %", found.bytes as f64 * 100.0 / total as f64),
                ]);
            }
            table.write(&mut out)?;
        }
    }
    out.flush()?;
    Ok(Status::Done)
}
