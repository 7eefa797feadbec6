//! Rules for Markdown files: relative links must lead to files, and lines of prose must be short.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

/// Maximum length of a line of prose. Tables, code, and lines that consist of one long link may be
/// longer.
const MAX_WIDTH: usize = 100;

/// Markdown files in which longer lines are still allowed.
const WIDE: &[&str] = &["docs/formats/rosbag.md"];

/// Returns the broken relative links and the long lines in all Markdown files among `files`.
pub(super) fn check(root: &Path, files: &[PathBuf]) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let is_markdown = |file: &&PathBuf| file.extension().is_some_and(|extension| extension == "md");
    for file in files.iter().filter(is_markdown) {
        let text = fs::read_to_string(root.join(file))?;
        let folder = file.parent().unwrap_or(Path::new(""));
        for (number, line) in prose(&text) {
            let is_reached = |link: &&str| root.join(folder).join(link).exists();
            let broken = links(line).filter(|link| !is_reached(link));
            found.extend(broken.map(|link| format!("{}:{number}: no file {link}", file.display())));
            let width = line.chars().count();
            let may_be_wide = WIDE.iter().any(|wide| file.as_path() == Path::new(wide));
            if width > MAX_WIDTH && !may_be_wide && !line.starts_with('|') && line.trim().contains(' ') {
                found
                    .push(format!("{}:{number}: {width} columns; wrap prose at {MAX_WIDTH}", file.display()));
            }
        }
    }
    Ok(found)
}

/// Returns the lines outside of code blocks, with their line numbers. Code blocks are fenced or
/// indented.
pub(crate) fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_fenced = false;
    let mut is_list = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        // The text of a list item is indented too. So an indented block after a list does not count
        // as code.
        is_list = match line.chars().next() {
            Some(' ') | None => is_list,
            Some(first) => matches!(first, '-' | '*' | '0'..='9'),
        };
        !is_fenced && !is_fence && (is_list || !line.starts_with("    "))
    })
}

/// Returns the targets of all links `[text](target)` that are paths. Anchors are removed.
fn links(line: &str) -> impl Iterator<Item = &str> {
    let targets = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let paths = targets.filter(|target| !target.contains("://") && !target.contains(' '));
    paths.map(|target| target.split('#').next().unwrap_or_default()).filter(|path| !path.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_outside_of_code() {
        let text = "[a](b.md#c), [d](https://e.f) and [g](#h)\n\n    [i](j.md)\n- k\n\n      [l](m.md)\n```\n[n](o)\n```";
        let found: Vec<_> =
            prose(text).flat_map(|(number, line)| links(line).map(move |l| (number, l))).collect();
        assert_eq!(found, [(1, "b.md"), (6, "m.md")]);
    }
}
