//! Prints the console messages of a flight log: `cargo run -p ulog-format --example ulog_messages -- flight.ulg`
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use ulog_format::{LogReader, UlogReader};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("name a log")?;
    let log = UlogReader::open(path)?;
    for message in log.texts().into_iter().flatten() {
        println!("{}: {}", message.level_name(), message.text);
    }
    Ok(())
}
