//! `rovelog rld`: commands for RocketLogger logs only.

use std::io::{Read, Write as _};
use std::path::PathBuf;

use rovelog::rld_format::Scrub;
use rovelog::rld_format::csv::{self, CsvStyle};
use rovelog::rld_format::{RldError, RldReader};
use rovelog::{AnyLog, Error, LogReader as _};

use crate::context::{Context, Format};
use crate::destination::OutputArgs;
use crate::failure::{Failure, Outcome, Status};
use crate::input::{Input, LogArg};
use crate::text::count;

/// RocketLogger only: scrub, csv, import
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Scrub(ScrubArgs),
    Csv(CsvArgs),
    Import(ImportArgs),
}

/// Remove the MAC address and the comment; all other bytes stay unchanged
#[derive(clap::Args)]
struct ScrubArgs {
    #[command(flatten)]
    log: LogArg,
    #[command(flatten)]
    output: OutputArgs,
    /// Keep the comment
    #[arg(long)]
    keep_comment: bool,
    /// Keep the MAC address
    #[arg(long)]
    keep_mac: bool,
}

/// Convert to the CSV format of the logger, byte for byte
#[derive(clap::Args)]
struct CsvArgs {
    #[command(flatten)]
    log: LogArg,
    #[command(flatten)]
    output: OutputArgs,
}

/// Convert a CSV file of the logger to a log
#[derive(clap::Args)]
struct ImportArgs {
    /// CSV file written by the logger; - for stdin
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
    /// Offset of the logger's local time from UTC, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 0, allow_negative_numbers = true)]
    zone: i32,
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    context.format(&[Format::Text])?;
    match &args.command {
        Command::Scrub(args) => scrub(args, context),
        Command::Csv(args) => to_csv(args, context),
        Command::Import(args) => import(args, context),
    }
}

/// Opens the given file alone: `scrub` and `csv` work on a file, not on a split recording.
fn open(input: &Input, context: &Context) -> Result<RldReader, Failure> {
    match input.open_alone(context)? {
        AnyLog::Rld(log) => Ok(log),
        other => Err(input.of_another_format(&other, "RLD")),
    }
}

fn failed(error: RldError) -> Failure {
    Failure::from(Error::from(error))
}

fn scrub(args: &ScrubArgs, context: &Context) -> Outcome {
    let input = args.log.input()?;
    let mut out = args.output.create(&input.name_for("scrubbed"), &input.files(context), context)?;
    let log = open(&input, context)?;
    log.scrub(0, Scrub { mac: !args.keep_mac, comment: !args.keep_comment }, &mut out).map_err(failed)?;
    out.finish()?;
    context.note("MAC address and comment removed, nothing else changed");
    Ok(Status::Done)
}

fn to_csv(args: &CsvArgs, context: &Context) -> Outcome {
    let input = args.log.input()?;
    let mut out = args.output.create(&input.name_for("logger"), &input.files(context), context)?;
    let log = open(&input, context)?;
    let written =
        log.write_logger_csv(CsvStyle::default(), context.progress.counting(&mut out)).map_err(failed)?;
    out.finish()?;
    for why in &written.lost {
        context.notices.warn("data that rld import cannot restore", why);
    }
    let lost = if written.lost.is_empty() { Status::Done } else { Status::Lost };
    Ok(lost.max(context.notices.loss(&log.info().lost, &input.path)))
}

fn import(args: &ImportArgs, context: &Context) -> Outcome {
    let input = Input::new(args.file.as_deref())?;
    let mut out = args.output.create(&input.name_for("imported"), &input.files(context), context)?;
    let table: Box<dyn Read> = if input.is_stdin() {
        Box::new(std::io::stdin())
    } else {
        let file = std::fs::File::open(&input.path);
        Box::new(file.map_err(|error| Failure::from(Error::io("rovelog", error)).at(&input.path))?)
    };
    let imported = csv::import(table, args.zone).map_err(|error| failed(error).at(&input.path))?;
    out.write_all(&imported.bytes)?;
    out.finish()?;
    imported.remarks.iter().for_each(|remark| context.note(remark));
    context.note(&format!("wrote {}", count(imported.rows, "row")));
    Ok(Status::Done)
}
