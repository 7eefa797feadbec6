//! Helpers in addition to those in `rovelog-testing`. They open logs, and convert the results of a
//! reader to the JSON form of the expected results.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]

use std::io::Cursor;

use binrw::{BinRead as _, BinWrite as _};
use rovelog_core::{Bytes, LogReader, LogStream, ReadOptions};
use rovelog_testing::{Log, Logs, Overview, detail, json_of, record_json};
use serde_json::{Value as Json, json};
use vel_format::wire::FileIndex;
use vel_format::{NewMessage, VelReader, VelStream};
use zerocopy::IntoBytes as _;

pub const LOGS: Logs = rovelog_testing::VEL;

/// Opens a log. Returns `None` if the reader refuses the bytes.
pub fn try_open(bytes: &Bytes) -> Option<VelReader> {
    VelReader::new(bytes.clone(), &ReadOptions::default()).ok()
}

/// Opens a log, and panics if the reader refuses the bytes.
pub fn open(bytes: &Bytes) -> VelReader {
    VelReader::new(bytes.clone(), &ReadOptions::default()).expect("a log that opens")
}

/// Decodes the header, the index and the messages of a log, encodes them again, and returns the
/// bytes of the whole file. All other bytes stay the same.
pub fn rewritten(log: &VelReader, bytes: &Bytes) -> Vec<u8> {
    assert_eq!(log.usage().iter().map(|usage| usage.bytes).sum::<u64>(), bytes.len() as u64);
    let mut out = bytes.to_vec();
    let mut put = |at: usize, new: &[u8]| out[at..at + new.len()].copy_from_slice(new);
    let header = log.header().as_bytes();
    put(0, header);
    let index = &bytes[header.len()..];
    if let Ok(index) = FileIndex::read_args(&mut Cursor::new(index), (index,)) {
        let mut again = Cursor::new(Vec::new());
        index.write(&mut again).expect("memory takes any bytes");
        put(header.len(), again.get_ref());
    }
    for message in log.messages() {
        let at = usize::try_from(message.offset).expect("within the file");
        put(at, message.header.as_bytes());
        if let Some(content) = message.payload() {
            put(at + message.header.as_bytes().len(), &NewMessage::new(0.0, &content).data);
        }
    }
    out
}

/// Returns all logs of the corpus, and all real logs, that the reader can open.
pub fn readable() -> impl Iterator<Item = (Log, VelReader)> {
    LOGS.all().into_iter().filter_map(|log| try_open(&log.bytes).map(|reader| (log, reader)))
}

/// Returns the result of the random-access reader in the JSON form of the expected results.
pub fn picture(log: &VelReader) -> Json {
    let records: Vec<_> = log.records_in_file_order().map(|record| record_json(&record)).collect();
    let (info, diagnostics) = (log.info(), log.diagnostics());
    let overview = Overview { format: "vel", clock: "log_start", info, topics: log.topics(), diagnostics };
    with_own(overview.picture(&records), info)
}

/// Returns the result of the stream over `input` in the JSON form of the expected results.
pub fn picture_of_stream(input: impl std::io::Read + Send) -> Json {
    let mut stream = VelStream::new(input, &ReadOptions::default()).expect("a log that opens");
    let mut records = Vec::new();
    while let Some(record) = stream.next_record().expect("a readable input") {
        records.push(record_json(&record));
    }
    let info = stream.info();
    let (topics, diagnostics) = (stream.topics(), stream.diagnostics());
    let overview = Overview { format: "vel", clock: "log_start", info: &info, topics, diagnostics };
    with_own(overview.picture(&records), &info)
}

/// Adds the values that only VEL logs have to `picture`: details by key, and inferred settings by
/// name.
fn with_own(mut picture: Json, info: &rovelog_core::LogInfo) -> Json {
    let detail = |key: &str| detail(&info.details, key).map(json_of);
    let choices = detail("choices").unwrap_or_default();
    let choice = |choice: &Json| {
        let what = choice["what"].as_str().expect("a word").to_owned();
        (what, json!({"choice": choice["choice"], "assumed": choice["assumed"]}))
    };
    picture["vel"] = json!({
        "index": detail("index").map(|index| index["state"].clone()),
        "messages": detail("messages"),
        "choices": choices.as_array().expect("a list").iter().map(choice).collect::<Json>(),
    });
    picture
}
