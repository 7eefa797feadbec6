//! Large RLD logs of a load that sleeps and wakes. They have 64,000 rows per second, blocks of one
//! second, eight bits, four voltages, and two currents in two ranges each.

use std::fs::File;
use std::io::{BufWriter, Write};

use anyhow::{Context, Result};

use super::log::{BOOT, Log, NONE, T0, TRUE_SECOND, pair};
use crate::large::{Large, Order};
use crate::lay::{With as _, lay, random_numbers};

pub(super) const LARGE: Large = Large { stem: "power", default: 400_000_000, from: None, write };

const RATE: u32 = 64_000;

/// Size in bytes of a row, which has a word of bits and eight values.
const ROW: u64 = 36;

/// Returns a log with eight bits and eight values, without rows.
fn log() -> Log {
    let log = ["DI1", "DI2", "DI3", "DI4", "DI5", "DI6"].into_iter().fold(Log::new(64_000, RATE), Log::bit);
    let log =
        log.range("I1L_valid").range("I2L_valid").with(|log| log.comment = b"synthetic load\0\0".into());
    let log =
        log.analogs(&["V1", "V2", "V3", "V4"], 1, -8).analog("I1L", 2, -11, 6).analog("I1H", 2, -9, NONE);
    log.analog("I2L", 2, -11, 7).analog("I2H", 2, -9, NONE)
}

fn write(order: &Order, out: &mut BufWriter<File>) -> Result<String> {
    let block = 32 + u64::from(RATE) * ROW;
    let blocks = u32::try_from((order.size / block).max(1))?;
    let log = log().with(|log| log.counts = Some((blocks, u64::from(blocks) * u64::from(RATE))));
    out.write_all(&log.header())?;
    let mut noise = random_numbers();
    for number in 0..blocks {
        let at = i64::from(number) * TRUE_SECOND;
        out.write_all(&lay![pair(T0 + at), pair(BOOT + at)])?;
        for i in 0..RATE {
            let number = u64::from(number) * u64::from(RATE) + u64::from(i);
            out.write_all(&row(number, noise.next().context("endless")?))?;
        }
    }
    Ok(format!("{blocks} blocks"))
}

/// Returns row `i`. In each quarter of a second, the load is awake for 25 ms with a current of 30
/// mA, and asleep with 20 µA otherwise.
fn row(i: u64, noise: u64) -> Vec<u8> {
    let hash = i32::try_from(noise >> 48).expect("16 bits");
    let awake = i % 16_000 < 1_600;
    let word = u32::from(awake) | u32::from(i % 64_000 < 32_000) << 1 | if awake { 0 } else { 0b1100_0000 };
    let (low, high) =
        if awake { (200_000_000, 30_000_000 + hash) } else { (2_000_000 + hash, 20_000 + hash / 100) };
    let values = [330_000_000 + hash, 180_000_000 - hash, hash, -hash, low, high, low / 2, high / 2];
    lay![word, values]
}
