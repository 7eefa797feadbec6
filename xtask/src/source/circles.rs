//! Files that import each other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::Crate;

type Uses<'a> = BTreeMap<&'a Path, BTreeSet<&'a Path>>;

/// Returns groups of files that all depend on each other, the largest first.
pub(crate) fn circles(krate: &Crate) -> Vec<Vec<&Path>> {
    let uses = krate.uses();
    let leads: Uses<'_> = uses.keys().map(|file| (*file, reach(&uses, file))).collect();
    let reaches = |from: &Path, to: &Path| leads.get(from).is_some_and(|files| files.contains(to));
    let mut circles: Vec<Vec<&Path>> = Vec::new();
    for file in uses.keys().filter(|file| reaches(file, file)) {
        match circles.iter_mut().find(|circle| reaches(file, circle[0]) && reaches(circle[0], file)) {
            Some(circle) => circle.push(file),
            None => circles.push(vec![file]),
        }
    }
    circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    circles
}

/// Returns every file that `from` depends on; `from` itself only if it is in a circle.
fn reach<'a>(uses: &Uses<'a>, from: &Path) -> BTreeSet<&'a Path> {
    let mut found = BTreeSet::new();
    let mut open = vec![from];
    while let Some(file) = open.pop() {
        for next in uses.get(file).into_iter().flatten() {
            if found.insert(*next) {
                open.push(next);
            }
        }
    }
    found
}
