//! Prints the console messages of a power log: `cargo run -p rld-format --example rld_messages -- power.rld`
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use rld_format::{LogReader, RldReader};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("name a log")?;
    let log = RldReader::open(path)?;
    for message in log.texts().into_iter().flatten() {
        println!("{}: {}", message.level_name(), message.text);
    }
    Ok(())
}
