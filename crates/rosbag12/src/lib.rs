//! ROS bags of V1.2 and before, read and written whole: indexed or not, crashed, cut or damaged, and no ROS
//! installed.
//!
//! ```no_run
//! use rosbag12::Rosbag;
//! use rovelog_core::{Format, LogReader, ReadOptions, Select};
//!
//! let bytes = std::fs::read("2010-05-29.bag")?;
//! let bag = Rosbag::open(bytes.into(), &ReadOptions::default())?;
//! println!("{} messages, {:?}", bag.info().records, bag.info().state);
//! for record in bag.records(&Select::topic("/base_scan")) {
//!     println!("{}", record?.value()?.to_json());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The crate has these levels, lowest first; each is usable without those above it:
//!
//! - [`wire`]: the bytes, declared in the specification's order; reads and writes.
//! - [`header`]: a record's header as a borrowed view.
//! - `frame`, `resync`, `shapes`, `old` (private): one walk over the records of sound and damaged bags.
//! - [`msg`]: message definitions, their sums, and plans that decode payloads; it knows no bag.
//! - [`BagReader`]: random access to a bag in memory or in a mapped file; [`BagStream`]: one pass over a
//!   pipe, in bounded memory. Both hand out [`Record`](rovelog_core::Record)s.
//! - [`mod@recover`]: what a damaged bag still holds, with an account of every byte; slices and merged bags.
//! - [`writer`]: V1.2 bags, byte for byte as the original recorder wrote them.
//! - [`BagReader::topic_batches`] and its siblings: topics as Arrow record batches (feature `arrow`).
//!
//! What was noticed in the bytes is a [`Diagnostic`](rovelog_core::Diagnostic); [`diagnostics`] lists them all.
#![forbid(unsafe_code)]

#[cfg(feature = "arrow")]
mod columns;
mod console;
mod definitions;
pub mod diagnostics;
mod error;
mod frame;
pub mod header;
mod index;
pub mod msg;
mod notes;
mod old;
mod options;
mod reader;
pub mod recover;
mod reshape;
mod resync;
mod rewrite;
mod sections;
mod shapes;
mod stream;
mod summary;
mod tables;
pub mod unpack;
mod usage;
mod version;
mod window;
pub mod wire;
pub mod writer;

use std::io::Write;

use rovelog_core::{Align, Bytes, Format, FormatInfo, Merged, ReadOptions, Result, Signature};

#[cfg(feature = "arrow")]
pub use columns::{ColumnBatches, TopicBatches};
pub use definitions::{Definition, Source};
pub use error::BagError;
pub use options::BagOptions;
pub use reader::{BagReader, Publisher};
pub use sections::{Differences, IndexState, IndexTopic, Section};
pub use stream::BagStream;
pub use tables::Connection;
pub use version::Version;
pub use writer::{BagWriter, ConnectionId};

/// The format's id.
pub(crate) const ID: &str = "rosbag";

static INFO: FormatInfo = Rosbag::INFO;

/// The format of ROS bags of V1.2 and before.
#[derive(Clone, Copy, Debug)]
pub struct Rosbag;

impl Format for Rosbag {
    const INFO: FormatInfo = FormatInfo {
        id: ID,
        name: "ROS bag",
        about: "ROS bag of V1.2 and before",
        extensions: &["bag"],
        signatures: &[Signature(b"#ROSRECORD V1."), Signature(b"#ROSLOG V1."), Signature(b"#ROSBAG V1.")],
    };
    type Reader = BagReader;
    type Stream = BagStream<'static, Box<dyn std::io::Read + Send>>;

    fn open(bytes: Bytes, options: &ReadOptions) -> Result<BagReader> {
        Ok(BagReader::new(bytes, &BagOptions::from(options))?)
    }

    fn stream(input: Box<dyn std::io::Read + Send>, options: &ReadOptions) -> Result<Self::Stream> {
        Ok(stream::open(input, options)?)
    }

    fn merge(logs: &[&BagReader], align: Align, out: &mut dyn Write) -> Result<Merged> {
        Ok(reshape::merge(logs, align, out)?)
    }
}
