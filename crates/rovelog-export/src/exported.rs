//! What a file of messages came to.

use crate::Loss;

/// A file of messages that was written.
#[derive(Debug)]
#[non_exhaustive]
pub struct Exported<W> {
    /// Where it was written.
    pub out: W,
    /// Its messages.
    pub messages: u64,
    /// What could not be carried.
    pub losses: Vec<Loss>,
    /// What is different by design, and costs nothing that the other side has a place for.
    pub notes: Vec<String>,
}
