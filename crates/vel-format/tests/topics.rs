//! A hostile log can have as many topics as records. It must be read in time and memory that are
//! proportional to its size.

mod support;

use rovelog_core::{LogReader, Select};
use support::open;
use vel_format::Kind;

/// Returns a log of `messages` messages that are 1 ms apart. `of` returns the type id, the version
/// and the data of each message.
fn log(messages: u32, of: impl Fn(u32) -> (u32, i32, Vec<u8>)) -> Vec<u8> {
    let mut bytes = b"\xa4VEL\x01\0\x01\0\0\0\0\0".to_vec();
    for number in 0..messages {
        let (type_id, version, data) = of(number);
        bytes.extend((21 + u32::try_from(data.len()).unwrap()).to_le_bytes());
        bytes.push(b'1');
        bytes.extend(type_id.to_le_bytes());
        bytes.extend(version.to_le_bytes());
        bytes.extend(f64::from(number).to_le_bytes());
        bytes.extend(data);
    }
    bytes
}

/// Returns a message with a 4-byte image from the camera with number `source`.
fn image(source: u32) -> (u32, i32, Vec<u8>) {
    let head = [source, 1, 1, 1, 4].map(u32::to_le_bytes).concat();
    (Kind::Image.type_id(), 100, [&head[..], b"\xff\xd8\xff\xd9"].concat())
}

#[test]
fn cameras_beyond_the_limit_share_a_topic() {
    let reader = open(&log(66_000, image).into());
    let topics = reader.topics();
    assert!(topics.len() < 65_536, "{}", topics.len());
    let shared = reader.topic("ImageM").expect("those beyond the limit");
    assert_eq!(shared.count + topics.len() as u64 - 1, 66_000);
    assert_eq!(reader.info().records, 66_000);
    assert_eq!(reader.info().lost.bytes, 0);
    assert_eq!(reader.diagnostics().counts().get("W-VEL-120"), Some(&shared.count));
    let last = reader.records(&Select::topic("ImageM")).last().expect("records").expect("readable");
    assert_eq!(last.value().unwrap().get("source").and_then(rovelog_core::Value::as_f64), Some(65_999.0));
}

#[test]
fn types_beyond_the_limit_share_a_topic() {
    let reader = open(&log(66_000, |number| (1_000 + number, 7, b"data".to_vec())).into());
    assert!(reader.topics().len() < 65_536);
    assert_eq!(reader.topics().iter().map(|topic| topic.count).sum::<u64>(), reader.info().records);
    assert!(reader.topic("0x*").is_some_and(|topic| topic.count > 400));
}
