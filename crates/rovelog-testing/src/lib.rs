//! Helpers for the tests of all crates. The crate is never published, and failures are panics.
//!
//! - [`Logs`]: locations of the logs of the corpus and of real logs
//! - [`Overview`]: the picture of a log, which is compared with expected results
//! - [`check_corpus`], [`check_order`], [`check_rules`]: checks for every format
//! - [`bit_flips`], [`with_damaged_chunk`]: reproducible damage
//! - [`Dribble`], [`Full`]: slow inputs and failing outputs
//! - [`Server`]: a web server that misbehaves on request
//! - [`run_examples`]: runs of example programs
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
pub use damage::{Random, bit_flips, with_damaged_chunk};
pub use examples::{Example, run_examples};
pub use logs::{
    Log, Logs, RLD, ROSBAG, ULOG, VEL, corpus, expected, logs_in, read_json, real, root, skipped,
};
pub use picture::{
    Content, Overview, assert_alike, content, detail, differences, json_of, nanos, record_json, record_with,
    sort_notes,
};
pub use pipes::{Dribble, Full, READ_SIZES};
pub use rules::check_rules;
pub use server::{Behavior, Served, Server};
pub use sums::{hex, sha256};
