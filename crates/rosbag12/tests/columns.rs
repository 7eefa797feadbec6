//! Tests that the columns of every bag have the same content as its records.
#![cfg(feature = "arrow")]

mod support;

use std::io::Cursor;

use arrow_array::RecordBatchReader as _;
use arrow_array::cast::AsArray as _;
use rosbag12::BagWriter;
use rovelog_core::{LogReader, Select, Value};
use rovelog_testing::timed_rows;
use support::{LOGS, open, readable};

/// Returns a value as it appears in columns, where each time is a single number.
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
                    Value::Int(sec * 1_000_000_000 + nsec, 64)
                }
                _ => Value::Struct(fields.into_iter().map(|(name, value)| (name, columnar(value))).collect()),
            }
        }
        Value::List(items) => Value::List(items.into_iter().map(columnar).collect()),
        other => other,
    }
}

#[test]
fn columns_and_records_have_the_same_content() {
    let mut rows = 0;
    for (log, bag) in readable() {
        for topic in bag.topics().iter().filter(|topic| topic.schema.is_some()) {
            let what = format!("{} {}", log.name, topic.name);
            let select = Select::topic(topic.name.clone());
            let records = bag.records_in_file_order().filter(|r| r.topic.id == topic.id);
            // Messages that cannot be decoded and messages that are decoded only as raw bytes have
            // no row.
            let mut want = records.filter_map(|r| {
                let value = r.value().ok()?;
                (value.get("raw").is_none() || topic.type_name.contains("Blob"))
                    .then_some((r.time.unwrap().nanos, value))
            });
            let batches = bag.own(topic).and_then(|topic| topic.columns(&select)).expect("it can be decoded");
            let schema = batches.schema();
            for batch in batches {
                let batch = batch.expect("a batch");
                assert_eq!(batch.schema(), schema, "{what}");
                for (time, got) in timed_rows(&batch) {
                    let (want_time, want) =
                        want.next().unwrap_or_else(|| panic!("{what}: more rows than messages"));
                    assert_eq!(time, Some(want_time), "{what}");
                    // Values are compared as JSON, because NaN equals NaN there.
                    if !topic.type_name.ends_with("Scalars") {
                        assert_eq!(got.to_json(), columnar(want).to_json(), "{what}");
                    }
                    rows += 1;
                }
            }
            assert!(want.next().is_none(), "{what}: fewer rows than messages");
        }
    }
    assert!(rows > 100, "only {rows} rows");
}

/// The bag consists of several blocks, and each block is read in steps of one megabyte.
#[test]
fn columns_of_a_large_bag_contain_all_messages() {
    let mut out = BagWriter::new(Cursor::new(Vec::new())).expect("memory");
    let id = out.connect(b"/a", b"a/B", &[b'0'; 32], b"uint8[] x").expect("a topic");
    let payload = [&60_000u32.to_le_bytes()[..], &vec![7; 60_000]].concat();
    for sec in 0..150 {
        out.message(id, sec, 0, None, &payload).expect("memory");
    }
    let bag = open(&out.finish().expect("memory").into_inner().into());
    let topic = bag.topic("/a").expect("its topic");
    let batches = topic.columns(&Select::topic("/a")).unwrap();
    let times: Vec<_> = batches.flat_map(|batch| timed_rows(&batch.unwrap())).map(|(time, _)| time).collect();
    assert_eq!(times, (0..150).map(|sec| Some(sec * 1_000_000_000)).collect::<Vec<_>>());
    let records = bag.records(&Select::all()).map(|record| record.unwrap().seq);
    assert!(records.eq(0..150));
}

#[test]
fn fields_are_selected() {
    let bag = open(&LOGS.case("types-nested").bytes);
    let topic = bag.topic("/t").expect("its topic");
    let select = Select::topic("/t").with_fields(["many.s", "header.stamp"]);
    let batch = topic.columns(&select).unwrap().next().unwrap().unwrap();
    let names: Vec<_> = batch.schema().fields().iter().map(|field| field.name().clone()).collect();
    assert_eq!(names, ["t_ns", "header", "many"]);
    assert_eq!(batch.column(1).as_struct().num_columns(), 1);
    assert_eq!(batch.num_rows(), 3);
    let all: usize = bag.batches(&Select::all()).map(|batch| batch.unwrap().1.num_rows()).sum();
    assert_eq!(all as u64, bag.info().records);
}
