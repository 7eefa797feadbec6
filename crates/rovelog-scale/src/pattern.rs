//! Patterns of paths, such as `flights/**/*.ulg`.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf, is_separator};

use glob::Pattern;

use crate::ScaleError;

/// A pattern, which is divided at the separators of its path. The path of a file is compared with
/// the parts one name after the other, so a folder is searched only if its files can match.
///
/// For example, the pattern `flights/**/*.ulg` has the top folder `flights/` and two parts. In the
/// folder `flights/may`, either no part or the part `**` is matched completely. So the next name can
/// match `**` or `*.ulg`.
pub(crate) struct PathPattern {
    /// Start of the path without wildcards.
    top: PathBuf,
    parts: Vec<Pattern>,
}

impl PathPattern {
    /// Parses a pattern. Returns `None` if the text contains no wildcards.
    pub(crate) fn parse(text: &str) -> Result<Option<Self>, ScaleError> {
        let Some(first) = text.find(['*', '?', '[']) else { return Ok(None) };
        let start = text[..first].rfind(is_separator).map_or(0, |at| at + 1);
        let parts = text[start..].split(is_separator).map(Pattern::new).collect::<Result<_, _>>();
        let parts = parts
            .map_err(|error| ScaleError::Source(format!("the pattern {text} cannot be searched: {error}")))?;
        Ok(Some(Self { top: PathBuf::from(&text[..start]), parts }))
    }

    /// Returns the folder in which the search starts. Its path is empty if the pattern starts with a
    /// wildcard, such as `*.ulg`.
    pub(crate) fn top(&self) -> &Path {
        &self.top
    }

    /// Returns the numbers of parts that the path of the top folder can match.
    pub(crate) fn start(&self) -> BTreeSet<usize> {
        self.with_skipped([0].into())
    }

    /// Returns the numbers of parts that a path can match after a name was added to it. `matched`
    /// are the numbers before. Returns `None` if no part matches the name.
    ///
    /// A hidden file or folder matches only a part that starts with a period. A name that is not
    /// UTF-8 matches no part.
    pub(crate) fn step(&self, matched: &BTreeSet<usize>, name: &OsStr) -> Option<BTreeSet<usize>> {
        let name = name.to_str()?;
        let next = matched.iter().filter_map(|&at| {
            let part = self.parts.get(at)?;
            let is_visible = !name.starts_with('.') || part.as_str().starts_with('.');
            let fits = is_visible && (is_recursive(part) || part.matches(name));
            fits.then_some(if is_recursive(part) { at } else { at + 1 })
        });
        let next: BTreeSet<_> = next.collect();
        (!next.is_empty()).then(|| self.with_skipped(next))
    }

    /// Returns whether a path matches all parts of the pattern.
    pub(crate) fn is_complete(&self, matched: &BTreeSet<usize>) -> bool {
        matched.contains(&self.parts.len())
    }

    /// Adds the numbers of parts after each `**`, which also matches no folder at all.
    fn with_skipped(&self, mut matched: BTreeSet<usize>) -> BTreeSet<usize> {
        for at in 0..self.parts.len() {
            if matched.contains(&at) && is_recursive(&self.parts[at]) {
                matched.insert(at + 1);
            }
        }
        matched
    }
}

/// Returns whether a part of a pattern matches any number of folders.
fn is_recursive(part: &Pattern) -> bool {
    part.as_str() == "**"
}
