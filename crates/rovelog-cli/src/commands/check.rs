//! The command `rovelog check`, which lists all problems of a log.

use std::fmt::Write as _;
use std::io::Write as _;

use rovelog::{Diagnostic, Severity};
use serde::Serialize;

use crate::context::{Context, Format};
use crate::failure::{Failure, Outcome, Status};
use crate::health::{HealthDoc, Report};
use crate::input::{Input, LogArgs};
use crate::machine::{Count, FormatDoc, LostDoc, ProblemDoc};
use crate::output::Out;
use crate::survey::Survey;
use crate::text::{Paint, count, escape, with_file};
use crate::times::Times;
use crate::window::WindowArgs;

const MORE: &str = "\
The first line for each log summarizes its time stamps. A gap is a pause that is longer than three \
periods of a topic with a steady rate. Records count as missing only if a dropout, lost bytes or \
gaps in most other topics confirm the gap. The last line is the name of the log and the verdict, \
valid or damaged.

The exit code is 0 if all logs are valid, and 1 if data of a log is lost or left out. -v explains \
each kind of problem, and -q prints nothing for valid logs. CSV output has a row for each problem. \
For the timing of each topic, use rovelog stats --timing.

Examples:
  rovelog check flight.ulg
  rovelog check *.ulg -q || echo 'a log is damaged'
  rovelog check flight.ulg -f json | jq .lost.bytes
  rovelog check logs/ -f csv > problems.csv    a row for each problem
  rovelog check flight.ulg -S +10s -E -10s     health of a part";

/// List all problems of a log, with byte ranges
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    #[command(flatten)]
    logs: LogArgs,
    #[command(flatten)]
    window: WindowArgs,
}

/// Columns of the CSV output.
const PROBLEM: [&str; 6] = ["code", "name", "severity", "start", "end", "message"];

/// JSON document with the schema `rovelog.check/2`, which `rovelog check -f json` prints.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    file: &'a str,
    format: FormatDoc<'a>,
    state: &'static str,
    sound: bool,
    lost: LostDoc,
    /// Number of problems for each problem code. The list `problems` is limited in length, so the
    /// sum of these numbers may be larger than its length.
    counts: std::collections::BTreeMap<&'static str, Count>,
    problems: Vec<ProblemDoc<'a>>,
    /// Gaps, jitter and order of the time stamps of each topic.
    health: Option<HealthDoc<'a>>,
}

impl<'a> Document<'a> {
    fn new(file: &'a str, survey: &'a Survey, times: &'a Times) -> Self {
        let (info, found) = (&survey.info, &survey.diagnostics);
        Self {
            schema: "rovelog.check/2",
            file,
            format: FormatDoc::new(survey.format, info),
            state: info.state.name(),
            sound: is_intact(survey),
            lost: LostDoc::new(found.ledger()),
            counts: found.counts().iter().map(|(code, count)| (*code, Count(*count))).collect(),
            problems: found.list().iter().map(ProblemDoc::new).collect(),
            health: report(survey, times).map(|report| report.doc()),
        }
    }
}

fn report<'a>(survey: &'a Survey, times: &'a Times) -> Option<Report<'a>> {
    survey.health.as_ref().map(|health| Report::new(health, &survey.topics, times))
}

fn is_intact(survey: &Survey) -> bool {
    survey.diagnostics.ledger().is_empty()
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    let format = context.format(&[Format::Text, Format::Json, Format::Ndjson, Format::Csv])?;
    // Each line of the output contains the name of its log, so no headings are needed.
    context.parts.suppress_headings();
    let read = |input: &Input| Survey::read_all(input, context, &args.window);
    args.logs.read_parallel(context, read, |input, survey| {
        let status = if is_intact(&survey) { Status::Done } else { Status::Failed };
        let name = input.name();
        let mut out = context.out();
        let times = context.times(&survey.info).map_err(|failure| failure.at(&input.path))?;
        match format {
            Format::Json => out.document(&Document::new(&name, &survey, &times))?,
            Format::Ndjson => out.document_line(&Document::new(&name, &survey, &times))?,
            Format::Csv => out.csv(PROBLEM, survey.diagnostics.list().iter().map(ProblemDoc::new))?,
            _ => text(&mut out, input, &survey, &times, context)?,
        }
        out.flush()?;
        context.notices.undefined(&survey.diagnostics, &input.path);
        Ok(status)
    })
}

/// Returns the offset of the first byte in the file that could not be read. Returns `None` if only
/// the end of the file is missing.
fn lost_at(survey: &Survey) -> Option<u64> {
    let start = survey.diagnostics.ledger().ranges.first()?.start;
    (start < survey.info.size).then_some(start)
}

/// Returns the word with which a line about a problem starts.
pub(super) fn severity(problem: &Diagnostic, paint: Paint) -> String {
    match problem.rule.severity {
        Severity::DataLost => paint.red("ERROR"),
        _ => paint.yellow("WARN "),
    }
}

/// Prints a line for each problem of a log, and a last line with the name of the log and the
/// verdict. If the command checks several logs, each line starts with the name of the log.
fn text(
    out: &mut Out,
    input: &Input,
    survey: &Survey,
    times: &Times,
    context: &Context,
) -> Result<(), Failure> {
    let found = &survey.diagnostics;
    if context.global.quiet && is_intact(survey) {
        return Ok(());
    }
    let name = out.paint.bold(&escape(&input.name()));
    let of = if context.parts.name().is_some() { format!("{name}: ") } else { String::new() };
    let report = report(survey, times);
    if let Some(report) = &report {
        writeln!(out, "{of}health: {}", escape(&report.sentence()))?;
    }
    let range = |problem: &Diagnostic| format!("bytes {}..{}", problem.range.start, problem.range.end);
    let code_width = found.list().iter().map(|problem| problem.rule.code.len()).max().unwrap_or_default();
    let range_width = found.list().iter().map(|problem| range(problem).len()).max().unwrap_or_default();
    for problem in found.list() {
        let word = severity(problem, out.paint);
        let (code, range) = (problem.rule.code, range(problem));
        let message = escape(&problem.message);
        writeln!(out, "{of}{word}  {code:code_width$}  {range:range_width$}  {message}")?;
        if context.global.verbose {
            writeln!(out, "{of}       {}: {}", problem.rule.name, problem.rule.meaning)?;
        }
    }
    for (code, total) in found.counts() {
        let shown = found.list().iter().filter(|problem| problem.rule.code == *code).count() as u64;
        if *total > shown {
            writeln!(out, "{of}{} more problems with the code {code} are not listed", total - shown)?;
        }
    }
    if let Some(report) = &report {
        report.list(out, &of, context)?;
    }
    if let Some(loss) = lost_at(survey) {
        let next = with_file(&format!("rovelog dump FILE --at {loss}"), &input.path);
        writeln!(out, "{of}look at the first damaged byte: {next}")?;
    }
    writeln!(out, "{name}: {}", verdict(survey))?;
    Ok(())
}

/// Returns the verdict, for example `damaged, 1 error, 2 warnings; lost: 118 bytes`.
fn verdict(survey: &Survey) -> String {
    let found = &survey.diagnostics;
    if found.total() == 0 {
        return format!("valid, {} read, no problems", count(survey.info.size, "byte"));
    }
    let lost = found.ledger();
    let warnings = count(found.total() - lost.losses, "warning");
    if lost.is_empty() {
        return format!("valid, {warnings}");
    }
    let mut verdict = format!("damaged, {}, {warnings}", count(lost.losses, "error"));
    if lost.losses > 0 {
        let _ = write!(verdict, "; lost: {}", count(lost.bytes, "byte"));
    }
    if lost.missing_records > 0 {
        let _ = write!(verdict, "; missing: {}", count(lost.missing_records, "record"));
    }
    if lost.left_out_records > 0 {
        let _ = write!(verdict, "; left out: {}", count(lost.left_out_records, "record"));
    }
    verdict
}
