//! Tests that compare real flight logs with the results of independent readers. They are skipped if
//! the logs are missing.

mod support;

use std::collections::BTreeMap;

use rovelog_core::span::STALE_TIMES;
use rovelog_core::{LogReader, ReadOptions, Severity, Value};
use rovelog_testing::{Log, hex, json_of, read_json, sha256};
use serde_json::Value as Json;
use sha2::{Digest, Sha256};
use support::{LOGS, open};
use ulog_format::UlogReader;
use ulog_format::wire::Message;

/// Last diagnostic that the expected results contain. Later diagnostics are tested with the corpus
/// cases.
const LAST_KNOWN_NOTE: &str = "W-ULOG-118";

/// The values of a field in all rows of a topic.
#[derive(Default)]
struct Column {
    source_type: String,
    values: Vec<Value>,
    wire: Vec<u8>,
}

/// Encodes a value in the same way as in the file.
fn to_wire(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::F32(v) => out.extend(v.to_le_bytes()),
        Value::F64(v) => out.extend(v.to_le_bytes()),
        Value::List(items) => items.iter().for_each(|item| to_wire(item, out)),
        _ => {}
    }
}

/// Calls `visit` for each value in a row. Structs and arrays of structs are expanded, but an array
/// of numbers is passed as one value.
fn leaves(prefix: &str, value: &Value, visit: &mut dyn FnMut(String, &Value)) {
    match value {
        Value::Struct(fields) => {
            for (name, value) in fields {
                let path = if prefix.is_empty() { name.to_string() } else { format!("{prefix}.{name}") };
                leaves(&path, value, visit);
            }
        }
        Value::List(items) if matches!(items.first(), Some(Value::Struct(_))) => {
            items.iter().enumerate().for_each(|(i, item)| leaves(&format!("{prefix}[{i}]"), item, visit));
        }
        leaf => visit(prefix.to_owned(), leaf),
    }
}

fn flat(value: &Value) -> Vec<&Value> {
    match value {
        Value::List(items) => items.iter().collect(),
        value => vec![value],
    }
}

/// Returns the correctly rounded sum of floating-point numbers, computed with Shewchuk's algorithm.
fn exact_sum(values: impl Iterator<Item = f64>) -> f64 {
    let mut partials: Vec<f64> = Vec::new();
    for mut x in values {
        let mut kept = 0;
        for i in 0..partials.len() {
            let mut y = partials[i];
            if x.abs() < y.abs() {
                std::mem::swap(&mut x, &mut y);
            }
            let high = x + y;
            let low = y - (high - x);
            if low != 0.0 {
                partials[kept] = low;
                kept += 1;
            }
            x = high;
        }
        partials.truncate(kept);
        partials.push(x);
    }
    // Adds the partial sums, starting with the largest. If the sum is halfway between two
    // floating-point numbers, the sign of the next partial sum decides, as in `fsum` of Python.
    let mut rest = partials.into_iter().rev();
    let Some(mut high) = rest.next() else { return 0.0 };
    let mut low = 0.0;
    for y in rest.by_ref() {
        let x = high;
        high = x + y;
        low = y - (high - x);
        if low != 0.0 {
            break;
        }
    }
    if let Some(next) = rest.next()
        && ((low < 0.0 && next < 0.0) || (low > 0.0 && next > 0.0))
    {
        let doubled = low * 2.0;
        let x = high + doubled;
        if (x - high).to_bits() == doubled.to_bits() {
            high = x;
        }
    }
    high
}

fn check_field(what: &str, want: &Json, column: &Column, rows: &[&[u8]]) {
    assert_eq!(want["type"], column.source_type.as_str(), "{what}");
    let all = || column.values.iter().flat_map(flat);
    if let Some(true_count) = want.get("true") {
        let count = all().filter(|v| **v == Value::Bool(true)).count();
        assert_eq!(true_count.as_u64(), Some(count as u64), "{what}");
    } else if column.source_type.starts_with("char") {
        // Decoded texts end at the first NUL byte, so the bytes in the rows are compared instead.
        assert_eq!(want["sha256"], sha256(&rows.concat()), "{what}");
    } else if want["sum"].is_string() {
        let floats: Vec<f64> = all().map(|v| v.as_f64().expect("a number")).collect();
        assert_eq!(want["sha256"], sha256(&column.wire), "{what}");
        let count = |test: fn(&f64) -> bool| floats.iter().filter(|v| test(v)).count() as u64;
        assert_eq!(want["nan"].as_u64().unwrap_or(0), count(|v| v.is_nan()), "{what}");
        assert_eq!(want["inf"].as_u64().unwrap_or(0), count(|v| v.is_infinite()), "{what}");
        let sum = exact_sum(floats.iter().copied().filter(|v| v.is_finite()));
        let want_sum: f64 = want["sum"].as_str().expect("text").parse().expect("a number");
        // The comparison treats positive and negative zero as equal.
        assert!((sum - want_sum).abs() <= 0.0, "{what}: {sum} {want_sum}");
    } else {
        let integer = |v: &Value| match *v {
            Value::Int(v, _) => i128::from(v),
            Value::UInt(v, _) => i128::from(v),
            ref other => panic!("{what}: {other:?}"),
        };
        let number = |key: &str| want[key].to_string().parse::<i128>().expect("an integer");
        assert_eq!(number("sum"), all().map(integer).sum::<i128>(), "{what}");
        assert_eq!(Some(number("min")), all().map(integer).min(), "{what}");
        assert_eq!(Some(number("max")), all().map(integer).max(), "{what}");
    }
}

fn check_topics(log: &Log, reader: &UlogReader, expected: &Json) {
    let mut columns: Vec<BTreeMap<String, Column>> = Vec::new();
    let mut times: Vec<Vec<u64>> = Vec::new();
    let mut chars: Vec<BTreeMap<String, Vec<u8>>> = Vec::new();
    for _ in reader.topics() {
        columns.push(BTreeMap::new());
        times.push(Vec::new());
        chars.push(BTreeMap::new());
    }
    for record in reader.records_in_file_order() {
        let topic = record.topic.id.index();
        let row = reader.row(&record).expect("a sound row");
        if let Some(place) = row.layout().place("timestamp") {
            times[topic].extend(row.read::<u64>(place));
        }
        for field in &row.layout().schema().fields {
            if field.source_type.starts_with("char") {
                let place = row.layout().place(&field.name).expect("a text has a place");
                let bytes = &row.bytes()[place.offset()..][..place.elements().unwrap_or(1)];
                chars[topic].entry(field.name.to_string()).or_default().extend(bytes);
            }
        }
        leaves("", &record.value().expect("a sound row"), &mut |name, value| {
            let column = columns[topic].entry(name).or_default();
            to_wire(value, &mut column.wire);
            column.values.push(value.clone());
        });
    }
    let wanted = expected["topics"].as_array().expect("topics");
    assert_eq!(wanted.len(), reader.topics().len(), "{}", log.name);
    for ((want, topic), index) in wanted.iter().zip(reader.topics()).zip(0..) {
        let what = format!("{} {}", log.name, topic.name);
        let name = format!("{}/{}", want["name"].as_str().expect("a name"), want["multi_id"]);
        assert_eq!(topic.name, name, "{what}");
        assert_eq!(want["count"].as_u64(), Some(topic.count), "{what}");
        assert_eq!(want["first_timestamp"].as_u64(), times[index].first().copied(), "{what}");
        assert_eq!(want["last_timestamp"].as_u64(), times[index].last().copied(), "{what}");
        for field in want["fields"].as_array().into_iter().flatten() {
            let name = field["name"].as_str().expect("a name");
            let what = format!("{what} {name}");
            let column = columns[index].get_mut(name).unwrap_or_else(|| panic!("{what} is missing"));
            column.source_type = source_type(topic.schema.as_ref().expect("decodable"), name);
            let bytes = chars[index].get(name).map(Vec::as_slice).unwrap_or_default();
            check_field(&what, field, column, &[bytes]);
        }
        let count = want["fields"].as_array().map_or(0, Vec::len);
        assert_eq!(columns[index].len(), count, "{what}: {:?}", columns[index].keys());
    }
}

/// Returns the name of a field's type, as written in the log.
fn source_type(schema: &rovelog_core::Schema, path: &str) -> String {
    let (step, rest) = path.split_once('.').map_or((path, None), |(step, rest)| (step, Some(rest)));
    let name = step.split('[').next().expect("a name");
    let field = schema.fields.iter().find(|f| &*f.name == name).expect("a field of the schema");
    match rest {
        Some(rest) => source_type(field.ty.nested().expect("nested"), rest),
        None => field.source_type.clone(),
    }
}

fn check_rest(log: &Log, reader: &UlogReader, expected: &Json) {
    let what = &log.name;
    assert_eq!(expected["version"].as_u64(), Some(reader.header().version.into()), "{what}");
    assert_eq!(expected["start_timestamp"].as_u64(), Some(reader.header().timestamp.get()), "{what}");
    assert_eq!(expected["rows"].as_u64(), Some(reader.info().records), "{what}");
    let end = reader.info().end.expect("an end").nanos / 1000;
    assert_eq!(expected["last_timestamp"].as_i64(), Some(end), "{what}");
    let appended: Vec<_> = reader.appended_offsets().iter().map(|o| Json::from(*o)).collect();
    if expected["has_data_appended"] == true {
        assert_eq!(expected["flag_bits"]["appended_offsets"], Json::from(appended), "{what}");
    }

    let mut types: BTreeMap<String, u64> = BTreeMap::new();
    let (mut texts, mut tagged) = (Sha256::new(), Sha256::new());
    for (_, message) in reader.messages() {
        match message {
            Message::Data(_) => continue,
            Message::LoggedString(text) => texts.update(text.message),
            Message::TaggedString(text) => tagged.update(text.message),
            Message::Unknown { .. } => panic!("{what}: {message:?}"),
            _ => {}
        }
        *types.entry(char::from(message.msg_type()).to_string()).or_default() += 1;
    }
    types.insert("D".to_owned(), reader.info().records);
    let want: BTreeMap<String, u64> = serde_json::from_value(expected["messages"].clone()).expect("counts");
    assert_eq!(types, want, "{what}");
    let digest = |hash: Sha256| hex(&hash.finalize());
    assert_eq!(expected["logged_strings"]["sha256"], digest(texts), "{what}");
    assert_eq!(expected["tagged_strings"]["sha256"], digest(tagged), "{what}");
    let levels: String =
        reader.texts().expect("texts").filter(|t| t.source.is_none()).map(|t| t.level.to_string()).collect();
    assert_eq!(expected["logged_strings"]["levels"], levels, "{what}");

    let dropouts: Vec<_> = reader
        .dropouts()
        .iter()
        .map(|d| Json::from(vec![d.time.expect("a time").nanos / 1000, d.millis.into()]))
        .collect();
    let mut want = expected["dropouts"]["list"].clone();
    if what.contains("sample_log_small") {
        // The independent reader uses the maximum of all times so far. One stale time is 1167 s
        // after all other times, so that reader places the dropout there.
        assert_eq!(want, serde_json::json!([[1_194_367_328, 30]]));
        want = serde_json::json!([[20_329_151, 30]]);
    }
    assert_eq!(want, Json::from(dropouts), "{what}");

    let parameters = reader.parameters();
    check_values(what, &expected["parameters"]["initial"], &parameters.initial);
    check_values(what, &expected["parameters"]["default_system"], &parameters.system_defaults);
    check_values(what, &expected["parameters"]["default_current_setup"], &parameters.setup_defaults);
    let changed = expected["parameters"]["changed"].as_array().expect("changes");
    assert_eq!(changed.len(), parameters.changed.len(), "{what}");
    for (want, got) in changed.iter().zip(&parameters.changed) {
        assert_eq!(want[0].as_i64(), got.time.map(|t| t.nanos / 1000), "{what}");
        assert_eq!(want[1], got.name.as_str(), "{what}");
        assert_eq!(number(&want[2]), got.value.as_f64(), "{what} {}", got.name);
    }

    check_values(what, &expected["info"], &reader.infos());
    let multi = reader.multi_infos();
    let want = expected["info_multiple"].as_object().expect("an object");
    assert_eq!(want.keys().collect::<Vec<_>>(), multi.keys().collect::<Vec<_>>(), "{what}");
    for (name, want) in want {
        let counts: Vec<_> = multi[name].iter().map(Vec::len).collect();
        assert_eq!(want["part_counts"], serde_json::json!(counts), "{what} {name}");
    }

    let lost: Vec<_> =
        reader.diagnostics().list().iter().filter(|d| d.rule.severity == Severity::DataLost).collect();
    let lost = lost
        .iter()
        .map(|d| serde_json::json!({"kind": d.rule.name, "start": d.range.start, "end": d.range.end}));
    assert_eq!(expected["damage"], lost.collect::<Json>(), "{what}");
    // The independent readers do not report stale times or the diagnostics that were added later.
    let notes = reader.diagnostics().list().iter().filter(|d| d.rule.severity != Severity::DataLost);
    let notes = notes.filter(|d| d.rule.code <= LAST_KNOWN_NOTE && d.rule != &STALE_TIMES);
    let notes = notes.map(|d| serde_json::json!([d.rule.name, d.range.start]));
    assert_eq!(expected["notes"], notes.collect::<Json>(), "{what}");
    let utc = reader.info().utc.as_ref();
    assert_eq!(expected["utc"]["rule"], utc.map_or(Json::Null, |utc| utc.rule.into()), "{what}");
    assert_eq!(expected["utc"]["offset_us"].as_i64(), utc.map(|utc| utc.nanos / 1000), "{what}");
}

/// Returns a number from JSON. The expected results store floating-point numbers as strings.
fn number(json: &Json) -> Option<f64> {
    json.as_f64().or_else(|| json.as_str()?.parse().ok())
}

fn check_values(what: &str, want: &Json, got: &BTreeMap<String, Value>) {
    let want = want.as_object().expect("an object");
    assert_eq!(want.keys().collect::<Vec<_>>(), got.keys().collect::<Vec<_>>(), "{what}");
    for (name, want) in want {
        let value = &got[name];
        match value.as_f64() {
            Some(float) => assert_eq!(number(want), Some(float), "{what} {name}"),
            None => assert_eq!(*want, json_of(value), "{what} {name}"),
        }
    }
}

#[test]
fn real_logs_equal_the_independent_readers() {
    let Some(folder) = LOGS.folder() else { return };
    let logs = LOGS.real();
    assert!(logs.len() >= 12, "{} has only {} logs", folder.display(), logs.len());
    for log in &logs {
        let expected = read_json(&folder.join(format!("expected/{}.ulg.json", log.name)));
        assert_eq!(
            expected["sha256"],
            sha256(&log.bytes),
            "{}: another file than the expected one",
            log.name
        );
        let reader = open(&log.bytes);
        check_topics(log, &reader, &expected);
        check_rest(log, &reader, &expected);
    }
}

/// Each kind of deviation has one diagnostic, regardless of the number of rows, so the list of
/// diagnostics of a real log stays short.
#[test]
fn real_logs_are_not_noisy() {
    for log in &LOGS.real() {
        let notes = open(&log.bytes).diagnostics().list().iter().map(|d| d.rule).collect::<Vec<_>>();
        let later = notes.iter().filter(|rule| rule.code > LAST_KNOWN_NOTE).count();
        assert!(later <= 3, "{}: {notes:?}", log.name);
    }
}

#[test]
fn quirk_files_match_their_manifest() {
    let Some(folder) = LOGS.folder() else { return };
    let folder = folder.join("quirks");
    let manifest = read_json(&folder.join("manifest.json"));
    let manifest = manifest.as_object().expect("an object");
    assert!(manifest.len() >= 50);
    for (file, want) in manifest {
        let bytes = std::fs::read(folder.join(file)).expect("the file").into();
        let opened = UlogReader::new(bytes, &ReadOptions::default());
        if want["open"] != "ok" {
            let error = opened.map(|_| ()).expect_err(file).to_string();
            let word = want["open"].as_str().expect("a word");
            assert!(error.contains(word), "{file}: {error}");
            continue;
        }
        check_quirk(file, want, &opened.expect(file));
    }
}

fn check_quirk(file: &str, want: &Json, reader: &UlogReader) {
    let rows: BTreeMap<_, _> = reader.topics().iter().map(|t| (t.name.clone(), t.count)).collect();
    assert_eq!(want["rows"], serde_json::json!(rows), "{file}");
    let list = |lost: bool| -> Json {
        let kept =
            reader.diagnostics().list().iter().filter(|d| (d.rule.severity == Severity::DataLost) == lost);
        let kept = kept.filter(|d| lost || d.rule.code <= LAST_KNOWN_NOTE);
        kept.map(|d| {
            let (start, end) = (d.range.start, d.range.end);
            if lost {
                serde_json::json!([d.rule.name, start, end])
            } else {
                serde_json::json!([d.rule.name, start])
            }
        })
        .collect()
    };
    let or_empty = |key: &str| want.get(key).cloned().unwrap_or_else(|| serde_json::json!([]));
    assert_eq!(or_empty("lost"), list(true), "{file}");
    assert_eq!(or_empty("notes"), list(false), "{file}");
    if let Some(utc) = want.get("utc") {
        let got = reader.info().utc.as_ref().expect(file);
        assert_eq!(utc["rule"], got.rule, "{file}");
        assert_eq!(utc["offset_us"].as_i64(), Some(got.nanos / 1000), "{file}");
    }
    let parameters = reader.parameters();
    for (key, got) in
        [("parameters_initial", &parameters.initial), ("default_system", &parameters.system_defaults)]
    {
        if let Some(want) = want.get(key) {
            check_values(file, want, got);
        }
    }
    if let Some(texts) = want.get("texts") {
        let texts = texts.as_array().expect("a list");
        let got: Vec<_> = reader.texts().expect("texts").collect();
        assert_eq!(texts.len(), got.len(), "{file}");
        for (want, got) in texts.iter().zip(&got) {
            assert_eq!(want[0].to_string().trim_matches('"'), got.level.to_string(), "{file}");
            assert_eq!(want[1].as_u64().map(|tag| tag.to_string()), got.source, "{file}");
            assert_eq!(want[2].as_i64(), got.time.map(|t| t.nanos / 1000), "{file}");
        }
    }
    let mut columns: BTreeMap<(String, String), Vec<Value>> = BTreeMap::new();
    let mut times: BTreeMap<String, Vec<Json>> = BTreeMap::new();
    for record in reader.records_in_file_order() {
        let topic = record.topic.name.clone();
        times
            .entry(topic.clone())
            .or_default()
            .push(record.time.map_or(Json::Null, |t| (t.nanos / 1000).into()));
        leaves("", &record.value().expect(file), &mut |name, value| {
            columns.entry((topic.clone(), name)).or_default().push(value.clone());
        });
    }
    for (topic, fields) in want["values"].as_object().into_iter().flatten() {
        for (field, want) in fields.as_object().expect("fields") {
            let what = format!("{file} {topic} {field}");
            if field == "timestamp" {
                let all_null = want.is_null() && times[topic].iter().all(Json::is_null);
                assert!(all_null || *want == Json::from(times[topic].clone()), "{what}");
                continue;
            }
            let got = &columns[&(topic.clone(), field.clone())];
            for (i, got) in got.iter().enumerate() {
                let want =
                    if want.is_string() { &Json::from(1) } else { want.get("all").unwrap_or(&want[i]) };
                match (want, got) {
                    // The manifest contains the stored byte. The reader returns a Boolean, which is
                    // true for every byte except 0.
                    (Json::Number(byte), Value::Bool(truth)) => {
                        assert_eq!(byte.as_u64() != Some(0), *truth, "{what}");
                    }
                    (Json::String(hex), Value::Text(text)) => {
                        let bytes: Vec<u8> = (0..hex.len() / 2)
                            .map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).expect("hex"))
                            .collect();
                        let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
                        assert_eq!(String::from_utf8_lossy(&bytes[..end]), *text, "{what}");
                    }
                    (want, got) => {
                        let want: Vec<_> = want
                            .as_array()
                            .map_or_else(|| vec![number(want)], |a| a.iter().map(number).collect());
                        let got: Vec<_> = flat(got).iter().map(|v| v.as_f64()).collect();
                        // The manifest contains a single value for a large array in which all
                        // values are the same.
                        let same =
                            if want.len() == 1 { got.iter().all(|v| *v == want[0]) } else { want == got };
                        assert!(same, "{what}: {want:?} {got:?}");
                    }
                }
            }
        }
    }
}

/// The list contains all topics and logs with stale times. No other real log has stale times.
#[test]
fn stale_times_are_reported() {
    if LOGS.folder().is_none() {
        return;
    }
    let mut told = Vec::new();
    for log in LOGS.real() {
        let Ok(reader) = UlogReader::new(log.bytes.clone(), &ReadOptions::default()) else { continue };
        let stale = reader.diagnostics().list().iter().filter(|d| d.rule == &STALE_TIMES);
        told.extend(stale.map(|d| format!("{}: {}", log.name, d.message)));
    }
    let want = [
        "sample: 678 records of commander_state/0 are 110 s before all other records, all at the same time",
        "sample: 3271 records of ekf2_innovations/0 are 112 s before all other records, all at the same time",
        "sample: 17072 records of sensor_preflight/0 are 112 s before all other records, all at the same time",
        "sample_appended_multiple: 95 records of commander_state/0 are 10.2 s before all other records, all at the same time",
        "sample_appended_multiple: 184 records of sensor_preflight/0 are 12.1 s before all other records, all at the same time",
        "sample_log_small: 1 record of mission/0 is 1167 s after all other records",
    ];
    assert_eq!(told, want);
}
