//! Downloads byte ranges of a remote file.
//!
//! Requested ranges that are close together are merged, and long ranges are divided. Requests run
//! in parallel and are repeated if the connection breaks. Every response must describe the same
//! version of the file as the first response, so that parts of two versions are never mixed.
//!
//! For example, the ranges 0 to 10 and 100 to 200 become the single request 0 to 200, because a
//! second request would take longer than 90 additional bytes. A range of 20 MiB becomes three
//! requests of 8, 8 and 4 MiB.

use std::future::Future;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use object_store::path::Path;
use object_store::{GetOptions, GetRange, GetResult, ObjectMeta, ObjectStore, ObjectStoreExt as _};
use rovelog_core::internal::parallel::lock;
use rovelog_core::internal::partial::END;
use tokio::runtime::Runtime;
use tokio::time::sleep;

use crate::address::Address;
use crate::error::RemoteError;
use crate::origin::{Moved, Origin, Take};
use crate::store::{Options, store};
use crate::wait::{runtime, store_response};

/// Maximum number of bytes between two ranges that are fetched with one request. A second request
/// would take longer than these bytes.
const MAX_GAP_BYTES: u64 = 64 << 10;

/// Maximum number of bytes in one request.
const MAX_REQUEST_BYTES: u64 = 8 << 20;

/// Number of parallel requests if at least one of them is large. Two requests keep a connection
/// busy, and need at most twice [`MAX_REQUEST_BYTES`] of memory.
const LARGE_AT_ONCE: usize = 2;

/// Number of parallel requests if all of them are small. Servers start to throttle clients that
/// send many more requests at the same time.
const SMALL_AT_ONCE: usize = 16;

/// Maximum number of attempts for a request if the connection breaks during the response. If the
/// server answers with an error status, [`object_store`] itself repeats the request.
const ATTEMPTS: usize = 3;

/// A file on a server, of which byte ranges can be downloaded.
#[derive(Debug)]
pub(crate) struct Source {
    store: Arc<dyn ObjectStore>,
    path: Path,
    runtime: Runtime,
    options: Options,
    /// Metadata of the file in the first response. The metadata in all later responses must match.
    first: ObjectMeta,
    /// True if the server supports range requests. Otherwise it only sends whole files.
    has_ranges: bool,
    moved: Mutex<Moved>,
}

impl Source {
    /// Opens a file by requesting its last bytes. The response also contains the size and the
    /// version of the file, and shows whether the server supports range requests. Returns the
    /// source, the offset of the received bytes, and these bytes.
    pub(crate) fn open(address: &Address, options: &Options) -> Result<(Self, u64, Bytes), RemoteError> {
        let (store, path) = store(address, options)?;
        let runtime = runtime()?;
        let end = END.min(options.max_bytes.unwrap_or(END));
        // HTTP has no request for zero bytes, so the user must allow at least one byte.
        Moved::default().allow(end.max(1), options.max_bytes)?;
        let asked = GetOptions { range: Some(GetRange::Suffix(end)), ..GetOptions::default() };
        let answer = runtime.block_on(with_retries(|| async {
            let answer = store_response(options.timeout, store.get_opts(&path, asked.clone())).await?;
            let (meta, range) = (answer.meta.clone(), answer.range.clone());
            Ok((meta, range.start, body(answer, range, options.timeout).await?))
        }));
        let (first, at, tail, has_ranges) = match answer {
            Ok((meta, at, tail)) => (meta, at, tail, true),
            // This error has three possible causes. The server does not support range requests,
            // the store does not support ranges relative to the end (Azure), or the file is empty.
            Err(RemoteError::NoRanges | RemoteError::Failed { .. }) => {
                let meta = runtime.block_on(async {
                    match store_response(options.timeout, store.head(&path)).await {
                        // Some servers do not support HEAD requests. A response to a GET request
                        // has the same headers, and its body is not read.
                        Err(RemoteError::Failed { .. }) => {
                            let answer = store.get_opts(&path, GetOptions::default());
                            Ok(store_response(options.timeout, answer).await?.meta)
                        }
                        meta => meta,
                    }
                })?;
                let at = meta.size.saturating_sub(end);
                let source = Self::new(store, path, runtime, options, meta, true);
                if source.first.size == 0 {
                    return Ok((source, 0, Bytes::new()));
                }
                return match source.fetch_ranges(std::slice::from_ref(&(at..source.first.size))) {
                    Ok(mut tail) => {
                        let bytes = tail.pop().map(|(_, bytes)| bytes).unwrap_or_default();
                        Ok((source, at, bytes))
                    }
                    Err(RemoteError::NoRanges) => {
                        let size = source.first.size;
                        Ok((Self { has_ranges: false, ..source }, size, Bytes::new()))
                    }
                    Err(error) => Err(error),
                };
            }
            Err(error) => return Err(error),
        };
        let source = Self::new(store, path, runtime, options, first, has_ranges);
        source.count(tail.len() as u64);
        Ok((source, at, tail))
    }

    fn new(
        store: Arc<dyn ObjectStore>,
        path: Path,
        runtime: Runtime,
        options: &Options,
        first: ObjectMeta,
        has_ranges: bool,
    ) -> Self {
        let moved = Mutex::default();
        Self { store, path, runtime, options: options.clone(), first, has_ranges, moved }
    }

    fn count(&self, bytes: u64) {
        lock(&self.moved).add(bytes);
    }

    /// Downloads byte ranges. Returns parts of the file with their offsets. These parts may be
    /// longer or shorter than the requested ranges, because ranges that are close together are
    /// merged, and long ranges are divided.
    pub(crate) fn fetch_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<(u64, Bytes)>, RemoteError> {
        let mut got = Vec::new();
        self.each(ranges, &mut |at, bytes| {
            got.push((at, bytes));
            Ok(())
        })?;
        Ok(got)
    }

    /// Returns an error if a response describes a different version of the file than the first
    /// response.
    fn check_version(&self, meta: &ObjectMeta) -> Result<(), RemoteError> {
        let first = &self.first;
        // An ETag identifies the content of a file. If the server sends no ETag, the modification
        // time is compared instead.
        let same = meta.size == first.size
            && meta.e_tag == first.e_tag
            && meta.version == first.version
            && (first.e_tag.is_some() || meta.last_modified == first.last_modified);
        if same { Ok(()) } else { Err(RemoteError::Changed) }
    }

    /// Downloads one byte range with one request.
    async fn fetch_piece(&self, range: Range<u64>) -> Result<Bytes, RemoteError> {
        let asked = GetOptions { range: Some(GetRange::Bounded(range.clone())), ..GetOptions::default() };
        let limit = self.options.timeout;
        let answer = store_response(limit, self.store.get_opts(&self.path, asked)).await?;
        self.check_version(&answer.meta)?;
        body(answer, range, limit).await
    }
}

impl Origin for Source {
    fn size(&self) -> u64 {
        self.first.size
    }

    fn has_ranges(&self) -> bool {
        self.has_ranges
    }

    fn moved(&self) -> Moved {
        *lock(&self.moved)
    }

    fn each(&self, ranges: &[Range<u64>], take: Take<'_>) -> Result<(), RemoteError> {
        let pieces = plan_requests(ranges);
        let asked: u64 = pieces.iter().map(|range| range.end - range.start).sum();
        self.moved().allow(asked, self.options.max_bytes)?;
        let is_large = pieces.iter().any(|range| range.end - range.start > MAX_REQUEST_BYTES / 8);
        let at_once = if is_large { LARGE_AT_ONCE } else { SMALL_AT_ONCE };
        self.runtime.block_on(async {
            let answers = stream::iter(pieces).map(|range| async move {
                let bytes = with_retries(|| self.fetch_piece(range.clone())).await?;
                Ok::<_, RemoteError>((range.start, bytes))
            });
            let mut answers = answers.buffer_unordered(at_once);
            while let Some((at, bytes)) = answers.try_next().await? {
                self.count(bytes.len() as u64);
                take(at, bytes)?;
            }
            Ok(())
        })
    }

    /// Downloads the whole file with one request. This also works if the server does not support
    /// range requests.
    fn whole(&self, take: Take<'_>) -> Result<(), RemoteError> {
        self.moved().allow(self.size(), self.options.max_bytes)?;
        let limit = self.options.timeout;
        self.runtime.block_on(async {
            let answer =
                store_response(limit, self.store.get_opts(&self.path, GetOptions::default())).await?;
            self.check_version(&answer.meta)?;
            let (mut at, size) = (0, self.size());
            let mut parts = answer.into_stream();
            while let Some(part) = store_response(limit, parts.try_next()).await? {
                at += part.len() as u64;
                take(at - part.len() as u64, part)?;
            }
            self.count(at);
            if at == size { Ok(()) } else { Err(RemoteError::Short { at: 0, asked: size, got: at }) }
        })
    }
}

/// Reads the body of a response. Returns an error if the body has a different length than the
/// requested range.
async fn body(answer: GetResult, asked: Range<u64>, limit: Duration) -> Result<Bytes, RemoteError> {
    let len = asked.end - asked.start;
    let mut bytes = Vec::new();
    let mut parts = answer.into_stream();
    while let Some(part) = store_response(limit, parts.try_next()).await? {
        // A server may ignore the requested range and send the whole file. So the body is not read
        // beyond the requested length.
        if bytes.len() as u64 + part.len() as u64 > len {
            break;
        }
        bytes.extend_from_slice(&part);
    }
    if bytes.len() as u64 == len {
        return Ok(bytes.into());
    }
    Err(RemoteError::Short { at: asked.start, asked: len, got: bytes.len() as u64 })
}

/// Repeats a request if the connection breaks during the response. The pause before each attempt is
/// twice as long as the pause before. If the server answers with an error status, [`object_store`]
/// itself repeats the request.
async fn with_retries<T, F: Future<Output = Result<T, RemoteError>>>(
    mut request: impl FnMut() -> F,
) -> Result<T, RemoteError> {
    let mut pause = Duration::from_millis(100);
    for _ in 1..ATTEMPTS {
        match request().await {
            Err(error) if error.is_transient() => sleep(pause).await,
            answer => return answer,
        }
        pause *= 2;
    }
    request().await
}

/// Returns the requests for some byte ranges. Ranges that are close together are merged, and long
/// ranges are divided.
fn plan_requests(ranges: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut ranges: Vec<_> = ranges.iter().filter(|range| range.start < range.end).cloned().collect();
    ranges.sort_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end.saturating_add(MAX_GAP_BYTES) => {
                last.end = last.end.max(range.end);
            }
            _ => joined.push(range),
        }
    }
    let cut = |range: Range<u64>| {
        let starts = range.clone().step_by(usize::try_from(MAX_REQUEST_BYTES).unwrap_or(usize::MAX));
        starts.map(move |at| at..range.end.min(at + MAX_REQUEST_BYTES))
    };
    joined.into_iter().flat_map(cut).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_merged_and_split() {
        assert_eq!(plan_requests(&[100..200, 0..10, 50..50, 300_000..300_010]), [0..200, 300_000..300_010]);
        let long = plan_requests(std::slice::from_ref(&(5..5 + 2 * MAX_REQUEST_BYTES + 1)));
        assert_eq!(long.len(), 3);
        assert_eq!((long[0].start, long[2].end), (5, 6 + 2 * MAX_REQUEST_BYTES));
        assert!(long.windows(2).all(|pair| pair[0].end == pair[1].start));
    }
}
