//! Format-specific messages in addition to the records of the topics.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use rovelog::{Record, Topic};

use super::foxglove::WellKnown;
use crate::{ExportError, Loss};

/// A message that is not a record of one of the log's own topics.
pub(super) struct Extra {
    /// Time on the log's clock, in nanoseconds.
    pub(super) nanos: i64,
    pub(super) topic: Cow<'static, str>,
    pub(super) schema: ExtraSchema,
    pub(super) bytes: Vec<u8>,
}

pub(super) enum ExtraSchema {
    WellKnown(WellKnown),
    /// A type of the format's package.
    Own(Arc<rovelog::Schema>),
}

/// Output form of a topic's records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Carried {
    /// Messages of the topic's type.
    Typed,
    /// Bytes of an unknown type: a channel without a schema.
    Bytes,
    /// Not written directly.
    Otherwise,
}

/// Format-specific messages and metadata.
pub(super) trait Extras {
    /// Returns the profile of the file, which is also the package of its types.
    fn profile(&self) -> &'static str;
    /// Returns the metadata key for a topic's instance.
    fn instance_key(&self) -> &'static str {
        "instance"
    }
    /// Returns how the records of a topic are written.
    fn carried(&self, _topic: &Topic) -> Carried {
        Carried::Typed
    }
    /// Returns the name of a topic's channel.
    fn channel_name(&self, topic: &Topic) -> String {
        topic.name.clone()
    }
    /// Returns whether single records are needed.
    fn wants_records(&self) -> bool {
        true
    }
    /// Returns the messages that do not come from records, in any order. They are few enough to
    /// hold in memory: console lines, parameters.
    fn messages(&self) -> Vec<Extra>;
    /// Returns the next message, in time order, that does not come from a single record and is not
    /// later than `until` (log's clock); without `until`, the next of any time.
    fn next_due(&mut self, _until: Option<i64>) -> Result<Option<Extra>, ExportError> {
        Ok(None)
    }
    /// Returns the log offset that was reached.
    fn offset(&self) -> Option<u64> {
        None
    }
    /// Adds the messages that a record leads to. `at` is its Unix time, if known.
    fn on_record(&mut self, _record: &Record<'_>, _at: i64, _out: &mut Vec<Extra>) {}
    /// Returns the values that are in no message.
    fn losses(&self) -> Vec<Loss> {
        Vec::new()
    }
    /// Returns one sentence for each kind of data that is converted for viewers.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
    /// Returns facts about the log, for a metadata record.
    fn info(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }
}
