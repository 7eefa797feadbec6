//! Bodies for RLD.

use std::io::Cursor;

use arbitrary::{Arbitrary, Unstructured};
use binrw::BinRead;
use rovelog::core::RecoverOptions;
use rovelog::rld_format::analysis::StatsOptions;
use rovelog::rld_format::unit::Unit;
use rovelog::rld_format::wire::{BlockTimes, Header, LeadIn};
use rovelog::rld_format::{ChannelSpec, LogSpec, RldWriter};
use rovelog::rld_format::{RldReader, RldStream};
use rovelog::{Bytes, LogReader, ReadOptions, State};
use zerocopy::FromBytes as _;

use crate::alike::{Pieces, both, decode, read_records, stream_is_slice};

fn open(data: &[u8]) -> Option<RldReader> {
    RldReader::new(Bytes::copy_from_slice(data), &ReadOptions::default()).ok()
}

/// Reads the whole log and adds up the bytes: header, rows with their block times, rows that the
/// header does not count, and losses are the file.
pub fn rld_read(data: &[u8]) {
    let Some(log) = open(data) else { return };
    let body = log.layout().map_or(0, |layout| layout.body(log.rows()));
    let behind = log.diagnostics().list().iter().filter(|d| d.rule.name == "header_behind");
    let behind: u64 = behind.map(|d| d.range.end - d.range.start).sum();
    let accounted = u128::from(log.header().size() + behind) + body + u128::from(log.info().lost.bytes);
    assert_eq!(accounted, data.len() as u128, "bytes are not accounted for");
    read_records(&log, decode);
    if let Ok(mut sums) = log.accumulator(&StatsOptions::default()) {
        assert_eq!(sums.stats(0..log.rows()).rows, log.rows());
    }
}

/// The recovered log is valid and holds every row.
pub fn rld_rewrite(data: &[u8]) {
    let Some(log) = open(data) else { return };
    let mut out = Vec::new();
    let report = log.recover(&mut out, &RecoverOptions::default()).expect("memory takes it");
    assert_eq!(report.kept_bytes + report.lost_bytes(), data.len() as u64);
    let again = open(&out).expect("a recovered log opens");
    assert_eq!(again.info().state, State::Complete);
    assert!(again.rows() >= log.rows());
    let lost = &log.info().lost;
    assert_eq!(report.lost_bytes(), lost.bytes, "what is called lost is what recovery leaves out");
    assert_eq!(report.missing_records, lost.missing_records);
    assert_eq!(again.rows(), log.rows() + lost.left_out_records);
}

/// The stream yields what the slice yields, however its input is split.
pub fn rld_stream(data: &[u8]) {
    let stream = RldStream::new(Pieces(data), &ReadOptions::default());
    let Some((log, mut stream)) = both(open(data), stream) else { return };
    // A pipe cannot know times that are fitted to the whole log.
    stream_is_slice(&mut stream, &log, log.records_in_file_order(), |_| None);
}

/// The declared header and block times agree with the views of the same bytes; writing gives the
/// bytes that were read.
pub fn rld_declarations(data: &[u8]) {
    if let Ok(header) = Header::from_bytes(data, None) {
        let (view, _) = LeadIn::ref_from_prefix(data).expect("a header starts with it");
        assert_eq!(header.lead_in, *view);
        let again = header.to_bytes();
        assert_eq!(again.len() as u64, header.size());
        assert_eq!(again, data[..again.len()]);
    }
    let declared = BlockTimes::read(&mut Cursor::new(data)).ok();
    assert_eq!(declared.as_ref(), BlockTimes::ref_from_prefix(data).ok().map(|(view, _)| view));
}

/// A log to write.
#[derive(Arbitrary, Debug)]
struct Model {
    version: u8,
    rate: u16,
    block_rows: u8,
    start: i64,
    comment: String,
    channels: Vec<ModelChannel>,
    blocks: Vec<(i64, i64)>,
    /// Rows of the last block, which has fewer than the others.
    last_rows: u8,
    bytes: Vec<u8>,
}

#[derive(Arbitrary, Debug)]
struct ModelChannel {
    name: String,
    unit: u8,
    scale: i8,
    size: u8,
    valid: Option<u8>,
}

/// A written log, and its expected content.
struct Written {
    bytes: Vec<u8>,
    channels: Vec<String>,
    /// Block times and bytes of each row.
    rows: Vec<(BlockTimes, Vec<u8>)>,
}

impl Model {
    /// Writes the log; `None` if the format cannot hold it.
    fn write(&self) -> Option<Written> {
        let name = |index: usize| format!("{index}{}", self.channels[index].name);
        let channel = |(index, channel): (usize, &ModelChannel)| ChannelSpec {
            name: name(index),
            unit: Unit::of(u32::from(channel.unit), self.version > 2),
            scale: channel.scale.into(),
            size: 1 << (channel.size % 4),
            valid: channel.valid.map(|valid| name(usize::from(valid) % self.channels.len())),
        };
        let spec = LogSpec {
            version: u16::from(self.version),
            block_rows: self.block_rows.into(),
            start: self.start,
            comment: self.comment.clone(),
            channels: self.channels.iter().enumerate().map(channel).collect(),
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
        let (bytes, report) = log.finish_in_place().expect("memory takes it");
        let bytes = bytes.into_inner();
        assert_eq!((report.rows, report.bytes), (written.len() as u64, bytes.len() as u64));
        let channels = spec.channels.into_iter().map(|channel| channel.name).collect();
        Some(Written { bytes, channels, rows: written })
    }
}

/// Returns the log of a model.
pub(crate) fn modelled(data: &mut Unstructured<'_>) -> Option<Vec<u8>> {
    Some(Model::arbitrary(data).ok()?.write()?.bytes)
}

/// Nanoseconds.
const DAY: i128 = 86_400_000_000_000;
const CENTURY: i128 = 36_525 * DAY;

/// The log written from any model holds the model's rows, block times and channels, or the writer
/// returns an error.
pub fn rld_write(data: &[u8]) {
    let Ok(model) = Model::arbitrary_take_rest(Unstructured::new(data)) else { return };
    let Some(written) = model.write() else { return };
    let log = open(&written.bytes).expect("what is written opens");
    // Block times that do not follow each other can look like those of rows with an extra word, which
    // only the times tell. Such rows are never found where the times of the first two blocks follow.
    if log.diagnostics().list().iter().any(|d| d.rule.name == "extra_word") {
        let mut times: Vec<_> = written.rows.iter().map(|(times, _)| times).collect();
        times.dedup();
        if let [first, second, ..] = times[..] {
            let later = second.monotonic() - first.monotonic();
            let is_near = |times: &BlockTimes| times.realtime().abs().max(times.monotonic().abs()) < CENTURY;
            let follows = (1..DAY).contains(&later) && is_near(first) && is_near(second);
            assert!(!follows, "rows of blocks that follow each other have no extra word");
        }
        return;
    }
    assert_eq!(log.info().lost.bytes, 0, "the written log is intact: {:?}", log.diagnostics().list());
    assert_eq!(log.rows(), written.rows.len() as u64);
    assert!(log.channels().iter().map(|channel| &*channel.name).eq(&written.channels));
    for (record, (block_times, row)) in log.records_in_file_order().zip(&written.rows) {
        assert_eq!(record.payload, row);
        let (_, read) = log.block_of(record.seq).expect("a row is in a block");
        assert_eq!(read, *block_times);
    }
}
