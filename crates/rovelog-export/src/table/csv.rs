//! Writes topics as comma-separated values (CSV, RFC 4180). The schema of a topic determines the
//! columns of its file.

use std::collections::BTreeSet;
use std::io::Write as _;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    DurationNanosecondType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampNanosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array as _, ArrayRef, BooleanArray, RecordBatch, StringArray};
use arrow_schema::{DataType, Schema, TimeUnit};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rovelog::core::internal::parallel::{BufferPool, Jobs, in_order};

use super::options::Dialect;
use super::sink::{Job, Out};
use super::source::Source;
use crate::leaf::{Leaf, free_name, leaves};
use crate::number::{NineDecimals, Numbers};
use crate::{ExportError, Loss, TimeBase};

/// Names of the first columns of a CSV file in Rovelog's dialect.
const TIMES: [&str; 2] = ["time", "t_ns"];

/// A table that is written as CSV.
pub(super) struct Csv<'w> {
    rows: Rows,
    file: CsvFile<'w>,
}

/// A CSV file that is being written.
struct CsvFile<'w> {
    out: Out<'w>,
    /// Name of the topic that the file contains.
    topic: String,
    /// Number of characters outside of ASCII. In the dialect of pyulog, their cells are left empty.
    odd_chars: u64,
}

/// Formatter for the rows of a CSV file.
struct Rows {
    /// The columns after `time` and `t_ns`.
    leaves: Vec<Leaf>,
    /// True if the file starts with the columns `time` and `t_ns`.
    times: bool,
    /// Clock of the times in the column `time`.
    base: TimeBase,
    /// Time from which both columns count, if the user selected one.
    from: Option<i64>,
    style: Style,
}

/// Format of the cells in a CSV file.
#[derive(Clone, Copy)]
struct Style {
    /// True if cells are formatted in the same way as by pyulog.
    pyulog: bool,
    delimiter: u8,
}

/// Writes several CSV files. Several threads format the rows, which are then written in their
/// order. Returns the number of rows of each file.
pub(super) fn write(
    source: Source<'_>,
    tables: Vec<Csv<'_>>,
    jobs: Jobs,
    losses: &mut Vec<Loss>,
    progress: &mut dyn FnMut(u64),
) -> Result<Vec<u64>, ExportError> {
    let spare: BufferPool<Vec<u8>> = BufferPool::default();
    let mut counts = Vec::new();
    let (rows, mut files): (Vec<_>, Vec<_>) = tables.into_iter().map(|csv| (csv.rows, csv.file)).unzip();
    in_order(
        jobs,
        Numbers::default,
        |numbers, (table, batch): (usize, RecordBatch)| {
            let mut text = spare.take();
            let odd = rows[table].write(&batch, numbers, &mut text);
            odd.map(|odd| (table, text, odd))
        },
        |push| {
            counts = source.batches(progress, &mut |table, batch| push((table, batch)))?;
            Ok(())
        },
        |written| {
            let (table, mut text, odd) = written?;
            let file: &mut CsvFile<'_> = &mut files[table];
            file.odd_chars += odd;
            file.out.write_all(&text)?;
            text.clear();
            spare.put(text);
            Ok::<_, ExportError>(())
        },
    )?;
    for CsvFile { topic, odd_chars, .. } in files.iter().filter(|file| file.odd_chars > 0) {
        let why = format!("{odd_chars} characters outside ASCII, written as empty cells");
        losses.push(Loss::new(topic, "", why));
    }
    Ok(counts)
}

impl<'w> Csv<'w> {
    /// Starts a CSV file by writing its first line, which contains the column names. Columns of raw
    /// bytes are omitted and added to `losses`.
    pub(super) fn new(
        job: &Job<'_>,
        read: &Schema,
        out: Out<'w>,
        losses: &mut Vec<Loss>,
    ) -> Result<Self, ExportError> {
        let pyulog = job.options.dialect == Dialect::Pyulog;
        let style = Style { pyulog, delimiter: job.options.delimiter.unwrap_or(b',') };
        let mut leaves = leaves(read, job.options.names);
        // The first leaf is the time of the rows, which is written as the columns `time` and
        // `t_ns`.
        leaves.remove(0);
        leaves.retain(|leaf| {
            let bytes = matches!(leaf.data_type, DataType::Binary | DataType::FixedSizeBinary(_));
            if bytes {
                losses.push(Loss::new(
                    &job.topic.name,
                    &leaf.name,
                    "the field contains raw bytes, which CSV cannot represent",
                ));
            }
            !bytes
        });
        // `ulog2csv` writes the column `timestamp` first, wherever this field is in the message.
        if pyulog && let Some(at) = leaves.iter().position(|leaf| leaf.name == "timestamp") {
            let timestamp = leaves.remove(at);
            leaves.insert(0, timestamp);
        }
        if !pyulog {
            let mut taken = BTreeSet::from(TIMES.map(str::to_owned));
            for leaf in &mut leaves {
                leaf.name = free_name(&mut taken, &leaf.name);
            }
        }
        let (base, from) = (TimeBase::of(job.log), job.options.times_from);
        let rows = Rows { leaves, times: !pyulog, base, from, style };
        out.write_all(&rows.head())?;
        Ok(Self { rows, file: CsvFile { out, topic: job.topic.name.clone(), odd_chars: 0 } })
    }
}

impl Rows {
    /// Returns the first line of the file, which contains the column names.
    fn head(&self) -> Vec<u8> {
        let mut text = Vec::new();
        let times = if self.times { &TIMES[..] } else { &[] };
        let names = times.iter().copied().chain(self.leaves.iter().map(|leaf| leaf.name.as_str()));
        for (i, name) in names.enumerate() {
            if i > 0 {
                text.push(self.style.delimiter);
            }
            quoted(name, self.style.delimiter, &mut text);
        }
        text.push(b'\n');
        text
    }

    /// Writes the cells for the columns `time` and `t_ns`. If the UTC time is unknown, the first
    /// cell is empty.
    fn times(&self, time: Option<i64>, numbers: &mut Numbers, text: &mut Vec<u8>) {
        let time = time.map(|time| time.saturating_sub(self.from.unwrap_or(0)));
        if let (Some(time), Some(_)) = (time, self.from) {
            let _ = write!(text, "{}", NineDecimals(time));
        } else if let (Some(time), TimeBase::Utc(utc)) = (time, &self.base)
            && let Some(time) = utc.unix(time)
        {
            numbers.date(time, text);
        }
        text.push(self.style.delimiter);
        if let Some(time) = time {
            numbers.integer(time, text);
        }
    }

    /// Writes the rows of a batch. Returns the number of cells that were left empty because their
    /// character cannot be written.
    fn write(
        &self,
        batch: &RecordBatch,
        numbers: &mut Numbers,
        text: &mut Vec<u8>,
    ) -> Result<u64, ExportError> {
        let bounds: Vec<_> = self.leaves.iter().map(|leaf| leaf.bind(batch)).collect();
        let cells = bounds.iter().zip(&self.leaves);
        let cells = cells.map(|(bound, leaf)| Ok((bound, Cells::of(&bound.array, leaf)?)));
        let cells: Vec<_> = cells.collect::<Result<_, ExportError>>()?;
        // A table may have tens of thousands of columns. The code below runs for each cell, so it
        // must not allocate memory.
        let nanos = batch.column(0).as_primitive::<Int64Type>();
        let mut odd_chars = 0;
        for row in 0..batch.num_rows() {
            if self.times {
                self.times(nanos.is_valid(row).then(|| nanos.value(row)), numbers, text);
                text.push(self.style.delimiter);
            }
            for (bound, cells) in &cells {
                if let Some(at) = bound.at(row) {
                    let odd = cells.write(at, self.style, numbers, text)?;
                    odd_chars += u64::from(odd);
                }
                text.push(self.style.delimiter);
            }
            // The delimiter after the last cell is replaced by the line end.
            text.pop_if(|last| *last == self.style.delimiter);
            text.push(b'\n');
        }
        Ok(odd_chars)
    }
}

/// The values of a leaf in a batch. The data type is determined once per batch instead of once per
/// cell.
enum Cells<'a> {
    Bool(&'a BooleanArray),
    I8(&'a [i8]),
    I16(&'a [i16]),
    I32(&'a [i32]),
    I64(&'a [i64]),
    U8(&'a [u8]),
    U16(&'a [u16]),
    U32(&'a [u32]),
    U64(&'a [u64]),
    F32(&'a [f32]),
    F64(&'a [f64]),
    /// Unix times in nanoseconds.
    Date(&'a [i64]),
    Text(&'a StringArray),
    /// Values of fields with the ULog type `char`, which pyulog writes as numbers.
    Char(&'a StringArray),
    /// Lists of variable length, which are written as JSON.
    Json(&'a ArrayRef),
}

impl<'a> Cells<'a> {
    fn of(array: &'a ArrayRef, leaf: &Leaf) -> Result<Self, ExportError> {
        Ok(match array.data_type() {
            DataType::Boolean => Self::Bool(array.as_boolean()),
            DataType::Int8 => Self::I8(array.as_primitive::<Int8Type>().values()),
            DataType::Int16 => Self::I16(array.as_primitive::<Int16Type>().values()),
            DataType::Int32 => Self::I32(array.as_primitive::<Int32Type>().values()),
            DataType::Int64 => Self::I64(array.as_primitive::<Int64Type>().values()),
            DataType::UInt8 => Self::U8(array.as_primitive::<UInt8Type>().values()),
            DataType::UInt16 => Self::U16(array.as_primitive::<UInt16Type>().values()),
            DataType::UInt32 => Self::U32(array.as_primitive::<UInt32Type>().values()),
            DataType::UInt64 => Self::U64(array.as_primitive::<UInt64Type>().values()),
            DataType::Float32 => Self::F32(array.as_primitive::<Float32Type>().values()),
            DataType::Float64 => Self::F64(array.as_primitive::<Float64Type>().values()),
            DataType::Timestamp(TimeUnit::Nanosecond, _) => {
                Self::Date(array.as_primitive::<TimestampNanosecondType>().values())
            }
            DataType::Duration(TimeUnit::Nanosecond) => {
                Self::I64(array.as_primitive::<DurationNanosecondType>().values())
            }
            DataType::Utf8 => {
                let char = leaf.field.metadata().get("source_type").is_some_and(|name| name == "char");
                let array = array.as_string();
                if char { Self::Char(array) } else { Self::Text(array) }
            }
            DataType::List(_) => Self::Json(array),
            other => return Err(ExportError::Format(format!("CSV cannot represent values of type {other}"))),
        })
    }

    /// Writes a cell. Returns true if the cell was left empty because the value cannot be written.
    fn write(
        &self,
        at: usize,
        style: Style,
        numbers: &mut Numbers,
        out: &mut Vec<u8>,
    ) -> Result<bool, ExportError> {
        match self {
            Self::Bool(array) => {
                let value = array.value(at);
                out.extend_from_slice(match (style.pyulog, value) {
                    (true, true) => b"1",
                    (true, false) => b"0",
                    (false, true) => b"true",
                    (false, false) => b"false",
                });
            }
            Self::I8(values) => numbers.integer(values[at], out),
            Self::I16(values) => numbers.integer(values[at], out),
            Self::I32(values) => numbers.integer(values[at], out),
            Self::I64(values) => numbers.integer(values[at], out),
            Self::U8(values) => numbers.integer(values[at], out),
            Self::U16(values) => numbers.integer(values[at], out),
            Self::U32(values) => numbers.integer(values[at], out),
            Self::U64(values) => numbers.integer(values[at], out),
            Self::F32(values) if style.pyulog => numbers.numpy(values[at], out),
            Self::F64(values) if style.pyulog => numbers.numpy(values[at], out),
            Self::F32(values) => numbers.float(values[at], out),
            Self::F64(values) => numbers.float(values[at], out),
            Self::Date(values) => numbers.date(values[at], out),
            Self::Char(array) if style.pyulog => match array.value(at).chars().next() {
                // In ULog, `char` is a signed byte, so pyulog writes a negative number for a byte
                // outside of ASCII. The value here is decoded text, which does not show the
                // original byte.
                Some(char) if !char.is_ascii() => return Ok(true),
                char => numbers.integer(char.map_or(0, u32::from), out),
            },
            Self::Text(array) | Self::Char(array) => quoted(array.value(at), style.delimiter, out),
            Self::Json(array) => {
                let mut json = Vec::new();
                self::json(array, at, numbers, &mut json)?;
                quoted(&String::from_utf8_lossy(&json), style.delimiter, out);
            }
        }
        Ok(false)
    }
}

/// Writes a text as a cell. The text is quoted if it contains a delimiter, quote or line break.
pub fn quoted(text: &str, delimiter: u8, out: &mut Vec<u8>) {
    if !text.bytes().any(|byte| byte == delimiter || matches!(byte, b'"' | b'\n' | b'\r')) {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    out.push(b'"');
    for byte in text.bytes() {
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    }
    out.push(b'"');
}

/// Writes a value as JSON, in the format of `rovelog cat -f ndjson`. 64-bit integers, NaN and
/// infinities become strings, and bytes become base64 strings.
fn json(array: &ArrayRef, at: usize, numbers: &mut Numbers, out: &mut Vec<u8>) -> Result<(), ExportError> {
    if array.is_null(at) {
        out.extend_from_slice(b"null");
        return Ok(());
    }
    match array.data_type() {
        DataType::List(_) => elements(&array.as_list::<i32>().value(at), numbers, out),
        DataType::FixedSizeList(..) => elements(&array.as_fixed_size_list().value(at), numbers, out),
        DataType::Struct(fields) => {
            for (i, field) in fields.iter().enumerate() {
                out.push(if i == 0 { b'{' } else { b',' });
                text(field.name(), out)?;
                out.push(b':');
                json(array.as_struct().column(i), at, numbers, out)?;
            }
            out.extend_from_slice(if fields.is_empty() { b"{}" } else { b"}" });
            Ok(())
        }
        // A time in a ROS bag consists of seconds and nanoseconds. `rovelog cat` shows both
        // numbers.
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            pair(array.as_primitive::<TimestampNanosecondType>().value(at), numbers, out);
            Ok(())
        }
        DataType::Duration(TimeUnit::Nanosecond) => {
            pair(array.as_primitive::<DurationNanosecondType>().value(at), numbers, out);
            Ok(())
        }
        DataType::Binary => base64(array.as_binary::<i32>().value(at), out),
        DataType::FixedSizeBinary(_) => base64(array.as_fixed_size_binary().value(at), out),
        DataType::Utf8 => text(array.as_string::<i32>().value(at), out),
        _ => json_number(array, at, numbers, out),
    }
}

/// Writes a number or boolean as JSON, with the same digits as in a CSV cell. A value that a JSON
/// number cannot represent exactly is written as a string.
fn json_number(
    array: &ArrayRef,
    at: usize,
    numbers: &mut Numbers,
    out: &mut Vec<u8>,
) -> Result<(), ExportError> {
    let schema = Schema::new(vec![arrow_schema::Field::new("", array.data_type().clone(), true)]);
    let leaf = &leaves(&schema, crate::leaf::Names::Bracket)[0];
    let mut cell = Vec::new();
    Cells::of(array, leaf)?.write(at, Style { pyulog: false, delimiter: 0 }, numbers, &mut cell)?;
    let is_exact = match array.data_type() {
        DataType::Int64 | DataType::UInt64 => false,
        data_type => !data_type.is_floating() || !matches!(&cell[..], b"NaN" | b"inf" | b"-inf"),
    };
    if is_exact {
        out.extend_from_slice(&cell);
        return Ok(());
    }
    text(&String::from_utf8_lossy(&cell), out)
}

/// Writes the elements of a list as a JSON array.
fn elements(array: &ArrayRef, numbers: &mut Numbers, out: &mut Vec<u8>) -> Result<(), ExportError> {
    out.push(b'[');
    for i in 0..array.len() {
        if i > 0 {
            out.push(b',');
        }
        json(array, i, numbers, out)?;
    }
    out.push(b']');
    Ok(())
}

/// Writes a time as a JSON object with the members `sec` and `nsec`.
fn pair(nanos: i64, numbers: &mut Numbers, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"sec\":");
    numbers.integer(nanos.div_euclid(1_000_000_000), out);
    out.extend_from_slice(b",\"nsec\":");
    numbers.integer(nanos.rem_euclid(1_000_000_000), out);
    out.push(b'}');
}

/// Writes a text as a JSON string.
fn text(text: &str, out: &mut Vec<u8>) -> Result<(), ExportError> {
    serde_json::to_writer(out, text).map_err(|error| ExportError::Io(error.into()))
}

fn base64(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), ExportError> {
    text(&BASE64.encode(bytes), out)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{BinaryArray, ListArray, StructArray};
    use arrow_buffer::OffsetBuffer;
    use arrow_schema::{Field, Fields};

    use super::*;

    /// In a list, bytes must have the same format as in `Value::to_json`.
    #[test]
    fn bytes_in_a_list_are_base64() {
        let fields = Fields::from(vec![Field::new("b", DataType::Binary, false)]);
        let bytes: ArrayRef = Arc::new(BinaryArray::from_vec(vec![b"\x00\xff"]));
        let structs = StructArray::new(fields, vec![bytes], None);
        let item = Arc::new(Field::new_list_field(structs.data_type().clone(), false));
        let list: ArrayRef =
            Arc::new(ListArray::new(item, OffsetBuffer::from_lengths([1]), Arc::new(structs), None));
        let mut out = Vec::new();
        json(&list, 0, &mut Numbers::default(), &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), r#"[{"b":"AP8="}]"#);
    }
}
