//! The command `rovelog findings`, which lists the problems of a flight or a recording.

use std::io::Write as _;

use rovelog_export::findings::{Evidence, Finding, Severity, findings};
use serde::Serialize;

use crate::context::{Context, Format};
use crate::failure::{Failure, Outcome};
use crate::input::{Input, LogArgs};
use crate::output::Out;
use crate::text::escape;
use crate::times::Times;

const MORE: &str = "\
Each finding has a cause, a severity (high, medium or low), a time, and the signals that show it. \
docs/reference/findings.md describes all causes and their limits.

Examples:
  rovelog findings flight.ulg                  what went wrong?
  rovelog findings flights/                    of all logs in a folder
  rovelog findings flight.ulg --severity high
  rovelog findings flight.ulg -f json          with the values as evidence";

/// List what went wrong: failures and problems, with their cause and time
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    #[command(flatten)]
    logs: LogArgs,
    /// Show only findings of this or a higher severity: high, medium or low (default)
    #[arg(long, value_name = "LEVEL", value_parser = severity)]
    severity: Option<Severity>,
}

/// Parses the name of a severity.
fn severity(text: &str) -> Result<Severity, String> {
    let all = [Severity::High, Severity::Medium, Severity::Low];
    let found = all.into_iter().find(|severity| severity.name() == text);
    found.ok_or_else(|| "expected high, medium or low".to_owned())
}

/// A value or a byte range in machine-readable output.
#[derive(Serialize)]
struct EvidenceDoc<'a> {
    signal: &'a str,
    time: Option<String>,
    t_ns: Option<String>,
    value: Option<f64>,
    limit: Option<f64>,
    bytes: Option<[u64; 2]>,
}

/// A finding in machine-readable output.
#[derive(Serialize)]
struct FindingDoc<'a> {
    kind: &'static str,
    severity: &'static str,
    time: Option<String>,
    t_ns: Option<String>,
    end_t_ns: Option<String>,
    sentence: &'a str,
    evidence: Vec<EvidenceDoc<'a>>,
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    let format = context.format(&[Format::Text, Format::Json, Format::Ndjson])?;
    args.logs.each(context, |input| one(args, input, format, context))
}

/// Shows the findings of one log.
fn one(args: &Args, input: &Input, format: Format, context: &Context) -> Outcome {
    let log = input.open(context)?;
    let here = |failure: Failure| failure.at(&input.path);
    let times = context.times(log.info()).map_err(here)?;
    let mut found = findings(&log).map_err(|error| here(error.into()))?;
    found.retain(|finding| args.severity.is_none_or(|severity| finding.severity >= severity));
    let mut out = context.out();
    match format {
        Format::Json | Format::Ndjson => {
            let findings = found.iter().map(|finding| doc(finding, &times));
            out.list(format, ("rovelog.findings/1", "findings"), &input.name(), findings)?;
        }
        _ => {
            for finding in &found {
                write_text(&mut out, finding, &times)?;
                out.end_record()?;
            }
            if found.is_empty() {
                context.notices.note("no findings");
            }
        }
    }
    out.flush()?;
    Ok(context.notices.end_of_log(log.as_log(), &input.path))
}

fn doc<'a>(finding: &'a Finding, times: &Times) -> FindingDoc<'a> {
    let t_ns = |nanos: i64| times.t_ns(Some(times.at(nanos))).map(|nanos| nanos.to_string());
    let time = |nanos: i64| times.machine(Some(times.at(nanos)));
    let evidence = |evidence: &'a Evidence| EvidenceDoc {
        signal: &evidence.signal,
        time: evidence.time.and_then(time),
        t_ns: evidence.time.and_then(t_ns),
        value: evidence.value,
        limit: evidence.limit,
        bytes: evidence.bytes.as_ref().map(|bytes| [bytes.start, bytes.end]),
    };
    FindingDoc {
        kind: finding.kind.id(),
        severity: finding.severity.name(),
        time: time(finding.start),
        t_ns: t_ns(finding.start),
        end_t_ns: t_ns(finding.end),
        sentence: &finding.sentence,
        evidence: finding.evidence.iter().map(evidence).collect(),
    }
}

/// Prints one finding as text, for example:
///
/// `114.653  +00:01:07.8  high    attitude-failure  The roll angle exceeded 60° for 0.4 s ...`
fn write_text(out: &mut Out, finding: &Finding, times: &Times) -> std::io::Result<()> {
    let start = Some(times.at(finding.start));
    let (time, since) = (times.aligned(start), times.since_start(start));
    let padded = format!("{:6}", finding.severity.name());
    let severity = match finding.severity {
        Severity::High => out.paint.red(&padded),
        Severity::Medium => out.paint.yellow(&padded),
        Severity::Low => padded,
    };
    let (kind, sentence) = (finding.kind.id(), escape(&finding.sentence));
    writeln!(out, "{time}  {since}  {severity}  {kind:16}  {sentence}")
}
