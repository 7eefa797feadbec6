//! Counts in the header against what is in the file: short blocks, cuts, rows too many, layouts without rows.

use super::super::{Case, Made};
use super::log::Log;
use super::{plain, single};

pub(super) const CASES: &[Case] = &[
    Case::rld("last-block-short", "the last block may not be full", &["D14"], || short().made()),
    Case::rld("one-row", "a block of one row of five", &["D14"], || {
        let mut log = plain();
        log.block_late(1, 0);
        log.made()
    }),
    Case::rld("block-of-one", "a block for every row", &["D14"], || {
        Log::new(1, 1).analog("V1", 1, -8, 0xFFFF).blocks(4).made()
    }),
    Case::rld("counts-disagree", "more blocks counted than rows make: the size decides", &["D15"], || {
        let mut log = plain().blocks(3);
        log.counts = Some((3, 7));
        log.note("counts_disagree", 8).made()
    }),
    Case::rld("counts-disagree+cut", "contradicting counts and a row cut in two", &["D15"], || {
        let mut log = plain().blocks(3);
        log.counts = Some((9, 7));
        log.cut = 3;
        cut_at(log.note("counts_disagree", 8), 14)
    }),
    Case::rld("cut-in-row", "every complete row before the cut", &["D17"], || {
        let mut log = plain().blocks(3);
        log.cut = 5;
        cut_at(log, 14)
    }),
    Case::rld("cut-between-rows", "rows are missing, no byte is", &["D17"], || {
        let mut log = plain().blocks(3);
        log.cut = 2 * log.row_len();
        let end = log.bytes().len();
        log.state("truncated").lose("rows_missing", end, end).made_with(13)
    }),
    Case::rld("cut-in-stamps", "a block whose stamps are cut has no rows", &["D17"], || {
        let mut log = plain().blocks(3);
        log.cut = 5 * log.row_len() + 12;
        cut_at(log, 10)
    }),
    Case::rld("cut-behind-stamps", "stamps without a row", &["D17"], || {
        let mut log = plain().blocks(3);
        log.cut = 5 * log.row_len();
        cut_at(log, 10)
    }),
    Case::rld("cut-to-header", "nothing left but the header", &["D17"], || {
        let mut log = plain().blocks(2);
        log.cut = log.bytes().len() - log.header_len();
        let end = log.header_len();
        log.state("truncated").lose("rows_missing", end, end).made_with(0)
    }),
    Case::rld("cut-short-block", "the cut lies in a last block that was not full", &["D14", "D17"], || {
        let mut log = short();
        log.cut = 1;
        cut_at(log, 11)
    }),
    Case::rld("header-behind", "a block more than the header counts", &["D16"], || {
        let mut log = plain().blocks(3);
        log.counts = Some((2, 10));
        let at = log.block_at(2);
        log.note("header_behind", at).made_with(10)
    }),
    Case::rld("header-behind+cut", "the same, and the power failed while it was written", &["D16"], || {
        let mut log = plain().blocks(3);
        log.counts = Some((2, 10));
        log.cut = 2 * log.row_len() - 3;
        let (at, end) = (log.block_at(2), log.bytes().len());
        log.note("header_behind", at).state("damaged").lose("trailing_bytes", end - 3, end).made_with(10)
    }),
    Case::rld("garbage-like-a-block", "as long as a block, but its stamps follow nothing", &["D16"], || {
        let mut log = plain().blocks(2);
        log.tail = vec![0; 32 + 5 * log.row_len()];
        let (from, to) = (log.block_at(1) + log.tail.len(), log.bytes().len());
        log.state("damaged").lose("trailing_bytes", from, to).made()
    }),
    Case::rld("trailing-bytes", "bytes behind the last row that are no block", &["D16"], || {
        let mut log = plain().blocks(2);
        log.tail = b"\xde\xad\xbe\xef and more".to_vec();
        let to = log.bytes().len();
        let from = to - log.tail.len();
        log.state("damaged").lose("trailing_bytes", from, to).made()
    }),
    Case::rld(
        "trailing-behind-short-block",
        "bytes behind a block that was not full",
        &["D14", "D16"],
        || {
            let mut log = short();
            log.tail = vec![0; 40];
            let to = log.bytes().len();
            log.state("damaged").lose("trailing_bytes", to - 40, to).made()
        },
    ),
    Case::rld("block-size-0", "rows in blocks of none", &["D19"], || {
        let mut log = plain().blocks(1);
        log.block_size = 0;
        without_rows(log, true)
    }),
    Case::rld("no-channels", "rows of no bytes", &["D19"], || {
        let mut log = Log::new(1000, 5);
        log.counts = Some((1, 5));
        log.tail = vec![0; 32];
        without_rows(log, false)
    }),
    Case::rld("data-size-0", "values of no bytes", &["D19"], || {
        let mut log = single();
        log.analog[0].size = 0;
        let log = log.blocks(1);
        without_rows(log.note("table_implausible", 64), false)
    }),
    Case::rld("data-size-9", "values of nine bytes", &["D19"], || {
        let mut log = single().blocks(1);
        log.analog[0].size = 9;
        log.blocks[0].rows.clear();
        log.counts = Some((1, 5));
        log.tail = vec![1; 45];
        without_rows(log.note("table_implausible", 64), false)
    }),
    Case::rld(
        "endless-counts",
        "counts of 2^32 blocks and 2^64 rows in a small file",
        &["D19", "D17"],
        || {
            let mut log = plain().blocks(2);
            log.block_size = u32::MAX;
            log.counts = Some((u32::MAX, u64::MAX - u64::from(u32::MAX)));
            // One huge block: its rows are there as far as the file goes, stamps of the second one among them.
            log.blocks.truncate(1);
            let end = log.bytes().len();
            log.note("counts_disagree", 8).state("complete").made_at(end)
        },
    ),
    Case::rld("extra-word", "releases 2.0.0 and 2.0.1: a word without binary channels", &["D28"], || {
        let mut log = Log::new(10, 1).analog("V1", 1, -8, 0xFFFF).analog("V2", 1, -8, 0xFFFF);
        log.extra_word = true;
        let log = log.blocks(4);
        let at = log.header_len();
        log.note("extra_word", at).made()
    }),
    Case::rld(
        "extra-word+cut",
        "the same, cut: the stamps of the second block tell",
        &["D28", "D17"],
        || {
            let mut log = single();
            log.extra_word = true;
            let mut log = log.blocks(3);
            log.cut = 2;
            let at = log.header_len();
            cut_at(log.note("extra_word", at), 14)
        },
    ),
];

/// Two full blocks and one of two rows.
fn short() -> Log {
    let mut log = plain().blocks(2);
    log.block_late(2, 0);
    log
}

/// A log that is cut inside a row or inside stamps, behind `rows` whole rows.
fn cut_at(log: Log, rows: usize) -> Made {
    let end = log.bytes().len();
    let (block, row) = (rows / 5, rows % 5);
    let start = log.block_at(block) + if row > 0 { 32 + row * log.row_len() } else { 0 };
    log.state("truncated").lose("cut", start, end).made_with(rows)
}

/// A log whose header does not allow to find rows.
fn without_rows(mut log: Log, counts: bool) -> Made {
    let (start, end) = (log.header_len(), log.bytes().len());
    if counts {
        log = log.note("counts_disagree", 8);
    }
    log.state("damaged").lose("no_layout", start, end).made_with(0)
}

impl Log {
    fn made_at(self, end: usize) -> Made {
        let made = self.made();
        assert_eq!(made.bytes.len(), end);
        made
    }
}
