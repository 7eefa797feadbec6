//! Payloads: the wire form of every type, and lengths that do not fit.

use serde_json::{Value as Json, json};

use super::bag::{Bag, Topic};
use super::lay::{text, u32_bytes};
use super::{stamp, talk};
use crate::corpus::expected::field;
use crate::corpus::lay::Lay;
use crate::corpus::{Case, Made};

pub(super) const CASES: &[Case] = &[
    Case::rosbag("types-scalars", "every primitive at its limits", &["M1"], scalars),
    Case::rosbag("types-arrays", "bytes, fixed arrays, lists", &["M2"], arrays),
    Case::rosbag("types-nested", "types in types, lists of them", &["M3"], nested),
    Case::rosbag("types-without-fields", "alone, in arrays, in lists", &["M6"], empties),
    Case::rosbag("types-constants", "constants, comments, odd blanks", &["M4"], constants),
    Case::rosbag("texts-not-utf-8", "given as bytes", &["M5"], || {
        let mut bag = Bag::plain();
        let topic = Topic::string("/a");
        bag.define(&topic);
        bag.message(&topic, stamp(0), &text(b"caf\xe9"), &json!({"data": "Y2Fm6Q=="}));
        bag.message(&topic, stamp(1), &text(b"a\0b"), &json!({"data": "a\0b"}));
        bag.unindexed();
        bag.done()
    }),
    Case::rosbag("payload-surplus", "bytes behind the last field", &["M7"], || {
        let mut bag = Bag::plain();
        let topic = Topic::string("/a");
        bag.define(&topic);
        let payload = [text(b"x"), b"??".to_vec()].concat();
        let bytes = topic.data(stamp(0), &payload);
        bag.note(bag.at() + bytes.len() as u64 - 2, "payload_surplus");
        bag.lay(&topic, stamp(0), &bytes, &json!({"data": "x"}));
        talk(&mut bag, &topic, 1..3);
        bag.unindexed();
        bag.done()
    }),
    Case::rosbag("payload-short", "ends inside a field", &["M8"], || short(b"\x09\0\0\0shor", 0)),
    Case::rosbag("payload-short+count", "the count of a list is cut", &["M8", "M12"], || {
        short(b"\xff\xff", 0)
    }),
    Case::rosbag("payload-count-hostile", "a text of 4 GiB", &["M12"], || short(b"\xff\xff\xff\xffx", 0)),
    Case::rosbag("console", "lines of roslib/Log", &["M3"], console),
    Case::rosbag("robot", "an image and a track: what is extracted and drawn on maps", &["M3"], robot),
];

const SCALARS: [(&str, &str, &str); 16] = [
    ("bool", "b", "bool"),
    ("int8", "i8", "int8"),
    ("uint8", "u8", "uint8"),
    ("byte", "by", "int8"),
    ("char", "ch", "uint8"),
    ("int16", "i16", "int16"),
    ("uint16", "u16", "uint16"),
    ("int32", "i32", "int32"),
    ("uint32", "u32", "uint32"),
    ("int64", "i64", "int64"),
    ("uint64", "u64", "uint64"),
    ("float32", "f32", "float32"),
    ("float64", "f64", "float64"),
    ("time", "t", "time"),
    ("duration", "d", "duration"),
    ("string", "s", "text"),
];

fn scalars() -> Made {
    let mut bag = Bag::recorder();
    let lines: Vec<_> = SCALARS.iter().map(|(ty, name, _)| format!("{ty} {name}\n")).collect();
    let def = lines.concat();
    let fields = SCALARS.iter().map(|(_, name, ty)| field(name, ty)).collect();
    let topic = Topic::new("/s", "pkg/Scalars", "a78f4dd5016a671e2e64c07aca1a1a85", &def, fields);
    bag.define(&topic);
    let low = Lay::new()
        .u8(0)
        .u8(0x80)
        .u8(0)
        .u8(0x80)
        .u8(0)
        .bytes(&i16::MIN.to_le_bytes())
        .u16(0)
        .bytes(&i32::MIN.to_le_bytes())
        .bytes(&u32_bytes(0))
        .bytes(&i64::MIN.to_le_bytes())
        .u64(0)
        .bytes(&f32::NEG_INFINITY.to_le_bytes())
        .bytes(&f64::NAN.to_le_bytes())
        .bytes(&[0; 8])
        .bytes(&i32::MIN.to_le_bytes())
        .bytes(&(-1i32).to_le_bytes())
        .bytes(&text(b""));
    bag.message(&topic, stamp(0), &low.done(), &json!({
        "b": false, "i8": -128, "u8": 0, "by": -128, "ch": 0, "i16": -32768, "u16": 0, "i32": i32::MIN, "u32": 0,
        "i64": i64::MIN.to_string(), "u64": "0", "f32": "-inf", "f64": "NaN", "t": {"sec": 0, "nsec": 0},
        "d": {"sec": i32::MIN, "nsec": -1}, "s": "",
    }));
    let high = Lay::new()
        .u8(2)
        .u8(0x7f)
        .u8(0xff)
        .u8(0x7f)
        .u8(0xff)
        .bytes(&i16::MAX.to_le_bytes())
        .u16(u16::MAX)
        .bytes(&i32::MAX.to_le_bytes())
        .bytes(&u32::MAX.to_le_bytes())
        .bytes(&i64::MAX.to_le_bytes())
        .u64(u64::MAX)
        .bytes(&0.1f32.to_le_bytes())
        .bytes(&0.1f64.to_le_bytes())
        .bytes(&[0xff; 8])
        .bytes(&i32::MAX.to_le_bytes())
        .bytes(&999_999_999i32.to_le_bytes())
        .bytes(&text("Grüße".as_bytes()));
    bag.message(&topic, stamp(1), &high.done(), &json!({
        "b": true, "i8": 127, "u8": 255, "by": 127, "ch": 255, "i16": 32767, "u16": 65535, "i32": i32::MAX,
        "u32": u32::MAX, "i64": i64::MAX.to_string(), "u64": u64::MAX.to_string(), "f32": 0.1, "f64": 0.1,
        "t": {"sec": u32::MAX, "nsec": u32::MAX}, "d": {"sec": i32::MAX, "nsec": 999_999_999}, "s": "Grüße",
    }));
    bag.close();
    bag.done()
}

fn arrays() -> Made {
    let mut bag = Bag::recorder();
    let def = "uint8[] blob\nuint8[3] id\nchar[2] tag\nint16[2] pair\nfloat32[] list\nstring[] names\ntime[1] when\n";
    let fields = json!([
        field("blob", "bytes"),
        field("id", "bytes"),
        field("tag", "bytes"),
        field("pair", "int16[2]"),
        field("list", "float32[]"),
        field("names", "text[]"),
        field("when", "time[1]"),
    ]);
    let topic = Topic::new("/a", "pkg/Arrays", "dd52658f2449b6603e5142727a8295c1", def, fields);
    bag.define(&topic);
    let full = Lay::new()
        .bytes(&text(&[0, 255]))
        .bytes(&[1, 2, 3])
        .bytes(b"ab")
        .bytes(&[0xff, 0xff, 1, 0])
        .bytes(&u32_bytes(2))
        .bytes(&1.5f32.to_le_bytes())
        .bytes(&f32::INFINITY.to_le_bytes())
        .bytes(&u32_bytes(2))
        .bytes(&text(b""))
        .bytes(&text(b"x"))
        .bytes(&[1, 0, 0, 0, 2, 0, 0, 0]);
    bag.message(&topic, stamp(0), &full.done(), &json!({
        "blob": "AP8=", "id": "AQID", "tag": "YWI=", "pair": [-1, 1], "list": [1.5, "inf"], "names": ["", "x"],
        "when": [{"sec": 1, "nsec": 2}],
    }));
    let empty = [&[0; 4][..], &[0; 3], &[0; 2], &[0; 4], &[0; 4], &[0; 4], &[0; 8]].concat();
    bag.message(
        &topic,
        stamp(1),
        &empty,
        &json!({
            "blob": "", "id": "AAAA", "tag": "AAA=", "pair": [0, 0], "list": [], "names": [],
            "when": [{"sec": 0, "nsec": 0}],
        }),
    );
    bag.close();
    bag.done()
}

fn nested() -> Made {
    let mut bag = Bag::recorder();
    let line = "=".repeat(80);
    let def = format!(
        "Header header\nLeaf one\npkg/Leaf two\nLeaf[] many\n{line}\nMSG: std_msgs/Header\nuint32 seq\ntime stamp\nstring frame_id\n{line}\nMSG: pkg/Leaf\nuint16 a\nstring s\n"
    );
    let leaf = json!([field("a", "uint16"), field("s", "text")]);
    let header = json!([field("seq", "uint32"), field("stamp", "time"), field("frame_id", "text")]);
    let with = |name: &str, ty: &str, fields: &Json| json!({"name": name, "type": ty, "fields": fields});
    let fields = json!([
        with("header", "struct std_msgs/Header", &header),
        with("one", "struct pkg/Leaf", &leaf),
        with("two", "struct pkg/Leaf", &leaf),
        with("many", "struct pkg/Leaf[]", &leaf),
    ]);
    let topic = Topic::new("/t", "pkg/Tree", "7d9b2518f1e1d3f5dd354001b33470c7", &def, fields);
    bag.define(&topic);
    for many in 0..3u16 {
        let mut payload =
            Lay::new().bytes(&u32_bytes(7)).bytes(&[0; 8]).bytes(&text(b"base")).u16(1).bytes(&text(b"a"));
        payload = payload.u16(2).bytes(&text(b"")).bytes(&u32_bytes(many.into()));
        let mut leaves = Vec::new();
        for i in 0..many {
            payload = payload.u16(i).bytes(&text(b"zz"));
            leaves.push(json!({"a": i, "s": "zz"}));
        }
        bag.message(
            &topic,
            stamp(many.into()),
            &payload.done(),
            &json!({
                "header": {"seq": 7, "stamp": {"sec": 0, "nsec": 0}, "frame_id": "base"},
                "one": {"a": 1, "s": "a"}, "two": {"a": 2, "s": ""}, "many": leaves,
            }),
        );
    }
    bag.close();
    bag.done()
}

fn empties() -> Made {
    let mut bag = Bag::recorder();
    let def = "std_msgs/Empty none\nstd_msgs/Empty[3] three\nstd_msgs/Empty[] any\nint8 x\n====\nMSG: std_msgs/Empty\n";
    let with = |name: &str, ty: &str| json!({"name": name, "type": ty, "fields": []});
    let fields = json!([
        with("none", "struct std_msgs/Empty"),
        with("three", "struct std_msgs/Empty[3]"),
        with("any", "struct std_msgs/Empty[]"),
        field("x", "int8"),
    ]);
    let topic = Topic::new("/e", "pkg/Empties", "7f7b2fb2b2f8ad5843a5194e6f5da636", def, fields);
    bag.define(&topic);
    bag.message(
        &topic,
        stamp(0),
        &[2, 0, 0, 0, 9],
        &json!({"none": {}, "three": [{}, {}, {}], "any": [{}, {}], "x": 9}),
    );
    bag.close();
    bag.done()
}

fn constants() -> Made {
    let mut bag = Bag::recorder();
    let def = "# a comment\nint32 A=-1   # minus one\nstring S= a # b\n\n\t int32   x\t# the only field\n";
    let topic = Topic::new(
        "/c",
        "pkg/Constants",
        "b2e624a6fe44a39c0bfac10c1f63510d",
        def,
        json!([field("x", "int32")]),
    );
    bag.define(&topic);
    bag.message(&topic, stamp(0), &[1, 0, 0, 0], &json!({"x": 1}));
    bag.close();
    bag.done()
}

/// A text whose message is too short at this byte of the payload; sound messages stand around it.
fn short(payload: &[u8], at: u64) -> Made {
    let mut bag = Bag::plain();
    let topic = Topic::string("/a");
    talk(&mut bag, &topic, 0..2);
    let bytes = topic.data(stamp(2), payload);
    bag.note(bag.at() + (bytes.len() - payload.len()) as u64 + at, "payload_short");
    bag.lay(&topic, stamp(2), &bytes, &json!(null));
    talk(&mut bag, &topic, 3..5);
    bag.unindexed();
    bag.done()
}

fn console() -> Made {
    let mut bag = Bag::recorder();
    let line = "=".repeat(80);
    let def = format!(
        "byte DEBUG=1\nbyte INFO=2\nbyte WARN=4\nbyte ERROR=8\nbyte FATAL=16\nHeader header\nbyte level\nstring name\nstring msg\nstring file\nstring function\nuint32 line\nstring[] topics\n{line}\nMSG: roslib/Header\nuint32 seq\ntime stamp\nstring frame_id\n"
    );
    let header = json!([field("seq", "uint32"), field("stamp", "time"), field("frame_id", "text")]);
    let fields = json!([
        {"name": "header", "type": "struct roslib/Header", "fields": header},
        field("level", "int8"), field("name", "text"), field("msg", "text"), field("file", "text"),
        field("function", "text"), field("line", "uint32"), field("topics", "text[]"),
    ]);
    let topic = Topic::new("/rosout", "roslib/Log", "acffd30cd6b6de30f120938c17c593fb", &def, fields);
    bag.define(&topic);
    let levels = [(1u8, "debug"), (2, "info"), (4, "warning"), (8, "error"), (16, "critical")];
    for (i, (level, name)) in (0..).zip(levels) {
        // The last one has no time of its own.
        let own = if level == 16 { (0, 0) } else { (stamp(i).0, stamp(i).1 + 5) };
        let said = format!("line {i}");
        let payload = Lay::new()
            .bytes(&u32_bytes(0))
            .bytes(&own.0.to_le_bytes())
            .bytes(&own.1.to_le_bytes())
            .bytes(&text(b""))
            .u8(level)
            .bytes(&text(b"/node"))
            .bytes(&text(said.as_bytes()))
            .bytes(&text(b"a.cpp"))
            .bytes(&text(b"f"))
            .bytes(&u32_bytes(12))
            .bytes(&u32_bytes(0));
        let header = json!({"seq": 0, "stamp": {"sec": own.0, "nsec": own.1}, "frame_id": ""});
        bag.message(&topic, stamp(i), &payload.done(), &json!({
            "header": header, "level": level, "name": "/node", "msg": said, "file": "a.cpp", "function": "f",
            "line": 12, "topics": [],
        }));
        let time = if level == 16 { stamp(i) } else { own };
        bag.console(i64::from(time.0) * 1_000_000_000 + i64::from(time.1), name, "/node", &said);
    }
    bag.close();
    bag.done()
}

/// The text of a definition with a header.
fn with_header(fields: &str, more: &str) -> String {
    let line = "=".repeat(80);
    let header = "MSG: std_msgs/Header\nuint32 seq\ntime stamp\nstring frame_id\n";
    format!("Header header\n{fields}\n{line}\n{header}{}{more}", if more.is_empty() { "" } else { "\n" })
}

fn header_field() -> Json {
    let fields = [field("seq", "uint32"), field("stamp", "time"), field("frame_id", "text")];
    json!({"name": "header", "type": "struct std_msgs/Header", "fields": fields})
}

/// A header of frame `base`, its bytes and its value.
fn header(seq: u8) -> (Vec<u8>, Json) {
    let bytes = [&[seq, 0, 0, 0, seq, 0, 0, 0, 5, 0, 0, 0], &text(b"base")[..]].concat();
    (bytes, json!({"seq": seq, "stamp": {"sec": seq, "nsec": 5}, "frame_id": "base"}))
}

fn robot() -> Made {
    let mut bag = Bag::plain();
    let image =
        "uint32 height\nuint32 width\nstring encoding\nuint8 is_bigendian\nuint32 step\nuint8[] data\n";
    let fields = [
        ("height", "uint32"),
        ("width", "uint32"),
        ("encoding", "text"),
        ("is_bigendian", "uint8"),
        ("step", "uint32"),
        ("data", "bytes"),
    ];
    let fields: Vec<_> =
        std::iter::once(header_field()).chain(fields.map(|(name, ty)| field(name, ty))).collect();
    let sum = "060021388200f6f0f447d0fcd9c64743";
    let camera = Topic::new("/camera", "sensor_msgs/Image", sum, &with_header(image, ""), json!(fields));
    bag.define(&camera);
    for seq in 0..2 {
        let (head, value) = header(seq);
        let lay = Lay::new().bytes(&head).bytes(&u32_bytes(1)).bytes(&u32_bytes(2)).bytes(&text(b"rgb8"));
        let payload = lay.u8(0).bytes(&u32_bytes(6)).bytes(&text(&[255, 0, 0, 0, 0, 255])).done();
        let pixels = json!({
            "header": value, "height": 1, "width": 2, "encoding": "rgb8", "is_bigendian": 0, "step": 6,
            "data": "/wAAAAD/",
        });
        bag.message(&camera, stamp(u32::from(seq)), &payload, &pixels);
    }
    let fix = "NavSatStatus status\nfloat64 latitude\nfloat64 longitude\nfloat64 altitude\n\
               float64[9] position_covariance\nuint8 position_covariance_type\n";
    let line = "=".repeat(80);
    let status = format!("{line}\nMSG: sensor_msgs/NavSatStatus\nint8 status\nuint16 service\n");
    let fields = json!([
        header_field(),
        {"name": "status", "type": "struct sensor_msgs/NavSatStatus", "fields": [
            field("status", "int8"), field("service", "uint16"),
        ]},
        field("latitude", "float64"),
        field("longitude", "float64"),
        field("altitude", "float64"),
        field("position_covariance", "float64[9]"),
        field("position_covariance_type", "uint8"),
    ]);
    let gps = Topic::new("/fix", "sensor_msgs/NavSatFix", "*", &with_header(fix, &status), fields);
    let gps = gps.with_sum("*", "wildcard");
    bag.define(&gps);
    // The second one has no fix.
    for (seq, state) in [(0_u8, 0_i8), (1, -1), (2, 2)] {
        let (head, value) = header(seq);
        let north = 50.363 + f64::from(seq) / 1000.0;
        let mut lay = Lay::new().bytes(&head).bytes(&state.to_le_bytes()).u16(1);
        for number in [north, 7.559, 120.5] {
            lay = lay.bytes(&number.to_le_bytes());
        }
        let payload = lay.bytes(&[0; 72]).u8(0).done();
        let place = json!({
            "header": value, "status": {"status": state, "service": 1}, "latitude": north, "longitude": 7.559,
            "altitude": 120.5, "position_covariance": vec![0.0; 9], "position_covariance_type": 0,
        });
        bag.message(&gps, stamp(2 + u32::from(seq)), &payload, &place);
    }
    bag.unindexed();
    bag.done()
}
