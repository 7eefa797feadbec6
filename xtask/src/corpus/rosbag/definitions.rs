//! Which definition decodes a topic, and how it agrees with its sum.

use std::fmt::Write as _;

use serde_json::json;

use super::bag::{Bag, Topic};
use super::lay::text;
use super::{stamp, talk};
use crate::corpus::expected::field;
use crate::corpus::{Case, Made};

/// A sum that no definition has.
const NO_SUM: &str = "00000000000000000000000000000000";

/// The sum of ROS 0.5 over `string data` and its line feed.
const STRING_SUM_V1: &str = "5b89344b4d080ca499c0648063c40738";

pub(super) const CASES: &[Case] = &[
    Case::rosbag(
        "definition-per-type",
        "as Python scripts wrote: the second topic has none",
        &["B6", "M9"],
        || {
            let mut bag = Bag::plain();
            talk(&mut bag, &Topic::string("/a"), 0..2);
            bag.note(bag.at(), "definition_elsewhere");
            talk(&mut bag, &Topic::string("/b").found_in("same md5"), 1..3);
            bag.unindexed();
            bag.done()
        },
    ),
    Case::rosbag("definition-of-same-type", "found by the type; its sum is another", &["M9"], || {
        let mut bag = Bag::plain();
        let odd = point("/a", "pkg/Point");
        bag.define(&odd);
        bag.message(&odd, stamp(0), &POINT, &json!({"x": 1.0, "y": 2.0}));
        let other = point("/b", "pkg/Point").with_sum(NO_SUM, "differs").found_in("same type");
        bag.note(bag.at(), "definition_elsewhere");
        bag.note(bag.at(), "definition_differs");
        bag.message(&other, stamp(1), &POINT, &json!({"x": 1.0, "y": 2.0}));
        // It is a guess: what does not fit stays as bytes.
        bag.note(bag.at() + 4 + header_len(&other), "payload_surplus");
        bag.message(
            &other,
            stamp(2),
            &[&POINT[..], b"!"].concat(),
            &json!({"raw": "AAAAAAAA8D8AAAAAAAAAQCE="}),
        );
        bag.unindexed();
        bag.done()
    }),
    Case::rosbag("definition-of-the-catalogue", "none in the bag, known by its sum", &["M9"], || {
        let mut bag = Bag::plain();
        bag.note(bag.at(), "definition_elsewhere");
        talk(&mut bag, &Topic::string("/a").found_in("catalogue"), 1..3);
        bag.unindexed();
        bag.done()
    }),
    Case::rosbag("definition-missing", "a type that is defined nowhere", &["B23", "M9"], || {
        let mut bag = Bag::plain();
        let topic = Topic::new("/a", "nobody/Knows", NO_SUM, "", json!(null)).undefined();
        bag.note(bag.at(), "no_definition");
        bag.message(&topic, stamp(0), b"\x01\x02", &json!({"raw": "AQI="}));
        bag.unindexed();
        bag.done()
    }),
    Case::rosbag("definition-behind-its-messages", "found all the same", &["B30", "M9"], || {
        let mut bag = Bag::plain();
        let topic = point("/a", "pkg/Point");
        bag.message(&topic, stamp(0), &POINT, &json!({"x": 1.0, "y": 2.0}));
        bag.note(bag.at(), "definition_late");
        bag.define(&topic);
        bag.unindexed();
        bag.done()
    }),
    Case::rosbag("definition-repeated", "a topic is defined twice, in the same way", &["B30"], || {
        let mut bag = Bag::plain();
        let topic = point("/a", "pkg/Point");
        bag.define(&topic);
        bag.note(bag.at(), "definition_repeated");
        bag.define(&topic);
        bag.message(&topic, stamp(0), &POINT, &json!({"x": 1.0, "y": 2.0}));
        bag.unindexed();
        bag.done()
    }),
    Case::rosbag("definition-empty", "by a publisher that sent no text", &["B11", "M10"], || {
        let mut bag = Bag::recorder();
        let topic = Topic::string("/a").with_def("").found_in("catalogue");
        bag.note(bag.at(), "definition_unusable");
        bag.define(&topic);
        bag.note(bag.at(), "definition_elsewhere");
        bag.say(&topic, stamp(0), "x");
        bag.close();
        bag.done()
    }),
    Case::rosbag("definition-empty+no-fields", "the type has no fields", &["B11", "B21", "M6"], || {
        let mut bag = Bag::recorder();
        let topic =
            Topic::new("/trigger", "std_msgs/Empty", "d41d8cd98f00b204e9800998ecf8427e", "", json!([]));
        bag.define(&topic);
        for i in 0..3 {
            bag.message(&topic, stamp(i), b"", &json!({}));
        }
        bag.close();
        bag.done()
    }),
    Case::rosbag(
        "definition-of-the-root-alone",
        "the nested type is in the catalogue",
        &["B11", "M10"],
        || {
            let mut bag = Bag::plain();
            let topic = header_user("/a", "Header header\nint8 x");
            bag.define(&topic);
            header_message(&mut bag, &topic);
            bag.unindexed();
            bag.done()
        },
    ),
    Case::rosbag("definition-header-of-roslib", "Header means the one that is there", &["M3"], || {
        let mut bag = Bag::plain();
        let def = format!(
            "Header header\nint8 x\n{}\nMSG: roslib/Header\nuint32 seq\ntime stamp\nstring frame_id\n",
            "=".repeat(80)
        );
        let mut topic = header_user("/a", &def);
        topic.fields[0]["type"] = "struct roslib/Header".into();
        bag.define(&topic);
        header_message(&mut bag, &topic);
        bag.unindexed();
        bag.done()
    }),
    Case::rosbag("sum-v1", "the older sum, over the raw text", &["B10", "M11"], || {
        let mut bag = Bag::recorder();
        talk(&mut bag, &Topic::string("/a").with_sum(STRING_SUM_V1, "v1"), 0..2);
        bag.close();
        bag.done()
    }),
    Case::rosbag("sum-wildcard", "any definition will do", &["B10", "M11"], || {
        let mut bag = Bag::recorder();
        talk(&mut bag, &Topic::string("/a").with_sum("*", "wildcard"), 0..2);
        bag.close();
        bag.done()
    }),
    Case::rosbag("sum-differs", "the text is not the one that was published", &["B10", "M11"], || {
        let mut bag = Bag::recorder();
        let topic = Topic::string("/a").with_sum(NO_SUM, "differs");
        bag.define(&topic);
        bag.note(bag.at(), "definition_differs");
        talk(&mut bag, &topic, 1..3);
        bag.close();
        bag.done()
    }),
    Case::rosbag("second-type", "a publisher that came back with another type", &["B25"], || {
        let mut bag = Bag::recorder();
        talk(&mut bag, &Topic::string("/a"), 0..2);
        let second = point("/a", "pkg/Point").shown("/a#2");
        bag.note(bag.at(), "definition_repeated");
        bag.define(&second);
        bag.note(bag.at(), "second_type");
        bag.message(&second, stamp(5), &POINT, &json!({"x": 1.0, "y": 2.0}));
        bag.close();
        bag.done()
    }),
    Case::rosbag("definition-hostile+circular", "a type in itself", &["M10"], || {
        hostile("A a\n===\nMSG: pkg/A\npkg/Hostile h\n")
    }),
    Case::rosbag("definition-hostile+deep", "100 levels", &["M10"], || {
        let mut def = "T0 t".to_owned();
        for i in 0..100 {
            let _ = write!(def, "\n===\nMSG: pkg/T{i}\nT{} t", i + 1);
        }
        hostile(&(def + "\n===\nMSG: pkg/T100\nint8 x\n"))
    }),
    Case::rosbag("definition-hostile+large-array", "more bytes than a message can have", &["M10"], || {
        hostile("float64[4294967295] x\n")
    }),
    Case::rosbag("definition-broken", "a line that is none", &["M10"], || {
        hostile("int32 x\nthis is no field!\n")
    }),
];

/// x = 1, y = 2.
const POINT: [u8; 16] = [0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0x40];

fn point(name: &str, ty: &str) -> Topic {
    let fields = json!([field("x", "float64"), field("y", "float64")]);
    Topic::new(name, ty, "209f516d3eb691f0663e25cb750d67c1", "float64 x\nfloat64 y\n", fields)
}

/// Bytes from the start of a record to its data, the first four left out, and the payload of a point.
fn header_len(topic: &Topic) -> u64 {
    topic.data(stamp(0), &POINT).len() as u64 - 4
}

fn header_user(name: &str, def: &str) -> Topic {
    let header = json!([field("seq", "uint32"), field("stamp", "time"), field("frame_id", "text")]);
    let fields = json!([
        {"name": "header", "type": "struct std_msgs/Header", "fields": header}, field("x", "int8"),
    ]);
    Topic::new(name, "pkg/User", "*", def, fields).with_sum("*", "wildcard")
}

fn header_message(bag: &mut Bag, topic: &Topic) {
    let mut payload = vec![7, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0];
    payload.extend(text(b"map"));
    payload.push(0xff);
    let header = json!({"seq": 7, "stamp": {"sec": 1, "nsec": 2}, "frame_id": "map"});
    bag.message(topic, stamp(0), &payload, &json!({"header": header, "x": -1}));
}

/// A definition that cannot be used: the messages stay bytes, and another topic is read as ever.
fn hostile(def: &str) -> Made {
    let mut bag = Bag::plain();
    let topic = Topic::new("/h", "pkg/Hostile", NO_SUM, def, json!(null)).undefined();
    bag.note(bag.at(), "definition_unusable");
    bag.define(&topic);
    bag.note(bag.at(), "no_definition");
    bag.message(&topic, stamp(0), b"\x01", &json!({"raw": "AQ=="}));
    talk(&mut bag, &Topic::string("/a"), 0..2);
    bag.unindexed();
    bag.done()
}
