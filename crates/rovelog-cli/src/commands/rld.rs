//! `rovelog rld`: what only power logs of the RocketLogger need.

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

/// What only RocketLogger logs need: scrub, csv, import
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

/// Write a log without the device's address and the comment; no other byte changes
#[derive(clap::Args)]
struct ScrubArgs {
    #[command(flatten)]
    log: LogArg,
    #[command(flatten)]
    output: OutputArgs,
    /// Keep the comment
    #[arg(long)]
    keep_comment: bool,
    /// Keep the device's address
    #[arg(long)]
    keep_mac: bool,
}

/// Write a log as the logger's own CSV, byte for byte
#[derive(clap::Args)]
struct CsvArgs {
    #[command(flatten)]
    log: LogArg,
    #[command(flatten)]
    output: OutputArgs,
}

/// Make a log of the logger's own CSV
#[derive(clap::Args)]
struct ImportArgs {
    /// A table that the logger wrote; - is stdin
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
    /// Seconds by which the clock that wrote the start time was ahead of UTC
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

/// The one file that was named: what is scrubbed or told in CSV is a file, not a set.
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
    context.note("every byte but those of the address and the comment is as it was");
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
        context.notices.warn("what import would not find", why);
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
