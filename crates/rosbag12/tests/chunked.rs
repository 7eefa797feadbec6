//! Compares real V2.0 bags with the results of an independent scanner and decoder.

mod support;

use std::collections::BTreeMap;
use std::path::PathBuf;

use rosbag12::wire::RecordHead;
use rosbag12::{BagError, BagOptions, BagReader, IndexState};
use rovelog_core::backend::Backend as _;
use rovelog_core::{Bytes, LogReader, Record, Select};
use rovelog_testing::{hex, read_json, real, skipped};
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};
use support::{LOGS, same, stamp};

/// Returns the real bags with their paths and their expected results.
fn bags() -> Vec<(PathBuf, Bytes, Json)> {
    let Some(folder) = real("rosbag20") else { return Vec::new() };
    let mut found: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().contains(".bag"))
        .filter(|path| !path.to_string_lossy().ends_with("real-bags"))
        .collect();
    found.sort();
    let bag = |path: PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let expected = read_json(&folder.join(format!("expected/{name}.json")));
        let bytes: Bytes = std::fs::read(&path).unwrap().into();
        // When the folder of bags was copied, paths inside the bags may have been replaced, which
        // damages the bags. Such bags are skipped.
        if hex(&Sha256::digest(&bytes)) != expected["sha256"] {
            skipped(&format!("{name} differs from the file that its expected result describes"));
            return None;
        }
        Some((path, bytes, expected))
    };
    found.into_iter().filter_map(bag).collect()
}

/// Returns whether an expected value contains a path that was replaced when the folder of bags was
/// copied.
fn has_replaced_path(value: &Json) -> bool {
    value.to_string().contains("SCRATCH/")
}

/// Returns the options for opening a bag. If `by_index` is true, a bag with a consistent index is
/// opened by its index. In all other cases, the bag is scanned.
fn options(by_index: bool) -> BagOptions {
    let mut options = BagOptions::default();
    options.indexed_from = if by_index { 0 } else { u64::MAX };
    options
}

#[expect(clippy::too_many_lines, reason = "one list of what is compared")]
fn check(name: &str, bag: &BagReader, want: &Json, by_index: bool) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut same_as = |what: &str, got: Json, want: &Json| {
        if got != *want {
            wrong.push(format!("{name} {what}: {got} for {want}"));
        }
    };
    let records: Vec<_> = bag.intact_records(&Select::all()).map(Result::unwrap).collect();
    same_as("records", json!(records.len()), &want["messages"]);
    let in_file = bag.records_in_file_order().count();
    same_as("records in file order", json!(in_file), &want["messages"]);
    // An index may also count lost messages. Reading the messages must then have found the loss.
    let is_short = by_index && want["messages"] != bag.info().records;
    if is_short {
        same_as("losses", json!(bag.losses().is_empty()), &json!(false));
    } else {
        same_as("count", json!(bag.info().records), &want["messages"]);
    }
    let back: Vec<_> = bag.records_in_file_order().map(|r| r.time.unwrap().nanos).collect();
    let back = back.windows(2).filter(|pair| pair[1] < pair[0]).count();
    same_as("going back", json!(back), &want["times_going_back"]);
    let times: Vec<_> = records.iter().map(|r| r.time.unwrap().nanos).collect();
    assert!(times.is_sorted(), "{name}");
    same_as("first time", json!(times.first().copied().map(stamp)), &want["min_time"]);
    same_as("last time", json!(times.last().copied().map(stamp)), &want["max_time"]);
    let info = bag.info();
    if !by_index {
        let detail = rovelog_testing::detail(&info.details, "index").map(rovelog_testing::json_of);
        same_as("index", detail.unwrap()[0]["state"].clone(), &want["index"]);
        let chunks = rovelog_testing::detail(&info.details, "chunks").map(rovelog_testing::json_of);
        let states = chunks.map_or(json!({}), |chunks| chunks["states"].clone());
        let states: BTreeMap<String, u64> = states
            .as_object()
            .unwrap()
            .iter()
            .map(|(name, count)| (name.clone(), count.as_str().unwrap().parse().unwrap()))
            .collect();
        same_as("chunks", json!(states), &want["chunk_totals"]["states"]);
        for ranges in info.lost.ranges.windows(2) {
            assert!(ranges[0].end <= ranges[1].start, "{name}: {ranges:?}");
        }
        let ledger = bag.ledger();
        let sum: u64 = ledger.iter().map(|(_, range)| range.end - range.start).sum();
        same_as("ledger", json!(sum), &want["file_bytes"]);
    }
    // A topic name with several types or md5 sums becomes several topics.
    let topics = want["topics"].as_array().cloned().unwrap_or_default();
    let unnamed = want["messages_without_connection"].as_object().cloned().unwrap_or_default();
    let met: std::collections::BTreeSet<_> = records.iter().map(|r| r.topic.id).collect();
    same_as("topics", json!(met.len()), &json!(topics.len() + unnamed.len()));
    let sum = |records: &[&Record<'_>]| {
        let mut hash = Sha256::new();
        for record in records {
            hash.update(&record.payload);
        }
        hex(&hash.finalize())
    };
    for (id, unnamed) in &unnamed {
        let own: Vec<_> = records.iter().filter(|r| r.topic.name == format!("conn {id}")).collect();
        same_as("unnamed", json!({"count": own.len(), "payload_sha256": sum(&own)}), unnamed);
    }
    for want in &topics {
        let is_own = |topic: &rovelog_core::Topic| {
            let connection = &bag.connections()[topic.id.index()];
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            text(&connection.topic) == want["topic"]
                && text(&connection.ty) == want["type"]
                && text(&connection.md5) == want["md5"]
        };
        let what = format!("{} {}", want["topic"], want["type"]);
        let Some(topic) = bag.topics().iter().find(|topic| is_own(topic)) else {
            same_as("topic", Json::Null, &json!(what));
            continue;
        };
        let own: Vec<_> = records.iter().filter(|record| record.topic.id == topic.id).collect();
        same_as(&what, json!(own.len()), &want["count"]);
        // Wrong message counts in the index are corrected in `info`, but not in the topics.
        let is_right = !by_index || want["count"] == topic.count && !name.starts_with("connection_duplicate");
        if !by_index {
            same_as(&what, json!(topic.count), &want["count"]);
        }
        if topic.bytes_known {
            same_as(&what, json!(topic.bytes), &want["bytes"]);
        }
        same_as(&what, json!(sum(&own)), &want["payload_sha256"]);
        let connection = &bag.connections()[topic.id.index()];
        if !by_index {
            same_as(&what, json!(connection.latched()), &want["latched"]);
        }
        let mut callers = want["callerids"].as_object().unwrap().clone();
        callers.remove("");
        if is_right {
            same_as(&what, json!(bag.callerids(topic)), &json!(callers));
        }
        for (record, want) in [(own.first(), &want["first"]), (own.last(), &want["last"])] {
            let Some(record) = record.filter(|_| want.is_object()) else { continue };
            same_as(&what, stamp(record.time.unwrap().nanos), &want["time"]);
            same_as(&what, json!(record.payload.len()), &want["len"]);
            match bag.decode(record) {
                // Paths in the expected values may have been replaced when the folder of bags was
                // copied. The payloads were already compared by their checksums.
                Ok((value, _)) if want["value"].is_object() && !has_replaced_path(&want["value"]) => {
                    let is_same = same(&value, &want["value"]);
                    if !is_same {
                        same_as(&what, json!(value.to_json()), &want["value"]);
                    }
                }
                _ => {}
            }
        }
        let file_order = want.get("payload_sha256_file_order").unwrap_or(&want["payload_sha256"]);
        let stored: Vec<_> = bag.records_in_file_order().filter(|r| r.topic.id == topic.id).collect();
        same_as(&what, json!(sum(&stored.iter().collect::<Vec<_>>())), file_order);
    }
    let visited = std::cell::Cell::new(0);
    bag.scan(|_, _, _, _| visited.set(visited.get() + 1));
    same_as("visited", json!(visited.get()), &want["messages"]);
    wrong
}

#[test]
fn bags_are_as_expected() {
    let mut wrong = Vec::new();
    for (path, bytes, want) in bags() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if want.get("refused").is_some() {
            let refused = BagReader::new(bytes, &options(false)).unwrap_err();
            assert!(matches!(refused, BagError::OtherVersion { version } if version == "2.1"));
            continue;
        }
        for by_index in [false, true] {
            match BagReader::new(bytes.clone(), &options(by_index)) {
                Ok(bag) => wrong.extend(check(&format!("{name} by index {by_index}"), &bag, &want, by_index)),
                Err(error) => wrong.push(format!("{name}: {error}")),
            }
        }
    }
    assert!(wrong.is_empty(), "{} differences\n{}", wrong.len(), wrong.join("\n"));
}

/// Returns the next random number of the generator Splitmix64, which the plans of the damage also
/// use.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Four bits of the bag are flipped. Every message without a flipped bit must be read, and no other
/// message may appear.
#[test]
fn messages_without_flipped_bits_survive() {
    let Some(folder) = real("rosbag20") else { return };
    let mut wrong = Vec::new();
    for compression in ["none", "lz4", "bz2"] {
        let plan = read_json(&folder.join(format!("expected/flips_clean_{compression}.json")));
        let clean: Bytes = std::fs::read(folder.join(format!("clean_{compression}.bag"))).unwrap().into();
        let recorded = BagReader::new(clean.clone(), &options(false)).unwrap();
        let key = |record: &Record<'_>| (record.time.unwrap().nanos, record.payload.to_vec());
        // Returns the range of the bytes on which a message depends. This is the record of the
        // message, or its whole compressed chunk.
        let depends = |record: &Record<'_>| {
            let at = record.offset;
            let head = RecordHead::read(&clean[usize::try_from(at).unwrap()..]).unwrap();
            at..at + head.size() as u64 + u64::from(head.data_len)
        };
        let of = |record: rovelog_core::Result<Record<'_>>| {
            let record = record.unwrap();
            (key(&record), depends(&record))
        };
        let (recorded, places): (Vec<_>, Vec<_>) = recorded.records(&Select::all()).map(of).unzip();
        for file in plan["files"].as_array().unwrap() {
            let seed = file["seed"].as_u64().unwrap();
            let mut state = seed * 1_000_003 + clean.len() as u64;
            let mut bytes = clean.to_vec();
            for flip in file["flips"].as_array().unwrap() {
                let at = 13 + usize::try_from(next(&mut state) % (clean.len() as u64 - 13)).unwrap();
                let bit = next(&mut state) % 8;
                assert_eq!(json!([at, bit]), *flip);
                bytes[at] ^= 1 << bit;
            }
            let what = format!("{compression} {seed} {}", file["hit"]);
            let bag = BagReader::new(bytes.into(), &options(false)).unwrap();
            let found: Vec<_> = bag.records(&Select::all()).map(|record| key(&record.unwrap())).collect();
            // A damaged message may have a different time, so it may appear at a different position
            // in time order.
            let mut left = found.clone();
            let kept: Vec<_> = recorded
                .iter()
                .filter(|key| {
                    let place = left.iter().position(|found| found == *key);
                    place.map(|place| left.swap_remove(place)).is_some()
                })
                .collect();
            let flips = file["flips"].as_array().unwrap().iter().map(|flip| flip[0].as_u64().unwrap());
            let flips: Vec<_> = flips.collect();
            let is_whole = |place: &std::ops::Range<u64>| !flips.iter().any(|at| place.contains(at));
            let whole = recorded.iter().zip(&places).filter(|(_, place)| is_whole(place));
            let mut must: Vec<_> = whole.map(|(key, _)| key.clone()).collect();
            assert_eq!(json!(must.len()), file["must_survive"], "{what}");
            // Hash the messages in the order in which they were read.
            let mut hash = Sha256::new();
            for record in &found {
                if let Some(place) = must.iter().position(|key| key == record) {
                    hash.update(&must.swap_remove(place).1);
                }
            }
            if json!(hex(&hash.finalize())) != file["must_sha256"] {
                wrong.push(format!("{what}: {} of {} missing", must.len(), file["must_survive"]));
            }
            let touched = recorded.len() as u64 - file["must_survive"].as_u64().unwrap();
            if (kept.len() as u64) < file["must_survive"].as_u64().unwrap() {
                wrong.push(format!("{what}: {} kept of {}", kept.len(), file["must_survive"]));
            }
            if left.len() as u64 > touched {
                wrong.push(format!("{what}: {} that no one recorded", left.len()));
            }
        }
    }
    assert!(wrong.is_empty(), "{} differences\n{}", wrong.len(), wrong.join("\n"));
}

/// A bag is truncated at many lengths. All messages that are complete in the truncated bag must be
/// read.
#[test]
fn complete_messages_of_every_prefix_are_read() {
    let Some(folder) = real("rosbag20") else { return };
    let clean: Bytes = std::fs::read(folder.join("clean_none.bag")).unwrap().into();
    let bag = BagReader::new(clean.clone(), &options(false)).unwrap();
    let ends: Vec<u64> =
        bag.records_in_file_order().map(|r| r.offset + 46 + r.payload.len() as u64).collect();
    for len in 0..=clean.len() {
        let bag = match BagReader::new(clean.slice(..len), &options(false)) {
            Ok(bag) => bag,
            Err(_) if len < 13 => continue,
            Err(error) => panic!("{len}: {error}"),
        };
        let whole = ends.iter().filter(|end| **end <= len as u64).count() as u64;
        assert_eq!(bag.info().records, whole, "{len} bytes");
        let lost: u64 = bag.ledger().iter().map(|(_, range)| range.end - range.start).sum();
        assert_eq!(lost, len as u64);
    }
}

/// The index contains the time span of each chunk. A chunk is read for a time window only if its
/// time span overlaps with the window.
#[test]
fn wrong_times_in_the_index_hide_no_messages() {
    let open = |bytes: &Bytes| BagReader::new(bytes.clone(), &options(true)).unwrap();
    let bag = open(&LOGS.case("v2.0+chunk-info-times-wrong").bytes);
    assert_eq!(bag.sections()[0].index, IndexState::Differs);
    let times: Vec<_> = bag.records_in_file_order().map(|record| record.time.unwrap().nanos).collect();
    for time in times {
        let mut window = Select::all();
        (window.start, window.end) = (Some(time), Some(time + 1));
        assert_eq!(bag.records(&window).count(), 1);
    }

    // The chunk info and the index data agree, but the first message has a different time.
    let log = LOGS.case("v2.0+several-chunks");
    let at = usize::try_from(open(&log.bytes).records_in_file_order().next().unwrap().offset).unwrap();
    let field = log.bytes[at..].windows(5).position(|bytes| bytes == b"time=").unwrap();
    let mut bytes = log.bytes.to_vec();
    bytes[at + field + 5] ^= 0x40;
    let bytes = Bytes::from(bytes);
    let (bag, whole) = (open(&bytes), BagReader::new(bytes.clone(), &options(false)).unwrap());
    let differs = |bag: &BagReader| bag.diagnostics().counts().contains_key("W-BAG-106");
    assert!(bag.sections()[0].index == IndexState::Believed && !differs(&bag));
    assert_eq!(bag.records(&Select::all()).count(), 8);
    assert!(!differs(&bag) && differs(&whole));
}
