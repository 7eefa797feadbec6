//! Reads MCAP files of RLD and VEL logs with the crate `mcap` and a small protobuf reader, and
//! compares them with the log readers. `cargo xtask oracle export` checks messages of Foxglove's
//! types.

use std::collections::BTreeMap;

use mcap::MessageStream;
use rovelog::rld_format::unit::Unit;
use rovelog::rld_format::wire::BlockTimes;
use rovelog::rld_format::{ChannelSpec, LogSpec, RldReader, RldWriter};
use rovelog::rld_format::{encode_row, set_counts};
use rovelog::{AnyLog, ReadOptions, Select};
use rovelog_export::mcap::{McapOptions, write};
use rovelog_export::{Loss, Provenance};

/// For each topic, the name of its schema, and its messages. Each message has its log time and
/// payload.
type Topics = BTreeMap<String, (Option<String>, Vec<(u64, Vec<u8>)>)>;

fn written(log: &AnyLog, change: impl FnOnce(&mut McapOptions)) -> (Topics, Vec<Loss>, Vec<String>) {
    let mut options = McapOptions::default();
    change(&mut options);
    let made = || {
        let mut out = Vec::new();
        let provenance = Provenance::new("log");
        let done = write(log, &Select::all(), &options, &provenance, &mut out, &mut |_| ()).unwrap();
        (out, done)
    };
    let (bytes, written) = made();
    assert_eq!(bytes, made().0, "the same log gives other bytes");
    // If the clock was set during the recording, the UTC times of consecutive messages jump.
    let is_clock_set = match log {
        AnyLog::Rld(reader) => {
            let report = reader.clock_report();
            !report.steps.is_empty() || !report.backwards.is_empty()
        }
        _ => false,
    };
    let (mut topics, mut last, mut count) = (Topics::new(), 0, 0);
    for message in MessageStream::new(&bytes).unwrap() {
        let message = message.unwrap();
        assert!(is_clock_set || message.log_time >= last, "{}", message.channel.topic);
        last = message.log_time;
        count += 1;
        let schema = message.channel.schema.as_ref().map(|schema| schema.name.clone());
        let topic = topics.entry(message.channel.topic.clone()).or_insert_with(|| (schema, Vec::new()));
        topic.1.push((message.log_time, message.data.to_vec()));
    }
    assert_eq!(count, written.messages);
    (topics, written.losses, written.notes)
}

fn logs(format: &str) -> Vec<(String, AnyLog)> {
    let mut logs = rovelog_testing::corpus(format, format, 50);
    if let Some(real) = rovelog_testing::real(format) {
        logs.extend(rovelog_testing::logs_in(&real, format));
    }
    let open = |log: rovelog_testing::Log| {
        Some((log.name, rovelog::from_bytes(log.bytes, &ReadOptions::default()).ok()?))
    };
    logs.into_iter().filter_map(open).collect()
}

fn varint(bytes: &[u8], at: &mut usize) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let byte = bytes[*at];
        *at += 1;
        value |= u64::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            break;
        }
    }
    value
}

/// Returns the numeric fields of a protobuf message by field number. Fields with the value 0 are
/// missing from the message.
fn numbers(bytes: &[u8]) -> BTreeMap<u64, f64> {
    let (mut found, mut at) = (BTreeMap::new(), 0);
    while at < bytes.len() {
        let key = varint(bytes, &mut at);
        let value = match key & 7 {
            0 => varint(bytes, &mut at) as f64,
            1 => {
                at += 8;
                f64::from_le_bytes(bytes[at - 8..at].try_into().unwrap())
            }
            wire => panic!("wire type {wire}"),
        };
        found.insert(key >> 3, value);
    }
    found
}

fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

fn rld(log: &AnyLog) -> &RldReader {
    let AnyLog::Rld(reader) = log else { panic!("{}", log.format().name) };
    reader
}

/// If all samples are written and the clock never went back, each message must have the values of
/// the row with the same number.
#[test]
fn samples_are_the_rows() {
    let mut compared = 0;
    for (name, log) in logs("rld") {
        let reader = rld(&log);
        let (topics, losses, notes) = written(&log, |options| options.full = true);
        assert!(
            losses.iter().all(|loss| loss.why.contains("MCAP cannot store")) && notes.is_empty(),
            "{name}"
        );
        let Some(topic) = log.topics().first().filter(|topic| topic.count > 0) else { continue };
        let channel = format!("/rld/{}", topic.name);
        let messages = topics.get(&channel).map_or(&[][..], |(_, messages)| messages);
        if losses.is_empty() {
            assert_eq!(messages.len() as u64, topic.count, "{name}");
        }
        let report = reader.clock_report();
        if !report.backwards.is_empty() || !report.steps.is_empty() || !losses.is_empty() {
            continue;
        }
        let analog: Vec<_> =
            (0..reader.channels().len()).filter(|i| !reader.channels()[*i].is_binary).collect();
        for (row, (_, message)) in (0..).zip(messages) {
            let (row, got) = (reader.row(row).unwrap(), numbers(message));
            for (number, channel) in (1..).zip(&analog) {
                let want = match row.is_valid(*channel) {
                    Some(true) => row.physical(*channel).or(row.raw(*channel).map(|raw| raw as f64)),
                    _ => Some(f64::NAN),
                };
                let got = got.get(&number).copied().unwrap_or(0.0);
                assert!(same(got, want.unwrap()), "{name}, {}", reader.channels()[*channel].name);
                compared += 1;
            }
        }
    }
    // The corpus alone has 2265 rows.
    let min = if rovelog_testing::real("rld").is_some() { 10_001 } else { 2_265 };
    assert!(compared >= min, "{compared}");
}

/// Returns the packed lists of a protobuf message by field number.
fn lists(message: &[u8]) -> BTreeMap<u64, &[u8]> {
    let (mut found, mut at) = (BTreeMap::new(), 0);
    while at < message.len() {
        let key = varint(message, &mut at);
        assert_eq!(key & 7, 2);
        let len = usize::try_from(varint(message, &mut at)).unwrap();
        found.insert(key >> 3, &message[at..][..len]);
        at += len;
    }
    found
}

#[test]
fn batches_have_the_same_samples() {
    let mut compared = 0;
    for (name, log) in logs("rld") {
        let report = rld(&log).clock_report();
        if !report.backwards.is_empty() || !report.steps.is_empty() {
            continue;
        }
        let (single, losses, _) = written(&log, |options| options.full = true);
        let (batches, _, notes) = written(&log, |options| options.batch = Some(7));
        let Some((_, single)) = single.get("/rld/samples").filter(|_| losses.is_empty()) else { continue };
        let (schema, batches) = &batches["/rld/samples"];
        assert!(notes.is_empty() && schema.as_deref() == Some("rld.Batch"), "{name}");
        let mut single = single.iter();
        for (start, batch) in batches {
            let mut columns = lists(batch);
            let (offsets, mut at) = (columns.pop_last().unwrap().1, 0);
            let mut row = 0;
            while at < offsets.len() {
                let offset = varint(offsets, &mut at);
                let (time, message) = single.next().unwrap();
                assert_eq!(start + offset, *time, "{name}");
                let message = numbers(message);
                for (number, list) in &columns {
                    // In a packed list, a boolean has one byte, and a float has eight.
                    let got = list.as_chunks::<8>().0.get(row).map(|bytes| f64::from_le_bytes(*bytes));
                    let got = if list.len() < 8 { Some(f64::from(list[row])) } else { got };
                    let want = message.get(number).copied().unwrap_or(0.0);
                    assert!(same(got.unwrap(), want), "{name}, row {row}, field {number}");
                    compared += 1;
                }
                row += 1;
            }
            assert!(row <= 7, "{name}");
        }
        assert!(single.next().is_none(), "{name}: rows that no batch holds");
    }
    assert!(compared > 2_000, "{compared}");
}

/// Returns a log with 64,000 rows per second and a duration of 300 ms. There is a gap of half a
/// second after the first 200 ms.
fn fast() -> RldReader {
    let mut spec = LogSpec::new(64_000);
    spec.block_rows = 6_400;
    spec.channels = vec![
        ChannelSpec::bit("DI1"),
        ChannelSpec::range("I1L_valid"),
        ChannelSpec::bit("DI2"),
        ChannelSpec::analog("V1", Unit::Volt, -8),
        ChannelSpec::analog("I1L", Unit::Ampere, -11).valid_if("I1L_valid"),
        ChannelSpec::analog("I1H", Unit::Ampere, -9),
    ];
    let mut header = spec.header().unwrap();
    set_counts(&mut header, 19_200).unwrap();
    let mut writer = RldWriter::new(Vec::new(), header).unwrap();
    for (first, millis) in [(0, 0i128), (6_400, 100), (12_800, 700)] {
        let at = millis * 1_003_520;
        let block_times = BlockTimes::new(1_700_000_000_000_000_000 + at, 5_000_000_000 + at).unwrap();
        let mut rows = Vec::new();
        for n in first..first + 6_400_i64 {
            let word =
                u32::from(n % 1000 < 3) | u32::from(n % 300 < 200) << 1 | u32::from(n % 1777 == 5) << 2;
            encode_row(writer.layout(), &[word], &[n * n % 7919, n, n / 100], &mut rows).unwrap();
        }
        writer.block(&block_times, &rows).unwrap();
    }
    let (bytes, _) = writer.finish().unwrap();
    RldReader::new(bytes.into(), &ReadOptions::default()).unwrap()
}

/// Above 1000 samples per second, a message summarizes several rows by their minimum and maximum.
/// Each row must be in exactly one message and within its range. No message may span a gap.
#[test]
fn envelope_contains_all_rows() {
    let log = AnyLog::Rld(fast());
    let (topics, losses, notes) = written(&log, |_| ());
    assert!(losses.is_empty());
    assert!(notes[0].contains("every 64 samples"), "{notes:?}");
    let (schema, messages) = &topics["/rld/samples"];
    assert_eq!(schema.as_deref(), Some("rld.Envelope"));
    assert_eq!(messages.len(), 300);
    let reader = rld(&log);
    let mut row = 0;
    for (time, message) in messages {
        assert_eq!(i64::try_from(*time).ok(), reader.record_times().time(row));
        let got = numbers(message);
        let number = |field: u64| got.get(&field).copied().unwrap_or(0.0);
        let rows: Vec<_> = (row..row + 64).map(|row| reader.row(row).unwrap()).collect();
        row += 64;
        // A message has three fields for each of the channels V1, I1L, I1H and I1. The flag and the
        // number of rows follow.
        for (channel, field) in [(3, 1), (4, 4), (5, 7)] {
            let valid = rows.iter().filter(|row| row.is_valid(channel) == Some(true));
            let values: Vec<f64> = valid.map(|row| row.physical(channel).unwrap()).collect();
            if values.is_empty() {
                assert!((0..3).all(|i| number(field + i).is_nan()));
                continue;
            }
            let min = values.iter().copied().fold(f64::INFINITY, f64::min);
            let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            assert!(same(number(field), min) && same(number(field + 2), max), "row {row}");
            assert!((number(field + 1) - mean).abs() <= 1e-12 * mean.abs(), "row {row}");
        }
        let valid = rows.iter().filter(|row| row.bit(1) == Some(true)).count();
        assert!(same(number(13), valid as f64) && same(number(14), 64.0));
    }
    assert_eq!(row, reader.rows());
}

/// Even if messages of other topics summarize several rows, every change of a digital input must be
/// written as a message.
#[test]
fn all_edges_of_digital_inputs_are_written() {
    let log = AnyLog::Rld(fast());
    let (topics, ..) = written(&log, |_| ());
    let (_, messages) = &topics["/rld/digital"];
    let reader = rld(&log);
    let (mut next, mut state) = (0, BTreeMap::new());
    for row in 0..reader.rows() {
        let now = reader.record_times().time(row).unwrap().cast_unsigned();
        while let Some((_, message)) = messages.get(next).filter(|(time, _)| *time <= now) {
            state = numbers(message);
            next += 1;
        }
        let at = reader.row(row).unwrap();
        for (field, bit) in [(1, 0), (2, 2)] {
            let got = state.get(&field).copied().unwrap_or(0.0);
            assert!(same(got, f64::from(u8::from(at.bit(bit).unwrap()))), "row {row}");
        }
    }
    assert_eq!(next, messages.len());
    assert!((100..200).contains(&next), "{next}");
}

#[test]
fn gaps_and_comments_are_events() {
    let events = |name: &str, typed: bool| {
        let log = rovelog::open(rovelog_testing::root().join("corpus/rld").join(name)).unwrap();
        let (topics, ..) = written(&log, |options| options.typed = typed);
        topics.get("/rld/events").map_or_else(Vec::new, |(_, events)| events.clone())
    };
    let gap = events("gap.rld", true);
    let text = |(_, bytes): &(u64, Vec<u8>)| String::from_utf8_lossy(bytes).into_owned();
    assert!(gap.iter().any(|event| text(event).contains("gap")), "{gap:?}");
    // The gap is in the middle of the log.
    assert!(gap.last().unwrap().0 > gap[0].0 || gap.len() == 1);
    assert!(events("gap.rld", false).is_empty());
}

/// If `raw` is true, all records must be written unchanged. Otherwise, large records must be
/// converted for viewers or reported as losses.
#[test]
fn vel_records_are_written_or_reported_as_losses() {
    let bulky = ["VelodyneRawDataM", "LaserRange2DDataM", "ImageM"];
    for (name, log) in logs("vel") {
        let (topics, losses, _) = written(&log, |options| options.raw = true);
        let times = losses.iter().all(|loss| loss.why.contains("MCAP cannot store"));
        assert!(times, "{name}: {losses:?}");
        let len =
            |topics: &Topics, name: &str| topics.get(name).map_or(0, |(_, messages)| messages.len() as u64);
        for topic in log.topics().iter().filter(|_| losses.is_empty()) {
            let unknown = topic.name.starts_with("0x") || topic.name.contains('@');
            let channel = match &*topic.name {
                "OBDDataM" => "/obd".to_owned(),
                name if unknown => format!("/vel/{name}"),
                name => name.to_owned(),
            };
            assert_eq!(len(&topics, &channel), topic.count, "{name} {channel}");
            assert_eq!(topics[&channel].0.is_none(), unknown, "{name} {channel}");
        }
        let (topics, losses, _) = written(&log, |_| ());
        if losses.iter().any(|loss| loss.why.contains("MCAP cannot store")) {
            continue;
        }
        let lost: u64 = losses
            .iter()
            .filter(|loss| !loss.topic.starts_with("VelodyneRawDataM"))
            .map(|loss| loss.why.split(' ').next().unwrap().parse::<u64>().unwrap())
            .sum();
        let (mut left_out, mut drawn) = (0, 0);
        for topic in log.topics() {
            let is_bulky = bulky.contains(&&*topic.type_name);
            let unknown = topic.name.starts_with("0x") || topic.name.contains('@');
            assert!(!(is_bulky || unknown) || !topics.contains_key(&topic.name), "{name} {}", topic.name);
            left_out += if unknown || is_bulky && topic.type_name != bulky[0] { topic.count } else { 0 };
        }
        for (topic, (_, messages)) in &topics {
            let drawn_as = ["/laser/scan", "/camera/image"].iter().any(|known| topic.starts_with(known));
            drawn += if drawn_as { messages.len() as u64 } else { 0 };
        }
        assert_eq!(drawn + lost, left_out, "{name}: {losses:?}");
        // If no messages for viewers are added, all topics of the log must be written.
        let (plain, ..) = written(&log, |options| options.typed = false);
        assert!(
            plain
                .keys()
                .all(|topic| topic == "/obd" || topic.starts_with("/vel/") || !topic.starts_with('/'))
        );
    }
}

/// The channel of a camera must state the source of its images, and each image must have the format
/// of its content.
#[test]
fn cameras_are_named_by_their_source() {
    let open = |name: &str| rovelog::open(rovelog_testing::root().join("corpus/vel").join(name)).unwrap();
    let (topics, ..) = written(&open("images-of-three-sources.vel"), |_| ());
    let images: Vec<_> = topics.keys().filter(|topic| topic.starts_with("/camera")).collect();
    assert_eq!(images, ["/camera/image/-1", "/camera/image/0", "/camera/image/1"]);
    let (topics, ..) = written(&open("images-of-other-formats.vel"), |_| ());
    let messages = &topics["/camera/image/1"].1;
    for ((_, message), format) in messages.iter().zip(["png", "bmp", "webp", "tiff", "tiff"]) {
        let field = [&[0x1a, u8::try_from(format.len()).unwrap()][..], format.as_bytes()].concat();
        assert!(message.windows(field.len()).any(|bytes| bytes == field), "{format}: {message:?}");
    }
    assert_eq!(messages.len(), 5);
}

/// The exported point clouds must contain the points of the scanner's revolutions.
#[test]
fn clouds_are_the_revolutions() {
    let path = rovelog_testing::root().join("corpus/vel/velodyne-vlp16.vel");
    let log = rovelog::open(path).unwrap();
    let (topics, ..) = written(&log, |_| ());
    let AnyLog::Vel(reader) = &log else { panic!("a VEL log") };
    let mut revolutions =
        reader.revolutions(None, None, rovelog::vel_format::velodyne::PointOptions::default(), 0).unwrap();
    let (schema, clouds) = &topics["/velodyne/points"];
    assert_eq!(schema.as_deref(), Some("foxglove.PointCloud"));
    let mut clouds = clouds.iter();
    while let Some(revolution) = revolutions.next() {
        let (_, message) = clouds.next().unwrap();
        let points = revolution.points;
        let last = [points.last().unwrap()].map(|point| [point.x, point.y, point.z, point.intensity])[0];
        // The points are at the end of a message. Each point has 22 bytes. The first 16 bytes are
        // the position and intensity.
        let tail = &message[message.len() - 22..message.len() - 6];
        assert_eq!(tail, last.map(f32::to_le_bytes).concat());
        assert!(message.len() > 22 * points.len());
    }
    assert!(clouds.next().is_none());
}
