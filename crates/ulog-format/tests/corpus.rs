//! Every corpus case against its expected result, which comes from the recipe and not from a reader.

mod support;

use rovelog_core::ReadOptions;
use rovelog_testing::check_corpus;
use serde_json::Value as Json;
use support::{LOGS, picture};
use ulog_format::UlogReader;

#[test]
fn every_case_reads_as_expected() {
    check_corpus(&LOGS, |log, expected| {
        // An unknown type is kept as bytes; how it is spelled is the schema's matter.
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
