//! `bench WORK LOG` runs one benchmark (work) on a log. It prints the CPU time, the peak memory and
//! a count, such as the number of messages.

#[cfg(feature = "rld")]
mod rld;
#[cfg(feature = "rosbag")]
mod rosbag;
#[cfg(feature = "ulog")]
mod ulog;
#[cfg(feature = "ulog")]
mod ulog_limit;
#[cfg(feature = "vel")]
mod vel;

use std::any::Any;
use std::fs;

/// Result of a benchmark: a text to print, and data that must stay in memory until the peak memory
/// has been measured.
type Outcome = Result<(String, Box<dyn Any>), Box<dyn std::error::Error>>;

/// Function that runs a benchmark on the log at a path.
type Work = fn(&str) -> Outcome;

/// Benchmarks for all log formats, by name.
const WORKS: &[&[(&str, Work)]] = &[
    #[cfg(feature = "ulog")]
    ulog::WORKS,
    #[cfg(feature = "rld")]
    rld::WORKS,
    #[cfg(feature = "rosbag")]
    rosbag::WORKS,
    #[cfg(feature = "vel")]
    vel::WORKS,
];

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let work = args.get(1).and_then(|name| WORKS.iter().copied().flatten().find(|(known, _)| known == name));
    let (Some((_, work)), Some(log)) = (work, args.get(2)) else {
        let names: Vec<_> = WORKS.iter().copied().flatten().map(|(name, _)| *name).collect();
        eprintln!("usage: bench {{{}}} LOG", names.join("|"));
        std::process::exit(2);
    };
    match work(log) {
        Ok((counted, _kept)) => println!("{:.4} s {:.0} MB {counted}", cpu_seconds(), peak_megabytes()),
        Err(error) => {
            eprintln!("error: {error}");
            std::process::exit(1);
        }
    }
}

/// Opens a log of any format, which includes reading its summary.
fn info(log: &str) -> Outcome {
    let log = rovelog::open(log)?;
    Ok((format!("{} records", log.info().records), Box::new(log)))
}

/// Returns the CPU time of all threads in seconds, both in user mode and in the kernel.
fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Returns the peak resident memory in MB, without the pages of the memory-mapped log.
fn peak_megabytes() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kilobytes = |key: &str| -> f64 {
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        line.and_then(|l| l.split_whitespace().next()?.parse().ok()).unwrap_or(0.0)
    };
    (kilobytes("VmHWM:") - kilobytes("RssFile:")) / 1000.0
}
