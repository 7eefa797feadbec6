//! Injected damage loses no more than the messages that were hit; every byte has its account.

mod support;

use rovelog_core::{LogReader, ReadOptions, RecoverOptions, Recovery, Severity};
use rovelog_testing::Random;
use support::{LOGS, open, try_open};
use vel_format::{IndexState, VelReader};

fn recovered(log: &VelReader) -> (Recovery, Vec<u8>) {
    let mut out = Vec::new();
    let report = log.recover(&mut out, &RecoverOptions::default()).expect("memory takes any bytes");
    (report, out)
}

#[test]
fn recovered_logs_open_without_loss_and_stay_as_they_are() {
    for log in LOGS.corpus() {
        let Ok(reader) = VelReader::salvage(log.bytes.clone(), &ReadOptions::default()) else { continue };
        let (report, out) = recovered(&reader);
        assert_eq!(report.kept_bytes + report.lost_bytes(), log.bytes.len() as u64, "{}", log.name);
        assert_eq!(report.unchanged, out == log.bytes, "{}", log.name);
        let again = open(&out.clone().into());
        let lost = again.diagnostics().list().iter().filter(|d| d.rule.severity == Severity::DataLost);
        // What stands in sound framing is kept, readable or not.
        assert_eq!(lost.filter(|d| d.rule.name != "bad_payload").count(), 0, "{}", log.name);
        assert!(!matches!(again.index(), IndexState::Rebuilt(_)), "{}: {:?}", log.name, again.index());
        let of_damaged: Vec<_> = reader.messages().map(|message| message.data.to_vec()).collect();
        let kept: Vec<_> = again.messages().map(|message| message.data.to_vec()).collect();
        assert!(of_damaged.iter().all(|data| kept.contains(data)), "{}", log.name);
        let (second, twice) = recovered(&again);
        assert!(second.unchanged && twice == out, "{}", log.name);
    }
}

#[test]
fn messages_behind_an_end_mark_are_found() {
    let reader = open(&LOGS.case("end-mark+tail").bytes);
    assert_eq!(reader.messages().len(), 3);
    let (report, out) = recovered(&reader);
    assert_eq!(open(&out.into()).messages().len(), 5);
    assert!(report.lost.is_empty() && !report.unchanged);
}

#[test]
fn a_log_with_a_bad_first_byte_is_recovered_where_that_is_asked_for() {
    let log = LOGS.case("bad-magic");
    assert!(try_open(&log.bytes).is_none());
    let reader = VelReader::salvage(log.bytes, &ReadOptions::default()).unwrap();
    let (report, out) = recovered(&reader);
    assert_eq!(report.lost, std::slice::from_ref(&(0..4)));
    assert_eq!(open(&out.into()).messages().len(), 3);
}

/// Holes of several sizes all over a real log: lost are the messages that a hole touches, and no other.
#[test]
fn a_hole_costs_the_messages_it_touches() {
    let Some(log) = LOGS.real_log("all6_excl_31") else { return };
    let whole = open(&log.bytes);
    let places: Vec<_> = whole.messages().map(|m| m.offset..m.offset + m.wire_len()).collect();
    let mut random = Random(7);
    for round in 0..300 {
        let len = [1, 16, 512, 4096][round % 4];
        let first = usize::try_from(places[0].start).unwrap();
        let start = first + random.below(log.bytes.len() - len - first);
        let mut bytes = log.bytes.to_vec();
        // Zeros are what a crash leaves.
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
