//! Limits on memory and time for untrusted logs.

/// Limits that keep memory and time within a small multiple of the input.
///
/// The defaults fit every log seen in the field; what passes a limit is reported, not dropped
/// silently.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Levels of nested types: 64.
    pub nesting: usize,
    /// Leaves of one record, arrays of structs unrolled: 65 535.
    pub leaves: usize,
    /// Diagnostics of one kind that are kept one by one; further ones are only counted: 1 000.
    pub diagnostics_per_kind: usize,
    /// Bytes of memory that a compressed file may be unpacked into: 1 GiB. A pipe is unpacked piece
    /// by piece and needs no limit.
    pub unpacked: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { nesting: 64, leaves: 65_535, diagnostics_per_kind: 1000, unpacked: 1 << 30 }
    }
}
