//! Every corpus case against its expected result, which comes from the recipe and not from a reader.

mod support;

use rosbag12::{BagOptions, BagReader};
use rovelog_core::Error;
use rovelog_testing::{differences, expected};
use support::{corpus, picture};

#[test]
fn every_case_reads_as_expected() {
    let mut wrong = Vec::new();
    for log in corpus() {
        let expected = expected("rosbag", &log.name);
        match (expected["open"].as_str(), BagReader::new(log.bytes.clone(), &BagOptions::default())) {
            (Some("refused"), Err(error)) => {
                let error = Error::from(error);
                assert_eq!(expected["error"]["kind"], error.kind.name(), "{}", log.name);
                let words = expected["error"]["contains"].as_str().expect("words");
                assert!(error.to_string().contains(words), "{}: {error} lacks {words:?}", log.name);
            }
            (Some("ok"), Ok(bag)) => {
                wrong.extend(differences(&log.name, &expected, &picture(&bag)));
            }
            (open, result) => panic!("{}: expected {open:?}, got {:?}", log.name, result.map(|_| "a bag")),
        }
    }
    assert!(wrong.is_empty(), "{} differences\n{}", wrong.len(), wrong.join("\n"));
}
