//! Prints what a log holds: `cargo run --example look -- flight.ulg`
use rovelog_core::{Format, LogReader, ReadOptions};
use ulog_format::Ulog;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for path in std::env::args().skip(1) {
        let start = std::time::Instant::now();
        let log = match Ulog::open(std::fs::read(&path)?.into(), &ReadOptions::default()) {
            Ok(l) => l,
            Err(e) => {
                println!("{path}: ERR {e}");
                continue;
            }
        };
        let took = start.elapsed();
        let info = log.info();
        println!(
            "{path}: {} records {:?} {:?}..{:?} {:?} lost {} {took:?}",
            info.records, info.state, info.start, info.end, info.utc, info.lost.bytes
        );
        for d in log.diagnostics().list().iter().take(8) {
            println!("  {} {} {:?} {}", d.rule.code, d.rule.name, d.range, d.message);
        }
        for d in &info.details {
            if let Some(t) = &d.text {
                println!("  {}: {t}", d.key)
            }
        }
    }
    Ok(())
}
