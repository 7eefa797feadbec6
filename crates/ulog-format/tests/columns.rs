//! Tests that columns contain the same values as records, for every log.
#![cfg(feature = "arrow")]

mod support;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use arrow_schema::ArrowError;
use rovelog_core::{LogReader, LogStream as _, ReadOptions, Select, TopicId};
use rovelog_testing::{Dribble, Log, timed_rows};
use support::{LOGS, log_of, open, try_open};
use ulog_format::{FormatBuilder, UlogStream, UlogWriter};

/// Returns the rows of a batch as times and JSON. JSON is used for the comparison because two NaN
/// values are equal in JSON.
fn rows(batch: &RecordBatch) -> Vec<(Option<i64>, String)> {
    timed_rows(batch).into_iter().map(|(time, value)| (time, value.to_json())).collect()
}

fn check(log: &Log) {
    let Some(reader) = try_open(&log.bytes) else { return };
    let mut want = vec![Vec::new(); reader.topics().len()];
    for record in reader.records_in_file_order() {
        let value = record.value().expect("a sound row").to_json();
        want[record.topic.id.index()].push((record.time.map(|time| time.nanos), value));
    }
    let mut kept = vec![Vec::new(); want.len()];
    for (topic, table) in reader.tables(&Select::all()).expect("small") {
        kept[topic.index()] = rows(&table);
    }
    // This log has not been scanned yet, so it is validated and converted in one pass.
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
    let one_pass = by_topic(&mut open(&log.bytes).batches(&Select::all()));
    // The pipe returns chunks of various sizes, so a chunk can end anywhere inside a message.
    let pipe = UlogStream::new(Dribble::new(&log.bytes, [7, 4096, 1, 70_000]), &ReadOptions::default())
        .expect("opens as well");
    let piped = by_topic(&mut pipe.batches(&Select::all()));
    for topic in reader.topics() {
        let what = format!("{} {}", log.name, topic.name);
        let want = &want[topic.id.index()];
        assert!(kept[topic.id.index()] == *want, "{what}: kept columns differ");
        assert!(indexed[topic.id.index()] == *want, "{what}: columns by the index differ");
        assert!(one_pass[topic.id.index()] == *want, "{what}: columns in one pass differ");
        assert!(piped[topic.id.index()] == *want, "{what}: columns from a pipe differ");
        let Ok(batches) = reader.own(topic).unwrap().columns(&Select::all()) else {
            assert!(topic.schema.is_none(), "{what} has a schema and no columns");
            continue;
        };
        let one: Vec<_> = batches.flat_map(|batch| rows(&batch.expect("small"))).collect();
        assert!(one == *want, "{what}: columns of one topic differ");
    }
}

#[test]
fn columns_contain_the_values_of_records() {
    LOGS.all().iter().for_each(check);
}

/// In a long log, memory for all rows is reserved after the first part has been converted. In this
/// test, the other parts contain more rows than expected.
#[test]
fn columns_can_outgrow_the_reserved_memory() {
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
    let reader = open(&LOGS.case("nested-types").bytes);
    let topic = &reader.topics()[0];
    let schema = topic.schema.as_ref().expect("decodable");
    let nested = schema.fields.iter().find(|field| field.ty.nested().is_some()).expect("a nested field");
    let inner = &nested.ty.nested().expect("nested").fields[0];
    let select = Select::all().with_fields([format!("{}.{}", nested.name, inner.name)]);
    let batches: Vec<_> = reader.own(topic).unwrap().columns(&select).expect("decodable").collect();
    let batch = batches[0].as_ref().expect("small");
    assert_eq!(batch.num_columns(), 2);
    assert_eq!(batch.schema().field(1).name(), &*nested.name);
    let times = batch.column(0).as_primitive::<Int64Type>().values().to_vec();

    let select = Select::all().between(Some(times[1]), Some(times[2]));
    let batches: Vec<_> = reader.own(topic).unwrap().columns(&select).expect("decodable").collect();
    assert_eq!(batches.iter().map(|b| b.as_ref().expect("small").num_rows()).sum::<usize>(), 1);
}

#[test]
fn columns_have_metadata_about_their_fields() {
    let reader = open(&LOGS.case("one-topic").bytes);
    let batches = reader.own(&reader.topics()[0]).unwrap().columns(&Select::all()).expect("decodable");
    let schema = batches.schema();
    assert_eq!(schema.metadata()["rovelog.topic"], "t/0");
    let timestamp = schema.field_with_name("timestamp").expect("a field");
    assert_eq!(timestamp.metadata()["source_type"], "uint64_t");
    assert_eq!(timestamp.metadata()["unit"], "us");
}

/// If a pipe has no more bytes after a row, it pauses, and then continues with the next row.
#[test]
fn a_pipe_may_pause_anywhere() {
    // Each row takes 16 bytes and starts at a multiple of 16 bytes.
    let mut messages =
        vec![(b'F', b"t:uint64_t timestamp;uint8_t[3] value;".to_vec()), (b'A', b"\0\0\0t".to_vec())];
    messages.extend((0..200_u64).map(|time| (b'D', [&[0, 0], &time.to_le_bytes()[..], &[7; 3]].concat())));
    let bytes = log_of(&messages);
    for first in 16..600 {
        let pipe = || UlogStream::new(Dribble::new(&bytes, [first, 4096]), &ReadOptions::default()).unwrap();
        let batches = pipe().batches(&Select::all()).map(|batch| batch.expect("small").1.num_rows());
        assert_eq!(batches.sum::<usize>(), 200, "{first}");
        let (mut stream, mut records) = (pipe(), 0);
        while stream.next_record().expect("readable").is_some() {
            records += 1;
        }
        assert_eq!(records, 200, "{first}");
    }
}
