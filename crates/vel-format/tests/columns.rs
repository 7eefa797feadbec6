//! The columns of every log must equal the records of the log.
#![cfg(feature = "arrow")]

mod support;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float32Type, Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use rovelog_core::{LogReader, ReadOptions, Select, Topic, Value};
use rovelog_testing::{Log, json_of, value_at};
use serde_json::{Value as Json, json};
use support::{LOGS, open};
use vel_format::velodyne::PointOptions;
use vel_format::{Kind, NewMessage, VelReader, WriteOptions, write_log};

/// Returns a cell of a column as JSON, in the form that the same field has in a record.
fn cell(column: &dyn Array, row: usize) -> Json {
    json_of(&value_at(column, row))
}

fn batches(log: &VelReader, topic: &Topic, select: &Select) -> Vec<RecordBatch> {
    let batches = log.own(topic).unwrap().columns(select).expect("a topic of this log");
    let schema = batches.schema();
    let batches: Vec<_> = batches.map(|batch| batch.expect("a batch")).collect();
    assert!(batches.iter().all(|batch| batch.schema() == schema), "{}", topic.name);
    batches
}

#[test]
fn columns_equal_records() {
    let mut own = 0;
    for log in LOGS.corpus() {
        let mut options = ReadOptions::default();
        let expected = LOGS.expected(&log.name);
        options.declarations = expected["vel"]["declarations"].as_str().unwrap_or_default().to_owned();
        own += usize::from(!options.declarations.is_empty());
        check(&log, &options);
    }
    assert!(own > 0, "no log of the corpus has types of its own");
    for log in &LOGS.real() {
        check(log, &ReadOptions::default());
    }
}

/// A type with all data types of section 2 of the VEL specification is declared. Each data type
/// occurs as a single value and as an array.
#[test]
fn columns_of_own_types_equal_records() {
    let mut options = ReadOptions::default();
    options.declarations = "message AllM 100
  bool yes
  unsigned char a
  unsigned short b
  unsigned int c
  int d
  long long e
  float f
  double g
  string h
  unsigned int n
  long long many[n]
  int seq
"
    .to_owned();
    let types = vel_format::declared::Types::parse(&options.declarations).unwrap();
    let row = |yes: bool, many: &[i64]| {
        Value::record([
            ("yes", Value::Bool(yes)),
            ("a", Value::UInt(255, 8)),
            ("b", Value::UInt(65_535, 16)),
            ("c", Value::UInt(4_294_967_295, 32)),
            ("d", Value::Int(-2_147_483_648, 32)),
            ("e", Value::Int(i64::MIN, 64)),
            ("f", Value::F32(0.1)),
            ("g", Value::F64(0.1)),
            ("h", Value::Text("mast".to_owned())),
            ("n", Value::UInt(many.len() as u64, 32)),
            ("many", Value::List(many.iter().map(|n| Value::Int(*n, 64)).collect())),
            ("seq", Value::Int(-1, 32)),
        ])
    };
    let rows = [row(true, &[1, -2, 3]), row(false, &[])];
    let message = |row| NewMessage::declared(5.0, &types.declared()[0], row).unwrap();
    let mut bytes = Vec::new();
    write_log(&rows.each_ref().map(message), &WriteOptions::default(), &mut bytes).unwrap();
    let reader = VelReader::new(bytes.into(), &options).unwrap();
    let records: Vec<_> = reader.records_in_file_order().map(|record| record.value().unwrap()).collect();
    assert_eq!(records, rows);
    check_reader("all", &reader);
}

fn check(log: &Log, options: &ReadOptions) {
    if let Ok(reader) = VelReader::new(log.bytes.clone(), options) {
        check_reader(&log.name, &reader);
    }
}

fn check_reader(log_name: &str, reader: &VelReader) {
    for topic in reader.topics().iter().filter(|topic| topic.type_name != "VelodyneRawDataM") {
        let batches = batches(reader, topic, &Select::all());
        let mut rows = batches.iter().flat_map(|batch| (0..batch.num_rows()).map(move |row| (batch, row)));
        for record in reader.records_in_file_order().filter(|record| record.topic.id == topic.id) {
            let (batch, row) = rows.next().expect("as many rows as records");
            let time = batch["t_ns"].as_primitive::<Int64Type>().value(row);
            assert_eq!(Some(time), record.time.map(|time| time.nanos), "{} {}", log_name, topic.name);
            assert_eq!(batch["offset"].as_primitive::<UInt64Type>().value(row), record.offset);
            let message = reader.message_at(record.offset).unwrap();
            let millis = batch["ts_ms"].as_primitive::<Float64Type>().value(row);
            assert_eq!(millis.to_bits(), message.header.timestamp.get().to_bits());
            let Value::Struct(fields) = record.value().unwrap() else { panic!("a struct") };
            for (name, value) in fields {
                assert_eq!(cell(&batch[&*name], row), json_of(&value), "{} {} {name}", log_name, topic.name);
            }
        }
        assert!(rows.next().is_none(), "{} {}", log_name, topic.name);
    }
}

#[test]
fn columns_have_the_inferred_meaning() {
    let Some(log) = LOGS.real_log("gps_nmea_units") else { return };
    let reader = open(&log.bytes);
    let gps = &batches(&reader, reader.topic("GPSDataM").unwrap().get(), &Select::all())[0];
    let latitude = gps["latitude_deg"].as_primitive::<Float64Type>().value(1);
    assert!((50.3..50.4).contains(&latitude), "{latitude}");
    assert!((5000.0..5100.0).contains(&gps["latitude"].as_primitive::<Float64Type>().value(1)));
    // The export and the Python package add a column `time` with the wall time to logs of every
    // format. So the reader must not use this name.
    assert!(gps.schema().field_with_name("time").is_err());
    let pose = &batches(&reader, reader.topic("RobotPoseM").unwrap().get(), &Select::all())[0];
    assert!(pose["qw"].as_primitive::<Float32Type>().value(0) > 0.99);
    let select = Select::all().with_fields(["qw", "az"]);
    let pose = &batches(&reader, reader.topic("RobotPoseM").unwrap().get(), &select)[0];
    let names: Vec<_> = pose.schema().fields().iter().map(|field| field.name().clone()).collect();
    assert_eq!(names, ["t_ns", "qw", "az"]);
    assert_eq!(pose.schema().field(2).metadata()["unit"], "m/s2");
}

#[test]
fn selected_batches_have_the_rows_of_the_window() {
    let Some(log) = LOGS.real_log("good") else { return };
    let reader = open(&log.bytes);
    let topic = reader.topic("RobotPoseM").unwrap();
    let (first, last) = (topic.first.unwrap().nanos, topic.last.unwrap().nanos);
    let middle = first.midpoint(last);
    let rows = |select: &Select| {
        batches(&reader, topic.get(), select).iter().map(RecordBatch::num_rows).sum::<usize>()
    };
    let before = rows(&Select::all().between(None, Some(middle)));
    let after = rows(&Select::all().between(Some(middle), None));
    assert_eq!((before + after) as u64, topic.count);
    assert!(before > 0 && after > 0);
}

#[test]
fn packets_and_points_are_columns() {
    let Some(log) = LOGS.real_log("vlp16") else { return };
    let reader = open(&log.bytes);
    let topic = reader.topic("VelodyneRawDataM").unwrap();
    let packets = batches(&reader, topic.get(), &Select::all());
    assert_eq!(packets.iter().map(RecordBatch::num_rows).sum::<usize>(), 80);
    assert_eq!(packets[0]["data"].as_fixed_size_binary().value(0).len(), 1206);
    assert_eq!(cell(&packets[0]["product"], 0), json!(0x22));
    let all = Select::all();
    let points = reader.point_batches(None, None, PointOptions::default(), &all).unwrap();
    let points: Vec<_> = points.map(|batch| batch.unwrap()).collect();
    let mut revolutions = reader.revolutions(None, None, PointOptions::default(), 0).unwrap();
    for batch in &points {
        let revolution = revolutions.next().expect("a batch for each");
        assert_eq!(batch.num_rows(), revolution.points.len());
        for (row, point) in revolution.points.iter().enumerate().step_by(97) {
            let f32s = |name: &str| batch[name].as_primitive::<Float32Type>().value(row);
            let bits = |v: [f32; 3]| v.map(f32::to_bits);
            assert_eq!(bits([f32s("x"), f32s("y"), f32s("z")]), bits([point.x, point.y, point.z]));
            assert_eq!(cell(&batch["ring"], row), json!(point.ring));
            assert_eq!(cell(&batch["revolution"], row), json!(revolution.number));
            let time = batch["t_ns"].as_primitive::<Int64Type>().value(row);
            assert_eq!(time, revolution.nanos + i64::from(point.nanos));
            assert!((f32s("distance") - f32::from(point.distance) * 0.002).abs() < 1e-4);
        }
    }
    assert!(revolutions.next().is_none());
    let names = [
        "t_ns",
        "x",
        "y",
        "z",
        "intensity",
        "ring",
        "time",
        "laser",
        "azimuth",
        "distance",
        "return",
        "revolution",
    ];
    let schema = points[0].schema();
    let got: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    assert_eq!(got, names);
    assert_eq!(reader.payloads(Kind::Velodyne).count(), 5);
}
