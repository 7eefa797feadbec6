//! Prints one topic of a power log as columns: `cargo run -p rld-format --features arrow --example rld_columns -- power.rld samples`
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use rld_format::{LogReader, RldReader, Select};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [path, topic] = two_arguments()?;
    let log = RldReader::open(path)?;
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
