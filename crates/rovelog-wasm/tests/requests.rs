//! Tests of the requests, without a browser.

use rovelog_explore::Explore;
use rovelog_wasm::{Reply, answer, answer_without_log};
use serde_json::Value;

fn open(name: &str) -> Explore {
    let log = rovelog::open(rovelog_testing::root().join("corpus").join(name)).unwrap();
    Explore::new(log, name, name)
}

fn json(reply: &Reply) -> Value {
    serde_json::from_slice(&reply.bytes).unwrap()
}

fn number(value: &Value) -> usize {
    value.as_u64().unwrap().try_into().unwrap()
}

/// Returns the description of the first table in an answer, and the bytes of the columns.
fn parts(reply: &Reply) -> (Value, &[u8]) {
    let head = 4 + u32::from_le_bytes(reply.bytes[..4].try_into().unwrap()) as usize;
    let tables: Value = serde_json::from_slice(&reply.bytes[4..head]).unwrap();
    (tables[0].clone(), &reply.bytes[head..])
}

#[test]
fn columns_are_the_bytes_of_typed_arrays() {
    let log = open("rosbag/robot.bag");
    let reply = answer(&log, "columns?topic=/fix&field=latitude&field=header").unwrap();
    let (head, body) = parts(&reply);
    let columns = head["columns"].as_array().unwrap();
    let rows = number(&head["rows"]);
    assert_eq!(rows as u64, log.log().topic("/fix").unwrap().count);
    let find = |name: &str| columns.iter().find(|column| column["name"] == name).unwrap();
    let latitude = find("latitude");
    assert_eq!((&latitude["type"], &latitude["valid"]), (&Value::from("f64"), &Value::Null));
    let at = number(&latitude["at"]);
    assert!(at.is_multiple_of(8));
    let mut expected = Vec::new();
    for record in log.log().records(&rovelog::Select::topic("/fix")) {
        let value = record.unwrap().value().unwrap();
        expected.extend(value.get("latitude").and_then(rovelog::Value::as_f64).unwrap().to_le_bytes());
    }
    assert_eq!(body[at..at + 8 * rows], expected);
    // The positions of texts are followed by the texts.
    let frame = find("header.frame_id");
    assert_eq!(frame["type"], "text");
    let at = number(&frame["at"]);
    let end =
        |row: usize| u32::from_le_bytes(body[at + 4 * row..at + 4 * row + 4].try_into().unwrap()) as usize;
    let texts = at + 4 * (rows + 1);
    let frames = (0..rows).map(|row| str::from_utf8(&body[texts + end(row)..texts + end(row + 1)]).unwrap());
    for (record, frame) in log.log().records(&rovelog::Select::topic("/fix")).zip(frames) {
        let value = record.unwrap().value().unwrap();
        let header = value.get("header").and_then(|header| header.get("frame_id"));
        assert_eq!(header, Some(&rovelog::Value::Text(frame.to_owned())));
    }
}

#[test]
fn files_are_grouped_into_logs() {
    let reply = answer_without_log(
        "groups?name=a/x_p1.rld.gz&name=a/x.rld&name=b/x_p1.rld&name=f.ulg&name=a/x_p2.rld",
    )
    .unwrap();
    assert_eq!(json(&reply), serde_json::json!([[1, 0, 4], [2], [3]]));
    assert_eq!(json(&answer_without_log("start").unwrap())["logs"], serde_json::json!([]));
    assert_eq!(answer_without_log("topics").unwrap_err(), "no log is open");
}

#[test]
fn answers_name_what_is_missing() {
    let damaged = open("ulog/damaged+garbage.ulg");
    let lost = damaged.losses().unwrap();
    for request in ["columns?topic=t", "tables", "records?topic=t", "csv?topic=t", "mcap", "recover"] {
        let note = answer(&damaged, request).unwrap().note;
        assert!(note.as_deref().is_some_and(|note| note.starts_with(&lost)), "{request}: {note:?}");
    }
    let log = open("rosbag/robot.bag");
    let topics = json(&answer(&log, "topics").unwrap());
    assert_eq!(topics.as_array().unwrap().len(), log.log().topics().len());
    let csv = answer(&log, "csv?topic=/fix").unwrap();
    assert_eq!(csv.note, None);
    assert!(csv.bytes.starts_with(b"time,t_ns,"));
    let recovered = answer(&log, "recover").unwrap();
    assert!(recovered.bytes.starts_with(b"#ROS"));
    assert!(answer(&log, "mcap").unwrap().bytes.starts_with(b"\x89MCAP0\r\n"));
    assert!(answer(&log, "csv?topic=/none").unwrap_err().contains("no topic /none"));
}

#[test]
fn every_topic_of_the_corpus_with_a_type_has_columns() {
    let logs = [("ulog", "ulg"), ("rld", "rld"), ("rosbag", "bag"), ("vel", "vel")];
    for log in logs.into_iter().flat_map(|(format, extension)| rovelog_testing::corpus(format, extension, 10))
    {
        let Ok(opened) = rovelog::open(&log.path) else { continue };
        let explore = Explore::new(opened, "", "");
        for topic in explore.log().topics() {
            let query: String =
                form_urlencoded::Serializer::new(String::new()).append_pair("topic", &topic.name).finish();
            let reply = answer(&explore, &format!("columns?{query}"));
            if topic.schema.is_some() && topic.count > 0 {
                assert!(reply.is_ok(), "{} {}: {reply:?}", log.name, topic.name);
            }
            if let Ok(reply) = reply {
                let (head, body) = parts(&reply);
                // Reading several topics gives the same bytes, unless the topic has no rows.
                let tables = answer(&explore, &format!("tables?{query}")).unwrap();
                assert!(tables.bytes == reply.bytes || head["rows"] == 0, "{} {}", log.name, topic.name);
                let last = head["columns"].as_array().unwrap().last().unwrap();
                assert!(last["at"].as_u64().unwrap() <= body.len() as u64, "{} {}", log.name, topic.name);
            }
        }
    }
}
