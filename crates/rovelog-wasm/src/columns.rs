//! Columns of a topic as bytes that JavaScript uses as typed arrays.
//!
//! The answer consists of the size of a JSON text as a 32-bit number, the text, and the bytes of the
//! columns. For each column, the text has its name, its type, and the position of its bytes, which
//! is a multiple of 8 from the start of the answer. Numbers are little endian.
//!
//! | type | bytes |
//! |---|---|
//! | `i8` to `i64`, `u8` to `u64`, `f32`, `f64` | the numbers |
//! | `bool` | a byte for each value, 0 or 1 |
//! | `text` | `rows + 1` 32-bit positions in the text, then the text as UTF-8 |
//!
//! If values are missing, the column also has the position of a byte for each row, which is 1 if the
//! row has a value.

use arrow_array::cast::AsArray as _;
use arrow_array::{Array as _, ArrayRef};
use arrow_schema::{ArrowError, DataType};
use rovelog::{Select, TopicRef};
use rovelog_export::flat::FlatColumns;
use serde_json::{Value, json};

/// Returns the columns of a topic. `fields` selects fields; if it is empty, all fields are
/// selected. The time columns are always included.
pub(crate) fn of_topic(topic: TopicRef<'_>, fields: &[String]) -> Result<Vec<u8>, String> {
    let mut select = Select::topic(&topic.name);
    if !fields.is_empty() {
        select = select.with_fields(fields);
    }
    let batches = topic.columns(&select).map_err(|error| error.to_string())?;
    let flat = FlatColumns::new(&batches.schema());
    let names = flat.schema().fields().iter().map(|field| field.name().clone());
    let mut columns: Vec<Column> = names.map(Column::new).collect();
    let mut rows = 0;
    let arrow = |error: ArrowError| error.to_string();
    for batch in batches {
        let batch = flat.convert(&batch.map_err(|error| error.to_string())?).map_err(arrow)?;
        rows += batch.num_rows();
        columns.iter_mut().zip(batch.columns()).try_for_each(|(column, values)| column.push(values))?;
    }
    encode(rows, columns, flat.omitted())
}

/// The values of a column.
struct Column {
    name: String,
    data_type: &'static str,
    values: Vec<u8>,
    /// For texts: the end of each text in `values`.
    ends: Vec<u32>,
    /// A byte for each row, which is 1 if the row has a value.
    valid: Vec<u8>,
}

impl Column {
    fn new(name: String) -> Self {
        Self { name, data_type: "f64", values: Vec::new(), ends: Vec::new(), valid: Vec::new() }
    }

    /// Appends the values of a batch.
    fn push(&mut self, array: &ArrayRef) -> Result<(), String> {
        self.data_type = type_name(array.data_type());
        self.valid.extend((0..array.len()).map(|row| u8::from(array.is_valid(row))));
        match array.data_type() {
            DataType::Boolean => {
                let values = array.as_boolean();
                self.values.extend((0..values.len()).map(|row| u8::from(values.value(row))));
            }
            DataType::Utf8 => {
                for text in array.as_string::<i32>() {
                    self.values.extend_from_slice(text.unwrap_or_default().as_bytes());
                    let end =
                        u32::try_from(self.values.len()).map_err(|_| "more than 4 GB of text in a column")?;
                    self.ends.push(end);
                }
            }
            data_type => {
                let width = data_type.primitive_width().ok_or("the column has no numbers")?;
                let data = array.to_data();
                let (from, len) = (data.offset() * width, data.len() * width);
                self.values.extend_from_slice(&data.buffers()[0][from..from + len]);
            }
        }
        Ok(())
    }
}

/// Returns the name of a type in the answer.
fn type_name(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::Int8 => "i8",
        DataType::Int16 => "i16",
        DataType::Int32 => "i32",
        DataType::Int64 => "i64",
        DataType::UInt8 => "u8",
        DataType::UInt16 => "u16",
        DataType::UInt32 => "u32",
        DataType::UInt64 => "u64",
        DataType::Float32 => "f32",
        DataType::Boolean => "bool",
        DataType::Utf8 => "text",
        _ => "f64",
    }
}

/// Encodes columns. The description of the module states the form.
fn encode(rows: usize, columns: Vec<Column>, omitted: &[String]) -> Result<Vec<u8>, String> {
    let mut body: Vec<u8> = Vec::new();
    let mut append = |parts: &[&[u8]]| {
        body.resize(body.len().next_multiple_of(8), 0);
        let at = body.len();
        parts.iter().for_each(|part| body.extend_from_slice(part));
        at
    };
    let mut described: Vec<Value> = Vec::new();
    for Column { name, data_type, values, ends, valid } in columns {
        let at = if data_type == "text" {
            let starts: Vec<u8> = [0].iter().chain(&ends).flat_map(|end| end.to_le_bytes()).collect();
            append(&[&starts, &values])
        } else {
            append(&[&values])
        };
        let valid = valid.contains(&0).then(|| append(&[&valid]));
        described.push(json!({ "name": name, "type": data_type, "at": at, "valid": valid }));
    }
    let mut head = json!({ "rows": rows, "columns": described, "omitted": omitted }).to_string();
    // The text is padded with spaces so that the columns start at a multiple of 8 bytes.
    while !(4 + head.len()).is_multiple_of(8) {
        head.push(' ');
    }
    let size = u32::try_from(head.len()).map_err(|_| "the topic has too many columns")?;
    Ok([&size.to_le_bytes()[..], head.as_bytes(), &body].concat())
}
