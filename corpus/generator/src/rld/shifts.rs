//! Bytes that are missing or were added: blocks behind them are at other places.

use super::log::Log;
use super::{plain, single};
use crate::cases;

cases! {
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
        // All values are 0 and all stamps 0x7f, so that a shift by a byte shows where they meet.
        single().blocks(4)
            .with(|log| {
                for (i, row) in log.rows_mut().enumerate() {
                    row.values[0] = if [9, 14].contains(&i) { 0x7f00_0000 } else { 0 };
                }
                for block in &mut log.blocks[2..] {
                    block.realtime = (0x7f7f_7f7f_7f7f_7f7f, 0x7f7f_7f7f_7f7f_7f7f);
                    block.monotonic = (0x7f7f_7f7f_7f7f_7f7f, 0x007f_7f7f_7f7f_7f7f);
                }
                (log.cut, log.readable) = (1, Some(19));
            })
            .note_at("stamps_implausible", |log| log.block_at(2))
            .lose("cut", |log| log.block_at(3) + 32 + 4 * log.row_len());
}

impl Log {
    /// Removes bytes of a block and adds others, after `at` bytes of it.
    fn with_edit(self, block: usize, at: usize, removed: usize, added: usize) -> Self {
        let at = self.block_at(block) + at;
        self.edit(at, removed, vec![0x5a; added])
    }
}
