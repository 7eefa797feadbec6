//! Prints one topic of a flight log as columns: `cargo run -p ulog-format --features arrow --example ulog_columns -- flight.ulg vehicle_attitude`
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use ulog_format::{LogReader, Select, UlogReader};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [path, topic] = two_arguments()?;
    let log = UlogReader::open(path)?;
    let topic = log.topic(&topic).ok_or("the log has no such topic")?;
    for batch in topic.columns(&Select::all())? {
        let batch = batch?;
        for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
            println!("{} {}: {} values", field.name(), field.data_type(), column.len());
        }
    }
    Ok(())
}

fn two_arguments() -> Result<[String; 2], &'static str> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    arguments.try_into().map_err(|_| "name a log and a topic")
}
