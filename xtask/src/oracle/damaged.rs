//! Runs other readers on damaged and recovered logs. For VEL, there is no other reader.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Result;

use super::{rocketlogger_script, rosbag_script};
use corpus_generator::real;

use crate::place::binary;
use crate::process::run_or;
use crate::python::pyulog_script;
use crate::reliability::{self, Page};
use crate::root;

/// Opens recovered logs with all other readers.
pub(super) fn recovered() -> Result<()> {
    let binary = binary()?;
    let recovered = empty("recovered")?;
    run_or(&mut reliability::recovered_logs(&recovered), "a property does not hold")?;
    let mut table =
        "| format | left out | read the same | different, as intended |\n|---|---|---|---|\n".to_owned();
    for (format, mut script) in scripts("recovered.py")? {
        script.arg(format).arg(&binary).arg(&recovered).args(logs(format));
        table += &reliability::table(&mut script, "another reader cannot read the recovered logs")?;
    }
    Page::RECOVERED_LOGS.record(&table)
}

/// Counts the records that other readers find in damaged logs. The damage concerns pages, sectors
/// and single bytes.
pub(super) fn survivors() -> Result<()> {
    let damaged = empty("damaged")?;
    run_or(reliability::damaged_logs(&damaged).stdout(Stdio::null()), "a log cannot be read")?;
    let mut table = "| other reader | damage | logs | untouched records | rovelog finds, % | it finds, % | \
                     rovelog: false | it: false |\n|---|---|---|---|---|---|---|---|\n"
        .to_owned();
    for (format, mut script) in scripts("survivors.py")? {
        script.arg(format).arg(&damaged).args(logs(format));
        table += &reliability::table(&mut script, "another reader cannot be run")?;
    }
    Page::OTHER_READERS.compare(&table)
}

/// Returns a script in `oracle/` for each log format for which another reader is installed.
fn scripts(name: &str) -> Result<Vec<(&'static str, Command)>> {
    let mut scripts = vec![("ulog", pyulog_script(name)?), ("rld", rocketlogger_script(name)?)];
    scripts.extend(rosbag_script(name).map(|script| ("rosbag", script)));
    Ok(scripts)
}

/// Returns the folders that contain undamaged logs of a format.
fn logs(format: &str) -> Vec<PathBuf> {
    let folders: &[&str] = if format == "rosbag" { &["rosbag12", "rosbag20"] } else { &[format] };
    let real = real().into_iter().flat_map(|real| folders.iter().map(move |folder| real.join(folder)));
    [root().join("corpus").join(format)].into_iter().chain(real).collect()
}

/// Returns an empty folder in `target/`.
fn empty(name: &str) -> Result<PathBuf> {
    let folder = root().join("target").join(name);
    if Path::exists(&folder) {
        fs::remove_dir_all(&folder)?;
    }
    Ok(folder)
}
