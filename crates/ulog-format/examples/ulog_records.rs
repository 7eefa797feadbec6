//! Prints the records of one topic of a flight log as JSON: `cargo run -p ulog-format --example ulog_records -- flight.ulg vehicle_attitude`
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use ulog_format::{LogReader, Select, UlogReader};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [path, topic] = two_arguments()?;
    let log = UlogReader::open(path)?;
    for record in log.records(&Select::topic(topic)) {
        println!("{}", record?.value()?.to_json());
    }
    Ok(())
}

fn two_arguments() -> Result<[String; 2], &'static str> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    arguments.try_into().map_err(|_| "name a log and a topic")
}
