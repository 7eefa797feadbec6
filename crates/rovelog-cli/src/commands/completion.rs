//! The command `rovelog completion`, which prints a script for a shell. The script completes names
//! of commands, options, topics and signals. The topics and signals are read from the log named on
//! the command line.

use std::io::Write as _;

use clap::builder::PossibleValuesParser;
use clap_complete::env::{CompleteEnv, Shells};

use crate::context::{Context, Format};
use crate::failure::{Failure, Outcome, Status};

/// Name of the environment variable that the completion script sets to request completions from
/// `rovelog`.
const COMPLETION_VARIABLE: &str = "ROVELOG_COMPLETE";

const EXAMPLES: &str = "\
Examples:
  source <(rovelog completion bash)                        in ~/.bashrc
  source <(rovelog completion zsh)                         in ~/.zshrc
  rovelog completion fish > ~/.config/fish/completions/rovelog.fish";

/// Print a shell completion script for commands, options, topics and signals
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Shell for which the script is printed: bash, elvish, fish, powershell or zsh
    #[arg(value_name = "SHELL", value_parser = PossibleValuesParser::new(Shells::builtins().names()))]
    #[arg(hide_possible_values = true)]
    shell: String,
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    context.format(&[Format::Text])?;
    let mut script = Vec::new();
    let shells = Shells::builtins();
    let shell = shells.completer(&args.shell).ok_or_else(|| Failure::usage("unknown shell"))?;
    shell.write_registration(COMPLETION_VARIABLE, "rovelog", "rovelog", "rovelog", &mut script)?;
    let mut out = context.out();
    out.write_all(&script)?;
    out.flush()?;
    Ok(Status::Done)
}

/// Prints completions for the command line defined by `line` and ends the process, if a shell
/// requested completions. Otherwise does nothing.
pub(crate) fn answer(line: fn() -> clap::Command) {
    CompleteEnv::with_factory(line).var(COMPLETION_VARIABLE).complete();
}
