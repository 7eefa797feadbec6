//! Readers: random access to a log, its topics, and a single pass over a log from a pipe.

pub mod backend;
#[cfg(feature = "arrow")]
mod checked;

use std::fmt;
use std::io::Write;
use std::ops::Deref;

use serde_core::de::DeserializeOwned;

use self::backend::Backend;
#[cfg(feature = "arrow")]
use self::checked::Checked;
use crate::internal::layout::{EscapedTexts, TypedReader};
use crate::internal::partial::Unread;
use crate::{
    Diagnostics, Error, ErrorKind, FormatInfo, Ledger, LogInfo, Record, RecoverOptions, Recovery, Result,
    Select, Sliced, Text, Topic, Usage,
};

/// Iterator over records, which are borrowed from a log reader.
pub type Records<'a> = Box<dyn Iterator<Item = Result<Record<'a>>> + Send + 'a>;

/// Iterator over the console lines of a log.
pub type Texts<'a> = Box<dyn Iterator<Item = Text> + Send + 'a>;

/// Iterator over Arrow record batches of a single topic.
#[cfg(feature = "arrow")]
pub type Batches<'a> = Box<dyn arrow_array::RecordBatchReader + Send + 'a>;

/// Iterator over Arrow record batches of several topics. Each batch belongs to one topic.
#[cfg(feature = "arrow")]
pub type TopicBatches<'a> = Box<
    dyn Iterator<Item = Result<(crate::TopicId, arrow_array::RecordBatch), arrow_schema::ArrowError>>
        + Send
        + 'a,
>;

/// Random access to a log. The trait is object-safe. A reader owns the bytes of the log, and
/// records borrow from the reader.
///
/// A format implements this trait and [`Backend`].
pub trait LogReader: Backend {
    /// Returns the constants of the log's format.
    ///
    /// ```
    /// # fn example(log: &dyn rovelog_core::LogReader) {
    /// println!("a {} log", log.format().name);
    /// # }
    /// ```
    fn format(&self) -> &'static FormatInfo;

    /// Returns the summary of the log. The summary is created when the log is opened, and does not
    /// change.
    ///
    /// ```
    /// # fn example(log: &dyn rovelog_core::LogReader) {
    /// println!("{} records in {} bytes", log.info().records, log.info().size);
    /// # }
    /// ```
    fn info(&self) -> &LogInfo;

    /// Returns the diagnostics of the log. They are created when the log is opened, and do not
    /// change.
    ///
    /// ```
    /// # fn example(log: &dyn rovelog_core::LogReader) {
    /// for diagnostic in log.diagnostics().list() {
    ///     println!("{}: {}", diagnostic.rule.code, diagnostic.message);
    /// }
    /// # }
    /// ```
    fn diagnostics(&self) -> &Diagnostics;

    /// Returns the topics in the order in which the log declares them.
    ///
    /// ```
    /// # fn example(log: &dyn rovelog_core::LogReader) {
    /// for topic in log.topics() {
    ///     println!("{} has {} records", topic.name, topic.count);
    /// }
    /// # }
    /// ```
    fn topics(&self) -> &[Topic];

    /// Finds a topic by its name. The instance number `/0` can be omitted from the name.
    ///
    /// ```
    /// # fn example(log: &dyn rovelog_core::LogReader) {
    /// if let Some(topic) = log.topic("vehicle_attitude") {
    ///     println!("{}", topic.definition().unwrap_or_default());
    /// }
    /// # }
    /// ```
    fn topic(&self, name: &str) -> Option<TopicRef<'_>> {
        let topics = self.topics();
        // A topic with exactly this name takes precedence, because a bag can have both topics `a`
        // and `a/0`.
        let found = topics.iter().find(|t| t.name == name);
        let topic = found.or_else(|| topics.iter().find(|t| t.answers_to(name)))?;
        Some(TopicRef { log: self.as_log(), topic })
    }

    /// Returns a handle for a topic of this log.
    ///
    /// ```
    /// # fn example(log: &dyn rovelog_core::LogReader) -> rovelog_core::Result<()> {
    /// for topic in log.topics() {
    ///     let records = log.own(topic)?.records(&rovelog_core::Select::all());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns an error if `topic` belongs to another log, or is a copy of a topic.
    fn own(&self, topic: &Topic) -> Result<TopicRef<'_>> {
        // A topic of another log can have the same content, so topics are compared by their
        // address.
        match self.topics().get(topic.id.index()) {
            Some(own) if std::ptr::eq(own, topic) => Ok(TopicRef { log: self.as_log(), topic: own }),
            _ => {
                let why = format!("topic {} belongs to another log", topic.name);
                Err(Error::new(self.format().id, ErrorKind::InvalidArgument, None, why))
            }
        }
    }

    /// Returns the selected records in time order. Records with the same time are in file order. A
    /// record without a time is sorted by the time that the log had reached at this position in the
    /// file.
    ///
    /// If the log was opened by its index, and the records that were read contradict the index, the
    /// last item is an error of kind [`ErrorKind::DataLost`]. It describes the missing records.
    ///
    /// ```
    /// # fn example(log: &dyn rovelog_core::LogReader) -> rovelog_core::Result<()> {
    /// for record in log.records(&rovelog_core::Select::all()) {
    ///     let record = record?;
    ///     println!("{}: {}", record.topic.name, record.value()?.to_json());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    fn records<'a>(&'a self, select: &Select) -> Records<'a> {
        match refused(self.as_log(), select).or_else(|| self.check_memory().err()) {
            Some(error) => Box::new(std::iter::once(Err(error))),
            None => self.read_records(select),
        }
    }

    /// Returns the record batches of all selected topics whose records can be decoded.
    ///
    /// The batches of each topic are in file order and have the schema of [`TopicRef::columns`]. If
    /// selected records are in parts of the log that were not read, an item is an error.
    ///
    /// ```
    /// # fn example(log: &dyn rovelog_core::LogReader) -> Result<(), Box<dyn std::error::Error>> {
    /// for batch in log.batches(&rovelog_core::Select::all()) {
    ///     let (topic, batch) = batch?;
    ///     println!("{}: {} rows", log.topics()[topic.index()].name, batch.num_rows());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "arrow")]
    fn batches<'a>(&'a self, select: &Select) -> TopicBatches<'a> {
        match refused(self.as_log(), select).or_else(|| self.check_memory().err()) {
            Some(error) => {
                let error = arrow_schema::ArrowError::from_external_error(Box::new(error));
                Box::new(std::iter::once(Err(error)))
            }
            None => Box::new(Checked::new(self.as_log(), self.read_batches(select), |(_, batch)| batch)),
        }
    }

    /// Returns the data that is known to be lost so far. This is the lost data in
    /// [`info`](Self::info), and the lost data that was found while records were read.
    ///
    /// If a log is opened by its index, damaged records are found only when they are read. Call
    /// this method after reading, or open the log with [`ReadOptions::read_all`].
    ///
    /// ```
    /// # fn example(log: &dyn rovelog_core::LogReader) {
    /// let records = log.records(&rovelog_core::Select::all()).filter_map(Result::ok).count();
    /// println!("{records} records, {} bytes are lost", log.losses().bytes);
    /// # }
    /// ```
    ///
    /// [`ReadOptions::read_all`]: crate::ReadOptions::read_all
    fn losses(&self) -> &Ledger {
        &self.info().lost
    }

    /// Reads the whole log, and returns all data that is lost. If the log was opened by its index,
    /// the records are compared with the index.
    ///
    /// ```
    /// # fn example(log: &dyn rovelog_core::LogReader) {
    /// if log.verify().bytes == 0 {
    ///     println!("nothing is lost");
    /// }
    /// # }
    /// ```
    fn verify(&self) -> &Ledger {
        self.losses()
    }

    /// Returns the console lines in file order, or `None` if the format has no console lines.
    ///
    /// ```
    /// # fn example(log: &dyn rovelog_core::LogReader) {
    /// for line in log.texts().into_iter().flatten() {
    ///     println!("{} {}", line.level_name(), line.text);
    /// }
    /// # }
    /// ```
    fn texts(&self) -> Option<Texts<'_>> {
        None
    }

    /// Returns the size of the log by kind of content. The sum of all sizes is the size of the
    /// file.
    ///
    /// ```
    /// # fn example(log: &dyn rovelog_core::LogReader) {
    /// for part in log.usage() {
    ///     println!("{}: {} bytes", part.kind, part.bytes);
    /// }
    /// # }
    /// ```
    fn usage(&self) -> Vec<Usage>;

    /// Writes every intact record to a new log, and accounts for every byte of this log. If the log
    /// is valid, it is copied without changes.
    ///
    /// ```
    /// # fn example(log: &dyn rovelog_core::LogReader) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut file = std::fs::File::create("recovered.ulg")?;
    /// let recovery = log.recover(&mut file, &rovelog_core::RecoverOptions::default())?;
    /// println!("{} records, {} bytes are lost", recovery.records, recovery.lost_bytes());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns an error if writing to `out` fails.
    fn recover(&self, out: &mut dyn Write, options: &RecoverOptions) -> Result<Recovery>;

    /// Writes the selected records to a new log, with all definitions that these records need.
    /// Records keep all of their fields, so `select.fields` is ignored.
    ///
    /// ```
    /// # fn example(log: &dyn rovelog_core::LogReader) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut file = std::fs::File::create("attitude.ulg")?;
    /// log.slice(&rovelog_core::Select::topic("vehicle_attitude"), &mut file)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns an error if writing to `out` fails, or if the format cannot represent the slice.
    fn slice(&self, select: &Select, out: &mut dyn Write) -> Result<Sliced>;
}

/// Returns an error if selected records are in parts of the log that were not read.
fn refused(log: &dyn LogReader, select: &Select) -> Option<Error> {
    if log.unread().is_none_or(Unread::is_empty) || log.needed(select).is_some_and(|needed| needed.is_empty())
    {
        return None;
    }
    let why = "these records are in parts of the log that were not read";
    Some(Error::new(log.format().id, ErrorKind::PartlyRead, None, why))
}

/// A topic of a log, with access to its records and columns. The handle borrows from the log, so it
/// cannot be used with another log.
#[derive(Clone, Copy)]
pub struct TopicRef<'a> {
    /// Log that contains the topic.
    log: &'a dyn LogReader,
    /// Description of the topic.
    topic: &'a Topic,
}

impl<'a> TopicRef<'a> {
    /// Returns the topic's description.
    pub fn get(self) -> &'a Topic {
        self.topic
    }

    /// Returns the topic's records in the time window of `select`, in time order. The topics in
    /// `select` are ignored.
    pub fn records(self, select: &Select) -> Records<'a> {
        let select = Select { topics: Some([&*self.topic.name].into_iter().collect()), ..select.clone() };
        let id = self.topic.id;
        // A bag may have the topics `a` and `a/0`, and the name `a` selects both of them.
        let is_own = move |record: &Result<Record<'_>>| record.as_ref().map_or(true, |r| r.topic.id == id);
        Box::new(self.log.records(&select).filter(is_own))
    }

    /// Reads all records as structs, in time order. See [`rows_within`](Self::rows_within).
    pub fn rows<T: DeserializeOwned>(self) -> impl Iterator<Item = Result<T>> + use<'a, T> {
        self.rows_within(&Select::all())
    }

    /// Reads the records in the time window of `select` as structs, in time order.
    ///
    /// Fields are matched by name:
    ///
    /// - A nested message is a struct.
    /// - An array is `[T; N]` or `Vec<T>`.
    /// - A text is a `String`.
    /// - A time is a struct with the fields `sec` and `nsec`, or an integer number of nanoseconds.
    /// - A field that some logs do not have is an `Option`.
    ///
    /// An integer may have a different width in the struct if the value fits. A float may have a
    /// different width if no digit is lost.
    ///
    /// ```
    /// use rovelog_core::{LogReader, Result};
    /// use serde::Deserialize;
    ///
    /// #[derive(Deserialize)]
    /// struct Attitude {
    ///     timestamp: u64,
    ///     q: [f32; 4],
    ///     /// Missing in logs of older firmware.
    ///     quat_reset_counter: Option<u8>,
    /// }
    ///
    /// fn print_first(log: &dyn LogReader) -> Result<()> {
    ///     let Some(topic) = log.topic("vehicle_attitude") else { return Ok(()) };
    ///     for row in topic.rows::<Attitude>().take(10) {
    ///         let row = row?;
    ///         println!("{} {:?} {:?}", row.timestamp, row.q, row.quat_reset_counter);
    ///     }
    ///     Ok(())
    /// }
    /// ```
    ///
    /// An item is an error if the record cannot be read, if a field is missing, or if the type of a
    /// field does not fit the struct. The error message names the field and both types.
    pub fn rows_within<T: DeserializeOwned>(
        self,
        select: &Select,
    ) -> impl Iterator<Item = Result<T>> + use<'a, T> {
        let format = self.log.format().id;
        let mut reader = TypedReader::default();
        self.records(select).map(move |record| {
            let record = record?;
            reader.read(&record).map_err(|error| {
                let (name, at) = (&record.topic.name, record.offset);
                let why = format!("the record of {name} at byte {at} does not fit the struct: {error}");
                Error::new(format, ErrorKind::InvalidArgument, Some(at), why)
            })
        })
    }

    /// Returns the topic's records as Arrow record batches in file order. The first column is
    /// `t_ns`, and the selected fields follow.
    ///
    /// # Errors
    /// Returns an error if the records cannot be decoded, or if the format has no columns.
    #[cfg(feature = "arrow")]
    pub fn columns(self, select: &Select) -> Result<Batches<'a>> {
        if let Some(error) = refused(self.log, select).or_else(|| self.log.check_memory().err()) {
            return Err(error);
        }
        let batches = self.log.read_columns(self.topic.id, select)?;
        Ok(Box::new(Checked::new(self.log, batches, |batch| batch)))
    }

    /// Returns the text that defines the topic's type, if the log contains such a text.
    pub fn definition(self) -> Option<String> {
        self.log.topic_definition(self.topic.id)
    }
}

impl Deref for TopicRef<'_> {
    type Target = Topic;

    fn deref(&self) -> &Topic {
        self.topic
    }
}

impl fmt::Debug for TopicRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.topic.fmt(f)
    }
}

/// A single pass over a log from a pipe, with bounded memory. A topic is listed after its
/// definition or its first record has been read.
pub trait LogStream: Send {
    /// Returns the constants of the log's format.
    fn format(&self) -> &'static FormatInfo;

    /// Returns the next record in file order, or `None` at the end of the log.
    ///
    /// # Errors
    /// Returns an error if the input cannot be read, or if the log uses an unsupported feature.
    fn next_record(&mut self) -> Result<Option<Record<'_>>>;

    /// Returns the topics whose definition or first record has been read.
    fn topics(&self) -> &[Topic];

    /// Returns the summary of the part of the log that has been read. The summary is complete after
    /// [`next_record`](Self::next_record) has returned `None`.
    fn info(&self) -> LogInfo;

    /// Returns the diagnostics of the part of the log that has been read.
    fn diagnostics(&self) -> &Diagnostics;

    /// Returns the text fields with escaped bytes; see [`Backend::take_escaped_texts`].
    fn take_escaped_texts(&self) -> Vec<EscapedTexts> {
        Vec::new()
    }
}
