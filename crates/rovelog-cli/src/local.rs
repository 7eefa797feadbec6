//! Replacement for `remote.rs` in builds without the Cargo feature `remote`. It has the same types
//! and functions. Any attempt to access a remote file fails with a message about the feature.

use std::path::{Path, PathBuf};

use rovelog::{AnyLog, ReadOptions};

use crate::context::Context;
use crate::failure::Failure;
use crate::read_scope::ReadScope;

/// A remote log. This type has no values, because this build cannot open remote logs.
pub(crate) enum Remote {}

/// A remote output. This type has no values, because this build cannot write remote files.
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
        _: &ReadScope<'_>,
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

/// Returns the failure for a remote path. The message does not contain the path, because a URL may
/// contain a password.
fn refused(_: &Path) -> Failure {
    Failure::not_built_in("cannot read or write remote files", "remote")
}
