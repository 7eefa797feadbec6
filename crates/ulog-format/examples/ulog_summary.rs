//! Prints the summary of a flight log: `cargo run -p ulog-format --example ulog_summary -- flight.ulg`
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use ulog_format::{LogReader, UlogReader};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("name a log")?;
    let log = UlogReader::open(path)?;
    println!("{} records, {}", log.info().records, log.info().state.name());
    for topic in log.topics() {
        println!("{:<30} {:>8} {:.1} Hz", topic.name, topic.count, topic.rate_hz().unwrap_or_default());
    }
    for problem in log.diagnostics().list() {
        println!("{} bytes {:?}: {}", problem.rule.code, problem.range, problem.message);
    }
    // Parameters exist only in ULog, so the common `LogReader` trait has no method for them.
    for (name, value) in log.parameters().initial {
        println!("{name} = {}", value.to_json());
    }
    Ok(())
}
