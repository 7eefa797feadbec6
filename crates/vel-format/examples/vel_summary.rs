//! Prints the summary of a VEL log: `cargo run -p vel-format --example vel_summary -- drive.vel`
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use vel_format::velodyne::PointOptions;
use vel_format::{LogReader, VelReader};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("name a log")?;
    let log = VelReader::open(path)?;
    println!("{} records, {}", log.info().records, log.info().state.name());
    for topic in log.topics() {
        println!("{:<30} {:>8} {:.1} Hz", topic.name, topic.count, topic.rate_hz().unwrap_or_default());
    }
    for problem in log.diagnostics().list() {
        println!("{} bytes {:?}: {}", problem.rule.code, problem.range, problem.message);
    }
    // Unlike other formats, VEL has settings that are inferred from the file. VEL logs can also
    // contain revolutions of a Velodyne sensor.
    for choice in log.choices() {
        println!("{}: {} ({})", choice.what, choice.choice, choice.evidence);
    }
    if let Ok(mut revolutions) = log.revolutions(None, None, PointOptions::default(), 0) {
        while let Some(revolution) = revolutions.next() {
            println!("revolution {}: {} points", revolution.number, revolution.points.len());
        }
    }
    Ok(())
}
