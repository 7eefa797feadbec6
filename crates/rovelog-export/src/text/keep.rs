//! Selection of the leaves of a record.

/// Selects the leaves of a record that are shown. A leaf is a number or text in the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keep {
    /// All leaves.
    All,
    /// The leaves for which the list is true. The list has the order of [`names`](super::names).
    Leaves(Vec<bool>),
}

impl Keep {
    /// Returns whether the leaf with the index `place` is shown.
    pub fn leaf(&self, place: usize) -> bool {
        match self {
            Self::All => true,
            Self::Leaves(leaves) => leaves.get(place).copied().unwrap_or(false),
        }
    }
}
