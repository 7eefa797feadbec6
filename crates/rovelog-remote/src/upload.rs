//! A file of this machine as a remote one: complete, or not there.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use object_store::{ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, PutPayload, WriteMultipart};

use crate::address::Address;
use crate::error::RemoteError;
use crate::store::{Options, store};
use crate::wait::runtime;

/// Bytes of a part. Stores take at most ten thousand parts: 160 GB.
const PART: usize = 16 << 20;

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
    runtime()?.block_on(async {
        if size <= PART as u64 {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            return put(&*store, &path, bytes, force).await;
        }
        // Stores have no condition on uploads in parts.
        if !force {
            refuse_existing(&*store, &path).await?;
        }
        let mut parts = WriteMultipart::new_with_chunk_size(store.put_multipart(&path).await?, PART);
        match send(&mut file, &mut parts).await {
            Ok(()) => Ok(parts.finish().await.map(|_| ())?),
            Err(error) => {
                // What is left of an upload that is not ended is removed by the store.
                let _ = parts.abort().await;
                Err(error)
            }
        }
    })
}

async fn put(
    store: &dyn ObjectStore,
    path: &object_store::path::Path,
    bytes: Vec<u8>,
    force: bool,
) -> Result<(), RemoteError> {
    let payload = PutPayload::from(bytes);
    let mode = if force { PutMode::Overwrite } else { PutMode::Create };
    let put = store.put_opts(path, payload.clone(), PutOptions::from(mode)).await;
    match put {
        // A store without conditions.
        Err(object_store::Error::NotImplemented { .. }) if !force => {
            refuse_existing(store, path).await?;
            Ok(store.put(path, payload).await.map(|_| ())?)
        }
        put => Ok(put.map(|_| ())?),
    }
}

async fn refuse_existing(
    store: &dyn ObjectStore,
    path: &object_store::path::Path,
) -> Result<(), RemoteError> {
    match store.head(path).await {
        Ok(_) => Err(RemoteError::Exists),
        Err(object_store::Error::NotFound { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

async fn send(file: &mut File, parts: &mut WriteMultipart) -> Result<(), RemoteError> {
    let mut piece = vec![0; PART];
    loop {
        let len = file.read(&mut piece)?;
        if len == 0 {
            return Ok(());
        }
        parts.wait_for_capacity(AT_ONCE).await?;
        parts.write(&piece[..len]);
    }
}
