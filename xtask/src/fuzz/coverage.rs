//! `cargo xtask coverage`: counts the lines of the format crates that the fuzz targets reach with
//! their seeds and with the corpus. It needs the cargo subcommand `llvm-cov`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::process::{cargo, run_or};
use crate::reliability::Page;
use crate::{FORMAT_CRATES, place};

/// Number of lines of a module.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Lines {
    all: u64,
    reached: u64,
}

/// Runs the subcommand `coverage`.
pub(crate) fn command(args: &[String]) -> Result<()> {
    if !args.is_empty() {
        bail!("usage: coverage");
    }
    let report = place::target().join("coverage.json");
    let mut tests = cargo(&["llvm-cov", "--package", "fuzz-bodies", "--test", "seeds", "--test", "corpus"]);
    tests.args(["--json", "--summary-only", "--output-path"]).arg(&report);
    run_or(&mut tests, "the tests failed, or there is no llvm-cov: cargo install cargo-llvm-cov")?;
    let text = fs::read_to_string(&report).with_context(|| format!("reading {}", report.display()))?;
    Page::COVERAGE.record(&table(&modules(&serde_json::from_str(&text)?)?))
}

/// Returns the lines of each module of the format crates. A module is a file or folder in `src`, so
/// `scan.rs` and `scan/` are one module. Files of tests do not count.
fn modules(report: &Value) -> Result<BTreeMap<(usize, String), Lines>> {
    let mut modules = BTreeMap::<_, Lines>::new();
    let files = report["data"][0]["files"].as_array().context("the report lists no files")?;
    for file in files {
        let path = file["filename"].as_str().context("a file has no name")?.replace('\\', "/");
        let place = FORMAT_CRATES.iter().enumerate().find_map(|(number, name)| {
            let (_, module) = path.split_once(&format!("crates/{name}/src/"))?;
            Some((number, module))
        });
        let Some((number, module)) = place else { continue };
        if module.contains("tests") {
            continue;
        }
        let name = module.split('/').next().unwrap_or(module).trim_end_matches(".rs");
        let count = |key: &str| {
            file["summary"]["lines"][key].as_u64().with_context(|| format!("{path} has no `{key}`"))
        };
        let lines = modules.entry((number, name.to_owned())).or_default();
        lines.all += count("count")?;
        lines.reached += count("covered")?;
    }
    Ok(modules)
}

fn table(modules: &BTreeMap<(usize, String), Lines>) -> String {
    let mut table = "| crate | module | lines | reached | share |\n|---|---|---|---|---|\n".to_owned();
    for ((number, module), Lines { all, reached }) in modules {
        let share = 100.0 * *reached as f64 / (*all).max(1) as f64;
        let name = FORMAT_CRATES[*number];
        let _ = writeln!(table, "| {name} | `{module}` | {all} | {reached} | {share:.1} % |");
    }
    table
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lines_of_a_module_are_added() {
        let file = |name: &str, count: u64, covered: u64| json!({"filename": name, "summary": {"lines": {"count": count, "covered": covered}}});
        let files = [
            file("/a/crates/rosbag12/src/v2/scan.rs", 10, 9),
            file("/a/crates/rosbag12/src/v2/tests/scan.rs", 10, 0),
            file("/a/crates/rosbag12/src/v2/open.rs", 10, 10),
            file("/a/crates/ulog-format/src/scan.rs", 3, 3),
            file("/a/crates/rovelog/src/lib.rs", 10, 10),
        ];
        let modules = modules(&json!({"data": [{"files": files}]})).expect("a report");
        let table = table(&modules);
        assert_eq!(
            table.lines().skip(2).collect::<Vec<_>>(),
            ["| ulog-format | `scan` | 3 | 3 | 100.0 % |", "| rosbag12 | `v2` | 20 | 19 | 95.0 % |"]
        );
    }
}
