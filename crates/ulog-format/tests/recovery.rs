//! Tests of recovery. Recovered logs must be valid, contain all rows that can be recovered, and
//! contain hardly any false rows.

mod support;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use rovelog_core::internal::wire::U64Le;
use rovelog_core::{Diagnostic, LogReader, RecoverOptions, Recovery, Segment, Severity, Value};
use rovelog_testing::{Random, detail, read_json, sha256};
use serde_json::Value as Json;
use sha2::{Digest, Sha256};
use support::{LOGS, has_header, open, quirks, try_open};
use ulog_format::UlogReader;
use ulog_format::wire::Message;

fn noise(key: &str, len: usize) -> Vec<u8> {
    let block = |i: usize| Sha256::digest(format!("{key}:{i}"));
    (0..).flat_map(|i| block(i).to_vec()).take(len).collect()
}

/// Damages a log. `edits` are applied to `base`, and their offsets refer to `base`.
fn damage(base: &[u8], edits: &[Json]) -> Vec<u8> {
    let mut out = Vec::with_capacity(base.len());
    let mut done = 0;
    for edit in edits {
        let number = |i: usize| usize::try_from(edit[i].as_u64().expect("a number")).expect("small");
        let at = number(1);
        out.extend_from_slice(&base[done..at]);
        let n = if edit[0] == "xor" { 1 } else { number(2) };
        match edit[0].as_str().expect("a kind") {
            "xor" => out.push(base[at] ^ u8::try_from(number(2)).expect("a mask")),
            "delete" => {}
            "zero" => out.resize(out.len() + n, 0),
            "noise" => out.extend(noise(edit[3].as_str().expect("a key"), n)),
            "copy" => out.extend_from_slice(&base[number(3)..number(3) + n]),
            other => panic!("unknown edit {other}"),
        }
        done = at + n;
    }
    out.extend_from_slice(&base[done..]);
    out
}

/// Number of rows by message id and timestamp. The recovered rows are compared by these two
/// properties.
type Rows = HashMap<(u16, u64), u64>;

fn rows(log: &UlogReader) -> Rows {
    let mut rows = Rows::new();
    for record in log.records_in_file_order() {
        let id = log.definitions().subscriptions()[record.topic.id.index()].msg_id;
        let time = record.time.map_or(0, |time| u64::try_from(time.nanos / 1000).expect("positive"));
        *rows.entry((id, time)).or_default() += 1;
    }
    rows
}

/// Returns the number of rows that are in both `got` and `truth`.
fn common(got: &Rows, truth: &Rows) -> u64 {
    got.iter().map(|(row, n)| (*n).min(truth.get(row).copied().unwrap_or(0))).sum()
}

/// Plan of damage for the tests. It contains the edits for each damaged file, the undamaged log,
/// and the rows of this log.
struct Plan {
    files: serde_json::Map<String, Json>,
    base: Vec<u8>,
    truth: Rows,
}

impl Plan {
    fn read(folder: &Path) -> Self {
        let plan = read_json(&folder.join("damage/plan.json"));
        let base = std::fs::read(folder.join(plan["base"].as_str().expect("a name"))).expect("the base");
        let truth = rows(&open(&base.clone().into()));
        let files = plan["files"].as_object().expect("files").clone();
        Self { files, base, truth }
    }
}

/// Returns the number of recovered messages by message type.
fn kept_messages(report: &Recovery) -> BTreeMap<u8, u64> {
    let Some(Value::Struct(counts)) = detail(&report.details, "messages") else { panic!("counts by letter") };
    let count = |(letter, count): &(std::sync::Arc<str>, Value)| match count {
        Value::UInt(count, _) => (letter.as_bytes()[0], *count),
        other => panic!("{other:?}"),
    };
    counts.iter().map(count).collect()
}

fn merged_sections(report: &Recovery) -> u64 {
    match detail(&report.details, "merged_sections") {
        Some(Value::UInt(count, _)) => *count,
        other => panic!("{other:?}"),
    }
}

/// Returns all valid messages of a log in file order, except the flag bits.
fn messages(log: &UlogReader) -> Vec<String> {
    let kept = log.messages().filter(|(_, message)| !matches!(message, Message::FlagBits(_)));
    kept.map(|(_, message)| format!("{message:?}")).collect()
}

/// Recovers a log and checks all properties of the recovered log and of the report.
fn recovered(what: &str, log: &UlogReader, options: &RecoverOptions) -> (UlogReader, Recovery) {
    let mut bytes = Vec::new();
    let report = log.recover(&mut bytes, options).expect("memory takes it");
    let len = log.info().size;
    // If the log has no header, a new header is written to the recovered log.
    let new = bytes.len() as u64 - report.kept_bytes;
    assert!(new == 0 || (new <= 16 && !has_header(log)), "{what}: {new} new bytes");
    assert_eq!(report.kept_bytes + report.lost_bytes() + report.stale_bytes, len, "{what}: every byte");
    let bytes = rovelog_core::Bytes::from(bytes);
    let again = open(&bytes);
    let mut lost = again.diagnostics().list().iter().filter(|d| d.rule.severity == Severity::DataLost);
    let lost = lost.find(|d| !(report.unchanged && cut_before_appended(&again, d)));
    assert!(lost.is_none(), "{what}: the recovered log loses {lost:?}");
    assert_eq!(again.info().records, report.records, "{what}");
    let mut counts = BTreeMap::new();
    again.messages().for_each(|(_, message)| *counts.entry(message.msg_type()).or_insert(0u64) += 1);
    assert_eq!(counts, kept_messages(&report), "{what}");
    if !report.unchanged {
        assert!(again.appended_offsets().is_empty(), "{what}");
    }
    let mut twice = Vec::new();
    let second = again.recover(&mut twice, options).expect("memory takes it");
    assert!(twice == bytes && second.unchanged && second.lost.is_empty(), "{what}: not the same again");
    (again, report)
}

/// Returns `true` if a loss is a message that was cut before data was appended. Recovery copies the
/// bytes of such a message, so that the offsets of appended data remain correct.
fn cut_before_appended(log: &UlogReader, loss: &Diagnostic) -> bool {
    loss.rule.name == "cut" && log.appended_offsets().contains(&loss.range.end)
}

/// Recovers all valid messages of a log.
fn check_recovery(what: &str, log: &UlogReader) -> (UlogReader, Recovery) {
    let (again, report) = recovered(what, log, &RecoverOptions::default());
    let sound = |log: &UlogReader| -> Vec<_> {
        log.records_in_file_order().map(|r| (r.topic.type_name.clone(), r.payload.to_vec())).collect()
    };
    assert!(sound(&again) == sound(log), "{what}: the rows differ");
    let mut lost = log.diagnostics().list().iter().filter(|d| d.rule.severity == Severity::DataLost);
    let unchanged = lost.all(|d| cut_before_appended(log, d)) && same_flags(log) && has_header(log);
    assert_eq!(report.unchanged, unchanged, "{what}");
    assert_eq!(report.segments.is_empty(), log.segments().is_empty(), "{what}");
    (again, report)
}

/// Returns `true` if no offset of appended data was ignored.
fn same_flags(log: &UlogReader) -> bool {
    log.diagnostics().list().iter().all(|note| !note.rule.name.starts_with("appended_"))
}

#[test]
fn every_corpus_file_and_quirk_recovers() {
    let mut tried = 0;
    for file in LOGS.corpus().into_iter().chain(quirks()) {
        let Some(log) = try_open(&file.bytes) else { continue };
        let (again, report) = check_recovery(&file.name, &log);
        if report.unchanged {
            assert!(log.messages().eq(again.messages()), "{}", file.name);
        }
        tried += 1;
    }
    assert!(tried > 80, "only {tried} logs");
}

#[test]
fn messages_cut_before_appended_data_are_kept() {
    for name in ["appended+cut-in-payload-before", "appended+cut-in-header-before", "appended-three-sections"]
    {
        let log = LOGS.case(name);
        let mut bytes = Vec::new();
        let report =
            open(&log.bytes).recover(&mut bytes, &RecoverOptions::default()).expect("memory takes it");
        assert!(report.unchanged && report.lost.is_empty() && merged_sections(&report) == 0, "{name}");
        assert!(bytes == log.bytes, "{name}");
    }
}

#[test]
fn appended_data_becomes_ordinary_data_in_a_damaged_log() {
    // In addition to the message that is cut before the appended data, the last row of the log is
    // damaged.
    let log = LOGS.case("appended+cut-in-payload-before");
    let cut = open(&log.bytes.slice(..log.bytes.len() - 1));
    let (again, report) = check_recovery("cut", &cut);
    assert_eq!((merged_sections(&report), report.lost.len(), report.unchanged), (1, 2, false));
    let flags = again.flag_bits().expect("kept");
    assert_eq!((flags.incompat_flags[0], flags.appended_offsets.map(U64Le::get)), (0, [0; 3]));
    // A valid log is not changed, and its appended data remains appended.
    let sound = LOGS.case("appended");
    let mut bytes = Vec::new();
    let report = open(&sound.bytes).recover(&mut bytes, &RecoverOptions::default()).expect("memory takes it");
    assert!(report.unchanged && merged_sections(&report) == 0 && bytes == sound.bytes);
}

fn segment_json(segment: &Segment) -> Json {
    let micros = |time: Option<rovelog_core::Timestamp>| time.map(|time| time.nanos / 1000);
    serde_json::json!({
        "start": segment.range.start,
        "end": segment.range.end,
        "timed_rows": segment.timed_records,
        "first_us": micros(segment.first),
        "last_us": micros(segment.last),
        "in_time_order": segment.in_time_order,
    })
}

#[test]
fn recovered_logs_are_valid_after_any_damage() {
    let mut tried = 0;
    let corpus = LOGS.corpus();
    for file in corpus.iter().filter(|file| file.bytes.len() < 8192) {
        // The random numbers depend only on the name of the case, so each case can be repeated
        // separately.
        let mut random =
            Random(file.name.bytes().fold(7_u64, |seed, byte| seed.wrapping_mul(31) + u64::from(byte)));
        for turn in 0..40 {
            let mut bytes = file.bytes.to_vec();
            for _ in 0..=random.below(3) {
                if bytes.is_empty() {
                    break;
                }
                let at = random.below(bytes.len());
                let end = (at + 1 + random.below(60)).min(bytes.len());
                match random.below(6) {
                    0 => bytes[at] ^= 1 << random.below(8),
                    1 => drop(bytes.drain(at..end)),
                    2 => bytes[at..end].fill(0),
                    3 => {
                        bytes[at..end].fill_with(|| random.below(256).to_le_bytes()[0]);
                    }
                    4 => bytes.extend_from_within(at..end),
                    _ => {
                        // A piece of another log is inserted into the log.
                        let other = &corpus[random.below(corpus.len())].bytes;
                        let from = random.below(other.len());
                        let piece = &other[from..(from + 200).min(other.len())];
                        bytes.splice(at..at, piece.iter().copied());
                    }
                }
            }
            let Some(log) = try_open(&bytes.into()) else { continue };
            let what = format!("{} {turn}", file.name);
            recovered(&what, &log, &RecoverOptions::default());
            recovered(&what, &log, &RecoverOptions::default().dropping_stale());
            tried += 1;
        }
    }
    assert!(tried > 3000, "only {tried} logs");
}

#[test]
fn real_logs_recover_and_their_segments_are_the_expected_ones() {
    let Some(folder) = LOGS.folder() else { return };
    for file in LOGS.real() {
        let log = open(&file.bytes);
        let (again, report) = check_recovery(&file.name, &log);
        assert_eq!(
            messages(&again).len() as u64,
            kept_messages(&report).values().sum::<u64>() - u64::from(again.flag_bits().is_some())
        );
        let expected = read_json(&folder.join(format!("expected/{}.ulg.json", file.name)));
        let got: Vec<_> = log.segments().iter().map(segment_json).collect();
        let want = expected["stretches"].as_array().cloned().unwrap_or_default();
        assert_eq!(got, want, "{}", file.name);
    }
}

#[test]
fn the_damage_plan_loses_no_more_than_the_reference() {
    let Some(folder) = LOGS.folder() else { return };
    let results = read_json(&folder.join("damage/results.json"));
    let Plan { files, base, truth } = Plan::read(&folder);
    assert!(files.len() >= 42);
    let mut table: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for (name, file) in &files {
        let bytes = damage(&base, file["edits"].as_array().expect("edits"));
        let hash = sha256(&bytes);
        assert_eq!(file["sha256"], hash, "{name}: the replay differs");
        let len = bytes.len() as u64;
        let log = open(&bytes.into());
        let (again, _) = check_recovery(name, &log);
        let unusable = ["undefined_format", "undecodable_topic"];
        assert!(again.diagnostics().list().iter().all(|d| !unusable.contains(&d.rule.name)), "{name}");
        let got = rows(&log);
        let (common, total) = (common(&got, &truth), got.values().sum::<u64>());
        let must = file["rows_that_must_survive"].as_u64().expect("a number");
        let reference = &results[name]["reference"];
        let (best, false_rows) = (reference[0].as_u64().expect("rows"), reference[1].as_u64().expect("rows"));
        let kind = name.split('_').next().expect("a kind");
        let entry = table.entry(kind).or_default();
        entry.0 += must.saturating_sub(common);
        entry.1 += total - common;
        assert!(common >= best.min(must), "{name}: {common} of {must} rows, the reference has {best}");
        // Stale blocks are excluded. They consist of valid rows from another time, so they are
        // false rows that only the order of times shows.
        if kind != "stale" {
            assert!(
                total - common <= false_rows + 2,
                "{name}: {} false rows, the reference has {false_rows}",
                total - common
            );
        }
        let ledger = &log_lost(&log);
        assert!(ledger.iter().all(|(start, end)| start < end && *end <= len), "{name}: {ledger:?}");
        assert!(ledger.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{name}: losses overlap");
    }
    // Except for stale blocks, hardly any recovered row is a false row.
    let false_rows: u64 = table.iter().filter(|(kind, _)| **kind != "stale").map(|(_, (_, rows))| rows).sum();
    assert!(false_rows <= 10, "rows missed and false rows by kind of damage: {table:?}");
}

fn log_lost(log: &UlogReader) -> Vec<(u64, u64)> {
    let lost = log.diagnostics().list().iter().filter(|d| d.rule.severity == Severity::DataLost);
    lost.map(|d| (d.range.start, d.range.end)).collect()
}

#[test]
fn stale_blocks_are_found_by_their_times() {
    let Some(folder) = LOGS.folder() else { return };
    let Plan { files, base, truth } = Plan::read(&folder);
    let (mut stale, mut flagged, mut good) = (0, 0, 0);
    for (name, file) in &files {
        let log = open(&damage(&base, file["edits"].as_array().expect("edits")).into());
        let (_, report) = recovered(name, &log, &RecoverOptions::default());
        let (without, dropped) = recovered(name, &log, &RecoverOptions::default().dropping_stale());
        let segments = &report.segments;
        assert_eq!(segments.first().map_or(0, |s| s.range.start), 0, "{name}");
        assert_eq!(segments.last().map_or(log.info().size, |s| s.range.end), log.info().size, "{name}");
        assert!(segments.windows(2).all(|pair| pair[0].range.end == pair[1].range.start), "{name}");
        let out_of_order: u64 = segments.iter().filter(|s| !s.in_time_order).map(|s| s.records).sum();
        assert_eq!(dropped.stale_records, out_of_order, "{name}");
        // Counts the false and the correct rows in a log. They are counted before and after stale
        // blocks are dropped.
        let count = |log: &UlogReader| {
            let got = rows(log);
            let common = common(&got, &truth);
            (got.values().sum::<u64>() - common, common)
        };
        let ((all_false, all_true), (left_false, left_true)) = (count(&log), count(&without));
        if name.starts_with("stale") {
            stale += all_false;
            flagged += all_false - left_false;
        } else {
            assert_eq!(dropped.stale_records, 0, "{name}: nothing is stale");
        }
        good += all_true - left_true;
    }
    assert!(
        stale > 5_500 && flagged * 1000 >= stale * 998 && good <= 1,
        "{flagged} of {stale}, {good} good ones"
    );
}
