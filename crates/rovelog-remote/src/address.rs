//! Addresses of remote files.

use std::fmt;

use url::Url;

use crate::error::RemoteError;

/// Schemes that can be read.
const SCHEMES: &[&str] = &["s3", "s3a", "gs", "az", "azure", "adl", "abfs", "abfss", "http", "https"];

/// The address of a remote file. It is shown without user, password and query: these may be
/// secrets.
#[derive(Clone)]
pub struct Address {
    pub(crate) url: Url,
}

impl Address {
    /// Parses an address: `s3://bucket/flights/17.ulg`.
    ///
    /// # Errors
    /// Returns an error if the text is not an address, has an unknown scheme, or names no file.
    pub fn parse(text: &str) -> Result<Self, RemoteError> {
        let address = Self::of(Url::parse(text).map_err(|_| RemoteError::BadAddress)?)?;
        if address.name().is_empty() {
            return Err(RemoteError::NoFile);
        }
        Ok(address)
    }

    /// Returns the address of a file or folder.
    pub(crate) fn of(url: Url) -> Result<Self, RemoteError> {
        if SCHEMES.contains(&url.scheme()) {
            return Ok(Self { url });
        }
        Err(RemoteError::UnknownScheme { scheme: url.scheme().to_owned() })
    }

    /// Returns the last part of the path: the name of the file.
    pub fn name(&self) -> &str {
        self.url.path().rsplit('/').next().unwrap_or_default()
    }

    /// Returns whether the address has a query, as signed addresses have.
    pub(crate) fn is_signed(&self) -> bool {
        self.url.query().is_some()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut url = self.url.clone();
        // Only addresses without a host cannot have a user, and these were refused.
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
    fn what_cannot_be_read_is_refused() {
        assert!(matches!(Address::parse("ftp://host/log"), Err(RemoteError::UnknownScheme { .. })));
        assert!(matches!(Address::parse("log.ulg"), Err(RemoteError::BadAddress)));
        assert!(matches!(Address::parse("s3://bucket/"), Err(RemoteError::NoFile)));
    }
}
