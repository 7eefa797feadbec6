//! Magic numbers of compressed files. Both detection and decompression use them.

/// Magic number of a gzip file (RFC 1952).
pub(crate) const GZIP: &[u8] = b"\x1f\x8b";
/// Magic number of an xz file ("The .xz File Format", section 2.1.1.1).
pub(crate) const XZ: &[u8] = b"\xfd7zXZ\0";
/// Magic number of a zstd frame (RFC 8878, section 3.1.1).
pub(crate) const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";
/// Magic number of an lz4 frame ("LZ4 Frame Format", section "General Structure").
pub(crate) const LZ4: &[u8] = b"\x04\x22\x4d\x18";
