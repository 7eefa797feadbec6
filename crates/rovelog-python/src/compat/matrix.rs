//! Physical values of an RLD log in the form of rocketlogger's matrix.

use std::collections::HashMap;
use std::ops::Range;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array as _, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use memmap2::MmapMut;
use rovelog::rld_format::unit::Scale;
use rovelog::rld_format::{ColumnOptions, RldReader};
use rovelog::{Error, ErrorKind, Result, Select};

use crate::compat::parallel;
use crate::errors::of_arrow;

/// A channel: its index, and for a merged current the channel of the high range and the range-valid
/// flag of the low one.
pub(crate) type Wanted = (usize, Option<(usize, usize)>);

/// Minimum number of rows for a thread.
const MIN_ROWS: usize = 1 << 16;

/// Returns the values channel by channel as 64-bit floats, and their size in bytes.
pub(crate) fn matrix(log: &RldReader, wanted: &[Wanted]) -> Result<(MmapMut, usize)> {
    let rows = rows(log)?;
    let height = rows * size_of::<f64>();
    let mut out = parallel::pages(height * wanted.len()).map_err(|error| Error::io("rld", error))?;
    // Each part fills its own range of each channel.
    let mut rest: Vec<_> = out[..height * wanted.len()].chunks_mut(height.max(1)).collect();
    std::thread::scope(|scope| {
        let mut parts = Vec::new();
        for part in parallel::parts(rows, MIN_ROWS) {
            let bytes = part.len() * size_of::<f64>();
            let mine = rest.iter_mut().filter_map(|rest| rest.split_off_mut(..bytes)).collect();
            parts.push(scope.spawn(move || fill(log, wanted, &part, mine)));
        }
        parts.into_iter().try_for_each(|part| match part.join() {
            Ok(filled) => filled,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })?;
    Ok((out, height * wanted.len()))
}

/// Fills the rows of a part, channel by channel.
fn fill(log: &RldReader, wanted: &[Wanted], part: &Range<usize>, mut out: Vec<&mut [u8]>) -> Result<()> {
    let channel = |index: usize| log.channels().get(index).ok_or_else(|| missing(index));
    let mut names = Vec::new();
    for (own, merged) in wanted {
        for index in [Some(*own), merged.map(|m| m.0), merged.map(|m| m.1)].into_iter().flatten() {
            names.push(channel(index)?.name.to_string());
        }
    }
    let select = Select::all().with_fields(names);
    let options = ColumnOptions::raw().with_times(None);
    for batch in log.columns_with(&select, &options)?.within(part.start as u64..part.end as u64) {
        let batch = batch.map_err(of_arrow("rld"))?;
        let columns = by_index(&batch);
        let column = |index: usize| columns.get(&index).copied().ok_or_else(|| missing(index));
        for ((own, merged), out) in wanted.iter().zip(&mut out) {
            let bytes = batch.num_rows() * size_of::<f64>();
            let places = out.split_off_mut(..bytes).expect("a part has as many rows as it says");
            let places = places.as_chunks_mut::<8>().0.iter_mut();
            let scale = channel(*own)?.scale;
            match merged {
                None => put(column(*own)?, Scale::new(scale).ok_or_else(|| too_far(*own))?, places),
                Some((high, valid)) => {
                    let (low, highs) = (integers(column(*own)?), integers(column(*high)?));
                    let times = power(channel(*high)?.scale - scale);
                    let valid = column(*valid)?.as_boolean().values();
                    for (row, place) in places.enumerate() {
                        let raw = if valid.value(row) { low(row) as f64 } else { times(highs(row)) };
                        let value = if scale < 0 { raw / exp10(-scale) } else { raw * exp10(scale) };
                        *place = value.to_ne_bytes();
                    }
                }
            }
        }
    }
    Ok(())
}

/// Returns the number of rows, if an array can have as many.
pub(crate) fn rows(log: &RldReader) -> Result<usize> {
    usize::try_from(log.rows())
        .map_err(|_| Error::new("rld", ErrorKind::LimitExceeded, None, "more rows than memory has bytes"))
}

pub(crate) fn missing(channel: usize) -> Error {
    Error::new("rld", ErrorKind::InvalidArgument, None, format!("there is no channel {channel}"))
}

fn too_far(channel: usize) -> Error {
    let why = format!("the scale of channel {channel} gives no physical values");
    Error::new("rld", ErrorKind::InvalidArgument, None, why)
}

/// Returns the columns by channel index.
fn by_index(batch: &RecordBatch) -> HashMap<usize, &ArrayRef> {
    let schema = batch.schema_ref();
    let index = |field: &arrow_schema::FieldRef| field.metadata().get("rld.index")?.parse().ok();
    schema
        .fields()
        .iter()
        .map(index)
        .zip(batch.columns())
        .filter_map(|(index, column)| Some((index?, column)))
        .collect()
}

fn exp10(exponent: i32) -> f64 {
    10f64.powf(exponent.into())
}

/// Returns a multiplication by 10^`exponent` as numpy does it: integers stay integers if the power
/// is one.
fn power(exponent: i32) -> impl Fn(i64) -> f64 {
    let whole = u32::try_from(exponent).ok().and_then(|exponent| 10i64.checked_pow(exponent));
    let power = exp10(exponent);
    move |raw| whole.map_or_else(|| raw as f64 * power, |whole| raw.wrapping_mul(whole) as f64)
}

/// Returns the raw values of an analog channel.
fn integers(column: &ArrayRef) -> Box<dyn Fn(usize) -> i64 + '_> {
    if column.data_type() == &DataType::Int32 {
        let values = column.as_primitive::<Int32Type>().values();
        return Box::new(move |row| values[row].into());
    }
    let values = column.as_primitive::<Int64Type>().values();
    Box::new(move |row| values[row])
}

/// Writes a column's physical values to `places`.
fn put<'a>(column: &ArrayRef, scale: Scale, places: impl Iterator<Item = &'a mut [u8; 8]>) {
    match column.data_type() {
        DataType::Boolean => {
            for (place, value) in places.zip(column.as_boolean().values()) {
                *place = f64::from(u8::from(value)).to_ne_bytes();
            }
        }
        DataType::Int32 => {
            let values = column.as_primitive::<Int32Type>().values();
            match scale.divisor() {
                Some(divisor) => {
                    for (place, raw) in places.zip(values) {
                        *place = (f64::from(*raw) / divisor).to_ne_bytes();
                    }
                }
                None => {
                    for (place, raw) in places.zip(values) {
                        *place = scale.apply((*raw).into()).to_ne_bytes();
                    }
                }
            }
        }
        _ => {
            for (place, raw) in places.zip(column.as_primitive::<Int64Type>().values()) {
                *place = scale.apply(*raw).to_ne_bytes();
            }
        }
    }
}
