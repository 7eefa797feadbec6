//! Prints the summary of a bag: `cargo run -p rosbag12 --example bag_summary -- drive.bag`
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use rosbag12::{BagReader, LogReader};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("name a log")?;
    let bag = BagReader::open(path)?;
    println!("{} records, {}", bag.info().records, bag.info().state.name());
    for topic in bag.topics() {
        println!("{:<30} {:>8} {:.1} Hz", topic.name, topic.count, topic.rate_hz().unwrap_or_default());
    }
    for problem in bag.diagnostics().list() {
        println!("{} bytes {:?}: {}", problem.rule.code, problem.range, problem.message);
    }
    // Only the reader of ROS bags reports the source of each definition.
    for (topic, connection) in bag.topics().iter().zip(bag.connections()) {
        let source = connection.definition().map_or("nothing", |definition| definition.source.name());
        println!("{} is decoded by: {source}", topic.type_name);
    }
    Ok(())
}
