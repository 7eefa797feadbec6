//! State of a scan: topics, counts, and the evidence from which the meaning of the log's numbers is
//! inferred.

use rovelog_core::Clock;
use rovelog_core::internal::layout::Fit;
use rovelog_core::span::{DataSpan, Spread};

use crate::diagnostics as rules;
use crate::gps::{self, Fix, GpsMeaning};
use crate::images;
use crate::indexing::{IndexCheck, IndexState};
use crate::message::{Message, Payload};
use crate::pose::{PoseMeaning, PoseSamples};
use crate::scan::Scanner;
use crate::topics::TopicTable;
use crate::velodyne::model::{self, PacketTraits, Sensor};
use crate::wire::{FileHeader, GpsData, HEADER_LEN, INDEX_AT, MARKER_ASCII, MARKER_PRINTED, VelodyneRawData};

/// Topics and counts of a log, and the evidence from which the meaning of its numbers is inferred.
#[derive(Debug)]
pub(crate) struct Summary {
    pub(crate) topics: TopicTable,
    pub(crate) check: IndexCheck,
    pub(crate) counts: Counts,
    pub(crate) data: Option<DataSpan>,
    pub(crate) fixes: Vec<Fix>,
    poses: PoseSamples,
    packets: Vec<PacketTraits>,
    /// Unix time of the start of the data in nanoseconds, if the user specified it.
    pub(crate) utc_start: Option<i64>,
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

/// Conclusions from all messages of a log.
#[derive(Debug)]
pub(crate) struct Conclusions {
    /// Result of comparing the index of the log with its messages.
    pub(crate) index: IndexState,
    pub(crate) meaning: Meaning,
}

impl Summary {
    pub(crate) fn new(scanner: &Scanner, utc_start: Option<i64>) -> Self {
        Self {
            topics: TopicTable::new(&scanner.types),
            check: IndexCheck::new(&scanner.start),
            counts: Counts::default(),
            data: None,
            fixes: Vec::new(),
            poses: PoseSamples::default(),
            packets: Vec::new(),
            utc_start,
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
        self.check.message(&scanner.start.entries, message);
        if let Some(Fit::Short(_)) = fit {
            self.counts.bad_payloads += 1;
            return None;
        }
        let payload = message.payload();
        match &payload {
            Some(Payload::Gps(data)) => {
                self.fixes.push(Fix { nanos: message.nanos, offset: message.offset, data: **data });
            }
            Some(Payload::Pose(pose)) => self.poses.push(pose),
            Some(Payload::Velodyne(VelodyneRawData { packets })) => {
                self.counts.packets += packets.len() as u64;
                let free = model::SAMPLES.saturating_sub(self.packets.len());
                self.packets.extend(packets.iter().take(free).map(PacketTraits::of));
            }
            Some(Payload::Image(image)) => {
                if let Some((rule, why)) = images::remark(image) {
                    let end = message.offset + message.wire_len();
                    scanner.diagnostics.push(rule, message.offset..end, || why);
                }
            }
            Some(Payload::Laser(_) | Payload::Obd(_)) | None => {}
        }
        let series = self.topics.find_or_add(message, payload.as_ref(), &mut scanner.diagnostics);
        Some((series, self.topics.count(series, message)))
    }

    /// Returns the conclusions from the messages that were added so far.
    pub(crate) fn conclusions(&self, scanner: &Scanner) -> Conclusions {
        let (gps, pose) = (gps::infer(&self.fixes), self.poses.infer());
        let meaning = Meaning { gps, pose, velodyne: model::detect_samples(&self.packets) };
        Conclusions { index: self.check.finish(&scanner.start.entries), meaning }
    }

    /// Completes the summary at the end of the log. This checks the index, infers the meaning of
    /// numbers, and reports the problems that can only be known at the end.
    pub(crate) fn finish(&mut self, scanner: &mut Scanner) -> Conclusions {
        let times: Vec<_> = self.topics.times.iter().map(Spread::intervals).collect();
        // If only some byte ranges of the log were fetched, the time range of their messages is not
        // that of the whole log.
        let is_whole = scanner.diagnostics.unread() == 0;
        self.data = if is_whole { DataSpan::of(&times, None, Clock::LogStart) } else { None };
        if !is_whole {
            // The first or last message of a topic may be in a byte range that was not fetched.
            self.topics.list.iter_mut().for_each(|topic| (topic.first, topic.last) = (None, None));
        }
        if let Some(data) = &self.data {
            data.apply_to(&times, &mut self.topics.list, &mut scanner.diagnostics);
        }
        let mut conclusions = self.conclusions(scanner);
        if !is_whole && matches!(conclusions.index, IndexState::Good(_) | IndexState::Rebuilt(_)) {
            conclusions.index = IndexState::NotChecked;
        }
        if let IndexState::Rebuilt(why) = &conclusions.index {
            let index = size_of::<FileHeader>() as u64..scanner.start.index_end.max(INDEX_AT);
            scanner
                .diagnostics
                .push(&rules::INDEX_REBUILT, index, || format!("the index is rebuilt, because {why}"));
        }
        for (at, days) in conclusions.meaning.gps.utc.iter().flat_map(|utc| &utc.unwrapped) {
            let message = *at..at + HEADER_LEN + size_of::<GpsData>() as u64;
            scanner.diagnostics.push(&rules::DATE_UNWRAPPED, message, || {
                format!(
                    "the date of this position differs by {days} days from the other positions, so only its \
                     time of day is used for UTC"
                )
            });
        }
        conclusions
    }
}
