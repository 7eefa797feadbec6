//! A compressed log from a pipe: decompressed piece by piece in bounded memory.

use std::cell::OnceCell;
use std::io::{self, BufReader, Read};
use std::sync::{Arc, Mutex, PoisonError};

use rovelog_core::packed::{Ending, Packing};
use rovelog_core::reader::PROBE_LEN;
use rovelog_core::{
    Diagnostics, Error, FormatInfo, LogInfo, LogStream, ReadOptions, Record, Result, State, Topic,
};

use super::{Compression, Unpacked, not_begun};

/// How decompressing went so far: known to the stream that reads what is decompressed.
#[derive(Default)]
struct Progress {
    /// Bytes decompressed.
    size: u64,
    /// How the data end, once they do.
    ending: Option<Ending>,
    failure: Option<Error>,
}

type Shared = Arc<Mutex<Progress>>;

/// Decompresses, and keeps account of it.
struct Input<R: Read> {
    compression: Compression,
    unpacked: Unpacked<BufReader<R>>,
    progress: Shared,
}

impl<R: Read> Read for Input<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        match self.unpacked.read(out) {
            Ok(read) => {
                progress.size += read as u64;
                if read == 0 && !out.is_empty() {
                    progress.ending = Some(self.unpacked.ending());
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

/// Opens the log in a compressed pipe. `format` is an id; `None` detects the format.
pub(crate) fn open_stream(
    compression: Compression,
    input: Box<dyn Read + Send>,
    format: Option<&str>,
    options: &ReadOptions,
) -> Result<Box<dyn LogStream>> {
    let progress = Shared::default();
    let unpacked = Unpacked::new(compression, BufReader::new(input));
    let mut input = Input { compression, unpacked, progress: Arc::clone(&progress) };
    let opened = (|| {
        let mut head = Vec::new();
        let read = input.by_ref().take(PROBE_LEN as u64).read_to_end(&mut head);
        read.map_err(|error| Error::io("rovelog", error))?;
        let format = format.map_or_else(|| crate::detect::built_in(&head), Ok)?;
        crate::formats::stream_known(format, Box::new(io::Cursor::new(head).chain(input)), options)
    })();
    let name = compression.name();
    match opened {
        Ok(inner) => Ok(Box::new(Stream { inner, name, progress, ended: false, noted: OnceCell::new() })),
        Err(error) => Err(explained(name, &progress, error)),
    }
}

/// Returns why a stream failed: decompressing, or what was decompressed.
fn explained(name: &'static str, progress: &Shared, error: Error) -> Error {
    let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
    match (progress.failure.take(), progress.ending) {
        (Some(failure), _) => failure,
        (None, Some(ending)) => not_begun(&Packing { name, ending, size: progress.size }, error),
        (None, None) => error,
    }
}

/// A compressed log from a pipe. What is noticed about the compressed data is known at its end.
struct Stream {
    inner: Box<dyn LogStream>,
    name: &'static str,
    progress: Shared,
    ended: bool,
    /// The diagnostics, with those of the compressed data.
    noted: OnceCell<Diagnostics>,
}

impl Stream {
    /// Returns how the compressed data end, once the log has ended.
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
        record.map_err(|error| explained(self.name, &self.progress, error))
    }

    fn topics(&self) -> &[Topic] {
        self.inner.topics()
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
            Some(packing) => self.noted.get_or_init(|| {
                let mut diagnostics = self.inner.diagnostics().clone();
                packing.note(&mut diagnostics);
                diagnostics
            }),
        }
    }
}
