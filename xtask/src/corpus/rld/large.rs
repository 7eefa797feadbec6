//! Large RLD logs: 64 kSPS, eight bits, four voltages and two currents of two ranges each, blocks of a second, values like
//! a load that sleeps and wakes.

use std::fs::File;
use std::io::{BufWriter, Write};

use anyhow::Result;

use super::lay::{Channel, LeadIn, stamps};
use crate::corpus::large::{Large, Order};

pub(super) const LARGE: Large = Large { stem: "power", default: 400_000_000, from: None, write };

const RATE: u32 = 64_000;

/// Bytes of a row: a word and eight values.
const ROW: u64 = 36;

fn channels() -> (Vec<Channel>, Vec<Channel>) {
    let channel =
        |name: &str, unit, scale, size, link| Channel { unit, scale, size, link, name: name.into() };
    let bits = ["DI1", "DI2", "DI3", "DI4", "DI5", "DI6"].map(|name| channel(name, 3, 0, 0, 0xFFFF));
    let ranges = ["I1L_valid", "I2L_valid"].map(|name| channel(name, 4, 0, 0, 0xFFFF));
    let volts = ["V1", "V2", "V3", "V4"].map(|name| channel(name, 1, -8, 4, 0xFFFF));
    let amps = [
        channel("I1L", 2, -11, 4, 6),
        channel("I1H", 2, -9, 4, 0xFFFF),
        channel("I2L", 2, -11, 4, 7),
        channel("I2H", 2, -9, 4, 0xFFFF),
    ];
    (bits.into_iter().chain(ranges).collect(), volts.into_iter().chain(amps).collect())
}

fn write(order: &Order, out: &mut BufWriter<File>) -> Result<String> {
    let block = 32 + u64::from(RATE) * ROW;
    let blocks = u32::try_from((order.size / block).max(1))?;
    let (binary, analog) = channels();
    let comment = b"synthetic load\0\0";
    let lead_in = LeadIn {
        magic: *b"%RLD",
        version: 4,
        header_length: u16::try_from(56 + comment.len() + 28 * 16)?,
        block_size: RATE,
        block_count: blocks,
        sample_count: u64::from(blocks) * u64::from(RATE),
        rate: u16::try_from(RATE)?,
        mac: [0x12, 0x34, 0x56, 0x78, 0x90, 0xab],
        start: (1_700_000_000, 0),
        comment_length: u32::try_from(comment.len())?,
        binary: 8,
        analog: 8,
    };
    out.write_all(&lead_in.bytes())?;
    out.write_all(comment)?;
    for channel in binary.iter().chain(&analog) {
        out.write_all(&channel.bytes())?;
    }
    let mut noise = 1u64;
    for number in 0..u64::from(blocks) {
        let at = number * 1_003_520_000;
        let pair = |base: u64| {
            (i64::try_from((base + at) / 1_000_000_000), i64::try_from((base + at) % 1_000_000_000))
        };
        let (real, mono) = (pair(1_700_000_000_000_000_000), pair(5_000_000_000_000));
        out.write_all(&stamps((real.0?, real.1?), (mono.0?, mono.1?)))?;
        for i in 0..u64::from(RATE) {
            out.write_all(&row(number * u64::from(RATE) + i, &mut noise))?;
        }
    }
    Ok(format!("{blocks} blocks"))
}

/// Asleep at 20 uA for most of the time, awake at 30 mA for 25 ms of each quarter of a second.
fn row(i: u64, noise: &mut u64) -> [u8; 36] {
    *noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let hash = i32::try_from(*noise >> 48).expect("16 bits");
    let awake = i % 16_000 < 1_600;
    let word = u32::from(awake) | u32::from(i % 64_000 < 32_000) << 1 | if awake { 0 } else { 0b1100_0000 };
    let (low, high) =
        if awake { (200_000_000, 30_000_000 + hash) } else { (2_000_000 + hash, 20_000 + hash / 100) };
    let values = [330_000_000 + hash, 180_000_000 - hash, hash, -hash, low, high, low / 2, high / 2];
    let mut row = [0; 36];
    row[..4].copy_from_slice(&word.to_le_bytes());
    for (to, value) in row[4..].chunks_exact_mut(4).zip(values) {
        to.copy_from_slice(&value.to_le_bytes());
    }
    row
}
