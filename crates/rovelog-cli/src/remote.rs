//! Remote logs. The byte ranges that a command needs are downloaded into a sparse file. This file
//! is then opened like a local log.

use std::path::{Path, PathBuf};

use rovelog::core::internal::partial::Ranges as _;
use rovelog::{AnyLog, Error, ErrorKind, ReadOptions};
use rovelog_remote::{Address, Options, RemoteError, RemoteFile, upload};
use tempfile::TempDir;

use crate::context::Context;
use crate::failure::Failure;
use crate::read_scope::{ReadScope, input_format};
use crate::text::size;

/// A log at a URL.
pub(crate) struct Remote {
    address: Address,
}

impl Remote {
    pub(crate) fn new(path: &Path) -> Result<Self, Failure> {
        Ok(Self { address: parse(path)? })
    }

    /// Returns the URL without user, password and query, to be shown in messages.
    pub(crate) fn shown(&self) -> PathBuf {
        self.address.to_string().into()
    }

    /// Opens the log after downloading only the parts that `scope` requires. If `hash` is true and
    /// the whole log was downloaded, also returns its SHA-256.
    pub(crate) fn open(
        &self,
        context: &Context,
        options: &ReadOptions,
        scope: &ReadScope<'_>,
        hash: bool,
    ) -> Result<(AnyLog, Option<String>), Failure> {
        let mut settings = Options::default();
        settings.max_bytes = context.global.max_bytes;
        settings.follow_redirects = context.global.follow_redirects;
        let file = RemoteFile::open(&self.address, &settings).map_err(Error::from)?;
        let log = open(&file, context, options, scope)?;
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

/// Downloads the parts that `scope` requires and opens the log. The summary of the log is always
/// downloaded first, because it contains the offsets of the records.
fn open(
    file: &RemoteFile,
    context: &Context,
    options: &ReadOptions,
    scope: &ReadScope<'_>,
) -> Result<AnyLog, Failure> {
    if !file.has_ranges() {
        let why = Error::from(RemoteError::NoRanges).to_string();
        return scan(file, context, options, &why);
    }
    // `outline` downloads the start and the end of the log. It returns false for a compressed log,
    // because a part of the compressed data cannot be decompressed alone.
    if !rovelog::outline(file, input_format(context))? {
        return scan(file, context, options, "a compressed log must be read from its start to its end");
    }
    // A small log has already been downloaded completely by the first requests.
    if file.unread().is_empty() {
        return Ok(opened(file, context, options)?);
    }
    let select = match scope {
        // If the user gave `--allow-remote-scan`, the summary is computed from all records and not
        // from the index. The numbers of records in it are then exact.
        ReadScope::Summary if !context.global.allow_remote_scan => {
            return match opened(file, context, options) {
                Err(error) if error.kind == ErrorKind::PartlyRead => {
                    scan(file, context, options, &error.to_string())
                }
                log => Ok(log?),
            };
        }
        ReadScope::Summary | ReadScope::All => {
            return scan(file, context, options, "this command must read the whole log");
        }
        ReadScope::Records(select) => select,
    };
    let needed = |log: &AnyLog| Ok::<_, Failure>(log.needed(&select(log)?));
    match file.fetch_until(|| opened(file, context, options), needed)? {
        Some(log) => Ok(log),
        None => scan(file, context, options, "this command must read most of the log"),
    }
}

fn opened(file: &RemoteFile, context: &Context, options: &ReadOptions) -> Result<AnyLog, Error> {
    let mut options = options.clone();
    options.unread = file.unread();
    rovelog::open_as(input_format(context), file.path(), &options)
}

/// Downloads the whole log if the user gave `--allow-remote-scan`. Otherwise returns a failure.
/// `why` is the reason why parts of the log do not suffice.
fn scan(file: &RemoteFile, context: &Context, options: &ReadOptions, why: &str) -> Result<AnyLog, Failure> {
    let left = file.unread().bytes();
    if left > 0 && !context.global.allow_remote_scan {
        let next = format!("to read the whole log ({}), use --allow-remote-scan", size(file.size()));
        return Err(Failure::failed(why).next(next));
    }
    context.progress.start(Some(left));
    file.fetch_all(|moved| context.progress.at(moved)).map_err(Error::from)?;
    Ok(opened(file, context, options)?)
}

/// An output at a URL. It is written to a temporary file, which is uploaded when it is complete.
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

    /// Returns the path of the temporary file.
    pub(crate) fn copy(&self) -> PathBuf {
        self.folder.path().join(self.address.name())
    }

    /// Returns the URL without user, password and query, to be shown in messages.
    pub(crate) fn shown(&self) -> PathBuf {
        self.address.to_string().into()
    }

    /// Uploads the temporary file.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        upload(&self.copy(), &self.address, self.force, &Options::default()).map_err(|error| {
            let failure = match error {
                // This message is the same as for an existing local file.
                RemoteError::Exists => Failure::usage("the output file already exists")
                    .next("name another file, or use --force to replace it"),
                error => Error::from(error).into(),
            };
            failure.at(&self.shown())
        })
    }
}
