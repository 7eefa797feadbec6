#![doc = include_str!("../README.md")]
//!
//! # Open
//!
//! [`UlogReader::open`] opens a file, [`UlogReader::from_bytes`] opens bytes in memory or in a
//! mapped file, and [`UlogReader::options`] sets options first. [`Ulog::stream`](Format::stream)
//! reads a pipe and buffers only a window of it.
//!
//! Damage is not an error. An error means that nothing can be read.
//!
//! ```no_run
//! use ulog_format::{Format, LogStream, ReadOptions, Ulog, UlogReader};
//!
//! let log = UlogReader::open("flight.ulg")?;
//!
//! let mut pipe = Ulog::stream(Box::new(std::io::stdin()), &ReadOptions::default())?;
//! while let Some(record) = pipe.next_record()? {
//!     println!("{} {:?}", record.topic.name, record.time);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Inspect
//!
//! [`info`](LogReader::info) returns a summary of the log, [`topics`](LogReader::topics) its
//! topics, and [`diagnostics`](LogReader::diagnostics) every problem found in its bytes. The module
//! [`mod@diagnostics`] lists the rules.
//!
//! ```no_run
//! # use ulog_format::{LogReader, UlogReader};
//! # let log = UlogReader::open("flight.ulg")?;
//! let info = log.info();
//! println!("{}, {} bytes lost, {:?} to {:?}", info.state.name(), info.lost.bytes, info.start, info.end);
//! for topic in log.topics() {
//!     println!("{} ({}): {} records, {:?} Hz", topic.name, topic.type_name, topic.count, topic.rate_hz());
//! }
//! for problem in log.diagnostics().list() {
//!     println!("{} bytes {:?}: {}", problem.rule.code, problem.range, problem.message);
//! }
//! println!("flown with {:?}", log.parameters().initial.get("MAV_TYPE"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Iterate
//!
//! [`records`](LogReader::records) returns records in time order, and
//! [`records_in_file_order`](UlogReader::records_in_file_order) returns them in file order.
//! [`UlogReader::row`] reads single fields without decoding the others.
//! [`TopicRef::rows`](rovelog_core::TopicRef::rows) deserializes rows into your own structs.
//!
//! ```no_run
//! # use ulog_format::{LogReader, Select, UlogReader};
//! # let log = UlogReader::open("flight.ulg")?;
//! for record in log.records(&Select::topic("vehicle_attitude")) {
//!     let record = record?;
//!     let row = log.row(&record)?;
//!     let q = row.layout().place("q[0]").ok_or("no quaternion")?;
//!     println!("{:?} {:?}", record.time, row.read::<f32>(q));
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Columns
//!
//! With the feature `arrow`, [`columns`](rovelog_core::TopicRef#method.columns) returns a topic as
//! Arrow record batches. The first column is the time `t_ns`, the others are the fields.
//! `UlogReader::batches` returns all topics in one pass.
//!
//! ```no_run
//! # use ulog_format::{LogReader, Select, UlogReader};
//! # let log = UlogReader::open("flight.ulg")?;
//! # #[cfg(feature = "arrow")]
//! if let Some(topic) = log.topic("vehicle_attitude") {
//!     for batch in topic.columns(&Select::all())? {
//!         println!("{} rows", batch?.num_rows());
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Write
//!
//! [`UlogWriter`] writes a new log, or copies a log message by message. [`append`](append()) adds
//! messages to an existing log.
//!
//! ```
//! use ulog_format::{FormatBuilder, LogReader, ReadOptions, UlogReader, UlogWriter};
//!
//! let mut log = UlogWriter::new(Vec::new(), 1_000_000)?; // microseconds since boot
//! log.define(&FormatBuilder::new("battery").field::<u64>("timestamp").field::<f32>("voltage_v"))?;
//! let battery = log.subscribe("battery", 0)?;
//! let mut row = log.row_buffer(battery)?;
//! let (time, voltage) = (row.place("timestamp")?, row.place("voltage_v")?);
//! row.set(time, 1_500_000_u64)?;
//! row.set(voltage, 16.1_f32)?;
//! log.write(&row)?;
//! let bytes = log.finish()?;
//!
//! let log = UlogReader::new(bytes.into(), &ReadOptions::default())?;
//! assert_eq!(log.info().records, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Recover
//!
//! [`recover`](LogReader::recover) writes every intact message of a damaged log to a new file, and
//! reports the bytes that it leaves out. [`slice`](LogReader::slice) writes the selected topics and
//! times of a log. [`Ulog::merge`](Format::merge) combines several logs.
//!
//! ```no_run
//! # use ulog_format::{LogReader, RecoverOptions, UlogReader};
//! # let log = UlogReader::open("flight.ulg")?;
//! let mut recovered = std::fs::File::create("flight-recovered.ulg")?;
//! let recovery = log.recover(&mut recovered, &RecoverOptions::default())?;
//! println!("{} records kept, {} bytes lost", recovery.records, recovery.lost_bytes());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Levels
//!
//! The crate has the following levels, lowest first. Each level can be used without the next ones.
//!
//! - [`wire`] declares the binary structures, for reading and writing.
//! - `scan` and `validate` (private) divide the bytes of a log into messages and damage.
//! - [`rovelog_core::internal::layout`] describes the offsets of fields within a row and decodes them.
//! - [`UlogReader`] provides random access to a log in memory or in a mapped file. [`UlogStream`]
//!   reads a pipe once, in bounded memory. Both return [`Record`]s, and a [`Row`] to access fields.
//! - [`TopicRef::rows`](rovelog_core::TopicRef::rows) deserializes rows with serde.
//! - [`LogReader::recover`], [`LogReader::slice`] and [`Ulog::merge`](Format::merge) write the
//!   intact part of a log, a selected part of it, or several logs as one.
//! - [`UlogWriter`] writes new logs, copies of logs and appended data.
//! - `UlogReader::batches` returns topics as Arrow record batches (feature `arrow`).
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod accept;
mod clock;
#[cfg(feature = "arrow")]
mod columns;
mod definitions;
mod details;
mod deviations;
pub mod diagnostics;
mod dropouts;
mod edit;
mod error;
mod flags;
mod index;
mod layout;
mod locate;
#[cfg(feature = "arrow")]
mod padded;
mod parameters;
mod partial;
mod parts;
pub mod px4;
mod reader;
mod row;
mod scan;
mod schema;
mod sessions;
mod state;
mod step;
mod stream;
mod structure;
mod usage;
mod utc;
mod validate;
pub mod wire;
mod writer;

use std::io::{Read, Write};
use std::ops::Range;
use std::path::Path;

use rovelog_core::backend::Backend;
use rovelog_core::internal::edit::Edit;
use rovelog_core::internal::layout::EscapedTexts;
use rovelog_core::internal::partial::{Ranges, Unread};
use rovelog_core::reader::Texts;
use rovelog_core::{
    Align, Around, Bytes, Diagnostics, FormatInfo, LogInfo, Merged, Record, Records, Recovery, Sliced,
    Structure, Topic, TopicId, Usage,
};
#[cfg(feature = "arrow")]
use rovelog_core::{Batches, TopicBatches};

#[cfg(feature = "arrow")]
pub use columns::{ColumnBatches, StreamBatches};
pub use definitions::{Definitions, Subscription};
pub use dropouts::{Dropout, DropoutLoss};
pub use error::UlogError;
pub use parameters::{ParameterChange, Parameters};
#[doc(hidden)]
pub use parts::{Part, Scanned};
pub use reader::UlogReader;
#[doc(hidden)]
pub use row::Number;
pub use row::{Place, Row};
pub use sessions::Session;
pub use stream::{StreamItem, UlogStream};
pub use writer::{
    DefaultOf, FormatBuilder, InfoValue, ParameterValue, RowBuffer, TopicHandle, UlogWriter, append,
    append_to_file,
};

// These items are re-exported, so that users of this crate need no direct dependency on
// `rovelog-core`.
pub use rovelog_core;
pub use rovelog_core::{
    Error, Format, LogReader, LogStream, OpenOptions, ReadOptions, RecoverOptions, Result, Select,
};

/// The ULog format, for functions that are generic over formats.
#[derive(Clone, Copy, Debug)]
pub struct Ulog;

impl Format for Ulog {
    const INFO: FormatInfo = FormatInfo { recognizes: Some(locate::recognizes), ..wire::INFO };
    type Reader = UlogReader;
    type Stream = UlogStream<Box<dyn Read + Send>>;

    /// Opens a log, even if its header is damaged or missing.
    ///
    /// Format detection rejects a file without the magic number and without definitions in its
    /// first 64 KiB. If the user states that such a file is a ULog, this function searches the
    /// first 40 MiB for messages.
    fn open(bytes: Bytes, options: &ReadOptions) -> Result<UlogReader> {
        Ok(UlogReader::salvage(bytes, options)?)
    }

    fn outline(file: &dyn Ranges) -> Result<()> {
        partial::outline(file)
    }

    fn stream(input: Box<dyn Read + Send>, options: &ReadOptions) -> Result<Self::Stream> {
        Ok(UlogStream::salvage(input, options)?)
    }

    fn merge(logs: &[&UlogReader], align: Align, out: &mut dyn Write) -> Result<Merged> {
        Ok(edit::merge(logs, align, out)?)
    }
}

impl UlogReader {
    /// Opens a ULog with the default options. The file is read into memory.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or is not a ULog. Damage is not an error, and is
    /// listed by [`diagnostics`](LogReader::diagnostics).
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::options().open(path)
    }

    /// Opens a ULog in memory with the default options.
    ///
    /// # Errors
    /// Returns an error if the bytes are not a ULog.
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Result<Self> {
        Self::options().from_bytes(bytes)
    }

    /// Returns options for opening a ULog.
    ///
    /// ```no_run
    /// let log = ulog_format::UlogReader::options().strict(true).open("flight.ulg")?;
    /// # Ok::<(), ulog_format::Error>(())
    /// ```
    pub fn options() -> OpenOptions<Ulog> {
        OpenOptions::new()
    }
}

impl LogReader for UlogReader {
    fn format(&self) -> &'static FormatInfo {
        &wire::INFO
    }

    fn info(&self) -> &LogInfo {
        self.summary()
    }

    fn topics(&self) -> &[Topic] {
        &self.scanner().definitions.topics
    }

    fn texts(&self) -> Option<Texts<'_>> {
        Some(Box::new(self.logged_strings()))
    }

    fn diagnostics(&self) -> &Diagnostics {
        &self.scanner().diagnostics
    }

    fn usage(&self) -> Vec<Usage> {
        usage::usage(self)
    }

    fn recover(&self, out: &mut dyn Write, options: &RecoverOptions) -> Result<Recovery> {
        self.check_memory()?;
        let size = self.bytes().len() as u64;
        Ok(edit::recover(self, out, options)?.with_packing(size, self.diagnostics()))
    }

    fn slice(&self, select: &Select, out: &mut dyn Write) -> Result<Sliced> {
        self.check_memory()?;
        Ok(edit::slice(self, select, out)?)
    }
}

impl Backend for UlogReader {
    fn as_log(&self) -> &dyn LogReader {
        self
    }

    fn read_records<'a>(&'a self, select: &Select) -> Records<'a> {
        Box::new(self.records_in_order(select).map(|record| Ok(record?)))
    }

    #[cfg(feature = "arrow")]
    fn read_columns<'a>(&'a self, topic: TopicId, select: &Select) -> Result<Batches<'a>> {
        Ok(Box::new(self.topic_batches(topic, select)?))
    }

    #[cfg(feature = "arrow")]
    fn read_batches<'a>(&'a self, select: &Select) -> TopicBatches<'a> {
        Box::new(self.batches(select))
    }

    fn topic_definition(&self, topic: TopicId) -> Option<String> {
        Some(self.scanner().definitions.subscriptions.get(topic.index())?.format.as_ref()?.to_string())
    }

    fn take_escaped_texts(&self) -> Vec<EscapedTexts> {
        self.scanner().definitions.formats.decoding.take_escaped()
    }

    fn rewrite(&self, edit: &mut Edit<'_>, out: &mut dyn Write) -> Result<()> {
        Ok(edit::rewrite(self, edit, out).map_err(UlogError::from)?)
    }

    fn structure_at(&self, around: Around) -> Structure {
        structure::structure_at(self, around)
    }

    fn unread(&self) -> Option<&Unread> {
        Some(self.unread())
    }

    /// Returns the byte ranges to fetch for a selection. A ULog has no index, so every selection
    /// needs all bytes. The result is an empty list if the whole file was read, otherwise `None`.
    fn needed(&self, _: &Select) -> Option<Vec<Range<u64>>> {
        self.unread().is_empty().then(Vec::new)
    }
}

impl<R: Read + Send> LogStream for UlogStream<R> {
    fn format(&self) -> &'static FormatInfo {
        &wire::INFO
    }

    fn next_record(&mut self) -> Result<Option<Record<'_>>> {
        Ok(self.next_row()?)
    }

    fn topics(&self) -> &[Topic] {
        &self.scanner().definitions.topics
    }

    fn take_escaped_texts(&self) -> Vec<EscapedTexts> {
        self.scanner().definitions.formats.decoding.take_escaped()
    }

    fn info(&self) -> LogInfo {
        self.summary()
    }

    fn diagnostics(&self) -> &Diagnostics {
        &self.scanner().diagnostics
    }
}
