//! Errors of the server.

use std::io;

/// Error of a server that could not be started, or has ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ViewError {
    /// A source is not a file, a folder or a pattern with logs.
    #[error(transparent)]
    Source(#[from] rovelog_scale::ScaleError),
    /// The port is taken, or the connection is broken.
    #[error("127.0.0.1:{port}: {error}")]
    Listen {
        /// The port: the requested one, or the one that was chosen.
        port: u16,
        /// Error of the operating system.
        error: io::Error,
    },
    /// The system gives no random numbers for the token.
    #[error("no random numbers: {0}")]
    Random(String),
}
