//! Seeds (initial inputs) of the fuzz targets. The repository contains a small archive of seeds for
//! each target. The tests run the targets with these seeds.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::process::run;
use crate::root;

/// Maximum total size in bytes of the seeds for one target, before compression.
const MAX_BYTES: u64 = 160 << 10;

fn archive(target: &str) -> PathBuf {
    root().join("fuzz/seeds").join(format!("{target}.tar.gz"))
}

/// Unpacks the seeds of a target into the folder of its inputs.
pub(super) fn unpack(target: &str, inputs: &Path) -> Result<()> {
    let archive = archive(target);
    if !archive.is_file() {
        return Ok(());
    }
    run(Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(inputs))
}

/// Packs the smallest inputs of a target as its seeds. Returns the number of seeds and their total
/// size in bytes.
pub(super) fn pack(target: &str, inputs: &Path) -> Result<(usize, u64)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(inputs)? {
        let entry = entry?;
        files.push((entry.metadata()?.len(), entry.file_name()));
    }
    files.sort();
    let mut bytes = 0;
    files.retain(|(len, _)| {
        bytes += len;
        bytes <= MAX_BYTES
    });
    let kept = files.iter().map(|(len, _)| len).sum();
    let archive = archive(target);
    let folder = archive.parent().context("the archive is in a folder")?;
    fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    let mut tar = Command::new("tar");
    // With these options, the bytes of the archive only depend on the seeds.
    tar.args(["--format=ustar", "--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"]);
    tar.args(["--mode=644", "-czf"]).arg(&archive).arg("-C").arg(inputs);
    run(tar.args(files.iter().map(|(_, name)| name)))?;
    Ok((files.len(), kept))
}
