//! Tests of converting records to structs with serde, for all formats.
#![cfg(all(feature = "ulog", feature = "rld", feature = "rosbag", feature = "vel"))]

use rovelog::{AnyLog, FieldType, ReadOptions, Scalar, Select, Value};
use rovelog_testing::{RLD, ROSBAG, ULOG, VEL};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Reads all rows of the matching topics. Calls `check` with each row and with the value of the
/// same record. Returns the number of rows.
fn compare<T: DeserializeOwned>(
    logs: &[rovelog_testing::Log],
    of_interest: impl Fn(&rovelog::Topic) -> bool,
    check: impl Fn(&T, &Value),
) -> usize {
    let mut count = 0;
    for file in logs {
        let Ok(log) = rovelog::from_bytes(file.bytes.clone(), &ReadOptions::default()) else { continue };
        for topic in log.topics().iter().filter(|topic| topic.count > 0 && of_interest(topic)) {
            let topic = log.own(topic).unwrap();
            let mut rows = topic.rows::<T>();
            for record in topic.records(&Select::all()) {
                let (row, record) = (rows.next().unwrap(), record.unwrap());
                let Ok(value) = record.value() else {
                    assert!(row.is_err(), "{}: {} at {}", file.name, topic.name, record.offset);
                    continue;
                };
                check(&row.unwrap(), &value);
                count += 1;
            }
            assert!(rows.next().is_none());
        }
    }
    count
}

#[derive(Deserialize)]
struct Plain {
    x: f32,
    timestamp: u64,
    of_a_later_release: Option<u16>,
}

#[test]
fn rows_of_a_ulog_equal_its_records() {
    let is_plain = |topic: &rovelog::Topic| {
        topic.schema.as_ref().is_some_and(|schema| {
            let has = |name: &str, ty: &str| {
                schema.fields.iter().any(|field| &*field.name == name && field.source_type == ty)
            };
            has("timestamp", "uint64_t") && has("x", "float")
        })
    };
    let rows = compare::<Plain>(&ULOG.corpus(), is_plain, |row, value| {
        assert_eq!(value.get("timestamp"), Some(&Value::UInt(row.timestamp, 64)));
        assert_eq!(value.get("x"), Some(&Value::F32(row.x)));
        assert_eq!(row.of_a_later_release, None);
    });
    assert!(rows >= 400, "{rows} rows");
}

#[derive(Deserialize)]
struct Attitude {
    timestamp: u64,
    q: [f32; 4],
}

#[test]
fn every_real_attitude_is_a_unit_quaternion() {
    let is_attitude = |topic: &rovelog::Topic| topic.type_name == "vehicle_attitude";
    let rows = compare::<Attitude>(&ULOG.real(), is_attitude, |row, value| {
        let norm: f32 = row.q.iter().map(|part| part * part).sum();
        assert!((norm - 1.0).abs() < 1e-3, "{:?} at {}", row.q, row.timestamp);
        assert_eq!(value.get("q"), Some(&Value::List(row.q.map(Value::F32).to_vec())));
    });
    assert!(rows > 10_000 || ULOG.folder().is_none(), "{rows} rows");
}

#[derive(Deserialize)]
struct Stamp {
    sec: u32,
    nsec: u32,
}

#[derive(Deserialize)]
struct Header {
    seq: u32,
    stamp: Stamp,
    frame_id: String,
}

#[derive(Deserialize)]
struct Stamped {
    header: Header,
}

#[test]
fn headers_of_bag_messages_equal_those_of_the_records() {
    let has_header = |topic: &rovelog::Topic| {
        let fields = topic.schema.as_ref().map(|schema| &schema.fields);
        fields.is_some_and(|fields| fields.iter().any(|field| field.source_type.ends_with("Header")))
            && topic.schema.as_ref().is_some_and(|schema| &*schema.fields[0].name == "header")
    };
    let mut logs = ROSBAG.corpus();
    logs.extend(ROSBAG.real());
    let rows = compare::<Stamped>(&logs, has_header, |row, value| {
        let header = value.get("header").unwrap();
        let stamp = |name| header.get("stamp").and_then(|stamp| stamp.get(name)).cloned();
        assert_eq!(header.get("seq"), Some(&Value::UInt(row.header.seq.into(), 32)));
        assert_eq!(header.get("frame_id"), Some(&Value::Text(row.header.frame_id.clone())));
        assert_eq!(stamp("sec"), Some(Value::UInt(row.header.stamp.sec.into(), 32)));
        assert_eq!(stamp("nsec"), Some(Value::UInt(row.header.stamp.nsec.into(), 32)));
    });
    assert!(rows > 1000 || ROSBAG.folder().is_none(), "{rows} rows");
}

#[derive(Deserialize)]
struct Power {
    #[serde(rename = "V1")]
    voltage: Option<f64>,
}

#[test]
fn physical_values_of_an_rld_equal_those_of_its_rows() {
    // A channel with an unsupported scale has raw integers, which an `f64` cannot hold exactly.
    let is_physical = |topic: &rovelog::Topic| {
        let mut fields = topic.schema.iter().flat_map(|schema| &schema.fields);
        fields.all(|field| &*field.name != "V1" || field.ty == FieldType::Scalar(Scalar::Float64))
    };
    let rows = compare::<Power>(&RLD.corpus(), is_physical, |row, value| {
        assert_eq!(row.voltage, value.get("V1").and_then(Value::as_f64));
    });
    assert!(rows > 100, "{rows} rows");
}

#[derive(Deserialize)]
struct Obd {
    speed: i32,
    throttle: f32,
}

#[test]
fn messages_of_a_vel_log_equal_its_records() {
    let is_obd = |topic: &rovelog::Topic| topic.type_name == "OBDDataM" && topic.schema.is_some();
    let rows = compare::<Obd>(&VEL.corpus(), is_obd, |row, value| {
        assert_eq!(value.get("speed"), Some(&Value::Int(row.speed.into(), 32)));
        assert_eq!(value.get("throttle"), Some(&Value::F32(row.throttle)));
    });
    assert!(rows > 10, "{rows} rows");
}

#[test]
fn errors_state_the_topic_the_offset_and_both_types() {
    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only the error is of interest")]
    struct Wrong {
        x: u64,
    }
    let bytes = ULOG.case("subscription-repeated").bytes;
    let log: AnyLog = rovelog::from_bytes(bytes, &ReadOptions::default()).unwrap();
    let topic = log.topic("t").unwrap();
    let error = topic.rows::<Wrong>().next().unwrap().err().unwrap();
    let offset = topic.records(&Select::all()).next().unwrap().unwrap().offset;
    assert_eq!(error.offset, Some(offset));
    let why = "field `x`, which is `float` in the log: invalid type: floating point";
    assert!(
        error
            .to_string()
            .starts_with(&format!("the record of t/0 at byte {offset} does not fit the struct: {why}")),
        "{error}"
    );
}
