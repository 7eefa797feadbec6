//! What recovery makes of damaged logs, before the readers of others. There is none of VEL's container.

use std::path::PathBuf;

use anyhow::Result;

use super::{binary, real, rld, rosbag, ulog};
use crate::process::run_or;
use crate::{damage, root};

/// Damages all logs, recovers them, and has each format's reader open what came of it.
pub(super) fn judge() -> Result<()> {
    let binary = binary()?;
    let recovered = root().join("target/recovered");
    if recovered.exists() {
        std::fs::remove_dir_all(&recovered)?;
    }
    run_or(&mut damage::campaign("1", Some(&recovered)), "something that must hold does not")?;
    let judges = [
        ("ulog", "ulog", Some(ulog::script("recovered.py")?)),
        ("rld", "rld", Some(rld::script("recovered.py")?)),
        ("rosbag", "rosbag12", rosbag::script("recovered.py")),
    ];
    for (format, folder, judge) in judges {
        let Some(mut judge) = judge else { continue };
        let real = real().map(|real| real.join(folder));
        let folders: Vec<PathBuf> = std::iter::once(root().join("corpus").join(format)).chain(real).collect();
        judge.arg(format).arg(&binary).arg(&recovered).args(folders);
        run_or(&mut judge, &format!("what was recovered of {format} logs is not read by others"))?;
    }
    Ok(())
}
