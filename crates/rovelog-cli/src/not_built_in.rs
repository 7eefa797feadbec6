//! What this build lacks, and how to get it.

#[cfg(not(all(feature = "lake", feature = "view")))]
use std::ffi::OsString;

use crate::failure::Failure;

/// Arguments of a command that other builds have: anything.
#[cfg(not(all(feature = "lake", feature = "view")))]
#[derive(clap::Args)]
pub(crate) struct Args {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    _any: Vec<OsString>,
}

/// Returns the failure of a build without a feature of this package; `lacks` is what it cannot do.
pub(crate) fn failure(lacks: &str, feature: &str) -> Failure {
    Failure::failed(format!("this build of rovelog {lacks}")).next(format!(
        "use a released binary or the Python package, or build it: cargo install rovelog-cli --features {feature}"
    ))
}
