//! Python environments in `target/`, with the packages that a task needs.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::process::run;
use crate::root;

// The documents mention these versions.
pub(crate) const MCAP: &str = "mcap==1.6.0";
pub(crate) const NUMPY: &str = "numpy==2.4.6";
pub(crate) const PYARROW: &str = "pyarrow==26.0.1";
pub(crate) const PYULOG: &str = "pyulog==1.3.0";
pub(crate) const ROCKETLOGGER: &str = "rocketlogger==2.1.3";
pub(crate) const ROSBAGS: &str = "rosbags==0.11.9";
pub(crate) const VELODYNE_DECODER: &str = "velodyne-decoder==3.1.0";

/// Returns the interpreter of the environment `target/python-<name>` with these packages. The
/// environment is created if it does not exist, or if it contains other packages.
pub(crate) fn with(name: &str, packages: &[&str]) -> Result<PathBuf> {
    let folder = root().join(format!("target/python-{name}"));
    let python = folder.join("bin/python");
    let list = folder.join("packages");
    let wanted = packages.join("\n");
    if std::fs::read_to_string(&list).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    if !packages.is_empty() {
        run(Command::new(&python).args(["-m", "pip", "install", "--quiet"]).args(packages))?;
    }
    std::fs::write(&list, wanted)?;
    Ok(python)
}

/// Returns the command that runs a script in `oracle/`, in an environment with `packages`.
pub(crate) fn script(name: &str, environment: &str, packages: &[&str]) -> Result<Command> {
    Ok(script_with(with(environment, packages)?, name))
}

/// Returns the command that runs a script in `oracle/` with this Python interpreter.
pub(crate) fn script_with(python: PathBuf, name: &str) -> Command {
    let mut command = Command::new(python);
    // `-B` prevents Python from writing bytecode files next to the sources.
    command.arg("-B").arg(root().join("oracle").join(name));
    command
}

/// Returns the command that runs a script in `oracle/`, in an environment with pyulog.
pub(crate) fn pyulog_script(name: &str) -> Result<Command> {
    script(name, "oracle-ulog", &[PYULOG, "numpy"])
}
