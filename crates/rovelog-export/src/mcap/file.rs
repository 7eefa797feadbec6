//! The file during writing: channels, messages, and the values it could not hold.

use rovelog::core::text;
use std::collections::{BTreeMap, HashMap};
use std::iter::Peekable;

use ::mcap::records::MessageHeader;
use rovelog::core::layout::Plans;
use rovelog::{AnyLog, Record, Topic, Value};

use super::chunk::Spare;
use super::encode::{Message, Tag, tag};
use super::extras::{Carried, Extra, ExtraSchema, Extras};
use super::output::{Messages, Part, Summary};
use super::types;
use crate::provenance::name_and_instance;
use crate::{ExportError, Exported, Loss, Provenance, TimeBase};

/// Counts of a topic's records, by outcome.
#[derive(Clone, Default)]
pub(super) struct Tally {
    pub(super) undecodable: u64,
    nulls: u64,
    pub(super) out_of_range: u64,
    too_deep: bool,
}

/// A message in protobuf, and the number of missing values in it.
#[derive(Default)]
pub(super) struct Encoded {
    bytes: Vec<u8>,
    nulls: u64,
}

/// The output file.
pub(super) struct File<'a> {
    log: &'a AnyLog,
    pub(super) writer: Messages<'a>,
    plans: Plans<Tag>,
    pub(super) base: TimeBase,
    package: &'static str,
    instance_key: &'static str,
    /// Channel by topic.
    channels: Vec<Option<u16>>,
    /// Channel and next sequence number of the extra messages, by topic name.
    extra: HashMap<String, (u16, u32)>,
    tallies: Vec<Tally>,
    /// By topic: the form of its records, and the name of its channel.
    pub(super) carried: Vec<Carried>,
    names: Vec<String>,
    /// Number of extra messages whose times the file cannot hold, by topic.
    unplaced: BTreeMap<String, u64>,
    messages: u64,
}

impl<'a> File<'a> {
    pub(super) fn new(
        log: &'a AnyLog,
        extras: &dyn Extras,
        spare: &'a Spare,
        push: &'a mut (dyn FnMut(Part) -> Result<(), ExportError> + 'a),
    ) -> Self {
        let topics = log.topics().len();
        Self {
            log,
            writer: Messages::new(spare, push),
            plans: Plans::default(),
            base: TimeBase::of(&**log),
            package: extras.profile(),
            instance_key: extras.instance_key(),
            channels: vec![None; topics],
            extra: HashMap::new(),
            tallies: vec![Tally::default(); topics],
            carried: log.topics().iter().map(|topic| extras.carried(topic)).collect(),
            names: log.topics().iter().map(|topic| extras.channel_name(topic)).collect(),
            unplaced: BTreeMap::new(),
            messages: 0,
        }
    }

    /// Writes what is known of the log, its source and the settings that were inferred.
    pub(super) fn facts(&mut self, provenance: &Provenance, extras: &dyn Extras) -> Result<(), ExportError> {
        let facts = provenance.facts(&**self.log).into_iter().map(|(k, v)| (k.to_owned(), v));
        self.writer.metadata("rovelog", facts.collect())?;
        let info = extras.info();
        if info.is_empty() { Ok(()) } else { self.writer.metadata("info", info) }
    }

    pub(super) fn tally(&mut self, topic: &Topic) -> &mut Tally {
        &mut self.tallies[topic.id.index()]
    }

    /// Writes the messages that do not come from records, up to a time on the log's clock; without
    /// a time, all the rest.
    pub(super) fn catch_up(
        &mut self,
        extras: &mut dyn Extras,
        extra_messages: &mut Peekable<impl Iterator<Item = Extra>>,
        until: Option<i64>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), ExportError> {
        while let Some(due) = extras.next_due(until)? {
            while let Some(extra) = extra_messages.next_if(|extra| extra.nanos <= due.nanos) {
                self.extra(&extra)?;
            }
            extras.offset().into_iter().for_each(&mut *progress);
            self.extra(&due)?;
        }
        while let Some(extra) = extra_messages.next_if(|extra| until.is_none_or(|until| extra.nanos <= until))
        {
            self.extra(&extra)?;
        }
        Ok(())
    }

    /// Returns the channel of a topic; `None` if its type cannot be written.
    fn channel(&mut self, topic: &Topic) -> Result<Option<u16>, ExportError> {
        if let Some(channel) = self.channels[topic.id.index()] {
            return Ok(Some(channel));
        }
        let mut metadata = BTreeMap::new();
        if let Some(instance) = name_and_instance(&topic.name).1 {
            metadata.insert(self.instance_key.to_owned(), instance.to_owned());
        }
        let name = &self.names[topic.id.index()];
        let channel = if self.carried[topic.id.index()] == Carried::Bytes {
            // As the specification asks: no schema, and a private encoding.
            self.writer.add_channel(0, name, &format!("x-{}", self.package), &metadata)?
        } else {
            let compiled = topic.schema.as_ref().and_then(|schema| types::compile(self.package, schema));
            let Some(compiled) = compiled else { return Ok(None) };
            let schema = self.writer.add_schema(&compiled.name, "protobuf", &compiled.descriptor)?;
            self.writer.add_channel(schema, name, "protobuf", &metadata)?
        };
        self.channels[topic.id.index()] = Some(channel);
        Ok(Some(channel))
    }

    /// Writes a record as the bytes of its message: those in `data`, or its own without a type.
    pub(super) fn record(
        &mut self,
        record: &Record<'_>,
        nanos: i64,
        data: Option<&Encoded>,
    ) -> Result<(), ExportError> {
        let Some(channel_id) = self.channel(record.topic)? else {
            let known = record.topic.schema.is_some();
            let tally = self.tally(record.topic);
            tally.too_deep |= known;
            tally.undecodable += u64::from(!known);
            return Ok(());
        };
        let Some((log_time, publish_time)) = self.times(record, nanos) else {
            self.tally(record.topic).out_of_range += 1;
            return Ok(());
        };
        let header = MessageHeader { channel_id, sequence: sequence(record), log_time, publish_time };
        self.tally(record.topic).nulls += data.map_or(0, |data| data.nulls);
        self.write(header, data.map_or(&record.payload, |data| &data.bytes))
    }

    /// Encodes a record as a message of its topic's type; `value` is it, if known.
    ///
    /// # Errors
    /// Returns an error if the record cannot be decoded.
    pub(super) fn encode(
        &mut self,
        record: &Record<'_>,
        value: Option<&Value>,
        data: &mut Encoded,
    ) -> rovelog::Result<()> {
        data.bytes.clear();
        data.nulls = 0;
        let mut message = Message::new(&mut data.bytes);
        let topic = record.topic.id;
        if self.plans.run(topic, record.layout(), &record.payload, &mut tag, &mut message) {
            return Ok(());
        }
        data.bytes.clear();
        let owned;
        let value = if let Some(value) = value {
            value
        } else {
            owned = record.value()?;
            &owned
        };
        types::encode(value, &mut data.bytes);
        data.nulls = nulls(value);
        Ok(())
    }

    pub(super) fn write(&mut self, header: MessageHeader, data: &[u8]) -> Result<(), ExportError> {
        self.messages += 1;
        self.writer.write(header, data)
    }

    /// Returns the log time and publish time of a record that was logged at `nanos`.
    pub(super) fn times(&self, record: &Record<'_>, nanos: i64) -> Option<(u64, u64)> {
        let log_time = self.time(nanos)?;
        // 0 if it has no time.
        let own = record.time.and_then(|time| self.time(time.nanos));
        Some((log_time, own.unwrap_or(log_time)))
    }

    fn time(&self, nanos: i64) -> Option<u64> {
        u64::try_from(self.base.place(nanos)?).ok()
    }

    pub(super) fn extra(&mut self, extra: &Extra) -> Result<(), ExportError> {
        let Some(log_time) = self.time(extra.nanos) else {
            *self.unplaced.entry(extra.topic.to_string()).or_default() += 1;
            return Ok(());
        };
        if !self.extra.contains_key(&*extra.topic) {
            let (name, descriptor) = match &extra.schema {
                ExtraSchema::WellKnown(kind) => (kind.name().to_owned(), kind.descriptor()),
                ExtraSchema::Own(schema) => match types::compile(self.package, schema) {
                    Some(compiled) => (compiled.name, compiled.descriptor),
                    None => return Ok(()),
                },
            };
            let schema = self.writer.add_schema(&name, "protobuf", &descriptor)?;
            let id = self.writer.add_channel(schema, &extra.topic, "protobuf", &BTreeMap::new())?;
            self.extra.insert(extra.topic.to_string(), (id, 0));
        }
        let Some(channel) = self.extra.get_mut(&*extra.topic) else { return Ok(()) };
        let (channel_id, sequence) = *channel;
        channel.1 = sequence.wrapping_add(1);
        let header = MessageHeader { channel_id, sequence, log_time, publish_time: log_time };
        self.write(header, &extra.bytes)
    }

    pub(super) fn finish(self, extras: &dyn Extras) -> Result<(Exported<()>, Summary), ExportError> {
        let summary = self.writer.finish()?;
        let mut losses = extras.losses();
        losses.extend(self.unplaced.iter().map(|(topic, count)| {
            Loss::new(topic, "", format!("MCAP cannot store the times of {}", text::count(*count, "message")))
        }));
        for (topic, tally) in self.log.topics().iter().zip(&self.tallies) {
            let mut lost = |count: u64, noun: &str, why: &str| {
                if count > 0 {
                    losses.push(Loss::new(&topic.name, "", format!("{} {why}", text::count(count, noun))));
                }
            };
            lost(tally.undecodable, "record", "cannot be decoded");
            lost(tally.out_of_range, "record", "with a time that MCAP cannot store");
            lost(tally.nulls, "missing value", "read as 0 or empty in protobuf");
            if tally.too_deep {
                losses.push(Loss::new(
                    &topic.name,
                    "",
                    "its type is nested deeper than readers of protobuf take",
                ));
            }
        }
        Ok((Exported { out: (), messages: self.messages, losses, notes: extras.notes() }, summary))
    }
}

/// Returns the sequence number of a record in its topic.
#[expect(clippy::cast_possible_truncation, reason = "a sequence number may start again")]
pub(super) fn sequence(record: &Record<'_>) -> u32 {
    record.seq as u32
}

/// Counts the missing values of a record: protobuf cannot express them.
fn nulls(value: &Value) -> u64 {
    match value {
        Value::Null => 1,
        Value::List(items) => items.iter().map(nulls).sum(),
        Value::Struct(fields) => fields.iter().map(|(_, value)| nulls(value)).sum(),
        _ => 0,
    }
}
