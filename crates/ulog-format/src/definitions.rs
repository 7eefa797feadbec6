//! The tables that a log builds up as it is read: formats, subscriptions, and the topics made of
//! them.

use std::collections::HashMap;
use std::sync::Arc;

use rovelog_core::layout::{Layout as RecordLayout, TextDecoding};
use rovelog_core::names::UniqueNames;
use rovelog_core::wire::U64Le;
use rovelog_core::{Decode, Diagnostics, Limits, Result, Topic, TopicId, Value};

use crate::diagnostics as rules;
use crate::error::UlogError;
use crate::layout::{Defined, Formats, Layout, TimeWidth, Undecodable};
use crate::row::Row;
use crate::schema::FormatText;
use crate::utc;
use crate::wire::{self, HEADER_LEN, Message};

/// One subscription: a topic of the log, with the definition that was active when it was made.
#[derive(Debug)]
pub struct Subscription {
    /// The offset of its 'A' message.
    pub offset: u64,
    /// The id under which data messages refer to it.
    pub msg_id: u16,
    /// The instance.
    pub multi_id: u8,
    /// The positions of the fields, or why they are unknown.
    pub(crate) layout: Result<Arc<Layout>, Undecodable>,
    /// The end of its 'A' message.
    pub(crate) announced: u64,
    /// Rows before this offset cannot be decoded: the format was defined late.
    pub(crate) decodable_from: u64,
    /// The active definition text.
    pub format: Option<Arc<str>>,
    /// Whether it has ended.
    pub unsubscribed: bool,
    time_noted: bool,
    range_noted: bool,
}

/// What the scanner must know of a message id to validate and time a row, and nothing more: 12
/// bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowShape {
    /// Index of the subscription and of its topic.
    pub(crate) series: u32,
    pub(crate) full: u16,
    pub(crate) trimmed: u16,
    /// Offset of the timestamp within the row.
    pub(crate) time_at: u16,
    pub(crate) time: RowTime,
    pub(crate) flags: u8,
}

/// What kind of time a row carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowTime {
    None,
    Field(TimeWidth),
}

impl RowShape {
    /// The id is not subscribed.
    pub(crate) const UNKNOWN: u8 = 1;
    /// The subscription has no usable layout.
    pub(crate) const UNDECODABLE: u8 = 2;
    /// Something is to be noted at the next row.
    pub(crate) const NOTE: u8 = 4;
    /// The topic tells UTC.
    pub(crate) const UTC: u8 = 8;
    /// Not a 64-bit timestamp.
    pub(crate) const SPECIAL_TIME: u8 = 16;

    pub(crate) const VACANT: Self =
        Self { series: 0, full: 0, trimmed: 0, time_at: 0, time: RowTime::None, flags: Self::UNKNOWN };

    pub(crate) fn of(series: u32, type_name: &str, subscription: &Subscription) -> Self {
        let Ok(layout) = &subscription.layout else {
            return Self { series, flags: Self::UNDECODABLE, ..Self::VACANT };
        };
        let trimmed = u16::try_from(layout.trimmed).expect("a layout fits a message");
        let (time_at, time) = match layout.timestamp {
            Some(field) => {
                (u16::try_from(field.offset).expect("within the row"), RowTime::Field(field.width))
            }
            None => (0, RowTime::None),
        };
        let mut flags = 0;
        if time != RowTime::Field(TimeWidth::U64Micros) {
            flags |= Self::SPECIAL_TIME | Self::NOTE;
        }
        if utc::GpsFields::of(type_name, &layout.record).is_some() {
            flags |= Self::UTC;
        }
        // A full row that no message can hold never occurs.
        let full = u16::try_from(layout.full).unwrap_or(trimmed);
        Self { series, full, trimmed, time_at, time, flags }
    }

    /// Returns whether a row can be decoded at all.
    pub(crate) fn usable(self) -> bool {
        self.flags & (Self::UNKNOWN | Self::UNDECODABLE) == 0
    }

    /// Returns whether the timestamp has fewer than 64 bits.
    pub(crate) fn is_narrow(self) -> bool {
        matches!(self.time, RowTime::Field(width) if width != TimeWidth::U64Micros)
    }

    /// Returns the 64-bit timestamp of a row, microseconds.
    pub(crate) fn plain_time(self, row: &[u8]) -> Option<u64> {
        if self.time != RowTime::Field(TimeWidth::U64Micros) {
            return None;
        }
        wire::number::<U64Le>(row, self.time_at.into()).map(U64Le::get)
    }

    /// D9, D11: a row is full or trimmed, nothing else.
    pub(crate) fn fits(self, row_len: usize) -> bool {
        row_len == usize::from(self.trimmed) || row_len == usize::from(self.full)
    }
}

/// The active shapes at one place of the log, by message id.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shapes(Vec<RowShape>);

impl Shapes {
    #[inline]
    pub(crate) fn get(&self, msg_id: u16) -> RowShape {
        self.0.get(usize::from(msg_id)).copied().unwrap_or(RowShape::VACANT)
    }

    #[inline]
    pub(crate) fn find(&self, msg_id: u16) -> Option<&RowShape> {
        self.0.get(usize::from(msg_id))
    }

    fn slot(&mut self, msg_id: u16) -> &mut RowShape {
        let at = usize::from(msg_id);
        if self.0.len() <= at {
            self.0.resize(at + 1, RowShape::VACANT);
        }
        &mut self.0[at]
    }

    pub(crate) fn put(&mut self, msg_id: u16, shape: RowShape) {
        *self.slot(msg_id) = shape;
    }

    /// Makes a subscription active.
    pub(crate) fn set(&mut self, series: u32, type_name: &str, subscription: &Subscription) {
        *self.slot(subscription.msg_id) = RowShape::of(series, type_name, subscription);
    }
}

/// Subscriptions of a log at most: "The same `msg_id` must not be used twice", and there are 65 536
/// ids. Twice as many are kept all the same; a hostile log could use one id again and again.
pub(crate) const MAX_SUBSCRIPTIONS: usize = 1 << 17;

/// Formats, subscriptions and topics, as far as the log has been read.
#[derive(Debug, Default)]
pub struct Definitions {
    pub(crate) formats: Formats,
    pub(crate) shapes: Shapes,
    pub(crate) subscriptions: Vec<Subscription>,
    pub(crate) topics: Vec<Topic>,
    limits: Limits,
    /// Names of topics: a second series of a name is `t/0#2`.
    names: UniqueNames,
    /// Subscriptions that wait for the definition of a type.
    waiting: HashMap<String, Vec<u32>>,
    /// Where ids lost their meaning, because another log starts or there were too many
    /// subscriptions, and the topics that they meant.
    pub(crate) vacated: Vec<(u64, u32)>,
    /// Whether the data section has started.
    pub(crate) in_data: bool,
}

impl Definitions {
    pub(crate) fn new(limits: &Limits, decoding: TextDecoding) -> Self {
        let mut definitions = Self { limits: limits.clone(), ..Self::default() };
        definitions.formats.decoding = decoding;
        definitions
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Starts another log in the same file, whose header is at `at`: ids mean nothing until it
    /// subscribes them.
    pub(crate) fn restart(&mut self, at: u64) {
        let shapes = std::mem::take(&mut self.shapes);
        let is_known = |shape: &&RowShape| shape.flags & RowShape::UNKNOWN == 0;
        self.vacated.extend(shapes.0.iter().filter(is_known).map(|shape| (at, shape.series)));
        self.formats.restart();
        self.waiting.clear();
        self.in_data = false;
    }

    /// Lays out a format that is about to be subscribed, so that looking ahead need not.
    pub(crate) fn prepare(&mut self, name: &str) {
        // Whatever is wrong with it is said when it is subscribed.
        let _ = self.formats.layout(name, &self.limits);
    }

    /// Returns the subscriptions in file order, parallel to the topics.
    pub fn subscriptions(&self) -> &[Subscription] {
        &self.subscriptions
    }

    /// Returns the positions of the fields of a topic.
    ///
    /// # Errors
    /// Returns an error if the topic cannot be decoded, or is one of another log.
    pub fn layout(&self, topic: &Topic) -> Result<&RecordLayout, UlogError> {
        Ok(&self.row_layout(topic)?.record)
    }

    /// Returns the same with what only ULog knows of it.
    pub(crate) fn row_layout(&self, topic: &Topic) -> Result<&Layout, UlogError> {
        if !topic.is_of(&self.topics) {
            return Err(UlogError::NoSuchTopic { topic: topic.name.clone() });
        }
        let undecodable =
            |why: &Undecodable| UlogError::Undecodable { topic: topic.name.clone(), why: why.to_string() };
        self.subscriptions[topic.id.index()].layout.as_deref().map_err(undecodable)
    }

    /// Returns a row of `topic`, for access to its fields.
    ///
    /// # Errors
    /// Returns an error if the topic cannot be decoded or is one of another log, or the payload has
    /// neither of the sizes of its format.
    pub fn row<'a>(&'a self, topic: &Topic, payload: &'a [u8]) -> Result<Row<'a>, UlogError> {
        let layout = self.row_layout(topic)?;
        if payload.len() != layout.trimmed && payload.len() != layout.full {
            let (trimmed, full) = (layout.trimmed, layout.full);
            return Err(UlogError::RowSize { topic: topic.name.clone(), got: payload.len(), trimmed, full });
        }
        Ok(Row::new(&layout.record, payload))
    }

    /// Takes a message that was validated valid, where it changes the tables.
    pub(crate) fn apply(&mut self, at: u64, end: u64, message: &Message<'_>, notes: &mut Diagnostics) {
        match *message {
            Message::Format(wire::Format { format }) => self.define(at, end, format, notes),
            Message::Info(info) => self.formats.learn(info),
            Message::Subscription(subscription) => {
                self.in_data = true;
                self.subscribe(at..end, subscription, notes);
            }
            Message::Unsubscription(wire::Unsubscription { msg_id }) => {
                self.in_data = true;
                let shape = self.shapes.get(msg_id);
                if shape.usable() {
                    self.shapes.slot(msg_id).flags |= RowShape::NOTE;
                    self.subscriptions[shape.series as usize].unsubscribed = true;
                }
            }
            Message::LoggedString(_)
            | Message::TaggedString(_)
            | Message::Sync(_)
            | Message::Dropout(_)
            | Message::Data(_) => self.in_data = true,
            _ => {}
        }
    }

    fn define(&mut self, at: u64, end: u64, payload: &[u8], notes: &mut Diagnostics) {
        let Some(format) = FormatText::parse(payload) else { return };
        let name = format.name;
        if self.in_data {
            notes.push(&rules::FORMAT_IN_DATA_SECTION, at..end, || {
                format!("format {name} is defined inside the data section")
            });
        }
        let defined = self.formats.define(&format, payload);
        if defined != Defined::Repeated && format.unusual_names().next().is_some() {
            notes.push(&rules::UNUSUAL_NAME, at..end, || {
                let names: Vec<_> = format.unusual_names().map(|name| format!("'{name}'")).collect();
                let more = names.len().saturating_sub(8);
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                format!("format {name}: the names {}{more}", names[..names.len().min(8)].join(", "))
            });
        }
        if defined != Defined::Repeated && !format.is_tight() {
            notes.push(&rules::EXTRA_BLANKS, at..end, || {
                let fields: Vec<_> = format.blank_fields().collect();
                match fields[..] {
                    [] => format!("format {name} has blanks or NUL bytes around its name or at its end"),
                    [only] => format!("format {name} has extra blanks at field {only}"),
                    [first, ..] => {
                        format!("format {name} has extra blanks at {} fields, {first} first", fields.len())
                    }
                }
            });
        }
        match defined {
            Defined::New => {}
            Defined::Repeated => {
                notes.push(&rules::FORMAT_REPEATED, at..end, || format!("format {name} is defined again"));
                return;
            }
            Defined::Redefined => notes.push(&rules::FORMAT_REDEFINED, at..end, || {
                format!("format {name} is defined differently: earlier subscriptions keep the old one")
            }),
        }
        for series in self.waiting.remove(name).unwrap_or_default() {
            let layout = self.lay_out(series, &self.topics[series as usize].type_name.clone());
            let subscription = &mut self.subscriptions[series as usize];
            subscription.layout = layout;
            subscription.decodable_from = end;
            subscription.format = self.formats.text(&self.topics[series as usize].type_name).cloned();
            self.topics[series as usize].schema =
                subscription.layout.as_ref().ok().map(|layout| Arc::clone(layout.record.schema()));
            // Only while the id still means this subscription.
            if self.shapes.get(subscription.msg_id).series == series {
                self.shapes.set(series, &self.topics[series as usize].type_name, subscription);
            }
        }
    }

    /// Returns the layout for a subscription; remembers it where a type is missing that may still
    /// come.
    fn lay_out(&mut self, series: u32, name: &str) -> Result<Arc<Layout>, Undecodable> {
        let layout = self.formats.layout(name, &self.limits);
        if let Err(Undecodable::Missing(missing)) = &layout {
            self.waiting.entry(missing.clone()).or_default().push(series);
        }
        layout
    }

    fn subscribe(
        &mut self,
        range: std::ops::Range<u64>,
        subscription: wire::Subscription<'_>,
        notes: &mut Diagnostics,
    ) {
        // Validated before: a name is UTF-8.
        let Some(type_name) = subscription.name() else { return };
        let wire::Subscription { multi_id, msg_id, message_name } = subscription;
        if message_name.len() != type_name.len() {
            notes.push(&rules::EXTRA_BLANKS, range.clone(), || {
                format!("the subscription of {type_name} has blanks or NUL bytes around the name")
            });
        }
        let shape = self.shapes.get(msg_id);
        if shape.flags & RowShape::UNKNOWN == 0 {
            let known = &mut self.subscriptions[shape.series as usize];
            let topic = &self.topics[shape.series as usize];
            let same_name = topic.type_name == type_name && known.multi_id == multi_id;
            known.unsubscribed = !same_name && known.unsubscribed;
            let same_format = known.format.as_ref() == self.formats.text(type_name);
            if same_name && same_format && self.formats.still_gives(type_name, &known.layout, &self.limits) {
                notes.push(&rules::SUBSCRIPTION_REPEATED, range, || {
                    format!("{} is subscribed again under id {msg_id}", topic.name)
                });
                return;
            }
            notes.push(&rules::MSG_ID_REUSED, range.clone(), || {
                format!("id {msg_id} was {}; from here it is {type_name}/{multi_id}", topic.name)
            });
        }
        if self.topics.len() >= MAX_SUBSCRIPTIONS {
            notes.push(&rules::TOO_MANY_SUBSCRIPTIONS, range.clone(), || {
                format!("the log has more than {MAX_SUBSCRIPTIONS} subscriptions: data of id {msg_id} is lost from here")
            });
            if shape.flags & RowShape::UNKNOWN == 0 {
                self.vacated.push((range.start, shape.series));
                self.shapes.put(msg_id, RowShape::VACANT);
            }
            return;
        }
        let series = u32::try_from(self.topics.len()).expect("an 'A' message has at least 7 bytes");
        let topic_name = self.names.give(&format!("{type_name}/{multi_id}"));
        let layout = self.lay_out(series, type_name);
        match &layout {
            Err(Undecodable::Missing(missing)) if missing == type_name => {
                notes.push(&rules::UNDEFINED_FORMAT, range.clone(), || {
                    format!("format {type_name} of topic {topic_name} is not defined")
                });
            }
            Err(why) => notes.push(&rules::UNDECODABLE_TOPIC, range.clone(), || {
                format!("topic {topic_name} cannot be decoded: {why}")
            }),
            Ok(_) => {}
        }
        let schema = layout.as_ref().ok().map(|layout| Arc::clone(layout.record.schema()));
        self.topics.push(Topic::new(TopicId(series), topic_name, type_name.to_owned(), schema));
        let format = self.formats.text(type_name).cloned();
        let subscription = Subscription {
            offset: range.start,
            msg_id,
            multi_id,
            layout,
            announced: range.end,
            decodable_from: range.end,
            format,
            unsubscribed: false,
            time_noted: false,
            range_noted: false,
        };
        self.shapes.set(series, type_name, &subscription);
        self.subscriptions.push(subscription);
    }

    /// Notes that the time of a row cannot be held, once per topic.
    pub(crate) fn note_range(&mut self, at: u64, series: u32, notes: &mut Diagnostics) {
        let topic = &self.topics[series as usize];
        let subscription = &mut self.subscriptions[series as usize];
        if !std::mem::replace(&mut subscription.range_noted, true) {
            notes.push(&rules::TIMESTAMP_OUT_OF_RANGE, at..at + HEADER_LEN, || {
                format!("a row of {} has a timestamp after the year 2262", topic.name)
            });
        }
    }

    /// Notes what is to be noted at a row of `shape`, once.
    pub(crate) fn note_row(&mut self, at: u64, msg_id: u16, notes: &mut Diagnostics) {
        let shape = self.shapes.slot(msg_id);
        shape.flags &= !RowShape::NOTE;
        let (time, topic) = (shape.time, &self.topics[shape.series as usize]);
        let subscription = &mut self.subscriptions[shape.series as usize];
        // A message header is enough of a range: the rows that follow are alike.
        let range = at..at + HEADER_LEN;
        if std::mem::take(&mut subscription.unsubscribed) {
            notes.push(&rules::DATA_AFTER_UNSUBSCRIBE, range.clone(), || {
                format!("{} has data after its unsubscription", topic.name)
            });
        }
        if std::mem::replace(&mut subscription.time_noted, true) {
            return;
        }
        match time {
            RowTime::None => notes.push(&rules::NO_TIMESTAMP, range, || {
                format!("{} has no timestamp: its rows have no time", topic.name)
            }),
            RowTime::Field(TimeWidth::U64Micros) => {}
            RowTime::Field(width) => notes.push(&rules::NARROW_TIMESTAMP, range, || {
                let bits = match width {
                    TimeWidth::U8Millis => 8,
                    TimeWidth::U16Micros => 16,
                    _ => 32,
                };
                format!("the timestamp of {} has {bits} bits: wrap-arounds are counted", topic.name)
            }),
        }
    }
}

impl Decode for Definitions {
    fn value(&self, topic: &Topic, payload: &[u8]) -> Result<Value> {
        Ok(self.row(topic, payload)?.value())
    }

    fn layout(&self, topic: &Topic, payload: &[u8]) -> Option<&Arc<RecordLayout>> {
        let layout = self.row_layout(topic).ok()?;
        [layout.trimmed, layout.full].contains(&payload.len()).then_some(&layout.record)
    }
}
