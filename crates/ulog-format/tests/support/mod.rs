//! What the tests share: where logs are, and one neutral picture of what a reader makes of a log.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use rovelog_core::{
    Bytes, Diagnostics, Field, LogInfo, LogReader, LogStream, ReadOptions, Record, Severity, Topic, Value,
};
use serde_json::{Value as Json, json};
use ulog_format::message::Message;
use ulog_format::{StreamItem, UlogReader, UlogStream};

/// The top folder of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace exists")
}

/// A log with its name.
pub struct Log {
    pub name: String,
    pub path: PathBuf,
    pub bytes: Bytes,
}

/// All files `*.ulg` of a folder, by name.
pub fn logs_in(folder: &Path) -> Vec<Log> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ext| ext == "ulg"));
    paths.sort();
    let log = |path: PathBuf| {
        let name = path.file_stem().expect("a file").to_string_lossy().into_owned();
        Log { name, bytes: fs::read(&path).expect("a readable file").into(), path }
    };
    paths.into_iter().map(log).collect()
}

/// The corpus: small logs laid from the specification.
pub fn corpus() -> Vec<Log> {
    let logs = logs_in(&root().join("corpus/ulog"));
    assert!(logs.len() >= 40, "the corpus is part of the repository: cargo xtask gen-corpus");
    logs
}

/// The folder of real logs, from `ROVELOG_REAL` or beside the checkout; says so where there is none.
pub fn real() -> Option<PathBuf> {
    let folder =
        std::env::var_os("ROVELOG_REAL").map_or_else(|| root().join("../shared/real"), PathBuf::from);
    let folder = folder.join("ulog");
    if folder.is_dir() {
        return Some(folder);
    }
    println!("SKIPPED: no real logs in {} (set ROVELOG_REAL)", folder.display());
    None
}

pub fn open(bytes: &Bytes) -> UlogReader {
    UlogReader::new(bytes.clone(), &ReadOptions::default()).expect("a log that opens")
}

pub fn json_of(value: &Value) -> Json {
    // Through text: a 32-bit float must keep its own shortest digits.
    serde_json::from_str(&value.to_json()).expect("a value is JSON")
}

/// Lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn nanos(time: Option<rovelog_core::Timestamp>) -> Json {
    time.map_or(Json::Null, |time| time.nanos.to_string().into())
}

/// Levels of nested fields in the expected results: deeper JSON is more than readers of JSON take.
const LISTED_DEPTH: usize = 32;

fn fields(fields: &[Field], depth: usize) -> Json {
    let field = |field: &Field| {
        let mut json = json!({"name": &*field.name, "type": field.ty.to_string()});
        if let Some(nested) = field.ty.nested().filter(|_| depth < LISTED_DEPTH) {
            json["fields"] = self::fields(&nested.fields, depth + 1);
        }
        json
    };
    fields.iter().map(field).collect()
}

fn topics(topics: &[Topic]) -> Json {
    let topic = |topic: &Topic| {
        json!({
            "name": topic.name,
            "type": topic.type_name,
            "count": topic.count.to_string(),
            "fields": topic.schema.as_ref().map_or(Json::Null, |schema| fields(&schema.fields, 0)),
        })
    };
    topics.iter().map(topic).collect()
}

pub fn record_json(record: &Record<'_>) -> Json {
    json!({
        "topic": record.topic.name,
        "t_ns": nanos(record.time),
        "offset": record.offset.to_string(),
        "seq": record.seq,
        "data": json_of(&record.value().expect("a sound row decodes")),
    })
}

fn lost(diagnostics: &Diagnostics) -> Json {
    let lost = diagnostics.list().iter().filter(|d| d.rule.severity == Severity::DataLost);
    lost.map(
        |d| json!({"code": d.rule.name, "start": d.range.start.to_string(), "end": d.range.end.to_string()}),
    )
    .collect()
}

fn notes(diagnostics: &Diagnostics) -> Json {
    let notes = diagnostics.list().iter().filter(|d| d.rule.severity != Severity::DataLost);
    notes.map(|d| json!({"code": d.rule.name, "offset": d.range.start.to_string()})).collect()
}

fn detail<'a>(info: &'a LogInfo, key: &str) -> Option<&'a Value> {
    info.details.iter().find(|detail| detail.key == key).map(|detail| &detail.value)
}

/// What both readers say alike.
fn common(info: &LogInfo, all_topics: &[Topic], diagnostics: &Diagnostics, records: &[Json]) -> Json {
    let clock = info.start.or(info.end).map_or("boot", |time| time.clock.name());
    let utc = info.utc.as_ref();
    json!({
        "format": {"id": "ulog", "version": info.version},
        "open": "ok",
        "state": info.state.name(),
        "clock": clock,
        "utc": utc.map_or(Json::Null, |utc| json!({"rule": utc.rule, "offset_ns": utc.nanos.to_string()})),
        "start_ns": nanos(info.start),
        "end_ns": nanos(info.end),
        "topics": topics(all_topics),
        "records": records,
        "lost": lost(diagnostics),
        "notes": notes(diagnostics),
        "messages": detail(info, "message_types").map_or(Json::Null, json_of),
    })
}

/// Everything that the random-access reader makes of a log, in the form of the expected results.
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

/// Counts by type as plain numbers.
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

/// What both readers must agree on, from the random-access reader.
pub fn common_of_reader(log: &UlogReader) -> (Json, Vec<(u64, String)>) {
    let records: Vec<_> = log.records_in_file_order().map(|record| record_json(&record)).collect();
    let messages = log.messages().filter(|(_, m)| !matches!(m, Message::Data { .. }));
    let messages = messages.map(|(at, message)| (at, format!("{message:?}"))).collect();
    (common(log.info(), log.topics(), log.diagnostics(), &records), messages)
}

/// The same from the stream over `input`.
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

/// Gives at most as many bytes at once as `sizes` says, over and over.
pub struct Dribble<'a> {
    pub bytes: &'a [u8],
    pub sizes: Vec<usize>,
    pub turn: usize,
}

impl std::io::Read for Dribble<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let size = self.sizes[self.turn % self.sizes.len()].min(out.len()).min(self.bytes.len());
        self.turn += 1;
        out[..size].copy_from_slice(&self.bytes[..size]);
        self.bytes = &self.bytes[size..];
        Ok(size)
    }
}
