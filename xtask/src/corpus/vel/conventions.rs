//! What sizes count, which byte marks a message, versions, and types that are not described.

use serde_json::json;

use super::kinds::{jpeg, obd_data, position};
use super::log::{Log, Message, OBD, Sizes, raw_fields};
use super::{Case, Made};
use crate::corpus::expected::field;
use crate::corpus::lay::base64;

pub(super) const CASES: &[Case] = &[
    Case::vel(
        "all-kinds",
        "the six messages, in the literal conventions of the text",
        &["D1", "D2", "D18"],
        all_kinds,
    ),
    Case::vel("all-kinds+0x31", "the same, marked with the character 1", &["D2"], || {
        all(Sizes::Exclusive, 0x31)
    }),
    Case::vel("all-kinds+inclusive", "sizes that count the whole header", &["D1"], || {
        all(Sizes::Inclusive, 0x49)
    }),
    Case::vel("all-kinds+inclusive+0x31", "both other readings at once", &["D1", "D2"], || {
        all(Sizes::Inclusive, 0x31)
    }),
    Case::vel("data-only-sizes", "sizes that count the data alone", &["D3"], data_only),
    Case::vel("mixed-markers", "both markers in one log: each is kept", &["D2", "D4"], mixed),
    Case::vel("one-message+inclusive", "one message settles the size rule", &["D1"], one_inclusive),
    Case::vel("one-message", "one message settles the size rule", &["D1"], one),
    Case::vel(
        "one-short-message+inclusive",
        "a message that is too short settles the size rule by its end",
        &["D1", "D10"],
        one_short,
    ),
    Case::vel("unknown-types-only", "the chain of messages settles the size rule", &["D1", "D8"], || {
        unknown_only(Sizes::Exclusive)
    }),
    Case::vel("unknown-types-only+inclusive", "the same for the other rule", &["D1", "D8"], || {
        unknown_only(Sizes::Inclusive)
    }),
    Case::vel(
        "unknown-type",
        "a type that is not described: its name is suggested",
        &["D8", "D36"],
        unknown_type,
    ),
    Case::vel(
        "unknown-versions",
        "versions that are not described, also of the laser",
        &["D8"],
        unknown_versions,
    ),
    Case::vel("own-type", "a type that is declared reads like a built-in one", &["D36"], own_type),
    Case::vel("version-1.2", "another minor version", &["D11"], || version(1, 2)),
    Case::vel("version-2.0", "another major version", &["D11"], || version(2, 0)),
    Case::vel("invalid-message", "messages that are marked as not valid", &["D7"], invalid),
];

/// The six messages twice.
fn fill(log: &mut Log) {
    for round in 0..2_i32 {
        let at = 7322.625 + 1000.0 * f64::from(round);
        log.pose(at, [1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 9.81]);
        log.obd(at + 1.5, 18 + round);
        log.gps(at + 2.0, &position(56 + round));
        log.image(at + 3.0, 0, 1, (16, 8), &jpeg(16, 8));
        log.image(at + 3.5, 1, 1, (8, 8), &jpeg(8, 8));
        log.laser(at + 4.0, (b"Hokuyo_URG-04LX", "Hokuyo_URG-04LX"), (b"front", "front"), &[1724, 0, 3000]);
        log.velodyne(at + 5.0, &[]);
    }
    log.choice("position_unit", "degrees", true);
    log.choice("utc", "gps", false);
    log.choice("quaternion", "wxyz body_to_world", true);
    log.choice("acceleration_unit", "m/s2", false);
    // 2010-06-14 12:34:56 less 7324.625 ms, both times.
    log.utc(1_276_518_896_000_000_000 - 7_324_625_000);
}

fn all(sizes: Sizes, marker: u8) -> Made {
    let mut log = Log::new();
    log.sizes(sizes);
    log.marker(marker);
    fill(&mut log);
    log.finish()
}

fn all_kinds() -> Made {
    all(Sizes::Exclusive, 0x49)
}

fn data_only() -> Made {
    let mut log = Log::new();
    log.sizes(Sizes::DataOnly);
    log.note("data_only_sizes", 0);
    fill(&mut log);
    log.finish()
}

fn mixed() -> Made {
    let mut log = Log::new();
    for i in 0..6 {
        let mut message = Message::new(OBD, 100.0 * f64::from(i), obd_data(i, 1500, 12.5));
        message.marker = if i % 2 == 0 { 0x49 } else { 0x31 };
        log.put_obd(&message, i);
    }
    log.finish()
}

fn one() -> Made {
    let mut log = Log::new();
    log.obd(50.0, 7);
    log.finish()
}

fn one_inclusive() -> Made {
    let mut log = Log::new();
    log.sizes(Sizes::Inclusive);
    log.obd(50.0, 7);
    log.finish()
}

fn one_short() -> Made {
    let mut log = Log::new();
    log.sizes(Sizes::Inclusive);
    log.short(&Message::new(OBD, 1000.0, vec![0; 24]));
    log.finish()
}

fn unknown_only(sizes: Sizes) -> Made {
    let mut log = Log::new();
    log.sizes(sizes);
    for i in 0..5_u8 {
        if i == 0 {
            log.note("unknown_type", log.at());
        }
        let data = vec![i; 10 + usize::from(i)];
        let message = Message::new((0x0777_1234, 100), 10.0 * f64::from(i), data.clone());
        log.put(&message, "0x07771234", "0x07771234", &raw_fields(), &json!({"data": base64(&data)}));
    }
    log.choice("size_rule", if sizes == Sizes::Exclusive { "exclusive" } else { "inclusive" }, true);
    log.finish()
}

fn unknown_type() -> Made {
    let mut log = Log::new();
    log.drive(0.0, 2);
    log.note("unknown_type", log.at());
    let message = Message::new((0x0001_806E, 100), 250.0, vec![1, 2, 3]);
    log.put(&message, "0x0001806E", "0x0001806E", &raw_fields(), &json!({"data": "AQID"}));
    log.drive(300.0, 2);
    log.finish()
}

fn unknown_versions() -> Made {
    let mut log = Log::new();
    log.drive(0.0, 2);
    log.note("unknown_type", log.at());
    let obd = Message::new((0x0001_4043, 101), 250.0, vec![9; 32]);
    log.put(&obd, "OBDDataM@101", "OBDDataM@101", &raw_fields(), &json!({"data": base64(&[9; 32])}));
    log.note("unknown_type", log.at());
    let laser = Message::new((0x0003_0910, 100), 260.0, vec![8; 5]);
    let name = "LaserRange2DDataM@100";
    log.put(&laser, name, name, &raw_fields(), &json!({"data": base64(&[8; 5])}));
    log.drive(300.0, 2);
    log.finish()
}

fn own_type() -> Made {
    let mut log = Log::new();
    log.drive(0.0, 2);
    for i in 0..2_u8 {
        let samples = [1.5_f32, -2.0];
        let mut data = 90.25_f32.to_le_bytes().to_vec();
        data.extend(2_u32.to_le_bytes());
        data.extend(samples.iter().flat_map(|x| x.to_le_bytes()));
        data.extend([5, 0, 0, 0]);
        data.extend(b"north");
        let fields = json!([
            field("heading", "float32"),
            field("n", "uint32"),
            field("samples", "float32[]"),
            field("name", "text"),
        ]);
        let json = json!({"heading": 90.25, "n": 2, "samples": [1.5, -2.0], "name": "north"});
        let message = Message::new((0x0001_806E, 100), 250.0 + f64::from(i), data);
        log.put(&message, "CompassM", "CompassM", &fields, &json);
    }
    log.drive(300.0, 2);
    let text =
        "message CompassM 100\n  float heading deg\n  unsigned int n\n  float samples[n] uT\n  string name\n";
    log.fact("declarations", text.into());
    log.finish()
}

fn version(major: u16, minor: u16) -> Made {
    let mut log = Log::new();
    log.version(major, minor);
    log.note_in_head("unknown_version", 4);
    log.drive(0.0, 3);
    log.finish()
}

fn invalid() -> Made {
    let mut log = Log::new();
    log.drive(0.0, 2);
    log.invalid(&Message::new(OBD, 150.0, obd_data(99, 1500, 12.5)));
    log.invalid(&Message::new((0x0707_0707, 3), 160.0, vec![1; 9]));
    log.drive(200.0, 2);
    log.finish()
}
