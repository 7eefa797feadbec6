//! Lists the files of a bucket, and queries the size and modification time of a single file.

use futures_util::TryStreamExt as _;
use object_store::{ObjectMeta, ObjectStoreExt as _};
use url::Url;

use crate::address::Address;
use crate::error::RemoteError;
use crate::store::{Options, store};
use crate::wait::{runtime, store_response};

/// A file on a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Address of the file as a URL.
    pub address: String,
    /// Size of the file in bytes.
    pub size: u64,
    /// Modification time of the file, in microseconds since 1970.
    pub changed_us: i64,
}

impl Found {
    fn new(address: String, meta: &ObjectMeta) -> Self {
        Self { address, size: meta.size, changed_us: meta.last_modified.timestamp_micros() }
    }
}

/// Checks that an address has no parts that may be secret. [`Found::address`] is stored in lakes
/// and sent to workers.
fn check_secrets(address: &Address) -> Result<(), RemoteError> {
    if address.has_secrets() { Err(RemoteError::SecretAddress) } else { Ok(()) }
}

/// Queries the size and modification time of a file with a single request.
///
/// # Errors
/// Returns an error in these cases:
///
/// - The address contains a user, a password or a query.
/// - The server cannot be reached, refuses the request, or has no such file.
pub fn head(address: &Address, options: &Options) -> Result<Found, RemoteError> {
    check_secrets(address)?;
    let (store, path) = store(address, options)?;
    let meta = runtime()?.block_on(store_response(options.timeout, store.head(&path)))?;
    Ok(Found::new(address.url.as_str().to_owned(), &meta))
}

/// Returns all files below a folder of a bucket, such as `s3://bucket/flights/`. The files are in
/// no particular order.
///
/// # Errors
/// Returns an error in these cases:
///
/// - The address contains a user, a password or a query.
/// - The server cannot be reached, or denies access.
/// - The address belongs to a web server. A web server cannot list files.
pub fn list(folder: &str, options: &Options) -> Result<Vec<Found>, RemoteError> {
    let url = Url::parse(folder).map_err(|_| RemoteError::BadAddress)?;
    if matches!(url.scheme(), "http" | "https") {
        return Err(RemoteError::NoLists);
    }
    let address = Address::from_url(url)?;
    check_secrets(&address)?;
    let (store, path) = store(&address, options)?;
    let mut found = Vec::new();
    runtime()?.block_on(async {
        let mut files = store.list(Some(&path));
        // A long list consists of many pages and may take a long time, so the timeout applies to
        // each page.
        while let Some(meta) = store_response(options.timeout, files.try_next()).await? {
            let mut url = address.url.clone();
            // `set_path` percent-encodes all characters that are invalid in the path of a URL, but
            // not `%`.
            url.set_path(&meta.location.as_ref().replace('%', "%25"));
            found.push(Found::new(url.as_str().to_owned(), &meta));
        }
        Ok::<_, RemoteError>(())
    })?;
    Ok(found)
}
