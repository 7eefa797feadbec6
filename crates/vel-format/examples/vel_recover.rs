//! Copies the intact records of a VEL log: `cargo run -p vel-format --example vel_recover -- damaged.vel intact.vel`
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use std::fs::File;

use vel_format::{LogReader, RecoverOptions, VelReader};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, out] = arguments.try_into().map_err(|_| "name a log and an output file")?;
    let log = VelReader::open(path)?;
    let recovery = log.recover(&mut File::create(out)?, &RecoverOptions::default())?;
    println!("{} records kept, {} bytes lost", recovery.records, recovery.lost_bytes());
    Ok(())
}
