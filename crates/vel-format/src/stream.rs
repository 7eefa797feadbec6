//! The stream reader. It reads the input once in bounded memory, and returns the same records as
//! the random-access reader.

use std::io::Read;
use std::sync::Arc;

use rovelog_core::internal::scan::{Source, Stream};
use rovelog_core::{
    Clock, Diagnostics, FormatInfo, LogInfo, LogStream, ReadOptions, Record, Timestamp, Topic,
};

use crate::declared::Types;
use crate::error::VelError;
use crate::locate::StartError;
use crate::scan::{ScanOptions, Scanner, Step, view};
use crate::state::Summary;

/// A VEL log that is read from a stream.
///
/// The buffer holds one chunk of the input, or one message and the following bytes that the scanner
/// needs. It does not grow with the log. If the first message is not at the offset that the index
/// implies, up to 40 MiB at the start are buffered.
pub struct VelStream<R> {
    stream: Stream<R, Scanner>,
    summary: Summary,
    /// True after the end of the log was reached and the diagnostics about the end were reported.
    finished: bool,
}

impl<R: Read> VelStream<R> {
    /// Reads the start of a log.
    ///
    /// # Errors
    /// Returns an error if the input cannot be read, is not a VEL log, or ends inside the header.
    /// Also returns an error if `options.declarations` is invalid.
    pub fn new(input: R, options: &ReadOptions) -> Result<Self, VelError> {
        Self::start(input, options, false)
    }

    /// Reads the start of a log whose magic number may be damaged.
    ///
    /// # Errors
    /// Returns the errors of [`new`](Self::new). Returns an error if no message is found.
    pub fn salvage(input: R, options: &ReadOptions) -> Result<Self, VelError> {
        Self::start(input, options, true)
    }

    fn start(input: R, options: &ReadOptions, salvage: bool) -> Result<Self, VelError> {
        let types = Arc::new(Types::parse(&options.declarations)?);
        let rules = ScanOptions { options: options.clone(), types, salvage };
        let (source, scanner) = Source::start(input, |window| match Scanner::start(window, &rules) {
            Ok(scanner) => Ok(Ok(scanner)),
            Err(StartError::Refused(error)) => Ok(Err(error)),
            Err(StartError::Need(need)) => Err(need),
        })?;
        let summary = Summary::new(&scanner, options.utc_start);
        Ok(Self { stream: Stream { source, scan: scanner }, summary, finished: false })
    }

    fn next_message(&mut self) -> Result<Option<Record<'_>>, VelError> {
        let (at, end, nanos, series, seq) = loop {
            match self.stream.step(Source::fill)? {
                Step::Message { at, end, nanos, fit } => {
                    let message = view(self.stream.source.window(), at, end, nanos);
                    if let Some((series, seq)) = self.summary.message(&mut self.stream.scan, &message, fit) {
                        break (at, end, nanos, series, seq);
                    }
                }
                Step::End => {
                    if !std::mem::replace(&mut self.finished, true) {
                        self.summary.finish(&mut self.stream.scan);
                    }
                    return Ok(None);
                }
                step => drop(self.summary.part(&step)),
            }
        };
        let data = view(self.stream.source.window(), at, end, nanos).data;
        let time = Some(Timestamp::new(nanos, Clock::LogStart));
        let topic = &self.summary.topics.list[series as usize];
        Ok(Some(Record::new(topic, time, at, seq, data, &self.summary.topics.decoder)))
    }
}

impl<R: Read + Send> LogStream for VelStream<R> {
    fn format(&self) -> &'static FormatInfo {
        &crate::wire::INFO
    }

    fn next_record(&mut self) -> rovelog_core::Result<Option<Record<'_>>> {
        Ok(self.next_message()?)
    }

    fn topics(&self) -> &[Topic] {
        &self.summary.topics.list
    }

    fn info(&self) -> LogInfo {
        let (scanner, size) = (&self.stream.scan, self.stream.source.window().end());
        self.summary.info(scanner, &self.summary.conclusions(scanner), size)
    }

    fn diagnostics(&self) -> &Diagnostics {
        &self.stream.scan.diagnostics
    }
}
