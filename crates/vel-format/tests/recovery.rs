//! If a log is damaged, only the overwritten messages may be lost, and every byte must be accounted
//! for.

mod support;

use rovelog_core::{Bytes, LogReader, ReadOptions, RecoverOptions, Recovery, State, Value};
use rovelog_testing::{Random, bit_flips, detail};
use support::{LOGS, open, try_open};
use vel_format::{IndexState, NewMessage, SizeRule, VelReader, WriteOptions, write_log};

fn recovered(log: &VelReader) -> (Recovery, Vec<u8>) {
    let mut out = Vec::new();
    let report = log.recover(&mut out, &RecoverOptions::default()).expect("memory takes any bytes");
    (report, out)
}

/// Checks that reading and recovery report the same lost bytes, and that the recovered log has no
/// loss. Returns false if the log cannot be opened.
fn check_losses(bytes: &Bytes, what: &str) -> bool {
    let Ok(reader) = VelReader::salvage(bytes.clone(), &ReadOptions::default()) else { return false };
    let (report, out) = recovered(&reader);
    let lost = &reader.info().lost;
    assert_eq!(report.kept_bytes + report.lost_bytes(), bytes.len() as u64, "{what}");
    assert_eq!((report.lost_bytes(), report.missing_records), (lost.bytes, 0), "{what}: {lost:?}");
    assert_eq!(report.lost, lost.ranges, "{what}");
    assert_eq!(report.unchanged, out == *bytes, "{what}");
    if !report.unchanged {
        // All kept bytes are written to the new log, except the old header and index, headers of
        // appended logs, and end marks between messages.
        let number = |key| match detail(&report.details, key) {
            Some(Value::UInt(number, _)) => *number,
            other => panic!("{what} {key}: {other:?}"),
        };
        let written = report.kept_bytes - number("replaced_bytes") + number("index_bytes");
        assert_eq!(out.len() as u64, written, "{what}");
    }
    let again = open(&out.clone().into());
    assert!(again.info().lost.is_empty(), "{what}: {:?}", again.diagnostics().list());
    assert_eq!(again.info().state, State::Complete, "{what}");
    assert_eq!(again.info().records, report.records, "{what}");
    assert_eq!(report.records, reader.info().records + lost.left_out_records, "{what}");
    let contents = |log: &VelReader| -> Vec<Vec<u8>> {
        log.records_in_file_order().map(|record| record.payload.to_vec()).collect()
    };
    let kept = contents(&again);
    assert!(kept.starts_with(&contents(&reader)), "{what}: a record is not in the recovered log");
    assert!(!matches!(again.index(), IndexState::Rebuilt(_)), "{what}: {:?}", again.index());
    let (second, twice) = recovered(&again);
    assert!(second.unchanged && twice == out, "{what}: recovered again, it is another log");
    true
}

#[test]
fn reading_and_recovery_report_the_same_loss() {
    for log in LOGS.all() {
        check_losses(&log.bytes, &log.name);
    }
}

#[test]
fn reports_of_loss_agree_for_every_damaged_log() {
    let mut held = 0;
    for log in LOGS.corpus() {
        let len = log.bytes.len();
        for at in (0..len).step_by(1 + len / 150) {
            let cut = log.bytes.slice(..at);
            held += usize::from(check_losses(&cut, &format!("{} cut at {at}", log.name)));
            // Bytes that look like an end mark are inserted.
            let mut marked = log.bytes.to_vec();
            marked.splice(at..at, [0xFF; 4]);
            let what = format!("{} with an end mark at {at}", log.name);
            held += usize::from(check_losses(&marked.into(), &what));
        }
        for (at, mask, bytes) in bit_flips(&log.bytes, (0..len).step_by(1 + len / 150)) {
            held += usize::from(check_losses(&bytes, &format!("{} byte {at} ^ {mask:#x}", log.name)));
        }
    }
    assert!(held > 30_000, "only {held} damaged logs open");
}

/// A message whose data is too short for its content is lost both in reading and in recovery. Both
/// report its bytes.
#[test]
fn short_messages_are_lost_in_reading_and_recovery() {
    for name in ["bad_image_size", "bad_string_len", "bad_velodyne_count"] {
        let Some(log) = LOGS.real_log(name) else { return };
        let reader = open(&log.bytes);
        let (report, out) = recovered(&reader);
        assert!(report.lost_bytes() > 0 && !report.is_complete(), "{name}");
        assert_eq!(report.lost, reader.info().lost.ranges, "{name}");
        assert!(open(&out.into()).info().lost.is_empty(), "{name}");
    }
}

#[test]
fn messages_after_an_end_mark_are_found() {
    let reader = open(&LOGS.case("end-mark+tail").bytes);
    assert_eq!((reader.messages().len(), reader.info().lost.left_out_records), (3, 2));
    let (report, out) = recovered(&reader);
    assert_eq!(open(&out.into()).messages().len(), 5);
    assert!(report.lost.is_empty() && !report.unchanged);
}

#[test]
fn bytes_after_an_end_mark_are_kept_if_messages_are_lost() {
    let messages: Vec<_> =
        (0..4).map(|i| NewMessage::raw(0x0001_4043, 100, f64::from(i), vec![0; 28])).collect();
    let mut log = Vec::new();
    write_log(&messages, &WriteOptions::default().with_terminator(), &mut log).expect("memory takes it");
    log.extend(b"notes of the driver");
    let second = open(&log.clone().into()).messages().nth(1).expect("a message").offset;
    let at = usize::try_from(second).expect("small");
    log[at..at + 40].fill(0);
    let (report, out) = recovered(&open(&log.into()));
    assert_eq!((report.records, report.unchanged), (3, false));
    assert!(out.ends_with(b"\xFF\xFF\xFF\xFFnotes of the driver"));
}

/// Only the first message shows that sizes exclude the header, and the data of this message is too
/// short. If it is left out, a reader infers a different size rule, and finds messages in the bytes
/// after the end mark.
#[test]
fn bytes_after_an_end_mark_do_not_become_messages() {
    let cut = NewMessage::raw(0x0003_0910, 101, 0.0, vec![0x7F; 39]);
    let kept = NewMessage::raw(0x0003_0910, 7, 0.0, vec![0xFF; 39]);
    let options = WriteOptions::default().with_size_rule(SizeRule::DataOnly).with_terminator();
    let mut log = Vec::new();
    write_log(&[cut, kept.clone()], &options, &mut log).expect("memory takes it");
    log.extend([0xFF; 12]);
    let mut exclusive = Vec::new();
    write_log(&[kept.clone(), kept], &WriteOptions::default(), &mut exclusive).expect("memory takes it");
    log.extend_from_slice(&exclusive[12 + 8..]);
    let reader = open(&log.clone().into());
    assert_eq!((reader.size_rule(), reader.info().records), (SizeRule::DataOnly, 1));
    let (report, _) = recovered(&reader);
    let [left_out] = &report.left_out[..] else { panic!("{:?}", report.left_out) };
    let start = log.len() - (exclusive.len() - 20) - 12;
    let told = format!("{} bytes at byte {start}, after the end mark", log.len() - start);
    assert!(left_out.starts_with(&told), "{left_out} is not {told}");
    assert!(check_losses(&log.into(), "bytes after the end mark"));
}

#[test]
fn a_log_with_a_bad_first_byte_is_recovered_on_request() {
    let log = LOGS.case("bad-magic");
    assert!(try_open(&log.bytes).is_none());
    let reader = VelReader::salvage(log.bytes, &ReadOptions::default()).unwrap();
    let (report, out) = recovered(&reader);
    assert!(report.lost.is_empty() && !report.unchanged);
    assert_eq!(open(&out.into()).messages().len(), 3);
}

/// Bytes of several lengths are zeroed everywhere in a real log. Only messages that overlap the
/// zeroed bytes may be lost.
#[test]
fn a_hole_loses_only_the_messages_it_overlaps() {
    let Some(log) = LOGS.real_log("all6_excl_31") else { return };
    let whole = open(&log.bytes);
    let places: Vec<_> = whole.messages().map(|m| m.offset..m.offset + m.wire_len()).collect();
    let mut random = Random(7);
    for round in 0..300 {
        let len = [1, 16, 512, 4096][round % 4];
        let first = usize::try_from(places[0].start).unwrap();
        let start = first + random.below(log.bytes.len() - len - first);
        let mut bytes = log.bytes.to_vec();
        // The bytes are zeroed, as after a crash of the computer.
        bytes[start..start + len].fill(0);
        let hole = start as u64..(start + len) as u64;
        let reader = open(&bytes.into());
        let got: Vec<_> = reader.messages().map(|m| m.offset..m.offset + m.wire_len()).collect();
        for place in &places {
            let touched = place.start < hole.end && hole.start < place.end;
            assert!(touched || got.contains(place), "{len} zeros at {start}: {place:?} is lost");
        }
        let (report, _) = recovered(&reader);
        assert_eq!(report.kept_bytes + report.lost_bytes(), log.bytes.len() as u64);
    }
}
