//! Columns hold what records hold, on every bag.
#![cfg(feature = "arrow")]

mod support;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    DurationNanosecondType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampNanosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatchReader as _};
use arrow_schema::{DataType, TimeUnit};
use rovelog_core::{LogReader, Select, Value};
use support::readable;

fn pair(nanos: i64) -> Value {
    let (sec, nsec) = (nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000));
    Value::record([("sec", Value::Int(sec, 64)), ("nsec", Value::Int(nsec, 64))])
}

/// The value of one row, from its column.
fn cell(array: &ArrayRef, row: usize) -> Value {
    macro_rules! int {
        ($ty:ty, $kind:ident, $bits:literal) => {
            Value::$kind(array.as_primitive::<$ty>().value(row).into(), $bits)
        };
    }
    let list = |values: ArrayRef| Value::List((0..values.len()).map(|i| cell(&values, i)).collect());
    match array.data_type() {
        DataType::Boolean => Value::Bool(array.as_boolean().value(row)),
        DataType::Int8 => int!(Int8Type, Int, 8),
        DataType::Int16 => int!(Int16Type, Int, 16),
        DataType::Int32 => int!(Int32Type, Int, 32),
        DataType::Int64 => int!(Int64Type, Int, 64),
        DataType::UInt8 => int!(UInt8Type, UInt, 8),
        DataType::UInt16 => int!(UInt16Type, UInt, 16),
        DataType::UInt32 => int!(UInt32Type, UInt, 32),
        DataType::UInt64 => int!(UInt64Type, UInt, 64),
        DataType::Float32 => Value::F32(array.as_primitive::<Float32Type>().value(row)),
        DataType::Float64 => Value::F64(array.as_primitive::<Float64Type>().value(row)),
        DataType::Timestamp(TimeUnit::Nanosecond, None) => {
            pair(array.as_primitive::<TimestampNanosecondType>().value(row))
        }
        DataType::Duration(TimeUnit::Nanosecond) => {
            pair(array.as_primitive::<DurationNanosecondType>().value(row))
        }
        DataType::Utf8 => Value::Text(array.as_string::<i32>().value(row).to_owned()),
        DataType::Binary => Value::Bytes(array.as_binary::<i32>().value(row).to_vec()),
        DataType::List(_) => list(array.as_list::<i32>().value(row)),
        DataType::FixedSizeList(..) => list(array.as_fixed_size_list().value(row)),
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns();
            Value::record(
                fields.iter().zip(columns).map(|(f, column)| (f.name().as_str(), cell(column, row))),
            )
        }
        other => panic!("{other}"),
    }
}

/// A value of a record as columns hold it: times as one number, texts with replacements.
fn columnar(value: Value) -> Value {
    match value {
        Value::Struct(fields) => {
            let number = |value: &Value| match value {
                Value::Int(n, 32) => Some(*n),
                Value::UInt(n, 32) => i64::try_from(*n).ok(),
                _ => None,
            };
            match &fields[..] {
                [(a, sec), (b, nsec)] if &**a == "sec" && &**b == "nsec" => {
                    let (sec, nsec) = (number(sec).expect("a time"), number(nsec).expect("a time"));
                    pair(sec * 1_000_000_000 + nsec)
                }
                _ => Value::Struct(fields.into_iter().map(|(name, value)| (name, columnar(value))).collect()),
            }
        }
        Value::List(items) => Value::List(items.into_iter().map(columnar).collect()),
        other => other,
    }
}

/// Values are compared as JSON, where NaN equals NaN; texts that are not UTF-8 differ by design.
fn json(value: &Value) -> String {
    value.to_json()
}

#[test]
fn columns_hold_what_records_hold() {
    let mut rows = 0;
    for (log, bag) in readable() {
        for topic in bag.topics().iter().filter(|topic| topic.schema.is_some()) {
            let what = format!("{} {}", log.name, topic.name);
            let select = Select::topic(topic.name.clone());
            let records = bag.records_in_file_order().filter(|r| r.topic.id == topic.id);
            // Messages that do not decode, or only as bytes, have no row.
            let mut want = records.filter_map(|r| {
                let value = r.value().ok()?;
                (value.get("raw").is_none() || topic.type_name.contains("Blob"))
                    .then_some((r.time.unwrap().nanos, value))
            });
            let batches = bag.topic_batches(topic, &select).expect("it can be decoded");
            let schema = batches.schema();
            for batch in batches {
                let batch = batch.expect("a batch");
                assert_eq!(batch.schema(), schema, "{what}");
                let times = batch.column(0).as_primitive::<Int64Type>();
                for row in 0..batch.num_rows() {
                    let (time, value) =
                        want.next().unwrap_or_else(|| panic!("{what}: more rows than messages"));
                    assert_eq!(times.value(row), time, "{what}");
                    let names = schema.fields()[1..].iter().map(|field| field.name().as_str());
                    let cells = batch.columns()[1..].iter().map(|column| cell(column, row));
                    let got = Value::record(names.zip(cells));
                    let want = columnar(value);
                    if !log.name.contains("not-utf-8") && !topic.type_name.ends_with("Scalars") {
                        assert_eq!(json(&got), json(&want), "{what}");
                    }
                    rows += 1;
                }
            }
            assert!(want.next().is_none(), "{what}: fewer rows than messages");
        }
    }
    assert!(rows > 100, "only {rows} rows");
}

#[test]
fn fields_are_selected() {
    let log = support::corpus().into_iter().find(|log| log.name == "types-nested").expect("in the corpus");
    let bag = support::open(&log.bytes);
    let topic = bag.topic("/t").expect("its topic");
    let select = Select::topic("/t").with_fields(["many.s", "header.stamp"]);
    let batch = bag.topic_batches(topic, &select).unwrap().next().unwrap().unwrap();
    let names: Vec<_> = batch.schema().fields().iter().map(|field| field.name().clone()).collect();
    assert_eq!(names, ["t_ns", "header", "many"]);
    assert_eq!(batch.column(1).as_struct().num_columns(), 1);
    assert_eq!(batch.num_rows(), 3);
    let all: usize = bag.batches(&Select::all()).map(|batch| batch.unwrap().1.num_rows()).sum();
    assert_eq!(all as u64, bag.info().records);
}
