//! Report of the changed values.

use std::collections::BTreeMap;

/// What was done to a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
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
    /// Bytes that cannot be read were replaced with zeros.
    Unreadable,
    /// The value would have been changed, but the user keeps it.
    Kept,
    /// The value looks like a position and is unchanged.
    Doubtful,
}

/// A field or a value with the number of its changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Name of the topic, or kind of the value.
    pub group: String,
    /// Name of the field or of the value.
    pub name: String,
    /// What was done to it.
    pub action: Action,
    /// Number of changed values. For unreadable bytes, the number of bytes.
    pub count: u64,
}

/// Name of the topic, or kind of the value.
type Group = String;

/// All changes of a log.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Number of changes of each field, by group.
    counts: BTreeMap<Group, BTreeMap<(String, Action), u64>>,
}

impl Report {
    /// Counts a change.
    pub(super) fn add(&mut self, group: &str, name: &str, action: Action, count: u64) {
        // Most changes are to a known field, so the names are copied only for the first change.
        if !self.counts.contains_key(group) {
            self.counts.insert(group.to_owned(), BTreeMap::new());
        }
        let group = self.counts.get_mut(group).expect("just inserted");
        *group.entry((name.to_owned(), action)).or_default() += count;
    }

    /// Returns the changes, sorted by group and name.
    pub fn entries(&self) -> impl Iterator<Item = Entry> {
        self.counts.iter().flat_map(|(group, fields)| {
            fields.iter().map(|((name, action), count)| Entry {
                group: group.clone(),
                name: name.clone(),
                action: *action,
                count: *count,
            })
        })
    }

    /// Returns the number of changes of a kind.
    pub fn count(&self, action: Action) -> u64 {
        self.entries().filter(|entry| entry.action == action).map(|entry| entry.count).sum()
    }
}
