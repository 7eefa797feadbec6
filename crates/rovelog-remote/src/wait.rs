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

/// Waits for what is asked of a server, no longer than `limit`.
pub(crate) async fn within<T>(
    limit: Duration,
    answer: impl Future<Output = object_store::Result<T>>,
) -> Result<T, RemoteError> {
    Ok(answer_within(limit, answer).await??)
}

/// Waits for an answer, no longer than `limit`.
pub(crate) async fn answer_within<T>(
    limit: Duration,
    answer: impl Future<Output = T>,
) -> Result<T, RemoteError> {
    timeout(limit, answer).await.map_err(|_| RemoteError::Stalled { after: limit })
}
