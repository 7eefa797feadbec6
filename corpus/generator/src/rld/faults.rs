//! Cases with known faults of the logger's software, and cases in which bytes are missing or were
//! inserted, so that the following blocks are at other offsets.

use super::prelude::*;

cases! {
    "current-wraps" [D33] "releases up to 1.1.3 at 64 kSPS: a current past the end of its range" =>
        wrapping(&[498, 499, -498, -499, -498, 499, 498, 497]).note_at("current_wraps", |log| log.row_at(2));
    "current-wraps-to-the-end" [D33] "the same, and it never jumps back" =>
        wrapping(&[-497, -498, -499, 498, 499, 499, 498, 498]).note_at("current_wraps", |log| log.row_at(3));
    "current-changes-its-sign" [D33] "no wrap: it passes through 0" =>
        wrapping(&[498, 499, 300, -300, -499, -498, 0, 499]);
    "low-current-wraps-out-of-range" [D33] "no wrap that matters: the range bit is 0" =>
        fast().change_rows(|i, row| {
            row.words[0] = 0;
            row.values[0] = if i % 2 == 0 { 199_999_999 } else { -199_999_999 };
        });
    "means-of-negatives" [D34 D32] "releases up to 2.0.0: 2^32 / 100 is added to the mean of a negative voltage" =>
        means(|i| [34_692_658 + 17 * i, 42_944_112 - 31 * i]).note_at("means_wrapped", |log| log.row_at(0));
    "means-of-both-signs" [D34 D32] "a value below 0: sums did not wrap" => means(|i| [42_944_112, 3 - i]);
    "validity-untrusted" [D35 D8] "releases 1.1 to 1.1.2 without digital inputs: garbage in the word of range bits" =>
        Log::new(1000, 5).range("I1L_valid").range("I2L_valid").analog("I1L", 2, -11, 0).analog("I1H", 2, -9, NONE)
            .analog("I2L", 2, -11, 1).analog("I2H", 2, -9, NONE).with(|log| log.version = 3).blocks(2)
            .change_rows(|i, row| {
                // The first rows have 1 mA in both ranges. The other rows have 30 mA, which only
                // the high range can measure, but the valid bit is 1 in all rows.
                let (low, high) = if i < 6 { (100_000_000, 1_001_000) } else { (214_000_000, 30_000_000) };
                *row = Row { words: vec![0xB6DB_E8C3], values: vec![low, high, -50_000_000, -500_500] };
            })
            .note_at("dirty_bits", |log| log.row_at(0)).note_at("validity_untrusted", |log| log.row_at(0));
    "byte-lost" [D37] "a byte is missing in a row: its block is left out" =>
        plain().blocks(5).with_edit(1, 60, 1, 0).leave_out(1..2);
    "bytes-added" [D37] "seven bytes more in a row: its block is left out" =>
        plain().blocks(5).with_edit(2, 70, 0, 7).leave_out(2..3);
    "byte-lost-in-first-block" [D37] "the first block is too short: its own times tell how long it should be" =>
        plain().blocks(5).with_edit(0, 40, 1, 0).leave_out(0..1);
    "byte-lost-in-block-times" [D37] "a byte of block times is missing: they do not tell where the block before ends" =>
        plain().blocks(6).with_edit(2, 5, 1, 0).leave_out(1..3);
    "bytes-lost-in-three-blocks" [D37] "one after the other: each block of a wrong length confirms the one before" =>
        plain().blocks(6).with_edit(1, 50, 1, 0).with_edit(2, 50, 2, 0).with_edit(3, 50, 0, 1)
            .leave_out(1..2).leave_out(2..3).leave_out(3..4);
    "page-lost" [D37] "4096 bytes are missing, with 30 whole blocks and parts of two" => {
        let log = plain().blocks(40);
        let at = log.block_at(3) + 50;
        log.edit(at, 4096, []).leave_out(3..35)
    };
    "range-doubled" [D37] "1024 bytes are there twice: the copies of rows are left out" => {
        let log = plain().blocks(14);
        let (bytes, end) = (log.bytes(), log.block_at(10) + 50);
        log.edit(end, 0, &bytes[end - 1024..end]).leave_out(10..11)
    };
    "byte-lost-and-gap" [D37 D23] "the logger lost blocks where a byte is missing: two more blocks tell where reading resumes" => {
        let lost = plain().since(15) + 1_700_000;
        plain().blocks(2).shifted(3, lost, lost).with_edit(1, 60, 1, 0).leave_out(1..2)
    };
    "byte-lost+last-block-short" [D37 D14] "the last block is as long as it should be" =>
        plain().blocks(3).block(2, 0, 0).with_edit(1, 60, 1, 0).leave_out(1..2);
    "bytes-lost-in-the-last-block" [D37] "if bytes are missing before, a last block of a wrong length is left out" =>
        plain().blocks(4).with_edit(1, 60, 1, 0).with_edit(3, 60, 1, 0).leave_out(1..2).leave_out(3..4);
    "byte-lost-without-times" [D37 D26] "no later block has stamps, so nothing tells where rows are: they are read as counted" =>
        // All values are 0, and all timestamps consist of the byte 0x7F, so that a shift by a byte
        // is visible at their border.
        single().blocks(4).with(|log| (log.cut, log.readable) = (1, Some(19)))
            .change_rows(|i, row| row.values[0] = if [9, 14].contains(&i) { 0x7f00_0000 } else { 0 })
            .change_blocks(2, |block| {
                block.realtime = (0x7f7f_7f7f_7f7f_7f7f, 0x7f7f_7f7f_7f7f_7f7f);
                block.monotonic = (0x7f7f_7f7f_7f7f_7f7f, 0x007f_7f7f_7f7f_7f7f);
            })
            .note_at("stamps_implausible", |log| log.block_at(2))
            .lose("cut", |log| log.block_at(3) + 32 + 4 * log.row_len());
}

/// Returns a block at 64,000 rows per second with a current in two ranges. The low range is valid.
fn fast() -> Log {
    let log = Log::new(64_000, 8).range("I1L_valid").analog("I1L", 2, -11, 0).analog("I1H", 2, -9, NONE);
    log.blocks(1).with(|log| log.version = 3)
}

/// Returns a block whose high range has these values in milliamperes.
fn wrapping(milliamperes: &[i64]) -> Log {
    fast().change_rows(|i, row| {
        row.words[0] = 0;
        row.values[1] = milliamperes[i] * 1_000_000;
    })
}

/// Returns a block whose rows are the means of 100 converter samples.
fn means(values: impl Fn(i64) -> [i64; 2]) -> Log {
    let log = Log::new(10, 5).analogs(&["V1", "V2"], 1, -8).blocks(1).note("averaged", 0x18);
    log.change_rows(|i, row| row.values = values(i64::from(u32_of(i))).into())
}

impl Log {
    /// Removes bytes of a block and inserts others. `at` is the offset from the start of the block.
    fn with_edit(self, block: usize, at: usize, removed: usize, added: usize) -> Self {
        let at = self.block_at(block) + at;
        self.edit(at, removed, vec![0x5a; added])
    }
}
