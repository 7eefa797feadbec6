//! The copies that collecting is made of: a piece of each row, one behind the other.

/// Rows that are copied column by column at a time: few enough to stay in the first-level cache.
pub(super) const GROUP: usize = 128;

/// Copies `N` bytes at `piece` of each row. Widths known to the compiler are single moves.
pub(super) fn fixed<const N: usize>(data: &[u8], starts: &[usize], piece: usize, out: &mut [u8]) {
    let (out, _) = out.as_chunks_mut::<N>();
    for (out, start) in out.iter_mut().zip(starts) {
        let at = start + piece;
        out.copy_from_slice(&data[at..at + N]);
    }
}

/// Copies `K` neighbours of four bytes each, from `piece` of each row on, to as many columns: one
/// look at the row for all of them.
pub(super) fn neighbours<const K: usize>(
    data: &[u8],
    starts: &[usize],
    piece: usize,
    columns: [&mut [u8]; K],
) {
    let mut columns = columns.map(|column| &mut column.as_chunks_mut::<4>().0[..starts.len()]);
    for (row, start) in starts.iter().enumerate() {
        let at = start + piece;
        let (cells, _) = data[at..at + 4 * K].as_chunks::<4>();
        for (column, cell) in columns.iter_mut().zip(cells) {
            column[row] = *cell;
        }
    }
}

/// Returns the truth values at `piece` of each row of one group, a bit each.
pub(super) fn truths(data: &[u8], starts: &[usize], piece: usize) -> [u8; GROUP / 8] {
    let mut packed = [0; GROUP / 8];
    for (packed, starts) in packed.iter_mut().zip(starts.chunks(8)) {
        for (bit, start) in starts.iter().enumerate() {
            *packed |= u8::from(data[start + piece] != 0) << bit;
        }
    }
    packed
}
