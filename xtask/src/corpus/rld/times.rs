//! Stamps and times: the true rate, jitter, gaps, clocks that are set, stamps that are no times.

use super::super::{Case, Made};
use super::log::{Log, T0};
use super::{plain, single};

pub(super) const CASES: &[Case] = &[
    Case::rld("rate-64000", "the fastest rate: 15 680 ns a row", &["D20"], || {
        let mut log = single().blocks(0);
        log.rate = 64_000;
        log.period = (1_003_520_000, 64_000);
        log.blocks(3).made()
    }),
    Case::rld("rate-odd", "a rate at which rows are no whole nanoseconds", &["D20"], || {
        Log::new(3000, 7).analog("V1", 1, -8, 0xFFFF).blocks(1).made()
    }),
    Case::rld("rate-10", "means or single samples: the file does not say", &["D32", "D20"], || {
        let log = Log::new(10, 5).analog("V1", 1, -8, 0xFFFF).blocks(2);
        log.note("averaged", 0x18).made()
    }),
    Case::rld("rate-0", "no rate, no times", &["D27"], || {
        let mut log = single().blocks(2);
        log.rate = 0;
        log.blocks.iter_mut().for_each(|block| block.truth = None);
        log.note("rate_zero", 0x18).made()
    }),
    Case::rld("jitter", "late stamps: the median counts, not the first", &["D21"], || {
        let late = [400_000, 0, 100, 200, 300];
        let mut log = single();
        for late in late {
            // Late by 200 in the middle: that is what cannot be told from the truth.
            log.block_late(5, late).truth = None;
        }
        for i in 0..late.len() {
            log.blocks[i].truth = Some(T0 + log.since(5 * i) + 200);
        }
        log.made()
    }),
    Case::rld("nominal-stamps", "stamps at the nominal rate: their own slope is used", &["D21"], || {
        let mut log = single();
        log.period = (1_000_000_000, 1000);
        log.blocks(3).made()
    }),
    Case::rld("negative-nanoseconds", "a second was borrowed too few", &["D22"], || {
        let mut log = plain().blocks(2);
        for block in &mut log.blocks {
            for stamp in [&mut block.realtime, &mut block.monotonic] {
                *stamp = (stamp.0 + 1, stamp.1 - 1_000_000_000);
            }
        }
        let at = log.block_at(0);
        log.note("negative_nanoseconds", at).made()
    }),
    Case::rld("gap", "three blocks that the logger lost", &["D23"], || {
        let mut log = plain().blocks(2);
        let lost = log.since(15);
        for _ in 0..2 {
            log.block_late(5, 0);
            log.shift(lost, lost);
        }
        let at = log.block_at(2);
        log.note("gap", at).made()
    }),
    Case::rld("clock-backwards", "the logger was started again", &["D24"], || {
        let mut log = plain().blocks(2);
        for _ in 0..2 {
            log.block_late(5, 0);
            log.shift(60_000_000_000, -4_000_000_000_000);
        }
        let at = log.block_at(2);
        log.note("clock_backwards", at).made()
    }),
    Case::rld("clock-step", "the clock of UTC was set, the rows went on", &["D25"], || {
        let mut log = plain().blocks(3);
        for _ in 0..3 {
            log.block_late(5, 0);
            log.shift(7_000_000_000, 0);
        }
        let at = log.block_at(3);
        log.note("clock_step", at).made()
    }),
    Case::rld(
        "stamps-garbage",
        "one block's stamps are no times: its rows follow the others",
        &["D26"],
        || {
            let mut log = plain().blocks(3);
            log.blocks[1].realtime = (i64::MAX, i64::MIN);
            log.blocks[1].monotonic = (-1, 5_000_000_000);
            let at = log.block_at(1);
            log.note("stamps_implausible", at).made()
        },
    ),
    Case::rld("stamps-all-garbage", "no stamp is a time: rows follow the start time", &["D26"], || {
        let mut log = plain().blocks(2);
        for block in &mut log.blocks {
            block.realtime = (0x7f12_3456_789a_bcde, -1);
        }
        let at = log.block_at(0);
        log.note("stamps_implausible", at).made()
    }),
    Case::rld("no-times-at-all", "neither stamps nor a start time", &["D26"], no_times),
];

fn no_times() -> Made {
    let mut log = plain().blocks(2);
    log.start = (i64::MIN, 0);
    for block in &mut log.blocks {
        block.realtime = (i64::MAX, i64::MAX);
        block.truth = None;
    }
    let at = log.block_at(0);
    log.note("stamps_implausible", at).made()
}
