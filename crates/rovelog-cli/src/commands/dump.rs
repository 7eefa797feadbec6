//! The command `rovelog dump`, which shows the structures of a log around a byte.

use std::io::Write as _;
use std::ops::Range;

use rovelog::core::{Around, FieldPlace, Region, Structure};
use rovelog::{AnyLog, Diagnostic};
use serde_json::{Value as Json, json};

use super::check;
use crate::context::{Context, Format};
use crate::failure::{Failure, Outcome, Status};
use crate::input::LogArg;
use crate::machine::{Count, ProblemDoc};
use crate::output::Out;
use crate::table::Table;
use crate::text::escape;
use crate::times::Times;

/// Maximum number of problems that are shown.
const MAX_PROBLEMS: usize = 20;

const MORE: &str = "\
The first table shows the record, header or block that contains the byte, with a few others before \
and after it. The second table shows its fields as the specification declares them, with their \
offsets in the file. The character > marks the byte, and § names a section of the specification. If \
the byte is damaged, the last lines show from where to where, and why.

An offset is a decimal number, or a hexadecimal number that starts with 0x. The byte ranges that \
rovelog check prints are such offsets. In a log that is compressed as a whole, offsets count \
decompressed bytes. In a recording of several files, they count from the start of the first file. \
The records of a compressed chunk of a bag are listed with their offsets in the decompressed chunk.

Examples:
  rovelog dump flight.ulg                      the header
  rovelog dump flight.ulg --at 0x1f40
  rovelog dump damaged.bag --at 4120 --context 5
  rovelog dump power.rld --at 1000 -f json | jq .fields";

/// Show the structures around a byte of a log
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    #[command(flatten)]
    log: LogArg,
    /// Offset of the byte, for example 8000 or 0x1f40
    #[arg(long, value_name = "OFFSET", default_value = "0", value_parser = parse_offset, hide_default_value = true)]
    at: u64,
    /// Number of records before and after, each in one line
    #[arg(long, value_name = "N", default_value = "2")]
    context: usize,
}

/// Parses a decimal offset, or a hexadecimal offset that starts with `0x`.
fn parse_offset(text: &str) -> Result<u64, String> {
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let offset = match hexadecimal {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    offset.map_err(|_| "an offset is a number such as 8000 or 0x1f40".to_owned())
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    let format = context.format(&[Format::Text, Format::Json])?;
    let input = args.log.input()?;
    let log = input.open_all(context)?;
    let (at, size) = (args.at, log.info().size);
    if at >= size {
        let cause = format!("the log has {size} bytes, so there is no byte at offset {at}");
        let next = format!("show the last byte: rovelog dump FILE --at {}", size.saturating_sub(1));
        return Err(Failure::usage(cause).next(next).at(&input.path));
    }
    let found = log.structure_at(Around { at, context: args.context });
    let times = context.times(log.info()).map_err(|failure| failure.at(&input.path))?;
    let mut out = context.out();
    match format {
        Format::Json => out.document(&document(&input.name(), &log, &found, &times, at))?,
        _ => text(&mut out, &log, &found, &times, at)?,
    }
    out.flush()?;
    Ok(Status::Done)
}

/// Returns the JSON document with the schema `rovelog.dump/1`.
fn document(file: &str, log: &AnyLog, found: &Structure, times: &Times, at: u64) -> Json {
    let region = |region: &Region| {
        json!({
            "offset": Count(region.range.start), "length": Count(length(&region.range)), "kind": region.kind,
            "topic": topic(log, region), "time": times.machine(region.time),
            "t_ns": times.t_ns_text(region.time),
            "contains_byte": region.range.contains(&at),
        })
    };
    let field = |(index, field): (usize, &FieldPlace)| {
        json!({
            "offset": Count(field.range.start), "length": Count(length(&field.range)), "depth": field.depth,
            "name": field.name, "value": field.value, "section": field.section,
            "contains_byte": found.field_at(at) == Some(index),
        })
    };
    json!({
        "schema": "rovelog.dump/1", "file": file, "size": Count(log.info().size),
        "offset": Count(at),
        "regions": regions(found).map(region).collect::<Vec<_>>(),
        "fields": found.fields.iter().enumerate().map(field).collect::<Vec<_>>(),
        "problems": problems(log, found).map(ProblemDoc::new).collect::<Vec<_>>(),
    })
}

fn text(out: &mut Out, log: &AnyLog, found: &Structure, times: &Times, at: u64) -> Result<(), Failure> {
    let (size, Region { kind, range, .. }) = (log.info().size, &found.region);
    writeln!(out, "byte {at} (0x{at:x}) of {size} is in: {kind}, bytes {}..{}\n", range.start, range.end)?;
    let offset = |range: &Range<u64>, marked| format!("{}{}", if marked { "> " } else { "" }, range.start);
    let table = Table::default().right(["offset", "length"]).left(["record", "topic"]);
    let mut table = table.right(["time"]);
    for region in regions(found) {
        let (topic, range) = (topic(log, region).unwrap_or_default().to_owned(), &region.range);
        let time = region.time.map_or_else(String::new, |time| times.brief(time));
        table.row([
            offset(range, range.contains(&at)),
            length(range).to_string(),
            region.kind.to_owned(),
            topic,
            time,
        ]);
    }
    table.write(out)?;
    writeln!(out)?;
    let mut table = Table::default().right(["offset", "length"]).left(["field", "value"]);
    for (index, field) in found.fields.iter().enumerate() {
        let is_structure = field.value.is_empty() && !field.section.is_empty();
        let value = if is_structure { format!("§ {}", field.section) } else { field.value.clone() };
        let offset = offset(&field.range, found.field_at(at) == Some(index));
        table.row([offset, length(&field.range).to_string(), "  ".repeat(field.depth) + &field.name, value]);
    }
    table.write(out)?;
    for problem in problems(log, found) {
        let (word, Range { start, end }) = (check::severity(problem, out.paint), &problem.range);
        let message = escape(&problem.message);
        writeln!(out, "\n{word}  {}  bytes {start}..{end}  {message}", problem.rule.code)?;
    }
    Ok(())
}

fn regions(found: &Structure) -> impl Iterator<Item = &Region> {
    found.before.iter().chain([&found.region]).chain(&found.after)
}

fn topic<'a>(log: &'a AnyLog, region: &Region) -> Option<&'a str> {
    Some(&log.topics().get(region.topic?.index())?.name)
}

/// Returns the problems of the region that contains the byte.
fn problems<'a>(log: &'a AnyLog, found: &'a Structure) -> impl Iterator<Item = &'a Diagnostic> {
    let is_here = |problem: &&Diagnostic| overlaps(&problem.range, &found.region.range);
    log.diagnostics().list().iter().filter(is_here).take(MAX_PROBLEMS)
}

fn length(range: &Range<u64>) -> u64 {
    range.end - range.start
}

/// Returns whether two byte ranges have a byte in common. An empty range overlaps a range that
/// contains or touches it.
fn overlaps(one: &Range<u64>, other: &Range<u64>) -> bool {
    if one.is_empty() {
        return (other.start..=other.end).contains(&one.start);
    }
    one.start < other.end && other.start < one.end
}
