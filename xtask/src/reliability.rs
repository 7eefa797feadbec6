//! Test campaigns with damaged logs, malicious logs and many logs: `cargo xtask damage`, `faults`,
//! `hostile` and `soak`. The resulting tables are in `docs/internals/reliability/`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};

use crate::process::{blessing, cargo, run, run_or};
use crate::{place, python, root};

/// A page in `docs/internals/reliability/` with a table that a campaign generates.
#[derive(Clone, Copy)]
pub(crate) struct Page {
    file: &'static str,
    task: &'static str,
}

/// Line that marks the end of the table in a page.
const END: &str = "<!-- end -->\n";

impl Page {
    pub(crate) const DAMAGED_ULOG: Self = Self { file: "damaged-ulog.md", task: "damage ulog" };
    pub(crate) const DAMAGED_LOGS: Self = Self { file: "damaged-logs.md", task: "damage all" };
    pub(crate) const DAMAGED_PAGES: Self = Self { file: "damaged-pages.md", task: "damage pages" };
    pub(crate) const OTHER_READERS: Self = Self { file: "other-readers.md", task: "oracle survivors" };
    pub(crate) const RECOVERED_LOGS: Self = Self { file: "recovered-logs.md", task: "oracle recovered" };
    pub(crate) const FAILED_WRITES: Self = Self { file: "failed-writes.md", task: "faults" };
    pub(crate) const HOSTILE_LOGS: Self = Self { file: "hostile-logs.md", task: "hostile" };
    pub(crate) const MANY_LOGS: Self = Self { file: "many-logs.md", task: "soak" };
    pub(crate) const FUZZING: Self = Self { file: "fuzzing.md", task: "fuzz" };
    pub(crate) const COVERAGE: Self = Self { file: "fuzzing.md", task: "coverage" };

    fn path(self) -> PathBuf {
        root().join("docs/internals/reliability").join(self.file)
    }

    fn read(self) -> Result<String> {
        fs::read_to_string(self.path()).with_context(|| format!("reading {}", self.path().display()))
    }

    /// Prints a table that is the same in every run. Returns an error if the table in the page
    /// differs. With `BLESS=1`, the table is written to the page instead.
    pub(crate) fn compare(self, table: &str) -> Result<()> {
        print!("{table}");
        let text = self.read()?;
        if self.replaced(&text, table)? == text {
            println!("{} has the same table", self.file);
            return Ok(());
        }
        ensure!(blessing(), "{} has another table; BLESS=1 rewrites it", self.path().display());
        self.write(table)
    }

    /// Prints a table whose numbers differ between runs. With `BLESS=1`, the table is also written
    /// to the page.
    pub(crate) fn record(self, table: &str) -> Result<()> {
        print!("{table}");
        if blessing() { self.write(table) } else { Ok(()) }
    }

    fn write(self, table: &str) -> Result<()> {
        let text = self.replaced(&self.read()?, table)?;
        fs::write(self.path(), text).with_context(|| format!("writing {}", self.path().display()))?;
        println!("wrote {}", self.path().display());
        Ok(())
    }

    /// Returns the table that the page contains.
    pub(crate) fn table(self) -> Result<String> {
        Ok(self.split(&self.read()?)?.1.to_owned())
    }

    fn replaced(self, text: &str, table: &str) -> Result<String> {
        let (head, _, tail) = self.split(text)?;
        Ok(format!("{head}\n{}\n\n{tail}", table.trim_end()))
    }

    /// Divides the text of a page into the text before the table, the table, and the text after it.
    /// The lines that mark the start and end of the table do not belong to the table.
    fn split(self, text: &str) -> Result<(&str, &str, &str)> {
        let start = format!("<!-- written by `BLESS=1 cargo xtask {}` -->\n", self.task);
        let parts = text.find(&start).and_then(|at| {
            let (head, rest) = text.split_at(at + start.len());
            let (table, tail) = rest.split_at(rest.find(END)?);
            Some((head, table, tail))
        });
        parts.with_context(|| format!("{} has no table of `cargo xtask {}`", self.file, self.task))
    }
}

/// Number of runs for each log and kind of damage.
const SEEDS: &str = "5";

/// Runs the subcommand `damage`.
pub(crate) fn damage(args: &[String]) -> Result<()> {
    let [kind] = args else { bail!("usage: damage ulog | all | pages") };
    let (page, mut campaign, failure) = match kind.as_str() {
        "ulog" => (Page::DAMAGED_ULOG, ulog_damage()?, "another reader finds more than rovelog"),
        "all" => (Page::DAMAGED_LOGS, campaign(&[SEEDS]), "a property does not hold"),
        "pages" => (Page::DAMAGED_PAGES, campaign(&["--pages", SEEDS]), "a log cannot be read"),
        _ => bail!("usage: damage ulog | all | pages"),
    };
    page.compare(&table(&mut campaign, failure)?)
}

/// Returns the command that damages one real ULog file and runs other readers on it.
fn ulog_damage() -> Result<Command> {
    let Some(real) = corpus_generator::real() else {
        bail!("the damage is planned for one of the real logs")
    };
    let mut script = python::pyulog_script("ulog_damage.py")?;
    script.arg(place::binary()?).arg(real);
    Ok(script)
}

/// Returns the command that damages each test log once with each kind of damage, and writes the
/// recovered logs to a folder.
pub(crate) fn recovered_logs(folder: &Path) -> Command {
    campaign(&["1", "--keep", &folder.to_string_lossy()])
}

/// Returns the command that damages pages, sectors and single bytes of each log once with each kind
/// of damage, and writes the damaged logs to a folder.
pub(crate) fn damaged_logs(folder: &Path) -> Command {
    campaign(&["--pages", "1", "--keep", &folder.to_string_lossy()])
}

/// Returns the command for the damage campaign. It uses the test logs, and the real logs if there
/// are any.
fn campaign(options: &[&str]) -> Command {
    let mut cargo = cargo(&["run", "--release", "--quiet", "-p", "fuzz-bodies", "--bin", "campaign", "--"]);
    cargo.args(options);
    // The order of the formats matters, because some kinds of damage mix a log with the next log of
    // its format.
    let mut formats: Vec<_> = corpus_generator::formats().collect();
    formats.sort_unstable();
    for format in formats {
        cargo.arg(root().join("corpus").join(format));
    }
    if let Some(real) = corpus_generator::real() {
        for folder in ["rld", "rosbag12", "rosbag20", "ulog", "vel"] {
            cargo.arg(real.join(folder));
        }
    }
    cargo
}

/// Runs a campaign. Returns the table that it prints.
pub(crate) fn table(command: &mut Command, failure: &str) -> Result<String> {
    let output = command.stderr(Stdio::inherit()).output().context("starting the campaign")?;
    let table = String::from_utf8(output.stdout).context("the table is not text")?;
    ensure!(output.status.success(), "{table}{failure}");
    Ok(table)
}

/// Number of times that each command is killed during the campaign.
const KILLS: &str = "200";

/// Runs the subcommand `faults`.
pub(crate) fn faults(args: &[String]) -> Result<()> {
    let kills = match args {
        [] => KILLS,
        [option, number] if option == "--kills" && number.parse::<u32>().is_ok() => number,
        _ => bail!("usage: faults [--kills N]"),
    };
    let folder = place::target().join("faults");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    let mut tests = cargo(&["test", "--quiet", "--workspace", "--all-features", "--test", "faults", "--"]);
    // If tests ran in parallel, a command would be slower, and most kills would come too early.
    tests.args(["--test-threads=1", "--nocapture"]);
    tests.env("ROVELOG_FAULTS", &folder).env("ROVELOG_KILLS", kills);
    run_or(&mut tests, "a command did not end as it has to")?;
    // If the file for a part of the table is missing, this part was skipped, because a program or a
    // permission is missing.
    let mut skipped = Vec::new();
    let mut rows = |names: &[&'static str]| {
        let mut rows = String::new();
        for &name in names {
            match fs::read_to_string(folder.join(name)) {
                Ok(text) => rows += &text,
                Err(_) => skipped.push(name),
            }
        }
        rows
    };
    let failures = rows(&["1-limit", "2-calls", "2-rename", "3-disk", "4-lake"]);
    let killed = rows(&["5-kills"]);
    ensure!(!failures.is_empty(), "all parts were skipped");
    if !skipped.is_empty() {
        println!("SKIPPED: {}", skipped.join(", "));
        ensure!(!blessing(), "the tables need all parts");
    }
    Page::FAILED_WRITES.record(&format!(
        "| failure | runs | error, nothing written | tried again, complete | broken |\n\
         |---|---|---|---|---|\n{failures}\n\
         | commands | kills | ended before | nothing left | `.partial` only | some files of a folder | all files | \
         broken |\n|---|---|---|---|---|---|---|---|\n{killed}"
    ))
}

/// Runs the subcommand `hostile`.
pub(crate) fn hostile(args: &[String]) -> Result<()> {
    let mut script = Command::new("python3");
    script.arg("-B").arg(root().join("oracle/hostile.py")).arg(place::binary()?);
    let (bytes, only) = match args {
        [] => (20_000_000, None),
        [size, bytes] if size == "--size" => (corpus_generator::size::parse(bytes)?, None),
        [only, text] if only == "--only" => (20_000_000, Some(text)),
        [size, bytes, only, text] if size == "--size" && only == "--only" => {
            (corpus_generator::size::parse(bytes)?, Some(text))
        }
        _ => bail!("usage: hostile [--size 20MB] [--only TEXT]"),
    };
    script.arg(bytes.to_string());
    let failure = "a command exceeds a limit";
    match only {
        Some(text) => run_or(script.args(["--only", text, "--rows"]), failure),
        None => Page::HOSTILE_LOGS.record(&table(&mut script, failure)?),
    }
}

/// Runs the subcommand `soak`.
pub(crate) fn soak(args: &[String]) -> Result<()> {
    let factor = match args {
        [] => "1",
        [factor] if factor.parse::<u32>().is_ok() => factor,
        _ => bail!("usage: soak [FACTOR]"),
    };
    // The unoptimized programs of the tests are used. Optimization would change neither memory use
    // nor the number of open files.
    run(&mut cargo(&["build", "--quiet", "--workspace", "--bin", "rovelog"]))?;
    let program = place::target().join("debug").join(format!("rovelog{}", std::env::consts::EXE_SUFFIX));
    let mut script = Command::new("python3");
    script.arg("-B").arg(root().join("oracle/soak.py")).arg(program).arg(root().join("corpus"));
    script.arg(place::target().join("soak")).arg(factor);
    Page::MANY_LOGS.record(&table(&mut script, "memory or open files grow with the number of logs")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_table_is_replaced() {
        let page = Page { file: "toy.md", task: "damage toy" };
        let text =
            "head\n<!-- written by `BLESS=1 cargo xtask damage toy` -->\n\nold\n\n<!-- end -->\ntail\n";
        let new = page.replaced(text, "new\n").expect("the page has a table");
        assert_eq!(new, text.replace("old", "new"));
        assert_eq!(page.replaced(&new, "new\n").expect("the page has a table"), new);
        let other = Page { task: "damage other", ..page };
        assert!(other.replaced(text, "new\n").is_err());
    }

    #[test]
    fn every_page_has_its_table() {
        for page in [
            Page::DAMAGED_ULOG,
            Page::DAMAGED_LOGS,
            Page::DAMAGED_PAGES,
            Page::OTHER_READERS,
            Page::RECOVERED_LOGS,
            Page::FAILED_WRITES,
            Page::HOSTILE_LOGS,
            Page::MANY_LOGS,
            Page::FUZZING,
        ] {
            page.table().expect("the page has a table");
        }
    }
}
