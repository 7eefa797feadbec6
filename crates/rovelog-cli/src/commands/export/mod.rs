//! The command `rovelog export`, which converts a log for other tools.

mod args;
mod format_args;
mod job;
mod join;

use std::path::Path;

use rovelog::{AnyLog, FormatInfo, Topic};
use rovelog_export::{Kind, Loss};
use serde::Serialize;

pub(crate) use self::args::Args;
use self::args::{Target, by_name, check_options, kind_of, target};
pub(crate) use self::format_args::help;
use self::job::{Done, FileDoc, Job};
use crate::context::{Context, Format};
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::outputs::{Outputs, is_many};
use crate::read_scope::ReadScope;
use crate::select::note_further_series;
use crate::text::{count, escape};
use crate::times::TimeBase;
use crate::window::{note_outside, select_window, span};

/// Data of the log that the output does not contain, as described in the JSON document.
#[derive(Serialize)]
struct LossDoc {
    topic: String,
    column: Option<String>,
    why: String,
}

/// JSON document with the schema `rovelog.export/2`, which `rovelog export -f json` prints.
#[derive(Serialize)]
struct Document {
    schema: &'static str,
    file: String,
    kind: &'static str,
    files: Vec<FileDoc>,
    lost: Vec<LossDoc>,
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    let format = context.format(&[Format::Text, Format::Json]).map_err(|failure| {
        failure.next("use -f text or -f json for the printed messages, and --to for the format of the file")
    })?;
    let kind = kind_of(args)?;
    check_options(args, kind, context)?;
    let logs = &args.logs.files;
    if !is_many(logs) {
        let target = target(args, kind)?;
        return args.logs.each(context, |input| one(args, input, kind, &target, format, context));
    }
    // Each line of the output is the path of a file that is named after its log, so no headings are
    // needed.
    context.parts.suppress_headings();
    let tables = args.makes_tables(kind);
    let outputs = Outputs {
        path: args.path(),
        is_file: args.path().is_some_and(|path| by_name(path).is_some()),
        extension: (!tables).then_some(kind.extension()),
        folder: Some(format!("-o DIR/ --to {}; or print the rows with rovelog cat -f csv", kind.name())),
        out: args.out,
    };
    outputs.each(logs, context, |input, path| {
        let path = path.unwrap_or(Path::new(""));
        let target = if tables { Target::Folder(path) } else { Target::File(path) };
        one(args, input, kind, &target, format, context)
    })
}

/// Exports one log.
fn one(
    args: &Args,
    input: &Input,
    kind: Kind,
    target: &Target<'_>,
    format: Format,
    context: &Context,
) -> Outcome {
    let select = |log: &AnyLog| select_window(log, &args.topics, &args.window, context);
    // The first rows of a joined table may contain values from before the time window, so the whole
    // log is read.
    let scope = if args.join.is_asked() { ReadScope::All } else { ReadScope::Records(&select) };
    let (log, provenance) = input.open_with_provenance(context, &scope, kind.tells_source())?;
    let here = |failure: Failure| failure.at(&input.path);
    check_log_format(args, log.format()).map_err(here)?;
    let mut topics = args.topics.pick(log.topics()).map_err(here)?;
    note_further_series(log.as_log(), &topics, context);
    if args.join.is_asked() {
        topics = join::topics(args, &log, topics).map_err(here)?;
    }
    let derived = args.fields.derived(&*log, &topics, args.join.is_asked()).map_err(here)?;
    let is_kept = |topic: &&Topic| {
        args.fields.selected_leaves(topic).is_some()
            || derived.iter().any(|signal| signal.topics().contains(&&*topic.name))
    };
    topics.retain(|topic| args.join.is_asked() || (topic.count > 0 && is_kept(topic)));
    let times = context.times(log.info()).map_err(here)?;
    let window = args.window.resolve(&times, span(&*log)).map_err(here)?;
    note_outside(log.as_log(), &select(&log).map_err(here)?, context);
    if topics.is_empty() && log.info().records > 0 {
        return Err(here(
            Failure::usage("the selected topics have no records")
                .next("list the topics and their record counts: rovelog topics FILE"),
        ));
    }
    if topics.is_empty() && matches!(kind, Kind::Table(_)) && args.logger_csv().is_none() {
        context.note("the log has no records, so there is no table to write");
        return Ok(context.notices.end_of_log(log.as_log(), &input.path));
    }
    let times_from = match context.global.time.time_base {
        Some(TimeBase::Relative) => times.start.or(Some(0)),
        Some(TimeBase::Boot) => Some(0),
        Some(TimeBase::Utc) | None => None,
    };
    let job = Job { args, context, input, log: &log, provenance: &provenance, window, times_from, derived };
    let done = match kind {
        Kind::Table(table) if args.join.is_asked() => job.joined(table, target, &topics)?,
        Kind::Table(table) => match args.logger_csv() {
            Some(style) => job.logger_csv(style, target)?,
            None => job.tables(table, target, topics)?,
        },
        Kind::Ndjson => job.ndjson(target, &topics)?,
        Kind::Mcap => job.mcap(target, &topics)?,
        Kind::Bag2 => job.bag2(target, &topics)?,
    };
    let lost = context.notices.losses(&done.losses);
    done.notes.iter().for_each(|line| context.note(line));
    report(&job, kind, target, format, done)?;
    Ok(lost.max(context.notices.end_of_log(log.as_log(), &input.path)))
}

/// Returns an error if the user gave an option that does not apply to logs of this format.
fn check_log_format(args: &Args, format: &FormatInfo) -> Result<(), Failure> {
    let velodyne = args.messages.velodyne.chosen();
    for (option, is_given, formats) in [
        (velodyne.unwrap_or_default(), velodyne.is_some(), &["vel"][..]),
        ("--raw", args.messages.raw, &["vel"]),
        ("--full", args.messages.full, &["rld"]),
        ("--batch", args.messages.batch.is_some(), &["rld"]),
        ("--ros2", args.messages.ros2, &["rosbag", "ulog", "vel"]),
        ("--modernize", args.messages.modernize, &["rosbag"]),
    ] {
        if is_given && !formats.contains(&format.id) {
            let failure = Failure::usage(format!("{option} does not apply to {} logs", format.name));
            return Err(failure.next("leave out this option"));
        }
    }
    Ok(())
}

/// Reports the result of an export. With `-f json`, a JSON document is written to stdout. Otherwise
/// the paths of files in a folder are written to stdout, and a summary is written to stderr.
fn report(job: &Job<'_>, kind: Kind, target: &Target<'_>, format: Format, done: Done) -> Result<(), Failure> {
    let context = job.context;
    if let Target::Stdout = target {
        return Ok(());
    }
    let mut out = context.out();
    if format == Format::Json {
        let loss = |Loss { topic, column, why, .. }| {
            let column = Some(column).filter(|column| !column.is_empty());
            LossDoc { topic, column, why }
        };
        let document = Document {
            schema: "rovelog.export/2",
            file: job.input.name(),
            kind: kind.name(),
            files: done.files,
            lost: done.losses.into_iter().map(loss).collect(),
        };
        return Ok(out.document(&document)?);
    }
    let word = match kind {
        Kind::Table(_) => "row",
        Kind::Ndjson => "record",
        Kind::Mcap | Kind::Bag2 => "message",
    };
    let rows: u64 = done.files.iter().map(|file| file.rows.0).sum();
    let summary = if let Target::Folder(folder) = target {
        for file in &done.files {
            std::io::Write::write_all(&mut out, format!("{}\n", escape(&file.file)).as_bytes())?;
        }
        std::io::Write::flush(&mut out)?;
        format!("{} in {} to {}", count(rows, word), count(done.files.len() as u64, "file"), folder.display())
    } else {
        let file = done.files.first().map(|file| file.file.as_str()).unwrap_or_default();
        format!("{} to {file}", count(rows, word))
    };
    context.note(&format!("wrote {summary}"));
    Ok(())
}
