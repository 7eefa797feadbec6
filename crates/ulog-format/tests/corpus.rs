//! Every corpus case against its expected result, which comes from the recipe and not from a reader.

mod support;

use rovelog_core::{Error, ReadOptions};
use rovelog_testing::{differences, expected};
use serde_json::Value as Json;
use support::{corpus, picture};
use ulog_format::UlogReader;

#[test]
fn every_case_reads_as_expected() {
    let mut wrong = Vec::new();
    for log in corpus() {
        let mut expected = expected("ulog", &log.name);
        match (expected["open"].as_str(), UlogReader::new(log.bytes.clone(), &ReadOptions::default())) {
            (Some("refused"), Err(error)) => {
                let error = Error::from(error);
                assert_eq!(expected["error"]["kind"], error.kind.name(), "{}", log.name);
                let words = expected["error"]["contains"].as_str().expect("words");
                assert!(error.to_string().contains(words), "{}: {error} lacks {words:?}", log.name);
            }
            (Some("ok"), Ok(reader)) => {
                // An unknown type is kept as bytes; how it is spelled is the schema's matter.
                strip_types(&mut expected["ulog"]);
                wrong.extend(differences(&log.name, &expected, &picture(&reader)));
            }
            (open, result) => panic!("{}: expected {open:?}, got {:?}", log.name, result.map(|_| "a log")),
        }
    }
    assert!(wrong.is_empty(), "{} differences\n{}", wrong.len(), wrong.join("\n"));
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
