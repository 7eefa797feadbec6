#![doc = include_str!("../README.md")]
//!
//! # Open
//!
//! - [`RldReader::open`] opens a log at a path.
//! - [`RldReader::from_bytes`] opens a log in memory or in a mapped file.
//! - [`RldReader::options`] sets options and then opens a log.
//! - [`Rld::stream`](Format::stream) reads a log from a pipe, and buffers only a part of it.
//!
//! Damage is not an error. An error means that nothing can be read.
//!
//! ```no_run
//! use rld_format::{Format, LogStream, ReadOptions, Rld, RldReader};
//!
//! let log = RldReader::open("power.rld")?;
//!
//! let mut pipe = Rld::stream(Box::new(std::io::stdin()), &ReadOptions::default())?;
//! while let Some(record) = pipe.next_record()? {
//!     println!("{} {:?}", record.topic.name, record.time);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Inspect
//!
//! - [`info`](LogReader::info) returns the summary.
//! - [`topics`](LogReader::topics) returns the recorded topics.
//! - [`diagnostics`](LogReader::diagnostics) returns every problem that was found in the bytes. The
//!   module [`mod@diagnostics`] lists the rules.
//!
//! ```no_run
//! # use rld_format::{LogReader, RldReader};
//! # let log = RldReader::open("power.rld")?;
//! let info = log.info();
//! println!("{}, {} bytes lost, {:?} to {:?}", info.state.name(), info.lost.bytes, info.start, info.end);
//! for topic in log.topics() {
//!     println!("{} ({}): {} records, {:?} Hz", topic.name, topic.type_name, topic.count, topic.rate_hz());
//! }
//! for problem in log.diagnostics().list() {
//!     println!("{} bytes {:?}: {}", problem.rule.code, problem.range, problem.message);
//! }
//! let names: Vec<_> = log.channels().iter().map(|channel| &channel.name).collect();
//! println!("{names:?}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Iterate
//!
//! [`records`](LogReader::records) returns records in time order, and `records_in_file_order`
//! returns them in the order of the file. Each row is a record. [`RldReader::row`] returns any row
//! in constant time, with its raw and physical values.
//!
//! ```no_run
//! # use rld_format::{LogReader, RldReader, Select};
//! # let log = RldReader::open("power.rld")?;
//! for record in log.records(&Select::topic("samples")) {
//!     println!("{}", record?.value()?.to_json());
//! }
//! let v1 = log.channel("V1")?;
//! for row in (0..log.rows()).filter_map(|row| log.row(row)) {
//!     println!("{:?} V", row.physical(v1));
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Columns
//!
//! With the feature `arrow`, [`columns`](rovelog_core::TopicRef#method.columns) returns a topic as
//! Arrow record batches. Their columns are the time `t_ns` and the fields of the topic.
//! `RldReader::columns_with` selects raw or physical values and the time axis.
//!
//! ```no_run
//! # use rld_format::{LogReader, RldReader, Select};
//! # let log = RldReader::open("power.rld")?;
//! # #[cfg(feature = "arrow")]
//! if let Some(topic) = log.topic("samples") {
//!     for batch in topic.columns(&Select::all())? {
//!         println!("{} rows", batch?.num_rows());
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Write
//!
//! A [`LogSpec`] describes the header of a new log. [`RldWriter`] writes a log block by block, and
//! [`SplitWriter`] writes a recording that is split into several files.
//!
//! ```
//! use rld_format::unit::Unit;
//! use rld_format::wire::BlockTimes;
//! use rld_format::{ChannelSpec, LogReader, LogSpec, ReadOptions, RldReader, RldWriter, encode_row};
//!
//! let spec = LogSpec { channels: vec![ChannelSpec::analog("V1", Unit::Volt, -8)], ..LogSpec::new(1000) };
//! let mut log = RldWriter::new(std::io::Cursor::new(Vec::new()), spec.header()?)?;
//! let mut rows = Vec::new();
//! for raw in [330_000_000, 330_000_100] {
//!     encode_row(log.layout(), &[], &[raw], &mut rows)?; // in units of 1e-8 V
//! }
//! let block_times = BlockTimes::new(1_600_000_000_000_000_000, 0).ok_or("no such time")?; // Unix, since boot: ns
//! log.block(&block_times, &rows)?;
//! let (file, written) = log.finish_in_place()?;
//! assert_eq!(written.rows, 2);
//!
//! let log = RldReader::new(file.into_inner().into(), &ReadOptions::default())?;
//! assert_eq!(log.row(0).and_then(|row| row.physical(0)), Some(3.3));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Recover
//!
//! [`recover`](LogReader::recover) writes every intact record of a damaged log to a new file and
//! accounts for every byte. [`slice`](LogReader::slice) writes a part of a log, by topic and time.
//! [`Rld::merge`](Format::merge) joins several logs.
//!
//! ```no_run
//! # use rld_format::{LogReader, RecoverOptions, RldReader};
//! # let log = RldReader::open("power.rld")?;
//! let mut recovered = std::fs::File::create("power-recovered.rld")?;
//! let recovery = log.recover(&mut recovered, &RecoverOptions::default())?;
//! println!("{} records kept, {} bytes lost", recovery.records, recovery.lost_bytes());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Levels
//!
//! The API has several levels, from low to high. Each level can be used without the levels above
//! it.
//!
//! - [`wire`] declares the bytes in the order of the specification, for reading and writing. It
//!   also has the table of file versions.
//! - [`layout`] computes the offsets of rows and values. [`mod@unit`] converts raw integers to
//!   physical values.
//! - `validate` (private) determines the content of a file from its header and its size. All
//!   readers use it.
//! - [`RldReader`] gives random access to files in memory or in mapped files. A split recording is
//!   one log, and any row is found in constant time. [`RldStream`] reads a pipe in one pass.
//!   [`Row`] reads bits, raw values and physical values in place.
//! - [`clock`] interprets block times and computes the times of rows.
//! - [`analysis`] has merged currents, exact statistics, charge and energy, windows, events, states
//!   and levels of detail.
//! - `RldReader::columns_with` returns rows as Arrow record batches (feature `arrow`).
//! - [`LogReader::recover`] and [`RldWriter`] write new logs. [`csv`] reads
//!   and writes the logger's CSV, and [`calibration`] reads its calibration files.
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod analysis;
mod bits;
pub mod calibration;
pub mod clock;
#[cfg(feature = "arrow")]
mod columns;
pub mod csv;
pub mod diagnostics;
mod edit;
mod error;
mod header;
pub mod layout;
mod log_scan;
mod names;
mod partial;
mod reader;
mod resync;
mod row;
mod scan;
mod schema;
mod state;
mod stream;
mod structure;
pub mod unit;
mod usage;
mod validate;
mod watch;
pub mod wire;
mod writer;

use std::ops::Range;
use std::path::Path;

use rovelog_core::backend::Backend;
use rovelog_core::format::Companion;
use rovelog_core::internal::edit::Edit;
use rovelog_core::internal::partial::{Ranges, Unread};
use rovelog_core::reader::{Records, Texts};
use rovelog_core::{
    Align, Around, Bytes, Diagnostics, FormatInfo, LogInfo, Merged, Recovery, Sliced, Structure, Text, Topic,
    TopicId, Usage,
};

#[cfg(feature = "arrow")]
pub use columns::{ColumnOptions, Merging, RldBatches, Values};
pub use error::RldError;
pub use log_scan::AMBIENT;
pub use reader::{Part, RldReader, Runs};
pub use row::Row;
pub use schema::Channel;
pub use stream::RldStream;
pub use writer::{ChannelSpec, LogSpec, RldWriter, SplitWriter, Written, encode_row, set_counts};

// These items are re-exported for users who depend on this crate alone.
pub use rovelog_core;
pub use rovelog_core::{
    Error, Format, LogReader, LogStream, OpenOptions, ReadOptions, RecoverOptions, Result, Select,
};

/// Syslog severity of the log's comment, which is returned as a text message: `info`.
const COMMENT_LEVEL: u8 = 6;

/// The RLD format.
#[derive(Clone, Copy, Debug)]
pub struct Rld;

impl Format for Rld {
    const INFO: FormatInfo = FormatInfo { recognizes: Some(header::recognizes), ..wire::INFO };
    type Reader = RldReader;
    type Stream = RldStream<Box<dyn std::io::Read + Send>>;

    fn open(bytes: Bytes, options: &ReadOptions) -> Result<RldReader> {
        Ok(RldReader::new(bytes, options)?)
    }

    fn outline(file: &dyn Ranges) -> Result<()> {
        partial::outline(file)
    }

    fn stream(input: Box<dyn std::io::Read + Send>, options: &ReadOptions) -> Result<Self::Stream> {
        Ok(RldStream::new(input, options)?)
    }

    fn open_with(bytes: Bytes, companions: Vec<Companion>, options: &ReadOptions) -> Result<RldReader> {
        Ok(scan::open_with(bytes, companions, options)?)
    }

    /// Joins the parts of a split recording, or recordings of one logger with equal channels, which
    /// can be given in any order. The option `Align` is ignored, because recordings are aligned by
    /// UTC, and the times of all parts of a recording are on the same clock.
    fn merge(logs: &[&RldReader], _: Align, out: &mut dyn std::io::Write) -> Result<Merged> {
        Ok(edit::merge(logs, out)?)
    }
}

impl RldReader {
    /// Opens an RLD log with the default options. The file is read into memory.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or is not an RLD log. Damage is not an error:
    /// [`diagnostics`](LogReader::diagnostics) lists it.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::options().open(path)
    }

    /// Opens an RLD log in memory with the default options.
    ///
    /// # Errors
    /// Returns an error if the bytes are not an RLD log.
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Result<Self> {
        Self::options().from_bytes(bytes)
    }

    /// Returns the options for opening an RLD log.
    ///
    /// ```no_run
    /// let log = rld_format::RldReader::options().strict(true).open("power.rld")?;
    /// # Ok::<(), rld_format::Error>(())
    /// ```
    pub fn options() -> OpenOptions<Rld> {
        OpenOptions::new()
    }
}

impl LogReader for RldReader {
    fn format(&self) -> &'static FormatInfo {
        &wire::INFO
    }

    fn info(&self) -> &LogInfo {
        &self.info
    }

    fn topics(&self) -> &[Topic] {
        &self.topics
    }

    fn diagnostics(&self) -> &Diagnostics {
        &self.diagnostics
    }

    /// Returns the comment in the header, which is the only text in an RLD log. The time of the
    /// returned text is the start time of the log.
    fn texts(&self) -> Option<Texts<'_>> {
        let comment = self.header().comment_text();
        let text = Text::new(self.info.start, wire::LEAD_IN_LEN, COMMENT_LEVEL, comment);
        Some(Box::new(std::iter::once(text).filter(|text| !text.text.is_empty())))
    }

    fn usage(&self) -> Vec<Usage> {
        usage::usage(self)
    }

    fn recover(&self, out: &mut dyn std::io::Write, _: &RecoverOptions) -> Result<Recovery> {
        self.check_memory()?;
        Ok(edit::recover(self, out)?.with_packing(self.info.size, &self.diagnostics))
    }

    fn slice(&self, select: &Select, out: &mut dyn std::io::Write) -> Result<Sliced> {
        self.check_memory()?;
        Ok(edit::slice(self, select, out)?)
    }
}

impl Backend for RldReader {
    fn as_log(&self) -> &dyn LogReader {
        self
    }

    fn read_records<'a>(&'a self, select: &Select) -> Records<'a> {
        Box::new(self.records_in_order(select).map(Ok))
    }

    #[cfg(feature = "arrow")]
    fn read_columns<'a>(&'a self, topic: TopicId, select: &Select) -> Result<rovelog_core::Batches<'a>> {
        let topic = &self.topics[topic.index()];
        let options = ColumnOptions::physical();
        Ok(Box::new(self.of_topic(topic)?.batches_as(&topic.name, select, &options)?))
    }

    fn topic_definition(&self, topic: TopicId) -> Option<String> {
        let reader = self.of_topic(self.topics.get(topic.index())?).ok()?;
        let line = |channel: &Channel| {
            let link = channel.valid.map(|bit| format!(" valid={}", reader.channels()[bit].name));
            let kind = if channel.is_binary { "binary" } else { "analog" };
            let link = link.unwrap_or_default();
            let Channel { name, unit, scale, .. } = channel;
            format!("{kind} {name} {unit} scale={scale}{link}\n")
        };
        Some(reader.channels().iter().map(line).collect())
    }

    fn rewrite(&self, edit: &mut Edit<'_>, out: &mut dyn std::io::Write) -> Result<()> {
        Ok(edit::rewrite(self, edit, out).map_err(RldError::from)?)
    }

    fn structure_at(&self, around: Around) -> Structure {
        structure::structure_at(self, around)
    }

    fn unread(&self) -> Option<&Unread> {
        self.parts.first().map(|part| &part.unread)
    }

    fn needed(&self, select: &Select) -> Option<Vec<Range<u64>>> {
        // If bytes are missing or were added, the offset of a row depends on the times of all
        // blocks before the row. So the ranges that are needed cannot be computed in advance.
        let is_whole = self.parts.first().is_none_or(|part| part.unread.is_empty());
        (is_whole || !self.times.blocks.is_suspect()).then(|| self.still_needed(select))
    }
}
