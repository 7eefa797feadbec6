//! Uploads a local file. The remote file appears atomically when the upload is complete.

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
use crate::wait::{runtime, store_response, with_timeout};

/// Size in bytes of each part in a multipart upload. Stores accept at most 10,000 parts, so a file
/// may have up to 160 GB.
const PART_BYTES: usize = 16 << 20;

/// Factor by which the timeout for uploading a part is longer than the timeout for a response. With
/// the default timeout, uploading 16 MB may take five minutes.
const PART_TIMEOUT_FACTOR: u32 = 10;

/// Number of parts that are uploaded in parallel.
const PARTS_AT_ONCE: usize = 2;

/// Uploads the local file `from` to the address `to`. If `force` is true, an existing remote file
/// is replaced. Otherwise an existing remote file is an error, and nothing is written.
///
/// # Errors
/// Returns an error if the local file cannot be read, if the remote file exists and `force` is
/// false, or if the server refuses the upload. After an error, the server has no partial file.
pub fn upload(from: &Path, to: &Address, force: bool, options: &Options) -> Result<(), RemoteError> {
    let mut file = File::open(from)?;
    let size = file.metadata()?.len();
    let (store, path) = store(to, options)?;
    let limit = options.timeout * PART_TIMEOUT_FACTOR;
    runtime()?.block_on(async {
        if size <= PART_BYTES as u64 {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            return put(&*store, &path, bytes, force, limit).await;
        }
        // A single request can have the condition that the file does not exist, but a multipart
        // upload cannot. So a separate request checks this.
        if !force {
            refuse_existing(&*store, &path, limit).await?;
        }
        let mut parts = store_response(limit, store.put_multipart(&path)).await?;
        let sent = send_parts(&mut file, &mut *parts, limit).await;
        if sent.is_err() {
            // An error is ignored, because stores delete unfinished uploads after some time.
            let _ = store_response(limit, parts.abort()).await;
        }
        sent
    })
}

/// Uploads a file with one request.
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
    match with_timeout(limit, put).await? {
        // The store does not support requests with a condition. So a separate request checks
        // whether the file exists.
        Err(object_store::Error::NotImplemented { .. }) if !force => {
            refuse_existing(store, path, limit).await?;
            store_response(limit, store.put(path, payload)).await.map(drop)
        }
        put => Ok(put.map(drop)?),
    }
}

/// Returns an error if the remote file already exists.
async fn refuse_existing(
    store: &dyn ObjectStore,
    path: &object_store::path::Path,
    limit: Duration,
) -> Result<(), RemoteError> {
    match store_response(limit, store.head(path)).await {
        Ok(_) => Err(RemoteError::Exists),
        Err(RemoteError::NotFound) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Uploads all parts of a file and completes the upload. The timeout applies to each part.
async fn send_parts(
    file: &mut File,
    parts: &mut dyn MultipartUpload,
    limit: Duration,
) -> Result<(), RemoteError> {
    let mut under_way = FuturesUnordered::new();
    loop {
        let mut piece = Vec::new();
        file.take(PART_BYTES as u64).read_to_end(&mut piece)?;
        // When the maximum number of uploads is running, one of them must finish before the next
        // part is sent. After the last part, all uploads must finish.
        if under_way.len() == PARTS_AT_ONCE || piece.is_empty() {
            store_response(limit, under_way.try_next()).await?;
        }
        if !piece.is_empty() {
            under_way.push(parts.put_part(piece.into()));
        } else if under_way.is_empty() {
            return store_response(limit, parts.complete()).await.map(drop);
        }
    }
}
