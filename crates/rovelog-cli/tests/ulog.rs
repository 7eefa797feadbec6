//! Commands for ULog only.

mod common;

use common::{shown, snapshot, stdout};
use serde_json::Value;

#[test]
fn ulog() {
    let rich = "one-topic+multi-id+sync+dropout+texts+appended.ulg";
    let runs = [
        format!("ulog dropouts {rich}"),
        format!("ulog dropouts {rich} -f json"),
        "ulog dropouts one-topic.ulg".to_owned(),
        "ulog infos info-of-all-types.ulg".to_owned(),
        "ulog infos info-of-custom-types.ulg".to_owned(),
        "ulog infos info-of-custom-types.ulg -f json".to_owned(),
        "ulog infos multi-info.ulg".to_owned(),
        "ulog infos multi-info.ulg -f json".to_owned(),
        "ulog gps-dump one-topic.ulg -o dump.ubx".to_owned(),
        "ulog".to_owned(),
    ];
    snapshot!("ulog", runs.map(|line| shown(&line)).join("\n"));
}

#[test]
fn dropouts_of_a_real_log_list_the_loss_of_each_topic() {
    let Some(folder) = rovelog_testing::real("ulog") else { return };
    let log = folder.join("sample.ulg");
    let document: Value =
        serde_json::from_str(&stdout(&format!("ulog dropouts -f json {}", log.display()))).unwrap();
    let dropouts = document["dropouts"].as_array().unwrap();
    assert_eq!(dropouts.len(), 4);
    let missing = |dropout: &Value| {
        let topics = dropout["topics"].as_array().unwrap().iter();
        let sensors = topics.filter(|topic| topic["name"] == "sensor_combined/0");
        sensors.map(|topic| topic["missing"].as_u64().unwrap()).sum::<u64>()
    };
    // At about 240 Hz, a dropout of 31 or 62 ms loses 8 or 15 rows.
    assert_eq!(dropouts.iter().map(missing).collect::<Vec<_>>(), [0, 0, 8, 15]);
}
