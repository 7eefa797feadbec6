//! Physical values of an RLD log as a matrix of floats, in the form in which the rocketlogger
//! package returns them.
//!
//! A row of an RLD log contains one bit for each binary channel and one integer for each analog
//! channel. The matrix contains all values of one channel, then all values of the next channel.
//! Several threads convert ranges of rows in parallel. Each thread writes its own range of every
//! channel:
//!
//! ```text
//!             thread 0      thread 1
//! channel 0   rows 0..500   rows 500..1000
//! channel 1   rows 0..500   rows 500..1000
//! ```
//!
//! The results are equal to the results of numpy to the last bit, because scripts compare them with
//! results of the original package. For example, values with a scale of -9 (nanovolts) are divided
//! by 1e9. Multiplying by 1e-9 would round differently.

use std::ops::Range;

use memmap2::MmapMut;
use rovelog::rld_format::RldReader;
use rovelog::rld_format::layout::Slot;
use rovelog::rld_format::unit::Scale;
use rovelog::{Error, ErrorKind, Result};

use crate::parallel;

/// Description of a column of the matrix.
///
/// The first number is the index of a channel. For a current with two ranges, this is the channel
/// of the low range. The pair then contains the channel of the high range, and the binary channel
/// that shows where the low range is valid.
pub(crate) type MatrixColumn = (usize, Option<(usize, usize)>);

/// Minimum number of rows for each thread. Starting a thread takes longer than converting fewer
/// rows.
const MIN_ROWS_PER_THREAD: usize = 1 << 16;
/// Number of rows that are converted together. They are few enough to stay in the processor cache
/// while all channels are read from them.
const GROUP_ROWS: u64 = 512;

/// Returns the values of all columns as 64-bit floats, one column after the other, and their size
/// in bytes.
pub(crate) fn matrix(log: &RldReader, columns: &[MatrixColumn]) -> Result<(MmapMut, usize)> {
    let channels = columns.iter().map(|column| Channel::of(log, *column)).collect::<Result<Vec<_>>>()?;
    let rows = rows(log)?;
    let height = rows * size_of::<f64>();
    let mut out = parallel::pages(height * columns.len()).map_err(|error| Error::io("rld", error))?;
    // For each channel, `rest` contains the matrix cells that have not been assigned to a thread
    // yet.
    let mut rest: Vec<_> = out[..height * columns.len()].chunks_mut(height.max(1)).collect();
    std::thread::scope(|scope| {
        for part in parallel::parts(rows, MIN_ROWS_PER_THREAD) {
            let bytes = part.len() * size_of::<f64>();
            let mine = rest.iter_mut().filter_map(|rest| rest.split_off_mut(..bytes)).collect();
            let (channels, last) = (&channels, part.end == rows);
            let work = move || fill(log, channels, &part, mine);
            // The current thread converts the last range of rows itself instead of only waiting.
            if last {
                work();
            } else {
                scope.spawn(work);
            }
        }
    });
    Ok((out, height * columns.len()))
}

/// Converts a range of rows. `out` contains the cells of these rows for each channel.
fn fill(log: &RldReader, channels: &[Channel], part: &Range<usize>, mut out: Vec<&mut [u8]>) {
    let row = log.layout().map_or(1, |layout| layout.row);
    for (_, rows) in log.runs(part.start as u64..part.end as u64, GROUP_ROWS) {
        let rows = Rows { bytes: rows, row };
        for (channel, out) in channels.iter().zip(&mut out) {
            let bytes = rows.bytes.len() / row * size_of::<f64>();
            let cells = out.split_off_mut(..bytes).expect("a part has as many rows as it says");
            channel.write(rows, cells.as_chunks_mut().0);
        }
    }
}

/// Returns the number of rows in the log, or an error if they do not fit into an array.
pub(crate) fn rows(log: &RldReader) -> Result<usize> {
    usize::try_from(log.rows())
        .map_err(|_| Error::new("rld", ErrorKind::LimitExceeded, None, "more rows than memory has bytes"))
}

/// Returns the error for a channel index that does not exist.
pub(crate) fn no_channel(channel: usize) -> Error {
    Error::new("rld", ErrorKind::InvalidArgument, None, format!("there is no channel {channel}"))
}

/// Location of a column's raw values in a row, and the conversion to physical values.
enum Channel {
    /// A binary channel, with the number of its bit in the row.
    Binary(usize),
    /// An analog channel, with its location in the row and its scale.
    Analog(Slot, Scale),
    /// A current that was measured in two ranges.
    Merged {
        /// Location of the low-range value in the row.
        low: Slot,
        /// Location of the high-range value in the row.
        high: Slot,
        /// Number of the bit in the row that is set if the low-range value is valid.
        valid: usize,
        /// Power of ten by which high-range values are multiplied to get the unit of low-range
        /// values.
        up: i32,
        /// Power of ten by which low-range values are multiplied to get amperes.
        scale: i32,
    },
}

impl Channel {
    /// Returns the location and the conversion for a column of the matrix.
    fn of(log: &RldReader, (own, merged): MatrixColumn) -> Result<Self> {
        let layout = log.layout().map_err(Error::from)?;
        let binary = log.channels().iter().filter(|channel| channel.is_binary).count();
        let channel = |index: usize| log.channels().get(index).ok_or_else(|| no_channel(index));
        let slot = |index: usize| {
            let slot = index.checked_sub(binary).and_then(|analog| layout.slots.get(analog));
            slot.copied().ok_or_else(|| no_channel(index))
        };
        let scale = channel(own)?.scale;
        let Some((high, valid)) = merged else {
            if own < binary {
                return Ok(Self::Binary(own));
            }
            let why = || format!("the scale of channel {own} gives no physical values");
            let scale = Scale::new(scale)
                .ok_or_else(|| Error::new("rld", ErrorKind::InvalidArgument, None, why()))?;
            return Ok(Self::Analog(slot(own)?, scale));
        };
        if valid >= binary {
            return Err(no_channel(valid));
        }
        let up = channel(high)?.scale - scale;
        Ok(Self::Merged { low: slot(own)?, high: slot(high)?, valid, up, scale })
    }

    /// Computes the physical values of `rows` and writes them to `cells`.
    fn write(&self, rows: Rows<'_>, cells: &mut [[u8; 8]]) {
        match *self {
            Self::Binary(bit) => {
                let values = rows.bits(bit).map(|bit| f64::from(u8::from(bit)));
                write_cells(cells, values);
            }
            Self::Analog(slot, scale) => match scale.divisor().filter(|_| slot.size == 4) {
                Some(divisor) => {
                    write_cells(cells, rows.values_i32(slot).map(|raw| f64::from(raw) / divisor));
                }
                None => write_cells(cells, rows.values(slot).map(|raw| scale.apply(raw))),
            },
            Self::Merged { low, high, valid, up, scale } => {
                let valid = rows.bits(valid);
                // Most logs have 32-bit channels. This separate case makes the loop over their
                // values faster.
                if low.size == 4 && high.size == 4 {
                    let wide = |slot| rows.values_i32(slot).map(i64::from);
                    write_cells(cells, merged(wide(low), wide(high), valid, up, scale));
                } else {
                    write_cells(cells, merged(rows.values(low), rows.values(high), valid, up, scale));
                }
            }
        }
    }
}

/// Writes the floats to `cells` in native byte order.
fn write_cells(cells: &mut [[u8; 8]], values: impl Iterator<Item = f64>) {
    for (cell, value) in cells.iter_mut().zip(values) {
        *cell = value.to_ne_bytes();
    }
}

/// Returns the values of a current that was measured in two ranges.
///
/// Numpy multiplies an integer by an integer power of ten in 64 bits, with wrapping on overflow. It
/// calculates with floats only if the power is negative, or too large for 64 bits. For example, the
/// high-range value 25 has the unit 1e-8 A, and the low range has the unit 1e-11 A. The result is
/// 25 * 1000 / 1e11 A = 2.5e-7 A.
#[inline]
fn merged(
    low: impl Iterator<Item = i64>,
    high: impl Iterator<Item = i64>,
    valid: impl Iterator<Item = bool>,
    up: i32,
    scale: i32,
) -> impl Iterator<Item = f64> {
    let whole = u32::try_from(up).ok().and_then(|up| 10i64.checked_pow(up));
    let power = exp10(up);
    // If the scale is positive, the divisor is 1. If the scale is negative, the factor is 1.
    let (divisor, factor) = (exp10((-scale).max(0)), exp10(scale.max(0)));
    low.zip(high).zip(valid).map(move |((low, high), valid)| {
        let raw = match (valid, whole) {
            (true, _) => low as f64,
            (false, Some(whole)) => high.wrapping_mul(whole) as f64,
            (false, None) => high as f64 * power,
        };
        raw / divisor * factor
    })
}

/// Returns 10 to the power `exponent` as a float.
fn exp10(exponent: i32) -> f64 {
    10f64.powf(exponent.into())
}

/// Bytes of consecutive rows.
#[derive(Clone, Copy)]
struct Rows<'a> {
    bytes: &'a [u8],
    /// Size in bytes of one row.
    row: usize,
}

impl<'a> Rows<'a> {
    /// Returns the values of a binary channel.
    #[inline]
    fn bits(self, channel: usize) -> impl Iterator<Item = bool> + 'a {
        let (byte, bit) = (channel / 8, channel % 8);
        self.bytes.chunks_exact(self.row).map(move |row| row[byte] >> bit & 1 == 1)
    }

    /// Returns the values of an analog channel whose values have four bytes.
    #[inline]
    fn values_i32(self, slot: Slot) -> impl Iterator<Item = i32> + 'a {
        let value =
            move |row: &[u8]| row[slot.offset..].first_chunk().map_or(0, |raw| i32::from_le_bytes(*raw));
        self.bytes.chunks_exact(self.row).map(value)
    }

    /// Returns the values of an analog channel whose values have up to eight bytes.
    #[inline]
    fn values(self, slot: Slot) -> impl Iterator<Item = i64> + 'a {
        self.bytes.chunks_exact(self.row).map(move |row| {
            let mut wide = [0; 8];
            wide[..slot.size].copy_from_slice(&row[slot.offset..][..slot.size]);
            // Shifting the value left and right again copies its sign bit to the unused upper bits.
            let unused = 64 - 8 * slot.size;
            i64::from_le_bytes(wide) << unused >> unused
        })
    }
}
