#![doc = include_str!("../README.md")]
//!
//! # Inspect
//!
//! - [`info`](LogReader::info) returns the summary.
//! - [`topics`](LogReader::topics) returns the recorded topics.
//! - [`diagnostics`](LogReader::diagnostics) returns every problem that was found in the bytes.
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
//! [`records`](LogReader::records) returns records in time order. [`open_stream`] reads a pipe and
//! returns records in file order.
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
//! Arrow record batches. Their columns are the time `t_ns` and the fields of the topic.
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
//! The crate of each format has a writer for new logs. [`merge`] combines several logs to one.
//!
//! # Recover
//!
//! [`recover`](LogReader::recover) writes every intact record of a damaged log to a new file and
//! accounts for every byte. [`slice`](LogReader::slice) writes a part of a log, selected by topic
//! and time.
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
//! implements. Use `match` on it to call format-specific functions.
//!
//! The API has four levels:
//!
//! - [`open`], [`from_bytes`] and [`open_stream`] detect the format and open the log.
//! - [`detect`] only detects the format from the first bytes.
//! - The format crates are re-exported under their own names. They have the readers, writers and
//!   declarations of the formats.
//! - [`core`] has the types that all formats share.
//!
//! # Features
//! All features are enabled by default.
//!
//! - `arrow`: returns topics as Arrow record batches.
//! - `mmap`: maps files of at least 1 MiB instead of reading them. If another process shortens a
//!   mapped file while it is read, this process receives `SIGBUS`. [`install_sigbus_handler`] adds
//!   a message, and [`open_watched`] returns an error instead. Without the feature, every file is
//!   read into memory.
//! - `compressed`: opens logs that are compressed as a whole by gzip, bzip2, xz, zstd or lz4, and
//!   logs in zip and tar archives.
//! - `rosbag`: ROS 1 bags of the versions V2.0, V1.2 and earlier.
//! - `ulog`: PX4 flight logs.
//! - `events`: texts of PX4 events, from the definitions in the log.
//! - `rld`: power and sensor logs of the RocketLogger.
//! - `vel`: VEL multi-sensor logs of the University of Koblenz.
//! - `calibration`: calibrations of a Velodyne HDL-64E, from its `db.xml`.
//! - `pixels`: decoded images of VEL logs, with decoders for JPEG and PNG.
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "compressed")]
mod archive;
mod companions;
mod detect;
mod file;
mod formats;
#[cfg(feature = "arrow")]
mod health;
mod magic;
#[cfg(feature = "mmap")]
mod mmap;
mod open;
#[cfg(feature = "compressed")]
mod packed;
mod watch;

#[cfg(feature = "compressed")]
pub use archive::{logs_in_archive, metadata, source, sources};
pub use companions::{companions_by_name, format_by_name, group_by_log};
pub use detect::{Detection, Sign, detect};
pub use file::{is_address, refuse_device};
pub use formats::*;
#[cfg(feature = "arrow")]
pub use health::{health, health_with};
#[cfg(feature = "mmap")]
pub use mmap::{install_abort_handler, install_sigbus_handler};
pub use open::{
    companions, from_bytes, from_bytes_as, from_files, open, open_as, open_stream, open_stream_as,
    open_watched, open_with, outline,
};
pub use watch::Watch;

pub use rovelog_core as core;
pub use rovelog_core::{
    Align, Bytes, Clock, Detail, Diagnostic, Diagnostics, Error, ErrorKind, Field, FieldType, Format,
    FormatInfo, Ledger, Limits, LogInfo, LogReader, LogStream, Merged, Payload, ReadOptions, Record, Records,
    RecoverOptions, Recovery, Result, Rule, Scalar, Schema, Segment, Select, Severity, Sliced, State, Text,
    Timestamp, Topic, TopicId, TopicRef, Usage, UtcKnot, UtcOffset, Value,
};
