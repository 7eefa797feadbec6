//! Every corpus case against its expected result, which comes from the recipe and not from a
//! reader.

mod support;

use rosbag12::{BagOptions, BagReader};
use rovelog_testing::check_corpus;
use support::{LOGS, picture};

#[test]
fn every_case_reads_as_expected() {
    check_corpus(&LOGS, |log, _| Ok(picture(&BagReader::new(log.bytes.clone(), &BagOptions::default())?)));
}
