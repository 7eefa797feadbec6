//! Functions that damage logs in a reproducible way.

use rovelog_core::Bytes;

/// For each offset in `offsets`, yields three damaged copies of `bytes`. Each item has the offset,
/// the XOR mask of the damaged byte, and the copy.
pub fn bit_flips(
    bytes: &Bytes,
    offsets: impl IntoIterator<Item = usize>,
) -> impl Iterator<Item = (usize, u8, Bytes)> {
    let bit_flips = offsets.into_iter().flat_map(|at| [0xff, 0x01, 0x80].map(|mask| (at, mask)));
    bit_flips.map(|(at, mask)| {
        let mut changed = bytes.to_vec();
        changed[at] ^= mask;
        (at, mask, changed.into())
    })
}

/// Returns a V2.0 bag in which a byte in the middle of a chunk is inverted. `number` is the index
/// of the chunk.
///
/// # Panics
/// Panics if the bag has no such chunk.
#[must_use]
pub fn with_damaged_chunk(bag: &[u8], number: usize) -> Vec<u8> {
    let u32_at = |at: usize| {
        let bytes = bag[at..at + 4].try_into().expect("four bytes");
        usize::try_from(u32::from_le_bytes(bytes)).expect("a small record")
    };
    // A bag is a version line followed by records. A record is the header length, the header, the
    // data length, and the data.
    let line = bag.iter().position(|byte| *byte == b'\n').expect("a version line");
    let (mut at, mut chunks) = (line + 1, Vec::new());
    while at < bag.len() {
        let data_at = at + 8 + u32_at(at);
        let end = data_at + u32_at(data_at - 4);
        // The header of a chunk record contains the op 0x05.
        if bag[at..data_at].windows(4).any(|bytes| bytes == b"op=\x05") {
            chunks.push(data_at..end);
        }
        at = end;
    }
    let chunk = &chunks[number];
    let mut bag = bag.to_vec();
    bag[chunk.start.midpoint(chunk.end)] ^= 0xff;
    bag
}

/// A small pseudorandom number generator. The field is its state, initially the seed.
#[derive(Debug)]
pub struct Random(pub u64);

impl Random {
    /// Returns a number below `end`, or 0 if `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % end.max(1)
    }
}
