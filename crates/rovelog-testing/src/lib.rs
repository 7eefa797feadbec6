//! Helpers that the tests of the format crates share: locations of logs, a format-independent
//! picture of a log in the form of the expected results, checks for every format, slow pipes and
//! failing outputs, a web server, damage, runs of examples, and checks of the rule tables. Never published;
//! failures are panics.
#![forbid(unsafe_code)]
#![expect(clippy::missing_panics_doc, reason = "only tests call it")]

mod alike;
mod cells;
mod damage;
mod examples;
mod logs;
mod picture;
mod pipes;
mod rules;
mod server;
mod sums;

pub use alike::{check_cases, check_corpus, check_order};
pub use cells::{timed_rows, value_at};
pub use damage::{Random, flips, with_damaged_chunk};
pub use examples::{Example, run_examples};
pub use logs::{
    Log, Logs, RLD, ROSBAG, ULOG, VEL, corpus, expected, logs_in, read_json, real, root, skipped,
};
pub use picture::{
    Content, Overview, assert_alike, content, detail, differences, json_of, nanos, record_json, record_with,
    sort_notes,
};
pub use pipes::{Dribble, Full, PIECES};
pub use rules::check_rules;
pub use server::{Served, Server, Way};
pub use sums::{hex, sha256};
