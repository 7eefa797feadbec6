//! Writes new bags from existing bags: recovery, slicing, merging and reindexing.

use rovelog_core::internal::text::count;
use rovelog_core::{Clock, Detail, Value};

use crate::reader::BagReader;

mod chunked;
mod lost;
mod output;
mod parts;
mod recover;
mod rewrite;

pub use lost::LostMessage;
pub(crate) use parts::{merge, slice};
pub use recover::Part;
pub(crate) use recover::recover;
pub(crate) use rewrite::rewrite;

/// Returns a note for a new bag made from `bag`, if `bag` counts times from the start of the
/// recording. In the new bag, readers interpret these times as Unix times.
fn clock_detail(bag: &BagReader) -> Option<Detail> {
    let text = "the times count from the start of the recording, so readers show them as dates of 1970";
    (bag.scanner.tables.clock != Clock::Unix).then(|| Detail::new("clock", text, Value::Bool(true)))
}

/// Describes how many messages (`kept`) are kept only because their publisher is latching. A
/// latching publisher sends its last message to every new subscriber. Returns `None` if `kept` is
/// 0.
fn latched_detail(kept: u64) -> Option<Detail> {
    let text = || format!("the output also has {} from before the start", count(kept, "latched message"));
    (kept > 0).then(|| Detail::new("latched", text(), Value::count(kept)))
}
