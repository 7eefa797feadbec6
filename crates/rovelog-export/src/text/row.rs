//! Formats the cells of a record for CSV.

use std::fmt::Write as _;

use rovelog::{FieldType, Value};

use super::leaves::Selected;
use super::plain::cell;

/// Formats the CSV cells of the selected leaves, and calls `write` with each cell.
///
/// A ROS time or duration is a single cell. `date` is called to format a ROS time in nanoseconds.
/// All cells are formatted in `buffer`, so that no memory is allocated for each cell. Returns true
/// if the record has raw bytes, whose cells are left empty.
pub fn row(
    record: &Selected<'_>,
    date: &dyn Fn(i64, &mut String),
    buffer: &mut String,
    write: &mut dyn FnMut(&str),
) -> bool {
    let mut has_bytes = false;
    record.cells(&mut |value, ty| {
        buffer.clear();
        match (value, ty) {
            (Value::Struct(parts), Some(FieldType::Time)) => date(nanos(parts), buffer),
            (Value::Struct(parts), _) => {
                let _ = write!(buffer, "{}", nanos(parts));
            }
            (Value::List(_), _) => buffer.push_str(&value.to_json()),
            (value, _) => {
                if !cell(value, buffer) {
                    buffer.clear();
                    has_bytes = true;
                }
            }
        }
        write(buffer);
    });
    has_bytes
}

/// Converts a struct of seconds and nanoseconds to nanoseconds.
fn nanos<N>(parts: &[(N, Value)]) -> i64 {
    let part = |number: usize| match parts.get(number) {
        Some((_, Value::Int(value, _))) => *value,
        // The value has 32 bits, so the conversion cannot fail.
        Some((_, Value::UInt(value, _))) => i64::try_from(*value).unwrap_or_default(),
        _ => 0,
    };
    part(0).saturating_mul(1_000_000_000).saturating_add(part(1))
}
