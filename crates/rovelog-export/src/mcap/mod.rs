//! MCAP: all topics in one file, for Foxglove, Lichtblick, Rerun and PlotJuggler.
//!
//! Messages are protobuf with the types of the log, except those of ROS 1, which keep their own bytes. What
//! viewers draw by themselves comes beside: positions as `foxglove.LocationFix`, console lines as
//! `foxglove.Log`, poses as `foxglove.PoseInFrame` and `foxglove.FrameTransform`, what sensors send as
//! `foxglove.PointCloud`, `LaserScan` and images. What a format adds is in one place, its implementation of
//! `Extras`.

mod foxglove;
mod plain;
mod proto;
mod px4;
mod rld;
mod ros;
mod types;
mod vel;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::iter::Peekable;
use std::sync::Arc;

use ::mcap::records::MessageHeader;
use ::mcap::write::{Metadata, NoSeek};
use ::mcap::{Compression, WriteOptions, Writer};
use rovelog::vel_format::velodyne::{Calibration, Model, PointOptions};
use rovelog::{AnyLog, Record, Select, Topic, Value};

use self::foxglove::WellKnown;
use crate::provenance::name_and_instance;
use crate::{ExportError, Exported, Loss, Provenance, TimeBase};

/// How MCAP is written.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct McapOptions {
    /// Also write what viewers draw by themselves.
    pub typed: bool,
    /// Leave poses in the axes of the vehicle (north, east, down) instead of those of viewers (east, north, up).
    pub keep_ned: bool,
    /// VEL: also write packets, ranges and images as they lie in the log, and what is of unknown types.
    pub raw: bool,
    /// RLD: every sample at any rate, instead of an envelope above 1000 in a second.
    pub full: bool,
    /// RLD: every sample, so many in a message as lists; a message never reaches over a gap.
    pub batch: Option<u32>,
    /// What records of ROS bags become.
    pub ros: RosForm,
    /// VEL: what the log does not tell of its Velodyne.
    pub velodyne: VelodyneOptions,
}

/// How clouds are made of a Velodyne's packets.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct VelodyneOptions {
    /// The model, where the packets do not tell it.
    pub model: Option<Model>,
    /// The calibration of an HDL-64E, where the log does not hold it.
    pub calibration: Option<Calibration>,
    /// How points are made.
    pub points: PointOptions,
}

/// What records of ROS bags become.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RosForm {
    /// What they are.
    #[default]
    Recorded,
    /// The same bytes; types that were renamed since, and are the same, have their names of today.
    Modernized,
    /// Messages of ROS 2, and nothing but those.
    Ros2,
}

impl Default for McapOptions {
    fn default() -> Self {
        Self {
            typed: true,
            keep_ned: false,
            raw: false,
            full: false,
            batch: None,
            ros: RosForm::default(),
            velodyne: VelodyneOptions::default(),
        }
    }
}

/// A message beside those of the log's own topics.
struct Extra {
    /// When, on the log's clock.
    nanos: i64,
    topic: Cow<'static, str>,
    schema: ExtraSchema,
    bytes: Vec<u8>,
}

enum ExtraSchema {
    WellKnown(WellKnown),
    /// A type of the format's package.
    Own(Arc<rovelog::Schema>),
}

/// How the records of a topic stand in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carried {
    /// As messages of the topic's type.
    Typed,
    /// As bytes of which nothing is known: a channel without a schema.
    Bytes,
    /// Not by themselves.
    Otherwise,
}

/// What a format adds to its topics.
trait Extras {
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

/// Writes the selected records, and what belongs to them. `out` comes back complete.
///
/// # Errors
/// Where the output refuses, or the log cannot be read.
pub fn write<W: Write>(
    log: &AnyLog,
    select: &Select,
    options: &McapOptions,
    provenance: &Provenance,
    out: W,
    progress: &mut dyn FnMut(u64),
) -> Result<Exported<W>, ExportError> {
    let mut bag = if let AnyLog::Rosbag(bag) = log { Some(ros::Ros::new(bag, options.ros)) } else { None };
    let mut extras: Box<dyn Extras + '_> = match log {
        AnyLog::Ulog(reader) => Box::new(px4::Px4::new(reader, options)?),
        AnyLog::Vel(reader) => Box::new(vel::Vel::new(reader, select, options)),
        AnyLog::Rld(reader) => Box::new(rld::Rld::new(reader, select, options)?),
        _ => Box::new(plain::Plain::new(log, options)),
    };
    let extras = &mut *extras;
    let mut file = File::create(log, extras, out)?;
    file.metadata("rovelog", provenance.facts(&**log).into_iter().map(|(k, v)| (k.to_owned(), v)).collect())?;
    let info = extras.info();
    if !info.is_empty() {
        file.metadata("info", info)?;
    }
    let mut beside = extras.beside();
    beside.retain(|extra| select.keeps_time(extra.nanos));
    beside.sort_by_key(|extra| extra.nanos);
    let mut beside = beside.into_iter().peekable();
    let (mut now, mut value_bytes, mut more) = (None, Vec::new(), Vec::new());
    let records = extras.wants_records().then(|| log.records(select));
    for record in records.into_iter().flatten() {
        let record = record?;
        progress(record.offset);
        // A record without a time, or with time 0, stands where it was written.
        let own = record.time.map(|time| time.nanos).filter(|nanos| *nanos != 0);
        now = own.or(now);
        let nanos = now.unwrap_or(0);
        file.catch_up(extras, &mut beside, Some(nanos), progress)?;
        if let Some(bag) = &mut bag {
            match file.times(&record, nanos) {
                Some(times) => bag.record(&mut file, &record, times)?,
                None => file.tally(record.topic).out_of_range += 1,
            }
            continue;
        }
        let value = match file.carried[record.topic.id.index()] {
            Carried::Typed => {
                let Ok(value) = record.value() else {
                    file.tally(record.topic).undecodable += 1;
                    continue;
                };
                Some(value)
            }
            Carried::Bytes | Carried::Otherwise => None,
        };
        value_bytes.clear();
        file.record(&record, value.as_ref(), nanos, &mut value_bytes)?;
        if options.typed {
            let at = file.base.place(nanos).unwrap_or(nanos);
            extras.on_record(&record, value.as_ref(), at, &mut more);
            for mut extra in more.drain(..) {
                extra.nanos = nanos;
                file.extra(&extra)?;
            }
        }
    }
    file.catch_up(extras, &mut beside, None, progress)?;
    let mut done = file.finish(extras)?;
    let (losses, notes) = bag.map(ros::Ros::outcome).unwrap_or_default();
    done.losses.extend(losses);
    done.notes.extend(notes);
    Ok(done)
}

/// What became of the records of a topic.
#[derive(Clone, Default)]
struct Tally {
    undecodable: u64,
    nulls: u64,
    out_of_range: u64,
    too_deep: bool,
}

struct File<'a, W: Write> {
    log: &'a AnyLog,
    writer: Writer<NoSeek<W>>,
    base: TimeBase,
    package: &'static str,
    instance_key: &'static str,
    /// By topic: its channel.
    channels: Vec<Option<u16>>,
    /// By topic name: the channel and its next number.
    beside: HashMap<String, (u16, u32)>,
    tallies: Vec<Tally>,
    /// By topic: how its records stand in the file, and the name of its channel.
    carried: Vec<Carried>,
    names: Vec<String>,
    /// Messages beside the records whose times the file cannot hold, by topic.
    unplaced: BTreeMap<String, u64>,
    messages: u64,
}

impl<'a, W: Write> File<'a, W> {
    fn create(log: &'a AnyLog, extras: &dyn Extras, out: W) -> Result<Self, ExportError> {
        let writer = WriteOptions::new()
            .compression(Some(Compression::Zstd))
            .compression_threads(0)
            .chunk_size(Some(1 << 20))
            .profile(extras.profile())
            .library(concat!("rovelog ", env!("CARGO_PKG_VERSION")))
            .disable_seeking(true)
            .create(NoSeek::new(out))?;
        let topics = log.topics().len();
        Ok(Self {
            log,
            writer,
            base: TimeBase::of(&**log),
            package: extras.profile(),
            instance_key: extras.instance_key(),
            channels: vec![None; topics],
            beside: HashMap::new(),
            tallies: vec![Tally::default(); topics],
            carried: log.topics().iter().map(|topic| extras.carried(topic)).collect(),
            names: log.topics().iter().map(|topic| extras.channel_name(topic)).collect(),
            unplaced: BTreeMap::new(),
            messages: 0,
        })
    }

    fn metadata(&mut self, name: &str, metadata: BTreeMap<String, String>) -> Result<(), ExportError> {
        Ok(self.writer.write_metadata(&Metadata { name: name.to_owned(), metadata })?)
    }

    fn tally(&mut self, topic: &Topic) -> &mut Tally {
        &mut self.tallies[topic.id.index()]
    }

    /// Writes what does not come from records, up to a time on the log's clock; all that is left without one.
    fn catch_up(
        &mut self,
        extras: &mut dyn Extras,
        beside: &mut Peekable<impl Iterator<Item = Extra>>,
        until: Option<i64>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), ExportError> {
        while let Some(due) = extras.next_due(until)? {
            while let Some(extra) = beside.next_if(|extra| extra.nanos <= due.nanos) {
                self.extra(&extra)?;
            }
            extras.offset().into_iter().for_each(&mut *progress);
            self.extra(&due)?;
        }
        while let Some(extra) = beside.next_if(|extra| until.is_none_or(|until| extra.nanos <= until)) {
            self.extra(&extra)?;
        }
        Ok(())
    }

    /// The channel of a topic; `None` where its type cannot be said.
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
            // By the specification: no schema, and an encoding of nobody else.
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

    fn record(
        &mut self,
        record: &Record<'_>,
        value: Option<&Value>,
        nanos: i64,
        buffer: &mut Vec<u8>,
    ) -> Result<(), ExportError> {
        if self.carried[record.topic.id.index()] == Carried::Otherwise {
            return Ok(());
        }
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
        let Some(value) = value else { return self.write(header, record.payload) };
        types::encode(value, buffer);
        self.tally(record.topic).nulls += nulls(value);
        self.write(header, buffer)
    }

    fn write(&mut self, header: MessageHeader, data: &[u8]) -> Result<(), ExportError> {
        self.messages += 1;
        Ok(self.writer.write_to_known_channel(&header, data)?)
    }

    /// The times of a record that stands at `nanos`: when it was logged, and what it says itself.
    fn times(&self, record: &Record<'_>, nanos: i64) -> Option<(u64, u64)> {
        let log_time = self.time(nanos)?;
        // 0 where it has no time.
        let own = record.time.and_then(|time| self.time(time.nanos));
        Some((log_time, own.unwrap_or(log_time)))
    }

    fn time(&self, nanos: i64) -> Option<u64> {
        u64::try_from(self.base.place(nanos)?).ok()
    }

    fn extra(&mut self, extra: &Extra) -> Result<(), ExportError> {
        let Some(log_time) = self.time(extra.nanos) else {
            *self.unplaced.entry(extra.topic.to_string()).or_default() += 1;
            return Ok(());
        };
        if !self.beside.contains_key(&*extra.topic) {
            let (name, descriptor) = match &extra.schema {
                ExtraSchema::WellKnown(kind) => (kind.name().to_owned(), kind.descriptor()),
                ExtraSchema::Own(schema) => match types::compile(self.package, schema) {
                    Some(compiled) => (compiled.name, compiled.descriptor),
                    None => return Ok(()),
                },
            };
            let schema = self.writer.add_schema(&name, "protobuf", &descriptor)?;
            let id = self.writer.add_channel(schema, &extra.topic, "protobuf", &BTreeMap::new())?;
            self.beside.insert(extra.topic.to_string(), (id, 0));
        }
        let Some(channel) = self.beside.get_mut(&*extra.topic) else { return Ok(()) };
        let (channel_id, sequence) = *channel;
        channel.1 = sequence.wrapping_add(1);
        let header = MessageHeader { channel_id, sequence, log_time, publish_time: log_time };
        self.write(header, &extra.bytes)
    }

    fn finish(mut self, extras: &dyn Extras) -> Result<Exported<W>, ExportError> {
        self.writer.finish()?;
        let mut losses = extras.losses();
        losses.extend(self.unplaced.iter().map(|(topic, count)| {
            Loss::new(topic, "", format!("{count} messages have times that mcap cannot hold"))
        }));
        for (topic, tally) in self.log.topics().iter().zip(&self.tallies) {
            let mut lost = |count: u64, what: &str| {
                if count > 0 {
                    losses.push(Loss::new(&topic.name, "", format!("{count} {what}")));
                }
            };
            lost(tally.undecodable, "records cannot be decoded");
            lost(tally.out_of_range, "records have times that mcap cannot hold");
            lost(tally.nulls, "missing values read as 0 or empty in protobuf");
            if tally.too_deep {
                losses.push(Loss::new(
                    &topic.name,
                    "",
                    "its type is nested deeper than readers of protobuf take",
                ));
            }
        }
        let (out, messages) = (self.writer.into_inner().into_inner(), self.messages);
        Ok(Exported { out, messages, losses, notes: extras.notes() })
    }
}

/// The number of a record among those of its topic.
#[expect(clippy::cast_possible_truncation, reason = "a number that may begin again")]
fn sequence(record: &Record<'_>) -> u32 {
    record.seq as u32
}

/// Missing values in a record: protobuf has no word for them.
fn nulls(value: &Value) -> u64 {
    match value {
        Value::Null => 1,
        Value::List(items) => items.iter().map(nulls).sum(),
        Value::Struct(fields) => fields.iter().map(|(_, value)| nulls(value)).sum(),
        _ => 0,
    }
}
