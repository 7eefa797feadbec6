//! State that all commands use: global options, options for reading logs, messages and progress.

use std::fs::File;
use std::io::IsTerminal as _;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use clap::ValueEnum;
use rovelog::core::internal::layout::TextEncoding;
use rovelog::core::internal::parallel::Jobs;
use rovelog::vel_format::declared::Types;
use rovelog::{Clock, Error, LogInfo, ReadOptions};

use crate::failure::Failure;
pub(crate) use crate::format::Format;
use crate::notices::Notices;
use crate::output::Out;
use crate::parts::Parts;
use crate::progress::Progress;
use crate::text::{Paint, parse_size, terminal_columns};
use crate::time_point::utc;
use crate::times::{TimeArgs, TimeBase, Times};

/// Maximum number of threads that `--jobs` accepts.
const MAX_JOBS: NonZeroUsize = NonZeroUsize::new(1024).unwrap();

/// Options that all commands accept.
#[derive(clap::Args)]
#[command(next_help_heading = "Global options")]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct Global {
    /// Format of the printed results: text (default), json, ndjson or csv
    #[arg(short, long, global = true, value_enum, value_name = "FORMAT", default_value = "text")]
    #[arg(hide_default_value = true, hide_possible_values = true)]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) time: TimeArgs,
    /// When to color printed text: auto (default, only in a terminal), always or never
    #[arg(short, long, global = true, value_enum, value_name = "WHEN", default_value = "auto")]
    #[arg(hide_default_value = true, hide_possible_values = true)]
    pub(crate) color: Color,
    /// Print only results, warnings and errors, without notes and progress bar
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Print tables with all columns, even if they are wider than the terminal
    #[arg(long, global = true)]
    pub(crate) wide: bool,
    /// Print more details: exact sizes, the causes of errors, and times both as dates and in
    /// seconds
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
    /// Fail if a log is damaged, instead of skipping its damaged parts
    #[arg(long, global = true)]
    pub(crate) strict: bool,
    /// Read the log in this format instead of detecting it: ulog, rld, rosbag or vel
    #[arg(long, global = true, value_name = "FORMAT")]
    pub(crate) input_format: Option<String>,
    /// VEL: read the fields of custom message types from this file
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) types: Option<PathBuf>,
    /// ROS bag: read missing message definitions from a .msg file or a folder of packages
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) msgs: Option<PathBuf>,
    /// UTC time of the start of the log, if the log contains no UTC, such as 2026-05-20T12:01:05Z
    #[arg(long, global = true, value_name = "TIME", value_parser = utc)]
    pub(crate) utc_start: Option<i64>,
    /// ULog, ROS bag: encoding of strings that are not UTF-8, such as cp1251; by default, their
    /// bytes are printed as escapes such as \xcf
    #[arg(long, global = true, value_name = "NAME", value_parser = text_encoding)]
    pub(crate) text_encoding: Option<TextEncoding>,
    /// Fail if a compressed log decompresses to more than this size; default 1GiB
    #[arg(long, global = true, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) max_unpacked: Option<u64>,
    /// Number of threads; default: the number of processors
    #[arg(long, global = true, value_name = "N", value_parser = jobs)]
    pub(crate) jobs: Option<Jobs>,
    /// Remote log: allow downloading the whole log if the command needs it, instead of failing
    #[arg(long, global = true)]
    pub(crate) allow_remote_scan: bool,
    /// Remote log: fail instead of downloading more than this, such as 50MB; default: no limit
    #[arg(long, global = true, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) max_bytes: Option<u64>,
    /// Remote log: follow redirects of a web server to other hosts, instead of failing
    #[arg(long, global = true)]
    pub(crate) follow_redirects: bool,
}

#[cfg(any(feature = "agents", feature = "view"))]
impl Global {
    /// Returns the options that affect how logs are read, as the user gave them. With these options,
    /// other commands read the logs in the same way.
    pub(crate) fn read_options(&self) -> Vec<String> {
        let path = |path: &PathBuf| {
            std::path::absolute(path).unwrap_or_else(|_| path.clone()).to_string_lossy().into_owned()
        };
        let utc = |nanos| rovelog::Timestamp { nanos, clock: Clock::Unix }.rfc3339();
        let options = [
            ("--input-format", self.input_format.clone()),
            ("--types", self.types.as_ref().map(path)),
            ("--msgs", self.msgs.as_ref().map(path)),
            ("--utc-start", self.utc_start.and_then(utc)),
            ("--text-encoding", self.text_encoding.map(|encoding| encoding.name().to_owned())),
            ("--max-unpacked", self.max_unpacked.map(|bytes| bytes.to_string())),
        ];
        let given = options.into_iter().filter_map(|(name, value)| Some([name.to_owned(), value?]));
        given.flatten().collect()
    }
}

fn text_encoding(name: &str) -> Result<TextEncoding, String> {
    TextEncoding::named(name).ok_or_else(|| {
        "the encoding is not supported; use a name as in web pages, such as windows-1251".to_owned()
    })
}

fn jobs(text: &str) -> Result<Jobs, String> {
    match text.parse::<NonZeroUsize>() {
        Ok(threads) if threads <= MAX_JOBS => Ok(Jobs::from(threads)),
        _ => Err(format!("expected a number from 1 to {MAX_JOBS}")),
    }
}

/// Value of `--color`, which determines when output has colors.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

/// State that all commands use: global options, messages, progress, and options for opening logs.
pub(crate) struct Context {
    pub(crate) global: Global,
    pub(crate) notices: Notices,
    pub(crate) progress: Progress,
    /// Separates the outputs of different logs if the command reads several logs.
    pub(crate) parts: Arc<Parts>,
    /// Options for opening logs.
    pub(crate) options: ReadOptions,
}

impl Context {
    pub(crate) fn new(global: Global, progress: Progress) -> Self {
        let paint = paint(global.color, std::io::stderr().is_terminal());
        let notices = Notices::new(global.verbose, paint, progress.clone());
        let mut options = ReadOptions::default();
        if let Some(bytes) = global.max_unpacked {
            options.limits = options.limits.with_unpacked(bytes);
        }
        options.utc_start = global.utc_start;
        options.text_encoding = global.text_encoding;
        // RocketLogger logs have two clocks. `--time-base boot` selects the monotonic clock.
        options.clock = (global.time.time_base == Some(TimeBase::Boot)).then_some(Clock::Boot);
        // With `--strict`, any damage must be found before the first byte of output is written. So
        // the whole log is read first, even if it has an index.
        options.read_all = global.strict;
        let parts = Arc::new(Parts::new(global.format));
        Self { global, notices, progress, parts, options }
    }

    /// Prints a note, unless the user gave `--quiet`.
    pub(crate) fn note(&self, text: &str) {
        if !self.global.quiet {
            self.notices.note(text);
        }
    }

    /// Reads the message definitions of `--msgs` and the type declarations of `--types`. This
    /// happens before any log is opened, so that an error in these files is not reported as an
    /// error of a log.
    pub(crate) fn declare(&mut self) -> Result<(), Failure> {
        if let Some(path) = &self.global.msgs {
            self.options.definitions = rovelog::rosbag12::msg::files::read(path).map_err(|error| {
                Failure::failed(format!("the message definitions of --msgs cannot be read: {error}")).at(path)
            })?;
        }
        let Some(path) = &self.global.types else { return Ok(()) };
        let file = File::open(path).map_err(|error| {
            Failure::failed(format!("the type declarations of --types cannot be read: {error}")).at(path)
        })?;
        let types = Types::read(file).map_err(|error| Failure::from(Error::from(error)).at(path))?;
        types.declarations().clone_into(&mut self.options.declarations);
        Ok(())
    }

    /// Returns the standard output, with colors if enabled.
    pub(crate) fn out(&self) -> Out {
        let terminal = std::io::stdout().is_terminal();
        let columns = terminal_columns().filter(|_| terminal && !self.global.wide);
        let paint = paint(self.global.color, terminal);
        Out::new(terminal, columns, paint, self.progress.clone(), Arc::clone(&self.parts))
    }

    /// Returns the format selected by `-f`, or an error if the command does not support it.
    /// `writes` lists the supported formats.
    pub(crate) fn format(&self, writes: &[Format]) -> Result<Format, Failure> {
        let asked = self.global.format;
        if writes.contains(&asked) {
            return Ok(asked);
        }
        let names: Vec<_> = writes.iter().map(|format| format.name()).collect();
        Err(Failure::usage(format!("this command does not support the output format {}", asked.name()))
            .next(format!("use -f {}", names.join(" or -f "))))
    }

    /// Returns the number of threads to use.
    pub(crate) fn jobs(&self) -> Jobs {
        self.global.jobs.unwrap_or_default()
    }

    /// Returns a formatter for the times of a log. Returns an error if the user gave `--utc-start`
    /// for a log that contains UTC.
    pub(crate) fn times(&self, info: &LogInfo) -> Result<Times, Failure> {
        let clock = info.start.map(|start| start.clock);
        if self.options.utc_start.is_some() && clock == Some(Clock::Unix) {
            return Err(Failure::usage(
                "--utc-start cannot be used, because the times in this log already are UTC",
            )
            .next("leave out --utc-start"));
        }
        Times::new(info, self.global.time)
    }
}

fn paint(color: Color, terminal: bool) -> Paint {
    Paint(match color {
        Color::Always => true,
        Color::Never => false,
        // According to <https://no-color.org>, colors are off if the variable is set and not empty.
        Color::Auto => terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
    })
}
