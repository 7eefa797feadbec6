//! The trait by which a log format adds messages for viewers to the records of the topics.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use rovelog::{Record, Topic};

use super::foxglove::WellKnown;
use crate::{ExportError, Loss};

/// A message that is added to the records of the log, such as a message for viewers.
pub(super) struct Extra {
    /// Time of the message in nanoseconds of the log's clock.
    pub(super) nanos: i64,
    /// Name of the channel to which the message is written.
    pub(super) topic: Cow<'static, str>,
    pub(super) schema: ExtraSchema,
    /// Bytes of the encoded message.
    pub(super) bytes: Vec<u8>,
}

impl Extra {
    /// Creates a message that viewers can draw.
    pub(super) fn drawn(
        nanos: i64,
        topic: impl Into<Cow<'static, str>>,
        kind: WellKnown,
        bytes: Vec<u8>,
    ) -> Self {
        Self { nanos, topic: topic.into(), schema: ExtraSchema::WellKnown(kind), bytes }
    }
}

/// Schema of an additional message.
pub(super) enum ExtraSchema {
    /// A type that viewers can draw without configuration.
    WellKnown(WellKnown),
    /// A type that is specific to the log format. It is written in the format's protobuf package.
    Own(Arc<rovelog::Schema>),
}

/// Form in which the records of a topic are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordForm {
    /// The records are written as messages of the topic's type.
    Typed,
    /// The records are written as bytes in a channel without a schema, because their type is
    /// unknown.
    Bytes,
    /// The records are not written. Additional messages may contain their data.
    Omitted,
}

/// Messages and metadata that a log format adds to the file.
pub(super) trait Extras {
    /// Returns the profile of the MCAP file. It is also the protobuf package of the topics' types.
    fn profile(&self) -> &'static str;
    /// Returns the metadata key under which a channel stores the instance of its topic.
    fn instance_key(&self) -> &'static str {
        "instance"
    }
    /// Returns the form in which the records of a topic are written.
    fn record_form(&self, _topic: &Topic) -> RecordForm {
        RecordForm::Typed
    }
    /// Returns the name of a topic's channel.
    fn channel_name(&self, topic: &Topic) -> String {
        topic.name.clone()
    }
    /// Returns whether the records of the log must be read.
    fn wants_records(&self) -> bool {
        true
    }
    /// Returns messages that do not come from records, such as console lines and parameters, in any
    /// order. There must be few of these messages, because all of them are in memory at once. `from`
    /// is the start of the time window. Messages before it may be omitted.
    fn messages(&self, from: Option<i64>) -> Vec<Extra>;
    /// Returns the next message that combines several records or samples. The messages are returned
    /// in time order. Returns `None` if the time of the next message is after `until`, in
    /// nanoseconds of the log's clock. If `until` is `None`, there is no such limit.
    fn next_message(&mut self, _until: Option<i64>) -> Result<Option<Extra>, ExportError> {
        Ok(None)
    }
    /// Returns the offset in the log that [`next_message`](Self::next_message) has reached. It is
    /// used to report progress.
    fn offset(&self) -> Option<u64> {
        None
    }
    /// Appends the additional messages for a record to `out`. `at` is the time of the record on the
    /// clock of the MCAP file.
    fn on_record(&mut self, _record: &Record<'_>, _at: i64, _out: &mut Vec<Extra>) {}
    /// Returns losses: values of the log that are in no message.
    fn losses(&self) -> Vec<Loss> {
        Vec::new()
    }
    /// Returns sentences about data that was converted for viewers.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
    /// Returns facts about the log for a metadata record.
    fn info(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }
}
