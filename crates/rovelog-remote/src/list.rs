//! What is in a bucket: the files below a folder, and facts about one file.

use futures_util::TryStreamExt as _;
use object_store::{ObjectMeta, ObjectStoreExt as _};
use url::Url;

use crate::address::Address;
use crate::error::RemoteError;
use crate::store::{Options, store};
use crate::wait::{runtime, within};

/// A file on a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its address.
    pub address: String,
    /// Its size in bytes.
    pub size: u64,
    /// Time of its last change, microseconds since 1970.
    pub changed_us: i64,
}

impl Found {
    fn new(address: String, meta: &ObjectMeta) -> Self {
        Self { address, size: meta.size, changed_us: meta.last_modified.timestamp_micros() }
    }
}

/// Returns facts about a file, with one request.
///
/// # Errors
/// Returns an error if the server cannot be reached, refuses, or has no such file.
pub fn head(address: &Address, options: &Options) -> Result<Found, RemoteError> {
    let (store, path) = store(address, options)?;
    let meta = runtime()?.block_on(within(options.timeout, store.head(&path)))?;
    Ok(Found::new(address.url.as_str().to_owned(), &meta))
}

/// Returns the files in a folder of a bucket and below it, in any order: `s3://bucket/flights/`.
///
/// # Errors
/// Returns an error if the server cannot be reached or refuses, or is a web server: these have no
/// lists.
pub fn list(folder: &str, options: &Options) -> Result<Vec<Found>, RemoteError> {
    let url = Url::parse(folder).map_err(|_| RemoteError::BadAddress)?;
    if matches!(url.scheme(), "http" | "https") {
        return Err(RemoteError::NoLists);
    }
    let address = Address::of(url)?;
    let (store, path) = store(&address, options)?;
    let mut found = Vec::new();
    runtime()?.block_on(async {
        let mut files = store.list(Some(&path));
        // The limit is for each answer, not for all of a long list.
        while let Some(meta) = within(options.timeout, files.try_next()).await? {
            let mut url = address.url.clone();
            // All else that an address cannot contain is encoded there.
            url.set_path(&meta.location.as_ref().replace('%', "%25"));
            found.push(Found::new(url.as_str().to_owned(), &meta));
        }
        Ok::<_, RemoteError>(())
    })?;
    Ok(found)
}
