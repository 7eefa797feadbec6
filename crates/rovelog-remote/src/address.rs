//! URLs of remote files.

use std::fmt;

use url::Url;

use crate::error::RemoteError;

/// URL schemes of addresses that this crate can read.
const SCHEMES: &[&str] = &["s3", "s3a", "gs", "az", "azure", "adl", "abfs", "abfss", "http", "https"];

/// The address of a remote file. [`Display`](fmt::Display) and [`Debug`](fmt::Debug) omit the user,
/// the password and the query, because these may be secrets.
#[derive(Clone)]
pub struct Address {
    pub(crate) url: Url,
}

impl Address {
    /// Parses an address such as `s3://bucket/flights/17.ulg`.
    ///
    /// # Errors
    /// Returns an error if `text` is not a URL, has an unsupported scheme, or does not name a file.
    pub fn parse(text: &str) -> Result<Self, RemoteError> {
        let address = Self::from_url(Url::parse(text).map_err(|_| RemoteError::BadAddress)?)?;
        if address.name().is_empty() {
            return Err(RemoteError::NoFile);
        }
        Ok(address)
    }

    /// Creates an address from a URL of a file or a folder, after checking its scheme.
    pub(crate) fn from_url(url: Url) -> Result<Self, RemoteError> {
        if SCHEMES.contains(&url.scheme()) {
            return Ok(Self { url });
        }
        Err(RemoteError::UnknownScheme { scheme: url.scheme().to_owned() })
    }

    /// Returns the name of the file, which is the last segment of the path in the URL.
    pub fn name(&self) -> &str {
        self.url.path().rsplit('/').next().unwrap_or_default()
    }

    /// Returns true if the address has a query, a password, or the user of a web server. In an
    /// address of Azure, the user is the name of the container.
    pub(crate) fn has_secrets(&self) -> bool {
        let has_user = matches!(self.url.scheme(), "http" | "https") && !self.url.username().is_empty();
        self.is_signed() || has_user || self.url.password().is_some()
    }

    /// Returns true if the address has a query. The query of a presigned URL contains the
    /// credentials.
    pub(crate) fn is_signed(&self) -> bool {
        self.url.query().is_some()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut url = self.url.clone();
        // `set_username` and `set_password` fail only if the URL has no host. Such a URL cannot
        // contain a user or a password.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.set_query(None);
        url.set_fragment(None);
        url.fmt(f)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        let address = Address::parse("https://me:pass@example.org/a/log.ulg?signature=x#y").unwrap();
        assert_eq!(address.to_string(), "https://example.org/a/log.ulg");
        assert_eq!(format!("{address:?}"), address.to_string());
        assert_eq!(address.name(), "log.ulg");
    }

    #[test]
    fn unsupported_addresses_are_refused() {
        assert!(matches!(Address::parse("ftp://host/log"), Err(RemoteError::UnknownScheme { .. })));
        assert!(matches!(Address::parse("log.ulg"), Err(RemoteError::BadAddress)));
        assert!(matches!(Address::parse("s3://bucket/"), Err(RemoteError::NoFile)));
    }
}
