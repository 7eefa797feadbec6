//! Conversion of Arrow columns to record values, so that columns can be compared with records.

use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    DurationNanosecondType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampNanosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, TimeUnit};
use rovelog_core::Value;

/// Converts the cell of `column` at `row` to a [`Value`]. Times and durations become nanoseconds.
pub fn value_at(column: &dyn Array, row: usize) -> Value {
    macro_rules! number {
        ($ty:ty) => {
            column.as_primitive::<$ty>().value(row)
        };
    }
    let list = |items: &dyn Array| Value::List((0..items.len()).map(|i| value_at(items, i)).collect());
    match column.data_type() {
        _ if column.is_null(row) => Value::Null,
        DataType::Boolean => Value::Bool(column.as_boolean().value(row)),
        DataType::Int8 => Value::Int(number!(Int8Type).into(), 8),
        DataType::UInt8 => Value::UInt(number!(UInt8Type).into(), 8),
        DataType::Int16 => Value::Int(number!(Int16Type).into(), 16),
        DataType::UInt16 => Value::UInt(number!(UInt16Type).into(), 16),
        DataType::Int32 => Value::Int(number!(Int32Type).into(), 32),
        DataType::UInt32 => Value::UInt(number!(UInt32Type).into(), 32),
        DataType::Int64 => Value::Int(number!(Int64Type), 64),
        DataType::UInt64 => Value::UInt(number!(UInt64Type), 64),
        DataType::Float32 => Value::F32(number!(Float32Type)),
        DataType::Float64 => Value::F64(number!(Float64Type)),
        DataType::Timestamp(TimeUnit::Nanosecond, None) => Value::Int(number!(TimestampNanosecondType), 64),
        DataType::Duration(TimeUnit::Nanosecond) => Value::Int(number!(DurationNanosecondType), 64),
        DataType::Utf8 => Value::Text(column.as_string::<i32>().value(row).to_owned()),
        DataType::Binary => Value::Bytes(column.as_binary::<i32>().value(row).to_vec()),
        DataType::List(_) => list(&column.as_list::<i32>().value(row)),
        DataType::FixedSizeList(..) => list(&column.as_fixed_size_list().value(row)),
        DataType::Struct(fields) => {
            let columns = column.as_struct().columns().iter();
            Value::record(fields.iter().zip(columns).map(|(f, c)| (f.name().as_str(), value_at(c, row))))
        }
        other => panic!("no field is of type {other}"),
    }
}

/// Converts the rows of a batch to pairs of a time and a record. The first column of the batch is
/// the time. The other columns are the fields of the record.
pub fn timed_rows(batch: &RecordBatch) -> Vec<(Option<i64>, Value)> {
    let times = batch.column(0).as_primitive::<Int64Type>();
    let schema = batch.schema();
    let row = |row: usize| {
        let fields = schema.fields().iter().zip(batch.columns()).skip(1);
        let value =
            Value::record(fields.map(|(field, column)| (field.name().as_str(), value_at(column, row))));
        ((!times.is_null(row)).then(|| times.value(row)), value)
    };
    (0..batch.num_rows()).map(row).collect()
}
