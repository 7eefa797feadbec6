//! Cases about the definition of a topic, and whether it matches the MD5 sum.

use super::prelude::*;

cases! {
    "definition-per-type" [B6 M9] "as Python scripts wrote: the second topic has none" =>
        Bag::plain().talk(&Topic::string("/a"), 0..2).note("definition_elsewhere")
            .talk(&Topic::string("/b").found_in("same md5"), 1..3).unindexed();
    "definition-of-same-type" [M9] "found by the type; its sum is another" => {
        let other = point("/b").with_sum(NO_SUM, "differs").found_in("same type");
        let bag = Bag::plain().messages(&point("/a"), [values![1.0, 2.0]]).note("definition_elsewhere")
            .note("definition_differs").message(&other, stamp(1), values![1.0, 2.0]);
        // The definition is inferred, so readers return payloads that do not fit it as bytes.
        let payload = [other.payload(&values![1.0, 2.0]), b"!".to_vec()].concat();
        let surplus = bag.at() + other.data(stamp(2), &payload).len() - 1;
        bag.note_at(surplus, "payload_surplus").raw(&other, stamp(2), &payload).unindexed()
    };
    "definition-of-the-catalogue" [M9] "none in the bag, known by its sum" =>
        Bag::plain().note("definition_elsewhere").talk(&Topic::string("/a").found_in("catalogue"), 1..3).unindexed();
    "definition-missing" [B23 M9] "a type that is defined nowhere" =>
        Bag::plain().note("no_definition").raw(&Topic::undefined("/a", "nobody/Knows", NO_SUM, ""), stamp(0), &[1, 2])
            .unindexed();
    "definition-behind-its-messages" [B30 M9] "found all the same" =>
        Bag::plain().message(&point("/a"), stamp(0), values![1.0, 2.0]).note("definition_late").define(&point("/a"))
            .unindexed();
    "definition-repeated" [B30] "a topic is defined twice, in the same way" =>
        Bag::plain().define(&point("/a")).note("definition_repeated")
            .messages(&point("/a"), [values![1.0, 2.0]]).unindexed();
    "definition-empty" [B11 M10] "by a publisher that sent no text" => {
        let topic = Topic::string("/a").with_def("").found_in("catalogue");
        Bag::recorder().note("definition_unusable").define(&topic).note("definition_elsewhere")
            .say(&topic, stamp(0), "x").close()
    };
    "definition-empty+no-fields" [B11 B21 M6] "the type has no fields" => {
        let topic = Topic::new("/trigger", "std_msgs/Empty", "d41d8cd98f00b204e9800998ecf8427e", "");
        Bag::recorder().messages(&topic, vec![values![]; 3]).close()
    };
    "definition-of-the-root-alone" [B11 M10] "the nested type is in the catalogue" => header_user("Header header\nint8 x");
    "definition-header-of-roslib" [M3] "Header means the one that is there" =>
        header_user(&full("Header header\nint8 x\n", "", &[("roslib/Header", HEADER.1)]));
    "definition-field-twice" [M13] "the second field x is shown as x#2" => {
        let topic = Topic::new("/a", "pkg/Twice", "*", "float64 x\nint8 x\n");
        Bag::recorder().messages(&topic, (0..3).map(|i| values![f64::from(i), i])).close()
    };
    "definition-crlf" [M14] "lines end in CR LF, also in front of a line of =" => {
        let topic = Topic::new("/a", "pkg/User", "*", "Inner a\r\nint8 x\r\n====\r\nMSG: pkg/Inner\r\nint8 y\r\n");
        Bag::recorder().messages(&topic, [values![values![1], 2]]).close()
    };
    "sum-v1" [B10 M11] "the older sum, over the raw text" =>
        // In ROS 0.5, the MD5 sum covered `string data` including its line feed.
        summed(&Topic::string("/a").with_sum("5b89344b4d080ca499c0648063c40738", "v1"));
    "sum-wildcard" [B10 M11] "any definition will do" => summed(&Topic::string("/a").with_sum("*", "wildcard"));
    "sum-differs" [B10 M11] "the text is not the one that was published" => {
        let topic = Topic::string("/a").with_sum(NO_SUM, "differs");
        Bag::recorder().define(&topic).note("definition_differs").talk(&topic, 1..3).close()
    };
    "second-type" [B25] "a publisher that came back with another type" => {
        let second = point("/a").shown("/a#2");
        Bag::recorder().talk(&Topic::string("/a"), 0..2).note("definition_repeated").define(&second)
            .note("second_type").message(&second, stamp(5), values![1.0, 2.0]).close()
    };
    "definition-hostile+circular" [M10] "a type in itself" => hostile("A a\n===\nMSG: pkg/A\npkg/Hostile h\n");
    "definition-hostile+deep" [M10] "100 levels" => {
        let levels = (0..100).map(|i| format!("\n===\nMSG: pkg/T{i}\nT{} t", i + 1)).collect::<Vec<_>>();
        hostile(&format!("T0 t{}\n===\nMSG: pkg/T100\nint8 x\n", levels.concat()))
    };
    "definition-hostile+large-array" [M10] "more bytes than a message can have" => hostile("float64[4294967295] x\n");
    "definition-broken" [M10] "a line that is none" => hostile("int32 x\nthis is no field!\n");
}

/// An MD5 sum that does not belong to any definition.
const NO_SUM: &str = "00000000000000000000000000000000";

fn point(name: &str) -> Topic {
    Topic::new(name, "pkg/Point", "209f516d3eb691f0663e25cb750d67c1", "float64 x\nfloat64 y\n")
}

fn header_user(def: &str) -> Bag {
    let topic = Topic::new("/a", "pkg/User", "*", def);
    Bag::plain().messages(&topic, [values![values![7, [1, 2], "map"], -1]]).unindexed()
}

fn summed(topic: &Topic) -> Bag {
    Bag::recorder().talk(topic, 0..2).close()
}

/// Returns a bag with an invalid definition. Readers return the messages of its topic as bytes, and
/// decode those of another topic.
fn hostile(def: &str) -> Bag {
    let topic = Topic::undefined("/h", "pkg/Hostile", NO_SUM, def);
    let bag = Bag::plain().note("definition_unusable").define(&topic).note("no_definition");
    bag.raw(&topic, stamp(0), &[1]).talk(&Topic::string("/a"), 0..2).unindexed()
}
