//! `cargo xtask c-library PREFIX`: builds the C library and installs it below a folder.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::process::{cargo, run};
use crate::{place, root};

/// Suffix of the shared library on Linux. Programs that are linked with the library search for the
/// name with this suffix (`crates/rovelog-ffi/build.rs`).
const ABI_SUFFIX: &str = ".0";

/// Runs the subcommand `cargo xtask c-library`.
pub(crate) fn command(args: &[String]) -> Result<()> {
    let [prefix] = args else { bail!("usage: c-library PREFIX") };
    install(Path::new(prefix))
}

/// Installs the shared library, the static library, the header and the file for pkg-config.
pub(crate) fn install(prefix: &Path) -> Result<()> {
    run(&mut cargo(&["build", "--quiet", "--release", "-p", "rovelog-ffi"]))?;
    let built = place::target().join("release");
    let folder = root().join("crates/rovelog-ffi");
    let (lib, include) = (prefix.join("lib"), prefix.join("include"));
    fs::create_dir_all(lib.join("pkgconfig"))?;
    fs::create_dir_all(&include)?;
    let shared = format!("{DLL_PREFIX}rovelog{DLL_SUFFIX}");
    let versioned = if cfg!(target_os = "linux") { format!("{shared}{ABI_SUFFIX}") } else { shared.clone() };
    copy(&built.join(format!("{DLL_PREFIX}rovelog_ffi{DLL_SUFFIX}")), &lib.join(&versioned))?;
    #[cfg(target_os = "linux")]
    {
        let link = lib.join(shared);
        // The link may exist from an earlier installation.
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(&versioned, link)?;
    }
    let archive =
        if cfg!(windows) { ("rovelog_ffi.lib", "rovelog.lib") } else { ("librovelog_ffi.a", "librovelog.a") };
    copy(&built.join(archive.0), &lib.join(archive.1))?;
    copy(&folder.join("include/rovelog.h"), &include.join("rovelog.h"))?;
    let absolute = std::path::absolute(prefix)?;
    let settings = fs::read_to_string(folder.join("rovelog.pc.in")).context("reading rovelog.pc.in")?;
    let settings = settings.replace("@PREFIX@", &absolute.to_string_lossy());
    let settings = settings.replace("@VERSION@", env!("CARGO_PKG_VERSION"));
    fs::write(lib.join("pkgconfig/rovelog.pc"), settings)?;
    println!("installed in {}", prefix.display());
    Ok(())
}

/// Copies a file. An error names both paths.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let copied = fs::copy(from, to);
    copied.map(drop).with_context(|| format!("copying {} to {}", from.display(), to.display()))
}
