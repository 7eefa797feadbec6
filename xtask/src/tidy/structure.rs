//! Structure of the code: no circles of files that import each other, and limits for the number of
//! public items, which only fall.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::source::{Crate, circles, public_items};

/// The maximum number of public items of a library.
const LIMITS: &[(&str, usize)] = &[
    ("rovelog-core", 475),
    ("ulog-format", 154),
    ("rld-format", 208),
    ("rosbag12", 130),
    ("vel-format", 185),
    ("rovelog", 61),
    ("rovelog-export", 222),
];

/// Runs the subcommand `public`: lists the public items of a crate.
pub(crate) fn command(args: &[String]) -> Result<()> {
    let [name] = args else { bail!("usage: public CRATE") };
    let metadata = super::metadata(&crate::root())?;
    let (ours, _) = super::split(&metadata);
    let root = ours.iter().filter_map(|package| library(package)).find(|library| library.0 == name);
    let (_, root) = root.with_context(|| format!("no library is called {name}"))?;
    let items = public_items(&Crate::read(Path::new(root))?);
    for item in &items {
        println!("{item}");
    }
    let named = named(&items);
    println!("{named} public items, {} fields and variants", items.len() - named);
    Ok(())
}

/// Counts the items without fields and variants.
fn named(items: &BTreeSet<String>) -> usize {
    items.iter().filter(|item| !item.contains('.')).count()
}

/// Returns circles, and violations of the limits. `packages` are ours, of `cargo metadata`.
pub(super) fn check(packages: &[&Value]) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for (name, root) in packages.iter().filter_map(|package| library(package)) {
        let krate = Crate::read(Path::new(root))?;
        let circles = circles(&krate);
        found.extend(circles.iter().map(|circle| format!("{name}: a circle of files: {}", shown(circle))));
        let limit = LIMITS.iter().find(|limit| limit.0 == name).map_or(usize::MAX, |limit| limit.1);
        let items = named(&public_items(&krate));
        if items > limit {
            found.push(format!("{name}: {items} public items, {limit} allowed: `cargo xtask public {name}`"));
        }
    }
    Ok(found)
}

/// Returns the name of a package and the root file of its library.
fn library(package: &Value) -> Option<(&str, &str)> {
    let targets = package["targets"].as_array()?;
    let library =
        targets.iter().find(|target| matches!(target["kind"][0].as_str(), Some("lib" | "cdylib")))?;
    Some((package["name"].as_str()?, library["src_path"].as_str()?))
}

fn shown(circle: &[&Path]) -> String {
    circle.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ")
}
