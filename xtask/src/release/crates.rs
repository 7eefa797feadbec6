//! Packages the crates, and installs the command line from these packages only.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::{Version, empty, try_program};
use crate::process::{cargo, cargo_package, run};
use crate::root;

/// Packages all published crates, and installs the command line from these packages.
pub(super) fn check(version: &Version, out: &Path) -> Result<()> {
    run(cargo_package().arg("--locked"))?;
    // The folder is outside of the workspace. Inside of it, cargo would use the manifest of the
    // workspace.
    let folder = std::env::temp_dir().join(format!("rovelog-packages-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let result = install(version, out, &folder);
    fs::remove_dir_all(&folder)?;
    result
}

fn install(version: &Version, out: &Path, folder: &Path) -> Result<()> {
    let published = version.packages.iter().filter(|p| p["source"].is_null() && p["publish"].is_null());
    let names: Vec<&str> = published.filter_map(|package| package["name"].as_str()).collect();
    for name in &names {
        let file = format!("{name}-{}.crate", version.number);
        let package = crate::place::target().join("package").join(&file);
        run(Command::new("tar").arg("-xzf").arg(&package).arg("-C").arg(folder))?;
        fs::copy(&package, out.join(&file))?;
    }
    let unpacked = |name: &str| folder.join(format!("{name}-{}", version.number));
    let cli = unpacked("rovelog-cli");
    ensure!(cli.join("Cargo.lock").is_file(), "the package of the command line has no Cargo.lock");
    // The crates are not in any registry yet, so each dependency is replaced by the path of its
    // package. Packages contain no build profiles, so they are added.
    let manifest: toml::Table = fs::read_to_string(root().join("Cargo.toml"))?.parse()?;
    let profiles = manifest.get("profile").context("Cargo.toml has no profiles")?.clone();
    let mut settings = toml::to_string(&toml::Table::from_iter([("profile".to_owned(), profiles)]))?;
    settings += "\n[patch.crates-io]\n";
    for name in names.iter().filter(|name| **name != "rovelog-cli") {
        let _ = writeln!(settings, "{name} = {{ path = '{}' }}", unpacked(name).display());
    }
    let config = folder.join("config.toml");
    fs::write(&config, settings)?;
    // The lock file in the package contains checksums that only a registry has. So the lock file of
    // the workspace is used.
    fs::copy(root().join("Cargo.lock"), cli.join("Cargo.lock"))?;
    let cargo_here = |args: &[&str]| {
        let mut cargo = cargo(&["--config"]);
        cargo.arg(&config).args(args).current_dir(folder);
        cargo
    };
    let manifest = cli.join("Cargo.toml");
    run(cargo_here(&["update", "--workspace", "--quiet", "--manifest-path"]).arg(&manifest))?;
    let home = empty("crates")?;
    // The target folder of the workspace is used, because it already contains the compiled
    // dependencies.
    let mut install =
        cargo_here(&["install", "--locked", "--profile", &version.profile, "--all-features", "--path"]);
    install.arg(&cli).arg("--root").arg(&home).arg("--target-dir").arg(crate::place::target());
    run(&mut install)?;
    let program: PathBuf = home.join("bin/rovelog");
    try_program(&program, &home)?;
    println!("{} crates are packaged; the command line installs from them", names.len());
    Ok(())
}
