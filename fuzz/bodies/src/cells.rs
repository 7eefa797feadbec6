//! Compares the cells of tables with the values of records.

use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    DurationNanosecondType, Float32Type, Float64Type, Int64Type, TimestampNanosecondType,
};
use arrow_array::{Array, RecordBatch, downcast_integer_array};
use arrow_schema::{DataType, Schema, TimeUnit};
use rovelog::Value;

/// Maximum nesting depth of the values that are compared. Types with a greater depth become flat
/// columns in tables.
const MAX_DEPTH: usize = 20;

/// Returns a time or a duration in nanoseconds. Such a value is a struct with the fields `sec` and
/// `nsec`. Returns `None` for any other value.
fn nanos(value: &Value) -> Option<i64> {
    let Value::Struct(fields) = value else { return None };
    let [(sec_name, sec), (nsec_name, nsec)] = &fields[..] else { return None };
    let part = |value: &Value| match value {
        Value::Int(value, 32) => Some(*value),
        Value::UInt(value, 32) => i64::try_from(*value).ok(),
        _ => None,
    };
    let named = &**sec_name == "sec" && &**nsec_name == "nsec";
    part(sec)?.checked_mul(1_000_000_000)?.checked_add(part(nsec)?).filter(|_| named)
}

/// Returns a list as text. The text is empty if the texts of all its elements are empty.
fn list_of(items: impl Iterator<Item = String>) -> String {
    let items: Vec<_> = items.collect();
    if items.iter().all(String::is_empty) { String::new() } else { format!("[{}]", items.join(", ")) }
}

/// Returns a struct as text. Fields whose text is empty are omitted. The text is empty if all
/// fields are omitted.
fn struct_of(fields: impl Iterator<Item = (String, String)>) -> String {
    let fields = fields.filter(|(_, text)| !text.is_empty()).map(|(name, text)| format!("{name}: {text}"));
    let fields: Vec<_> = fields.collect();
    if fields.is_empty() { String::new() } else { format!("{{{}}}", fields.join(", ")) }
}

/// Returns a value as text, in the same form as [`cell_text`]. Floats are written as their bits,
/// because there are many different NaN values.
fn value_text(value: &Value) -> String {
    if let Some(nanos) = nanos(value) {
        return nanos.to_string();
    }
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(v) => v.to_string(),
        Value::Int(v, _) => v.to_string(),
        Value::UInt(v, _) => v.to_string(),
        Value::F32(v) => format!("{:08x}", v.to_bits()),
        Value::F64(v) => format!("{:016x}", v.to_bits()),
        Value::Text(v) => format!("{v:?}"),
        Value::Bytes(v) => format!("{v:x?}"),
        Value::List(items) => list_of(items.iter().map(value_text)),
        Value::Struct(fields) => {
            struct_of(fields.iter().map(|(name, value)| (name.to_string(), value_text(value))))
        }
        other => panic!("an unknown kind of value: {other:?}"),
    }
}

/// Returns the cell of a column in the row `row` as text.
fn cell_text(array: &dyn Array, row: usize) -> String {
    if array.is_null(row) {
        return "null".to_owned();
    }
    let list = |items: &dyn Array| list_of((0..items.len()).map(|at| cell_text(items, at)));
    match array.data_type() {
        DataType::Boolean => array.as_boolean().value(row).to_string(),
        DataType::Float32 => format!("{:08x}", array.as_primitive::<Float32Type>().value(row).to_bits()),
        DataType::Float64 => format!("{:016x}", array.as_primitive::<Float64Type>().value(row).to_bits()),
        DataType::Utf8 => format!("{:?}", array.as_string::<i32>().value(row)),
        DataType::Binary => format!("{:x?}", array.as_binary::<i32>().value(row)),
        DataType::FixedSizeBinary(_) => format!("{:x?}", array.as_fixed_size_binary().value(row)),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            array.as_primitive::<TimestampNanosecondType>().value(row).to_string()
        }
        DataType::Duration(_) => array.as_primitive::<DurationNanosecondType>().value(row).to_string(),
        DataType::List(_) => list(&array.as_list::<i32>().value(row)),
        DataType::FixedSizeList(..) => list(&array.as_fixed_size_list().value(row)),
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns();
            let fields = fields.iter().zip(columns);
            struct_of(fields.map(|(field, array)| (field.name().clone(), cell_text(array, row))))
        }
        _ => downcast_integer_array!(
            array => array.value(row).to_string(),
            other => panic!("a column of type {other}"),
        ),
    }
}

/// Returns the nesting depth of the structs and lists in a value.
fn depth(value: &Value) -> usize {
    match value {
        Value::List(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Struct(fields) => 1 + fields.iter().map(|(_, value)| depth(value)).max().unwrap_or(0),
        _ => 0,
    }
}

/// Returns a value in the form in which a column of this type stores it. A text that is not valid
/// UTF-8 is stored as bytes in a value. In a column, it is a text with replacement characters.
fn with_replacements(data_type: &DataType, value: &Value) -> Value {
    match (data_type, value) {
        (DataType::Utf8, Value::Bytes(bytes)) => Value::Text(String::from_utf8_lossy(bytes).into_owned()),
        (DataType::List(item) | DataType::FixedSizeList(item, _), Value::List(values)) => {
            Value::List(values.iter().map(|value| with_replacements(item.data_type(), value)).collect())
        }
        (DataType::Struct(fields), Value::Struct(values)) => {
            let values = fields.iter().zip(values);
            Value::record(
                values.map(|(field, (name, value))| {
                    (name.clone(), with_replacements(field.data_type(), value))
                }),
            )
        }
        _ => value.clone(),
    }
}

/// Returns the value of a record in the form in which columns with this schema store it.
pub(crate) fn as_columns(value: &Value, schema: &Schema) -> Value {
    let Value::Struct(values) = value else { return value.clone() };
    Value::record(values.iter().map(|(name, value)| {
        let field = schema.fields().iter().skip(1).find(|field| field.name() == &**name);
        (
            name.clone(),
            field.map_or_else(|| value.clone(), |field| with_replacements(field.data_type(), value)),
        )
    }))
}

/// Time of a row, and value of the record in this row.
pub(crate) type Row = (Option<i64>, Value);

/// Checks a table that was read from an exported file. Its first columns are `t_ns` and `time`.
/// They are followed by the fields, except fields without any value. If `has_more_columns` is true,
/// the table may have additional columns, so fields are searched by name.
pub(crate) fn check_table(table: &RecordBatch, rows: &[Row], has_more_columns: bool) {
    assert_eq!(table.num_rows(), rows.len(), "rows of the table");
    let times = table.column(0).as_primitive::<Int64Type>();
    for (row, (time, value)) in rows.iter().enumerate() {
        assert_eq!(times.is_valid(row).then(|| times.value(row)), *time, "t_ns of row {row}");
        let Value::Struct(fields) = value else { panic!("a record is a struct") };
        if depth(value) > MAX_DEPTH {
            continue;
        }
        if has_more_columns {
            for (name, value) in fields {
                if let Some(column) = table.column_by_name(name) {
                    assert_eq!(cell_text(column, row), value_text(value), "{name} of row {row}");
                }
            }
            continue;
        }
        let holds = |text: &String| !text.is_empty();
        let want: Vec<_> = fields.iter().map(|(_, value)| value_text(value)).filter(holds).collect();
        let columns = table.columns()[2..].iter().map(|column| cell_text(column, row));
        assert_eq!(columns.filter(holds).collect::<Vec<_>>(), want, "row {row}");
    }
}

/// Expected content of a CSV cell.
enum Cell {
    /// Exactly this text.
    Text(String),
    /// A number that is parsed to a 32-bit float with these bits.
    F32(u32),
    /// A number that is parsed to a 64-bit float with these bits.
    F64(u64),
    /// A date, which is not compared.
    Date,
}

impl Cell {
    fn matches(&self, text: &str) -> bool {
        match self {
            Self::Text(want) => text == want,
            Self::F32(bits) if f32::from_bits(*bits).is_nan() => text == "NaN",
            Self::F64(bits) if f64::from_bits(*bits).is_nan() => text == "NaN",
            Self::F32(bits) => text.parse::<f32>().is_ok_and(|value| value.to_bits() == *bits),
            Self::F64(bits) => text.parse::<f64>().is_ok_and(|value| value.to_bits() == *bits),
            Self::Date => text.ends_with('Z'),
        }
    }
}

/// Returns a value whose times are in the form of CSV files: the nanoseconds are at least zero and
/// less than one second.
fn with_normalized_times(value: &Value) -> Value {
    if let Some(nanos) = nanos(value) {
        let sec = Value::Int(nanos.div_euclid(1_000_000_000), 32);
        return Value::record([("sec", sec), ("nsec", Value::Int(nanos.rem_euclid(1_000_000_000), 32))]);
    }
    match value {
        Value::List(items) => Value::List(items.iter().map(with_normalized_times).collect()),
        Value::Struct(fields) => Value::Struct(
            fields.iter().map(|(name, value)| (name.clone(), with_normalized_times(value))).collect(),
        ),
        other => other.clone(),
    }
}

/// Appends the CSV cells that are expected for a value of this type to `found`.
fn cells(data_type: &DataType, value: &Value, found: &mut Vec<Cell>) {
    match (data_type, value) {
        (DataType::Struct(fields), Value::Struct(values)) => {
            assert_eq!(fields.len(), values.len());
            for (field, (_, value)) in fields.iter().zip(values) {
                cells(field.data_type(), value, found);
            }
        }
        (DataType::FixedSizeList(item, _), Value::List(values)) => {
            for value in values {
                cells(item.data_type(), value, found);
            }
        }
        (DataType::List(_), value) => found.push(Cell::Text(with_normalized_times(value).to_json())),
        // A CSV file does not contain bytes. The export reports them as missing.
        (DataType::Binary | DataType::FixedSizeBinary(_), _) => {}
        (DataType::Timestamp(..), _) => found.push(Cell::Date),
        (_, Value::F32(value)) => found.push(Cell::F32(value.to_bits())),
        (_, Value::F64(value)) => found.push(Cell::F64(value.to_bits())),
        (_, Value::Text(text)) => found.push(Cell::Text(text.clone())),
        (_, Value::Null) => found.push(Cell::Text(String::new())),
        (_, value) => found.push(Cell::Text(value_text(value))),
    }
}

/// Checks the CSV file of a topic with this schema. Its first columns are the two columns of times.
/// They are followed by the leaf fields. For `has_more_columns`, see [`check_table`].
pub(crate) fn check_csv(text: &[u8], schema: &Schema, rows: &[Row], has_more_columns: bool) {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text);
    let mut lines = reader.records().map(|line| line.expect("all lines have the same number of cells"));
    let head = lines.next().expect("the file has a header");
    assert_eq!((&head[0], &head[1]), ("time", "t_ns"));
    for (row, (time, value)) in rows.iter().enumerate() {
        let line = lines.next().expect("a line for each record");
        assert_eq!(&line[1], time.map_or(String::new(), |time| time.to_string()), "t_ns of row {row}");
        let Value::Struct(fields) = value else { panic!("a record is a struct") };
        let mut want = Vec::new();
        if has_more_columns {
            for (name, value) in fields {
                // Fields that consist of several columns are not compared.
                let Ok(field) = schema.field_with_name(name) else { continue };
                let at = head.iter().position(|column| column == &**name);
                cells(field.data_type(), value, &mut want);
                if let (Some(at), [cell]) = (at, &want[..]) {
                    assert!(cell.matches(&line[at]), "row {row}, {name}: {:?} for {value:?}", &line[at]);
                }
                want.clear();
            }
            continue;
        }
        for (field, (_, value)) in schema.fields().iter().skip(1).zip(fields) {
            cells(field.data_type(), value, &mut want);
        }
        assert_eq!(line.len(), 2 + want.len(), "cells of row {row}: {head:?}");
        for (at, (cell, text)) in want.iter().zip(line.iter().skip(2)).enumerate() {
            assert!(cell.matches(text), "row {row}, {}: {text:?} for {value:?}", &head[at + 2]);
        }
    }
    assert!(lines.next().is_none(), "more lines than records");
}
