//! What the tests share: where logs are, and one neutral picture of what a reader makes of a log.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]

use rovelog_core::{Bytes, LogReader, LogStream, ReadOptions};
use rovelog_testing::{Log, Overview, json_of, record_json};
use serde_json::{Value as Json, json};
use vel_format::{VelReader, VelStream};

/// The corpus: small logs laid from the specification.
pub fn corpus() -> Vec<Log> {
    rovelog_testing::corpus("vel", "vel", 50)
}

/// The real logs, those of an independent writer.
pub fn real() -> Vec<Log> {
    rovelog_testing::real("vel").map_or_else(Vec::new, |folder| rovelog_testing::logs_in(&folder, "vel"))
}

pub fn open(bytes: &Bytes) -> VelReader {
    VelReader::new(bytes.clone(), &ReadOptions::default()).expect("a log that opens")
}

/// Everything that the random-access reader makes of a log, in the form of the expected results.
pub fn picture(log: &VelReader) -> Json {
    let records: Vec<_> = log.records_in_file_order().map(|record| record_json(&record)).collect();
    let (info, diagnostics) = (log.info(), log.diagnostics());
    let overview = Overview { format: "vel", clock: "log_start", info, topics: log.topics(), diagnostics };
    with_own(overview.picture(&records), info)
}

/// The same from the stream over `input`.
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

/// What only this format has: details by key, choices by what they are about.
fn with_own(mut picture: Json, info: &rovelog_core::LogInfo) -> Json {
    let detail = |key: &str| info.details.iter().find(|detail| detail.key == key).map(|d| json_of(&d.value));
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
