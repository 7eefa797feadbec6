//! The options that every command takes, and the arguments that several commands share.

use std::ffi::OsString;
use std::fs::File;
use std::io::{IsTerminal as _, Read as _};
use std::path::PathBuf;

use clap::{CommandFactory as _, Parser, ValueEnum};
use rovelog::vel_format::declared::Types;
use rovelog::{Error, LogInfo, ReadOptions};

use crate::commands::Command;
use crate::output::{Out, Paint};
use crate::report::{Failure, Outcome, Report, Status};
use crate::when::{TimeBase, TimeFormat, Times};

const EXAMPLES: &str = "\
Examples:
  rovelog info flight.ulg                      what is in this log?
  rovelog cat flight.ulg --topics battery_status -f csv > battery.csv
  rovelog messages flight.ulg --level warn     what went wrong?

Results go to stdout, everything else to stderr; a FILE of - is stdin.
Exit codes: 0 done, 1 failure, 2 bad arguments, 3 done, but data was lost.";

/// Bytes of a file of declarations at most.
const DECLARATIONS: u64 = 1 << 20;

/// Look into sensor logs: what they hold, exactly, and nothing lost silently.
#[derive(Parser)]
#[command(name = "rovelog", version = version(), after_help = EXAMPLES, max_term_width = 100)]
#[command(disable_help_subcommand = true, subcommand_value_name = "COMMAND")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) global: Global,
}

/// The options that every command takes.
#[derive(clap::Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// How results are written: text, json, ndjson or csv
    #[arg(short, long, global = true, value_enum, value_name = "FORMAT", default_value = "text")]
    #[arg(hide_default_value = true, hide_possible_values = true)]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) time: TimeArgs,
    /// When to colour text: auto, always or never
    #[arg(short, long, global = true, value_enum, value_name = "WHEN", default_value = "auto")]
    #[arg(hide_default_value = true, hide_possible_values = true)]
    pub(crate) color: Color,
    /// No progress bar
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Say more: exact sizes, both forms of time, causes of errors
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
    /// Fail at the first damage instead of skipping it
    #[arg(long, global = true)]
    pub(crate) strict: bool,
    /// Read as this format, whatever the first bytes say: ulog, rld
    #[arg(long, global = true, value_name = "FORMAT")]
    pub(crate) input_format: Option<String>,
    /// Own message types of VEL logs, declared in this file
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) types: Option<PathBuf>,
}

/// How times are written.
#[derive(Clone, Copy, Default, clap::Args)]
pub(crate) struct TimeArgs {
    /// How times are written: auto, rfc3339, seconds or nanoseconds
    #[arg(long, global = true, value_enum, value_name = "FORMAT", hide_possible_values = true)]
    pub(crate) time_format: Option<TimeFormat>,
    /// What times count from: utc, boot or relative (to the start)
    #[arg(long, global = true, value_enum, value_name = "BASE", hide_possible_values = true)]
    pub(crate) time_base: Option<TimeBase>,
}

/// How results are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
    Ndjson,
    Csv,
    /// Parameters as QGroundControl keeps them.
    Qgc,
    /// Parameters as GNU Octave loads them.
    Octave,
}

impl Format {
    fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
            Self::Ndjson => "ndjson",
            Self::Csv => "csv",
            Self::Qgc => "qgc",
            Self::Octave => "octave",
        }
    }
}

/// When to colour text.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

/// What a command needs besides its own arguments.
pub(crate) struct Context {
    pub(crate) global: Global,
    pub(crate) report: Report,
    /// How logs are opened.
    pub(crate) options: ReadOptions,
}

impl Context {
    pub(crate) fn new(global: Global) -> Self {
        let paint = paint(global.color, std::io::stderr().is_terminal());
        Self { report: Report::new(global.verbose, paint), global, options: ReadOptions::default() }
    }

    /// Reads the declarations that the user named. They are checked before any log is opened, so that what is
    /// wrong with them is not said of a log.
    pub(crate) fn declare(&mut self) -> Result<(), Failure> {
        let Some(path) = &self.global.types else { return Ok(()) };
        let mut text = String::new();
        File::open(path)
            .and_then(|file| file.take(DECLARATIONS + 1).read_to_string(&mut text))
            .map_err(|error| Failure::failed(format!("cannot read the declarations: {error}")).at(path))?;
        if text.len() as u64 > DECLARATIONS {
            return Err(Failure::failed("declarations are not longer than 1 MiB").at(path));
        }
        Types::parse(&text).map_err(|error| Failure::from(Error::from(error)).at(path))?;
        self.options.declarations = text;
        Ok(())
    }

    /// Standard output, coloured or not.
    pub(crate) fn out(&self) -> Out {
        let terminal = std::io::stdout().is_terminal();
        Out::new(terminal, paint(self.global.color, terminal))
    }

    /// The format asked for, where the command writes it.
    pub(crate) fn format(&self, writes: &[Format]) -> Result<Format, Failure> {
        let asked = self.global.format;
        if writes.contains(&asked) {
            return Ok(asked);
        }
        let names: Vec<_> = writes.iter().map(|format| format.name()).collect();
        Err(Failure::usage(format!("this command does not write {}", asked.name()))
            .next(format!("use -f {}", names.join(" or -f "))))
    }

    pub(crate) fn times(&self, info: &LogInfo) -> Result<Times, Failure> {
        Times::new(info, self.global.time)
    }

    /// Runs `each` for all files: goes on after a failure, and the worst outcome wins (1, then 3, then 0).
    pub(crate) fn for_all<T>(
        &self,
        files: impl IntoIterator<Item = T>,
        mut each: impl FnMut(T) -> Outcome,
    ) -> Outcome {
        let mut worst = Status::Done;
        for file in files {
            match each(file) {
                Ok(status) => worst = worst.max(status),
                Err(failure) if failure.ends_the_run() => return Err(failure),
                Err(failure) => {
                    self.report.failure(&failure);
                    worst = Status::Failed;
                }
            }
        }
        Ok(worst)
    }
}

fn paint(color: Color, terminal: bool) -> Paint {
    Paint(match color {
        Color::Always => true,
        Color::Never => false,
        // https://no-color.org: set and not empty.
        Color::Auto => terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
    })
}

/// The command line; help, version and bad arguments end the program here.
pub(crate) fn parse(args: Vec<OsString>) -> Cli {
    if args.len() < 2 {
        // A closed pipe is no failure, and there is nothing else to say about it.
        let _ = Cli::command().print_help();
        std::process::exit(0);
    }
    Cli::parse_from(args)
}

/// The version and the formats that are built in.
fn version() -> &'static str {
    let formats: Vec<_> =
        rovelog::FORMATS.iter().map(|format| format!("{} ({})", format.name, format.about)).collect();
    format!("{}\nformats: {}", env!("CARGO_PKG_VERSION"), formats.join(", ")).leak()
}
