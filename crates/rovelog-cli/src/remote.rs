//! Remote logs: what a command needs of them is fetched by ranges, into a file with holes.

use std::path::{Path, PathBuf};

use rovelog::core::partial::Ranges as _;
use rovelog::{AnyLog, Error, ErrorKind, ReadOptions};
use rovelog_remote::{Address, Options, RemoteError, RemoteFile, upload};
use tempfile::TempDir;

use crate::context::Context;
use crate::failure::Failure;
use crate::need::{Need, format};
use crate::text::size;

/// A remote log.
pub(crate) struct Remote {
    address: Address,
}

impl Remote {
    pub(crate) fn new(path: &Path) -> Result<Self, Failure> {
        Ok(Self { address: parse(path)? })
    }

    /// Returns the address without user, password and query.
    pub(crate) fn shown(&self) -> PathBuf {
        self.address.to_string().into()
    }

    /// Opens the log, as far as it is needed; with `hash`, also returns the SHA-256 of one that is
    /// read whole.
    pub(crate) fn open(
        &self,
        context: &Context,
        options: &ReadOptions,
        need: &Need<'_>,
        hash: bool,
    ) -> Result<(AnyLog, Option<String>), Failure> {
        let mut settings = Options::default();
        settings.max_bytes = context.global.max_bytes;
        let file = RemoteFile::open(&self.address, &settings).map_err(Error::from)?;
        let log = open(&file, context, options, need)?;
        let moved = file.moved();
        if context.global.verbose {
            context.note(&format!("fetched {} in {} requests", size(moved.bytes), moved.requests));
        }
        let is_whole = hash && file.unread().is_empty();
        let sha256 = if is_whole { Some(sha256(file.path())?) } else { None };
        Ok((log, sha256))
    }
}

fn sha256(path: &Path) -> Result<String, Failure> {
    let file = std::fs::File::open(path).and_then(rovelog_export::sha256);
    file.map_err(|error| Error::io("rovelog", error).into())
}

fn parse(path: &Path) -> Result<Address, Failure> {
    Address::parse(&path.to_string_lossy()).map_err(|error| Error::from(error).into())
}

fn open(
    file: &RemoteFile,
    context: &Context,
    options: &ReadOptions,
    need: &Need<'_>,
) -> Result<AnyLog, Failure> {
    let scans = context.global.allow_remote_scan;
    if !file.has_ranges() {
        let why = Error::from(RemoteError::NoRanges).to_string();
        return scan(file, context, options, why);
    }
    if !rovelog::outline(file, format(context))? {
        return scan(file, context, options, "a compressed log is read from its start to its end".to_owned());
    }
    if file.unread().is_empty() {
        return Ok(opened(file, context, options)?);
    }
    let select = match need {
        Need::Outline if !scans => {
            return match opened(file, context, options) {
                Err(error) if error.kind == ErrorKind::PartlyRead => {
                    scan(file, context, options, error.to_string())
                }
                log => Ok(log?),
            };
        }
        Need::Outline | Need::All => {
            return scan(file, context, options, "this command reads all of the log".to_owned());
        }
        Need::Part(select) => select,
    };
    let needed = |log: &AnyLog| Ok::<_, Failure>(log.needed(&select(log)?));
    match file.fetch_until(|| opened(file, context, options), needed)? {
        Some(log) => Ok(log),
        None => scan(file, context, options, "this needs most of the log, or all of it".to_owned()),
    }
}

fn opened(file: &RemoteFile, context: &Context, options: &ReadOptions) -> Result<AnyLog, Error> {
    let mut options = options.clone();
    options.unread = file.unread();
    rovelog::open_as(format(context), file.path(), &options)
}

/// Fetches all of the log, if the user allows that; `why` says why nothing less will do.
fn scan(file: &RemoteFile, context: &Context, options: &ReadOptions, why: String) -> Result<AnyLog, Failure> {
    let left = file.unread().bytes();
    if left > 0 && !context.global.allow_remote_scan {
        let next = format!("read all of it, {}: --allow-remote-scan", size(file.size()));
        return Err(Failure::failed(why).next(next));
    }
    context.progress.start(Some(left));
    file.fetch_all(|moved| context.progress.at(moved)).map_err(Error::from)?;
    Ok(opened(file, context, options)?)
}

/// An output on a server: written here first, then sent.
pub(crate) struct Upload {
    address: Address,
    force: bool,
    folder: TempDir,
}

impl Upload {
    pub(crate) fn new(path: &Path, force: bool) -> Result<Self, Failure> {
        let folder = tempfile::Builder::new().prefix("rovelog-").tempdir()?;
        Ok(Self { address: parse(path)?, force, folder })
    }

    /// Returns where the file is written on this machine.
    pub(crate) fn copy(&self) -> PathBuf {
        self.folder.path().join(self.address.name())
    }

    /// Returns the address without user, password and query.
    pub(crate) fn shown(&self) -> PathBuf {
        self.address.to_string().into()
    }

    /// Sends the file.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        upload(&self.copy(), &self.address, self.force, &Options::default()).map_err(|error| {
            let failure = match error {
                RemoteError::Exists => Failure::usage("the output already exists")
                    .next("name another file, or replace it: --force"),
                error => Error::from(error).into(),
            };
            failure.at(&self.shown())
        })
    }
}
