#![doc = include_str!("../README.md")]
//!
//! # Open
//!
//! [`BagReader::open`] opens a file, [`BagReader::from_bytes`] opens a bag in memory or in a mapped
//! file, and [`BagReader::options`] sets options before opening. [`Rosbag::stream`](Format::stream)
//! reads a pipe and buffers only a part of the bag. An error means that nothing can be read. Damage
//! is not an error. [`BagReader::new`] and [`BagStream::new`] take [`BagOptions`], which contain
//! [`ReadOptions`] and options that only bags have, such as definitions that a bag lacks.
//!
//! ```no_run
//! use rosbag12::{BagReader, Format, LogStream, ReadOptions, Rosbag};
//!
//! let log = BagReader::open("2010-05-29.bag")?;
//!
//! let mut pipe = Rosbag::stream(Box::new(std::io::stdin()), &ReadOptions::default())?;
//! while let Some(record) = pipe.next_record()? {
//!     println!("{} {:?}", record.topic.name, record.time);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Inspect
//!
//! [`info`](LogReader::info) returns the summary, [`topics`](LogReader::topics) what was recorded,
//! and [`diagnostics`](LogReader::diagnostics) every problem found in the bytes;
//! [`mod@diagnostics`] lists the rules.
//!
//! ```no_run
//! # use rosbag12::{BagReader, LogReader};
//! # let log = BagReader::open("2010-05-29.bag")?;
//! let info = log.info();
//! println!("{}, {} bytes lost, {:?} to {:?}", info.state.name(), info.lost.bytes, info.start, info.end);
//! for topic in log.topics() {
//!     println!("{} ({}): {} records, {:?} Hz", topic.name, topic.type_name, topic.count, topic.rate_hz());
//! }
//! for problem in log.diagnostics().list() {
//!     println!("{} bytes {:?}: {}", problem.rule.code, problem.range, problem.message);
//! }
//! for connection in log.connections() {
//!     let topic = String::from_utf8_lossy(&connection.topic);
//!     println!("{topic}: {:?}", connection.definition().map(|definition| definition.source.name()));
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Iterate
//!
//! [`records`](LogReader::records) returns records in time order, `records_in_file_order` in the
//! order of the file. [`BagReader::scan`] visits payloads without decoding them; [`msg`] decodes
//! payloads from other sources.
//!
//! ```no_run
//! # use rosbag12::{BagReader, LogReader, Select};
//! # let log = BagReader::open("2010-05-29.bag")?;
//! for record in log.records(&Select::topic("/base_scan")) {
//!     let record = record?;
//!     println!("{:?} {}", record.time, record.value()?.to_json());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Columns
//!
//! With the feature `arrow`, [`columns`](rovelog_core::TopicRef#method.columns) returns a topic as
//! Arrow record batches: the time `t_ns`, then its fields. `BagReader::batches` returns all topics
//! in one pass.
//!
//! ```no_run
//! # use rosbag12::{BagReader, LogReader, Select};
//! # let log = BagReader::open("2010-05-29.bag")?;
//! # #[cfg(feature = "arrow")]
//! if let Some(topic) = log.topic("/base_scan") {
//!     for batch in topic.columns(&Select::all())? {
//!         println!("{} rows", batch?.num_rows());
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Write
//!
//! [`BagWriter`] writes V1.2 as the original recorder did, [`v2::Writer`] V2.0;
//! [`BagReader::reindex`] writes a bag with a new index.
//!
//! ```
//! use rosbag12::{BagOptions, BagReader, BagWriter, LogReader};
//!
//! let mut bag = BagWriter::new(std::io::Cursor::new(Vec::new()))?;
//! let sum = b"992ce8a1687cec8c8bd883ec73ca41d1";
//! let chatter = bag.connect(b"/chatter", b"std_msgs/String", sum, b"string data\n")?;
//! bag.message(chatter, 1_270_000_000, 0, None, b"\x02\0\0\0hi")?;
//! let bytes = bag.finish()?.into_inner();
//!
//! let bag = BagReader::new(bytes.into(), &BagOptions::default())?;
//! let first = bag.records_in_file_order().next().ok_or("no record")?;
//! assert_eq!(first.value()?.to_json(), r#"{"data":"hi"}"#);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Recover
//!
//! [`recover`](LogReader::recover) writes every intact message of a damaged bag to a new file and
//! accounts for every byte. [`slice`](LogReader::slice) writes a part by topic and time;
//! [`Rosbag::merge`](Format::merge) joins several bags.
//!
//! ```no_run
//! # use rosbag12::{BagReader, LogReader, RecoverOptions};
//! # let log = BagReader::open("2010-05-29.bag")?;
//! let mut recovered = std::fs::File::create("2010-05-29-recovered.bag")?;
//! let recovery = log.recover(&mut recovered, &RecoverOptions::default())?;
//! println!("{} records kept, {} bytes lost", recovery.records, recovery.lost_bytes());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Levels
//!
//! From low to high. Each level can be used without those above it.
//!
//! - [`wire`] and [`v2::wire`]: structures of the format, in the order of the specification. They are
//!   used for reading and writing.
//! - `scan`, `validate`, `shapes`, `old` (private): one scanner for the records of valid and damaged
//!   bags.
//! - [`msg`]: message definitions, their md5 sums and their layouts. It does not depend on bags.
//! - [`BagReader`]: random access to a bag in memory or in a mapped file. [`BagStream`]: one pass over
//!   a stream, in bounded memory. Both return [`Record`](rovelog_core::Record)s.
//! - [`LogReader::recover`]: writes every intact message of a damaged bag, and accounts for every
//!   byte.
//! - [`LogReader::slice`] and [`Rosbag::merge`](Format::merge): write a part of a bag, or several
//!   bags, as a new bag.
//! - [`BagWriter`]: writes V1.2 bags, byte for byte like the original recorder. [`v2::Writer`]:
//!   writes V2.0 bags.
//! - [`columns`](rovelog_core::TopicRef#method.columns) and `BagReader::batches`: return topics as
//!   Arrow record batches (feature `arrow`).
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "arrow")]
mod columns;
mod console;
mod definitions;
pub mod diagnostics;
mod edit;
mod error;
mod headers;
mod index;
mod index_offsets;
mod info;
mod message;
pub mod msg;
mod old;
mod options;
mod position;
mod reader;
mod reports;
mod scan;
mod sections;
mod shapes;
mod start;
mod stream;
mod structure;
mod tables;
mod usage;
pub mod v2;
mod validate;
mod version;
pub mod wire;
mod writer;

use std::io::Write;
use std::ops::Range;
use std::path::Path;

use rovelog_core::backend::Backend;
use rovelog_core::internal::edit::Edit;
use rovelog_core::internal::layout::EscapedTexts;
use rovelog_core::internal::partial::{Ranges, Unread};
use rovelog_core::reader::Texts;
use rovelog_core::{
    Align, Around, Bytes, Diagnostics, FormatInfo, Ledger, LogInfo, Merged, Records, Recovery, Sliced,
    Structure, Topic, TopicId, Usage,
};

#[cfg(feature = "arrow")]
pub use columns::ColumnBatches;
pub use definitions::{Definition, Source};
pub use edit::{LostMessage, Part};
pub use error::BagError;
pub use message::Publisher;
pub use options::BagOptions;
pub use reader::BagReader;
pub use sections::{Differences, IndexState, IndexTopic, Section};
pub use stream::BagStream;
pub use tables::Connection;
pub use version::Version;
pub use writer::{BagWriter, ConnectionId};

// `rovelog_core` is exported again, so that users of this crate need no dependency on
// `rovelog-core`.
pub use rovelog_core;
pub use rovelog_core::{
    Error, Format, LogReader, LogStream, OpenOptions, ReadOptions, RecoverOptions, Result, Select,
};

/// The format of ROS 1 bags: V2.0, V1.2 and earlier versions.
#[derive(Clone, Copy, Debug)]
pub struct Rosbag;

impl Format for Rosbag {
    const INFO: FormatInfo = FormatInfo { recognizes: Some(start::recognizes), ..wire::INFO };
    type Reader = BagReader;
    type Stream = BagStream<Box<dyn std::io::Read + Send>>;

    fn open(bytes: Bytes, options: &ReadOptions) -> Result<BagReader> {
        Ok(BagReader::new(bytes, &BagOptions::from(options))?)
    }

    fn outline(file: &dyn Ranges) -> Result<()> {
        v2::partial::outline(file)
    }

    fn stream(input: Box<dyn std::io::Read + Send>, options: &ReadOptions) -> Result<Self::Stream> {
        Ok(BagStream::new(input, &BagOptions::from(options))?)
    }

    fn merge(logs: &[&BagReader], align: Align, out: &mut dyn Write) -> Result<Merged> {
        Ok(edit::merge(logs, align, out)?)
    }
}

impl BagReader {
    /// Opens a bag with the default options. The file is read into memory.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or is not a bag. Damage is not an error.
    /// [`diagnostics`](LogReader::diagnostics) lists it.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::options().open(path)
    }

    /// Opens a bag in memory with the default options.
    ///
    /// # Errors
    /// Returns an error if the bytes are not a bag.
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Result<Self> {
        Self::options().from_bytes(bytes)
    }

    /// Returns the options with which a bag is opened.
    ///
    /// ```no_run
    /// let log = rosbag12::BagReader::options().strict(true).open("drive.bag")?;
    /// # Ok::<(), rosbag12::Error>(())
    /// ```
    pub fn options() -> OpenOptions<Rosbag> {
        OpenOptions::new()
    }
}

impl LogReader for BagReader {
    fn format(&self) -> &'static FormatInfo {
        &wire::INFO
    }

    fn info(&self) -> &LogInfo {
        &self.info
    }

    fn losses(&self) -> &Ledger {
        self.current_losses()
    }

    fn verify(&self) -> &Ledger {
        self.compared_losses()
    }

    fn topics(&self) -> &[Topic] {
        &self.scanner.tables.topics
    }

    fn texts(&self) -> Option<Texts<'_>> {
        Some(Box::new(console::texts(self)))
    }

    fn diagnostics(&self) -> &Diagnostics {
        &self.scanner.diagnostics
    }

    fn usage(&self) -> Vec<Usage> {
        usage::usage(self.scanned().as_deref().unwrap_or(self))
    }

    fn recover(&self, out: &mut dyn Write, _: &RecoverOptions) -> Result<Recovery> {
        self.check_memory()?;
        Ok(edit::recover(self, out)?.with_packing(self.bytes.len() as u64, self.diagnostics()))
    }

    fn slice(&self, select: &Select, out: &mut dyn Write) -> Result<Sliced> {
        self.check_memory()?;
        Ok(edit::slice(self, select, out)?)
    }
}

impl Backend for BagReader {
    fn as_log(&self) -> &dyn LogReader {
        self
    }

    fn buffer_bytes(&self) -> usize {
        v2::buffer_bytes(&self.scanner.content.chunks)
    }

    fn read_records<'a>(&'a self, select: &Select) -> Records<'a> {
        if self.is_chunked() {
            return Box::new(self.chunked_by_time(select));
        }
        Box::new(self.places(select).map(|place| Ok(self.record_at(place)?)))
    }

    #[cfg(feature = "arrow")]
    fn read_columns<'a>(&'a self, topic: TopicId, select: &Select) -> Result<rovelog_core::Batches<'a>> {
        Ok(Box::new(self.topic_batches(topic, select)?))
    }

    #[cfg(feature = "arrow")]
    fn read_batches<'a>(&'a self, select: &Select) -> rovelog_core::TopicBatches<'a> {
        Box::new(self.batches(select))
    }

    #[cfg(feature = "arrow")]
    fn undecodable(&self, select: &Select) -> Vec<(TopicId, u64)> {
        self.without_row(select)
    }

    fn topic_definition(&self, topic: TopicId) -> Option<String> {
        let connection = self.connections().get(topic.index())?;
        let records = &self.scanner.tables.definitions.records;
        let own = records.text_of(&connection.topic, &connection.ty, &connection.md5);
        let own = own.filter(|text| !text.is_empty() || connection.definition().is_none());
        let text = own.or_else(|| connection.definition().map(|definition| &*definition.text))?;
        Some(String::from_utf8_lossy(text).into_owned())
    }

    fn take_escaped_texts(&self) -> Vec<EscapedTexts> {
        self.scanner.tables.definitions.decoding.take_escaped()
    }

    fn rewrite(&self, edit: &mut Edit<'_>, out: &mut dyn Write) -> Result<()> {
        Ok(edit::rewrite(self.scanned().as_deref().unwrap_or(self), edit, out)?)
    }

    fn structure_at(&self, around: Around) -> Structure {
        structure::structure_at(self, around)
    }

    fn unread(&self) -> Option<&Unread> {
        Some(&self.options.read.unread)
    }

    fn needed(&self, select: &Select) -> Option<Vec<Range<u64>>> {
        self.needed_chunks(select)
    }
}
