//! The command `rovelog ingest`, which adds logs to a lake.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::ValueEnum;
use rovelog_scale::lake::{self, Ingested, Lake, LogRow, Options, Status as LogStatus, Worker};
use serde::Serialize;

use crate::context::{Context, Format, Global};
use crate::failure::{Failure, Outcome, Status};
use crate::interpreter::{INTERPRETER, this_program};
use crate::machine::Count;
use crate::text::{count, counts, escape, parse_size, size};

const MORE: &str = "\
A lake is a folder of Parquet files, which DuckDB, Polars, Spark and pandas can read. It has one \
table for each format and topic, with rows of many logs in one file, and the table _logs with a \
row for each log.

Logs that are already in the lake are not read again, so a second run writes nothing. A damaged \
log is added as far as it can be read. A log that cannot be read only gets a row in _logs with the \
reason. In both cases, the exit code is 3. A run that is killed leaves a valid lake, and the next \
run completes it.

Sources are files, folders (with all logs in them and in their subfolders) and patterns in quotes. \
-f ndjson prints a line for each log.

Examples:
  rovelog ingest flights/ -o lake/
  rovelog ingest 'flights/2026-*/**/*.ulg' -o lake/ --jobs 4
  rovelog ingest flights/ -o lake/ -f ndjson | jq -r 'select(.error).uri'
  rovelog lake check lake/";

/// Add logs to a lake, which is a folder of Parquet tables with many logs
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    /// Logs to add: log files, folders and patterns in quotes ('flights/**/*.ulg')
    #[arg(value_name = "SOURCE", required = true)]
    sources: Vec<String>,
    /// Folder of the lake; created if it does not exist
    #[arg(short, long, value_name = "LAKE")]
    output: PathBuf,
    /// Add logs in groups of about this total size, each with its own output files; default 128MiB
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pack_size: Option<u64>,
    /// Try logs again that earlier runs gave up, because they crashed a worker process
    #[arg(long)]
    retry_quarantined: bool,
    /// Program that writes the tables: local (default, rovelog itself), or spark or sail, which
    /// need the Python package
    #[arg(
        long,
        value_enum,
        value_name = "NAME",
        hide_possible_values = true,
        default_value = "local",
        hide_default_value = true
    )]
    engine: Engine,
    /// Program that runs a worker
    #[arg(long, value_name = "PROGRAM", hide = true)]
    worker: Option<PathBuf>,
}

/// Engine that makes the tables of a lake.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Engine {
    Local,
    Spark,
    Sail,
}

/// A line of the NDJSON output `rovelog.ingest/2`, which describes the result for one log.
#[derive(Serialize)]
struct Line<'a> {
    schema: &'static str,
    uri: &'a str,
    id: &'a str,
    format: Option<&'a str>,
    status: &'static str,
    size: Count,
    records: Count,
    lost_bytes: Count,
    /// Number of values that cannot be represented in any table column.
    lost_values: Count,
    /// Number of records that cannot be decoded.
    lost_records: Count,
    error: Option<&'a str>,
    pack: &'a str,
}

impl<'a> Line<'a> {
    fn new(row: &'a LogRow) -> Self {
        Self {
            schema: "rovelog.ingest/2",
            uri: &row.uri,
            id: &row.id,
            format: row.format.as_deref(),
            status: row.status.name(),
            size: Count(row.size),
            records: Count(row.records),
            lost_bytes: Count(row.lost_bytes),
            lost_values: Count(row.lost_values),
            lost_records: Count(row.lost_records),
            error: row.error.as_deref(),
            pack: &row.pack,
        }
    }
}

/// Returns an error if an option changes how logs are read. All logs of a lake must be read in the
/// same way, independent of who adds them.
fn refuse_reader_options(global: &Global) -> Result<(), Failure> {
    let given = [
        ("--strict", global.strict),
        ("--input-format", global.input_format.is_some()),
        ("--types", global.types.is_some()),
        ("--msgs", global.msgs.is_some()),
        ("--utc-start", global.utc_start.is_some()),
        ("--time-base", global.time.time_base.is_some()),
        ("--text-encoding", global.text_encoding.is_some()),
        ("--max-unpacked", global.max_unpacked.is_some()),
        ("--max-bytes", global.max_bytes.is_some()),
        ("--follow-redirects", global.follow_redirects),
    ];
    given.iter().find(|(_, is_given)| *is_given).map_or(Ok(()), |(name, _)| {
        Err(Failure::usage(format!("{name} does not apply to ingest")).next(format!("leave {name} out")))
    })
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    let format = context.format(&[Format::Text, Format::Ndjson])?;
    refuse_reader_options(&context.global)?;
    if args.engine != Engine::Local {
        return run_engine(args, format, context);
    }
    let mut options = Options::new(worker(args.worker.as_deref())?);
    // Each worker is a separate process with a single thread.
    options.jobs = context.jobs().get();
    options.pack_bytes = args.pack_size.unwrap_or(options.pack_bytes);
    options.retry_quarantined = args.retry_quarantined;
    let lake = Lake::new(&args.output);
    let mut out = context.out();
    // The callback cannot return an error. If printing fails, the failure is stored and returned
    // after all logs have been added.
    let (mut at, mut printed) = (0, Ok(()));
    let done = lake::ingest(&args.sources, &lake, &options, &mut |progress| match progress {
        lake::Progress::Waiting => {
            context.note("another program is writing to this lake; waiting until it has finished");
        }
        lake::Progress::Found { new, bytes, known } => {
            context.progress.start(Some(bytes));
            let known = if known > 0 { format!("; {known} already in the lake") } else { String::new() };
            context.note(&format!("{} to add, {}{known}", count(new as u64, "log"), size(bytes)));
        }
        lake::Progress::Pack(bytes) => {
            at += bytes;
            context.progress.at(at);
        }
        lake::Progress::Again { why, logs } => {
            context.note(&format!(
                "a worker process ended ({why}), so {} will be tried again",
                count(logs as u64, "log")
            ));
        }
        lake::Progress::Gone(uri) => context.notices.note(&format!(
            "a file of the lake is missing or damaged and cannot be repaired, because the log {} is gone \
             or has changed",
            escape(uri)
        )),
        lake::Progress::Changed(uri) => context.notices.note(&format!(
            "{} was added before with other content, so the lake has the rows of both",
            escape(uri)
        )),
        lake::Progress::Log(row) => {
            report_log(row, context);
            if format == Format::Ndjson && printed.is_ok() {
                printed = out.line(&Line::new(row));
            }
        }
    })?;
    printed?;
    out.flush()?;
    summarize(&done, context);
    Ok(if done.partial + done.failed + done.gone > 0 { Status::Lost } else { Status::Done })
}

/// Runs the Python package, which implements the engines Spark and Sail.
fn run_engine(args: &Args, format: Format, context: &Context) -> Outcome {
    let engine = if args.engine == Engine::Spark { "spark" } else { "sail" };
    let Some(python) = INTERPRETER.get() else {
        return Err(Failure::failed(format!("the engine {engine} needs the Python package")).next(format!(
            "install it with pip install 'rovelog[spark]', then run python -m rovelog ingest ... --engine \
             {engine}"
        )));
    };
    let mut command = Command::new(python);
    command.args(["-m", "rovelog.lake", "ingest", "--engine", engine, "-o"]).arg(&args.output);
    if let Some(jobs) = context.global.jobs {
        command.args(["--jobs", &jobs.get().to_string()]);
    }
    if let Some(size) = args.pack_size {
        command.args(["--pack-bytes", &size.to_string()]);
    }
    if args.retry_quarantined {
        command.arg("--retry-quarantined");
    }
    if format == Format::Ndjson {
        command.arg("--ndjson");
    }
    let status = command.arg("--").args(&args.sources).status()?;
    match status.code() {
        Some(0) => Ok(Status::Done),
        Some(3) => Ok(Status::Lost),
        // The Python process has already printed the reason of the failure.
        _ => Ok(Status::Failed),
    }
}

/// Prints which data of a log is missing in the lake, or why the log was not added.
fn report_log(row: &LogRow, context: &Context) {
    let uri = escape(&row.uri).into_owned();
    match row.status {
        LogStatus::Ok => {}
        LogStatus::Partial if row.lost_bytes > 0 => {
            context.notices.note(&format!("{uri}: {} could not be read", count(row.lost_bytes, "byte")));
        }
        LogStatus::Partial if row.lost_records > 0 => {
            let records = count(row.lost_records, "record");
            context.notices.note(&format!("{uri}: {records} cannot be decoded"));
        }
        LogStatus::Partial if row.lost_values > 0 => {
            let values = count(row.lost_values, "value");
            context.notices.note(&format!("{uri}: no column can hold {values}"));
        }
        LogStatus::Partial => context.notices.note(&format!("{uri}: part of the log is missing")),
        LogStatus::Failed => {
            let why = row.error.as_deref().unwrap_or("the log cannot be read");
            // The message starts with the path of the log. It is removed, because the path is
            // printed after the message.
            let why = why.strip_prefix(&format!("{}: ", row.uri)).unwrap_or(why);
            context
                .notices
                .failure(&Failure::failed(format!("the log was not added: {why}")).at(Path::new(&row.uri)));
        }
    }
}

/// Prints how many logs this command has added to the lake, skipped, or failed to add.
fn summarize(done: &Ingested, context: &Context) {
    if done.removed > 0 {
        context
            .note(&format!("removed {} left by a run that was killed", count(done.removed as u64, "file")));
    }
    for split in &done.splits {
        context.note(&escape(&split.to_string()));
    }
    let logs = counts(&[
        (done.ok, "added"),
        (done.partial, "added in part"),
        (done.failed, "not added"),
        (done.known, "already in the lake"),
        (done.same, "with the same content as another log"),
        (done.gone, "with files that cannot be repaired"),
    ]);
    if done.did_nothing() {
        context.note(&format!("nothing to do: {logs}"));
    } else {
        context.note(&format!("logs: {logs}; {} written", count(done.files as u64, "file")));
    }
}

/// Returns the command that starts a worker process. It is `program` if given, otherwise this
/// program.
fn worker(program: Option<&Path>) -> Result<Worker, Failure> {
    let serve = ["lake", "worker"].map(str::to_owned);
    if let Some(program) = program {
        return Ok(Worker::Process { program: program.to_owned(), arguments: serve.to_vec() });
    }
    let (program, first) =
        this_program().map_err(|error| Failure::failed(format!("cannot start workers: {error}")))?;
    Ok(Worker::Process { program, arguments: [first, serve.to_vec()].concat() })
}
