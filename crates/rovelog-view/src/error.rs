//! Errors of the server.

use std::io;

/// An error that prevented the server from starting, or ended it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ViewError {
    /// A source is not a file, a folder or a pattern with logs.
    #[error(transparent)]
    Source(#[from] rovelog_scale::ScaleError),
    /// The port is in use, or accepting connections failed.
    #[error("127.0.0.1:{port}: {error}")]
    Listen {
        /// The requested port, or the one chosen by the system.
        port: u16,
        /// Error reported by the operating system.
        error: io::Error,
    },
    /// The operating system provides no random numbers for the token.
    #[error("no random numbers: {0}")]
    Random(String),
}
