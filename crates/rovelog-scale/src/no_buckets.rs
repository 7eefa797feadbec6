//! Replacement for `buckets.rs` in builds without the feature `remote`. Every function returns an
//! error.

use std::fs::File;

use rovelog::AnyLog;

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

pub(crate) fn open(_: &LogFile) -> Result<AnyLog, ScaleError> {
    refused()
}

pub(crate) fn bytes(_: &LogFile) -> Result<File, ScaleError> {
    refused()
}
