//! `cargo xtask faults`: every write of every command fails once, and every command is killed at
//! random times; the tables of `docs/internals/reliability.md`.

use std::fs;

use anyhow::{Context, Result, bail, ensure};

use crate::place;
use crate::process::{blessing, cargo, run_or};
use crate::{damage, root};

/// How often each command is killed.
const KILLS: &str = "200";

/// Runs the subcommand: `[--kills N]`.
pub(crate) fn command(args: &[String]) -> Result<()> {
    let kills = match args {
        [] => KILLS,
        [option, number] if option == "--kills" && number.parse::<u32>().is_ok() => number,
        _ => bail!("usage: faults [--kills N]"),
    };
    let folder = place::target().join("faults");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    let mut tests = cargo(&["test", "--quiet", "--workspace", "--all-features", "--test", "faults", "--"]);
    // Kills need a quiet machine: one test after the other. Skipped parts say so.
    tests.args(["--test-threads=1", "--nocapture"]);
    tests.env("ROVELOG_FAULTS", &folder).env("ROVELOG_KILLS", kills);
    run_or(&mut tests, "a run did not end as it has to")?;
    let mut skipped = Vec::new();
    let mut table = |names: &[&'static str], head: &str| {
        let mut table = format!("{head}\n");
        for &name in names {
            // A part for which a program or a permission is missing says that it is skipped.
            match fs::read_to_string(folder.join(name)) {
                Ok(rows) => table += &rows,
                Err(_) => skipped.push(name),
            }
        }
        table
    };
    let failures = table(
        &["1-limit", "2-calls", "2-rename", "3-disk", "4-lake"],
        "| failure | runs | error, nothing written | tried again, complete | broken |\n|---|---|---|---|---|",
    );
    ensure!(failures.lines().count() > 2, "everything was skipped");
    println!("{failures}");
    let killed = table(
        &["5-kills"],
        "| commands | kills | ended before | nothing left | `.partial` only | some files of a folder | all \
         files | broken |\n|---|---|---|---|---|---|---|---|",
    );
    println!("{killed}");
    if !skipped.is_empty() {
        println!("SKIPPED: {}", skipped.join(", "));
    }
    // Times differ, and so do the counts; the figures are those of the run that was recorded.
    if blessing() {
        ensure!(skipped.is_empty(), "parts were skipped; the tables need all of them");
        let path = root().join("docs/internals/reliability.md");
        let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let new = damage::replaced(&text, "faults", &format!("{failures}\n{killed}"))
            .context("the document has no place for the tables")?;
        fs::write(&path, new).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}
