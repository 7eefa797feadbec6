//! The cells of a record.

use std::fmt::Write as _;
use std::io;

use rovelog::{Schema, Value};

use super::Keep;
use super::leaves::{Cell, cells};
use super::plain::cell;

/// Hands the cells of the selected leaves to `write`, each in `buffer`; times and durations of ROS
/// are one cell, and `date` writes their times. Returns whether there were bytes, which have no form
/// in a cell and are left empty.
///
/// # Errors
/// Returns the error of `write`.
pub fn row(
    value: &Value,
    schema: Option<&Schema>,
    keep: &Keep,
    date: &dyn Fn(i64, &mut String),
    buffer: &mut String,
    write: &mut dyn FnMut(&str) -> io::Result<()>,
) -> io::Result<bool> {
    let (mut place, mut bytes) = (0, false);
    cells(value, schema, &mut |leaf, width| {
        if (place..place + width).any(|place| keep.leaf(place)) {
            buffer.clear();
            match leaf {
                Cell::Value(list @ Value::List(_)) => buffer.push_str(&list.to_json()),
                Cell::Value(value) => {
                    if !cell(value, buffer) {
                        buffer.clear();
                        bytes = true;
                    }
                }
                Cell::Time(nanos) => date(nanos, buffer),
                Cell::Duration(nanos) => {
                    let _ = write!(buffer, "{nanos}");
                }
            }
            write(buffer)?;
        }
        place += width;
        Ok::<(), io::Error>(())
    })?;
    Ok(bytes)
}
