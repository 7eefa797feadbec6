//! RocketLogger RLD logs (`.rld`), read, repaired, measured and written whole: file versions 1 to 4, split
//! recordings, truncated files and those with the known faults of their writers.
//!
//! ```no_run
//! use rld_format::{Rld, RldReader};
//! use rovelog_core::{Format, LogReader, ReadOptions};
//!
//! let bytes = std::fs::read("power.rld")?;
//! let log = Rld::open(bytes.into(), &ReadOptions::default())?;
//! println!("{} rows, {:?}", log.rows(), log.info().state);
//!
//! let v1 = log.channel("V1")?;
//! if let Some(row) = log.row(1000) {
//!     println!("{:?} V, raw {:?}", row.physical(v1), row.raw(v1));
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The crate has these levels, lowest first; each is usable without those above it:
//!
//! - [`wire`]: the bytes, declared in the specification's order, and the table of versions; reads and writes.
//! - [`layout`] and [`mod@unit`]: where rows and values lie, and how raw integers become physical values.
//! - `frame` (private): one judgement of a file by its header and its length, for all readers.
//! - [`RldReader`]: random access to files in memory or mapped, split recordings as one log, any row in constant
//!   time; [`RldStream`]: one pass over a pipe. [`Row`] reads bits, raw and physical values in place.
//! - [`clock`]: what stamps say, and the axes on which rows stand.
//! - [`analysis`]: merged currents, exact statistics, charge and energy, windows, events, states, levels.
//! - `RldReader::batches`: rows as Arrow record batches (feature `arrow`).
//! - [`mod@recover`], [`scrub`], [`writer`], [`csv`], [`calibration`]: logs made of logs, and from scratch; the
//!   logger's other files.
//!
//! What was noticed in the bytes is a [`Diagnostic`](rovelog_core::Diagnostic); [`diagnostics`] lists them all.
#![forbid(unsafe_code)]

pub mod analysis;
mod bits;
pub mod calibration;
pub mod clock;
#[cfg(feature = "arrow")]
pub mod columns;
pub mod csv;
pub mod diagnostics;
mod error;
mod frame;
pub mod layout;
mod opening;
pub mod parts;
mod reader;
pub mod recover;
mod reshape;
mod row;
mod schema;
pub mod scrub;
mod stream;
mod summary;
pub mod unit;
mod usage;
mod watch;
pub mod wire;
pub mod writer;

use rovelog_core::reader::Companion;
use rovelog_core::{Align, Bytes, Format, FormatInfo, Merged, ReadOptions, Result, Signature};

#[cfg(feature = "arrow")]
pub use columns::{ColumnOptions, Merging, RldBatches, Values};
pub use error::RldError;
pub use reader::{RldReader, Runs};
pub use recover::recover;
pub use row::Row;
pub use schema::Channel;
pub use stream::RldStream;
pub use summary::{AMBIENT, SAMPLES};
pub use writer::{ChannelSpec, LogSpec, RldWriter, SplitWriter};

/// The format's id.
pub(crate) const ID: &str = "rld";

static INFO: FormatInfo = Rld::INFO;

/// The RLD format.
#[derive(Clone, Copy, Debug)]
pub struct Rld;

impl Format for Rld {
    const INFO: FormatInfo = FormatInfo {
        id: ID,
        name: "RLD",
        about: "RocketLogger power and sensor log",
        extensions: &["rld"],
        signatures: &[Signature(&wire::MAGIC), Signature(&wire::MAGIC_V1)],
    };
    type Reader = RldReader;
    type Stream = RldStream<Box<dyn std::io::Read + Send>>;

    fn open(bytes: Bytes, options: &ReadOptions) -> Result<RldReader> {
        Ok(RldReader::new(bytes, options)?)
    }

    fn stream(input: Box<dyn std::io::Read + Send>, options: &ReadOptions) -> Result<Self::Stream> {
        Ok(RldStream::new(input, options)?)
    }

    fn companions(name: &str, exists: &dyn Fn(&str) -> bool) -> Vec<String> {
        parts::companions(name, exists)
    }

    fn open_with(bytes: Bytes, companions: Vec<Companion>, options: &ReadOptions) -> Result<RldReader> {
        Ok(parts::open(bytes, companions, options)?)
    }

    /// Joins the parts of a split recording, given in any order. They have one clock, so nothing is aligned.
    fn merge(logs: &[&RldReader], _: Align, out: &mut dyn std::io::Write) -> Result<Merged> {
        Ok(reshape::merge(logs, out)?)
    }
}
