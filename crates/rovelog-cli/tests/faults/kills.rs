//! Commands that are killed with SIGKILL at any time.

use std::fs;
use std::time::{Duration, Instant};

use rovelog_testing::Random;

use crate::jobs::{Site, Tree};
use crate::{each, full};

/// Numbers of runs by the state in which they left their outputs.
#[derive(Default)]
struct Found {
    kills: usize,
    ended: usize,
    nothing: usize,
    partial: usize,
    some: usize,
    whole: usize,
}

/// Returns the number of times that each command is killed.
fn kills() -> usize {
    let number = std::env::var("ROVELOG_KILLS").ok().and_then(|number| number.parse().ok());
    number.unwrap_or(if full().is_some() { 200 } else { 2 })
}

/// Returns the duration of a run that is not killed.
fn duration(site: &Site) -> Duration {
    let start = Instant::now();
    assert_eq!(site.run(&[], site.job.line).status.code(), site.code);
    let took = start.elapsed();
    site.clear();
    took
}

/// Counts the outputs that a killed run left behind. Each file must be complete or have the
/// extension `.partial`.
fn look(site: &Site, after: &Tree, found: &mut Found) {
    let line = site.job.line;
    for (path, bytes) in &site.before {
        assert!(after.get(path) == Some(bytes), "{line}: {path} has changed");
    }
    let (mut complete, mut partial) = (0, 0);
    for (path, bytes) in after.iter().filter(|(path, _)| !site.before.contains_key(*path)) {
        let Some(bytes) = bytes else { continue };
        if path.ends_with(".partial") {
            partial += 1;
        } else {
            assert!(
                site.whole.get(path).and_then(Option::as_ref) == Some(bytes),
                "{line}: {path} is not complete: {} bytes",
                bytes.len()
            );
            complete += 1;
        }
    }
    let files = site.whole.values().flatten().count();
    match complete {
        0 if partial == 0 => found.nothing += 1,
        0 => found.partial += 1,
        _ if complete == files => found.whole += 1,
        _ => found.some += 1,
    }
}

#[test]
fn a_killed_command_leaves_a_complete_output_or_none() {
    let mut found = Found::default();
    let mut random = Random(1);
    each(|site| {
        let most = duration(site).max(Duration::from_millis(1));
        for _ in 0..kills() {
            let mut child = site.command(&[], site.job.line).spawn().unwrap();
            let micros = usize::try_from(most.as_micros()).unwrap();
            std::thread::sleep(Duration::from_micros(random.below(micros) as u64));
            // `kill` sends SIGKILL. A run that has ended before is counted as complete.
            child.kill().unwrap();
            let output = child.wait_with_output().unwrap();
            found.kills += 1;
            found.ended += usize::from(output.status.code().is_some());
            look(site, &site.tree(), &mut found);
            // Files left behind must not prevent the next run. Every second run starts with them.
            if random.below(2) == 0 {
                let again = site.run(&[], &format!("{} --force", site.job.line));
                site.succeeded(&again).unwrap_or_else(|why| panic!("{}: {why}", site.job.line));
            }
            site.clear();
        }
    });
    if let Some(folder) = full() {
        let Found { kills, ended, nothing, partial, some, whole } = found;
        let row = format!(
            "| {} | {kills} | {ended} | {nothing} | {partial} | {some} | {whole} | 0 |\n",
            crate::jobs::JOBS.len()
        );
        fs::write(folder.join("5-kills"), row).unwrap();
    }
}
