//! Bags of before V1.2.

use serde_json::json;

use super::bag::{Bag, Stamp, Topic};
use super::lay::{text, u32_bytes};
use super::stamp;
use crate::corpus::expected::field;
use crate::corpus::lay::Lay;
use crate::corpus::{Case, Made};

pub(super) const CASES: &[Case] = &[
    Case::rosbag("v1.1", "three lines in front of each message", &["V1"], || {
        let mut bag = Bag::starting(b"#ROSRECORD V1.1\n", "1.1");
        let known = Topic::string("/chatter").with_sum("*", "wildcard").found_in("catalogue");
        let unknown = Topic::new("odom", "std_msgs/RobotBase2DOdom", "*", "", json!(null)).undefined();
        bag.note(bag.at(), "definition_elsewhere");
        lay(&mut bag, &known, stamp(0), b"a");
        bag.note(bag.at(), "no_definition");
        let bytes = v11(&unknown, stamp(1), b"\x01");
        bag.lay(&unknown, stamp(1), &bytes, &json!({"raw": "AQ=="}));
        lay(&mut bag, &known, stamp(2), b"c");
        bag.done()
    }),
    Case::rosbag("v1.1+roslog", "the other word, names of rostools", &["V1"], || {
        let mut bag = Bag::starting(b"#ROSLOG V1.1\n", "1.1");
        let header = json!([field("seq", "uint32"), field("stamp", "time"), field("frame_id", "text")]);
        let topic = Topic::new("/h", "rostools/Header", "*", "", header)
            .with_sum("*", "wildcard")
            .found_in("catalogue");
        bag.note(bag.at(), "definition_elsewhere");
        let payload = Lay::new().bytes(&u32_bytes(1)).bytes(&[0; 8]).bytes(&text(b"f")).done();
        let bytes = v11(&topic, stamp(0), &payload);
        bag.lay(
            &topic,
            stamp(0),
            &bytes,
            &json!({"seq": 1, "stamp": {"sec": 0, "nsec": 0}, "frame_id": "f"}),
        );
        bag.done()
    }),
    Case::rosbag("v1.1+cut", "the file ends inside a message", &["V1", "D2"], || {
        let mut bag = Bag::starting(b"#ROSRECORD V1.1\n", "1.1");
        let topic = Topic::string("/chatter").with_sum("*", "wildcard").found_in("catalogue");
        bag.note(bag.at(), "definition_elsewhere");
        lay(&mut bag, &topic, stamp(0), b"a");
        lay(&mut bag, &topic, stamp(1), b"b");
        let bytes = v11(&topic, stamp(2), &text(b"ccc"));
        bag.lose("cut", &bytes[..bytes.len() - 2]);
        bag.done()
    }),
    Case::rosbag("v1.1+damaged", "nothing tells where the next message begins", &["V1", "D1"], || {
        let mut bag = Bag::starting(b"#ROSRECORD V1.1\n", "1.1");
        let topic = Topic::string("/chatter").with_sum("*", "wildcard").found_in("catalogue");
        bag.note(bag.at(), "definition_elsewhere");
        lay(&mut bag, &topic, stamp(0), b"a");
        bag.lose("gap", &[&[0xff, 0, 1, 2][..], &v11(&topic, stamp(1), &text(b"b"))].concat());
        bag.done()
    }),
    Case::rosbag("v1.0", "a table of topics, relative times", &["V2"], || v10("2", false)),
    Case::rosbag("v1.0+padded-count", "the count has zeros in front", &["V2"], || v10("0002", false)),
    Case::rosbag("v1.0+cut", "the file ends inside a message", &["V2", "D2"], || v10("2", true)),
    Case::rosbag("v1.0+broken-table", "the table has fewer topics than it says", &["V2"], || {
        let mut bag = Bag::starting(b"#ROSLOG V1.0\n", "1.0").relative();
        bag.note(0, "relative_stamps");
        bag.lose("gap", b"3\nchatter\n*\nstd_msgs/String\n\x01\x02");
        bag.done()
    }),
];

/// The bytes of a message of V1.1.
fn v11(topic: &Topic, stamp: Stamp, payload: &[u8]) -> Vec<u8> {
    let lines = format!("{}\n{}\n{}\n", topic.name, topic.md5, topic.ty);
    [lines.as_bytes(), &tail(stamp, payload)].concat()
}

/// Time, length, data.
fn tail((sec, nsec): Stamp, payload: &[u8]) -> Vec<u8> {
    Lay::new()
        .bytes(&sec.to_le_bytes())
        .bytes(&nsec.to_le_bytes())
        .bytes(&u32_bytes(payload.len()))
        .bytes(payload)
        .done()
}

fn lay(bag: &mut Bag, topic: &Topic, stamp: Stamp, said: &[u8]) {
    let bytes = v11(topic, stamp, &text(said));
    bag.lay(topic, stamp, &bytes, &json!({"data": String::from_utf8_lossy(said)}));
}

fn v10(count: &str, cut: bool) -> Made {
    let known = Topic::string("chatter").with_sum("*", "wildcard").found_in("catalogue");
    let unknown = Topic::new("map", "*", "*", "", json!(null)).undefined();
    let table = [&known, &unknown].map(|t| format!("{}\n{}\n{}\n", t.name, t.md5, t.ty)).concat();
    let head = format!("#ROSLOG V1.0\n{count}\n{table}");
    let mut bag = Bag::starting(head.as_bytes(), "1.0").relative();
    bag.note(0, "relative_stamps");
    bag.note(bag.at(), "no_definition");
    let line = |topic: &Topic| format!("{}\n", topic.name).into_bytes();
    bag.lay(&unknown, (4, 5), &[line(&unknown), tail((4, 5), b"\x01")].concat(), &json!({"raw": "AQ=="}));
    bag.note(bag.at(), "definition_elsewhere");
    for i in 5..8 {
        let bytes = [line(&known), tail((i, 0), &text(b"x"))].concat();
        bag.lay(&known, (i, 0), &bytes, &json!({"data": "x"}));
    }
    if cut {
        bag.lose("cut", b"chatt");
    }
    bag.done()
}
