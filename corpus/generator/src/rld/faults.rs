//! Rows with known faults of the logger's software.

use super::log::{Log, NONE};
use crate::cases;

cases! {
    "current-wraps" [D33] "releases up to 1.1.3 at 64 kSPS: a current past the end of its range" =>
        wrapping(&[498, 499, -498, -499, -498, 499, 498, 497]).note_at("current_wraps", |log| log.row_at(2));
    "current-wraps-to-the-end" [D33] "the same, and it never jumps back" =>
        wrapping(&[-497, -498, -499, 498, 499, 499, 498, 498]).note_at("current_wraps", |log| log.row_at(3));
    "current-changes-its-sign" [D33] "no wrap: it passes through 0" =>
        wrapping(&[498, 499, 300, -300, -499, -498, 0, 499]);
    "low-current-wraps-out-of-range" [D33] "no wrap that matters: the range bit is 0" =>
        fast().with(|log| {
            for (row, sign) in log.rows_mut().zip([1, -1].into_iter().cycle()) {
                row.words[0] = 0;
                row.values[0] = sign * 199_999_999;
            }
        });
    "means-of-negatives" [D34 D32] "releases up to 2.0.0: 2^32 / 100 is added to the mean of a negative voltage" =>
        means(|i| [34_692_658 + 17 * i, 42_944_112 - 31 * i]).note_at("means_wrapped", |log| log.row_at(0));
    "means-of-both-signs" [D34 D32] "a value below 0: sums did not wrap" => means(|i| [42_944_112, 3 - i]);
    "validity-untrusted" [D35 D8] "releases 1.1 to 1.1.2 without digital inputs: garbage in the word of range bits" =>
        Log::new(1000, 5).range("I1L_valid").range("I2L_valid").analog("I1L", 2, -11, 0).analog("I1H", 2, -9, NONE)
            .analog("I2L", 2, -11, 1).analog("I2H", 2, -9, NONE).blocks(2)
            .with(|log| {
                log.version = 3;
                // 1 mA in both ranges, then 30 mA that only the high range holds: the bits say 1 in
                // both cases.
                for (i, row) in log.rows_mut().enumerate() {
                    let (low, high) = if i < 6 { (100_000_000, 1_001_000) } else { (214_000_000, 30_000_000) };
                    row.words[0] = 0xB6DB_E8C3;
                    row.values = vec![low, high, -50_000_000, -500_500];
                }
            })
            .note_at("dirty_bits", |log| log.row_at(0)).note_at("validity_untrusted", |log| log.row_at(0));
}

/// Returns a block at 64 kSPS with a current of two ranges, with the low range valid.
fn fast() -> Log {
    let log = Log::new(64_000, 8).range("I1L_valid").analog("I1L", 2, -11, 0).analog("I1H", 2, -9, NONE);
    log.blocks(1).with(|log| log.version = 3)
}

/// Sets the high range to these milliamperes.
fn wrapping(milliamperes: &[i64]) -> Log {
    fast().with(|log| {
        for (row, value) in log.rows_mut().zip(milliamperes) {
            row.words[0] = 0;
            row.values[1] = value * 1_000_000;
        }
    })
}

/// Returns a block of means of 100 rows.
fn means(values: impl Fn(i64) -> [i64; 2]) -> Log {
    let log = Log::new(10, 5).analog("V1", 1, -8, NONE).analog("V2", 1, -8, NONE).blocks(1);
    log.note("averaged", 0x18).with(|log| {
        for (i, row) in (0..).zip(log.rows_mut()) {
            row.values = values(i).into();
        }
    })
}
