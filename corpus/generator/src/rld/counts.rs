//! Cases about counts in the header that differ from the file: short blocks, cut files, extra rows,
//! and layouts without rows.

use super::prelude::*;

cases! {
    "last-block-short" [D14] "the last block may not be full" => short();
    "one-row" [D14] "a block of one row of five" => plain().block(1, 0, 0);
    "block-of-one" [D14] "a block for every row" => Log::new(1, 1).analog("V1", 1, -8, NONE).blocks(4).note("averaged", 0x18);
    "counts-disagree" [D15] "more blocks counted than rows make: the size decides" =>
        plain().blocks(3).with(|log| log.counts = Some((3, 7))).note("counts_disagree", 8);
    "counts-disagree+cut" [D15] "contradicting counts and a row cut in two" =>
        cut_at(plain().blocks(3).with(|log| log.counts = Some((9, 7))).note("counts_disagree", 8), |_| 3, 14);
    "cut-in-row" [D17] "every complete row before the cut" => cut_at(plain().blocks(3), |_| 5, 14);
    "cut-between-rows" [D17] "rows are missing, no byte is" => missing(plain().blocks(3), |log| log.row_len() * 2, 13);
    "cut-in-stamps" [D17] "a block whose stamps are cut has no rows" =>
        cut_at(plain().blocks(3), |log| 5 * log.row_len() + 12, 10);
    "cut-behind-stamps" [D17] "stamps without a row" => cut_at(plain().blocks(3), |log| 5 * log.row_len(), 10);
    "cut-to-header" [D17] "nothing left but the header" =>
        missing(plain().blocks(2), |log| log.bytes().len() - log.header_len(), 0);
    "cut-short-block" [D14 D17] "the cut lies in a last block that was not full" => cut_at(short(), |_| 1, 11);
    "header-behind" [D16] "a block more than the header counts" => behind();
    "header-behind+cut" [D16] "the same, and the power failed while it was written" =>
        behind().with(|log| log.cut = 2 * log.row_len() - 3).lose("trailing_bytes", |log| log.bytes().len() - 3);
    "garbage-like-a-block" [D16] "as long as a block, but its stamps follow nothing" => {
        let log = plain().blocks(2);
        let block = 32 + 5 * log.row_len();
        tailed(log, &vec![0; block])
    };
    "trailing-bytes" [D16] "bytes behind the last row that are no block" =>
        tailed(plain().blocks(2), b"\xde\xad\xbe\xef and more");
    "trailing-behind-short-block" [D14 D16] "bytes behind a block that was not full" => tailed(short(), &[0; 40]);
    "block-size-0" [D19] "rows in blocks of none" =>
        without_rows(plain().blocks(1).with(|log| log.block_size = 0).note("counts_disagree", 8));
    "no-channels" [D19] "rows of no bytes" =>
        without_rows(Log::new(1000, 5).with(|log| (log.counts, log.tail) = (Some((1, 5)), vec![0; 32])));
    "data-size-0" [D19] "values of no bytes" =>
        without_rows(single().with(|log| log.analog[0].size = 0).blocks(1).note("table_implausible", 64));
    "data-size-9" [D19] "values of nine bytes" =>
        without_rows(
            single().block(0, 0, 0).with(|log| (log.counts, log.tail) = (Some((1, 5)), vec![1; 45]))
                .with(|log| log.analog[0].size = 9).note("table_implausible", 64),
        );
    "endless-counts" [D19 D17] "counts of 2^32 blocks and 2^64 rows in a small file" =>
        // The header declares one huge block, so rows are read up to the end of the file.
        plain().blocks(1).with(|log| log.block_size = u32::MAX)
            .with(|log| log.counts = Some((u32::MAX, u64::MAX - u64::from(u32::MAX))))
            .note("counts_disagree", 8);
    "extra-word" [D28] "releases 2.0.0 and 2.0.1: a word without binary channels" =>
        Log::new(10, 1).analogs(&["V1", "V2"], 1, -8).with(|log| log.extra_word = true).blocks(4)
            .note("averaged", 0x18).note_at("extra_word", Log::header_len);
    "extra-word+cut" [D28 D17] "the same, cut: the stamps of the second block tell" =>
        cut_at(single().with(|log| log.extra_word = true).blocks(3).note_at("extra_word", Log::header_len), |_| 2, 14);
}

/// Returns a log with two full blocks and a block of two rows.
fn short() -> Log {
    plain().blocks(2).block(2, 0, 0)
}

/// Returns a log with three blocks whose header counts only two.
fn behind() -> Log {
    let log = plain().blocks(3).note_at("header_behind", |log| log.block_at(2));
    log.with(|log| (log.counts, log.readable) = (Some((2, 10)), Some(10)))
}

/// Removes as many bytes from the end of a log as `bytes` returns, so that it ends within a row or within timestamps.
/// `rows` is the number of complete rows.
fn cut_at(log: Log, bytes: fn(&Log) -> usize, rows: usize) -> Log {
    let (block, row) = (rows / 5, rows % 5);
    let log = log.with(|log| (log.cut, log.readable) = (bytes(log), Some(rows)));
    log.lose("cut", |log| log.block_at(block) + if row > 0 { 32 + row * log.row_len() } else { 0 })
}

/// Removes as many bytes from the end of a log as `bytes` returns, so that it ends between two rows.
fn missing(log: Log, bytes: fn(&Log) -> usize, rows: usize) -> Log {
    let log = log.with(|log| (log.cut, log.readable) = (bytes(log), Some(rows)));
    log.lose("rows_missing", |log| log.bytes().len())
}

/// Adds bytes after the last row.
fn tailed(log: Log, tail: &[u8]) -> Log {
    let log = log.with(|log| log.tail = tail.to_vec());
    log.lose("trailing_bytes", |log| log.bytes().len() - tail.len())
}

/// Expects that no rows are found, because the header does not determine their layout.
fn without_rows(log: Log) -> Log {
    log.with(|log| log.readable = Some(0)).lose("no_layout", Log::header_len)
}
