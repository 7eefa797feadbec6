//! Tests of merging. The parts of a log become the original log, and topics of different vehicles
//! are not mixed.

mod support;

use rovelog_core::{Align, Error, Format as _, LogReader, Merged, Select, Value};
use support::built::{RawMessage, format, keyed, subscription};
use support::{LOGS, log_of, open, try_open};
use ulog_format::wire::Message;
use ulog_format::{FormatBuilder, Ulog, UlogError, UlogReader, UlogWriter};

fn merged(logs: &[&UlogReader], align: Align) -> Result<(UlogReader, Merged), Error> {
    let mut out = Vec::new();
    let report = Ulog::merge(logs, align, &mut out)?;
    assert_eq!(report.bytes, out.len() as u64);
    let log = open(&out.into());
    assert_eq!(log.diagnostics().ledger().losses, 0, "a merged log is sound");
    assert_eq!(log.info().records, logs.iter().map(|log| log.info().records).sum::<u64>());
    assert_eq!((log.info().records, log.topics().len()), (report.records, report.topics));
    Ok((log, report))
}

fn part(log: &UlogReader, select: &Select) -> UlogReader {
    let mut out = Vec::new();
    log.slice(select, &mut out).expect("a part");
    open(&out.into())
}

/// Returns the topic, time, number and payload of each record, without the record's offset.
fn records(log: &UlogReader) -> Vec<(&str, Option<i64>, u64, Vec<u8>)> {
    let records = log.records_in_file_order();
    let mut records: Vec<_> = records
        .map(|r| (r.topic.name.as_str(), r.time.map(|time| time.nanos), r.seq, r.payload.to_vec()))
        .collect();
    records.sort_unstable();
    records
}

fn texts(log: &UlogReader) -> Vec<(Option<i64>, String)> {
    let text = |text: rovelog_core::Text| (text.time.map(|time| time.nanos), text.text);
    let mut texts: Vec<_> = log.texts().expect("ULog has texts").map(text).collect();
    texts.sort();
    texts
}

fn is_whole(what: &str, got: &UlogReader, want: &UlogReader) {
    assert!(records(got) == records(want), "{what}: records");
    assert_eq!(texts(got), texts(want), "{what}");
    assert_eq!(got.dropouts().len(), want.dropouts().len(), "{what}");
    assert_eq!((got.infos(), got.multi_infos()), (want.infos(), want.multi_infos()), "{what}");
    assert_eq!(got.parameters().initial, want.parameters().initial, "{what}");
    let changes = |log: &UlogReader| {
        let changes = log.parameters().changed.into_iter();
        changes.map(|change| format!("{} {:?}", change.name, change.value)).collect::<Vec<_>>()
    };
    assert_eq!(changes(got), changes(want), "{what}");
}

#[test]
fn parts_of_real_logs_become_the_log_again() {
    let mut seen = 0;
    for file in LOGS.real() {
        let (name, log) = (&file.name, open(&file.bytes));
        if log.diagnostics().ledger().losses > 0 || log.info().size > 3_000_000 {
            continue;
        }
        let (Some(start), Some(end)) = (log.info().start, log.info().end) else { continue };
        let third = (end.nanos - start.nanos) / 3;
        let at = |n: i64| Some(start.nanos + n * third);
        let by_time = [(None, at(1)), (at(1), at(2)), (at(2), None)];
        let parts = by_time.map(|(from, to)| part(&log, &Select::all().between(from, to)));
        let (whole, report) = merged(&parts.each_ref(), Align::AsIs).unwrap();
        assert_eq!(report.left_out, Vec::<String>::new(), "{name}");
        is_whole(name, &whole, &log);

        let names: Vec<_> = log.topics().iter().map(|topic| topic.name.clone()).collect();
        let (some, others) = names.split_at(names.len() / 2);
        let mut parts = [some, others].map(|names| part(&log, &Select::topics(names.iter().cloned())));
        // Both parts contain all texts and dropouts, because these messages do not belong to a
        // topic.
        parts[1] = part(&parts[1], &Select::all());
        let (whole, _) = merged(&parts.each_ref(), Align::AsIs).unwrap();
        assert!(records(&whole) == records(&log), "{name}: records by topic");
        seen += 1;
    }
    assert!(seen >= 8 || LOGS.folder().is_none(), "{seen} logs");
}

#[test]
fn every_sound_corpus_log_merged_alone_keeps_its_records() {
    let mut seen = 0;
    for file in LOGS.corpus() {
        let Some(log) = try_open(&file.bytes) else { continue };
        let name = &file.name;
        if log.diagnostics().ledger().losses > 0 {
            continue;
        }
        let mut out = Vec::new();
        match Ulog::merge(&[&log], Align::Shared, &mut out) {
            Ok(report) => {
                let again = open(&out.into());
                assert!(records(&again) == records(&log), "{name}");
                assert_eq!(report.records, log.info().records, "{name}");
                seen += 1;
            }
            Err(error) => {
                let why = match error.get_ref().downcast_ref() {
                    Some(UlogError::FormatsDiffer { .. }) => "redefined",
                    Some(UlogError::SeveralSessions { .. }) if log.sessions().len() > 1 => "",
                    _ => panic!("{name}: {error}"),
                };
                assert!(name.contains(why), "{name}: {error}");
            }
        }
    }
    assert!(seen >= 60, "{seen} logs");
}

/// Returns a log with rows of topic `t` at `times` in microseconds, the text `who`, and the
/// parameter `P` with the given value.
fn small(who: &str, times: &[u64], value: i32, format: &FormatBuilder) -> UlogReader {
    let mut log = UlogWriter::new(Vec::new(), times[0]).unwrap();
    log.define(format).unwrap();
    log.info("sys_uuid", who).unwrap();
    log.parameter("P", value).unwrap();
    let t = log.subscribe("t", 0).unwrap();
    let mut row = log.row_buffer(t).unwrap();
    for time in times {
        row.set(row.place("timestamp").unwrap(), *time).unwrap();
        log.write(&row).unwrap();
    }
    log.text(6, times[0], who).unwrap();
    open(&log.finish().unwrap().into())
}

fn plain() -> FormatBuilder {
    FormatBuilder::new("t").field::<u64>("timestamp").field::<f32>("x")
}

#[test]
fn rows_interleave_only_if_they_come_from_one_vehicle() {
    let a = small("one", &[10, 20, 30], 1, &plain());
    let b = small("one", &[15, 25], 2, &plain());
    let c = small("two", &[16, 26], 1, &plain());
    let (log, report) = merged(&[&a, &b], Align::AsIs).unwrap();
    let times: Vec<_> = log.records_in_file_order().map(|r| r.time.unwrap().nanos / 1000).collect();
    assert_eq!(times, [10, 15, 20, 25, 30]);
    assert_eq!(report.left_out, Vec::<String>::new());
    // The initial parameter of the second log becomes a change before its first row.
    let changed: Vec<_> =
        log.parameters().changed.iter().map(|c| (c.name.clone(), c.time.unwrap().nanos)).collect();
    assert_eq!(changed, [("P".to_owned(), 10_000)]);

    let (log, report) = merged(&[&a, &c], Align::AsIs).unwrap();
    let topics: Vec<_> = log.topics().iter().map(|topic| (topic.name.as_str(), topic.count)).collect();
    assert_eq!(topics, [("t/0", 3), ("t/1", 2)]);
    assert_eq!(
        report.left_out,
        ["information char[3] sys_uuid of log 2, because another log has a different value"]
    );
    assert!(format!("{:?}", report.details).contains("t/1"), "{:?}", report.details);
    // If the times of the logs do not overlap, rows of two vehicles share a topic.
    let d = small("two", &[100, 110], 1, &plain());
    let (log, _) = merged(&[&a, &d], Align::AsIs).unwrap();
    assert_eq!(log.topics().len(), 1);
}

/// The bytes inside an unknown message look like rows of a topic that the log defines later. In the
/// merged log, the definition precedes the unknown message, so a reader would find these rows.
#[test]
fn an_unknown_message_that_contains_rows_is_left_out_and_reported() {
    let mut log = UlogWriter::new(Vec::new(), 0).unwrap();
    log.define(&plain()).unwrap();
    log.define(&FormatBuilder::new("late").field::<u64>("timestamp")).unwrap();
    let t = log.subscribe("t", 0).unwrap();
    let mut row = [2, 0, b'T', b'V', 1, 2, 3].to_vec();
    for time in 1..=3_u8 {
        row.extend([10, 0, b'D', 1, 0, time, 0, 0, 0, 0, 0, 0, 0]);
    }
    for payload in [&*row, &row[..20], &row[..44], &row[..31], b"of a later edition"] {
        log.write_raw(b'V', payload).unwrap();
        for _ in 0..3 {
            log.write_row_bytes(t, &[1; 12]).unwrap();
        }
    }
    let late = log.subscribe("late", 0).unwrap();
    log.write_row_bytes(late, &9_u64.to_le_bytes()).unwrap();
    let log = open(&log.finish().unwrap().into());
    assert_eq!((log.info().records, log.diagnostics().ledger().losses), (16, 0));
    let (again, report) = merged(&[&log], Align::Shared).unwrap();
    let is_unknown = |message: &Message<'_>| matches!(message, Message::Unknown { .. });
    let unknown = log.messages().filter(|(_, message)| is_unknown(message)).take(3);
    let left_out = unknown.map(|(at, _)| {
        format!("the unknown message at byte {at} of log 1, because it contains other messages")
    });
    assert_eq!(report.left_out, left_out.collect::<Vec<_>>());
    assert_eq!(again.messages().filter(|(_, message)| is_unknown(message)).count(), 2);
}

#[test]
fn logs_that_cannot_be_merged_are_rejected_with_a_reason() {
    let a = small("one", &[10, 20], 1, &plain());
    let b = small("one", &[15, 25], 1, &plain().field::<u8>("y"));
    let why = |logs: &[&UlogReader], align| {
        Ulog::merge(logs, align, &mut Vec::new()).map(|_| ()).map_err(|e| e.to_string())
    };
    let no_utc = "log 1 contains no UTC time, so it cannot be aligned with the other logs";
    assert_eq!(why(&[&a, &b], Align::Shared), Err(no_utc.to_owned()));
    assert_eq!(why(&[&a, &b], Align::Utc), Err(no_utc.to_owned()));
    assert_eq!(
        why(&[&a, &b], Align::AsIs),
        Err("the logs cannot be merged, because they define format t differently".to_owned())
    );
    assert_eq!(why(&[&a], Align::Shared), Ok(()));
}

#[test]
fn real_logs_of_different_boots_are_aligned_by_utc() {
    let names = ["sample_log_small", "px4-ulog-rs__esc_status_log"];
    let [Some(a), Some(b)] = names.map(|name| LOGS.real_log(name)) else { return };
    let (a, b) = (open(&a.bytes), open(&b.bytes));
    let (Some(ua), Some(ub)) = (&a.info().utc, &b.info().utc) else { panic!("both tell UTC") };
    let moved = ua.nanos.abs_diff(ub.nanos) / 1000 * 1000;
    let refused = Ulog::merge(&[&a, &b], Align::Shared, &mut Vec::new()).map_err(|error| error.to_string());
    assert!(refused.is_err_and(|why| {
        why.starts_with("the logs cannot be aligned by their log clocks, because these clocks started up to ")
    }));
    // The logs are from different PX4 releases, which define some topics differently. Only topics
    // with the same definition are merged.
    let alike = |log: &UlogReader, other: &UlogReader| {
        let topics = log.topics().iter().filter(|topic| {
            let theirs = other.topics().iter().filter(|o| o.type_name == topic.type_name);
            theirs.into_iter().all(|theirs| theirs.schema == topic.schema)
        });
        let names: Vec<_> = topics.map(|topic| topic.name.clone()).collect();
        part(log, &Select::topics(names))
    };
    let (pa, pb) = (alike(&a, &b), alike(&b, &a));
    let mut out = Vec::new();
    let report = Ulog::merge(&[&pa, &pb], Align::Utc, &mut out).unwrap();
    let log = open(&out.into());
    assert_eq!(log.info().records, pa.info().records + pb.info().records);
    assert!(!report.left_out.is_empty(), "their information differs");
    let later = if ua.nanos > ub.nanos { &pa } else { &pb };
    let end = later.info().end.unwrap().nanos.unsigned_abs() + moved;
    assert_eq!(log.info().end.unwrap().nanos.unsigned_abs(), end);
}

#[test]
fn a_subscription_without_a_format_is_left_out_and_reported() {
    let bytes = support::log_of(&[
        (b'F', b"t:uint64_t timestamp;int32_t x;".to_vec()),
        (b'A', b"\0\0\0t".to_vec()),
        (b'A', b"\0\x01\0u".to_vec()),
        (b'D', vec![0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0]),
    ]);
    let log = open(&bytes);
    assert_eq!(log.topics().len(), 2);
    let (merged, report) = merged(&[&log], Align::AsIs).unwrap();
    assert_eq!(report.left_out, ["the subscription of u, because its format is not defined"]);
    assert_eq!(merged.topics().iter().map(|topic| topic.name.as_str()).collect::<Vec<_>>(), ["t/0"]);
    assert_eq!(merged.info().records, 1);
}

/// Returns a log that contains `messages`, followed by rows of topic `t` at `times` in
/// microseconds.
fn log_with(messages: &[RawMessage], times: &[u64]) -> UlogReader {
    let head = [format("t:uint64_t timestamp;"), subscription(0, "t")];
    let row = |time: &u64| (b'D', [&[0, 0][..], &time.to_le_bytes()].concat());
    let rows: Vec<_> = times.iter().map(row).collect();
    open(&log_of(&[messages, &head, &rows].concat()))
}

fn text_info(letter: u8, name: &str, text: &str) -> RawMessage {
    keyed(letter, &format!("char[{}] {name}", text.len()), text.as_bytes())
}

fn default(types: u8, name: &str, value: i32) -> RawMessage {
    let (letter, payload) = keyed(b'Q', &format!("int32_t {name}"), &value.to_le_bytes());
    (letter, [&[types], &payload[..]].concat())
}

fn list_part(name: &str, text: &str, continued: u8) -> RawMessage {
    let (letter, payload) = text_info(b'M', name, text);
    (letter, [&[continued], &payload[..]].concat())
}

#[test]
fn information_is_merged_by_name_with_the_last_value() {
    let parameter = |value: i32| keyed(b'P', "int32_t P", &value.to_le_bytes());
    let a = [
        text_info(b'I', "note", "first"),
        text_info(b'I', "note", "later value"),
        list_part("list", "one", 0),
        list_part("other", "x", 0),
        list_part("list", "two", 1),
        list_part("list", "one", 0),
        list_part("list", "two", 1),
        default(3, "D", 1),
        default(1, "D", 2),
        parameter(1),
        parameter(2),
    ];
    let b = [
        text_info(b'I', "note", "another"),
        text_info(b'I', "more", "of b"),
        list_part("list", "one", 0),
        list_part("list", "two", 1),
        list_part("list", "three", 0),
        default(3, "D", 2),
        default(2, "E", 5),
        parameter(3),
    ];
    let (a, b) = (log_with(&a, &[10, 20]), log_with(&b, &[30, 40]));
    let (log, report) = merged(&[&a, &b], Align::AsIs).unwrap();
    let left_out = ["information char[7] note of log 2", "default int32_t D of log 2"];
    assert_eq!(
        report.left_out,
        left_out.map(|what| format!("{what}, because another log has a different value"))
    );
    let text = |text: &str| Value::Text(text.to_owned());
    assert_eq!(
        log.infos().into_iter().collect::<Vec<_>>(),
        [("more".to_owned(), text("of b")), ("note".to_owned(), text("later value")),]
    );
    let infos = |log: &UlogReader| log.messages().filter(|(_, m)| matches!(m, Message::Info(_))).count();
    assert_eq!(infos(&log), 2, "one of each name");
    let twice = vec![text("one"), text("two")];
    let lists = log.multi_infos();
    assert_eq!(lists["list"], [twice.clone(), twice, vec![text("three")]]);
    assert_eq!(lists["other"], [[text("x")]]);
    let (parameters, of_a) = (log.parameters(), a.parameters());
    assert_eq!(parameters.initial, of_a.initial);
    assert_eq!(
        parameters.changed.iter().map(|change| &change.value).collect::<Vec<_>>(),
        [&Value::Int(3, 32)]
    );
    assert_eq!(parameters.system_defaults, of_a.system_defaults);
    let setup: Vec<_> = parameters.setup_defaults.into_iter().collect();
    assert_eq!(setup, [("D".to_owned(), Value::Int(1, 32)), ("E".to_owned(), Value::Int(5, 32))]);
}

/// The log that starts first takes precedence, regardless of the order in which the logs are
/// passed.
#[test]
fn the_order_of_the_logs_does_not_matter() {
    let a = small("one", &[10, 20, 30], 1, &plain());
    let b = small("two", &[15, 25], 2, &plain());
    let mut outs = [Vec::new(), Vec::new()];
    let [first, second] = &mut outs;
    let report = Ulog::merge(&[&a, &b], Align::AsIs, first).unwrap();
    assert_eq!(
        report.left_out,
        ["information char[3] sys_uuid of log 2, because another log has a different value"]
    );
    let report = Ulog::merge(&[&b, &a], Align::AsIs, second).unwrap();
    assert_eq!(
        report.left_out,
        ["information char[3] sys_uuid of log 1, because another log has a different value"]
    );
    assert!(format!("{:?}", report.details).contains("UInt(1, 32)"), "{:?}", report.details);
    assert!(outs[0] == outs[1]);
    assert_eq!(open(&outs[1].clone().into()).parameters().initial["P"], Value::Int(1, 32));
}

/// If the times of a log are moved to another clock, its `boot_time_utc_us` no longer applies.
#[test]
fn logs_aligned_by_utc_keep_the_utc_of_every_row() {
    const UTC: u64 = 1_700_000_000_000_000;
    let boot = |utc: u64| keyed(b'I', "uint64_t boot_time_utc_us", &utc.to_le_bytes());
    let later = log_with(&[boot(UTC + 1_000_000_000)], &[10, 20]);
    let first = log_with(&[boot(UTC)], &[30, 40]);
    let (log, report) = merged(&[&later, &first], Align::Utc).unwrap();
    let of_another =
        "information uint64_t boot_time_utc_us of log 1, because its times are on the clock of another log";
    assert_eq!(report.left_out, [of_another]);
    let offset = log.info().utc.as_ref().expect("it has UTC").nanos / 1000;
    let times: Vec<_> = log
        .records_in_file_order()
        .map(|r| r.time.unwrap().nanos / 1000 + offset - UTC.cast_signed())
        .collect();
    assert_eq!(times, [30, 40, 1_000_000_010, 1_000_000_020]);
}
