//! Bodies for RLD.

use rovelog::core::RecoverOptions;
use rovelog::rld_format::analysis::StatsOptions;
use rovelog::rld_format::{RldReader, RldStream};
use rovelog::{Bytes, LogReader, LogStream, ReadOptions, Select, State};

use crate::pieces::Pieces;

fn open(data: &[u8]) -> Option<RldReader> {
    RldReader::new(Bytes::copy_from_slice(data), &ReadOptions::default()).ok()
}

/// Reads everything there is to read, and adds up the bytes: header, rows with their stamps, rows that the header does
/// not count, and losses are the file.
pub fn rld_read(data: &[u8]) {
    let Some(log) = open(data) else { return };
    let body = log.layout().map_or(0, |layout| layout.body(log.rows()));
    let behind = log.diagnostics().list().iter().filter(|d| d.rule.name == "header_behind");
    let behind: u64 = behind.map(|d| d.range.end - d.range.start).sum();
    let accounted = u128::from(log.header().len() + behind) + body + u128::from(log.info().lost.bytes);
    assert_eq!(accounted, data.len() as u128, "bytes are not accounted for");
    let mut rows = 0;
    for record in log.records(&Select::all()) {
        let record = record.expect("a sound record");
        record.value().expect("a sound record decodes").to_json();
        rows += 1;
    }
    assert_eq!(rows, log.info().records);
    if let Ok(mut sums) = log.accumulator(&StatsOptions::default()) {
        assert_eq!(sums.stats(0..log.rows()).rows, log.rows());
    }
    let mut again = Vec::new();
    log.write_exact(0, &mut again).expect("memory can be written");
    assert_eq!(again, data, "what was read is written back");
}

/// What is recovered is sound, and holds every row.
pub fn rld_recover(data: &[u8]) {
    let Some(log) = open(data) else { return };
    let mut out = Vec::new();
    let Ok(report) = log.recover(&mut out, &RecoverOptions::default()) else { return };
    assert_eq!(report.kept_bytes + report.lost_bytes(), data.len() as u64);
    let again = open(&out).expect("a recovered log opens");
    assert_eq!(again.info().state, State::Complete);
    assert!(again.rows() >= log.rows());
    assert_eq!(report.lost_bytes(), log.info().lost.bytes, "what is called lost is what recovery leaves out");
}

/// The stream gives what the slice gives, however its input is split.
pub fn rld_stream(data: &[u8]) {
    let stream = RldStream::new(Pieces(data), &ReadOptions::default());
    let (Some(log), Ok(mut stream)) = (open(data), stream) else { return };
    let mut records = log.records_in_file_order();
    while let Some(got) = stream.next_record().expect("memory can be read") {
        let want = records.next().expect("the slice has as many records");
        assert_eq!((got.offset, got.seq), (want.offset, want.seq));
        assert_eq!(got.payload, want.payload);
    }
    assert!(records.next().is_none(), "the slice has more records");
    assert_eq!(stream.diagnostics().list(), log.diagnostics().list());
}
