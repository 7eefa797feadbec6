//! Copies the intact records of a flight log: `cargo run -p ulog-format --example ulog_recover -- damaged.ulg intact.ulg`
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use std::fs::File;

use ulog_format::{LogReader, RecoverOptions, UlogReader};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, out] = arguments.try_into().map_err(|_| "name a log and an output file")?;
    let log = UlogReader::open(path)?;
    let recovery = log.recover(&mut File::create(out)?, &RecoverOptions::default())?;
    println!("{} records kept, {} bytes lost", recovery.records, recovery.lost_bytes());
    Ok(())
}
