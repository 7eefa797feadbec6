//! `cargo xtask damage ulog`: what readers still find in damaged logs, and whether `docs/reliability.md` says so.

use std::ffi::OsStr;
use std::process::Stdio;
use std::{env, fs};

use anyhow::{Context, Result, bail, ensure};

use crate::{oracle, root};

/// Where the table stands in the document.
const BEGIN: &str = "<!-- written by `BLESS=1 cargo xtask damage ulog` -->\n";
const END: &str = "<!-- end -->\n";

/// The subcommand.
pub(crate) fn command(args: &[String]) -> Result<()> {
    ensure!(args == ["ulog"], "damage needs the name of a format: ulog");
    let Some(real) = oracle::real() else { bail!("the plan of damage is among the real logs") };
    let mut script = oracle::ulog::script("ulog_damage.py")?;
    let output = script
        .arg(oracle::binary()?)
        .arg(real)
        .stderr(Stdio::inherit())
        .output()
        .context("starting the script")?;
    let table = String::from_utf8(output.stdout).context("the table is not text")?;
    print!("{table}");
    ensure!(output.status.success(), "a peer finds more, or the plan could not be replayed");
    let path = root().join("docs/reliability.md");
    let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let Some(new) = replaced(&text, &table) else { bail!("{} has no place for the table", path.display()) };
    if new == text {
        println!("docs/reliability.md says the same");
    } else if env::var_os("BLESS").is_some_and(|value| value == OsStr::new("1")) {
        fs::write(&path, new).with_context(|| format!("writing {}", path.display()))?;
        println!("docs/reliability.md is rewritten");
    } else {
        bail!("docs/reliability.md has another table; BLESS=1 rewrites it");
    }
    Ok(())
}

/// The document with this table.
fn replaced(text: &str, table: &str) -> Option<String> {
    let (head, rest) = text.split_once(BEGIN)?;
    let (_, tail) = rest.split_once(END)?;
    Some(format!("{head}{BEGIN}\n{table}\n{END}{tail}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_table_is_replaced() {
        let text = format!("head\n{BEGIN}\nold\n\n{END}tail\n");
        let new = replaced(&text, "new\n").expect("a place");
        assert_eq!(new, format!("head\n{BEGIN}\nnew\n\n{END}tail\n"));
        assert_eq!(replaced(&new, "new\n").as_deref(), Some(new.as_str()));
        assert_eq!(replaced("no place", "new\n"), None);
    }
}
