//! Cases about framing: version line, records, header fields, and times.

use super::prelude::*;

cases! {
    "recorded" [B1 B7 B9] "one topic, closed by the recorder" => recorded(0..5).close();
    "recorded+two-topics" [B1 B28] "two topics of one type" => {
        let (b, a) = (Topic::string("/b"), Topic::string("/a"));
        Bag::recorder().define(&b).say(&b, stamp(0), "b0").define(&a).say(&a, stamp(0), "a0")
            .say(&b, stamp(1), "b1").say(&a, stamp(1), "a1").close()
    };
    "no-messages" [B14] "a recorder that was stopped at once" => Bag::recorder().close();
    "version-line-only" [B3] "nothing behind the version line" => Bag::plain().section(None, "empty");
    "no-bag-header" [B3] "as ROS 0.5 recorded: neither bag header nor index" =>
        Bag::plain().talk(&chatter(), 0..4).unindexed();
    "version-line-crlf" [B2] "CR LF behind the version line" =>
        Bag::starting(b"#ROSRECORD V1.2\r\n", "1.2").note_at(0, "version_line_crlf").talk(&chatter(), 0..3).unindexed();
    "version-line-damaged" [D8] "one byte is wrong, records follow" =>
        Bag::starting(b"#RPSRECORD V1.2\n", "1.2").note_at(0, "version_line_damaged").talk(&chatter(), 0..3).unindexed();
    "version-line-missing" [D8] "the file starts with a definition" =>
        Bag::starting(b"", "1.2").note_at(0, "version_line_damaged").talk(&chatter(), 0..3).unindexed();
    "bag-header-of-another-size" [B4] "padding of 10 bytes" =>
        Bag::plain().header(record(&[("op", &3_u8), ("index_pos", &0_u64)], [b' '; 10])).talk(&chatter(), 0..3)
            .unindexed();
    "fields-in-another-order" [B5] "fields as scripts wrote them" => {
        let topic = chatter();
        let Topic { name, ty, md5, def, .. } = &topic;
        let definition: &Fields<'_> =
            &[("type", ty), ("op", &1_u8), ("def", def), ("topic", name), ("md5", md5)];
        let message = |(sec, nsec): Stamp| record(&[
            ("topic", name), ("sec", &sec), ("type", ty), ("op", &2_u8), ("md5", md5), ("nsec", &nsec),
        ], text("x"));
        Bag::plain().define_as(&topic, record(definition, b""))
            .each((0..4).map(stamp), |bag, time| {
                bag.message_as(&topic, time, message(time), &json!({"data": "x"}))
            })
            .unindexed()
    };
    "fields-unknown" [B20] "fields of other names, which stay" =>
        Bag::plain().define(&chatter()).each(0..3, |bag, i| with_field(bag, i, ("colour", b"r=d"))).unindexed();
    "field-twice" [B16] "the last topic counts" =>
        Bag::plain().define(&chatter()).note("duplicate_field")
            .each(0..2, |bag, i| with_field(bag, i, ("topic", b"/other"))).unindexed();
    "unknown-op" [B20] "records of kinds 9 and 0 between messages" =>
        recorded(0..2)
            .each([9, 0], |bag, op| {
                bag.note("unknown_op").other(op, record(&[("op", &op), ("why", b"nobody knows")], b"data"))
            })
            .talk(&chatter(), 2..4).close();
    "latched+two-publishers" [B12] "latching and callerid" => {
        let topic = Topic::string("/map_note");
        Bag::recorder().define(&topic).latched(&topic, stamp(0), "m0", "/a")
            .latched(&topic, stamp(1), "m1", "/b").latched(&topic, stamp(2), "m2", "/a")
            .say(&topic, stamp(3), "not latched").close()
    };
    "definition-with-data" [B13] "op 1 with data, which no writer makes" => {
        let bytes = chatter().definition().with(|bytes| bytes.truncate(bytes.len() - 4));
        Bag::plain().note("definition_with_data").define_as(&chatter(), [bytes, text("???")].concat())
            .talk(&chatter(), 1..3).unindexed()
    };
    "topic-names" [B17] "without a slash, not UTF-8" => {
        // The name is in Latin-1. Names of topics are texts here, so the byte is replaced
        // afterwards.
        let topic = Topic::string("/caf?").shown("/caf\\xe9");
        let latin = |bytes: Vec<u8>| -> Vec<u8> {
            bytes.into_iter().map(|byte| if byte == b'?' { 0xe9 } else { byte }).collect()
        };
        Bag::plain().talk(&Topic::string("scan"), 0..2).define_as(&topic, latin(topic.definition()))
            .message_as(&topic, stamp(3), latin(topic.data(stamp(3), text("x"))), &json!({"data": "x"})).unindexed()
    };
    "nanoseconds-past-a-second" [B18] "carried into the seconds" =>
        Bag::plain().define(&chatter()).say(&chatter(), (1_262_304_000, 0), "a").note("stamp_out_of_range")
            .say(&chatter(), (1_262_304_000, 2_500_000_000), "b").unindexed();
    "stamp-zero" [B19] "a simulation before its clock ran" =>
        Bag::recorder().define(&chatter()).note("stamp_zero").say(&chatter(), (0, 0), "a").say(&chatter(), (0, 0), "b")
            .say(&chatter(), (12, 5), "c").close();
    "stamp-stale" [B24] "one time an hour behind all others" => {
        let stale = Topic::string("/stale");
        let steady = |bag: Bag, i: u32| bag.say(&chatter(), (1_262_304_000, i * 10_000_000), "a");
        Bag::recorder().define(&chatter()).each(0..60, steady).define(&stale).note("stale_times")
            .say(&stale, (1_262_307_600, 0), "b").each(60..100, steady).close()
    };
    "stamp-of-another-clock" [B24] "one message of 1970 among 20 of 2010: the data is what the 20 have" => {
        let steady = |bag: Bag, i: u32| bag.say(&chatter(), stamp(i), "a");
        Bag::recorder().define(&chatter()).note("first_stamp_late").each(0..10, steady)
            .note("stale_times").say(&chatter(), (5, 0), "b")
            .each(10..20, steady).data_between(1_262_304_000_000_000_000, 1_262_304_001_900_000_000).close()
    };
    "stamps-going-back" [B24 B28] "the order of a queue; the first is not the earliest" =>
        Bag::recorder().define(&chatter()).note("first_stamp_late")
            .each([3, 1, 2, 0, 4], |bag, i| bag.say(&chatter(), stamp(i), &format!("m{i}"))).close();
    "raw-padding" [B22] "three hours of December 2009" => raw_padding();
    "two-sections" [B8] "recorded twice into one file" => two_sections();
    "text-mode-copy" [B27 D1] "every LF became CR LF" => {
        let topic = chatter().with_def("# a text\n# of some lines\nstring data\n");
        let lines: Vec<_> = topic.definition().split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        let copied = lines.join(&b"\r\n"[..]);
        Bag::starting(b"#ROSRECORD V1.2\r\n", "1.2").note_at(0, "version_line_crlf").note_at(0, "text_mode_copy")
            .lose("gap", copied).section(None, "empty")
    };
    "bag-header-late" [B29] "a bag header behind the first message" => {
        let header = record(&[("index_pos", &0_u64), ("op", &3_u8)], [b' '; 10]);
        Bag::plain().talk(&chatter(), 0..2).note("bag_header_late").header(header).talk(&chatter(), 2..4).unindexed()
    };
    "version-1.3" [V3] "a version of one day" =>
        refused(b"#ROSBAG V1.3\n\0\0\0\0", ["rosbag", "1.3"], "unsupported", "version 1.3");
    "version-line-cut" [V3] "the file ends inside the version line" =>
        refused(b"#ROSRECORD V1.", ["rosbag", ""], "truncated", "inside the version line");
    "version-line-broken" [V3] "a version that is no number" =>
        refused(b"#ROSRECORD V1.x\n\0\0\0\0", ["rosbag", ""], "malformed", "version line");
}

/// Adds message `i` of the usual topic with an additional header field.
fn with_field(bag: Bag, i: u32, more: (&str, &dyn Laid)) -> Bag {
    let bytes = chatter().data_with(stamp(i), text("x"), &[more]);
    bag.message_as(&chatter(), stamp(i), bytes, &json!({"data": "x"}))
}

/// Returns a bag as an old recorder wrote it. The bag header has no data, but is followed by spaces
/// up to 4096 bytes after its start. Index entries point to the end of their records, and index
/// records lack the type.
fn raw_padding() -> Bag {
    let header = record(&[("index_pos", &0_u64), ("op", &3_u8)], b"");
    let mut data = Vec::new();
    let mut bag = Bag::plain().header(header).note("raw_padding").lay([b' '; 4096 - 38]).define(&chatter());
    for i in 0..3 {
        bag = bag.say(&chatter(), stamp(i), "x");
        data.extend(lay![stamp(i), bag.pos()]);
    }
    let index = vec![index_record("/chatter", None, [0, 3], &data)];
    bag.note("index_differs").close_with(index, "differs").in_first_section("raw_padding", 4058)
}

/// Returns a file with two bags. The recorder wrote the position of the second index into the first
/// bag header, so that the position in the second bag header remains 0.
fn two_sections() -> Bag {
    let bag = recorded(0..3).close().begin_section(VERSION_LINE, &bag_header(0)).talk(&chatter(), 0..2);
    let (pos, records) = (bag.pos(), bag.index_records());
    let bag = bag.others(4, records).section(Some(0), "exact").note_header("index_pos_wrong");
    let bag = bag.with(|bag| bag.own.header_at = Some(VERSION_LINE.len())).in_first_section("index_pos", pos);
    bag.note_header("index_pos_wrong").set_header("index_pos", pos)
}
