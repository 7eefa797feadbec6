//! Number of bytes that a log uses for each kind of content: headers, block times and rows.

use rovelog_core::LogReader as _;
use rovelog_core::internal::usage::{Usage, UsageTally};

use crate::diagnostics as rules;
use crate::reader::RldReader;
use crate::wire::BLOCK_TIMES_LEN;

pub(crate) fn usage(log: &RldReader) -> Vec<Usage> {
    let mut tally = UsageTally::default();
    let files = [Some(log), log.ambient()];
    for (log, topic) in files.into_iter().flatten().zip(log.topics()) {
        for part in log.parts() {
            let rows = part.rows.end - part.rows.start;
            tally.add("file header", None, part.header.size().min(part.bytes.len() as u64));
            if let Ok(layout) = log.layout() {
                let blocks = rows.div_ceil(layout.block_rows.max(1));
                tally.add_all("block times", Some(topic.id), blocks, blocks * BLOCK_TIMES_LEN);
                tally.add_all("rows", Some(topic.id), rows, rows * layout.row as u64);
            }
        }
        let behind = log.diagnostics().list().iter().filter(|found| found.rule == &rules::HEADER_BEHIND);
        let behind: u64 = behind.map(|found| found.range.end - found.range.start).sum();
        tally.add_all("rows not counted by the header", None, u64::from(behind > 0), behind);
    }
    tally.finish(log.info().size)
}
