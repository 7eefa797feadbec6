//! Report of the changed values.

use std::collections::BTreeMap;

use serde::Serialize;

/// The treatment of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// A position was moved.
    Moved,
    /// A date was shifted.
    Shifted,
    /// Parts of a text were replaced by other characters.
    Masked,
    /// The value was replaced with zeros.
    Blanked,
    /// Bytes that cannot be read were replaced with zeros. They are counted one by one.
    Unreadable,
    /// The value would have been changed, but the user keeps it.
    Kept,
    /// The value looks like a position and is unchanged.
    Doubtful,
}

/// A field or another kind of values, and its treatment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Change {
    /// Name of the topic, or kind of the value.
    pub group: String,
    /// Name of the field or of the value. Empty for all fields of a topic.
    pub name: String,
    /// The treatment of its values.
    pub action: Action,
}

/// The changes of a log, each with the number of changed values.
#[derive(Clone, Debug, Default)]
pub struct Report(pub BTreeMap<Change, u64>);

impl Report {
    pub(super) fn add(&mut self, group: &str, name: &str, action: Action, count: u64) {
        let change = Change { group: group.to_owned(), name: name.to_owned(), action };
        *self.0.entry(change).or_default() += count;
    }

    /// Returns the number of changes of a kind.
    pub fn count(&self, action: Action) -> u64 {
        self.0.iter().filter(|(change, _)| change.action == action).map(|(_, count)| count).sum()
    }
}
