//! Small logs are truncated at every length and damaged at every byte, and large logs at some bytes.
//! No function may panic, nothing before the damage may be lost, and every byte must be accounted for.

mod support;

use rld_format::RldReader;
use rovelog_core::{Bytes, LogReader, LogStream, Select};
use rovelog_testing::bit_flips;
use support::{LOGS, open, try_open};

/// Opens a damaged log. Every byte must be accounted for, and every record must be decodable.
fn reopen(bytes: &Bytes, what: &str) -> Option<RldReader> {
    let log = try_open(bytes)?;
    let mut used = log.header().size();
    if let Ok(layout) = log.layout() {
        used += u64::try_from(layout.body(log.rows())).expect("within the file");
    }
    // Rows that the header does not count are not reported as lost, because recovery keeps them.
    let behind = log.diagnostics().list().iter().filter(|d| d.rule.name == "header_behind");
    used += behind.map(|d| d.range.end - d.range.start).sum::<u64>();
    assert_eq!(used + log.info().lost.bytes, bytes.len() as u64, "{what}: bytes are not accounted for");
    for record in log.records_in_file_order() {
        assert!(record.value().is_ok(), "{what}: a record does not decode");
    }
    assert_eq!(log.records(&Select::all()).count() as u64, log.info().records, "{what}");
    Some(log)
}

/// Returns the number of complete rows in the first `len` bytes of a log.
fn whole_rows(log: &RldReader, len: usize) -> u64 {
    let layout = log.layout().expect("rows");
    let rows = layout.rows_in((len as u64).saturating_sub(layout.header));
    rows.min(log.rows())
}

#[test]
fn a_log_cut_anywhere_is_read_up_to_the_cut() {
    let mut tried = 0;
    for log in LOGS.corpus() {
        let Some(whole) = try_open(&log.bytes) else { continue };
        let intact = whole.info().lost.losses == 0 && whole.diagnostics().list().is_empty();
        for len in 0..log.bytes.len() {
            let what = format!("{} cut at {len}", log.name);
            let cut = log.bytes.slice(..len);
            let Some(reader) = reopen(&cut, &what) else {
                assert!((len as u64) < whole.header().size() + 4, "{what} does not open");
                continue;
            };
            let mut stream = support::stream(&cut, &[64]);
            let mut rows = 0;
            while stream.next_record().expect("readable").is_some() {
                rows += 1;
            }
            assert_eq!(rows, reader.rows(), "{what}: the stream");
            if intact {
                assert_eq!(reader.rows(), whole_rows(&whole, len), "{what}");
                for row in 0..reader.rows() {
                    let (a, b) = (reader.row(row).expect("a row"), whole.row(row).expect("a row"));
                    assert_eq!(a.bytes(), b.bytes(), "{what}");
                }
            }
            tried += 1;
        }
    }
    assert!(tried > 10_000, "only {tried} cuts were tried");
}

#[test]
fn flipped_bytes_cause_no_panic() {
    let mut tried = 0;
    for log in LOGS.corpus() {
        let step = if log.bytes.len() > 2000 { 7 } else { 1 };
        for (at, mask, bytes) in bit_flips(&log.bytes, (0..log.bytes.len()).step_by(step)) {
            reopen(&bytes, &format!("{} byte {at} ^ {mask:#x}", log.name));
            tried += 1;
        }
    }
    assert!(tried > 40_000, "only {tried} flips were tried");
}

/// Real logs are truncated at every byte of the header, at bytes around every block and its times,
/// and at some bytes between them.
#[test]
fn real_logs_are_read_up_to_a_cut_anywhere() {
    for log in LOGS.real() {
        let whole = open(&log.bytes);
        let layout = whole.layout().expect("rows").clone();
        let len = log.bytes.len() as u64;
        let mut cuts: Vec<u64> = (0..layout.header + 40).collect();
        for block in 0..layout.blocks(whole.rows()) {
            let at = layout.block_at(block);
            cuts.extend([
                at.saturating_sub(1),
                at,
                at + 1,
                at + 16,
                at + 31,
                at + 32,
                at + 33,
                at + 32 + layout.row as u64,
            ]);
        }
        cuts.extend((1..60).map(|i| len * i / 60 + i));
        for cut in cuts.into_iter().filter(|cut| *cut < len) {
            let cut = usize::try_from(cut).expect("in memory");
            match try_open(&log.bytes.slice(..cut)) {
                Some(reader) => {
                    assert_eq!(reader.rows(), whole_rows(&whole, cut), "{} cut at {cut}", log.name);
                    let used = u64::try_from(layout.body(reader.rows())).expect("within the file");
                    assert_eq!(layout.header + used + reader.info().lost.bytes, cut as u64, "{}", log.name);
                }
                None => assert!((cut as u64) < layout.header, "{} cut at {cut} does not open", log.name),
            }
        }
    }
}
