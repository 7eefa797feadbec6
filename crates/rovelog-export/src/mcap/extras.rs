//! What a format adds to the records of its topics.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use rovelog::{Record, Topic, Value};

use super::foxglove::WellKnown;
use crate::{ExportError, Loss};

/// A message beside those of the log's own topics.
pub(super) struct Extra {
    /// When, on the log's clock.
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

/// How the records of a topic stand in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Carried {
    /// As messages of the topic's type.
    Typed,
    /// As bytes of which nothing is known: a channel without a schema.
    Bytes,
    /// Not by themselves.
    Otherwise,
}

/// What a format adds to its topics.
pub(super) trait Extras {
    /// The profile of the file, and the package of its types.
    fn profile(&self) -> &'static str;
    /// How the instance of a topic is called in the metadata of its channel.
    fn instance_key(&self) -> &'static str {
        "instance"
    }
    /// How the records of a topic are written themselves.
    fn carried(&self, _topic: &Topic) -> Carried {
        Carried::Typed
    }
    /// What the channel of a topic is called.
    fn channel_name(&self, topic: &Topic) -> String {
        topic.name.clone()
    }
    /// Whether anything is made of records one by one.
    fn wants_records(&self) -> bool {
        true
    }
    /// Messages that do not come from records, few enough to hold them all: console lines, parameters. Any order.
    fn beside(&self) -> Vec<Extra>;
    /// The next message that does not come from one record and is not later than `until`, on the log's clock;
    /// without it, whichever is next. In the order of time.
    fn next_due(&mut self, _until: Option<i64>) -> Result<Option<Extra>, ExportError> {
        Ok(None)
    }
    /// How far in the log that is.
    fn offset(&self) -> Option<u64> {
        None
    }
    /// Messages that a record gives rise to; `at` is its time on the calendar, where that is known. Its value is
    /// there where the record itself is written.
    fn on_record(&mut self, _record: &Record<'_>, _value: Option<&Value>, _at: i64, _out: &mut Vec<Extra>) {}
    /// What is in no message.
    fn losses(&self) -> Vec<Loss> {
        Vec::new()
    }
    /// What stands in another form than that of the log because that is better for viewers; a sentence each.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
    /// Facts about the log, for a metadata record.
    fn info(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }
}
