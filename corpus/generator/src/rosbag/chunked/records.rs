//! Cases about the layout of a bag, times and their order, connections, and messages in chunks.

use super::prelude::*;

cases! {
    "v2.0" [K1] "one topic in one chunk, closed by the recorder" => talk(0..5).closed();
    "v2.0+several-chunks" [K1 K6] "the connection record is in the first chunk only" =>
        Bag::with([0..3, 3..5, 5..8].map(|numbers| talk(numbers).plain())).close();
    "compressed-gzip+v2.0" [B15 K1] "the whole file" => Made::from(packed()).map(|bytes| gzip(&bytes));
    "compressed-gzip+v2.0+checksum-missing" [C2 K1] "the file ends inside of the checksum" =>
        Made::from(packed().lose("packed_unchecked", b"")).map(|bytes| cut(gzip(&bytes), 5));
    "v2.0+no-messages" [K1] "a recorder that was stopped at once" => Bag::recorder().close_as("empty");
    "v2.0+empty-chunks" [K1 K2] "chunks without records, one with an empty stream" =>
        Bag::with([Content::new().plain(), talk(0..3).plain(), Content::new().lz4()]).close();
    "v2.0+header-without-padding" [K1] "the first chunk is at byte 90" =>
        bare(VERSION_LINE).put(talk(0..3)).close();
    "v2.0+header-of-4096-bytes" [K1] "the whole record has 4096 bytes, as one library writes it" =>
        Bag::with_header(VERSION_LINE, BAG_HEADER_SIZE - 69 - 8, &[]).put(talk(0..3)).close();
    "v2.0+version-line-crlf" [B2] "CR LF after the version line" =>
        bare(b"#ROSBAG V2.0\r\n").note_at(0, "version_line_crlf").put(talk(0..3)).close();
    "v2.0+version-line-damaged" [D8] "one byte is wrong, records follow" =>
        bare(b"#RPSBAG V2.0\n").note_at(0, "version_line_damaged").put(talk(0..3)).close();
    "v2.0+version-line-missing" [D8] "the file starts with the bag header" =>
        bare(b"").note_at(0, "version_line_damaged").put(talk(0..3)).close();
    "v2.0+two-bags" [K15] "a second bag in the same file, with an id of its own meaning" => {
        let other = Conn::of(0, &Topic::string("/other"));
        bare(VERSION_LINE).put(talk(0..3)).close().begin_section(VERSION_LINE, &header(0, &[]))
            .put(Content::new().connect(&other).talk(&other, 4..7)).close()
    };
    "v2.0+chunks-overlap" [K12] "times go back within chunks and between them" => {
        let content = |stamps: [u32; 3]| talk(0..1).each(stamps, |content, i| content.say(&talker(), stamp(i), "x"));
        Bag::with([content([6, 2, 4]).plain(), content([5, 1, 3]).lz4(), content([9, 0, 2]).plain()]).close()
    };
    "v2.0+stamps-equal" [K12 B28] "two topics, two chunks, one time: the place decides" => {
        let (a, b) = (Conn::of(0, &Topic::string("/b")), Conn::of(1, &Topic::string("/a")));
        let content = || Content::new().connect(&a).connect(&b);
        let first = content().say(&a, stamp(0), "1").say(&b, stamp(0), "2").say(&a, stamp(0), "3");
        Bag::with([first, content().say(&b, stamp(0), "4").say(&a, stamp(0), "5")]).close()
    };
    "v2.0+stamp-zero" [K11 B19] "a simulation before its clock ran" =>
        times(&[(0, 0), (0, 0), (12, 5)], Some((0, "stamp_zero")));
    "v2.0+nanoseconds-past-a-second" [K11 B18] "carried into the seconds" =>
        times(&[(1_262_304_000, 0), (1_262_304_000, 2_500_000_000)], Some((1, "stamp_out_of_range")));
    "v2.0+last-time" [K11] "the last time of 32 bits" => times(&[7, 8, 9].map(|i| (u32::MAX, 999_999_990 + i)), None);
    "v2.0+bag-in-a-message" [K14] "a payload that is a whole bag is never searched" => {
        let inner = Made::from(bare(VERSION_LINE).put(talk(0..2)).close()).bytes;
        let files = Conn::of(1, &Topic::new("/files", "test_msgs/File", "*", "uint8[] data\n"));
        let data = json!({"data": base64(&inner)});
        let content = talk(0..2).connect(&files).message(&files, stamp(2), text(&inner), data);
        content.talk(&talker(), 3..5).closed()
    };
    "version-2.1" [V3] "a version that nobody wrote" =>
        refused(b"#ROSBAG V2.1\n\0\0\0\0", ["rosbag", "2.1"], "unsupported", "version 2.1");
    "v2.0+two-publishers" [K6] "two connections are one topic; one of them latches" => {
        let (a, b) = (by(0, "/a", true), by(1, "/b", false));
        Content::new().connect(&a).say(&a, stamp(0), "a").connect(&b).talk(&b, 1..3).say(&a, stamp(3), "a").closed()
    };
    "v2.0+connections-repeated" [K6] "in front of the messages of each chunk" =>
        Bag::with([0, 3].map(|i| Content::new().connect(&talker()).talk(&talker(), i..i + 3).lz4())).close();
    "v2.0+connection-conflict" [K7] "an id has another meaning in the second chunk" => {
        let other = Conn::of(0, &Topic::string("/other"));
        let content = Content::new().note("connection_conflict").connect(&other).talk(&other, 3..6);
        with_second(content).close()
    };
    "v2.0+connection-conflict+same-topic" [K7 B25] "the second chunk has the id for another type of the topic" => {
        let conn = Conn::of(0, &number());
        let other = Content::new().note("connection_conflict").connect(&conn).note("second_type");
        let other = other.message(&conn, stamp(3), [7, 0, 0, 0], json!({"data": 7}));
        with_second(other).close()
    };
    "v2.0+connection-missing" [K8] "an id that no record explains" => {
        // Readers show the messages of a connection without a record under this topic.
        let unknown = Conn::of(1, &Topic::undefined("conn 1", "", "*", ""));
        let content = talk(0..2).note("no_definition").raw(&unknown, stamp(2), &[1, 2]).raw(&unknown, stamp(3), &[]);
        Bag::with([content.talk(&talker(), 4..6)]).close_differing()
    };
    "v2.0+connections-only-at-the-end" [K6] "as a recorder with --split left them" =>
        Bag::with([talk(1..4)]).change(|index| index.connections = [(0, talker())].into()).close();
    "v2.0+connections-only-in-chunks" [K6 K9] "the index section has none" =>
        Bag::with([talk(0..4)]).change(|index| index.connections.clear()).close_differing();
    "v2.0+connection-without-messages" [K6] "declared and never used" =>
        talk(0..3).connect(&Conn::of(1, &Topic::string("/quiet"))).closed();
    "v2.0+ids-sparse" [K6] "ids that are no list" => {
        let ids = [7, 0x8000_0000, u32::MAX];
        let conns = ids.map(|id| Conn::of(id, &Topic::string(&format!("/t{id}"))));
        Content::new().each(&conns, |content, conn| content.connect(conn).talk(conn, 0..2)).closed()
    };
    "v2.0+other-topic" [K16] "recorded under another topic than the publisher named" => {
        let conn = Conn::with(0, &chatter(), Some(("/talker", false)), "/chatter_raw", &[]);
        Content::new().note("other_topic").connect(&conn).talk(&conn, 0..3).closed()
    };
    "v2.0+connection-of-more-fields" [K17] "fields of the subscription" => {
        let more: &Fields<'_> = &[("tcp_nodelay", b"1"), ("persistent", b"0")];
        let conn = Conn::with(0, &chatter(), Some(("/talker", false)), "/chatter", more);
        Content::new().connect(&conn).talk(&conn, 0..3).closed()
    };
    "v2.0+connection-damaged" [K25] "the data of its record are no fields" => damaged_connection("", &[0x0a; 40]);
    "v2.0+connection-of-fewer-fields" [K25] "neither md5 sum nor definition" =>
        damaged_connection("my_msgs/Own", &fields(&[("topic", b"/chatter"), ("type", b"my_msgs/Own")]));
    "v2.0+connection-damaged+index-intact" [K25] "a flipped bit in the type, the md5 sum or the definition; the index has the record as it was" => {
        let copies = [(1, "std_msgs/String"), (2, "992ce8a1687cec8c8bd883ec73ca41d1"), (3, "string data")];
        let connection = |id: u32| Conn::of(id, &Topic::string(&format!("/t{id}")));
        let content = Content::new().each(copies, |content, (id, place)| {
            let intact = connection(id);
            let mut parts = intact.record.windows(place.len());
            let at = parts.rposition(|part| part == place.as_bytes()).expect("a place");
            let damaged = intact.clone().with(|conn| conn.record[at] ^= 1);
            content.note("connection_damaged").connect(&damaged).talk(&intact, 0..2)
        });
        let intact = copies.map(|(id, _)| (id, connection(id)));
        Bag::with([content]).change(|index| index.connections = intact.into()).close()
    };
    "v2.0+second-type" [K6 B25] "a topic with messages of two types" => {
        let conn = Conn::of(1, &number());
        talk(0..3).connect(&conn).note("second_type").message(&conn, stamp(3), [7, 0, 0, 0], json!({"data": 7})).closed()
    };
    "v2.0+definition-empty" [M9] "no text in the bag, known by its sum" => {
        let conn = Conn::of(0, &chatter().with_def("").found_in("catalogue"));
        Content::new().note("definition_unusable").connect(&conn).note("definition_elsewhere").talk(&conn, 0..3).closed()
    };
    "v2.0+fields-in-another-order" [B5] "as a script wrote them" => {
        let Topic { name, ty, md5, def, .. } = &chatter();
        let data = fields(&[("type", ty), ("topic", name), ("message_definition", def), ("md5sum", md5)]);
        let connection = record(&[("op", &7_u8), ("topic", name), ("conn", &0_u32)], data);
        let conn = Conn::written(0, &chatter(), connection);
        let message = |i| record(&[("op", &2_u8), ("time", &stamp(i)), ("conn", &0_u32)], text("x"));
        Content::new().connect(&conn)
            .each(0..4, |content, i| content.message_as(&conn, stamp(i), message(i), json!({"data": "x"}))).closed()
    };
    "v2.0+fields-unknown" [K17 B20] "fields of other names in the header of a message" =>
        talk(0..1).each(1..4, |content, i| {
            let more: &Fields<'_> = &[("colour", b"r=\0d"), ("conn", &0_u32), ("op", &2_u8), ("time", &stamp(i))];
            content.message_as(&talker(), stamp(i), record(more, text("x")), json!({"data": "x"}))
        }).closed();
    "v2.0+unknown-op" [K17 B20] "records of op 9 between chunks and in a chunk" => {
        let unknown = || record(&[("op", &9_u8), ("why", b"nobody knows")], b"data");
        Bag::with([talk(0..2).note("unknown_op").other(9, unknown()).talk(&talker(), 2..4)])
            .note("unknown_op").other(9, unknown()).put(talk(4..6)).close()
    };
    "v2.0+message-without-data" [B21] "of a type without fields" => {
        let conn = Conn::of(0, &Topic::new("/trigger", "std_msgs/Empty", "d41d8cd98f00b204e9800998ecf8427e", ""));
        Content::new().connect(&conn).each(0..3, |content, i| content.message(&conn, stamp(i), b"", json!({}))).closed()
    };
    "v2.0+payload-short" [M8] "no bytes where a text should be, and a text cut short" =>
        talk(0..2).note_payload(0, "payload_short").message(&talker(), stamp(2), b"", Json::Null)
            .note_payload(0, "payload_short").message(&talker(), stamp(3), b"\x05\0\0\0abc", Json::Null)
            .talk(&talker(), 4..6).closed();
    "v2.0+payload-surplus" [M7] "bytes after the last field" =>
        surplus(talk(0..2).note_payload(5, "payload_surplus")).closed();
    "v2.0+payload-surplus+compressed" [M7 M8] "bytes after the last field, and a text cut short, in a compressed chunk" => {
        let content = surplus(talk(0..2).note("payload_surplus")).note("payload_short");
        Bag::with([content.message(&talker(), stamp(3), b"\x05\0\0\0abc", Json::Null).lz4()]).close()
    };
}

/// Returns a bag that is compressed as a whole by the caller.
fn packed() -> Bag {
    talk(0..5).closed().note_at(0, "compressed")
}

/// Returns a bag with messages at the times `stamps`. `note` has the index of a message and the code
/// of a note about it.
fn times(stamps: &[Stamp], note: Option<(usize, &'static str)>) -> Bag {
    let content = Content::new().connect(&talker()).each(stamps.iter().enumerate(), |content, (i, stamp)| {
        let note = note.filter(|(noted, _)| *noted == i);
        note.into_iter().fold(content, |content, (_, code)| content.note(code)).say(&talker(), *stamp, "x")
    });
    content.closed()
}

/// Returns a bag that starts with `line` and a bag header without padding.
fn bare(line: &[u8]) -> Bag {
    Bag::with_header(line, 0, &[])
}

/// Adds a message with bytes after its text.
fn surplus(content: Content) -> Content {
    content.message(&talker(), stamp(2), lay![text("x"), b"!!"], json!({"data": "x"}))
}

/// Returns a bag with a connection of the type `ty` whose record has the data `data`, which lacks
/// fields.
fn damaged_connection(ty: &str, data: &[u8]) -> Bag {
    let record = record(&[("conn", &0_u32), ("op", &7_u8), ("topic", b"/chatter")], data);
    let conn = Conn::written(0, &Topic::undefined("/chatter", ty, "*", ""), record);
    let content = Content::new().note("connection_damaged").connect(&conn).note("no_definition");
    content.each(0..3, |content, i| content.raw(&conn, stamp(i), &[1, 2])).closed()
}

/// Returns a topic that has the name of the usual topic, but whose messages are numbers.
fn number() -> Topic {
    let topic = Topic::new("/chatter", "std_msgs/Int32", "da5909fbe378aeaf85e547e830cc1bb7", "int32 data\n");
    topic.shown("/chatter#2")
}
