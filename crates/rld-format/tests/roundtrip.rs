//! Existing logs are written back byte for byte. New logs are read as they were specified.

mod support;

use std::cell::RefCell;
use std::io::{Cursor, Seek, SeekFrom, Write};
use std::rc::Rc;

use rld_format::unit::Unit;
use rld_format::wire::BlockTimes;
use rld_format::{
    ChannelSpec, Format, LogSpec, Rld, RldReader, RldWriter, SplitWriter, encode_row, set_counts,
};
use rovelog_core::internal::wire::I64Le;
use rovelog_core::{Bytes, Diagnostic, LogReader, ReadOptions, Severity};
use rovelog_testing::Full;
use support::{open, readable};

#[test]
fn every_log_is_written_back_byte_for_byte() {
    let (mut logs, mut whole) = (0, 0);
    for (log, reader) in readable() {
        // If the magic number is damaged, the writer writes the correct magic number.
        let mut bytes = log.bytes.to_vec();
        bytes[..4].copy_from_slice(&reader.header().lead_in.magic);
        assert!(bytes.starts_with(&reader.header().to_bytes()), "the header of {}", log.name);
        let binary = reader.channels().iter().filter(|channel| channel.is_binary).count();
        for row in (0..reader.rows()).filter_map(|row| reader.row(row)) {
            let layout = reader.layout().expect("it has rows");
            let words: Vec<u32> = (0..layout.words).filter_map(|word| row.word(word)).collect();
            let raw: Vec<i64> = (binary..reader.channels().len()).filter_map(|at| row.raw(at)).collect();
            let mut again = Vec::new();
            encode_row(layout, &words, &raw, &mut again).expect("values that were read fit");
            assert_eq!(again, row.bytes(), "a row of {}", log.name);
        }
        logs += 1;
        let changes = |found: &Diagnostic| found.rule.severity != Severity::Note;
        if reader.rows() > 0 && !reader.diagnostics().list().iter().any(changes) {
            let mut out = Vec::new();
            reader.write_rows(0..reader.rows(), &mut out).expect("memory takes it");
            assert!(out == bytes, "{} is not written back byte for byte", log.name);
            whole += 1;
        }
    }
    assert!(logs >= 60 && whole >= 40, "only {logs} logs, {whole} of them undamaged");
}

fn spec(version: u16) -> LogSpec {
    let mut spec = LogSpec::new(1000);
    spec.version = version;
    spec.block_rows = 4;
    spec.start = 1_700_000_000_123_456_789;
    "written here".clone_into(&mut spec.comment);
    spec.channels = vec![
        ChannelSpec::bit("DI1"),
        ChannelSpec::range("I1L_valid"),
        ChannelSpec::analog("V1", Unit::Volt, -8),
        ChannelSpec::analog("I1L", Unit::Ampere, -11).valid_if("I1L_valid"),
        ChannelSpec { size: 8, ..ChannelSpec::analog("wide", Unit::Ampere, 0) },
    ];
    spec
}

fn block_times(block: i128) -> BlockTimes {
    let at = block * 4_014_080;
    BlockTimes::new(1_700_000_000_000_000_000 + at, 5_000_000_000 + at).expect("in range")
}

fn rows(writer_layout: &rld_format::layout::Layout, from: i64, count: i64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for i in from..from + count {
        let word = u32::from(i % 2 == 0) | 2;
        encode_row(writer_layout, &[word], &[i, -i, i64::MIN + i], &mut bytes).expect("it fits");
    }
    bytes
}

#[test]
fn all_versions_are_written_as_they_are_read() {
    for version in 1..=4 {
        let mut writer =
            RldWriter::new(Cursor::new(Vec::new()), spec(version).header().expect("valid")).expect("memory");
        let layout = writer.layout().clone();
        writer.block(&block_times(0), &rows(&layout, 0, 4)).expect("memory");
        writer.block(&block_times(1), &rows(&layout, 4, 4)).expect("memory");
        writer.block(&block_times(2), &rows(&layout, 8, 1)).expect("memory");
        assert!(writer.block(&block_times(3), &rows(&layout, 9, 1)).is_err(), "after a short block");
        let (out, written) = writer.finish_in_place().expect("memory");
        let bytes = Bytes::from(out.into_inner());
        assert_eq!((written.rows, written.blocks, written.bytes), (9, 3, bytes.len() as u64));
        let log = open(&bytes);
        // In version 1, comments have no padding, so blocks can start at offsets that are not
        // multiples of four.
        let notes: Vec<_> = log.diagnostics().list().iter().map(|d| d.rule.name).collect();
        assert!(notes.iter().all(|name| *name == "unaligned_header" && version == 1), "{notes:?}");
        assert_eq!((log.rows(), log.header().comment_text().as_str()), (9, "written here"));
        assert_eq!(log.channels()[3].valid, Some(1), "version {version}");
        let row = log.row(7).expect("a row");
        assert_eq!((row.bit(0), row.bit(1)), (Some(false), Some(true)));
        assert_eq!([row.raw(2), row.raw(3), row.raw(4)], [Some(7), Some(-7), Some(i64::MIN + 7)]);

        // If the output cannot seek, the counts in the header must be right from the start.
        let mut header = spec(version).header().expect("valid");
        set_counts(&mut header, 9).expect("few");
        let mut writer = RldWriter::new(Vec::new(), header).expect("memory");
        for (block, count) in [(0, 4), (1, 4), (2, 1)] {
            writer.block(&block_times(block.into()), &rows(&layout, block * 4, count)).expect("memory");
        }
        assert_eq!(writer.finish().expect("the counts are right").0, bytes);
    }
}

#[test]
fn unrepresentable_specifications_are_refused() {
    let refuse = |change: fn(&mut LogSpec), words: &str| {
        let mut spec = spec(4);
        change(&mut spec);
        let error = spec.header().expect_err(words).to_string();
        assert!(error.contains(words), "{error}");
    };
    refuse(|s| s.version = 5, "version 5");
    refuse(|s| s.rate = 0, "sample rate or block size");
    refuse(|s| s.comment = "a\0b".to_owned(), "NUL");
    refuse(|s| s.comment = "x".repeat(65_480), "bytes");
    refuse(|s| s.channels[2].name = "seventeen letters".to_owned(), "name");
    refuse(|s| s.channels[2].size = 3, "3 bytes");
    refuse(|s| s.channels[3].valid = Some("DI1".to_owned()), "range-valid");
    refuse(|s| s.channels.swap(1, 2), "before all analog");
    refuse(|s| (s.version, s.channels[2].unit) = (2, Unit::Lux), "does not support the unit");
    let mut writer = RldWriter::new(Vec::new(), spec(4).header().expect("valid")).expect("memory");
    let four = rows(writer.layout(), 0, 4);
    // A reader would ignore these invalid times, and would assume that bytes before the block are
    // missing.
    let far = BlockTimes::new((1 << 33) * 1_000_000_000, 0).expect("in range");
    let long = BlockTimes { monotonic_nsec: I64Le::new(1_000_000_000), ..block_times(0) };
    for invalid in [far, long] {
        let refused = writer.block(&invalid, &four).expect_err("invalid times").to_string();
        assert!(refused.contains("block times"), "{refused}");
    }
    writer.block(&block_times(0), &four).expect("nothing was written");
    let layout = writer.layout();
    assert!(encode_row(layout, &[0], &[i64::from(i32::MAX) + 1, 0, 0], &mut Vec::new()).is_err());
    assert!(encode_row(layout, &[], &[0, 0, 0], &mut Vec::new()).is_err());
}

/// After an output error, the writer reports the error again for each call. If it wrote more rows
/// after the missing bytes, they would be read at wrong offsets.
#[test]
fn a_failed_output_cannot_be_finished() {
    let mut header = spec(4).header().expect("valid");
    set_counts(&mut header, 8).expect("few");
    let size = usize::try_from(header.size()).expect("small");
    let mut writer = RldWriter::new(Full(size + 40), header).expect("it has space for the header");
    let layout = writer.layout().clone();
    assert!(writer.block(&block_times(0), &rows(&layout, 0, 4)).is_err(), "40 bytes are no block");
    let again = writer.block(&block_times(1), &rows(&layout, 4, 4)).expect_err("it has failed");
    assert!(again.to_string().starts_with("an earlier write failed"), "{again}");
    assert!(writer.finish().is_err());
}

/// An output file that the test can read after the writer was dropped.
#[derive(Clone, Default)]
struct Shared(Rc<RefCell<Cursor<Vec<u8>>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Seek for Shared {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.0.borrow_mut().seek(to)
    }
}

#[test]
fn a_split_log_reads_as_one() {
    let mut files: Vec<Shared> = Vec::new();
    let header = spec(4).header().expect("valid");
    let layout = RldWriter::new(Vec::new(), header.clone()).expect("memory").layout().clone();
    let mut writer = SplitWriter::new(header, 500, |_| {
        files.push(Shared::default());
        Ok(files.last().expect("just pushed").clone())
    });
    for block in 0..7 {
        writer.block(&block_times(block.into()), &rows(&layout, block * 4, 4)).expect("memory");
    }
    let parts = writer.finish().expect("memory");
    assert_eq!(parts.iter().map(|part| part.rows).sum::<u64>(), 28);
    assert!(parts.len() > 1 && parts.iter().all(|part| part.bytes <= 500), "{parts:?}");
    let bytes: Vec<Bytes> = files.iter().map(|file| file.0.borrow().get_ref().clone().into()).collect();
    let log = RldReader::join(bytes, &ReadOptions::default()).expect("parts of one log");
    assert_eq!(log.rows(), 28);
    assert!(log.clock_report().gaps.is_empty());
    assert_eq!(log.row(27).and_then(|row| row.raw(2)), Some(27));
}

#[test]
fn parts_are_named_as_the_logger_names_them() {
    let files = Rld::INFO.files.expect("several");
    assert_eq!((files.part)("x.y.rld", 0), "x.y.rld");
    assert_eq!((files.part)("x.y.rld", 2), "x.y_p2.rld");
    assert_eq!((files.part)("x", 1), "x_p1");
    let there = ["x_p1.rld", "x_p3.rld", "x-ambient.rld", "x-ambient_p1.rld"];
    let others = (files.others)("x.rld", &|name| there.contains(&name));
    assert_eq!(others, ["x_p1.rld", "x-ambient.rld", "x-ambient_p1.rld"]);
}
