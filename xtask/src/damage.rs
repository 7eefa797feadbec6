//! `cargo xtask damage`: results of reading damaged logs, compared with
//! `docs/internals/reliability.md`.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::process::{blessing, cargo};
use crate::{corpus, place, python, root};

/// End of a table in the document.
const END: &str = "<!-- end -->\n";

/// Number of runs for each log and kind of damage.
const SEEDS: &str = "5";

/// Runs the subcommand.
pub(crate) fn command(args: &[String]) -> Result<()> {
    match args {
        [what] if what == "ulog" => {
            told("damage ulog", next_to_others()?, "a peer finds more, or the plan could not be replayed")
        }
        [what] if what == "all" => {
            told("damage all", campaign(SEEDS, None), "something that must hold does not")
        }
        [what] if what == "pages" => {
            told("damage pages", over_logs(&["--pages", SEEDS]), "a log cannot be read")
        }
        _ => bail!(
            "usage: damage ulog (compared with other readers), damage all (the campaign over all logs) or \
             damage pages (records that survive damage of pages, sectors and single bytes)"
        ),
    }
}

/// Returns the command that damages one real log and runs other readers on it.
fn next_to_others() -> Result<Command> {
    let Some(real) = place::real() else { bail!("the plan of damage is among the real logs") };
    let mut script = python::pyulog_script("ulog_damage.py")?;
    script.arg(place::binary()?).arg(real);
    Ok(script)
}

/// Returns the command that damages all logs of the corpus, and the real ones if present, in all
/// ways; recovered logs go to the folder `keep`.
pub(crate) fn campaign(seeds: &str, keep: Option<&Path>) -> Command {
    match keep {
        None => over_logs(&[seeds]),
        Some(folder) => over_logs(&[seeds, "--keep", &folder.to_string_lossy()]),
    }
}

/// Returns the command that damages pages, sectors and single bytes once in each way; damaged logs go
/// to the folder `keep`.
pub(crate) fn pages(keep: &Path) -> Command {
    over_logs(&["--pages", "1", "--keep", &keep.to_string_lossy()])
}

/// Returns the command that runs the campaign with these options over the corpus, and the real logs
/// if present.
fn over_logs(options: &[&str]) -> Command {
    let mut cargo = cargo(&["run", "--release", "--quiet", "-p", "fuzz-bodies", "--bin", "campaign", "--"]);
    cargo.args(options);
    // In the order of the published tables: the place of a log in it chooses its damage.
    let mut formats: Vec<_> = corpus::formats().collect();
    formats.sort_unstable();
    for format in formats {
        cargo.arg(root().join("corpus").join(format));
    }
    if let Some(real) = place::real() {
        for folder in ["rld", "rosbag12", "rosbag20", "ulog", "vel"] {
            cargo.arg(real.join(folder));
        }
    }
    cargo
}

/// Runs a command that prints a table, and compares the table with the document.
fn told(task: &str, mut made: Command, failed: &str) -> Result<()> {
    let output = made.stderr(Stdio::inherit()).output().context("starting what makes the table")?;
    let table = String::from_utf8(output.stdout).context("the table is not text")?;
    ensure!(output.status.success(), "{table}{failed}");
    say(task, &table)
}

/// Prints the table of a task, and compares it with the document.
pub(crate) fn say(task: &str, table: &str) -> Result<()> {
    print!("{table}");
    let path = root().join("docs/internals/reliability.md");
    let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let Some(new) = replaced(&text, task, table) else {
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

/// Returns the document with this table of a task.
pub(crate) fn replaced(text: &str, task: &str, table: &str) -> Option<String> {
    let start = format!("<!-- written by `BLESS=1 cargo xtask {task}` -->\n");
    let (head, rest) = text.split_once(&start)?;
    let (_, tail) = rest.split_once(END)?;
    Some(format!("{head}{start}\n{}\n\n{END}{tail}", table.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_table_is_replaced() {
        let text =
            "head\n<!-- written by `BLESS=1 cargo xtask damage toy` -->\n\nold\n\n<!-- end -->\ntail\n";
        let new = replaced(text, "damage toy", "new\n").expect("a place");
        assert_eq!(new, text.replace("old", "new"));
        assert_eq!(replaced(&new, "damage toy", "new\n").as_deref(), Some(new.as_str()));
        assert_eq!(replaced(text, "damage other", "new\n"), None);
    }
}
