//! Fuzz targets for RLD logs.

use std::io::Cursor;

use arbitrary::{Arbitrary, Unstructured};
use binrw::BinRead;
use rovelog::core::RecoverOptions;
use rovelog::rld_format::analysis::StatsOptions;
use rovelog::rld_format::csv::{CsvStyle, import};
use rovelog::rld_format::unit::Unit;
use rovelog::rld_format::wire::{BlockTimes, Header, LeadIn};
use rovelog::rld_format::{ChannelSpec, LogSpec, RldWriter};
use rovelog::rld_format::{RldReader, RldStream};
use rovelog::{Bytes, LogReader, ReadOptions, State};
use zerocopy::FromBytes as _;

use crate::alike::{Pieces, both, check_stream, decode, read_records};

fn open(data: &[u8]) -> Option<RldReader> {
    RldReader::new(Bytes::copy_from_slice(data), &ReadOptions::default()).ok()
}

/// Reads an RLD log. Checks that the sizes of its parts add up to the file size: the header, the
/// rows with their block times, additional rows that the header does not count, and lost bytes.
pub fn rld_read(data: &[u8]) {
    let Some(log) = open(data) else { return };
    let body = log.layout().map_or(0, |layout| layout.body(log.rows()));
    let after_header = log.diagnostics().list().iter().filter(|d| d.rule.name == "header_behind");
    let after_header: u64 = after_header.map(|d| d.range.end - d.range.start).sum();
    let accounted = u128::from(log.header().size() + after_header) + body + u128::from(log.info().lost.bytes);
    assert_eq!(accounted, data.len() as u128, "bytes are not accounted for");
    read_records(&log, decode);
    if let Ok(mut sums) = log.accumulator(&StatsOptions::default()) {
        assert_eq!(sums.stats(0..log.rows()).rows, log.rows());
    }
}

/// Checks that a recovered RLD log is valid and contains all rows.
pub fn rld_rewrite(data: &[u8]) {
    let Some(log) = open(data) else { return };
    let mut out = Vec::new();
    let report = log.recover(&mut out, &RecoverOptions::default()).expect("writing to memory succeeds");
    assert_eq!(report.kept_bytes + report.lost_bytes(), data.len() as u64);
    let again = open(&out).expect("a recovered log opens");
    assert_eq!(again.info().state, State::Complete);
    assert!(again.rows() >= log.rows());
    let lost = &log.info().lost;
    assert_eq!(report.lost_bytes(), lost.bytes, "recovery loses what reading reports as lost");
    assert_eq!(report.missing_records, lost.missing_records);
    assert_eq!(again.rows(), log.rows() + lost.left_out_records);
}

/// Checks that a stream returns the same records as the reader, for any division of the input into
/// pieces.
pub fn rld_stream(data: &[u8]) {
    let stream = RldStream::new(Pieces(data), &ReadOptions::default());
    let Some((log, mut stream)) = both(open(data), stream) else { return };
    // The reader computes times from the whole log. A stream cannot do this, so times are not
    // compared.
    check_stream(&mut stream, &log, log.records_in_file_order(), |_| None);
}

/// Imports CSV of the logger. If the input is an RLD log, the CSV is exported from it. Otherwise, the
/// input is the CSV. Checks that the imported log is valid and has the rows of the CSV.
pub fn rld_csv(data: &[u8]) {
    let log = open(data);
    let (mut text, mut is_complete) = (data.to_vec(), false);
    if let Some(log) = &log {
        text.clear();
        let Ok(written) = log.write_logger_csv(CsvStyle::Nanoseconds, &mut text) else { return };
        is_complete = written.lost.is_empty();
    }
    let imported = match import(&text[..], 0) {
        Ok(imported) => imported,
        Err(error) => return assert!(!is_complete, "written CSV is not imported: {error}"),
    };
    let again = open(&imported.bytes).expect("an imported log opens");
    assert_eq!(again.rows(), imported.rows);
    assert!(again.info().lost.is_empty(), "an imported log is damaged: {:?}", again.diagnostics().list());
    if let Some(log) = log.filter(|_| is_complete) {
        assert_eq!(again.rows(), log.rows());
        let values = |log: &RldReader| -> Vec<String> {
            log.records_in_file_order()
                .map(|record| record.value().expect("a row decodes").to_json())
                .collect()
        };
        assert_eq!(values(&again), values(&log));
    }
}

/// Parses a header and block times. Checks that the results are equal to the views of the same
/// bytes, and that writing them results in the same bytes.
pub fn rld_declarations(data: &[u8]) {
    if let Ok(header) = Header::from_bytes(data, None) {
        let (view, _) = LeadIn::ref_from_prefix(data).expect("a header starts with its lead-in");
        assert_eq!(header.lead_in, *view);
        let again = header.to_bytes();
        assert_eq!(again.len() as u64, header.size());
        assert_eq!(again, data[..again.len()]);
    }
    let declared = BlockTimes::read(&mut Cursor::new(data)).ok();
    assert_eq!(declared.as_ref(), BlockTimes::ref_from_prefix(data).ok().map(|(view, _)| view));
}

/// Content of an RLD log to write.
#[derive(Arbitrary, Debug)]
struct Model {
    version: u8,
    rate: u16,
    block_rows: u8,
    start: i64,
    comment: String,
    channels: Vec<ModelChannel>,
    /// Realtime and monotonic time at the start of each block.
    blocks: Vec<(i64, i64)>,
    /// Number of rows in the last block.
    last_rows: u8,
    /// Bytes of the rows. They are repeated if there are more rows.
    bytes: Vec<u8>,
}

#[derive(Arbitrary, Debug)]
pub(crate) struct ModelChannel {
    name: String,
    unit: u8,
    scale: i8,
    size: u8,
    /// Index of the binary channel whose bits say in which rows a value is valid.
    valid: Option<u8>,
}

/// Returns the channels of a log in the file version `version`.
pub(crate) fn channel_specs(channels: &[ModelChannel], version: u8) -> Vec<ChannelSpec> {
    let name = |index: usize| format!("{index}{}", channels[index].name);
    let spec = |(index, channel): (usize, &ModelChannel)| ChannelSpec {
        name: name(index),
        unit: Unit::of(u32::from(channel.unit), version > 2),
        scale: channel.scale.into(),
        size: 1 << (channel.size % 4),
        valid: channel.valid.map(|valid| name(usize::from(valid) % channels.len())),
    };
    channels.iter().enumerate().map(spec).collect()
}

/// A log that was written, and the content that a reader must find in it.
struct Written {
    bytes: Vec<u8>,
    channels: Vec<String>,
    /// Block times and bytes of each row that a reader must find.
    rows: Vec<(BlockTimes, Vec<u8>)>,
}

impl Model {
    /// Writes the log. Returns `None` if the content cannot be represented in the RLD format.
    fn write(&self) -> Option<Written> {
        let spec = LogSpec {
            version: u16::from(self.version),
            block_rows: self.block_rows.into(),
            start: self.start,
            comment: self.comment.clone(),
            channels: channel_specs(&self.channels, self.version),
            ..LogSpec::new(self.rate)
        };
        let mut log = RldWriter::new(Cursor::new(Vec::new()), spec.header().ok()?).ok()?;
        let row = log.layout().row;
        let mut written = Vec::new();
        for (number, (realtime, monotonic)) in self.blocks.iter().enumerate() {
            let full = number + 1 < self.blocks.len();
            let rows = if full { self.block_rows } else { self.last_rows.clamp(1, self.block_rows) };
            let rows: Vec<u8> = self.bytes.iter().copied().cycle().take(usize::from(rows) * row).collect();
            let whole = rows.len() / row * row;
            let block_times = BlockTimes::new((*realtime).into(), (*monotonic).into())?;
            if log.block(&block_times, &rows[..whole]).is_ok() {
                written.extend(rows.chunks_exact(row).map(|row| (block_times, row.to_vec())));
            }
        }
        let (bytes, report) = log.finish_in_place().expect("writing to memory succeeds");
        let bytes = bytes.into_inner();
        assert_eq!((report.rows, report.bytes), (written.len() as u64, bytes.len() as u64));
        let channels = spec.channels.into_iter().map(|channel| channel.name).collect();
        Some(Written { bytes, channels, rows: written })
    }
}

/// Generates the content of a log from the input, and writes the log.
pub(crate) fn from_model(data: &mut Unstructured<'_>) -> Option<Vec<u8>> {
    Some(Model::arbitrary(data).ok()?.write()?.bytes)
}

const DAY_NANOS: i128 = 86_400_000_000_000;
const CENTURY_NANOS: i128 = 36_525 * DAY_NANOS;

/// Checks that a written log contains the generated rows, block times and channels. The writer may
/// also return an error.
pub fn rld_write(data: &[u8]) {
    let Ok(model) = Model::arbitrary_take_rest(Unstructured::new(data)) else { return };
    let Some(written) = model.write() else { return };
    let log = open(&written.bytes).expect("a written log opens");
    // Whether rows contain an additional word can only be seen from the block times. Random block
    // times may look like those of a log with an additional word. This is not possible if the
    // second block directly follows the first block.
    if log.diagnostics().list().iter().any(|d| d.rule.name == "extra_word") {
        let mut times: Vec<_> = written.rows.iter().map(|(times, _)| times).collect();
        times.dedup();
        if let [first, second, ..] = times[..] {
            let later = second.monotonic() - first.monotonic();
            let is_near =
                |times: &BlockTimes| times.realtime().abs().max(times.monotonic().abs()) < CENTURY_NANOS;
            let follows = (1..DAY_NANOS).contains(&later) && is_near(first) && is_near(second);
            assert!(!follows, "consecutive blocks are taken for rows with an extra word");
        }
        return;
    }
    assert_eq!(log.info().lost.bytes, 0, "the written log is damaged: {:?}", log.diagnostics().list());
    assert_eq!(log.rows(), written.rows.len() as u64);
    assert!(log.channels().iter().map(|channel| &*channel.name).eq(&written.channels));
    for (record, (block_times, row)) in log.records_in_file_order().zip(&written.rows) {
        assert_eq!(record.payload, row);
        let (_, read) = log.block_of(record.seq).expect("a row is in a block");
        assert_eq!(read, *block_times);
    }
}
