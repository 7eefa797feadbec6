//! Prints the console messages of a bag: `cargo run -p rosbag12 --example bag_messages -- drive.bag`
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use rosbag12::{BagReader, LogReader};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("name a log")?;
    let log = BagReader::open(path)?;
    for message in log.texts().into_iter().flatten() {
        println!("{}: {}", message.level_name(), message.text);
    }
    Ok(())
}
