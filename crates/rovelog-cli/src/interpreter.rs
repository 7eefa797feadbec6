//! The Python interpreter, where this command line is part of the Python package.

use std::path::PathBuf;
use std::sync::OnceLock;

/// The interpreter whose package this command line is part of.
pub(crate) static INTERPRETER: OnceLock<PathBuf> = OnceLock::new();

/// Says that this command line is part of the Python package: programs that it starts are this
/// interpreter, which knows where the package is.
pub fn runs_in(interpreter: PathBuf) {
    // It does not change while the process runs.
    let _ = INTERPRETER.set(interpreter);
}
