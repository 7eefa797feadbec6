//! Checks the links in the documentation site. These lead to pages, files and anchors. On request,
//! also checks links to other sites.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Result, ensure};

use corpus_generator::files_below;

/// First part of the addresses that belong to this project. They are not opened: their pages are
/// checked as files, or do not exist before they are published.
const OURS: &[&str] = &["https://rovelog.github.io/rovelog/", "https://github.com/rovelog/"];

/// Returns an error if a link within the site is broken. If `external` is true, also checks links
/// to other sites. Returns the number of pages.
pub(super) fn check(site: &Path, external: bool) -> Result<usize> {
    let mut pages = BTreeMap::new();
    let files: BTreeSet<String> =
        files_below(site)?.iter().map(|file| file.to_string_lossy().into_owned()).collect();
    let is_page = |file: &&String| Path::new(file.as_str()).extension().is_some_and(|name| name == "html");
    for file in files.iter().filter(is_page) {
        pages.insert(file.as_str(), fs::read_to_string(site.join(file))?);
    }
    let mut broken = Vec::new();
    let mut others = BTreeSet::new();
    for (page, html) in &pages {
        // The page `404.html` has absolute links, because it is shown for any unknown address.
        for link in attributes(html, &["href", "src"]).filter(|_| *page != "404.html") {
            if link.contains("://") {
                others.insert(link);
            } else if !link.starts_with("data:")
                && !link.starts_with("mailto:")
                && !reaches(page, link, &pages, &files)
            {
                broken.push(format!("{page}: {link}"));
            }
        }
    }
    ensure!(broken.is_empty(), "broken links:\n  {}", broken.join("\n  "));
    others.retain(|link| !OURS.iter().any(|ours| link.starts_with(ours)));
    if external {
        open(&others)?;
    } else {
        println!("SKIPPED: {} links to other sites (cargo xtask site --external opens them)", others.len());
    }
    Ok(pages.len())
}

/// Returns true if `link` in the page `page` leads to a file of the site. If the link has an
/// anchor, the target must contain this anchor.
fn reaches(page: &str, link: &str, pages: &BTreeMap<&str, String>, files: &BTreeSet<String>) -> bool {
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let path = path.split('?').next().unwrap_or_default();
    let mut parts: Vec<&str> = if path.is_empty() { Vec::new() } else { page.split('/').collect() };
    parts.pop();
    for part in path.split('/').filter(|part| !part.is_empty()) {
        match part {
            ".." => drop(parts.pop()),
            "." => {}
            name => parts.push(name),
        }
    }
    let mut file = if path.is_empty() { page.to_owned() } else { parts.join("/") };
    if !files.contains(&file) {
        file = if file.is_empty() { "index.html".to_owned() } else { format!("{file}/index.html") };
    }
    match pages.get(file.as_str()) {
        Some(html) => anchor.is_empty() || attributes(html, &["id", "name"]).any(|id| id == anchor),
        None => files.contains(&file),
    }
}

/// Returns the values of all attributes that have one of these names.
fn attributes<'a>(html: &'a str, names: &'a [&str]) -> impl Iterator<Item = &'a str> {
    names.iter().flat_map(move |name| {
        let starts = html.match_indices(*name).filter(|(at, _)| html[..*at].ends_with([' ', '\n']));
        starts.filter_map(|(at, _)| {
            let value = html[at + name.len()..].strip_prefix('=')?;
            match value.strip_prefix('"') {
                Some(quoted) => quoted.split('"').next(),
                None => value.split([' ', '>']).next(),
            }
        })
    })
}

/// Opens links to other sites. If there is no network, prints a note.
fn open(links: &BTreeSet<&str>) -> Result<()> {
    let request = |link: &str| {
        let mut curl = Command::new("curl");
        curl.args(["-sSfL", "--max-time", "20", "-o", "/dev/null", link]).stderr(Stdio::null());
        curl.status().map(|status| status.code())
    };
    let mut broken = Vec::new();
    for link in links {
        match request(link) {
            Ok(Some(0)) => {}
            // These exit codes of curl mean that the host cannot be resolved or reached.
            Ok(Some(6 | 7)) | Err(_) => {
                println!("SKIPPED: links to other sites: no network, or no curl");
                return Ok(());
            }
            Ok(code) => broken.push(format!("{link} (curl {})", code.unwrap_or(-1))),
        }
    }
    ensure!(broken.is_empty(), "links that do not open:\n  {}", broken.join("\n  "));
    println!("{} links to other sites open", links.len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_files_and_anchors_are_found() {
        let pages = BTreeMap::from([
            ("index.html", "<a href=\"a/#b\">".to_owned()),
            ("a/index.html", "<h2 id=\"b\"><a href=../x.svg>".to_owned()),
        ]);
        let files = ["index.html", "a/index.html", "x.svg"].map(str::to_owned).into();
        let reaches = |page, link| reaches(page, link, &pages, &files);
        assert!(
            reaches("index.html", "a/#b") && reaches("a/index.html", "#b") && reaches("a/index.html", "..")
        );
        assert!(reaches("a/index.html", "../x.svg") && reaches("a/index.html", "./"));
        assert!(
            !reaches("index.html", "a/#c")
                && !reaches("index.html", "c/")
                && !reaches("a/index.html", "x.svg")
        );
        let found: Vec<_> = attributes(&pages["a/index.html"], &["href", "id"]).collect();
        assert_eq!(found, ["../x.svg", "b"]);
    }
}
