//! Cases about payloads: the encoding of each type, and lengths that do not fit.

use super::prelude::*;

cases! {
    "types-scalars" [M1] "every primitive at its limits" => {
        let topic = Topic::new(
            "/s", "pkg/Scalars", "a78f4dd5016a671e2e64c07aca1a1a85",
            "bool b\nint8 i8\nuint8 u8\nbyte by\nchar ch\nint16 i16\nuint16 u16\nint32 i32\nuint32 u32\nint64 i64\n\
             uint64 u64\nfloat32 f32\nfloat64 f64\ntime t\nduration d\nstring s\n",
        );
        let least = values![
            0, i8::MIN, 0, i8::MIN, 0, i16::MIN, 0, i32::MIN, 0, i64::MIN, 0, f32::NEG_INFINITY, f64::NAN,
            [0, 0], [i32::MIN, -1], "",
        ];
        let greatest = values![
            2, i8::MAX, u8::MAX, i8::MAX, u8::MAX, i16::MAX, u16::MAX, i32::MAX, u32::MAX, i64::MAX, u64::MAX,
            0.1, 0.1, [u32::MAX, u32::MAX], [i32::MAX, 999_999_999], "Grüße",
        ];
        Bag::recorder().messages(&topic, [least, greatest]).close()
    };
    "types-arrays" [M2] "bytes, fixed arrays, lists" => {
        let topic = Topic::new(
            "/a", "pkg/Arrays", "dd52658f2449b6603e5142727a8295c1",
            "uint8[] blob\nuint8[3] id\nchar[2] tag\nint16[2] pair\nfloat32[] list\nstring[] names\ntime[1] when\n",
        );
        let filled = values![&[0, 255], &[1, 2, 3], "ab", [-1, 1], [1.5, f32::INFINITY], ["", "x"], [[1, 2]]];
        let empty = values!["", &[0; 3], &[0; 2], [0, 0], [0.0; 0], [""; 0], [[0, 0]]];
        Bag::recorder().messages(&topic, [filled, empty]).close()
    };
    "types-nested" [M3] "types in types, lists of them" => {
        let types = [HEADER, ("pkg/Leaf", "uint16 a\nstring s\n")];
        let def = full("Header header\nLeaf one\npkg/Leaf two\nLeaf[] many\n", "", &types);
        let topic = Topic::new("/t", "pkg/Tree", "7d9b2518f1e1d3f5dd354001b33470c7", &def);
        let row = |many: u32| {
            let leaves = (0..many).map(|i| values![i, "zz"]).collect::<Vec<_>>();
            values![values![7, [0, 0], "base"], values![1, "a"], values![2, ""], leaves]
        };
        Bag::recorder().messages(&topic, (0..3).map(row)).close()
    };
    "types-without-fields" [M6] "alone, in arrays, in lists" => {
        let def = "std_msgs/Empty none\nstd_msgs/Empty[3] three\nstd_msgs/Empty[] any\nint8 x\n====\nMSG: std_msgs/Empty\n";
        let topic = Topic::new("/e", "pkg/Empties", "7f7b2fb2b2f8ad5843a5194e6f5da636", def);
        let empties = |n: usize| vec![values![]; n];
        Bag::recorder().messages(&topic, [values![values![], empties(3), empties(2), 9]]).close()
    };
    "types-constants" [M4] "constants, comments, odd blanks" => {
        let def = "# a comment\nint32 A=-1   # minus one\nstring S= a # b\n\n\t int32   x\t# the only field\n";
        let topic = Topic::new("/c", "pkg/Constants", "b2e624a6fe44a39c0bfac10c1f63510d", def);
        Bag::recorder().messages(&topic, [values![1]]).close()
    };
    "texts-cp1251" [M5] "two words in cp1251, one of them behind a backslash, and a path in ASCII" => {
        let texts = [&b"\xcf\xf0\xe8\xe2\xe5\xf2"[..], b"C:\\\xf1\xf2\xee\xef", b"C:\\xcf"];
        Bag::plain().messages(&Topic::string("/a"), texts.map(|text| values![text])).unindexed()
    };
    "texts-not-utf-8" [M5] "other bytes are escaped" =>
        Bag::plain().messages(&Topic::string("/a"), [values![b"caf\xe9"], values!["a\0b"]]).unindexed();
    "payload-surplus" [M7] "bytes behind the last field" => {
        let topic = Topic::string("/a");
        let bytes = topic.data(stamp(0), lay![text("x"), b"??"]);
        let bag = Bag::plain().define(&topic);
        let surplus = bag.at() + bytes.len() - 2;
        bag.note_at(surplus, "payload_surplus").message_as(&topic, stamp(0), bytes, &json!({"data": "x"}))
            .talk(&topic, 1..3).unindexed()
    };
    "payload-short" [M8] "ends inside a field" => short(b"\x09\0\0\0shor");
    "payload-short+count" [M8 M12] "the count of a list is cut" => short(b"\xff\xff");
    "payload-count-hostile" [M12] "a text of 4 GiB" => short(b"\xff\xff\xff\xffx");
    "console" [M3] "lines of roslib/Log" => {
        let def = full(
            "byte DEBUG=1\nbyte INFO=2\nbyte WARN=4\nbyte ERROR=8\nbyte FATAL=16\nHeader header\nbyte level\n\
             string name\nstring msg\nstring file\nstring function\nuint32 line\nstring[] topics\n",
            "", &[("roslib/Header", HEADER.1)],
        );
        let topic = Topic::new("/rosout", "roslib/Log", "acffd30cd6b6de30f120938c17c593fb", &def);
        let levels = [(1, "debug"), (2, "info"), (4, "warning"), (8, "error"), (16, "critical")];
        Bag::recorder().define(&topic)
            .each((0..).zip(levels), |bag, (i, (level, name))| {
                // The last console line has no time, so readers use the time of the record.
                let (sec, nsec) = stamp(i);
                let (own, shown) = if level == 16 { ([0, 0], nsec) } else { ([sec, nsec + 5], nsec + 5) };
                let said = format!("line {i}");
                bag.console((sec, shown), name, "/node", &said).message(&topic, stamp(i), values![
                    values![0, own, ""], level, "/node", said, "a.cpp", "f", 12, [""; 0],
                ])
            })
            .close()
    };
    "robot" [M3] "an image and a track: what is extracted and drawn on maps" => {
        let image = full(
            "Header header\nuint32 height\nuint32 width\nstring encoding\nuint8 is_bigendian\nuint32 step\n\
             uint8[] data\n",
            "\n", &[HEADER],
        );
        let camera = Topic::new("/camera", "sensor_msgs/Image", "060021388200f6f0f447d0fcd9c64743", &image);
        let fix = full(
            "Header header\nNavSatStatus status\nfloat64 latitude\nfloat64 longitude\nfloat64 altitude\n\
             float64[9] position_covariance\nuint8 position_covariance_type\n",
            "\n", &[HEADER, ("sensor_msgs/NavSatStatus", "int8 status\nuint16 service\n")],
        );
        let gps = Topic::new("/fix", "sensor_msgs/NavSatFix", "*", &fix);
        let header = |seq: u32| values![seq, [seq, 5], "base"];
        let images = (0..2).map(|seq| values![header(seq), 1, 2, "rgb8", 0, 6, &[255, 0, 0, 0, 0, 255]]);
        Bag::plain().messages(&camera, images).define(&gps)
            // The second message has no fix.
            .each([(0, 0), (1, -1), (2, 2)], |bag, (seq, state)| {
                let north = 50.363 + f64::from(seq) / 1000.0;
                let place = values![header(seq), values![state, 1], north, 7.559, 120.5, [0.0; 9], 0];
                bag.message(&gps, stamp(2 + seq), place)
            })
            .unindexed()
    };
}

/// Returns a bag with a message that is too short for its text, between intact messages.
fn short(payload: &[u8]) -> Bag {
    let topic = Topic::string("/a");
    let bytes = topic.data(stamp(2), payload);
    let bag = Bag::plain().talk(&topic, 0..2);
    let at = bag.at() + bytes.len() - payload.len();
    let bag = bag.note_at(at, "payload_short").message_as(&topic, stamp(2), bytes, &Json::Null);
    bag.talk(&topic, 3..5).unindexed()
}
