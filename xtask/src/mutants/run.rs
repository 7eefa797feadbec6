//! The tests, once for each change.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use super::{Change, Outcome, Tests, folder};
use crate::targets::FORMATS;

/// Longest time of a program of tests after a change: this many times what it takes without one. A
/// loop without end counts as noticed.
const TIMES: u32 = 5;

/// Runs the tests of each change that has no outcome yet.
pub(super) fn all(
    changes: &[Change],
    tests: &[Tests],
    outcomes: &mut BTreeMap<usize, Outcome>,
) -> Result<()> {
    let mut tests = tests.to_vec();
    tests.retain(|tests| tests.name != "examples");
    let mut timed = Vec::new();
    for tests in tests {
        let started = Instant::now();
        let outcome = run(&tests, None, Duration::MAX)?;
        ensure!(outcome == Outcome::Missed, "{} fails without a change", tests.program.display());
        timed.push((TIMES * started.elapsed() + Duration::from_secs(10), tests));
    }
    // The fast ones first: most changes are noticed by any.
    timed.sort_by_key(|(limit, _)| *limit);
    let left: Vec<usize> = (0..changes.len()).filter(|number| !outcomes.contains_key(number)).collect();
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || -> Result<()> {
        while let Some(number) = left.get(next.fetch_add(1, Ordering::Relaxed)) {
            let change = &changes[*number];
            let own = |tests: &Tests| {
                let core = change.package == "rovelog-core";
                let above = core && FORMATS.iter().any(|name| tests.folder.ends_with(name));
                above || tests.folder.ends_with(&change.package)
            };
            let mut outcome = Outcome::Missed;
            for (limit, tests) in timed.iter().filter(|(_, tests)| own(tests)) {
                outcome = run(tests, Some(*number), *limit)?;
                if outcome != Outcome::Missed {
                    break;
                }
            }
            if outcome != Outcome::Noticed {
                println!("{outcome:?}: {}", change.name);
            }
            found.lock().expect("no panic").push((*number, outcome));
        }
        Ok(())
    };
    thread::scope(|scope| -> Result<()> {
        let workers: Vec<_> =
            (0..thread::available_parallelism()?.get()).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("no panic"))
    })?;
    outcomes.extend(found.into_inner().expect("no panic"));
    Ok(())
}

/// Runs one program of tests with a change, up to the first test that fails.
fn run(tests: &Tests, change: Option<usize>, limit: Duration) -> Result<Outcome> {
    // A loop that takes memory is stopped as well.
    let mut program = Command::new("sh");
    program.args(["-c", "ulimit -v 6000000 && exec \"$0\""]).arg(&tests.program);
    program.current_dir(&tests.folder).stdout(Stdio::piped()).stderr(Stdio::null());
    // The corpus is what must notice; snapshots are compared, not written.
    program.env("ROVELOG_REAL", folder().join("none")).env("INSTA_UPDATE", "no").env_remove("BLESS");
    program.env("PROPTEST_FAILURE_PERSISTENCE", "off");
    if let Some(change) = change {
        program.env("ROVELOG_CHANGE", change.to_string());
    }
    let mut child = program.spawn().with_context(|| format!("starting {}", name(&tests.program)))?;
    let output = BufReader::new(child.stdout.take().expect("it is piped"));
    let (send, failed) = mpsc::channel();
    let reader = thread::spawn(move || {
        let failed = |line: String| line.starts_with("test ") && line.ends_with("FAILED");
        // Nobody waits any more after the time limit.
        let _ = send.send(output.lines().map_while(Result::ok).any(failed));
    });
    let failed = failed.recv_timeout(limit);
    if failed != Ok(false) {
        child.kill()?;
    }
    let status = child.wait()?;
    reader.join().expect("no panic");
    Ok(match failed {
        Ok(false) if status.success() => Outcome::Missed,
        Ok(_) => Outcome::Noticed,
        Err(_) => Outcome::TooSlow,
    })
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
