//! Copies the intact records of a bag: `cargo run -p rosbag12 --example bag_recover -- damaged.bag intact.bag`
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use std::fs::File;

use rosbag12::{BagReader, LogReader, RecoverOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, out] = arguments.try_into().map_err(|_| "name a log and an output file")?;
    let log = BagReader::open(path)?;
    let recovery = log.recover(&mut File::create(out)?, &RecoverOptions::default())?;
    println!("{} records kept, {} bytes lost", recovery.records, recovery.lost_bytes());
    Ok(())
}
