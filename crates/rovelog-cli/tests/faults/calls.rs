//! System calls that fail once. `strace` returns an error without executing the call.

use std::collections::BTreeMap;
use std::fs;

use crate::jobs::{Site, check_failure};
use crate::{Tally, each, full, has};

/// A system call, its error, the text in the message, and whether the program tries the call again.
struct Fault {
    call: &'static str,
    error: &'static str,
    said: &'static str,
    again: bool,
}

const fn fault(call: &'static str, error: &'static str, said: &'static str) -> Fault {
    Fault { call, error, said, again: false }
}

impl Fault {
    /// Returns the name of the fault for the tables of results.
    fn name(&self) -> String {
        format!("`{}`: {}", self.call, self.error)
    }
}

const FAULTS: &[Fault] = &[
    fault("write", "ENOSPC", "No space left on device"),
    fault("write", "EIO", "Input/output error"),
    fault("write", "EDQUOT", "Disk quota exceeded"),
    Fault { again: true, ..fault("write", "EINTR", "") },
    fault("fsync", "EIO", "Input/output error"),
    fault("fsync", "ENOSPC", "No space left on device"),
    Fault { again: true, ..fault("fsync", "EINTR", "") },
    fault("openat", "ENOSPC", "No space left on device"),
    fault("openat", "EROFS", "Read-only file system"),
    fault("openat", "EMFILE", "Too many open files"),
    // These errors occur on a file system without hard links. The program then renames the file.
    Fault { again: true, ..fault("linkat", "EPERM", "") },
    Fault { again: true, ..fault("linkat", "EOPNOTSUPP", "") },
    fault("unlink", "EIO", "Input/output error"),
    fault("mkdir", "ENOSPC", "No space left on device"),
];

/// Returns the paths to which a command writes. Each path is given in two forms: relative, as the
/// command uses it, and absolute, as the system reports it for open files.
fn paths(site: &Site) -> Vec<String> {
    let folder = site.folder();
    let mut paths = Vec::new();
    for (path, bytes) in &site.whole {
        let whole = folder.join(path).into_os_string().into_string().unwrap();
        for path in [path, &whole] {
            paths.push(path.clone());
            paths.extend(bytes.is_some().then(|| format!("{path}.partial")));
        }
    }
    paths
}

/// Returns the arguments that run a command under strace. Only system calls on `paths` are traced.
fn traced(paths: &[String], options: &[&str]) -> Vec<String> {
    let mut words: Vec<String> = ["strace", "-f", "-qq"].map(str::to_owned).to_vec();
    words.extend(options.iter().map(|&option| option.to_owned()));
    for path in paths {
        words.extend(["-P".to_owned(), path.clone()]);
    }
    words.push("--".to_owned());
    words
}

/// Counts the system calls on the output files. For each call, returns the maximum over all
/// threads.
fn counted(site: &Site, paths: &[String], line: &str) -> BTreeMap<String, usize> {
    let report = site.folder().join("trace");
    let report = report.to_str().unwrap();
    let words = traced(paths, &["-o", report, "-e", "trace=write,fsync,openat,linkat,unlink,mkdir"]);
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let output = site.run(&words, line);
    assert_eq!(output.status.code(), site.code, "{line}: {}", String::from_utf8_lossy(&output.stderr));
    let mut counts = BTreeMap::<_, usize>::new();
    for call in fs::read_to_string(report).unwrap().lines() {
        let Some((thread, call)) = call.split_once(' ') else { continue };
        let Some((name, _)) = call.trim_start().split_once('(') else { continue };
        *counts.entry((thread.to_owned(), name.to_owned())).or_default() += 1;
    }
    let mut most = BTreeMap::new();
    for ((_, name), count) in counts {
        let entry = most.entry(name).or_default();
        *entry = count.max(*entry);
    }
    most
}

/// Returns which of the `count` calls are made to fail. If there are many calls, only some of them
/// are tested.
fn turns(count: usize) -> Vec<usize> {
    let most = if full().is_some() { 12 } else { 2 };
    let mut turns: Vec<_> = if count <= most {
        (1..=count).collect()
    } else {
        (0..most).map(|turn| 1 + turn * (count - 1) / (most - 1)).collect()
    };
    turns.dedup();
    turns
}

/// Runs a command once for each of its system calls. In each run, a different call fails.
fn fail_each(site: &Site, faults: &[Fault], line: &str, tallies: &mut BTreeMap<String, Tally>) {
    let paths = paths(site);
    let counts = counted(site, &paths, line);
    site.clear();
    for fault in faults {
        let count = counts.get(fault.call).copied().unwrap_or(0);
        for turn in turns(count) {
            let inject = format!("inject={}:error={}:when={turn}", fault.call, fault.error);
            let report = site.folder().join("trace");
            let words = traced(&paths, &["-o", report.to_str().unwrap(), "-e", &inject]);
            let words: Vec<_> = words.iter().map(String::as_str).collect();
            let output = site.run(&words, line);
            let trace = fs::read_to_string(&report).unwrap();
            fs::remove_file(&report).unwrap();
            // The threads divide the work differently in each run, so the call that should fail may
            // not occur.
            if !trace.contains("(INJECTED)") {
                site.clear();
                continue;
            }
            let tally = tallies.entry(fault.name()).or_default();
            let what = format!("{} fails with {} at {turn} of {count}", fault.call, fault.error);
            if fault.again {
                tally.whole(site, &what, site.succeeded(&output));
            } else {
                tally.refused(site, &what, site.failed_well(&output, fault.said));
            }
        }
    }
}

#[test]
fn a_failing_system_call_is_an_error() {
    if !has("strace", &["-o", "/dev/null", "true"]) {
        return rovelog_testing::skipped("strace is not there, or may not trace");
    }
    let mut tallies = BTreeMap::new();
    let mut number = 0;
    each(|site| {
        number += 1;
        // In the short run, only every fourth command is tested.
        if full().is_some() || number % 4 == 1 {
            fail_each(site, FAULTS, site.job.line, &mut tallies);
        }
    });
    // The full plan has a run for each command.
    if full().is_some() {
        for fault in FAULTS {
            tallies.entry(fault.name()).or_default();
        }
    }
    assert!(!tallies.is_empty(), "no call failed");
    Tally::end(&tallies.into_iter().collect::<Vec<_>>(), "2-calls");
}

#[test]
fn a_failing_rename_keeps_the_old_file() {
    if !has("strace", &["-o", "/dev/null", "true"]) {
        return rovelog_testing::skipped("strace is not there, or may not trace");
    }
    let mut tally = Tally::default();
    each(|site| {
        let file = site.whole.iter().find(|(path, bytes)| bytes.is_some() && path.starts_with("out."));
        let Some((name, _)) = file else { return };
        let path = site.folder().join(name);
        let line = format!("{} --force", site.job.line);
        for (error, said) in [("EIO", "Input/output error"), ("ENOSPC", "No space left on device")] {
            fs::write(&path, "old").unwrap();
            let inject = format!("inject=rename:error={error}");
            let output = site.run(&["strace", "-f", "-qq", "-o", "/dev/null", "-e", &inject], &line);
            let mut result = check_failure(&output, said, "next: ", ": out");
            let mut after = site.tree();
            let old = after.remove(name);
            if result.is_ok() && (old != Some(Some(b"old".to_vec())) || after != site.before) {
                result = Err("the old file has changed, or another one is left".to_owned());
            }
            tally.refused(site, &format!("rename fails with {error}"), result);
        }
    });
    Tally::end(&[("`rename` over an old file: EIO, ENOSPC".to_owned(), tally)], "2-rename");
}

/// The output is complete, but the list of files may not be on the disk. The message states both.
#[test]
fn an_unsynced_folder_is_reported() {
    if !has("strace", &["-o", "/dev/null", "true"]) {
        return rovelog_testing::skipped("strace is not there, or may not trace");
    }
    let site = Site::new(&crate::jobs::JOBS[1]);
    let folder = site.folder();
    let only = folder.to_str().unwrap();
    let output = site.run(
        &["strace", "-f", "-qq", "-o", "/dev/null", "-P", only, "-e", "inject=fsync:error=EIO"],
        site.job.line,
    );
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("the output is complete, but could be lost in a power failure"), "{said}");
    assert!(said.contains("Input/output error") && said.contains("next: "), "{said}");
    assert!(site.tree()["out.ulg"] == site.whole["out.ulg"] && site.tree().len() == site.before.len() + 1);
}
