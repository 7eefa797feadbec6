//! Packs. A pack consists of logs that are added to a lake together. Its id is a hash of the
//! content of the logs.

use rovelog::core::internal::text::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::LogFile;

/// Logs that are added to a lake together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pack {
    /// Id of the pack, which is a hash of the content of its logs.
    pub id: String,
    /// Logs of the pack.
    pub logs: Vec<Member>,
}

/// A log of a pack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Path, size and time of the last change of the log.
    pub log: LogFile,
    /// SHA-256 of the bytes of the log as hexadecimal digits.
    pub sha256: String,
}

impl Member {
    /// Returns the id of the log, which is the first 16 digits of its hash.
    pub fn id(&self) -> &str {
        self.sha256.get(..16).unwrap_or(&self.sha256)
    }
}

impl Pack {
    /// Creates a pack of logs. The id of the pack does not depend on the order of the logs.
    pub fn new(logs: Vec<Member>) -> Self {
        let mut ids: Vec<&str> = logs.iter().map(|log| &*log.sha256).collect();
        ids.sort_unstable();
        Self { id: short_hash(ids), logs }
    }

    /// Returns the total size of the logs in the pack, in bytes.
    pub fn bytes(&self) -> u64 {
        self.logs.iter().map(|member| member.log.size).sum()
    }
}

/// Returns a hash of several strings as 16 hexadecimal digits.
pub(crate) fn short_hash<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        // The length separates consecutive strings, so that "ab", "c" and "a", "bc" have different
        // hashes.
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    }
    hex(&hash.finalize()[..8], "")
}
