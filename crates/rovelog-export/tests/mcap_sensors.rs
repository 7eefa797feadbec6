//! MCAP of RLD and VEL logs, read again with the `mcap` crate and a protobuf reader of ten lines, beside what the
//! readers of the logs say. Foxglove's own types are judged by `cargo xtask oracle export`.

use std::collections::BTreeMap;

use mcap::MessageStream;
use rovelog::rld_format::RldReader;
use rovelog::{AnyLog, ReadOptions, Select};
use rovelog_export::mcap::{McapOptions, write};
use rovelog_export::{Loss, Provenance};

/// Topic -> the name of its schema, and log times with messages.
type Topics = BTreeMap<String, (Option<String>, Vec<(u64, Vec<u8>)>)>;

fn written(log: &AnyLog, change: impl FnOnce(&mut McapOptions)) -> (Topics, Vec<Loss>, Vec<String>) {
    let mut options = McapOptions::default();
    change(&mut options);
    let made =
        || write(log, &Select::all(), options, &Provenance::new("log"), Vec::new(), &mut |_| ()).unwrap();
    let written = made();
    assert_eq!(written.out, made().out, "the same log gives other bytes");
    let (mut topics, mut last, mut count) = (Topics::new(), 0, 0);
    for message in MessageStream::new(&written.out).unwrap() {
        let message = message.unwrap();
        assert!(message.log_time >= last, "{}", message.channel.topic);
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

/// The numbers of a message by field; what is not there is 0.
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
    a.to_bits() == b.to_bits() || a == b || a.is_nan() && b.is_nan()
}

fn rld(log: &AnyLog) -> &RldReader {
    let AnyLog::Rld(reader) = log else { panic!("{}", log.format().name) };
    reader
}

/// With all samples: message n of a log whose clock never went back is row n.
#[test]
fn samples_are_the_rows() {
    let mut compared = 0;
    for (name, log) in logs("rld") {
        let reader = rld(&log);
        let (topics, losses, notes) = written(&log, |options| options.full = true);
        assert!(losses.iter().all(|loss| loss.why.contains("times")) && notes.is_empty(), "{name}");
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
    assert!(compared > 10_000, "{compared}");
}

/// Above 1000 samples in a second: every row is in one message, between its least and its greatest value.
#[test]
fn an_envelope_holds_every_row() {
    let path = rovelog_testing::root().join("corpus/rld/rate-64000.rld");
    let log = rovelog::open(path).unwrap();
    let (topics, losses, notes) = written(&log, |_| ());
    assert!(losses.is_empty());
    assert!(notes[0].contains("every 64 samples"), "{notes:?}");
    let (schema, messages) = &topics["/rld/samples"];
    assert_eq!(schema.as_deref(), Some("rld.Envelope"));
    let reader = rld(&log);
    let channel = (0..reader.channels().len()).find(|i| !reader.channels()[*i].is_binary).unwrap();
    let mut row = 0;
    for (_, message) in messages {
        let numbers = numbers(message);
        let count = *numbers.last_key_value().unwrap().1;
        let got = [1, 2, 3].map(|number| numbers.get(&number).copied().unwrap_or(0.0));
        let mut values = Vec::new();
        for _ in 0..count as u64 {
            let at = reader.row(row).unwrap();
            values.extend(at.physical(channel).filter(|_| at.is_valid(channel) == Some(true)));
            row += 1;
        }
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        assert!(same(got[0], least) && same(got[2], most), "{got:?}");
        assert!((got[1] - mean).abs() <= 1e-12 * mean.abs(), "{got:?}, {mean}");
    }
    assert_eq!(row, reader.rows());
    assert!(messages.len() > 1);
}

/// Digital inputs of an envelope: between two messages nothing changed.
#[test]
fn every_edge_of_a_digital_input_is_there() {
    let mut rows = 0;
    for (name, log) in logs("rld") {
        let reader = rld(&log);
        let rate = reader.header().lead_in.sample_rate.get();
        let (topics, losses, _) = written(&log, |_| ());
        let Some((_, messages)) = topics.get("/rld/digital") else { continue };
        let report = reader.clock_report();
        if rate <= 1000 || !losses.is_empty() || !report.steps.is_empty() || !report.backwards.is_empty() {
            continue;
        }
        let channels = reader.channels();
        let ranges: Vec<_> = channels.iter().filter_map(|channel| channel.valid).collect();
        let bits = (0..channels.len()).filter(|bit| channels[*bit].is_binary && !ranges.contains(bit));
        let bits: Vec<usize> = bits.collect();
        let times = reader.record_times();
        let mut next = 0;
        let mut state = BTreeMap::new();
        for row in 0..reader.rows() {
            let now = times.time(row).unwrap().cast_unsigned();
            while let Some((_, message)) = messages.get(next).filter(|(time, _)| *time <= now) {
                state = numbers(message);
                next += 1;
            }
            let at = reader.row(row).unwrap();
            for (number, bit) in (1..).zip(&bits) {
                let got = state.get(&number).copied().unwrap_or(0.0);
                assert!(same(got, f64::from(u8::from(at.bit(*bit).unwrap()))), "{name}, row {row}");
            }
            rows += 1;
        }
        assert_eq!(next, messages.len(), "{name}");
    }
    assert!(rows > 100, "{rows}");
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
    // In the middle of the log, where it is.
    assert!(gap.last().unwrap().0 > gap[0].0 || gap.len() == 1);
    assert!(events("gap.rld", false).is_empty());
}

/// With `raw` every record is there by itself; without, bulky ones are there as what viewers draw, or are losses.
#[test]
fn records_of_vel_are_there_or_losses() {
    let bulky = ["VelodyneRawDataM", "LaserRange2DDataM", "ImageM"];
    for (name, log) in logs("vel") {
        let (topics, losses, _) = written(&log, |options| options.raw = true);
        let times = losses.iter().all(|loss| loss.why.contains("times"));
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
        if losses.iter().any(|loss| loss.why.contains("times")) {
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
        // Nothing but the log's own topics is all of them.
        let (plain, ..) = written(&log, |options| options.typed = false);
        assert!(
            plain
                .keys()
                .all(|topic| topic == "/obd" || topic.starts_with("/vel/") || !topic.starts_with('/'))
        );
    }
}

/// Clouds hold the points of the revolutions.
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
        // The points end the message: 22 bytes each, the first 16 of them place and intensity.
        let tail = &message[message.len() - 22..message.len() - 6];
        assert_eq!(tail, last.map(f32::to_le_bytes).concat());
        assert!(message.len() > 22 * points.len());
    }
    assert!(clouds.next().is_none());
}
