#![doc = include_str!("../README.md")]
//!
//! # Look
//!
//! [`info`](LogReader::info) is the summary, [`topics`](LogReader::topics) what was recorded, and
//! [`diagnostics`](LogReader::diagnostics) everything that was noticed in the bytes.
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
//! [`records`](LogReader::records) hands out records in the order of time; [`open_stream`] takes a pipe and hands them
//! out as they lie in the file.
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
//! With the feature `arrow`, [`columns`](rovelog_core::LogReader#method.columns) gives a topic as Arrow record batches: the time
//! `t_ns`, then its fields. [`batches`](rovelog_core::LogReader#method.batches) gives all topics.
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
//! Logs from scratch: the format's crate. Several logs as one: [`merge`].
//!
//! # Recover
//!
//! [`recover`](LogReader::recover) writes the best sound log that a damaged one still holds, and accounts for every byte;
//! [`slice`](LogReader::slice) a part by topic and time.
//!
//! ```no_run
//! use rovelog::RecoverOptions;
//!
//! let log = rovelog::open("flight.ulg")?;
//! let mut sound = std::fs::File::create("sound-flight.ulg")?;
//! let recovery = log.recover(&mut sound, &RecoverOptions::default())?;
//! println!("{} records kept, {} bytes lost", recovery.records, recovery.lost_bytes());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Levels
//!
//! [`open`] gives an [`AnyLog`]: it derefs to the trait [`LogReader`], which every format implements;
//! a `match` on it reaches what only one format has.
//!
//! The levels, from the outside in: [`open`], [`from_bytes`] and [`open_stream`] detect and open;
//! [`detect`] only looks at the first bytes; the format crates, re-exported under their own names,
//! have their readers and declarations; [`core`] is the vocabulary that they share.
//!
//! # Features
//! - `arrow` (default): topics as Arrow record batches.
//! - `mmap` (default): files of 1 MiB and more are mapped, not read. A mapped file that another process
//!   shortens while it is read ends this process (`SIGBUS`; with words: [`end_on_shortened_log`]; with an error
//!   instead: [`open_watched`]); without the feature every file is read whole.
//! - `rosbag` (default): ROS bags of V1.2 and before.
//! - `compressed` (default): bags that are compressed as a whole, `.bag.gz` and `.bag.bz2`.
//! - `ulog` (default): the flight logs of PX4.
//! - `events` (default): their events in words, by the definitions in the log.
//! - `rld` (default): the power and sensor logs of the RocketLogger.
//! - `vel` (default): mixed-sensor logs of Koblenz.
//! - `pixels` (default): their images as pixels; brings decoders of JPEG and PNG.

mod detect;
mod formats;
#[cfg(feature = "mmap")]
mod mmap;
mod open;
mod watch;

pub use detect::{Detection, Sign, detect};
pub use formats::*;
#[cfg(feature = "mmap")]
pub use mmap::{end_on_shortened_log, end_without_memory};
pub use open::{companions, from_bytes, open, open_as, open_stream, open_watched, open_with, refuse_device};
pub use watch::Watch;

pub use rovelog_core as core;
pub use rovelog_core::{
    Align, Bytes, Clock, Detail, Diagnostic, Diagnostics, Error, ErrorKind, Field, FieldType, Format,
    FormatInfo, Ledger, Limits, LogInfo, LogReader, LogStream, Merged, ReadOptions, Record, Records,
    RecoverOptions, Recovery, Result, Rule, Scalar, Schema, Segment, Select, Severity, Sliced, State, Text,
    Timestamp, Topic, TopicId, TopicRef, Usage, UtcOffset, Value,
};
