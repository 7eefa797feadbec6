//! Maintenance tasks of Rovelog: `cargo xtask` lists them.

#![forbid(unsafe_code)]
// This is a terminal tool: printing is its job.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod bench;
mod browser;
mod corpus;
mod damage;
mod faults;
mod first;
mod fuzz;
mod hostile;
mod lake;
mod mutants;
mod oracle;
mod package;
mod peers;
mod place;
mod process;
mod python;
mod release;
mod site;
mod size;
mod soak;
mod source;
mod stages;
mod supply;
mod targets;
mod tidy;
mod tools;
mod workflows;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;

/// A subcommand: its name, its function, one line of help.
type Task = (&'static str, fn(&[String]) -> Result<()>, &'static str);

const TASKS: &[Task] = &[
    (
        "gen-corpus",
        corpus::command,
        "write corpus/ [--check: compare only] [--large [FORMAT] SIZE [--from FILE] [-o PATH]: one big log]",
    ),
    (
        "bench",
        bench::command,
        "compare the speed with other readers, in one run: bench ulog|rld|rosbag|vel|export|export-own|flat|python [LOG]",
    ),
    ("test", stages::command, "run every check, cheapest first [BLESS=1: rewrite snapshots and corpus]"),
    (
        "python",
        package::command,
        "the Python package alone: types, stubs, tests, the wheel in an empty environment [--manylinux: the published wheel]",
    ),
    ("tidy", tidy::command, "check dependency edges, licences, file lengths, paths, words"),
    ("public", tidy::structure::command, "list what users of a crate can name: public CRATE"),
    ("words", tidy::words::command, "count the words that tidy limits: words [WORD: list its places]"),
    (
        "oracle",
        oracle::command,
        "compare with other readers over real logs and the corpus: oracle ulog|rld|rosbag|vel|export|health|plots|ask|recovered|survivors, or run their tests: suites, or the pages of docs/tools: tools",
    ),
    (
        "damage",
        damage::command,
        "what becomes of damaged logs: damage ulog|all|pages [BLESS=1: rewrite docs/internals/reliability.md]",
    ),
    (
        "faults",
        faults::command,
        "every write of every command fails once, and 200 kills of each: faults [--kills N] [BLESS=1: rewrite docs/internals/reliability.md]",
    ),
    (
        "fuzz",
        fuzz::command,
        "run the fuzz targets, renew fuzz/seeds: fuzz [--minutes N] [TARGET...] [BLESS=1: add the figures to docs/internals/reliability.md]",
    ),
    (
        "hostile",
        hostile::command,
        "time and memory of every command over hostile logs: hostile [--size 20MB] [--only TEXT: show these runs]",
    ),
    (
        "lake",
        lake::command,
        "the data source on Spark (two executors, killed) and Sail, lakes as Delta tables; needs Java 17",
    ),
    (
        "site",
        site::command,
        "build the documentation site, check its links [--external: links to other sites too]",
    ),
    (
        "release",
        release::command,
        "build and try what a version publishes: release --dry-run [--archive TARGET: one archive; --sums: checksums]",
    ),
    (
        "mutants",
        mutants::command,
        "change a file place by place: which changes does no test notice? mutants FILE... [--only TEXT: changes with it in their name]",
    ),
    (
        "soak",
        soak::command,
        "memory and open files of one process over 1000 to 10 000 logs: soak [FACTOR] [BLESS=1: rewrite docs/internals/reliability.md]",
    ),
    (
        "supply",
        supply::command,
        "advisories and sources of dependencies (cargo-deny), the public API against the last tag (cargo-semver-checks)",
    ),
    (
        "targets",
        targets::command,
        "cargo check for 32-bit, aarch64, Windows, macOS, WebAssembly, big-endian, as far as possible here: targets [--run: also the tests of core and the formats on 32-bit and big-endian]",
    ),
    ("workflows", workflows::command, "check the files of .github with actionlint and zizmor"),
    (
        "screenshots",
        browser::screenshots,
        "the pictures of docs/guide/see.md, in docs/pictures; needs Chromium and the real logs",
    ),
    ("help", help, "print this list"),
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (name, rest) = match args.split_first() {
        None => ("help", &[][..]),
        Some((name, rest)) => (name.as_str(), rest),
    };
    let name = if matches!(name, "-h" | "--help") { "help" } else { name };
    let Some((_, run, _)) = TASKS.iter().find(|task| task.0 == name) else {
        eprintln!("error: no task is called `{name}`; `cargo xtask help` lists them");
        return ExitCode::from(2);
    };
    match run(rest) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Prints the list of subcommands.
#[expect(clippy::unnecessary_wraps, reason = "all tasks have one signature")]
fn help(_: &[String]) -> Result<()> {
    println!("usage: cargo xtask NAME [OPTIONS]\n");
    for (name, _, help) in TASKS {
        println!("  {name:<12} {help}");
    }
    Ok(())
}

/// Returns the workspace's folder, independent of the current folder.
fn root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask).to_owned()
}
