//! Checks that insufficient memory is an error, and neither ends the process nor changes an output.
//!
//! The allocator of this program counts the memory in allocations of at least 64 KiB, and can limit
//! it. Each log is read and exported again and again. The first run has no limit. It records how
//! much memory is in use after each allocation. In each further run, the limit is one byte less
//! than one of these sizes, so another allocation fails. If the limit is low, this is the first
//! allocation, and if it is high, the allocation with which memory use was highest.
//!
//! The standard library ends the process if it cannot return an error, so the runs are in child
//! processes. The test prints the functions that requested the memory.
#![allow(unsafe_code, reason = "`GlobalAlloc` is an unsafe trait")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the child processes report by their output")]

#[path = "allocation/large_logs.rs"]
mod large_logs;

use std::alloc::{GlobalAlloc, Layout, System};
use std::backtrace::Backtrace;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Write};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use rovelog::core::internal::parallel::Jobs;
use rovelog::{AnyLog, Bytes, ReadOptions, RecoverOptions, Select, Topic};
use rovelog_export::mcap::McapOptions;
use rovelog_export::table::{self, Kind, TableOptions};
use rovelog_export::{Provenance, mcap, ndjson};

/// Smallest size in bytes of an allocation that is counted. Systems that run out of memory rarely
/// refuse smaller allocations.
const LARGE: usize = 64 << 10;

/// Maximum number of limits with which a scenario is run. If there are more, they are evenly spaced.
const MAX_LIMITS: usize = 16;

/// Environment variables of a child process: the name of the scenario, the highest limit, and
/// whether to print a backtrace of the failed allocation.
const SCENARIO: &str = "ROVELOG_ALLOCATION_SCENARIO";
const HIGHEST: &str = "ROVELOG_ALLOCATION_HIGHEST";
const TRACE: &str = "ROVELOG_ALLOCATION_TRACE";

/// Allocator that limits the memory in large allocations.
struct Limited;

static PRINTS_TRACE: AtomicBool = AtomicBool::new(false);
/// Size in bytes of all large allocations in use.
static USED: AtomicUsize = AtomicUsize::new(0);
/// Maximum value of `USED`, at which allocations fail.
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);
/// Number of large allocations since counting started.
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// Values of `USED` after the first of these allocations.
static SIZES: [AtomicUsize; 4096] = [const { AtomicUsize::new(0) }; 4096];

/// Returns the number of bytes that an allocation adds to `USED`. Small allocations add nothing.
fn counted(size: usize) -> usize {
    if size < LARGE { 0 } else { size }
}

/// Counts an allocation of `size` bytes that replaces one of `old` bytes. Returns false if the
/// allocation exceeds the limit and must fail.
fn add(size: usize, old: usize) -> bool {
    let (size, old) = (counted(size), counted(old));
    if size <= old {
        // The system can always shrink memory.
        USED.fetch_sub(old - size, SeqCst);
        return true;
    }
    let used = USED.fetch_add(size - old, SeqCst) + size - old;
    if used > LIMIT.load(SeqCst) {
        USED.fetch_sub(size - old, SeqCst);
        if PRINTS_TRACE.swap(false, SeqCst) {
            LIMIT.store(usize::MAX, SeqCst);
            eprintln!("{size} bytes\n{}", Backtrace::force_capture());
        }
        return false;
    }
    if let Some(known) = SIZES.get(COUNT.fetch_add(1, SeqCst)) {
        known.store(used, SeqCst);
    }
    true
}

// SAFETY: all memory is allocated by `System`. A null pointer states that an allocation failed.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !add(layout.size(), 0) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller meets the requirements of `System`, which are the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !add(layout.size(), 0) {
            return std::ptr::null_mut();
        }
        // SAFETY: as for `alloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !add(size, layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: as for `alloc`.
        unsafe { System.realloc(memory, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        add(0, layout.size());
        // SAFETY: as for `alloc`.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Limited = Limited;

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
                out.0.write_u8(u8::from(record.value().is_ok()));
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
            for table in &tables {
                out.0.write_u64(table.out.0.finish());
            }
        }
        Action::OpenPath | Action::Stream => unreachable!("these actions do not open the log in memory"),
    }
    Ok(())
}

/// Waits until the threads of earlier runs, which decompress chunks of bags, have freed their memory.
/// Returns the memory that is still in use.
fn wait_for_threads(expected: usize) -> usize {
    for _ in 0..1000 {
        if USED.load(SeqCst) <= expected {
            break;
        }
        thread::sleep(Duration::from_millis(2));
    }
    USED.load(SeqCst)
}

/// Runs a scenario without a limit, and then with limits up to `highest`, in descending order.
/// Prints each limit before the run.
fn run_all(scenario: &str, highest: usize) {
    let (action, log) = scenario.split_once(' ').unwrap();
    let action = ACTIONS.into_iter().find(|known| format!("{known:?}") == action).unwrap();
    let bytes = large_logs::log(log);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    std::fs::write(&path, &bytes).unwrap();
    // The first run allocates memory that stays in use until the process ends. The pause lets its
    // threads end.
    let _ = run(action, &bytes, &path);
    thread::sleep(Duration::from_millis(50));
    let start = USED.load(SeqCst);
    COUNT.store(0, SeqCst);
    let expected = run(action, &bytes, &path);
    let count = COUNT.load(SeqCst).min(SIZES.len());
    assert!(expected.is_ok(), "{scenario}: {expected:?}");
    let sizes = SIZES[..count].iter().filter_map(|size| size.load(SeqCst).checked_sub(start + 1));
    let limits: Vec<usize> = sizes.collect::<BTreeSet<_>>().into_iter().rev().collect();
    println!("\nallocations {count}");
    let step = limits.len().div_ceil(MAX_LIMITS).max(1);
    for limit in limits.into_iter().step_by(step).filter(|limit| *limit <= highest) {
        println!("limit {limit}");
        io::stdout().flush().unwrap();
        LIMIT.store(wait_for_threads(start) + limit, SeqCst);
        let outcome = run(action, &bytes, &path);
        LIMIT.store(usize::MAX, SeqCst);
        match outcome {
            Ok(_) => println!("{}", if outcome == expected { "same" } else { "different" }),
            Err(error) => println!("error: {error}"),
        }
    }
    println!("finished");
}

/// Entry point of the child processes. It does nothing in other processes.
#[test]
fn child() {
    if let Ok(scenario) = std::env::var(SCENARIO) {
        PRINTS_TRACE.store(std::env::var_os(TRACE).is_some(), SeqCst);
        run_all(&scenario, std::env::var(HIGHEST).unwrap().parse().unwrap());
    }
}

/// Starts a child process. Returns the lines that it printed, and its errors.
fn start(scenario: &str, highest: usize, trace: bool) -> (Vec<String>, String) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child", "--nocapture", "--test-threads=1"]);
    // The standard library would print a backtrace, for which there is not enough memory.
    command.env(SCENARIO, scenario).env(HIGHEST, highest.to_string()).env("RUST_BACKTRACE", "0");
    if trace {
        command.env(TRACE, "1");
    }
    let output = command.output().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
    (lines, String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Returns the innermost functions in the last backtrace of a process.
fn functions(errors: &str) -> Vec<&str> {
    let names = errors.lines().filter_map(|line| {
        let (number, name) = line.trim_start().split_once(": ")?;
        number.parse::<u32>().is_ok().then_some((number, name))
    });
    let names: Vec<_> = names.collect();
    let start = names.iter().rposition(|(number, _)| *number == "0").unwrap_or(0);
    let of_std = ["std::", "core::", "alloc", "<alloc::", "<core::", "<std::", "hashbrown::", "__r"];
    let is_ours = |name: &&str| !of_std.iter().any(|prefix| name.starts_with(prefix));
    names[start..].iter().map(|(_, name)| *name).filter(is_ours).take(8).collect()
}

/// Result of running a scenario with all limits.
#[derive(Default)]
struct Tally {
    /// Number of runs that returned the same result as the run without a limit.
    same: usize,
    /// Number of runs that returned an error.
    errors: usize,
    /// For each run that ended the process, the scenario, the limit, the errors that it printed, and
    /// the functions that requested the memory.
    aborts: Vec<String>,
}

impl Tally {
    fn add(&mut self, scenario: &str) {
        let mut highest = usize::MAX;
        loop {
            let (lines, stderr) = start(scenario, highest, false);
            for line in &lines {
                assert_ne!(line, "different", "{scenario}: {lines:?}");
                let is_error = line.starts_with("error: ");
                assert!(!is_error || line.contains("out of memory"), "{scenario}: {line}");
                self.errors += usize::from(is_error);
                self.same += usize::from(line == "same");
            }
            if lines.iter().any(|line| line == "finished") {
                return;
            }
            let last = lines.iter().rev().find_map(|line| line.strip_prefix("limit "));
            let last: usize = last.unwrap_or_else(|| panic!("{scenario}: {stderr}")).parse().unwrap();
            let (_, trace) = start(scenario, last, true);
            self.aborts.push(format!("{scenario}, limit {last}: {stderr} {:?}", functions(&trace)));
            highest = last - 1;
        }
    }
}

#[test]
fn insufficient_memory_is_an_error() {
    let mut tally = Tally::default();
    for log in large_logs::NAMES {
        for action in ACTIONS {
            tally.add(&format!("{action:?} {log}"));
        }
    }
    println!("{} errors, {} complete results", tally.errors, tally.same);
    assert!(tally.aborts.is_empty(), "{:#?}", tally.aborts);
    assert!(tally.errors > 100);
}
