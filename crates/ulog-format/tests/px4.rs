//! Tests of positions, flight modes and events of PX4. Values of real logs are compared with the
//! results of independent readers.
#![cfg(feature = "events")]

mod support;

use std::io::Write as _;

use lzma_rust2::{XzOptions, XzWriter};
use rovelog_core::{LogReader, Select};
use support::{LOGS, open};
use ulog_format::UlogReader;
use ulog_format::px4::{
    Change, Entry, Event, NoPosition, Position, PositionFields, events, mode_changes, status_changes,
    timeline,
};
use ulog_format::px4::{EventDefinitions, MetadataError};

fn positions(reader: &UlogReader, topic: &str, min_fix: u8) -> Vec<Result<Position, NoPosition>> {
    let rows = reader.records(&Select::topic(topic));
    rows.map(|record| {
        let record = record.unwrap();
        let row = reader.row(&record).unwrap();
        PositionFields::of(row.layout()).expect("a topic with positions").position(&row, min_fix)
    })
    .collect()
}

#[test]
fn integer_and_float_coordinates_give_the_same_position() {
    for (log, topic, min_fix) in
        [("utc-gps-int32", "vehicle_gps_position", 3), ("utc-gps-double", "sensor_gps/1", 3)]
    {
        let positions: Vec<_> =
            positions(&open(&LOGS.case(log).bytes), topic, min_fix).into_iter().flatten().collect();
        assert!(!positions.is_empty(), "{log}");
        for position in positions {
            let place = (position.latitude, position.longitude, position.altitude_msl);
            assert_eq!(place, (47.397_742, 8.545_593_8, Some(488.004)), "{log}");
            assert!(position.fix >= Some(3) && position.eph == Some(0.5), "{log}");
        }
    }
}

#[test]
fn without_a_fix_there_is_no_position() {
    let reader = open(&LOGS.case("utc-gps-double").bytes);
    assert!(positions(&reader, "vehicle_gps_position", 3).iter().all(|p| *p == Err(NoPosition::NoFix)));
    // Positions with a 2D fix are returned if the caller accepts them. Lower fix types are never a
    // position.
    assert!(positions(&reader, "vehicle_gps_position", 0).iter().all(Result::is_ok));
    assert!(positions(&reader, "sensor_gps/1", 4).iter().all(|p| *p == Err(NoPosition::NoFix)));
}

/// The numbers of fixes in the real logs were determined with pyulog. In the damaged log, pyulog
/// misses a row.
#[test]
fn real_logs_have_as_many_positions_as_fixes() {
    for (name, topic, fixes, others) in [
        ("sample_px4_events", "vehicle_gps_position", 423, 160),
        ("sample_px4_events", "sensor_gps", 22, 9),
        ("pyulog__sample_2016_original", "vehicle_gps_position", 99, 0),
        ("px4-ulog-rs__esc_status_log", "vehicle_gps_position", 179, 0),
        ("px4-ulog-rs__corrupt_unregistered_msg_id", "sensor_gps", 59, 0),
        ("ulog-rs__sample-small", "vehicle_gps_position", 36, 0),
        ("robologs__test", "sensor_gps", 10, 0),
    ] {
        let Some(log) = LOGS.real_log(name) else { return };
        let positions = positions(&open(&log.bytes), topic, 3);
        let found = positions.iter().filter(|position| position.is_ok()).count();
        assert_eq!((found, positions.len() - found), (fixes, others), "{name} {topic}");
        let last = positions.into_iter().rev().flatten().next().unwrap();
        // Values in the last row of the topic, according to pyulog.
        match (name, topic) {
            ("sample_px4_events", "vehicle_gps_position") => {
                assert_eq!(last.altitude_msl, Some(487.992));
                assert_eq!(last.hdop, None, "the simulation writes 0");
            }
            ("ulog-rs__sample-small", _) => {
                assert_eq!((last.altitude_msl, last.altitude_ellipsoid), (Some(8.487), Some(-3.486)));
                assert_eq!((last.hdop, last.speed), (Some(0.539_999_96), Some(0.015_000_001)));
                assert!((last.course.unwrap() - 283.942).abs() < 0.001);
            }
            ("px4-ulog-rs__corrupt_unregistered_msg_id", _) => {
                assert_eq!(last.altitude_ellipsoid, Some(149.934));
                assert_eq!(last.fix, Some(4));
            }
            _ => {}
        }
    }
}

#[test]
fn modes_and_arming_of_real_logs() {
    let Some(log) = LOGS.real_log("sample_px4_events") else { return };
    let reader = open(&log.bytes);
    let start = reader.info().start.unwrap().nanos;
    let modes: Vec<_> = mode_changes(&reader).iter().map(|mode| mode.value.to_string()).collect();
    assert_eq!(modes, ["Hold (4)", "Takeoff (17)", "Hold (4)", "Return (5)", "Hold (4)"]);
    let changes = status_changes(&reader);
    let seconds = |change: &Change<Entry>| (change.time.nanos - start) / 1_000_000_000;
    let arming: Vec<_> = changes
        .iter()
        .filter(|change| matches!(change.value, Entry::Arming(_)))
        .map(|change| (seconds(change), change.value.clone()))
        .collect();
    assert_eq!(arming, [(14, Entry::Arming(true)), (30, Entry::Arming(false))]);
    assert!(!changes.iter().any(|change| matches!(change.value, Entry::Failsafe(_))));

    let log = LOGS.real_log("px4-ulog-rs__corrupt_unregistered_msg_id").unwrap();
    let reader = open(&log.bytes);
    let modes: Vec<_> = mode_changes(&reader).iter().map(|mode| mode.value.nav_state).collect();
    assert_eq!(modes, [2, 3, 2, 1, 2, 18, 2]);
    let failsafe: Vec<_> = status_changes(&reader)
        .into_iter()
        .map(|change| change.value)
        .filter(|value| matches!(value, Entry::Failsafe(_)))
        .collect();
    assert_eq!(failsafe, [Entry::Failsafe(true), Entry::Failsafe(false)]);

    let log = LOGS.real_log("px4-ulog-rs__esc_status_log").unwrap();
    assert!(mode_changes(&open(&log.bytes)).iter().all(|mode| mode.value.old));
}

/// The times in microseconds and the texts were printed by the program `ulog_messages` of pyulog
/// 1.3.0.
#[test]
fn events_read_as_pyulog_prints_them() {
    let Some(log) = LOGS.real_log("sample_px4_events") else { return };
    let found = events(&open(&log.bytes));
    assert!(found.defined && found.problem.is_none());
    assert_eq!(found.list.len(), 38);
    assert!(found.list.iter().all(|event| event.text.is_some()));
    let messages: Vec<_> = found
        .list
        .iter()
        .filter(|event| event.is_message())
        .map(|event| (event.time.nanos / 1_000_000 % 3_600_000, event.level_name(), event.message()))
        .collect();
    let want = [
        (49 * 60_000 + 10_346, "info", "logging: opening log file 2024-3-18/14_49_10.ulg"),
        (49 * 60_000 + 25_282, "info", "Armed by internal command"),
        (49 * 60_000 + 25_282, "info", "Using default takeoff altitude: 2.50 m"),
        (49 * 60_000 + 27_094, "info", "Takeoff detected"),
        (49 * 60_000 + 32_482, "info", "RTL: start return at 491 m (3 m above destination)"),
        (49 * 60_000 + 32_694, "info", "RTL: land at destination"),
        (49 * 60_000 + 38_482, "info", "Landing detected"),
        (49 * 60_000 + 40_486, "info", "Disarmed by landing"),
    ];
    let want: Vec<_> = want.into_iter().map(|(time, level, text)| (time, level, text.to_owned())).collect();
    assert_eq!(messages, want);
}

#[test]
fn the_timeline_has_events_and_changes_of_the_status_in_time_order() {
    let Some(log) = LOGS.real_log("sample_px4_events") else { return };
    let reader = open(&log.bytes);
    let found = timeline(&reader, events(&reader).list.into_iter().filter(Event::is_message));
    let start = reader.info().start.unwrap().nanos;
    let lines: Vec<_> = found
        .iter()
        .map(|entry| {
            let seconds = (entry.time.nanos - start) / 1_000_000_000;
            let entry = &entry.value;
            (seconds, entry.level(), entry.kind_name(), entry.text().into_owned())
        })
        .collect();
    // The log starts disarmed and without a failsafe, so there are no entries for these states.
    let want = [
        (0, 6, "mode", "Hold (4)"),
        (0, 6, "event", "logging: opening log file 2024-3-18/14_49_10.ulg"),
        (14, 6, "mode", "Takeoff (17)"),
        (14, 6, "arming", "armed"),
        (14, 6, "event", "Armed by internal command"),
        (14, 6, "event", "Using default takeoff altitude: 2.50 m"),
        (16, 6, "event", "Takeoff detected"),
        (21, 6, "mode", "Hold (4)"),
        (22, 6, "mode", "Return (5)"),
        (22, 6, "event", "RTL: start return at 491 m (3 m above destination)"),
        (22, 6, "event", "RTL: land at destination"),
        (28, 6, "event", "Landing detected"),
        (30, 6, "mode", "Hold (4)"),
        (30, 6, "arming", "disarmed"),
        (30, 6, "event", "Disarmed by landing"),
    ];
    let want: Vec<_> =
        want.into_iter().map(|(time, level, kind, text)| (time, level, kind, text.to_owned())).collect();
    assert_eq!(lines, want);
    assert!(found.is_sorted_by_key(|entry| (entry.time.nanos, entry.offset)));
    assert_eq!(timeline(&reader, events(&reader).list).len(), 38 + status_changes(&reader).len());

    let log = LOGS.real_log("px4-ulog-rs__corrupt_unregistered_msg_id").unwrap();
    let changes = status_changes(&open(&log.bytes));
    let failsafes = changes.iter().map(|change| &change.value);
    let failsafes = failsafes.filter(|entry| entry.kind_name() == "failsafe");
    let failsafes: Vec<_> = failsafes.map(|entry| (entry.level(), entry.text().into_owned())).collect();
    assert_eq!(failsafes, [(4, "failsafe".to_owned()), (6, "failsafe over".to_owned())]);
}

/// Returns the compressed event definitions in a real log.
fn packed() -> Option<Vec<u8>> {
    let log = LOGS.real_log("sample_px4_events")?;
    let reader = open(&log.bytes);
    let mut parts = Vec::new();
    for (_, message) in reader.messages() {
        if let ulog_format::wire::Message::MultiInfo(part) = message
            && part.info.key.ends_with(b" metadata_events")
        {
            parts.extend(part.info.value);
        }
    }
    Some(parts)
}

#[test]
fn broken_definitions_are_an_error_and_never_a_panic() {
    let Some(sound) = packed() else { return };
    assert!(EventDefinitions::from_xz(&sound).unwrap().get(0x0100_0000).is_none());
    for len in (0..sound.len()).step_by(97) {
        assert!(EventDefinitions::from_xz(&sound[..len]).is_err(), "{len} bytes");
    }
    // The checksums of xz cover all bytes, so every flipped bit is detected.
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    for _ in 0..400 {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        let mut flipped = sound.clone();
        let at = usize::try_from(seed % sound.len() as u64).unwrap();
        flipped[at] ^= 1 << (seed >> 61);
        assert!(EventDefinitions::from_xz(&flipped).is_err(), "byte {at}");
    }
}

#[test]
fn definitions_cannot_take_more_than_their_limit() {
    let mut packed = XzWriter::new(Vec::new(), XzOptions::with_preset(1)).unwrap();
    packed.write_all(&vec![b' '; 17 << 20]).unwrap();
    let bomb = packed.finish().unwrap();
    assert!(bomb.len() < 10_000);
    assert!(matches!(EventDefinitions::from_xz(&bomb), Err(MetadataError::TooLarge)));
}

#[test]
fn arguments_are_decoded_by_their_types() {
    let json = r#"{"version": 1, "components": {"1": {"namespace": "px4",
        "enums": {
            "reason_t": {"type": "uint8_t", "entries": {"1": {"name": "a", "description": "the stick"}}},
            "sides_t": {"type": "uint8_t", "is_bitfield": true, "separator": "/",
                "entries": {"1": {"name": "l", "description": "left"}, "4": {"name": "d", "description": "down"}}}},
        "event_groups": {"default": {"events": {
            "7": {"name": "armed", "message": "By {1}, {2}, {3:.1m/s} {4} {5}",
                "arguments": [{"type": "px4::reason_t"}, {"type": "sides_t"}, {"type": "float"}, {"type": "int16_t"}]},
            "8": {"name": "odd", "message": "{1} {2}", "arguments": [{"type": "reason_t"}, {"type": "no_such_t"}]}
        }}}}}}"#;
    let definitions = EventDefinitions::from_json(json.as_bytes()).unwrap();
    let armed = definitions.get(0x0100_0007).unwrap();
    let mut bytes = vec![1, 0b101];
    bytes.extend(2.25_f32.to_le_bytes());
    bytes.extend((-9_i16).to_le_bytes());
    let text = armed.text(&bytes);
    assert_eq!(text.message, "By the stick, left/down, 2.2 m/s -9 {5}");
    assert_eq!((text.name.as_str(), text.group.as_str()), ("px4::armed", "default"));
    assert_eq!(armed.text(&[9, 2]).message, "By (unknown: 9), (unknown: 2), {3:.1m/s} {4} {5}");
    assert_eq!(definitions.get(0x0100_0008).unwrap().text(&[1, 1]).message, "the stick {2}");
    assert!(definitions.get(7).is_none());
    assert!(matches!(EventDefinitions::from_json(b"{\"version\":3}"), Err(MetadataError::Version(3))));
    let deep = format!("{{\"version\":1,\"x\":{}", "[".repeat(100_000));
    assert!(matches!(EventDefinitions::from_json(deep.as_bytes()), Err(MetadataError::Json(_))));
}

#[test]
fn a_hostile_definition_cannot_make_a_message_grow() {
    let description = "x".repeat(100_000);
    let message = "{1}".repeat(100_000);
    let json = format!(
        r#"{{"version": 1, "components": {{"0": {{"namespace": "n",
        "enums": {{"e": {{"type": "uint64_t", "is_bitfield": true, "entries": {{"1": {{"description": "{description}"}}}}}}}},
        "event_groups": {{"default": {{"events": {{"1": {{"name": "n", "message": "{message}", "arguments": [{{"type": "e"}}]}}}}}}}}}}}}}}"#
    );
    let definitions = EventDefinitions::from_json(json.as_bytes()).unwrap();
    let text = definitions.get(1).unwrap().text(&[255; 25]);
    assert!(text.message.len() <= 4096 + 3, "{}", text.message.len());
}

#[test]
fn events_without_definitions_have_their_id() {
    let Some(log) = LOGS.real_log("sample_px4_events") else { return };
    // If the key of the event definitions is renamed, the log has no definitions.
    let mut bytes = log.bytes.to_vec();
    let key = b"metadata_events";
    let places: Vec<_> =
        (0..bytes.len() - key.len()).filter(|at| &bytes[*at..*at + key.len()] == key).collect();
    for at in &places {
        bytes[*at] = b'x';
    }
    assert!(places.len() >= 14);
    let found = events(&open(&bytes.into()));
    assert!(!found.defined && found.problem.is_none());
    assert_eq!(found.list.len(), 38);
    assert!(found.list[0].message().starts_with("event 1:"), "{}", found.list[0].message());

    // If one part of the event definitions is lost, none of the definitions can be read.
    let mut bytes = log.bytes.to_vec();
    bytes[places[3]] = b'x';
    let found = events(&open(&bytes.into()));
    assert!(!found.defined && found.problem.is_some(), "{:?}", found.problem);
}
