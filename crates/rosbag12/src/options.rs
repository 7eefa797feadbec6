//! How to read a bag, beyond what all formats share.

use std::collections::BTreeMap;

use rovelog_core::ReadOptions;

/// How to read a bag.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BagOptions {
    /// What all formats share.
    pub read: ReadOptions,
    /// Definitions for types that a bag does not define, by full type name: full text, or the
    /// type's own text.
    pub layouts: BTreeMap<String, Vec<u8>>,
    /// Indexed bags of V2.0 of fewer bytes than this, unpacked, are read whole when they are
    /// opened: 32 MiB. Larger ones are described by their index, if it agrees with itself, and each
    /// chunk is checked when it is read.
    pub indexed_from: u64,
    /// Read the file as a bag of before V1.0, which has no version line by which it could be told.
    pub version_0: bool,
    /// Bytes of one record that a pipe is read into memory for: 1 GiB.
    pub streamed_record: u64,
}

impl Default for BagOptions {
    fn default() -> Self {
        Self {
            read: ReadOptions::default(),
            layouts: BTreeMap::new(),
            indexed_from: 32 << 20,
            version_0: false,
            streamed_record: 1 << 30,
        }
    }
}

impl From<&ReadOptions> for BagOptions {
    fn from(read: &ReadOptions) -> Self {
        Self { read: read.clone(), layouts: read.definitions.clone(), ..Self::default() }
    }
}

impl BagOptions {
    /// Returns the same options with a definition for a type.
    #[must_use]
    pub fn with_layout(mut self, ty: impl Into<String>, text: impl Into<Vec<u8>>) -> Self {
        self.layouts.insert(ty.into(), text.into());
        self
    }

    /// Returns the same options for a bag of before V1.0.
    #[must_use]
    pub fn as_version_0(mut self) -> Self {
        self.version_0 = true;
        self
    }
}
