//! The command `rovelog lake`, which checks or cleans up a lake.

use std::io::Write as _;
use std::path::PathBuf;

use clap::Subcommand;
use rovelog_scale::lake::{self, Lake, Worker};
use serde::Serialize;

use crate::context::{Context, Format};
use crate::failure::{Failure, Outcome, Status};
use crate::machine::Count;
use crate::text::{count, escape, size};

/// Check or clean up a lake
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Check(CheckArgs),
    Clean(CleanArgs),
    /// Make the pack that stdin names
    #[command(hide = true)]
    Worker,
}

const CHECK: &str = "\
Every file that the table _logs lists must exist with all its rows, and no other file may exist. \
Files that a killed run left behind are listed. The next `rovelog ingest` or `rovelog lake clean` \
removes them. The exit code is 1 if the lake does not match _logs.

Examples:
  rovelog lake check lake/
  rovelog lake check lake/ -f json | jq .problems";

/// Compare the files of a lake with its table of logs
#[derive(clap::Args)]
#[command(after_help = CHECK)]
struct CheckArgs {
    /// Folder with the lake's Parquet tables, as written by rovelog ingest
    #[arg(value_name = "LAKE")]
    lake: PathBuf,
    /// Also compare the content of each file with its stored hash, which reads all files
    #[arg(long)]
    content: bool,
}

const CLEAN: &str = "\
A run that was killed leaves files that the table _logs does not list. `rovelog ingest` removes \
them, too. Files of other programs are never removed.

Examples:
  rovelog lake clean lake/";

/// Remove files that a killed run left in a lake
#[derive(clap::Args)]
#[command(after_help = CLEAN)]
struct CleanArgs {
    /// Folder with the lake's Parquet tables, as written by rovelog ingest
    #[arg(value_name = "LAKE")]
    lake: PathBuf,
}

/// JSON document with the schema `rovelog.lake/2`, which `rovelog lake` prints.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    lake: String,
    logs: Count,
    failed: Count,
    files: Count,
    rows: Count,
    bytes: Count,
    problems: &'a [String],
    unnamed: &'a [String],
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    match &args.command {
        Command::Check(args) => check(args, context),
        Command::Clean(args) => clean(args, context),
        Command::Worker => {
            Worker::serve()?;
            Ok(Status::Done)
        }
    }
}

/// Opens the lake in the folder `path`. Returns an error if the folder is not a lake.
fn existing(path: &PathBuf) -> Result<Lake, Failure> {
    if path.join("_logs").is_dir() {
        return Ok(Lake::new(path));
    }
    Err(Failure::failed("the folder is not a lake, because it has no table _logs")
        .next("create a lake with rovelog ingest LOGS -o FILE")
        .at(path))
}

fn check(args: &CheckArgs, context: &Context) -> Outcome {
    let format = context.format(&[Format::Text, Format::Json])?;
    let checked = lake::check(&existing(&args.lake)?, args.content)?;
    let mut out = context.out();
    if format == Format::Json {
        out.document(&Document {
            schema: "rovelog.lake/2",
            lake: args.lake.display().to_string(),
            logs: Count(checked.logs as u64),
            failed: Count(checked.failed as u64),
            files: Count(checked.files as u64),
            rows: Count(checked.rows),
            bytes: Count(checked.bytes),
            problems: &checked.problems,
            unnamed: &checked.unnamed,
        })?;
    } else {
        for problem in &checked.problems {
            writeln!(out, "{}  {}", out.paint.red("ERROR"), escape(problem))?;
        }
        for file in &checked.unnamed {
            let word = out.paint.yellow("WARN ");
            writeln!(out, "{word}  {} was left by a run that was killed", escape(file))?;
        }
        let (logs, files) = (count(checked.logs as u64, "log"), count(checked.files as u64, "file"));
        let failed =
            if checked.failed > 0 { format!(" ({} not added)", checked.failed) } else { String::new() };
        let rows = count(checked.rows, "row");
        writeln!(out, "{logs}{failed}, {rows} in {files}, {}", size(checked.bytes))?;
    }
    out.flush()?;
    let valid = checked.problems.is_empty() && checked.unnamed.is_empty();
    Ok(if valid { Status::Done } else { Status::Failed })
}

fn clean(args: &CleanArgs, context: &Context) -> Outcome {
    context.format(&[Format::Text])?;
    let waiting = || context.note("another program is writing to this lake; waiting until it has finished");
    let removed = lake::clean(&existing(&args.lake)?, waiting)?;
    let mut out = context.out();
    for path in &removed {
        writeln!(out, "removed {}", escape(&path.display().to_string()))?;
    }
    out.flush()?;
    if removed.is_empty() {
        context.note("nothing to remove");
    }
    Ok(Status::Done)
}
