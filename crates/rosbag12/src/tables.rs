//! Tables that grow while a bag is scanned: connections, topics, and the statistics of both.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::{Arc, LazyLock};

use rovelog_core::internal::index::Span;
use rovelog_core::internal::layout::{DecodeError, Fit, Layout};
use rovelog_core::internal::names::UniqueNames;
use rovelog_core::internal::text::escape_bytes;
use rovelog_core::span::Spread;
use rovelog_core::{Clock, Decode, Fields, Result, Timestamp, Topic, TopicId};

use crate::definitions::{Definition, Definitions, Lookup, Source, Unusable};
use crate::error::BagError;
use crate::message::nanos;
use crate::msg::DefinitionError;
use crate::options::BagOptions;
use crate::shapes::Shapes;

/// Maximum number of connections in a bag. A connection consists of all messages with the same
/// topic, type and md5 sum.
pub(crate) const MAX_CONNECTIONS: usize = 65_536;

/// Layout of payloads that cannot be decoded. The only field contains the bytes of the payload.
static RAW: LazyLock<Arc<Layout>> = LazyLock::new(|| Layout::of_bytes("raw"));

/// All messages with the same topic, type and md5 sum. A connection and its
/// [`Topic`](rovelog_core::Topic) have the same index.
#[derive(Debug)]
#[non_exhaustive]
pub struct Connection {
    /// Topic name as stored in the bag.
    pub topic: Vec<u8>,
    /// Message type as stored in the bag.
    pub ty: Vec<u8>,
    /// md5 sum of the message type: 32 characters, or `*`.
    pub md5: Vec<u8>,
    /// Definition that decodes the messages, or the reason why there is no definition.
    pub(crate) definition: std::result::Result<Arc<Definition>, Option<DefinitionError>>,
    /// The connection's own definition, if the bag has one that cannot be used.
    pub(crate) unusable: Option<Unusable>,
    /// Statistics of the messages of the connection.
    pub(crate) stats: Stats,
    /// Number of definitions in the bag when the definition of this connection was last looked up.
    /// `usize::MAX` before the first lookup.
    pub(crate) resolved_with: usize,
    /// True if an earlier connection has the same topic name.
    pub(crate) shares_topic: bool,
}

impl Connection {
    /// Returns the definition that decodes the messages of this connection. Returns `None` if no
    /// definition can be used.
    pub fn definition(&self) -> Option<&Definition> {
        self.definition.as_deref().ok()
    }

    /// Returns the definition of another connection with the same md5 sum, if it decodes the
    /// messages of this connection. Without that other connection, the messages could not be
    /// decoded, so outputs contain this text instead of the unusable definition.
    pub(crate) fn borrowed_definition(&self) -> Option<&[u8]> {
        let is_borrowed = |found: &&Definition| found.source == Source::SameMd5 && !found.is_guess();
        self.definition().filter(is_borrowed).map(|found| &*found.text)
    }

    /// Returns the number of messages from latching publishers. A latching publisher sends its last
    /// message to every new subscriber.
    pub fn latched(&self) -> u64 {
        self.stats.latched
    }

    /// Returns the lowest and highest message time in nanoseconds. Returns `None` if no messages
    /// were read.
    pub fn span(&self) -> Option<(i64, i64)> {
        self.stats.times.span.range().map(RangeInclusive::into_inner)
    }
}

/// Statistics of the messages of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stats {
    /// Number of messages.
    pub(crate) count: u64,
    /// Total size in bytes of the payloads.
    pub(crate) bytes: u64,
    /// Number of messages from latching publishers, that is, from publishers that send their last
    /// message to every new subscriber.
    pub(crate) latched: u64,
    /// Times of the messages.
    pub(crate) times: MessageTimes,
    /// Number of the last index block that has messages of the connection. The first block has
    /// number 1.
    pub(crate) block: u32,
}

/// Times of the messages of a connection, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct MessageTimes {
    /// Time of the first message in the file.
    pub(crate) first: i64,
    /// Offset of the first message.
    pub(crate) first_at: u64,
    /// Time of the last message in the file.
    pub(crate) last: i64,
    /// Lowest and highest message time.
    pub(crate) span: Span,
    /// Lowest message time above 0.
    pub(crate) min_above_0: Option<i64>,
    /// Intervals of time in which the connection has messages.
    pub(crate) intervals: Spread,
    /// Offset of the first message with time 0.
    pub(crate) zero_at: Option<u64>,
    /// Offset of the first message whose nanoseconds value is one second or more.
    pub(crate) odd_nsec_at: Option<u64>,
}

/// Count and checksum of a set of index entries. The checksum does not depend on the order of the
/// entries, so that messages can be compared with an index without sorting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Number of index entries.
    pub(crate) count: u64,
    /// Sum of the hashes of all index entries.
    pub(crate) sum: u64,
}

impl Tally {
    #[inline]
    pub(crate) fn add(&mut self, sec: u32, nsec: u32, pos: u64) {
        let time = u64::from(sec) << 32 | u64::from(nsec);
        // The sum of the hashes does not depend on the order of the entries, but must change if two
        // messages swap their times. The hash therefore mixes time and position.
        let mixed = (time ^ pos.rotate_left(29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 32) ^ pos).wrapping_mul(0xd6e8_feb8_6659_fd93);
        self.count += 1;
        self.sum = self.sum.wrapping_add(mixed ^ (mixed >> 29));
    }

    pub(crate) fn join(&mut self, other: Self) {
        self.count += other.count;
        self.sum = self.sum.wrapping_add(other.sum);
    }
}

/// Tallies of the messages in the current section (bag within the file) or in the current chunk,
/// by index of the connection or of the origin.
#[derive(Debug, Default)]
pub(crate) struct Tallies {
    /// By index, the tally of the messages. The list ends after the largest index used so far.
    list: Vec<Tally>,
    /// Indices that have messages.
    used: Vec<u32>,
}

impl Tallies {
    /// Adds a message at position `pos` to the tally with index `number`.
    #[inline]
    pub(crate) fn add(&mut self, number: u32, sec: u32, nsec: u32, pos: u64) {
        let place = number as usize;
        if place >= self.list.len() {
            self.list.resize(place + 1, Tally::default());
        }
        let tally = &mut self.list[place];
        if tally.count == 0 {
            self.used.push(number);
        }
        tally.add(sec, nsec, pos);
    }

    /// Returns whether messages were added to the tally with index `number`.
    pub(crate) fn has_messages(&self, number: u32) -> bool {
        self.list.get(number as usize).is_some_and(|tally| tally.count > 0)
    }

    /// Removes all tallies, and returns them with their indices. The time does not depend on the
    /// number of indices without messages.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = (u32, Tally)> {
        self.used.drain(..).map(|number| (number, std::mem::take(&mut self.list[number as usize])))
    }
}

impl Stats {
    /// Adds a message to the statistics, and returns the message time in nanoseconds.
    #[inline]
    pub(crate) fn message(&mut self, at: u64, len: usize, sec: u32, nsec: u32) -> i64 {
        let (time, times) = (nanos(sec, nsec), &mut self.times);
        if self.count == 0 {
            (times.first, times.first_at) = (time, at);
        }
        self.count += 1;
        self.bytes += len as u64;
        times.last = time;
        times.span.add(time);
        times.intervals.push(time, at);
        if time > 0 {
            times.add_above_0(time);
        } else {
            times.zero_at = times.zero_at.or(Some(at));
        }
        if nsec >= 1_000_000_000 {
            times.odd_nsec_at = times.odd_nsec_at.or(Some(at));
        }
        time
    }
}

impl MessageTimes {
    /// Adds a message time above 0.
    #[inline]
    pub(crate) fn add_above_0(&mut self, time: i64) {
        self.min_above_0 = Some(self.min_above_0.map_or(time, |min| min.min(time)));
    }
}

/// Topic, type and md5 sum, which together identify a connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ConnectionName {
    /// Topic name as stored in the bag.
    pub(crate) topic: Box<[u8]>,
    /// Message type as stored in the bag.
    pub(crate) ty: Box<[u8]>,
    /// md5 sum as stored in the bag.
    pub(crate) md5: Box<[u8]>,
}

impl ConnectionName {
    pub(crate) fn new(topic: &[u8], ty: &[u8], md5: &[u8]) -> Self {
        Self { topic: topic.into(), ty: ty.into(), md5: md5.into() }
    }
}

/// Connections, topics, definitions and header shapes of a bag. A header shape consists of the
/// header bytes that messages share.
#[derive(Debug)]
pub(crate) struct Tables {
    /// Topics as shown to users. A topic and its connection have the same index.
    pub(crate) topics: Vec<Topic>,
    /// Connections in the order in which they were found.
    pub(crate) connections: Vec<Connection>,
    /// Shapes of message headers in bags before V2.0. A shape consists of the header bytes that
    /// messages share.
    pub(crate) shapes: Shapes,
    /// Message definitions in the bag.
    pub(crate) definitions: Definitions,
    /// Map from topic, type and md5 sum to the index of the connection.
    by_key: HashMap<ConnectionName, u32>,
    /// Topic names that are in use. Each topic gets a unique name.
    names: UniqueNames,
    /// Clock to which the message times belong.
    pub(crate) clock: Clock,
}

impl Tables {
    pub(crate) fn new(options: &BagOptions, clock: Clock) -> Self {
        Self {
            topics: Vec::new(),
            connections: Vec::new(),
            shapes: Shapes::default(),
            definitions: Definitions::new(options),
            by_key: HashMap::new(),
            names: UniqueNames::default(),
            clock,
        }
    }

    /// Returns the index of the connection with this topic, type and md5 sum. A connection that
    /// does not exist is added. Returns `None` if there are too many connections.
    pub(crate) fn connection(&mut self, topic: &[u8], ty: &[u8], md5: &[u8]) -> Option<u32> {
        let key = ConnectionName::new(topic, ty, md5);
        if let Some(number) = self.by_key.get(&key) {
            return Some(*number);
        }
        // Each connection needs memory, and a damaged bag may appear to have millions of
        // connections.
        if self.connections.len() >= MAX_CONNECTIONS {
            return None;
        }
        let number = u32::try_from(self.connections.len()).ok()?;
        self.by_key.insert(key, number);
        let shown = escape_bytes(topic);
        let name = self.names.assign(&shown);
        let shares_topic = name != shown;
        let type_name = escape_bytes(ty);
        let type_name = match type_name.strip_prefix("rostools/") {
            // The package `rostools` was later renamed to `roslib`. Show the new name.
            Some(rest) => format!("roslib/{rest}"),
            None => type_name,
        };
        self.topics.push(Topic::new(TopicId(number), name, type_name, None));
        self.connections.push(Connection {
            topic: topic.to_vec(),
            ty: ty.to_vec(),
            md5: md5.to_vec(),
            definition: Err(None),
            unusable: None,
            stats: Stats::default(),
            resolved_with: usize::MAX,
            shares_topic,
        });
        Some(number)
    }

    /// Returns the index of the connection with this topic, type and md5 sum, if the connection
    /// exists.
    pub(crate) fn number(&self, topic: &[u8], ty: &[u8], md5: &[u8]) -> Option<u32> {
        self.by_key.get(&ConnectionName::new(topic, ty, md5)).copied()
    }

    /// Returns whether the bag has a topic with this name.
    pub(crate) fn has_topic(&self, topic: &[u8]) -> bool {
        self.names.contains(&escape_bytes(topic))
    }

    /// Looks up the definition of a connection again, if definitions were added since the last
    /// lookup.
    #[inline]
    pub(crate) fn resolve(&mut self, number: u32) {
        if self.connections[number as usize].resolved_with != self.definitions.records.len() {
            self.find_definition(number);
        }
    }

    #[cold]
    fn find_definition(&mut self, number: u32) {
        let connection = &mut self.connections[number as usize];
        connection.resolved_with = self.definitions.records.len();
        // The definition of the connection's own topic is the best possible definition, so no other
        // definition is searched.
        if connection.definition().is_some_and(|d| d.source == crate::definitions::Source::Topic) {
            return;
        }
        let Lookup { definition, unusable } =
            self.definitions.find(&connection.topic, &connection.ty, &connection.md5);
        (connection.definition, connection.unusable) = (definition, unusable);
        let schema = connection.definition().map(|d| Arc::clone(d.layout.schema()));
        self.topics[number as usize].schema = schema;
    }

    /// Copies the statistics of a connection to its topic.
    pub(crate) fn publish(&mut self, number: u32) {
        let (topic, stats) = (&mut self.topics[number as usize], &self.connections[number as usize].stats);
        (topic.count, topic.bytes, topic.timed) = (stats.count, stats.bytes, stats.count);
        let time = |nanos| (stats.count > 0).then_some(Timestamp::new(nanos, self.clock));
        (topic.first, topic.last) = (time(stats.times.first), time(stats.times.last));
        topic.in_order = stats.times.intervals.is_ascending();
    }

    /// Returns the layout that decodes a payload. Returns `None` if it is not certain that a
    /// definition matches. The payload is then shown as one field of raw bytes.
    pub(crate) fn layout(
        &self,
        number: usize,
        payload: &[u8],
    ) -> std::result::Result<Option<&Arc<Layout>>, BagError> {
        let definition = self.connections.get(number).and_then(Connection::definition);
        let Some(definition) = definition else { return Ok(None) };
        let is_guess = definition.is_guess();
        if definition.layout.decodes(payload, !is_guess) {
            return Ok(Some(&definition.layout));
        }
        match definition.layout.value(payload) {
            Err(error) if !is_guess => Err(self.undecodable(number, payload, &error)),
            _ => Ok(None),
        }
    }

    /// Returns the decoded fields of a payload.
    pub(crate) fn fields<'a>(
        &'a self,
        number: usize,
        payload: &'a [u8],
    ) -> std::result::Result<Fields<'a>, BagError> {
        Ok(match self.layout(number, payload)? {
            Some(layout) => Fields::new(layout, payload),
            None => Fields::raw(&RAW, payload),
        })
    }

    pub(crate) fn undecodable(&self, number: usize, payload: &[u8], error: &DecodeError) -> BagError {
        let (topic, why) = (self.topics[number].name.clone(), error.to_string());
        BagError::Payload { topic, len: payload.len(), why }
    }
}

impl Decode for Tables {
    fn fields<'a>(&'a self, topic: &Topic, payload: &'a [u8]) -> Result<Fields<'a>> {
        Ok(Self::fields(self, topic.id.index(), payload)?)
    }
}

/// Returns how well a payload matches the definition of its connection. If the connection has no
/// definition, the result is an exact match.
#[inline]
pub(crate) fn fit(connection: &Connection, payload: &[u8]) -> Fit {
    match &connection.definition {
        Ok(definition) => definition.layout.fit(payload),
        Err(_) => Fit::Exact,
    }
}
