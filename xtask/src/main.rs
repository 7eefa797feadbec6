//! Maintenance tasks of Rovelog. The command `cargo xtask` lists them.

#![forbid(unsafe_code)]
// The tasks print their results to the terminal.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod bench;
mod browser;
mod c_library;
mod duckdb;
mod first_command;
mod fuzz;
mod lake;
mod oracle;
mod package;
mod peers;
mod place;
mod process;
mod python;
mod release;
mod reliability;
mod site;
mod stages;
mod tidy;
mod web;

use std::process::ExitCode;

use anyhow::Result;
use corpus_generator::root;

/// Names of the crates that read and write log formats.
const FORMAT_CRATES: &[&str] = &["ulog-format", "rld-format", "rosbag12", "vel-format"];

/// A task that `cargo xtask` can run.
struct Task {
    name: &'static str,
    /// Function that runs the task. It is called with the arguments after the name of the task.
    run: fn(&[String]) -> Result<()>,
    help: &'static str,
}

const fn task(name: &'static str, run: fn(&[String]) -> Result<()>, help: &'static str) -> Task {
    Task { name, run, help }
}

const TASKS: &[Task] = &[
    task(
        "test",
        stages::command,
        "run all tests and checks, the fastest first [BLESS=1: rewrite snapshots and corpus]",
    ),
    task(
        "tidy",
        tidy::command,
        "check dependencies, licenses, import cycles, links, generated documents, file lengths",
    ),
    task(
        "gen-corpus",
        corpus_generator::command,
        "write corpus/ [--check: compare only] [--large [FORMAT] SIZE [--from FILE] [-o PATH]: one big log]",
    ),
    task(
        "python",
        package::command,
        "build and test the Python package [--manylinux: build the published wheel]",
    ),
    task(
        "web",
        web::command,
        "build the page that opens logs in the browser, and the npm package [--test: test both]",
    ),
    task("c-library", c_library::command, "build the C library and install it: PREFIX"),
    task(
        "duckdb",
        duckdb::command,
        "build the DuckDB extension [--test: query the corpus with it in each tested version of DuckDB]",
    ),
    task(
        "oracle",
        oracle::command,
        "compare with other programs: ulog|rld|rosbag|vel|export|trajectories|health|findings|plots|scrub|ask|duckdb|recovered|survivors|suites|tools|hosts|plotjuggler|agents",
    ),
    task("damage", reliability::damage, "damage logs and count what is lost: ulog|all|pages"),
    task(
        "faults",
        reliability::faults,
        "let every write of every command fail once, kill each command [--kills N]",
    ),
    task(
        "hostile",
        reliability::hostile,
        "measure every command on hostile logs [--size 20MB] [--only TEXT: show the runs with this text in their name]",
    ),
    task("soak", reliability::soak, "measure one process that reads 1000 to 10 000 logs [FACTOR]"),
    task("fuzz", fuzz::command, "run the fuzz targets and renew fuzz/seeds [--minutes N] [TARGET...]"),
    task(
        "coverage",
        fuzz::coverage::command,
        "count the lines that the fuzz targets reach; needs cargo-llvm-cov",
    ),
    task(
        "bench",
        bench::command,
        "compare the speed with other readers: ulog|rld|rosbag|vel|export|export-own|python [LOG], flat FORMAT",
    ),
    task(
        "lake",
        lake::command,
        "test the data source on Spark and Sail, and lakes as Delta tables; needs Java 17",
    ),
    task(
        "site",
        site::command,
        "build the documentation site and check its links [--external: other sites too]",
    ),
    task("screenshots", browser::screenshots, "draw docs/pictures; needs Chromium and the real logs"),
    task(
        "release",
        release::command,
        "build and try what a version publishes: --dry-run | --archive TARGET | --sums",
    ),
    task("help", help, "print this list"),
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (name, rest) = match args.split_first() {
        None => ("help", &[][..]),
        Some((name, rest)) => (name.as_str(), rest),
    };
    let name = if matches!(name, "-h" | "--help") { "help" } else { name };
    let Some(task) = TASKS.iter().find(|task| task.name == name) else {
        eprintln!("error: no task is called `{name}`; `cargo xtask help` lists them");
        return ExitCode::from(2);
    };
    match (task.run)(rest) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::unnecessary_wraps, reason = "all tasks have one signature")]
fn help(_: &[String]) -> Result<()> {
    println!("usage: cargo xtask TASK [OPTIONS]\n");
    for task in TASKS {
        println!("  {:<12} {}", task.name, task.help);
    }
    Ok(())
}
