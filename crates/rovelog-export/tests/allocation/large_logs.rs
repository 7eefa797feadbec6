//! Logs that are large enough for allocations of more than 64 KiB.

use std::io::Cursor;

use rovelog::Bytes;
use rovelog::rld_format::unit::Unit;
use rovelog::rld_format::wire::BlockTimes;
use rovelog::rld_format::{ChannelSpec, LogSpec, RldWriter, encode_row};
use rovelog::rosbag12::BagWriter;
use rovelog::rosbag12::v2::{self, Compression};
use rovelog::ulog_format::{FormatBuilder, UlogWriter};
use rovelog::vel_format::{NewMessage, VelWriter, WriteOptions};

/// Names of the logs.
pub(crate) const NAMES: [&str; 9] =
    ["ulog", "ulog damaged", "bag 1.2", "bag 1.2 damaged", "bag 2.0", "bag lz4", "bag bz2", "rld", "vel"];

/// Returns the log with this name. The middle of a damaged log is overwritten.
pub(crate) fn log(name: &str) -> Bytes {
    let (kind, is_damaged) = name.strip_suffix(" damaged").map_or((name, false), |kind| (kind, true));
    let mut bytes = match kind {
        "ulog" => ulog(),
        "bag 1.2" => bag(),
        "bag 2.0" => chunked_bag(Compression::None),
        "bag lz4" => chunked_bag(Compression::Lz4),
        "bag bz2" => chunked_bag(Compression::Bz2),
        "rld" => rld(),
        "vel" => vel(),
        _ => unreachable!("no log has this name"),
    };
    if is_damaged {
        let middle = bytes.len() / 2;
        bytes[middle..middle + 100_000].fill(0xA5);
    }
    bytes.into()
}

fn ulog() -> Vec<u8> {
    let mut log = UlogWriter::new(Vec::new(), 0).unwrap();
    log.define(&FormatBuilder::new("motors").field::<u64>("timestamp").array::<f32>("thrust", 8)).unwrap();
    log.define(&FormatBuilder::new("mode").field::<u64>("timestamp").text("name", 40)).unwrap();
    let (motors, mode) = (log.subscribe("motors", 0).unwrap(), log.subscribe("mode", 0).unwrap());
    let (mut motors, mut mode) = (log.row_buffer(motors).unwrap(), log.row_buffer(mode).unwrap());
    let times = (motors.place("timestamp").unwrap(), mode.place("timestamp").unwrap());
    for i in 0..20_000_u64 {
        motors.set(times.0, 1000 * i).unwrap();
        log.write(&motors).unwrap();
        mode.set(times.1, 1000 * i).unwrap();
        log.write(&mode).unwrap();
    }
    log.finish().unwrap()
}

/// Messages of a bag: topic, time in milliseconds and payload.
fn messages() -> impl Iterator<Item = (&'static str, u32, Vec<u8>)> {
    (0..10_000_u32).map(|i| {
        let (topic, len) = if i % 500 == 0 { ("/scan", 100_000) } else { ("/chatter", 20 + i % 10) };
        let mut payload = len.to_le_bytes().to_vec();
        payload.resize(4 + len as usize, b'a' + (i % 26) as u8);
        (topic, i, payload)
    })
}

fn definition(topic: &str) -> (&'static [u8], &'static [u8], &'static [u8]) {
    match topic {
        "/scan" => (b"test/Scan", b"f43a8e1b362b75baa741461b46adc7e0", b"uint8[] data\n"),
        _ => (b"std_msgs/String", b"992ce8a1687cec8c8bd883ec73ca41d1", b"string data\n"),
    }
}

fn bag() -> Vec<u8> {
    let mut bag = BagWriter::new(Cursor::new(Vec::new())).unwrap();
    for (topic, millis, payload) in messages() {
        let (ty, md5, text) = definition(topic);
        let connection = bag.connect(topic.as_bytes(), ty, md5, text).unwrap();
        bag.message(connection, 1000 + millis / 1000, millis % 1000 * 1_000_000, None, &payload).unwrap();
    }
    bag.finish().unwrap().into_inner()
}

fn chunked_bag(compression: Compression) -> Vec<u8> {
    let mut out = Vec::new();
    v2::write(&mut out, compression, |bag| {
        for (topic, millis, payload) in messages() {
            let (ty, md5, text) = definition(topic);
            let fields = [
                (&b"topic"[..], topic.as_bytes()),
                (b"type", ty),
                (b"md5sum", md5),
                (b"message_definition", text),
            ];
            let mut data = Vec::new();
            for (name, value) in fields {
                let len = u32::try_from(name.len() + 1 + value.len()).unwrap();
                data.extend([&len.to_le_bytes(), name, b"=", value].concat());
            }
            let id = bag.connect(topic.as_bytes(), &data)?;
            bag.message(id, (1000 + millis / 1000, millis % 1000 * 1_000_000), &payload)?;
        }
        Ok::<_, rovelog::rosbag12::BagError>(())
    })
    .unwrap();
    out
}

fn rld() -> Vec<u8> {
    let channels = vec![
        ChannelSpec::bit("DI1"),
        ChannelSpec::analog("V1", Unit::Volt, -8),
        ChannelSpec::analog("I1", Unit::Ampere, -9),
    ];
    let spec = LogSpec { channels, ..LogSpec::new(1000) };
    let mut log = RldWriter::new(Cursor::new(Vec::new()), spec.header().unwrap()).unwrap();
    for block in 0..50 {
        let mut rows = Vec::new();
        for row in 0..1000 {
            encode_row(log.layout(), &[1], &[row, -row], &mut rows).unwrap();
        }
        let nanos = 1_500_000_000_000_000_000 + block * 1_000_000_000;
        log.block(&BlockTimes::new(nanos, nanos).unwrap(), &rows).unwrap();
    }
    log.finish_in_place().unwrap().0.into_inner()
}

fn vel() -> Vec<u8> {
    let mut log = VelWriter::new(Cursor::new(Vec::new()), WriteOptions::default()).unwrap();
    let compass = rovelog::vel_format::simple_hash("CompassM").unwrap();
    for i in 0..20_000 {
        log.write(&NewMessage::raw(compass, 100, 10.0 * f64::from(i), vec![0; 8])).unwrap();
    }
    log.finish().unwrap().0.into_inner()
}
