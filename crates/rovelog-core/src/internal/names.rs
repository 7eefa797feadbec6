//! Unique names for topics and fields.

use std::collections::HashMap;

/// Assigns unique names. If a name has already been assigned, a number is appended, as in `name#2`.
///
/// ```
/// use rovelog_core::internal::names::UniqueNames;
///
/// let mut names = UniqueNames::default();
/// let given = ["V1", "V1", "V1#2", "V1"].map(|name| names.assign(name));
/// assert_eq!(given, ["V1", "V1#2", "V1#2#2", "V1#3"]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct UniqueNames {
    /// For each assigned name, the last number that was appended to it, or 1 if no number has been
    /// appended yet.
    last: HashMap<String, u32>,
}

impl UniqueNames {
    /// Returns `name` if it has not been assigned yet. Otherwise, returns `name` with the next free
    /// number.
    pub fn assign(&mut self, name: &str) -> String {
        let Some(last) = self.last.get(name) else {
            self.last.insert(name.to_owned(), 1);
            return name.to_owned();
        };
        let mut number = last + 1;
        // The log may already use a numbered name such as `V1#2`, so several numbers may have to be
        // tried.
        let unique = loop {
            let numbered = format!("{name}#{number}");
            if !self.last.contains_key(&numbered) {
                break numbered;
            }
            number += 1;
        };
        self.last.insert(name.to_owned(), number);
        // The numbered name is also marked as assigned, because the log may use the same name
        // later.
        self.last.insert(unique.clone(), 1);
        unique
    }

    /// Returns whether `name` has been assigned.
    pub fn contains(&self, name: &str) -> bool {
        self.last.contains_key(name)
    }
}
