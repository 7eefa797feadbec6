//! The formats, subscriptions and topics of a log, collected while the log is read.

use std::collections::HashMap;
use std::sync::Arc;

use rovelog_core::internal::layout::{Layout as RecordLayout, TextDecoding};
use rovelog_core::internal::names::UniqueNames;
use rovelog_core::internal::wire::U64Le;
use rovelog_core::{Decode, Diagnostics, Fields, Limits, Result, Topic, TopicId};

use crate::diagnostics as rules;
use crate::error::UlogError;
use crate::layout::{Defined, Formats, Layout, TimeWidth, Undecodable};
use crate::row::Row;
use crate::schema::FormatText;
use crate::utc;
use crate::wire::{self, HEADER_LEN, Message};

/// A subscription, which creates a topic. The topic uses the latest definition of its format at
/// this point of the log.
#[derive(Debug)]
pub struct Subscription {
    /// Offset of the 'A' message that contains the subscription.
    pub offset: u64,
    /// Id of the topic in data messages.
    pub msg_id: u16,
    /// Number of the topic's instance. A vehicle with two sensors of a type logs instances 0 and 1.
    pub multi_id: u8,
    /// Layout of the topic's rows, or the reason why they cannot be decoded.
    pub(crate) layout: Result<Arc<Layout>, Undecodable>,
    /// Offset from which rows of the topic can be decoded, if the format was defined after the
    /// subscription.
    pub(crate) decodable_from: Option<u64>,
    /// Definition text of the topic's format, or `None` if the format is not defined.
    pub format: Option<Arc<str>>,
    /// True if the subscription was ended by an 'R' message.
    pub unsubscribed: bool,
    /// True if the missing or narrow timestamp of the topic was already reported.
    time_noted: bool,
    /// True if a timestamp after the year 2262 was already reported for the topic.
    range_noted: bool,
}

/// The properties of a topic that the scanner needs to validate a row and to compute its time.
///
/// The structure has 12 bytes, so the shapes of all topics fit into the processor's cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowShape {
    /// Number of the topic, which is the index of the subscription.
    pub(crate) series: u32,
    /// Size of a row in bytes, including all padding.
    pub(crate) full_len: u16,
    /// Size in bytes of a row without the padding at its end.
    pub(crate) trimmed_len: u16,
    /// Offset of the timestamp from the start of the row.
    pub(crate) time_at: u16,
    /// Type of the timestamp in a row, or `None` if rows have no timestamp.
    pub(crate) time: Option<TimeWidth>,
    /// Combination of the flag constants of this type, such as [`NOTE`](Self::NOTE). It is 0 for
    /// the rows of most topics.
    pub(crate) flags: u8,
}

impl RowShape {
    /// Flag: the message id is not subscribed.
    pub(crate) const UNKNOWN: u8 = 1;
    /// Flag: the subscription has no usable layout, so rows cannot be decoded.
    pub(crate) const UNDECODABLE: u8 = 2;
    /// Flag: a diagnostic must be reported at the next row.
    pub(crate) const NOTE: u8 = 4;
    /// Flag: the rows contain UTC from a GPS receiver.
    pub(crate) const UTC: u8 = 8;
    /// Flag: the rows have no timestamp, or a timestamp of fewer than 64 bits.
    pub(crate) const SPECIAL_TIME: u8 = 16;

    /// The shape that is stored for message ids without a subscription.
    pub(crate) const VACANT: Self =
        Self { series: 0, full_len: 0, trimmed_len: 0, time_at: 0, time: None, flags: Self::UNKNOWN };

    /// Returns the properties of the rows of a subscription. `series` is the number of the topic.
    pub(crate) fn of(series: u32, type_name: &str, subscription: &Subscription) -> Self {
        let Ok(layout) = &subscription.layout else {
            return Self { series, flags: Self::UNDECODABLE, ..Self::VACANT };
        };
        let trimmed_len = u16::try_from(layout.trimmed_len).expect("a layout fits a message");
        let (time_at, time) = match layout.timestamp {
            Some(field) => (u16::try_from(field.offset).expect("within the row"), Some(field.width)),
            None => (0, None),
        };
        let mut flags = 0;
        if time != Some(TimeWidth::U64Micros) {
            flags |= Self::SPECIAL_TIME | Self::NOTE;
        }
        if utc::GpsFields::of(type_name, &layout.record).is_some() {
            flags |= Self::UTC;
        }
        // With all padding, a row may be longer than a message can be. Rows of this size never
        // occur in a file, so the trimmed size is used instead.
        let full_len = u16::try_from(layout.full_len).unwrap_or(trimmed_len);
        Self { series, full_len, trimmed_len, time_at, time, flags }
    }

    /// Returns `true` if rows of the topic can be decoded.
    pub(crate) fn usable(self) -> bool {
        self.flags & (Self::UNKNOWN | Self::UNDECODABLE) == 0
    }

    /// Returns `true` if the timestamp of the rows has fewer than 64 bits.
    pub(crate) fn is_narrow(self) -> bool {
        matches!(self.time, Some(width) if width != TimeWidth::U64Micros)
    }

    /// Returns the timestamp of a row in microseconds, or `None` if the topic has no 64-bit
    /// timestamp.
    pub(crate) fn plain_time(self, row: &[u8]) -> Option<u64> {
        if self.time != Some(TimeWidth::U64Micros) {
            return None;
        }
        wire::number::<U64Le>(row, self.time_at.into()).map(U64Le::get)
    }

    /// Returns `true` if a row of the topic may have `row_len` bytes. Only the full and the trimmed
    /// size are valid (rules D9 and D11 of docs/formats/ulog.md).
    pub(crate) fn fits(self, row_len: usize) -> bool {
        row_len == usize::from(self.trimmed_len) || row_len == usize::from(self.full_len)
    }
}

/// Row shapes of the subscribed topics at one offset of the log, by message id.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shapes(Vec<RowShape>);

impl Shapes {
    /// Returns the row shape for a message id, or [`RowShape::VACANT`] if the id is not subscribed.
    #[inline]
    pub(crate) fn get(&self, msg_id: u16) -> RowShape {
        self.0.get(usize::from(msg_id)).copied().unwrap_or(RowShape::VACANT)
    }

    /// Returns a reference to the row shape for a message id. Returns `None` if neither this id nor
    /// a larger id was subscribed.
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

    /// Stores the row shape of a subscription under its message id.
    pub(crate) fn set(&mut self, series: u32, type_name: &str, subscription: &Subscription) {
        *self.slot(subscription.msg_id) = RowShape::of(series, type_name, subscription);
    }
}

/// Maximum number of subscriptions in a log.
///
/// The specification says: "The same `msg_id` must not be used twice", and there are 65 536 ids.
/// Twice as many subscriptions are accepted, because some logs reuse ids (rule D38 of
/// docs/formats/ulog.md). Without a limit, a hostile log could subscribe one id millions of times.
pub(crate) const MAX_SUBSCRIPTIONS: usize = 1 << 17;

/// Formats, subscriptions and topics of the part of the log that has been read.
#[derive(Debug, Default)]
pub struct Definitions {
    pub(crate) formats: Formats,
    pub(crate) shapes: Shapes,
    pub(crate) subscriptions: Vec<Subscription>,
    pub(crate) topics: Vec<Topic>,
    limits: Limits,
    /// Names of the topics. If a name occurs again, a number is added to it, such as `t/0#2`.
    names: UniqueNames,
    /// For the name of each missing type, the numbers of the topics that need the type.
    waiting: HashMap<String, Vec<u32>>,
    /// Offsets at which message ids became unsubscribed, each with the number of the topic. An id
    /// becomes unsubscribed if another log starts in the file, or if the log has too many
    /// subscriptions.
    pub(crate) vacated: Vec<(u64, u32)>,
    /// True if the data section of the log has started.
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

    /// Starts another log in the same file, whose header is at the offset `at`. All message ids are
    /// unsubscribed until the new log subscribes them.
    pub(crate) fn restart(&mut self, at: u64) {
        let shapes = std::mem::take(&mut self.shapes);
        let is_known = |shape: &&RowShape| shape.flags & RowShape::UNKNOWN == 0;
        self.vacated.extend(shapes.0.iter().filter(is_known).map(|shape| (at, shape.series)));
        self.formats.restart();
        self.waiting.clear();
        self.in_data = false;
    }

    /// Computes and stores the layout of the format `name` before a subscription uses it. Lookahead
    /// has only a shared reference to the definitions, so it cannot store the layout.
    pub(crate) fn prepare(&mut self, name: &str) {
        // The error is ignored here, because it is reported when the topic is subscribed.
        let _ = self.formats.layout(name, &self.limits);
    }

    /// Returns the subscriptions in file order. Each subscription belongs to the topic with the
    /// same index.
    pub fn subscriptions(&self) -> &[Subscription] {
        &self.subscriptions
    }

    /// Returns the layout of a topic's rows.
    ///
    /// # Errors
    /// Returns an error if the topic cannot be decoded or belongs to another log.
    pub fn layout(&self, topic: &Topic) -> Result<&RecordLayout, UlogError> {
        Ok(&self.row_layout(topic)?.record)
    }

    /// Returns the layout of a topic's rows, including the properties that only ULog needs, such as
    /// the type of the timestamp.
    pub(crate) fn row_layout(&self, topic: &Topic) -> Result<&Layout, UlogError> {
        if !topic.is_element_of(&self.topics) {
            return Err(UlogError::NoSuchTopic { topic: topic.name.clone() });
        }
        let undecodable =
            |why: &Undecodable| UlogError::Undecodable { topic: topic.name.clone(), why: why.to_string() };
        self.subscriptions[topic.id.index()].layout.as_deref().map_err(undecodable)
    }

    /// Returns a view of a row of `topic` that provides access to its fields.
    ///
    /// # Errors
    /// Returns an error if the topic cannot be decoded or belongs to another log, or if the size of
    /// the payload does not match the format.
    pub fn row<'a>(&'a self, topic: &Topic, payload: &'a [u8]) -> Result<Row<'a>, UlogError> {
        Ok(Row::new(&self.sized_layout(topic, payload)?.record, payload))
    }

    /// Returns the layout of `topic` after checking the size of a row.
    #[inline]
    fn sized_layout(&self, topic: &Topic, payload: &[u8]) -> Result<&Layout, UlogError> {
        let layout = self.row_layout(topic)?;
        if payload.len() != layout.trimmed_len && payload.len() != layout.full_len {
            let (trimmed, full) = (layout.trimmed_len, layout.full_len);
            return Err(UlogError::RowSize { topic: topic.name.clone(), got: payload.len(), trimmed, full });
        }
        Ok(layout)
    }

    /// Updates the definitions with a valid message. Deviations from the specification are added to
    /// `notes`.
    pub(crate) fn apply(&mut self, at: u64, end: u64, message: &Message<'_>, notes: &mut Diagnostics) {
        self.in_data |= message.is_data();
        match *message {
            Message::Format(wire::Format { format }) => self.define(at, end, format, notes),
            Message::Info(info) => self.formats.detect_px4(info),
            Message::Subscription(subscription) => self.subscribe(at..end, subscription, notes),
            Message::Unsubscription(wire::Unsubscription { msg_id }) => {
                let shape = self.shapes.get(msg_id);
                if shape.usable() {
                    self.shapes.slot(msg_id).flags |= RowShape::NOTE;
                    self.subscriptions[shape.series as usize].unsubscribed = true;
                }
            }
            _ => {}
        }
    }

    /// Adds the format in `payload`, and computes the layouts of the topics that were waiting for
    /// it.
    fn define(&mut self, at: u64, end: u64, payload: &[u8], notes: &mut Diagnostics) {
        let Some(format) = FormatText::parse(payload) else { return };
        let name = format.name;
        if self.in_data {
            notes.push(&rules::FORMAT_IN_DATA_SECTION, at..end, || {
                format!(
                    "format {name} is defined inside the data section instead of before it; the format is \
                     used"
                )
            });
        }
        let defined = self.formats.define(&format, payload);
        if defined != Defined::Repeated && format.unusual_names().next().is_some() {
            notes.push(&rules::UNUSUAL_NAME, at..end, || {
                let names: Vec<_> = format.unusual_names().map(|name| format!("'{name}'")).collect();
                // A format can have thousands of fields, so the message contains at most eight
                // names.
                let more = names.len().saturating_sub(8);
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                let names = names[..names.len().min(8)].join(", ");
                format!("format {name} has names with characters that PX4 does not use: {names}{more}")
            });
        }
        if defined != Defined::Repeated && !format.has_canonical_blanks() {
            notes.push(&rules::EXTRA_BLANKS, at..end, || {
                let fields: Vec<_> = format.blank_fields().collect();
                match fields[..] {
                    [] => format!(
                        "format {name} has blanks or NUL bytes around its name or at its end, which are \
                         ignored"
                    ),
                    [only] => format!("format {name} has extra blanks at field {only}, which are ignored"),
                    [first, ..] => {
                        format!(
                            "format {name} has extra blanks at {} fields, which are ignored; the first is \
                             {first}",
                            fields.len()
                        )
                    }
                }
            });
        }
        match defined {
            Defined::New => {}
            Defined::Repeated => {
                notes.push(&rules::FORMAT_REPEATED, at..end, || {
                    format!("format {name} is defined twice in the same way; this does not affect the data")
                });
                return;
            }
            Defined::Redefined => notes.push(&rules::FORMAT_REDEFINED, at..end, || {
                format!(
                    "format {name} is defined again with other fields; topics that are already subscribed \
                     keep the old fields"
                )
            }),
        }
        for series in self.waiting.remove(name).unwrap_or_default() {
            let layout = self.lay_out(series, &self.topics[series as usize].type_name.clone());
            let subscription = &mut self.subscriptions[series as usize];
            subscription.layout = layout;
            subscription.decodable_from = Some(end);
            subscription.format = self.formats.text(&self.topics[series as usize].type_name).cloned();
            self.topics[series as usize].schema =
                subscription.layout.as_ref().ok().map(|layout| Arc::clone(layout.record.schema()));
            // Another topic may have been subscribed under the same id in the meantime.
            if self.shapes.get(subscription.msg_id).series == series {
                self.shapes.set(series, &self.topics[series as usize].type_name, subscription);
            }
        }
    }

    /// Returns the layout for the subscription of topic `series`. If a type is missing, the topic
    /// is added to the waiting list, because the type may still be defined.
    fn lay_out(&mut self, series: u32, name: &str) -> Result<Arc<Layout>, Undecodable> {
        let layout = self.formats.layout(name, &self.limits);
        if let Err(Undecodable::Missing(missing)) = &layout {
            self.waiting.entry(missing.clone()).or_default().push(series);
        }
        layout
    }

    /// Creates a topic for a subscription, unless the subscription repeats an earlier one.
    fn subscribe(
        &mut self,
        range: std::ops::Range<u64>,
        subscription: wire::Subscription<'_>,
        notes: &mut Diagnostics,
    ) {
        // This subscription was validated, so its name is valid.
        let Some(type_name) = subscription.name() else { return };
        let wire::Subscription { multi_id, msg_id, message_name } = subscription;
        if message_name.len() != type_name.len() {
            notes.push(&rules::EXTRA_BLANKS, range.clone(), || {
                format!(
                    "the subscription of {type_name} has blanks or NUL bytes around this name, which are \
                     ignored"
                )
            });
        }
        let shape = self.shapes.get(msg_id);
        let is_known = shape.flags & RowShape::UNKNOWN == 0;
        if is_known && self.report_reuse(&range, shape.series, (type_name, multi_id), msg_id, notes) {
            return;
        }
        if self.topics.len() >= MAX_SUBSCRIPTIONS {
            notes.push(&rules::TOO_MANY_SUBSCRIPTIONS, range.clone(), || {
                format!(
                    "the log has more than {MAX_SUBSCRIPTIONS} subscriptions, so data with id {msg_id} is \
                     lost from here on"
                )
            });
            if is_known {
                self.vacated.push((range.start, shape.series));
                self.shapes.put(msg_id, RowShape::VACANT);
            }
            return;
        }
        let series = u32::try_from(self.topics.len()).expect("an 'A' message has at least 7 bytes");
        let topic_name = self.names.assign(&format!("{type_name}/{multi_id}"));
        let layout = self.lay_out(series, type_name);
        match &layout {
            Err(Undecodable::Missing(missing)) if missing == type_name => {
                notes.push(&rules::UNDEFINED_FORMAT, range.clone(), || {
                    format!(
                        "topic {topic_name} cannot be decoded, because its format {type_name} is not defined"
                    )
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
            decodable_from: None,
            format,
            unsubscribed: false,
            time_noted: false,
            range_noted: false,
        };
        self.shapes.set(series, type_name, &subscription);
        self.subscriptions.push(subscription);
    }

    /// Reports that an id is subscribed again, for the format and instance `name`. Returns true if the
    /// subscription repeats that of topic `series`, as some writers do. The topic then continues, but
    /// only if no type that the topic uses was redefined (rules D18 and D19 of
    /// docs/formats/ulog.md).
    fn report_reuse(
        &mut self,
        range: &std::ops::Range<u64>,
        series: u32,
        name: (&str, u8),
        msg_id: u16,
        notes: &mut Diagnostics,
    ) -> bool {
        let (type_name, multi_id) = name;
        let known = &mut self.subscriptions[series as usize];
        let topic = &self.topics[series as usize];
        let same_name = topic.type_name == type_name && known.multi_id == multi_id;
        // If the same topic is subscribed again after an 'R' message, its rows are not reported as
        // data after an unsubscription.
        known.unsubscribed = !same_name && known.unsubscribed;
        let same_format = known.format.as_ref() == self.formats.text(type_name);
        if same_name && same_format && self.formats.has_same_layout(type_name, &known.layout, &self.limits) {
            notes.push(&rules::SUBSCRIPTION_REPEATED, range.clone(), || {
                format!(
                    "topic {} is subscribed again with the same id {msg_id}; its records stay in one topic",
                    topic.name
                )
            });
            return true;
        }
        notes.push(&rules::MSG_ID_REUSED, range.clone(), || {
            format!(
                "id {msg_id} was used for topic {}, but data after this subscription belongs to \
                 {type_name}/{multi_id}",
                topic.name
            )
        });
        false
    }

    /// Reports a timestamp after the year 2262. Only the first such timestamp of a topic is
    /// reported.
    pub(crate) fn note_range(&mut self, at: u64, series: u32, notes: &mut Diagnostics) {
        let topic = &self.topics[series as usize];
        let subscription = &mut self.subscriptions[series as usize];
        if !std::mem::replace(&mut subscription.range_noted, true) {
            notes.push(&rules::TIMESTAMP_OUT_OF_RANGE, at..at + HEADER_LEN, || {
                let name = &topic.name;
                format!("a record of {name} has no time, because its timestamp is after the year 2262")
            });
        }
    }

    /// Reports the deviations of a topic when its next row is found. A topic without rows gets no
    /// diagnostic.
    pub(crate) fn note_row(&mut self, at: u64, msg_id: u16, notes: &mut Diagnostics) {
        let shape = self.shapes.slot(msg_id);
        shape.flags &= !RowShape::NOTE;
        let (time, topic) = (shape.time, &self.topics[shape.series as usize]);
        let subscription = &mut self.subscriptions[shape.series as usize];
        // The diagnostic applies to all rows of the topic, which may be anywhere in the file. Its
        // range covers only the header of this message.
        let range = at..at + HEADER_LEN;
        if std::mem::take(&mut subscription.unsubscribed) {
            notes.push(&rules::DATA_AFTER_UNSUBSCRIBE, range.clone(), || {
                format!("topic {} has data after it was unsubscribed; this data is read", topic.name)
            });
        }
        if std::mem::replace(&mut subscription.time_noted, true) {
            return;
        }
        match time {
            None => notes.push(&rules::NO_TIMESTAMP, range, || {
                format!("topic {} has no timestamp field, so its records have no time", topic.name)
            }),
            Some(TimeWidth::U64Micros) => {}
            Some(width) => notes.push(&rules::NARROW_TIMESTAMP, range, || {
                let bits = match width {
                    TimeWidth::U8Millis => 8,
                    TimeWidth::U16Micros => 16,
                    _ => 32,
                };
                format!(
                    "the timestamp of {} has only {bits} bits; the full time is computed by counting \
                     overflows",
                    topic.name
                )
            }),
        }
    }
}

impl Decode for Definitions {
    fn fields<'a>(&'a self, topic: &Topic, payload: &'a [u8]) -> Result<Fields<'a>> {
        Ok(Fields::new(&self.sized_layout(topic, payload)?.record, payload))
    }
}
