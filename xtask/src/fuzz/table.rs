//! The table of `docs/internals/reliability.md`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use anyhow::{Context as _, Result};

use super::Row;
use crate::process::blessing;
use crate::{damage, root};

const HEAD: &str = "| target | executions | minutes | edges | features | seeds | bytes of seeds |\n\
                    |---|---|---|---|---|---|---|\n";

/// Returns the figures that libFuzzer printed.
pub(super) fn row(printed: &str) -> Option<Row> {
    let executions = printed
        .lines()
        .filter_map(|line| line.strip_prefix("stat::number_of_executed_units:"))
        .find_map(|number| number.trim().parse().ok());
    // `#12345 REDUCE cov: 812 ft: 3201 corp: 355/41Kb ...`
    let mut words = printed.lines().rev().find(|line| line.contains(" cov: "))?.split_whitespace();
    let started = words.next()?.strip_prefix('#')?.parse().ok();
    let mut figures = BTreeMap::new();
    while let Some(word) = words.next() {
        if let Some(name) = word.strip_suffix(':') {
            figures.insert(name, words.next()?);
        }
    }
    Some(Row {
        seconds: 0,
        // The statistics are missing after some failures.
        executions: executions.or(started)?,
        edges: figures.get("cov")?.parse().ok()?,
        features: figures.get("ft")?.parse().ok()?,
        seeds: (0, 0),
        failed: None,
    })
}

/// Returns a line of the table.
pub(super) fn line(name: &str, row: &Row) -> String {
    let minutes = row.seconds as f64 / 60.0;
    let Row { executions, edges, features, seeds: (seeds, bytes), .. } = row;
    format!("| `{name}` | {executions} | {minutes:.1} | {edges} | {features} | {seeds} | {bytes} |")
}

/// Adds the figures of a run to the table, on request: executions and minutes add up over the runs.
pub(super) fn record(rows: &[(String, Row)]) -> Result<()> {
    if !blessing() {
        println!("BLESS=1 adds these figures to docs/internals/reliability.md");
        return Ok(());
    }
    let path = root().join("docs/internals/reliability.md");
    let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let new = damage::replaced(&text, "fuzz", &added(&text, rows))
        .context("docs/internals/reliability.md has no place for the table")?;
    fs::write(&path, new).with_context(|| format!("writing {}", path.display()))
}

/// Returns the table of the document with these figures added.
fn added(text: &str, rows: &[(String, Row)]) -> String {
    let mut lines: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let old = text.split_once("`BLESS=1 cargo xtask fuzz`").map_or("", |(_, rest)| rest);
    let old = old.split_once("<!-- end -->").map_or("", |(table, _)| table);
    for line in old.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<_> = line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
        lines.insert(cells[0].trim_matches('`').to_owned(), cells);
    }
    for (name, row) in rows {
        let cell = |at: usize| lines.get(name).and_then(|cells| cells.get(at));
        let executions: u64 = cell(1).and_then(|cell| cell.parse().ok()).unwrap_or(0);
        let minutes: f64 = cell(2).and_then(|cell| cell.parse().ok()).unwrap_or(0.0);
        let cells = vec![
            format!("`{name}`"),
            (executions + row.executions).to_string(),
            format!("{:.1}", minutes + row.seconds as f64 / 60.0),
            row.edges.to_string(),
            row.features.to_string(),
            row.seeds.0.to_string(),
            row.seeds.1.to_string(),
        ];
        lines.insert(name.clone(), cells);
    }
    let mut table = HEAD.to_owned();
    for cells in lines.values() {
        let _ = writeln!(table, "| {} |", cells.join(" | "));
    }
    let sum = |at: usize| lines.values().filter_map(|cells| cells.get(at)?.parse::<f64>().ok()).sum::<f64>();
    let _ = writeln!(
        table,
        "| all {} | {:.0} | {:.1} | | | {:.0} | {:.0} |",
        lines.len(),
        sum(1),
        sum(2),
        sum(5),
        sum(6)
    );
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "\
INFO: seed corpus: files: 3 min: 1b max: 20b total: 31b rss: 40Mb
#4\tINITED cov: 10 ft: 12 corp: 2/21b exec/s: 0 rss: 41Mb
#900\tREDUCE cov: 14 ft: 19 corp: 5/60b lim: 43 exec/s: 450 rss: 44Mb L: 20/20 MS: 1 EraseBytes-
#1024\tDONE   cov: 14 ft: 20 corp: 5/60b lim: 43 exec/s: 512 rss: 44Mb
Done 1024 runs in 2 second(s)
stat::number_of_executed_units: 1024
";

    #[test]
    fn figures_add_up_over_runs() {
        let mut row = row(PRINTED).expect("figures");
        (row.seconds, row.seeds) = (360, (5, 60));
        assert_eq!((row.executions, row.edges, row.features), (1024, 14, 20));
        let text = "<!-- written by `BLESS=1 cargo xtask fuzz` -->\n\n| `toy` | 1000 | 1.00 | 9 | 9 | 1 | 2 |\n\
                    | `toy2` | 5 | 0.50 | 9 | 9 | 1 | 2 |\n\n<!-- end -->\n";
        let table = added(text, &[("toy".to_owned(), row)]);
        let lines: Vec<_> = table.lines().skip(2).collect();
        assert_eq!(
            lines,
            [
                "| `toy` | 2024 | 7.0 | 14 | 20 | 5 | 60 |",
                "| `toy2` | 5 | 0.50 | 9 | 9 | 1 | 2 |",
                "| all 2 | 2029 | 7.5 | | | 6 | 62 |",
            ]
        );
    }

    #[test]
    fn a_failure_without_statistics_still_has_figures() {
        let printed = PRINTED.split_once("#1024").expect("a last line").0;
        assert_eq!(row(printed).expect("figures").executions, 900);
    }
}
