//! Helpers in addition to those in `rovelog-testing`. They open logs, and convert the results of a
//! reader to the JSON form of the expected results.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]

use rld_format::{RldReader, RldStream};
use rovelog_core::{Bytes, LogReader, LogStream, ReadOptions};
use rovelog_testing::{Dribble, Log, Logs, Overview, record_json, sort_notes};
use serde_json::{Value as Json, json};

pub const LOGS: Logs = rovelog_testing::RLD;

/// Opens a log. Returns `None` if the reader refuses the bytes.
pub fn try_open(bytes: &Bytes) -> Option<RldReader> {
    RldReader::new(bytes.clone(), &ReadOptions::default()).ok()
}

/// Opens a log, and panics if the reader refuses the bytes.
pub fn open(bytes: &Bytes) -> RldReader {
    RldReader::new(bytes.clone(), &ReadOptions::default()).expect("a log that opens")
}

/// Returns all logs of the corpus, and all real logs, that the reader can open.
pub fn readable() -> impl Iterator<Item = (Log, RldReader)> {
    LOGS.all().into_iter().filter_map(|log| try_open(&log.bytes).map(|reader| (log, reader)))
}

pub fn stream<'a>(bytes: &'a [u8], sizes: &[usize]) -> RldStream<Dribble<'a>> {
    RldStream::new(Dribble::new(bytes, sizes), &ReadOptions::default()).expect("a log that opens")
}

/// Returns the result of the random-access reader in the JSON form of the expected results.
pub fn picture(log: &RldReader) -> Json {
    let records: Vec<_> = log.records_in_file_order().map(|record| record_json(&record)).collect();
    let overview = Overview {
        format: "rld",
        clock: "unix",
        info: log.info(),
        topics: log.topics(),
        diagnostics: log.diagnostics(),
    };
    let mut json = overview.picture(&records);
    let binary = log.channels().iter().filter(|channel| channel.is_binary).count();
    let raw = |row| {
        let row = log.row(row).expect("a row");
        (binary..log.channels().len())
            .map(|channel| row.raw(channel).expect("a value").to_string())
            .collect::<Json>()
    };
    json["rld"] = json!({
        "comment": log.header().comment_text(),
        "rate": log.header().lead_in.sample_rate.get(),
        "raw": (0..log.rows()).map(raw).collect::<Json>(),
    });
    sort_notes(&mut json);
    json
}

/// Returns the result of the stream in the JSON form of the expected results, without the values
/// that a stream cannot know.
pub fn picture_of_stream<R: std::io::Read + Send>(stream: &mut RldStream<R>) -> Json {
    let mut records = Vec::new();
    while let Some(record) = stream.next_record().expect("a readable input") {
        records.push(record_json(&record));
    }
    let info = stream.info();
    let overview = Overview {
        format: "rld",
        clock: "unix",
        info: &info,
        topics: stream.topics(),
        diagnostics: stream.diagnostics(),
    };
    let mut json = overview.picture(&records);
    sort_notes(&mut json);
    json
}

/// Returns an integer that is stored as a JSON number or as a string.
pub fn int(value: &Json) -> i128 {
    match value {
        Json::String(text) => text.parse().expect("an integer"),
        value => value.as_i64().map(i128::from).or(value.as_u64().map(i128::from)).expect("an integer"),
    }
}
