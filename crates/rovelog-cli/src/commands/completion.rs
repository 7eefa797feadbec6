//! `rovelog completion`: shell completion, including the topics of the named log.

use std::io::Write as _;

use clap::builder::PossibleValuesParser;
use clap_complete::env::{CompleteEnv, Shells};

use crate::context::{Context, Format};
use crate::failure::{Failure, Outcome, Status};

/// Environment variable that a completion script sets.
const ASKED: &str = "ROVELOG_COMPLETE";

const EXAMPLES: &str = "\
Examples:
  source <(rovelog completion bash)                        in ~/.bashrc
  source <(rovelog completion zsh)                         in ~/.zshrc
  rovelog completion fish > ~/.config/fish/completions/rovelog.fish";

/// Print a shell completion script for commands, options and topics
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// bash, elvish, fish, powershell or zsh
    #[arg(value_name = "SHELL", value_parser = PossibleValuesParser::new(Shells::builtins().names()))]
    #[arg(hide_possible_values = true)]
    shell: String,
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    context.format(&[Format::Text])?;
    let mut script = Vec::new();
    let shells = Shells::builtins();
    let shell = shells.completer(&args.shell).ok_or_else(|| Failure::usage("unknown shell"))?;
    shell.write_registration(ASKED, "rovelog", "rovelog", "rovelog", &mut script)?;
    let mut out = context.out();
    out.write_all(&script)?;
    out.flush()?;
    Ok(Status::Done)
}

/// If a shell asks for completions of `line`, prints them and ends the process; otherwise returns.
pub(crate) fn answer(line: fn() -> clap::Command) {
    CompleteEnv::with_factory(line).var(ASKED).complete();
}
