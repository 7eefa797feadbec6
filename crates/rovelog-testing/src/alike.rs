//! Checks that apply to logs of all formats.

use rovelog_core::{LogReader, Payload, Record, Select, Timestamp, TopicId};
use serde_json::Value as Json;

use crate::{Log, Logs, differences};

/// Compares every corpus case with its expected result.
///
/// `read` returns the picture of a log, which is a JSON object in the form of the expected results.
/// If the log cannot be opened, it returns the error. `read` may remove parts of the expected
/// result that it has checked itself.
pub fn check_corpus(logs: &Logs, read: impl Fn(&Log, &mut Json) -> rovelog_core::Result<Json>) {
    check_cases(logs, logs.corpus(), read);
}

/// Compares selected corpus cases with their expected results.
pub fn check_cases(
    logs: &Logs,
    cases: Vec<Log>,
    read: impl Fn(&Log, &mut Json) -> rovelog_core::Result<Json>,
) {
    let mut wrong = Vec::new();
    for log in cases {
        let name = &log.name;
        let mut expected = logs.expected(name);
        let read = read(&log, &mut expected);
        match (expected["open"].as_str(), read) {
            (Some("refused"), Err(error)) => {
                assert_eq!(expected["error"]["kind"], error.kind.name(), "{name}");
                let words = expected["error"]["contains"].as_str().expect("words");
                assert!(error.to_string().contains(words), "{name}: {error} lacks {words:?}");
            }
            (Some("ok"), Ok(picture)) => wrong.extend(differences(name, &expected, &picture)),
            (open, result) => panic!("{name}: expected {open:?}, got {:?}", result.map(|_| "a log")),
        }
    }
    assert!(wrong.is_empty(), "{} differences\n{}", wrong.len(), wrong.join("\n"));
}

/// Properties of a record that are compared: offset, number, topic, payload and time.
type Key<'a> = (u64, u64, TopicId, Payload<'a>, Option<Timestamp>);

/// Checks that `log` returns its records in the order that sorting `records` gives. The reader
/// collects positions of records in batches to limit its memory, so its order needs an independent
/// check.
///
/// `records` contains all records, each with the time by which it is sorted. This time is
/// `i64::MIN` if a record has no time. Time windows are checked too, with and without the last
/// record of each topic before the window.
pub fn check_order<'a>(name: &str, log: &'a dyn LogReader, records: impl Iterator<Item = (i64, Record<'a>)>) {
    let key = |record: Record<'a>| (record.offset, record.seq, record.topic.id, record.payload, record.time);
    let mut want: Vec<_> = records.map(|(time, record)| (time, key(record))).collect();
    want.sort_by_key(|(time, (offset, seq, ..))| (*time, *offset, *seq));
    let got = |select: &Select| -> Vec<_> {
        log.records(select).map(|record| key(record.expect("a valid record"))).collect()
    };
    let keys = |list: &[(i64, Key<'a>)]| list.iter().map(|(_, key)| key.clone()).collect::<Vec<_>>();
    assert!(got(&Select::all()) == keys(&want), "{name}: another order");

    let Some((last, _)) = want.last() else { return };
    let middle = want[want.len() / 2].0;
    // If the records have no times, there are no time windows to check.
    if middle == i64::MIN {
        return;
    }
    let first_at = |time: i64| want.partition_point(|(before, _)| *before < time);
    for (start, end) in [(middle, *last), (middle, i64::MAX), (last.saturating_add(1), i64::MAX)] {
        let window = Select::all().between(Some(start), Some(end));
        let inside = keys(&want[first_at(start)..first_at(end).max(first_at(start))]);
        assert!(got(&window) == inside, "{name}: other records from {start} to {end}");
        let with_before = got(&window.with_last_before());
        let (before, rest) = with_before.split_at(with_before.len() - inside.len());
        assert!(rest == inside, "{name}: other records from {start} to {end} after the last ones before");
        for topic in log.topics() {
            let of_topic = |key: &&Key<'_>| key.2 == topic.id;
            let wanted = want[..first_at(start)].iter().map(|(_, key)| key).rfind(of_topic);
            let mut found = before.iter().filter(of_topic);
            assert_eq!(found.next(), wanted, "{name}: {} before {start}", topic.name);
            assert_eq!(found.next(), None, "{name}: {} before {start}", topic.name);
        }
    }
}
