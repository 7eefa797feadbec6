//! Prints the records of one topic of a bag as JSON: `cargo run -p rosbag12 --example bag_records -- drive.bag /imu/data`
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use rosbag12::{BagReader, LogReader, Select};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [path, topic] = two_arguments()?;
    let log = BagReader::open(path)?;
    for record in log.records(&Select::topic(topic)) {
        println!("{}", record?.value()?.to_json());
    }
    Ok(())
}

fn two_arguments() -> Result<[String; 2], &'static str> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    arguments.try_into().map_err(|_| "name a log and a topic")
}
