//! Revolutions: points between two passes of the azimuth through its zero, across messages.

use super::calibration::Calibration;
use super::lanes::TURN;
use super::model::{Model, ReturnMode, Sensor};
use super::points::{Decoder, POINTS_OF_PACKET, Point, PointOptions};
use super::timing::PacketClock;
use crate::error::VelError;
use crate::message::{Kind, Message, Payload};
use crate::reader::VelReader;
use crate::wire::VelodynePacket;

/// A fall of the azimuth by more than this is a new revolution.
const FALL: i32 = 18_000;

/// A pause this long, nanoseconds, ends a revolution: the slowest sensors turn five times a second.
const PAUSE: i64 = 400_000_000;

/// One revolution of a Velodyne.
#[derive(Debug, PartialEq)]
#[non_exhaustive]
pub struct Revolution<'a> {
    /// From 0.
    pub number: u32,
    /// The log time of its first shot, nanoseconds.
    pub nanos: i64,
    /// The message in which it begins.
    pub offset: u64,
    /// Whether it is cut by an end of the log or by a pause.
    pub partial: bool,
    /// Its points; their times count from `nanos`.
    pub points: &'a [Point],
}

/// The revolutions of a log, one after the other, into one buffer.
pub struct Revolutions<'a> {
    reader: &'a VelReader,
    decoder: Decoder,
    clock: PacketClock,
    cut: u16,
    entry: usize,
    packets: &'a [VelodynePacket],
    /// The message's time and offset.
    message: (i64, u64),
    packet: usize,
    block: usize,
    last_azimuth: Option<u16>,
    last_time: i64,
    /// Room that is kept; the first `filled` are of the revolution.
    points: Vec<Point>,
    filled: usize,
    handed_out: bool,
    number: u32,
    /// Time and offset of the revolution that is being filled.
    begun: Option<(i64, u64)>,
    whole_start: bool,
}

impl VelReader {
    /// The calibration of an HDL-64E that the status bytes of its packets hold; `None` for models that need none.
    pub fn velodyne_calibration(&self) -> Option<Calibration> {
        let sensor = self.meaning().velodyne.as_ref()?;
        if !sensor.model.is_hdl64() {
            return None;
        }
        Calibration::from_status(self.packets().flat_map(|(_, packets)| packets))
    }

    /// The sensor that the user named, with the return mode that the packets tell.
    pub fn sensor_named(&self, model: Model) -> Sensor {
        let mode = self.meaning().velodyne.as_ref().map_or(ReturnMode::Strongest, |sensor| sensor.mode);
        Sensor::named(model, mode)
    }

    /// The messages with packets of a Velodyne, and their packets, in file order.
    pub fn packets(&self) -> impl Iterator<Item = (Message<'_>, &[VelodynePacket])> + '_ {
        self.payloads(Kind::Velodyne).filter_map(|(message, payload)| match payload {
            Payload::Velodyne(data) => Some((message, data.packets.0)),
            _ => None,
        })
    }

    /// Whether the log holds any packet of a Velodyne.
    pub fn has_packets(&self) -> bool {
        self.packets().any(|(_, packets)| !packets.is_empty())
    }

    /// How packets are placed on the log's clock.
    pub fn packet_clock(&self, sensor: &Sensor) -> PacketClock {
        let messages = self.packets().map(|(message, packets)| (message.nanos, packets));
        PacketClock::settle(sensor.model, sensor.mode, messages)
    }

    /// The log's points by revolutions, cut where the azimuth passes `cut`, hundredths of a degree: 0 is
    /// straight ahead.
    ///
    /// # Errors
    /// Where the model is not told, or is an HDL-64E without a calibration.
    pub fn revolutions(
        &self,
        sensor: Option<&Sensor>,
        calibration: Option<&Calibration>,
        options: PointOptions,
        cut: u16,
    ) -> Result<Revolutions<'_>, VelError> {
        let unknown =
            || VelError::UnknownModel { packets: self.packets().map(|(_, packets)| packets.len()).sum() };
        let sensor = sensor.or(self.meaning().velodyne.as_ref()).ok_or_else(unknown)?;
        let own =
            if calibration.is_none() && sensor.model.is_hdl64() { self.velodyne_calibration() } else { None };
        let decoder = Decoder::of(sensor, calibration.or(own.as_ref()), options)?;
        Ok(Revolutions {
            clock: self.packet_clock(sensor),
            reader: self,
            decoder,
            cut: cut % 36_000,
            entry: 0,
            packets: &[],
            message: (0, 0),
            packet: 0,
            block: 0,
            last_azimuth: None,
            last_time: i64::MIN,
            points: Vec::new(),
            filled: 0,
            handed_out: false,
            number: 0,
            begun: None,
            whole_start: false,
        })
    }
}

impl Revolutions<'_> {
    /// The decoder.
    pub fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    /// The next revolution; `None` at the end. The points stay until the next call.
    #[expect(clippy::should_implement_trait, reason = "what is handed out borrows from the buffer")]
    pub fn next(&mut self) -> Option<Revolution<'_>> {
        if self.handed_out {
            self.filled = 0;
            self.handed_out = false;
        }
        loop {
            if self.packet >= self.packets.len() {
                if !self.next_message() {
                    let begun = self.begun.take()?;
                    return Some(self.hand_out(begun, true));
                }
                continue;
            }
            if let Some((begun, partial)) = self.take_packet() {
                return Some(self.hand_out(begun, partial));
            }
        }
    }

    fn next_message(&mut self) -> bool {
        let reader = self.reader;
        while let Some(entry) = reader.entries.get(self.entry) {
            self.entry += 1;
            let message = reader.message_of(entry);
            if message.kind() == Some(Kind::Velodyne)
                && let Some(Payload::Velodyne(data)) = message.payload()
            {
                (self.packets, self.packet, self.block) = (data.packets.0, 0, 0);
                self.message = (message.nanos, message.offset);
                return true;
            }
        }
        false
    }

    /// Takes the rest of a packet, up to the end of the revolution if it is in it; the one that has ended.
    fn take_packet(&mut self) -> Option<((i64, u64), bool)> {
        let packet = &self.packets[self.packet];
        let time = self.clock.at(self.message.0, self.packets, self.packet);
        if self.block == 0 {
            let paused = self.begun.is_some() && time.saturating_sub(self.last_time).abs() > PAUSE;
            if paused {
                // What comes is no part of what was before, and has no whole start.
                self.last_azimuth = None;
                self.last_time = time;
                self.whole_start = false;
                return self.begun.take().map(|begun| (begun, true));
            }
            self.last_time = time;
        }
        let end = self.cut_in(packet);
        let begun = *self.begun.get_or_insert((time, self.message.1));
        let offset = i32::try_from(time.saturating_sub(begun.0)).unwrap_or(i32::MAX);
        if self.points.len() < self.filled + POINTS_OF_PACKET {
            let room = (2 * self.points.len()).max(64 * POINTS_OF_PACKET);
            self.points.resize(room, Point::default());
        }
        let free = &mut self.points[self.filled..];
        self.filled += self.decoder.blocks(packet, self.block..end.unwrap_or(12), offset, free);
        match end {
            None => {
                self.decoder.end_packet(packet);
                (self.packet, self.block) = (self.packet + 1, 0);
                None
            }
            Some(end) => {
                self.block = end;
                // The first azimuth of what is left belongs to the next revolution.
                self.last_azimuth = None;
                let partial = !std::mem::replace(&mut self.whole_start, true);
                let start = time.saturating_add(self.decoder.block_nanos(end));
                let ended = self.begun.replace((start, self.message.1));
                // A log that begins at the cut has nothing before it.
                if self.filled == 0 { None } else { ended.map(|begun| (begun, partial)) }
            }
        }
    }

    /// The block at which the revolution ends, if it does in this packet.
    fn cut_in(&mut self, packet: &VelodynePacket) -> Option<usize> {
        let step = if self.decoder.mode() == ReturnMode::Dual { 2 } else { 1 };
        for block in (self.block..12).step_by(step) {
            let turned = u32::from(packet.blocks[block].azimuth.get()) % TURN + TURN - u32::from(self.cut);
            let azimuth = u16::try_from(turned % TURN).unwrap_or_default();
            let before = self.last_azimuth.replace(azimuth);
            if before.is_some_and(|before| i32::from(before) - i32::from(azimuth) > FALL) {
                return Some(block);
            }
        }
        None
    }

    fn hand_out(&mut self, (nanos, offset): (i64, u64), partial: bool) -> Revolution<'_> {
        self.handed_out = true;
        let number = self.number;
        self.number += 1;
        Revolution { number, nanos, offset, partial, points: &self.points[..self.filled] }
    }
}
