//! Framing: version line, records, header fields, stamps.

use serde_json::json;

use super::bag::{Bag, Topic};
use super::lay::{VERSION_LINE, entry, record, text};
use super::{recorded, stamp, talk};
use crate::corpus::expected::refused;
use crate::corpus::{Case, Made};

pub(super) const CASES: &[Case] = &[
    Case::rosbag("recorded", "one topic, closed by the recorder", &["B1", "B7", "B9"], || {
        let (mut bag, _) = recorded(0..5);
        bag.close();
        bag.done()
    }),
    Case::rosbag("recorded+two-topics", "two topics of one type", &["B1", "B28"], two_topics),
    Case::rosbag("no-messages", "a recorder that was stopped at once", &["B14"], || {
        let mut bag = Bag::recorder();
        bag.close();
        bag.done()
    }),
    Case::rosbag("version-line-only", "nothing behind the version line", &["B3"], || {
        let mut bag = Bag::plain();
        bag.section(None, None, "empty");
        bag.done()
    }),
    Case::rosbag("no-bag-header", "as ROS 0.5 recorded: neither bag header nor index", &["B3"], || {
        let mut bag = Bag::plain();
        talk(&mut bag, &Topic::string("/chatter"), 0..4);
        bag.unindexed();
        bag.done()
    }),
    Case::rosbag("version-line-crlf", "CR LF behind the version line", &["B2"], || {
        let mut bag = Bag::starting(b"#ROSRECORD V1.2\r\n", "1.2");
        bag.note(0, "version_line_crlf");
        talk(&mut bag, &Topic::string("/chatter"), 0..3);
        bag.note(0, "unindexed");
        bag.section(None, None, "absent");
        bag.done()
    }),
    Case::rosbag("bag-header-of-another-size", "padding of 10 bytes", &["B4"], || {
        let mut bag = Bag::plain();
        let at = bag.at();
        bag.other("3", &record(&[("op", &[3]), ("index_pos", &[0; 8])], &[b' '; 10]));
        talk(&mut bag, &Topic::string("/chatter"), 0..3);
        bag.note(at, "unindexed");
        bag.section(Some(0), None, "absent");
        bag.done()
    }),
    Case::rosbag("fields-in-another-order", "fields as scripts wrote them", &["B5"], any_order),
    Case::rosbag("fields-unknown", "fields of other names, which stay", &["B20"], || {
        let mut bag = Bag::plain();
        let topic = Topic::string("/chatter");
        bag.define(&topic);
        for i in 0..3 {
            let bytes = topic.data_with(stamp(i), &text(b"x"), &[("colour", b"r=d")]);
            bag.lay(&topic, stamp(i), &bytes, &json!({"data": "x"}));
        }
        bag.unindexed();
        bag.done()
    }),
    Case::rosbag("field-twice", "the last topic counts", &["B16"], || {
        let mut bag = Bag::plain();
        let topic = Topic::string("/chatter");
        bag.define(&topic);
        for i in 0..2 {
            if i == 0 {
                bag.note(bag.at(), "duplicate_field");
            }
            let bytes = topic.data_with(stamp(i), &text(b"x"), &[("topic", b"/other")]);
            bag.lay(&topic, stamp(i), &bytes, &json!({"data": "x"}));
        }
        bag.unindexed();
        bag.done()
    }),
    Case::rosbag("unknown-op", "records of kinds 9 and 0 between messages", &["B20"], || {
        let (mut bag, topic) = recorded(0..2);
        for op in [9u8, 0] {
            bag.note(bag.at(), "unknown_op");
            bag.other(&op.to_string(), &record(&[("op", &[op]), ("why", b"nobody knows")], b"data"));
        }
        talk(&mut bag, &topic, 2..4);
        bag.close();
        bag.done()
    }),
    Case::rosbag("latched+two-publishers", "latching and callerid", &["B12"], || {
        let mut bag = Bag::recorder();
        let topic = Topic::string("/map_note");
        bag.define(&topic);
        for (i, caller) in (0..).zip(["/a", "/b", "/a"]) {
            bag.latched(&topic, stamp(i), &format!("m{i}"), caller);
        }
        bag.say(&topic, stamp(3), "not latched");
        bag.close();
        bag.done()
    }),
    Case::rosbag("definition-with-data", "op 1 with data, which no writer makes", &["B13"], || {
        let mut bag = Bag::plain();
        let topic = Topic::string("/chatter");
        bag.note(bag.at(), "definition_with_data");
        let mut bytes = topic.definition();
        let len = bytes.len();
        bytes[len - 4..].copy_from_slice(&3u32.to_le_bytes());
        bytes.extend(b"???");
        bag.define(&topic);
        let from = bag.bytes.len() - len;
        bag.bytes.truncate(from);
        bag.bytes.extend(bytes);
        talk(&mut bag, &topic, 1..3);
        bag.unindexed();
        bag.done()
    }),
    Case::rosbag("topic-names", "without a slash, not UTF-8", &["B17"], || {
        let mut bag = Bag::plain();
        talk(&mut bag, &Topic::string("scan"), 0..2);
        // Latin-1: laid by hand, because names here are texts.
        let topic = Topic::string("/caf?").shown("/caf\\xe9");
        let latin = |bytes: Vec<u8>| -> Vec<u8> {
            let at = bytes.windows(5).position(|part| part == b"/caf?").expect("the name is there");
            let mut bytes = bytes;
            bytes[at + 4] = 0xe9;
            bytes
        };
        let bytes = latin(topic.definition());
        bag.define(&topic);
        let from = bag.bytes.len() - bytes.len();
        bag.bytes.truncate(from);
        bag.bytes.extend(bytes);
        let bytes = latin(topic.data(stamp(3), &text(b"x")));
        bag.lay(&topic, stamp(3), &bytes, &json!({"data": "x"}));
        bag.unindexed();
        bag.done()
    }),
    Case::rosbag("nanoseconds-past-a-second", "carried into the seconds", &["B18"], || {
        let mut bag = Bag::plain();
        let topic = Topic::string("/chatter");
        bag.define(&topic);
        bag.say(&topic, (1_262_304_000, 0), "a");
        bag.note(bag.at(), "stamp_out_of_range");
        bag.say(&topic, (1_262_304_000, 2_500_000_000), "b");
        bag.unindexed();
        bag.done()
    }),
    Case::rosbag("stamp-zero", "a simulation before its clock ran", &["B19"], || {
        let mut bag = Bag::recorder();
        let topic = Topic::string("/chatter");
        bag.define(&topic);
        bag.note(bag.at(), "stamp_zero");
        bag.say(&topic, (0, 0), "a");
        bag.say(&topic, (0, 0), "b");
        bag.say(&topic, (12, 5), "c");
        bag.close();
        bag.done()
    }),
    Case::rosbag("stamp-stale", "one time an hour behind all others", &["B24"], || {
        let mut bag = Bag::recorder();
        let (steady, stale) = (Topic::string("/chatter"), Topic::string("/stale"));
        bag.define(&steady);
        for i in 0..60 {
            bag.say(&steady, (1_262_304_000, i * 10_000_000), "a");
        }
        bag.define(&stale);
        bag.note(bag.at(), "stale_times");
        bag.say(&stale, (1_262_307_600, 0), "b");
        for i in 60..100 {
            bag.say(&steady, (1_262_304_000, i * 10_000_000), "a");
        }
        bag.close();
        bag.done()
    }),
    Case::rosbag(
        "stamps-going-back",
        "the order of a queue; the first is not the earliest",
        &["B24", "B28"],
        || {
            let mut bag = Bag::recorder();
            let topic = Topic::string("/chatter");
            bag.define(&topic);
            bag.note(bag.at(), "first_stamp_late");
            for i in [3, 1, 2, 0, 4] {
                bag.say(&topic, stamp(i), &format!("m{i}"));
            }
            bag.close();
            bag.done()
        },
    ),
    Case::rosbag("raw-padding", "three hours of December 2009", &["B22"], raw_padding),
    Case::rosbag("two-sections", "recorded twice into one file", &["B8"], two_sections),
    Case::rosbag("text-mode-copy", "every LF became CR LF", &["B27", "D1"], text_mode),
    Case::rosbag("bag-header-late", "a bag header behind the first message", &["B29"], || {
        let mut bag = Bag::plain();
        let topic = Topic::string("/chatter");
        talk(&mut bag, &topic, 0..2);
        let at = bag.at();
        bag.note(at, "bag_header_late");
        bag.other("3", &record(&[("index_pos", &[0; 8]), ("op", &[3])], &[b' '; 10]));
        talk(&mut bag, &topic, 2..4);
        bag.note(at, "unindexed");
        bag.section(Some(0), None, "absent");
        bag.done()
    }),
    Case::rosbag("version-1.3", "a version of one day", &["V3"], || Made {
        bytes: b"#ROSBAG V1.3\n\0\0\0\0".to_vec(),
        expected: refused("rosbag", "1.3", "unsupported", "version 1.3"),
    }),
    Case::rosbag("version-line-cut", "the file ends inside the version line", &["V3"], || Made {
        bytes: b"#ROSRECORD V1.".to_vec(),
        expected: refused("rosbag", "", "truncated", "inside the version line"),
    }),
    Case::rosbag("version-line-broken", "a version that is no number", &["V3"], || Made {
        bytes: b"#ROSRECORD V1.x\n\0\0\0\0".to_vec(),
        expected: refused("rosbag", "", "malformed", "version line"),
    }),
];

fn two_topics() -> Made {
    let mut bag = Bag::recorder();
    let (b, a) = (Topic::string("/b"), Topic::string("/a"));
    bag.define(&b);
    bag.say(&b, stamp(0), "b0");
    bag.define(&a);
    bag.say(&a, stamp(0), "a0");
    bag.say(&b, stamp(1), "b1");
    bag.say(&a, stamp(1), "a1");
    bag.close();
    bag.done()
}

fn any_order() -> Made {
    let mut bag = Bag::plain();
    let topic = Topic::string("/chatter");
    let (md5, ty, name) = (topic.md5.as_bytes(), topic.ty.as_bytes(), topic.name.as_bytes());
    let bytes = record(
        &[("type", ty), ("op", &[1]), ("def", topic.def.as_bytes()), ("topic", name), ("md5", md5)],
        b"",
    );
    let at = bag.bytes.len();
    bag.define(&topic);
    bag.bytes.truncate(at);
    bag.bytes.extend(bytes);
    for i in 0..4 {
        let (sec, nsec) = (stamp(i).0.to_le_bytes(), stamp(i).1.to_le_bytes());
        let fields: [(&str, &[u8]); 6] =
            [("topic", name), ("sec", &sec), ("type", ty), ("op", &[2]), ("md5", md5), ("nsec", &nsec)];
        bag.lay(&topic, stamp(i), &record(&fields, &text(b"x")), &json!({"data": "x"}));
    }
    bag.unindexed();
    bag.done()
}

/// The bag header without data, then spaces up to 4096 bytes behind its start; index entries point behind
/// their records, and index records lack the type.
fn raw_padding() -> Made {
    let mut bag = Bag::plain();
    let pos_at = bag.bytes.len() + 8 + "index_pos=".len();
    bag.other("3", &record(&[("index_pos", &[0; 8]), ("op", &[3])], b""));
    bag.note(bag.at(), "raw_padding");
    bag.bytes.extend([b' '; 4096 - 38]);
    let topic = Topic::string("/chatter");
    bag.define(&topic);
    let mut data = Vec::new();
    for i in 0..3 {
        bag.say(&topic, stamp(i), "x");
        data.extend(entry(stamp(i), bag.at()));
    }
    let pos = bag.at();
    bag.bytes[pos_at..pos_at + 8].copy_from_slice(&pos.to_le_bytes());
    bag.note(pos, "index_differs");
    bag.other("4", &super::bag::index_record("/chatter", None, 0, 3, &data));
    bag.section(Some(pos), Some(4058), "differs");
    bag.done()
}

/// The first bag header got the position of the second section's index, the second stays 0.
fn two_sections() -> Made {
    let (mut bag, topic) = recorded(0..3);
    let first = bag.at();
    bag.close();
    bag.begin_section();
    talk(&mut bag, &topic, 0..2);
    let second_at = bag.bytes.len();
    let section_at = second_at as u64;
    let records = bag.index_records();
    for record in records {
        bag.other("4", &record);
    }
    // Where the second bag header stands: behind its version line.
    let made_at =
        bag.bytes.windows(VERSION_LINE.len()).rposition(|part| part == VERSION_LINE).expect("two sections");
    let pos = section_at - made_at as u64;
    bag.section(Some(0), None, "exact");
    bag.note(16, "index_pos_wrong");
    bag.note(made_at as u64 + 16, "index_pos_wrong");
    let mut made = bag.done();
    // Behind the version line, two lengths and the name.
    made.bytes[34..42].copy_from_slice(&pos.to_le_bytes());
    made.expected["rosbag"]["sections"][0]["index_pos"] = pos.into();
    assert_ne!(pos, first, "or nothing would be wrong");
    made
}

fn text_mode() -> Made {
    let mut bag = Bag::starting(b"#ROSRECORD V1.2\r\n", "1.2");
    bag.note(0, "version_line_crlf");
    bag.note(0, "text_mode_copy");
    let topic = Topic::string("/chatter").with_def("# a text\n# of some lines\nstring data\n");
    let copied: Vec<u8> = topic
        .definition()
        .iter()
        .flat_map(|b| if *b == b'\n' { vec![b'\r', b'\n'] } else { vec![*b] })
        .collect();
    bag.lose("gap", &copied);
    bag.section(None, None, "empty");
    bag.done()
}

#[cfg(test)]
mod tests {
    use super::super::lay::bag_header;

    #[test]
    fn a_bag_header_has_the_size_of_a_recorders() {
        assert_eq!(bag_header(0).len(), 4104);
    }
}
