//! The index, and bag headers that say something else.

use super::bag::{Bag, Topic, index_record};
use super::lay::entry;
use super::{recorded, stamp, talk};
use crate::corpus::{Case, Made};

pub(super) const CASES: &[Case] = &[
    Case::rosbag("index-missing+pos-0", "killed between two records", &["B14"], || {
        let (mut bag, _) = recorded(0..3);
        bag.unindexed();
        bag.done()
    }),
    Case::rosbag(
        "index-missing+pos-stale",
        "the position of the file before, as a split leaves it",
        &["B14"],
        || {
            let (mut bag, _) = recorded(0..3);
            bag.set_index_pos(12_345_678);
            bag.note(16, "unindexed");
            bag.section(Some(12_345_678), None, "absent");
            bag.done()
        },
    ),
    Case::rosbag("index-pos-wrong", "points at a message", &["B14", "B9"], || {
        let (mut bag, _) = recorded(0..3);
        bag.close();
        bag.set_index_pos(4120);
        bag.note(16, "index_pos_wrong");
        let mut made = bag.done();
        made.expected["rosbag"]["sections"][0]["index_pos"] = 4120.into();
        made
    }),
    Case::rosbag("index-first-entry-is-data", "not at the definition", &["B7"], || {
        let mut bag = Bag::recorder();
        let topic = Topic::string("/chatter");
        bag.define(&topic);
        let data_at = bag.at();
        talk(&mut bag, &topic, 1..4);
        bag.entries("/chatter")[0].1 = data_at;
        bag.close();
        bag.done()
    }),
    Case::rosbag("index-names-no-message", "an entry too many, one too few", &["B9"], || {
        let (mut bag, _) = recorded(0..4);
        bag.entries("/chatter")[2].1 += 1;
        bag.close_differing();
        bag.done()
    }),
    Case::rosbag("index-with-other-stamps", "the stamp of an entry is not the message's", &["B9"], || {
        let (mut bag, _) = recorded(0..4);
        bag.entries("/chatter")[1].0 = stamp(9);
        bag.close_differing();
        bag.done()
    }),
    Case::rosbag("index-lacks-a-topic", "one of two topics is not in it", &["B9", "B23"], || {
        let (mut bag, _) = recorded(0..2);
        let records = bag.index_records();
        talk(&mut bag, &Topic::string("/other"), 0..2);
        bag.note(bag.at(), "index_differs");
        bag.close_with(&records, "differs");
        bag.done()
    }),
    Case::rosbag("index-of-a-topic-without-messages", "count 0, as a full disk left it", &["B23"], || {
        let (mut bag, _) = recorded(0..2);
        let mut records = bag.index_records();
        records.push(index_record("/lost", Some("std_msgs/String"), 0, 0, b""));
        bag.close_with(&records, "exact");
        bag.done()
    }),
    Case::rosbag("index-of-another-version", "version 1", &["B26"], || unusable(1, 2)),
    Case::rosbag("index-count-wrong", "more entries than bytes", &["B26"], || unusable(0, 0x0fff_ffff)),
    Case::rosbag("index-in-another-order", "topics not by name", &["B9"], || {
        let mut bag = Bag::recorder();
        for name in ["/b", "/a"] {
            talk(&mut bag, &Topic::string(name), 0..2);
        }
        let mut records = bag.index_records();
        records.reverse();
        bag.close_with(&records, "exact");
        bag.done()
    }),
];

/// A bag whose index record says this version and count.
fn unusable(ver: u32, count: usize) -> Made {
    let (mut bag, _) = recorded(0..2);
    bag.note(bag.at(), "index_unusable");
    bag.note(bag.at(), "index_differs");
    let data: Vec<u8> = bag.entries("/chatter").iter().flat_map(|(stamp, pos)| entry(*stamp, *pos)).collect();
    bag.close_with(&[index_record("/chatter", Some("std_msgs/String"), ver, count, &data)], "differs");
    bag.done()
}
