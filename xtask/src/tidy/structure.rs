//! Structure of the code: circles of files that import each other, and the number of public items.
//! Limits only fall.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::source::{Crate, circles, public_items};

/// The maximum of circles and of public items of a library; others have no circle and any number of
/// items.
const LIMITS: &[(&str, usize, usize)] = &[
    ("rovelog-core", 0, 475),
    ("ulog-format", 0, 149),
    ("rld-format", 0, 208),
    ("rosbag12", 0, 130),
    ("vel-format", 0, 185),
    ("rovelog", 0, 61),
    ("rovelog-export", 0, 220),
    ("rovelog-python", 1, usize::MAX),
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

/// Returns violations of the limits. `packages` are ours, of `cargo metadata`.
pub(super) fn check(packages: &[&Value]) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for (name, root) in packages.iter().filter_map(|package| library(package)) {
        let krate = Crate::read(Path::new(root))?;
        let limits = LIMITS.iter().find(|limits| limits.0 == name);
        let (most_circles, most_items) = limits.map_or((0, usize::MAX), |limits| (limits.1, limits.2));
        let circles = circles(&krate);
        if circles.len() > most_circles {
            found.push(format!("{name}: {} circles of files, {most_circles} allowed:", circles.len()));
            found.extend(circles.iter().map(|circle| format!("  {}", shown(circle))));
        }
        let items = named(&public_items(&krate));
        if items > most_items {
            found.push(format!(
                "{name}: {items} public items, {most_items} allowed: `cargo xtask public {name}`"
            ));
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
