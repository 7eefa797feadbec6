//! Tests of slices of every log of the corpus and of real logs.

mod support;

use std::collections::BTreeMap;

use rovelog_core::Error;
use rovelog_core::{LogReader, Record, Select, Severity, Timestamp, Value};
use rovelog_testing::detail;
use support::open;
use ulog_format::DefaultOf;
use ulog_format::wire::{FlagBitsMessage, Message};
use ulog_format::{Format as _, FormatBuilder, Ulog, UlogError, UlogReader, UlogWriter};

/// Returns `true` if a log has no losses except messages that were cut before data was appended.
fn is_whole(log: &UlogReader) -> bool {
    let lost = log.diagnostics().list().iter().filter(|d| d.rule.severity == Severity::DataLost);
    lost.fold(true, |whole, d| whole && d.rule.name == "cut" && log.appended_offsets().contains(&d.range.end))
}

/// If the whole log is selected, the slice is identical to the log. This includes appended data and
/// messages that were cut before it.
#[test]
fn a_slice_of_a_whole_log_is_identical() {
    let mut appended = 0;
    for (log, reader) in support::readable().chain(support::quirks().into_iter().filter_map(|log| {
        let reader = support::try_open(&log.bytes)?;
        Some((log, reader))
    })) {
        if is_whole(&reader) && support::has_header(&reader) {
            assert!(cut(&reader, &Select::all()).unwrap() == log.bytes, "{}: sliced", log.name);
            let (copy, _) = support::rewritten(&log.bytes, &reader);
            assert!(copy == log.bytes, "{}: rewritten", log.name);
            appended += usize::from(!reader.appended_offsets().is_empty());
        }
    }
    assert!(appended >= 5, "only {appended} logs with appended data");
}

/// If an id was never subscribed, a slice keeps an unsubscription of this id.
#[test]
fn an_unsubscription_of_an_unknown_id_is_kept() {
    let mut log = UlogWriter::new(Vec::new(), 0).unwrap();
    log.define(&FormatBuilder::new("t").field::<u64>("timestamp")).unwrap();
    let t = log.subscribe("t", 0).unwrap();
    for i in 1..10_u64 {
        log.write_row_bytes(t, &(i * 1_000_000).to_le_bytes()).unwrap();
        if i == 5 {
            log.write_raw(b'R', &99_u16.to_le_bytes()).unwrap();
        }
    }
    let log = open(&log.finish().unwrap().into());
    for select in [Select::all(), Select::topic("t"), Select::all().between(Some(2_000_000_000), None)] {
        let part = open(&cut(&log, &select).unwrap().into());
        let ends = part.messages().filter(|(_, message)| matches!(message, Message::Unsubscription(_)));
        assert_eq!(ends.count(), 1, "{select:?}");
    }
}

/// The log contains a row, a text, a dropout and a parameter change in each second.
#[test]
fn a_slice_reports_its_contents() {
    let mut log = UlogWriter::new(Vec::new(), 0).unwrap();
    log.define(&FormatBuilder::new("t").field::<u64>("timestamp")).unwrap();
    log.write_raw(b'V', b"of a later edition").unwrap();
    log.parameter("P", 0).unwrap();
    let t = log.subscribe("t", 0).unwrap();
    for second in 1..=9 {
        log.write_row_bytes(t, &(second * 1_000_000_u64).to_le_bytes()).unwrap();
        log.text(6, second * 1_000_000, "still here").unwrap();
        log.dropout(20).unwrap();
        log.parameter("P", i32::try_from(second).unwrap()).unwrap();
    }
    let log = open(&log.finish().unwrap().into());
    let mut out = Vec::new();
    let select = Select::all().between(Some(4_000_000_000), Some(7_000_000_000));
    let report = log.slice(&select, &mut out).unwrap();
    let counted = ["messages", "dropouts", "parameter_changes", "parameters_in_force"]
        .map(|key| detail(&report.details, key).cloned());
    let three = Some(Value::UInt(3, 64));
    assert_eq!(counted, [three.clone(), three.clone(), three, Some(Value::UInt(1, 32))]);
    assert_eq!((report.records, report.others, report.topics, report.bytes), (3, 9, 1, out.len() as u64));
    let part = open(&out.into());
    assert_eq!(part.parameters().initial["P"], Value::Int(3, 32));
    assert!(part.messages().any(|(_, message)| matches!(message, Message::Unknown { .. })));
}

/// The format is defined after the subscription that uses it. The slice does not contain the rows
/// between the two, so a reader could not verify the subscription.
#[test]
fn a_format_after_its_subscription_is_moved_before_it() {
    let mut log = UlogWriter::new(Vec::new(), 0).unwrap();
    log.define(&FormatBuilder::new("t").field::<u64>("timestamp")).unwrap();
    let t = log.subscribe("t", 0).unwrap();
    let row = |second: u64| (second * 1_000_000).to_le_bytes();
    log.write_raw(b'A', b"\0\x01\0late").unwrap();
    log.write_raw(b'A', b"\0\x02\0never").unwrap();
    (1..10).for_each(|second| log.write_row_bytes(t, &row(second)).unwrap());
    for fields in ["uint64_t timestamp;n n;", "uint64_t timestamp;"] {
        log.write_raw(b'F', format!("late:{fields}").as_bytes()).unwrap();
    }
    log.write_raw(b'F', b"n:uint8_t n;").unwrap();
    log.write_raw(b'D', &[&[1, 0][..], &row(20), &[7]].concat()).unwrap();
    let log = open(&log.finish().unwrap().into());
    let topics = ["t", "late", "never"];
    for select in [Select::all(), Select::topics(topics)].map(|all| all.between(Some(15_000_000_000), None)) {
        let bytes = cut(&log, &select).unwrap();
        let part = open(&bytes.clone().into());
        assert_eq!(rows(&part), rows(&log)[9..], "{select:?}");
        assert_eq!(part.diagnostics().ledger().losses, 0);
        let order = part.messages().filter_map(|(_, message)| match message {
            Message::Format(format) => Some(String::from_utf8_lossy(format.format).into_owned()),
            Message::Subscription(to) => Some(String::from_utf8_lossy(to.message_name).into_owned()),
            _ => None,
        });
        let late = ["late:uint64_t timestamp;n n;", "n:uint8_t n;"];
        let again = "late:uint64_t timestamp;";
        let want = ["t:uint64_t timestamp;", "t", late[0], late[1], "late", "never", again];
        assert_eq!(order.collect::<Vec<_>>(), want);
        assert_eq!(cut(&part, &select).unwrap(), bytes);
    }
}

/// Returns all logs without losses, each with its name.
fn sound() -> Vec<(String, UlogReader)> {
    let sound = support::readable().filter(|(_, reader)| reader.diagnostics().ledger().losses == 0);
    sound.map(|(log, reader)| (log.name, reader)).collect()
}

/// If the error reports that a slice would change the times of a topic, returns the name of the
/// topic.
fn moved(error: &Error) -> Option<&str> {
    match error.get_ref().downcast_ref()? {
        UlogError::TimesWouldMove { topic } => Some(topic),
        _ => None,
    }
}

fn cut(log: &UlogReader, select: &Select) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    let report = log.slice(select, &mut out)?;
    assert_eq!(report.bytes, out.len() as u64);
    Ok(out)
}

type Row = (String, Option<Timestamp>, Vec<u8>);

fn row(record: &Record<'_>) -> Row {
    (record.topic.name.clone(), record.time, record.payload.to_vec())
}

fn rows(log: &UlogReader) -> Vec<Row> {
    log.records_in_file_order().map(|record| row(&record)).collect()
}

fn texts(log: &UlogReader) -> Vec<(Option<Timestamp>, String)> {
    log.texts().unwrap().map(|text| (text.time, text.text)).collect()
}

/// Returns the start and the end of the middle third of a log, in nanoseconds.
fn middle(log: &UlogReader) -> Option<(i64, i64)> {
    let times = log.topics().iter().flat_map(|topic| [topic.first, topic.last]).flatten();
    let times: Vec<_> = times.map(|time| time.nanos).filter(|nanos| *nanos > 0).collect();
    let (first, last) = (*times.iter().min()?, *times.iter().max()?);
    let third = (last - first) / 3;
    (third > 0).then_some((first + third, last - third))
}

#[test]
fn a_slice_of_everything_is_the_same_log() {
    for (name, log) in sound() {
        let copy = open(&cut(&log, &Select::all()).unwrap().into());
        assert_eq!(copy.diagnostics().ledger().losses, 0, "{name}");
        assert_eq!(rows(&copy), rows(&log), "{name}");
        assert_eq!(texts(&copy), texts(&log), "{name}");
        assert_eq!(copy.infos(), log.infos(), "{name}");
        assert_eq!(copy.multi_infos(), log.multi_infos(), "{name}");
        let values = |log: &UlogReader| {
            let parameters = log.parameters();
            let changed: Vec<_> = parameters.changed.into_iter().map(|c| (c.time, c.name, c.value)).collect();
            (parameters.initial, changed, parameters.system_defaults, parameters.setup_defaults)
        };
        assert_eq!(values(&copy), values(&log), "{name}");
    }
}

#[test]
fn a_time_range_contains_its_rows_and_the_current_parameters() {
    for (name, log) in sound() {
        let Some((start, end)) = middle(&log) else { continue };
        let select = Select::all().between(Some(start), Some(end));
        let bytes = match cut(&log, &select) {
            Err(error) if moved(&error).is_some() => continue,
            bytes => bytes.unwrap(),
        };
        let part = open(&bytes.clone().into());
        assert_eq!(part.diagnostics().ledger().losses, 0, "{name}");
        let sorted = |mut rows: Vec<Row>| {
            rows.sort_by_key(|(name, time, bytes)| (name.clone(), time.map(|t| t.nanos), bytes.clone()));
            rows
        };
        let wanted = log.records(&select).map(|record| row(&record.unwrap())).collect();
        assert_eq!(sorted(rows(&part)), sorted(wanted), "{name}");
        let inside = |time: &Option<Timestamp>| time.is_some_and(|time| select.keeps_time(time.nanos));
        let wanted: Vec<_> = texts(&log).into_iter().filter(|(time, _)| inside(time)).collect();
        assert_eq!(texts(&part), wanted, "{name}");
        let before = Timestamp::new(start - 1, part.info().start.unwrap().clock);
        assert_eq!(part.parameters().initial, log.parameters().at(before), "{name}");
        let (old, new) = (log.parameters(), part.parameters());
        if !(old.system_defaults.is_empty() && old.setup_defaults.is_empty()) {
            for (key, value) in &old.initial {
                let of = |defaults: &BTreeMap<String, _>, value| defaults.get(key).cloned().unwrap_or(value);
                let (then, now) = (value.clone(), new.initial[key].clone());
                let system = of(&old.system_defaults, then.clone());
                assert_eq!(of(&new.system_defaults, now.clone()), system, "{name} {key}");
                assert_eq!(of(&new.setup_defaults, now), of(&old.setup_defaults, then), "{name} {key}");
            }
        }
        assert_eq!(part.infos(), log.infos(), "{name}");
        assert_eq!(cut(&part, &select).unwrap(), bytes, "{name}: twice is once");
    }
}

#[test]
fn a_slice_by_topic_has_no_new_diagnostics() {
    for (name, log) in sound() {
        let mut rows_of: BTreeMap<String, Vec<Row>> = BTreeMap::new();
        for row in rows(&log) {
            rows_of.entry(row.0.clone()).or_default().push(row);
        }
        // All topics of a small log are tested, but only some topics of a large log.
        let step = if log.info().size > 100_000 { 17 } else { 1 };
        for topic in log.topics().iter().step_by(step) {
            let select = Select::topics([topic.name.clone()]);
            let bytes = match cut(&log, &select) {
                Err(error) if moved(&error) == Some(&*topic.name) => continue,
                bytes => bytes.unwrap(),
            };
            let part = open(&bytes.clone().into());
            assert_eq!(part.diagnostics().ledger().losses, 0, "{name} {}", topic.name);
            let plain =
                |rows: &[Row]| rows.iter().map(|(_, time, row)| (*time, row.clone())).collect::<Vec<_>>();
            let wanted = rows_of.get(&topic.name).map(|rows| plain(rows)).unwrap_or_default();
            assert_eq!(plain(&rows(&part)), wanted, "{name} {}", topic.name);
            let others = part.topics().iter().filter(|other| other.type_name != topic.type_name).count();
            assert_eq!(others, 0, "{name} {}", topic.name);
            assert!(
                part.messages()
                    .all(|(_, m)| !matches!(m, Message::FlagBits(FlagBitsMessage { flags, .. }) if flags.incompat_flags[0] & 1 != 0))
            );
            // If the first topic `t/0` is not in the slice, a topic such as `t/0#2` becomes `t/0`.
            let again = Select::topics(part.topics().iter().map(|topic| topic.name.clone()));
            assert_eq!(cut(&part, &again).unwrap(), bytes, "{name} {}", topic.name);
        }
    }
}

/// With `last_before`, a slice contains the last row of a topic before the time range.
#[test]
fn latched_rows_are_included() {
    for (name, log) in sound() {
        let Some((start, end)) = middle(&log) else { continue };
        let select = Select::all().between(Some(start), Some(end)).with_last_before();
        let Ok(bytes) = cut(&log, &select) else { continue };
        let count = log.records(&select).count();
        assert_eq!(open(&bytes.into()).info().records, count as u64, "{name}");
    }
}

/// If the initial value of a parameter is the default, the log does not contain the default.
#[test]
fn a_default_is_added_for_a_changed_parameter() {
    let mut log = UlogWriter::new(Vec::new(), 0).unwrap();
    log.define(&FormatBuilder::new("t").field::<u64>("timestamp")).unwrap();
    log.parameter("A", 1).unwrap();
    log.parameter("B", 2).unwrap();
    log.default_parameter("B", 3, DefaultOf::System).unwrap();
    let t = log.subscribe("t", 0).unwrap();
    for i in 1..10_u64 {
        log.write_row_bytes(t, &(i * 1_000_000).to_le_bytes()).unwrap();
        if i == 4 {
            log.parameter("A", 7).unwrap();
            log.parameter("B", 8).unwrap();
        }
    }
    let log = open(&log.finish().unwrap().into());
    let part = cut(&log, &Select::all().between(Some(6_000_000_000), None)).unwrap();
    let part = open(&part.into());
    let found = part.parameters();
    let int = |value| Value::Int(value, 32);
    let map = |pairs: &[(&str, i64)]| {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), int(*v))).collect::<BTreeMap<_, _>>()
    };
    assert_eq!((part.info().records, found.initial), (4, map(&[("A", 7), ("B", 8)])));
    assert_eq!(found.system_defaults, map(&[("A", 1), ("B", 3)]));
    assert_eq!(found.setup_defaults, map(&[("A", 1), ("B", 2)]));
    assert!(found.changed.is_empty());
}

/// A reader skips an unknown message only if verifiable messages follow. If a slice does not
/// contain such messages, it ends with a synchronization message.
#[test]
fn unknown_messages_remain_skippable() {
    let count = |log: &UlogReader| {
        log.messages().filter(|(_, message)| matches!(message, Message::Unknown { .. })).count()
    };
    for unknown in [1, 5, 40, 150, 1000] {
        let mut log = UlogWriter::new(Vec::new(), 0).unwrap();
        log.define(&FormatBuilder::new("t").field::<u64>("timestamp")).unwrap();
        let topic = log.subscribe("t", 0).unwrap();
        for time in 1..=unknown as u64 {
            log.write_raw(b'V', b"of a later edition").unwrap();
            log.write_row_bytes(topic, &time.to_le_bytes()).unwrap();
        }
        log.text(6, 1, "the last").unwrap();
        for _ in 0..3 {
            log.write_row_bytes(topic, &1000_u64.to_le_bytes()).unwrap();
        }
        let log = open(&log.finish().unwrap().into());
        assert_eq!(count(&log), unknown);
        let sliced = cut(&log, &Select::topics(Vec::<String>::new())).unwrap();
        let mut merged = Vec::new();
        let part = open(&sliced.clone().into());
        Ulog::merge(&[&part], rovelog_core::Align::AsIs, &mut merged).unwrap();
        for (what, bytes) in [("sliced", sliced.clone()), ("merged", merged)] {
            let made = open(&bytes.into());
            assert_eq!(made.diagnostics().ledger().losses, 0, "{what} {unknown}");
            assert_eq!(count(&made), unknown, "{what} {unknown}");
        }
        assert!(cut(&part, &Select::all()).unwrap() == sliced, "a slice of a slice, {unknown}");
    }
}
