//! Checks of the diagnostic rules that a format declares.

use rovelog_core::{Rule, Severity};

/// Checks that `rules` are sorted by code and have unique names. Codes of rules about lost data
/// must start with `E`.
pub fn check_rules(rules: &[&Rule]) {
    // Codes such as `E-ULOG-002` and `W-ULOG-101` must be sorted by the number at their end.
    let number = |rule: &Rule| rule.code.rsplit('-').next().map(str::to_owned);
    assert!(rules.is_sorted_by(|a, b| number(a) < number(b)), "codes ascend");
    let mut names: Vec<_> = rules.iter().map(|rule| rule.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), rules.len(), "names are distinct");
    for rule in rules {
        assert_eq!(rule.code.starts_with('E'), rule.severity == Severity::DataLost, "{}", rule.code);
    }
}
