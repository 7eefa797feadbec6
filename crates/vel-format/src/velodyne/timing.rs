//! Times of shots within a packet, and times of packets on the log's clock. See section 7 of
//! docs/formats/vel.md.

use super::model::{Model, ReturnMode};
use crate::wire::VelodynePacket;

/// Times of a packet's shots, counted from the first shot of the packet.
#[derive(Clone, Debug)]
pub(super) struct Firing {
    /// Times of the 32 shots of each block in nanoseconds.
    pub(super) shots: Vec<[i32; 32]>,
    model: Model,
    /// Number of the block whose azimuth, together with the azimuth of block 0, gives the rotation
    /// rate.
    pub(super) rate_block: usize,
    pub(super) rate_micros: f64,
}

impl Firing {
    pub(super) fn new(model: Model, mode: ReturnMode) -> Self {
        let dual = mode == ReturnMode::Dual;
        let mut blocks = [0.0; 12];
        let mut shots = vec![[0; 32]; 12];
        for (block, time) in blocks.iter_mut().enumerate() {
            // In dual return mode, two blocks belong to the same firing.
            let firing = if dual { block / 2 } else { block };
            // The constants are the firing periods in microseconds from the manuals of the sensors.
            *time = match model {
                Model::Hdl64S1 => 24.81 * block as f64,
                Model::Hdl64S2 => 48.0 * (block / 2) as f64,
                Model::Hdl64S3 => 57.6 * (firing / 2) as f64,
                Model::Hdl32 => 46.08 * firing as f64,
                Model::Vlp16 | Model::PuckHiRes => 110.592 * firing as f64,
                Model::Vlp32A | Model::Vlp32C => 55.296 * firing as f64,
                Model::Vls128 => 57.8 * (firing / 4) as f64,
            };
            for (j, shot) in shots[block].iter_mut().enumerate() {
                // The timestamp of a VLS-128 is the time of its fourth group of lasers, which fires
                // 7 us after the first group.
                let early = if model == Model::Vls128 { 7.0 } else { 0.0 };
                let micros = *time + within(model, firing % 4, j) - early;
                #[expect(clippy::cast_possible_truncation, reason = "less than a millisecond")]
                let nanos = (micros * 1000.0).round() as i32;
                *shot = nanos;
            }
        }
        // In packets of these models, two blocks have the same azimuth. So the last pair of blocks
        // starts at block 10.
        let rate_block = match model {
            Model::Hdl64S2 | Model::Hdl64S3 => 10,
            _ => 11,
        };
        Self { shots, model, rate_micros: blocks[rate_block], rate_block }
    }

    /// Returns the time of each shot of a bank of lasers in microseconds, counted from the time at
    /// which the azimuth of its block was measured.
    pub(super) fn within(&self, bank: usize) -> [f64; 32] {
        std::array::from_fn(|j| within(self.model, bank, j))
    }
}

/// Returns the time of shot `j` of a bank of lasers in microseconds, counted from the first group
/// of lasers that fires. The result depends on the bank only for a VLS-128.
fn within(model: Model, bank: usize, j: usize) -> f64 {
    match model {
        Model::Hdl64S1 => 0.0,
        Model::Hdl64S2 => 6.0 * (j / 4) as f64 + [0.0, 1.26, 2.46, 3.66][j % 4],
        Model::Hdl64S3 => 7.2 * (j / 4) as f64 + [0.0, 1.3, 2.5, 3.7][j % 4],
        Model::Hdl32 => 1.152 * j as f64,
        Model::Vlp16 | Model::PuckHiRes => 55.296 * (j / 16) as f64 + 2.304 * (j % 16) as f64,
        Model::Vlp32A | Model::Vlp32C => 2.304 * (j / 2) as f64,
        Model::Vls128 => {
            let q = 32 * bank + j;
            2.89 * (q / 8 + 2 * (q / 64)) as f64
        }
    }
}

/// One hour in nanoseconds. Packet timestamps restart at 0 every hour.
const HOUR: i64 = 3_600_000_000_000;

// The timestamp of a packet, a constant offset and whole hours add up to the log time of the
// packet. Example: a message at 10 s has a packet with the timestamp 59 min 59 s (3599 s). A
// message at 12 s has a packet with the timestamp 1 s, because a new hour has started in between.
//
//     message time minus timestamp    10 - 3599 = -3589 s    12 - 1 = 11 s
//     minus whole hours               -3589 s                11 - 3600 = -3589 s
//
// The offset is the median of the last line, -3589 s. The packet with the timestamp 1 s is then at
// 1 - 3589 = -3588 s. This is an hour before its message, so an hour is added, which gives 12 s.

/// A method of computing the times of packets on the log's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PacketClock {
    /// Times are computed from the timestamps of packets. The value is the median of log time minus
    /// timestamp over all messages, in nanoseconds.
    Timestamps(i64),
    /// Times are computed from the times of messages, because the timestamps of packets do not
    /// change. The last packet of a message has the time of the message. The value is the time
    /// between packets in nanoseconds.
    Nominal(i64),
}

impl PacketClock {
    /// Selects the method for a log. `messages` has the time of each message in nanoseconds, and
    /// its packets.
    pub fn infer<'a>(
        model: Model,
        mode: ReturnMode,
        messages: impl IntoIterator<Item = (i64, &'a [VelodynePacket])>,
    ) -> Self {
        // In dual return mode, the sensor sends twice as many packets.
        let period = model.packet_micros() * if mode == ReturnMode::Dual { 0.5 } else { 1.0 };
        #[expect(clippy::cast_possible_truncation, reason = "a few milliseconds")]
        let nominal = Self::Nominal((period * 1000.0).round() as i64);
        // Packets of this model have no timestamps.
        if model == Model::Hdl64S1 {
            return nominal;
        }
        let mut offsets: Vec<i64> = Vec::new();
        let (mut timestamp, mut is_running) = (None, false);
        for (nanos, packets) in messages {
            let Some(last) = packets.last() else { continue };
            let first = packets.first().map(|packet| packet.stamp.get());
            is_running |= first != Some(last.stamp.get()) || timestamp.is_some_and(|s| s != last.stamp.get());
            timestamp = Some(last.stamp.get());
            let offset = nanos.saturating_sub(micros(last));
            let base = offsets.first().copied().unwrap_or(offset);
            offsets.push(offset.saturating_sub(nearest_hours(offset.saturating_sub(base))));
        }
        if !is_running {
            return nominal;
        }
        let middle = offsets.len() / 2;
        offsets.sort_unstable();
        offsets.get(middle).map_or(nominal, |offset| Self::Timestamps(*offset))
    }

    /// Returns the log time of the first shot of packet `i` in nanoseconds. `nanos` is the time of
    /// its message.
    pub fn at(&self, nanos: i64, packets: &[VelodynePacket], i: usize) -> i64 {
        match self {
            Self::Timestamps(offset) => {
                let time = offset.saturating_add(micros(&packets[i]));
                time.saturating_add(nearest_hours(nanos.saturating_sub(time)))
            }
            Self::Nominal(period) => {
                let back = i64::try_from(packets.len() - 1 - i).unwrap_or(i64::MAX);
                nanos.saturating_sub(back.saturating_mul(*period))
            }
        }
    }
}

fn micros(packet: &VelodynePacket) -> i64 {
    i64::from(packet.stamp.get()) * 1000
}

/// Rounds a duration to whole hours. The argument and the result are in nanoseconds.
fn nearest_hours(nanos: i64) -> i64 {
    nanos.saturating_add(HOUR / 2).div_euclid(HOUR).saturating_mul(HOUR)
}
