//! Names of topics and fields, each given once.

use std::collections::HashMap;

/// Names of a log. Where two things of a log have one name, the second is called `name#2`.
///
/// ```
/// use rovelog_core::names::UniqueNames;
///
/// let mut names = UniqueNames::default();
/// let given = ["V1", "V1", "V1#2", "V1"].map(|name| names.give(name));
/// assert_eq!(given, ["V1", "V1#2", "V1#2#2", "V1#3"]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct UniqueNames {
    /// The number that the last thing of each name has.
    last: HashMap<String, u32>,
}

impl UniqueNames {
    /// Returns `name`, or, if it is given already, the name with the next free number.
    pub fn give(&mut self, name: &str) -> String {
        let Some(last) = self.last.get(name) else {
            self.last.insert(name.to_owned(), 1);
            return name.to_owned();
        };
        let mut number = last + 1;
        // A log may have used a name of that form itself.
        let unique = loop {
            let numbered = format!("{name}#{number}");
            if !self.last.contains_key(&numbered) {
                break numbered;
            }
            number += 1;
        };
        self.last.insert(name.to_owned(), number);
        self.last.insert(unique.clone(), 1);
        unique
    }

    /// Returns whether a name is given.
    pub fn contains(&self, name: &str) -> bool {
        self.last.contains_key(name)
    }
}
