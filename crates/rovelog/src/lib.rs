#![doc = include_str!("../README.md")]
//!
//! # Inspect
//!
//! [`info`](LogReader::info) returns the summary, [`topics`](LogReader::topics) the recorded
//! topics, and [`diagnostics`](LogReader::diagnostics) every problem found in the bytes.
//!
//! ```no_run
//! let log = rovelog::open("flight.ulg")?;
//! let info = log.info();
//! println!("{}, {} bytes lost, {:?} to {:?}", info.state.name(), info.lost.bytes, info.start, info.end);
//! for topic in log.topics() {
//!     println!("{} ({}): {} records, {:?} Hz", topic.name, topic.type_name, topic.count, topic.rate_hz());
//! }
//! for problem in log.diagnostics().list() {
//!     println!("{} bytes {:?}: {}", problem.rule.code, problem.range, problem.message);
//! }
//! # Ok::<(), rovelog::Error>(())
//! ```
//!
//! # Iterate
//!
//! [`records`](LogReader::records) yields records in time order; [`open_stream`] reads a pipe and
//! yields them in file order.
//!
//! ```no_run
//! use rovelog::{ReadOptions, Select};
//!
//! let log = rovelog::open("flight.ulg")?;
//! for record in log.records(&Select::topic("vehicle_attitude")) {
//!     let record = record?;
//!     println!("{:?} {}", record.time, record.value()?.to_json());
//! }
//!
//! let mut pipe = rovelog::open_stream(Box::new(std::io::stdin()), &ReadOptions::default())?;
//! while let Some(record) = pipe.next_record()? {
//!     println!("{} {:?}", record.topic.name, record.time);
//! }
//! # Ok::<(), rovelog::Error>(())
//! ```
//!
//! # Columns
//!
//! With the feature `arrow`, [`columns`](rovelog_core::LogReader#method.columns) returns a topic as
//! Arrow record batches: the time `t_ns`, then its fields.
//! [`batches`](rovelog_core::LogReader#method.batches) returns all topics.
//!
//! ```no_run
//! # use rovelog::Select;
//! # let log = rovelog::open("flight.ulg")?;
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
//! A new log: the writer of the format's crate. Several logs as one: [`merge`].
//!
//! # Recover
//!
//! [`recover`](LogReader::recover) writes every intact record of a damaged log to a new file and
//! accounts for every byte; [`slice`](LogReader::slice) writes a part by topic and time.
//!
//! ```no_run
//! use rovelog::RecoverOptions;
//!
//! let log = rovelog::open("flight.ulg")?;
//! let mut intact = std::fs::File::create("intact-flight.ulg")?;
//! let recovery = log.recover(&mut intact, &RecoverOptions::default())?;
//! println!("{} records kept, {} bytes lost", recovery.records, recovery.lost_bytes());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Levels
//!
//! [`open`] returns an [`AnyLog`]. It dereferences to the trait [`LogReader`], which every format
//! implements; a `match` on it gives access to format-specific functions.
//!
//! The levels, from the outside in: [`open`], [`from_bytes`] and [`open_stream`] detect and open;
//! [`detect`] only reads the first bytes; the format crates, re-exported under their own names,
//! have their readers and declarations; [`core`] has the types that they share.
//!
//! # Features
//! - `arrow` (default): topics as Arrow record batches.
//! - `mmap` (default): files of 1 MiB and more are mapped, not read. If another process shortens a
//!   mapped file while it is read, this process ends with `SIGBUS`. [`install_sigbus_handler`] adds
//!   a message; [`open_watched`] turns it into an error. Without the feature, every file is read
//!   whole.
//! - `rosbag` (default): ROS 1 bags: V2.0, V1.2 and earlier.
//! - `compressed` (default): logs that are compressed as a whole by gzip, bzip2, xz, zstd or lz4, and
//!   logs in archives: zip and tar.
//! - `ulog` (default): PX4 flight logs.
//! - `events` (default): texts of PX4 events, from the definitions in the log.
//! - `rld` (default): power and sensor logs of the RocketLogger.
//! - `vel` (default): VEL multi-sensor logs (University of Koblenz).
//! - `calibration` (default): calibrations of a Velodyne HDL-64E, from its `db.xml`.
//! - `pixels` (default): decoded images of VEL logs; adds decoders for JPEG and PNG.

#[cfg(feature = "compressed")]
mod archive;
mod detect;
mod file;
mod formats;
#[cfg(feature = "arrow")]
mod health;
mod magic;
#[cfg(feature = "mmap")]
mod mmap;
mod open;
mod options;
#[cfg(feature = "compressed")]
mod packed;
mod watch;

#[cfg(feature = "compressed")]
pub use archive::{logs_in_archive, metadata, source};
pub use detect::{Detection, Sign, detect};
pub use file::{is_address, refuse_device};
pub use formats::*;
#[cfg(feature = "arrow")]
pub use health::health;
#[cfg(feature = "mmap")]
pub use mmap::{install_abort_handler, install_sigbus_handler};
pub use open::{
    companions, from_bytes, from_bytes_as, open, open_as, open_stream, open_stream_as, open_watched,
    open_with, outline,
};
pub use options::{AnyFormat, options};
pub use watch::Watch;

pub use rovelog_core as core;
pub use rovelog_core::{
    Align, Bytes, Clock, Detail, Diagnostic, Diagnostics, Error, ErrorKind, Field, FieldType, Format,
    FormatInfo, Ledger, Limits, LogInfo, LogReader, LogStream, Merged, Payload, ReadOptions, Record, Records,
    RecoverOptions, Recovery, Result, Rule, Scalar, Schema, Segment, Select, Severity, Sliced, State, Text,
    Timestamp, Topic, TopicId, TopicRef, Usage, UtcKnot, UtcOffset, Value,
};
