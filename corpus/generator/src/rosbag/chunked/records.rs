//! Connections and messages in chunks.

use serde_json::{Value as Json, json};

use super::log::{Bag, Conn, Content, talk, talker};
use crate::cases;
use crate::lay::lay;
use crate::rosbag::log::{Topic, chatter, fields, record, text};
use crate::rosbag::stamp;

cases! {
    "v2.0+two-publishers" [K6] "two connections are one topic; one of them latches" => {
        let (a, b) = (Conn::of(0, &chatter()).by("/a", true), Conn::of(1, &chatter()).by("/b", false));
        Bag::recorder()
            .put(Content::new().connect(&a).say(&a, stamp(0), "a").connect(&b).talk(&b, 1..3).say(&a, stamp(3), "a").plain())
            .close()
    };
    "v2.0+connections-repeated" [K6] "in front of the messages of each chunk" =>
        [0, 3].into_iter().fold(Bag::recorder(), |bag, i| {
            bag.put(Content::new().connect(&talker()).talk(&talker(), i..i + 3).lz4())
        }).close();
    "v2.0+connection-conflict" [K7] "an id has another meaning in the second chunk" => {
        let other = Conn::of(0, &Topic::string("/other"));
        Bag::recorder().put(talk(0..3).plain())
            .put(Content::new().note("connection_conflict").connect(&other).talk(&other, 3..6).plain()).close()
    };
    "v2.0+connection-conflict+same-topic" [K7 B25] "the second chunk has the id for another type of the topic" => {
        let conn = Conn::of(0, &number().shown("/chatter#2"));
        let message = conn.message(stamp(3), &[7, 0, 0, 0]);
        let other = Content::new().note("connection_conflict").connect(&conn).note("second_type");
        Bag::recorder().put(talk(0..3).plain())
            .put(other.message_as(&conn, stamp(3), message, json!({"data": 7})).plain()).close()
    };
    "v2.0+connection-missing" [K8] "an id that no record explains" => {
        let unknown = Conn::of(1, &unknown(1));
        Bag::recorder()
            .put(talk(0..2).note("no_definition").raw(&unknown, stamp(2), &[1, 2]).raw(&unknown, stamp(3), &[])
                .talk(&talker(), 4..6).plain())
            .close_differing()
    };
    "v2.0+connections-only-at-the-end" [K6] "as a recorder with --split left them" =>
        Bag::recorder().put(talk(1..4).plain()).change(|own| {
            own.connections.insert(0, talker());
        }).close();
    "v2.0+connections-only-in-chunks" [K6 K9] "the index section has none" =>
        Bag::recorder().put(talk(0..4).plain()).change(|own| own.connections.clear()).close_differing();
    "v2.0+connection-without-messages" [K6] "declared and never used" =>
        Bag::recorder().put(talk(0..3).connect(&Conn::of(1, &Topic::string("/quiet"))).plain()).close();
    "v2.0+ids-sparse" [K6] "ids that are no list" => {
        let ids = [7, 0x8000_0000, u32::MAX];
        let conns = ids.map(|id| Conn::of(id, &Topic::string(&format!("/t{id}"))));
        let content = conns.iter().fold(Content::new(), |content, conn| content.connect(conn).talk(conn, 0..2));
        Bag::recorder().put(content.plain()).close()
    };
    "v2.0+other-topic" [K16] "recorded under another topic than the publisher named" => {
        let conn = talker().named("/chatter_raw");
        Bag::recorder().put(Content::new().note("other_topic").connect(&conn).talk(&conn, 0..3).plain()).close()
    };
    "v2.0+connection-of-more-fields" [K17] "fields of the subscription" => {
        let conn = talker().with("tcp_nodelay", b"1").with("persistent", b"0");
        Bag::recorder().put(Content::new().connect(&conn).talk(&conn, 0..3).plain()).close()
    };
    "v2.0+connection-damaged" [K25] "the data of its record are no fields" => {
        let id = 0_u32.to_le_bytes();
        let record = record(&[("conn", &id), ("op", &[7]), ("topic", b"/chatter")], &[0x0a; 40]);
        let conn = Conn::of(0, &Topic::undefined("/chatter", "", "*", "")).written(record);
        let content = Content::new().note("connection_damaged").connect(&conn).note("no_definition");
        Bag::recorder().put((0..3).fold(content, |content, i| content.raw(&conn, stamp(i), &[1, 2])).plain()).close()
    };
    "v2.0+connection-of-fewer-fields" [K25] "neither md5 sum nor definition" => {
        let (topic, id) = (Topic::undefined("/chatter", "my_msgs/Own", "*", ""), 0_u32.to_le_bytes());
        let data = fields(&[("topic", b"/chatter"), ("type", b"my_msgs/Own")]);
        let record = record(&[("conn", &id), ("op", &[7]), ("topic", b"/chatter")], &data);
        let conn = Conn::of(0, &topic).written(record);
        let content = Content::new().note("connection_damaged").connect(&conn).note("no_definition");
        Bag::recorder().put((0..3).fold(content, |content, i| content.raw(&conn, stamp(i), &[1, 2])).plain()).close()
    };
    "v2.0+connection-damaged+index-intact" [K25] "a flipped bit in the type, the md5 sum or the definition; the index has the record as it was" => {
        let copies = [(1, "std_msgs/String"), (2, "992ce8a1687cec8c8bd883ec73ca41d1"), (3, "string data")];
        let connection = |id: u32| Conn::of(id, &Topic::string(&format!("/t{id}")));
        let damaged = |(id, place): (u32, &str)| {
            let mut record = connection(id).record();
            let at = record.windows(place.len()).rposition(|part| part == place.as_bytes()).expect("it has it");
            record[at] ^= 1;
            connection(id).written(record)
        };
        let content = copies.into_iter().fold(Content::new(), |content, copy| {
            content.note("connection_damaged").connect(&damaged(copy)).talk(&connection(copy.0), 0..2)
        });
        Bag::recorder().put(content.plain())
            .change(|own| own.connections = copies.into_iter().map(|(id, _)| (id, connection(id))).collect())
            .close()
    };
    "v2.0+second-type" [K6 B25] "a topic with messages of two types" => {
        let conn = Conn::of(1, &number().shown("/chatter#2"));
        let message = conn.message(stamp(3), &[7, 0, 0, 0]);
        Bag::recorder()
            .put(talk(0..3).connect(&conn).note("second_type").message_as(&conn, stamp(3), message, json!({"data": 7})).plain())
            .close()
    };
    "v2.0+definition-empty" [M9] "no text in the bag, known by its sum" => {
        let conn = Conn::of(0, &chatter().with_def("").found_in("catalogue"));
        Bag::recorder()
            .put(Content::new().note("definition_unusable").connect(&conn).note("definition_elsewhere").talk(&conn, 0..3)
                .plain())
            .close()
    };
    "v2.0+fields-in-another-order" [B5] "as a script wrote them" => {
        let (topic, id) = (chatter(), 0_u32.to_le_bytes());
        let data = fields(&[
            ("type", topic.ty.as_bytes()), ("topic", topic.name.as_bytes()),
            ("message_definition", topic.def.as_bytes()), ("md5sum", topic.md5.as_bytes()),
        ]);
        let connection = record(&[("op", &[7]), ("topic", topic.name.as_bytes()), ("conn", &id)], &data);
        let conn = Conn::of(0, &topic).written(connection);
        let message = |i| record(&[("op", &[2]), ("time", &lay![stamp(i)]), ("conn", &id)], &text("x"));
        Bag::recorder()
            .put((0..4).fold(Content::new().connect(&conn), |content, i| {
                content.message_as(&conn, stamp(i), message(i), json!({"data": "x"}))
            }).plain())
            .close()
    };
    "v2.0+fields-unknown" [K17 B20] "fields of other names in the header of a message" =>
        Bag::recorder().put(messages_with(&[("colour", b"r=\0d")]).plain()).close();
    "v2.0+unknown-op" [K17 B20] "records of op 9 between chunks and in a chunk" => {
        let unknown = || record(&[("op", &[9]), ("why", b"nobody knows")], b"data");
        Bag::recorder()
            .put(talk(0..2).note("unknown_op").other(9, unknown()).talk(&talker(), 2..4).plain())
            .note("unknown_op").other(9, unknown())
            .put(talk(4..6).plain()).close()
    };
    "v2.0+message-without-data" [B21] "of a type without fields" => {
        let conn = Conn::of(0, &Topic::new("/trigger", "std_msgs/Empty", "d41d8cd98f00b204e9800998ecf8427e", ""));
        let content = (0..3).fold(Content::new().connect(&conn), |content, i| {
            content.message_as(&conn, stamp(i), conn.message(stamp(i), b""), json!({}))
        });
        Bag::recorder().put(content.plain()).close()
    };
    "v2.0+payload-short" [M8] "no bytes where a text should be, and a text cut short" => {
        let short = |content: Content, i: u32, payload: &[u8]| {
            content.note_payload(0, "payload_short")
                .message_as(&talker(), stamp(i), talker().message(stamp(i), payload), Json::Null)
        };
        let content = short(short(talk(0..2), 2, b""), 3, b"\x05\0\0\0abc");
        Bag::recorder().put(content.talk(&talker(), 4..6).plain()).close()
    };
    "v2.0+payload-surplus" [M7] "bytes after the last field" => {
        let payload = lay![text("x"), *b"!!"];
        Bag::recorder()
            .put(talk(0..2).note_payload(5, "payload_surplus")
                .message_as(&talker(), stamp(2), talker().message(stamp(2), &payload), json!({"data": "x"})).plain())
            .close()
    };
    "v2.0+payload-surplus+compressed" [M7 M8] "bytes after the last field, and a text cut short, in a compressed chunk" => {
        let odd = |content: Content, i: u32, payload: &[u8], json| {
            content.message_as(&talker(), stamp(i), talker().message(stamp(i), payload), json)
        };
        let surplus = talk(0..2).note("payload_surplus");
        let content = odd(surplus, 2, &lay![text("x"), *b"!!"], json!({"data": "x"})).note("payload_short");
        Bag::recorder().put(odd(content, 3, b"\x05\0\0\0abc", Json::Null).lz4()).close()
    };
}

/// Returns the topic under which readers show messages of an id that no record explains.
fn unknown(id: u32) -> Topic {
    Topic::undefined(&format!("conn {id}"), "", "*", "")
}

/// Returns messages with further fields in their headers.
fn messages_with(more: &[(&str, &[u8])]) -> Content {
    (0..3).fold(talk(0..1), |content, i| {
        let (id, time) = (0_u32.to_le_bytes(), lay![stamp(i + 1)]);
        let own: [(&str, &[u8]); 3] = [("conn", &id), ("op", &[2]), ("time", &time)];
        let bytes = record(&[more, &own].concat(), &text("x"));
        content.message_as(&talker(), stamp(i + 1), bytes, json!({"data": "x"}))
    })
}

/// Returns the topic of the talker with numbers instead of text.
fn number() -> Topic {
    Topic::new("/chatter", "std_msgs/Int32", "da5909fbe378aeaf85e547e830cc1bb7", "int32 data\n")
}
