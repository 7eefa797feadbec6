//! Every corpus case against its expected result, which comes from the recipe and not from a reader.

mod support;

use rld_format::RldReader;
use rovelog_core::{Error, ReadOptions};
use rovelog_testing::{differences, expected};
use support::{corpus, picture};

#[test]
fn every_case_reads_as_expected() {
    let mut wrong = Vec::new();
    for log in corpus() {
        let expected = expected("rld", &log.name);
        match (expected["open"].as_str(), RldReader::new(log.bytes.clone(), &ReadOptions::default())) {
            (Some("refused"), Err(error)) => {
                let error = Error::from(error);
                assert_eq!(expected["error"]["kind"], error.kind.name(), "{}", log.name);
                let words = expected["error"]["contains"].as_str().expect("words");
                assert!(error.to_string().contains(words), "{}: {error} lacks {words:?}", log.name);
            }
            (Some("ok"), Ok(reader)) => wrong.extend(differences(&log.name, &expected, &picture(&reader))),
            (open, result) => panic!("{}: expected {open:?}, got {:?}", log.name, result.map(|_| "a log")),
        }
    }
    assert!(wrong.is_empty(), "{} differences\n{}", wrong.len(), wrong.join("\n"));
}
