//! `cargo xtask release`: builds everything that is published for a version, and tests it.

mod archive;
mod crates;
mod files;
mod python;
mod sbom;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use crate::process::cargo;
use crate::root;

/// Runs the subcommand `cargo xtask release`.
pub(crate) fn command(args: &[String]) -> Result<()> {
    let out = root().join("target/release-artefacts");
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["--dry-run"] => dry_run(&out, "dist"),
        // The steps of a release can be tested with another build profile, which takes less time to
        // build.
        ["--dry-run", "--profile", profile] => dry_run(&out, profile),
        ["--archive", target] => {
            fs::create_dir_all(&out)?;
            let made = archive::make(&Version::read("dist")?, target, &out)?;
            println!("{}", made.display());
            Ok(())
        }
        ["--sums"] => sums(&out),
        _ => bail!("usage: release --dry-run [--profile NAME] | --archive TARGET | --sums"),
    }
}

/// Builds and tests all release files for this machine.
fn dry_run(out: &Path, profile: &str) -> Result<()> {
    if out.exists() {
        fs::remove_dir_all(out)?;
    }
    fs::create_dir_all(out)?;
    let version = Version::read(profile)?;
    files::check(&root(), &version.number)?;
    let host = host()?;
    let mut targets = vec![host.clone()];
    if let Some(musl) = host.strip_suffix("-gnu").map(|start| format!("{start}-musl")) {
        match archive::cannot_build(&musl) {
            None => targets.push(musl),
            Some(reason) => println!("SKIPPED: the archive for {musl}: {reason}"),
        }
    }
    for target in targets {
        println!("--- archive for {target}");
        let made = archive::make(&version, &target, out)?;
        archive::try_out(&made, &version, &target)?;
    }
    println!("--- crates");
    crates::check(&version, out)?;
    println!("--- Python");
    python::check(&version, out)?;
    println!("--- bill of materials, checksums");
    fs::write(out.join("rovelog.cdx.json"), sbom::document(&version, &host)?)?;
    sums(out)?;
    println!("the artefacts of {} are in target/release-artefacts", version.number);
    Ok(())
}

/// The version to be released.
struct Version {
    number: String,
    /// Build profile of the programs.
    profile: String,
    /// All packages of the workspace and their dependencies, as `cargo metadata` describes them.
    packages: Vec<Value>,
}

impl Version {
    fn read(profile: &str) -> Result<Self> {
        let output = cargo(&["metadata", "--format-version", "1", "--locked", "--all-features"]).output()?;
        ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
        let mut metadata: Value = serde_json::from_slice(&output.stdout)?;
        let Value::Array(packages) = metadata["packages"].take() else {
            bail!("cargo metadata lists no packages")
        };
        let cli = packages.iter().find(|package| package["name"] == "rovelog-cli");
        let number =
            cli.and_then(|cli| cli["version"].as_str()).context("there is no rovelog-cli")?.to_owned();
        Ok(Self { number, profile: profile.to_owned(), packages })
    }

    /// Returns the packages that are a part of the program for `target`. Build tools are not
    /// included.
    fn built_from(&self, target: &str) -> Result<Vec<&Value>> {
        let mut tree =
            cargo(&["tree", "--locked", "-p", "rovelog-cli", "--all-features", "--target", target]);
        let output = tree.args(["-e", "normal", "--prefix", "none", "--format", "{p}"]).output()?;
        ensure!(output.status.success(), "cargo tree: {}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout)?;
        let mut names: Vec<(&str, &str)> = text
            .lines()
            .filter_map(|line| {
                let mut words = line.split(' ');
                Some((words.next()?, words.next()?.strip_prefix('v')?))
            })
            .collect();
        names.sort_unstable();
        names.dedup();
        let find = |(name, version): (&str, &str)| {
            let found = self.packages.iter().find(|p| p["name"] == name && p["version"] == version);
            found.with_context(|| format!("cargo metadata does not list {name} {version}"))
        };
        names.into_iter().map(find).collect()
    }
}

/// Returns the target triple of this machine.
pub(crate) fn host() -> Result<String> {
    let output = Command::new("rustc").arg("-vV").output().context("starting rustc")?;
    let text = String::from_utf8(output.stdout)?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc does not name its host")?.to_owned())
}

/// Returns an empty folder in `target/release-tried`.
fn empty(name: &str) -> Result<PathBuf> {
    let folder = root().join("target/release-tried").join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// Tests an installed program in an empty home folder. It must print the summary of a log, and
/// export a log.
fn try_program(program: &Path, home: &Path) -> Result<()> {
    let log = root().join("corpus/ulog/one-topic+multi-id+sync+dropout+texts+appended.ulg");
    let start = |args: &[&str]| {
        let mut command = Command::new(program);
        command.args(args).env_clear().env("HOME", home).current_dir(home).stderr(Stdio::inherit());
        command
    };
    let info = start(&["info", "--get", "format.id"]).arg(&log).output().context("starting the program")?;
    let id = String::from_utf8_lossy(&info.stdout).into_owned();
    ensure!(
        info.status.success() && id.trim() == "ulog",
        "{} info: {}, {id:?}",
        program.display(),
        info.status
    );
    // The log is damaged, so the exit code may be 3.
    let export = start(&["export", "-o", "tables/", "--to", "parquet"]).arg(&log).status()?;
    ensure!(matches!(export.code(), Some(0 | 3)), "{} export: {export}", program.display());
    let tables = fs::read_dir(home.join("tables"))?.collect::<std::io::Result<Vec<_>>>()?;
    ensure!(!tables.is_empty(), "the export wrote no table");
    for table in tables {
        let bytes = fs::read(table.path())?;
        ensure!(
            bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"),
            "{}: not a Parquet file",
            table.path().display()
        );
    }
    Ok(())
}

/// Writes the checksums of all files in `out` to the file `SHA256SUMS`.
fn sums(out: &Path) -> Result<()> {
    let mut names =
        fs::read_dir(out)?.map(|file| Ok(file?.file_name())).collect::<std::io::Result<Vec<_>>>()?;
    names.retain(|name| name != "SHA256SUMS");
    names.sort();
    let sums =
        Command::new("sha256sum").args(&names).current_dir(out).output().context("starting sha256sum")?;
    ensure!(sums.status.success(), "sha256sum: {}", String::from_utf8_lossy(&sums.stderr));
    fs::write(out.join("SHA256SUMS"), &sums.stdout)?;
    print!("{}", String::from_utf8_lossy(&sums.stdout));
    Ok(())
}
