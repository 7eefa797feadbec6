//! A remote file as ranges of bytes: few requests, repeated where they fail, all of one version of
//! the file.

use std::future::Future;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use object_store::path::Path;
use object_store::{GetOptions, GetRange, GetResult, ObjectMeta, ObjectStore, ObjectStoreExt as _};
use rovelog_core::partial::END;
use tokio::runtime::Runtime;
use tokio::time::sleep;

use crate::address::Address;
use crate::error::RemoteError;
use crate::origin::{Moved, Origin, Take};
use crate::store::{Options, store};
use crate::wait::{runtime, within};

/// Ranges with fewer bytes between them are fetched as one: a request costs more.
const APART: u64 = 64 << 10;

/// Most bytes of a request.
const PIECE: u64 = 8 << 20;

/// Requests at once: of large pieces as many as keep a connection busy in bounded memory, of small
/// ones as many as servers like.
const LARGE_AT_ONCE: usize = 2;
const SMALL_AT_ONCE: usize = 16;

/// How often a request is made whose answer breaks off; the store itself repeats those that fail.
const ATTEMPTS: usize = 3;

/// A remote file.
#[derive(Debug)]
pub(crate) struct Source {
    store: Arc<dyn ObjectStore>,
    path: Path,
    runtime: Runtime,
    options: Options,
    /// Of the first answer; all others must agree.
    first: ObjectMeta,
    /// False if the server answers with whole files only.
    has_ranges: bool,
    moved: Mutex<Moved>,
}

impl Source {
    /// Asks for the end of the file: one request that gives its size and version too, and tells
    /// whether the server reads by ranges. Returns the source with where these bytes start.
    pub(crate) fn open(address: &Address, options: &Options) -> Result<(Self, u64, Bytes), RemoteError> {
        let (store, path) = store(address, options)?;
        let runtime = runtime()?;
        let end = END.min(options.max_bytes.unwrap_or(END));
        // A range of no bytes cannot be asked for.
        Moved::default().allow(end.max(1), options.max_bytes)?;
        let asked = GetOptions { range: Some(GetRange::Suffix(end)), ..GetOptions::default() };
        let answer = runtime.block_on(repeated(|| async {
            let answer = within(options.timeout, store.get_opts(&path, asked.clone())).await?;
            let (meta, range) = (answer.meta.clone(), answer.range.clone());
            Ok((meta, range.start, body(answer, range, options.timeout).await?))
        }));
        let (first, at, tail, has_ranges) = match answer {
            Ok((meta, at, tail)) => (meta, at, tail, true),
            // A server without ranges, a store without ranges from the end, or an empty file.
            Err(RemoteError::NoRanges | RemoteError::Failed { .. }) => {
                let meta = runtime.block_on(async {
                    match within(options.timeout, store.head(&path)).await {
                        // Not every server answers that; the start of an answer has the same in it.
                        Err(RemoteError::Failed { .. }) => {
                            let answer = store.get_opts(&path, GetOptions::default());
                            Ok(within(options.timeout, answer).await?.meta)
                        }
                        meta => meta,
                    }
                })?;
                let at = meta.size.saturating_sub(end);
                let source = Self::new(store, path, runtime, options, meta, true);
                if source.first.size == 0 {
                    return Ok((source, 0, Bytes::new()));
                }
                return match source.get(std::slice::from_ref(&(at..source.first.size))) {
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
        self.moved.lock().unwrap_or_else(PoisonError::into_inner).add(bytes);
    }

    /// Returns these ranges, each with its offset: joined where they are close, and cut where they
    /// are long.
    pub(crate) fn get(&self, ranges: &[Range<u64>]) -> Result<Vec<(u64, Bytes)>, RemoteError> {
        let mut got = Vec::new();
        self.each(ranges, &mut |at, bytes| {
            got.push((at, bytes));
            Ok(())
        })?;
        Ok(got)
    }

    /// Refuses an answer about another version of the file than the first one.
    fn compare(&self, meta: &ObjectMeta) -> Result<(), RemoteError> {
        let first = &self.first;
        let same = meta.size == first.size
            && meta.e_tag == first.e_tag
            && meta.version == first.version
            && (first.e_tag.is_some() || meta.last_modified == first.last_modified);
        if same { Ok(()) } else { Err(RemoteError::Changed) }
    }

    async fn piece(&self, range: Range<u64>) -> Result<Bytes, RemoteError> {
        let asked = GetOptions { range: Some(GetRange::Bounded(range.clone())), ..GetOptions::default() };
        let limit = self.options.timeout;
        let answer = within(limit, self.store.get_opts(&self.path, asked)).await?;
        self.compare(&answer.meta)?;
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
        *self.moved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn each(&self, ranges: &[Range<u64>], take: Take<'_>) -> Result<(), RemoteError> {
        let pieces = pieces(ranges);
        let asked: u64 = pieces.iter().map(|range| range.end - range.start).sum();
        self.moved().allow(asked, self.options.max_bytes)?;
        let is_large = pieces.iter().any(|range| range.end - range.start > PIECE / 8);
        let at_once = if is_large { LARGE_AT_ONCE } else { SMALL_AT_ONCE };
        self.runtime.block_on(async {
            let answers = stream::iter(pieces).map(|range| async move {
                let bytes = repeated(|| self.piece(range.clone())).await?;
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

    /// In one request, of a server without ranges.
    fn whole(&self, take: Take<'_>) -> Result<(), RemoteError> {
        self.moved().allow(self.size(), self.options.max_bytes)?;
        let limit = self.options.timeout;
        self.runtime.block_on(async {
            let answer = within(limit, self.store.get_opts(&self.path, GetOptions::default())).await?;
            self.compare(&answer.meta)?;
            let (mut at, size) = (0, self.size());
            let mut parts = answer.into_stream();
            while let Some(part) = within(limit, parts.try_next()).await? {
                at += part.len() as u64;
                take(at - part.len() as u64, part)?;
            }
            self.count(at);
            if at == size { Ok(()) } else { Err(RemoteError::Short { at: 0, asked: size, got: at }) }
        })
    }
}

/// Returns the bytes of an answer, which must be those that were asked for.
async fn body(answer: GetResult, asked: Range<u64>, limit: Duration) -> Result<Bytes, RemoteError> {
    let len = asked.end - asked.start;
    let mut bytes = Vec::new();
    let mut parts = answer.into_stream();
    while let Some(part) = within(limit, parts.try_next()).await? {
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

/// Repeats a request whose answer broke off, each time after a longer pause. The store itself repeats
/// those that the server answers with an error.
async fn repeated<T, F: Future<Output = Result<T, RemoteError>>>(
    mut request: impl FnMut() -> F,
) -> Result<T, RemoteError> {
    let mut pause = Duration::from_millis(100);
    for _ in 1..ATTEMPTS {
        match request().await {
            Err(error) if error.is_passing() => sleep(pause).await,
            answer => return answer,
        }
        pause *= 2;
    }
    request().await
}

/// Joins ranges that are close to each other, and cuts long ones.
fn pieces(ranges: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut ranges: Vec<_> = ranges.iter().filter(|range| range.start < range.end).cloned().collect();
    ranges.sort_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end.saturating_add(APART) => {
                last.end = last.end.max(range.end);
            }
            _ => joined.push(range),
        }
    }
    let cut = |range: Range<u64>| {
        let starts = range.clone().step_by(usize::try_from(PIECE).unwrap_or(usize::MAX));
        starts.map(move |at| at..range.end.min(at + PIECE))
    };
    joined.into_iter().flat_map(cut).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_joined_and_cut() {
        assert_eq!(pieces(&[100..200, 0..10, 50..50, 300_000..300_010]), [0..200, 300_000..300_010]);
        let long = pieces(std::slice::from_ref(&(5..5 + 2 * PIECE + 1)));
        assert_eq!(long.len(), 3);
        assert_eq!((long[0].start, long[2].end), (5, 6 + 2 * PIECE));
        assert!(long.windows(2).all(|pair| pair[0].end == pair[1].start));
    }
}
