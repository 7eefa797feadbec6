//! The layout of a bag, its times and their order.

use serde_json::json;

use super::log::{BAG_HEADER_SIZE, Bag, Conn, Content, VERSION_LINE, talk, talker};
use crate::Made;
use crate::cases;
use crate::lay::base64;
use crate::rosbag::compressed::{cut, gzip};
use crate::rosbag::log::{Stamp, Topic, refused, text};
use crate::rosbag::stamp;

cases! {
    "v2.0" [K1] "one topic in one chunk, closed by the recorder" => Bag::recorder().put(talk(0..5).plain()).close();
    "v2.0+several-chunks" [K1 K6] "the connection record is in the first chunk only" =>
        Bag::recorder().put(talk(0..3).plain()).put(talk(3..5).plain()).put(talk(5..8).plain()).close();
    "compressed-gzip+v2.0" [B15 K1] "the whole file" => packed().map(|bytes| gzip(&bytes));
    "compressed-gzip+v2.0+checksum-missing" [C2 K1] "the file ends inside of the checksum" => {
        let mut made = packed();
        let end = made.bytes.len().to_string();
        made.expected["lost"] = json!([{"code": "packed_unchecked", "start": end, "end": end}]);
        made.expected["state"] = json!("truncated");
        made.map(|bytes| cut(gzip(&bytes), 5))
    };
    "v2.0+no-messages" [K1] "a recorder that was stopped at once" => Bag::recorder().close_as("empty");
    "v2.0+empty-chunks" [K1 K2] "chunks without records, one with an empty stream" =>
        Bag::recorder().put(Content::new().plain()).put(talk(0..3).plain()).put(Content::new().lz4()).close();
    "v2.0+header-without-padding" [K1] "the first chunk is at byte 90" =>
        Bag::starting(VERSION_LINE, 0, &[]).put(talk(0..3).plain()).close();
    "v2.0+header-of-4096-bytes" [K1] "the whole record has 4096 bytes, as one library writes it" =>
        Bag::starting(VERSION_LINE, BAG_HEADER_SIZE - 69 - 8, &[]).put(talk(0..3).plain()).close();
    "v2.0+version-line-crlf" [B2] "CR LF after the version line" =>
        Bag::starting(b"#ROSBAG V2.0\r\n", 0, &[]).note_at(0, "version_line_crlf").put(talk(0..3).plain()).close();
    "v2.0+version-line-damaged" [D8] "one byte is wrong, records follow" =>
        Bag::starting(b"#RPSBAG V2.0\n", 0, &[]).note_at(0, "version_line_damaged").put(talk(0..3).plain()).close();
    "v2.0+version-line-missing" [D8] "the file starts with the bag header" =>
        Bag::starting(b"", 0, &[]).note_at(0, "version_line_damaged").put(talk(0..3).plain()).close();
    "v2.0+two-bags" [K15] "a second bag in the same file, with an id of its own meaning" => {
        let other = Conn::of(0, &Topic::string("/other"));
        Bag::starting(VERSION_LINE, 0, &[]).put(talk(0..3).plain()).close().begin_section()
            .put(Content::new().connect(&other).talk(&other, 4..7).plain()).close()
    };
    "v2.0+chunks-overlap" [K12] "times go back within chunks and between them" => {
        let content = |stamps: [u32; 3]| {
            stamps.into_iter().fold(talk(0..1), |content, i| content.say(&talker(), stamp(i), "x"))
        };
        Bag::recorder().put(content([6, 2, 4]).plain()).put(content([5, 1, 3]).lz4()).put(content([9, 0, 2]).plain())
            .close()
    };
    "v2.0+stamps-equal" [K12 B28] "two topics, two chunks, one time: the place decides" => {
        let (a, b) = (Conn::of(0, &Topic::string("/b")), Conn::of(1, &Topic::string("/a")));
        let content = || Content::new().connect(&a).connect(&b);
        Bag::recorder()
            .put(content().say(&a, stamp(0), "1").say(&b, stamp(0), "2").say(&a, stamp(0), "3").plain())
            .put(content().say(&b, stamp(0), "4").say(&a, stamp(0), "5").plain())
            .close()
    };
    "v2.0+stamp-zero" [K11 B19] "a simulation before its clock ran" =>
        times(&[(0, 0), (0, 0), (12, 5)], 0, "stamp_zero");
    "v2.0+nanoseconds-past-a-second" [K11 B18] "carried into the seconds" =>
        times(&[(1_262_304_000, 0), (1_262_304_000, 2_500_000_000)], 1, "stamp_out_of_range");
    "v2.0+last-time" [K11] "the last time of 32 bits" => {
        let content = Content::new().connect(&talker());
        Bag::recorder()
            .put([7, 8, 9].into_iter().fold(content, |content, i| {
                content.say(&talker(), (u32::MAX, 999_999_990 + i), "x")
            }).plain())
            .close()
    };
    "v2.0+bag-in-a-message" [K14] "a payload that is a whole bag is never searched" => {
        let inner = Made::from(Bag::starting(VERSION_LINE, 0, &[]).put(talk(0..2).plain()).close()).bytes;
        let files = Conn::of(1, &Topic::new("/files", "test_msgs/File", "*", "uint8[] data\n").with_sum("*", "wildcard"));
        let payload = text(&inner);
        let content = talk(0..2).connect(&files)
            .message_as(&files, stamp(2), files.message(stamp(2), &payload), json!({"data": base64(&inner)}));
        Bag::recorder().put(content.talk(&talker(), 3..5).plain()).close()
    };
    "version-2.1" [V3] "a version that nobody wrote" =>
        refused(b"#ROSBAG V2.1\n\0\0\0\0", "2.1", "unsupported", "version 2.1");
}

/// Returns a bag that is to be compressed as a whole.
fn packed() -> Made {
    let mut made = Made::from(Bag::recorder().put(talk(0..5).plain()).close());
    made.expected["notes"] = json!([{"code": "compressed", "offset": "0"}]);
    made
}

/// Returns a bag of messages of these times, the one with number `noted` with a note.
fn times(stamps: &[Stamp], noted: usize, code: &'static str) -> Bag {
    let content = stamps.iter().enumerate().fold(Content::new().connect(&talker()), |content, (i, stamp)| {
        let content = if i == noted { content.note(code) } else { content };
        content.say(&talker(), *stamp, "x")
    });
    Bag::recorder().put(content.plain()).close()
}
