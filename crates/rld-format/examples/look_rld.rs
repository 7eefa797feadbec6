//! Prints what a log holds, and what its load took: `cargo run --example look_rld -- power.rld`

#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use rld_format::Rld;
use rld_format::analysis::StatsOptions;
use rovelog_core::{Format, LogReader, ReadOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: look LOG")?;
    let log = Rld::open(std::fs::read(&path)?.into(), &ReadOptions::default())?;
    let info = log.info();
    println!("{path}: {} rows, {}", info.records, info.state.name());
    for detail in &info.details {
        if let Some(text) = &detail.text {
            println!("{}: {text}", detail.key);
        }
    }
    let mut sums = log.accumulator(&StatsOptions::default())?;
    let stats = sums.stats(0..log.rows());
    let rate = log.header().lead_in.sample_rate.get();
    for (current, sums) in sums.currents().iter().zip(&stats.currents) {
        if let Some(scale) = rld_format::unit::Scale::new(current.scale) {
            let mean = sums.mean(scale).unwrap_or_default();
            println!("{}: mean {mean:.6e} A, charge {:.6e} C", current.name, sums.integral(scale, rate));
        }
    }
    for problem in log.diagnostics().list() {
        println!("{} bytes {:?}: {}", problem.rule.code, problem.range, problem.message);
    }
    Ok(())
}
