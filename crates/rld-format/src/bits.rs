//! Bits of rows: copying the words, and transposing them to one bitmap per channel.

use rovelog_core::wire::U32Le;

use crate::layout::column;

/// Appends the word at `offset` of every row to `out`.
pub(crate) fn copy_words(rows: &[u8], row: usize, offset: usize, out: &mut Vec<u32>) {
    out.extend(column(rows, row, offset).map(|word: &U32Le| word.get()));
}

#[cfg(feature = "arrow")]
/// Makes the bitmaps of eight adjacent bits of `words`, from bit `first` on: bit k of word i
/// becomes bit i of map k, as in Arrow. Each map has a byte for every eight words, the last one
/// padded with zeros.
pub(crate) fn transpose(words: &[u32], first: u32, maps: &mut [Vec<u8>; 8]) {
    maps.iter_mut().for_each(Vec::clear);
    let (groups, rest) = words.as_chunks::<8>();
    for group in groups {
        push(eight(group, first), maps);
    }
    if !rest.is_empty() {
        let mut group = [0; 8];
        group[..rest.len()].copy_from_slice(rest);
        push(eight(&group, first), maps);
    }
}

#[cfg(feature = "arrow")]
fn push(columns: u64, maps: &mut [Vec<u8>; 8]) {
    for (map, byte) in maps.iter_mut().zip(columns.to_le_bytes()) {
        map.push(byte);
    }
}

#[cfg(feature = "arrow")]
/// Transposes the eight bytes of eight words as a square of bits.
#[inline]
fn eight(words: &[u32; 8], first: u32) -> u64 {
    let mut x = 0u64;
    for (i, word) in words.iter().enumerate() {
        x |= u64::from(word >> first & 0xff) << (8 * i);
    }
    // Squares of one, two and four are swapped over the diagonal (Hacker's Delight, 7-3).
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
    fn maps_have_the_bits() {
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
