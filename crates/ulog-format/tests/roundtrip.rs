//! Tests that copies of logs are identical, and that written logs are read back correctly.

mod support;

use std::io::Cursor;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use rovelog_core::internal::layout::{Element, Layout, Len};
use rovelog_core::{LogReader, Scalar, Value};
use rovelog_testing::{Full, Log, json_of};
use support::{LOGS, open, quirks, rewritten, try_open};
use ulog_format::wire::{FileHeader, FlagBits, FlagBitsMessage, Message};
use ulog_format::{DefaultOf, append, append_to_file};
use ulog_format::{FormatBuilder, UlogError, UlogWriter};
use zerocopy::FromBytes;

/// A field of a format in a randomly generated log.
#[derive(Clone, Debug)]
enum Part {
    Number(usize, Option<usize>),
    Text(usize),
    Nested(usize, Option<usize>),
    Padding(usize),
}

fn part() -> impl Strategy<Value = Part> {
    let len = || prop::option::of(0..4usize);
    prop_oneof![
        4 => (0..11usize, len()).prop_map(|(ty, len)| Part::Number(ty, len)),
        1 => (0..6usize).prop_map(Part::Text),
        2 => (0..8usize, len()).prop_map(|(format, len)| Part::Nested(format, len)),
        1 => (1..5usize).prop_map(Part::Padding),
    ]
}

/// Returns the format with the given number. Its nested types are formats with lower numbers, so
/// the first format has no nested types.
fn format(number: usize, parts: &[Part]) -> FormatBuilder {
    const NUMBERS: [&str; 11] = [
        "bool", "int8_t", "uint8_t", "int16_t", "uint16_t", "int32_t", "uint32_t", "int64_t", "uint64_t",
        "float", "double",
    ];
    let array = |len: &Option<usize>| len.map_or(String::new(), |len| format!("[{len}]"));
    let mut text = format!("f{number}:uint64_t timestamp;");
    for (i, part) in parts.iter().enumerate() {
        let field = match part {
            Part::Number(ty, len) => format!("{}{} x{i};", NUMBERS[*ty], array(len)),
            Part::Text(len) => format!("char[{len}] x{i};"),
            Part::Nested(..) if number == 0 => format!("char x{i};"),
            Part::Nested(format, len) => format!("f{}{} x{i};", format % number, array(len)),
            Part::Padding(len) => format!("uint8_t[{len}] _padding{i};"),
        };
        text.push_str(&field);
    }
    FormatBuilder::parse(&text).expect("the grammar")
}

/// Returns a random value for a row with the given layout. The value has the form that the reader
/// returns.
fn value(layout: &Layout, random: &mut impl FnMut() -> u64) -> Value {
    let one = |element: &Element, random: &mut dyn FnMut() -> u64| match element {
        Element::Scalar(Scalar::Bool) => Value::Bool(random() & 1 == 1),
        Element::Scalar(Scalar::Float32) => {
            Value::F32(f32::from_bits(u32::try_from(random() >> 32).expect("32 bits")))
        }
        Element::Scalar(Scalar::Float64) => Value::F64(f64::from_bits(random())),
        Element::Scalar(scalar) => {
            let bits = scalar.size() * 8;
            let (raw, width) = (random(), u8::try_from(bits).expect("small"));
            if scalar.name().starts_with('u') {
                Value::UInt(raw >> (64 - bits), width)
            } else {
                Value::Int(raw.cast_signed() >> (64 - bits), width)
            }
        }
        Element::Struct(inner) => value(inner, &mut { random }),
        _ => unreachable!("texts are whole, and there is nothing else"),
    };
    let fields = layout.fields().map(|(field, slot)| {
        let value = match (&slot.element, slot.len) {
            (Element::Char(_), len) => {
                let len = if let Len::Fixed(len) = len { len } else { 1 };
                let len = random() % (u64::from(len) + 1);
                Value::Text((0..len).map(|_| char::from(b'a' + (random() % 26).to_le_bytes()[0])).collect())
            }
            (element, Len::Fixed(len)) => Value::List((0..len).map(|_| one(element, random)).collect()),
            (element, _) => one(element, random),
        };
        (std::sync::Arc::clone(&field.name), value)
    });
    Value::Struct(fields.collect())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        rng_seed: RngSeed::Fixed(3),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Writes random rows, reads them back, and writes the values again. The bytes of both logs
    /// must be the same.
    #[test]
    fn any_model_reads_back_as_it_was_written(
        formats in prop::collection::vec(prop::collection::vec(part(), 0..6), 1..6),
        rows in prop::collection::vec((0..6usize, any::<u64>()), 0..30),
        sync in any::<bool>(),
    ) {
        let mut log = scratch();
        if sync {
            log = log.with_sync();
        }
        let formats: Vec<_> = formats.iter().enumerate().map(|(i, parts)| format(i, parts)).collect();
        // Formats are defined in reverse order, because types may be used before they are defined.
        for format in formats.iter().rev() {
            log.define(format).unwrap();
        }
        let topics: Vec<_> = formats.iter().map(|format| log.subscribe(format.name(), 0).unwrap()).collect();
        let mut want = Vec::new();
        for (topic, mut seed) in rows {
            let topic = topics[topic % topics.len()];
            let mut random = || {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                seed ^ seed >> 29
            };
            let row = value(log.layout(topic).unwrap(), &mut random);
            log.write_row(topic, &row).unwrap();
            want.push(format!("{} {row:?}", topic.msg_id()));
        }
        let bytes = log.finish().unwrap();
        let log = open(&bytes.clone().into());
        prop_assert!(log.diagnostics().list().iter().all(|d| d.rule.name == "timestamp_out_of_range"));
        let got: Vec<_> = log
            .records_in_file_order()
            .map(|record| format!("{} {:?}", record.topic.id.0, record.value().expect("decodes")))
            .collect();
        prop_assert_eq!(got, want);
        prop_assert_eq!(rewritten(&bytes.clone().into(), &log).0, bytes);
    }

    /// Long values are divided into parts without loss. Texts are divided only between characters.
    #[test]
    fn long_values_are_split_and_joined(len in 0..200_000usize, letter in prop::char::any(), wide in any::<bool>()) {
        let text: String = std::iter::repeat_n(letter, len / letter.len_utf8()).collect();
        let numbers: Vec<u32> = (0..u32::try_from(len / 4).expect("small")).collect();
        let mut log = scratch();
        if wide { log.multi_info("x", numbers.as_slice()) } else { log.multi_info("x", &text) }.unwrap();
        let log = open(&log.finish().unwrap().into());
        prop_assert_eq!(log.diagnostics().total(), 0);
        let lists = log.multi_infos();
        prop_assert_eq!(lists["x"].len(), 1);
        if wide {
            let joined: Vec<_> = lists["x"][0].iter().flat_map(|part| match part {
                Value::List(items) => items.clone(),
                other => panic!("{other:?}"),
            }).collect();
            prop_assert_eq!(joined, numbers.iter().map(|n| Value::UInt((*n).into(), 32)).collect::<Vec<_>>());
        } else {
            let joined: String = lists["x"][0].iter().map(|part| part.as_str().expect("text")).collect();
            prop_assert!(joined == text);
        }
    }
}

fn scratch() -> UlogWriter<Vec<u8>> {
    UlogWriter::new(Vec::new(), 1_000_000).expect("a header")
}

fn simple(name: &str) -> FormatBuilder {
    FormatBuilder::new(name).field::<u64>("timestamp").field::<f32>("x").padding(4)
}

fn at(time: u64, x: f32) -> Value {
    Value::record([("timestamp", Value::UInt(time, 64)), ("x", Value::F32(x))])
}

/// Copies a log message by message and compares the result. Returns `false` if the log is damaged.
fn check(log: &Log) -> bool {
    let Some(reader) = try_open(&log.bytes).filter(support::has_header) else { return false };
    let (bytes, between) = rewritten(&log.bytes, &reader);
    assert!(bytes == log.bytes, "{} is not the same", log.name);
    // Bytes between messages are allowed if the log was cut before data was appended.
    let is_cut = |range: &std::ops::Range<u64>| reader.appended_offsets().contains(&range.end);
    let whole = between.iter().all(is_cut);
    // The header of another log in the file is not a message, so it is not copied.
    let explained = reader.info().lost.losses > 0 || !reader.sessions().is_empty();
    assert!(whole || explained, "{}", log.name);
    whole
}

#[test]
fn every_undamaged_corpus_file_is_written_back_byte_for_byte() {
    let logs = LOGS.corpus();
    let same = logs.iter().filter(|log| check(log)).count();
    let sound = |log: &&Log| try_open(&log.bytes).is_some_and(|log| log.info().lost.losses == 0);
    let undamaged = logs.iter().filter(sound).count();
    assert!(same >= undamaged && undamaged > 70, "{same} the same, {undamaged} undamaged");
}

#[test]
fn every_undamaged_real_log_is_written_back_byte_for_byte() {
    if LOGS.folder().is_none() {
        return;
    }
    let same: Vec<_> = LOGS.real().into_iter().filter(check).map(|log| log.name).collect();
    assert_eq!(same.len(), 10, "{same:?}");
    assert!(same.iter().any(|name| name.contains("appended")));
    assert!(quirks().iter().filter(|log| check(log)).count() > 35);
}

#[test]
fn raw_messages_are_copied_with_any_content() {
    let log = LOGS.case("one-topic+multi-id+sync+dropout+texts+appended");
    let (header, mut rest) = FileHeader::ref_from_prefix(&log.bytes).expect("a header");
    let mut copy = UlogWriter::copying(Vec::new(), header).expect("a ULog");
    while let [a, b, msg_type, behind @ ..] = rest {
        let (payload, next) = behind.split_at(usize::from(u16::from_le_bytes([*a, *b])));
        copy.write_raw(*msg_type, payload).expect("sound");
        rest = next;
    }
    assert_eq!(copy.position(), log.bytes.len() as u64);
    assert_eq!(copy.finish().expect("complete"), log.bytes);
}

#[test]
fn a_copy_may_be_extended_through_the_typed_calls() {
    let reader = open(&LOGS.case("one-topic+multi-id").bytes);
    let mut copy = UlogWriter::copying(Vec::new(), reader.header()).expect("a ULog");
    for (_, message) in reader.messages() {
        copy.write_message(&message).expect("sound");
    }
    let known = &reader.topics()[0];
    let rows = reader.records_in_file_order().filter(|record| record.topic.id == known.id);
    let row = rows.last().expect("a row").payload.to_vec();
    let topic = copy.topic(&known.type_name, 0).expect("subscribed");
    copy.write_row_bytes(topic, &row).expect("of its size");
    let other = copy.subscribe(&known.type_name, 7).expect("another instance");
    copy.write_row_bytes(other, &row).expect("of its size");
    let copy = open(&copy.finish().expect("complete").into());
    assert_eq!(copy.topics()[0].count, known.count + 1);
    assert_eq!(copy.topics().last().map(|t| t.count), Some(1));
    assert_eq!(copy.diagnostics().total(), reader.diagnostics().total());
}

#[test]
fn every_kind_of_message_from_scratch_reads_back() {
    let mut log = scratch();
    log.info("sys_name", "PX4").unwrap();
    log.info("ver_sw_release", 0x010e_00ff_u32).unwrap();
    log.info("offsets", [1.5f32, -2.0]).unwrap();
    log.info("blob", Value::Bytes(vec![1, 2])).unwrap();
    log.info("flags", Value::List(vec![Value::Bool(true), Value::Bool(false)])).unwrap();
    log.info("empty", "").unwrap();
    let boot_text = "h\u{e9}".repeat(50_000);
    log.multi_info("boot", boot_text.as_str()).unwrap();
    log.multi_info("boot", "second").unwrap();
    log.multi_info_continued("boot", " half").unwrap();
    log.parameter("A_INT", -7).unwrap();
    log.parameter("B_FLOAT", 0.1).unwrap();
    log.default_parameter("A_INT", 1, DefaultOf::System).unwrap();
    log.default_parameter("B_FLOAT", 2.5, DefaultOf::Both).unwrap();
    log.define(&simple("t")).unwrap();
    let t = log.subscribe("t", 0).unwrap();
    let other = log.subscribe("t", 3).unwrap();
    assert_eq!((t.msg_id(), other.msg_id()), (0, 1));
    log.write_row(t, &at(1_500_000, 0.25)).unwrap();
    log.parameter("A_INT", 9).unwrap();
    log.text(4, 1_600_000, "careful").unwrap();
    log.tagged_text(7, 513, 1_700_000, "tagged").unwrap();
    log.dropout(250).unwrap();
    log.sync().unwrap();
    log.info("late", 1u8).unwrap();
    log.write_row(other, &at(1_800_000, -1.0)).unwrap();
    log.unsubscribe(other).unwrap();
    assert!(matches!(log.write_row(other, &at(1, 1.0)), Err(UlogError::NotSubscribed { msg_id: 1 })));
    let bytes = log.finish().unwrap();
    let log = open(&bytes.into());
    assert_eq!(log.diagnostics().total(), 0, "{:?}", log.diagnostics().list());
    assert_eq!(log.flag_bits().unwrap().compat_flags[0], 1, "defaults are announced");
    let json = support::picture(&log);
    assert_eq!(json["ulog"]["info"]["offsets"], serde_json::json!([1.5, -2.0]));
    assert_eq!(json["ulog"]["info"]["blob"], serde_json::json!([1, 2]));
    assert_eq!(json["ulog"]["parameters"]["initial"], serde_json::json!({"A_INT": -7, "B_FLOAT": 0.1}));
    assert_eq!(json["ulog"]["parameters"]["default_system"], serde_json::json!({"A_INT": 1, "B_FLOAT": 2.5}));
    assert_eq!(json["ulog"]["parameters"]["default_setup"], serde_json::json!({"B_FLOAT": 2.5}));
    assert_eq!(json["ulog"]["parameters"]["changed"][0]["t_ns"], "1500000000");
    assert_eq!(json["ulog"]["dropouts"], serde_json::json!([{"t_ns": "1500000000", "ms": 250}]));
    assert_eq!(json["texts"][1]["tag"], 513);
    let boot = &log.multi_infos()["boot"];
    let text = |list: &[Value]| list.iter().map(|part| part.as_str().expect("text")).collect::<String>();
    assert_eq!(boot.len(), 2);
    assert_eq!(boot[0].len(), 3);
    assert!(text(&boot[0]) == boot_text, "a text is split between its characters");
    assert_eq!(text(&boot[1]), "second half");
    let records: Vec<_> =
        log.records_in_file_order().map(|r| (r.topic.name.clone(), r.payload.len())).collect();
    assert_eq!(records, [("t/0".to_owned(), 12), ("t/3".to_owned(), 12)], "padding at the end is left out");
}

#[test]
fn sync_messages_are_written_each_half_second_of_log_time() {
    let mut log = scratch().with_sync();
    log.define(&simple("t")).unwrap();
    let t = log.subscribe("t", 0).unwrap();
    let mut row = log.row_buffer(t).unwrap();
    let time = row.place("timestamp").unwrap();
    for i in 0..=100u64 {
        row.set(time, 1_000_000 + i * 20_000).unwrap();
        log.write(&row).unwrap();
    }
    let log = open(&log.finish().unwrap().into());
    let syncs = log.messages().filter(|(_, message)| matches!(message, Message::Sync(_))).count();
    assert_eq!((syncs, log.info().records), (4, 101));
}

#[test]
fn invalid_messages_are_rejected() {
    let bad = |format: FormatBuilder| {
        let error = scratch().define(&format).unwrap_err();
        assert!(matches!(error, UlogError::BadFormat { .. }), "{error}");
        assert!(rovelog_core::Error::from(error).next.is_some());
    };
    bad(FormatBuilder::new("a b").field::<u64>("timestamp"));
    bad(FormatBuilder::new("float").field::<u64>("timestamp"));
    bad(FormatBuilder::new("t"));
    bad(FormatBuilder::new("t").field::<u64>("time stamp"));
    bad(FormatBuilder::new("t").field::<u8>("x").field::<u8>("x"));
    bad(FormatBuilder::new("t").nested("a:b", "x"));
    bad(FormatBuilder::new("t").array::<u8>("x", 65_536));
    assert!(FormatBuilder::parse("t:uint64_t timestamp;;").is_err());

    let mut log = scratch();
    log.define(&simple("t")).unwrap();
    assert!(log.define(&simple("t")).is_err(), "the same format again");
    log.define(&FormatBuilder::new("no_time").field::<f32>("x")).unwrap();
    log.define(&FormatBuilder::new("late_time").field::<u8>("x").field::<u64>("timestamp")).unwrap();
    log.define(&FormatBuilder::new("short_time").field::<u32>("timestamp")).unwrap();
    log.define(&FormatBuilder::new("big").field::<u64>("timestamp").array::<f64>("x", 8192)).unwrap();
    log.define(&FormatBuilder::new("a").field::<u64>("timestamp").nested("b", "b")).unwrap();
    for name in ["no_time", "late_time", "short_time", "big", "a", "missing"] {
        assert!(log.subscribe(name, 0).is_err(), "{name}");
    }
    // Undefined types and types that contain themselves are detected when the data section starts.
    assert!(matches!(log.text(6, 1, "x"), Err(UlogError::BadFormat { .. })));
    log.define(&FormatBuilder::new("b").nested("a", "a")).unwrap();
    assert!(log.subscribe("a", 0).unwrap_err().to_string().contains("contains itself"));
    assert!(log.finish().is_err());

    let mut log = scratch();
    log.info("name", 1u8).unwrap();
    assert!(log.info("name", 1u8).is_err(), "an information message is written once");
    assert!(log.info("two words", 1u8).is_err());
    assert!(log.info(&"n".repeat(250), 1u8).is_err());
    assert!(log.info("nothing", Value::Null).is_err());
    assert!(matches!(log.info("long", "x".repeat(70_000)), Err(UlogError::TooLong { .. })));
    assert!(log.multi_info_continued("boot", "x").is_err());
    assert!(log.default_parameter("P", 1, DefaultOf::System).is_err(), "a default before its parameter");
    log.parameter("P", 1).unwrap();
    assert!(log.parameter("P", 1.0).is_err());
    log.define(&simple("t")).unwrap();
    let t = log.subscribe("t", 0).unwrap();
    assert!(log.subscribe("t", 0).is_err());
    assert!(matches!(log.define(&simple("u")), Err(UlogError::DefinitionsClosed { .. })));
    assert!(matches!(
        log.default_parameter("P", 2, DefaultOf::Both),
        Err(UlogError::DefinitionsClosed { .. })
    ));
    assert!(log.text(8, 1, "x").is_err());
    assert!(log.text(1, 1, &"x".repeat(65_527)).is_err());
    assert!(matches!(log.write_row_bytes(t, &[0; 13]), Err(UlogError::RowSize { got: 13, .. })));
    assert!(log.write_raw(b'O', &[1]).is_err());
    let flags = FlagBits::read_from_bytes(&[0; 40]).unwrap();
    assert!(log.write_message(&Message::FlagBits(FlagBitsMessage { flags, more: &[] })).is_err());
    let row = |x: Value| Value::record([("timestamp", Value::UInt(1, 64)), ("x", x)]);
    for (value, why) in [
        (row(Value::F64(0.5)), "the value of x cannot be written: "),
        (row(Value::Null), "the value of x cannot be written: null is not a valid value for float"),
        (
            Value::record([("timestamp", Value::UInt(1, 64))]),
            "the value of x cannot be written: the value is missing",
        ),
        (Value::UInt(1, 8), "the value of t cannot be written: it must be a struct"),
        (
            Value::record([("timestamp", Value::Int(-1, 64)), ("x", Value::F32(0.0))]),
            "the value of timestamp cannot be written: \"-1\"",
        ),
        (
            Value::record([
                ("timestamp", Value::UInt(1, 64)),
                ("x", Value::F32(0.0)),
                ("y", Value::F32(0.0)),
            ]),
            "the value of y cannot be written: t has no such field",
        ),
    ] {
        let error = log.write_row(t, &value).unwrap_err().to_string();
        assert!(error.starts_with(why), "{error}");
    }
    let mut row = log.row_buffer(t).unwrap();
    let x = row.place("x").unwrap();
    assert!(
        row.set(x, 1u8).is_err() && row.set_array(x, &[1.0f32]).is_err() && row.set_text(x, "a").is_err()
    );
    assert!(row.place("y").is_err() && row.place("_padding0").is_err());
    // The rejected calls have not changed the log.
    let log = open(&log.finish().unwrap().into());
    assert_eq!((log.info().records, log.diagnostics().total()), (0, 0));
}

#[test]
fn an_output_that_fails_cannot_be_finished() {
    let mut log = UlogWriter::new(Full(100_000), 0).unwrap();
    log.define(&simple("t")).unwrap();
    let t = log.subscribe("t", 0).unwrap();
    let failed = (0..100_000).find_map(|_| log.write_row(t, &at(1, 1.0)).err());
    assert!(matches!(failed, Some(UlogError::Io(_))), "{failed:?}");
    let again = log.finish().map(drop);
    assert!(
        matches!(&again, Err(UlogError::Io(why)) if why.to_string().starts_with("an earlier write failed"))
    );
}

#[test]
fn appending_follows_the_specification() {
    let mut log = scratch();
    log.define(&simple("t")).unwrap();
    let t = log.subscribe("t", 0).unwrap();
    log.write_row(t, &at(2_000_000, 1.0)).unwrap();
    log.write_row(t, &at(2_100_000, 2.0)).unwrap();
    let mut bytes = log.finish().unwrap();
    // The log ends in the middle of a row, as after a crash.
    bytes.truncate(bytes.len() - 5);
    let len = bytes.len() as u64;
    let mut file = Cursor::new(bytes);
    append(&mut file, |_| Ok(())).unwrap();
    assert_eq!(file.get_ref().len() as u64, len, "nothing was appended");
    assert!(append(&mut file, |more| more.text(9, 0, "x")).is_err());
    assert!(open(&file.get_ref().clone().into()).appended_offsets().is_empty());
    for i in 0..3u8 {
        append(&mut file, |more| {
            assert!(matches!(more.define(&simple("u")), Err(UlogError::DefinitionsClosed { .. })));
            more.multi_info("hardfault_plain", format!("crash {i}"))?;
            let t = more.topic("t", 0).expect("the log has it");
            more.write_row(t, &at(3_000_000 + u64::from(i), 3.0))?;
            let new = more.subscribe("t", 1 + i)?;
            more.write_row(new, &at(4_000_000, 4.0))
        })
        .unwrap();
    }
    assert!(matches!(append(&mut file, |more| more.dropout(1)), Err(UlogError::CannotAppend { .. })));
    let log = open(&file.into_inner().into());
    assert_eq!(log.appended_offsets().len(), 3);
    assert_eq!(log.appended_offsets()[0], len);
    assert_eq!((log.topics()[0].count, log.topics().len(), log.info().records), (4, 4, 7));
    let problems: Vec<_> = log.diagnostics().list().iter().map(|d| d.rule.name).collect();
    assert_eq!(problems, ["cut"]);
    assert_eq!(json_of(&log.multi_infos()["hardfault_plain"][2][0]), "crash 2");
}

#[test]
fn appending_to_files_and_to_logs_that_reject_it() {
    let path = std::env::temp_dir().join(format!("ulog-append-{}.ulg", std::process::id()));
    let log = LOGS.case("one-topic");
    std::fs::write(&path, &log.bytes).unwrap();
    let appended = append_to_file(&path, |more| more.text(2, 5_000_000, "crashed"));
    let bytes = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    appended.unwrap();
    let reader = open(&bytes.into());
    assert_eq!(reader.diagnostics().total(), 0);
    assert_eq!(reader.appended_offsets(), [log.bytes.len() as u64]);
    assert_eq!(reader.texts().unwrap().last().unwrap().text, "crashed");

    for name in ["no-flag-bits+version-0", "appended-three-sections"] {
        let log = LOGS.case(name);
        let mut file = Cursor::new(log.bytes.to_vec());
        let refused = append(&mut file, |more| more.dropout(1));
        assert!(matches!(refused, Err(UlogError::CannotAppend { .. })), "{name}");
        assert_eq!(file.into_inner(), log.bytes, "{name}: nothing is changed");
    }
}
