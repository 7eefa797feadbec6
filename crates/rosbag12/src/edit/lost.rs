//! Lost messages that the index of a bag lists.

use std::sync::Arc;

use rovelog_core::Value;
use rovelog_core::internal::text::escape_bytes;

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

/// Returns a table of the first lost messages for the report of a recovery.
pub(super) fn named(lost: &[LostMessage]) -> Value {
    let mut left = NAMED_BYTES;
    let first = lost.iter().take(NAMED).map_while(|message| {
        left = left.checked_sub(message.topic.len())?;
        let topic = Value::Text(escape_bytes(&message.topic));
        Some([topic, Value::Int(message.nanos, 64), Value::count(message.offset)])
    });
    Value::table(["topic", "t_ns", "offset"], first)
}
