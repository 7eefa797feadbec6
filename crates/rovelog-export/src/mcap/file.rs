//! Assigns messages to channels, and counts the values that cannot be written.

use std::collections::{BTreeMap, HashMap};
use std::iter::Peekable;

use ::mcap::records::MessageHeader;
use rovelog::core::internal::text;
use rovelog::{AnyLog, Record, Topic};

use super::chunk::Buffers;
use super::encode::Encoder;
use super::extras::{Extra, ExtraSchema, Extras, RecordForm};
use super::output::{Messages, Part, Summary};
use super::types;
use crate::provenance::name_and_instance;
use crate::{ExportError, Exported, Loss, Provenance, TimeBase};

/// Losses of a topic.
#[derive(Clone, Default)]
pub(super) struct TopicLosses {
    /// Number of records that cannot be decoded.
    undecodable: u64,
    /// Number of missing values, which protobuf cannot distinguish from 0.
    nulls: u64,
    /// Number of records with a time that MCAP cannot represent.
    pub(super) out_of_range: u64,
    /// True if the type of the topic is nested too deeply for protobuf.
    too_deep: bool,
}

/// The MCAP file that is written for a log. `'a` is the lifetime of the log.
pub(super) struct File<'p, 'a> {
    log: &'a AnyLog,
    pub(super) writer: Messages<'p>,
    encoder: Encoder,
    /// Clock of the log times in the file.
    pub(super) base: TimeBase,
    /// Protobuf package of the topics' types.
    package: &'static str,
    /// Metadata key under which a channel stores the instance of its topic.
    instance_key: &'static str,
    /// Channel of each topic. `None` as long as the topic has no message.
    channels: Vec<Option<u16>>,
    /// For each topic name, the channel of the additional messages and the sequence number of the
    /// next message.
    extra: HashMap<String, (u16, u32)>,
    /// Losses of each topic.
    losses: Vec<TopicLosses>,
    /// For each topic, the form in which its records are written.
    pub(super) record_forms: Vec<RecordForm>,
    /// For each topic, the name of its channel.
    names: Vec<String>,
    /// For each topic name, the number of additional messages with a time that MCAP cannot
    /// represent.
    out_of_range_extras: BTreeMap<String, u64>,
}

impl<'p, 'a> File<'p, 'a> {
    pub(super) fn new(
        log: &'a AnyLog,
        extras: &dyn Extras,
        buffers: &'p Buffers,
        push: &'p mut (dyn FnMut(Part) -> Result<(), ExportError> + 'p),
    ) -> Self {
        let topics = log.topics().len();
        Self {
            log,
            writer: Messages::new(buffers, push),
            encoder: Encoder::default(),
            base: TimeBase::of(&**log),
            package: extras.profile(),
            instance_key: extras.instance_key(),
            channels: vec![None; topics],
            extra: HashMap::new(),
            losses: vec![TopicLosses::default(); topics],
            record_forms: log.topics().iter().map(|topic| extras.record_form(topic)).collect(),
            names: log.topics().iter().map(|topic| extras.channel_name(topic)).collect(),
            out_of_range_extras: BTreeMap::new(),
        }
    }

    /// Writes metadata records with facts about the log, its source file, and settings that were
    /// inferred from the log.
    pub(super) fn facts(&mut self, provenance: &Provenance, extras: &dyn Extras) -> Result<(), ExportError> {
        let facts = provenance.facts(&**self.log).into_iter().map(|(k, v)| (k.to_owned(), v));
        self.writer.metadata("rovelog", facts.collect())?;
        let info = extras.info();
        if info.is_empty() { Ok(()) } else { self.writer.metadata("info", info) }
    }

    pub(super) fn losses(&mut self, topic: &Topic) -> &mut TopicLosses {
        &mut self.losses[topic.id.index()]
    }

    /// Writes the additional messages that do not come from single records. `until` is a time on
    /// the log's clock, up to which messages are written. If it is `None`, all remaining messages
    /// are written.
    pub(super) fn catch_up(
        &mut self,
        extras: &mut dyn Extras,
        extra_messages: &mut Peekable<impl Iterator<Item = Extra>>,
        until: Option<i64>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), ExportError> {
        while let Some(due) = extras.next_message(until)? {
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

    /// Returns the channel of a topic. Returns `None` if the topic's type cannot be written.
    fn channel(&mut self, topic: &Topic) -> Result<Option<u16>, ExportError> {
        if let Some(channel) = self.channels[topic.id.index()] {
            return Ok(Some(channel));
        }
        let mut metadata = BTreeMap::new();
        if let Some(instance) = name_and_instance(&topic.name).1 {
            metadata.insert(self.instance_key.to_owned(), instance.to_owned());
        }
        let name = &self.names[topic.id.index()];
        let channel = if self.record_forms[topic.id.index()] == RecordForm::Bytes {
            // The MCAP specification requires that the names of private encodings start with `x-`.
            // The schema number 0 means that the channel has no schema.
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

    /// Writes a record as a message of its topic's type, or as bytes if the type is unknown.
    pub(super) fn record(&mut self, record: &Record<'_>, nanos: i64) -> Result<(), ExportError> {
        let topic = record.topic;
        let is_typed = self.record_forms[topic.id.index()] == RecordForm::Typed;
        // A topic gets a channel only if one of its records can be decoded. Otherwise, viewers
        // would list an empty topic.
        if is_typed && self.channels[topic.id.index()].is_none() && record.fields().is_err() {
            self.losses(topic).undecodable += 1;
            return Ok(());
        }
        let Some(channel_id) = self.channel(topic)? else {
            let known = topic.schema.is_some();
            let losses = self.losses(topic);
            losses.too_deep |= known;
            losses.undecodable += u64::from(!known);
            return Ok(());
        };
        let Some((log_time, publish_time)) = self.times(record, nanos) else {
            self.losses(topic).out_of_range += 1;
            return Ok(());
        };
        let header = MessageHeader { channel_id, sequence: sequence(record), log_time, publish_time };
        let chunk = self.writer.chunk()?;
        if !is_typed {
            chunk.message(&header, &record.payload);
            return Ok(());
        }
        let (encoder, losses) = (&mut self.encoder, &mut self.losses[topic.id.index()]);
        chunk.message_of(&header, record.payload.len(), |out| {
            let result = encoder.encode(record, out);
            losses.nulls += result.nulls;
            losses.undecodable += u64::from(!result.is_complete);
            result.is_complete
        });
        Ok(())
    }

    /// Writes a message whose content is already encoded.
    pub(super) fn write(&mut self, header: &MessageHeader, data: &[u8]) -> Result<(), ExportError> {
        self.writer.chunk()?.message(header, data);
        Ok(())
    }

    /// Returns the log time and publish time of a record. `nanos` is the time at which the record
    /// was logged, in nanoseconds of the log's clock. Returns `None` if MCAP cannot represent the
    /// log time.
    pub(super) fn times(&self, record: &Record<'_>, nanos: i64) -> Option<(u64, u64)> {
        let log_time = self.time(nanos)?;
        // If the record has no time, the log time is also used as the publish time.
        let own = record.time.and_then(|time| self.time(time.nanos));
        Some((log_time, own.unwrap_or(log_time)))
    }

    /// Converts a time to the clock of the MCAP file. Returns `None` for times before 1970, because
    /// MCAP times are unsigned.
    fn time(&self, nanos: i64) -> Option<u64> {
        u64::try_from(self.base.place(nanos)?).ok()
    }

    /// Writes an additional message. The first message of a topic also adds the channel.
    pub(super) fn extra(&mut self, extra: &Extra) -> Result<(), ExportError> {
        let Some(log_time) = self.time(extra.nanos) else {
            *self.out_of_range_extras.entry(extra.topic.to_string()).or_default() += 1;
            return Ok(());
        };
        let (channel_id, sequence) = if let Some(channel) = self.extra.get_mut(&*extra.topic) {
            let next = *channel;
            channel.1 = channel.1.wrapping_add(1);
            next
        } else {
            let (name, descriptor) = match &extra.schema {
                ExtraSchema::WellKnown(kind) => (kind.name(), kind.descriptor()),
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
        self.write(&header, &extra.bytes)
    }

    /// Ends the last chunk. Returns the losses and notes, and the data for the summary at the end of
    /// the file.
    pub(super) fn finish(self, extras: &dyn Extras) -> Result<(Exported, Summary), ExportError> {
        let summary = self.writer.finish()?;
        let mut losses = extras.losses();
        losses.extend(self.out_of_range_extras.iter().map(|(topic, count)| {
            Loss::new(topic, "", format!("MCAP cannot store the times of {}", text::count(*count, "message")))
        }));
        for (topic, of_topic) in self.log.topics().iter().zip(self.losses) {
            for (count, noun, why) in [
                (of_topic.undecodable, "record", "cannot be decoded"),
                (of_topic.out_of_range, "record", "left out, because MCAP cannot store the time"),
                (of_topic.nulls, "missing value", "written as 0 or empty in protobuf"),
            ] {
                losses.extend(Loss::counted(&topic.name, count, noun, why));
            }
            if of_topic.too_deep {
                losses.push(Loss::new(
                    &topic.name,
                    "",
                    "its type is nested deeper than protobuf readers allow",
                ));
            }
        }
        Ok((Exported { messages: 0, losses, notes: extras.notes() }, summary))
    }
}

/// Returns the sequence number of a record within its topic.
#[expect(clippy::cast_possible_truncation, reason = "sequence numbers may wrap around")]
pub(super) fn sequence(record: &Record<'_>) -> u32 {
    record.seq as u32
}
