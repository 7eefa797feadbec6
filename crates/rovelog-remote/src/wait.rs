//! Waiting for a server, in a program without other tasks.

use std::future::Future;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use crate::error::RemoteError;

/// Returns what the requests of one call, or of one file, run on: this thread alone.
pub(crate) fn runtime() -> Result<Runtime, RemoteError> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

/// Waits for an answer, no longer than `limit`.
pub(crate) async fn within<T>(
    limit: Duration,
    answer: impl Future<Output = object_store::Result<T>>,
) -> Result<T, RemoteError> {
    match timeout(limit, answer).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(RemoteError::Stalled { after: limit }),
    }
}
