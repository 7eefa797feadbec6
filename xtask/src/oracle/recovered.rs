//! What recovery makes of damaged logs, before the readers of others. There is none of VEL's container.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{binary, real, rld, script, ulog};
use crate::{damage, peers, root};

/// Damages all logs, recovers them, and has each format's reader open what came of it.
pub(super) fn judge() -> Result<()> {
    let binary = binary()?;
    let recovered = root().join("target/recovered");
    if recovered.exists() {
        std::fs::remove_dir_all(&recovered)?;
    }
    let status = damage::campaign("1", Some(&recovered)).status().context("starting the campaign")?;
    ensure!(status.success(), "something that must hold does not");
    let mut judges = vec![
        ("ulog", "ulog", ulog::script("recovered.py")?),
        ("rld", "rld", script("recovered.py", "oracle-rld", rld::REQUIREMENTS)?),
    ];
    if let Some(python) = peers::distribution_python("rosbag") {
        let mut judge = Command::new(python);
        judge.arg("-B").arg(root().join("oracle/recovered.py"));
        judges.push(("rosbag", "rosbag12", judge));
    } else {
        println!("SKIPPED: python3-rosbag is not installed: apt-get install python3-rosbag");
    }
    for (format, folder, mut judge) in judges {
        let real = real().map(|real| real.join(folder));
        let folders: Vec<PathBuf> = std::iter::once(root().join("corpus").join(format)).chain(real).collect();
        judge.arg(format).arg(&binary).arg(&recovered).args(folders);
        let status = judge.status().context("starting the script")?;
        ensure!(status.success(), "what was recovered of {format} logs is not read by others");
    }
    Ok(())
}
