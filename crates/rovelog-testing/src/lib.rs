//! What the tests of the format crates share: where logs are, a neutral picture of a log in the form of the corpus'
//! expected results, what is asked of every format alike, slow pipes and outputs that fail, damage, runs of the examples,
//! and checks of the tables of rules. Never published; panics are how it reports.
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
mod sums;

pub use alike::{check_corpus, check_order};
pub use cells::{timed_rows, value_at};
pub use damage::{Random, flips};
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
pub use sums::{hex, sha256};
