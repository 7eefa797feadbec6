//! Logs that an independent program wrote are compared with their manifest.

mod support;

use rovelog_core::internal::wire::F32Le;
use rovelog_core::{Error, LogReader, ReadOptions, RecoverOptions, Select, Severity, State};
use rovelog_testing::{Log, hex, read_json, sha256};
use serde_json::Value as Json;
use sha2::{Digest, Sha256};
use support::{LOGS, open, rewritten, try_open};
use vel_format::{
    IndexOrigin, IndexState, Kind, NewMessage, Payload, SizeRule, VelReader, WriteOptions, simple_hash,
    write_log,
};

fn manifest() -> Option<Vec<(Json, Log)>> {
    let list = read_json(&LOGS.folder()?.join("manifest.json"));
    let log = |entry: &Json| {
        let name = entry["file"].as_str().expect("a name").trim_end_matches(".vel");
        Some((entry.clone(), LOGS.real_log(name)?))
    };
    list.as_array().expect("a list").iter().map(log).collect()
}

fn expected(name: &str) -> Option<Json> {
    Some(read_json(&LOGS.folder()?.join("expected").join(name)))
}

fn number(entry: &Json, key: &str) -> Option<u64> {
    entry[key].as_u64()
}

#[test]
fn every_log_reads_as_in_its_manifest() {
    for (entry, log) in manifest().into_iter().flatten() {
        let name = &log.name;
        assert_eq!(sha256(&log.bytes), entry["sha256"], "{name}");
        let opened = VelReader::new(log.bytes.clone(), &ReadOptions::default());
        if entry["strict_error"] == true {
            let error = Error::from(opened.expect_err(name));
            assert!(error.next.is_some(), "{name}: {error}");
            continue;
        }
        let reader = opened.unwrap_or_else(|error| panic!("{name}: {error}"));
        let messages = reader.messages().len() as u64;
        if let Some(want) = number(&entry, "messages") {
            assert_eq!(messages, want, "{name}");
        }
        // Messages after an end mark are returned only by recovery.
        if let Some(want) = number(&entry, "messages_intact").filter(|_| name != "bad_terminator_mid") {
            assert_eq!(messages, want, "{name}");
        }
        for (kind, want) in entry["by_type"].as_object().into_iter().flatten() {
            let kind = Kind::ALL.into_iter().find(|known| known.name() == kind).expect("a known type");
            assert_eq!(reader.payloads(kind).count() as u64, want.as_u64().unwrap(), "{name} {kind:?}");
        }
        if entry["payload_sha256"].is_string() {
            let mut hash = Sha256::new();
            reader.messages().for_each(|message| hash.update(message.data));
            assert_eq!(hex(&hash.finalize()), entry["payload_sha256"], "{name}");
        }
        let millis: Vec<f64> = reader.messages().map(|message| message.header.timestamp.get()).collect();
        for (key, got) in [("first_ms", millis.first()), ("last_ms", millis.last())] {
            if let Some(want) = entry[key].as_f64() {
                assert_eq!(got, Some(&want), "{name} {key}");
            }
        }
        conventions(&entry, &reader, name);
        check_diagnostics(&entry, &reader, name);
    }
}

/// Compares the size rule, the markers, the index and the inferred settings of a log with the
/// manifest.
fn conventions(entry: &Json, reader: &VelReader, name: &str) {
    let rule = match entry["size"].as_str() {
        Some("incl") => SizeRule::Inclusive,
        Some("data") => SizeRule::DataOnly,
        _ => SizeRule::Exclusive,
    };
    assert_eq!(reader.size_rule(), rule, "{name}");
    let marker = u8::try_from(number(entry, "marker").unwrap_or(0x31)).unwrap();
    assert!(reader.messages().all(|message| message.header.marker == marker), "{name}");
    if let Some(rebuilt) = entry["index_rebuilt"].as_bool() {
        assert_eq!(matches!(reader.index(), IndexState::Rebuilt(_)), rebuilt, "{name}: {:?}", reader.index());
    } else if entry["valid"] == true && name != "bad_terminator_mid" {
        // Index entries do not refer to messages after an end mark.
        assert!(!matches!(reader.index(), IndexState::Rebuilt(_)), "{name}: {:?}", reader.index());
    }
    match entry["index_origin"].as_str() {
        Some("first message") => {
            assert_eq!(*reader.index(), IndexState::Good(IndexOrigin::FirstMessage), "{name}");
        }
        Some(origin) if origin.starts_with("program start") => {
            assert_eq!(*reader.index(), IndexState::Good(IndexOrigin::ProgramStart), "{name}");
        }
        _ => {}
    }
    let meaning = reader.meaning();
    if let Some(units) = entry["gps_units"].as_str() {
        assert_eq!(meaning.gps.unit.name(), units, "{name}");
    }
    if let Some(order) = entry["order"].as_str() {
        assert_eq!(meaning.pose.order.name(), order, "{name}: {}", meaning.pose.evidence);
        assert_eq!(meaning.pose.direction.name(), "body_to_world", "{name}");
    }
    assert!(name != "pose_xyzw" || !meaning.pose.assumed);
}

/// Compares the diagnostics of a log with those in the manifest, by offset.
fn check_diagnostics(entry: &Json, reader: &VelReader, name: &str) {
    let list = reader.diagnostics().list();
    let of = |word: &str| list.iter().filter(|d| d.rule.name == word).count() as u64;
    assert_eq!(of("invalid_message"), number(entry, "flagged_invalid").unwrap_or(0), "{name}");
    assert_eq!(of("bad_payload"), number(entry, "payload_errors").unwrap_or(0), "{name}");
    if let Some(warnings) = number(entry, "warnings") {
        assert_eq!(list.len() as u64, warnings, "{name}: {list:?}");
    }
    let losses: Vec<_> = list.iter().filter(|d| d.rule.severity == Severity::DataLost).collect();
    if let (Some(at), Some(resync)) = (number(entry, "at"), number(entry, "resync_at")) {
        assert_eq!(losses.len(), 1, "{name}: {losses:?}");
        assert_eq!(losses[0].range, at..resync, "{name}");
    } else if entry["valid"] == true {
        assert_eq!(reader.info().state, State::Complete, "{name}: {losses:?}");
    }
}

/// Every byte is part of the header, the index, a message, or another part that the reader reports.
#[test]
fn every_log_is_written_back_byte_for_byte() {
    for log in LOGS.real() {
        let Ok(reader) = VelReader::salvage(log.bytes.clone(), &ReadOptions::default()) else { continue };
        assert!(rewritten(&reader, &log.bytes) == log.bytes, "{}", log.name);
    }
}

#[test]
fn the_defaults_of_the_writer_follow_the_specification() {
    let Some(log) = LOGS.real_log("all6_excl_49") else { return };
    let reader = open(&log.bytes);
    let messages: Vec<_> = reader.messages().map(|m| decoded(&m)).collect();
    let mut out = Vec::new();
    write_log(&messages, &WriteOptions::default(), &mut out).unwrap();
    assert!(out == log.bytes);
}

/// Encodes a message again from its decoded fields.
fn decoded<'a>(message: &vel_format::Message<'a>) -> NewMessage<'a> {
    let millis = message.header.timestamp.get();
    match message.payload().unwrap() {
        Payload::Image(image) => NewMessage::jpeg(millis, image.source.get(), &image.data).unwrap(),
        content => NewMessage::new(millis, &content),
    }
}

/// A recovered log must open, and may have only damage that is kept on purpose. If it is recovered
/// again, it must not change.
#[test]
fn recovery_matches_the_manifest() {
    for (entry, log) in manifest().into_iter().flatten() {
        let name = &log.name;
        let Ok(reader) = VelReader::salvage(log.bytes.clone(), &ReadOptions::default()) else {
            assert_eq!(number(&entry, "messages_intact"), Some(0), "{name}");
            continue;
        };
        let mut out = Vec::new();
        let report = reader.recover(&mut out, &RecoverOptions::default()).unwrap();
        assert_eq!(report.kept_bytes + report.lost_bytes(), log.bytes.len() as u64, "{name}");
        let again = open(&out.clone().into());
        if let Some(want) = number(&entry, "messages_intact").or(number(&entry, "messages")) {
            // Complete messages whose data is too short are returned by `messages`, but recovery
            // drops them.
            let unreadable = number(&entry, "payload_errors").unwrap_or(0);
            assert_eq!(again.messages().len() as u64, want - unreadable, "{name}");
        }
        assert!(report.unchanged == (out == log.bytes), "{name}");
        assert!(again.info().lost.is_empty(), "{name}: {:?}", again.info().lost);
        assert!(!matches!(again.index(), IndexState::Rebuilt(_)), "{name}: {:?}", again.index());
        let mut twice = Vec::new();
        again.recover(&mut twice, &RecoverOptions::default()).unwrap();
        assert!(twice == out, "{name}");
    }
}

#[test]
fn every_field_of_the_base_log_is_right() {
    let (Some(want), Some(log)) = (expected("good.json"), LOGS.real_log("good")) else { return };
    let want = want.as_array().expect("a list");
    let reader = open(&log.bytes);
    assert_eq!(want.len(), reader.messages().len());
    for (want, message) in want.iter().zip(reader.messages()) {
        let at = message.offset;
        assert_eq!(want["pos"], at);
        assert_eq!(want["type"], message.kind().unwrap().name(), "{at}");
        assert_eq!(want["version"], message.header.version.get(), "{at}");
        assert_eq!(want["ts_ms"].as_f64(), Some(message.header.timestamp.get()), "{at}");
        assert_eq!(want["len"], message.data.len(), "{at}");
        let fields = &want["fields"];
        let near = |key: &str, got: f64| {
            let want = fields[key].as_f64().unwrap_or_else(|| panic!("{at} {key}: {fields}"));
            // The JSON parser can be wrong in the last bit of a number.
            assert!((want - got).abs() <= 1e-15 * want.abs(), "{at} {key}: {want} {got}");
        };
        match message.payload().unwrap() {
            Payload::Obd(obd) => {
                near("speed", obd.speed.get().into());
                near("rpm", obd.rpm.get().into());
                near("throttle", obd.throttle.get().into());
            }
            Payload::Gps(gps) => {
                near("hour", gps.hour.get().into());
                near("minute", gps.minute.get().into());
                near("second", gps.second.get().into());
                near("lat", gps.latitude.get());
                near("lon", gps.longitude.get());
                near("speed", gps.speed.get().into());
                near("course", gps.course.get().into());
                near("year", gps.year.get().into());
                near("quality", gps.quality.get().into());
                near("satellites", gps.satellites.get().into());
                near("hdop", gps.hdop.get().into());
                near("height", gps.height.get().into());
                near("geoid", gps.geoid_height.get().into());
                near("vdop", gps.vdop.get().into());
                near("pdop", gps.pdop.get().into());
            }
            Payload::Pose(pose) => {
                let got = |v: &[F32Le]| v.iter().map(|x| x.get()).collect::<Vec<_>>();
                #[expect(clippy::cast_possible_truncation, reason = "written with the digits of 32 bits")]
                let narrow = |x: &Json| x.as_f64().unwrap() as f32;
                let want = |key: &str| fields[key].as_array().unwrap().iter().map(narrow).collect::<Vec<_>>();
                assert_eq!(want("quat"), got(&pose.quaternion), "{at}");
                assert_eq!(want("acc"), got(&pose.acceleration), "{at}");
            }
            Payload::Image(image) => {
                near("source", image.source.get().into());
                near("width", image.width.get().into());
                near("height", image.height.get().into());
                assert_eq!(fields["sha256"], sha256(&image.data), "{at}");
            }
            Payload::Velodyne(data) => {
                assert_eq!(fields["packets"].as_u64(), Some(data.packets.len() as u64), "{at}: {fields}");
            }
            Payload::Laser(laser) => {
                assert_eq!(fields["sensor_name"].as_str().unwrap().as_bytes(), &*laser.sensor_name);
                assert_eq!(fields["sensor_type"].as_str().unwrap().as_bytes(), &*laser.sensor_type);
                let sum: u64 = laser.ranges.iter().map(|range| u64::from(range.get())).sum();
                assert_eq!(fields["sum"], sum, "{at}");
            }
        }
    }
}

#[test]
fn ids_are_derived_from_names() {
    let Some(want) = expected("simplehash.json") else { return };
    for (name, id) in want.as_object().expect("an object") {
        assert_eq!(*id, format!("0x{:08X}", simple_hash(name).unwrap()), "{name}");
    }
}

#[test]
fn utc_is_derived_from_positions() {
    for (entry, log) in manifest().into_iter().flatten() {
        if entry["by_type"]["GPSDataM"].as_u64().is_none_or(|n| n < 2) || log.name.starts_with("image_") {
            continue;
        }
        let reader = open(&log.bytes);
        let Some(utc) = &reader.meaning().gps.utc else { panic!("{} has fixes", log.name) };
        // The program started at this second of 2010-06-14. Positions were logged 20 ms late.
        let start = utc.at(0).unwrap().timestamp_nanos_opt().unwrap();
        let day = 1_276_473_600_000_000_000;
        assert!((start - day - 45_288_658_500_000).abs() < 5_000_000, "{}: {}", log.name, start - day);
        let seconds = (start - day) as f64 / 1e9;
        assert!((45_288.0..45_289.0).contains(&seconds));
    }
}

#[test]
fn seek_finds_the_first_message_at_or_after_a_time() {
    for log in LOGS.real() {
        let Some(reader) = try_open(&log.bytes) else { continue };
        let mut times: Vec<i64> = reader.messages().map(|message| message.nanos).collect();
        times.sort_unstable();
        for time in times.iter().step_by(7) {
            let found = reader.seek(*time).expect("there is one");
            assert_eq!(found.nanos, *time, "{}", log.name);
            let first = reader.records(&Select::all().between(Some(*time), None)).next();
            assert!(first.is_none_or(|record| record.unwrap().time.unwrap().nanos >= *time));
        }
        if let Some(last) = times.last() {
            assert!(reader.seek(last + 1).is_none());
        }
    }
}
