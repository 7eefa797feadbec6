//! `cargo xtask damage`: what becomes of damaged logs, and whether `docs/internals/reliability.md` says so.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::process::{blessing, cargo};
use crate::{oracle, root};

/// Where a table ends in the document.
const END: &str = "<!-- end -->\n";

/// Each log is damaged so often in each way.
const SEEDS: &str = "5";

/// The subcommand.
pub(crate) fn command(args: &[String]) -> Result<()> {
    match args {
        [what] if what == "ulog" => {
            told("ulog", beside_others()?, "a peer finds more, or the plan could not be replayed")
        }
        [what] if what == "all" => told("all", campaign(SEEDS, None), "something that must hold does not"),
        _ => bail!("usage: damage ulog (beside other readers) or damage all (the campaign over all logs)"),
    }
}

/// The plan of damage to one real log, and what other readers find.
fn beside_others() -> Result<Command> {
    let Some(real) = oracle::real() else { bail!("the plan of damage is among the real logs") };
    let mut script = oracle::ulog::script("ulog_damage.py")?;
    script.arg(oracle::binary()?).arg(real);
    Ok(script)
}

/// All damage to all logs of the corpus, and the real ones where they are; with a folder for what is recovered.
pub(crate) fn campaign(seeds: &str, keep: Option<&Path>) -> Command {
    let mut cargo =
        cargo(&["run", "--release", "--quiet", "-p", "fuzz-bodies", "--bin", "campaign", "--", seeds]);
    if let Some(folder) = keep {
        cargo.arg("--keep").arg(folder);
    }
    for format in ["rld", "rosbag", "ulog", "vel"] {
        cargo.arg(root().join("corpus").join(format));
    }
    if let Some(real) = oracle::real() {
        for folder in ["rld", "rosbag12", "ulog", "vel"] {
            cargo.arg(real.join(folder));
        }
    }
    cargo
}

/// Runs what prints a table, and holds the document to it.
fn told(name: &str, mut made: Command, failed: &str) -> Result<()> {
    let output = made.stderr(Stdio::inherit()).output().context("starting what makes the table")?;
    let table = String::from_utf8(output.stdout).context("the table is not text")?;
    print!("{table}");
    ensure!(output.status.success(), "{failed}");
    let path = root().join("docs/internals/reliability.md");
    let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let Some(new) = replaced(&text, name, &table) else {
        bail!("{} has no place for the table", path.display())
    };
    if new == text {
        println!("docs/internals/reliability.md says the same");
    } else if blessing() {
        fs::write(&path, new).with_context(|| format!("writing {}", path.display()))?;
        println!("docs/internals/reliability.md is rewritten");
    } else {
        bail!("docs/internals/reliability.md has another table; BLESS=1 rewrites it");
    }
    Ok(())
}

/// The document with this table.
fn replaced(text: &str, name: &str, table: &str) -> Option<String> {
    let begin = format!("<!-- written by `BLESS=1 cargo xtask damage {name}` -->\n");
    let (head, rest) = text.split_once(&begin)?;
    let (_, tail) = rest.split_once(END)?;
    Some(format!("{head}{begin}\n{}\n\n{END}{tail}", table.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_table_is_replaced() {
        let text =
            "head\n<!-- written by `BLESS=1 cargo xtask damage toy` -->\n\nold\n\n<!-- end -->\ntail\n";
        let new = replaced(text, "toy", "new\n").expect("a place");
        assert_eq!(new, text.replace("old", "new"));
        assert_eq!(replaced(&new, "toy", "new\n").as_deref(), Some(new.as_str()));
        assert_eq!(replaced(text, "other", "new\n"), None);
    }
}
