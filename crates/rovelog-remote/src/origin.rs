//! Where the bytes of a remote file come from.

use std::ops::Range;

use bytes::Bytes;

use crate::error::RemoteError;

/// What was moved for a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Answered requests.
    pub requests: u64,
    /// Bytes of their answers.
    pub bytes: u64,
}

impl Moved {
    /// Counts an answer with so many bytes.
    pub fn add(&mut self, bytes: u64) {
        self.requests += 1;
        self.bytes += bytes;
    }

    /// Refuses what would move more bytes than are allowed.
    ///
    /// # Errors
    /// Returns [`RemoteError::TooMany`] if `more` bytes would exceed `limit`.
    pub fn allow(&self, more: u64, limit: Option<u64>) -> Result<(), RemoteError> {
        let bytes = self.bytes.saturating_add(more);
        match limit {
            Some(limit) if bytes > limit => Err(RemoteError::TooMany { bytes, limit }),
            _ => Ok(()),
        }
    }
}

/// Hands over bytes as they come, each time with their offset.
pub type Take<'a> = &'a mut dyn FnMut(u64, Bytes) -> Result<(), RemoteError>;

/// Where the bytes of a file come from: a server, or an object that reads it.
pub trait Origin: Send + Sync {
    /// Returns the size of the file.
    fn size(&self) -> u64;

    /// Returns whether parts can be read.
    fn has_ranges(&self) -> bool {
        true
    }

    /// Returns what was moved.
    fn moved(&self) -> Moved {
        Moved::default()
    }

    /// Hands these ranges to `take`, in any order and any pieces.
    ///
    /// # Errors
    /// Returns an error if they cannot be read, or `take` returns one.
    fn each(&self, ranges: &[Range<u64>], take: Take<'_>) -> Result<(), RemoteError>;

    /// Hands the whole file to `take`.
    ///
    /// # Errors
    /// Returns the errors of [`each`](Self::each).
    fn whole(&self, take: Take<'_>) -> Result<(), RemoteError> {
        self.each(std::slice::from_ref(&(0..self.size())), take)
    }
}
