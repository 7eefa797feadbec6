//! Remote logs in a build without them: the same names, and how to get a build with them.

use std::path::{Path, PathBuf};

use rovelog::{AnyLog, ReadOptions};

use crate::context::Context;
use crate::failure::Failure;
use crate::need::Need;

/// No remote log can be read, so there is none.
pub(crate) enum Remote {}

/// No remote file can be written, so there is none.
pub(crate) enum Upload {}

impl Remote {
    pub(crate) fn new(path: &Path) -> Result<Self, Failure> {
        Err(refused(path))
    }

    pub(crate) fn shown(&self) -> PathBuf {
        match *self {}
    }

    pub(crate) fn open(
        &self,
        _: &Context,
        _: &ReadOptions,
        _: &Need<'_>,
        _: bool,
    ) -> Result<(AnyLog, Option<String>), Failure> {
        match *self {}
    }
}

impl Upload {
    pub(crate) fn new(path: &Path, _: bool) -> Result<Self, Failure> {
        Err(refused(path))
    }

    pub(crate) fn copy(&self) -> PathBuf {
        match *self {}
    }

    pub(crate) fn shown(&self) -> PathBuf {
        match *self {}
    }

    pub(crate) fn finish(self) -> Result<(), Failure> {
        match self {}
    }
}

/// An address is not shown: it may have a password in it.
fn refused(_: &Path) -> Failure {
    Failure::not_built_in("reads and writes no remote files", "remote")
}
