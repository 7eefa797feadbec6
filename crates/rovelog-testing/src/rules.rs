//! What must hold of the table of rules of every format.

use rovelog_core::{Rule, Severity};

use crate::root;

/// Checks that `rules` stand in the order of their codes, that no name stands for two, that codes tell the severity,
/// and that `document`, a path from the top folder, has a row for each.
pub fn check_rules(rules: &[&Rule], document: &str) {
    let text = std::fs::read_to_string(root().join(document)).expect("every format has its document");
    let number = |rule: &Rule| rule.code.rsplit('-').next().map(str::to_owned);
    assert!(rules.is_sorted_by(|a, b| number(a) < number(b)), "codes ascend");
    let mut names: Vec<_> = rules.iter().map(|rule| rule.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), rules.len(), "a name stands for one rule");
    for rule in rules {
        assert_eq!(rule.code.starts_with('E'), rule.severity == Severity::DataLost, "{}", rule.code);
        let row = format!("| {} | `{}` | {} |", rule.code, rule.name, rule.meaning);
        assert!(text.contains(&row), "{document} lacks the row {row}");
    }
}
