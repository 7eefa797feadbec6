//! Copies the pages to the folder of the site generator, and rewrites their links for the new
//! locations.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use super::schema;
use crate::tidy::documents::prose;
use corpus_generator::files_below;

/// Address of the files in the repository that are not pages of the site.
const REPOSITORY: &str = "https://github.com/rovelog/rovelog/blob/main";

/// Pages that are not in `docs/`, each with its path in the repository and its path in the site.
const OTHER_PAGES: &[(&str, &str)] = &[
    ("ARCHITECTURE.md", "internals/architecture.md"),
    ("CONTRIBUTING.md", "internals/contributing.md"),
    ("SECURITY.md", "internals/security.md"),
    ("CHANGELOG.md", "internals/changes.md"),
    ("corpus/README.md", "internals/corpus.md"),
];

/// Writes the input files of the site generator to `folder`.
pub(super) fn write(root: &Path, folder: &Path) -> Result<()> {
    let docs = folder.join("docs");
    // Path of each page in the site, by its path in the repository.
    let mut places: BTreeMap<PathBuf, PathBuf> =
        OTHER_PAGES.iter().map(|(from, to)| (PathBuf::from(from), PathBuf::from(to))).collect();
    for (from, to) in [("docs", ""), ("site/pages", ""), ("site/assets", "assets")] {
        for file in files_below(&root.join(from))? {
            places.insert(Path::new(from).join(&file), Path::new(to).join(file));
        }
    }
    for (from, to) in &places {
        let to_file = docs.join(to);
        fs::create_dir_all(to_file.parent().context("a page is in a folder")?)?;
        if from.extension().is_some_and(|extension| extension == "md") {
            let text = fs::read_to_string(root.join(from))?;
            fs::write(to_file, with_links(&text, from, to, &places))?;
        } else {
            fs::copy(root.join(from), to_file)?;
        }
    }
    let text = fs::read_to_string(root.join("docs/reference/schemas/rovelog.schema.json"))?;
    fs::write(docs.join("reference/json.md"), schema::page(&serde_json::from_str(&text)?))?;
    let settings = fs::read_to_string(root.join("site/zensical.toml"))?;
    fs::write(folder.join("zensical.toml"), &settings)?;
    check_navigation(&docs, &settings)
}

/// Returns an error if the navigation of the site does not contain a page.
fn check_navigation(docs: &Path, settings: &str) -> Result<()> {
    let pages = files_below(docs)?;
    let pages = pages.iter().filter(|page| page.extension().is_some_and(|extension| extension == "md"));
    let listed = |page: &Path| settings.contains(&format!("\"{}\"", page.display()));
    let missing: Vec<_> = pages.filter(|page| !listed(page)).map(|page| page.display().to_string()).collect();
    ensure!(missing.is_empty(), "not in the navigation of site/zensical.toml: {}", missing.join(", "));
    Ok(())
}

/// Returns the text of a page after rewriting its relative links for its location in the site.
fn with_links(text: &str, from: &Path, to: &Path, places: &BTreeMap<PathBuf, PathBuf>) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for (number, line) in prose(text) {
        let mut parts = line.split("](");
        let mut new = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (target, rest) = part.split_once(')').unwrap_or((part, ""));
            new = format!("{new}]({}){rest}", moved(target, from, to, places));
        }
        if let Some(old) = lines.get_mut(number - 1).filter(|_| line.contains("](")) {
            *old = new;
        }
    }
    lines.join("\n") + "\n"
}

/// Rewrites the target of a link in a page that is at `from` in the repository and at `to` in the
/// site.
fn moved(target: &str, from: &Path, to: &Path, places: &BTreeMap<PathBuf, PathBuf>) -> String {
    if target.contains("://") || target.starts_with('#') || target.contains(' ') {
        return target.to_owned();
    }
    let (path, anchor) =
        target.split_once('#').map_or((target, String::new()), |(path, anchor)| (path, format!("#{anchor}")));
    let file = normal(&from.parent().unwrap_or(Path::new("")).join(path));
    match places.get(&file) {
        Some(place) => {
            let up = to.components().count().saturating_sub(1);
            format!("{}{}{anchor}", "../".repeat(up), place.display())
        }
        None => format!("{REPOSITORY}/{}{anchor}", file.display()),
    }
}

/// Returns a path after removing `..` and `.`.
fn normal(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(parts.pop()),
            Component::CurDir => {}
            other => parts.push(other),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_rewritten_for_the_site_or_the_repository() {
        let places = [("docs/a/b.md", "a/b.md"), ("TOP.md", "internals/top.md")];
        let places = places.map(|(from, to)| (PathBuf::from(from), PathBuf::from(to))).into();
        let text = "[x](../../TOP.md#y), [z](https://e.f) and [c](../../crates/d.rs)\n\n    [code](b.md)\n";
        let page = with_links(text, Path::new("docs/a/b.md"), Path::new("a/b.md"), &places);
        let code = format!("{REPOSITORY}/crates/d.rs");
        assert_eq!(
            page,
            format!("[x](../internals/top.md#y), [z](https://e.f) and [c]({code})\n\n    [code](b.md)\n")
        );
        let page =
            with_links("[b](docs/a/b.md)\n", Path::new("TOP.md"), Path::new("internals/top.md"), &places);
        assert_eq!(page, "[b](../a/b.md)\n");
    }
}
