//! Looks into a bag: `cargo run -p rosbag12 --example look_bag -- FILE.bag`.
#![expect(clippy::print_stdout, reason = "it is an example")]

use rosbag12::{BagOptions, BagReader};
use rovelog_core::LogReader;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: look FILE.bag")?;
    let bag = BagReader::new(std::fs::read(path)?.into(), &BagOptions::default())?;
    println!("{} messages, {:?}", bag.info().records, bag.info().state);
    for (topic, connection) in bag.topics().iter().zip(bag.connections()) {
        let source = connection.definition().map_or("nothing", |definition| definition.source.name());
        println!("{:<30} {:<30} {:>8}  decoded by: {source}", topic.name, topic.type_name, topic.count);
    }
    for problem in bag.diagnostics().list() {
        println!("{} {:?} {}", problem.rule.code, problem.range, problem.message);
    }
    if let Some(record) = bag.records_in_file_order().next() {
        println!("first: {}", record.value()?.to_json());
    }
    Ok(())
}
