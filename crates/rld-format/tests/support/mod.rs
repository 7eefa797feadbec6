//! What the tests share beside `rovelog-testing`.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]

use std::path::{Path, PathBuf};

use rld_format::{RldReader, RldStream};
use rovelog_core::{Bytes, LogReader, LogStream, ReadOptions};
use rovelog_testing::{Dribble, Log, Overview, record_json};
use serde_json::{Value as Json, json};

/// Every log of the corpus.
pub fn corpus() -> Vec<Log> {
    rovelog_testing::corpus("rld", "rld", 70)
}

/// The folder of real logs; says so where there is none.
pub fn real() -> Option<PathBuf> {
    rovelog_testing::real("rld")
}

/// The real logs; none, and a word about it, where they are absent.
pub fn real_logs() -> Vec<Log> {
    real().map(|folder| rovelog_testing::logs_in(&folder, "rld")).unwrap_or_default()
}

pub fn try_open(bytes: &Bytes) -> Option<RldReader> {
    RldReader::new(bytes.clone(), &ReadOptions::default()).ok()
}

pub fn open(bytes: &Bytes) -> RldReader {
    RldReader::new(bytes.clone(), &ReadOptions::default()).expect("a log that opens")
}

pub fn stream<'a>(bytes: &'a [u8], sizes: &[usize]) -> RldStream<Dribble<'a>> {
    RldStream::new(Dribble::new(bytes, sizes), &ReadOptions::default()).expect("a log that opens")
}

/// Everything that the random-access reader makes of a log, in the form of the expected results.
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

/// Everything that the stream makes of a log, and what it does not know left out.
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

/// Notes at one offset stand in the order of their codes.
fn sort_notes(json: &mut Json) {
    let notes = json["notes"].as_array_mut().expect("notes");
    let key = |note: &Json| {
        let offset: u64 = note["offset"].as_str().expect("text").parse().expect("a number");
        (offset, note["code"].as_str().expect("text").to_owned())
    };
    notes.sort_by_key(key);
}

pub fn json(path: &Path) -> Json {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).expect("JSON")
}

/// An integer that is a JSON number or a text.
pub fn int(value: &Json) -> i128 {
    match value {
        Json::String(text) => text.parse().expect("an integer"),
        value => value.as_i64().map(i128::from).or(value.as_u64().map(i128::from)).expect("an integer"),
    }
}
