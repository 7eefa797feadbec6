//! Columns hold exactly what records hold, for every log there is.
#![cfg(feature = "arrow")]

mod support;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{ArrowError, DataType};
use rovelog_core::{LogReader, ReadOptions, Select, TopicId, Value};
use rovelog_testing::Dribble;
use support::{Log, corpus, logs_in, open, real};
use ulog_format::{FormatBuilder, UlogReader, UlogStream, UlogWriter};

/// The value of a column at a row, as a record would give it.
fn value_at(array: &dyn Array, row: usize) -> Value {
    macro_rules! number {
        ($ty:ty) => {
            array.as_primitive::<$ty>().value(row)
        };
    }
    match array.data_type() {
        DataType::Boolean => Value::Bool(array.as_boolean().value(row)),
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
        DataType::Utf8 => Value::Text(array.as_string::<i32>().value(row).to_owned()),
        DataType::FixedSizeList(..) => {
            let list = array.as_fixed_size_list().value(row);
            Value::List((0..list.len()).map(|i| value_at(&list, i)).collect())
        }
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns().iter();
            Value::record(fields.iter().zip(columns).map(|(f, c)| (f.name().as_str(), value_at(c, row))))
        }
        other => panic!("no ULog field is of type {other}"),
    }
}

/// Rows of a batch as time and JSON; JSON because NaN equals NaN there.
fn rows(batch: &RecordBatch) -> Vec<(Option<i64>, String)> {
    let times = batch.column(0).as_primitive::<Int64Type>();
    let row = |row: usize| {
        let schema = batch.schema();
        let fields = schema.fields().iter().zip(batch.columns()).skip(1);
        let value =
            Value::record(fields.map(|(field, column)| (field.name().as_str(), value_at(column, row))));
        ((!times.is_null(row)).then(|| times.value(row)), value.to_json())
    };
    (0..batch.num_rows()).map(row).collect()
}

fn check(log: &Log) {
    let Ok(reader) = UlogReader::new(log.bytes.clone(), &ReadOptions::default()) else { return };
    let mut want = vec![Vec::new(); reader.topics().len()];
    for record in reader.records_in_file_order() {
        let value = record.value().expect("a sound row").to_json();
        want[record.topic.id.index()].push((record.time.map(|time| time.nanos), value));
    }
    let mut kept = vec![Vec::new(); want.len()];
    for (topic, table) in reader.tables(&Select::all()).expect("small") {
        kept[topic.index()] = rows(&table);
    }
    // Nothing was asked of this one before: it is judged and gathered in one pass.
    let unasked = open(&log.bytes).tables(&Select::all()).expect("small");
    assert!(unasked.iter().all(|(topic, table)| rows(table) == kept[topic.index()]), "{}: kept", log.name);
    assert_eq!(unasked.len(), kept.iter().filter(|rows| !rows.is_empty()).count(), "{}: kept", log.name);
    let by_topic = |batches: &mut dyn Iterator<Item = Result<(TopicId, RecordBatch), ArrowError>>| {
        let mut by_topic = vec![Vec::new(); want.len()];
        for batch in batches {
            let (topic, batch) = batch.expect("small");
            by_topic[topic.index()].extend(rows(&batch));
        }
        by_topic
    };
    let indexed = by_topic(&mut reader.batches(&Select::all()));
    let judged = by_topic(&mut open(&log.bytes).batches(&Select::all()));
    // Windows end anywhere.
    let pipe = UlogStream::new(Dribble::new(&log.bytes, [7, 4096, 1, 70_000]), &ReadOptions::default())
        .expect("opens as well");
    let piped = by_topic(&mut pipe.batches(&Select::all()));
    for topic in reader.topics() {
        let what = format!("{} {}", log.name, topic.name);
        let want = &want[topic.id.index()];
        assert!(kept[topic.id.index()] == *want, "{what}: kept columns differ");
        assert!(indexed[topic.id.index()] == *want, "{what}: columns by the index differ");
        assert!(judged[topic.id.index()] == *want, "{what}: columns in one pass differ");
        assert!(piped[topic.id.index()] == *want, "{what}: columns from a pipe differ");
        let Ok(batches) = reader.columns(topic, &Select::all()) else {
            assert!(topic.schema.is_none(), "{what} has a schema and no columns");
            continue;
        };
        let one: Vec<_> = batches.flat_map(|batch| rows(&batch.expect("small"))).collect();
        assert!(one == *want, "{what}: columns of one topic differ");
    }
}

#[test]
fn columns_equal_records_on_the_corpus() {
    corpus().iter().for_each(check);
}

#[test]
fn columns_equal_records_on_real_logs() {
    let Some(folder) = real() else { return };
    logs_in(&folder).iter().for_each(check);
}

/// A log so long that room for all rows is foreseen after its first part, which is not like the others.
#[test]
fn kept_columns_outgrow_the_room_that_was_foreseen() {
    let mut writer = UlogWriter::new(Vec::new(), 0).expect("memory can be written");
    for name in ["early", "late"] {
        let format = format!("{name}:uint64_t timestamp;uint32_t[20] x;bool b;char[2] c;");
        writer.define(&FormatBuilder::parse(&format).expect("the grammar")).expect("new");
    }
    let topics = ["early", "late"].map(|name| writer.subscribe(name, 0).expect("defined"));
    for time in 0..220_000u64 {
        let mut row = [0u8; 91];
        row[..8].copy_from_slice(&time.to_le_bytes());
        row[84..88].copy_from_slice(&time.to_le_bytes()[..4]);
        row[88] = u8::from(time % 3 == 0);
        let topic = topics[usize::from(time > 20_000 && time % 8 != 0)];
        writer.write_row_bytes(topic, &row).expect("a whole row");
    }
    let bytes = writer.finish().expect("memory can be written").into();
    let reader = open(&bytes);
    let unasked = reader.tables(&Select::all()).expect("small");
    assert_eq!(reader.info().records, 220_000);
    assert_eq!(unasked, reader.tables(&Select::all()).expect("small"));
}

#[test]
fn fields_and_times_are_selected_inside_the_decode() {
    let log = corpus().into_iter().find(|log| log.name == "nested-types").expect("in the corpus");
    let reader = open(&log.bytes);
    let topic = &reader.topics()[0];
    let schema = topic.schema.as_ref().expect("decodable");
    let nested = schema.fields.iter().find(|field| field.ty.nested().is_some()).expect("a nested field");
    let inner = &nested.ty.nested().expect("nested").fields[0];
    let select = Select::all().with_fields([format!("{}.{}", nested.name, inner.name)]);
    let batches: Vec<_> = reader.columns(topic, &select).expect("decodable").collect();
    let batch = batches[0].as_ref().expect("small");
    assert_eq!(batch.num_columns(), 2);
    assert_eq!(batch.schema().field(1).name(), &*nested.name);
    let times = batch.column(0).as_primitive::<Int64Type>().values().to_vec();

    let select = Select::all().between(Some(times[1]), Some(times[2]));
    let batches: Vec<_> = reader.columns(topic, &select).expect("decodable").collect();
    assert_eq!(batches.iter().map(|b| b.as_ref().expect("small").num_rows()).sum::<usize>(), 1);
}

#[test]
fn columns_say_what_their_fields_were() {
    let log = corpus().into_iter().find(|log| log.name == "one-topic").expect("in the corpus");
    let reader = open(&log.bytes);
    let batches = reader.columns(&reader.topics()[0], &Select::all()).expect("decodable");
    let schema = batches.schema();
    assert_eq!(schema.metadata()["rovelog.topic"], "t/0");
    let timestamp = schema.field_with_name("timestamp").expect("a field");
    assert_eq!(timestamp.metadata()["source_type"], "uint64_t");
    assert_eq!(timestamp.metadata()["unit"], "us");
}
