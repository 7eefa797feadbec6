//! Every corpus case is compared with its expected result, which follows from the recipe of the
//! case and not from a reader.

mod support;

use rld_format::RldReader;
use rovelog_core::ReadOptions;
use rovelog_testing::check_corpus;
use support::{LOGS, picture};

#[test]
fn every_case_reads_as_expected() {
    check_corpus(&LOGS, |log, _| Ok(picture(&RldReader::new(log.bytes.clone(), &ReadOptions::default())?)));
}
