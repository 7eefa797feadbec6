//! Runs a small part of the damage campaign. `cargo xtask damage all` runs the whole campaign.

use std::path::Path;
use std::time::Duration;

use fuzz_bodies::campaign::{self, Meter, Operator};
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

// This file must not contain any other test, because the meter counts the memory of the whole
// process.
#[test]
fn every_corpus_log_damaged_once_in_each_way() {
    let meter = Meter { memory: &MEMORY, slack: Duration::from_mins(1) };
    for format in ["rld", "rosbag", "ulog", "vel"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus").join(format);
        let subjects = campaign::subjects(&folder).expect("the corpus is part of the repository");
        assert!(subjects.len() > 40, "{} logs of {format}", subjects.len());
        let tallies = campaign::run(&subjects, 1, &meter, None);
        let broken: Vec<_> = tallies.values().flatten().flat_map(|tally| &tally.broken).collect();
        assert!(broken.is_empty(), "{broken:#?}");
        let cases: u64 = tallies.values().flatten().map(|tally| tally.cases).sum();
        assert_eq!(cases, (subjects.len() * Operator::ALL.len()) as u64);
    }
}
