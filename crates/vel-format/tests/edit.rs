//! Tests of slices and merged logs, in which every message must keep its bytes.

mod support;

use rovelog_core::{Align, Format, LogReader, Select};
use support::{LOGS, open, readable};
use vel_format::{
    IndexOrigin, IndexState, Kind, Message, NewMessage, SizeRule, Vel, VelReader, WriteOptions, write_log,
};

fn raw(message: &Message<'_>) -> (u8, u32, i32, u64, Vec<u8>) {
    let header = message.header;
    (
        header.marker,
        header.type_id.get(),
        header.version.get(),
        header.timestamp.get().to_bits(),
        message.data.to_vec(),
    )
}

fn slice(log: &VelReader, select: &Select) -> VelReader {
    let mut out = Vec::new();
    log.slice(select, &mut out).expect("memory takes any bytes");
    open(&out.into())
}

#[test]
fn a_slice_has_exactly_the_selected_messages() {
    for (log, reader) in readable() {
        let Some((first, last)) = reader.info().start.zip(reader.info().end) else { continue };
        let middle = first.nanos.midpoint(last.nanos);
        let mut selects = vec![Select::all(), Select::all().between(Some(middle), None)];
        selects.extend(reader.topics().iter().map(|topic| Select::topic(topic.name.clone())));
        for select in selects {
            let part = slice(&reader, &select);
            let kept = |m: &Message<'_>| {
                let topic =
                    reader.records_in_file_order().find(|record| record.offset == m.offset).map(|r| r.topic);
                let wanted = topic.map_or(select.topics.is_none(), |topic| select.keeps_topic(topic));
                wanted && select.keeps_time(m.nanos)
            };
            let want: Vec<_> = reader.messages().filter(kept).map(|m| raw(&m)).collect();
            let got: Vec<_> = part.messages().map(|m| raw(&m)).collect();
            assert!(got == want, "{} {select:?}: {} messages of {}", log.name, got.len(), want.len());
            assert!(!matches!(part.index(), IndexState::Rebuilt(_)), "{}: {:?}", log.name, part.index());
            let again = slice(&part, &select);
            assert!(again.messages().map(|m| raw(&m)).eq(part.messages().map(|m| raw(&m))), "{}", log.name);
        }
    }
}

#[test]
fn an_undamaged_log_is_its_own_slice() {
    for name in
        ["all6_excl_49", "all6_incl_31", "good", "index_from_startup", "gap_index_next", "end_terminator"]
    {
        let Some(log) = LOGS.real_log(name) else { return };
        let mut out = Vec::new();
        open(&log.bytes).slice(&Select::all(), &mut out).unwrap();
        assert!(out == log.bytes, "{name}");
    }
}

#[test]
fn the_last_message_before_the_window_is_kept() {
    let reader = open(&LOGS.case("all-kinds").bytes);
    let start = reader.info().end.unwrap().nanos;
    let part = slice(&reader, &Select::all().between(Some(start), None).with_last_before());
    assert_eq!(part.topics().len(), reader.topics().len());
}

#[test]
fn parts_are_merged_into_the_whole() {
    for name in ["good", "pose_xyzw"] {
        let Some(log) = LOGS.real_log(name) else { return };
        let whole = open(&log.bytes);
        let topics = |keep: fn(&str) -> bool| {
            let names = whole.topics().iter().map(|topic| topic.name.clone()).filter(|name| keep(name));
            slice(&whole, &Select::topics(names))
        };
        let pictures = topics(|name| name.starts_with("ImageM"));
        let rest = topics(|name| !name.starts_with("ImageM"));
        let mut out = Vec::new();
        let merged = Vel::merge(&[&rest, &pictures], Align::AsIs, &mut out).unwrap();
        assert!(out == log.bytes, "{name}");
        assert_eq!(merged.records, whole.info().records);
        // Logs that contain only images cannot be aligned, because images do not show how their
        // clocks relate.
        assert!(Vel::merge(&[&rest, &pictures], Align::Shared, &mut Vec::new()).is_err());
        assert!(Vel::merge(&[&rest, &rest], Align::Shared, &mut Vec::new()).is_ok());
    }
}

/// In one of the two logs, the program started 100 s later. Messages with the same UTC time must
/// get the same time in the merged log.
#[test]
fn clocks_are_aligned_by_utc() {
    let [a, b] = ["gps-late-fixes", "gps-two-digit-years"].map(|name| open(&LOGS.case(name).bytes));
    let mut out = Vec::new();
    Vel::merge(&[&a, &b], Align::Utc, &mut out).unwrap();
    let merged = open(&out.into());
    assert_eq!(merged.messages().len(), a.messages().len() + b.messages().len());
    let utc = |log: &VelReader| log.meaning().gps.utc.clone().unwrap().offset_nanos;
    // The clock of the second log started 25 ms after the clock of the first log.
    assert_eq!(utc(&b) - utc(&a), 25_000_000);
    let times: Vec<i64> = merged.messages().map(|message| message.nanos).collect();
    assert!(times.is_sorted() && times.contains(&25_000_000), "{times:?}");
    let none = open(&LOGS.case("gps-no-date").bytes);
    assert!(Vel::merge(&[&a, &none], Align::Utc, &mut Vec::new()).is_err());
}

/// The difference between the clocks is too large for 64 bits of nanoseconds.
#[test]
fn clocks_with_a_huge_difference_are_refused() {
    let log = open(&LOGS.case("gps-two-digit-years").bytes);
    let far = |millis: f64| {
        let mut fix = NewMessage::copy(&log.payloads(Kind::Gps).next().expect("a position").0);
        fix.millis = millis;
        let mut out = Vec::new();
        write_log(&[fix], &WriteOptions::default(), &mut out).expect("memory takes it");
        open(&out.into())
    };
    let (early, late) = (far(-7e12), far(9.2e12));
    for align in [Align::Utc, Align::Shared] {
        let merged = Vel::merge(&[&early, &late], align, &mut Vec::new());
        assert!(merged.unwrap_err().to_string().contains("more than 292 years apart"), "{align:?}");
    }
}

/// The data of the messages is too short for their content. The size rule can be inferred from one
/// such message, but not from two.
#[test]
fn merged_logs_of_short_messages_keep_a_readable_size_rule() {
    let short = |rule: SizeRule, len: usize| {
        let message = NewMessage::raw(0x0001_4043, 100, 1000.0, vec![0; len]);
        let mut out = Vec::new();
        write_log(&[message], &WriteOptions::default().with_size_rule(rule), &mut out)
            .expect("memory takes it");
        open(&out.into())
    };
    let fits =
        |log: &VelReader| log.messages().map(|m| (m.data.len(), m.payload().is_some())).collect::<Vec<_>>();
    for (rule, len) in [(SizeRule::Inclusive, 24), (SizeRule::Exclusive, 24), (SizeRule::Inclusive, 7)] {
        let log = short(rule, len);
        assert_eq!((log.size_rule(), fits(&log)), (rule, vec![(len, false)]));
        let mut out = Vec::new();
        let merged = Vel::merge(&[&log, &log], Align::AsIs, &mut out).unwrap();
        let again = open(&out.into());
        assert_eq!(fits(&again), [(len, false); 2], "{rule:?}: {:?}", again.size_rule());
        assert_eq!((merged.records, again.info().records), (0, 0), "no record is made up");
    }
}

/// The sliced message has four more data bytes than its type defines. A reader of a log with only
/// this message would infer a wrong size rule, so the slice must not be ambiguous.
#[test]
fn a_slice_of_one_message_has_a_readable_size_rule() {
    let longer = NewMessage::raw(0x0001_4043, 100, 0.0, vec![5; 32]);
    let exact = |millis| NewMessage::raw(0x0001_4043, 100, millis, vec![6; 28]);
    let mut out = Vec::new();
    let messages = [longer, exact(1000.0), exact(2000.0), exact(3000.0)];
    write_log(&messages, &WriteOptions::default(), &mut out).expect("memory takes it");
    let log = open(&out.into());
    let part = slice(&log, &Select::all().between(None, Some(500_000_000)));
    let data: Vec<_> = part.messages().map(|message| message.data.to_vec()).collect();
    assert_eq!(data, [vec![5; 32]]);
}

fn speeds(n: u32, millis: f64) -> Vec<NewMessage<'static>> {
    let obd = |i: u32| NewMessage::raw(0x0001_4043, 100, f64::from(i) * millis, vec![0; 28]);
    (0..n).map(obd).collect()
}

fn encode(messages: &[NewMessage<'_>], options: &WriteOptions) -> Vec<u8> {
    let mut out = Vec::new();
    write_log(messages, options, &mut out).expect("memory takes it");
    out
}

/// A slice keeps the size rule, the version, the origin of the index, and the end mark of its log.
#[test]
fn a_slice_has_the_conventions_of_its_log() {
    for size_rule in SizeRule::ALL {
        for (version, origin, terminator) in [
            ((1, 1), IndexOrigin::FirstMessage, false),
            ((2, 7), IndexOrigin::FirstMessage, true),
            ((1, 1), IndexOrigin::ProgramStart, false),
        ] {
            let mut options = WriteOptions::default().with_size_rule(size_rule);
            (options.version, options.origin, options.terminator) = (version, origin, terminator);
            let bytes = encode(&speeds(20, 700.0)[5..], &options);
            let log = open(&bytes.clone().into());
            assert_eq!(*log.index(), IndexState::Good(origin), "{options:?}");
            let mut out = Vec::new();
            log.slice(&Select::all(), &mut out).expect("memory takes it");
            assert!(out == bytes, "{options:?}");
            // A merged log has no end mark.
            let mut merged = Vec::new();
            Vel::merge(&[&log], Align::AsIs, &mut merged).expect("memory takes it");
            let end = bytes.len() - if terminator { 4 } else { 0 };
            assert!(merged == bytes[..end], "{options:?}");
        }
    }
}

/// The index of the damaged log counts from the start of the program. The index of the recovered
/// log counts from the first message.
#[test]
fn a_recovered_log_has_an_index_from_the_first_message() {
    let mut options = WriteOptions::default();
    options.origin = IndexOrigin::ProgramStart;
    let mut bytes = encode(&speeds(20, 700.0)[5..], &options);
    bytes.extend([7; 30]);
    let log = open(&bytes.into());
    assert_eq!(*log.index(), IndexState::Good(IndexOrigin::ProgramStart));
    let mut out = Vec::new();
    let report = log.recover(&mut out, &rovelog_core::RecoverOptions::default()).expect("memory takes it");
    assert_eq!((report.records, report.lost_bytes(), report.unchanged), (15, 30, false));
    assert_eq!(*open(&out.into()).index(), IndexState::Good(IndexOrigin::FirstMessage));
}

/// Messages without content are not records, so they are counted separately. Everything that cannot
/// be merged is also counted separately.
#[test]
fn slices_and_merged_logs_count_kept_and_left_out_messages() {
    let mut messages = speeds(4, 100.0);
    messages.extend([400.0, 450.0].map(|millis| NewMessage::raw(0x0001_4043, 100, millis, vec![1; 5])));
    let mut invalid = NewMessage::raw(0x0001_4043, 100, 500.0, vec![0; 28]);
    invalid.marker = Some(vel_format::wire::MARKER_INVALID);
    messages.extend([invalid, NewMessage::raw(0x0001_4043, 100, 600.0, vec![2; 28])]);
    let log = open(&encode(&messages, &WriteOptions::default()).into());
    let mut out = Vec::new();
    let sliced = log.slice(&Select::all(), &mut out).expect("memory takes it");
    assert_eq!((sliced.records, sliced.others, sliced.topics, sliced.bytes), (5, 2, 1, out.len() as u64));

    let good = open(&encode(&speeds(3, 100.0), &WriteOptions::default()).into());
    let mut out = Vec::new();
    let merged = Vel::merge(&[&log, &good], Align::AsIs, &mut out).expect("memory takes it");
    assert_eq!((merged.records, merged.topics, merged.bytes), (8, 1, out.len() as u64));
    assert_eq!(merged.left_out, ["1 message that the writer marked as invalid"]);
    let merged = Vel::merge(&[&good, &good], Align::AsIs, &mut Vec::new()).expect("memory takes it");
    assert!(merged.left_out.is_empty(), "{:?}", merged.left_out);
}
