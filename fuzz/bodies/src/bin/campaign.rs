//! The damage campaign over folders of logs, as tables: `campaign SEEDS [--keep FOLDER] FOLDER...`.
//! With `--keep`, recovered logs are written for other readers.

#![forbid(unsafe_code)]
// This is a terminal tool: printing is its job.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use fuzz_bodies::campaign::{self, Meter, Operator};
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1).peekable();
    let Some(seeds) = args.next().and_then(|seeds| seeds.parse().ok()) else {
        eprintln!("usage: campaign SEEDS [--keep FOLDER] FOLDER...");
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
