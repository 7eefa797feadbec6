//! The topics of a log, and the assignment of messages to topics.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use rovelog_core::internal::layout::Layout;
use rovelog_core::internal::names::UniqueNames;
use rovelog_core::span::Spread;
use rovelog_core::{Clock, Decode, Diagnostics, Fields, Timestamp, Topic, TopicId};

use crate::declared::{Declared, Types};
use crate::diagnostics as rules;
use crate::error::VelError;
use crate::message::{Kind, Message, Payload};
use crate::schema::{laser_topic, raw_schema, raw_topic};

/// Maximum number of topics. Above this limit, a new camera or scanner does not get its own topic,
/// and its messages are added to a topic for all such cameras or scanners. Messages of unknown
/// types share another topic. No record is lost, and each record states its own type.
pub(crate) const MAX_TOPICS: usize = 65_536;

/// Name of the topic that message types without fields share if there are too many topics.
const SHARED_TOPIC: &str = "0x*";

/// Message type of the records in a topic. `None` if the fields of the type are unknown.
pub(crate) type RecordType = Option<Arc<Declared>>;

/// Decodes the data of messages to values according to their types.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decoder {
    pub(crate) record_types: Vec<RecordType>,
    pub(crate) types: Arc<Types>,
}

/// Layout of records whose fields are unknown.
static DATA: LazyLock<Arc<Layout>> = LazyLock::new(|| Layout::of_bytes("data"));

impl Decode for Decoder {
    fn fields<'a>(&'a self, topic: &Topic, payload: &'a [u8]) -> rovelog_core::Result<Fields<'a>> {
        let Some(Some(declared)) = self.record_types.get(topic.id.index()) else {
            return Ok(Fields::raw(&DATA, payload));
        };
        let layout = declared.layout();
        if !layout.decodes(payload, true) {
            return Err(VelError::BadPayload { what: topic.type_name.clone(), len: payload.len() }.into());
        }
        Ok(Fields::new(layout, payload))
    }
}

/// The topics of a log.
#[derive(Debug, Default)]
pub(crate) struct TopicTable {
    pub(crate) list: Vec<Topic>,
    pub(crate) decoder: Decoder,
    /// Times of the messages of each topic.
    pub(crate) times: Vec<Spread>,
    names: UniqueNames,
    /// Topic of each kind of message, by the number of the [`Kind`].
    plain: [Option<u32>; 6],
    /// Topic of messages of unknown types that have no topic of their own.
    others: Option<u32>,
    /// Topic of each camera.
    images: HashMap<i32, u32>,
    /// Topic of each laser scanner, by its name.
    pub(crate) lasers: HashMap<Box<[u8]>, u32>,
    /// Topic of each unknown message type, by its id and version.
    pub(crate) raws: HashMap<(u32, i32), u32>,
}

impl TopicTable {
    pub(crate) fn new(types: &Arc<Types>) -> Self {
        let decoder = Decoder { record_types: Vec::new(), types: Arc::clone(types) };
        Self { decoder, ..Self::default() }
    }

    /// Counts a message of a topic. Returns the number of the message within the topic.
    pub(crate) fn count(&mut self, series: u32, message: &Message<'_>) -> u64 {
        let topic = &mut self.list[series as usize];
        let seq = topic.count;
        topic.count += 1;
        topic.bytes += message.data.len() as u64;
        topic.timed += 1;
        let time = Some(Timestamp::new(message.nanos, Clock::LogStart));
        topic.first = topic.first.or(time);
        topic.last = time;
        let times = &mut self.times[series as usize];
        times.push(message.nanos, message.offset);
        topic.in_order = times.is_ascending();
        seq
    }

    /// Returns the earliest and the latest time of all messages in nanoseconds.
    pub(crate) fn span(&self) -> Option<(i64, i64)> {
        let spans = self.times.iter().flat_map(Spread::intervals).map(|times| (times.first, times.last));
        spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    /// Returns the index of the topic to which a message belongs. Adds the topic if it is new.
    pub(crate) fn find_or_add(
        &mut self,
        message: &Message<'_>,
        payload: Option<&Payload<'_>>,
        notes: &mut Diagnostics,
    ) -> u32 {
        let Some(payload) = payload else { return self.undescribed(message, notes) };
        let kind = payload.kind();
        let known = match payload {
            Payload::Image(image) => self.images.get(&image.source.get()),
            Payload::Laser(laser) => self.lasers.get(&*laser.sensor_name),
            _ => self.plain[kind as usize].as_ref(),
        };
        if let Some(series) = known {
            return *series;
        }
        match payload {
            Payload::Image(image) if self.has_free_topic(message, notes) => {
                let source = image.source.get();
                let series = self.add_kind(&format!("ImageM/{source}"), kind);
                *self.images.entry(source).or_insert(series)
            }
            Payload::Laser(laser) if self.has_free_topic(message, notes) => {
                let series = self.add_kind(&laser_topic(&laser.sensor_name), kind);
                *self.lasers.entry((*laser.sensor_name).into()).or_insert(series)
            }
            _ => {
                let series = self.plain[kind as usize].unwrap_or_else(|| self.add_kind(kind.name(), kind));
                *self.plain[kind as usize].insert(series)
            }
        }
    }

    /// Returns whether another topic can be added. If the limit is reached, reports this in a
    /// diagnostic about `message`.
    fn has_free_topic(&self, message: &Message<'_>, notes: &mut Diagnostics) -> bool {
        let shared = self.plain.len() + 1;
        let free = self.list.len() + shared < MAX_TOPICS;
        if !free {
            let range = message.offset..message.offset + message.wire_len();
            notes.push(&rules::MANY_TOPICS, range, || {
                "the limit of 65536 topics is reached, so this record is in a topic that it shares with \
                 others"
                    .to_owned()
            });
        }
        free
    }

    fn undescribed(&mut self, message: &Message<'_>, notes: &mut Diagnostics) -> u32 {
        let key = (message.header.type_id.get(), message.header.version.get());
        if let Some(series) = self.raws.get(&key) {
            return *series;
        }
        if !self.has_free_topic(message, notes) {
            let others = self.others.unwrap_or_else(|| self.add(SHARED_TOPIC, None, SHARED_TOPIC));
            return *self.others.insert(others);
        }
        let record_type = self.decoder.types.find(key.0, key.1).cloned();
        let declared = record_type.as_ref().map(|declared| declared.name().to_owned());
        let name = declared.unwrap_or_else(|| raw_topic(key.0, key.1));
        let series = self.add(&name, record_type, &name);
        self.raws.insert(key, series);
        series
    }

    fn add_kind(&mut self, name: &str, kind: Kind) -> u32 {
        let record_type = self.decoder.types.find(kind.type_id(), kind.version()).cloned();
        self.add(name, record_type, kind.name())
    }

    /// Adds a topic. If the name is already in use, the topic gets a number, for example `name#2`.
    fn add(&mut self, name: &str, record_type: RecordType, type_name: &str) -> u32 {
        let name = self.names.assign(name);
        let series = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        let schema = match &record_type {
            Some(declared) => Arc::clone(declared.layout().schema()),
            None => Arc::new(raw_schema(type_name)),
        };
        self.decoder.record_types.push(record_type);
        self.times.push(Spread::default());
        self.list.push(Topic::new(TopicId(series), name, type_name.to_owned(), Some(schema)));
        series
    }
}
