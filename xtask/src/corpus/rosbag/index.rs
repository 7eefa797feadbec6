//! The index, and bag headers that say something else.

use super::bag::{Bag, Topic, index_record};
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
        differs(&mut bag);
        bag.done()
    }),
    Case::rosbag("index-with-other-stamps", "the stamp of an entry is not the message's", &["B9"], || {
        let (mut bag, _) = recorded(0..4);
        bag.entries("/chatter")[1].0 = stamp(9);
        differs(&mut bag);
        bag.done()
    }),
    Case::rosbag("index-lacks-a-topic", "one of two topics is not in it", &["B9", "B23"], || {
        let (mut bag, _) = recorded(0..2);
        let records = bag.index_records();
        talk(&mut bag, &Topic::string("/other"), 0..2);
        let pos = bag.at();
        bag.set_index_pos(pos);
        bag.note(pos, "index_differs");
        for record in &records {
            bag.other("4", record);
        }
        bag.section(Some(pos), None, "differs");
        bag.done()
    }),
    Case::rosbag("index-of-a-topic-without-messages", "count 0, as a full disk left it", &["B23"], || {
        let (mut bag, _) = recorded(0..2);
        let pos = bag.at();
        bag.set_index_pos(pos);
        for record in bag.index_records() {
            bag.other("4", &record);
        }
        bag.other("4", &index_record("/lost", Some("std_msgs/String"), 0, 0, b""));
        bag.section(Some(pos), None, "exact");
        bag.done()
    }),
    Case::rosbag("index-of-another-version", "version 1", &["B26"], || unusable(1, 2)),
    Case::rosbag("index-count-wrong", "more entries than bytes", &["B26"], || unusable(0, 0x0fff_ffff)),
    Case::rosbag("index-in-another-order", "topics not by name", &["B9"], || {
        let mut bag = Bag::recorder();
        for name in ["/b", "/a"] {
            talk(&mut bag, &Topic::string(name), 0..2);
        }
        let pos = bag.at();
        bag.set_index_pos(pos);
        for record in bag.index_records().iter().rev() {
            bag.other("4", record);
        }
        bag.section(Some(pos), None, "exact");
        bag.done()
    }),
];

/// Closes a bag whose index was spoilt.
fn differs(bag: &mut Bag) {
    let pos = bag.at();
    bag.note(pos, "index_differs");
    bag.set_index_pos(pos);
    for record in bag.index_records() {
        bag.other("4", &record);
    }
    bag.section(Some(pos), None, "differs");
}

fn unusable(ver: u32, count: usize) -> Made {
    let (mut bag, _) = recorded(0..2);
    let pos = bag.at();
    bag.set_index_pos(pos);
    bag.note(pos, "index_unusable");
    bag.note(pos, "index_differs");
    let mut data = Vec::new();
    for ((sec, nsec), place) in bag.entries("/chatter").clone() {
        data.extend(sec.to_le_bytes());
        data.extend(nsec.to_le_bytes());
        data.extend(place.to_le_bytes());
    }
    bag.other("4", &index_record("/chatter", Some("std_msgs/String"), ver, count, &data));
    bag.section(Some(pos), None, "differs");
    bag.done()
}
