//! A file of this machine as a remote one: complete, or not there.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use futures_util::TryStreamExt as _;
use futures_util::stream::FuturesUnordered;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, PutPayload};

use crate::address::Address;
use crate::error::RemoteError;
use crate::store::{Options, store};
use crate::wait::{answer_within, runtime, within};

/// Bytes of a part. Stores take at most ten thousand parts: 160 GB.
const PART: usize = 16 << 20;

/// A part may take this many times as long as an answer: 16 MB in five minutes.
const SLOWER: u32 = 10;

/// Parts that are under way at once.
const AT_ONCE: usize = 2;

/// Writes the file at `from` to `to`. An existing file is replaced only with `force`; otherwise that
/// is an error, and nothing is written.
///
/// # Errors
/// Returns an error if the file cannot be read, the output exists, or the server refuses it. Then the
/// server has nothing of the file.
pub fn upload(from: &Path, to: &Address, force: bool, options: &Options) -> Result<(), RemoteError> {
    let mut file = File::open(from)?;
    let size = file.metadata()?.len();
    let (store, path) = store(to, options)?;
    let limit = options.timeout * SLOWER;
    runtime()?.block_on(async {
        if size <= PART as u64 {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            return put(&*store, &path, bytes, force, limit).await;
        }
        // Stores have no condition on uploads in parts.
        if !force {
            refuse_existing(&*store, &path, limit).await?;
        }
        let mut parts = within(limit, store.put_multipart(&path)).await?;
        let sent = send(&mut file, &mut *parts, limit).await;
        if sent.is_err() {
            // What is left of an upload that is not ended is removed by the store.
            let _ = within(limit, parts.abort()).await;
        }
        sent
    })
}

async fn put(
    store: &dyn ObjectStore,
    path: &object_store::path::Path,
    bytes: Vec<u8>,
    force: bool,
    limit: Duration,
) -> Result<(), RemoteError> {
    let payload = PutPayload::from(bytes);
    let mode = if force { PutMode::Overwrite } else { PutMode::Create };
    let put = store.put_opts(path, payload.clone(), PutOptions::from(mode));
    match answer_within(limit, put).await? {
        // A store without conditions.
        Err(object_store::Error::NotImplemented { .. }) if !force => {
            refuse_existing(store, path, limit).await?;
            within(limit, store.put(path, payload)).await.map(drop)
        }
        put => Ok(put.map(drop)?),
    }
}

async fn refuse_existing(
    store: &dyn ObjectStore,
    path: &object_store::path::Path,
    limit: Duration,
) -> Result<(), RemoteError> {
    match within(limit, store.head(path)).await {
        Ok(_) => Err(RemoteError::Exists),
        Err(RemoteError::NotFound) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Sends all parts and ends the upload; the limit is for each part.
async fn send(file: &mut File, parts: &mut dyn MultipartUpload, limit: Duration) -> Result<(), RemoteError> {
    let mut under_way = FuturesUnordered::new();
    loop {
        let mut piece = Vec::new();
        file.take(PART as u64).read_to_end(&mut piece)?;
        if under_way.len() == AT_ONCE || piece.is_empty() {
            within(limit, under_way.try_next()).await?;
        }
        if !piece.is_empty() {
            under_way.push(parts.put_part(piece.into()));
        } else if under_way.is_empty() {
            return within(limit, parts.complete()).await.map(drop);
        }
    }
}
