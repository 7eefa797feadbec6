//! `rovelog rld`: what only power logs of the RocketLogger need.

use std::path::{Path, PathBuf};

use rovelog::rld_format::RldReader;
use rovelog::rld_format::csv::{self, CsvStyle};
use rovelog::rld_format::scrub::Scrub;
use rovelog::{AnyLog, Error, LogReader, ReadOptions};

use crate::args::{Context, Format};
use crate::input::Input;
use crate::outfile::{LogOut, OutArgs};
use crate::report::{Failure, Outcome, Status, count, note};

/// What only RocketLogger logs need: scrub, csv, import
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Scrub(ScrubArgs),
    Csv(FileArgs),
    Import(ImportArgs),
}

/// Write a log without the device's address and the comment; no other byte changes
#[derive(clap::Args)]
struct ScrubArgs {
    #[command(flatten)]
    file: FileArgs,
    /// Keep the comment
    #[arg(long)]
    keep_comment: bool,
    /// Keep the device's address
    #[arg(long)]
    keep_mac: bool,
}

/// Write a log as the logger's own CSV, byte for byte
#[derive(clap::Args)]
struct FileArgs {
    /// A log; - is stdin
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The file to write; - is stdout, where that is a pipe or a file
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    #[command(flatten)]
    out: OutArgs,
}

/// Make a log of the logger's own CSV
#[derive(clap::Args)]
struct ImportArgs {
    #[command(flatten)]
    file: FileArgs,
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
fn open(path: &Path) -> Result<RldReader, Failure> {
    let mut options = ReadOptions::default();
    options.alone = true;
    let log = rovelog::open_with(path, &options).map_err(|error| Failure::from(error).at(path))?;
    let format = log.format().name;
    let AnyLog::Rld(log) = log else {
        return Err(Failure::usage(format!("this is a log of {format}, not of RLD"))
            .next("name an RLD file")
            .at(path));
    };
    Ok(log)
}

fn create(args: &FileArgs, what: &str, context: &Context) -> Result<LogOut, Failure> {
    let input = Input::new(Some(&args.file))?;
    LogOut::create(args.output.as_deref(), &input.name_for(what), &[&args.file], args.out, context)
}

fn failed(error: rovelog::rld_format::RldError) -> Failure {
    Failure::from(Error::from(error))
}

fn scrub(args: &ScrubArgs, context: &Context) -> Outcome {
    let log = open(&args.file.file)?;
    let mut out = create(&args.file, "scrubbed", context)?;
    log.scrub(0, Scrub { mac: !args.keep_mac, comment: !args.keep_comment }, &mut out).map_err(failed)?;
    out.finish()?;
    if !context.global.quiet {
        note("every byte but those of the address and the comment is as it was");
    }
    Ok(Status::Done)
}

fn to_csv(args: &FileArgs, context: &Context) -> Outcome {
    let log = open(&args.file)?;
    let mut out = create(args, "logger", context)?;
    let written = log.write_logger_csv(CsvStyle::default(), &mut out).map_err(failed)?;
    out.finish()?;
    for why in &written.lost {
        context.report.warn("what import would not find", why);
    }
    let lost = if written.lost.is_empty() { Status::Done } else { Status::Lost };
    Ok(lost.max(context.report.loss(&log.info().lost, &args.file)))
}

fn import(args: &ImportArgs, context: &Context) -> Outcome {
    let file = std::fs::File::open(&args.file.file)
        .map_err(|error| Failure::from(Error::io("rovelog", error)).at(&args.file.file))?;
    let imported = csv::import(file, args.zone).map_err(|error| failed(error).at(&args.file.file))?;
    let mut out = create(&args.file, "imported", context)?;
    std::io::Write::write_all(&mut out, &imported.bytes)?;
    out.finish()?;
    if !context.global.quiet {
        imported.remarks.iter().for_each(|remark| note(remark));
        note(&format!("wrote {}", count(imported.rows, "row")));
    }
    Ok(Status::Done)
}
