//! Copies the intact records of a power log: `cargo run -p rld-format --example rld_recover -- damaged.rld intact.rld`
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use std::fs::File;

use rld_format::{LogReader, RecoverOptions, RldReader};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, out] = arguments.try_into().map_err(|_| "name a log and an output file")?;
    let log = RldReader::open(path)?;
    let recovery = log.recover(&mut File::create(out)?, &RecoverOptions::default())?;
    println!("{} records kept, {} bytes lost", recovery.records, recovery.lost_bytes());
    Ok(())
}
