//! `cargo xtask lake`: tests the data source on Spark and Sail, and lakes as Delta tables. `cargo
//! xtask test` does not include this, because Spark needs a Java virtual machine and 456 MB of
//! packages.

use std::process::Command;

use anyhow::{Result, ensure};

use crate::process::run;
use crate::{package, python, root};

pub(crate) const SPARK: &str = "pyspark==4.3.0";
pub(crate) const SAIL: [&str; 4] = ["pysail==0.7.2", "pyspark-client==4.2.0", "grpcio", "grpcio-status"];

/// Python packages for both engines: the test runner, and readers for the tables of a lake.
const PACKAGES: [&str; 6] =
    ["pytest", "pandas>=2.2,<3", python::PYARROW, "deltalake==1.6.6", "duckdb==2.0.0", "polars==2.1.0"];

/// Runs the subcommand `cargo xtask lake`.
pub(crate) fn command(args: &[String]) -> Result<()> {
    ensure!(args.is_empty(), "lake takes no options");
    let tests = root().join("crates/rovelog-python/engines");
    let engines: [(&str, Vec<&str>); 2] =
        [("sail", [&PACKAGES[..], &SAIL].concat()), ("spark", [&PACKAGES[..], &[SPARK]].concat())];
    for (engine, packages) in engines {
        println!("--- {engine}");
        let (python, _) = package::development(engine, &packages)?;
        run(Command::new(&python)
            .args(["-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "default", "."])
            .env("ROVELOG_ENGINE", engine)
            .current_dir(&tests))?;
    }
    Ok(())
}
