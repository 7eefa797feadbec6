//! Compares every bag of the corpus with its expected result. The expected result was computed from
//! the recipe that built the bag, not by a reader.

mod support;

use rosbag12::{BagOptions, BagReader};
use rovelog_testing::check_corpus;
use support::{LOGS, picture};

#[test]
fn every_case_reads_as_expected() {
    check_corpus(&LOGS, |log, _| Ok(picture(&BagReader::new(log.bytes.clone(), &BagOptions::default())?)));
}
