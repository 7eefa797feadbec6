//! Every write fails once, and every command is killed at any time: outputs are complete or absent.
//!
//! The binary runs unchanged: limits of file sizes, failing system calls (strace), a full file
//! system and SIGKILL come from outside. A small part runs with the tests; `cargo xtask faults`
//! runs all of it, and names in `ROVELOG_FAULTS` the folder for its tables.
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

/// Returns the folder for the tables if the full plan is wanted.
pub(crate) fn full() -> Option<PathBuf> {
    std::env::var_os("ROVELOG_FAULTS").map(PathBuf::from)
}

/// Returns whether a program can be started.
pub(crate) fn has(program: &str, args: &[&str]) -> bool {
    let run = Command::new(program).args(args).stdout(Stdio::null()).stderr(Stdio::null()).status();
    run.is_ok_and(|status| status.success())
}

/// Counts of the runs of one kind of failure.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) runs: usize,
    /// Runs that ended with an error and nothing written.
    pub(crate) refused: usize,
    /// Runs that tried again, and have the whole output.
    pub(crate) whole: usize,
    broken: Vec<String>,
}

impl Tally {
    /// Counts a run that has to fail.
    pub(crate) fn refused(&mut self, site: &Site, fault: &str, result: Result<(), String>) {
        self.runs += 1;
        match result {
            Ok(()) => self.refused += 1,
            Err(why) => self.broken.push(format!("{}, {fault}: {why}", site.job.line)),
        }
        site.clear();
    }

    /// Counts a run that has to succeed.
    pub(crate) fn whole(&mut self, site: &Site, fault: &str, result: Result<(), String>) {
        self.runs += 1;
        match result {
            Ok(()) => self.whole += 1,
            Err(why) => self.broken.push(format!("{}, {fault}: {why}", site.job.line)),
        }
        site.clear();
    }

    /// Returns the row of a table.
    pub(crate) fn row(&self, what: &str) -> String {
        let Self { runs, refused, whole, broken } = self;
        format!("| {what} | {runs} | {refused} | {whole} | {} |\n", broken.len())
    }

    /// Writes rows for `cargo xtask faults`, and panics if a run did not end as it has to.
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

/// Runs `test` for each command, in its own folder.
pub(crate) fn each(mut test: impl FnMut(&Site)) {
    for job in JOBS {
        test(&Site::new(job));
    }
}
