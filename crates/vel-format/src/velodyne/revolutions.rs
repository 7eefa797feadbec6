//! Divides the points of a log into revolutions. A revolution contains the points from one pass of
//! the azimuth over a fixed angle to the next pass. It may span several messages.
//!
//! For example, revolutions are separated at 0°. If blocks have the azimuths 359.6°, 359.8°, 0.1°
//! and 0.3°, a new revolution starts with the block at 0.1°, because the azimuth decreases there by
//! more than 180°. A smaller decrease is jitter of the sensor.

use super::calibration::Calibration;
use super::lanes::TURN;
use super::model::{Model, ReturnMode, Sensor};
use super::points::{Decoder, POINTS_OF_PACKET, Point, PointOptions};
use super::timing::PacketClock;
use crate::error::VelError;
use crate::message::{Kind, Message, Payload};
use crate::reader::VelReader;
use crate::wire::VelodynePacket;

/// Decrease of the azimuth, in hundredths of a degree, above which a new revolution starts.
const MIN_AZIMUTH_FALL: i32 = 18_000;

/// Maximum time in nanoseconds between two packets of a revolution. The slowest sensors make five
/// turns per second, so a longer time means that packets are missing.
const MAX_PAUSE: i64 = 400_000_000;

/// Maximum duration of a revolution in nanoseconds, and maximum number of its points. Without these
/// limits, the revolution of a sensor that does not turn would never end.
const LONGEST: (i64, usize) = (1_000_000_000, 1 << 21);

/// The points of one revolution of a Velodyne sensor.
#[derive(Debug, PartialEq)]
#[non_exhaustive]
pub struct Revolution<'a> {
    /// Number of the revolution, counted from 0.
    pub number: u32,
    /// Log time of the revolution's first shot in nanoseconds.
    pub nanos: i64,
    /// Offset of the message with the first point of the revolution.
    pub offset: u64,
    /// True if the revolution is incomplete because of a pause, or because the log starts or ends
    /// within it.
    pub partial: bool,
    /// Points of the revolution. Their times are counted from `nanos`.
    pub points: &'a [Point],
}

/// Iterator over the revolutions in a log. The points of each revolution are in the same reused
/// buffer.
pub struct Revolutions<'a> {
    packets: PacketCursor<'a>,
    decoder: Decoder,
    clock: PacketClock,
    cuts: CutFinder,
    /// Time of the last packet in nanoseconds.
    last_time: i64,
    /// Buffer for points, which is reused. Its first `filled` points belong to the current
    /// revolution.
    points: Vec<Point>,
    filled: usize,
    /// Number of the next revolution.
    number: u32,
    /// Start of the current revolution. `None` before its first point.
    current: Option<RevolutionStart>,
}

/// Position in the Velodyne packets of a log.
struct PacketCursor<'a> {
    reader: &'a VelReader,
    /// Index of the next message in the log.
    entry: usize,
    /// Time of the current message in nanoseconds.
    nanos: i64,
    /// Offset of the current message.
    offset: u64,
    /// Packets of the current message.
    packets: &'a [VelodynePacket],
    /// Index of the current packet in `packets`.
    packet: usize,
    /// Number of the next block in the current packet.
    block: usize,
}

impl<'a> PacketCursor<'a> {
    /// Returns the current packet. Returns `None` at the end of the log.
    fn packet(&mut self) -> Option<&'a VelodynePacket> {
        while self.packet >= self.packets.len() {
            let message = self.reader.message_of(self.reader.entries.get(self.entry)?);
            self.entry += 1;
            if message.kind() == Some(Kind::Velodyne)
                && let Some(Payload::Velodyne(data)) = message.payload()
            {
                (self.packets, self.packet, self.block) = (data.packets.0, 0, 0);
                (self.nanos, self.offset) = (message.nanos, message.offset);
            }
        }
        self.packets.get(self.packet)
    }
}

/// Start of a revolution.
#[derive(Clone, Copy)]
struct RevolutionStart {
    /// Log time of the first shot in nanoseconds.
    nanos: i64,
    /// Offset of the message with the first point.
    offset: u64,
    /// True if the revolution is incomplete.
    partial: bool,
}

/// Finds the azimuth at which revolutions are separated.
struct CutFinder {
    /// Azimuth of the cut in hundredths of a degree.
    cut: u16,
    /// Azimuth of the previous block, relative to the cut. `None` if no block precedes.
    last_azimuth: Option<u16>,
}

impl CutFinder {
    /// Returns the number of the first of `blocks` that belongs to the next revolution. Returns
    /// `None` if the current revolution does not end in these blocks.
    fn find(&mut self, packet: &VelodynePacket, mut blocks: impl Iterator<Item = usize>) -> Option<usize> {
        blocks.find(|block| {
            // The azimuth relative to `cut` falls from nearly 360° to 0° at the end of a
            // revolution.
            let turned = u32::from(packet.blocks[*block].azimuth.get()) % TURN + TURN - u32::from(self.cut);
            let azimuth = u16::try_from(turned % TURN).unwrap_or_default();
            let before = self.last_azimuth.replace(azimuth);
            before.is_some_and(|before| i32::from(before) - i32::from(azimuth) > MIN_AZIMUTH_FALL)
        })
    }
}

impl VelReader {
    /// Returns the calibration that an HDL-64E sends in the status bytes of its packets. Returns
    /// `None` for other models, or if the log does not contain the complete calibration.
    pub fn velodyne_calibration(&self) -> Option<Calibration> {
        let sensor = self.meaning().velodyne.as_ref()?;
        if !sensor.model.is_hdl64() {
            return None;
        }
        Calibration::from_status(self.packets().flat_map(|(_, packets)| packets))
    }

    /// Returns a sensor with the model that the user selected, and with the return mode of the
    /// log's packets.
    pub fn sensor_named(&self, model: Model) -> Sensor {
        let mode = self.meaning().velodyne.as_ref().map_or(ReturnMode::Strongest, |sensor| sensor.mode);
        Sensor::named(model, mode)
    }

    /// Returns the messages with Velodyne packets in file order, each with its packets.
    pub fn packets(&self) -> impl Iterator<Item = (Message<'_>, &[VelodynePacket])> + '_ {
        self.payloads(Kind::Velodyne).filter_map(|(message, payload)| match payload {
            Payload::Velodyne(data) => Some((message, data.packets.0)),
            _ => None,
        })
    }

    /// Returns whether the log has Velodyne packets.
    pub fn has_packets(&self) -> bool {
        self.packets().any(|(_, packets)| !packets.is_empty())
    }

    /// Returns the method of computing the times of packets on the log's clock.
    pub fn packet_clock(&self, sensor: &Sensor) -> PacketClock {
        let messages = self.packets().map(|(message, packets)| (message.nanos, packets));
        PacketClock::infer(sensor.model, sensor.mode, messages)
    }

    /// Returns the points of the log, divided into revolutions. A new revolution starts when the
    /// azimuth passes `cut`, which is in hundredths of a degree. A `cut` of 0 is straight ahead.
    ///
    /// # Errors
    /// Returns an error if the model is unknown, or if it is an HDL-64E without a calibration.
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
        // An HDL-64E sends its calibration repeatedly. The log must be long enough to contain all
        // of it.
        let own =
            if calibration.is_none() && sensor.model.is_hdl64() { self.velodyne_calibration() } else { None };
        let decoder = Decoder::of(sensor, calibration.or(own.as_ref()), options)?;
        let packets =
            PacketCursor { reader: self, entry: 0, nanos: 0, offset: 0, packets: &[], packet: 0, block: 0 };
        Ok(Revolutions {
            clock: self.packet_clock(sensor),
            packets,
            decoder,
            cuts: CutFinder { cut: cut % 36_000, last_azimuth: None },
            last_time: i64::MIN,
            points: Vec::new(),
            filled: 0,
            number: 0,
            current: None,
        })
    }
}

impl Revolutions<'_> {
    /// Returns the decoder that computes the points.
    pub fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    /// Returns the next revolution. Returns `None` at the end of the log. The points are valid
    /// until the next call.
    #[expect(clippy::should_implement_trait, reason = "what is handed out borrows from the buffer")]
    pub fn next(&mut self) -> Option<Revolution<'_>> {
        loop {
            let Some(packet) = self.packets.packet() else {
                // The revolution at the end of the log is incomplete, so it is returned as partial.
                let ended = self.current.take()?;
                return Some(self.take_revolution(RevolutionStart { partial: true, ..ended }));
            };
            if let Some(ended) = self.add_packet(packet) {
                return Some(self.take_revolution(ended));
            }
        }
    }

    /// Adds the remaining points of a packet to the current revolution, up to the end of this
    /// revolution. If the revolution has ended, returns its start.
    fn add_packet(&mut self, packet: &VelodynePacket) -> Option<RevolutionStart> {
        let PacketCursor { nanos, offset, packets, packet: number, block, .. } = self.packets;
        let time = self.clock.at(nanos, packets, number);
        if block == 0 {
            let paused = time.abs_diff(self.last_time) > MAX_PAUSE.unsigned_abs();
            let is_long = |current: &RevolutionStart| {
                time.saturating_sub(current.nanos) >= LONGEST.0 || self.filled >= LONGEST.1
            };
            let ended = self.current.filter(|current| paused || is_long(current));
            self.last_time = time;
            if let Some(ended) = ended {
                // The points after a pause start a new revolution, whose first points are missing.
                (self.cuts.last_azimuth, self.current) = (None, None);
                return Some(RevolutionStart { partial: true, ..ended });
            }
        }
        let end = self.cuts.find(packet, (block..12).step_by(self.decoder.blocks_per_firing()));
        let current = *self.current.get_or_insert(RevolutionStart { nanos: time, offset, partial: true });
        let since_start = i32::try_from(time.saturating_sub(current.nanos)).unwrap_or(i32::MAX);
        let blocks = block..end.unwrap_or(12);
        // The decoder writes to a slice. So the buffer must have room for all points of a packet.
        if self.points.len() < self.filled + POINTS_OF_PACKET {
            let len = (2 * self.points.len()).max(64 * POINTS_OF_PACKET);
            self.points.resize(len, Point::default());
        }
        let free = &mut self.points[self.filled..];
        self.filled += self.decoder.blocks(packet, blocks, since_start, free);
        let Some(end) = end else {
            self.decoder.end_packet(packet);
            (self.packets.packet, self.packets.block) = (number + 1, 0);
            return None;
        };
        self.packets.block = end;
        // The remaining points of the packet belong to the next revolution.
        self.cuts.last_azimuth = None;
        let nanos = time.saturating_add(self.decoder.block_nanos(end));
        self.current = Some(RevolutionStart { nanos, offset, partial: false });
        // If the first block of the log is at the separating azimuth, there is no revolution before
        // this block.
        (self.filled > 0).then_some(current)
    }

    fn take_revolution(&mut self, start: RevolutionStart) -> Revolution<'_> {
        let (number, filled) = (self.number, std::mem::take(&mut self.filled));
        self.number += 1;
        let RevolutionStart { nanos, offset, partial } = start;
        Revolution { number, nanos, offset, partial, points: &self.points[..filled] }
    }
}
