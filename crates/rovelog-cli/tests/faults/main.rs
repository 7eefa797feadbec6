//! Faults while writing: every write fails once, and every command is killed at any time. An output
//! must be complete or absent.
//!
//! The binary is not changed for these tests. The faults are a file size limit, failing system
//! calls (strace), a full file system, and SIGKILL. A small part of them runs with the other tests.
//! `cargo xtask faults` runs all of them, and passes the folder for its tables in `ROVELOG_FAULTS`.
#![cfg(target_os = "linux")]

#[path = "../common/mod.rs"]
mod common;

mod calls;
mod disk;
mod jobs;
mod kills;
mod lake;
mod limit;

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use jobs::{JOBS, Site};

/// Returns the folder for the tables if all faults are tested.
pub(crate) fn full() -> Option<PathBuf> {
    std::env::var_os("ROVELOG_FAULTS").map(PathBuf::from)
}

/// Returns true if a program can be started.
pub(crate) fn has(program: &str, args: &[&str]) -> bool {
    let run = Command::new(program).args(args).stdout(Stdio::null()).stderr(Stdio::null()).status();
    run.is_ok_and(|status| status.success())
}

/// Numbers of runs for one kind of fault.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) runs: usize,
    /// Number of runs that ended with an error and wrote nothing.
    pub(crate) refused: usize,
    /// Number of runs that tried again and wrote the complete output.
    pub(crate) whole: usize,
    broken: Vec<String>,
}

impl Tally {
    /// Counts a run of a command that must fail.
    pub(crate) fn refused(&mut self, site: &Site, fault: &str, result: Result<(), String>) {
        self.runs += 1;
        match result {
            Ok(()) => self.refused += 1,
            Err(why) => self.broken.push(format!("{}, {fault}: {why}", site.job.line)),
        }
        site.clear();
    }

    /// Counts a run of a command that must succeed.
    pub(crate) fn whole(&mut self, site: &Site, fault: &str, result: Result<(), String>) {
        self.runs += 1;
        match result {
            Ok(()) => self.whole += 1,
            Err(why) => self.broken.push(format!("{}, {fault}: {why}", site.job.line)),
        }
        site.clear();
    }

    /// Returns the numbers of runs as a row of a table.
    pub(crate) fn row(&self, what: &str) -> String {
        let Self { runs, refused, whole, broken } = self;
        format!("| {what} | {runs} | {refused} | {whole} | {} |\n", broken.len())
    }

    /// Writes rows for `cargo xtask faults`. Panics if a run did not end as it must.
    pub(crate) fn end(tallies: &[(String, Self)], name: &str) {
        if let Some(folder) = full() {
            let rows: String = tallies.iter().map(|(what, tally)| tally.row(what)).collect();
            fs::write(folder.join(name), rows).unwrap();
        }
        let broken: Vec<_> = tallies.iter().flat_map(|(_, tally)| &tally.broken).collect();
        let mut list = String::new();
        for line in &broken {
            writeln!(list, "{line}").unwrap();
        }
        assert!(broken.is_empty(), "{} runs:\n{list}", broken.len());
        assert!(tallies.iter().all(|(_, tally)| tally.runs > 0), "no runs");
    }
}

/// Calls `test` for each command in its own folder.
pub(crate) fn each(mut test: impl FnMut(&Site)) {
    for job in JOBS {
        test(&Site::new(job));
    }
}
