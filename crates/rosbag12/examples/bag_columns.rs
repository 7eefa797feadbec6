//! Prints one topic of a bag as columns: `cargo run -p rosbag12 --features arrow --example bag_columns -- drive.bag /imu/data`
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use rosbag12::{BagReader, LogReader, Select};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [path, topic] = two_arguments()?;
    let log = BagReader::open(path)?;
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
