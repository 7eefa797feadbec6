//! Replacement for `buckets.rs` in builds without the feature `remote`. Every function returns an
//! error.

use std::path::Path;

use crate::ScaleError;
use crate::log_file::LogFile;

fn refused<T>() -> Result<T, ScaleError> {
    Err(ScaleError::Source("this build does not read remote logs: it lacks the feature `remote`".to_owned()))
}

pub(crate) fn find(_: &str) -> Result<Vec<LogFile>, ScaleError> {
    refused()
}

pub(crate) fn current(_: &str) -> Result<LogFile, ScaleError> {
    refused()
}

/// A remote file, which does not exist in this build.
pub(crate) enum RemoteFile {}

impl RemoteFile {
    pub(crate) fn path(&self) -> &Path {
        match *self {}
    }
}

pub(crate) fn fetch(_: &str) -> Result<RemoteFile, ScaleError> {
    refused()
}
