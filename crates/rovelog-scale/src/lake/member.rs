//! Packs: logs that are added to a lake together, named by their content.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::LogFile;

/// Logs that are added to a lake together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pack {
    /// Its name, by the content of its logs.
    pub id: String,
    /// The logs.
    pub logs: Vec<Member>,
}

/// A log of a pack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// The log.
    pub log: LogFile,
    /// SHA-256 of its bytes, in hexadecimal digits.
    pub sha256: String,
}

impl Member {
    /// Returns the id of the log: the first 16 digits of its hash.
    pub fn id(&self) -> &str {
        self.sha256.get(..16).unwrap_or(&self.sha256)
    }
}

impl Pack {
    /// Returns the pack of these logs.
    pub fn new(logs: Vec<Member>) -> Self {
        let mut ids: Vec<&str> = logs.iter().map(|log| &*log.sha256).collect();
        ids.sort_unstable();
        Self { id: short_hash(ids), logs }
    }

    /// Returns the number of bytes of its logs.
    pub fn bytes(&self) -> u64 {
        self.logs.iter().map(|member| member.log.size).sum()
    }
}

/// Returns 16 hexadecimal digits of a hash of texts.
pub(crate) fn short_hash<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    }
    let mut digits = String::with_capacity(16);
    for byte in hash.finalize().iter().take(8) {
        // Writing to a text does not fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}
