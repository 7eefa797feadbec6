//! Magic numbers of compressed files.

/// gzip: RFC 1952.
pub(crate) const GZIP: &[u8] = b"\x1f\x8b";
/// xz: "The .xz File Format", section 2.1.1.1.
pub(crate) const XZ: &[u8] = b"\xfd7zXZ\0";
/// zstd: RFC 8878, section 3.1.1.
pub(crate) const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";
/// lz4: "LZ4 Frame Format", section "General Structure".
pub(crate) const LZ4: &[u8] = b"\x04\x22\x4d\x18";
