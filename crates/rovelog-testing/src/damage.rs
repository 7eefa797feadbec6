//! Damage that is the same on every machine.

use rovelog_core::Bytes;

/// Changes the byte at each of `places` in three ways. Yields the place, the flipped bits, and the
/// changed bytes.
pub fn flips(
    bytes: &Bytes,
    places: impl IntoIterator<Item = usize>,
) -> impl Iterator<Item = (usize, u8, Bytes)> {
    let flips = places.into_iter().flat_map(|at| [0xff, 0x01, 0x80].map(|mask| (at, mask)));
    flips.map(|(at, mask)| {
        let mut changed = bytes.to_vec();
        changed[at] ^= mask;
        (at, mask, changed.into())
    })
}

/// A small pseudorandom number generator.
#[derive(Debug)]
pub struct Random(pub u64);

impl Random {
    /// Returns a number below `end`; 0 if there is none.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % end.max(1)
    }
}
