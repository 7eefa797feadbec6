//! The command `rovelog ulog infos`, which shows all information messages of a log.

use std::collections::BTreeMap;
use std::io::Write as _;

use rovelog::Value;
use serde::Serialize;

use crate::context::{Context, Format};
use crate::failure::Outcome;
use crate::input::{Input, LogArgs};
use crate::text::{count, escape};

const EXAMPLES: &str = "\
Examples:
  rovelog ulog infos flight.ulg
  rovelog ulog infos flight.ulg -f json | jq -r .infos.ver_sw";

/// Show all info messages
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    logs: LogArgs,
}

/// JSON document with the schema `rovelog.infos/1`, which `rovelog ulog infos -f json` prints.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    file: String,
    infos: &'a BTreeMap<String, Value>,
    /// Values of the multi information messages (message type `M`) for each key. Each value
    /// consists of several messages.
    lists: &'a BTreeMap<String, Vec<Vec<Value>>>,
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    let format = context.format(&[Format::Text, Format::Json])?;
    args.logs.each(context, |input| one(input, format, context))
}

/// Shows the information messages of one log.
fn one(input: &Input, format: Format, context: &Context) -> Outcome {
    let log = input.open(context)?;
    let ulog = input.ulog(&log)?;
    let (infos, lists) = (ulog.infos(), ulog.multi_infos());
    let mut out = context.out();
    if format == Format::Json {
        let document =
            Document { schema: "rovelog.infos/1", file: input.name(), infos: &infos, lists: &lists };
        out.document(&document)?;
    } else {
        for (key, value) in &infos {
            writeln!(out, "{}: {}", escape(key), shown(value))?;
        }
        for (key, lists) in &lists {
            for parts in lists {
                let parts: Vec<_> = parts.iter().map(shown).collect();
                writeln!(out, "{}[]: {}", escape(key), parts.concat())?;
            }
        }
        out.flush()?;
    }
    Ok(context.notices.end_of_log(log.as_log(), &input.path))
}

/// Formats the value of an information message. Text is written without quotes, and any other value
/// as JSON.
fn shown(value: &Value) -> String {
    match value {
        Value::Text(text) => escape(text).into_owned(),
        Value::Bytes(bytes) => format!("({})", count(bytes.len(), "byte")),
        value => value.to_json(),
    }
}
