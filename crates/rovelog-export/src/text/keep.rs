//! The leaves of records that are shown.

/// The selected leaves of a record, by index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keep {
    /// All of them.
    All,
    /// Those that are true, in the order of [`names`](super::names).
    Leaves(Vec<bool>),
}

impl Keep {
    /// Returns whether the leaf with this index is selected.
    pub fn leaf(&self, place: usize) -> bool {
        match self {
            Self::All => true,
            Self::Leaves(leaves) => leaves.get(place).copied().unwrap_or(false),
        }
    }
}
