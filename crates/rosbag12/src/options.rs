//! Options for reading a bag.

use std::collections::BTreeMap;

use rovelog_core::ReadOptions;

/// Options for reading a bag, including options that only bags have.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BagOptions {
    /// Options for reading that all formats share.
    pub read: ReadOptions,
    /// Map from the full name of a type to its definition, for types that the bag does not define.
    /// A definition is a full text with all nested types, or only the text of the type itself.
    pub layouts: BTreeMap<String, Vec<u8>>,
    /// Decompressed size in bytes from which a V2.0 bag is opened by its index instead of being
    /// scanned. The default is 32 MiB.
    ///
    /// Smaller bags are scanned when they are opened. A larger bag is opened by its index only if
    /// the index is consistent. Each chunk is then compared with the index when the chunk is read.
    pub indexed_from: u64,
    /// True to read the file as a bag before V1.0. Such a bag has no version line, so this version
    /// cannot be detected automatically.
    pub version_0: bool,
    /// Maximum size in bytes of one record in a stream. The default is 1 GiB.
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
    /// Adds a definition for a type that the bag does not define.
    #[must_use]
    pub fn with_layout(mut self, ty: impl Into<String>, text: impl Into<Vec<u8>>) -> Self {
        self.layouts.insert(ty.into(), text.into());
        self
    }

    /// Sets [`version_0`](Self::version_0) to true, so that the file is read as a bag before V1.0.
    #[must_use]
    pub fn as_version_0(mut self) -> Self {
        self.version_0 = true;
        self
    }
}
