//! Tests of several recordings in one file (rules D41, D42 and M10 of docs/formats/ulog.md).

mod support;

use rovelog_core::{LogReader as _, LogStream as _, ReadOptions, Record, RecoverOptions, Select};
use support::open;
use ulog_format::{FormatBuilder, UlogReader, UlogStream, UlogWriter};

/// Time of the boot: 2023-11-14 22:13:20 UTC in microseconds.
const BOOT: u64 = 1_700_000_000_000_000;

const SECOND: u64 = 1_000_000;

/// Returns a log with 30 GPS fixes and 30 rows of `t` in three seconds. The vehicle booted at the
/// UTC time `boot`, and the log starts `start` after the boot. Both are in microseconds.
fn log(start: u64, boot: u64) -> Vec<u8> {
    let mut log = UlogWriter::new(Vec::new(), start).unwrap();
    let gps = FormatBuilder::new("sensor_gps")
        .field::<u64>("timestamp")
        .field::<u64>("time_utc_usec")
        .field::<u8>("fix_type");
    log.define(&gps).unwrap();
    log.define(&FormatBuilder::new("t").field::<u64>("timestamp")).unwrap();
    let (gps, t) = (log.subscribe("sensor_gps", 0).unwrap(), log.subscribe("t", 0).unwrap());
    for i in 0..30 {
        let us = start + i * SECOND / 10;
        let row = [&us.to_le_bytes()[..], &(boot + us).to_le_bytes(), &[3]].concat();
        log.write_row_bytes(gps, &row).unwrap();
        log.write_row_bytes(t, &us.to_le_bytes()).unwrap();
        log.write_raw(b'L', &[b"6", &us.to_le_bytes()[..], b"text"].concat()).unwrap();
    }
    log.finish().unwrap()
}

/// Returns the times of a topic's rows as Unix times in microseconds.
fn utc(log: &UlogReader, topic: &str) -> Vec<i64> {
    let offset = log.info().utc.as_ref().expect("a UTC offset").nanos;
    let unix = |record: Record<'_>| (record.time.expect("a time").nanos + offset) / 1000;
    log.records(&Select::topic(topic)).map(|record| unix(record.unwrap())).collect()
}

fn codes(log: &UlogReader) -> Vec<&'static str> {
    log.diagnostics().list().iter().map(|note| note.rule.name).collect()
}

/// Returns two concatenated logs, and the offset of the second log. The second log was recorded a
/// day later, but a shorter time after its boot. So its times are earlier on its own clock.
fn joined() -> (Vec<u8>, u64) {
    let first = log(100 * SECOND, BOOT);
    let at = first.len() as u64;
    (([first, log(50 * SECOND, BOOT + 86_400 * SECOND)]).concat(), at)
}

#[test]
fn a_second_log_has_its_own_utc() {
    let (bytes, at) = joined();
    let log = open(&bytes.into());
    assert_eq!(codes(&log), ["second_header"]);
    let note = &log.diagnostics().list()[0];
    assert_eq!((note.range.start, log.info().records), (at, 120));
    assert_eq!(
        note.message,
        format!(
            "another log with its own header and clock starts at byte {at}; it has 60 records from 50.0 s to \
             52.9 s"
        )
    );
    let first = i64::try_from(BOOT + 100 * SECOND).unwrap();
    let second = i64::try_from(BOOT + 86_450 * SECOND).unwrap();
    assert_eq!((utc(&log, "t/0")[0], utc(&log, "t/0")[29]), (first, first + 2_900_000));
    assert_eq!((utc(&log, "t/0#2")[0], utc(&log, "t/0#2")[29]), (second, second + 2_900_000));
    let texts: Vec<_> = log.texts().unwrap().map(|text| text.time.unwrap().nanos / 1000).collect();
    assert_eq!((texts[0], texts[30]), (100_000_000, 86_450_000_000));
    // Rows are in time order in every way of reading the log.
    let times: Vec<_> =
        log.records(&Select::all()).map(|record| record.unwrap().time.unwrap().nanos).collect();
    assert!(times.is_sorted() && times.len() == 120);
    let mut in_file =
        log.records_in_file_order().map(|record| record.time.unwrap().nanos).collect::<Vec<_>>();
    in_file.sort_unstable();
    assert_eq!(in_file, times);
}

#[cfg(feature = "arrow")]
#[test]
fn columns_have_the_same_times() {
    use rovelog_testing::timed_rows;

    let (bytes, _) = joined();
    let times = |log: &UlogReader| -> Vec<i64> {
        let batches = log.batches(&Select::topics(["t/0", "t/0#2"].map(String::from)));
        batches.flat_map(|batch| timed_rows(&batch.unwrap().1)).map(|(time, _)| time.unwrap()).collect()
    };
    let (fresh, indexed) = (open(&bytes.clone().into()), open(&bytes.into()));
    assert_eq!(indexed.info().records, 120);
    let (fresh, indexed) = (times(&fresh), times(&indexed));
    assert_eq!((fresh[0], fresh[30], fresh.len()), (100_000_000_000, 86_450_000_000_000, 60));
    assert_eq!(fresh, indexed);
}

#[test]
fn a_file_has_utc_only_if_all_parts_have_it() {
    // The second log was recorded before the first log, so its times on the clock of the first log
    // would be negative.
    let bytes = [log(100 * SECOND, BOOT), log(50 * SECOND, BOOT - 86_400 * SECOND)].concat();
    let log = open(&bytes.into());
    assert_eq!(log.info().utc, None);
    let first = |topic| log.records(&Select::topic(topic)).next().unwrap().unwrap().time.unwrap().nanos;
    assert_eq!((first("t/0"), first("t/0#2")), (100_000_000_000, 50_000_000_000));
    let sessions = log.sessions();
    assert_eq!(sessions.len(), 2);
    assert_ne!(sessions[0].utc, sessions[1].utc);
}

#[test]
fn a_pipe_returns_no_times_for_a_second_log() {
    let (bytes, _) = joined();
    let mut stream = UlogStream::new(&bytes[..], &ReadOptions::default()).unwrap();
    let mut times = Vec::new();
    while let Some(record) = stream.next_record().unwrap() {
        times.push(record.time);
    }
    assert!(times[..60].iter().all(Option::is_some) && times[60..].iter().all(Option::is_none));
    assert_eq!(stream.info().utc, None);
}

/// Returns a log whose clock restarts after three seconds, and the offset at which the clock
/// restarts.
fn restarted() -> (Vec<u8>, u64) {
    let first = log(100 * SECOND, BOOT);
    let second = log(2 * SECOND, BOOT + 3600 * SECOND);
    let reader = open(&second.clone().into());
    let (rows, _) = reader.messages().find(|(_, message)| message.msg_type() == b'D').unwrap();
    let at = first.len() as u64;
    ([&first[..], &second[usize::try_from(rows).unwrap()..]].concat(), at)
}

#[test]
fn a_restarted_clock_is_reported_and_has_no_utc() {
    let (bytes, at) = restarted();
    let log = open(&bytes.into());
    let note = log.diagnostics().list().iter().find(|note| note.rule.name == "clock_restarts").unwrap();
    let text =
        format!("the clock restarts at byte {at}; the part after it has 60 records from 2.0 s to 4.9 s");
    assert_eq!((note.range.start, &note.message), (at, &text));
    assert_eq!(log.info().utc, None);
    let sessions = log.sessions();
    let utc: Vec<_> = sessions.iter().map(|session| session.utc.as_ref().unwrap().nanos / 1000).collect();
    assert_eq!(utc, [BOOT, BOOT + 3600 * SECOND].map(|boot| i64::try_from(boot).unwrap()));
    let detail = log.info().details.iter().find(|detail| detail.key == "sessions").unwrap();
    assert!(detail.text.as_ref().unwrap().contains("2.0 s to 4.9 s"), "{detail:?}");
}

#[test]
fn a_slice_without_records_of_a_session_reports_it() {
    let (bytes, at) = restarted();
    let log = open(&bytes.into());
    let mut out = Vec::new();
    let report = log.slice(&Select::all().between(Some(100_000_000_000), None), &mut out).unwrap();
    assert_eq!(report.records, 60);
    let detail = report.details.iter().find(|detail| detail.key == "sessions_left_out").unwrap();
    let text = detail.text.as_ref().unwrap();
    assert!(text.contains("all 60 records") && text.contains(&format!("byte {at} ")), "{text}");
    // If a slice contains both logs, it contains the second header, because the clock changes
    // there.
    let (bytes, _) = joined();
    let log = open(&bytes.into());
    let mut out = Vec::new();
    let select = Select::all().between(Some(101_000_000_000), None);
    assert_eq!(log.slice(&select, &mut out).unwrap().records, 100);
    let cut = open(&out.into());
    assert_eq!((codes(&cut), cut.sessions().len()), (vec!["second_header"], 2));
    assert_eq!(utc(&cut, "t/0#2"), utc(&log, "t/0#2"));
}

/// A log in which the parameter A changes from `initial` to `changed` half a second after the start.
fn with_parameter(start: u64, initial: i32, changed: i32) -> Vec<u8> {
    let mut log = UlogWriter::new(Vec::new(), start).unwrap();
    log.parameter("A", initial).unwrap();
    log.define(&FormatBuilder::new("t").field::<u64>("timestamp")).unwrap();
    let t = log.subscribe("t", 0).unwrap();
    for i in 0..30 {
        if i == 5 {
            log.parameter("A", changed).unwrap();
        }
        log.write_row_bytes(t, &(start + i * SECOND / 10).to_le_bytes()).unwrap();
    }
    log.finish().unwrap()
}

/// The parameters of a second log are not those of the first.
#[test]
fn a_slice_has_the_parameters_of_each_log() {
    let bytes = [with_parameter(50 * SECOND, 1, 2), with_parameter(50 * SECOND, 5, 7)].concat();
    let mut out = Vec::new();
    let select = Select::all().between(Some(51_000_000_000), None);
    assert_eq!(open(&bytes.into()).slice(&select, &mut out).unwrap().records, 40);
    let cut = open(&out.into());
    let values = cut.sessions().into_iter().map(|session| {
        let mut part = Vec::new();
        cut.write_session(&session, &mut part).unwrap();
        open(&part.into()).parameters().initial["A"].to_json()
    });
    assert_eq!(values.collect::<Vec<_>>(), ["2", "7"]);
}

/// A format that is defined after a subscription is moved before it (rule M9). Formats of other
/// logs in the file are not moved.
#[test]
fn a_slice_moves_only_formats_of_the_same_log() {
    let log = |format: &[u8], row_len: usize, is_late: bool| {
        let mut messages = vec![(b'F', format.to_vec()), (b'A', b"\0\0\0t".to_vec())];
        messages.rotate_left(usize::from(is_late));
        messages.extend((1..5).map(|time| (b'D', [&[0, 0, time][..], &vec![0; row_len - 1]].concat())));
        support::log_of(&messages)
    };
    let (first, second) = (
        log(b"t:uint64_t timestamp;uint8_t[9] x;", 17, false),
        log(b"t:uint64_t timestamp;uint32_t x;", 12, true),
    );
    let mut out = Vec::new();
    let select = Select::all().between(Some(0), None);
    let log = open(&[first, second].concat().into());
    let report = log.slice(&select, &mut out).unwrap();
    let slice = open(&out.into());
    assert_eq!((report.records, slice.info().records, slice.info().lost.losses), (8, 8, 0));
}

/// Messages after an unknown one confirm it. If they belong to the next recording, a synchronization
/// message does.
#[test]
fn a_recording_that_ends_with_an_unknown_message_is_valid() {
    let unknown = [&3_u16.to_le_bytes()[..], b"z", b"abc"].concat();
    let bytes = [log(100 * SECOND, BOOT), unknown, log(50 * SECOND, BOOT + 86_400 * SECOND)].concat();
    let log = open(&bytes.into());
    assert_eq!((log.info().lost.bytes, log.sessions().len()), (0, 2), "{:?}", codes(&log));
    for session in log.sessions() {
        let mut out = Vec::new();
        log.write_session(&session, &mut out).unwrap();
        let part = open(&out.into());
        assert_eq!(part.info().lost.bytes, 0, "{:?}", codes(&part));
    }
}

/// Each recording in a file can be written as a log with its own UTC. If a file has only one
/// recording, the list of recordings is empty.
#[test]
fn sessions_become_logs() {
    for (bytes, boots) in
        [(joined().0, [BOOT, BOOT + 86_400 * SECOND]), (restarted().0, [BOOT, BOOT + 3600 * SECOND])]
    {
        let log = open(&bytes.into());
        let sessions = log.sessions();
        assert_eq!(sessions.iter().map(|session| session.records).sum::<u64>(), log.info().records);
        for (session, boot) in sessions.iter().zip(boots) {
            let mut out = Vec::new();
            let report = log.write_session(session, &mut out).unwrap();
            let part = open(&out.into());
            assert_eq!((report.records, part.info().records), (60, 60));
            assert_eq!(codes(&part), [""; 0]);
            assert_eq!(part.info().utc.as_ref().unwrap().nanos, i64::try_from(boot * 1000).unwrap());
            assert_eq!(part.sessions().len(), 0);
            assert_eq!(part.texts().unwrap().count(), 30);
            assert_eq!(part.topics().len(), 2);
        }
    }
    let one = log(SECOND, BOOT);
    assert!(open(&one.into()).sessions().is_empty());
}

#[test]
fn recovery_keeps_a_second_header() {
    let (bytes, at) = joined();
    let recover = |bytes: &[u8]| {
        let mut out = Vec::new();
        let recovery = open(&bytes.to_vec().into()).recover(&mut out, &RecoverOptions::default()).unwrap();
        (recovery, out)
    };
    let (recovery, out) = recover(&bytes);
    assert!(recovery.unchanged && out == bytes);
    let mut damaged = bytes.clone();
    damaged.splice(
        usize::try_from(at).unwrap() - 5..,
        [&[0xFF; 40][..], &bytes[usize::try_from(at).unwrap()..]].concat(),
    );
    let (recovery, out) = recover(&damaged);
    let sizes = recovery.kept_bytes + recovery.lost_bytes();
    assert_eq!((sizes, recovery.records), (damaged.len() as u64, 120));
    assert_eq!(open(&out.into()).sessions().len(), 2);
}
