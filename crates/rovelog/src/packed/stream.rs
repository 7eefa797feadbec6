//! Streams of compressed logs, which are decompressed piece by piece in bounded memory.

use std::cell::OnceCell;
use std::io::{self, BufReader, Read};
use std::sync::{Arc, Mutex, PoisonError};

use rovelog_core::layout::EscapedTexts;
use rovelog_core::packed::{Ending, Packing};
use rovelog_core::reader::SEARCH_LEN;
use rovelog_core::{
    Diagnostics, Error, FormatInfo, LogInfo, LogStream, ReadOptions, Record, Result, State, Topic,
};

use super::{Compression, Decompressor, explain_cut};

/// The state of decompression. The stream of records shares it with the input that it reads.
#[derive(Default)]
struct Progress {
    /// Number of bytes decompressed so far.
    size: u64,
    /// How the data ends; `None` before its end.
    ending: Option<Ending>,
    failure: Option<Error>,
}

type Shared = Arc<Mutex<Progress>>;

/// The decompressed input of a log, which records its progress.
struct Input<R: Read> {
    compression: Compression,
    decompressor: Decompressor<BufReader<R>>,
    progress: Shared,
}

impl<R: Read> Read for Input<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        match self.decompressor.read(out) {
            Ok(read) => {
                progress.size += read as u64;
                if read == 0 && !out.is_empty() {
                    progress.ending = Some(self.decompressor.ending());
                }
                Ok(read)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            Err(error) => {
                let kind = error.kind();
                progress.failure = Some(self.compression.failed(progress.size, error));
                Err(kind.into())
            }
        }
    }
}

/// Opens a log from a compressed stream. `format` is a format id; if it is `None`, the format is
/// detected.
pub(crate) fn open_stream(
    compression: Compression,
    input: Box<dyn Read + Send>,
    format: Option<&str>,
    options: &ReadOptions,
) -> Result<Box<dyn LogStream>> {
    let progress = Shared::default();
    let decompressor = Decompressor::new(compression, BufReader::new(input));
    let mut input = Input { compression, decompressor, progress: Arc::clone(&progress) };
    let opened = (|| {
        let mut head = Vec::new();
        let read = input.by_ref().take(SEARCH_LEN as u64).read_to_end(&mut head);
        read.map_err(|error| Error::io("rovelog", error))?;
        let format = format.map_or_else(|| crate::detect::built_in(&head), Ok)?;
        crate::formats::stream_known(format, Box::new(io::Cursor::new(head).chain(input)), options)
    })();
    let name = compression.name();
    match opened {
        Ok(inner) => Ok(Box::new(Stream { inner, name, progress, ended: false, merged: OnceCell::new() })),
        Err(error) => Err(explain_failure(name, &progress, error)),
    }
}

/// Returns the reason why a stream failed: a failure of decompression, or `error`.
fn explain_failure(name: &'static str, progress: &Shared, error: Error) -> Error {
    let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
    match (progress.failure.take(), progress.ending) {
        (Some(failure), _) => failure,
        (None, Some(ending)) => explain_cut(&Packing { name, ending, size: progress.size }, error),
        (None, None) => error,
    }
}

/// A stream of a compressed log. Problems of the compressed data are only reported at its end.
struct Stream {
    inner: Box<dyn LogStream>,
    name: &'static str,
    progress: Shared,
    ended: bool,
    /// The diagnostics of the log, with those about the compressed data.
    merged: OnceCell<Diagnostics>,
}

impl Stream {
    /// Returns how the compressed data ends, after the end of the log.
    fn packing(&self) -> Option<Packing> {
        let progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let (size, ending) = (progress.size, progress.ending.filter(|_| self.ended)?);
        Some(Packing { name: self.name, ending, size })
    }
}

impl LogStream for Stream {
    fn format(&self) -> &'static FormatInfo {
        self.inner.format()
    }

    fn next_record(&mut self) -> Result<Option<Record<'_>>> {
        let record = self.inner.next_record();
        self.ended = matches!(record, Ok(None));
        record.map_err(|error| explain_failure(self.name, &self.progress, error))
    }

    fn topics(&self) -> &[Topic] {
        self.inner.topics()
    }

    fn take_escaped_texts(&self) -> Vec<EscapedTexts> {
        self.inner.take_escaped_texts()
    }

    fn info(&self) -> LogInfo {
        let mut info = self.inner.info();
        if let Some(packing) = self.packing() {
            let found = self.diagnostics();
            (info.lost, info.problems) = (found.ledger().clone(), found.total());
            info.state = match (packing.ending, info.state) {
                (Ending::Cut { .. } | Ending::Unchecked { .. }, State::Complete) => State::Truncated,
                (Ending::Followed { zeros: false, .. }, _) => State::Damaged,
                (_, state) => state,
            };
        }
        info
    }

    fn diagnostics(&self) -> &Diagnostics {
        match self.packing() {
            None => self.inner.diagnostics(),
            Some(packing) => self.merged.get_or_init(|| {
                let mut diagnostics = self.inner.diagnostics().clone();
                packing.note(&mut diagnostics);
                diagnostics
            }),
        }
    }
}
