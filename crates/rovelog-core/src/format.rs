//! The trait that every format implements, its constants and options, and detection of a format by
//! its signature.

use std::collections::BTreeMap;
use std::io::Write;

use crate::internal::layout::TextEncoding;
use crate::internal::packed::Packing;
use crate::internal::partial::{Ranges, Unread};
use crate::{Align, Bytes, Clock, Diagnostics, Limits, LogReader, LogStream, Merged, Result};

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
