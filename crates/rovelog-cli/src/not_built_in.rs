//! Placeholder for the commands that this build does not include.

use std::ffi::OsString;

// Any arguments are accepted. Otherwise the user would see an error message about the arguments,
// and not the message that the feature is missing. This is not a doc comment, because clap would
// show it as the help.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    _any: Vec<OsString>,
}
