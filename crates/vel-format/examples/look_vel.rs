//! What is in a VEL log: `cargo run -p vel-format --example look_vel -- drive.vel`.
#![allow(clippy::print_stdout, reason = "an example")]

use rovelog_core::{LogReader, ReadOptions};
use vel_format::VelReader;
use vel_format::velodyne::PointOptions;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("name a log")?;
    let log = VelReader::new(std::fs::read(path)?.into(), &ReadOptions::default())?;
    for choice in log.choices() {
        println!("{:20} {} ({})", choice.what, choice.choice, choice.evidence);
    }
    for topic in log.topics() {
        println!("{:30} {}", topic.name, topic.count);
    }
    if let Ok(mut revolutions) = log.revolutions(None, None, PointOptions::default(), 0) {
        while let Some(revolution) = revolutions.next() {
            println!("revolution {}: {} points", revolution.number, revolution.points.len());
        }
    }
    Ok(())
}
