//! Cases about timestamps: the true rate, jitter, gaps, clock changes, and invalid timestamps.

use super::prelude::*;

cases! {
    "rate-64000" [D20] "the fastest rate: 15 680 ns a row" =>
        single().with(|log| (log.rate, log.period) = (64_000, (TRUE_SECOND, 64_000))).blocks(3);
    "rate-odd" [D20] "a rate at which rows are no whole nanoseconds" =>
        Log::new(3000, 7).analog("V1", 1, -8, NONE).blocks(1);
    "rate-10" [D32 D20] "means or single samples: the file does not say" =>
        Log::new(10, 5).analog("V1", 1, -8, NONE).blocks(2).note("averaged", 0x18);
    "rate-0" [D27] "no rate, no times" =>
        single().with(|log| log.rate = 0).blocks(2).change_blocks(0, |block| block.truth = None)
            .note("rate_zero", 0x18);
    "jitter" [D21] "late stamps: the median counts, not the first" =>
        // The median delay is 200 ns. A constant delay cannot be distinguished from the true time.
        [400_000, 0, 100, 200, 300].into_iter().fold(single(), |log, late| log.block(5, late, 200));
    "nominal-stamps" [D21] "stamps at the nominal rate: their own slope is used" =>
        single().with(|log| log.period = (1_000_000_000, 1000)).blocks(3);
    "negative-nanoseconds" [D22] "a second was borrowed too few" =>
        plain().blocks(2)
            .change_blocks(0, |block| {
                for (seconds, nanoseconds) in [&mut block.realtime, &mut block.monotonic] {
                    (*seconds, *nanoseconds) = (*seconds + 1, *nanoseconds - 1_000_000_000);
                }
            })
            .note_at("negative_nanoseconds", |log| log.block_at(0));
    "gap" [D23] "three blocks that the logger lost" => {
        let lost = plain().since(15);
        plain().blocks(2).shifted(2, lost, lost).note_at("gap", |log| log.block_at(2))
    };
    "clock-backwards" [D24] "the logger was started again" =>
        plain().blocks(2).shifted(2, 60_000_000_000, -4_000_000_000_000)
            .note_at("clock_backwards", |log| log.block_at(2));
    "clock-step" [D25] "the clock of UTC was set, the rows went on" =>
        plain().blocks(3).shifted(3, 7_000_000_000, 0).clock_was_set()
            .note_at("clock_step", |log| log.block_at(3));
    "clock-step-back" [D25] "the clock of UTC was set back: times of rows still ascend" =>
        plain().blocks(3).shifted(3, -2_000_000_000, 0).clock_was_set()
            .note_at("clock_step", |log| log.block_at(3));
    "clock-step-of-years" [D25] "a logger without a battery clock got the time from the network" =>
        plain().blocks(2).shifted(4, 195_526_720_000_000_000, 0).clock_was_set()
            .note_at("clock_step", |log| log.block_at(2));
    "clock-step+gap" [D23 D25] "three blocks were lost, and the clock of UTC was set meanwhile" => {
        let lost = plain().since(15);
        plain().blocks(2).shifted(2, lost + 5_000_000_000, lost).clock_was_set()
            .note_at("gap", |log| log.block_at(2)).note_at("clock_step", |log| log.block_at(2))
    };
    "stamps-garbage" [D26] "one block's stamps are no times: its rows follow the others" =>
        plain().blocks(3)
            .with(|log| {
                log.blocks[1].realtime = (i64::MAX, i64::MIN);
                log.blocks[1].monotonic = (-1, 5_000_000_000);
            })
            .note_at("stamps_implausible", |log| log.block_at(1));
    "stamps-all-garbage" [D26] "no stamp is a time: rows follow the start time" =>
        plain().blocks(2).change_blocks(0, |block| block.realtime = (0x7f12_3456_789a_bcde, -1))
            .note_at("stamps_implausible", |log| log.block_at(0));
    "no-times-at-all" [D26] "neither stamps nor a start time" =>
        plain().with(|log| log.start = (i64::MIN, 0)).blocks(2)
            .change_blocks(0, |block| (block.realtime, block.truth) = ((i64::MAX, i64::MAX), None))
            .note_at("stamps_implausible", |log| log.block_at(0));
}
