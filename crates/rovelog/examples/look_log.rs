//! Prints a summary of a log of any format. Run it with `cargo run -p rovelog --example look_log --
//! LOG`.
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use rovelog::Select;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("name a log")?;
    let log = rovelog::open(path)?;
    println!("{}: {} records, {}", log.format().name, log.info().records, log.info().state.name());
    for topic in log.topics() {
        println!("{:<30} {:>8} {:.1} Hz", topic.name, topic.count, topic.rate_hz().unwrap_or_default());
    }
    for problem in log.diagnostics().list() {
        println!("{} bytes {:?}: {}", problem.rule.code, problem.range, problem.message);
    }
    if let Some(first) = log.records(&Select::all()).next() {
        println!("first: {}", first?.value()?.to_json());
    }
    // A `match` or `if let` gives access to functions of a single format.
    #[cfg(feature = "ulog")]
    if let rovelog::AnyLog::Ulog(log) = &log {
        println!("{} parameters", log.parameters().initial.len());
    }
    Ok(())
}
