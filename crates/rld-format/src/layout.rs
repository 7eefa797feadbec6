//! Offsets of rows and values. They follow from the header, so the offset of any row can be
//! computed.

use rovelog_core::internal::text::count;
use rovelog_core::internal::wire::{I32Le, I64Le};
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

use crate::wire::{BLOCK_TIMES_LEN, BlockTimes, Header};

/// Location of an analog value in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Offset of the first byte within the row.
    pub offset: usize,
    /// Size in bytes, 1 to 8. The value is a little-endian two's-complement integer.
    pub size: usize,
}

/// Offsets of rows within the file, and of values within a row. See "Data Block Offsets" in the
/// specification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Offset of the first block from the start of the file. This is also the size of the header.
    pub header: u64,
    /// Number of 32-bit words before the analog values of a row.
    pub words: usize,
    /// Locations of the analog values, in the order of the channels.
    pub slots: Vec<Slot>,
    /// Size of a row in bytes.
    pub row: usize,
    /// Number of rows in a full block.
    pub block_rows: u64,
    /// Size of a full block in bytes.
    pub block: u64,
}

/// Blocks that follow each other without missing or added bytes between them. A run ends at the end
/// of the file, or before blocks that are skipped because their total length is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockRun {
    /// Offset of the first block of the run.
    pub(crate) at: u64,
    /// Number of rows in the file before this run, including the rows of skipped blocks.
    pub(crate) before: u64,
    /// Number of rows in the blocks that were skipped before this run, because bytes are missing or
    /// were added.
    pub(crate) left_out: u64,
}

impl BlockRun {
    /// Returns the run that starts with the first block of a file, at offset `at`.
    pub(crate) fn from(at: u64) -> Self {
        Self { at, before: 0, left_out: 0 }
    }
}

impl Layout {
    /// Creates the layout for a header. The first block is at offset `header_end`. If `extra_word`
    /// is true, each row starts with an additional word, as written by releases 2.0 to 2.0.1 for
    /// logs without binary channels.
    ///
    /// # Errors
    /// Returns the reason as text if a size in the header does not allow rows to be located.
    pub fn of(header: &Header, header_end: u64, extra_word: bool) -> Result<Self, String> {
        let lead_in = &header.lead_in;
        let binary = usize::from(lead_in.binary_count.get());
        let words = binary.div_ceil(32) + usize::from(extra_word);
        let mut at = 4 * words;
        let mut slots = Vec::with_capacity(header.channels.len().saturating_sub(binary));
        for channel in header.channels.iter().skip(binary) {
            let size = usize::from(channel.data_size.get());
            if !(1..=8).contains(&size) {
                return Err(format!(
                    "channel {:?} has values of {}",
                    channel.name_text(),
                    count(size, "byte")
                ));
            }
            slots.push(Slot { offset: at, size });
            at += size;
        }
        let block_rows = u64::from(lead_in.data_block_size.get());
        let declared = lead_in.sample_count.get() > 0 || lead_in.data_block_count.get() > 0;
        if declared && block_rows == 0 {
            return Err("the header states blocks of 0 rows".to_owned());
        }
        if declared && at == 0 {
            return Err("the header states rows without channels".to_owned());
        }
        // This does not overflow: a block has at most 2^32 rows of 2^20 bytes.
        let block = BLOCK_TIMES_LEN + block_rows * at as u64;
        Ok(Self { header: header_end, words, slots, row: at, block_rows, block })
    }

    /// Returns the total size in bytes of the blocks for `rows` rows. All blocks but the last are
    /// full.
    pub fn body(&self, rows: u64) -> u128 {
        if self.block_rows == 0 {
            return 0;
        }
        let (full, rest) = (rows / self.block_rows, rows % self.block_rows);
        let last =
            if rest > 0 { u128::from(BLOCK_TIMES_LEN) + u128::from(rest) * self.row as u128 } else { 0 };
        u128::from(full) * u128::from(self.block) + last
    }

    /// Returns the number of complete rows in consecutive blocks with a total size of `len` bytes.
    /// If the last block ends within its block times, it has no rows.
    pub fn rows_in(&self, len: u64) -> u64 {
        if self.row == 0 {
            return 0;
        }
        let (full, tail) = (len / self.block, len % self.block);
        let rest = tail.checked_sub(BLOCK_TIMES_LEN).map_or(0, |rows| rows / self.row as u64);
        full * self.block_rows + rest.min(self.block_rows)
    }

    /// Returns the offset of a row from the start of the file.
    pub fn row_at(&self, row: u64) -> u64 {
        self.header + self.row_from(row)
    }

    /// Returns the offset of a row from the start of the first block.
    pub(crate) fn row_from(&self, row: u64) -> u64 {
        let (block, rest) = (row / self.block_rows, row % self.block_rows);
        block * self.block + BLOCK_TIMES_LEN + rest * self.row as u64
    }

    /// Returns the offset of a block from the start of the file.
    pub fn block_at(&self, block: u64) -> u64 {
        self.header + block * self.block
    }

    /// Returns a reference to the times of a block. Returns `None` if the file ends within these
    /// times.
    pub(crate) fn block_times<'a>(&self, file: &'a [u8], block: u64) -> Option<&'a BlockTimes> {
        times_at(file, self.block_at(block))
    }

    /// Returns the number of blocks that are needed for `rows` rows.
    pub fn blocks(&self, rows: u64) -> u64 {
        if self.block_rows == 0 { 0 } else { rows.div_ceil(self.block_rows) }
    }
}

/// Returns a reference to the block times at offset `at`. Returns `None` if the file ends within
/// these times.
pub(crate) fn times_at(file: &[u8], at: u64) -> Option<&BlockTimes> {
    let from = usize::try_from(at).ok()?;
    BlockTimes::ref_from_prefix(file.get(from..)?).ok().map(|(block_times, _)| block_times)
}

/// Returns the analog value stored in `bytes`, sign extended. `bytes` must have 1 to 8 bytes.
#[inline]
pub(crate) fn value(bytes: &[u8]) -> i64 {
    if let Ok(value) = I32Le::ref_from_bytes(bytes) {
        return value.get().into();
    }
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    let (wide, unused): (I64Le, _) = (zerocopy::transmute!(wide), 64 - 8 * bytes.len());
    wide.get() << unused >> unused
}

/// Returns references to the values at `offset` within each row of `rows`. `row` is the size of a
/// row in bytes.
#[inline]
pub(crate) fn column<'a, T>(rows: &'a [u8], row: usize, offset: usize) -> impl Iterator<Item = &'a T>
where
    T: FromBytes + KnownLayout + Immutable + Unaligned + 'a,
{
    rows.chunks_exact(row).map(move |row| {
        T::ref_from_bytes(&row[offset..offset + size_of::<T>()]).expect("unaligned, of this size")
    })
}

/// Returns the analog values in `slot` of each row of `rows`. `row` is the size of a row in bytes.
#[inline]
pub(crate) fn values(rows: &[u8], row: usize, slot: Slot) -> impl Iterator<Item = i64> {
    rows.chunks_exact(row).map(move |row| value(&row[slot.offset..slot.offset + slot.size]))
}

#[cfg(test)]
mod tests {
    use rovelog_core::internal::wire::{U32Le, U64Le};

    use super::*;
    use crate::unit::Unit;
    use crate::writer::{ChannelSpec, LogSpec};

    #[test]
    fn values_of_every_size_are_sign_extended() {
        for size in 1..=8usize {
            for wanted in [-1i64, 0, 1, -100, 100] {
                assert_eq!(value(&wanted.to_le_bytes()[..size]), wanted, "{size} bytes");
            }
        }
        assert_eq!(value(&[0, 0, 0x80]), -8_388_608);
    }

    #[test]
    fn rows_and_bodies_are_inverse() {
        let layout = Layout { header: 100, words: 1, slots: Vec::new(), row: 4, block_rows: 3, block: 44 };
        for rows in 0..20 {
            let body = u64::try_from(layout.body(rows)).unwrap();
            assert_eq!(layout.rows_in(body), rows);
            // Three more bytes are too few for another row or for block times.
            assert_eq!(layout.rows_in(body + 3), rows);
        }
        assert_eq!(layout.row_at(4), 100 + 44 + 32 + 4);
        // A layout can have rows of 0 bytes, or blocks of 0 rows.
        assert_eq!(Layout { row: 0, block: 32, ..layout.clone() }.rows_in(100), 0);
        assert_eq!(Layout { block_rows: 0, block: 32, ..layout }.rows_in(100), 0);
    }

    /// A header that counts rows or blocks must have channels and a block size above 0. An empty
    /// recording may have neither.
    #[test]
    fn counted_rows_require_channels_and_a_block_size() {
        let of = |channels: usize, block_rows: u32, rows: u64, blocks: u32| {
            let channels = vec![ChannelSpec::analog("V1", Unit::Volt, -8); channels];
            let mut header = LogSpec { channels, ..LogSpec::new(1000) }.header().unwrap();
            header.lead_in.data_block_size = U32Le::new(block_rows);
            (header.lead_in.sample_count, header.lead_in.data_block_count) =
                (U64Le::new(rows), U32Le::new(blocks));
            Layout::of(&header, header.size(), false).err()
        };
        for (rows, blocks) in [(10, 1), (1, 0), (0, 1)] {
            assert_eq!(of(1, 10, rows, blocks), None);
            assert_eq!(of(1, 0, rows, blocks).as_deref(), Some("the header states blocks of 0 rows"));
            assert_eq!(of(0, 10, rows, blocks).as_deref(), Some("the header states rows without channels"));
        }
        assert_eq!((of(1, 0, 0, 0), of(0, 10, 0, 0)), (None, None));
    }
}
