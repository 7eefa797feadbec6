//! The tables that grow while a bag is read: connections, their topics, and what is counted of
//! each.

use std::collections::HashMap;
use std::sync::Arc;

use rovelog_core::layout::{Fit, Layout};
use rovelog_core::names::UniqueNames;
use rovelog_core::span::Spread;
use rovelog_core::text::escape_bytes;
use rovelog_core::{Clock, Decode, Result, Timestamp, Topic, TopicId, Value};

use crate::definitions::{Definition, Definitions, Found};
use crate::error::BagError;
use crate::msg::DefinitionError;
use crate::options::BagOptions;
use crate::shapes::Shapes;

/// Connections that a bag may have.
pub(crate) const MAX_CONNECTIONS: usize = 65_536;

/// The field that has the bytes of a message that cannot be decoded.
const RAW: &str = "raw";

/// All messages of one topic with one type and md5 sum. It has the same index as its
/// [`Topic`](rovelog_core::Topic).
#[derive(Debug)]
#[non_exhaustive]
pub struct Connection {
    /// The topic's name as stored.
    pub topic: Vec<u8>,
    /// The type as stored.
    pub ty: Vec<u8>,
    /// The md5 sum of the type: 32 characters, or `*`.
    pub md5: Vec<u8>,
    /// The definition that decodes its messages; why there is none.
    pub(crate) definition: std::result::Result<Arc<Definition>, Option<DefinitionError>>,
    /// The definition of its own that could not be used, and why.
    pub(crate) unusable: Option<(u64, DefinitionError)>,
    pub(crate) stats: Stats,
    /// Number of definitions when this was last looked up; `usize::MAX` before the first time.
    pub(crate) resolved_with: usize,
    /// Whether its topic has an earlier connection.
    pub(crate) is_further: bool,
}

impl Connection {
    /// Returns the definition that decodes its messages, if there is one.
    pub fn definition(&self) -> Option<&Definition> {
        self.definition.as_deref().ok()
    }

    /// Returns how many of its messages are of a latching publisher.
    pub fn latched(&self) -> u64 {
        self.stats.latched
    }

    /// Returns the lowest and the highest stamp, nanoseconds; `None` without messages that were read.
    pub fn span(&self) -> Option<(i64, i64)> {
        (self.stats.min <= self.stats.max).then_some((self.stats.min, self.stats.max))
    }
}

/// What is counted of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Stats {
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    /// Stamps in file order and by size.
    pub(crate) first: i64,
    pub(crate) last: i64,
    pub(crate) min: i64,
    pub(crate) max: i64,
    /// The smallest one above 0.
    pub(crate) min_above_0: Option<i64>,
    pub(crate) times: Spread,
    pub(crate) latched: u64,
    /// Offset of the first message, and of the first with a remarkable time.
    pub(crate) first_at: u64,
    pub(crate) zero_at: Option<u64>,
    pub(crate) odd_nsec_at: Option<u64>,
    /// The last block of the index in which it has messages, from 1.
    pub(crate) block: u32,
    /// What its messages in this section add up to, for comparison with the file's own index.
    pub(crate) in_section: Tally,
}

/// The number of entries and the sum of their hashes: equal for equal sets, whatever their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) count: u64,
    pub(crate) sum: u64,
}

impl Tally {
    #[inline]
    pub(crate) fn add(&mut self, sec: u32, nsec: u32, pos: u64) {
        let time = u64::from(sec) << 32 | u64::from(nsec);
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

impl Default for Stats {
    fn default() -> Self {
        Self {
            count: 0,
            bytes: 0,
            first: 0,
            last: 0,
            min: i64::MAX,
            max: i64::MIN,
            min_above_0: None,
            times: Spread::default(),
            latched: 0,
            first_at: 0,
            zero_at: None,
            odd_nsec_at: None,
            block: 0,
            in_section: Tally::default(),
        }
    }
}

/// Returns a stamp in nanoseconds; a second or more of nanoseconds is carried.
#[inline]
pub(crate) fn nanos(sec: u32, nsec: u32) -> i64 {
    i64::from(sec) * 1_000_000_000 + i64::from(nsec)
}

impl Stats {
    /// Counts a message.
    #[inline]
    pub(crate) fn message(&mut self, at: u64, len: usize, sec: u32, nsec: u32) -> i64 {
        let time = nanos(sec, nsec);
        if self.count == 0 {
            (self.first, self.first_at) = (time, at);
        }
        self.count += 1;
        self.bytes += len as u64;
        self.last = time;
        self.min = self.min.min(time);
        self.max = self.max.max(time);
        self.times.push(time, at);
        if time > 0 {
            self.min_above_0 = Some(self.min_above_0.map_or(time, |min| min.min(time)));
        } else {
            self.zero_at = self.zero_at.or(Some(at));
        }
        if nsec >= 1_000_000_000 {
            self.odd_nsec_at = self.odd_nsec_at.or(Some(at));
        }
        time
    }
}

/// Topic, type and md5 sum of a connection.
type Key = (Box<[u8]>, Box<[u8]>, Box<[u8]>);

/// Everything by which messages are told apart and decoded.
#[derive(Debug)]
pub(crate) struct Tables {
    pub(crate) topics: Vec<Topic>,
    pub(crate) connections: Vec<Connection>,
    pub(crate) shapes: Shapes,
    pub(crate) definitions: Definitions,
    /// The number of definition records that said something new.
    pub(crate) defined: usize,
    /// Names of publishers.
    pub(crate) callerids: Vec<Box<[u8]>>,
    callerid_numbers: HashMap<Box<[u8]>, u32>,
    by_key: HashMap<Key, u32>,
    names: UniqueNames,
    pub(crate) clock: Clock,
}

impl Tables {
    pub(crate) fn new(options: &BagOptions, clock: Clock) -> Self {
        Self {
            topics: Vec::new(),
            connections: Vec::new(),
            shapes: Shapes::default(),
            definitions: Definitions::new(options),
            defined: 0,
            callerids: Vec::new(),
            callerid_numbers: HashMap::new(),
            by_key: HashMap::new(),
            names: UniqueNames::default(),
            clock,
        }
    }

    /// Returns the connection of these three; `None` where there would be too many.
    pub(crate) fn connection(&mut self, topic: &[u8], ty: &[u8], md5: &[u8]) -> Option<u32> {
        let key = (topic.into(), ty.into(), md5.into());
        if let Some(number) = self.by_key.get(&key) {
            return Some(*number);
        }
        if self.connections.len() >= MAX_CONNECTIONS {
            return None;
        }
        let number = u32::try_from(self.connections.len()).ok()?;
        self.by_key.insert(key, number);
        let shown = escape_bytes(topic);
        let name = self.names.give(&shown);
        let is_further = name != shown;
        let type_name = escape_bytes(ty);
        let type_name = match type_name.strip_prefix("rostools/") {
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
            is_further,
        });
        Some(number)
    }

    /// Returns the number of a connection that was met before.
    pub(crate) fn number(&self, topic: &[u8], ty: &[u8], md5: &[u8]) -> Option<u32> {
        self.by_key.get(&(topic.into(), ty.into(), md5.into())).copied()
    }

    /// Returns whether a topic of this name was met before.
    pub(crate) fn has_topic(&self, topic: &[u8]) -> bool {
        self.names.contains(&escape_bytes(topic))
    }

    /// Returns a connection that was met before.
    pub(crate) fn known(&self, topic: &[u8], ty: &[u8], md5: &[u8]) -> Option<&Connection> {
        self.connections.get(self.number(topic, ty, md5)? as usize)
    }

    /// Returns the number of a publisher's name.
    pub(crate) fn callerid(&mut self, name: &[u8]) -> u32 {
        if let Some(number) = self.callerid_numbers.get(name) {
            return *number;
        }
        let number = u32::try_from(self.callerids.len()).unwrap_or(u32::MAX);
        self.callerids.push(name.into());
        self.callerid_numbers.insert(name.into(), number);
        number
    }

    /// Looks up the definition of a connection, if there may be a better one than before.
    #[inline]
    pub(crate) fn resolve(&mut self, number: u32) {
        if self.connections[number as usize].resolved_with != self.defined {
            self.find_definition(number);
        }
    }

    #[cold]
    fn find_definition(&mut self, number: u32) {
        let connection = &mut self.connections[number as usize];
        connection.resolved_with = self.defined;
        if connection.definition().is_some_and(|d| d.source == crate::definitions::Source::Topic) {
            return;
        }
        let (definition, unusable): Found =
            self.definitions.find(&connection.topic, &connection.ty, &connection.md5);
        connection.definition = definition;
        connection.unusable = unusable;
        let schema = connection.definition().map(|d| Arc::clone(d.layout.schema()));
        self.topics[number as usize].schema = schema;
    }

    /// Copies the counts of one connection to where users see them.
    pub(crate) fn publish(&mut self, number: u32) {
        let (topic, stats) = (&mut self.topics[number as usize], &self.connections[number as usize].stats);
        (topic.count, topic.bytes, topic.timed) = (stats.count, stats.bytes, stats.count);
        let time = |nanos| (stats.count > 0).then_some(Timestamp::new(nanos, self.clock));
        (topic.first, topic.last) = (time(stats.first), time(stats.last));
        topic.in_order = stats.times.is_ascending();
    }

    /// Returns a payload as values, with the bytes behind the last field.
    pub(crate) fn decode(
        &self,
        number: usize,
        payload: &[u8],
    ) -> std::result::Result<(Value, usize), BagError> {
        let raw = || (Value::record([(RAW, Value::Bytes(payload.to_vec()))]), 0);
        let Some(connection) = self.connections.get(number) else { return Ok(raw()) };
        let Some(definition) = connection.definition() else { return Ok(raw()) };
        match definition.layout.value(payload) {
            Ok((value, used)) if used == payload.len() || !definition.is_guess() => {
                Ok((value, payload.len() - used))
            }
            Err(error) if !definition.is_guess() => Err(BagError::Payload {
                topic: self.topics[number].name.clone(),
                len: payload.len(),
                why: error.to_string(),
            }),
            _ => Ok(raw()),
        }
    }
}

impl Tables {
    /// Returns the layout by which a payload decodes; none for what [`decode`](Self::decode) gives
    /// as bytes.
    pub(crate) fn layout(
        &self,
        number: usize,
        payload: &[u8],
    ) -> std::result::Result<Option<&Arc<Layout>>, BagError> {
        let definition = self.connections.get(number).and_then(Connection::definition);
        match definition {
            Some(found) if found.layout.decodes(payload, !found.is_guess()) => Ok(Some(&found.layout)),
            // Short, or not to be decoded: this says which.
            _ => self.decode(number, payload).map(|_| None),
        }
    }
}

impl Decode for Tables {
    fn value(&self, topic: &Topic, payload: &[u8]) -> Result<Value> {
        Ok(self.decode(topic.id.index(), payload)?.0)
    }

    fn layout(&self, topic: &Topic, payload: &[u8]) -> Option<&Arc<Layout>> {
        Self::layout(self, topic.id.index(), payload).ok().flatten()
    }
}

/// Returns how a payload fits the definition of its connection; exactly, where there is none.
#[inline]
pub(crate) fn fit(connection: &Connection, payload: &[u8]) -> Fit {
    match &connection.definition {
        Ok(definition) => definition.layout.fit(payload),
        Err(_) => Fit::Exact,
    }
}

/// Who published a message, as far as its record says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Publisher {
    /// True if it latches: it sends its last message to every new subscriber.
    pub latching: bool,
    /// The name of its node.
    pub callerid: Option<String>,
}

impl Publisher {
    /// Returns a latching publisher: the only kind that a message tells of.
    pub fn latching(callerid: impl Into<String>) -> Self {
        Self { latching: true, callerid: Some(callerid.into()) }
    }
}

/// Returns an offset within the bytes at hand as an index.
pub(crate) fn usize_of(at: u64) -> usize {
    usize::try_from(at).expect("within the bytes at hand")
}
