//! Finds and opens logs in buckets and on web servers. Credentials come from the environment. A
//! worker also gets them from its own environment, because the split that describes its work
//! contains no credentials.

use std::path::Path;

use glob::{MatchOptions, Pattern};
use rovelog::Error;
pub(crate) use rovelog_remote::RemoteFile;
use rovelog_remote::{Address, Found, Options, RemoteError, head, list};

use crate::ScaleError;
use crate::log_file::{LogFile, is_log};

/// Converts the description of a file in a bucket or on a web server to a log file.
fn log(found: Found) -> LogFile {
    LogFile { uri: found.address, size: found.size, changed_us: found.changed_us }
}

/// Returns the logs at a URL. The URL is a file, a folder (`s3://bucket/flights/`), or a pattern
/// (`s3://bucket/2026-*/**/*.ulg`).
pub(crate) fn find(source: &str) -> Result<Vec<LogFile>, ScaleError> {
    let refused = |error: RemoteError| ScaleError::Source(Error::from(error).to_string());
    let logs = |folder: &str| {
        let found = list(folder, &Options::default()).map_err(refused)?;
        Ok::<_, ScaleError>(found.into_iter().map(log))
    };
    // Only `*` makes a URL a pattern. A `?` starts the query of a URL, for example a signature.
    if let Some(wild) = source.find('*') {
        let pattern = Pattern::new(source).map_err(|error| ScaleError::Source(error.to_string()))?;
        let options = MatchOptions { require_literal_separator: true, ..MatchOptions::default() };
        let folder = &source[..=source[..wild].rfind('/').unwrap_or(0)];
        return Ok(logs(folder)?.filter(|log| pattern.matches_with(&log.uri, options)).collect());
    }
    if source.ends_with('/') {
        return Ok(logs(source)?.filter(|log| is_log(Path::new(&log.uri))).collect());
    }
    let address = Address::parse(source).map_err(refused)?;
    Ok(vec![log(head(&address, &Options::default()).map_err(refused)?)])
}

/// Requests the current size of a log, and the time of its last change, from the server.
pub(crate) fn current(uri: &str) -> Result<LogFile, ScaleError> {
    let found = Address::parse(uri).and_then(|address| head(&address, &Options::default()));
    found.map(log).map_err(|error| ScaleError::log(uri)(error.into()))
}

/// Fetches all bytes of the log at a URL, even if only a part of it is read, because rows are
/// numbered from the start of the log. The local copy of the log exists as long as the returned
/// value exists or the copy is open.
pub(crate) fn fetch(uri: &str) -> Result<RemoteFile, ScaleError> {
    let fetch = Address::parse(uri).and_then(|address| {
        let remote = RemoteFile::open(&address, &Options::default())?;
        remote.fetch_all(|_| ())?;
        Ok(remote)
    });
    fetch.map_err(|error| ScaleError::log(uri)(error.into()))
}
