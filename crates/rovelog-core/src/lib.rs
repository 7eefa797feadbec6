#![doc = include_str!("../README.md")]
//!
//! # Terms
//!
//! - A **log** is a file with the recorded data of sensors.
//! - A **topic** is a named stream of records in a log.
//! - A **schema** describes the fields of a topic.
//! - A **record** is an entry of a topic, usually with a timestamp.
//! - A **timestamp** is an integer number of nanoseconds together with its **clock**.
//! - A **diagnostic** describes a problem or notable fact in the log, with its byte range and
//!   severity.
//!
//! The format crates, such as `ulog-format`, implement [`LogReader`] and [`LogStream`] with these
//! types. The facade `rovelog` opens logs of all formats.
#![forbid(unsafe_code)]

#[cfg(feature = "arrow")]
#[doc(hidden)]
pub mod buffer;
#[cfg(feature = "arrow")]
#[doc(hidden)]
pub mod columns;
pub mod diagnostic;
pub mod error;
pub mod health;
#[doc(hidden)]
pub mod index;
pub mod info;
pub mod layout;
#[doc(hidden)]
pub mod limits;
pub mod media;
#[doc(hidden)]
pub mod names;
pub mod open;
#[doc(hidden)]
pub mod order;
#[doc(hidden)]
pub mod output;
pub mod packed;
#[doc(hidden)]
pub mod parallel;
pub mod partial;
#[doc(hidden)]
pub mod ranges;
pub mod reader;
pub mod record;
pub mod rewrite;
#[doc(hidden)]
pub mod scan;
pub mod schema;
pub mod select;
pub mod span;
#[doc(hidden)]
pub mod splice;
#[doc(hidden)]
pub mod text;
pub mod time;
#[doc(hidden)]
pub mod topic;
#[doc(hidden)]
pub mod usage;
pub mod value;
#[doc(hidden)]
pub mod wire;

pub use bytes::Bytes;
pub use diagnostic::{Diagnostic, Diagnostics, Ledger, Rule, Severity};
pub use error::{Error, ErrorKind, Result};
pub use info::{Detail, LogInfo, State};
pub use limits::Limits;
pub use open::OpenOptions;
#[cfg(feature = "arrow")]
pub use reader::{Batches, TopicBatches};
pub use reader::{
    Format, FormatInfo, LogReader, LogStream, Probe, ReadOptions, Records, Signature, TopicRef,
};
pub use record::{Decode, Fields, Payload, Record, Text};
pub use rewrite::{Align, Merged, RecoverOptions, Recovery, Segment, Sliced};
pub use schema::{Field, FieldType, Scalar, Schema};
pub use select::Select;
pub use span::{DataSpan, Outside};
pub use time::{Clock, Timestamp, UtcKnot, UtcOffset};
pub use topic::{Interval, Topic, TopicId};
pub use usage::Usage;
pub use value::Value;
