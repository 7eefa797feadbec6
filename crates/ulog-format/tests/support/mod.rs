//! Functions that the tests of this crate share.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]

pub mod built;

use rovelog_core::internal::wire::U16Le;
use rovelog_core::{Bytes, Diagnostics, LogInfo, LogReader, LogStream, ReadOptions, Topic, Value};
use rovelog_testing::{Log, Logs, Overview, detail, hex, json_of, nanos, record_json};
use serde_json::{Value as Json, json};
use ulog_format::wire::{Message, MessageHeader};
use ulog_format::{StreamItem, UlogReader, UlogStream};
use zerocopy::IntoBytes as _;

pub const LOGS: Logs = rovelog_testing::ULOG;

/// Returns synthetic logs with features that no real log has. They are stored with the real logs,
/// so the list is empty if the real logs are missing.
pub fn quirks() -> Vec<Log> {
    LOGS.folder().map(|folder| rovelog_testing::logs_in(&folder.join("quirks"), "ulg")).unwrap_or_default()
}

/// Opens a log, or returns `None` if the reader rejects it.
pub fn try_open(bytes: &Bytes) -> Option<UlogReader> {
    UlogReader::new(bytes.clone(), &ReadOptions::default()).ok()
}

/// Opens a log that the reader must accept.
pub fn open(bytes: &Bytes) -> UlogReader {
    UlogReader::new(bytes.clone(), &ReadOptions::default()).expect("a log that opens")
}

/// Returns `true` if the header of a log is present and not damaged.
pub fn has_header(log: &UlogReader) -> bool {
    log.diagnostics().list().iter().all(|note| note.rule.name != "damaged_header")
}

/// Returns all logs of the corpus and all real logs that the reader accepts.
pub fn readable() -> impl Iterator<Item = (Log, UlogReader)> {
    LOGS.all().into_iter().filter_map(|log| try_open(&log.bytes).map(|reader| (log, reader)))
}

/// Parses each message of a log and encodes it again. Returns the new log. Also returns the byte
/// ranges between the messages, which are copied without changes.
pub fn rewritten(bytes: &Bytes, log: &UlogReader) -> (Vec<u8>, Vec<std::ops::Range<u64>>) {
    let (mut out, mut between) = (log.header().as_bytes().to_vec(), Vec::new());
    let mut copy = |out: &mut Vec<u8>, until: usize| {
        if out.len() < until {
            between.push(out.len() as u64..until as u64);
            out.extend_from_slice(&bytes[out.len()..until]);
        }
    };
    for (at, message) in log.messages() {
        copy(&mut out, usize::try_from(at).expect("small"));
        let payload = message.payload().expect("what was read can be written");
        let msg_size = U16Le::new(u16::try_from(payload.len()).expect("it was in a message"));
        out.extend(MessageHeader { msg_size, msg_type: message.msg_type() }.as_bytes());
        out.extend(payload);
    }
    copy(&mut out, bytes.len());
    (out, between)
}

/// Returns a log that consists of a header and messages.
pub fn log_of(messages: &[(u8, Vec<u8>)]) -> Bytes {
    let mut bytes = b"ULog\x01\x12\x35\x01\xe8\x03\0\0\0\0\0\0".to_vec();
    for (msg_type, payload) in messages {
        bytes.extend(u16::try_from(payload.len()).expect("small").to_le_bytes());
        bytes.push(*msg_type);
        bytes.extend(payload);
    }
    bytes.into()
}

/// Returns the properties of a log that the random-access reader and the stream reader must both
/// return.
fn common(info: &LogInfo, all_topics: &[Topic], diagnostics: &Diagnostics, records: &[Json]) -> Json {
    let overview = Overview { format: "ulog", clock: "boot", info, topics: all_topics, diagnostics };
    let mut json = overview.picture(records);
    json["messages"] = detail(&info.details, "message_types").map_or(Json::Null, json_of);
    json
}

/// Returns everything that the random-access reader reads from a log, in the JSON form of the
/// expected results.
pub fn picture(log: &UlogReader) -> Json {
    let records: Vec<_> = log.records_in_file_order().map(|record| record_json(&record)).collect();
    let mut json = common(log.info(), log.topics(), log.diagnostics(), &records);
    let texts = log.texts().expect("ULog has texts").map(|text| {
        let tag = text.source.as_ref().map(|tag| tag.parse::<u16>().expect("a tag is a number"));
        json!({"t_ns": nanos(text.time), "level": text.level_name(), "tag": tag, "text": text.text})
    });
    json["texts"] = texts.collect();
    let values = |map: &std::collections::BTreeMap<String, Value>| -> Json {
        map.iter().map(|(name, value)| (name.clone(), info_json(value))).collect()
    };
    let parameters = log.parameters();
    let changed = parameters
        .changed
        .iter()
        .map(|c| json!({"t_ns": nanos(c.time), "name": c.name, "value": json_of(&c.value)}));
    let multi = log.multi_infos();
    let lists = |lists: &Vec<Vec<Value>>| -> Json {
        lists.iter().map(|list| list.iter().map(info_json).collect::<Json>()).collect()
    };
    let messages = json.as_object_mut().expect("an object").remove("messages");
    json["ulog"] = json!({
        "info": values(&log.infos()),
        "info_multi": multi.iter().map(|(name, value)| (name.clone(), lists(value))).collect::<Json>(),
        "parameters": {
            "initial": values(&parameters.initial),
            "changed": changed.collect::<Json>(),
            "default_system": values(&parameters.system_defaults),
            "default_setup": values(&parameters.setup_defaults),
        },
        "dropouts": log.dropouts().iter().map(|d| json!({"t_ns": nanos(d.time), "ms": d.millis})).collect::<Json>(),
        "messages": messages.map(|counts| numbers(&counts)),
        "appended_offsets": log.appended_offsets().iter().map(ToString::to_string).collect::<Json>(),
    });
    json
}

/// Converts counts by type from JSON strings to JSON numbers.
fn numbers(counts: &Json) -> Json {
    let count = |(name, n): (&String, &Json)| {
        (name.clone(), Json::from(n.as_str().expect("a string").parse::<u64>().expect("a number")))
    };
    counts.as_object().expect("an object").iter().map(count).collect()
}

fn info_json(value: &Value) -> Json {
    match value {
        Value::Bytes(bytes) => json!({"hex": hex(bytes)}),
        value => json_of(value),
    }
}

/// Reads a log with the random-access reader. Returns the properties that the stream reader must
/// return too.
pub fn common_of_reader(log: &UlogReader) -> (Json, Vec<(u64, String)>) {
    let records: Vec<_> = log.records_in_file_order().map(|record| record_json(&record)).collect();
    let messages = log.messages().filter(|(_, m)| !matches!(m, Message::Data(_)));
    let messages = messages.map(|(at, message)| (at, format!("{message:?}"))).collect();
    (common(log.info(), log.topics(), log.diagnostics(), &records), messages)
}

/// Reads a log with the stream reader. Returns the properties that the random-access reader must
/// return too.
pub fn common_of_stream(input: impl std::io::Read + Send) -> (Json, Vec<(u64, String)>) {
    let mut stream = UlogStream::new(input, &ReadOptions::default()).expect("a log that opens");
    let (mut records, mut messages) = (Vec::new(), Vec::new());
    while let Some(item) = stream.next_item().expect("a readable input") {
        match item {
            StreamItem::Record(record) => records.push(record_json(&record)),
            StreamItem::Message(at, message) => messages.push((at, format!("{message:?}"))),
            other => panic!("{other:?}"),
        }
    }
    (common(&stream.info(), stream.topics(), stream.diagnostics(), &records), messages)
}
