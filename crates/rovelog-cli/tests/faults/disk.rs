//! Tests with a full file system. A small file system in memory is mounted, which only the tested
//! command can see.

use std::fs;

use crate::jobs::{Site, check_failure};
use crate::{Tally, each, full, has};

/// Mounts a file system of `$1` bytes, runs the job with its output there, and lists the remaining
/// files.
const SCRIPT: &str = "mount -t tmpfs -o size=$1 tmpfs disk || exit 99; shift; \"$@\"; code=$?; \
                      find disk -mindepth 1 > left; exit $code";

/// Allocation unit in bytes of a file system in memory.
const PAGE: u64 = 4096;

/// Runs the job with its output on a disk of `bytes` bytes. Returns the output of the command and
/// the list of remaining files.
fn on_disk(site: &Site, bytes: u64) -> (std::process::Output, String) {
    let bytes = bytes.to_string();
    let line = site.job.line.replace("-o out", "-o disk/out");
    fs::create_dir(site.folder().join("disk")).unwrap();
    let output = site.run(&["unshare", "-rm", "sh", "-c", SCRIPT, "sh", &bytes], &line);
    let left = fs::read_to_string(site.folder().join("left")).unwrap_or_default();
    site.clear();
    (output, left)
}

#[test]
fn a_full_disk_is_an_error() {
    if !has("unshare", &["-rm", "sh", "-c", "mount -t tmpfs tmpfs /mnt"]) {
        return rovelog_testing::skipped("no file system may be mounted");
    }
    let mut tally = Tally::default();
    each(|site| {
        // An output smaller than a page always fits.
        let sum: u64 = site.whole.values().flatten().map(|bytes| bytes.len() as u64).sum();
        let half = sum / 2 / PAGE * PAGE;
        let mut sizes = vec![PAGE, half];
        if full().is_some() {
            sizes.extend([half / 2 / PAGE * PAGE, 1 << 20, (sum - 1) / PAGE * PAGE]);
        }
        sizes.retain(|size| (PAGE..sum).contains(size));
        sizes.sort_unstable();
        sizes.dedup();
        for size in sizes {
            let (output, left) = on_disk(site, size);
            let mut result =
                check_failure(&output, "No space left on device", "next: free disk space", ": disk/out");
            if result.is_ok() && !left.is_empty() {
                result = Err(format!("left {left}"));
            }
            tally.refused(site, &format!("a disk of {size} bytes"), result);
        }
    });
    Tally::end(&[("a full file system, up to 1 MiB (ENOSPC)".to_owned(), tally)], "3-disk");
}
