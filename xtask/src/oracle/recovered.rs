//! Opens recovered logs with independent readers. There is none for the VEL container.

use std::path::PathBuf;

use anyhow::Result;

use super::{rld, rosbag};
use crate::place::{binary, real};
use crate::process::run_or;
use crate::{damage, python, root};

/// Damages all logs, recovers them, and opens the results with each format's reader.
pub(super) fn check() -> Result<()> {
    let binary = binary()?;
    let recovered = root().join("target/recovered");
    if recovered.exists() {
        std::fs::remove_dir_all(&recovered)?;
    }
    run_or(&mut damage::campaign("1", Some(&recovered)), "something that must hold does not")?;
    let checkers = [
        ("ulog", &["ulog"][..], Some(python::pyulog_script("recovered.py")?)),
        ("rld", &["rld"], Some(rld::script("recovered.py")?)),
        ("rosbag", &["rosbag12", "rosbag20"], rosbag::script("recovered.py")),
    ];
    let real = real();
    for (format, folders, checker) in checkers {
        let Some(mut checker) = checker else { continue };
        let folders = folders.iter().filter_map(|folder| Some(real.as_ref()?.join(folder)));
        let folders: Vec<PathBuf> = folders.chain([root().join("corpus").join(format)]).collect();
        checker.arg(format).arg(&binary).arg(&recovered).args(folders);
        run_or(&mut checker, &format!("other readers cannot read the recovered {format} logs"))?;
    }
    Ok(())
}
