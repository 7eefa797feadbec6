//! Tests of logs that consist of several files, and of logs of which only some byte ranges were
//! fetched.

mod support;

use rld_format::layout::Layout;
use rld_format::unit::Unit;
use rld_format::wire::{BlockTimes, Header};
use rld_format::{ChannelSpec, Format as _, LogSpec, Rld, RldError, RldReader, encode_row, set_counts};
use rovelog_core::backend::Backend as _;
use rovelog_core::internal::partial::Unread;
use rovelog_core::internal::text::count;
use rovelog_core::internal::wire::{I64Le, U16Le, U32Le};
use rovelog_core::{Align, Bytes, LogReader, ReadOptions, RecoverOptions, Select, Value};
use support::open;
use zerocopy::IntoBytes as _;

/// Number of rows in a block.
const ROWS: u64 = 20;

/// Duration of a block of 20 rows at 1 kSPS, in nanoseconds.
const BLOCK: i128 = 20 * 1_003_520;

const START: i128 = 1_700_000_000_000_000_000;

fn header() -> Header {
    let channels = vec![ChannelSpec::bit("DI1"), ChannelSpec::analog("V1", Unit::Volt, -8)];
    let mut header = LogSpec { block_rows: 20, channels, ..LogSpec::new(1000) }.header().expect("valid");
    set_counts(&mut header, 4 * ROWS).expect("counts");
    header
}

fn layout() -> Layout {
    Layout::of(&header(), header().size(), false).expect("rows")
}

/// Returns four consecutive blocks of a log. `first` is the number of the first of these blocks.
fn blocks(first: u64) -> Vec<u8> {
    let mut out = Vec::new();
    for block in first..first + 4 {
        let after = i128::from(block) * BLOCK;
        out.extend_from_slice(BlockTimes::new(START + after, 987_000 + after).expect("in range").as_bytes());
        for row in block * ROWS..(block + 1) * ROWS {
            encode_row(&layout(), &[1], &[row.cast_signed()], &mut out).expect("it fits");
        }
    }
    out
}

fn file(header: &Header, first: u64) -> Vec<u8> {
    [header.to_bytes(), blocks(first)].concat()
}

fn join(files: &[Vec<u8>], options: &ReadOptions) -> Result<RldReader, RldError> {
    RldReader::join(files.iter().map(|bytes| Bytes::copy_from_slice(bytes)).collect(), options)
}

/// Returns the values of channel 1 in all rows.
fn values(log: &RldReader) -> Vec<i64> {
    (0..log.rows()).map(|row| log.row(row).and_then(|row| row.raw(1)).expect("a value")).collect()
}

fn notes(log: &RldReader) -> Vec<(&'static str, std::ops::Range<u64>, String)> {
    let list = log.diagnostics().list().iter();
    list.map(|note| (note.rule.name, note.range.clone(), note.message.clone())).collect()
}

#[test]
fn a_part_of_another_recording_is_refused_with_the_difference() {
    type Change = fn(&mut Header);
    let changes: [(&str, Change); 12] = [
        ("its file version differs", |h| h.lead_in.file_version = U16Le::new(3)),
        ("its block size differs", |h| h.lead_in.data_block_size = U32Le::new(10)),
        ("its sample rate differs", |h| h.lead_in.sample_rate = U16Le::new(2000)),
        ("its MAC address differs", |h| h.lead_in.mac[5] = 1),
        ("its start time differs", |h| h.lead_in.start_sec = I64Le::new(1)),
        ("its start time differs", |h| h.lead_in.start_nsec = I64Le::new(1)),
        ("the length of its comment differs", |h| h.lead_in.comment_length = U32Le::new(8)),
        ("its number of channels differs", |h| h.lead_in.binary_count = U16Le::new(2)),
        ("its number of channels differs", |h| h.lead_in.analog_count = U16Le::new(2)),
        ("the length of its header differs", |h| h.lead_in.header_length = U16Le::new(4)),
        ("its channels differ", |h| h.channels[1].name[1] = b'2'),
        ("it cannot be opened", |h| h.lead_in.magic = *b"BLR%"),
    ];
    for (want, change) in changes {
        let mut other = header();
        change(&mut other);
        let files = [file(&header(), 0), file(&header(), 4), file(&other, 8)];
        match join(&files, &ReadOptions::default()) {
            Err(RldError::NotAPart { part, why }) => assert_eq!((part, why), (2, want)),
            joined => panic!("{want}: {:?}", joined.map(|log| log.rows())),
        }
        assert_eq!(join(&files[..2], &ReadOptions::default()).expect("parts").rows(), 8 * ROWS);
    }
}

#[test]
fn diagnostics_state_the_part_and_its_byte_range() {
    let mut damaged = header();
    damaged.channels[1].name[0] = 1;
    let gap = [damaged.to_bytes(), blocks(9)].concat();
    let first = file(&header(), 0);
    let base = first.len() as u64;
    let log = join(&[first, gap, file(&header(), 15)], &ReadOptions::default()).expect("parts");
    assert_eq!((log.rows(), log.info().size), (12 * ROWS, 3 * base));
    assert_eq!(values(&log), (0..80).chain(180..260).chain(300..380).collect::<Vec<i64>>());
    let note = |part: u64, row, blocks| {
        let at = part * base + header().size();
        let missing = i128::from(blocks) * BLOCK;
        let text = format!(
            "part {part}: {missing} ns of data are missing before row {row} (about {blocks} blocks), because \
             the logger lost them"
        );
        ("gap", at..at + 32, text)
    };
    let start = base + header().size();
    let table = (
        "table_from_first",
        start - 56..start,
        "part 1: the channel table of this part is invalid, so the table of the first part is used"
            .to_owned(),
    );
    assert_eq!(notes(&log), [table, note(1, 80, 5), note(2, 160, 2)]);
    // The summary has the total number of gaps and their total duration.
    let missing = Value::Int(i64::try_from(7 * BLOCK).expect("small"), 64);
    let gaps = Value::record([("count", Value::count(2)), ("missing_ns", missing)]);
    assert!(log.info().details.iter().any(|detail| detail.key == "gaps" && detail.value == gaps));
    let topic = &log.topics()[0];
    assert_eq!((topic.count, topic.bytes, topic.timed), (12 * ROWS, 12 * ROWS * 8, 12 * ROWS));
}

/// Bits that belong to no channel occur in the first or in the second file.
#[test]
fn row_diagnostics_have_offsets_in_the_concatenated_files() {
    for part in [0, 1] {
        let mut files = [file(&header(), 0), file(&header(), 4)];
        let row = usize::try_from(layout().row_at(45)).expect("small");
        files[part][row] |= 4;
        let at = (row + part * files[0].len()) as u64;
        let log = join(&files, &ReadOptions::default()).expect("parts");
        let found = notes(&log);
        let number = 45 + 80 * part;
        let prefix = if part == 0 { String::new() } else { "part 1: ".to_owned() };
        assert!(found[0].2.starts_with(&format!("{prefix}row {number} has bits")), "{found:?}");
        assert_eq!((found.len(), found[0].0, found[0].1.clone()), (1, "dirty_bits", at..at + 4));
    }
}

#[test]
fn blocks_that_no_header_counts_are_recovered_from_every_part() {
    let mut behind = header();
    set_counts(&mut behind, 2 * ROWS).expect("counts");
    let files = [file(&behind, 0), file(&header(), 4), file(&behind, 8)];
    let log = join(&files, &ReadOptions::default()).expect("parts");
    assert_eq!((log.rows(), log.info().lost.left_out_records), (8 * ROWS, 4 * ROWS));
    let mut out = Vec::new();
    let report = log.recover(&mut out, &RecoverOptions::default()).expect("memory");
    assert_eq!((report.records, report.lost_bytes()), (12 * ROWS, 0));
    assert_eq!(values(&open(&out.into())), (0..240).collect::<Vec<i64>>());
}

/// The first file decides whether rows have an extra word, because a truncated later part may be
/// too short to decide.
#[test]
fn a_cut_part_has_the_layout_of_the_first_file() {
    let channels = vec![ChannelSpec::analog("V1", Unit::Volt, -8)];
    let mut header = LogSpec { block_rows: 20, channels, ..LogSpec::new(1000) }.header().expect("valid");
    set_counts(&mut header, 10 * ROWS).expect("counts");
    let layout = Layout::of(&header, header.size(), true).expect("rows");
    let mut first = header.to_bytes();
    for block in 0..10 {
        let after = i128::from(block) * BLOCK;
        first
            .extend_from_slice(BlockTimes::new(START + after, 987_000 + after).expect("in range").as_bytes());
        for row in block * ROWS..(block + 1) * ROWS {
            encode_row(&layout, &[0], &[row.cast_signed()], &mut first).expect("it fits");
        }
    }
    let cut = usize::try_from(layout.block_at(1)).expect("small") - 1;
    let log = join(&[first.clone(), first[..cut].to_vec()], &ReadOptions::default()).expect("parts");
    let read = |row| log.row(row).and_then(|row| row.raw(0)).expect("a value");
    let found: Vec<_> = (0..log.rows()).map(read).collect();
    assert_eq!(found, (0..200).chain(0..19).collect::<Vec<i64>>());
    let lost = log.info().lost.ranges.iter().map(|range| range.end - range.start).sum::<u64>();
    assert_eq!(lost, layout.row as u64 - 1);
}

/// `recover` reports which parts of a log it could not keep.
#[test]
fn recovery_of_parts_reports_what_it_left_out_and_repaired() {
    let mut behind = header();
    set_counts(&mut behind, 2 * ROWS).expect("counts");
    let mut files = [file(&behind, 0), file(&header(), 4), file(&header(), 8)];
    // A byte is missing in the second block of the second file, and the third file ends with noise.
    files[1].remove(usize::try_from(layout().row_at(25)).expect("small"));
    files[2].extend([7; 5]);
    let log = join(&files, &ReadOptions::default()).expect("parts");
    let report = log.recover(&mut Vec::new(), &RecoverOptions::default()).expect("memory");
    let lost = &log.info().lost;
    assert_eq!((report.lost, report.missing_records), (lost.ranges.clone(), ROWS));
    assert_eq!((lost.ranges.len(), report.records), (2, 11 * ROWS));
    let repaired = Value::List(vec![Value::Text("header_behind".to_owned())]);
    assert_eq!((report.details[0].key, &report.details[0].value), ("repaired", &repaired));
}

/// When parts are merged into one file, all rows are kept except those of a short block before a
/// gap.
#[test]
fn merged_parts_report_the_rows_that_do_not_fit() {
    // If less than half a block is missing, there is no gap, and rows only move to other blocks.
    for (rows, short) in [(47, 7), (61, 1), (73, 0)] {
        let mut files = [file(&header(), 0), file(&header(), 4), file(&header(), 8)];
        files[0].truncate(usize::try_from(layout().row_at(rows)).expect("small") + 3);
        files[2].truncate(files[2].len() - 5);
        let log = join(&files, &ReadOptions::default()).expect("parts");
        let mut out = Vec::new();
        let report = log.recover(&mut out, &RecoverOptions::default()).expect("memory");
        let one = open(&out.into());
        assert_eq!(one.info().state, rovelog_core::State::Complete);
        let blocks = log.info().details.iter().find(|detail| detail.key == "blocks").expect("blocks");
        assert_eq!(blocks.text, Some(format!("{} of at most 20, last 19", rows.div_ceil(ROWS) + 8)));
        assert_eq!(
            (one.rows(), report.records, report.lost.len()),
            (log.rows() - short, one.rows(), 2),
            "{rows}"
        );
        let merged = Rld::merge(&[&log], rovelog_core::Align::AsIs, &mut Vec::new()).expect("memory");
        assert_eq!((merged.records, &merged.left_out), (report.records, &report.left_out), "{rows}");
        let says = "of a short block before a gap, because only the last block of a file can be short";
        let left_out = if short == 0 {
            vec![]
        } else {
            vec![format!("{} {says}", count(usize::try_from(short).expect("small"), "row"))]
        };
        assert_eq!(report.left_out, left_out, "{rows}");
        let mut want = values(&log);
        let first = usize::try_from(rows / ROWS * ROWS).expect("small");
        want.drain(first..first + usize::try_from(short).expect("small"));
        assert_eq!(values(&one), want, "{rows}");
    }
}

#[test]
fn recovery_reports_the_ambient_file_as_left_out() {
    let mut damaged = file(&header(), 0);
    damaged.remove(usize::try_from(layout().row_at(25)).expect("small"));
    let mut cut = ambient(0);
    cut.truncate(cut.len() - 1);
    for (first, records, missing) in [(file(&header(), 0), 80, 0), (damaged, 60, ROWS)] {
        let log = join(&[first], &ReadOptions::default()).expect("a log");
        let log = log.with_ambient(open(&cut.clone().into()));
        let report = log.recover(&mut Vec::new(), &RecoverOptions::default()).expect("memory");
        assert_eq!((report.records, report.missing_records), (records, missing));
        assert_eq!(report.left_out, ["1 row of the ambient file, because it is a separate log"]);
    }
}

fn ambient(first: u64) -> Vec<u8> {
    let channels = ["TSL4531_AMBIENT", "BME280_temp"];
    let channels = channels.map(|name| ChannelSpec::analog(name, Unit::Unitless, 0)).to_vec();
    let mut header = LogSpec { block_rows: 1, channels, ..LogSpec::new(1) }.header().expect("valid");
    set_counts(&mut header, 2).expect("counts");
    let mut out = header.to_bytes();
    for row in first..first + 2 {
        let after = i128::from(row) * 1_003_520_000;
        out.extend_from_slice(BlockTimes::new(START + after, 987_000 + after).expect("in range").as_bytes());
        out.extend([u32::try_from(row).expect("small"), 7].iter().flat_map(|value| value.to_le_bytes()));
    }
    out
}

#[test]
fn companions_are_parts_ambient_files_or_left_out() {
    let opened = |first: Vec<u8>, others: Vec<(&str, Vec<u8>)>| {
        let others = others.into_iter().map(|(name, bytes)| (name.to_owned(), bytes.into())).collect();
        let log = Rld::open_with(first.into(), others, &ReadOptions::default()).expect("a log");
        let counts: Vec<_> = log.topics().iter().map(|topic| topic.count).collect();
        (counts, notes(&log).into_iter().map(|note| note.2).collect::<Vec<_>>())
    };
    let first = || file(&header(), 0);
    let none: [String; 0] = [];
    let (counts, left_out) = opened(first(), vec![("x_p1.rld", file(&header(), 4))]);
    assert_eq!((counts, &left_out[..]), (vec![160], &none[..]));
    let parts = vec![
        ("x_p1.rld", file(&header(), 4)),
        ("x-ambient.rld", ambient(0)),
        ("x-ambient_p1.rld", ambient(2)),
    ];
    assert_eq!(opened(first(), parts), (vec![160, 4], none.to_vec()));
    // The name of the log itself may end with `-ambient`.
    let parts = vec![
        ("x-ambient_p1.rld", file(&header(), 4)),
        ("x-ambient-ambient.rld", ambient(0)),
        ("x-ambient-ambient_p1.rld", ambient(2)),
    ];
    assert_eq!(opened(first(), parts), (vec![160, 4], none.to_vec()));
    // If an ambient file is opened directly, its own parts are opened with it.
    assert_eq!(opened(ambient(0), vec![("x-ambient_p1.rld", ambient(2))]), (vec![4], none.to_vec()));
    // Files that have the name of an ambient file but are no ambient files are left out.
    let (counts, left_out) = opened(first(), vec![("x-ambient.rld", file(&header(), 4))]);
    assert_eq!(
        (counts, left_out),
        (
            vec![80],
            vec![
                "file x-ambient.rld is not read, because it does not belong to this log: its channels are \
                 not those of sensors"
                    .to_owned()
            ]
        )
    );
    let (counts, left_out) = opened(first(), vec![("x-ambient.rld", b"none".to_vec())]);
    assert_eq!((counts, left_out.len()), (vec![80], 1));
    let mut other = header();
    other.lead_in.sample_rate = U16Le::new(2000);
    let parts = ["x_p1.rld", "x_p2.rld", "x_p3.rld"];
    let parts: Vec<_> =
        parts.iter().zip([&header(), &other, &header()]).map(|(name, of)| (*name, file(of, 4))).collect();
    let (counts, left_out) = opened(first(), parts);
    let why = "file x_p2.rld is not read, because it does not belong to this log: its sample rate differs, \
               so all later parts are not read either"
        .to_owned();
    assert_eq!((counts, left_out), (vec![160], vec![why]));
}

/// Opens a log of two files. The byte ranges `unread` of the first file have not been fetched and
/// contain noise.
fn open_partially(unread: &[(u64, u64)], change: impl Fn(&mut [Vec<u8>; 2])) -> RldReader {
    let mut files = [file(&header(), 0), file(&header(), 4)];
    let (mut read, mut at) = (Vec::new(), 0);
    for (start, end) in unread {
        read.push(at..*start);
        at = *end;
        files[0][usize::try_from(*start).expect("small")..usize::try_from(*end).expect("small")].fill(0xA5);
    }
    let mut options = ReadOptions::default();
    let len = files[0].len() as u64;
    read.push(at..len);
    options.unread = Unread::behind(len, &read);
    change(&mut files);
    join(&files, &options).expect("parts")
}

#[test]
fn missing_block_times_are_counted_from_earlier_blocks() {
    let whole = open_partially(&[], |_| {});
    let at = layout().block_at(2);
    // If a single byte of a block's times has not been fetched, the times are not read.
    for unread in [(at, at + 32), (at, at + 1), (at + 31, at + 32)] {
        let log = open_partially(&[unread], |_| {});
        assert_eq!((log.rows(), notes(&log)), (160, Vec::new()), "{unread:?}");
        for (a, b) in log.records_in_file_order().zip(whole.records_in_file_order()) {
            assert_eq!(a.time, b.time, "{unread:?}: row {}", a.seq);
        }
    }
    // If bytes directly before or after the times have not been fetched, the times are read.
    for unread in [(at - 1, at), (at + 32, at + 33)] {
        let log = open_partially(&[unread], |files| {
            files[0][usize::try_from(at).expect("small")..][..32].fill(0x7F);
        });
        assert_eq!(notes(&log).iter().map(|note| note.0).collect::<Vec<_>>(), ["stamps_implausible"]);
    }
    // The second file was fetched completely, so noise at the same offset is damage.
    let log = open_partially(&[(at, at + 32)], |files| {
        files[1][usize::try_from(at).expect("small")..][..32].fill(0x7F);
    });
    assert_eq!(notes(&log).iter().map(|note| note.0).collect::<Vec<_>>(), ["stamps_implausible"]);
}

#[test]
fn rows_that_were_not_fetched_are_not_checked() {
    let at = |row| layout().row_at(row);
    let dirty = |row: u64, part: usize| {
        let byte = usize::try_from(at(row)).expect("small");
        // The last byte of row 5 has not been fetched.
        let log = open_partially(&[(at(5) + 7, at(5) + 8)], |files| files[part][byte] |= 4);
        notes(&log).len()
    };
    assert_eq!((dirty(4, 0), dirty(5, 0), dirty(5, 1)), (1, 0, 1));
    assert_eq!(dirty(25, 0), 1, "the next block");
}

/// Missing bytes can be detected only if the times of all blocks have been fetched.
#[test]
fn missing_bytes_are_found_in_completely_fetched_files() {
    let byte = usize::try_from(layout().row_at(25)).expect("small");
    let remove = |part: usize| {
        move |files: &mut [Vec<u8>; 2]| {
            files[part].remove(byte);
        }
    };
    let at = layout().block_at(3) + 40;
    let second = open_partially(&[(at, at + 8)], remove(1));
    assert_eq!((second.rows(), notes(&second)[0].0), (140, "block_length"));
    assert!(second.needed(&Select::all()).is_some());
    let first = open_partially(&[(at, at + 8)], remove(0));
    assert_eq!(first.rows(), 159);
    assert!(first.needed(&Select::all()).is_none(), "it must be read whole");
}

/// Returns a recording of four blocks that starts `after` nanoseconds after [`START`]. Its monotonic
/// clock starts again at 987 µs.
fn session(after: i128, comment: &str) -> Vec<u8> {
    let channels = vec![ChannelSpec::bit("DI1"), ChannelSpec::analog("V1", Unit::Volt, -8)];
    let start = START + after;
    let nanos = i64::try_from(start).expect("in range");
    let spec =
        LogSpec { block_rows: 20, channels, comment: comment.to_owned(), start: nanos, ..LogSpec::new(1000) };
    let mut header = spec.header().expect("valid");
    set_counts(&mut header, 4 * ROWS).expect("counts");
    let mut out = header.to_bytes();
    for block in 0..4 {
        let elapsed = i128::from(block) * BLOCK;
        out.extend_from_slice(BlockTimes::new(start + elapsed, 987_000 + elapsed).expect("times").as_bytes());
        for row in block * ROWS..(block + 1) * ROWS {
            encode_row(&layout(), &[1], &[row.cast_signed()], &mut out).expect("it fits");
        }
    }
    out
}

#[test]
fn recordings_of_one_logger_are_merged_with_a_gap() {
    let merged = |files: &[&[u8]]| {
        let logs: Vec<_> = files.iter().map(|bytes| open(&bytes.to_vec().into())).collect();
        let mut out = Vec::new();
        Rld::merge(&logs.iter().collect::<Vec<_>>(), Align::Shared, &mut out).map(|report| (report, out))
    };
    let (hour, month) = (3_600_000_000_000, 40 * 86_400_000_000_000);
    for after in [hour, month] {
        // The order of the arguments does not matter.
        let (report, bytes) = merged(&[&session(after, "second"), &session(0, "first")]).expect("merged");
        assert_eq!((report.records, report.left_out.len()), (8 * ROWS, 1));
        assert!(report.left_out[0].starts_with("1 comment of later recordings"), "{:?}", report.left_out);
        let log = open(&bytes.into());
        assert_eq!(values(&log), (0..80).chain(0..80).collect::<Vec<i64>>());
        let [gap] = &log.clock_report().gaps[..] else { panic!("{:?}", log.clock_report()) };
        assert_eq!((gap.row, i128::from(gap.nanos)), (4 * ROWS, after - 4 * BLOCK));
        let first = |row| log.record_times().timestamp(row).map(|time| i128::from(time.nanos));
        let apart = first(4 * ROWS).zip(first(0)).map(|(second, first)| second - first);
        assert!(apart.is_some_and(|apart| (apart - after).abs() < 1_000_000), "{apart:?}");
        assert_eq!(log.rows_topic().timed, 8 * ROWS);
    }
    let error = merged(&[&session(0, ""), &session(3 * BLOCK, "")]).expect_err("they overlap");
    assert_eq!(error.to_string(), "the recordings overlap in time, so they cannot be one log");
    let mut other = session(hour, "");
    let channels = other.windows(2).position(|name| name == b"V1").expect("a name");
    other[channels + 1] = b'2';
    let error = merged(&[&session(0, ""), &other]).expect_err("other channels");
    assert_eq!(error.to_string(), "part 1 does not belong to this log: its channels differ");
}
