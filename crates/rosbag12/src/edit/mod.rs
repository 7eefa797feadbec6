//! Bags made of bags: recovering what a damaged one still holds, a part of one, several as one.

use rovelog_core::text::count;
use rovelog_core::{Detail, Value};

mod chunked;
mod lost;
mod output;
mod parts;
mod recover;

pub use lost::LostMessage;
pub(crate) use parts::{merge, slice};
pub use recover::Part;
pub(crate) use recover::recover;

/// Says how many messages were kept because their publishers latch, if any.
fn latched_detail(kept: u64) -> Option<Detail> {
    let text = || format!("kept {} from before the start", count(kept, "latched message"));
    (kept > 0).then(|| Detail::new("latched", text(), Value::count(kept)))
}
