//! Tests of logs in which bytes are missing or were added. Every undamaged block must be read with
//! its own times, and no row may be invented.

mod support;

use std::collections::HashMap;
use std::io::Cursor;

use rld_format::unit::Unit;
use rld_format::wire::BlockTimes;
use rld_format::{ChannelSpec, LogSpec, RldReader, RldWriter, encode_row};
use rovelog_core::backend::Backend as _;
use rovelog_core::internal::partial::Unread;
use rovelog_core::{Bytes, LogReader, LogStream, ReadOptions, RecoverOptions, Select, Severity, State};
use support::{open, stream};

/// Number of rows in a block.
const ROWS: u64 = 20;

/// Duration of a block of 20 rows at 1 kSPS, in nanoseconds.
const BLOCK: i128 = 20 * 1_003_520;

fn spec() -> LogSpec {
    let channels = ["DI1", "DI2"].map(ChannelSpec::bit).into_iter();
    let analog = ["V1", "V2", "V3"].map(|name| ChannelSpec::analog(name, Unit::Volt, -8));
    LogSpec { block_rows: 20, channels: channels.chain(analog).collect(), ..LogSpec::new(1000) }
}

/// Returns the bytes of row `i`. The bytes of any two rows differ.
fn row(layout: &rld_format::layout::Layout, i: u64) -> Vec<u8> {
    let mut out = Vec::new();
    let value = i64::try_from(i).expect("small");
    let noise = i64::try_from(i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40).expect("24 bits");
    encode_row(
        layout,
        &[u32::try_from(i % 4).expect("small")],
        &[value, 40_000_000 + noise, -noise],
        &mut out,
    )
    .expect("it fits");
    out
}

fn times(block: u64) -> BlockTimes {
    let at = i128::from(block) * BLOCK;
    BlockTimes::new(1_700_000_000_123_456_789 + at, 987_654_321_000 + at).expect("in range")
}

/// Returns a log of `blocks` blocks. The last block has only 7 rows.
fn log(blocks: u64) -> Bytes {
    log_of(blocks, 20)
}

/// Returns a log of `blocks` blocks with `block_rows` rows. The last block has only 7 rows.
fn log_of(blocks: u64, block_rows: u32) -> Bytes {
    let header = LogSpec { block_rows, ..spec() }.header().expect("valid");
    let mut writer = RldWriter::new(Cursor::new(Vec::new()), header).expect("memory");
    let (layout, size) = (writer.layout().clone(), u64::from(block_rows));
    for block in 0..blocks {
        let rows = if block + 1 < blocks { size } else { 7 };
        let rows: Vec<u8> = (block * size..block * size + rows).flat_map(|i| row(&layout, i)).collect();
        writer.block(&times(block * size / ROWS), &rows).expect("memory");
    }
    writer.finish_in_place().expect("memory").0.into_inner().into()
}

/// Number and time of each row of a log, with the bytes of the row as the key.
type RowTimes = HashMap<Vec<u8>, (u64, i64)>;

fn known(log: &RldReader) -> RowTimes {
    let records = log.records_in_file_order();
    records.map(|r| (r.payload.to_vec(), (r.seq, r.time.expect("a time").nanos))).collect()
}

/// Rows that were read from a damaged log.
struct DamagedRows {
    log: RldReader,
    /// Numbers of the rows that are also in the undamaged log.
    rows: Vec<u64>,
    /// Numbers of the rows that are not in the undamaged log.
    invented: Vec<u64>,
}

/// Reads a damaged log with all readers. Their results must be the same.
fn read(bytes: &Bytes, known: &RowTimes, what: &str) -> DamagedRows {
    let log = open(bytes);
    let (mut rows, mut invented) = (Vec::new(), Vec::new());
    for record in log.records_in_file_order() {
        match known.get(&record.payload.to_vec()) {
            Some((number, time)) => {
                // Each row has its original time, regardless of which rows before it were left out.
                let off = record.time.expect("a time").nanos.abs_diff(*time);
                assert!(off < 1000, "{what}: row {number} is off by {off} ns");
                rows.push(*number);
            }
            None => invented.push(record.seq),
        }
    }
    let lost = &log.info().lost;
    // The stream returns the same rows and diagnostics as the reader.
    let mut piped = stream(bytes, &[61]);
    let mut records = log.records_in_file_order();
    while let Some(got) = piped.next_record().expect("readable") {
        let want = records.next().expect("as many rows");
        assert_eq!((got.offset, got.seq, got.payload), (want.offset, want.seq, want.payload), "{what}");
    }
    assert!(records.next().is_none(), "{what}");
    assert_eq!(piped.diagnostics().list(), log.diagnostics().list(), "{what}");
    assert_eq!(piped.info().lost, *lost, "{what}");
    drop(records);
    // Recovery drops the bytes that the reader reported as lost, and writes an undamaged log.
    let mut out = Vec::new();
    let report = log.recover(&mut out, &RecoverOptions::default()).expect("memory");
    assert_eq!((report.records, &report.lost), (log.rows(), &lost.ranges), "{what}");
    // Every byte of the file is part of the header, of a block, or of a lost range.
    assert_eq!(report.kept_bytes + lost.bytes, bytes.len() as u64, "{what}: {:?}", log.diagnostics().list());
    let again = open(&out.into());
    assert_eq!((again.info().state, again.rows()), (State::Complete, log.rows()), "{what}");
    for (a, b) in again.records_in_file_order().zip(log.records_in_file_order()) {
        let off = a.time.expect("a time").nanos.abs_diff(b.time.expect("a time").nanos);
        assert!(a.payload == b.payload && off < 1000, "{what}: row {}", a.seq);
    }
    // If the file is divided into byte ranges, each row is selected by exactly one of these ranges.
    let mut divided = Vec::new();
    for part in 0..7 {
        let mut select = Select::all();
        let end = if part == 6 { u64::MAX } else { (part + 1) * bytes.len() as u64 / 7 };
        select.blocks = Some(part * bytes.len() as u64 / 7..end);
        divided.extend(log.records(&select).map(|record| record.expect("valid").seq));
    }
    divided.sort_unstable();
    assert!(divided.into_iter().eq(0..log.rows()), "{what}");
    DamagedRows { log, rows, invented }
}

/// Returns a log in which the byte at offset `at` is lost, or else doubled.
fn with_byte_changed(log: &[u8], at: usize, lose: bool) -> Bytes {
    let mut bytes = log.to_vec();
    if lose {
        bytes.remove(at);
    } else {
        bytes.insert(at, bytes[at]);
    }
    bytes.into()
}

#[test]
fn a_lost_or_doubled_byte_loses_its_block() {
    let whole = log(6);
    let reader = open(&whole);
    let (known, layout) = (known(&reader), reader.layout().expect("rows"));
    let header = usize::try_from(layout.header).expect("small");
    for at in header..whole.len() {
        for lose in [true, false] {
            let what = format!("byte {at}, lost {lose}");
            let found = read(&with_byte_changed(&whole, at, lose), &known, &what);
            let block = (at as u64 - layout.header) / layout.block;
            // The last block looks like a truncated block, so damage in it is not detected.
            if block == 5 {
                assert!(found.rows.len() >= 80, "{what}");
                continue;
            }
            assert!(found.invented.is_empty(), "{what}: {:?}", found.log.diagnostics().list());
            assert_eq!(found.log.info().state, State::Damaged, "{what}");
            // If the times of a block are damaged, the block before it is lost, too.
            let in_times = (at as u64 - layout.header) % layout.block <= 32;
            let most = if in_times { 2 } else { 1 };
            assert!(found.log.rows() >= 107 - ROWS * most, "{what}: {} rows", found.log.rows());
            let missing = found.log.info().lost.missing_records;
            assert_eq!(missing + found.log.rows(), 107, "{what}");
        }
    }
}

/// In blocks of at least 64 rows, the rows before and after the damage are found by their values.
#[test]
fn a_lost_or_doubled_byte_loses_a_few_rows() {
    let whole = log_of(5, 100);
    let reader = open(&whole);
    let (known, layout) = (known(&reader), reader.layout().expect("rows"));
    let header = usize::try_from(layout.header).expect("small");
    for at in (header..usize::try_from(layout.block_at(4)).expect("small")).step_by(41) {
        for lose in [true, false] {
            let what = format!("byte {at}, lost {lose}");
            let found = read(&with_byte_changed(&whole, at, lose), &known, &what);
            assert!(found.invented.is_empty(), "{what}: {:?}", found.log.diagnostics().list());
            assert!(found.rows.is_sorted() && found.rows.len() >= 407 - 16, "{what}: {}", found.rows.len());
            assert_eq!(found.log.info().lost.missing_records + found.log.rows(), 407, "{what}");
        }
    }
}

#[test]
fn bytes_lost_at_several_offsets_of_a_block_lose_a_few_rows() {
    let whole = log_of(5, 100);
    let reader = open(&whole);
    let (known, layout) = (known(&reader), reader.layout().expect("rows"));
    let mut bytes = whole.to_vec();
    for row in [180, 150, 120] {
        bytes.remove(usize::try_from(layout.row_at(row)).expect("small") + 5);
    }
    let found = read(&bytes.into(), &known, "three bytes");
    assert!(found.invented.is_empty() && found.rows.len() >= 407 - 3 * 8, "{}", found.rows.len());
    let notes: Vec<_> = found.log.diagnostics().list().iter().map(|note| &note.message).collect();
    assert!(notes.len() == 3 && notes.iter().all(|note| note.ends_with("1 byte too short")), "{notes:?}");
}

#[test]
fn lost_and_doubled_pages_lose_the_blocks_they_overlap() {
    const PAGE: usize = 4096;
    let whole = log(200);
    let reader = open(&whole);
    let (known, layout) = (known(&reader), reader.layout().expect("rows").clone());
    let pages = whole.len() / PAGE;
    assert!(pages > 12, "several blocks in a page, several pages");
    let mut random = rovelog_testing::Random(7);
    for round in 0..120 {
        let (page, count) = (1 + random.below(pages - 5), 1 + random.below(3));
        // The removed ranges are pages of the file system, or ranges of any other length.
        let (from, to) = match round % 4 {
            0 => (page * PAGE + random.below(PAGE), page * PAGE + PAGE + random.below(3 * PAGE)),
            _ => (page * PAGE, (page + count) * PAGE),
        };
        let mut bytes = whole[..to].to_vec();
        if round % 2 == 0 {
            bytes.truncate(from);
            bytes.extend_from_slice(&whole[to..]);
        } else {
            bytes.extend_from_slice(&whole[from..]);
        }
        let what = format!("{from}..{to}, {}", if round % 2 == 0 { "lost" } else { "doubled" });
        let found = read(&bytes.into(), &known, &what);
        assert!(found.invented.is_empty(), "{what}: {:?}", found.log.diagnostics().list());
        // The damaged blocks are lost. The block before them is also lost, because its length is
        // unknown.
        let touched = (to - from) as u64 / layout.block + 3;
        assert!(found.log.rows() >= reader.rows() - touched * ROWS, "{what}: {} rows", found.log.rows());
        assert!(found.rows.is_sorted(), "{what}: copies are left out");
    }
}

#[test]
fn line_feed_conversion_invents_no_rows() {
    let whole = log(60);
    let reader = open(&whole);
    let known = known(&reader);
    let header = usize::try_from(reader.layout().expect("rows").header).expect("small");
    let feeds = |byte: &u8| if *byte == b'\n' { vec![b'\r', b'\n'] } else { vec![*byte] };
    let mut bytes = whole[..header].to_vec();
    bytes.extend(whole[header..].iter().flat_map(feeds));
    assert!(bytes.len() > whole.len() + 20, "{} line feeds", bytes.len() - whole.len());
    let found = read(&bytes.into(), &known, "text");
    assert!(found.invented.is_empty(), "{:?}", found.log.diagnostics().list());
    // Blocks that contain no line feed are intact and must be found.
    assert!(!found.rows.is_empty());
}

/// Overwritten bytes do not change the offsets of blocks. So no more rows are lost than those that
/// were overwritten.
#[test]
fn overwritten_bytes_move_no_block() {
    let whole = log(40);
    let known = known(&open(&whole));
    let mut random = rovelog_testing::Random(3);
    for round in 0..200 {
        let from = 200 + random.below(whole.len() - 200);
        let to = (from + 1 + random.below([40, 600, 5000][round % 3])).min(whole.len());
        let mut bytes = whole.to_vec();
        match round % 4 {
            0 | 1 => bytes[from..to].fill(0),
            2 => bytes[from..to].iter_mut().for_each(|byte| *byte ^= 0xA5),
            _ => bytes[from..to].iter_mut().for_each(|byte| *byte = random.below(256).to_le_bytes()[0]),
        }
        let log = open(&bytes.into());
        assert_eq!((log.rows(), log.info().lost.losses), (39 * ROWS + 7, 0), "{from}..{to}");
        let same = log.records_in_file_order().filter(|record| known.contains_key(&record.payload.to_vec()));
        let row = log.layout().expect("rows").row;
        assert!(same.count() as u64 + ((to - from) / row) as u64 + 2 >= log.rows(), "{from}..{to}");
    }
}

/// A sector of zeros contains no valid block times. So the times of its rows are counted from other
/// blocks.
#[test]
fn zeros_are_not_block_times() {
    let whole = log(40);
    let reader = open(&whole);
    let (known, layout) = (known(&reader), reader.layout().expect("rows"));
    for block in [0, 1, 17, 39] {
        let at = usize::try_from(layout.block_at(block)).expect("small");
        let mut bytes = whole.to_vec();
        bytes[at..at + 32].fill(0);
        let found = read(&bytes.into(), &known, &format!("block {block}"));
        assert_eq!(
            (found.rows.len() as u64, found.log.info().lost.losses),
            (39 * ROWS + 7, 0),
            "block {block}"
        );
        let notes: Vec<_> = found.log.diagnostics().list().iter().map(|note| note.rule.name).collect();
        assert_eq!(notes, ["stamps_implausible"], "block {block}");
    }
}

/// Rows of zeros are not taken for block times, so the next block is found.
#[test]
fn bytes_lost_among_rows_of_zeros_lose_a_few_rows() {
    let channels = ["DI1", "DI2"].map(ChannelSpec::bit).into_iter().collect();
    let spec = LogSpec { block_rows: 400, channels, ..LogSpec::new(1000) };
    let mut writer = RldWriter::new(Cursor::new(Vec::new()), spec.header().expect("valid")).expect("memory");
    let rows = vec![0; 400 * writer.layout().row];
    for block in 0..20 {
        writer.block(&times(20 * block), &rows).expect("memory");
    }
    let whole = writer.finish_in_place().expect("memory").0.into_inner();
    let layout = open(&whole.clone().into()).layout().expect("rows").clone();
    for (block, missing) in [(5, 1), (5, 512), (11, 100), (18, 1599)] {
        let at = usize::try_from(layout.block_at(block)).expect("small") + 32;
        let mut bytes = whole.clone();
        bytes.drain(at..at + missing);
        let log = open(&bytes.into());
        let found: Vec<_> = log.diagnostics().list().iter().map(|note| &note.message).collect();
        // All rows are equal, so their bytes do not show which rows are missing.
        let (rows, kept) = (log.rows() - 19 * 400, (1600 - missing as u64) / 4);
        assert!(
            rows + missing as u64 / 2 + 16 >= kept && rows <= kept,
            "{missing} bytes of block {block}: {rows} rows, {found:?}"
        );
    }
}

/// If no block times follow, nothing in the file shows at which offsets rows start. So no block is
/// left out.
#[test]
fn without_block_times_nothing_is_left_out() {
    let whole = log(6);
    let layout = open(&whole).layout().expect("rows").clone();
    let mut bytes = whole.to_vec();
    for block in 2..6 {
        let at = usize::try_from(layout.block_at(block)).expect("small");
        bytes[at..at + 32].fill(0);
    }
    bytes.remove(usize::try_from(layout.row_at(30)).expect("small"));
    let log = open(&bytes.into());
    assert_eq!(log.rows(), 106, "a row is cut");
    let lost = log.diagnostics().list().iter().filter(|found| found.rule.severity == Severity::DataLost);
    assert!(lost.map(|found| found.rule.name).eq(["cut"]));
}

#[test]
fn a_shift_affects_only_its_part_of_a_split_log() {
    let header = spec().header().expect("valid");
    let layout = RldWriter::new(Vec::new(), header.clone()).expect("memory").layout().clone();
    let parts = |damage: bool| {
        let part = |part: u64| {
            let mut header = header.clone();
            rld_format::set_counts(&mut header, 4 * ROWS).expect("counts");
            let mut writer = RldWriter::new(Vec::new(), header).expect("memory");
            for block in part * 4..part * 4 + 4 {
                let rows: Vec<u8> =
                    (block * ROWS..(block + 1) * ROWS).flat_map(|i| row(&layout, i)).collect();
                writer.block(&times(block), &rows).expect("memory");
            }
            let mut bytes = writer.finish().expect("memory").0;
            if part == 1 && damage {
                bytes.drain(700..712);
            }
            Bytes::from(bytes)
        };
        RldReader::join((0..3).map(part).collect(), &ReadOptions::default()).expect("parts of one log")
    };
    let (whole, log) = (parts(false), parts(true));
    assert_eq!((whole.rows(), log.rows(), log.parts().count()), (12 * ROWS, 11 * ROWS, 3));
    let ranges: Vec<_> = log.parts().map(|part| part.rows.clone()).collect();
    assert_eq!(ranges, [0..80, 80..140, 140..220]);
    let known = known(&whole);
    for record in log.records_in_file_order() {
        let (_, time) = known[&record.payload.to_vec()];
        assert!(record.time.expect("a time").nanos.abs_diff(time) < 1000, "row {}", record.seq);
    }
    let lost = &log.info().lost;
    assert_eq!((lost.losses, lost.bytes, lost.missing_records), (1, layout.block - 12, ROWS));
    let found = &log.diagnostics().list()[0];
    assert!(
        found.rule.name == "block_length"
            && found.message.starts_with("part 1: ")
            && found.message.ends_with("12 bytes too short")
    );
    let mut out = Vec::new();
    log.recover(&mut out, &RecoverOptions::default()).expect("memory");
    assert_eq!(open(&out.into()).rows(), 11 * ROWS);
}

#[test]
fn uncounted_blocks_are_found_after_a_shift() {
    let whole = log(6);
    let layout = open(&whole).layout().expect("rows").clone();
    let mut bytes = whole.to_vec();
    // The header counts only four of the six blocks.
    bytes[12..16].copy_from_slice(&4_u32.to_le_bytes());
    bytes[16..24].copy_from_slice(&(4 * ROWS).to_le_bytes());
    bytes.remove(usize::try_from(layout.row_at(25)).expect("small"));
    let log = open(&bytes.clone().into());
    let found: Vec<_> = log.diagnostics().list().iter().map(|found| found.rule.name).collect();
    assert_eq!(found, ["block_length", "header_behind"]);
    let lost = &log.info().lost;
    assert_eq!((log.rows(), lost.missing_records, lost.left_out_records), (60, ROWS, 27));
    let mut out = Vec::new();
    let report = log.recover(&mut out, &RecoverOptions::default()).expect("memory");
    assert_eq!((report.records, report.lost_bytes()), (87, layout.block - 1));
    let mut piped = stream(&bytes, &[100]);
    while piped.next_record().expect("readable").is_some() {}
    assert_eq!(piped.diagnostics().list(), log.diagnostics().list());
}

#[test]
fn partially_fetched_damaged_logs_request_the_whole_file() {
    let whole = log(60);
    let layout = open(&whole).layout().expect("rows").clone();
    let last = layout.block_at(59);
    let read = [0..layout.block_at(1), last..last + 32];
    let opened = |bytes: &[u8]| {
        let mut options = ReadOptions::default();
        options.unread = Unread::behind(bytes.len() as u64, &read);
        RldReader::new(Bytes::copy_from_slice(bytes), &options).expect("a log")
    };
    assert!(opened(&whole).needed(&Select::all()).is_some());
    let mut bytes = whole.to_vec();
    bytes.remove(5000);
    assert!(opened(&bytes).needed(&Select::all()).is_none(), "only all block times tell where rows are");
}
