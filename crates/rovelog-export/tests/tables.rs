//! Exports all logs in the corpus and real logs as tables, reads the tables again, and compares
//! them with the records.

use std::io::{self, Cursor, Write};
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use arrow_array::{Array as _, ArrayRef, RecordBatch, downcast_integer_array};
use arrow_schema::DataType;
use arrow_select::concat::concat_batches;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use rovelog::core::internal::parallel::Jobs;
use rovelog::{AnyLog, ReadOptions, Select, Topic, Value};
use rovelog_export::signal::{Base, JoinOptions, join};
use rovelog_export::statistics::statistics;
use rovelog_export::table::{self, Dialect, Kind, TableOptions, TimeUnit};
use rovelog_export::{ExportError, Loss, Provenance};
use rovelog_testing::{Logs, RLD, ROSBAG, ULOG, VEL};

fn logs() -> Vec<(String, AnyLog)> {
    let mut logs = rovelog_testing::corpus("ulog", "ulg", 100);
    if let Some(real) = rovelog_testing::real("ulog") {
        logs.extend(rovelog_testing::logs_in(&real, "ulg"));
    }
    let open = |log: rovelog_testing::Log| {
        let opened = rovelog::from_bytes(log.bytes, &ReadOptions::default()).ok()?;
        Some((log.name, opened))
    };
    logs.into_iter().filter_map(open).collect()
}

/// Returns the topics that have rows and can be decoded.
fn topics(log: &AnyLog) -> Vec<&Topic> {
    log.topics()
        .iter()
        .filter(|topic| {
            topic.count > 0 && log.own(topic).and_then(|topic| topic.columns(&Select::all())).is_ok()
        })
        .collect()
}

fn written(log: &AnyLog, kind: Kind, options: &TableOptions, select: &Select) -> (Vec<Vec<u8>>, Vec<Loss>) {
    let outputs = topics(log).into_iter().map(|topic| (topic, Vec::new())).collect();
    let provenance = Provenance::new("log").with_sha256("0".repeat(64));
    let (tables, losses) =
        table::write(&**log, outputs, select, (kind, options), &provenance, &mut |_| ()).unwrap();
    (tables.into_iter().map(|table| table.out).collect(), losses)
}

/// The rows of a small table are written when the table is finished, so the error must be reported
/// at this point.
#[test]
fn a_full_disk_is_an_error_of_the_output() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let log = open("one-topic.ulg");
    for kind in [Kind::Csv, Kind::Parquet, Kind::Arrow] {
        let options = TableOptions::default();
        let provenance = Provenance::new("log").with_sha256("0".repeat(64));
        let outputs = vec![(&log.topics()[0], Full)];
        let written =
            table::write(&*log, outputs, &Select::all(), (kind, &options), &provenance, &mut |_| ());
        let error = written.err().unwrap();
        assert!(
            matches!(&error, ExportError::Io(error) if error.kind() == io::ErrorKind::StorageFull),
            "{error:?}"
        );
    }
}

/// For all log formats, the reader must report correctly whether the rows of a topic are in time
/// order.
#[test]
fn reported_order_equals_that_of_the_columns() {
    let mut met = [0, 0];
    for file in [ULOG, RLD, ROSBAG, VEL].iter().flat_map(Logs::corpus) {
        let Ok(log) = rovelog::from_bytes(file.bytes, &ReadOptions::default()) else { continue };
        for topic in log.topics() {
            let select = Select::all().without_fields();
            let Ok(batches) = log.own(topic).and_then(|topic| topic.columns(&select)) else { continue };
            let batches: Vec<_> = batches.map(|batch| batch.unwrap()).collect();
            let times = || batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>());
            let without = times().filter(Option::is_none).count() as u64;
            let told = (topic.in_order, topic.count - topic.timed);
            assert_eq!((times().flatten().is_sorted(), without), told, "{}: {}", file.name, topic.name);
            met[usize::from(topic.in_order)] += 1;
        }
    }
    assert!(met[0] > 5 && met[1] > 400, "{met:?} topics out of order, in order");
}

fn read_parquet(bytes: Vec<u8>) -> RecordBatch {
    let builder = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes)).unwrap();
    // The schema that the Parquet reader returns lacks the metadata of the file.
    let schema = Arc::clone(builder.schema());
    let reader = builder.build().unwrap();
    let batches = reader.map(|batch| batch.unwrap().with_schema(Arc::clone(&schema)).unwrap());
    concat_batches(&schema, &batches.collect::<Vec<_>>()).unwrap()
}

fn read_arrow(bytes: Vec<u8>) -> RecordBatch {
    let reader = arrow_ipc::reader::FileReader::try_new(Cursor::new(bytes), None).unwrap();
    let schema = reader.schema();
    concat_batches(&schema, &reader.collect::<Result<Vec<_>, _>>().unwrap()).unwrap()
}

/// Returns a value as text, in the same format as [`cell`]. Strings end at the first NUL.
fn text_of(value: &Value) -> String {
    match value {
        Value::Bool(v) => v.to_string(),
        Value::Int(v, _) => v.to_string(),
        Value::UInt(v, _) => v.to_string(),
        Value::F32(v) => format!("{:08x}", v.to_bits()),
        Value::F64(v) => format!("{:016x}", v.to_bits()),
        Value::Text(v) => v.clone(),
        Value::List(items) => {
            let items: Vec<_> = items.iter().map(text_of).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Struct(fields) => {
            let fields: Vec<_> =
                fields.iter().map(|(name, value)| format!("{name}: {}", text_of(value))).collect();
            format!("{{{}}}", fields.join(", "))
        }
        other => panic!("{other:?}"),
    }
}

fn cell(array: &dyn arrow_array::Array, row: usize) -> String {
    match array.data_type() {
        DataType::Float32 => {
            format!("{:08x}", array.as_primitive::<arrow_array::types::Float32Type>().value(row).to_bits())
        }
        DataType::Float64 => {
            format!("{:016x}", array.as_primitive::<arrow_array::types::Float64Type>().value(row).to_bits())
        }
        DataType::FixedSizeList(..) => {
            let items = array.as_fixed_size_list().value(row);
            let items: Vec<_> = (0..items.len()).map(|i| cell(&items, i)).collect();
            format!("[{}]", items.join(", "))
        }
        DataType::Struct(fields) => {
            let array = array.as_struct();
            let fields = fields.iter().zip(array.columns());
            let fields: Vec<_> =
                fields.map(|(field, array)| format!("{}: {}", field.name(), cell(array, row))).collect();
            format!("{{{}}}", fields.join(", "))
        }
        DataType::Boolean => array.as_boolean().value(row).to_string(),
        DataType::Utf8 => array.as_string::<i32>().value(row).to_owned(),
        _ => downcast_integer_array!(
            array => array.value(row).to_string(),
            other => panic!("{other}"),
        ),
    }
}

/// Rows in time order. Each row has its time, and the name and value of each field.
type Rows = Vec<(Option<i64>, Vec<(String, String)>)>;

fn rows(log: &AnyLog, topic: &Topic) -> Rows {
    let record = |record: rovelog::Result<rovelog::Record<'_>>| {
        let record = record.unwrap();
        let Value::Struct(fields) = record.value().unwrap() else { panic!("a record is a struct") };
        let fields = fields.iter().map(|(name, value)| (name.to_string(), text_of(value)));
        (record.time.map(|time| time.nanos), fields.collect())
    };
    log.records(&Select::topic(topic.name.clone())).map(record).collect()
}

/// Start of the names of logs whose types are nested so deeply that their fields become separate
/// columns.
const FLAT: &str = "nesting-64";

/// Compares a table with the records of its topic. Fields without values may be missing from the
/// table.
fn compare(name: &str, table: &RecordBatch, want: &Rows) {
    assert_eq!(table.num_rows(), want.len(), "{name}");
    let times = table.column(0).as_primitive::<Int64Type>();
    for (row, (time, fields)) in want.iter().enumerate() {
        let own = times.is_valid(row).then(|| times.value(row));
        assert_eq!(own, *time, "{name} row {row}");
        if name.starts_with(FLAT) {
            assert!(table.schema().fields().iter().all(|field| !field.data_type().is_nested()), "{name}");
            continue;
        }
        let held: Vec<_> = fields.iter().filter(|(_, value)| !matches!(&value[..], "[]" | "{}")).collect();
        let columns = table.columns()[2..].iter().map(|column| cell(column, row));
        let columns: Vec<_> = columns.filter(|value| !matches!(&value[..], "[]" | "{}")).collect();
        let values: Vec<_> = held.iter().map(|(_, value)| value.clone()).collect();
        assert_eq!(columns, values, "{name} row {row}");
    }
}

#[test]
fn parquet_and_arrow_equal_the_records() {
    let mut compared = 0;
    for (name, log) in logs() {
        // `cargo xtask oracle export` checks large logs.
        if log.info().size > 1_000_000 {
            continue;
        }
        let options = TableOptions::default();
        let (parquet, losses) = written(&log, Kind::Parquet, &options, &Select::all());
        assert_eq!(losses, [], "{name}");
        let (arrow, losses) = written(&log, Kind::Arrow, &options, &Select::all());
        assert_eq!(losses, [], "{name}");
        for ((topic, parquet), arrow) in topics(&log).into_iter().zip(parquet).zip(arrow) {
            let rows = rows(&log, topic);
            let name = format!("{name} {}", topic.name);
            compare(&name, &read_arrow(arrow), &rows);
            compare(&name, &read_parquet(parquet), &rows);
            compared += rows.len();
        }
    }
    assert!(compared > 300, "{compared}");
}

#[test]
fn the_same_log_gives_the_same_bytes() {
    for (name, log) in logs().into_iter().take(40) {
        for kind in Kind::ALL {
            let once = written(&log, kind, &TableOptions::default(), &Select::all());
            assert_eq!(once, written(&log, kind, &TableOptions::default(), &Select::all()), "{name}");
        }
    }
}

fn open(name: &str) -> AnyLog {
    let path = rovelog_testing::root().join("corpus/ulog").join(name);
    rovelog::open(path).unwrap()
}

#[test]
fn columns_carry_their_provenance() {
    let log = open("utc-gps-double.ulg");
    let table =
        read_parquet(written(&log, Kind::Parquet, &TableOptions::default(), &Select::all()).0.remove(0));
    let schema = table.schema();
    let names: Vec<_> = schema.fields().iter().take(3).map(|field| field.name().as_str()).collect();
    assert_eq!(names, ["t_ns", "time", "timestamp"]);
    let micros = DataType::Timestamp(arrow_schema::TimeUnit::Microsecond, Some("UTC".into()));
    assert_eq!(schema.field(1).data_type(), &micros);
    assert_eq!(schema.field(2).metadata()["source_type"], "uint64_t");
    let metadata = schema.metadata();
    for (key, value) in [
        ("rovelog.format", "ulog"),
        ("rovelog.source_name", "log"),
        ("rovelog.time_base", "utc"),
        ("rovelog.utc_rule", log.info().utc.as_ref().unwrap().rule),
        ("rovelog.instance", "0"),
    ] {
        assert_eq!(metadata[key], value, "{key}");
    }
    assert!(metadata["rovelog.tool"].starts_with("rovelog "));
    // If UTC is unknown, the column `time` has no time zone and contains times on the log's clock.
    let log = open("one-topic.ulg");
    let table = read_arrow(written(&log, Kind::Arrow, &TableOptions::default(), &Select::all()).0.remove(0));
    assert_eq!(
        table.schema().field(1).data_type(),
        &DataType::Timestamp(arrow_schema::TimeUnit::Nanosecond, None)
    );
    assert_eq!(table.schema().metadata()["rovelog.time_base"], "boot");
}

#[test]
fn flat_columns_for_spark_have_no_nested_and_no_unsigned_64_bit_types() {
    let mut options = TableOptions::default();
    (options.flatten, options.spark, options.time_unit) = (true, true, TimeUnit::Nanoseconds);
    for name in ["nested-types.ulg", "arrays-of-all-basic-types.ulg"] {
        let log = open(name);
        for bytes in written(&log, Kind::Parquet, &options, &Select::all()).0 {
            let schema = read_parquet(bytes).schema();
            for field in schema.fields() {
                assert!(!field.data_type().is_nested() && field.data_type() != &DataType::UInt64, "{field}");
            }
            assert_eq!(
                schema.field(1).data_type(),
                &DataType::Timestamp(arrow_schema::TimeUnit::Nanosecond, None)
            );
        }
    }
    // Values that do not fit the column type must become null and be reported as a loss.
    let log = open("all-basic-types.ulg");
    let (tables, losses) = written(&log, Kind::Parquet, &options, &Select::all());
    let lost: usize = tables
        .into_iter()
        .map(read_parquet)
        .map(|table| table.columns()[2..].iter().map(arrow_array::Array::null_count).sum::<usize>())
        .sum();
    assert_eq!(lost > 0, !losses.is_empty(), "{losses:?}");
}

/// Returns whether a column contains a type that Spark cannot read.
fn has_type_unknown_to_spark(data_type: &DataType) -> bool {
    match data_type {
        DataType::UInt64 | DataType::Duration(_) => true,
        DataType::Timestamp(unit, _) => *unit == arrow_schema::TimeUnit::Nanosecond,
        DataType::List(item) | DataType::FixedSizeList(item, _) => {
            has_type_unknown_to_spark(item.data_type())
        }
        DataType::Struct(fields) => fields.iter().any(|field| has_type_unknown_to_spark(field.data_type())),
        _ => false,
    }
}

/// Returns whether a column for Spark has the values of the column `plain`. Integers that do not fit
/// into int64 are null.
fn has_same_values(plain: &ArrayRef, spark: &ArrayRef) -> bool {
    match (plain.data_type(), spark.data_type()) {
        (DataType::Struct(_), DataType::Struct(_)) => {
            let (plain, spark) = (plain.as_struct(), spark.as_struct());
            plain.columns().iter().zip(spark.columns()).all(|(plain, spark)| has_same_values(plain, spark))
        }
        (DataType::List(_), DataType::List(_)) => {
            let (plain, spark) = (plain.as_list::<i32>(), spark.as_list::<i32>());
            plain.offsets() == spark.offsets() && has_same_values(plain.values(), spark.values())
        }
        (DataType::FixedSizeList(..), DataType::FixedSizeList(..)) => {
            has_same_values(plain.as_fixed_size_list().values(), spark.as_fixed_size_list().values())
        }
        (from, to) if from == to => plain == spark,
        _ => integers(plain) == integers(spark),
    }
}

/// Returns integers, times and durations as 64-bit integers.
fn integers(column: &ArrayRef) -> Vec<Option<i64>> {
    use arrow_array::types::{DurationNanosecondType, Int64Type, TimestampNanosecondType, UInt64Type};
    match column.data_type() {
        DataType::UInt64 => {
            let values = column.as_primitive::<UInt64Type>().iter();
            values.map(|value| i64::try_from(value?).ok()).collect()
        }
        DataType::Timestamp(..) => column.as_primitive::<TimestampNanosecondType>().iter().collect(),
        DataType::Duration(_) => column.as_primitive::<DurationNanosecondType>().iter().collect(),
        _ => column.as_primitive::<Int64Type>().iter().collect(),
    }
}

#[test]
fn nested_columns_for_spark_have_only_types_that_it_reads() {
    let mut options = TableOptions::default();
    options.spark = true;
    let mut nested = 0;
    for (name, log) in logs() {
        let plain = written(&log, Kind::Parquet, &TableOptions::default(), &Select::all()).0;
        let tables = written(&log, Kind::Parquet, &options, &Select::all()).0;
        for (plain, table) in plain.into_iter().zip(tables) {
            let (plain, table) = (read_parquet(plain), read_parquet(table));
            for (field, column) in table.schema().fields().iter().zip(table.columns()) {
                assert!(!has_type_unknown_to_spark(field.data_type()), "{name}: {field}");
                if field.data_type().is_nested() {
                    let before = plain.column_by_name(field.name()).expect("the same column");
                    assert!(has_same_values(before, column), "{name}: {field}");
                    nested += 1;
                }
            }
        }
    }
    assert!(nested > 10);
}

#[test]
fn columns_with_the_same_name_are_renamed() {
    for (name, log) in
        logs().into_iter().filter(|(name, _)| name == "field-name-twice" || name == "one-topic")
    {
        for bytes in written(&log, Kind::Parquet, &TableOptions::default(), &Select::all()).0 {
            let schema = read_parquet(bytes).schema();
            let mut names: Vec<_> = schema.fields().iter().map(|field| field.name().to_lowercase()).collect();
            let all = names.len();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), all, "{name}");
        }
    }
}

#[test]
fn tables_are_limited_to_the_selected_times() {
    let log = open("one-topic.ulg");
    let topic = topics(&log)[0];
    let all = rows(&log, topic);
    let middle = all[all.len() / 2].0;
    let select = Select::all().between(middle, None);
    let table = read_arrow(written(&log, Kind::Arrow, &TableOptions::default(), &select).0.remove(0));
    assert_eq!(table.num_rows(), all.len() - all.len() / 2);
    assert_eq!(table.column(0).as_primitive::<Int64Type>().value(0), middle.unwrap());
}

/// The cells of a CSV file must equal the records. Numbers must be parsed to the same bits.
#[test]
fn csv_equals_the_records() {
    let mut cells = 0;
    for (name, log) in logs().into_iter().filter(|(_, log)| log.info().size < 100_000) {
        let (tables, losses) = written(&log, Kind::Csv, &TableOptions::default(), &Select::all());
        assert_eq!(losses, [], "{name}");
        for (topic, bytes) in topics(&log).into_iter().zip(tables) {
            let mut reader = csv::ReaderBuilder::new().from_reader(&bytes[..]);
            let head = reader.headers().unwrap().clone();
            assert_eq!((&head[0], &head[1]), ("time", "t_ns"), "{name}");
            let records: Vec<_> =
                log.records(&Select::topic(topic.name.clone())).map(|record| record.unwrap()).collect();
            let mut lines = 0;
            for (record, line) in records.iter().zip(reader.into_records()) {
                let line = line.unwrap();
                assert_eq!(
                    line[1],
                    record.time.map_or(String::new(), |time| time.nanos.to_string()),
                    "{name}"
                );
                let mut place = 2;
                record.value().unwrap().flatten(&mut |field, value| {
                    assert_eq!(&head[place], field, "{name}");
                    let same = match value {
                        Value::F32(v) if v.is_nan() => &line[place] == "NaN",
                        Value::F64(v) if v.is_nan() => &line[place] == "NaN",
                        Value::F32(v) => line[place].parse::<f32>().unwrap().to_bits() == v.to_bits(),
                        Value::F64(v) => line[place].parse::<f64>().unwrap().to_bits() == v.to_bits(),
                        value => line[place] == text_of(value),
                    };
                    assert!(same, "{name} {field}: {value:?} is {}", &line[place]);
                    place += 1;
                });
                assert_eq!(place, line.len(), "{name}");
                cells += place;
                lines += 1;
            }
            assert_eq!(lines, records.len(), "{name}");
        }
    }
    assert!(cells > 1000, "{cells}");
}

#[test]
fn the_dialect_of_pyulog_has_its_columns_and_numbers() {
    let log = open("timestamp-not-first.ulg");
    let mut options = TableOptions::default();
    options.dialect = Dialect::Pyulog;
    let text = String::from_utf8(written(&log, Kind::Csv, &options, &Select::all()).0.remove(0)).unwrap();
    assert!(text.starts_with("timestamp,"), "{text}");
    let log = open("bool-bytes.ulg");
    let text = String::from_utf8(written(&log, Kind::Csv, &options, &Select::all()).0.remove(0)).unwrap();
    // pyulog writes a boolean as a signed byte.
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], "timestamp,b,bs[0],bs[1]");
    for (i, byte) in ["0", "1", "2", "65", "-103", "-1"].into_iter().enumerate() {
        assert_eq!(lines[1 + i], format!("{},{byte},0,{byte}", 1_000_000 + 10_000 * i));
    }
    options.delimiter = Some(b';');
    let text = String::from_utf8(written(&log, Kind::Csv, &options, &Select::all()).0.remove(0)).unwrap();
    assert!(text.contains(';') && !text.contains(','), "{text}");
}

/// The expected columns are those of `ulog2csv` in pyulog 1.3.0.
#[test]
fn the_dialect_of_pyulog_has_padding_of_nested_types() {
    let mut options = TableOptions::default();
    options.dialect = Dialect::Pyulog;
    let nested = "timestamp,two[0].v,two[0].k,two[0]._padding0[0],two[0]._padding0[1],two[0]._padding0[2],two[1].v,\
                  two[1].k,two[1]._padding0[0],two[1]._padding0[1],two[1]._padding0[2],x,last.v,last.k,\
                  last._padding0[0],last._padding0[1],last._padding0[2]\n\
                  1000000,1.0,9,161,161,161,2.0,9,161,161,161,0.0,4.0,9,161,161,161\n";
    for (name, start) in [
        ("nested-trailing-padding.ulg", nested),
        ("padding-in-the-middle.ulg", "timestamp,a,x\n1000000,7,0.0\n"),
        ("padding-of-type-uint32.ulg", "timestamp,x\n1000000,0.0\n"),
    ] {
        let text = written(&open(name), Kind::Csv, &options, &Select::all()).0.remove(0);
        let text = String::from_utf8(text).unwrap();
        assert!(text.starts_with(start), "{name}: {text}");
        // Tables outside of pyulog's dialect must not have padding.
        let plain = written(&open(name), Kind::Csv, &TableOptions::default(), &Select::all()).0.remove(0);
        assert!(!String::from_utf8(plain).unwrap().contains("_padding0"), "{name}");
    }
}

/// Returns a log with `topics` topics. Nested types give each topic 61,440 fields. Each topic has
/// one row.
fn amplified(topics: u16) -> AnyLog {
    let mut log = b"ULog\x01\x12\x35\x01\0\0\0\0\0\0\0\0".to_vec();
    let mut message = |kind: u8, payload: &[u8]| {
        log.extend(u16::try_from(payload.len()).unwrap().to_le_bytes());
        log.push(kind);
        log.extend(payload);
    };
    let fields: Vec<String> = (0..3840).map(|i| format!("uint8_t f{i:x};")).collect();
    message(b'F', format!("n:{}", fields.concat()).as_bytes());
    message(b'F', b"q:uint64_t timestamp;n[16] a;");
    for id in 0..topics {
        message(b'A', &[&[0][..], &id.to_le_bytes(), b"q"].concat());
    }
    for id in 0..topics {
        message(b'D', &[&id.to_le_bytes()[..], &1000_u64.to_le_bytes(), &vec![7; 61_440]].concat());
    }
    rovelog::from_bytes(log.into(), &ReadOptions::default()).unwrap()
}

/// The tables have more columns than can be written in one pass over the log.
#[test]
fn tables_with_very_many_columns_are_written_in_several_passes() {
    let log = amplified(3);
    let (texts, losses) = written(&log, Kind::Csv, &TableOptions::default(), &Select::all());
    assert!(losses.is_empty() && texts.len() == 3);
    for text in texts {
        let text = String::from_utf8(text).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines.iter().map(|line| line.split(',').count()).collect::<Vec<_>>(), [61_443; 2]);
        assert!(lines[1].ends_with(",7,7,7"));
    }
}

#[test]
fn statistics_of_too_many_fields_are_rejected() {
    let count = |log: &AnyLog| {
        let jobs = TableOptions::default().jobs;
        statistics(&**log, &Select::all(), jobs, &|_| ())
            .map(|result| result.fields.iter().map(Vec::len).sum::<usize>())
    };
    assert_eq!(count(&amplified(2)).unwrap(), 2 * 61_441);
    let Err(ExportError::Log(error)) = count(&amplified(20)) else { panic!("the limit is not checked") };
    assert_eq!(error.kind, rovelog::ErrorKind::LimitExceeded);
    assert!(error.to_string().starts_with("the topics have 1228820 fields"), "{error}");
}

/// Rows must be sorted by time. Rows with the same time must stay in file order, even if the topic
/// has more rows than are sorted in memory at once.
#[test]
fn rows_are_in_time_order() {
    let log = open("timestamps-zero+equal+falling.ulg");
    for bytes in written(&log, Kind::Arrow, &TableOptions::default(), &Select::all()).0 {
        let table = read_arrow(bytes);
        let times = table.column(0).as_primitive::<Int64Type>();
        let times: Vec<_> = times.values().iter().copied().filter(|time| *time != 0).collect();
        assert!(times.is_sorted(), "{times:?}");
    }
}

/// Tables, joins and statistics must report how many messages in a time range cannot be decoded.
#[test]
fn messages_that_cannot_be_decoded_are_counted() {
    for (name, all, first) in [("payload-short.bag", 1, 0), ("v2.0+payload-short.bag", 2, 1)] {
        let log = rovelog::open(rovelog_testing::root().join("corpus/rosbag").join(name)).unwrap();
        let records: Vec<_> = log.records(&Select::all()).map(Result::unwrap).collect();
        let start = records[0].time.unwrap().nanos;
        let short = records.iter().find(|record| record.value().is_err()).unwrap().time.unwrap().nanos;
        for (select, expected) in [
            (Select::all(), all),
            (Select::all().between(Some(start), Some(short)), 0),
            (Select::all().between(Some(start), Some(short + 1)), 1),
            (Select::all().between(Some(short + 1), None), first),
        ] {
            let count = |losses: &[Loss]| match losses {
                [] => 0,
                [loss] => loss.why.split(' ').next().unwrap().parse().unwrap(),
                more => panic!("{more:?}"),
            };
            let (_, losses) = written(&log, Kind::Csv, &TableOptions::default(), &select);
            assert_eq!(count(&losses), expected, "{name} {losses:?}");
            let losses = statistics(&*log, &select, Jobs::ONE, &|_| ()).unwrap().losses;
            assert_eq!(count(&losses), expected, "{name} {losses:?}");
            let topic = topics(&log)[0];
            let table = join(&*log, Base::Topic(topic), &[], &select, (JoinOptions::default(), &[])).unwrap();
            let how = (Kind::Csv, &TableOptions::default());
            let provenance = Provenance::new("log");
            let (_, losses) = table::write_joined(&*log, table, &mut Vec::new(), how, &provenance).unwrap();
            assert_eq!(count(&losses), expected, "{name} {losses:?}");
        }
    }
}
