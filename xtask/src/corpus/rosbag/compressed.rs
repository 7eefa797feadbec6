//! Bags that are compressed as a whole, and compressed data that end in every way.

use serde_json::json;

use super::bag::{Bag, Topic};
use super::lay::text;
use super::{stamp, talk};
use crate::corpus::expected::refused;
use crate::corpus::lay::Lay;
use crate::corpus::{Case, Made};

pub(super) const CASES: &[Case] = &[
    Case::rosbag("compressed-gzip", "the whole file", &["B15"], || {
        let mut made = small();
        made.bytes = gzip(&made.bytes);
        made
    }),
    Case::rosbag("compressed-bzip2", "the whole file", &["B15"], || {
        let mut made = small();
        made.bytes = BZIP2.to_vec();
        made
    }),
    Case::rosbag(
        "compressed-gzip+two-members",
        "two compressed parts, one behind the other",
        &["B15"],
        || {
            let mut made = small();
            let (first, second) = made.bytes.split_at(100);
            made.bytes = [gzip(first), gzip(second)].concat();
            made
        },
    ),
    Case::rosbag(
        "compressed-gzip+header-fields",
        "extra field, name, comment and a sum of the header",
        &["B15"],
        || {
            let mut made = small();
            let whole = gzip(&made.bytes);
            let mut head = whole[..10].to_vec();
            head[3] = 2 | 4 | 8 | 16;
            head.extend(b"\x03\0abcname\0comment\0");
            let sum = crc32(&head).to_le_bytes();
            made.bytes = [&head[..], &sum[..2], &whole[10..]].concat();
            made
        },
    ),
    Case::rosbag(
        "compressed-gzip+cut",
        "the compressed file is cut inside of the last message",
        &["B15", "C1"],
        || {
            let mut bag = Bag::plain();
            bag.note(0, "compressed");
            let topic = Topic::string("/chatter");
            talk(&mut bag, &topic, 0..2);
            let whole = topic.data(stamp(2), &text(b"the last"));
            bag.lose("cut", &whole[..whole.len() - 3]);
            bag.lose("packed_cut", b"");
            bag.note(0, "unindexed");
            bag.section(None, None, "absent");
            let mut made = bag.done();
            let bytes = [&made.bytes[..], &whole[whole.len() - 3..]].concat();
            made.bytes = gzip(&bytes);
            made.bytes.truncate(made.bytes.len() - 8 - 3);
            made
        },
    ),
    Case::rosbag("compressed-gzip+cut-between-records", "nothing but the end is missing", &["C1"], || {
        let mut bag = Bag::plain();
        bag.note(0, "compressed");
        let topic = Topic::string("/chatter");
        talk(&mut bag, &topic, 0..2);
        bag.lose("packed_cut", b"");
        bag.note(0, "unindexed");
        bag.section(None, None, "absent");
        let mut made = bag.done();
        let more = topic.data(stamp(2), &text(b"the last"));
        made.bytes = gzip(&[&made.bytes[..], &more].concat());
        made.bytes.truncate(made.bytes.len() - 8 - more.len());
        made
    }),
    Case::rosbag("compressed-gzip+checksum-missing", "the file ends inside of the checksum", &["C2"], || {
        let mut made = ending("packed_unchecked");
        made.bytes.truncate(made.bytes.len() - 5);
        made
    }),
    Case::rosbag("compressed-gzip+checksum-wrong", "the checksum is another's", &["C3"], || {
        let mut bytes = gzip(&small().bytes);
        let at = bytes.len() - 8;
        bytes[at] ^= 1;
        Made { bytes, expected: refused("rosbag", "", "malformed", "checksum") }
    }),
    Case::rosbag(
        "compressed-gzip+length-wrong",
        "the length behind the checksum is another's",
        &["C3"],
        || {
            let mut bytes = gzip(&small().bytes);
            let at = bytes.len() - 4;
            bytes[at] ^= 1;
            Made { bytes, expected: refused("rosbag", "", "malformed", "checksum") }
        },
    ),
    Case::rosbag("compressed-gzip+followed", "bytes that are not compressed follow", &["C4"], || {
        let mut made = ending("packed_followed");
        made.bytes.extend(b"and so on");
        made
    }),
    Case::rosbag("compressed-gzip+zeros-behind", "zeros up to the end of a block of a tape", &["C4"], || {
        let mut made = small();
        let end = made.bytes.len().to_string();
        made.bytes = gzip(&made.bytes);
        made.bytes.resize(1024, 0);
        let notes = made.expected["notes"].as_array_mut().expect("a list");
        notes.push(json!({"code": "packed_padding", "offset": end}));
        made
    }),
    Case::rosbag(
        "compressed-bzip2+cut",
        "the end mark and the checksum of the file are cut",
        &["C1"],
        || {
            let mut made = ending("packed_cut");
            made.bytes = BZIP2[..BZIP2.len() - 3].to_vec();
            made
        },
    ),
    Case::rosbag("compressed-bzip2+damaged", "a byte of the only block is another", &["C3"], || {
        let mut bytes = BZIP2.to_vec();
        bytes[200] ^= 1;
        Made { bytes, expected: refused("rosbag", "", "malformed", "checksum") }
    }),
];

/// A bag of which every byte is known, so that it can be compressed by hand.
fn small() -> Made {
    let mut bag = Bag::plain();
    bag.note(0, "compressed");
    talk(&mut bag, &Topic::string("/chatter"), 0..2);
    bag.note(0, "unindexed");
    bag.section(None, None, "absent");
    bag.done()
}

/// The same as gzip, which loses nothing of the bag and ends in a way that a reader calls so.
fn ending(code: &'static str) -> Made {
    let mut bag = Bag::plain();
    bag.note(0, "compressed");
    talk(&mut bag, &Topic::string("/chatter"), 0..2);
    bag.lose(code, b"");
    bag.note(0, "unindexed");
    bag.section(None, None, "absent");
    let mut made = bag.done();
    made.bytes = gzip(&made.bytes);
    made
}

/// RFC 1952 around one stored block of RFC 1951.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let len = u16::try_from(bytes.len()).expect("one block");
    Lay::new()
        .bytes(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255])
        .u8(1)
        .u16(len)
        .u16(!len)
        .bytes(bytes)
        .bytes(&crc32(bytes).to_le_bytes())
        .bytes(&u32::from(len).to_le_bytes())
        .done()
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(
            crc ^ u32::from(*byte),
            |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 },
        )
    })
}

/// The bytes of [`small`], compressed by bzip2 1.0.8.
const BZIP2: &[u8] = &[
    0x42, 0x5a, 0x68, 0x39, 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, 0xf5, 0xfd, 0xe7, 0x9e, 0x00, 0x00, 0x37,
    0xff, 0x81, 0xf7, 0x71, 0x44, 0x00, 0x4c, 0x01, 0xff, 0xea, 0x0e, 0x08, 0x99, 0x00, 0xbf, 0xe3, 0xdc,
    0x20, 0x20, 0x00, 0x02, 0x00, 0x30, 0x00, 0xd8, 0x06, 0x00, 0x01, 0xa0, 0x00, 0x32, 0x68, 0x00, 0x00,
    0x34, 0x06, 0x00, 0x01, 0xa0, 0x00, 0x32, 0x68, 0x00, 0x00, 0x34, 0x03, 0x6a, 0x42, 0x53, 0xc5, 0x3d,
    0x30, 0x53, 0xd4, 0x07, 0xa8, 0xc4, 0xd0, 0xf2, 0x8c, 0x98, 0xca, 0x63, 0x42, 0x7b, 0x6d, 0x72, 0x8d,
    0x36, 0x3c, 0x95, 0x12, 0x2e, 0xe2, 0x75, 0x31, 0x1c, 0xea, 0x92, 0xa1, 0xe9, 0x24, 0xa7, 0x4c, 0x90,
    0x99, 0x32, 0x65, 0xe2, 0xea, 0xba, 0xd4, 0xb3, 0x28, 0x96, 0xcf, 0x4b, 0x2e, 0x52, 0xe4, 0x5d, 0x2c,
    0x9e, 0x51, 0x27, 0x78, 0x14, 0x1c, 0x70, 0x1b, 0x6d, 0x06, 0xa3, 0x45, 0xe5, 0xc5, 0xe4, 0x44, 0x84,
    0xc6, 0x04, 0x11, 0xf6, 0x40, 0xc4, 0x82, 0x24, 0x27, 0x29, 0x4f, 0x4b, 0x21, 0x8d, 0x66, 0xc5, 0x19,
    0xc3, 0x76, 0x0a, 0x55, 0xbd, 0xd8, 0x63, 0xb9, 0xdb, 0xcd, 0xf5, 0x9c, 0xfb, 0xca, 0x87, 0xf2, 0x1e,
    0x52, 0x30, 0xc1, 0x91, 0xc4, 0xbc, 0xf5, 0x26, 0x2d, 0x34, 0x99, 0x13, 0x94, 0x5b, 0x49, 0x69, 0x30,
    0xe3, 0x52, 0x55, 0xc6, 0x53, 0xc1, 0x28, 0x11, 0x11, 0x97, 0xa5, 0x28, 0xb2, 0x2e, 0xb1, 0x27, 0x8b,
    0xb4, 0xe6, 0x74, 0x18, 0xcc, 0x3d, 0x28, 0x74, 0xd6, 0x50, 0xf4, 0xd6, 0x1a, 0x52, 0xbe, 0xb2, 0x43,
    0xb0, 0xd0, 0x3e, 0x03, 0xc8, 0x0d, 0xd7, 0xfc, 0x5d, 0xc9, 0x14, 0xe1, 0x42, 0x43, 0xd7, 0xf7, 0x9e,
    0x78,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_rfc_1952() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }
}
