//! The limit of file sizes, at which writing fails.

use crate::jobs::Site;
use crate::{Tally, each, full, has};

/// Error text of the system at the limit.
const CAUSE: &str = "File too large";

/// Returns the file size limits to test: at the ends of blocks, in the middle of the file, and just
/// before the end of the file.
fn limits(largest: u64) -> Vec<u64> {
    let mut limits = if full().is_some() {
        vec![0, 1, 4095, 4096, 65_536, largest / 4, largest / 2, largest * 3 / 4, largest - 1]
    } else {
        vec![0, largest / 2, largest - 1]
    };
    limits.retain(|limit| *limit < largest);
    limits.sort_unstable();
    limits.dedup();
    limits
}

/// Runs the command with a file size limit. By default, the system ends a program that exceeds the
/// limit with the signal SIGXFSZ. If `ignored` is true, the parent process ignores this signal.
fn limited(site: &Site, limit: u64, ignored: bool) -> std::process::Output {
    let limit = format!("--fsize={limit}:{limit}");
    if ignored {
        site.run(&["sh", "-c", "trap '' XFSZ; exec \"$@\"", "sh", "prlimit", &limit], site.job.line)
    } else {
        site.run(&["prlimit", &limit], site.job.line)
    }
}

#[test]
fn exceeding_the_file_size_limit_is_an_error() {
    if !has("prlimit", &["--version"]) {
        return rovelog_testing::skipped("the program prlimit is not there");
    }
    let mut tally = Tally::default();
    each(|site| {
        for (number, limit) in limits(site.largest()).into_iter().enumerate() {
            let result = site.failed_well(&limited(site, limit, number.is_multiple_of(2)), CAUSE);
            tally.refused(site, &format!("a limit of {limit} bytes"), result);
        }
        // If the limit equals the size of the largest file, the command must succeed. This shows
        // that the limit is measured correctly.
        let result = site.succeeded(&limited(site, site.largest(), false));
        tally.whole(site, "a limit at the size", result);
    });
    Tally::end(&[("a limit of file sizes at up to 9 places (EFBIG)".to_owned(), tally)], "1-limit");
}
