//! Commands that this build lacks.

use std::ffi::OsString;

/// Arguments of a command that other builds have: anything.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    _any: Vec<OsString>,
}
