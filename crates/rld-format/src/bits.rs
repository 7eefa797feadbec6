//! Bits of rows. The words of many rows are copied, and then transposed into one bitmap for each
//! channel.

use rovelog_core::internal::wire::U32Le;

use crate::layout::column;

/// Appends the 32-bit word at `offset` of every row to `out`. `row` is the size of a row in bytes.
pub(crate) fn copy_words(rows: &[u8], row: usize, offset: usize, out: &mut Vec<u32>) {
    out.extend(column(rows, row, offset).map(|word: &U32Le| word.get()));
}

#[cfg(feature = "arrow")]
/// Transposes the eight bits `first` to `first + 7` of all `words` into eight bitmaps, one for each
/// bit. Bit `first + k` of word i becomes bit i of bitmap k, which is the bit order of Arrow. A
/// bitmap has one byte for every eight words, and its last byte is padded with zeros.
pub(crate) fn transpose(words: &[u32], first: u32, maps: &mut [Vec<u8>; 8]) {
    maps.iter_mut().for_each(Vec::clear);
    let (groups, rest) = words.as_chunks::<8>();
    for group in groups {
        push_columns(transpose_8x8(group, first), maps);
    }
    if !rest.is_empty() {
        let mut group = [0; 8];
        group[..rest.len()].copy_from_slice(rest);
        push_columns(transpose_8x8(&group, first), maps);
    }
}

#[cfg(feature = "arrow")]
fn push_columns(columns: u64, maps: &mut [Vec<u8>; 8]) {
    for (map, byte) in maps.iter_mut().zip(columns.to_le_bytes()) {
        map.push(byte);
    }
}

#[cfg(feature = "arrow")]
/// Transposes a square of eight by eight bits: the bits `first` to `first + 7` of eight words.
#[inline]
fn transpose_8x8(words: &[u32; 8], first: u32) -> u64 {
    let mut x = 0u64;
    for (i, word) in words.iter().enumerate() {
        x |= u64::from(word >> first & 0xff) << (8 * i);
    }
    // Swap squares of 1x1, 2x2 and 4x4 bits across the diagonal (Hacker's Delight, 7-3). Example
    // with four words of four bits, where `a2` is bit 2 of word a:
    //
    //     words          1x1 swapped    2x2 swapped
    //     a3 a2 a1 a0    b2 a2 b0 a0    d0 c0 b0 a0
    //     b3 b2 b1 b0    b3 a3 b1 a1    d1 c1 b1 a1
    //     c3 c2 c1 c0    d2 c2 d0 c0    d2 c2 b2 a2
    //     d3 d2 d1 d0    d3 c3 d1 c1    d3 c3 b3 a3
    //
    // Each line of the result has one bit of every word, which is the bitmap of one channel.
    let swap = |x: u64, mask: u64, by: u32| {
        let t = (x ^ (x >> by)) & mask;
        x ^ t ^ (t << by)
    };
    let x = swap(x, 0x00AA_00AA_00AA_00AA, 7);
    let x = swap(x, 0x0000_CCCC_0000_CCCC, 14);
    swap(x, 0x0000_0000_F0F0_F0F0, 28)
}

#[cfg(all(test, feature = "arrow"))]
mod tests {
    use super::*;

    #[test]
    fn maps_equal_single_bits() {
        let words: Vec<u32> = (0..77u32).map(|i| i.wrapping_mul(0x9E37_79B9) ^ i << 3).collect();
        for first in [0, 8, 24] {
            let mut maps = Default::default();
            transpose(&words, first, &mut maps);
            for (k, map) in maps.iter().enumerate() {
                assert_eq!(map.len(), words.len().div_ceil(8));
                for (i, word) in words.iter().enumerate() {
                    let want = word >> (first as usize + k) & 1;
                    assert_eq!(u32::from(map[i / 8] >> (i % 8) & 1), want, "bit {k} of word {i}");
                }
            }
        }
    }
}
