//! Physical values of an RLD log in the form of rocketlogger's matrix, straight from the rows of the
//! log.

use std::ops::Range;

use memmap2::MmapMut;
use rovelog::rld_format::RldReader;
use rovelog::rld_format::layout::Slot;
use rovelog::rld_format::unit::Scale;
use rovelog::{Error, ErrorKind, Result};

use crate::parallel;

/// A channel: its index, and for a merged current the channel of the high range and the range-valid
/// flag of the low one.
pub(crate) type Wanted = (usize, Option<(usize, usize)>);

/// Minimum number of rows for a thread.
const MIN_ROWS: usize = 1 << 16;
/// Rows that stay in the cache while they are copied channel by channel.
const GROUP: u64 = 512;

/// Returns the values channel by channel as 64-bit floats, and their size in bytes.
pub(crate) fn matrix(log: &RldReader, wanted: &[Wanted]) -> Result<(MmapMut, usize)> {
    let channels = wanted.iter().map(|wanted| Channel::of(log, *wanted)).collect::<Result<Vec<_>>>()?;
    let rows = rows(log)?;
    let height = rows * size_of::<f64>();
    let mut out = parallel::pages(height * wanted.len()).map_err(|error| Error::io("rld", error))?;
    // Each part fills its own range of each channel.
    let mut rest: Vec<_> = out[..height * wanted.len()].chunks_mut(height.max(1)).collect();
    std::thread::scope(|scope| {
        for part in parallel::parts(rows, MIN_ROWS) {
            let bytes = part.len() * size_of::<f64>();
            let mine = rest.iter_mut().filter_map(|rest| rest.split_off_mut(..bytes)).collect();
            let (channels, last) = (&channels, part.end == rows);
            let work = move || fill(log, channels, &part, mine);
            // This thread has nothing else to do.
            if last {
                work();
            } else {
                scope.spawn(work);
            }
        }
    });
    Ok((out, height * wanted.len()))
}

/// Fills the rows of a part, channel by channel.
fn fill(log: &RldReader, channels: &[Channel], part: &Range<usize>, mut out: Vec<&mut [u8]>) {
    let row = log.layout().map_or(1, |layout| layout.row);
    for (_, rows) in log.runs(part.start as u64..part.end as u64, GROUP) {
        let rows = Rows { bytes: rows, row };
        for (channel, out) in channels.iter().zip(&mut out) {
            let bytes = rows.bytes.len() / row * size_of::<f64>();
            let places = out.split_off_mut(..bytes).expect("a part has as many rows as it says");
            channel.put(rows, places.as_chunks_mut().0);
        }
    }
}

/// Returns the number of rows, if an array can have as many.
pub(crate) fn rows(log: &RldReader) -> Result<usize> {
    usize::try_from(log.rows())
        .map_err(|_| Error::new("rld", ErrorKind::LimitExceeded, None, "more rows than memory has bytes"))
}

pub(crate) fn missing(channel: usize) -> Error {
    Error::new("rld", ErrorKind::InvalidArgument, None, format!("there is no channel {channel}"))
}

/// Where the physical values of a channel are, and how they are computed.
enum Channel {
    /// A bit.
    Binary(usize),
    Analog(Slot, Scale),
    /// A current of two ranges: the low one, the high one, the bit that says whether the low one is
    /// valid, the exponent from the scale of the high range to that of the low one, and this scale.
    Merged {
        low: Slot,
        high: Slot,
        valid: usize,
        up: i32,
        scale: i32,
    },
}

impl Channel {
    fn of(log: &RldReader, (own, merged): Wanted) -> Result<Self> {
        let layout = log.layout().map_err(Error::from)?;
        let binary = log.channels().iter().filter(|channel| channel.is_binary).count();
        let channel = |index: usize| log.channels().get(index).ok_or_else(|| missing(index));
        let slot = |index: usize| {
            let slot = index.checked_sub(binary).and_then(|analog| layout.slots.get(analog));
            slot.copied().ok_or_else(|| missing(index))
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
            return Err(missing(valid));
        }
        let up = channel(high)?.scale - scale;
        Ok(Self::Merged { low: slot(own)?, high: slot(high)?, valid, up, scale })
    }

    /// Writes the physical values of some rows to their places.
    fn put(&self, rows: Rows<'_>, places: &mut [[u8; 8]]) {
        match *self {
            Self::Binary(bit) => {
                let values = rows.bits(bit).map(|bit| f64::from(u8::from(bit)));
                store(places, values);
            }
            Self::Analog(slot, scale) => match scale.divisor().filter(|_| slot.size == 4) {
                Some(divisor) => store(places, rows.narrow(slot).map(|raw| f64::from(raw) / divisor)),
                None => store(places, rows.values(slot).map(|raw| scale.apply(raw))),
            },
            Self::Merged { low, high, valid, up, scale } => {
                let valid = rows.bits(valid);
                if low.size == 4 && high.size == 4 {
                    let wide = |slot| rows.narrow(slot).map(i64::from);
                    store(places, merged(wide(low), wide(high), valid, up, scale));
                } else {
                    store(places, merged(rows.values(low), rows.values(high), valid, up, scale));
                }
            }
        }
    }
}

fn store(places: &mut [[u8; 8]], values: impl Iterator<Item = f64>) {
    for (place, value) in places.iter_mut().zip(values) {
        *place = value.to_ne_bytes();
    }
}

/// Returns the values of a current of two ranges, computed as numpy does it: integers stay integers
/// if the power is one.
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
    // One of them is 1.
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

fn exp10(exponent: i32) -> f64 {
    10f64.powf(exponent.into())
}

/// Bytes of some rows.
#[derive(Clone, Copy)]
struct Rows<'a> {
    bytes: &'a [u8],
    /// Bytes of a row.
    row: usize,
}

impl<'a> Rows<'a> {
    #[inline]
    fn bits(self, channel: usize) -> impl Iterator<Item = bool> + 'a {
        let (byte, bit) = (channel / 8, channel % 8);
        self.bytes.chunks_exact(self.row).map(move |row| row[byte] >> bit & 1 == 1)
    }

    /// Returns the values of a channel of four bytes.
    #[inline]
    fn narrow(self, slot: Slot) -> impl Iterator<Item = i32> + 'a {
        let value =
            move |row: &[u8]| row[slot.offset..].first_chunk().map_or(0, |raw| i32::from_le_bytes(*raw));
        self.bytes.chunks_exact(self.row).map(value)
    }

    /// Returns the values of a channel of any size, sign extended.
    #[inline]
    fn values(self, slot: Slot) -> impl Iterator<Item = i64> + 'a {
        self.bytes.chunks_exact(self.row).map(move |row| {
            let mut wide = [0; 8];
            wide[..slot.size].copy_from_slice(&row[slot.offset..][..slot.size]);
            let unused = 64 - 8 * slot.size;
            i64::from_le_bytes(wide) << unused >> unused
        })
    }
}
