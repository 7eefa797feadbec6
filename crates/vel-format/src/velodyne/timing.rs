//! Times of the shots of a packet, and of the packets, on the log's clock. Section 7 of
//! docs/formats/vel.md.

use super::model::{Model, ReturnMode};
use crate::wire::VelodynePacket;

/// The firing times of a packet, and of its blocks, in microseconds from its first shot.
#[derive(Clone, Debug)]
pub(super) struct Firing {
    /// By block, then shot.
    pub(super) shots: Vec<[f64; 32]>,
    model: Model,
    /// The block whose azimuth, with that of block 0, gives the rate, and the time between them.
    pub(super) rate_block: usize,
    pub(super) rate_micros: f64,
}

impl Firing {
    pub(super) fn new(model: Model, mode: ReturnMode) -> Self {
        let dual = mode == ReturnMode::Dual;
        let mut blocks = [0.0; 12];
        let mut shots = vec![[0.0; 32]; 12];
        for (block, time) in blocks.iter_mut().enumerate() {
            // In dual mode two blocks belong to one firing.
            let firing = if dual { block / 2 } else { block };
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
                // The timestamp of a VLS-128 is that of its fourth group, 7 us after the first.
                let early = if model == Model::Vls128 { 7.0 } else { 0.0 };
                *shot = *time + within(model, firing % 4, j) - early;
            }
        }
        let rate_block = match model {
            Model::Hdl64S2 | Model::Hdl64S3 => 10,
            _ => 11,
        };
        Self { shots, model, rate_micros: blocks[rate_block], rate_block }
    }

    /// Returns the times of the shots of a bank, in microseconds from the azimuth of their block.
    pub(super) fn within(&self, bank: usize) -> [f64; 32] {
        std::array::from_fn(|j| within(self.model, bank, j))
    }
}

/// Returns the time of a shot of a bank, in microseconds from the first group of its firing; only
/// the banks of a VLS-128 differ.
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

/// An hour in nanoseconds: packet timestamps restart after it.
const HOUR: i64 = 3_600_000_000_000;

/// The mapping of packets to the log's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PacketClock {
    /// By packet timestamps: log time minus timestamp in nanoseconds, the median over the messages.
    Timestamps(i64),
    /// By message times, if packet timestamps do not change: nanoseconds between packets, which end
    /// at the time of their message.
    Nominal(i64),
}

impl PacketClock {
    /// Infers the mapping from the messages: their times and packets.
    pub fn infer<'a>(
        model: Model,
        mode: ReturnMode,
        messages: impl IntoIterator<Item = (i64, &'a [VelodynePacket])>,
    ) -> Self {
        let period = model.packet_micros() * if mode == ReturnMode::Dual { 0.5 } else { 1.0 };
        #[expect(clippy::cast_possible_truncation, reason = "a few milliseconds")]
        let nominal = Self::Nominal((period * 1000.0).round() as i64);
        if model == Model::Hdl64S1 {
            return nominal;
        }
        let mut offsets: Vec<i64> = Vec::new();
        let (mut timestamp, mut moves) = (None, false);
        for (nanos, packets) in messages {
            let Some(last) = packets.last() else { continue };
            let first = packets.first().map(|packet| packet.stamp.get());
            moves |= first != Some(last.stamp.get()) || timestamp.is_some_and(|s| s != last.stamp.get());
            timestamp = Some(last.stamp.get());
            let offset = nanos.saturating_sub(micros(last));
            let base = offsets.first().copied().unwrap_or(offset);
            offsets.push(offset.saturating_sub(nearest_hours(offset.saturating_sub(base))));
        }
        if !moves {
            return nominal;
        }
        let middle = offsets.len() / 2;
        offsets.sort_unstable();
        offsets.get(middle).map_or(nominal, |offset| Self::Timestamps(*offset))
    }

    /// Returns the log time of the first shot of packet `i` of a message.
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

/// Returns the whole hours nearest to `nanos`.
fn nearest_hours(nanos: i64) -> i64 {
    nanos.saturating_add(HOUR / 2).div_euclid(HOUR).saturating_mul(HOUR)
}
