//! State of a scan: topics, counts, and the evidence from which the meaning of the log's numbers is
//! inferred.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use rovelog_core::internal::layout::{Fit, Layout};
use rovelog_core::internal::names::UniqueNames;
use rovelog_core::span::{DataSpan, Spread};
use rovelog_core::{Clock, Decode, Fields, Timestamp, Topic, TopicId};

use crate::declared::{Declared, Types};
use crate::diagnostics as rules;
use crate::error::VelError;
use crate::gps::{self, Fix, GpsMeaning};
use crate::images;
use crate::indexing::{IndexCheck, IndexState};
use crate::message::{Kind, Message, Payload};
use crate::pose::{PoseMeaning, PoseSamples};
use crate::scan::Scanner;
use crate::schema::{laser_topic, raw_schema, raw_topic};
use crate::velodyne::model::{self, PacketTraits, Sensor};
use crate::wire::{FileHeader, GpsData, HEADER_LEN, INDEX_AT, MARKER_ASCII, MARKER_PRINTED, VelodyneRawData};

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

/// Topics and counts of a log, and the evidence from which the meaning of its numbers is inferred.
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
    pub(crate) check: IndexCheck,
    pub(crate) counts: Counts,
    pub(crate) span: Option<(i64, i64)>,
    /// Times of the messages of each topic.
    times: Vec<Spread>,
    pub(crate) data: Option<DataSpan>,
    pub(crate) fixes: Vec<Fix>,
    poses: PoseSamples,
    packets: Vec<PacketTraits>,
    /// Offset of the end of the last valid message.
    messages_end: u64,
}

/// Counts of messages and other parts of a log, which `info` shows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) messages: u64,
    pub(crate) ascii: u64,
    pub(crate) printed: u64,
    pub(crate) invalid: u64,
    pub(crate) bad_payloads: u64,
    /// Offset of the end of the first end mark. `None` if the log has no end mark.
    pub(crate) ended: Option<u64>,
    /// Number of messages after the first end mark, which readers leave out.
    pub(crate) left_out: u64,
    pub(crate) packets: u64,
}

/// The meaning of the numbers in a log, such as their units, as inferred from the log.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Meaning {
    /// Meaning of the positions in the log.
    pub gps: GpsMeaning,
    /// Meaning of the orientations and accelerations in the log.
    pub pose: PoseMeaning,
    /// Model and return mode of the Velodyne sensor. `None` if the packets do not match any model.
    pub velodyne: Option<Sensor>,
}

fn slot_of(kind: Kind) -> usize {
    Kind::ALL.iter().position(|known| *known == kind).unwrap_or_default()
}

impl Summary {
    pub(crate) fn new(scanner: &Scanner) -> Self {
        Self {
            topics: Vec::new(),
            decoder: Decoder { record_types: Vec::new(), types: Arc::clone(&scanner.types) },
            plain: [None; 6],
            others: None,
            images: HashMap::new(),
            lasers: HashMap::new(),
            raws: HashMap::new(),
            names: UniqueNames::default(),
            check: IndexCheck::new(&scanner.start),
            counts: Counts::default(),
            span: None,
            times: Vec::new(),
            data: None,
            fixes: Vec::new(),
            poses: PoseSamples::default(),
            packets: Vec::new(),
            messages_end: scanner.start.first,
        }
    }

    /// Adds a valid message. Returns the index of its topic, and the number of the message within
    /// the topic. Returns `None` if the data is too short for the content.
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
                self.packets.extend(packets.iter().take(free).map(PacketTraits::of));
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

    /// Returns whether another topic can be added. If the limit is reached, reports this in a
    /// diagnostic about `message`.
    fn has_free_topic(&self, scanner: &mut Scanner, message: &Message<'_>) -> bool {
        let shared = self.plain.len() + 1;
        let free = self.topics.len() + shared < MAX_TOPICS;
        if !free {
            let range = message.offset..message.offset + message.wire_len();
            scanner.diagnostics.push(&rules::MANY_TOPICS, range, || {
                "the limit of topics is reached, so this record is in a shared topic".to_owned()
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
            let others = self.add(SHARED_TOPIC, None, SHARED_TOPIC);
            self.others = Some(others);
            return others;
        }
        let name = match self.decoder.types.find(key.0, key.1) {
            Some(declared) => declared.name().to_owned(),
            None => raw_topic(key.0, key.1),
        };
        let record_type = self.decoder.types.find(key.0, key.1).cloned();
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
        let series = u32::try_from(self.topics.len()).unwrap_or(u32::MAX);
        let schema = match &record_type {
            Some(declared) => Arc::clone(declared.layout().schema()),
            None => Arc::new(raw_schema(type_name)),
        };
        self.decoder.record_types.push(record_type);
        self.times.push(Spread::default());
        self.topics.push(Topic::new(TopicId(series), name, type_name.to_owned(), Some(schema)));
        series
    }

    /// Returns the result of comparing the index of the log with its messages.
    pub(crate) fn index_state(&self, scanner: &Scanner) -> IndexState {
        self.check.finish(&scanner.start.entries, self.messages_end)
    }

    /// Completes the summary at the end of the log. This checks the index, infers the meaning of
    /// numbers, and reports the problems that can only be known at the end.
    pub(crate) fn finish(&mut self, scanner: &mut Scanner) -> (IndexState, Meaning) {
        let times: Vec<_> = self.times.iter().map(Spread::intervals).collect();
        // If only some byte ranges of the log were fetched, the time range of their messages is not
        // that of the whole log.
        let is_whole = scanner.diagnostics.unread() == 0;
        self.data = if is_whole { DataSpan::of(&times, None, Clock::LogStart) } else { None };
        if !is_whole {
            // The first or last message of a topic may be in a byte range that was not fetched.
            self.topics.iter_mut().for_each(|topic| (topic.first, topic.last) = (None, None));
        }
        if let Some(data) = &self.data {
            data.apply_to(&times, &mut self.topics, &mut scanner.diagnostics);
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
                format!(
                    "the date of this position differs by {days} days from the dates of the other positions"
                )
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
