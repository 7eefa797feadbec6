//! State of a scan: topics, counts, the meaning of numbers, and the lines of `info`.

use std::collections::HashMap;
use std::sync::Arc;

use rovelog_core::layout::{Fit, Layout};
use rovelog_core::names::UniqueNames;
use rovelog_core::span::{DataSpan, Spread};
use rovelog_core::{Clock, Decode, Timestamp, Topic, TopicId, Value};

use crate::declared::{Declared, Types};
use crate::diagnostics as rules;
use crate::error::VelError;
use crate::gps::{self, Fix, GpsMeaning};
use crate::images;
use crate::indexing::{Check, IndexState};
use crate::message::{Kind, Message, Payload};
use crate::pose::{PoseMeaning, Samples};
use crate::scan::Scanner;
use crate::schema::{laser_topic, raw_schema, raw_topic};
use crate::velodyne::model::{self, Sample, Sensor};
use crate::wire::{FileHeader, GpsData, HEADER_LEN, INDEX_AT, MARKER_ASCII, MARKER_PRINTED, VelodyneRawData};

/// Maximum number of topics. A camera or scanner beyond it shares one with others of its kind, a
/// message type beyond it one with other types: each record names its own type, and no record is
/// lost.
pub(crate) const MAX_TOPICS: usize = 65_536;

/// The topic shared by message types beyond the limit.
const OTHERS: &str = "0x*";

/// The type of the records of a topic; `None` if its fields are unknown.
pub(crate) type Reading = Option<Arc<Declared>>;

/// Decodes data to values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decoder {
    pub(crate) readings: Vec<Reading>,
    pub(crate) types: Arc<Types>,
}

impl Decode for Decoder {
    fn value(&self, topic: &Topic, payload: &[u8]) -> rovelog_core::Result<Value> {
        let Some(Some(declared)) = self.readings.get(topic.id.index()) else {
            return Ok(Value::record([("data", Value::Bytes(payload.to_vec()))]));
        };
        let bad = || VelError::BadPayload { what: topic.type_name.clone(), len: payload.len() };
        Ok(declared.value(payload).ok_or_else(bad)?)
    }

    fn layout(&self, topic: &Topic, _: &[u8]) -> Option<&Arc<Layout>> {
        Some(self.readings.get(topic.id.index())?.as_ref()?.layout())
    }
}

/// Counts, and the evidence for the meaning of the log.
#[derive(Debug)]
pub(crate) struct Summary {
    pub(crate) topics: Vec<Topic>,
    pub(crate) decoder: Decoder,
    plain: [Option<u32>; 6],
    others: Option<u32>,
    images: HashMap<i32, u32>,
    pub(crate) lasers: HashMap<Box<[u8]>, u32>,
    pub(crate) raws: HashMap<(u32, i32), u32>,
    names: UniqueNames,
    pub(crate) check: Check,
    pub(crate) counts: Counts,
    pub(crate) span: Option<(i64, i64)>,
    /// Times of each topic, and the range of all data after the scan.
    times: Vec<Spread>,
    pub(crate) data: Option<DataSpan>,
    pub(crate) fixes: Vec<Fix>,
    poses: Samples,
    packets: Vec<Sample>,
    /// Offset of the end of the last message.
    messages_end: u64,
}

/// Counts shown by `info`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) messages: u64,
    pub(crate) ascii: u64,
    pub(crate) printed: u64,
    pub(crate) invalid: u64,
    pub(crate) bad_payloads: u64,
    /// Offset of the end of the first end mark.
    pub(crate) ended: Option<u64>,
    /// Number of messages after it.
    pub(crate) left_out: u64,
    pub(crate) packets: u64,
}

/// The meaning of the numbers in a log, as far as the file tells.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Meaning {
    /// Positions.
    pub gps: GpsMeaning,
    /// Orientation.
    pub pose: PoseMeaning,
    /// The Velodyne, if packets tell it.
    pub velodyne: Option<Sensor>,
}

fn slot_of(kind: Kind) -> usize {
    Kind::ALL.iter().position(|known| *known == kind).unwrap_or_default()
}

impl Summary {
    pub(crate) fn new(scanner: &Scanner) -> Self {
        Self {
            topics: Vec::new(),
            decoder: Decoder { readings: Vec::new(), types: Arc::clone(&scanner.types) },
            plain: [None; 6],
            others: None,
            images: HashMap::new(),
            lasers: HashMap::new(),
            raws: HashMap::new(),
            names: UniqueNames::default(),
            check: Check::new(&scanner.start),
            counts: Counts::default(),
            span: None,
            times: Vec::new(),
            data: None,
            fixes: Vec::new(),
            poses: Samples::default(),
            packets: Vec::new(),
            messages_end: scanner.start.first,
        }
    }

    /// Adds a valid message; returns its topic and its number within it, or `None` if its payload
    /// cannot be read.
    pub(crate) fn message(
        &mut self,
        scanner: &mut Scanner,
        message: &Message<'_>,
        fit: Option<Fit>,
    ) -> Option<(u32, u64)> {
        self.counts.messages += 1;
        match message.header.marker {
            MARKER_ASCII => self.counts.ascii += 1,
            MARKER_PRINTED => self.counts.printed += 1,
            _ => {}
        }
        self.messages_end = message.offset + message.wire_len();
        self.check.message(&scanner.start.entries, message.offset, message.header.timestamp.get());
        if let Some(Fit::Short(_)) = fit {
            self.counts.bad_payloads += 1;
            return None;
        }
        let payload = message.payload();
        let series = match (message.kind(), &payload) {
            (Some(kind), Some(payload)) => self.described(scanner, kind, payload, message),
            _ => self.undescribed(scanner, message),
        };
        let topic = &mut self.topics[series as usize];
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
        self.span = Some(match self.span {
            None => (message.nanos, message.nanos),
            Some((first, last)) => (first.min(message.nanos), last.max(message.nanos)),
        });
        Some((series, seq))
    }

    fn described(
        &mut self,
        scanner: &mut Scanner,
        kind: Kind,
        payload: &Payload<'_>,
        message: &Message<'_>,
    ) -> u32 {
        match payload {
            Payload::Gps(data) => {
                self.fixes.push(Fix { nanos: message.nanos, offset: message.offset, data: **data });
            }
            Payload::Pose(pose) => self.poses.push(pose),
            Payload::Velodyne(VelodyneRawData { packets }) => {
                self.counts.packets += packets.len() as u64;
                let free = model::SAMPLES.saturating_sub(self.packets.len());
                self.packets.extend(packets.iter().take(free).map(Sample::of));
            }
            Payload::Image(image) => {
                if let Some((rule, why)) = images::remark(image) {
                    let end = message.offset + message.wire_len();
                    scanner.diagnostics.push(rule, message.offset..end, || why);
                }
                let source = image.source.get();
                if let Some(series) = self.images.get(&source) {
                    return *series;
                }
                if self.has_free_topic(scanner, message) {
                    let series = self.add_kind(&format!("ImageM/{source}"), kind);
                    self.images.insert(source, series);
                    return series;
                }
            }
            Payload::Laser(laser) => {
                if let Some(series) = self.lasers.get(&*laser.sensor_name) {
                    return *series;
                }
                if self.has_free_topic(scanner, message) {
                    let name = laser_topic(&laser.sensor_name);
                    let series = self.add_kind(&name, kind);
                    self.lasers.insert((*laser.sensor_name).into(), series);
                    return series;
                }
            }
            Payload::Obd(_) => {}
        }
        let slot = slot_of(kind);
        if let Some(series) = self.plain[slot] {
            return series;
        }
        let series = self.add_kind(kind.name(), kind);
        self.plain[slot] = Some(series);
        series
    }

    /// Returns whether another topic fits, in addition to the shared ones; reports if not.
    fn has_free_topic(&self, scanner: &mut Scanner, message: &Message<'_>) -> bool {
        let shared = self.plain.len() + 1;
        let free = self.topics.len() + shared < MAX_TOPICS;
        if !free {
            let range = message.offset..message.offset + message.wire_len();
            scanner.diagnostics.push(&rules::MANY_TOPICS, range, || {
                "the limit of topics is reached: this record is in a shared topic".to_owned()
            });
        }
        free
    }

    fn undescribed(&mut self, scanner: &mut Scanner, message: &Message<'_>) -> u32 {
        let key = (message.header.type_id.get(), message.header.version.get());
        if let Some(series) = self.raws.get(&key) {
            return *series;
        }
        if !self.has_free_topic(scanner, message) {
            if let Some(others) = self.others {
                return others;
            }
            let others = self.add(OTHERS, None, OTHERS);
            self.others = Some(others);
            return others;
        }
        let name = match self.decoder.types.find(key.0, key.1) {
            Some(declared) => declared.name().to_owned(),
            None => raw_topic(key.0, key.1),
        };
        let reading = self.decoder.types.find(key.0, key.1).cloned();
        let series = self.add(&name, reading, &name);
        self.raws.insert(key, series);
        series
    }

    fn add_kind(&mut self, name: &str, kind: Kind) -> u32 {
        let reading = self.decoder.types.find(kind.type_id(), kind.version()).cloned();
        self.add(name, reading, kind.name())
    }

    /// Adds a topic. Names that two topics would share get a number: `name#2`.
    fn add(&mut self, name: &str, reading: Reading, type_name: &str) -> u32 {
        let name = self.names.give(name);
        let series = u32::try_from(self.topics.len()).unwrap_or(u32::MAX);
        let schema = match &reading {
            Some(declared) => Arc::clone(declared.layout().schema()),
            None => Arc::new(raw_schema(type_name)),
        };
        self.decoder.readings.push(reading);
        self.times.push(Spread::default());
        self.topics.push(Topic::new(TopicId(series), name, type_name.to_owned(), Some(schema)));
        series
    }

    /// Returns the state of the file's own index.
    pub(crate) fn index_state(&self, scanner: &Scanner) -> IndexState {
        self.check.finish(&scanner.start.entries, self.messages_end)
    }

    /// Infers and reports what is only known at the end of the log.
    pub(crate) fn finish(&mut self, scanner: &mut Scanner) -> (IndexState, Meaning) {
        let times: Vec<_> = self.times.iter().map(Spread::intervals).collect();
        // Parts that were read may be far from each other.
        let is_whole = scanner.diagnostics.unread() == 0;
        self.data = if is_whole { DataSpan::of(&times, None, Clock::LogStart) } else { None };
        if !is_whole {
            // A topic may have earlier and later messages than those that were read.
            self.topics.iter_mut().for_each(|topic| (topic.first, topic.last) = (None, None));
        }
        if let Some(data) = &self.data {
            data.settle(&times, &mut self.topics, &mut scanner.diagnostics);
        }
        let state = match self.index_state(scanner) {
            IndexState::Good(_) | IndexState::Rebuilt(_) if !is_whole => IndexState::NotChecked,
            state => state,
        };
        if let IndexState::Rebuilt(why) = &state {
            let index = size_of::<FileHeader>() as u64..scanner.start.index_end.max(INDEX_AT);
            scanner.diagnostics.push(&rules::INDEX_REBUILT, index, || why.clone());
        }
        let meaning = self.meaning();
        for (at, days) in meaning.gps.utc.iter().flat_map(|utc| &utc.unwrapped) {
            let message = *at..at + HEADER_LEN + size_of::<GpsData>() as u64;
            scanner.diagnostics.push(&rules::DATE_UNWRAPPED, message, || {
                format!("the date of this position is {days} days off those of the others")
            });
        }
        (state, meaning)
    }

    pub(crate) fn meaning(&self) -> Meaning {
        Meaning {
            gps: gps::infer(&self.fixes),
            pose: self.poses.infer(),
            velodyne: model::detect_samples(&self.packets),
        }
    }
}
