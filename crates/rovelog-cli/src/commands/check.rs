//! `rovelog check`: all problems of a log.

use std::io::Write as _;
use std::path::PathBuf;

use rovelog::Severity;
use serde::Serialize;

use crate::context::{Context, Format};
use crate::failure::{Failure, Outcome, Status};
use crate::input::{Input, Survey};
use crate::machine::{FormatDoc, LostDoc, ProblemDoc};
use crate::output::Out;
use crate::text::{count, escape};

const MORE: &str = "\
The last line for each log is its name and the verdict, valid or damaged. The exit code is 0 if \
all logs are valid, and 1 if data of a log is lost or left out. -v explains each kind of problem; \
-q prints nothing for valid logs.

Examples:
  rovelog check flight.ulg
  rovelog check *.ulg -q || echo 'a log is damaged'
  rovelog check flight.ulg -f json | jq .lost.bytes";

/// List all problems of a log, with byte ranges
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    /// Log files, folders and patterns ('*.ulg'); - for stdin
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// The document `rovelog.check/1`.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    file: &'a str,
    format: FormatDoc<'a>,
    state: &'static str,
    sound: bool,
    lost: LostDoc,
    /// Number of problems by code, including those past the limit of `problems`.
    counts: std::collections::BTreeMap<&'static str, String>,
    problems: Vec<ProblemDoc<'a>>,
}

impl<'a> Document<'a> {
    fn new(file: &'a str, survey: &'a Survey) -> Self {
        let (info, found) = (&survey.info, &survey.diagnostics);
        Self {
            schema: "rovelog.check/1",
            file,
            format: FormatDoc::new(survey.format, info),
            state: info.state.name(),
            sound: is_intact(survey),
            lost: LostDoc::new(found.ledger()),
            counts: found.counts().iter().map(|(code, count)| (*code, count.to_string())).collect(),
            problems: found.list().iter().map(ProblemDoc::new).collect(),
        }
    }
}

fn is_intact(survey: &Survey) -> bool {
    survey.diagnostics.ledger().is_empty()
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    let format = context.format(&[Format::Text, Format::Json])?;
    let inputs = Input::all(&args.files)?;
    let mut out = context.out();
    let mut done = Vec::new();
    let status = Input::for_all(&inputs, context, |input| {
        let survey = Survey::of_all(input, context)?;
        let status = if is_intact(&survey) { Status::Done } else { Status::Failed };
        let name = input.name();
        if format == Format::Text {
            text(&mut out, &name, inputs.len() > 1, &survey, context)?;
            out.end_record()?;
        } else {
            done.push((name, survey));
        }
        Ok(status)
    })?;
    if format == Format::Json {
        let documents: Vec<_> = done.iter().map(|(name, survey)| Document::new(name, survey)).collect();
        out.documents(&documents, inputs.len())?;
    }
    out.flush()?;
    Ok(status)
}

/// Prints the problems of a log, and its name with the verdict on one line. With several logs, each
/// line starts with the name.
fn text(out: &mut Out, name: &str, several: bool, survey: &Survey, context: &Context) -> Result<(), Failure> {
    let found = &survey.diagnostics;
    if context.global.quiet && is_intact(survey) {
        return Ok(());
    }
    let name = out.paint.bold(&escape(name));
    let of = if several { format!("{name}: ") } else { String::new() };
    let range =
        |problem: &rovelog::Diagnostic| format!("bytes {}..{}", problem.range.start, problem.range.end);
    let code_width = found.list().iter().map(|problem| problem.rule.code.len()).max().unwrap_or_default();
    let range_width = found.list().iter().map(|problem| range(problem).len()).max().unwrap_or_default();
    for problem in found.list() {
        let word = match problem.rule.severity {
            Severity::DataLost => out.paint.red("ERROR"),
            _ => out.paint.yellow("WARN "),
        };
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
            writeln!(out, "{of}and {} more of {code}", total - shown)?;
        }
    }
    if found.total() == 0 {
        writeln!(out, "{name}: valid, {} read, no problems", count(survey.info.size, "byte"))?;
        return Ok(());
    }
    let lost = found.ledger();
    let warnings = count(found.total() - lost.losses, "warning");
    if lost.is_empty() {
        writeln!(out, "{name}: valid, {warnings}")?;
        return Ok(());
    }
    write!(out, "{name}: damaged, {}, {warnings}", count(lost.losses, "error"))?;
    if lost.losses > 0 {
        write!(out, "; lost: {}", count(lost.bytes, "byte"))?;
    }
    if lost.missing_records > 0 {
        write!(out, "; missing: {}", count(lost.missing_records, "record"))?;
    }
    if lost.left_out_records > 0 {
        write!(out, "; left out: {}", count(lost.left_out_records, "record"))?;
    }
    writeln!(out)?;
    Ok(())
}
