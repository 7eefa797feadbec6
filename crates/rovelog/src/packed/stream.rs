//! Streams of compressed logs, which are decompressed in small parts with bounded memory.

use std::cell::OnceCell;
use std::io::{self, BufReader, Read};
use std::sync::{Arc, Mutex};

use rovelog_core::format::SEARCH_LEN;
use rovelog_core::internal::layout::EscapedTexts;
use rovelog_core::internal::packed::{Ending, Packing};
use rovelog_core::internal::parallel::lock;
use rovelog_core::{
    Diagnostics, Error, FormatInfo, LogInfo, LogStream, ReadOptions, Record, Result, State, Topic,
};

use super::{Compression, Decompressor, explain_cut};

/// State of decompression. The stream of records and the input that it reads share this state.
#[derive(Default)]
struct Progress {
    /// Number of bytes that were decompressed so far.
    size: u64,
    /// State of the end of the compressed data, for example truncated. `None` until the end has been
    /// reached.
    ending: Option<Ending>,
    /// Error that occurred during decompression. The reader of the log only receives the kind of
    /// this error.
    failure: Option<Error>,
}

/// State of decompression that the stream of records shares with its input.
type Shared = Arc<Mutex<Progress>>;

/// The decompressed input of a log. Reading from it updates the shared state.
struct Input<R: Read> {
    /// Compression of the input.
    compression: Compression,
    /// Decoder of the input.
    decompressor: Decompressor<BufReader<R>>,
    /// Shared state that is updated by reading.
    progress: Shared,
}

impl<R: Read> Read for Input<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut progress = lock(&self.progress);
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
                progress.failure = Some(self.compression.decoder_error(progress.size, error));
                Err(kind.into())
            }
        }
    }
}

/// Opens a log from a compressed stream. `format` is a format id. If it is `None`, the format is
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

/// Returns the error to report if the reader of a log has failed with `error`. If decompression has
/// failed, its error is the cause and is returned instead.
fn explain_failure(name: &'static str, progress: &Shared, error: Error) -> Error {
    let mut progress = lock(progress);
    match (progress.failure.take(), progress.ending) {
        (Some(failure), _) => failure,
        (None, Some(ending)) => explain_cut(&Packing { name, ending, size: progress.size }, error),
        (None, None) => error,
    }
}

/// A stream of records from a compressed log. Problems of the compressed data are reported at the
/// end of the log.
struct Stream {
    /// Stream of the decompressed log.
    inner: Box<dyn LogStream>,
    /// Name of the compression.
    name: &'static str,
    /// State of decompression, which is shared with the input.
    progress: Shared,
    /// True if the end of the log was reached.
    ended: bool,
    /// Diagnostics of the log, followed by the diagnostics of the compressed data.
    merged: OnceCell<Diagnostics>,
}

impl Stream {
    /// Returns how the compressed data ends. Returns `None` before the end of the log.
    fn packing(&self) -> Option<Packing> {
        let progress = lock(&self.progress);
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
