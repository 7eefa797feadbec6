//! Cases about damage: the range that is lost, and the first intact record after it.

use super::prelude::*;

cases! {
    "cut-in-payload" [D2] "the file ends inside a message" => cut_to(fourth().len() - 3);
    "cut-in-header" [D2] "the file ends inside a header" => cut_to(fourth().len() - 100);
    "cut-in-length" [D2] "the file ends inside the length of a header" => cut_to(3);
    "damaged-header-length" [D1] "resynchronised at the next record" => damaged("gap", headless(fourth()));
    "damaged-field-length" [D3] "the fields do not fill the header" =>
        damaged("bad_record", fourth().with(|bytes| bytes[4] ^= 0x40));
    "damaged-op" [D3] "op has two bytes" => {
        let name = place_of("op", &fourth()) - 3;
        damaged("bad_record", fourth().with(|bytes| bytes[name + 1] = b'q'))
    };
    "damaged-ops" [D7] "ops that are none or those of other records: the fields say what all of them are" => {
        let topic = chatter();
        let bag = Bag::recorder().note_header("op_damaged").note("op_damaged")
            .define_as(&topic, with_op(topic.definition(), 0x81))
            .each([(0, 0x82, "m0"), (1, 3, "m1"), (2, 0, "m2")], |bag, (i, op, said)| {
                let bytes = with_op(topic.data(stamp(i), text(said)), op);
                bag.note("op_damaged").message_as(&topic, stamp(i), bytes, &json!({"data": said}))
            })
            .talk(&topic, 3..6).note("op_damaged");
        let index = bag.index_records().into_iter().map(|record| with_op(record, 0x14)).collect();
        bag.close_with(index, "exact").set_header("op", 0x43_u8)
    };
    "damaged-data-length" [D4 D1] "a message that claims to pass the end of the file" => {
        let at = fourth().len() - text(LONG).len() - 4;
        damaged("gap", fourth().with(|bytes| bytes[at..at + 2].fill(0xff)))
    };
    "damaged-zeros" [D1] "100 zero bytes between two records" =>
        recorded(0..3).lose("gap", [0; 100]).talk(&chatter(), 3..6).unindexed();
    "damaged-spaces" [D1] "spaces that no bag header explains" =>
        recorded(0..3).lose("gap", [b' '; 64]).talk(&chatter(), 3..6).unindexed();
    "damaged+index-names-the-lost" [D1 B9] "the index says which message is gone" => {
        let bag = recorded(0..3);
        let gone = bag.pos();
        bag.lose("gap", headless(fourth())).entries("/chatter", |entries| entries.push((stamp(3), gone)))
            .talk(&chatter(), 4..7).close_differing()
    };
    "damaged+index-damaged" [D5] "zeros in the index, where it names the messages behind the damage" =>
        recorded(0..3).lose("gap", headless(fourth())).talk(&chatter(), 4..7)
            .entries("/chatter", |entries| entries[3..5].fill(((0, 0), 0))).close_differing();
    "damaged+bag-in-a-message" [D5] "records inside of a lost message are none of this bag" => {
        let (topic, inner) = (blob("uint8[] data\n"), inner_bag());
        let bag = Bag::recorder().messages(&topic, [values![&inner[..]]]);
        let gone = bag.pos();
        bag.lose("gap", headless(topic.data(stamp(1), text(&inner))))
            .entries("/blob", |entries| entries.push((stamp(1), gone)))
            .message(&topic, stamp(2), values!["x"]).close_differing()
    };
    "gap+index-pos-out-of-range" [D5]
        "a bag header that names a place beyond 64 bits as that of the index, and a damaged message" =>
        recorded(0..3).lose("gap", headless(fourth())).talk(&chatter(), 4..7).set_header("index_pos", u64::MAX - 2)
            .unindexed_at(u64::MAX - 2);
    "damaged-definition+indexed" [D5]
        "the definition that the index names is gone, the message behind it is whole" => {
        let other = Topic::string("/other").found_in("same md5");
        let bag = recorded(0..3);
        let gone = bag.pos();
        bag.lose("gap", headless(other.definition())).note("definition_elsewhere").say(&other, stamp(3), "the first")
            // The first index entry of a topic has the offset of its definition.
            .entries("/other", |entries| entries[0].1 = gone)
            .say(&chatter(), stamp(4), "m4").say(&other, stamp(5), "the second").close_differing()
    };
    "bytes-lost-in-a-message" [D4]
        "10 bytes of a message of fixed size are missing, so that its length reaches into the next record" => {
        let topic = Topic::new("/fixed", "pkg/Fixed", "*", "float64[8] data\n");
        Bag::recorder().define(&topic)
            .each(0..6, |bag, i| holed_third(bag, &topic, i, values![[f64::from(i); 8]])).unindexed()
    };
    "bytes-lost-in-a-message+bag-in-it" [D4]
        "10 bytes behind a bag in a message are missing: its records are none of this bag" => {
        let topic = blob("uint8[] data\nuint8[16] tail\n");
        Bag::recorder().define(&topic)
            .each(0..6, |bag, i| holed_third(bag, &topic, i, values![&inner_bag()[..], &[7; 16]])).unindexed()
    };
    "damaged-header-length+behind-a-bag-in-a-message" [D4 D5]
        "a whole message that holds a bag stays, though nothing valid follows it" => {
        let topic = blob("uint8[] data\n");
        Bag::recorder().messages(&topic, [values![&inner_bag()[..]]])
            .lose("gap", headless(chatter().definition())).define(&chatter()).talk(&chatter(), 1..4).unindexed()
    };
    "bag-in-a-message" [D5] "a sound message that holds a whole bag" => {
        let topic = blob("uint8[] data\n");
        Bag::recorder().messages(&topic, vec![values![&inner_bag()[..]]; 3]).close()
    };
}

const LONG: &[u8] = b"a text of some length, so that the end of its record is far from the beginning";

/// Returns the record of a message that follows three others.
fn fourth() -> Vec<u8> {
    chatter().data(stamp(3), text(LONG))
}

/// Overwrites the first length of a record.
fn headless(record: Vec<u8>) -> Vec<u8> {
    record.with(|bytes| bytes[..4].fill(0xff))
}

/// Returns the record with the operation code `op`.
fn with_op(record: Vec<u8>, op: u8) -> Vec<u8> {
    let at = place_of("op", &record);
    record.with(|bytes| bytes[at] = op)
}

/// Returns a bag that ends after `len` bytes of its fourth message.
fn cut_to(len: usize) -> Bag {
    recorded(0..3).lose("cut", &fourth()[..len]).unindexed()
}

/// Returns a bag that has `bytes` instead of its fourth message. They are lost with the code
/// `code`.
fn damaged(code: &'static str, bytes: Vec<u8>) -> Bag {
    recorded(0..3).lose(code, bytes).talk(&chatter(), 4..7).unindexed()
}

/// Adds message `i`. The third message lacks its last 10 bytes.
fn holed_third(bag: Bag, topic: &Topic, i: u32, values: Vec<crate::shape::Value>) -> Bag {
    let bytes = topic.data(stamp(i), topic.payload(&values));
    if i == 2 { bag.lose("gap", &bytes[..bytes.len() - 10]) } else { bag.message(topic, stamp(i), values) }
}

/// Returns a topic of messages with raw bytes.
fn blob(def: &str) -> Topic {
    Topic::new("/blob", "pkg/Blob", "*", def)
}

/// Returns the bytes of a small complete bag.
fn inner_bag() -> Vec<u8> {
    Bag::plain().talk(&Topic::string("/inner"), 0..3).bytes
}
