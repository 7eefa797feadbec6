//! Messages that a bag names in its index and no longer holds.

use std::sync::Arc;

use rovelog_core::Value;
use rovelog_core::text::escape_bytes;

/// A message that the index names and the bag no longer holds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LostMessage {
    /// The topic's name as it is in the bag, shared by the messages of the topic.
    pub topic: Arc<[u8]>,
    /// Its stamp, nanoseconds.
    pub nanos: i64,
    /// Where it stood.
    pub offset: u64,
}

/// Lost messages that a report names, and bytes of the names of their topics; all are counted.
const NAMED: usize = 1000;
const NAMED_BYTES: usize = 1 << 20;

/// Returns the first lost messages by name.
pub(super) fn named(lost: &[LostMessage]) -> Value {
    let mut left = NAMED_BYTES;
    let first = lost.iter().take(NAMED).map_while(|message| {
        left = left.checked_sub(message.topic.len())?;
        let topic = Value::Text(escape_bytes(&message.topic));
        Some([topic, Value::Int(message.nanos, 64), Value::count(message.offset)])
    });
    Value::table(["topic", "t_ns", "offset"], first)
}
