//! Statistics of fuzzing, and their table in `docs/internals/reliability/fuzzing.md`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::Result;

use crate::process::blessing;
use crate::reliability::Page;

const HEAD: &str = "| target | executions | minutes | edges | features | seeds | bytes of seeds |\n\
                    |---|---|---|---|---|---|---|\n";

/// Statistics of one fuzz target.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Figures {
    pub(super) seconds: u64,
    pub(super) executions: u64,
    /// Number of control-flow edges that the inputs reach.
    pub(super) edges: u64,
    /// Number of features that the inputs reach. libFuzzer counts edges, how often each edge is
    /// taken, and values that are compared.
    pub(super) features: u64,
    pub(super) seeds: usize,
    pub(super) seed_bytes: u64,
}

impl Figures {
    /// Parses the statistics that libFuzzer printed.
    pub(super) fn parse(printed: &str) -> Option<Self> {
        let executions = printed
            .lines()
            .filter_map(|line| line.strip_prefix("stat::number_of_executed_units:"))
            .find_map(|number| number.trim().parse().ok());
        // libFuzzer prints lines such as `#12345 REDUCE cov: 812 ft: 3201 corp: 355/41Kb ...`.
        let mut words = printed.lines().rev().find(|line| line.contains(" cov: "))?.split_whitespace();
        let started = words.next()?.strip_prefix('#')?.parse().ok();
        let mut named = BTreeMap::new();
        while let Some(word) = words.next() {
            if let Some(name) = word.strip_suffix(':') {
                named.insert(name, words.next()?);
            }
        }
        Some(Self {
            // After some failures, libFuzzer prints no final statistics. Then the number of the
            // last status line is used.
            executions: executions.or(started)?,
            edges: named.get("cov")?.parse().ok()?,
            features: named.get("ft")?.parse().ok()?,
            ..Self::default()
        })
    }

    /// Returns the table row with the statistics of a fuzz target.
    pub(super) fn row(&self, name: &str) -> String {
        let minutes = self.seconds as f64 / 60.0;
        let Self { executions, edges, features, seeds, seed_bytes, .. } = self;
        format!("| `{name}` | {executions} | {minutes:.1} | {edges} | {features} | {seeds} | {seed_bytes} |")
    }

    /// Parses a row of the table with the statistics of fuzz targets.
    fn from_row(row: &str) -> Option<(String, Self)> {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [name, executions, minutes, edges, features, seeds, seed_bytes] = cells[..] else { return None };
        let name = name.strip_prefix('`')?.strip_suffix('`')?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "minutes of a run")]
        let seconds = (minutes.parse::<f64>().ok()? * 60.0).round() as u64;
        let figures = Self {
            seconds,
            executions: executions.parse().ok()?,
            edges: edges.parse().ok()?,
            features: features.parse().ok()?,
            seeds: seeds.parse().ok()?,
            seed_bytes: seed_bytes.parse().ok()?,
        };
        Some((name.to_owned(), figures))
    }
}

/// Adds the statistics of new runs to the table in the document. Executions and minutes are sums
/// over all runs.
pub(super) fn record(runs: &[(String, Figures)]) -> Result<()> {
    if !blessing() {
        println!("BLESS=1 adds these figures to docs/internals/reliability/fuzzing.md");
        return Ok(());
    }
    Page::FUZZING.record(&added(&Page::FUZZING.table()?, runs))
}

/// Returns the table after adding the statistics of new runs.
fn added(table: &str, runs: &[(String, Figures)]) -> String {
    let mut targets: BTreeMap<String, Figures> = table.lines().filter_map(Figures::from_row).collect();
    for (name, run) in runs {
        let before = targets.get(name).cloned().unwrap_or_default();
        let sum = Figures {
            seconds: before.seconds + run.seconds,
            executions: before.executions + run.executions,
            ..run.clone()
        };
        targets.insert(name.clone(), sum);
    }
    let mut table = HEAD.to_owned();
    for (name, figures) in &targets {
        let _ = writeln!(table, "{}", figures.row(name));
    }
    let sum = |figure: fn(&Figures) -> u64| targets.values().map(figure).sum::<u64>();
    let _ = writeln!(
        table,
        "| all {} | {} | {:.1} | | | {} | {} |",
        targets.len(),
        sum(|figures| figures.executions),
        sum(|figures| figures.seconds) as f64 / 60.0,
        sum(|figures| figures.seeds as u64),
        sum(|figures| figures.seed_bytes)
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
    fn executions_and_minutes_add_up_over_runs() {
        let mut run = Figures::parse(PRINTED).expect("libFuzzer's figures");
        (run.seconds, run.seeds, run.seed_bytes) = (360, 5, 60);
        assert_eq!((run.executions, run.edges, run.features), (1024, 14, 20));
        let old = "| `toy` | 1000 | 1.0 | 9 | 9 | 1 | 2 |\n| `toy2` | 5 | 0.5 | 9 | 9 | 1 | 2 |\n| all 2 | 1005 | 1.5 | | | 2 | 4 |\n";
        let table = added(old, &[("toy".to_owned(), run)]);
        assert_eq!(
            table.lines().skip(2).collect::<Vec<_>>(),
            [
                "| `toy` | 2024 | 7.0 | 14 | 20 | 5 | 60 |",
                "| `toy2` | 5 | 0.5 | 9 | 9 | 1 | 2 |",
                "| all 2 | 2029 | 7.5 | | | 6 | 62 |",
            ]
        );
    }

    #[test]
    fn executions_come_from_the_last_line_if_there_are_no_statistics() {
        let printed = PRINTED.split_once("#1024").expect("a last line").0;
        assert_eq!(Figures::parse(printed).expect("libFuzzer's figures").executions, 900);
    }
}
