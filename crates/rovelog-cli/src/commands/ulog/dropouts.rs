//! The command `rovelog ulog dropouts`. It lists the times at which the logger could not write, and
//! estimates how many records were lost.

use std::io::Write as _;

use serde::Serialize;

use crate::context::{Context, Format};
use crate::failure::Outcome;
use crate::input::{Input, LogArgs};
use crate::machine::Count;
use crate::text::{count, escape};

const MORE: &str = "\
The number of lost records is estimated from the rate of the topic and from the time between its \
last record before the dropout and its first record after it. Topics without a steady rate are not \
listed.

Examples:
  rovelog ulog dropouts flight.ulg
  rovelog ulog dropouts flight.ulg -f json | jq '.dropouts[].topics[].missing'";

/// List dropouts and how many records each topic lost
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(super) struct Args {
    #[command(flatten)]
    logs: LogArgs,
}

#[derive(Serialize)]
struct DropoutDoc {
    time: Option<String>,
    t_ns: Option<String>,
    milliseconds: u16,
    offset: Count,
    topics: Vec<LossDoc>,
}

#[derive(Serialize)]
struct LossDoc {
    name: String,
    gap_ns: String,
    period_ns: String,
    /// Estimated number of missing records, which is the number of whole sample periods in the gap.
    missing: Count,
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    let format = context.format(&[Format::Text, Format::Json])?;
    args.logs.each(context, |input| one(input, format, context))
}

/// Lists the dropouts of one ULog file.
fn one(input: &Input, format: Format, context: &Context) -> Outcome {
    let log = input.open(context)?;
    let ulog = input.ulog(&log)?;
    let times = context.times(log.info()).map_err(|failure| failure.at(&input.path))?;
    let (dropouts, losses) = (ulog.dropouts(), ulog.dropout_losses());
    let mut out = context.out();
    if format == Format::Json {
        let loss = |loss: &rovelog::ulog_format::DropoutLoss| LossDoc {
            name: log.topics()[loss.topic.index()].name.clone(),
            gap_ns: loss.gap.to_string(),
            period_ns: loss.period.to_string(),
            missing: Count(loss.missing),
        };
        let dropouts = dropouts.iter().enumerate().map(|(number, dropout)| DropoutDoc {
            time: times.machine(dropout.time),
            t_ns: times.t_ns_text(dropout.time),
            milliseconds: dropout.millis,
            offset: Count(dropout.offset),
            topics: losses.iter().filter(|loss| loss.dropout == number).map(loss).collect(),
        });
        out.list(format, ("rovelog.dropouts/2", "dropouts"), &input.name(), dropouts)?;
        return Ok(context.notices.end_of_log(log.as_log(), &input.path));
    }
    for (number, dropout) in dropouts.iter().enumerate() {
        writeln!(out, "{}  {} ms", times.aligned(dropout.time), dropout.millis)?;
        for loss in losses.iter().filter(|loss| loss.dropout == number) {
            let name = escape(&log.topics()[loss.topic.index()].name);
            let (gap, missing) = (loss.gap as f64 / 1e6, count(loss.missing, "record"));
            writeln!(out, "  {name}: gap of {gap:.1} ms, about {missing} missing")?;
        }
        out.end_record()?;
    }
    if dropouts.is_empty() {
        writeln!(out, "the log has no dropouts")?;
    }
    out.flush()?;
    Ok(context.notices.end_of_log(log.as_log(), &input.path))
}
