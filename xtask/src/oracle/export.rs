//! What is exported, opened by what people use: pyarrow, polars, duckdb, mcap, laspy, and beside pyulog's own CSV.

use anyhow::{Context, Result, ensure};

use super::{binary, real, script};

/// What the scripts need; numpy decides how ulog2csv prints numbers.
const REQUIREMENTS: &[&str] = &[
    "pyulog==1.3.0",
    "numpy==2.4.6",
    "pyarrow==26.0.1",
    "polars==2.1.0",
    "duckdb==2.0.0",
    "mcap==1.6.0",
    "mcap-protobuf-support==0.6.0",
    "foxglove-schemas-protobuf==0.4.0",
    "laspy[lazrs]==2.7.0",
];

/// Every value of every real log in every kind of file.
pub(super) fn judge() -> Result<()> {
    let Some(real) = real() else { return Ok(()) };
    let binary = binary()?;
    let mut differ = Vec::new();
    for name in ["export_tables.py", "export_mcap.py", "export_mcap_sensors.py"] {
        let mut judge = script(name, "oracle-export", REQUIREMENTS)?;
        let status = judge.arg(&binary).arg(&real).status().context("starting the script")?;
        if !status.success() {
            differ.push(name);
        }
    }
    ensure!(differ.is_empty(), "what is written differs from the log: {}", differ.join(", "));
    Ok(())
}
