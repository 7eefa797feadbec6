//! Work on ROS bags.

use rovelog::{AnyLog, LogReader, Select};

use crate::{Outcome, Work};

pub const WORKS: &[(&str, Work)] = &[
    ("rovelog-open", open),
    ("rovelog-scan", scan),
    ("rovelog-records", records),
    ("rovelog-values", values),
    ("rovelog-columns", columns),
];

fn bag(log: &str) -> Result<rovelog::rosbag12::BagReader, Box<dyn std::error::Error>> {
    match rovelog::open(log)? {
        AnyLog::Rosbag(bag) => Ok(bag),
        _ => Err("not a ROS bag".into()),
    }
}

/// All bytes of a payload, as a checksum would read them.
fn sum(payload: &[u8]) -> u64 {
    let (words, rest) = payload.as_chunks::<8>();
    let words = words.iter().fold(0u64, |sum, word| sum.wrapping_add(u64::from_le_bytes(*word)));
    rest.iter().fold(words, |sum, byte| sum.wrapping_add(u64::from(*byte)))
}

fn open(log: &str) -> Outcome {
    let bag = bag(log)?;
    Ok((format!("{} messages", bag.info().records), Box::new(bag)))
}

fn scan(log: &str) -> Outcome {
    let bag = bag(log)?;
    let (mut messages, mut total) = (0u64, 0u64);
    bag.scan(|_, _, _, payload| {
        messages += 1;
        total = total.wrapping_add(sum(payload));
    });
    Ok((format!("{messages} messages {total:x}"), Box::new(bag)))
}

fn records(log: &str) -> Outcome {
    let bag = bag(log)?;
    let (mut messages, mut total) = (0u64, 0u64);
    for record in bag.records(&Select::all()) {
        messages += 1;
        total = total.wrapping_add(sum(record?.payload));
    }
    Ok((format!("{messages} messages {total:x}"), Box::new(bag)))
}

fn values(log: &str) -> Outcome {
    let bag = bag(log)?;
    let mut messages = 0u64;
    for record in bag.records_in_file_order() {
        std::hint::black_box(record.value()?);
        messages += 1;
    }
    Ok((format!("{messages} messages"), Box::new(bag)))
}

fn columns(log: &str) -> Outcome {
    let bag = bag(log)?;
    let mut rows = 0;
    for batch in bag.batches(&Select::all()) {
        rows += batch?.1.num_rows();
    }
    Ok((format!("{rows} rows"), Box::new(bag)))
}
