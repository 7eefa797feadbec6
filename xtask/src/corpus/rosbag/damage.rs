//! Damage: what is lost, and where sound records begin again.

use serde_json::json;

use super::bag::{Bag, Topic};
use super::lay::text;
use super::{recorded, stamp, talk};
use crate::corpus::expected::field;
use crate::corpus::lay::base64;
use crate::corpus::{Case, Made};

pub(super) const CASES: &[Case] = &[
    Case::rosbag("cut-in-payload", "the file ends inside a message", &["D2"], || cut(3)),
    Case::rosbag("cut-in-header", "the file ends inside a header", &["D2"], || cut(100)),
    Case::rosbag("cut-in-length", "the file ends inside the length of a header", &["D2"], || cut_to(3)),
    Case::rosbag("damaged-header-length", "resynchronised at the next record", &["D1"], || {
        damaged("gap", |bytes| bytes[..4].copy_from_slice(&[0xff; 4]))
    }),
    Case::rosbag("damaged-field-length", "the fields do not fill the header", &["D3"], || {
        damaged("bad_record", |bytes| bytes[4] ^= 0x40)
    }),
    Case::rosbag("damaged-op", "op has two bytes", &["D3"], || {
        damaged("bad_record", |bytes| {
            let at = bytes.windows(3).position(|part| part == b"op=").expect("a header has an op");
            bytes[at..at + 3].copy_from_slice(b"oq=");
        })
    }),
    Case::rosbag(
        "damaged-data-length",
        "a message that claims to pass the end of the file",
        &["D4", "D1"],
        || {
            damaged("gap", |bytes| {
                let at = bytes.len() - text(LONG).len() - 4;
                bytes[at] = 0xff;
                bytes[at + 1] = 0xff;
            })
        },
    ),
    Case::rosbag("damaged-zeros", "100 zero bytes between two records", &["D1"], || {
        let (mut bag, topic) = recorded(0..3);
        bag.lose("gap", &[0; 100]);
        talk(&mut bag, &topic, 3..6);
        bag.unindexed();
        bag.done()
    }),
    Case::rosbag("damaged-spaces", "spaces that no bag header explains", &["D1"], || {
        let (mut bag, topic) = recorded(0..3);
        bag.lose("gap", &[b' '; 64]);
        talk(&mut bag, &topic, 3..6);
        bag.unindexed();
        bag.done()
    }),
    Case::rosbag(
        "damaged+index-names-the-lost",
        "the index says which message is gone",
        &["D1", "B9"],
        named_by_index,
    ),
    Case::rosbag(
        "damaged+bag-in-a-message",
        "records inside of a lost message are none of this bag",
        &["D5"],
        nested,
    ),
    Case::rosbag(
        "gap+index-pos-out-of-range",
        "a bag header that names a place beyond 64 bits as that of the index, and a damaged message",
        &["D5"],
        || {
            let (mut bag, topic) = recorded(0..3);
            let mut bytes = topic.data(stamp(3), &text(LONG));
            bytes[..4].copy_from_slice(&[0xff; 4]);
            bag.lose("gap", &bytes);
            talk(&mut bag, &topic, 4..7);
            let pos = u64::MAX - 2;
            bag.set_index_pos(pos);
            bag.note(16, "unindexed");
            bag.section(Some(pos), None, "absent");
            bag.done()
        },
    ),
    Case::rosbag(
        "damaged-definition+indexed",
        "the definition that the index names is gone, the message behind it is whole",
        &["D5"],
        definition_gone,
    ),
    Case::rosbag(
        "bytes-lost-in-a-message",
        "10 bytes of a message of fixed size are missing, so that its length reaches into the next record",
        &["D4"],
        || {
            let text = "float64[8] data\n";
            let topic = Topic::new("/fixed", "pkg/Fixed", "*", text, json!([field("data", "float64[8]")]));
            let topic = topic.with_sum("*", "wildcard");
            let mut bag = Bag::recorder();
            bag.define(&topic);
            for i in 0..6 {
                let payload = [f64::from(i); 8].map(f64::to_le_bytes).concat();
                if i == 2 {
                    let mut bytes = topic.data(stamp(i), &payload);
                    bytes.truncate(bytes.len() - 10);
                    bag.lose("gap", &bytes);
                } else {
                    bag.message(&topic, stamp(i), &payload, &json!({"data": vec![f64::from(i); 8]}));
                }
            }
            bag.unindexed();
            bag.done()
        },
    ),
    Case::rosbag(
        "bytes-lost-in-a-message+bag-in-it",
        "10 bytes behind a bag in a message are missing: its records are none of this bag",
        &["D4"],
        || {
            let text = "uint8[] data\nuint8[16] tail\n";
            let fields = json!([field("data", "bytes"), field("tail", "bytes")]);
            let topic = Topic::new("/blob", "pkg/Blob", "*", text, fields).with_sum("*", "wildcard");
            let mut bag = Bag::recorder();
            bag.define(&topic);
            let inner = inner_bag();
            for i in 0..6 {
                let payload = [self::text(&inner.bytes), vec![7; 16]].concat();
                if i == 2 {
                    let mut bytes = topic.data(stamp(i), &payload);
                    bytes.truncate(bytes.len() - 10);
                    bag.lose("gap", &bytes);
                } else {
                    let data = json!({"data": inner.base64, "tail": base64(&[7; 16])});
                    bag.message(&topic, stamp(i), &payload, &data);
                }
            }
            bag.unindexed();
            bag.done()
        },
    ),
    Case::rosbag(
        "damaged-header-length+behind-a-bag-in-a-message",
        "a whole message that holds a bag stays, though nothing valid follows it",
        &["D4", "D5"],
        || {
            let mut bag = Bag::recorder();
            let (topic, other) = (blob(), Topic::string("/chatter"));
            let inner = inner_bag();
            bag.define(&topic);
            bag.message(&topic, stamp(0), &text(&inner.bytes), &json!({"data": inner.base64}));
            let mut bytes = other.definition();
            bytes[..4].copy_from_slice(&[0xff; 4]);
            bag.lose("gap", &bytes);
            bag.define(&other);
            talk(&mut bag, &other, 1..4);
            bag.unindexed();
            bag.done()
        },
    ),
    Case::rosbag("bag-in-a-message", "a sound message that holds a whole bag", &["D5"], || {
        let mut bag = Bag::recorder();
        let topic = blob();
        bag.define(&topic);
        let inner = inner_bag();
        for i in 0..3 {
            bag.message(&topic, stamp(i), &text(&inner.bytes), &json!({"data": inner.base64}));
        }
        bag.close();
        bag.done()
    }),
];

const LONG: &[u8] = b"a text of some length, so that the end of its record is far from the beginning";

/// A bag of a recorder whose last message lacks its last bytes.
fn cut(missing: usize) -> Made {
    let record = Topic::string("/chatter").data(stamp(3), &text(LONG));
    cut_to(record.len() - missing)
}

/// The same with so many bytes of the last message.
fn cut_to(len: usize) -> Made {
    let (mut bag, topic) = recorded(0..3);
    bag.lose("cut", &topic.data(stamp(3), &text(LONG))[..len]);
    bag.unindexed();
    bag.done()
}

/// A bag whose fourth message is damaged by `spoil`.
fn damaged(code: &'static str, spoil: fn(&mut [u8])) -> Made {
    let (mut bag, topic) = recorded(0..3);
    let mut bytes = topic.data(stamp(3), &text(LONG));
    spoil(&mut bytes);
    bag.lose(code, &bytes);
    talk(&mut bag, &topic, 4..7);
    bag.unindexed();
    bag.done()
}

fn named_by_index() -> Made {
    let (mut bag, topic) = recorded(0..3);
    let gone = bag.at();
    let mut bytes = topic.data(stamp(3), &text(LONG));
    bytes[..4].copy_from_slice(&[0xff; 4]);
    bag.lose("gap", &bytes);
    bag.entries("/chatter").push((stamp(3), gone));
    talk(&mut bag, &topic, 4..7);
    bag.close_differing();
    bag.done()
}

fn definition_gone() -> Made {
    let (mut bag, topic) = recorded(0..3);
    let other = Topic::string("/other").found_in("same md5");
    let gone = bag.at();
    let mut bytes = other.definition();
    bytes[..4].copy_from_slice(&[0xff; 4]);
    bag.lose("gap", &bytes);
    bag.note(bag.at(), "definition_elsewhere");
    bag.say(&other, stamp(3), "the first");
    // The index names the place of the definition.
    bag.entries("/other")[0].1 = gone;
    bag.say(&topic, stamp(4), "m4");
    bag.say(&other, stamp(5), "the second");
    bag.close_differing();
    bag.done()
}

/// A topic of blobs.
fn blob() -> Topic {
    Topic::new("/blob", "pkg/Blob", "*", "uint8[] data\n", json!([field("data", "bytes")]))
        .with_sum("*", "wildcard")
}

struct Inner {
    bytes: Vec<u8>,
    base64: String,
}

/// A whole bag, small.
fn inner_bag() -> Inner {
    let mut inner = Bag::plain();
    talk(&mut inner, &Topic::string("/inner"), 0..3);
    Inner { base64: base64(&inner.bytes), bytes: inner.bytes }
}

fn nested() -> Made {
    let mut bag = Bag::recorder();
    let topic = blob();
    let inner = inner_bag();
    bag.define(&topic);
    bag.message(&topic, stamp(0), &text(&inner.bytes), &json!({"data": inner.base64}));
    let gone = bag.at();
    let mut bytes = topic.data(stamp(1), &text(&inner.bytes));
    bytes[..4].copy_from_slice(&[0xff; 4]);
    bag.lose("gap", &bytes);
    bag.entries("/blob").push((stamp(1), gone));
    bag.message(&topic, stamp(2), &text(b"x"), &json!({"data": "eA=="}));
    bag.close_differing();
    bag.done()
}
