//! Checks that a failed memory allocation is an error, and neither ends the process nor changes an
//! output.
//!
//! The allocator of this program counts allocations of at least 64 KiB, and can fail any one of
//! them. Each log is read and exported again and again. In the first run, no allocation fails. In
//! run n, the n-th allocation fails. The standard library ends the process if it cannot return an
//! error, so the runs are in child processes.
#![allow(unsafe_code, reason = "`GlobalAlloc` is an unsafe trait")]

#[path = "allocation/large_logs.rs"]
mod large_logs;

use std::alloc::{GlobalAlloc, Layout, System};
use std::backtrace::Backtrace;
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Write};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use rovelog::core::internal::parallel::Jobs;
use rovelog::{AnyLog, Bytes, ReadOptions, RecoverOptions, Select, Topic};
use rovelog_export::mcap::McapOptions;
use rovelog_export::table::{self, Kind, TableOptions};
use rovelog_export::{Provenance, mcap, ndjson};

/// Smallest size in bytes of an allocation that is counted. The standard library uses smaller
/// allocations for almost everything, and systems that run out of memory rarely refuse them.
const LARGE: usize = 64 << 10;

/// Maximum number of runs of a scenario in which an allocation fails. If a scenario has more
/// allocations, the failing allocations are evenly spaced.
const MAX_RUNS: usize = 40;

/// Environment variables of a child process: the name of the scenario, the first allocation that
/// fails, and whether to print its backtrace.
const SCENARIO: &str = "ROVELOG_ALLOCATION_SCENARIO";
const FIRST: &str = "ROVELOG_ALLOCATION_FIRST";
const TRACE: &str = "ROVELOG_ALLOCATION_TRACE";

/// Allocator that can fail a large allocation.
struct Failing;

static IS_COUNTING: AtomicBool = AtomicBool::new(false);
static PRINTS_TRACE: AtomicBool = AtomicBool::new(false);
/// Number of large allocations since counting started.
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// Number of the allocation that fails, counted from 1. If the value is 0, no allocation fails.
static FAILS_AT: AtomicUsize = AtomicUsize::new(0);

/// Counts an allocation of `size` bytes. Returns true if it must fail.
fn fails(size: usize) -> bool {
    if size < LARGE || !IS_COUNTING.load(SeqCst) {
        return false;
    }
    let fails = COUNT.fetch_add(1, SeqCst) + 1 == FAILS_AT.load(SeqCst);
    if fails && PRINTS_TRACE.load(SeqCst) {
        IS_COUNTING.store(false, SeqCst);
        eprintln!("{size} bytes\n{}", Backtrace::force_capture());
        IS_COUNTING.store(true, SeqCst);
    }
    fails
}

// SAFETY: all memory is allocated by `System`. A null pointer states that an allocation failed.
unsafe impl GlobalAlloc for Failing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if fails(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller meets the requirements of `System`, which are the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if fails(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: as for `alloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // The system can always shrink memory.
        if size > layout.size() && fails(size) {
            return std::ptr::null_mut();
        }
        // SAFETY: as for `alloc`.
        unsafe { System.realloc(memory, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as for `alloc`.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Failing = Failing;

/// Output that only stores a hash of its bytes, so that it needs no memory.
#[derive(Default)]
struct Hashed(DefaultHasher);

impl Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Something that is done with a log.
#[derive(Clone, Copy, Debug)]
enum Action {
    Open,
    OpenPath,
    Stream,
    Records,
    Columns,
    Recover,
    Slice,
    Lines,
    Mcap,
    Table(Kind),
}

const ACTIONS: [Action; 12] = [
    Action::Open,
    Action::OpenPath,
    Action::Stream,
    Action::Records,
    Action::Columns,
    Action::Recover,
    Action::Slice,
    Action::Lines,
    Action::Mcap,
    Action::Table(Kind::Csv),
    Action::Table(Kind::Parquet),
    Action::Table(Kind::Arrow),
];

type Outcome = Result<u64, String>;

/// Runs an action and returns a hash of its output.
fn run(action: Action, bytes: &Bytes, path: &std::path::Path) -> Outcome {
    let options = ReadOptions::default();
    let mut out = Hashed::default();
    match action {
        Action::OpenPath => out.0.write_u64(open(rovelog::open(path))?.info().records),
        Action::Stream => stream(bytes.clone(), &mut out)?,
        _ => {
            let log = open(rovelog::from_bytes(bytes.clone(), &options))?;
            act(action, &log, &mut out)?;
        }
    }
    Ok(out.0.finish())
}

fn open(opened: rovelog::Result<AnyLog>) -> Result<AnyLog, String> {
    opened.map_err(text)
}

fn text(error: impl std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

fn stream(bytes: Bytes, out: &mut Hashed) -> Result<(), String> {
    let input = Box::new(io::Cursor::new(bytes));
    let mut stream = rovelog::open_stream(input, &ReadOptions::default()).map_err(text)?;
    while let Some(record) = stream.next_record().map_err(text)? {
        out.0.write_u64(record.offset);
    }
    Ok(())
}

fn act(action: Action, log: &AnyLog, out: &mut Hashed) -> Result<(), String> {
    let all = Select::all();
    match action {
        Action::Open => out.0.write_u64(log.info().records),
        Action::Records => {
            for record in log.records(&all) {
                let record = record.map_err(text)?;
                out.0.write_u64(record.offset);
                if let Ok(value) = record.value() {
                    out.0.write(value.to_json().as_bytes());
                }
            }
        }
        Action::Columns => {
            for batch in log.batches(&all) {
                out.0.write_usize(batch.map_err(text)?.1.num_rows());
            }
        }
        Action::Recover => {
            let recovery = log.recover(out, &RecoverOptions::default()).map_err(text)?;
            out.0.write_u64(recovery.records);
        }
        Action::Slice => {
            let select = Select::topic(log.topics()[0].name.as_str());
            log.slice(&select, out).map_err(text)?;
        }
        Action::Lines => {
            ndjson::write(&**log, &all, Jobs::ONE, out, &mut |_| ()).map_err(text)?;
        }
        Action::Mcap => {
            let mut options = McapOptions::default();
            options.jobs = Jobs::ONE;
            mcap::write(log, &all, &options, &Provenance::new("log"), out, &mut |_| ()).map_err(text)?;
        }
        Action::Table(kind) => {
            let mut options = TableOptions::default();
            options.jobs = Jobs::ONE;
            let decodes = |topic: &&Topic| {
                topic.count > 0 && log.own(topic).and_then(|topic| topic.columns(&all)).is_ok()
            };
            let topics: Vec<_> = log.topics().iter().filter(decodes).collect();
            let outputs = topics.into_iter().map(|topic| (topic, Hashed::default())).collect();
            let provenance = Provenance::new("log");
            let (tables, _) = table::write(&**log, outputs, &all, (kind, &options), &provenance, &mut |_| ())
                .map_err(text)?;
            tables.iter().for_each(|table| out.0.write_u64(table.out.0.finish()));
        }
        Action::OpenPath | Action::Stream => unreachable!("these actions do not open the log in memory"),
    }
    Ok(())
}

/// Runs a scenario with all allocations, and then once for each allocation that fails, from
/// allocation `first` on. Prints the number of each allocation before it fails.
fn runs_of(scenario: &str, first: usize) {
    let (action, log) = scenario.split_once(' ').unwrap();
    let action = ACTIONS.into_iter().find(|known| format!("{known:?}") == action).unwrap();
    let bytes = large_logs::log(log);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    std::fs::write(&path, &bytes).unwrap();
    let attempt = |fails_at: usize| {
        FAILS_AT.store(fails_at, SeqCst);
        COUNT.store(0, SeqCst);
        IS_COUNTING.store(true, SeqCst);
        let outcome = run(action, &bytes, &path);
        IS_COUNTING.store(false, SeqCst);
        (outcome, COUNT.load(SeqCst))
    };
    // A first run allocates memory that is used until the process ends.
    let _ = attempt(0);
    let (expected, count) = attempt(0);
    println!("\nlarge {count} {expected:?}");
    assert!(expected.is_ok(), "{scenario}: {expected:?}");
    let step = count.div_ceil(MAX_RUNS).max(1);
    for fails_at in (1..=count).step_by(step).filter(|at| *at >= first) {
        println!("fails {fails_at}");
        io::stdout().flush().unwrap();
        let (outcome, _) = attempt(fails_at);
        match outcome {
            Ok(_) => println!("works {}", outcome == expected),
            Err(error) => println!("error {error}"),
        }
    }
    println!("finished");
}

/// Entry point of the child processes. It does nothing in other processes.
#[test]
fn child() {
    if let Ok(scenario) = std::env::var(SCENARIO) {
        PRINTS_TRACE.store(std::env::var_os(TRACE).is_some(), SeqCst);
        runs_of(&scenario, std::env::var(FIRST).unwrap().parse().unwrap());
    }
}

/// Starts a child process. Returns the lines that it printed, and its errors.
fn start(scenario: &str, first: usize, trace: bool) -> (Vec<String>, String) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child", "--nocapture", "--test-threads=1"]);
    command.env(SCENARIO, scenario).env(FIRST, first.to_string());
    if trace {
        command.env(TRACE, "1");
    }
    let output = command.output().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
    (lines, String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Returns the functions in a backtrace that are not part of the standard library, innermost first.
fn functions(trace: &str) -> Vec<&str> {
    let std = [
        "std::",
        "core::",
        "alloc::",
        "<alloc::",
        "<core::",
        "<std::",
        "hashbrown::",
        "__r",
        "allocation::",
        "<allocation::",
        "_R",
        "<allocation",
    ];
    let names = trace.lines().filter_map(|line| {
        let (number, name) = line.trim_start().split_once(": ")?;
        number.parse::<u32>().is_ok().then_some(name)
    });
    names.filter(|name| !std.iter().any(|start| name.starts_with(start))).take(4).collect()
}

#[test]
fn a_failed_allocation_is_an_error() {
    let only = std::env::var("ROVELOG_ALLOCATION_ONLY").unwrap_or_default();
    let mut aborted = 0;
    for log in large_logs::NAMES {
        for action in ACTIONS {
            let scenario = format!("{action:?} {log}");
            if !scenario.contains(&only) {
                continue;
            }
            let mut first = 1;
            loop {
                let (lines, errors) = start(&scenario, first, false);
                for line in &lines {
                    if line.starts_with("large") || line.starts_with("works false") {
                        println!("{scenario}: {line}");
                    }
                }
                let mut kinds: Vec<_> = lines.iter().filter(|line| line.starts_with("error")).collect();
                kinds.dedup();
                kinds.iter().for_each(|line| println!("   {scenario}: {line}"));
                if lines.iter().any(|line| line == "finished") {
                    break;
                }
                let last = lines.iter().rev().find_map(|line| line.strip_prefix("fails "));
                let Some(last) = last else { panic!("{scenario}: {lines:?} {errors}") };
                let last: usize = last.parse().unwrap();
                let (_, trace) = start(&scenario, last, true);
                println!("ABORT {scenario} {last}: {:?}", functions(&trace));
                aborted += 1;
                first = last + 1;
            }
        }
    }
    assert_eq!(aborted, 0);
}
