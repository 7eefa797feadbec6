//! Parses the command line, and defines its help and version texts.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command as Line, CommandFactory as _, FromArgMatches as _, Parser};

use crate::commands::{self, Command};
use crate::context::Global;
use crate::input::has_log_extension;
use crate::text::{escape, is_terminal_control};

const EXAMPLES: &str = "\
Examples:
  rovelog flight.ulg                           what is in this log? The same as rovelog info
  rovelog cat flight.ulg --topics battery_status -f csv > battery.csv
  rovelog messages flight.ulg --level warn     what went wrong?

Results go to stdout, and all messages go to stderr. A FILE called - is stdin.
Exit codes: 0 success; 1 failure, or a damaged log (check); 2 invalid arguments;
3 finished, but the output lacks data.";

/// Inspect, convert, plot and repair ULog, RLD, VEL and ROS bag logs.
#[derive(Parser)]
#[command(name = "rovelog", version = version(), after_help = EXAMPLES, max_term_width = 100)]
#[command(subcommand_value_name = "COMMAND")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) global: Global,
}

/// Returns the definition of the command line for the help that `args` requests. `rovelog --help`
/// explains the global options, and the help of a command lists their names. `-h` shows only the
/// examples, and no other text below the options.
fn line_for_help(args: &[OsString]) -> Line {
    let line = Cli::command();
    let words: Vec<_> = args.iter().skip(1).filter_map(|arg| arg.to_str()).collect();
    if matches!(words[..], ["--help" | "help"]) {
        return line;
    }
    let globals = option_names(line.get_arguments().filter(|arg| arg.is_global_set()));
    let is_short = words.is_empty() || words.contains(&"-h");
    let to = words.iter().skip_while(|word| **word != "--to").nth(1).copied();
    let to = to.or_else(|| words.iter().find_map(|word| word.strip_prefix("--to=")));
    let line = line.mut_subcommand("export", |export| commands::export::help(export, to));
    add_globals(line, &globals, is_short)
        .mut_args(|arg| if arg.is_global_set() { arg.hide(true) } else { arg })
}

/// Adds the names of the global options to the help of a command and its subcommands.
fn add_globals(command: Line, globals: &str, is_short: bool) -> Line {
    let command = command.mut_subcommands(|command| add_globals(command, globals, is_short));
    let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let text = if is_short {
        let examples = text.find("Examples:").map_or("", |at| &text[at..]);
        format!("Explanations: --help. Options of all commands: rovelog --help\n\n{examples}")
    } else {
        format!("Options of all commands; for help, rovelog --help:\n  {globals}\n\n{text}")
    };
    command.after_help(text.trim_end().to_owned())
}

/// Returns the names of options as a list.
pub(crate) fn option_names<'a>(args: impl Iterator<Item = &'a Arg>) -> String {
    args.filter_map(|arg| Some(format!("--{}", arg.get_long()?))).collect::<Vec<_>>().join(", ")
}

/// Parses the command line. If the user requests help or the version, or if an argument is invalid,
/// this function prints the text or the error message and ends the process.
pub(crate) fn parse(args: Vec<OsString>) -> Cli {
    if args.len() < 2 {
        // If printing fails, the reader of stdout has closed the pipe. An error message would
        // probably not be read either, so the error is ignored.
        let _ = line_for_help(&args).print_help();
        std::process::exit(0);
    }
    // clap repeats invalid arguments in its message. An argument may be a file name with control
    // characters, and these must not reach the terminal.
    let harmful = args.iter().any(|arg| arg.to_string_lossy().contains(is_terminal_control));
    let is_help = args.iter().any(|arg| arg == "-h" || arg == "--help" || arg == "help");
    let line = if is_help { line_for_help(&args) } else { Cli::command() };
    let parsed = line.try_get_matches_from(with_command(args));
    parsed.and_then(|matches| Cli::from_arg_matches(&matches)).unwrap_or_else(|mut error| {
        // If the user passes an option of another command, clap suggests passing it as a value
        // after `--`. Users hardly ever want that, so this tip is removed.
        if let Some(ContextValue::StyledStrs(tips)) = error.remove(ContextKind::Suggested) {
            let keep = |tip: &StyledStr| !tip.to_string().contains("as a value");
            let tips: Vec<_> = tips.into_iter().filter(keep).collect();
            if !tips.is_empty() {
                error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
            }
        }
        if let Some(tip) = writer_tip(&error).or_else(|| other_word_tip(&error)) {
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
        }
        // The message of clap has colors, so it is printed unchanged unless the arguments contain
        // control characters.
        if !harmful {
            error.exit();
        }
        let text = error.to_string();
        let lines: Vec<_> = text.lines().map(escape).collect();
        let _ = writeln!(std::io::stderr().lock(), "{}", lines.join("\n"));
        std::process::exit(error.exit_code());
    })
}

/// Inserts the command `info` if the first argument is a log instead of a command. An argument is a
/// log if the file exists, or if the argument has the extension of a log format.
fn with_command(mut args: Vec<OsString>) -> Vec<OsString> {
    let first = &args[1];
    let is_command = Cli::command().find_subcommand(first).is_some() || first == "help";
    let path = Path::new(first);
    if (path.exists() || has_log_extension(path)) && !is_command {
        args.insert(1, "info".into());
    }
    args
}

/// Commands and options of other programs, each with the Rovelog command for the same task.
const OTHER_WORDS: [(&str, &str); 3] = [
    ("--non-default", "rovelog params FILE --changed"),
    ("spectrum", "rovelog plot FILE 'psd(SIGNAL)'"),
    ("reindex", "rovelog recover FILE -o OUT"),
];

/// Returns a tip for a command or option that belongs to another program or to another level of
/// Rovelog's commands. For example, the tip for `rovelog bag info` is `use rovelog info FILE`.
fn other_word_tip(error: &clap::Error) -> Option<String> {
    let word =
        text(error, ContextKind::InvalidSubcommand).or_else(|| text(error, ContextKind::InvalidArg))?;
    if let Some((_, words)) = OTHER_WORDS.iter().find(|(known, _)| *known == word) {
        return Some(format!("use {words}"));
    }
    let is_command =
        error.kind() == ErrorKind::InvalidSubcommand && Cli::command().find_subcommand(word).is_some();
    is_command.then(|| format!("use rovelog {word} FILE"))
}

/// Returns a text of an error, such as the name of an invalid argument.
fn text(error: &clap::Error, kind: ContextKind) -> Option<&str> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text),
        _ => None,
    }
}

/// Returns a tip for an unsupported `-f FORMAT` if another command writes files of this format. For
/// example, the tip for `-f parquet` is `rovelog export --to parquet`.
fn writer_tip(error: &clap::Error) -> Option<String> {
    let option = text(error, ContextKind::InvalidArg)?;
    let name = text(error, ContextKind::InvalidValue).filter(|_| option.starts_with("--format"))?;
    let command = commands::writer_of(name)?;
    Some(format!("to write such a file, use 'rovelog {command} --to {name}'"))
}

/// Returns the version and the names of the built-in formats.
fn version() -> &'static str {
    let formats: Vec<_> =
        rovelog::FORMATS.iter().map(|format| format!("{} ({})", format.name, format.about)).collect();
    // clap requires a `'static` string. Leaking it is acceptable, because the string is small and
    // created only once.
    format!("{}\nformats: {}", env!("CARGO_PKG_VERSION"), formats.join(", ")).leak()
}
