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
