//! Prints what a log holds: `cargo run --example look_ulog -- flight.ulg`

#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use rovelog_core::{Format, LogReader, ReadOptions};
use ulog_format::Ulog;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: look LOG")?;
    let log = Ulog::open(std::fs::read(&path)?.into(), &ReadOptions::default())?;
    let info = log.info();
    println!("{path}: {} records, {}", info.records, info.state.name());
    for detail in &info.details {
        if let Some(text) = &detail.text {
            println!("{}: {text}", detail.key);
        }
    }
    for topic in log.topics() {
        println!("{} {} {:.1} Hz", topic.name, topic.count, topic.rate_hz().unwrap_or_default());
    }
    for problem in log.diagnostics().list() {
        println!("{} bytes {:?}: {}", problem.rule.code, problem.range, problem.message);
    }
    Ok(())
}
