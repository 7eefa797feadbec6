//! Functions that several test files use to open bags and to convert the results of a reader to
//! JSON.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]

use rosbag12::{BagOptions, BagReader, BagStream};
use rovelog_core::internal::text::escape_bytes;
use rovelog_core::{Bytes, Diagnostics, LogInfo, LogReader, LogStream, Record, Topic, Value};
use rovelog_testing::{Log, Logs, Overview, detail, hex, json_of, nanos, record_with, sha256, sort_notes};
use serde_json::{Value as Json, json};

pub const LOGS: Logs = rovelog_testing::ROSBAG;

/// Returns the options for opening the bag `name`. Bags of version V0 are opened only on request.
pub fn options(name: &str) -> BagOptions {
    let options = BagOptions::default();
    if name.starts_with("v0") { options.as_version_0() } else { options }
}

/// Opens a bag. Returns `None` if the bag is rejected.
pub fn try_open(bytes: &Bytes) -> Option<BagReader> {
    BagReader::new(bytes.clone(), &BagOptions::default()).ok()
}

/// Opens a bag. Panics if the bag is rejected.
pub fn open(bytes: &Bytes) -> BagReader {
    BagReader::new(bytes.clone(), &BagOptions::default()).expect("a bag that opens")
}

/// Returns all bags that can be opened: bags of the corpus and real bags.
pub fn readable() -> impl Iterator<Item = (Log, BagReader)> {
    let open = |log: &Log| BagReader::new(log.bytes.clone(), &options(&log.name)).ok();
    LOGS.all().into_iter().filter_map(move |log| open(&log).map(|bag| (log, bag)))
}

/// Header fields that identify the connection of a record.
const TOPIC: [(&str, &[u8]); 3] =
    [("topic", b"/a"), ("type", b"std_msgs/String"), ("md5", b"992ce8a1687cec8c8bd883ec73ca41d1")];

/// Returns a V1.2 record with the header fields `fields` and the data `data`.
pub fn record(fields: &[(&str, &[u8])], data: &[u8]) -> Vec<u8> {
    let len = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap().to_le_bytes();
    let fields = fields.iter().map(|(name, value)| [name.as_bytes(), b"=", value].concat());
    let header = fields.map(|field| [&len(&field), &field[..]].concat()).collect::<Vec<_>>().concat();
    [&len(&header), &header[..], &len(data), data].concat()
}

/// Returns a definition record for the topic `/a`.
pub fn definition(text: &str) -> Vec<u8> {
    record(&[&TOPIC[..], &[("op", &[1][..]), ("def", text.as_bytes())]].concat(), &[])
}

/// Returns a message record of the topic `/a` with six bytes of data.
pub fn message(sec: u32) -> Vec<u8> {
    message_of(&[], sec, b"\x02\0\0\0m0")
}

/// Returns a message record of the topic `/a` with the additional header fields `further`. If
/// `further` contains a topic, this topic is used instead.
pub fn message_of(further: &[(&str, &[u8])], sec: u32, data: &[u8]) -> Vec<u8> {
    let stamp: [(&str, &[u8]); 3] = [("op", &[2]), ("sec", &sec.to_le_bytes()), ("nsec", &[0; 4])];
    record(&[&TOPIC[..], &stamp, further].concat(), data)
}

/// Returns a record as JSON. The value is null if the payload is too short for its definition.
fn record_json(record: &Record<'_>) -> Json {
    record_with(record, &record.value().map_or(Json::Null, |value| json_of(&value)))
}

/// Converts 64-bit numbers back to numbers. In JSON, they are written as strings.
fn numbers(json: Json) -> Json {
    match json {
        Json::String(text) => text.parse::<u64>().map_or(Json::String(text), Json::from),
        Json::Array(items) => items.into_iter().map(numbers).collect(),
        Json::Object(map) => map.into_iter().map(|(key, value)| (key, numbers(value))).collect(),
        other => other,
    }
}

/// Returns a time as JSON: an array of seconds and nanoseconds.
pub fn stamp(nanos: i64) -> Json {
    json!([nanos / 1_000_000_000, nanos % 1_000_000_000])
}

/// Returns whether a value equals the expected result. An expected result may contain only the
/// start of a long array.
pub fn same(got: &Value, want: &Json) -> bool {
    match (got, want) {
        (Value::Struct(fields), Json::Object(want)) => {
            fields.len() == want.len() && fields.iter().all(|(name, value)| same(value, &want[&**name]))
        }
        (Value::List(items), Json::Array(want)) => {
            items.len() == want.len() && items.iter().zip(want).all(|(a, b)| same(a, b))
        }
        (Value::List(items), Json::Object(want)) => {
            let ends = |key: &str| want[key].as_array().unwrap();
            let (head, tail) = (ends("head"), ends("tail"));
            items.len() as u64 == want["len"].as_u64().unwrap()
                && items.iter().zip(head).all(|(a, b)| same(a, b))
                && items[items.len() - tail.len()..].iter().zip(tail).all(|(a, b)| same(a, b))
        }
        (Value::Bytes(bytes), Json::Object(want)) => match want.get("hex") {
            Some(digits) => hex(bytes) == digits.as_str().unwrap(),
            None => bytes.len() as u64 == want["len"].as_u64().unwrap() && sha256(bytes) == want["sha256"],
        },
        // In expected results, text that is not valid UTF-8 is written as hexadecimal digits.
        (Value::Text(text), Json::Object(want)) => {
            let digits = want["hex"].as_str().unwrap();
            let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
            *text == escape_bytes(&(0..digits.len()).step_by(2).map(byte).collect::<Vec<_>>())
        }
        (Value::Text(text), want) => text == want,
        (Value::Bool(v), want) => v == want,
        (Value::Int(v, _), want) => want.as_i64() == Some(*v),
        (Value::UInt(v, _), want) => want.as_u64() == Some(*v),
        (Value::F32(v), want) => float(f64::from(*v), want),
        (Value::F64(v), want) => float(*v, want),
        _ => false,
    }
}

fn float(got: f64, want: &Json) -> bool {
    match want.as_str() {
        Some("nan") => got.is_nan(),
        Some("inf") => got == f64::INFINITY,
        Some("-inf") => got == f64::NEG_INFINITY,
        Some(_) => false,
        None => want.as_f64().is_some_and(|want| want.to_bits() == got.to_bits()),
    }
}

/// Returns as JSON the results that must be equal for the random-access reader and the stream.
fn common(info: &LogInfo, topics: &[Topic], diagnostics: &Diagnostics, records: &[Json]) -> Json {
    let overview = Overview { format: "rosbag", clock: "unix", info, topics, diagnostics };
    let mut json = overview.picture(records);
    sort_notes(&mut json);
    // Even a bag without messages has the clock of its version.
    if info.start.is_none() && matches!(&*info.version, "1.0" | "0") {
        json["clock"] = "log_start".into();
    }
    let of = |key: &str| detail(&info.details, key).map_or(Json::Null, json_of);
    let ops = of("records_by_op").as_object().cloned().unwrap_or_default();
    let number = |name: &str| match name {
        "definition" => "1".to_owned(),
        "message" => "2".to_owned(),
        "bag_header" => "3".to_owned(),
        "index" => "4".to_owned(),
        "chunk" => "5".to_owned(),
        "chunk_info" => "6".to_owned(),
        "connection" => "7".to_owned(),
        name => name.trim_start_matches("op_").to_owned(),
    };
    let ops: Json = ops.into_iter().map(|(name, count)| (number(&name), numbers(count))).collect();
    let sections = of("index").as_array().cloned().unwrap_or_default().into_iter().map(|section| {
        let section = numbers(section);
        json!({
            "offset": section["offset"], "index_pos": section["index_pos"],
            "raw_padding": section["raw_padding"], "index": section["state"],
        })
    });
    let mut connections = of("connections");
    for connection in connections.as_array_mut().into_iter().flatten() {
        for key in ["latched", "callerids"] {
            connection[key] = numbers(connection[key].take());
        }
    }
    json["rosbag"] =
        json!({"records": ops, "sections": sections.collect::<Json>(), "connections": connections});
    // Only V2.0 bags have chunks.
    if let Some(states) = of("chunks").get_mut("states") {
        json["rosbag"]["chunks"] = numbers(states.take());
    }
    json
}

/// Returns all results of the random-access reader as JSON, in the form of the expected results.
pub fn picture(bag: &BagReader) -> Json {
    let records: Vec<_> = bag.records_in_file_order().map(|record| record_json(&record)).collect();
    let mut json = common(bag.info(), bag.topics(), bag.diagnostics(), &records);
    let texts = bag.texts().expect("bags have texts").map(|text| {
        json!({"t_ns": nanos(text.time), "level": text.level_name(), "source": text.source, "text": text.text})
    });
    json["texts"] = texts.collect();
    json
}

/// Returns the results of the random-access reader that must be equal to those of a stream.
pub fn common_of_reader(bag: &BagReader) -> Json {
    let records: Vec<_> = bag.records_in_file_order().map(|record| record_json(&record)).collect();
    common(bag.info(), bag.topics(), bag.diagnostics(), &records)
}

/// Returns the results of a stream that must be equal to those of the random-access reader.
pub fn common_of_stream(input: impl std::io::Read + Send, options: &BagOptions) -> Json {
    let mut stream = BagStream::new(input, options).expect("a bag that opens");
    let mut records = Vec::new();
    while let Some(record) = stream.next_record().expect("a readable input") {
        records.push(record_json(&record));
    }
    common(&stream.info(), stream.topics(), stream.diagnostics(), &records)
}
