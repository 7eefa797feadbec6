//! ROS bags: our reader. The peers are a Python package (`rosbag_work.py`) and a C++ library
//! (`rosbag_view.cpp`).

use rovelog::rosbag12::BagReader;
use rovelog::{AnyLog, LogReader, Select};

use crate::{Outcome, Work, info};

pub(crate) const WORKS: &[(&str, Work)] = &[
    ("rovelog-open", info),
    ("rovelog-scan", scan),
    ("rovelog-records", records),
    ("rovelog-values", values),
    ("rovelog-columns", columns),
];

fn open(log: &str) -> Result<BagReader, Box<dyn std::error::Error>> {
    let AnyLog::Rosbag(bag) = rovelog::open(log)? else { return Err("not a ROS bag".into()) };
    Ok(bag)
}

/// Adds up all bytes of a payload, as a checksum would.
fn sum(payload: &[u8]) -> u64 {
    let (words, rest) = payload.as_chunks::<8>();
    let words = words.iter().fold(0u64, |sum, word| sum.wrapping_add(u64::from_le_bytes(*word)));
    rest.iter().fold(words, |sum, byte| sum.wrapping_add(u64::from(*byte)))
}

fn scan(log: &str) -> Outcome {
    let bag = open(log)?;
    let (mut messages, mut total) = (0u64, 0u64);
    bag.scan(|_, _, _, payload| {
        messages += 1;
        total = total.wrapping_add(sum(payload));
    });
    Ok((format!("{messages} messages {total:x}"), Box::new(bag)))
}

fn records(log: &str) -> Outcome {
    let bag = open(log)?;
    let (mut messages, mut total) = (0u64, 0u64);
    for record in bag.records(&Select::all()) {
        messages += 1;
        total = total.wrapping_add(sum(record?.payload));
    }
    Ok((format!("{messages} messages {total:x}"), Box::new(bag)))
}

fn values(log: &str) -> Outcome {
    let bag = open(log)?;
    let mut messages = 0u64;
    for record in bag.records_in_file_order() {
        std::hint::black_box(record.value()?);
        messages += 1;
    }
    Ok((format!("{messages} messages"), Box::new(bag)))
}

fn columns(log: &str) -> Outcome {
    let bag = open(log)?;
    let mut rows = 0;
    for batch in bag.batches(&Select::all()) {
        rows += batch?.1.num_rows();
    }
    Ok((format!("{rows} rows"), Box::new(bag)))
}
