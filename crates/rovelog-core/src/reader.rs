//! The traits that every format implements, and detection of a format by its signature.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;
use std::ops::{Deref, Range};

use serde_core::de::DeserializeOwned;

use crate::internal::layout::{EscapedTexts, TextEncoding, TypedReader};
use crate::internal::packed::Packing;
use crate::internal::partial::{Ranges, Unread};
use crate::{
    Align, Bytes, Clock, Diagnostics, Error, ErrorKind, Ledger, Limits, LogInfo, Merged, Record,
    RecoverOptions, Recovery, Result, Select, Sliced, Text, Topic, TopicId, Usage,
};

/// Number of bytes at the start of a file that are compared with the signatures of all formats.
pub const PROBE_LEN: usize = 64;

/// Number of bytes at the start of a file in which a log with a damaged signature is searched.
pub const SEARCH_LEN: usize = 64 << 10;

/// Constants that describe a format.
#[derive(Debug)]
pub struct FormatInfo {
    /// Identifier of the format in options and in machine-readable output, such as `ulog`.
    pub id: &'static str,
    /// Name of the format for people, such as `ULog`.
    pub name: &'static str,
    /// Description of the format in one line.
    pub about: &'static str,
    /// Extensions of log files without the dot. They are never used to detect the format.
    pub extensions: &'static [&'static str],
    /// Signatures of the format. A file has this format if it starts with any of these signatures.
    pub signatures: &'static [Signature],
    /// Function that detects a log of this format if its signature is damaged or missing. The
    /// argument is the first [`SEARCH_LEN`] bytes of the file, or the whole file if it is shorter.
    /// `None` if the format cannot detect such logs.
    pub recognizes: Option<fn(&[u8]) -> bool>,
    /// Naming scheme for logs that consist of several files. `None` if a log is always a single
    /// file.
    pub files: Option<Files>,
}

/// Formats are equal if their identifiers are equal.
impl PartialEq for FormatInfo {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for FormatInfo {}

/// Function that returns the names of all files of a log except for the first file. The first
/// argument is the name of the first file. The second argument is a function that returns whether a
/// file with a given name exists.
pub type OtherFiles = fn(&str, &dyn Fn(&str) -> bool) -> Vec<String>;

/// Naming scheme of a log that consists of several files in one folder.
#[derive(Clone, Copy, Debug)]
pub struct Files {
    /// Returns the names of the existing files of a log after the first file, in order.
    pub others: OtherFiles,
    /// Returns the name of one file of a log. The arguments are the name of the log's first file,
    /// and the index of the file whose name is returned. The first file has index 0.
    pub part: fn(&str, usize) -> String,
}

/// Bytes at the start of a file by which its format is detected.
#[derive(Debug, PartialEq, Eq)]
pub struct Signature(pub &'static [u8]);

/// Result of comparing the start of a file with the signatures of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Probe {
    /// The file does not have this format.
    No,
    /// The file is shorter than a signature, and all of its bytes match the start of the signature.
    /// The argument is the size of the file in bytes.
    Prefix(usize),
    /// The file starts with a signature of this format.
    Yes,
}

impl FormatInfo {
    /// Compares the start of a file with the signatures of the format. `head` is the first
    /// [`PROBE_LEN`] bytes of the file, or the whole file if it is shorter.
    pub fn probe(&self, head: &[u8]) -> Probe {
        let probe = |Signature(magic): &Signature| {
            if head.starts_with(magic) {
                Probe::Yes
            } else if !head.is_empty() && magic.starts_with(head) {
                Probe::Prefix(head.len())
            } else {
                Probe::No
            }
        };
        // The variants of `Probe` are in ascending order, so the maximum is the best match.
        self.signatures.iter().map(probe).max().unwrap_or(Probe::No)
    }
}

/// Options for reading a log.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ReadOptions {
    /// Limits that protect against malicious logs.
    pub limits: Limits,
    /// True if the whole log is read when it is opened, even if the log has an index.
    pub read_all: bool,
    /// True if only the named file is opened, even if the log consists of several files; see
    /// [`FormatInfo::files`].
    pub alone: bool,
    /// Declarations of types that a log identifies only by a number. Their language depends on the
    /// format. Formats whose logs describe their types ignore this option.
    pub declarations: String,
    /// Definitions of types that a log uses without defining them, by type name. Their language
    /// depends on the format. Formats whose logs define all of their types ignore this option.
    pub definitions: BTreeMap<String, Vec<u8>>,
    /// Unix time in nanoseconds at which the data of the log starts. It takes precedence over the
    /// time in the log. Ignored for logs whose clock is UTC.
    pub utc_start: Option<i64>,
    /// Encoding of texts that are not UTF-8. If it is `None`, bytes that are not UTF-8 are escaped,
    /// for example as `\xcf`. Ignored for VEL and RLD logs.
    pub text_encoding: Option<TextEncoding>,
    /// Clock of the record times, for logs that store the times of several clocks (RLD). If it is
    /// `None`, the format chooses the clock. Ignored for other formats.
    pub clock: Option<Clock>,
    /// Compression of the file that contained the log. Set by the code that decompresses the file.
    #[doc(hidden)]
    pub packing: Option<Packing>,
    /// Byte ranges of a remote file that were not read. Set by the code that fetches the file.
    #[doc(hidden)]
    pub unread: Unread,
}

impl ReadOptions {
    /// Creates the list of diagnostics for a log that is read with these options. The list states
    /// the number of bytes that were not read, and contains a note if the file was compressed. This
    /// method is for implementations of readers.
    #[doc(hidden)]
    pub fn diagnostics(&self) -> Diagnostics {
        let mut diagnostics = Diagnostics::new(&self.limits);
        diagnostics.set_unread(self.unread.bytes());
        if let Some(packing) = &self.packing {
            packing.note(&mut diagnostics);
        }
        diagnostics
    }
}

/// A file of a log that consists of several files: the name without folders, and the contents.
pub type Companion = (String, Bytes);

/// A log format: constants that describe it, and functions that open its logs.
pub trait Format {
    /// Constants that describe the format.
    const INFO: FormatInfo;
    /// Reader with random access to a log.
    type Reader: LogReader + 'static;
    /// Reader of a log from a pipe.
    type Stream: LogStream + 'static;

    /// Opens a log that is in memory or in a memory-mapped file.
    ///
    /// # Errors
    /// Returns an error if the bytes do not have this format, end inside the header, or use an
    /// unsupported feature. Damage is not an error. It is listed by [`LogReader::diagnostics`].
    fn open(bytes: Bytes, options: &ReadOptions) -> Result<Self::Reader>;

    /// Opens a log that consists of several files. `bytes` is the first file. If a companion file
    /// does not belong to the log, a diagnostic is added, and no error is returned.
    ///
    /// # Errors
    /// Returns the same errors as [`open`](Self::open).
    fn open_with(bytes: Bytes, _companions: Vec<Companion>, options: &ReadOptions) -> Result<Self::Reader> {
        Self::open(bytes, options)
    }

    /// Fetches the parts of a remote file that are needed for the summary of the log. The first and
    /// the last [`END`](crate::internal::partial::END) bytes of the file have already been fetched. Most
    /// formats also need the header and the index of the log.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    fn outline(_: &dyn Ranges) -> Result<()> {
        Ok(())
    }

    /// Opens a log from a pipe. The log is read in one pass with bounded memory.
    ///
    /// # Errors
    /// Returns the same errors as [`open`](Self::open), and an error if the input cannot be read.
    fn stream(input: Box<dyn std::io::Read + Send>, options: &ReadOptions) -> Result<Self::Stream>;

    /// Writes a new log with the records of all `logs` in time order.
    ///
    /// # Errors
    /// Returns an error if writing to `out` fails, if the clocks of the logs cannot be aligned, or
    /// if the format cannot represent all records in one log.
    fn merge(logs: &[&Self::Reader], align: Align, out: &mut dyn Write) -> Result<Merged>;
}

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
    dyn Iterator<Item = Result<(TopicId, arrow_array::RecordBatch), arrow_schema::ArrowError>> + Send + 'a,
>;

/// Random access to a log. The trait is object-safe. A reader owns the bytes of the log, and
/// records borrow from the reader.
pub trait LogReader: Send + Sync {
    /// Returns the constants of the log's format.
    fn format(&self) -> &'static FormatInfo;

    /// Returns the summary of the log. The summary is created when the log is opened, and does not
    /// change.
    fn info(&self) -> &LogInfo;

    /// Returns the data that is known to be lost so far. This is the lost data in
    /// [`info`](Self::info), and the lost data that was found while records were read.
    ///
    /// If a log is opened by its index, damaged records are found only when they are read. Call
    /// this method after reading, or open the log with [`ReadOptions::read_all`].
    fn losses(&self) -> &Ledger {
        &self.info().lost
    }

    /// Returns the text fields with escaped bytes that were read since the last call of this
    /// method. Bytes that are not UTF-8 are escaped, so nothing is lost. Set
    /// [`ReadOptions::text_encoding`] to decode such fields.
    fn take_escaped_texts(&self) -> Vec<EscapedTexts> {
        Vec::new()
    }

    /// Reads the whole log, and returns all data that is lost. If the log was opened by its index,
    /// the records are compared with the index.
    fn verify(&self) -> &Ledger {
        self.losses()
    }

    /// Returns the topics in the order in which the log declares them.
    fn topics(&self) -> &[Topic];

    /// Returns this reader as a trait object.
    fn as_log(&self) -> &dyn LogReader;

    /// Finds a topic by its name. The instance number `/0` can be omitted from the name.
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
    /// # For implementations
    /// Memory use must not depend on the size of the file.
    fn records<'a>(&'a self, select: &Select) -> Records<'a>;

    /// Returns the same records as [`records`](Self::records), but no error for missing records.
    /// The caller must report the lost data of [`losses`](Self::losses) instead.
    fn intact_records<'a>(&'a self, select: &Select) -> Records<'a> {
        let is_loss = |error: &Error| error.kind == ErrorKind::DataLost;
        Box::new(self.records(select).filter(move |record| !record.as_ref().is_err_and(is_loss)))
    }

    /// Implements [`TopicRef::columns`] for the topic with this index.
    ///
    /// # Errors
    /// Returns an error if the topic does not exist, if its records cannot be decoded, or if the
    /// format has no columns.
    // This method exists even without the feature `arrow`, and has a default body. Otherwise, a
    // crate that enables the feature would break implementations in crates that do not enable it.
    #[cfg(feature = "arrow")]
    #[doc(hidden)]
    fn topic_columns<'a>(&'a self, _: TopicId, _: &Select) -> Result<Batches<'a>> {
        let format = self.format();
        let why = format!("{} logs have no columns", format.name);
        Err(Error::new(format.id, ErrorKind::Unsupported, None, why))
    }

    /// Returns the record batches of all selected topics whose records can be decoded.
    ///
    /// The batches of each topic are in file order and have the schema of [`TopicRef::columns`]. If
    /// selected records are in parts of the log that were not read, an item is an error.
    ///
    /// # For implementations
    /// The default implementation reads the topics one after the other. A format can override it to
    /// read all topics in one pass.
    #[cfg(feature = "arrow")]
    fn batches<'a>(&'a self, select: &Select) -> TopicBatches<'a> {
        let select = select.clone();
        let wanted = |topic: &&Topic| topic.count > 0 && select.keeps_topic(topic);
        let topics = self.topics().iter().filter(wanted).collect::<Vec<_>>();
        let batches = move |topic: &'a Topic| -> TopicBatches<'a> {
            match self.topic_columns(topic.id, &select) {
                Ok(batches) => Box::new(batches.map(move |batch| Ok((topic.id, batch?)))),
                Err(error) if error.kind == ErrorKind::PartlyRead => {
                    let error = arrow_schema::ArrowError::from_external_error(Box::new(error));
                    Box::new(std::iter::once(Err(error)))
                }
                // The records of this topic cannot be decoded.
                Err(_) => Box::new(std::iter::empty()),
            }
        };
        Box::new(topics.into_iter().flat_map(batches))
    }

    /// Returns the topics with selected records that cannot be decoded, each with the number of
    /// these records. Such records are missing from columns. The numbers are complete after the
    /// columns have been read.
    ///
    /// # For implementations
    /// Count only records that are otherwise intact. Lost byte ranges are in [`info`](Self::info).
    #[cfg(feature = "arrow")]
    #[doc(hidden)]
    fn undecodable(&self, _: &Select) -> Vec<(TopicId, u64)> {
        Vec::new()
    }

    /// Returns the byte ranges of the file that must be fetched before the selected records can be
    /// read.
    ///
    /// The list is empty if the records can be read now. `None` means that the whole file is
    /// needed. After fetching the ranges, the caller opens the log again and repeats the call,
    /// because the fetched bytes can refer to more ranges.
    fn needed(&self, _: &Select) -> Option<Vec<Range<u64>>> {
        None
    }

    /// Returns the console lines in file order, or `None` if the format has no console lines.
    fn texts(&self) -> Option<Texts<'_>> {
        None
    }

    /// Implements [`TopicRef::definition`] for the topic with this index.
    #[doc(hidden)]
    fn topic_definition(&self, _: TopicId) -> Option<String> {
        None
    }

    /// Returns the diagnostics of the log. They are created when the log is opened, and do not
    /// change.
    fn diagnostics(&self) -> &Diagnostics;

    /// Returns the size of the log by kind of content. The sum of all sizes is the size of the
    /// file.
    fn usage(&self) -> Vec<Usage>;

    /// Writes every intact record to a new log, and accounts for every byte of this log. If the log
    /// is valid, it is copied without changes.
    ///
    /// # Errors
    /// Returns an error if writing to `out` fails.
    fn recover(&self, out: &mut dyn Write, options: &RecoverOptions) -> Result<Recovery>;

    /// Writes the selected records to a new log, with all definitions that these records need.
    /// Records keep all of their fields, so `select.fields` is ignored.
    ///
    /// # Errors
    /// Returns an error if writing to `out` fails, or if the format cannot represent the slice.
    fn slice(&self, select: &Select, out: &mut dyn Write) -> Result<Sliced>;
}

/// Returns an error if selected records are in parts of the log that were not read. This function
/// is for implementations of readers.
pub fn refuse(log: &dyn LogReader, unread: &Unread, select: &Select) -> Option<Error> {
    if unread.is_empty() || log.needed(select).is_some_and(|needed| needed.is_empty()) {
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
                let why = format!("{} at byte {}: {error}", record.topic.name, record.offset);
                Error::new(format, ErrorKind::InvalidArgument, Some(record.offset), why)
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
        self.log.topic_columns(self.topic.id, select)
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

    /// Returns the text fields with escaped bytes; see [`LogReader::take_escaped_texts`].
    fn take_escaped_texts(&self) -> Vec<EscapedTexts> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: FormatInfo = FormatInfo {
        id: "toy",
        name: "Toy",
        about: "",
        extensions: &[],
        signatures: &[Signature(b"TOY1"), Signature(b"TOYS")],
        recognizes: None,
        files: None,
    };

    #[test]
    fn a_cut_signature_differs_from_another_format() {
        assert_eq!(FORMAT.probe(b"TOYS and more"), Probe::Yes);
        assert_eq!(FORMAT.probe(b"TOY"), Probe::Prefix(3));
        assert_eq!(FORMAT.probe(b""), Probe::No);
        assert_eq!(FORMAT.probe(b"TOX1"), Probe::No);
    }
}
