//! Cases of bags before version 1.2.

use super::prelude::*;

cases! {
    "v1.1" [V1] "three lines in front of each message" => {
        let unknown = Topic::undefined("odom", "std_msgs/RobotBase2DOdom", "*", "");
        let bag = say(v11_bag().note("definition_elsewhere"), 0, "a").note("no_definition")
            .message_as(&unknown, stamp(1), v11(&unknown, stamp(1), &[1]), &json!({"raw": "AQ=="}));
        say(bag, 2, "c")
    };
    "v1.1+roslog" [V1] "the other word, names of rostools" => {
        let topic = Topic::new("/h", "rostools/Header", "*", HEADER.1).with_def("").found_in("catalogue");
        let payload = topic.payload(&values![1, [0, 0], "f"]);
        let data = json!({"seq": 1, "stamp": {"sec": 0, "nsec": 0}, "frame_id": "f"});
        Bag::starting(b"#ROSLOG V1.1\n", "1.1").note("definition_elsewhere")
            .message_as(&topic, stamp(0), v11(&topic, stamp(0), &payload), &data)
    };
    "v1.1+cut" [V1 D2] "the file ends inside a message" => {
        let bytes = v11(&known("/chatter"), stamp(2), &text("ccc"));
        say(say(v11_bag().note("definition_elsewhere"), 0, "a"), 1, "b").lose("cut", &bytes[..bytes.len() - 2])
    };
    "v1.1+damaged" [V1 D1] "nothing tells where the next message begins" =>
        say(v11_bag().note("definition_elsewhere"), 0, "a")
            .lose("gap", lay![[0xff, 0, 1, 2_u8], v11(&known("/chatter"), stamp(1), &text("b"))]);
    "v1.0" [V2] "a table of topics, relative times" => v10("2");
    "v1.0+padded-count" [V2] "the count has zeros in front" => v10("0002");
    "v1.0+cut" [V2 D2] "the file ends inside a message" => v10("2").lose("cut", b"chatt");
    "v1.0+broken-table" [V2] "the table has fewer topics than it says" =>
        Bag::starting(b"#ROSLOG V1.0\n", "1.0").relative().lose("gap", b"3\nchatter\n*\nstd_msgs/String\n\x01\x02");
}

fn v11_bag() -> Bag {
    Bag::starting(b"#ROSRECORD V1.1\n", "1.1")
}

/// Returns a topic of texts. Bags before version 1.2 contain no definitions, so readers use a
/// built-in one.
fn known(name: &str) -> Topic {
    Topic::string(name).with_sum("*", "wildcard").found_in("catalogue")
}

/// Returns the lines that name a topic.
fn lines(topic: &Topic) -> String {
    format!("{}\n{}\n{}\n", topic.name, topic.md5, topic.ty)
}

/// Returns the bytes of a message in a bag of version 1.1: lines with the topic, time, length and
/// data.
fn v11(topic: &Topic, stamp: Stamp, payload: &[u8]) -> Vec<u8> {
    lay![lines(topic).as_bytes(), stamp, text(payload)]
}

fn say(bag: Bag, i: u32, said: &str) -> Bag {
    let topic = known("/chatter");
    bag.message_as(&topic, stamp(i), v11(&topic, stamp(i), &text(said)), &json!({"data": said}))
}

fn v10(count: &str) -> Bag {
    let (known, unknown) = (known("chatter"), Topic::undefined("map", "*", "*", ""));
    let head = format!("#ROSLOG V1.0\n{count}\n{}{}", lines(&known), lines(&unknown));
    Bag::starting(head.as_bytes(), "1.0")
        .relative()
        .note("no_definition")
        .message_as(&unknown, (4, 5), lay!["map\n", (4_u32, 5_u32), text([1])], &json!({"raw": "AQ=="}))
        .note("definition_elsewhere")
        .each(5..8, |bag, i| {
            let bytes = lay!["chatter\n", (i, 0_u32), text(text("x"))];
            bag.message_as(&known, (i, 0), bytes, &json!({"data": "x"}))
        })
}
