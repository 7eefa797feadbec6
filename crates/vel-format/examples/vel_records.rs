//! Prints the records of one topic of a VEL log as JSON: `cargo run -p vel-format --example vel_records -- drive.vel GPSDataM`
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use vel_format::{LogReader, Select, VelReader};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [path, topic] = two_arguments()?;
    let log = VelReader::open(path)?;
    for record in log.records(&Select::topic(topic)) {
        println!("{}", record?.value()?.to_json());
    }
    Ok(())
}

fn two_arguments() -> Result<[String; 2], &'static str> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    arguments.try_into().map_err(|_| "name a log and a topic")
}
