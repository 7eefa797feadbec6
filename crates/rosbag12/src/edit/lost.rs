//! Lost messages that the index of a bag lists.

use std::sync::Arc;

use rovelog_core::internal::text::{count, escape_bytes};
use rovelog_core::{Detail, Value};

/// A message that the index lists, but that is not in the bag.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LostMessage {
    /// Topic name as stored in the bag. Lost messages of the same topic share this text.
    pub topic: Arc<[u8]>,
    /// Time of the message in nanoseconds.
    pub nanos: i64,
    /// Offset of the message according to the index.
    pub offset: u64,
}

/// Maximum number of lost messages that a report lists. A report counts all lost messages, but
/// lists only the first ones.
const NAMED: usize = 1000;
/// Maximum total size in bytes of the topic names in the list of lost messages.
const NAMED_BYTES: usize = 1 << 20;

/// Returns the detail of a recovery about lost messages, with a table of the first ones. Returns
/// `None` if there are none.
pub(super) fn detail(lost: &[LostMessage]) -> Option<Detail> {
    let mut left = NAMED_BYTES;
    let first = lost.iter().take(NAMED).map_while(|message| {
        left = left.checked_sub(message.topic.len())?;
        let topic = Value::Text(escape_bytes(&message.topic));
        Some([topic, Value::Int(message.nanos, 64), Value::count(message.offset)])
    });
    let table = Value::table(["topic", "t_ns", "offset"], first);
    let text = format!("{} listed in the index could not be found", count(lost.len(), "message"));
    (!lost.is_empty()).then(|| Detail::new("lost_messages", text, table))
}
