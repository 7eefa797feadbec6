//! The file during writing: channels, messages, and the values it could not hold.

use std::collections::{BTreeMap, HashMap};
use std::iter::Peekable;

use ::mcap::records::MessageHeader;
use rovelog::core::text;
use rovelog::{AnyLog, Payload, Record, Topic, TopicId};

use super::chunk::{Buffers, Tally};
use super::extras::{Carried, Extra, ExtraSchema, Extras};
use super::output::{Messages, Part, Summary};
use super::types;
use crate::provenance::name_and_instance;
use crate::{ExportError, Exported, Loss, Provenance, TimeBase};

/// Counts of a topic's records that are not handed on.
#[derive(Clone, Default)]
pub(super) struct LeftOut {
    pub(super) undecodable: u64,
    pub(super) out_of_range: u64,
    too_deep: bool,
}

/// The output file of a log (`'a`).
pub(super) struct File<'p, 'a> {
    log: &'a AnyLog,
    pub(super) writer: Messages<'p, 'a>,
    pub(super) base: TimeBase,
    package: &'static str,
    instance_key: &'static str,
    /// Channel by topic.
    channels: Vec<Option<u16>>,
    /// Channel and next sequence number of the extra messages, by topic name.
    extra: HashMap<String, (u16, u32)>,
    left_out: Vec<LeftOut>,
    /// By topic: the form of its records, and the name of its channel.
    pub(super) carried: Vec<Carried>,
    names: Vec<String>,
    /// Number of extra messages whose times the file cannot hold, by topic.
    unplaced: BTreeMap<String, u64>,
}

impl<'p, 'a> File<'p, 'a> {
    pub(super) fn new(
        log: &'a AnyLog,
        extras: &dyn Extras,
        buffers: &'p Buffers<'a>,
        push: &'p mut (dyn FnMut(Part<'a>) -> Result<(), ExportError> + 'p),
    ) -> Self {
        let topics = log.topics().len();
        Self {
            log,
            writer: Messages::new(buffers, push),
            base: TimeBase::of(&**log),
            package: extras.profile(),
            instance_key: extras.instance_key(),
            channels: vec![None; topics],
            extra: HashMap::new(),
            left_out: vec![LeftOut::default(); topics],
            carried: log.topics().iter().map(|topic| extras.carried(topic)).collect(),
            names: log.topics().iter().map(|topic| extras.channel_name(topic)).collect(),
            unplaced: BTreeMap::new(),
        }
    }

    /// Writes what is known of the log, its source and the settings that were inferred.
    pub(super) fn facts(&mut self, provenance: &Provenance, extras: &dyn Extras) -> Result<(), ExportError> {
        let facts = provenance.facts(&**self.log).into_iter().map(|(k, v)| (k.to_owned(), v));
        self.writer.metadata("rovelog", facts.collect())?;
        let info = extras.info();
        if info.is_empty() { Ok(()) } else { self.writer.metadata("info", info) }
    }

    pub(super) fn left_out(&mut self, topic: &Topic) -> &mut LeftOut {
        &mut self.left_out[topic.id.index()]
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

    /// Writes a record as a message of its topic's type, or as its bytes.
    pub(super) fn record(&mut self, record: Record<'a>, nanos: i64) -> Result<(), ExportError> {
        let topic = record.topic;
        let is_typed = self.carried[topic.id.index()] == Carried::Typed;
        // A topic that cannot be decoded gets no channel.
        if is_typed && self.channels[topic.id.index()].is_none() && record.value().is_err() {
            self.left_out(topic).undecodable += 1;
            return Ok(());
        }
        let Some(channel_id) = self.channel(topic)? else {
            let known = topic.schema.is_some();
            let left_out = self.left_out(topic);
            left_out.too_deep |= known;
            left_out.undecodable += u64::from(!known);
            return Ok(());
        };
        let Some((log_time, publish_time)) = self.times(&record, nanos) else {
            self.left_out(topic).out_of_range += 1;
            return Ok(());
        };
        let header = MessageHeader { channel_id, sequence: sequence(&record), log_time, publish_time };
        let batch = self.writer.batch()?;
        if is_typed {
            batch.record(header, record);
        } else {
            batch.payload(header, record.payload);
        }
        Ok(())
    }

    /// Writes a message with this content.
    pub(super) fn write(&mut self, header: MessageHeader, data: &[u8]) -> Result<(), ExportError> {
        self.writer.batch()?.message(header, data);
        Ok(())
    }

    /// Writes a message with the bytes of a record.
    pub(super) fn write_payload(
        &mut self,
        header: MessageHeader,
        payload: Payload<'a>,
    ) -> Result<(), ExportError> {
        self.writer.batch()?.payload(header, payload);
        Ok(())
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
        let (channel_id, sequence) = if let Some(channel) = self.extra.get_mut(&*extra.topic) {
            let next = *channel;
            channel.1 = channel.1.wrapping_add(1);
            next
        } else {
            let (name, descriptor) = match &extra.schema {
                ExtraSchema::WellKnown(kind) => (kind.name().to_owned(), kind.descriptor()),
                ExtraSchema::Own(schema) => match types::compile(self.package, schema) {
                    Some(compiled) => (compiled.name, compiled.descriptor),
                    None => return Ok(()),
                },
            };
            let schema = self.writer.add_schema(&name, "protobuf", &descriptor)?;
            let id = self.writer.add_channel(schema, &extra.topic, "protobuf", &BTreeMap::new())?;
            self.extra.insert(extra.topic.to_string(), (id, 1));
            (id, 0)
        };
        let header = MessageHeader { channel_id, sequence, log_time, publish_time: log_time };
        self.write(header, &extra.bytes)
    }

    /// Ends the messages. Returns what is left to report, and what the end of the file says.
    pub(super) fn finish(self, extras: &dyn Extras) -> Result<(Rest<'a>, Summary), ExportError> {
        let summary = self.writer.finish()?;
        let mut losses = extras.losses();
        losses.extend(self.unplaced.iter().map(|(topic, count)| {
            Loss::new(topic, "", format!("MCAP cannot store the times of {}", text::count(*count, "message")))
        }));
        let notes = extras.notes();
        Ok((Rest { topics: self.log.topics(), losses, left_out: self.left_out, notes }, summary))
    }
}

/// What is to be reported of an export, except what is known when all chunks are written.
pub(super) struct Rest<'a> {
    topics: &'a [Topic],
    losses: Vec<Loss>,
    left_out: Vec<LeftOut>,
    pub(super) notes: Vec<String>,
}

impl Rest<'_> {
    /// Returns what was exported: so many messages, and what chunks could not hold of each topic.
    pub(super) fn exported(self, messages: u64, tallies: &BTreeMap<TopicId, Tally>) -> Exported<()> {
        let Self { topics, mut losses, left_out, notes } = self;
        for (topic, left_out) in topics.iter().zip(&left_out) {
            let tally = tallies.get(&topic.id).copied().unwrap_or_default();
            let mut lost = |count: u64, noun: &str, why: &str| {
                if count > 0 {
                    losses.push(Loss::new(&topic.name, "", format!("{} {why}", text::count(count, noun))));
                }
            };
            lost(left_out.undecodable + tally.undecodable, "record", "cannot be decoded");
            lost(left_out.out_of_range, "record", "with a time that MCAP cannot store");
            lost(tally.nulls, "missing value", "read as 0 or empty in protobuf");
            if left_out.too_deep {
                losses.push(Loss::new(
                    &topic.name,
                    "",
                    "its type is nested deeper than readers of protobuf take",
                ));
            }
        }
        Exported { out: (), messages, losses, notes }
    }
}

/// Returns the sequence number of a record in its topic.
#[expect(clippy::cast_possible_truncation, reason = "a sequence number may start again")]
pub(super) fn sequence(record: &Record<'_>) -> u32 {
    record.seq as u32
}
