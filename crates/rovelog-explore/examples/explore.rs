//! Answers requests for a log, as the page of `rovelog view` sends them.
//!
//! `cargo run --example explore flight.ulg track 'signals?topic=&field=battery_status.voltage_v'`

use std::error::Error;
use std::io::Write as _;

use rovelog_explore::Explore;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("usage: explore LOG REQUEST...")?;
    let log = Explore::new(rovelog::open(&path)?, &*path, &*path);
    let mut out = std::io::stdout();
    for request in args {
        let answer = log.answer(&request)?;
        out.write_all(&answer.bytes)?;
        writeln!(out)?;
    }
    Ok(())
}
