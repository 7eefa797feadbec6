//! Prints the summary of a power log: `cargo run -p rld-format --example rld_summary -- power.rld`
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use rld_format::analysis::StatsOptions;
use rld_format::{LogReader, RldReader};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("name a log")?;
    let log = RldReader::open(path)?;
    println!("{} records, {}", log.info().records, log.info().state.name());
    for topic in log.topics() {
        println!("{:<30} {:>8} {:.1} Hz", topic.name, topic.count, topic.rate_hz().unwrap_or_default());
    }
    for problem in log.diagnostics().list() {
        println!("{} bytes {:?}: {}", problem.rule.code, problem.range, problem.message);
    }
    // RLD logs contain currents. The mean and the charge of each current are computed from exact
    // sums over all rows.
    let mut sums = log.accumulator(&StatsOptions::default())?;
    let stats = sums.stats(0..log.rows());
    let rate = log.header().lead_in.sample_rate.get();
    for (current, sums) in sums.currents().iter().zip(&stats.currents) {
        if let Some(scale) = rld_format::unit::Scale::new(current.scale) {
            let mean = sums.mean(scale).unwrap_or_default();
            println!("{}: mean {mean:.6e} A, charge {:.6e} C", current.name, sums.integral(scale, rate));
        }
    }
    Ok(())
}
