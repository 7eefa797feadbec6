//! The columns of every log must equal the records of the log.
#![cfg(feature = "arrow")]

mod support;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int8Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use rld_format::analysis::{MARGIN_SETTLED, Source, currents};
use rld_format::{ColumnOptions, Merging, RldReader};
use rovelog_core::{LogReader, Select, Value};
use rovelog_testing::{Log, timed_rows, value_at};
use support::{LOGS, open, try_open};

/// Returns the time and the values of each row in a batch. The values are JSON text.
fn rows(batch: &RecordBatch) -> Vec<(Option<i64>, String)> {
    timed_rows(batch).into_iter().map(|(time, value)| (time, value.to_json())).collect()
}

/// Returns the raw value of a row in a column of any integer type.
fn raw_at(column: &dyn Array, row: usize) -> Value {
    match value_at(column, row) {
        Value::Int(raw, _) => Value::Int(raw, 64),
        other => other,
    }
}

fn check(log: &Log, limit: usize) {
    let Some(reader) = try_open(&log.bytes) else { return };
    let topic = &reader.topics()[0];
    let Ok(batches) = reader.own(topic).unwrap().columns(&Select::all()) else {
        assert!(topic.schema.is_none(), "{} has a schema and no columns", log.name);
        return;
    };
    let records = reader.records_in_file_order().take(limit);
    let want: Vec<_> =
        records.map(|r| (r.time.map(|t| t.nanos), r.value().expect("a valid row").to_json())).collect();
    let mut got = Vec::new();
    for batch in batches {
        if got.len() < limit {
            got.extend(rows(&batch.expect("a batch")));
        }
    }
    got.truncate(limit);
    assert!(got == want, "{}: columns differ from records", log.name);

    // Raw values in columns equal the raw values of rows, for any size of batches.
    let options = ColumnOptions::raw().with_batch_rows(3);
    let mut row = 0;
    for batch in reader.columns_with(&Select::all(), &options).expect("rows").take(limit / 3) {
        let batch = batch.expect("a batch");
        for i in 0..batch.num_rows() {
            let want = reader.row(row).expect("a row");
            for channel in 0..reader.channels().len() {
                let got = raw_at(batch.column(channel + 1), i);
                let want =
                    want.bit(channel).map(Value::Bool).or(want.raw(channel).map(|raw| Value::Int(raw, 64)));
                assert_eq!(Some(got), want, "{} row {row} channel {channel}", log.name);
            }
            row += 1;
        }
    }
}

#[test]
fn columns_equal_records() {
    LOGS.corpus().iter().for_each(|log| check(log, usize::MAX));
    LOGS.real().iter().for_each(|log| check(log, 9000));
}

#[test]
fn only_selected_channels_and_times_are_decoded() {
    let reader = open(&LOGS.case("v4").bytes);
    let topic = &reader.topics()[0];
    let time = |row| reader.records_in_file_order().nth(row).and_then(|r| r.time).expect("a time").nanos;
    let select = Select::all().with_fields(["V2", "DI2"]).between(Some(time(3)), Some(time(12)));
    let batches: Vec<_> = reader.own(topic).unwrap().columns(&select).expect("rows").collect();
    let batch = batches[0].as_ref().expect("a batch");
    assert_eq!((batch.num_columns(), batch.num_rows()), (3, 9));
    assert_eq!(batch.schema().field(2).name(), "V2");
    let want = reader.row(3).and_then(|row| row.physical(4)).expect("a value");
    assert_eq!(batch.column(2).as_primitive::<Float64Type>().value(0).to_bits(), want.to_bits());
}

#[test]
fn metadata_describes_the_channels() {
    let reader = open(&LOGS.case("v4").bytes);
    let schema = arrow_array::RecordBatchReader::schema(
        &reader.columns_with(&Select::all(), &ColumnOptions::raw()).expect("rows"),
    );
    assert_eq!(schema.metadata()["rovelog.topic"], "samples");
    let low = schema.field_with_name("I1L").expect("a channel");
    assert_eq!(low.data_type(), &DataType::Int32);
    assert_eq!((low.metadata()["rld.scale"].as_str(), low.metadata()["unit"].as_str()), ("-11", "10pA"));
    assert_eq!(low.metadata()["rld.valid_link"], "I1L_valid");
}

#[test]
fn buffers_are_reused_after_a_batch_is_dropped() {
    let Some(log) = LOGS.real_log("test_unsupported") else { return };
    let reader = open(&log.bytes);
    let mut batches = reader.columns_with(&Select::all(), &ColumnOptions::raw()).expect("rows");
    let mut address = || {
        let batch = batches.next().expect("a batch").expect("valid");
        batch.column(9).to_data().buffers()[0].as_ptr()
    };
    let first = address();
    assert_eq!(first, address());
}

/// Computes a value of a merged current according to its definition: the value of the low channel
/// is used if the range bit is 1 in all rows within the margin.
fn merged_row(reader: &RldReader, name: &str, margin: u64, row: u64) -> (Source, i64) {
    let channel = |suffix: &str| reader.channel(&format!("{name}{suffix}")).ok();
    let (low, high, bit) = (channel("L"), channel("H"), channel("L_valid"));
    let value = |row: u64, channel: Option<usize>| reader.row(row).and_then(|row| row.raw(channel?));
    let set = |row: u64| {
        let bit = bit.and_then(|bit| reader.row(row).and_then(|row| row.bit(bit)));
        low.is_some() && bit.unwrap_or(true)
    };
    let around = row.saturating_sub(margin)..=(row + margin).min(reader.rows() - 1);
    if { around }.all(set) {
        return (Source::Low, value(row, low).expect("a low value"));
    }
    match (value(row, high), low) {
        (None, _) => (Source::Missing, 0),
        // High values are in units of 1 nA and low values in units of 10 pA. So the factor is 100
        // if there is a low channel.
        (Some(high), Some(_)) if set(row) => (Source::Transition, 100 * high),
        (Some(high), Some(_)) => (Source::High, 100 * high),
        (Some(high), None) => (Source::High, high),
    }
}

#[test]
fn merged_currents_are_columns_of_their_own() {
    let mut checked = 0;
    for log in ["v4", "range-switches"].map(|name| LOGS.case(name)).into_iter().chain(LOGS.real()) {
        let reader = open(&log.bytes);
        for (merging, margin) in [(Merging::instant(), 0), (Merging::settled(), MARGIN_SETTLED)] {
            for current in currents(reader.channels()) {
                let name = current.name.as_str();
                let select = Select::all().with_fields([name]);
                // A batch can end at any row, so margins must extend beyond the edges of batches.
                let raw = ColumnOptions::raw().with_merged(merging).with_batch_rows(37);
                let physical = ColumnOptions::physical().with_merged(merging).with_times(None);
                let mut physical = reader.columns_with(&select, &physical).expect("rows");
                let (mut row, mut values) = (0, Vec::new());
                for batch in reader.columns_with(&select, &raw).expect("rows").take(300) {
                    let batch = batch.expect("a batch");
                    let schema = batch.schema();
                    let names: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
                    assert_eq!(names, ["t_ns", name, &format!("{name}_source")], "{}", log.name);
                    let sources = batch.column(2).as_dictionary::<Int8Type>();
                    let words = sources.values().as_string::<i32>();
                    for i in 0..batch.num_rows() {
                        let (source, value) = merged_row(&reader, name, margin, row);
                        let want = match source {
                            Source::Low => Some("low"),
                            Source::High => Some("high"),
                            Source::Transition => Some("transition"),
                            Source::Missing => None,
                        };
                        assert_eq!(
                            sources.key(i).map(|key| words.value(key)),
                            want,
                            "{} row {row}",
                            log.name
                        );
                        let got = raw_at(batch.column(1), i);
                        let raw = if want.is_some() { Value::Int(value, 64) } else { Value::Null };
                        assert_eq!(got, raw, "{} {name} row {row}", log.name);
                        values.push((want.is_some(), value));
                        row += 1;
                    }
                }
                let batch = physical.next().expect("a batch").expect("valid");
                for (i, (there, value)) in values.iter().take(batch.num_rows()).enumerate() {
                    let want: f64 = format!("{value}e{}", current.scale).parse().expect("a number");
                    let want = if *there { Value::F64(want) } else { Value::Null };
                    assert_eq!(value_at(batch.column(0), i), want, "{} {name} row {i}", log.name);
                }
                checked += row;
            }
        }
    }
    // The corpus alone has 50 columns of merged currents.
    let min = if LOGS.folder().is_some() { 51 } else { 50 };
    assert!(checked >= min, "only {checked} rows");
}

#[test]
fn a_current_of_the_low_range_alone_is_null_where_it_is_out_of_range() {
    use rld_format::encode_row;
    use rld_format::unit::Unit;
    use rld_format::{ChannelSpec, LogSpec, RldWriter};
    let mut spec = LogSpec::new(1000);
    spec.block_rows = 2;
    spec.channels = vec![
        ChannelSpec::range("I2L_valid"),
        ChannelSpec::analog("I2L", Unit::Ampere, -11).valid_if("I2L_valid"),
    ];
    let mut header = spec.header().expect("a header");
    rld_format::set_counts(&mut header, 2).expect("counts");
    let mut writer = RldWriter::new(Vec::new(), header).expect("a writer");
    let (layout, mut rows) = (writer.layout().clone(), Vec::new());
    for (word, value) in [(1, 100), (0, 200)] {
        encode_row(&layout, &[word], &[value], &mut rows).expect("a row");
    }
    writer
        .block(&rld_format::wire::BlockTimes::new(1, 1).expect("block times"), &rows)
        .expect("memory takes it");
    let log = open(&writer.finish().expect("memory takes it").0.into());
    let options = ColumnOptions::physical().with_merged(Merging::instant());
    let select = Select::all().with_fields(["I2", "I2_source"]);
    let batch = log.columns_with(&select, &options).expect("rows").next().expect("a batch").expect("valid");
    assert_eq!(value_at(batch.column(1), 0), Value::F64(1e-9));
    assert_eq!((batch.column(1).is_null(1), batch.column(2).is_null(1)), (true, true));
    assert_eq!(batch.schema().field(1).metadata()["unit"], "A");
}
