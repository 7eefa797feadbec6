//! Interface to the source of the bytes of a remote file.

use std::ops::Range;

use bytes::Bytes;

use crate::error::RemoteError;

/// Number of requests made and bytes downloaded for a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Number of requests that were answered.
    pub requests: u64,
    /// Number of bytes in the responses.
    pub bytes: u64,
}

impl Moved {
    /// Counts one response that contains this number of bytes.
    pub fn add(&mut self, bytes: u64) {
        self.requests += 1;
        self.bytes += bytes;
    }

    /// Checks that a download of `more` bytes would not exceed `limit`.
    ///
    /// # Errors
    /// Returns [`RemoteError::TooMany`] if the total number of downloaded bytes would exceed
    /// `limit`.
    pub fn allow(&self, more: u64, limit: Option<u64>) -> Result<(), RemoteError> {
        let bytes = self.bytes.saturating_add(more);
        match limit {
            Some(limit) if bytes > limit => Err(RemoteError::TooMany { bytes, limit }),
            _ => Ok(()),
        }
    }
}

/// Callback that receives the offset of downloaded bytes in the file, and these bytes.
pub type Take<'a> = &'a mut dyn FnMut(u64, Bytes) -> Result<(), RemoteError>;

/// A source of the bytes of a file, such as a server or a Python file object.
pub trait Origin: Send + Sync {
    /// Returns the size of the file in bytes.
    fn size(&self) -> u64;

    /// Returns true if single byte ranges can be read. Otherwise only the whole file can be read.
    fn has_ranges(&self) -> bool {
        true
    }

    /// Returns the number of requests made and bytes downloaded so far.
    fn moved(&self) -> Moved {
        Moved::default()
    }

    /// Reads byte ranges and passes their bytes to `take`. The ranges may arrive in any order. A
    /// range may be divided into several parts.
    ///
    /// # Errors
    /// Returns an error if a range cannot be read, or if `take` returns an error.
    fn each(&self, ranges: &[Range<u64>], take: Take<'_>) -> Result<(), RemoteError>;

    /// Reads the whole file and passes its bytes to `take`.
    ///
    /// # Errors
    /// Returns an error if [`each`](Self::each) returns an error.
    fn whole(&self, take: Take<'_>) -> Result<(), RemoteError> {
        self.each(std::slice::from_ref(&(0..self.size())), take)
    }
}
