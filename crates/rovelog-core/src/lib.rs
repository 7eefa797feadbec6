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
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod diagnostic;
pub mod error;
pub mod format;
pub mod health;
pub mod info;
#[doc(hidden)]
pub mod internal;
pub mod open;
pub mod reader;
pub mod record;
pub mod rewrite;
pub mod schema;
pub mod select;
pub mod span;
pub mod structure;
pub mod time;
pub mod value;

pub use bytes::Bytes;
pub use diagnostic::{Diagnostic, Diagnostics, Ledger, Rule, Severity};
pub use error::{Error, ErrorKind, Result};
pub use format::{Format, FormatInfo, Probe, ReadOptions, Signature};
pub use info::{Detail, LogInfo, State};
pub use internal::layout::{EscapedTexts, TextEncoding};
pub use internal::limits::Limits;
pub use internal::topic::{Interval, Topic, TopicId};
pub use internal::usage::Usage;
pub use open::OpenOptions;
pub use reader::backend;
#[cfg(feature = "arrow")]
pub use reader::{Batches, TopicBatches};
pub use reader::{LogReader, LogStream, Records, TopicRef};
pub use record::{Decode, Fields, Payload, Record, Text};
pub use rewrite::{Align, Merged, RecoverOptions, Recovery, Segment, Sliced};
pub use schema::{Field, FieldType, Scalar, Schema};
pub use select::Select;
pub use span::{DataSpan, Outside};
pub use structure::{Around, FieldPlace, Region, Structure};
pub use time::{Clock, Timestamp, UtcKnot, UtcOffset};
pub use value::Value;
