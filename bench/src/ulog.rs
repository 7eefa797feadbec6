//! Benchmarks for ULog files, with Rovelog and with the crates px4-ulog and `yule_log`.

use std::collections::HashMap;
use std::fs;
use std::ops::BitXor;

use px4_ulog::stream_parser::model::{DataMessage, FlattenedFieldType as Kind};
use px4_ulog::stream_parser::{LittleEndianParser, LogParser};
use rovelog::ulog_format::UlogReader;
use rovelog::{AnyLog, LogReader, Select};
use serde::Deserialize;

use crate::{Outcome, Work, info, ulog_limit};

/// Topic for the benchmarks that read one topic. It is the largest topic in the sample log of PX4.
const ONE: &str = "sensor_combined";

pub(crate) const WORKS: &[(&str, Work)] = &[
    ("rovelog-info", info),
    ("rovelog-streamed", rovelog_streamed),
    ("rovelog-kept", rovelog_kept),
    ("rovelog-one-streamed", |log| rovelog_one(log, false)),
    ("rovelog-one-kept", |log| rovelog_one(log, true)),
    ("rovelog-rows-by-place", rovelog_rows_by_place),
    ("rovelog-rows-as-structs", rovelog_rows_as_structs),
    ("bare-gather", |log| ulog_limit::gather(log, None)),
    ("bare-gather-one", |log| ulog_limit::gather(log, Some(ONE))),
    ("bare-hop", ulog_limit::hop),
    ("px4-ulog-kept", px4_kept),
    ("px4-ulog-one-kept", px4_one),
    ("yule_log-values", yule_values),
];

fn open(log: &str) -> Result<UlogReader, Box<dyn std::error::Error>> {
    let AnyLog::Ulog(log) = rovelog::open(log)? else { return Err("not a ULog".into()) };
    Ok(log)
}

fn rovelog_streamed(log: &str) -> Outcome {
    let log = open(log)?;
    let (mut rows, mut columns) = (0, 0);
    for batch in log.batches(&Select::all()) {
        let (_, batch) = batch?;
        rows += batch.num_rows();
        columns += batch.num_columns();
    }
    Ok((format!("{rows} rows in {columns} column batches"), Box::new(log)))
}

fn rovelog_kept(log: &str) -> Outcome {
    let log = open(log)?;
    let tables = log.tables(&Select::all())?;
    let rows: usize = tables.iter().map(|(_, table)| table.num_rows()).sum();
    Ok((format!("{rows} rows"), Box::new((log, tables))))
}

fn rovelog_one(log: &str, keep: bool) -> Outcome {
    let log = open(log)?;
    let select = Select::topic(ONE);
    if keep {
        let tables = log.tables(&select)?;
        let rows: usize = tables.iter().map(|(_, table)| table.num_rows()).sum();
        return Ok((format!("{rows} rows"), Box::new((log, tables))));
    }
    let rows = log.batches(&select).map(|batch| batch.map(|(_, batch)| batch.num_rows()));
    let rows: usize = rows.sum::<Result<_, _>>()?;
    Ok((format!("{rows} rows"), Box::new(log)))
}

/// Reads three fields of each row of one topic, directly from the bytes of the row.
fn rovelog_rows_by_place(log: &str) -> Outcome {
    let log = open(log)?;
    let topic = log.topic(ONE).ok_or("no such topic")?;
    let mut bits = 0;
    let mut places = None;
    for record in topic.records(&Select::all()) {
        let record = record?;
        let row = log.row(&record)?;
        let place = |name| row.layout().place(name).ok_or("no such field");
        let (timestamp, gyro, acceleration) = match places {
            Some(places) => places,
            None => *places.insert((place("timestamp")?, place("gyro_rad")?, place("accelerometer_m_s2")?)),
        };
        let vector =
            |place| row.read_array(place).into_iter().flatten().map(f32::to_bits).fold(0, BitXor::bitxor);
        let timestamp: u64 = row.read(timestamp).ok_or("timestamp is no uint64")?;
        bits ^= vector(gyro) ^ vector(acceleration) ^ (timestamp as u32);
    }
    Ok((format!("{} rows, bits {bits:08x}", topic.count), Box::new(log)))
}

#[derive(Deserialize)]
struct SensorCombined {
    timestamp: u64,
    gyro_rad: [f32; 3],
    accelerometer_m_s2: [f32; 3],
}

/// Reads three fields of each row of one topic, after decoding the row to a struct.
fn rovelog_rows_as_structs(log: &str) -> Outcome {
    let log = open(log)?;
    let topic = log.topic(ONE).ok_or("no such topic")?;
    let mut bits = 0;
    for row in topic.rows::<SensorCombined>() {
        let row = row?;
        let vector = |values: [f32; 3]| values.map(f32::to_bits).into_iter().fold(0, BitXor::bitxor);
        bits ^= vector(row.gyro_rad) ^ vector(row.accelerometer_m_s2) ^ (row.timestamp as u32);
    }
    Ok((format!("{} rows, bits {bits:08x}", topic.count), Box::new(log)))
}

fn px4_kept(log: &str) -> Outcome {
    let parsed = px4_ulog::full_parser::read_file(log)?;
    let rows: usize = parsed
        .messages
        .values()
        .flat_map(HashMap::values)
        .filter_map(|fields| fields.get("timestamp"))
        .map(|column| match column {
            px4_ulog::full_parser::SomeVec::UInt64(values) => values.len(),
            _ => 0,
        })
        .sum();
    Ok((format!("{rows} rows"), Box::new(parsed)))
}

/// Collects the typed columns of one topic in a callback of px4-ulog.
fn px4_one(log: &str) -> Outcome {
    enum Column {
        U64(Vec<u64>),
        U32(Vec<u32>),
        I32(Vec<i32>),
        F32(Vec<f32>),
        U8(Vec<u8>),
    }
    let mut columns: Vec<(usize, Column)> = Vec::new();
    let mut callback = |message: &DataMessage| {
        if message.flattened_format.message_name() != ONE || message.multi_id.value() != 0 {
            return;
        }
        if columns.is_empty() {
            columns.extend(message.flattened_format.field_iter().map(|field| {
                let column = match field.field_type {
                    Kind::UInt64 => Column::U64(Vec::new()),
                    Kind::UInt32 => Column::U32(Vec::new()),
                    Kind::Int32 => Column::I32(Vec::new()),
                    Kind::Float => Column::F32(Vec::new()),
                    _ => Column::U8(Vec::new()),
                };
                (usize::from(field.offset), column)
            }));
        }
        for (offset, column) in &mut columns {
            let bytes = &message.data[*offset..];
            match column {
                Column::U64(v) => v.push(u64::parse(bytes)),
                Column::U32(v) => v.push(u32::parse(bytes)),
                Column::I32(v) => v.push(i32::parse(bytes)),
                Column::F32(v) => v.push(f32::parse(bytes)),
                Column::U8(v) => v.push(bytes[0]),
            }
        }
    };
    let mut parser = LogParser::default();
    parser.set_data_message_callback(&mut callback);
    let mut file = fs::File::open(log)?;
    let mut buffer = vec![0; 1 << 20];
    loop {
        let read = std::io::Read::read(&mut file, &mut buffer)?;
        if read == 0 {
            break;
        }
        parser.consume_bytes(&buffer[..read]).map_err(|error| format!("{error:?}"))?;
    }
    drop(parser);
    let rows =
        columns.iter().find_map(|(_, column)| if let Column::U64(v) = column { Some(v.len()) } else { None });
    Ok((format!("{} rows", rows.unwrap_or(0)), Box::new(())))
}

/// Decodes the typed values of every row with `yule_log`. It does not build columns, which is less
/// work.
fn yule_values(log: &str) -> Outcome {
    use yule_log::builder::ULogParserBuilder;
    use yule_log::model::msg::UlogMessage;
    let reader = std::io::BufReader::new(fs::File::open(log)?);
    let parser = ULogParserBuilder::new(reader).include_timestamp(true).build().map_err(|e| e.to_string())?;
    let mut rows = 0;
    for message in parser {
        if let UlogMessage::LoggedData(_) = message.map_err(|e| e.to_string())? {
            rows += 1;
        }
    }
    Ok((format!("{rows} rows"), Box::new(())))
}
