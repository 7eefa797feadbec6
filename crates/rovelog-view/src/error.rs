//! Errors of the server that shows logs in a browser.

use std::io;

/// An error that prevented the server from starting, or that ended the server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ViewError {
    /// A source is invalid, does not exist, or contains no logs.
    #[error(transparent)]
    Source(#[from] rovelog_scale::ScaleError),
    /// The port is in use, or connections cannot be accepted.
    #[error("the server cannot listen on 127.0.0.1:{port}: {error}")]
    Listen {
        /// The requested port, or the port that the operating system selected.
        port: u16,
        /// Error reported by the operating system.
        error: io::Error,
    },
    /// The operating system provides no random numbers for the token.
    #[error("the server cannot start, because the operating system provides no random numbers: {0}")]
    Random(String),
}
