//! Path of the Python interpreter, for a command line that runs inside the Python package.

use std::path::PathBuf;
use std::sync::OnceLock;

/// Path of the Python interpreter that runs this command line. It is not set in the binary
/// `rovelog`.
pub(crate) static INTERPRETER: OnceLock<PathBuf> = OnceLock::new();

/// Sets the Python interpreter that starts other processes: the workers and engines of `rovelog
/// ingest`, and the commands of `rovelog mcp`. The Python package sets its own interpreter, because
/// no other interpreter can be expected to import the package.
pub fn set_interpreter(interpreter: PathBuf) {
    // A second call is ignored. The interpreter does not change while the process runs.
    let _ = INTERPRETER.set(interpreter);
}

/// Returns the program and the first arguments that start this command line once more: the Python
/// interpreter, or the binary `rovelog`.
#[cfg(any(feature = "agents", feature = "lake"))]
pub(crate) fn this_program() -> std::io::Result<(PathBuf, Vec<String>)> {
    match INTERPRETER.get() {
        Some(python) => Ok((python.clone(), ["-m", "rovelog"].map(str::to_owned).to_vec())),
        None => Ok((std::env::current_exe()?, Vec::new())),
    }
}
