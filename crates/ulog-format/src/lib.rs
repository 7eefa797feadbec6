//! PX4 ULog (`.ulg`) flight logs, read and written whole: every message kind, every edition of the format,
//! damaged logs included.
//!
//! ```no_run
//! use rovelog_core::{Format, LogReader, ReadOptions, Select};
//! use ulog_format::Ulog;
//!
//! let bytes = std::fs::read("flight.ulg")?;
//! let log = Ulog::open(bytes.into(), &ReadOptions::default())?;
//! println!("{} records, {:?}", log.info().records, log.info().state);
//!
//! // Look a field up once, read it from every row in place.
//! for record in log.records(&Select::topic("vehicle_attitude")) {
//!     let record = record?;
//!     let row = log.row(&record)?;
//!     let q = row.layout().place("q[0]").expect("attitude has a quaternion");
//!     println!("{:?} {:?}", record.time, row.read::<f32>(q));
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The crate has these levels, lowest first; each is usable without those above it:
//!
//! - [`wire`]: the bytes, declared in the specification's order; reads and writes.
//! - [`message`]: the same messages as borrowed views.
//! - `frame` and `plausible` (private): one walk over the messages of sound and damaged logs.
//! - [`schema`] and [`layout`]: definitions found in the file, and where fields lie in a row.
//! - [`UlogReader`]: random access to a log in memory or in a mapped file; [`UlogStream`]: one pass over
//!   a pipe, in bounded memory. Both hand out [`Record`](rovelog_core::Record)s, and [`Row`] for their fields.
//! - [`typed`]: rows as structs of your own, declared with [`rows!`].
//! - [`mod@recover`]: the best sound log that a damaged one still holds, with an account of every byte.
//! - [`reshape`]: parts of a log as logs of their own, without touching the bytes of what is kept.
//! - [`writer`]: logs from scratch, copies message by message, and appending to finished logs.
//! - [`UlogReader::batches`] and its siblings: topics as Arrow record batches (feature `arrow`).
//!
//! What was noticed in the bytes is a [`Diagnostic`](rovelog_core::Diagnostic); [`diagnostics`] lists them all.
#![forbid(unsafe_code)]

mod clock;
#[cfg(feature = "arrow")]
mod columns;
mod definitions;
pub mod diagnostics;
mod dropouts;
mod error;
mod frame;
#[cfg(feature = "arrow")]
mod gather;
mod index;
pub mod layout;
pub mod message;
mod parameters;
mod parts;
mod plausible;
pub mod px4;
mod reader;
pub mod recover;
pub mod reshape;
mod row;
pub mod schema;
mod stream;
mod summary;
pub mod typed;
mod utc;
mod window;
pub mod wire;
pub mod writer;

use rovelog_core::{Align, Bytes, Format, FormatInfo, Merged, ReadOptions, Result, Signature};

#[cfg(feature = "arrow")]
pub use columns::{ColumnBatches, StreamBatches, TopicBatches};
pub use definitions::{Definitions, Subscription};
pub use dropouts::{Dropout, DropoutLoss};
pub use error::UlogError;
pub use parameters::{ParameterChange, Parameters};
pub use parts::RecordPart;
pub use reader::UlogReader;
pub use recover::recover;
pub use row::{Number, Place, Row};
pub use stream::{StreamItem, UlogStream};
pub use writer::{FormatBuilder, UlogWriter};

/// The format's id.
pub(crate) const ID: &str = "ulog";

static INFO: FormatInfo = Ulog::INFO;

/// The ULog format.
#[derive(Clone, Copy, Debug)]
pub struct Ulog;

impl Format for Ulog {
    const INFO: FormatInfo = FormatInfo {
        id: ID,
        name: "ULog",
        about: "PX4 flight log",
        extensions: &["ulg", "ulog"],
        signatures: &[Signature(&wire::MAGIC)],
    };
    type Reader = UlogReader;
    type Stream = UlogStream<Box<dyn std::io::Read + Send>>;

    fn open(bytes: Bytes, options: &ReadOptions) -> Result<UlogReader> {
        Ok(UlogReader::new(bytes, options)?)
    }

    fn stream(input: Box<dyn std::io::Read + Send>, options: &ReadOptions) -> Result<Self::Stream> {
        Ok(UlogStream::new(input, options)?)
    }

    fn merge(logs: &[&UlogReader], align: Align, out: &mut dyn std::io::Write) -> Result<Merged> {
        Ok(reshape::merge(logs, align, out)?)
    }
}
