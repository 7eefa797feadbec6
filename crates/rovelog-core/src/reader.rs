//! The traits that every format implements, and detection of a format by its first bytes.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;
use std::ops::{Deref, Range};

use serde_core::de::DeserializeOwned;

use crate::layout::{EscapedTexts, TextEncoding, TypedReader};
use crate::packed::Packing;
use crate::partial::{Ranges, Unread};
use crate::{
    Align, Bytes, Clock, Diagnostics, Error, ErrorKind, Ledger, Limits, LogInfo, Merged, Record,
    RecoverOptions, Recovery, Result, Select, Sliced, Text, Topic, TopicId, Usage,
};

/// Number of bytes of a file that decide its format.
pub const PROBE_LEN: usize = 64;

/// Number of bytes of a file in which a log with a damaged start is recognized.
pub const SEARCH_LEN: usize = 64 << 10;

/// Constant facts about a format.
#[derive(Debug)]
pub struct FormatInfo {
    /// The id used in options and machine output: `ulog`.
    pub id: &'static str,
    /// The name that people use: `ULog`.
    pub name: &'static str,
    /// Description, one line.
    pub about: &'static str,
    /// File name extensions, without the dot; a hint for people, never used for detection.
    pub extensions: &'static [&'static str],
    /// Any of these at the start of a file means this format.
    pub signatures: &'static [Signature],
    /// Returns whether a file that starts with these bytes, [`SEARCH_LEN`] or all of a shorter one, is
    /// a log whose signature is damaged or missing; `None` if the format cannot tell.
    pub recognizes: Option<fn(&[u8]) -> bool>,
    /// How a log is laid out over several files; `None` if it is always one.
    pub files: Option<Files>,
}

/// A format is known by its id.
impl PartialEq for FormatInfo {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for FormatInfo {}

/// Returns the names of the other files of the log whose first file has this name, out of those
/// that exist.
pub type OtherFiles = fn(&str, &dyn Fn(&str) -> bool) -> Vec<String>;

/// How the files of one log are named, all of them in one folder.
#[derive(Clone, Copy, Debug)]
pub struct Files {
    /// Returns the names of the other files of a log, in order.
    pub others: OtherFiles,
    /// Returns the name of a part by its number, the first one (0) having this name.
    pub part: fn(&str, usize) -> String,
}

/// Bytes that are at offset 0 of every file of a format.
#[derive(Debug, PartialEq, Eq)]
pub struct Signature(pub &'static [u8]);

/// What the first bytes of a file say about a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Probe {
    /// Another format.
    No,
    /// A file of this format that ends inside its signature; this many bytes agree.
    Prefix(usize),
    /// This format.
    Yes,
}

impl FormatInfo {
    /// Compares `head`, the first [`PROBE_LEN`] bytes or all of a shorter file, with the
    /// signatures.
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
        self.signatures.iter().map(probe).max().unwrap_or(Probe::No)
    }
}

/// Options of reading.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ReadOptions {
    /// Limits against hostile input.
    pub limits: Limits,
    /// Read all of a log when it is opened, even if its index says what is in it.
    pub read_all: bool,
    /// Only the named file, where a log may have several: see [`FormatInfo::files`].
    pub alone: bool,
    /// Declarations of types that logs carry only the ids of, in the format's own language. Formats
    /// that describe their types themselves have no use for it.
    pub declarations: String,
    /// Definitions of types that a log lacks, by the name of the type, in the format's own language.
    /// Formats whose logs define all of their types have no use for them.
    pub definitions: BTreeMap<String, Vec<u8>>,
    /// The Unix time of the start of the log's data, nanoseconds: it counts before what the log says.
    /// Logs whose clock is UTC have no use for it.
    pub utc_start: Option<i64>,
    /// The encoding of texts that are not UTF-8; `None` escapes their bytes: `\xcf`. VEL and RLD logs
    /// have no use for it.
    pub text_encoding: Option<TextEncoding>,
    /// The clock of record times, for logs that store several clocks (RLD); `None` leaves the choice
    /// to the format. Other logs have no use for it.
    pub clock: Option<Clock>,
    /// How the file was compressed that the bytes of the log come from; set by what decompresses it.
    #[doc(hidden)]
    pub packing: Option<Packing>,
    /// The ranges of the file that were not read; set by what fetches a remote file.
    #[doc(hidden)]
    pub unread: Unread,
}

impl ReadOptions {
    /// For implementations: returns the list for the diagnostics of a log that is read with these
    /// options. It has the number of bytes not read, and first a note on compression.
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

/// Another file of a log: its name, without folders, and what is in it.
pub type Companion = (String, Bytes);

/// A format: its constants and how a log of it is opened.
pub trait Format {
    /// The constants.
    const INFO: FormatInfo;
    /// The random-access reader.
    type Reader: LogReader + 'static;
    /// The reader of pipes.
    type Stream: LogStream + 'static;

    /// Opens a log that is in memory or in a mapped file.
    ///
    /// # Errors
    /// Returns an error if the bytes are not of this format, end inside the header, or use what is
    /// not supported. Damage is not an error: it is reported by [`LogReader::diagnostics`].
    fn open(bytes: Bytes, options: &ReadOptions) -> Result<Self::Reader>;

    /// Opens a log with its other files. One that does not belong to the log is a diagnostic, not
    /// an error.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    fn open_with(bytes: Bytes, _companions: Vec<Companion>, options: &ReadOptions) -> Result<Self::Reader> {
        Self::open(bytes, options)
    }

    /// Fetches what a summary of the log needs in addition to the start and the end of its file
    /// ([`END`](crate::partial::END) bytes each): for most formats, its header and its index.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    fn outline(_: &dyn Ranges) -> Result<()> {
        Ok(())
    }

    /// Opens a log that comes from a pipe: one pass, bounded memory.
    ///
    /// # Errors
    /// As [`open`](Self::open), and where the input cannot be read.
    fn stream(input: Box<dyn std::io::Read + Send>, options: &ReadOptions) -> Result<Self::Stream>;

    /// Writes one log that holds the records of all `logs` in time order.
    ///
    /// # Errors
    /// Returns an error if the output refuses, the clocks cannot be aligned, or the format cannot
    /// represent all records.
    fn merge(logs: &[&Self::Reader], align: Align, out: &mut dyn Write) -> Result<Merged>;
}

/// An iterator over borrowed records.
pub type Records<'a> = Box<dyn Iterator<Item = Result<Record<'a>>> + Send + 'a>;

/// An iterator over console lines.
pub type Texts<'a> = Box<dyn Iterator<Item = Text> + Send + 'a>;

/// A topic as Arrow record batches.
#[cfg(feature = "arrow")]
pub type Batches<'a> = Box<dyn arrow_array::RecordBatchReader + Send + 'a>;

/// Record batches of several topics, each of one topic.
#[cfg(feature = "arrow")]
pub type TopicBatches<'a> = Box<
    dyn Iterator<Item = Result<(TopicId, arrow_array::RecordBatch), arrow_schema::ArrowError>> + Send + 'a,
>;

/// Random access to one log. Object-safe; the reader owns its bytes, records borrow from it.
pub trait LogReader: Send + Sync {
    /// Returns the format's constants.
    fn format(&self) -> &'static FormatInfo;

    /// Returns the summary, made when the log was opened. It never changes.
    fn info(&self) -> &LogInfo;

    /// Returns what the log has lost: what [`info`](Self::info) says, and what reading has found
    /// since. A log that was opened by its index is compared with it only while its records are
    /// read, so ask after reading; [`ReadOptions::read_all`] compares all of it when it is opened.
    fn losses(&self) -> &Ledger {
        &self.info().lost
    }

    /// Returns the text fields whose bytes were escaped by reading since the last call, because they
    /// are not UTF-8. Nothing is lost by this; [`ReadOptions::text_encoding`] decodes them.
    fn take_escaped_texts(&self) -> Vec<EscapedTexts> {
        Vec::new()
    }

    /// Compares all of a log that was opened by its index, and returns what it has lost.
    fn verify(&self) -> &Ledger {
        self.losses()
    }

    /// Returns the topics in the order in which the log declares them.
    fn topics(&self) -> &[Topic];

    /// Returns the log without its type.
    fn as_log(&self) -> &dyn LogReader;

    /// Returns a topic by name; the instance `/0` may be left out.
    fn topic(&self, name: &str) -> Option<TopicRef<'_>> {
        let topics = self.topics();
        let found = topics.iter().find(|t| t.name == name);
        let topic = found.or_else(|| topics.iter().find(|t| t.answers_to(name)))?;
        Some(TopicRef { log: self.as_log(), topic })
    }

    /// Returns the handle of one of the log's own topics.
    ///
    /// # Errors
    /// Returns an error if the topic is one of another log, or a copy.
    fn own(&self, topic: &Topic) -> Result<TopicRef<'_>> {
        match self.topics().get(topic.id.index()) {
            Some(own) if std::ptr::eq(own, topic) => Ok(TopicRef { log: self.as_log(), topic: own }),
            _ => {
                let why = format!("topic {} belongs to another log", topic.name);
                Err(Error::new(self.format().id, ErrorKind::InvalidArgument, None, why))
            }
        }
    }

    /// Returns the selected records, in the order of (time, file offset). A record without a time
    /// takes the log's time at its place.
    ///
    /// If the log was opened by its index, and parts that were read contradict the index, the last item
    /// is an error of the kind [`ErrorKind::DataLost`] that says what is missing.
    ///
    /// # For implementations
    /// Memory must not grow with the file.
    fn records<'a>(&'a self, select: &Select) -> Records<'a>;

    /// Returns the same records without an error for what is missing, for callers that report
    /// [`losses`](Self::losses) themselves.
    fn intact_records<'a>(&'a self, select: &Select) -> Records<'a> {
        let is_loss = |error: &Error| error.kind == ErrorKind::DataLost;
        Box::new(self.records(select).filter(move |record| !record.as_ref().is_err_and(is_loss)))
    }

    /// For implementations: returns what [`TopicRef::columns`] returns for this topic.
    ///
    /// # Errors
    /// Returns an error if there is no such topic, it cannot be decoded, or the format has no
    /// columns.
    // A default body keeps the feature additive: a crate that turns it on breaks no other format.
    #[cfg(feature = "arrow")]
    #[doc(hidden)]
    fn topic_columns<'a>(&'a self, _: TopicId, _: &Select) -> Result<Batches<'a>> {
        let format = self.format();
        let why = format!("{} logs have no columns", format.name);
        Err(Error::new(format.id, ErrorKind::Unsupported, None, why))
    }

    /// Returns all selected topics that can be decoded as record batches, those of each topic in
    /// file order. The schemas are those of [`TopicRef::columns`]. Records in parts of the log that
    /// were not read are an error, not left out.
    ///
    /// # For implementations
    /// The default reads one topic after the other; a format can read all in one pass.
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
                // It cannot be decoded.
                Err(_) => Box::new(std::iter::empty()),
            }
        };
        Box::new(topics.into_iter().flat_map(batches))
    }

    /// Returns how many of the selected records columns leave out because they cannot be decoded:
    /// by topic, those with any. It is known once their columns were read.
    ///
    /// # For implementations
    /// Only for records that count as intact: a lost range is in [`info`](Self::info).
    #[cfg(feature = "arrow")]
    #[doc(hidden)]
    fn undecodable(&self, _: &Select) -> Vec<(TopicId, u64)> {
        Vec::new()
    }

    /// Returns the ranges of the file that must be fetched before the selected records can be read:
    /// no range if they can be read now, `None` if the whole file is needed. After a fetch, the log
    /// is opened and asked again.
    fn needed(&self, _: &Select) -> Option<Vec<Range<u64>>> {
        None
    }

    /// Returns the console lines in file order; `None` if the format has no console lines.
    fn texts(&self) -> Option<Texts<'_>> {
        None
    }

    /// For implementations: returns what [`TopicRef::definition`] returns for this topic.
    #[doc(hidden)]
    fn topic_definition(&self, _: TopicId) -> Option<String> {
        None
    }

    /// Returns the diagnostics of the log, made when it was opened. They never change.
    fn diagnostics(&self) -> &Diagnostics;

    /// Returns the size of the log by content: the bytes of all entries are the size of the file.
    fn usage(&self) -> Vec<Usage>;

    /// Writes every intact record to a new log, and accounts for every byte. A valid log is copied
    /// byte for byte.
    ///
    /// # Errors
    /// Returns an error if the output refuses.
    fn recover(&self, out: &mut dyn Write, options: &RecoverOptions) -> Result<Recovery>;

    /// Writes the part of the log that `select` names, as a log of its own: all that its records
    /// need stays. Fields are not cut: `select.fields` means nothing here.
    ///
    /// # Errors
    /// Returns an error if the output refuses, and where the format cannot hold the part.
    fn slice(&self, select: &Select, out: &mut dyn Write) -> Result<Sliced>;
}

/// For implementations: returns an error if the selected records are in parts of the log that were
/// not read.
pub fn refuse(log: &dyn LogReader, unread: &Unread, select: &Select) -> Option<Error> {
    if unread.is_empty() || log.needed(select).is_some_and(|needed| needed.is_empty()) {
        return None;
    }
    let why = "these records are in parts of the log that were not read";
    Some(Error::new(log.format().id, ErrorKind::PartlyRead, None, why))
}

/// A topic of a log: what is known of it, and the way to its records and columns. It is borrowed
/// from its log, so that it cannot be used with another.
#[derive(Clone, Copy)]
pub struct TopicRef<'a> {
    log: &'a dyn LogReader,
    topic: &'a Topic,
}

impl<'a> TopicRef<'a> {
    /// Returns what is known of the topic.
    pub fn get(self) -> &'a Topic {
        self.topic
    }

    /// Returns its records in time order, those within the span of `select`, which need not name
    /// the topic.
    pub fn records(self, select: &Select) -> Records<'a> {
        let select = Select { topics: Some([&*self.topic.name].into_iter().collect()), ..select.clone() };
        let id = self.topic.id;
        // A bag may have topics `a` and `a/0`, both of which answer to `a`.
        let is_own = move |record: &Result<Record<'_>>| record.as_ref().map_or(true, |r| r.topic.id == id);
        Box::new(self.log.records(&select).filter(is_own))
    }

    /// Reads its records as structs, in time order. See [`rows_within`](Self::rows_within).
    pub fn rows<T: DeserializeOwned>(self) -> impl Iterator<Item = Result<T>> + use<'a, T> {
        self.rows_within(&Select::all())
    }

    /// Reads its records within the span of `select` as structs, in time order.
    ///
    /// Fields are matched by name. A nested message is a struct, an array is `[T; N]` or `Vec<T>`,
    /// a text is `String`, and a time is a struct of `sec` and `nsec`, or an integer of nanoseconds.
    /// A field that some logs lack is an `Option`. Integers of another width are accepted where the
    /// value fits, floats where no digit is lost.
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
    /// An item is an error if the record cannot be read, a field is missing, or its type does not fit
    /// that of the struct; the message names the field and both types.
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

    /// Returns its records as Arrow record batches in file order: `t_ns`, then the selected fields.
    ///
    /// # Errors
    /// Returns an error if the topic cannot be decoded, or the format has no columns.
    #[cfg(feature = "arrow")]
    pub fn columns(self, select: &Select) -> Result<Batches<'a>> {
        self.log.topic_columns(self.topic.id, select)
    }

    /// Returns the definition text of its type as the log holds it, where it holds one.
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

/// One pass over a log from a pipe, in bounded memory. A topic is listed once its definition or
/// first record was read.
pub trait LogStream: Send {
    /// Returns the format's constants.
    fn format(&self) -> &'static FormatInfo;

    /// Returns the next record, in file order; `None` at the end.
    ///
    /// # Errors
    /// Returns an error if the input cannot be read, or turns out to use what is not supported.
    fn next_record(&mut self) -> Result<Option<Record<'_>>>;

    /// Returns the topics read so far.
    fn topics(&self) -> &[Topic];

    /// Returns the summary of what was read so far; complete once
    /// [`next_record`](Self::next_record) gave `None`.
    fn info(&self) -> LogInfo;

    /// Returns the diagnostics so far.
    fn diagnostics(&self) -> &Diagnostics;

    /// Returns what [`LogReader::take_escaped_texts`] returns.
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
    fn a_cut_signature_is_told_from_another_format() {
        assert_eq!(FORMAT.probe(b"TOYS and more"), Probe::Yes);
        assert_eq!(FORMAT.probe(b"TOY"), Probe::Prefix(3));
        assert_eq!(FORMAT.probe(b""), Probe::No);
        assert_eq!(FORMAT.probe(b"TOX1"), Probe::No);
    }
}
