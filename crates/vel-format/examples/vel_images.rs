//! Prints the sizes of the images of a VEL log: `cargo run -p vel-format --example vel_images -- drive.vel`
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use vel_format::{Kind, Payload, VelReader};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("name a log")?;
    let log = VelReader::open(path)?;
    for (message, payload) in log.payloads(Kind::Image) {
        if let Payload::Image(image) = payload {
            println!(
                "{} ns: {} x {}, {} bytes",
                message.nanos,
                image.width.get(),
                image.height.get(),
                image.data.len()
            );
        }
    }
    Ok(())
}
