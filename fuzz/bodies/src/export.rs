//! Fuzz target for exports. A log is generated from the input, exported in each format, and read
//! back.

use std::fmt::Write as _;
use std::sync::Arc;

use arbitrary::{Arbitrary, Unstructured};
use arrow_array::RecordBatch;
use arrow_schema::Schema;
use arrow_select::concat::concat_batches;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use rovelog::core::internal::parallel::Jobs;
use rovelog::rosbag12::BagError;
use rovelog::rosbag12::v2::wire::ConnectionHeader;
use rovelog::rosbag12::v2::{self, Compression};
use rovelog::vel_format;
use rovelog::{AnyLog, Bytes, ReadOptions, Record, Select, Topic, Value};
use rovelog_export::mcap::{self, McapOptions};
use rovelog_export::table::{self, Kind, TableOptions, TimeUnit};
use rovelog_export::{Provenance, ndjson};

use crate::cells::{Row, as_columns, check_csv, check_table};
use crate::{rld, ulog, vel};

/// Content of a bag to write. Each message type has a definition with fields.
#[derive(Arbitrary, Debug)]
struct Bag {
    compression: u8,
    /// For each connection, its topic, and the type and the array length of each field.
    connections: Vec<(u8, Vec<(u8, u8)>)>,
    /// Connection, time in seconds and nanoseconds, and payload of each message.
    messages: Vec<(u8, u32, u32, Vec<u8>)>,
}

/// Returns the definition of a message type with these fields, given as types and array lengths.
fn definition(fields: &[(u8, u8)]) -> String {
    const TYPES: [&str; 16] = [
        "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32",
        "float64", "string", "time", "duration", "byte", "char",
    ];
    let mut text = String::new();
    for (number, (ty, array)) in fields.iter().enumerate() {
        let ty = TYPES[usize::from(ty % 16)];
        let array = match array % 8 {
            0..4 => String::new(),
            4 => "[]".to_owned(),
            length => format!("[{}]", length - 5),
        };
        let _ = writeln!(text, "{ty}{array} f{number}");
    }
    text
}

/// Generates the content of a bag from the input, and writes the bag.
fn bag(data: &mut Unstructured<'_>) -> Option<Vec<u8>> {
    let model = Bag::arbitrary(data).ok()?;
    let compression = Compression::ALL[usize::from(model.compression) % Compression::ALL.len()];
    let mut out = Vec::new();
    let written = v2::write(&mut out, compression, |bag| {
        let mut ids = Vec::new();
        for (number, (topic, fields)) in model.connections.iter().enumerate() {
            let topic = format!("/t{}", topic % 4);
            let header = ConnectionHeader {
                topic: Some(topic.as_bytes()),
                ty: Some(&format!("pkg/Type{number}").into_bytes()),
                md5sum: Some(b"*"),
                message_definition: Some(&definition(fields).into_bytes()),
                ..ConnectionHeader::default()
            }
            .to_data();
            ids.push(bag.connect(topic.as_bytes(), &header).expect("the bag has few connections"));
        }
        for (connection, sec, nsec, payload) in &model.messages {
            if let Some(id) = ids.get(usize::from(*connection) % ids.len().max(1)) {
                bag.message(*id, (*sec, *nsec), payload).expect("writing to memory succeeds");
            }
        }
        Ok::<_, BagError>(())
    });
    written.expect("writing to memory succeeds");
    Some(out)
}

/// Generates the content of a log from the input, and writes the log. The first byte selects the
/// log format.
fn from_model(data: &mut Unstructured<'_>) -> Option<Vec<u8>> {
    match u8::arbitrary(data).ok()? % 4 {
        0 => ulog::from_model(data),
        1 => rld::from_model(data),
        2 => vel::from_model(data),
        _ => bag(data),
    }
}

/// Checks that exported files contain the records of the log.
pub fn any_export(data: &[u8]) {
    let Some(bytes) = from_model(&mut Unstructured::new(data)) else { return };
    let Ok(log) = rovelog::from_bytes(Bytes::from(bytes), &ReadOptions::default()) else { return };
    check_exports(&log);
}

/// Exports a log in all formats, and checks the exported files.
pub(crate) fn check_exports(log: &AnyLog) {
    check_ndjson(log);
    check_tables(log);
    check_mcap(log);
}

/// Checks that each line of NDJSON contains the offset of a record and its value as JSON.
fn check_ndjson(log: &AnyLog) {
    let mut out = Vec::new();
    let done = ndjson::write(&**log, &Select::all(), Jobs::ONE, &mut out, &mut |_| ())
        .expect("writing to memory succeeds");
    let text = String::from_utf8(out).expect("JSON is text");
    let mut lines = text.lines();
    let mut undecodable = 0;
    for record in log.records(&Select::all()) {
        let record = record.expect("a valid record");
        let Ok(value) = record.value() else {
            undecodable += 1;
            continue;
        };
        let line = lines.next().expect("a line for each record");
        let end =
            format!(",\"seq\":{},\"offset\":{},\"data\":{}}}", record.seq, record.offset, value.to_json());
        assert!(line.ends_with(&end), "{line} for {end}");
        let document: serde_json::Value = serde_json::from_str(line).expect("a line is JSON");
        assert_eq!(document["topic"], record.topic.name);
        assert_eq!(
            document["t_ns"].as_str().map(str::to_owned),
            record.time.map(|time| time.nanos.to_string())
        );
    }
    assert!(lines.next().is_none(), "more lines than records");
    assert_eq!(done.messages + undecodable, log.info().records);
    assert_eq!(done.losses.is_empty(), undecodable == 0, "{:?}", done.losses);
}

/// Checks the CSV and Parquet files of every topic that has columns.
fn check_tables(log: &AnyLog) {
    let all = Select::all();
    let columns = |topic: &Topic| log.own(topic).and_then(|topic| topic.columns(&all));
    // The rows of a table are sorted by time, but rows without a time stay in place. This is only
    // checked in the tests of the export.
    let is_ordered = |topic: &Topic| topic.in_order || topic.timed == topic.count;
    let topics = log.topics().iter().filter(|topic| topic.count > 0 && is_ordered(topic));
    // In a table, a Velodyne message becomes several rows, one for each packet.
    let has_one_row = |topic: &&Topic| topic.type_name != vel_format::Kind::Velodyne.name();
    let topics: Vec<&Topic> = topics.filter(has_one_row).filter(|topic| columns(topic).is_ok()).collect();
    let mut options = TableOptions::default();
    (options.jobs, options.blobs, options.time_unit) = (Jobs::ONE, true, TimeUnit::Nanoseconds);
    let provenance = Provenance::new("log");
    // Tables of VEL logs contain additional columns: the header of each message, and values in
    // other units.
    let has_more_columns = matches!(log, AnyLog::Vel(_));
    let schema = |topic: &Topic| columns(topic).expect("the topic has columns").schema();
    let rows: Vec<Vec<Row>> = topics.iter().map(|topic| rows(log, topic, &schema(topic))).collect();
    let write = |kind| {
        let outputs = topics.iter().map(|topic| (*topic, Vec::new())).collect();
        table::write(&**log, outputs, &all, (kind, &options), &provenance, &mut |_| ())
            .expect("writing to memory succeeds")
            .0
    };
    for ((table, topic), rows) in write(Kind::Csv).iter().zip(&topics).zip(&rows) {
        let schema = schema(topic);
        assert_eq!(table.rows, rows.len() as u64, "rows of {}", topic.name);
        check_csv(&table.out, &schema, rows, has_more_columns);
    }
    for (table, rows) in write(Kind::Parquet).into_iter().zip(&rows) {
        check_table(&read_parquet(table.out), rows, has_more_columns);
    }
}

/// Returns the rows of a topic in the order of its table. A record that does not match its
/// definition only has the field `raw`. Such records are skipped.
fn rows(log: &AnyLog, topic: &Topic, schema: &Schema) -> Vec<Row> {
    let fits = |value: &Value| match value {
        Value::Struct(fields) if matches!(log, AnyLog::Rosbag(_)) => fields
            .iter()
            .map(|(name, _)| &**name)
            .eq(schema.fields().iter().skip(1).map(|field| field.name())),
        _ => true,
    };
    let records = log.records(&Select::topic(topic.name.clone()));
    let records = records.map(|record| record.expect("a valid record"));
    let mut records: Vec<_> = records.filter(|record| record.topic.id == topic.id).collect();
    if topic.in_order {
        // In a table, a record without a time stays where it is in the file.
        records.sort_by_key(|record| record.offset);
    }
    let time = |record: &Record<'_>| record.time.map(|time| time.nanos);
    let rows = records.iter().filter_map(|record| Some((time(record), record.value().ok()?)));
    rows.filter(|(_, value)| fits(value)).map(|(time, value)| (time, as_columns(&value, schema))).collect()
}

fn read_parquet(bytes: Vec<u8>) -> RecordBatch {
    let builder = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(bytes)).expect("a Parquet file");
    // The schema of the batches does not contain the metadata of the file, so the schema of the
    // file is used.
    let schema = Arc::clone(builder.schema());
    let batches = builder.build().expect("a Parquet file");
    let batches =
        batches.map(|batch| batch.expect("a batch").with_schema(Arc::clone(&schema)).expect("its schema"));
    concat_batches(&schema, &batches.collect::<Vec<_>>()).expect("all batches have one schema")
}

/// Checks that an MCAP file contains the reported number of messages. For a bag, also checks that
/// their payloads are the same.
fn check_mcap(log: &AnyLog) {
    let mut options = McapOptions::default();
    let is_bag = matches!(log, AnyLog::Rosbag(_));
    // For a bag, no messages are added for viewers. So each message in the file corresponds to a
    // record.
    (options.jobs, options.typed) = (Jobs::ONE, !is_bag);
    let provenance = Provenance::new("log");
    let mut out = Vec::new();
    let exported = mcap::write(log, &Select::all(), &options, &provenance, &mut out, &mut |_| ())
        .expect("writing to memory succeeds");
    let messages = ::mcap::MessageStream::new(&out).expect("an MCAP file");
    let messages: Vec<_> = messages.map(|message| message.expect("a message")).collect();
    assert_eq!(messages.len() as u64, exported.messages);
    if is_bag && exported.losses.is_empty() {
        let records = log.records(&Select::all()).map(|record| record.expect("a valid record"));
        for (record, message) in records.zip(&messages) {
            assert_eq!(&record.payload[..], &message.data[..], "at {}", record.offset);
        }
    }
}
