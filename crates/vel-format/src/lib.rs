//! VEL logs (`.vel`) of mixed sensors, read and written whole: Velodyne clouds, laser scans, images, GPS, pose
//! and vehicle data, damaged logs included.
//!
//! ```no_run
//! use rovelog_core::{Format, LogReader, ReadOptions};
//! use vel_format::Vel;
//!
//! let bytes = std::fs::read("drive.vel")?;
//! let log = Vel::open(bytes.into(), &ReadOptions::default())?;
//! println!("{} records, {:?}", log.info().records, log.info().state);
//!
//! // What the specification leaves open is settled from the file, and said.
//! for choice in log.choices() {
//!     println!("{}: {} ({})", choice.what, choice.choice, choice.evidence);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The crate has these levels, lowest first; each is usable without those above it:
//!
//! - [`wire`]: the bytes, declared in the specification's order; reads and writes.
//! - [`message`]: the same messages as borrowed views.
//! - [`declared`] and [`hash`]: message types of your own, and how ids come from names.
//! - `frame`, `locate` and `plausible` (private): one walk over the messages of sound and damaged logs.
//! - [`VelReader`]: random access to a log in memory or in a mapped file; [`VelStream`]: one pass over a pipe, in
//!   bounded memory. Both hand out [`Record`](rovelog_core::Record)s.
//! - [`velodyne`], [`laser`], [`images`], [`gps`], [`pose`]: what the sensors mean: points, revolutions, scans,
//!   pixels, UTC, orientation.
//! - [`mod@recover`]: the best sound log that a damaged one still holds, with an account of every byte.
//! - [`reshape`]: parts of a log, and several logs, as one of their own.
//! - [`writer`]: logs from scratch, and rewriting byte for byte.
//! - [`VelReader::topic_batches`] and its siblings: topics and points as Arrow record batches (feature `arrow`).
//!
//! What was noticed in the bytes is a [`Diagnostic`](rovelog_core::Diagnostic); [`diagnostics`] lists them all.
#![forbid(unsafe_code)]

#[cfg(feature = "arrow")]
mod columns;
pub mod declared;
pub mod diagnostics;
mod error;
pub mod explain;
mod frame;
pub mod gps;
pub mod hash;
pub mod images;
mod indexing;
pub mod laser;
mod locate;
pub mod message;
mod plausible;
pub mod pose;
mod reader;
pub mod recover;
pub mod reshape;
pub mod schema;
mod stream;
mod summary;
mod usage;
pub mod velodyne;
mod window;
pub mod wire;
pub mod writer;

use std::io::Write;

use rovelog_core::{Align, Bytes, Format, FormatInfo, Merged, ReadOptions, Result, Signature};

#[cfg(feature = "arrow")]
pub use columns::{PointBatches, TopicBatches};
pub use error::VelError;
pub use explain::Choice;
pub use hash::simple_hash;
pub use indexing::{IndexOrigin, IndexState};
pub use message::{Kind, Message, Payload, SizeRule};
pub use reader::VelReader;
pub use recover::recover;
pub use stream::VelStream;
pub use summary::Meaning;
pub use writer::{NewMessage, VelWriter, WriteOptions};

/// The format's id.
pub(crate) const ID: &str = "vel";

static INFO: FormatInfo = Vel::INFO;

/// The VEL format.
#[derive(Clone, Copy, Debug)]
pub struct Vel;

impl Format for Vel {
    const INFO: FormatInfo = FormatInfo {
        id: ID,
        name: "VEL",
        about: "mixed-sensor log of Koblenz",
        extensions: &["vel"],
        signatures: &[Signature(&wire::MAGIC)],
    };
    type Reader = VelReader;
    type Stream = VelStream<Box<dyn std::io::Read + Send>>;

    /// A file whose first bytes are not those of a VEL log comes here only where somebody insists; it is one
    /// if messages are found in it.
    fn open(bytes: Bytes, options: &ReadOptions) -> Result<VelReader> {
        Ok(VelReader::salvage(bytes, options)?)
    }

    fn stream(input: Box<dyn std::io::Read + Send>, options: &ReadOptions) -> Result<Self::Stream> {
        Ok(VelStream::new(input, options)?)
    }

    fn merge(logs: &[&VelReader], align: Align, out: &mut dyn Write) -> Result<Merged> {
        Ok(reshape::merge(logs, align, out)?)
    }
}
