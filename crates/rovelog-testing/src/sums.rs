//! Checksums for expected results that are too long to be listed.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

/// Returns bytes as lowercase hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a text takes all digits");
        text
    })
}

/// Returns the SHA-256 checksum of bytes as hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}
