//! Runs the damage campaign on folders of logs. Prints the results as Markdown tables.
//!
//! - `campaign SEEDS [--keep FOLDER] FOLDER...` damages logs with all kinds of damage. `--keep`
//!   writes the recovered logs, so that other programs can read them.
//! - `campaign --pages SEEDS [--keep FOLDER] FOLDER...` counts the records that survive damage to
//!   pages, sectors and single bytes. `--keep` writes the damaged logs, so that other programs can
//!   read them.

#![forbid(unsafe_code)]
// The program prints its tables to the terminal.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use fuzz_bodies::campaign::{self, Meter, Operator, Subject, Worst};
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1).peekable();
    let pages = args.next_if(|arg| arg == "--pages").is_some();
    let Some(seeds) = args.next().and_then(|seeds| seeds.parse().ok()) else {
        eprintln!("usage: campaign [--pages] SEEDS [--keep FOLDER] FOLDER...");
        return ExitCode::from(2);
    };
    let keep = args.next_if(|arg| arg == "--keep").and_then(|_| args.next()).map(PathBuf::from);
    let mut subjects = Vec::new();
    for folder in args {
        match campaign::subjects(Path::new(&folder)) {
            Ok(found) => subjects.extend(found),
            Err(error) => {
                eprintln!("error: {folder}: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    if pages {
        survival(&subjects, seeds, keep.as_deref());
        return ExitCode::SUCCESS;
    }
    let mut broken = 0;
    let meter = Meter { memory: &MEMORY, slack: Duration::from_millis(250) };
    for (format, tallies) in campaign::run(&subjects, seeds, &meter, keep.as_deref()) {
        let logs = subjects.iter().filter(|subject| subject.format == format).count();
        println!("**{format}**, {logs} logs:\n");
        println!(
            "| damage | cases | refused | records before it | lost with it | recovered intact | broken |"
        );
        println!("|---|---|---|---|---|---|---|");
        for (operator, tally) in Operator::ALL.into_iter().zip(tallies) {
            let count = tally.broken.len();
            let (name, cases, refused) = (operator.name(), tally.cases, tally.refused);
            let (before, edge, recovered) = (tally.before, tally.edge, tally.recovered);
            println!("| {name} | {cases} | {refused} | {before} | {edge} | {recovered} | {count} |");
            tally.broken.iter().for_each(|case| eprintln!("{format} {case}"));
            broken += count;
        }
        println!();
    }
    if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Minimum size in bytes of the logs in which pages are damaged.
const SEVERAL_PAGES: usize = 16 << 10;

/// Prints how many records survive damage to pages, sectors and single bytes.
fn survival(subjects: &[Subject], seeds: u64, keep: Option<&Path>) {
    for (format, rows) in campaign::survival(subjects, seeds, SEVERAL_PAGES, keep) {
        println!("**{format}**:\n");
        println!("| damage | files | untouched records | found, % | worst file, % | false | copies |");
        println!("|---|---|---|---|---|---|---|");
        for (operator, row) in Operator::PAGES.into_iter().zip(rows) {
            let no_log = Worst { found: 0, untouched: 0, name: String::new() };
            let Worst { found, untouched, name } = row.worst.unwrap_or(no_log);
            println!(
                "| {} | {} | {} | {} | {} | {} | {} |",
                operator.name(),
                row.files,
                row.untouched,
                share(row.found, row.untouched),
                share(found, untouched),
                row.false_records,
                row.copies
            );
            if found < untouched {
                eprintln!("{format}, {}: {found} of {untouched} in {name}", operator.name());
            }
        }
        println!();
    }
}

/// Returns the percentage of `found` in `all`. It is never rounded up to 100. Returns `-` if `all`
/// is 0.
fn share(found: u64, all: u64) -> String {
    if all == 0 {
        return "-".to_owned();
    }
    if found == all {
        return "100".to_owned();
    }
    // This integer is the percentage times 10,000. It is rounded down.
    let share = u128::from(found) * 1_000_000 / u128::from(all);
    format!("{}.{:04}", share / 10_000, share % 10_000)
}
