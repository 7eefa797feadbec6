//! Tests of every corpus case. The expected results come from the recipes, not from a reader.

mod support;

use rovelog_core::ReadOptions;
use rovelog_testing::check_corpus;
use serde_json::Value as Json;
use support::{LOGS, picture};
use ulog_format::UlogReader;

#[test]
fn every_case_reads_as_expected() {
    check_corpus(&LOGS, |log, expected| {
        // The expected results contain the bytes of values with an unknown type, but not the name
        // of the type.
        strip_types(&mut expected["ulog"]);
        Ok(picture(&UlogReader::new(log.bytes.clone(), &ReadOptions::default())?))
    });
}

fn strip_types(json: &mut Json) {
    match json {
        Json::Object(map) => {
            if map.contains_key("hex") {
                map.remove("type");
            }
            map.values_mut().for_each(strip_types);
        }
        Json::Array(items) => items.iter_mut().for_each(strip_types),
        _ => {}
    }
}
