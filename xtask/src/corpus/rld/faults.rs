//! What known faults of the logger's software leave in rows.

use super::super::{Case, Made};
use super::log::Log;

pub(super) const CASES: &[Case] = &[
    Case::rld(
        "current-wraps",
        "releases up to 1.1.3 at 64 kSPS: a current past the end of its range",
        &["D33"],
        || {
            let log = wrapping(&[498, 499, -498, -499, -498, 499, 498, 497]);
            let at = log.block_at(0) + 32 + 2 * log.row_len();
            log.note("current_wraps", at).made()
        },
    ),
    Case::rld("current-wraps-to-the-end", "the same, and it never jumps back", &["D33"], || {
        let log = wrapping(&[-497, -498, -499, 498, 499, 499, 498, 498]);
        let at = log.block_at(0) + 32 + 3 * log.row_len();
        log.note("current_wraps", at).made()
    }),
    Case::rld("current-changes-its-sign", "no wrap: it passes through 0", &["D33"], || {
        wrapping(&[498, 499, 300, -300, -499, -498, 0, 499]).made()
    }),
    Case::rld("low-current-wraps-out-of-range", "no wrap that matters: the range bit is 0", &["D33"], || {
        let mut log = fast();
        for (i, row) in log.blocks[0].rows.iter_mut().enumerate() {
            row.words[0] = 0;
            row.values[0] = if i % 2 == 0 { 199_999_999 } else { -199_999_999 };
        }
        log.made()
    }),
    Case::rld(
        "means-of-negatives",
        "releases up to 2.0.0: 2^32 / 100 is added to the mean of a negative voltage",
        &["D34", "D32"],
        || {
            let mut log = slow();
            for (i, row) in (0..).zip(&mut log.blocks[0].rows) {
                row.values = vec![34_692_658 + 17 * i, 42_944_112 - 31 * i];
            }
            let at = log.block_at(0) + 32;
            log.note("averaged", 0x18).note("means_wrapped", at).made()
        },
    ),
    Case::rld("means-of-both-signs", "a value below 0: sums did not wrap", &["D34", "D32"], || {
        let mut log = slow();
        for (i, row) in (0..).zip(&mut log.blocks[0].rows) {
            row.values = vec![42_944_112, 3 - i];
        }
        log.note("averaged", 0x18).made()
    }),
    Case::rld(
        "validity-untrusted",
        "releases 1.1 to 1.1.2 without digital inputs: garbage in the word of range bits",
        &["D35", "D8"],
        validity_untrusted,
    ),
];

/// A block at 64 kSPS with a current of two ranges, the low one in range.
fn fast() -> Log {
    let mut log = Log::new(64_000, 8)
        .range("I1L_valid")
        .analog("I1L", 2, -11, 0)
        .analog("I1H", 2, -9, 0xFFFF)
        .blocks(1);
    log.version = 3;
    log
}

/// The same with these milliamperes in the high range.
fn wrapping(milliamperes: &[i64]) -> Log {
    let mut log = fast();
    for (row, value) in log.blocks[0].rows.iter_mut().zip(milliamperes) {
        row.words[0] = 0;
        row.values[1] = value * 1_000_000;
    }
    log
}

/// A block of means of 100 rows.
fn slow() -> Log {
    Log::new(10, 5).analog("V1", 1, -8, 0xFFFF).analog("V2", 1, -8, 0xFFFF).blocks(1)
}

fn validity_untrusted() -> Made {
    let mut log = Log::new(1000, 5)
        .range("I1L_valid")
        .range("I2L_valid")
        .analog("I1L", 2, -11, 0)
        .analog("I1H", 2, -9, 0xFFFF)
        .analog("I2L", 2, -11, 1)
        .analog("I2H", 2, -9, 0xFFFF)
        .blocks(2);
    log.version = 3;
    // 1 mA that both ranges agree on, then 30 mA that only the high one holds: the bits say 1 all the same.
    for (i, row) in log.blocks.iter_mut().flat_map(|block| &mut block.rows).enumerate() {
        row.words[0] = 0xB6DB_E8C3;
        row.values = if i < 6 {
            vec![100_000_000, 1_001_000, -50_000_000, -500_500]
        } else {
            vec![214_000_000, 30_000_000, -50_000_000, -500_500]
        };
    }
    let at = log.block_at(0) + 32;
    log.note("dirty_bits", at).note("validity_untrusted", at).made()
}
