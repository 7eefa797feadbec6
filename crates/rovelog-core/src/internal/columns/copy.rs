//! Loops that copy a field of many rows to a contiguous column.
//!
//! In all functions, `data` contains the rows. `starts` has the offset of each row in `data`. The
//! next argument is the offset of the field within a row.

/// Number of rows that are copied for one column before the next column is copied. The rows of such
/// a group stay in the first-level cache until all of their columns have been copied.
pub(super) const GROUP: usize = 128;

/// Copies a field of `N` bytes from each row to `out`. The size is a constant, so that the compiler
/// uses a single load and store for each row.
pub(super) fn fixed<const N: usize>(data: &[u8], starts: &[usize], offset: usize, out: &mut [u8]) {
    let (out, _) = out.as_chunks_mut::<N>();
    for (out, start) in out.iter_mut().zip(starts) {
        let at = start + offset;
        out.copy_from_slice(&data[at..at + N]);
    }
}

/// Copies `K` adjacent fields of 4 bytes from each row to `K` columns. `offset` is the offset of
/// the first of these fields in a row. They are copied in one pass, so that each row is loaded only
/// once.
pub(super) fn copy_adjacent<const K: usize>(
    data: &[u8],
    starts: &[usize],
    offset: usize,
    columns: [&mut [u8]; K],
) {
    let mut columns = columns.map(|column| &mut column.as_chunks_mut::<4>().0[..starts.len()]);
    for (row, start) in starts.iter().enumerate() {
        let at = start + offset;
        let (cells, _) = data[at..at + 4 * K].as_chunks::<4>();
        for (column, cell) in columns.iter_mut().zip(cells) {
            column[row] = *cell;
        }
    }
}

/// Returns the Boolean field of at most [`GROUP`] rows as bits. Any byte other than 0 is true.
pub(super) fn pack_bools(data: &[u8], starts: &[usize], offset: usize) -> [u8; GROUP / 8] {
    let mut packed = [0; GROUP / 8];
    for (packed, starts) in packed.iter_mut().zip(starts.chunks(8)) {
        for (bit, start) in starts.iter().enumerate() {
            *packed |= u8::from(data[start + offset] != 0) << bit;
        }
    }
    packed
}
