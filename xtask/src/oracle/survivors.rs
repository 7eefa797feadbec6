//! What other readers find in logs with damaged pages, sectors and single bytes. VEL has none.

use std::fs;
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};

use super::{rld, rosbag};
use crate::process::run_or;
use crate::{damage, place, python, root};

const HEAD: &str = "\
| other reader | damage | logs | untouched records | rovelog finds, % | it finds, % | rovelog: false | it: false |
|---|---|---|---|---|---|---|---|
";

/// Damages all logs, and compares the table of what each format's reader finds with the document.
pub(super) fn check() -> Result<()> {
    let damaged = root().join("target/damaged");
    if damaged.exists() {
        fs::remove_dir_all(&damaged)?;
    }
    run_or(damage::pages(&damaged).stdout(Stdio::null()), "a log cannot be read")?;
    let readers = [
        ("ulog", &["ulog"][..], Some(python::pyulog_script("survivors.py")?)),
        ("rld", &["rld"], Some(rld::script("survivors.py")?)),
        ("rosbag", &["rosbag12", "rosbag20"], rosbag::script("survivors.py")),
    ];
    let mut table = HEAD.to_owned();
    for (format, folders, script) in readers {
        let Some(mut script) = script else { continue };
        script.arg(format).arg(&damaged).arg(root().join("corpus").join(format));
        if let Some(real) = place::real() {
            script.args(folders.iter().map(|folder| real.join(folder)));
        }
        let output = script.stderr(Stdio::inherit()).output().context("starting another reader")?;
        ensure!(output.status.success(), "the other reader of {format} cannot be run");
        table += &String::from_utf8(output.stdout).context("the table is not text")?;
    }
    damage::say("oracle survivors", &table)
}
