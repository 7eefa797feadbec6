#![doc = include_str!("../README.md")]
//!
//! # Open
//!
//! - [`VelReader::open`] opens a log at a path.
//! - [`VelReader::from_bytes`] opens a log in memory or in a mapped file.
//! - [`VelReader::options`] sets options and then opens a log.
//! - [`Vel::stream`](Format::stream) reads a log from a pipe, and buffers only a part of it.
//!
//! Damage is not an error. An error means that nothing can be read.
//!
//! ```no_run
//! use vel_format::{Format, LogStream, ReadOptions, Vel, VelReader};
//!
//! let log = VelReader::open("drive.vel")?;
//!
//! let mut pipe = Vel::stream(Box::new(std::io::stdin()), &ReadOptions::default())?;
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
//! # use vel_format::{LogReader, VelReader};
//! # let log = VelReader::open("drive.vel")?;
//! let info = log.info();
//! println!("{}, {} bytes lost, {:?} to {:?}", info.state.name(), info.lost.bytes, info.start, info.end);
//! for topic in log.topics() {
//!     println!("{} ({}): {} records, {:?} Hz", topic.name, topic.type_name, topic.count, topic.rate_hz());
//! }
//! for problem in log.diagnostics().list() {
//!     println!("{} bytes {:?}: {}", problem.rule.code, problem.range, problem.message);
//! }
//! for choice in log.choices() {
//!     println!("{}: {} ({})", choice.what, choice.choice, choice.evidence);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Iterate
//!
//! [`records`](LogReader::records) returns records in time order, and `records_in_file_order`
//! returns them in the order of the file. [`VelReader::payloads`] returns messages as borrowed
//! views. `VelReader::revolutions` returns the points of a Velodyne sensor.
//!
//! ```no_run
//! # use vel_format::{LogReader, Select, VelReader};
//! # let log = VelReader::open("drive.vel")?;
//! for record in log.records(&Select::topic("GPSDataM")) {
//!     println!("{}", record?.value()?.to_json());
//! }
//! // The sensor and its calibration are taken from the log. A revolution starts straight ahead.
//! let mut revolutions = log.revolutions(None, None, vel_format::velodyne::PointOptions::default(), 0)?;
//! while let Some(revolution) = revolutions.next() {
//!     println!("revolution {}: {} points", revolution.number, revolution.points.len());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Columns
//!
//! With the feature `arrow`, [`columns`](rovelog_core::TopicRef#method.columns) returns a topic as
//! Arrow record batches. Their columns are the time `t_ns` and the fields of the topic.
//! `VelReader::point_batches` returns points.
//!
//! ```no_run
//! # use vel_format::{LogReader, Select, VelReader};
//! # let log = VelReader::open("drive.vel")?;
//! # #[cfg(feature = "arrow")]
//! if let Some(topic) = log.topic("GPSDataM") {
//!     for batch in topic.columns(&Select::all())? {
//!         println!("{} rows", batch?.num_rows());
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Write
//!
//! [`VelWriter`] records a log message by message. [`write_log`] writes known messages in one pass.
//!
//! ```
//! use vel_format::{LogReader, NewMessage, ReadOptions, VelReader, VelWriter, WriteOptions};
//!
//! let mut log = VelWriter::new(std::io::Cursor::new(Vec::new()), WriteOptions::default())?;
//! let compass = vel_format::simple_hash("CompassM")?; // 0x0001_806E
//! for second in 0..3 {
//!     log.write(&NewMessage::raw(compass, 100, 1000.0 * f64::from(second), vec![0; 8]))?;
//! }
//! let (file, written) = log.finish()?;
//! assert_eq!(written.messages, 3);
//!
//! let log = VelReader::new(file.into_inner().into(), &ReadOptions::default())?;
//! assert_eq!(log.info().records, 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Recover
//!
//! [`recover`](LogReader::recover) writes every intact message of a damaged log to a new file and
//! accounts for every byte. [`slice`](LogReader::slice) writes a part of a log, by topic and time.
//! [`Vel::merge`](Format::merge) joins several logs.
//!
//! ```no_run
//! # use vel_format::{LogReader, RecoverOptions, VelReader};
//! # let log = VelReader::open("drive.vel")?;
//! let mut recovered = std::fs::File::create("drive-recovered.vel")?;
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
//! - [`wire`] declares the bytes in the order of the specification, for reading and writing.
//! - [`Message`] and [`Payload`] are messages that borrow from the log.
//! - [`declared`] and [`hash`] handle your own message types, and the ids of type names.
//! - `scan`, `locate` and `validate` (private) find the messages of valid and damaged logs. All
//!   readers use them.
//! - [`VelReader`] gives random access to a log in memory or in a mapped file. [`VelStream`] reads
//!   a pipe in one pass, in bounded memory. Both return [`Record`](rovelog_core::Record)s.
//! - [`velodyne`], [`laser`], [`images`], [`gps`] and [`pose`] interpret sensor data: points,
//!   revolutions, scans, pixels, UTC and orientation.
//! - [`LogReader::recover`] writes every intact message of a damaged log, and accounts for every
//!   byte.
//! - [`LogReader::slice`] and [`Vel::merge`](Format::merge) write a part of a log, or several logs,
//!   as a new log.
//! - [`VelWriter`] and [`write_log`] write new logs.
//! - [`columns`](rovelog_core::TopicRef#method.columns) and `VelReader::point_batches` return
//!   topics and points as Arrow record batches (feature `arrow`).
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "arrow")]
mod columns;
pub mod declared;
pub mod diagnostics;
mod edit;
mod entries;
mod error;
mod explain;
pub mod gps;
pub mod hash;
pub mod images;
mod indexing;
pub mod laser;
mod locate;
mod message;
mod partial;
pub mod pose;
mod reader;
mod scan;
mod schema;
mod state;
mod stream;
mod structure;
mod topics;
mod usage;
mod validate;
pub mod velodyne;
pub mod wire;
mod writer;

use std::io::Write;
use std::ops::Range;
use std::path::Path;

use rovelog_core::backend::Backend;
use rovelog_core::internal::edit::Edit;
use rovelog_core::internal::partial::{Ranges, Unread};

use rovelog_core::{
    Align, Around, Bytes, Diagnostics, FormatInfo, LogInfo, Merged, Records, Recovery, Sliced, Structure,
    Topic, TopicId, Usage,
};

#[cfg(feature = "arrow")]
pub use columns::PointBatches;
pub use error::VelError;
pub use explain::Choice;
pub use hash::simple_hash;
pub use indexing::{IndexOrigin, IndexState};
pub use message::{Kind, Message, Payload, SizeRule};
pub use reader::VelReader;
pub use state::Meaning;
pub use stream::VelStream;
pub use writer::{NewMessage, VelWriter, WriteOptions, Written, write_log};

// These items are re-exported for users who depend on this crate alone.
pub use rovelog_core;
pub use rovelog_core::{
    Error, Format, LogReader, LogStream, OpenOptions, ReadOptions, RecoverOptions, Result, Select,
};

/// The VEL format.
#[derive(Clone, Copy, Debug)]
pub struct Vel;

impl Format for Vel {
    const INFO: FormatInfo = wire::INFO;
    type Reader = VelReader;
    type Stream = VelStream<Box<dyn std::io::Read + Send>>;

    /// Opens a log, even if its first bytes are wrong. Detection selects this format for such a
    /// file only if the user requests it. Opening fails if the file has no message.
    fn open(bytes: Bytes, options: &ReadOptions) -> Result<VelReader> {
        Ok(VelReader::salvage(bytes, options)?)
    }

    fn outline(file: &dyn Ranges) -> Result<()> {
        partial::outline(file)
    }

    fn stream(input: Box<dyn std::io::Read + Send>, options: &ReadOptions) -> Result<Self::Stream> {
        Ok(VelStream::salvage(input, options)?)
    }

    fn merge(logs: &[&VelReader], align: Align, out: &mut dyn Write) -> Result<Merged> {
        Ok(edit::merge(logs, align, out)?)
    }
}

impl VelReader {
    /// Opens a VEL log with the default options. The file is read into memory.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or is not a VEL log. Damage is not an error:
    /// [`diagnostics`](LogReader::diagnostics) lists it.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::options().open(path)
    }

    /// Opens a VEL log in memory with the default options.
    ///
    /// # Errors
    /// Returns an error if the bytes are not a VEL log.
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Result<Self> {
        Self::options().from_bytes(bytes)
    }

    /// Returns the options for opening a VEL log.
    ///
    /// ```no_run
    /// let log = vel_format::VelReader::options().strict(true).open("drive.vel")?;
    /// # Ok::<(), vel_format::Error>(())
    /// ```
    pub fn options() -> OpenOptions<Vel> {
        OpenOptions::new()
    }
}

impl LogReader for VelReader {
    fn format(&self) -> &'static FormatInfo {
        &wire::INFO
    }

    fn info(&self) -> &LogInfo {
        &self.info
    }

    fn topics(&self) -> &[Topic] {
        &self.summary.topics.list
    }

    fn diagnostics(&self) -> &Diagnostics {
        &self.scanner.diagnostics
    }

    fn usage(&self) -> Vec<Usage> {
        usage::usage(self)
    }

    fn recover(&self, out: &mut dyn Write, _: &RecoverOptions) -> Result<Recovery> {
        self.check_memory()?;
        Ok(edit::recover(self, out)?.with_packing(self.info.size, self.diagnostics()))
    }

    fn slice(&self, select: &Select, out: &mut dyn Write) -> Result<Sliced> {
        self.check_memory()?;
        Ok(edit::slice(self, select, out)?)
    }
}

impl Backend for VelReader {
    fn as_log(&self) -> &dyn LogReader {
        self
    }

    fn read_records<'a>(&'a self, select: &Select) -> Records<'a> {
        let places = self.selected(select);
        Box::new(places.filter_map(|place| self.record(&self.entries[place])).map(Ok))
    }

    #[cfg(feature = "arrow")]
    fn read_columns<'a>(&'a self, topic: TopicId, select: &Select) -> Result<rovelog_core::Batches<'a>> {
        Ok(Box::new(self.topic_batches(topic, select)?))
    }

    fn topic_definition(&self, topic: TopicId) -> Option<String> {
        self.summary.topics.list.get(topic.index())?.schema.as_deref().map(schema::definition)
    }

    fn rewrite(&self, edit: &mut Edit<'_>, out: &mut dyn Write) -> Result<()> {
        Ok(edit::rewrite(self, edit, out).map_err(VelError::from)?)
    }

    fn structure_at(&self, around: Around) -> Structure {
        structure::structure_at(self, around)
    }

    fn unread(&self) -> Option<&Unread> {
        Some(&self.unread)
    }

    fn needed(&self, select: &Select) -> Option<Vec<Range<u64>>> {
        self.still_needed(select)
    }
}
