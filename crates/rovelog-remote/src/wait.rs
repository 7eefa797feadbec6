//! Blocking waits for asynchronous requests, with a timeout.

use std::future::Future;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use crate::error::RemoteError;

/// Creates a runtime that executes requests on the calling thread.
pub(crate) fn runtime() -> Result<Runtime, RemoteError> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

/// Waits for a response of the store. Returns an error after `timeout`.
pub(crate) async fn store_response<T>(
    timeout: Duration,
    response: impl Future<Output = object_store::Result<T>>,
) -> Result<T, RemoteError> {
    Ok(with_timeout(timeout, response).await??)
}

/// Waits for a future. Returns an error after `timeout`.
pub(crate) async fn with_timeout<T>(
    timeout: Duration,
    future: impl Future<Output = T>,
) -> Result<T, RemoteError> {
    tokio::time::timeout(timeout, future).await.map_err(|_| RemoteError::Stalled { after: timeout })
}
