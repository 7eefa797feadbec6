//! What only the truth about a `ULog` has.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

pub(crate) use crate::corpus::expected::{FormatId, Lost, Note, Record, Text, Topic, Utc, ns};

/// The truth about a `ULog`.
pub(crate) type Expected = crate::corpus::expected::Expected<Own>;

/// Its own keys.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Own {
    pub(crate) ulog: Ulog,
}

/// Expected of a `ULog` that must not be read.
pub(crate) fn refused(version: &str, kind: &str, contains: &str) -> Value {
    crate::corpus::expected::refused("ulog", version, kind, contains)
}

/// What only a `ULog` has.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Ulog {
    pub(crate) info: BTreeMap<String, Value>,
    pub(crate) info_multi: BTreeMap<String, Vec<Vec<Value>>>,
    pub(crate) parameters: Parameters,
    pub(crate) dropouts: Vec<Dropout>,
    pub(crate) messages: BTreeMap<String, u64>,
    pub(crate) appended_offsets: Vec<String>,
}

/// Parameters: values at the start, changes, and both tables of defaults.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Parameters {
    pub(crate) initial: BTreeMap<String, Value>,
    pub(crate) changed: Vec<Changed>,
    pub(crate) default_system: BTreeMap<String, Value>,
    pub(crate) default_setup: BTreeMap<String, Value>,
}

/// A parameter that changed while the log ran.
#[derive(Debug, Serialize)]
pub(crate) struct Changed {
    pub(crate) t_ns: String,
    pub(crate) name: String,
    pub(crate) value: Value,
}

/// A time in which nothing was logged.
#[derive(Debug, Serialize)]
pub(crate) struct Dropout {
    pub(crate) t_ns: String,
    pub(crate) ms: u16,
}
