#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod events;
mod packed;
pub mod page;
mod request;
mod scene;
mod signals;
mod summary;

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

use rovelog::AnyLog;
use rovelog::core::internal::parallel::lock;
use rovelog::core::internal::partial::Unread;
use rovelog_export::plot::Overview;
use rovelog_export::{TimeBase, report};

pub use packed::head;

/// Maximum memory in bytes for the overviews of a log. If it is exceeded, the oldest overviews are
/// removed. An overview contains the values of a signal, reduced to what a plot needs.
const MAX_OVERVIEW_BYTES: usize = 128 << 20;

/// A log that a viewer shows.
pub struct Explore {
    log: AnyLog,
    /// Name of the log on the page.
    name: String,
    /// Path of the log in the commands that the page shows.
    path: String,
    /// Time range that the page shows, in nanoseconds on the clock of the log.
    span: (i64, i64),
    /// Overviews of the signals that were drawn, oldest first.
    overviews: Mutex<Vec<Arc<Overview>>>,
}

/// Answer to a request of a viewer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Answer {
    /// Media type of `bytes`.
    pub media_type: &'static str,
    /// Content of the answer.
    pub bytes: Vec<u8>,
}

/// A request that cannot be answered, for example because it names an unknown topic.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct ExploreError(String);

impl Explore {
    /// Prepares a log for requests. The page shows `name`, and `path` is the path of the log in the
    /// commands that the page shows.
    pub fn new(log: AnyLog, name: impl Into<String>, path: impl Into<String>) -> Self {
        let span = report::span(&log).unwrap_or((0, 1));
        Self { log, name: name.into(), path: path.into(), span, overviews: Mutex::default() }
    }

    /// Returns the log.
    pub fn log(&self) -> &AnyLog {
        &self.log
    }

    /// Returns the name of the log on the page.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Answers a request. A request is a name, which may be followed by `?` and parameters in the
    /// form of the query of a URL.
    ///
    /// | request | answer |
    /// |---|---|
    /// | (empty) | facts of the log, its topics, and the plots that are shown first |
    /// | `row` | facts for a row in a list of logs |
    /// | `signals?topic=T&field=F&from=0&to=9&width=900` | times and values of signals |
    /// | `measures?topic=T&field=F&from=0&to=9` | mean, minimum, integral and others |
    /// | `spectrum?topic=&field=psd(x)&width=900&theme=dark` | an SVG picture |
    /// | `events` | messages and events in time order |
    /// | `findings` | problems of the flight or the recording, with their cause |
    /// | `problems` | problems of the file, such as damaged bytes |
    /// | `track` | positions of the vehicle |
    /// | `sources` | topics with images or point clouds, and the times of their records |
    /// | `image?topic=T&at=2.5`, `cloud?topic=T&at=2.5` | the image or the points at a time |
    ///
    /// A request may name several signals. With `preview=1`, their values are those of a few records
    /// at places that are spread evenly over the time range. If `topic` is empty, `field` is an expression. Times are
    /// in seconds since the start of the log. Facts are JSON. Numbers are sent as JSON text followed
    /// by arrays of 64-bit floats.
    ///
    /// # Errors
    /// Returns an error if the request is unknown or not valid for this log, or if the log cannot
    /// be read.
    pub fn answer(&self, request: &str) -> Result<Answer, ExploreError> {
        request::answer(self, request).map_err(ExploreError)
    }

    /// Returns the byte ranges of the file that must still be read to answer a request. When they
    /// were read, the log must be opened again, and may then need further ranges. The result is
    /// `None` if the whole file is needed. A log that was read completely needs nothing.
    pub fn needed(&self, request: &str) -> Option<Vec<Range<u64>>> {
        let is_whole = self.log.unread().is_none_or(Unread::is_empty);
        if is_whole { Some(Vec::new()) } else { request::needed(self, request) }
    }

    /// Returns a description of the bytes and records that could not be read so far, or `None`. If
    /// a bag was opened by its index, damage of a chunk is only found when the chunk is read.
    pub fn losses(&self) -> Option<String> {
        let losses = self.log.losses();
        (!losses.is_empty()).then(|| losses.to_string())
    }

    /// Returns the start of the log in milliseconds of Unix time. Returns `None` if the time axis
    /// cannot show UTC.
    fn unix_ms(&self) -> Option<f64> {
        TimeBase::of(&*self.log).axis_start(self.span.0).map(|nanos| nanos as f64 / 1e6)
    }

    /// Converts a time on the log's clock, in nanoseconds, to seconds since the start of the log.
    fn seconds(&self, nanos: i64) -> f64 {
        nanos.saturating_sub(self.span.0) as f64 / 1e9
    }

    /// Converts seconds since the start of the log to a time on the log's clock, in nanoseconds.
    #[expect(clippy::cast_possible_truncation, reason = "saturates")]
    fn nanos(&self, seconds: f64) -> i64 {
        self.span.0.saturating_add((seconds * 1e9).round() as i64)
    }

    /// Locks the overviews of the log's signals. They stay locked while the log is read, so that no
    /// signal is read twice. If another request has panicked while it held the lock, they are
    /// locked anyway, because they are consistent at all times.
    fn overviews(&self) -> MutexGuard<'_, Vec<Arc<Overview>>> {
        lock(&self.overviews)
    }
}

impl std::fmt::Debug for Explore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Explore").field("name", &self.name).field("span", &self.span).finish_non_exhaustive()
    }
}

/// Removes the oldest overviews until the memory of all overviews is within the limit. The last
/// `keep` overviews are not removed.
fn limit(overviews: &mut Vec<Arc<Overview>>, keep: usize) {
    let mut bytes: usize = overviews.iter().map(|overview| overview.bytes()).sum();
    while bytes > MAX_OVERVIEW_BYTES && overviews.len() > keep {
        bytes -= overviews.remove(0).bytes();
    }
}
