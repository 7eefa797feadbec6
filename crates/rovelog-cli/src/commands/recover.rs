//! The command `rovelog recover`, which repairs a damaged log.

use std::fmt::Write as _;
use std::path::Path;

use rovelog::{RecoverOptions, Recovery, Segment};
use serde::Serialize;

use crate::compression::ChunkArgs;
use crate::context::{Context, Format};
use crate::destination::OutputArgs;
use crate::failure::{Failure, Outcome, Status};
use crate::input::LogArg;
use crate::machine::{Count, DetailsDoc};
use crate::notices::Notices;
use crate::text::{count, wrote};
use crate::times::Times;

const MORE: &str = "\
Intact records are copied byte for byte and in file order. Unreadable bytes are left out, and \
their ranges are reported. An undamaged log is copied unchanged. The exit code is 0 if no data is \
lost, and 3 otherwise.

Examples:
  rovelog recover flight.ulg -o flight.recovered.ulg
  rovelog recover flight.ulg -o fixed.ulg --drop-stale   no stale rows
  rovelog recover flight.ulg -o fixed.ulg -f json | jq .lost.ranges
  rovelog recover - < flight.ulg | rovelog info -";

/// Repair a damaged log: write every intact record to a new file and report what was lost
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    #[command(flatten)]
    log: LogArg,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    chunks: ChunkArgs,
    /// Leave out stale rows, which are old data that a damaged memory card returned
    #[arg(long)]
    drop_stale: bool,
}

/// JSON document with the schema `rovelog.recover/2`, which `rovelog recover -f json` prints.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    file: String,
    output: String,
    /// True if the log is undamaged. The output then is an exact copy of the log.
    unchanged: bool,
    records: Count,
    kept_bytes: Count,
    lost: LostDoc,
    stale: StaleDoc,
    left_out: &'a [String],
    stretches: Vec<SegmentDoc>,
    /// Additional properties of the result, which depend on the log format.
    #[serde(flatten)]
    details: DetailsDoc<'a>,
}

#[derive(Serialize)]
struct LostDoc {
    bytes: Count,
    ranges: Vec<[Count; 2]>,
    /// Number of records that are missing according to counts stored in the log.
    missing_records: Count,
}

#[derive(Serialize)]
struct StaleDoc {
    bytes: Count,
    records: Count,
}

/// A contiguous segment of the damaged log that was recovered.
#[derive(Serialize)]
struct SegmentDoc {
    range: [Count; 2],
    records: Count,
    first: Option<String>,
    first_ns: Option<String>,
    last: Option<String>,
    last_ns: Option<String>,
    in_time_order: bool,
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    let format = context.format(&[Format::Text, Format::Json])?;
    let input = args.log.input()?;
    let example = input.name_for("recovered");
    // The output is created before the log is read. If it cannot be created, the user sees the
    // error immediately.
    let mut out = args.output.create(&example, &input.files(context), context)?;
    let mut log = input.open(context)?;
    args.chunks.apply(&mut log, &input)?;
    let options = RecoverOptions::default();
    let options = if args.drop_stale { options.dropping_stale() } else { options };
    context.progress.start(Some(log.info().size));
    let report = log
        .recover(&mut context.progress.counting(&mut out), &options)
        .map_err(|error| Failure::from(error).at(&input.path))?;
    let written = out.finish()?;
    if format == Format::Json {
        let times = context.times(log.info()).map_err(|failure| failure.at(&input.path))?;
        context.out().document(&document(&report, input.name(), args.output.name(), &times))?;
    }
    let complete = report.is_complete();
    if !(complete && context.global.quiet) {
        print_result(&report, written.as_deref(), &context.notices);
    }
    if report.lost_bytes() == 0 && !report.lost.is_empty() {
        // Records that are missing in the log occupy no bytes, so they are not in the list of lost
        // bytes above.
        context.notices.end_of_log(log.as_log(), &input.path);
    }
    Ok(if complete { Status::Done } else { Status::Lost })
}

/// Prints the result. The last line is a summary.
fn print_result(report: &Recovery, written: Option<&Path>, notices: &Notices) {
    if report.stale_bytes > 0 {
        let (records, bytes) = (count(report.stale_records, "record"), count(report.stale_bytes, "byte"));
        notices.note(&format!("left out {records} that are out of time order ({bytes})"));
    } else {
        let stale = report.segments.iter().filter(|segment| !segment.in_time_order && segment.records > 0);
        let (places, records) = stale.fold((0, 0), |(n, rows), segment| (n + 1, rows + segment.records));
        if places > 0 {
            let (records, places) = (count(records, "record"), count(places, "place"));
            notices
                .note(&format!("{records} in {places} are out of time order; --drop-stale leaves them out"));
        }
    }
    notices.left_out(&report.left_out);
    let ranges = match report.lost.len() {
        0 => String::new(),
        ranges => format!(" in {}", count(ranges, "range")),
    };
    let mut text = format!(
        "kept {} ({}), lost {}{ranges}",
        count(report.records, "record"),
        count(report.kept_bytes, "byte"),
        count(report.lost_bytes(), "byte"),
    );
    if report.missing_records > 0 {
        let (records, missing) = (count(report.missing_records, "record"), report.missing_records);
        let are = if missing == 1 { "is" } else { "are" };
        let _ = write!(text, "; {records} {are} missing according to counts in the log");
    }
    notices.note(&(text + &wrote(written)));
}

fn document<'a>(report: &'a Recovery, file: String, output: String, times: &Times) -> Document<'a> {
    let ranges = report.lost.iter().map(|range| [Count(range.start), Count(range.end)]);
    let segment = |segment: &Segment| SegmentDoc {
        range: [Count(segment.range.start), Count(segment.range.end)],
        records: Count(segment.records),
        first: times.machine(segment.first),
        first_ns: times.t_ns_text(segment.first),
        last: times.machine(segment.last),
        last_ns: times.t_ns_text(segment.last),
        in_time_order: segment.in_time_order,
    };
    Document {
        schema: "rovelog.recover/2",
        file,
        output,
        unchanged: report.unchanged,
        records: Count(report.records),
        kept_bytes: Count(report.kept_bytes),
        lost: LostDoc {
            bytes: Count(report.lost_bytes()),
            ranges: ranges.collect(),
            missing_records: Count(report.missing_records),
        },
        stale: StaleDoc { bytes: Count(report.stale_bytes), records: Count(report.stale_records) },
        left_out: &report.left_out,
        stretches: report.segments.iter().map(segment).collect(),
        details: DetailsDoc(&report.details),
    }
}
