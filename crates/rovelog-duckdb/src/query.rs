//! Calls of table functions: their columns, and their rows in batches.
//!
//! A call is divided into tasks, which the threads of DuckDB take from a queue. A task of `read_log`
//! is a split of the logs, and a task of any other function is a log.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Mutex;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, Schema, SchemaRef};
use rovelog::core::internal::parallel::lock;
use rovelog_scale::{
    COLUMNS, LogFile, OpenLogs, ScaleError, Split, Wanted, divide, find, read_with, schema_with,
    split_instance,
};

use crate::facts::{Facts, Source};

/// Approximate size in bytes of the parts of a log that different threads read.
const SPLIT_BYTES: u64 = 64 << 20;

/// Maximum number of logs that stay open between planning and reading a query.
const OPEN_LOGS: usize = 16;

/// Maximum number of topics in an error message.
const NAMED_TOPICS: usize = 12;

/// The batches of a task.
type Batches = Box<dyn Iterator<Item = Result<RecordBatch, String>> + Send>;

/// Rows that a thread reads on its own.
#[derive(Clone)]
enum Task {
    Rows(Split),
    Facts(&'static Facts, LogFile),
}

/// A call of a table function.
pub(crate) struct Call {
    pub(crate) schema: SchemaRef,
    tasks: Vec<Task>,
    /// True if the call selects all fields of a topic, so that a scan can select fewer.
    all_fields: bool,
    open: OpenLogs,
}

impl Call {
    /// Creates a call of `read_log`.
    ///
    /// # Errors
    /// Returns an error if a log cannot be opened, or if no log has the topic.
    pub(crate) fn rows(files: &[String], mut wanted: Wanted) -> Result<Self, String> {
        let logs = find(files).map_err(|error| error.to_string())?;
        let open = OpenLogs::new(OPEN_LOGS);
        let list = || {
            let files: Vec<_> = files.iter().map(|file| quoted(file)).collect();
            format!("FROM log_topics([{}])", files.join(", "))
        };
        if wanted.topics.is_none() {
            wanted.topics = Some(vec![only_topic(&logs, &open, &list())?]);
        }
        let schema = schema_with(&logs, &wanted, &open).map_err(|error| match error {
            ScaleError::Columns(why) => format!("{why}; list the topics with {}", list()),
            error => error.to_string(),
        })?;
        let tasks = divide(logs, &wanted, SPLIT_BYTES).into_iter().map(Task::Rows).collect();
        Ok(Self { schema, tasks, all_fields: wanted.fields.is_none(), open })
    }

    /// Creates a call of a function that returns facts about logs.
    ///
    /// # Errors
    /// Returns an error if a file does not exist.
    pub(crate) fn facts(files: &[String], facts: &'static Facts) -> Result<Self, String> {
        let logs = find(files).map_err(|error| error.to_string())?;
        let tasks = logs.into_iter().map(|log| Task::Facts(facts, log)).collect();
        Ok(Self { schema: facts.schema()?, tasks, all_fields: false, open: OpenLogs::default() })
    }

    /// Returns a scan of the columns with these indices. A query that only counts rows requests one
    /// column that the call does not have.
    ///
    /// # Errors
    /// Returns an error if the query requests such a column together with others.
    pub(crate) fn scan(&self, columns: &[usize]) -> Result<Scan, String> {
        let name = |&column: &usize| Some(self.schema.fields().get(column)?.name().as_str());
        let names: Vec<&str> = columns.iter().filter_map(name).collect();
        if names.len() < columns.len() && !names.is_empty() {
            return Err("the table has no column rowid; use the column seq".to_owned());
        }
        let (mut schema, mut tasks) = (SchemaRef::clone(&self.schema), self.tasks.clone());
        if self.all_fields && !self.has_renamed_column() {
            let fields =
                self.schema.fields().iter().filter(|field| names.contains(&field.name().as_str())).cloned();
            schema = Schema::new(fields.collect::<Vec<_>>()).into();
            let fields = names.iter().filter(|name| !COLUMNS.contains(name));
            let fields: Vec<String> = fields.map(|name| (*name).to_owned()).collect();
            for task in &mut tasks {
                if let Task::Rows(split) = task {
                    split.wanted.fields = Some(fields.clone());
                }
            }
        }
        let columns = names.iter().filter_map(|name| schema.index_of(name).ok()).collect();
        Ok(Scan { columns, schema, tasks: Mutex::new(tasks.into()), open: self.open.clone() })
    }

    /// Returns `true` if the name of a column may differ from that of its field. If a name is taken,
    /// `_` is appended to it. The reader does not know the new name, so all fields must be read.
    fn has_renamed_column(&self) -> bool {
        let names = || self.schema.fields().iter().map(|field| field.name());
        names().filter_map(|name| name.strip_suffix('_')).any(|stem| {
            stem.eq_ignore_ascii_case("month") || names().any(|name| name.eq_ignore_ascii_case(stem))
        })
    }
}

/// Returns a text as a literal of SQL.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Returns the text of an error that occurred while rows were read.
fn error_text(error: ArrowError) -> String {
    let ArrowError::ExternalError(cause) = error else { return error.to_string() };
    match cause.downcast_ref() {
        Some(ScaleError::Changed { uri }) => {
            format!("{uri} was changed during the query; run the query again")
        }
        _ => cause.to_string(),
    }
}

/// Returns the name of the only topic that the logs have.
fn only_topic(logs: &[LogFile], open: &OpenLogs, list: &str) -> Result<String, String> {
    let mut names = BTreeSet::new();
    for file in logs {
        let log = open.open(file).map_err(|error| error.to_string())?;
        let topics = log.topics().iter().filter(|topic| topic.count > 0);
        names.extend(topics.map(|topic| split_instance(&topic.name).0));
    }
    let first = logs.first().map_or("", |log| log.uri.as_str());
    let (log, have) =
        if logs.len() == 1 { (first.to_owned(), "has") } else { (format!("{} logs", logs.len()), "have") };
    match names.len() {
        0 => Err(format!("{log} {have} no records")),
        1 => Ok(names.pop_first().unwrap_or_default()),
        count => {
            let shown: Vec<_> = names.iter().take(NAMED_TOPICS).map(String::as_str).collect();
            let more = if count > NAMED_TOPICS { ", ..." } else { "" };
            Err(format!(
                "{log} {have} {count} topics: {}{more}; choose one with read_log({}, topic := {}), or list all \
                 with {list}",
                shown.join(", "),
                quoted(first),
                quoted(shown.first().unwrap_or(&""))
            ))
        }
    }
}

/// A running call, which all threads share.
pub(crate) struct Scan {
    /// Indices in `schema` of the columns that DuckDB requests.
    columns: Vec<usize>,
    /// Columns that are read.
    schema: SchemaRef,
    /// Tasks that no thread has taken yet.
    tasks: Mutex<VecDeque<Task>>,
    open: OpenLogs,
}

/// The state of one thread.
#[derive(Default)]
pub(crate) struct Worker {
    /// The remaining batches of the current task.
    batches: Option<Batches>,
    /// The remaining rows of the current batch.
    rows: Option<RecordBatch>,
}

impl Scan {
    /// Returns the number of threads that can work at the same time.
    pub(crate) fn threads(&self) -> usize {
        lock(&self.tasks).len().max(1)
    }

    /// Returns the next rows for a thread, at most `max`. Returns `None` at the end.
    ///
    /// # Errors
    /// Returns an error if a log cannot be read.
    pub(crate) fn next(&self, worker: &mut Worker, max: usize) -> Result<Option<RecordBatch>, String> {
        loop {
            if let Some(batch) = worker.rows.take().filter(|batch| batch.num_rows() > 0) {
                let count = batch.num_rows().min(max);
                worker.rows = Some(batch.slice(count, batch.num_rows() - count));
                return Ok(Some(batch.slice(0, count)));
            }
            if let Some(batches) = &mut worker.batches {
                match batches.next().transpose()? {
                    Some(batch) => {
                        worker.rows = Some(batch.project(&self.columns).map_err(|error| error.to_string())?);
                    }
                    None => worker.batches = None,
                }
                continue;
            }
            let task = lock(&self.tasks).pop_front();
            let Some(task) = task else { return Ok(None) };
            worker.batches = Some(self.batches(task)?);
        }
    }

    /// Returns the batches of a task.
    fn batches(&self, task: Task) -> Result<Batches, String> {
        match task {
            Task::Rows(split) => {
                let rows = read_with(split, SchemaRef::clone(&self.schema), self.open.clone());
                Ok(Box::new(rows.map(|batch| batch.map_err(error_text))))
            }
            Task::Facts(facts, file) => {
                let log = self.open.open(&file).map_err(|error| error.to_string());
                let log = if facts.includes_unreadable { log } else { Ok(log?) };
                let source = Source { uri: &file.uri, log: log.as_deref().map_err(String::as_str) };
                Ok(Box::new((facts.batches)(&source)?.into_iter().map(Ok)))
            }
        }
    }
}
