//! Tests of logs of which only the parts are read that a request needs.

use std::io::Cursor;

use rovelog::core::internal::partial::{END, Unread};
use rovelog::rld_format::unit::Unit;
use rovelog::rld_format::wire::BlockTimes;
use rovelog::rld_format::{ChannelSpec, LogSpec, RldWriter};
use rovelog::{ReadOptions, from_bytes};
use rovelog_explore::{Answer, Explore};
use serde_json::Value;

/// Answers a request after only the needed parts of a file were read. Also returns the number of
/// bytes that were read, or `None` if the whole file is needed.
fn answer(file: &[u8], request: &str) -> Option<(Answer, u64)> {
    let size = file.len() as u64;
    let mut read = vec![0..END.min(size), size.saturating_sub(END)..size];
    for _ in 0..64 {
        let unread = Unread::behind(size, &read);
        let mut bytes = file.to_vec();
        for range in unread.ranges() {
            bytes[usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap()].fill(0);
        }
        let mut options = ReadOptions::default();
        options.unread = unread.clone();
        let log = Explore::new(from_bytes(bytes.into(), &options).unwrap(), "log", "log");
        let needed = log.needed(request)?;
        if needed.is_empty() {
            return Some((log.answer(request).unwrap(), size - unread.bytes()));
        }
        read.extend(needed);
    }
    panic!("{request} never has enough");
}

/// Returns the answer to a request when the whole file was read.
fn expected(file: &[u8], request: &str) -> Answer {
    let log = from_bytes(file.to_vec().into(), &ReadOptions::default()).unwrap();
    let log = Explore::new(log, "log", "log");
    assert_eq!(log.needed(request), Some(Vec::new()));
    log.answer(request).unwrap()
}

/// Returns the header of an answer, and its arrays.
fn parts(answer: &Answer) -> (Value, Vec<f64>) {
    let head = 4 + u32::from_le_bytes(answer.bytes[..4].try_into().unwrap()) as usize;
    let numbers =
        answer.bytes[head..].chunks_exact(8).map(|bytes| f64::from_le_bytes(bytes.try_into().unwrap()));
    (serde_json::from_slice(&answer.bytes[4..head]).unwrap(), numbers.collect())
}

/// Returns an RLD log of ten minutes at 8 kHz. The value of a row is its number.
fn ramp() -> Vec<u8> {
    let spec = LogSpec {
        channels: vec![ChannelSpec::analog("V1", Unit::Volt, 0)],
        block_rows: 8000,
        ..LogSpec::new(8000)
    };
    let mut log = RldWriter::new(Cursor::new(Vec::new()), spec.header().unwrap()).unwrap();
    for block in 0..600_u32 {
        let time = 1_700_000_000_000_000_000 + i64::from(block) * 1_003_520_000;
        let rows: Vec<u8> = (0..8000).flat_map(|row| (block * 8000 + row).to_le_bytes()).collect();
        let times = BlockTimes::new(time.into(), (time - 1_600_000_000_000_000_000).into()).unwrap();
        log.block(&times, &rows).unwrap();
    }
    log.finish_in_place().unwrap().0.into_inner()
}

#[test]
fn a_preview_reads_little_and_shows_the_whole_range() {
    let file = ramp();
    let (answer, read) = answer(&file, "signals?topic=samples&field=V1&width=1000&preview=1").unwrap();
    assert!(read < file.len() as u64 / 10, "{read} of {} bytes", file.len());
    let (head, numbers) = parts(&answer);
    assert_eq!(head["series"][0]["name"], "samples.V1");
    let (times, values) = numbers.split_at(numbers.len() / 2);
    assert!(times.len() >= 500 && times[0] == 0.0 && *times.last().unwrap() > 598.0);
    for (time, value) in times.iter().zip(values) {
        assert!((time * 8000.0 / 1.00352 - value).abs() < 1.0, "{time} s: {value}");
    }
}

#[test]
fn facts_need_no_rows() {
    let file = ramp();
    let (answer, read) = answer(&file, "").unwrap();
    assert!(read <= 2 * END, "{read}");
    let [partly, whole] = [answer, expected(&file, "")].map(|answer| {
        let mut facts: Value = serde_json::from_slice(&answer.bytes).unwrap();
        (["partly", "preview", "state"].map(|name| facts[name].take()), facts)
    });
    assert_eq!(partly.0, [Value::from(true), Value::from(true), Value::from("not_checked")]);
    assert_eq!(whole.0, [Value::from(false), Value::from(false), Value::from("complete")]);
    assert_eq!(partly.1, whole.1);
}

#[test]
fn signals_of_partly_read_logs_are_exact() {
    let request = "signals?topic=samples&field=V1&width=500";
    let file = ramp();
    assert_eq!(answer(&file, request).unwrap().0.bytes, expected(&file, request).bytes);
    let real = rovelog_testing::real("rosbag20").map(|folder| rovelog_testing::logs_in(&folder, "bag"));
    for log in real.into_iter().flatten().filter(|log| log.bytes.len() as u64 > 4 * END) {
        let facts: Value = serde_json::from_slice(&expected(&log.bytes, "").bytes).unwrap();
        let Some([topic, field]) = facts["start"][0][0].as_array().map(|pair| [&pair[0], &pair[1]]) else {
            continue;
        };
        let query = form(topic, field);
        if let Some((found, _)) = answer(&log.bytes, &query) {
            assert_eq!(found.bytes, expected(&log.bytes, &query).bytes, "{}: {query}", log.name);
        }
    }
}

fn form(topic: &Value, field: &Value) -> String {
    let pairs = [("topic", topic), ("field", field)].map(|(key, value)| (key, value.as_str().unwrap()));
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
    format!("signals?{query}")
}
