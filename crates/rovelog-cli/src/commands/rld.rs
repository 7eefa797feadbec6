//! The command `rovelog rld`, which has subcommands for RocketLogger logs only.

use std::io::{Read, Write as _};
use std::path::PathBuf;

use rovelog::rld_format::RldReader;
use rovelog::rld_format::csv::{self, CsvStyle};
use rovelog::{AnyLog, Error};

use crate::context::{Context, Format};
use crate::destination::OutputArgs;
use crate::failure::{Failure, Outcome, Status};
use crate::input::{Input, LogArg};
use crate::text::{count, wrote};

/// RocketLogger only: convert to CSV and back
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Csv(CsvArgs),
    Import(ImportArgs),
}

const CSV: &str = "\
Only the given file is converted, not the other parts of a split recording. Data that `rovelog rld \
import` cannot restore is reported, and the exit code is then 3.

Examples:
  rovelog rld csv power.rld -o power.csv
  rovelog rld csv power.rld | head";

/// Convert to CSV, with exactly the bytes that the logger would write
#[derive(clap::Args)]
#[command(after_help = CSV)]
struct CsvArgs {
    #[command(flatten)]
    log: LogArg,
    #[command(flatten)]
    output: OutputArgs,
}

const IMPORT: &str = "\
Examples:
  rovelog rld import power.csv -o power.rld
  rovelog rld import local.csv -o power.rld --zone 3600   one hour east";

/// Convert a CSV file written by the logger to an RLD log
#[derive(clap::Args)]
#[command(after_help = IMPORT)]
struct ImportArgs {
    /// CSV file written by the logger, or - for stdin
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
    /// Offset of the logger's local time from UTC in seconds, such as 3600 for UTC+1; default 0
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 0,
        hide_default_value = true,
        allow_negative_numbers = true
    )]
    zone: i32,
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    context.format(&[Format::Text])?;
    match &args.command {
        Command::Csv(args) => to_csv(args, context),
        Command::Import(args) => import(args, context),
    }
}

/// Opens a single file. If the file belongs to a recording that is split into several files, `csv`
/// converts only this file.
fn open(input: &Input, context: &Context) -> Result<RldReader, Failure> {
    match input.open_alone(context)? {
        AnyLog::Rld(log) => Ok(log),
        other => Err(input.wrong_format(&other, "RLD")),
    }
}

fn to_csv(args: &CsvArgs, context: &Context) -> Outcome {
    let input = args.log.input()?;
    let mut out = args.output.create("log.csv", &input.files(context), context)?;
    let log = open(&input, context)?;
    let written = log.write_logger_csv(CsvStyle::default(), context.progress.counting(&mut out));
    let written = written.map_err(|error| Failure::from(error).at(&input.path))?;
    out.finish()?;
    for why in &written.lost {
        context.notices.warn("data that rld import cannot restore", why);
    }
    let lost = if written.lost.is_empty() { Status::Done } else { Status::Lost };
    Ok(lost.max(context.notices.end_of_log(&log, &input.path)))
}

fn import(args: &ImportArgs, context: &Context) -> Outcome {
    let input = Input::new(args.file.as_deref())?;
    let mut out = args.output.create("log.rld", &input.files(context), context)?;
    let table: Box<dyn Read> = if input.is_stdin() {
        Box::new(std::io::stdin())
    } else {
        let file = std::fs::File::open(&input.path);
        Box::new(file.map_err(|error| Failure::from(Error::io("rovelog", error)).at(&input.path))?)
    };
    let imported = csv::import(table, args.zone).map_err(|error| Failure::from(error).at(&input.path))?;
    out.write_all(&imported.bytes)?;
    let written = out.finish()?;
    imported.remarks.iter().for_each(|remark| context.note(remark));
    context.note(&format!("imported {}{}", count(imported.rows, "row"), wrote(written.as_deref())));
    Ok(Status::Done)
}
