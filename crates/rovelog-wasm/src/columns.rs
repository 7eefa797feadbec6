//! Columns of topics as bytes that JavaScript uses as typed arrays.
//!
//! The answer consists of the size of a JSON text as a 32-bit number, the text, and the bytes of the
//! columns. The text lists the topics. For each column of a topic, it has the name, the type, and the
//! position after the text at which the bytes of the column start. Each column starts at a multiple
//! of 8 bytes from the start of the answer. Numbers are little endian.
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
use arrow_array::{Array as _, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use rovelog::{LogReader, Select, Topic, TopicRef};
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
    let mut table = Table::new(topic.get(), &batches.schema());
    for batch in batches {
        table.push(&batch.map_err(|error| error.to_string())?)?;
    }
    Ok(encode(vec![table]))
}

/// Returns the columns of several topics, or of all topics if `names` is empty. The log is read
/// once. Topics without columns are left out.
pub(crate) fn of_topics(log: &dyn LogReader, names: &[String]) -> Result<Vec<u8>, String> {
    for name in names {
        log.topic(name).ok_or_else(|| format!("the log has no topic {name}"))?;
    }
    let select = if names.is_empty() { Select::all() } else { Select::topics(names) };
    let mut tables: Vec<Option<Table>> = log.topics().iter().map(|_| None).collect();
    for batch in log.batches(&select) {
        let (topic, batch) = batch.map_err(|error| error.to_string())?;
        let new = || Table::new(&log.topics()[topic.index()], &batch.schema());
        let table = tables[topic.index()].get_or_insert_with(new);
        table.push(&batch)?;
    }
    Ok(encode(tables.into_iter().flatten().collect()))
}

/// The columns of a topic.
struct Table {
    topic: String,
    flat: FlatColumns,
    rows: usize,
    columns: Vec<Column>,
}

impl Table {
    fn new(topic: &Topic, schema: &Schema) -> Self {
        let flat = FlatColumns::new(schema);
        let rows = usize::try_from(topic.count).unwrap_or(0);
        let columns = flat.schema().fields().iter().map(|field| Column::new(field, rows)).collect();
        Self { topic: topic.name.clone(), flat, rows: 0, columns }
    }

    /// Appends the rows of a batch.
    fn push(&mut self, batch: &RecordBatch) -> Result<(), String> {
        let batch = self.flat.convert(batch).map_err(|error| error.to_string())?;
        let mut columns = self.columns.iter_mut().zip(batch.columns());
        columns.try_for_each(|(column, values)| column.push(values, self.rows))?;
        self.rows += batch.num_rows();
        Ok(())
    }
}

/// The values of a column.
struct Column {
    name: String,
    data_type: &'static str,
    values: Vec<u8>,
    /// For texts: the end of each text in `values`.
    ends: Vec<u32>,
    /// A byte for each row, which is 1 if the row has a value. Empty as long as all rows have one.
    valid: Vec<u8>,
}

impl Column {
    /// Creates a column without values. `rows` is the number of rows that it will probably have.
    fn new(field: &Field, rows: usize) -> Self {
        let data_type = type_name(field.data_type());
        let width = field.data_type().primitive_width().unwrap_or(1);
        let values = Vec::with_capacity(rows * width);
        Self { name: field.name().clone(), data_type, values, ends: Vec::new(), valid: Vec::new() }
    }

    /// Returns the size in bytes of the values in the answer.
    fn len(&self) -> usize {
        if self.data_type == "text" {
            4 * (self.ends.len() + 1) + self.values.len()
        } else {
            self.values.len()
        }
    }

    /// Appends the values of a batch. `rows` is the number of rows before it.
    fn push(&mut self, array: &ArrayRef, rows: usize) -> Result<(), String> {
        if array.null_count() > 0 || !self.valid.is_empty() {
            self.valid.resize(rows, 1);
            self.valid.extend((0..array.len()).map(|row| u8::from(array.is_valid(row))));
        }
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

/// Encodes tables. The description of the module states the form.
fn encode(tables: Vec<Table>) -> Vec<u8> {
    let mut end = 0_usize;
    // Returns the start of the next `len` bytes.
    let mut place = |len: usize| {
        let at = end.next_multiple_of(8);
        end = at + len;
        at
    };
    let mut described: Vec<Value> = Vec::new();
    for Table { topic, flat, rows, columns } in &tables {
        let columns = columns.iter().map(|column| {
            let at = place(column.len());
            let valid = (!column.valid.is_empty()).then(|| place(column.valid.len()));
            json!({ "name": column.name, "type": column.data_type, "at": at, "valid": valid })
        });
        let columns: Vec<Value> = columns.collect();
        described
            .push(json!({ "topic": topic, "rows": rows, "columns": columns, "omitted": flat.omitted() }));
    }
    let mut bytes = rovelog_explore::head(&Value::from(described), end);
    for Column { data_type, values, ends, valid, .. } in tables.into_iter().flat_map(|table| table.columns) {
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        if data_type == "text" {
            bytes.extend([0].iter().chain(&ends).flat_map(|end| end.to_le_bytes()));
        }
        bytes.extend_from_slice(&values);
        if !valid.is_empty() {
            bytes.resize(bytes.len().next_multiple_of(8), 0);
            bytes.extend_from_slice(&valid);
        }
    }
    bytes
}
