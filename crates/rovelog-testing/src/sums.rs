//! Checksums for bytes that are too long to list in expected results.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

/// Returns bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a text takes all digits");
        text
    })
}

/// Returns the SHA-256 sum in hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}
