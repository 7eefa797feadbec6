//! An open log, with its texts as C strings.

use std::ffi::{CString, c_char};
use std::path::Path;
use std::sync::Arc;

use rovelog::{AnyLog, Diagnostic, ReadOptions, Result, Select, Severity, Topic, Watch};

use crate::error::{c_text, invalid};
use crate::{TopicStream, info};

/// An open log. Its content is private. `rovelog_open` returns it, and `rovelog_close` frees it.
///
/// Several threads may use the same log at the same time.
pub struct RovelogLog {
    log: Arc<AnyLog>,
    watch: Watch,
    /// Id of the format as a C string.
    format: CString,
    /// C strings of the topics, in the order of the topics.
    topics: Vec<TopicTexts>,
    /// C strings of the problems, in the order of the problems.
    problems: Vec<ProblemTexts>,
}

/// C strings of a topic.
struct TopicTexts {
    name: CString,
    type_name: CString,
}

/// C strings of a problem.
struct ProblemTexts {
    code: CString,
    message: CString,
}

/// A topic of a log. The texts belong to the log, and are valid until it is closed.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RovelogTopic {
    /// Name of the topic, such as `vehicle_attitude/0`. It is unique in the log.
    pub name: *const c_char,
    /// Name of the type of the records, such as `vehicle_attitude`.
    pub type_name: *const c_char,
    /// Number of records. The stream of the topic has one row for each record that can be decoded,
    /// but for Velodyne packets of VEL logs one row for each point.
    pub records: u64,
    /// Number of records that cannot be decoded, so that the stream of the topic does not contain
    /// them. The number is complete after the stream has been read to its end.
    pub undecodable: u64,
    /// Time of the first record in nanoseconds of the log's clock, or `INT64_MIN` if no record has
    /// a time.
    pub first_ns: i64,
    /// Time of the last record in nanoseconds of the log's clock, or `INT64_MIN` if no record has a
    /// time.
    pub last_ns: i64,
    /// False if the definitions in the log are not sufficient to decode the records. The topic then
    /// has no stream.
    pub has_columns: bool,
}

/// Severity of a problem, from harmless to serious.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RovelogSeverity {
    /// A notable fact. No data is missing.
    Note = 0,
    /// Something was wrong in the log, and the reader corrected it.
    Repaired = 1,
    /// The reader does not return some valid records.
    LeftOut = 2,
    /// Some bytes could not be read.
    DataLost = 3,
}

/// A problem of a log. The texts belong to the log, and are valid until it is closed.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RovelogProblem {
    /// Stable code of the kind of problem, such as `E-ULOG-002`.
    pub code: *const c_char,
    /// Description of the problem in one line.
    pub message: *const c_char,
    /// Severity of the problem.
    pub severity: RovelogSeverity,
    /// Offset in the file of the first byte that the problem concerns.
    pub start: u64,
    /// Offset in the file of the first byte after the problem.
    pub end: u64,
}

impl RovelogLog {
    /// Opens the log at `path`. The log is read completely, unless `by_index` is true and the log
    /// has an index.
    ///
    /// # Errors
    /// Returns the errors of [`rovelog::open_watched`].
    pub fn open(path: &Path, by_index: bool) -> Result<Self> {
        let mut options = ReadOptions::default();
        options.read_all = !by_index;
        let (log, watch) = rovelog::open_watched(path, None, &options)?;
        let topic =
            |topic: &Topic| TopicTexts { name: c_text(&topic.name), type_name: c_text(&topic.type_name) };
        let problem = |problem: &Diagnostic| ProblemTexts {
            code: c_text(problem.rule.code),
            message: c_text(&problem.message),
        };
        Ok(Self {
            format: c_text(log.format().id),
            topics: log.topics().iter().map(topic).collect(),
            problems: log.diagnostics().list().iter().map(problem).collect(),
            log: Arc::new(log),
            watch,
        })
    }

    /// Returns the open log for code in Rust.
    pub fn reader(&self) -> &AnyLog {
        &self.log
    }

    /// Returns the id of the format as a C string.
    pub(crate) fn format(&self) -> *const c_char {
        self.format.as_ptr()
    }

    /// Returns the topic with this index.
    pub(crate) fn topic(&self, index: usize) -> Result<RovelogTopic> {
        let topics = self.log.topics();
        let (Some(topic), Some(texts)) = (topics.get(index), self.topics.get(index)) else {
            return Err(out_of_range("topic", index, topics.len()));
        };
        let undecodable = self.log.undecodable(&Select::topic(&topic.name));
        let undecodable = undecodable.iter().find(|(id, _)| *id == topic.id).map_or(0, |(_, count)| *count);
        Ok(RovelogTopic {
            name: texts.name.as_ptr(),
            type_name: texts.type_name.as_ptr(),
            records: topic.count,
            undecodable,
            first_ns: topic.first.map_or(i64::MIN, |time| time.nanos),
            last_ns: topic.last.map_or(i64::MIN, |time| time.nanos),
            has_columns: topic.schema.is_some(),
        })
    }

    /// Returns the index of the topic with this name.
    pub(crate) fn topic_index(&self, name: &str) -> Result<usize> {
        let topic = self.log.topic(name).ok_or_else(|| {
            let names: Vec<_> = self.log.topics().iter().map(|topic| topic.name.as_str()).collect();
            invalid(format!("the log has no topic {name}")).with_next(choices(&names))
        })?;
        Ok(topic.get().id.index())
    }

    /// Returns the problem with this index.
    pub(crate) fn problem(&self, index: usize) -> Result<RovelogProblem> {
        let problems = self.log.diagnostics().list();
        let (Some(problem), Some(texts)) = (problems.get(index), self.problems.get(index)) else {
            return Err(out_of_range("problem", index, problems.len()));
        };
        Ok(RovelogProblem {
            code: texts.code.as_ptr(),
            message: texts.message.as_ptr(),
            severity: match problem.rule.severity {
                Severity::Note => RovelogSeverity::Note,
                Severity::Repaired => RovelogSeverity::Repaired,
                Severity::LeftOut => RovelogSeverity::LeftOut,
                Severity::DataLost => RovelogSeverity::DataLost,
            },
            start: problem.range.start,
            end: problem.range.end,
        })
    }

    /// Returns the summary of the log as JSON.
    pub(crate) fn info(&self) -> Result<CString> {
        self.watch.check()?;
        Ok(c_text(&info::json(&self.log)))
    }

    /// Returns the rows of the topic with this index.
    ///
    /// # Errors
    /// Returns an error if the log has no such topic, if its records cannot be decoded, or if
    /// `select` contains a field that the topic does not have.
    pub fn stream(&self, index: usize, select: &Select) -> Result<TopicStream> {
        let topics = self.log.topics();
        let topic = topics.get(index).ok_or_else(|| out_of_range("topic", index, topics.len()))?;
        TopicStream::new(Arc::clone(&self.log), self.watch.clone(), topic, select)
    }
}

fn out_of_range(what: &str, index: usize, count: usize) -> rovelog::Error {
    invalid(format!("the log has no {what} with the index {index}"))
        .with_next(format!("use an index below {count}"))
}

/// Returns the next step for a name that does not exist.
pub(crate) fn choices(names: &[&str]) -> String {
    /// Maximum number of names in a message.
    const MAX_NAMES: usize = 20;
    let more = if names.len() > MAX_NAMES { ", ..." } else { "" };
    let names: Vec<_> = names.iter().take(MAX_NAMES).copied().collect();
    format!("use one of {}{more}", names.join(", "))
}
