//! Columns hold exactly what records hold, for every log there is.
#![cfg(feature = "arrow")]

mod support;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int32Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use rld_format::ColumnOptions;
use rovelog_core::{LogReader, Select, Value};
use rovelog_testing::Log;
use support::{corpus, open, real_logs, try_open};

/// The value of a column at a row, as a record would give it.
fn value_at(array: &dyn Array, row: usize) -> Value {
    if array.is_null(row) {
        return Value::Null;
    }
    match array.data_type() {
        DataType::Boolean => Value::Bool(array.as_boolean().value(row)),
        DataType::Int32 => Value::Int(array.as_primitive::<Int32Type>().value(row).into(), 64),
        DataType::Int64 => Value::Int(array.as_primitive::<Int64Type>().value(row), 64),
        DataType::Float64 => Value::F64(array.as_primitive::<Float64Type>().value(row)),
        other => panic!("no column is of type {other}"),
    }
}

fn rows(batch: &RecordBatch) -> Vec<(Option<i64>, String)> {
    let times = batch.column(0).as_primitive::<Int64Type>();
    let schema = batch.schema();
    let row = |row: usize| {
        let fields = schema.fields().iter().zip(batch.columns()).skip(1);
        let value =
            Value::record(fields.map(|(field, column)| (field.name().as_str(), value_at(column, row))));
        ((!times.is_null(row)).then(|| times.value(row)), value.to_json())
    };
    (0..batch.num_rows()).map(row).collect()
}

fn check(log: &Log, limit: usize) {
    let Some(reader) = try_open(&log.bytes) else { return };
    let topic = &reader.topics()[0];
    let Ok(batches) = reader.columns(topic, &Select::all()) else {
        assert!(topic.schema.is_none(), "{} has a schema and no columns", log.name);
        return;
    };
    let records = reader.records_in_file_order().take(limit);
    let want: Vec<_> =
        records.map(|r| (r.time.map(|t| t.nanos), r.value().expect("a sound row").to_json())).collect();
    let mut got = Vec::new();
    for batch in batches {
        if got.len() < limit {
            got.extend(rows(&batch.expect("a batch")));
        }
    }
    got.truncate(limit);
    assert!(got == want, "{}: columns differ from records", log.name);

    // Raw values are those of rows, in batches of any size.
    let options = ColumnOptions::raw().with_batch_rows(3);
    let mut row = 0;
    for batch in reader.batches(&Select::all(), &options).expect("rows").take(limit / 3) {
        let batch = batch.expect("a batch");
        for i in 0..batch.num_rows() {
            let want = reader.row(row).expect("a row");
            for channel in 0..reader.channels().len() {
                let got = value_at(batch.column(channel + 1), i);
                let want =
                    want.bit(channel).map(Value::Bool).or(want.raw(channel).map(|raw| Value::Int(raw, 64)));
                assert_eq!(Some(got), want, "{} row {row} channel {channel}", log.name);
            }
            row += 1;
        }
    }
}

#[test]
fn columns_equal_records_on_the_corpus() {
    for log in corpus() {
        check(&log, usize::MAX);
    }
}

#[test]
fn columns_equal_records_on_real_logs() {
    for log in real_logs() {
        check(&log, 9000);
    }
}

#[test]
fn channels_and_times_are_selected_inside_the_decode() {
    let log = corpus().into_iter().find(|log| log.name == "v4").expect("in the corpus");
    let reader = open(&log.bytes);
    let topic = &reader.topics()[0];
    let time = |row| reader.records_in_file_order().nth(row).and_then(|r| r.time).expect("a time").nanos;
    let select = Select::all().with_fields(["V2", "DI2"]).between(Some(time(3)), Some(time(12)));
    let batches: Vec<_> = reader.columns(topic, &select).expect("rows").collect();
    let batch = batches[0].as_ref().expect("a batch");
    assert_eq!((batch.num_columns(), batch.num_rows()), (3, 9));
    assert_eq!(batch.schema().field(2).name(), "V2");
    let want = reader.row(3).and_then(|row| row.physical(4)).expect("a value");
    assert_eq!(batch.column(2).as_primitive::<Float64Type>().value(0).to_bits(), want.to_bits());
}

#[test]
fn columns_say_what_their_channels_were() {
    let log = corpus().into_iter().find(|log| log.name == "v4").expect("in the corpus");
    let reader = open(&log.bytes);
    let schema = arrow_array::RecordBatchReader::schema(
        &reader.batches(&Select::all(), &ColumnOptions::raw()).expect("rows"),
    );
    assert_eq!(schema.metadata()["rovelog.topic"], "samples");
    let low = schema.field_with_name("I1L").expect("a channel");
    assert_eq!(low.data_type(), &DataType::Int32);
    assert_eq!((low.metadata()["rld.scale"].as_str(), low.metadata()["unit"].as_str()), ("-11", "10pA"));
    assert_eq!(low.metadata()["rld.valid_link"], "I1L_valid");
}

#[test]
fn buffers_are_reused_when_a_batch_is_gone() {
    let Some(log) = real_logs().into_iter().find(|log| log.name == "test_unsupported") else { return };
    let reader = open(&log.bytes);
    let mut batches = reader.batches(&Select::all(), &ColumnOptions::raw()).expect("rows");
    let mut address = || {
        let batch = batches.next().expect("a batch").expect("sound");
        batch.column(9).to_data().buffers()[0].as_ptr()
    };
    let first = address();
    assert_eq!(first, address());
}
