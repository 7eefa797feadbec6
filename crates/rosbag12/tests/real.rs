//! Compares real bags of 2008 to 2010 with the results of an independent scanner and decoder.

mod support;

use rosbag12::msg::SumMatch;
use rosbag12::{BagReader, IndexState, Version};
use rovelog_core::{LogReader, Record, Topic};
use rovelog_testing::{Log, hex, read_json, sha256};
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};
use support::{LOGS, options, same, stamp};

fn expected(log: &Log) -> Json {
    let file = log.path.file_name().unwrap().to_string_lossy().into_owned();
    let path = log.path.parent().unwrap().join(format!("expected/{file}.json"));
    read_json(&path)
}

/// Returns the real bags. Two message types no longer exist, so the tests provide their definitions
/// as layouts.
fn bags() -> Vec<(Log, BagReader)> {
    let Some(folder) = LOGS.folder() else { return Vec::new() };
    let layouts = std::fs::read_dir(folder.join("layouts")).unwrap();
    let layouts: Vec<_> = layouts
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_string_lossy().replace('-', "/");
            (name, std::fs::read(&path).unwrap())
        })
        .collect();
    let open = |log: Log| {
        let mut options = options(&log.name);
        for (name, text) in &layouts {
            options = options.with_layout(name.clone(), text.clone());
        }
        let bag = BagReader::new(log.bytes.clone(), &options).unwrap_or_else(|e| panic!("{}: {e}", log.name));
        (log, bag)
    };
    LOGS.real().into_iter().map(open).collect()
}

#[test]
fn sections_and_indices_are_as_expected() {
    for (log, bag) in bags() {
        let want = expected(&log);
        let name = &log.name;
        assert_eq!(bag.version().name(), want["version"], "{name}");
        assert_eq!(bag.info().records, want["messages"].as_u64().unwrap(), "{name}");
        let ends = |want: &Json| want.as_array().map(|pair| json!(pair));
        assert_eq!(
            bag.connections().iter().filter_map(|c| Some(c.span()?.0)).min().map(stamp),
            ends(&want["min_time"]),
            "{name}"
        );
        assert_eq!(
            bag.connections().iter().filter_map(|c| Some(c.span()?.1)).max().map(stamp),
            ends(&want["max_time"]),
            "{name}"
        );
        if want.get("times_going_back").is_some() {
            assert_eq!(bag.times_going_back(), want["times_going_back"].as_u64().unwrap(), "{name}");
        }
        if bag.version() != Version::V1_2 {
            continue;
        }
        assert_eq!(bag.version_line(), want["version_line"], "{name}");
        for op in 1..=4u8 {
            let count = want["records"][op.to_string()].as_u64().unwrap_or(0);
            assert_eq!(bag.records_of(op), count, "{name}: op {op}");
        }
        let sections = want["sections"].as_array().unwrap();
        assert_eq!(bag.sections().len(), sections.len(), "{name}");
        for (section, want) in bag.sections().iter().zip(sections) {
            assert_eq!(section.offset, want["offset"].as_u64().unwrap(), "{name}");
            assert_eq!(section.first_record, want["first_record"].as_u64().unwrap(), "{name}");
            assert_eq!(json!(section.index_pos), want["index_pos"], "{name}");
            assert_eq!(json!(section.raw_padding), want["raw_padding"], "{name}");
            assert_eq!(section.index.name(), want["index"], "{name}");
            let topics = want["index_topics"].as_array().cloned().unwrap_or_default();
            assert_eq!(section.index_topics.len(), topics.len(), "{name}");
            for want in topics {
                let of = |t: &&rosbag12::IndexTopic| t.topic == want["topic"].as_str().unwrap().as_bytes();
                let topic = section.index_topics.iter().find(of).unwrap();
                assert_eq!(topic.entries, want["entries"].as_u64().unwrap(), "{name}");
                assert_eq!(topic.in_scan, want["in_scan"].as_u64().unwrap(), "{name}");
                assert_eq!(topic.exact, want["exact"].as_bool().unwrap(), "{name} {want}");
                let differences = bag.index_differences(section, &topic.topic);
                assert_eq!(
                    differences.missing_in_index,
                    want["missing_in_index"].as_u64().unwrap(),
                    "{name}"
                );
                assert_eq!(differences.not_in_scan, want["not_in_scan"].as_u64().unwrap(), "{name}");
            }
            if section.index == IndexState::Exact {
                assert!(bag.info().lost.losses == 0, "{name}");
            }
        }
        let mut lost: Vec<Json> = bag
            .info()
            .lost
            .ranges
            .iter()
            .map(|range| json!({"offset": range.start, "length": range.end - range.start}))
            .collect();
        if let Some(stop) = want["stop"].as_object() {
            let cut = json!({"offset": stop["offset"], "length": stop["bytes_left"]});
            assert_eq!(lost.pop(), Some(cut), "{name}");
        }
        assert_eq!(json!(lost), want["lost_ranges"], "{name}");
    }
}

fn topic<'a>(bag: &'a BagReader, want: &Json) -> &'a Topic {
    let text = |key: &str| want[key].as_str().unwrap().as_bytes().to_vec();
    let same = |t: &&Topic| {
        let c = &bag.connections()[t.id.index()];
        c.topic == text("topic") && t.type_name.as_bytes() == text("type") && c.md5 == text("md5")
    };
    bag.topics().iter().find(same).unwrap_or_else(|| panic!("no topic {want}"))
}

fn check_message(bag: &BagReader, name: &str, record: &Record<'_>, want: &Json) {
    assert_eq!(record.offset, want["offset"].as_u64().unwrap(), "{name}");
    assert_eq!(stamp(record.time.unwrap().nanos), want["time"], "{name}");
    assert_eq!(record.payload.len() as u64, want["len"].as_u64().unwrap(), "{name}");
    if want["value"].is_null() {
        let digits = want["payload_hex"].as_str().unwrap();
        assert_eq!(hex(&record.payload[..digits.len() / 2]), digits, "{name}");
    } else {
        let (value, surplus) = bag.decode(record).unwrap();
        assert_eq!(surplus as u64, want["surplus"].as_u64().unwrap(), "{name}");
        assert!(same(&value, &want["value"]), "{name}\n{}\n{}", value.to_json(), want["value"]);
    }
}

#[test]
fn topics_and_values_are_as_expected() {
    let mut decoded = 0;
    for (log, bag) in bags() {
        let want = expected(&log);
        let name = &log.name;
        let topics = want["topics"].as_array().unwrap();
        assert_eq!(bag.topics().iter().filter(|t| t.count > 0).count(), topics.len(), "{name}");
        for want in topics {
            let topic = topic(&bag, want);
            let connection = &bag.connections()[topic.id.index()];
            let what = format!("{name} {}", topic.name);
            assert_eq!(topic.count, want["count"].as_u64().unwrap(), "{what}");
            assert_eq!(topic.bytes, want["bytes"].as_u64().unwrap(), "{what}");
            let (min, max) = connection.span().unwrap();
            assert_eq!(
                (stamp(min), stamp(max)),
                (want["min_time"].clone(), want["max_time"].clone()),
                "{what}"
            );
            assert_eq!(connection.latched(), want["latched"].as_u64().unwrap(), "{what}");
            assert_eq!(json!(bag.callerids(topic)), want["callerids"], "{what}");

            let records: Vec<_> = bag.records_in_file_order().filter(|r| r.topic.id == topic.id).collect();
            let mut hash = Sha256::new();
            for record in &records {
                hash.update(&record.payload);
            }
            assert_eq!(hex(&hash.finalize()), want["payload_sha256"], "{what}");
            check_message(&bag, &what, &records[0], &want["first"]);
            check_message(&bag, &what, records.last().unwrap(), &want["last"]);

            let definition = &want["definition"];
            let from = definition["from"].as_str().unwrap();
            if from == "none" || definition["md5_matches"] == "empty definition" {
                continue;
            }
            let ours = connection.definition().unwrap_or_else(|| panic!("{what}: no definition"));
            assert_eq!(ours.source.name(), from, "{what}");
            assert_eq!(ours.text.len() as u64, definition["bytes"].as_u64().unwrap(), "{what}");
            assert_eq!(sha256(&ours.text), definition["sha256"], "{what}");
            assert_eq!(ours.types.sum_v2().0, definition["md5_v2"], "{what}");
            assert_eq!(ours.types.sum_v1().0, definition["md5_v1"], "{what}");
            assert_eq!(ours.sum.name(), definition["md5_matches"], "{what}");
            let names: Vec<_> = ours.types.dependencies().collect();
            assert_eq!(json!(names), definition["dependencies"], "{what}");
            let exact = |r: &&Record<'_>| bag.decode(r).is_ok_and(|(_, surplus)| surplus == 0);
            let exact = records.iter().filter(exact).count() as u64;
            assert_eq!(exact, want["decoded_exactly"].as_u64().unwrap(), "{what}");
            decoded += exact;
        }
    }
    assert!(decoded > 8000 || LOGS.folder().is_none(), "only {decoded} messages were decoded");
}

/// The built-in catalogue must contain the types of all bags without definitions, with the md5 sums
/// that these bags state.
#[test]
fn the_catalogue_agrees_with_the_sums_in_bags() {
    let mut known = 0;
    for (log, bag) in bags() {
        for connection in bag.connections().iter().filter(|c| c.md5.len() == 32 && log.name != "md5_v1") {
            let ty = String::from_utf8_lossy(&connection.ty);
            let Some(text) = rosbag12::msg::known(&ty) else { continue };
            let own = |name: &str| rosbag12::msg::known(name).map(|text| text.as_bytes().to_vec());
            let types = rosbag12::msg::Types::resolve(&ty, text.as_bytes(), 64, &own).unwrap();
            let agrees = types.agrees(&connection.md5, text.as_bytes());
            assert!(matches!(agrees, SumMatch::V2 | SumMatch::V1), "{} {ty}", log.name);
            known += 1;
        }
    }
    assert!(known > 80 || LOGS.folder().is_none(), "only {known} types of the catalogue were met");
}
