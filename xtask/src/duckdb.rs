//! `cargo xtask duckdb`: builds the DuckDB extension, and tests it with DuckDB.

use std::env::consts::{ARCH, DLL_PREFIX, DLL_SUFFIX, OS};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process::{cargo, run};
use crate::{place, python, root};

/// Version of DuckDB's C API for extensions that the extension needs. All later versions of DuckDB
/// load the extension.
const API: &str = "v1.2.0";

/// The newest version of DuckDB that is tested.
pub(crate) const NEWEST: &str = "duckdb==2.0.1";

/// Versions of DuckDB that the tests load the extension into.
const TESTED: [&str; 2] = ["duckdb==1.5.6", NEWEST];

/// Size in bytes of a field in the metadata of an extension.
const FIELD_LEN: usize = 32;

/// Size in bytes of the space for a signature, which follows the metadata. DuckDB loads an
/// extension without a signature only if the user allows it.
const SIGNATURE_LEN: usize = 256;

/// Runs the subcommand `cargo xtask duckdb`.
pub(crate) fn command(args: &[String]) -> Result<()> {
    let extension = match args {
        [] => build()?,
        [option] if option == "--test" => return test(),
        _ => bail!("usage: duckdb [--test]"),
    };
    println!("{}", extension.display());
    Ok(())
}

/// Builds the extension, and returns its path.
pub(crate) fn build() -> Result<PathBuf> {
    run(&mut cargo(&["build", "--quiet", "--release", "-p", "rovelog-duckdb"]))?;
    let folder = place::target().join("release");
    let library = folder.join(format!("{DLL_PREFIX}rovelog_duckdb{DLL_SUFFIX}"));
    let mut bytes = fs::read(&library).with_context(|| format!("reading {}", library.display()))?;
    bytes.extend(metadata()?);
    // DuckDB derives the name of the extension from the name of the file.
    let extension = folder.join("rovelog.duckdb_extension");
    fs::write(&extension, bytes)?;
    Ok(extension)
}

/// Returns the metadata that DuckDB reads from the end of an extension: eight fields, and the space
/// for a signature.
fn metadata() -> Result<Vec<u8>> {
    let (system, processor) = match (OS, ARCH) {
        ("macos", "aarch64") => ("osx", "arm64"),
        ("macos", _) => ("osx", "amd64"),
        (system, "aarch64") => (system, "arm64"),
        (system, "x86_64") => (system, "amd64"),
        (system, processor) => bail!("DuckDB has no name for {system} on {processor}"),
    };
    let version = concat!("v", env!("CARGO_PKG_VERSION"));
    let platform = format!("{system}_{processor}");
    let mut bytes = Vec::new();
    for (number, field) in ["", "", "", "C_STRUCT", version, API, &platform, "4"].iter().enumerate() {
        bytes.extend(field.as_bytes());
        bytes.resize((number + 1) * FIELD_LEN, 0);
    }
    bytes.resize(bytes.len() + SIGNATURE_LEN, 0);
    Ok(bytes)
}

/// Queries the test logs with each tested version of DuckDB.
fn test() -> Result<()> {
    let extension = build()?;
    for duckdb in TESTED {
        let python = python::with(&duckdb.replace("==", "-"), &[duckdb])?;
        let tests = root().join("crates/rovelog-duckdb/tests/corpus.py");
        run(Command::new(python).arg("-B").arg(tests).arg(&extension).arg(root().join("corpus")))?;
    }
    Ok(())
}
