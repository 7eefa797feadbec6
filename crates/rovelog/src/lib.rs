#![doc = include_str!("../README.md")]
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
//! - `mmap` (default): files of 1 MiB and more are mapped, not read. A mapped file that another process
//!   shortens while it is read ends this process (`SIGBUS`; with words: [`end_on_shortened_log`]); without the
//!   feature every file is read whole.
//! - `rosbag` (default): ROS bags of V1.2 and before.
//! - `compressed` (default): bags that are compressed as a whole, `.bag.gz` and `.bag.bz2`.
//! - `ulog` (default): the flight logs of PX4.
//! - `rld` (default): the power and sensor logs of the RocketLogger.
//! - `vel` (default): mixed-sensor logs of Koblenz.

#[cfg(not(any(feature = "ulog", feature = "rld", feature = "rosbag", feature = "vel")))]
compile_error!("enable at least one format feature: ulog, rld, rosbag, vel");

mod detect;
mod formats;
#[cfg(feature = "mmap")]
mod mmap;
mod open;

pub use detect::{Detection, Sign, detect};
pub use formats::*;
#[cfg(feature = "mmap")]
pub use mmap::end_on_shortened_log;
pub use open::{from_bytes, open, open_as, open_stream, open_with};

pub use rovelog_core as core;
pub use rovelog_core::{
    Align, Bytes, Clock, Decode, Detail, Diagnostic, Diagnostics, Error, ErrorKind, Field, FieldType, Format,
    FormatInfo, Ledger, Limits, LogInfo, LogReader, LogStream, Merged, ReadOptions, Record, Records,
    RecoverOptions, Recovery, Result, Rule, Scalar, Schema, Select, Severity, Sliced, State, Stretch, Text,
    Timestamp, Topic, TopicId, Usage, UtcOffset, Value,
};
