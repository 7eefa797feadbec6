//! Reads MCAP files again with the crate `mcap`, and checks counts, times, schemas and the summary.
//! The values are checked with Python readers by `cargo xtask oracle export`.

use std::collections::BTreeMap;

use mcap::MessageStream;
use rovelog::{AnyLog, ReadOptions, Select};
use rovelog_export::mcap::{McapOptions, write};
use rovelog_export::{Loss, Provenance};

fn written(log: &AnyLog, options: &McapOptions) -> (Vec<u8>, u64, Vec<Loss>) {
    let provenance = Provenance::new("log").with_sha256("0".repeat(64));
    let mut out = Vec::new();
    let done = write(log, &Select::all(), options, &provenance, &mut out, &mut |_| ()).unwrap();
    (out, done.messages, done.losses)
}

fn logs() -> Vec<(String, AnyLog)> {
    let mut logs = rovelog_testing::corpus("ulog", "ulg", 100);
    if let Some(real) = rovelog_testing::real("ulog") {
        logs.extend(rovelog_testing::logs_in(&real, "ulg"));
    }
    let open = |log: rovelog_testing::Log| {
        Some((log.name, rovelog::from_bytes(log.bytes, &ReadOptions::default()).ok()?))
    };
    logs.into_iter().filter_map(open).collect()
}

#[test]
fn every_record_is_a_message_in_the_order_of_time() {
    for (name, log) in logs() {
        let (bytes, count, losses) = written(&log, &McapOptions::default());
        assert!(losses.iter().all(|loss| loss.why.contains("times")), "{name}: {losses:?}");
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        let (mut last, mut messages) = (0, 0);
        for message in MessageStream::new(&bytes).unwrap() {
            let message = message.unwrap();
            assert!(message.log_time >= last, "{name} {}", message.channel.topic);
            last = message.log_time;
            messages += 1;
            let schema = message.channel.schema.as_ref().unwrap();
            assert_eq!((&*schema.encoding, &*message.channel.message_encoding), ("protobuf", "protobuf"));
            *counts.entry(message.channel.topic.clone()).or_default() += 1;
        }
        assert_eq!(messages, count, "{name}");
        for topic in log.topics().iter().filter(|_| losses.is_empty()) {
            assert_eq!(counts.get(&topic.name).copied().unwrap_or(0), topic.count, "{name} {}", topic.name);
        }
        let summary = mcap::Summary::read(&bytes).unwrap().unwrap();
        assert_eq!(summary.stats.unwrap().message_count, count, "{name}");
    }
}

#[test]
fn typed_topics_are_added_unless_they_are_not_wanted() {
    let path = rovelog_testing::root().join("corpus/ulog/utc-gps-int32.ulg");
    let log = rovelog::open(path).unwrap();
    let topics = |options: &McapOptions| {
        let (bytes, ..) = written(&log, options);
        let summary = mcap::Summary::read(&bytes).unwrap().unwrap();
        let channels = summary.channels.values();
        let schema = |channel: &mcap::Channel<'_>| channel.schema.as_ref().unwrap().name.clone();
        channels.map(|channel| (channel.topic.clone(), schema(channel))).collect::<BTreeMap<_, _>>()
    };
    let all = topics(&McapOptions::default());
    assert_eq!(all["/foxglove/gps"], "foxglove.LocationFix");
    assert_eq!(all["vehicle_gps_position/0"], "px4.vehicle_gps_position");
    let mut options = McapOptions::default();
    options.typed = false;
    assert!(topics(&options).keys().all(|topic| !topic.starts_with('/')));
}
